"""The quantities of a release kernel that every method for it shares, row by row.

A release answers with R̂ ~ k(r̂|z,x). A coalition that holds the part S of the earlier outputs Z
learns I(R̂,S;X) = I(S;X) + I(R̂;X|S), of which the second term is what the release adds. Rows are
the pairs i = (z, x) of positive probability.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cvxleak.core.validation import Array

__all__ = ["Coalition", "Groups", "ReleaseTerms"]

Index = NDArray[np.intp]


class Groups:
    """A partition of the rows, and sums over its parts."""

    def __init__(self, keys: Index) -> None:
        values, self.first, self.index = np.unique(keys, return_index=True, return_inverse=True)
        self.size = len(values)
        self._order = np.argsort(self.index, kind="stable")
        self._ordered = self.index[self._order]
        self._starts = np.searchsorted(self._ordered, np.arange(self.size))

    def sums(self, values: Array) -> Array:
        """Return the sums over each part, by column."""
        return np.add.reduceat(values[self._order], self._starts, axis=0)

    def log_sums(self, values: Array) -> Array:
        """Return the logarithms of the sums of exp(values), without underflow."""
        values = values[self._order]
        top = np.maximum.reduceat(values, self._starts, axis=0)
        top = np.where(top == -np.inf, 0.0, top)
        parts = np.add.reduceat(np.exp(values - top[self._ordered]), self._starts, axis=0)
        with np.errstate(divide="ignore"):
            return top + np.log(parts)


class Coalition:
    """What a coalition can tell apart: its class s of each z, and the groups of rows this makes.

    `pairs` groups the rows by (s, x) and `classes` by s; `chance` is p(x|s), by row.
    """

    def __init__(self, classes: Index, z: Index, x: Index, weights: Array) -> None:
        s = classes[z]
        self.pairs = Groups(s * (int(x.max()) + 1) + x)
        self.classes = Groups(s)
        pair = self.pairs.sums(weights)[self.pairs.index]
        self.chance: Array = (pair / self.classes.sums(weights)[self.classes.index])[:, None]
        self.log_chance = np.log(self.chance)
        # Then the sums over pairs are the cells themselves.
        self.separates_rows = self.pairs.size == len(z)

    def log_ratio(self, log_joint: Array) -> Array:
        """Return log( p(x|r̂,s) / p(x|s) ), shape (rows, outputs), of a log joint distribution."""
        pair = self.pairs.log_sums(log_joint)[self.pairs.index]
        with np.errstate(invalid="ignore"):
            return pair - self.classes.log_sums(log_joint)[self.classes.index] - self.log_chance

    def normalized(self, log_ratio: Array) -> Array:
        """Return the log ratio shifted so that sum_x p(x|s) exp(log_ratio) = 1 for each (r̂, s)."""
        first = self.pairs.first
        members = Groups(self.classes.index[first])
        totals = members.log_sums(log_ratio[first] + self.log_chance[first])
        return log_ratio - totals[self.classes.index]

    def centered(self, values: Array) -> Array:
        """Return values shifted so that sum_x p(x|s) values = 0 for each (r̂, s)."""
        first = self.pairs.first
        members = Groups(self.classes.index[first])
        means = members.sums(values[first] * self.chance[first])
        return values - means[self.classes.index]


class ReleaseTerms:
    """Rows of positive probability of a distribution p(z,x), and its coalitions.

    Parameters
    ----------
    law : array, shape (Z, X)
        p(z,x), divided by its sum here.
    coalitions : sequence of integer arrays, shape (Z,)
        For each coalition the class of every z; equal where the coalition sees the same.
    """

    def __init__(self, law: Array, coalitions: Sequence[NDArray[np.integer]]) -> None:
        self.shape = law.shape
        self.z, self.x = np.nonzero(law > 0)
        self.weights: Array = law[self.z, self.x] / law.sum()
        self.log_weights = np.log(self.weights)[:, None]
        self.coalitions = [
            Coalition(np.asarray(classes, dtype=np.intp), self.z, self.x, self.weights)
            for classes in coalitions
        ]

    def rows(self, values: Array) -> Array:
        """Return the rows of an array of shape (Z, X, ...)."""
        return values[self.z, self.x]

    def log_ratios(self, log_kernel: Array) -> list[Array]:
        """Return `Coalition.log_ratio` for each coalition, of a kernel's rows as logarithms."""
        log_joint = log_kernel + self.log_weights
        return [coalition.log_ratio(log_joint) for coalition in self.coalitions]

    def information(self, kernel: Array) -> Array:
        """Return I(R̂;X|S) for each coalition, in nats, of a kernel's rows."""
        with np.errstate(divide="ignore"):
            ratios = self.log_ratios(np.log(kernel))
        joint = self.weights[:, None] * kernel
        used = kernel > 0
        return np.array([float(joint[used] @ ratio[used]) for ratio in ratios])

    def kernel(self, rows: Array) -> Array:
        """Return the kernel of shape (Z, X, outputs) that has these rows.

        Rows of probability zero get the distribution of the output given z; uniform where p(z) = 0
        too.
        """
        outputs = rows.shape[1]
        joint = np.zeros((self.shape[0], outputs))
        np.add.at(joint, self.z, self.weights[:, None] * rows)
        given = joint.sum(axis=1, keepdims=True)
        fill = np.where(given > 0, joint / np.where(given > 0, given, 1.0), 1 / outputs)
        result = np.repeat(fill[:, None, :], self.shape[1], axis=1)
        result[self.z, self.x] = rows
        return result

    def by_class(self, classes: NDArray[np.integer], values: Array) -> Array:
        """Return values per row that depend on (s, x) alone as an array (S, X, outputs)."""
        result = np.zeros((int(classes.max()) + 1, self.shape[1], values.shape[1]))
        result[classes[self.z], self.x] = values
        return result
