"""`table_privacy`: differential privacy of the cell of one person, given a whole table."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.clock import WORK_LIMIT, Clock, Progress, check_progress
from cvxleak.core.errors import SolveInterrupted, ValidationError
from cvxleak.core.validation import (
    Array,
    frozen_array,
    in_order,
    instance,
    plain_array,
    real_number,
    short,
)
from cvxleak.core.value import Value
from cvxleak.problem import Bound, Stopped
from cvxleak.proofs.exact import LARGEST_EXPONENT
from cvxleak.tables.cases import Case, TableMove
from cvxleak.tables.concentrated import Rho
from cvxleak.tables.grid import GridLosses
from cvxleak.tables.keyed import Between
from cvxleak.tables.losses import Book, Losses
from cvxleak.tables.moves import Moves
from cvxleak.tables.release import TableRelease

__all__ = ["TablePrivacy", "TradeOffEnds", "table_privacy"]

TOLERANCE = 1e-3
"""Relative gap up to which a bound is CERTIFIED."""

WITNESSES = 64
"""Most cases for which a table is sought."""

ROUNDING = 1e-12
"""Largest error of floats when a curve is read off lines."""

MOST_KNOTS = 1 << 10
"""Most levels at which the profile of one move bends that are added to those of the curve."""

FAR = 64.0
"""The largest of the levels of epsilon from which the trade-off curve is read."""

ENOUGH = 1e-9
"""Gap of the curve, and of its profile, below which it is not narrowed any more."""

CURVE = 128
"""Most levels, besides those at which the profile of one move bends."""


Point = tuple[float, float, int | None]
"""Bounds on the largest H_c at a level, and the case that attains the lower one."""


class TradeOffEnds(NamedTuple):
    """Lower and upper bounds on a trade-off curve, both proved.

    Examples
    --------
    >>> from cvxleak.tables import RandomRounding, Table, TableRelease, table_privacy
    >>> table = Table({"answer": ["no", "yes"]}, people=10, margins=False)
    >>> ends = table_privacy(TableRelease(table, RandomRounding(3))).trade_off([0.1])
    >>> ends.lower.round(4), ends.upper.round(4)
    (array([0.5165]), array([0.5167]))
    """

    lower: Array
    upper: Array


@dataclass(frozen=True, eq=False)
class TablePrivacy(Value):
    """Differential privacy of the cell of one person, given a whole table; see `table_privacy`.

    P and R are the distributions of the published table if the person is in the first or in the
    second of two cells. All bounds cover both orders of the two.

    Attributes
    ----------
    release : TableRelease
    move : tuple of two int or None
        The two cells, by their places in `Table.alphabet`; None for all pairs.
    this_table : bool
        Whether the true counts are those of the table, or the worst possible ones.

    Examples
    --------
    >>> from cvxleak.model import Gaussian
    >>> from cvxleak.tables import Table, TableRelease, table_privacy
    >>> table = Table({"sex": ["f", "m"], "answer": ["no", "yes"]}, people=1_000_000)
    >>> privacy = table_privacy(TableRelease(table, Gaussian(sigma=10)))
    >>> print(privacy.profile(0.5))
    delta: 0.00237... to 0.00237... probability (CERTIFIED)
    >>> print(privacy.zcdp())
    rho: 0.03 to 0.03 nats (CERTIFIED)
    """

    release: TableRelease
    move: tuple[int, int] | None
    this_table: bool

    @cached_property
    def _book(self) -> Book:
        return Book()

    @cached_property
    def _moves(self) -> Moves:
        return Moves(self.release, self.move, self.this_table, self._book)

    @property
    def _cases(self) -> list[Case]:
        return self._moves.cases

    @cached_property
    def _losses(self) -> dict[int, Losses | GridLosses | Between]:
        return {}

    @cached_property
    def _coarse(self) -> dict[int, GridLosses]:
        return {}

    @cached_property
    def _found(self) -> dict[int, TableMove | None]:
        return {}

    def _of(self, place: int) -> Losses | GridLosses | Between:
        if place not in self._losses:
            case = self._cases[place]
            found = self._book.losses(case.changes)
            if case.below is not None:
                found = Between(self._book.losses(case.below), found)
            self._losses[place] = found
        return self._losses[place]

    def _above(self, place: int, epsilon: float) -> float:
        """Return an upper bound on a case's H_c, from a coarse grid if there are many cases."""
        if len(self._cases) <= 2:
            return 1.0
        if place not in self._coarse:
            self._coarse[place] = self._book.coarse(self._cases[place].changes)
        return self._coarse[place].delta(epsilon)[1]

    def _witness(self, place: int) -> TableMove | None:
        if place not in self._found and len(self._found) < WITNESSES:
            self._found[place] = self._cases[place].witness()
        return self._found.get(place)

    def _largest(
        self,
        coarse: Callable[[int], float],
        fine: Callable[[int, float], tuple[float, float]],
        clock: Clock,
        progress: Progress | None = None,
        *,
        lower: float = 0.0,
        most: float = 1.0,
        slack: float = 0.0,
    ) -> tuple[float, float, int | None, Stopped | None]:
        """Return bounds on the largest value of all cases, and the case that attains the lower.

        And why the search ended, if it ended before all cases were examined. `coarse` bounds the
        value of a case from above, and `fine`, which is given that bound, from both sides. A case
        that exceeds the others by at most `slack` need not be examined.
        """
        upper, rest = 0.0, most  # cases that are still to be examined are below `rest`
        best, stopped, unseen = None, None, True  # nothing is known about some moves or cases
        above: list[float] = []
        try:
            self._moves.collect(Clock(clock.share(2)), progress)  # half: there is more to do
            for place in range(len(self._cases)):
                if place and clock.late:
                    break
                above.append(coarse(place))
                if progress is not None:
                    progress(lower, rest, place + 1)
            unseen = len(above) < len(self._cases) or not self._moves.complete
            for done, place in enumerate(
                sorted(range(len(above)), key=lambda place: -above[place])
            ):
                rest = above[place]
                if rest <= lower + slack:
                    break
                if progress is not None:
                    progress(lower, most if unseen else max(upper, rest), len(above) + done)
                if done and clock.late:
                    stopped = Stopped.at_limit(clock)
                    break
                low, high = fine(place, rest)
                upper = max(upper, min(high, rest))
                if low > lower and self._witness(place) is not None:
                    lower, best = low, place
            else:
                rest = 0.0
            if unseen:
                stopped = Stopped.at_limit(clock)
        except KeyboardInterrupt:
            stopped = Stopped.INTERRUPTED
        return lower, max(lower, upper, most if unseen else rest), best, stopped

    def _delta(
        self, epsilon: float, clock: Clock, progress: Progress | None = None, slack: float = 0.0
    ) -> tuple[float, float, int | None, Stopped | None]:
        """Return bounds on the largest H_c at c = e^epsilon, as `_largest` does."""
        return self._largest(
            lambda place: self._above(place, epsilon),
            lambda place, _: self._of(place).delta(epsilon),
            clock,
            progress,
            lower=max(0.0, -math.expm1(epsilon)),
            slack=slack,
        )

    def profile(
        self,
        epsilon: float,
        *,
        time_limit: float | None = None,
        work_limit: float | None = WORK_LIMIT,
        progress: Progress | None = None,
    ) -> Bound:
        """Bound the least delta for which (epsilon, delta)-differential privacy holds.

        It is the largest P(S) - e^epsilon R(S) over events S. If it is 0, the witness is None.

        Parameters
        ----------
        epsilon : float
            In nats, from 0 to 1e4.
        time_limit, work_limit : float or None
            Seconds, and multiplications (`Problem.solve`), after which no further move is examined,
            including those that `table_privacy` left open. Both bounds are valid in that case, too,
            and after Ctrl-C, which raises `cvxleak.core.SolveInterrupted` with the bounds reached.
        progress : callable, optional
            Called as progress(lower, upper, moves so far): while the moves are sorted by what they
            change, while each kind is bounded on a coarse grid, and then the worst on a fine one.

        Returns
        -------
        Bound
            A probability. `lower` is attained by the move and the true counts in `witness`, a
            `TableMove`; `upper` holds for all moves and counts in question.

        Raises
        ------
        ValidationError
            An epsilon out of range.
        """
        check_progress(progress)
        level = real_number(epsilon, "epsilon", 0.0, LARGEST_EXPONENT)
        clock = Clock(time_limit, work_limit)
        lower, upper, place, stopped = self._delta(level, clock, progress)
        return self._bound("delta", lower, upper, place, stopped, clock, "probability")

    def _bound(
        self,
        name: str,
        lower: float,
        upper: float,
        place: int | None,
        stopped: Stopped | None,
        clock: Clock,
        unit: str,
    ) -> Bound:
        """Return the bounds reached; after Ctrl-C raise them."""
        stats = {
            "method": "the worst of all moves of one person to another cell, kind by kind, because "
            "those that change the published numbers alike have the same bounds",
            "seconds": clock.seconds,
            "cases": len(self._cases),
        }
        bound = Bound.proved(
            name,
            lower,
            upper,
            tol=TOLERANCE,
            unit=unit,
            witness=None if place is None else self._witness(place),
            stats=stats if stopped is None else {**stats, "stopped": stopped},
        )
        if stopped is Stopped.INTERRUPTED:
            raise SolveInterrupted(bound)
        return bound

    def trade_off(
        self,
        false_alarms: ArrayLike,
        *,
        time_limit: float | None = None,
        work_limit: float | None = WORK_LIMIT,
        progress: Progress | None = None,
    ) -> TradeOffEnds:
        """Bound the trade-off curve: the least miss probability at given false-alarm probabilities.

        It is the largest convex curve f below T(P, R) and T(R, P) for all P and R in question: the
        table is f-differentially private. T(P, R)(a) is `cvxleak.measures.trade_off`.

        Parameters
        ----------
        false_alarms : array_like
            Probabilities a, of any shape.
        time_limit, work_limit, progress
            As for `profile`: progress(lower, upper, levels so far) has the bounds of the curve
            where they are furthest apart.

        Returns
        -------
        TradeOffEnds
            Both of the shape of `false_alarms`.

        Raises
        ------
        ValidationError
            False alarms out of [0, 1].
        SolveInterrupted
            Ctrl-C; its ``bound`` has the bounds reached.

        Notes
        -----
        f(a) is the largest of 1 - delta(e) - e^e a and e^-e (1 - delta(e) - a) over e >= 0 (Dong,
        Roth and Su, 2022, Proposition 2.12). Any e gives a lower bound; between two levels,
        convexity of the profile gives the upper one. Levels are added where the two are apart, up
        to 128, until the gap is 0.1 % or 1e-9.
        """
        check_progress(progress)
        dimensions = plain_array(false_alarms, "false_alarms").ndim
        rates = np.asarray(frozen_array(false_alarms, "false_alarms", dimensions), dtype=float)
        if not ((rates >= 0) & (rates <= 1)).all():
            wrong = rates[~((rates >= 0) & (rates <= 1))][0]
            raise ValidationError(f"false_alarms: found {float(wrong)!r}; they are in [0, 1]")
        flat = rates.ravel()
        clock, known = Clock(time_limit, work_limit), dict[float, Point]()
        try:
            self._narrow(flat, known, clock, progress)
            interrupted = False
        except KeyboardInterrupt:
            interrupted = True
        lower, upper, _ = self._read(known or {0.0: (0.0, 1.0, None)}, flat)
        upper = np.clip(upper, lower, 1 - flat)
        ends = TradeOffEnds(lower.reshape(rates.shape), upper.reshape(rates.shape))
        if interrupted:
            raise SolveInterrupted(ends)
        return ends

    def _narrow(
        self, rates: Array, known: dict[float, Point], clock: Clock, progress: Progress | None
    ) -> None:
        """Add the levels that narrow the bounds on the curve at these rates."""
        new, ends = [0.0, 1.0], (0.0, 1.0)
        self._moves.collect(Clock(clock.share(2)), progress)
        if self._moves.complete and len(self._cases) <= 2:
            # One move, in both orders: the levels at which its profile bends.
            knots = {abs(at) for place in range(len(self._cases)) for at in self._of(place).knots}
            new += sorted(at for at in knots if at <= FAR) if len(knots) <= MOST_KNOTS else []
        most = len(new) + CURVE
        while new:
            for level in new:
                if known and clock.late:
                    return
                if progress is not None:
                    progress(*ends, len(known))
                known[level] = self._curve(level, clock)
            lower, upper, between = self._read(known, rates)
            wide = upper - lower
            ends = (float(lower[wide.argmax()]), float(upper[wide.argmax()])) if len(wide) else ends
            new = [level for level in between if level not in known][: most - len(known)]

    def _read(
        self, known: Mapping[float, Point], rates: Array
    ) -> tuple[Array, Array, Iterable[float]]:
        """Return bounds on the curve from its levels, and further levels that would narrow them.

        These are where the curve may be largest, those with the largest gap first.
        """
        logs = np.array(sorted({*known, *(-level for level in known)}))
        # Two levels with the same e^level in floats would leave no room between them.
        logs = logs[np.diff(logs, prepend=-math.inf) > ROUNDING]
        lower, tops, found = self._lines([known[abs(log)] for log in logs.tolist()], logs, rates)
        upper = np.minimum(tops.max(axis=0, initial=0.0), 1 - rates)
        wide = upper - np.maximum(lower, found) - np.maximum(TOLERANCE * upper, ENOUGH)
        ends = np.array([-2 * logs[-1], *logs, 2 * logs[-1]])
        between = np.abs(ends[:-1] + ends[1:])[tops.argmax(axis=0)] / 2
        between = np.where(tops.argmax(axis=0) % len(logs) == 0, 2 * logs[-1], between)
        open_ = np.argsort(-wide)[: np.count_nonzero(wide > 0)]
        return lower, upper, dict.fromkeys(min(level, FAR) for level in between[open_].tolist())

    def _lines(
        self, known: Sequence[Point], logs: Array, rates: Array
    ) -> tuple[Array, Array, Array]:
        """Return lower bounds on the curve, upper bounds between levels, and those at the levels.

        f(a) is the largest 1 - H_c - c a over c >= 0, which is concave in c: between two levels it
        is below the lines through the two before and the two after.
        """
        c = np.exp(logs)
        low, high = np.array([(low, high) for low, high, _ in known]).T
        # H_{1/c} of the two distributions is 1 - (1 - H_c) / c of the exchanged ones.
        low, high = (np.where(logs < 0, 1 - c * (1 - one), one) for one in (low, high))
        c, low, high = np.append(0.0, c), np.append(1.0, low), np.append(1.0, high)
        least = 1 - high[:, None] - np.outer(c, rates)
        most = 1 - low[:, None] - np.outer(c, rates)
        place = known[-1][2]
        certain = 0.0 if place is None else self._of(place).certain
        steps = np.diff(c)[:, None]
        rise = np.full_like(steps * most[1:], math.inf)
        fall = rise.copy()
        rise[1:] = np.maximum((most[1:-1] - least[:-2]) / steps[:-1], 0)
        fall[:-1] = np.maximum((most[1:-1] - least[2:]) / steps[1:], 0)
        # The point where the two lines meet; the first and the last interval have only one line.
        with np.errstate(invalid="ignore", divide="ignore"):
            at = np.clip((most[1:] - most[:-1] + fall * steps) / (rise + fall), 0, steps)
            at[rise + fall == 0] = 0
            tops = np.minimum(most[:-1] + rise * at, most[1:] + fall * (steps - at))
        tops[0] = (most[1:] + fall * steps)[0]
        tops[-1] = (most[:-1] + rise * steps)[-1]
        tops += ROUNDING * (1 + np.abs(most[1:]) + np.abs(most[:-1]))
        # H_c is nowhere below the probability P of what R excludes.
        tops = np.vstack([tops, np.full_like(rates, math.inf)])
        tops = np.minimum(tops, 1 - certain - np.outer(c, rates) + ROUNDING)
        return np.clip(least.max(axis=0) - ROUNDING, 0.0, 1.0), tops, most.max(axis=0)

    @cached_property
    def _known(self) -> dict[float, Point]:
        return {}

    def _curve(self, level: float, clock: Clock) -> Point:
        """Return bounds on the largest H_c at a level, computed once."""
        if level in self._known:
            return self._known[level]
        lower, upper, place, stopped = self._delta(level, clock, slack=ENOUGH)
        if stopped is Stopped.INTERRUPTED:
            raise KeyboardInterrupt
        if stopped is None:
            self._known[level] = lower, upper, place
        return lower, upper, place

    def zcdp(
        self,
        *,
        time_limit: float | None = None,
        work_limit: float | None = WORK_LIMIT,
        progress: Progress | None = None,
    ) -> Bound:
        """Bound the least rho for which the table is rho-zCDP; infinite if P or R excludes a value.

        It is the largest D_alpha(P || R) / alpha over orders alpha > 1.

        Parameters
        ----------
        time_limit, work_limit, progress
            As for `profile`.

        Returns
        -------
        Bound
            In nats, with a witness as that of `profile`.

        Raises
        ------
        SolveInterrupted
            Ctrl-C; its ``bound`` has the bounds reached.
        """
        check_progress(progress)
        clock, rho = Clock(time_limit, work_limit), Rho(self._book)
        lower, upper, place, stopped = self._largest(
            lambda place: rho.above(self._cases[place]),
            lambda place, above: rho.of(self._cases[place], above),
            clock,
            progress,
            most=math.inf,
        )
        return self._bound("rho", lower, upper, place, stopped, clock, "nats")

    def __repr__(self) -> str:
        labels = self.release.table.alphabet
        who = "any move" if self.move is None else " to ".join(repr(labels[i]) for i in self.move)
        which = "its counts" if self.this_table else "any counts"
        return f"TablePrivacy({self.release!r}, {who}, {which})"


def table_privacy(
    release: TableRelease,
    move: tuple[Any, Any] | None = None,
    *,
    this_table: bool = False,
    time_limit: float | None = None,
    work_limit: float | None = WORK_LIMIT,
    progress: Progress | None = None,
) -> TablePrivacy:
    """Bound how well a whole table distinguishes two cells of one person: differential privacy.

    As in differential privacy, the cells of all other people are known. The person is in cell a or
    in cell b, and only the numbers that count exactly one of the two cells change their
    distributions. The effort does not depend on the rest of the table, so that a million people and
    hundreds of cells take seconds.

    Parameters
    ----------
    release : TableRelease
        The noise may be independent from number to number, or linked by keys. For linked numbers
        the exact joint distribution is used if it is small enough. Otherwise the lower bound is
        that of the numbers whose keys are independent, and the upper bound assumes that the keys of
        other cells are known. With several margins it is far from tight; it is 1 for large numbers
        of keys in a 2 x 2 table, some with empty cells, and those with all margins of three
        variables (:doc:`/theory/tables`).

        If the maximum is over all tables, and more than 1,024 differ in what they tell, as with two
        variables, the upper bound is 1. The lower bound is attained by a move that leaves a cell
        empty, and is near 1 at every epsilon; rho is infinite.
    move : tuple of two cells, optional
        Two cells from `Table.alphabet` ("outside" included, if the table has it). The maximum over
        all pairs if left out.
    this_table : bool
        If true, the true counts are those of the release's table, and the person who moves is in
        one of its cells. If false, the maximum is over all tables of n people, which is
        differential privacy.
    time_limit, work_limit : float or None
        If keys link numbers: seconds, and multiplications (`Problem.solve`), after which no further
        move is examined here. `profile` and the other methods continue with those that are left. As
        long as any are left, the upper bounds are the trivial ones.
    progress : callable, optional
        If keys link numbers, called as progress(0.0, 1.0, moves so far) while their joint
        distributions are computed.

    Returns
    -------
    TablePrivacy
        The (epsilon, delta) profile, the trade-off curve of f-differential privacy and the rho of
        zero-concentrated differential privacy, each with lower and upper bounds, both proved.

    Raises
    ------
    ValidationError
        Too many pairs of cells to enumerate; cells that do not exist or are equal; with
        `this_table`, no person in the first cell.
    SolveInterrupted
        Ctrl-C; its ``bound`` is the TablePrivacy with the moves examined so far.

    Notes
    -----
    For random rounding, perturbation tables and uniform noise the bounds are exact rationals,
    rounded to floats, if there are few distinct ratios of probabilities; for Gaussian noise there
    is a closed form. Anyone can recompute these numbers, so there is no certificate. For other
    noise the privacy loss is moved to a grid in such a way that the mean of the likelihood ratio
    does not change (:doc:`/theory/tables`).

    Examples
    --------
    All numbers are rounded to base 3. A person who moves changes two cells and four margins:

    >>> from cvxleak.tables import RandomRounding, Table, TableRelease, table_privacy
    >>> table = Table({"age": range(20), "job": range(15)}, people=1_000_000)
    >>> privacy = table_privacy(TableRelease(table, RandomRounding(base=3)))
    >>> print(privacy.profile(0.5))
    delta: 0.9122... to 0.9122... probability (CERTIFIED)
    """
    check_progress(progress)
    given = instance(release, TableRelease, "release")
    exact = instance(this_table, bool, "this_table")
    if exact:
        _ = given.table.in_cells  # raises if there are none
    _ = given.table.people  # as here
    clock = Clock(time_limit, work_limit)
    found = TablePrivacy(given, _places(given, move), exact)
    if given.linked or (exact and move is not None):
        try:  # raises if no person can make this move, or if keys link too much
            found._moves.collect(clock, progress)
        except KeyboardInterrupt as error:
            raise SolveInterrupted(found) from error
    return found


def _places(release: TableRelease, move: Sequence[Any] | None) -> tuple[int, int] | None:
    if move is None:
        return None
    pair = in_order(move, "move")
    if len(pair) != 2:
        raise ValidationError(f"move: found {short(move)}; two cells are needed")
    source, target = (release.table.place_of(cell, "move") for cell in pair)
    if source == target:
        raise ValidationError(f"move: found {short(pair[0])} twice; two cells are needed")
    return source, target
