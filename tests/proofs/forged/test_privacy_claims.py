"""Forged certificates of privacy parameters: Rényi, zCDP, (epsilon, delta) and Gaussian."""

import math

import pytest
from flint import arb

from cvxleak.core.errors import CertificateError
from cvxleak.exact import limits
from tests.proofs.forging import Parts, encloses, ends, proves_nothing_false, refused, tampered

ROWS = [[0.75, 0.25], [0.25, 0.75]]
PAIRS = [[0, 1]]
# 1 + 2^k, close together about the order 1 at which symmetric rows have the largest ratio.
ORDERS = [1 + 2.0**k for k in range(-30, 4)]

RENYI = Parts("renyi-dp", {"matrix": ROWS, "pairs": PAIRS, "alpha": 2}, {"pair": [0, 1]}, {})
PURE = Parts("renyi-dp", {"matrix": ROWS, "pairs": PAIRS, "alpha": "inf"}, {"pair": [1, 0]}, {})
PROFILE = Parts(
    "dp-profile", {"matrix": ROWS, "pairs": PAIRS, "epsilon": 0.5}, {"pair": [0, 1]}, {}
)
GAUSSIAN = Parts(
    "gaussian-dp", {"matrix": ROWS, "pairs": PAIRS}, {"pair": [0, 1], "outputs": [0]}, {}
)
ZCDP = Parts(
    "zcdp",
    {"matrix": ROWS, "pairs": PAIRS},
    {"pair": [0, 1], "order": ORDERS[0]},
    {"orders": [[ORDERS, ORDERS]]},
)
# The ratios are 3 and 1/3.
TOGETHER = Parts(
    "zcdp", ZCDP.problem, ZCDP.witness, {"orders": ORDERS, "levels": [0.25, 0.5, 1.0, 2.0, 3.0]}
)
ALL = {
    "renyi": RENYI,
    "pure": PURE,
    "profile": PROFILE,
    "gaussian": GAUSSIAN,
    "zcdp": ZCDP,
    "together": TOGETHER,
}


def kullback() -> arb:
    return arb("0.5") * arb(3).log()


def truth(name: str) -> arb:
    return {
        "renyi": lambda: (arb(7) / 3).log(),
        "pure": lambda: arb(3).log(),
        "profile": lambda: arb("0.75") - arb("0.5").exp() / 4,
        # Phi^-1(3/4) - Phi^-1(1/4)
        "gaussian": lambda: 2 * arb(2).sqrt() * arb("0.5").erfinv(),
        "zcdp": kullback,
        "together": kullback,
    }[name]()


@pytest.mark.parametrize("name", ALL)
def test_honest(name):
    encloses(ALL[name], lambda: truth(name), 0.2 if name in ("zcdp", "together") else 1e-12)


@pytest.mark.parametrize("name", ALL)
def test_no_number_proves_too_much(name):
    level = float(truth(name))
    proves_nothing_false(ALL[name], level, level)


@pytest.mark.parametrize("name", sorted(ALL.keys() - {"together"}))
def test_both_orders_of_a_pair_count_and_every_pair(name):
    """The second law has an output that the first has not; the third is equal to the first."""
    rows = [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.5, 0.5, 0.0]]
    proof = {"orders": [[[2.0], [2.0]]] * 2} if name == "zcdp" else {}
    witness = dict(ALL[name].witness, pair=[0, 2])
    more = {("problem", "matrix"): rows, ("problem", "pairs"): [[0, 2], [0, 1]]}
    parts = Parts(*tampered(ALL[name], more)[:2], witness, proof)
    lower, upper = ends(parts)
    assert lower == 0.0
    if name == "profile":
        assert upper == 0.25  # of the output that only one of them has, exactly
    else:
        assert upper == math.inf
    told = tampered(parts, {("witness", "pair"): [1, 0]})
    told = told if name != "gaussian" else tampered(told, {("witness", "outputs"): [2]})
    assert ends(told) == pytest.approx((upper, upper), abs=1e-12)
    equal = tampered(parts, {("problem", "pairs"): [[0, 2]]})
    if name == "zcdp":
        equal = tampered(equal, {("proof", "orders"): [[[], [2.0]]]})
    assert ends(equal) == (0.0, 0.0)


FORGED = [
    ({("problem", "note"): 1}, "the problem: expected the parts"),
    ({("witness", "note"): 1}, "the witness: expected the parts"),
    ({("proof", "note"): 1}, "the proof: expected the parts"),
    ({("problem", "matrix"): {"0": [1]}}, "the matrix is not a list of rows"),
    ({("problem", "matrix"): []}, "the matrix is not a list of rows"),
    ({("problem", "matrix", 1): [1.0]}, "a row of the matrix: expected a list of 2"),
    ({("problem", "matrix", 0): [1.5, -0.5]}, "non-negative"),
    ({("problem", "matrix", 0): [0.0, 0.0]}, "must not sum to zero"),
    ({("problem", "pairs"): []}, "expected at least one"),
    ({("problem", "pairs"): [[0, 2]]}, "each must name two rows"),
    ({("problem", "pairs"): [[0, 1, 1]]}, "each must name two rows"),
    ({("problem", "pairs"): [[]]}, "each must name two rows"),
    ({("problem", "pairs"): [[0, -1]]}, "the pairs: expected a whole number"),
    ({("witness", "pair"): [0, 0]}, "not one of the compared pairs"),
    ({("witness", "pair"): [0]}, "not one of the compared pairs"),
    ({("witness", "pair"): 0}, "the pair: expected a list of lists"),
]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("changes", "reason"), FORGED)
def test_forged(name, changes, reason):
    refused(ALL[name], changes, reason)


OWN = [
    (RENYI, {("problem", "alpha"): 1}, "alpha must be greater than 1"),
    (RENYI, {("problem", "alpha"): 0.5}, "alpha must be greater than 1"),
    (RENYI, {("problem", "alpha"): "-inf"}, "alpha: expected a number"),
    (PROFILE, {("problem", "epsilon"): -0.1}, "epsilon must not be negative"),
    (GAUSSIAN, {("witness", "outputs"): [0, 0]}, "expected distinct"),
    (GAUSSIAN, {("witness", "outputs"): [2]}, "expected distinct"),
    (ZCDP, {("witness", "order"): 1}, "greater than 1"),
    (ZCDP, {("witness", "order"): 0.5}, "greater than 1"),
    (ZCDP, {("proof", "orders"): []}, "expected two lists"),
    (ZCDP, {("proof", "orders"): {}}, "expected two lists"),
    (ZCDP, {("proof", "orders"): {"0": [[], []]}}, "expected two lists"),
    (ZCDP, {("proof", "orders"): [[[], []]] * 2}, "expected two lists"),
    (ZCDP, {("proof", "orders", 0): [[], [], []]}, "expected two lists"),
    (ZCDP, {("proof", "orders", 0): [[2.0]]}, "expected two lists"),
    (ZCDP, {("proof", "orders", 0): 2.0}, "expected two lists"),
    (ZCDP, {("proof", "orders", 0, 1): [2.0, 2.0]}, "the orders must be increasing"),
    (ZCDP, {("proof", "orders", 0, 0): [3.0, 2.0]}, "the orders must be increasing"),
    (ZCDP, {("proof", "orders", 0, 0): [1.0, 2.0]}, "the orders must be increasing"),
    (TOGETHER, {("proof", "orders"): [2.0, 2.0]}, "the orders must be increasing"),
    (TOGETHER, {("proof", "orders"): [[ORDERS, ORDERS]]}, "the orders: expected a number"),
    (TOGETHER, {("proof", "levels"): []}, "the levels must be increasing and greater than 0"),
    (TOGETHER, {("proof", "levels"): [0.0, 3.0]}, "the levels must be increasing"),
    (TOGETHER, {("proof", "levels"): [-1.0, 3.0]}, "the levels must be increasing"),
    (TOGETHER, {("proof", "levels"): [0.5, 0.5, 3.0]}, "the levels must be increasing"),
    (TOGETHER, {("proof", "levels"): [4.0, 3.0]}, "the levels must be increasing"),
    (TOGETHER, {("proof", "levels"): 3.0}, "the levels"),
    (TOGETHER, {("proof", "levels"): [0.5, 2.9999999]}, "is below a ratio"),
    (
        TOGETHER,
        {("problem", "matrix", 0): [1.0, 0.0]},
        "is below a ratio",
    ),
]


@pytest.mark.parametrize(("parts", "changes", "reason"), OWN)
def test_forged_in_one_kind(parts, changes, reason):
    refused(parts, changes, reason)


def test_the_profile_is_exact_where_no_exponential_is_left():
    """At epsilon 0 it is the total variation, of numbers as written."""
    assert ends(tampered(PROFILE, {("problem", "epsilon"): 0})) == (0.5, 0.5)
    thirds = [["1/3", "2/3"], ["2/3", "1/3"]]
    parts = tampered(PROFILE, {("problem", "epsilon"): 0, ("problem", "matrix"): thirds})
    encloses(parts, lambda: arb(1) / 3, 1e-15)
    equal = tampered(parts, {("problem", "matrix"): [[0.3, 0.7], [0.3, 0.7]]})
    assert ends(equal) == (0.0, 0.0)


def test_a_profile_of_outputs_that_both_have_and_that_one_has():
    rows = {("problem", "matrix"): [[0.25, 0.5, 0.25], [0.0, 0.25, 0.75]]}
    encloses(tampered(PROFILE, rows), lambda: arb("0.75") - arb("0.5").exp() / 4)


@pytest.mark.parametrize("name", ALL)
def test_work_is_counted(name, monkeypatch):
    """A short file may ask for many comparisons of the same two rows."""
    monkeypatch.setitem(limits.LIMITS, "steps", 20)
    parts = tampered(ALL[name], {("problem", "pairs"): PAIRS * 3})
    if name == "zcdp":
        parts = tampered(parts, {("proof", "orders"): [[[2.0], [2.0]]] * 3})
    with limits.limited(), pytest.raises(CertificateError, match="steps in all"):
        ends(parts)


def at(orders) -> float:
    return ends(tampered(ZCDP, {("proof", "orders"): [[orders, orders]]}))[1]


def ratio(alpha: float) -> float:
    power = 0.75**alpha * 0.25 ** (1 - alpha) + 0.25**alpha * 0.75 ** (1 - alpha)
    return math.log(power) / (alpha - 1) / alpha


def test_what_few_orders_prove():
    """Each of the three bounds, where it is the largest."""
    assert at([]) == pytest.approx(math.log(3), abs=1e-12)
    assert at([2.0]) == pytest.approx(ratio(2) * 2, abs=1e-12)  # left of it
    assert at([1.001]) == pytest.approx(math.log(3) / 1.001, abs=1e-12)  # right of it
    between = ratio(1.001) * (1 + 8.999**2 / (4 * 1.001 * 0.001))
    assert at([1.001, 10.0]) == pytest.approx(between, rel=1e-9)


def test_what_levels_prove():
    """Where every ratio is a level, what the orders prove; else what two laws on levels have."""
    matrix = [[0.125, 0.5, 0.375], [0.25, 0.5, 0.25]]  # ratios of 1/2, 1, 3/2 and 2, 1, 2/3
    orders = [1.5, 2.0, 4.0]
    told = {("problem", "matrix"): [*matrix, matrix[0]], ("problem", "pairs"): [[0, 1], [2, 1]]}
    alone = tampered(ZCDP, told | {("proof", "orders"): [[orders, orders]] * 2})
    exact = {("proof", "levels"): [0.5, "2/3", 1.0, 1.5, 2.0], ("proof", "orders"): orders}
    found, other = ends(tampered(TOGETHER, told | exact)), ends(alone)
    assert found[0] == other[0]
    # Both directions have the same profiles' maximum only where one of them is above the other.
    assert other[1] <= found[1] <= other[1] * 1.02
    # One level: all of P is at it or at 0, P (3) = 1 and R (3) = 1/3.
    one = tampered(TOGETHER, {("proof", "levels"): [3.0], ("proof", "orders"): [2.0]})
    assert ends(one)[1] == pytest.approx(math.log(3), abs=1e-12)
    # P and R on the levels 0.5, 2 and 3 by hand: h(.5) = .75 - .5 * .25, h(2) = .75 - 2 * .25.
    few = tampered(TOGETHER, {("proof", "levels"): [0.5, 2.0, 3.0], ("proof", "orders"): [2.0]})
    slopes = [0.5, (4 - 0.25) / 1.5, (9 - 4) / 1.0]
    mean = slopes[0] + (slopes[1] - slopes[0]) * 0.625 + (slopes[2] - slopes[1]) * 0.25
    assert ends(few)[1] == pytest.approx(math.log(mean), abs=1e-12)
    assert ends(tampered(few, {("proof", "orders"): []}))[1] == pytest.approx(math.log(3))


def test_levels_bound_both_orders_of_a_pair():
    rows = {("problem", "matrix"): [[0.5, 0.5, 0.0], [0.9, 0.1, 0.0]]}
    levels = {("proof", "levels"): [0.5, 1.0, 2.0, 5.0]}
    first, second = (
        ends(tampered(TOGETHER, rows | levels | {("problem", "pairs"): [pair]}))
        for pair in ([0, 1], [1, 0])
    )
    assert first == second


def test_work_with_levels_is_counted(monkeypatch):
    # The witness takes 8 steps and the profiles 16.
    monkeypatch.setitem(limits.LIMITS, "steps", 20)
    with limits.limited(), pytest.raises(CertificateError, match="steps in all"):
        ends(tampered(TOGETHER, {("proof", "orders"): []}))
    monkeypatch.setitem(limits.LIMITS, "steps", 200)
    with limits.limited(), pytest.raises(CertificateError, match="steps in all"):
        ends(TOGETHER)


def test_a_set_and_its_complement():
    """A set that is likelier under the second law shows nothing."""
    assert ends(tampered(GAUSSIAN, {("witness", "outputs"): [1]}))[0] == 0
    assert ends(tampered(GAUSSIAN, {("witness", "outputs"): []}))[0] == 0
    other = {("witness", "pair"): [1, 0], ("witness", "outputs"): [1]}
    assert ends(tampered(GAUSSIAN, other)) == ends(GAUSSIAN)
    # An output that neither has, and laws without one in common.
    wide = {("problem", "matrix"): [[1, 0, 0], [0, 0, 1]]}
    assert ends(tampered(GAUSSIAN, wide)) == (math.inf, math.inf)


def test_a_mass_that_only_what_is_missing_tells_from_1():
    least = f"1/{10**36}"
    rows = [[f"{10**36 - 1}/{10**36}", least], ["1/2", "1/2"]]
    parts = tampered(GAUSSIAN, {("problem", "matrix"): rows})
    encloses(parts, lambda: arb(2).sqrt() * (arb(2) / 10**36).erfcinv(), 1e-12)


def test_the_best_event_may_be_of_several_outputs():
    rows = [[0.5, 0.25, 0.25, 0.0], [0.125, 0.125, 0.5, 0.25]]
    wide = tampered(GAUSSIAN, {("problem", "matrix"): rows})
    assert ends(wide)[1] == math.inf
    rows = [[0.25, 0.25, 0.25, 0.25], [0.0625, 0.125, 0.3125, 0.5]]
    parts = tampered(GAUSSIAN, {("problem", "matrix"): rows, ("witness", "outputs"): [0, 1]})
    lower, upper = ends(parts)
    assert upper - lower < 1e-12
    assert lower == pytest.approx(0.8871465590188759, abs=1e-12)  # -Phi^-1(3/16)
    assert ends(tampered(parts, {("witness", "outputs"): [0]}))[0] < lower - 1e-3
