import cvxpy as cp
import numpy as np
import pytest

import cvxleak as cl
from cvxleak import expressions, measures
from cvxleak.core.errors import ValidationError
from cvxleak.model import AdditiveQuery, Channel, Mechanism, RecordSpace


@pytest.mark.parametrize("epsilon", [0.0, 0.4, 3.0])
@pytest.mark.parametrize("kind", ["array", "constant", "variable", "parameter"])
def test_the_profile_is_the_measure(case, hold, kind, epsilon):
    _, q = case
    twin = expressions.privacy_profile(hold(q, kind), epsilon)
    assert twin.value == pytest.approx(measures.privacy_profile(q, epsilon), abs=1e-12)


@pytest.mark.parametrize("kind", ["array", "variable", "parameter"])
def test_the_profile_for_records_is_the_measure(hold, kind):
    count = AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3)
    q = np.random.default_rng(0).dirichlet(np.ones(3), size=4)
    mechanism = Mechanism(count, q)
    for epsilon in (0.0, 0.3):
        truth = measures.record_privacy_profile(mechanism, epsilon)
        by_query = expressions.record_privacy_profile(hold(q, kind), count, epsilon)
        rows = hold(mechanism.to_channel().matrix, kind)
        by_space = expressions.record_privacy_profile(rows, count.space, epsilon)
        assert by_query.value == pytest.approx(truth)
        assert by_space.value == pytest.approx(truth)


def test_curvature():
    Q, epsilon = cp.Variable((4, 2)), cp.Parameter(nonneg=True)
    count = AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3)
    for twin in (
        expressions.privacy_profile(Q, epsilon),
        expressions.record_privacy_profile(Q, count, epsilon),
    ):
        assert twin.is_convex()
        assert not twin.is_concave()
        assert twin.is_dpp()


def test_least_failure_of_a_truthful_channel(solver):
    """A truth probability of a leaves a - e^eps (1 - a) / (k - 1), at the symmetric channel."""
    k, a = 3, 0.8
    Q, epsilon = cp.Variable((k, k)), cp.Parameter(nonneg=True)
    rules = [Q >= 0, cp.sum(Q, axis=1) == 1, cp.diag(Q) >= a]
    problem = cp.Problem(cp.Minimize(expressions.privacy_profile(Q, epsilon)), rules)
    for epsilon.value in (0.0, 1.0):
        found = problem.solve(solver=solver, enforce_dpp=True)
        assert found == pytest.approx(a - np.exp(epsilon.value) * (1 - a) / (k - 1), abs=1e-4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: expressions.privacy_profile(np.eye(2), -1), "epsilon: found -1"),
        (lambda: expressions.privacy_profile(cp.Variable(3), 1), "channel: expected 2 dim"),
        (lambda: expressions.record_privacy_profile(np.eye(2), None, 1), "query: expected a Query"),  # pyright: ignore[reportArgumentType]
        (
            lambda: expressions.record_privacy_profile(np.eye(2), RecordSpace.binary(2), 1),
            "channel: found 2 rows; the space has 4 datasets",
        ),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValidationError, match=message):
        call()


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("a", [0.5, 0.6])
def test_bisection_on_the_ratio(k, a):
    """A truth probability of a needs the ratio a (k - 1) / (1 - a): k-ary randomized response."""
    Q, rows = cl.channel(k, k)
    ratio = expressions.exp_local_dp_epsilon(Q)
    problem = cp.Problem(cp.Minimize(ratio), [*rows, cp.diag(Q) >= a])
    assert problem.is_dqcp()
    assert not problem.is_dcp()
    problem.solve(qcp=True, solver="HIGHS")
    assert problem.status == "optimal"
    truth = a * (k - 1) / (1 - a)
    assert problem.value == pytest.approx(truth, abs=1e-4)
    found = measures.local_dp_epsilon(Channel.from_solver(Q.value))
    assert found == pytest.approx(np.log(truth), abs=1e-4)


def test_the_ratio_is_the_exponential_of_the_measure(hold):
    q = np.random.default_rng(0).dirichlet(np.ones(4), size=3)
    Q, _ = cl.channel(3, 4)
    Q.value = q
    truth = np.exp(measures.local_dp_epsilon(q))
    for given in (q, hold(q, "constant"), Q, Q[[1, 0, 2]]):
        assert expressions.exp_local_dp_epsilon(given).value == pytest.approx(truth)
    assert expressions.exp_local_dp_epsilon(np.eye(2)).value == np.inf


def test_curvature_of_the_ratio():
    Q, _ = cl.channel(3, 4)
    ratio = expressions.exp_local_dp_epsilon(Q)
    for quasiconvex in (ratio, cp.log(ratio)):
        assert quasiconvex.is_quasiconvex()
        assert not quasiconvex.is_convex()
        assert not quasiconvex.is_quasiconcave()
        assert quasiconvex.is_dqcp()


def test_the_ratio_needs_a_sign():
    with pytest.raises(ValidationError, match=r"channel: found an expression .*cvxleak\.channel"):
        expressions.exp_local_dp_epsilon(cp.Variable((2, 2)))
