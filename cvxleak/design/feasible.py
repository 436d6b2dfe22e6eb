"""Channels that are exactly what they have to be: stochastic, within a budget, constant."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from flint import fmpq
from scipy.optimize import linprog

from cvxleak.core.errors import SolverError
from cvxleak.core.validation import Array
from cvxleak.proofs.design import exact_distortions

__all__ = ["Costs", "blended", "in_decimals", "least_worst", "snapped"]

UNIT = 2.0**-50
"""Entries of a released channel are multiples of this, so that its rows sum to 1 exactly."""

DIGITS = (9, 6)
"""How many decimals a number that a user wrote has, where a solver's point is near it."""


@dataclass(frozen=True)
class Costs:
    """Expected distortions of channels, in floating point and exactly.

    Attributes
    ----------
    table : array, shape (K, R, Y)
        P_k(r) d(r, y), rounded.
    masses : list of lists of fmpq, shape (K, R)
        The sources, exactly.
    price : array, shape (R, Y)
        d(r, y).
    """

    table: Array
    masses: list[list[fmpq]]
    price: Array

    def exact(self, matrix: Array) -> list[fmpq]:
        """Return the exact expected distortion under each source."""
        return exact_distortions(self.masses, self.price.tolist(), matrix)

    def worst(self, matrix: Array) -> float:
        """Return the largest expected distortion, in floating point."""
        return float(np.tensordot(self.table, matrix, 2).max())

    def least(self) -> Array:
        """Return a channel of least worst-case distortion."""
        # Of one source every row has a cheapest output, those that it never sees too.
        return _chosen(self.price) if len(self.table) == 1 else least_worst(self.table)[0]

    def constant(self) -> tuple[Array, Array]:
        """Return the constant output distribution of least worst-case distortion, shape (Y,).

        Also return shares of the sources, shape (K,), which prove that none is better.
        """
        channel, shares = least_worst(self.table.sum(axis=1, keepdims=True))
        return channel[0], shares


def least_worst(table: Array) -> tuple[Array, Array]:
    """Return a channel of least worst-case distortion, and shares of the sources that prove it so.

    min over channels q of max_k sum_{r,y} P_k(r) d(r, y) q(y|r), by linear programming.

    Parameters
    ----------
    table : array, shape (K, R, Y)
        P_k(r) d(r, y).

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.design.feasible import least_worst
    >>> law, shares = least_worst(np.array([[[0.0, 1.0]], [[2.0, 0.0]]]))
    >>> law.round(9).tolist(), shares.round(9).tolist()
    ([[0.333333333, 0.666666667]], [0.666666667, 0.333333333])
    """
    sources, rows, outputs = table.shape
    if sources == 1:
        return _chosen(table[0]), np.ones(1)
    # min t: E_k(q) <= t, rows stochastic; solvers want numbers near 1.
    flat = table.reshape(sources, -1) / (float(table.max()) or 1.0)
    sums = np.kron(np.eye(rows), np.ones(outputs))
    found = linprog(
        np.append(np.zeros(rows * outputs), 1.0),
        A_ub=np.column_stack([flat, -np.ones(sources)]),
        b_ub=np.zeros(sources),
        A_eq=np.column_stack([sums, np.zeros(rows)]),
        b_eq=np.ones(rows),
        method="highs",
    )
    if found.x is None:
        raise SolverError(f"the channel of least distortion was not found: {found.message}")
    channel = snapped(found.x[:-1].reshape(rows, outputs))
    return channel, np.maximum(-found.ineqlin.marginals, 0.0)


def snapped(matrix: Array, least: float = 0.0) -> Array:
    """Return a channel near `matrix` whose rows sum to 1 exactly, as rational numbers.

    Entries below `least` become zero; what is left over goes to the largest entry of the row.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.design.feasible import snapped
    >>> from fractions import Fraction
    >>> sum(map(Fraction, snapped(np.full((1, 3), 1 / 3))[0].tolist()))
    Fraction(1, 1)
    """
    q = np.where(matrix > least, matrix, 0.0)
    q = np.floor(q / q.sum(axis=1, keepdims=True) / UNIT) * UNIT
    # Sums and differences of multiples of 2^-50 up to 1 are exact.
    q[np.arange(len(q)), q.argmax(axis=1)] += 1.0 - q.sum(axis=1)
    return q


def in_decimals(matrix: Array) -> list[Array]:
    """Return channels of short decimals near a solver's, whose rows sum to 1 as written.

    Where a solver's channel misses by its tolerance what a user asks for, one of them may be meant.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.design.feasible import in_decimals
    >>> in_decimals(np.array([[0.7 + 1e-11, 0.3 - 1e-11]]))[0].tolist()
    [[0.7, 0.3]]
    """
    each, top = np.arange(len(matrix)), matrix.argmax(axis=1)
    found = []
    for digits in DIGITS:
        rows = np.round(matrix, digits)
        rows[each, top] = 0.0
        rows[each, top] = np.round(1.0 - rows.sum(axis=1), digits)
        found.append(rows)
    return found


def blended(
    parts: list[tuple[float, Array]], law: Array | None
) -> tuple[Array, list[float]] | None:
    """Return a mixture of channels that is truly no less than its parts with the shares returned.

    The shares are those asked for, but for rounding. What they leave goes to the constant output
    `law`, or, if that is None, to the largest entries. None if rounding leaves too little.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.design.feasible import blended
    >>> matrix, shares = blended([(0.5, np.eye(2))], np.array([0.5, 0.5]))
    >>> matrix.round(12).tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    # Each entry of each part may be rounded up by one unit.
    loss = (len(parts) + 1) * parts[0][1].shape[1] * UNIT
    shares = [share * (1 - loss) for share, _ in parts]
    mixture = sum(
        (
            np.ceil(share * matrix * (1 + 2.0**-50) / UNIT) * UNIT
            for share, (_, matrix) in zip(shares, parts, strict=True)
        ),
        start=np.zeros(parts[0][1].shape),
    )
    left = 1.0 - mixture.sum(axis=1)
    if left.min() < 0:
        return None
    if law is None:
        mixture[np.arange(len(left)), mixture.argmax(axis=1)] += left
        return mixture, shares
    # Sums and differences of multiples of 2^-50 up to 1 are exact.
    common = np.floor(law * left.min() / UNIT) * UNIT
    common[law.argmax()] += max(left.min() - common.sum(), 0.0)
    mixture += common
    mixture[:, law.argmax()] += left - common.sum()
    return mixture, shares


def _chosen(costs: Array) -> Array:
    return np.eye(costs.shape[1])[costs.argmin(axis=1)]
