"""Forged certificates of capacities, and of leakage to priors of independent records."""

import math

import numpy as np
import pytest
from flint import arb

from cvxleak.exact.packing import pack
from cvxleak.model import Mechanism, RecordSpace
from cvxleak.proofs import product_leakage
from cvxleak.queries import count, from_table, parity
from tests.proofs.forging import (
    Parts,
    encloses,
    ends,
    proves_nothing_false,
    refused,
    tampered,
)

LEVEL = 0.13081203594113694
ROWS = [[0.75, 0.25], [0.25, 0.75]]
LOG_2 = math.log(2)


def least() -> arb:
    return arb(2).log() + arb("0.25") * arb("0.25").log() + arb("0.75") * arb("0.75").log()


CAPACITY = Parts("capacity", {"matrix": ROWS}, {"input": [0.5, 0.5]}, {"output": [0.5, 0.5]})
WIDE = Parts(
    "capacity",
    {"matrix": [[0.75, 0.25, 0.0], [0.25, 0.75, 0.0], [0.5, 0.5, 0.0]]},
    {"input": [0.5, 0.5, 0.0]},
    {"output": [0.5, 0.5, 0.0]},
)


def mechanism(rows=ROWS, query=None):
    return Mechanism(query or parity(1), rows).to_dict()


AUDIT = {
    "witness": {"records": [0], "weights": [0.5, 0.5]},
    "proof": {"groups": [{"records": [0], "choices": pack(np.array([[0.5, 0.5]]))}]},
}
CONTEXTS = Parts(
    "product-leakage",
    {"mechanism": mechanism(), "entropy_floor": 0.5, "record": None},
    {"record": 0, "laws": [[0.5, 0.5]]},
    {"contexts": [pack(np.array([[0.5, 0.5]]))], "audit": None},
)
AUDITED = tampered(
    CONTEXTS, {("problem", "record"): 0, ("proof", "contexts"): None, ("proof", "audit"): AUDIT}
)
PARTS = {"capacity": CAPACITY, "wide": WIDE, "contexts": CONTEXTS, "audit": AUDITED}


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_honest(parts):
    encloses(parts, least)


@pytest.mark.parametrize("parts", PARTS.values(), ids=PARTS)
def test_no_number_proves_too_much(parts):
    proves_nothing_false(parts, LEVEL, LEVEL)


FORGED = [
    (CAPACITY, {("problem", "matrix"): {"0": [1]}}, "the matrix is not a list of rows"),
    (CAPACITY, {("problem", "note"): 1}, "the problem: expected the parts"),
    (CAPACITY, {("witness", "note"): 1}, "the witness: expected the parts"),
    (CAPACITY, {("proof", "note"): 1}, "the proof: expected the parts"),
    (CAPACITY, {("witness", "input"): [1.0]}, "the input: expected a list of 2"),
    (CAPACITY, {("witness", "input"): [1.5, -0.5]}, "finite and non-negative"),
    (CAPACITY, {("proof", "output"): [1.5, -0.5]}, "finite and non-negative"),
    (CAPACITY, {("proof", "output"): [0.5, 0.25, 0.25]}, "a row of the matrix: expected a list of"),
    (CAPACITY, {("problem", "matrix", 0): [1.5, -0.5]}, "finite and non-negative"),
    (CONTEXTS, {("problem", "note"): 1}, "the problem: expected the parts"),
    (CONTEXTS, {("witness", "note"): 1}, "the witness: expected the parts"),
    (CONTEXTS, {("proof", "note"): 1}, "the proof: expected the parts"),
    (AUDITED, {("proof", "audit", "note"): 1}, "the audit: expected the parts"),
    (CONTEXTS, {("witness", "record"): 1}, "record 1, which is not audited"),
    (CONTEXTS, {("witness", "laws"): []}, "a distribution for each of 1 records"),
    (CONTEXTS, {("witness", "laws"): [[0.5, 0.5]] * 2}, "a distribution for each of 1 records"),
    (CONTEXTS, {("witness", "laws"): {"0": [0.5, 0.5]}}, "a distribution for each of 1 records"),
    (CONTEXTS, {("witness", "laws"): [[0.5]]}, "a distribution: expected a list of 2"),
    (CONTEXTS, {("witness", "laws"): [[1.0, 0.0]]}, "has entropy .* below the floor"),
    (CONTEXTS, {("proof", "contexts"): []}, "does not bound each of 1 records"),
    (CONTEXTS, {("proof", "contexts"): lambda v: v * 2}, "does not bound each of 1 records"),
    (CONTEXTS, {("proof", "contexts"): {"0": 1}}, "does not bound each of 1 records"),
    (CONTEXTS, {("proof", "contexts"): [pack(np.full((2, 2), 0.5))]}, "do not fit the contexts"),
    (CONTEXTS, {("proof", "contexts"): [pack(np.array([[0.5]]))]}, "do not fit the contexts"),
    (CONTEXTS, {("proof", "contexts"): [pack(np.array([[1.5, -0.5]]))]}, "non-negative"),
]


@pytest.mark.parametrize(("parts", "changes", "reason"), FORGED)
def test_forged(parts, changes, reason):
    refused(parts, changes, reason)


def test_an_output_law_that_misses_an_output_proves_nothing():
    assert ends(tampered(CAPACITY, {("proof", "output"): [1.0, 0.0]}))[1] == math.inf
    told = {("problem", "mechanism"): mechanism([[1.0, 0.0], [0.0, 1.0]])}
    refused(
        CONTEXTS,
        {**told, ("proof", "contexts"): [pack(np.array([[1.0, 0.0]]))]},
        "an input distribution gives probability 0 to an output",
    )
    assert ends(tampered(CONTEXTS, told))[1] == pytest.approx(LOG_2)


def test_the_largest_divergence_counts():
    for output in ([0.75, 0.25], [0.25, 0.75]):
        upper = ends(tampered(CAPACITY, {("proof", "output"): output}))[1]
        assert upper == pytest.approx(0.5 * math.log(3), abs=1e-12)
        contexts = [pack(np.array([[*output]]))]
        upper = ends(tampered(CONTEXTS, {("proof", "contexts"): contexts}))[1]
        assert upper > LEVEL + 0.01


def test_the_least_of_the_bounds_and_the_worst_record():
    bare = tampered(CONTEXTS, {("proof", "contexts"): None})
    assert ends(bare)[1] == pytest.approx(LOG_2)
    assert arb(ends(bare)[1]) > arb(2).log()
    both = tampered(CONTEXTS, {("proof", "audit"): AUDIT})
    assert ends(both)[1] == pytest.approx(LEVEL)
    two = Parts(
        "product-leakage",
        {
            "mechanism": mechanism([[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]], count(2)),
            "entropy_floor": 0.0,
            "record": 0,
        },
        {"record": 0, "laws": [[0.5, 0.5], [1.0, 0.0]]},
        {"contexts": [pack(np.array([[0.5, 0.5], [1.0, 0.0]]))], "audit": None},
    )
    lower, upper = ends(two)
    # The first record moves the law by a quarter, whatever the second is.
    half = np.array([[0.75, 0.25], [0.5, 0.5]])
    mean = half.mean(axis=0)
    exact = float((half * np.log(half / mean)).sum() / 2)
    assert lower == pytest.approx(exact, abs=1e-12)
    # The second context's law is a point: its other row is far from it.
    assert upper == pytest.approx(LEVEL, abs=1e-12)
    last = tampered(two, {("witness", "laws"): [[0.5, 0.5], [0.0, 1.0]]})
    assert ends(last)[0] == pytest.approx(exact, abs=1e-12)
    spread = tampered(two, {("witness", "laws"): [[0.5, 0.5], [0.5, 0.5]]})
    assert ends(spread)[0] < exact
    other = tampered(
        two,
        {
            ("problem", "record"): 1,
            ("witness", "record"): 1,
            ("witness", "laws"): [[0.0, 1.0], [0.5, 0.5]],
        },
    )
    assert ends(other)[0] == pytest.approx(exact, abs=1e-12)
    refused(two, {("problem", "entropy_floor"): 0.7}, "below the floor")
    assert ends(tampered(spread, {("problem", "entropy_floor"): 2 * LOG_2 - 1e-9}))[0] > 0


def test_witnesses_of_as_many_datasets_as_is_said(monkeypatch):
    monkeypatch.setattr(product_leakage, "SIZE_LIMIT", 2)
    assert ends(CONTEXTS)[0] > 0
    monkeypatch.setattr(product_leakage, "SIZE_LIMIT", 1)
    refused(CONTEXTS, {}, "at most 1 datasets")


def test_the_worst_of_records_that_differ():
    """Record 1 of three values is told in full, record 0 not at all, and the other way around."""
    for first, table in ((0, [[0, 1, 2], [0, 1, 2]]), (1, [[0, 0, 0], [1, 1, 1]])):
        query = from_table(RecordSpace([(0, 1), (0, 1, 2)]), table)
        told = Mechanism(query, np.eye(len(query.values))).to_dict()
        laws = [[0.5, 0.5], [1 / 3, 1 / 3, 1 / 3]]
        parts = Parts(
            "product-leakage",
            {"mechanism": told, "entropy_floor": 0.0, "record": None},
            {"record": 1 - first, "laws": laws},
            {"contexts": None, "audit": None},
        )
        lower, upper = ends(parts)
        assert lower == pytest.approx(math.log(3 - first), abs=1e-9)
        assert upper == pytest.approx(math.log(3), abs=1e-12)
        lines = [len(Mechanism.from_dict(told).query.lines(i)) for i in (0, 1)]
        even = [pack(np.full((n, k), 1 / k)) for n, k in zip(lines, (2, 3), strict=True)]
        upper = ends(tampered(parts, {("proof", "contexts"): even}))[1]
        assert upper == pytest.approx(math.log(3 - first), abs=1e-9)
