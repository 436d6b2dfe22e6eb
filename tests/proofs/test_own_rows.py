"""Constraints of the user's own in a certificate: what its witness has to show, and of what."""

import dataclasses
import json
import math

import cvxpy as cp
import numpy as np
import pytest

from cvxleak import Certificate, Status, design_for_prior, min_leakage, verify
from cvxleak.design.slater_repair import SlaterRepair
from cvxleak.queries import parity

HAMMING = [[0.0, 1.0], [1.0, 0.0]]
EVEN = [[0.5, 0.5], [0.5, 0.5]]


def near_the_identity(q):
    """sum |q - 1| <= 0.4, stated with a further variable."""
    distance, one = cp.Variable(q.shape), np.eye(*q.shape)
    return [q - one <= distance, one - q <= distance, cp.sum(distance) <= 0.4]


def known(constraints, budget=0.5, **options):
    return design_for_prior([0.5, 0.5], HAMMING, budget, constraints=constraints, **options)


@pytest.fixture(scope="module", params=[None, 1.0, 1.5])
def certificate(request) -> Certificate:
    """The certificate for a known prior, or for adversaries with at least this entropy."""
    if request.param is None:
        return known(near_the_identity).certificate
    return min_leakage(
        parity(3),
        distortion=HAMMING,
        budget=0.5,
        entropy_floor=request.param,
        rows="query",
        constraints=near_the_identity,
    ).certificate


def silent(certificate: Certificate, further=None) -> Certificate:
    """Claim that nothing need leak: the witness tells nothing, and nothing is priced."""
    proof = {**certificate.proof, "own": [0.0] * len(certificate.problem["own"])}
    proof.pop("balance", None)
    if certificate.kind == "min-leakage":
        proof["cuts"] = []
        witness = {"channel": {**certificate.witness["channel"], "matrix": EVEN}}
    else:
        proof |= {"posteriors": [EVEN], "prices": [0.0]}
        witness = {"channel": EVEN}
    if further is not None:
        witness["further"] = further
    return dataclasses.replace(certificate, lower=0.0, upper=0.0, witness=witness, proof=proof)


def test_an_honest_certificate(certificate):
    assert certificate.lower >= (
        0.32761 if certificate.problem.get("entropy_floor") == 1.5 else 0.36806
    )
    assert certificate.claim["about"] == {"lower": "problem", "upper": "problem"}
    answer = verify(certificate)
    assert (answer.passed, answer.reason) == (True, "both bounds are proved")
    assert len(certificate.witness["further"]) == 4
    assert len(certificate.problem["own"]) == 9  # all that is asked, priced or not


@pytest.mark.parametrize(
    ("further", "reason"),
    [
        (None, "has further variables whose values are not stored"),
        ([0.5, 0.5, 0.5, 0.5], "the witness misses entry 8 of own"),
        ([0.1, 0.1, 0.1, 0.1], "the witness misses entry 1 of own"),
        ([1e300, -1e300, 1e300, -1e300], "the witness misses entry 1 of own"),
        # The sum is 0.4 up to what is rounding at this size, and 2^-40 of it is more than 1.
        ([2.0**60, 0.5, 0.5, -(2.0**60)], "the witness misses entry 3 of own"),
        (["1/2", "1/2", "1/2", "1/2"], "the witness misses entry 8 of own"),
    ],
)
def test_a_witness_outside_the_set_proves_no_end(certificate, further, reason):
    answer = verify(silent(certificate, further))
    assert not answer.passed
    assert reason in answer.ends["upper"].reason
    assert answer.ends["lower"].proved  # the lower end 0 needs no witness
    assert answer.reason.endswith("the lower bound is proved")
    assert answer.upper == np.inf


@pytest.mark.parametrize("further", [[], [0.1] * 3, [0.1] * 5, [None] * 4, "0.1", ["1/0"] * 4])
def test_values_that_cannot_be_read(certificate, further):
    assert not verify(silent(certificate, further)).passed


def test_every_value_is_checked(certificate):
    values = certificate.witness["further"]
    for place in range(len(values)):
        for shift in (-0.21, 0.21):
            other = [z + shift * (j == place) for j, z in enumerate(values)]
            changed = {**certificate.witness, "further": other}
            answer = verify(dataclasses.replace(certificate, witness=changed))
            assert not answer.passed
            assert "the witness misses entry" in answer.reason


def test_large_values_give_no_room():
    # z_0 - z_1 is what counts; both can be as large as one likes.
    def apart(q):
        z = cp.Variable(2)
        return [z[0] - z[1] >= 0.9, q[0, 0] >= z[0] - z[1], q[1, 1] >= 0.9]

    certificate = known(apart).certificate
    assert verify(certificate).passed
    for size in (0.0, 1.0, 1e12, 1e18):
        for gap in (0.0, 0.5):
            assert not verify(silent(certificate, [size + gap, size])).passed


def test_equations_are_met_exactly_or_in_fractions():
    def thirds(q):
        z = cp.Variable(3)
        return [3 * z[0] == z[1] + 0.1, 7 * z[1] == z[2], q[0, 1] >= z[2] / 3, z[0] == 0.05]

    bound = known(thirds, 0.2)
    assert bound.status is Status.CERTIFIED
    assert verify(bound.certificate).passed
    assert any(isinstance(z, str) for z in bound.certificate.witness["further"])


@pytest.mark.parametrize(
    ("constraints", "about"),
    [
        (lambda q: q[0, 0] >= 0.9, "problem"),
        (near_the_identity, "problem"),
        (lambda q: cp.norm(q - np.eye(2), "fro") <= 0.3, "half-spaces"),
        (lambda q: cp.diag(q[0]) >> 0.05 * np.eye(2), "half-spaces"),
        (lambda q: cp.constraints.PowCone3D(q[0, 0], q[1, 1], q[0, 1] + 0.1, 0.5), "half-spaces"),
        (lambda q: [q[0, 1] <= cp.Variable(bounds=[0, 0.05])], "problem"),
        (lambda q: [q == 0.5 + cp.Variable((2, 2), PSD=True)], "half-spaces"),
    ],
)
def test_what_the_witness_end_is_about(constraints, about):
    certificate = known(constraints, 0.2).certificate
    assert certificate.about == {"lower": "problem", "upper": about}
    answer = verify(certificate)
    narrow = ", the upper bound for the stored half-spaces only" * (about == "half-spaces")
    assert (answer.passed, answer.reason) == (True, "both bounds are proved" + narrow)


def test_a_channel_that_is_not_in_the_set_is_no_witness(monkeypatch):
    monkeypatch.setattr(SlaterRepair, "met", lambda *_: False)
    bound = known(lambda q: q[0, 0] >= 0.9)
    certificate = bound.certificate
    assert bound.status is Status.BRACKETED
    assert (certificate.upper, certificate.about) == (None, {"lower": "problem"})
    answer = verify(certificate)
    assert (answer.passed, list(answer.ends)) == (True, ["lower"])
    assert answer.reason == "the lower bound is proved; no other bound is claimed"


def by_hand(miss: float, version: int) -> Certificate:
    """The least leakage where q(1|0) + q(0|1) <= 0.2, with the best of all proofs."""
    row = {"entries": [[0, 1, -1.0], [1, 0, -1.0]], "further": [], "at_least": -0.2, "equal": False}
    return Certificate(
        "fixed-prior-leakage",
        {
            "distortion": HAMMING,
            "sources": [[0.5, 0.5]],
            "secrets": [[0.5, 0.5]],
            "minimize": "information",
            "budget": 1.0,
            "own": [row],
        },
        0.3,
        0.4,
        {"channel": [[1 - miss, miss], [miss, 1 - miss]]},
        {
            "weights": [1.0],
            "prices": [0.0],
            "posteriors": [[[0.9, 0.1], [0.1, 0.9]]],
            "own": [math.log(3)],
        },
        about={} if version == 1 else {"lower": "problem", "upper": "problem"},
        schema_version=version,
    )


def test_both_ends_are_about_the_same_channels():
    all_of_it, more = 0.1 * (1 + 1.99 * 2.0**-40), 0.1 * (1 + 2.01 * 2.0**-40)
    answer = verify(by_hand(all_of_it, 2))
    assert answer.passed
    assert answer.lower <= answer.upper < answer.lower + 1e-11
    assert not verify(by_hand(more, 2)).passed
    # Version 1 has no room in its lower end: its witness may be below it, by as much as is said.
    old = verify(by_hand(all_of_it, 1))
    assert old.passed
    assert old.ends["upper"].about == "half-spaces"
    assert old.upper < old.lower < old.upper + 1e-12


def test_a_file_of_version_1_shows_nothing_of_further_variables(certificate, tmp_path):
    channel = {"channel": certificate.witness["channel"]}
    old = dataclasses.replace(certificate, schema_version=1, about={}, witness=channel)
    old.save(tmp_path / "old.json")
    answer = verify(tmp_path / "old.json")
    assert not answer.passed
    assert {name: end.proved for name, end in answer.ends.items()} == {
        "lower": True,
        "upper": False,
    }
    assert "values are not stored" in answer.reason
    with_values = dataclasses.replace(old, witness=certificate.witness)
    assert not verify(with_values).passed  # version 1 has no such part
    content = json.loads((tmp_path / "old.json").read_text())
    assert "about" not in content["claim"]


@pytest.mark.parametrize(
    ("prior", "distortion", "budget", "place", "most"),
    [
        ([0.4, 0.6], HAMMING, 0.08, (0, 0), 0.8),
        ([0.2, 0.3, 0.5], [[0, 1, 2], [1, 0, 1], [2, 1, 0]], 0.05, (2, 2), 0.9),
    ],
)
def test_the_least_distortion_as_a_decimal_is_a_budget(prior, distortion, budget, place, most):
    bound = design_for_prior(prior, distortion, budget, constraints=lambda q: [q[place] <= most])
    assert bound.status is Status.CERTIFIED
    assert verify(bound.certificate).passed
