from fractions import Fraction
from itertools import chain, combinations

import numpy as np
import pytest

from cvxleak.capacities import additive_bayes_capacity, bayes
from cvxleak.core.errors import ValidationError
from cvxleak.measures import bayes_vulnerability, gain_leakage, posterior_bayes_vulnerability
from cvxleak.model import Channel, Guess, Prior


def best_subset(rows):
    """The best rise under a prior that is uniform on a set of inputs: all sets, one by one."""
    k = len(rows)
    sets = chain.from_iterable(combinations(range(k), size) for size in range(1, k + 1))
    return max((rows[list(held)].max(axis=0).sum() - 1) / len(held) for held in sets)


@pytest.mark.parametrize("seed", range(8))
def test_the_capacity_is_the_best_subset(seed):
    rng = np.random.default_rng(seed)
    k, m = rng.integers(2, 10), rng.integers(2, 7)
    rows = rng.dirichlet(np.full(m, 0.3), size=k)
    found = additive_bayes_capacity(rows)
    assert found.lower <= found.upper <= found.lower + 2e-12
    assert found.lower == pytest.approx(best_subset(rows), abs=1e-12)
    assert gain_leakage(rows, found.prior, Guess()) == pytest.approx(found.lower, abs=1e-12)
    for prior in rng.dirichlet(np.full(k, 0.5), size=200):
        rise = posterior_bayes_vulnerability(rows, prior) - bayes_vulnerability(prior)
        assert rise <= found.upper


def test_extremes():
    assert additive_bayes_capacity(np.eye(4))[:2] == (0.75, 0.75)
    for blind in ([[0.5, 0.5]] * 3, [[0.3, 0.7]]):
        assert additive_bayes_capacity(blind)[:2] == pytest.approx((0, 0), abs=1e-14)
    third = Channel([["1/3", "2/3"], ["2/3", "1/3"]], ["a", "b"])
    found = additive_bayes_capacity(third)
    assert found.prior == Prior.uniform(["a", "b"])
    assert Fraction(found.lower) <= Fraction(1, 6) <= Fraction(found.upper)
    assert found.upper - found.lower < 2e-12


def test_the_ends_hold_where_the_search_is_cut_short(monkeypatch):
    rows = np.random.default_rng(1).dirichlet(np.full(8, 0.4), size=14)
    truth = additive_bayes_capacity(rows)
    assert truth.upper - truth.lower < 2e-12
    assert truth.lower == pytest.approx(best_subset(rows), abs=1e-12)
    for nodes in (0, 1, 5, 15):
        monkeypatch.setattr(bayes, "MOST_NODES", nodes)
        cut = additive_bayes_capacity(rows)
        assert cut.lower <= truth.lower <= truth.upper <= cut.upper + 1e-15


def test_refuses_what_is_no_channel():
    with pytest.raises(ValidationError, match="channel: row 0 sums to"):
        additive_bayes_capacity([[0.5, 0.6]])
