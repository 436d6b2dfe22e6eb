"""Noise that is applied to a count before it is published, for counts of any size."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from cvxleak.core.errors import ValidationError
from cvxleak.core.files import checked_path
from cvxleak.core.numbers import exact_law
from cvxleak.core.tables import MISSING
from cvxleak.core.validation import (
    SIZE_LIMIT,
    check_cells,
    in_order,
    instance,
    is_missing,
    short,
    whole_number,
)
from cvxleak.core.value import Value, preview
from cvxleak.mechanisms import random_rounding
from cvxleak.model import (
    AdditiveNoise,
    Channel,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Rounded,
    Uniform,
)
from cvxleak.model._ptable import PTable, Steps, read_ptable

__all__ = [
    "SUPPRESSED",
    "CountNoise",
    "Interval",
    "Law",
    "PerturbationTable",
    "RandomRounding",
    "log_likelihood",
    "noise_by_label",
    "not_shown",
]

SUPPRESSED = -1
"""Stands in `CountNoise.law` and among published values for a number that is not shown."""

MARKS = (*MISSING, "x", "*", "c", ":", "..", "suppressed")
"""What files have in place of a number that is not shown, in lower case; "<8" as well."""

HALFWAY = 1e-9
"""How far a number may be from a multiple of the base, as a part of the base."""

Law = dict[int, Fraction]
"""Exact probabilities of published values, none of them zero."""

Interval = tuple[int, int | None]
"""The least and the largest number, None if there is no largest."""


class CountNoise(ABC):
    """Noise whose distribution is known exactly for each true count, and periodic for large ones.

    `RandomRounding`, `RoundToNearest`, `SuppressBelow` and `PerturbationTable` are of this kind,
    and `then` applies one after the other. Noise that does not depend on the count, like
    `cvxleak.model.Gaussian`, `DiscreteGaussian` or `DiscreteLaplace`, is not a `CountNoise`; a
    table accepts both.

    Examples
    --------
    >>> from cvxleak.tables import CountNoise, RandomRounding
    >>> noise = RandomRounding(base=3)
    >>> isinstance(noise, CountNoise), noise.start, noise.period
    (True, 0, 3)

    A rule of your own is a class with a law for each count, and says from which count the
    perturbations repeat. Here 0 stays, 1 to 6 is published as 3, 7 to 12 as 9, and so on:

    >>> from fractions import Fraction
    >>> class Midpoint(CountNoise):
    ...     start, period = 1, 6
    ...
    ...     def law(self, count):
    ...         return {6 * ((count + 5) // 6) - 3 if count else 0: Fraction(1)}
    >>> Midpoint().counts_of(3), Midpoint().counts_of(0)
    ([(1, 6)], [(0, 0)])
    """

    @abstractmethod
    def law(self, count: int) -> Law:
        """Return the distribution of the published value of a true count."""

    @property
    @abstractmethod
    def start(self) -> int:
        """The count from which the distribution of the perturbation is periodic."""

    @property
    @abstractmethod
    def period(self) -> int:
        """The period of the perturbation's distribution, in counts."""

    @property
    def suppresses(self) -> bool:
        """Whether some numbers are not shown (`SUPPRESSED`)."""
        return False

    def then(self, other: CountNoise) -> CountNoise:
        """Return this noise followed by another one.

        A number that this noise suppresses remains so.

        Parameters
        ----------
        other : CountNoise

        Raises
        ------
        ValidationError
            Noise of another kind, or a perturbation table whose keys are summed (they would link
            the numbers of a table).

        Examples
        --------
        Counts below 8 are published as 0, and all others rounded to a multiple of 5:

        >>> from cvxleak.tables import RoundToNearest, SuppressBelow
        >>> noise = SuppressBelow(8, replacement=0).then(RoundToNearest(5))
        >>> noise
        SuppressBelow(8, replacement=0).then(RoundToNearest(5))
        >>> noise.counts_of(0), noise.counts_of(10)
        ([(0, 7)], [(8, 12)])
        """
        return _Then(self, other)

    @cached_property
    def _reach(self) -> int:
        """How far a published value can be from its count."""
        counts = range(self.start + self.period)
        return max(abs(y - count) for count in counts for y in self.law(count))

    def counts_of(self, published: int) -> list[Interval]:
        """Return the true counts that a published value can come from, as runs.

        Examples
        --------
        >>> from cvxleak.tables import RandomRounding
        >>> RandomRounding(base=3).counts_of(6)
        [(4, 8)]
        """
        near = range(max(0, published - self._reach), published + self._reach + 1)
        runs: list[Interval] = []
        for count in (c for c in near if published in self.law(c)):
            joins = runs and runs[-1][1] == count - 1
            runs[-1:] = [(runs[-1][0], count)] if joins else [*runs[-1:], (count, count)]
        return runs

    def channel(self, largest: int) -> Channel:
        """Return the channel from the counts 0, ..., `largest` to the published values.

        Examples
        --------
        >>> from cvxleak.tables import RandomRounding
        >>> RandomRounding(base=2).channel(2).matrix
        array([[1. , 0. ],
               [0.5, 0.5],
               [0. , 1. ]])
        """
        laws = [self.law(count) for count in range(whole_number(largest, "largest", 0) + 1)]
        outputs = sorted(set().union(*laws))
        check_cells(len(laws), len(outputs), "largest")
        rows = np.array([[law.get(y, 0.0) for y in outputs] for law in laws], dtype=object)
        hidden = SUPPRESSED if self.suppresses else None
        return Channel(
            rows, range(len(laws)), ["suppressed" if y == hidden else y for y in outputs]
        )

    def published(self, value: Any, name: str) -> int:
        """Return a published value as a whole number, `SUPPRESSED` if it is not shown.

        Raises
        ------
        ValidationError
            No whole number, or a number that is not shown although this noise shows all.

        Examples
        --------
        >>> from cvxleak.tables import SuppressBelow
        >>> [SuppressBelow(8).published(value, "published") for value in (12.0, None, "x", "<8")]
        [12, -1, -1, -1]
        """
        if not_shown(value):
            if not self.suppresses:
                raise ValidationError(
                    f"{name}: found {short(value)}, and {self!r} shows every number; if small ones "
                    "are not shown, say SuppressBelow(threshold), alone or followed by .then(...)"
                )
            below, text = self.counts_of(SUPPRESSED)[-1][1] or 0, str(value).strip()
            if text.startswith("<") and text[1:].strip() != str(below + 1):
                raise ValidationError(
                    f"{name}: found {short(value)}; {self!r} suppresses counts up to {below}"
                )
            return SUPPRESSED
        if isinstance(value, str):
            raise ValidationError(
                f"{name}: found {short(value)}; a whole number without separators of thousands is "
                "needed (1125, not 1,125)"
            )
        whole = int(value) if isinstance(value, float) and value.is_integer() else value
        return whole_number(whole, name, -SIZE_LIMIT, SIZE_LIMIT)


def not_shown(value: Any) -> bool:
    """Whether a published value is missing, or a mark for a number that is not shown.

    Examples
    --------
    >>> from cvxleak.tables.noise import not_shown
    >>> [not_shown(value) for value in (None, "x", "<5", 0, "0")]
    [True, True, True, False, False]
    """
    if isinstance(value, str):
        text = value.strip().lower()
        return text in MARKS or text.startswith("<")
    return is_missing(value)


@dataclass(frozen=True, eq=False, repr=False)
class _Then(CountNoise, Value):
    """One noise after another; what the first suppresses stays so."""

    first: CountNoise
    second: CountNoise

    def __post_init__(self) -> None:
        for part in (self.first, instance(self.second, CountNoise, "other")):
            if isinstance(part, PerturbationTable) and part.summed_keys:
                raise ValidationError(
                    f"other: found {part!r}, whose keys are summed; what links the numbers of a "
                    "table would be lost. summed_keys=False is for noise drawn for each number"
                )

    @property
    def start(self) -> int:
        return max(self.first.start, self.second.start + self.first._reach)

    @property
    def period(self) -> int:
        return math.lcm(self.first.period, self.second.period)

    @property
    def suppresses(self) -> bool:
        return self.first.suppresses or self.second.suppresses

    def __repr__(self) -> str:
        return f"{self.first!r}.then({self.second!r})"

    def law(self, count: int) -> Law:
        found: Law = {}
        hidden = SUPPRESSED if self.first.suppresses else None
        for between, p in self.first.law(count).items():
            then = {between: Fraction(1)} if between == hidden else self.second.law(between)
            for y, q in then.items():
                found[y] = found.get(y, Fraction(0)) + p * q
        return found


def log_likelihood(noise: CountNoise | AdditiveNoise, published: float, count: int) -> float:
    """Return log P(published | count), or the log-density, up to a term that no count changes.

    Examples
    --------
    >>> from cvxleak.model import Laplace
    >>> from cvxleak.tables import RandomRounding
    >>> from cvxleak.tables.noise import log_likelihood
    >>> log_likelihood(RandomRounding(2), 4, 3), log_likelihood(Laplace(2), 4.0, 3)
    (-0.6931471805599453, -0.5)
    """
    if isinstance(noise, CountNoise):
        return _log(float(noise.law(count).get(int(published), 0)))
    if isinstance(noise, Rounded):
        half = noise.base / 2
        if abs(published / noise.base - round(published / noise.base)) > HALFWAY:
            return -math.inf
        masses = noise.masses(
            [count], np.array([-math.inf, published - half, published + half, math.inf])
        )
        return _log(float(masses[0, 1]))
    z = published - count
    if isinstance(noise, AdditiveNoise) and noise.whole and z != round(z):
        return -math.inf
    if isinstance(noise, Gaussian | DiscreteGaussian):
        return -((z / noise.sigma) ** 2) / 2
    if isinstance(noise, Laplace | DiscreteLaplace):
        return -abs(z) / noise.scale
    if isinstance(noise, Uniform):
        return 0.0 if abs(z) <= noise.half_width else -math.inf
    raise ValidationError(f"noise: found {noise!r}, whose density is not known here")


def noise_by_label(noise: Mapping[Any, Any], labels: Sequence[Any], hint: str = "") -> dict:
    """Return the noise of each number by its label; raise if one is missing or superfluous.

    Examples
    --------
    >>> from cvxleak.tables import RandomRounding
    >>> from cvxleak.tables.noise import noise_by_label
    >>> noise_by_label({"a": RandomRounding(3)}, ["a"])
    {'a': RandomRounding(3)}
    """
    for label in noise:
        if label not in labels:
            raise ValidationError(
                f"noise: found {short(label)}; the numbers are {preview(tuple(labels))}"
            )
    for label in labels:
        if label not in noise:
            raise ValidationError(f"noise: the number {short(label)} has none{hint}")
    return dict(noise)


def _log(p: float) -> float:
    return math.log(p) if p else -math.inf


@dataclass(frozen=True, eq=False)
class RandomRounding(CountNoise, Value):
    """Random rounding of counts of any size to a multiple of a base.

    As `cvxleak.mechanisms.random_rounding`: a count of v with r = v mod base > 0 becomes v - r +
    base with probability u(r), r / base if `up` is left out, and v - r otherwise.

    Parameters
    ----------
    base : int
        At least 1.
    up : sequence of float, optional
        u(1), ..., u(base - 1).

    Raises
    ------
    ValidationError
        A base that is not a positive integer, or `up` is not base - 1 probabilities.

    Examples
    --------
    >>> from cvxleak.tables import RandomRounding
    >>> RandomRounding(base=3).law(1_000_000)
    {999999: Fraction(2, 3), 1000002: Fraction(1, 3)}
    """

    base: int
    up: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        base = whole_number(self.base, "base", 1, 1 << 20)
        object.__setattr__(self, "base", base)
        if self.up is not None:
            object.__setattr__(self, "up", in_order(self.up, "up"))
        _ = self._laws  # the probabilities are checked

    @cached_property
    def _laws(self) -> tuple[Law, ...]:
        channel = random_rounding(max(self.base - 1, 1), self.base, self.up)
        outputs: Any = channel.outputs
        rows = [exact_law(channel.row(count)) for count in range(self.base)]
        return tuple({y: p for y, p in zip(outputs, row, strict=True) if p} for row in rows)

    @property
    def start(self) -> int:
        """0."""
        return 0

    @property
    def period(self) -> int:
        """The base."""
        return self.base

    def __repr__(self) -> str:
        return f"RandomRounding({self.base}" + (f", up={self.up})" if self.up else ")")

    def law(self, count: int) -> Law:
        """Return the distribution of the published value of a true count."""
        rest = whole_number(count, "count", 0) % self.base
        return {count - rest + value: p for value, p in self._laws[rest].items()}


@dataclass(frozen=True, eq=False)
class PerturbationTable(CountNoise, Value):
    r"""A statistical office's perturbation table, applied by cell keys.

    Each person has a random key. The key of a cell is the sum of the keys of its people, modulo the
    number of keys, and the key of a margin is the sum of the keys of its cells. The file gives the
    perturbation of a count for each key. So the noise of a margin depends on that of its cells,
    unless the office draws it independently.

    Parameters
    ----------
    path : path
        The file, in one of the forms that `cvxleak.model.Mechanism.from_ptable` reads.
    cycle : int, optional
        As there.
    summed_keys : bool
        Whether the key of a margin is the sum of its cells' keys. If not, every number is perturbed
        independently of the others.

    Raises
    ------
    ValidationError
        As `Mechanism.from_ptable`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from cvxleak.tables import PerturbationTable
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "ptable.csv")
    ...     _ = path.write_text("i,j,p\n1,0,1/3\n1,1,1/2\n1,3,1/6\n2,1,1/4\n2,3,3/4\n")
    ...     noise = PerturbationTable(path)
    >>> noise.law(1), noise.law(100)[99]
    ({0: Fraction(1, 3), 1: Fraction(1, 2), 3: Fraction(1, 6)}, Fraction(1, 4))
    """

    path: str | os.PathLike[str]
    cycle: int | None = None
    summed_keys: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", os.fspath(checked_path(self.path)))
        object.__setattr__(self, "summed_keys", instance(self.summed_keys, bool, "summed_keys"))
        self.table.period(self.cycle)

    def _state(self) -> tuple[Any, ...]:
        return *super()._state(), self.table.keys, self.table.steps  # the file may change

    @cached_property
    def _hash(self) -> int:
        return hash(self._state())

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def table(self) -> PTable:
        """The rows of the file."""
        return read_ptable(self.path)

    @property
    def start(self) -> int:
        """The count from which the rows repeat."""
        return self.table.last + 1 - self.period

    @property
    def period(self) -> int:
        """The number of rows that repeat."""
        return self.table.period(self.cycle) or 1

    def law(self, count: int) -> Law:
        """Return the distribution of the published value of a true count."""
        row = self.table.laws[self.table.place(whole_number(count, "count", 0), self.cycle)]
        if count == 0 and self.summed_keys:  # the key of no people is 0
            return {next(v for end, v in self.table.steps[0] if end): Fraction(1)}
        return {count + v: p for v, p in row.items() if p}

    def steps(self, count: int) -> Steps:
        r"""Return the published values of a true count by its key, with upper limits from 0 to 1.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from cvxleak.tables import PerturbationTable
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "ptable.csv")
        ...     _ = path.write_text("pcv,ckey,pvalue\n1,0,-1\n1,1,1\n")
        ...     PerturbationTable(path, cycle=1).steps(5)
        ((Fraction(1, 2), 4), (Fraction(1, 1), 6))
        """
        place = self.table.place(whole_number(count, "count", 0), self.cycle)
        return tuple((end, count + v) for end, v in self.table.steps[place])
