"""Tangents in floats, made by hand: each number against its formula, and on its proper side."""

import numpy as np
import pytest
from cvxleak.proofs.bounds.tangents import contraction, heights
from flint import arb

from cvxleak.core.errors import CertificateError
from cvxleak.exact import balls
from cvxleak.model import Lumped
from cvxleak.proofs.bounds import outputs, tangents
from cvxleak.proofs.bounds.outputs import merged_floats, merged_rows

ROWS = np.array([[0.5, 0.25, 0.25, 0.0], [0.125, 0.5, 0.375, 0.0], [0.0, 0.75, 0.25, 0.0]])
T = np.array([0.25, 0.25, 0.5, 2.0**-901])
WEIGHTS = np.array([0.5, 1.0, 0.25])

pytestmark = pytest.mark.usefixtures("balls_of_the_checker")


def exact_heights(rows, t, weights):
    q = [balls.dot(map(arb, weights.tolist()), map(arb, column)) for column in rows.T.tolist()]
    slopes = [(x / arb(y)).log() if x > 0 else arb(0) for x, y in zip(q, t.tolist(), strict=True)]
    return [balls.dot(map(arb, row), slopes) for row in rows.tolist()]


def problem(rows):
    return Lumped(
        [0], range(len(rows[0])), [0] * len(rows), rows, [1] * len(rows), [()] * len(rows)
    )


@pytest.mark.parametrize("seed", range(4))
def test_heights_are_above_the_exact_ones_by_little(seed):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(9, 0.2), size=30)
    weights, t = 10.0 ** -rng.uniform(0, 200, 30), 10.0 ** -rng.uniform(0, 200, 9)
    exact = exact_heights(rows, t, weights)
    for found, height in zip(heights(rows, t, weights).tolist(), exact, strict=True):
        assert arb(found) > height
        assert arb(found) < height + 1e-9


def test_what_rounding_is_allowed(monkeypatch):
    exact = np.array([float(x) for x in exact_heights(ROWS, T, WEIGHTS)])
    # Of the output that no row has neither q nor t counts.
    q, t = (WEIGHTS @ ROWS)[:3], T[:3]
    sizes = ROWS[:, :3] @ (2 + np.abs(np.log(q)) + np.abs(np.log(t)))
    roots = np.sqrt(ROWS)
    least = (roots @ roots.T).min()
    monkeypatch.setattr(tangents, "UNIT_ROUNDOFF", 1e-4)
    assert heights(ROWS, T, WEIGHTS) - exact == pytest.approx(2 * (3 + 8 + 64) * 1e-4 * sizes)
    assert contraction(ROWS) == pytest.approx(1 - (least * (1 - 48e-4)) ** 2 + 4e-4)


def test_the_contraction_is_above_the_exact_one():
    rng = np.random.default_rng(0)
    for outputs_, groups in ((2, 2), (5, 7), (40, 20)):
        rows = rng.dirichlet(np.ones(outputs_), size=groups)
        least = balls.least(
            balls.dot((arb(p).sqrt() for p in one), (arb(q).sqrt() for q in other))
            for one in rows.tolist()
            for other in rows.tolist()
        )
        assert 1 - least**2 < arb(contraction(rows)) < 1 - least**2 + 1e-12
    assert contraction(np.eye(2)) == 1.0
    assert contraction(np.ones((1, 1))) == pytest.approx(0.0, abs=1e-13)
    # What rows have in common may be as good as nothing.
    assert contraction(np.array([[1.0, 2.0**-1000], [2.0**-1000, 1.0]])) == 1.0


def test_pairs_past_the_limit_are_not_compared(monkeypatch):
    monkeypatch.setattr(tangents, "PAIRS_LIMIT", 9)
    assert contraction(ROWS) < 1
    monkeypatch.setattr(tangents, "PAIRS_LIMIT", 8)
    assert contraction(ROWS) == 1.0


@pytest.mark.parametrize(
    ("t", "weights", "reason"),
    [
        (T, [0.5, 1.0, 0.0], "does not fit"),
        (T, [0.5, 1.0, -0.5], "does not fit"),
        (T, [0.5, 1.5, 0.5], "does not fit"),
        (T, [0.5, 1.0, np.nan], "does not fit"),
        ([0.25, 1.5, 0.5, 0.5], WEIGHTS, "does not fit"),
        ([0.25, np.nan, 0.5, 0.5], WEIGHTS, "does not fit"),
        ([2.0**-901, 0.5, 0.5, 0.5], WEIGHTS, "probability that is too small"),
        (T, [2.0**-901, 2.0**-901, 1.0], "probability that is too small"),
    ],
)
def test_what_heights_refuse(t, weights, reason):
    with pytest.raises(CertificateError, match=reason):
        heights(ROWS, np.array(t), np.array(weights))
    assert np.isfinite(heights(ROWS, T, WEIGHTS)).all()
    # 1 is a weight, and the smallest number whose logarithm is known one as well.
    assert np.isfinite(heights(np.ones((1, 1)), np.ones(1), np.array([2.0**-900]))).all()


def test_merged_rows_in_floats():
    merged = problem([[0.25, 0.25, 0.0, 0.5], [0.125, 0.125, 0.0, 0.75], [0.0, 0.0, 0.0, 1.0]])
    parts = [[3], [1, 2, 0]]
    rows, slack = merged_floats(merged, parts)
    exact, none = merged_rows(merged, parts)
    assert rows.tolist() == [[float(x) for x in row] for row in exact]
    assert none == 0
    assert 0 <= float(slack.upper()) < 1e-14
    assert merged_floats(merged, [[3], [1], [0], [2]])[1] == 0
    for group in ([0, 3], [3, 0]):
        with pytest.raises(CertificateError, match="not proportional"):
            merged_floats(merged, [group, [1], [2]])
    for wrong in ([[0], [1], [2]], [[0, 1], [1], [2], [3]]):
        with pytest.raises(CertificateError):
            merged_floats(merged, wrong)


def test_what_merging_hides(monkeypatch):
    costly = problem([[0.25, 0.5, 0.25], [0.125, 0.125, 0.75]])
    _, slack = merged_floats(costly, [[0, 1], [2]])
    _, exact = merged_rows(costly, [[0, 1], [2]])
    assert exact < slack < exact + 1e-13
    monkeypatch.setattr(outputs, "UNIT_ROUNDOFF", 1e-4)
    _, slack = merged_floats(costly, [[0, 1], [2]])
    assert float(slack) == pytest.approx(float(exact) + np.log(1 + 24e-4))
