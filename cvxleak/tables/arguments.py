"""Checks of the parts of a table that users give."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import (
    in_order,
    instance,
    label_tuple,
    plain_array,
    read_only,
    short,
    whole_number,
)
from cvxleak.core.value import preview

__all__ = [
    "MOST_PEOPLE",
    "OUTSIDE",
    "TOTAL",
    "Cell",
    "check_size",
    "checked_counts",
    "checked_known_people",
    "checked_margins",
    "checked_names",
    "checked_people",
    "checked_variables",
    "known_name",
    "places_of",
]

TOTAL = "total"
"""In the label of a margin, the place of a variable that is summed over."""

OUTSIDE = "outside"
"""The value of a record that is in no cell of the table."""

CELL_LIMIT = 1 << 20
"""Most cells of a table."""

MOST_PEOPLE = 1 << 40
"""Most people of a table: more than there are, and few enough for sums of floats."""

Cell = tuple[Hashable, ...]
"""One category of each variable, in their order; in a margin, `TOTAL` for some of them."""


def checked_variables(given: Any) -> tuple[tuple[str, tuple[Hashable, ...]], ...]:
    """Return the variables with their categories."""
    if not isinstance(given, Mapping) or not given:
        raise ValidationError(
            "variables: expected a mapping from the name of each variable to its categories, "
            f"found {short(given)}; for example {{'sex': ['f', 'm']}}"
        )
    found = []
    for name, listed in given.items():
        where = f"variables[{short(name)}]"
        categories = in_order(listed, where)
        if not isinstance(name, str) or not categories or isinstance(listed, str):
            raise ValidationError(f"{where}: found {short(listed)}; categories are needed")
        categories = label_tuple(categories, len(categories), where)
        if TOTAL in categories:
            raise ValidationError(f"{where}: found {TOTAL!r}, which is what margins are called")
        found.append((name, categories))
    check_size(tuple(len(categories) for _, categories in found))
    return tuple(found)


def check_size(shape: tuple[int, ...]) -> None:
    """Raise if a table has too many cells."""
    if math.prod(shape) > CELL_LIMIT:
        raise ValidationError(
            f"variables: found {short(math.prod(shape))} cells; at most {CELL_LIMIT} are allowed"
        )


def checked_names(given: Any, argument: str) -> tuple[str, ...]:
    """Return names of variables."""
    if isinstance(given, str):
        raise ValidationError(f"{argument}: found {given!r}; a list of names is needed")
    return tuple(instance(name, str, argument) for name in in_order(given, argument))


def known_name(name: Any, names: tuple[str, ...], argument: str) -> str:
    """Return the name of a variable."""
    if name not in names:
        raise ValidationError(
            f"{argument}: found {short(name)}; the variables are {preview(names)}"
        )
    return name


def checked_margins(given: Any, names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the margins as the variables that they keep, those that keep most first."""
    every = [kept for k in range(len(names) - 1, -1, -1) for kept in combinations(names, k)]
    if isinstance(given, bool):
        return tuple(every) if given else ()
    asked = set()
    for kept in in_order(given, "margins"):
        wanted = {known_name(name, names, "margins") for name in checked_names(kept, "margins")}
        if len(wanted) == len(names):
            raise ValidationError(
                f"margins: found {short(kept)}, all variables, which are the cells themselves"
            )
        asked.add(tuple(name for name in names if name in wanted))
    return tuple(kept for kept in every if kept in asked)


def places_of(
    cell: Any, variables: tuple[tuple[str, tuple[Hashable, ...]], ...], argument: str
) -> tuple[int, ...]:
    """Return where a cell is, by its label."""
    label = in_order(cell, argument) if not isinstance(cell, str) else (cell,)
    if len(label) != len(variables):
        raise ValidationError(
            f"{argument}: found {short(cell)}; a cell has a category of each variable, "
            f"{preview(tuple(name for name, _ in variables))}"
        )
    places = []
    for part, (name, categories) in zip(label, variables, strict=True):
        if part not in categories:
            raise ValidationError(
                f"{argument}: found {short(part)}; the categories of {name!r} are "
                f"{preview(categories)}"
            )
        places.append(categories.index(part))
    return tuple(places)


def checked_counts(given: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the counts of the cells."""
    array = plain_array(given, "counts")
    if array.shape != shape:
        raise ValidationError(
            f"counts: found shape {array.shape}; the variables have {shape} categories"
        )
    listed = [] if hasattr(given, "dtype") else np.asarray(given, dtype=object).ravel().tolist()
    if array.dtype.kind not in "iuf" or any(isinstance(one, bool) for one in listed):
        raise ValidationError(f"counts: expected whole numbers, found {short(given)}")
    wrong = ~((array >= 0) & (array <= MOST_PEOPLE) & (array == np.floor(array)))
    if wrong.any():
        value = array[tuple(np.argwhere(wrong)[0])].item()
        where = tuple(np.argwhere(wrong)[0].tolist())
        raise ValidationError(
            f"counts: found {value!r} at index {where}; a count is a whole number from 0 to "
            f"{MOST_PEOPLE}"
        )
    return read_only(array.astype(np.int64))


def checked_known_people(known_people: Any) -> int | None:
    """Return the number of people that is taken as known, if any."""
    if known_people is None:
        return None
    return whole_number(known_people, "known_people", 0, MOST_PEOPLE)


def checked_people(people: Any, counts: NDArray[np.int64] | None, outside: bool) -> int | None:
    """Return the number of people: the given one, or the sum of the counts, None if neither is."""
    if counts is None:
        return None if people is None else whole_number(people, "people", 1, MOST_PEOPLE)
    total = int(counts.sum())
    if people is None:
        if total == 0:
            raise ValidationError("counts: found nobody; the number of people is at least 1")
        return total
    n = whole_number(people, "people", 1, MOST_PEOPLE)
    if n < total or (n > total and not outside):
        more = "" if outside else "; if a person may be in no cell, say outside=True"
        raise ValidationError(f"people: found {n}; the counts sum to {total}{more}")
    return n
