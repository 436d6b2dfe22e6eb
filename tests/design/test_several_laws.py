"""Designs for several known laws: three forms that agree, a conic solver, and mirror-prox."""

import cvxpy as cp
import numpy as np
import pytest

from cvxleak.core.clock import Clock
from cvxleak.design.rate_distortion import best_for_law
from cvxleak.design.several_laws import best_for_laws
from cvxleak.iterative import mirror_prox
from cvxleak.measures import mutual_information


def case(seed):
    rng = np.random.default_rng(seed)
    laws, sources = rng.dirichlet(np.ones(8), size=2), rng.dirichlet(np.ones(8), size=2)
    return laws, sources, rng.random((8, 4))


def worst(laws, channel):
    return max(mutual_information(channel, law) for law in laws)


def conic(laws, sources, d, budget):
    q, level = cp.Variable((8, 4), nonneg=True), cp.Variable()
    rules = [cp.sum(q, axis=1) == 1]
    rules += [cp.sum(cp.multiply(p[:, None] * d, q)) <= budget for p in sources]
    for law in laws:
        product = cp.outer(law, law @ q)
        rules.append(cp.sum(cp.rel_entr(cp.multiply(law[:, None], q), product)) <= level)
    return cp.Problem(cp.Minimize(level), rules).solve(solver="CLARABEL")


@pytest.mark.parametrize("seed", range(4))
def test_three_forms_agree_with_each_other_and_with_a_conic_solver(seed):
    laws, sources, d = case(seed)
    low = max(p @ d.min(axis=1) for p in sources)
    high = min(max(p @ d[:, y] for p in sources) for y in range(4))
    budget = low + 0.15 * (high - low)
    run = best_for_laws(laws, sources, d, "information", budget, 1e-9, Clock())
    value = worst(laws, run.channel)
    assert value == pytest.approx(conic(laws, sources, d, budget), abs=1e-6)
    slope = float(run.prices.sum())
    both = best_for_laws(laws, sources, d, "sum", slope, 1e-9, Clock())
    total = worst(laws, both.channel) + slope * both.distortion
    assert total == pytest.approx(value + slope * budget, abs=1e-8)
    back = best_for_laws(laws, sources, d, "distortion", value, 1e-9, Clock())
    assert back.distortion == pytest.approx(budget, abs=1e-7)
    first_order = mirror_prox(laws, sources, d, slope, tol=1e-4, max_iterations=3000)
    assert first_order.history["lower"][-1] <= total + 1e-9
    assert total <= first_order.value + 1e-8


def test_one_law_is_the_rate_distortion_function():
    rng = np.random.default_rng(3)
    p, d = rng.dirichlet(np.ones(10)), rng.random((10, 7))
    budget = 0.5 * (p @ d.min(axis=1)) + 0.5 * (p @ d).min()
    one = best_for_laws(p[None], p[None], d, "information", budget, 1e-9, Clock())
    other = best_for_law(p, d, "information", budget, 1e-9, Clock())
    value = mutual_information(other.channel, p)
    assert mutual_information(one.channel, p) == pytest.approx(value, abs=1e-8)
