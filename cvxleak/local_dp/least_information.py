"""`MinInformation`: the least worst-case mutual information at a worst-case distortion."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.clock import Clock
from cvxleak.core.errors import SolverError
from cvxleak.core.validation import Array
from cvxleak.kernel.numbers import upper
from cvxleak.local_dp.general import RowProgram
from cvxleak.local_dp.information_program import Saddle, information_program, saddle_point
from cvxleak.local_dp.information_search import InformationSearch, stored_channel
from cvxleak.local_dp.proof_candidates import flat_channels
from cvxleak.local_dp.statement import BudgetProblem, Sources, distance_from_hull, read_budget
from cvxleak.local_dp.worst_information import worst_information, worst_laws
from cvxleak.model import Channel, Distortion, Prior
from cvxleak.problem import Bound, Gap, Stopped
from cvxleak.problem.problem import Found, Once, Search
from cvxleak.solvers.conic import SOLVERS, as_options, check_solver
from cvxleak.sources import SourceSet

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["MinInformation", "min_information"]

Solved = Callable[[float, Mapping[str, Any], Clock], Saddle]
"""(budget, options of the solver, clock) -> the solver's saddle point."""

ROOMS = (1e-7, 1e-5, 1e-3)
"""Shares of the way to a constant output's distortion that the solver gets at least, in turn."""


@dataclass(frozen=True, eq=False)
class MinInformation(BudgetProblem):
    """The least worst-case I(P;Q) of a channel Q that meets a distortion budget for every source.

    Minimize over Q the maximum over P of I(P;Q), with Q within the distortion budget for every
    source P. A union of convex parts is not replaced by its hull: for a finite set, the maximum is
    over its members. Use `SourceSet.convex_hull` for the hull, for which the leakage can only be
    larger.

    Parameters
    ----------
    sources : SourceSet, Prior, or iterable of distributions
        The possible true distributions.
    budget : float
        D >= 0, in the unit of d; at most 1 for Hamming distortion.
    distortion : Distortion, str or array_like, shape (k, m), optional
        d; Hamming distortion if left out; ``"absolute"`` and ``"squared"`` compare the outcomes'
        labels.

    Raises
    ------
    ValidationError
        Arguments that are invalid or do not match each other.

    Notes
    -----
    HAMMING (20) to (22). Information is convex in Q and concave in P, so for a convex set minimum
    and maximum can be exchanged (22); the paper's remark that any set may be replaced by its hull
    is right for the budget, not for the information. It is one convex program: max_P I(P;Q) over a
    convex part is min over output distributions t of max_P sum_x P(x) D(Q_x || t).

    The bound is an approximate saddle point with its gap: `upper` is the worst-case information of
    the `witness`, a `Channel` that meets the budget exactly, as stored; `lower` is the least
    information of any such channel against the sources in ``stats["worst_sources"]``, mixed with
    ``stats["weights"]`` (one per convex part). ``shadow_prices["budget"]`` is the derivative in D.

    Options of `solve`: ``solver``, any CVXPY solver with exponential cones (CLARABEL if left out);
    ``solver_options``, a mapping of its options; and ``verbose``, whether it prints. CLARABEL and
    SCS are stopped at the time limit, other solvers are not started after it; the gap is then wide,
    and the lower bound 0 if nothing was proved. The linear programs for the least distortion and
    for the best constant output, with which every solve begins, and the exact proof of the result
    are not interrupted. `solve` raises `InfeasibleError` if no channel meets the budget.

    A candidate for `check` is a channel, whose value is its largest information over the set; or a
    distribution that is claimed to be the worst source, whose value is the least information for
    this source alone.

    Examples
    --------
    Two point masses: with either alone the output may ignore the input, and even on their hull only
    if both may be wrong half of the time:

    >>> from cvxleak.sources import SourceSet
    >>> from cvxleak.local_dp import MinInformation
    >>> sure = SourceSet([[1.0, 0.0], [0.0, 1.0]])
    >>> bound = MinInformation(sure.convex_hull(), 0.1).solve()
    >>> print(bound)  # log 2 - h(0.1), HAMMING Lemma 5
    information: 0.3680642 to 0.3680642 nats (CERTIFIED)
    >>> MinInformation(sure, 0.1).solve().upper < 1e-7
    True
    >>> check = MinInformation([[0.5, 0.5]], 0.1).check([[0.8, 0.2], [0.2, 0.8]])
    >>> check.feasible, round(check.value, 4)
    (False, 0.1927)
    """

    kind = "min-information"
    name = "information"
    maximize = False
    tolerance = 1e-7
    convex = True

    def __init__(
        self,
        sources: Sources,
        budget: float,
        distortion: Distortion | ArrayLike | None = None,
    ) -> None:
        costs = self._read(sources, distortion)
        object.__setattr__(self, "budget", read_budget(budget, costs))

    def to_cvxpy(self) -> cp.Problem:
        """Return the problem in plain CVXPY, with the channel as its variable ``channel``.

        Examples
        --------
        >>> from cvxleak.local_dp import MinInformation
        >>> problem = MinInformation([[0.5, 0.5]], 0.1).to_cvxpy()
        >>> round(float(problem.solve()), 5)
        0.36806
        """
        return information_program(self.sources, self.costs, self.budget).problem

    def _search(
        self,
        *,
        solver: str | None = None,
        solver_options: Mapping[str, Any] | None = None,
        verbose: bool = False,
    ) -> Search:
        name = check_solver(solver) or "CLARABEL"
        given = {"verbose": verbose, **as_options(solver_options)}

        def solved(budget: float, options: Mapping[str, Any], clock: Clock) -> Saddle:
            return saddle_point(self.sources, self.costs, budget, name, {**options, **given}, clock)

        sharp = SOLVERS[name].sharp if name in SOLVERS else {}
        return Once(partial(self._run, solved, sharp, name))

    def _run(
        self, solved: Solved, tight: Mapping[str, Any], name: str, gap: Gap, clock: Clock
    ) -> tuple[Found, Stopped]:
        costs, least = self.costs, self._least_budget()
        best = RowProgram(self.sources, costs.matrix).at(1.0)
        law = best.least / best.least.sum()
        search = InformationSearch(self.sources, costs, self.budget, law)
        if any(map(search.take_if_flat, flat_channels(law, self.sources.size))):
            method = "an output that ignores the input, because it is within the budget"
            return search.found(costs.outputs, method), Stopped.NO_PROGRESS
        # At the least distortion itself the channels have no interior; with more room they have.
        rounds: list[tuple[Mapping[str, Any], int, float]] = [({}, 100, ROOMS[0])]
        if tight:
            rounds.append((tight, 1_000, ROOMS[0]))
        rounds += [({}, 100, room) for room in ROOMS[1:]]
        failure: SolverError | None = None
        above = upper(least)
        for options, iterations, share in rounds:
            if share > ROOMS[0] and search.channel is not None:
                break
            room = max(self.budget, above + share * max(best.value - above, 0.0))
            try:
                saddle = solved(room, options, clock)
            except SolverError as error:
                failure = failure or error
                continue
            search.improve(saddle, iterations)
            if gap.closed(search.lower, search.upper) or clock.late:
                break
        if search.channel is None:
            if failure is not None and not clock.late:
                raise failure
            search.take_rough()
        if search.channel is None:
            raise self._unmet(least)
        stopped = Stopped.at_limit(clock) if clock.late else Stopped.NO_PROGRESS
        method = (
            f"a conic program by {name}, because the least information is convex in the channel "
            "and concave in the source; its saddle point is repaired"
        )
        return search.found(costs.outputs, method), stopped

    def _stored(self, rows: Array) -> dict[str, Any]:
        outputs = [law @ rows for _, law in worst_laws(self.sources, self._labeled(rows))]
        return stored_channel(self.sources, self.costs, rows, np.array(outputs))

    def _leakage(self, channel: Channel) -> float:
        return worst_information(self.sources, channel)

    def _away(self, law: Prior) -> dict[str, float]:
        away = min(
            distance_from_hull(SourceSet._of([part], self.sources.labels), law.probabilities)[0]
            for part in self.sources.parts
        )
        return {"distribution in the sources": away}


def min_information(
    sources: Sources,
    budget: float,
    distortion: Distortion | ArrayLike | None = None,
    **options: Any,
) -> Bound:
    """Return the least worst-case information: `MinInformation(...).solve(...)`.

    Parameters
    ----------
    sources, budget, distortion
        As for `MinInformation`.
    **options
        As for `Problem.solve`, and the solver's, as `MinInformation` says.

    Examples
    --------
    >>> from cvxleak.local_dp import min_information, min_local_dp
    >>> table = [[0.7, 0.15, 0.06, 0.04, 0.03, 0.02]]
    >>> bool(min_information(table, 0.1).upper < min_local_dp(table, 0.1).lower)
    True
    """
    return MinInformation(sources, budget, distortion).solve(**options)
