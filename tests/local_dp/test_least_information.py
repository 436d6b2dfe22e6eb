"""The least information: closed forms, the iteration that shares nothing, hulls and finite sets."""

import math
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from cvxleak import verify
from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.iterative import information_saddle
from cvxleak.local_dp import (
    MinInformation,
    class_one_information,
    distortion_thresholds,
    min_information,
    min_local_dp,
)
from cvxleak.measures import mutual_information, worst_case_distortion
from cvxleak.model import Distortion
from cvxleak.sources import SourceSet

tables = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("tables.py"))))
SIX, TEN = tables.SIX, tables.TEN


def certified(bound, gap=1e-7):
    assert bound.gap <= gap
    answer = verify(bound.certificate)
    assert answer.passed, answer.reason
    return bound


@pytest.mark.parametrize("size", [2, 3, 6])
def test_class_one_closed_form(size):
    whole = SourceSet.box(np.zeros(size), np.ones(size))
    for budget in (0.05, 0.3):
        bound = certified(min_information(whole, budget))
        assert bound.lower - 1e-7 <= class_one_information(size, budget) <= bound.upper + 1e-7


def test_binary_rate_distortion():
    def h(p):
        return -p * math.log(p) - (1 - p) * math.log(1 - p)

    for p, D in ((0.3, 0.1), (0.2, 0.05), (0.5, 0.2)):
        assert certified(min_information([[p, 1 - p]], D)).upper == pytest.approx(
            h(p) - h(D), abs=1e-7
        )


@pytest.mark.parametrize(
    ("parts", "budget"),
    [
        ([[[0.5, 0.3, 0.2]]], 0.1),
        pytest.param([[SIX]], 0.1, marks=pytest.mark.slow),
        ([[SIX], [SIX[::-1]]], 0.1),
        ([[SIX, SIX[::-1]]], 0.1),
        pytest.param([[TEN[0]], [TEN[1]]], 0.3, marks=pytest.mark.slow),
        ([[[0.5, 0.3, 0.2], [0.2, 0.2, 0.6]], [[0.1, 0.8, 0.1]]], 0.25),
    ],
)
def test_agrees_with_the_iteration(parts, budget):
    sources = SourceSet.hull(parts[0])
    for part in parts[1:]:
        sources = sources | SourceSet.hull(part)
    bound = certified(min_information(sources, budget))
    run = information_saddle(parts, 1 - np.eye(sources.size), budget)
    assert run.value == pytest.approx(bound.upper, abs=2e-7)


def test_other_distortions_and_polytopes():
    d = np.abs(np.subtract.outer(np.arange(4), np.arange(3)))
    P = np.random.default_rng(1).dirichlet(np.ones(4), size=2)
    bound = certified(min_information(SourceSet.hull(P), 0.5, d))
    run = information_saddle([P], d, 0.5)
    assert run.value == pytest.approx(bound.upper, abs=2e-7)
    box = SourceSet.box([0.4, 0.2, 0.1], [0.6, 0.4, 0.3])
    corners = [[0.6, 0.3, 0.1], [0.6, 0.2, 0.2], [0.5, 0.4, 0.1]]
    corners += [[0.4, 0.4, 0.2], [0.4, 0.3, 0.3], [0.5, 0.2, 0.3]]
    one, other = min_information(box, 0.2), min_information(SourceSet.hull(corners), 0.2)
    assert certified(one).upper == pytest.approx(certified(other).upper, abs=2e-7)


def test_finite_sets_are_not_their_hull():
    sure = SourceSet([[1.0, 0.0], [0.0, 1.0]])
    assert min_information(sure, 0.1).upper < 1e-7
    assert min_information(sure.convex_hull(), 0.1).lower > 0.36
    P = SourceSet(TEN)
    assert min_information(P, 0.3).lower <= min_information(P.convex_hull(), 0.3).upper


def test_saddle_point():
    problem = MinInformation(SourceSet.hull([SIX, SIX[::-1]]), 0.15)
    bound = problem.solve()
    (worst,) = bound.stats["worst_sources"]
    # Against the worst source alone the channel can do no better, and leaks as much.
    assert min_information([worst], 0.15).upper <= bound.upper + 1e-7
    assert mutual_information(bound.witness, worst) == pytest.approx(bound.upper, abs=1e-6)
    value = problem.check(bound.witness, bound=bound).value
    assert value == pytest.approx(bound.upper, abs=1e-4)
    assert value >= bound.upper - 1e-8
    assert problem.check(worst, bound=bound).feasible


def test_the_witness_meets_the_budget():
    bound = min_information(TEN, 0.25)
    hamming = Distortion.hamming(range(10))
    assert worst_case_distortion(bound.witness, TEN, hamming) <= 0.25
    assert max(mutual_information(bound.witness, p) for p in TEN) == pytest.approx(bound.upper)


@pytest.mark.parametrize("laws", [[SIX], TEN, [[0.6, 0.4, 0.0], [0.5, 0.3, 0.2]]])
def test_zero_from_the_last_threshold_on(laws):
    # HAMMING Lemma 6
    last = distortion_thresholds(laws)[-2]
    assert min_information(laws, last + 1e-9).upper < 1e-12
    assert min_information(laws, last - 1e-3).lower > 0


def test_information_is_below_differential_privacy():
    for budget in (0.05, 0.15, 0.25):
        assert min_information([SIX], budget).upper <= min_local_dp([SIX], budget).lower


def test_information_is_convex_in_the_budget():
    budgets = np.linspace(0.05, 0.28, 6)
    values = [min_information([SIX], float(D)).upper for D in budgets]
    assert (np.diff(values) < 0).all()
    assert (np.diff(values, 2) > -1e-7).all()


def test_slope():
    h = 1e-4
    ends = [min_information([SIX], 0.2 + s * h).upper for s in (-1, 1)]
    slope = min_information([SIX], 0.2).shadow_prices["budget"]
    assert slope == pytest.approx((ends[1] - ends[0]) / (2 * h), rel=1e-3)


def test_least_distortion_itself():
    assert min_information([SIX], 0.0).upper == pytest.approx(-np.dot(SIX, np.log(SIX)), abs=1e-7)


def test_another_solver_and_cvxpy():
    problem = MinInformation([SIX, SIX[::-1]], 0.2)
    bound = problem.solve()
    assert problem.to_cvxpy().solve(solver="CLARABEL") == pytest.approx(bound.upper, abs=1e-6)
    rough = problem.solve(solver="SCS", solver_options={"eps_abs": 1e-7, "eps_rel": 1e-7})
    assert rough.lower <= bound.upper
    assert rough.upper >= bound.lower
    assert rough.gap < 1e-3


def test_complaints():
    with pytest.raises(ValidationError, match="budget"):
        min_information([SIX], 2)
    with pytest.raises(InfeasibleError, match="least worst-case distortion"):
        min_information([[0.5, 0.5]], 0.1, [[1, 2], [1, 3]])
    with pytest.raises(ValidationError, match="solver: found 'HIGHS', which cannot take"):
        min_information([SIX], 0.1, solver="HIGHS")


def test_next_to_the_least_budget_of_one_source():
    """Only the rows of the source that is tight come near their cheapest outputs."""
    laws = [[0.5006832273511608, 0.49931677264883917], [1.0, 0.0]]
    d = [[0.94, 0.38, 0.6], [0.1, 0.66, 0.78]]
    bound = MinInformation(laws, 0.380000001398087, d).solve()
    assert verify(bound.certificate).passed
    assert bound.gap < 1e-6
    # The first row is its cheapest output, and the second has that output half of the time.
    again = MinInformation(laws, 0.38 + 1e-6, d).solve()
    assert 0 <= bound.lower - again.upper < 1e-3


def test_a_solver_that_fails_gets_more_room():
    box = SourceSet.box([0.03, 0.03, 0.02, 0.09], [0.91, 0.28, 0.59, 0.28])
    d = [[0.37, 0.41, 0.95], [0.27, 0.58, 0.72], [0.09, 0.44, 0.49], [0.07, 0.66, 0.06]]
    bound = MinInformation(box, 0.3335, d).solve()
    assert verify(bound.certificate).passed
    assert 0.592 < bound.lower <= bound.upper < 0.594


def test_no_distortion_at_all():
    """Over a set that has the uniform law, log k."""
    for size in (2, 3, 4):
        bound = min_information(SourceSet.box([0.0] * size, [0.9] * size), 0.0)
        assert bound.gap <= 1e-7
        assert bound.lower <= math.log(size) <= bound.upper
