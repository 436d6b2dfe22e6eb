"""Counts, histograms and sums with noise, as libraries for differential privacy release them."""

import math

import numpy as np
import pytest

from cvxleak import Mechanism, check_claim, measures
from cvxleak.mechanisms import truncated_geometric
from cvxleak.model import Channel
from cvxleak.queries import count


@pytest.mark.parametrize(("people", "epsilon"), [(1000, 1.0), (30, 30.0)])
def test_a_histogram_of_many_people(people, epsilon):
    """IBM/differential-privacy-library #99: a histogram of 1000 numbers at epsilon 1 and 30.

    Does epsilon do what it says for one bin, a count of up to 1000? `truncated_geometric` answered
    that epsilon is infinite, for 1000 people at 1 and for 30 at 30: exp(-1000) is 0 in floats. Such
    probabilities are now stored as 1e-300, in the Laplace and the exponential mechanism too, and
    epsilon is right. Independent: ratios of exp(-epsilon |v - y|) are at most exp(epsilon).
    """
    mechanism = Mechanism(count(people), truncated_geometric(n=people, epsilon=epsilon))
    assert measures.record_dp_epsilon(mechanism) == pytest.approx(epsilon, rel=1e-9)
    rows = mechanism.channel.matrix
    a = math.exp(-epsilon)
    middle = people // 2
    near = slice(middle - 3, middle + 4)
    distances = np.abs(np.arange(-3, 4))
    assert rows[middle, near] == pytest.approx(a**distances * (1 - a) / (1 + a), rel=1e-9)
    assert rows[0, -1] == 1e-300 / (1 + a)


def test_groups_that_are_dropped():
    """OpenMined/PipelineDP #281: groups of few people are kept with the largest private chance.

    Is the truncated geometric strategy (1, 1e-5)-private? Computed in floats, it misses by 1e-16,
    and the answer was "FAIL: (1, 1e-05)-DP; delta is 1e-05". The text now has as many digits as it
    takes to see why; the claim of 1.001e-5 passes. Independent: the recursion of Desfontaines,
    Voss, Gipson and Mandayam (2022), and delta of neighbors by hand.
    """
    epsilon, delta = 1.0, 1e-5
    keep = [0.0]
    for _ in range(40):
        up = math.exp(epsilon) * keep[-1] + delta
        down = 1 - math.exp(-epsilon) * (1 - keep[-1] - delta)
        keep.append(min(up, down, 1.0))
    kept = np.array(keep)
    groups = Mechanism(count(40), Channel(np.column_stack([1 - kept, kept])))
    answer = check_claim(groups, epsilon=epsilon, delta=delta)
    assert "delta is 1e-05:" not in str(answer)
    assert check_claim(groups, epsilon=epsilon, delta=1.001e-5).passed
    least = max(
        np.max([more - math.exp(epsilon) * less, less - math.exp(epsilon) * more])
        for more, less in ((kept[1:], kept[:-1]), (1 - kept[1:], 1 - kept[:-1]))
    )
    assert answer.bound.lower - 1e-12 <= least <= answer.bound.upper + 1e-12
    assert least == pytest.approx(delta)
