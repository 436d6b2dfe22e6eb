"""C_1: the leakage without a floor, by capacities of choices of one context group per value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from scipy.special import rel_entr

from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.model import Lumped

__all__ = ["CHOICE_LIMIT", "Choices", "bound_choices"]


CHOICE_LIMIT = 4096
"""Most choices that are enumerated; past it other bounds have to do."""

SIZE_LIMIT = 10**6
"""Most probabilities that the rows of all choices may have together."""


@dataclass(frozen=True)
class Choices:
    """Input distributions for every choice (product order), and what they show.

    Attributes
    ----------
    inputs : array, shape (choices, k)
        A distribution on the values for each choice; max_a D(row_a || output distribution) bounds
        its capacity.
    upper : float
        The largest of these bounds.
    witnesses : array, shape (m, N)
        Lumped priors of the choices that leak most (all those within rounding of the best),
        the one with the largest entropy F first.
    """

    inputs: Array
    upper: float
    witnesses: Array


ROUNDS = 20
"""Most times that the steps are repeated for the choices whose bound is the largest."""

CLOSE = 1e-9
"""Nats that the bound may be above the largest capacity attained."""


def bound_choices(
    lumped: Lumped, iterations: int = 200, *, stop: Callable[[], bool] = lambda: False
) -> Choices | None:
    """Bound the capacity of every choice of one group per value, or return None past the limit.

    By convexity of I in the conditionals, the leakage without an entropy floor is the largest
    Shannon capacity over these choices (DALENIUS Theorem 2); it bounds the leakage for every floor.
    Capacities by Blahut–Arimoto steps, more of them where a choice may be the largest (they
    converge slowly where the distribution leaves values out), for binary records by bisection;
    `stop()` ends both.
    """
    k = len(lumped.values)
    counts = np.bincount(lumped.value_index, minlength=k)
    total = math.prod(int(n) for n in counts)
    if total > CHOICE_LIMIT or total * k * lumped.rows.shape[1] > SIZE_LIMIT:
        return None
    places = np.array(list(product(*(range(n) for n in counts)))) + lumped.starts
    rows = lumped.rows[places]
    if k == 2:
        inputs = _binary_inputs(rows, stop)
    else:
        inputs = _inputs(rows, np.full((total, k), 1 / k), iterations, stop)
    divergences = _divergences(rows, inputs)
    lower = (inputs * divergences).sum(axis=1)
    for _ in range(ROUNDS if k > 2 else 0):
        above = np.flatnonzero(divergences.max(axis=1) > lower.max() + CLOSE)
        if not len(above) or stop():
            break
        inputs[above] = _inputs(rows[above], inputs[above], iterations, stop)
        divergences[above] = _divergences(rows[above], inputs[above])
        lower[above] = (inputs[above] * divergences[above]).sum(axis=1)
    best = np.flatnonzero(lower >= lower.max() - 1e-12)
    witnesses = np.zeros((len(best), len(lumped.multiplicities)))
    np.put_along_axis(witnesses, places[best], inputs[best], axis=1)
    log_pi = np.log(np.where(inputs[best] > 0, inputs[best], 1.0))
    entropy = (inputs[best] * (lumped.log_multiplicity[places[best]] - log_pi)).sum(axis=1)
    return Choices(inputs, float(divergences.max()), witnesses[np.argsort(-entropy)])


def _divergences(rows: Array, inputs: Array) -> Array:
    """Return D(row_a || output distribution) for each choice and value."""
    output = np.einsum("ca,cay->cy", inputs, rows)
    return rel_entr(rows, output[:, None, :]).sum(axis=2)


def _inputs(rows: Array, pi: Array, iterations: int, stop: Callable[[], bool]) -> Array:
    rows = np.where(rows < 1e-200, 0.0, rows)
    for _ in range(iterations):
        if stop():
            break
        spend(20 * rows.size)
        divergences = _divergences(rows, pi)
        pi = pi * np.exp(divergences - divergences.max(axis=1, keepdims=True))
        # A distribution without zeros keeps every output of its rows, so the bound stays finite.
        pi = np.maximum(pi / pi.sum(axis=1, keepdims=True), 1e-15)
        pi /= pi.sum(axis=1, keepdims=True)
    return pi


def _binary_inputs(rows: Array, stop: Callable[[], bool]) -> Array:
    """Return the capacity-achieving inputs of two-row channels: equal divergences, by bisection."""
    rows = np.where(rows < 1e-200, 0.0, rows)  # half of the least float is 0, and its log -inf
    low, high = np.zeros(len(rows)), np.ones(len(rows))
    for _ in range(50):
        if stop():
            break
        spend(20 * rows.size)
        middle = (low + high) / 2
        output = (1 - middle)[:, None] * rows[:, 0] + middle[:, None] * rows[:, 1]
        excess = (rel_entr(rows[:, 1], output) - rel_entr(rows[:, 0], output)).sum(axis=1)
        low = np.where(excess > 0, middle, low)
        high = np.where(excess > 0, high, middle)
    middle = (low + high) / 2
    return np.stack([1 - middle, middle], axis=1)
