"""Draws from a distribution, exactly."""

from __future__ import annotations

import secrets
from bisect import bisect_right
from itertools import accumulate

import numpy as np

from cvxleak.core.numbers import integer_law
from cvxleak.core.validation import CELL_LIMIT, Array, generator, whole_number

__all__ = ["drawn"]


def drawn(law: Array, size: int | None, rng: int | np.random.Generator | None) -> list[int]:
    """Return `size` outcomes (one if left out) by their number: see `Channel.sample`."""
    ends = list(accumulate(integer_law(law)))
    count = 1 if size is None else whole_number(size, "size", 0, CELL_LIMIT)
    if rng is not None:
        rng = generator(rng)
    return [bisect_right(ends, _below(ends[-1], rng)) for _ in range(count)]


def _below(total: int, generator: np.random.Generator | None) -> int:
    """Return a uniform integer in [0, total), by rejection on uniform bits."""
    if generator is None:
        return secrets.randbelow(total)
    bits = (total - 1).bit_length()
    while True:
        ticket = int.from_bytes(generator.bytes((bits + 7) // 8), "little") >> (-bits % 8)
        if ticket < total:
            return ticket
