"""Independent records: closed forms, brute force, and proofs that do not bend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import entr

from cvxleak.audit import (
    IndependentAdversary,
    ProductLeakage,
    product_leakage,
    record_leakage,
)
from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.kernel.budget import LIMITS
from cvxleak.measures import lumped_information
from cvxleak.mechanisms import binary_symmetric, random_rounding
from cvxleak.model import AdditiveQuery, ChannelSet, Mechanism, Prior, RecordSpace
from cvxleak.problem.bound import Status, Stopped
from cvxleak.proofs import verify
from cvxleak.queries import count, from_table, parity
from tests.reference import information

LOG2 = math.log(2)


def h(p: float) -> float:
    return -p * math.log(p) - (1 - p) * math.log(1 - p)


def random_mechanism(seed: int) -> Mechanism:
    rows = np.random.default_rng(seed).dirichlet(np.ones(3), size=6)
    return Mechanism.from_channel(RecordSpace([(0, 1), (0, 1, 2)]), rows)


def test_without_a_floor_the_others_are_known():
    mechanism = Mechanism(parity(4), binary_symmetric(0.2))
    bound = product_leakage(mechanism, 0.0)
    assert bound.status is Status.CERTIFIED
    assert bound.lower == pytest.approx(LOG2 - h(0.2), abs=1e-9)
    # Knowing the others' parity, and no more, takes dependence: the plateau ends earlier.
    free = record_leakage(mechanism, 2.0)
    within = product_leakage(mechanism, 2.0)
    assert free.lower == pytest.approx(LOG2 - h(0.2), abs=1e-6)
    assert within.lower < 0.5 * free.lower
    assert within.upper <= free.upper + 1e-12


@pytest.mark.parametrize("floor", [0.0, 0.8, 1.5])
def test_brute_force_lies_inside(floor, tmp_path):
    grid = np.linspace(0, 1, 41)
    simplex = [
        np.array([i, j, 20 - i - j]) / 20 for i, j in product(range(21), repeat=2) if i + j <= 20
    ]
    laws = np.array([np.outer([1 - x, x], q).ravel() for x, q in product(grid, simplex)])
    laws = laws[entr(laws).sum(axis=1) >= floor]
    for seed in range(2):
        mechanism = random_mechanism(seed)
        lumped = mechanism.lumped(0)
        bound = product_leakage(mechanism, floor, 0)
        joints = (laws[:, :, None] * mechanism.channel.matrix).reshape(-1, 2, 3, 3).sum(axis=2)
        best = information(joints).max()
        assert best <= bound.upper + 1e-12
        assert best <= bound.lower + 1e-9
        assert bound.lower <= 1.1 * best  # the grid is coarse
        prior = bound.witness.expand().probabilities
        value = lumped_information(mechanism.lump(0, prior), lumped)
        assert value == pytest.approx(bound.lower, abs=1e-9)
        assert bound.witness.leakage == pytest.approx(value, abs=1e-12)
        assert bound.witness.entropy >= floor
        bound.certificate.save(tmp_path / "file.json")
        assert verify(tmp_path / "file.json").passed


def test_all_records_and_the_largest_floor():
    mechanism = random_mechanism(5)
    worst = product_leakage(mechanism, 0.0)
    each = [product_leakage(mechanism, 0.0, i) for i in (0, 1)]
    assert worst.lower == pytest.approx(max(bound.lower for bound in each), abs=1e-6)
    top = product_leakage(mechanism, math.log(6))
    assert top.lower <= top.upper <= top.lower + 1e-4


def test_an_audit_goes_on_where_it_was_stopped():
    mechanism = random_mechanism(1)
    early = product_leakage(mechanism, 1.5, time_limit=0.0)
    late = early.refine(1e-6)
    assert early.lower <= late.lower < late.upper < early.upper
    assert late.stats["stopped"] is Stopped.NO_PROGRESS
    assert late.upper <= record_leakage(mechanism, 1.5, tol=1e-6).upper * (1 + 1e-6)
    assert verify(late.certificate).passed


def test_candidates_are_laws_of_the_records():
    mechanism = random_mechanism(5)
    problem, second = ProductLeakage(mechanism, 1.0), ProductLeakage(mechanism, 1.0, 1)
    bound = problem.solve()
    laws = bound.witness.laws
    found = problem.check(laws, bound=bound)
    assert found.feasible
    assert found.value >= bound.lower - 1e-12
    alone = second.check(laws, bound=bound)
    assert alone.value == pytest.approx(IndependentAdversary(mechanism, (1,), laws).leakage)
    off = problem.check([[1.5, -0.5], [0.5, 0.5, 0.0]], bound=bound)
    assert off.violations["weights are non-negative"] == 0.5
    assert off.violations["weights sum to 1"] == 0.0
    assert off.violations["entropy is at least the floor"] == pytest.approx(1 - LOG2)
    for wrong in ([[0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]], "laws"):
        with pytest.raises(ValidationError, match="candidate"):
            problem.check(wrong, bound=bound)
    with pytest.raises(ValidationError, match="another mechanism or record"):
        second.check(IndependentAdversary(mechanism, (0,), laws), bound=bound)


def test_lines_are_what_the_others_leave_of_the_query():
    for query in (count(4), parity(3)):
        table = query.table()
        columns = np.moveaxis(table, 1, -1).reshape(-1, 2)
        assert query.lines(1) == sorted({tuple(line) for line in columns.tolist()})
    assert random_mechanism(0).query.lines(0) == [(0, 3), (1, 4), (2, 5)]


def test_arguments():
    mechanism = random_mechanism(0)
    with pytest.raises(InfeasibleError, match="log"):
        ProductLeakage(mechanism, 2.0)
    with pytest.raises(ValidationError, match="records"):
        ProductLeakage(mechanism, 0.0, 5)
    with pytest.raises(ValidationError, match=r"records: found \(0, 1\); .* one at a time"):
        ProductLeakage(mechanism, 0.0, (0, 1))
    for name, value in (("tol", 1.0), ("tol", -1.0), ("time_limit", -1.0), ("rng", "seed")):
        with pytest.raises(ValidationError, match=name):
            product_leakage(mechanism, 0.0, **{name: value})
    with pytest.raises(ValidationError, match="datasets"):
        ProductLeakage(Mechanism(parity(40), binary_symmetric(0.1)), 1.0)


def every_product(
    mechanism: Mechanism, own: np.ndarray, laws: Sequence[np.ndarray], record: int = 0
) -> float:
    """The largest leakage of a record over grids of its own law and of each other's."""
    shape = mechanism.space.shape
    matrix = mechanism.to_channel().matrix.reshape(*shape, -1)
    best = 0.0
    for others in product(*laws):
        rows = np.moveaxis(matrix, record, 0)
        for law in others:
            rows = np.tensordot(rows, law, axes=(1, 0))
        best = max(best, information(own[:, :, None] * rows).max())
    return best


def binary(low: float, high: float, points: int = 21) -> np.ndarray:
    grid = np.linspace(low, high, points)
    return np.array([1 - grid, grid]).T


def random_sum(seed: int, records: int) -> Mechanism:
    rows = np.random.default_rng(seed).dirichlet(np.full(4, 0.4), size=records + 1)
    return Mechanism(count(records), rows)


@pytest.mark.parametrize("alpha", [0.0, 0.05, 0.3, 0.5])
@pytest.mark.parametrize("records", [2, 3, 4])
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2))])
def test_least_probabilities_against_brute_force(alpha, records, seed):
    mechanism = random_sum(seed, records)
    bound = product_leakage(mechanism, least_probability=alpha)
    assert bound.status is Status.CERTIFIED
    points = 7 if records == 4 else 15
    found = every_product(
        mechanism, binary(0, 1, 201), [binary(alpha, 1 - alpha, points)] * (records - 1)
    )
    # The corners are on the grid; only the record's own law is a little off.
    assert 0.999 * bound.upper <= found <= bound.upper
    assert bound.upper - bound.lower <= 1e-9
    assert bound.witness.leakage == pytest.approx(bound.lower, abs=1e-9)
    assert verify(bound.certificate).passed
    for j, law in enumerate(bound.witness.laws):
        assert j == bound.witness.records[0] or min(law) >= alpha - 1e-15


def test_polytopes_of_several_values_against_brute_force():
    rng = np.random.default_rng(0)
    simplex = [np.array([i, j, 6 - i - j]) / 6 for i in range(7) for j in range(7 - i)]
    for _ in range(4):
        table = rng.integers(0, 4, size=(2, 3, 2))
        table.ravel()[:4] = np.arange(4)
        query = from_table(RecordSpace([(0, 1), (0, 1, 2), (0, 1)]), table)
        mechanism = Mechanism(query, rng.dirichlet(np.ones(3), size=4))
        corners = [rng.dirichlet(np.ones(size), size=3) for size in (2, 3, 2)]
        inside = [np.array([w @ laws for w in simplex]) for laws in corners]
        for record in range(3):
            bound = product_leakage(mechanism, records=record, laws=corners)
            others = [inside[j] for j in range(3) if j != record]
            found = every_product(mechanism, inside[record], others, record)
            assert found <= bound.upper
            assert bound.lower <= 1.05 * found + 1e-6
            assert bound.status is Status.CERTIFIED
            assert verify(bound.certificate).passed
        worst = product_leakage(mechanism, laws=corners)
        each = [product_leakage(mechanism, records=i, laws=corners) for i in range(3)]
        assert worst.upper == pytest.approx(max(bound.upper for bound in each))


def test_a_point_is_a_prior_and_a_smaller_set_leaks_less():
    mechanism = random_sum(1, 3)
    laws = [[0.3, 0.7], [0.6, 0.4], [0.1, 0.9]]
    known = product_leakage(mechanism, laws=[[law] for law in laws], records=1)
    prior = IndependentAdversary(mechanism, (1,), tuple(map(tuple, laws)))
    assert known.lower == pytest.approx(prior.leakage, abs=1e-12)
    joint = prior.expand().probabilities.reshape(2, 2, 2)
    matrix = mechanism.to_channel().matrix.reshape(2, 2, 2, -1)
    exact = information(np.einsum("abc,abcy->by", joint, matrix))
    assert known.lower - 1e-15 <= exact <= known.upper  # a float's rounding
    wide = product_leakage(mechanism, laws=[[0.1, 0.9], [0.6, 0.4]], records=1)
    assert known.upper < wide.lower
    ends = [product_leakage(mechanism, least_probability=a).upper for a in (0, 0.1, 0.2, 0.4)]
    assert ends == sorted(ends, reverse=True)


def test_a_law_in_a_polytope_that_its_best_law_is_not_in():
    bound = product_leakage(Mechanism(count(1), [[0.9, 0.1], [0.2, 0.8]]), laws=[[0.9, 0.1]])
    rows = np.array([[0.9, 0.1], [0.2, 0.8]])
    assert bound.lower == pytest.approx(information(np.array([[0.9], [0.1]]) * rows), abs=1e-12)
    end = product_leakage(Mechanism(count(1), rows), laws=[[0.9, 0.1], [0.99, 0.01]])
    assert (end.lower, end.upper) == pytest.approx((bound.lower, bound.upper), abs=1e-9)


def test_a_record_floor_is_the_interval_of_that_entropy(tmp_path):
    mechanism = random_sum(2, 4)
    for alpha in (0.01, 0.2, 0.45):
        by_floor = product_leakage(mechanism, record_floor=h(alpha))
        by_alpha = product_leakage(mechanism, least_probability=alpha)
        assert by_floor.lower == pytest.approx(by_alpha.lower, abs=1e-7)
        assert by_floor.upper == pytest.approx(by_alpha.upper, abs=1e-7)
        doubts = [entr(law).sum() for law in by_floor.witness.laws]
        del doubts[by_floor.witness.records[0]]
        assert min(doubts) >= h(alpha) - 1e-15
        by_floor.certificate.save(tmp_path / "file.json")
        assert verify(tmp_path / "file.json").passed
    free, none = (product_leakage(mechanism, record_floor=x) for x in (0.0, LOG2))
    assert free.lower == pytest.approx(product_leakage(mechanism).lower, abs=1e-7)
    assert none.upper == pytest.approx(
        product_leakage(mechanism, least_probability=0.5).upper, abs=1e-7
    )


def test_exact_counts_leak_as_the_variance_of_the_others_says():
    for alpha in (0.1, 0.3, 0.5):
        limit = 1 / (8 * alpha * (1 - alpha))
        off = []
        for n in (50, 200, 800):
            bound = product_leakage(Mechanism(count(n), np.eye(n + 1)), least_probability=alpha)
            assert bound.status is Status.CERTIFIED
            off.append(abs(n * bound.upper / limit - 1))
        assert off == sorted(off, reverse=True)
        assert off[-1] < 0.05


@pytest.mark.slow
def test_ten_thousand_people():
    n = 10_000
    # To the 101 multiples of 100, right on average.
    below, share = np.divmod(np.arange(n + 1), 100)
    rows = np.zeros((n + 1, 101))
    rows[np.arange(n + 1), below] = 1 - share / 100
    rows[np.arange(n), below[:-1] + 1] += share[:-1] / 100
    bound = product_leakage(Mechanism(count(n), rows), least_probability=0.1)
    assert bound.status is Status.CERTIFIED
    assert verify(bound.certificate).passed
    # Less than the count as it is, by the noise that rounding adds to the others' variance.
    assert 0 < n * bound.upper < 1 / (8 * 0.1 * 0.9)
    assert bound.witness.leakage == pytest.approx(bound.lower, rel=1e-4)
    assert len(str(bound.certificate.proof)) < 100_000


def test_sums_of_several_parts_and_remainders():
    """Totals with several digits, and ones that wrap around, against the same query as a table."""
    rng = np.random.default_rng(3)
    space = RecordSpace([(0, 1, 2), (0, 1), (0, 1, 2)])
    parts = [[(0, 2), (4, 0), (8, 2)], [(0, 0), (4, 4)], [(0, 2), (4, 0), (8, 2)]]
    for modulus in (None, 6):
        query = AdditiveQuery(space, parts, modulus=modulus)
        mechanism = Mechanism(query, rng.dirichlet(np.ones(4), size=len(query.values)))
        same = Mechanism(from_table(space, query.table()), mechanism.channel.matrix)
        for known in ({}, {"least_probability": 0.2}):
            one, other = product_leakage(mechanism, **known), product_leakage(same, **known)
            assert one.lower == pytest.approx(other.lower, abs=1e-10)
            assert one.upper == pytest.approx(other.upper, abs=1e-10)


def test_laws_are_mappings_or_priors_too():
    values = (("a", 1), ("b", 2))
    rounded = Mechanism(
        AdditiveQuery(RecordSpace([values] * 3), [(0, 1)] * 3), random_rounding(3, base=3)
    )
    law = dict(zip(values, (0.25, 0.75), strict=True))
    plain = ProductLeakage(rounded, laws=[[0.25, 0.75]])
    for laws in (law, [law], [[law]] * 3, Prior(law), [Prior(law)]):
        assert ProductLeakage(rounded, laws=laws)._known == plain._known
    with pytest.raises(ValidationError, match=r"laws\[0\]: its labels are"):
        ProductLeakage(rounded, laws={"a": 0.25, "b": 0.75})


def test_what_is_known_of_laws_is_named_if_it_is_wrong():
    mechanism = random_sum(0, 3)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"least_probability": 0.6}, r"least_probability: .*0\.5"),
        ({"least_probability": -0.1}, "least_probability"),
        ({"least_probability": "few"}, "least_probability"),
        ({"record_floor": -1}, "record_floor"),
        ({"laws": []}, "laws: found none"),
        ({"laws": [[], [], []]}, r"laws\[0\]: .* must not be empty"),
        ({"laws": [[[0.5, 0.5]], [], [[0.5, 0.5]]]}, r"laws\[1\]: found none"),
        ({"laws": [[0.5, 0.5], [1.0]]}, r"laws\[1\]"),
        ({"laws": {(0.5, 0.5)}}, "laws: found a set"),
        ({"laws": "known"}, "laws"),
        ({"laws": [[0.5, 0.2]]}, r"laws\[0\]"),
        ({"laws": [[0.2, 0.3, 0.5]]}, r"laws\[0\]"),
        ({"laws": [[[0.5, 0.5]]] * 2}, "laws: found 2 sets"),
        ({"laws": 0.5}, "laws"),
        ({"laws": [[0.5, 0.5]], "least_probability": 0.1}, "found least_probability beside it"),
        ({"record_floor": 0.1, "entropy_floor": 0.5}, "found entropy_floor beside it"),
    ]
    for known, reason in wrong:
        with pytest.raises(ValidationError, match=reason):
            ProductLeakage(mechanism, **known)
    with pytest.raises(InfeasibleError, match="record_floor"):
        ProductLeakage(mechanism, record_floor=0.7)
    with pytest.raises(ValidationError, match="record_floor: record 1 has 3 values"):
        ProductLeakage(random_mechanism(0), record_floor=0.1)
    wide = RecordSpace([tuple(range(5))] * 60)
    sums = AdditiveQuery(wide, [tuple(range(5))] * 60)
    with pytest.raises(ValidationError, match=r"mechanism: found \d+ cases"):
        ProductLeakage(Mechanism(sums, np.eye(len(sums.values))))
    far = AdditiveQuery(RecordSpace.binary(2), [(1, 0), (0, 10**7)])
    with pytest.raises(ValidationError, match=r"mechanism: found \d+ totals"):
        ProductLeakage(Mechanism(far, np.eye(len(far.values))))


def test_candidates_of_polytopes():
    mechanism = random_sum(4, 3)
    problem = ProductLeakage(mechanism, least_probability=0.2)
    bound = problem.solve()
    found = problem.check(bound.witness, bound=bound)
    assert found.feasible
    assert found.value == pytest.approx(bound.lower, abs=1e-9)
    off = problem.check([[0.5, 0.5], [0.1, 0.9], [0.5, 0.5]], bound=bound)
    assert off.violations["distributions are in their polytopes"] == pytest.approx(0.1)
    near = problem.repair([[0.5, 0.5], [0.15, 0.85], [0.5, 0.5]], bound=bound)
    assert verify(near.certificate).passed
    assert near.lower <= bound.upper


def test_a_set_of_channels_is_refused():
    noise = ChannelSet([[0.8, 0.0], [0.0, 0.8]], [[1.0, 0.2], [0.2, 1.0]])
    for known in ({}, {"least_probability": 0.1}, {"entropy_floor": 0.5}):
        with pytest.raises(ValidationError, match="only known to lie in a set"):
            product_leakage(Mechanism(parity(2), noise), **known)


@pytest.mark.parametrize("n", [3, 400])
def test_a_file_pays_for_its_cases(n, monkeypatch):
    certificate = product_leakage(
        Mechanism(count(n), [[0.5, 0.5]] * n + [[0.1, 0.9]]), least_probability=0.1
    ).certificate
    assert verify(certificate).passed
    monkeypatch.setitem(LIMITS, "float operations", n)
    answer = verify(certificate)
    assert not answer.ends["upper"].proved
    assert "float operations" in answer.ends["upper"].reason


def test_a_sum_of_wide_records_is_paid_for(monkeypatch):
    space = RecordSpace([tuple(range(600))] * 3)
    query = AdditiveQuery(space, [tuple(range(600))] * 3)
    mechanism = Mechanism(query, np.tile([0.5, 0.5], (len(query.values), 1)))
    bound = product_leakage(mechanism, laws=[np.full(600, 1 / 600)])
    assert verify(bound.certificate).passed
    # One product of 600 and 600 numbers.
    monkeypatch.setitem(LIMITS, "float operations", 600 * 600)
    assert not verify(bound.certificate).ends["upper"].proved


def test_ends_are_proved_by_rules_that_have_names():
    mechanism = random_sum(0, 3)
    upper = {
        "corners": product_leakage(mechanism, least_probability=0.2),
        "contexts": product_leakage(mechanism, 0.1),
        "audit": product_leakage(mechanism, 1.9),
    }
    for rule, bound in upper.items():
        answer = verify(bound.certificate)
        assert answer.passed
        assert answer.rules["lower"] == ("point",)
        assert answer.rules["upper"][0] == rule
        assert (answer.lower, answer.upper) == (bound.lower, bound.upper)
