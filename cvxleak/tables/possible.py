"""`possible_counts`: the true counts that are compatible with the published numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array, lil_array, vstack

from cvxleak.core.clock import WORK_LIMIT, Clock, check_progress
from cvxleak.core.errors import InfeasibleError, SolveInterrupted, ValidationError
from cvxleak.core.notebook import html_table
from cvxleak.core.validation import Array, short
from cvxleak.core.value import Value
from cvxleak.core.wording import between, counted
from cvxleak.tables.arguments import MOST_PEOPLE, Cell, checked_known_people
from cvxleak.tables.noise import Interval
from cvxleak.tables.release import TableRelease

__all__ = ["PossibleCounts", "possible_counts"]

DENOMINATOR = 60
"""Multipliers of a table of two variables are whole numbers, as its incidence matrix is totally
unimodular; others are rounded to a fraction with at most this denominator. Any are valid."""

PASSES = 50
"""Most rounds in which sums bound their cells; the bounds are valid after each."""

OPTIMAL, UNBOUNDED = 0, 3
"""Status codes of SciPy's `linprog`."""


@dataclass(frozen=True, eq=False, repr=False)
class PossibleCounts(Value):
    """Bounds on the true value of each number of a table.

    Attributes
    ----------
    numbers : tuple
        Labels of the cells and margins.
    lower, upper : tuple of int
        Bounds on the true value over all tables that could have produced the published numbers,
        proved in integer arithmetic. An upper bound of None means that there is none.
    smallest, largest : tuple of int
        The smallest and the largest true value found in such tables, for each number separately. If
        they equal the bounds, the bounds are exact.
    known_people : int or None
        The number of people that was taken as known besides what was published, if any.

    Examples
    --------
    >>> from cvxleak.tables import RandomRounding, Table, TableRelease, possible_counts
    >>> release = TableRelease(Table({"answer": ["no", "yes"]}), RandomRounding(3))
    >>> found = possible_counts(release, [0, 3, 6])
    >>> print(found)
    3 numbers, 0 known exactly, from what was published alone
    no     0 to 2
    yes    2 to 5
    total  4 to 7
    >>> possible_counts(release, [0, 3, 6], known_people=5)
    PossibleCounts(3 numbers, 1 known exactly, from what was published and the number of people, 5)
    """

    numbers: tuple[Cell, ...]
    lower: tuple[int, ...]
    upper: tuple[int | None, ...]
    smallest: tuple[int, ...]
    largest: tuple[int | None, ...]
    known_people: int | None = None

    @property
    def known(self) -> tuple[Cell, ...]:
        """Labels of the numbers whose true value is certain."""
        ends = zip(self.numbers, self.lower, self.upper, strict=True)
        return tuple(label for label, low, high in ends if low == high)

    def to_frame(self) -> Any:
        """Return the bounds as a pandas DataFrame, a line for each number (needs pandas)."""
        import pandas as pd

        names = ("lower", "upper", "smallest", "largest")
        columns = {name: pd.array(getattr(self, name), dtype="Int64") for name in names}
        return pd.DataFrame({"number": self.numbers, **columns})

    @property
    def basis(self) -> str:
        """What the bounds follow from, in words."""
        if self.known_people is None:
            return "what was published alone"
        return f"what was published and the number of people, {self.known_people}"

    @property
    def _heading(self) -> str:
        numbers = counted(len(self.numbers), "number")
        return f"{numbers}, {len(self.known)} known exactly, from {self.basis}"

    def __repr__(self) -> str:
        return f"PossibleCounts({self._heading})"

    def __str__(self) -> str:
        labels = ["/".join(map(str, label)) for label in self.numbers]
        width = max(map(len, labels))
        lines = [
            f"{label.ljust(width)}  {between(low, high)}"
            for label, low, high in zip(labels, self.lower, self.upper, strict=True)
        ]
        return "\n".join([self._heading, *lines])

    def _repr_html_(self) -> str:
        """Return the bounds as a table."""
        rows = [
            ["/".join(map(str, label)), low, "" if high is None else high]
            for label, low, high in zip(self.numbers, self.lower, self.upper, strict=True)
        ]
        return html_table(self._heading, ["number", "at least", "at most"], rows)


def possible_counts(
    release: TableRelease,
    published: Any,
    *,
    known_people: int | None = None,
    time_limit: float | None = None,
    work_limit: float | None = WORK_LIMIT,
    progress: Callable[[int, int], None] | None = None,
) -> PossibleCounts:
    """Bound the true counts, given all published numbers, and nothing else unless it is said.

    Statistical offices call this the audit of a protected table. Cells and margins constrain each
    other, because true margins are sums of true cells, and bounded noise is compatible with few
    counts for each number. For each number, the smallest and the largest true value are sought over
    all integer tables that could have produced the published numbers. Integer programming (HiGHS)
    gives values that are attained; linear programming duality, in exact arithmetic, proves the
    bounds.

    Parameters
    ----------
    release : TableRelease
        The release; neither its true counts nor its number of people are used.
    published : sequence, mapping, Series, DataFrame, or path of a CSV file
        The published value of each of `release.numbers`, in their order or by label, as
        `TableRelease.as_published` reads them.
    known_people : int, optional
        The true number of people in the table (or an upper bound on it, if some may be outside), if
        it is known besides what was published: from elsewhere (a priori, in the terms of disclosure
        control), and exactly. A total that was rounded is no such number; it is published.
    time_limit, work_limit : float or None
        Seconds, and multiplications (`Problem.solve`), after which the numbers that are left get
        bounds from the cells and margins that they share people with, without linear programs;
        their `smallest` and `largest` are a value that was found. The first number is always
        computed.
    progress : callable, optional
        Called as progress(numbers so far, numbers in all) before each number.

    Returns
    -------
    PossibleCounts

    Raises
    ------
    InfeasibleError
        No table could have produced the published numbers.
    ValidationError
        Labels that are not published numbers, or a value that its noise cannot produce.
    SolveInterrupted
        Ctrl-C; its ``bound`` is what a time limit would leave, or None before the first number.

    Notes
    -----
    Ranges from what was published alone are right for every reader: each contains the true count.
    Whoever knows more has narrower ones. So an office that asks what it discloses states
    `known_people` if any reader may know it: without it the ranges are too wide for that reader,
    and say that less is disclosed than is. Whoever reads a table without knowing the number leaves
    it out: with one that is not exact, such as a rounded total, ranges are too narrow, and may miss
    the true count.

    Unbounded noise (Gaussian, geometric, ...) excludes no count. If keys link the noise of several
    numbers, the bounds are valid, but `smallest` and `largest` ignore the link: they come from
    tables that are compatible with each number separately, as if the keys were independent.

    References
    ----------
    M. Fischetti, J. J. Salazar, Models and algorithms for optimizing cell suppression in tabular
    data with linear constraints, JASA 95, 2000 (the attacker's problem).

    Examples
    --------
    >>> from cvxleak.tables import RandomRounding, Table, TableRelease, possible_counts
    >>> table = Table({"sex": ["f", "m"], "answer": ["no", "yes"]})
    >>> release = TableRelease(table, RandomRounding(3))
    >>> found = possible_counts(release, [0, 3, 6, 3, 0, 9, 3, 6, 9])
    >>> [(low, high) for low, high in zip(found.lower, found.upper)][:4]
    [(0, 1), (1, 2), (4, 5), (2, 5)]
    >>> found = possible_counts(release, [0, 3, 6, 3, 0, 9, 3, 6, 9], known_people=9)
    >>> [(low, high) for low, high in zip(found.lower, found.upper)][:4]
    [(0, 1), (1, 2), (4, 5), (2, 4)]
    """
    check_progress(progress)
    if not isinstance(release, TableRelease):
        raise ValidationError(
            f"release: expected a TableRelease, found {short(release)}; of a file of published "
            "numbers it is TableRelease(Table.from_published(path), RoundToNearest(5)), for example"
        )
    asked = release
    values, people = asked.as_published(published), checked_known_people(known_people)
    program = _Program(asked, values, people)
    sums, clock = asked.table.sums, Clock(time_limit, work_limit)
    ends: list[tuple[int, int | None, int, int | None]] = []

    def found() -> PossibleCounts:
        rest = [program.ends(places, program.near) for places in sums[len(ends) :]]
        lower, upper, smallest, largest = zip(*ends, *rest, strict=True)
        return PossibleCounts(asked.table.numbers, lower, upper, smallest, largest, people)

    try:
        for done, places in enumerate(sums):
            if progress is not None:
                progress(done, len(sums))
            if ends and clock.late:
                break
            ends.append(program.ends(places, program.most))
    except KeyboardInterrupt as error:
        raise SolveInterrupted(found() if ends else None) from error
    return found()


class _Program:
    """The tables of whole numbers that could have been published like this."""

    def __init__(self, release: TableRelease, values: Sequence[Any], people: int | None) -> None:
        table = release.table
        self.cells = len(table.cells)
        self.sums = list(release.sums)
        self.runs = release.allowed(values)
        if people is not None:
            self.sums.append(tuple(range(self.cells)))
            self.runs.append([(0 if table.outside else people, people)])
        self.hull: list[Interval] = [(runs[0][0], runs[-1][1]) for runs in self.runs]
        self.box: list[Interval] = [(0, None)] * self.cells
        for _ in range(PASSES):
            before = list(self.box)
            self._tighten()
            if self.box == before:
                break
        # From here on counts are what a table has beyond the lower bounds of its cells: solvers
        # keep their tolerances with small numbers.
        self.base = [low for low, _ in self.box]
        self.box = [_shifted(ends, low) for ends, low in zip(self.box, self.base, strict=True)]
        least = [sum(self.base[c] for c in places) for places in self.sums]
        self.hull = [_shifted(ends, low) for ends, low in zip(self.hull, least, strict=True)]
        self.runs = [
            [_shifted(run, low) for run in runs] for runs, low in zip(self.runs, least, strict=True)
        ]
        entries = np.repeat(np.arange(len(self.sums)), [len(places) for places in self.sums])
        columns = np.concatenate([np.array(places, dtype=int) for places in self.sums])
        shape = (len(self.sums), self.cells)
        self.matrix = csr_array((np.ones(len(columns)), (entries, columns)), shape=shape)
        self.point: list[int] = []  # a table that could have been published like this

    def _tighten(self) -> None:
        """Bound each cell by the sums that it is in and the bounds of their other cells."""
        for places, (low, high) in zip(self.sums, self.hull, strict=True):
            bottoms = [self.box[c][0] for c in places]
            tops = [self.box[c][1] for c in places]
            least, endless = sum(bottoms), tops.count(None)
            most = sum(top for top in tops if top is not None)
            for c, bottom, top in zip(places, bottoms, tops, strict=True):
                if endless == (top is None):
                    bottom = max(bottom, low - (most - (top or 0)))
                if high is not None:
                    room = high - (least - self.box[c][0])
                    top = room if top is None else min(top, room)
                if top is not None and bottom > top:
                    raise _impossible()
                self.box[c] = (bottom, top)

    def ends(
        self,
        places: Sequence[int],
        most: Callable[[Sequence[int], int], tuple[Any, int | None]],
    ) -> tuple[int, int | None, int, int | None]:
        """Return the bounds of the sum of some cells, and the least and largest that was found."""
        below, smallest = most(places, -1)
        above, largest = most(places, 1)
        base = sum(self.base[c] for c in places)
        low = 0 if math.isinf(below) else max(0, math.ceil(-below))
        high = None if math.isinf(above) else base + math.floor(above)
        return base + low, high, base - (smallest or 0), None if largest is None else base + largest

    def near(self, places: Sequence[int], sign: int) -> tuple[Any, int | None]:
        """Return a quick upper bound on `sign` times a sum, and its value in a known table."""
        bottoms, tops = zip(*(self.box[c] for c in places), strict=True)
        ends: list[Interval] = [(sum(bottoms), None if None in tops else sum(tops))]
        ends += [hull for sums, hull in zip(self.sums, self.hull, strict=True) if sums == places]
        value = sign * sum(self.point[c] for c in places)
        if sign < 0:
            return -max(low for low, _ in ends), value
        return min((high for _, high in ends if high is not None), default=math.inf), value

    def most(self, places: Sequence[int], sign: int) -> tuple[Any, int | None]:
        """Return a proved upper bound on `sign` times a sum, and its largest value found."""
        cost = np.zeros(self.cells)
        cost[list(places)] = -sign
        bounds = [(low, np.inf if high is None else high) for low, high in self.box]
        upper = [i for i, (_, high) in enumerate(self.hull) if high is not None]
        rows = vstack([self.matrix[upper], -self.matrix])
        sides = [self.hull[i][1] for i in upper] + [-low for low, _ in self.hull]
        answer = linprog(cost, rows, sides, bounds=bounds, method="highs")
        if answer.status == UNBOUNDED:
            return math.inf, None
        prices = [Fraction(0)] * len(self.sums)
        if answer.status == OPTIMAL:
            slopes = [Fraction(m).limit_denominator(DENOMINATOR) for m in answer.ineqlin.marginals]
            for i, slope in zip(upper, slopes, strict=False):
                prices[i] -= slope
            for i, slope in enumerate(slopes[len(upper) :]):
                prices[i] += slope
        bound = min(self._dual(places, sign, ys) for ys in (prices, [Fraction(0)] * len(prices)))
        return bound, self._found(places, sign, cost, answer.x)

    def _dual(self, places: Sequence[int], sign: int, prices: Sequence[Fraction]) -> Any:
        """Return sum_i max(y_i L_i, y_i U_i) + sum_c max over the box of (sign 1_c - (A'y)_c) x_c.

        It is an upper bound for every table, whatever the prices y are.
        """
        rest = [Fraction(0)] * self.cells
        for c in places:
            rest[c] += sign
        total: Any = Fraction(0)
        for sums, ends, y in zip(self.sums, self.hull, prices, strict=True):
            if y:
                total += _largest(y, ends)
                for c in sums:
                    rest[c] -= y
        return total + sum(_largest(r, ends) for r, ends in zip(rest, self.box, strict=True) if r)

    def _found(self, places: Sequence[int], sign: int, cost: Array, start: Any) -> int | None:
        """Return the largest `sign` times a sum among tables that could have been published so."""
        for point in (start, *self._whole(cost)):
            counts = [] if point is None else [round(x) for x in point.tolist()]
            if counts and self._possible(counts):
                self.point = counts
                return sign * sum(counts[c] for c in places)
        raise _impossible()

    def _whole(self, cost: Array) -> Iterator[Any]:
        """Yield the solution in whole numbers, in which each sum is in one of its runs."""
        choices = [(i, run) for i, runs in enumerate(self.runs) for run in runs if len(runs) > 1]
        rows, columns = len(self.sums), self.cells + len(choices)
        below, above = lil_array((rows, columns)), lil_array((rows, columns))
        below[:, : self.cells] = above[:, : self.cells] = self.matrix
        lower: Any = np.array([low for low, _ in self.hull], dtype=float)
        upper: Any = np.array([np.inf if high is None else high for _, high in self.hull])
        one = lil_array((rows, columns))
        for column, (i, (low, high)) in enumerate(choices, self.cells):
            below[i, column], lower[i] = -low, 0.0
            above[i, column] = -(MOST_PEOPLE if high is None else high)
            upper[i] = 0.0
            one[i, column] = 1.0
        several = sorted({i for i, _ in choices})
        constraints = [
            LinearConstraint(csr_array(below), lower, np.inf),
            LinearConstraint(csr_array(above), -np.inf, upper),
        ]
        if several:
            constraints.append(LinearConstraint(csr_array(one)[several], 1.0, 1.0))
        ends = [(low, np.inf if high is None else high) for low, high in self.box]
        low, high = np.array([*ends, *[(0, 1)] * len(choices)], dtype=float).T
        answer = milp(
            np.concatenate([cost, np.zeros(len(choices))]),
            integrality=np.ones(columns),
            bounds=Bounds(low, high),
            constraints=constraints,
        )
        if answer.x is not None:
            yield answer.x[: self.cells]

    def _possible(self, counts: Sequence[int]) -> bool:
        """Whether a table could have been published like this, in whole numbers."""
        return min(counts) >= 0 and all(
            any(low <= total and (high is None or total <= high) for low, high in runs)
            for total, runs in zip(
                (sum(counts[c] for c in places) for places in self.sums), self.runs, strict=True
            )
        )


def _shifted(ends: Interval, by: int) -> Interval:
    return ends[0] - by, None if ends[1] is None else ends[1] - by


def _largest(slope: Fraction, ends: Interval) -> Any:
    """Return the largest product of a slope that is not 0 and a number between two bounds."""
    end = ends[1] if slope > 0 else ends[0]
    return math.inf if end is None else slope * end


def _impossible() -> InfeasibleError:
    return InfeasibleError(
        "published: no table of whole numbers could have been published so, each number with noise "
        "of its own; margins that are sums of rounded cells are not rounded themselves, and need "
        "margins=False; a number that is left out to protect others (secondary suppression) has "
        "the noise None; a number of people that is given has to fit as well"
    )
