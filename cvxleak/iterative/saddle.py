"""The least worst-case information at a distortion, by ascent on its dual.

For convex parts with vertices V, weights w on all of them (sum 1) and prices s >= 0, the dual is

    g(w, s) = min over Q of  sum_k W_k I(P_k; Q) + sum_v s_v (P_v . c(Q) - D),

W_k P_k = sum of w_v P_v over the vertices of part k, c_x(Q) = sum_y Q(y|x) d(x,y). The inner
minimum is Blahut's: with output distributions t_k = P_k Q in place, Q(y|x) is proportional to
exp( (sum_k W_k P_k(x) log t_k(y) - sum_v s_v P_v(x) d(x,y)) / sum_k W_k P_k(x) ). g is concave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.special import logsumexp

from cvxleak.core.clock import Clock
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import (
    Array,
    frozen_array,
    in_order,
    probability_rows,
    real_number,
    whole_number,
)
from cvxleak.core.wording import counted
from cvxleak.core.work import spend
from cvxleak.iterative.history import IterativeResult
from cvxleak.model import Channel

__all__ = ["Saddle", "information_saddle", "least_lagrangian"]

RESTARTS = 20

SMALLEST = 1e-250
"""Probabilities are kept from underflowing, so that all logarithms are finite."""


@dataclass(frozen=True, eq=False)
class Saddle:
    """A channel, and the sources and prices against which it is optimal.

    Attributes
    ----------
    channel : Channel
        Its rows are positive; near the optimum it is within the budget.
    weights : tuple of ndarray
        For each part, one weight per vertex; all weights together sum to 1.
    prices : tuple of ndarray
        For each part one price per vertex: the multipliers of the budget.

    Examples
    --------
    >>> from cvxleak.iterative import information_saddle
    >>> run = information_saddle([[[0.5, 0.5]]], [[0, 1], [1, 0]], 0.25)
    >>> run.point.channel.matrix.round(2)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """

    channel: Channel
    weights: tuple[Array, ...]
    prices: tuple[Array, ...]


def information_saddle(
    parts: Sequence[ArrayLike],
    distortion: ArrayLike,
    budget: float,
    *,
    tol: float = 1e-9,
    max_iterations: int = 500,
    time_limit: float | None = None,
) -> IterativeResult:
    """Return min over Q of max_P I(P;Q), over channels of worst-case distortion at most D.

    Parameters
    ----------
    parts : sequence of array_like, each of shape (n, k)
        The convex parts of the source set; each is the convex hull of its rows. A finite set of
        distributions has one part per distribution.
    distortion : array_like, shape (k, m)
        d(x, y) >= 0.
    budget : float
        D, more than the least worst-case distortion.
    tol : float
        The ascent stops when the dual changes by less than this, in nats.
    max_iterations : int
        Largest number of steps of the ascent.
    time_limit : float, optional
        Seconds after which it stops.

    Returns
    -------
    IterativeResult
        `value` is the dual g, below the optimum up to rounding; `point` a `Saddle`; `history` has
        ``objective``, g at each step.

    Raises
    ------
    ValidationError
        Parts that are not distributions or do not match, or an option out of range.

    Notes
    -----
    HAMMING (21) and (22), for one distortion budget per vertex. Sequential quadratic programming
    (SciPy's SLSQP) on the dual, whose gradient in w_v is sum_x P_v(x) D(Q_x || t_k) and in s_v
    P_v . c(Q) - D.

    Examples
    --------
    HAMMING Lemma 5, log 2 - h(D):

    >>> from cvxleak.iterative import information_saddle
    >>> run = information_saddle([[[0.5, 0.5]]], [[0, 1], [1, 0]], 0.1)
    >>> round(run.value, 6)
    0.368064
    """
    hulls = [
        probability_rows(part, f"parts[{i}]", 2) for i, part in enumerate(in_order(parts, "parts"))
    ]
    d = frozen_array(distortion, "distortion", 2)
    if not hulls or any(hull.shape[1] != len(d) for hull in hulls):
        raise ValidationError(
            f"parts: found {[hull.shape for hull in hulls]}; "
            f"the distortion has {counted(len(d), 'input')}"
        )
    D = real_number(budget, "budget", 0.0)
    tol = real_number(tol, "tol", 0.0)
    steps = whole_number(max_iterations, "max_iterations", 1)
    clock = Clock(time_limit)
    count = sum(len(hull) for hull in hulls)
    ends = np.cumsum([len(hull) for hull in hulls])[:-1]
    vertices = np.vstack(hulls)
    start: list[Array | None] = [None]
    history: list[float] = []

    def dual(z: Array) -> tuple[float, Array]:
        w, s = np.maximum(z[:count], 0.0), np.maximum(z[count:], 0.0)
        value, rows, outputs = least_lagrangian(
            hulls, np.split(w, ends), (s @ vertices)[:, None] * d, start=start[0]
        )
        # An output that has all but vanished would not come back.
        start[0] = 0.99 * outputs + 0.01 / outputs.shape[1]
        costs = (rows * d).sum(axis=1)
        divergence = [
            hull @ (rows * (np.log(rows) - np.log(t))).sum(axis=1)
            for hull, t in zip(hulls, outputs, strict=True)
        ]
        gradient = np.concatenate([*divergence, vertices @ costs - D])
        return -(value - float(s.sum()) * D), -gradient

    def watch(z: Array) -> None:
        spend(1e7)
        history.append(-dual(z)[0])
        if clock.late:
            raise StopIteration

    z = np.concatenate([np.full(count, 1 / count), np.full(count, 1 / count)])
    history.append(-dual(z)[0])
    stopped = "no further ascent"
    for _ in range(RESTARTS):
        before = history[-1]
        run: Any = minimize(
            dual,
            z,
            jac=True,
            method="SLSQP",
            bounds=[(0, 1)] * count + [(0, None)] * count,
            constraints=[
                {
                    "type": "eq",
                    "fun": lambda z: z[:count].sum() - 1,
                    "jac": lambda z: np.concatenate([np.ones(count), np.zeros(count)]),
                }
            ],
            callback=watch,
            options={"ftol": tol / 10, "maxiter": steps},
        )
        if -float(run.fun) > before:
            z = run.x
        if clock.late:
            stopped = "time limit"
            break
        # A restart forgets the curvature, which inexact gradients can spoil.
        if -float(run.fun) <= before + tol:
            break
        history.append(-float(run.fun))
    w, s = np.maximum(z[:count], 0.0), np.maximum(z[count:], 0.0)
    w = w / w.sum()
    _, rows, _ = least_lagrangian(hulls, np.split(w, ends), (s @ vertices)[:, None] * d)
    saddle = Saddle(Channel(rows), tuple(np.split(w, ends)), tuple(np.split(s, ends)))
    value = -float(dual(np.concatenate([w, s]))[0])
    return IterativeResult(
        value,
        saddle,
        len(history) - 1,
        stopped,
        {"objective": np.array(history)},
    )


def least_lagrangian(
    hulls: Sequence[Array],
    weights: Sequence[Array],
    costs: Array,
    *,
    start: Array | None = None,
    tol: float = 1e-12,
    max_iterations: int = 3_000,
) -> tuple[float, Array, Array]:
    """Return min over Q of sum_k W_k I(P_k;Q) + sum_{x,y} Q(y|x) costs(x,y), by Blahut's iteration.

    Parameters
    ----------
    hulls : sequence of ndarray, each of shape (n, k)
        Vertices of the parts.
    weights : sequence of ndarray
        w >= 0, one per vertex; their sums are the W_k.
    costs : ndarray, shape (k, m)
        What an entry costs.
    start : ndarray, shape (parts, m), optional
        Output distributions to start from; uniform if left out.
    tol : float
        Largest change of an output probability at which it stops.
    max_iterations : int
        Most updates.

    Returns
    -------
    value : float
    rows : ndarray, shape (k, m)
    outputs : ndarray, shape (parts, m)
        P_k Q for each part.

    Notes
    -----
    Blahut, IEEE Trans. Inf. Theory 18 (1972), with several sources.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.iterative.saddle import least_lagrangian
    >>> fair, one = np.array([[0.5, 0.5]]), np.ones(1)
    >>> value, rows, _ = least_lagrangian([fair], [one], np.log(9) / 2 * (1 - np.eye(2)))
    >>> rows.round(6)
    array([[0.9, 0.1],
           [0.1, 0.9]])
    """
    masses = np.array([w @ hull for w, hull in zip(weights, hulls, strict=True)])  # W_k P_k
    sums = np.maximum(masses.sum(axis=1, keepdims=True), SMALLEST)
    uniform = np.full(masses.shape[1], 1 / masses.shape[1])
    laws = np.where(sums > 1e-15, masses / sums, uniform)
    # Inputs without mass go where the costs are least; any positive scale does for the others.
    scale = np.maximum(masses.sum(axis=0), 1e-12)[:, None]
    m = costs.shape[1]
    t = np.full((len(hulls), m), 1 / m) if start is None else np.maximum(start, SMALLEST)
    rows = np.full(costs.shape, 1 / m)
    for _ in range(max_iterations):
        exponent = (masses.T @ np.log(t) - costs) / scale
        rows = np.exp(exponent - logsumexp(exponent, axis=1, keepdims=True))
        rows = np.maximum(rows, SMALLEST)
        after = np.maximum(laws @ rows, SMALLEST)
        change = np.abs(after - t)
        t = after
        if change.max() <= tol:
            break
    divergence = rows * (np.log(rows) - np.log(t)[:, None, :])  # parts, k, m
    value = float((masses[:, :, None] * divergence).sum() + (rows * costs).sum())
    return value, rows, t
