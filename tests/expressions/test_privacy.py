import cvxpy as cp
import numpy as np
import pytest

from cvxleak import expressions, measures
from cvxleak.core.errors import ValidationError
from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace


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
        by_query = expressions.record_privacy_profile(count, hold(q, kind), epsilon)
        rows = hold(mechanism.to_channel().matrix, kind)
        by_space = expressions.record_privacy_profile(count.space, rows, epsilon)
        assert by_query.value == pytest.approx(truth)
        assert by_space.value == pytest.approx(truth)


def test_curvature():
    Q, epsilon = cp.Variable((4, 2)), cp.Parameter(nonneg=True)
    count = AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3)
    for twin in (
        expressions.privacy_profile(Q, epsilon),
        expressions.record_privacy_profile(count, Q, epsilon),
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
        (lambda: expressions.record_privacy_profile(None, np.eye(2), 1), "query: expected a Query"),  # pyright: ignore[reportArgumentType]
        (
            lambda: expressions.record_privacy_profile(RecordSpace.binary(2), np.eye(2), 1),
            "channel: found 2 rows; the space has 4 datasets",
        ),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValidationError, match=message):
        call()
