"""No two certificates of one problem may both pass with brackets that do not meet."""

import copy
import dataclasses
import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest

from cvxleak import Certificate, capacity, design_for_prior, min_distortion, min_leakage, verify
from cvxleak.audit import (
    balance,
    product_leakage,
    record_leakage,
    total_disclosure,
)
from cvxleak.capacities import renyi_capacity
from cvxleak.differential_privacy import check_claim
from cvxleak.kernel.claims import KINDS
from cvxleak.kernel.reading import pack
from cvxleak.local_dp import local_dp_epsilon_of_set
from cvxleak.model import ChannelSet, Mechanism
from cvxleak.proofs import checker, fixed_prior
from cvxleak.proofs.checker import PROVERS
from cvxleak.proofs.reading import unpack
from cvxleak.queries import parity
from cvxleak.refinement import refines
from tests.brackets import Brackets

HAMMING = [[0.0, 1.0], [1.0, 0.0]]
STORED = Path(__file__).parent / "stored" / "schema_1.json"


def near_the_identity(q):
    distance, one = cp.Variable(q.shape), np.eye(*q.shape)
    return [q - one <= distance, one - q <= distance, cp.sum(distance) <= 0.4]


def certificate_of(kind: str) -> Certificate:
    query = {"query": parity(3), "distortion": HAMMING, "entropy_floor": 1.0, "rows": "query"}
    own = {"constraints": near_the_identity}
    match kind:
        case "min-leakage, own":
            return min_leakage(budget=0.5, **query, **own).certificate
        case "min-distortion, own":
            return min_distortion(budget=0.5, **query, **own).certificate
        case "fixed-prior-leakage, own":
            return design_for_prior([0.5, 0.5], HAMMING, 0.5, **own).certificate
        case "fixed-prior-distortion, own":
            least = {"minimize": "distortion", **own}
            return design_for_prior([0.4, 0.6], HAMMING, 0.5, **least).certificate
    found = made()[kind]().certificate
    assert found is not None
    return found


def made() -> dict[str, Callable[[], Any]]:
    """Return how to make a small certificate of each kind that `stored` does not have as it is."""
    rows = [[0.9, 0.1], [0.3, 0.7]]
    noisy = Mechanism(parity(2), rows)
    design = {"query": parity(2), "distortion": HAMMING, "entropy_floor": 0.5, "tol": 1e-2}
    return {
        "capacity": lambda: capacity(rows),
        "renyi-capacity": lambda: renyi_capacity(rows, 2),
        "renyi-dp": lambda: check_claim(rows, renyi=(2, 1)).bound,
        "zcdp": lambda: check_claim(rows, zcdp=1).bound,
        "dp-profile": lambda: check_claim(rows, epsilon=1, delta=0.1).bound,
        "gaussian-dp": lambda: check_claim(rows, gdp=1).bound,
        "deficiency": lambda: refines(rows, np.eye(2)),
        "local-dp-of-set": lambda: local_dp_epsilon_of_set(ChannelSet.from_printed(rows, 1)),
        "total-disclosure": lambda: total_disclosure(Mechanism(parity(2), np.eye(2))),
        "record-leakage": lambda: record_leakage(noisy, 0.9, tol=1e-2),
        "balance": lambda: balance(noisy, 0.9, tol=1e-2),
        "min-leakage": lambda: min_leakage(budget=0.1, **design),
        "min-distortion": lambda: min_distortion(budget=0.2, **design),
        "product-leakage": lambda: product_leakage(noisy, 0.5, tol=1e-2),
    }


def stored() -> list[Certificate | str]:
    """Return a small certificate of each kind; the name of a kind if it is to be made."""
    members = json.loads(STORED.read_text())["certificates"]
    again = {*KINDS, "min-leakage", "min-distortion"}  # what their proofs hold is in other terms
    old = [Certificate.from_dict(one) for one in members if one["kind"] not in again]
    kinds = [kind for kind in PROVERS if kind not in {one.kind for one in old}]
    return [*(dataclasses.replace(one, schema_version=2) for one in old), *kinds]


def places(node, path=()):
    """Yield the path of every number, in packed arrays too."""
    if isinstance(node, dict) and set(node) == {"dtype", "shape", "data"}:
        yield from ((*path, i) for i in range(math.prod(node["shape"])))
        return
    items = node.items() if isinstance(node, dict) else enumerate(node)
    for key, value in items:
        if isinstance(value, (dict, list)):
            yield from places(value, (*path, key))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield (*path, key)


def with_number(node, path, change):
    """Change the number at a path."""
    for key in path[:-1]:
        node = node[key]
    if not isinstance(node, dict) or set(node) != {"dtype", "shape", "data"}:
        node[path[-1]] = change(node[path[-1]])
        return
    values = unpack(node, "it", "fi", node["shape"]).copy()
    with np.errstate(all="ignore"):
        values.flat[path[-1]] = change(values.flat[path[-1]].item())
    node.update(pack(values, node["dtype"]))


def others(old: float) -> list[float]:
    return [0.0, 0.5, 1.0, -old, old * 0.9, old * 1.1, old * (1 + 1e-9), old + 1e-12, 1e9 * old]


def mutated(certificate: Certificate, rng: random.Random) -> Certificate:
    """Change some numbers of the witness and the proof; what is claimed is anything."""
    parts = copy.deepcopy({"witness": certificate.witness, "proof": certificate.proof})
    for path in rng.sample(found := list(places(parts)), min(len(found), rng.choice([1, 1, 2, 5]))):
        with_number(
            parts,
            path,
            lambda old: rng.choice(
                [
                    0.0,
                    0.5,
                    1.0,
                    -old,
                    old * 0.9,
                    old * 1.1,
                    old * (1 + 1e-9),
                    old + 1e-12,
                    1e9 * old,
                ]
            ),
        )
    return dataclasses.replace(certificate, lower=-1e300, upper=1e300, **parts)


@pytest.mark.parametrize(
    "certificate",
    [
        *stored(),
        "min-leakage, own",
        "min-distortion, own",
        "fixed-prior-leakage, own",
        "fixed-prior-distortion, own",
    ],
    ids=lambda one: one if isinstance(one, str) else one.kind,
)
def test_whatever_witness_and_proof_are(certificate):
    if isinstance(certificate, str):  # made here, and not once for each worker when it collects
        certificate = certificate_of(certificate)
    brackets, rng = Brackets(), random.Random(7)
    brackets.verified(verify(certificate))
    tried = [verify(mutated(certificate, rng)) for _ in range(80)]
    for answer in tried:
        brackets.verified(answer)
    assert len(brackets) == 1
    assert not brackets.crossed()
    # Some of them are proofs of something: not all that was changed is refused.
    assert any(end.proved for answer in tried for end in answer.ends.values())


def forged(certificate: Certificate) -> Certificate:
    proof = {**certificate.proof, "own": [0.0] * len(certificate.problem["own"])}
    proof |= {"posteriors": [[[0.5, 0.5], [0.5, 0.5]]], "prices": [0.0]}
    proof.pop("balance", None)
    witness = {"channel": [[0.5, 0.5], [0.5, 0.5]], "further": [0.1] * 4}
    return dataclasses.replace(certificate, lower=0.0, upper=0.0, witness=witness, proof=proof)


def test_a_witness_that_is_not_checked_is_seen(monkeypatch):
    """What went wrong once: half-spaces with further variables were not asked of the witness."""
    honest = certificate_of("fixed-prior-leakage, own")
    brackets = Brackets()
    for certificate in (honest, forged(honest)):
        brackets.verified(verify(certificate))
    assert not brackets.crossed()
    monkeypatch.setattr(checker, "_check", checker._check.__wrapped__)  # for this session's own
    monkeypatch.setattr(fixed_prior, "missed", lambda *_: "")
    for certificate in (honest, forged(honest)):
        answer = verify(certificate)
        assert answer.passed
        brackets.verified(answer)
    assert brackets.crossed()


def test_claims_that_do_not_meet_are_seen():
    brackets = Brackets()
    for probability in (0.1, 0.2):
        brackets.claimed(capacity([[0.9, 0.1], [probability, 1 - probability]]).certificate)
    assert len(brackets) == 2
    assert not brackets.crossed()
    made = capacity([[0.9, 0.1], [0.1, 0.9]]).certificate
    brackets.claimed(dataclasses.replace(made, lower=made.upper + 1e-9, upper=1.0))
    assert brackets.crossed()


def test_every_kind_is_here():
    named = {one if isinstance(one, str) else one.kind for one in stored()}
    assert named == set(PROVERS)
    assert {one for one in stored() if isinstance(one, str)} <= set(made())
