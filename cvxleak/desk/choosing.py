"""The kernel that answers a request: optimal, with probabilities on a grid, within every budget."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from flint import fmpq

from cvxleak.core.errors import InfeasibleError
from cvxleak.desk.budgets import Limits
from cvxleak.desk.history import Entry, History, Observer, Seen, Vector
from cvxleak.desk.kernels import GRID, Kernel, copied, expected_cost, mean_cost, mixed, on_grid
from cvxleak.desk.realized import RealizedHistory
from cvxleak.desk.solving import SLACK, solve_kernel
from cvxleak.model import Channel, Distortion

__all__ = ["Choice", "choose_kernel", "known_as", "within"]

INDIFFERENT = 1e-6
"""Difference of expected distortion that does not matter, as a share of the distortion's range.

Of two kernels that differ by less, the one that reveals less is used.
"""


@dataclass(frozen=True)
class Choice:
    """A kernel within the budgets, and its distortion.

    Attributes
    ----------
    kernel : array, shape (seen, |X|, outputs)
    distortion : tuple of float
        Lower and upper bound on the least expected distortion, both proved; the kernel has the
        upper one.
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
    past: Sequence[tuple[Hashable, ...]],
    time_limit: float | None,
) -> Choice:
    """Return the kernel that answers a request within `limits`.

    If an earlier release would do as well, it is repeated, since that reveals nothing new
    (SEQUENTIAL, section III). `past` has the output labels of each earlier release.

    Raises
    ------
    InfeasibleError
        A budget is below what was revealed already; the message says how much that is.
    """
    for who, budget in limits.items():
        spent = history.spent(who)
        if spent > budget:
            name = "delta" if who is None else "epsilon" if len(who) == 1 else "coalitions"
            raise InfeasibleError(
                f"{name}: found {budget!r} nats; {known_as(who)} may already have learned "
                f"{spent!r} nats, so no smaller budget can be met"
            )
    looker = party if party in history.lookers else None
    masses = history.seen(looker)
    costs = mean_cost(request.matrix, distortion.matrix)
    labels = request.outputs
    shape = (len(masses), len(request.inputs), len(labels))

    def loss(kernel: Kernel) -> float:
        return expected_cost(list(masses.values()), kernel, costs)

    found, bound = solve_kernel(history, looker, request, distortion, limits, time_limit)
    lower = bound.lower - SLACK * float(distortion.matrix.max())
    quiet = _quiet(masses, costs, shape)
    repaired = _repaired(history, party, on_grid(found), quiet, limits)
    best, source = min(quiet, repaired, key=loss), None
    indifferent = INDIFFERENT * float(np.ptp(distortion.matrix))
    for number, outputs in enumerate(past, start=1):
        chosen = [history.output_of(number - 1, seen, looker) for seen in masses]
        if outputs != labels or None in chosen:
            continue
        candidate = copied([r or 0 for r in chosen], shape)
        most = loss(best) + indifferent if source is None else np.nextafter(loss(best), -1.0)
        if loss(candidate) <= most and _keeps(history, party, candidate, limits):
            best, source = candidate, number
    upper = loss(best)
    least = float(distortion.matrix.min())
    return Choice(best, (min(max(lower, least), upper), upper), source)


def within(history: History | RealizedHistory, limits: Limits) -> list[str]:
    """Return, in words, which observers may know more than the limits allow."""
    return [
        known_as(who) for who, budget in limits.items() if not history.leakage(who)[1] <= budget
    ]


def known_as(who: Observer | None) -> str:
    """Return a text for an observer."""
    return "all parties together" if who is None else " + ".join(sorted(who))


def _quiet(
    masses: Mapping[Seen, Vector], costs: list[list[fmpq]], shape: tuple[int, int, int]
) -> Kernel:
    """Return the best kernel that depends on the party's own outputs: it reveals nothing new."""
    totals: dict[tuple[int, ...], list[fmpq]] = {}
    for seen, mass in masses.items():
        total = totals.setdefault(seen.own, [fmpq(0)] * shape[2])
        for p, cost in zip(mass, costs, strict=True):
            total[:] = [t + p * d for t, d in zip(total, cost, strict=True)]
    best = {own: min(range(shape[2]), key=total.__getitem__) for own, total in totals.items()}
    return copied([best[seen.own] for seen in masses], shape)


def _repaired(
    history: History | RealizedHistory, party: str, kernel: Kernel, silent: Kernel, limits: Limits
) -> Kernel:
    """Mix a kernel with one that reveals nothing new, as little as the budgets require.

    Every leakage is convex in the kernel, so mixing moves it towards what was revealed before.
    """
    share = 0.0
    while not _keeps(history, party, candidate := mixed(kernel, silent, share), limits):
        if share >= 1.0:
            return silent
        share = min(max(2 * share, 1 / GRID), 1.0)
    return candidate


def _keeps(history: History | RealizedHistory, party: str, kernel: Kernel, limits: Limits) -> bool:
    after = copy.copy(history)
    looker = party if party in history.lookers else None
    seen = history.realized(looker)
    masses = history.seen(looker)
    rows = kernel[list(masses).index(seen)]
    # Any possible output can be used: the amount that may be revealed does not depend on it.
    support = [q != 0 for q in masses[seen]]
    possible = int(np.argmax(rows[support].sum(axis=0)))
    after.add(Entry(party, kernel.tolist(), possible, looker is not None))
    return not within(after, limits)
