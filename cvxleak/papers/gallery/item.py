"""The gallery's classes: an item, the pairs that it compares, and the result of one run."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cvxleak._version import __version__
from cvxleak.core.errors import ValidationError
from cvxleak.core.files import write_atomic
from cvxleak.problem.bound import Bound

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Computed", "Data", "Item", "Pair", "Reproduction", "pair"]

Data = Mapping[str, Any]
"""Numbers behind a picture or a table: nested lists and mappings, ready for JSON."""

Computed = tuple[Sequence["Pair"], Data]

ROUNDING = 1e-12


@dataclass(frozen=True)
class Pair:
    """A number printed in a paper, and the computed number or its lower and upper bound.

    Attributes
    ----------
    name : str
        What the number is.
    lower, upper : float
        The proved bounds on the number, both equal to it if it was computed directly.
    printed : float
        The number to compare it with.
    numeral : str or None
        This number as printed; None if it is from a formula or another computation.
    tolerance : float
        The allowed difference.
    erratum : str or None
        The key of the entry in `ERRATA` that explains a larger difference.

    Examples
    --------
    >>> from cvxleak.papers.gallery import reproduce
    >>> pair = reproduce("dalenius-section-7.2").pairs[0]
    >>> pair.name, round(pair.computed, 4), pair.printed, pair.agrees
    ('C_1 at flip 0.1, bits', 0.531, 0.531, True)
    """

    name: str
    lower: float
    upper: float
    printed: float
    numeral: str | None
    tolerance: float
    erratum: str | None = None

    @property
    def computed(self) -> float:
        """The computed number, or the midpoint of its bounds."""
        return (self.lower + self.upper) / 2

    @property
    def agrees(self) -> bool:
        """Whether the printed number is within the tolerance of the computed one or its bounds."""
        slack = self.tolerance * (1 + 1e-9) + ROUNDING
        return self.lower - slack <= self.printed <= self.upper + slack

    @property
    def explained(self) -> bool:
        """Whether the two agree, or an erratum says why they do not."""
        return self.agrees or self.erratum is not None

    def to_dict(self) -> dict[str, Any]:
        """Return the pair as JSON types."""
        return {
            "name": self.name,
            "lower": self.lower,
            "upper": self.upper,
            "printed": self.printed,
            "numeral": self.numeral,
            "tolerance": self.tolerance,
            "agrees": self.agrees,
            "erratum": self.erratum,
        }


def pair(
    name: str,
    computed: float | Bound,
    printed: str | float,
    erratum: str | None = None,
    tolerance: float | None = None,
) -> Pair:
    """Return a `Pair`; of a numeral, given as text, the last digit may be rounded or cut off."""
    numeral = printed if isinstance(printed, str) else None
    if tolerance is None:
        tolerance = 1e-9 if numeral is None else 10.0 ** -len(numeral.partition(".")[2])
    if isinstance(computed, Bound):
        low, high = computed.lower, computed.upper
    else:
        low = high = float(computed)
    return Pair(name, low, high, float(printed), numeral, tolerance, erratum)


@dataclass(frozen=True)
class Item:
    """A figure, a table, or the numbers of a section of a paper.

    Attributes
    ----------
    name : str
        The argument of `reproduce`, such as ``"leakage-table-3"``.
    title : str
        Title of the item.
    compute : callable
        Without arguments; returns the pairs and the numbers for the figure.
    draw : callable or None
        Draws these numbers; returns a matplotlib figure.
    note : str
        What the item shows, above all differences from the paper.
    slow : bool
        Whether it takes more than a few seconds.

    Examples
    --------
    >>> from cvxleak.papers.gallery import ITEMS
    >>> item = ITEMS["leakage-table-3"]
    >>> item.paper, item.slow
    ('LEAKAGE', False)
    """

    name: str
    title: str
    compute: Callable[[], Computed] = field(repr=False)
    draw: Callable[[Data], Figure] | None = field(default=None, repr=False)
    note: str = ""
    slow: bool = False

    @property
    def paper(self) -> str:
        """The short name of the paper."""
        return self.name.partition("-")[0].upper()

    def run(self) -> Reproduction:
        """Compute the item."""
        begin = time.monotonic()
        pairs, data = self.compute()
        return Reproduction(self, tuple(pairs), data, time.monotonic() - begin)


@dataclass(frozen=True)
class Reproduction:
    """What one run of an item gave.

    Attributes
    ----------
    item : Item
    pairs : tuple of Pair
        (computed, printed).
    data : mapping
        The numbers behind the picture.
    seconds : float

    Examples
    --------
    >>> from cvxleak.papers.gallery import reproduce
    >>> found = reproduce("dalenius-remark-3")
    >>> found.explained
    True
    >>> print(found)
    dalenius-remark-3: an entropy floor for the Netflix ratings
      all of them, bits: 100480507 (printed 100480507)
      ...
    """

    item: Item
    pairs: tuple[Pair, ...]
    data: Data = field(repr=False)
    seconds: float

    @property
    def explained(self) -> bool:
        """Whether each printed number is reproduced, or on the errata page."""
        return all(pair.explained for pair in self.pairs)

    def figure(self) -> Figure | None:
        """Return a new matplotlib figure, or None for an item without a picture.

        Raises
        ------
        ValidationError
            Matplotlib is missing.
        """
        if self.item.draw is None:
            return None
        try:
            import matplotlib  # noqa: F401
        except ImportError as error:
            raise ValidationError(
                "figure: pictures need matplotlib: pip install 'cvxleak[plot]'"
            ) from error
        return self.item.draw(self.data)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as JSON types, without the time that they took."""
        return {
            "format": "cvxleak-reproduction",
            "version": 1,
            "cvxleak": __version__,
            "item": self.item.name,
            "title": self.item.title,
            "pairs": [pair.to_dict() for pair in self.pairs],
            "data": self.data,
        }

    def save(
        self, folder: str | os.PathLike[str], formats: Sequence[str] = ("png", "svg")
    ) -> list[Path]:
        """Write the numbers as JSON and the picture; return the paths.

        Raises
        ------
        ValidationError
            A file cannot be written, or matplotlib is missing.
        """
        from cvxleak.papers.gallery.drawing import image

        stem = Path(folder) / self.item.name
        drawn = self.figure()
        files: dict[Path, str | bytes] = {
            stem.parent / f"{stem.name}.json": json.dumps(
                self.to_dict(), indent=1, ensure_ascii=False, allow_nan=False
            )
            + "\n"
        }
        if drawn is not None:
            for kind in formats:
                files[stem.parent / f"{stem.name}.{kind}"] = image(drawn, kind)
        for path, content in files.items():
            write_atomic(path, content)
        return list(files)

    def __str__(self) -> str:
        lines = [f"{self.item.name}: {self.item.title}"]
        for each in self.pairs:
            found = f"{each.computed:.9g}"
            if each.upper - each.lower > ROUNDING:
                found = f"{each.lower:.7g} to {each.upper:.7g}"
            why = "" if each.agrees else f"; see erratum {each.erratum}"
            beside = each.numeral or f"{each.printed:.9g}"
            how = "printed" if each.numeral else "compared with"
            lines.append(f"  {each.name}: {found} ({how} {beside}{why})")
        return "\n".join(lines)
