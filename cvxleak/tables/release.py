"""`TableRelease`: a table and the noise of each published number."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import (
    Array,
    check_cells,
    in_order,
    instance,
    real_number,
    short,
)
from cvxleak.core.value import Value, preview
from cvxleak.core.wording import are, counted
from cvxleak.model import AdditiveNoise, Channel, Mechanism
from cvxleak.tables.arguments import Cell
from cvxleak.tables.keys import Linked, joint_law
from cvxleak.tables.noise import (
    CountNoise,
    Interval,
    PerturbationTable,
    log_likelihood,
    noise_by_label,
    not_shown,
)
from cvxleak.tables.reading import read_published
from cvxleak.tables.table import Table

__all__ = ["Noise", "TableRelease"]

FRAMES = "; a frame is a cross table, or has a column for each variable and one called 'count'"
"""Describes frames of published numbers, after a message about their labels."""

Noise = CountNoise | AdditiveNoise
"""The noise of one published number."""


@dataclass(frozen=True, eq=False, repr=False, init=False)
class TableRelease(Value):
    """A table whose numbers are published with noise.

    Parameters
    ----------
    table : Table
    noise : CountNoise, AdditiveNoise, or mapping
        One noise for all numbers, or a mapping from the label of each number to its noise (None if
        the number is not published).

    Raises
    ------
    ValidationError
        Noise of the wrong kind, a label that is not a published number, or a number without noise.

    Examples
    --------
    >>> from cvxleak.tables import RandomRounding, Table, TableRelease
    >>> table = Table({"answer": ["no", "yes"]}, counts=[3, 4])
    >>> release = TableRelease(table, RandomRounding(base=3))
    >>> release
    TableRelease(7 people by answer (2), 3 published numbers: RandomRounding(3))
    >>> release.mechanism
    Mechanism(7 records, 8 query values -> 18 outputs)
    """

    table: Table
    noise: tuple[tuple[Cell, Noise], ...]

    def __init__(self, table: Table, noise: Noise | Mapping[Any, Noise | None]) -> None:
        numbers = instance(table, Table, "table").numbers
        if isinstance(noise, Mapping):
            hint = "; say None if it is not published"
            given = noise_by_label(noise, numbers, hint)
        else:
            given = dict.fromkeys(numbers, noise)
        pairs = []
        for label in numbers:
            law = given[label]
            if law is None:
                continue
            if not isinstance(law, (CountNoise, AdditiveNoise)):
                raise ValidationError(
                    f"noise: found {short(law)}; RoundToNearest, SuppressBelow, RandomRounding, "
                    "PerturbationTable, or noise of cvxleak.model such as Gaussian is needed; a "
                    "rule of your own is a subclass of CountNoise"
                )
            pairs.append((label, law))
        if not pairs:
            raise ValidationError("noise: no number is published")
        object.__setattr__(self, "table", table)
        object.__setattr__(self, "noise", tuple(pairs))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.table, self._by_label)

    @property
    def _by_label(self) -> dict[Cell, Noise | None]:
        published = dict(self.noise)
        return {label: published.get(label) for label in self.table.numbers}

    @property
    def numbers(self) -> tuple[Cell, ...]:
        """Labels of the numbers that are published."""
        return tuple(label for label, _ in self.noise)

    @cached_property
    def sums(self) -> tuple[tuple[int, ...], ...]:
        """For each published number, the positions in `table.cells` of the cells that it sums."""
        known = dict(zip(self.table.numbers, self.table.sums, strict=True))
        return tuple(known[label] for label in self.numbers)

    @property
    def true(self) -> tuple[int, ...]:
        """The true value of each published number."""
        cells = self.table.in_cells
        return tuple(int(cells[list(places)].sum()) for places in self.sums)

    def as_published(self, published: Any) -> list[Any]:
        """Return published values in the order of `numbers`.

        Parameters
        ----------
        published : sequence, mapping, Series, DataFrame, or path of a CSV file
            In that order, or by label; frames and files as `Table.from_counts` reads them. A number
            that `SuppressBelow` does not show, or that is not published, is None or NaN, or one of
            the marks that files have.

        Raises
        ------
        ValidationError
            A wrong number of values, or wrong labels.

        Examples
        --------
        >>> from cvxleak.tables import RandomRounding, Table, TableRelease
        >>> release = TableRelease(Table({"answer": ["no", "yes"]}, people=4), RandomRounding(3))
        >>> release.as_published({("yes",): 0, ("no",): 6, ("total",): 3})
        [6, 0, 3]
        """
        framed = hasattr(published, "columns") and hasattr(published, "iloc")
        crossed = ""
        if framed or isinstance(published, (str, os.PathLike)):
            published, crossed = read_published(published, self.table.names, self.table.columns)
        hint = crossed or (FRAMES if framed else "")
        if hasattr(published, "keys"):
            given = {key if isinstance(key, tuple) else (key,): y for key, y in published.items()}
            hidden = set(self.table.numbers) - set(self.numbers)
            for label in list(given):
                if label in hidden and not_shown(given[label]):
                    del given[label]
                elif label not in self.numbers:
                    raise ValidationError(
                        f"published: found {short(label)}; the numbers are {preview(self.numbers)}"
                        + hint
                    )
            absent = tuple(label for label in self.numbers if label not in given)
            if absent:
                raise ValidationError(
                    f"published: {len(absent)} of {counted(len(self.numbers), 'number')} "
                    f"{are(len(absent))} missing, " + preview(absent)
                )
            values = tuple(given[label] for label in self.numbers)
        else:
            values = in_order(published, "published")
        if len(values) != len(self.numbers):
            raise ValidationError(
                f"published: found {counted(len(values), 'value')}; "
                f"{counted(len(self.numbers), 'number')} "
                f"{are(len(self.numbers))} published, in the order of Table.numbers (a Table with "
                "margins=False has no totals)"
            )
        return [
            noise.published(y, f"published[{label!r}]")
            if isinstance(noise, CountNoise)
            else real_number(y, f"published[{label!r}]", open_low=True, open_high=True)
            for (label, noise), y in zip(self.noise, values, strict=True)
        ]

    def allowed(self, published: Any) -> list[list[Interval]]:
        """Return, for each published number, the compatible true counts, as runs.

        Unbounded noise allows all.

        Raises
        ------
        ValidationError
            As for `as_published`, or a value that its noise produces for no count.

        Examples
        --------
        >>> from cvxleak.tables import RandomRounding, Table, TableRelease
        >>> release = TableRelease(Table({"answer": ["no", "yes"]}, people=4), RandomRounding(3))
        >>> release.allowed([6, 0, 3])
        [[(4, 8)], [(0, 2)], [(1, 5)]]
        """
        found: list[list[Interval]] = []
        for (label, noise), y in zip(self.noise, self.as_published(published), strict=True):
            every: list[Interval] = [(0, None)]
            runs = noise.counts_of(y) if isinstance(noise, CountNoise) else every
            if not runs:
                raise ValidationError(
                    f"published: found {y} for {label!r}, which {noise!r} gives for no count"
                )
            found.append(runs)
        return found

    def log_likelihoods(self, published: Any) -> Array:
        """Return log P(y | t + d) of each published number y, up to what d does not change.

        t is the true value of the number, and d is -1, 0 or 1, its change by one person. If keys
        link numbers, the log-likelihood of all of them is not the sum of these.

        Returns
        -------
        ndarray, shape (3, numbers)

        Raises
        ------
        ValidationError
            As `as_published`, or a table without counts.

        Examples
        --------
        >>> from cvxleak.tables import RandomRounding, Table, TableRelease
        >>> table = Table({"answer": ["no", "yes"]}, counts=[3, 1])
        >>> TableRelease(table, RandomRounding(3)).log_likelihoods([3, 0, 3]).round(3)
        array([[-0.405,  0.   ,  0.   ],
               [ 0.   , -0.405, -0.405],
               [-0.405, -1.099, -1.099]])
        """
        values, found = self.as_published(published), np.full((3, len(self.noise)), -math.inf)
        for place, ((_, noise), y, t) in enumerate(zip(self.noise, values, self.true, strict=True)):
            for row, count in enumerate(range(t - 1, t + 2)):
                if count >= 0:
                    found[row, place] = log_likelihood(noise, y, count)
        return found

    @property
    def linked(self) -> bool:
        """Whether keys link the noise of several numbers."""
        return bool(self.keyed)

    @cached_property
    def keyed(self) -> dict[int, Linked]:
        """The positions in `numbers` of the numbers whose keys are linked.

        Their keys are sums, and each shares a cell with another one of them.
        """
        found = {
            place: Linked(law, places)
            for place, ((_, law), places) in enumerate(zip(self.noise, self.sums, strict=True))
            if isinstance(law, PerturbationTable) and law.summed_keys
        }
        often = Counter(cell for one in found.values() for cell in one.places)
        return {place: one for place, one in found.items() if any(often[c] > 1 for c in one.places)}

    def law(self, counts: Sequence[Any]) -> dict[tuple[int, ...], Fraction]:
        """Return the exact joint distribution of the published numbers, given the true cell counts.

        Parameters
        ----------
        counts : sequence of int
            One for each of `table.cells`.

        Raises
        ------
        ValidationError
            Noise of a number that is not a `CountNoise`, or numbers that keys link and whose
            distribution takes too long to compute.

        Notes
        -----
        Keys that are summed link numbers (:doc:`/theory/tables`). With K keys their distribution
        may take at most 2^28 additions; it takes K^(1 + m) or more for m margins that are open at
        once. For keys from 0 to 1 it is available for one margin and its cells.

        Examples
        --------
        >>> from cvxleak.tables import RandomRounding, Table, TableRelease
        >>> table = Table({"answer": ["no", "yes"]}, people=4, margins=False)
        >>> TableRelease(table, RandomRounding(base=2)).law([3, 1])[2, 0]
        Fraction(1, 4)
        """
        laws, keyed = self._laws(counts), self.keyed
        alone = [law for place, law in enumerate(laws) if place not in keyed]
        together = joint_law([*keyed.values()], counts) if keyed else {(): Fraction(1)}
        check_cells(math.prod(map(len, alone)) * len(together), len(laws), "counts")
        back = np.argsort([*keyed, *(j for j in range(len(laws)) if j not in keyed)]).tolist()
        found = {}
        singles = product(*(law.items() for law in alone))
        for (linked, p), rest in product(together.items(), singles):
            values = *linked, *(y for y, _ in rest)
            found[tuple(values[place] for place in back)] = math.prod((q for _, q in rest), start=p)
        return found

    def _laws(self, counts: Sequence[Any]) -> list[dict[int, Fraction]]:
        """Return the distribution of each published number on its own."""
        laws = []
        for (label, noise), places in zip(self.noise, self.sums, strict=True):
            if not isinstance(noise, CountNoise):
                raise ValidationError(
                    f"noise: that of {label!r} is {noise!r}, whose outputs are no finite set"
                )
            laws.append(noise.law(sum(int(counts[place]) for place in places)))
        return laws

    @cached_property
    def mechanism(self) -> Mechanism:
        """The whole release as a mechanism on the dataset of n people, for small tables.

        Its query is the vector of the cells' counts, its outputs the tuples of published numbers.

        Raises
        ------
        ValidationError
            As `law`, and a table that is too large to be written out.
        """
        query = self.table.query
        values: Any = query.values
        supports = [set().union(*column) for column in zip(*map(self._laws, values), strict=True)]
        check_cells(len(query.values), math.prod(map(len, supports)), "table")
        laws = [self.law(counts) for counts in values]
        outputs = sorted(set().union(*laws))
        places = {output: place for place, output in enumerate(outputs)}
        rows = np.zeros((len(laws), len(outputs)), dtype=object)
        for row, law in zip(rows, laws, strict=True):
            row[[places[published] for published in law]] = list(law.values())
        return Mechanism(query, Channel(rows, query.values, outputs))

    def __repr__(self) -> str:
        kinds = dict.fromkeys(repr(law) for _, law in self.noise)
        people = repr(self.table)[6:].rsplit(",", 1)[0]
        count = f"{len(self.noise)} published number" + ("s" if len(self.noise) > 1 else "")
        return f"TableRelease({people}, {count}: {', '.join(kinds)})"
