"""Least leakage for a distortion budget (LEAKAGE Problem 2), with both ends proved."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.clock import Clock
from cvxleak.core.errors import SolveInterrupted, ValidationError
from cvxleak.core.validation import Array, instance, one_of, real_number
from cvxleak.design.designed import Design
from cvxleak.design.feasible import snapped
from cvxleak.design.goal import Goal
from cvxleak.design.search import Options, Search
from cvxleak.design.statement import DesignData
from cvxleak.design.user_constraints import OwnConstraints, own_violations
from cvxleak.model import Channel, Distortion, Mechanism, Prior, Query, SourceSet
from cvxleak.problem.bound import Bound, Status, Stopped
from cvxleak.problem.check import Check

__all__ = ["STRATEGIES", "TIME_LIMIT", "TOLERANCE", "MinLeakage", "min_leakage"]

Law = Prior | ArrayLike
Laws = SourceSet | Sequence[Law]
Objective = Literal["record", "group", "total"]
Strategy = Literal["cutting_set", "alternate"]

TOLERANCE = 1e-3
TIME_LIMIT = 300.0
STRATEGIES = ("cutting_set", "alternate")


@dataclass(frozen=True)
class MinLeakage:
    """The problem min over channels q(y|x) with E d(f(X), Y) <= D of the maximal leakage L(q).

    L(q) is the largest I(X_i;Y) over records i and adversaries with H(X) >= b (LEAKAGE Problem 2),
    or over given priors, of which there are finitely many. I is convex in q for each of them, so L
    is convex too, and the bracket that is found is about the global optimum.

    Parameters
    ----------
    query : Query
        f, which the distortion is about. The channel sees the dataset: it has one row for each
        dataset, or for each class of datasets of which a symmetry shows that they may share one.
        Rows that see more than f(x) can leak less.
    distortion : Distortion or array_like, shape (values of f, outputs)
        d(f(x), y).
    budget : float
        D, in the unit of d; inf for none.
    entropy_floor : float, optional
        b, in nats, from 0 to log|X|.
    source : Prior or array_like, optional
        The true law p0 of the dataset, by dataset, or by value of the query (then all datasets of
        one value are equally likely); uniform if left out.
    sources : sequence of laws or SourceSet, optional
        Several of them instead: D holds for each.
    outputs : iterable of hashable, optional
        Which outputs of a `Distortion` may be released, or labels for the columns of an array.
    constraints : callable or sequence of callables
        The user's own constraints: each gets the CVXPY channel variable, one row per row of `rows`,
        and returns CVXPY constraints or lists of them.
    objective : {"record", "group", "total"}
        Leakage about the worst record, about the worst group of `size` records, or about the whole
        dataset.
    size : int
        For "group".
    priors : sequence of laws, optional
        The adversaries, instead of `entropy_floor`: then this is one convex program.
    rows : {"auto", "orbits", "datasets", "query"}
        "auto": one row per orbit of the symmetries that are found, or one per dataset where there
        are own constraints, which may not be invariant. "query" restricts the problem to channels
        q(y|f(x)).

    Raises
    ------
    ValidationError
        Arguments of the wrong kind.
    InfeasibleError
        b above log|X|.

    Notes
    -----
    What is minimized over: `cvxleak.proofs.bounds.design_rows` proves that rows may be shared.
    What proves the ends: `cvxleak.proofs.design`.

    Own constraints enter the lower end as half-spaces, affine ones as they are stated and others by
    supporting half-spaces, with multipliers that the certificate checks exactly
    (`cvxleak.proofs.bounds.user_rows`). The witness meets them, equations up to rounding; where
    that cannot be done, nothing is CERTIFIED, and ``witness.own_violation`` says how much is
    missed.

    Examples
    --------
    >>> from cvxleak.model import AdditiveQuery, Distortion, RecordSpace
    >>> from cvxleak.design import MinLeakage
    >>> parity = AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3, modulus=2)
    >>> wrong = Distortion.hamming([0, 1])
    >>> design = MinLeakage(parity, distortion=wrong, budget=0.1, entropy_floor=1.5).solve(tol=1e-5)
    >>> print(design)
    least leakage: 0.3276... to 0.3276... nats (CERTIFIED)
    >>> design.witness.channel.shape
    (2, 2)
    """

    problem: DesignData
    budget: float

    def __init__(
        self,
        query: Query,
        *,
        distortion: Distortion | ArrayLike,
        budget: float,
        entropy_floor: float | None = None,
        source: Law | None = None,
        sources: Laws | None = None,
        outputs: Iterable[Hashable] | None = None,
        constraints: OwnConstraints = (),
        objective: Objective = "record",
        size: int = 1,
        priors: Laws | None = None,
        rows: str = "auto",
    ) -> None:
        problem = DesignData(
            query,
            distortion,
            entropy_floor,
            source,
            sources,
            outputs,
            constraints,
            objective,
            size,
            priors,
            rows,
        )
        object.__setattr__(self, "problem", problem)
        object.__setattr__(self, "budget", real_number(budget, "budget", 0.0))

    def solve(
        self,
        *,
        tol: float = TOLERANCE,
        time_limit: float | None = TIME_LIMIT,
        strategy: Strategy = "cutting_set",
        solver: str | None = None,
        solver_options: dict[str, Any] | None = None,
        rng: int | np.random.Generator | None = 0,
        verbose: bool = False,
    ) -> Bound:
        """Return the bracket of the least leakage, in nats.

        Parameters
        ----------
        tol : float
            Relative gap to reach: upper - lower <= max(tol * upper, 1e-7 nats).
        time_limit : float or None
            Seconds after which the bracket reached is returned. Which part of the search goes on is
            decided by counted work (``stats["work"]``, in multiplications), so that the answer does
            not depend on how busy the machine is unless the limit is reached. The last 30 % of it
            may be kept for the audit of the best channel. What cannot be interrupted comes on top:
            programs in CVXPY for a first channel that meets own constraints, and the exact proof.
        strategy : {"cutting_set", "alternate"}
            Whether the master keeps all adversaries, or the newest one (LEAKAGE Algorithm 6): then
            it may cycle, which ``stats["cycled"]`` says, and the bracket need not close.
        solver, solver_options
            A solver of CVXPY for the master. If left out, a method in NumPy that uses the master's
            structure; CLARABEL where there are own constraints, or given priors at whose program
            that method gets stuck.
        rng : int, numpy.random.Generator or None
            Random starts of the local searches.
        verbose : bool
            Print a line per round.

        Returns
        -------
        Bound
            `upper` is proved for the `witness`, a `Design`, by an audit; `lower` holds for all
            channels; `certificate` proves both. `shadow_prices` has dL/dD ("budget") and dL/db
            ("entropy_floor"). An interrupt (Ctrl-C) ends the search like a time limit.

        Raises
        ------
        InfeasibleError
            D below the least distortion that a channel can have, which the message gives.
        """
        options = make_options(tol, time_limit, strategy, solver, solver_options, verbose)
        return searched(self.problem, Goal.LEAKAGE, self.budget, options, rng)

    def check(
        self,
        candidate: Design | Channel | Mechanism | ArrayLike,
        *,
        bound: Bound | None = None,
        **options: Any,
    ) -> Check:
        """Judge a channel that was found elsewhere against the certified bracket.

        Parameters
        ----------
        candidate : Design, Channel, Mechanism or array_like
            One row per row of the problem, per value of the query, or per dataset. It may be off:
            what it violates, and by how much, is part of the answer. The value is that of its
            positive part, each row divided by its sum: the upper end of an audit.
        bound : Bound, optional
            An earlier result of `solve`; computed with `options` if left out.

        Examples
        --------
        >>> from cvxleak.model import AdditiveQuery, RecordSpace
        >>> from cvxleak.design import MinLeakage
        >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
        >>> problem = MinLeakage(parity, distortion=[[0, 1], [1, 0]], budget=0.2, entropy_floor=0.0)
        >>> print(problem.check([[0.9, 0.1], [0.1, 0.9]]))
        feasible; value 0.36806... nats
        proved optimum: 0.192... to 0.192... nats; the candidate falls short by 0.175... to 0.175...
        """
        problem, matrix = self.problem.candidate(candidate)
        repaired, violations = judged(problem, matrix)
        value = leakage_of(problem, repaired, options.get("time_limit", TIME_LIMIT))
        spent = problem.costs.worst(repaired)
        violations["distortion is within the budget"] = max(spent - self.budget, 0.0)
        if bound is None:
            bound = self.solve(**options)
        return Check(value, violations, instance(bound, Bound, "bound").to("nats"), maximize=False)


def min_leakage(
    query: Query,
    *,
    distortion: Distortion | ArrayLike,
    budget: float,
    entropy_floor: float | None = None,
    source: Law | None = None,
    sources: Laws | None = None,
    outputs: Iterable[Hashable] | None = None,
    constraints: OwnConstraints = (),
    objective: Objective = "record",
    size: int = 1,
    priors: Laws | None = None,
    rows: str = "auto",
    **options: Any,
) -> Bound:
    """Return the least leakage for a distortion budget: `MinLeakage(...).solve(...)`.

    Parameters
    ----------
    query, distortion, budget, entropy_floor, source, sources, outputs, constraints, objective, size
        As for `MinLeakage`, and so `priors` and `rows`.
    **options
        As for `MinLeakage.solve`: tol, time_limit, strategy, solver, solver_options, rng, verbose.

    Examples
    --------
    The least leakage without any doubt, b = 0, is log 2 - h(D):

    >>> from cvxleak.model import AdditiveQuery, RecordSpace
    >>> from cvxleak.design import min_leakage
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> wrong = [[0, 1], [1, 0]]
    >>> print(min_leakage(parity, distortion=wrong, budget=0.1, entropy_floor=0.0, tol=1e-5))
    least leakage: 0.36806... to 0.36806... nats (CERTIFIED)

    A budget that a constant answer meets leaks nothing:

    >>> print(min_leakage(parity, distortion=wrong, budget=0.5, entropy_floor=0.0))
    least leakage: 0 to 0 nats (CERTIFIED)
    """
    problem = MinLeakage(
        query,
        distortion=distortion,
        budget=budget,
        entropy_floor=entropy_floor,
        source=source,
        sources=sources,
        outputs=outputs,
        constraints=constraints,
        objective=objective,
        size=size,
        priors=priors,
        rows=rows,
    )
    return problem.solve(**options)


def make_options(
    tol: float,
    time_limit: float | None,
    strategy: str,
    solver: str | None,
    solver_options: dict[str, Any] | None,
    verbose: bool,
) -> Options:
    """Return checked options of a search."""
    real_number(tol, "tol", 0.0, 1.0, open_high=True)
    if time_limit is not None:
        real_number(time_limit, "time_limit", 0.0)
    one_of(strategy, STRATEGIES, "strategy")
    return Options(tol, time_limit, strategy, solver, dict(solver_options or {}), verbose)


def searched(
    problem: DesignData,
    goal: Goal,
    budget: float,
    options: Options,
    rng: int | np.random.Generator | None,
) -> Bound:
    """Return the bracket that a search finds."""
    clock = Clock(options.time_limit)
    bound = Search(problem, goal, rng).run(budget, options)
    stuck = bound.status is Status.BRACKETED and bound.stats["stopped"] is Stopped.NO_PROGRESS
    if problem.priors is None or options.solver is not None or problem.rules or not stuck:
        return bound
    # With given priors there is one master, which a conic solver may solve where the method in
    # NumPy does not get on, and the other way round.
    conic = replace(options, solver="CLARABEL", solver_options={}, time_limit=clock.limit)
    try:
        other = Search(problem, goal, rng).run(budget, conic)
    except SolveInterrupted as error:
        reached = error.bound
        raise SolveInterrupted(reached if reached.gap < bound.gap else bound) from error
    return other if other.gap < bound.gap else bound


def judged(problem: DesignData, matrix: Array) -> tuple[Array, dict[str, float]]:
    """Return a candidate's positive part, its rows divided by their sums, and what it violates."""
    violations = {
        "probabilities are non-negative": max(0.0, -float(matrix.min())),
        "rows sum to 1": float(np.abs(matrix.sum(axis=1) - 1).max()),
    }
    positive = np.maximum(matrix, 0.0)
    if not (positive.sum(axis=1) > 0).all():
        raise ValidationError("candidate: found a row without a positive entry")
    if problem.rules:
        found = own_violations(problem.rules, matrix)
        violations |= {f"{name} is met": value for name, value in found.items()}
    return snapped(positive), violations


def leakage_of(problem: DesignData, matrix: Array, time_limit: float | None) -> float:
    """Return the upper end of a channel's leakage, as far as it gets in the time."""
    audit = problem.opponents(0).audit(problem.channel(matrix))
    return audit.run(1e-6, clock=Clock(time_limit)).upper
