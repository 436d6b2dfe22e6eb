"""Which groups of records can differ, when some records can be swapped."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cvxleak.core.errors import ValidationError

GROUP_LIMIT = 100_000
"""Most groups of records that are listed."""


def kinds_of_groups(parts: Sequence[Sequence[int]], size: int) -> list[tuple[int, ...]]:
    """Return one group of `size` records for each multiset of parts that it can be made from.

    Raises
    ------
    ValidationError
        More than 100,000 groups.
    """
    # room[p]: how many records the parts from p on hold.
    room = np.cumsum([0, *(len(part) for part in reversed(parts))])[::-1].tolist()
    # A group takes the first records of some parts; with it goes the last part used, and how many
    # it took from there. Only groups that can still be completed are kept, so that there are never
    # more of them than results.
    partial: list[tuple[tuple[int, ...], int, int]] = [((), -1, 0)]
    for needed in range(size, 0, -1):
        longer = []
        for group, part, used in partial:
            if group and used < len(parts[part]):
                longer.append(((*group, parts[part][used]), part, used + 1))
            for later in range(part + 1, len(parts)):
                if room[later] < needed:
                    break
                longer.append(((*group, parts[later][0]), later, 1))
            if len(longer) > GROUP_LIMIT:
                raise ValidationError(
                    f"size: there are more than {GROUP_LIMIT} kinds of groups of {size} records"
                )
        partial = longer
    return sorted(tuple(sorted(group)) for group, _, _ in partial)
