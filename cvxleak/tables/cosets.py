"""The privacy loss if the low parts and the sum of two keys are revealed, for several margins.

All keys except those of two cells are revealed. A number that contains one of the two cells is a
function of that cell's key and a shift, the sum of its other keys. Let these shifts be independent
and uniform. Numbers that contain both cells are functions of the sum of the two keys, and of what
is revealed.

The K keys are l + (K / m) h for h in Z_m. Reveal the low part l of either key, which is as likely
under P as under R. The published values of the numbers of one cell then say that its h is in a set,
A under P and A' under R; those of the other cell say that its h is in B or B'. If there are numbers
of both cells, the sum of the keys is revealed too. The likelihoods are

    P: #{h in A : s - h in B},   R: #{h in A' : s - h in B'},   s in Z_m;

otherwise they are #A #B and #A' #B'. A sum s is uniform under both. Adding an element of Z_m to all
elements of A and A' shifts the sums, so it is enough to count pairs of sets up to such shifts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["Side", "pairs_of_sets"]

BITS = 32
"""Most elements of Z_m: a pair of sets is one number of 64 bits."""

SETS = 1 << 23
"""Most pairs of sets that are intersected at once, and of pairs of types times sums."""

EXACT = 1 << 53
"""Largest whole number up to which sums in floats are exact."""

Labels = tuple[np.ndarray, np.ndarray]
"""The published value of a number for each key: under P and under R."""


class Side(NamedTuple):
    """A cell: whether its key is uniform, under P and R; its numbers without and with a shift."""

    people: tuple[bool, bool]
    alone: Sequence[Labels]
    shifted: Sequence[Labels]


class _Types(NamedTuple):
    """Pairs of sets, neither empty, and how often each occurs; how many keys there are in all."""

    sets: tuple[np.ndarray, np.ndarray]
    many: np.ndarray
    unit: int


def pairs_of_sets(
    sides: Sequence[Side], keys: int, summed: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """Return likelihoods under P and R, and how often they occur; None if they are too many.

    Parameters
    ----------
    sides : sequence of Side
        The two cells, or the one that is a cell of the table.
    keys : int
        K.
    summed : bool
        Whether there are numbers that contain both cells.
    """
    for size in (m for m in range(min(keys, BITS), 0, -1) if keys % m == 0):
        types = [_types(side, keys, size) for side in sides]
        if any(one is None for one in types):
            continue
        kept = [one for one in types if one is not None]
        work = math.prod(len(one.many) for one in kept) * (size if summed else 1)
        unit = math.prod(one.unit for one in kept)
        if work <= SETS and unit < EXACT:
            scales = [keys ** sum(not one.people[which] for one in sides) for which in (0, 1)]
            return _met(kept, size, unit, scales, summed)
    return None


def _met(
    types: Sequence[_Types], size: int, unit: int, scales: Sequence[int], summed: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    found, many = [], np.ones(1)
    for one in types:
        many = np.multiply.outer(many, one.many).ravel()
    for which in (0, 1):
        bits = [_bits(one.sets[which], size) for one in types]
        if summed:
            turned = np.stack([np.roll(bits[1][:, ::-1], s + 1, axis=1) for s in range(size)])
            counts = np.einsum("ah,sbh->abs", bits[0], turned, optimize=True).ravel()
        else:
            counts = np.ones(1)
            for one in bits:
                counts = np.multiply.outer(counts, one.sum(axis=1)).ravel()
        found.append(np.rint(counts).astype(np.int64) * scales[which])
    p, r = found
    if summed:
        many = np.repeat(many, size)
    largest = int(r.max(initial=0)) + 1
    codes, places = np.unique(p * largest + r, return_inverse=True)
    sums = np.rint(np.bincount(places, weights=many, minlength=len(codes))).astype(np.int64)
    p, r = np.divmod(codes, largest)
    # If one of the sets is empty, that distribution excludes the outcome.
    rest = [unit - int(np.dot(one, sums)) for one in (p, r)]
    return np.append(p, [1, 0]), np.append(r, [0, 1]), np.append(sums, rest)


def _types(side: Side, keys: int, size: int) -> _Types | None:
    """Return what the numbers of a cell reveal of its key, up to shifts; None if too much."""
    low = keys // size
    every = np.full((keys, 1), (1 << size) - 1, dtype=np.uint64)
    sets = every, every
    for labels in side.alone:
        sets = _both(sets, _masks(labels, keys, size))
    parts = []
    for which, people in enumerate(side.people):
        part = sets[which][:low]
        if not people:  # the key is 0, and stands for all keys
            part = part & np.uint64(1)
            part[1:] = 0
        parts.append(part.ravel())
    found, many = _unique(parts[0], parts[1], np.ones(len(parts[0])), size)
    unit = keys
    for labels in side.shifted:
        own = [one.ravel() for one in _masks(labels, keys, size)]
        more = _together(own[0], own[1], np.ones(len(own[0])), size)
        if len(found[0]) * len(more[0][0]) > SETS:
            return None
        codes = [np.bitwise_and.outer(x, y).ravel() for x, y in zip(found, more[0], strict=True)]
        found, many = _unique(codes[0], codes[1], np.multiply.outer(many, more[1]).ravel(), size)
        unit *= keys
    return _Types(found, many, unit)


def _masks(labels: Labels, keys: int, size: int) -> Labels:
    """Return the sets of h for each key l and each value, shape (K, values), under P and R."""
    values = np.unique(np.concatenate(labels))
    places = (np.arange(keys)[:, None] + keys // size * np.arange(size)) % keys
    powers = np.uint64(1) << np.arange(size, dtype=np.uint64)
    first, second = (
        ((one[places][:, None, :] == values[:, None]) * powers).sum(axis=2, dtype=np.uint64)
        for one in labels
    )
    return first, second


def _both(sets: Labels, more: Labels) -> Labels:
    first, second = (
        (x[:, :, None] & y[:, None, :]).reshape(len(x), -1) for x, y in zip(sets, more, strict=True)
    )
    return first, second


def _together(
    first: np.ndarray, second: np.ndarray, many: np.ndarray, size: int
) -> tuple[Labels, np.ndarray]:
    """Return pairs of sets that are different, and how often each occurs, without empty sets."""
    kept = (first > 0) & (second > 0)
    shift = np.uint64(size)
    codes, places = np.unique(first[kept] << shift | second[kept], return_inverse=True)
    sums = np.bincount(places, weights=many[kept], minlength=len(codes))
    return (codes >> shift, codes & np.uint64((1 << size) - 1)), sums


def _unique(
    first: np.ndarray, second: np.ndarray, many: np.ndarray, size: int
) -> tuple[Labels, np.ndarray]:
    """Return the same, with pairs merged that are equal up to a shift of both sets."""
    (first, second), many = _together(first, second, many, size)
    shift, one, last = np.uint64(size), np.uint64(1), np.uint64(size - 1)
    every = np.uint64((1 << size) - 1)
    best = first << shift | second
    for _ in range(size - 1):
        first, second = ((x << one | x >> last) & every for x in (first, second))
        best = np.minimum(best, first << shift | second)
    return _together(best >> shift, best & every, many, size)


def _bits(sets: np.ndarray, size: int) -> np.ndarray:
    places = np.arange(size, dtype=np.uint64)
    return (sets[:, None] >> places & np.uint64(1)).astype(np.float32)
