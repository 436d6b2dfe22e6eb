"""The NumPy logarithm keeps its error bound, against ball arithmetic."""

import numpy as np
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from cvxleak.exact import balls
from cvxleak.exact.outward import LOG_ERROR, SMALLEST, UNIT_ROUNDOFF, logarithm, x_log_x_sums


def check_logarithm(numbers):
    with balls.precision():
        for x, value in zip(numbers.tolist(), logarithm(numbers).tolist(), strict=True):
            exact = arb(x).log()
            assert abs(arb(value) - exact) <= LOG_ERROR * UNIT_ROUNDOFF * (1 + abs(exact)), x


def test_logarithm_everywhere():
    rng = np.random.default_rng(1)
    cells = 0.5 + np.arange(513) / 1024
    check_logarithm(
        np.concatenate(
            [
                rng.random(3000) + 1e-300,
                np.exp(rng.uniform(-700, 690, 3000)),
                1 + rng.uniform(-1e-3, 1e-3, 2000),
                [2.0**-1022, 2.0**1000, SMALLEST, 1.0, np.nextafter(1, 0), np.nextafter(1, 2)],
                cells,
                np.nextafter(cells, 0),
                np.nextafter(cells, 2),
            ]
        )
    )


@given(st.floats(2.0**-1022, 2.0**1000))
def test_logarithm_law(x):
    check_logarithm(np.array([x]))


def test_x_log_x_sums_in_all_blocks():
    rng = np.random.default_rng(2)
    rows = rng.dirichlet(np.full(200, 0.05), size=300)
    rows[0] = 0.0
    rows[1, :50] = 5e-324
    rows[2, 0] = 1.0 + 1e-9
    sums, sizes = x_log_x_sums(rows)
    with balls.precision():
        for row, value, size in zip(rows.tolist(), sums.tolist(), sizes.tolist(), strict=True):
            terms = [balls.x_log_x(arb(x)) for x in row]
            exact = sum(terms, arb(0))
            assert abs(arb(value) - exact) <= 2e-13
            assert abs(arb(size) - sum((abs(term) for term in terms), arb(0))) <= 2e-13
    assert sums[0] == 0.0
