"""The algorithms of SEQUENTIAL against plain loops, the conic program, and each other."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.iterative import (
    ReleaseLaws,
    distortion_blahut_arimoto,
    information_blahut_arimoto,
    multiplier_grid,
    release_functional,
    release_gradients,
    release_search,
    release_update,
)
from cvxleak.release import release_lagrangian, release_problem

TABLE_1 = np.array([[[0.024, 0.228], [0.063, 0.203]], [[0.203, 0.013], [0.228, 0.038]]])
"""p(r,z,x) of the paper's Table I."""

TABLE_2 = {
    0.01: [[0, 1], [0, 1]],
    0.1: [[0.041, 0.975], [0.143, 0.887]],
}
"""p(0|z,x) of Table II (a) and (b), by the common multiplier per bit."""


UNIFORM = ReleaseLaws([0.5, 0.5], np.full((2, 2, 2), 0.5), np.full((2, 2), 0.5))


def information(table):
    """I of a joint law given as a table, by definition."""
    independent = np.outer(table.sum(axis=1), table.sum(axis=0))
    return sum(
        p * np.log(p / q) for p, q in zip(table.ravel(), independent.ravel(), strict=True) if p > 0
    )


def leakages(joint, kernel):
    law = joint.sum(axis=0)[:, :, None] * kernel  # p(z,x,r̂)
    alone = law.sum(axis=0).T
    together = np.moveaxis(law, 2, 0).reshape(-1, law.shape[1])
    return information(alone), information(together)


def mean_distortion(joint, kernel, d):
    return float(np.einsum("rzx,zxq,rq->", joint, kernel, d))


def algorithm_1(joint, mu_1, mu_2, d, kernel, updates):
    """Algorithm 1 as printed, with loops and probabilities; the normalizer's exponent corrected."""
    R, Z, X = joint.shape
    p = joint.sum(axis=0)
    outputs = range(d.shape[1])
    for _ in range(updates):
        q1 = [sum(kernel[z, x, y] * p[z, x] for z in range(Z) for x in range(X)) for y in outputs]
        q2, q3 = np.zeros((Z, len(outputs), X)), np.zeros((len(outputs), Z))
        for y in outputs:
            for x in range(X):
                total = sum(kernel[w, x, y] * p[w, x] for w in range(Z))
                for z in range(Z):
                    q2[z, y, x] = kernel[z, x, y] * p[z, x] / total
            for z in range(Z):
                q3[y, z] = sum(kernel[z, x, y] * p[z, x] for x in range(X)) / p[z].sum()
        new = np.zeros_like(kernel)
        for z in range(Z):
            for x in range(X):
                for y in outputs:
                    mean = sum(joint[r, z, x] * d[r, y] for r in range(R)) / p[z, x]
                    new[z, x, y] = (
                        q1[y] ** mu_1 * q2[z, y, x] ** mu_1 * q3[y, z] ** mu_2 * np.exp(-mean)
                    ) ** (1 / (mu_1 + mu_2))
                new[z, x] /= new[z, x].sum()
        kernel = new
    return kernel


def random_joint(seed, shape, sparse=False):
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.full(np.prod(shape), 0.7)).reshape(shape)
    if sparse:
        joint[rng.random(shape) < 0.4] = 0.0
        joint[0, 0, 0] += 0.1
    return joint / joint.sum()


@pytest.mark.parametrize("mu", [(0.3, 0.2), (0.0, 0.5), (0.7, 0.0)])
def test_updates_are_those_of_algorithm_1(mu):
    joint = random_joint(0, (3, 2, 4))
    d = 1 - np.eye(3)
    start = np.random.default_rng(1).dirichlet(np.ones(3), size=(2, 4))
    run = distortion_blahut_arimoto(joint, *mu, start=start, tol=0.0, max_iterations=7)
    assert run.point == pytest.approx(algorithm_1(joint, *mu, d, start, 7), abs=1e-12)


@pytest.mark.parametrize("mu", TABLE_2)
def test_table_2(mu):
    kernel = distortion_blahut_arimoto(TABLE_1, mu / np.log(2), mu / np.log(2)).point
    assert kernel[:, :, 0] == pytest.approx(np.array(TABLE_2[mu]), abs=5e-4)
    assert kernel.sum(axis=2) == pytest.approx(1.0)


def test_table_2_c_is_not_where_the_algorithm_converges():
    mu = 5 / np.log(2)
    printed = np.array([[[0.567, 0.433], [0.593, 0.407]], [[0.367, 0.630], [0.381, 0.619]]])
    assert printed.sum(axis=2).min() == pytest.approx(0.997)
    printed /= printed.sum(axis=2, keepdims=True)
    alone, together = leakages(TABLE_1, printed)
    value = mean_distortion(TABLE_1, printed, 1 - np.eye(2)) + mu * (alone + together)
    run = distortion_blahut_arimoto(TABLE_1, mu, mu, tol=1e-8)
    assert value == pytest.approx(0.50883, abs=1e-5)
    assert run.value == pytest.approx(0.49581, abs=1e-5)
    assert run.history["gap"][-1] <= 1e-8
    assert run.point[:, :, 0] == pytest.approx(1.0, abs=1e-4)  # a constant


def test_no_multipliers_means_least_distortion():
    run = distortion_blahut_arimoto(TABLE_1, 0.0, 0.0)
    assert run.iterations == 1
    assert run.value == pytest.approx(0.138)
    assert run.history["gap"][-1] == 0.0


@given(
    st.integers(0, 10**6),
    st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 4)),
    st.tuples(st.floats(0, 2, allow_subnormal=False), st.floats(0, 2, allow_subnormal=False)),
    st.booleans(),
)
@settings(max_examples=40)
def test_objective_falls_and_gap_holds(seed, shape, mu, sparse):
    joint = random_joint(seed, shape, sparse)
    run = distortion_blahut_arimoto(joint, *mu, max_iterations=300, tol=1e-10)
    assert np.diff(run.history["objective"]).max(initial=0.0) <= 1e-12
    best = release_lagrangian(joint, *mu).solve()
    assert run.value >= best.lower - 1e-12
    assert run.value - run.history["gap"][-1] <= best.upper + 1e-12
    alone, together = leakages(joint, run.point)
    by_definition = mean_distortion(joint, run.point, 1 - np.eye(shape[0]))
    by_definition += mu[0] * alone + mu[1] * together
    assert run.value == pytest.approx(by_definition, abs=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_algorithm_1_agrees_with_the_conic_program(seed):
    joint = random_joint(seed, (3, 3, 3))
    run = distortion_blahut_arimoto(joint, 0.05, 0.08, tol=1e-11)
    problem = release_lagrangian(joint, 0.05, 0.08).to_cvxpy()
    problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    assert run.value == pytest.approx(problem.value, abs=1e-8)


@pytest.mark.parametrize("seed", range(3))
def test_algorithm_2_falls_and_stays_below_the_proved_bound(seed):
    joint = random_joint(seed, (2, 3, 3))
    run = information_blahut_arimoto(joint, 0.1, 0.2, rng=seed, tol=1e-10, restarts=5)
    alone, together = leakages(joint, run.point)
    useful = information(np.einsum("rzx,zxq->rq", joint, run.point))
    assert run.value == pytest.approx(-useful + 0.1 * alone + 0.2 * together, abs=1e-10)
    assert np.diff(run.history["objective"]).max() <= 1e-12
    assert len(run.history["starts"]) == 5
    assert run.history["starts"].min() == run.value
    # As many outputs as the algorithm has; more tell more.
    problem = release_lagrangian(joint, 0.1, 0.2, "information", outputs=run.point.shape[-1])
    bound = problem.solve(tol=1e-3, restarts=1, rng=0)
    assert bound.lower - 1e-3 <= -run.value <= bound.upper


def test_outputs_that_die_out_do_not_spoil_the_rest():
    joint = random_joint(7, (4, 5, 3))
    run = distortion_blahut_arimoto(joint, 3.0, 3.0, tol=1e-9)
    assert np.isfinite(run.point).all()
    assert run.history["gap"][-1] <= 1e-9
    assert run.point.min() < 1e-12


def plain_bottleneck(law, beta, kernel, updates):
    """Tishby, Pereira and Bialek's iteration for p(t|x), with relevance beta."""
    p = law.sum(axis=0)
    given_x = law / p  # p(y|x)
    for _ in range(updates):
        t = p @ kernel
        given_t = (law @ kernel) / t
        with np.errstate(divide="ignore"):
            divergence = np.array(
                [[np.sum(g * np.log(g / h)) for h in given_t.T] for g in given_x.T]
            )
        kernel = t * np.exp(-beta * divergence)
        kernel /= kernel.sum(axis=1, keepdims=True)
    return kernel


def test_information_bottleneck_is_algorithm_2_without_earlier_outputs():
    joint = random_joint(3, (4, 1, 5))
    start = np.random.default_rng(0).dirichlet(np.ones(3), size=5)
    run = information_blahut_arimoto(
        joint, 0.2, 0.0, outputs=3, start=start[None], tol=0.0, max_iterations=25
    )
    expected = plain_bottleneck(joint[:, 0, :], 1 / 0.2, start, 25)
    assert run.point[0] == pytest.approx(expected, abs=1e-10)


def test_progressive_networks_keep_nothing_from_mu_1_of_one_on_only_without_extra_knowledge():
    # Z - X - R: nothing but a constant pays at mu_1 = 1.05.
    rng = np.random.default_rng(5)
    given_x = rng.dirichlet(np.ones(2), size=3)
    earlier = rng.dirichlet(np.ones(2), size=3)
    markov = np.einsum("x,xr,xz->rzx", np.full(3, 1 / 3), given_x, earlier)
    run = information_blahut_arimoto(markov, 1.05, 0.0, rng=0, tol=1e-8)
    assert run.value >= -1e-12
    assert release_lagrangian(markov, 1.05, 0.0, "information").solve(tol=1e-6).upper <= 1e-6
    # In Table I Z tells of R what X does not, and a release pays.
    run = information_blahut_arimoto(TABLE_1, 1.05, 0.0, rng=0, tol=1e-8)
    assert run.value < -0.008


@pytest.mark.parametrize(
    ("epsilon", "room"),
    [
        (0.05, 0.1),
        (0.3, 0.5),
        (0.2, 0.2),
        (0.5, 0.6),
        pytest.param(0.02, 0.04, marks=pytest.mark.slow),
    ],
)
def test_search_agrees_with_the_conic_problem(epsilon, room):
    delta = information(TABLE_1.sum(axis=0)) + room
    run = release_search(TABLE_1, epsilon, delta, tol=1e-8)
    alone, together = leakages(TABLE_1, run.point)
    assert alone <= epsilon + 1e-9
    assert together <= delta + 1e-9
    assert run.value == pytest.approx(mean_distortion(TABLE_1, run.point, 1 - np.eye(2)), abs=1e-10)
    bound = release_problem(TABLE_1, epsilon, delta).solve()
    assert run.value == pytest.approx(bound.upper, abs=1e-8)
    assert run.history["lower"].max() <= bound.upper + 1e-12


@pytest.mark.parametrize("outputs", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_search_for_information_is_feasible_and_near_what_is_proved(outputs):
    run = release_search(TABLE_1, 0.1, 0.2, utility="information", outputs=outputs, tol=1e-5, rng=0)
    alone, together = leakages(TABLE_1, run.point)
    assert alone <= 0.1 + 1e-12
    assert together <= 0.2 + 1e-12
    useful = information(np.einsum("rzx,zxq->rq", TABLE_1, run.point))
    assert run.value == pytest.approx(useful, abs=1e-12)
    problem = release_problem(TABLE_1, 0.1, 0.2, "information", outputs=outputs)
    bound = problem.solve(tol=1e-3, rng=0)
    # With two outputs the upper bound, for any number, is 0.0039 away.
    assert bound.lower - 2e-4 < run.value <= bound.upper
    assert np.diff(run.history["objective"]).min(initial=0.0) >= 0.0


def test_search_for_information_finds_a_closed_form():
    # A fair bit is told by two outputs through a binary symmetric channel, up to the budget.
    run = release_search([[[0.5, 0.0]], [[0.0, 0.5]]], 0.2, 0.2, utility="information")
    assert run.value == pytest.approx(0.2, abs=1e-4)
    assert run.value <= 0.2 + 1e-12


def test_a_grid_of_ones_own_is_where_the_search_begins():
    run = release_search(TABLE_1, 0.1, 0.2, mu_1=[0.2, 0.5], mu_2=[0.05], max_rounds=2)
    history = run.history
    assert [tuple(pair) for pair in zip(history["mu_1"][:2], history["mu_2"][:2], strict=True)] == [
        (0.2, 0.05), (0.5, 0.05)
    ]  # fmt: skip
    assert run.iterations == len(history["value"]) == 4
    (point,) = multiplier_grid(TABLE_1, [0.5], [0.05])
    assert history["epsilon"][1] == pytest.approx(point.epsilon, abs=1e-4)


def test_grid_has_the_points_of_single_runs():
    points = multiplier_grid(TABLE_1, [0.0, 0.2], [0.0, 0.1, 0.4])
    assert [(point.mu_1, point.mu_2) for point in points] == [
        (0.0, 0.0), (0.0, 0.1), (0.0, 0.4), (0.2, 0.0), (0.2, 0.1), (0.2, 0.4)
    ]  # fmt: skip
    for point in points:
        run = distortion_blahut_arimoto(TABLE_1, point.mu_1, point.mu_2)
        value = point.value + point.mu_1 * point.epsilon + point.mu_2 * point.delta
        assert value == pytest.approx(run.value, abs=1e-8)
        assert point.dual <= run.value + 1e-12
        assert leakages(TABLE_1, point.kernel) == pytest.approx((point.epsilon, point.delta))


def objective(joint, kernel, mu_1, mu_2, utility):
    """g by definition, with the Hamming distortion."""
    alone, together = leakages(joint, kernel)
    cost = mean_distortion(joint, kernel, 1 - np.eye(joint.shape[0], kernel.shape[2]))
    if utility == "information":
        cost = -information(np.einsum("rzx,zxq->rq", joint, kernel))
    return cost + mu_1 * alone + mu_2 * together


def random_laws(rng, shape, outputs):
    R, Z, X = shape
    return ReleaseLaws(
        rng.dirichlet(np.ones(outputs)),
        np.moveaxis(rng.dirichlet(np.ones(Z), size=(X, outputs)), 2, 0),
        rng.dirichlet(np.ones(outputs), size=Z),
        rng.dirichlet(np.ones(R), size=outputs).T,
    )


@pytest.mark.parametrize("utility", ["distortion", "information"])
@pytest.mark.parametrize("sparse", [False, True])
def test_lemma_1_and_theorem_1(utility, sparse):
    rng = np.random.default_rng(3)
    joint = random_joint(2, (3, 2, 4), sparse)
    kernel = rng.dirichlet(np.ones(3), size=(2, 4))
    own = ReleaseLaws.of(joint, kernel, utility)
    exact = objective(joint, kernel, 0.3, 0.2, utility)
    assert release_functional(joint, kernel, own, 0.3, 0.2) == pytest.approx(exact, abs=1e-12)
    for _ in range(10):  # min over the q, each alone and all together
        other = random_laws(rng, joint.shape, 3)
        if utility == "distortion":
            other = other._replace(q_4=None)
        trials = [other] + [own._replace(**{name: getattr(other, name)}) for name in own._fields]
        for laws in trials:
            assert release_functional(joint, kernel, laws, 0.3, 0.2) >= exact - 1e-12
    # min over p for the q of some kernel, and so on: Remark 1.
    below = release_update(joint, own, 0.3, 0.2)
    values = [release_functional(joint, k, own, 0.3, 0.2) for k in (kernel, below)]
    assert values[1] < values[0]
    assert objective(joint, below, 0.3, 0.2, utility) < values[1]
    mixed = 0.9 * below + 0.1 * kernel
    assert values[1] < release_functional(joint, mixed, own, 0.3, 0.2) < values[0]


def test_lemma_2_what_a_wrong_q_costs_is_a_divergence():
    rng = np.random.default_rng(0)
    joint = random_joint(0, (3, 2, 4))
    kernel = rng.dirichlet(np.ones(3), size=(2, 4))
    own = ReleaseLaws.of(joint, kernel, "information")
    other = random_laws(rng, joint.shape, 3)
    both = joint.sum(axis=0)[:, :, None] * kernel
    least = release_functional(joint, kernel, own, 0.3, 0.2)
    weights = {
        "q_1": (0.3, np.ones(())),
        "q_2": (0.3, both.sum(axis=0)),
        "q_3": (0.2, both.sum(axis=(1, 2))[:, None]),
        "q_4": (1.0, both.sum(axis=(0, 1))),
    }
    for name, (price, law) in weights.items():
        true, wrong = getattr(own, name), getattr(other, name)
        more = release_functional(joint, kernel, own._replace(**{name: wrong}), 0.3, 0.2) - least
        assert more == pytest.approx(price * (law * true * np.log(true / wrong)).sum(), abs=1e-12)
        assert more > 1e-4


def test_proposition_1_a_kernel_that_is_its_own_update_is_optimal():
    joint = random_joint(1, (3, 2, 3))
    kernel = distortion_blahut_arimoto(joint, 0.1, 0.2, tol=1e-13).point
    update = release_update(joint, ReleaseLaws.of(joint, kernel), 0.1, 0.2)
    assert update == pytest.approx(kernel, abs=1e-6)
    bound = release_lagrangian(joint, 0.1, 0.2).solve()
    value = objective(joint, kernel, 0.1, 0.2, "distortion")
    assert bound.lower - 1e-12 <= value <= bound.upper + 1e-9


def test_proposition_1_needs_kernels_without_zeros():
    constant = np.zeros((2, 2, 2))
    constant[..., 0] = 1.0
    own = ReleaseLaws.of(TABLE_1, constant)
    assert np.array_equal(release_update(TABLE_1, own, 0.1, 0.1), constant)
    value = release_functional(TABLE_1, constant, own, 0.1, 0.1)
    assert value > release_lagrangian(TABLE_1, 0.1, 0.1).solve().upper + 0.1


@pytest.mark.parametrize("utility", ["distortion", "information"])
def test_algorithms_started_from_q_are_the_printed_updates(utility):
    rng = np.random.default_rng(5)
    joint = random_joint(4, (3, 2, 4))
    laws = random_laws(rng, joint.shape, 3)
    if utility == "distortion":
        laws = laws._replace(q_4=None)
    method = distortion_blahut_arimoto if utility == "distortion" else information_blahut_arimoto
    start = kernel = release_update(joint, laws, 0.3, 0.2)
    for _ in range(6):
        kernel = release_update(joint, ReleaseLaws.of(joint, kernel, utility), 0.3, 0.2)
    run = method(joint, 0.3, 0.2, start=start, tol=0.0, max_iterations=6)
    assert run.point == pytest.approx(kernel, abs=1e-12)
    assert run.value == pytest.approx(objective(joint, kernel, 0.3, 0.2, utility), abs=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
def test_derivatives_are_those_of_differences(sparse):
    rng = np.random.default_rng(7)
    joint = random_joint(6, (3, 2, 4), sparse)
    kernel = rng.dirichlet(np.full(3, 5.0), size=(2, 4))
    step = rng.normal(size=kernel.shape)
    step = 1e-5 * (step - step.mean(axis=2, keepdims=True))  # rows keep their sum
    found = release_gradients(joint, kernel)
    for number, gradient in enumerate(found):
        ends = []
        for moved in (kernel + step, kernel - step):
            parts = (mean_distortion(joint, moved, 1 - np.eye(3)), *leakages(joint, moved))
            ends.append(parts[number])
        assert (gradient * step).sum() == pytest.approx((ends[0] - ends[1]) / 2, abs=1e-11)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: distortion_blahut_arimoto(TABLE_1 * 2, 1, 1), "joint"),
        (lambda: distortion_blahut_arimoto(TABLE_1[0], 1, 1), "joint"),
        (lambda: distortion_blahut_arimoto(-TABLE_1, 1, 1), "joint"),
        (lambda: distortion_blahut_arimoto(TABLE_1, -1, 1), "mu_1"),
        (lambda: distortion_blahut_arimoto(TABLE_1, 1, np.inf), "mu_2"),
        (lambda: distortion_blahut_arimoto(TABLE_1, 1, 1, distortion=np.eye(3)), "distortion"),
        (lambda: distortion_blahut_arimoto(TABLE_1, 1, 1, start=np.ones((2, 2, 2))), "start"),
        (lambda: distortion_blahut_arimoto(TABLE_1, 1, 1, start=np.ones((2, 2))), "start"),
        (lambda: distortion_blahut_arimoto(TABLE_1, 1, 1, tol=-1), "tol"),
        (lambda: information_blahut_arimoto(TABLE_1, 1, 1, restarts=0), "restarts"),
        (lambda: information_blahut_arimoto(TABLE_1, 1, 1, outputs=0), "outputs"),
        (lambda: release_search(TABLE_1, 1, 1, utility="both"), "utility"),
        (lambda: release_search(TABLE_1, 1, 1, mu_1=[-1.0]), "mu_1"),
        (lambda: ReleaseLaws.of(TABLE_1, np.ones((2, 2, 2))), "kernel"),
        (lambda: ReleaseLaws.of(TABLE_1, [[[1.0, 0.0]]]), "kernel"),
        (lambda: release_update(TABLE_1, UNIFORM, 0.0, 0.0), "mu_1"),
        (lambda: release_update(TABLE_1, UNIFORM._replace(q_3=[[1.0, 0.0]]), 1.0, 0.0), "laws"),
        (lambda: release_search(TABLE_1, -1, 1), "epsilon"),
        (lambda: release_search(TABLE_1, 0.2, 0.1), "epsilon"),
        (
            lambda: release_search(TABLE_1, 1, 1, utility="information", distortion=np.eye(2)),
            "distortion",
        ),
    ],
)
def test_bad_arguments_are_named(call, argument):
    with pytest.raises(ValidationError) as error:
        call()
    assert error.value.argument == argument


def test_search_says_what_has_been_told_already():
    known = information(TABLE_1.sum(axis=0))
    with pytest.raises(InfeasibleError, match=f"{known:.9f}"[:10]):
        release_search(TABLE_1, 0.0, 0.0)


@pytest.mark.parametrize("utility", ["distortion", "information"])
def test_a_search_ends_at_its_time_limit_with_something_feasible(utility):
    run = release_search(TABLE_1, 0.1, 0.2, utility=utility, time_limit=0.0)
    assert run.stopped == "time_limit reached"
    assert run.iterations <= 2
    problem = release_problem(TABLE_1, 0.1, 0.2, utility, outputs=2)
    assert problem.check(run.point, time_limit=0.0).feasible
