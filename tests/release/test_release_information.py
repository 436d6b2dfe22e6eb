"""The information problem of a release: bounds that hold, gaps that close, nothing overclaimed."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak import verify
from cvxleak.core.errors import InfeasibleError
from cvxleak.problem.bound import Status
from cvxleak.release import release_lagrangian, release_problem

TABLE_1 = np.array([[[0.024, 0.228], [0.063, 0.203]], [[0.203, 0.013], [0.228, 0.038]]])


def information(table):
    independent = np.outer(table.sum(axis=1), table.sum(axis=0))
    positive = table > 0
    return float(table[positive] @ np.log(table[positive] / independent[positive]))


def leakages(joint, kernel):
    law = joint.sum(axis=0)[:, :, None] * kernel
    together = np.moveaxis(law, 2, 0).reshape(-1, law.shape[1])
    return information(law.sum(axis=0).T), information(together)


def useful(joint, kernel):
    return information(np.einsum("rzx,zxq->rq", joint, kernel))


def told(joint):
    return information(joint.sum(axis=0))


def random_kernels(rng, joint, outputs, epsilon, delta, count=200):
    """Random kernels pulled to a constant until they meet the budgets."""
    for _ in range(count):
        concentration = rng.choice([0.05, 0.3, 1.0])
        kernel = rng.dirichlet(np.full(outputs, concentration), size=joint.shape[1:])
        constant = np.broadcast_to(kernel.mean(axis=(0, 1)), kernel.shape)
        low, high = 0.0, 1.0
        for _ in range(25):
            share = (low + high) / 2
            alone, together = leakages(joint, share * kernel + (1 - share) * constant)
            low, high = (share, high) if alone <= epsilon and together <= delta else (low, share)
        yield low * kernel + (1 - low) * constant


@pytest.mark.parametrize(
    ("epsilon", "room", "outputs"),
    [pytest.param(0.2, 0.2, 4, marks=pytest.mark.slow), (0.5, 0.6, 4)],
)
def test_the_gap_closes_with_enough_outputs(epsilon, room, outputs):
    delta = told(TABLE_1) + room
    problem = release_problem(TABLE_1, epsilon, delta, "information", outputs=outputs)
    bound = problem.solve(tol=1e-6, rng=0)
    assert bound.status is Status.CERTIFIED
    assert bound.lower == pytest.approx(useful(TABLE_1, bound.witness), abs=1e-12)
    assert verify(bound.certificate).passed
    # With two outputs less is attained; the bound, which is for any number, stays.
    two = release_problem(TABLE_1, epsilon, delta, "information", outputs=2).solve(tol=1e-4, rng=0)
    assert (two.stats["outputs"], two.stats["upper_of"]) == (2, "any number of outputs")
    assert "2 outputs; the upper bound holds for any number" in verify(two.certificate).about
    assert two.status is Status.BRACKETED
    assert two.lower < bound.lower - 1e-3
    assert two.upper == pytest.approx(bound.upper, abs=1e-4)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("loose", [False, True])
def test_without_a_budget_that_binds_all_is_told(seed, loose):
    rng = np.random.default_rng(seed)
    shape = tuple(rng.integers(2, 4, 3))
    joint = rng.dirichlet(np.full(np.prod(shape), 0.5)).reshape(shape)
    budgets = (math.log(shape[2]), math.log(shape[2]) + told(joint)) if loose else ()
    bound = release_problem(joint, *budgets, utility="information").solve(tol=1e-9, restarts=0)
    everything = information(joint.reshape(shape[0], -1))
    assert bound.status is Status.CERTIFIED
    assert bound.lower == pytest.approx(everything, abs=1e-12)
    assert bound.upper == pytest.approx(everything, abs=1e-12)
    pairs = int((joint.sum(axis=0) > 0).sum())
    assert bound.stats["outputs"] == bound.witness.shape[-1] == pairs + len(budgets)


@pytest.mark.slow
def test_the_default_number_of_outputs_closes_what_that_of_requests_leaves_open():
    closed = {None: 0, 2: 0}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        joint = rng.dirichlet(np.full(12, 0.5)).reshape(2, 2, 3)
        for outputs in closed:
            problem = release_problem(joint, 0.1, utility="information", outputs=outputs)
            bound = problem.solve(tol=1e-4, restarts=1, rng=0)
            closed[outputs] += bound.status is Status.CERTIFIED
    assert closed[None] == 3
    assert closed[2] == 0


def test_a_vertex_of_the_program_for_the_outputs_loses_nothing():
    """Of many outputs n + K are left, within the same budgets, and tell at least as much."""
    from cvxleak.problem import Gap

    joint = np.random.default_rng(3).dirichlet(np.ones(18)).reshape(3, 2, 3)
    problem = release_problem(joint, 0.05, told(joint) + 0.1, "information")
    search = problem._search()
    search.refine(Gap(1e-1))
    relaxed, rows = search._relaxed, search.reduced()
    assert relaxed.shape[1] > 8 >= rows.shape[1]
    kernels = [search.inner.terms.kernel(k) for k in (relaxed, rows)]
    assert useful(joint, kernels[1]) >= useful(joint, kernels[0]) - 1e-9
    assert leakages(joint, kernels[1])[0] <= 0.05 + 1e-7
    assert leakages(joint, kernels[1])[1] <= told(joint) + 0.1 + 1e-7


def test_large_problems_have_as_many_outputs_as_fit():
    joint = np.random.default_rng(0).dirichlet(np.ones(800)).reshape(4, 10, 20)
    assert len(release_problem(joint, utility="information").outputs) == 25
    joint = joint.reshape(40, 1, 20)
    assert len(release_problem(joint, 0.1, utility="information").outputs) == 21


@given(
    st.integers(0, 10**6),
    st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3)),
    st.sampled_from([0.0, 0.01, 0.2]),
    st.sampled_from([0.0, 0.01, 0.2]),
)
@settings(max_examples=10)
def test_no_random_kernel_is_above_the_upper_end(seed, shape, own, room):
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.full(np.prod(shape), 0.5)).reshape(shape)
    known = told(joint)
    delta = (known if known > 1e-12 else 0.0) + room  # not a rounding error as a budget
    epsilon = min(own, delta)
    bound = release_problem(joint, epsilon, delta, "information", outputs=3).solve(
        tol=3e-2, restarts=1, rng=0
    )
    alone, together = leakages(joint, bound.witness)
    assert alone <= epsilon + 1e-12
    assert together <= delta + 1e-12
    assert useful(joint, bound.witness) == pytest.approx(bound.lower, abs=1e-12)
    assert bound.lower <= bound.upper
    assert bound.upper <= information(joint.reshape(shape[0], -1)) + 1e-12
    for kernel in random_kernels(rng, joint, 4, epsilon, delta, count=5):
        assert useful(joint, kernel) <= bound.upper + 1e-9
    assert verify(bound.certificate).passed


def test_random_kernels_do_not_beat_the_certified_optimum():
    delta = told(TABLE_1) + 0.2
    bound = release_problem(TABLE_1, 0.2, delta, "information", outputs=4).solve(tol=1e-5, rng=0)
    rng = np.random.default_rng(0)
    values = [useful(TABLE_1, k) for k in random_kernels(rng, TABLE_1, 4, 0.2, delta, 300)]
    assert max(values) <= bound.upper
    assert max(values) > 0.5 * bound.upper  # they come near enough to mean something


def test_the_plain_bounds_hold_where_cells_are_not_affordable():
    joint = np.random.default_rng(0).dirichlet(np.ones(5 * 4 * 6)).reshape(5, 4, 6)
    delta = told(joint) + 0.05
    problem = release_problem(joint, 0.02, delta, "information")
    bound = problem.solve(time_limit=0.0)
    x = joint.sum(axis=1)
    noise = sum(  # I(R;Z|X)
        joint[:, :, k].sum() * information(joint[:, :, k] / joint[:, :, k].sum()) for k in range(6)
    )
    both = information(joint.reshape(5, -1))
    plain = min(0.02 + noise, delta + information(joint.sum(axis=2)) - told(joint), both)
    assert bound.upper <= plain + 1e-12
    assert x.sum() == pytest.approx(1.0)


def test_a_request_that_is_the_dataset_is_told_up_to_its_budget():
    # R = X and no earlier outputs: I(R̂;R) = I(R̂;X), so all of epsilon is used, and no more.
    joint = np.diag([0.2, 0.8])
    bound = release_problem(joint, 0.1, utility="information").solve(tol=1e-6, rng=0)
    assert bound.lower == pytest.approx(0.1, abs=1e-6)
    assert bound.upper <= 0.1 + 1e-12
    in_bits = release_problem(joint, 0.1, utility="information", unit="bits").solve(tol=1e-6, rng=0)
    assert in_bits.unit == "bits"
    assert in_bits.lower == pytest.approx(0.1, abs=1e-5)


def test_prices_bracket_the_progressive_networks_objective():
    bound = release_lagrangian(TABLE_1, 1.05, 0.0, "information", outputs=4).solve(tol=1e-5, rng=0)
    alone, _ = leakages(TABLE_1, bound.witness)
    value = useful(TABLE_1, bound.witness) - 1.05 * alone
    assert bound.lower == pytest.approx(value, abs=1e-12)
    assert bound.lower > 0.008
    assert bound.status is Status.CERTIFIED


def test_more_budget_never_gives_a_smaller_bound():
    uppers = [
        release_problem(TABLE_1, epsilon, 0.4, "information").solve(tol=1e-4, restarts=0).upper
        for epsilon in (0.0, 0.05, 0.1, 0.3)
    ]
    assert all(b >= a - 1e-4 for a, b in itertools.pairwise(uppers))


def test_same_seed_same_answer():
    problem = release_problem(TABLE_1, 0.1, 0.3, "information")
    one, other = (problem.solve(tol=1e-3, rng=3) for _ in range(2))
    assert (one.lower, one.upper) == (other.lower, other.upper)
    assert np.array_equal(one.witness, other.witness)


def test_a_time_limit_leaves_something_to_release(monkeypatch):
    """The release comes before the bound; a clock that counts its readings stops them."""
    readings = itertools.count()
    monkeypatch.setattr("time.monotonic", lambda: float(next(readings)))
    joint = np.random.default_rng(2).dirichlet(np.ones(18)).reshape(3, 2, 3)
    problem = release_problem(joint, 0.1, told(joint) + 0.15, "information")
    bound = problem.solve(tol=1e-9, time_limit=24.0, rng=0)
    assert 0.01 < bound.lower < bound.upper
    assert problem.solve(tol=1e-9, time_limit=0.0, rng=0).lower < bound.lower


def test_the_outputs_that_lose_least_are_merged_first():
    """Laws on a line: of three, the two near ones become one, and nothing is lost by twins."""
    from cvxleak.release.information import _losses

    laws = np.array([[0.5, 0.5], [0.6, 0.4], [0.9, 0.1], [0.5, 0.5]])
    masses = np.array([0.3, 0.2, 0.4, 0.1])

    def useful_if_merged(i, j):
        both = masses[i] + masses[j]
        mean = (masses[i] * laws[i] + masses[j] * laws[j]) / both
        rest = [n for n in range(4) if n not in (i, j)]
        table = np.vstack([both * mean, masses[rest, None] * laws[rest]])
        return information(table)

    before = information(masses[:, None] * laws)
    for i in range(4):
        losses = _losses(laws, masses, i)
        assert losses[i] == math.inf
        for j in set(range(4)) - {i}:
            assert losses[j] == pytest.approx(before - useful_if_merged(i, j), abs=1e-12)


def test_check_and_infeasible():
    problem = release_problem(TABLE_1, 0.1, 0.3, "information")
    bound = problem.solve(tol=1e-3, restarts=0)
    check = problem.check(bound.witness, bound=bound)
    assert check.feasible
    assert check.value == pytest.approx(bound.lower, abs=1e-12)
    assert check.shortfall[1] == pytest.approx(bound.gap, abs=1e-12)
    with pytest.raises(InfeasibleError, match=r"0\.0019"):
        release_problem(TABLE_1, 0.0, 0.001, "information").solve()
    assert math.isfinite(bound.upper)
