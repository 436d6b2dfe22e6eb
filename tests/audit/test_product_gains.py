"""Gains about independent people: brute force, known capacities, and what is refused."""

from itertools import product

import numpy as np
import pytest

from cvxleak.audit import ProductLeakage, product_leakage
from cvxleak.capacities import additive_bayes_capacity
from cvxleak.core.errors import ValidationError
from cvxleak.measures import gain_leakage
from cvxleak.mechanisms import random_rounding
from cvxleak.model import Arimoto, Gain, GainMatrix, Gini, Guess, Mechanism, RecordSpace, Shannon
from cvxleak.problem.bound import Status
from cvxleak.proofs import verify
from cvxleak.queries import count

ROUNDED = Mechanism(count(4), random_rounding(4, base=3))


def mixtures(vertices, steps):
    """Return a grid of mixtures of laws."""
    points = product(range(steps + 1), repeat=len(vertices))
    return [np.array(p) @ vertices / steps for p in points if sum(p) == steps]


def law_doubt(share):
    return -sum(p * np.log(p) for p in (share, 1 - share) if p)


def rows_of(mechanism, others):
    rows = mechanism.to_channel().matrix.reshape(*mechanism.space.shape, -1)
    for law in others:
        rows = np.tensordot(rows, law, axes=(1, 0))
    return rows / rows.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("form", ["posterior", "rise", "factor"])
@pytest.mark.parametrize("alphabets", [[(0, 1), (0, 1, 2), (0, 1)], [(0, 1, 2), (0, 1)]])
def test_known_laws_against_brute_force(alphabets, form):
    rng = np.random.default_rng(3)
    space = RecordSpace(alphabets)
    mechanism = Mechanism.from_channel(space, rng.dirichlet(np.ones(4), space.size))
    laws = [rng.dirichlet(np.ones(k), 2) for k in space.shape]
    k = space.shape[0]
    for gain in (Guess(), GainMatrix(rng.uniform(0.1, 1, (4, k)))):
        bound = product_leakage(mechanism, records=0, laws=laws, gain=gain, form=form)
        assert verify(bound.certificate)
        assert bound.status is Status.CERTIFIED
        best = max(
            gain_leakage(rows_of(mechanism, others), law / law.sum(), gain, form)
            for others in product(*(mixtures(v, 2) for v in laws[1:]))
            for law in mixtures(laws[0], 100)
        )
        assert best <= bound.upper + 1e-12
        assert best >= bound.lower - 5e-3
        found = bound.witness
        value = gain_leakage(rows_of(mechanism, found.laws[1:]), found.laws[0], gain, form)
        assert value == pytest.approx(bound.lower, abs=1e-9)
        if isinstance(gain, Guess) and form == "posterior":
            assert found.guess() == pytest.approx((max(found.laws[0]), bound.lower))


@pytest.mark.parametrize("k", [2, 3, 5])
def test_nobody_else_is_a_channel(k):
    channel = np.random.default_rng(k).dirichlet(np.full(6, 0.4), k)
    mechanism = Mechanism.from_channel(RecordSpace([tuple(range(k)), (0,)]), channel)
    bound, known = (
        product_leakage(mechanism, records=0, gain=Guess()),
        additive_bayes_capacity(channel),
    )
    assert bound.lower <= known.upper
    assert known.lower <= bound.upper
    assert bound.upper - bound.lower < 1e-12
    factor = product_leakage(mechanism, records=0, gain=Guess(), form="factor")
    assert factor.lower == pytest.approx(channel.max(axis=0).sum(), abs=1e-11)


def test_a_floor_on_each_record_is_a_least_probability():
    certain = product_leakage(ROUNDED, gain=Guess())
    doubted = product_leakage(ROUNDED, record_floor=0.3, gain=Guess())
    more = product_leakage(ROUNDED, record_floor=0.6, gain=Guess())
    assert more.upper < doubted.lower < doubted.upper < certain.lower
    assert law_doubt(doubted.witness.laws[1][0]) == pytest.approx(0.3, abs=1e-9)
    assert ProductLeakage(ROUNDED, record_floor=0.3, gain=Guess()).check(doubted.witness).value == (
        pytest.approx(doubted.lower, abs=1e-9)
    )


@pytest.mark.parametrize(("gain", "form"), [(Guess(), "rise"), (Guess(), "posterior")])
def test_a_floor_on_all_against_brute_force(gain, form):
    rng = np.random.default_rng(0)
    mechanism = Mechanism(count(2), rng.dirichlet(np.ones(3), 3))
    bound = product_leakage(mechanism, 1.0, gain=gain, form=form)
    assert verify(bound.certificate)
    shares = [(p, q) for p, q in product(np.linspace(0, 1, 41), repeat=2)]
    best = max(
        gain_leakage(rows_of(mechanism, [np.array([1 - q, q])]), [1 - p, p], gain, form)
        for p, q in shares
        if law_doubt(p) + law_doubt(q) >= 1
    )
    assert bound.lower - 2e-2 <= best <= bound.lower + 1e-6
    assert bound.lower <= bound.upper <= bound.lower + 0.03


def test_contexts_close_a_low_floor():
    mechanism = Mechanism(count(2), np.random.default_rng(0).dirichlet(np.ones(3), 3))
    bound = product_leakage(mechanism, 0.4, gain=Guess())
    assert bound.status is Status.CERTIFIED
    assert bound.certificate.proof == {"rule": "contexts"}
    assert bound.lower == pytest.approx(product_leakage(mechanism, gain=Guess()).lower, abs=1e-6)


def test_under_a_floor_on_all_the_best_contexts_are_tried():
    # Half of the attacked record's law, and of what another one's values may be: log 4 > 1.
    space = RecordSpace([(0, 1), (0, 1, 2), (0, 1, 2)])
    channel = np.random.default_rng(1).dirichlet(np.full(3, 0.3), space.size)
    mechanism = Mechanism.from_channel(space, channel)
    bound = product_leakage(mechanism, 1.0, 0, gain=Guess(), tol=0.9)
    halves = [law for law in mixtures(np.eye(3), 2) if max(law) < 1]
    others = [pair for a, b in product(np.eye(3), halves) for pair in ((a, b), (b, a))]
    values = [gain_leakage(rows_of(mechanism, p), [0.5, 0.5], Guess(), "rise") for p in others]
    assert max(values) <= bound.lower <= bound.upper


class Double(Gain):
    def value(self, laws):
        return 2 * np.max(laws, axis=-1)

    def tangent(self, laws):
        return 2 * np.eye(laws.shape[-1])[np.argmax(laws, axis=-1)]

    def rows(self, k):
        return 2 * np.eye(k)


def test_a_gain_of_ones_own_is_the_matrix_of_its_rows():
    own = product_leakage(ROUNDED, least_probability=0.1, gain=Double())
    guess = product_leakage(ROUNDED, least_probability=0.1, gain=Guess())
    assert own.lower == pytest.approx(2 * guess.lower, abs=1e-11)
    assert verify(own.certificate)
    mixed = Mechanism.from_channel(RecordSpace([(0, 1), (0, 1, 2)]), np.eye(6))
    with pytest.raises(ValidationError, match="name one record"):
        ProductLeakage(mixed, gain=Double())
    assert ProductLeakage(mixed, records=1, gain=Double()).gain.table.shape == (3, 3)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"gain": "guess"}, "gain: expected"),
        ({"gain": Guess(), "form": "most"}, "form: found 'most'"),
        ({"gain": Gini()}, "of independent records the gains"),
        ({"gain": Arimoto(2)}, "of independent records the gains"),
        ({"gain": Shannon(), "form": "factor"}, "not known to be positive"),
        (
            {"gain": Guess(), "form": "posterior"},
            "who already knows its value has the largest gain",
        ),
        ({"gain": GainMatrix([[1.0, 0.0]]), "form": "factor"}, "not known to be positive"),
        ({"gain": GainMatrix([[1.0, 0.0, 0.0]])}, "columns"),
        ({"entropy_floor": 1.0, "gain": Shannon(), "form": "factor"}, "not known to be positive"),
    ],
)
def test_refused(arguments, reason):
    with pytest.raises(ValidationError, match=reason):
        ProductLeakage(ROUNDED, **arguments)
