"""Ascents against closed forms and adversaries at random; lower ends as the kernel proves them."""

import math

import numpy as np
import pytest
from scipy.special import entr

from cvxleak.audit.worst_adversary.adversary_class import AdversaryClass
from cvxleak.audit.worst_adversary.ascent import Ascent
from cvxleak.kernel.numbers import lower, precision
from cvxleak.mechanisms import binary_symmetric, random_rounding
from cvxleak.model import (
    ChannelSet,
    Expectation,
    Gini,
    Guess,
    KnownMarginals,
    Mechanism,
    RecordSpace,
    RelativeEntropyBall,
)
from cvxleak.model.gain_form import LEAKAGE, GainForm
from cvxleak.queries import count, parity
from tests.audit.worst_adversary.statements import stated

ROUNDING = Mechanism(count(4), random_rounding(4, 3))
TABLE = Mechanism.from_channel(
    RecordSpace([(0, 1), (0, 1, 2)]), np.random.default_rng(0).dirichlet(np.ones(3), size=6)
)


def h(p: float) -> float:
    return float(entr([p, 1 - p]).sum())


def never() -> bool:
    return False


def climbed(one) -> tuple[Ascent, float]:
    """Return an ascent, and the lower end that the kernel proves from it."""
    ascent = Ascent(one.group, AdversaryClass(one.group), np.random.default_rng(0))
    ascent.climb(None, never)
    _, term = ascent.point(one.statement, 0)
    with precision():
        return ascent, lower(one.statement.lower(term))


@pytest.mark.parametrize("n", [3, 30])
def test_parity_of_known_marginals_has_its_closed_form(n):
    one = stated(Mechanism(parity(n), binary_symmetric(0.1)), 0.0, known=KnownMarginals([0.9, 0.1]))
    ascent, proved = climbed(one)
    truth = h(0.9 * 0.1 + 0.1 * 0.9) - h(0.1)
    assert proved == pytest.approx(truth, rel=1e-7)
    assert ascent.value == pytest.approx(proved, rel=1e-9)


def test_without_a_floor_one_group_for_each_value_is_found_at_once():
    one = stated(Mechanism(count(60), random_rounding(60, 3)), 0.0)
    ascent = Ascent(one.group, AdversaryClass(one.group), np.random.default_rng(0))
    assert ascent.climb(None, lambda: True) == pytest.approx(math.log(2), abs=1e-9)


CASES = {
    "leakage": (ROUNDING, 2.0, LEAKAGE, ()),
    "ball": (TABLE, 1.0, LEAKAGE, RelativeEntropyBall(0.2, laws=[[0.5, 0.5], [0.2, 0.3, 0.5]])),
    "expectation": (TABLE, 1.0, LEAKAGE, Expectation(lambda v: v % 2, equals=0.4)),
    "guess": (ROUNDING, 2.3, GainForm(Guess(), "rise"), ()),
    "guess, factor": (ROUNDING, 2.3, GainForm(Guess(), "factor"), ()),
    "Gini": (TABLE, 1.6, GainForm(Gini(), "rise"), ()),
    "Gini, factor": (TABLE, 1.6, GainForm(Gini(), "factor"), ()),
}


@pytest.mark.parametrize("name", CASES)
def test_nobody_at_random_gains_more(name):
    mechanism, floor, told, known = CASES[name]
    one = stated(mechanism, floor, told, known)
    ascent, proved = climbed(one)
    assert ascent.value == pytest.approx(proved, rel=1e-9)
    # The class's own way in, so that equations are met.
    adversaries, rng = ascent.adversaries, np.random.default_rng(1)
    for start in rng.dirichlet(np.full(len(ascent.weights), 0.3), size=30):
        weights, _ = adversaries.written(adversaries.meet(start))
        assert (one.attained(weights) or 0.0) <= proved + 1e-12


def test_the_multiplier_is_the_slope_in_the_floor():
    values = {}
    for floor in (1.99, 2.0, 2.01):
        ascent, values[floor] = climbed(stated(ROUNDING, floor))
    slope = (values[1.99] - values[2.01]) / 0.02
    ascent, _ = climbed(stated(ROUNDING, 2.0))
    assert ascent.multiplier == pytest.approx(slope, rel=1e-2)


def test_over_a_set_of_channels_the_lower_end_is_that_of_every_member():
    ends = [np.asarray(binary_symmetric(flip)) for flip in (0.1, 0.2)]
    noise = ChannelSet(np.minimum(*ends), np.maximum(*ends))
    ascent, proved = climbed(stated(Mechanism(parity(3), noise), 1.0))
    attained = [math.log(2) - h(flip) for flip in (0.1, 0.2)]
    assert ascent.value == pytest.approx(attained[0], rel=1e-7)
    assert 0.9 * attained[1] < proved <= attained[1]
