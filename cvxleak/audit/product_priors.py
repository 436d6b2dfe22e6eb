"""Priors of independent records, as the kernel sees them.

A prior is given by weights on the vertices of what is known of each record's distribution. If only
a floor on the sum of the entropies is known, the vertices are unit vectors.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import groupby
from typing import Any

import numpy as np
from scipy.optimize import brentq, nnls
from scipy.special import entr

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array
from cvxleak.core.value import Value
from cvxleak.kernel.cases import Law
from cvxleak.kernel.independent import Person, ProductLeakage, corners
from cvxleak.kernel.numbers import RefusedError, precision, proved
from cvxleak.model import Guess, Mechanism, Prior
from cvxleak.model.gain_form import LEAKAGE, GainForm
from cvxleak.problem.problem import ROUNDING
from cvxleak.proofs.format import plain

__all__ = [
    "IndependentAdversary",
    "Laws",
    "ProductPriors",
    "entropy",
    "floats",
    "near",
    "refused",
]

Laws = Sequence[Sequence[float]]
"""A distribution for each record, or weights on the vertices of what is known of it."""


@dataclass(frozen=True, eq=False)
class IndependentAdversary(Value):
    """A product prior: a distribution for each record.

    Attributes
    ----------
    mechanism : Mechanism
    records : tuple of one int
        The attacked record.
    laws : tuple of tuples of float
        The distribution p_j of each record j.

    Examples
    --------
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.model import Mechanism
    >>> from cvxleak.audit import IndependentAdversary
    >>> from cvxleak.queries import parity
    >>> mechanism = Mechanism(parity(2), binary_symmetric(0.25))
    >>> knows = IndependentAdversary(mechanism, (0,), ((0.5, 0.5), (1.0, 0.0)))
    >>> round(knows.leakage, 4), knows.guess()
    (0.1308, (0.5, 0.75))
    """

    mechanism: Mechanism
    records: tuple[int]
    laws: tuple[tuple[float, ...], ...]

    def __repr__(self) -> str:
        return f"IndependentAdversary({self.mechanism!r}, record {self.records[0]})"

    @property
    def leakage(self) -> float:
        """I(X_i;Y) under this prior, in nats (floating point)."""
        return self._value(LEAKAGE)

    def guess(self) -> tuple[float, float]:
        """Return the probability of guessing the record right, before and after the output."""
        return max(self.laws[self.records[0]]), self._value(GainForm(Guess(), "posterior"))

    def _value(self, told: GainForm) -> float:
        problem = {"record": None, "entropy_floor": 0, **told.to_dict()}
        return value_at(statement_of(self.mechanism, problem), self.records[0], self.laws)

    @property
    def entropy(self) -> float:
        """H(X) = sum_j H(X_j), in nats (floating point)."""
        return entropy(self.laws)

    def expand(self) -> Prior:
        """Return the prior on full datasets."""
        joint = reduce(np.multiply.outer, map(np.array, self.laws))
        return Prior(joint.ravel() / joint.sum(), self.mechanism.space.datasets())


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
        self._mechanism, self.statement = mechanism, statement_of(mechanism, problem)
        ends = [] if record_floor is None else _least_probabilities(record_floor)
        self.least, self._least_inside = [{"least": x} for x in ends] or [{}, {}]
        self.people, self.inside = (
            self.statement.people(*map(proved, end.values()))
            for end in (self.least, self._least_inside)
        )
        self.audited = self.statement.audited(self.people)
        if self.statement.laws is not None:
            with refused("mechanism"):  # too many cases, or totals
                _ = [self.statement.cases(self.people, i) for i in self.audited]
                _ = self.statement.channels

    @cached_property
    def corners(self) -> Mapping[tuple[Law, ...], Sequence[tuple[Law, Law]]]:
        """Where a gain may be largest, for each polytope of an audited record."""
        owns = (
            {self.people[i].own for i in self.audited} if "gain" in self.statement.problem else ()
        )
        return {own: corners(self.statement.gain(len(own[0])), own) for own in owns}

    def at(self, record: int, weights: Laws) -> tuple[IndependentAdversary, dict[str, Any]]:
        """Return the adversary of a prior, and its term of a lower end."""
        laws = []
        for i, (person, own) in enumerate(zip(self.inside, weights, strict=True)):
            law = np.array(own) @ floats(person.own if i == record else person.vertices)
            laws.append(tuple((law / law.sum()).tolist()))
        term = {**_point(record, weights), **self._least_inside}
        return IndependentAdversary(self._mechanism, (record,), tuple(laws)), term

    def worst(self, records: Sequence[int], laws: Sequence[Array]) -> tuple[float, int]:
        """Return the most that one of some records leaks under a prior, and which one it is."""
        written = [tuple(law.tolist()) for law in laws]
        # Those that add the same to the total and have the same distribution leak alike.
        alike = {(self.people[i].contributions, written[i]): i for i in reversed(records)}
        return max((value_at(self.statement, i, written), i) for i in alike.values())


def _least_probabilities(floor: float) -> tuple[float, float]:
    """Return floats a, b with h(a) < floor < h(b), near to each other."""

    def least(entropy: float) -> float:
        entropy = min(max(entropy, 0.0), math.log(2))
        found: Any = brentq(lambda x: entr([x, 1 - x]).sum() - entropy, 0.0, 0.5, xtol=1e-300)
        return found

    return least(floor - ROUNDING), least(floor + ROUNDING)


def near(people: Sequence[Person], record: int, laws: Sequence[Array]) -> list[tuple[Array, float]]:
    """Return weights of each record that are near a distribution, and how far it is."""
    found = []
    for i, (person, law) in enumerate(zip(people, laws, strict=True)):
        table = floats(person.own if i == record else person.vertices)
        weights, _ = nnls(np.vstack([table.T, np.ones(len(table))]), np.append(law, 1.0))
        weights /= weights.sum()
        found.append((weights, float(np.abs(weights @ table - law).max())))
    return found


def entropy(laws: Sequence[Array | Sequence[float]]) -> float:
    """Return the sum of the entropies of distributions, in nats."""
    return float(sum(entr(law).sum() for law in laws))


def floats(rows: Sequence[Law]) -> Array:
    """Return distributions of exact numbers as floats."""
    return np.array([[int(x.p) / int(x.q) for x in row] for row in rows])


def statement_of(mechanism: Mechanism, problem: Mapping[str, Any]) -> ProductLeakage:
    """Return what the proof kernel makes of a problem."""
    with refused("mechanism"):
        return ProductLeakage.read(plain({"mechanism": mechanism.to_dict(), **problem}))


def value_at(statement: ProductLeakage, record: int, laws: Laws) -> float:
    """Return the leakage or gain about a record under any product prior (floating point)."""
    problem = {key: value for key, value in statement.problem.items() if key != "laws"}
    free = replace(statement, record=None, laws=None, problem={**problem, "entropy_floor": 0})
    with precision():
        return float(free.lower(_point(record, laws)).mid())


def _point(record: int, weights: Laws) -> dict[str, Any]:
    runs = [[list(own), len(list(run))] for own, run in groupby(weights)]
    return {"rule": "point", "record": record, "weights": runs}


@contextmanager
def refused(name: str, more: str = "") -> Iterator[None]:
    """Raise what the kernel refuses in this block as a ValidationError about an argument."""
    try:
        with precision():
            yield
    except RefusedError as error:
        raise ValidationError(f"{name}: {error}{more}") from error
