"""`MinLocalDP`: the least epsilon of local differential privacy at a worst-case distortion."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak._validation import Array, real_number
from cvxleak.certificates import Certificate
from cvxleak.certificates.local_dp import prove
from cvxleak.errors import CertificateError, InfeasibleError
from cvxleak.measures import local_dp_epsilon, privacy_profile
from cvxleak.model import Channel, Distortion, Prior, SourceSet, as_prior
from cvxleak.problems.check import Check
from cvxleak.problems.local_dp import approximate, hamming, slopes
from cvxleak.problems.local_dp.general import RowProgram, least_distortion_rows
from cvxleak.problems.local_dp.linear import Mixture, supports
from cvxleak.problems.local_dp.statement import (
    Costs,
    Sources,
    candidate_channel,
    distance_from_hull,
    labeled_distortion,
    read_budget,
    read_costs,
    read_sources,
    worst_case_rows,
)
from cvxleak.result import Bound

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["MinLocalDP", "min_local_dp"]

STEPS = (0.0, *(2.0**-k for k in range(52, 15, -3)))
"""Relative moves to the safe side, in turn, until the exact check agrees."""


SURPLUS = (1e-3, 1e-6, 1e-9)
"""Relative surplus of the budgets whose worst mixtures are tried."""

LARGER = (1e-11, 1e-9, 1e-7, 1e-5)
"""Relative surplus of the ratios at which a channel within the budget is looked for."""


@dataclass(frozen=True)
class _Found:
    """Channels and multipliers from which the two ends are proved, and the epsilon to expect."""

    channels: Callable[[], Iterator[Array]]
    proofs: Callable[[], Iterator[dict[str, Any]]]
    mixture: Mixture | None
    price: float
    programs: int
    target: float = 0.0


@dataclass(frozen=True)
class MinLocalDP:
    """The problem: the least epsilon of a channel that is useful for every source.

    minimize epsilon over channels Q that are (epsilon, delta)-locally differentially private and
    have sum_{x,y} P(x) Q(y|x) d(x,y) <= D for every law P of the set. Exact for any set of sources
    that consists of laws and polytopes, of Class I, II or III, and for any distortion matrix.

    Parameters
    ----------
    sources : SourceSet, Prior, or iterable of laws
        What is known about the true law; a set and its hull give the same answer.
    distortion_budget : float
        D >= 0, in the unit of d; at most 1 for Hamming distortion.
    distortion : Distortion or array_like, shape (k, m), optional
        d; Hamming distortion, d(x, y) = 1 if x != y, if left out. A `Distortion` is matched to the
        outcomes by label, an array by position.
    delta : float
        From 0 to 1; 0 for pure differential privacy.

    Raises
    ------
    ValidationError
        Arguments that are not valid or do not fit.

    Notes
    -----
    HAMMING Definition 4 and (4). Pure, Hamming: one linear program with k + 1 columns, which is
    Theorem 2's with the largest of all rows in place of the first, and exact for every class (see
    `cvxleak.problems.local_dp.hamming`). Pure, any d: linear programs in the column minima alone,
    with Newton's steps in e^epsilon. delta > 0: the same steps over the full linear program.

    The least epsilon is not continuous in D: where a constant output just meets the budget it
    falls to 0 from a positive number. The budget is taken as the float that is stored, and 0.3 is a
    little less than 1 - 0.7.

    Examples
    --------
    HAMMING Table I at D = .2, and its Class III set a at D = .3:

    >>> from cvxleak.problems import MinLocalDP
    >>> table = [0.7, 0.15, 0.06, 0.04, 0.03, 0.02]
    >>> print(MinLocalDP([table], 0.2).solve())
    local DP: 2.677279 to 2.677279 nats (CERTIFIED)
    >>> print(MinLocalDP([table, [0.15, 0.7, *table[2:]]], 0.3).solve())
    local DP: 1.540445 to 1.540445 nats (CERTIFIED)
    """

    sources: SourceSet
    distortion_budget: float
    distortion: Distortion | None
    delta: float

    def __init__(
        self,
        sources: Sources,
        distortion_budget: float,
        distortion: Distortion | ArrayLike | None = None,
        *,
        delta: float = 0.0,
    ) -> None:
        known = read_sources(sources)
        costs = read_costs(distortion, known)
        given = None if distortion is None else labeled_distortion(costs, known)
        object.__setattr__(self, "sources", known)
        object.__setattr__(self, "distortion_budget", read_budget(distortion_budget, costs))
        object.__setattr__(self, "distortion", given)
        object.__setattr__(self, "delta", real_number(delta, "delta", 0.0, 1.0))

    def solve(self, *, tol: float = 1e-9, time_limit: float | None = None) -> Bound:
        """Return the bracket of the least epsilon, in nats.

        Parameters
        ----------
        tol : float
            The gap to reach, in nats. With delta = 0 the gap comes out near 1e-14.
        time_limit : float, optional
            Seconds after which no further linear program is started.

        Returns
        -------
        Bound
            `upper` is the epsilon of the `witness`, a `Channel` that meets the budget exactly, as
            stored; `lower` is proved by linear programming duality. Both are in the certificate.
            Infinite, and without a certificate, if only channels with zeros beside positive
            entries meet the budget. ``shadow_prices["distortion_budget"]`` is the derivative in D;
            `stats` has the ``worst_source``, the law of the hull that decides.

        Raises
        ------
        InfeasibleError
            No channel meets the budget (never for Hamming distortion).
        ValidationError
            An option out of range.
        SolverError
            A linear program could not be solved.

        Examples
        --------
        >>> from cvxleak.certificates import verify
        >>> from cvxleak.problems import MinLocalDP
        >>> bound = MinLocalDP([[0.5, 0.3, 0.2]], 0.3).solve()
        >>> bound.gap < 1e-12, verify(bound.certificate).passed
        (True, True)
        """
        tol = real_number(tol, "tol", 0.0)
        limit = math.inf if time_limit is None else real_number(time_limit, "time_limit", 0.0)
        begin = time.monotonic()
        costs = read_costs(self.distortion, self.sources)
        least = self.sources.worst(costs.least())[0]
        if self.distortion_budget < least * (1 - 1e-12):
            raise InfeasibleError(_too_small(self.distortion_budget, least))
        found = self._search(costs, tol, begin + limit)
        lower, upper, witness, certificate = self._proved(found, costs, tol, least)
        stats = {
            "seconds": time.monotonic() - begin,
            "programs": found.programs,
            "worst_source": None
            if found.mixture is None
            else Prior(found.mixture.law / found.mixture.law.sum(), self.sources.labels),
        }
        return Bound.proved(
            "local DP",
            lower,
            upper,
            tol=0.0,
            absolute=tol,
            witness=witness,
            certificate=certificate,
            shadow_prices={
                "distortion_budget": float(found.price) if 0 < upper < math.inf else 0.0
            },
            stats=stats,
            resume=self._refine,
        )

    def check(self, candidate: Channel | Prior | ArrayLike, *, bound: Bound | None = None) -> Check:
        """Judge a channel, or a law that is claimed to be the worst source.

        Parameters
        ----------
        candidate : Channel or array_like of shape (k, m), or Prior or array_like of shape (k,)
            A channel's value is its own epsilon, at this delta; a law's is the least epsilon for
            this law alone, which no law of the hull raises above the optimum.
        bound : Bound, optional
            An earlier result of `solve`; computed if left out.

        Raises
        ------
        ValidationError
            A shape that does not fit, or entries that are not finite.

        Examples
        --------
        >>> from cvxleak.mechanisms import randomized_response
        >>> from cvxleak.problems import MinLocalDP
        >>> problem = MinLocalDP([[0.5, 0.3, 0.2]], 0.5)
        >>> print(problem.check([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]))
        feasible; value 0.6931472 nats
        proved optimum: 0 to 0 nats; the candidate falls short by 0.6931472 to 0.6931472
        >>> MinLocalDP([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]], 0.3).check([0.5, 0.3, 0.2]).feasible
        True
        """
        bound = self.solve() if bound is None else bound.to("nats")
        costs = read_costs(self.distortion, self.sources)
        given: Any = candidate
        if isinstance(given, Prior) or (not isinstance(given, Channel) and np.ndim(given) == 1):
            law = as_prior(given, self.sources.size, "candidate", self.sources.labels)
            alone = MinLocalDP(
                [law], self.distortion_budget, self.distortion, delta=self.delta
            ).solve()
            away = distance_from_hull(self.sources, law.probabilities)[0]
            return Check(alone.lower, {"law in the sources' hull": away}, bound, maximize=True)
        channel, violations = candidate_channel(candidate, self.sources, costs)
        cost = (channel.matrix * costs.matrix).sum(axis=1)
        over = self.sources.worst(cost)[0] - self.distortion_budget
        violations["worst-case distortion within the budget"] = max(0.0, over)
        return Check(self._epsilon(channel), violations, bound, maximize=False)

    def to_cvxpy(self, epsilon: float | cp.Parameter) -> cp.Problem:
        """Return, in plain CVXPY, the least worst-case distortion at a given epsilon.

        The problem itself is no convex program, but quasi-convex: it asks for the smallest epsilon
        at which this program's value is within the budget. Its variable is ``channel``. With a
        Parameter it is DPP, so that bisection compiles it once.

        Parameters
        ----------
        epsilon : float or cp.Parameter
            In nats, from 0 to 700.

        Examples
        --------
        >>> import cvxpy as cp
        >>> from cvxleak.problems import MinLocalDP
        >>> epsilon = cp.Parameter(nonneg=True, value=1.5)
        >>> problem = MinLocalDP([[0.5, 0.3, 0.2]], 0.3).to_cvxpy(epsilon)
        >>> round(float(problem.solve()), 4)
        0.3086
        """
        import cvxpy as cp

        from cvxleak.constraints import local_dp, row_stochastic

        costs = read_costs(self.distortion, self.sources)
        Q = cp.Variable(costs.matrix.shape, name="channel")
        ceiling = cp.Variable()
        cost = cp.sum(cp.multiply(costs.matrix, Q), axis=1)
        rows = row_stochastic(Q) + local_dp(Q, epsilon, self.delta)
        return cp.Problem(cp.Minimize(ceiling), rows + worst_case_rows(self.sources, cost, ceiling))

    def _epsilon(self, channel: Channel) -> float:
        if self.delta == 0:
            return local_dp_epsilon(channel)
        # Where the privacy profile comes down to delta.
        low, high = 0.0, 1.0
        if privacy_profile(channel, low) <= self.delta:
            return 0.0
        while privacy_profile(channel, high) > self.delta:
            low, high = high, 2 * high
            if high > 1024:
                return math.inf
        while high - low > 1e-12 * high:
            middle = (low + high) / 2
            inside = privacy_profile(channel, middle) <= self.delta
            low, high = (low, middle) if inside else (middle, high)
        return high

    def _problem(self, costs: Costs) -> dict[str, Any]:
        return {
            "sources": self.sources.parts_to_list(),
            "distortion": costs.stored,
            "delta": self.delta,
            "budget": self.distortion_budget,
        }

    def _search(self, costs: Costs, tol: float, deadline: float) -> _Found:
        if self.delta > 0:
            return self._approximate(costs, tol, deadline)
        if costs.is_hamming:
            return self._hamming(costs)
        return self._general(costs, tol, deadline)

    def _hamming(self, costs: Costs) -> _Found:
        size, budget = self.sources.size, self.distortion_budget
        # One certain output: what the linear program leaves out.
        alone = [1 - float(p) for p in _least_probabilities(self.sources)]
        j = int(np.argmin(alone))
        if alone[j] <= budget * (1 + 1e-12):
            flat = np.tile(np.eye(size)[j], (size, 1))
            if self._meets_budget(flat, costs):
                return _constant(flat, None)
        if budget == 0:
            return _exact(costs, self.sources)
        found = hamming.distortions_for_budget(self.sources, budget)
        if found is None or found[0].sum() >= (size - 1) * (1 - 1e-9):
            _, law, mixture = hamming.constant_output(self.sources)
            flat = np.tile(law, (size, 1))
            if self._meets_budget(flat, costs):
                return _constant(flat, mixture)
            # It does but for rounding: nothing is proved, and next to nothing is leaked.
            found = found or (1 - law, mixture, 0.0)
        distortions, mixture, slope = found
        ratio = 1 + max(size - 1 - float(distortions.sum()), 0.0) / float(distortions.min())

        def channels() -> Iterator[Array]:
            for step in STEPS[1:]:
                less = np.where(distortions < 1 - 1e-12, distortions * (1 - step), 1.0)
                yield hamming.channel_of_distortions(less)

        def proofs() -> Iterator[dict[str, Any]]:
            rest = 1 - Fraction(budget)
            for worst in self._near(mixture, budget):
                room = np.array([float(max(rest - p, 0)) for p in worst.exact(self.sources)])
                # A potential of zero claims nothing of its column: right where there is no room.
                for known in (np.where(room < 1e-14, 0.0, room), room):
                    v = hamming.potentials_for_budget(worst.law, known, budget)
                    v = at_least(v, v, budget)
                    yield {"mixture": worst.to_dict(), "potentials": v.tolist()}

        return _Found(channels, proofs, mixture, slope / ratio, 1)

    def _near(self, mixture: Mixture, budget: float) -> Iterator[Mixture]:
        """Yield the worst mixture, and some next to it.

        Where a constant output just meets the budget under the worst mixture, rounding spoils the
        proof. The mixture for a budget a little larger is away from there, and a step towards it is
        enough.
        """
        yield mixture
        for more in SURPLUS:
            other = hamming.distortions_for_budget(self.sources, budget * (1 + more))
            if other is None:  # a constant output meets the larger budget
                continue
            for step in (1e-13, 1e-11, 1e-8, 1.0):
                yield mixture.towards(other[1], step)

    def _general(self, costs: Costs, tol: float, deadline: float) -> _Found:
        budget, size = self.distortion_budget, self.sources.size
        program = RowProgram(self.sources, costs.matrix)
        flat = program.at(1.0)
        law = np.tile(flat.least / flat.least.sum(), (size, 1))
        if self._meets_budget(law, costs):
            return _constant(law, flat.mixture)
        if budget == 0:
            return _exact(costs, self.sources)
        bracket = slopes.least_ratio_for_budget(
            program, costs.matrix, budget, tol / 4, deadline, start=flat
        )

        def channels() -> Iterator[Array]:
            if bracket.least is not None:
                for step in STEPS[:6]:
                    # A larger ratio leaves more room above the least entries, or below the largest.
                    wider = 1 + step
                    yield program.channel(bracket.least, bracket.upper * wider)
                    yield program.channel(bracket.least / wider, bracket.upper * wider)
                for step in LARGER:
                    best = program.at(bracket.upper * (1 + step))
                    yield program.channel(best.least, best.ratio)
            yield least_distortion_rows(costs.matrix)

        def proofs() -> Iterator[dict[str, Any]]:
            mixture = bracket.mixture
            v = at_least(bracket.potentials, budget * mixture.law, budget)
            yield {"mixture": mixture.to_dict(), "potentials": v.tolist()}

        price = 1 / (bracket.slope * bracket.upper) if bracket.slope < 0 else -math.inf
        return _Found(channels, proofs, bracket.mixture, price, bracket.iterations)

    def _approximate(self, costs: Costs, tol: float, deadline: float) -> _Found:
        program = approximate.ApproximateProgram(self.sources, costs.matrix, self.delta)
        below, above, count = approximate.least_ratio_for_budget(
            program, self.distortion_budget, max(tol / 2, 1e-10), deadline
        )
        rough = least_distortion_rows(costs.matrix)

        def channels() -> Iterator[Array]:
            # A little of one law for all inputs, so that no zero is beside a positive entry.
            flat = np.full(rough.shape, 1 / rough.shape[1])
            for step in STEPS[1:]:
                yield (1 - step) * above.channel + step * flat
                mixed = (1 - step) * above.channel + step * rough
                yield (1 - step) * mixed + step * flat
            yield above.channel
            yield rough

        def proofs() -> Iterator[dict[str, Any]]:
            if below is not None and below.ratio > 1:
                yield {
                    "mixture": below.mixture.to_dict(),
                    "comparisons": below.to_list(),
                    "level": below.ratio,
                }

        price = 1 / (above.slope * above.ratio) if above.slope < 0 else 0.0
        target = math.log(above.ratio)
        return _Found(channels, proofs, above.mixture, price, count, target)

    def _meets_budget(self, channel: Array, costs: Costs) -> bool:
        return self._ends(channel, {}, costs) is not None

    def _ends(
        self, channel: Array, proof: dict[str, Any], costs: Costs
    ) -> tuple[float, float] | None:
        """Return the ends that the checker proves, or None if it proves nothing."""
        try:
            return prove(self._problem(costs), self._witness(channel, costs), proof)
        except CertificateError:
            return None

    def _witness(self, channel: Array, costs: Costs) -> dict[str, Any]:
        cost = (channel * costs.matrix).sum(axis=1)
        return {"channel": channel.tolist(), "supports": supports(self.sources, cost)}

    def _proved(
        self, found: _Found, costs: Costs, tol: float, least: float
    ) -> tuple[float, float, Channel, Certificate | None]:
        """Return the ends, the witness and the certificate: the first channel, the best proof."""
        proofs = found.proofs()
        first = next(proofs, {})
        best: dict[str, Any] = {}
        lower, upper, channel = 0.0, math.inf, None
        for trial in found.channels():
            ends, used = self._ends(trial, first, costs), first
            if ends is None and first:
                ends, used = self._ends(trial, {}, costs), {}
            if ends is not None and (channel is None or ends[1] < upper):
                channel, upper = trial, ends[1]
                lower, best = ends[0], used
            # Pure privacy: the first one is as good as any. Else a zero may cost a lot.
            if upper < math.inf and (self.delta == 0 or upper - found.target <= tol / 2):
                break
        if channel is None:
            raise InfeasibleError(_too_small(self.distortion_budget, least))
        for proof in proofs:
            if lower == upper or upper - lower <= tol:
                break
            ends = self._ends(channel, proof, costs)
            if ends is not None and ends[0] > lower:
                lower, best = ends[0], proof
        certificate = None
        if upper < math.inf:
            parts = self._problem(costs), lower, upper, self._witness(channel, costs), best
            certificate = Certificate("local-dp", *parts)
        return lower, upper, Channel(channel, self.sources.labels, costs.outputs), certificate

    def _refine(self, tol: float, time_limit: float | None) -> Bound:
        return self.solve(tol=tol, time_limit=time_limit)


def min_local_dp(
    sources: Sources,
    distortion_budget: float,
    distortion: Distortion | ArrayLike | None = None,
    *,
    delta: float = 0.0,
    tol: float = 1e-9,
    time_limit: float | None = None,
) -> Bound:
    """Return the least epsilon at a worst-case distortion: `MinLocalDP(...).solve(...)`.

    Parameters
    ----------
    sources, distortion_budget, distortion, delta
        As for `MinLocalDP`.
    tol, time_limit : float
        As for `MinLocalDP.solve`.

    Examples
    --------
    Nothing is known about the law of four values (HAMMING Theorem 1: log 9 at D = 1/4):

    >>> from cvxleak.model import SourceSet
    >>> from cvxleak.problems import min_local_dp
    >>> print(min_local_dp(SourceSet.box([0] * 4, [1] * 4), 0.25))
    local DP: 2.197225 to 2.197225 nats (CERTIFIED)
    """
    return MinLocalDP(sources, distortion_budget, distortion, delta=delta).solve(
        tol=tol, time_limit=time_limit
    )


def at_least(potentials: Array, direction: Array, total: float) -> Array:
    """Return the potentials, raised until their exact sum is at least `total`."""
    wanted = Fraction(total)
    for step in STEPS:
        raised = potentials + step * direction
        if sum(map(Fraction, raised.tolist())) >= wanted:
            return raised
    return potentials


def _least_probabilities(sources: SourceSet) -> Array:
    """Return min_P P(x) for each outcome."""
    least = sources.points.min(axis=0, initial=1.0)
    for body in sources.polytopes:
        supported = [-body.support(-row).value for row in np.eye(sources.size)]
        least = np.minimum(least, supported)
    return least


def _constant(channel: Array, mixture: Mixture | None) -> _Found:
    return _Found(lambda: iter([channel]), lambda: iter([]), mixture, 0.0, 1)


def _exact(costs: Costs, sources: SourceSet) -> _Found:
    """Return what proves that no channel of finite epsilon has distortion 0."""
    bodies = sources.polytopes
    members = tuple((1.0, body.member(body.center)) for body in bodies)
    law = sources.points.sum(axis=0)
    law = law + sum(
        (np.array([float(p) for p in exact]) for _, exact in members), np.zeros(len(law))
    )
    mixture = Mixture(law / law.sum(), np.ones(len(sources.points)), members)
    proof = {"mixture": mixture.to_dict(), "potentials": [0.0] * sources.size}
    channel = least_distortion_rows(costs.matrix)
    return _Found(lambda: iter([channel]), lambda: iter([proof]), mixture, -math.inf, 1)


def _too_small(budget: float, least: float) -> str:
    return (
        f"distortion_budget: {budget!r} is met by no channel; the least worst-case distortion is "
        f"{math.nextafter(least * (1 + 1e-12), math.inf)!r}"
    )
