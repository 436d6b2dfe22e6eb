"""Users' own constraints on a channel, by name; each takes the CVXPY variable of its rows."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np


def at_least(q: Any, entries: Any, bound: float) -> list[Any]:
    """Each of some entries (row, column) is at least the bound."""
    return [q[row, column] >= bound for row, column in entries]


def at_most(q: Any, entries: Any, bound: float) -> list[Any]:
    """Each of some entries (row, column) is at most the bound."""
    return [q[row, column] <= bound for row, column in entries]


def equal(q: Any, pairs: Any) -> list[Any]:
    """Entries (row, column) are equal in pairs."""
    return [q[tuple(one)] == q[tuple(other)] for one, other in pairs]


def unbiased(q: Any, values: Any, outputs: Any) -> list[Any]:
    """The mean of the output is the value, in every row."""
    return [q @ np.array(outputs, dtype=float) == np.array(values, dtype=float)]


def near_mean(q: Any, values: Any, outputs: Any, within: float) -> list[Any]:
    """The mean of the output is the value up to a number."""
    return [cp.abs(q @ np.array(outputs, dtype=float) - np.array(values, dtype=float)) <= within]


def second_moment(q: Any, cost: Any, weights: Any, bound: float) -> list[Any]:
    """The expected cost, by weights of the rows, is at most the bound."""
    total = cp.sum(cp.multiply(np.array(weights)[:, None] * np.array(cost, dtype=float), q))
    return [total <= bound]


def output_share(q: Any, column: int, weights: Any, bound: float) -> list[Any]:
    """The probability of an output, by weights of the rows, is at least the bound."""
    return [np.array(weights) @ q[:, column] >= bound]


def small_norm(q: Any, bound: float) -> list[Any]:
    """Euclidean norm of every row (a constraint that is not affine)."""
    return [cp.norm(q[row, :], 2) <= bound for row in range(q.shape[0])]


def dp(q: Any, epsilon: float) -> list[Any]:
    """Local differential privacy, for every pair of rows."""
    rows = range(q.shape[0])
    factor = float(np.exp(epsilon))
    return [q[one, :] <= factor * q[other, :] for one in rows for other in rows if one != other]


RULES = {
    rule.__name__: rule
    for rule in (
        at_least,
        at_most,
        dp,
        equal,
        near_mean,
        output_share,
        second_moment,
        small_norm,
        unbiased,
    )
}
