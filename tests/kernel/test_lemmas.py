"""What several rules use: against linear programs, eigenvalues and examples where it is sharp."""

import numpy as np
import pytest
from flint import arb
from scipy.optimize import linprog
from scipy.special import rel_entr

from cvxleak.kernel.lemmas import contraction, contracts, support
from cvxleak.kernel.many import Balls, Many, stacked
from cvxleak.kernel.numbers import RefusedError, precision


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


SYMMETRIC = [[0.9, 0.1], [0.1, 0.9]]


def fits(eta, w, rows=SYMMETRIC, lo=(0.5, 0.5), hi=(0.5, 0.5), number=arb):
    given = [stacked([number(float(x)) for x in own]) for own in (*rows, lo, hi, w)]
    try:
        low, high, law = given[-3:]
        found = contracts(stacked(given[:-3]), low, high, law, number(float(eta)))
    except RefusedError:
        return False
    return bool(Many.of(found).certain()) if number is Many else True


@pytest.mark.parametrize("number", [arb, Many])
def test_a_box_contracts_as_its_curvature_says(number):
    # A binary symmetric channel brings laws near the even one together by (1 - 2 p)^2.
    for share, enough in ((1 - 1e-9, False), (1 + 1e-9, True)):
        assert fits(share * 0.64, [0.5, 0.5], number=number) is enough
        # A law elsewhere counts: all between has to be as concave.
        assert not fits(share * 0.64, [0.25, 0.75], number=number)
    # Where an output may have probability 0 there is no bound on the curvature.
    rows, whole = [[1, 0], [0.5, 0.5]], ((0, 0), (1, 1))
    assert not fits(9, [0.5, 0.5], rows, *whole, number=number)
    assert fits(9, [0.5, 0.5], rows, (0, 0.25), (0.75, 1), number=number)


@pytest.mark.parametrize("seed", range(3))
def test_a_box_contracts_as_the_eigenvalues_say(seed):
    rng = np.random.default_rng(seed)
    for _ in range(10):
        n, outputs = rng.integers(2, 5, 2)
        rows, center = rng.dirichlet(np.ones(outputs), n), rng.dirichlet(np.ones(n))
        low, high = 0.8 * center, np.minimum(1.2 * center, 1)
        w = rng.dirichlet(np.ones(n))
        box = {"A_eq": np.ones((1, n)), "b_eq": [1.0], "bounds": np.stack([low, high], axis=1)}
        q = np.minimum([linprog(column, **box).fun for column in rows.T], w @ rows)
        h = np.sqrt(np.maximum(high, w))
        b = h[:, None] * rows / np.sqrt(q)
        eta = np.linalg.eigvalsh(b @ b.T - 100 * np.outer(h, h))[-1]
        assert fits(eta * (1 + 1e-6) + 1e-9, w, rows, low, high)
        assert not fits(eta * (1 - 1e-6) - 1e-9, w, rows, low, high)
