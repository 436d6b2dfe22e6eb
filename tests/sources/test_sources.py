"""Source sets: exact members, supports against brute force, intervals, and every complaint."""

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import beta, binom

from cvxleak.core.errors import ValidationError
from cvxleak.model import Prior
from cvxleak.sources import Polytope, SourceSet, as_sources


def random_polytope(seed: int, equation: bool = False) -> Polytope:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 6))
    inside = rng.dirichlet(np.ones(size))
    A = rng.normal(size=(3, size))
    b = A @ inside + rng.uniform(0, 0.2, size=3)
    if equation:
        A = np.vstack([A, np.eye(1, size), -np.eye(1, size)])
        b = np.concatenate([b, [inside[0], -inside[0]]])
    return Polytope(np.zeros(size), np.ones(size), A, b)


@given(st.integers(0, 300), st.booleans())
def test_members_are_exact_and_near(seed, equation):
    body = random_polytope(seed, equation)
    rng = np.random.default_rng(seed)
    vertex = body.support(rng.normal(size=len(body))).point
    law = body.member(vertex)
    assert body.contains(law)
    assert sum(law) == 1
    assert np.allclose([float(p) for p in law], vertex, atol=1e-6)


@given(st.integers(0, 300))
def test_support_is_the_linear_program_and_its_multipliers_prove_it(seed):
    body = random_polytope(seed)
    cost = np.random.default_rng(seed + 1).normal(size=len(body))
    answer = body.support(cost)
    peer = linprog(-cost, body.matrix, body.bound, np.ones((1, len(body))), [1.0])
    assert answer.value == pytest.approx(-peer.fun, abs=1e-9)
    rest = cost - answer.multipliers @ body.matrix - answer.level
    proved = answer.multipliers @ body.bound + answer.level
    proved += np.maximum(body.lower * rest, body.upper * rest).sum()
    assert (answer.multipliers >= 0).all()
    assert proved == pytest.approx(answer.value, abs=1e-8)


@given(st.integers(0, 200))
def test_box_support_is_greedy(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 6))
    p = rng.dirichlet(np.ones(size))
    low, high = p * rng.uniform(0, 1, size), p + (1 - p) * rng.uniform(0, 1, size)
    cost = rng.normal(size=size)
    peer = linprog(-cost, A_eq=np.ones((1, size)), b_eq=[1.0], bounds=np.column_stack([low, high]))
    answer = Polytope(low, high).support(cost)
    assert answer.value == pytest.approx(-peer.fun, abs=1e-9)
    rest = cost - answer.level
    assert answer.level + np.maximum(low * rest, high * rest).sum() == pytest.approx(
        answer.value, abs=1e-9
    )


def test_worst_over_everything():
    law = [0.5, 0.3, 0.2]
    both = SourceSet([law]) | SourceSet.box([0, 0, 0.4], [1, 1, 1])
    assert both.worst([1.0, 0.0, 0.0])[0] == pytest.approx(0.6)
    assert both.worst([0.0, 0.0, -1.0])[0] == pytest.approx(-0.2)
    assert both.worst([0.0, 0.0, -1.0])[1].probabilities == pytest.approx(law)
    for cost in np.eye(3):
        hull = both.convex_hull()
        assert hull.worst(cost)[0] == both.worst(cost)[0]


def test_clopper_pearson_covers():
    # Each interval is exact: the tail beyond it has the probability that it was given.
    n, k, level = 60, 3, 0.9
    counts = {"a": 30, "b": 20, "c": 10}
    body = SourceSet.from_counts(counts, level).polytopes[0]
    tail = (1 - level) / 2 / k
    for i, x in enumerate(counts.values()):
        assert binom.sf(x - 1, n, body.lower[i]) == pytest.approx(tail, rel=1e-6)
        assert binom.cdf(x, n, body.upper[i]) == pytest.approx(tail, rel=1e-6)


def test_dirichlet_intervals_are_beta_quantiles():
    body = SourceSet.from_counts(
        {"a": 3, "b": 7}, 0.8, method="dirichlet", pseudocount=1
    ).polytopes[0]
    assert body.lower[0] == pytest.approx(beta.ppf(0.05, 4, 8))
    assert body.upper[0] == pytest.approx(beta.ppf(0.95, 4, 8))


def test_counts_of_zero_and_of_all():
    body = SourceSet.from_counts({"a": 5, "b": 0}).polytopes[0]
    assert body.upper[0] == 1.0
    assert body.lower[1] == 0.0
    assert 0 < body.lower[0] < 1


def test_higher_level_wider_box():
    counts = {"a": 30, "b": 20, "c": 10}
    narrow, wide = (SourceSet.from_counts(counts, level).polytopes[0] for level in (0.8, 0.99))
    assert (wide.lower < narrow.lower).all()
    assert (wide.upper > narrow.upper).all()


@pytest.mark.parametrize(
    "sources",
    [
        SourceSet([[0.5, 0.5], [0.2, 0.8]], labels=["a", "b"]),
        SourceSet.hull([[0.5, 0.5], [0.2, 0.8]]) | SourceSet.box([0.1, 0.1], [0.9, 0.9]),
        SourceSet.polytope([[1.0, -1.0]], [0.1]),
    ],
)
def test_values(sources):
    assert SourceSet.from_dict(sources.to_dict()) == sources
    assert pickle.loads(pickle.dumps(sources)) == sources
    assert hash(SourceSet.from_dict(sources.to_dict())) == hash(sources)
    back = sources.relabeled([1, 0]).relabeled([1, 0])
    assert back == sources


def test_finite_is_not_its_hull():
    two = SourceSet([[1.0, 0.0], [0.0, 1.0]])
    assert two.is_finite
    assert not two.convex_hull().is_finite
    assert len(two.parts) == 2
    assert len(two.convex_hull().parts) == 1


def test_as_sources():
    assert as_sources(Prior([0.5, 0.5])).points.tolist() == [[0.5, 0.5]]
    assert as_sources(np.array([0.5, 0.5])).points.tolist() == [[0.5, 0.5]]
    assert as_sources([[0.5, 0.5]]).size == 2


def test_priors_are_matched_by_label():
    one, two = Prior([0.7, 0.3], ["a", "b"]), Prior([0.4, 0.6], ["b", "a"])
    assert SourceSet([one, two]).points.tolist() == [[0.7, 0.3], [0.6, 0.4]]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: SourceSet([]), "at least one"),
        (lambda: SourceSet([[0.5, 0.6]]), "sums to"),
        (lambda: SourceSet([[0.5, 0.5], [0.2, 0.3, 0.5]]), "2 are needed"),
        (lambda: SourceSet.box([0.6, 0.6], [1, 1]), "empty"),
        (lambda: SourceSet.box([0, 0], [0.3, 0.3]), "empty"),
        (lambda: SourceSet.box([0, 0], [1.3, 0.3]), r"in \[0, 1\]"),
        (
            lambda: SourceSet.polytope([[1, 0], [-1, 0]], [0.2, -0.3]),
            "at least 0.05",
        ),
        (lambda: SourceSet.polytope([[1, 0]], [0.2, 0.3]), "right-hand sides"),
        (lambda: SourceSet.polytope([[np.inf, 0]], [0.2]), "infinite"),
        (lambda: SourceSet.from_counts({"a": 1.5}), "integer"),
        (lambda: SourceSet.from_counts({"a": 0}), "positive"),
        (lambda: SourceSet.from_counts({"a": 1}, 1.0), "level"),
        (lambda: SourceSet.from_counts({"a": 1}, method="wald"), "allowed"),
        (lambda: SourceSet([[1.0]]) | SourceSet([[0.5, 0.5]]), "same ones"),
        (lambda: SourceSet([[0.5, 0.5]]).relabeled([0, 0]), "permutation"),
        (lambda: SourceSet([[0.5, 0.5]]).worst([1.0]), "2 numbers"),
        (lambda: SourceSet.from_dict({"parts": [{"points": []}]}), "without distributions"),
    ],
)
def test_complaints(make, text):
    with pytest.raises(ValidationError, match=text):
        make()


def test_constraints_that_miss_by_rounding_are_not_met_exactly():
    # .1 + .2 is less than the float .30000000000000004.
    with pytest.raises(ValidationError, match="exactly"):
        SourceSet.polytope([[1, 0, 0], [0, 1, 0], [-1, -1, 0.0]], [0.1, 0.2, -0.30000000000000004])


def test_contains_is_exact():
    body = Polytope([0.0, 0.0], [0.5, 1.0])
    just = Fraction(1, 2)
    assert body.contains((just, just))
    assert not body.contains((just + Fraction(1, 10**30), just - Fraction(1, 10**30)))
    assert not body.contains((just, just - Fraction(1, 10**30)))


def test_a_single_law():
    """Inequalities that leave no room at all."""
    for rows, bound in [
        ([[-1.7, -0.8, 0.7], [0.7, 2.4, -1.1]], [-1.7, 0.7]),
        ([[-1.0, 0.0, 0.0]], [-1.0]),
    ]:
        body = Polytope([0.0] * 3, [1.0] * 3, rows, bound)
        assert body.center == pytest.approx([1.0, 0.0, 0.0], abs=1e-9)
        assert body.support([3.0, 5.0, 7.0]).value == pytest.approx(3.0)


def test_a_face_of_the_simplex():
    """Inequalities that leave no room, up to rounding, whatever is asked of them."""
    body = Polytope([0.0] * 3, [1.0] * 3, [[-0.1, -0.4, -0.4]], [-0.4])
    rng = np.random.default_rng(0)
    for cost in (*rng.random((40, 3)), *(10 * rng.random((40, 3)))):
        assert body.support(cost).value == pytest.approx(max(cost[1:]), rel=1e-7)
