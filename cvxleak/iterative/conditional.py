"""The conditionals of a record for a given marginal (LEAKAGE Algorithm 3)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, one_of, probability_rows, real_number, whole_number
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

__all__ = ["conditional_gradient_ascent", "row_entropy_floors"]


def conditional_gradient_ascent(
    marginal: ArrayLike,
    conditional: ArrayLike,
    rows: ArrayLike,
    entropy_floor: float,
    *,
    eta: float = 1.0,
    beta: float = 0.5,
    gradient: str = "exact",
    tol: float = 1e-8,
    entropy_tol: float = 1e-10,
    max_iterations: int = 100,
    max_inner: int = 30,
) -> IterativeResult:
    """Update p(x_{-i}|x_i) row by row towards max I(X_i;Y) with H(X) >= b (LEAKAGE Algorithm 3).

    A row k with c_k <= 0 (`row_entropy_floors`) becomes the best unit vector. Any other takes a
    gradient step of length eta, is projected to the simplex (Algorithm 4) and given the entropy c_k
    (Algorithm 5); the step is shortened by the factor beta until I(X_i;Y) does not fall.

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
    eta : float
        First length of each step, eta_0.
    beta : float
        Factor that shortens it, between 0 and 1.
    gradient : str
        "exact": p(x_i) sum_y q(y|x) log(p(y|x_i) / p(y)). "printed": (37), which adds
        p(x_i) - p(x_i)^2 sum_y p(y|x_i) q(y|x) / p(y) to it; the two terms do not belong there.
    tol : float
        Stop when a sweep changes I(X_i;Y) by at most this (tau), in nats.
    entropy_tol : float
        Accuracy that is asked of Algorithm 5 (tau_H), in nats.
    max_iterations : int
        Cap on the sweeps.
    max_inner : int
        Cap on the lengths that are tried for a step.

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
    Line 20 accepts a step that does not lose. The Armijo test of Theorem 5 is another one: I is
    convex in a row and so gains at least the gradient times the step, hence at least any share
    c <= 1 of it where that is positive; and where Algorithm 5 leads against the gradient, the test
    accepts losses.

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
    search = _LineSearch(
        real_number(eta, "eta", 0, open_low=True, open_high=True),
        real_number(beta, "beta", 0, 1, open_low=True, open_high=True),
        one_of(gradient, ("exact", "printed"), "gradient") == "printed",
        real_number(entropy_tol, "entropy_tol", 0),
        whole_number(max_inner, "max_inner", 1),
    )
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
                need = float(_row_floors(view.marginal, view.row_entropies, b)[k])
                if need > math.log(view.conditional.shape[1]) + search.entropy_tol:
                    reason = f"infeasible: row {k} would need an entropy of {need:.6g} nats"
                    return IterativeResult(
                        -math.inf, None, len(trace.objective) - 1, reason, trace.history()
                    )
                if need <= 0:
                    view = _with_row(view, k, _best_unit_vector(view, k))
                else:
                    view, misses = search.step(view, k, need)
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


def row_entropy_floors(marginal: ArrayLike, conditional: ArrayLike, entropy_floor: float) -> Array:
    """Return the entropy c_i^k that each row of the conditionals has to keep (LEAKAGE (18)).

    Row k meets H(X) >= b, with the other rows and p(x_i) as they are, if and only if
    H(X_{-i}|x_ik) is at least

        c_k = (b - H(X_i) - sum_{l != k} p(x_il) H(X_{-i}|x_il)) / p(x_ik).

    By Theorem 3, some row with exactly this entropy maximizes I(X_i;Y) over these if
    0 <= c_k <= log M, since I is convex in the row.

    Parameters
    ----------
    marginal : array_like, shape (A,)
        p(x_i).
    conditional : array_like, shape (A, M)
        p(x_{-i}|x_i).
    entropy_floor : float
        b, in nats.

    Returns
    -------
    array, shape (A,)
        In nats; negative where any row will do, and -inf where p(x_ik) = 0.

    Raises
    ------
    ValidationError
        Arguments of the wrong kind or shape.
    InfeasibleError
        b above log(A M).

    Notes
    -----
    LEAKAGE prints the sum over all l; line 9 of its Algorithm 3 leaves out k, as here.

    Examples
    --------
    >>> from cvxleak.iterative import row_entropy_floors
    >>> row_entropy_floors([0.5, 0.5], [[0.5, 0.5], [1.0, 0.0]], 1.0).round(4)
    array([ 0.6137, -0.0794])
    """
    p = probability_rows(marginal, "marginal", 1)
    v = probability_rows(conditional, "conditional", 2)
    if len(v) != len(p):
        raise ValidationError(
            f"conditional: found {len(v)} rows with a marginal of {len(p)} values; one row for "
            "each value is needed"
        )
    return _row_floors(p, entr(v).sum(axis=1), checked_floor(entropy_floor, math.log(v.size)))


def _row_floors(p: Array, entropies: Array, b: float) -> Array:
    short = b - float(entr(p).sum() + p @ entropies)
    with np.errstate(over="ignore"):
        over = np.divide(short, p, out=np.full(len(p), -math.inf), where=p > 0)
    return entropies + over


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


def _best_unit_vector(view: RecordView, k: int) -> Array:
    joint = view.marginal[:, None] * view.laws
    choices = np.repeat(joint[None], view.rows.shape[1], axis=0)
    choices[:, k] = view.marginal[k] * view.rows[k]
    return np.eye(view.rows.shape[1])[np.argmax(information(choices))]


@dataclass(frozen=True)
class _LineSearch:
    """Lines 15 to 25."""

    eta: float
    beta: float
    printed: bool
    entropy_tol: float
    max_inner: int

    def step(self, view: RecordView, k: int, need: float) -> tuple[RecordView, int]:
        """Return the view with row k moved, and how often Algorithm 5 had no root."""
        gradient, value = _gradient(view)[k], view.information
        if self.printed:
            gradient = gradient + _extra_terms(view, k)
        target = min(need, math.log(view.conditional.shape[1]))
        missed, eta = 0, self.eta
        for _ in range(self.max_inner):
            stepped = project_to_simplex(view.conditional[k] + eta * gradient)
            found = project_to_entropy(stepped / stepped.sum(), target, tol=self.entropy_tol)
            missed += found.stopped == NO_ROOT
            candidate = _with_row(view, k, found.point)
            if candidate.information >= value:
                return candidate, missed
            eta *= self.beta
        return view, missed


def _extra_terms(view: RecordView, k: int) -> Array:
    """Return the two terms of (37) that do not belong there, shape (M,)."""
    p, laws = view.marginal[k], view.laws
    ratios = laws[k] / np.maximum(view.marginal @ laws, CLIP)
    return p - p**2 * view.rows[k] @ ratios
