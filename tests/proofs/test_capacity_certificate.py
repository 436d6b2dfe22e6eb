"""Capacity certificates: tampering with what a search has made."""

import json
import math

import numpy as np
import pytest

from cvxleak.capacities import capacity, renyi_capacity
from cvxleak.differential_privacy import check_claim
from cvxleak.kernel.claims import digest, outline
from cvxleak.proofs import verify
from tests.proofs.tampering import changed, numbers


def rehashed(content):
    """Return the content with a hash that fits it."""
    return {**content, "sha256": digest(content)}


@pytest.fixture(scope="module")
def certificate():
    rng = np.random.default_rng(4)
    return capacity(rng.dirichlet(np.ones(4), size=3), tol=1e-12).certificate


def test_certificate_passes_and_survives_a_file(certificate, tmp_path):
    certificate.save(tmp_path / "capacity.json")
    assert certificate.schema_version == 3
    answer = verify(certificate)
    assert answer.passed
    assert answer.about == "a channel of 3 inputs and 4 outputs"
    assert answer.rules == {"lower": ("point",), "upper": ("close", "share", "vertices")}
    assert verify(tmp_path / "capacity.json").passed


def test_the_proof_is_told(certificate):
    lines = outline(certificate.to_dict()).splitlines()
    assert lines[0].startswith(f"close: at most {certificate.upper:.10g} (")
    assert lines[1].startswith("  share (")
    assert all(line.startswith("  vertices: at most ") for line in lines[2:5])
    for bound, line in (
        (renyi_capacity([[1, 0], [0, 1]], 2), "order: at most 0.6931471806 (the largest diverg"),
        (
            check_claim([["3/4", "1/4"], ["1/4", "3/4"]], gdp=1).bound,
            "pairs: at most 1.3489795 (the largest p",
        ),
    ):
        assert bound.certificate is not None
        assert outline(bound.certificate.to_dict()).startswith(line)


def test_any_changed_number_fails(certificate):
    content = certificate.to_dict()
    paths = list(numbers(content))
    assert len(paths) >= 12 + 3 + 4 + 2
    for path in paths:
        for change in (lambda x: x + 1, lambda x: -x, lambda x: x * (1 + 1e-15) + 1e-300):
            tampered = changed(content, path, change)
            if tampered != content:
                assert not verify(tampered).passed


def test_changed_numbers_fail_even_with_a_hash_that_fits(certificate):
    content = json.loads(json.dumps(certificate.to_dict()))
    parts = [
        (("problem",), content["problem"]),
        (("ends", "lower", "by", "weights"), content["ends"]["lower"]["by"]["weights"]),
        (("ends", "upper", "by", "of", "t"), content["ends"]["upper"]["by"]["of"]["t"]),
    ]
    for start, part in parts:
        for path in numbers(part, start):
            # A law in proportion is the same law, so scale single entries only.
            for change in (lambda x: x * 1.01 + 1e-3, lambda x: x * 0.99, lambda x: -x - 1e-3):
                assert not verify(rehashed(changed(content, path, change))).passed, path
    for end, shift in (("lower", 1e-9), ("upper", -1e-9)):
        moved = changed(content, ("ends", end, "value"), lambda x: x + shift)  # noqa: B023
        assert not verify(rehashed(moved)).passed


SHARE = {"rule": "share", "values": [{"rule": "vertices"}] * 3}


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("lower", {"rule": "point", "weights": [1.0, 0.0]}),
        ("lower", {"rule": "point", "weights": []}),
        ("lower", {"rule": "point", "weights": [0.0, 0.0, 0.0]}),
        ("lower", {"rule": "point", "weights": "abc"}),
        ("lower", {}),
        ("upper", SHARE | {"t": [0.5, 0.5]}),
        ("upper", SHARE | {"t": [1.0, 0.0, 0.0, 0.0]}),
        ("upper", SHARE | {"t": None}),
        ("problem", {"matrix": []}),
        ("problem", {"matrix": [[1.0], [1.0], [1.0]]}),
        ("problem", {"matrix": [[1.0, 0, 0, 0], [1.0, 0, 0], [1.0, 0, 0, 0]]}),
        ("problem", {"matrix": [[math.inf, 0, 0, 1], [1.0, 0, 0, 0], [1.0, 0, 0, 0]]}),
        ("problem", {}),
    ],
)
def test_malformed_parts_fail_with_a_reason(certificate, part, value):
    content = json.loads(json.dumps(certificate.to_dict()))
    if part == "problem":
        content["problem"] = value
    elif part == "upper":
        content["ends"]["upper"]["by"]["of"] = value
    else:
        content["ends"]["lower"]["by"] = value
    hopeless = "Infinity" in json.dumps(content)  # no JSON, so it has no hash
    answer = verify(content if hopeless else rehashed(content))
    assert not answer.passed
    assert answer.reason


def test_wider_claims_are_fine(certificate):
    content = json.loads(json.dumps(certificate.to_dict()))
    content["ends"]["lower"]["value"] -= 0.1
    content["ends"]["upper"]["value"] += 0.1
    assert verify(rehashed(content)).passed
