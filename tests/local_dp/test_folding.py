"""HAMMING Definitions 5 and 6, (15) to (18) and (51), for points, hulls and polytopes."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak.core.errors import ValidationError
from cvxleak.local_dp import (
    class_three_distortions,
    class_three_leakage,
    class_two_leakage,
    fold,
    folding_bounds,
    min_local_dp,
)
from cvxleak.local_dp.statement import distance_from_hull
from cvxleak.sources import SourceSet

tables = SimpleNamespace(**runpy.run_path(str(Path(__file__).with_name("tables.py"))))
SIX, TEN, class_three, swapped = tables.SIX, tables.TEN, tables.class_three, tables.swapped
seeds = st.integers(0, 10_000)
SWAP = [range(6), (3, 1, 2, 0, 4, 5)]


def inside(part, law):
    return distance_from_hull(part, np.asarray(law))[0] <= 1e-9


@settings(max_examples=4)
@given(seeds, st.booleans())
def test_the_images_of_a_convex_set(seed, box):
    rng = np.random.default_rng(seed)
    center = rng.dirichlet(np.full(3, 8.0))
    if box:
        sources = SourceSet.box(0.7 * center, np.minimum(1.4 * center, 1))
    else:
        sources = SourceSet.hull(rng.dirichlet(np.full(3, 8.0), size=4))
    sets = fold(sources)
    for order, image in zip(sets.folding, sets.images, strict=True):
        assert (np.diff(image.points, axis=1) <= 1e-12).all()
        for law in image.points:
            assert inside(sources, law[np.argsort(order)])
    directions = rng.normal(size=(6, 3))
    corners = np.array([sources.worst(c)[1].probabilities for c in directions])
    for law in rng.dirichlet(np.ones(6), size=4) @ corners:
        order = tuple(int(i) for i in np.argsort(-law))
        folded = law[list(order)]
        assert inside(sets.images[sets.folding.index(order)], folded)
        assert inside(sets.union, folded)
        everywhere = all(inside(image, folded) for image in sets.images)
        both = sets.intersection is not None and inside(sets.intersection, folded)
        assert both == everywhere


def test_a_segment_in_one_order_and_its_ties():
    segment = SourceSet.hull(TEN)
    sets = fold(segment)
    # The second distribution of Table II has two ties, hence four orders.
    assert len(sets.folding) == 4
    assert len(sets.union.parts) == 1
    assert sets.intersection is not None
    assert sets.intersection.points.tolist() == [TEN[1]]
    for budget in (0.1, 0.5):
        bounds, exact = folding_bounds(segment, budget), min_local_dp(segment, budget)
        assert bounds.upper == pytest.approx(exact.upper, abs=1e-7)
        assert bounds.single_order == pytest.approx(exact.upper, abs=1e-7)
        assert not bounds.tight


def test_a_union_of_segments_is_folded_onto_one():
    ends = [[0.6, 0.25, 0.15], [0.5, 0.3, 0.2]]
    swapped_ends = [swapped(law, 1) for law in ends]
    sets = fold(SourceSet.hull(ends) | SourceSet.hull(swapped_ends))
    assert sets.folding == ((0, 1, 2), (1, 0, 2))
    assert sets.intersection is not None
    for one in (sets.intersection, sets.union, *sets.images):
        assert sorted(one.points.tolist()) == sorted(ends)
        assert len(one.parts) == 1
    assert len(sets.upper_set.parts) == 2
    bounds = folding_bounds(sets.upper_set, 0.3)
    assert bounds.tight
    exact = min_local_dp(sets.upper_set, 0.3)
    assert [bounds.lower, bounds.upper] == pytest.approx([exact.upper] * 2, abs=1e-7)


@pytest.mark.parametrize("removed", [0, 1, 2])
def test_18_with_outputs_removed(removed):
    kept = 6 - removed
    value, D = class_three_distortions([SIX], 0.4, SWAP, removed=removed)
    exact = min_local_dp([SIX, swapped(SIX, 3)], 0.4, (1 - np.eye(6))[:, :kept])
    assert exact.lower - 1e-7 <= value <= exact.upper + 1e-7
    assert D[0] == D[3]
    assert (D[kept:] == 1).all()


def test_18_ties_what_it_removes():
    # With the fourth output the first one goes, and .7 is lost; as printed it may stay.
    assert class_three_distortions([SIX], 0.4, SWAP, removed=3)[0] == np.inf
    assert class_three_distortions([SIX], 0.4, SWAP, removed=3, printed=True)[0] < 1e-9


def test_18_as_printed_is_too_small_and_with_the_order_too_large():
    exact = min_local_dp([SIX, swapped(SIX, 3)], 0.4)
    assert class_three_distortions([SIX], 0.4, SWAP, printed=True)[0] < exact.lower - 0.005
    # D_1 <= ... <= D_4 and D_1 = D_4: four equal distortions.
    four = class_three_leakage([SIX], 0.4, [range(6), (1, 2, 3, 0, 4, 5)])
    assert four > exact.upper + 0.2
    assert class_three_leakage([SIX], 0.4, SWAP) == pytest.approx(exact.upper, abs=1e-7)


def test_17_has_its_minimum_at_k_0():
    for budget in (0.25, 0.4, 0.6):
        values = [class_three_distortions([SIX], budget, SWAP, removed=k)[0] for k in range(5)]
        assert values[0] <= min(values) + 1e-9
    # Without foldings it is Theorem 2.
    for budget in (0.01, 0.1, 0.29):
        assert class_three_leakage([SIX], budget, [range(6)]) == pytest.approx(
            class_two_leakage([SIX], budget), abs=1e-9
        )


@pytest.mark.parametrize("n", [1, 2, 3])
def test_theorem_3_on_tables_iii_and_iv(n):
    """Along the curve, with one order for each distribution, both ends are the exact value."""
    exchanges = {size: [swapped(range(size), j) for j in range(n + 1)] for size in (6, 10)}
    four = [swapped(law, j) for j in range(n + 1) for law in TEN]
    for budget in np.linspace(0.06, 0.86, 9):
        bounds, exact = folding_bounds(class_three(n), budget), min_local_dp(class_three(n), budget)
        for end in (bounds.lower, bounds.upper, class_three_leakage([SIX], budget, exchanges[6])):
            assert exact.lower - 1e-9 <= end <= exact.upper + 1e-9
        exact = min_local_dp(four, budget)
        end = class_three_leakage(TEN, budget, exchanges[10])
        assert exact.lower - 1e-9 <= end <= exact.upper + 1e-9
        assert folding_bounds(four, budget).upper >= exact.lower - 1e-9


def test_all_orders_of_ties_cost_something_on_table_iv():
    # Definition 5 literally: the second distribution of Table II has four orders.
    four = [swapped(law, j) for j in (0, 1) for law in TEN]
    assert len(fold(four).folding) == 8
    assert folding_bounds(four, 0.22).upper > min_local_dp(four, 0.22).upper + 0.02


def test_complaints():
    with pytest.raises(ValidationError, match="permutations of 0 to 5"):
        class_three_leakage([SIX], 0.3, [(1, 0)])
    with pytest.raises(ValidationError, match="folding: found no permutation"):
        class_three_leakage([SIX], 0.3, [])
    with pytest.raises(ValidationError, match="Class III"):
        class_three_leakage(class_three(1), 0.3, SWAP)
