"""The time-sharing bound from multipliers: one small problem for each value.

For lam > 0 and any distribution t of the outputs, with r_a the output's distribution given value a,

    I(A;Y) <= sum_a pi_a D(r_a || t) <= lam log sum_a exp(phi_a / lam) - lam b,
    phi_a = max_v D(v R_a || t) + lam (H(v) + <v, log m_a>).

phi_a is bounded for each value in one of these ways:

- by the tangent at a distribution v0, for lam >= eta_a (`cvxleak.proofs.bounds.tangents`);
- by a tree of intervals of the r_{a,y}, with a nu at each leaf (`cvxleak.audit.search.sharing`
  derives the bound);
- by a tree of boxes of the distribution v (`cvxleak.proofs.bounds.law_boxes`), or of the masses of
  blocks of contexts (`cvxleak.proofs.bounds.law_blocks`).

The cuts of a tree are replayed from the root. There each interval is from the least to the largest
entry of the rows, and from 0 to 1 for v and masses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from flint import arb, arb_mat, fmpz

from cvxleak.core.errors import CertificateError
from cvxleak.core.validation import Array
from cvxleak.exact import balls, reading
from cvxleak.exact.packing import unpack
from cvxleak.model import Lumped
from cvxleak.proofs.bounds.law_blocks import block_bounds
from cvxleak.proofs.bounds.law_boxes import GRID, LEAST_ENTRY, box_bounds
from cvxleak.proofs.bounds.outputs import (
    Ball,
    Matrix,
    merged_floats,
    merged_rows,
    rows_by_value,
)
from cvxleak.proofs.bounds.tangents import PAIRS_LIMIT, contraction, heights
from cvxleak.proofs.bounds.trees import replayed, unpack_tree

__all__ = ["sharing_bound"]

GROUPS_LIMIT = 2**13
"""Most groups of a value in boxes, so that their endpoints are added up without rounding."""


BALLS_LIMIT = 10**6
"""Most probabilities whose tangents are computed in balls."""


def sharing_bound(lumped: Lumped, floor: float, proof: Mapping[str, Any]) -> float:
    """Return a float above the leakage of a lumped problem under an entropy floor."""
    reading.parts(proof, {"outputs", "multiplier", "output", "values"}, "the time-sharing bound")
    lam = balls.number(reading.number(proof["multiplier"], "the multiplier"))
    if not lam > 0:
        raise CertificateError("the multiplier of the time-sharing bound is not positive")
    floats, slack = merged_floats(lumped, proof["outputs"])
    t = unpack(proof["output"], (len(proof["outputs"]),)).astype(float)
    if not (t > 0).all():
        raise CertificateError("the output distribution does not fit the lumped problem")
    logs = [arb(fmpz(m)).log() for m in lumped.multiplicities]
    parts = proof["values"]
    if not isinstance(parts, list) or len(parts) != len(lumped.values):
        raise CertificateError("the time-sharing bound does not fit the lumped problem")
    # Floats need an allowance for rounding, so balls are used where they are fast enough.
    small = lumped.rows.size <= BALLS_LIMIT
    exact = [small or not isinstance(part, Mapping) or "law" not in part for part in parts]
    rows: list[Matrix] = [[] for _ in parts]
    if any(exact):
        whole, slack = merged_rows(lumped, proof["outputs"])
        rows = rows_by_value(lumped, whole)
    phi = []
    for a, part in enumerate(parts):
        own = lumped.value_index == a
        own_logs = [log for log, mine in zip(logs, own, strict=True) if mine]
        if not exact[a]:
            phi.append(_by_tangent(part, floats[own], own_logs, lam, t))
            continue
        value = _Value(rows[a], own_logs, lam, t)
        keys = part if isinstance(part, Mapping) else {}
        ways = {"law": value.by_tangent, "blocks": value.by_blocks, "groups": value.by_boxes}
        way = next((ways[key] for key in ways if key in keys), value.by_tree)
        phi.append(way(part))
    total = balls.soft_maximum(phi, lam) - lam * balls.number(floor)
    return balls.round_up(total + slack)


def _by_tangent(
    part: Mapping[str, Any], rows: Array, logs: list[Ball], lam: Ball, t: Array
) -> Ball:
    """Return a bound on phi_a by the tangent at a distribution of the contexts."""
    reading.parts(part, {"law"}, "the bound of a value")
    weights = unpack(part["law"], (len(rows),)).astype(float)
    eta = arb(contraction(rows))
    if not lam >= eta:
        raise CertificateError("a tangent needs a larger multiplier")
    scale = (balls.total(map(arb, t.tolist())) / balls.total(map(arb, weights.tolist()))).log()
    terms = [
        arb(height) + scale + eta * (m - v.log())
        for height, m, v in zip(
            heights(rows, t, weights).tolist(), logs, balls.normalized(weights), strict=True
        )
    ]
    return balls.soft_maximum(terms, lam - eta, logs)


Ends = tuple[float | None, float | None]
"""Endpoints of an interval; None where it was never cut."""


Box = tuple[list[float], list[float]]


class _Value:
    """The inner maximum of one value, in balls."""

    def __init__(self, rows: Matrix, logs: list[Ball], lam: Ball, t: Array) -> None:
        self._rows, self._matrix, self._logs = rows, arb_mat(rows), logs
        self._lam = lam
        self._logs_t = [share.log() for share in balls.normalized(t)]
        self._heights: dict[tuple[int, float], Ball] = {}

    def by_tangent(self, part: Mapping[str, Any]) -> Ball:
        """Return a bound on phi_a by the tangent at a distribution of the contexts."""
        reading.parts(part, {"law"}, "the bound of a value")
        weights = unpack(part["law"], (len(self._rows),))
        eta = self._contraction()
        left = self._lam - eta
        if not left >= 0:
            raise CertificateError("a tangent needs a larger multiplier")
        if not (weights > 0).all():
            raise CertificateError(
                "the distribution of a value's contexts does not fit the lumped problem"
            )
        law = balls.normalized(weights)
        image = arb_mat([law]) * self._matrix
        slopes = []
        for y, log_t in enumerate(self._logs_t):
            mean = image[0, y]
            if not (mean > 0 or mean == 0):
                raise CertificateError(
                    "a distribution of a value's contexts has a probability that is too small"
                )
            # An output that no row of the value has does not count.
            slopes.append(mean.log() - log_t if mean > 0 else arb(0))
        column = self._matrix * arb_mat([[slope] for slope in slopes])
        terms = [
            column[g, 0] + eta * (m - v.log())
            for g, (v, m) in enumerate(zip(law, self._logs, strict=True))
        ]
        return balls.soft_maximum(terms, left, self._logs)

    def _contraction(self) -> Ball:
        """Return eta."""
        if len(self._rows) ** 2 > PAIRS_LIMIT:
            return arb(1)
        roots = arb_mat([[x.sqrt() for x in row] for row in self._rows])
        least = balls.least((roots * roots.transpose()).entries())
        eta = 1 - least * least
        # Where rows nearly exclude each other, the ball extends beyond 1; eta does not.
        return eta if eta < 1 else arb(1)

    def by_tree(self, part: Mapping[str, Any]) -> Ball:
        """Return a bound on phi_a by a tree of intervals of the output's probabilities."""
        reading.parts(part, {"nodes", "cuts", "leaves"}, "the bound of a value")
        outputs = len(self._logs_t)
        tree = unpack_tree(part, "nodes", (), outputs, outputs * len(self._rows))
        nodes, cuts, _ = tree
        if (nodes < -1).any() or (nodes >= outputs).any():
            raise CertificateError("the nodes of a value's tree are malformed")
        if not ((cuts > 0) & (cuts < 1)).all():
            raise CertificateError("the cuts of a value's tree are malformed")

        def cut(ends: list[Ends], y: int, place: float) -> tuple[list[Ends], list[Ends]]:
            low, high = ends[y]
            return (
                [*ends[:y], (low, place), *ends[y + 1 :]],
                [*ends[:y], (place, high), *ends[y + 1 :]],
            )

        limits = [
            (balls.least(column), balls.largest(column)) for column in zip(*self._rows, strict=True)
        ]
        root: list[Ends] = [(None, None)] * outputs
        worst = balls.largest(
            self._leaf(ends, limits, nu) for ends, nu in replayed(root, tree, cut)
        )
        if not worst.is_finite():
            raise CertificateError("the leaves of a value's tree do not bound it")
        return worst

    def by_boxes(self, part: Mapping[str, Any]) -> Ball:
        """Return a bound on phi_a by a tree of boxes of the distribution of the contexts."""
        reading.parts(part, {"groups", "cuts", "leaves"}, "the bound of a value")
        size = len(self._rows)
        tree = unpack_tree(part, "groups", (), 1 + size, size * len(self._logs_t))
        if (tree[2] < 0).any():
            raise CertificateError("a leaf of a value's tree is negative")
        low, high = self._boxes(tree, size)
        bounds = box_bounds(*self._floats(), low, high, tree[2].astype(float))
        if np.isnan(bounds).any():
            raise CertificateError("the leaves of a value's tree do not bound it")
        return arb(float(bounds.max()))

    def by_blocks(self, part: Mapping[str, Any]) -> Ball:
        """Return a bound on phi_a by a tree of boxes of the masses of blocks of contexts."""
        reading.parts(part, {"blocks", "nodes", "cuts", "leaves"}, "the bound of a value")
        size = len(self._rows)
        blocks = reading.groups(part["blocks"], "the blocks of a value")
        if sorted(g for block in blocks for g in block) != list(range(size)) or [] in blocks:
            raise CertificateError("the blocks of a value do not fit the lumped problem")
        if not self._lam <= 1:
            raise CertificateError("blocks need a multiplier that is at most 1")
        tree = unpack_tree(part, "nodes", (), size, size * len(self._logs_t))
        if ((tree[2] < 0) | (tree[2] > 1)).any():
            raise CertificateError("a leaf of a value's tree has weights outside of [0, 1]")
        low, high = self._boxes(tree, len(blocks))
        bounds = block_bounds(*self._floats(), blocks, low, high, tree[2].astype(float))
        return arb(float(bounds.max()))

    def _boxes(self, tree: Any, size: int) -> tuple[Array, Array]:
        """Return the lower and the upper bounds of the leaves' boxes."""
        if size > GROUPS_LIMIT:
            raise CertificateError(f"boxes can have at most {GROUPS_LIMIT} groups; found {size}")
        nodes, cuts, _ = tree
        if (nodes < -1).any() or (nodes >= size).any():
            raise CertificateError("the nodes of a value's tree are malformed")
        if not ((cuts > 0) & (cuts < 1) & (cuts % GRID == 0)).all():
            raise CertificateError("the cuts of a value's tree are malformed")

        def cut(box: Box, g: int, place: float) -> tuple[Box, Box]:
            low, high = box
            inside = min(max(place, low[g]), high[g])
            return (
                (low, [*high[:g], inside, *high[g + 1 :]]),
                ([*low[:g], inside, *low[g + 1 :]], high),
            )

        boxes = [box for box, _ in replayed(([0.0] * size, [1.0] * size), tree, cut)]
        low, high = (np.array([box[end] for box in boxes]) for end in (0, 1))
        return low, high

    def _floats(self) -> tuple[Array, Array, Array, float]:
        """Return the rows, log m, log t and lam as boxes take them."""
        rows = np.array([[float(x.mid()) for x in row] for row in self._rows])
        zero = [[x == 0 for x in row] for row in self._rows]
        if not ((rows >= LEAST_ENTRY) | np.array(zero)).all():
            raise CertificateError("a probability is too small for boxes")
        logs, logs_t = (
            np.array([float(x.mid()) for x in some]) for some in (self._logs, self._logs_t)
        )
        return rows, logs, logs_t, float(self._lam.mid())

    def _leaf(
        self,
        ends: list[Ends],
        limits: list[tuple[Ball, Ball]],
        nu: list[float],
    ) -> Ball:
        column = self._matrix * arb_mat([[x] for x in nu])
        total = balls.soft_maximum(column.entries(), self._lam, self._logs)
        for y, (interval, slope) in enumerate(zip(ends, nu, strict=True)):
            heights = []
            for cut, limit in zip(interval, limits[y], strict=True):
                r = limit if cut is None else arb(cut)
                heights.append(self._height(y, cut, r) - slope * r)
            total += heights[0].max(heights[1])
        return total

    def _height(self, y: int, cut: float | None, r: Ball) -> Ball:
        """Return r log(r / t_y)."""
        if cut is None:
            return balls.x_log_x(r) - r * self._logs_t[y]
        if (y, cut) not in self._heights:
            self._heights[y, cut] = balls.x_log_x(r) - r * self._logs_t[y]
        return self._heights[y, cut]
