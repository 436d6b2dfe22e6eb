"""Additive Bayes capacity: the largest gain in the probability of a correct guess.

Under the uniform prior on a set S of inputs the chance rises by (F(S) - 1) / |S|, where F(S) is
sum_y max_{x in S} q(y|x), and no prior does better than the best of these: for a given strategy of
guessing, the rise is at most p . w - t with p <= t and some w, a linear program with such vertices.
F grows with S, and by less and less, so from a set I on, with j more inputs of a set R, F is at
most F(I) and the j largest of the growths by one input of R, and at most F(I + R). Sets are
searched by whether they hold an input, the most promising first.
"""

from __future__ import annotations

import heapq
from fractions import Fraction
from itertools import count
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.numbers import exact_law
from cvxleak.core.validation import Array
from cvxleak.model import Channel, Prior, as_channel

__all__ = ["AdditiveBayesCapacity", "additive_bayes_capacity"]

MOST_NODES = 20_000
"""Sets of inputs that are looked into; beyond, the ends stay apart."""

CLOSED = 1e-12


class AdditiveBayesCapacity(NamedTuple):
    """Bounds on an additive Bayes capacity, and a prior that attains the lower bound.

    Examples
    --------
    >>> from cvxleak.capacities import AdditiveBayesCapacity
    >>> from cvxleak.model import Prior
    >>> AdditiveBayesCapacity(0.25, 0.25, Prior.uniform(2)).upper
    0.25
    """

    lower: float
    upper: float
    prior: Prior


def additive_bayes_capacity(channel: Channel | ArrayLike) -> AdditiveBayesCapacity:
    """Bound max over priors p of V(p, q) - V(p), the largest gain in the best guess's probability.

    The maximum is attained by a prior that is uniform on a subset of the inputs, often a proper
    subset. Finding this subset is NP-hard in general: the search stops after 20,000 subsets. The
    two bounds agree up to 1e-12 if it has finished by then, and are valid in either case.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).

    Returns
    -------
    AdditiveBayesCapacity
        Its `prior` has the inputs of the channel as labels.

    Raises
    ------
    ValidationError
        If the channel is not stochastic.

    See Also
    --------
    cvxleak.measures.multiplicative_bayes_capacity : The largest factor, in closed form.

    Notes
    -----
    Alvim, Chatzikokolakis, McIver, Morgan, Palamidessi and Smith, "Additive and multiplicative
    notions of leakage, and their capacities", CSF 2014, which shows that the decision problem is
    NP-complete.

    Examples
    --------
    A third input that is a mixture of the others has probability 0 in the optimal prior:

    >>> from cvxleak.capacities import additive_bayes_capacity
    >>> found = additive_bayes_capacity([[1, 0], [0, 1], [0.5, 0.5]])
    >>> found.lower, found.upper, found.prior
    (0.5, 0.5, Prior(3 outcomes [0, 1, 2]: [0.5 0.5 0. ]))
    """
    known = as_channel(channel)
    laws = [exact_law(row) for row in known.matrix]
    chosen, bound = _search(np.array([[float(q) for q in row] for row in laws]))
    rise = (sum(map(max, zip(*(laws[x] for x in chosen), strict=True)), Fraction(0)) - 1) / len(
        chosen
    )
    share = np.array(
        [Fraction(int(x in chosen), len(chosen)) for x in range(len(laws))], dtype=object
    )
    prior = Prior(share, known.inputs)
    return AdditiveBayesCapacity(_near(rise, -1), max(_near(rise, 1), bound), prior)


def _search(rows: Array) -> tuple[list[int], float]:
    """Return the best set of inputs found, and what the rise under no other set exceeds."""
    inputs, outputs = rows.shape
    # Sums of so many terms >= 0 are off by this factor at most, with the rounding of the rows.
    safe = 1 + (2 * outputs + inputs + 16) * 2.0**-52
    best, chosen, upper = 0.0, [0], 0.0
    order = count()
    heap: list[tuple[float, int, list[int], Array, list[int]]] = []

    def add(held: list[int], reached: Array, left: list[int]) -> None:
        nonlocal best, chosen, upper
        value = (reached.sum() - 1) / len(held) if held else 0.0
        if value > best:
            best, chosen = value, held
        bound = _bound(rows, len(held), reached, left, safe) if left else 0.0
        if bound > best + CLOSED:
            heapq.heappush(heap, (-bound, next(order), held, reached, left))
        else:
            upper = max(upper, bound)

    add([], np.zeros(outputs), list(range(inputs)))
    for _ in range(MOST_NODES):
        if not heap:
            break
        bound, _, held, reached, left = heapq.heappop(heap)
        if -bound <= best + CLOSED:
            heapq.heappush(heap, (bound, next(order), held, reached, left))
            break
        growths = np.maximum(rows[left] - reached, 0.0).sum(axis=1)
        x = left[int(growths.argmax())]
        rest = [other for other in left if other != x]
        add([*held, x], np.maximum(reached, rows[x]), rest)
        add(held, reached, rest)
    return chosen, max(upper, -heap[0][0] if heap else 0.0)


def _bound(rows: Array, held: int, reached: Array, left: list[int], safe: float) -> float:
    """Return at least the rise under any set of these inputs and some of those left."""
    growths = np.sort(np.maximum(rows[left] - reached, 0.0).sum(axis=1))[::-1]
    most = np.maximum(reached, rows[left].max(axis=0)).sum()
    reach = np.minimum(reached.sum() + np.cumsum(growths), most) * safe
    return float(((reach - 1) / (held + 1 + np.arange(len(left)))).max()) * safe


def _near(number: Fraction, side: int) -> float:
    """Return the float next to a number, on one side of it."""
    near = number.numerator / number.denominator
    off = (Fraction(near) - number) * side
    return near if off >= 0 else float(np.nextafter(near, side * np.inf))
