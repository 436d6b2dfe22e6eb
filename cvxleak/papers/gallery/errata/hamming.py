"""Errata of HAMMING."""

from __future__ import annotations

import numpy as np

from cvxleak.local_dp import (
    class_one_information,
    class_two_distortions,
    class_two_leakage,
    class_two_mechanism,
    classify,
    fold,
    folding_bounds,
    is_staircase,
    min_information,
    min_local_dp,
)
from cvxleak.measures import local_dp_epsilon, mutual_information, worst_case_distortion
from cvxleak.mechanisms import randomized_response
from cvxleak.model import Distortion
from cvxleak.papers.gallery.errata.erratum import Erratum
from cvxleak.papers.gallery.item import Pair, pair
from cvxleak.sources import SourceSet

__all__ = ["ERRATA"]

TABLE_I = [0.7, 0.15, 0.06, 0.04, 0.03, 0.02]
SET_A = [TABLE_I, [0.15, 0.7, *TABLE_I[2:]]]
NO_GROUP = [[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]]


def _order() -> list[Pair]:
    exact = min_local_dp([TABLE_I], 0.02)
    printed = class_two_distortions([TABLE_I], 0.02, ordered=False)[0]
    return [
        pair("exact", exact, "5.5013"),
        pair("(11) as printed", printed, "5.1648"),
        pair("(11) with the order", class_two_leakage([TABLE_I], 0.02), exact.upper, None, 1e-7),
        pair("so the order is needed", exact, printed, "HAMMING (11)", 1e-3),
    ]


def _removed() -> list[Pair]:
    last = len(TABLE_I) - 2
    values = [class_two_distortions([TABLE_I], 0.2, removed=k)[0] for k in range(last)]
    return [
        pair(
            "least over l from 0 to M − 3, and l = 0 alone, D = 0.2",
            min(values),
            values[0],
            None,
            1e-7,
        ),
    ]


def _intersection() -> list[Pair]:
    exact = min_local_dp(SET_A, 0.31)
    alone = class_two_leakage(fold(SET_A).intersection, 0.31)
    return [
        pair("exact for the Class III set a, D = 0.31", exact, "1.4615"),
        pair("(19): the intersection alone", alone, 0.0),
        pair("with D_T(i) = D_i", folding_bounds(SET_A, 0.31).upper, exact.upper, None, 1e-5),
        pair("so (19) is short", exact, alone, "HAMMING Cor 1, (19)", 1e-3),
    ]


def _hull() -> list[Pair]:
    points = np.eye(3)
    hull = min_information(SourceSet.hull(points), 0.3)
    return [
        pair("three point masses, D = 0.3", min_information(points, 0.3), 0.0, None, 1e-7),
        pair("their hull", hull, "0.2798"),
        pair("the formula for Class I", hull, class_one_information(3, 0.3), None, 1e-6),
    ]


def _folding() -> list[Pair]:
    return [
        pair("exact, D = 0.62", min_local_dp(NO_GROUP, 0.62), 0.0),
        pair("Theorem 3's lower bound", folding_bounds(NO_GROUP, 0.62).lower or 0.0, "0.2036"),
        pair(
            "worst distortion of the constant distribution (0.4, 0.6, 0)",
            worst_case_distortion(
                np.tile([0.4, 0.6, 0.0], (3, 1)), NO_GROUP, Distortion.hamming(range(3))
            ),
            0.62,
        ),
    ]


def _inclusion() -> list[Pair]:
    one, two = min_local_dp([TABLE_I], 0.3), min_local_dp(SET_A, 0.3)
    return [
        pair("Table I, D = 0.3: the constant output just fits", one, 0.0),
        pair("Table I, D = 0.31", min_local_dp([TABLE_I], 0.31), 0.0),
        pair("the larger set, D = 0.31", min_local_dp(SET_A, 0.31), "1.4615"),
        pair(
            "by how much the smaller set needs more at D = 0.3: not",
            max(one.lower - two.upper, 0.0),
            0.0,
        ),
    ]


def _distortions() -> list[Pair]:
    channel = class_two_mechanism(class_two_distortions([TABLE_I], 0.2)[1])
    drops = np.diff(1 - np.diag(channel))
    return [
        pair(
            "most by which D_1, D_2, … falls in the optimum, D = 0.2: not",
            max(-float(drops.min()), 0.0),
            0.0,
        )
    ]


def _constant() -> list[Pair]:
    law = [0.5, 0.3, 0.2]
    constant = np.tile([1.0, 0, 0], (3, 1))
    worst = worst_case_distortion(constant, [law], Distortion.hamming(range(3)))
    return [
        pair("distortion of the constant output 1 under (0.5, 0.3, 0.2)", worst, "0.5"),
        pair("(M − 1)/M", worst, 2 / 3, "HAMMING Lemma 5", 1e-3),
        pair("leakage of a constant output", local_dp_epsilon(constant), 0.0),
    ]


def _no_group() -> list[Pair]:
    laws = [*NO_GROUP, [0.3, 0.5, 0.2]]
    sets, exact = fold(laws), min_local_dp(laws, 0.62)
    said = folding_bounds(laws, 0.62).upper
    return [
        pair(
            "intersection and union differ by",
            float(np.ptp([sets.intersection, sets.union], axis=0).max()),
            0.0,
        ),
        pair("exact, D = 0.62", exact, 0.0),
        pair("the value that Remark 6 has", said, "0.2036"),
        pair("so it is not the value", exact, said, "HAMMING Cor 1, Remark 6", 1e-3),
    ]


def _staircase() -> list[Pair]:
    exact = min_local_dp([TABLE_I], 0.05)
    response = randomized_response(len(TABLE_I), exact.upper)
    worst = worst_case_distortion(response, [TABLE_I], Distortion.hamming(range(len(TABLE_I))))
    return [
        pair("least ε of Table I, D = 0.05", exact, "4.554"),
        pair("distortion of randomized response there", worst, 0.05),
        pair("it is a staircase: yes", float(is_staircase(response)), 1.0),
        pair("and Table I is of Class II", len(classify([TABLE_I]).kind), 2.0),
    ]


def _not_necessary() -> list[Pair]:
    laws = [[0.5, 0.3, 0.2], [0.3, 0.5, 0.2], [0.4, 0.35, 0.25]]
    sets, bounds = fold(laws), folding_bounds(laws, 0.4)
    return [
        pair("distributions in the intersection", len(sets.intersection), 1.0),
        pair("distributions in the union", len(sets.union), 2.0),
        pair("lower bound, D = 0.4", bounds.lower or 0.0, "1.0986"),
        pair("upper bound, D = 0.4", bounds.upper, "1.0986"),
        pair("exact", min_local_dp(laws, 0.4), bounds.upper, None, 1e-7),
    ]


def _concave() -> list[Pair]:
    channel = [[0.9, 0.1], [0.1, 0.9]]
    ends = [mutual_information(channel, law) for law in ([1.0, 0.0], [0.0, 1.0])]
    middle = mutual_information(channel, [0.5, 0.5])
    return [
        pair("information of a point mass, flip 0.1", max(ends), 0.0),
        pair("of a fair bit, halfway between two of them", middle, "0.3681"),
    ]


ERRATA = [
    Erratum(
        "HAMMING (11)",
        "a linear program without D_1 ≤ D_2 ≤ …",
        "the order is needed: for Table I and D = 0.02 the printed program gives 5.1648, but the "
        "least value is 5.5013. With the order, l = 0 alone gives the optimum",
        "the full linear program, certified",
        _order,
    ),
    Erratum(
        "HAMMING (17)",
        "l runs up to M",
        "up to M − 2: for l = M − 1 the factor M − 1 − l is 0",
        "the formula; and l = 0 is enough",
        _removed,
    ),
    Erratum(
        "HAMMING (18), (48)",
        "no order; indices below M − k",
        "the order, D_i = 1 for the removed outputs i > M − k, indices up to M − k, and sums up "
        "to it",
        "derived from (11); the corrected program is exact if the foldings are a group",
    ),
    Erratum(
        "HAMMING Thm 3",
        "the intersection gives a lower bound for every Class III set",
        "not if the folding permutations are not a group: for (0.5, 0.3, 0.2) and (0.2, 0.5, 0.3) "
        "at D = 0.62 it is 0.2036, but an output drawn from (0.4, 0.6, 0), whatever the input, "
        "meets the budget without any leakage. The upper bound is correct",
        "the full linear program, certified",
        _folding,
    ),
    Erratum(
        "HAMMING Cor 1, (19)",
        "the value is that of the intersection alone",
        "only with D_T(i) = D_i: for the Class III set a and D = 0.31 the intersection alone "
        "gives 0, but the least value is 1.4615",
        "the full linear program, certified",
        _intersection,
    ),
    Erratum(
        "HAMMING III-A",
        "a source set may be replaced by its hull, for information too",
        "only for differential privacy. For information a finite set can need less than its hull: "
        "at D = 0.3, 0 for three point masses, and 0.2798 for their hull",
        "certified",
        _hull,
    ),
    Erratum(
        "HAMMING V-G",
        "a subset needs at least as much leakage",
        "it needs at most as much: Table I alone is a subset of the Class III set a, and at "
        "D = 0.31 they need 0 and 1.4615",
        "certified",
        _inclusion,
    ),
    Erratum(
        "HAMMING Lemma 8, (45b)",
        "D_1 ≥ … ≥ D_M after Lemma 8; an equality in (45b)",
        "D_1 ≤ … ≤ D_M, and ≥",
        "an optimal channel",
        _distortions,
    ),
    Erratum(
        "HAMMING Lemma 5",
        "a constant output has distortion (M − 1)/M",
        "1 − P_1: 0.5 for (0.5, 0.3, 0.2). And the lemma needs the hull, not the set",
        "the definition",
        _constant,
    ),
    Erratum(
        "HAMMING Cor 1, Remark 6",
        "if intersection and union are equal, the bounds are the value",
        "only if the folding permutations are a group. (0.5, 0.3, 0.2), (0.2, 0.5, 0.3) and "
        "(0.3, 0.5, 0.2) fold to one distribution, so intersection and union are equal. At "
        "D = 0.62 the value would be 0.2036, but an output drawn from (0.4, 0.6, 0), whatever the "
        "input, meets the budget without any leakage",
        "the full linear program, certified",
        _no_group,
    ),
    Erratum(
        "HAMMING abstract, tightness",
        "a condition that is necessary and sufficient for tight bounds",
        "the paper proves Corollary 1 only, and its condition, that intersection and union are "
        "equal, is not necessary: for (0.5, 0.3, 0.2), (0.3, 0.5, 0.2) and (0.4, 0.35, 0.25) they "
        "differ, but at D = 0.4 both bounds and the value are 1.0986",
        "the full linear program, certified",
        _not_necessary,
    ),
    Erratum(
        "HAMMING I, staircase",
        "staircase mechanisms are optimal for Class I only",
        "for small budgets they are also optimal elsewhere: Table I, of Class II, needs 4.554 at "
        "D = 0.05, which randomized response attains, and that is a staircase mechanism",
        "the full linear program, certified",
        _staircase,
    ),
    Erratum(
        "HAMMING (22)",
        "mutual information is convex in the source",
        "it is concave, which the minimax theorem needs and the proof for Class I uses. Through a "
        "channel with flip 0.1 a point mass has information 0, and a fair bit 0.3681",
        "the definition",
        _concave,
    ),
]
