"""Approximate local differential privacy: the whole channel in one linear program.

(epsilon, delta): sum_y max(0, Q(y|x) - e^epsilon Q(y|x')) <= delta for all inputs x != x'. With
delta > 0 the columns are no longer independent, so nothing is eliminated: k m entries, and
k (k-1) m slacks for the pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from cvxleak.core.clock import Clock
from cvxleak.core.errors import SolverError
from cvxleak.core.validation import Array
from cvxleak.local_dp.general import least_distortion_rows
from cvxleak.local_dp.infinite_epsilon import comparisons_to_list, infinite_epsilon_proof
from cvxleak.local_dp.linear import Mixture, SourceProgram
from cvxleak.local_dp.proof_candidates import STEPS, Attempt
from cvxleak.solvers.linear import LinearSolver
from cvxleak.sources import SourceSet

__all__ = [
    "ApproximateOptimum",
    "ApproximateProgram",
    "approximate_attempts",
    "least_ratio_for_budget",
]

SMALLEST = 1e-13
"""Multipliers below this share of the largest are rounding."""

DEFICIT = (1e-9, 1e-7, 1e-5, 1e-3)
"""Relative deficit of the budgets whose channels are tried."""


@dataclass(frozen=True)
class ApproximateOptimum:
    """What is optimal at one e^epsilon.

    Attributes
    ----------
    ratio, value : float
    channel : ndarray, shape (k, m)
        Rows divided by their sums, up to rounding (epsilon, delta)-private.
    mixture : Mixture
    comparisons : ndarray, shape (k, k, m)
        h(x, x', y) >= 0; any such numbers prove a lower bound.
    proved : float
        The lower bound on the distortion that they prove, up to rounding.
    slope : float
        Derivative of `value` in the ratio.
    """

    ratio: float
    value: float
    channel: Array
    mixture: Mixture
    comparisons: Array
    proved: float
    slope: float

    def to_list(self) -> list[dict[str, Any]]:
        """Return the comparisons as certificates store them."""
        return comparisons_to_list(self.comparisons)


class ApproximateProgram:
    """The program for one source set, one distortion d of shape (k, m) and one delta > 0."""

    def __init__(
        self,
        sources: SourceSet,
        distortion: Array,
        delta: float,
        *,
        solver: LinearSolver | None = None,
    ) -> None:
        k, m = distortion.shape
        self._d, self._delta = distortion, delta
        self._scale = max(float(distortion.max()), np.finfo(float).tiny)
        self._first, self._second = np.nonzero(~np.eye(k, dtype=bool))
        pairs = len(self._first)
        self._entries, self._slacks = k * m, pairs * m
        # Columns Q, the slacks s(x, x', y), theta.
        scaled = distortion / self._scale
        cost = sparse.csr_array(
            (scaled.ravel(), (np.repeat(np.arange(k), m), np.arange(k * m))),
            (k, k * m + pairs * m + 1),
        )
        ceiling = np.zeros(k * m + pairs * m + 1)
        ceiling[-1] = 1.0
        self._program = SourceProgram(sources, cost, ceiling, solver=solver)
        row = np.arange(self._slacks)
        y = np.tile(np.arange(m), pairs)
        shape = (self._slacks, k * m)
        ones = np.ones(self._slacks)
        self._plus = sparse.csr_array((ones, (row, np.repeat(self._first, m) * m + y)), shape)
        self._minus = sparse.csr_array((ones, (row, np.repeat(self._second, m) * m + y)), shape)
        zero = sparse.csr_array((pairs, k * m))
        group = sparse.csr_array((ones, (np.repeat(np.arange(pairs), m), row)), (pairs, row.size))
        self._sums = sparse.hstack([zero, group, sparse.csr_array((pairs, 1))])
        stochastic = np.repeat(np.eye(k), m, axis=1)
        self._stochastic = sparse.hstack(
            [sparse.csr_array(stochastic), sparse.csr_array((k, self._slacks + 1))]
        )

    def at(self, ratio: float) -> ApproximateOptimum:
        """Return the optimum at one e^epsilon >= 1.

        Raises
        ------
        SolverError
            The linear program could not be solved.
        """
        k, m = self._d.shape
        # Divided by the ratio, so that rows stay of size 1.
        rows = sparse.hstack(
            [
                self._plus / ratio - self._minus,
                -sparse.eye_array(self._slacks) / ratio,
                sparse.csr_array((self._slacks, 1)),
            ]
        )
        total = self._entries + self._slacks + 1
        objective = np.zeros(total)
        objective[-1] = 1.0
        pairs = len(self._first)
        best = self._program.minimize(
            objective,
            [(0.0, 1.0)] * (total - 1) + [(None, None)],
            sparse.vstack([rows, self._sums]),
            np.concatenate([np.zeros(self._slacks), np.full(pairs, self._delta)]),
            self._stochastic,
            np.ones(k),
        )
        if best is None or best.mixture is None:
            raise SolverError("HiGHS: found no optimum where there is one")
        channel = np.maximum(best.columns[: self._entries].reshape(k, m), 0.0)
        channel /= channel.sum(axis=1, keepdims=True)
        h = best.rows[: self._slacks] * self._scale / ratio
        h[h < SMALLEST * max(h.max(initial=0.0), SMALLEST)] = 0.0
        comparisons = np.zeros((k, k, m))
        comparisons[self._first, self._second] = h.reshape(pairs, m)
        reduced = (
            best.mixture.law[:, None] * self._d
            + comparisons.sum(axis=1)
            - ratio * comparisons.sum(axis=0)
        )
        proved = reduced.min(axis=1).sum() - self._delta * comparisons.max(axis=2).sum()
        slope = -float((comparisons.sum(axis=0) * channel).sum())
        return ApproximateOptimum(
            ratio,
            best.value * self._scale,
            channel,
            best.mixture,
            comparisons,
            float(proved),
            slope,
        )


def least_ratio_for_budget(
    program: ApproximateProgram, budget: float, tol: float, clock: Clock
) -> tuple[ApproximateOptimum | None, ApproximateOptimum, int]:
    """Return the optima on both sides of the least ratio, `tol` apart in the logarithm.

    The first one proves that its ratio is too small (None if the ratio 1 is enough), the second
    meets the budget. Newton's steps are moved by the tolerance to either side in turn, so that both
    bounds approach the optimum.
    """
    best, done = program.at(1.0), 1
    if best.value <= budget:
        return None, best, done
    below, above = best, None
    trial = 2.0
    while True:
        try:
            best, done = program.at(trial), done + 1
        except SolverError:
            if not clock.late:
                raise
            return below, above or best, done
        if best.value <= budget:
            above = best
        elif best.proved > budget:
            below = best
        if above is None:
            if trial >= 1e9 or clock.late:
                return below, best, done
            trial = trial**2
            continue
        if math.log(above.ratio / below.ratio) <= tol or clock.late or done > 100:
            return below, above, done
        newton = best.ratio + (best.value - budget) / -best.slope if best.slope < 0 else math.inf
        side = 1 + tol / 4 if best is below else 1 - tol / 4
        trial = newton * side
        if not below.ratio < trial < above.ratio:
            trial = math.sqrt(below.ratio * above.ratio)


def approximate_attempts(
    sources: SourceSet,
    distortion: Array,
    budget: float,
    delta: float,
    tol: float,
    solver: LinearSolver,
    pure: Iterable[Attempt],
) -> Iterator[Attempt]:
    """Yield what the steps over the full linear program find, then what `pure` privacy does.

    At a border the program's channels miss the budget by its rounding, and those for a slightly
    smaller budget do not. Channels of pure privacy, for which delta is not needed, are left.
    """
    unbounded = infinite_epsilon_proof(sources, distortion, budget, delta)
    if unbounded is not None:
        yield Attempt([least_distortion_rows(distortion)], [unbounded[0]], unbounded[1], -math.inf)
        return
    program = ApproximateProgram(sources, distortion, delta, solver=solver)
    clock = solver.clock
    for less in (0.0, *DEFICIT):
        try:
            found = least_ratio_for_budget(program, budget * (1 - less), max(tol / 2, 1e-10), clock)
        except SolverError:
            if clock.late:
                break
            if not less:
                raise
            continue
        yield _attempt(found, distortion, budget)
    if clock.late:
        yield Attempt([least_distortion_rows(distortion)], programs=0)
        return
    for attempt in pure:
        yield Attempt(attempt.channels, programs=attempt.programs)


def _attempt(
    found: tuple[ApproximateOptimum | None, ApproximateOptimum, int],
    distortion: Array,
    budget: float,
) -> Attempt:
    below, above, count = found
    rough = least_distortion_rows(distortion)

    def channels() -> Iterator[Array]:
        # A little of one distribution for all inputs, so that no zero is beside a positive entry.
        flat = np.full(rough.shape, 1 / rough.shape[1])
        for step in STEPS[1:]:
            yield (1 - step) * above.channel + step * flat
            mixed = (1 - step) * above.channel + step * rough
            yield (1 - step) * mixed + step * flat
        yield above.channel
        yield rough

    def proofs() -> Iterator[dict[str, Any]]:
        if below is not None and below.ratio > 1 and below.proved > budget:
            yield {
                "mixture": below.mixture.to_dict(),
                "comparisons": below.to_list(),
                "level": below.ratio,
            }

    price = 1 / (above.slope * above.ratio) if above.slope < 0 else 0.0
    return Attempt(channels(), proofs(), above.mixture, price, count, math.log(above.ratio))
