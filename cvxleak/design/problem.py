"""`DesignProblem`: what `MinLeakage` and `MinDistortion` have in common, and how it is read."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.clock import WORK_LIMIT, Clock
from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.core.validation import (
    in_order,
    instance,
    one_of,
    plain_array,
    real_number,
    whole_number,
)
from cvxleak.core.wording import counted
from cvxleak.design.data import STATED_ROWS, DesignData
from cvxleak.design.feasible import snapped
from cvxleak.design.goal import Goal
from cvxleak.design.learned import Learned
from cvxleak.design.run import Options
from cvxleak.design.search import DesignSearch
from cvxleak.design.symmetry import FORMS
from cvxleak.design.user_constraints import (
    Rule,
    UserRules,
    as_rules,
    check_picklable,
    user_violations,
)
from cvxleak.model import Distortion, Prior, Query, as_prior
from cvxleak.model.distortion import named_distortion
from cvxleak.model.prior import has_labels, named_law
from cvxleak.problem import Bound, Gap, Problem
from cvxleak.problem.candidates import read_rows
from cvxleak.problem.problem import Found, Toward
from cvxleak.proofs.bounds.design_rows import Law
from cvxleak.solvers.conic import as_options
from cvxleak.sources import SourceSet

__all__ = ["OBJECTIVES", "STRATEGIES", "AnyLaw", "AnyLaws", "DesignProblem", "Objective"]

AnyLaw = Law | Prior | ArrayLike
AnyLaws = SourceSet | Sequence[AnyLaw]
Objective = Literal["record", "group", "total"]

OBJECTIVES = ("record", "group", "total")
STRATEGIES = ("cutting_set", "alternate")

CHECKED = 1e-6
"""Relative tolerance of the audit of a candidate."""


@dataclass(frozen=True, eq=False)
class DesignProblem(Problem):
    """A problem on the channels from datasets to outputs, against all adversaries.

    The arguments and attributes are those of `cvxleak.design.MinLeakage`; `source` and `outputs`
    are part of `sources` and of `distortion`.
    """

    goal: ClassVar[Goal]
    maximize = False
    tolerance = 1e-3
    convex = True
    accuracy = CHECKED

    query: Query
    distortion: Distortion
    budget: float
    entropy_floor: float | None
    sources: tuple[Law, ...]
    constraints: tuple[Rule, ...]
    objective: Objective
    size: int
    priors: tuple[Law, ...] | None
    rows: str

    def __init__(
        self,
        query: Query,
        *,
        distortion: Distortion | ArrayLike,
        budget: float,
        entropy_floor: float | None = None,
        source: AnyLaw | None = None,
        sources: AnyLaws | None = None,
        outputs: Iterable[Hashable] | None = None,
        constraints: UserRules = (),
        objective: Objective = "record",
        size: int = 1,
        priors: AnyLaws | None = None,
        rows: str = "auto",
    ) -> None:
        space = instance(query, Query, "query").space
        one_of(objective, OBJECTIVES, "objective")
        size = whole_number(size, "size", 0 if objective == "total" else 1, space.records)
        fields = {
            "query": query,
            "distortion": _distortion(query, distortion, outputs),
            "budget": real_number(budget, "budget", 0.0),
            "entropy_floor": _floor(query, entropy_floor),
            "sources": _sources(query, source, sources),
            "constraints": as_rules(constraints),
            "objective": objective,
            "size": {"record": 1, "total": 0}.get(objective, size),
            "priors": None if priors is None else _laws(query, priors, "priors"),
            "rows": one_of(rows, FORMS, "rows"),
        }
        if (entropy_floor is None) is (priors is None):
            raise ValidationError(
                "entropy_floor: exactly one of entropy_floor (all adversaries with at least "
                "this much uncertainty) and priors is needed"
            )
        if fields["constraints"] and rows == "auto" and space.size > STATED_ROWS:
            raise ValidationError(
                f"rows: found more than {STATED_ROWS} datasets, each of which needs a row if "
                "there are user constraints; use 'orbits' if the constraints are invariant "
                "under symmetries, or 'query'"
            )
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        check_picklable(self.constraints)
        return super().__reduce__()

    @cached_property
    def data(self) -> DesignData:
        """What does not depend on which budget is minimized, on the rows of the channel."""
        form = "datasets" if self.constraints and self.rows == "auto" else self.rows
        return DesignData(
            self.query,
            self.distortion,
            self.sources,
            self.entropy_floor,
            self.priors,
            self.size,
            form,
            self.constraints,
        )

    def _search(
        self,
        *,
        strategy: str = "cutting_set",
        solver: str | None = None,
        solver_options: dict[str, Any] | None = None,
        rng: int | np.random.Generator | None = 0,
        verbose: bool = False,
    ) -> DesignSearch:
        one_of(strategy, STRATEGIES, "strategy")
        options = Options(strategy, solver, as_options(solver_options), verbose)
        return self.search(Learned(self.data, self.goal, rng), options)

    def search(self, learned: Learned, options: Options) -> DesignSearch:
        """Return a search that starts with what is known from other budgets, and adds to it."""
        budget = self.budget
        if self.goal is Goal.DISTORTION:
            # No leakage is above log|X|, so a larger budget says no more than this one.
            budget = min(budget, 2 * self.query.space.max_entropy + 1)
        return DesignSearch(learned, budget, options)

    def _measure(self, candidate: Any) -> tuple[float, dict[str, float]]:
        data, matrix = self.data.candidate(candidate)
        positive, violations = read_rows(matrix)
        if data.rules:
            found = user_violations(data.rules, matrix)
            violations |= {f"{name} is met": value for name, value in found.items()}
        channel = snapped(positive)
        audit = data.oracle(0).audit(data.channel(channel))
        leaks = audit.run(CHECKED, clock=Clock(work_limit=WORK_LIMIT)).upper
        spent = data.costs.worst(channel)
        value, other, limited = leaks, spent, "distortion"
        if self.goal is Goal.DISTORTION:
            value, other, limited = spent, leaks, "leakage"
        violations[f"{limited} is within the budget"] = max(other - self.budget, 0.0)
        return value, violations

    def _near(self, candidate: Any, bound: Bound) -> Found:
        """Return a channel near a candidate that meets the budgets, with an audit of its own."""
        data, matrix = self.data.candidate(candidate)
        search = self.search(Learned(data, self.goal, 0), Options())
        gap, clock = Gap(self.tolerance), Clock(work_limit=WORK_LIMIT)
        audits = search.run(gap, clock).audits
        channel = audits.fallbacks.repaired(np.maximum(matrix, 0.0), 0.0)
        if data.half_spaces is not None:
            channel = data.half_spaces.inside.repaired(channel)
        audits.once(channel, CHECKED, math.inf, clock)
        found = search.found(gap)
        about = {"upper": found.about.get("upper", "problem")}
        return replace(found, lower=bound.lower, about=about)

    def _toward(self, candidate: Any, bound: Bound) -> Toward:
        raise NotImplementedError("a channel needs an audit of its own: see `_near`")


def _floor(query: Query, entropy_floor: float | None) -> float | None:
    if entropy_floor is None:
        return None
    floor, most = real_number(entropy_floor, "entropy_floor", 0.0), query.space.max_entropy
    if floor > most * (1 + 1e-12):
        raise InfeasibleError(
            f"entropy_floor: found {floor!r} nats; no prior on the datasets has more than "
            f"log|X| = {most!r} nats"
        )
    return floor


def read_law(query: Query, given: Any, name: str) -> Law:
    """Return a distribution on the datasets: None is the uniform one.

    One on as many outcomes as there are datasets is about these; one on the values of the query is
    spread evenly over the datasets that share a value.
    """
    if given is None:
        return Law("uniform")
    if isinstance(given, Law):
        # Of a problem that was built before: checked then, unless it is about another query.
        if len(given.weights) != {"values": len(query.values), "datasets": query.space.size}.get(
            given.on, 0
        ):
            raise ValidationError(f"{name}: found a distribution on the values of another query")
        return given
    space, count = query.space, len(query.values)
    # Labels decide; where there are none, the number of outcomes does.
    given = named_law(given)
    prior = given if isinstance(given, Prior) else None
    size = len(prior) if prior is not None else plain_array(given, name).size
    on_values = size == count and (
        size != space.size or (has_labels(given) and set(given.labels) == set(query.values))
    )
    if on_values:
        law = as_prior(given, count, name, query.values if has_labels(given) else None)
        return Law("values", tuple(law.probabilities.tolist()))
    if size != space.size:
        raise ValidationError(
            f"{name}: found {counted(size, 'outcome')}; "
            f"one per dataset ({space.size:.6g}) or per value of "
            f"the query ({count}) is needed"
        )
    return Law("datasets", tuple(space.law(given, name).tolist()))


def _laws(query: Query, given: Any, name: str) -> tuple[Law, ...]:
    if isinstance(given, SourceSet):
        if any(part.polytopes for part in given.parts):
            raise ValidationError(
                f"{name}: found a set with polytopes; finite sets and convex hulls are allowed"
            )
        given = [Prior(law, given.labels) for part in given.parts for law in part.points]
    if isinstance(named_law(given), Prior):
        raise ValidationError(f"{name}: found one Prior; a list of distributions is needed")
    laws = in_order(given, name)
    if not laws:
        raise ValidationError(f"{name}: found none; at least one distribution is needed")
    return tuple(read_law(query, law, f"{name}[{k}]") for k, law in enumerate(laws))


def _sources(query: Query, source: Any, sources: Any) -> tuple[Law, ...]:
    if sources is None:
        return (read_law(query, source, "source"),)
    if source is not None:
        raise ValidationError("sources: found both sources and source; only one of them is allowed")
    return _laws(query, sources, "sources")


def _distortion(
    query: Query, distortion: Distortion | ArrayLike, outputs: Iterable[Hashable] | None
) -> Distortion:
    names = None if outputs is None else in_order(outputs, "outputs")
    if isinstance(distortion, str):
        return named_distortion(distortion, query.values, names, "distortion")
    if isinstance(distortion, Distortion):
        return distortion.select(query.values, names, "distortion")
    matrix = Distortion(distortion).matrix
    if matrix.shape[0] != len(query.values):
        raise ValidationError(
            f"distortion: found {counted(matrix.shape[0], 'row')}; "
            f"the query has {counted(len(query.values), 'value')}"
        )
    if names is None and matrix.shape[1] == len(query.values):
        names = query.values
    if names is not None and len(names) != matrix.shape[1]:
        raise ValidationError(
            f"outputs: found {counted(len(names), 'label')}; "
            f"the distortion has {counted(matrix.shape[1], 'column')}"
        )
    return Distortion(matrix, query.values, names)
