"""`MinInformation`: the least worst-case mutual information at a worst-case distortion."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak._validation import Array, real_number
from cvxleak.certificates import Certificate
from cvxleak.certificates.balls import precision
from cvxleak.certificates.min_information import prove
from cvxleak.errors import CertificateError, InfeasibleError, SolverError
from cvxleak.iterative.saddle import least_lagrangian
from cvxleak.measures import mutual_information
from cvxleak.model import Channel, Distortion, Prior, SourceSet, as_prior
from cvxleak.model.sources import Part
from cvxleak.problems.check import Check
from cvxleak.problems.local_dp.general import RowProgram, least_distortion_rows
from cvxleak.problems.local_dp.linear import Mixture, supports
from cvxleak.problems.local_dp.statement import (
    Costs,
    Sources,
    candidate_channel,
    distance_from_hull,
    labeled_distortion,
    read_budget,
    read_costs,
    read_sources,
    worst_case_rows,
)
from cvxleak.result import Bound

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["MinInformation", "min_information"]

STEPS = (1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1.0)
"""Relative moves below the budget, in turn, until the exact check agrees."""

SMALLEST = 1e-9
"""Share of the weights below which a multiplier is the solver's rounding."""


@dataclass(frozen=True)
class MinInformation:
    """The problem: the least I(P;Q), against the worst source, of a channel that is useful for all.

    min over Q of max over P of I(P;Q), Q within the distortion budget for every source P. A union
    of convex parts is taken as given: over a finite set the largest of the single values counts.
    `SourceSet.convex_hull` makes it the hull instead, which can only leak more.

    Parameters
    ----------
    sources : SourceSet, Prior, or iterable of laws
        What is known about the true law.
    distortion_budget : float
        D >= 0, in the unit of d; at most 1 for Hamming distortion.
    distortion : Distortion or array_like, shape (k, m), optional
        d; Hamming distortion if left out.

    Raises
    ------
    ValidationError
        Arguments that are not valid or do not fit.

    Notes
    -----
    HAMMING (20) to (22). Information is convex in Q and concave in P, so for a convex set minimum
    and maximum can be exchanged (22); the paper's remark that any set may be replaced by its hull
    is right for the budget, not for the information. It is one convex program: max_P I(P;Q) over a
    convex part is min over output laws t of max_P sum_x P(x) D(Q_x || t).

    Examples
    --------
    Two point masses: with either alone the output may ignore the input, and even on their hull only
    if both may be wrong half of the time:

    >>> from cvxleak.model import SourceSet
    >>> from cvxleak.problems import MinInformation
    >>> sure = SourceSet([[1.0, 0.0], [0.0, 1.0]])
    >>> bound = MinInformation(sure.convex_hull(), 0.1).solve()
    >>> print(bound)  # log 2 - h(.1), HAMMING Lemma 5
    information: 0.3680642 to 0.3680642 nats (CERTIFIED)
    >>> MinInformation(sure, 0.1).solve().upper < 1e-7
    True
    """

    sources: SourceSet
    distortion_budget: float
    distortion: Distortion | None

    def __init__(
        self,
        sources: Sources,
        distortion_budget: float,
        distortion: Distortion | ArrayLike | None = None,
    ) -> None:
        known = read_sources(sources)
        costs = read_costs(distortion, known)
        given = None if distortion is None else labeled_distortion(costs, known)
        object.__setattr__(self, "sources", known)
        object.__setattr__(self, "distortion_budget", read_budget(distortion_budget, costs))
        object.__setattr__(self, "distortion", given)

    def solve(
        self,
        *,
        tol: float = 1e-7,
        solver: str = "CLARABEL",
        solver_options: Mapping[str, Any] | None = None,
        verbose: bool = False,
    ) -> Bound:
        """Return the bracket of the least worst-case information, in nats.

        Parameters
        ----------
        tol : float
            The gap to reach, in nats.
        solver : str
            Any conic solver of CVXPY with exponential cones.
        solver_options : mapping, optional
            What it gets beside.
        verbose : bool
            Whether it prints.

        Returns
        -------
        Bound
            A saddle point with its gap: `upper` is the worst-case information of the `witness`, a
            `Channel` that meets the budget exactly, as stored; `lower` is what no such channel
            avoids against the sources in ``stats["worst_sources"]``, mixed with
            ``stats["weights"]`` (one per convex part). ``shadow_prices["distortion_budget"]`` is
            the derivative in D.

        Raises
        ------
        InfeasibleError
            No channel meets the budget.
        ValidationError
            An option out of range.
        SolverError
            The solver came to no end.

        Examples
        --------
        >>> from cvxleak.problems import MinInformation
        >>> bound = MinInformation([[0.7, 0.2, 0.1], [0.6, 0.2, 0.2]], 0.2).solve()
        >>> bound.gap < 1e-7
        True
        """
        tol = real_number(tol, "tol", 0.0)
        begin = time.monotonic()
        costs = read_costs(self.distortion, self.sources)
        rough = least_distortion_rows(costs.matrix)
        least = self.sources.worst(costs.least())[0]
        if self.distortion_budget < least * (1 - 1e-12):
            raise self._too_small(least)
        best = RowProgram(self.sources, costs.matrix).at(1.0)
        flat = np.tile(best.least / best.least.sum(), (self.sources.size, 1))
        ends = self._ends(flat, None, {}, costs)
        if ends is not None:
            return self._bound(ends, flat, None, {}, costs, tol, begin, [], np.zeros(0), 0.0)
        # At the least distortion itself the channels have no interior.
        room = max(self.distortion_budget, least + 1e-7 * max(best.value - least, 0.0))
        channel, given, laws, weights, prices, price = self._conic(
            costs, room, solver, dict(solver_options or {}), verbose
        )
        hulls = [
            self._vertices(part, law) for part, law in zip(self.sources.parts, laws, strict=True)
        ]
        spread = [
            self._shares(part, law) for part, law in zip(self.sources.parts, laws, strict=True)
        ]
        mixed = [w * s for w, s in zip(weights, spread, strict=True)]
        costed = prices.law[:, None] * price * costs.matrix
        # From the solver's output laws: they are all but optimal, and the tangent may be anywhere.
        _, tangent, _ = least_lagrangian(hulls, mixed, costed, start=given, max_iterations=100)
        proof = {
            "channel": tangent.tolist(),
            "price": price,
            "mixture": prices.to_dict(),
            "parts": [
                {"weight": float(w), "mixture": law.to_dict()}
                for w, law in zip(weights, laws, strict=True)
            ],
        }
        found: list[tuple[float, float, Array, Array | None]] = []
        for rows in (tangent, channel):
            for repaired in self._repaired(rows, rough, costs):
                implied = np.array([law.law @ repaired for law in laws])
                both = [self._ends(repaired, t, proof, costs) for t in (implied, given)]
                if both[0] is None or both[1] is None:
                    continue
                found += [(*both[0], repaired, implied), (*both[1], repaired, given)]
                break
        if not found:
            raise self._too_small(least)
        lower, upper, witness, outputs = min(found, key=lambda entry: entry[1])
        sources = [Prior(law.law / law.law.sum(), self.sources.labels) for law in laws]
        ends = lower, upper
        return self._bound(
            ends, witness, outputs, proof, costs, tol, begin, sources, weights, -price
        )

    def check(self, candidate: Channel | Prior | ArrayLike, *, bound: Bound | None = None) -> Check:
        """Judge a channel, or a law that is claimed to be the worst source.

        Parameters
        ----------
        candidate : Channel or array_like of shape (k, m), or Prior or array_like of shape (k,)
            A channel's value is its largest information over the set; a law's is the least
            information for this law alone.
        bound : Bound, optional
            An earlier result of `solve`; computed if left out.

        Raises
        ------
        ValidationError
            A shape that does not fit, or entries that are not finite.

        Examples
        --------
        >>> from cvxleak.problems import MinInformation
        >>> check = MinInformation([[0.5, 0.5]], 0.1).check([[0.8, 0.2], [0.2, 0.8]])
        >>> check.feasible, round(check.value, 4)
        (False, 0.1927)
        """
        bound = self.solve() if bound is None else bound.to("nats")
        costs = read_costs(self.distortion, self.sources)
        given: Any = candidate
        if isinstance(given, Prior) or (not isinstance(given, Channel) and np.ndim(given) == 1):
            law = as_prior(given, self.sources.size, "candidate", self.sources.labels)
            alone = MinInformation([law], self.distortion_budget, self.distortion).solve()
            away = min(
                distance_from_hull(SourceSet._of([part], self.sources.labels), law.probabilities)[0]
                for part in self.sources.parts
            )
            return Check(alone.lower, {"law in the sources": away}, bound, maximize=True)
        channel, violations = candidate_channel(candidate, self.sources, costs)
        cost = (channel.matrix * costs.matrix).sum(axis=1)
        over = self.sources.worst(cost)[0] - self.distortion_budget
        violations["worst-case distortion within the budget"] = max(0.0, over)
        return Check(worst_information(self.sources, channel), violations, bound, maximize=False)

    def to_cvxpy(self) -> cp.Problem:
        """Return the problem in plain CVXPY, with the channel as its variable ``channel``.

        Examples
        --------
        >>> from cvxleak.problems import MinInformation
        >>> problem = MinInformation([[0.5, 0.5]], 0.1).to_cvxpy()
        >>> round(float(problem.solve()), 5)
        0.36806
        """
        costs = read_costs(self.distortion, self.sources)
        return self._program(costs, self.distortion_budget)[0]

    def _program(
        self, costs: Costs, budget: float
    ) -> tuple[cp.Problem, list[Any], list[list[Any]], list[cp.Variable]]:
        """Return the program, the rows of the budget, and rows and output law of each part."""
        import cvxpy as cp

        from cvxleak.constraints import row_stochastic

        size, outputs = costs.matrix.shape
        Q, ceiling = cp.Variable((size, outputs), name="channel"), cp.Variable()
        useful = worst_case_rows(self.sources, cp.sum(cp.multiply(costs.matrix, Q), axis=1), budget)
        rows: list[Any] = [*row_stochastic(Q), *useful]
        private: list[list[Any]] = []
        laws: list[cp.Variable] = []
        for part in self.sources.parts:
            t = cp.Variable(outputs, nonneg=True)
            laws.append(t)
            divergence = cp.sum(cp.rel_entr(Q, cp.outer(np.ones(size), t)), axis=1)
            alone = SourceSet._of([part], self.sources.labels)
            private.append(worst_case_rows(alone, divergence, ceiling))
            rows += [cp.sum(t) == 1, *private[-1]]
        return cp.Problem(cp.Minimize(ceiling), rows), useful, private, laws

    def _conic(
        self, costs: Costs, budget: float, solver: str, options: dict[str, Any], verbose: bool
    ) -> tuple[Array, Array, list[Mixture], Array, Mixture, float]:
        """Return the solver's channel and output laws, and its multipliers.

        These are the worst law and the weight of each part, the mixture that the budget is for, and
        the price of it.
        """
        import cvxpy as cp

        problem, useful, private, output_laws = self._program(costs, budget)
        try:
            problem.solve(solver=solver, verbose=verbose, **options)
        except cp.SolverError as error:
            raise SolverError(f"solver: {error}") from error
        Q = problem.var_dict["channel"].value
        if Q is None:
            raise SolverError(f"solver: {solver} ended with {problem.status}")
        outputs = np.array([np.maximum(np.asarray(t.value), 1e-300) for t in output_laws])
        laws, weights = [], []
        for part, rows in zip(self.sources.parts, private, strict=True):
            weight, law = _multipliers(part, rows)
            laws.append(law)
            weights.append(weight)
        price, mixture = _multipliers(Part(self.sources.points, self.sources.polytopes), useful)
        shares = np.array(weights) / max(sum(weights), 1e-300)
        shares = np.where(shares < SMALLEST, 0.0, shares)
        return np.maximum(Q, 0.0), outputs, laws, shares / shares.sum(), mixture, price

    def _repaired(self, rows: Array, rough: Array, costs: Costs) -> Iterator[Array]:
        """Yield the channel, mixed with that of least distortion until it meets the budget."""
        rows = rows / rows.sum(axis=1, keepdims=True)
        worst = self.sources.worst((rows * costs.matrix).sum(axis=1))[0]
        least = self.sources.worst((rough * costs.matrix).sum(axis=1))[0]
        if worst < self.distortion_budget * (1 - STEPS[0]):
            yield rows
        for step in STEPS:
            goal = max(self.distortion_budget * (1 - step), least)
            share = 1.0 if worst <= least else min(max((worst - goal) / (worst - least), step), 1.0)
            yield (1 - share) * rows + share * rough

    def _ends(
        self, channel: Array, outputs: Array | None, proof: dict[str, Any], costs: Costs
    ) -> tuple[float, float] | None:
        try:
            with precision():
                return prove(self._problem(costs), self._witness(channel, outputs, costs), proof)
        except CertificateError:
            return None

    def _problem(self, costs: Costs) -> dict[str, Any]:
        return {
            "sources": self.sources.parts_to_list(),
            "distortion": costs.stored,
            "budget": self.distortion_budget,
        }

    def _witness(self, channel: Array, outputs: Array | None, costs: Costs) -> dict[str, Any]:
        cost = (channel * costs.matrix).sum(axis=1)
        laws, bounds = [], []
        for k, part in enumerate(self.sources.parts):
            t = channel.mean(axis=0) if outputs is None else outputs[k]
            laws.append(None if part.is_point else t.tolist())
            alone = SourceSet._of([part], self.sources.labels)
            bounds.append(
                [
                    {key: entry[key] for key in ("level", "multipliers")}
                    for entry in supports(alone, _divergences(channel, t))
                ]
                if part.polytopes
                else []
            )
        return {
            "channel": channel.tolist(),
            "supports": supports(self.sources, cost),
            "outputs": laws,
            "output_supports": bounds,
        }

    def _bound(
        self,
        ends: tuple[float, float],
        channel: Array,
        outputs: Array | None,
        proof: dict[str, Any],
        costs: Costs,
        tol: float,
        begin: float,
        worst: list[Prior],
        weights: Array,
        slope: float,
    ) -> Bound:
        certificate = Certificate(
            "min-information",
            self._problem(costs),
            *ends,
            self._witness(channel, outputs, costs),
            proof,
        )
        return Bound.proved(
            "information",
            *ends,
            tol=0.0,
            absolute=tol,
            witness=Channel(channel, self.sources.labels, costs.outputs),
            certificate=certificate,
            shadow_prices={"distortion_budget": slope},
            stats={
                "seconds": time.monotonic() - begin,
                "worst_sources": tuple(worst),
                "weights": tuple(weights.tolist()),
            },
        )

    def _too_small(self, least: float) -> InfeasibleError:
        return InfeasibleError(
            f"distortion_budget: {self.distortion_budget!r} is met by no channel; the least "
            f"worst-case distortion is {math.nextafter(least * (1 + 1e-12), math.inf)!r}"
        )

    @staticmethod
    def _vertices(part: Part, law: Mixture) -> Array:
        members = [
            body.center if exact is None else np.array([float(p) for p in exact])
            for body, (_, exact) in zip(part.polytopes, law.members, strict=True)
        ]
        return np.vstack([part.points, *members])

    @staticmethod
    def _shares(part: Part, law: Mixture) -> Array:
        return np.concatenate([law.weights, [weight for weight, _ in law.members]])


def min_information(
    sources: Sources,
    distortion_budget: float,
    distortion: Distortion | ArrayLike | None = None,
    *,
    tol: float = 1e-7,
    solver: str = "CLARABEL",
    solver_options: Mapping[str, Any] | None = None,
) -> Bound:
    """Return the least worst-case information: `MinInformation(...).solve(...)`.

    Parameters
    ----------
    sources, distortion_budget, distortion
        As for `MinInformation`.
    tol, solver, solver_options
        As for `MinInformation.solve`.

    Examples
    --------
    >>> from cvxleak.problems.local_dp import min_information, min_local_dp
    >>> table = [[0.7, 0.15, 0.06, 0.04, 0.03, 0.02]]
    >>> bool(min_information(table, 0.1).upper < min_local_dp(table, 0.1).lower)
    True
    """
    return MinInformation(sources, distortion_budget, distortion).solve(
        tol=tol, solver=solver, solver_options=solver_options
    )


def worst_information(sources: SourceSet, channel: Channel) -> float:
    """Return max over the set of I(P;Q); on parts that are not single laws an upper end of it."""
    values = []
    for part in sources.parts:
        if part.is_point:
            values.append(mutual_information(part.points[0] / part.points[0].sum(), channel))
        else:
            alone = SourceSet._of([part], sources.labels)
            values.append(_largest_information(alone, channel.matrix))
    return max(values)


def _largest_information(sources: SourceSet, matrix: Array) -> float:
    """Maximize the concave I(P;Q) by Frank and Wolfe's method; return its least upper end."""
    from scipy.optimize import minimize_scalar

    p, least = sources.worst(np.zeros(sources.size))[1].probabilities, math.inf
    for _ in range(500):
        divergence = _divergences(matrix, p @ matrix)
        upper, vertex = sources.worst(divergence)
        least = min(least, upper)
        value = float(p @ np.where(p > 0, divergence, 0.0))
        if least - value <= 1e-9:
            break
        direction = vertex.probabilities - p

        def loss(step: float, p: Array = p, direction: Array = direction) -> float:
            law = p + step * direction
            return -float(law @ np.where(law > 0, _divergences(matrix, law @ matrix), 0.0))

        step: Any = minimize_scalar(loss, bounds=(0.0, 1.0), method="bounded")
        p = p + float(step.x) * direction
    return least


def _divergences(matrix: Array, t: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(matrix > 0, matrix * np.log(matrix / t), 0.0)
    total = terms.sum(axis=1)
    return np.where(np.isfinite(total), total, 1e6)


def _multipliers(part: Part, rows: list[Any]) -> tuple[float, Mixture]:
    """Return the total weight of a part's rows, and the law that their multipliers mix."""
    duals = [np.atleast_1d(np.asarray(row.dual_value, dtype=float)) for row in rows]
    weights = np.maximum(duals.pop(0), 0.0) if len(part.points) else np.zeros(0)
    heads, laws = [], []
    for body, mass, head in zip(part.polytopes, duals[::2], duals[1::2], strict=True):
        heads.append(max(float(head[0]), 0.0))
        positive = np.maximum(mass, 0.0)
        laws.append(positive / positive.sum() if positive.sum() > 0 else body.center)
    total = float(weights.sum()) + sum(heads)
    if total <= 0:
        weights, heads = np.ones(len(weights)), [1.0] * len(heads)
    scale = float(weights.sum()) + sum(heads)
    shares = np.concatenate([weights, heads]) / scale
    shares = np.where(shares < SMALLEST, 0.0, shares)
    shares = shares / shares.sum()
    law = shares[: len(weights)] @ part.points
    members = []
    for body, share, near in zip(part.polytopes, shares[len(weights) :], laws, strict=True):
        exact = body.member(near) if share > 0 else None
        members.append((float(share), exact))
        if exact is not None:
            law = law + share * np.array([float(p) for p in exact])
    return total, Mixture(law, shares[: len(weights)], tuple(members))
