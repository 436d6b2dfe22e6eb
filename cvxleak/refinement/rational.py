"""Channels, distributions, gains and vulnerabilities as rational numbers, without rounding."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpq
from numpy.typing import ArrayLike, NDArray

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import exact_law
from cvxleak.core.wording import counted
from cvxleak.model import Channel, as_channel

MOST_TERMS = 4_000_000
"""Largest product of the numbers of inputs and of both channels' outputs."""

Row = Sequence[Fraction]
Table = list[list[Fraction]]


def on_one_input(
    channel: Channel | ArrayLike, other: Channel | ArrayLike
) -> tuple[Channel, Channel]:
    """Return two channels with the same inputs, those of the other in the order of the first.

    Raises
    ------
    ValidationError
        Rows that are no distributions, or inputs with other labels or in another number.
    """
    first, second = as_channel(channel), as_channel(other, "other")
    if first.inputs == second.inputs:
        return first, second
    if len(first.inputs) == len(second.inputs):
        return first, second.select(first.inputs, name="other")
    # Some labels are shared, maybe; then `select` would take a part without a word.
    raise ValidationError(
        f"other: found {counted(len(second.inputs), 'input')}; the channel has {len(first.inputs)}"
    )


def exact_rows(channel: Channel) -> Table:
    """Return the rows as the distributions that they are."""
    return [list(exact_law(row)) for row in channel.matrix]


def fractions(numbers: Iterable[fmpq]) -> list[Fraction]:
    """Return rational numbers as Python has them."""
    return [Fraction(int(x.p), int(x.q)) for x in numbers]


def numbers(table: Row | Table) -> NDArray[Any]:
    """Return fractions as objects of the model take them."""
    return np.array(table, dtype=object)


def rationals(numbers: Iterable[Fraction]) -> list[fmpq]:
    """Return rational numbers as flint has them."""
    return [fmpq(x.numerator, x.denominator) for x in numbers]


def normalized(weights: Iterable[Fraction]) -> list[Fraction]:
    """Return the positive weights as a distribution; all mass is on the first if there are none."""
    kept = [max(weight, Fraction(0)) for weight in weights]
    total = sum(kept, Fraction(0))
    return [x / total for x in kept] if total else [Fraction(int(i == 0)) for i in range(len(kept))]


def processed(rows: Table, kernel: Table) -> Table:
    """Return the product of two matrices."""
    columns = list(zip(*kernel, strict=True))
    return [[dot(row, column) for column in columns] for row in rows]


def dot(one: Row, other: Row) -> Fraction:
    """Return the inner product."""
    return sum((x * y for x, y in zip(one, other, strict=True) if x and y), Fraction(0))


def vulnerability(law: Row, rows: Table, gain: Table) -> Fraction:
    """Return the g-vulnerability of a distribution once the output of a channel is seen."""
    weighted = [[p * g for p, g in zip(law, action, strict=True)] for action in gain]
    columns = list(zip(*rows, strict=True))
    return sum((max(dot(action, column) for action in weighted) for column in columns), Fraction(0))


def check_terms(inputs: int, before: int, after: int) -> None:
    """Say so if a linear program is too large to be written down."""
    if inputs * before * after > MOST_TERMS:
        raise ValidationError(
            f"other: {counted(inputs, 'input')} with {before} and {counted(after, 'output')} make "
            f"{inputs * before * after} terms; at most {MOST_TERMS} are solved"
        )
