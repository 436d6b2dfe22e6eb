"""`Erratum`: what is printed, what is so, and the computation that shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cvxleak.papers.gallery.item import Pair

__all__ = ["Erratum"]


@dataclass(frozen=True)
class Erratum:
    """One place of a paper where what is printed is not so, or is less than can be said.

    Attributes
    ----------
    where : str
        The paper's short name and the place; unique.
    printed : str
        What is printed, in our words.
    so : str
        What is so.
    how : str
        How that is known.
    check : callable or None
        Returns pairs (computed, stated here). A pair whose `erratum` is this entry holds what the
        paper prints or does, and must disagree.

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
    check: Callable[[], Sequence[Pair]] | None = field(default=None, repr=False)

    @property
    def paper(self) -> str:
        """The short name of the paper."""
        return self.where.partition(" ")[0]
