"""Forged certificates of independent people: each bound against its formula, each guard."""

import itertools
import math

import numpy as np
import pytest
from flint import arb
from scipy.special import xlogy

from cvxleak.core.errors import ValidationError
from cvxleak.exact.packing import pack
from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
from cvxleak.proofs import product_leakage
from cvxleak.proofs.bounds import independent
from cvxleak.proofs.bounds.independent import (
    LAW_ROUNDINGS,
    TINY,
    IndependentRecords,
    Law,
    Rows,
    attained,
    box,
    choices,
    divergences,
    simplex,
    upper_ends,
)
from cvxleak.queries import count, from_table, parity
from tests.proofs.forging import Parts, encloses, ends, proves_nothing_false, refused, tampered

LOG_2 = math.log(2)
ROUNDOFF = independent.UNIT_ROUNDOFF
SPACE = RecordSpace([(0, 1, 2), (0, 1), (0, 1, 2)])
PARTS = [[(0, 2), (4, 0), (8, 2)], [(0, 0), (4, 4)], [(0, 2), (4, 0), (8, 2)]]
CORNERS = [((0.5, 0.25, 0.25), (0.0, 1.0, 0.0), (0.25, 0.0, 0.75)), ((0.25, 0.75),)]
HULLS = [CORNERS[0], CORNERS[1], CORNERS[0]]
QUERIES = {
    "count": (count(5), [box(2, 0.25)] * 5),
    "known": (count(6), [simplex(2)] * 6),
    "digits": (AdditiveQuery(SPACE, PARTS), HULLS),
    "remainders": (AdditiveQuery(SPACE, PARTS, modulus=6), HULLS),
    "table": (from_table(SPACE, np.arange(18).reshape(3, 2, 3) % 5), HULLS),
    "constant": (AdditiveQuery(RecordSpace.binary(2), [(0, 0)] * 2), [simplex(2)] * 2),
}


def mechanism_of(query):
    rows = np.random.default_rng(4).dirichlet(np.ones(3), len(query.values))
    return Mechanism(query, rows)


def brute_force(mechanism, record, laws):
    """Return the rows of a record's channel, the others' laws being known."""
    matrix = mechanism.to_channel().matrix.reshape(*mechanism.space.shape, -1)
    rows = np.moveaxis(matrix, record, 0)
    for j, law in enumerate(laws):
        if j != record:
            rows = np.tensordot(rows, np.asarray(law, dtype=float), axes=(1, 0))
    return rows


def cases_of(setting, record):
    """Yield the others' laws in each case."""
    others = setting.others(record)
    for numbers in choices(others):
        laws = [()] * setting.mechanism.space.records
        for (kind, members), counts in zip(others.items(), numbers, strict=True):
            places = itertools.chain(*(itertools.repeat(v, c) for v, c in enumerate(counts)))
            for i, v in zip(members, places, strict=True):
                laws[i] = kind.vertices[v]
        yield laws


@pytest.mark.parametrize(("query", "hulls"), QUERIES.values(), ids=QUERIES)
def test_rows_are_those_of_every_case(query, hulls):
    setting = IndependentRecords(mechanism_of(query), hulls)
    for record in range(len(hulls)):
        found = np.concatenate([block.rows for block in setting.blocks(record)])
        laws = list(cases_of(setting, record))
        assert len(found) == len(laws) == setting.cases(record)
        for rows, law in zip(found, laws, strict=True):
            assert rows == pytest.approx(brute_force(setting.mechanism, record, law), abs=1e-15)
        at = setting.at(record, laws[-1], 0)
        assert at.rows[0] == pytest.approx(found[-1], abs=1e-15)


def test_cases_are_as_many_as_are_gone_through(monkeypatch):
    setting = IndependentRecords(mechanism_of(count(6)), [simplex(2)] * 6)
    assert (setting.cases(0), setting.totals) == (6, 7)
    monkeypatch.setattr(independent, "CASES_LIMIT", 6)
    monkeypatch.setattr(independent, "WORK_LIMIT", 42)
    assert setting.cases(0) == 6
    monkeypatch.setattr(independent, "WORK_LIMIT", 41)
    with pytest.raises(ValidationError, match="found 6 cases"):
        setting.cases(0)
    monkeypatch.setattr(independent, "WORK_LIMIT", 42)
    monkeypatch.setattr(independent, "CASES_LIMIT", 5)
    with pytest.raises(ValidationError, match="found 6 cases"):
        setting.cases(0)


def test_totals_are_counted_in_units(monkeypatch):
    query = AdditiveQuery(SPACE, PARTS)
    # Sums are multiples of 4 up to 20, and of 2 up to 8.
    monkeypatch.setattr(independent, "TOTALS_LIMIT", 30)
    assert IndependentRecords(mechanism_of(query), HULLS).totals == 30
    monkeypatch.setattr(independent, "TOTALS_LIMIT", 29)
    with pytest.raises(ValidationError, match="found 30 totals"):
        IndependentRecords(mechanism_of(query), HULLS)


def test_one_of_the_records_that_may_be_swapped_is_attacked():
    setting = IndependentRecords(mechanism_of(count(3)), [simplex(2)] * 3)
    assert setting.attacked(None) == [0]
    assert setting.attacked(1) == [1]
    digits = IndependentRecords(mechanism_of(AdditiveQuery(SPACE, PARTS)), HULLS)
    assert digits.attacked(None) == [0, 1]
    own = [simplex(2), box(2, 0.25), simplex(2)]
    assert IndependentRecords(mechanism_of(count(3)), own, [simplex(2)] * 3).attacked(None) == [
        0,
        1,
    ]
    assert IndependentRecords(mechanism_of(count(3)), [own[0]] * 3, own).attacked(None) == [0, 1]


def test_vertices():
    assert simplex(3) == ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    assert box(3, 0.25) == ((0.5, 0.25, 0.25), (0.25, 0.5, 0.25), (0.25, 0.25, 0.5))
    assert box(2, 0.5) == ((0.5, 0.5),)
    assert box(2, 0.0) == simplex(2)


def test_entries_that_could_underflow_are_dropped():
    least = independent.LEAST_ENTRY
    mechanism = Mechanism(count(1), [[1.0, least], [1.0, least / 2]])
    found = IndependentRecords(mechanism, [simplex(2)]).at(0, [(0.5, 0.5)], 0)
    assert found.rows[0].tolist() == [[1.0, least], [1.0, 0.0]]


# Roundings


def test_laws_of_one_record():
    law = independent._of_one((2, 0, 2), np.array([0.25, 0.5, 0.25]), 6)
    assert (law.start, law.weights.tolist(), law.roundings) == (0, [0.5, 0.0, 0.5], 9)
    assert independent._of_one((0, 1), np.array([0.5, 0.5])).roundings == LAW_ROUNDINGS + 2


def test_tails_are_dropped():
    given = np.array([TINY / 2, TINY, TINY / 2, 0.5, TINY, TINY / 2])
    law = independent._trimmed(3, given, 5)
    assert (law.start, law.weights.tolist(), law.roundings) == (4, [TINY, 0.0, 0.5, TINY], 5)
    nothing = independent._trimmed(3, np.array([TINY / 2]), 5)
    assert (nothing.start, nothing.weights.tolist()) == (3, [0.0])


@pytest.mark.parametrize("size", [3, 33])
def test_sums_of_two(size):
    short = np.zeros(size)
    short[[0, -1]] = 0.25, 0.75
    long = np.random.default_rng(0).random(40)
    one, other = Law(2, long, 5), Law(3, short, 7)
    for pair in ((one, other), (other, one)):
        found = independent._times(*pair)
        assert (found.start, found.roundings) == (5, 5 + 7 + 2 + 1)
        assert found.weights == pytest.approx(np.convolve(long, short), abs=1e-15)
    equal = independent._times(Law(0, np.ones(3), 5), Law(0, np.array([0.5, 0.0, 0.5]), 7))
    assert equal.roundings == 5 + 7 + 2 + 1


def test_the_share_counts_the_roundings(monkeypatch):
    monkeypatch.setattr(independent, "UNIT_ROUNDOFF", 2.0**-30)
    setting = IndependentRecords(mechanism_of(count(4)), [((0.75, 0.25), (1.0, 0.0))] * 4)
    (together,) = setting.blocks(0)
    monkeypatch.setattr(independent, "BLOCK", 1)
    alone = [block.share for block in setting.blocks(0)]
    assert len(alone) == 4
    assert together.share == min(alone) < max(alone)
    two = IndependentRecords(mechanism_of(count(2)), [simplex(2)] * 2)
    share = two.at(0, [(0.5, 0.5)] * 2, 10).share
    # The other's law is off by 12, three products by two each, and two totals are added up.
    assert share == 1 - (10 + 2 + 2 + 2 + 2 + LAW_ROUNDINGS + 2 + 2) * 2.0**-30


# Both ends


def divergences_and_errors(rows, s, u):
    used = s > 2.0**-1000
    logs = np.where(used, np.log(np.where(used, s, 1.0)), 0.0)
    own = xlogy(rows, rows)
    errors = 1.1 * (4 + 8 + rows.shape[1]) * u
    errors *= 2 * rows.sum(axis=1) + abs(own).sum(axis=1) + (rows * abs(logs)).sum(axis=1)
    found = own.sum(axis=1) - rows @ logs
    found[(rows[:, ~used] > 0).any(axis=1)] = math.inf
    return found, errors


def weighed(law, values):
    return np.array([p * v if p > 0 else 0.0 for p, v in zip(law, values, strict=True)])


def upper_formula(rows, share, weights, own, u):
    values, outputs = rows.shape
    s = weights @ own @ rows
    divergence, error = divergences_and_errors(rows, s, u)
    best = 0.0
    for law in own:
        terms = weighed(law, divergence + error)
        best = max(best, terms.sum() + (LAW_ROUNDINGS + values + 4) * u * abs(terms).sum())
    least = rows.sum(axis=1).min() * (1 - (outputs + 2) * u)
    most = s.sum() * (1 + (outputs + 2) * u)
    rest = max(1 - share * least, 0.0) + 4 * u
    return (best + max(most - least, 0.0) + rest * values) * (1 + 8 * u)


def lower_formula(rows, share, law, roundings, u):
    values, outputs = rows.shape
    divergence, error = divergences_and_errors(rows, law @ rows, u)
    sums, off = rows.sum(axis=1), 1.1 * (roundings + values + 2) * u
    terms = weighed(law, divergence - error - off * sums)
    information = terms.sum() - off * abs(terms).sum()
    rest = max(1 - share * sums.min() * (1 - (outputs + 2) * u), 0.0) + 4 * u
    doubt = rest * (1 - math.log(rest)) * (1 + 1e-12)
    return max(share * information * (1 - 4 * u) - doubt, 0.0)


def some_rows(cases, values, outputs):
    rng = np.random.default_rng(7)
    rows = rng.dirichlet(np.full(outputs, 0.05), (cases, values))
    rows[rows < 1e-6] = 0.0
    # Some masses are above one: what is missing is then none.
    return rows * rng.uniform(0.9, 1.01, (cases, values, 1))


@pytest.mark.parametrize("u", [ROUNDOFF, 2.0**-20])
def test_both_ends_are_their_formulas(monkeypatch, u):
    monkeypatch.setattr(independent, "UNIT_ROUNDOFF", u)
    rng, rows = np.random.default_rng(8), some_rows(40, 4, 9)
    own = np.vstack([rng.dirichlet(np.ones(4), 2), np.eye(4)[:1]])
    weights = rng.dirichlet(np.ones(3), 40) * rng.uniform(0.5, 3, (40, 1))
    weights[:20] = np.eye(3)[2]
    # Rows of values that no vertex has may show outputs that s misses.
    within = np.array([[0.0, 0.5, 0.5, 0.0], [0.0, 1.0, 0.0, 0.0]])
    for share, (laws, mixed) in itertools.product(
        (1.0, 0.99), ((own, weights), (within, np.tile([1.0, 0.0], (40, 1))))
    ):
        found = upper_ends(Rows(rows, share), mixed, laws)
        expected = [upper_formula(r, share, w, laws, u) for r, w in zip(rows, mixed, strict=True)]
        assert np.isfinite(expected).sum() == (40 if laws is within else 20)
        assert found == pytest.approx(np.array(expected), rel=1e-13)
        for r, law in itertools.product(rows, laws):
            end = attained(Rows(r[None], share), law, 50)
            assert end == pytest.approx(lower_formula(r, share, law, 50, u), abs=1e-13)


def test_the_doubt_is_above_the_entropy_of_what_is_dropped():
    rows = np.eye(16) * 0.8
    found = attained(Rows(rows[None], 1.0), np.full(16, 1 / 16), 0)
    doubt = 0.2 * (1 - math.log(0.2))
    assert 1e-13 < 0.8 * math.log(16) - doubt - found < 1e-12
    for rest in (0.25, 0.5, 0.9, 1.0):
        assert rest * (1 - math.log(rest)) > xlogy(rest - 1, 1 - rest) - xlogy(rest, rest)


def test_divergences_of_outputs_without_mass():
    least = independent.LEAST_OUTPUT
    rows = np.array([[[0.5, 0.5], [1.0, 0.0]]])
    for mass, finite in ((2 * least, True), (least, False), (0.0, False)):
        (found,), _ = divergences(rows, np.array([[1.0, mass]]))
        assert math.isfinite(found[0]) == finite
        assert found[0] > 0
        assert found[1] == 0.0


# Certificates


def parts_of(laws, weights, inputs, witness=None, proof=None, query=None, rows=None, record=0):
    noise = [[0.75, 0.25], [0.25, 0.75]] if rows is None else rows
    return Parts(
        "product-leakage",
        {
            "mechanism": Mechanism(query or parity(2), noise).to_dict(),
            "record": record,
            "laws": laws,
        },
        {"record": record or 0, "weights": weights, "least_probability": witness},
        {
            "inputs": [pack(np.array(x, dtype=float)) for x in inputs],
            "least_probability": proof,
        },
    )


EVEN = [[0.5, 0.5], [0.5, 0.5]]
KNOWN = [[[0.5, 0.5], 1], [[1.0, 0.0], 1]]
BOX = parts_of({"least_probability": 0.25}, KNOWN, [EVEN])
GIVEN = parts_of(
    {"vertices": [[[[0.25, 0.75], [0.5, 0.5]], 2]]},
    [[[0.0, 1.0], 1], [[1.0, 0.0], 1]],
    [[[0.0, 1.0], [0.0, 1.0]]],
)
FLOOR = parts_of({"record_floor": 0.5}, KNOWN, [EVEN], 0.2, 0.1875)


def entropy(share):
    return -xlogy(share, share) - xlogy(1 - share, 1 - share)


def of_symmetric(share):
    """Return the capacity of the parity's noise where the other is 1 with this probability."""
    off = arb(share) / 2 + arb(1) / 4
    return arb(2).log() + off * off.log() + (1 - off) * (1 - off).log()


@pytest.mark.parametrize("parts", [BOX, GIVEN], ids=["box", "vertices"])
def test_honest(parts):
    encloses(parts, lambda: of_symmetric(0.25))
    proves_nothing_false(parts, float(of_symmetric(0.25)), float(of_symmetric(0.25)))


def test_a_record_floor_is_an_interval():
    lower, upper = ends(FLOOR)
    assert 0 < float(of_symmetric(0.2)) - lower < 1e-12
    assert 0 < upper - float(of_symmetric(0.1875)) < 1e-12
    share = next(a for a in np.linspace(0.1875, 0.2, 10_000) if entropy(a) >= 0.5)
    truth = float(of_symmetric(share))
    proves_nothing_false(FLOOR, truth - 1e-6, truth + 1e-6)
    free = tampered(FLOOR, {("problem", "laws"): {"record_floor": 0.0}, **zeros(0.0, 0.0)})
    encloses(free, lambda: of_symmetric(0.0))


def zeros(witness, proof):
    return {
        ("witness", "least_probability"): witness,
        ("proof", "least_probability"): proof,
    }


def test_least_probabilities_from_none_to_all():
    encloses(
        tampered(BOX, {("problem", "laws", "least_probability"): 0.0}), lambda: of_symmetric(0)
    )
    point = {
        ("problem", "laws", "least_probability"): 0.5,
        ("witness", "weights"): [[[0.5, 0.5], 1], [[1.0], 1]],
        ("proof", "inputs"): [pack(np.array([[0.5, 0.5]]))],
    }
    lower, upper = ends(tampered(BOX, point))
    assert lower == 0.0 < upper < 1e-12


def test_who_is_attacked_may_have_any_law():
    # The other's law is in the box, the record's own is not.
    sure = [[[1.0, 0.0], 1], [[1.0, 0.0], 1]]
    assert ends(tampered(BOX, {("witness", "weights"): sure}))[0] == 0.0
    second = parts_of({"least_probability": 0.25}, KNOWN[::-1], [EVEN], record=1)
    encloses(second, lambda: of_symmetric(0.25))


def test_blocks_have_their_own_inputs(monkeypatch):
    query = count(6)
    rows = np.random.default_rng(2).dirichlet(np.ones(4), 7)
    inputs = np.random.default_rng(3).dirichlet(np.ones(2), 6)
    mechanism = Mechanism(query, rows)
    setting = IndependentRecords(mechanism, [box(2, 0.25)] * 6, [simplex(2)] * 6)
    (block,) = setting.blocks(0)
    each = upper_ends(block, inputs, np.eye(2))
    assert 0 < each.argmax() < 5
    weights = [[[0.5, 0.5], 6]]
    for order in (slice(None), slice(None, None, -1)):
        known = {"least_probability": 0.25}
        parts = parts_of(known, weights, [inputs], query=query, rows=rows[order])
        if order.step == -1:
            parts = tampered(parts, {("proof", "inputs"): [pack(inputs[::-1, ::-1].copy())]})
        for size in (64, 4, 2, 1):
            monkeypatch.setattr(independent, "BLOCK", size)
            assert ends(parts)[1] == pytest.approx(each.max(), rel=1e-12)


def test_no_more_than_all_of_a_record():
    far = parts_of({"least_probability": 0}, KNOWN, [[[1e-6, 1.0], EVEN[0]]], rows=np.eye(2))
    assert ends(far)[1] == pytest.approx(LOG_2)
    assert arb(ends(far)[1]) > arb(2).log()


def test_the_worst_of_records_that_differ():
    rows = [[0.75, 0.25], [0.25, 0.75]]
    for first, table in ((0, [[0, 0], [1, 1]]), (1, [[0, 1], [0, 1]])):
        query = from_table(RecordSpace.binary(2), table)
        parts = parts_of(
            {"least_probability": 0.25}, [[[0.5, 0.5], 2]], [EVEN, EVEN], query=query, rows=rows
        )
        known = {("problem", "record"): None, ("witness", "record"): first}
        both = tampered(parts, known)
        encloses(both, lambda: of_symmetric(0), 1e-12)
        refused(both, {("proof", "inputs"): lambda v: v[:1]}, "does not bound each of 2 records")


def test_what_roundings_a_witness_has(monkeypatch):
    seen = []
    monkeypatch.setattr(independent, "attained", lambda *given: seen.append(given) or 0.0)
    ends(GIVEN)
    ends(parts_of({"least_probability": 0.25}, KNOWN, [EVEN]))
    three = parts_of(
        {"vertices": [[[[0.5, 0.5]], 1], [[[0.5, 0.5], [0.25, 0.75], [0.0, 1.0]], 1]]},
        [[[1.0], 1], [[0.0, 0.0, 1.0], 1]],
        [[[1.0]] * 3],
    )
    ends(three)
    assert [given[2] for given in seen] == [2 * LAW_ROUNDINGS + n for n in (2, 2, 3)]
    assert [given[1].tolist() for given in seen] == [[0.5, 0.5]] * 3


FORGED = [
    (BOX, {("problem", "note"): 1}, "the problem: expected the parts"),
    (BOX, {("problem", "entropy_floor"): 0.0}, "the problem: expected the parts"),
    (BOX, {("witness", "note"): 1}, "the witness: expected the parts"),
    (BOX, {("proof", "note"): 1}, "the proof: expected the parts"),
    (BOX, {("problem", "laws"): ["least_probability"]}, "the laws: expected one of"),
    (BOX, {("problem", "laws"): {}}, "the laws: expected one of"),
    (BOX, {("problem", "laws"): {"most": 1}}, "the laws: expected one of"),
    (BOX, {("problem", "laws", "record_floor"): 0.5}, "the laws: expected one of"),
    (BOX, {("problem", "laws", "least_probability"): 0.51}, "the least probability: found 0.51"),
    (BOX, {("problem", "laws", "least_probability"): -0.1}, "the least probability: found -0.1"),
    (BOX, {("problem", "laws", "least_probability"): None}, "the least probability: expected"),
    (BOX, {("problem", "record"): 2}, "record"),
    (BOX, {("witness", "record"): 1}, "record 1, which is not audited"),
    (BOX, {("problem", "record"): None, ("witness", "record"): 2}, "2, which is not audited"),
    (BOX, zeros(0.25, None), "the witness: a least probability needs a record floor"),
    (BOX, zeros(None, 0.25), "the proof: a least probability needs a record floor"),
    (GIVEN, zeros(0.25, None), "the witness: a least probability needs a record floor"),
    (FLOOR, zeros(0.1875, 0.1875), "the witness: 0.1875 is on the wrong side"),
    (FLOOR, zeros(0.2, 0.2), "the proof: 0.2 is on the wrong side"),
    (FLOOR, zeros(0.8, 0.1875), "the least probability: found 0.8"),
    (FLOOR, zeros(0.2, 0.9), "the least probability: found 0.9"),
    (FLOOR, zeros(None, 0.1875), "the witness: the least probability: expected"),
    (FLOOR, zeros(-0.2, 0.1875), "wrong side"),
    (FLOOR, zeros(0.2, -0.1), "wrong side|the least probability: found -0.1"),
    (BOX, {("witness", "weights"): [[[0.5, 0.5], 1]]}, "2 records need them"),
    (BOX, {("witness", "weights"): [[[0.5, 0.5], 3]]}, "the weights"),
    (BOX, {("witness", "weights"): [[[1.5, -0.5], 2]]}, "non-negative"),
    (BOX, {("witness", "weights"): [[[0.5, 0.5, 0.0], 2]]}, "the weights: expected a list of 2"),
    (GIVEN, {("problem", "laws", "vertices"): [[[], 2]]}, "a list that is not empty"),
    (GIVEN, {("problem", "laws", "vertices"): [[{"0": [0.5, 0.5]}, 2]]}, "a list that is not"),
    (GIVEN, {("problem", "laws", "vertices"): [[[[0.5, 0.5]], 1]]}, "2 records need them"),
    (GIVEN, {("problem", "laws", "vertices"): [[[[1.5, -0.5]], 2]]}, "non-negative"),
    (GIVEN, {("problem", "laws", "vertices"): [[[[1.0]], 2]]}, "a vertex: expected a list of 2"),
    (BOX, {("proof", "inputs"): []}, "does not bound each of 1 records"),
    (BOX, {("proof", "inputs"): lambda v: v * 2}, "does not bound each of 1 records"),
    (BOX, {("proof", "inputs"): {"0": 1}}, "does not bound each of 1 records"),
    (BOX, {("proof", "inputs"): [pack(np.full((1, 2), 0.5))]}, "does not fit"),
    (BOX, {("proof", "inputs"): [pack(np.array([[0.5, 0.5], [0.5, -0.5]]))]}, "from 0 to 1"),
    (BOX, {("proof", "inputs"): [pack(np.array([[0.5, 0.5], [0.5, 1.5]]))]}, "from 0 to 1"),
    (BOX, {("proof", "inputs"): [pack(np.array([[0.5, math.nan], EVEN[0]]))]}, "from 0 to 1"),
    (
        BOX,
        {("proof", "inputs"): [pack(np.array([[0.0, 0.0], EVEN[0]]))]},
        "gives probability 0 to an output",
    ),
]


@pytest.mark.parametrize(("parts", "changes", "reason"), FORGED)
def test_forged(parts, changes, reason):
    refused(parts, changes, reason)


def test_a_record_floor_is_for_two_values():
    query = from_table(RecordSpace([(0, 1), (0, 1, 2)]), [[0, 1, 1], [1, 0, 0]])
    three = [[[0.5, 0.5], 1], [[0.0, 1.0, 0.0], 1]]
    known = {"least_probability": 0.25}
    lower, upper = ends(parts_of(known, three, [np.full((3, 2), 0.5)], query=query))
    assert 0 < lower < upper
    alone = from_table(RecordSpace([(0, 1), (0,)]), [[0], [1]])
    weights = [[[0.5, 0.5], 1], [[1.0], 1]]
    for one, law in ((query, three), (alone, weights)):
        parts = parts_of({"record_floor": 0.5}, law, [EVEN], 0.2, 0.1875, query=one)
        refused(parts, {}, "a record floor needs records with two values")


def test_a_law_that_is_almost_sure_attains_nothing_false():
    given = tampered(BOX, {("witness", "weights"): [[[1.0, 1e-306], 1], [[1.0, 0.0], 1]]})
    assert not ends(given)[0] > 1e-300


def test_what_a_certificate_is_about():
    said = product_leakage.about
    assert said(BOX.problem) == (
        "record 0, product priors; each value of each other record has a probability of at least "
        "0.25"
    )
    assert said(FLOOR.problem).endswith("each other record's entropy in nats is at least 0.5")
    free = said({"record": None, "entropy_floor": 0.5})
    assert free == "the worst record, product priors with an entropy of at least 0.5 nats"
    assert said(GIVEN.problem).endswith(
        "product priors whose distributions are mixtures of given ones"
    )
