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

from cvxleak.core.validation import Array
from cvxleak.model import Lumped

__all__ = ["Coarse", "coarsen"]

OUTPUT_LIMIT = 300
"""Most outputs for which all pairs are compared."""

SHARE = 0.25
"""Share of the uniform distribution on the groups in the mixture whose price is kept down."""


@dataclass(frozen=True)
class Coarse:
    """A problem with outputs merged, and the price.

    Attributes
    ----------
    lumped : Lumped
        With one output for each part of `partition`.
    partition : list of list of int
        Places of the outputs that are merged.
    output : array, shape (|Y|,)
        The distribution t.
    price : array, shape (N,)
        e_{a,g}.
    """

    lumped: Lumped
    partition: list[list[int]]
    output: Array
    price: Array


def coarsen(lumped: Lumped, weights: Array, budget: float) -> Coarse | None:
    """Merge outputs, greedily, for as long as the price under `weights` stays within `budget`.

    Returns None where the outputs are too many to compare, or none are merged.
    """
    outputs = lumped.rows.shape[1]
    if outputs > OUTPUT_LIMIT:
        return None
    fine = lumped.rows / lumped.rows.sum(axis=1, keepdims=True)
    # Every group of contexts counts a little: the bound holds for all adversaries.
    mixed = (1 - SHARE) * weights + SHARE / len(weights)
    joint = (mixed[:, None] * fine).T  # outputs x groups
    members = [[y] for y in range(outputs)]
    costs = np.full((outputs, outputs), np.inf)
    for y in range(outputs):
        costs[y, y + 1 :] = _merging(joint[y], joint[y + 1 :])
    spent = 0.0
    while True:
        first, second = divmod(int(costs.argmin()), outputs)
        if not spent + costs[first, second] <= budget:
            break
        spent += float(costs[first, second])
        joint[first] += joint[second]
        members[first] += members[second]
        members[second] = []
        costs[second] = costs[:, second] = np.inf
        others = [y for y, part in enumerate(members) if part and y != first]
        new = _merging(joint[first], joint[others])
        for y, cost in zip(others, new, strict=True):
            costs[min(first, y), max(first, y)] = cost
    partition = sorted(sorted(part) for part in members if part)
    if len(partition) == outputs:
        return None
    rows = np.stack([fine[:, part].sum(axis=1) for part in partition], axis=1)
    t = np.maximum(mixed @ fine, 1e-200)
    t /= t.sum()
    image = np.array([t[part].sum() for part in partition])
    price = rel_entr(fine, t).sum(axis=1) - rel_entr(rows, image).sum(axis=1)
    names = tuple(lumped.outputs[part[0]] for part in partition)
    merged = replace(lumped, rows=rows, outputs=names)
    return Coarse(merged, partition, t, np.maximum(price, 0.0))


def _merging(one: Array, others: Array) -> Array:
    """Return what merging an output with each of others costs, in nats about the dataset."""

    def concave(joint: Array) -> Array:
        totals = joint.sum(axis=-1)
        return xlogy(joint, joint).sum(axis=-1) - xlogy(totals, totals)

    return np.maximum(concave(one) + concave(others) - concave(one + others), 0.0)
