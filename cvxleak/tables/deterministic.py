"""Rounding to the nearest multiple, and suppression of small counts: without randomness."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from cvxleak.core.validation import instance, one_of, whole_number
from cvxleak.core.value import Value
from cvxleak.tables.noise import SUPPRESSED, CountNoise, Law

__all__ = ["RoundToNearest", "SuppressBelow"]

LARGEST = 1 << 20
"""The largest base and threshold: all counts below it are gone through."""


@dataclass(frozen=True, eq=False, repr=False)
class RoundToNearest(CountNoise, Value):
    """Conventional rounding: each number becomes the nearest multiple of a base.

    In a table each margin is rounded from its own true value, so that rounded margins need not be
    the sums of the rounded cells. (Where they are those sums, they tell nothing more, and the table
    has no margins of its own: ``margins=False``.)

    Parameters
    ----------
    base : int
        At least 1.
    halves : {"up", "even"}
        Where a number halfway between two multiples goes, if the base is even: to the larger one
        (2 becomes 4 for base 4, as in most spreadsheets), or to the even multiple, as ``base *
        round(count / base)`` does in R and in Python (2 becomes 0, and 6 becomes 8).

    Raises
    ------
    ValidationError
        A base that is not a positive integer, or another rule for halves.

    References
    ----------
    A. Hundepool et al., Statistical Disclosure Control, Wiley 2012, section 5.4 (rounding).

    Examples
    --------
    >>> from cvxleak.tables import RoundToNearest
    >>> noise = RoundToNearest(5)
    >>> [*noise.law(1698)], noise.counts_of(0), noise.counts_of(5)
    ([1700], [(0, 2)], [(3, 7)])
    >>> RoundToNearest(10).counts_of(0), RoundToNearest(10, halves="even").counts_of(0)
    ([(0, 4)], [(0, 5)])
    """

    base: int
    halves: str = "up"

    def __post_init__(self) -> None:
        object.__setattr__(self, "base", whole_number(self.base, "base", 1, LARGEST))
        one_of(self.halves, ("up", "even"), "halves")

    @property
    def start(self) -> int:
        """0."""
        return 0

    @property
    def period(self) -> int:
        """The base, twice if halves go to even multiples."""
        return self.base if self.base % 2 or self.halves == "up" else 2 * self.base

    def __repr__(self) -> str:
        return f"RoundToNearest({self.base}" + (")" if self.halves == "up" else ", halves='even')")

    def law(self, count: int) -> Law:
        """Return the multiple, with probability 1."""
        multiple, rest = divmod(whole_number(count, "count", 0), self.base)
        up = 2 * rest > self.base or (
            2 * rest == self.base and (self.halves == "up" or multiple % 2 == 1)
        )
        return {(multiple + up) * self.base: Fraction(1)}


@dataclass(frozen=True, eq=False, repr=False)
class SuppressBelow(CountNoise, Value):
    r"""Suppression of counts below a threshold; all others are published as they are.

    Each number of a table is suppressed by its own true value (primary suppression). Numbers that
    are left out to protect others (secondary suppression) have no noise of this kind: in a
    `TableRelease` theirs is None.

    Parameters
    ----------
    threshold : int
        At least 1: the smallest count that is shown.
    replacement : int, optional
        What is published in place of smaller counts: 0, for example. If left out, nothing is, and
        the published value is missing (None, NaN, an empty cell of a file, or one of the usual
        marks: x, \*, c, :, .., or "<8" for a threshold of 8).
    zeros : bool
        Whether a count of 0 is suppressed as well, or published as 0.

    Raises
    ------
    ValidationError
        A threshold that is not a positive integer, or a replacement that is negative.

    References
    ----------
    A. Hundepool et al., Statistical Disclosure Control, Wiley 2012, section 5.2 (the minimum
    frequency rule).

    Examples
    --------
    >>> from cvxleak.tables import RoundToNearest, SuppressBelow
    >>> noise = SuppressBelow(8, zeros=False)
    >>> noise.counts_of(noise.published(None, "published")), noise.counts_of(0)
    ([(1, 7)], [(0, 0)])

    Below 8 is 0, then rounded to 5; and 1 to 7 is 5, all others rounded to 5:

    >>> for noise in SuppressBelow(8, 0), SuppressBelow(8, 5, zeros=False):
    ...     both = noise.then(RoundToNearest(5))
    ...     print([y for count in (0, 1, 7, 8, 13) for y in both.law(count)])
    [0, 0, 0, 10, 15]
    [0, 5, 5, 10, 15]
    """

    threshold: int
    replacement: int | None = None
    zeros: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "threshold", whole_number(self.threshold, "threshold", 1, LARGEST))
        if self.replacement is not None:
            whole = whole_number(self.replacement, "replacement", 0, LARGEST)
            object.__setattr__(self, "replacement", whole)
        instance(self.zeros, bool, "zeros")

    @property
    def start(self) -> int:
        """The threshold."""
        return self.threshold

    @property
    def period(self) -> int:
        """1."""
        return 1

    @property
    def suppresses(self) -> bool:
        """Whether nothing replaces what is suppressed."""
        return self.replacement is None

    def __repr__(self) -> str:
        more = "" if self.replacement is None else f", replacement={self.replacement}"
        return f"SuppressBelow({self.threshold}{more}" + (")" if self.zeros else ", zeros=False)")

    def law(self, count: int) -> Law:
        """Return what is published of a true count, with probability 1."""
        true = whole_number(count, "count", 0)
        if true >= self.threshold or (true == 0 and not self.zeros):
            return {true: Fraction(1)}
        return {SUPPRESSED if self.replacement is None else self.replacement: Fraction(1)}
