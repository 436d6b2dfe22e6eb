"""`MinInformation`: the least worst-case mutual information at a worst-case distortion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak._clock import Clock
from cvxleak._validation import real_number
from cvxleak.certificates import Certificate
from cvxleak.certificates.rationals import float_above, rational
from cvxleak.errors import SolverError
from cvxleak.model import Channel, Distortion, Prior, SourceSet, as_prior
from cvxleak.problems.check import Check
from cvxleak.problems.local_dp.attempts import flat_channels
from cvxleak.problems.local_dp.general import RowProgram
from cvxleak.problems.local_dp.information_program import information_program, saddle_point
from cvxleak.problems.local_dp.information_search import InformationSearch
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
)
from cvxleak.problems.local_dp.worst_information import worst_information
from cvxleak.result import Bound, Stopped

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["MinInformation", "min_information"]

ROOMS = (1e-7, 1e-5, 1e-3)
"""Shares of the way to a constant output's distortion that the solver gets at least, in turn."""

TIGHT = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
"""What CLARABEL is asked for where its usual tolerances leave too wide a gap."""


@dataclass(frozen=True)
class MinInformation:
    """The problem: the least I(P;Q), against the worst source, of a channel that is useful for all.

    min over Q of max over P of I(P;Q), Q within the distortion budget for every source P. A union
    of convex parts is taken as given: over a finite set the largest of the single values counts.
    `SourceSet.convex_hull` makes it the hull instead, which can only leak more.

    Parameters
    ----------
    sources : SourceSet, Prior, or iterable of laws
        What is known about the true law.
    distortion_budget : float
        D >= 0, in the unit of d; at most 1 for Hamming distortion.
    distortion : Distortion or array_like, shape (k, m), optional
        d; Hamming distortion if left out.

    Raises
    ------
    ValidationError
        Arguments that are not valid or do not fit.

    Notes
    -----
    HAMMING (20) to (22). Information is convex in Q and concave in P, so for a convex set minimum
    and maximum can be exchanged (22); the paper's remark that any set may be replaced by its hull
    is right for the budget, not for the information. It is one convex program: max_P I(P;Q) over a
    convex part is min over output laws t of max_P sum_x P(x) D(Q_x || t).

    Examples
    --------
    Two point masses: with either alone the output may ignore the input, and even on their hull only
    if both may be wrong half of the time:

    >>> from cvxleak.model import SourceSet
    >>> from cvxleak.problems import MinInformation
    >>> sure = SourceSet([[1.0, 0.0], [0.0, 1.0]])
    >>> bound = MinInformation(sure.convex_hull(), 0.1).solve()
    >>> print(bound)  # log 2 - h(.1), HAMMING Lemma 5
    information: 0.3680642 to 0.3680642 nats (CERTIFIED)
    >>> MinInformation(sure, 0.1).solve().upper < 1e-7
    True
    """

    sources: SourceSet
    distortion_budget: float
    distortion: Distortion | None

    def __init__(
        self,
        sources: Sources,
        distortion_budget: float,
        distortion: Distortion | ArrayLike | None = None,
    ) -> None:
        known = read_sources(sources)
        costs = read_costs(distortion, known)
        given = None if distortion is None else labeled_distortion(costs, known)
        object.__setattr__(self, "sources", known)
        object.__setattr__(self, "distortion_budget", read_budget(distortion_budget, costs))
        object.__setattr__(self, "distortion", given)

    def solve(
        self,
        *,
        tol: float = 1e-7,
        time_limit: float | None = None,
        solver: str = "CLARABEL",
        solver_options: Mapping[str, Any] | None = None,
        verbose: bool = False,
    ) -> Bound:
        """Return the bracket of the least worst-case information, in nats.

        Parameters
        ----------
        tol : float
            The gap to reach, in nats.
        time_limit : float, optional
            Seconds after which the solver is stopped or not started (CLARABEL and SCS stop while
            they run); the bracket is then wide, and its lower end 0 if nothing was proved. The
            linear program for the best constant output, with which every solve begins, and the
            exact proof of what was found by then come on top.
        solver : str
            Any conic solver of CVXPY with exponential cones.
        solver_options : mapping, optional
            What it gets beside.
        verbose : bool
            Whether it prints.

        Returns
        -------
        Bound
            A saddle point with its gap: `upper` is the worst-case information of the `witness`, a
            `Channel` that meets the budget exactly, as stored; `lower` is what no such channel
            avoids against the sources in ``stats["worst_sources"]``, mixed with
            ``stats["weights"]`` (one per convex part). ``shadow_prices["distortion_budget"]`` is
            the derivative in D.

        Raises
        ------
        InfeasibleError
            No channel meets the budget.
        ValidationError
            An option out of range.
        SolverError
            The solver came to no end.

        Examples
        --------
        >>> from cvxleak.problems import MinInformation
        >>> bound = MinInformation([[0.7, 0.2, 0.1], [0.6, 0.2, 0.2]], 0.2).solve()
        >>> bound.gap < 1e-7
        True
        """
        tol = real_number(tol, "tol", 0.0)
        clock = Clock(time_limit)
        costs = read_costs(self.distortion, self.sources)
        least = least_budget(self.sources, costs)
        if rational(self.distortion_budget) < least:
            raise unmet_budget(self.distortion_budget, least)
        best = RowProgram(self.sources, costs.matrix).at(1.0)
        law = best.least / best.least.sum()
        search = InformationSearch(self.sources, costs, self.distortion_budget, law)
        if any(map(search.take_if_flat, flat_channels(law, self.sources.size))):
            return self._bound(search, costs, tol, clock)
        given = dict(solver_options or {})
        # At the least distortion itself the channels have no interior; with more room they have.
        rounds = [(given, 100, ROOMS[0])]
        if solver == "CLARABEL":
            rounds.append((TIGHT | given, 1_000, ROOMS[0]))
        rounds += [(given, 100, room) for room in ROOMS[1:]]
        failure: SolverError | None = None
        for options, iterations, share in rounds:
            if share > ROOMS[0] and search.channel is not None:
                break
            above = float_above(least)
            room = max(self.distortion_budget, above + share * max(best.value - above, 0.0))
            try:
                saddle = saddle_point(self.sources, costs, room, solver, options, verbose, clock)
            except SolverError as error:
                failure = failure or error
                continue
            search.improve(saddle, iterations)
            if search.upper - search.lower <= tol or clock.late:
                break
        if search.channel is None:
            if failure is not None and not clock.late:
                raise failure
            search.take_rough()
        if search.channel is None:
            raise unmet_budget(self.distortion_budget, least)
        return self._bound(search, costs, tol, clock)

    def check(
        self, candidate: Channel | Prior | ArrayLike, *, bound: Bound | None = None, **options: Any
    ) -> Check:
        """Judge a channel, or a law that is claimed to be the worst source.

        Parameters
        ----------
        candidate : Channel or array_like of shape (k, m), or Prior or array_like of shape (k,)
            A channel's value is its largest information over the set; a law's is the least
            information for this law alone.
        bound : Bound, optional
            An earlier result of `solve`; computed with `options` if left out.

        Raises
        ------
        ValidationError
            A shape that does not fit, or entries that are not finite.

        Examples
        --------
        >>> from cvxleak.problems import MinInformation
        >>> check = MinInformation([[0.5, 0.5]], 0.1).check([[0.8, 0.2], [0.2, 0.8]])
        >>> check.feasible, round(check.value, 4)
        (False, 0.1927)
        """
        bound = self.solve(**options) if bound is None else bound.to("nats")
        costs = read_costs(self.distortion, self.sources)
        given: Any = candidate
        if isinstance(given, Prior) or (not isinstance(given, Channel) and np.ndim(given) == 1):
            law = as_prior(given, self.sources.size, "candidate", self.sources.labels)
            alone = MinInformation([law], self.distortion_budget, self.distortion).solve()
            away = min(
                distance_from_hull(SourceSet._of([part], self.sources.labels), law.probabilities)[0]
                for part in self.sources.parts
            )
            return Check(alone.lower, {"law in the sources": away}, bound, maximize=True)
        channel, violations = candidate_channel(candidate, self.sources, costs)
        cost = (channel.matrix * costs.matrix).sum(axis=1)
        over = self.sources.worst(cost)[0] - self.distortion_budget
        violations["worst-case distortion within the budget"] = max(0.0, over)
        return Check(worst_information(self.sources, channel), violations, bound, maximize=False)

    def to_cvxpy(self) -> cp.Problem:
        """Return the problem in plain CVXPY, with the channel as its variable ``channel``.

        Examples
        --------
        >>> from cvxleak.problems import MinInformation
        >>> problem = MinInformation([[0.5, 0.5]], 0.1).to_cvxpy()
        >>> round(float(problem.solve()), 5)
        0.36806
        """
        costs = read_costs(self.distortion, self.sources)
        return information_program(self.sources, costs, self.distortion_budget).problem

    def _bound(self, search: InformationSearch, costs: Costs, tol: float, clock: Clock) -> Bound:
        channel = np.asarray(search.channel)
        ends = search.lower, search.upper
        stopped = Stopped.TIME_LIMIT if clock.late else Stopped.NO_PROGRESS
        if ends[1] - ends[0] <= tol:
            stopped = Stopped.TOLERANCE
        certificate = Certificate(
            "min-information", search.problem, *ends, search.witness, search.proof
        )
        saddle = search.saddle
        laws = [] if saddle is None else saddle.laws
        sums = channel.sum(axis=1, keepdims=True)
        return Bound.proved(
            "information",
            *ends,
            tol=0.0,
            absolute=tol,
            witness=Channel(
                channel if np.allclose(sums, 1.0) else channel / sums,
                self.sources.labels,
                costs.outputs,
            ),
            certificate=certificate,
            shadow_prices={"distortion_budget": 0.0 if saddle is None else -saddle.price},
            stats={
                "seconds": clock.seconds,
                "stopped": stopped,
                "worst_sources": tuple(
                    Prior(law.law / law.law.sum(), self.sources.labels) for law in laws
                ),
                "weights": () if saddle is None else tuple(saddle.weights.tolist()),
            },
        )


def min_information(
    sources: Sources,
    distortion_budget: float,
    distortion: Distortion | ArrayLike | None = None,
    *,
    tol: float = 1e-7,
    time_limit: float | None = None,
    solver: str = "CLARABEL",
    solver_options: Mapping[str, Any] | None = None,
    verbose: bool = False,
) -> Bound:
    """Return the least worst-case information: `MinInformation(...).solve(...)`.

    Parameters
    ----------
    sources, distortion_budget, distortion
        As for `MinInformation`.
    tol, time_limit, solver, solver_options, verbose
        As for `MinInformation.solve`.

    Examples
    --------
    >>> from cvxleak.problems.local_dp import min_information, min_local_dp
    >>> table = [[0.7, 0.15, 0.06, 0.04, 0.03, 0.02]]
    >>> bool(min_information(table, 0.1).upper < min_local_dp(table, 0.1).lower)
    True
    """
    return MinInformation(sources, distortion_budget, distortion).solve(
        tol=tol,
        time_limit=time_limit,
        solver=solver,
        solver_options=solver_options,
        verbose=verbose,
    )
