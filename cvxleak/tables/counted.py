"""The leakage of one published number about one of many people, of whom something is known.

A number depends on a person's cell only through the bit that the cell is counted. So the
distributions of the cells matter only through the probabilities of that bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cvxleak.audit import product_leakage
from cvxleak.core.clock import Clock
from cvxleak.core.errors import SolveInterrupted, ValidationError
from cvxleak.model import Mechanism
from cvxleak.problem import Bound
from cvxleak.queries import count
from cvxleak.tables.noise import CountNoise
from cvxleak.tables.release import TableRelease
from cvxleak.tables.table import Table

__all__ = ["leakage_of_count", "people_counted", "product_reached"]

OFF = 2.0**-50
"""Largest error of the probability that a person is counted, as a float."""


def product_reached(mechanism: Mechanism, clock: Clock, **known: Any) -> Bound:
    """Return what `product_leakage` reaches in the time that is left, or before Ctrl-C."""
    try:
        return product_leakage(mechanism, **clock.limits, **known)
    except SolveInterrupted as error:
        if error.bound is None:
            raise
        return error.bound


def people_counted(
    table: Table, places: Sequence[int], laws: Any, least_probability: float | None
) -> Any:
    """Return the distributions of each person's bit, which says whether they are in these cells.

    They are vertices, for all people or for each; if only the others' are known, the first person
    is the one attacked.
    """
    if least_probability is not None:
        low = least_probability * len(places)
        high = 1 - least_probability * (len(table.alphabet) - len(places))
        others = _interval([low, high])
        return [((1.0, 0.0), (0.0, 1.0))] + [others] * (table.people - 1)
    each = [laws] if not isinstance(laws[0][0], tuple) else laws
    known = {
        one: _interval([math.fsum(law[c] for c in places) / math.fsum(law) for law in one])
        for one in set(each)
    }
    found = [known[one] for one in each]
    return found[0] if each[0] is laws else found


def leakage_of_count(
    release: TableRelease, j: int, people: Any, attacked: int | None, clock: Clock
) -> Bound:
    """Return the leakage of number j if people are counted with these distributions.

    Raises
    ------
    ValidationError
        Its noise is no `CountNoise`, or there are too many cases.
    """
    (label, noise), n = release.noise[j], release.table.people
    if not isinstance(noise, CountNoise):
        raise ValidationError(
            f"release: the noise of {label!r} is {noise!r}; with laws or least_probability, "
            "numbers with RandomRounding or a PerturbationTable are audited"
        )
    try:
        mechanism = Mechanism(count(n), noise.channel(n))
        bound = product_reached(mechanism, clock, records=attacked, laws=people)
    except ValidationError as error:
        raise ValidationError(f"release: the number {label!r}: {error}") from error
    # Except with probability epsilon all people's bits are as computed (theory/tables).
    epsilon = n * OFF
    missed = 2 * epsilon * (1 - math.log(epsilon) + math.log(2))
    return Bound.proved(
        bound.name,
        max(bound.lower - missed, 0.0),
        min(bound.upper + missed, math.log(2)),
        tol=1e-3,
        witness=bound.witness,
        certificate=bound.certificate,
        stats=bound.stats,
    )


def _interval(chances: Sequence[float]) -> tuple[tuple[float, float], ...]:
    """Return the least and the largest chance of being counted, as distributions."""
    ends = sorted({min(max(p, 0.0), 1.0) for p in (min(chances), max(chances))})
    return tuple((1 - p, p) for p in ends)
