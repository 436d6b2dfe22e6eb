"""The audit: its bracket against closed forms, brute force and the papers' numbers."""

from __future__ import annotations

import math
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar
from scipy.special import entr

from cvxleak.audit import RecordLeakage, balance, group_leakage, record_leakage
from cvxleak.audit.worst_adversary.audit import Audit
from cvxleak.core.errors import InfeasibleError, SolveInterrupted, ValidationError
from cvxleak.measures import lumped_entropy, lumped_information
from cvxleak.model import AdditiveQuery, Guess, Mechanism, Prior, RecordSpace
from cvxleak.problem.bound import Bound, Status, Stopped
from cvxleak.proofs import verify
from tests.reference import information

LOG2 = math.log(2)


def h(p: float) -> float:
    return float(entr([p, 1 - p]).sum())


def modular_sum(n: int, m: int, flip: float) -> Mechanism:
    noise = np.full((m, m), flip / (m - 1))
    np.fill_diagonal(noise, 1 - flip)
    return Mechanism(AdditiveQuery(RecordSpace.binary(n), [(0, 1)] * n, modulus=m), noise)


def rounded_count(n: int, base: int) -> Mechanism:
    outputs = list(range(0, n + base, base)) if n % base else list(range(0, n + 1, base))
    noise = np.zeros((n + 1, len(outputs)))
    for count in range(n + 1):
        low, rest = divmod(count, base)
        noise[count, low] = (base - rest) / base
        if rest:
            noise[count, low + 1] = rest / base
    return Mechanism(AdditiveQuery(RecordSpace.binary(n), [(0, 1)] * n), noise)


def parity_leakage(n: int, flip: float, floor: float) -> float:
    """Exact L(b) of parity, n >= 2: plateau up to (n - 1) log 2, then a closed form."""
    rest = floor - (n - 1) * LOG2
    if rest <= 0:
        return LOG2 - h(flip)
    low, high = 0.0, 0.5
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if h(middle) < rest else (low, middle)
    alpha = (low + high) / 2
    return LOG2 - h(alpha * (1 - flip) + (1 - alpha) * flip)


def random_mechanism(seed: int, shape: tuple[int, ...], outputs: int) -> Mechanism:
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(outputs, 0.7), size=math.prod(shape))
    return Mechanism.from_channel(RecordSpace([range(n) for n in shape]), rows)


def _law(w: np.ndarray) -> np.ndarray:
    return np.maximum(w, 0) / np.maximum(w, 0).sum()


def brute_force(mechanism: Mechanism, record: int, floor: float, seed: int, starts: int) -> float:
    """Best of many SLSQP runs on the lumped problem: attained values only."""
    lumped = mechanism.lumped(record)
    size = len(lumped.multiplicities)
    values = np.eye(len(lumped.values))[:, lumped.value_index]
    rng = np.random.default_rng(seed)
    best = 0.0

    def entropy(w):
        return entr(w).sum() + w @ np.log(lumped.multiplicities)

    for _ in range(starts):
        start = 0.7 * rng.dirichlet(np.full(size, 0.5)) + 0.3 * lumped.uniform()
        run = minimize(
            lambda w: -information((values * _law(w)) @ lumped.rows),
            start,
            method="SLSQP",
            bounds=[(0, 1)] * size,
            constraints=[
                {"type": "eq", "fun": lambda w: w.sum() - 1},
                {"type": "ineq", "fun": lambda w: entropy(_law(w)) - floor},
            ],
            options={"maxiter": 200},
        )
        w = _law(run.x)
        # SLSQP misses the floor by its tolerance: mix with the uniform prior until it is met.
        for share in (0.0, 1e-9, 1e-7, 1e-5, 1e-3):
            mixed = (1 - share) * w + share * lumped.uniform()
            if lumped_entropy(mixed, lumped) >= floor:
                best = max(best, lumped_information(mixed, lumped))
                break
    return best


@pytest.mark.parametrize("n", [2, 3, 4, 6])
@pytest.mark.parametrize("flip", [0.1, 0.3033])
@pytest.mark.parametrize("share", [0.0, 0.4, 0.8, 0.95, 1.0])
def test_parity_closed_form(n, flip, share):
    floor = share * n * LOG2
    bound = record_leakage(modular_sum(n, 2, flip), floor)
    truth = parity_leakage(n, flip, floor)
    assert bound.status is Status.CERTIFIED
    assert bound.lower <= truth + 1e-14
    assert bound.upper >= truth - 1e-14
    assert bound.upper - bound.lower <= max(1e-4 * bound.upper, 1e-7)


@pytest.mark.parametrize("n", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("share", [0.3, 0.7, 0.9])
def test_modular_sums_close(n, share):
    bound = record_leakage(modular_sum(n, 3, 0.1), share * n * LOG2)
    assert bound.status is Status.CERTIFIED
    assert 0 <= bound.lower <= bound.upper <= LOG2 + 1e-15


def test_table_3_of_the_paper_is_a_set_of_local_optima():
    # LEAKAGE Table 3 prints 0.062, 0.041, 0.022, 0.009 at b = 0.5, 1, 1.5, 2.
    flip = 0.5 * math.exp(-0.5)
    for floor in (0.5, 1.0, 1.5, 2.0):
        bound = record_leakage(modular_sum(4, 2, flip), floor)
        assert bound.lower == pytest.approx(0.0795, abs=5e-5)
    assert record_leakage(modular_sum(4, 2, 0.3033), 2.495).upper == pytest.approx(0.0393, abs=5e-5)


@pytest.mark.parametrize(
    ("floor", "lower", "upper"), [(12.0, LOG2 - 1e-9, LOG2 + 1e-15), (13.5, 0.38564, 0.38568)]
)
def test_rounded_count_of_twenty_people(floor, lower, upper):
    bound = record_leakage(rounded_count(20, 3), floor)
    assert bound.status is Status.CERTIFIED
    assert bound.upper >= lower
    assert bound.lower <= upper
    assert bound.lower >= lower - 1e-4
    assert bound.upper <= upper + 1e-4


@pytest.mark.parametrize("seed", range(4))
def test_brute_force_lies_inside(seed):
    mechanism = random_mechanism(seed, (2, 3), 3)
    for floor in (0.0, 0.9, 1.4):
        bound = record_leakage(mechanism, floor, records=0)
        attained = brute_force(mechanism, 0, floor, seed, 8)
        assert attained <= bound.upper + 1e-9
        assert bound.lower >= attained - 1e-4 * bound.upper - 1e-7
        assert attained > 0.9 * bound.lower - 1e-6


def test_three_valued_record_against_brute_force():
    mechanism = random_mechanism(9, (3, 2), 3)
    bound = record_leakage(mechanism, 1.2, records=0)
    assert bound.status is Status.CERTIFIED
    attained = brute_force(mechanism, 0, 1.2, 1, 12)
    assert bound.lower - 1e-3 <= attained <= bound.upper + 1e-9


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    shape=st.sampled_from([(2, 2), (2, 3), (3, 2), (2, 2, 2)]),
    outputs=st.integers(1, 3),
    share=st.floats(0, 1),
)
def test_bracket_is_a_bracket(seed, shape, outputs, share):
    mechanism = random_mechanism(seed, shape, outputs)
    floor = share * mechanism.space.max_entropy
    bound = record_leakage(mechanism, floor, tol=1e-2)
    assert 0 <= bound.lower <= bound.upper <= math.log(max(shape)) + 1e-12
    # Attained: the expanded witness meets the floor and has the stated leakage about its record.
    witness = bound.witness
    prior = witness.expand()
    assert entr(prior.probabilities).sum() >= floor - 1e-9
    lumped = mechanism.lumped(witness.records[0])
    weights = mechanism.lump(witness.records[0], prior)
    assert lumped_information(weights, lumped) == pytest.approx(bound.lower, abs=1e-9)
    # Random feasible adversaries leak at most `upper`.
    rng = np.random.default_rng(seed)
    for record in range(len(shape)):
        lumped = mechanism.lumped(record)
        for w in rng.dirichlet(np.full(len(lumped.multiplicities), 0.3), size=20):
            mixed = next(
                mix
                for mix in ((1 - t) * w + t * lumped.uniform() for t in np.linspace(0, 1, 21))
                if lumped_entropy(mix, lumped) >= floor - 1e-12
            )
            assert lumped_information(mixed, lumped) <= bound.upper + 1e-12


def test_leakage_does_not_increase_with_the_floor():
    mechanism = random_mechanism(3, (2, 2, 2), 3)
    bounds = [record_leakage(mechanism, b) for b in np.linspace(0, mechanism.space.max_entropy, 9)]
    for before, after in pairwise(bounds):
        assert after.lower <= before.upper
    assert bounds[0].lower > bounds[-1].upper


def test_post_processing_does_not_increase_leakage():
    mechanism = random_mechanism(5, (2, 2, 2), 4)
    garbling = np.random.default_rng(5).dirichlet(np.ones(2), size=4)
    from cvxleak.model import Channel

    worse = mechanism.then(Channel(garbling))
    for floor in (0.0, 1.0, 1.8):
        assert record_leakage(worse, floor).lower <= record_leakage(mechanism, floor).upper


def test_exact_ends_of_the_floor():
    mechanism = modular_sum(3, 2, 0.2)
    assert record_leakage(mechanism, 0.0).gap < 1e-12
    top = record_leakage(mechanism, mechanism.space.max_entropy)
    assert top.status is Status.CERTIFIED
    assert top.upper < 1e-7
    counted = rounded_count(4, 3)
    top = record_leakage(counted, counted.space.max_entropy)
    lumped = counted.lumped(0)
    uniform = lumped_information(lumped.uniform(), lumped)
    assert top.lower == pytest.approx(uniform, abs=1e-9)
    assert top.upper - top.lower <= 1e-4 * top.upper


def test_ten_thousand_records():
    bound = record_leakage(modular_sum(10_000, 4, 0.2), 6000.0, tol=1e-6)
    assert bound.status is Status.CERTIFIED
    assert bound.lower == pytest.approx(bound.upper, rel=1e-6)
    assert verify(bound.certificate).passed


def test_group_leakage_is_at_least_record_leakage_and_at_most_the_sum():
    mechanism = modular_sum(3, 3, 0.1)
    for floor in (0.0, 1.5):
        one = record_leakage(mechanism, floor)
        two = group_leakage(mechanism, floor, 2, time_limit=0.0)
        assert two.upper >= one.lower
        free = record_leakage(mechanism, 0.0)
        # DALENIUS Lemma 3 and Theorem 3: C_2^b <= 2 C_1.
        assert two.lower <= 2 * free.upper
        assert verify(two.certificate).passed


def test_group_of_all_records_is_the_whole_dataset():
    mechanism = random_mechanism(1, (2, 2), 3)
    bound = group_leakage(mechanism, 0.0, 2, tol=1e-5)
    rows = mechanism.to_channel().matrix
    lumped = mechanism.lumped((0, 1))
    assert len(lumped.values) == 4
    from cvxleak.iterative import joint_blahut_arimoto

    assert bound.upper == pytest.approx(
        joint_blahut_arimoto(lumped, 0.0, max_iterations=20_000).value, rel=1e-4
    )
    assert rows.shape == (4, 3)


def test_composition_leaks_more_but_at_most_twice():
    mechanism = modular_sum(3, 2, 0.2)
    both = mechanism.product(mechanism)
    single = record_leakage(mechanism, 0.0)
    double = record_leakage(both, 0.0)
    assert single.upper < double.lower <= 2 * single.upper
    # Two looks at the same parity: a binary channel with outputs (0,0), mixed, (1,1).
    p = 0.2
    best = minimize_scalar(
        lambda t: -_two_looks(t, p), bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-12}
    )
    assert double.lower == pytest.approx(-best.fun, abs=1e-8)


def _two_looks(t: float, p: float) -> float:
    rows = np.array(
        [[(1 - p) ** 2, 2 * p * (1 - p), p * p], [p * p, 2 * p * (1 - p), (1 - p) ** 2]]
    )
    output = (1 - t) * rows[0] + t * rows[1]
    return float(entr(output).sum() - entr(rows[0]).sum())


def test_balance_brackets_the_difference():
    mechanism = modular_sum(4, 2, 0.3033)
    bound = balance(mechanism, 2.495)
    truth = parity_leakage(4, 0.3033, 0.0) - parity_leakage(4, 0.3033, 2.495)
    assert bound.lower <= truth <= bound.upper
    assert verify(bound.certificate).passed
    assert balance(mechanism, 1.0).upper < 1e-6
    # A small difference of large leakages takes sharper ends than the leakages themselves.
    rounded = rounded_count(20, 3)
    close = balance(rounded, 13.0)
    assert close.status is Status.CERTIFIED
    assert close.gap <= 1e-4 * close.upper
    coarse = [pickle.loads(pickle.dumps(record_leakage(rounded, b))) for b in (0.0, 13.0)]
    assert max(part.gap for part in coarse) > close.gap


def test_a_balance_says_how_it_was_found():
    bound = balance(modular_sum(4, 3, 0.1), 2.3)
    assert bound.stats["stopped"] is Stopped.TOLERANCE
    assert bound.stats["nodes"] > 0
    assert bound.stats["seconds"] > 0
    late = balance(modular_sum(6, 4, 0.2), 3.327, time_limit=0.0)
    assert late.stats["stopped"] is Stopped.TIME_LIMIT
    assert verify(late.certificate).passed
    for part in (record_leakage, balance):
        with pytest.raises(TypeError, match="solver"):
            part(modular_sum(4, 3, 0.1), 2.3, solver="CLARABEL")


def test_only_one_record():
    space = RecordSpace([(0, 1), (0, 1)])
    # The output shows record 0 and nothing of record 1.
    mechanism = Mechanism.from_channel(space, [[1, 0], [1, 0], [0, 1], [0, 1]])
    assert record_leakage(mechanism, LOG2, records=0).lower == pytest.approx(LOG2)
    assert record_leakage(mechanism, 2 * LOG2, records=1).upper < 1e-7
    # Correlation lets the output speak about record 1 too.
    assert record_leakage(mechanism, LOG2, records=1).lower == pytest.approx(LOG2)
    assert record_leakage(mechanism, 2 * LOG2).lower == pytest.approx(LOG2)


@pytest.mark.parametrize(
    "rows",
    [
        [[1.0], [1.0], [1.0], [1.0]],
        [[0.5, 0.5]] * 4,
        [[1.0, 0.0]] * 4,
        [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]],
        [[1e-300, 1.0], [1.0, 0.0], [0.5, 0.5], [0.0, 1.0]],
    ],
)
@pytest.mark.parametrize("floor", [0.0, 0.7, 1.2, 2 * LOG2])
def test_degenerate_channels(rows, floor):
    mechanism = Mechanism.from_channel(RecordSpace.binary(2), rows)
    bound = record_leakage(mechanism, floor)
    assert bound.status is Status.CERTIFIED
    assert 0 <= bound.lower <= bound.upper
    assert verify(bound.certificate).passed


def test_record_with_one_value_leaks_nothing():
    mechanism = Mechanism.from_channel(RecordSpace([(0,), (0, 1)]), [[1.0, 0.0], [0.0, 1.0]])
    assert record_leakage(mechanism, 0.0, records=0).upper < 1e-7
    assert record_leakage(mechanism, 0.0).lower == pytest.approx(LOG2)


def test_time_limit_returns_a_valid_bracket_that_can_be_refined():
    mechanism = modular_sum(6, 4, 0.2)
    early = record_leakage(mechanism, 3.327, time_limit=0.0)
    assert early.status is Status.BRACKETED
    assert verify(early.certificate).passed
    late = early.refine(1e-4)
    assert late.status is Status.CERTIFIED
    assert early.lower - 1e-12 <= late.lower <= late.upper <= early.upper
    assert late.stats["nodes"] > 0


def test_certified_bracket_can_be_refined():
    mechanism = modular_sum(4, 3, 0.1)
    coarse = record_leakage(mechanism, 2.3, tol=1e-2)
    fine = coarse.refine(1e-4)
    assert coarse.status is fine.status is Status.CERTIFIED
    assert fine.gap <= 1e-4 * fine.upper < coarse.gap
    assert coarse.lower - 1e-12 <= fine.lower <= fine.upper <= coarse.upper
    again = fine.refine(1e-4)
    assert (again.lower, again.upper) == (fine.lower, fine.upper)


def test_a_refinement_whose_proof_is_worse_keeps_the_old_one(monkeypatch):
    mechanism = modular_sum(4, 3, 0.1)
    coarse = record_leakage(mechanism, 2.3, tol=1e-2)

    def worse(self, floor=None):
        search = self._searches[0]
        return {"rule": "max", "groups": [search.terms(search.group.surplus)[:1]]}

    monkeypatch.setattr(Audit, "upper_term", worse)
    fine = coarse.refine(1e-4, 2.0)
    assert fine.upper == coarse.upper
    assert verify(fine.certificate).passed


def test_no_time_at_all_still_gives_a_bracket():
    groups = group_leakage(random_mechanism(4, (2, 2, 2, 2), 3), 1.0, 2, time_limit=0.0)
    assert groups.status is Status.BRACKETED
    assert groups.upper == pytest.approx(math.log(4))
    assert verify(groups.certificate).passed
    finished = groups.refine(0.2)
    assert finished.status is Status.CERTIFIED
    assert finished.upper < groups.upper
    assert verify(finished.certificate).passed


def test_a_large_plain_matrix_without_time_still_gives_a_bracket():
    rows = np.random.default_rng(1).dirichlet(np.ones(16), size=2**12)
    mechanism = Mechanism.from_channel(RecordSpace.binary(12), rows)
    for limit in (0.0, 0.3):
        bound = record_leakage(mechanism, 5.0, 0, time_limit=limit)
        assert bound.status is Status.BRACKETED
        assert 0 < bound.lower < bound.upper <= np.log(2) + 1e-9
        assert verify(bound.certificate).passed


def test_hundreds_of_outputs_without_time():
    from cvxleak.mechanisms import truncated_geometric
    from cvxleak.queries import count

    mechanism = Mechanism(count(400), truncated_geometric(400, 0.5))
    for floor in (150.0, 276.5):
        bound = record_leakage(mechanism, floor, time_limit=0.0)
        assert 0.5 < bound.lower <= bound.upper <= LOG2 + 1e-15
        assert verify(bound.certificate).passed


@pytest.mark.parametrize("tol", [1e-4, 1e-5, 1e-7])
@pytest.mark.parametrize("short", [0.0, 1e-12, 1e-7, 1e-3])
def test_floors_near_the_maximum(tol, short):
    mechanism = Mechanism.from_channel(RecordSpace([range(3)]), [[1, 0], [0, 1], [0, 1]])
    bound = record_leakage(mechanism, math.log(3) - short, tol=tol)
    assert bound.status is Status.CERTIFIED
    assert bound.stats["stopped"] is Stopped.TOLERANCE
    uniform = h(1 / 3)
    assert uniform - 1e-12 <= bound.upper
    assert bound.lower <= uniform + 2 * math.sqrt(short) + 1e-12
    binary = record_leakage(random_mechanism(8, (2, 3), 3), math.log(6) - short, tol=tol)
    assert binary.status is Status.CERTIFIED


def test_interrupt_carries_the_bracket_reached():
    def interrupt(lower, upper, nodes):
        if nodes > 100:
            raise KeyboardInterrupt

    with pytest.raises(SolveInterrupted) as caught:
        record_leakage(modular_sum(6, 4, 0.2), 3.327, progress=interrupt)
    bound = caught.value.bound
    assert bound.status is Status.BRACKETED
    assert bound.stats["stopped"] is Stopped.INTERRUPTED
    assert verify(bound.certificate).passed
    assert bound.lower <= 0.33596 <= bound.upper


def test_same_seed_same_answer():
    mechanism = random_mechanism(2, (2, 3), 3)
    first, second = (record_leakage(mechanism, 1.0, rng=7) for _ in range(2))
    assert (first.lower, first.upper) == (second.lower, second.upper)
    assert np.array_equal(first.witness.weights, second.witness.weights)


def test_results_survive_pickling_and_convert_units():
    bound = record_leakage(modular_sum(3, 2, 0.1), 1.0)
    copy = pickle.loads(pickle.dumps(bound))
    assert copy.lower == bound.lower
    assert copy.certificate.hash == bound.certificate.hash
    bits = bound.to("bits")
    assert bits.lower == pytest.approx(bound.lower / LOG2)
    assert bits.lower <= bound.lower / LOG2 <= bound.upper / LOG2 <= bits.upper
    with pytest.raises(ValidationError, match="unit"):
        bound.to("shannons")
    assert copy == bound
    assert hash(copy) == hash(bound)
    assert copy != bits
    with pytest.raises(TypeError):
        bound.stats["seconds"] = 0.0
    infinite = Bound.proved("leakage", np.inf, np.inf, tol=1e-4)
    assert infinite.status is Status.CERTIFIED
    assert (infinite.to("bits").lower, infinite.gap) == (np.inf, 0.0)
    distortion = Bound.proved("distortion", 0.0, 0.5, tol=1e-4, unit="distortion")
    assert distortion.to("bits") == distortion


def test_check_judges_candidates():
    mechanism = modular_sum(3, 2, 0.1)
    problem = RecordLeakage(mechanism, 1.0)
    bound = problem.solve()
    best = problem.check(bound.witness.expand(), bound=bound)
    assert best.feasible
    assert best.value == pytest.approx(bound.lower, abs=1e-9)
    in_bits = problem.check(bound.witness.expand(), bound=bound.to("bits"))
    assert in_bits.value == best.value
    assert in_bits.shortfall[1] == pytest.approx(0.0, abs=1e-9)
    uniform = problem.check(np.full(8, 1 / 8), bound=bound)
    assert uniform.feasible
    assert uniform.value == pytest.approx(0.0, abs=1e-12)
    point = problem.check(np.eye(8)[0], bound=bound)
    assert not point.feasible
    assert point.violations["entropy is at least the floor"] == pytest.approx(1.0)
    short = problem.check(np.full(8, 0.12), bound=bound)
    assert short.violations["weights sum to 1"] == pytest.approx(0.04)
    negative = problem.check([0.6, -0.1, 0.5, 0, 0, 0, 0, 0], bound=bound)
    assert negative.violations["weights are non-negative"] == pytest.approx(0.1)
    lumped = problem.check(
        bound.witness.weights, records=bound.witness.records, lumped=True, bound=bound
    )
    assert lumped.value == pytest.approx(bound.lower, abs=1e-9)
    with pytest.raises(ValidationError, match=r"candidate: found shape \(5,\); 8 finite weights"):
        problem.check(np.full(5, 0.2), bound=bound)
    with pytest.raises(ValidationError, match="candidate: found nan at index 1; every weight"):
        problem.check([0.5, np.nan, 0.5, 0, 0, 0, 0, 0], bound=bound)
    with pytest.raises(ValidationError, match="one per group of contexts"):
        problem.check(np.full(5, 0.2), 0, lumped=True, bound=bound)
    with pytest.raises(ValidationError, match="records"):
        problem.check(bound.witness.weights, lumped=True, bound=bound)
    pandas = pytest.importorskip("pandas")
    prior = bound.witness.expand()
    series = pandas.Series(
        prior.probabilities, index=pandas.Index(prior.labels, tupleize_cols=False)
    )
    assert problem.check(series[::-1], bound=bound).value == pytest.approx(bound.lower, abs=1e-9)
    for wrong in ("abc", [[1, 2], [3]], np.full(8, 0.125 + 0.1j)):
        with pytest.raises(ValidationError, match="candidate: expected an array of real numbers"):
            problem.check(wrong, bound=bound)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValidationError, match="no positive weight"):
        problem.check(np.zeros(8), bound=bound)


def test_a_number_of_datasets_of_thousands_of_digits_is_told_in_short():
    problem = RecordLeakage(modular_sum(20_000, 2, 0.1), 9.0)
    with pytest.raises(ValidationError, match=r"about 10\^6021 finite weights are needed"):
        problem.check(np.ones(4))


def test_what_the_problem_is_about_is_no_option():
    for solve in (RecordLeakage(modular_sum(3, 2, 0.1), 1.0).solve, balance_at_one):
        with pytest.raises(TypeError, match=r"part of the problem: RecordLeakage\(.*gain="):
            solve(gain=Guess())


def balance_at_one(**options):
    return balance(modular_sum(3, 2, 0.1), 1.0, **options)


def test_check_refuses_records_that_the_problem_is_not_about():
    mechanism = modular_sum(3, 2, 0.1)
    uniform = np.full(8, 1 / 8)
    one, first, pair = (
        RecordLeakage(mechanism, 0.5, records, size)
        for records, size in ((None, 1), (0, 1), (None, 2))
    )
    bound = one.solve()
    assert one.check(uniform, 2, bound=bound).feasible
    # What is told about two records may be more than about the worst one.
    for problem, records in ((one, (0, 1)), (first, 1), (first, (0, 1)), (pair, 0)):
        with pytest.raises(ValidationError, match="the problem is about"):
            problem.check(uniform, records, bound=bound)


def test_check_reads_priors_by_their_labels():
    mechanism = random_mechanism(4, (2, 3), 3)
    problem = RecordLeakage(mechanism, 0.5)
    bound = problem.solve()
    prior = bound.witness.expand()
    order = np.random.default_rng(0).permutation(6)
    shuffled = Prior(prior.probabilities[order], [prior.labels[i] for i in order])
    assert problem.check(shuffled, bound=bound).value == pytest.approx(
        problem.check(prior, bound=bound).value
    )


def test_bad_arguments():
    mechanism = modular_sum(3, 2, 0.1)
    with pytest.raises(InfeasibleError, match=r"log\|X\| = 2.079"):
        record_leakage(mechanism, 2.2)
    with pytest.raises(ValidationError, match="entropy_floor"):
        record_leakage(mechanism, -0.1)
    with pytest.raises(ValidationError, match="entropy_floor"):
        record_leakage(mechanism, float("nan"))
    with pytest.raises(ValidationError, match="records"):
        record_leakage(mechanism, 1.0, records=3)
    with pytest.raises(ValidationError, match="tol"):
        record_leakage(mechanism, 1.0, tol=-1)
    with pytest.raises(ValidationError, match="time_limit"):
        record_leakage(mechanism, 1.0, time_limit=-1)
    with pytest.raises(ValidationError, match="mechanism"):
        record_leakage("parity", 1.0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValidationError, match="size: found 4"):
        group_leakage(mechanism, 1.0, 4)


def test_groups_with_too_many_values_are_refused_before_any_is_listed():
    mechanism = modular_sum(70, 2, 0.1)
    with pytest.raises(ValidationError, match=r"^records: 64 of them have .*10\^19 joint values"):
        group_leakage(mechanism, 10.0, 64)
    with pytest.raises(ValidationError, match=r"^records: 20 of them have 1048576 joint values"):
        record_leakage(mechanism, 10.0, records=range(20))

    # 142,506 groups of 32 values each, all of which may be the worst.
    query = AdditiveQuery(RecordSpace.binary(30), [(0, i) for i in range(30)], modulus=31)
    mechanism = Mechanism(query, np.eye(31))
    with pytest.raises(ValidationError, match=r"^size: there are more than 100000 kinds of groups"):
        group_leakage(mechanism, 10.0, 5)
    with pytest.raises(ValidationError, match=r"^records: found none; there are 27405 kinds"):
        group_leakage(mechanism, 10.0, 4)


def test_the_proof_keeps_what_the_search_found():
    # Near log|X| most cells are out of reach, and their multipliers large.
    mechanism = modular_sum(10_000, 5, 0.2)
    bound = record_leakage(mechanism, 6930.0, tol=1e-3)
    assert bound.status is Status.CERTIFIED
    assert bound.upper <= record_leakage(mechanism, 0.0).upper


def test_refining_checks_its_arguments():
    bound = record_leakage(modular_sum(4, 3, 0.1), 2.3, time_limit=0.0)
    for tol, limit in [(1.0, None), (np.nan, None), (-1.0, None), (1e-3, -1.0), (1e-3, np.nan)]:
        with pytest.raises(ValidationError, match=r"tol|time_limit"):
            bound.refine(tol, limit)


def test_a_single_dataset_and_subnormal_probabilities():
    alone = Mechanism.from_channel(RecordSpace([(0,)]), [[0.5, 0.5]])
    assert record_leakage(alone, 0.0).upper < 1e-7
    rows = [[1.0, 0, 0], [0, 1, 0], [0.5, 0.5, 1e-310]]
    tiny = record_leakage(Mechanism.from_channel(RecordSpace([range(3)]), rows), 0.3)
    assert tiny.upper == pytest.approx(LOG2, abs=1e-3)
    assert verify(tiny.certificate).passed
