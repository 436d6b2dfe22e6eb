"""One linear program in rational numbers: a basis from HiGHS, made optimal by exact pivots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from flint import fmpq, fmpq_mat

from cvxleak.core.errors import SolverError
from cvxleak.solvers.highs import quiet_highs

__all__ = ["Vertex", "exact_minimum"]

MOST_EQUATIONS = 1000
"""Programs of more equations stay as HiGHS solves them. Channels on 28 inputs and as many outputs
make 840, and take 0.5 to 14 seconds."""

MOST_PIVOTS = 500

Column = Mapping[int, fmpq]
"""The coefficients of a variable in the equations, by the number of the equation."""


class Vertex(NamedTuple):
    """A point of a linear program and multipliers of its equations, both as rational numbers.

    Nothing is claimed of them: whoever takes them makes them feasible and evaluates them. Where
    both are optimal the two ends so found are equal.

    Examples
    --------
    >>> from cvxleak.solvers.exact_linear import Vertex
    >>> Vertex([1], [1])
    Vertex(point=[1], multipliers=[1])
    """

    point: list[fmpq]
    multipliers: list[fmpq]


def exact_minimum(cost: Sequence[fmpq], columns: Sequence[Column], sides: Sequence[fmpq]) -> Vertex:
    """Return an optimum of min sum_j c_j x_j with sum_j x_j columns[j] = sides, x >= 0.

    The basis at which HiGHS stops is taken over. Where it is not exactly optimal, dual pivots under
    costs raised to suit it lead to a feasible basis, and primal pivots from there to an optimal
    one, with no rounding. If that takes more than 500 pivots, or there are over 1000 equations,
    the answer is HiGHS's own in rational numbers.

    Raises
    ------
    SolverError
        HiGHS finds no optimum.

    Examples
    --------
    A third of one and one of the other: the first is the cheaper way to make a third.

    >>> from flint import fmpq
    >>> from cvxleak.solvers.exact_linear import exact_minimum
    >>> third = fmpq(1, 3)
    >>> exact_minimum([fmpq(1)] * 2, [{0: fmpq(1)}, {0: third}], [third])
    Vertex(point=[1/3, 0], multipliers=[1])
    """
    program = _Program(cost, columns, sides)
    basis, near = _proposed(program)
    if basis is None:
        return near
    return program.optimal(program.feasible(basis)) or near


class _Program:
    """Equations A x = b of non-negative x, and bases: as many columns as there are equations."""

    def __init__(
        self, cost: Sequence[fmpq], columns: Sequence[Column], sides: Sequence[fmpq]
    ) -> None:
        self.cost = list(cost)
        self.columns = columns
        self.sides = list(sides)
        self.pivots = MOST_PIVOTS

    def feasible(self, basis: list[int]) -> list[int] | None:
        """Return a basis with a point >= 0, by dual pivots, or None if they are too many."""
        reduced = self.reduced(self.cost, basis, self.factors(basis))
        raised = [c - min(r, fmpq(0)) for c, r in zip(self.cost, reduced, strict=True)]
        while True:
            factors = self.factors(basis)
            point = factors.solve(self.sides)
            place = min(range(len(basis)), key=lambda i: point[i])
            if point[place] >= 0:
                return basis
            row = factors.row(place)
            reduced, own = self.reduced(raised, basis, factors), set(basis)
            slopes = [_dot(row, column) for column in self.columns]
            ratios = [
                (-reduced[j] / slope, slope, j)
                for j, slope in enumerate(slopes)
                if slope < 0 and j not in own
            ]
            if not ratios or not self.pivots:
                return None
            self.pivots -= 1
            basis[place] = min(ratios)[2]

    def optimal(self, basis: list[int] | None) -> Vertex | None:
        """Return the optimum by primal pivots from a point >= 0, or None if they are too many."""
        while basis is not None:
            factors = self.factors(basis)
            point, reduced = factors.solve(self.sides), self.reduced(self.cost, basis, factors)
            enters = min(range(len(reduced)), key=lambda j: reduced[j])
            if reduced[enters] >= 0:
                full = dict(zip(basis, point, strict=True))
                point = [full.get(j, fmpq(0)) for j in range(len(self.columns))]
                return Vertex(point, factors.multipliers([self.cost[j] for j in basis]))
            column = [self.columns[enters].get(i, fmpq(0)) for i in range(len(self.sides))]
            slopes = factors.solve(column)
            ratios = [
                (x / slope, j, i)
                for i, (x, slope, j) in enumerate(zip(point, slopes, basis, strict=True))
                if slope > 0
            ]
            if not ratios or not self.pivots:
                break
            self.pivots -= 1
            basis[min(ratios)[2]] = enters
        return None

    def factors(self, basis: Sequence[int]) -> _Factors:
        return _Factors([self.columns[j] for j in basis])

    def reduced(self, cost: Sequence[fmpq], basis: list[int], factors: _Factors) -> list[fmpq]:
        prices = factors.multipliers([cost[j] for j in basis])
        return [c - _dot(prices, column) for c, column in zip(cost, self.columns, strict=True)]


class _Factors:
    """As many columns as rows, factored: most have one or two entries and go first, one by one.

    A column with an entry in the row of its pivot and at most one other is eliminated by a multiple
    of that row, which leaves others with fewer entries. The kernel is what remains: it is dense.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        size = len(columns)
        rows: list[dict[int, fmpq]] = [{} for _ in range(size)]
        where: list[set[int]] = [set() for _ in range(size)]
        for j, column in enumerate(columns):
            for i, value in column.items():
                if value:
                    rows[i][j] = value
                    where[j].add(i)
        self.steps: list[tuple[int, int, dict[int, fmpq], int | None, fmpq]] = []
        few = [j for j in range(size) if len(where[j]) <= 2]
        done: set[int] = set()
        while few:
            j = few.pop()
            if j in done or not 1 <= len(where[j]) <= 2:
                continue
            done.add(j)
            i = min(where[j], key=lambda i: (len(rows[i]), i))
            pivot, other, times = rows[i], next(iter(where[j] - {i}), None), fmpq(0)
            if other is not None:
                times = rows[other][j] / pivot[j]
                for c, value in pivot.items():
                    left = rows[other].get(c, fmpq(0)) - times * value
                    if left:
                        rows[other][c] = left
                        where[c].add(other)
                    else:
                        rows[other].pop(c, None)
                        where[c].discard(other)
            for c in pivot:
                where[c].discard(i)
                if len(where[c]) <= 2:
                    few.append(c)
            self.steps.append((i, j, pivot, other, times))
        taken = {step[0] for step in self.steps}
        self.rows = [i for i in range(size) if i not in taken]
        self.places = [j for j in range(size) if j not in done]
        self.kernel = fmpq_mat([[rows[i].get(j, fmpq(0)) for j in self.places] for i in self.rows])

    @property
    def regular(self) -> bool:
        return self.kernel.rank() == len(self.rows)

    def solve(self, sides: Sequence[fmpq]) -> list[fmpq]:
        """Return x with sum_j x_j column_j = sides."""
        b, x = list(sides), [fmpq(0)] * len(sides)
        for i, _, _, other, times in self.steps:
            if other is not None:
                b[other] -= times * b[i]
        for j, value in zip(
            self.places, _solved(self.kernel, [b[i] for i in self.rows]), strict=True
        ):
            x[j] = value
        for i, j, pivot, _, _ in reversed(self.steps):
            # x[j] is 0 as yet.
            x[j] = (b[i] - sum((value * x[c] for c, value in pivot.items()), fmpq(0))) / pivot[j]
        return x

    def multipliers(self, prices: Sequence[fmpq]) -> list[fmpq]:
        """Return y with y . column_j = prices_j."""
        c, y = list(prices), [fmpq(0)] * len(prices)
        for i, j, pivot, _, _ in self.steps:
            y[i] = c[j] / pivot[j]
            for place, value in pivot.items():
                c[place] -= y[i] * value
        transposed = self.kernel.transpose()
        for i, value in zip(
            self.rows, _solved(transposed, [c[j] for j in self.places]), strict=True
        ):
            y[i] = value
        for i, _, _, other, times in reversed(self.steps):
            if other is not None:
                y[i] -= times * y[other]
        return y

    def row(self, place: int) -> list[fmpq]:
        """Return a row of the inverse."""
        return self.multipliers([fmpq(int(j == place)) for j in range(len(self.steps + self.rows))])


def _solved(matrix: fmpq_mat, sides: list[fmpq]) -> list[fmpq]:
    return matrix.solve(fmpq_mat([[side] for side in sides])).entries() if sides else []


def _proposed(program: _Program) -> tuple[list[int] | None, Vertex]:
    """Return the basis at which HiGHS stops, if it is to be used, and its answer."""
    import highspy

    solver = quiet_highs()
    solver.passModel(_model(program))
    solver.run()
    if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        raise SolverError(f"HiGHS: {solver.modelStatusToString(solver.getModelStatus())}")
    found = solver.getSolution()
    near = Vertex(_exactly(found.col_value), _exactly(found.row_dual))
    if len(program.sides) > MOST_EQUATIONS:
        return None, near
    basis, basic = solver.getBasis(), highspy.HighsBasisStatus.kBasic
    columns = [j for j, kind in enumerate(basis.col_status) if kind == basic]
    return _completed(
        program, columns, [i for i, kind in enumerate(basis.row_status) if kind == basic]
    ), near


def _completed(program: _Program, basis: list[int], rows: list[int]) -> list[int] | None:
    """Return a basis of these columns and, for each of these rows, another one.

    A unit vector stands for each row until a column takes its place. None if that fails.
    """
    units: list[Column] = [{i: fmpq(1)} for i in rows]
    factors = _Factors([program.columns[j] for j in basis] + units)
    if not factors.regular:
        return None
    found = list(basis)
    inverse = [factors.row(len(basis) + place) for place in range(len(units))]
    while inverse:
        row, *others = inverse
        slopes = ((j, _dot(row, c)) for j, c in enumerate(program.columns) if j not in found)
        entering = next((pair for pair in slopes if pair[1]), None)
        if entering is None:
            return None
        enters, slope = entering
        found.append(enters)
        times = [_dot(other, program.columns[enters]) / slope for other in others]
        inverse = [
            [x - t * y for x, y in zip(other, row, strict=True)] if t else other
            for t, other in zip(times, others, strict=True)
        ]
    return found


def _model(program: _Program) -> Any:
    """Return the program in floats, as HiGHS takes it."""
    import highspy

    sizes = [len(column) for column in program.columns]
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(sizes), len(program.sides)
    model.col_cost_ = _floats(program.cost)
    model.col_lower_ = np.zeros(len(sizes))
    model.col_upper_ = np.full(len(sizes), highspy.kHighsInf)
    model.row_lower_ = model.row_upper_ = _floats(program.sides)
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
    model.a_matrix_.index_ = np.array([i for c in program.columns for i in c], dtype=np.int32)
    model.a_matrix_.value_ = _floats([x for c in program.columns for x in c.values()])
    return model


def _floats(numbers: Sequence[fmpq]) -> Any:
    return np.array([int(x.p) / int(x.q) for x in numbers], dtype=float)


def _exactly(floats: Sequence[float]) -> list[fmpq]:
    return [fmpq(*x.as_integer_ratio()) for x in floats]


def _dot(row: list[fmpq], column: Column) -> fmpq:
    return sum((row[i] * x for i, x in column.items()), fmpq(0))
