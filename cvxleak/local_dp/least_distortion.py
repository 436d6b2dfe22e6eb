"""`MinDistortionLocalDP`: the least worst-case distortion at a given epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.clock import Clock
from cvxleak.core.errors import SolverError
from cvxleak.core.validation import Array, real_number
from cvxleak.local_dp import hamming
from cvxleak.local_dp.approximate import ApproximateProgram
from cvxleak.local_dp.general import RowProgram
from cvxleak.local_dp.linear import Mixture
from cvxleak.local_dp.proof_candidates import STEPS, Attempt, Best, flat_channels
from cvxleak.local_dp.statement import (
    Costs,
    SourceProblem,
    Sources,
    candidate_channel,
    private_program,
)
from cvxleak.measures import local_dp_epsilon, privacy_profile
from cvxleak.model import Channel, Distortion
from cvxleak.problem import Bound, Gap, Stopped
from cvxleak.problem.problem import Found, Once, Search, Toward, mixtures
from cvxleak.proofs.local_dp import prove_distortion
from cvxleak.solvers.conic import as_options
from cvxleak.solvers.linear import LinearSolver

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["MinDistortionLocalDP", "min_distortion_local_dp"]

LARGEST_EPSILON = 100.0


METHOD = (
    "a linear program and its repair in exact arithmetic, because at a fixed epsilon the "
    "distortion and the limits on the channel are linear"
)


@dataclass(frozen=True, eq=False)
class MinDistortionLocalDP(SourceProblem):
    """The least worst-case distortion of an (epsilon, delta)-locally private channel.

    Minimize the largest expected distortion sum_{x,y} P(x) Q(y|x) d(x,y) over the sources P of the
    set, among channels Q that are (epsilon, delta)-locally differentially private: the inverse of
    `MinLocalDP`.

    Parameters
    ----------
    sources : SourceSet, Prior, or iterable of distributions
        The possible true distributions; a set and its convex hull give the same result.
    epsilon : float
        In nats, from 0 to 100.
    distortion : Distortion, str or array_like, shape (k, m), optional
        d; Hamming distortion if left out; ``"absolute"`` and ``"squared"`` compare the outcomes'
        labels.
    delta : float
        From 0 to 1; 0 for pure differential privacy.

    Raises
    ------
    ValidationError
        Arguments that are invalid or do not match each other.

    Notes
    -----
    HAMMING (5), a linear program; for Hamming distortion it has k + 1 columns (see
    `cvxleak.local_dp.hamming`).

    The bound's `upper` is the worst-case distortion of the `witness`, a `Channel` that is
    (epsilon, delta)-private exactly, as stored; `lower` is proved by duality. The unit is that of
    d. ``shadow_prices["epsilon"]`` is the derivative in epsilon; `stats` has the ``worst_source``.
    When the time limit is reached, the linear program that is running is stopped; the witness may
    then be a channel that ignores the input, and the lower bound 0. A candidate for `check` is a
    channel.

    Options of `solve`: ``solver``, a CVXPY solver for the search's linear programs (HiGHS, called
    directly, if left out), and ``solver_options``, a mapping of its options. The result of an
    inaccurate solver is proved as well; the gap is then wider.

    Examples
    --------
    >>> import math
    >>> from cvxleak.local_dp import MinDistortionLocalDP
    >>> print(MinDistortionLocalDP([[0.7, 0.15, 0.06, 0.04, 0.03, 0.02]], math.log(45)).solve())
    local DP distortion: 0.1 to 0.1 distortion (CERTIFIED)
    >>> bound = MinDistortionLocalDP([[0.5, 0.3, 0.2]], 0.0).solve()
    >>> round(bound.upper, 12), bound.witness.matrix[0]
    (0.5, array([1., 0., 0.]))
    >>> MinDistortionLocalDP([[0.5, 0.5]], 1.0).check([[0.75, 0.25], [0.25, 0.75]]).violations
    mappingproxy({... 'epsilon within the budget': 0.0986...})
    """

    kind = "local-dp-distortion"
    name = "local DP distortion"
    unit = "distortion"
    maximize = False
    tolerance = 1e-8
    convex = True
    information = ("epsilon",)

    epsilon: float
    delta: float

    def __init__(
        self,
        sources: Sources,
        epsilon: float,
        distortion: Distortion | ArrayLike | None = None,
        *,
        delta: float = 0.0,
    ) -> None:
        self._read(sources, distortion)
        object.__setattr__(self, "epsilon", real_number(epsilon, "epsilon", 0.0, LARGEST_EPSILON))
        object.__setattr__(self, "delta", real_number(delta, "delta", 0.0, 1.0))

    @property
    def scale(self) -> float:
        """The largest distortion."""
        return float(self.costs.matrix.max()) or 1.0

    def to_cvxpy(self) -> cp.Problem:
        """Return the problem in plain CVXPY, with the channel as its variable ``channel``.

        Examples
        --------
        >>> from cvxleak.local_dp import MinDistortionLocalDP
        >>> problem = MinDistortionLocalDP([[0.5, 0.3, 0.2]], 1.5).to_cvxpy()
        >>> round(float(problem.solve()), 4)
        0.3086
        """
        return private_program(self.sources, self.costs, self.epsilon, self.delta)

    def _search(
        self, *, solver: str | None = None, solver_options: Mapping[str, Any] | None = None
    ) -> Search:
        by = LinearSolver(name=solver, options=as_options(solver_options))
        return Once(lambda gap, clock: self._run(replace(by, clock=clock), gap, clock))

    def _run(self, solver: LinearSolver, gap: Gap, clock: Clock) -> tuple[Found, Stopped]:
        costs = self.costs
        stored = {
            "sources": self.sources.parts_to_list(),
            "distortion": costs.stored,
            "delta": self.delta,
            "epsilon": self.epsilon,
        }
        # An output that ignores the input is private whatever epsilon is.
        flat = np.full(costs.matrix.shape, 1 / costs.matrix.shape[1])
        best = Best(prove_distortion, stored, self.sources, costs.matrix, flat, gap, clock)
        best.search(self._attempts(costs, solver))
        if best.channel is None:
            raise SolverError("no channel was found that is private in exact arithmetic")
        prices = {"epsilon": float(best.price * math.exp(self.epsilon))}
        found = best.found(costs.outputs, prices, METHOD)
        return found, best.stopped or Stopped.NO_PROGRESS

    def _measure(self, candidate: Channel | ArrayLike) -> tuple[float, dict[str, float]]:
        channel, violations = candidate_channel(candidate, self.sources, self.costs)
        if self.delta == 0:
            over = local_dp_epsilon(channel) - self.epsilon
            violations["epsilon within the budget"] = max(0.0, over)
        else:
            over = privacy_profile(channel, self.epsilon) - self.delta
            violations["delta within the budget"] = max(0.0, over)
        return self.worst_distortion(channel.matrix), violations

    def _toward(self, candidate: Channel | ArrayLike, bound: Bound) -> Toward:
        rows = candidate_channel(candidate, self.sources, self.costs)[0].matrix
        law = self.sources.worst(np.zeros(len(rows)))[1].probabilities
        # Of every output a part, so that specks of one input alone are soon drowned.
        constant = (law @ rows + 1 / rows.shape[1]) / 2
        return mixtures(rows, np.tile(constant, (len(rows), 1)), self._labeled, self._stored)

    def _attempts(self, costs: Costs, solver: LinearSolver) -> Iterator[Attempt]:
        """Yield channels and proofs to try: the program's own, and those of constant outputs."""
        ratio = math.exp(self.epsilon)
        program = RowProgram(self.sources, costs.matrix, solver=solver)
        makers: list[Callable[[], Attempt]] = []
        if self.delta > 0:
            makers.append(lambda: self._approximate(costs, ratio, solver))
        elif costs.is_hamming and ratio > 1:
            makers.append(lambda: self._hamming(ratio, solver))
        # Steps of e^epsilon from 1 that a float hardly holds change the optimum as little.
        makers += [lambda: self._general(program, ratio), lambda: self._general(program, 1.0)]
        for maker in makers:
            try:
                yield maker()
            except SolverError:  # at a border, or time is up
                continue
        outputs = costs.matrix.shape[1]
        y = int(np.argmin([self.sources.worst(column)[0] for column in costs.matrix.T]))
        yield Attempt([np.tile(np.eye(outputs)[y], (self.sources.size, 1))], programs=0)

    def _approximate(self, costs: Costs, ratio: float, solver: LinearSolver) -> Attempt:
        program = ApproximateProgram(self.sources, costs.matrix, self.delta, solver=solver)
        found = program.at(ratio)
        flat = np.full(found.channel.shape, 1 / found.channel.shape[1])
        proof = {"mixture": found.mixture.to_dict(), "comparisons": found.to_list()}
        mixed = ((1 - step) * found.channel + step * flat for step in STEPS)
        return Attempt(mixed, [proof], found.mixture, found.slope)

    def _hamming(self, ratio: float, solver: LinearSolver) -> Attempt:
        distortions, mixture, slope = hamming.distortions_for_ratio(self.sources, ratio, solver)
        v = hamming.potentials_for_ratio(mixture.law, ratio)
        # Towards a constant output, for which the distortions sum to k - 1.
        room = self.sources.size - 1 - float(distortions.sum())
        flat = distortions + room * (1 - distortions) / max(float((1 - distortions).sum()), 1.0)
        moved = ((1 - step) * distortions + step * flat for step in STEPS)
        channels = (hamming.channel_of_distortions(d) for d in moved)
        return Attempt(channels, _lowered(mixture, v, v), mixture, slope)

    def _general(self, program: RowProgram, ratio: float) -> Attempt:
        best = program.at(ratio)
        if ratio == 1:
            rows = flat_channels(best.least / best.least.sum(), self.sources.size)
        else:
            # Less than the ratio above the same least entries, which then need a larger sum.
            rows = (program.channel(*_narrowed(best.least, ratio, step)) for step in STEPS)
        if self.delta > 0:  # potentials are for pure privacy
            return Attempt(rows, (), best.mixture, best.slope)
        # Evenly, because rounding also touches the rows of sources without weight.
        even = np.full(self.sources.size, max(float(np.abs(best.potentials).sum()), 1e-300))
        return Attempt(
            rows, _lowered(best.mixture, best.potentials, even), best.mixture, best.slope
        )


def min_distortion_local_dp(
    sources: Sources,
    epsilon: float,
    distortion: Distortion | ArrayLike | None = None,
    *,
    delta: float = 0.0,
    **options: Any,
) -> Bound:
    """Return the least worst-case distortion: `MinDistortionLocalDP(...).solve(...)`.

    Parameters
    ----------
    sources, epsilon, distortion, delta
        As for `MinDistortionLocalDP`.
    **options
        As for `Problem.solve`.

    Examples
    --------
    >>> import math
    >>> from cvxleak.local_dp import min_distortion_local_dp
    >>> bound = min_distortion_local_dp([[0.25] * 4], math.log(9))
    >>> print(bound)
    local DP distortion: 0.25 to 0.25 distortion (CERTIFIED)
    """
    return MinDistortionLocalDP(sources, epsilon, distortion, delta=delta).solve(**options)


def _lowered(mixture: Mixture, potentials: Array, direction: Array) -> Iterator[dict[str, Any]]:
    """Yield potentials that fall, until the first that holds: that is the best one."""
    for step in STEPS:
        lowered = potentials - step * direction
        yield {"mixture": mixture.to_dict(), "potentials": lowered.tolist()}


def _narrowed(least: Array, ratio: float, step: float) -> tuple[Array, float]:
    narrow = 1 + (ratio - 1) * (1 - step)
    total = float(least.sum())
    return least * max(1.0, (1 + 2**-50) / (narrow * total)), narrow
