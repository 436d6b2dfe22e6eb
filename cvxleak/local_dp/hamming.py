"""Hamming distortion: the least epsilon of any source set is one linear program.

Write D_x = 1 - Q(x|x) for the distortion of input x. If 0 <= D_x <= 1 and sum D <= k - 1, some
channel has these distortions and column ratios of at most f if and only if

    (f - 1) D_x >= k - 1 - sum D    for every x,

so the least e^epsilon is f(D) = 1 + (k - 1 - sum D) / min D. Channels with sum D > k - 1 are not
needed: a constant output has distortions below theirs.

- Necessary, for every channel: with u_y the least entry of column y, Q(y|y) <= f u_y, so the rest
  of row x is at least sum_{y != x} Q(y|y) / f, that is f D_x >= sum_{y != x} (1 - D_y).
- Sufficient: Q(y|x) = D_x (1 - D_y) / sum_{z != x} (1 - D_z) for y != x, HAMMING (48) with k = 0.

It is HAMMING (32) with the largest of all rows in place of the first, and needs no order of the
sources: exact for Classes I, II and III. Minimizing f over the D that meet the budget is linear
fractional; with t = 1 / min D and z = t D it is

    minimize (k - 1) t - sum z  subject to  1 <= z <= t, sum z <= (k - 1) t, P . z <= budget t,

which leaves out min D = 0: that is possible only with sum D = k - 1, a constant output.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cvxleak.core.errors import SolverError
from cvxleak.core.validation import Array
from cvxleak.local_dp.linear import Mixture, Solution, SourceProgram
from cvxleak.solvers.linear import LinearSolver
from cvxleak.sources import SourceSet

__all__ = [
    "channel_of_distortions",
    "distortions_for_budget",
    "distortions_for_ratio",
    "potentials_for_budget",
    "potentials_for_ratio",
    "smallest_probability",
]


SMALL = 1e-3
"""Budgets below this are tried with the symmetric channel first."""


def smallest_probability(sources: SourceSet) -> tuple[float, Mixture]:
    """Return the largest m such that a mixture has no probability below m, and that mixture.

    Up to the distortion (k - 1) m symmetric randomized response is optimal: see
    `potentials_for_budget` at this mixture. HAMMING Theorem 2 has the first threshold
    max_P min_x P(x), which is k - 1 times smaller.
    """
    size = sources.size
    best = _worst(
        sources,
        np.zeros(size),
        [(0, None)] * size,
        equations=np.ones((1, size)),
        totals=np.ones(1),
    )
    mixture = _certain(best)
    return float(mixture.law.min()), mixture


def distortions_for_budget(
    sources: SourceSet, budget: float, solver: LinearSolver | None = None
) -> tuple[Array, Mixture, float] | None:
    """Return the distortions of an optimal channel, the worst mixture, and the price of distortion.

    The price is the derivative of e^epsilon in the budget, which must be positive. None, or
    distortions with sum k - 1, if a constant output meets it.
    """
    size = sources.size
    if budget < SMALL:
        # The program would be badly scaled; more often than not it is not needed.
        least, mixture = smallest_probability(sources)
        if budget <= (size - 1) * least:
            return np.full(size, budget), mixture, -(size - 1) / budget / budget
    # Columns z and t.
    ceiling = np.append(np.zeros(size), budget)
    program = SourceProgram(sources, np.eye(size, size + 1), ceiling, solver=solver)
    rows = np.zeros((size + 1, size + 1))
    rows[:size, :size], rows[:size, size] = np.eye(size), -1.0
    rows[size, :size], rows[size, size] = 1.0, 1.0 - size
    best = program.minimize(
        np.append(-np.ones(size), size - 1.0),
        [(1, None)] * (size + 1),
        rows,
        np.zeros(size + 1),
    )
    if best is None or best.mixture is None:
        return None
    scale = best.columns[size]
    return best.columns[:size] / scale, best.mixture, -best.price * scale


def distortions_for_ratio(
    sources: SourceSet, ratio: float, solver: LinearSolver | None = None
) -> tuple[Array, Mixture, float]:
    """Return the distortions of a channel of least worst-case distortion, given e^epsilon > 1.

    Also the worst mixture of sources and the derivative of the distortion in the ratio.
    """
    size = sources.size
    # k - 1 - sum D <= (ratio - 1) D_x, divided by the larger factor so that rows stay of size 1.
    gain = ratio - 1.0
    scale = max(gain, 1.0)
    rows = -np.ones((size, size)) / scale - gain / scale * np.eye(size)
    sides = np.full(size, -(size - 1) / scale)
    whole = np.ones((1, size))
    best = _worst(
        sources,
        np.zeros(size),
        [(0, 1)] * size,
        rows=np.vstack([rows, whole]),
        sides=np.append(sides, size - 1.0),
        solver=solver,
    )
    distortions = best.columns[:size]
    return distortions, _certain(best), -float(best.rows[:size] @ distortions) / scale


def channel_of_distortions(distortions: Array) -> Array:
    """Return HAMMING (48) with k = 0: the diagonal is 1 - D, the rest of a row is proportional.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.local_dp.hamming import channel_of_distortions
    >>> channel_of_distortions(np.array([0.2, 0.2, 0.6]))
    array([[0.8       , 0.13333333, 0.06666667],
           [0.13333333, 0.8       , 0.06666667],
           [0.3       , 0.3       , 0.4       ]])
    """
    kept = np.maximum(1 - distortions, 0.0)
    others = kept.sum() - kept
    # Without any other output the input's own is certain.
    share = np.divide(distortions, others, out=np.zeros_like(others), where=others > 0)
    matrix = share[:, None] * kept[None, :]
    np.fill_diagonal(matrix, kept)
    return matrix


def potentials_for_budget(law: Array, room: Array, budget: float) -> Array:
    """Return the potentials v, sum v = budget, that prove most with a given distribution.

    Under 0 <= v <= p the column y has cost 1 - p_y - budget + v_y above the potentials and v_y
    below, so e^epsilon >= 1 + min_y (1 - budget - p_y) / v_y: best is
    v_y = min(p_y, room_y / g) with room_y = 1 - budget - p_y, and g such that they sum to the
    budget. The room is an argument because it can be next to nothing, and has to be exact then.
    """
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        order = np.argsort(np.where(law > 0, -room / law, -np.inf), kind="stable")
    # The first n of `order` are at p_y; g follows from the rest.
    full = np.concatenate([[0.0], np.cumsum(law[order])])
    rest = room.sum() - np.concatenate([[0.0], np.cumsum(room[order])])
    best = np.zeros_like(law)
    for n in range(len(law)):
        left = budget - full[n]
        if left <= 0:
            break
        with np.errstate(over="ignore"):
            gain = max(rest[n], 0.0) / left
        trial = np.minimum(law, room / gain) if gain > 0 else law.copy()
        if abs(trial.sum() - budget) < abs(best.sum() - budget):
            best = trial
    return best * (budget / best.sum()) if best.sum() > 0 else best


def potentials_for_ratio(law: Array, ratio: float) -> Array:
    """Return the potentials of largest sum that a given distribution allows for a given e^epsilon.

    v_y = min(p_y, (1 - s - p_y) / (ratio - 1)) with s = sum v: the fixed point of a falling map.
    """
    gain = ratio - 1.0

    def spread(total: float) -> Array:
        return np.clip((1 - total - law) / gain, 0.0, law)

    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2
        if spread(middle).sum() >= middle:
            low = middle
        else:
            high = middle
        if high - low <= 1e-17:
            break
    return spread(high)


def _worst(
    sources: SourceSet,
    objective: Array,
    bounds: Sequence[tuple[float | None, float | None]],
    rows: Array | None = None,
    sides: Array | None = None,
    equations: Array | None = None,
    totals: Array | None = None,
    solver: LinearSolver | None = None,
) -> Solution:
    """Minimize objective . a + max_P P . a subject to linear rows on a."""
    size = sources.size
    ceiling = np.append(np.zeros(size), 1.0)
    program = SourceProgram(sources, np.eye(size, size + 1), ceiling, solver=solver)
    best = program.minimize(
        np.append(objective, 1.0),
        [*bounds, (None, None)],
        None if rows is None else np.hstack([rows, np.zeros((len(rows), 1))]),
        sides,
        None if equations is None else np.hstack([equations, np.zeros((len(equations), 1))]),
        totals,
    )
    if best is None:
        raise SolverError("HiGHS: found no feasible point where there is one")
    return best


def _certain(best: Solution) -> Mixture:
    if best.mixture is None:
        raise SolverError("HiGHS: returned no multipliers for the sources")
    return best.mixture
