"""Capacities and Rényi capacities: closed forms, brute force, forged terms."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak.audit.old_terms_claims import terms_of
from cvxleak.capacities import capacity, renyi_capacity
from cvxleak.kernel.capacity import Capacity, RenyiCapacity
from cvxleak.kernel.numbers import RefusedError, lower, precision, upper
from cvxleak.model import ChannelSet

few = settings(max_examples=25, deadline=None)

BSC = [[0.9, 0.1], [0.1, 0.9]]


def close(t, **more):
    golden = {"rule": "golden", "t": t}
    return {"rule": "close", "multiplier": 0, "limits": [], "of": golden, **more}


def ends(kind, problem, below, above):
    with precision():
        statement = kind.read(problem)
        return lower(statement.lower(below)), upper(statement.upper(above))


@st.composite
def tables(draw, rows=3, columns=3):
    weights = st.lists(st.integers(0, 9), min_size=columns, max_size=columns).filter(any)
    return [
        [f"{x}/{sum(row)}" for x in row]
        for row in draw(st.lists(weights, min_size=rows, max_size=rows))
    ]


def floats(table):
    return np.array([[float(Fraction(x)) for x in row] for row in table])


def information(p, q, alpha):
    """Sibson's information, by its definition."""
    if math.isinf(alpha):
        return math.log(q[p > 0].max(axis=0).sum())
    if alpha == 1:
        s = p @ q
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.nansum(p[:, None] * q * np.log(q / s)))
    powers = np.where(q > 0, q, 1) ** alpha * (q > 0)
    return alpha / (alpha - 1) * math.log(((p @ powers) ** (1 / alpha)).sum())


def test_a_symmetric_channel_has_the_capacity_of_the_textbook():
    low, high = ends(
        Capacity, {"matrix": BSC}, {"rule": "point", "weights": [1, 1]}, close([0.5, 0.5])
    )
    truth = math.log(2) + 0.9 * math.log(0.9) + 0.1 * math.log(0.1)
    assert low <= truth <= high
    assert high - low < 1e-15
    low, high = ends(
        RenyiCapacity,
        {"matrix": BSC, "alpha": 2},
        {"rule": "point", "weights": [1, 1]},
        {"rule": "order", "t": [1, 1]},
    )
    truth = math.log(2) + math.log(0.9**2 + 0.1**2)
    assert low <= truth <= high
    assert high - low < 1e-15


def test_order_one_is_the_capacity_and_infinity_the_sum_of_the_largest():
    with precision():
        assert isinstance(RenyiCapacity.read({"matrix": BSC, "alpha": 1.0}), Capacity)
    low, high = ends(
        RenyiCapacity,
        {"matrix": BSC, "alpha": "inf"},
        {"rule": "point", "weights": [0.3, 0.7]},
        {"rule": "order", "t": [0.5, 0.5]},
    )
    assert low <= math.log(1.8) <= high


@few
@given(tables(), st.sampled_from([0.3, 1, 1.7, 5.0, math.inf]), st.integers(0, 2**32 - 1))
def test_every_input_is_between_what_is_proved(table, alpha, seed):
    rng = np.random.default_rng(seed)
    p, t = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3))
    q = floats(table)
    problem = {"matrix": table, "alpha": "inf" if math.isinf(alpha) else alpha}
    above = close(t.tolist()) if alpha == 1 else {"rule": "order", "t": t.tolist()}
    below = {"rule": "point", "weights": p.tolist()}
    low, high = ends(RenyiCapacity, problem, below, above)
    assert low == pytest.approx(information(p, q, alpha), abs=1e-9)
    for other in rng.dirichlet(np.ones(3), size=20):
        assert information(other, q, alpha) <= high + 1e-12


@pytest.mark.parametrize("alpha", [0.5, 2, math.inf, 1])
def test_bounds_are_those_of_today(alpha):
    table = [["7/10", "2/10", "1/10"], ["1/10", "0", "9/10"], ["1/3", "1/3", "1/3"]]
    bound = renyi_capacity(table, alpha)
    parts = json.loads(
        json.dumps(
            [
                dict(x)
                for x in (
                    bound.certificate.problem,
                    bound.certificate.witness,
                    bound.certificate.proof,
                )
            ]
        )
    )
    below, above = terms_of(bound.certificate.kind, *parts)
    kind = Capacity if bound.certificate.kind == "capacity" else RenyiCapacity
    low, high = ends(kind, parts[0], below, above)
    assert bound.lower - 1e-15 <= low <= high <= bound.upper + 1e-15


def test_a_set_of_channels():
    channels = ChannelSet([[0.6, 0.1], [0.1, 0.7]], [[0.9, 0.4], [0.3, 0.9]])
    bound = capacity(channels)
    certificate = bound.certificate
    parts = json.loads(json.dumps([certificate.problem, certificate.witness, certificate.proof]))
    below, above = terms_of("capacity", *parts)
    low, high = ends(Capacity, parts[0], below, above)
    assert high <= bound.upper + 1e-12
    assert low >= bound.lower - 1e-9
    rng = np.random.default_rng(1)
    p = floats([below["weights"]])[0]
    most = []
    for x, y in zip(rng.uniform(0.6, 0.9, 200), rng.uniform(0.1, 0.3, 200), strict=True):
        q = np.array([[x, 1 - x], [y, 1 - y]])
        assert information(p, q, 1) >= low
        most.append(max(information(np.array([w, 1 - w]), q, 1) for w in np.linspace(0, 1, 51)))
    assert max(most) <= high


FORGED = [
    (Capacity, {"matrix": BSC}, close([1]), "t: 1 numbers"),
    (Capacity, {"matrix": BSC}, close([0.5, 0.5], multiplier=-1), "below 0"),
    (Capacity, {"matrix": BSC}, {"rule": "alphabet"}, "gives J, where B"),
    (Capacity, {"matrix": BSC, "more": 1}, close([1, 1]), "it has no more"),
    (Capacity, {"matrix": [[0.9, 0.2], [0.1, 0.9]]}, close([1, 1]), "does not sum to 1"),
    (Capacity, {"matrix": [[0.9, 0.1], [1]]}, close([1, 1]), "1 entries, where 2"),
    (RenyiCapacity, {"matrix": BSC, "alpha": 0}, {}, "not positive"),
    (RenyiCapacity, {"matrix": BSC, "alpha": -2}, {}, "not positive"),
    (RenyiCapacity, {"matrix": BSC, "alpha": 2}, {"rule": "order", "t": [1]}, "1 entries"),
    (RenyiCapacity, {"matrix": BSC, "alpha": 2}, {"rule": "order", "t": [1, 0]}, "t is 0 where"),
    (RenyiCapacity, {"matrix": BSC, "alpha": "inf"}, {"rule": "order", "t": [1, 0]}, "t is 0"),
    (RenyiCapacity, {"matrix": BSC, "alpha": 2}, {"rule": "order", "t": [2, -1]}, "negative"),
    (RenyiCapacity, {"matrix": BSC, "alpha": 2}, {"rule": "golden", "t": [1, 1]}, "no such rule"),
    (
        RenyiCapacity,
        {"matrix": [[1, 0], [0, 1]], "alpha": 0.5},
        {"rule": "order", "t": [1, 0]},
        "no output in common",
    ),
]


@pytest.mark.parametrize(("kind", "problem", "term", "message"), FORGED)
def test_forged_upper_ends_are_refused(kind, problem, term, message):
    with precision(), pytest.raises(RefusedError, match=message):
        kind.read(problem).upper(term)


@pytest.mark.parametrize(
    ("weights", "message"), [([1], "1 entries"), ([2, -1], "negative"), ([0, 0], "sum of 0")]
)
def test_forged_inputs_are_refused(weights, message):
    term = {"rule": "point", "weights": weights}
    with precision():
        for statement in (
            Capacity.read({"matrix": BSC}),
            RenyiCapacity.read({"matrix": BSC, "alpha": 2}),
        ):
            with pytest.raises(RefusedError, match=message):
                statement.lower(term)
            with pytest.raises(RefusedError, match="it has no"):
                statement.lower({**term, "group": 0})
