"""Entropy floors for adversaries, from the size of the data."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cvxleak.core.validation import SIZE_LIMIT, real_number, whole_number

__all__ = ["SuggestedFloor", "suggested_floor"]


@dataclass(frozen=True)
class SuggestedFloor:
    """The entropy floor b that DALENIUS Remark 3 suggests, and how it is computed; in bits.

    Attributes
    ----------
    whole : float
        Entropy of all records, if all values are equally likely: n log2(k).
    unknown : float
        Entropy of the records that are not public: (1 - known) n log2(k).
    floor : float
        The floor b.
    margin : float
        How much an adversary can learn about these records before the uncertainty falls below b:
        unknown - floor.

    Examples
    --------
    >>> from cvxleak.measures import SuggestedFloor
    >>> SuggestedFloor(whole=10.0, unknown=9.0, floor=6.0, margin=3.0).floor
    6.0
    """

    whole: float
    unknown: float
    floor: float
    margin: float


def suggested_floor(n: int, k: int = 2, known: float = 0.1, share: float = 0.75) -> SuggestedFloor:
    """Return the entropy floor that DALENIUS Remark 3 suggests for data of this size.

    ``b = share (1 - known) n log2(k)``.

    The floor is an assumption about the adversary's uncertainty. Whether it reduces the leakage
    depends on the mechanism; an audit at this floor answers that. For the parity of n binary
    records, for example, the leakage is the same at all floors up to n - 1 bits.

    Parameters
    ----------
    n : int
        How many records, from 1 to 2^53.
    k : int
        How many values each can have, at least 2.
    known : float
        The share of the records that is public, from 0 to 1.
    share : float
        The share of the other records' entropy that the adversary is assumed not to know, from 0 to
        1.

    Returns
    -------
    SuggestedFloor
        In bits.

    Raises
    ------
    ValidationError
        An argument is outside its range.

    References
    ----------
    DALENIUS Remark 3.

    Examples
    --------
    >>> from cvxleak.measures import suggested_floor
    >>> netflix = suggested_floor(100_480_507)
    >>> round(netflix.unknown), round(netflix.floor), round(netflix.margin)
    (90432456, 67824342, 22608114)
    """
    whole = whole_number(n, "n", 1, SIZE_LIMIT) * math.log2(whole_number(k, "k", 2))
    unknown = (1 - real_number(known, "known", 0, 1)) * whole
    floor = real_number(share, "share", 0, 1) * unknown
    return SuggestedFloor(whole, unknown, floor, unknown - floor)
