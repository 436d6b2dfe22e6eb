"""HAMMING's lemmas, theorems and corollary as laws, and where what is printed is not so."""

import math
import runpy
from itertools import permutations
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak.core.errors import ValidationError
from cvxleak.local_dp import (
    class_one_leakage,
    class_two_distortions,
    class_two_leakage,
    class_two_mechanism,
    class_two_program,
    classify,
    colors,
    critical_pairs,
    distortion_thresholds,
    fold,
    folding_bounds,
    folding_program,
    is_staircase,
    min_information,
    min_local_dp,
    one_law_leakage,
)
from cvxleak.measures import local_dp_epsilon, worst_case_distortion
from cvxleak.model import Distortion
from cvxleak.sources import SourceSet

tables = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("tables.py"))))
SIX, TEN, class_three = tables.SIX, tables.TEN, tables.class_three
seeds = st.integers(0, 10_000)


def ordered(rng, size, count):
    return np.sort(rng.dirichlet(np.ones(size), size=count), axis=1)[:, ::-1]


class TestClasses:
    def test_tables(self):
        assert classify([SIX]).permutation == tuple(range(6))
        assert classify(TEN).kind == "II"
        for n in (1, 2, 3):
            found = classify(class_three(n))
            assert found.kind == "III"
            assert found.exact
            assert len(found.folding) == n + 1

    def test_uniform(self):
        for sources in (
            [[0.25] * 4],
            [list(p) for p in permutations([0.5, 0.3, 0.2])],
            SourceSet.box([0.2] * 3, [0.5] * 3),
        ):
            found = classify(sources)
            assert found.kind == "I"
            assert found.distance <= 1e-12
        assert classify([[0.25] * 4]).exact

    @given(seeds)
    def test_separators_separate(self, seed):
        rng = np.random.default_rng(seed)
        P = rng.dirichlet(np.ones(4) * 2, size=3)
        found = classify(P)
        if found.kind == "I":
            assert found.mixture.law == pytest.approx([0.25] * 4, abs=1e-8)
        else:
            assert found.exact
            assert np.mean(found.separator) > (P @ found.separator).max()

    @settings(max_examples=25)
    @given(seeds)
    def test_order_is_found_whatever_the_labels(self, seed):
        rng = np.random.default_rng(seed)
        P = ordered(rng, 5, 3)
        shuffle = rng.permutation(5)
        found = classify(P[:, shuffle])
        assert [shuffle[i] for i in found.permutation] == list(range(5))
        assert classify(SourceSet.hull(P[:, shuffle])).permutation == found.permutation

    def test_polytopes(self):
        falling = SourceSet.polytope([[-1, 1, 0], [0, -1, 1], [-1, 0, 0]], [0, 0, -0.5])
        found = classify(falling)
        assert found.kind == "II"
        assert found.permutation == (0, 1, 2)
        # Ties: (.5, .25, .25) has two orders, (.5, .5, 0) two.
        assert set(found.folding) == {(0, 1, 2), (0, 2, 1), (1, 0, 2)}
        crossing = SourceSet.box([0.3, 0.3, 0.0], [0.6, 0.6, 0.2])
        found = classify(crossing)
        assert found.kind == "III"
        assert set(found.folding) == {(0, 1, 2), (1, 0, 2)}

    def test_ties_and_cap(self):
        assert len(classify([[0.4, 0.2, 0.2, 0.2]]).folding) == 6
        assert classify([[0.4, 0.2, 0.2, 0.2]], cap=5).folding is None
        with pytest.raises(ValidationError, match="more than 5"):
            fold([[0.4, 0.2, 0.2, 0.2]], cap=5)

    def test_borders(self):
        near = [[0.25 + 1e-8, 0.25, 0.25, 0.25 - 1e-8]]
        assert classify(near, tol=1e-7).kind == "I"
        assert not classify(near, tol=1e-7).exact
        assert classify(near).kind == "II"


class TestLemmas:
    @given(seeds)
    def test_1_quasi_convex(self, seed):
        rng = np.random.default_rng(seed)
        one, two = rng.dirichlet(np.ones(3), size=(2, 4))
        share = rng.uniform()
        mixed = local_dp_epsilon(share * one + (1 - share) * two)
        assert mixed <= max(local_dp_epsilon(one), local_dp_epsilon(two)) + 1e-12

    @given(seeds)
    def test_3_merging_columns(self, seed):
        rng = np.random.default_rng(seed)
        wide = rng.dirichlet(np.ones(5), size=4)
        merged = np.column_stack([wide[:, :3], wide[:, 3] + wide[:, 4]])
        assert local_dp_epsilon(merged) <= local_dp_epsilon(wide) + 1e-12
        assert (np.diag(merged) >= np.diag(wide[:, :4])).all()

    @settings(max_examples=10)
    @given(seeds)
    def test_3_more_outputs_do_not_help(self, seed):
        rng = np.random.default_rng(seed)
        P = rng.dirichlet(np.ones(3), size=2)
        more = np.column_stack([1 - np.eye(3), np.ones(3), np.ones(3)])
        assert min_local_dp(P, 0.3, more).upper == pytest.approx(
            min_local_dp(P, 0.3).upper, abs=1e-8
        )

    @settings(max_examples=20)
    @given(seeds)
    def test_4_distortions_in_the_order(self, seed):
        rng = np.random.default_rng(seed)
        P = ordered(rng, 5, 2)
        bound = min_local_dp(P, float(rng.uniform(0.1, 0.6)))
        channel = bound.witness.matrix
        order = np.argsort(1 - np.diag(channel), kind="stable")
        sorted_channel = channel[np.ix_(order, order)]
        hamming = Distortion.hamming(range(5))
        assert local_dp_epsilon(sorted_channel) == pytest.approx(local_dp_epsilon(channel))
        assert worst_case_distortion(sorted_channel, P, hamming) <= (
            worst_case_distortion(channel, P, hamming) + 1e-12
        )

    def test_5_constant_output_has_distortion_one_minus_p(self):
        # Printed (M - 1)/M; and a finite set without the uniform law leaks less than its hull.
        constant = np.tile([1.0, 0, 0], (3, 1))
        hamming = Distortion.hamming(range(3))
        assert worst_case_distortion(constant, [[0.2, 0.3, 0.5]], hamming) == pytest.approx(0.8)
        cyclic = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
        finite = min_information(cyclic, 0.3).upper
        assert finite < min_information(SourceSet.hull(cyclic), 0.3).lower - 0.01

    @settings(max_examples=10)
    @given(seeds)
    def test_6_and_7_zero_exactly_from_the_last_threshold(self, seed):
        rng = np.random.default_rng(seed)
        P = ordered(rng, 4, 2)
        last = float(distortion_thresholds(P)[3])
        assert min_local_dp(P, min(last + 1e-9, 1.0)).upper == 0
        assert min_local_dp(P, last - 1e-6).lower > 0

    @settings(max_examples=20)
    @given(seeds)
    def test_8_few_outputs_need_distortion(self, seed):
        rng = np.random.default_rng(seed)
        P = ordered(rng, 5, 2)
        k = int(rng.integers(1, 5))
        Q = rng.dirichlet(np.ones(5 - k), size=5)
        wide = np.zeros((5, 5))
        wide[:, rng.permutation(5)[: 5 - k]] = Q
        hamming = Distortion.hamming(range(5))
        threshold = distortion_thresholds(P)[k]
        assert worst_case_distortion(wide, P, hamming) >= threshold - 1e-12

    def test_worst_case_utility_is_not_sub_linear(self):
        # II-D: U(Q) = -max_P sum P_i D_i.
        P = np.eye(2)

        def utility(D):
            return -(P @ D).max()

        one, two = np.array([1.0, 0.0]), np.array([0.0, 1.0])
        assert utility(one + two) > utility(one) + utility(two)


class TestTheorems:
    @given(seeds)
    def test_2_equals_the_exact_program(self, seed):
        rng = np.random.default_rng(seed)
        P = ordered(rng, int(rng.integers(3, 6)), 2)
        budget = float(rng.uniform(0.05, 0.8))
        assert class_two_leakage(P, budget) == pytest.approx(
            min_local_dp(P, budget).upper, abs=1e-7
        )

    @given(seeds)
    def test_2_l_zero_is_enough(self, seed):
        rng = np.random.default_rng(seed)
        P, budget = ordered(rng, 5, 2), float(rng.uniform(0.05, 0.8))
        values = [class_two_distortions(P, budget, removed=n)[0] for n in range(4)]
        assert values[0] <= min(values) + 1e-9

    def test_2_without_the_order_is_too_small(self):
        assert class_two_distortions([SIX], 0.02)[0] == pytest.approx(5.501258, abs=1e-6)
        assert class_two_distortions([SIX], 0.02, ordered=False)[0] == pytest.approx(
            5.1648, abs=1e-4
        )

    @pytest.mark.parametrize("budget", [0.05, 0.15, 0.25, 0.29])
    def test_48_attains_it(self, budget):
        epsilon, D = class_two_distortions([SIX], budget)
        removed = int((D > 1 - 1e-9).sum())
        channel = class_two_mechanism(np.minimum(D, 1.0), removed)
        assert local_dp_epsilon(channel) == pytest.approx(epsilon, abs=1e-6)
        assert worst_case_distortion(channel, [SIX], Distortion.hamming(range(6))) == (
            pytest.approx(budget, abs=1e-9)
        )

    def test_2_the_tails_of_all_sources(self):
        # (11) as printed takes the largest tail from the budget of every source.
        laws = [[0.5, 0.3, 0.2], [0.7, 0.25, 0.05]]
        own, common = (
            class_two_distortions(laws, 0.3, removed=1, common_tail=tail)[0]
            for tail in (False, True)
        )
        exact = min_local_dp(laws, 0.3, (1 - np.eye(3))[:, :2])
        assert exact.lower - 1e-7 <= own <= exact.upper + 1e-7
        assert common > exact.upper + 0.1

    @settings(max_examples=25)
    @given(seeds)
    def test_2_for_hulls_and_polytopes(self, seed):
        rng = np.random.default_rng(seed)
        P = ordered(rng, 4, 3)
        budget = float(rng.uniform(0.05, 0.8))
        value = class_two_leakage(P, budget)
        assert class_two_leakage(SourceSet.hull(P), budget) == pytest.approx(value, abs=1e-9)
        box = SourceSet.box([0.4, 0.2, 0.0], [0.7, 0.3, 0.2])
        assert class_two_leakage(box, budget) == pytest.approx(
            min_local_dp(box, budget).upper, abs=1e-7
        )

    @settings(max_examples=40)
    @given(seeds)
    def test_9_and_its_claims(self, seed):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(3, 6))
        P = ordered(rng, size, int(rng.integers(1, 3)))
        k = int(rng.integers(0, size - 1))
        low, high = distortion_thresholds(P)[[k, size - 1]]
        budget = float(low + rng.uniform(0.05, 0.95) * (high - low))
        epsilon, D = class_two_distortions(P, budget, removed=k)
        exact = min_local_dp(P, budget, (1 - np.eye(size))[:, : size - k])
        assert exact.lower - 1e-7 <= epsilon <= exact.upper + 1e-7
        # (32), of the outputs that stay.
        kept = int((D < 1 - 1e-9).sum())
        assert kept <= size - k
        assert epsilon == pytest.approx(math.log((kept - 1 - D[1:kept].sum()) / D[0]), abs=1e-7)
        channel = class_two_mechanism(np.minimum(D, 1.0), size - kept)
        assert local_dp_epsilon(channel) == pytest.approx(epsilon, abs=1e-6)
        # (48) repeats a row for the outcomes without an output, in which Remark 8 has no color;
        # the mean of all rows is as good.
        channel[kept:] = channel[:kept].mean(axis=0)
        pattern = colors(channel, tol=1e-6)
        plain = []
        for i, row in enumerate(pattern[:, :kept]):
            assert set(row) not in ({"B"}, {"R"})  # Claim 1
            others = set(np.delete(row, i)) if i < kept else set(row)
            assert len(others) == 1  # Claim 2
            if i >= kept:
                assert others == {"W"}  # Remark 8
            elif row[i] != "B":
                assert others == {"R"}  # Claim 3
                plain.append(i)
        assert len(plain) <= 1  # Claim 4
        assert all(D[i] == D.min() for i in plain)  # Claim 5

    @given(seeds)
    def test_10(self, seed):
        rng = np.random.default_rng(seed)
        a, b = rng.uniform(size=5), np.sort(rng.uniform(size=5))
        moved = a.copy()
        moved[1:] *= rng.uniform(size=4)
        moved[0] += a.sum() - moved.sum()
        assert moved @ b <= a @ b + 1e-12

    @given(seeds)
    def test_49_and_50(self, seed):
        rng = np.random.default_rng(seed)
        D = np.sort(rng.uniform(0.05, 0.95, size=4))
        D *= min(1.0, 3 / D.sum())
        channel = class_two_mechanism(D)
        c = (1 - D).sum() - (1 - D)
        c /= D
        for j in range(4):
            ratios = channel[j, j] / np.delete(channel[:, j], j)
            assert ratios == pytest.approx(np.delete(c, j))
        assert c[0] >= c.max() - 1e-12
        assert local_dp_epsilon(channel) == pytest.approx(math.log(c[0]))

    @settings(max_examples=30)
    @given(seeds)
    def test_3_upper_bound_and_remark_4(self, seed):
        rng = np.random.default_rng(seed)
        size = int(rng.integers(3, 5))
        law = np.sort(rng.dirichlet(np.ones(size)))[::-1]
        P = [law, *(law[rng.permutation(size)] for _ in range(2))]
        if rng.uniform() < 0.5:
            P[-1] = rng.dirichlet(np.ones(size))
        budget = float(rng.uniform(0.05, 0.8))
        exact, bounds = min_local_dp(P, budget).upper, folding_bounds(P, budget)
        assert bounds.upper >= exact - 1e-7
        assert bounds.single_order <= exact + 1e-7

    def test_3_lower_bound_is_false(self):
        P = [[0.5, 0.3, 0.2], [0.2, 0.5, 0.3]]
        bounds = folding_bounds(P, 0.62)
        assert min_local_dp(P, 0.62).upper < 1e-9
        assert min_local_dp(P, 0.6200001).upper == 0
        assert bounds.lower == pytest.approx(0.2036, abs=1e-4)
        assert bounds.tight

    @settings(max_examples=20)
    @given(seeds)
    def test_3_is_exact_for_a_group(self, seed):
        rng = np.random.default_rng(seed)
        law, cycle = rng.dirichlet(np.ones(5)), rng.permutation(5)[: int(rng.integers(2, 4))]
        P = [law]
        for _ in cycle[1:]:
            after = P[-1].copy()
            after[cycle] = P[-1][np.roll(cycle, 1)]
            P.append(after)
        budget = float(rng.uniform(0.05, 0.8))
        bounds = folding_bounds(P, budget)
        exact = min_local_dp(P, budget).upper
        assert [bounds.lower, bounds.upper] == pytest.approx([exact, exact], abs=1e-6)

    @pytest.mark.parametrize("n", [1, 2, 3])
    def test_corollary_1_with_equal_distortions(self, n):
        bounds = folding_bounds(class_three(n), 0.3)
        assert bounds.tight
        exact = min_local_dp(class_three(n), 0.3).upper
        assert [bounds.lower, bounds.upper] == pytest.approx([exact, exact], abs=1e-9)
        # As printed, without D_T(i) = D_i, it is the value of one law.
        assert class_two_leakage([SIX], 0.3 + 1e-12) == 0
        assert exact > 1.5

    def test_51_contains_and_is_contained(self):
        P = [[0.5, 0.3, 0.2], [0.3, 0.5, 0.2], [0.6, 0.3, 0.1]]
        sets = fold(P)
        rows = {tuple(p) for p in P}
        assert {tuple(p) for p in sets.lower_set.points.tolist()} <= rows
        assert rows <= {tuple(p) for p in sets.upper_set.points.tolist()}
        assert folding_bounds([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3]], 0.2).lower is None

    def test_class_one(self):
        assert class_one_leakage(6, 0.1) == pytest.approx(math.log(45))
        assert class_one_leakage(6, 0.0) == math.inf
        assert class_one_leakage(6, 5 / 6) == 0


class TestOneLaw:
    @pytest.mark.parametrize("seed", range(6))
    def test_the_closed_form_is_the_linear_program(self, seed):
        rng = np.random.default_rng(seed)
        law = rng.dirichlet(np.full(rng.integers(2, 8), rng.choice([0.3, 1.0, 5.0])))
        for share in (0.02, 0.3, 0.7, 0.97, 1.01):
            budget = min(share * (1 - law.max()), 1.0)
            if budget > 0:
                bound = min_local_dp([law], budget)
                value = one_law_leakage(law, budget)
                assert bound.lower - 1e-8 <= value <= bound.upper + 1e-8

    def test_randomized_response_on_the_likeliest_outcomes_attains_it(self):
        for budget, m in ((0.05, 6), (0.15, 4), (0.25, 2)):
            value = one_law_leakage(SIX, budget)
            response = np.full((6, m), 1 / m)
            response[:m] = 1 / (math.exp(value) + m - 1)
            np.fill_diagonal(response[:m], math.exp(value) / (math.exp(value) + m - 1))
            full = np.hstack([response, np.zeros((6, 6 - m))])
            assert local_dp_epsilon(full) == pytest.approx(value)
            assert 1 - np.array(SIX) @ np.diag(full) == pytest.approx(budget)

    def test_borders(self):
        assert one_law_leakage(SIX, 0.3) == 0  # 1 - 0.7 as written, though not in floats
        assert one_law_leakage(SIX, math.nextafter(0.3, 0)) > 1
        assert one_law_leakage(SIX[::-1], 0.1) == one_law_leakage(SIX, 0.1)
        assert one_law_leakage(SIX, 0.0) == math.inf
        assert one_law_leakage([0.5, 0.5, 0.0], 0.0) == math.inf
        assert one_law_leakage([1.0, 0.0], 0.0) == 0
        assert one_law_leakage({"yes": 0.75, "no": 0.25}, 0.1) == pytest.approx(math.log(9))


class TestStructure:
    def test_class_one_is_a_staircase_and_class_two_need_not_be(self):
        flat = min_local_dp([[0.25] * 4], 0.3).witness
        assert is_staircase(flat, tol=1e-6)
        steep = min_local_dp([[0.5, 0.25, 0.15, 0.1]], 0.35).witness
        assert not is_staircase(steep, tol=1e-6)

    def test_every_optimum_has_a_critical_pair(self):
        for budget in (0.1, 0.2, 0.28):
            channel = min_local_dp([SIX], budget).witness
            pairs = critical_pairs(channel, tol=1e-9)
            assert pairs
            for y, high, low in pairs:
                ratio = channel.matrix[high, y] / channel.matrix[low, y]
                assert math.log(ratio) == pytest.approx(local_dp_epsilon(channel), abs=1e-8)
        assert critical_pairs([[0.5, 0.5], [0.5, 0.5]]) == []

    @given(seeds, st.floats(0.05, 0.95))
    def test_remark_7_a_black_entry_that_falls_or_a_red_one_that_rises(self, seed, share):
        # Small entries, so that the other column's ratios are next to 1; some of them are equal.
        entries = np.random.default_rng(seed).integers(1, 4, size=4) / 100
        rows = np.column_stack([entries, 1 - entries])
        pattern, epsilon = colors(rows)[:, 0], local_dp_epsilon(rows)
        for color, factor in (("B", share), ("R", 1 / share)):
            for i in np.flatnonzero(pattern == color):
                moved = entries.copy()
                moved[i] *= factor
                other = np.column_stack([moved, 1 - moved])
                assert local_dp_epsilon(other) < epsilon or colors(other)[i, 0] != color


def test_complaints():
    with pytest.raises(ValidationError, match="Class III"):
        class_two_leakage(class_three(1), 0.2)
    with pytest.raises(ValidationError, match="removed"):
        class_two_distortions([SIX], 0.2, removed=5)
    with pytest.raises(ValidationError, match="distortions"):
        class_two_mechanism([0.5, 1.0, 1.0])


@pytest.mark.parametrize("seed", range(4))
def test_the_programs_in_cvxpy_are_those_of_the_theorems(seed):
    rng = np.random.default_rng(seed)
    laws = -np.sort(-rng.dirichlet(np.ones(5), size=3), axis=1)
    for budget in (0.2, 0.35):
        for removed in (0, 1):
            for ordered in (True, False):
                epsilon, _ = class_two_distortions(laws, budget, removed=removed, ordered=ordered)
                program = class_two_program(laws, budget, removed=removed, ordered=ordered)
                value = program.solve(solver="HIGHS")
                if math.isinf(epsilon):
                    assert program.status == "infeasible"
                elif epsilon > 0:
                    assert math.log(value) == pytest.approx(epsilon, abs=1e-8)
        swapped = [*laws, *laws[:, [1, 0, 2, 3, 4]]]
        upper = folding_bounds(swapped, budget).upper
        if laws[:, -1].max() <= budget and upper > 0:
            value = folding_program(swapped, budget).solve(solver="HIGHS")
            assert math.log(value) == pytest.approx(upper, abs=1e-8)
