"""The mechanism step of LEAKAGE: the adaptive smooth penalty method (Algorithms 7 and 10)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import InfeasibleError
from cvxleak.core.validation import one_of, real_number, whole_number
from cvxleak.iterative.exponentiated import GOALS, Penalized, Search, Trade
from cvxleak.iterative.formulas import Array
from cvxleak.iterative.history import IterativeResult

__all__ = ["adaptive_penalty", "nearest_output", "starting_channel"]


def adaptive_penalty(
    prior: ArrayLike,
    source: ArrayLike,
    distortion: ArrayLike,
    budget: float,
    *,
    goal: str = "leakage",
    start: ArrayLike | None = None,
    penalty: float = 1.0,
    factor: float = 1.5,
    margin: float = 0.01,
    tol: float = 1e-6,
    max_penalties: int = 60,
    eta: float = 1.0,
    beta: float = 0.5,
    c: float = 0.5,
    decrease: str = "norm",
    max_steps: int = 200,
) -> IterativeResult:
    """Look for the best mechanism against one prior by penalties (LEAKAGE Algorithms 7 and 10).

    `exponentiated_gradient` for one lambda after the other: lambda grows by the factor mu while the
    budget is exceeded by more than delta, and falls by it while more than that is left. The method
    ends when distortion (or leakage) is within epsilon of the budget.

    Parameters
    ----------
    prior, source, distortion, goal
        As in `penalized_objective`.
    budget : float
        D for goal "leakage" (Algorithm 7), L for goal "distortion" (Algorithm 10).
    start : array_like, shape (n_1, ..., n_n, Y), optional
        Mechanism to start from; if left out, the nearest output mixed with a uniform one, the
        more of it the better within the budget D, half of it for goal "distortion".
    penalty : float
        The first lambda, lambda_0.
    factor : float
        mu, at least 1.
    margin : float
        delta.
    tol : float
        epsilon.
    max_penalties : int
        Cap on the values of lambda.
    eta, beta, c, decrease, max_steps
        `eta`, `beta`, `c`, `decrease` and `max_iterations` of `exponentiated_gradient`.

    Returns
    -------
    IterativeResult
        `point`: the paper's q_best, which need not meet the budget; `value`: its leakage or
        distortion, so that with the budget's excess in mind it is no bound on anything. `history`,
        per value of lambda: ``objective`` J, ``leakage``, ``distortion``, ``residual`` (what the
        budget is exceeded by), ``penalty`` lambda, and ``step`` sum |change of q|.

    Raises
    ------
    ValidationError
        Arguments that do not match each other.
    InfeasibleError
        D below the least possible distortion.

    See Also
    --------
    cvxleak.design.MinLeakage, cvxleak.design.MinDistortion : With `priors`, bounds on the optimum.

    Notes
    -----
    The loop's test is as printed |E - E_prev| < eps and |E - D| < eps with E_prev set to E just
    before, so that its first half says nothing; a slack budget never meets the second. Hence the
    cap, and `stopped` says when it was the cap. q_best is the one of least J although these Js
    belong to different lambdas, also as printed. The least J grows with lambda, so if the first
    lambda is too small to meet the budget, q_best is its mechanism and no later one
    (`Problem.repair` of `cvxleak.problem` makes a mechanism meet its budget). softplus(0)^2 =
    (log 2)^2: the penalty is not exact, and lambda is frozen while the budget is met within delta.

    Examples
    --------
    A fair bit and a budget of one error in ten: q_best is that of lambda = 1, and errs in 29 %.

    >>> import numpy as np
    >>> from cvxleak.iterative import adaptive_penalty
    >>> fair, hamming = [0.5, 0.5], 1 - np.eye(2)
    >>> run = adaptive_penalty(fair, fair, hamming, 0.1, decrease="variance")
    >>> print(f"{(np.array(fair) @ (run.point * hamming)).sum():.2f}")
    0.29
    """
    one_of(goal, GOALS, "goal")
    trade = Trade.checked(prior, source, distortion)
    limit = real_number(budget, "budget", 0.0, open_high=True)
    search = Search.checked(eta, beta, c, decrease)
    weight = real_number(penalty, "penalty", 0.0, open_low=True, open_high=True)
    mu = real_number(factor, "factor", 1.0, open_high=True)
    delta = real_number(margin, "margin", 0.0)
    enough = real_number(tol, "tol", 0.0)
    cap = whole_number(max_penalties, "max_penalties", 1)
    steps = whole_number(max_steps, "max_steps", 1)
    q = starting_channel(trade, limit, goal) if start is None else trade.channel(start, "start")
    best, least = q, np.inf
    rows: list[tuple[float, ...]] = []
    inner: set[str] = set()
    stopped = f"max_penalties={cap} reached"
    for _ in range(cap):
        run = search.descend(Penalized(trade, goal, limit, weight), q, steps)
        inner.add(run.stopped)
        leak, spent = float(run.history["leakage"][-1]), float(run.history["distortion"][-1])
        over = (spent if goal == "leakage" else leak) - limit
        rows.append((run.value, leak, spent, over, weight, float(np.abs(run.point - q).sum())))
        q = run.point
        if run.value < least:
            best, least = q, run.value
        if over > delta:
            weight *= mu
        elif over < -delta:
            weight /= mu
        if abs(over) < enough:
            stopped = f"the budget is met within tol={enough:g}"
            break
    value = trade.informations(best).max() if goal == "leakage" else trade.distortion(best)
    names = ("objective", "leakage", "distortion", "residual", "penalty", "step")
    history: dict[str, Array] = dict(zip(names, np.array(rows).T, strict=True))
    reason = "; ".join([stopped, *sorted(f"inside: {text}" for text in inner)])
    return IterativeResult(float(value), trade.folded(best), len(rows), reason, history)


def starting_channel(trade: Trade, budget: float, goal: str) -> Array:
    """Return the nearest output mixed with a uniform one, so that every output can occur."""
    nearest = nearest_output(trade)
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


def nearest_output(trade: Trade) -> Array:
    """Return the channel of least distortion."""
    cost = trade.terms.costs[0]
    return np.eye(cost.shape[1])[cost.argmin(axis=1)]
