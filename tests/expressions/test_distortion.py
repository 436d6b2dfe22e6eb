import cvxpy as cp
import numpy as np
import pytest

from cvxleak import expressions, measures
from cvxleak.core.errors import ValidationError
from cvxleak.model import AdditiveQuery, Channel, Distortion, Mechanism, Prior, RecordSpace


def costs(q):
    return np.random.default_rng(1).random(q.shape)


def test_expected_distortion_is_the_measure(case, kinds, hold):
    p, q = case
    twin = expressions.expected_distortion(hold(q, kinds[1]), hold(p, kinds[0]), costs(q))
    assert twin.value == pytest.approx(measures.expected_distortion(q, p, costs(q)))
    assert twin.is_affine()


@pytest.mark.parametrize("kind", ["array", "parameter"])
def test_worst_case_distortion_is_the_measure(case, kind, hold):
    p, q = case
    sources = [p, np.roll(p, 1), np.full(len(p), 1 / len(p))]
    for channel in ("array", "variable", "parameter"):
        twin = expressions.worst_case_distortion(
            hold(q, channel), [hold(source, kind) for source in sources], costs(q)
        )
        assert twin.value == pytest.approx(measures.worst_case_distortion(q, sources, costs(q)))


def test_mechanism_distortion_is_the_measure(hold):
    count = AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3)
    rng = np.random.default_rng(5)
    p, q = rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(4), size=4)
    d = Distortion.absolute([3, 2, 1, 0], [0, 1, 2, 3])  # matched to the query by label
    truth = measures.mechanism_distortion(Mechanism(count, Channel(q, range(4))), p, d)
    for prior in ("array", "parameter"):
        for channel in ("array", "variable", "parameter"):
            twin = expressions.mechanism_distortion(hold(q, channel), hold(p, prior), count, d)
            assert twin.value == pytest.approx(truth)
    assert expressions.mechanism_distortion(q, hold(p, "variable"), count, d).value == (
        pytest.approx(truth)
    )


def test_labels_are_matched_as_in_the_measure():
    q = Channel([[0.9, 0.1], [0.3, 0.7]], ["yes", "no"], ["no", "yes"])
    d = Distortion([[0, 1, 2], [3, 4, 5], [6, 7, 8]], ["no", "?", "yes"], ["yes", "?", "no"])
    truth = measures.expected_distortion(q, [0.5, 0.5], d)
    assert expressions.expected_distortion(q, [0.5, 0.5], d).value == pytest.approx(truth)
    assert truth == pytest.approx((0.9 * 8 + 0.1 * 6 + 0.3 * 2 + 0.7 * 0) / 2)


def test_a_prior_is_matched_to_the_distortion_where_the_channel_has_no_labels():
    Q = cp.Variable((2, 2), value=np.array([[0.9, 0.1], [0.3, 0.7]]))
    d = Distortion([[0, 1], [3, 0]], ["a", "b"])
    for p in (Prior([0.2, 0.8], ["a", "b"]), Prior([0.8, 0.2], ["b", "a"])):
        truth = 0.2 * 0.1 + 0.8 * 0.9
        assert expressions.expected_distortion(Q, p, d).value == pytest.approx(truth)
        assert expressions.worst_case_distortion(Q, [p], d).value == pytest.approx(truth)
    with pytest.raises(ValidationError, match="prior: its labels"):
        expressions.expected_distortion(Q, Prior([0.2, 0.8], ["a", "c"]), d)


def test_curvature():
    p, source = cp.Variable(3), cp.Parameter(3, nonneg=True)
    Q, q = cp.Variable((3, 2)), cp.Parameter((3, 2), nonneg=True)
    d = np.ones((3, 2))
    for twin in (
        expressions.expected_distortion(Q, source, d),
        expressions.expected_distortion(q, p, d),
        expressions.mechanism_distortion(
            Q, cp.Parameter(4), AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2), d
        ),
    ):
        assert twin.is_affine()
        assert twin.is_dpp()
    worst = expressions.worst_case_distortion(Q, [source, np.full(3, 1 / 3)], d)
    assert worst.is_convex()
    assert not worst.is_concave()
    assert worst.is_dpp()


def test_one_answer_for_two_opposite_sources(solver):
    """Released without looking: the worst of two point sources errs half of the time at best."""
    Q = cp.Variable((2, 2))
    worst = expressions.worst_case_distortion(Q, np.eye(2), Distortion.hamming([0, 1]))
    blind = [Q >= 0, cp.sum(Q, axis=1) == 1, Q[0] == Q[1]]
    assert cp.Problem(cp.Minimize(worst), blind).solve(solver=solver) == pytest.approx(
        0.5, abs=1e-4
    )


Q22, HALVES = cp.Variable((2, 2)), np.full(2, 0.5)
HAMMING = Distortion.hamming([0, 1])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: expressions.expected_distortion(Q22, HALVES, np.ones((2, 3))),
            r"distortion: found shape \(2, 3\); the channel has shape \(2, 2\)",
        ),
        (
            lambda: expressions.expected_distortion(Q22, HALVES, Distortion.hamming(range(3))),
            "distortion: found shape",
        ),
        (
            lambda: expressions.expected_distortion(
                Channel(np.eye(2), ["a", "b"], ["a", "b"]), HALVES, HAMMING
            ),
            "distortion: its inputs .* lack",
        ),
        (
            lambda: expressions.expected_distortion(Q22, cp.Variable(2), HAMMING),
            "both in the prior and in the channel",
        ),
        (
            lambda: expressions.worst_case_distortion(Q22, [], HAMMING),
            "priors: found none",
        ),
        (
            lambda: expressions.worst_case_distortion(Q22, Prior(HALVES), HAMMING),
            "priors: found one Prior",
        ),
        (
            lambda: expressions.mechanism_distortion(
                np.eye(3), HALVES, AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2), np.eye(3)
            ),
            "prior: found 2 outcomes; 4 are needed",
        ),
        (
            lambda: expressions.mechanism_distortion(
                Q22, cp.Variable(2), AdditiveQuery(RecordSpace.binary(1), [(0, 1)]), HAMMING
            ),
            "both in the prior and in the channel",
        ),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValidationError, match=message):
        call()
