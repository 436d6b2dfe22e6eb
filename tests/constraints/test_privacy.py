import itertools

import cvxpy as cp
import numpy as np
import pytest

from cvxleak import measures
from cvxleak.constraints import local_dp, record_dp, row_stochastic
from cvxleak.core.errors import ValidationError
from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace, TableQuery


def k_rr(k, epsilon, delta=0.0):
    """Truth probability of the best symmetric mechanism: a <= e^eps (1 - a) / (k - 1) + delta."""
    return (np.exp(epsilon) + delta * (k - 1)) / (np.exp(epsilon) + k - 1)


def test_pure_local_dp_holds_from_the_measured_epsilon_on(random_case, holds):
    _, q = random_case
    epsilon = measures.local_dp_epsilon(q)
    assert holds(local_dp(q, epsilon + 1e-3))
    assert not holds(local_dp(q, epsilon - 1e-3))


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.5])
def test_approximate_local_dp_holds_from_the_measured_profile_on(random_case, holds, epsilon):
    _, q = random_case
    delta = measures.privacy_profile(q, epsilon)
    assert holds(local_dp(q, epsilon, delta + 1e-4))
    if delta > 2e-4:
        assert not holds(local_dp(q, epsilon, delta - 1e-4))


@pytest.mark.parametrize(("k", "epsilon"), [(2, 0.5), (4, 1.0), (6, 0.0)])
def test_randomized_response_is_best_under_pure_local_dp(k, epsilon, solver, best):
    Q = cp.Variable((k, k))
    truth = best(cp.trace(Q) / k, row_stochastic(Q) + local_dp(Q, epsilon), solver)
    assert truth == pytest.approx(k_rr(k, epsilon), abs=1e-4)


@pytest.mark.parametrize(("k", "epsilon", "delta"), [(2, 0.5, 0.1), (3, 0.0, 0.2), (4, 1.0, 0.05)])
def test_best_truth_under_approximate_local_dp(k, epsilon, delta, solver, best):
    Q = cp.Variable((k, k))
    truth = best(cp.trace(Q) / k, row_stochastic(Q) + local_dp(Q, epsilon, delta), solver)
    assert truth == pytest.approx(k_rr(k, epsilon, delta), abs=1e-4)


def test_cheap_form_has_the_optimum_of_all_pairs(best):
    rng = np.random.default_rng(3)
    Q, gain = cp.Variable((5, 4)), rng.random((5, 4))
    pairs = itertools.permutations(range(5), 2)
    everything = [Q[x] <= np.exp(0.7) * Q[z] for x, z in pairs]
    objective = cp.sum(cp.multiply(gain, Q))
    cheap = best(objective, row_stochastic(Q) + local_dp(Q, 0.7))
    assert cheap == pytest.approx(best(objective, row_stochastic(Q) + everything), abs=1e-6)


def test_pure_local_dp_has_two_rows_per_cell():
    first, second = local_dp(cp.Variable((7, 5)), 1.0)
    assert first.size + second.size == 2 * 7 * 5


def test_epsilon_and_delta_as_parameters_are_followed(best):
    epsilon, delta = cp.Parameter(nonneg=True), cp.Parameter(nonneg=True)
    Q = cp.Variable((3, 3))
    pure = cp.Problem(cp.Maximize(cp.trace(Q) / 3), row_stochastic(Q) + local_dp(Q, epsilon))
    both = cp.Problem(cp.Maximize(cp.trace(Q) / 3), row_stochastic(Q) + local_dp(Q, epsilon, delta))
    for problem in (pure, both):
        assert problem.is_dpp()
    for epsilon.value, delta.value in [(0.5, 0.1), (2.0, 0.01), (0.0, 0.3)]:
        truth = pure.solve(solver="CLARABEL", enforce_dpp=True)
        assert truth == pytest.approx(k_rr(3, epsilon.value), abs=1e-5)
        truth = both.solve(solver="CLARABEL", enforce_dpp=True)
        assert truth == pytest.approx(k_rr(3, epsilon.value, delta.value), abs=1e-5)


def test_a_parameter_may_be_a_matrix_of_one_entry(best):
    Q, one = cp.Variable((3, 3)), cp.Parameter((1, 1), nonneg=True, value=[[1.0]])
    assert best(cp.trace(Q) / 3, row_stochastic(Q) + local_dp(Q, one)) == pytest.approx(
        k_rr(3, 1.0), abs=1e-6
    )
    assert best(cp.trace(Q) / 3, row_stochastic(Q) + local_dp(Q, 1.0, one / 10)) == pytest.approx(
        k_rr(3, 1.0, 0.1), abs=1e-6
    )


def test_a_parameter_epsilon_is_checked_when_it_is_used():
    epsilon = cp.Parameter()
    Q = cp.Variable((2, 2))
    problem = cp.Problem(cp.Maximize(Q[0, 0]), row_stochastic(Q) + local_dp(Q, epsilon))
    epsilon.value = -0.5
    with pytest.raises(ValidationError, match=r"epsilon: found -0.5; it must be in \[0, 700\]"):
        problem.solve(solver="CLARABEL")


def test_truth_is_infeasible_under_privacy():
    Q = cp.Variable((3, 3))
    problem = cp.Problem(
        cp.Minimize(0), [*row_stochastic(Q), *local_dp(Q, 1.0), cp.diag(Q) >= k_rr(3, 1.0) + 1e-3]
    )
    problem.solve(solver="CLARABEL")
    assert problem.status == "infeasible"


# Records.


def mechanisms():
    rng = np.random.default_rng(9)
    mixed = RecordSpace([(0, 1, 2), ("no", "yes"), ("a", "b")])
    queries = [
        AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3),
        AdditiveQuery(RecordSpace.binary(3), [(0, 1), (0, 2), (0, 2)], modulus=4),
        TableQuery(mixed, [0, 1, 2, 0, 3, 1, 1, 2, 3, 3, 0, 2], ("p", "q", "r", "s")),
    ]
    return [Mechanism(f, rng.dirichlet(np.ones(3), size=len(f.values))) for f in queries]


@pytest.mark.parametrize("mechanism", mechanisms(), ids=repr)
def test_record_dp_holds_from_the_measured_epsilon_on(mechanism, holds):
    epsilon = measures.record_dp_epsilon(mechanism)
    for what, q in (
        (mechanism.query, mechanism.channel),
        (mechanism.space, mechanism.to_channel().matrix),
    ):
        assert holds(record_dp(q, what, epsilon + 1e-3))
        assert not holds(record_dp(q, what, epsilon - 1e-3))


@pytest.mark.parametrize("mechanism", mechanisms(), ids=repr)
def test_approximate_record_dp_holds_from_the_measured_profile_on(mechanism, holds):
    delta = measures.record_privacy_profile(mechanism, 0.3)
    for what, q in (
        (mechanism.query, mechanism.channel),
        (mechanism.space, mechanism.to_channel().matrix),
    ):
        assert holds(record_dp(q, what, 0.3, delta + 1e-4))
        assert not holds(record_dp(q, what, 0.3, delta - 1e-4))


def test_a_space_compares_all_datasets_one_record_apart():
    space = RecordSpace([(0, 1, 2), (0, 1)])
    datasets = list(space.datasets())
    apart = [
        (x, z)
        for x, z in itertools.permutations(datasets, 2)
        if sum(a != b for a, b in zip(x, z, strict=True)) == 1
    ]
    Q = cp.Variable((6, 2))
    (rule,) = record_dp(Q, space, 1.0)
    assert rule.shape == (len(apart), 2)
    Q.value = np.eye(6)[:, :2]
    assert np.count_nonzero(rule.violation() > 0) == sum(
        1 for x, z in apart for y in range(2) if datasets.index(x) == y
    )


def test_a_space_and_its_identity_query_say_the_same(best):
    space = RecordSpace([(0, 1, 2), (0, 1)])
    identity = TableQuery(space, np.arange(6), list(space.datasets()))
    Q, gain = cp.Variable((6, 3)), np.random.default_rng(2).random((6, 3))
    objective = cp.sum(cp.multiply(gain, Q))
    by_space = best(objective, row_stochastic(Q) + record_dp(Q, space, 0.4))
    by_query = best(objective, row_stochastic(Q) + record_dp(Q, identity, 0.4))
    by_hand = [
        Q[x] <= np.exp(0.4) * Q[z]
        for x, z in itertools.permutations(range(6), 2)
        if sum(a != b for a, b in zip(identity.values[x], identity.values[z], strict=True)) == 1
    ]
    truth = best(objective, row_stochastic(Q) + by_hand)
    assert by_space == pytest.approx(truth, abs=1e-6)
    assert by_query == pytest.approx(truth, abs=1e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.8])
def test_parity_is_released_as_one_bit_would_be(epsilon, solver, best):
    parity = AdditiveQuery(RecordSpace.binary(500), [(0, 1)] * 500, modulus=2)
    Q = cp.Variable((2, 2))
    truth = best(cp.trace(Q) / 2, row_stochastic(Q) + record_dp(Q, parity, epsilon), solver)
    assert truth == pytest.approx(k_rr(2, epsilon), abs=1e-4)


def test_record_dp_follows_parameters():
    epsilon, delta = cp.Parameter(nonneg=True), cp.Parameter(nonneg=True)
    count = AdditiveQuery(RecordSpace.binary(1), [(0, 1)])
    Q = cp.Variable((2, 2))
    problem = cp.Problem(
        cp.Maximize(cp.trace(Q) / 2), row_stochastic(Q) + record_dp(Q, count, epsilon, delta)
    )
    assert problem.is_dpp()
    for epsilon.value, delta.value in [(0.5, 0.1), (1.0, 0.02)]:
        truth = problem.solve(solver="CLARABEL", enforce_dpp=True)
        assert truth == pytest.approx(k_rr(2, epsilon.value, delta.value), abs=1e-5)


def test_no_neighbors_no_constraint():
    constant = TableQuery(RecordSpace.binary(2), [0, 0, 0, 0], ("same",))
    assert record_dp(cp.Variable((1, 2)), constant, 1.0) == []


@pytest.mark.filterwarnings("error")
@pytest.mark.skipif("HIGHS" not in cp.installed_solvers(), reason="needs HiGHS")
def test_a_linear_program_solver_is_enough(best):
    Q = cp.Variable((3, 3))
    truth = best(cp.trace(Q) / 3, row_stochastic(Q) + local_dp(Q, 1.0, 0.1), "HIGHS")
    assert truth == pytest.approx(k_rr(3, 1.0, 0.1), abs=1e-6)


Q32, BIT = cp.Variable((3, 2)), RecordSpace.binary(1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: local_dp(Q32, -0.1), r"epsilon: found -0.1; it must be in \[0, 700\]"),
        (lambda: local_dp(Q32, np.inf), "epsilon: found inf"),
        (lambda: local_dp(Q32, "one"), "epsilon: expected a number"),
        (lambda: local_dp(Q32, cp.Constant(-1.0)), "epsilon: found -1.0"),
        (lambda: local_dp(Q32, cp.Parameter(2)), "epsilon: expected a real scalar"),
        (lambda: local_dp(Q32, cp.Parameter(value=-0.5)), r"epsilon: found -0.5; .* \[0, 700\]"),
        (lambda: local_dp(Q32, cp.Parameter(nonpos=True)), "epsilon: .* never positive"),
        (lambda: local_dp(Q32, 1.0, cp.Parameter(value=1.5)), r"delta: found 1.5; .* \[0, 1\]"),
        (lambda: local_dp(Q32, cp.Variable()), "epsilon: found variables"),
        (lambda: local_dp(Q32, 1.0, -0.1), r"delta: found -0.1; it must be in \[0, 1\]"),
        (lambda: local_dp(Q32, 1.0, 1.1), "delta: found 1.1"),
        (lambda: local_dp(Q32, 1.0, cp.square(cp.Variable())), "delta: .* not concave"),
        (lambda: local_dp(cp.Variable(3), 1.0), "channel: expected 2 dimension"),
        (lambda: record_dp(Q32, BIT, 1.0), "channel: found 3 rows; the space has 2 datasets"),
        (
            lambda: record_dp(Q32, AdditiveQuery(BIT, [(0, 1)]), 1.0),
            "channel: found 3 rows; the query has 2 values",
        ),
        (lambda: record_dp(Q32, [(0, 1)], 1.0), "query: expected a Query"),
        (lambda: record_dp(Q32[:2], BIT, -1.0), "epsilon: found -1.0"),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValidationError, match=message):
        call()
