"""How far printed numbers may be from the ones that they stand for.

No certificate leaves that open, so the checker does not load this module.
"""

from __future__ import annotations

import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import short

__all__ = ["half_units"]

_NUMBER = re.compile(r"[+-]?\d*(?:\.(\d*))?(?:[eE]([+-]?\d+))?")


def half_units(matrix: Any, digits: int | None) -> NDArray[Any] | Fraction:
    """Return half a unit of each number's last decimal, 0 for fractions; one for all of `digits`.

    Examples
    --------
    >>> from cvxleak.model._printed import half_units
    >>> half_units([["0.50", "1/2"], ["0", "1"]], None)
    array([[Fraction(1, 200), Fraction(0, 1)],
           [Fraction(1, 200), Fraction(1, 200)]], dtype=object)
    """
    if digits is not None:
        return Fraction(1, 2 * 10**digits)
    cells = np.array(matrix, dtype=object)
    places = [_places(_text(cell)) for cell in cells.ravel()]
    known = [n for n in places if n]
    if not known and 0 in places:
        raise ValidationError(
            "digits: no number has decimals; say to how many the numbers are rounded, or use "
            "Channel if they are exact"
        )
    # A whole number is printed like the others, less its zeros.
    halves = [Fraction(n is not None, 2 * 10 ** (n or min(known, default=0))) for n in places]
    found: NDArray[Any] = np.empty(cells.shape, dtype=object)
    found.ravel()[:] = halves
    return found


def _text(cell: Any) -> str:
    if isinstance(cell, (str, Decimal)):
        return str(cell).strip()
    if isinstance(cell, (int, np.integer, Fraction)):
        return f"{cell}"
    raise ValidationError(
        f"digits: found {short(cell)}, which does not hold how many decimals were printed; give "
        "their number, or pass the numbers as text ('0.3330')"
    )


def _places(text: str) -> int | None:
    """Return a number's decimals, 0 for a whole number and None for a fraction, which is exact."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    return max(len(found[1] or "") - int(found[2] or 0), 0)
