"""Exponentiated gradient descent on a penalized design (LEAKAGE Algorithms 8 and 11)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, softmax

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import (
    dimensions,
    frozen_array,
    one_of,
    probability_rows,
    real_number,
    whole_number,
)
from cvxleak.iterative.design_terms import DesignTerms
from cvxleak.iterative.formulas import Array
from cvxleak.iterative.history import IterativeResult

__all__ = ["DECREASES", "GOALS", "Penalized", "Trade", "exponentiated_gradient"]

GOALS = ("leakage", "distortion")
"""What is minimized: max_i I(X_i;Y) (Problem 2) or the expected distortion (Problem 3)."""

DECREASES = ("norm", "variance")
"""What the line search asks of a step of length eta: see `exponentiated_gradient`."""

MAX_HALVINGS = 40

STILL = 1e-8
"""A step that moves q by less than this, in the sum of absolute values, is the last one."""

TINY = 1e-300


@dataclass(frozen=True)
class Trade:
    """Both sides of a design for one prior: leakage about each record, and distortion.

    Channels are matrices with one row per dataset, in product order.
    """

    terms: DesignTerms
    shape: tuple[int, ...]

    @classmethod
    def checked(cls, prior: ArrayLike, source: ArrayLike, distortion: ArrayLike) -> Trade:
        """Return the trade, or say which argument is wrong."""
        p = frozen_array(prior, "prior", max(dimensions(prior, "prior"), 1))
        probability_rows(p.ravel(), "prior", 1)
        d = frozen_array(distortion, "distortion", p.ndim + 1)
        p0 = frozen_array(source, "source", p.ndim)
        if d.shape[:-1] != p.shape or p0.shape != p.shape:
            raise ValidationError(
                f"distortion: found shape {d.shape}, and {p0.shape} for the source, with a prior "
                f"of shape {p.shape}; (*records, outputs) and the prior's shape are needed"
            )
        tables = []
        for record, size in enumerate(p.shape):
            table = np.zeros((size, p.size))
            place = np.indices(p.shape)[record].ravel()
            table[place, np.arange(p.size)] = p.ravel()
            tables.append(table)
        terms = DesignTerms.checked(tables, [p0.ravel()], d.reshape(p.size, -1))
        return cls(terms, p.shape)

    def informations(self, channel: Array) -> Array:
        """I(X_i;Y) for each record."""
        return self.terms.information(channel)

    def distortion(self, channel: Array) -> float:
        """E d under the source."""
        return float(self.terms.distortions(channel)[0])

    def channel(self, given: ArrayLike, name: str) -> Array:
        """Return a channel of shape (*records, outputs) as a matrix."""
        q = frozen_array(given, name, len(self.shape) + 1)
        wanted = (*self.shape, self.terms.shape[1])
        if q.shape != wanted:
            raise ValidationError(f"{name}: found shape {q.shape}; {wanted} is needed")
        return np.array(probability_rows(q.reshape(self.terms.shape), name, 2))

    def folded(self, channel: Array) -> Array:
        """Return a matrix as a channel of shape (*records, outputs)."""
        return channel.reshape(*self.shape, -1)


@dataclass(frozen=True)
class Penalized:
    """J = max_i I + lambda softplus(E - D)^2, or J = E + lambda softplus(max_i I - L)^2.

    LEAKAGE (23), and (27) with (28).
    """

    trade: Trade
    goal: str
    budget: float
    penalty: float

    def __post_init__(self) -> None:
        one_of(self.goal, GOALS, "goal")

    def value(self, channel: Array) -> float:
        """J at a channel."""
        leak, spent = float(self.trade.informations(channel).max()), self.trade.distortion(channel)
        main, excess = (leak, spent) if self.goal == "leakage" else (spent, leak)
        return main + self.penalty * float(np.logaddexp(0.0, excess - self.budget)) ** 2

    def gradient(self, channel: Array, record: int | None = None) -> Array:
        """Return the gradient with the leakage of one record, the worst if None ((24), (25), (29)).

        dI(X_i;Y)/dq(y|x) = p(x) log(p(y|x_i) / p(y)), (35).
        """
        slopes = self.trade.terms.slopes(channel)
        leaks = self.trade.terms.information(channel, slopes)
        i = int(leaks.argmax()) if record is None else record
        cost = self.trade.terms.costs[0]
        if self.goal == "leakage":
            return slopes[i] + self._slope(self.trade.distortion(channel)) * cost
        return cost + self._slope(float(leaks[i])) * slopes[i]

    def _slope(self, spent: float) -> float:
        z = spent - self.budget
        return self.penalty * 2 * float(np.logaddexp(0.0, z)) * float(expit(z))


def exponentiated_gradient(
    prior: ArrayLike,
    channel: ArrayLike,
    source: ArrayLike,
    distortion: ArrayLike,
    budget: float,
    penalty: float,
    *,
    goal: str = "leakage",
    decrease: str = "norm",
    max_iterations: int = 200,
) -> IterativeResult:
    """Minimize a penalized design by exponentiated gradient steps (LEAKAGE Algorithms 8 and 11).

    q(y|x) <- q(y|x) exp(-eta dJ/dq(y|x)) / sum, eta = 1 / sqrt(t + 1) halved until the
    line search is content. J is LEAKAGE (23) for goal "leakage" (Algorithm 8) and (27) with
    (28) for goal "distortion" (Algorithm 11).

    Parameters
    ----------
    prior, source : array_like, shape (n_1, ..., n_n)
        The adversary's p and the true p_0, on the datasets.
    channel : array_like, shape (n_1, ..., n_n, Y)
        q to start from; its zeros stay zeros.
    distortion : array_like, shape (n_1, ..., n_n, Y)
        d(f(x), y).
    budget : float
        D or L.
    penalty : float
        lambda >= 0.
    goal : str
        "leakage" or "distortion".
    decrease : str
        What J must fall by: "norm", eta/2 times the squared Euclidean norm of the gradient, as the
        paper has it; or "variance", half of what the step promises to first order,
        eta/2 sum_x Var_q(.|x)(gradient).
    max_iterations : int
        Cap on the steps. The method stops earlier when a step moves q by less than 1e-8 (sum of
        absolute values), or 40 halvings of one are not enough.

    Returns
    -------
    IterativeResult
        `point`: the last q; `value`: J there. `history`: ``objective`` J, ``leakage``,
        ``distortion`` per iterate; ``step`` eta per update.

    Raises
    ------
    ValidationError
        Arguments that do not match each other.

    Notes
    -----
    In Algorithm 8 the record whose leakage is differentiated is that with the largest one at the
    start; in Algorithm 11 it is found anew in every step. The step moves J by
    -eta sum_x Var_q(.|x)(gradient) to first order, which can be far less than eta times the squared
    norm: with "norm" the search may find no step at all, and then the method stops.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.iterative import exponentiated_gradient
    >>> q, hamming = np.array([[0.8, 0.2], [0.2, 0.8]]), 1 - np.eye(2)
    >>> fair = [0.5, 0.5]
    >>> run = exponentiated_gradient(fair, q, fair, hamming, 0.1, 4.0, decrease="variance")
    >>> bool(run.history["objective"][0] > run.value)
    True
    """
    trade = Trade.checked(prior, source, distortion)
    q = trade.channel(channel, "channel")
    objective = Penalized(
        trade,
        goal,
        real_number(budget, "budget", 0.0),
        real_number(penalty, "penalty", 0.0, open_high=True),
    )
    one_of(decrease, DECREASES, "decrease")
    whole_number(max_iterations, "max_iterations", 1)
    run = descend(objective, q, decrease, max_iterations)
    return IterativeResult(
        run.value, trade.folded(run.point), run.iterations, run.stopped, run.history
    )


def descend(
    objective: Penalized, channel: Array, decrease: str, max_iterations: int
) -> IterativeResult:
    """Run the descent from a channel in matrix form."""
    trade = objective.trade
    fixed = int(trade.informations(channel).argmax()) if objective.goal == "leakage" else None
    rows: list[tuple[float, float, float]] = []
    steps: list[float] = []

    def note(q: Array, value: float) -> None:
        rows.append((value, float(trade.informations(q).max()), trade.distortion(q)))

    q, value = channel, objective.value(channel)
    note(q, value)
    stopped = f"max_iterations={max_iterations} reached"
    for t in range(max_iterations):
        gradient = objective.gradient(q, fixed)
        promised = _promised(gradient, q, decrease)
        logs = np.log(np.maximum(q, TINY))
        eta = 1 / math.sqrt(t + 1)
        for _ in range(MAX_HALVINGS):
            moved = np.where(q > 0, softmax(logs - eta * gradient, axis=1), 0.0)
            reached = objective.value(moved)
            if reached <= value - eta / 2 * promised:
                break
            eta /= 2
        else:
            stopped = f"no step met the Armijo test in {MAX_HALVINGS} shortenings"
            break
        change = float(np.abs(moved - q).sum())
        q, value = moved, reached
        steps.append(eta)
        note(q, value)
        if change < STILL:
            stopped = f"a step moved q by less than {STILL:g}"
            break
    columns = np.array(rows).T
    names = ("objective", "leakage", "distortion")
    history: dict[str, Array] = dict(zip(names, columns, strict=True))
    history["step"] = np.array(steps)
    return IterativeResult(value, q, len(steps), stopped, history)


def _promised(gradient: Array, q: Array, decrease: str) -> float:
    if decrease == "norm":
        return float((gradient**2).sum())
    mean = (q * gradient).sum(axis=1, keepdims=True)
    return float((q * (gradient - mean) ** 2).sum())
