"""Which kernel answers a request: the optimal one, on the grid, made to keep every budget."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cvxleak.desk.budgets import Limits
from cvxleak.desk.history import Entry, History, Observer
from cvxleak.desk.kernels import (
    GRID,
    Kernel,
    constant,
    copied,
    expected_cost,
    mean_cost,
    mixed,
    on_grid,
)
from cvxleak.desk.realized import RealizedHistory
from cvxleak.desk.solving import solve_kernel
from cvxleak.errors import InfeasibleError
from cvxleak.model import Channel, Distortion

__all__ = ["Choice", "choose_kernel", "known_as", "within"]

INDIFFERENT = 1e-6
"""Of two kernels whose expected distortion differs by less, the one that tells less is used."""


@dataclass(frozen=True)
class Choice:
    """A kernel that keeps the budgets, and how good it is.

    Attributes
    ----------
    kernel : array, shape (classes, |X|, outputs)
    distortion : tuple of float
        Proved ends of the least expected distortion; the kernel has the upper one.
    copy_of : int or None
        The earlier release, from 1, that it repeats.
    """

    kernel: Kernel
    distortion: tuple[float, float]
    copy_of: int | None


def choose_kernel(
    history: History | RealizedHistory,
    party: str,
    request: Channel,
    distortion: Distortion,
    limits: Limits,
    past: Sequence[list[object]],
    time_limit: float | None,
) -> Choice:
    """Return the kernel of a request that keeps `limits`.

    An earlier release that would do as well is repeated, since that tells nothing new (SEQUENTIAL,
    section III); `past` holds the labels of the outputs of each.

    Raises
    ------
    InfeasibleError
        A budget is below what was told already; the message says how much that is.
    """
    for who, budget in limits.items():
        spent = history.leakage(who)[1]
        if spent > budget:
            name = "delta" if who is None else "epsilon" if len(who) == 1 else "coalitions"
            raise InfeasibleError(
                f"{name}: found {budget!r}; {known_as(who)} may have learned {spent!r} nats "
                "already, and no smaller budget can be kept"
            )
    costs = mean_cost(request.matrix, distortion.matrix)
    labels = list(request.outputs)
    shape = (history.classes, len(request.inputs), len(labels))

    def loss(kernel: Kernel) -> float:
        return expected_cost(history.joint, kernel, costs)

    found, lower = solve_kernel(history, request, distortion, limits, time_limit)
    silent = min((constant(shape, r) for r in range(len(labels))), key=loss)
    best, source = _repaired(history, party, on_grid(found), silent, limits), None
    for number, outputs in enumerate(past, start=1):
        chosen = history.release_of_class(number - 1)
        if outputs != labels or None in chosen:
            continue
        candidate = copied([r or 0 for r in chosen], shape)
        most = loss(best) + INDIFFERENT if source is None else np.nextafter(loss(best), -1.0)
        if loss(candidate) <= most and _keeps(history, party, candidate, limits):
            best, source = candidate, number
    upper = loss(best)
    return Choice(best, (min(lower, upper), upper), source)


def within(history: History | RealizedHistory, limits: Limits) -> list[str]:
    """Return who may know more than the limits allow, in words."""
    return [
        known_as(who) for who, budget in limits.items() if not history.leakage(who)[1] <= budget
    ]


def known_as(who: Observer | None) -> str:
    """Return a text for an observer."""
    return "everybody together" if who is None else " + ".join(sorted(who))


def _repaired(
    history: History | RealizedHistory, party: str, kernel: Kernel, silent: Kernel, limits: Limits
) -> Kernel:
    """Mix a kernel with one that tells nothing, as little as the budgets need.

    Every leakage is convex in the kernel, so it falls towards what was told before.
    """
    share = 0.0
    while not _keeps(history, party, candidate := mixed(kernel, silent, share), limits):
        if share >= 1.0:
            return silent
        share = min(max(2 * share, 1 / GRID), 1.0)
    return candidate


def _keeps(history: History | RealizedHistory, party: str, kernel: Kernel, limits: Limits) -> bool:
    after = copy.copy(history)
    # Any output that can come will do: what may have been told does not depend on it.
    support = [q != 0 for q in history.joint[history.realized]]
    possible = int(np.argmax(kernel[history.realized][support].sum(axis=0)))
    after.add(Entry(party, kernel.tolist(), possible))
    return not within(after, limits)
