"""A distribution of given entropy from a given distribution (LEAKAGE Algorithm 5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import entr

from cvxleak.core.errors import InfeasibleError
from cvxleak.core.validation import Array, probability_rows, real_number, whole_number
from cvxleak.iterative.history import IterativeResult

__all__ = ["NO_ROOT", "project_to_entropy"]

FOUND = "a softmax of the distribution has the entropy"
NO_ROOT = "no root: the target is below log(number of largest entries)"
"""What `stopped` says when no softmax of the distribution has an entropy as low as the target."""


def project_to_entropy(
    distribution: ArrayLike,
    target: float,
    *,
    tol: float = 1e-10,
    max_iterations: int = 200,
) -> IterativeResult:
    """Find beta >= 0 such that softmax(beta v) has entropy t (LEAKAGE Algorithm 5).

    Parameters
    ----------
    distribution : array_like, shape (n,)
        The vector v, returned as it is if its own entropy is within `tol` of the target.
    target : float
        t, in nats, from 0 to log n.
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
    The entropy of softmax(beta v) falls from log n at beta = 0 to log k as beta grows, k being the
    number of largest entries of v. For t below log k there is no root: the limit, uniform on
    those entries, is returned and `stopped` is `NO_ROOT`. Its entropy is above the target, so it
    meets H >= t all the same. The interval for beta, which the paper leaves open, is found by
    doubling; the root by the Brent–Dekker method as there.

    The paper calls this a projection; w is not the nearest point of entropy t, and as a function
    of v it jumps where the entropy of v comes within `tol` of the target.

    Examples
    --------
    >>> from cvxleak.iterative import project_to_entropy
    >>> run = project_to_entropy([0.6, 0.3, 0.1], 0.8)
    >>> run.point.round(4)
    array([0.6975, 0.2089, 0.0935])
    >>> print(project_to_entropy([0.4, 0.4, 0.2], 0.5))
    0.6931472 after 1 iteration: no root: the target is below log(number of largest entries)
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
    trace = [float(entr(v).sum())]

    def result(w: Array, stopped: str) -> IterativeResult:
        history = {"entropy": np.array(trace)}
        return IterativeResult(trace[-1], w, len(trace) - 1, stopped, history)

    def softmax(beta: float) -> Array:
        parts = np.exp(beta * (v - v.max()))
        return parts / parts.sum()

    def excess(beta: float) -> float:
        trace.append(float(entr(softmax(beta)).sum()))
        return trace[-1] - t

    if abs(trace[0] - t) <= accuracy:
        return result(v, "the distribution has the entropy")
    largest = v == v.max()
    ties = np.count_nonzero(largest)
    if t <= np.log(ties) + accuracy:
        trace.append(float(np.log(ties)))
        return result(largest / ties, FOUND if t >= trace[-1] - accuracy else NO_ROOT)
    if t >= np.log(len(v)) - accuracy:
        excess(0.0)
        return result(np.full(len(v), 1 / len(v)), FOUND)
    high = 1.0
    while excess(high) > 0 and len(trace) < cap:
        high *= 2
    if trace[-1] > t:
        return result(softmax(high), f"max_iterations={cap} reached")
    beta, run = brentq(
        excess,
        0.0,
        high,
        xtol=1e-15,
        maxiter=max(1, cap - len(trace)),
        full_output=True,
        disp=False,
    )
    excess(beta)
    met = run.converged and abs(trace[-1] - t) <= max(accuracy, 1e-12)
    return result(softmax(beta), FOUND if met else f"max_iterations={cap} reached")
