"""The NumPy logarithm keeps its error bound, against ball arithmetic."""

import numpy as np
from flint import arb
from hypothesis import given
from hypothesis import strategies as st

from cvxleak.exact import balls
from cvxleak.exact.outward import LOG_ERROR, SMALLEST, UNIT_ROUNDOFF, logarithm


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
