"""Finding symmetries of a lumped problem among those that queries usually have."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations

from cvxleak.model import Lumped
from cvxleak.proofs.bounds.symmetry import Symmetry, moved_groups

__all__ = ["find_symmetries"]

ROUNDING = 10**13
"""Multiplicities that differ by less than one part in this many may be taken to be equal."""

WORK = 10**6
"""About how many probabilities may be looked at."""

MOST = 64
"""Most symmetries that are used; each is tried on every node."""


def find_symmetries(lumped: Lumped) -> list[Symmetry]:
    """Return symmetries of the rows and (nearly) of the multiplicities, simple ones first.

    Tried are exchanges of two outputs, rotations and reflections of all of them, each with every
    permutation of at most three values, or with exchanges of two values and the reversal of more.
    """
    k, outputs = len(lumped.values), lumped.rows.shape[1]
    still = tuple(range(k))
    if k <= 3:
        of_values = list(permutations(still))
    else:
        of_values = [still, still[::-1], *(_exchange(k, i, j) for i, j in combinations(still, 2))]
    tried: set[Symmetry] = set()
    found: list[Symmetry] = []
    # Of thousands of outputs there are millions of moves: only those that are tried are made.
    for one in (Symmetry(p, s) for p in of_values for s in _moves(outputs)):
        if one in tried:
            continue
        if len(tried) >= WORK // lumped.rows.size:
            break
        tried.add(one)
        if one.values == still and one.outputs == tuple(range(outputs)):
            continue
        move = moved_groups(lumped, one)
        if move is not None and all(
            abs(m - lumped.multiplicities[image]) * ROUNDING <= m
            for m, image in zip(lumped.multiplicities, move.tolist(), strict=True)
        ):
            found.append(one)
    return found[:MOST]


def _moves(outputs: int) -> Iterator[tuple[int, ...]]:
    yield tuple(range(outputs))
    for i, j in combinations(range(outputs), 2):
        yield _exchange(outputs, i, j)
    for shift in range(outputs):
        yield tuple((y + shift) % outputs for y in range(outputs))
        yield tuple((shift - y) % outputs for y in range(outputs))


def _exchange(size: int, i: int, j: int) -> tuple[int, ...]:
    places = list(range(size))
    places[i], places[j] = j, i
    return tuple(places)
