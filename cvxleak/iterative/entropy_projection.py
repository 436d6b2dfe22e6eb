"""A distribution of given entropy from a given distribution (LEAKAGE Algorithm 5)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import entr

from cvxleak.core.errors import InfeasibleError
from cvxleak.core.validation import Array, probability_rows, real_number, whole_number
from cvxleak.iterative.history import IterativeResult

__all__ = ["NO_ROOT", "project_to_entropy"]

FOUND = "a softmax of the distribution has the entropy"
NO_ROOT = "no root from beta_min to beta_max"
"""What `stopped` says when no softmax of the distribution that is allowed has the entropy."""


def project_to_entropy(
    distribution: ArrayLike,
    target: float,
    *,
    beta_min: float = 0.0,
    beta_max: float = math.inf,
    tol: float = 1e-10,
    max_iterations: int = 200,
) -> IterativeResult:
    """Find beta such that softmax(beta v) has entropy t (LEAKAGE Algorithm 5).

    Parameters
    ----------
    distribution : array_like, shape (n,)
        The vector v, returned as it is if its own entropy is within `tol` of the target.
    target : float
        t, in nats, from 0 to log n.
    beta_min, beta_max : float
        Ends of the interval for beta, which the paper leaves open.
    tol : float
        Accepted |H - t|, in nats.
    max_iterations : int
        Cap on the softmaxes tried.

    Returns
    -------
    IterativeResult
        `point`: the distribution w; `value`: H(w). `history` has the ``entropy`` of v and then of
        each softmax tried.

    Raises
    ------
    ValidationError
        Arguments of the wrong kind, or a negative target.
    InfeasibleError
        A target above log n.

    Notes
    -----
    The entropy of softmax(beta v) falls from log n at beta = 0 on either side, to log k as beta
    grows, k being the number of largest entries of v, and to log(number of smallest ones) as it
    falls. So there is at most one root on either side; the one with beta >= 0, which keeps the
    order of the entries, is preferred. If there is none, `stopped` is `NO_ROOT`, and the point is
    that of the entropy nearest to t: for beta >= 0 and t below log k, uniform on the largest
    entries; its entropy is above the target, so it meets H >= t all the same. Roots are found by
    the Brent–Dekker method, as in the paper, and unbounded intervals cut by doubling.

    The paper calls this a projection; w is not the nearest point of entropy t, and as a function
    of v it jumps where the entropy of v comes within `tol` of the target.

    Examples
    --------
    >>> from cvxleak.iterative import project_to_entropy
    >>> run = project_to_entropy([0.6, 0.3, 0.1], 0.8)
    >>> run.point.round(4)
    array([0.6975, 0.2089, 0.0935])
    >>> print(project_to_entropy([0.4, 0.4, 0.2], 0.5))
    0.6931472 after 2 iterations: no root from beta_min to beta_max
    >>> project_to_entropy([0.4, 0.4, 0.2], 0.5, beta_min=-20).point.round(4)
    array([0.0696, 0.0696, 0.8608])
    """
    v = probability_rows(distribution, "distribution", 1)
    accuracy = real_number(tol, "tol", 0)
    t, most = real_number(target, "target", 0), float(np.log(len(v)))
    if t > most + accuracy:
        raise InfeasibleError(
            f"target: found {t:g} nats; no distribution on {len(v)} outcomes has more than "
            f"log {len(v)} = {most:.6f}"
        )
    cap = whole_number(max_iterations, "max_iterations", 1)
    low = real_number(beta_min, "beta_min")
    high = real_number(beta_max, "beta_max", low)
    trace = [float(entr(v).sum())]

    def result(w: Array, stopped: str) -> IterativeResult:
        history = {"entropy": np.array(trace)}
        return IterativeResult(float(entr(w).sum()), w, len(trace) - 1, stopped, history)

    if abs(trace[0] - t) <= accuracy:
        return result(v, "the distribution has the entropy")
    nearest = (math.inf, v)
    sides = [(1, max(low, 0.0), high)] if high >= 0 else []
    if low < 0:
        sides.append((-1, max(-high, 0.0), -low))
    for sign, near, far in sides:
        w, stopped = _root(sign * v, near, far, t, accuracy, cap, trace)
        if stopped != NO_ROOT:
            return result(w, stopped)
        nearest = min(nearest, (abs(trace[-1] - t), w), key=lambda pair: pair[0])
    return result(nearest[1], NO_ROOT)


def _root(
    v: Array, near: float, far: float, t: float, accuracy: float, cap: int, trace: list[float]
) -> tuple[Array, str]:
    """Find the root with near <= beta <= far, where near >= 0: the entropy falls with beta."""

    def softmax(beta: float) -> Array:
        parts = np.exp(beta * (v - v.max()))
        return parts / parts.sum()

    def excess(beta: float) -> float:
        trace.append(float(entr(softmax(beta)).sum()))
        return trace[-1] - t

    at_near = excess(near)
    if at_near <= accuracy:
        return softmax(near), FOUND if at_near >= -accuracy else NO_ROOT
    largest = v == v.max()
    ties = np.count_nonzero(largest)
    if far == math.inf and t <= np.log(ties) + accuracy:
        trace.append(float(np.log(ties)))
        return largest / ties, FOUND if t >= trace[-1] - accuracy else NO_ROOT
    edge = far if far < math.inf else max(1.0, near)
    while excess(edge) > 0 and edge < far and len(trace) < cap:
        edge *= 2
    if trace[-1] > t:
        return softmax(edge), NO_ROOT if edge == far else f"max_iterations={cap} reached"
    beta, run = brentq(
        excess,
        near,
        edge,
        xtol=1e-15,
        maxiter=max(1, cap - len(trace)),
        full_output=True,
        disp=False,
    )
    excess(beta)
    met = run.converged and abs(trace[-1] - t) <= max(accuracy, 1e-12)
    return softmax(beta), FOUND if met else f"max_iterations={cap} reached"
