"""The entropy floor of an adversary's prior: H(X) >= b, or F(w) >= b in lumped form."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import root_scalar
from scipy.special import entr

from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.core.validation import Array, instance, probability_rows, real_number
from cvxleak.iterative.formulas import entropy
from cvxleak.model import Lumped, as_prior

__all__ = [
    "checked_floor",
    "entropy_boundary_mixture",
    "least_mixture",
    "meet_entropy_floor",
    "rounding",
]


def meet_entropy_floor(weights: ArrayLike, lumped: Lumped, entropy_floor: float) -> Array:
    """Return the mixture of `weights` and the uniform prior that just meets the entropy floor.

    The least theta with F((1 - theta) w + theta u) >= b + margin, where the margin of
    1e-13 (1 + log|X|) nats is the rounding error of F. F is concave along the segment and largest
    at the uniform prior u, so the equation has one root; If `weights` meet the floor, theta is 0
    and they are returned unchanged. If b > log|X| - margin, u is returned.

    Parameters
    ----------
    weights : array_like, shape (N,)
        A lumped prior.
    lumped : Lumped
        The problem.
    entropy_floor : float
        b, in nats.

    Raises
    ------
    ValidationError
        Weights that are not a distribution on the groups.
    InfeasibleError
        b above log|X|.

    Examples
    --------
    >>> from cvxleak.iterative import meet_entropy_floor
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> lumped = Mechanism(parity, [[0.9, 0.1], [0.1, 0.9]]).lumped(0)
    >>> meet_entropy_floor([0.5, 0.0, 0.0, 0.5], lumped, 1.0).round(4)
    array([0.4541, 0.0459, 0.0459, 0.4541])
    """
    b = checked_floor(entropy_floor, instance(lumped, Lumped, "lumped").max_entropy)
    w = as_prior(weights, len(lumped.multiplicities), "weights").probabilities
    return least_mixture(w, lumped.uniform(), lumped.log_multiplicity, b)


def entropy_boundary_mixture(distribution: ArrayLike, target: float) -> tuple[Array, Array]:
    """Write a distribution with H >= b as a mixture of distributions with H = b (LEAKAGE Lemma 1).

    Parameters
    ----------
    distribution : array_like, shape (n,)
        p, with H(p) >= b.
    target : float
        b, in nats.

    Returns
    -------
    weights : array, shape (k,)
        Of the mixture; k is at most the number of outcomes with p > 0.
    points : array, shape (k, n)
        The distributions; ``weights @ points`` is p.

    Raises
    ------
    ValidationError
        A vector that is no distribution, or a target below 0 or above H(p).

    Notes
    -----
    On the line through p and a unit vector e, H falls from p to e, where it is 0, so it is b
    somewhere. The other way the line leads to p without this outcome. H passes b before, which
    gives the second point of two; or the rest, with an outcome less, is taken apart in turn. It
    ends since H is 0 at a single outcome.

    Examples
    --------
    >>> from scipy.special import entr
    >>> from cvxleak.iterative import entropy_boundary_mixture
    >>> weights, points = entropy_boundary_mixture([0.5, 0.3, 0.2], 0.6)
    >>> (weights @ points).round(12)
    array([0.5, 0.3, 0.2])
    >>> entr(points).sum(axis=1).round(9)
    array([0.6, 0.6, 0.6])
    """
    p = probability_rows(distribution, "distribution", 1)
    p = p / p.sum()
    b = real_number(target, "target", 0)
    most = float(entr(p).sum())
    if b > most:
        raise ValidationError(f"target: found {b!r}; the distribution has only H = {most!r} nats")
    weights, points, left = [], [], 1.0

    def crossing(start: Array, end: Array) -> Array:
        """Return the point on the segment where the entropy is b."""
        share = root_scalar(
            lambda s: entr((1 - s) * start + s * end).sum() - b, bracket=(0.0, 1.0), xtol=1e-15
        ).root
        return (1 - share) * start + share * end

    while entr(p).sum() > b:
        outcome = p.argmax()
        unit = np.eye(len(p))[outcome]
        rest = np.where(unit > 0, 0.0, p)
        rest /= rest.sum()
        last = entr(rest).sum() <= b
        near, far = crossing(p, unit), crossing(p, rest) if last else rest
        # p[outcome] = share near[outcome] + (1 - share) far[outcome]
        share = (p[outcome] - far[outcome]) / (near[outcome] - far[outcome])
        weights.append(left * share)
        points.append(near)
        left, p = left * (1 - share), far
        if last:
            break
    return np.array([*weights, left]), np.array([*points, p])


def least_mixture(w: Array, uniform: Array, log_m: Array, b: float) -> Array:
    """Return the first point with F >= b + margin on the way from `w` to `uniform`."""
    target = b + rounding(float(entropy(uniform, log_m)))
    if entropy(w, log_m) >= target:
        return w
    low, high = 0.0, 1.0
    while high - low > 1e-16 + 1e-9 * low:
        theta = (low + high) / 2
        if entropy((1 - theta) * w + theta * uniform, log_m) >= target:
            high = theta
        else:
            low = theta
    mixed = (1 - high) * w + high * uniform
    mixed.setflags(write=False)
    return mixed


def rounding(max_entropy: float) -> float:
    """Bound the rounding error of an entropy, where the largest entropy is `max_entropy`."""
    return 1e-13 * (1 + max_entropy)


def checked_floor(entropy_floor: float, max_entropy: float) -> float:
    """Return the floor as a float; past `max_entropy` by more than rounding it is infeasible."""
    b = real_number(entropy_floor, "entropy_floor", 0)
    if b > max_entropy + 10 * rounding(max_entropy):
        raise InfeasibleError(
            f"entropy_floor: found {b!r}; the largest entropy of a prior on the datasets is "
            f"log|X| = {max_entropy!r}"
        )
    return b
