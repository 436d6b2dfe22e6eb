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

__all__ = [
    "DECREASES",
    "GOALS",
    "Penalized",
    "Search",
    "Trade",
    "exponentiated_gradient",
    "penalized_objective",
]

GOALS = ("leakage", "distortion")
"""What is minimized: max_i I(X_i;Y) (Problem 2) or the expected distortion (Problem 3)."""

DECREASES = ("norm", "variance")
"""What the line search asks of a step of length eta: see `exponentiated_gradient`."""

MAX_SHORTENINGS = 40

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
    """J of `penalized_objective`, for channels in matrix form."""

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
        """Return the gradient with the leakage of one record, the worst if None."""
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


def penalized_objective(
    prior: ArrayLike,
    channel: ArrayLike,
    source: ArrayLike,
    distortion: ArrayLike,
    budget: float,
    penalty: float,
    *,
    goal: str = "leakage",
    record: int | None = None,
) -> tuple[float, Array]:
    """Return the penalized objective J of a mechanism, and its gradient (LEAKAGE (23) to (29)).

    J = max_i I(X_i;Y) + lambda softplus(E d - D)^2 for goal "leakage", (23), and
    J = E d + lambda softplus(max_i I(X_i;Y) - L)^2 for goal "distortion", (27) and (28), with
    softplus(z) = log(1 + e^z) and E d = sum p_0(x) q(y|x) d(f(x), y). The gradient is that of (24)
    and (25), or of (29), where dI(X_i;Y)/dq(y|x) = p(x) log(p(y|x_i) / p(y)).

    Parameters
    ----------
    prior, source : array_like, shape (n_1, ..., n_n)
        The adversary's p and the true p_0, on the datasets.
    channel : array_like, shape (n_1, ..., n_n, Y)
        q(y|x).
    distortion : array_like, shape (n_1, ..., n_n, Y)
        d(f(x), y).
    budget : float
        D or L.
    penalty : float
        lambda >= 0.
    goal : str
        "leakage" or "distortion".
    record : int, optional
        The record i* whose information is differentiated; if left out, the worst one.

    Returns
    -------
    value : float
        J at q.
    gradient : array, shape (n_1, ..., n_n, Y)
        dJ/dq(y|x).

    Raises
    ------
    ValidationError
        Arguments that do not match each other.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.iterative import penalized_objective
    >>> q, hamming = np.array([[0.9, 0.1], [0.1, 0.9]]), 1 - np.eye(2)
    >>> fair = [0.5, 0.5]
    >>> value, gradient = penalized_objective(fair, q, fair, hamming, 0.1, 1.0)
    >>> print(f"{value:.4f}")  # log 2 - h(0.1) + (log 2)^2
    0.8485
    >>> gradient.round(4)
    array([[ 0.2939, -0.4581],
           [-0.4581,  0.2939]])
    """
    trade, q, objective = _stated(prior, channel, source, distortion, budget, penalty, goal)
    slope = objective.gradient(q, _record(record, trade))
    return objective.value(q), trade.folded(slope)


def exponentiated_gradient(
    prior: ArrayLike,
    channel: ArrayLike,
    source: ArrayLike,
    distortion: ArrayLike,
    budget: float,
    penalty: float,
    *,
    goal: str = "leakage",
    record: int | None = None,
    eta: float = 1.0,
    beta: float = 0.5,
    c: float = 0.5,
    decrease: str = "norm",
    tol: float = 1e-8,
    max_iterations: int = 200,
) -> IterativeResult:
    """Minimize a penalized design by exponentiated gradient steps (LEAKAGE Algorithms 8 and 11).

    q(y|x) <- q(y|x) exp(-eta dJ/dq(y|x)) / sum, with eta = eta_0 / sqrt(t + 1) shortened by the
    factor beta until the line search is content. J is that of `penalized_objective`: goal
    "leakage" is Algorithm 8, goal "distortion" Algorithm 11.

    Parameters
    ----------
    prior, channel, source, distortion, budget, penalty, goal
        As in `penalized_objective`; the method starts at `channel`, whose zeros stay zeros.
    record : int, optional
        The record i* of Algorithm 8; if left out, the worst one at the start. Algorithm 11 finds it
        anew in every step and takes none.
    eta : float
        First length of the steps, eta_0.
    beta : float
        Factor that shortens them, between 0 and 1.
    c : float
        Share of the promised decrease that a step has to reach, between 0 and 1, (30).
    decrease : str
        What a step promises: "norm", eta times the squared Euclidean norm of the gradient, as the
        paper has it; or "variance", what it promises to first order,
        eta sum_x Var_q(.|x)(gradient).
    tol : float
        Stop when a step moves q by less than this, in the sum of absolute values.
    max_iterations : int
        Cap on the steps. The method also stops if 40 shortenings of one are not enough.

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
    The step moves J by -eta sum_x Var_q(.|x)(gradient) to first order, which can be far less than
    eta times the squared norm: with "norm" the search may find no step at all. Nor may it with
    "variance" where two records leak most: J has a kink there, and the gradient of one of them need
    not lead down.

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
    trade, q, objective = _stated(prior, channel, source, distortion, budget, penalty, goal)
    search = Search.checked(eta, beta, c, decrease, tol)
    cap = whole_number(max_iterations, "max_iterations", 1)
    fixed = _record(record, trade)
    if fixed is not None and goal == "distortion":
        raise ValidationError(
            "record: found one with goal 'distortion'; Algorithm 11 finds it anew in every step"
        )
    run = search.descend(objective, q, cap, fixed)
    return IterativeResult(
        run.value, trade.folded(run.point), run.iterations, run.stopped, run.history
    )


@dataclass(frozen=True)
class Search:
    """The parameters of the line search; see `exponentiated_gradient`."""

    eta: float
    beta: float
    c: float
    decrease: str
    tol: float

    @classmethod
    def checked(cls, eta: float, beta: float, c: float, decrease: str, tol: float = 1e-8) -> Search:
        """Return the search, or say which argument is wrong."""
        return cls(
            real_number(eta, "eta", 0, open_low=True, open_high=True),
            real_number(beta, "beta", 0, 1, open_low=True, open_high=True),
            real_number(c, "c", 0, 1, open_low=True, open_high=True),
            one_of(decrease, DECREASES, "decrease"),
            real_number(tol, "tol", 0),
        )

    def descend(
        self, objective: Penalized, channel: Array, cap: int, record: int | None = None
    ) -> IterativeResult:
        """Run the descent from a channel in matrix form."""
        trade = objective.trade
        if record is None and objective.goal == "leakage":
            record = int(trade.informations(channel).argmax())
        rows: list[tuple[float, float, float]] = []
        steps: list[float] = []

        def note(q: Array, value: float) -> None:
            rows.append((value, float(trade.informations(q).max()), trade.distortion(q)))

        q, value = channel, objective.value(channel)
        note(q, value)
        stopped = f"max_iterations={cap} reached"
        for t in range(cap):
            gradient = objective.gradient(q, record)
            promised = self.c * self._promised(gradient, q)
            logs = np.log(np.maximum(q, TINY))
            eta = self.eta / math.sqrt(t + 1)
            for _ in range(MAX_SHORTENINGS):
                moved = np.where(q > 0, softmax(logs - eta * gradient, axis=1), 0.0)
                reached = objective.value(moved)
                if reached <= value - eta * promised:
                    break
                eta *= self.beta
            else:
                stopped = f"no step met the Armijo test in {MAX_SHORTENINGS} shortenings"
                break
            change = float(np.abs(moved - q).sum())
            q, value = moved, reached
            steps.append(eta)
            note(q, value)
            if change < self.tol:
                stopped = f"a step moved q by less than tol={self.tol:g}"
                break
        columns = np.array(rows).T
        names = ("objective", "leakage", "distortion")
        history: dict[str, Array] = dict(zip(names, columns, strict=True))
        history["step"] = np.array(steps)
        return IterativeResult(value, q, len(steps), stopped, history)

    def _promised(self, gradient: Array, q: Array) -> float:
        if self.decrease == "norm":
            return float((gradient**2).sum())
        mean = (q * gradient).sum(axis=1, keepdims=True)
        return float((q * (gradient - mean) ** 2).sum())


def _stated(
    prior: ArrayLike,
    channel: ArrayLike,
    source: ArrayLike,
    distortion: ArrayLike,
    budget: float,
    penalty: float,
    goal: str,
) -> tuple[Trade, Array, Penalized]:
    trade = Trade.checked(prior, source, distortion)
    q = trade.channel(channel, "channel")
    limit = real_number(budget, "budget", 0.0)
    weight = real_number(penalty, "penalty", 0.0, open_high=True)
    return trade, q, Penalized(trade, goal, limit, weight)


def _record(record: int | None, trade: Trade) -> int | None:
    if record is None:
        return None
    return whole_number(record, "record", 0, len(trade.shape) - 1)
