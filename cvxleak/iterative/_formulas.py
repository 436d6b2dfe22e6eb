"""The two functions that every method here evaluates, for stacks of arguments."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, rel_entr

__all__ = ["Array", "entropy", "information"]

Array = NDArray[np.float64]


def information(joint: Array) -> Array:
    """I(A;Y) of joint laws, shape (..., A, Y)."""
    product = joint.sum(axis=-1, keepdims=True) * joint.sum(axis=-2, keepdims=True)
    return rel_entr(joint, product).sum(axis=(-2, -1))


def entropy(weights: Array, log_m: Array) -> Array:
    """F(w) = H(w) + <w, log m> of lumped weights, shape (..., N)."""
    return entr(weights).sum(axis=-1) + weights @ log_m
