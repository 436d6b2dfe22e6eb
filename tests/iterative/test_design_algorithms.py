"""LEAKAGE Algorithms 6 to 11."""

import numpy as np
import pytest

from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.iterative import adaptive_penalty, alternating_design, exponentiated_gradient
from cvxleak.iterative.exponentiated import Penalized, Trade

PARITY = np.indices((2, 2, 2)).sum(axis=0) % 2
ERROR = 1.0 - np.eye(2)[PARITY]
UNIFORM = np.full((2, 2, 2), 1 / 8)
FAST = {"starts": 2, "max_iterations": 4, "max_steps": 40, "max_penalties": 8}


def softplus(z):
    return np.log1p(np.exp(z))


def channel(seed, outputs=2):
    return np.random.default_rng(seed).dirichlet(np.ones(outputs), size=(2, 2, 2))


@pytest.mark.parametrize("goal", ["leakage", "distortion"])
def test_the_penalized_objective_and_its_gradient(goal):
    prior = np.random.default_rng(1).dirichlet(np.ones(8)).reshape(2, 2, 2)
    trade = Trade.checked(prior, UNIFORM, ERROR)
    objective = Penalized(trade, goal, 0.1, 3.0)
    q = channel(2).reshape(8, 2)
    leak, spent = trade.informations(q).max(), trade.distortion(q)
    main, excess = (leak, spent) if goal == "leakage" else (spent, leak)
    assert objective.value(q) == pytest.approx(main + 3 * softplus(excess - 0.1) ** 2)
    gradient, step = objective.gradient(q), 1e-6
    direction = np.random.default_rng(3).normal(size=q.shape)
    direction -= direction.mean(axis=1, keepdims=True)
    change = objective.value(q + step * direction) - objective.value(q - step * direction)
    assert change / (2 * step) == pytest.approx((gradient * direction).sum(), abs=1e-7)


@pytest.mark.parametrize("goal", ["leakage", "distortion"])
@pytest.mark.parametrize("decrease", ["norm", "variance"])
def test_descent_descends_and_stays_on_the_simplex(goal, decrease):
    prior = np.random.default_rng(1).dirichlet(np.ones(8)).reshape(2, 2, 2)
    run = exponentiated_gradient(
        prior, channel(4), UNIFORM, ERROR, 0.1, 2.0, goal=goal, decrease=decrease, max_iterations=50
    )
    assert (np.diff(run.history["objective"]) <= 1e-15).all()
    np.testing.assert_allclose(run.point.sum(axis=-1), 1)
    assert len(run.history["step"]) == run.iterations
    assert run.history["objective"][-1] == run.value


def test_the_euclidean_armijo_test_can_refuse_every_step():
    # Nearly deterministic rows: the gradient is long, but a step along it moves nothing.
    q = np.where(PARITY[..., None] == np.arange(2), 1 - 1e-9, 1e-9)
    arguments = (UNIFORM, q, UNIFORM, ERROR, 0.2, 1.0)
    stuck = exponentiated_gradient(*arguments, decrease="norm")
    assert stuck.iterations == 0
    assert stuck.stopped.startswith("no step met the Armijo test")
    free = exponentiated_gradient(*arguments, decrease="variance", max_iterations=20)
    assert free.iterations > 0


def test_a_slack_budget_is_stopped_by_the_cap_and_said_so():
    run = adaptive_penalty(UNIFORM, UNIFORM, ERROR, 0.9, max_penalties=5, max_steps=20)
    assert run.iterations == 5
    assert run.stopped.startswith("max_penalties=5 reached")
    assert (run.history["residual"] < -0.01).all()
    np.testing.assert_allclose(run.history["penalty"], 1.5 ** -np.arange(5.0))


@pytest.mark.parametrize(("goal", "budget"), [("leakage", 0.15), ("distortion", 0.1)])
def test_the_mechanism_step_returns_a_repaired_point(goal, budget):
    known = np.zeros((2, 2, 2))
    known[0, 0], known[1, 0] = [0.25, 0.0], [0.75, 0.0]
    run = adaptive_penalty(
        known, UNIFORM, ERROR, budget, goal=goal, decrease="variance", max_penalties=20
    )
    trade = Trade.checked(known, UNIFORM, ERROR)
    q = run.point.reshape(8, 2)
    leak, spent = trade.informations(q).max(), trade.distortion(q)
    assert (spent if goal == "leakage" else leak) <= budget + 1e-12
    assert run.value == pytest.approx(leak if goal == "leakage" else spent)


def test_no_value_is_below_the_optimum():
    # b = 0: the optimum is log 2 - h(D).
    h = -0.2 * np.log(0.2) - 0.8 * np.log(0.8)
    for start in (None, 0.6 * channel(7) + 0.4 * np.eye(2)[PARITY]):
        run = alternating_design(UNIFORM, ERROR, 0.2, 0.0, decrease="variance", start=start, **FAST)
        assert run.value >= np.log(2) - h - 1e-9
        spent = (UNIFORM[..., None] * run.point.channel * ERROR).sum()
        assert spent <= 0.2 + 1e-12


def test_the_dual_form_meets_its_budget_under_the_prior_it_reports():
    run = alternating_design(
        UNIFORM, ERROR, 0.2, 1.5, goal="distortion", decrease="variance", **FAST
    )
    assert run.value == pytest.approx((UNIFORM[..., None] * run.point.channel * ERROR).sum())
    leaks = Trade.checked(run.point.prior, UNIFORM, ERROR).informations(
        run.point.channel.reshape(8, 2)
    )
    assert leaks.max() <= 0.2 + 1e-9
    # Parity, n = 3, b = 1.5: L = .17332 needs D = .2, so L = .2 needs less, but more than .1.
    assert 0.1 < run.value


def test_algorithm_1_can_be_the_adversary():
    run = alternating_design(
        np.full((2, 2), 0.25),
        1.0 - np.eye(2)[np.indices((2, 2)).sum(axis=0) % 2],
        0.1,
        0.0,
        adversary="alternating",
        **FAST,
    )
    assert run.value == pytest.approx(0.368064, abs=1e-4)


def test_cycles_are_counted():
    from cvxleak.iterative.alternating_mechanism import _period

    a, b = np.zeros((2, 2)), np.ones((2, 2))
    assert _period([a, b, a]) == 2
    assert _period([a, b, b + 1, a]) == 3
    assert _period([a, a, a]) == 0
    assert _period([a, b]) == 0


def test_bad_arguments():
    with pytest.raises(ValidationError, match="goal"):
        alternating_design(UNIFORM, ERROR, 0.1, 0.0, goal="both")
    with pytest.raises(ValidationError, match="adversary"):
        alternating_design(UNIFORM, ERROR, 0.1, 0.0, adversary="none")
    with pytest.raises(ValidationError, match="decrease"):
        adaptive_penalty(UNIFORM, UNIFORM, ERROR, 0.1, decrease="some")
    for method in (
        lambda **change: adaptive_penalty(UNIFORM, UNIFORM, ERROR, 0.1, **change),
        lambda **change: alternating_design(UNIFORM, ERROR, 0.1, 0.0, **change),
    ):
        for name in ("max_penalties", "max_steps"):
            with pytest.raises(ValidationError, match=name):
                method(**{name: 0})
    with pytest.raises(ValidationError, match="distortion"):
        adaptive_penalty(UNIFORM, UNIFORM, ERROR[0], 0.1)
    with pytest.raises(InfeasibleError, match="least feasible distortion is 1"):
        adaptive_penalty(UNIFORM, UNIFORM, ERROR + 1, 0.5)
    with pytest.raises(InfeasibleError, match="entropy_floor"):
        alternating_design(UNIFORM, ERROR, 0.1, 3.0)
