"""`PosteriorCells`: branch and bound on cells of the posteriors, which proves the rule `cells`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cvxleak.audit.worst_adversary.dual import CellDual
from cvxleak.audit.worst_adversary.group import FLOATS, Group, Term
from cvxleak.audit.worst_adversary.interior_point import LEFT
from cvxleak.audit.worst_adversary.merged_outputs import Merged
from cvxleak.audit.worst_adversary.objective import INFORMATION, Objective
from cvxleak.core.validation import Array
from cvxleak.kernel.reading import pack
from cvxleak.solvers.best_first import BestFirst, Bounded

__all__ = ["PosteriorCells", "branch"]

Split = tuple[int, int, int, float]
"""(y, i, j, t): the cell of output y is cut at the point (1 - t) V_i + t V_j of its edge i-j; the
first child has the new point instead of V_j, the second instead of V_i."""


@dataclass(frozen=True)
class Multipliers:
    """The multipliers (lam, nu, kappa, theta) of a node, and the bound U that they prove.

    Better ones are sought from lam times `growth`: they are of another floor.
    """

    bound: float
    numbers: Array
    growth: float = 1.0


class PosteriorCells(BestFirst[Array, Multipliers, Split]):
    """Upper bounds on J + extra of a group's adversaries, by cells of the posteriors.

    A region is an array of the vertices of one cell per output, shape (|Y|, k, k). Outputs may be
    `merged` at a price. Of a factor about T it is the bound T + max(J, 0) / g, g below the gain.

    The bound is above `reach`, however many cells there are: what somebody gains from merged
    outputs, and the price.
    """

    def __init__(self, group: Group, merged: Merged | None = None, factor: float = 0.0) -> None:
        self.group, self.merged, self.factor = group, merged, factor
        self.reach = -np.inf
        lumped = group.lumped if merged is None else merged.lumped
        price = group.extra if merged is None else group.extra + merged.price
        self.objective = group.objective(factor)
        self.dual = CellDual(
            lumped, group.surplus, group.limits, price, group.boxes, self.objective
        )
        self.batch = self.dual.batch
        k, outputs = len(lumped.values), lumped.rows.shape[1]
        root = np.broadcast_to(np.eye(k), (outputs, k, k))
        self._least, self._floor = 1.0, -np.inf
        if group.told.form == "factor":
            self._least, self._floor = self.objective.least(k)[0], factor
        bound, numbers = self.dual.ceiling()
        super().__init__(root, Multipliers(self.factor + bound / self._least, numbers))

    @property
    def upper(self) -> float:
        """The largest bound of a leaf; of a factor, T at least."""
        return max(super().upper, self._floor)

    def upper_at(self, surplus: Array) -> Array:
        """Return what the same multipliers prove for each other surplus log|X| - b."""
        self.settle()
        leaves = self._leaves.values()
        bounds = np.array([leaf.bound for leaf in leaves])
        lam = np.array([leaf.numbers[0] for leaf in leaves]) / self._least
        moved = bounds + np.multiply.outer(surplus - self.group.surplus, lam)
        return np.maximum(moved.max(axis=-1), self._floor)

    def at(self, group: Group, growth: float) -> PosteriorCells:
        """Return the same tree about another entropy floor, whose own multiplier has grown.

        U falls by lam for each nat of the floor. The best lam of a leaf grows about like the
        floor's, and its other multipliers hardly change. Where the floors are too far from each
        other for that it starts from what holds without any.
        """
        other = PosteriorCells(group, self.merged, self.factor)
        first = other._leaves[0]
        other.dual.tangents = self.dual.tangents
        change = (group.surplus - self.group.surplus) / self._least

        def moved(leaf: Multipliers) -> Multipliers:
            bound = leaf.bound + change * float(leaf.numbers[0])
            found = replace(leaf, bound=bound, growth=growth * leaf.growth)
            return min(found, first, key=lambda one: one.bound)

        other.adopt(self, moved)
        return other

    @property
    def proof_size(self) -> float:
        """About how many probabilities in balls take as long as the proof."""
        return self.leaves * self.dual.columns.size / FLOATS

    def term(self, dtype: str = "<f8") -> Term:
        """Return the bound as a term about the group's view."""
        view, dual = self.group.view, self.dual
        splits, leaves = self.levels()
        numbers = np.zeros((len(leaves), dual.width))
        for row, leaf in zip(numbers, leaves, strict=True):
            row[: len(leaf.numbers)] = leaf.numbers
        start, end = 1 + dual.pairs, 1 + dual.pairs + len(view.limits)
        of: Term = {"rule": "chord", "nu": _columns(1, start)}
        if len(dual.tangents):
            tangents, numbers = self._tangents(numbers, end)
            of = {"rule": "prior", **tangents, "of": of}
        cover: Term = {
            "rule": "cells",
            "nodes": pack([split[:3] if split else (-1, -1, -1) for split in splits], "<i4"),
            "cuts": pack([split[3] for split in splits if split], "<f8"),
            "leaves": pack(numbers, dtype),
        }
        limits = _columns(start, end)
        cover["of"] = {"rule": "close", "multiplier": {"leaf": 0}, "limits": limits, "of": of}
        if view.times is None:
            return self._factor(cover)
        if self.merged is None:
            return self.group.priced(cover)
        t = self.merged.t.tolist()
        return {"rule": "price", "parts": self.merged.parts, "t": t, "of": cover}

    def _tangents(self, numbers: Array, start: int) -> tuple[Term, Array]:
        """Return what the rule `prior` takes, and the numbers of the leaves with it."""
        names, linear = self.dual.tangents, self.group.view.gain.linear
        if not linear:
            theta = _columns(start, start + len(names))
            return {"theta": theta, "points": names.tolist()}, numbers
        table = np.array(linear, dtype=float)
        which = np.abs(table - names[:, None]).max(axis=2).argmin(axis=1)
        theta = np.zeros((len(numbers), len(table)))
        np.add.at(theta.T, which, numbers[:, start:].T)
        numbers = np.column_stack([numbers[:, :start], theta])
        return {"theta": _columns(start, numbers.shape[1])}, numbers

    def _factor(self, cover: Term) -> Term:
        """Return the bound on a factor."""
        k, linear = self.group.view.k, self.group.view.gain.linear
        theta = self.objective.least(k)[1]
        if len(linear) > len(theta):  # the mean of all actions ignores the order of the values
            theta = np.full(len(linear), 1 / len(linear))
        points = {} if linear else {"points": [[f"1/{k}"] * k]}
        return {
            "rule": "factor",
            "times": self.factor,
            "theta": theta.tolist(),
            **points,
            "of": cover,
        }

    def _bound(
        self,
        regions: Sequence[Array],
        leaves: Sequence[Multipliers],
        threshold: float,
        accuracies: Sequence[float],
        stop: Callable[[], bool],
    ) -> list[Bounded[Multipliers, Split]]:
        vertices, numbers = np.stack(regions), np.zeros((len(leaves), self.dual.width))
        for row, leaf in zip(numbers, leaves, strict=True):
            row[: len(leaf.numbers)] = leaf.numbers
            row[0] *= leaf.growth
        if not self._splits:  # the whole region
            numbers[0] = self.dual.first()
        threshold, accuracy = (threshold - self.factor) * self._least, np.array(accuracies)
        found = self.dual.solve(vertices, numbers, threshold, accuracy * self._least, stop=stop)
        bounds = self.factor + found.bound / self._least
        splits = branch(vertices, found.rays, self.objective)
        return [
            Bounded(Multipliers(float(bound), numbers), split, weights)
            for bound, numbers, split, weights in zip(
                bounds, found.numbers, splits, found.weights, strict=True
            )
        ]

    def _children(
        self, regions: Sequence[Array], leaves: Sequence[Multipliers], splits: Sequence[Split]
    ) -> list[list[tuple[Array, Multipliers]]]:
        return [
            [(cell, leaf) for cell in halved(region, split)]
            for region, leaf, split in zip(regions, leaves, splits, strict=True)
        ]


def halved(region: Array, split: Split) -> tuple[Array, Array]:
    """Return the two parts of a region; its nu bounds them no worse."""
    y, i, j, t = split
    parts = region.copy(), region.copy()
    for part, replaced in zip(parts, (j, i), strict=True):
        part[y, replaced] = (1 - t) * region[y, i] + t * region[y, j]
    return parts


def branch(vertices: Array, rays: Array, objective: Objective = INFORMATION) -> list[Split]:
    """Return for each node the split that removes most of its interpolation gap.

    With x_{y,j} the coordinates of s_{.,y} on the rays through the vertices, shape (B, |Y|, k), the
    gap of output y at the relaxation's solution is sum_j x_{y,j} G(V_{y,j}) - G(s_{.,y}). Cutting
    the edge i-j at the point that divides it as x_i : x_j removes x_i G(V_i) + x_j G(V_j) -
    (x_i + x_j) G(point) of it in both children.

    Of the maximum of few actions the cut is where two of them tie (`Objective.ties`). So all cells
    are cut along the same hyperplanes, and after finitely many cuts one action is best in each. A
    cut may remove nothing by itself: then it is one of an output with a gap.
    """
    heights = objective.heights(vertices)
    first, second = np.triu_indices(vertices.shape[-1], 1)
    pair = rays[..., first] + rays[..., second]
    t = np.where(pair > 0, rays[..., second] / np.where(pair > 0, pair, 1.0), 0.5)
    left, right = vertices[..., first, :], vertices[..., second, :]
    tie = objective.ties(vertices, first, second)
    cut = np.where(np.isnan(tie), np.clip(t, LEFT, 1 - LEFT), tie)
    point = (1 - cut)[..., None] * left + cut[..., None] * right
    # What the cut gains at the posterior itself: interpolate on the side it lies on.
    chord = (1 - t) * heights[..., first] + t * heights[..., second]
    inner = np.minimum(t / cut, (1 - t) / (1 - cut))
    ends = np.where(t <= cut, heights[..., first], heights[..., second])
    gain = pair * (chord - inner * objective.heights(point) - (1 - inner) * ends)
    # Among equal gains (none at all, say) prefer the longest edge.
    length = np.abs(left - right).sum(axis=-1)
    score = gain + 1e-9 * pair * length + 1e-15 * length
    if objective.actions is not None:
        joint = (rays[..., None] * vertices).sum(axis=2)
        gap = (rays * heights).sum(axis=2) - objective.heights(joint)
        score += np.where(np.isnan(tie), 0.0, 1e-3 * np.maximum(gap, 0.0)[..., None])
    best = score.reshape(len(score), -1).argmax(axis=1)
    y, edge = np.divmod(best, len(first))
    columns = (y, first[edge], second[edge], cut[np.arange(len(score)), y, edge])
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _columns(start: int, stop: int) -> Term | list[int]:
    return {"leaf": [start, stop]} if stop > start else []
