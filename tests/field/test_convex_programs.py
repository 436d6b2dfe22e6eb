"""Convex programs about information, as people who use CVXPY and Convex.jl write them."""

import math

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import entr, rel_entr
from scipy.stats import binom

import cvxleak as cl
from cvxleak.constraints import row_stochastic
from cvxleak.expressions import exp_local_dp_epsilon, f_divergence, mutual_information


def test_a_channel_with_one_column_for_each_input():
    """cvxpy/cvxpy #1578: the example on capacities has a column for each input, its text rows.

    Two inputs and three outputs, as a matrix of shape (3, 2) whose columns sum to one. At first,
    "row 1 sums to 0.5"; now the error says to pass the transpose. Independent: the best of a fine
    grid of input distributions, which is at most a little below the capacity.
    """
    columns = np.array([[0.75, 0.1], [0.2, 0.3], [0.05, 0.6]])
    with pytest.raises(cl.CvxleakError, match=r"pass the transpose \(\.T\)"):
        cl.capacity(columns)
    bound = cl.capacity(columns.T)
    share = np.linspace(0, 1, 100001)[:, None]
    output = share * columns[:, 0] + (1 - share) * columns[:, 1]
    told = entr(output).sum(axis=1) - np.hstack([share, 1 - share]) @ entr(columns).sum(axis=0)
    assert bound.upper >= told.max()
    assert bound.lower <= told.max() + 1e-9


def test_least_ratio_of_the_rows_of_a_channel():
    """cvxpy/cvxpy #2374: a quasiconvex ratio, "The denominator's sign must be known" when solved.

    The least epsilon of local differential privacy of a channel on three values that is right in
    two of three cases: minimize the largest ratio of two entries of a column. CVXPY takes the ratio
    of `cp.max` and `cp.min` for DQCP and fails to solve it. `min_local_dp` answered, but the page
    on convexity said to bisect; it leads there now, and otherwise to `exp_local_dp_epsilon`.
    Independent: k-ary randomized response, epsilon = log((k - 1)(1 - D) / D).
    """
    bound = cl.min_local_dp([1 / 3] * 3, 1 / 3)
    truth = math.log(2 * (2 / 3) / (1 / 3))
    assert bound.lower <= truth + 1e-9
    assert bound.upper >= truth - 1e-9
    assert bound.status is cl.Status.CERTIFIED

    Q, rules = cl.channel(3, 3)
    problem = cp.Problem(cp.Minimize(exp_local_dp_epsilon(Q)), [*rules, cp.trace(Q) >= 2])
    assert problem.solve(qcp=True) == pytest.approx(math.exp(truth), rel=1e-4)


def test_closest_distribution_of_a_given_mean():
    """jump-dev/Convex.jl #64: of all distributions of a mean, the one closest to a binomial.

    33 outcomes; the probabilities of the base measure fall to 2e-10. At first `f_divergence` put
    them into exponential cones: Clarabel returned 2.6393 ("optimal_inaccurate"), SCS infinity. The
    logarithms of a known reference are coefficients now. Independent: it is Binomial(32, 0.3), at
    32 times the divergence of two coins.
    """
    values = np.arange(33)
    base = binom.pmf(values, 32, 0.5)
    law = cp.Variable(33, nonneg=True)
    told = f_divergence(law, reference=base, divergence="relative-entropy")
    problem = cp.Problem(cp.Minimize(told), [cp.sum(law) == 1, values @ law == 0.3 * 32])
    truth = 32 * float(rel_entr([0.3, 0.7], [0.5, 0.5]).sum())
    assert problem.solve(solver="CLARABEL") == pytest.approx(truth, abs=1e-6)
    assert problem.status == "optimal"
    assert law.value == pytest.approx(binom.pmf(values, 32, 0.3), abs=1e-4)


def test_noise_that_hides_a_sum():
    """jump-dev/Convex.jl #157: minimize H(S + X) - H(S), which is no difference to DCP rules.

    X is Binomial(2, 1/2), the noise S has the values 0, 1, 2. The difference is I(X; S + X), so the
    channel is an affine function of the distribution of S, and `mutual_information` is convex.
    Answered at first; `design_for_prior` with these constraints proves the optimum. Independent:
    the best of a grid of noises.
    """
    law = binom.pmf(range(3), 2, 0.5)
    noise = cp.Variable(3, nonneg=True)
    channel = cp.vstack([cp.hstack([np.zeros(x), noise, np.zeros(2 - x)]) for x in range(3)])
    told = mutual_information(prior=law, channel=channel)
    value = cp.Problem(cp.Minimize(told), [cp.sum(noise) == 1]).solve(solver="CLARABEL")

    def additive(Q):
        shifted = [Q[x + 1, y + 1] == Q[x, y] for x in range(2) for y in range(4)]
        return [*shifted, Q[0, 3:] == 0, Q[1:, 0] == 0, Q[2, 1] == 0, Q[1, 4] == 0]

    bound = cl.design_for_prior(law, np.zeros((3, 5)), 1.0, constraints=[additive])
    a, b = (grid.ravel() for grid in np.meshgrid(np.linspace(0, 1, 201), np.linspace(0, 1, 201)))
    laws = np.maximum(np.stack([a, b, 1 - a - b], axis=1)[a + b <= 1 + 1e-9], 0)
    sums = np.stack([np.convolve(row, law) for row in laws])
    best = (entr(sums).sum(axis=1) - entr(laws).sum(axis=1)).min()
    assert bound.lower <= best
    assert bound.upper >= best - 1e-4
    assert value == pytest.approx(bound.lower, abs=1e-6)


def test_a_matrix_of_scalar_variables():
    """cvxpy/cvxpy #1257 and #700: NumPy arrays of variables, and columns instead of vectors.

    A binary symmetric channel whose flip is a variable, as an array of expressions, and a prior of
    shape (2, 1). At first: "Variable is not a number", "expected 1 dimension(s)"; now the errors
    say how to stack and to flatten. Independent: the least information of a channel that flips at
    most 0.2 of the bits, log 2 - h(0.2).
    """
    flip = cp.Variable(bounds=[0, 1])
    cells = [[1 - flip, flip], [flip, 1 - flip]]
    for wrong in (cells, np.array(cells)):
        with pytest.raises(cl.CvxleakError, match=r"channel: .* cp\.bmat of rows of numbers"):
            mutual_information(prior=[0.5, 0.5], channel=wrong)
    column = cp.Variable((2, 1), nonneg=True)
    with pytest.raises(cl.CvxleakError, match=r"prior\.flatten\(order='C'\) has one"):
        mutual_information(prior=column, channel=[[0.9, 0.1], [0.1, 0.9]])
    told = mutual_information(prior=[0.5, 0.5], channel=cp.bmat(cells))
    value = cp.Problem(cp.Minimize(told), [flip <= 0.2]).solve(solver="CLARABEL")
    assert value == pytest.approx(math.log(2) - entr(0.2) - entr(0.8), abs=1e-7)
    most = mutual_information(prior=column.flatten(order="C"), channel=[[0.9, 0.1], [0.1, 0.9]])
    value = cp.Problem(cp.Maximize(most), [cp.sum(column) == 1]).solve(solver="CLARABEL")
    assert value == pytest.approx(math.log(2) - entr(0.1) - entr(0.9), abs=1e-7)


def test_a_secret_that_the_data_are_correlated_with():
    """scottshufe/HyObscure, PrivCheck.m: hide a trait S that the data X tell, at a limited error.

    There a CVX program for the information of S and the output, with a column for each input. The
    page of terms led to `design_for_prior`, which hides X itself; it now has the line that is right
    here: the channel from S is `rows @ Q`, affine in Q. Independent: S is a fair bit, X is S
    flipped with probability a; by symmetry the best Q flips with D: log 2 - h(a (1-D) + (1-a) D).
    """
    a, error = 0.15, 0.2
    rows = np.array([[1 - a, a], [a, 1 - a]])
    Q = cp.Variable((2, 2), bounds=[0, 1])
    told = mutual_information(prior=[0.5, 0.5], channel=rows @ Q)
    wrong = (Q[0, 1] + Q[1, 0]) / 2
    problem = cp.Problem(cp.Minimize(told), [*row_stochastic(Q), wrong <= error])
    value = problem.solve(solver="CLARABEL")
    flipped = a * (1 - error) + (1 - a) * error
    assert value == pytest.approx(math.log(2) - entr(flipped) - entr(1 - flipped), abs=1e-7)
    whole = cl.design_for_prior([0.5, 0.5], "hamming", error)  # of X, not of S
    assert whole.lower == pytest.approx(math.log(2) - entr(error) - entr(1 - error), abs=1e-7)


def test_private_places_on_a_grid():
    """chatziko/libqif, measure/d_priv.h: channels whose rows differ by exp(epsilon distance).

    Four corners of a square, epsilon 0.7 for a unit of distance: the least expected distance of the
    published place. No builder has metrics, and no page said how; constraints of one's own were
    answered at first, and proved. The page of terms has them now. Independent: SciPy's linear
    program.
    """
    places = np.array([[0, 0], [0, 1], [1, 0], [1, 1.0]])
    distance = np.linalg.norm(places[:, None] - places, axis=2)
    factor = np.exp(0.7 * distance)
    pairs = [(i, j) for i in range(4) for j in range(4) if i != j]

    def private(Q):
        return [Q[i] <= factor[i, j] * Q[j] for i, j in pairs]

    bound = cl.design_for_prior(
        [0.25] * 4, distance, math.log(4), minimize="distortion", constraints=[private]
    )
    unit = np.eye(16).reshape(4, 4, 16)
    limits = np.concatenate([unit[i] - factor[i, j] * unit[j] for i, j in pairs])
    rows = np.kron(np.eye(4), np.ones(4))
    truth = linprog(distance.ravel() / 4, limits, np.zeros(len(limits)), rows, np.ones(4)).fun
    assert bound.lower - 1e-9 <= truth <= bound.upper + 1e-9
    assert bound.status is cl.Status.CERTIFIED
