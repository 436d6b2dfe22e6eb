"""The two functions that every method here evaluates, for stacks of arguments."""

from __future__ import annotations

import numpy as np
from scipy.special import entr

from cvxleak.core.validation import Array

__all__ = ["entropy", "information"]


def information(joint: Array) -> Array:
    """I(A;Y) of joint distributions, shape (..., A, Y)."""
    # Logarithms are subtracted, since the product of two tiny marginals can underflow to zero.
    laws = (joint, joint.sum(axis=-1, keepdims=True), joint.sum(axis=-2, keepdims=True))
    log_joint, log_pi, log_output = (np.log(np.where(law > 0, law, 1.0)) for law in laws)
    return (joint * (log_joint - log_pi - log_output)).sum(axis=(-2, -1))


def entropy(weights: Array, log_m: Array) -> Array:
    """F(w) = H(w) + <w, log m> of lumped weights, shape (..., N)."""
    return entr(weights).sum(axis=-1) + weights @ log_m
