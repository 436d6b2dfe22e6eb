"""Constraints that make a matrix a channel, and constraints on the shape of its noise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import in_order, instance, plain_array, short, whole_number
from cvxleak.core.wording import counted
from cvxleak.expressions.arguments import (
    Law,
    Rows,
    is_fixed,
    law_expression,
    rows_expression,
    table_expression,
)
from cvxleak.model import ChannelSet, Distortion
from cvxleak.model.labels import channel_labels, distortion_matrix

__all__ = [
    "channel",
    "in_channel_set",
    "joint_law",
    "monotone_noise",
    "output_support",
    "post_processed",
    "row_stochastic",
    "symmetric",
]


LARGEST = 10**6
"""Most rows or columns of a channel variable."""


def channel(k: int, m: int | None = None) -> tuple[cp.Variable, list[cp.Constraint]]:
    """Return a variable for the rows q(y|x) of a channel, and the constraint that they sum to one.

    ``Q, rows = channel(k, m)``: Q >= 0 is an attribute of the variable, so that CVXPY knows the
    sign of Q and of what is computed from it, and a solution has no entries of -1e-9, at which an
    entropy is minus infinity. The sums of the rows cannot be an attribute; they are the constraint
    in ``rows``, for the problem's list.

    Parameters
    ----------
    k : int
        The number of inputs.
    m : int, optional
        The number of outputs; k if left out.

    Returns
    -------
    variable : cp.Variable, shape (k, m)
        The rows q(y|x).
    rows : list of cp.Constraint
        sum_y q(y|x) = 1 for every x.

    Raises
    ------
    ValidationError
        Numbers that are not from 1 to 1,000,000, or a shape in place of two numbers.

    See Also
    --------
    row_stochastic : For a variable of your own, or an expression.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import cvxleak as cl
    >>> Q, rows = cl.channel(2, 2)
    >>> private = cl.constraints.local_dp(Q, 1.0)
    >>> problem = cp.Problem(cp.Maximize(cp.trace(Q) / 2), rows + private)
    >>> round(float(problem.solve()), 6)  # e / (1 + e)
    0.731059
    """
    if isinstance(k, (tuple, list)):
        raise ValidationError(f"k: found the shape {short(k)}; pass two numbers: channel(k, m)")
    inputs = whole_number(k, "k", 1, LARGEST)
    outputs = inputs if m is None else whole_number(m, "m", 1, LARGEST)
    q = cp.Variable((inputs, outputs), nonneg=True)
    return q, row_stochastic(q)


def row_stochastic(channel: Rows) -> list[cp.Constraint]:
    """Return q(y|x) >= 0 and sum_y q(y|x) = 1 for every x.

    Where CVXPY knows that q(y|x) >= 0, as for the variables of `channel`, only the sums are
    returned.

    Parameters
    ----------
    channel : cp.Expression, shape (k, m)
        The rows q(y|x). (Data is allowed, too, here and below: the constraints then are true or
        false.)

    Raises
    ------
    ValidationError
        Not a matrix, or not affine.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxleak.constraints import row_stochastic
    >>> Q = cp.Variable((2, 2))
    >>> problem = cp.Problem(cp.Maximize(Q[0, 0] - Q[1, 0]), row_stochastic(Q))
    >>> round(float(problem.solve()), 6)
    1.0
    """
    q = rows_expression(channel)
    sums = q.sum(axis=1) == 1
    return [sums] if q.is_nonneg() else [q >= 0, sums]


def in_channel_set(channel: Rows, channel_set: ChannelSet) -> list[cp.Constraint]:
    """Return l(y|x) <= q(y|x) <= u(y|x): with `row_stochastic`, the channels of a set.

    Parameters
    ----------
    channel : cp.Expression, shape (k, m)
        The rows q(y|x).
    channel_set : ChannelSet
        Intervals for the entries.

    Raises
    ------
    ValidationError
        A channel that is not affine, or a `channel_set` that is not a set of channels of the same
        shape.

    Examples
    --------
    The largest difference of the rows, over all channels that are printed with these digits:

    >>> import cvxpy as cp
    >>> from cvxleak.constraints import channel, in_channel_set
    >>> from cvxleak.model import ChannelSet
    >>> printed = ChannelSet.from_printed([[0.67, 0.33], [0.25, 0.75]], digits=2)
    >>> Q, rows = channel(2, 2)
    >>> rules = rows + in_channel_set(Q, printed)
    >>> round(float(cp.Problem(cp.Maximize(Q[0, 0] - Q[1, 0]), rules).solve()), 6)
    0.43
    """
    q = rows_expression(channel)
    known = instance(channel_set, ChannelSet, "channel_set")
    if q.shape != known.shape:
        raise ValidationError(f"channel_set: found shape {known.shape}; the channel has {q.shape}")
    return [q >= known.lower, q <= known.upper]


def joint_law(joint: Law, prior: Law) -> list[cp.Constraint]:
    """Return J(x,y) >= 0 and sum_y J(x,y) = p(x) for every x: J(x,y) = p(x) q(y|x).

    Parameters
    ----------
    joint : cp.Expression, shape (k, m)
        The joint distribution J.
    prior : Prior, array_like or cp.Expression, shape (k,)
        The distribution of the input. DPP when it is a Parameter.

    Raises
    ------
    ValidationError
        Arguments that do not match each other.

    See Also
    --------
    cvxleak.expressions.joint_information : The mutual information of J.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxleak.constraints import joint_law
    >>> J = cp.Variable((2, 2))
    >>> problem = cp.Problem(cp.Maximize(J[0, 0] + J[1, 0]), joint_law(J, [0.3, 0.7]))
    >>> round(float(problem.solve()), 6)
    1.0
    """
    p = law_expression(prior)
    table = table_expression(joint, "joint")
    if table.shape[0] != p.shape[0]:
        raise ValidationError(
            f"joint: found {counted(table.shape[0], 'row')}; "
            f"the prior has {counted(p.shape[0], 'outcome')}"
        )
    return [table >= 0, table.sum(axis=1) == p]


def output_support(channel: Rows, allowed: ArrayLike) -> list[cp.Constraint]:
    """Return q(y|x) = 0 for every pair (x, y) that is not allowed.

    Parameters
    ----------
    channel : cp.Expression, shape (k, m)
        The rows q(y|x).
    allowed : array_like of bool, shape (m,) or (k, m)
        Which outputs are allowed, for all inputs or for each one.

    Returns
    -------
    list of cp.Constraint
        Empty if every pair is allowed.

    Raises
    ------
    ValidationError
        Entries that are not booleans, a shape that does not match, or an input without any output.

    Examples
    --------
    Counts rounded to a multiple of 3, at most 2 away:

    >>> import cvxpy as cp
    >>> import numpy as np
    >>> from cvxleak.constraints import output_support
    >>> counts, published = np.arange(7), np.array([0, 3, 6])
    >>> near = np.abs(counts[:, None] - published) <= 2
    >>> Q = cp.Variable((7, 3))
    >>> output_support(Q, near)[0].shape
    (10,)
    """
    q = rows_expression(channel)
    mask = plain_array(allowed, "allowed")
    if mask.dtype != bool or mask.shape not in (q.shape, q.shape[1:]):
        raise ValidationError(
            f"allowed: found an array of {mask.dtype} with shape {mask.shape}; booleans of shape "
            f"{q.shape[1:]} or {q.shape} are needed"
        )
    mask = np.broadcast_to(mask, q.shape)
    if not mask.any(axis=1).all():
        row = int(np.argmin(mask.any(axis=1)))
        raise ValidationError(f"allowed: row {row} allows no output; at least one is needed")
    x, y = np.nonzero(~mask)
    return [q[x, y] == 0] if len(x) else []


def monotone_noise(channel: Rows, distortion: Distortion | ArrayLike) -> list[cp.Constraint]:
    """Return q(y|x) >= q(z|x) if d(x,y) < d(x,z): more distant outputs are not more probable.

    Outputs at equal distances are not constrained. There is one auxiliary variable between any two
    consecutive distances of a row, so there are at most 2 k m inequalities.

    Parameters
    ----------
    channel : cp.Expression, shape (k, m)
        The rows q(y|x).
    distortion : Distortion or array_like
        d(x,y), as in `cvxleak.expressions.expected_distortion`.

    Returns
    -------
    list of cp.Constraint
        Empty if, for each input, all outputs are equally far from it.

    Raises
    ------
    ValidationError
        Arguments that do not match each other.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxleak.constraints import channel, monotone_noise
    >>> from cvxleak.model import ChannelSet, Distortion
    >>> Q, rows = channel(3, 3)
    >>> usual = rows + monotone_noise(Q, Distortion.absolute(range(3)))
    >>> round(float(cp.Problem(cp.Maximize(Q[0, 2]), usual).solve()), 6)
    0.333333
    """
    q = rows_expression(channel)
    d = distortion_matrix(distortion, (q.shape[0], q.shape[1]), *channel_labels(channel))
    near: list[tuple[int, int, int]] = []
    far: list[tuple[int, int, int]] = []
    steps = 0
    for x, row in enumerate(d):
        levels = np.unique(row)
        for y, level in enumerate(np.searchsorted(levels, row)):
            if level < len(levels) - 1:
                near.append((x, y, steps + int(level)))
            if level > 0:
                far.append((x, y, steps + int(level) - 1))
        steps += len(levels) - 1
    if not steps:
        return []
    between = cp.Variable(steps)
    x, y, step = np.array(near).T
    inner = q[x, y] >= between[step]
    x, y, step = np.array(far).T
    return [inner, q[x, y] <= between[step]]


def symmetric(
    channel: Rows, symmetries: Iterable[tuple[Sequence[int], Sequence[int]]]
) -> list[cp.Constraint]:
    """Return q(T y | S x) = q(y|x) for permutations S of the inputs and T of the outputs.

    If a convex problem has symmetries, the average of any optimal channel over the group of
    symmetries is optimal too, and has the symmetries. The generators of the group are enough.

    Parameters
    ----------
    channel : cp.Expression, shape (k, m)
        The rows q(y|x).
    symmetries : iterable of (S, T)
        S is a permutation of 0, ..., k - 1 and T one of 0, ..., m - 1; S maps x to S[x].

    Returns
    -------
    list of cp.Constraint
        One for each pair.

    Raises
    ------
    ValidationError
        Not pairs of permutations.

    Examples
    --------
    A channel of three values that is invariant under a rotation:

    >>> import cvxpy as cp
    >>> from cvxleak.constraints import channel, symmetric
    >>> Q, rows = channel(3, 3)
    >>> circular = rows + symmetric(Q, [([1, 2, 0], [1, 2, 0])])
    >>> problem = cp.Problem(cp.Maximize(Q[0, 1]), [*circular, Q[1, 1] >= 0.4])
    >>> round(float(problem.solve()), 6)
    0.6
    """
    q = rows_expression(channel)
    rules = []
    for index, given in enumerate(in_order(symmetries, "symmetries")):
        name = f"symmetries[{index}]"
        pair = in_order(given, name)
        if len(pair) != 2:
            raise ValidationError(f"{name}: found {short(given)}; a pair of permutations is needed")
        rows, columns = (permutation(p, n, name) for p, n in zip(pair, q.shape, strict=True))
        rules.append(q[rows][:, columns] == q)
    return rules


def post_processed(channel: Rows, first: Rows) -> list[cp.Constraint]:
    """Return C = D R with R stochastic: the channel C is a post-processing of D.

    C is then a degradation (garbling) of D, and never more informative than D.

    Parameters
    ----------
    channel : cp.Expression, shape (k, m)
        The rows of C.
    first : Channel, array_like or cp.Expression without variables, shape (k, m1)
        The rows of D. DPP when it is a Parameter.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, or a first channel with variables.

    Notes
    -----
    Adds m1 m variables. All constraints are linear.

    Examples
    --------
    Post-processing of a channel that is correct with probability 0.9 cannot be correct more often:

    >>> import cvxpy as cp
    >>> from cvxleak.constraints import post_processed
    >>> C = cp.Variable((2, 2))
    >>> after = post_processed(C, [[0.9, 0.1], [0.1, 0.9]])
    >>> round(float(cp.Problem(cp.Maximize(cp.trace(C) / 2), after).solve()), 6)
    0.9
    """
    q, before = rows_expression(channel), rows_expression(first, "first")
    if before.shape[0] != q.shape[0]:
        raise ValidationError(
            f"first: found {counted(before.shape[0], 'row')}; the channel has {q.shape[0]}"
        )
    if not is_fixed(before):
        raise ValidationError(
            "first: found variables; D R is not convex in both, so D must be data or a Parameter"
        )
    after = cp.Variable((before.shape[1], q.shape[1]))
    return [*row_stochastic(after), q == before @ after]


def permutation(given: Iterable[int], size: int, name: str) -> list[int]:
    """Return the places of a permutation of 0, ..., size - 1, or say what is wrong."""
    places = [whole_number(place, name, 0, size - 1) for place in in_order(given, name)]
    if sorted(places) != list(range(size)):
        raise ValidationError(
            f"{name}: found {short(places)}; a permutation of 0 to {size - 1} is needed"
        )
    return places
