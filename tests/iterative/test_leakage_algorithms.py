"""LEAKAGE's Algorithms 1 to 5: by their definitions, by brute force, and where they fail."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import entr

from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.iterative import (
    alternating_leakage,
    conditional_gradient_ascent,
    deterministic_search,
    entropy_boundary_mixture,
    joint_blahut_arimoto,
    marginal_blahut_arimoto,
    project_to_entropy,
    project_to_simplex,
    row_entropy_floors,
)
from cvxleak.iterative._record import FEASIBILITY, RecordView
from cvxleak.iterative._stationarity import block_gaps
from cvxleak.iterative.deterministic import COORDINATE_WISE
from cvxleak.iterative.entropy_projection import NO_ROOT
from cvxleak.measures import (
    entropy,
    information_gradient_conditional,
    information_gradient_marginal,
    record_information,
)
from cvxleak.model import Mechanism, RecordSpace
from tests.reference import LOG2, information, modular

SEEDS = st.integers(0, 2**32 - 1)


def random_view(seed, values=2, contexts=3, outputs=3, sharpness=0.7):
    rng = np.random.default_rng(seed)
    return RecordView(
        rng.dirichlet(np.ones(values) * 3),
        rng.dirichlet(np.ones(contexts), size=values),
        rng.dirichlet(np.full(outputs, sharpness), size=(values, contexts)),
    )


# Theorems 1 to 3, Lemma 1


@settings(max_examples=50)
@given(SEEDS, st.floats(0, 1))
def test_theorem_1_information_is_concave_and_convex(seed, share):
    view, other = random_view(seed), random_view(seed + 1)

    def leak(p, v, rows):
        return RecordView(p, v, rows).information

    def between(one, two):
        return share * one + (1 - share) * two

    p, v, rows = view.marginal, view.conditional, view.rows
    mixed = leak(between(p, other.marginal), v, rows)
    assert mixed >= between(leak(p, v, rows), leak(other.marginal, v, rows)) - 1e-12
    # In all conditionals together, not only in each row.
    mixed = leak(p, between(v, other.conditional), rows)
    assert mixed <= between(leak(p, v, rows), leak(p, other.conditional, rows)) + 1e-12
    mixed = leak(p, v, between(rows, other.rows))
    assert mixed <= between(leak(p, v, rows), leak(p, v, other.rows)) + 1e-12


@settings(max_examples=50)
@given(SEEDS, st.floats(0, 1))
def test_the_sets_of_theorem_2_are_convex(seed, share):
    rng = np.random.default_rng(seed)
    view, other = random_view(seed), random_view(seed + 1)
    channels = rng.dirichlet(np.ones(3), size=(2, 2, 3))

    def between(one, two):
        return share * one + (1 - share) * two

    joint = view.marginal[:, None] * view.conditional
    others = other.marginal[:, None] * other.conditional
    priors = [entr(law).sum() for law in (joint, others, between(joint, others))]
    assert priors[2] >= min(priors[:2]) - 1e-12
    # The floor for two marginals with the same conditionals, and the other way round.
    for marginals, conditionals in (
        ((view.marginal, other.marginal), (view.conditional, view.conditional)),
        ((view.marginal, view.marginal), (view.conditional, other.conditional)),
    ):
        ends = [
            RecordView(p, v, view.rows).entropy
            for p, v in zip(marginals, conditionals, strict=True)
        ]
        middle = RecordView(between(*marginals), between(*conditionals), view.rows)
        assert middle.entropy >= min(ends) - 1e-12
    leaks = [
        RecordView(view.marginal, view.conditional, rows).information
        for rows in (*channels, between(*channels))
    ]
    assert leaks[2] <= max(leaks[:2]) + 1e-12


@settings(max_examples=100)
@given(SEEDS, st.integers(1, 7), st.floats(0, 1))
def test_lemma_1_by_its_finite_mixture(seed, size, level):
    p = np.random.default_rng(seed).dirichlet(np.full(size, 0.5))
    b = level * float(entr(p / p.sum()).sum())
    weights, points = entropy_boundary_mixture(p, b)
    assert len(weights) <= size
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1, abs=1e-12)
    assert points.min() >= 0
    assert points.sum(axis=1) == pytest.approx(1, abs=1e-12)
    assert entr(points).sum(axis=1) == pytest.approx(b, abs=1e-12)
    assert weights @ points == pytest.approx(p, abs=1e-12)


def test_lemma_1_needs_the_entropy():
    with pytest.raises(ValidationError, match=r"^target: found 0\.7; .* only H = 0\.69"):
        entropy_boundary_mixture([0.5, 0.5], 0.7)


@settings(max_examples=50)
@given(SEEDS, st.floats(0.1, 1))
def test_theorem_3_the_best_row_is_on_its_floor(seed, level):
    view = random_view(seed, values=3, contexts=4)
    b = level * view.entropy
    k = 1
    floor = row_entropy_floors(view.marginal, view.conditional, b)[k]

    def with_row(row):
        conditional = view.conditional.copy()
        conditional[k] = row
        return RecordView(view.marginal, conditional, view.rows)

    # c_k is where H(X) = b; the row that is there has more, and some row of c_k leaks as much.
    _, points = entropy_boundary_mixture(view.conditional[k], max(floor, 0.0))
    if floor >= 0:
        assert with_row(points[0]).entropy == pytest.approx(b, abs=1e-9)
    assert max(with_row(row).information for row in points) >= view.information - 1e-12


def test_a_value_of_probability_zero_needs_no_entropy():
    floors = row_entropy_floors([1.0, 0.0], [[0.5, 0.5], [1.0, 0.0]], 0.6)
    assert floors == pytest.approx([0.6, -math.inf])
    with pytest.raises(ValidationError, match="one row for each value"):
        row_entropy_floors([1.0], [[0.5, 0.5], [1.0, 0.0]], 0.6)


# Algorithm 4


@settings(max_examples=100)
@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8), st.floats(-1e6, 1e6), SEEDS)
def test_the_simplex_projection_is_the_nearest_point(vector, shift, seed):
    v = np.array(vector)
    p = project_to_simplex(v)
    assert p.min() >= 0
    assert p.sum() == pytest.approx(1, abs=1e-12)
    # The variational inequality <v - p, w - p> <= 0 at every vertex w characterizes the projection.
    assert (v - p).max() - (v - p) @ p <= 1e-9 * (1 + np.abs(v).max())
    assert project_to_simplex(p) == pytest.approx(p, abs=1e-14)
    assert project_to_simplex(v + shift) == pytest.approx(p, abs=1e-9)
    other = np.random.default_rng(seed).dirichlet(np.ones(len(v)))
    assert np.linalg.norm(v - p) <= np.linalg.norm(v - other) + 1e-9


def test_the_simplex_projection_of_huge_numbers():
    assert project_to_simplex([1e200, 0.0]) == pytest.approx([1, 0])
    assert project_to_simplex([1e16, 1e16]) == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize("vector", [[], [math.inf, 0], [math.nan], [[0.5, 0.5]], "ab"])
def test_the_simplex_projection_needs_a_finite_vector(vector):
    with pytest.raises(ValidationError, match="vector"):
        project_to_simplex(vector)


# Algorithm 5


@settings(max_examples=100)
@given(SEEDS, st.integers(2, 7), st.floats(0.01, 0.99))
def test_the_entropy_is_met_and_the_order_kept(seed, size, level):
    v = np.random.default_rng(seed).dirichlet(np.ones(size))
    target = level * math.log(size)
    run = project_to_entropy(v, target)
    assert run.value == pytest.approx(target, abs=1e-9)
    assert entr(run.point).sum() == pytest.approx(run.value, abs=1e-13)
    order = np.argsort(v)
    assert (np.diff(run.point[order]) >= -1e-15).all()
    # It is a softmax: its logarithms are an affine function of v.
    kept = run.point > 1e-250
    if kept.sum() > 2:
        slope, offset = np.polyfit(v[kept], np.log(run.point[kept]), 1)
        assert np.log(run.point[kept]) == pytest.approx(
            slope * v[kept] + offset, rel=1e-5, abs=1e-5
        )
        assert slope >= -1e-6
    assert run.history["entropy"][0] == pytest.approx(entr(v).sum())
    assert len(run.history["entropy"]) == run.iterations + 1


def test_no_root_below_the_entropy_of_the_ties():
    run = project_to_entropy([0.4, 0.4, 0.2], 0.5)
    assert run.stopped == NO_ROOT
    assert run.point == pytest.approx([0.5, 0.5, 0])
    assert run.value == pytest.approx(LOG2)
    assert project_to_entropy([0.25] * 4, 1.0).stopped == NO_ROOT
    at_the_limit = project_to_entropy([0.4, 0.4, 0.2], LOG2)
    assert at_the_limit.stopped != NO_ROOT
    assert at_the_limit.point == pytest.approx([0.5, 0.5, 0])
    nearly = project_to_entropy([0.4 + 1e-15, 0.4, 0.2], 0.5)
    assert nearly.stopped != NO_ROOT
    assert nearly.value == pytest.approx(0.5, abs=1e-9)


def test_the_interval_decides_which_root_is_found():
    v = [0.4, 0.4, 0.2]
    negative = project_to_entropy(v, 0.5, beta_min=-20.0)
    assert negative.value == pytest.approx(0.5, abs=1e-9)
    beta = math.log(negative.point[0] / negative.point[2]) / 0.2
    assert beta == pytest.approx(-12.5754, abs=1e-3)
    assert project_to_entropy(v, 0.5, beta_min=-12.0).stopped == NO_ROOT
    # Of two roots the one that keeps the order is taken, if the interval allows it.
    both = project_to_entropy([0.5, 0.3, 0.2], 0.8, beta_min=-100.0)
    assert both.point.argmax() == 0
    other = project_to_entropy([0.5, 0.3, 0.2], 0.8, beta_min=-100.0, beta_max=0.0)
    assert other.point.argmax() == 2
    assert both.value == pytest.approx(other.value, abs=1e-9)
    # Without a root the end of the interval that comes nearest is returned.
    short = project_to_entropy([0.5, 0.3, 0.2], 0.1, beta_max=2.0)
    weights = np.exp([1.0, 0.6, 0.4])
    assert short.stopped == NO_ROOT
    assert short.point == pytest.approx(weights / weights.sum())
    with pytest.raises(ValidationError, match="beta_max"):
        project_to_entropy(v, 0.5, beta_min=1.0, beta_max=0.0)


def test_ends_of_the_range_of_entropies():
    assert project_to_entropy([0.5, 0.3, 0.2], 0.0).point == pytest.approx([1, 0, 0])
    assert project_to_entropy([0.5, 0.3, 0.2], math.log(3)).point == pytest.approx([1 / 3] * 3)
    same = project_to_entropy([0.5, 0.5, 0.0], LOG2)
    assert same.iterations == 0
    assert same.point == pytest.approx([0.5, 0.5, 0])
    assert (
        "max_iterations=3"
        in project_to_entropy([0.3334, 0.3333, 0.3333], 0.01, max_iterations=3).stopped
    )
    with pytest.raises(InfeasibleError, match=r"^target: found 0\.7 .* log 2 = 0\.693147"):
        project_to_entropy([0.5, 0.5], 0.7)
    with pytest.raises(ValidationError, match="target"):
        project_to_entropy([0.5, 0.5], -0.1)
    with pytest.raises(ValidationError, match="distribution"):
        project_to_entropy([0.5, 0.6], 0.3)


# Algorithm 2


# Older versions of scipy say so of their own steps.
@pytest.mark.filterwarnings("ignore:Values in x were outside bounds")
@pytest.mark.parametrize("seed", range(6))
def test_the_marginal_solves_its_concave_subproblem(seed):
    view = random_view(seed, values=3)
    h = view.row_entropies
    most = math.log(np.exp(h).sum())
    b = most - 0.03 * (1 + seed)
    run = marginal_blahut_arimoto(
        view.marginal, view.conditional, view.rows, b, tol=0.0, max_iterations=4000
    )
    laws = view.laws

    def value(p):
        return information(np.maximum(p, 0)[:, None] * laws)

    best = minimize(
        lambda p: -value(p),
        np.exp(h) / np.exp(h).sum(),
        bounds=[(1e-9, 1)] * 3,
        constraints=[
            {"type": "eq", "fun": lambda p: p.sum() - 1},
            {"type": "ineq", "fun": lambda p: entr(np.maximum(p, 0)).sum() + p @ h - b},
        ],
        method="SLSQP",
        options={"ftol": 1e-12},
    )
    assert run.value == pytest.approx(-best.fun, abs=1e-5)
    assert run.history["slack"][-1] >= -1e-6
    assert run.history["slack"][-1] * run.history["multiplier"][-1] == pytest.approx(0, abs=1e-6)


def test_without_a_floor_the_marginal_is_that_of_capacity():
    rows = [[[1.0, 0.0]], [[0.5, 0.5]]]
    run = marginal_blahut_arimoto([0.5, 0.5], [[1.0], [1.0]], rows, 0.0, tol=1e-14)
    assert run.value == pytest.approx(math.log(1.25), abs=1e-9)
    assert run.point == pytest.approx([0.6, 0.4], abs=1e-4)
    assert (np.diff(run.history["objective"]) >= -1e-14).all()
    assert (run.history["multiplier"] == 0).all()
    assert "tol" in run.stopped


def test_the_marginal_can_stop_below_the_floor_and_says_so():
    # Row 0 has no entropy of its own; the multiplier has hardly grown when I stops changing.
    view = RecordView(
        np.array([0.5, 0.5]),
        np.array([[1.0, 0.0], [0.5, 0.5]]),
        np.array([[[0.6, 0.4], [0.6, 0.4]], [[0.4, 0.6], [0.4, 0.6]]]),
    )
    b = 1.09
    assert view.entropy < b
    run = marginal_blahut_arimoto(view.marginal, view.conditional, view.rows, b, tol=1e-3)
    assert run.history["slack"][-1] < -FEASIBILITY
    assert "infeasible: H(X) is short of the floor by" in run.stopped
    assert run.history["slack"][-1] == pytest.approx(
        entr(run.point).sum() + run.point @ view.row_entropies - b
    )


def test_the_multiplier_moves_by_alpha():
    view = random_view(6)
    b = 0.99 * math.log(6)
    for alpha in (0.1, 2.0):
        history = marginal_blahut_arimoto(
            view.marginal, view.conditional, view.rows, b, alpha=alpha, max_iterations=1
        ).history
        assert history["slack"][1] < 0
        assert history["multiplier"][1] == pytest.approx(-alpha * history["slack"][1])


def test_the_marginal_reports_its_cap():
    view = random_view(3)
    run = marginal_blahut_arimoto(
        view.marginal, view.conditional, view.rows, 0.5, tol=0, max_iterations=7
    )
    assert run.iterations == 7
    assert run.stopped.startswith("max_iterations=7 reached")
    assert {name: len(values) for name, values in run.history.items()} == {
        "objective": 8,
        "slack": 8,
        "multiplier": 8,
        "gradient_norm": 8,
        "relative_gain": 7,
    }


# Algorithm 3


@settings(max_examples=25)
@given(SEEDS, st.floats(0.3, 0.95))
def test_the_conditionals_ascend_from_a_feasible_start(seed, level):
    view = random_view(seed, values=3)
    b = max(level * view.entropy, float(entr(view.marginal).sum()))
    run = conditional_gradient_ascent(
        view.marginal, view.conditional, view.rows, b, max_iterations=20
    )
    history = run.history
    assert (np.diff(history["objective"]) >= -1e-12).all()
    assert (history["slack"] >= -FEASIBILITY).all()
    assert run.value >= view.information - 1e-12
    end = RecordView(view.marginal, run.point, view.rows)
    assert end.information == pytest.approx(run.value, abs=1e-12)
    assert end.entropy >= b - FEASIBILITY
    assert run.point.sum(axis=1) == pytest.approx(np.ones(3))


def test_row_entropies_freeze_on_the_floor():
    view = random_view(11, values=2, contexts=4)
    b = view.entropy
    run = conditional_gradient_ascent(view.marginal, view.conditional, view.rows, b)
    after = RecordView(view.marginal, run.point, view.rows)
    assert run.value > view.information + 0.01
    assert after.row_entropies == pytest.approx(view.row_entropies, abs=1e-8)
    # So the sweep stops, yet moving entropy from row to row would gain: not stationary.
    _, gap = block_gaps(after, b)
    assert gap > 1e-3


def test_rows_without_a_floor_become_unit_vectors():
    view = random_view(5)
    b = float(entr(view.marginal).sum())
    run = conditional_gradient_ascent(
        view.marginal, view.conditional, view.rows, b + 1e-12, max_iterations=50
    )
    exact = deterministic_search(view.marginal, view.rows)
    assert run.value <= exact.value + 1e-9
    assert np.sort(run.point, axis=1)[:, -1].max() == 1


@pytest.mark.parametrize("gradient", ["exact", "printed"])
def test_a_step_is_made_of_the_gradient_that_was_chosen(gradient):
    view = random_view(3, values=2, contexts=4)
    p, eta = view.marginal, 0.7
    run = conditional_gradient_ascent(
        p, view.conditional, view.rows, view.entropy, eta=eta, gradient=gradient, max_iterations=1
    )
    # The first row moves first, so that its step is that of the start.
    output = p @ view.laws
    slope = p[0] * (view.rows[0] @ np.log(view.laws[0] / output))
    if gradient == "printed":  # (37)
        slope = slope + p[0] - p[0] ** 2 * (view.rows[0] @ (view.laws[0] / output))
    stepped = project_to_simplex(view.conditional[0] + eta * slope)
    expected = project_to_entropy(stepped / stepped.sum(), view.row_entropies[0]).point
    assert run.point[0] == pytest.approx(expected, abs=1e-8)


def test_a_step_is_shortened_until_it_does_not_lose():
    view = random_view(11, values=2, contexts=4)
    start = (view.marginal, view.conditional, view.rows, view.entropy)
    once = conditional_gradient_ascent(*start, eta=2.0, beta=0.9, max_inner=1)
    often = conditional_gradient_ascent(*start, eta=2.0, beta=0.9, max_inner=60)
    for run in (once, often):
        assert (np.diff(run.history["objective"]) >= -1e-12).all()
    # A step that is shortened away leaves the row.
    tiny = conditional_gradient_ascent(*start, eta=1e-13)
    assert tiny.point == pytest.approx(view.conditional, abs=1e-9)
    for change in ({"eta": 0}, {"beta": 1}, {"gradient": "both"}, {"max_inner": 0}):
        with pytest.raises(ValidationError, match=next(iter(change))):
            conditional_gradient_ascent(*start, **change)


def test_a_row_that_cannot_have_its_entropy():
    view = RecordView(np.array([0.9, 0.1]), np.eye(2), random_view(0, contexts=2).rows)
    # H(X_i) = .325; row 0, of mass .1, would have to carry (1 - .325) / .1 = 6.7 nats.
    run = conditional_gradient_ascent(view.marginal[::-1], np.eye(2), view.rows, 1.0)
    assert run.point is None
    assert run.value == -math.inf
    assert run.stopped.startswith("infeasible: row 0 would need an entropy of")


def test_a_record_value_of_probability_zero_changes_nothing():
    view = random_view(2, values=3)
    p = np.array([0.4, 0.6, 0.0])
    run = conditional_gradient_ascent(p, view.conditional, view.rows, 1.0)
    short = conditional_gradient_ascent(p[:2], view.conditional[:2], view.rows[:2], 1.0)
    assert run.value == pytest.approx(short.value, abs=1e-12)
    assert run.point[2] == pytest.approx([1, 0, 0])
    assert run.point[:2] == pytest.approx(short.point)


def test_missed_roots_are_counted():
    # Parity at the uniform prior: no gradient, every row a tie, no softmax of it but itself.
    rows = np.array([[0.8, 0.2], [0.2, 0.8]])[np.indices((2, 4)).sum(axis=0) % 2]
    run = conditional_gradient_ascent([0.5, 0.5], np.full((2, 4), 0.25), rows, 1.9)
    assert run.value == pytest.approx(0, abs=1e-15)
    assert run.history["missed_roots"].sum() == 2
    assert run.history["gradient_norm"] == pytest.approx([0, 0], abs=1e-15)


@pytest.mark.parametrize("method", [marginal_blahut_arimoto, conditional_gradient_ascent])
def test_bad_arguments_of_the_inner_algorithms(method):
    view = random_view(1)
    good = (view.marginal, view.conditional, view.rows)
    with pytest.raises(ValidationError, match="marginal"):
        method(view.marginal * 2, *good[1:], 1.0)
    with pytest.raises(ValidationError, match="conditional"):
        method(good[0], view.conditional[0], good[2], 1.0)
    with pytest.raises(ValidationError, match="rows"):
        method(*good[:2], view.rows * 0.5, 1.0)
    with pytest.raises(ValidationError, match=r"\(A, M, Y\)"):
        method(*good[:2], view.rows[:, :2], 1.0)
    with pytest.raises(InfeasibleError, match="entropy_floor"):
        method(*good, 2.0)
    with pytest.raises(ValidationError, match="max_iterations"):
        method(*good, 1.0, max_iterations=0)


def test_gradient_norms_are_those_of_the_reference_gradients():
    mechanism = modular(3, 3, 0.2)
    prior = np.random.default_rng(4).dirichlet(np.ones(8))
    q = mechanism.to_channel().matrix.reshape(2, 2, 2, 3)
    view = RecordView.of(prior.reshape(2, 2, 2), q, 1)
    by_row = conditional_gradient_ascent(view.marginal, view.conditional, view.rows, 0.1)
    expected = np.asarray(information_gradient_conditional(mechanism, prior, 1))
    block = np.moveaxis(expected.reshape(2, 2, 2), 1, 0).reshape(2, 4)
    norm = np.linalg.norm(block - block.mean(axis=1, keepdims=True))
    assert by_row.history["gradient_norm"][0] == pytest.approx(norm)
    by_value = marginal_blahut_arimoto(view.marginal, view.conditional, view.rows, 0.1)
    slope = np.asarray(information_gradient_marginal(mechanism, prior, 1))
    assert by_value.history["gradient_norm"][0] == pytest.approx(
        np.linalg.norm(slope - slope.mean())
    )


# Line 15 of Algorithm 1


@pytest.mark.parametrize("seed", range(5))
def test_the_deterministic_search_is_exhaustive(seed):
    view = random_view(seed, values=3, contexts=4)
    run = deterministic_search(view.marginal, view.rows)
    expected = max(
        information(view.marginal[:, None] * view.rows[range(3), list(choice)])
        for choice in itertools.product(range(4), repeat=3)
    )
    assert run.value == pytest.approx(expected, abs=1e-13)
    assert run.stopped == "all 64 combinations tried"
    assert set(run.point.ravel()) == {0.0, 1.0}
    assert RecordView(view.marginal, run.point, view.rows).information == pytest.approx(expected)
    # I is convex in the conditionals: no others do better.
    assert view.information <= expected
    local = deterministic_search(view.marginal, view.rows, max_combinations=63)
    assert local.stopped == COORDINATE_WISE
    assert (np.diff(local.history["objective"]) >= 0).all()
    assert local.value <= expected + 1e-13


def test_equal_rows_count_once():
    rows = np.array([[0.8, 0.2], [0.2, 0.8]])[np.indices((2, 64)).sum(axis=0) % 2]
    run = deterministic_search([0.5, 0.5], rows, max_combinations=4)
    assert run.stopped == "all 4 combinations tried"
    assert run.value == pytest.approx(LOG2 - entr([0.2, 0.8]).sum())
    assert deterministic_search([1.0, 0.0], rows).value == pytest.approx(0, abs=1e-15)
    with pytest.raises(ValidationError, match="rows"):
        deterministic_search([0.5, 0.5], rows[:1])


# Algorithm 1


@pytest.mark.parametrize("n", [2, 3, 4])
def test_the_uniform_start_is_stuck_on_parity(n):
    stuck_above = (n + 1) / 2 * LOG2
    mechanism = modular(n, 2, 0.2)
    free = alternating_leakage(mechanism, stuck_above - 0.05)
    assert free.value > 0.05
    stuck = alternating_leakage(mechanism, stuck_above + 0.05)
    assert stuck.value == pytest.approx(0, abs=1e-14)
    assert stuck.point == pytest.approx(np.full((2,) * n, 0.5**n))
    assert "Algorithm 5 had no root" in stuck.stopped
    # A random start is not stuck, and still far from the optimum.
    moved = alternating_leakage(mechanism, stuck_above + 0.05, start="random")
    optimum = joint_blahut_arimoto(mechanism.lumped(0), stuck_above + 0.05).value
    assert 1e-3 < moved.value < optimum


def test_without_a_floor_parity_is_solved():
    run = alternating_leakage(modular(4, 2, 0.3033), 0.3)
    assert run.value == pytest.approx(LOG2 - entr([0.3033, 0.6967]).sum(), abs=1e-9)
    assert run.history["marginal_gap"][-1] == pytest.approx(0, abs=1e-9)
    assert run.history["conditional_gap"][-1] == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize(
    ("mechanism", "b"),
    [
        (modular(4, 2, 0.3033), 2.0),
        (modular(3, 3, 0.2), 1.2),
        pytest.param(modular(4, 2, 0.3033), 1.0, marks=pytest.mark.slow),
        pytest.param(modular(4, 2, 0.3033), 2.495, marks=pytest.mark.slow),
        pytest.param(modular(4, 3, 0.2), 2.2, marks=pytest.mark.slow),
        pytest.param(modular(5, 3, 0.1), 2.0, marks=pytest.mark.slow),
    ],
)
def test_never_better_than_the_joint_step(mechanism, b):
    optimum = joint_blahut_arimoto(mechanism.lumped(0), b).value
    for start, rng in [("uniform", 0), ("random", 0), ("random", 1)]:
        run = alternating_leakage(mechanism, b, start=start, rng=rng, max_iterations=20)
        # Theorem 4(1).
        assert (np.diff(run.history["objective"]) >= -1e-12).all()
        flat = run.point.ravel()
        assert entropy(flat) >= b - FEASIBILITY
        assert run.value <= optimum + 1e-8
        leakages = [record_information(mechanism, flat, i) for i in range(mechanism.space.records)]
        assert run.value == pytest.approx(max(leakages), abs=1e-10)


def test_an_array_and_a_mechanism_of_several_alphabets():
    rng = np.random.default_rng(8)
    space = RecordSpace([range(2), range(3), range(2)])
    mechanism = Mechanism.from_channel(space, rng.dirichlet(np.ones(3) * 0.5, size=12))
    q = mechanism.to_channel().matrix.reshape(2, 3, 2, 3)
    first = alternating_leakage(mechanism, 1.4, start="random", rng=3)
    second = alternating_leakage(q, 1.4, start="random", rng=3)
    assert first.value == second.value
    assert first.point.shape == (2, 3, 2)
    history = first.history
    record = int(history["record"][np.argmax(history["objective"])])
    assert record_information(mechanism, first.point.ravel(), record) == pytest.approx(first.value)
    optimum = max(joint_blahut_arimoto(mechanism.lumped(i), 1.4).value for i in range(3))
    assert first.value <= optimum + 1e-8
    for name in (
        "objective",
        "record",
        "slack",
        "gradient_norm",
        "marginal_gap",
        "conditional_gap",
    ):
        assert len(history[name]) == first.iterations + 1
    for name in ("relative_gain", "rejected", "shortfall"):
        assert len(history[name]) == first.iterations
    assert (history["slack"] >= -FEASIBILITY).all()


def test_infeasible_candidates_are_counted_and_not_recorded():
    run = alternating_leakage(modular(4, 2, 0.3033), 2.0, start="random", rng=0)
    assert run.history["rejected"].sum() >= 1
    assert run.history["shortfall"].max() > FEASIBILITY
    assert "violated the entropy floor and were not recorded" in run.stopped
    assert (run.history["slack"] >= -FEASIBILITY).all()


def test_a_start_of_the_user():
    mechanism = modular(3, 3, 0.2)
    lumped = mechanism.lumped(0)
    b = 1.5
    best = joint_blahut_arimoto(lumped, b)
    start = mechanism.expand(0, best.point).probabilities.reshape(2, 2, 2)
    run = alternating_leakage(mechanism, b, start=start)
    assert run.value == pytest.approx(best.value, abs=1e-6)
    assert run.value >= best.value - 1e-12
    with pytest.raises(ValidationError, match="start: its entropy is 0"):
        alternating_leakage(mechanism, b, start=np.eye(8)[0].reshape(2, 2, 2))
    with pytest.raises(ValidationError, match=r"start: found shape \(8,\)"):
        alternating_leakage(mechanism, b, start=np.full(8, 0.125))
    with pytest.raises(ValidationError, match="start: found 'unifrom'"):
        alternating_leakage(mechanism, b, start="unifrom")


def test_the_largest_floor_leaves_the_uniform_prior():
    mechanism = modular(3, 3, 0.2)
    top = 3 * LOG2
    run = alternating_leakage(mechanism, top, start="random")
    assert run.point == pytest.approx(np.full((2, 2, 2), 0.125))
    with pytest.raises(InfeasibleError, match=r"2\.079"):
        alternating_leakage(mechanism, top + 1e-3)


def test_caps_and_other_arguments():
    mechanism = modular(3, 3, 0.2)
    run = alternating_leakage(mechanism, 1.5, start="random", rng=2, tol=0.0, max_iterations=2)
    assert run.iterations == 2
    assert run.stopped.startswith("max_iterations=2 reached")
    local = alternating_leakage(mechanism, 0.5, max_combinations=1)
    assert "coordinate-wise" in local.stopped
    for change in ({"tol": -1}, {"max_combinations": 0}, {"max_iterations": 0}):
        with pytest.raises(ValidationError, match=next(iter(change))):
            alternating_leakage(mechanism, 1.0, **change)
    with pytest.raises(ValidationError, match="mechanism"):
        alternating_leakage(np.ones((2, 2, 2)), 1.0)
    with pytest.raises(ValidationError, match="mechanism"):
        alternating_leakage([0.5, 0.5], 0.1)


# Definition 3.1


@settings(max_examples=30)
@given(SEEDS, st.floats(0.5, 1))
def test_block_gaps_bound_what_the_linearized_objective_offers(seed, level):
    view = random_view(seed, values=3)
    rng = np.random.default_rng(seed)
    b = level * view.entropy
    marginal_gap, conditional_gap = block_gaps(view, b)
    ratios = np.log(view.laws / (view.marginal @ view.laws))
    scores = (view.rows * ratios[:, None]).sum(axis=2)
    means = (view.conditional * scores).sum(axis=1)
    best_marginal = best_conditional = 0.0
    for _ in range(300):
        p = rng.dirichlet(np.ones(3) * rng.choice([0.2, 1, 5]))
        if RecordView(p, view.conditional, view.rows).entropy >= b:
            best_marginal = max(best_marginal, (p - view.marginal) @ means)
        v = rng.dirichlet(np.ones(3) * rng.choice([0.2, 1, 5]), size=3)
        if RecordView(view.marginal, v, view.rows).entropy >= b:
            gain = view.marginal @ ((v - view.conditional) * scores).sum(axis=1)
            best_conditional = max(best_conditional, gain)
    assert best_marginal <= marginal_gap + 1e-12
    assert best_conditional <= conditional_gap + 1e-12
    assert min(marginal_gap, conditional_gap) >= 0


def test_the_gaps_vanish_at_the_joint_optimum():
    mechanism = modular(4, 3, 0.2)
    b = 2.2
    best = joint_blahut_arimoto(mechanism.lumped(0), b)
    prior = mechanism.expand(0, best.point).probabilities.reshape(2, 2, 2, 2)
    q = mechanism.to_channel().matrix.reshape(2, 2, 2, 2, 3)
    gaps = block_gaps(RecordView.of(prior, q, 0), b)
    assert gaps == pytest.approx((0, 0), abs=1e-6)
