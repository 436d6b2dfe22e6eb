"""`telling_edges`: intervals of numeric outputs that preserve most of the information."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

__all__ = ["telling_edges"]

DEVIATIONS = 3.0
"""By how many standard deviations a probability may be off, about, in a set of channels."""

FEWEST = 5
"""Least numbers in an interval."""


def telling_edges(numbers: ArrayLike, secrets: ArrayLike, fine: int, draws: float) -> list[float]:
    """Return the inner ends of at most `fine` intervals, from a part of the draws.

    From the fine intervals that are equally frequent neighbors are merged such that the leakage
    that the rest of the draws can be expected to show is largest: that of the frequencies in the
    part, to a uniform secret, less what `DEVIATIONS` in each probability are worth. This is a sum
    over the intervals, so that the best partition is a shortest path. What is worth little on
    average can still show a large epsilon: the lower and the upper tail that show most of it are
    cut off as well.

    Parameters
    ----------
    numbers : array_like
        Of the part, with more than one value.
    secrets : array_like of int
        Their secrets, 0, 1, ...
    fine : int
        At least 2.
    draws : float
        Draws of each secret in the rest.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.samples.intervals import telling_edges
    >>> rng = np.random.default_rng(0)
    >>> numbers, secrets = rng.uniform(size=4000), rng.integers(2, size=4000)
    >>> edges = telling_edges(np.where(secrets == 1, numbers**2, numbers), secrets, 8, 1e4)
    >>> [round(edge, 2) for edge in edges]
    [0.0...]
    """
    values, codes = np.asarray(numbers, dtype=float), np.asarray(secrets)
    ranked = np.sort(values)
    cuts = np.unique(ranked[len(ranked) * np.arange(1, fine) // fine])
    cuts = cuts[cuts > ranked[0]]
    if not len(cuts):  # one value more than all others
        cuts = ranked[ranked > ranked[0]][:1]
    cells = len(cuts) + 1
    counts = np.zeros((cells, codes.max() + 1))
    np.add.at(counts, (np.searchsorted(cuts, values, side="right"), codes), 1.0)
    worth = _worth(counts[:, counts.any(axis=0)], draws)
    best, back = np.full(cells + 1, -np.inf), np.zeros(cells + 1, dtype=int)
    best[0] = 0.0
    for end in range(1, cells + 1):
        whole = best[:end] + worth[:end, end]
        back[end], best[end] = int(np.argmax(whole)), whole.max()
    edges, end = [], int(back[cells])
    while end > 0:
        edges.append(float(cuts[end - 1]))
        end = int(back[end])
    return sorted({*edges, *(float(cuts[place]) for place in _tails(counts, draws))})


def _worth(counts: np.ndarray, draws: float) -> np.ndarray:
    """Return what the interval from the fine one i to before j is expected to show, at [i, j]."""
    sums = np.vstack([np.zeros(counts.shape[1]), counts.cumsum(axis=0)])
    merged = np.maximum(sums[None] - sums[:, None], 0.0)
    q = (merged + 0.5) / (sums[-1] + 1.0)
    log_ratio = np.log(q / q.mean(axis=-1, keepdims=True))
    off = DEVIATIONS * np.sqrt(q * np.maximum(1 - q, 0.0) / draws)
    worth = (q * log_ratio - off * np.abs(log_ratio)).mean(axis=-1)
    # Too small ones only if there is nothing else.
    return np.where(merged.sum(axis=-1) >= FEWEST, worth, -1e3)


def _tails(counts: np.ndarray, draws: float) -> set[int]:
    """Return which cut ends the lower, and begins the upper tail that tells two secrets apart."""
    found = set()
    for ranked in (counts, counts[::-1]):
        sums = ranked.cumsum(axis=0)
        q = (sums[:-1] + 0.5) / (sums[-1] + 1.0)
        off = DEVIATIONS * np.sqrt(q * (1 - q) / draws)
        ratio = np.maximum(q - off, 0.0).max(axis=1) / (q + off).min(axis=1)
        place = int(np.argmax(ratio))
        found.add(place if ranked is counts else len(counts) - 2 - place)
    return found
