"""Errata of HAMMING."""

from __future__ import annotations

import math

import numpy as np

from cvxleak.capacities import capacity
from cvxleak.local_dp import (
    class_one_information,
    class_one_leakage,
    class_three_distortions,
    class_three_leakage,
    class_two_distortions,
    class_two_leakage,
    class_two_mechanism,
    classify,
    colors,
    distortion_thresholds,
    fold,
    folding_bounds,
    is_staircase,
    min_distortion_local_dp,
    min_information,
    min_local_dp,
)
from cvxleak.measures import local_dp_epsilon, mutual_information, worst_case_distortion
from cvxleak.mechanisms import randomized_response
from cvxleak.model import Distortion
from cvxleak.papers.gallery.errata.erratum import Erratum
from cvxleak.papers.gallery.hamming import TABLE_I, TABLE_II, class_three
from cvxleak.papers.gallery.item import Pair, pair
from cvxleak.sources import SourceSet

__all__ = ["ERRATA"]

SET_A = [TABLE_I, [0.15, 0.7, *TABLE_I[2:]]]
SET_4 = [TABLE_I, [TABLE_I[i] for i in (3, 1, 2, 0, 4, 5)]]
NO_GROUP = [[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]]


def _utility() -> list[Pair]:
    least = min_distortion_local_dp([TABLE_I], 2.0)
    utility = -worst_case_distortion(least.witness, [TABLE_I], Distortion.hamming(range(6)))
    return [
        pair("least distortion of Table I, ε = 2", least, "0.2513"),
        pair("minus the utility of an optimal channel", -utility, least.upper, None, 1e-7),
        pair("the utility itself", utility, least.upper, "HAMMING (5)", 1e-3),
    ]


def _order() -> list[Pair]:
    exact = min_local_dp([TABLE_I], 0.02)
    printed = class_two_distortions([TABLE_I], 0.02, ordered=False)[0]
    return [
        pair("exact", exact, "5.5013"),
        pair("(11) as printed", printed, "5.1648"),
        pair("(11) with the order", class_two_leakage([TABLE_I], 0.02), exact.upper, None, 1e-7),
        pair("so the order is needed", exact, printed, "HAMMING (11)", 1e-3),
    ]


def _tail() -> list[Pair]:
    laws = [[0.5, 0.3, 0.2], [0.7, 0.25, 0.05]]
    value = class_two_distortions(laws, 0.3, removed=1)[0]
    printed = class_two_distortions(laws, 0.3, removed=1, common_tail=True)[0]
    exact = min_local_dp(laws, 0.3, (1 - np.eye(3))[:, :2])
    return [
        pair("exact with the outputs 1 and 2, D = 0.3", exact, "1.9459"),
        pair("(11), each source with its own tail", value, exact.upper, None, 1e-7),
        pair("D − D^(1) for both", printed, "2.1401"),
        pair("so that is not the value", exact, printed, "HAMMING (11), tail", 1e-3),
    ]


def _image() -> list[Pair]:
    law = np.array([0.2, 0.5, 0.3])
    (order,) = fold([law]).folding
    said = np.empty(3)
    said[list(order)] = law
    return [
        pair("most that T^(−1)(P) rises: not", max(np.diff(law[list(order)]).max(), 0.0), 0.0),
        pair("most that T(P) rises: not", np.diff(said).max(), 0.0, "HAMMING (14)", 1e-3),
    ]


def _orders_of_ties() -> list[Pair]:
    laws = class_three(TABLE_II, "a")
    exact, bounds = min_local_dp(laws, 0.22), folding_bounds(laws, 0.22)
    once = class_three_leakage(TABLE_II, 0.22, [range(10), (1, 0, *range(2, 10))])
    return [
        pair("exact for Table IV, set a, D = 0.22", exact, "3.4404"),
        pair("(17) with one order for each distribution", once, exact.upper, None, 1e-7),
        pair("Theorem 3's upper bound with all orders", bounds.upper, "3.4629"),
        pair("its lower bound", bounds.lower or 0.0, "3.2581"),
        pair("so one is enough", once, bounds.upper, "HAMMING Def 5", 1e-3),
    ]


def _tied() -> list[Pair]:
    exact = min_local_dp(SET_4, 0.4)
    swap, turn = [range(6), (3, 1, 2, 0, 4, 5)], [range(6), (1, 2, 3, 0, 4, 5)]
    printed = class_three_distortions([TABLE_I], 0.4, swap, printed=True)[0]
    ordered = class_three_leakage([TABLE_I], 0.4, turn)  # the four that the order makes equal
    mended, D = class_three_distortions([TABLE_I], 0.4, swap)
    worst = worst_case_distortion(class_two_mechanism(D), SET_4, Distortion.hamming(range(6)))
    return [
        pair("exact, D = 0.4", exact, "1.4202"),
        pair("(18) as printed", printed, "1.4118"),
        pair("(18) with the order", ordered, "1.6376"),
        pair("(18) with the least distortion", mended, exact.upper, None, 1e-7),
        pair("(48) up to M − k: its ε", local_dp_epsilon(class_two_mechanism(D)), exact.upper),
        pair("(48) up to M − k: its distortion", worst, 0.4),
        pair("so (18) is too small", exact, printed, "HAMMING (18), (48)", 1e-3),
    ]


def _removed() -> list[Pair]:
    last = len(TABLE_I) - 2
    values = [class_two_distortions([TABLE_I], 0.2, removed=k)[0] for k in range(last + 1)]
    return [
        pair(
            "least over l from 0 to M − 2, and l = 0 alone, D = 0.2",
            min(values),
            values[0],
            None,
            1e-7,
        ),
    ]


def _intersection() -> list[Pair]:
    exact = min_local_dp(SET_A, 0.31)
    alone = class_two_leakage(fold(SET_A).images[0], 0.31)
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
    law, D, given = np.array([0.5, 0.3, 0.2]), 0.15, np.array([0.05, 0.1, 0.45])
    two = np.eye(3)[[0, 1, 1]]
    left, right = float(law @ given), float((1 - D) * given[0] + D / 2 * given[1:].sum())
    return [
        pair(
            "most by which D_1, D_2, … falls in the optimum, D = 0.2: not",
            max(-float(drops.min()), 0.0),
            0.0,
        ),
        pair(
            "distortion of the first two outputs without noise, (0.5, 0.3, 0.2)",
            worst_case_distortion(two, [law], Distortion.hamming(range(3))),
            float(distortion_thresholds([law])[1]),
        ),
        pair(
            "(45a) for (0.5, 0.3, 0.2) and the distortions (0.05, 0.1, 0.45)",
            left,
            "0.145",
            None,
            1e-9,
        ),
        pair("(45b), D = 0.15", right, "0.08375", None, 1e-9),
        pair("so they are not equal", left, right, "HAMMING Lemma 8, (45b)", 1e-3),
    ]


def _zero_columns() -> list[Pair]:
    two = min_distortion_local_dp([TABLE_I], 30.0, (1 - np.eye(6))[:, :2])
    size, k, D = 3, 1, np.array([0.8, 0.8])  # a sum of at most M − 1
    ratio = (size - 1 - k) * (1 - D[1:].sum() / (size - 1 - k)) / D[0]
    return [
        pair("least distortion for Table I with 4 columns of zeros", two, "0.15"),
        pair("e^ε of (32) for M = 3, k = 1 and the distortions (0.8, 0.8)", ratio, "0.25"),
        pair("at least, as said", ratio, 1.0, "HAMMING Lemma 9", 1e-3),
    ]


def _sign() -> list[Pair]:
    symmetric, better = class_one_leakage(3, 0.3), randomized_response(3, math.log(4)).matrix
    ratio = float(better[1, 0] / better[0, 0])
    return [
        pair("e^ε of (7), M = 3 and D = 0.3", math.exp(symmetric), "4.667"),
        pair("Q(j|i)/Q(j|j) of randomized response with e^ε = 4", ratio, "0.25", None, 1e-9),
        pair(
            "with the minus: by how much it is above e^−ε", ratio - math.exp(-symmetric), "0.0357"
        ),
        pair("as printed, at least", ratio, math.exp(symmetric), "HAMMING V-E", 1e-3),
    ]


def _ratios() -> list[Pair]:
    D = np.array([0.2, 0.4, 0.6])
    channel = class_two_mechanism(D)
    others = float(channel[1, 0] / channel[2, 0])
    c = ((1 - D).sum() - (1 - D)) / D
    repeated = colors(class_two_mechanism(np.array([0.25, 0.25, 1.0]), removed=1))[2]
    return [
        pair("c_1 of (49) for the distortions (0.2, 0.4, 0.6)", c[0], "5.0", None, 1e-9),
        pair("c_2", c[1], "3.0", None, 1e-9),
        pair("c_3", c[2], 7 / 3),
        pair("ratio of two entries off the diagonal", others, c[2] / c[1]),
        pair("so c_3 is not it", others, c[2], "HAMMING (49), Remark 8", 1e-3),
        pair("black entries in the row that (48) repeats", list(repeated).count("B"), 1.0),
    ]


def _constant() -> list[Pair]:
    law = [0.2, 0.3, 0.5]
    constant, uniform = np.tile([1.0, 0, 0], (3, 1)), np.full((3, 3), 1 / 3)
    hamming = Distortion.hamming(range(3))
    worst = worst_case_distortion(constant, [law], hamming)
    noisy = [[1.0, 0.0], [0.5, 0.5]]
    fair, most = mutual_information(noisy, [0.5, 0.5]), capacity(noisy)
    return [
        pair("distortion of the constant output 1 under (0.2, 0.3, 0.5)", worst, "0.8"),
        pair("(M − 1)/M", worst, 2 / 3, "HAMMING Lemma 5", 1e-3),
        pair("of a uniform output", worst_case_distortion(uniform, [law], hamming), 2 / 3),
        pair("leakage of a uniform output", local_dp_epsilon(uniform), 0.0),
        pair("information through the rows (1, 0) and (0.5, 0.5), a fair bit", fair, "0.2158"),
        pair("the most of all distributions", most, "0.2231"),
        pair("so a fair bit is not the worst", fair, most.lower, "HAMMING Lemma 5", 1e-3),
    ]


def _no_group() -> list[Pair]:
    laws = [*NO_GROUP, [0.3, 0.5, 0.2]]
    sets, exact = fold(laws), min_local_dp(laws, 0.62)
    said = folding_bounds(laws, 0.62).upper
    set_b = class_three([TABLE_I], "b")
    found = folding_bounds(set_b, 0.3)
    return [
        pair(
            "intersection and union differ by",
            float(np.ptp([image.points for image in sets.images], axis=0).max()),
            0.0,
        ),
        pair("exact, D = 0.62", exact, 0.0),
        pair("the value that Remark 6 has", said, "0.2036"),
        pair("so it is not the value", exact, said, "HAMMING Cor 1, Remark 6", 1e-3),
        pair("exact for the Class III set b, D = 0.3", min_local_dp(set_b, 0.3), "1.8971"),
        pair("its lower bound", found.lower or 0.0, "1.8971"),
        pair("its upper bound", found.upper, "1.8971"),
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
        pair("distributions of the first order", len(sets.images[0].points), 2.0),
        pair("of the second", len(sets.images[1].points), 1.0),
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
        "HAMMING (5)",
        "the least worst-case distortion is the largest utility",
        "minus the largest utility, since the utility is minus the distortion: for Table I and "
        "ε = 2 the least distortion is 0.2513",
        "the linear program, certified",
        _utility,
    ),
    Erratum(
        "HAMMING (11)",
        "a linear program without D_1 ≤ D_2 ≤ …",
        "the order is needed: for Table I and D = 0.02 the printed program gives 5.1648, but the "
        "least value is 5.5013. With the order, l = 0 alone gives the optimum",
        "the full linear program, certified",
        _order,
    ),
    Erratum(
        "HAMMING (11), tail",
        "D − D^(l) bounds the distortion of the outputs that stay, for all sources",
        "D^(l) is the largest tail of all sources; each source has its own. For (0.5, 0.3, 0.2) "
        "and (0.7, 0.25, 0.05), D = 0.3 and l = 1 the value is 1.9459, and D − D^(1) for both "
        "gives 2.1401. The least over l is the same, as l = 0 attains it",
        "the full linear program with the outputs that stay, certified",
        _tail,
    ),
    Erratum(
        "HAMMING Def 5",
        "a source set is a disjoint union of its parts of one order each",
        "not if a distribution has ties. By the definition all of its orders are folding "
        "permutations, although one for each distribution is enough. For Table IV, set a, and "
        "D = 0.22 the value is 3.4404, which (17) gives with the exchange alone; with all orders "
        "of the ties of Table II's second distribution Theorem 3's bounds are 3.2581 and 3.4629",
        "the full linear program, certified",
        _orders_of_ties,
    ),
    Erratum(
        "HAMMING (14)",
        "a distribution is folded to T(P), which has entry i of P at place T(i)",
        "to T^(−1)(P), which has entry T(i) at place i: for (0.2, 0.5, 0.3) and its order "
        "T = (2, 3, 1) that is (0.5, 0.3, 0.2), and T(P) is (0.3, 0.2, 0.5), which does not fall",
        "the definition",
        _image,
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
        "(18): the ratio is that of D_1, without an order. (48): indices below M − k",
        "(18): the least distortion takes the place of D_1, and D_i = 1 for the removed outputs "
        "i > M − k. For Table I with and without entries 1 and 4 exchanged and D = 0.4 the value "
        "is 1.4202; the printed program gives 1.4118, and with the order that (11) needs it gives "
        "1.6376, since the order and D_4 = D_1 make four distortions equal. (48): indices up to "
        "M − k, and sums up to it",
        "the full linear program, certified",
        _tied,
    ),
    Erratum(
        "HAMMING Thm 3",
        "the intersection gives a lower bound for every Class III set",
        "not always if the folding permutations are no group: for (0.5, 0.3, 0.2) and "
        "(0.2, 0.5, 0.3) at D = 0.62 it is 0.2036, but an output drawn from (0.4, 0.6, 0), "
        "whatever the input, meets the budget without any leakage. The upper bound is correct",
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
        "a distortion above D^(k) in the proof of Lemma 8, and D_1 ≥ … ≥ D_M after it; an equality "
        "in (45b)",
        "at least D^(k), which the first M − k outputs without noise attain; D_1 ≤ … ≤ D_M; and ≥ "
        "in (45b), as Lemma 10 says: for (0.5, 0.3, 0.2), D = 0.15 and the distortions (0.05, 0.1, "
        "0.45) the two sides are 0.145 and 0.08375",
        "two channels, and both sides",
        _distortions,
    ),
    Erratum(
        "HAMMING Lemma 9",
        "there is an optimal channel with k columns of zeros for every k up to M − 1; after the "
        "proof, e^ε ≥ 1 is a sum of D_1, …, D_(M−k) of at most M − 1",
        "only from D^(k) on, by Lemma 8: for Table I and k = 4 from 0.15 on. And the sum is at "
        "most M − 1 − k, as (11) has it: for M = 3, k = 1 and the distortions (0.8, 0.8) the "
        "ratio in (32) is 0.25",
        "the full linear program with the outputs that stay, certified; the formula",
        _zero_columns,
    ),
    Erratum(
        "HAMMING V-E",
        "a better channel has Q(j|i) > e^ε Q(j|j) for at least one pair, ε that of (7)",
        "a minus is missing, and all pairs of a column that is not zero have it: Q(j|i) > e^−ε "
        "Q(j|j), which (29b) uses. For M = 3 and D = 0.3, e^ε is 4.667; randomized response with "
        "e^ε = 4 has the ratio 0.25, which exceeds e^−ε by 0.0357",
        "the definition",
        _sign,
    ),
    Erratum(
        "HAMMING (49), Remark 8",
        "the ratios within a column of (48) are c_1, c_2, …; rows without an output are white",
        "two entries off the diagonal have the ratio c_i/c_j, which does not exceed the largest "
        "either. And (48) repeats a row with a black entry for outcomes without an output: the "
        "mean of the other rows is white. For the distortions (0.2, 0.4, 0.6) the c_i are 5.0, "
        "3.0 and 7/3",
        "two channels",
        _ratios,
    ),
    Erratum(
        "HAMMING Lemma 5",
        "a constant output has distortion (M − 1)/M; for every mechanism the uniform distribution "
        "has the most information",
        "1 − P_1: 0.8 for (0.2, 0.3, 0.5), so it can miss a budget of (M − 1)/M; an output that is "
        "uniform, whatever the input, meets it. The uniform distribution is the worst for "
        "symmetric mechanisms, and a bound for all, which is enough: through the rows (1, 0) and "
        "(0.5, 0.5) a fair bit has 0.2158, and the capacity is 0.2231. And the lemma needs the "
        "hull, not the set",
        "the definitions",
        _constant,
    ),
    Erratum(
        "HAMMING Cor 1, Remark 6",
        "if intersection and union are equal, the bounds are the value",
        "if the folding permutations are a group. Otherwise not always: (0.5, 0.3, 0.2), "
        "(0.2, 0.5, 0.3) and (0.3, 0.5, 0.2) fold to one distribution, so intersection and union "
        "are equal. At D = 0.62 the value would be 0.2036, but an output drawn from (0.4, 0.6, 0), "
        "whatever the input, meets the budget without any leakage. (A group is not necessary: for "
        "the Class III set b and D = 0.3 it is 1.8971, as the bounds are)",
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
