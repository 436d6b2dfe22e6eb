"""`CellSearch`: branch and bound on posterior cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cvxleak.audit.search.cell_dual import CellDual, Cells
from cvxleak.audit.search.coarse import Coarse
from cvxleak.audit.search.means import first_multiplier
from cvxleak.audit.search.objective import INFORMATION, Objective
from cvxleak.audit.search.symmetries import Symmetry, gains, largest_multiplicities, moved_groups
from cvxleak.core.validation import Array
from cvxleak.exact.packing import pack
from cvxleak.model import Limits, Lumped
from cvxleak.solvers.best_first import BestFirst, Bounded

__all__ = ["CELLS_LIMIT", "CellLeaf", "CellSearch", "Split", "branch", "halved"]

Split = tuple[int, int, int, float]
"""(y, i, j, t): the cell of output y is cut at the point (1 - t) V_i + t V_j of its edge i-j; the
first child has the new point instead of V_j, the second instead of V_i."""

MARGIN = 0.1
"""A cut keeps at least this share of the edge on each side."""

STRICTLY = 1e-9
"""A symmetry has to gain this much everywhere in a region, so that rounding does not matter."""

STARTING_LAM, LIMITED_LAM = 1e-3, 1e-2
"""Least lam that a node starts from, the second under limits and without H(A): U has to be smooth
enough to go far from a parent's multipliers, above all where the parent's lam is 0."""

LARGEST_START = 0.1
"""Largest mu that a node starts from without H(A), in parts of the gain: no posterior reaches some
cells. Their multipliers grow from parent to child, and from large ones the steps are too short."""

NOWHERE: Split = (0, 0, 0, 0.0)

CELLS_LIMIT = 2500
"""Most multipliers of a cell; past it a Newton step takes many seconds."""

BATCH = 512
"""Most nodes that are bounded at once."""


@dataclass(frozen=True)
class CellLeaf:
    """Multipliers (lam, mu, kappa) of a node's dual, and the bound U that they prove.

    Multipliers of tangents follow those of limits in kappa; `points` is where they touch the gain,
    shape (W, k), where that is not known beforehand.

    Where lam = -1 - i the node is superfluous: symmetry i makes better ones of its adversaries.
    """

    bound: float
    lam: float
    mu: Array
    kappa: Array
    points: Array


def branch(cells: Cells, joint: Array, objective: Objective = INFORMATION) -> list[Split]:
    """Return for each node the split that removes most of its interpolation gap.

    The gap of output y at the relaxation's solution is s_y (interpolation of G - G(rho_y)). With
    theta the coordinates of s_{.,y} on the rays, cutting the edge i-j at the point that divides it
    as theta_i : theta_j removes theta_i G(V_i) + theta_j G(V_j) - (theta_i + theta_j) G(point) of
    it in both children.

    Of the maximum of few actions the cut is where two of them tie (`Objective.ties`). So all cells
    are cut along the same hyperplanes, and after finitely many cuts one action is best in each. A
    cut may remove nothing by itself: then it is one of an output with a gap.

    Parameters
    ----------
    cells : Cells
    joint : array, shape (B, k, |Y|)
        s_{a,y} of the relaxation's solution.
    """
    theta = np.maximum(np.einsum("byaj,bay->byj", cells.inverse, joint), 0.0)
    k = theta.shape[2]
    first, second = np.triu_indices(k, 1)
    pair = theta[..., first] + theta[..., second]
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(pair > 0, theta[..., second] / pair, 0.5)
    left, right = cells.vertices[..., first, :], cells.vertices[..., second, :]
    tie = objective.ties(cells.vertices, first, second)
    cut = np.where(np.isnan(tie), np.clip(t, MARGIN, 1 - MARGIN), tie)
    point = (1 - cut)[..., None] * left + cut[..., None] * right
    # What the cut gains at the posterior itself: interpolate on the side it lies on.
    chord = (1 - t) * cells.heights[..., first] + t * cells.heights[..., second]
    middle = objective.heights(point)
    inner = np.minimum(t / cut, (1 - t) / (1 - cut))
    ends = np.where(t <= cut, cells.heights[..., first], cells.heights[..., second])
    gain = pair * (chord - inner * middle - (1 - inner) * ends)
    # Among equal gains (none at all, say) prefer the longest edge.
    length = np.abs(left - right).sum(axis=-1)
    score = gain + 1e-9 * pair * length + 1e-15 * length
    if objective.actions is not None:
        missing = (theta * cells.heights).sum(axis=2) - objective.heights(joint.swapaxes(1, 2))
        score += np.where(np.isnan(tie), 0.0, 1e-3 * np.maximum(missing, 0.0)[..., None])
    best = score.reshape(len(score), -1).argmax(axis=1)
    y, edge = np.divmod(best, len(first))
    rows = np.arange(len(score))
    return [
        (int(a), int(first[e]), int(second[e]), float(c))
        for a, e, c in zip(y, edge, cut[rows, y, edge], strict=True)
    ]


def halved(
    regions: Array, mu: Array, splits: Sequence[Split], objective: Objective = INFORMATION
) -> tuple[Array, Array]:
    """Return the two parts of each node's region, and multipliers mu that bound them no worse.

    Both by side and node, shape (2, B, |Y|, k, k) and (2, B, |Y|, k).
    """
    node = np.arange(len(splits))
    y, i, j = np.array([split[:3] for split in splits], dtype=np.intp).reshape(-1, 3).T
    t = np.array([split[3] for split in splits])
    p, q = regions[node, y, i], regions[node, y, j]
    point = (1 - t)[:, None] * p + t[:, None] * q
    of_point, of_p, of_q = (objective.heights(law) for law in (point, p, q))
    gain = np.maximum((1 - t) * of_p + t * of_q - of_point, 0.0)
    # The parent's nu is feasible for the children, with the same bound: this is its mu.
    multiplier = (1 - t) * mu[node, y, i] + t * mu[node, y, j] + gain
    cells, multipliers = np.stack([regions] * 2), np.stack([mu] * 2)
    for side, replaced in enumerate((j, i)):
        cells[side, node, y, replaced] = point
        multipliers[side, node, y, replaced] = multiplier
    return cells, multipliers


class CellSearch(BestFirst[Array, CellLeaf, Split]):
    """Upper bounds on max I(w) subject to F(w) >= entropy_floor, by cells of the posteriors.

    A region is an array of the vertices of one cell per output, shape (|Y|, k, k). Of regions
    that `symmetries` of the problem move onto one another all but one are left out, if there are no
    limits. Outputs may have been merged at a price (`coarse`, with `lumped` what it came to).
    With `boxes`, the lower and the upper bounds of the rows, the bounds hold for all rows in them.
    Another `objective` than the leakage has neither symmetries nor merged outputs.
    """

    kind = "cells"

    def __init__(
        self,
        lumped: Lumped,
        entropy_floor: float,
        limits: Limits | None = None,
        symmetries: Sequence[Symmetry] = (),
        coarse: Coarse | None = None,
        boxes: tuple[Array, Array] | None = None,
        objective: Objective = INFORMATION,
    ) -> None:
        k, outputs = len(lumped.values), lumped.rows.shape[1]
        self.coarse = coarse
        self.symmetries = list(symmetries) if limits is None else []
        moves = [moved_groups(lumped, one) for one in self.symmetries]
        largest = largest_multiplicities(lumped, [move for move in moves if move is not None])
        self._gains = gains(self.symmetries, k, outputs)
        self.problem = replace(lumped, multiplicities=largest)
        price = None if coarse is None else coarse.price
        self.dual = CellDual(self.problem, entropy_floor, limits, price, boxes, objective)
        self.batch = min(BATCH, self.dual.batch)
        # U(0, 0) at the root, where every cell is the whole simplex: log k for the leakage.
        most, theta = objective.ceiling(k)
        super().__init__(
            np.broadcast_to(np.eye(k), (outputs, k, k)),
            CellLeaf(
                most + (0.0 if coarse is None else float(coarse.price.max())),
                0.0,
                np.zeros((outputs, k)),
                np.concatenate([np.zeros(len(self.dual.limits.bounds)), theta]),
                objective.points(k),
            ),
        )

    def encoded(self, outputs: Sequence[Sequence[int]], dtype: str) -> dict[str, Any]:
        """Return the tree as `cvxleak.audit.old_terms` reads it."""
        splits, leaves = self.preorder()
        law = {"output": pack(self.coarse.output)} if self.coarse else {}
        multipliers = [
            [
                leaf.lam,
                *(leaf.mu.ravel() * (leaf.lam >= 0)),
                *leaf.kappa,
                *leaf.points.ravel(),
            ]
            for leaf in leaves
        ]
        objective, values = self.dual.objective, self.dual.values
        tangents: dict[str, Any] = {}
        if objective.open_tangents:
            tangents["tangents"] = objective.number(values)
        if objective.told.form == "factor":
            tangents |= {"times": objective.times, "least": objective.least(values)[1]}
        edges = [split[:3] if split else (-1, -1, -1) for split in splits]
        return (
            law
            | tangents
            | self.header(outputs)
            | {
                "splits": pack(np.array(edges, dtype=np.int32), "<i4"),
                "cuts": pack(np.array([split[3] for split in splits if split], dtype=float)),
                "leaves": pack(np.array(multipliers), dtype),
            }
        )

    def header(self, outputs: Sequence[Sequence[int]]) -> dict[str, Any]:
        """Return which outputs are merged and which symmetries there are."""
        pairs = [[*one.values, *one.outputs] for one in self.symmetries]
        symmetries = {"symmetries": pack(np.array(pairs), "<i4")} if pairs else {}
        return symmetries | {"outputs": [list(group) for group in outputs]}

    def _bound(
        self,
        regions: Sequence[Array],
        leaves: Sequence[CellLeaf],
        threshold: float,
        accuracies: Sequence[float],
        stop: Callable[[], bool],
    ) -> list[Bounded[CellLeaf, Split]]:
        vertices = np.stack(regions)
        results: list[Bounded[CellLeaf, Split] | None] = [
            None
            if by is None
            else Bounded(replace(leaf, bound=-np.inf, lam=-1.0 - by), NOWHERE, None)
            for by, leaf in zip(self.superfluous(vertices), leaves, strict=True)
        ]
        kept = [place for place, result in enumerate(results) if result is None]
        if kept:
            bounded = self._solve(
                vertices[kept],
                [leaves[i] for i in kept],
                threshold,
                np.array(accuracies)[kept],
                stop,
            )
            for place, result in zip(kept, bounded, strict=True):
                results[place] = result
        return [result for result in results if result is not None]

    def superfluous(self, vertices: Array) -> list[int | None]:
        """Return for each node a symmetry that makes better adversaries of all of its own."""
        if not self.symmetries:
            return [None] * len(vertices)
        most = np.einsum("iya,byja->biyj", self._gains, vertices).max(axis=3).sum(axis=2)
        best = most.argmin(axis=1)
        return [
            int(i) if least < -STRICTLY else None
            for i, least in zip(best, most[np.arange(len(best)), best], strict=True)
        ]

    def _solve(
        self,
        vertices: Array,
        leaves: Sequence[CellLeaf],
        threshold: float,
        accuracy: Array,
        stop: Callable[[], bool],
    ) -> list[Bounded[CellLeaf, Split]]:
        objective = self.dual.objective
        root = self.nodes == 0
        limited = len(self.dual.limits.bounds) > 0 or not objective.share
        again = LIMITED_LAM if limited else STARTING_LAM
        least = first_multiplier(self.dual.surplus) if root else again
        lam = np.array([max(leaf.lam, least) for leaf in leaves])
        mu = np.maximum(np.stack([leaf.mu for leaf in leaves]), 1e-3 if root else 1e-6)
        if not objective.share:
            mu = np.minimum(mu, LARGEST_START * objective.size(self.dual.values))
        kappa = np.maximum(np.stack([leaf.kappa for leaf in leaves]), 1e-3 if root else 1e-6)
        points = np.stack([leaf.points for leaf in leaves])
        found, points = self.dual.solve_with_tangents(
            vertices, points, lam, mu, threshold, accuracy=accuracy, kappa=kappa, stop=stop
        )
        return [
            Bounded(CellLeaf(float(bound), float(lam), mu, kappa, own), split, weights)
            for bound, lam, mu, kappa, own, split, weights in zip(
                found.bound,
                found.lam,
                found.mu,
                found.kappa,
                points,
                branch(Cells.of(vertices, objective, points), found.joint, objective),
                found.weights,
                strict=True,
            )
        ]

    def _children(
        self, regions: Sequence[Array], leaves: Sequence[CellLeaf], splits: Sequence[Split]
    ) -> list[list[tuple[Array, CellLeaf]]]:
        if not splits:
            return []
        old = np.stack([leaf.mu for leaf in leaves])
        cells, mu = halved(np.stack(regions), old, splits, self.dual.objective)
        return [
            [(cells[side, place], replace(leaf, mu=mu[side, place])) for side in (0, 1)]
            for place, leaf in enumerate(leaves)
        ]
