"""Privacy of pairs of rows: closed forms, brute force over events and orders, forged terms."""

import itertools
import math
from fractions import Fraction

import pytest
from flint import arb, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

from cvxleak.kernel import budget
from cvxleak.kernel.numbers import RefusedError, lower, precision, upper
from cvxleak.kernel.pairs import (
    ConcentratedPrivacy,
    GaussianPrivacy,
    PrivacyProfile,
    RenyiPrivacy,
)
from tests.proofs.forging import Parts, encloses, proves_nothing_false, refused, tampered
from tests.proofs.forging import ends as proved

few = settings(max_examples=25, deadline=None)

KINDS = {
    "renyi-dp": RenyiPrivacy,
    "dp-profile": PrivacyProfile,
    "gaussian-dp": GaussianPrivacy,
    "zcdp": ConcentratedPrivacy,
}
WARNER = {"matrix": [["3/4", "1/4"], ["1/4", "3/4"]], "pairs": [[0, 1]]}
PAIR = {"rule": "pair", "pair": [0, 1]}


def ends(kind, problem, below, above):
    with precision():
        statement = KINDS[kind].read(problem)
        return lower(statement.lower(below)), upper(statement.upper(above))


@st.composite
def rows(draw, columns=4):
    weights = st.lists(st.integers(0, 6), min_size=columns, max_size=columns).filter(any)
    return [[Fraction(x, sum(row)) for x in row] for row in (draw(weights), draw(weights))]


def problem_of(laws, **level):
    return {
        "matrix": [[str(x) if x.denominator > 1 else int(x) for x in row] for row in laws],
        "pairs": [[0, 1]],
        **level,
    }


def divergence(p, r, alpha):
    if any(x and not y for x, y in zip(p, r, strict=True)):
        return math.inf
    terms = [float(x) ** alpha * float(y) ** (1 - alpha) for x, y in zip(p, r, strict=True) if x]
    return math.log(sum(terms)) / (alpha - 1)


def test_a_profile_of_an_exact_epsilon_is_exact():
    for epsilon, truth in (
        ("log(2)", fmpq(1, 4)),
        ("log(3)", fmpq(0)),
        ("log(3/2)", fmpq(3, 8)),
        ("log(1)", fmpq(1, 2)),
    ):
        with precision():
            statement = PrivacyProfile.read({**WARNER, "epsilon": epsilon})
            assert statement.upper({"rule": "pairs"}) == statement.lower(PAIR) == truth
    low, high = ends("dp-profile", {**WARNER, "epsilon": "log(2)"}, PAIR, {"rule": "pairs"})
    assert (low, high) == (0.25, 0.25)
    low, high = ends(
        "dp-profile", {**WARNER, "epsilon": 1.0986122886681098}, PAIR, {"rule": "pairs"}
    )
    assert (low, high) == (0, 0)  # this float is above log 3
    low, high = ends(
        "dp-profile", {**WARNER, "epsilon": 1.0986122886681096}, PAIR, {"rule": "pairs"}
    )
    assert 0 < low <= high < 1e-16
    assert ends("dp-profile", {**WARNER, "epsilon": 0}, PAIR, {"rule": "pairs"}) == (0.5, 0.5)


@few
@given(rows(), st.sampled_from([1.1, 2, 7.5]), st.sampled_from([0, 0.4, 2]))
def test_parameters_are_those_of_the_definitions(laws, alpha, epsilon):
    p, r = laws
    truth = max(divergence(p, r, alpha), divergence(r, p, alpha))
    low, high = ends("renyi-dp", problem_of(laws, alpha=alpha), PAIR, {"rule": "pairs"})
    back, _ = ends(
        "renyi-dp", problem_of(laws, alpha=alpha), {**PAIR, "pair": [1, 0]}, {"rule": "pairs"}
    )
    assert max(low, back) == pytest.approx(truth, abs=1e-9)
    assert high == pytest.approx(truth, abs=1e-9)
    most = 0.0
    for event in itertools.product([0, 1], repeat=4):
        one, other = (float(sum(x for x, e in zip(law, event, strict=True) if e)) for law in laws)
        most = max(most, one - math.exp(epsilon) * other, other - math.exp(epsilon) * one)
    _, high = ends("dp-profile", problem_of(laws, epsilon=epsilon), PAIR, {"rule": "pairs"})
    assert high == pytest.approx(most, abs=1e-12)


@few
@given(rows())
def test_no_event_is_beyond_the_shift(laws):
    shifts, upper_ = [0.0], math.nan
    for event in itertools.product([0, 1], repeat=4):
        one, other = (float(sum(x for x, e in zip(law, event, strict=True) if e)) for law in laws)
        low, high = max(one, other), min(one, other)
        if low > high:
            shifts.append(math.inf if low == 1 or high == 0 else ndtri(low) - ndtri(high))
        term = {**PAIR, "outputs": [y for y, e in enumerate(event) if e]}
        found, upper_ = ends("gaussian-dp", problem_of(laws), term, {"rule": "pairs"})
        assert found <= upper_
    assert upper_ == pytest.approx(max(shifts), rel=1e-9, abs=1e-9)


@few
@given(rows(), st.lists(st.floats(1.01, 60), max_size=5, unique=True))
def test_no_order_is_beyond_the_bound_on_all(laws, orders):
    p, r = laws
    orders = sorted(orders)
    above = {"rule": "orders", "orders": [[orders, orders]]}
    for alpha in (1.001, 1.5, 2, 3.3, 9, 40):
        low, high = ends("zcdp", problem_of(laws), {**PAIR, "order": alpha}, above)
        truth = divergence(p, r, alpha)
        assert low == pytest.approx(truth / alpha, abs=1e-9)
        assert max(truth, divergence(r, p, alpha)) / alpha <= high * (1 + 1e-12) + 1e-12


def test_outputs_that_one_row_lacks():
    laws = [[Fraction(1), Fraction(0)], [Fraction(1, 2), Fraction(1, 2)]]
    back = {**PAIR, "pair": [1, 0]}
    above = {"rule": "pairs"}
    inf = (math.inf, math.inf)
    assert ends("renyi-dp", problem_of(laws, alpha=2), back, above) == inf
    assert ends("renyi-dp", problem_of(laws, alpha="inf"), back, above) == inf
    assert ends("gaussian-dp", problem_of(laws), {**back, "outputs": [1]}, above) == inf
    orders = {"rule": "orders", "orders": [[[], []]]}
    assert ends("zcdp", problem_of(laws), {**back, "order": 2}, orders) == inf


def test_tiny_ratios_are_sorted_exactly():
    """Of (.5, .4, .1) and (0, 1e-390, 1 - 1e-390) the first output has no shift that is finite."""
    tiny = "1" + "/1" + "0" * 390
    rest = "9" * 390 + "/1" + "0" * 390
    problem = {"matrix": [["1/2", "2/5", "1/10"], [0, tiny, rest]], "pairs": [[0, 1]]}
    above = {"rule": "pairs"}
    assert ends("gaussian-dp", problem, {**PAIR, "outputs": [0]}, above) == (math.inf, math.inf)


FORGED = [
    ("renyi-dp", {"alpha": 1}, {"rule": "pairs"}, "not above 1"),
    ("renyi-dp", {"alpha": 0.5}, {"rule": "pairs"}, "not above 1"),
    ("renyi-dp", {"alpha": 2, "pairs": []}, {"rule": "pairs"}, "no pair"),
    ("renyi-dp", {"alpha": 2, "pairs": [[0, 2]]}, {"rule": "pairs"}, "a pair: found 2"),
    ("renyi-dp", {"alpha": 2, "pairs": [[0, -1]]}, {"rule": "pairs"}, "a pair: found -1"),
    ("renyi-dp", {"alpha": 2, "pairs": [[0, True]]}, {"rule": "pairs"}, "a pair: found True"),
    ("renyi-dp", {"alpha": 2, "epsilon": 1}, {"rule": "pairs"}, "it has no epsilon"),
    ("renyi-dp", {"alpha": 2}, {"rule": "orders", "orders": []}, "it has no orders"),
    ("dp-profile", {"epsilon": -1}, {"rule": "pairs"}, "below 0"),
    ("dp-profile", {"epsilon": "log(1/2)"}, {"rule": "pairs"}, "below 0"),
    ("dp-profile", {"epsilon": "log(x)"}, {"rule": "pairs"}, "expected a number"),
    ("zcdp", {}, {"rule": "pairs"}, "without orders"),
    ("zcdp", {}, {"rule": "orders", "orders": [[[2]]]}, "1 entries, where 2"),
    ("zcdp", {}, {"rule": "orders", "orders": []}, "0 entries, where 1"),
    ("zcdp", {}, {"rule": "orders", "orders": [[[3, 2], [2]]]}, "increasing"),
    ("zcdp", {}, {"rule": "orders", "orders": [[[1], [2]]]}, "above 1"),
    ("zcdp", {}, {"rule": "orders", "orders": [[[2], [2]]], "levels": [1]}, "it has no levels"),
]


@pytest.mark.parametrize(("kind", "more", "term", "message"), FORGED)
def test_forged_upper_ends_are_refused(kind, more, term, message):
    with precision(), pytest.raises(RefusedError, match=message):
        KINDS[kind].read({**WARNER, **more}).upper(term)


@pytest.mark.parametrize(
    ("kind", "term", "message"),
    [
        ("zcdp", {**PAIR, "order": 1}, "above 1"),
        ("zcdp", {**PAIR, "order": 0.9}, "above 1"),
        ("zcdp", PAIR, "without order"),
        ("zcdp", {**PAIR, "pair": [0, 0], "order": 2}, "not compared"),
        ("gaussian-dp", {**PAIR, "outputs": [2]}, "outputs: found 2"),
        ("gaussian-dp", {**PAIR, "outputs": [-1]}, "outputs: found -1"),
    ],
)
def test_forged_lower_ends_are_refused(kind, term, message):
    with precision(), pytest.raises(RefusedError, match=message):
        KINDS[kind].read(WARNER).lower(term)


def test_an_event_named_twice_counts_once():
    term = {**PAIR, "outputs": [0, 0]}
    low, _ = ends("gaussian-dp", WARNER, term, {"rule": "pairs"})
    assert low == pytest.approx(2 * ndtri(0.75), abs=1e-12)


# Parts of a certificate, tampered with ------------------------------------------------------------

ROWS = [[0.75, 0.25], [0.25, 0.75]]
# 1 + 2^k, close together about the order 1 at which symmetric rows have the largest ratio.
ORDERS = [1 + 2.0**k for k in range(-30, 4)]
ABOVE = {"rule": "pairs"}


def parts_of(kind, above=ABOVE, more=None, **level):
    return Parts(
        kind, {"matrix": ROWS, "pairs": [[0, 1]], **level}, {**PAIR, **(more or {})}, above
    )


RENYI = parts_of("renyi-dp", alpha=2)
PURE = parts_of("renyi-dp", alpha="inf", more={"pair": [1, 0]})
PROFILE = parts_of("dp-profile", epsilon=0.5)
GAUSSIAN = parts_of("gaussian-dp", more={"outputs": [0]})
ZCDP = parts_of("zcdp", {"rule": "orders", "orders": [[ORDERS, ORDERS]]}, {"order": ORDERS[0]})
ALL = {"renyi": RENYI, "pure": PURE, "profile": PROFILE, "gaussian": GAUSSIAN, "zcdp": ZCDP}


def truth(name: str) -> arb:
    return {
        "renyi": lambda: (arb(7) / 3).log(),
        "pure": lambda: arb(3).log(),
        "profile": lambda: arb("0.75") - arb("0.5").exp() / 4,
        # Phi^-1(3/4) - Phi^-1(1/4)
        "gaussian": lambda: 2 * arb(2).sqrt() * arb("0.5").erfinv(),
        "zcdp": lambda: arb("0.5") * arb(3).log(),
    }[name]()


@pytest.mark.parametrize("name", ALL)
def test_both_ends_enclose_the_truth_and_no_number_proves_too_much(name):
    encloses(ALL[name], lambda: truth(name), 0.2 if name == "zcdp" else 1e-12)
    level = float(truth(name))
    proves_nothing_false(ALL[name], level, level)


@pytest.mark.parametrize("name", ALL)
def test_both_orders_of_a_pair_count_and_every_pair(name):
    """The second row has an output that the first has not; the third is equal to the first."""
    matrix = [[0.5, 0.5, 0.0], [0.25, 0.5, 0.25], [0.5, 0.5, 0.0]]
    more = {("problem", "matrix"): matrix, ("problem", "pairs"): [[0, 2], [0, 1]]}
    parts = tampered(ALL[name], {**more, ("witness", "pair"): [0, 2]})
    if name == "zcdp":
        parts = tampered(parts, {("proof", "orders"): [[[2.0], [2.0]]] * 2})
    low, high = proved(parts)
    assert low == 0.0
    # Of a profile what only one of them has, exactly.
    assert high == (0.25 if name == "profile" else math.inf)
    told = tampered(parts, {("witness", "pair"): [1, 0]})
    told = told if name != "gaussian" else tampered(told, {("witness", "outputs"): [2]})
    assert proved(told) == pytest.approx((high, high), abs=1e-12)
    equal = tampered(parts, {("problem", "pairs"): [[0, 2]]})
    if name == "zcdp":
        equal = tampered(equal, {("proof", "orders"): [[[], [2.0]]]})
    assert proved(equal) == (0.0, 0.0)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({("problem", "note"): 1}, "it has no note"),
        ({("witness", "note"): 1}, "it has no note"),
        ({("proof", "note"): 1}, "it has no note"),
        ({("problem", "matrix"): {"0": [1]}}, "matrix: expected a list"),
        ({("problem", "matrix"): []}, "a channel without rows"),
        ({("problem", "matrix", 1): [1.0]}, "1 entries, where 2"),
        ({("problem", "matrix", 0): [1.5, -0.5]}, "negative numbers"),
        ({("problem", "matrix", 0): [0.0, 0.0]}, "does not sum to 1"),
        ({("problem", "pairs"): [[0, 1, 1]]}, "3 entries, where 2"),
        ({("problem", "pairs"): [[]]}, "0 entries, where 2"),
        ({("witness", "pair"): [0, 0]}, "a pair that is not compared"),
        ({("witness", "pair"): [0]}, "1 entries, where 2"),
        ({("witness", "pair"): 0}, "a pair: expected a list"),
    ],
)
def test_tampered_parts_are_refused(name, changes, message):
    refused(ALL[name], changes, message)


def test_a_level_is_a_number():
    refused(RENYI, {("problem", "alpha"): "-inf"}, "expected a number")
    refused(ZCDP, {("proof", "orders", 0): 2.0}, "orders: expected a list")
    refused(ZCDP, {("proof", "orders", 0, 1): [2.0, 2.0]}, "increasing")


def test_the_profile_is_exact_where_no_exponential_is_left():
    """At epsilon 0 it is the total variation, of numbers as written."""
    assert proved(tampered(PROFILE, {("problem", "epsilon"): 0})) == (0.5, 0.5)
    thirds = [["1/3", "2/3"], ["2/3", "1/3"]]
    parts = tampered(PROFILE, {("problem", "epsilon"): 0, ("problem", "matrix"): thirds})
    encloses(parts, lambda: arb(1) / 3, 1e-15)
    equal = tampered(parts, {("problem", "matrix"): [[0.3, 0.7], [0.3, 0.7]]})
    assert proved(equal) == (0.0, 0.0)
    rows = {("problem", "matrix"): [[0.25, 0.5, 0.25], [0.0, 0.25, 0.75]]}
    encloses(tampered(PROFILE, rows), lambda: arb("0.75") - arb("0.5").exp() / 4)


def test_the_logarithm_of_a_large_number():
    parts = tampered(PROFILE, {("problem", "epsilon"): f"log({10**30})"})
    assert proved(parts) == (0.0, 0.0)


@pytest.mark.parametrize("name", ALL)
def test_work_is_counted(name, monkeypatch):
    """A short file may ask for many comparisons of the same two rows."""
    monkeypatch.setitem(budget.LIMITS, "ball operations", 40)
    parts = tampered(ALL[name], {("problem", "pairs"): [[0, 1]] * 3})
    if name == "zcdp":
        parts = tampered(parts, {("proof", "orders"): [[[2.0], [2.0]]] * 3})
    with budget.limited():
        refused(parts, {}, "more than 40 ball operations")


def at(orders) -> float:
    return proved(tampered(ZCDP, {("proof", "orders"): [[orders, orders]]}))[1]


def rate(alpha: float) -> float:
    power = 0.75**alpha * 0.25 ** (1 - alpha) + 0.25**alpha * 0.75 ** (1 - alpha)
    return math.log(power) / (alpha - 1) / alpha


def test_what_few_orders_prove():
    """Each of the three bounds, where it is the largest."""
    assert at([]) == pytest.approx(math.log(3), abs=1e-12)
    assert at([2.0]) == pytest.approx(rate(2) * 2, abs=1e-12)  # left of it
    assert at([1.001]) == pytest.approx(math.log(3) / 1.001, abs=1e-12)  # right of it
    between = rate(1.001) * (1 + 8.999**2 / (4 * 1.001 * 0.001))
    assert at([1.001, 10.0]) == pytest.approx(between, rel=1e-9)


def test_a_set_and_its_complement():
    """A set that is likelier under the second row shows nothing."""
    assert proved(tampered(GAUSSIAN, {("witness", "outputs"): [1]}))[0] == 0
    assert proved(tampered(GAUSSIAN, {("witness", "outputs"): []}))[0] == 0
    other = {("witness", "pair"): [1, 0], ("witness", "outputs"): [1]}
    assert proved(tampered(GAUSSIAN, other)) == proved(GAUSSIAN)
    # An output that neither has, and rows without one in common.
    wide = {("problem", "matrix"): [[1, 0, 0], [0, 0, 1]]}
    assert proved(tampered(GAUSSIAN, wide)) == (math.inf, math.inf)


def test_a_mass_that_only_what_is_missing_tells_from_1():
    rows = [[f"{10**36 - 1}/{10**36}", f"1/{10**36}"], ["1/2", "1/2"]]
    parts = tampered(GAUSSIAN, {("problem", "matrix"): rows})
    encloses(parts, lambda: arb(2).sqrt() * (arb(2) / 10**36).erfcinv(), 1e-12)


def test_the_best_event_may_be_of_several_outputs():
    rows = [[0.25, 0.25, 0.25, 0.25], [0.0625, 0.125, 0.3125, 0.5]]
    parts = tampered(GAUSSIAN, {("problem", "matrix"): rows, ("witness", "outputs"): [0, 1]})
    low, high = proved(parts)
    assert high - low < 1e-12
    assert low == pytest.approx(0.8871465590188759, abs=1e-12)  # -Phi^-1(3/16)
    assert proved(tampered(parts, {("witness", "outputs"): [0]}))[0] < low - 1e-3
