"""What messages say of sizes, and of arguments that newcomers get wrong."""

import re

import pytest

from cvxleak import Channel, Prior
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import are, counted
from cvxleak.design import design_for_prior
from cvxleak.model import KnownMarginals, Mechanism
from cvxleak.queries import parity
from cvxleak.refinement import refines
from cvxleak.samples import Samples, audit_samples


def test_a_noun_and_a_verb_agree_with_their_number():
    assert [counted(n, "row") for n in (0, 1, 2, 10**30)] == [
        "0 rows",
        "1 row",
        "2 rows",
        "about 10^30 rows",
    ]
    assert [are(n) for n in (0, 1, 2)] == ["are", "is", "are"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Prior([0.5, 0.5], ["a"]), "labels: found 1 label; 2 are needed"),
        (
            lambda: design_for_prior([0.5, 0.5], [[0, 1]], 0.1),
            "prior: found 2 outcomes; 1 is needed",
        ),
        (
            lambda: refines(Channel([[0.5, 0.5], [0.5, 0.5]]), Channel([[1.0]])),
            "other: found 1 input; the channel has 2",
        ),
        (
            lambda: audit_samples((["a", "b"], [0, 1])),
            "secret: 'a' appears once, as does 1 other; every secret",
        ),
        (
            lambda: audit_samples((["a", "b", "b"], [0, 1, 0])),
            "secret: 'a' appears once; every secret",
        ),
        (
            lambda: Mechanism(parity(2), [[1.0]]),
            "channel: found 1 row; the query has 2 values",
        ),
        (
            lambda: KnownMarginals([1.0]).bind(parity(2)),
            "law: found 1 outcome; 2 are needed",
        ),
    ],
)
def test_a_message_about_one_is_in_the_singular(call, message):
    with pytest.raises(ValidationError, match="^" + re.escape(message)):
        call()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Prior([1.0]), "Prior(1 outcome [0]: [1.])"),
        (Channel([[1.0]]), "Channel(1 input [0] -> 1 output [0])"),
        (Samples([0], [0]), "Samples(1 draw of 1 secret [0])"),
    ],
)
def test_a_repr_of_one_is_in_the_singular(value, text):
    assert repr(value) == text
