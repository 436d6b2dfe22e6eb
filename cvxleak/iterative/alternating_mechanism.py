"""Alternating between adversary and mechanism (LEAKAGE Algorithms 6 and 9)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.clock import Clock
from cvxleak.core.validation import (
    dimensions,
    frozen_array,
    generator,
    one_of,
    probability_rows,
    real_number,
    whole_number,
)
from cvxleak.iterative.alternating import alternating_leakage
from cvxleak.iterative.entropy_floor import checked_floor
from cvxleak.iterative.exponentiated import GOALS, Trade
from cvxleak.iterative.formulas import Array
from cvxleak.iterative.history import IterativeResult
from cvxleak.iterative.joint import joint_blahut_arimoto
from cvxleak.iterative.penalty import adaptive_penalty, nearest_output, starting_channel
from cvxleak.model import Lumped

__all__ = ["AlternatingPoint", "alternating_design"]

ADVERSARIES = ("alternating", "joint")

NEAR = 1e-3
"""Two mechanisms count as the same if they differ by at most this much in all entries' sum."""


class AlternatingPoint(NamedTuple):
    """The `point` of the result of `alternating_design`.

    Attributes
    ----------
    channel : array, shape (n_1, ..., n_n, Y)
        The best of the mechanisms, each made to meet the budget.
    prior : array, shape (n_1, ..., n_n)
        The worst prior that the adversary step found for it.
    channels : array, shape (K + 1, n_1, ..., n_n, Y)
        The method's own iterates q^(0), ..., q^(K), which need not meet the budget.
    priors : array, shape (K, n_1, ..., n_n)
        And p^(1), ..., p^(K), where p^(k) was found for q^(k - 1).

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.iterative import alternating_design
    >>> fair, hamming = np.array([0.5, 0.5]), 1 - np.eye(2)
    >>> point = alternating_design(fair, hamming, 0.1, 0.0, max_iterations=3).point
    >>> point.channel.shape, point.channels.shape[1:], point.priors.shape[1:]
    ((2, 2), (2, 2), (2,))
    """

    channel: Array
    prior: Array
    channels: Array
    priors: Array


def alternating_design(
    source: ArrayLike,
    distortion: ArrayLike,
    budget: float,
    entropy_floor: float,
    *,
    goal: str = "leakage",
    adversary: str = "alternating",
    start: ArrayLike | None = None,
    starts: int = 1,
    rng: int | np.random.Generator | None = 0,
    tol: float = 1e-5,
    max_iterations: int = 30,
    time_limit: float | None = None,
    **options: Any,
) -> IterativeResult:
    """Design a mechanism against entropy-constrained adversaries as LEAKAGE Algorithms 6 and 9 do.

    Two steps alternate: the worst prior with H(X) >= b for the current mechanism, and a mechanism
    for this prior alone by the penalty method. Goal "leakage" is Algorithm 6 (Problem 2, with
    budget D); goal "distortion" is a reconstruction of Algorithm 9 (Problem 3, with budget L),
    whose listing is missing. The method uses only the last prior, so it can cycle, and its result
    is not optimal in general. It is the paper's method, kept for comparison with the cutting set of
    `cvxleak.design`.

    Parameters
    ----------
    source : array_like, shape (n_1, ..., n_n)
        The true distribution p_0 of the dataset.
    distortion : array_like, shape (n_1, ..., n_n, Y)
        d(f(x), y).
    budget : float
        D or L.
    entropy_floor : float
        b, in nats.
    goal : str
        "leakage" or "distortion".
    adversary : str
        "alternating": Algorithm 1 from a random start, as in the paper; "joint": joint
        Blahut–Arimoto, which is faster and finds larger leakages.
    start : array_like, shape (n_1, ..., n_n, Y), optional
        First mechanism q^(0); as in `adaptive_penalty` if left out.
    starts : int
        Number of random starts of the adversary step (for each record with "joint").
    rng : int, numpy.random.Generator or None
        Seed of the random starts.
    tol : float
        Stop when leakage (or distortion) changes by at most this from one round to the next.
    max_iterations : int
        Largest number of rounds.
    time_limit : float, optional
        Seconds after which no further round is started.
    **options
        Keyword arguments of `adaptive_penalty`, the mechanism step: its penalties and line search.

    Returns
    -------
    IterativeResult
        `point`: the best mechanism that meets the budget, and the method's own iterates. `value`
        is about the former: for goal "leakage" the leakage under the worst prior found for it, a
        lower bound on the leakage under all priors (an audit proves an upper bound); for goal
        "distortion" the distortion, where the budget is met under every prior that the adversary
        step found. What the paper returns is ``point.priors[-1]``, ``point.channels[-1]`` and the
        last ``objective``. `history`, per round k:

        - ``objective``: leakage or distortion of q^(k) under p^(k),
        - ``residual``: by how much q^(k) exceeds the budget, under p^(k),
        - ``repaired``: `value` for q^(k) mixed with the nearest output (goal "leakage") or with a
          constant one (goal "distortion") as far as the budget needs,
        - ``adversary``: the leakage that the adversary step found for q^(k),
        - ``step``: sum |q^(k) - q^(k-1)|, ``penalties``: number of lambdas tried,
        - ``period``: m >= 2 if q^(k) equals q^(k-m), but not q^(k-1), which is a cycle; else 0.

    Raises
    ------
    ValidationError
        Arguments that do not match each other.
    InfeasibleError
        D below the least possible distortion, or b above log|X|.

    Notes
    -----
    Algorithm 9 is rebuilt from 3.3.1, (27), (28) and Theorem 7: Algorithm 6 with Algorithm 10 in
    place of Algorithm 7, and with the change of the distortion in place of that of the leakage as
    the stopping rule. The theorem's proof places a change of lambda in lines 7 to 11 of the missing
    listing; here it is that of Algorithm 10. p^(0) of the listings is overwritten before it is
    used.

    For parities the default start is already optimal, and with decrease="norm" the line search
    usually finds no step. Give another `start` to see the method's steps.

    Examples
    --------
    The parity of two bits against adversaries with b = 0 (log 2 - h(D) is optimal):

    >>> import numpy as np
    >>> from cvxleak.iterative import alternating_design
    >>> parity = np.array([[0, 1], [1, 0]])
    >>> error = 1.0 - np.eye(2)[parity]
    >>> uniform = np.full((2, 2), 0.25)
    >>> run = alternating_design(uniform, error, 0.2, 0.0, decrease="variance", max_iterations=5)
    >>> bool(run.value > 0.19)  # log 2 - h(0.2) = 0.1927
    True
    >>> bool(run.history["residual"][-1] > 0)  # the method's own mechanism misses the budget
    True
    """
    one_of(goal, GOALS, "goal")
    one_of(adversary, ADVERSARIES, "adversary")
    p0 = frozen_array(source, "source", max(dimensions(source, "source"), 1))
    probability_rows(p0.ravel(), "source", 1)
    trade = Trade.checked(p0, p0, distortion)
    limit = real_number(budget, "budget", 0.0, open_high=True)
    b = checked_floor(entropy_floor, math.log(p0.size))
    enough = real_number(tol, "tol", 0.0)
    cap = whole_number(max_iterations, "max_iterations", 1)
    clock = Clock(time_limit)
    opponent = _Adversary(adversary, b, whole_number(starts, "starts", 1), generator(rng))
    q = starting_channel(trade, limit, goal) if start is None else trade.channel(start, "start")
    prior, leak = opponent.worst(trade.folded(q))
    rows: list[tuple[float, ...]] = []
    channels, priors = [q], []
    best: tuple[float, Array, Array] | None = None
    previous, remarks = math.inf, set[str]()
    stopped = f"max_iterations={cap} reached"
    for _ in range(cap):
        facing = Trade.checked(prior, p0, distortion)
        run = adaptive_penalty(
            prior, p0, distortion, limit, goal=goal, start=trade.folded(q), **options
        )
        remarks.add(run.stopped)
        reached = run.point.reshape(q.shape)
        step = float(np.abs(reached - q).sum())
        q = reached
        channels.append(q)
        priors.append(prior)
        leaks, spent = float(facing.informations(q).max()), facing.distortion(q)
        objective, used = (leaks, spent) if goal == "leakage" else (spent, leaks)
        prior, leak = opponent.worst(trade.folded(q))
        usable = _repaired(facing, goal, limit, q, leak)
        found = prior, leak
        if goal == "leakage" and usable is not q:
            found = opponent.worst(trade.folded(usable))
        value = found[1] if goal == "leakage" else facing.distortion(usable)
        if best is None or value < best[0]:
            best = value, usable, found[0]
        period = float(_period(channels))
        rows.append((objective, used - limit, value, leak, step, float(run.iterations), period))
        if abs(objective - previous) <= enough:
            stopped = f"a round changed the {goal} by at most tol={enough:g}"
            break
        previous = objective
        if clock.late:
            stopped = "time_limit reached"
            break
    names = ("objective", "residual", "repaired", "adversary", "step", "penalties", "period")
    history: dict[str, Array] = dict(zip(names, np.array(rows).T, strict=True))
    cycles = int((history["period"] > 0).sum())
    if cycles:
        stopped += f"; {cycles} of {len(rows)} rounds went back to an earlier mechanism"
    stopped = "; ".join([stopped, *sorted(f"mechanism step: {text}" for text in remarks)])
    assert best is not None
    value, usable, worst = best
    own = np.array([trade.folded(channel) for channel in channels])
    point = AlternatingPoint(trade.folded(usable), worst, own, np.array(priors))
    return IterativeResult(value, point, len(rows), stopped, history)


def _repaired(trade: Trade, goal: str, budget: float, channel: Array, leak: float) -> Array:
    """Mix a channel with one that meets the budget, as far as is needed (in floating point)."""
    if goal == "leakage":
        target = nearest_output(trade)
        spent, least = trade.distortion(channel), trade.distortion(target)
        if spent <= budget:
            return channel
        share = min((spent - budget) / (spent - least), 1.0)
    else:
        if leak <= budget:
            return channel
        # The leakage of a mixture with a constant output is at most the channel's share of it.
        target = np.zeros_like(channel)
        target[:, trade.terms.costs[0].sum(axis=0).argmin()] = 1.0
        share = 1 - budget / leak
    return (1 - share) * channel + share * target


class _Adversary:
    """The adversary step: the worst prior that is found for a mechanism."""

    def __init__(self, method: str, floor: float, starts: int, rng: np.random.Generator) -> None:
        self.method, self.floor, self.starts, self.rng = method, floor, starts, rng

    def worst(self, mechanism: Array) -> tuple[Array, float]:
        """Return a prior, shape (n_1, ..., n_n), and max_i I(X_i;Y) under it."""
        if self.method == "alternating":
            runs = [
                alternating_leakage(mechanism, self.floor, start="random", rng=self.rng)
                for _ in range(self.starts)
            ]
            best = max(runs, key=lambda run: run.value)
            return best.point, best.value
        found = [self._joint(mechanism, record) for record in range(mechanism.ndim - 1)]
        return max(found, key=lambda pair: pair[1])

    def _joint(self, mechanism: Array, record: int) -> tuple[Array, float]:
        shape = mechanism.shape[:-1]
        # One group per dataset, ordered by the record's value.
        moved = np.moveaxis(mechanism, record, 0)
        contexts = math.prod(shape) // shape[record]
        lumped = Lumped(
            range(shape[record]),
            range(mechanism.shape[-1]),
            np.repeat(np.arange(shape[record]), contexts),
            moved.reshape(-1, mechanism.shape[-1]),
            [1] * math.prod(shape),
            [(g,) for g in range(math.prod(shape))],
        )
        run = joint_blahut_arimoto(lumped, self.floor, starts=self.starts, rng=self.rng)
        weights = np.asarray(run.point).reshape(moved.shape[:-1])
        return np.moveaxis(weights, 0, record), run.value


def _period(mechanisms: list[Array]) -> int:
    """Return how many rounds ago the last mechanism was met before, if not one; 0 if never."""
    last = mechanisms[-1]
    if len(mechanisms) < 3 or np.abs(last - mechanisms[-2]).sum() <= NEAR:
        return 0
    for back in range(2, len(mechanisms)):
        if np.abs(last - mechanisms[-1 - back]).sum() <= NEAR:
            return back
    return 0
