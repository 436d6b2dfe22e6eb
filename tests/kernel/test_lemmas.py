"""What several rules use: against linear programs, and pairs of rows where it is sharp."""

import numpy as np
import pytest
from flint import arb
from scipy.optimize import linprog
from scipy.special import rel_entr

from cvxleak.kernel.lemmas import contraction, support
from cvxleak.kernel.many import Balls, Many
from cvxleak.kernel.numbers import precision


@pytest.fixture(autouse=True)
def _in_balls():
    with precision(), np.errstate(all="ignore"):
        yield


def balls(values):
    return [arb(float(x)) for x in values]


def test_support_is_the_linear_program():
    rng = np.random.default_rng(0)
    for _ in range(30):
        row = rng.dirichlet(np.full(5, 0.7))
        low = np.maximum(row - rng.uniform(0, 0.2, 5), 0)
        high = np.minimum(row + rng.uniform(0, 0.2, 5), 1)
        x = rng.normal(size=5)
        ends = list(zip(low, high, strict=True))
        best = -linprog(-x, A_eq=np.ones((1, 5)), b_eq=[1.0], bounds=ends).fun
        exact = support(*map(Balls.of, (low, high, x)))
        assert float(exact.mid()) == pytest.approx(best, abs=1e-9)
        many = support(*(Many(values[:, None]) for values in (low, high, x)))
        assert float(many.m[0]) == pytest.approx(best, abs=1e-9)


def test_the_contraction_is_that_of_the_farthest_pair_of_rows():
    rng = np.random.default_rng(0)
    for outputs, groups in ((2, 2), (5, 7), (40, 20)):
        rows = rng.dirichlet(np.full(outputs, 0.3), groups)
        roots = np.sqrt(rows)
        found = contraction([balls(row) for row in rows])
        assert float(found.mid()) == pytest.approx(1 - (roots @ roots.T).min() ** 2, abs=1e-12)
        v, w = rng.dirichlet(np.full(groups, 0.2), (2, 300)) + 1e-9
        v, w = (x / x.sum(axis=1, keepdims=True) for x in (v, w))
        after = rel_entr(v @ rows, w @ rows).sum(axis=1)
        assert (after <= float(found.mid()) * rel_entr(v, w).sum(axis=1) + 1e-9).all()
    # No more than 1, however little rows have in common.
    for other in (0.0, 1e-70, 1e-90):
        assert contraction([balls([1, other]), balls([other, 1])]) < 1 + 1e-15
    assert contraction([balls([1])]).contains(0)
