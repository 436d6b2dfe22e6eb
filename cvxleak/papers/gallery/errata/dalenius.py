"""Errata of DALENIUS: errors, and statements that can be sharpened."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from cvxleak.audit import group_leakage, record_leakage
from cvxleak.capacities import capacity
from cvxleak.measures import entropy, group_budget
from cvxleak.mechanisms import (
    binary_symmetric,
    column_symmetric_bound,
    discretized_gaussian,
    discretized_laplace,
    gaussian_bound,
    gaussian_peak_capacity,
    is_column_symmetric,
    is_weakly_symmetric,
    rank_exponential,
    symmetric_capacity,
)
from cvxleak.model import Mechanism, RecordSpace
from cvxleak.papers.gallery.dalenius import hospital
from cvxleak.papers.gallery.errata.erratum import Erratum
from cvxleak.papers.gallery.item import Pair, pair
from cvxleak.papers.gallery.parity import noisy_parity
from cvxleak.queries import from_function

__all__ = ["ERRATA"]

LOG2 = math.log(2)


def _peak() -> list[Pair]:
    bound, peak = gaussian_bound(1.0, 1.0), gaussian_peak_capacity(1.0, 1.0)
    return [
        pair("C_1 for T = 1, N = 1", peak.upper, "0.3368"),
        pair("the formula (32)", bound, "0.3466"),
        pair("so they differ", peak.upper, bound, "DALENIUS Cor 4", 1e-3),
    ]


def _ternary() -> list[Pair]:
    query = from_function(RecordSpace([range(3), range(4)]), lambda x: int(x[0] == 2 and x[1] > 0))
    bound = record_leakage(Mechanism(query, binary_symmetric(0.2)), 0.0)
    return [pair("C_1 of a query on records of 3 and 4 values", bound, symmetric_capacity(2, 0.2))]


def _printed_capacity() -> list[Pair]:
    exact = symmetric_capacity(2, 0.3)
    return [
        pair("C_1 at flip 0.3", exact, "0.082283"),
        pair("printed", exact, "0.08227657", "DALENIUS 7.2, C_1"),
    ]


def _plateau() -> list[Pair]:
    at_edge = record_leakage(noisy_parity(4, 0.1), 3 * LOG2)
    return [pair("C_1^b at b = 3 log 2, n = 4, flip 0.1", at_edge, symmetric_capacity(2, 0.1))]


def _clamped() -> list[Pair]:
    channels = (discretized_laplace([0, 1, 2], 1.0, 1.0), discretized_gaussian([0, 1, 2], 1.0))
    return [
        pair(
            f"rows of the {name} channel on 0, 1, 2 are permutations of one another: no",
            float(is_column_symmetric(channel)),
            0.0,
        )
        for name, channel in zip(("Laplace", "Gaussian"), channels, strict=True)
    ]


def _ties() -> list[Pair]:
    first = np.array([[0, 1, 2, 3], [1, 0, 2, 3], [1, 2, 0, 3], [1, 2, 3, 0]])
    cycle = np.array([np.roll(np.arange(4), x) for x in range(4)])
    one, two = (capacity(rank_exponential(d, 4.0)) for d in (first, cycle))
    return [
        pair("capacity, ties to the first output", one, "0.0367"),
        pair("ties along the cycle", two, "0.0381"),
        pair("so they differ", one, two.upper, "DALENIUS Def 13", 1e-3),
    ]


def _weak() -> list[Pair]:
    rows = [[0.9, 0.1], [0.1, 0.9], [0.9, 0.1]]
    return [
        pair(
            "Definition 12 for the rows (0.9, 0.1), (0.1, 0.9), (0.9, 0.1): not met",
            float(is_weakly_symmetric(rows)),
            0.0,
        ),
        pair("their capacity, and log|Y| − H(Z)", capacity(rows), column_symmetric_bound(rows)),
    ]


def _basis() -> list[Pair]:
    cube = np.random.default_rng(0).dirichlet(np.ones(2), size=(3, 2))
    basis = [
        {choice: rows[np.arange(len(rows)), list(choice)] for choice in choices}
        for rows, choices in (
            (cube, product(range(2), repeat=3)),
            (cube.swapaxes(0, 1), product(range(3), repeat=2)),
        )
    ]
    found = [len({channel.tobytes() for channel in channels.values()}) for channels in basis]
    both = [(choice, channel) for channels in basis for choice, channel in channels.items()]
    best, one_value = (
        max(capacity(channel).upper for choice, channel in both if len(set(choice)) <= most)
        for most in (3, 1)
    )
    return [
        pair("elements of S_1 of a random channel for Example 1", found[0], 8.0),
        pair("as printed", found[0], 2.0, "DALENIUS (21)", 0.1),
        pair("elements of S_2", found[1], 9.0),
        pair("together, as many as Theorem 2 needs", sum(found), 17.0),
        pair("largest capacity", best, "0.3832"),
        pair("of those that use one value of the other record throughout", one_value, "0.3349"),
    ]


def _group() -> list[Pair]:
    # Three bits' parity and flip 0.1, at a floor where it matters.
    mechanism, floor, k = noisy_parity(3, 0.1), 1.7, 2
    alone = record_leakage(mechanism, floor)
    gain = record_leakage(mechanism, 0.0).upper - alone.lower
    sharp = k * alone.upper + (k - 1) * gain
    pair_of_bits = group_leakage(mechanism, floor, k, tol=0.01)
    return [
        pair("k ε + (k − 1) g for k = 2, n = 3, flip 0.1, b = 1.7", sharp, "0.5961"),
        pair("k (ε + g)", group_budget(k, alone.upper, gain), "0.7362"),
        pair(
            "by how much the leakage about two bits exceeds the sharper one: not",
            max(pair_of_bits.upper - sharp, 0.0),
            0.0,
        ),
    ]


def _linear() -> list[Pair]:
    few, many = (entropy(np.full(2**n, 2.0**-n)) for n in (8, 16))
    skewed = np.random.default_rng(0).dirichlet(np.ones(2**16))
    return [
        pair("entropy of 16 fair bits over that of 8", many / few, 2.0),
        pair("2 to the power of 8 more records", many / few, 2.0**8, "DALENIUS 2.2, scale", 1e-3),
        pair(
            "by how much a random prior on 16 bits has more: not",
            max(entropy(skewed) - many, 0.0),
            0.0,
        ),
    ]


def _hospital() -> list[Pair]:
    pairs, data = hospital()
    left = data["range of the mean that the floor leaves (binary records)"]
    return [
        *pairs,
        pair("range of the mean that is left", left, "0.998"),
        pair("noise that can be saved, percent", 100 * (1 - left), "0.2"),
        pair("b, percent of the maximum", 100 * pairs[0].computed, "0.9"),
    ]


ERRATA = [
    Erratum(
        "DALENIUS 2.2, scale",
        "the entropy of a dataset grows exponentially with its size",
        "at most in proportion to it, n log|X_i|: twice the records, twice the entropy",
        "the entropy of uniform distributions, which is the largest",
        _linear,
    ),
    Erratum(
        "DALENIUS (21)",
        "S_1 has two elements, one for each value of the other record",
        "it has a choice for each value of record 1: 2³ = 8 elements, and S_2 has 3² = 9; Theorem "
        "2 needs them all. A channel that uses one value of the other record for some values of "
        "record 1, and another one for the rest, is no mixture of the two. For a random channel "
        "the largest capacity of those that use one value throughout is 0.3349, and C_1 is 0.3832",
        "the basis channels of a random channel",
        _basis,
    ),
    Erratum(
        "DALENIUS Cor 4",
        "equality with log(1 + T²/N)/2 for the Gaussian channel",
        "this is only an upper bound: equality needs a Gaussian query, but |f| ≤ T limits the "
        "peak. For T = N = 1 the capacity is 0.3368, and the formula gives 0.3466",
        "an input distribution, and an upper bound over all inputs",
        _peak,
    ),
    Erratum(
        "DALENIUS (27)",
        "equality for binary records; larger alphabets need further analysis",
        "equality for every query that is not constant: two datasets that differ in one record "
        "have different values, and the uniform distribution on these two is enough",
        "that argument, and an audit",
        _ternary,
    ),
    Erratum(
        "DALENIUS 4.2",
        "the discrete Laplace and Gaussian mechanisms are column-symmetric",
        "not if the noise is clamped to a range: rows in the middle are not permutations of rows "
        "at the ends",
        "the rows",
        _clamped,
    ),
    Erratum(
        "DALENIUS Def 12",
        "weak symmetry is what equality needs",
        "it is sufficient, but not necessary. The necessary condition is that some distribution of "
        "the record's values, perhaps not the uniform one, makes the output uniform",
        "an example with three rows",
        _weak,
    ),
    Erratum(
        "DALENIUS Def 13",
        "outputs are ranked by distance",
        "ties are left open, and they matter: for four values at equal distances and N = 4 the "
        "capacity is 0.0367 with ties to the first output, 0.0381 with ties along the cycle",
        "both channels",
        _ties,
    ),
    Erratum(
        "DALENIUS Thm 3, 4",
        "k records, or several releases, cost the sum of ε + g each",
        "the first one faces the original adversary, so there is one g less: k ε + (k − 1) g, and "
        "the sum of the ε_j and of all g_j but one. For the parity of 3 bits with flip 0.1, "
        "b = 1.7 and k = 2 this gives 0.5961 instead of 0.7362",
        "the chain rule, and an audit of the group",
        _group,
    ),
    Erratum(
        "DALENIUS Example 3",
        "with at most 100 of 10⁶ records known, b = 9000 records' worth is conservative, and it "
        "allows less noise",
        "999,900 records' worth would be left, and 9000 are only 0.9% of the maximum. For the mean "
        "of binary records this floor leaves the adversary 0.998 of the range, so the noise can be "
        "reduced by at most 0.2%",
        "an adversary that meets the floor",
        _hospital,
    ),
    Erratum(
        "DALENIUS Fig. 4",
        "the leakage of a noisy parity falls with b from b = 0 on",
        "it is constant up to (n − 1) log 2",
        "lower and upper bounds, both proved, and the closed form",
        _plateau,
    ),
    Erratum(
        "DALENIUS 7.2, C_1",
        "0.08227657 nats at flip 0.3",
        "0.082283",
        "log 2 − h(0.3)",
        _printed_capacity,
    ),
]
