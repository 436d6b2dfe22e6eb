"""The distortion problem of a release: closed forms, brute force, two solvers, laws."""

import itertools
import math
import pickle

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak import verify
from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.model import Distortion
from cvxleak.problem.bound import Status
from cvxleak.release import (
    Coalition,
    ReleaseJoint,
    any_of,
    release_lagrangian,
    release_problem,
    release_sequence,
    release_strategy,
    release_surface,
)

TABLE_1 = np.array([[[0.024, 0.228], [0.063, 0.203]], [[0.203, 0.013], [0.228, 0.038]]])


def information(table):
    independent = np.outer(table.sum(axis=1), table.sum(axis=0))
    positive = table > 0
    return float(table[positive] @ np.log(table[positive] / independent[positive]))


TOLD = information(TABLE_1.sum(axis=0))
"""I(Z;X) of Table I, in nats."""


def leakage(joint, kernel, axes):
    """I(R̂,Z_S;X) by definition; kernel of shape (Z_1, ..., X, R̂), S a tuple of axes of Z."""
    law = joint.sum(axis=0)[..., None] * kernel
    others = tuple(a for a in range(law.ndim - 2) if a not in axes)
    law = np.moveaxis(law.sum(axis=others), -2, -1)
    return information(law.reshape(-1, law.shape[-1]))


def random_joint(seed, shape, sparse=False):
    rng = np.random.default_rng(seed)
    joint = rng.dirichlet(np.full(np.prod(shape), 0.7)).reshape(shape)
    if sparse:
        joint[rng.random(shape) < 0.4] = 0.0
        joint.flat[0] += 0.1
    return joint / joint.sum()


def binary_entropy(p):
    return -p * math.log(p) - (1 - p) * math.log(1 - p)


@pytest.mark.parametrize("epsilon", [0.1, 0.3])
def test_earlier_outputs_help_without_delta_only_outside_the_scheme(epsilon):
    # SEQUENTIAL, section III-A: with Z - X - R they do not, but Table I has no such chain.
    law = TABLE_1.sum(axis=0)
    chain = law * (TABLE_1.sum(axis=1) / law.sum(axis=0))[:, None, :]
    used, unused = (release_problem(j, epsilon).solve() for j in (chain, chain.sum(axis=1)))
    assert [used.lower, used.upper] == pytest.approx([unused.lower, unused.upper], abs=1e-8)
    helped = release_problem(TABLE_1, epsilon).solve()
    assert helped.upper < release_problem(TABLE_1.sum(axis=1), epsilon).solve().lower - 0.01


@pytest.mark.parametrize("crossover", [0.02, 0.1, 0.3])
def test_distortion_rate_function_of_a_bit(crossover):
    joint = np.diag([0.5, 0.5])  # R = X, nothing released before
    bound = release_problem(joint, math.log(2) - binary_entropy(crossover)).solve()
    assert bound.lower <= crossover + 1e-15
    assert bound.upper >= crossover - 1e-15
    assert bound.gap < 1e-9
    assert bound.shadow_prices["epsilon"] == pytest.approx(
        -1 / math.log((1 - crossover) / crossover), rel=1e-5
    )


@pytest.mark.parametrize(
    ("epsilon", "room"),
    [(0.05, 0.1), (0.3, 0.5), (0.2, 0.2), (1e-4, 0.3), (0.5, 0.6), (5.0, 6.0), (0.0, 0.1)],
)
def test_two_solvers_agree(epsilon, room):
    problem = release_problem(TABLE_1, epsilon, TOLD + room)
    bound = problem.solve()
    assert bound.status is Status.CERTIFIED
    assert bound.gap < 5e-9
    program = problem.to_cvxpy()
    program.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    # A solver misses a budget by about 1e-10, which multipliers turn into more of distortion.
    mu = sum(m for m in bound.stats["multipliers"].values() if math.isfinite(m))
    assert program.value == pytest.approx(bound.upper, abs=1e-8 + 1e-9 * mu)
    check = problem.check(problem.to_kernel(program.var_dict["kernel"].value), bound=bound)
    assert check.value == pytest.approx(bound.upper, abs=1e-6)


@given(
    st.integers(0, 10**6),
    st.tuples(*[st.integers(1, 3)] * 4),
    st.sampled_from([0.0, 1e-3, 0.1, 1.0]),
    st.sampled_from([0.0, 1e-3, 0.1, 1.0]),
    st.booleans(),
)
@settings(max_examples=60)
def test_witness_is_feasible_and_attains_the_upper_end(seed, shape, own, room, sparse):
    joint = random_joint(seed, shape, sparse)
    sizes = shape[1:-1]
    told = leakage(joint, np.ones((*sizes, shape[-1], 1)), (0, 1))
    told = 0.0 if told < 1e-14 else told  # not more than rounding
    epsilon, delta = min(own, told + room), told + room
    cost = np.random.default_rng(seed).random((shape[0], 3))
    problem = release_problem(joint, epsilon, delta, distortion=cost)
    bound = problem.solve()
    kernel = bound.witness
    assert kernel.shape == (*sizes, shape[-1], 3)
    assert kernel.min() >= 0
    assert kernel.sum(axis=-1) == pytest.approx(1.0)
    assert leakage(joint, kernel, ()) <= epsilon + 1e-12
    assert leakage(joint, kernel, (0, 1)) <= delta + 1e-12
    value = np.einsum("rabx,abxq,rq->", joint, kernel, cost)
    assert value == pytest.approx(bound.upper, abs=1e-12)
    assert bound.lower <= bound.upper
    assert verify(bound.certificate).passed


@pytest.mark.parametrize("seed", range(3))
def test_no_kernel_on_a_grid_beats_the_lower_end(seed):
    joint = random_joint(seed, (2, 2, 2))
    told = leakage(joint, np.ones((2, 2, 1)), (0,))
    problem = release_problem(joint, 0.05, told + 0.06)
    bound = problem.solve()
    best = math.inf
    for shares in itertools.product(np.linspace(0, 1, 13), repeat=4):
        kernel = np.stack([np.array(shares), 1 - np.array(shares)], axis=-1).reshape(2, 2, 2)
        if leakage(joint, kernel, ()) <= 0.05 and leakage(joint, kernel, (0,)) <= told + 0.06:
            best = min(best, np.einsum("rzx,zxq,rq->", joint, kernel, 1 - np.eye(2)))
    assert bound.lower <= best
    assert best - bound.upper < 0.05


def test_distortion_falls_and_is_convex_in_the_budgets():
    epsilons, deltas = np.linspace(0.02, 0.6, 5), np.linspace(0.05, 0.62, 5)
    surface = release_surface(TABLE_1, epsilons, deltas)
    table = np.array([[math.nan if b is None else b.upper for b in row] for row in surface])
    assert np.isnan(table).sum() == sum(e > d for e in epsilons for d in deltas)
    for axis in (0, 1):
        slopes = np.diff(table, axis=axis)
        assert np.nanmax(slopes) <= 1e-8
        assert np.nanmin(np.diff(slopes, axis=axis)) >= -1e-7
    for row, epsilon in zip(surface, epsilons, strict=True):
        for bound, delta in zip(row, deltas, strict=True):
            if bound is not None:
                assert bound.upper == pytest.approx(
                    release_problem(TABLE_1, epsilon, delta).solve().upper, abs=1e-7
                )


def test_shadow_prices_are_slopes():
    def value(epsilon, delta):
        return release_problem(TABLE_1, epsilon, delta).solve(tol=1e-9).upper

    bound = release_problem(TABLE_1, 0.05, 0.1).solve()
    h = 1e-4
    assert bound.shadow_prices["epsilon"] == pytest.approx(
        (value(0.05 + h, 0.1) - value(0.05 - h, 0.1)) / (2 * h), rel=1e-3
    )
    assert bound.shadow_prices["delta"] == pytest.approx(
        (value(0.05, 0.1 + h) - value(0.05, 0.1 - h)) / (2 * h), rel=1e-3
    )
    in_bits = release_problem(TABLE_1, 0.05 / math.log(2), 0.1 / math.log(2), unit="bits").solve()
    assert in_bits.upper == pytest.approx(bound.upper, abs=1e-9)
    for name, price in bound.shadow_prices.items():
        assert in_bits.shadow_prices[name] == pytest.approx(price * math.log(2), rel=1e-4)


def test_multipliers_of_the_budgets_solve_the_problem_with_prices():
    bound = release_problem(TABLE_1, 0.05, 0.1).solve()
    mu = bound.stats["multipliers"]
    priced = release_lagrangian(TABLE_1, mu["epsilon"], mu["delta"]).solve()
    dual = priced.lower - mu["epsilon"] * 0.05 - mu["delta"] * 0.1
    assert dual == pytest.approx(bound.lower, abs=1e-8)


@pytest.mark.parametrize("mu", [0.0, 0.01, 0.1, 5.0])
def test_prices_against_the_conic_program(mu):
    problem = release_lagrangian(TABLE_1, mu, mu, unit="bits")
    bound = problem.solve()
    assert bound.gap < 1e-9
    program = problem.to_cvxpy()
    program.solve(solver=cp.CLARABEL)
    assert program.value == pytest.approx(bound.upper, abs=1e-6)


def test_no_budget_at_all_is_the_least_distortion():
    bound = release_problem(TABLE_1).solve()
    assert bound.upper == pytest.approx(0.138, abs=1e-9)
    assert bound.witness[..., 0].round(6).tolist() == [[0, 1], [0, 1]]


def test_epsilon_zero_is_independence():
    # A one-time pad: X a bit, Z a fair bit of its own, R = X. With Z known, X xor Z tells X; alone,
    # nothing. But with delta = log 2 the answer may still depend on X through Z.
    joint = np.zeros((2, 2, 2))
    joint[0, :, 0] = joint[1, :, 1] = 0.25
    bound = release_problem(joint, 0.0, math.log(2)).solve()
    assert leakage(joint, bound.witness, ()) < 1e-25
    assert bound.shadow_prices["epsilon"] == -math.inf
    assert bound.gap < 1e-9
    # R̂ independent of X = R: nothing is better than a guess.
    assert bound.upper == pytest.approx(0.5, abs=1e-9)


def test_epsilon_zero_still_helps_a_request_about_the_earlier_output():
    # R = X xor Z, with Z a fair bit independent of X, is independent of X: it may be told in full.
    joint = np.zeros((2, 2, 2))
    for z, x in itertools.product(range(2), repeat=2):
        joint[x ^ z, z, x] = 0.25
    free = release_problem(joint, 0.0, math.log(2)).solve()
    assert free.upper == pytest.approx(0.0, abs=1e-9)
    # Half of the room: R̂ differs from X xor Z with probability h^-1, as a binary channel's law.
    crossover = 0.1
    room = math.log(2) - binary_entropy(crossover)
    assert release_problem(joint, 0.0, room).solve().upper == pytest.approx(crossover, abs=1e-8)


def test_delta_at_its_least_makes_the_answer_a_function_of_the_earlier_ones():
    bound = release_problem(TABLE_1, 0.001, TOLD).solve()
    assert bound.witness[:, 0] == pytest.approx(bound.witness[:, 1], abs=1e-12)
    assert leakage(TABLE_1, bound.witness, (0,)) == pytest.approx(TOLD, abs=1e-14)
    assert bound.status is Status.CERTIFIED
    below = release_problem(TABLE_1, 0.001, TOLD - 1e-6)
    with pytest.raises(InfeasibleError, match=f"{TOLD:.15f}"[:14]) as error:
        below.solve()
    assert error.value.argument == "delta"
    in_bits = release_problem(TABLE_1, 0.0, 0.001, unit="bits")
    with pytest.raises(InfeasibleError, match=r"0\.00276[0-9]* bits"):
        in_bits.to_cvxpy()


def test_several_coalitions_without_room_get_a_valid_bracket():
    bound = release_problem(TABLE_1, 0.0, TOLD).solve()
    assert bound.upper == pytest.approx(0.482)
    assert bound.status is Status.CERTIFIED
    assert verify(bound.certificate).passed


@pytest.mark.parametrize("room", [1e-7, 1e-9, 1e-11, 1e-13])
def test_next_to_no_room(room):
    none = release_problem(TABLE_1, 0.0, TOLD + 0.1).solve()
    bound = release_problem(TABLE_1, room, TOLD + 0.1).solve()
    some = release_problem(TABLE_1, 1e-6, TOLD + 0.1).solve()
    # The least distortion is between that of more room and that of none; digits run out with it.
    assert bound.lower <= none.upper
    assert bound.upper >= some.lower
    if room > 1e-10:
        assert bound.gap < (3e-4 if room > 1e-8 else 0.05)
    assert verify(bound.certificate).passed


@pytest.mark.parametrize("delta", [0.1, 0.3])
def test_the_same_request_again_gets_the_same_value(delta):
    tell = [[0.9, 0.1], [0.2, 0.8]]
    first, second = release_sequence([0.5, 0.5], [tell, tell], [0.1, 0.1], [0.1, delta])
    assert second.upper == pytest.approx(first.upper, abs=1e-8)
    copy = np.broadcast_to(np.eye(2)[:, None, :], (2, 2, 2))
    assert second.witness == pytest.approx(copy, abs=1e-12)


def test_the_printed_strategy_answers_as_the_certified_sequence_does():
    requests = [[[0.9, 0.1], [0.2, 0.8]], [[0.3, 0.7], [0.6, 0.4]], [[0.9, 0.1], [0.2, 0.8]]]
    budgets = ([0.1, 0.05, 0.1], [0.1, 0.12, 0.3])
    proved = release_sequence([0.4, 0.6], requests, *budgets)
    found = release_strategy([0.4, 0.6], requests, *budgets, tol=1e-5)
    bits = release_strategy(
        [0.4, 0.6], requests, *np.array(budgets) / math.log(2), unit="bits", tol=1e-5
    )
    for bound, run, same in zip(proved, found, bits, strict=True):
        assert bound.lower - 1e-9 <= run.value <= bound.upper + 1e-4
        assert run.point.shape == bound.witness.shape
        assert same.value == pytest.approx(run.value, abs=1e-6)


def test_with_multipliers_in_place_of_budgets():
    requests, mu = [[[0.9, 0.1], [0.2, 0.8]]] * 2, ([0.1, 0.1], [0.0, 0.2])
    proved = release_sequence([0.5, 0.5], requests, mu_1=mu[0], mu_2=mu[1], unit="bits")
    found = release_strategy([0.5, 0.5], requests, mu_1=mu[0], mu_2=mu[1], unit="bits")
    for bound, run in zip(proved, found, strict=True):
        assert bound.lower - 1e-9 <= run.value <= bound.upper + 1e-7
    # What all have heard costs: the second answer is the first one again.
    again = np.broadcast_to(np.eye(2)[:, None, :], (2, 2, 2))
    assert found[1].point == pytest.approx(again, abs=1e-3)


def test_progressive_networks_remember_the_tasks_before():
    """Section VII, (13): T_k for task Y_k from the training data and the outputs before it."""
    tasks = [[[0.95, 0.05], [0.95, 0.05], [0.1, 0.9]], [[0.9, 0.1], [0.2, 0.8], [0.2, 0.8]]]
    law, options = [0.3, 0.3, 0.4], {"utility": "information"}
    free = release_strategy(law, tasks, mu_1=[0.3, 0.3], mu_2=[0.0, 0.0], **options)
    dear = release_strategy(law, tasks, mu_1=[0.3, 0.3], mu_2=[0.0, 0.4], **options)
    joint = ReleaseJoint.of_history(law, tasks[1], [free[0].point])
    proved = release_lagrangian(joint, 0.3, 0.4, "information").solve(tol=1e-3, rng=0)
    assert -dear[1].value <= proved.upper
    assert -dear[1].value >= proved.lower - 0.01
    memory = [leakage(joint.array, runs[1].point, (0,)) for runs in (free, dear)]
    assert memory[1] < memory[0] - 0.01
    # The chain holds in the scheme, so nothing is told from mu_1 = 1 on.
    nothing = release_strategy(law, tasks, mu_1=[0.3, 1.0], mu_2=[0.0, 0.0], **options)
    assert nothing[1].value >= -1e-6


def test_the_surface_of_an_information():
    # The request is the dataset, a bit: as much is told as the smaller budget allows.
    bit = [[[0.5, 0.0]], [[0.0, 0.5]]]
    surface = release_surface(bit, [0.0, 0.2, 0.4], [0.2, 0.4], utility="information", tol=1e-5)
    assert surface[2][0] is None
    for row, epsilon in zip(surface, (0.0, 0.2, 0.4), strict=True):
        for bound in row:
            if bound is not None:
                assert bound.lower <= epsilon <= bound.upper
                assert bound.upper == pytest.approx(epsilon, abs=1e-4)


def test_coalitions_by_definition_and_by_the_conic_program():
    joint = random_joint(0, (3, 2, 3, 2, 4))
    budgets = {(0,): 0.45, (1, 2): 0.7}
    problem = release_problem(joint, 0.05, 1.0, coalitions=budgets)
    bound = problem.solve()
    for members, budget in budgets.items():
        assert leakage(joint, bound.witness, members) <= budget + 1e-12
    program = problem.to_cvxpy()
    program.solve(solver=cp.CLARABEL)
    assert program.value == pytest.approx(bound.upper, abs=1e-6)
    # The same coalitions as classes of z, on a law without its axes.
    z = np.indices((2, 3, 2)).reshape(3, -1)
    classes = [(z[0], 0.45), (z[1] * 2 + z[2], 0.7)]
    flat = release_problem(joint.reshape(3, 12, 4), 0.05, 1.0, coalitions=classes).solve()
    assert flat.upper == pytest.approx(bound.upper, abs=1e-9)


def test_coalitions_cost_something_and_any_of_is_all_of_one_size():
    joint = random_joint(4, (2, 2, 2, 2, 3))
    pairs = list(itertools.combinations(range(3), 2))
    told = max(leakage(joint, np.ones((2, 2, 2, 3, 1)), pair) for pair in pairs)
    free = release_problem(joint, 0.1).solve()
    bound = release_problem(joint, 0.1, coalitions=any_of(3, 3, told + 0.1)).solve()
    assert bound.lower > free.upper + 1e-4
    for pair in pairs:
        assert leakage(joint, bound.witness, pair) <= told + 0.1 + 1e-12
        assert f"coalitions[{pair}]" in bound.shadow_prices
    assert any_of(1, 3, 0.2) == {(): 0.2}
    assert any_of(4, "abc", 0.2) == {("a", "b", "c"): 0.2}


@pytest.mark.parametrize("budget", [0.0, 1e-4, 0.05])
def test_coalitions_that_see_the_same_count_once(budget):
    # The second output has one value, so who sees it sees nothing.
    joint = random_joint(3, (2, 2, 1, 3))
    once = release_problem(joint, budget).solve()
    told = leakage(joint, np.ones((2, 1, 3, 1)), (0,))
    several = {(1,): budget, (0,): told + 1.0, (0, 1): told + 1.0}
    bound = release_problem(joint, budget, coalitions=several).solve()
    assert bound.upper == pytest.approx(once.upper, abs=1e-8)
    assert bound.status is Status.CERTIFIED
    assert verify(bound.certificate).passed
    # Nor does an earlier output count that cannot have happened.
    padded = np.concatenate([joint, np.zeros((2, 1, 1, 3))], axis=1)
    more = release_problem(padded, budget, coalitions=several).solve()
    assert more.upper == pytest.approx(once.upper, abs=1e-8)
    assert more.status is Status.CERTIFIED


def test_more_outputs_never_hurt_and_labels_are_kept():
    joint = random_joint(2, (3, 2, 3))
    values = [release_problem(joint, 0.2, outputs=n).solve() for n in (1, 2, 3, 4)]
    uppers = [bound.upper for bound in values]
    assert all(b <= a + 1e-8 for a, b in itertools.pairwise(uppers))
    assert release_problem(joint, 0.2, outputs=5).outputs == (0, 1, 2, 3, 4)
    labeled = ReleaseJoint(joint, requests=["a", "b", "c"])
    assert release_problem(labeled, 0.2, outputs=["c", "a"]).distortion.matrix.tolist() == [
        [1, 0], [1, 1], [0, 1]
    ]  # fmt: skip
    cost = Distortion([[0, 1], [2, 0], [1, 1]], ["b", "c", "a"], ["lo", "hi"])
    problem = release_problem(labeled, 0.2, distortion=cost)
    assert problem.distortion.matrix.tolist() == [[1, 1], [0, 1], [2, 0]]
    assert problem.outputs == ("lo", "hi")


def test_a_series_gives_the_law_it_lists():
    table = pd.Series(
        {
            ("no", "lo", "well"): 0.4,
            ("yes", "hi", "ill"): 0.5,
            ("yes", "lo", "ill"): 0.1,
        }
    )
    table.index.names = ["request", "first", "health"]
    problem = release_problem(table, 0.2, coalitions={("first",): 0.6})
    assert problem.joint.datasets == ("well", "ill")
    assert problem.joint.array[1, 1, 1] == 0.5
    assert problem.joint.array.sum() == pytest.approx(1.0)
    assert problem.joint.names == ("first",)
    with pytest.raises(ValidationError, match="levels"):
        release_problem(table.droplevel([0, 1]), 0.2)


def test_check_measures_what_is_wrong_with_a_kernel():
    problem = release_problem(TABLE_1, 0.05, 0.1)
    bound = problem.solve()
    assert problem.check(bound.witness, bound=bound).feasible
    everything = np.broadcast_to(np.eye(2)[::-1], (2, 2, 2))
    check = problem.check(everything, bound=bound)
    assert check.value == pytest.approx(0.138)
    x = TABLE_1.sum(axis=(0, 1))
    assert check.violations["I(R̂;X) <= epsilon"] == pytest.approx(-x @ np.log(x) - 0.05)
    assert not problem.check(1.1 * bound.witness, bound=bound).feasible
    with pytest.raises(ValidationError, match="candidate"):
        problem.check(np.ones((2, 2)), bound=bound)
    with pytest.raises(ValidationError, match="positive"):
        problem.check(np.zeros((2, 2, 2)), bound=bound)


def test_time_limit_leaves_a_bracket_that_holds():
    joint = random_joint(0, (3, 20, 10))
    told = leakage(joint, np.ones((20, 10, 1)), (0,))
    problem = release_problem(joint, 0.1, told + 0.2)
    short, full = problem.solve(time_limit=0.0), problem.solve()
    assert short.lower <= full.upper
    assert full.lower <= short.upper
    assert short.status is Status.BRACKETED
    assert short.refine(1e-7).status is Status.CERTIFIED


def test_problems_are_values():
    problem = release_problem(TABLE_1, 0.05, 0.1, coalitions={(0,): 0.1})
    assert pickle.loads(pickle.dumps(problem)) == problem
    assert hash(problem) == hash(release_problem(TABLE_1, 0.05, 0.1, coalitions={(0,): 0.1}))
    assert problem != release_problem(TABLE_1, 0.05, 0.2, coalitions={(0,): 0.1})
    assert isinstance(problem.coalitions[0], Coalition)


def test_history_is_the_law_it_says():
    prior, tell, ask = [0.2, 0.8], [[0.9, 0.1], [0.2, 0.8]], [[0.7, 0.3], [0.4, 0.6]]
    second = np.random.default_rng(0).dirichlet(np.ones(3), size=(2, 2))
    joint = ReleaseJoint.of_history(prior, ask, [tell, second]).array
    for r, a, b, x in itertools.product(range(2), range(2), range(3), range(2)):
        expected = prior[x] * ask[x][r] * tell[x][a] * second[a, x, b]
        assert joint[r, a, b, x] == pytest.approx(expected)
    with pytest.raises(ValidationError, match=r"kernels\[1\]"):
        ReleaseJoint.of_history(prior, ask, [tell, tell])


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda: release_problem(TABLE_1 * 1.1, 0.1), "joint"),
        (lambda: release_problem([0.5, 0.5], 0.1), "joint"),
        (lambda: release_problem(TABLE_1, -0.1), "epsilon"),
        (lambda: release_problem(TABLE_1, "much"), "epsilon"),
        (lambda: release_problem(TABLE_1, 0.3, 0.2), "epsilon"),
        (lambda: release_problem(TABLE_1, math.inf, math.nan), "delta"),
        (lambda: release_problem(TABLE_1, 0.1, 0.2, "fun"), "utility"),
        (lambda: release_problem(TABLE_1, 0.1, 0.2, distortion=np.eye(3)), "distortion"),
        (lambda: release_problem(TABLE_1, 0.1, 0.2, distortion=-np.eye(2)), "matrix"),
        (lambda: release_problem(TABLE_1, 0.1, 0.2, "information", np.eye(2)), "distortion"),
        (lambda: release_problem(TABLE_1, 0.1, 0.2, coalitions={(1,): 0.1}), "coalitions"),
        (lambda: release_problem(TABLE_1, 0.1, 0.2, coalitions=[((0,), 0.1, 1)]), "coalitions"),
        (lambda: release_problem(TABLE_1, 0.1, 0.2, outputs=0), "outputs"),
        (lambda: release_problem(TABLE_1, 0.1, 0.2, outputs=[]), "outputs"),
        (lambda: release_problem(TABLE_1, 0.1, 0.2, unit="bytes"), "unit"),
        (lambda: release_problem(TABLE_1, 1e-15, 0.2).solve(), "epsilon"),
        (lambda: release_problem(TABLE_1, 0.1, 0.2).solve(tol=-1), "tol"),
        (lambda: release_problem(TABLE_1, 0.1, 0.2).solve(time_limit=-1), "time_limit"),
        (lambda: release_lagrangian(TABLE_1, -1, 0), "mu_1"),
        (lambda: any_of(5, 3, 0.1), "size"),
        (lambda: ReleaseJoint(TABLE_1, earlier=[["a"]]), "earlier[0]"),
        (
            lambda: release_sequence([0.5, 0.5], [np.eye(2)] * 2, [0.1, 0.1], [0.3, 0.2]),
            "delta",
        ),
        (lambda: release_sequence([0.5, 0.5], [np.eye(2)]), "epsilon"),
        (lambda: release_sequence([0.5, 0.5], [np.eye(2)], [0.1], [0.1], mu_1=[1]), "epsilon"),
        (lambda: release_strategy([0.5, 0.5], [np.eye(2)], [0.1], [0.1, 0.2]), "epsilon"),
        (lambda: release_strategy([0.5, 0.5], [np.eye(2)], mu_1=[0.1], mu_2=[-1]), "mu_2"),
    ],
)
def test_bad_arguments_are_named(call, argument):
    with pytest.raises(ValidationError) as error:
        call()
    assert error.value.argument == argument


def test_nested_coalitions_need_budgets_that_do_not_fall():
    joint = random_joint(0, (2, 2, 2, 2))
    with pytest.raises(ValidationError, match="sees as much and more"):
        release_problem(joint, 0.1, 0.5, coalitions={(0,): 0.6})
    with pytest.raises(ValidationError, match="epsilon"):
        release_problem(joint, 0.3, 0.9, coalitions={(0,): 0.2})


def test_what_no_proof_goes_through_is_refused_at_once(monkeypatch):
    problem = release_problem(TABLE_1, 0.05, 0.1)  # 4 rows, 2 outputs, 2 coalitions
    monkeypatch.setattr("cvxleak.release.kernel_program.SIZE_LIMIT", 24)
    assert problem.solve().status is Status.CERTIFIED
    monkeypatch.setattr("cvxleak.release.kernel_program.SIZE_LIMIT", 23)
    with pytest.raises(ValidationError, match=r"joint: found 8 pairs .* which make 24 numbers"):
        problem.solve()


def test_several_without_room_may_hear_what_they_all_know():
    """The first answer again: it tells nobody anything new who has it."""
    tell = [[0.9, 0.1], [0.2, 0.8]]
    first, second = release_sequence([0.5, 0.5], [tell, tell[::-1]], [0.1, 0.1], [0.1, 0.2])
    joint = ReleaseJoint.of_history([0.5, 0.5], tell, [first.witness, second.witness])
    law = joint.array.sum(axis=0)
    one, both = information(law.sum(axis=1)), information(law.reshape(4, 2))
    problem = release_problem(joint, one, both, coalitions={(0,): one})
    bound = problem.solve()
    assert bound.status is Status.CERTIFIED
    assert bound.upper == pytest.approx(first.upper, abs=1e-6)
    assert np.ptp(bound.witness, axis=(1, 2)).max() == 0  # a function of the first answer
    assert verify(bound.certificate).passed
    assert problem.check(bound.witness, bound=bound).feasible
    # Two who have nothing in common get a constant answer.
    apart = release_problem(joint, 0.0, both, coalitions={(0,): one}).solve()
    assert np.ptp(apart.witness.reshape(-1, 2), axis=0).max() == 0


def test_common_classes_by_chains():
    from cvxleak.proofs.bounds.release_law import common_classes

    assert common_classes(np.zeros((0, 3), dtype=int)).tolist() == [0, 0, 0]
    assert common_classes(np.array([[0, 1, 0, 2, 2]])).tolist() == [0, 1, 0, 2, 2]
    assert common_classes(np.array([[0, 0, 1, 1, 2], [0, 1, 1, 2, 3]])).tolist() == [0, 0, 0, 0, 1]
