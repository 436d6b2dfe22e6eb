"""`Table`: the cells of a table of counts, and the sums of cells that are published."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cvxleak.core.errors import ValidationError
from cvxleak.core.notebook import html_table
from cvxleak.core.validation import in_order, instance, read_only, short
from cvxleak.core.value import Value, preview
from cvxleak.model import AdditiveQuery
from cvxleak.queries import histogram
from cvxleak.tables.arguments import (
    OUTSIDE,
    TOTAL,
    Cell,
    check_size,
    checked_counts,
    checked_margins,
    checked_names,
    checked_people,
    checked_variables,
    known_name,
    places_of,
)
from cvxleak.tables.reading import microdata_columns, read_counts, read_layout

__all__ = ["Table"]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Table(Value):
    """A table of counts of n people: variables, margins and, optionally, the counts.

    Each person is in one cell: one category of each variable. The published numbers are the counts
    of the cells and of the margins, which are sums of cells. The label of a cell is a tuple with a
    category of each variable; the label of a margin has "total" for each variable that is summed
    over.

    Parameters
    ----------
    variables : mapping
        The categories of each variable, by its name, in the order in which the table shows them.
    people : int, optional
        The number n of people; the sum of the counts if left out. Without counts it may be unknown:
        what a published table still allows (`possible_counts`) does not depend on it.
    counts : array_like of int, optional
        The true count of each cell, with one axis per variable. Without counts, the table describes
        the layout of what would be published about n people.
    margins : bool or iterable of iterables of str
        Which margins are published: all if True, none if False, or those that keep these variables;
        ``[("sex",), ()]`` are the counts by sex and the grand total.
    zeros : iterable of tuples
        Structural zeros: cells in which nobody can be. Their counts are not published.
    outside : bool
        Whether a person may be in none of the cells, because the table covers only part of a
        population of n. If not, the counts sum to n.
    columns : iterable of str
        The variables that run from left to right where the table is shown; the others run down.

    Attributes
    ----------
    cells : tuple
        Labels of the cells that are not structural zeros, the last variable fastest.
    numbers : tuple
        Labels of the published numbers: the cells first, then the margins.
    incidence : ndarray of bool, shape (numbers, cells)
        Which cells are summed to each published number.

    Raises
    ------
    ValidationError
        No variables; a duplicate category or one called "total"; counts of the wrong shape,
        negative, not integers, with a sum other than n, or positive in a structural zero; a margin
        of unknown variables.

    Examples
    --------
    >>> from cvxleak.tables import Table
    >>> table = Table(
    ...     {"sex": ["f", "m"], "answer": ["no", "yes"]}, counts=[[5, 2], [4, 0]]
    ... )
    >>> table
    Table(11 people by sex (2) and answer (2), 9 published numbers)
    >>> table.cells
    (('f', 'no'), ('f', 'yes'), ('m', 'no'), ('m', 'yes'))
    >>> table.numbers[4:]
    (('f', 'total'), ('m', 'total'), ('total', 'no'), ('total', 'yes'), ('total', 'total'))
    >>> table.true
    array([ 5,  2,  4,  0,  7,  4,  9,  2, 11])
    """

    variables: tuple[tuple[str, tuple[Hashable, ...]], ...]
    stated_people: int | None
    counts: NDArray[np.int64] | None
    margins: tuple[tuple[str, ...], ...]
    zeros: tuple[Cell, ...]
    outside: bool
    columns: tuple[str, ...]

    def __init__(
        self,
        variables: Mapping[str, Iterable[Hashable]],
        people: int | None = None,
        *,
        counts: ArrayLike | None = None,
        margins: bool | Iterable[Iterable[str]] = True,
        zeros: Iterable[Cell] = (),
        outside: bool = False,
        columns: Iterable[str] = (),
    ) -> None:
        named = checked_variables(variables)
        shape = tuple(len(categories) for _, categories in named)
        object.__setattr__(self, "variables", named)
        object.__setattr__(self, "outside", instance(outside, bool, "outside"))
        object.__setattr__(self, "margins", checked_margins(margins, self.names))
        across = [known_name(name, self.names, "columns") for name in in_order(columns, "columns")]
        object.__setattr__(self, "columns", tuple(n for n in self.names if n in across))
        empty = {places_of(cell, named, "zeros") for cell in in_order(zeros, "zeros")}
        object.__setattr__(self, "zeros", tuple(self._label(place) for place in sorted(empty)))
        given = None if counts is None else checked_counts(counts, shape)
        if given is not None:
            for place in empty:
                if given[place]:
                    raise ValidationError(
                        f"counts: found {given[place]} in the cell {self._label(place)!r}, which "
                        "is a structural zero"
                    )
        object.__setattr__(self, "counts", given)
        object.__setattr__(self, "stated_people", checked_people(people, given, self.outside))
        if not self.cells:
            raise ValidationError("zeros: every cell is a structural zero; one has to be possible")

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (dict(self.variables), self._options())

    def _options(self) -> dict[str, Any]:
        names = ("counts", "margins", "zeros", "outside", "columns")
        return {"people": self.stated_people, **{name: getattr(self, name) for name in names}}

    @classmethod
    def from_microdata(
        cls,
        data: Any,
        rows: Sequence[str],
        columns: Sequence[str] = (),
        *,
        margins: bool | Iterable[Iterable[str]] = True,
        categories: Mapping[str, Iterable[Hashable]] | None = None,
        zeros: Iterable[Cell] = (),
        missing: str = "refuse",
    ) -> Self:
        """Return the table of microdata, in which each row is one person.

        Only the counts are kept.

        Parameters
        ----------
        data : pandas.DataFrame, mapping, or path of a CSV file
            A column for each variable, named like it.
        rows, columns : sequence of str
            The variables that run down and across.
        margins, zeros
            As for `Table`.
        categories : mapping, optional
            For a variable, all its categories in order, including those that nobody has. If a
            variable is left out, the categories that occur, in increasing order if they can be
            compared.
        missing : str
            How missing values (None, NaN, an empty cell) are treated: "refuse" (an error), or
            "category" (a separate category called "missing", which comes last).

        Raises
        ------
        ValidationError
            A missing column, no people, a missing value, a category that is not among those listed,
            or anything that `Table` refuses.

        Examples
        --------
        >>> from cvxleak.tables import Table
        >>> people = {"sex": ["f", "f", "m"], "age": ["young", "old", "old"]}
        >>> Table.from_microdata(people, rows=["sex"], columns=["age"]).counts
        array([[1, 1],
               [1, 0]])
        """
        names = (*checked_names(rows, "rows"), *checked_names(columns, "columns"))
        found = microdata_columns(data, names, categories or {}, missing)
        shape = tuple(len(known) for known, _ in found.values())
        check_size(shape)
        flat = np.ravel_multi_index([places for _, places in found.values()], shape)
        counts = np.bincount(flat, minlength=math.prod(shape)).reshape(shape)
        variables = {name: known for name, (known, _) in found.items()}
        return cls(variables, counts=counts, margins=margins, zeros=zeros, columns=columns)

    @classmethod
    def from_counts(
        cls,
        data: Any,
        *,
        margins: bool | Iterable[Iterable[str]] = True,
        zeros: Iterable[Cell] = (),
        people: int | None = None,
        outside: bool = False,
        missing: str = "refuse",
    ) -> Self:
        r"""Read a table of counts from a file or a frame.

        Parameters
        ----------
        data : pandas.DataFrame, or path of a CSV file
            Either in long format, one row per cell, with a column for each variable and one called
            "count" (or "Freq", as in R); or a cross table of two variables, with the categories of
            one in the header and those of the other in the first column. The first cell of the
            header may name both, as in ``sex/age``; otherwise they are called "row" and "column".
            Rows and columns called "total" or "sum" (in small or capital letters) are margins and
            must add up. Cells are separated by commas, by semicolons, or by tabs and spaces, as R
            prints and writes tables.
        margins, zeros, people, outside
            As for `Table`.
        missing : str
            How cells without a row are treated: "refuse" (an error that names them) or "zero" (they
            are 0). Structural zeros and cells of a margin that adds up without them need no row.

        Raises
        ------
        ValidationError
            A file that cannot be read, a count that is negative or not an integer, a duplicate or
            missing cell, or a margin that does not add up (the message gives its label, its value
            and the sum of its cells).

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from cvxleak.tables import Table
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "counts.csv")
        ...     _ = path.write_text("sex/age,young,old,total\nf,5,2,7\nm,4,0,4\ntotal,9,2,11\n")
        ...     Table.from_counts(path)
        Table(11 people by sex (2) and age (2), 9 published numbers)
        """
        listed = in_order(zeros, "zeros")
        variables, counts, columns = read_counts(data, listed, missing)
        return cls(
            variables,
            people,
            counts=counts,
            margins=margins,
            zeros=listed,
            outside=outside,
            columns=columns,
        )

    @classmethod
    def from_published(
        cls, data: Any, *, zeros: Iterable[Cell] = (), outside: bool = False
    ) -> Self:
        r"""Return the layout of a table that was published with noise: no counts, n unknown.

        Parameters
        ----------
        data : pandas.DataFrame, or path of a CSV file
            As `from_counts` reads it. The numbers need not add up, and their values are not used;
            margins are published if they are there.
        zeros, outside
            As for `Table`.

        Raises
        ------
        ValidationError
            A file that cannot be read, or a category called "all", which may be a margin.

        Examples
        --------
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from cvxleak.tables import RoundToNearest, Table, TableRelease, possible_counts
        >>> with TemporaryDirectory() as folder:
        ...     path = Path(folder, "rounded.csv")
        ...     text = "sex/answer,no,yes,total\nf,1700,65,1760\nm,105,5,110\n"
        ...     _ = path.write_text(text + "total,1800,70,1870\n")
        ...     release = TableRelease(Table.from_published(path), RoundToNearest(5))
        ...     found = possible_counts(release, path)
        >>> release
        TableRelease(sex (2) and answer (2), 9 published numbers: RoundToNearest(5))
        >>> print(found)
        9 numbers, 0 known exactly, from what was published alone
        f/no         1698 to 1699
        f/yes        63 to 64
        m/no         103 to 104
        m/yes        4 to 7
        f/total      1761 to 1762
        m/total      108 to 111
        total/no     1801 to 1802
        total/yes    68 to 71
        total/total  1869 to 1872
        """
        variables, margins, columns = read_layout(data)
        return cls(
            variables,
            margins=margins,
            zeros=zeros,
            outside=outside,
            columns=columns,
        )

    @property
    def people(self) -> int:
        """The number n of people.

        Raises
        ------
        ValidationError
            It is not known.
        """
        if self.stated_people is None:
            raise ValidationError(
                "people: is missing; without counts, the number of people is needed here: "
                "Table(..., people=)"
            )
        return self.stated_people

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables."""
        return tuple(name for name, _ in self.variables)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of categories of each variable."""
        return tuple(len(categories) for _, categories in self.variables)

    @cached_property
    def _places(self) -> tuple[tuple[int, ...], ...]:
        """Where the cells are that are no structural zeros."""
        empty = {places_of(cell, self.variables, "zeros") for cell in self.zeros}
        return tuple(place for place in np.ndindex(self.shape) if place not in empty)

    def _label(self, place: tuple[int, ...]) -> Cell:
        pairs = zip(self.variables, place, strict=True)
        return tuple(TOTAL if i < 0 else categories[i] for (_, categories), i in pairs)

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Labels of the cells that are not structural zeros, the last variable fastest."""
        return tuple(map(self._label, self._places))

    @cached_property
    def _sums(self) -> dict[Cell, tuple[int, ...]]:
        """For each published number, its label and the cells that it is the sum of."""
        found: dict[Cell, list[int]] = {cell: [place] for place, cell in enumerate(self.cells)}
        for kept in self.margins:
            axes = [name in kept for name in self.names]
            ranges = [range(k) if keep else (-1,) for keep, k in zip(axes, self.shape, strict=True)]
            margin: dict[Cell, list[int]] = {self._label(p): [] for p in product(*ranges)}
            for number, place in enumerate(self._places):
                summed = [i if keep else -1 for keep, i in zip(axes, place, strict=True)]
                margin[self._label(tuple(summed))].append(number)
            found |= {label: cells for label, cells in margin.items() if cells}
        return {label: tuple(cells) for label, cells in found.items()}

    @property
    def numbers(self) -> tuple[Cell, ...]:
        """Labels of the published numbers: the cells, then the margins, the grand total last."""
        return tuple(self._sums)

    @property
    def sums(self) -> tuple[tuple[int, ...], ...]:
        """For each published number, the places in `cells` of those that it is the sum of."""
        return tuple(self._sums.values())

    @cached_property
    def incidence(self) -> NDArray[np.bool_]:
        """Which cells are summed to each published number, shape (numbers, cells)."""
        found = np.zeros((len(self._sums), len(self.cells)), dtype=bool)
        for row, cells in enumerate(self.sums):
            found[row, list(cells)] = True
        return read_only(found)

    @property
    def in_cells(self) -> NDArray[np.int64]:
        """The true count of each cell, in the order of `cells`.

        Raises
        ------
        ValidationError
            The table has no counts.
        """
        if self.counts is None:
            raise ValidationError("table: it has no true counts; Table(..., counts=) states them")
        return self.counts[tuple(np.array(self._places).T)]

    @property
    def true(self) -> NDArray[np.int64]:
        """The true value of each published number, in the order of `numbers`.

        Raises
        ------
        ValidationError
            The table has no counts.
        """
        counts = self.in_cells
        return np.array([counts[list(cells)].sum() for cells in self.sums])

    @property
    def alphabet(self) -> tuple[Hashable, ...]:
        """The values of a record: the cells, and "outside" if a person may be in none."""
        return (*self.cells, OUTSIDE) if self.outside else self.cells

    @cached_property
    def query(self) -> AdditiveQuery:
        """The vector of the cell counts, as a query of n records.

        Raises
        ------
        ValidationError
            Too many vectors of counts to enumerate.
        """
        return histogram(self.people, self.cells, others=(OUTSIDE,) if self.outside else ())

    def place_of(self, cell: Cell | Hashable, name: str = "cell") -> int:
        """Return the position of a cell in `alphabet`.

        Raises
        ------
        ValidationError
            There is no such cell, or it is a structural zero.
        """
        label = tuple(cell) if isinstance(cell, list) else cell
        known = {label: place for place, label in enumerate(self.alphabet)}
        if len(self.variables) == 1:
            known |= {label[0]: place for place, label in enumerate(self.cells)}
        if not isinstance(label, Hashable) or label not in known:
            raise ValidationError(
                f"{name}: found {short(cell)}; the cells are {preview(self.alphabet)}"
            )
        return known[label]

    def to_frame(self) -> Any:
        """Return the published numbers as a pandas DataFrame, long (needs pandas).

        A column for each variable, and the true values in "count" if the table has counts.
        """
        import pandas as pd

        frame = pd.DataFrame(self.numbers, columns=list(self.names))
        if self.counts is not None:
            frame["count"] = self.true
        return frame

    def __repr__(self) -> str:
        by = [f"{name} ({len(categories)})" for name, categories in self.variables]
        about = " and ".join(filter(None, (", ".join(by[:-1]), by[-1])))
        if self.stated_people is not None:
            people = "1 person" if self.people == 1 else f"{self.people} people"
            about = f"{people} by {about}"
        return f"Table({about}, {len(self._sums)} published numbers)"

    def _repr_html_(self) -> str:
        """Return the cells and margins as a table, rows down and columns across."""
        across = self.columns or self.names[1:]
        down = tuple(name for name in self.names if name not in across)
        values = [""] * len(self.numbers) if self.counts is None else self.true.tolist()
        body: dict[Cell, dict[Cell, Any]] = {}
        head: dict[Cell, None] = {}
        for label, value in zip(self.numbers, values, strict=True):
            parts = dict(zip(self.names, label, strict=True))
            top = tuple(parts[name] for name in across)
            head[top] = None
            body.setdefault(tuple(parts[name] for name in down), {})[top] = value
        rows = [
            [*map(str, left), *(cells.get(top, "") for top in head)] for left, cells in body.items()
        ]
        titles = [*down, *(" / ".join(map(str, top)) or "count" for top in head)]
        return html_table(repr(self), titles, rows)


def _made(variables: Mapping[str, Any], options: Mapping[str, Any]) -> Table:
    return Table(variables, **options)
