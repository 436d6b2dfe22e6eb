"""What a record leaks if all are independent, in each case of the others.

`cvxleak.kernel.independent` defines the cases and explains why they are enough. In each case, the
leakage is a concave function of the distribution of record i, which is a mixture of the vertices of
its polytope. A gain is largest at one of finitely many distributions, the same in all cases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np

from cvxleak.audit.worst_adversary.choices import leakages
from cvxleak.core.clock import Clock
from cvxleak.core.validation import Array
from cvxleak.kernel.cases import Law, compositions, gained
from cvxleak.kernel.independent import Person, ProductLeakage, corners

__all__ = ["Cases", "Laws", "floats", "in_case", "most_of"]

Laws = Sequence[Sequence[float]]
"""A distribution for each record, or weights on the vertices of what is known of it."""


class Cases(NamedTuple):
    """What was found for a record in each case.

    Attributes
    ----------
    record : int
    values : array, shape (cases,)
        Its leakage or gain.
    weights : array, shape (cases, vertices)
        Weights on the vertices of its distribution at which that is attained.
    """

    record: int
    values: Array
    weights: Array


def most_of(
    statement: ProductLeakage, people: Sequence[Person], record: int, clock: Clock
) -> Cases:
    """Return the most that a record leaks in each case that may be the worst, or a part of it."""
    own, found, best = people[record].own, list[tuple[Array, Array]](), 0.0
    places = corners(statement.gain(len(own[0])), own) if "gain" in statement.problem else []
    for rows in statement.blocks(people, record):
        if places:
            found.append(_most_gained(statement, rows, places))
        else:
            leaked = leakages(rows, floats(own), best, lambda: clock.late)
            found.append((leaked.values, leaked.weights))
        best = max(best, float(found[-1][0].max()))
    values, weights = map(np.concatenate, zip(*found, strict=True))
    return Cases(record, values, weights)


def in_case(people: Sequence[Person], found: Cases) -> tuple[float, int, Laws]:
    """Return the most that a record leaks, the record, and all weights on vertices in that case."""
    case, record = int(found.values.argmax()), found.record
    alike = Counter(people)
    alike[people[record]] -= 1
    others = [(person, n) for person, n in alike.items() if n]
    ways = [compositions(n, len(person.vertices)) for person, n in others]
    numbers = next(islice(product(*ways), case, None))
    waiting = {
        id(person): iter(np.repeat(np.eye(len(own)), own, axis=0).tolist())
        for (person, _), own in zip(others, numbers, strict=True)
    }
    own = found.weights[case].tolist()
    each = [own if i == record else next(waiting[id(one)]) for i, one in enumerate(people)]
    return float(found.values[case]), record, each


def floats(rows: Sequence[Law]) -> Array:
    """Return distributions of exact numbers as floats."""
    return np.array([[int(x.p) / int(x.q) for x in row] for row in rows])


def _most_gained(
    statement: ProductLeakage, rows: Array, places: Sequence[Any]
) -> tuple[Array, Array]:
    """Return the largest of the gains at some places, which are weights and distributions."""
    gain = statement.gain(rows.shape[1])
    values = np.array([gained(rows, law, gain, statement.times) for _, law in places])
    weights = floats([weights for weights, _ in places])
    return values.max(axis=0), weights[values.argmax(axis=0)]
