"""Forged certificates of local differential privacy at a distortion, and of what they share."""

import math

import flint
import pytest
from flint import arb, fmpq

from cvxleak.core.errors import CertificateError
from cvxleak.kernel.numbers import precision
from cvxleak.proofs.bounds.source_sets import exact_numbers, mixture, read_parts, worst_case
from cvxleak.proofs.exact import exp_above, exp_below, normalized_rows, rational
from cvxleak.proofs.local_dp import released_ratio
from tests.proofs.forging import (
    Parts,
    encloses,
    ends,
    proves_nothing_false,
    refused,
    tampered,
)

EVEN = {"points": [[0.5, 0.5]], "polytopes": []}
BOX = {"lower": [0.25, 0.25], "upper": [0.75, 0.75], "matrix": [], "bound": []}
CHANNEL = [[0.75, 0.25], [0.25, 0.75]]
POINT = {"weights": [1.0], "members": []}
FACTOR = 2.5 - 2.0**-30


def comparisons(factor):
    """Return multipliers that are best where ratios are at most `factor`."""
    share = 0.5 / (1 + factor)
    return [
        {"first": 0, "second": 1, "multipliers": [share, 0.0]},
        {"first": 1, "second": 0, "multipliers": [0.0, share]},
    ]


def stated(delta, **end):
    return {"sources": [EVEN], "distortion": "hamming", "delta": delta, **end}


WITNESS = {"channel": CHANNEL, "supports": []}
IDENTITY = {"channel": [[1.0, 0.0], [0.0, 1.0]], "supports": []}
LOG_3, LOG_5_HALVES = math.nextafter(math.log(3), 2), math.nextafter(math.log(2.5), 2)

PARTS = {
    "epsilon": Parts(
        "local-dp",
        stated(0.0, budget=0.25),
        WITNESS,
        {"mixture": POINT, "potentials": ["1/8", 0.125]},
    ),
    "epsilon at delta": Parts(
        "local-dp",
        stated(0.125, budget=0.25),
        WITNESS,
        {"mixture": POINT, "comparisons": comparisons(FACTOR), "level": FACTOR},
    ),
    "no epsilon": Parts(
        "local-dp",
        stated(0.125, budget=0.0),
        IDENTITY,
        {"mixture": POINT, "comparisons": comparisons(1.0), "level": "inf"},
    ),
    "distortion": Parts(
        "local-dp-distortion",
        stated(0.0, epsilon=LOG_3),
        WITNESS,
        {"mixture": POINT, "potentials": [0.125 - 2.0**-50, 0.125 - 2.0**-50]},
    ),
    "distortion at delta": Parts(
        "local-dp-distortion",
        stated(0.125, epsilon=LOG_5_HALVES),
        WITNESS,
        {"mixture": POINT, "comparisons": comparisons(2.5)},
    ),
    "box": Parts(
        "local-dp",
        {**stated(0.0, budget=0.25), "sources": [{"points": [], "polytopes": [BOX]}]},
        {**WITNESS, "supports": [{"level": 0.25, "member": None, "multipliers": []}]},
        {
            "mixture": {"weights": [], "members": [{"weight": 2.0, "law": ["1/2", "1/2"]}]},
            "potentials": [0.125, 0.125],
        },
    ),
}
TRUTH = {
    "epsilon": lambda: arb(3).log(),
    "epsilon at delta": lambda: (arb(5) / 2).log(),
    "no epsilon": lambda: arb.pos_inf(),
    "distortion": lambda: 1 / (1 + arb(LOG_3).exp()),
    "distortion at delta": lambda: arb("0.875") / (1 + arb(LOG_5_HALVES).exp()),
    "box": lambda: arb(3).log(),
}


@pytest.mark.parametrize("name", sorted(set(PARTS) - {"no epsilon"}))
def test_honest(name):
    parts = PARTS[name]
    encloses(parts, TRUTH[name], 1e-8)
    assert ends(parts._replace(proof={})) == (0.0, ends(parts)[1])


def test_no_epsilon():
    assert ends(PARTS["no epsilon"]) == (math.inf, math.inf)


@pytest.mark.parametrize("name", sorted(set(PARTS) - {"no epsilon"}))
def test_no_number_proves_too_much(name):
    with precision():
        truth = float(TRUTH[name]())
    proves_nothing_false(PARTS[name], truth, truth)


def test_no_budget_no_finite_epsilon():
    problem = stated(0.125, budget=0.25)
    parts = Parts("local-dp", problem, WITNESS, PARTS["no epsilon"].proof)
    proves_nothing_false(parts, math.log(2.5), math.log(2.5))
    for share in (1e-9, 0.1, 0.25, 0.5, 1.0, 100.0):
        entries = [
            {"first": 0, "second": 1, "multipliers": [share, 0.0]},
            {"first": 1, "second": 0, "multipliers": [0.0, share]},
        ]
        refused(parts, {("proof", "comparisons"): entries}, "do not exceed the budget at every")


def test_equal_rows_need_no_privacy():
    even = {"channel": [[0.5, 0.5], [0.5, 0.5]], "supports": []}
    for delta in (0.0, 0.25):
        assert ends(Parts("local-dp", stated(delta, budget=0.5), even, {})) == (0.0, 0.0)
        parts = Parts("local-dp-distortion", stated(delta, epsilon=0.0), even, {})
        assert ends(parts) == (0.0, 0.5)
    # At epsilon 0 nothing else is private.
    refused(
        Parts("local-dp-distortion", stated(0.0, epsilon=0.0), WITNESS, {}),
        {},
        "does not meet the privacy level",
    )


def test_a_column_without_cost_ends_it_at_the_budget_only():
    """Potentials that sum to the budget prove nothing beside an output that costs just that."""
    problem = {**stated(0.0, budget=0.5), "distortion": [[0.5, 2.0], [0.5, 0.0]]}
    even = {"channel": [[1.0, 0.0], [1.0, 0.0]], "supports": []}
    proof = {"mixture": POINT, "potentials": [0.25, 0.25]}
    assert ends(Parts("local-dp", problem, even, proof)) == (0.0, 0.0)
    # Below the budget that output is no way out.
    told = {"channel": [[0.9, 0.1], [0.3, 0.7]], "supports": []}
    tight = {**problem, "budget": 0.4}
    lower, upper = ends(Parts("local-dp", tight, told, proof))
    assert lower == pytest.approx(math.log(3), abs=1e-12)
    assert lower < upper
    # Nor is one that costs more than all potentials.
    dear = {**stated(0.0, budget=0.25), "distortion": [[0, 1, 1], [1, 0, 1]]}
    wide = {"channel": [[0.75, 0.25, 0.0], [0.25, 0.75, 0.0]], "supports": []}
    lower, _ = ends(Parts("local-dp", dear, wide, PARTS["epsilon"].proof))
    assert lower == pytest.approx(math.log(3), abs=1e-12)
    # At an epsilon the same potentials bound the distortion, with a column of no cost beside.
    bound = Parts("local-dp-distortion", {**problem, "epsilon": 1.0}, even, proof)
    del bound.problem["budget"]
    assert ends(bound) == (0.5, 0.5)
    # Above the budget it is no way out: all of an output's cost has to be above.
    dear = {**problem, "distortion": [[1.0, 1.0], [1.0, 0.0]], "budget": 0.75}
    told = {"channel": [[0.5, 0.5], [0.25, 0.75]], "supports": []}
    lower, upper = ends(Parts("local-dp", dear, told, {"mixture": POINT, "potentials": [0.5, 0.5]}))
    assert lower <= upper


def test_released_ratio_is_exact():
    rows = [[fmpq(1, 2), fmpq(1, 2), fmpq(0)], [fmpq(1, 8), fmpq(7, 8), fmpq(0)]]
    assert released_ratio(rows, fmpq(0)) == 4
    assert released_ratio(rows[::-1], fmpq(0)) == 4
    assert released_ratio(rows, fmpq(1, 8)) == 3
    # Of the first output, and of both: (1/2 + 1/8 - delta) / ...
    assert released_ratio(rows, fmpq(3, 8)) == 1
    none = [[fmpq(1, 2), fmpq(1, 2)], [fmpq(1), fmpq(0)]]
    assert released_ratio(none, fmpq(0)) is None
    assert released_ratio(none, fmpq(1, 4)) is None
    assert released_ratio(none, fmpq(1, 2)) == 1
    # Half of an output is out of the other row's reach, and counts together with the best of the
    # rest: (1/4 + 1/2 - delta) / (1/4), not (1/2 - delta) / (1/4).
    mixed = [[fmpq(1, 4), fmpq(1, 2), fmpq(1, 4)], [fmpq(0), fmpq(1, 4), fmpq(3, 4)]]
    assert released_ratio(mixed, fmpq(1, 4)) == 2


def floats_of(number):
    """Return floats that sum to a positive dyadic number exactly, the largest first."""
    result = []
    while number:
        mantissa, shift = int(number.p), int(number.q).bit_length() - 1
        cut = max(mantissa.bit_length() - 53, 0)
        result.append(math.ldexp(mantissa >> cut, cut - shift))
        number -= fmpq(mantissa >> cut) * fmpq(2) ** (cut - shift)
    return result


def with_ratio(ratio):
    """Return two rows of which the first output's probabilities have this ratio, exactly."""
    rest = floats_of(2 * ratio - 1)
    # The other outputs' ratios stay far below for a ratio of e^100.
    first = [1.0, *(0.5**i for i in range(1, len(rest))), 0.5 ** (len(rest) - 1)]
    return [first, [1.0, *rest]]


def test_no_epsilon_is_met_but_for_the_last_digit():
    """A ratio between e^epsilon and the rational above it is one too large."""
    problem = {**stated(0.0, epsilon=100.0), "distortion": [[0] * 4, [0] * 4]}
    for ratio in (exp_below(100.0), exp_above(100.0)):
        channel = with_ratio(ratio)
        assert released_ratio(normalized_rows(channel), fmpq(0)) == ratio
        parts = Parts("local-dp-distortion", problem, {"channel": channel, "supports": []}, {})
        if ratio == exp_below(100.0):
            assert ends(parts) == (0.0, 0.0)
        else:
            refused(parts, {}, "does not meet the privacy level")
    # Nor do potentials prove anything that fit the smaller one only.
    ratio = exp_below(LOG_3)
    share = fmpq(1, 2) / (1 + ratio)
    refused(PARTS["distortion"], {("proof", "potentials"): [str(share)] * 2}, "do not fit epsilon")
    share = fmpq(1, 2) / (1 + exp_above(LOG_3))
    assert ends(tampered(PARTS["distortion"], {("proof", "potentials"): [str(share)] * 2}))[0] > 0.2


def test_ends_are_rounded_outwards():
    third = {"channel": [[2.0, 1.0], [1.0, 2.0]], "supports": []}
    parts = Parts("local-dp-distortion", stated(0.0, epsilon=1.0), third, {})
    assert fmpq(*ends(parts)[1].as_integer_ratio()) > fmpq(1, 3)
    small = tampered(PARTS["distortion"], {("proof", "potentials"): ["1/30", "1/30"]})
    assert rational(ends(small)[0]) < fmpq(1, 15)
    tenths = tampered(PARTS["distortion"], {("proof", "potentials"): ["1/10", "1/10"]})
    assert ends(tenths)[0] == 0.2
    with flint.ctx.workprec(300):
        two = {("proof", "comparisons"): comparisons(2.0), ("proof", "level"): 2.0}
        assert arb(ends(tampered(PARTS["epsilon at delta"], two))[0]) < arb(2).log()
    # sum_x min_y = 1/2, less 2^-60 for delta: next to a float, and below it.
    even = {"channel": [[0.5, 0.5], [0.5, 0.5]], "supports": []}
    problem = stated(2.0**-60, epsilon=0.0)
    proof = {"mixture": POINT, "comparisons": comparisons(1.0)}
    lower, _ = ends(Parts("local-dp-distortion", problem, even, proof))
    assert lower < 0.5


FORGED = [
    ("epsilon", {("problem", "budget"): 0.2499}, "exceeds the budget"),
    ("epsilon", {("problem", "delta"): -0.25}, r"delta is not in \[0, 1\]"),
    ("epsilon", {("problem", "delta"): 1.25}, r"delta is not in \[0, 1\]"),
    ("epsilon", {("proof", "potentials"): ["1/16", "1/16"]}, "sum to less than the budget"),
    ("epsilon", {("proof", "potentials"): [0.125]}, "the potentials: expected a list of 2"),
    ("epsilon", {("witness", "channel"): [[0.75, 0.25]]}, "the channel: expected a list of 2"),
    ("epsilon", {("witness", "channel"): [[0.75, 0.25]] * 3}, "the channel: expected a list of 2"),
    ("epsilon", {("witness", "channel"): {"0": 1}}, "the channel: expected a list of 2"),
    ("epsilon", {("witness", "channel", 0, 1): -0.25}, "finite and non-negative"),
    ("epsilon", {("witness", "channel", 0): [0.0, 0.0]}, "must not sum to zero"),
    ("epsilon", {("witness", "channel", 0): [1.0]}, "the channel does not fit the sources"),
    ("epsilon", {("witness", "note"): 0}, "the witness: it has no note"),
    ("epsilon", {("problem", "note"): 0}, "the problem: it has no note"),
    ("epsilon", {("proof", "note"): 0}, "the proof: it has no note"),
    ("epsilon at delta", {("proof", "note"): 0}, "the proof: it has no note"),
    ("epsilon at delta", {("proof", "level"): 2.5}, "do not exceed the budget"),
    ("epsilon at delta", {("proof", "level"): 0.5}, "do not exceed the budget"),
    ("epsilon at delta", {("proof", "comparisons"): {"0": 1}}, "the comparisons are not a list"),
    ("epsilon at delta", {("proof", "comparisons", 0, "second"): 0}, "two different inputs"),
    ("epsilon at delta", {("proof", "comparisons", 0, "second"): 2}, "two different inputs"),
    ("epsilon at delta", {("proof", "comparisons", 0, "first"): 2}, "two different inputs"),
    ("epsilon at delta", {("proof", "comparisons", 0, "first"): -2}, r": found -?\d"),
    ("epsilon at delta", {("proof", "comparisons", 0, "note"): 0}, "a comparison: it has no note"),
    (
        "epsilon at delta",
        {("proof", "comparisons", 0, "multipliers"): [-0.125, 0.0]},
        "a multiplier is negative",
    ),
    (
        "no epsilon",
        {("proof", "comparisons", i, "multipliers"): [0.0, 0.0] for i in (0, 1)},
        "do not exceed the budget at every level",
    ),
    (
        "epsilon at delta",
        {
            ("problem", "delta"): 0.5,
            ("problem", "budget"): 0.125,
            ("witness", "channel"): [[0.875, 0.125], [0.125, 0.875]],
            ("proof", "comparisons"): comparisons(3.0),
            ("proof", "level"): 3.0,
        },
        "do not exceed the budget",
    ),
    ("distortion", {("proof", "potentials"): [0.2, 0.05]}, "potentials do not fit epsilon"),
    ("epsilon", {("witness", "channel"): {"0": 1, "1": 1}}, "the channel: expected a list of 2"),
    ("no epsilon", {("problem", "budget"): 0.4375}, "do not exceed the budget at every level"),
    ("no epsilon", {("problem", "budget"): 2.0**-60}, "do not exceed the budget at every level"),
    (
        "no epsilon",
        {("proof", "comparisons"): comparisons(3.0), ("problem", "budget"): 0.25},
        "do not exceed the budget at every level",
    ),
    ("distortion", {("problem", "epsilon"): -1.0}, "epsilon is negative"),
    ("distortion", {("problem", "epsilon"): 1.0}, "does not meet the privacy level"),
    (
        "distortion",
        {("witness", "channel"): IDENTITY["channel"]},
        "does not meet the privacy level",
    ),
    ("distortion", {("proof", "potentials"): [0.125, 0.126]}, "potentials do not fit epsilon"),
    ("distortion at delta", {("problem", "epsilon"): 0.9}, "does not meet the privacy level"),
    ("distortion at delta", {("proof", "level"): 2.0}, "the proof: it has no level"),
]


@pytest.mark.parametrize(("name", "changes", "reason"), FORGED)
def test_forged(name, changes, reason):
    refused(PARTS[name], changes, reason)


ORDERED = {"lower": [0.0, 0.0], "upper": [1.0, 1.0], "matrix": [[1.0, -1.0]], "bound": [0.0]}

SOURCES = [
    ({"0": EVEN}, "the sources' parts: expected a list"),
    ([{"points": [], "polytopes": []}], "a part of the sources is empty"),
    ([EVEN, {"points": [[0.5, 0.25, 0.25]], "polytopes": []}], "same number of outcomes"),
    (
        [EVEN, {"points": [], "polytopes": [{**BOX, "lower": [0.0] * 3, "upper": [1.0] * 3}]}],
        "same number of outcomes",
    ),
    ([], "same number of outcomes"),
    ([{"points": [[]], "polytopes": []}], "must not sum to zero|same number"),
    ([{"points": [[-0.5, 1.5]], "polytopes": []}], "finite and non-negative"),
    ([{"points": {}, "polytopes": []}], "the points: expected a list"),
    ([{"points": [], "polytopes": [{**BOX, "lower": [-0.25, 0.25]}]}], "a lower bound is negative"),
    ([{"points": [], "polytopes": [{**BOX, "lower": [0.875, 0.0]}]}], "above the upper one"),
    ([{"points": [], "polytopes": [{**BOX, "upper": [0.25, 0.5]}]}], "no distribution meets"),
    ([{"points": [], "polytopes": [{**BOX, "lower": [0.75, 0.5]}]}], "no distribution meets"),
    (
        [{"points": [], "polytopes": [{**BOX, "upper": [0.75]}]}],
        "the upper bounds: expected a list",
    ),
    ([{"points": [], "polytopes": [{**BOX, "bound": [1.0]}]}], "the inequalities: expected a list"),
    ([{"points": [], "polytopes": [{**BOX, "note": 1}]}], "a polytope: it has no note"),
    ([{**EVEN, "note": 1}], "a part of the sources: it has no note"),
    (
        [{"points": [], "polytopes": [{**ORDERED, "matrix": [[1.0]]}]}],
        "an inequality: expected a list of 2",
    ),
]


@pytest.mark.parametrize(("sources", "reason"), SOURCES)
def test_sources_are_read_strictly(sources, reason):
    with pytest.raises(CertificateError, match=reason):
        read_parts(sources)


def test_bounds_may_leave_a_single_law():
    for bounds in ([0.25, 0.75], [0.0, 1.0]):
        box = {"lower": bounds, "upper": bounds, "matrix": [], "bound": []}
        assert read_parts([{"points": [], "polytopes": [box]}])[0] == 2


@pytest.mark.parametrize(
    ("distortion", "reason"),
    [
        ([[0, 1]], "does not fit the sources"),
        ([[0, 1], [1, 0], [1, 1]], "does not fit the sources"),
        ([[0, 1], [1]], "does not fit the sources"),
        ([[], []], "does not fit the sources"),
        ([[0, -1], [1, 0]], "a distortion is negative"),
        ("euclidean", "the distortion: expected a list"),
    ],
)
def test_distortions_are_read_strictly(distortion, reason):
    refused(PARTS["epsilon"], {("problem", "distortion"): distortion}, reason)


def both():
    """Return two parts: a point and a box; and a polytope with an inequality, p_0 <= p_1."""
    return read_parts([{"points": [[0.25, 0.75]], "polytopes": [BOX, ORDERED]}])[1]


def member(weight, law):
    return {"weight": weight, "law": law}


def test_a_mixture_is_the_mean():
    value = {"weights": [2.0], "members": [member("1", ["3/4", "1/4"]), member(1, ["0", "1"])]}
    assert mixture(both(), value, 2) == [fmpq(5, 16), fmpq(11, 16)]
    value = {"weights": [0.0], "members": [member(0, None), member(1, ["1/2", "1/2"])]}
    assert mixture(both(), value, 2) == [fmpq(1, 2), fmpq(1, 2)]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"weights": [0.0], "members": [member(0, None)] * 2}, "not all zero"),
        ({"weights": [-1.0], "members": [member(2, ["1/2", "1/2"])] * 2}, "must be non-negative"),
        ({"weights": [1.0], "members": [member(-0.5, ["1/2", "1/2"])] * 2}, "must be non-negative"),
        ({"weights": [1.0], "members": [member(0, None)]}, "the members: expected a list of 2"),
        ({"weights": [], "members": [member(0, None)] * 2}, "the weights: expected a list of 1"),
        ({"weights": [1.0, 1.0], "members": [member(0, None)] * 2}, "the weights: expected a list"),
        ({"weights": [1.0], "members": [{"weight": 0}] * 2}, "a member: without law"),
        ({"weights": [1.0], "members": [], "note": 1}, "a mixture of sources: it has no note"),
    ],
)
def test_a_mixture_is_one(value, reason):
    with pytest.raises(CertificateError, match=reason):
        mixture(both(), value, 2)


LAWS = [
    (["1/8", "7/8"], None),  # below the box, and above it
    (["1/4", "1/2"], None),
    (["1/2", "3/4"], None),
    (["-1/4", "5/4"], None),
    (["1/2"], "a distribution: expected a list of 2"),
    (["1/4", "1/4", "1/2"], "a distribution: expected a list of 2"),
    ([0.5, 0.5], "is not a fraction"),
    (["0.5", "0.5"], "is not a fraction"),
    (["1/x", "1/2"], "is not a fraction"),
    (["1/", "1/2"], "is not a fraction"),
    (["/2", "1/2"], "is not a fraction"),
    (["\u0661/2", "1/2"], "is not a fraction"),
    (["1/0", "1/2"], "denominator 0"),
    (["0" * 4000 + "1", "0"], "expected a number"),
]


@pytest.mark.parametrize(("law", "reason"), LAWS)
def test_a_law_is_in_its_polytope(law, reason):
    value = {"weights": [0.0], "members": [member(1, law), member(0, None)]}
    with pytest.raises(CertificateError, match=reason or "a distribution is not in its polytope"):
        mixture(both(), value, 2)


def test_a_law_is_above_each_lower_and_below_each_upper_bound():
    for bounds in (
        {"lower": [0.25, 0.0], "upper": [1.0, 1.0]},
        {"lower": [0.0, 0.0], "upper": [1.0, 0.75]},
    ):
        parts = read_parts([{"points": [], "polytopes": [{**BOX, **bounds}]}])[1]
        inside = {"weights": [], "members": [member(1, ["1/4", "3/4"])]}
        assert mixture(parts, inside, 2) == [fmpq(1, 4), fmpq(3, 4)]
        outside = {"weights": [], "members": [member(1, ["1/8", "7/8"])]}
        with pytest.raises(CertificateError, match="a distribution is not in its polytope"):
            mixture(parts, outside, 2)
    assert exact_numbers(["-1/3", "-2"], "x", 2) == [fmpq(-1, 3), -2]


def test_a_law_meets_the_inequalities():
    value = {"weights": [0.0], "members": [member(0, None), member(1, ["5/8", "3/8"])]}
    with pytest.raises(CertificateError, match="a distribution is not in its polytope"):
        mixture(both(), value, 2)
    for one in (["1/4", "3/4"], ["3/4", "1/4"]):  # on the box's border
        value = {"weights": [0.0], "members": [member(1, one), member(0, None)]}
        assert mixture(both(), value, 2)[0] == fmpq(*map(int, one[0].split("/")))
    assert exact_numbers(["0" * 3999 + "1"], "x", 1) == [1]


SUPPORTS = [
    {"level": 0.5, "member": None, "multipliers": []},
    {"level": 0.5, "member": ["1/2", "1/2"], "multipliers": [0.25]},
]


def test_supports_bound_the_worst_case():
    """max over p_0 in [1/4, 3/4] of p_0 is 3/4; with p_0 <= p_1 alone it is 1/2."""
    box, ordered = both()[0].bodies
    for level in (-1.0, 0.0, 0.5, 1.0, 2.0):
        for y in (0.0, 0.25, 0.5, 1.0):
            for cost, most in (([fmpq(1), fmpq(0)], fmpq(1, 2)), ([fmpq(0), fmpq(1)], 1)):
                first = {"level": level, "member": None, "multipliers": []}
                second = {"level": level, "member": ["1/2", "1/2"], "multipliers": [y]}
                parts = read_parts([{"points": [], "polytopes": [BOX]}])[1]
                assert worst_case(parts, cost, [first]) >= fmpq(3, 4)
                parts = read_parts([{"points": [], "polytopes": [ORDERED]}])[1]
                assert worst_case(parts, cost, [second]) >= most
    assert worst_case(both(), [fmpq(1), fmpq(0)], SUPPORTS) == fmpq(3, 4)
    exact = [
        {"level": 0.0, "member": None, "multipliers": []},
        {**SUPPORTS[1], "multipliers": [0.5]},
    ]
    parts = read_parts([{"points": [], "polytopes": [BOX]}])[1]
    assert worst_case(parts, [fmpq(1), fmpq(0)], exact[:1]) == fmpq(3, 4)
    parts = read_parts([{"points": [], "polytopes": [ORDERED]}])[1]
    assert worst_case(parts, [fmpq(1), fmpq(0)], exact[1:]) == fmpq(1, 2)
    bound = {**ORDERED, "bound": [-0.5]}
    parts = read_parts([{"points": [], "polytopes": [bound]}])[1]
    support = {"level": 0.5, "member": ["1/4", "3/4"], "multipliers": [0.5]}
    assert worst_case(parts, [fmpq(1), fmpq(0)], [support]) == fmpq(1, 4)
    assert box.bound == []
    assert ordered.bound == [0]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda s: s[:1], "the supports: expected a list of 2"),
        (lambda s: [*s, s[0]], "the supports: expected a list of 2"),
        (lambda s: [s[0], {**s[1], "member": None}], "needs a member"),
        (lambda s: [s[0], {**s[1], "member": ["3/4", "1/4"]}], "not in its polytope"),
        (lambda s: [{**s[0], "member": ["1", "0"]}, s[1]], "not in its polytope"),
        (lambda s: [s[0], {**s[1], "multipliers": [-0.25]}], "a multiplier is negative"),
        (lambda s: [s[0], {**s[1], "multipliers": []}], "multipliers: expected a list of 1"),
        (lambda s: [s[0], {**s[1], "note": 1}], "a support: it has no note"),
    ],
)
def test_supports_are_read_strictly(change, reason):
    with pytest.raises(CertificateError, match=reason):
        worst_case(both(), [fmpq(1), fmpq(0)], change(SUPPORTS))
