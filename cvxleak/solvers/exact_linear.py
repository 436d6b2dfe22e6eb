"""One linear program in rational numbers: HiGHS proposes a basis, exact pivots make it optimal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from flint import fmpq, fmpq_mat

from cvxleak.core.errors import SolverError
from cvxleak.solvers.highs import quiet_highs

__all__ = ["Vertex", "exact_minimum"]

MOST_EQUATIONS = 400
"""Programs of more equations stay as HiGHS solves them: exact pivots would take minutes each."""

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
    one, with no rounding. If that takes more than 500 pivots, or there are more than 400 equations,
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
        self.sides = fmpq_mat([[side] for side in sides])
        self.pivots = MOST_PIVOTS

    def feasible(self, basis: list[int]) -> list[int] | None:
        """Return a basis with a point >= 0, by dual pivots, or None if they are too many."""
        short = [min(r, fmpq(0)) for r in self.reduced(self.cost, basis)]
        raised = [c - r for c, r in zip(self.cost, short, strict=True)]
        while True:
            point = self.point(basis)
            place = min(range(len(basis)), key=lambda i: point[i])
            if point[place] >= 0:
                return basis
            unit = fmpq_mat([[fmpq(int(i == place))] for i in range(len(basis))])
            row = self.part(basis).transpose().solve(unit).entries()
            reduced, own = self.reduced(raised, basis), set(basis)
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
            point, reduced = self.point(basis), self.reduced(self.cost, basis)
            enters = min(range(len(reduced)), key=lambda j: reduced[j])
            if reduced[enters] >= 0:
                full = dict(zip(basis, point, strict=True))
                point = [full.get(j, fmpq(0)) for j in range(len(self.columns))]
                return Vertex(point, self.multipliers(self.cost, basis))
            slopes = self.part(basis).solve(self.part([enters])).entries()
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

    def part(self, basis: Sequence[int]) -> fmpq_mat:
        size = self.sides.nrows()
        return fmpq_mat([[self.columns[j].get(i, fmpq(0)) for j in basis] for i in range(size)])

    def point(self, basis: list[int]) -> list[fmpq]:
        return self.part(basis).solve(self.sides).entries()

    def multipliers(self, cost: Sequence[fmpq], basis: list[int]) -> list[fmpq]:
        prices = fmpq_mat([[cost[j]] for j in basis])
        return self.part(basis).transpose().solve(prices).entries()

    def reduced(self, cost: Sequence[fmpq], basis: list[int]) -> list[fmpq]:
        prices = self.multipliers(cost, basis)
        return [c - _dot(prices, column) for c, column in zip(cost, self.columns, strict=True)]


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
    equations = program.sides.nrows()
    if equations > MOST_EQUATIONS:
        return None, near
    kinds = solver.getBasis().col_status
    basis = [j for j, kind in enumerate(kinds) if kind == highspy.HighsBasisStatus.kBasic]
    if len(basis) < equations or program.part(basis).rank() < equations:
        basis = _completed(program, basis)
    return basis, near


def _completed(program: _Program, basis: list[int]) -> list[int] | None:
    """Return a basis of these columns and, where they depend on each other, later ones."""
    own = set(basis)
    order = basis + [j for j in range(len(program.columns)) if j not in own]
    table, rank = program.part(order).rref()
    if rank < program.sides.nrows():
        return None
    return [order[next(j for j, x in enumerate(row) if x)] for row in table.tolist()]


def _model(program: _Program) -> Any:
    """Return the program in floats, as HiGHS takes it."""
    import highspy

    sizes = [len(column) for column in program.columns]
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = len(sizes), program.sides.nrows()
    model.col_cost_ = _floats(program.cost)
    model.col_lower_ = np.zeros(len(sizes))
    model.col_upper_ = np.full(len(sizes), highspy.kHighsInf)
    model.row_lower_ = model.row_upper_ = _floats(program.sides.entries())
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
