"""The common part of the problems on source sets: data, candidates, and programs in CVXPY.

`SourceProblem` is the base of all three, `BudgetProblem` that of the two with a distortion budget.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import fmpq
from numpy.typing import ArrayLike

from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.core.numbers import same_numbers, smallest
from cvxleak.core.validation import Array, read_only, real_number, short
from cvxleak.core.wording import counted
from cvxleak.kernel.numbers import upper
from cvxleak.local_dp.general import least_distortion_rows
from cvxleak.local_dp.linear import SourceProgram, supports
from cvxleak.model import Channel, Distortion, Prior, as_prior
from cvxleak.model.distortion import named_distortion
from cvxleak.problem import Bound, Check, Problem
from cvxleak.problem.candidates import plain, read_rows
from cvxleak.problem.problem import Toward, mixtures
from cvxleak.proofs.bounds.source_sets import read_parts, worst_case
from cvxleak.proofs.exact import rational
from cvxleak.sources import SourceSet, as_sources

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = [
    "BudgetProblem",
    "Costs",
    "SourceProblem",
    "Sources",
    "candidate_channel",
    "distance_from_hull",
    "private_program",
    "read_budget",
    "read_costs",
    "worst_case_rows",
]

Sources = SourceSet | Iterable[Prior | ArrayLike] | Prior


@dataclass(frozen=True)
class Costs:
    """d(x, y) for the outcomes of a source set, and whether it is Hamming distortion."""

    matrix: Array
    outputs: tuple[Hashable, ...]
    is_hamming: bool

    @property
    def stored(self) -> Any:
        """What certificates store."""
        return "hamming" if self.is_hamming else self.matrix.tolist()

    def least(self) -> Array:
        """Return min_y d(x, y) for each input."""
        return self.matrix.min(axis=1)


@dataclass(frozen=True, eq=False)
class SourceProblem(Problem):
    """A problem on the channels from the outcomes of a source set to outputs.

    Attributes
    ----------
    sources : SourceSet
    distortion : Distortion or None
        d, with the labels of the outcomes; None is Hamming distortion.
    """

    sources: SourceSet
    distortion: Distortion | None

    def _read(self, sources: Sources, distortion: Distortion | ArrayLike | None) -> Costs:
        """Set the data that all problems on source sets have, and return the distortion."""
        known = read_sources(sources)
        costs = read_costs(distortion, known)
        given = None if distortion is None else labeled_distortion(costs, known)
        object.__setattr__(self, "sources", known)
        object.__setattr__(self, "distortion", given)
        return costs

    def _labeled(self, rows: Array) -> Channel:
        return Channel(rows, self.sources.labels, self.costs.outputs)

    def _stored(self, rows: Array) -> dict[str, Any]:
        """Return a channel as certificates hold it."""
        cost = (rows * self.costs.matrix).sum(axis=1)
        return {"channel": rows.tolist(), "supports": supports(self.sources, cost)}

    @property
    def costs(self) -> Costs:
        """The distortion as an array, and its outputs."""
        return read_costs(self.distortion, self.sources)

    def worst_distortion(self, channel: Array) -> float:
        """Return max over the sources of the expected distortion of a channel."""
        return self.sources.worst((channel * self.costs.matrix).sum(axis=1))[0]


@dataclass(frozen=True, eq=False)
class BudgetProblem(SourceProblem):
    """A problem on the channels whose distortion is within a budget for every source.

    Attributes
    ----------
    budget : float
        D >= 0, in the unit of d; at most 1 for Hamming distortion.
    """

    budget: float

    def check(
        self, candidate: Channel | Prior | ArrayLike, *, bound: Bound | None = None, **options: Any
    ) -> Check:
        """Check a channel, or a distribution that is claimed to be the worst source.

        Parameters
        ----------
        candidate : Channel or array_like of shape (k, m), or Prior or array_like of shape (k,)
            The value of a channel is its leakage; that of a distribution is the least leakage of a
            channel for this source alone, which for no source of the set exceeds the optimum.
        bound : Bound, optional
            An earlier result of `solve`; computed with `options` if left out.

        Raises
        ------
        ValidationError
            A shape that does not match, or entries that are not finite.
        """
        given: Any = plain(candidate)
        if isinstance(given, Channel) or not (isinstance(given, Prior) or np.ndim(given) == 1):
            return super().check(given, bound=bound, **options)
        found = self.solve(**options) if bound is None else bound.to("nats")
        law = as_prior(given, self.sources.size, "candidate", self.sources.labels)
        alone = replace(self, sources=as_sources([law]))
        return Check(alone.solve().lower, self._away(law), found, maximize=True)

    def _measure(self, candidate: Channel | ArrayLike) -> tuple[float, dict[str, float]]:
        channel, violations = candidate_channel(candidate, self.sources, self.costs)
        over = self.worst_distortion(channel.matrix) - self.budget
        violations["worst-case distortion within the budget"] = max(0.0, over)
        return self._leakage(channel), violations

    def _toward(self, candidate: Channel | ArrayLike, bound: Bound) -> Toward:
        rows = candidate_channel(candidate, self.sources, self.costs)[0].matrix
        return mixtures(rows, least_distortion_rows(self.costs.matrix), self._labeled, self._stored)

    @abstractmethod
    def _leakage(self, channel: Channel) -> float:
        """Return what a channel leaks."""

    @abstractmethod
    def _away(self, law: Prior) -> dict[str, float]:
        """Return how far a distribution is from the sources."""

    def _least_budget(self) -> fmpq:
        """Return the least budget that some channel meets.

        Raises
        ------
        InfeasibleError
            It is more than the budget.
        """
        least = least_budget(self.sources, self.costs)
        if rational(self.budget) < least:
            raise self._unmet(least)
        return least

    def _unmet(self, least: fmpq) -> InfeasibleError:
        """Return the error for a budget that no channel meets."""
        return InfeasibleError(
            f"budget: {self.budget!r} is met by no channel; the least "
            f"worst-case distortion is {upper(least)!r}"
        )


def read_costs(distortion: Distortion | ArrayLike | None, sources: SourceSet) -> Costs:
    """Return the distortion between a source set's outcomes and the outputs; None is Hamming.

    A `Distortion` is matched to the outcomes by label, an array by position.
    """
    size, labels = sources.size, sources.labels
    hamming = 1.0 - np.eye(size)
    if distortion is None:
        return Costs(read_only(hamming), labels, True)
    if isinstance(distortion, str):
        distortion = named_distortion(distortion, labels, None, "distortion")
    if isinstance(distortion, Distortion):
        unnamed = tuple(range(size))
        given = distortion
        if labels != given.inputs and unnamed != labels:
            given = given.select(inputs=labels, name="distortion")
        matrix, outputs = given.matrix, given.outputs
    else:
        matrix = Distortion(distortion).matrix
        outputs = labels if matrix.shape[1] == size else tuple(range(matrix.shape[1]))
    if len(matrix) != size:
        raise ValidationError(
            f"distortion: found {counted(len(matrix), 'row')}; "
            f"the sources have {counted(size, 'outcome')}"
        )
    same = matrix.shape == hamming.shape and same_numbers(matrix, hamming)
    return Costs(matrix, outputs, bool(same))


def labeled_distortion(costs: Costs, sources: SourceSet) -> Distortion:
    """Return the distortion with the labels of the outcomes and of the outputs."""
    return Distortion(costs.matrix, sources.labels, costs.outputs)


def read_budget(budget: float, costs: Costs) -> float:
    """Return a distortion budget: at most 1 for Hamming distortion."""
    if costs.is_hamming:
        return real_number(budget, "budget", 0.0, 1.0)
    return real_number(budget, "budget", 0.0, open_high=True)


def read_sources(sources: Sources) -> SourceSet:
    """Return a source set, or say what is wrong with the argument."""
    try:
        return as_sources(sources)
    except ValidationError as error:
        raise ValidationError(f"sources: {error}") from error


def least_budget(sources: SourceSet, costs: Costs) -> fmpq:
    """Return the least budget that some channel meets.

    Exactly for distributions; for polytopes up to the rounding of a linear program's multipliers.
    """
    exact = [rational(smallest(row)) for row in costs.matrix.tolist()]
    _, parts = read_parts(sources.parts_to_list())
    return worst_case(parts, exact, supports(sources, costs.matrix.min(axis=1)))


def candidate_channel(
    candidate: Channel | ArrayLike, sources: SourceSet, costs: Costs
) -> tuple[Channel, dict[str, float]]:
    """Return the channel that a candidate stands for, and how far it is from being one.

    A `Channel` is matched by its labels, anything else by position. The channel is the positive
    part, each row divided by its sum.

    Raises
    ------
    ValidationError
        Another shape, entries that are not finite, or a row without a positive entry.
    """
    shape = costs.matrix.shape
    if isinstance(candidate, Channel):
        same = set(candidate.inputs) == set(sources.labels)
        if same and set(candidate.outputs) == set(costs.outputs):
            candidate = candidate.select(sources.labels, costs.outputs)
        matrix = candidate.matrix
    else:
        try:
            matrix = np.asarray(candidate, dtype=float)
        except (TypeError, ValueError) as error:
            raise ValidationError(
                f"candidate: expected a channel, found {short(candidate)}"
            ) from error
    if matrix.shape != shape or not np.isfinite(matrix).all():
        raise ValidationError(
            f"candidate: found shape {matrix.shape}; finite numbers of shape {shape} are needed"
        )
    rows, violations = read_rows(matrix)
    return Channel(rows, sources.labels, costs.outputs), violations


def distance_from_hull(sources: SourceSet, law: Array) -> tuple[float, Array]:
    """Return the L1 distance of a distribution from the sources' hull, and the proving direction.

    max over -1 <= a <= 1 of a . law - max_P a . P.
    """
    size = sources.size
    program = SourceProgram(sources, np.eye(size, size + 1), np.append(np.zeros(size), 1.0))
    best = program.minimize(np.append(-law, 1.0), [(-1.0, 1.0)] * size + [(None, None)])
    if best is None:  # a = 0 is feasible
        return 0.0, np.zeros(size)
    return max(0.0, -best.value), best.columns[:size]


def worst_case_rows(sources: SourceSet, cost: Any, ceiling: Any) -> list[cp.Constraint]:
    """Return constraints that say P . cost <= ceiling for every source P.

    `cost` is a convex expression of shape (k,), `ceiling` a concave one. For a polytope the dual of
    its linear program is written out, with variables of its own.
    """
    import cvxpy as cp

    rows: list[Any] = []
    if len(sources.points):
        rows.append(sources.points @ cost <= ceiling)
    for body in sources.polytopes:
        level, rest = cp.Variable(), cp.Variable(sources.size)
        most = cp.maximum(cp.multiply(body.upper, rest), cp.multiply(body.lower, rest))
        total, reduced = level + cp.sum(most), cost - level
        if len(body.bound):
            multipliers = cp.Variable(len(body.bound), nonneg=True)
            total, reduced = total + body.bound @ multipliers, reduced - body.matrix.T @ multipliers
        rows += [reduced <= rest, total <= ceiling]
    return rows


def private_program(
    sources: SourceSet, costs: Costs, epsilon: float | cp.Parameter, delta: float
) -> cp.Problem:
    """Return the least worst-case distortion at an epsilon, with the channel as ``channel``."""
    import cvxpy as cp

    from cvxleak.constraints import local_dp, row_stochastic

    Q = cp.Variable(costs.matrix.shape, name="channel")
    ceiling = cp.Variable()
    cost = cp.sum(cp.multiply(costs.matrix, Q), axis=1)
    rows = row_stochastic(Q) + local_dp(Q, epsilon, delta)
    return cp.Problem(cp.Minimize(ceiling), rows + worst_case_rows(sources, cost, ceiling))
