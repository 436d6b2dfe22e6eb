"""Finite differences of the formulas that the gradients belong to, every entry free."""

import itertools
import math

import numpy as np
import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.measures import (
    entropy,
    entropy_gradient,
    entropy_gradient_conditional,
    entropy_gradient_marginal,
    information_gradient_conditional,
    information_gradient_marginal,
    information_gradient_mechanism,
    record_information,
)
from cvxleak.model import Mechanism, RecordSpace

SHAPE = (3, 2, 2)
SPACE = RecordSpace([range(k) for k in SHAPE])
GROUPS = [(0,), (1,), (2,), (0, 2)]
STEP = 1e-6


def split(joint, group):
    """p(x_I), shape (a,), and p(x_{-I}|x_I), shape (a, z)."""
    moved = np.moveaxis(joint.reshape(SHAPE), group, range(len(group)))
    table = moved.reshape(math.prod(SHAPE[i] for i in group), -1)
    marginal = table.sum(axis=1)
    return marginal, table / marginal[:, None]


def joined(table, group):
    """The inverse of the reordering in `split`, for a table (a, z)."""
    rest = [i for i in range(3) if i not in group]
    moved = table.reshape([SHAPE[i] for i in (*group, *rest)])
    return np.moveaxis(moved, range(len(group)), group).ravel()


def information(marginal, conditional, rows, group):
    """I as a function of free arguments; rows in the order of the datasets."""
    ordered = np.stack([split_rows(rows[:, y], group) for y in range(rows.shape[1])], axis=-1)
    given = np.einsum("az,azy->ay", conditional, ordered)
    output = marginal @ given
    return float((marginal[:, None] * given * np.log(given / output)).sum())


def split_rows(column, group):
    moved = np.moveaxis(column.reshape(SHAPE), group, range(len(group)))
    return moved.reshape(math.prod(SHAPE[i] for i in group), -1)


def derivative(function, argument):
    """Central differences, one entry at a time."""
    result = np.zeros(argument.shape)
    for place in np.ndindex(argument.shape):
        up, down = argument.copy(), argument.copy()
        up[place] += STEP
        down[place] -= STEP
        result[place] = (function(up) - function(down)) / (2 * STEP)
    return result


@pytest.fixture(params=GROUPS, ids=str)
def case(request):
    rng = np.random.default_rng(sum(request.param))
    joint = rng.dirichlet(np.full(12, 2.0))
    rows = rng.dirichlet(np.full(3, 2.0), size=12)
    return request.param, joint, rows, Mechanism.from_channel(SPACE, rows)


def test_information_in_the_mechanism(case):
    group, joint, rows, mechanism = case
    marginal, conditional = split(joint, group)
    expected = derivative(lambda q: information(marginal, conditional, q, group), rows)
    found = information_gradient_mechanism(mechanism, joint, group)
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_information_in_the_marginal(case):
    group, joint, rows, mechanism = case
    marginal, conditional = split(joint, group)
    expected = derivative(lambda p: information(p, conditional, rows, group), marginal)
    found = information_gradient_marginal(mechanism, joint, group)
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_information_in_the_conditionals(case):
    group, joint, rows, mechanism = case
    marginal, conditional = split(joint, group)
    expected = derivative(lambda c: information(marginal, c, rows, group), conditional)
    found = information_gradient_conditional(mechanism, joint, group)
    np.testing.assert_allclose(found, joined(expected, group), atol=1e-8)


def test_the_printed_gradient_in_the_conditionals_is_wrong(case):
    # LEAKAGE (37) has p(x_i) - p(x_i)^2 sum_y p(y|x_i) q(y|x) / p(y) on top. This is not constant
    # along a row, so it is wrong on the simplex too, not only for free entries.
    group, joint, rows, mechanism = case
    marginal, conditional = split(joint, group)
    ordered = np.stack([split_rows(rows[:, y], group) for y in range(3)], axis=-1)
    given = np.einsum("az,azy->ay", conditional, ordered)
    extra = marginal[:, None] - marginal[:, None] ** 2 * np.einsum(
        "ay,azy->az", given / (marginal @ given), ordered
    )
    assert np.ptp(extra, axis=1).max() > 1e-3
    found = split_rows(information_gradient_conditional(mechanism, joint, group), group)
    rng = np.random.default_rng(0)
    direction = rng.normal(size=conditional.shape)
    direction -= direction.mean(axis=1, keepdims=True)
    slope = (
        information(marginal, conditional + STEP * direction, rows, group)
        - information(marginal, conditional - STEP * direction, rows, group)
    ) / (2 * STEP)
    assert (found * direction).sum() == pytest.approx(slope, abs=1e-8)
    assert abs(((found + extra) * direction).sum() - slope) > 1e-4


def test_entropy_in_each_argument(case):
    group, joint, _, _ = case
    marginal, conditional = split(joint, group)

    def of(p, c):
        table = p[:, None] * c
        return -float((table * np.log(table)).sum())

    free = derivative(lambda p: -float((p * np.log(p)).sum()), joint)
    np.testing.assert_allclose(entropy_gradient(joint), free, atol=1e-8)
    np.testing.assert_allclose(
        entropy_gradient_marginal(joint, SPACE, group),
        derivative(lambda p: of(p, conditional), marginal),
        atol=1e-8,
    )
    np.testing.assert_allclose(
        entropy_gradient_conditional(joint, SPACE, group),
        joined(derivative(lambda c: of(marginal, c), conditional), group),
        atol=1e-8,
    )


def test_along_the_simplex_they_are_the_measures_own_slopes(case):
    group, joint, _, mechanism = case
    rng = np.random.default_rng(1)
    marginal, conditional = split(joint, group)
    turn = rng.normal(size=marginal.shape)
    turn -= turn.mean()
    twist = rng.normal(size=conditional.shape)
    twist -= twist.mean(axis=1, keepdims=True)

    def prior(s, t):
        return joined((marginal + s * turn)[:, None] * (conditional + t * twist), group)

    def slope(function):
        return (function(STEP) - function(-STEP)) / (2 * STEP)

    assert information_gradient_marginal(mechanism, joint, group) @ turn == pytest.approx(
        slope(lambda s: record_information(mechanism, prior(s, 0), group)), abs=1e-8
    )
    assert entropy_gradient_marginal(joint, SPACE, group) @ turn == pytest.approx(
        slope(lambda s: entropy(prior(s, 0))), abs=1e-8
    )
    twisted = joined(twist, group)
    assert information_gradient_conditional(mechanism, joint, group) @ twisted == pytest.approx(
        slope(lambda t: record_information(mechanism, prior(0, t), group)), abs=1e-8
    )
    assert entropy_gradient_conditional(joint, SPACE, group) @ twisted == pytest.approx(
        slope(lambda t: entropy(prior(0, t))), abs=1e-8
    )


def test_the_mechanism_is_moved_along_its_rows(case):
    group, joint, rows, mechanism = case
    rng = np.random.default_rng(2)
    turn = rng.normal(size=rows.shape)
    turn -= turn.mean(axis=1, keepdims=True)

    def moved(t):
        return record_information(Mechanism.from_channel(SPACE, rows + t * turn), joint, group)

    slope = (moved(STEP) - moved(-STEP)) / (2 * STEP)
    gradient = information_gradient_mechanism(mechanism, joint, group)
    assert (gradient * turn).sum() == pytest.approx(slope, abs=1e-8)


# The boundary: the first record is binary, y = 2 is never seen, y = 1 only when x_0 = 1.
EDGE_SPACE = RecordSpace([(0, 1), (0, 1)])
EDGE_ROWS = np.array([[1, 0, 0], [0.5, 0.25, 0.25], [0.5, 0.5, 0], [0.25, 0.25, 0.5]])
EDGE_PRIOR = np.array([0.4, 0.0, 0.6, 0.0])


def one_sided(function, argument, place, step=1e-7):
    up = argument.copy()
    up[place] += step
    return (function(up) - function(argument)) / step


def edge_information(marginal, conditional, rows):
    given = np.einsum("az,azy->ay", conditional, rows.reshape(2, 2, -1))
    output = marginal @ given
    total = 0.0
    for a, y in np.ndindex(given.shape):
        if given[a, y] > 0:
            total += marginal[a] * given[a, y] * math.log(given[a, y] / output[y])
    return total


def test_boundary_of_the_conditionals():
    mechanism = Mechanism.from_channel(EDGE_SPACE, EDGE_ROWS)
    found = information_gradient_conditional(mechanism, EDGE_PRIOR, 0)
    # Under x = (0, 1) the output 1 is possible, which x_0 = 0 never gave and x_0 = 1 did.
    assert found[1] == -math.inf
    # Under x = (1, 1) the output 2 is possible, which nobody gave: a finite slope.
    marginal, conditional = np.array([0.4, 0.6]), np.array([[1.0, 0.0], [1.0, 0.0]])
    slope = one_sided(
        lambda c: edge_information(marginal, c, EDGE_ROWS), conditional, (1, 1), step=1e-8
    )
    assert found[3] == pytest.approx(slope, abs=1e-6)
    np.testing.assert_array_equal(
        information_gradient_conditional(mechanism, [0.0, 0.0, 0.3, 0.7], 0)[:2], [0.0, 0.0]
    )


def test_boundary_of_the_mechanism():
    mechanism = Mechanism.from_channel(EDGE_SPACE, EDGE_ROWS)
    found = information_gradient_mechanism(mechanism, EDGE_PRIOR, 0)
    np.testing.assert_array_equal(found[[1, 3]], np.zeros((2, 3)))
    assert found[0, 1] == -math.inf
    marginal, conditional = np.array([0.4, 0.6]), np.array([[1.0, 0.0], [1.0, 0.0]])
    for x in (0, 2):
        slope = one_sided(
            lambda q: edge_information(marginal, conditional, q), EDGE_ROWS, (x, 2), step=1e-8
        )
        assert found[x, 2] == pytest.approx(slope, abs=1e-6)


def test_boundary_of_the_marginal():
    mechanism = Mechanism.from_channel(EDGE_SPACE, EDGE_ROWS)
    found = information_gradient_marginal(mechanism, [0.0, 0.0, 0.3, 0.7], 0)
    assert np.isnan(found[0])
    assert found[1] == pytest.approx(-1)  # a sure value tells nothing
    zeros = information_gradient_marginal(mechanism, EDGE_PRIOR, 0)
    expected = [math.log(1 / 0.7), 0.5 * math.log(0.5 / 0.7) + 0.5 * math.log(0.5 / 0.3)]
    np.testing.assert_allclose(zeros, np.array(expected) - 1)


def test_boundary_of_the_entropy():
    prior = [0.25, 0.75, 0.0, 0.0]
    assert entropy_gradient(prior)[2] == math.inf
    space = EDGE_SPACE
    marginal = entropy_gradient_marginal(prior, space, 0)
    assert marginal[1] == math.inf
    assert marginal[0] == pytest.approx(entropy(prior) - 1)
    np.testing.assert_array_equal(entropy_gradient_conditional(prior, space, 0)[2:], [0, 0])
    np.testing.assert_array_equal(
        entropy_gradient_conditional([0.5, 0.0, 0.5, 0.0], space, 0)[[1, 3]], [math.inf] * 2
    )


def test_refuses_what_does_not_fit(case):
    _, joint, _, mechanism = case
    for call, record in itertools.product(
        (
            information_gradient_mechanism,
            information_gradient_marginal,
            information_gradient_conditional,
        ),
        (3, (0, 0)),
    ):
        with pytest.raises(ValidationError, match="records"):
            call(mechanism, joint, record)
        with pytest.raises(ValidationError, match="prior"):
            call(mechanism, [1.0], 0)
    for call in (entropy_gradient_marginal, entropy_gradient_conditional):
        with pytest.raises(ValidationError, match="records"):
            call(joint, SPACE, 3)
        with pytest.raises(ValidationError, match="prior"):
            call([1.0], SPACE, 0)
    with pytest.raises(ValidationError, match="prior"):
        entropy_gradient([0.5, 0.6])
