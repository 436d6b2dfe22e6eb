"""`MinLocalDP`: the least epsilon of local differential privacy at a worst-case distortion."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.clock import Clock
from cvxleak.core.validation import Array, real_number
from cvxleak.kernel.numbers import upper
from cvxleak.local_dp.approximate import approximate_attempts
from cvxleak.local_dp.general import least_distortion_rows
from cvxleak.local_dp.general_search import constant_outputs, general_attempts
from cvxleak.local_dp.hamming_search import hamming_attempts
from cvxleak.local_dp.proof_candidates import Attempt, Best
from cvxleak.local_dp.statement import (
    BudgetProblem,
    Costs,
    Sources,
    distance_from_hull,
    private_program,
    read_budget,
)
from cvxleak.measures import local_dp_epsilon, privacy_profile
from cvxleak.model import Channel, Distortion, Prior
from cvxleak.problem import Bound, Gap, Stopped
from cvxleak.problem.problem import Found, Once, Search
from cvxleak.proofs.local_dp import prove
from cvxleak.solvers.conic import as_options
from cvxleak.solvers.linear import LinearSolver

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["MinLocalDP", "min_local_dp"]


@dataclass(frozen=True, eq=False)
class MinLocalDP(BudgetProblem):
    """The least local-DP epsilon of a channel that meets a distortion budget for every source.

    Minimize epsilon over channels Q that are (epsilon, delta)-locally differentially private and
    have sum_{x,y} P(x) Q(y|x) d(x,y) <= D for every source P of the set. It is exact for every set
    of distributions and polytopes, of Class I, II or III, and for every distortion matrix.

    Parameters
    ----------
    sources : SourceSet, Prior, or iterable of distributions
        The possible true distributions; a set and its convex hull give the same result.
    budget : float
        D >= 0, in the unit of d; at most 1 for Hamming distortion.
    distortion : Distortion, str or array_like, shape (k, m), optional
        d; Hamming distortion, d(x, y) = 1 if x != y, if left out. A `Distortion` is matched to the
        outcomes by label, an array by position; ``"absolute"`` and ``"squared"`` compare the
        outcomes' labels.
    delta : float
        From 0 to 1; 0 for pure differential privacy.

    Raises
    ------
    ValidationError
        Arguments that are invalid or do not match each other.

    Notes
    -----
    `solve` raises `InfeasibleError` if no channel meets the budget (never for Hamming distortion).

    HAMMING Definition 4 and (4). For delta = 0 and Hamming distortion, one linear program with k +
    1 columns: that of Theorem 2 with the largest of all rows in place of the first, which is exact
    for every class (see `cvxleak.local_dp.hamming`). For delta = 0 and any d, linear programs in
    the column minima alone, with Newton steps in e^epsilon. For delta > 0, the same steps over the
    full linear program.

    The least epsilon is not continuous in D: at the budget that a constant output just meets, it
    falls from a positive number to 0. The budget is taken as the stored float, and 0.3 is slightly
    less than 1 - 0.7: the side of the jump is decided in rational arithmetic. The gap stays wide
    only in these cases: for polytopes with inequalities, within rounding of such a jump or of the
    least possible distortion; for delta > 0, within a millionth of these budgets; and if
    probabilities and budgets have such different sizes (1e-9 and 1e-6) that linear programs in
    floating point do not resolve them.

    The bound's `upper` is the epsilon of the `witness`, a `Channel` that meets the budget exactly,
    as stored; `lower` is proved by linear programming duality. Both are in the certificate. Both
    are infinite if every channel that meets the budget has a column with zero and positive entries;
    the certificate proves that, too. With delta = 0 the gap is about 1e-14, and below 1e-9 next to
    a jump, whatever `tol`. ``shadow_prices["budget"]`` is the derivative in D; `stats` also has the
    ``worst_source``, the binding distribution of the hull. When the time limit is reached, the
    linear program that is running is stopped; the least distortion, with which every solve begins,
    and the exact proof of the result are not interrupted.

    Options of `solve`: ``solver``, a CVXPY solver for the search's linear programs (HiGHS, called
    directly, if left out), and ``solver_options``, a mapping of its options. The result of an
    inaccurate solver is proved as well; the gap is then wider.

    A candidate for `check` is a channel, whose value is its epsilon at this delta; or a
    distribution that is claimed to be the worst source, whose value is the least epsilon for this
    source alone.

    Examples
    --------
    HAMMING Table I at D = 0.2, and its Class III set a at D = 0.3:

    >>> from cvxleak.local_dp import MinLocalDP
    >>> table = [0.7, 0.15, 0.06, 0.04, 0.03, 0.02]
    >>> print(MinLocalDP([table], 0.2).solve())
    local DP: 2.677279 to 2.677279 nats (CERTIFIED)
    >>> print(MinLocalDP([table, [0.15, 0.7, *table[2:]]], 0.3).solve())
    local DP: 1.540445 to 1.540445 nats (CERTIFIED)

    Checking a channel and a distribution that were found elsewhere:

    >>> problem = MinLocalDP([[0.5, 0.3, 0.2]], 0.5)
    >>> print(problem.check([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]]))
    feasible; value 0.6931472 nats
    proved optimum: 0 to 0 nats; the candidate falls short by 0.6931472 to 0.6931472
    >>> MinLocalDP([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5]], 0.3).check([0.5, 0.3, 0.2]).feasible
    True
    """

    kind = "local-dp"
    name = "local DP"
    maximize = False
    tolerance = 1e-9
    convex = True

    delta: float

    def __init__(
        self,
        sources: Sources,
        budget: float,
        distortion: Distortion | ArrayLike | None = None,
        *,
        delta: float = 0.0,
    ) -> None:
        costs = self._read(sources, distortion)
        object.__setattr__(self, "budget", read_budget(budget, costs))
        object.__setattr__(self, "delta", real_number(delta, "delta", 0.0, 1.0))

    def to_cvxpy(self, epsilon: float | cp.Parameter) -> cp.Problem:
        """Return, in plain CVXPY, the least worst-case distortion at a given epsilon.

        The problem itself is quasi-convex, not convex: it asks for the smallest epsilon at which
        this program's value is within the budget. The program's variable is ``channel``. With a
        Parameter it is DPP, so that bisection compiles it only once.

        Parameters
        ----------
        epsilon : float or cp.Parameter
            In nats, from 0 to 700.

        Examples
        --------
        >>> import cvxpy as cp
        >>> from cvxleak.local_dp import MinLocalDP
        >>> epsilon = cp.Parameter(nonneg=True, value=1.5)
        >>> problem = MinLocalDP([[0.5, 0.3, 0.2]], 0.3).to_cvxpy(epsilon)
        >>> round(float(problem.solve()), 4)
        0.3086
        """
        return private_program(self.sources, self.costs, epsilon, self.delta)

    def _search(
        self, *, solver: str | None = None, solver_options: Mapping[str, Any] | None = None
    ) -> Search:
        by = LinearSolver(name=solver, options=as_options(solver_options))
        return Once(lambda gap, clock: self._run(replace(by, clock=clock), gap, clock))

    def _run(self, solver: LinearSolver, gap: Gap, clock: Clock) -> tuple[Found, Stopped]:
        costs, least = self.costs, self._least_budget()
        rough = least_distortion_rows(costs.matrix)
        stored = {
            "sources": self.sources.parts_to_list(),
            "distortion": costs.stored,
            "delta": self.delta,
            "budget": self.budget,
        }
        best = Best(prove, stored, self.sources, costs.matrix, rough, gap, clock)
        best.search(self._attempts(costs, gap.absolute, solver, best.meets))
        if best.upper == math.inf and not best.done:
            best.improve(self._blended(rough, upper(least)))
        if best.channel is None:
            raise self._unmet(least)
        price = float(best.price) if 0 < best.upper < math.inf else 0.0
        found = best.found(costs.outputs, {"budget": price}, self._method)
        return found, best.stopped or Stopped.NO_PROGRESS

    @property
    def _method(self) -> str:
        if self.delta > 0:
            return (
                "linear programs that compare pairs of rows, because delta is positive; a search "
                "over epsilon, because at a fixed one the least distortion is linear"
            )
        if self.costs.is_hamming:
            return (
                "linear programs in the diagonal, because for Hamming distortion it decides the "
                "rest of the channel; in whole channels where that leaves a gap"
            )
        return (
            "linear programs along Newton's steps in epsilon, because at a fixed epsilon the least "
            "distortion is linear"
        )

    def _leakage(self, channel: Channel) -> float:
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

    def _away(self, law: Prior) -> dict[str, float]:
        away = distance_from_hull(self.sources, law.probabilities)[0]
        return {"distribution in the sources' hull": away}

    def _attempts(
        self, costs: Costs, tol: float, solver: LinearSolver, meets: Callable[[Array], bool]
    ) -> Iterator[Attempt]:
        sources, budget, d = self.sources, self.budget, costs.matrix
        pure = constant_outputs(sources, d, budget, meets)
        if costs.is_hamming and budget > 0:
            pure = itertools.chain(pure, hamming_attempts(sources, budget, solver))
        pure = itertools.chain(pure, general_attempts(sources, d, budget, tol, solver, meets))
        if self.delta == 0:
            return pure
        return approximate_attempts(sources, d, budget, self.delta, tol, solver, pure)

    def _blended(self, rough: Array, least: float) -> Attempt:
        """Return the channel of least distortion with as much noise as the budget allows."""
        flat = np.full(rough.shape, 1 / rough.shape[1])
        worst = self.worst_distortion(flat)
        share = min((self.budget - least) / max(worst - least, 1e-300), 1.0)
        share *= 1 - 1e-9  # so that rounding does not exceed the budget
        return Attempt([(1 - share) * rough + share * flat], programs=0)


def min_local_dp(
    sources: Sources,
    budget: float,
    distortion: Distortion | ArrayLike | None = None,
    *,
    delta: float = 0.0,
    **options: Any,
) -> Bound:
    """Return the least epsilon at a worst-case distortion: `MinLocalDP(...).solve(...)`.

    Parameters
    ----------
    sources, budget, distortion, delta
        As for `MinLocalDP`.
    **options
        As for `Problem.solve`.

    Examples
    --------
    Four values whose distribution is completely unknown (HAMMING Theorem 1: log 9 at D = 1/4):

    >>> from cvxleak.sources import SourceSet
    >>> from cvxleak.local_dp import min_local_dp
    >>> print(min_local_dp(SourceSet.box([0] * 4, [1] * 4), 0.25))
    local DP: 2.197225 to 2.197225 nats (CERTIFIED)
    """
    problem = MinLocalDP(sources, budget, distortion, delta=delta)
    return problem.solve(**options)
