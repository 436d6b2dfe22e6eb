"""Pairs of cells that are alike, since the numbers that a move between them changes are.

The type of a cell c relative to a cell s is which of the numbers that count s count c as well. What
a move from s to t may change depends on the noise of the numbers of s and of t, on the types of the
two relative to each other, and on which pairs of types, relative to s and to t, other cells have.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations

import numpy as np

__all__ = ["unlike_pairs"]

TYPES = 1 << 6
"""Most types relative to a cell; if there are more, every pair of cells is taken for another."""

WORD = 64
"""Bits of a word: sets of cells are bits of words."""


def unlike_pairs(
    within: Sequence[frozenset[int]], kinds: Sequence[Hashable]
) -> Iterator[tuple[int, int]]:
    """Yield the first of the pairs of cells that are alike.

    Pairs may be repeated, so that whoever has a time limit is asked for each cell.

    Parameters
    ----------
    within : sequence of frozenset of int
        The numbers that count each cell.
    kinds : sequence
        What else matters of each cell, such as the noise of its numbers in their order.
    """
    cells = len(within)
    # And one that counts nobody, for cells that no number counts.
    counts = np.zeros((2 + max((j for own in within for j in own), default=0), cells), dtype=bool)
    for cell, own in enumerate(within):
        counts[list(own), cell] = True
    types, known = np.empty((cells, cells), dtype=int), list[Hashable]()
    for cell, own in enumerate(within):
        patterns = np.packbits(counts[[*sorted(own), -1]], axis=0).T
        rows, types[cell] = np.unique(patterns, axis=0, return_inverse=True)
        known.append((kinds[cell], rows.tobytes()))
    most = int(types.max()) + 1
    if most > TYPES:
        yield from combinations(range(cells), 2)
        return
    numbers = {kind: place for place, kind in enumerate(dict.fromkeys(known))}
    kind = np.array([numbers[one] for one in known])
    sets, seen = _sets(types, most), set[bytes]()
    for source in range(cells - 1):
        later = slice(source + 1, cells)
        met = np.zeros((cells - source - 1, most, most), dtype=bool)
        for one, others in zip(sets[:, source], sets[:, later], strict=True):
            met |= (one[:, None] & others[:, None, :]) != 0
        ends = [np.full(len(met), kind[source]), kind[later]]
        ends += [types[source, later], types[later, source]]
        bits = np.packbits(met.reshape(len(met), -1), axis=1)
        rows = np.concatenate([np.stack(ends, axis=1).view(np.uint8), bits], axis=1)
        for target, row in enumerate(rows, source + 1):
            key = row.tobytes()
            if key not in seen or target == source + 1:
                seen.add(key)
                yield source, target


def _sets(types: np.ndarray, most: int) -> np.ndarray:
    """Return the sets of other cells that are of each type relative to each cell, by words."""
    cells = len(types)
    words = -(-cells // WORD)
    bits = np.zeros((cells, most, words * WORD), dtype=bool)
    places = np.arange(cells)
    bits[places[:, None], types, places] = True
    bits[places, types[places, places], places] = False
    return np.moveaxis(np.packbits(bits, axis=2).view(np.uint64), 2, 0)
