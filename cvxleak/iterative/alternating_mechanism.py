"""Alternating between adversary and mechanism (LEAKAGE Algorithms 6 and 9)."""

from __future__ import annotations

import math
from typing import NamedTuple

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
from cvxleak.iterative.exponentiated import DECREASES, GOALS, Trade
from cvxleak.iterative.formulas import Array
from cvxleak.iterative.history import IterativeResult
from cvxleak.iterative.joint import joint_blahut_arimoto
from cvxleak.iterative.penalty import penalized_design, repaired, starting_channel
from cvxleak.model import Lumped

__all__ = ["AlternatingPoint", "alternating_design"]

ADVERSARIES = ("joint", "alternating")

NEAR = 1e-3
"""Two mechanisms count as the same if they differ by at most this much in all entries' sum."""


class AlternatingPoint(NamedTuple):
    """The `point` of the result of `alternating_design`.

    Attributes
    ----------
    channel : array, shape (n_1, ..., n_n, Y)
        The mechanism, which meets the budget.
    prior : array, shape (n_1, ..., n_n)
        The worst prior that the adversary step found for it.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.iterative import AlternatingPoint
    >>> point = AlternatingPoint(channel=np.full((2, 2), 0.5), prior=np.array([0.5, 0.5]))
    >>> point.channel.shape, point.prior.shape
    ((2, 2), (2,))
    """

    channel: Array
    prior: Array


def alternating_design(
    source: ArrayLike,
    distortion: ArrayLike,
    budget: float,
    entropy_floor: float,
    *,
    goal: str = "leakage",
    adversary: str = "joint",
    start: ArrayLike | None = None,
    starts: int = 10,
    rng: int | np.random.Generator | None = 0,
    tol: float = 1e-5,
    max_iterations: int = 30,
    time_limit: float | None = None,
    max_penalties: int = 30,
    decrease: str = "norm",
    max_steps: int = 200,
) -> IterativeResult:
    """Design a mechanism against entropy-constrained adversaries as LEAKAGE Algorithms 6 and 9 do.

    Two steps alternate: the worst prior with H(X) >= b for the current mechanism, and a mechanism
    for this prior alone by the penalty method. Goal "leakage" is Algorithm 6 (Problem 2, with
    budget D); goal "distortion" is Algorithm 9 (Problem 3, with budget L). The method uses only the
    last prior, so it can cycle, and its result is not optimal in general. It is the paper's method,
    kept for comparison with the cutting set of `cvxleak.design`.

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
        First mechanism; as in `adaptive_penalty` if left out.
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
    max_penalties, decrease, max_steps
        As in `adaptive_penalty`.

    Returns
    -------
    IterativeResult
        `point` is the best repaired mechanism of all rounds, and the worst prior found for it.
        `value` for goal "leakage" is the leakage under that prior, a lower bound on the leakage
        under all priors (an audit proves an upper bound). For goal "distortion" it is the
        distortion; the budget is met under every prior that the adversary step found. `history`
        has, per round, ``objective`` (as the paper's algorithm reports it: leakage or distortion of
        its own iterate under the last prior), ``adversary`` (the leakage that the adversary step
        found for the repaired mechanism), ``distortion`` of the repaired mechanism, ``residual``
        (by how much the paper's iterate exceeds the budget), ``step`` (sum |change of q| in the
        round), ``penalties`` (number of lambdas tried) and ``period`` (k >= 2 if the mechanism
        equals that of k rounds ago, but not that of the last round, which is a cycle; otherwise 0).

    Raises
    ------
    ValidationError
        Arguments that do not match each other.
    InfeasibleError
        D below the least possible distortion, or b above log|X|.

    Notes
    -----
    The listing of Algorithm 9 is missing from the paper's text. It is rebuilt here from 3.3.1,
    (27), (28) and Theorem 7: Algorithm 6 with Algorithm 10 in place of Algorithm 7, and with the
    change of the distortion in place of that of the leakage as the stopping rule.

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
    one_of(decrease, DECREASES, "decrease")
    whole_number(max_penalties, "max_penalties", 1)
    whole_number(max_steps, "max_steps", 1)
    clock = Clock(time_limit)
    opponent = _Adversary(adversary, b, whole_number(starts, "starts", 1), generator(rng))
    q = starting_channel(trade, limit, goal) if start is None else trade.channel(start, "start")
    prior, leak = opponent.worst(trade.folded(q))
    rows: list[tuple[float, ...]] = []
    mechanisms = [q]
    best: tuple[float, AlternatingPoint] | None = None
    previous, remarks = math.inf, set[str]()
    stopped = f"max_iterations={cap} reached"
    for _ in range(cap):
        facing = Trade.checked(prior, p0, distortion)
        run = penalized_design(facing, goal, limit, q, max_penalties, decrease, max_steps)
        remarks.add(run.stopped)
        reached = run.point
        leaks = float(facing.informations(reached).max())
        objective = leaks if goal == "leakage" else facing.distortion(reached)
        step = float(np.abs(reached - q).sum())
        q = reached
        mechanisms.append(q)
        prior, leak = opponent.worst(facing.folded(q))
        usable = q
        if goal == "distortion" and leak > limit:
            usable = repaired(Trade.checked(prior, p0, distortion), goal, limit, q)
        value = leak if goal == "leakage" else facing.distortion(usable)
        if best is None or value < best[0]:
            best = value, AlternatingPoint(facing.folded(usable), prior)
        residual = float(run.history["residual"][-1])
        rows.append(
            (
                objective,
                leak,
                facing.distortion(usable),
                residual,
                step,
                float(run.iterations),
                float(_period(mechanisms)),
            )
        )
        if abs(objective - previous) <= enough:
            stopped = f"a round changed the {goal} by at most tol={enough:g}"
            break
        previous = objective
        if clock.late:
            stopped = "time_limit reached"
            break
    names = ("objective", "adversary", "distortion", "residual", "step", "penalties", "period")
    history: dict[str, Array] = dict(zip(names, np.array(rows).T, strict=True))
    cycles = int((history["period"] > 0).sum())
    if cycles:
        stopped += f"; {cycles} of {len(rows)} rounds went back to an earlier mechanism"
    stopped = "; ".join([stopped, *sorted(f"mechanism step: {text}" for text in remarks)])
    value, point = best if best is not None else (math.inf, AlternatingPoint(q, prior))
    return IterativeResult(value, point, len(rows), stopped, history)


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
