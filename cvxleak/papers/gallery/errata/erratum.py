"""`Erratum`: a printed statement, the correct one, and the computation that shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cvxleak.papers.gallery.item import Pair

__all__ = ["Erratum"]


@dataclass(frozen=True)
class Erratum:
    """A statement of a paper that is wrong, or weaker than what can be proved.

    Attributes
    ----------
    where : str
        The paper's short name and the place; unique.
    printed : str
        The printed statement, in our words.
    so : str
        The correct statement.
    how : str
        How it is known.
    check : callable
        Returns pairs (computed, stated here). A pair whose `erratum` is this entry compares with
        what the paper prints or does, and must disagree.

    Examples
    --------
    >>> from cvxleak.papers.gallery import ERRATA
    >>> entry = ERRATA["LEAKAGE Fig. 4 caption, capacity"]
    >>> print(entry.so)
    log 2 − h(0.3) = 0.08228, for every n
    >>> [pair.agrees for pair in entry.check()]
    [True, False]
    """

    where: str
    printed: str
    so: str
    how: str
    check: Callable[[], Sequence[Pair]] = field(repr=False)

    @property
    def paper(self) -> str:
        """The short name of the paper."""
        return self.where.partition(" ")[0]
