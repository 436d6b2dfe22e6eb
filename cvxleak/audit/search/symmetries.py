"""Finding symmetries of a lumped problem among those that queries usually have."""

from __future__ import annotations

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
    of_outputs = [tuple(range(outputs))]
    of_outputs += [_exchange(outputs, i, j) for i, j in combinations(range(outputs), 2)]
    for shift in range(outputs):
        of_outputs.append(tuple((y + shift) % outputs for y in range(outputs)))
        of_outputs.append(tuple((shift - y) % outputs for y in range(outputs)))
    candidates = dict.fromkeys(Symmetry(p, s) for p in of_values for s in of_outputs)
    found: list[Symmetry] = []
    for one in list(candidates)[: WORK // lumped.rows.size]:
        if one.values == still and one.outputs == of_outputs[0]:
            continue
        move = moved_groups(lumped, one)
        if move is not None and all(
            abs(m - lumped.multiplicities[image]) * ROUNDING <= m
            for m, image in zip(lumped.multiplicities, move.tolist(), strict=True)
        ):
            found.append(one)
    return found[:MOST]


def _exchange(size: int, i: int, j: int) -> tuple[int, ...]:
    places = list(range(size))
    places[i], places[j] = j, i
    return tuple(places)
