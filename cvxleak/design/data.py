"""`DesignData`: what a search is given of a design problem, reduced to the rows of the channel."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array
from cvxleak.design.adversary_oracle import AdversaryOracle
from cvxleak.design.designed import Design
from cvxleak.design.feasible import Costs
from cvxleak.design.outer_approximation import HalfSpaces
from cvxleak.design.symmetry import find_rows
from cvxleak.design.user_constraints import Rule, UserConstraints
from cvxleak.model import Channel, Distortion, Mechanism, Query
from cvxleak.problem.candidates import candidate_array
from cvxleak.proofs.bounds.design_rows import Law, Rows

__all__ = ["STATED_ROWS", "DesignData"]

STATED_ROWS = 512
"""Most datasets that get a row each: user constraints are about them, or a candidate has them."""


@dataclass(frozen=True, eq=False)
class DesignData:
    """What a search is given of a design problem: all but the goal, the budget and the options.

    Attributes
    ----------
    query : Query
        f, which the distortion is about.
    distortion : Distortion
        d(f(x), y).
    sources : tuple of Law
        The distributions for which the distortion counts.
    entropy_floor : float or None
        b, in nats; None with `priors`.
    priors : tuple of Law or None
        The adversaries, if there are finitely many.
    size : int
        Of the groups that leakage is about; 0 for the whole dataset.
    form : str
        Which datasets share a row: an option of `cvxleak.design.symmetry.find_rows`.
    rules : tuple of callables
        The user's constraints.
    """

    query: Query
    distortion: Distortion
    sources: tuple[Law, ...]
    entropy_floor: float | None
    priors: tuple[Law, ...] | None
    size: int
    form: str
    rules: tuple[Rule, ...]

    @cached_property
    def rows(self) -> Rows:
        """The rows of the channel."""
        laws = [*self.sources, *(self.priors or ())]
        return find_rows(self.query, laws, self.form, self.size == 0)

    @cached_property
    def costs(self) -> Costs:
        """The sources and the distortion on the rows."""
        masses = [self.rows.masses(law) for law in self.sources]
        price = self.distortion.matrix[self.rows.values]
        share = np.array([[int(m.p) / int(m.q) for m in law] for law in masses])
        return Costs(share[:, :, None] * price, masses, price)

    @cached_property
    def half_spaces(self) -> HalfSpaces | None:
        """The user's constraints, stated once; None if there are none."""
        if not self.rules:
            return None
        return HalfSpaces(UserConstraints(self.costs.price.shape, self.rules))

    def oracle(self, rng: int | np.random.Generator | None) -> AdversaryOracle:
        """Return the adversaries."""
        return AdversaryOracle(self.rows, self.size, self.entropy_floor, self.priors, rng)

    def channel(self, matrix: Array) -> Channel:
        """Return a channel on the rows."""
        return Channel(matrix, self.rows.query.values, self.distortion.outputs)

    def candidate(self, candidate: Any) -> tuple[DesignData, Array]:
        """Return a candidate's matrix, which need not be stochastic, and its problem.

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
                raise ValidationError(
                    "candidate: found a mechanism on another record space than the query's"
                )
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
            sizes = {len(rows.values), len(query.values)}
            sizes |= {space.size} if space.size <= STATED_ROWS else set()
            given = candidate_array(candidate, {(size, len(outputs)) for size in sizes})
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
                "candidate: found different rows for datasets that share a row in this problem; "
                "state the problem with rows='datasets'"
            )
        return replace(self, form="datasets"), matrix

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
