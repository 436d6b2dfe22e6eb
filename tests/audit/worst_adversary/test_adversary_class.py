"""Adversary classes: the center, the way in, and what a file holds, as the kernel judges it."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import entr

from cvxleak.audit.worst_adversary.adversary_class import AdversaryClass
from cvxleak.core.errors import InfeasibleError
from cvxleak.kernel.leakage import check_adversary
from cvxleak.kernel.numbers import law, precision, proved
from cvxleak.mechanisms import binary_symmetric, random_rounding
from cvxleak.model import Expectation, KnownMarginals, Mechanism, RecordSpace, RelativeEntropyBall
from cvxleak.queries import count, parity
from tests.audit.worst_adversary.statements import stated

ONE = Mechanism(parity(1), binary_symmetric(0.1))
PARITY = Mechanism(parity(3), binary_symmetric(0.1))
COUNT = Mechanism(count(6), random_rounding(6, 3))
LAWS = [0.2, 0.3, 0.5]
TABLE = Mechanism.from_channel(
    RecordSpace([(0, 1), (0, 1, 2)]), np.random.default_rng(0).dirichlet(np.ones(3), size=6)
)


def both(x: int, y: int) -> float:
    return float(x == 1 and y > 0)


CLASSES = {
    "floor": (TABLE, 1.5, ()),
    "inequality": (TABLE, 1.3, Expectation(both, records=(0, 1), at_most=0.15)),
    "equation": (TABLE, 1.3, Expectation(both, records=(0, 1), equals=0.4)),
    "far from uniform": (
        Mechanism(parity(150), binary_symmetric(0.1)),
        0.0,
        KnownMarginals([0.9, 0.1]),
    ),
    "small unit": (TABLE, 1.3, Expectation(np.arange(6) * 2.0**-100, (0, 1), equals=2.0**-100)),
    "large unit": (TABLE, 1.3, Expectation([0, 1e200], records=0, at_most=3e199)),
    "ball": (TABLE, 1.3, RelativeEntropyBall(0.1, laws=[[0.5, 0.5], LAWS])),
    "ball of one": (TABLE, 0.0, RelativeEntropyBall(0.0, laws=[[0.5, 0.5], LAWS])),
    "ball of little": (TABLE, 0.0, RelativeEntropyBall(1e-6, laws=[[0.5, 0.5], LAWS])),
    "equation and ball": (
        TABLE,
        0.5,
        [KnownMarginals(LAWS, records=1), RelativeEntropyBall(0.1, laws=[[0.6, 0.4], LAWS])],
    ),
    "zeros": (
        COUNT,
        0.0,
        [
            Expectation(lambda v: v, at_most=2.0),
            Expectation(lambda x, y: x + y, (1, 2), at_least=1.5),
        ],
    ),
    "implied": (
        TABLE,
        1.2,
        [KnownMarginals([0.9, 0.1], 0), Expectation(lambda x: x, records=0, at_most=0.1)],
    ),
    "one prior": (PARITY, 3 * math.log(2), KnownMarginals([0.5, 0.5])),
}


@pytest.mark.parametrize("name", CLASSES)
def test_what_is_written_is_an_adversary_near_to_what_was_asked_for(name):
    mechanism, floor, known = CLASSES[name]
    one = stated(mechanism, floor, known=known)
    adversaries = AdversaryClass(one.group)
    rng = np.random.default_rng(0)
    for start in rng.dirichlet(np.full(len(adversaries.center), 0.3), size=5):
        found = adversaries.meet(start)
        weights, held = adversaries.written(found)
        assert np.abs(weights - found).max() < (1e-12 if name != "ball of one" else 1e-6)
        with precision():
            check_adversary(one.group.view, law([proved(x) for x in held]))


def test_who_is_an_adversary_stays_and_who_is_not_goes_as_far_as_needed():
    one = stated(TABLE, 1.5)
    adversaries = AdversaryClass(one.group)
    np.testing.assert_allclose(adversaries.meet(adversaries.center), adversaries.center)
    moved = adversaries.meet(np.eye(6)[0])
    assert float(entr(moved).sum()) == pytest.approx(1.5)
    known = Expectation(both, records=(0, 1), at_most=0.15)
    limited = AdversaryClass(stated(TABLE, 0.0, known=known).group)
    limit = limited.group.limits.coefficients[0]
    assert limit @ limited.center < 0.15 - 1e-3
    assert limit @ limited.meet(limit / limit.sum()) == pytest.approx(0.15)


def test_equations_of_decimals_are_met_exactly():
    """One prior meets each; in floats it is off."""
    rng = np.random.default_rng(3)
    for _ in range(20):
        low, high = (Fraction(int(n), 1000) for n in rng.choice(999, 2, replace=False) + 1)
        share = Fraction(int(rng.integers(1, 1000)), 1000)
        side = str(share * low + (1 - share) * high)
        known = Expectation([str(low), str(high)], records=0, equals=side)
        adversaries = AdversaryClass(stated(ONE, 0.0, known=known).group)
        _, held = adversaries.written(adversaries.center)
        assert list(map(Fraction, held)) == [share, 1 - share]


@pytest.mark.parametrize(
    ("known", "floor", "message"),
    [
        (Expectation(both, records=(0, 1), at_least=1.5), 0.0, r"at least 0\.5"),
        (KnownMarginals([0.9, 0.1], records=0), 1.6, r"has more than 1\.42369"),
        (RelativeEntropyBall(0.01, prior=[0.3, 0.1, 0.2, 0.1, 0.2, 0.1]), 1.79, r"least 0\.0185"),
        (
            [
                KnownMarginals([2 / 3, 1 / 3], records=0),
                Expectation(lambda x: x, records=0, equals=0.3333333333333333),
            ],
            1.2,
            "up to rounding",
        ),
    ],
)
def test_empty_classes_are_refused_with_the_number(known, floor, message):
    with pytest.raises(InfeasibleError, match=message):
        AdversaryClass(stated(TABLE, floor, known=known).group)
