"""All items by name, and `reproduce`."""

from __future__ import annotations

import difflib

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import instance, short
from cvxleak.papers.gallery import dalenius, envelope, hamming, leakage, libqif, sequential
from cvxleak.papers.gallery.item import Item, Reproduction

__all__ = ["ITEMS", "find", "reproduce"]

ITEMS: dict[str, Item] = {
    item.name: item
    for paper in (leakage, envelope, hamming, dalenius, sequential, libqif)
    for item in paper.ITEMS
}
"""By name, in the papers' order; last, what another program's tests state."""


def reproduce(name: str) -> Reproduction:
    """Compute a figure, a table or a section's numbers of one of the five papers again.

    Or the numbers that the tests of libqif state, a library of quantitative information flow.

    Parameters
    ----------
    name : str
        One of `ITEMS`.

    Returns
    -------
    Reproduction
        Pairs (computed, printed), the numbers behind the picture, and the picture.

    Raises
    ------
    ValidationError
        No such item.

    Examples
    --------
    >>> from cvxleak.papers.gallery import reproduce
    >>> table = reproduce("leakage-table-3")
    >>> first, second = table.pairs[:2]
    >>> first.name, round(first.computed, 4), first.printed, first.agrees
    ('Laplace, b = 0', 0.0795, 0.079, True)
    >>> second.name, round(second.computed, 4), second.printed, second.erratum
    ('Laplace, b = 0.5', 0.0795, 0.062, 'LEAKAGE Table 3')
    """
    return find(name).run()


def find(name: str) -> Item:
    """Return the item of this name, or name those that are meant."""
    item = ITEMS.get(instance(name, str, "name"))
    if item is None:
        near = difflib.get_close_matches(name, ITEMS, 3, 0.5) or list(ITEMS)
        raise ValidationError(f"name: found {short(name)}; there are {', '.join(near)}")
    return item
