import copy
import math

import pytest

from cvxleak.audit import balance, group_leakage, record_leakage
from cvxleak.capacities import capacity
from cvxleak.core.errors import CertificateError
from cvxleak.kernel.claims import digest
from cvxleak.mechanisms import random_rounding
from cvxleak.model import Expectation, KnownMarginals, Mechanism, RelativeEntropyBall
from cvxleak.proofs import reading, verify
from cvxleak.queries import count


@pytest.mark.parametrize(
    "value", [True, "0.5", None, [0.5], math.nan, math.inf, 2**53 + 1, -(10**400), {"a": 1}]
)
def test_what_is_no_exact_number_is_refused(value):
    with pytest.raises(CertificateError, match="the floor: expected a number that a float holds"):
        reading.number(value, "the floor")


@pytest.mark.parametrize("value", [1.0, True, "1", -1, None])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(CertificateError, match="the size: found"):
        reading.count(value, "the size")


def test_what_is_exact_is_read():
    assert reading.number(2**53, "x") == 2.0**53
    assert reading.numbers([0.25, 1], "x", 2) == [0.25, 1.0]
    assert reading.groups([[0], [2, 1]], "x") == [[0], [2, 1]]
    assert reading.parts({"a": 1, "c": 2}, {"a"}, "x", may={"b", "c"})["c"] == 2


@pytest.mark.parametrize(
    ("call", "found"),
    [
        (lambda: reading.parts([1], {"a"}, "x"), "x: expected an object"),
        (lambda: reading.parts({"b": 1}, {"a"}, "x"), "x: without a"),
        (lambda: reading.parts({"a": 1, "b": 1}, {"a"}, "x"), "x: it has no b"),
        (lambda: reading.numbers((0.5,), "x"), "expected a list of numbers"),
        (lambda: reading.numbers([0.5], "x", 2), "expected a list of 2 numbers, found .0.5."),
        (lambda: reading.groups([1], "x"), "expected a list of lists"),
    ],
)
def test_malformed_parts_are_refused(call, found):
    with pytest.raises(CertificateError, match=found):
        call()


def changed(certificate, path, value):
    """Return the certificate's content with one part replaced, its hash made to fit."""
    content = copy.deepcopy(certificate.to_dict())
    part = content
    for key in path[:-1]:
        part = part[key]
    part[path[-1]] = value
    return content | {"sha256": digest(content)}


@pytest.fixture(scope="module")
def rounding():
    return Mechanism(count(4), random_rounding(4, 3))


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("problem", "entropy_floor"), "2,4"),
        (("problem", "entropy_floor"), True),
        (("problem", "size"), 2.0),
        (("problem", "size"), "2"),
        (("problem", "size"), True),
        (("problem", "note"), "about something else"),
        (("ends", "lower", "by", "note"), 1),
        (("ends", "lower", "by", "group"), [0.0, 1.0]),
        (("ends", "lower", "by", "group"), "0"),
        (("ends", "lower", "by", "group"), False),
        (("ends", "lower", "by", "weights", 0), "half"),
        (("ends", "lower", "by", "weights", 0), True),
        (("ends", "upper", "by", "note"), 1),
        (("ends", "upper", "by", "groups"), {}),
    ],
)
def test_a_leakage_certificate_is_read_strictly(rounding, path, value):
    certificate = group_leakage(rounding, entropy_floor=2.4, size=2, tol=0.5).certificate
    assert verify(certificate).passed
    assert not verify(changed(certificate, path, value)).passed


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("problem", "matrix", 0, 1), 2**53 + 1),
        (("problem", "matrix", 0, 0), True),
        (("problem", "matrix", 0), "10"),
        (("ends", "lower", "by", "weights", 0), "half"),
        (("ends", "lower", "by", "weights"), {"0": 1.0}),
        (("ends", "upper", "by", "of", "t", 0), True),
        (("ends", "upper", "by", "note"), 1),
        (("ends", "upper", "by", "of", "note"), 1),
    ],
)
def test_a_capacity_certificate_is_read_strictly(path, value):
    certificate = capacity([[1.0, 0.0], [0.0, 1.0]]).certificate
    assert verify(certificate).passed
    assert not verify(changed(certificate, path, value)).passed


def test_what_a_claim_is_about(rounding):
    answer = verify(group_leakage(rounding, entropy_floor=2.4, size=2, tol=0.5).certificate)
    assert answer.about == (
        "the worst group of 2 of 4 records, adversaries with at least 2.4 nats of uncertainty"
    )
    answer = verify(balance(rounding, entropy_floor=1.0, tol=0.5).certificate)
    assert answer.about == "the worst of 4 records, adversaries with at least 1 nats of uncertainty"
    known = [
        KnownMarginals([0.75, 0.25], records=[1, 2]),
        RelativeEntropyBall(3.0, laws=[0.5, 0.5]),
        Expectation([0, 1], records=0, equals=0.5),
        Expectation([0, 1], records=3, at_least=0.25, at_most=0.5, name="age\nof\nthe last"),
    ]
    bound = record_leakage(rounding, entropy_floor=1.0, records=0, adversaries=known, tol=0.9)
    assert verify(bound.certificate).about == (
        "record 0 of 4, adversaries with at least 1 nats of uncertainty; known about "
        "them: each of records 1, 2 has the distribution (0.75, 0.25); relative entropy of at most "
        "3 nats to a product of distributions; "
        "expectation over records (0,) equal to 0.5; age of the last at least 0.25 and at most 0.5"
    )
    assert verify(capacity([[1.0], [1.0]]).certificate).about == (
        "a channel of 2 inputs and 1 outputs"
    )
