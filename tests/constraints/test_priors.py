import cvxpy as cp
import numpy as np
import pytest
from scipy.special import entr

from cvxleak import measures
from cvxleak.constraints import entropy_floor, ordered_prior, prior_polytope
from cvxleak.core.errors import ValidationError
from cvxleak.expressions import mutual_information
from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace


def test_entropy_floor_holds_up_to_the_measure(random_case, holds):
    p, _ = random_case
    assert holds(entropy_floor(p, measures.entropy(p) - 1e-4))
    assert not holds(entropy_floor(p, measures.entropy(p) + 1e-4))


@pytest.mark.parametrize("likely", [0.6, 0.9])
def test_doubt_limits_the_likeliest_outcome(likely, solver, best):
    """With H >= h(a) + (1 - a) log(k - 1) no outcome is likelier than a."""
    k = 4
    p = cp.Variable(k)
    floor = float(entr(likely) + entr(1 - likely)) + (1 - likely) * np.log(k - 1)
    rules = prior_polytope(p) + entropy_floor(p, floor)
    assert best(p[0], rules, solver) == pytest.approx(likely, abs=1e-3)


def test_no_prior_has_more_doubt_than_the_uniform_one():
    p = cp.Variable(3)
    problem = cp.Problem(cp.Minimize(0), prior_polytope(p) + entropy_floor(p, np.log(3) + 1e-3))
    problem.solve(solver="CLARABEL")
    assert problem.status == "infeasible"


def test_lumped_floor_is_the_floor_on_datasets(best):
    """What a record can be bent to under a floor, by groups and by datasets."""
    count = AdditiveQuery(RecordSpace.binary(4), [(0, 1)] * 4)
    mechanism = Mechanism(count, np.eye(5))
    lumped = mechanism.lumped(0)
    w, p = cp.Variable(8), cp.Variable(16)
    floor = 2.0
    target = [
        a == 1 and 3 in context
        for a, context in zip(lumped.value_index, lumped.contexts, strict=True)
    ]
    by_groups = best(
        w @ np.array(target, dtype=float), prior_polytope(w) + entropy_floor(w, floor, lumped)
    )
    hit = np.array([x[0] == 1 and sum(x) == 3 for x in count.space.datasets()], dtype=float)
    by_datasets = best(p @ hit, prior_polytope(p) + entropy_floor(p, floor))
    assert by_groups == pytest.approx(by_datasets, abs=1e-5)
    assert 0.5 < by_groups < 1


def test_a_parameter_floor_is_followed():
    p, floor = cp.Variable(2), cp.Parameter(nonneg=True)
    problem = cp.Problem(cp.Maximize(p[0]), prior_polytope(p) + entropy_floor(p, floor))
    assert problem.is_dpp()
    for likely in (0.7, 0.95):
        floor.value = float(entr(likely) + entr(1 - likely))
        value = problem.solve(solver="CLARABEL", enforce_dpp=True)
        assert value == pytest.approx(likely, abs=1e-5)


def test_capacity_falls_under_a_floor(best):
    """An asymmetric channel's best input is not uniform; near log 2 of doubt it has to be."""
    rows = np.array([[1.0, 0.0], [0.5, 0.5]])
    p = cp.Variable(2)
    free = best(mutual_information(rows, p), prior_polytope(p))
    bound = best(
        mutual_information(rows, p), prior_polytope(p) + entropy_floor(p, np.log(2) - 1e-9)
    )
    assert free == pytest.approx(np.log(1.25), abs=1e-6)
    assert bound == pytest.approx(measures.mutual_information(rows, [0.5, 0.5]), abs=1e-4)


def test_polytope_of_all_priors(solver, best):
    p = cp.Variable(3)
    value = best(p @ np.array([1.0, 5.0, 2.0]), prior_polytope(p), solver)
    assert value == pytest.approx(5, abs=1e-4)


def test_bounds_fill_the_best_outcomes_first(best):
    p, gain = cp.Variable(4), np.array([4.0, 3.0, 2.0, 1.0])
    everywhere = prior_polytope(p, lower=0.1, upper=0.4)
    assert best(gain @ p, everywhere) == pytest.approx(4 * 0.4 + 3 * 0.4 + 0.2 + 0.1, abs=1e-6)
    each = prior_polytope(p, lower=[0, 0, 0, 0.5], upper=[0.2, 1, 1, 1])
    assert best(gain @ p, each) == pytest.approx(0.8 + 0.9 + 0.5, abs=1e-6)


def test_inequalities_cut(best):
    p = cp.Variable(3)
    cut = prior_polytope(p, inequalities=([[1.0, 1.0, 0.0], [0.0, -1.0, 0.0]], [0.5, -0.2]))
    assert best(p[0], cut) == pytest.approx(0.3, abs=1e-6)


def test_hull_of_vertices(best):
    rng = np.random.default_rng(2)
    vertices = rng.dirichlet(np.ones(4), size=5)
    p = cp.Variable(4)
    for direction in rng.normal(size=(5, 4)):
        value = best(direction @ p, prior_polytope(p, vertices=vertices))
        assert value == pytest.approx((vertices @ direction).max(), abs=1e-6)


def test_membership_in_a_hull(holds):
    corners = np.array([[0.5, 0.5, 0.0], [0.2, 0.2, 0.6]])
    assert holds(prior_polytope(corners.mean(axis=0), vertices=corners))
    assert not holds(prior_polytope([0.5, 0.3, 0.2], vertices=corners))


def test_empty_polytope_is_infeasible():
    problem = cp.Problem(cp.Minimize(0), prior_polytope(cp.Variable(3), upper=0.3))
    problem.solve(solver="CLARABEL")
    assert problem.status == "infeasible"


def test_polytope_follows_parameters():
    p, upper = cp.Variable(3), cp.Parameter(3, nonneg=True)
    matrix, limits = cp.Parameter((1, 3)), cp.Parameter(1)
    corners = [cp.Parameter(3, nonneg=True) for _ in range(2)]
    gain = np.array([3.0, 2.0, 1.0])
    boxed = cp.Problem(
        cp.Maximize(gain @ p), prior_polytope(p, upper=upper, inequalities=(matrix, limits))
    )
    hull = cp.Problem(cp.Maximize(gain @ p), prior_polytope(p, vertices=corners))
    assert boxed.is_dpp()
    assert hull.is_dpp()
    matrix.value, limits.value = np.array([[1.0, 0.0, 0.0]]), np.array([0.4])
    for top in (0.5, 0.6):
        upper.value = np.full(3, top)
        value = boxed.solve(solver="CLARABEL", enforce_dpp=True)
        assert value == pytest.approx(3 * 0.4 + 2 * top + (0.6 - top), abs=1e-6)
    for corner in ([0.5, 0.5, 0.0], [0.9, 0.1, 0.0]):
        corners[0].value, corners[1].value = np.array(corner), np.array([0.0, 0.0, 1.0])
        value = hull.solve(solver="CLARABEL", enforce_dpp=True)
        assert value == pytest.approx(gain @ corner, abs=1e-6)


@pytest.mark.parametrize("k", [2, 5])
def test_an_ordered_outcome_is_at_most_an_even_share(k, solver, best):
    order = list(np.random.default_rng(k).permutation(k))
    p = cp.Variable(k)
    rules = prior_polytope(p) + ordered_prior(p, order)
    for rank, place in enumerate(order):
        assert best(p[int(place)], rules, solver) == pytest.approx(1 / (rank + 1), abs=1e-4)


def test_order_of_data(holds):
    p = [0.2, 0.5, 0.3]
    assert holds(ordered_prior(p, [1, 2, 0]))
    assert not holds(ordered_prior(p, [1, 0, 2]))
    assert not holds(ordered_prior(p))
    assert ordered_prior([1.0]) == []


P3 = cp.Variable(3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: entropy_floor(P3, -0.1), "entropy_floor: found -0.1"),
        (lambda: entropy_floor(P3, np.inf), "entropy_floor: found inf"),
        (lambda: entropy_floor(P3, cp.log(cp.Variable())), "entropy_floor: .* not convex"),
        (lambda: entropy_floor(cp.Variable((3, 1)), 0.1), "prior: expected 1 dimension"),
        (lambda: prior_polytope(P3, lower=[0.1, 0.2]), r"lower: found shape \(2,\)"),
        (lambda: prior_polytope(P3, upper=np.nan), "upper: found nan"),
        (lambda: prior_polytope(P3, upper="high"), "upper: found 'high'"),
        (lambda: prior_polytope(P3, upper=cp.Variable()), "upper: found variables"),
        (
            lambda: prior_polytope(P3, inequalities=(np.ones((1, 2)), [1.0])),
            "inequalities: found a matrix of shape",
        ),
        (
            lambda: prior_polytope(P3, inequalities=(np.ones((2, 3)), [1.0])),
            "inequalities: found a matrix of shape",
        ),
        (lambda: prior_polytope(P3, vertices=[]), "vertices: found shapes"),
        (lambda: prior_polytope(P3, vertices=[[0.5, 0.5]]), "vertices: found shapes"),
        (lambda: prior_polytope(P3, vertices=[[0.5, 0.6, 0.0]]), "vertices: sums to 1.1"),
        (lambda: ordered_prior(P3, [0, 1, 1]), "order: found"),
        (lambda: ordered_prior(P3, [0, 1]), "order: found"),
        (lambda: ordered_prior(P3, [1, 2, 3]), "order: found"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValidationError, match=message):
        call()
