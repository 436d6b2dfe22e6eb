"""One record's side of a prior: marginal p(x_i), conditionals p(x_{-i}|x_i), rows q(y|x).

Shapes: marginal (A,), conditional (A, M), rows (A, M, Y), with A values of the record, M contexts
(values of the other records) and Y outputs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, frozen_array, probability_rows
from cvxleak.iterative.formulas import information

__all__ = ["CLIP", "FEASIBILITY", "RecordView", "relative_gain", "tangent_norm", "verdict"]

FEASIBILITY = 1e-9
"""A prior counts as feasible when H(X) is short of the floor by at most this many nats."""

CLIP = 1e-10
"""Probabilities below it count as it inside logarithms (LEAKAGE 3.4.6)."""


@dataclass(frozen=True)
class RecordView:
    """A prior and a mechanism as one record sees them."""

    marginal: Array
    conditional: Array
    rows: Array

    @classmethod
    def checked(cls, marginal: ArrayLike, conditional: ArrayLike, rows: ArrayLike) -> RecordView:
        """Return the view, or say which argument is wrong."""
        p = probability_rows(marginal, "marginal", 1)
        v = probability_rows(conditional, "conditional", 2)
        q = frozen_array(rows, "rows", 3)
        probability_rows(q.reshape(-1, max(q.shape[2], 1)), "rows", 2)
        if v.shape[0] != len(p) or q.shape[:2] != v.shape:
            raise ValidationError(
                f"rows: found shape {q.shape} with a marginal of shape {p.shape} and a "
                f"conditional of shape {v.shape}; (A,), (A, M) and (A, M, Y) are needed"
            )
        return cls(p, v, q)

    @classmethod
    def of(cls, prior: Array, mechanism: Array, record: int) -> RecordView:
        """Split a prior on the datasets; values of probability 0 get uniform conditionals."""
        joint = np.moveaxis(prior, record, 0).reshape(prior.shape[record], -1)
        rows = np.moveaxis(mechanism, record, 0).reshape(*joint.shape, mechanism.shape[-1])
        marginal = joint.sum(axis=1)
        uniform = np.full_like(joint, 1 / joint.shape[1])
        seen = marginal > 0
        conditional = np.divide(joint, marginal[:, None], out=uniform, where=seen[:, None])
        return cls(marginal, conditional, rows)

    def prior(self, shape: tuple[int, ...], record: int) -> Array:
        """Put the prior on the datasets together again."""
        moved = (shape[record], *shape[:record], *shape[record + 1 :])
        joint = self.marginal[:, None] * self.conditional
        return np.moveaxis(joint.reshape(moved), 0, record)

    @property
    def laws(self) -> Array:
        """p(y|x_i), shape (A, Y)."""
        return np.einsum("am,amy->ay", self.conditional, self.rows)

    @property
    def information(self) -> float:
        """I(X_i;Y)."""
        return float(information(self.marginal[:, None] * self.laws))

    @property
    def row_entropies(self) -> Array:
        """H(X_{-i}|x_i), shape (A,)."""
        return entr(self.conditional).sum(axis=1)

    @property
    def entropy(self) -> float:
        """H(X) = H(X_i) + sum p(x_i) H(X_{-i}|x_i) (LEAKAGE (11))."""
        return float(entr(self.marginal).sum() + self.marginal @ self.row_entropies)

    @property
    def scores(self) -> Array:
        """sum_y q(y|x) log(p(y|x_i) / p(y)), shape (A, M): the gradient of I over p(x_i)."""
        laws = self.laws
        output = self.marginal @ laws
        ratios = np.log(np.maximum(laws, CLIP)) - np.log(np.maximum(output, CLIP))
        return np.einsum("amy,ay->am", self.rows, ratios)


def relative_gain(objective: list[float]) -> Array:
    """|I_j - I_{j-1}| / (|I_j| + delta) for each update, delta = 1e-10 (LEAKAGE 3.4.6)."""
    values = np.array(objective)
    return np.abs(np.diff(values)) / (np.abs(values[1:]) + 1e-10)


def verdict(reason: str, slack: float) -> str:
    """Why a method stopped, and by how much it misses the floor if it does."""
    if slack >= -FEASIBILITY:
        return reason
    return f"{reason}; infeasible: H(X) is short of the floor by {-slack:.3g} nats"


def tangent_norm(gradient: Array) -> float:
    """Euclidean norm of a gradient in probability vectors (last axis), without its mean.

    The mean is the part that the sums of the vectors, held at 1, make void.
    """
    return float(np.linalg.norm(gradient - gradient.mean(axis=-1, keepdims=True)))
