"""Capacities, information and guesses, as people elsewhere ask for them."""

import math

import cvxpy as cp
import numpy as np
import pytest
from scipy.special import entr, rel_entr
from scipy.stats import norm

import cvxleak as cl
from cvxleak import measures
from cvxleak.capacities import Capacity
from cvxleak.mechanisms import gaussian_peak_capacity, randomized_response
from cvxleak.model import Channel, Prior

NATS = math.log(2)
"""One bit."""


def test_capacity_of_a_large_symmetric_channel_in_bits():
    """WICG/attribution-reporting-api #951: how many bits a report about an advertisement tells.

    A report is one of 2925 states through randomized response with epsilon 14; the documents state
    11.46 bits. `capacity(..., units="bits")` failed with the name of a private method; the error
    now names the options and `bound.to("bits")`. The matrix of 8.6 million cells takes 3 seconds,
    so the test has 300 states. Independent: the closed form log k - h(p) - p log(k - 1).
    """

    def bits(k, epsilon):
        flip = (k - 1) / (k - 1 + math.exp(epsilon))
        return (math.log(k) - entr(flip) - entr(1 - flip) - flip * math.log(k - 1)) / NATS

    assert bits(2925, 14) == pytest.approx(11.46, abs=0.005)
    channel = randomized_response(300, 9.0)
    with pytest.raises(TypeError, match=r"has no option 'units'; .*bound\.to\(\"bits\"\)"):
        cl.capacity(channel, units="bits")
    bound = cl.capacity(channel).to("bits")
    assert bound.lower <= bits(300, 9.0) + 1e-12
    assert bound.upper >= bits(300, 9.0) - 1e-12
    assert bound.status is cl.Status.CERTIFIED


def test_capacity_where_inputs_have_a_cost():
    """NooriDan/BlahutArimoto, README: the capacity of a channel whose input has a limited power.

    Inputs -2, ..., 2 in Gaussian noise, seen in cells, with a mean power of at most 1.
    `capacity(..., constraints=...)` failed with the name of a private method, and no page said how
    else. The error now names the options, and the guide extends `Capacity.to_cvxpy`, with an upper
    bound by duality. Independent: Blahut's algorithm with a price on the cost.
    """
    inputs = np.arange(-2.0, 3.0)
    edges = np.concatenate([[-np.inf], np.linspace(-4, 4, 17), [np.inf]])
    rows = np.diff(norm.cdf(edges[None, :] - inputs[:, None]), axis=1)
    cost, most = inputs**2, 1.0
    with pytest.raises(TypeError, match="has no option 'constraints'; it has 'tol'"):
        cl.capacity(rows, constraints=[])

    plain = Capacity(rows).to_cvxpy()
    law = plain.var_dict["input"]
    limit = cost @ law <= most
    value = cp.Problem(plain.objective, [*plain.constraints, limit]).solve(solver="CLARABEL")
    told = rel_entr(rows, law.value @ rows).sum(axis=1)
    upper = (told - limit.dual_value * (cost - most)).max()

    def blahut(price):
        p = np.full(5, 0.2)
        for _ in range(2000):
            p = p * np.exp(rel_entr(rows, p @ rows).sum(axis=1) - price * cost)
            p /= p.sum()
        return p

    p = blahut(limit.dual_value)
    assert p @ cost == pytest.approx(most, abs=1e-4)
    lower = measures.mutual_information(prior=p, channel=rows)
    assert lower - 1e-4 <= value <= upper + 1e-6
    assert upper - lower < 1e-4


def test_capacity_of_a_limited_peak():
    """NooriDan/BlahutArimoto, README: the capacity of Gaussian noise for an input of limited peak.

    Peak 1.5, variance 1; a grid and float32 there. Answered at first:
    `mechanisms.gaussian_peak_capacity`, without a grid. Independent: up to a peak of 1.66 the two
    ends are optimal (Smith 1971), and their information is an integral.
    """
    found = gaussian_peak_capacity(peak=1.5, variance=1.0)
    y = np.linspace(-12, 12, 240001)
    density = (norm.pdf(y - 1.5) + norm.pdf(y + 1.5)) / 2
    truth = entr(density).sum() * (y[1] - y[0]) - math.log(2 * math.pi * math.e) / 2
    assert found.lower - 1e-8 <= truth <= found.upper + 1e-8
    assert found.upper - found.lower < 1e-6


@pytest.mark.parametrize(
    ("p", "q"),
    [
        ([0.3, 0.3, 0.4], [0.5, 0.5, 0.0]),
        ([0.0, 1.0], [5e-324, 1.0]),
        (
            [np.nextafter(0.5, 0), np.nextafter(0.5, 1)],
            [np.nextafter(0.5, 1), np.nextafter(0.5, 0)],
        ),
    ],
    ids=["zero", "subnormal", "equal up to rounding"],
)
def test_jensen_shannon_divergence(p, q):
    """drostlab/philentropy #1, scipy/scipy #19436 and #20779: zeros, subnormals, almost equal.

    There the Jensen-Shannon divergence was NaN or infinite. Here "jensen-shannon" is none of the
    names of `f_divergence`, and no page said what it is here: the information of a fair coin about
    which distribution was drawn from. The page of terms says so now. Independent: the definition.
    """
    found = measures.mutual_information(prior=[0.5, 0.5], channel=[p, q])
    p, q = np.array(p), np.array(q)
    middle = p / 2 + q / 2
    middle = np.where(middle > 0, middle, p + q)  # half of 5e-324 is 0
    truth = (rel_entr(p, middle).sum() + rel_entr(q, middle).sum()) / 2
    assert found == pytest.approx(truth, abs=1e-15)
    assert 0 <= found <= NATS


def test_information_of_a_table_of_counts():
    """bowman-lab/enspara #139 and dit/dit #198: the information of a joint table, with zeros.

    Counts of pairs; one row and some cells are zero. `mutual_information` asks for a prior and a
    channel; of a joint table as the channel it said that a row does not sum to 1, and no page had
    joint distributions. The error and the page of terms now have the prior and the channel of one.
    Independent: H(X) + H(Y) - H(X, Y).
    """
    counts = np.array([[12, 0, 3], [0, 0, 0], [0, 9, 1], [5, 5, 0]])
    with pytest.raises(cl.CvxleakError, match="the sums of its rows are the prior"):
        measures.mutual_information(prior=[0.25] * 4, channel=counts / counts.sum())
    joint = counts[counts.sum(axis=1) > 0] / counts.sum()
    rows = joint / joint.sum(axis=1, keepdims=True)
    found = measures.mutual_information(prior=joint.sum(axis=1), channel=rows)
    shares = counts / counts.sum()
    truth = entr(shares.sum(axis=0)).sum() + entr(shares.sum(axis=1)).sum() - entr(shares).sum()
    assert found == pytest.approx(truth, abs=1e-14)


def test_conditional_information_of_a_table():
    """goodarzilab/pyPAGE #1: I(A;B|C) of three variables that were counted.

    Answered at first, and by its axes: the last one is the condition; counts have to be divided by
    their sum, as the error says. Independent: the mean over C of the information of its slice.
    """
    counts = np.array([[[3, 0], [1, 2]], [[0, 4], [2, 0]]])
    with pytest.raises(cl.CvxleakError, match="joint: sums to 12"):
        measures.conditional_mutual_information(counts)
    found = measures.conditional_mutual_information(counts / counts.sum())
    truth = 0.0
    for c in range(2):
        joint = counts[:, :, c] / counts[:, :, c].sum()
        margins = entr(joint.sum(axis=0)).sum() + entr(joint.sum(axis=1)).sum()
        truth += counts[:, :, c].sum() / counts.sum() * (margins - entr(joint).sum())
    assert found == pytest.approx(truth, abs=1e-14)


def test_guesses_at_a_key_from_an_execution_trace():
    """microwalk-project/Microwalk #6: min-entropy and guessing entropy of what a trace tells.

    A program of constant time but for the number of ones of its key of 10 bits: 1024 keys, 11
    traces. Answered at first. Independent: the sizes of the classes of keys with equal traces.
    """
    traces = np.array([key.bit_count() for key in range(1024)])
    channel = np.eye(11)[traces]
    uniform = np.full(1024, 1 / 1024)
    sizes = np.bincount(traces)
    told = measures.min_entropy_leakage(prior=uniform, channel=channel)
    assert told == pytest.approx(math.log(11), abs=1e-12)
    guesses = measures.posterior_guessing_entropy(prior=uniform, channel=channel)
    assert guesses == pytest.approx((sizes * (sizes + 1) / 2).sum() / 1024, abs=1e-9)
    information = measures.mutual_information(prior=uniform, channel=channel)
    assert information == pytest.approx((sizes / 1024 * np.log(1024 / sizes)).sum(), abs=1e-12)


def test_inner_and_outer_distributions():
    """ramongonze/qif-library, first page: the hyper-distribution of a prior with a zero.

    Four inputs, one of probability zero, and four outputs. Bayes vulnerability 1/3 and 1/2 was
    answered at first; the posteriors of y2 and y3 are equal but were not merged by `reduced`, since
    their columns differ at the input that cannot occur, and no page had hyper-distributions. The
    page of terms has them now. Independent: outer (1/4, 3/4), inners (2/3, 0, 1/3) and
    (2/9, 4/9, 1/3).
    """
    matrix = [
        [1 / 2, 1 / 6, 1 / 3, 0],
        [0, 1 / 3, 2 / 3, 0],
        [0, 1 / 2, 0, 1 / 2],
        [1 / 4, 1 / 4, 1 / 2, 0],
    ]
    channel = Channel(matrix, ["x1", "x2", "x3", "x4"], ["y1", "y2", "y3", "y4"])
    prior = Prior({"x1": 1 / 3, "x2": 1 / 3, "x3": 0, "x4": 1 / 3})
    assert measures.bayes_vulnerability(prior) == pytest.approx(1 / 3)
    found = measures.posterior_bayes_vulnerability(prior=prior, channel=channel)
    assert found == pytest.approx(1 / 2)
    possible = channel.select(["x1", "x2", "x4"]).reduced()
    assert possible.outputs == ("y1", ("y2", "y3"))
    law = {x: 1 / 3 for x in possible.inputs}
    assert possible.output(law).probabilities == pytest.approx([1 / 4, 3 / 4])
    inners = possible.posterior(law).matrix
    assert inners == pytest.approx(np.array([[2 / 3, 0, 1 / 3], [2 / 9, 4 / 9, 1 / 3]]))
