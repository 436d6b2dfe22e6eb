import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak import measures
from cvxleak.constraints import (
    channel,
    distortion_budget,
    joint_law,
    local_dp,
    monotone_noise,
    output_support,
    post_processed,
    row_stochastic,
    symmetric,
)
from cvxleak.core.errors import ValidationError
from cvxleak.model import Channel, Distortion
from cvxleak.sources import SourceSet
from tests.measures.test_laws import channels


def test_row_stochastic_is_the_set_of_channels(solver, best):
    rng = np.random.default_rng(1)
    Q, gain = cp.Variable((4, 3)), rng.normal(size=(4, 3))
    value = best(cp.sum(cp.multiply(gain, Q)), row_stochastic(Q), solver)
    assert value == pytest.approx(gain.max(axis=1).sum(), abs=1e-4)


def test_a_channel_has_as_many_outputs_as_inputs_unless_said():
    assert [channel(*sizes)[0].shape for sizes in ((3,), (3, 2))] == [(3, 3), (3, 2)]
    for shape in ((6, 6), [6, 6]):
        with pytest.raises(ValidationError, match=r"^k: found the shape .6, 6.; .*channel\(k, m\)"):
            channel(shape)  # pyright: ignore[reportArgumentType]


def test_joint_law_is_the_set_of_scaled_channels(solver, best):
    rng = np.random.default_rng(2)
    J, gain, p = cp.Variable((4, 3)), rng.normal(size=(4, 3)), rng.dirichlet(np.ones(4))
    value = best(cp.sum(cp.multiply(gain, J)), joint_law(J, p), solver)
    assert value == pytest.approx(p @ gain.max(axis=1), abs=1e-4)
    prior = cp.Parameter(4, nonneg=True, value=p)
    assert best(cp.sum(cp.multiply(gain, J)), joint_law(J, prior)) == pytest.approx(value, abs=1e-4)


def test_support_is_kept(best):
    rng = np.random.default_rng(3)
    Q, gain = cp.Variable((4, 5)), rng.random((4, 5))
    for allowed in (rng.random((4, 5)) < 0.6, np.array([False, True, True, False, True])):
        mask = np.broadcast_to(allowed, (4, 5))
        value = best(cp.sum(cp.multiply(gain, Q)), row_stochastic(Q) + output_support(Q, allowed))
        assert value == pytest.approx(np.where(mask, gain, 0).max(axis=1).sum(), abs=1e-6)
        assert np.abs(Q.value[~mask]).max() < 1e-7


def test_support_of_data(holds):
    q = np.array([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]])
    assert holds(output_support(q, [True, True, False]))
    assert holds(output_support(q, q > 0))
    assert not holds(output_support(q, [True, False, True]))


def test_full_support_constrains_nothing():
    assert output_support(cp.Variable((2, 2)), [True, True]) == []


def test_distortion_budget_holds_from_the_measure_on(random_case, holds):
    p, q = random_case
    d = np.random.default_rng(0).random(q.shape)
    sources = [p, np.full(len(p), 1 / len(p))]
    worst = measures.worst_case_distortion(q, sources, d)
    assert holds(distortion_budget(q, sources, d, worst + 1e-4))
    assert not holds(distortion_budget(q, sources, d, worst - 1e-4))


def test_every_source_limits_the_lies_about_its_own_outcome(solver, best):
    k, D = 3, 0.2
    Q = cp.Variable((k, k))
    rules = row_stochastic(Q) + distortion_budget(Q, np.eye(k), Distortion.hamming(range(k)), D)
    assert best(-cp.trace(Q), rules, solver) == pytest.approx(-k * (1 - D), abs=1e-4)


def test_too_few_outputs_for_the_budget():
    Q = cp.Variable((3, 2))
    d = Distortion.hamming(range(3), range(2))
    for budget, status in ((1 / 3 + 1e-3, "optimal"), (1 / 3 - 1e-3, "infeasible")):
        rules = row_stochastic(Q) + distortion_budget(Q, [np.full(3, 1 / 3)], d, budget)
        problem = cp.Problem(cp.Minimize(0), rules)
        problem.solve(solver="CLARABEL")
        assert problem.status == status


def test_distortion_budget_follows_parameters():
    sources = [cp.Parameter(2, nonneg=True), np.array([0.5, 0.5])]
    D = cp.Parameter(nonneg=True)
    Q = cp.Variable((2, 2))
    rules = row_stochastic(Q) + distortion_budget(Q, sources, Distortion.hamming([0, 1]), D)
    problem = cp.Problem(cp.Maximize(Q[0, 1]), rules)
    assert problem.is_dpp()
    for share, budget in [(0.8, 0.2), (0.4, 0.3)]:
        sources[0].value, D.value = np.array([share, 1 - share]), budget
        value = problem.solve(solver="CLARABEL", enforce_dpp=True)
        assert value == pytest.approx(min(1.0, budget / max(share, 0.5)), abs=1e-6)


def source_sets():
    rng = np.random.default_rng(5)
    order = SourceSet.polytope([[-1.0, 1, 0], [0, -1.0, 1]], [0.0, 0.0])
    tied = SourceSet.polytope([[1.0, 0, 1], [-1.0, 0, -1]], [0.4, -0.4])
    return {
        "laws": SourceSet(rng.dirichlet(np.ones(3), size=4)),
        "hull": SourceSet.hull(rng.dirichlet(np.ones(3), size=4)),
        "box": SourceSet.box([0.1, 0.2, 0.0], [0.6, 0.7, 0.3]),
        "order": order,
        "equation": tied,
        "union": order | SourceSet([[0.0, 0.0, 1.0]]) | tied | SourceSet.box([0.3] * 3, [0.4] * 3),
    }


@pytest.mark.parametrize("sources", source_sets().values(), ids=source_sets())
def test_a_budget_for_a_source_set_is_that_for_its_worst_law(sources, holds, solver):
    rng = np.random.default_rng(6)
    d = rng.random((3, 4))
    for q in rng.dirichlet(np.ones(4), size=(3, 3)):
        worst, _ = sources.worst((q * d).sum(axis=1))
        assert holds(distortion_budget(q, sources, d, worst + 1e-5))
        assert not holds(distortion_budget(q, sources, d, worst - 1e-5))
    Q, most = cp.Variable((3, 4)), cp.Variable()
    private = row_stochastic(Q) + local_dp(Q, 0.5) + distortion_budget(Q, sources, d, most)
    least = cp.Problem(cp.Minimize(most), private).solve(solver=solver)
    found, _ = sources.worst((np.maximum(Q.value, 0) * d).sum(axis=1))
    assert found == pytest.approx(least, abs=1e-3)


def test_the_budget_of_a_polytope_is_that_of_its_vertices(best):
    d = Distortion.absolute(range(3))
    vertices = [[1.0, 0, 0], [0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]]
    order = SourceSet.polytope([[-1.0, 1, 0], [0, -1.0, 1]], [0.0, 0.0])
    Q, budget = cp.Variable((3, 3)), cp.Parameter(nonneg=True)
    gain = cp.sum(cp.multiply(np.random.default_rng(3).random((3, 3)), Q))
    rules = row_stochastic(Q)
    for budget.value in (0.2, 0.5):
        by_rows = best(gain, rules + distortion_budget(Q, order, d, budget))
        by_vertices = best(gain, rules + distortion_budget(Q, vertices, d, budget))
        assert by_rows == pytest.approx(by_vertices, abs=1e-5)


def test_a_source_set_is_matched_by_label(holds):
    rows = Channel([[0.9, 0.1], [0.4, 0.6]], ["a", "b"], ["a", "b"])
    d = Distortion.hamming(["a", "b"])
    mostly_b = SourceSet.box([0.8, 0.0], [1.0, 0.2], labels=["b", "a"])
    for q in (rows, rows.matrix):
        assert holds(distortion_budget(q, mostly_b, d, 0.4001))
        assert not holds(distortion_budget(q, mostly_b, d, 0.3999))
    other = SourceSet.box([0.8, 0.0], [1.0, 0.2], labels=["b", "c"])
    with pytest.raises(ValidationError, match="priors: its labels are"):
        distortion_budget(rows, other, d, 0.4)
    with pytest.raises(ValidationError, match="priors: found 3 outcomes; 2 are needed"):
        distortion_budget(np.eye(2), source_sets()["box"], 1 - np.eye(2), 0.4)


@settings(max_examples=40)
@given(st.data())
def test_monotone_noise_is_what_it_says(data):
    q = data.draw(channels()).matrix
    k, m = q.shape
    d = np.array([[data.draw(st.integers(0, 2)) for _ in range(m)] for _ in range(k)])
    truth = all(
        q[x, y] >= q[x, z] - 1e-12
        for x in range(k)
        for y in range(m)
        for z in range(m)
        if d[x, y] < d[x, z]
    )
    problem = cp.Problem(cp.Minimize(0), monotone_noise(q, d))
    problem.solve(solver="HIGHS")
    assert (problem.status == "optimal") == truth


def test_monotone_noise_in_closed_form(solver, best):
    k = 5
    Q = cp.Variable((k, k))
    rules = row_stochastic(Q) + monotone_noise(Q, Distortion.absolute(range(k)))
    assert best(Q[0, 4], rules, solver) == pytest.approx(1 / 5, abs=1e-4)
    # Two outputs are as near as one another, and one is nearer.
    assert best(Q[2, 1] + Q[2, 3], rules, solver) == pytest.approx(2 / 3, abs=1e-4)
    assert sum(rule.size for rule in rules[2:]) <= 2 * k * k
    assert monotone_noise(Q, np.ones((k, k))) == []


def test_symmetric_channels_are_averages_over_the_group(solver, best):
    rng = np.random.default_rng(4)
    Q, gain = cp.Variable((4, 4)), rng.random((4, 4))
    turn, mirror = [1, 2, 3, 0], [0, 3, 2, 1]
    rules = row_stochastic(Q) + symmetric(Q, [(turn, turn), (mirror, mirror)])
    value = best(cp.sum(cp.multiply(gain, Q)), rules, solver)
    averaged = np.zeros((4, 4))
    for step in range(4):
        for sign in (1, -1):
            image = [(sign * x + step) % 4 for x in range(4)]
            averaged += gain[np.ix_(image, image)] / 8
    assert value == pytest.approx(averaged.max(axis=1).sum(), abs=1e-4)
    for x in range(4):
        for y in range(4):
            assert Q.value[turn[x], turn[y]] == pytest.approx(Q.value[x, y], abs=1e-4)


def test_inputs_and_outputs_move_apart(best):
    """The inputs are swapped and the three outputs turned: S[x] is where x goes."""
    Q = cp.Variable((2, 3))
    best(Q[0, 0] + 2 * Q[1, 1], row_stochastic(Q) + symmetric(Q, [([1, 0], [1, 2, 0])]))
    # Six steps lead through all cells, so that every channel like this is constant.
    assert np.allclose(Q.value, 1 / 3, atol=1e-6)


def test_post_processed_channels_are_the_compositions(solver, best):
    rng = np.random.default_rng(9)
    first, gain = rng.dirichlet(np.ones(3), size=4), rng.random((4, 5))
    C = cp.Variable((4, 5))
    objective = cp.sum(cp.multiply(gain, C))
    # The best answer to each output of the first, for itself.
    truth = (first.T @ gain).max(axis=1).sum()
    assert best(objective, post_processed(C, first), solver) == pytest.approx(truth, abs=1e-4)
    followed = cp.Parameter((4, 3), nonneg=True, value=first)
    assert best(objective, post_processed(C, followed)) == pytest.approx(truth, abs=1e-5)


def test_what_tells_more_is_no_post_processing(holds):
    noisy = np.array([[0.8, 0.2], [0.2, 0.8]])
    assert holds(post_processed(noisy @ noisy, noisy))
    assert not holds(post_processed(noisy, noisy @ noisy))


Q32 = cp.Variable((3, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: row_stochastic(cp.Variable(3)), "channel: expected 2 dimension"),
        (lambda: row_stochastic(cp.exp(Q32)), "channel: .* not affine"),
        (lambda: joint_law(Q32, [0.5, 0.5]), "joint: found 3 rows"),
        (lambda: joint_law(Q32, [0.5, 0.6]), "prior: sums to"),
        (lambda: output_support(Q32, [1, 0]), "allowed: found an array of int"),
        (lambda: output_support(Q32, [True, True, False]), "allowed: found an array of bool"),
        (lambda: output_support(Q32, [False, False]), "allowed: row 0 allows no output"),
        (
            lambda: distortion_budget(Q32, [[0.2, 0.3, 0.5]], np.ones((3, 2)), -0.1),
            "budget: found -0.1",
        ),
        (lambda: monotone_noise(Q32, np.ones((2, 2))), "distortion: found shape"),
        (lambda: symmetric(Q32, [[0, 1, 2]]), r"symmetries\[0\]: found .*; a pair"),
        (lambda: symmetric(Q32, [([0, 1, 1], [0, 1])]), r"symmetries\[0\]: found .* permutation"),
        (lambda: symmetric(Q32, [([0, 1, 2], [0, 2])]), r"symmetries\[0\]: found 2"),
        (lambda: post_processed(Q32, np.eye(2)), "first: found 2 rows; the channel has 3"),
        (lambda: post_processed(Q32, cp.Variable((3, 3))), "first: found variables"),
        (lambda: distortion_budget(Q32, [], np.ones((3, 2)), 0.1), "priors: found none"),
        (
            lambda: distortion_budget(Q32, [[0.5, 0.5]], np.ones((3, 2)), 0.1),
            r"priors\[0\]: found 2 outcomes",
        ),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValidationError, match=message):
        call()
