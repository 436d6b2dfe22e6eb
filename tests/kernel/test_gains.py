"""Gains: values of measures, linear functions below them, and how they are read."""

import math

import numpy as np
import pytest
from flint import arb, fmpq

from cvxleak.kernel.gains import mean, power, read_gain
from cvxleak.kernel.numbers import RefusedError, precision
from cvxleak.model import Arimoto, GainMatrix, Gini, Guess, GuessInTries, Shannon

GAINS = [Shannon(), Guess(), GuessInTries(2), GainMatrix([[2, -1, 0], [0, "1/3", 1]])]
GAINS += [Gini(), Arimoto(2.5), Arimoto(math.inf)]


@pytest.fixture(autouse=True)
def _in_balls():
    with precision():
        yield


def balls(values):
    return [arb(float(x)) for x in values]


@pytest.mark.parametrize("gain", GAINS, ids=str)
def test_values_are_those_of_the_model_and_linear_functions_are_below(gain):
    found = read_gain(gain.to_dict(), 3)
    rng = np.random.default_rng(2)
    for law, other in rng.dirichlet(np.full(3, 0.7), (20, 2)):
        # A measure of any size: the gain is homogeneous.
        measure = 3 * other
        value = found.value(balls(measure))
        assert float(value.mid()) == pytest.approx(float(gain.value(measure)), abs=1e-12)
        r = balls(law)
        mass = sum(r, arb(0))
        points = [] if found.linear else [[x / mass for x in r]]
        slopes = found.tangents(points)
        below = [sum(x * y for x, y in zip(own, balls(measure), strict=True)) for own in slopes]
        assert all(x < value + 1e-30 for x in below)
        if points:
            assert np.allclose([float(x.mid()) for x in slopes[0]], gain.tangent(law), atol=1e-12)
            touching = sum(x * y for x, y in zip(slopes[0], points[0], strict=True))
            assert abs(touching - found.value(points[0])) < 1e-30
        else:
            assert max(float(x.mid()) for x in below) == pytest.approx(float(value.mid()))


@pytest.mark.parametrize("gain", GAINS, ids=str)
def test_values_of_wide_balls_enclose_those_inside(gain):
    found = read_gain(gain.to_dict(), 3)
    wide = found.value([arb(0.2, 0.1), arb(0.3, 0.15), arb(0.4, 0.05)])
    for point in ([0.1, 0.15, 0.35], [0.3, 0.45, 0.45], [0.3, 0.15, 0.4]):
        assert wide.contains(found.value(balls(point)))


def test_powers_of_balls_that_touch_0():
    for ball in (arb(0.125, 0.125), arb("-0.01").union(arb("0.25"))):
        found = power(ball, fmpq(1, 2))
        assert found.contains(arb("0.5"))
        assert found.contains(arb(0))
        assert found < 0.6
    assert power(arb(0), fmpq(1, 2)) == 0
    with pytest.raises(RefusedError, match="negative"):
        power(arb(-1), fmpq(1, 2))


def test_values_at_corners_and_without_mass():
    for gain in GAINS:
        found = read_gain(gain.to_dict(), 3)
        corner = found.value([arb(1), arb(0), arb(0)])
        assert float(corner) == pytest.approx(float(gain.value([1, 0, 0])))
        assert found.value([arb(0)] * 3) == 0
    # The logarithm of a probability 0 proves nothing.
    slopes = read_gain({"kind": "shannon"}, 2).tangents([[arb(1), arb(0)]])
    assert not slopes[0][1].is_finite()


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"kind": ["guess"]},
        {"kind": "guess", "tries": 2},
        {"kind": "tries", "tries": 0},
        {"kind": "tries", "tries": True},
        {"kind": "tries", "tries": 2.0},
        {"kind": "matrix", "table": []},
        {"kind": "matrix", "table": [[1, 0]]},
        {"kind": "matrix", "table": [[1, 0, math.inf]]},
        {"kind": "matrix", "table": [[1, 0, True]]},
        {"kind": "arimoto", "alpha": 1},
        {"kind": "arimoto", "alpha": 0.5},
        {"kind": "arimoto", "alpha": math.nan},
        {"kind": "own"},
    ],
)
def test_what_is_no_gain_is_refused(data):
    with pytest.raises(RefusedError):
        read_gain(data, 3)


def test_means_need_a_weight_for_each_tangent():
    guess, gini = (read_gain({"kind": kind}, 3) for kind in ("guess", "gini"))
    assert [float(x) for x in mean(guess, balls([0.25, 0.25, 0.5]), [])] == [0.25, 0.25, 0.5]
    for gain, theta, points in ((guess, [1], []), (guess, [1] * 3, [[1] * 3]), (gini, [], [])):
        with pytest.raises(RefusedError):
            mean(gain, balls(theta), [balls(p) for p in points])
