"""The numbers that the tests of libqif state, a C++ library of quantitative information flow.

libqif (K. Chatzikokolakis and others, github.com/chatziko/libqif) checks its code on small channels
whose leakages are known. The numbers of its tests of measures that belong to a given channel are
here; those about random channels, and a bound that takes no channel, are not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.capacities import capacity
from cvxleak.measures import (
    additive_gain_capacity,
    bayes_vulnerability,
    entropy,
    gain_leakage,
    guessing_entropy,
    min_entropy_leakage,
    multiplicative_bayes_capacity,
    posterior_bayes_vulnerability,
    posterior_guessing_entropy,
    privacy_profile,
)
from cvxleak.model import Shannon
from cvxleak.papers.gallery.item import Computed, Item, Pair, pair
from cvxleak.refinement import refinement_gap

__all__ = ["ITEMS"]

BIT = math.log(2)
FLIP = [[0.8, 0.2], [0.3, 0.7]]
"""The channel c1 of the tests."""

FIRST = [
    ["1/10", "2/5", "1/10", "2/5"],
    ["1/5", "1/5", "3/10", "3/10"],
    ["1/2", "1/10", "1/10", "3/10"],
]
SECOND = [["1/5", "11/50", "29/50"], ["1/5", "2/5", "2/5"], ["7/20", "2/5", "1/4"]]


def uniform(k: int) -> list[float]:
    return [1 / k] * k


def point(k: int) -> list[float]:
    return [1.0] + [0.0] * (k - 1)


def blind(k: int) -> list[list[float]]:
    """Return the channel on k inputs that reveals nothing."""
    return [[1.0] + [0.0] * (k - 1)] * k


def compared(rows: Sequence[tuple[str, float, float]]) -> list[Pair]:
    """Return pairs that have to agree up to the rounding of floats."""
    return [pair(name, found, stated, None, 1e-12) for name, found, stated in rows]


def bayes() -> Computed:
    """Compare the best guess before and after the output."""
    after = posterior_bayes_vulnerability
    long = [0.2, 0.8] + [0.0] * 8
    return compared(
        [
            ("best guess, uniform on 2", bayes_vulnerability(uniform(2)), 0.5),
            ("best guess, uniform on 10", bayes_vulnerability(uniform(10)), 0.1),
            ("best guess, point mass", bayes_vulnerability(point(4)), 1.0),
            ("best guess, (0.2, 0.8)", bayes_vulnerability([0.2, 0.8]), 0.8),
            ("after identity, (0.2, 0.8)", after(np.eye(2), [0.2, 0.8]), 1.0),
            ("after identity, uniform on 10", after(np.eye(10), uniform(10)), 1.0),
            ("after nothing, uniform on 10", after(blind(10), uniform(10)), 0.1),
            ("after nothing, (0.2, 0.8, 0, ...)", after(blind(10), long), 0.8),
            ("after c1, (1/4, 3/4): as before", after(FLIP, [0.25, 0.75]), 0.75),
            ("after c1, (3/4, 1/4): 31/40", after(FLIP, [0.75, 0.25]), 31 / 40),
            ("wrong after c1, (3/4, 1/4): 9/40", 1 - after(FLIP, [0.75, 0.25]), 9 / 40),
        ]
    ), {}


def guessing() -> Computed:
    """Compare expected numbers of guesses, and min-entropy leakages."""
    after = posterior_guessing_entropy
    bits = [
        ("identity on 2, uniform", uniform(2), np.eye(2), 1.0),
        ("identity on 10, uniform", uniform(10), np.eye(10), math.log2(10)),
        ("nothing told, uniform on 10", uniform(10), blind(10), 0.0),
        ("c1, uniform: log2 1.5", uniform(2), FLIP, math.log2(1.5)),
    ]
    return compared(
        [
            ("guesses, uniform on 2", guessing_entropy(uniform(2)), 1.5),
            ("guesses, uniform on 10", guessing_entropy(uniform(10)), 5.5),
            ("guesses, point mass", guessing_entropy(point(4)), 1.0),
            ("guesses, (0.2, 0.8)", guessing_entropy([0.2, 0.8]), 1.2),
            ("after identity, uniform on 10", after(np.eye(10), uniform(10)), 1.0),
            ("after nothing, uniform on 10", after(blind(10), uniform(10)), 5.5),
            ("after c1, (1/4, 3/4): as before", after(FLIP, [0.25, 0.75]), 1.25),
            ("after c1, (3/4, 1/4): 1225/1000", after(FLIP, [0.75, 0.25]), 1225 / 1000),
            *(
                (f"min-entropy leakage, bits, {name}", min_entropy_leakage(q, p) / BIT, stated)
                for name, p, q, stated in bits
            ),
        ]
    ), {}


def shannon() -> Computed:
    """Compare entropies and capacities, in bits."""

    def left(prior: ArrayLike, channel: ArrayLike) -> float:
        return 0.0 - gain_leakage(channel, prior, Shannon(), "posterior") / BIT

    rows = [
        ("entropy, uniform on 2", entropy(uniform(2)) / BIT, 1.0),
        ("entropy, uniform on 10", entropy(uniform(10)) / BIT, math.log2(10)),
        ("entropy, point mass", entropy(point(4)) / BIT, 0.0),
        ("entropy, (0.2, 0.8)", entropy([0.2, 0.8]) / BIT, 0.721928094887362),
        ("entropy after identity, uniform on 10", left(uniform(10), np.eye(10)), 0.0),
        ("entropy after nothing, uniform on 10", left(uniform(10), blind(10)), math.log2(10)),
        ("entropy after c1, (1/4, 3/4)", left([0.25, 0.75], FLIP), 0.669020059980807),
    ]
    cycle = [[0.3, 0.2, 0.5], [0.5, 0.3, 0.2], [0.2, 0.5, 0.3]]
    weak = [[0.333333333, 0.166666667, 0.5], [0.333333333, 0.5, 0.166666667]]
    known = [
        ("identity on 2", np.eye(2), 1.0),
        ("identity on 10", np.eye(10), math.log2(10)),
        ("nothing told", blind(10), 0.0),
        ("c1", FLIP, 0.19123813831431799),
        ("symmetric", cycle, math.log2(3) - entropy(cycle[0]) / BIT),
    ]
    pairs = compared(rows)
    for name, channel, stated in known:
        bound = capacity(channel).to("bits")
        pairs.append(pair(f"capacity, {name}", bound, stated, None, 1e-12))
    # Its columns have not quite the same sums, so that the formula holds to its digits only.
    stated = math.log2(3) - entropy(weak[0]) / BIT
    pairs.append(pair("capacity, weakly symmetric", capacity(weak).to("bits"), stated, None, 1e-9))
    return pairs, {}


def capacities() -> Computed:
    """Compare the largest factors and rises over priors or gains."""
    factor = multiplicative_bayes_capacity
    told = [
        ("identity on 2, uniform", uniform(2), np.eye(2), 0.5, 1.0),
        ("identity on 2, point mass", point(2), np.eye(2), 0.0, 0.0),
        ("nothing told, uniform on 4", uniform(4), blind(4), 0.0, 0.0),
    ]
    rows = [
        ("factor of a guess, identity on 2", factor(np.eye(2)), 2.0),
        ("factor of a guess, identity on 10", factor(np.eye(10)), 10.0),
        ("factor of a guess, nothing told", factor(blind(10)), 1.0),
        ("factor of a guess, c1: 15/10", factor(FLIP), 1.5),
    ]
    for name, prior, channel, span, bounded in told:
        rows += [
            (f"rise of gains of span 1, {name}", additive_gain_capacity(channel, prior), span),
            (
                f"rise of gains up to 1, {name}",
                additive_gain_capacity(channel, prior, "bounded"),
                bounded,
            ),
        ]
    # Two equally likely inputs are told apart wrongly half as often as 1 less their distance.
    rows += [
        ("factor of an error, nothing told", 1 / (1 - privacy_profile(blind(10), 0)), 1.0),
        ("factor of an error, c1", 1 / (1 - privacy_profile(FLIP, 0)), 2.0),
    ]
    return compared(rows), {}


def refinement() -> Computed:
    """Compare by how much gains up to 1 earn more by one channel than by another."""
    exact = refinement_gap(["62/100", "3/100", "35/100"], FIRST, SECOND)
    inside = refinement_gap(uniform(4), np.eye(4), blind(4))
    return [
        Pair(
            "refinement gap of a 3 x 4 and a 3 x 3 channel: 18643/2220000",
            float(exact.lower),
            float(exact.upper),
            18643 / 2220000,
            None,
            0.0,
        ),
        pair("refinement gap, nothing told after all", float(inside.upper), 0.0),
    ], {"gap": [str(exact.lower), str(exact.upper)]}


ITEMS = [
    Item("libqif-bayes", "the best guess before and after an output", bayes),
    Item("libqif-guessing", "how many guesses it takes, and min-entropy leakage", guessing),
    Item(
        "libqif-shannon",
        "entropies and capacities, in bits",
        shannon,
        note="The capacities are lower and upper bounds, both proved; libqif has a tolerance.",
    ),
    Item("libqif-capacities", "the most that any prior or gain makes of an output", capacities),
    Item(
        "libqif-refinement",
        "the additive refinement metric",
        refinement,
        note="The rational number comes out exactly, at both ends.",
    ),
]
