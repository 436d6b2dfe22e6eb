"""Capacity: closed forms inside the bracket, its laws, and candidates from elsewhere."""

import math
import pickle
import subprocess
import sys

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import entr

from cvxleak.capacities import Capacity, capacity
from cvxleak.core.errors import ValidationError
from cvxleak.iterative import blahut_arimoto
from cvxleak.mechanisms import discretized_gaussian, randomized_response
from cvxleak.model import Channel, Prior
from cvxleak.problem import Check
from cvxleak.problem.bound import Status
from cvxleak.proofs import verify


def binary_entropy(e):
    return float(entr([e, 1 - e]).sum())


def normalized(matrix):
    return matrix / matrix.sum(axis=1, keepdims=True)


def channel_of(seed, inputs, outputs):
    return np.random.default_rng(seed).dirichlet(np.ones(outputs), size=inputs)


def cyclic(row):
    return [np.roll(row, shift) for shift in range(len(row))]


LAW = np.array([0.1, 0.2, 0.7])
CLOSED_FORMS = {
    "binary symmetric": ([[0.89, 0.11], [0.11, 0.89]], math.log(2) - binary_entropy(0.11)),
    "binary erasure": ([[0.7, 0.3, 0.0], [0.0, 0.3, 0.7]], 0.7 * math.log(2)),
    "Z": ([[1.0, 0.0], [0.2, 0.8]], math.log1p(math.exp(-binary_entropy(0.2) / 0.8))),
    "typewriter": (cyclic([0.5, 0.5, 0.0, 0.0, 0.0, 0.0]), math.log(3)),
    "symmetric": (cyclic(LAW), math.log(3) - float(entr(LAW).sum())),
    "identity": (np.eye(7), math.log(7)),
    "useless": (np.tile(LAW, (4, 1)), 0.0),
    "one input": ([LAW], 0.0),
    "one output": (np.ones((5, 1)), 0.0),
    "one of each": ([[1.0]], 0.0),
    "equal rows": (np.repeat(np.eye(3), 4, axis=0), math.log(3)),
    "zero columns": (np.insert(np.eye(3), [0, 2, 2], 0.0, axis=1), math.log(3)),
    # Sum of channels on disjoint alphabets: exp C adds up.
    "disjoint union": (
        [[0.9, 0.1, 0, 0, 0], [0.1, 0.9, 0, 0, 0], *np.eye(5)[2:]],
        math.log(3 + 2 * math.exp(-binary_entropy(0.1))),
    ),
}


@pytest.mark.parametrize("name", CLOSED_FORMS)
def test_closed_forms_lie_in_the_bracket(name):
    matrix, exact = CLOSED_FORMS[name]
    bound = capacity(matrix)
    assert bound.lower <= exact * (1 + 1e-15)
    assert exact * (1 - 1e-15) <= bound.upper
    assert bound.gap <= 1e-9
    assert bound.status is Status.CERTIFIED
    assert verify(bound.certificate).passed


@pytest.mark.parametrize("n", [10, 50, 200])
def test_dirichlet_channels(n):
    bound = capacity(channel_of(n, n, n))
    assert bound.gap <= 1e-9
    assert verify(bound.certificate).passed


@pytest.mark.parametrize(("inputs", "outputs"), [(400, 6), (6, 400), (70, 65)])
def test_channels_that_are_not_square(inputs, outputs):
    matrix = channel_of(1, inputs, outputs)
    bound = capacity(matrix)
    assert bound.gap <= 1e-9
    run = blahut_arimoto(matrix, tol=1e-5)
    assert run.value <= bound.upper
    assert bound.lower <= run.history["upper"].min()


def test_a_thousand_inputs():
    bound = capacity(channel_of(2, 1000, 1000))
    assert bound.gap <= 1e-9


def test_closely_spaced_gaussian_inputs():
    inputs = np.linspace(-3, 3, 200)
    bound = capacity(discretized_gaussian(np.linspace(-8, 8, 200), 1.0, inputs))
    assert bound.gap <= 1e-9
    assert verify(bound.certificate).passed


@pytest.mark.parametrize(("epsilon", "exact"), [(0.5, 0.464), (1.0, 0.781), (1.5, 1.124)])
def test_gaussian_channels_leak_less_than_corollary_4_allows(epsilon, exact):
    variance = 1 / math.expm1(2 * epsilon)
    reach = 1 + 5 * math.sqrt(variance)
    channel = discretized_gaussian(
        np.linspace(-reach, reach, 301), variance, np.linspace(-1, 1, 41)
    )
    bound = capacity(channel)
    assert bound.upper < exact + 5e-4
    assert bound.lower > exact - 2e-3


def test_matrices_with_subnormal_entries():
    matrix = normalized(np.exp(-745 * np.random.default_rng(5).random((20, 20))))
    bound = capacity(matrix)
    assert bound.gap <= 1e-9
    assert verify(bound.certificate).passed


@given(st.integers(0, 10**9), st.integers(1, 7), st.integers(1, 7))
@settings(max_examples=40)
def test_redundant_rows_and_columns_change_nothing(seed, inputs, outputs):
    rng = np.random.default_rng(seed)
    matrix = channel_of(seed, inputs, outputs)
    bound = capacity(matrix)
    mixtures = rng.dirichlet(np.ones(inputs), size=3) @ matrix
    wider = np.vstack([matrix, mixtures, matrix[:1]])
    share = rng.random()
    wider = np.column_stack([share * wider[:, :1], wider[:, 1:], (1 - share) * wider[:, :1]])
    order = rng.permutation(len(wider))
    again = capacity(normalized(wider)[order][:, rng.permutation(outputs + 1)])
    assert again.lower <= bound.upper + 1e-14
    assert bound.lower <= again.upper + 1e-14


@given(st.integers(0, 10**9), st.integers(1, 6), st.integers(1, 6), st.integers(1, 6))
@settings(max_examples=40)
def test_post_processing_and_fewer_inputs_never_raise_it(seed, inputs, outputs, coarse):
    channel = Channel(channel_of(seed, inputs, outputs))
    bound = capacity(channel)
    assert bound.upper <= math.log(min(inputs, outputs)) + 1e-9
    after = Channel(channel_of(seed + 1, outputs, coarse))
    assert capacity(channel.then(after)).lower <= bound.upper + 1e-14
    assert capacity(channel.matrix[: (inputs + 1) // 2]).lower <= bound.upper


def test_a_second_independent_output_adds_up():
    one, two = randomized_response(3, 1.0), randomized_response(3, 0.5)
    product = capacity(one.product(two))
    assert product.lower <= capacity(one).upper + capacity(two).upper
    assert max(capacity(one).lower, capacity(two).lower) <= product.upper


def test_the_witness_has_the_labels_of_the_channel():
    bound = capacity(Channel([[1.0, 0.0], [0.0, 1.0]], inputs=["no", "yes"]))
    assert isinstance(bound.witness, Prior)
    assert bound.witness["yes"] == pytest.approx(0.5)


def test_bits():
    bound = capacity(np.eye(4)).to("bits")
    assert bound.lower <= 2 <= bound.upper
    assert bound.gap < 1e-8


def test_a_time_limit_leaves_a_valid_bracket():
    matrix = channel_of(6, 30, 30)
    early, late = capacity(matrix, time_limit=0.0), capacity(matrix)
    assert early.status is Status.BRACKETED
    assert early.lower <= late.lower
    assert late.upper <= early.upper
    assert verify(early.certificate).passed
    refined = early.refine(1e-9)
    assert refined.gap <= 1e-9


def test_tolerance_is_what_is_asked():
    matrix = channel_of(7, 30, 30)
    coarse, fine = capacity(matrix, tol=1e-2), capacity(matrix, tol=1e-12)
    assert coarse.gap <= 1e-2
    assert fine.gap <= 1e-12
    assert coarse.stats["iterations"] < fine.stats["iterations"]


def test_bounds_pickle():
    bound = capacity([[0.9, 0.1], [0.2, 0.8]])
    loaded = pickle.loads(pickle.dumps(bound))
    assert (loaded.lower, loaded.upper) == (bound.lower, bound.upper)
    assert verify(loaded.certificate).passed
    assert bound.refine(1e-12).gap <= 1e-12
    # The state of a search does not go into a file.
    with pytest.raises(ValidationError, match="cannot be refined"):
        loaded.refine(1e-12)


@pytest.mark.parametrize("options", [{"tol": -1}, {"tol": math.nan}, {"time_limit": -1.0}])
def test_bad_options(options):
    with pytest.raises(ValidationError, match=next(iter(options))):
        capacity([[0.9, 0.1], [0.1, 0.9]], **options)


@pytest.mark.parametrize("matrix", [[[0.5, 0.4]], [[1.1, -0.1]], [[math.nan, 1.0]], [1.0], [[]]])
def test_bad_channels(matrix):
    with pytest.raises(ValidationError):
        capacity(matrix)


Z = Capacity([[1.0, 0.0], [0.5, 0.5]])
Z_CAPACITY = math.log(1.25)


def test_check_of_a_feasible_candidate():
    check = Z.check([0.5, 0.5])
    value = binary_entropy(0.25) - 0.5 * math.log(2)
    assert isinstance(check, Check)
    assert check.feasible
    assert check.violations == {"weights are non-negative": 0.0, "weights sum to 1": 0.0}
    assert check.value == pytest.approx(value, abs=1e-14)
    least, most = check.shortfall
    assert least <= Z_CAPACITY - value <= most < least + 1e-8
    assert str(check).startswith("feasible; value 0.2157616 nats")


def test_check_of_the_optimum():
    check = Z.check([0.6, 0.4])
    assert check.shortfall[0] <= 1e-15
    assert check.shortfall[1] < 1e-9


def test_check_names_each_violation():
    check = Z.check([1.2, -0.1])
    assert not check.feasible
    assert check.violations["weights are non-negative"] == pytest.approx(0.1)
    assert check.violations["weights sum to 1"] == pytest.approx(0.1)
    assert check.value == 0.0
    text = str(check)
    assert text.startswith("infeasible")
    assert "weights are non-negative: violated by 0.1" in text
    assert Z.check([0.6, 0.4 + 5e-10]).feasible
    assert not Z.check([0.6, 0.4 + 5e-9]).feasible


def test_check_matches_labels():
    problem = Capacity(Channel([[1.0, 0.0], [0.5, 0.5]], inputs=["a", "b"]))
    best = problem.check([0.6, 0.4]).value
    assert best == pytest.approx(Z_CAPACITY)
    assert problem.check(Prior([0.4, 0.6], labels=["b", "a"])).value == pytest.approx(best)
    assert problem.check(pd.Series({"b": 0.4, "a": 0.6})).value == pytest.approx(best)
    assert problem.check(Prior([0.6, 0.4])).value == pytest.approx(best)
    with pytest.raises(ValidationError, match="candidate"):
        problem.check(Prior([0.6, 0.4], labels=["c", "d"]))


def test_check_takes_an_earlier_bound():
    bound = Z.solve()
    assert Z.check([0.5, 0.5], bound=bound).bound is bound


@pytest.mark.parametrize(
    "candidate", [[1.0], [0.2, 0.3, 0.5], [math.nan, 1.0], [0.0, 0.0], [[0.5, 0.5]], "ab", None]
)
def test_check_refuses(candidate):
    with pytest.raises(ValidationError, match="candidate"):
        Z.check(candidate)


@pytest.mark.parametrize("solver", ["CLARABEL", "SCS", "ECOS"])
def test_plain_cvxpy_agrees(solver):
    if solver not in cp.installed_solvers():
        pytest.skip(f"{solver} is not installed")
    problem = Capacity(channel_of(8, 6, 5))
    program = problem.to_cvxpy()
    assert program.is_dcp()
    value = program.solve(solver=solver)
    bound = problem.solve()
    assert bound.lower - 1e-5 <= value <= bound.upper + 1e-5
    check = problem.check(program.var_dict["input"].value, bound=bound)
    assert -1e-5 < check.shortfall[1] < 1e-4


def test_blahut_arimoto_agrees():
    problem = Capacity(channel_of(9, 12, 9))
    run = blahut_arimoto(problem.channel, tol=1e-6)
    check = problem.check(run.point)
    assert check.feasible
    assert check.value == pytest.approx(run.value, abs=1e-14)
    assert check.shortfall[1] <= 1e-6


def test_statements_are_values():
    assert Capacity([[0.5, 0.5]]) == Capacity(Channel([[0.5, 0.5]]))
    assert Capacity([[0.5, 0.5]]) != Capacity([[0.4, 0.6]])
    with pytest.raises(AttributeError):
        Z.channel = None


def test_capacity_and_its_check_need_no_cvxpy():
    script = (
        "import sys; sys.modules['cvxpy'] = None\n"
        "from cvxleak.proofs import verify\n"
        "from cvxleak.capacities import Capacity\n"
        "problem = Capacity([[1.0, 0.0], [0.5, 0.5]])\n"
        "assert problem.check([0.6, 0.4]).feasible\n"
        "assert verify(problem.solve().certificate).passed\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=600)


def test_equal_rows_and_proportional_outputs_cost_no_more_than_one_each():
    rows = np.random.default_rng(0).dirichlet(np.full(3, 3.0), size=300)
    corner = np.array([[1.0, 0.0, 0.0]])
    once = capacity(np.concatenate([rows, corner]))
    equal = np.repeat(corner, 300, axis=0)
    often = np.concatenate([rows, equal])
    often = np.concatenate([0.25 * often, 0.75 * often], axis=1)
    bound = capacity(often)
    assert bound.stats["iterations"] == once.stats["iterations"]
    assert bound.lower == pytest.approx(once.lower, abs=1e-9)
    assert np.count_nonzero(bound.witness.probabilities[300:]) <= 1
    assert verify(bound.certificate).passed
