"""Cheap adversaries for an audit: one context group per value, and audits of merged outputs.

Each is found at a small part of the cost of a search over all groups and outputs. An adversary who
keeps to one group per value is an input distribution of a channel with one row per value. An
adversary found where outputs are merged leaks at least as much through all of them, by data
processing.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Hashable, Iterator
from dataclasses import replace
from itertools import count

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import entr

from cvxleak.audit.search.whole_dataset import WholeDataset, bound_by_output_law
from cvxleak.capacities.outputs import merged_as, proportional_columns
from cvxleak.core.validation import Array
from cvxleak.iterative import capacity_interior_point, joint_blahut_arimoto
from cvxleak.measures import lumped_entropy
from cvxleak.model import Limits, Lumped

__all__ = [
    "FEW_OUTPUTS",
    "bound_by_capacity",
    "joint_law",
    "one_group_per_value",
    "through_fewer_outputs",
]

FIRSTS = 8
"""Most groups of the first value that a choice is built up from."""

CHOICE_WORK = 10**7
"""About how many positive probabilities are looked at in search of a choice, once one is found."""

FEW_OUTPUTS = 256
"""Most outputs of a problem with outputs merged."""

LEAST_GAIN = 1e-12
"""Nats that another group has to leak more to be chosen: ties are left alone."""

STARTS, CYCLES = 4, 4
"""Random starts where outputs are merged, and how often they are merged anew from each."""

STEP_WORK = 10**7
"""About how many numbers the steps on one problem with outputs merged may touch."""

CAPACITY_ROWS = 300
"""Most rows that a step of the search for the channel's capacity solves for."""

Places = NDArray[np.intp]
Partition = list[list[int]]


def joint_law(weights: Array, lumped: Lumped) -> Array:
    """Return the distribution of A and Y under an adversary, shape (k, outputs)."""
    return np.add.reduceat(weights[:, None] * lumped.rows, lumped.starts, axis=0)


def one_group_per_value(lumped: Lumped, entropy_floor: float) -> Array:
    """Return an adversary with one context group per value who leaks much, shape (N,).

    Without a floor such an adversary is a worst one (DALENIUS Theorem 2), and remains so up to the
    adversary's own entropy, H(pi) + sum_a pi_a log m_a. The groups are chosen value by value, each
    as the one with which I(A;Y) is largest, until none changes; then the distribution on the values
    is made the best one for them, and so on in turn. Only groups with log m >= b - log k are looked
    at, so that the uniform distribution on the values meets the floor, or the largest ones of a
    value that has no such group; then the result may miss the floor.
    """
    k = len(lumped.values)
    log_m = lumped.log_multiplicity
    largest = np.maximum.reduceat(log_m, lumped.starts)
    least = np.minimum(entropy_floor - math.log(k), largest) - 1e-12
    groups = np.flatnonzero(log_m >= least[lumped.value_index])
    search = _ChoiceSearch(lumped.rows[groups], np.bincount(lumped.value_index[groups]))
    of_first = np.flatnonzero(lumped.value_index[groups] == 0)
    # The group with most contexts, and those whose outputs are least random.
    firsts = [
        of_first[log_m[groups[of_first]].argmax()],
        *of_first[np.argsort(search.noise[of_first], kind="stable")],
    ]
    best, weights = -math.inf, np.zeros(0)
    for first in list(dict.fromkeys(map(int, firsts)))[:FIRSTS]:
        if len(weights) and search.work > CHOICE_WORK:
            break
        law, places = np.full(k, 1 / k), np.full(k, -1)
        places[0] = first
        before = -math.inf
        while True:
            search.improve(places, law)
            law = _best_law(lumped, entropy_floor, groups[places])
            value = search.information(places, law)
            if value <= before + LEAST_GAIN:
                break
            before = value
            if value > best:
                best, weights = value, np.zeros(len(lumped.rows))
                weights[groups[places]] = law
    return weights


class _ChoiceSearch:
    """Local search over choices of one row for each value; the rows are kept sparse."""

    def __init__(self, rows: Array, counts: Places) -> None:
        table = sparse.csr_array(rows)
        self._columns, self._data = np.asarray(table.indices), np.asarray(table.data)
        self._rows = np.asarray(table.indptr)  # where each row begins
        self._values = np.concatenate([[0], np.cumsum(counts)])  # where the rows of each value do
        self._outputs = rows.shape[1]
        self.noise = np.add.reduceat(entr(self._data), self._rows[:-1])
        self.work = 0

    def improve(self, places: Places, law: Array) -> None:
        """Choose the row of each value in turn, in place, until none changes; -1 is none yet."""
        output = np.zeros(self._outputs)
        for place, share in zip(places, law, strict=True):
            if place >= 0:
                self._add(output, place, share)
        changed = True
        while changed:
            changed = False
            # The first value's row is looked at last: it may be the only one there is.
            for a in [*range(1, len(places)), 0]:
                if places[a] >= 0:
                    self._add(output, places[a], -law[a])
                gains = self._gains(a, output, law[a])
                best = int(gains.argmax())
                old = -math.inf if places[a] < 0 else gains[places[a] - self._values[a]]
                if gains[best] > old + LEAST_GAIN:
                    places[a] = self._values[a] + best
                    changed = True
                self._add(output, places[a], law[a])

    def information(self, places: Places, law: Array) -> float:
        """Return I(A;Y) with the chosen rows."""
        output = np.zeros(self._outputs)
        for place, share in zip(places, law, strict=True):
            self._add(output, place, share)
        return float(entr(output).sum() - law @ self.noise[places])

    def _add(self, output: Array, place: int, share: float) -> None:
        part = slice(*self._rows[place : place + 2])
        columns = self._columns[part]
        output[columns] = np.maximum(output[columns] + share * self._data[part], 0.0)

    def _gains(self, a: int, output: Array, share: float) -> Array:
        """Return what each row of a value adds to I(A;Y), given the outputs of the other values."""
        first, last = self._values[a : a + 2]
        start, end = self._rows[[first, last]]
        others = output[self._columns[start:end]]
        added = entr(others + share * self._data[start:end]) - entr(others)
        self.work += int(end - start)
        gains = np.add.reduceat(added, self._rows[first:last] - start)
        return gains - share * self.noise[first:last]


def _best_law(lumped: Lumped, entropy_floor: float, choice: Places) -> Array:
    """Return the distribution on the values that leaks most, for chosen groups, at the floor."""
    alone = replace(
        lumped,
        value_index=np.arange(len(choice)),
        rows=lumped.rows[choice],
        multiplicities=[lumped.multiplicities[g] for g in choice],
        contexts=[lumped.contexts[g] for g in choice],
    )
    law = capacity_interior_point(alone.rows).point
    if lumped_entropy(law, alone) >= entropy_floor:
        return law
    if entropy_floor < alone.max_entropy:
        return joint_blahut_arimoto(alone, entropy_floor, starts=alone.uniform()[None]).point
    return alone.uniform()


def bound_by_capacity(
    lumped: Lumped, entropy_floor: float, limits: Limits | None
) -> WholeDataset | None:
    """Return the bound I(A;Y) <= I(X;Y) <= C, the capacity of all rows: for every adversary.

    It is the bound by the dataset with q = 1, lam = 0, and t the output distribution that attains
    C. None where the rows are too many for it to be cheap.
    """
    rows = lumped.rows[[equal[0] for equal in proportional_columns(lumped.rows.T)]]
    if min(rows.shape) > CAPACITY_ROWS:
        return None
    t = capacity_interior_point(rows).point @ rows
    known = Limits.none(lumped) if limits is None else limits
    kappa = np.zeros(len(known.bounds))
    return bound_by_output_law(lumped, entropy_floor, known, 0.0, 1.0, t, kappa)


def through_fewer_outputs(
    lumped: Lumped, entropy_floor: float, weights: Array, rng: np.random.Generator
) -> Iterator[Array]:
    """Yield adversaries found where outputs are merged, in the order that pays.

    Parts of the output of a product mechanism are left out first. Then outputs are merged that have
    nearly the same posterior under an adversary, who leaks nearly as much as before; the search
    goes on from there, and the outputs are merged anew: at first from `weights`.
    """
    for partition in _without_parts(lumped):
        yield _climb(merged_as(lumped, partition), entropy_floor, STARTS, rng)
    size = len(lumped.rows)
    noise = rng.dirichlet(np.full(size, 0.1), size=STARTS)
    for start in [weights, *noise]:
        # Nowhere zero: what has no mass stays without.
        found = 0.9 * start + 0.1 * lumped.uniform()
        for _ in range(CYCLES):
            coarse = merged_as(lumped, _by_posterior(lumped, found))
            found = _climb(coarse, entropy_floor, found[None], rng)
            yield found


def _climb(
    lumped: Lumped, entropy_floor: float, starts: int | Array, rng: np.random.Generator
) -> Array:
    number = starts if isinstance(starts, int) else len(starts)
    steps = int(np.clip(STEP_WORK / (number * lumped.rows.size), 3, 100))
    return joint_blahut_arimoto(
        lumped, entropy_floor, starts=starts, rng=rng, max_iterations=steps
    ).point


def _without_parts(lumped: Lumped) -> Iterator[Partition]:
    """Yield partitions by some parts of the output, where it has parts and needs fewer."""
    labels = [_parts(label) for label in lumped.outputs]
    size = len(labels[0])
    if len(labels) <= FEW_OUTPUTS or {len(label) for label in labels} != {size}:
        return
    seen: set[tuple[int, ...]] = set()
    for first in range(size):
        kept: list[int] = []
        partition: dict[Hashable, list[int]] = {}
        for j in range(first, first + size):
            more = [*kept, j % size]
            parts: dict[Hashable, list[int]] = {}
            for y, label in enumerate(labels):
                parts.setdefault(tuple(label[i] for i in more), []).append(y)
            if len(parts) > FEW_OUTPUTS:
                break
            kept, partition = more, parts
        if kept and tuple(sorted(kept)) not in seen:
            seen.add(tuple(sorted(kept)))
            yield list(partition.values())


def _parts(label: Hashable) -> tuple[Hashable, ...]:
    """Return the parts of an output of a product of products of mechanisms."""
    if not isinstance(label, tuple):
        return (label,)
    return tuple(part for one in label for part in _parts(one))


def _by_posterior(lumped: Lumped, weights: Array) -> Partition:
    """Return a partition into outputs after which an adversary believes nearly the same.

    The part whose posteriors are most spread out is split where their mean is, again and again.
    """
    joint = joint_law(weights, lumped)
    mass = joint.sum(axis=0)
    used = np.flatnonzero(mass > 0)
    posterior = joint[:, used] / mass[used]
    heap: list[tuple[float, int, Places, Places]] = []
    number = count()

    def push(places: Places) -> None:
        weight = mass[used[places]]
        mean = posterior[:, places] @ weight / weight.sum()
        spread = (posterior[:, places] - mean[:, None]) ** 2 @ weight
        a = int(spread.argmax())
        upper = posterior[a, places] > mean[a]
        # The number keeps ties from being broken by arrays.
        heapq.heappush(heap, (-float(spread[a]), next(number), places[upper], places[~upper]))

    finished: list[Places] = []
    push(np.arange(len(used)))
    while heap and len(heap) + len(finished) < FEW_OUTPUTS:
        _, _, upper, lower = heapq.heappop(heap)
        if len(upper) and len(lower):
            push(upper)
            push(lower)
        else:
            finished.append(np.concatenate([upper, lower]))
    finished += [np.concatenate(parts) for _, _, *parts in heap]
    unused = np.flatnonzero(mass <= 0)
    partition = [used[part].tolist() for part in finished]
    return [*partition, unused.tolist()] if len(unused) else partition
