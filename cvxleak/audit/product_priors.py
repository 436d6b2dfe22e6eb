"""`ProductPriors`: priors of independent records, as the kernel and the searches see them.

A prior is given by weights on the vertices of what is known of each record's distribution. If only
a floor on the sum of the entropies is known, the vertices are unit vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from flint import arb
from scipy.optimize import nnls

from cvxleak.audit.adversary import IndependentAdversary
from cvxleak.audit.cases import Laws, floats, refused_as, statement_of, value_at
from cvxleak.audit.known_laws import least_probabilities
from cvxleak.core.validation import Array
from cvxleak.kernel.independent import corners
from cvxleak.kernel.numbers import least, proved
from cvxleak.model import Mechanism

__all__ = ["ProductPriors"]


class ProductPriors:
    """A class of product priors.

    Parameters
    ----------
    mechanism : Mechanism
    problem : mapping
        What a file says besides the mechanism.
    record_floor : float or None

    Attributes
    ----------
    statement : cvxleak.kernel.independent.ProductLeakage
        What is to be proved.
    people : list of Person
        What is known of each record; a little less than a record floor, as in upper ends.
    least : mapping
        What terms of upper ends say of a record floor.
    """

    def __init__(
        self, mechanism: Mechanism, problem: Mapping[str, Any], record_floor: float | None
    ) -> None:
        self._mechanism = mechanism
        self.statement = statement_of({"mechanism": mechanism.to_dict(), **problem})
        ends = [] if record_floor is None else least_probabilities(record_floor)
        self.least, self._least_inside = [{"least": x} for x in ends] or [{}, {}]
        self.people, self._inside = (
            self.statement.people(*map(proved, end.values()))
            for end in (self.least, self._least_inside)
        )
        self.audited = self.statement.audited(self.people)
        if self.statement.laws is not None:
            with refused_as("mechanism"):  # too many cases, or totals
                _ = [self.statement.cases(self.people, i) for i in self.audited]
                _ = self.statement.channels

    @property
    def least_gain(self) -> arb:
        """The least gain without the output where a gain may be largest."""
        each = [(self.statement.gain(len(own[0])), own) for own in self._own]
        return least(
            gain.value([arb(x) for x in law]) for gain, own in each for _, law in corners(gain, own)
        )

    @property
    def _own(self) -> set[Any]:
        return {self.people[i].own for i in self.audited}

    def at(self, record: int, weights: Laws) -> tuple[IndependentAdversary, dict[str, Any]]:
        """Return the adversary of a prior, and its term of a lower end."""
        laws = []
        for i, (person, own) in enumerate(zip(self._inside, weights, strict=True)):
            law = np.array(own) @ floats(person.own if i == record else person.vertices)
            laws.append(tuple((law / law.sum()).tolist()))
        runs = [[list(own), len(list(run))] for own, run in groupby(weights)]
        term = {"rule": "point", "record": record, "weights": runs, **self._least_inside}
        return IndependentAdversary(self._mechanism, (record,), tuple(laws)), term

    def near(
        self, record: int, laws: Sequence[Array], *, inside: bool
    ) -> list[tuple[Array, float]]:
        """Return weights of each record that are near a distribution, and how far it is."""
        found = []
        people = self._inside if inside else self.people
        for i, (person, law) in enumerate(zip(people, laws, strict=True)):
            table = floats(person.own if i == record else person.vertices)
            weights, _ = nnls(np.vstack([table.T, np.ones(len(table))]), np.append(law, 1.0))
            weights /= weights.sum()
            found.append((weights, float(np.abs(weights @ table - law).max())))
        return found

    def worst(self, records: Sequence[int], laws: Sequence[Array]) -> tuple[float, int]:
        """Return the most that one of some records leaks under a prior, and which one it is."""
        written = [tuple(law.tolist()) for law in laws]
        # Those that add the same to the total and have the same distribution leak alike.
        alike = {(self.people[i].contributions, written[i]): i for i in reversed(records)}
        return max((value_at(self.statement, i, written), i) for i in alike.values())
