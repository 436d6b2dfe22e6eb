"""LEAKAGE Algorithms 6 to 11."""

import numpy as np
import pytest

from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.design import MinLeakage
from cvxleak.iterative import (
    adaptive_penalty,
    alternating_design,
    exponentiated_gradient,
    penalized_objective,
)
from cvxleak.iterative.exponentiated import Trade
from cvxleak.queries import parity

PARITY = np.indices((2, 2, 2)).sum(axis=0) % 2
ERROR = 1.0 - np.eye(2)[PARITY]
UNIFORM = np.full((2, 2, 2), 1 / 8)
FAST = {"starts": 2, "max_iterations": 4, "max_steps": 40, "max_penalties": 8}


def softplus(z):
    return np.log1p(np.exp(z))


def channel(seed, outputs=2):
    return np.random.default_rng(seed).dirichlet(np.ones(outputs), size=(2, 2, 2))


def random_prior():
    return np.random.default_rng(1).dirichlet(np.ones(8)).reshape(2, 2, 2)


@pytest.mark.parametrize("goal", ["leakage", "distortion"])
def test_the_penalized_objective_and_its_gradient(goal):
    prior, q = random_prior(), channel(2)
    trade = Trade.checked(prior, UNIFORM, ERROR)
    leaks = trade.informations(q.reshape(8, 2))
    leak, spent = leaks.max(), (UNIFORM[..., None] * q * ERROR).sum()

    def objective(q, **record):
        return penalized_objective(prior, q, UNIFORM, ERROR, 0.1, 3.0, goal=goal, **record)

    value, gradient = objective(q)
    main, excess = (leak, spent) if goal == "leakage" else (spent, leak)
    assert value == pytest.approx(main + 3 * softplus(excess - 0.1) ** 2)
    step = 1e-6
    direction = np.random.default_rng(3).normal(size=q.shape)
    direction -= direction.mean(axis=-1, keepdims=True)
    change = objective(q + step * direction)[0] - objective(q - step * direction)[0]
    assert change / (2 * step) == pytest.approx((gradient * direction).sum(), abs=1e-7)
    assert (objective(q, record=int(leaks.argmax()))[1] == gradient).all()
    assert not np.allclose(objective(q, record=int(leaks.argmin()))[1], gradient)
    with pytest.raises(ValidationError, match="record"):
        objective(q, record=3)


def test_parameters_of_the_line_search():
    prior = random_prior()

    def run(**options):
        return exponentiated_gradient(
            prior, channel(4), UNIFORM, ERROR, 0.1, 2.0, decrease="variance", **options
        )

    # The first step: eta shortened by powers of beta until (30) holds, which small ones meet.
    steps = run(eta=8.0, beta=0.7, max_iterations=30).history["step"]
    powers = np.log(steps * np.sqrt(np.arange(len(steps)) + 1) / 8) / np.log(0.7)
    assert powers == pytest.approx(powers.round(), abs=1e-9)
    assert (run(eta=8.0, c=0.9, max_iterations=1).history["step"] <= steps[0] * 1.001).all()
    assert run(eta=1e-4, max_iterations=3).history["step"] == pytest.approx(
        1e-4 / np.sqrt([1, 2, 3])
    )
    assert run(tol=10.0).iterations == 1
    # Another record's information is made smaller.
    trade = Trade.checked(prior, UNIFORM, ERROR)
    start = trade.informations(channel(4).reshape(8, 2))
    i = int(start.argmin())
    moved = run(record=i, eta=0.1, max_iterations=1)
    worst = run(eta=0.1, max_iterations=1)
    assert not np.allclose(moved.point, worst.point)
    for change in ({"eta": 0}, {"beta": 1}, {"c": 0}, {"tol": -1}, {"record": 3}):
        with pytest.raises(ValidationError, match=next(iter(change))):
            run(**change)
    with pytest.raises(ValidationError, match="record: found one"):
        run(goal="distortion", record=0)


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


def test_the_penalty_adapts_as_printed_and_q_best_is_that_of_the_least_objective():
    fair, hamming = np.array([0.5, 0.5]), 1 - np.eye(2)
    run = adaptive_penalty(
        fair, fair, hamming, 0.1, decrease="variance", max_penalties=8, penalty=0.5, factor=3.0
    )
    over, weights = run.history["residual"], run.history["penalty"]
    assert weights[0] == 0.5
    moves = np.where(over > 0.01, 3.0, np.where(over < -0.01, 1 / 3, 1.0))
    assert weights[1:] == pytest.approx(weights[:-1] * moves[:-1])
    # For the fair bit J is convex and symmetric: the minimum over flips is that over channels.
    flips = np.linspace(1e-6, 0.5, 20001)
    entropies = -flips * np.log(flips) - (1 - flips) * np.log(1 - flips)
    for weight, reached in zip(weights, run.history["objective"], strict=True):
        least = (np.log(2) - entropies + weight * softplus(flips - 0.1) ** 2).min()
        assert reached == pytest.approx(least, abs=1e-6)
    first = run.history["objective"].argmin()
    spent = fair @ (run.point * hamming).sum(axis=1)
    assert spent == pytest.approx(run.history["distortion"][first])
    assert run.value == pytest.approx(run.history["leakage"][first])
    # Within a wide margin, or to a rough tolerance, nothing more is to do.
    wide = adaptive_penalty(fair, fair, hamming, 0.1, decrease="variance", margin=1.0)
    assert (wide.history["penalty"] == 1).all()
    rough = adaptive_penalty(fair, fair, hamming, 0.1, decrease="variance", tol=1.0)
    assert rough.iterations == 1


def test_algorithm_7_is_above_the_proved_optimum_of_its_subproblem():
    prior = random_prior()
    run = adaptive_penalty(
        prior, UNIFORM, ERROR, 0.2, decrease="variance", max_penalties=8, max_steps=40
    )
    problem = MinLeakage(
        parity(3),
        distortion="hamming",
        budget=float((UNIFORM[..., None] * run.point * ERROR).sum()),
        priors=[prior.ravel()],
        rows="datasets",
    )
    check = problem.check(run.point.reshape(8, 2))
    assert check.value == pytest.approx(run.value, abs=1e-9)
    assert problem.solve(tol=1e-4).lower <= run.value + 1e-9


def test_one_record_s_gradient_does_not_descend_where_two_leak_most():
    count = np.indices((2, 2)).sum(axis=0)
    far = np.abs(count[..., None] - np.arange(3.0))
    fair, start = np.full((2, 2), 0.25), 0.7 * np.eye(3)[count] + 0.1
    run = exponentiated_gradient(fair, start, fair, far, 0.2, 1.0, decrease="variance")
    assert run.iterations == 0
    # J is convex and can fall: along the mean of both records' gradients.
    first, second = (
        penalized_objective(fair, start, fair, far, 0.2, 1.0, record=i)[1] for i in (0, 1)
    )
    moved = start * np.exp(-0.3 * (first + second) / 2)
    moved /= moved.sum(axis=-1, keepdims=True)
    assert penalized_objective(fair, moved, fair, far, 0.2, 1.0)[0] < run.value - 1e-3


def test_no_value_is_below_the_optimum():
    # b = 0: the optimum is log 2 - h(D).
    h = -0.2 * np.log(0.2) - 0.8 * np.log(0.8)
    for start in (None, 0.6 * channel(7) + 0.4 * np.eye(2)[PARITY]):
        run = alternating_design(UNIFORM, ERROR, 0.2, 0.0, decrease="variance", start=start, **FAST)
        assert run.value >= np.log(2) - h - 1e-9
        spent = (UNIFORM[..., None] * run.point.channel * ERROR).sum()
        assert spent <= 0.2 + 1e-12


def test_the_iterates_are_the_methods_own():
    run = alternating_design(UNIFORM, ERROR, 0.2, 0.0, decrease="variance", **FAST)
    own = run.point
    assert own.channels.shape == (run.iterations + 1, 2, 2, 2, 2)
    assert own.priors.shape == (run.iterations, 2, 2, 2)
    for k in range(run.iterations):
        facing = Trade.checked(own.priors[k], UNIFORM, ERROR)
        q = own.channels[k + 1].reshape(8, 2)
        assert run.history["objective"][k] == pytest.approx(facing.informations(q).max())
        assert run.history["residual"][k] == pytest.approx(facing.distortion(q) - 0.2)
        assert run.history["step"][k] == pytest.approx(
            np.abs(own.channels[k + 1] - own.channels[k]).sum()
        )
        step = adaptive_penalty(
            own.priors[k],
            UNIFORM,
            ERROR,
            0.2,
            start=own.channels[k],
            decrease="variance",
            max_steps=40,
            max_penalties=8,
        )
        assert own.channels[k + 1] == pytest.approx(step.point)
    assert run.value == pytest.approx(run.history["repaired"].min())


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
