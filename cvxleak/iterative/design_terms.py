"""The parts of a design with fixed priors: secrets, sources, costs, and the dual bound.

A secret A_k is given by its joint distribution with the input, P_k(a, x); what it leaks through a
channel q is I_k = I(A_k;Y), with s_k(a,y) = sum_x P_k(a,x) q(y|x). The input itself is the secret
whose table is diagonal, and is kept as the vector of its diagonal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import dimensions, frozen_array, in_order, probability_rows
from cvxleak.iterative.formulas import Array

__all__ = ["DesignTerms", "dual_bound"]

TINY = 1e-300


@dataclass(frozen=True)
class DesignTerms:
    """Secrets and sources, checked; see the module.

    Attributes
    ----------
    secrets : tuple of arrays, each of shape (n,) or (A, n)
        Distributions of the input (whose information is I(X;Y)), or tables P_k(a, x); not both.
    costs : array, shape (J, n, m)
        p_j(x) d(x, y) for each source.
    """

    secrets: tuple[Array, ...]
    costs: Array

    @classmethod
    def checked(
        cls, secrets: Iterable[ArrayLike], sources: Iterable[ArrayLike], distortion: ArrayLike
    ) -> DesignTerms:
        """Return the terms, with normalized distributions; raise if an argument is wrong."""
        d = frozen_array(distortion, "distortion", 2)
        if d.size == 0 or d.min() < 0 or d.max() == np.inf:
            raise ValidationError(
                f"distortion: found shape {d.shape} and entries that are not all finite and "
                "non-negative"
            )
        tables = tuple(
            _law(table, f"secrets[{k}]", dimensions(table, f"secrets[{k}]"), d.shape[0])
            for k, table in enumerate(in_order(secrets, "secrets"))
        )
        laws = [
            _law(law, f"sources[{j}]", 1, d.shape[0])
            for j, law in enumerate(in_order(sources, "sources"))
        ]
        if not tables or not laws:
            raise ValidationError("secrets, sources: at least one of each is needed")
        if len({table.ndim for table in tables}) > 1:
            raise ValidationError(
                "secrets: found distributions of the input and joint distributions; all must be of "
                "one form"
            )
        return cls(tables, np.array(laws)[:, :, None] * d)

    @property
    def total(self) -> bool:
        """Whether the secrets are the input itself."""
        return self.secrets[0].ndim == 1

    @property
    def shape(self) -> tuple[int, int]:
        """Inputs and outputs."""
        return self.costs.shape[1], self.costs.shape[2]

    def distortions(self, channel: Array) -> Array:
        """E_j d, shape (J,)."""
        return np.einsum("jxy,xy->j", self.costs, channel)

    def slopes(self, reference: Array) -> Array:
        """sum_a P_k(a,x) log( s_k(a,y) / (pi_k(a) r_k(y)) ) at a reference, shape (K, n, m).

        The gradient of I_k there. Where x or y is impossible it is 0.
        """
        return np.array([_slope(table, reference) for table in self.secrets])

    def information(self, channel: Array, slopes: Array | None = None) -> Array:
        """I_k of a channel, shape (K,)."""
        at = self.slopes(channel) if slopes is None else slopes
        # I is homogeneous of degree one, so it is its gradient times the point.
        return np.maximum(np.einsum("kxy,xy->k", at, channel), 0.0)


def dual_bound(terms: DesignTerms, slopes: Array, weights: Array, prices: Array) -> float:
    """Return min over all channels of sum_k w_k I_k + sum_j mu_j E_j d, bounded from below.

    I_k(q) >= sum_{x,y} q(y|x) G_k(x,y), with G_k the gradient at any reference (`slopes`): the
    bound is sum_x min_y ( sum_k w_k G_k + sum_j mu_j p_j(x) d(x,y) ).
    """
    rows = np.tensordot(weights, slopes, 1) + np.tensordot(prices, terms.costs, 1)
    return float(rows.min(axis=1).sum())


def _law(values: ArrayLike, name: str, ndim: int, inputs: int) -> Array:
    if ndim not in (1, 2):
        raise ValidationError(f"{name}: expected 1 or 2 dimensions, found {ndim}")
    array = frozen_array(values, name, ndim)
    if array.shape[-1] != inputs:
        raise ValidationError(f"{name}: found shape {array.shape}; {inputs} inputs are needed")
    probability_rows(array.ravel(), name, 1)
    array = array / array.sum()
    # A value of the secret that never occurs has nothing to tell.
    return array if ndim == 1 else array[array.sum(axis=1) > 0]


def _slope(table: Array, reference: Array) -> Array:
    if table.ndim == 1:
        output = table @ reference
        logs = np.log(np.maximum(reference, TINY)) - np.log(np.maximum(output, TINY))
        return np.where(output > 0, table[:, None] * logs, 0.0)
    joint = table @ reference
    output = joint.sum(axis=0)
    logs = np.log(np.maximum(joint, TINY)) - np.log(np.maximum(output, TINY))
    logs -= np.log(table.sum(axis=1))[:, None]
    return np.where(output > 0, table.T @ logs, 0.0)
