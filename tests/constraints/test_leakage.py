import cvxpy as cp
import numpy as np
import pytest

from cvxleak import measures
from cvxleak.capacities import capacity, renyi_capacity
from cvxleak.constraints import (
    capacity_budget,
    conditional_maximal_leakage,
    conditional_record_mi_budget,
    maximal_leakage,
    mi_budget,
    pml,
    record_mi_budget,
    row_stochastic,
    sibson_budget,
    vulnerability_budget,
)
from cvxleak.core.errors import ValidationError
from cvxleak.expressions import mutual_information
from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
from tests.reference import binary_entropy

COUNT = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2)


def rate(k, D):
    """Rate-distortion function of a uniform source under Hamming distortion."""
    return np.log(k) - binary_entropy(D) - D * np.log(k - 1)


# Each set on data: it begins at the measure.


def least_budget(build):
    budget = cp.Variable()
    return cp.Problem(cp.Minimize(budget), build(budget)).solve(solver="CLARABEL")


def test_mi_budget_holds_from_the_measure_on(random_case):
    p, q = random_case
    least = least_budget(lambda budget: mi_budget(q, p, budget))
    assert least == pytest.approx(measures.mutual_information(q, p), abs=1e-6)


def test_maximal_leakage_holds_from_the_measure_on(random_case, holds):
    p, q = random_case
    leakage = measures.maximal_leakage(q, p)
    assert holds(maximal_leakage(q, p, leakage + 1e-4))
    assert not holds(maximal_leakage(q, p, leakage - 1e-4))


def test_pml_holds_from_the_measure_on(random_case, holds):
    p, q = random_case
    worst = measures.max_information(q, p)
    assert holds(pml(q, p, worst + 1e-4))
    assert not holds(pml(q, p, worst - 1e-4))


def test_inputs_of_probability_zero_do_not_count(holds):
    p, q = np.array([0.5, 0.5, 0.0]), np.array([[0.6, 0.4], [0.4, 0.6], [0.0, 1.0]])
    assert holds(pml(q, p, np.log(1.2) + 1e-4))
    assert holds(maximal_leakage(q, p, np.log(1.2) + 1e-4))
    least = least_budget(lambda budget: mi_budget(q, p, budget))
    assert least == pytest.approx(measures.mutual_information(q, p), abs=1e-6)
    # The support of a Parameter is not known, so all inputs count.
    assert not holds(pml(q, cp.Parameter(3, value=p), np.log(1.2) + 1e-4))
    assert holds(pml(q, cp.Parameter(3, value=p), np.log(2) + 1e-4))


# Optima in closed form.


@pytest.mark.parametrize(("k", "D"), [(2, 0.1), (4, 0.3)])
def test_mi_budget_inverts_the_rate_distortion_function(k, D, solver, best):
    Q = cp.Variable((k, k))
    rules = row_stochastic(Q) + mi_budget(Q, np.full(k, 1 / k), rate(k, D))
    assert best(cp.trace(Q) / k, rules, solver) == pytest.approx(1 - D, abs=1e-3)


def test_a_variable_budget_is_the_epigraph(solver):
    rng = np.random.default_rng(5)
    p = rng.dirichlet(np.full(4, 3.0))
    Q, leakage = cp.Variable((4, 4)), cp.Variable()
    rules = [*row_stochastic(Q), p @ cp.diag(Q) >= 0.7]
    problem = cp.Problem(cp.Minimize(leakage), rules + mi_budget(Q, p, leakage))
    assert problem.is_dcp()
    direct = cp.Problem(cp.Minimize(mutual_information(Q, p)), rules).solve(solver="CLARABEL")
    assert problem.solve(solver=solver) == pytest.approx(direct, abs=2e-4)


def test_mi_budget_is_quick_where_the_output_law_is_shared():
    """The program of 40 x 40 cells has no dense rows: a few nonzeros per cell."""
    p = np.random.default_rng(1).dirichlet(np.ones(40))
    Q, leakage = cp.Variable((40, 40)), cp.Variable()
    problem = cp.Problem(cp.Minimize(leakage), row_stochastic(Q) + mi_budget(Q, p, leakage))
    data, _, _ = problem.get_problem_data("CLARABEL")
    assert data["A"].nnz < 10 * 40 * 40


@pytest.mark.parametrize("flip", [0.1, 0.25])
def test_record_mi_budget_bounds_what_parity_tells(flip, solver, best):
    """One who knows all other bits sees the last one through a binary symmetric channel."""
    n = 3
    parity = AdditiveQuery(RecordSpace.binary(n), [(0, 1)] * n, modulus=2)
    knows = np.array([0.5 if x[1:] == (0, 0) else 0.0 for x in parity.space.datasets()])
    law = np.array([[0.5, 0.0], [0.0, 0.5]])
    budget = np.log(2) - binary_entropy(flip)
    Q = cp.Variable((2, 2))
    for prior in (knows, law):
        rules = row_stochastic(Q) + record_mi_budget(Q, prior, parity, 0, budget)
        assert best(cp.trace(Q) / 2, rules, solver) == pytest.approx(1 - flip, abs=1e-3)


def test_record_mi_budget_holds_from_the_measure_on():
    rng = np.random.default_rng(3)
    count = AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3)
    p, q = rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(3), size=4)
    for records in (1, (0, 2)):
        leak = measures.record_information(Mechanism(count, q), p, records)
        least = least_budget(lambda budget, i=records: record_mi_budget(q, p, count, i, budget))
        assert least == pytest.approx(leak, abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_pml_of_a_uniform_prior_bounds_the_truth(epsilon, solver, best):
    """q(y|y) <= e^eps p(y) adds up to a truth probability of e^eps / k."""
    k = 4
    Q = cp.Variable((k, k))
    rules = row_stochastic(Q) + pml(Q, np.full(k, 1 / k), epsilon)
    assert best(cp.trace(Q) / k, rules, solver) == pytest.approx(np.exp(epsilon) / k, abs=1e-4)


def test_pml_is_void_from_the_rarest_input_on(best):
    p = np.array([0.1, 0.3, 0.6])
    Q = cp.Variable((3, 3))
    limit = np.log(1 / 0.1)
    assert best(cp.trace(Q), row_stochastic(Q) + pml(Q, p, limit)) == pytest.approx(3, abs=1e-6)
    assert best(cp.trace(Q), row_stochastic(Q) + pml(Q, p, limit - 0.1)) < 3 - 1e-3


@pytest.mark.parametrize("budget", [0.0, 0.5, 1.0])
def test_maximal_leakage_is_what_guessing_gains(budget, solver, best):
    k = 4
    Q = cp.Variable((k, k))
    rules = row_stochastic(Q) + maximal_leakage(Q, np.full(k, 1 / k), budget)
    assert best(cp.trace(Q), rules, solver) == pytest.approx(np.exp(budget), abs=1e-3)


ORDERS = [0.5, 1, 1.5, 2, 5, np.inf]


def most_on_the_way(build, middle, end):
    """How far one can go from a constant channel through another one within a set."""
    step = cp.Variable()
    rules = build(middle + step * (end - middle))
    return cp.Problem(cp.Maximize(step), rules).solve(solver="CLARABEL")


@pytest.mark.parametrize("alpha", ORDERS)
def test_sibson_and_capacity_budgets_hold_from_the_measure_on(alpha):
    rng = np.random.default_rng(8)
    p, q = rng.dirichlet(np.full(3, 3.0)), rng.dirichlet(np.full(4, 2.0), size=3)
    middle = np.full((3, 4), 0.25)
    told = measures.sibson_information(q, p, alpha)
    way = most_on_the_way(lambda Q: sibson_budget(Q, p, alpha, told), middle, q)
    assert way == pytest.approx(1.0, abs=1e-4)
    if alpha == np.inf:
        most = measures.maximal_leakage(q, p)
    else:
        most = (capacity(q) if alpha == 1 else renyi_capacity(q, alpha)).upper
    way = most_on_the_way(lambda Q: capacity_budget(Q, most, alpha=alpha), middle, q)
    assert way == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("power_solver", ["CLARABEL", "SCS"])
@pytest.mark.parametrize("alpha", ORDERS)
def test_truth_under_sibson_and_capacity_budgets(alpha, power_solver, best):
    k = 3
    p, symmetric = np.full(k, 1 / k), np.where(np.eye(k), 0.6, 0.2)
    budget = measures.sibson_information(symmetric, p, alpha)
    Q = cp.Variable((k, k))
    for rules in (sibson_budget(Q, p, alpha, budget), capacity_budget(Q, budget, alpha=alpha)):
        truth = best(cp.trace(Q) / k, row_stochastic(Q) + rules, power_solver)
        assert truth == pytest.approx(0.6, abs=2e-3)


def test_inputs_that_never_occur_do_not_count_for_sibson(best):
    p = np.array([0.5, 0.5, 0.0])
    Q = cp.Variable((3, 2))
    for law in (p, cp.Parameter(3, nonneg=True, value=p)):
        rules = row_stochastic(Q) + sibson_budget(Q, law, np.inf, np.log(1.2))
        assert best(Q[0, 0] + Q[1, 1] + Q[2, 0], rules) == pytest.approx(2.2, abs=1e-5)


def test_vulnerability_budget_holds_from_the_measure_on(random_case):
    p, q = random_case
    gain = np.random.default_rng(1).random((3, len(p)))
    for given, truth in [
        (None, measures.posterior_bayes_vulnerability(q, p)),
        (gain, measures.posterior_gain_vulnerability(q, p, gain)),
    ]:
        least = least_budget(lambda budget, g=given: vulnerability_budget(q, p, budget, gain=g))
        assert least == pytest.approx(truth, abs=1e-6)


def test_a_prior_may_be_held_to_a_vulnerability(solver, best):
    p = cp.Variable(2)
    rules = [p >= 0, cp.sum(p) == 1, *vulnerability_budget([[0.9, 0.1], [0.1, 0.9]], p, 0.9)]
    # max(0.9 p, 0.1 (1 - p)) + max(0.1 p, 0.9 (1 - p)) is 0.9 until p = 0.9, and then p.
    assert best(p[0], rules, solver) == pytest.approx(0.9, abs=1e-3)


def test_conditional_maximal_leakage_holds_from_the_measure_on(holds):
    rng = np.random.default_rng(2)
    p, first = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(2), size=3)
    second = [rng.dirichlet(np.ones(3), size=3) for _ in range(2)]
    truth = measures.conditional_maximal_leakage(first, second, p)
    assert holds(conditional_maximal_leakage(first, second, p, truth + 1e-4))
    assert not holds(conditional_maximal_leakage(first, second, p, truth - 1e-4))


def test_conditional_record_mi_budget_holds_from_the_measure_on():
    rng = np.random.default_rng(3)
    count = AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3)
    p, q = rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(3), size=4)
    for records, given in [(1, 0), (0, (1, 2)), ((0, 2), 1)]:
        truth = measures.conditional_record_information(Mechanism(count, q), p, records, given)
        least = least_budget(
            lambda budget, a=records, g=given: conditional_record_mi_budget(
                q, p, count, a, g, budget
            )
        )
        assert least == pytest.approx(truth, abs=1e-6)


def test_no_channel_is_useful_and_silent():
    Q = cp.Variable((3, 3))
    useful = [*row_stochastic(Q), cp.trace(Q) >= 2.0]
    p = np.full(3, 1 / 3)
    for private in (
        mi_budget(Q, p, rate(3, 1 / 3) - 0.01),
        maximal_leakage(Q, p, np.log(2) - 0.01),
        pml(Q, p, np.log(2) - 0.01),
    ):
        problem = cp.Problem(cp.Minimize(0), useful + private)
        problem.solve(solver="CLARABEL")
        assert problem.status == "infeasible"


@pytest.mark.parametrize(
    "build",
    [
        lambda Q: mi_budget(Q, [0.2, 0.3, 0.5], 0),
        lambda Q: mi_budget(Q, cp.Parameter(3, value=[0.2, 0.3, 0.5]), 0),
        lambda Q: sibson_budget(Q, [0.2, 0.3, 0.5], 2, 0),
        lambda Q: capacity_budget(Q, 0),
        lambda Q: conditional_record_mi_budget(Q, np.full(4, 0.25), COUNT, 0, 1, 0),
    ],
)
def test_a_budget_of_zero_is_equal_rows(build, best):
    Q = cp.Variable((3, 3))
    assert best(cp.trace(Q), row_stochastic(Q) + build(Q)) == pytest.approx(1, abs=1e-8)


def test_a_record_of_which_nothing_is_told(best):
    # Each bit alone is independent of the noisy parity, whatever the noise.
    parity, Q = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2), cp.Variable((2, 2))
    silent = record_mi_budget(Q, np.full(4, 0.25), parity, 0, 0)
    assert best(cp.trace(Q), row_stochastic(Q) + silent) == pytest.approx(2, abs=1e-8)


# Parameters.


def test_budgets_and_priors_as_parameters_are_followed():
    p, budget = cp.Parameter(3, nonneg=True), cp.Parameter(nonneg=True)
    Q = cp.Variable((3, 3))
    w = cp.Parameter(4, nonneg=True, value=np.full(4, 0.25))
    gain = cp.Maximize(cp.trace(Q))
    known = np.array([0.5, 0.3, 0.2])
    builders = [
        (lambda prior, b: mi_budget(Q, prior, b), p),
        (lambda prior, b: pml(Q, prior, b), p),
        (lambda prior, b: maximal_leakage(Q, known, b), p),
        (lambda prior, b: record_mi_budget(Q, prior, COUNT, 0, b), w),
        (lambda prior, b: conditional_record_mi_budget(Q, prior, COUNT, 0, 1, b), w),
        *((lambda prior, b, a=a: sibson_budget(Q, prior, a, b), p) for a in ORDERS),
        *((lambda prior, b, a=a: capacity_budget(Q, b, alpha=a), p) for a in ORDERS),
        (lambda prior, b: vulnerability_budget(Q, prior, b + 0.6), p),
        (lambda prior, b: vulnerability_budget(Q, prior, b + 0.6, gain=np.eye(3)), p),
        (lambda prior, b: conditional_maximal_leakage(np.ones((3, 1)), [Q], known, b), p),
    ]
    for build, prior in builders:
        problem = cp.Problem(gain, row_stochastic(Q) + build(prior, budget))
        assert problem.is_dpp()
        for b, law in [(0.1, known), (0.3, np.array([0.2, 0.6, 0.2]))]:
            budget.value, p.value = b, law
            again = problem.solve(solver="CLARABEL", enforce_dpp=True)
            fresh = cp.Problem(gain, row_stochastic(Q) + build(prior.value, b))
            assert again == pytest.approx(fresh.solve(solver="CLARABEL"), abs=1e-4)


Q32, P3 = cp.Variable((3, 2)), np.full(3, 1 / 3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mi_budget(Q32, P3, -1.0), "budget: found -1.0"),
        (lambda: mi_budget(Q32, P3, np.inf), "budget: found inf"),
        (lambda: mi_budget(Q32, P3, cp.Variable(2)), "budget: expected a real scalar"),
        (lambda: mi_budget(Q32, P3, cp.exp(cp.Variable())), "budget: .* not concave"),
        (lambda: mi_budget(Q32, [0.5, 0.5], 1.0), "prior: found 2 outcomes"),
        (lambda: mi_budget(np.eye(3), cp.Variable(3), 1.0), "prior: found variables"),
        (lambda: pml(Q32, P3, -0.5), "epsilon: found -0.5"),
        (lambda: pml(np.eye(3), cp.Variable(3), 1.0), "prior: found variables"),
        (lambda: pml(Q32, P3, cp.Variable()), "epsilon: found variables"),
        (lambda: sibson_budget(np.eye(3), cp.Variable(3), 2, 1.0), "prior: found variables"),
        (lambda: sibson_budget(Q32, P3, 0, 1.0), "alpha: found 0"),
        (lambda: sibson_budget(Q32, P3, 2, cp.Variable()), "budget: found variables"),
        (lambda: capacity_budget(Q32, -1.0), "budget: found -1.0"),
        (lambda: capacity_budget(Q32, 1.0, alpha=-1), "alpha: found -1"),
        (lambda: vulnerability_budget(Q32, P3, -1.0), "budget: found -1.0"),
        (lambda: vulnerability_budget(Q32, P3, 1.0, gain=np.eye(2)), "gain: found shape"),
        (
            lambda: conditional_record_mi_budget(
                Q32,
                np.full(4, 0.25),
                COUNT,
                0,
                (0, 1),
                1.0,
            ),
            "given: found .* must not overlap",
        ),
        (lambda: mi_budget(Q32, P3, cp.Parameter(value=-0.5)), "budget: found -0.5"),
        (lambda: mi_budget(Q32, P3, cp.Parameter(nonpos=True)), "budget: .* never positive"),
        (lambda: maximal_leakage(Q32, P3, -0.5), "budget: found -0.5"),
        (lambda: maximal_leakage(Q32, P3, 1e4), "budget: found 10000.0"),
        (lambda: maximal_leakage(Q32, cp.Parameter(3), 1.0), "prior: found variables or Param"),
        (
            lambda: record_mi_budget(Q32, P3, COUNT, 0, 1.0),
            "prior: found 3 outcomes; 4 are needed",
        ),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValidationError, match=message):
        call()
