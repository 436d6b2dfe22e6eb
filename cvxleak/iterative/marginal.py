"""The marginal of a record for given conditionals (LEAKAGE Algorithm 2)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, softmax

from cvxleak.core.validation import real_number, whole_number
from cvxleak.iterative._record import CLIP, RecordView, relative_gain, tangent_norm, verdict
from cvxleak.iterative.entropy_floor import checked_floor
from cvxleak.iterative.formulas import information
from cvxleak.iterative.history import IterativeResult

__all__ = ["marginal_blahut_arimoto"]


def marginal_blahut_arimoto(
    marginal: ArrayLike,
    conditional: ArrayLike,
    rows: ArrayLike,
    entropy_floor: float,
    *,
    alpha: float = 0.1,
    tol: float = 1e-8,
    max_iterations: int = 10_000,
) -> IterativeResult:
    """Update p(x_i) towards max I(X_i;Y) subject to H(X) >= b (LEAKAGE Algorithm 2).

    With D_a = sum_y p(y|a) log(p(y|a) / p(y)) and h_a = H(X_{-i}|X_i = a), one update is

        p(a) <- p(a) exp( D_a / (1+s) + (h_a - log p(a)) s / (1+s) ), normalized,
        s <- max(0, s - alpha (H(X) - b)), from s = 0.

    Parameters
    ----------
    marginal : array_like, shape (A,)
        p(x_i) to start from.
    conditional : array_like, shape (A, M)
        p(x_{-i}|x_i), held fixed.
    rows : array_like, shape (A, M, Y)
        q(y|x_i, x_{-i}).
    entropy_floor : float
        b, in nats.
    alpha : float
        Step size of the multiplier s.
    tol : float
        Stop when I(X_i;Y) changes by less than this, in nats.
    max_iterations : int
        Cap on the updates.

    Returns
    -------
    IterativeResult
        `point`: the last p(x_i), shape (A,); `value`: I(X_i;Y) there. `history`: ``objective``,
        ``slack`` H(X) - b (its size is the paper's |H(X) - b|), ``multiplier`` s and
        ``gradient_norm`` (of I in p(x_i), Theorem 8, along the simplex); per update
        ``relative_gain``.

    Raises
    ------
    ValidationError
        Arguments of the wrong kind or shape.
    InfeasibleError
        b above log(A M).

    Notes
    -----
    The objective and the constraint are concave in p(x_i), and fixed points of the update solve
    the subproblem (13). But the test of line 16 does not look at the constraint: the method can
    stop with H(X) < b, above all while s is still growing. `stopped` then says by how much.

    Examples
    --------
    >>> from cvxleak.iterative import marginal_blahut_arimoto
    >>> rows = [[[0.9, 0.1]], [[0.1, 0.9]]]  # one context: a binary symmetric channel
    >>> run = marginal_blahut_arimoto([0.3, 0.7], [[1.0], [1.0]], rows, 0.5)
    >>> print(f"{run.value:.4f}")
    0.3681
    """
    view = RecordView.checked(marginal, conditional, rows)
    b = checked_floor(entropy_floor, math.log(view.conditional.size))
    step = real_number(alpha, "alpha", 0, open_low=True, open_high=True)
    enough = real_number(tol, "tol", 0)
    cap = whole_number(max_iterations, "max_iterations", 1)
    laws, h = view.laws, view.row_entropies
    log_laws = np.log(np.maximum(laws, CLIP))
    p, s = view.marginal, 0.0
    objective: list[float] = []
    slack: list[float] = []
    multiplier: list[float] = []
    norms: list[float] = []
    while True:
        divergences = (laws * (log_laws - np.log(np.maximum(p @ laws, CLIP)))).sum(axis=1)
        objective.append(float(information(p[:, None] * laws)))
        slack.append(float(entr(p).sum() + p @ h) - b)
        multiplier.append(s)
        norms.append(tangent_norm(divergences))
        updates = len(objective) - 1
        if updates and abs(objective[-1] - objective[-2]) < enough:
            reason = f"I(X_i;Y) changed by less than tol={enough:g}"
            break
        if updates == cap:
            reason = f"max_iterations={cap} reached"
            break
        log_p = np.log(np.maximum(p, CLIP))
        p = softmax(log_p + (divergences + s * (h - log_p)) / (1 + s))
        s = max(0.0, s - step * (float(entr(p).sum() + p @ h) - b))
    return IterativeResult(
        value=objective[-1],
        point=p,
        iterations=updates,
        stopped=verdict(reason, slack[-1]),
        history={
            "objective": np.array(objective),
            "slack": np.array(slack),
            "multiplier": np.array(multiplier),
            "gradient_norm": np.array(norms),
            "relative_gain": relative_gain(objective),
        },
    )
