"""Classes of adversaries as the search sees them: what limits let in, and who is a member."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, fmpq

from cvxleak.core.errors import CertificateError
from cvxleak.exact.balls import precision
from cvxleak.model import Expectation, KnownMarginals, Mechanism, RelativeEntropyBall
from cvxleak.model.knowledge.binding import as_knowledge
from cvxleak.model.restricted import restrict
from cvxleak.proofs.bounds.adversary_class import (
    check_member,
    limits_of,
    reference_weights,
)
from cvxleak.queries import count, parity

ROWS = [[0.75, 0.25], [0.25, 0.75]]
LOG_2 = math.log(2)
BIT = Mechanism(parity(1), ROWS)
TWO = Mechanism(count(2), [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]])


def known(*knowledge, mechanism=BIT):
    return restrict(mechanism, (0,), as_knowledge(list(knowledge), mechanism.query))


def law(*numbers):
    return [fmpq(*pair) for pair in numbers]


AT_MOST = Expectation([0, 1], records=0, at_most=0.25)
AT_LEAST = Expectation([0, 1], records=0, at_least=0.25)
EQUAL = Expectation([0, 1], records=0, equals=0.25)
NEAR = RelativeEntropyBall(0.125, laws=[0.75, 0.25])
QUARTER, EIGHTH = law((3, 4), (1, 4)), law((7, 8), (1, 8))


@pytest.mark.parametrize(
    ("knowledge", "inside", "outside"),
    [
        (AT_MOST, [QUARTER, EIGHTH, law((1, 1), (0, 1))], [law((5, 8), (3, 8))]),
        (AT_LEAST, [QUARTER, law((0, 1), (1, 1))], [EIGHTH]),
        (EQUAL, [QUARTER], [EIGHTH, law((1, 2), (1, 2))]),
        (NEAR, [QUARTER, EIGHTH], [law((1, 4), (3, 4)), law((0, 1), (1, 1))]),
    ],
)
def test_members(knowledge, inside, outside):
    restricted = known(knowledge)
    with precision():
        for weights in inside:
            assert [float(w) for w in check_member(restricted, 0.0, weights)] == pytest.approx(
                [float(w) for w in weights]
            )
        for weights in outside:
            with pytest.raises(CertificateError, match=r"the witness (violates|is)"):
                check_member(restricted, 0.0, weights)
        for weights in (law((3, 4), (1, 8)), law((3, 2), (-1, 2)), law((3, 4), (1, 2))):
            with pytest.raises(CertificateError, match="weights are not a distribution"):
                check_member(restricted, 0.0, weights)
        with pytest.raises(CertificateError, match="below the floor"):
            check_member(restricted, 0.6, QUARTER)


def test_the_reference_itself_is_in_the_smallest_ball():
    with precision():
        for radius in (0.0, 1e-6, 2e-6):
            restricted = known(RelativeEntropyBall(radius, laws=[0.75, 0.25]))
            assert reference_weights(restricted.lumped, restricted.references[0]) == QUARTER
            if radius <= 1e-6:
                check_member(restricted, 0.0, QUARTER)
            with pytest.raises(CertificateError, match="from its reference"):
                check_member(restricted, 0.0, law((1, 2), (1, 2)))
        near = QUARTER[0] + fmpq(1, 10**3), QUARTER[1] - fmpq(1, 10**3)
        with pytest.raises(CertificateError, match="from its reference"):
            check_member(known(RelativeEntropyBall(0.0, laws=[0.75, 0.25])), 0.0, list(near))


def test_doubt_counts_the_datasets_of_a_group():
    restricted = known(
        Expectation([0, 1], records=0, at_most=0.9), mechanism=Mechanism(parity(4), ROWS)
    )
    even = [fmpq(1, 4)] * 4
    with precision():
        check_member(restricted, 4 * LOG_2 - 1e-9, even)
        with pytest.raises(CertificateError, match="below the floor"):
            check_member(restricted, 4 * LOG_2 + 1e-9, even)
        # So it does for the distance from a reference.
        ball = known(
            RelativeEntropyBall(1e-3, laws=[0.5, 0.5]), mechanism=Mechanism(parity(4), ROWS)
        )
        check_member(ball, 0.0, even)
        assert reference_weights(ball.lumped, ball.references[0]) == even


@pytest.mark.parametrize(
    "knowledge",
    [
        [AT_MOST],
        [AT_LEAST],
        [EQUAL],
        [NEAR],
        [KnownMarginals([0.7, 0.3], records=[0])],
        [RelativeEntropyBall(1.0, laws=[0.9, 0.1]), Expectation([0, 3], records=1, at_most=1.0)],
        [Expectation([0, 1e200], records=0, at_most=3e199)],
    ],
)
def test_limits_let_every_member_in(knowledge):
    restricted = known(*knowledge, mechanism=TWO)
    limits = limits_of(restricted)
    rng = np.random.default_rng(0)
    logs = np.log(restricted.lumped.multiplicities)
    seen = 0
    with precision():
        for _ in range(400):
            weights = [fmpq(int(n)) for n in rng.integers(0, 40, len(logs))]
            if not any(weights):
                continue
            weights = [w / sum(weights, fmpq(0)) for w in weights]
            try:
                w = np.array([float(x) for x in check_member(restricted, 0.0, weights)])
            except CertificateError:
                continue
            seen += 1
            doubt = -sum(x * math.log(x) for x in w if x) + w @ logs
            room = limits.bounds + limits.shares * doubt - limits.coefficients @ w
            assert (room >= -1e-12).all()
    assert seen or restricted.equations
    for j, reference in enumerate(
        restricted.references, len(limits.bounds) - len(restricted.references)
    ):
        with precision(300):
            for g, exact in enumerate(reference_weights(restricted.lumped, reference)):
                one = exact / restricted.lumped.multiplicities[g]
                price = arb(float(limits.coefficients[j, g]))
                assert price < -arb(one).log() < price + 1e-12
        assert limits.shares[j] == 1.0
    assert (limits.shares[: len(limits.bounds) - len(restricted.references)] == 0).all()
    # No limit is far from what it stands for: on either side for an equation.
    assert len(limits.bounds) == 2 * len(restricted.equations) + len(restricted.inequalities) + len(
        restricted.references
    )
    for j, one in enumerate(restricted.equations):
        first, second = limits.coefficients[2 * j : 2 * j + 2]
        assert np.array_equal(first, -second)
        size = np.abs(first).max()
        assert 0.5 <= size <= 1
        ratio = np.abs(np.array(one.coefficients)).max() / size
        assert limits.bounds[2 * j] * ratio == pytest.approx(float(one.side))
        assert -limits.bounds[2 * j + 1] * ratio == pytest.approx(float(one.side))


def test_limits_of_decimals_let_the_exact_members_in():
    """Floats stand for decimals that are a little more or less; the limits make up for it."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        low, high = (Fraction(int(n), 1000) for n in rng.choice(999, 2, replace=False) + 1)
        share = Fraction(int(rng.integers(1, 1000)), 1000)
        side = str(share * low + (1 - share) * high)
        restricted = known(Expectation([str(low), str(high)], records=0, equals=side))
        weights = [fmpq(x.numerator, x.denominator) for x in (share, 1 - share)]
        with precision():
            check_member(restricted, 0.0, weights)
        limits = limits_of(restricted)
        for row, bound in zip(limits.coefficients.tolist(), limits.bounds.tolist(), strict=True):
            left = sum(Fraction(c) * w for c, w in zip(row, (share, 1 - share), strict=True))
            assert left <= Fraction(bound) <= left + Fraction(1, 10**15)
