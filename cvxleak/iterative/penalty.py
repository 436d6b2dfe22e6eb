"""The mechanism step of LEAKAGE: the adaptive smooth penalty method (Algorithms 7 and 10)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import InfeasibleError
from cvxleak.core.validation import one_of, real_number, whole_number
from cvxleak.iterative.exponentiated import DECREASES, GOALS, Penalized, Trade, descend
from cvxleak.iterative.formulas import Array
from cvxleak.iterative.history import IterativeResult

__all__ = ["adaptive_penalty", "penalized_design", "repaired", "starting_channel"]


FACTOR = 1.5
"""mu of the paper: what lambda grows or falls by."""

MARGIN = 0.01
"""delta of the paper: lambda stays while the budget is met within this."""

EPSILON = 1e-6
"""epsilon of the paper: the method ends when the budget is met within this."""


def adaptive_penalty(
    prior: ArrayLike,
    source: ArrayLike,
    distortion: ArrayLike,
    budget: float,
    *,
    goal: str = "leakage",
    start: ArrayLike | None = None,
    max_penalties: int = 60,
    decrease: str = "norm",
    max_steps: int = 200,
) -> IterativeResult:
    """Look for the best mechanism against one prior by penalties (LEAKAGE Algorithms 7 and 10).

    `exponentiated_gradient` for one lambda after the other, from 1 on: lambda grows by the factor
    1.5 while the budget is exceeded by more than 0.01, and falls by it while more than that is
    left. It ends when distortion (or leakage) is within 1e-6 of the budget.

    Parameters
    ----------
    prior, source, distortion, goal
        As in `exponentiated_gradient`.
    budget : float
        D for goal "leakage" (Algorithm 7), L for goal "distortion" (Algorithm 10).
    start : array_like, shape (n_1, ..., n_n, Y), optional
        Mechanism to start from; if left out, the nearest output mixed with a uniform one, the
        more of it the better within the budget D, half of it for goal "distortion".
    max_penalties : int
        Cap on the values of lambda.
    decrease, max_steps
        `decrease` and `max_iterations` of `exponentiated_gradient`.

    Returns
    -------
    IterativeResult
        `point`: the paper's q_best, made to meet the budget for this prior by mixing it with the
        nearest output (goal "leakage") or with an output that does not look at the data (goal
        "distortion"); `value`: its leakage or distortion. `history`, per value of lambda:
        ``objective`` J, ``leakage``, ``distortion``, ``residual`` (what the budget is exceeded by)
        and ``penalty``, each of the unrepaired mechanism; ``step`` sum |change of q|.

    Raises
    ------
    ValidationError
        Arguments that do not match each other.
    InfeasibleError
        D below the least possible distortion.

    Notes
    -----
    The loop's test is as printed |E - E_prev| < eps and |E - D| < eps with E_prev set to E just
    before, so that its first half says nothing; a slack budget never meets the second. Hence the
    cap, and `stopped` says when it was the cap. q_best is the one of least J although these Js
    belong to different lambdas, also as printed. softplus(0)^2 = (log 2)^2: the penalty is not
    exact, and lambda is frozen while the budget is met within 0.01.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.iterative import adaptive_penalty
    >>> fair, hamming = [0.5, 0.5], 1 - np.eye(2)
    >>> run = adaptive_penalty(fair, fair, hamming, 0.1, decrease="variance")
    >>> bool(0.368064 < run.value < 0.45)  # log 2 - h(0.1) = 0.368064
    True
    """
    one_of(goal, GOALS, "goal")
    trade = Trade.checked(prior, source, distortion)
    limit = real_number(budget, "budget", 0.0, open_high=True)
    one_of(decrease, DECREASES, "decrease")
    whole_number(max_penalties, "max_penalties", 1)
    whole_number(max_steps, "max_steps", 1)
    q = starting_channel(trade, limit, goal) if start is None else trade.channel(start, "start")
    run = penalized_design(trade, goal, limit, q, max_penalties, decrease, max_steps)
    return IterativeResult(
        run.value, trade.folded(run.point), run.iterations, run.stopped, run.history
    )


def penalized_design(
    trade: Trade,
    goal: str,
    budget: float,
    channel: Array,
    max_penalties: int,
    decrease: str,
    max_steps: int,
) -> IterativeResult:
    """Run the method from a channel in matrix form."""
    weight = 1.0
    q = best = channel
    least = np.inf
    rows: list[tuple[float, ...]] = []
    inner: set[str] = set()
    stopped = f"max_penalties={max_penalties} reached"
    for _ in range(max_penalties):
        run = descend(Penalized(trade, goal, budget, weight), q, decrease, max_steps)
        inner.add(run.stopped)
        leak, spent = float(run.history["leakage"][-1]), float(run.history["distortion"][-1])
        over = (spent if goal == "leakage" else leak) - budget
        change = float(np.abs(run.point - q).sum())
        rows.append((run.value, leak, spent, over, weight, change))
        q = run.point
        if run.value < least:
            best, least = q, run.value
        if over > MARGIN:
            weight *= FACTOR
        elif over < -MARGIN:
            weight /= FACTOR
        if abs(over) < EPSILON:
            stopped = f"the budget is met within {EPSILON:g}"
            break
    point = repaired(trade, goal, budget, best)
    value = trade.informations(point).max() if goal == "leakage" else trade.distortion(point)
    names = ("objective", "leakage", "distortion", "residual", "penalty", "step")
    history: dict[str, Array] = dict(zip(names, np.array(rows).T, strict=True))
    reason = "; ".join([stopped, *sorted(f"inside: {text}" for text in inner)])
    return IterativeResult(float(value), point, len(rows), reason, history)


def starting_channel(trade: Trade, budget: float, goal: str) -> Array:
    """Return the nearest output mixed with a uniform one, so that every output can occur."""
    nearest = _nearest(trade)
    uniform = np.full_like(nearest, 1 / nearest.shape[1])
    share = 0.5
    if goal == "leakage":
        low, high = trade.distortion(nearest), trade.distortion(uniform)
        if budget < low - 1e-12 * (1 + low):
            raise InfeasibleError(
                f"budget: found {budget!r}; the least feasible distortion is {low!r}"
            )
        if high > budget:
            share = min(share, max(budget - low, 0.0) / (high - low))
    return (1 - share) * nearest + share * uniform


def repaired(trade: Trade, goal: str, budget: float, channel: Array) -> Array:
    """Mix a channel with one that meets the budget, as far as is needed (in floating point)."""
    if goal == "leakage":
        target = _nearest(trade)
        spent, least = trade.distortion(channel), trade.distortion(target)
        if spent <= budget:
            return channel
        share = min((spent - budget) / (spent - least), 1.0)
    else:
        # The leakage of a mixture with a constant output is at most the channel's share of it.
        output = trade.terms.costs[0].sum(axis=0).argmin()
        target = np.zeros_like(channel)
        target[:, output] = 1.0
        leak = float(trade.informations(channel).max())
        if leak <= budget:
            return channel
        share = 1 - budget / leak
    return (1 - share) * channel + share * target


def _nearest(trade: Trade) -> Array:
    cost = trade.terms.costs[0]
    return np.eye(cost.shape[1])[cost.argmin(axis=1)]
