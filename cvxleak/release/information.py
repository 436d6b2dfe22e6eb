"""`ReleaseInformation`: feasible values by local search, bounds by cells."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from scipy.special import entr, rel_entr

from cvxleak.core.clock import Clock, Stop
from cvxleak.core.validation import Array, generator, whole_number
from cvxleak.kernel.reading import pack
from cvxleak.problem import Bound, Gap, Stopped
from cvxleak.problem.bound import unit_scale
from cvxleak.problem.problem import Found, Search, Toward
from cvxleak.proofs.release import prove_information
from cvxleak.release.cells import CellTree
from cvxleak.release.coalitions import (
    ENTRIES,
    Coalition,
    Coalitions,
    enough_outputs,
    named_coalitions,
)
from cvxleak.release.joint import ReleaseJoint
from cvxleak.release.kernel_program import KernelProgram, Solved, proved, toward_constant
from cvxleak.release.statement import ReleaseProblem, joint_information, output_labels

__all__ = ["ReleaseInformation"]

CELLS = 200
"""Most cells; the relaxed problem has an output for each."""
STEPS = 50
"""Most steps of a local search."""


METHOD = (
    "local search from below, because the information is convex in the kernel and is maximized; "
    "from above branch and bound on cells of posteriors"
)


@dataclass(frozen=True, eq=False)
class ReleaseInformation(ReleaseProblem):
    """Maximize I(R̂;R), the information about the request R, within the leakage budgets.

    Notes
    -----
    `lower` is attained by the best result of the local searches, with the number of outputs in
    ``stats["outputs"]``. `upper` holds for any number of outputs (``stats["upper_of"]``): if there
    are fewer than `release_problem` chooses by default, the gap need not close. Only CERTIFIED
    means an optimum.

    Options of `solve`: ``restarts``, the number of random starts of the local search (5 if left
    out), and ``rng``, their seed (an int, 0 if left out) or numpy.random.Generator.

    Examples
    --------
    >>> from cvxleak.release import release_problem
    >>> problem = release_problem([[0.2, 0.0], [0.0, 0.8]], 0.1, utility="information")
    >>> print(problem.solve())  # the request is the dataset: no more than the budget
    release information: 0.1 to 0.1 nats (CERTIFIED)
    """

    kind = "release-information"
    name = "release information"
    maximize = True
    tolerance = 1e-7

    @classmethod
    def within(
        cls,
        joint: ReleaseJoint | ArrayLike,
        epsilon: float = math.inf,
        delta: float = math.inf,
        coalitions: Coalitions | None = None,
        outputs: int | Iterable[Hashable] | None = None,
        unit: str = "nats",
    ) -> Self:
        """Return the problem within budgets; the arguments are those of `release_problem`.

        Examples
        --------
        >>> from cvxleak.release import ReleaseInformation
        >>> ReleaseInformation.within([[0.2, 0.0], [0.0, 0.8]], 0.1).outputs
        (0, 1, 2)
        """
        law = ReleaseJoint.of(joint)
        found = named_coalitions(law, epsilon, delta, coalitions, unit_scale(unit))
        return cls.of(law, found, outputs, unit)

    @classmethod
    def of(
        cls,
        joint: ReleaseJoint,
        coalitions: tuple[Coalition, ...],
        outputs: int | Iterable[Hashable] | None,
        unit: str,
    ) -> Self:
        """Return the problem of these coalitions; with enough outputs, if they are left out."""
        if outputs is None:
            outputs = enough_outputs(joint, coalitions)
        return cls(joint, output_labels(joint, outputs), coalitions, unit)

    @property
    def unit(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The unit of the budgets."""
        return self.budget_unit

    def _toward(self, candidate: ArrayLike, bound: Bound) -> Toward:
        return toward_constant(self, candidate)

    def value(self, rows: Array) -> float:
        """Return I(R̂;R) at a kernel's rows, less what the leakages cost."""
        return joint_information(self.answers(rows)) - self.paid(rows)

    def _measure(self, candidate: Any) -> tuple[float, dict[str, float]]:
        value, violations = super()._measure(candidate)
        return value / unit_scale(self.unit), violations

    def _search(self, *, restarts: int = 5, rng: int | np.random.Generator | None = 0) -> Search:
        return _Search(self, whole_number(restarts, "restarts", 0), generator(rng))


class _Search:
    """The best kernel and the best proof of a bound so far."""

    def __init__(
        self, problem: ReleaseInformation, restarts: int, rng: np.random.Generator
    ) -> None:
        self.problem = problem
        self.inner = KernelProgram(problem, Clock())
        self.requests = len(problem.joint.requests)
        self._restarts, self._rng = restarts, rng
        self._request: Array = self.inner.joint.sum(axis=(1, 2))
        self._given = np.moveaxis(self.inner.joint, 0, 2)[self.inner.terms.z, self.inner.terms.x]
        constant = np.ones((len(self._given), 1))
        self._told = problem.paid(constant)
        self.kernel = np.zeros((*self.inner.law.shape, len(problem.outputs)))
        self.kernel[..., 0] = 1.0
        self.value = -self._told
        # No release tells more of R than (Z, X) does.
        pairs = self._given.sum(axis=1)
        useful = entr(self._request).sum() - entr(self._given / pairs[:, None]).sum(axis=1) @ pairs
        self.upper = float(useful) - self._told
        self.steps = 0
        self._relaxed = constant
        self._tree, self._sharpness = CellTree(self.requests), 1e-3
        self._solved: Solved | None = None
        self._least, self._proof = math.inf, {}
        self._begun = False

    def advance(self, gap: Gap, stop: Stop) -> Stopped:
        """Look for something to release, then bound the optimum, and search on from there."""
        self.inner.clock = stop.clock
        if not self._begun:
            # The bound may take all the time that there is.
            plain = self.reduced()
            if (self.inner.terms.information(plain) <= self.inner.rooms).all():
                self.offer(plain)
            self.ascend(self.merged(plain), gap)
            self._begun = True
        self.refine(gap)
        starts = self._restarts if self._open(gap) else -1
        for start in range(starts + 1):
            if not self._open(gap) or stop():
                break
            self.ascend(self._start(start), gap)
        if not self._open(gap):
            return Stopped.TOLERANCE
        return Stopped.at_limit(stop.clock) if stop() else Stopped.NO_PROGRESS

    def found(self, gap: Gap) -> Found:
        """Return the best kernel, and what proves the ends."""
        if self._solved is None:  # interrupted
            self.inner.clock = Clock(0.0)
            self.refine(gap)
        assert self._solved is not None
        outputs, cells = len(self.problem.outputs), len(self._proof["cells"]["slopes"])
        statement = self.inner.statement() | {"outputs": outputs}
        witness, ends = proved(self.inner, self.kernel, statement, self._proof, prove_information)
        multipliers = self.inner.multipliers(self._solved)
        return Found(
            *ends,
            self.problem.shaped(witness),
            (statement, {"kernel": pack(witness, "<f8")}, self._proof),
            multipliers,
            {
                "method": METHOD,
                "iterations": self.steps,
                "outputs": outputs,
                "upper_of": "any number of outputs",
                "cells": cells,
                "multipliers": multipliers,
            },
        )

    def proof_seconds(self) -> float:
        """Return 0: the proof comes on top of the time limit."""
        return 0.0

    def _open(self, gap: Gap) -> bool:
        return not gap.closed(self.value, self.upper)

    def _start(self, number: int) -> Array:
        """Return distributions of R to start from: the relaxed problem's, then random ones."""
        if number == 0:
            return self.merged(self.reduced())
        return self._rng.dirichlet(np.full(self.requests, 0.5), len(self.problem.outputs))

    def refine(self, gap: Gap) -> None:
        """Bound the optimum, cutting the cells in use until interpolation costs little."""
        tree = self._tree
        most = min(CELLS, ENTRIES // len(self.inner.terms.weights))
        while True:
            solved = self.inner.solve(-tree.slopes.T, self._sharpness)
            self.steps += 1
            upper = float(entr(self._request).sum()) - solved.point.lower - self._told
            if upper < self._least:
                self._least, self._solved = upper, solved
                self._proof = {"cells": tree.to_dict(), "coalitions": solved.proof}
                self.upper = min(self.upper, upper)
            self._relaxed = self.inner.terms.rows(solved.point.kernel)
            tol = gap.allowed(self.upper)
            laws, masses = self._posteriors(self._relaxed)
            slack = masses * ((laws * tree.slopes).sum(axis=1) + entr(laws).sum(axis=1))
            total = float(slack.sum())
            if self.inner.clock.late or (total <= 0.5 * tol and self._sharpness <= 0.1 * tol):
                return
            if self.upper - self.value <= 0.5 * tol:
                return
            self._sharpness = max(0.01 * total, 0.1 * tol)
            if total <= 0.5 * tol:
                continue
            leaves = tree.leaves
            wide = [j for j in np.argsort(-slack) if slack[j] > 0.25 * tol / len(leaves)]
            wide = wide[: max(0, most - len(leaves))]
            if not any([tree.split(leaves[j], laws[j]) for j in wide]):
                return

    def reduced(self) -> Array:
        """Return a kernel's rows, as good as the relaxed problem's, with few columns that are used.

        An output is a distribution of (Z, X), and what it adds to I(R̂;R) and to each I(R̂;X|S)
        does not depend on the others. So the chances of the relaxed problem's outputs, of those
        that tell (z, x), and of one that tells nothing, are a linear program: a vertex of it uses
        no more outputs than there are rows and budgets.
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
        """Return the distributions of R given each column, merged to one for each output."""
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
        value = self.problem.value(rows)
        if value > self.value and missing >= 0:
            self.value, self.kernel = value, terms.kernel(np.pad(rows, ((0, 0), (0, missing))))
        return value

    def ascend(self, laws: Array, gap: Gap) -> None:
        """Maximize E log( q(R|r̂) / p(R) ), then let q be the posterior, and so on.

        For any q it is at most I(R̂;R), with equality at the posterior, so no step loses.
        """
        value, tol = -math.inf, gap.allowed(self.upper)
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

    def _posteriors(self, rows: Array) -> tuple[Array, Array]:
        """Return a kernel's distribution of R given each output, and that of the output."""
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
