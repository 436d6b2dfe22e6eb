"""A primal-dual interior-point method for many small convex problems at once.

Each is to minimize a smooth convex U(z) over z >= 0. With a slack for each multiplier, Newton's
method is applied to

    U'(z) = slack,  z slack = tau,

for a tau that falls with the duality gap sum z slack. Some multipliers may have a known sum.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import NDArray

from cvxleak.core.validation import Array
from cvxleak.core.work import spend

if TYPE_CHECKING:
    from cvxleak.audit.worst_adversary.dual import Maximizer, Nodes

__all__ = ["LEFT", "SLOW_STEPS", "STEPS", "Batch", "minimize", "never"]

STEPS, SLOW_STEPS = 100, 2000
"""Most steps of a search that converges, of Newton's method and of ascents, and of those that are
slow: for sharp maximizers of time sharing, and sharp capacities. With 60 of the former the bank's
ends are the same; with 50 of the latter log-ratio cells of a count with Gaussian noise and known
marginals take a thousand times the nodes."""

CENTERED = 30.0
"""Most by which a product of a multiplier and its slack is off the one that a step aims at.
Without, adversaries who know marginals take up to twice the work."""

LEFT = 0.1
"""Least share of a multiplier or a slack that a step leaves, and of an edge that a cut leaves on
each side. With half of it steps take .99 of the work."""


def never() -> bool:
    """Do not stop."""
    return False


@dataclass
class Batch:
    """Arrays about the problems of a batch, along the first axis, and what all share."""

    def take(self, chosen: NDArray[np.intp] | NDArray[np.bool_]) -> Self:
        """Return those of some problems."""
        arrays = {name: own for name, own in vars(self).items() if isinstance(own, np.ndarray)}
        return replace(self, **{name: own[chosen] for name, own in arrays.items()})

    def put(self, chosen: NDArray[np.intp] | NDArray[np.bool_], other: Self) -> None:
        """Take over another's for some problems."""
        for name, own in vars(self).items():
            own[chosen] = getattr(other, name)


def minimize(
    problem: Nodes,
    z: Array,
    threshold: Array,
    accuracy: Array,
    stop: Callable[[], bool] = never,
    allowed: float = np.inf,
) -> tuple[Array, Array, Maximizer]:
    """Return the least U found, its z, and the last point.

    A problem is done when U is at most its threshold, when the least U is certainly above it (with
    -inf it never is), or when the duality gap is at most the accuracy. Where what maximizes counts,
    too, slacks have to be within `allowed` of the gradient.
    """
    active, best, value = np.arange(len(z)), z.copy(), np.full(len(z), np.inf)
    point = problem.at(z)
    last = point.take(active)
    aim = np.maximum(1e-3 * np.clip(point.value - threshold, 0.0, 1.0), accuracy) / z.shape[1]
    slack, tau = np.maximum(point.gradient, aim[:, None] / z), np.full((len(z), 1), np.inf)
    for iteration in range(STEPS + 1):
        last.put(active, point)
        better = point.value < value[active]
        value[active[better]], best[active[better]] = point.value[better], z[better]
        gap = (z * slack).sum(axis=1)
        miss = np.abs(point.gradient - slack).sum(axis=1)
        above = (point.value - 4 * gap - miss > threshold) & np.isfinite(threshold)
        done = (miss <= allowed) & (above & (iteration >= 2) | (gap <= accuracy))
        done |= (point.value <= threshold) | np.isnan(point.value)
        if done.all() or iteration == STEPS or stop():
            break
        if done.any():
            keep = ~done
            active, z, slack, tau = active[keep], z[keep], slack[keep], tau[keep]
            threshold, accuracy = threshold[keep], accuracy[keep]
            problem, point = problem.take(keep), point.take(keep)
        if allowed < np.inf:
            # Steps aim no lower than what slacks miss, nor any higher than before. Where only the
            # bound counts that takes many times the steps of some gains.
            right = np.maximum(slack, np.abs(point.gradient))
            tau = np.minimum(tau, 0.15 * (z * right).mean(axis=1, keepdims=True))
        else:
            tau = 0.15 * (z * slack).mean(axis=1, keepdims=True)
        z, slack, point = _step(problem, z, slack, point, tau)
    return value, best, last


def _step(
    problem: Nodes, z: Array, slack: Array, point: Maximizer, tau: Array
) -> tuple[Array, Array, Maximizer]:
    """Return the multipliers, slacks and point after a Newton step that aims at `tau`."""
    spend(1e6 + len(z) * (3e4 + z.shape[1] ** 3))
    dz = _direction(point.hessian, slack / z, tau / z - point.gradient, problem.summed)
    step = _longest(z, dz)
    trial = problem.normalized(z + step * dz)
    new = problem.at(trial)
    # A step that the local model did not foresee is cut.
    merit = point.value - (tau * np.log(z)).sum(axis=1)
    for _ in range(6):
        bad = new.value - (tau * np.log(trial)).sum(axis=1) > merit + 1e-12 + 1e-3 * tau[:, 0]
        bad |= ~np.isfinite(new.value)
        if not bad.any():
            break
        step[bad] *= 0.25
        trial[bad] = problem.normalized(z[bad] + step[bad] * dz[bad])
        new.put(bad, problem.take(bad).at(trial[bad]))
    change = (tau - slack * dz) / z - slack
    slack = slack + _longest(slack, change) * change
    slack = np.clip(slack, tau / (CENTERED * trial), CENTERED * tau / trial)
    return trial, slack, new


def _direction(hessian: Array, diagonal: Array, right: Array, summed: slice) -> Array:
    """Return the Newton step, along which a sum that is known hardly changes."""
    matrix, each = hessian.copy(), np.arange(right.shape[1])
    matrix[:, each, each] += diagonal
    sizes = matrix[:, each, each][:, summed].sum(axis=1)
    matrix[:, summed, summed] += sizes[:, None, None]
    # With a diagonal of ones the system is well conditioned, whatever the multipliers' sizes.
    scale = 1 / np.sqrt(matrix[:, each, each])
    matrix *= scale[:, :, None] * scale[:, None, :]
    matrix[:, each, each] += 1e-13
    usable = np.isfinite(matrix).all(axis=(1, 2), keepdims=True)
    matrix = np.where(usable, matrix, np.eye(right.shape[1]))
    return scale * np.linalg.solve(matrix, (scale * right)[..., None])[..., 0]


def _longest(values: Array, steps: Array) -> Array:
    """Return the step, at most 1, that leaves a share of every value."""
    ratio = np.where(steps < 0, (LEFT - 1) * values / steps, np.inf)
    return np.minimum(1.0, ratio.min(axis=-1, keepdims=True))
