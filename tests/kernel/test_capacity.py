"""Capacities and Rényi capacities: closed forms, brute force, forged terms."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import rel_entr

from cvxleak.capacities import capacity
from cvxleak.kernel.capacity import Capacity, RenyiCapacity
from cvxleak.kernel.numbers import RefusedError, lower, precision, upper
from cvxleak.kernel.view import Row
from cvxleak.model import ChannelSet
from tests.proofs import forging
from tests.proofs.forging import Parts, encloses, proves_nothing_false, refused, tampered

few = settings(max_examples=25, deadline=None)

BSC = [[0.9, 0.1], [0.1, 0.9]]


def close(t, inputs=2, **more):
    share = {"rule": "share", "t": t, "values": [{"rule": "vertices"}] * inputs}
    return {"rule": "close", "multiplier": 0, "limits": [], "of": share, **more}


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
    above = close(t.tolist(), 3) if alpha == 1 else {"rule": "order", "t": t.tolist()}
    below = {"rule": "point", "weights": p.tolist()}
    low, high = ends(RenyiCapacity, problem, below, above)
    assert low == pytest.approx(information(p, q, alpha), abs=1e-9)
    for other in rng.dirichlet(np.ones(3), size=20):
        assert information(other, q, alpha) <= high + 1e-12


def test_a_set_of_channels():
    channels = ChannelSet([[0.6, 0.1], [0.1, 0.7]], [[0.9, 0.4], [0.3, 0.9]])
    bound = capacity(channels)
    made, low, high = bound.certificate, bound.lower, bound.upper
    assert made is not None
    below = made.witness
    assert ends(Capacity, made.problem, below, made.proof) == (low, high)
    rng = np.random.default_rng(1)
    p = floats([below["weights"]])[0]
    most = []
    for x, y in zip(rng.uniform(0.6, 0.9, 200), rng.uniform(0.1, 0.3, 200), strict=True):
        q = np.array([[x, 1 - x], [y, 1 - y]])
        assert information(p, q, 1) >= low
        most.append(max(information(np.array([w, 1 - w]), q, 1) for w in np.linspace(0, 1, 51)))
    assert max(most) <= high


FORGED = [
    (Capacity, {"matrix": BSC}, close([1]), "t: 1 entries"),
    (Capacity, {"matrix": BSC}, close([0.5, 0.5], multiplier=-1), "below 0"),
    (Capacity, {"matrix": BSC}, {"rule": "alphabet"}, "gives J, where B"),
    (Capacity, {"matrix": BSC, "more": 1}, close([1, 1]), "it has no more"),
    (Capacity, {"matrix": [[0.9, 0.2], [0.1, 0.9]]}, close([1, 1]), "does not sum to 1"),
    (Capacity, {"matrix": [[0.9, 0.1], [1]]}, close([1, 1]), "1 entries, where 2"),
    (RenyiCapacity, {"matrix": BSC, "alpha": 0}, {}, "not positive"),
    (RenyiCapacity, {"matrix": BSC, "alpha": 2, "more": 1}, {}, "it has no more"),
    (RenyiCapacity, {"matrix": BSC}, {}, "without alpha"),
    (RenyiCapacity, {"matrix": BSC, "alpha": -2}, {}, "not positive"),
    (RenyiCapacity, {"matrix": BSC, "alpha": 2}, {"rule": "order", "t": [1]}, "1 entries"),
    (RenyiCapacity, {"matrix": BSC, "alpha": 2}, {"rule": "order", "t": [2, -1]}, "negative"),
    (RenyiCapacity, {"matrix": BSC, "alpha": 2}, {"rule": "share", "t": [1, 1]}, "no such rule"),
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


# Parts of a certificate, tampered with ------------------------------------------------------------

ROWS = [[0.75, 0.25], [0.25, 0.75]]
ORDERS = [0.5, 1, 2, "inf"]


def least(alpha) -> arb:
    """Return the capacity of the symmetric channel `ROWS` in closed form."""
    if alpha == "inf":
        return arb(3).log() - arb(2).log()
    a, b = arb("0.25"), arb("0.75")
    if alpha == 1:
        return arb(2).log() + a * a.log() + b * b.log()
    order = arb(alpha)
    return arb(2).log() + (a**order + b**order).log() / (order - 1)


def symmetric(alpha, *, wide=False) -> Parts:
    """Return the proof of its capacity, `wide` with an output and an input that are of no use."""
    rows, p = (
        ([[0.75, 0.25, 0.0], [0.25, 0.75, 0.0], [0.5, 0.5, 0.0]], [0.5, 0.5, 0.0])
        if wide
        else (ROWS, [0.5, 0.5])
    )
    below = {"rule": "point", "weights": p}
    if alpha is None:
        return Parts("capacity", {"matrix": rows}, below, close(p, len(p)))
    above = close(p, len(p)) if alpha == 1 else {"rule": "order", "t": p}
    return Parts("renyi-capacity", {"matrix": rows, "alpha": alpha}, below, above)


def output(parts, t) -> Parts:
    """Return the parts with another distribution of the output."""
    inside = ("of", "t") if "of" in parts.proof else ("t",)
    return tampered(parts, {("proof", *inside): t})


CASES = [
    (symmetric(alpha, wide=wide), alpha) for alpha in [None, *ORDERS] for wide in (False, True)
]


@pytest.mark.parametrize(("parts", "alpha"), CASES)
def test_both_ends_enclose_the_closed_form_and_no_number_proves_too_much(parts, alpha):
    encloses(parts, lambda: least(alpha or 1))
    level = float(least(alpha or 1))
    proves_nothing_false(parts, level, level)
    assert forging.ends(tampered(parts, {("witness", "weights", 1): 0.0}))[0] == 0


@pytest.mark.parametrize("alpha", [None, *ORDERS])
def test_an_output_that_the_distribution_misses(alpha):
    """From order 1 on it proves nothing; below, only what it shares with each row counts."""
    missing = output(symmetric(alpha), [1.0, 0.0])
    found = forging.ends(missing)[1]
    assert found == (pytest.approx(math.log(4), abs=1e-12) if alpha == 0.5 else math.inf)
    apart = tampered(missing, {("problem", "matrix"): [[1.0, 0.0], [0.0, 1.0]]})
    assert forging.ends(apart)[1] == math.inf
    level = float(least(alpha or 1))
    for t in ([0.75, 0.25], [0.25, 0.75]):
        assert forging.ends(output(symmetric(alpha), t))[1] > level + 0.1


def test_an_order_that_only_its_float_makes_one():
    """A hair above 1 a distribution that misses an output proves nothing; a hair below, it does."""
    above, below = f"{10**20 + 1}/{10**20}", f"{10**20 - 1}/{10**20}"
    for order in (above, below):
        found = forging.ends(tampered(symmetric(2), {("problem", "alpha"): order}))
        assert found == pytest.approx((float(least(1)),) * 2, abs=1e-9)
    missing = output(symmetric(2), [1.0, 0.0])
    assert forging.ends(tampered(missing, {("problem", "alpha"): above}))[1] == math.inf
    assert forging.ends(tampered(missing, {("problem", "alpha"): below}))[1] > 1


@pytest.mark.parametrize("alpha", [None, *ORDERS])
def test_equal_rows_tell_nothing(alpha):
    found = forging.ends(tampered(symmetric(alpha), {("problem", "matrix"): [[0.5, 0.5]] * 2}))
    assert found[0] == 0.0
    assert 0.0 <= found[1] < 1e-12


def boxes(rng, many, outputs):
    rows = rng.dirichlet(np.ones(outputs), many)
    rows[rows < 0.05] = 0.0
    rows /= rows.sum(axis=1, keepdims=True)
    low = np.maximum(rows - rng.uniform(0, 0.1, rows.shape), 0.0)
    return low, np.minimum(rows + rng.uniform(0, 0.1, rows.shape), 1.0)


def vertices(low, high):
    """Yield the vertices of a row's box and the simplex."""
    for y in range(len(low)):
        for chosen in itertools.product((0, 1), repeat=len(low) - 1):
            q = np.where([*chosen[:y], 0, *chosen[y:]], high, low)
            q[y] = 1 - (q.sum() - q[y])
            if low[y] - 1e-12 <= q[y] <= high[y] + 1e-12:
                yield np.clip(q, 0, 1)


def test_the_divergence_of_a_box_is_that_of_its_worst_vertex():
    rng = np.random.default_rng(3)
    for low, high in zip(*boxes(rng, 40, 4), strict=True):
        t = rng.dirichlet(np.ones(4))
        worst = max(rel_entr(q, t).sum() for q in vertices(low, high))
        with precision():
            row = Row([arb(x) for x in low], [arb(x) for x in high])
            log_t = [arb(x).log() for x in t]
            found, coarse = row.divergence(log_t, cuts=6), row.divergence(log_t)
        assert worst - 1e-12 <= float(found) <= worst + 1e-9
        assert float(coarse) >= float(found) - 1e-12


LOW, HIGH = [[0.7, 0.2], [0.2, 0.7]], [[0.8, 0.3], [0.3, 0.8]]
MOST = math.log(2) + 0.8 * math.log(0.8) + 0.2 * math.log(0.2)
LEAST = math.log(2) + 0.7 * math.log(0.75) + 0.3 * math.log(0.25)
SET = Parts(
    "capacity",
    {"lower": LOW, "upper": HIGH},
    {"rule": "point", "weights": [0.5, 0.5], "posteriors": [[0.75, 0.25], [0.25, 0.75]]},
    close([0.5, 0.5]),
)


def test_what_is_proved_of_a_set():
    low, high = forging.ends(SET)
    assert low == pytest.approx(LEAST, abs=1e-12)
    assert high == pytest.approx(MOST, abs=1e-12)
    assert MOST < high
    # Each member's capacity is between that of the rows nearest to each other and MOST.
    proves_nothing_false(SET, MOST, math.log(2) + 0.7 * math.log(0.7) + 0.3 * math.log(0.3))
    point = tampered(SET, {("problem", "lower"): ROWS, ("problem", "upper"): ROWS})
    encloses(point, lambda: least(1))
    box = {("problem", "lower"): [[0.2, 0.2]], ("problem", "upper"): [[0.8, 0.8]]}
    alone = {("witness", "weights"): [1.0], ("witness", "posteriors"): [[1.0, 1.0]]}
    alphabet = {"rule": "close", "multiplier": 0, "limits": [], "of": {"rule": "alphabet"}}
    assert forging.ends(tampered(SET._replace(proof=alphabet), {**box, **alone})) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({("problem", "note"): 1}, "it has no note"),
        ({("witness", "note"): 1}, "it has no note"),
        ({("proof", "note"): 1}, "it has no note"),
        ({("witness", "weights"): [1.0]}, "1 entries"),
        ({("witness", "posteriors"): [[1.0, 1.0]]}, "1 entries"),
        ({("proof", "of", "t"): [1.0]}, "1 entries"),
        ({("problem", "lower"): [[0.9, 0.9], [0.2, 0.7]]}, "a set of rows that is empty"),
        ({("problem", "upper"): [[0.7, 0.2], [0.2, 0.7]]}, "a set of rows that is empty"),
    ],
)
def test_forged_sets_are_refused(changes, message):
    refused(SET, changes, message)
