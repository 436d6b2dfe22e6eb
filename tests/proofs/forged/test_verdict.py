"""A verdict is about each claimed end, and no end that is claimed too tight passes."""

import math

import pytest

from cvxleak import verify
from cvxleak.proofs.format import Certificate
from tests.kernel.test_capacity import symmetric
from tests.proofs.forged import test_design, test_local_dp
from tests.proofs.forging import ends, tampered

CAPACITY = symmetric(None)
NO_EPSILON = test_local_dp.PARTS["no epsilon"]


def certified(parts, lower, upper, **changes):
    return Certificate(parts.kind, parts.problem, lower, upper, *parts[2:], **changes)


def test_claims_are_compared_exactly():
    lower, upper = ends(CAPACITY)
    answer = verify(certified(CAPACITY, lower, upper))
    assert (answer.passed, answer.reason) == (True, "both bounds are proved")
    assert (answer.lower, answer.upper) == (lower, upper)
    above, below = math.nextafter(lower, 1), math.nextafter(upper, 0)
    for claim, proved in (
        ((above, upper), (False, True)),
        ((lower, below), (True, False)),
        ((above, below), (False, False)),
    ):
        answer = verify(certified(CAPACITY, *claim))
        assert not answer.passed
        assert tuple(answer.ends[end].proved for end in ("lower", "upper")) == proved
        assert "is proved, not the claimed" in answer.reason


@pytest.mark.parametrize("end", ["lower", "upper"])
def test_one_end_is_claimed_alone(end):
    lower, upper = ends(CAPACITY)
    honest = {"lower": (lower, None), "upper": (None, upper)}[end]
    answer = verify(certified(CAPACITY, *honest))
    assert answer.passed
    assert answer.reason == f"the {end} bound is proved; no other bound is claimed"
    false = {"lower": (upper + 0.1, None), "upper": (None, lower - 0.1)}[end]
    assert not verify(certified(CAPACITY, *false)).passed


def test_an_end_that_is_not_proved_is_not_passed_as_infinite():
    """The witness misses an entry of own: infinity is no upper end that it shows."""
    own = {("problem", "own"): [test_design.half_space(0, 1, 2.0)], ("proof", "own"): [0.0]}
    missed = tampered(test_design.PARTS["priors"], own)
    answer = verify(certified(missed, 0.0, math.inf))
    assert not answer.passed
    assert (
        answer.reason
        == "the upper bound: the witness misses entry 0 of own; the lower bound is proved"
    )
    # An infinite end that is proved does pass, and a finite one in its place does not.
    assert verify(certified(NO_EPSILON, math.inf, math.inf)).passed
    assert not verify(certified(NO_EPSILON, 0.0, 1.0)).passed


def test_units_and_kinds_are_those_of_the_kind():
    for unit in ("bits", "distortion", "a", "z"):
        answer = verify(certified(CAPACITY, 0.0, 1.0, unit=unit))
        assert answer.reason == f"unit {unit!r}; this kind is in nats"
    for kind in ("none", ["capacity"]):
        assert "unknown kind" in verify(certified(CAPACITY._replace(kind=kind), 0.0, 1.0)).reason


def test_half_spaces_are_for_kinds_that_have_them():
    lower, upper = ends(CAPACITY)
    about = {"lower": "problem", "upper": "half-spaces"}
    answer = verify(certified(CAPACITY, lower, upper, about=about))
    assert answer.reason == "about: this kind of file proves nothing about half-spaces"
    own = test_design.PARTS["own"]
    answer = verify(certified(own, *ends(own), about=about))
    assert answer.passed
    assert answer.reason.endswith("the upper bound for the stored half-spaces only")
    assert answer.ends["upper"].about == "half-spaces"
