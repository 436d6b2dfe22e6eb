"""`estimate_counts`: confidence intervals for the true counts behind noisy published numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from cvxleak.core.clock import check_progress
from cvxleak.core.errors import SolveInterrupted, ValidationError
from cvxleak.core.notebook import html_table
from cvxleak.core.numbers import fraction
from cvxleak.core.validation import (
    in_order,
    label_tuple,
    real_number,
    short,
    whole_number,
)
from cvxleak.core.value import Value, preview
from cvxleak.core.wording import counted
from cvxleak.model import AdditiveNoise, Channel
from cvxleak.tables.arguments import checked_known_people
from cvxleak.tables.inversion import Ends, Noise, counts_within
from cvxleak.tables.noise import CountNoise, noise_by_label
from cvxleak.tables.release import TableRelease
from cvxleak.tables.sums import sum_within

__all__ = ["CountEstimate", "estimate_counts"]


@dataclass(frozen=True, eq=False, repr=False)
class CountEstimate(Value):
    """Simultaneous confidence intervals for true counts.

    Attributes
    ----------
    labels : tuple
        Labels of the published numbers, followed by those of the requested sums.
    published : tuple of float
        The published values; for a sum, the sum of the published values.
    lower, upper : tuple of int
        The smallest and the largest count that the published values do not contradict. If they
        contradict all counts, each interval is empty: from 0 to -1.
    confidence : float
        Lower bound on the probability with which all intervals hold simultaneously.

    Raises
    ------
    ValidationError
        Parts that do not match each other or are not numbers.

    Notes
    -----
    Built by `estimate_counts`.

    Examples
    --------
    >>> from cvxleak.model import Gaussian
    >>> from cvxleak.tables import estimate_counts
    >>> found = estimate_counts({"f": 103.2, "m": 88.9}, Gaussian(sigma=2))
    >>> found["f"], found.fits
    ((99, 107), True)
    """

    labels: tuple[Hashable, ...]
    published: tuple[float, ...]
    lower: tuple[int, ...]
    upper: tuple[int, ...]
    confidence: float

    def __post_init__(self) -> None:
        published = tuple(
            real_number(y, "published") for y in in_order(self.published, "published")
        )
        object.__setattr__(self, "published", published)
        object.__setattr__(self, "labels", label_tuple(self.labels, len(published), "labels"))
        for name in ("lower", "upper"):
            ends = tuple(whole_number(c, name, -1) for c in in_order(getattr(self, name), name))
            if len(ends) != len(published):
                raise ValidationError(
                    f"{name}: found {len(ends)} for {counted(len(published), 'number')}"
                )
            object.__setattr__(self, name, ends)
        object.__setattr__(self, "confidence", _confidence(self.confidence))

    @property
    def fits(self) -> bool:
        """Whether any true counts are compatible with all published values.

        If not, either the noise was not the stated one, or an event of probability at most 1 -
        `confidence` has occurred.
        """
        return all(low <= high for low, high in zip(self.lower, self.upper, strict=True))

    def __getitem__(self, label: Hashable) -> Ends:
        try:
            place = self.labels.index(label)
        except ValueError:
            raise KeyError(label) from None
        return self.lower[place], self.upper[place]

    def _rows(self) -> list[tuple[Hashable, float, int, int]]:
        return list(zip(self.labels, self.published, self.lower, self.upper, strict=True))

    def to_frame(self) -> Any:
        """Return a row for each number, by its label, as a pandas DataFrame (needs pandas)."""
        import pandas as pd

        columns = {"published": self.published, "lower": self.lower, "upper": self.upper}
        return pd.DataFrame(columns, index=pd.Index(self.labels, name="label", tupleize_cols=False))

    def __str__(self) -> str:
        width = max(len(_text(label)) for label in self.labels)
        lines = (
            f"{_text(label).ljust(width)}  {y:.10g}: "
            + (f"{low} to {high}" if low <= high else "no count")
            for label, y, low, high in self._rows()
        )
        return "\n".join([self._heading, *lines])

    @property
    def _heading(self) -> str:
        text, sure = counted(len(self.labels), "number"), f"{100 * self.confidence:g} % confidence"
        if not self.fits:
            return f"{text}; no counts fit what was published with {sure}"
        return f"{text}; simultaneous {sure} intervals"

    def __repr__(self) -> str:
        return f"CountEstimate({self._heading})"

    def _repr_html_(self) -> str:
        rows = [(_text(label), *rest) for label, *rest in self._rows()]
        return html_table(self._heading, ("number", "published", "at least", "at most"), rows)


def estimate_counts(
    published: Any,
    noise: Noise | TableRelease | Mapping[Any, Noise] | Sequence[Noise],
    confidence: float = 0.95,
    *,
    sums: Mapping[Hashable, Iterable[Hashable]] | None = None,
    known_people: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> CountEstimate:
    r"""Return simultaneous confidence intervals for the true counts behind published numbers.

    The true counts c_1, ..., c_m are fixed, and Y_j is c_j published with noise. With a probability
    of at least `confidence` over the noise, and whatever the true counts are, all of them are in
    their intervals. The interval of one number contains the counts c for which

        P(Y >= y | c) > alpha / 2   and   P(Y <= y | c) > alpha / 2,

    where alpha = (1 - `confidence`) / T, and T is the number of published numbers and of sums that
    are not published (Bonferroni); counts between them are included. The tails of rounding, of
    ptables and of channels are computed in rational numbers, those of additive noise in ball
    arithmetic.

    Parameters
    ----------
    published : number, sequence, mapping or Series
        What was published; labels are 0, 1, ... where it has none of its own.
    noise : CountNoise, AdditiveNoise, Channel, TableRelease, or mapping or sequence of these
        One noise for all numbers, or one for each by its label or in order. `RoundToNearest`,
        `SuppressBelow`, `RandomRounding` and `PerturbationTable` stand for counts of any size; of
        `cvxleak.model`, `Gaussian`, `Laplace`, `DiscreteGaussian`, `DiscreteLaplace` (the geometric
        mechanism), `Uniform` and `Rounded`. The inputs of a channel are counts, and its outputs
        numbers. A release has the noise of each of its numbers and the cells of each margin; its
        true counts are not used.
    confidence : float
        From 0 to 1, both excluded.
    sums : mapping, optional
        For the label of each sum, the labels of the published numbers that it is the sum of, whose
        noise has to be independent (see the notes). If that label was published itself, the sum is
        a margin: its true count is the sum of those of its cells.
    known_people : int, optional
        The true number of people in the table of a release (or an upper bound on it, if some may be
        outside), if it is known besides what was published, as in `possible_counts`. If all cells
        are published, it bounds them.
    progress : callable, optional
        Called as progress(numbers so far, numbers in all) before each number or sum.

    Returns
    -------
    CountEstimate
        Of the published numbers in their order, and of the sums that were not published.

    Raises
    ------
    ValidationError
        A value that its noise cannot produce (the message names it), noise of another kind, labels
        that do not match, an empty sum, or a confidence out of range.
    SolveInterrupted
        Ctrl-C; its ``bound`` holds the intervals of the numbers completed so far.

    Notes
    -----
    The interval of a sum that was not published comes from the distribution of the sum of the
    noise. This is Gaussian, or a convolution in ball arithmetic if all noise is added in whole
    numbers. For other noise, mixtures included, Chernoff's bound is used, with the largest moment
    over all counts if noise depends on the count. Cells and sums then bound each other (a cell is
    at most the sum minus the least values of the others), which is valid whenever the intervals
    are.

    The noise of the numbers in one sum has to be independent, as it is for numbers about different
    people. Single numbers and margins need no independence: Bonferroni's inequality is valid
    whatever links them (keys, for example).

    Examples
    --------
    >>> from cvxleak.tables import RandomRounding, estimate_counts
    >>> print(estimate_counts({"f": 6, "m": 9, "all": 18}, RandomRounding(base=3)))
    3 numbers; simultaneous 95 % confidence intervals
    f    6: 4 to 8
    m    9: 7 to 11
    all  18: 16 to 20
    >>> margin = {"all": ["f", "m"]}
    >>> print(estimate_counts({"f": 6, "m": 9, "all": 18}, RandomRounding(base=3), sums=margin))
    3 numbers; simultaneous 95 % confidence intervals
    f    6: 5 to 8
    m    9: 8 to 11
    all  18: 16 to 19

    The interval of a sum is narrower than the sum of its parts' intervals:

    >>> from cvxleak.model import DiscreteLaplace
    >>> cells = {age: 20 for age in range(50)}
    >>> found = estimate_counts(cells, DiscreteLaplace(scale=2), sums={"all": cells})
    >>> found[0], found["all"]
    ((6, 34), (933, 1067))
    """
    check_progress(progress)
    level, people = _confidence(confidence), checked_known_people(known_people)
    if people is not None and not isinstance(noise, TableRelease):
        raise ValidationError(
            "known_people: needs noise that is a TableRelease, which says what the cells are; else "
            "a known sum is one of the published numbers, with the noise RoundToNearest(1)"
        )
    if isinstance(published, (str, os.PathLike)) and not isinstance(noise, TableRelease):
        raise ValidationError(
            f"published: found {short(published)}; a file is read with the noise "
            "TableRelease(Table.from_published(path), RoundToNearest(5)), for example"
        )
    if isinstance(noise, TableRelease):
        published = dict(zip(noise.numbers, noise.as_published(published), strict=True))
    values = _values(published)
    laws = _laws(noise, tuple(values))
    parts = _sums(_margins(noise) if isinstance(noise, TableRelease) else {}, values)
    parts |= _sums({} if sums is None else sums, values)
    added = [label for label in parts if label not in values]
    total = len(values) + len(added)
    tail = (1 - fraction(level)) / (2 * total)
    ends: dict[Hashable, Ends] = {}

    def tell() -> None:
        if progress is not None:
            progress(len(ends), total)

    try:
        for label, y in values.items():
            tell()
            try:
                ends[label] = counts_within(laws[label], y, tail)
            except ValidationError as error:
                if error.argument:
                    raise
                raise ValidationError(f"published[{short(label)}]: {error.detail}") from error
        for label in added:
            tell()
            values[label] = sum((values[part] for part in parts[label]), Fraction(0))
            ends[label] = sum_within([laws[part] for part in parts[label]], values[label], tail)
    except KeyboardInterrupt as error:
        raise SolveInterrupted(_found(ends, values, level) if ends else None) from error
    cells = noise.table.cells if isinstance(noise, TableRelease) else ()
    if isinstance(noise, TableRelease) and people is not None and set(cells) <= set(values):
        # A certain value takes nothing from the confidence.
        ends[_EVERYBODY] = (0 if noise.table.outside else people, people)
        parts[_EVERYBODY] = cells
    _propagate(ends, parts)
    ends.pop(_EVERYBODY, None)
    return _found(ends, values, level)


def _found(
    ends: Mapping[Hashable, Ends], values: Mapping[Hashable, Fraction], level: float
) -> CountEstimate:
    lower, upper = zip(*ends.values(), strict=True)
    published = tuple(float(values[label]) for label in ends)
    return CountEstimate(tuple(ends), published, lower, upper, level)


_EVERYBODY = object()
"""The label of the number of people."""


def _text(label: Hashable) -> str:
    return "/".join(map(str, label)) if isinstance(label, tuple) else str(label)


def _propagate(ends: dict[Hashable, Ends], parts: Mapping[Hashable, tuple[Hashable, ...]]) -> None:
    """Bound sums by their parts and parts by their sums; all become empty if they contradict."""
    # A changed bound can change another one, along chains of sums. Every round is valid.
    for _ in parts:
        before = dict(ends)
        for label, cells in parts.items():
            least, most = (sum(ends[cell][side] for cell in cells) for side in (0, 1))
            low, high = ends[label]
            ends[label] = low, high = max(low, least), min(high, most)
            for cell in cells:
                below, above = ends[cell]
                ends[cell] = max(below, low - (most - above)), min(above, high - (least - below))
        if ends == before or any(low > high for low, high in ends.values()):
            break
    if any(low > high for low, high in ends.values()):
        ends.update(dict.fromkeys(ends, (0, -1)))


def _confidence(value: Any) -> float:
    return real_number(value, "confidence", 0, 1, open_low=True, open_high=True)


def _values(published: Any) -> dict[Hashable, Fraction]:
    """Return the published numbers, exactly, by their labels."""
    if hasattr(published, "columns") or getattr(published, "ndim", 1) not in (0, 1):
        raise ValidationError(
            "published: found a table; a number, a sequence, or a mapping or Series by label is "
            "needed"
        )
    if hasattr(published, "items"):
        items = list(published.items())
        labels = label_tuple([label for label, _ in items], len(items), "published")
        numbers = [y for _, y in items]
    else:
        single = isinstance(published, str) or not hasattr(published, "__iter__")
        if not single and getattr(published, "ndim", 1) == 0:
            single = True
        numbers = [published] if single else list(in_order(published, "published"))
        labels = tuple(range(len(numbers)))
    if not numbers:
        raise ValidationError("published: found no numbers")
    return {
        label: fraction(real_number(y, f"published[{short(label)}]", open_low=True, open_high=True))
        for label, y in zip(labels, numbers, strict=True)
    }


def _laws(noise: Any, labels: tuple[Hashable, ...]) -> dict[Hashable, Noise]:
    """Return the noise of each number."""
    if isinstance(noise, TableRelease):
        given: dict[Hashable, Any] = dict(noise.noise)
    elif isinstance(noise, Mapping):
        given = noise_by_label(noise, labels)
    elif isinstance(noise, Sequence) and not isinstance(noise, str):
        if len(noise) != len(labels):
            raise ValidationError(f"noise: found {len(noise)} for {len(labels)} published numbers")
        given = dict(zip(labels, noise, strict=True))
    else:
        given = dict.fromkeys(labels, noise)
    for law in given.values():
        if not isinstance(law, (CountNoise, AdditiveNoise, Channel)):
            raise ValidationError(
                f"noise: found {short(law)}; RoundToNearest, SuppressBelow, RandomRounding, "
                "PerturbationTable, noise of cvxleak.model such as Gaussian, or a Channel is "
                "needed"
            )
    return given


def _margins(release: TableRelease) -> dict[Any, list[Any]]:
    """Return for each published margin its cells, if all of them are published."""
    cells = release.table.cells
    found = {
        label: [cells[place] for place in places]
        for label, places in zip(release.numbers, release.sums, strict=True)
        if label not in cells
    }
    return {m: parts for m, parts in found.items() if set(parts).issubset(release.numbers)}


def _sums(sums: Any, labels: Mapping[Hashable, Any]) -> dict[Hashable, tuple[Hashable, ...]]:
    """Return for each sum the labels of its parts."""
    if not isinstance(sums, Mapping):
        raise ValidationError(f"sums: expected a mapping, found {short(sums)}")
    found = {}
    for label, listed in sums.items():
        where = f"sums[{short(label)}]"
        if isinstance(listed, str):
            raise ValidationError(f"{where}: found {listed!r}; a list of labels is needed")
        given = in_order(listed, where)
        parts = label_tuple(given, len(given), where)
        for part in parts:
            if part not in labels or part == label:
                raise ValidationError(
                    f"{where}: found {short(part)}; other published numbers are "
                    f"{preview(tuple(labels))}"
                )
        if not parts:
            raise ValidationError(f"{where}: found no numbers")
        found[label] = parts
    return found
