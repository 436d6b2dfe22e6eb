"""Forged certificates of designs for known priors, in each form that a proof can have."""

import math
import re

import flint
import pytest
from flint import arb

from cvxleak.proofs.checker import PROVERS
from cvxleak.proofs.fixed_prior import about, bracket
from tests.proofs.forging import (
    Parts,
    encloses,
    ends,
    proves_nothing_false,
    refused,
    tampered,
)

LOG_3, LOG_3_HALVES = math.nextafter(math.log(3), 2), math.nextafter(math.log(1.5), 2)
LEVEL = 0.13081203594113694
ROWS = [[0.75, 0.25], [0.25, 0.75]]
EVEN = [0.5, 0.5]
TABLE = [[0.5, 0.0], [0.0, 0.5]]


def stated(minimize, amount, secrets=(EVEN,), **changes):
    return {
        "distortion": [[0, 1], [1, 0]],
        "sources": [EVEN],
        "minimize": minimize,
        "slope" if minimize == "sum" else "budget": amount,
        "secrets": list(secrets),
        "own": [],
    } | changes


def private(privacy, budget):
    result = stated("distortion", budget, privacy=privacy)
    del result["secrets"]
    return result if privacy == "local-dp" else {**result, "prior": EVEN}


def proof(weight=1.0, price=LOG_3, **more):
    return {"weights": [weight], "prices": [price], "own": []} | (more or {"reference": ROWS})


def penalty(rows):
    return {"prices": [1.0], "penalty": rows, "own": []}


WITNESS = {"channel": ROWS}
L, D = "fixed-prior-leakage", "fixed-prior-distortion"
PARTS = {
    "law": Parts(L, stated("information", 0.25), WITNESS, proof()),
    "table": Parts(L, stated("information", 0.25, [TABLE]), WITNESS, proof()),
    "posteriors": Parts(L, stated("information", 0.25), WITNESS, proof(posteriors=[ROWS])),
    "posteriors of a table": Parts(
        L, stated("information", 0.25, [TABLE]), WITNESS, proof(posteriors=[ROWS])
    ),
    "several": Parts(
        L,
        stated("information", 0.25, [EVEN, [0.75, 0.25]], sources=[EVEN, [0.25, 0.75]]),
        WITNESS,
        {"weights": [1.0, 0.0], "prices": [LOG_3, 0.0], "own": [], "reference": ROWS},
    ),
    "sum": Parts(L, stated("sum", LOG_3), WITNESS, proof()),
    "distortion": Parts(D, stated("distortion", LEVEL + 2.0**-50), WITNESS, proof(1 / LOG_3, 1.0)),
    "local-dp": Parts(
        D, private("local-dp", LOG_3), WITNESS, penalty([[0.125, -0.375], [-0.375, 0.125]])
    ),
    "pml": Parts(D, private("pml", LOG_3_HALVES), WITNESS, penalty([[0.5, 0], [0, 0.5]])),
    "maximal-leakage": Parts(
        D, private("maximal-leakage", LOG_3_HALVES), WITNESS, penalty([[0.5, 0], [0, 0.5]])
    ),
    "own": Parts(
        L,
        stated(
            "information",
            1.0,
            own=[
                {"entries": [[x, x, 1.0]], "further": [], "at_least": 0.75, "equal": False}
                for x in (0, 1)
            ],
        ),
        WITNESS,
        {**proof(price=0.0), "own": [LOG_3 / 2, LOG_3 / 2]},
    ),
}
LEAST = {"sum": math.log(1.5)} | dict.fromkeys(
    ("distortion", "local-dp", "pml", "maximal-leakage"), 0.25
)


def test_an_upper_end_that_the_witness_does_not_show_is_infinite():
    missed = tampered(PARTS["own"], {("problem", "own", 0, "at_least"): 0.875})
    lower, upper, why = PROVERS[L].prove(*missed[1:])
    assert lower > LEVEL
    assert (upper, why) == (math.inf, "the witness misses entry 0 of own")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("law", "least leakage of channels with 2 inputs and 2 outputs, to known priors"),
        ("sum", "least leakage and distortion of channels with 2 inputs and 2 outputs, to"),
        ("distortion", "least distortion of channels with 2 inputs and 2 outputs, to known"),
        ("own", "least leakage of .*, to known priors, with the user's own constraints"),
    ],
)
def test_what_a_certificate_says_that_it_is_about(name, text):
    assert re.match(text, about(PARTS[name].problem))


def least() -> arb:
    return arb(2).log() + arb("0.25") * arb("0.25").log() + arb("0.75") * arb("0.75").log()


@pytest.mark.parametrize("name", PARTS)
def test_honest(name):
    if name in LEAST:
        lower, upper = ends(PARTS[name])
        assert LEAST[name] - 1e-9 < lower <= LEAST[name] <= upper < LEAST[name] + 1e-9
    elif name != "own":
        encloses(PARTS[name], least)
    else:
        lower, upper = ends(PARTS[name])
        assert LEVEL - 1e-11 < lower <= LEVEL < upper + 1e-15
    assert bracket(PARTS[name].problem, WITNESS, PARTS[name].proof)[1] >= ends(PARTS[name])[0]


@pytest.mark.parametrize("name", PARTS)
def test_no_number_proves_too_much(name):
    truth = LEAST.get(name, LEVEL)
    proves_nothing_false(PARTS[name], truth, truth + 1e-9)


def test_a_sum_is_rounded_outwards():
    lower, upper = ends(PARTS["sum"])
    with flint.ctx.workprec(300):
        # min over channels of I + s E d is log 2 - log(1 + e^-s).
        exact = arb(2).log() - (1 + (-arb(LOG_3)).exp()).log()
        assert arb(lower) < exact < arb(upper)


FORGED = [
    ("law", {("problem", "budget"): 0.2499}, "distortion is above the budget"),
    (
        "law",
        {
            ("problem", "sources"): [EVEN, [0.0, 1.0]],
            ("witness", "channel"): [[0.5, 0.5], [0.5, 0.5]],
            ("proof", "prices"): [1.0, 0.0],
        },
        "distortion is above the budget",
    ),
    (
        "law",
        {
            ("problem", "sources"): [EVEN, [0.25, 0.75]],
            ("witness", "channel"): [[0.9, 0.1], [0.4, 0.6]],
            ("proof", "prices"): [1.0, 0.0],
        },
        "distortion is above the budget",
    ),
    (
        "law",
        {
            ("problem", "sources"): [[1.0, 0.0], [0.0, 1.0]],
            ("witness", "channel"): [[1.0, 0.0], [0.5, 0.5]],
            ("proof", "prices"): [1.0, 0.0],
        },
        "distortion is above the budget",
    ),
    ("law", {("problem", "privacy"): "local-dp"}, "the problem: it has no privacy"),
    ("law", {("problem", "minimize"): "distortion"}, "minimize: found"),
    ("distortion", {("problem", "minimize"): "information"}, "minimize: found"),
    ("law", {("problem", "budget"): -0.25}, "must not be negative"),
    ("law", {("problem", "distortion"): [[0, -1], [1, 0]]}, "must not be negative"),
    ("law", {("problem", "sources"): [[-0.5, 1.5]]}, "finite and non-negative"),
    ("law", {("problem", "sources"): [[0.5]]}, "the sources: expected a list of 2"),
    ("law", {("problem", "sources"): []}, "the sources: expected a list of at least one rows"),
    ("law", {("problem", "distortion"): []}, "the distortion: expected a list of at least one"),
    ("law", {("problem", "distortion"): [[], []]}, "rows that are not empty"),
    ("law", {("problem", "distortion"): [[0, 1], [1]]}, "the distortion: expected a list of 2"),
    ("law", {("problem", "distortion"): {"0": 1}}, "the distortion: expected a list"),
    ("law", {("problem", "secrets"): []}, "a list of distributions or of tables"),
    ("law", {("problem", "secrets"): {"0": EVEN}}, "a list of distributions or of tables"),
    ("law", {("problem", "secrets"): [EVEN, 1]}, "a list of distributions or of tables"),
    ("law", {("problem", "secrets"): [[]]}, "a list of distributions or of tables"),
    ("law", {("problem", "secrets"): [[0.5]]}, "a secret: expected a list of 2"),
    ("law", {("problem", "secrets"): [[1.5, -0.5]]}, "finite and non-negative"),
    ("law", {("problem", "note"): 1}, "the problem: it has no note"),
    ("law", {("witness", "note"): 1}, "the witness: it has no note"),
    ("law", {("proof", "note"): 1}, "the proof: it has no note"),
    ("law", {("witness", "channel"): [[0.75, 0.25]]}, "the channel: expected a list of 2 rows"),
    ("law", {("witness", "channel"): [[1.0], [1.0]]}, "the channel: expected a list of 2"),
    ("law", {("witness", "channel", 0): [1.25, -0.25]}, "finite and non-negative"),
    ("law", {("proof", "weights"): [-1.0]}, "the weights must not be negative"),
    ("several", {("proof", "weights"): [2.0, -1.0]}, "the weights must not be negative"),
    ("several", {("proof", "prices"): [2.0, -1.0]}, "the prices must not be negative"),
    ("law", {("proof", "weights"): [0.0]}, "the multipliers are all zero"),
    ("law", {("proof", "weights"): []}, "the weights: expected a list of 1"),
    ("law", {("proof", "prices"): [-1.0]}, "the prices must not be negative"),
    ("distortion", {("proof", "prices"): [0.0]}, "the multipliers are all zero"),
    ("law", {("proof", "reference", 0, 1): -0.25}, "the reference must not be negative"),
    ("law", {("proof", "reference"): [[0.5, 0.5]]}, "the reference: expected a list of 2"),
    ("posteriors", {("proof", "posteriors"): []}, "a matrix for each secret"),
    ("posteriors", {("proof", "posteriors"): {"0": ROWS}}, "a matrix for each secret"),
    ("posteriors", {("proof", "posteriors"): [ROWS] * 2}, "a matrix for each secret"),
    ("posteriors", {("proof", "posteriors", 0): ROWS[:1]}, "the posteriors: expected a list of 2"),
    (
        "posteriors",
        {("proof", "posteriors", 0, 0): [1.5, 0.5], ("proof", "posteriors", 0, 1): [-0.5, 0.5]},
        "finite and non-negative",
    ),
    # Of a value that does not occur, too.
    (
        "posteriors",
        {
            ("problem", "secrets"): [[1.0, 0.0]],
            ("proof", "posteriors", 0): [[1e9] * 2, [1 - 1e9] * 2],
        },
        "finite and non-negative",
    ),
    ("posteriors of a table", {("proof", "posteriors", 0): [*ROWS, EVEN]}, "expected a list of 2"),
    ("distortion", {("problem", "budget"): LEVEL - 1e-9}, "leaks more than the budget"),
    (
        "distortion",
        {
            ("problem", "secrets"): [[1.0, 0.0], EVEN],
            ("problem", "budget"): 0.1,
            ("proof", "weights"): [1.0, 0.0],
        },
        "leaks more than the budget",
    ),
    ("local-dp", {("problem", "budget"): 1.0}, "the witness is not local-dp at the budget"),
    ("local-dp", {("witness", "channel"): [[1.0, 0.0], [0.5, 0.5]]}, "the witness is not local-dp"),
    ("pml", {("problem", "budget"): 0.4}, "the witness is not pml at the budget"),
    ("pml", {("witness", "channel"): [[1.0, 0.0], [0.5, 0.5]]}, "the witness is not pml"),
    ("maximal-leakage", {("problem", "budget"): 0.4}, "the witness is not maximal-leakage at the"),
    ("pml", {("problem", "privacy"): "none"}, "privacy: found"),
    ("pml", {("problem", "prior"): [0.5]}, "the prior: expected a list of 2"),
    ("pml", {("problem", "prior"): [-0.5, 1.5]}, "finite and non-negative"),
    ("pml", {("proof", "penalty", 0, 1): -0.25}, "the penalty must be >= 0"),
    ("maximal-leakage", {("proof", "penalty", 0, 1): -0.25}, "the penalty must be >= 0"),
    ("pml", {("problem", "prior"): [1.0, 0.0]}, "and 0 where the prior is"),
    ("maximal-leakage", {("problem", "prior"): [1.0, 0.0]}, "and 0 where the prior is"),
    ("pml", {("proof", "penalty"): [[0.5, 0.0]]}, "the penalty: expected a list of 2"),
    ("own", {("proof", "own"): [-0.5, 0.5]}, "a multiplier is negative"),
    ("own", {("problem", "own", 0, "at_least"): 0.76}, "the witness misses entry 0 of own"),
]


@pytest.mark.parametrize(("name", "changes", "reason"), FORGED)
def test_forged(name, changes, reason):
    refused(PARTS[name], changes, reason)


def test_the_worst_secret_and_the_worst_source_count():
    for secrets in ([EVEN, [1.0, 0.0]], [[1.0, 0.0], EVEN]):
        parts = tampered(
            PARTS["law"], {("problem", "secrets"): secrets, ("proof", "weights"): [1.0, 1.0]}
        )
        lower, upper = ends(parts)
        assert lower <= LEVEL <= upper <= LEVEL + 1e-12
    skew = [1.0, 0.0]
    channel = [[0.5, 0.5], [0.0, 1.0]]
    for sources in ([EVEN, skew], [skew, EVEN]):
        changes = {
            ("problem", "sources"): sources,
            ("witness", "channel"): channel,
            ("proof", "prices"): [0.5, 0.5],
            ("problem", "budget"): 0.7,
        }
        assert 0.5 <= ends(tampered(PARTS["distortion"], changes))[1] < 0.5 + 1e-12


def test_a_constant_channel_leaks_nothing():
    changes = {("witness", "channel"): [EVEN, EVEN], ("problem", "budget"): 0.5}
    assert ends(tampered(PARTS["law"], changes))[1] == 0.0
    near = [EVEN, [0.5, 0.5 + 2.0**-30]]
    changes = {("witness", "channel"): near, ("problem", "budget"): 1.0}
    assert ends(tampered(PARTS["law"], changes))[1] > 0.0
    free = tampered(PARTS["distortion"], {("witness", "channel"): [EVEN, EVEN]})
    assert ends(tampered(free, {("problem", "budget"): 0.0}))[1] == pytest.approx(0.5, abs=1e-12)


def test_slopes_of_zero_leave_the_leakage_alone():
    free = tampered(PARTS["sum"], {("problem", "slope"): 0.0, ("proof", "prices"): [0.0]})
    lower, upper = ends(free)
    assert lower == 0.0
    assert upper == pytest.approx(LEVEL, abs=1e-12)


def test_outputs_and_secrets_that_do_not_occur():
    """A third output and a third value of a secret that nothing reaches change nothing."""
    wide = {
        ("problem", "distortion"): [[0, 1, 5], [1, 0, 5]],
        ("witness", "channel"): [[0.75, 0.25, 0.0], [0.25, 0.75, 0.0]],
    }
    reference = {("proof", "reference"): [[0.75, 0.25, 0.0], [0.25, 0.75, 0.0]]}
    encloses(tampered(PARTS["law"], {**wide, **reference}), least)
    encloses(tampered(PARTS["table"], {**wide, **reference}), least)
    unused = {("problem", "secrets"): [[*TABLE, [0.0, 0.0]]]}
    encloses(tampered(PARTS["table"], unused), least)
    posteriors = {**unused, ("proof", "posteriors", 0): [*ROWS, [0.0, 0.0]]}
    encloses(tampered(PARTS["posteriors of a table"], posteriors), least)
    # A zero that is reached proves nothing.
    for name, change in (
        ("law", {("proof", "reference"): [[1.0, 0.0], [0.25, 0.75]]}),
        ("table", {("proof", "reference"): [[1.0, 0.0], [0.25, 0.75]]}),
        ("posteriors", {("proof", "posteriors", 0): [[1.0, 0.25], [0.0, 0.75]]}),
        ("posteriors of a table", {("proof", "posteriors", 0): [[1.0, 0.25], [0.0, 0.75]]}),
    ):
        assert ends(tampered(PARTS[name], change))[0] == 0.0


def test_penalties_of_local_dp_price_both_sides():
    """What is left of t_y is taken off where it is above 0, column by column."""
    up = tampered(PARTS["local-dp"], {("proof", "penalty"): [[0.25, 0.25], [0.25, 0.25]]})
    assert ends(up)[0] == 0.0
    one = tampered(PARTS["local-dp"], {("proof", "penalty"): [[0.125, -0.375], [-0.375, 1.0]]})
    assert ends(one)[0] == 0.0
    slack = tampered(
        PARTS["local-dp"], {("proof", "penalty"): [[0.0625, -0.375], [-0.375, 0.0625]]}
    )
    assert ends(slack)[0] == pytest.approx(0.125, abs=1e-12)


def test_the_support_of_the_prior_counts():
    """Where the prior is 0 a row may be anything."""
    for name in ("pml", "maximal-leakage"):
        parts = tampered(
            PARTS[name],
            {
                ("problem", "prior"): [0.5, 0.5, 0.0],
                ("problem", "sources"): [[0.5, 0.5, 0.0]],
                ("problem", "distortion"): [[0, 1], [1, 0], [1, 1]],
                ("witness", "channel"): [*ROWS, [1.0, 0.0]],
                ("proof", "penalty"): [[0.5, 0], [0, 0.5], [0, 0]],
            },
        )
        lower, upper = ends(parts)
        assert 0.25 - 1e-9 < lower <= 0.25 <= upper < 0.25 + 1e-9


def test_maximal_leakage_is_no_pml():
    """With the prior (3/4, 1/4) one channel of maximal leakage log(3/2) errs by 1/8."""
    parts = tampered(
        PARTS["maximal-leakage"],
        {
            ("problem", "prior"): [0.75, 0.25],
            ("problem", "sources"): [[0.75, 0.25]],
            ("witness", "channel"): [[1.0, 0.0], [0.5, 0.5]],
        },
    )
    for diagonal in ((0.25, 0.25), (0.0, 0.4), (0.4, 0.0), (0.25, 0.5)):
        rows = [[diagonal[0], 0], [0, diagonal[1]]]
        lower, upper = ends(tampered(parts, {("proof", "penalty"): rows}))
        assert lower <= 0.125 <= upper <= 0.125 + 1e-12


def test_a_problem_of_information_knows_no_privacy():
    parts = tampered(PARTS["law"], {("problem", "privacy"): "local-dp"})
    del parts.problem["secrets"]
    refused(parts, {}, "the problem: without secrets")
