"""Forged certificates of gains about independent people: the corners, both ends, each guard."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import fmpq

from cvxleak.audit import record_leakage
from cvxleak.core.errors import ValidationError
from cvxleak.exact.packing import pack, unpack
from cvxleak.model import Gini, Guess, GuessInTries, Mechanism, RecordSpace, Shannon
from cvxleak.proofs import product_leakage
from cvxleak.proofs.bounds import independent, independent_gains
from cvxleak.proofs.bounds.independent import LEAST_OUTPUT, Rows, simplex
from cvxleak.proofs.bounds.independent_gains import actions_of, corners, gain_ends, laws_of
from cvxleak.queries import count, from_table, parity
from tests.proofs.forging import Parts, ends, proves_nothing_false, refused, tampered

NOISE = [[0.75, 0.25], [0.25, 0.75]]
EVEN = [[0.5, 0.5], 1]
SURE = [[1.0, 0.0], 1]


def parts_of(known, witness, proof, gain=None, form="rise", record=0):
    return Parts(
        "product-leakage",
        {
            "mechanism": Mechanism(parity(2), NOISE).to_dict(),
            "record": record,
            "gain": gain or {"kind": "guess"},
            "form": form,
            **known,
        },
        witness,
        proof,
    )


CASES = (
    {"record": 0, "weights": [EVEN, SURE], "least_probability": None},
    {"inputs": None, "least_probability": None},
)
LEAST = {"laws": {"least_probability": 0.25}}
RISE = parts_of(LEAST, *CASES)
FACTOR = parts_of(LEAST, *CASES, form="factor")
AFTER = parts_of(
    {"laws": {"vertices": [[[[0.25, 0.75], [0.5, 0.5]], 2]]}},
    {"record": 0, "weights": [[[1.0, 0.0], 2]], "least_probability": None},
    CASES[1],
    form="posterior",
)
KNOWN = {"record": 0, "laws": [[0.5, 0.5], [1.0, 0.0]]}
FLOOR = parts_of({"entropy_floor": 0.5}, KNOWN, {"contexts": "corners", "audit": None})
FLOOR_FACTOR = parts_of(
    {"entropy_floor": 0.5}, KNOWN, {"contexts": "corners", "audit": None}, form="factor"
)


@pytest.mark.parametrize(
    ("parts", "truth"),
    [(RISE, 0.125), (FACTOR, 1.25), (AFTER, 0.75), (FLOOR, 0.25), (FLOOR_FACTOR, 1.5)],
    ids=["rise", "factor", "posterior", "floor", "floor, factor"],
)
def test_honest(parts, truth):
    lower, upper = ends(parts)
    assert truth - 1e-12 < lower <= truth <= upper < truth + 1e-12
    proves_nothing_false(parts, truth, truth)


def test_other_ends_of_a_floor():
    # Without the contexts it is what a gain of two values may be.
    parts = tampered(FLOOR, {("proof", "contexts"): None})
    assert ends(tampered(parts, {("witness", "laws"): [[0.5, 0.5]] * 2}))[0] == 0.0
    assert 0.5 <= ends(parts)[1] <= 0.5 + 1e-12


FORGED = [
    (RISE, {("problem", "form"): "most"}, "form: found"),
    (RISE, {("problem", "gain"): {"kind": "gini"}}, "of independent records the gains of guesses"),
    (FLOOR, {("problem", "gain"): {"kind": "gini"}}, "of independent records the gains of guesses"),
    (RISE, {("problem", "gain"): {"kind": "shannon"}}, "not in its canonical form"),
    (RISE, {("problem", "gain"): {"kind": "matrix", "table": [[1.0, 0.0, 0.0]]}}, "columns"),
    (RISE, {("problem", "note"): 1}, "the problem: expected the parts"),
    (RISE, {("proof", "inputs"): [pack(np.full((2, 2), 0.5))]}, "inputs can be given for"),
    (
        FLOOR,
        {("proof", "contexts"): [pack(np.full((2, 2), 0.5))]},
        "distributions of the contexts can be given for",
    ),
    (FLOOR, {("witness", "laws"): [[1.0, 0.0], [1.0, 0.0]]}, "floor|entropy"),
    (FACTOR, {("problem", "gain"): {"kind": "matrix", "table": [[1.0, 0.0]]}}, "not proved to be"),
    (FACTOR, {("problem", "gain"): {"kind": "matrix", "table": [[1.0, -1.0]]}}, "not proved to be"),
    (RISE, {("problem", "gain"): {"kind": "matrix", "table": [[1.7e308, 0.0]]}}, "too large"),
]


@pytest.mark.parametrize(("parts", "changes", "reason"), FORGED)
def test_forged(parts, changes, reason):
    refused(parts, changes, reason)


def test_what_a_certificate_is_about_and_its_unit():
    said = product_leakage.about(RISE.problem)
    assert said.startswith("increase in the chance of guessing correctly, record 0, product priors")
    assert product_leakage.about({"record": None, "entropy_floor": 0.5}).startswith("the worst")
    units = [product_leakage.unit_of(parts.problem) for parts in (RISE, FACTOR)]
    assert units == ["probability", "times"]


@pytest.mark.parametrize("form", ["posterior", "rise", "factor"])
def test_an_audit_of_all_priors_is_about_the_same_gain(form):
    floor, told = 1.125, Mechanism(parity(2), NOISE)
    found, shannon = (
        record_leakage(told, floor, 0, gain=gain, form=how).certificate
        for gain, how in ((Guess(), form), (Shannon(), "rise"))
    )
    audits = [{"witness": dict(one.witness), "proof": dict(one.proof)} for one in (found, shannon)]
    laws = {"record": 0, "laws": [[0.5, 0.5], [0.8125, 0.1875]]}
    known = {"entropy_floor": floor}
    parts = parts_of(known, laws, {"contexts": "corners", "audit": audits[0]}, form=form)
    right = 0.5 + 0.25 * 0.625  # as likely as if the other one were told with a flip of 3 / 16
    value = {"posterior": right, "rise": right - 0.5, "factor": 2 * right}[form]
    lower, upper = ends(parts)
    assert value - 1e-12 < lower <= value
    assert upper == found.upper
    assert upper < ends(tampered(parts, {("proof", "audit"): None}))[1] - 0.01
    refused(parts, {("proof", "audit"): audits[1]}, "parts")
    leaves = ("proof", "audit", "proof", "groups", 0, "cells", "leaves")
    refused(parts, {leaves: lambda packed: pack(-unpack(packed))}, "negative")
    refused(parts, {("proof", "audit", "note"): 1}, "the audit: expected the parts")
    other = {("problem", "record"): 1, ("witness", "record"): 1}
    refused(parts, other, "not about group")


def test_corners_of_guesses_are_uniform_on_some_values():
    found = {tuple(x) for x in corners(np.eye(3), simplex(3))}
    uniform = set()
    for chosen in product((0, 1), repeat=3):
        if sum(chosen):
            uniform.add(tuple(fmpq(c, sum(chosen)) for c in chosen))
    assert found == uniform
    assert corners(np.ones((2, 3)), simplex(3)) == [
        [int(a == b) for b in range(3)] for a in range(3)
    ]
    two = corners(np.eye(2), ((0.25, 0.75), (0.75, 0.25), (0.5, 0.5)))
    assert laws_of(two, ((0.25, 0.75), (0.75, 0.25), (0.5, 0.5))).tolist()[:2] == [
        [0.25, 0.75],
        [0.75, 0.25],
    ]


def test_no_law_beats_the_corners():
    rng = np.random.default_rng(5)
    for k, actions in ((2, 5), (3, 4), (4, 3), (4, 6)):
        table, rows = rng.normal(size=(actions, k)), rng.dirichlet(np.ones(3), k)
        hull = tuple(map(tuple, rng.dirichlet(np.ones(k), 4)))
        laws = laws_of(corners(table, hull), hull)
        drawn = rng.dirichlet(np.full(4, 0.5), 20000) @ np.array(hull)
        for form in ("posterior", "rise"):
            (best,), _ = gain_ends(Rows(rows[None], 1.0), laws, 1, table, form)
            _, (other,) = gain_ends(Rows(rows[None], 1.0), drawn, 1, table, form)
            assert other.max() <= best.max() + 1e-12
            assert other.max() >= best.max() - 0.1


def test_few_systems(monkeypatch):
    # Sets of one value have one best action each, and the set of both has two.
    monkeypatch.setattr(independent_gains, "SYSTEMS_LIMIT", 3)
    assert len(corners(np.eye(2), simplex(2))) == 3
    monkeypatch.setattr(independent_gains, "SYSTEMS_LIMIT", 2)
    with pytest.raises(ValidationError, match="2 actions, and 2 vertices"):
        corners(np.eye(2), simplex(2))


def test_corners_are_laws_even_where_actions_tie_outside_of_them():
    # The three tie on a line, which gives no corner; two of them tie where one weight is negative.
    table = np.array([[1, 0, 0.5], [0, 1, 0.5], [0.5, 0.5, 0.5], [0.25, 0.25, 2]])
    found = {tuple(x) for x in corners(table, simplex(3))}
    assert (fmpq(1, 2), fmpq(1, 2), fmpq(0)) in found
    rng = np.random.default_rng(2)
    for k, actions in ((3, 5), (4, 4)):
        found |= {tuple(x) for x in corners(rng.normal(size=(actions, k)), simplex(k))}
    assert all(sum(x) == 1 and min(x) >= 0 for x in found)


def test_every_set_of_values_is_a_step(monkeypatch):
    steps = []
    monkeypatch.setattr(independent_gains, "charge", lambda what, n, why: steps.append((what, n)))
    monkeypatch.setattr(independent_gains, "SYSTEMS_LIMIT", 7)
    assert len(corners(np.array([[2.0, 0, 1]]), simplex(3))) == 3
    assert steps == [("steps", n) for n in (1, 1, 1, 8, 8, 8, 27)]
    monkeypatch.setattr(independent_gains, "SYSTEMS_LIMIT", 6)
    with pytest.raises(ValidationError, match="1 actions, and 3 vertices"):
        corners(np.array([[2.0, 0, 1]]), simplex(3))
    steps.clear()
    monkeypatch.setattr(independent_gains, "SYSTEMS_LIMIT", 9)
    corners(np.array([[2.0, 0], [0, 2.0], [1.5, 1.5]]), simplex(2))
    assert [n for _, n in steps] == [1, 1, 3 * 8]


@pytest.mark.parametrize("gain", [Gini(), Shannon()])
def test_gains_of_many_actions_are_refused(gain):
    with pytest.raises(ValidationError, match="of independent records"):
        actions_of(gain, 3)
    assert actions_of(GuessInTries(2), 3).shape == (3, 3)
    assert actions_of(Guess(), 3).tolist() == np.eye(3).tolist()


@pytest.mark.parametrize("u", [2.0**-53, 2.0**-20])
def test_both_ends_are_their_formulas(monkeypatch, u):
    monkeypatch.setattr(independent_gains, "UNIT_ROUNDOFF", u)
    rng = np.random.default_rng(8)
    rows = rng.dirichlet(np.ones(5), (3, 2)) * rng.uniform(0.9, 1.01, (3, 2, 1))
    laws, actions = rng.dirichlet(np.ones(2), 4), rng.uniform(0.5, 2, (3, 2))
    after = np.einsum("lk,wk,cky->clwy", laws, actions, rows).max(axis=2).sum(axis=2)
    before = (laws @ actions.T).max(axis=1)
    for share in (1.0, 0.99):
        sums = rows.sum(axis=2)
        rest = max(1 - share * sums.min() * (1 - 7 * u), 0.0) + (1 - share) * sums.max() + 4 * u
        steps = (9 + 2 + 5 + 16) * u * (1 + sums.max())
        doubt = 1.1 * actions.max() * (rest + steps) + LEAST_OUTPUT
        expected = {
            "posterior": (after - doubt, after + doubt),
            "rise": (after - before - 2 * doubt, after - before + 2 * doubt),
            "factor": (
                (after - doubt) / (before + doubt) * (1 - 4 * u),
                (after + doubt) / (before - doubt) * (1 + 4 * u),
            ),
        }
        for form, both in expected.items():
            found = gain_ends(Rows(rows, share), laws, 9, actions, form)
            for one, other in zip(found, both, strict=True):
                assert one == pytest.approx(other, rel=1e-12)


def test_what_is_dropped_is_in_the_ends():
    # Half of each row is missing: the truth may be anything on it.
    rows = np.array([[[0.5, 0.0], [0.5, 0.0]]])
    for whole in ([[1, 0], [0.5, 0.5]], [[0.5, 0.5], [1, 0]], [[1, 0], [1, 0]]):
        truth = float(Fraction(max(whole[0][0], whole[1][0]) + max(whole[0][1], whole[1][1])) / 2)
        law = np.array([[0.5, 0.5]])
        low, high = gain_ends(Rows(rows, 1.0), law, 1, np.eye(2), "posterior")
        assert low[0, 0] <= truth <= high[0, 0]


def test_sums_that_underflow_are_in_the_ends():
    law, rows = np.array([[0.5, 0.5]]), Rows(np.array([[[1.0], [1.0]]]), 1.0)
    low, high = gain_ends(rows, law, 1, np.full((1, 2), 5e-324), "posterior")
    assert low[0, 0] < 0 < 5e-324 < high[0, 0]


def test_the_worst_of_records():
    parts = tampered(RISE, {("problem", "record"): None})
    lower, upper = ends(parts)
    assert 0 < lower <= 0.125 <= upper < 0.126


TOLD = Mechanism(from_table(RecordSpace.binary(2), [[0, 0], [1, 1]]), np.eye(2))
"""Record 0 in full, and nothing of record 1."""

WORST = {
    "cases": parts_of(LEAST, *CASES, record=None),
    "contexts": parts_of(
        {"entropy_floor": 0.5}, KNOWN, {"contexts": "corners", "audit": None}, record=None
    ),
}


@pytest.mark.parametrize("parts", WORST.values(), ids=WORST)
def test_the_worst_of_records_that_differ(parts):
    lower, upper = ends(tampered(parts, {("problem", "mechanism"): TOLD.to_dict()}))
    assert 0.5 - 1e-12 < lower <= 0.5 <= upper < 0.5 + 1e-12


def test_the_worst_of_blocks_of_cases(monkeypatch):
    # Of a record whose sum with the other one is 1 or 2 nothing is told.
    told = Mechanism(count(2), [[0.75, 0.25], [0.25, 0.75], [0.25, 0.75]]).to_dict()
    parts = tampered(
        RISE, {("problem", "mechanism"): told, ("problem", "laws", "least_probability"): 0.0}
    )
    monkeypatch.setattr(independent, "BLOCK", 1)
    lower, upper = ends(parts)
    assert 0.25 - 1e-12 < lower <= 0.25 <= upper < 0.25 + 1e-12


def test_cases_and_contexts_are_paid_for(monkeypatch):
    steps = []
    monkeypatch.setattr(product_leakage, "charge", lambda what, n, why: steps.append((why, n)))
    wide = Mechanism(parity(2), np.full((2, 16), 1 / 16))
    told = {("problem", "mechanism"): wide.to_dict()}
    ends(tampered(RISE, told))
    # Two cases, and two contexts: three laws of two values, two actions, sixteen outputs.
    assert steps == [("2 cases", 2 * (64 + 12))]
    steps.clear()
    ends(tampered(FLOOR, told))
    assert steps == [("a context", 64 + 12)] * 2


def test_contexts_allow_for_the_roundings_of_their_rows(monkeypatch):
    monkeypatch.setattr(product_leakage, "UNIT_ROUNDOFF", 2.0**-20)
    room = 2 * 1.1 * 2 * independent.LAW_ROUNDINGS * 2.0**-20
    assert ends(FLOOR)[1] == pytest.approx(0.25 + room, abs=1e-12)
