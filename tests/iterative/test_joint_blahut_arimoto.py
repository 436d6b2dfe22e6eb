"""Joint Blahut–Arimoto: the step by its definition, the method by closed forms and brute force."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import entr, rel_entr

from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.iterative import joint_blahut_arimoto, meet_entropy_floor
from cvxleak.iterative.joint_update import Updater
from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
from tests.reference import binary_entropy, modular, rounded_count, symmetric

SEEDS = st.integers(0, 2**32 - 1)


def random_lumped(seed, *, sparse=False):
    """A random mechanism's lumped form; some of its rows coincide, so multiplicities differ."""
    rng = np.random.default_rng(seed)
    space = RecordSpace([range(rng.integers(2, 4)), range(3), range(2)])
    kinds = rng.dirichlet(np.ones(3) * rng.choice([0.3, 1, 5]), size=4)
    if sparse:
        kinds[rng.integers(0, 4), rng.integers(0, 3)] = 0
        kinds /= kinds.sum(axis=1, keepdims=True)
    rows = kinds[rng.integers(0, 4, size=space.size)]
    return Mechanism.from_channel(space, rows).lumped(0)


def entropy(lumped, w):
    return entr(w).sum(axis=-1) + w @ lumped.log_multiplicity


def information(lumped, w):
    joint = np.add.reduceat(w[:, None] * lumped.rows, lumped.starts)
    return rel_entr(joint, np.outer(joint.sum(axis=1), joint.sum(axis=0))).sum()


@settings(max_examples=60)
@given(seed=SEEDS, level=st.floats(0, 0.98), log_kappa=st.floats(-5, 0))
def test_the_step_maximizes_its_minorant_under_the_floor(seed, level, log_kappa):
    lumped = random_lumped(seed)
    rng = np.random.default_rng(seed)
    size, b = len(lumped.rows), level * lumped.max_entropy
    kappa = math.exp(log_kappa)
    w = rng.dirichlet(np.ones(size))
    joint = np.add.reduceat(w[:, None] * lumped.rows, lumped.starts)
    prior, output = joint.sum(axis=1), joint.sum(axis=0)
    d = (lumped.rows * np.log(joint / np.outer(prior, output))[lumped.value_index]).sum(axis=1)

    def minorant(v):
        return v @ d - kappa * rel_entr(np.add.reduceat(v, lumped.starts), prior).sum()

    new = Updater(lumped, b).update(joint[None], np.array([0.1]), np.array([kappa]))
    best = new.weights[0]
    slack = entropy(lumped, best) - b
    assert slack >= -1e-12 * (1 + b)
    assert slack * new.multiplier[0] <= 1e-10
    assert new.value[0] == pytest.approx(information(lumped, best), abs=1e-13)
    for other in rng.dirichlet(np.ones(size) * rng.choice([0.1, 1, 10]), size=40):
        theta = rng.random()
        for mixed in (other, (1 - theta) * best + theta * other, 0.999 * best + 0.001 * other):
            feasible = meet_entropy_floor(mixed, lumped, b)
            assert minorant(feasible) <= minorant(best) + 1e-10
            # With kappa = 1 it bounds I from below and touches it at w.
            plain = feasible @ d - rel_entr(np.add.reduceat(feasible, lumped.starts), prior).sum()
            assert plain <= information(lumped, feasible) + 1e-12
    assert w @ d == pytest.approx(information(lumped, w), abs=1e-12)


@settings(max_examples=60)
@given(seed=SEEDS, level=st.floats(0, 1), sparse=st.booleans())
def test_ascends_and_stays_feasible(seed, level, sparse):
    lumped = random_lumped(seed, sparse=sparse)
    b = level * lumped.max_entropy
    run = joint_blahut_arimoto(lumped, b, starts=6, rng=seed)
    assert entropy(lumped, run.point) >= b - 1e-14 * (level == 1)
    assert run.point.sum() == pytest.approx(1, abs=1e-12)
    assert run.point.min() >= 0
    assert run.value == pytest.approx(information(lumped, run.point), abs=1e-12)
    history = run.history
    assert (np.diff(history["objective"]) >= 0).all()
    assert (history["slack"] >= -1e-12 * (1 + b)).all()
    finite = history["multiplier"] < 1e3
    slack, multiplier = history["slack"][finite], history["multiplier"][finite]
    assert (np.abs(slack * multiplier) < 1e-9).all()
    assert len(history["objective"]) == run.iterations + 1 == len(history["step"]) + 1
    assert run.value >= information(lumped, lumped.uniform()) - 1e-9
    assert run.value <= min(math.log(len(lumped.values)), math.log(len(lumped.outputs))) + 1e-12


@pytest.mark.parametrize("n", [2, 4, 5])
@pytest.mark.parametrize("flip", [0.05, 0.3033, 0.45])
def test_parity_in_closed_form(n, flip):
    lumped = modular(n, 2, flip).lumped(0)
    plateau = (n - 1) * math.log(2)
    for b in np.linspace(0, n * math.log(2), 9):
        low, high = 0.0, 0.5
        for _ in range(60):  # the inverse of the binary entropy on [0, 1/2]
            middle = (low + high) / 2
            low, high = (middle, high) if binary_entropy(middle) < b - plateau else (low, middle)
        alpha = low if b > plateau else 0.0
        expected = math.log(2) - binary_entropy(alpha * (1 - flip) + (1 - alpha) * flip)
        assert joint_blahut_arimoto(lumped, b).value == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    ("b", "leakage"), [(0.5, 0.0795), (1, 0.0795), (2, 0.0795), (2.079, 0.0795), (2.495, 0.0393)]
)
def test_the_numbers_that_replace_table_3(b, leakage):
    run = joint_blahut_arimoto(modular(4, 2, 0.3033).lumped(0), b)
    assert run.value == pytest.approx(leakage, abs=5e-5)


def slsqp(lumped, b, rng, tries):
    """The best of many runs of a general-purpose solver, repaired to be feasible."""
    size, best = len(lumped.rows), 0.0
    constraints = [
        {"type": "eq", "fun": lambda w: w.sum() - 1},
        {"type": "ineq", "fun": lambda w: entropy(lumped, np.maximum(w, 0)) - b},
    ]
    for _ in range(tries):
        start = meet_entropy_floor(rng.dirichlet(np.full(size, 0.3)), lumped, b)
        found = minimize(
            lambda w: -information(lumped, np.maximum(w, 1e-15)),
            start,
            bounds=[(0, 1)] * size,
            constraints=constraints,
            method="SLSQP",
            options={"maxiter": 200},
        )
        w = np.maximum(found.x, 0)
        w = meet_entropy_floor(w / w.sum(), lumped, b)
        best = max(best, information(lumped, w))
    return best


@pytest.mark.parametrize("seed", range(8))
def test_agrees_with_a_general_solver(seed):
    lumped = random_lumped(seed)
    rng = np.random.default_rng(seed)
    b = lumped.max_entropy * rng.uniform(0.2, 0.95)
    with np.errstate(all="ignore"):
        expected = slsqp(lumped, b, rng, 30)
    value = joint_blahut_arimoto(lumped, b).value
    assert value >= expected - 1e-7
    assert value <= expected + 1e-4


def test_agrees_with_a_fine_grid():
    # Two records, the query tells (0, 0) from the rest: three groups, so a grid is exhaustive.
    query = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, {0: "none", 1: "some", 2: "some"})
    lumped = Mechanism(query, [[0.9, 0.1], [0.25, 0.75]]).lumped(0)
    assert len(lumped.rows) == 3
    b, steps = 1.1, 600
    i, j = np.meshgrid(np.arange(steps + 1), np.arange(steps + 1), indexing="ij")
    keep = i + j <= steps
    grid = np.stack([i[keep], j[keep], steps - i[keep] - j[keep]], axis=1) / steps
    grid = grid[entropy(lumped, grid) >= b]
    s = np.stack([grid[:, :2] @ lumped.rows[:2], grid[:, 2:] @ lumped.rows[2:]], axis=1)
    product = s.sum(axis=2, keepdims=True) * s.sum(axis=1, keepdims=True)
    expected = rel_entr(s, product).sum(axis=(1, 2)).max()
    value = joint_blahut_arimoto(lumped, b).value
    assert expected <= value <= expected + 1e-3


def test_no_floor_and_one_record_is_capacity():
    space = RecordSpace([range(3)])
    z_channel = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]]
    lumped = Mechanism.from_channel(space, z_channel).lumped(0)
    # A Z-channel of capacity log(5/4) beside a noiseless symbol: exp C = 5/4 + 1.
    run = joint_blahut_arimoto(lumped, 0.0)
    assert run.value == pytest.approx(math.log(2.25), abs=1e-10)
    assert run.point == pytest.approx(np.array([0.6 * 5 / 9, 0.4 * 5 / 9, 4 / 9]), abs=1e-5)


def test_a_noiseless_query_discloses_everything_on_its_plateau():
    # 20 people, count rounded at random to base 3: 0 and 3, 6, ... are published as they are.
    lumped = rounded_count(20, 3).lumped(0)
    for b in (0.0, 6.0, 12.0):
        assert joint_blahut_arimoto(lumped, b).value == pytest.approx(math.log(2), abs=1e-9)
    assert joint_blahut_arimoto(lumped, 13.2).value < 0.6


def test_a_useless_channel_leaks_nothing():
    lumped = Mechanism.from_channel(RecordSpace.binary(2), np.full((4, 2), 0.5)).lumped(0)
    for b in (0.0, 0.7, 1.3):
        run = joint_blahut_arimoto(lumped, b)
        assert run.value == pytest.approx(0, abs=1e-15)
        assert entropy(lumped, run.point) >= b


def test_a_noisy_channel_converges_within_the_cap():
    # Plain steps gain a factor 1 - (1 - 2 * .49)^2 at a time here; relaxation makes up for it.
    run = joint_blahut_arimoto(modular(6, 2, 0.49).lumped(0), 3.0)
    assert run.value == pytest.approx(math.log(2) - binary_entropy(0.49), rel=1e-6)
    assert "gained at most" in run.stopped


def test_ten_thousand_records():
    lumped = modular(10_000, 3, 0.2).lumped(0)
    b = 0.995 * lumped.max_entropy
    run = joint_blahut_arimoto(lumped, b)
    # With this many people 0.5 % of doubt less than all is a plateau: as if there were no floor.
    assert entropy(lumped, run.point) >= b
    assert run.value == pytest.approx(joint_blahut_arimoto(modular(4, 3, 0.2).lumped(0), 0).value)


def test_at_the_largest_entropy_the_prior_is_uniform():
    lumped = modular(6, 3, 0.2).lumped(0)
    run = joint_blahut_arimoto(lumped, lumped.max_entropy)
    assert run.point == pytest.approx(lumped.uniform(), abs=1e-15)
    assert run.value == pytest.approx(information(lumped, lumped.uniform()), abs=1e-15)
    assert run.iterations == 0
    near = joint_blahut_arimoto(lumped, lumped.max_entropy - 1e-9)
    assert near.point == pytest.approx(lumped.uniform(), abs=1e-4)
    with pytest.raises(InfeasibleError, match=r"4\.1588"):
        joint_blahut_arimoto(lumped, lumped.max_entropy + 1e-6)


def test_starts_of_the_user():
    lumped = modular(6, 3, 0.2).lumped(0)
    b = 3.327
    best = joint_blahut_arimoto(lumped, b)
    again = joint_blahut_arimoto(lumped, b, starts=best.point[None])
    assert again.value == pytest.approx(best.value, abs=1e-10)
    assert again.iterations < 10
    worse = joint_blahut_arimoto(lumped, b, starts=lumped.uniform()[None])
    assert worse.history["start_values"].shape == (1,)
    assert worse.value <= best.value + 1e-12


def test_parity_from_the_uniform_prior_does_not_move():
    # It is a stationary point with I = 0: why one start is not enough.
    lumped = modular(4, 2, 0.3033).lumped(0)
    run = joint_blahut_arimoto(lumped, 2.0, starts=lumped.uniform()[None])
    assert run.value == pytest.approx(0, abs=1e-15)


def test_the_cap_is_reported_and_the_seed_decides():
    lumped = modular(6, 4, 0.2).lumped(0)
    short = joint_blahut_arimoto(lumped, 3.327, max_iterations=3)
    assert short.iterations == 3
    assert short.stopped == "max_iterations=3 reached"
    first, second = (joint_blahut_arimoto(lumped, 3.327, rng=5) for _ in range(2))
    assert np.array_equal(first.point, second.point)
    assert len(joint_blahut_arimoto(lumped, 3.327, starts=1).history["start_values"]) == 1


def test_an_output_that_never_occurs_changes_nothing():
    base = modular(4, 3, 0.2)
    padded = Mechanism(base.query, np.hstack([symmetric(3, 0.2), np.zeros((3, 1))]))
    b = 2.0
    assert joint_blahut_arimoto(padded.lumped(0), b).value == pytest.approx(
        joint_blahut_arimoto(base.lumped(0), b).value, abs=1e-9
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"entropy_floor": -1.0}, "entropy_floor"),
        ({"entropy_floor": math.nan}, "entropy_floor"),
        ({"starts": 0}, "starts"),
        ({"starts": [[0.5, 0.5]]}, "starts"),
        ({"starts": [[0.5] * 4]}, "starts"),
        ({"max_iterations": 0}, "max_iterations"),
        ({"tol": -1e-3}, "tol"),
        ({"lumped": np.eye(2)}, "lumped"),
    ],
)
def test_bad_arguments(change, message):
    arguments = {"lumped": modular(3, 2, 0.1).lumped(0), "entropy_floor": 1.0} | change
    with pytest.raises(ValidationError, match=message):
        joint_blahut_arimoto(**arguments)


@settings(max_examples=80)
@given(seed=SEEDS, level=st.floats(0, 1), shape=st.sampled_from([0.05, 0.5, 5]))
def test_meeting_the_floor_is_least_mixing(seed, level, shape):
    lumped = random_lumped(seed)
    b = level * lumped.max_entropy
    w = np.random.default_rng(seed).dirichlet(np.full(len(lumped.rows), shape))
    met = meet_entropy_floor(w, lumped, b)
    assert entropy(lumped, met) >= b - 1e-14 * (level == 1)
    if entropy(lumped, w) >= b + 1e-11:
        assert np.array_equal(met, w)
    elif b < lumped.max_entropy - 1e-9:
        uniform = lumped.uniform()
        theta = ((met - w) @ (uniform - w)) / ((uniform - w) @ (uniform - w))
        less = (1 - 0.999 * theta) * w + 0.999 * theta * uniform
        assert theta < 1e-9 or entropy(lumped, less) < b
    with pytest.raises(ValidationError, match="weights"):
        meet_entropy_floor(w[:-1] / w[:-1].sum(), lumped, b)
    with pytest.raises(InfeasibleError, match=r"log\|X\|"):
        meet_entropy_floor(w, lumped, lumped.max_entropy + 1e-3)
    with pytest.raises(ValidationError, match=r"^lumped: expected a Lumped"):
        meet_entropy_floor(w, "lumped", b)
