"""Fewer outputs at a price: outputs that say nearly the same are merged.

Let Y' be Y with some outputs merged. Then I(A;Y) = I(A;Y') + I(A;Y|Y'), and for any distribution t
on the outputs, with t' its image,

    I(A;Y|Y') <= I(X;Y|Y') <= <w, e>,   e_{a,g} = D(R_{a,g} || t) - D(R'_{a,g} || t'),

which is linear in the adversary: the leakage through Y' with the price e added bounds the leakage.
A tree has as many directions to be cut in as there are outputs, so a small price saves much.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import rel_entr, xlogy

from cvxleak.audit.worst_adversary.group import LEAST, Group
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.model import Lumped

__all__ = ["Merged", "merge_at_price"]

SHARE = 0.25
"""Share of the uniform distribution on the groups in the mixture whose price is kept down. Without,
the gaps of noisy counts are up to 2.9 times as wide, and uniform noise stays open at five times the
work that closes it; with half or twice of it gaps are .5 to 1.7 times as wide, and the mean is the
same."""


@dataclass(frozen=True)
class Merged:
    """A problem with outputs merged, and the price.

    Attributes
    ----------
    lumped : Lumped
        With one output for each part.
    parts : list of list of int
        The outputs of the group's view that are merged.
    t : array, shape (outputs of the view,)
    price : array, shape (N,)
        e_{a,g}.
    """

    lumped: Lumped
    parts: list[list[int]]
    t: Array
    price: Array


def merge_at_price(group: Group, weights: Array, budget: float) -> Merged | None:
    """Merge outputs, greedily, for as long as the price under `weights` stays within `budget`.

    Returns None where none are merged.
    """
    lumped = group.lumped
    # Every group of contexts counts a little: the bound holds for all adversaries.
    mixed = (1 - SHARE) * weights + SHARE / len(weights)
    parts = _greedily((mixed[:, None] * lumped.rows).T, budget)
    if len(parts) == len(group.parts):
        return None
    rows = np.stack([lumped.rows[:, part].sum(axis=1) for part in parts], axis=1)
    t = np.maximum(mixed @ lumped.rows, LEAST)
    t /= t.sum()
    image = np.array([t[part].sum() for part in parts])
    price = rel_entr(lumped.rows, t).sum(axis=1) - rel_entr(rows, image).sum(axis=1)
    names = tuple(lumped.outputs[part[0]] for part in parts)
    fine = group.shares.copy()
    for share, own in zip(t, group.parts, strict=True):
        fine[own] *= share / fine[own].sum()
    return Merged(
        replace(lumped, rows=rows, outputs=names),
        [sorted(y for place in part for y in group.parts[place]) for part in parts],
        fine,
        np.maximum(price, 0.0),
    )


def _greedily(joint: Array, budget: float) -> list[list[int]]:
    """Return a partition of the outputs, rows of `joint`, whose price is within the budget."""
    outputs = len(joint)
    spend(1e2 * joint.size * outputs)
    members = [[y] for y in range(outputs)]
    costs = np.full((outputs, outputs), np.inf)
    for y in range(outputs):
        costs[y, y + 1 :] = _merging(joint[y], joint[y + 1 :])
    spent = 0.0
    while outputs > 1:
        first, second = divmod(int(costs.argmin()), outputs)
        if not spent + costs[first, second] <= budget:
            break
        spent += float(costs[first, second])
        joint[first] += joint[second]
        members[first] += members[second]
        members[second] = []
        costs[second] = costs[:, second] = np.inf
        others = [y for y, part in enumerate(members) if part and y != first]
        for y, cost in zip(others, _merging(joint[first], joint[others]), strict=True):
            costs[min(first, y), max(first, y)] = cost
    return sorted(sorted(part) for part in members if part)


def _merging(one: Array, others: Array) -> Array:
    """Return what merging an output with each of others costs, in nats about the dataset."""

    def concave(joint: Array) -> Array:
        totals = joint.sum(axis=-1)
        return xlogy(joint, joint).sum(axis=-1) - xlogy(totals, totals)

    return np.maximum(concave(one) + concave(others) - concave(one + others), 0.0)
