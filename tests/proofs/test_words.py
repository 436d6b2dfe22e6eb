"""What a certificate says that it is about."""

import pytest

from cvxleak.core.errors import CertificateError
from cvxleak.model import (
    BoundedDensity,
    ChannelSet,
    Expectation,
    Gaussian,
    Gini,
    Guess,
    KnownMarginals,
    Mechanism,
    RelativeEntropyBall,
    Shannon,
)
from cvxleak.model.gain_form import LEAKAGE, GainForm
from cvxleak.model.knowledge.binding import as_knowledge
from cvxleak.proofs.record_leakage import about, about_disclosure, in_words
from cvxleak.queries import count, parity

BIT = parity(1)
ROWS = [[0.75, 0.25], [0.25, 0.75]]
STATED = {"entropy_floor": 0.5, "size": 1, "records": None}


@pytest.mark.parametrize(
    ("size", "records", "text"),
    [
        (1, None, "the worst of 9 records"),
        (2, None, "the worst group of 2 of 9 records"),
        (1, [[4]], "record 4 of 9"),
        (2, [[0, 8], [1, 2]], "record 0 + 8, 1 + 2 of 9"),
        (1, [[0], [1], [2], [3]], "record 0, 1, 2, 3 of 9"),
        (1, [[0], [1], [2], [3], [4]], "record 0, 1, 2, 3, ... of 9"),
    ],
)
def test_who_is_audited(size, records, text):
    mechanism = {"query": {"space": {"alphabets": [[[0, 1], 5], [[0, 1, 2], 4]]}}}
    problem = STATED | {"mechanism": mechanism, "size": size, "records": records}
    assert about(problem) == f"{text}, adversaries with at least 0.5 nats of uncertainty"


@pytest.mark.parametrize(
    ("output", "end"),
    [
        (ROWS, "of uncertainty"),
        (ChannelSet([[0.5, 0.25]] * 2, [[0.75, 0.5]] * 2), "; for every channel in a set"),
        (Gaussian(1.0), "; for the number with its noise"),
        (BoundedDensity(ChannelSet(ROWS, ROWS), [[0, 0]] * 2), "; for the number with its noise"),
    ],
)
def test_what_is_published(output, end):
    assert about(STATED | {"mechanism": Mechanism(count(1), output).to_dict()}).endswith(end)


def test_what_is_gained():
    problem = STATED | {"mechanism": Mechanism(BIT, ROWS).to_dict()}
    told = problem | {"gain": Guess().to_dict(), "form": "rise"}
    assert about(told).endswith("; increase in the chance of guessing correctly")


def test_a_gain_and_its_form_come_together():
    for part in ({"gain": Guess().to_dict()}, {"form": "rise"}, {"gain": 1, "form": "rise"}):
        with pytest.raises(CertificateError, match="cannot be read"):
            GainForm.read(part)
    with pytest.raises(CertificateError, match="form: found"):
        GainForm.read({"gain": Gini().to_dict(), "form": "half"})
    with pytest.raises(CertificateError, match="the kind without a gain"):
        GainForm.read({"gain": Shannon().to_dict(), "form": "rise"})
    assert GainForm.read({}) == LEAKAGE
    for form in ("posterior", "rise", "factor"):
        found = GainForm(Guess(), form)
        assert GainForm.read(found.to_dict()) == found
    assert not GainForm.read({"gain": Shannon().to_dict(), "form": "posterior"}).is_leakage


def words(knowledge):
    (bound,) = as_knowledge([knowledge], BIT)
    return in_words(bound.to_dict())


def test_what_is_known():
    assert words(Expectation([0, 1], records=0, equals=0.25)).endswith("equal to 0.25")
    assert words(Expectation([0, 1], records=0, at_most=0.25)).endswith("at most 0.25")
    assert words(Expectation([0, 1], records=0, at_least=0.25)).endswith("at least 0.25")
    assert "a product of distributions" in words(RelativeEntropyBall(0.125, laws=[0.75, 0.25]))
    assert "a prior" in words(RelativeEntropyBall(0.5, [0.75, 0.25]))
    assert (
        words(KnownMarginals([0.75, 0.25])) == "each of records 0 has the distribution (0.75, 0.25)"
    )
    many = {"kind": "marginals", "law": [0.2] * 5, "records": list(range(5))}
    assert in_words(many) == (
        "each of records 0, 1, 2, 3, ... has the distribution (0.2, 0.2, 0.2, 0.2, ...)"
    )


def test_what_is_disclosed():
    problem = {"size": 1, "records": None}
    assert about_disclosure(problem) == "total disclosure of a record"
    pair = {"size": 2, "records": [[0, 1], [1, 2]]}
    assert about_disclosure(pair) == "total disclosure of 2 records of 2 groups"
