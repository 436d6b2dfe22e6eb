"""Privacy of pairs of rows: closed forms, brute force over events and orders, forged terms."""

import itertools
import json
import math
from fractions import Fraction

import pytest
from flint import fmpq
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

from cvxleak.audit import check_claim
from cvxleak.audit.old_terms_claims import terms_of
from cvxleak.kernel.numbers import RefusedError, lower, precision, upper
from cvxleak.kernel.pairs import (
    ConcentratedPrivacy,
    GaussianPrivacy,
    PrivacyProfile,
    RenyiPrivacy,
)

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
    for epsilon, truth in (("log(2)", fmpq(1, 4)), ("log(3)", fmpq(0)), ("log(3/2)", fmpq(3, 8))):
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
    shifts = [0.0]
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


@pytest.mark.parametrize(
    "claim",
    [{"epsilon": 1}, {"renyi": (2, 1)}, {"epsilon": 0.2, "delta": 0.1}, {"gdp": 1}, {"zcdp": 0.1}],
)
def test_bounds_are_those_of_today(claim):
    table = [["7/10", "2/10", "1/10"], ["1/10", "1/5", "7/10"], ["1/3", "1/3", "1/3"]]
    certificate = check_claim(table, **claim).bound.certificate
    parts = json.loads(json.dumps([certificate.problem, certificate.witness, certificate.proof]))
    below, above = terms_of(certificate.kind, *parts)
    low, high = ends(certificate.kind, parts[0], below, above)
    assert certificate.lower - 1e-15 <= low <= high <= certificate.upper + 1e-15


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
