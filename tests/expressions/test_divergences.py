import cvxpy as cp
import numpy as np
import pytest

from cvxleak import expressions, measures
from cvxleak.core.errors import ValidationError
from cvxleak.measures.divergences import DIVERGENCES

KINDS = [
    (first, second)
    for first in ("array", "variable", "parameter")
    for second in ("array", "variable", "parameter")
]


def cases():
    rng = np.random.default_rng(1)
    laws = rng.dirichlet(np.ones(4), size=6)
    with_zero = np.array([0.5, 0.5, 0.0, 0.0])
    return [*zip(laws[::2], laws[1::2], strict=True), (with_zero, laws[0]), (laws[0], laws[0])]


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
def test_f_divergence_is_the_measure(divergence, kinds, hold):
    for p, r in cases():
        twin = expressions.f_divergence(hold(p, kinds[0]), hold(r, kinds[1]), divergence)
        truth = measures.f_divergence(p, r, divergence)
        assert twin.value == pytest.approx(truth, abs=1e-12)


@pytest.mark.parametrize("alpha", [0.25, 0.5, 1.5, 2, 2.5, 5])
@pytest.mark.parametrize("kinds", KINDS, ids="-".join)
def test_exp_renyi_divergence_is_the_measure(alpha, kinds, hold):
    for p, r in cases():
        if kinds == ("variable", "variable") and not p.all():
            continue  # 0 / 0
        twin = expressions.exp_renyi_divergence(hold(p, kinds[0]), hold(r, kinds[1]), alpha)
        truth = np.exp((alpha - 1) * measures.renyi_divergence(p, r, alpha))
        assert twin.value == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize("alpha", [0.5, 2])
def test_outcomes_that_a_law_does_not_have_count_for_nothing(alpha):
    R = cp.Variable(3)
    R.value = [0.5, 0.5, 0.0]
    twin = expressions.exp_renyi_divergence([0.5, 0.5, 0.0], R, alpha)
    assert twin.value == pytest.approx(1.0)
    assert expressions.f_divergence([0.5, 0.5, 0.0], R, "chi-square").value == pytest.approx(0)
    rules = [R >= 0, cp.sum(R) == 1]
    sense = cp.Minimize(twin) if alpha > 1 else cp.Maximize(twin)
    assert cp.Problem(sense, rules).solve(solver="CLARABEL") == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("reference", [cp.Variable(3), cp.Parameter(3), np.full(3, 1 / 3)])
def test_curvature(reference):
    P = cp.Variable(3)
    for divergence in DIVERGENCES:
        twin = expressions.f_divergence(P, reference, divergence)
        assert twin.is_convex()
        assert not twin.is_concave()
        assert twin.is_dpp()
        assert expressions.f_divergence(reference, P, divergence).is_convex()
    for alpha in (1.5, 2, 5):
        twin = expressions.exp_renyi_divergence(P, reference, alpha)
        assert twin.is_convex()
        assert not twin.is_concave()
        assert twin.is_dpp()
    twin = expressions.exp_renyi_divergence(P, reference, 0.5)
    assert twin.is_concave()
    assert twin.is_dpp()


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_the_nearest_law_with_a_bounded_event(divergence, solver):
    """To give an event probability 1/2, scale its outcomes and the others, each alike."""
    r = np.array([0.1, 0.2, 0.3, 0.4])
    tilted = np.array([1 / 6, 1 / 3, 3 / 14, 2 / 7])
    truth = measures.f_divergence(tilted, r, divergence)
    P, Q = cp.Variable(4), cp.Variable(4)
    laws = [P >= 0, cp.sum(P) == 1, P[0] + P[1] >= 0.5]
    for reference, rules in [(r, laws), (Q, [*laws, Q == r])]:
        distance = expressions.f_divergence(P, reference, divergence)
        found = cp.Problem(cp.Minimize(distance), rules).solve(solver=solver)
        assert found == pytest.approx(truth, abs=2e-4)


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS"])
@pytest.mark.parametrize("alpha", [0.5, 1.5, 2, 5])
def test_the_nearest_law_in_renyi_divergence(alpha, solver):
    r = np.array([0.1, 0.2, 0.3, 0.4])
    tilted = np.array([1 / 6, 1 / 3, 3 / 14, 2 / 7])
    truth = measures.renyi_divergence(tilted, r, alpha)
    P, Q = cp.Variable(4), cp.Variable(4)
    laws = [P >= 0, cp.sum(P) == 1, P[0] + P[1] >= 0.5]
    for reference, rules in [(r, laws), (Q, [*laws, Q == r])]:
        power = expressions.exp_renyi_divergence(P, reference, alpha)
        sense = cp.Minimize(power) if alpha > 1 else cp.Maximize(power)
        found = cp.Problem(sense, rules).solve(solver=solver)
        assert np.log(found) / (alpha - 1) == pytest.approx(truth, abs=1e-3)


HALVES = np.full(2, 0.5)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: expressions.f_divergence(cp.Variable(3), HALVES, "chi-square"),
            "reference: found 2 outcomes; the distribution has 3",
        ),
        (lambda: expressions.f_divergence(HALVES, HALVES, "kl"), "divergence: found 'kl'"),
        (
            lambda: expressions.f_divergence(cp.Variable(2), [1.0, 0.0], "chi-square"),
            "reference: found probability 0.0 at index 1",
        ),
        (
            lambda: expressions.exp_renyi_divergence(cp.Variable(2), [1.0, 0.0], 2),
            "reference: found probability 0.0 at index 1",
        ),
        (lambda: expressions.exp_renyi_divergence(HALVES, HALVES, 1), "alpha: found 1; a ratio"),
        (lambda: expressions.exp_renyi_divergence(HALVES, HALVES, 2**0.5), "alpha: found 1.41"),
        (lambda: expressions.exp_renyi_divergence(HALVES, HALVES, 0), "alpha: found 0"),
        (
            lambda: expressions.f_divergence(cp.square(cp.Variable(2)), HALVES, "chi-square"),
            "law: .* not affine",
        ),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValidationError, match=message):
        call()
