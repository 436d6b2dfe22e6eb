"""Boxes of the masses of blocks of contexts, made by hand: each bound against its formula."""

import itertools
import math

import numpy as np
import pytest
from cvxleak.proofs.bounds.law_blocks import block_bounds
from cvxleak.proofs.bounds.law_boxes import GRID
from cvxleak.proofs.bounds.tangents import contraction
from cvxleak.proofs.bounds.time_sharing import sharing_bound
from scipy.special import logsumexp, rel_entr, xlogy

from cvxleak.core.errors import CertificateError
from cvxleak.exact.packing import pack
from cvxleak.model import Lumped
from cvxleak.proofs.bounds import law_blocks, law_boxes, time_sharing
from tests.proofs.forged.test_law_boxes import a_box, narrowed, problem, vertices

pytestmark = pytest.mark.usefixtures("balls_of_the_checker")


def formula(rows, logs, logs_t, lam, blocks, box, w, u=0.0):
    """Return what the docstring of `law_blocks` says a leaf proves, and what it is off by."""
    n, outputs = rows.shape
    low, high = narrowed(*box)
    w = np.maximum(w, 2.0**-100)
    q = w @ rows
    log_q = np.log(np.where(q > 0, q, 1.0))
    s = np.where(q > 0, log_q - logs_t, 0.0)
    most, largest = [], 0.0
    for block in blocks:
        eta, omega = contraction(rows[block]), w[block].sum()
        x = rows[block] @ s + lam * logs[block] - eta * np.log(w[block] / omega)
        left = lam - eta
        c = left * logsumexp(x / left) if left > 0 else x.max()
        most.append(c - math.log(omega))
        largest = max(largest, abs(x).max())
    wide = high > low
    k = np.where(wide, (xlogy(high, high) - xlogy(low, low)) / np.where(wide, high - low, 1), 0)
    linear = np.array(most) + (1 - lam) * k
    corners = vertices(low, high)
    value = (corners @ linear).max() + (1 - lam) * (xlogy(low, low) - k * low).sum()
    order = np.argsort(-linear)
    filled = np.cumsum((high - low)[order])
    mu = linear[order[min(int((filled < 1 - low.sum()).sum()), len(low) - 1)]]
    sizes = 1 + largest + abs(mu) + (abs(linear - mu) * high).sum()
    sizes += (abs(log_q) + abs(logs_t)).max() + abs(s).max()
    sizes += 4 * n * (70 + abs(logs).max() + abs(np.log(w)).max() + abs(k).max())
    return value, 2 * (outputs + 3 * n + 60) * u * sizes


def leaves(seed, zeros=False):
    rng = np.random.default_rng(seed)
    for _ in range(30):
        n, outputs = int(rng.integers(3, 7)), int(rng.integers(2, 6))
        data = (*problem(rng, n, outputs, zeros), float(rng.choice([0.3, 0.7, 0.9, 1.0])))
        cuts = np.sort(rng.choice(np.arange(1, n), size=int(rng.integers(1, 3)), replace=False))
        blocks = [part.tolist() for part in np.split(rng.permutation(n), cuts)]
        low, high, center = a_box(rng, len(blocks), 10 ** rng.uniform(-2, 0))
        w = rng.dirichlet(np.ones(n)) * rng.uniform(0.5, 2)
        for share, block in zip(center, blocks, strict=True):
            w[block] *= share / w[block].sum()
        yield rng, data, blocks, (low, high), w


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("share", [0.0, 2.0**23])
def test_leaves_prove_their_formulas(monkeypatch, share, zeros):
    monkeypatch.setattr(law_boxes, "CHUNK", 1)
    u = share * law_boxes.UNIT_ROUNDOFF
    monkeypatch.setattr(law_boxes, "UNIT_ROUNDOFF", u)
    kinds = set()
    for rng, (rows, logs, logs_t, lam), blocks, (low, high), w in leaves(0, zeros):
        w = np.where(rng.random(len(w)) < 0.2, 0.0, w)
        both = np.stack([low, low]), np.stack([high, high])
        found = block_bounds(rows, logs, logs_t, lam, blocks, *both, np.stack([w, (w + 1) / 3]))
        for bound, law in zip(found.tolist(), (w, (w + 1) / 3), strict=True):
            value, allowed = formula(rows, logs, logs_t, lam, blocks, (low, high), law, u)
            assert bound == pytest.approx(value + allowed, rel=1e-10, abs=1e-10)
        kinds |= {bool(contraction(rows[block]) < lam) for block in blocks}
    assert kinds == {True, False}


@pytest.mark.parametrize("zeros", [False, True])
def test_no_law_of_a_box_is_above_its_bound(zeros):
    above = []
    for rng, (rows, logs, logs_t, lam), blocks, (low, high), w in leaves(1, zeros):
        masses = vertices(*narrowed(low, high))
        beta = rng.dirichlet(np.full(len(masses), 0.3), size=300) @ masses
        v = np.zeros((300, len(rows)))
        for b, block in enumerate(blocks):
            v[:, block] = beta[:, b : b + 1] * rng.dirichlet(np.full(len(block), 0.3), size=300)
        f = rel_entr(v @ rows, np.exp(logs_t)).sum(axis=1) + lam * (v @ logs - xlogy(v, v).sum(1))
        for law in (w, *v[:3], 0.5 * v[f.argmax()] + 0.5 * w):
            (bound,) = block_bounds(
                rows, logs, logs_t, lam, blocks, low[None], high[None], law[None]
            )
            assert f.max() <= bound + 1e-12
            above.append(bound - f.max())
    assert min(above) < 0.02


def test_a_box_without_laws_bounds_nothing():
    rows, half = np.array([[0.9, 0.1], [0.1, 0.9]]), np.log([0.5, 0.5])
    for low, high in (([0.5, 0.75], [1.0, 1.0]), ([0.0, 0.0], [0.5, 0.25])):
        given = np.array([low]), np.array([high]), np.ones((1, 2))
        assert block_bounds(rows, half, half, 0.5, [[0], [1]], *given)[0] == -math.inf


def test_a_point_is_a_box():
    rows, half = np.array([[0.9, 0.1], [0.1, 0.9]]), np.log([0.5, 0.5])
    point = np.array([[0.25, 0.75]])
    (bound,) = block_bounds(rows, half, half, 0.5, [[0], [1]], point, point, point)
    value, _ = formula(rows, half, half, 0.5, [[0], [1]], (point[0], point[0]), point[0])
    assert bound == pytest.approx(value, abs=1e-10)


def test_a_multiplier_that_is_the_contraction():
    rows, half = np.array([[0.75, 0.25], [0.25, 0.75]]), np.log([0.5, 0.5])
    box, w = (np.zeros((1, 1)), np.ones((1, 1))), np.array([[0.25, 0.75]])
    lam = contraction(rows)
    (bound,) = block_bounds(rows, half, half, lam, [[0, 1]], *box, w)
    value, _ = formula(rows, half, half, lam, [[0, 1]], (box[0][0], box[1][0]), w[0])
    assert bound == pytest.approx(value, abs=1e-10)


def test_any_exponentials_will_do(monkeypatch):
    rows, half = np.array([[0.75, 0.25], [0.25, 0.75]]), np.log([0.5, 0.5])
    box, w, lam = (np.zeros((1, 1)), np.ones((1, 1))), np.array([[0.25, 0.75]]), 0.9
    exponential = np.exp
    monkeypatch.setattr(law_blocks.np, "exp", lambda x: exponential(2 * x))
    (bound,) = block_bounds(rows, half, half, lam, [[0, 1]], *box, w)
    left = lam - contraction(rows)
    x = rows @ (np.log(w[0] @ rows) - half) + lam * half - contraction(rows) * np.log(w[0])
    p = exponential(2 * (x - x.max()) / left)
    expected = (x - left * np.log(p)).max() + left * math.log(p.sum())
    assert bound == pytest.approx(expected, abs=1e-10)


# Trees

ROWS = [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75], [0.75, 0.25]]
LUMPED = Lumped(
    range(2), range(2), np.array([0, 0, 0, 1]), ROWS, [1, 3, 2, 2], [(g,) for g in range(4)]
)
LAW = {"law": pack(np.array([1.0]))}
BLOCKS = [[1], [2, 0]]
LEAVES = [[0.25, 0.5, 0.25], [0.0, 0.125, 0.25], [0.125, 0.75, 0.125]]


def tree(nodes=(0, -1, 1, -1, -1), cuts=(0.5, 0.25), laws=None, dtype="<f8", **others):
    laws = LEAVES if laws is None else laws
    parts = {
        "blocks": BLOCKS,
        "nodes": pack(np.array(nodes), "<i4"),
        "cuts": pack(np.array(cuts, dtype=float)),
        "leaves": pack(np.array(laws, dtype=float), dtype),
    }
    return parts | others


def proof(part, lam=0.5):
    return {
        "outputs": [[0], [1]],
        "multiplier": lam,
        "output": pack(np.array([0.25, 0.75])),
        "values": [part, LAW],
    }


PARTS = [([0.0, 0.0], [0.5, 1.0]), ([0.5, 0.0], [1.0, 0.25]), ([0.5, 0.25], [1.0, 1.0])]
"""Where the cuts of `tree` lead."""


@pytest.mark.parametrize("dtype", ["<f8", "<f4"])
@pytest.mark.parametrize("lam", [0.5, 1.0])
def test_a_tree_is_as_good_as_its_worst_leaf(lam, dtype):
    rows, logs, logs_t = np.array(ROWS[:3]), np.log([1, 3, 2]), np.log([0.25, 0.75])
    other = rel_entr(ROWS[3], [0.25, 0.75]).sum() + lam * math.log(2)
    for laws in itertools.permutations(LEAVES):
        phi = [
            formula(rows, logs, logs_t, lam, BLOCKS, tuple(map(np.array, box)), np.array(w))[0]
            for box, w in zip(PARTS, laws, strict=True)
        ]
        bound = lam * math.log(math.exp(max(phi) / lam) + math.exp(other / lam)) - 0.25 * lam
        given = proof(tree(laws=laws, dtype=dtype), lam)
        assert sharing_bound(LUMPED, 0.25, given) == pytest.approx(bound, abs=1e-10)


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (tree(note=1), "the bound of a value: expected the parts"),
        (tree(blocks=[[1], [2]]), "blocks of a value do not fit"),
        (tree(blocks=[[1], [0, 1, 2]]), "blocks of a value do not fit"),
        (tree(blocks=[[1], [0, 2, 3]]), "blocks of a value do not fit"),
        (tree(blocks=[[0, 1, 2], []]), "blocks of a value do not fit"),
        (tree(blocks=[1, 2]), "the blocks of a value: expected a list of lists"),
        (tree([2, -1, 1, -1, -1]), "nodes of a value's tree are malformed"),
        (tree([0, -2, 1, -1, -1]), "nodes of a value's tree are malformed"),
        (tree(cuts=[0.0, 0.25]), "cuts of a value's tree are malformed"),
        (tree(cuts=[0.5, 0.25 + GRID / 2]), "cuts of a value's tree are malformed"),
        (tree(laws=np.ones((3, 2))), "does not fit"),
        (tree(laws=LEAVES[:2]), "does not fit"),
        (tree([0, -1, 1, -1], laws=LEAVES[:2]), "does not fit"),
        (tree([0, -1, -1, 1, -1]), "has nodes after its last leaf"),
        (tree([0, -1, -1, -1, -1]), "one cut for each inner node"),
        (tree(laws=[[0, 1, 1], [0, 1, -1], [0, 1, 1]]), "has weights outside of"),
        (tree(laws=[[0, 1, 1], [0, 1, 1], [0, 1, 1 + 2**-52]]), "has weights outside of"),
    ],
)
def test_forged_trees(part, reason):
    assert math.isfinite(sharing_bound(LUMPED, 0.0, proof(tree())))
    with pytest.raises(CertificateError, match=reason):
        sharing_bound(LUMPED, 0.0, proof(part))


def test_weights_are_from_zero_to_one():
    given = proof(tree(laws=[[0.0, 1.0, 1.0]] * 3))
    assert math.isfinite(sharing_bound(LUMPED, 0.0, given))


def test_blocks_are_for_multipliers_up_to_one():
    assert math.isfinite(sharing_bound(LUMPED, 0.0, proof(tree(), 1.0)))
    with pytest.raises(CertificateError, match="at most 1"):
        sharing_bound(LUMPED, 0.0, proof(tree(), 1.0 + 2.0**-52))


def test_masses_of_many_blocks_are_not_added_up(monkeypatch):
    monkeypatch.setattr(time_sharing, "GROUPS_LIMIT", 2)
    assert math.isfinite(sharing_bound(LUMPED, 0.0, proof(tree())))
    monkeypatch.setattr(time_sharing, "GROUPS_LIMIT", 1)
    with pytest.raises(CertificateError, match="at most 1 groups; found 2"):
        sharing_bound(LUMPED, 0.0, proof(tree()))


def test_blocks_of_probabilities_that_underflow_are_refused():
    small = law_boxes.LEAST_ENTRY / 4
    rows = [[1.0, small], *ROWS[1:]]
    lumped = Lumped(
        range(2), range(2), np.array([0, 0, 0, 1]), rows, [1, 3, 2, 2], [(g,) for g in range(4)]
    )
    with pytest.raises(CertificateError, match="too small for boxes"):
        sharing_bound(lumped, 0.0, proof(tree()))
