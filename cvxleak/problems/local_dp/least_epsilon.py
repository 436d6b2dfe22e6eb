"""`MinLocalDP`: the least epsilon of local differential privacy at a worst-case distortion."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak._clock import Clock
from cvxleak._validation import Array, real_number
from cvxleak.certificates import Certificate
from cvxleak.certificates.local_dp import prove
from cvxleak.certificates.rationals import float_above, rational
from cvxleak.errors import CertificateError
from cvxleak.measures import local_dp_epsilon, privacy_profile
from cvxleak.model import Channel, Distortion, Prior, SourceSet, as_prior
from cvxleak.problems.check import Check
from cvxleak.problems.local_dp.approximate import approximate_attempts
from cvxleak.problems.local_dp.attempts import Attempt, Best
from cvxleak.problems.local_dp.general import least_distortion_rows
from cvxleak.problems.local_dp.general_search import general_attempts
from cvxleak.problems.local_dp.hamming_search import hamming_attempts
from cvxleak.problems.local_dp.linear import supports
from cvxleak.problems.local_dp.statement import (
    Costs,
    Sources,
    candidate_channel,
    distance_from_hull,
    labeled_distortion,
    least_budget,
    read_budget,
    read_costs,
    read_sources,
    unmet_budget,
    worst_case_rows,
)
from cvxleak.result import Bound, Stopped

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["MinLocalDP", "min_local_dp"]


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
    little less than 1 - 0.7: which side it is on is decided in rational arithmetic. The bracket
    stays wide only within rounding of such a border or of the least distortion of all for polytopes
    with inequalities, for programs of more than some thousand entries, for budgets within a
    millionth of these borders if delta > 0, and for numbers that no float holds.

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
            Seconds after which no linear program goes on. The least distortion, with which every
            solve begins, and the exact proof of what was found by then come on top.

        Returns
        -------
        Bound
            `upper` is the epsilon of the `witness`, a `Channel` that meets the budget exactly, as
            stored; `lower` is proved by linear programming duality. Both are in the certificate.
            Both are infinite if only channels with zeros beside positive entries meet the budget:
            the certificate proves that too.
            ``shadow_prices["distortion_budget"]`` is the derivative in D; `stats` also has the
            ``worst_source``, the law of the hull that decides.

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
        clock = Clock(time_limit)
        costs = read_costs(self.distortion, self.sources)
        least = least_budget(self.sources, costs)
        if rational(self.distortion_budget) < least:
            raise unmet_budget(self.distortion_budget, least)
        rough = least_distortion_rows(costs.matrix)
        best = Best(lambda channel, proof: self._ends(channel, proof, costs), rough, tol, clock)
        for attempt in self._attempts(costs, tol, clock):
            best.improve(attempt)
            if best.stopped:
                break
        if best.upper == math.inf and not best.done:
            best.improve(self._blended(rough, costs, float_above(least)))
        if best.channel is None:
            raise unmet_budget(self.distortion_budget, least)
        witness = self._witness(best.channel, costs)
        certificate = Certificate(
            "local-dp", self._problem(costs), best.lower, best.upper, witness, best.proof
        )
        return Bound.proved(
            "local DP",
            best.lower,
            best.upper,
            tol=0.0,
            absolute=tol,
            witness=best.as_channel(self.sources.labels, costs.outputs),
            certificate=certificate,
            shadow_prices={
                "distortion_budget": float(best.price) if 0 < best.upper < math.inf else 0.0
            },
            stats={
                "seconds": clock.seconds,
                "stopped": best.stopped or Stopped.NO_PROGRESS,
                "programs": best.programs,
                "worst_source": best.law(self.sources.labels),
            },
            resume=self._refine,
        )

    def check(
        self, candidate: Channel | Prior | ArrayLike, *, bound: Bound | None = None, **options: Any
    ) -> Check:
        """Judge a channel, or a law that is claimed to be the worst source.

        Parameters
        ----------
        candidate : Channel or array_like of shape (k, m), or Prior or array_like of shape (k,)
            A channel's value is its own epsilon, at this delta; a law's is the least epsilon for
            this law alone, which no law of the hull raises above the optimum.
        bound : Bound, optional
            An earlier result of `solve`; computed with `options` if left out.

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
        bound = self.solve(**options) if bound is None else bound.to("nats")
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

    def _attempts(self, costs: Costs, tol: float, clock: Clock) -> Iterator[Attempt]:
        sources, budget, d = self.sources, self.distortion_budget, costs.matrix

        def meets(channel: Array) -> bool:
            return self._ends(channel, {}, costs) is not None

        if costs.is_hamming:
            pure = hamming_attempts(sources, budget, clock, meets)
        else:
            pure = general_attempts(sources, d, budget, tol, clock, meets)
        if self.delta == 0:
            return pure
        return approximate_attempts(sources, d, budget, self.delta, tol, clock, pure)

    def _blended(self, rough: Array, costs: Costs, least: float) -> Attempt:
        """Return the channel of least distortion with as much noise as the budget allows."""
        flat = np.full(rough.shape, 1 / rough.shape[1])
        worst = self.sources.worst((flat * costs.matrix).sum(axis=1))[0]
        share = min((self.distortion_budget - least) / max(worst - least, 1e-300), 1.0)
        share *= 1 - 1e-9  # so that rounding does not exceed the budget
        return Attempt([(1 - share) * rough + share * flat], programs=0)

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
