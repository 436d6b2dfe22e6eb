"""A tree of slabs of conditional distributions: the bounds of its leaves, and why they cover.

Each value a of A has a linear functional x on its context groups. A leaf restricts the mean of x
under the adversary's distribution given a to an interval, a slab. Its multipliers (lam, q, tau, nu)
prove U for it (`cvxleak.audit.search.slab_dual` derives U), provided that <P, nu_a> >= -q H(P R_a)
at every vertex P of the slab. The vertices are the groups inside, and the mixtures of two groups at
an endpoint. The cuts are replayed from the root, whose intervals contain every distribution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb, arb_mat, fmpz

from cvxleak.core.errors import CertificateError
from cvxleak.exact import balls, reading
from cvxleak.exact.packing import unpack
from cvxleak.model import Limits, Lumped
from cvxleak.proofs.bounds.outputs import Ball, Matrix, merged_rows
from cvxleak.proofs.bounds.trees import replayed, unpack_tree

__all__ = ["slabs_bound"]


@dataclass(frozen=True)
class _Interval:
    """An interval of the functional's mean: floats, None where it was never cut."""

    low: float | None
    high: float | None


class _Laws:
    """Rows, functional and multiplicities of a lumped problem, and the vertices' entropies."""

    def __init__(self, lumped: Lumped, rows: Matrix, functional: list[float]) -> None:
        self.rows = rows
        self.matrix = arb_mat(rows)
        self.entropies = [balls.entropy(row) for row in rows]
        self.x = functional
        self.groups = [
            [int(g) for g in np.flatnonzero(lumped.value_index == a)]
            for a in range(len(lumped.values))
        ]
        self.log_multiplicities = [arb(fmpz(m)).log() for m in lumped.multiplicities]
        self._pairs: dict[tuple[int, float], list[tuple[int, int, Ball, Ball]]] = {}

    def pairs(self, a: int, end: float) -> list[tuple[int, int, Ball, Ball]]:
        """Return (i, j, share of i, H of the mixture) for all pairs with mean `end` of x."""
        key = (a, end)
        if key not in self._pairs:
            found = []
            exact = arb(end)
            below = [g for g in self.groups[a] if self.x[g] < end]
            above = [g for g in self.groups[a] if self.x[g] > end]
            for i in below:
                for j in above:
                    share = (arb(self.x[j]) - exact) / (arb(self.x[j]) - arb(self.x[i]))
                    law = [
                        share * p + (1 - share) * q
                        for p, q in zip(self.rows[i], self.rows[j], strict=True)
                    ]
                    found.append((i, j, share, balls.entropy(law)))
            self._pairs[key] = found
        return self._pairs[key]

    def check(self, a: int, interval: _Interval, nu: list[Ball], q: Ball) -> None:
        """Raise unless nu is at least -q H at every vertex of the slab."""
        for g in self.groups[a]:
            inside = (interval.low is None or self.x[g] >= interval.low) and (
                interval.high is None or self.x[g] <= interval.high
            )
            if inside and not nu[g] + q * self.entropies[g] >= 0:
                raise CertificateError("a leaf's nu is too small at a group of its slab")
        for end in (interval.low, interval.high):
            for i, j, share, entropy in [] if end is None else self.pairs(a, end):
                if not share * nu[i] + (1 - share) * nu[j] + q * entropy >= 0:
                    raise CertificateError("a leaf's nu is too small at a vertex of its slab")

    def dual_value(self, lam: Ball, q: Ball, tau: list[Ball], nu: list[Ball]) -> Ball:
        """Return U(lam, q, tau, nu) + lam b."""
        priced = self.matrix * arb_mat([[t] for t in tau])
        phi = []
        for groups in self.groups:
            c = [nu[g] - priced[g, 0] for g in groups]
            logs = [self.log_multiplicities[g] for g in groups]
            phi.append(balls.soft_maximum(c, lam, logs))
        smooth = balls.soft_maximum(phi, 1 - q + lam)
        return smooth + q * (balls.total((t / q).exp() for t in tau) - 1)


def slabs_bound(
    lumped: Lumped, floor: float, proof: Mapping[str, Any], limits: Limits | None = None
) -> float:
    """Return a float above the leakage of a lumped problem under an entropy floor.

    With `limits`, only adversaries with <C_j, w> <= d_j + t_j F(w) count. Their multipliers kappa_j
    follow nu, and lam is replaced by lam + <kappa, t>, except in lam b.
    """
    limits = Limits.none(lumped) if limits is None else limits
    keys = {"outputs", "functional", "nodes", "cuts", "leaves"}
    reading.parts(proof, keys, "the slabs")
    rows, slack = merged_rows(lumped, proof["outputs"])
    size, outputs, k = len(rows), len(proof["outputs"]), len(lumped.values)
    functional = unpack(proof["functional"], (size,))
    if not np.isfinite(functional).all():
        raise CertificateError("the functional does not fit the lumped problem")
    width = 2 + outputs + size + len(limits.bounds)
    # Each pair of groups on either side of a cut has a vertex on it.
    pairs = lumped.rows.size * int(np.bincount(lumped.value_index).max())
    tree = unpack_tree(proof, "nodes", (), width, pairs)
    leaves = tree[2]
    if (leaves[:, 0] < 0).any() or (leaves[:, 1] <= 0).any() or (leaves[:, 1] >= 1).any():
        raise CertificateError("a leaf has lam < 0, or q outside (0, 1)")
    if (leaves[:, 2 + outputs + size :] < 0).any():
        raise CertificateError("a leaf has kappa < 0")
    laws = _Laws(lumped, rows, functional.tolist())
    of_limits = (
        [[arb(c) for c in row] for row in limits.coefficients.tolist()],
        [arb(d) for d in limits.bounds.tolist()],
        limits.shares.tolist(),
    )

    def cut(
        intervals: list[_Interval], a: int, place: float
    ) -> tuple[list[_Interval], list[_Interval]]:
        if a >= k:
            raise CertificateError(f"a cut names value {a} of {k}")
        # Below and above the place: together they cover the interval, wherever the cut is.
        below, above = _Interval(intervals[a].low, place), _Interval(place, intervals[a].high)
        return (
            [*intervals[:a], below, *intervals[a + 1 :]],
            [*intervals[:a], above, *intervals[a + 1 :]],
        )

    worst = arb.neg_inf()
    for intervals, leaf in replayed([_Interval(None, None)] * k, tree, cut):
        lam, q = arb(leaf[0]), arb(leaf[1])
        tau = [arb(t) for t in leaf[2 : 2 + outputs]]
        nu = [arb(x) for x in leaf[2 + outputs : 2 + outputs + size]]
        kappa = [arb(x) for x in leaf[2 + outputs + size :]]
        free = lam * balls.number(floor)
        for value, interval in enumerate(intervals):
            laws.check(value, interval, nu, q)
        for price, coefficients, bound, share in zip(kappa, *of_limits, strict=True):
            nu = [x - price * c for x, c in zip(nu, coefficients, strict=True)]
            free -= price * bound
            lam += price * share
        worst = worst.max(laws.dual_value(lam, q, tau, nu) - free)
    return balls.round_up(worst + slack)
