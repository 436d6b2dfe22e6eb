"""What is never negative has a sign that CVXPY knows, so that functions of it have a curvature."""

import cvxpy as cp
import numpy as np
import pytest

import cvxleak as cl
from cvxleak import expressions
from cvxleak.model import AdditiveQuery, Arimoto, Gini, Guess, GuessInTries, RecordSpace, Shannon

P = np.array([0.5, 0.3, 0.2])
NOISY = np.array([[0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
COUNT = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2)
DATASETS = np.array([0.4, 0.1, 0.2, 0.3])
FAR = 1 - np.eye(3)

CHANNEL = {
    "mutual_information": lambda Q, p, x: expressions.mutual_information(Q, p),
    "record_information": lambda Q, p, x: expressions.record_information(Q, x, COUNT, 0),
    "conditional_record_information": lambda Q, p, x: expressions.conditional_record_information(
        Q, x, COUNT, 0, 1
    ),
    "group_information": lambda Q, p, x: expressions.group_information(Q, x, COUNT, 1),
    "exp_sibson_information": lambda Q, p, x: expressions.exp_sibson_information(Q, p, 2),
    "exp_arimoto_information": lambda Q, p, x: expressions.exp_arimoto_information(Q, p, 2),
    "posterior_bayes_vulnerability": lambda Q, p, x: expressions.posterior_bayes_vulnerability(
        Q, p
    ),
    "posterior_gain_vulnerability": lambda Q, p, x: expressions.posterior_gain_vulnerability(
        Q, p, FAR
    ),
    "gain_leakage": lambda Q, p, x: expressions.gain_leakage(Q, p, Shannon()),
    "... of a guess": lambda Q, p, x: expressions.gain_leakage(Q, p, Guess()),
    "... of guesses": lambda Q, p, x: expressions.gain_leakage(Q, p, GuessInTries(2), "posterior"),
    "... of a norm": lambda Q, p, x: expressions.gain_leakage(Q, p, Arimoto(2), "posterior"),
    "multiplicative_bayes_capacity": lambda Q, p, x: expressions.multiplicative_bayes_capacity(Q),
    "privacy_profile": lambda Q, p, x: expressions.privacy_profile(Q, 0.5),
    "record_privacy_profile": lambda Q, p, x: expressions.record_privacy_profile(Q, COUNT, 0.5),
    "worst_case_distortion": lambda Q, p, x: expressions.worst_case_distortion(Q, [p, P], FAR),
    "relative entropy": lambda Q, p, x: expressions.f_divergence(Q[0], p, "relative-entropy"),
    "total variation": lambda Q, p, x: expressions.f_divergence(Q[0], p, "total-variation"),
    "chi-square": lambda Q, p, x: expressions.f_divergence(Q[0], p, "chi-square"),
    "squared Hellinger": lambda Q, p, x: expressions.f_divergence(Q[0], p, "squared-hellinger"),
    "exp_renyi_divergence": lambda Q, p, x: expressions.exp_renyi_divergence(Q[0], p, 2),
}
ONLY_DATA = {  # the prior's support, or a norm of it
    "exp_maximal_leakage": lambda Q: expressions.exp_maximal_leakage(Q, P),
    "exp_conditional_maximal_leakage": lambda Q: expressions.exp_conditional_maximal_leakage(
        np.ones((3, 1)), [Q], P
    ),
    "gain_leakage of Gini": lambda Q: expressions.gain_leakage(Q, P, Gini()),
    "gain_leakage as a factor": lambda Q: expressions.gain_leakage(Q, P, Guess(), "factor"),
    "divergence of two rows": lambda Q: expressions.f_divergence(Q[0], Q[1], "relative-entropy"),
    "chi-square of two rows": lambda Q: expressions.f_divergence(Q[0], Q[1], "chi-square"),
}


def variables():
    """A variable whose sign CVXPY knows, and one whose sign it does not."""
    return [cl.channel(3, 3)[0], cp.Variable((3, 3))]


def check(told, Q):
    Q.value = NOISY
    assert told.is_convex()
    assert told.is_nonneg()
    assert cp.square(told).is_dcp()
    assert float(cp.square(told).value) == pytest.approx(float(told.value) ** 2)


@pytest.mark.parametrize("name", CHANNEL)
@pytest.mark.parametrize("place", [0, 1])
def test_sign_with_data_and_with_parameters(name, place):
    for p, x in (
        (P, DATASETS),
        (cp.Parameter(3, nonneg=True, value=P), cp.Parameter(4, nonneg=True, value=DATASETS)),
    ):
        Q = variables()[place]
        told = CHANNEL[name](Q, p, x)
        check(told, Q)
        assert told.is_dpp()
        assert cp.square(told).is_dpp()


@pytest.mark.parametrize("name", ONLY_DATA)
@pytest.mark.parametrize("place", [0, 1])
def test_sign_with_data(name, place):
    Q = variables()[place]
    told = ONLY_DATA[name](Q)
    check(told, Q)
    assert told.is_dpp()


def test_a_gain_with_losses_has_no_sign():
    Q, _ = cl.channel(3, 3)
    told = expressions.posterior_gain_vulnerability(Q, P, -FAR)
    assert not told.is_nonneg()
    assert not expressions.gain_vulnerability(P, -FAR).is_nonneg()
    assert expressions.gain_leakage(Q, P, -FAR).is_nonneg()  # what an output adds is a gain


def test_distortion_has_the_sign_of_the_channel():
    Q, _ = cl.channel(3, 3)
    assert expressions.expected_distortion(Q, P, FAR).is_nonneg()
    assert expressions.expected_distortion(Q, P, FAR).is_affine()
    assert expressions.mechanism_distortion(Q, DATASETS, COUNT, FAR).is_nonneg()


def test_convex_functions_of_the_prior_have_a_sign():
    p = cp.Variable(3)
    for told in (
        expressions.bayes_vulnerability(p),
        expressions.gain_vulnerability(p, FAR),
        expressions.gain_vulnerability(p, GuessInTries(2)),
        expressions.posterior_bayes_vulnerability(NOISY, p),
    ):
        assert cp.square(told).is_dcp()
        assert told.is_nonneg()


@pytest.mark.parametrize("level", [0.2, 0.4])
def test_a_squared_information_in_an_objective(level):
    """The square rises with the information, so both have the same optimum."""
    Q, rows = cl.channel(2, 2)
    information = expressions.mutual_information(Q, [0.5, 0.5])
    rules = [*rows, (Q[0, 1] + Q[1, 0]) / 2 <= level]
    truth = np.log(2) + level * np.log(level) + (1 - level) * np.log(1 - level)
    found = cp.Problem(cp.Minimize(cp.square(information)), rules).solve(solver="CLARABEL")
    assert found == pytest.approx(truth**2, abs=1e-5)


def test_information_for_a_prior_with_tiny_entries():
    """From 1 to e^-12: written as H(X) - H(X|Y), Clarabel fails on it (60 x 60)."""
    k = 60
    p = np.exp(-np.arange(k) * 12 / k)
    p /= p.sum()
    far = np.abs(np.subtract.outer(np.arange(k), np.arange(k))).astype(float)
    Q, rows = cl.channel(k, k)
    told = expressions.mutual_information(Q, p)
    problem = cp.Problem(
        cp.Minimize(told), [*rows, expressions.expected_distortion(Q, p, far) <= 0.5]
    )
    problem.solve(solver="CLARABEL")
    assert problem.status == "optimal"
    bound = cl.design_for_prior(p, far, 0.5)
    assert bound.lower - 1e-4 <= problem.value <= bound.upper + 1e-4
