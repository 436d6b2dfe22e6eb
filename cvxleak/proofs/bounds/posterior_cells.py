"""A tree of posterior cells: the bounds of its leaves, and why the leaves cover all posteriors.

Each leaf restricts the posterior of A given output y to a simplex with vertices V_y, and its
multipliers (lam, mu) prove U(lam, mu) for it (`cvxleak.audit.search.cell_dual` derives U, for any
gain); any multipliers >= 0 are valid. The splits are replayed from the root, whose cells are whole
simplices, so the leaves cover every posterior. A leaf with lam = -1 - i is one that symmetry i
makes superfluous (`cvxleak.proofs.bounds.symmetry`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from flint import arb, arb_mat, fmpz
from numpy.typing import NDArray

from cvxleak.core.errors import CertificateError
from cvxleak.exact import balls, reading
from cvxleak.exact.limits import ENTRY, charge
from cvxleak.exact.outward import SMALLEST, Array
from cvxleak.exact.packing import declared_shape, unpack
from cvxleak.model import Gain, Limits, Lumped
from cvxleak.proofs.bounds.cell_floats import leaf_bounds
from cvxleak.proofs.bounds.channel_sets import support_above
from cvxleak.proofs.bounds.gains import LEAKAGE, GainForm, Tangents, height
from cvxleak.proofs.bounds.outputs import Ball, Matrix, coarse_rows, merged_rows, rows_by_value
from cvxleak.proofs.bounds.symmetry import Symmetry, gains, largest_multiplicities, moved_groups
from cvxleak.proofs.bounds.trees import replayed, unpack_tree

__all__ = ["Cell", "CellProof", "cells_bound"]

SYMMETRY_LIMIT = 10**8
"""Most probabilities that symmetries may have to be compared with."""


ALLOWANCE = 1e-11
"""Largest loss from floats, in nats; leaves that would lose more are proved in balls."""

CHUNK = 1 << 19
"""Approximate size of the largest arrays that are worked on at once."""


class Cell:
    """One posterior cell: its vertices in floats and in balls, and nu as an affine function of mu.

    `floats` are exact up to a factor 1 +- 4 u depth (`cvxleak.proofs.bounds.cell_floats`); the
    depth of a vertex is the number of splits that made it, or infinite where something might have
    underflowed.
    """

    def __init__(
        self,
        floats: list[list[float]],
        depths: list[float],
        origin: tuple[Cell, int, int, float, int] | None = None,
        gain: Gain = LEAKAGE.gain,
    ) -> None:
        self.floats, self.depths, self._origin = floats, depths, origin
        self._gain = gain
        self._vertices: Matrix | None = None
        self._inverse: Any = None

    @classmethod
    def whole(cls, k: int, gain: Gain = LEAKAGE.gain) -> Cell:
        """Return the whole simplex."""
        corners = [[float(i == j) for j in range(k)] for i in range(k)]
        return cls(corners, [0.0] * k, gain=gain)

    @property
    def vertices(self) -> Matrix:
        """The vertices in balls, computed on demand, because floats are usually enough."""
        waiting, cell = [], self
        while cell._vertices is None and cell._origin is not None:
            waiting.append(cell)
            cell = cell._origin[0]
        vertices = cell._vertices
        if vertices is None:
            vertices = cell._vertices = [[arb(x) for x in row] for row in cell.floats]
        for cell in reversed(waiting):
            if cell._origin is not None:
                _, i, j, t, replaced = cell._origin
                share, ends = arb(t), zip(vertices[i], vertices[j], strict=True)
                point = [(1 - share) * p + share * q for p, q in ends]
                vertices = [*vertices[:replaced], point, *vertices[replaced + 1 :]]
                cell._vertices, cell._origin = vertices, None
        return vertices

    def split(self, i: int, j: int, t: float) -> tuple[Cell, Cell]:
        """Return the two parts of a split at t of the edge from vertex i to vertex j."""
        if not (0 < t < 1 and i != j):
            raise CertificateError(f"a split at {t!r} of the edge {i}-{j} covers nothing")
        first, second, s = self.floats[i], self.floats[j], 1 - t
        point = [s * p + t * q for p, q in zip(first, second, strict=True)]
        depth = max(self.depths[i], self.depths[j]) + 1
        for p, q, x in zip(first, second, point, strict=True):
            if x < SMALLEST and (p > 0 or q > 0):
                depth = math.inf
        parts = []
        for replaced in (j, i):
            floats, depths = list(self.floats), list(self.depths)
            floats[replaced], depths[replaced] = point, depth
            parts.append(Cell(floats, depths, (self, i, j, t, replaced), self._gain))
        return parts[0], parts[1]

    def nu(self, mu: Sequence[float]) -> list[Ball]:
        """Return V^{-1} (mu + G(V)), where G = -H for the leakage."""
        if self._inverse is None:
            self._inverse = _inverse(self.vertices)
            heights = [height(self._gain, vertex) for vertex in self.vertices]
            # V^{-1} G(V), the same for all multipliers.
            self._offset = []
            for row in self._inverse:
                total = arb(0)
                for x, h in zip(row, heights, strict=True):
                    total += x * h
                self._offset.append(total)
        result = []
        for row, total in zip(self._inverse, self._offset, strict=True):
            for x, m in zip(row, mu, strict=True):
                if m:
                    total += x * m
            result.append(total)
        return result


def _inverse(vertices: Matrix) -> Matrix:
    if len(vertices) == 2:
        (p, q), (r, s) = vertices
        det = p * s - q * r
        if det.contains(0):
            raise CertificateError("a cell is degenerate")
        return [[s / det, -q / det], [-r / det, p / det]]
    try:
        inverse = arb_mat(vertices).inv()
    except ZeroDivisionError as error:
        raise CertificateError("a cell is degenerate") from error
    return [[inverse[i, j] for j in range(len(vertices))] for i in range(len(vertices))]


class CellProof:
    """The bounds that multipliers prove about cells of one lumped problem, at any entropy floor.

    `header` holds the parts of a certificate's entry that say which outputs are merged, and which
    symmetries there are. With `boxes`, the lower and the upper bounds on each row's probabilities,
    the bounds are valid for all rows between them, and `lumped` only says which rows there are.
    For a factor, `times` is the t for which U bounds sum_y s_y G(rho_y) - t G(pi).
    """

    def __init__(
        self,
        lumped: Lumped,
        header: Mapping[str, Any],
        limits: Limits | None = None,
        boxes: tuple[Array, Array] | None = None,
        told: GainForm = LEAKAGE,
    ) -> None:
        limits = Limits.none(lumped) if limits is None else limits
        if not told.is_leakage and any(len(group) != 1 for group in header["outputs"]):
            raise CertificateError(
                "merged outputs can be used for the leakage in nats only, not for other gains"
            )
        if "output" in header:
            law = unpack(header["output"], (lumped.rows.shape[1],)).tolist()
            rows, charges = coarse_rows(lumped, header["outputs"], law)
            self.slack = arb(0)
        else:
            rows, self.slack = merged_rows(lumped, header["outputs"])
            charges = [arb(0)] * len(rows)
        self._symmetries, multiplicities = _symmetries(lumped, header, limits)
        self.symmetries = len(self._symmetries)
        self._logs: list[list[Ball]] = [[] for _ in lumped.values]
        for a, multiplicity in zip(lumped.value_index, multiplicities, strict=True):
            self._logs[int(a)].append(arb(fmpz(multiplicity)).log())
        self.values, self.outputs = len(lumped.values), len(header["outputs"])
        # The loss from merging and the limits are columns of numbers, like an output: with 1 and
        # -kappa in place of nu.
        prices = [[[-arb(x)] for x in row] for row in limits.coefficients.tolist()]
        extra = [rows_by_value(lumped, column) for column in ([[x] for x in charges], *prices)]
        parts, by_charge = rows_by_value(lumped, rows), extra[0]
        self._columns = [
            arb_mat([[*row, *(part[a][g][0] for part in extra)] for g, row in enumerate(own)])
            for a, own in enumerate(parts)
        ]
        # Balls of `balls.PRECISION` bits are narrow enough to be treated as points here.
        self._floats = (
            [np.array([[float(x.mid()) for x in row] for row in own]) for own in parts],
            [np.array([float(x.mid()) for x in own]) for own in self._logs],
            [np.array([float(x.mid()) for (x,) in own]) for own in by_charge],
        )
        widest = max(len(own) for own in parts)
        size = len(header["outputs"]) * (widest + 3 * len(lumped.values) ** 2)
        self.chunk = max(1, CHUNK // size)
        self._boxes = None if boxes is None else _boxes(lumped, header, limits, boxes)
        self._bounds, self._shares = limits.bounds.tolist(), limits.shares.tolist()
        self._told, self._tangents = told, Tangents(told, header, self.values)
        self.times = _times(header, told)
        self.width = 1 + self.outputs * self.values + len(self._bounds) + self._tangents.width

    def root(self) -> list[Cell]:
        """Return one cell per output, each the whole simplex."""
        return [Cell.whole(self.values, self._told.gain)] * self.outputs

    def value(self, cells: Sequence[Cell], leaf: Sequence[float]) -> Ball:
        """Return U(lam, mu, kappa) + lam b, which is valid for all floors b."""
        k = self.values
        nu = [cell.nu(leaf[1 + o * k : 1 + (o + 1) * k]) for o, cell in enumerate(cells)]
        after = leaf[1 + self.outputs * k :]
        kappa = [arb(x) for x in after[: len(self._bounds)]]
        share = arb(int(self._told.is_leakage))
        shift = [-self.times * x for x in self._tangents.mixed(after[len(self._bounds) :])]
        lam = arb(leaf[0])
        for x, t in zip(kappa, self._shares, strict=True):
            lam += x * t
        if self._boxes is not None:
            value = _robust_value(self._boxes, self._logs, nu, kappa, lam, share, shift)
        else:
            prices = [[arb(1)] * k, *([x] * k for x in kappa)]
            value = _dual_value(self._columns, self._logs, [*nu, *prices], lam, share, shift)
        for x, d in zip(kappa, self._bounds, strict=True):
            value += x * d
        return value

    def values_of(
        self, cells: Sequence[Sequence[Cell]], leaves: Sequence[Sequence[float]]
    ) -> list[Ball]:
        """Return the bounds of many leaves: from floats if they lose little, or else `value`.

        Floats use a nu close to that of `value`. Its bound is valid by itself, and can be smaller.
        """
        if len(self._bounds) or self._boxes is not None or not self._told.is_leakage:
            return [self.value(own, leaf) for own, leaf in zip(cells, leaves, strict=True)]
        # Cells are identified by their ids: `cells` keeps them alive.
        known: dict[int, int] = {}
        different: list[Cell] = []
        places = np.empty((len(cells), self.outputs), dtype=np.intp)
        for row, own in enumerate(cells):
            for y, cell in enumerate(own):
                place = known.setdefault(id(cell), len(different))
                if place == len(different):
                    different.append(cell)
                places[row, y] = place
        return self.values_at(
            np.array([cell.floats for cell in different]),
            np.array([cell.depths for cell in different]),
            places,
            np.array(leaves, dtype=float).reshape(len(cells), self.width),
            cells.__getitem__,
        )

    def values_at(
        self,
        vertices: Array,
        depths: Array,
        places: NDArray[np.intp],
        leaves: Array,
        cells: Callable[[int], Sequence[Cell]],
    ) -> list[Ball]:
        """Return the same as `values_of`, from arrays (without limits).

        `vertices` and `depths` are those of all cells. `places` gives the cell of each output for
        each leaf, and `cells` returns the cells of a leaf for a proof in balls.
        """
        found: list[Ball] = []
        for start in range(0, len(leaves), self.chunk):
            part = leaves[start : start + self.chunk]
            chosen, own = np.unique(places[start : start + self.chunk], return_inverse=True)
            values, allowances = leaf_bounds(
                *self._floats,
                vertices[chosen],
                depths[chosen],
                own.reshape(len(part), self.outputs),
                part,
            )
            sure = np.isfinite(values) & (allowances <= ALLOWANCE)
            for row, (value, good) in enumerate(zip(values.tolist(), sure.tolist(), strict=True)):
                if good:
                    found.append(arb(value))
                else:
                    found.append(self.value(cells(start + row), part[row].tolist()))
        return found

    def check_superfluous(self, cells: Sequence[Cell], place: int) -> None:
        """Raise unless symmetry `place` maps every adversary in the cells to one with larger T."""
        _check_superfluous(cells, self._symmetries[place])


def cells_bound(
    lumped: Lumped,
    floor: float,
    proof: Mapping[str, Any],
    limits: Limits | None = None,
    boxes: tuple[Array, Array] | None = None,
    told: GainForm = LEAKAGE,
) -> float:
    """Return a float above the leakage of a lumped problem under an entropy floor.

    With `told`, the float is above a gain in one of its forms. With `limits`, only adversaries with
    <C_j, w> <= d_j + t_j F(w) count. Their multipliers kappa_j follow mu, and lam is replaced by
    lam + <kappa, t>, except in lam b.
    """
    keys = {"outputs", "splits", "cuts", "leaves"}
    more = {"output", "symmetries"} if told.is_leakage else {"tangents", "times", "least"}
    reading.parts(proof, keys, "the cells", optional=more)
    prover = CellProof(lumped, proof, limits, boxes, told)
    k, outputs = prover.values, prover.outputs
    tree = unpack_tree(proof, "splits", (3,), prover.width, lumped.rows.size)
    leaves = tree[2]
    superfluous = leaves[:, 0] < 0
    if (leaves[:, 1:] < 0).any() or leaves[superfluous, 1:].any():
        raise CertificateError("a multiplier is negative, or that of a superfluous leaf is not 0")
    if not np.isin(leaves[superfluous, 0], -1.0 - np.arange(prover.symmetries)).all():
        raise CertificateError("a leaf has lam < 0, and names no symmetry")

    def cut(cells: list[Cell], split: list[int], place: float) -> tuple[list[Cell], list[Cell]]:
        y, i, j = split
        if not (y < outputs and 0 <= i < k and 0 <= j < k):
            raise CertificateError(f"a split names output {y}, edge {i}-{j}")
        first, second = cells[y].split(i, j, place)
        return [*cells[:y], first, *cells[y + 1 :]], [*cells[:y], second, *cells[y + 1 :]]

    worst, b = arb.neg_inf(), balls.number(floor)
    ends: list[list[Cell]] = []
    kept: list[list[float]] = []
    for cells, leaf in replayed(prover.root(), tree, cut):
        if leaf[0] < 0:
            prover.check_superfluous(cells, int(-1 - leaf[0]))
        else:
            ends.append(cells)
            kept.append(leaf)
        if len(kept) == prover.chunk:
            worst = worst.max(_worst(prover, ends, kept, b))
            ends, kept = [], []
    worst = worst.max(_worst(prover, ends, kept, b)) + prover.slack
    if told.form == "factor":
        worst = prover.times + worst.max(arb(0)) / told.least(k, proof.get("least"))
    return balls.round_up(worst)


def _times(header: Mapping[str, Any], told: GainForm) -> Ball:
    """Return the factor of the prior's gain that is subtracted."""
    if told.form != "factor":
        return arb(1)
    times = reading.number(header.get("times"), "the factor")
    if not times >= 0:
        raise CertificateError(f"the factor: found {times!r}; a number >= 0 is needed")
    return balls.number(times)


def _worst(
    prover: CellProof, cells: Sequence[Sequence[Cell]], leaves: Sequence[Sequence[float]], b: Ball
) -> Ball:
    worst = arb.neg_inf()
    for leaf, value in zip(leaves, prover.values_of(cells, leaves), strict=True):
        worst = worst.max(value - leaf[0] * b)
    return worst


Boxes = list[list[tuple[list[Ball], list[Ball], list[Ball]]]]
"""For each value of A and each of its groups: its row's lower and upper bounds, its limits."""


def _boxes(
    lumped: Lumped, header: Mapping[str, Any], limits: Limits, boxes: tuple[Array, Array]
) -> Boxes:
    plain = [[y] for y in range(lumped.rows.shape[1])]
    if header["outputs"] != plain or {"output", "symmetries"} & header.keys():
        raise CertificateError(
            "a set of channels cannot be combined with merged outputs or symmetries"
        )
    parts: Boxes = [[] for _ in lumped.values]
    for a, low, high, prices in zip(lumped.value_index, *boxes, limits.coefficients.T, strict=True):
        ends = [[balls.number(x) for x in row.tolist()] for row in (low, high)]
        parts[int(a)].append((ends[0], ends[1], [arb(x) for x in prices.tolist()]))
    return parts


def _robust_value(
    boxes: Boxes,
    logs: Sequence[Sequence[Ball]],
    nu: Matrix,
    kappa: Sequence[Ball],
    lam: Ball,
    share: Ball,
    shift: Sequence[Ball],
) -> Ball:
    """Return `_dual_value` with the largest c of each row's box."""
    phi = []
    for a, part in enumerate(boxes):
        column = [row[a] for row in nu]
        c = [
            support_above(low, high, column) - balls.dot(kappa, prices)
            for low, high, prices in part
        ]
        phi.append(balls.soft_maximum(c, lam, logs[a]) + shift[a])
    return balls.soft_maximum(phi, share + lam)


def _symmetries(
    lumped: Lumped, proof: Mapping[str, Any], limits: Limits
) -> tuple[list[list[list[int]]], Sequence[int]]:
    """Return the change of T by each symmetry, per output and value, and the multiplicities."""
    if "symmetries" not in proof:
        return [], lumped.multiplicities
    k, outputs = len(lumped.values), lumped.rows.shape[1]
    shape = declared_shape(proof["symmetries"])
    if len(shape) != 2 or shape[0] * lumped.rows.size > SYMMETRY_LIMIT:
        raise CertificateError("there are too many symmetries to check")
    charge("steps", shape[0] * lumped.rows.size // ENTRY, f"{shape[0]} symmetries")
    table = unpack(proof["symmetries"], (None, k + outputs))
    if table.dtype != np.dtype("<i4"):
        raise CertificateError("the symmetries do not fit the lumped problem")
    if len(limits.bounds) or any(len(group) != 1 for group in proof["outputs"]):
        raise CertificateError("symmetries cannot be combined with limits or merged outputs")
    if [group[0] for group in proof["outputs"]] != list(range(outputs)):
        raise CertificateError("symmetries need the outputs in their original order")
    found = [Symmetry(tuple(row[:k]), tuple(row[k:])) for row in table.tolist()]
    moves = []
    for one in found:
        move = moved_groups(lumped, one)
        if move is None:
            raise CertificateError(f"{one} is not a symmetry of the rows")
        moves.append(move)
    return gains(found, k, outputs).astype(int).tolist(), largest_multiplicities(lumped, moves)


def _check_superfluous(cells: Sequence[Cell], gain: Sequence[Sequence[int]]) -> None:
    """Raise unless T is less than its value after the symmetry, everywhere in the cells."""
    total = arb(0)
    for cell, weights in zip(cells, gain, strict=True):
        total += balls.largest(balls.dot(vertex, map(arb, weights)) for vertex in cell.vertices)
    if not total < 0:
        raise CertificateError("a leaf that is marked superfluous is needed")


def _dual_value(
    parts: Sequence[arb_mat],
    logs: Sequence[Sequence[Ball]],
    nu: Matrix,
    lam: Ball,
    share: Ball,
    shift: Sequence[Ball],
) -> Ball:
    """Return (share + lam) logsumexp_a((phi_a + shift_a) / (share + lam)); H(A) is the share 1."""
    phi = []
    for a, part in enumerate(parts):
        column = part * arb_mat([[row[a]] for row in nu])
        phi.append(balls.soft_maximum(column.entries(), lam, logs[a]) + shift[a])
    return balls.soft_maximum(phi, share + lam)
