"""Audits of outputs with any density: against integrals, and against noise with its own bounds."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import entr

from cvxleak import Mechanism, record_leakage, verify
from cvxleak.audit import group_leakage
from cvxleak.model import BoundedDensity, ChannelSet, Gaussian
from cvxleak.problem import Status, Stopped
from cvxleak.queries import count


def bounded(laws, edges, moves, off=1e-13):
    """The output with these laws in cells between these edges."""
    p = np.array([np.diff(law.cdf(edges)) for law in laws])
    return BoundedDensity(ChannelSet(np.maximum(p - off, 0), np.minimum(p + off, 1)), moves)


def moves_of(laws, inner):
    """How far log-densities that have their peak at an edge move; nothing is known further out."""
    moved = np.array([np.abs(np.diff(law.logpdf(inner))) for law in laws])
    return np.pad(moved + 1e-12, ((0, 0), (1, 1)), constant_values=math.inf)


def test_noise_that_grows_with_the_value_is_the_integral():
    laws = [stats.norm(0, 1), stats.norm(2, 1.5)]

    def integrand(y):
        p, q = (law.pdf(y) for law in laws)
        return entr((p + q) / 2) - (entr(p) + entr(q)) / 2

    exact = quad(integrand, -12, 16, epsabs=1e-12, limit=200)[0]
    inner = np.arange(-160, 241) / 20
    output = bounded(laws, np.concatenate([[-np.inf], inner, [np.inf]]), moves_of(laws, inner))
    query = count(1)
    bound = record_leakage(Mechanism(query, output), math.log(2), tol=1e-2)
    assert bound.status is Status.CERTIFIED
    assert bound.lower - 1e-9 <= exact <= bound.upper + 1e-9
    assert verify(bound.certificate).passed


def test_other_bounds_on_gaussian_noise_bracket_the_same():
    laws = [stats.norm(v, 1) for v in range(3)]
    inner = np.arange(-350, 551) / 50
    output = bounded(laws, np.concatenate([[-np.inf], inner, [np.inf]]), moves_of(laws, inner))
    for leakage in (
        lambda m: record_leakage(m, 1.0, tol=1e-3),
        lambda m: group_leakage(m, 1.0, 2, tol=1e-3),
    ):
        own, other = (leakage(Mechanism(count(2), noise)) for noise in (Gaussian(1), output))
        assert other.gap <= 1e-2 * other.upper
        assert max(own.lower, other.lower) <= min(own.upper, other.upper)


def test_what_is_not_known_stays_open():
    laws = [stats.norm(v, 1) for v in range(2)]
    edges = np.array([-np.inf, 0, 1, np.inf])
    coarse = record_leakage(Mechanism(count(1), bounded(laws, edges, np.full((2, 3), 2.0))), 0.0)
    assert coarse.status is Status.BRACKETED
    assert coarse.stats["stopped"] is Stopped.NO_PROGRESS
    exact = bounded(laws, edges, np.zeros((2, 3)), 0.0).masses.center
    cells = record_leakage(Mechanism(count(1), exact), 0.0)
    assert coarse.lower == pytest.approx(cells.lower, abs=1e-9)
    assert coarse.upper == pytest.approx(cells.upper + 0.5, abs=1e-4)
    nothing = bounded(laws, edges, np.full((2, 3), math.inf))
    assert record_leakage(Mechanism(count(1), nothing), 0.0).upper == pytest.approx(math.log(2))
    wide = bounded(laws, edges, np.zeros((2, 3)), 1e-3)
    found = record_leakage(Mechanism(count(1), wide), 0.0)
    assert found.lower < cells.lower < cells.upper < found.upper
