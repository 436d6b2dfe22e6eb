"""The kernel's boxes of functionals and increments of log(vR / t), in floats.

`cvxleak.kernel.ratio` has the formulas and their proofs. A search evaluates them for many boxes at
once, without error bounds, and chooses the functionals and the orders of outputs and groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxleak.audit.worst_adversary.group import LEAST
from cvxleak.audit.worst_adversary.objective import HAIR
from cvxleak.audit.worst_adversary.time_sharing import Value, short
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.kernel.ratio import ORDERED, UNORDERED, Boxes

__all__ = ["LogRatioBoxes"]

FUNCTIONALS = 3
"""With 1 a count of 40 people with Gaussian noise stays open; with 2 or 4 boxes are as many."""


class Floats(np.ndarray):
    """An array of floats with what the kernel's boxes need of numbers, but without error bounds."""

    @staticmethod
    def of(x: Any) -> Any:
        """Return an array as such."""
        return np.asarray(x, dtype=float).view(Floats)

    @property
    def m(self) -> Array:
        """The floats."""
        return self.view(np.ndarray)

    def upper(self) -> Array:
        """Return the floats."""
        return self.view(np.ndarray)

    def exp(self) -> Any:
        """Return the exponential."""
        return np.exp(self)

    def log(self) -> Any:
        """Return the logarithm."""
        return np.log(self)

    def max(self, other: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the larger one, entry by entry."""
        return np.maximum(self, other)

    def inner(self, other: Any, axis: int = -1) -> Any:
        """Return inner products along an axis."""
        return (self * other).sum(axis)

    def matmul(self, other: Any) -> Any:
        """Return products of matrices."""
        return self @ other


@dataclass(frozen=True, eq=False)
class LogRatioBoxes:
    """The kernel's boxes of one value, in floats, and what a term says of them.

    Attributes
    ----------
    boxes : cvxleak.kernel.ratio.Boxes
        In `Floats`.
    law, psi : array
        A law v with rho = vR, and Psi without the last column.
    outputs, groups : array of int
        The outputs that are reached and the groups, in the order that they have here.
    """

    boxes: Boxes
    law: Array
    psi: Array
    outputs: NDArray[np.intp]
    groups: NDArray[np.intp]

    @classmethod
    def of(cls, value: Value, base: Array, scale: float, log_t: Array, v: Array) -> LogRatioBoxes:
        """Return those whose functionals leave the residuals least."""
        order, groups = _orders(value.rows[:, value.used])
        outputs, law = value.used[order], short(np.maximum(v, LEAST))[groups]
        rows = value.rows[groups][:, outputs]
        logs = np.diff(np.log(rows), axis=1)
        ordered = bool((np.diff(logs, axis=0) > -HAIR).all())
        rho = law @ rows / law.sum()
        x, psi = _functionals(rows - rho, np.ptp(logs, axis=0))
        size = np.sqrt((psi**2 / rho).sum(axis=1))
        x, psi = short(x * size), short(psi / size[:, None])[:, :-1]
        given = map(Floats.of, (rows, base[groups], [scale], log_t[outputs], law / law.sum()))
        boxes = Boxes.made(given, x, psi, ordered, Floats.of)
        return cls(boxes, law, psi, outputs, groups)

    @property
    def work(self) -> float:
        """Multiplications for a box."""
        size = self.boxes.rows.size
        if self.boxes.ordered:
            return 3.0 * ORDERED * (size + 1500)
        return 75.0 * UNORDERED * (size + 100)


def _orders(rows: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the outputs and the groups in the order of likelihood ratios, where they have one.

    It is that of the two groups, and the two outputs, that are farthest apart.
    """
    rho = rows.mean(axis=0)
    along = np.linalg.svd((rows - rho) / np.sqrt(rho), full_matrices=False)[0][:, 0]
    logs = np.log(rows)
    order = np.argsort(logs[along.argmax()] - logs[along.argmin()], kind="stable")
    return order, np.argsort(logs[:, order[-1]] - logs[:, order[0]], kind="stable")


def _functionals(residuals: Array, widths: Array) -> tuple[Array, Array]:
    """Return X and Psi such that the residuals, less X Psi, have short ranges for all laws.

    By Abel's sum the range of <q, u> is sum_y |q_1 + .. + q_y| w_y, if the increment of u after
    output y has a range of length w_y. Each functional is the residual of a group, and its
    coefficients make all ranges least (weighted medians); it is the group with which their sum is
    least.
    """
    x, psi = [], []
    least = 0.0
    for _ in range(FUNCTIONALS):
        sums = np.cumsum(residuals, axis=1)[:, :-1]
        ranges = np.abs(sums) @ widths
        # What is left is rounding: as many functionals as rows that differ are enough.
        least = least or np.finfo(np.float32).eps * ranges.max()
        if ranges.max() <= least:
            break
        spend(20.0 * len(sums) * sums.size)
        found = []
        for own in np.flatnonzero(ranges > least):
            coefficients = _medians(sums, sums[own], widths)
            left = np.abs(sums - coefficients[:, None] * sums[own]) @ widths
            found.append((left.sum(), own, coefficients))
        _, own, coefficients = min(found, key=lambda one: one[0])
        x.append(coefficients)
        psi.append(residuals[own])
        residuals = residuals - coefficients[:, None] * residuals[own]
    return np.stack(x, axis=1), np.stack(psi)


def _medians(sums: Array, own: Array, widths: Array) -> Array:
    """Return the x_g for which sum_y |sums_gy - x_g own_y| widths_y is least."""
    used = own != 0
    ratios, weights = sums[:, used] / own[used], widths[used] * np.abs(own[used])
    order = np.argsort(ratios, axis=1, kind="stable")
    below = np.cumsum(weights[order], axis=1)
    half = (below >= below[:, -1:] / 2).argmax(axis=1)
    return np.take_along_axis(ratios, order, axis=1)[np.arange(len(ratios)), half]
