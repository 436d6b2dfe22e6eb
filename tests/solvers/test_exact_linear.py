import itertools

import numpy as np
import pytest
from flint import fmpq, fmpq_mat

from cvxleak.core.errors import SolverError
from cvxleak.solvers.exact_linear import _Factors, exact_minimum


def best_basis(cost, columns, sides):
    """The least cost over all bases with a point >= 0, one after the other."""
    found = []
    for basis in itertools.combinations(range(len(columns)), len(sides)):
        part = fmpq_mat([[columns[j].get(i, fmpq(0)) for j in basis] for i in range(len(sides))])
        if part.rank() == len(sides):
            point = part.solve(fmpq_mat([[side] for side in sides])).entries()
            if min(point) >= 0:
                found.append(sum(x * cost[j] for j, x in zip(basis, point, strict=True)))
    return min(found)


@pytest.mark.parametrize("seed", range(12))
def test_the_optimum_is_that_of_all_bases(seed):
    """Small integers, so that ties and degenerate vertices are common; a third is no float."""
    rng = np.random.default_rng(seed)
    equations, size = 3, 7
    columns = [
        {i: fmpq(int(v), 3) for i, v in enumerate(column) if v}
        for column in rng.integers(-1, 4, size=(size, equations))
    ]
    some = rng.integers(0, 3, size=size)
    sides = [
        sum((int(x) * c.get(i, fmpq(0)) for x, c in zip(some, columns, strict=True)), fmpq(0))
        for i in range(equations)
    ]
    cost = [fmpq(int(c), 7) for c in rng.integers(0, 5, size=size)]
    point, multipliers = exact_minimum(cost, columns, sides)
    assert min(point) >= 0
    for i, side in enumerate(sides):
        assert sum(x * c.get(i, fmpq(0)) for x, c in zip(point, columns, strict=True)) == side
    value = sum(x * c for x, c in zip(point, cost, strict=True))
    assert value == sum(y * side for y, side in zip(multipliers, sides, strict=True))
    assert all(
        sum(multipliers[i] * v for i, v in column.items()) <= c
        for column, c in zip(columns, cost, strict=True)
    )
    assert value == best_basis(cost, columns, sides)


@pytest.mark.parametrize("seed", range(20))
def test_factors_solve_as_a_dense_matrix_does(seed):
    """Many columns of one or two entries, as slacks make them; some matrices are singular."""
    rng = np.random.default_rng(seed)
    size = 9
    table = np.zeros((size, size), dtype=int)
    for j in range(size):
        entries = rng.choice(size, size=1 + int(rng.integers(0, 3)), replace=False)
        table[entries, j] = rng.integers(1, 5, size=len(entries))
    dense = fmpq_mat([[fmpq(int(x), 3) for x in row] for row in table])
    columns = [{i: fmpq(int(x), 3) for i, x in enumerate(column)} for column in table.T]
    factors = _Factors(columns)
    assert factors.regular == (dense.rank() == size)
    if factors.regular:
        sides = [fmpq(int(x), 7) for x in rng.integers(-9, 9, size=size)]
        right = fmpq_mat([[side] for side in sides])
        assert factors.solve(sides) == dense.solve(right).entries()
        assert factors.multipliers(sides) == dense.transpose().solve(right).entries()
        inverse = dense.inv().tolist()
        assert [factors.row(i) for i in range(size)] == inverse


def test_refuses_what_has_no_optimum():
    one = fmpq(1)
    with pytest.raises(SolverError, match="HiGHS: Infeasible"):
        exact_minimum([one], [{0: one}], [-one])
    with pytest.raises(SolverError, match=r"HiGHS: .*nbounded"):
        exact_minimum([-one, 0 * one], [{0: one}, {0: -one}], [one])
