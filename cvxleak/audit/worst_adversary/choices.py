"""C_1: the leakage without a floor, by capacities of choices of one context group per value.

Capacities are those of many channels at once, for distributions that are mixtures of some vertices.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, rel_entr

from cvxleak.audit.worst_adversary.ascent import PROGRESS
from cvxleak.audit.worst_adversary.group import LEAST
from cvxleak.audit.worst_adversary.interior_point import SLOW_STEPS, STEPS, never
from cvxleak.audit.worst_adversary.objective import HAIR
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.model import Lumped
from cvxleak.solvers.best_first import NUMBERS

__all__ = ["Choices", "Leakages", "entropies", "enumerable", "leakages", "places_of"]


class Choices:
    """The capacity of every choice of one group per value.

    By convexity of I in the conditionals, the leakage without an entropy floor is the largest
    Shannon capacity over these choices (DALENIUS Theorem 2); it bounds the leakage for every floor.

    Attributes
    ----------
    inputs : array, shape (choices, k)
        A distribution on the values for each choice (product order); max_a D(row_a || output
        distribution) bounds its capacity.
    """

    def __init__(self, lumped: Lumped, places: NDArray[np.intp], stop: Callable[[], bool]) -> None:
        self._lumped, self._places = lumped, places
        self._values, self._bounds, self.inputs = self._leakages(slice(None), PROGRESS, stop, STEPS)

    @classmethod
    def of(cls, lumped: Lumped, stop: Callable[[], bool] = never) -> Choices | None:
        """Return all choices with rough bounds, or None if these are too many."""
        places = places_of(lumped)
        return None if places is None else cls(lumped, places, stop)

    def _leakages(self, which: Any, sharp: float, stop: Callable[[], bool], steps: int) -> Leakages:
        places = self._places[which]
        units = np.eye(places.shape[1])
        return leakages(self._lumped.rows[places], units, 0.0, stop, steps, sharp)

    @property
    def upper(self) -> float:
        """The largest bound, a rough one until `sharpen`."""
        return float(self._bounds.max())

    @property
    def _worst(self) -> NDArray[np.intp]:
        """The choices that may leak most.

        Where one leaks all there is, its bound may be below by rounding.
        """
        return np.flatnonzero(self._bounds >= min(self._values.max(), self.upper))

    def sharpen(self, gap: float, stop: Callable[[], bool] = never) -> None:
        """Bound the largest capacity up to a gap."""
        worst = self._worst
        found = self._leakages(worst, gap / self.upper, stop, SLOW_STEPS)
        self._values[worst], self._bounds[worst], self.inputs[worst] = found

    def witness(self) -> tuple[Array, float]:
        """Return the prior of a choice that leaks most, and its entropy, the largest of such."""
        worst, inputs = self._worst, self.inputs
        doubt = entropies(self._lumped, self._places, inputs)
        first = worst[doubt[worst].argmax()]
        weights = np.zeros(len(self._lumped.rows))
        weights[self._places[first]] = inputs[first]
        return weights, float(doubt[first])


class Leakages(NamedTuple):
    """The largest leakage of each of some channels.

    Attributes
    ----------
    values : array, shape (C,)
        What is attained.
    upper : array, shape (C,)
        A bound on the largest.
    weights : array, shape (C, V)
        Weights on the vertices at which `values` are attained.
    """

    values: Array
    upper: Array
    weights: Array


def enumerable(counts: Sequence[int], outputs: int) -> bool:
    """Whether there are few enough choices, from the number of context groups of each value.

    Past that other bounds have to do.
    """
    return math.prod(counts) * len(counts) * outputs <= NUMBERS


def places_of(lumped: Lumped) -> NDArray[np.intp] | None:
    """Return the groups of each choice (product order), or None if these are too many."""
    counts = np.bincount(lumped.value_index).tolist()
    if not enumerable(counts, lumped.rows.shape[1]):
        return None
    return np.array(list(product(*map(range, counts)))) + lumped.starts


def entropies(lumped: Lumped, places: NDArray[np.intp], inputs: Array) -> Array:
    """Return the entropies of the priors of choices, from distributions on their values."""
    return (inputs * lumped.log_multiplicity[places] + entr(inputs)).sum(axis=1)


def leakages(
    rows: Array,
    vertices: Array,
    best: float | None,
    stop: Callable[[], bool] = never,
    steps: int = SLOW_STEPS,
    sharp: float = HAIR,
) -> Leakages:
    """Return the largest leakages of channels, shape (C, k, outputs), by multiplying weights.

    Steps of Blahut and Arimoto, made longer where that pays, for all channels at once. Those that
    leak less than another one, or than `best`, are left; none is if that is None. A leakage is
    known well enough once its bound is above it by a part `sharp`.
    """
    rows = np.where(rows < LEAST, 0.0, rows)
    weights = np.full((len(rows), len(vertices)), 1 / len(vertices))
    value, slopes = _slopes(rows, vertices, weights)
    # If a channel leaks little, steps of 1 move the weights by about as little as it leaks.
    step = np.maximum(1.0, 0.5 / np.maximum(value, LEAST))
    for _ in range(steps):
        above = slopes.max(axis=1)
        gap, least = above - value, 0.0 if best is None else max(best, float(value.max()))
        here = np.flatnonzero((gap > sharp * value) & (above > least * (1 + HAIR)))
        if not len(here) or stop():
            break
        spend(1e5 + 20 * rows[here].size)
        moved = weights[here] * np.exp(step[here, None] * (slopes[here] - above[here, None]))
        moved = np.maximum(moved, LEAST)  # the output distribution would miss outputs
        moved /= moved.sum(axis=1, keepdims=True)
        new, new_slopes = _slopes(rows[here], vertices, moved)
        better = (new_slopes.max(axis=1) - new < gap[here]) | (new > value[here])
        step[here] = np.where(better, 1.2 * step[here], np.maximum(0.3 * step[here], 1.0))
        taken = here[better]
        weights[taken], value[taken], slopes[taken] = moved[better], new[better], new_slopes[better]
    return Leakages(value, slopes.max(axis=1), weights)


def _slopes(rows: Array, vertices: Array, weights: Array) -> tuple[Array, Array]:
    """Return f = I(p, rows) at p = weights @ vertices for each channel, and its slopes.

    f is concave in the weights and sum_v weights_v slope_v = f, so that max_v slope_v bounds it.
    """
    laws = weights @ vertices
    s = np.einsum("ca,cay->cy", laws, rows)
    divergence = rel_entr(rows, s[:, None, :]).sum(axis=2)
    divergence = np.where(np.isfinite(divergence), divergence, 0.0)  # no vertex gives that value
    return (laws * divergence).sum(axis=1), divergence @ vertices.T
