"""Symmetries of a lumped problem: those that queries usually have, and what they make superfluous.

A symmetry permutes the values of A by p and the outputs by s so that every row R_{a,g} is again a
row of the value p(a) once its entries are moved by s. It maps an adversary w to one with the same
information, and with the same entropy if the multiplicities agree. If they do not agree,
multiplicities that symmetries map to one another are replaced by the largest of them, which only
enlarges the class of adversaries. The posteriors move along: rho'_{s(y)}(p(a)) = rho_y(a) (uniform
where y does not occur).

Let T(rho) = sum_{y,a} (|Y| - y) a rho_y(a). Of all adversaries to which a group of symmetries maps
one, take the one with the largest T. No symmetry increases its T, so a region of posteriors in
which some symmetry increases T everywhere may be left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

from cvxleak.core.numbers import content
from cvxleak.core.validation import Array
from cvxleak.model import Lumped

__all__ = ["Symmetry", "find_symmetries", "gains", "largest_multiplicities", "moved_groups"]

ROUNDING = 10**13
"""Multiplicities that differ by less than one part in this many may be taken to be equal."""

WORK = 10**6
"""About how many probabilities may be looked at."""

MOST = 64
"""Most symmetries that are used; each is tried on every node."""


@dataclass(frozen=True)
class Symmetry:
    """Value a goes to `values[a]`, output y to `outputs[y]`."""

    values: tuple[int, ...]
    outputs: tuple[int, ...]


def moved_groups(lumped: Lumped, symmetry: Symmetry) -> NDArray[np.intp] | None:
    """Return the place that each group goes to, or None if this is no symmetry of the rows."""
    k, outputs = len(lumped.values), lumped.rows.shape[1]
    if sorted(symmetry.values) != list(range(k)):
        return None
    if sorted(symmetry.outputs) != list(range(outputs)):
        return None
    index = lumped.value_index
    places = {(a, content(row)): g for g, (a, row) in _numbered(index, lumped.rows)}
    moved = lumped.rows[:, np.argsort(symmetry.outputs)]
    images = np.array(symmetry.values)[index]
    found = [places.get((a, content(row))) for _, (a, row) in _numbered(images, moved)]
    if None in found or len(set(found)) != len(index):
        return None
    return np.array(found, dtype=np.intp)


def largest_multiplicities(lumped: Lumped, moves: Sequence[NDArray[np.intp]]) -> tuple[int, ...]:
    """Return for each group the largest multiplicity of those that it can be moved to."""
    largest = list(lumped.multiplicities)
    changed = True
    while changed:
        changed = False
        for move in moves:
            for g, image in enumerate(move.tolist()):
                top = max(largest[g], largest[image])
                if largest[g] != top or largest[image] != top:
                    largest[g] = largest[image] = top
                    changed = True
    return tuple(largest)


def gains(symmetries: Sequence[Symmetry], values: int, outputs: int) -> Array:
    """Return integers G with T(rho) - T(moved by symmetry i) = sum_{y,a} G[i, y, a] rho_y(a)."""
    order = np.outer(np.arange(outputs, 0, -1), np.arange(values))
    return np.array(
        [order - order[np.ix_(one.outputs, one.values)] for one in symmetries], dtype=float
    ).reshape(-1, outputs, values)


def _numbered(index: NDArray[np.intp], rows: Array) -> Iterator[tuple[int, tuple[int, Array]]]:
    return enumerate(zip(index.tolist(), rows, strict=True))


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
