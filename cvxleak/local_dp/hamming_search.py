"""Hamming distortion: where to look for the least epsilon and its proof.

First by the linear program of `hamming` in floats; where a constant output just meets the budget,
or all but meets it, by the same program in rationals, unless it is too large for that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from flint import fmpq

from cvxleak.core.clock import Clock
from cvxleak.core.errors import SolverError
from cvxleak.core.numbers import fraction
from cvxleak.core.validation import Array
from cvxleak.exact.rationals import float_above, normalized_rows, rational
from cvxleak.local_dp import exact, hamming
from cvxleak.local_dp.linear import Mixture
from cvxleak.local_dp.proof_candidates import (
    STEPS,
    Attempt,
    at_least,
    constant,
    flat_channels,
    support_mixture,
)
from cvxleak.sources import SourceSet

__all__ = ["hamming_attempts"]

HUGE = 10**308

NUDGES = tuple(fmpq(1, 2**k) for k in (50, 40, 30))
"""Steps of a worst mixture towards a source on which an output costs more."""


def hamming_attempts(
    sources: SourceSet, budget: float, clock: Clock, meets: Callable[[Array], bool]
) -> Iterator[Attempt]:
    """Yield attempts until the caller has enough; `meets` judges a channel by the exact budget."""
    size = sources.size
    alone = [1 - float(p) for p in _least_probabilities(sources)]
    certain = [np.tile(np.eye(size)[j], (size, 1)) for j in np.argsort(alone, kind="stable")]
    for flat, cost in zip(certain, sorted(alone), strict=True):
        if cost <= budget * (1 + 1e-12) and meets(flat):
            yield constant([flat])
            return
    if budget == 0:
        # No channel of finite epsilon has distortion 0.
        mixture = support_mixture(sources)
        proof = {"mixture": mixture.to_dict(), "potentials": [0.0] * size}
        yield Attempt([np.eye(size)], [proof], mixture, -np.inf)
        return
    if size * fraction(budget) >= size - 1:
        uniform = np.full((size, size), 1 / size)
        if meets(uniform):
            yield constant([uniform])
            return
    floats = _in_floats(sources, budget, meets)
    if floats is not None:
        yield floats
    yield _in_rationals(sources, budget, clock)


def _in_floats(sources: SourceSet, budget: float, meets: Callable[[Array], bool]) -> Attempt | None:
    """Return what the linear program finds in floats, or None if it fails at a border."""
    size = sources.size
    try:
        found = hamming.distortions_for_budget(sources, budget)
        if found is None or found[0].sum() >= (size - 1) * (1 - 1e-9):
            _, law, mixture = hamming.constant_output(sources)
            flat = [channel for channel in flat_channels(law, size) if meets(channel)]
            if flat:
                return constant(flat, mixture)
            found = found or (1 - law, mixture, 0.0)
    except SolverError:
        return None
    distortions, mixture, slope = found
    if not distortions.min() > 0:
        return Attempt((), _float_proofs(sources, budget, mixture), mixture, slope)
    with np.errstate(over="ignore"):
        ratio = 1 + max(size - 1 - distortions.sum(), 0.0) / distortions.min()

    def channels() -> Iterator[Array]:
        for step in STEPS[3:]:  # the first ones are lost in the rounding of rows
            less = np.where(distortions < 1 - 1e-12, distortions * (1 - step), 1.0)
            yield hamming.channel_of_distortions(less)

    price = float(slope / ratio) if ratio < np.inf else -1 / budget
    return Attempt(channels(), _float_proofs(sources, budget, mixture), mixture, price)


def _float_proofs(sources: SourceSet, budget: float, worst: Mixture) -> Iterator[dict[str, Any]]:
    rest = 1 - fraction(budget)
    room = np.array([float(max(rest - p, 0)) for p in worst.exact(sources)])
    # A potential of zero claims nothing of its column: right where there is no room.
    for known in (np.where(room < 1e-14, 0.0, room), room):
        v = hamming.potentials_for_budget(worst.law, known, budget)
        v = at_least(v, v, budget)
        yield {"mixture": worst.to_dict(), "potentials": v.tolist()}


def _in_rationals(sources: SourceSet, budget: float, clock: Clock) -> Attempt:
    """Return what the linear program finds in rationals: nothing if it is too large for that."""
    D = rational(budget)
    found = exact.least_ratio(sources, D, clock)
    if found is None:
        return Attempt(programs=0)
    distortions = found.distortions
    least = min(distortions)
    law = _floats(found.law)
    mixture = Mixture(law, np.zeros(len(sources.points))) if found.law else None

    def channels() -> Iterator[Array]:
        if found.ratio == 1:
            yield from flat_channels(_floats([1 - d for d in distortions]), sources.size)
        for step in STEPS:
            share = 1 - rational(step)
            # Less of the least distortions takes nothing away from outputs that hardly occur.
            for moved in (
                [d * share if d == least else d for d in distortions],
                [d * share if d < 1 else d for d in distortions],
            ):
                kept = [1 - d for d in moved]
                total = sum(kept)
                rows = [
                    [moved[x] * p / (total - kept[x]) if y != x else p for y, p in enumerate(kept)]
                    for x in range(len(kept))
                    if total > kept[x]
                ]
                if len(rows) == len(kept):
                    yield np.array([_floats(row) for row in rows])

    def proofs() -> Iterator[dict[str, Any]]:
        if not found.law:
            return
        for law, mixture in [(found.law, found.mixture), *_nudged(sources, found, D)]:
            v = exact.best_potentials(law, D)
            if v is not None:
                yield {"mixture": mixture, "potentials": [str(p) for p in v]}

    price = float_above(found.price) if -found.price < HUGE else -np.inf
    return Attempt(channels(), proofs(), mixture, price)


def _nudged(
    sources: SourceSet, found: exact.Exact, budget: fmpq
) -> Iterator[tuple[list[fmpq], dict[str, Any]]]:
    """Yield the worst mixture, moved a little, where a constant output just meets the budget.

    Under the mixture itself the column of that output proves nothing; under a mixture next to it
    on which the output costs more it does.
    """
    places = [y for y, p in enumerate(found.law) if p == 1 - budget]
    if not places:
        return
    for i, point in enumerate(normalized_rows(sources.points.tolist())):
        if any(point[y] >= 1 - budget for y in places):
            continue
        for step in NUDGES:
            law = [(1 - step) * p + step * q for p, q in zip(found.law, point, strict=True)]
            weights = [(1 - step) * fmpq(*map(int, w.split("/"))) for w in found.mixture["weights"]]
            weights[i] += step
            members = [
                {**member, "weight": str((1 - step) * fmpq(*map(int, member["weight"].split("/"))))}
                for member in found.mixture["members"]
            ]
            yield law, {"weights": [str(w) for w in weights], "members": members}


def _floats(values: Any) -> Array:
    return np.array([int(v.p) / int(v.q) for v in values])


def _least_probabilities(sources: SourceSet) -> Array:
    """Return min_P P(x) for each outcome."""
    least = sources.points.min(axis=0, initial=1.0)
    for body in sources.polytopes:
        supported = [-body.support(-row).value for row in np.eye(sources.size)]
        least = np.minimum(least, supported)
    return least
