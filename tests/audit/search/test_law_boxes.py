"""Boxes of the law of a value's contexts: valid for any multipliers, sharp for smooth noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import rel_entr
from scipy.stats import norm

from cvxleak.audit import record_leakage
from cvxleak.audit.search.law_boxes import MOST_GROUPS, LawBoxes, fits_boxes
from cvxleak.audit.search.sharing import SharingSearch, SharingTree
from cvxleak.core.validation import Array
from cvxleak.iterative import joint_blahut_arimoto
from cvxleak.model import Mechanism
from cvxleak.problem.bound import Status
from cvxleak.proofs import verify
from cvxleak.queries import count
from tests.audit.search.proving import proved_bound
from tests.audit.search.test_sharing import entry, run


def cells_of_gaussian(n: int, sigma: float, width: float = 0.5) -> Mechanism:
    """Return a count with Gaussian noise, seen in cells: the outermost ones have the tails."""
    far = round(6 * sigma / width) * width
    edges = np.arange(-far, n + far + width / 2, width)
    below = norm.cdf(edges, np.arange(n + 1)[:, None], sigma)
    above = norm.sf(edges, np.arange(n + 1)[:, None], sigma)
    ends = np.ones((n + 1, 1))
    # Differences of small numbers, on either side of the mean.
    left = np.diff(np.hstack([0 * ends, below, ends]))
    right = -np.diff(np.hstack([ends, above, 0 * ends]))
    cells = np.where(below[:, [*range(len(edges)), -1]] < 0.5, left, right)
    return Mechanism(count(n), cells / cells.sum(axis=1, keepdims=True))


def solved(rows: Array, shares: Array, t: Array, lam: float, like=None) -> LawBoxes:
    tree = LawBoxes(rows, np.log(shares), t, lam, shares, like)
    tree.run(
        lambda: tree.attained + 1e-3,
        resolution=1e-3,
        stop=lambda: False,
        on_weights=lambda laws: None,
        node_limit=5000,
    )
    return tree


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    lam=st.sampled_from([0.05, 0.4, 1.0, 2.5]),
    zeros=st.booleans(),
)
def test_a_value_is_bounded_for_every_law(seed: int, lam: float, zeros: bool) -> None:
    rng = np.random.default_rng(seed)
    rows, shares = rng.dirichlet(np.ones(5), size=4), rng.dirichlet(np.ones(4))
    if zeros:
        rows[rng.random(rows.shape) < 0.3] = 0.0
        rows[:, 0] += 0.1
        rows /= rows.sum(axis=1, keepdims=True)
    t = rng.dirichlet(np.ones(5))
    tree = solved(rows, shares, t, lam)
    laws = rng.dirichlet(np.full(4, 0.4), size=2000)
    heights = rel_entr(laws @ rows, t).sum(axis=1) - lam * rel_entr(laws, shares).sum(axis=1)
    assert heights.max() <= tree.attained + 1e-9
    assert tree.attained <= tree.upper <= tree.attained + 1e-3
    # What a tree says at other multipliers is what it proves there.
    other = LawBoxes(rows, np.log(shares), t[::-1], 0.5 * lam, shares, tree)
    assert other.leaves == tree.leaves
    heights = rel_entr(laws @ rows, t[::-1]).sum(axis=1)
    heights -= 0.5 * lam * rel_entr(laws, shares).sum(axis=1)
    assert heights.max() <= other.upper


@pytest.mark.parametrize("lam", [0.05, 0.3])
def test_intervals_of_outputs_find_the_same(lam: float) -> None:
    rng = np.random.default_rng(2)
    rows, shares = rng.dirichlet(np.ones(4), size=4), rng.dirichlet(np.ones(4))
    t = rng.dirichlet(np.ones(4))
    tree = solved(rows, shares, t, lam)
    other = SharingTree(rows, np.log(shares), t, lam, shares)
    other.run(
        lambda: other.attained + 1e-3,
        resolution=1e-3,
        stop=lambda: False,
        on_weights=lambda laws: None,
        node_limit=20_000,
    )
    assert max(tree.attained, other.attained) <= min(tree.upper, other.upper)
    assert other.upper == pytest.approx(tree.upper, abs=1e-3)


@pytest.mark.parametrize("further", [0.1, -0.1])
def test_trees_serve_other_floors(further: float) -> None:
    lumped = cells_of_gaussian(4, 1.5).lumped(0)
    searches: list[SharingSearch] = []
    for share, like in ((0.7, False), (0.7 + further, False), (0.7 + further, True)):
        floor = share * lumped.max_entropy
        found = joint_blahut_arimoto(lumped, floor, starts=10, rng=0, max_iterations=1000)
        multiplier = float(found.history["multiplier"][-1])
        inherited = searches[0] if like else None
        search = SharingSearch(lumped, floor, found.point, multiplier, inherited)
        assert search.by_boxes
        run(search, search.attained + 1e-4, 10**5)
        assert found.value <= search.upper <= search.attained + 1e-4
        proved = proved_bound(lumped, floor, entry(search, lumped.rows.shape[1]))
        assert proved == pytest.approx(search.upper, abs=1e-9)
        searches.append(search)
    assert 0 < searches[2].nodes < searches[1].nodes


@pytest.mark.parametrize(
    ("n", "sigma", "floor", "leakage"),
    [(3, 1.0, 1.4, 0.399921), (5, 2.0, 3.0, 0.181546)],
)
def test_smooth_noise_with_many_outputs(n: int, sigma: float, floor: float, leakage: float) -> None:
    bound = record_leakage(cells_of_gaussian(n, sigma), floor, tol=1e-3)
    assert bound.status is Status.CERTIFIED
    assert bound.lower == pytest.approx(leakage, abs=1e-6)
    assert bound.lower <= bound.upper <= 1.001 * bound.lower * 1.0001
    assert bound.certificate is not None
    answer = verify(bound.certificate)
    assert answer.passed
    assert "share-ranges" in answer.rules["upper"]


@pytest.mark.parametrize(
    ("groups", "outputs", "least", "fits"),
    [
        (3, 3, 0.0, True),
        (3, 3, 1e-300, False),
        (4, 3, 0.0, False),
        (MOST_GROUPS, 20, 0.0, True),
        (MOST_GROUPS + 1, 20, 0.0, False),
    ],
)
def test_few_groups_and_no_tiny_probabilities_fit(
    groups: int, outputs: int, least: float, fits: bool
) -> None:
    rows = np.full((groups, outputs), 1 / outputs)
    rows[0, 0] = least
    assert fits_boxes(rows) == fits
