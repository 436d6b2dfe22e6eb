"""The largest level at which symbols of a given mass exist: e^eps_c(delta)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from cvxleak.core.clock import Clock
from cvxleak.core.validation import Array
from cvxleak.envelope.program import Program, Vertex

__all__ = ["Levels", "largest_level", "tail_average"]

HOPS = 16
"""Up to this many jumps are passed one by one; of more, the middle one is tried."""

HALVE = 8
"""Every so many steps the interval between the bounds is halved, whatever else is known."""

CLOSE = 1e-13
"""Relative distance at which two levels are taken for one."""


@dataclass(frozen=True)
class Levels:
    """Two levels with e^eps_c(delta) between them.

    Attributes
    ----------
    below : Vertex
        Its symbols have a mass of at least delta.
    above : Vertex
        Its multipliers bound the mass at its level by less than delta.
    tried : int
        Number of levels at which the program was solved on the way.
    """

    below: Vertex
    above: Vertex
    tried: int


def largest_level(program: Program, delta: float, clock: Clock | None = None) -> Levels:
    """Return levels just below and just above e^eps_c(delta), for delta in [0, 1].

    The mass that symbols can have falls as their level rises, and jumps down behind the largest
    ratio of every input. From above: the dual function at the multipliers of one level bounds all
    others, so the largest level is at most where it meets delta (Newton's method, nearly: see
    `_bounded_by`). Many jumps at once are halved.
    """
    clock = clock or Clock()
    low, high = _ends(program, delta)
    tried = 0
    while high > low * (1 + CLOSE) and not clock.late:
        tried += 1
        between = np.unique(program.jumps[(program.jumps > low) & (program.jumps < high)])
        if len(between) > HOPS:
            level = float(between[len(between) // 2])
        else:
            # Newton's steps are short where symbols are topped up by outputs close to the level.
            level = high if tried % HALVE else math.sqrt(low * high)
        vertex = program.solve(level, bound_only=True, clock=clock)
        if vertex.bound >= delta * (1 - CLOSE):
            low = level
        else:
            high = min(high, level, _bounded_by(program, vertex, delta))
    # With a margin for the rounding of value and bound, since both are proved exactly afterwards.
    below = _moved(
        program, low, -CLOSE, lambda vertex: vertex.value * (1 - 1e-14) >= delta < vertex.value
    )
    above = _moved(program, high, CLOSE, lambda vertex: vertex.bound < delta * (1 - 1e-13))
    if not above.bound < delta * (1 - 1e-13):
        above = program.solve(float(program.jumps.max()) * (1 + CLOSE))  # no symbol is left
    return Levels(below, above, tried)


def tail_average(program: Program, delta: float) -> tuple[float, float]:
    """Return a level just above the mean of `_ends`, and the multiplier that proves it.

    With mu_x = 1 / (t - tau) for every x, the dual function is the sum of P(y) (max_x r_xy - tau)^+
    over t - tau; for tau the largest ratio of the last of the worst outputs, that is delta at the
    mean t of these ratios, and below it beyond. A bit above it rounding leaves that output nothing.
    """
    mean, last = _tail(program, delta)
    level = mean * (1 + 10 * CLOSE)
    return level, 1 / (level - last * (1 + CLOSE))


def _ends(program: Program, delta: float) -> tuple[float, float]:
    """Return the level that the outputs reach as they are, and one that nothing exceeds.

    The second is the mean of max_x r_xy over the worst outputs of mass delta: symbols of mass delta
    take their gain from outputs of this mass, and from each at most its largest ratio.
    """
    mean, last = _tail(program, delta)
    return max(1.0, last * (1 - CLOSE)), mean * (1 + CLOSE)


def _tail(program: Program, delta: float) -> tuple[float, float]:
    """Return the mean and the least of max_x r_xy over the worst outputs of mass delta."""
    top = program.ratios.max(axis=0)
    order = np.argsort(-top, kind="stable")
    reach = np.cumsum(program.output[order])
    last = min(int(np.searchsorted(reach, delta)), len(order) - 1)
    share = np.diff(np.minimum(reach, delta), prepend=0.0)
    mean = float(share @ top[order] / share.sum()) if share.sum() > 0 else float(top.max())
    return mean, float(top[order[last]])


def _bounded_by(program: Program, vertex: Vertex, delta: float) -> float:
    """Return a level that e^eps_c(delta) does not exceed, at most the vertex's.

    With mu_x(s) = 1 / (s - rho_x) at level s, the dual function is

        D(s) = sum_y P(y) max(0, max_x (r_xy - rho_x) / (s - rho_x)).

    An optimal rho_x is the ratio of the output that tops up the symbol of x, and often the same at
    many levels; then D is the optimal value itself.
    """
    level = vertex.level
    able = np.isfinite(vertex.multipliers)
    # Inputs without a symbol up here may have one further down. With the least multipliers that
    # cost nothing now they are taken along; or the search stops where the first of them counts.
    idle = np.flatnonzero(~able)
    short = np.maximum(level - program.ratios[idle], 1e-9 * level)
    least = np.maximum((1 - vertex.prices) / short, 0.0).max(axis=1, initial=0.0)
    multipliers = vertex.multipliers.copy()
    multipliers[idle] = least
    with_idle = _meets(program, multipliers, level, delta, 1.0, np.ones(len(able), dtype=bool))
    jump = float(program.jumps[idle].max(initial=1.0))
    if not able.any():
        return min(with_idle, jump)
    return min(with_idle, _meets(program, multipliers, level, delta, jump, able))


def _meets(
    program: Program,
    multipliers: Array,
    level: float,
    delta: float,
    floor: float,
    able: NDArray[np.bool_],
) -> float:
    """Return where D(s) = delta between `floor` and `level`, or the floor if it stays below."""
    mu, ratios = multipliers[able], program.ratios[able]
    numerator = np.maximum(1 + mu[:, None] * (ratios - level), 0.0)
    # No s - rho_x may vanish, rounded or not.
    steepest = float(mu.max())
    floor = max(floor, level - 0.99 / steepest) if steepest > 0 else floor
    if floor >= level * (1 - CLOSE):
        return level

    def excess(s: float) -> float:
        values = numerator / (1 + mu * (s - level))[:, None]
        return float(program.output @ values.max(axis=0)) - delta

    if excess(floor) < 0:
        return floor
    if excess(level) >= 0:
        return level
    root: Any = brentq(excess, floor, level, xtol=1e-300, rtol=np.float64(1e-15))
    return min(float(root) * (1 + 1e-15), level)


def _moved(program: Program, level: float, step: float, wanted: Callable[[Vertex], bool]) -> Vertex:
    """Return the vertex at the first level beyond `level` that has what is wanted.

    Where the mass hardly changes with the level, its rounding is a larger step of the level.
    """
    while True:
        vertex = program.solve(max(level * (1 + step), 0.5))
        if wanted(vertex) or abs(step) > 1e-2:
            return vertex
        step *= 4
