"""The information problem of a release: feasible values by local search, bounds by cells."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import entr

from cvxleak._clock import Clock
from cvxleak._validation import Array
from cvxleak.certificates import Certificate
from cvxleak.certificates.packing import pack
from cvxleak.certificates.release import prove_information
from cvxleak.problems.release.candidates import information, value_of
from cvxleak.problems.release.cells import CellTree
from cvxleak.problems.release.inner import Inner, proved
from cvxleak.result import Bound, Stopped

if TYPE_CHECKING:
    from cvxleak.problems.release.statement import ReleaseProblem

__all__ = ["solve_information"]

CELLS = 200
"""Most cells; the relaxed problem has an output for each."""
ENTRIES = 5_000
"""Most entries of the relaxed problem's kernel: what is affordable."""
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
    search.refine(tol)
    late, search.inner.clock = search.inner.clock.late, clock
    search.ascend(search.merged(), tol)
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
        self.upper = math.inf
        self.steps = 0
        self._laws, self._masses = self._request[None, :], np.ones(1)

    def refine(self, tol: float) -> None:
        """Bound the optimum, cutting the cells in use until interpolation costs less than `tol`."""
        tree = CellTree(self.requests)
        gap = 1e-3
        most = min(CELLS, ENTRIES // len(self.inner.terms.weights))
        while True:
            solved = self.inner.solve(-tree.slopes.T, gap)
            self.steps += 1
            upper = float(entr(self._request).sum()) - solved.point.lower - self._told
            if upper < self.upper:
                self.upper, self.solved = upper, solved
                self.proof = {"cells": tree.to_dict(), "coalitions": solved.proof}
            laws, masses = self._posteriors(solved.point.kernel)
            self._laws, self._masses = laws, masses
            slack = masses * ((laws * tree.slopes).sum(axis=1) + entr(laws).sum(axis=1))
            total = float(slack.sum())
            if self.inner.clock.late or (total <= 0.5 * tol and gap <= 0.1 * tol):
                return
            gap = max(0.01 * total, 0.1 * tol)
            if total <= 0.5 * tol:
                continue
            leaves = tree.leaves
            wide = [j for j in np.argsort(-slack) if slack[j] > 0.25 * tol / len(leaves)]
            wide = wide[: max(0, most - len(leaves))]
            if not any([tree.split(leaves[j], laws[j]) for j in wide]):
                return

    def merged(self) -> Array:
        """Return the relaxed problem's laws of R, merged until there is one for each output."""
        used = self._masses > 1e-6
        laws, masses = self._laws[used], self._masses[used]
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
            before, value = value, self._offer(solved.point.kernel)
            if value - before <= 0.1 * tol or self.inner.clock.late:
                return
            laws, _ = self._posteriors(solved.point.kernel)

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
                "cells": len(self.proof["cells"]["slopes"]),
                "multipliers": multipliers,
            },
            resume=lambda tol, time_limit: problem.solve(tol=tol, time_limit=time_limit),
        ).to(problem.unit)

    def _offer(self, kernel: Array) -> float:
        rows = self.inner.terms.rows(kernel)
        value = value_of(self.problem, self.inner.terms, rows)
        if value > self.value:
            self.value, self.kernel = value, kernel
        return value

    def _posteriors(self, kernel: Array) -> tuple[Array, Array]:
        """Return the law of R given each output, and the law of the output."""
        joint = self.inner.terms.rows(kernel).T @ self._given
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
