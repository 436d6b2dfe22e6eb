"""The Blahut–Arimoto iteration for the capacity of a channel."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.clock import Clock
from cvxleak.core.validation import real_number, whole_number
from cvxleak.iterative.history import IterativeResult
from cvxleak.model import Channel, Prior, as_channel, as_prior

__all__ = ["blahut_arimoto"]

FLOOR = 1e-200
"""Probabilities below this are set to 0: subnormal numbers make every product 5 times slower."""


def blahut_arimoto(
    channel: Channel | ArrayLike,
    *,
    start: Prior | ArrayLike | None = None,
    tol: float = 1e-9,
    max_iterations: int = 100_000,
    time_limit: float | None = None,
) -> IterativeResult:
    """Maximize I(p, Q) over the input distribution p by the plain Blahut–Arimoto iteration.

    One update is p_x <- p_x exp(D_x) / sum_x' p_x' exp(D_x'), where D_x = D(q(.|x) || t) and t is
    the output distribution of p. The capacity lies between I(p, Q) = sum_x p_x D_x and max_x D_x.

    Parameters
    ----------
    channel : Channel or array_like, shape (n, m)
        The rows q(y|x), each divided by its sum.
    start : Prior or array_like, shape (n,), optional
        Initial input distribution; uniform if left out. Zero entries stay zero.
    tol : float
        Stop when max_x D_x - I(p, Q) is at most this many nats.
    max_iterations : int
        Largest number of updates.
    time_limit : float, optional
        Seconds after which the iteration stops.

    Returns
    -------
    IterativeResult
        `point` is p; `history` has ``objective`` I(p, Q) and ``upper`` max_x D_x per iterate, and
        ``step`` sum_x |change of p_x| per update.

    Raises
    ------
    ValidationError
        Not a channel, a start that does not match it, or an option out of range.

    Notes
    -----
    Blahut (1972) and Arimoto (1972), both IEEE Trans. Inf. Theory 18. After k updates the gap is
    O(1/k). Convergence is slow if inputs have similar rows; `capacity_interior_point` is the fast
    method.

    Examples
    --------
    >>> from cvxleak.iterative import blahut_arimoto
    >>> run = blahut_arimoto([[1.0, 0.0], [0.5, 0.5]])
    >>> print(run)
    0.2231436 after 39 iterations: the gap is within tol
    >>> run.point.round(6)
    array([0.6, 0.4])
    """
    real_number(tol, "tol", 0.0)
    whole_number(max_iterations, "max_iterations", 0)
    clock = Clock(time_limit)
    matrix = as_channel(channel).matrix
    n = len(matrix)
    p = np.full(n, 1 / n) if start is None else as_prior(start, n, "start").probabilities
    matrix = matrix / matrix.sum(axis=1, keepdims=True)
    p = p / p.sum()
    negentropy = (matrix * np.log(np.where(matrix > 0, matrix, 1.0))).sum(axis=1)
    history: dict[str, list[float]] = {"objective": [], "upper": [], "step": []}
    while True:
        divergences = negentropy - matrix @ np.log(np.maximum(p @ matrix, FLOOR))
        lower, upper = float(p @ divergences), float(divergences.max())
        history["objective"].append(lower)
        history["upper"].append(upper)
        if upper - lower <= tol:
            stopped = "the gap is within tol"
        elif len(history["step"]) == max_iterations:
            stopped = "max_iterations reached"
        elif clock.late:
            stopped = "time_limit reached"
        else:
            previous = p
            p = p * np.exp(divergences - divergences[p > 0].max())
            p /= p.sum()
            p[p < FLOOR] = 0.0
            history["step"].append(float(np.abs(p - previous).sum()))
            continue
        arrays = {name: np.array(values) for name, values in history.items()}
        return IterativeResult(lower, p, len(history["step"]), stopped, arrays)
