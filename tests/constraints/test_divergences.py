import cvxpy as cp
import numpy as np
import pytest

from cvxleak import expressions, measures
from cvxleak.capacities import capacity, renyi_capacity
from cvxleak.constraints import (
    capacity_budget,
    divergence_budget,
    local_dp,
    pml,
    record_dp,
    renyi_dp,
    row_stochastic,
    sibson_budget,
    zcdp,
)
from cvxleak.constraints.divergences import BUILDERS, SYMMETRIC
from cvxleak.core.errors import ValidationError
from cvxleak.expressions.divergences import ATOMS
from cvxleak.measures.divergences import DIVERGENCES
from cvxleak.model import AdditiveQuery, Channel, RecordSpace

COUNT = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2)
POWER_SOLVERS = ["CLARABEL", "SCS"]


def repaired(rows):
    rows = np.maximum(rows, 0)
    return rows / rows.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("alpha", [0.5, 0.995, 1])
def test_up_to_order_1_a_budget_may_be_minimized(alpha):
    p, Q, t = np.array([0.2, 0.3, 0.5]), cp.Variable((3, 3)), cp.Variable()
    # Below 1 by less than 1 % the builders state order 1.
    order = 1 if alpha > 0.99 else alpha
    radius = (lambda q: capacity(q).lower) if order == 1 else lambda q: renyi_capacity(q, 0.5).lower
    for rules, measure in (
        (capacity_budget(Q, t, alpha=alpha), radius),
        (sibson_budget(Q, p, alpha, t), lambda q: measures.sibson_information(q, p, order)),
        (renyi_dp(Q, alpha, t), lambda q: measures.renyi_dp_epsilon(q, order)),
    ):
        rows = [*row_stochastic(Q), 2 * Q[0, 0] + Q[1, 1] + Q[2, 2] >= 2.8]
        problem = cp.Problem(cp.Minimize(t), rules + rows)
        assert problem.is_dpp()
        least = problem.solve(solver="CLARABEL")
        assert problem.status == "optimal"
        assert least > 0.05
        assert measure(Channel.from_solver(Q.value, tol=1e-4)) == pytest.approx(least, abs=1e-5)


def test_above_order_1_a_budget_is_no_variable():
    with pytest.raises(ValidationError, match="epsilon: found variables"):
        renyi_dp(cp.Variable((2, 2)), 1.5, cp.Variable())


def test_every_divergence_is_in_every_room():
    assert ATOMS.keys() == BUILDERS.keys() == DIVERGENCES.keys()
    for function in (measures.f_divergence, expressions.f_divergence, divergence_budget):
        assert all(f'"{name}"' in str(function.__doc__) for name in DIVERGENCES)


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_pairs_are_compared_once_where_the_order_makes_no_difference(divergence):
    p, r = [0.1, 0.2, 0.7], [0.5, 0.3, 0.2]
    there, back = (measures.f_divergence(*pair, divergence) for pair in ((p, r), (r, p)))
    assert (divergence in SYMMETRIC) == (there == pytest.approx(back, rel=1e-9))


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_a_divergence_of_zero_is_equal_rows(divergence, best):
    Q = cp.Variable((3, 3))
    rules = row_stochastic(Q) + divergence_budget(Q, divergence, 0)
    assert best(cp.trace(Q), rules) == pytest.approx(1, abs=1e-8)


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("query", [None, "count"])
def test_a_budget_holds_from_the_measure_on(divergence, query):
    query = COUNT if query else None
    q = np.random.default_rng(2).dirichlet(np.full(3, 2.0), size=3)
    truth = measures.row_divergence(q, divergence, query=query)
    least = cp.Variable()
    rules = divergence_budget(q, divergence, least, query=query)
    assert cp.Problem(cp.Minimize(least), rules).solve(solver="CLARABEL") == pytest.approx(
        truth, abs=1e-5
    )


@pytest.mark.parametrize("alpha", [0.5, 1, 1.3, 2, 2**1.5, 6, np.inf])
@pytest.mark.parametrize("query", [None, "count"])
def test_renyi_dp_holds_from_the_measure_on(alpha, query):
    query = COUNT if query else None
    q = np.random.default_rng(4).dirichlet(np.full(3, 2.0), size=3)
    epsilon = measures.renyi_dp_epsilon(q, alpha, query=query)
    # On the way from a constant channel through this one, privacy is lost here.
    step = cp.Variable()
    channel = 0.3 + step * (q - 0.3)
    problem = cp.Problem(cp.Maximize(step), renyi_dp(channel, alpha, epsilon, query=query))
    assert problem.solve(solver="CLARABEL") == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("solver", POWER_SOLVERS)
@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_the_most_truthful_channel_has_the_divergence_allowed(divergence, solver, best):
    k = 3
    Q = cp.Variable((k, k))
    symmetric = np.where(np.eye(k), 0.6, 0.2)
    budget = measures.row_divergence(symmetric, divergence)
    rules = row_stochastic(Q) + divergence_budget(Q, divergence, budget)
    assert best(cp.trace(Q) / k, rules, solver) == pytest.approx(0.6, abs=1e-3)


@pytest.mark.parametrize("solver", POWER_SOLVERS)
@pytest.mark.parametrize("alpha", [0.5, 1, 1.5, 2, 8])
def test_the_most_truthful_channel_under_renyi_dp(alpha, solver, best):
    k = 3
    Q = cp.Variable((k, k))
    epsilon = measures.renyi_dp_epsilon(np.where(np.eye(k), 0.6, 0.2), alpha)
    rules = row_stochastic(Q) + renyi_dp(Q, alpha, epsilon)
    assert best(cp.trace(Q) / k, rules, solver) == pytest.approx(0.6, abs=2e-3)


@pytest.mark.parametrize(("alpha", "stated"), [(1 - 1e-9, 1), (1 + 1e-9, 1.01)])
def test_orders_near_one_are_raised(alpha, stated, best):
    Q = cp.Variable((3, 3))
    for build in (renyi_dp, lambda Q, a, b: capacity_budget(Q, b, alpha=a)):
        near, at = (
            best(cp.trace(Q), row_stochastic(Q) + build(Q, a, 0.05)) for a in (alpha, stated)
        )
        assert near == pytest.approx(at, abs=1e-5)


@pytest.mark.parametrize(
    ("build", "least"),
    [
        (lambda Q, b: renyi_dp(Q, 8, b), 2.9999),
        (lambda Q, b: zcdp(Q, b / 20), 2.55),
        (lambda Q, b: local_dp(Q, b + 20), 2.9999),
        (lambda Q, b: pml(Q, np.full(3, 1 / 3), b + 20), 2.9999),
        (lambda Q, b: capacity_budget(Q, b), 2.9999),
        (lambda Q, b: sibson_budget(Q, np.full(3, 1 / 3), 2, b), 2.9999),
    ],
)
def test_large_budgets_are_stated_within_a_solver_s_reach(build, least, best):
    Q = cp.Variable((3, 3))
    assert best(cp.trace(Q), row_stochastic(Q) + build(Q, 40.0)) > least


def test_order_two_needs_no_power_cone(best):
    if "ECOS" not in cp.installed_solvers():
        pytest.skip("needs ECOS")
    Q = cp.Variable((2, 2))
    truth = best(cp.trace(Q), row_stochastic(Q) + renyi_dp(Q, 2, np.log(7 / 3)), "ECOS")
    assert truth == pytest.approx(1.5, abs=1e-5)


@pytest.mark.parametrize("query", [None, "count"])
def test_zcdp_is_sufficient_and_not_far_from_necessary(query, best):
    query = COUNT if query else None
    Q, gain = cp.Variable((3, 3)), np.random.default_rng(1).random((3, 3)) + np.eye(3)
    objective = cp.sum(cp.multiply(gain, Q))
    rho = 0.3
    inside = best(objective, row_stochastic(Q) + zcdp(Q, rho, query=query))
    assert measures.zcdp_rho(repaired(Q.value), query=query) <= 1.001 * rho
    orders = [rule for a in (1.05, 2.0, 6.0) for rule in renyi_dp(Q, a, rho * a, query=query)]
    outside = best(objective, row_stochastic(Q) + orders)
    pure = local_dp(Q, np.sqrt(2 * rho)) if query is None else record_dp(Q, query, np.sqrt(2 * rho))
    assert best(objective, row_stochastic(Q) + pure) < inside < outside
    assert measures.zcdp_rho(repaired(Q.value), query=query) < rho


def test_more_orders_allow_more(best):
    Q = cp.Variable((2, 2))
    few = best(cp.trace(Q), row_stochastic(Q) + zcdp(Q, 0.2, orders=[1.05, 2, 8, 32]))
    many = 1 + 0.01 * 1.3 ** np.arange(31)
    assert few < best(cp.trace(Q), row_stochastic(Q) + zcdp(Q, 0.2, orders=many))
    assert measures.zcdp_rho(repaired(Q.value)) == pytest.approx(0.2, rel=0.02)


def test_budgets_as_parameters_are_followed(best):
    budget = cp.Parameter(nonneg=True)
    Q, gain = cp.Variable((3, 3)), np.random.default_rng(6).random((3, 3))
    objective = cp.Maximize(cp.sum(cp.multiply(gain, Q)))
    builders = [lambda b, d=divergence: divergence_budget(Q, d, b) for divergence in DIVERGENCES]
    builders += [lambda b, a=alpha: renyi_dp(Q, a, b) for alpha in (0.5, 1, 1.5, 2, np.inf)]
    builders += [lambda b: zcdp(Q, b, query=COUNT, orders=[1.1, 2, 4])]
    for build in builders:
        problem = cp.Problem(objective, row_stochastic(Q) + build(budget))
        assert problem.is_dpp()
        for budget.value in (0.1, 0.3):
            again = problem.solve(solver="CLARABEL", enforce_dpp=True)
            fresh = cp.Problem(objective, row_stochastic(Q) + build(float(budget.value)))
            assert again == pytest.approx(fresh.solve(solver="CLARABEL"), abs=1e-4)


def test_no_budget_makes_the_rows_equal(best):
    Q = cp.Variable((3, 3))
    for rules in (renyi_dp(Q, 2, 0.0), zcdp(Q, 0.0), divergence_budget(Q, "total-variation", 0.0)):
        assert best(cp.trace(Q), row_stochastic(Q) + rules) == pytest.approx(1.0, abs=1e-5)


def test_one_input_is_compared_with_nobody():
    Q = cp.Variable((1, 2))
    assert divergence_budget(Q, "chi-square", 0.1) == []
    assert renyi_dp(Q, 2, 0.1) == []
    assert zcdp(Q, 0.1) == []


Q32 = cp.Variable((3, 2))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: divergence_budget(Q32, "kl", 1.0), "divergence: found 'kl'; allowed"),
        (lambda: divergence_budget(Q32, "chi-square", -1.0), "budget: found -1.0"),
        (lambda: divergence_budget(Q32, "chi-square", cp.exp(cp.Variable())), "not concave"),
        (
            lambda: divergence_budget(Q32, "chi-square", 1.0, query=COUNT.space),
            "3 rows; the space has 4",
        ),
        (lambda: renyi_dp(Q32, 0.1, 1.0), r"alpha: found 0.1; it must be in \[0.2, inf\)"),
        (lambda: renyi_dp(Q32, 2, -1.0), "epsilon: found -1.0"),
        (lambda: renyi_dp(Q32, 2, cp.Variable()), "epsilon: found variables"),
        (lambda: zcdp(Q32, 700.0), r"rho: found 700.0; it must be in \[0, 666.6"),
        (lambda: zcdp(Q32, 0.1, orders=[]), "orders: found"),
        (lambda: zcdp(Q32, 0.1, orders=[2, 1.5]), "orders: found .*; increasing numbers above 1"),
        (lambda: zcdp(Q32, 0.1, orders=[1]), "orders: found 1; it must be in"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValidationError, match=message):
        call()
