"""Forged certificates of the least worst-case information."""

import math

import pytest
from flint import arb

from cvxleak.proofs.checker import PROVERS
from tests.proofs.forging import (
    Parts,
    encloses,
    ends,
    proves_nothing_false,
    refused,
    tampered,
)

EVEN = {"points": [[0.5, 0.5]], "polytopes": []}
BETWEEN = {"lower": [0.25, 0.25], "upper": [0.75, 0.75], "matrix": [], "bound": []}
BOX = {"points": [], "polytopes": [BETWEEN]}
CHANNEL = [[0.75, 0.25], [0.25, 0.75]]
LEVEL = 0.13081203594113694
PRICE = math.log(3)

LAW = Parts(
    "min-information",
    {"sources": [EVEN], "distortion": "hamming", "budget": 0.25},
    {"channel": CHANNEL, "supports": [], "outputs": [None], "output_supports": [[]]},
    {
        "channel": CHANNEL,
        "price": PRICE,
        "mixture": {"weights": [1.0], "members": []},
        "parts": [{"weight": 1.0, "mixture": {"weights": [1.0], "members": []}}],
    },
)
SETS = Parts(
    "min-information",
    {"sources": [EVEN, BOX], "distortion": [[0, 1], [1, 0]], "budget": 0.25},
    {
        "channel": CHANNEL,
        "supports": [{"level": 0.25, "member": None, "multipliers": []}],
        "outputs": [[0.5, 0.5], [0.5, 0.5]],
        "output_supports": [[], [{"level": LEVEL, "multipliers": []}]],
    },
    {
        "channel": CHANNEL,
        "price": PRICE,
        "mixture": {"weights": [0.5], "members": [{"weight": 0.5, "law": ["1/2", "1/2"]}]},
        "parts": [
            {"weight": 0.5, "mixture": {"weights": [1.0], "members": []}},
            {
                "weight": 0.5,
                "mixture": {"weights": [], "members": [{"weight": 1.0, "law": ["1/2", "1/2"]}]},
            },
        ],
    },
)
ALONE = Parts(
    "min-information",
    {"sources": [BOX], "distortion": "hamming", "budget": 0.25},
    {
        **SETS.witness,
        "outputs": [[0.5, 0.5]],
        "output_supports": [[{"level": LEVEL, "multipliers": []}]],
    },
    {
        **SETS.proof,
        "mixture": {"weights": [], "members": [{"weight": 0.5, "law": ["1/2", "1/2"]}]},
        "parts": SETS.proof["parts"][1:],
    },
)
PARTS = {"law": LAW, "sets": SETS, "alone": ALONE}


def test_what_a_certificate_says_that_it_is_about():
    about = PROVERS["min-information"].about
    assert about(LAW.problem) == "a convex set on 2 outcomes, distortion at most 0.25"
    assert about(SETS.problem) == "a set of 2 convex parts on 2 outcomes, distortion at most 0.25"


def truth() -> arb:
    """Return log 2 - H(1/4)."""
    return arb(2).log() + arb("0.25") * arb("0.25").log() + arb("0.75") * arb("0.75").log()


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_honest(parts):
    encloses(parts, truth)
    assert ends(parts._replace(proof={}))[0] == 0


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_no_number_proves_too_much(parts):
    proves_nothing_false(parts, LEVEL, LEVEL)


def test_the_largest_part_counts():
    """The upper end is the worst of all parts and points, not the last or the least."""
    skew = {"points": [[0.75, 0.25]], "polytopes": []}
    for sources in ([EVEN, skew], [skew, EVEN]):
        for outputs in ([None, None], [[0.5, 0.5], [0.5, 0.5]], [None, [0.5, 0.5]]):
            parts = Parts(
                "min-information",
                {"sources": sources, "distortion": "hamming", "budget": 0.25},
                {**LAW.witness, "outputs": outputs, "output_supports": [[], []]},
                {},
            )
            assert LEVEL <= ends(parts)[1] <= LEVEL + 1e-12


def test_an_output_law_that_misses_an_output_proves_nothing():
    parts = tampered(LAW, {("witness", "outputs"): [[1.0, 0.0]]})
    assert ends(parts)[1] == math.inf
    # An output that no input causes may be missed.
    wide = tampered(
        LAW,
        {
            ("problem", "distortion"): [[0, 1, 0], [1, 0, 0]],
            ("witness", "channel"): [[0.75, 0.25, 0.0], [0.25, 0.75, 0.0]],
            ("witness", "outputs"): [[0.5, 0.5, 0.0]],
        },
    )._replace(proof={})
    encloses(wide, truth, math.inf)
    # One row that is missed is enough, and so is one of several points.
    half = tampered(
        LAW,
        {
            ("witness", "channel"): [[1.0, 0.0], [0.5, 0.5]],
            ("witness", "outputs"): [[1.0, 0.0]],
        },
    )
    assert ends(half)[1] == math.inf


def test_points_and_rows_of_weight_zero():
    """Terms that are skipped are skipped for being zero."""
    sure = {"points": [[1.0, 0.0]], "polytopes": []}
    parts = tampered(
        SETS,
        {
            ("problem", "sources"): [EVEN, sure],
            ("witness", "supports"): [],
            ("witness", "output_supports"): [[], []],
            ("proof", "parts", 0, "weight"): 1.0,
            ("proof", "parts", 1): {"weight": 0.0, "mixture": None},
            ("proof", "mixture"): {"weights": [1.0, 0.0], "members": []},
        },
    )
    encloses(parts, truth)
    # Without a price there is no mixture to name, and nothing is proved.
    free = tampered(LAW, {("proof", "price"): 0.0, ("proof", "mixture"): None})
    assert ends(free)[0] == 0


def test_weights_are_shares():
    """The weights of the parts are divided by their sum."""
    parts = tampered(SETS, {("proof", "parts", i, "weight"): 4.0 for i in (0, 1)})
    encloses(parts, truth)
    # A price that is right for weights that sum to 8 proves nothing for those that sum to 1.
    dear = tampered(parts, {("proof", "price"): 8 * PRICE})
    assert ends(dear)[0] == 0


FORGED = [
    ("law", {("witness", "channel"): [[0.5, 0.5], [0.25, 0.75]]}, "exceeds the budget"),
    ("sets", {("witness", "channel"): [[0.5, 0.5], [0.25, 0.75]]}, "exceeds the budget"),
    ("law", {("problem", "budget"): 0.2499}, "exceeds the budget"),
    ("law", {("witness", "channel"): [[0.75, 0.25]]}, "the channel: expected a list of 2"),
    ("law", {("witness", "channel"): [[0.75, 0.25]] * 3}, "the channel: expected a list of 2"),
    (
        "law",
        {("witness", "channel"): {"0": [1, 0], "1": [0, 1]}},
        "the channel: expected a list of 2",
    ),
    ("law", {("proof", "channel"): [[0.75, 0.25]]}, "a channel does not fit"),
    ("law", {("proof", "channel"): [[1.0, 0.0], [0.25, 0.75]]}, "channel has a zero"),
    ("law", {("witness", "outputs"): []}, "the output distributions: expected one for each part"),
    (
        "law",
        {("witness", "outputs"): [None, None]},
        "the output distributions: expected one for each part",
    ),
    (
        "law",
        {("witness", "outputs"): {"0": None}},
        "the output distributions: expected one for each part",
    ),
    (
        "law",
        {("witness", "output_supports"): []},
        "the output supports: expected one for each part",
    ),
    (
        "law",
        {("witness", "output_supports"): [[], []]},
        "the output supports: expected one for each part",
    ),
    ("law", {("witness", "outputs"): [[1.0]]}, "an output: expected a list of 2"),
    ("sets", {("witness", "outputs", 1): None}, "left out only for a single distribution"),
    (
        "law",
        {("problem", "sources", 0, "points"): [[0.5, 0.5], [0.5, 0.5]]},
        "left out only for a single distribution",
    ),
    (
        "sets",
        {
            ("problem", "sources"): [EVEN, {"points": [[0.5, 0.5]], "polytopes": [BETWEEN]}],
            ("witness", "outputs", 1): None,
        },
        "left out only for a single distribution",
    ),
    ("law", {("proof", "price"): -1.0}, "the price is negative"),
    ("law", {("proof", "parts"): []}, "an entry for each part"),
    ("law", {("proof", "parts"): {"0": 1}}, "an entry for each part"),
    ("sets", {("proof", "parts"): lambda v: v[:1]}, "an entry for each part"),
    ("sets", {("proof", "parts"): lambda v: [*v, v[0]]}, "an entry for each part"),
    ("law", {("proof", "parts", 0, "note"): 1}, "an entry of the proof: it has no note"),
    ("sets", {("proof", "parts", 0, "weight"): -1.0}, "a weight is negative"),
    ("law", {("proof", "parts", 0, "weight"): 0.0}, "all zero"),
    ("alone", {("witness", "output_supports", 0, 0, "note"): 0}, "a support: it has no note"),
    ("law", {("problem", "note"): 0}, "the problem: it has no note"),
    ("law", {("witness", "note"): 0}, "the witness: it has no note"),
    ("law", {("proof", "note"): 0}, "the proof: it has no note"),
]


@pytest.mark.parametrize(("name", "changes", "reason"), FORGED)
def test_forged(name, changes, reason):
    refused(PARTS[name], changes, reason)
