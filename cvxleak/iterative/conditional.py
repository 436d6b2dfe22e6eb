"""The conditionals of a record for a given marginal (LEAKAGE Algorithm 3)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.validation import Array, real_number, whole_number
from cvxleak.iterative._record import (
    CLIP,
    FEASIBILITY,
    RecordView,
    relative_gain,
    tangent_norm,
    verdict,
)
from cvxleak.iterative.entropy_floor import checked_floor
from cvxleak.iterative.entropy_projection import NO_ROOT, project_to_entropy
from cvxleak.iterative.formulas import information
from cvxleak.iterative.history import IterativeResult
from cvxleak.mechanisms.simplex import project_to_simplex

__all__ = ["conditional_gradient_ascent"]

ENTROPY_TOLERANCE = 1e-10
"""Accuracy that is asked of Algorithm 5, in nats."""

MAX_HALVINGS = 30


def conditional_gradient_ascent(
    marginal: ArrayLike,
    conditional: ArrayLike,
    rows: ArrayLike,
    entropy_floor: float,
    *,
    tol: float = 1e-8,
    max_iterations: int = 100,
) -> IterativeResult:
    """Update p(x_{-i}|x_i) row by row towards max I(X_i;Y) with H(X) >= b (LEAKAGE Algorithm 3).

    Row k has to keep at least the entropy

        c_k = (b - H(X_i) - sum_{l != k} p(x_il) H(X_{-i}|x_il)) / p(x_ik).

    A row with c_k <= 0 becomes the best unit vector. Any other takes a gradient step, is projected
    to the simplex (Algorithm 4) and given the entropy c_k (Algorithm 5); the step is halved until
    I(X_i;Y) does not fall.

    Parameters
    ----------
    marginal : array_like, shape (A,)
        p(x_i), held fixed.
    conditional : array_like, shape (A, M)
        p(x_{-i}|x_i) to start from.
    rows : array_like, shape (A, M, Y)
        q(y|x_i, x_{-i}).
    entropy_floor : float
        b, in nats.
    tol : float
        Stop when a sweep changes I(X_i;Y) by at most this, in nats.
    max_iterations : int
        Cap on the sweeps.

    Returns
    -------
    IterativeResult
        `point`: the best feasible conditionals, shape (A, M), and `value` I(X_i;Y) there; the last
        ones if none is feasible, which `stopped` says. If some row would need more entropy than
        log M, `point` is None and `value` -inf, as in the paper's line 11. `history`:
        ``objective``, ``slack`` H(X) - b (its size is the paper's |H(X) - b|) and
        ``gradient_norm`` (of I in p(x_{-i}|x_i), Theorem 8, along the simplex); per sweep
        ``relative_gain`` and ``missed_roots``, how often Algorithm 5 had no root (see there).

    Raises
    ------
    ValidationError
        Arguments of the wrong kind or shape.
    InfeasibleError
        b above log(A M).

    Notes
    -----
    The gradient is p(x_i) sum_y q(y|x) log(p(y|x_i) / p(y)); the two further terms of LEAKAGE (37)
    cancel. Line 20 accepts a step that does not lose. The Armijo test of Theorem 5 adds nothing to
    that: I is convex in a row, so it gains at least the gradient times the step, hence at least
    any share c <= 1 of it.

    A row with p(x_ik) = 0 becomes the first unit vector: I does not depend on it. Rows with
    0 < p(x_ik) <= 1e-10 are left alone, as c_k is a quotient of rounding errors there. The result
    is no stationary point in general: once H(X) = b, each c_k is the entropy that row k has, and
    no sweep moves entropy from one row to another.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.iterative import conditional_gradient_ascent
    >>> flip = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> rows = np.stack([flip, flip[::-1]])  # the parity of two bits, one of them the record
    >>> start = [[0.6, 0.4], [0.6, 0.4]]
    >>> run = conditional_gradient_ascent([0.5, 0.5], start, rows, 1.0)
    >>> run.point.round(3)
    array([[1.   , 0.   ],
           [0.697, 0.303]])
    """
    view = RecordView.checked(marginal, conditional, rows)
    b = checked_floor(entropy_floor, math.log(view.conditional.size))
    enough = real_number(tol, "tol", 0)
    cap = whole_number(max_iterations, "max_iterations", 1)
    trace = _Trace(b)
    trace.record(view)
    best: RecordView | None = view if trace.slack[-1] >= -FEASIBILITY else None
    reason = f"max_iterations={cap} reached"
    for _ in range(cap):
        missed = 0
        for k, p in enumerate(view.marginal):
            if p == 0:
                view = _with_row(view, k, np.eye(view.conditional.shape[1])[0])
            elif p > CLIP:
                need = _needed_entropy(view, k, b)
                if need > math.log(view.conditional.shape[1]) + ENTROPY_TOLERANCE:
                    reason = f"infeasible: row {k} would need an entropy of {need:.6g} nats"
                    return IterativeResult(
                        -math.inf, None, len(trace.objective) - 1, reason, trace.history()
                    )
                if need <= 0:
                    view = _with_row(view, k, _best_unit_vector(view, k))
                else:
                    view, misses = _line_search(view, k, need)
                    missed += misses
        trace.record(view)
        trace.missed.append(missed)
        if trace.slack[-1] >= -FEASIBILITY and (
            best is None or view.information > best.information
        ):
            best = view
        if abs(trace.objective[-1] - trace.objective[-2]) <= enough:
            reason = f"a sweep changed I(X_i;Y) by at most tol={enough:g}"
            break
    final = view if best is None else best
    return IterativeResult(
        value=final.information,
        point=final.conditional,
        iterations=len(trace.missed),
        stopped=verdict(reason, final.entropy - b),
        history=trace.history(),
    )


class _Trace:
    """What the history keeps."""

    def __init__(self, b: float) -> None:
        self.b = b
        self.objective: list[float] = []
        self.slack: list[float] = []
        self.norms: list[float] = []
        self.missed: list[int] = []

    def record(self, view: RecordView) -> None:
        self.objective.append(view.information)
        self.slack.append(view.entropy - self.b)
        self.norms.append(tangent_norm(_gradient(view)))

    def history(self) -> dict[str, Array]:
        return {
            "objective": np.array(self.objective),
            "slack": np.array(self.slack),
            "gradient_norm": np.array(self.norms),
            "relative_gain": relative_gain(self.objective),
            "missed_roots": np.array(self.missed, dtype=float),
        }


def _gradient(view: RecordView) -> Array:
    """Return the derivative of I in p(x_{-i}|x_i), shape (A, M) (LEAKAGE Theorem 8, corrected)."""
    return view.marginal[:, None] * view.scores


def _with_row(view: RecordView, k: int, row: Array) -> RecordView:
    conditional = view.conditional.copy()
    conditional[k] = row
    return replace(view, conditional=conditional)


def _needed_entropy(view: RecordView, k: int, b: float) -> float:
    """c_k of LEAKAGE (18), with the sum over the other rows only (as Algorithm 3 has it)."""
    p = view.marginal[k]
    return float(view.row_entropies[k] + (b - view.entropy) / p)


def _best_unit_vector(view: RecordView, k: int) -> Array:
    joint = view.marginal[:, None] * view.laws
    choices = np.repeat(joint[None], view.rows.shape[1], axis=0)
    choices[:, k] = view.marginal[k] * view.rows[k]
    return np.eye(view.rows.shape[1])[np.argmax(information(choices))]


def _line_search(view: RecordView, k: int, need: float) -> tuple[RecordView, int]:
    """Lines 15 to 25 for row k; also the number of times that Algorithm 5 had no root."""
    gradient, value = _gradient(view)[k], view.information
    target = min(need, math.log(view.conditional.shape[1]))
    missed, eta = 0, 1.0
    for _ in range(MAX_HALVINGS):
        stepped = project_to_simplex(view.conditional[k] + eta * gradient)
        found = project_to_entropy(stepped / stepped.sum(), target, tol=ENTROPY_TOLERANCE)
        missed += found.stopped == NO_ROOT
        candidate = _with_row(view, k, found.point)
        if candidate.information >= value:
            return candidate, missed
        eta /= 2
    return view, missed
