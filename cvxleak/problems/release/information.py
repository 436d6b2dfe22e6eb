"""The information problem of a release: feasible values by local search, bounds by cells."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import linprog
from scipy.special import entr, rel_entr

from cvxleak._clock import Clock
from cvxleak._validation import Array
from cvxleak.certificates import Certificate
from cvxleak.certificates.packing import pack
from cvxleak.certificates.release import prove_information
from cvxleak.problems.release.candidates import information, value_of
from cvxleak.problems.release.cells import CellTree
from cvxleak.problems.release.coalitions import ENTRIES
from cvxleak.problems.release.inner import Inner, proved
from cvxleak.result import Bound, Stopped

if TYPE_CHECKING:
    from cvxleak.problems.release.statement import ReleaseProblem

__all__ = ["solve_information"]

CELLS = 200
"""Most cells; the relaxed problem has an output for each."""
STEPS = 50
"""Most steps of a local search."""


def solve_information(
    problem: ReleaseProblem,
    tol: float,
    time_limit: float | None,
    restarts: int,
    rng: np.random.Generator,
) -> Bound:
    """Return what `ReleaseProblem.solve` does, for utility "information"."""
    clock = Clock(time_limit)
    # Half of the time for the bound: the other half is for something to release.
    search = _Search(problem, Clock(None if time_limit is None else time_limit / 2))
    plain = search.reduced()
    if (search.inner.terms.information(plain) <= search.inner.rooms).all():
        search.offer(plain)
    search.refine(tol)
    late, search.inner.clock = search.inner.clock.late, clock
    search.ascend(search.merged(search.reduced()), tol)
    for _ in range(restarts):
        if search.upper - search.value <= tol or clock.late:
            break
        search.ascend(rng.dirichlet(np.full(search.requests, 0.5), len(problem.outputs)), tol)
    return search.bound(tol, clock, late or clock.late)


class _Search:
    """The best kernel and the best proof of a bound so far."""

    def __init__(self, problem: ReleaseProblem, clock: Clock) -> None:
        self.problem = problem
        self.inner = Inner(problem, clock)
        self.requests = len(problem.joint.requests)
        self._request: Array = self.inner.joint.sum(axis=(1, 2))
        self._given = np.moveaxis(self.inner.joint, 0, 2)[self.inner.terms.z, self.inner.terms.x]
        self._told = sum(
            coalition.price * information(self.inner.law, coalition.array)
            for coalition in problem.coalitions
        )
        self.kernel = np.zeros((*self.inner.law.shape, len(problem.outputs)))
        self.kernel[..., 0] = 1.0
        self.value = -self._told
        # No release tells more of R than (Z, X) does.
        pairs = self._given.sum(axis=1)
        useful = entr(self._request).sum() - entr(self._given / pairs[:, None]).sum(axis=1) @ pairs
        self.upper = float(useful) - self._told
        self.steps = 0
        self._relaxed = np.ones((len(pairs), 1))

    def refine(self, tol: float) -> None:
        """Bound the optimum, cutting the cells in use until interpolation costs less than `tol`."""
        tree = CellTree(self.requests)
        gap, least = 1e-3, math.inf
        most = min(CELLS, ENTRIES // len(self.inner.terms.weights))
        while True:
            solved = self.inner.solve(-tree.slopes.T, gap)
            self.steps += 1
            upper = float(entr(self._request).sum()) - solved.point.lower - self._told
            if upper < least:
                least, self.solved = upper, solved
                self.upper = min(self.upper, upper)
                self.proof = {"cells": tree.to_dict(), "coalitions": solved.proof}
            self._relaxed = self.inner.terms.rows(solved.point.kernel)
            laws, masses = self._posteriors(self._relaxed)
            slack = masses * ((laws * tree.slopes).sum(axis=1) + entr(laws).sum(axis=1))
            total = float(slack.sum())
            if self.inner.clock.late or (total <= 0.5 * tol and gap <= 0.1 * tol):
                return
            if self.upper - self.value <= 0.5 * tol:
                return
            gap = max(0.01 * total, 0.1 * tol)
            if total <= 0.5 * tol:
                continue
            leaves = tree.leaves
            wide = [j for j in np.argsort(-slack) if slack[j] > 0.25 * tol / len(leaves)]
            wide = wide[: max(0, most - len(leaves))]
            if not any([tree.split(leaves[j], laws[j]) for j in wide]):
                return

    def reduced(self) -> Array:
        """Return a kernel's rows, as good as the relaxed problem's, with few columns that are used.

        An output is a law of (Z, X), and what it adds to I(R̂;R) and to each I(R̂;X|S) does not
        depend on the others. So the chances of the relaxed problem's outputs, of those that tell
        (z, x), and of one that tells nothing, are a linear program: a vertex of it uses no more
        outputs than there are rows and budgets.
        """
        terms, weights = self.inner.terms, self.inner.terms.weights
        rows = np.hstack([self._relaxed, np.eye(len(weights)), np.ones((len(weights), 1))])
        rows = rows[:, weights @ rows > 1e-12]
        joint = weights[:, None] * rows
        laws, masses = self._posteriors(rows)
        with np.errstate(divide="ignore"):
            ratios = terms.log_ratios(np.log(rows))
        used = joint > 0
        told = np.array([np.where(used, joint * np.where(used, r, 0), 0).sum(0) for r in ratios])
        useful = masses * rel_entr(laws, self._request).sum(axis=1)
        bounded = np.isfinite(self.inner.rooms)
        # The relaxed kernel may be above its budgets by what rounding does.
        relaxed = np.arange(rows.shape[1]) < self._relaxed.shape[1]
        rooms = np.maximum(self.inner.rooms, told @ relaxed)[bounded]
        found = linprog(
            self.inner.prices @ told - useful,
            told[bounded],
            rooms,
            joint,
            weights,
            method="highs-ds",
        )
        if found.x is None:
            return self._relaxed
        rows = (rows * found.x)[:, found.x > 1e-12]
        return rows / rows.sum(axis=1, keepdims=True)

    def merged(self, rows: Array) -> Array:
        """Return the laws of R given each column, merged until there is one for each output."""
        laws, masses = self._posteriors(rows)
        laws, masses = laws[masses > 1e-6], masses[masses > 1e-6]
        losses = np.array([_losses(laws, masses, i) for i in range(len(laws))])
        while len(laws) > len(self.problem.outputs):
            i, j = sorted(int(n) for n in np.unravel_index(losses.argmin(), losses.shape))
            total = masses[i] + masses[j]
            laws[i] = (masses[i] * laws[i] + masses[j] * laws[j]) / total
            masses[i] = total
            laws, masses = np.delete(laws, j, axis=0), np.delete(masses, j)
            losses = np.delete(np.delete(losses, j, axis=0), j, axis=1)
            losses[i] = losses[:, i] = _losses(laws, masses, i)
        missing = len(self.problem.outputs) - len(laws)
        return np.vstack([laws, np.tile(self._request, (missing, 1))])

    def offer(self, rows: Array) -> float:
        """Take a kernel if it is the best so far and has no more columns than there are outputs."""
        terms, missing = self.inner.terms, len(self.problem.outputs) - rows.shape[1]
        value = value_of(self.problem, terms, rows)
        if value > self.value and missing >= 0:
            self.value, self.kernel = value, terms.kernel(np.pad(rows, ((0, 0), (0, missing))))
        return value

    def ascend(self, laws: Array, tol: float) -> None:
        """Maximize E log( q(R|r̂) / p(R) ), then let q be the posterior, and so on.

        For any q it is at most I(R̂;R), with equality at the posterior, so no step loses.
        """
        value = -math.inf
        for _ in range(STEPS):
            floored = (1 - 1e-9) * laws + 1e-9 * self._request
            positive = self._request > 0
            ratio = floored / np.where(positive, self._request, 1.0)
            solved = self.inner.solve(-np.log(np.where(positive, ratio, 1.0)).T, 0.01 * tol)
            self.steps += 1
            before, value = value, self.offer(self.inner.terms.rows(solved.point.kernel))
            if value - before <= 0.1 * tol or self.inner.clock.late:
                return
            laws, _ = self._posteriors(self.inner.terms.rows(solved.point.kernel))

    def bound(self, tol: float, clock: Clock, late: bool) -> Bound:
        """State and prove what was found."""
        problem = self.problem
        statement = self.inner.statement() | {"outputs": len(problem.outputs)}
        witness, ends = proved(self.inner, self.kernel, statement, self.proof, prove_information)
        certificate = Certificate(
            "release-information", statement, *ends, {"kernel": pack(witness)}, self.proof
        )
        multipliers = self.inner.multipliers(self.solved)
        stopped = Stopped.TIME_LIMIT if late else Stopped.NO_PROGRESS
        return Bound.proved(
            "release information",
            *ends,
            tol=0.0,
            absolute=tol,
            witness=problem.shaped(witness),
            certificate=certificate,
            shadow_prices=multipliers,
            stats={
                "seconds": clock.seconds,
                "stopped": Stopped.TOLERANCE if ends[1] - ends[0] <= tol else stopped,
                "iterations": self.steps,
                "outputs": len(problem.outputs),
                "upper_of": "any number of outputs",
                "cells": len(self.proof["cells"]["slopes"]),
                "multipliers": multipliers,
            },
            resume=lambda tol, time_limit: problem.solve(tol=tol, time_limit=time_limit),
        ).to(problem.unit)

    def _posteriors(self, rows: Array) -> tuple[Array, Array]:
        """Return the law of R given each output, and the law of the output, of a kernel's rows."""
        joint = rows.T @ self._given
        masses = joint.sum(axis=1)
        return joint / np.where(masses > 0, masses, 1.0)[:, None], masses


def _losses(laws: Array, masses: Array, place: int) -> Array:
    """Return what merging an output with each other one loses of I(R̂;R)."""
    total = masses + masses[place]
    means = (masses[:, None] * laws + masses[place] * laws[place]) / total[:, None]
    apart = masses * entr(laws).sum(axis=1)
    losses = total * entr(means).sum(axis=1) - apart - apart[place]
    losses[place] = math.inf
    return losses
