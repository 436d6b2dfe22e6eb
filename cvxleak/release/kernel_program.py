"""The convex problem inside both utilities: solved, made exactly feasible, and stated."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.clock import Clock
from cvxleak.core.errors import CertificateError, ValidationError
from cvxleak.core.numbers import carries, to_json
from cvxleak.core.validation import Array
from cvxleak.iterative.release_terms import ReleaseTerms
from cvxleak.kernel.numbers import precision
from cvxleak.kernel.reading import pack
from cvxleak.problem.bound import unit_scale
from cvxleak.problem.problem import Toward
from cvxleak.proofs.bounds.release_law import SIZE_LIMIT, common_classes
from cvxleak.proofs.release import LEAST
from cvxleak.release.interior_point import ReleasePoint, release_interior_point
from cvxleak.release.statement import ReleaseProblem

__all__ = ["KernelProgram", "Solved", "pack_written", "proved", "toward_constant"]

SHARES = (0.0, 1e-15, 1e-13, 1e-11, 1e-9, 1e-7, 1e-5, 1e-3, 1.0)
"""Shares of a constant release that are added in turn until the budgets are proved to be met."""


class Solved(NamedTuple):
    """A point of the inner problem and what proves its bound."""

    point: ReleasePoint
    proof: list[dict[str, Any]]


class KernelProgram:
    """The convex program inside: costs for kernels, minimized within budgets and prices.

    Parameters
    ----------
    problem : ReleaseProblem
    clock : Clock
        When to stop.
    """

    def __init__(self, problem: ReleaseProblem, clock: Clock) -> None:
        self.problem = problem
        cells = int((problem.joint.flat.sum(axis=0) > 0).sum()) * len(problem.outputs)
        size = cells * max(1 + len(problem.coalitions), len(problem.joint.requests))
        if size > SIZE_LIMIT:
            raise ValidationError(
                f"joint: found {cells} pairs of (z, x) and output, which make {size} numbers; a "
                f"proof goes through at most {SIZE_LIMIT}"
            )
        self.rooms = problem.rooms()
        self.terms: ReleaseTerms = problem.terms()
        self.prices = np.array([coalition.price for coalition in problem.coalitions])
        self.clock = clock
        law = problem.joint.flat / problem.joint.flat.sum()
        self.joint: Array = law
        self.law: Array = law.sum(axis=0)
        # p(r|z,x); rows of probability zero count nowhere.
        self.request: Array = (
            np.moveaxis(law, 0, 2) / np.where(self.law > 0, self.law, 1.0)[..., None]
        )

    def solve(self, distortion: Array, gap: float, *, nudge: float = 0.0) -> Solved:
        """Minimize E d(R,j) + prices over kernels onto the columns j, to a gap of about `gap`.

        Budgets get a price of their own, which costs `nudge` at most: where one does not bind, or
        kernels tie, less is told. Both are relative to the range of the costs.
        """
        scale = float(np.ptp(distortion)) or 1.0
        most = math.log(max(distortion.shape[1], 2))
        # No release of so few values can tell more than that: such a budget does not bind.
        rooms = np.where(self.rooms >= most, math.inf, self.rooms)
        bounded = np.isfinite(rooms) & (rooms > 0)
        extra = np.where(bounded, nudge * scale / (most * max(1, int(bounded.sum()))), 0.0)
        point = self._point(distortion, rooms, extra, gap * scale)
        proof = []
        for c, (room, reference) in enumerate(zip(rooms, point.references, strict=True)):
            multiplier = 0.0
            if math.isfinite(room) and room > 0:
                multiplier = float(point.multipliers[c] + extra[c])
            counts = multiplier + self.prices[c] > 0 or room == 0
            proof.append(
                {"multiplier": multiplier, "reference": pack(reference, "<f8") if counts else None}
            )
        return Solved(point, proof)

    def _point(self, distortion: Array, rooms: Array, extra: Array, gap: float) -> ReleasePoint:
        """Solve with one coalition, the tightest, for all that see the same; all are paid."""
        found: dict[tuple[int, ...], list[int]] = {}
        for c, coalition in enumerate(self.problem.coalitions):
            found.setdefault(coalition.classes, []).append(c)
        groups = [sorted(group, key=lambda c: float(rooms[c])) for group in found.values()]
        point = release_interior_point(
            self.law,
            self.request @ distortion,
            [self.problem.coalitions[group[0]].array for group in groups],
            [float(rooms[group[0]]) for group in groups],
            [float((self.prices + extra)[group].sum()) for group in groups],
            gap,
            self.clock,
        )
        multipliers = np.zeros(len(rooms))
        references: dict[int, Array] = {}
        for group, mu, reference in zip(groups, point.multipliers, point.references, strict=True):
            multipliers[group[0]] = mu
            # Without room the reference stands for a multiplier, which only one of them has.
            alone = rooms[group[0]] == 0
            references |= {c: 0 * reference if alone else reference for c in group}
            references[group[0]] = reference
        ordered = tuple(references[c] for c in range(len(rooms)))
        return replace(point, multipliers=multipliers, references=ordered)

    def cleaned(self, kernel: Array, distortion: Array, tolerance: float) -> Array:
        """Return the kernel without outputs that it hardly uses, if it gets no worse by that."""
        if (self.rooms == 0).any():
            return kernel
        rows = self.terms.rows(kernel)
        cost = self.terms.rows(self.request @ distortion)
        weights = self.terms.weights

        def objective(rows: Array) -> tuple[float, bool]:
            leakage = self.terms.information(rows)
            value = float(weights @ (rows * cost).sum(axis=1)) + float(self.prices @ leakage)
            return value, bool((leakage <= self.rooms * (1 - 1e-15) - 1e-15).all())

        before, _ = objective(rows)
        for threshold in (1e-2, 1e-3, 1e-4, 1e-6, 1e-8):
            trial = np.where(rows < threshold, 0.0, rows)
            trial = trial / trial.sum(axis=1, keepdims=True)
            value, fits = objective(trial)
            if fits and value <= before + tolerance:
                return self.terms.kernel(trial)
        return kernel

    def feasible(self, kernel: Array, share: float) -> Array:
        """Return the kernel blended with a constant release.

        Where several coalitions have no room, it is one that depends on what all of them know.
        """
        rows = self.terms.rows(kernel)
        mean = self.terms.weights @ rows
        least = {
            tuple(coalition.classes.index)
            for coalition, room in zip(self.terms.coalitions, self.rooms, strict=True)
            if room == 0 and coalition.pairs.size > coalition.classes.size
        }
        if len(least) > 1:
            told = common_classes(np.array(sorted(least)))
            masses = np.bincount(told, self.terms.weights)
            means = np.zeros((len(masses), rows.shape[1]))
            np.add.at(means, told, self.terms.weights[:, None] * rows)
            rows = (means / masses[:, None])[told]
        elif least:  # what makes it independent must not meet a zero
            mean = (mean + 1 / len(mean)) / 2
            share = max(share, 1e-14)
        return self.terms.kernel((1 - share) * rows + share * mean)

    def statement(self) -> dict[str, Any]:
        """Return the certificate's problem, but for what the utility adds."""
        coalitions = [
            {
                "classes": list(coalition.classes),
                "price": coalition.price,
                "budget": LEAST if room == 0 else _finite(coalition.budget),
            }
            for coalition, room in zip(self.problem.coalitions, self.rooms, strict=True)
        ]
        return {"joint": pack_written(self.problem.joint.flat), "coalitions": coalitions}

    def multipliers(self, solved: Solved) -> dict[str, float]:
        """Return mu per unit of information, by the names of the budgets."""
        scale = unit_scale(self.problem.budget_unit)
        found = {}
        for coalition, room, mu, reference in zip(
            self.problem.coalitions,
            self.rooms,
            solved.point.multipliers,
            solved.point.references,
            strict=True,
        ):
            if room == 0:
                # Around independence distortion falls like a root of the room, if it falls at all.
                found[coalition.name] = math.inf if np.ptp(reference) > 1e-6 else 0.0
            elif math.isfinite(room):
                found[coalition.name] = float(mu) * scale
        return found


def toward_constant(problem: ReleaseProblem, candidate: ArrayLike) -> Toward:
    """Return the way from a candidate to a constant release."""
    rows, _ = problem.read_rows(candidate)
    program = KernelProgram(problem, Clock())
    kernel = program.terms.kernel(rows)

    def at(share: float) -> tuple[Array, Mapping[str, Any]]:
        feasible = program.feasible(kernel, share)
        return problem.shaped(feasible), {"kernel": pack(feasible, "<f8")}

    return at


def proved(
    inner: KernelProgram,
    kernel: Array,
    statement: Mapping[str, Any],
    proof: Mapping[str, Any],
    prove: Callable[..., tuple[float, float]],
) -> tuple[Array, tuple[float, float]]:
    """Return the kernel, moved until its budgets are proved to be met, and the proved ends."""
    with precision():
        for share in SHARES[:-1]:
            witness = inner.feasible(kernel, share)
            try:
                return witness, prove(statement, {"kernel": pack(witness, "<f8")}, proof)
            except CertificateError:
                continue
        witness = inner.feasible(kernel, SHARES[-1])
        return witness, prove(statement, {"kernel": pack(witness, "<f8")}, proof)


def pack_written(array: Array) -> Any:
    """Return an array of a problem's numbers, as lists if packed floats would not hold them."""
    return to_json(array) if carries(array) else pack(array, "<f8")


def _finite(budget: float) -> float | None:
    return budget if math.isfinite(budget) else None
