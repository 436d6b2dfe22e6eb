"""The least epsilon: HAMMING's values, the full linear program, laws, borders, complaints."""

import math
import pickle
import runpy
from pathlib import Path
from types import SimpleNamespace

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak import verify
from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.local_dp import MinLocalDP, class_one_leakage, min_local_dp
from cvxleak.measures import local_dp_epsilon, privacy_profile, worst_case_distortion
from cvxleak.mechanisms import randomized_response
from cvxleak.model import Distortion, Prior
from cvxleak.problem.bound import Status
from cvxleak.sources import SourceSet

tables = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("tables.py"))))
SIX, TEN, class_three = tables.SIX, tables.TEN, tables.class_three
plain_distortion, plain_epsilon = tables.plain_distortion, tables.plain_epsilon


def certified(bound, gap=1e-9):
    assert bound.status is Status.CERTIFIED
    assert bound.gap <= gap
    answer = verify(bound.certificate)
    assert answer.passed, answer.reason
    return bound


@pytest.mark.parametrize(
    ("sources", "budget", "value"),
    [
        *zip(
            [[SIX]] * 7,
            (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.29),
            (5.501258, 4.553877, 3.806662, 3.238678, 2.677279, 2.014903, 1.623623),
            strict=True,
        ),
        *zip(
            [TEN] * 7,
            (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65),
            (4.394449, 3.571096, 2.975530, 2.445686, 1.875141, 1.246532, 0.847298),
            strict=True,
        ),
        (class_three(1), 0.3, 1.54045),
        (class_three(2), 0.3, 1.89712),
        (class_three(3), 0.3, 2.12823),
    ],
)
def test_hamming_figures(sources, budget, value):
    bound = certified(min_local_dp(sources, budget), 1e-11)
    assert bound.upper == pytest.approx(value, abs=6e-6 if value < 2.2 else 6e-7)


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_equals_the_full_program_for_any_class(seed):
    rng = np.random.default_rng(seed)
    size, count = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    P = rng.dirichlet(np.ones(size) * rng.choice([0.3, 1, 3]), size=count)
    budget = float(rng.uniform(0.05, 0.8))
    bound = min_local_dp(P, budget)
    assert bound.upper == pytest.approx(plain_epsilon(P, 1 - np.eye(size), budget), abs=2e-8)
    assert bound.gap < 1e-8


@settings(max_examples=25)
@given(st.integers(0, 10_000))
def test_equals_the_full_program_for_any_distortion(seed):
    rng = np.random.default_rng(seed)
    k, m, count = (int(n) for n in rng.integers((2, 2, 1), (6, 6, 4)))
    P = rng.dirichlet(np.ones(k), size=count)
    d = rng.integers(0, 4, (k, m)).astype(float) if seed % 2 else rng.uniform(0, 1, (k, m))
    least, most = (P @ d.min(axis=1)).max(), plain_distortion(P, d, 1.0)
    budget = least + (most - least) * float(rng.uniform(0.05, 0.95)) + 1e-6
    bound = min_local_dp(P, budget, d)
    assert bound.upper == pytest.approx(plain_epsilon(P, d, budget), abs=2e-8)
    assert bound.gap < 1e-8


def test_the_witness_is_what_is_claimed():
    for sources in (class_three(2), [SIX]):
        bound = certified(min_local_dp(sources, 0.27))
        channel = bound.witness
        assert local_dp_epsilon(channel) == pytest.approx(bound.upper, abs=1e-13)
        hamming = Distortion.hamming(range(6))
        assert worst_case_distortion(channel, sources, hamming) <= 0.27 + 1e-15
        assert np.array_equal(bound.certificate.witness["channel"], channel.matrix)


def test_the_worst_source_alone_asks_for_as_much():
    problem = MinLocalDP(class_three(3), 0.25)
    bound = problem.solve()
    alone = min_local_dp([bound.stats["worst_source"]], 0.25)
    assert alone.upper == pytest.approx(bound.upper, abs=1e-9)
    assert problem.check(bound.stats["worst_source"], bound=bound).feasible


def test_the_hull_changes_nothing():
    # HAMMING Lemma 2
    P = np.random.default_rng(2).dirichlet(np.ones(5), size=3)
    finite, hull = SourceSet(P), SourceSet.hull(P)
    more = SourceSet([*P, P.mean(axis=0), 0.3 * P[0] + 0.7 * P[2]])
    values = [min_local_dp(s, 0.3).upper for s in (finite, hull, more)]
    assert values == pytest.approx([values[0]] * 3, abs=1e-12)


def test_polytopes_equal_their_vertices():
    # Falling order with p_3 >= .1: the vertices are averages of the first i, lifted.
    order = SourceSet.polytope([[-1, 1, 0], [0, -1, 1], [0, 0, -1.0]], [0, 0, -0.1])
    vertices = [[0.8, 0.1, 0.1], [0.45, 0.45, 0.1], [1 / 3, 1 / 3, 1 / 3]]
    for budget in (0.1, 0.3, 0.5):
        one = certified(min_local_dp(order, budget))
        assert one.upper == pytest.approx(min_local_dp(vertices, budget).upper, abs=1e-9)
    box = SourceSet.box([0.4, 0.2, 0.1], [0.6, 0.4, 0.3])
    corners = [
        [0.6, 0.3, 0.1],
        [0.6, 0.2, 0.2],
        [0.5, 0.4, 0.1],
        [0.4, 0.4, 0.2],
        [0.4, 0.3, 0.3],
        [0.5, 0.2, 0.3],
    ]
    d = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    for given_d in (None, d):
        one, other = min_local_dp(box, 0.3, given_d), min_local_dp(corners, 0.3, given_d)
        assert one.upper == pytest.approx(other.upper, abs=1e-8)
        certified(one)


def test_unions_take_the_worse():
    box = SourceSet.box([0.4, 0.2, 0.1], [0.6, 0.4, 0.3])
    law = SourceSet([[0.1, 0.2, 0.7]])
    both = min_local_dp(box | law, 0.25).upper
    assert both >= max(min_local_dp(box, 0.25).upper, min_local_dp(law, 0.25).upper) - 1e-12
    certified(min_local_dp(box | law, 0.25))


@pytest.mark.parametrize("size", [2, 3, 7, 30])
def test_class_one_is_symmetric_response(size):
    anything = SourceSet.box(np.zeros(size), np.ones(size))
    for budget in (1e-9, 0.01, 0.3, (size - 1) / size * 0.999):
        bound = certified(min_local_dp(anything, budget))
        assert bound.upper == pytest.approx(class_one_leakage(size, budget), abs=1e-9)
    assert min_local_dp(anything, 1.0).upper == 0


def test_shadow_price_is_the_slope():
    for problem in (
        lambda D: MinLocalDP(class_three(2), D),
        lambda D: MinLocalDP([SIX], D),
        lambda D: MinLocalDP([[0.5, 0.3, 0.2]], 2 * D, [[0, 1, 2], [1, 0, 1], [2, 1, 0]]),
        lambda D: MinLocalDP([[0.5, 0.3, 0.2]], D, delta=0.02),
    ):
        budget, h = 0.22, 1e-5
        scale = problem(budget).budget / budget
        slope = problem(budget).solve().shadow_prices["budget"]
        ends = [problem(budget + s * h).solve().upper for s in (-1, 1)]
        assert slope == pytest.approx((ends[1] - ends[0]) / (2 * h * scale), rel=1e-3)


@settings(max_examples=15)
@given(st.integers(0, 1000))
def test_laws_in_the_budget_and_the_set(seed):
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(4), size=3)
    budgets = np.sort(rng.uniform(0.05, 0.7, size=3))
    values = [min_local_dp(P, float(D)).upper for D in budgets]
    assert values == sorted(values, reverse=True)
    assert min_local_dp(P[:2], float(budgets[0])).lower <= values[0] + 1e-12
    order = rng.permutation(4)
    assert min_local_dp(P[:, order], float(budgets[1])).upper == pytest.approx(values[1], abs=1e-9)


@pytest.mark.parametrize("solver", ["CLARABEL", "HIGHS"])
def test_cvxpy_agrees(solver):
    for sources, d in (
        (class_three(1), None),
        (SourceSet.box([0.4, 0.2, 0.1], [0.6, 0.4, 0.3]), [[0, 1, 2], [1, 0, 1], [2, 1, 0]]),
    ):
        problem = MinLocalDP(sources, 0.25, d)
        bound = problem.solve()
        epsilon = cp.Parameter(nonneg=True)
        program = problem.to_cvxpy(epsilon)
        assert program.is_dpp()
        epsilon.value = bound.upper
        assert program.solve(solver=solver) == pytest.approx(0.25, abs=1e-6)
        epsilon.value = bound.upper * 0.98
        assert program.solve(solver=solver) > 0.25 + 1e-5


def test_approximate_privacy():
    P, d = class_three(1), None
    exact = min_local_dp(P, 0.25).upper
    values = []
    for delta in (1e-6, 0.01, 0.1, 0.3):
        bound = certified(min_local_dp(P, 0.25, d, delta=delta))
        values.append(bound.upper)
        assert privacy_profile(bound.witness, bound.upper + 1e-12) <= delta + 1e-12
        epsilon = cp.Parameter(nonneg=True, value=bound.upper)
        program = MinLocalDP(P, 0.25, d, delta=delta).to_cvxpy(epsilon)
        assert program.solve() == pytest.approx(0.25, abs=1e-6)
    assert values[0] == pytest.approx(exact, abs=1e-4)
    assert values == sorted(values, reverse=True)
    assert min_local_dp(P, 0.25, delta=1.0).upper == 0
    other = certified(
        min_local_dp(P, 0.4, np.abs(np.subtract.outer(range(6), range(4))), delta=0.05)
    )
    assert other.upper > 0


def test_borders():
    # A constant output meets D >= 1 - p_1, exactly: the float .3 is less than 1 - .7 as stored.
    just = 1 - 0.75
    assert min_local_dp([[0.75, 0.15, 0.1]], just).upper == 0
    below = min_local_dp([[0.75, 0.15, 0.1]], just - 1e-9)
    assert below.lower > 1
    for n in (1, 2, 3):
        assert min_local_dp(class_three(n), 0.3).gap < 1e-11
    assert min_local_dp([[1.0, 0, 0]], 0.0).upper == 0
    assert min_local_dp([[1.0]], 0.0).upper == 0
    for d in (None, [[0, 1], [1, 0.0]], [[0, 1], [2, 0.0]]):
        bound = min_local_dp([[0.5, 0.5]], 0.0, d)
        assert (bound.lower, bound.upper) == (math.inf, math.inf)
        assert verify(bound.certificate).passed
    assert certified(min_local_dp([[0.5, 0.5, 0]], 1e-3)).upper == pytest.approx(
        plain_epsilon([[0.5, 0.5, 0]], 1 - np.eye(3), 1e-3), abs=1e-7
    )


def test_large_and_many():
    P = np.random.default_rng(5).dirichlet(np.ones(200), size=5)
    bound = min_local_dp(P, 0.5)
    assert bound.gap < 1e-11
    assert bound.upper == pytest.approx(5.2726069639, abs=1e-9)


def test_check_channels_and_sources():
    problem = MinLocalDP([SIX], 0.2)
    bound = problem.solve()
    krr = randomized_response(6, math.log(20))
    answer = problem.check(krr, bound=bound)
    # Rounded towards privacy, it is at its distortion but for the last digits.
    distortion = worst_case_distortion(krr, [SIX], Distortion.hamming(range(6)))
    assert answer.feasible is (distortion <= 0.2 + 1e-12)
    assert answer.value == pytest.approx(math.log(20))
    assert problem.check(bound.witness, bound=bound).shortfall[1] < 1e-9
    rough = np.eye(6) * 1.1 - 0.01
    assert problem.check(rough, bound=bound).violations["entries are non-negative"] > 0
    assert not problem.check([0.2, 0.2, 0.2, 0.2, 0.1, 0.1], bound=bound).feasible
    two = MinLocalDP([SIX], 0.2, delta=0.01)
    assert two.check(krr).value < math.log(20)


def test_time_limit_still_brackets():
    d = np.abs(np.subtract.outer(np.arange(8), np.arange(8)))
    P = np.random.default_rng(0).dirichlet(np.ones(8), size=2)
    rough = min_local_dp(P, 0.5, d, time_limit=0.0)
    good = min_local_dp(P, 0.5, d)
    assert rough.lower <= good.upper
    assert rough.upper >= good.lower
    assert rough.refine(1e-9).gap < 1e-9


def test_labels_follow():
    laws = [Prior([0.7, 0.2, 0.1], ["a", "b", "c"])]
    d = Distortion([[0, 1], [1, 0], [2, 2]], ["b", "a", "c"], ["no", "yes"])
    bound = min_local_dp(laws, 0.6, d)
    assert bound.witness.inputs == ("a", "b", "c")
    assert bound.witness.outputs == ("no", "yes")
    same = min_local_dp([[0.7, 0.2, 0.1]], 0.6, [[1, 0], [0, 1], [2, 2]])
    assert bound.upper == pytest.approx(same.upper, abs=1e-9)


def test_problems_are_values():
    one = MinLocalDP([SIX], 0.2)
    assert pickle.loads(pickle.dumps(one)) == one
    assert one == MinLocalDP(SourceSet([SIX]), 0.2)
    assert one != MinLocalDP([SIX], 0.3)


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        (([SIX], 1.2), {}, r"budget: found 1.2"),
        (([SIX], -0.1), {}, r"budget: found -0.1"),
        (([[0.5, 0.6]], 0.1), {}, "sources: .*sums to"),
        (([SIX], 0.1), {"delta": 2}, "delta"),
        (([SIX], 0.1, np.eye(3)), {}, "distortion: found 3 rows"),
        (([SIX], 0.1), {"tol": -1}, "tol"),
    ],
)
def test_complaints(arguments, options, text):
    with pytest.raises(ValidationError, match=text):
        min_local_dp(*arguments, **options)


def test_infeasible_states_the_least_budget():
    d = [[1, 2], [1, 2], [0, 3]]
    with pytest.raises(InfeasibleError, match=r"least worst-case distortion is 0\.8") as error:
        min_local_dp([[0.5, 0.3, 0.2]], 0.5, d)
    least = float(str(error.value).split()[-1])
    assert min_local_dp([[0.5, 0.3, 0.2]], least, d).upper >= 0
