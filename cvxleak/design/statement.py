"""What `MinLeakage` and `MinDistortion` are given, checked and reduced to rows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.core.validation import (
    Array,
    in_order,
    instance,
    one_of,
    plain_array,
    real_number,
    whole_number,
)
from cvxleak.design.adversary_oracle import Opponents
from cvxleak.design.designed import Design
from cvxleak.design.feasible import Costs
from cvxleak.design.goal import Goal
from cvxleak.design.symmetry import find_rows
from cvxleak.design.user_constraints import OwnConstraints, Rule, as_rules, check_picklable
from cvxleak.model import Channel, Distortion, Mechanism, Prior, Query, SourceSet, as_prior
from cvxleak.model.prior import has_labels
from cvxleak.problem.bound import ABSOLUTE_TOLERANCE
from cvxleak.proofs.bounds.design_rows import Law, Rows

__all__ = ["OBJECTIVES", "DesignData", "read_law"]

OBJECTIVES = ("record", "group", "total")

STATED_ROWS = 512
"""Most datasets that get a row each: own constraints are about them, or a candidate has them."""


class DesignData:
    """The part of a design problem that does not depend on which budget is minimized.

    Built from the arguments of `cvxleak.design.MinLeakage`.
    """

    def __init__(
        self,
        query: Query,
        distortion: Distortion | ArrayLike,
        entropy_floor: float | None,
        source: Any,
        sources: Any,
        outputs: Iterable[Hashable] | None,
        constraints: OwnConstraints,
        objective: str,
        size: int,
        priors: Any,
        rows: str,
    ) -> None:
        self.query = instance(query, Query, "query")
        self.objective = one_of(objective, OBJECTIVES, "objective")
        self.size = {"record": 1, "total": 0}.get(
            objective, whole_number(size, "size", 1, query.space.records)
        )
        self.distortion = _distortion(query, distortion, outputs)
        self.sources = _sources(query, source, sources)
        self.rules: tuple[Rule, ...] = as_rules(constraints)
        self.priors: list[Law] | None = None
        if priors is not None:
            self.priors = _laws(query, priors, "priors")
        if (entropy_floor is None) is (priors is None):
            raise ValidationError(
                "entropy_floor: give either it (all adversaries with that much doubt) or priors"
            )
        self.entropy_floor: float | None = None
        if entropy_floor is not None:
            self.entropy_floor = real_number(entropy_floor, "entropy_floor", 0.0)
            most = query.space.max_entropy
            if self.entropy_floor > most * (1 + 1e-12):
                raise InfeasibleError(
                    f"entropy_floor: found {self.entropy_floor!r} nats; no prior on the datasets "
                    f"has more than log|X| = {most!r} nats"
                )
        self.form = rows
        if self.rules and rows == "auto":
            if query.space.size > STATED_ROWS:
                raise ValidationError(
                    f"rows: with constraints of your own there is one row per dataset, and there "
                    f"are more than {STATED_ROWS}; choose 'orbits' if the constraints are "
                    "invariant, or 'query'"
                )
            self.form = "datasets"

    def __getstate__(self) -> dict[str, Any]:
        check_picklable(self.rules)
        # What is worked out from the rest stays behind: exact rational numbers cannot be pickled.
        return {name: value for name, value in vars(self).items() if name not in ("rows", "costs")}

    def _content(self) -> tuple[Any, ...]:
        """Return what two equal problems have in common; own constraints are the same functions."""
        laws = tuple(self.sources), None if self.priors is None else tuple(self.priors)
        asked = self.entropy_floor, self.objective, self.size, self.form
        return self.query, self.distortion, self.rules, *laws, *asked

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DesignData):
            return NotImplemented
        return self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def __repr__(self) -> str:
        shown = ", ".join(repr(part) for part in self._content())
        return f"DesignData({shown})"

    @cached_property
    def rows(self) -> Rows:
        """The rows of the channel."""
        laws = [*self.sources, *(self.priors or [])]
        return find_rows(self.query, laws, self.form, self.size == 0)

    @cached_property
    def costs(self) -> Costs:
        """The sources and the distortion on the rows."""
        masses = [self.rows.masses(law) for law in self.sources]
        price = self.distortion.matrix[self.rows.values]
        share = np.array([[int(m.p) / int(m.q) for m in law] for law in masses])
        return Costs(share[:, :, None] * price, masses, price)

    def absolute(self, goal: Goal) -> float:
        """Return the gap that counts as closed whatever the tolerance, in nats or in the unit of d.

        Of distortions as of nats: of a matrix whose largest entry is 1.
        """
        return ABSOLUTE_TOLERANCE * (
            1.0 if goal is Goal.LEAKAGE else float(self.distortion.matrix.max())
        )

    def opponents(self, rng: int | np.random.Generator | None) -> Opponents:
        """Return the adversaries."""
        return Opponents(self.rows, self.size, self.entropy_floor, self.priors, rng)

    def channel(self, matrix: Array) -> Channel:
        """Return a channel on the rows."""
        return Channel(matrix, self.rows.query.values, self.distortion.outputs)

    def candidate(self, candidate: Any) -> tuple[DesignData, Array]:
        """Return the matrix that somebody proposes, which need not be stochastic, and its problem.

        That is this problem, or, for a channel that tells datasets apart that share a row here,
        the same one with a row for each dataset.

        Raises
        ------
        ValidationError
            Another shape than one row per row of the problem, per value of the query or per
            dataset; a Mechanism on other data; datasets told apart where that is not allowed.
        """
        rows, query, space = self.rows.query, self.query, self.query.space
        outputs = self.distortion.outputs
        if isinstance(candidate, Design):
            candidate = candidate.mechanism
        if isinstance(candidate, Mechanism):
            if candidate.query.space != space:
                raise ValidationError("candidate: it is about another record space than the query")
            given = candidate.channel.select(candidate.query.values, outputs, "candidate").matrix
            if candidate.query == rows:
                return self, given
            if candidate.query == query:
                return self, given[self.rows.values]
            return self._by_dataset(given[candidate.query.table().ravel()])
        if isinstance(candidate, Channel):
            known = set(candidate.inputs)
            if len(known) == space.size and known == set(space.datasets()):
                names = tuple(space.datasets())
                return self._by_dataset(candidate.select(names, outputs, "candidate").matrix)
            wanted = rows.values if known >= set(rows.values) else query.values
            given = candidate.select(wanted, outputs, "candidate").matrix
        else:
            try:
                given = np.asarray(candidate, dtype=float)
            except (TypeError, ValueError) as error:
                raise ValidationError(f"candidate: expected a matrix ({error})") from error
        sizes = {len(rows.values), len(query.values)}
        if space.size <= STATED_ROWS:
            sizes.add(space.size)
        if (
            given.ndim != 2
            or given.shape[0] not in sizes
            or given.shape[1] != len(outputs)
            or not np.isfinite(given).all()
        ):
            raise ValidationError(
                f"candidate: found shape {given.shape}; finite numbers of one of the shapes "
                f"{sorted((size, len(outputs)) for size in sizes)} are needed"
            )
        if len(given) == len(rows.values):
            return self, given
        if len(given) == len(query.values):
            return self, given[self.rows.values]
        return self._by_dataset(given)

    def _by_dataset(self, matrix: Array) -> tuple[DesignData, Array]:
        """Return a matrix of a row per dataset with the problem that it is about."""
        place = self.rows.query.table().ravel()
        shared = matrix[np.unique(place, return_index=True)[1]]
        if np.array_equal(matrix, shared[place]):
            return self, shared
        if self.form == "query" or self.rules:
            raise ValidationError(
                "candidate: it tells datasets apart that share a row of this problem; state the "
                "problem with rows='datasets'"
            )
        apart = copy(self)
        apart.form = "datasets"
        for name in ("rows", "costs"):
            apart.__dict__.pop(name, None)
        return apart, matrix

    def content(self, budget: float) -> dict[str, Any]:
        """Return what a certificate says about the problem."""
        return {
            "query": self.query.to_dict(),
            "rows": self.rows.to_dict(),
            "distortion": self.distortion.to_dict(),
            "sources": [law.to_dict() for law in self.sources],
            "objective": {"size": self.size},
            "priors": None if self.priors is None else [law.to_dict() for law in self.priors],
            "budget": None if budget == math.inf else budget,
        }


def read_law(query: Query, given: Any, name: str) -> Law:
    """Return a law on the datasets: None is the uniform one.

    One on as many outcomes as there are datasets is about these; one on the values of the query is
    spread evenly over the datasets that share a value.
    """
    if given is None:
        return Law("uniform")
    space, count = query.space, len(query.values)
    # Labels decide; where there are none, the number of outcomes does.
    prior = given if isinstance(given, Prior) else None
    size = len(prior) if prior is not None else plain_array(given, name).size
    on_values = size == count and (
        size != space.size or (has_labels(given) and set(_labels(given)) == set(query.values))
    )
    if on_values:
        law = as_prior(given, count, name, query.values if has_labels(given) else None)
        return Law("values", tuple(law.probabilities.tolist()))
    if size != space.size:
        raise ValidationError(
            f"{name}: found {size} outcomes; one per dataset ({space.size:.6g}) or per value of "
            f"the query ({count}) is needed"
        )
    return Law("datasets", tuple(space.law(given, name).tolist()))


def _labels(given: Any) -> Sequence[Hashable]:
    return given.labels if isinstance(given, Prior) else list(given.index)


def _laws(query: Query, given: Any, name: str) -> list[Law]:
    if isinstance(given, SourceSet):
        if any(part.polytopes for part in given.parts):
            raise ValidationError(
                f"{name}: found a set with polytopes; finite sets and hulls of laws are allowed"
            )
        given = [Prior(law, given.labels) for part in given.parts for law in part.points]
    if isinstance(given, Prior):
        raise ValidationError(f"{name}: found one Prior; a list of laws is needed")
    laws = in_order(given, name)
    if not laws:
        raise ValidationError(f"{name}: found none; at least one law is needed")
    return [read_law(query, law, f"{name}[{k}]") for k, law in enumerate(laws)]


def _sources(query: Query, source: Any, sources: Any) -> list[Law]:
    if sources is None:
        return [read_law(query, source, "source")]
    if source is not None:
        raise ValidationError("sources: found both it and source; one of them says what is known")
    return _laws(query, sources, "sources")


def _distortion(
    query: Query, distortion: Distortion | ArrayLike, outputs: Iterable[Hashable] | None
) -> Distortion:
    names = None if outputs is None else in_order(outputs, "outputs")
    if isinstance(distortion, Distortion):
        return distortion.select(query.values, names, "distortion")
    matrix = Distortion(distortion).matrix
    if matrix.shape[0] != len(query.values):
        raise ValidationError(
            f"distortion: found {matrix.shape[0]} rows; the query has {len(query.values)} values"
        )
    if names is None and matrix.shape[1] == len(query.values):
        names = query.values
    if names is not None and len(names) != matrix.shape[1]:
        raise ValidationError(
            f"outputs: found {len(names)} labels; the distortion has {matrix.shape[1]} columns"
        )
    return Distortion(matrix, query.values, names)
