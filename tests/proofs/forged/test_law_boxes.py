"""Boxes of the laws of a value's contexts, made by hand: each bound against its formula."""

import itertools
import math

import numpy as np
import pytest
from cvxleak.proofs.bounds.law_boxes import GRID, box_bounds
from cvxleak.proofs.bounds.time_sharing import sharing_bound
from flint import arb
from scipy.special import rel_entr, xlogy

from cvxleak.core.errors import CertificateError
from cvxleak.exact import balls
from cvxleak.exact.packing import pack
from cvxleak.model import Lumped
from cvxleak.proofs.bounds import law_boxes, time_sharing

ROUNDOFF = law_boxes.UNIT_ROUNDOFF
SYMMETRIC = np.array([[0.9, 0.1], [0.1, 0.9]])
EVEN = np.log([0.5, 0.5])

pytestmark = pytest.mark.usefixtures("balls_of_the_checker")


def on_grid(x):
    return np.round(np.asarray(x) / GRID) * GRID


def narrowed(low, high):
    return (
        np.maximum(low, [1 - sum(np.delete(high, g)) for g in range(len(low))]),
        np.minimum(high, [1 - sum(np.delete(low, g)) for g in range(len(low))]),
    )


def vertices(low, high):
    """Return the vertices of a box and the simplex: all but one of the groups are at an end."""
    found = []
    for free in range(len(low)):
        others = [g for g in range(len(low)) if g != free]
        for chosen in itertools.product(*([low[g], high[g]] for g in others)):
            rest = 1 - sum(chosen)
            if low[free] - 1e-15 <= rest <= high[free] + 1e-15:
                vertex = np.empty(len(low))
                vertex[others], vertex[free] = chosen, rest
                found.append(vertex)
    return np.array(found)


def formula(rows, logs, logs_t, lam, box, leaf, u=0.0):
    """Return what the docstring of `law_boxes` says a leaf proves, and the sizes it is off by."""
    n, outputs = rows.shape
    low, high = narrowed(*box)
    corners = vertices(low, high)
    w = np.maximum(leaf[1:], 2.0**-100)
    eta, log_w, sizes = leaf[0], np.log(w), 1.0
    least = (corners @ rows).min(axis=0) * (1 - 2 * (n + 4) * u)
    most = (corners @ rows).max(axis=0) * (1 + 2 * (n + 4) * u)
    many = n * (1 + abs(logs).max() + abs(log_w).max())
    if eta == 0:
        s, offset = np.zeros(outputs), lam * (w.sum() - 1)
        for y, (l_y, u_y) in enumerate(zip(least, most, strict=True)):
            low_end, high_end = (xlogy(r, r) - r * logs_t[y] for r in (l_y, u_y))
            s[y] = (high_end - low_end) / (u_y - l_y) if u_y > l_y else 0.0
            offset += low_end - s[y] * l_y
            sizes += abs(s[y]) * (1 + l_y + u_y)
            for r in (l_y, u_y):
                sizes += r * (1 + abs(math.log(r) if r else 0) + abs(logs_t[y]))
        x = rows @ s + lam * (logs - log_w)
        sizes += lam * (many + w.sum())
    else:
        eta = max(eta, lam * (1 + 8 * u))
        r0 = w @ rows
        used = r0 > 0
        log_r = np.log(np.where(used, r0, 1.0))
        s = np.where(used, log_r - logs_t, 0.0)
        width = np.where(high > low, high - low, 1.0)
        k = (xlogy(high, high) - xlogy(low, low)) / width
        k = np.where(high > low, k, 0.0)
        x = rows @ s - eta * log_w + lam * logs + (eta - lam) * k
        missing = 1 - w.sum()
        offset = missing * (1 - eta) + 50 * missing**2
        offset += (eta - lam) * (xlogy(low, low) - k * low).sum()
        sizes += (1 + eta + 100 * abs(missing)) * (1 + w.sum())
        sizes += (abs(log_r) + abs(logs_t)).max() + abs(s).max()
        sizes += (eta + lam) * (many + n * (1 + abs(k).max()))
    value = offset + (corners @ x).max()
    # The best mu is the x of the group that the best vertex fills in part.
    order = np.argsort(-x)
    filled = np.cumsum((high - low)[order])
    mu = x[order[min(int((filled < 1 - low.sum()).sum()), n - 1)]]
    sizes += abs(mu) + (abs(x - mu) * high).sum()
    return value, 2 * (outputs + 3 * n + 60) * u * sizes


def problem(rng, n, outputs, zeros=False):
    rows = rng.dirichlet(np.full(outputs, 0.7), n)
    if zeros:
        rows *= rng.random(rows.shape) < 0.7
        rows[:, 0] += 0.1
        rows[:, -1] = 0.0
        rows /= rows.sum(axis=1, keepdims=True)
    t = rng.dirichlet(np.ones(outputs)) + 0.01
    return rows, np.log(rng.integers(1, 40, n)), np.log(t / t.sum())


def a_box(rng, n, width):
    center = rng.dirichlet(np.ones(n))
    low = on_grid(np.maximum(center - width * rng.random(n), 0))
    return low, on_grid(np.minimum(center + width * rng.random(n), 1)), center


def enough(rows, low, high, w):
    """Return an eta that is large enough, from the eigenvalues."""
    low, high = narrowed(low, high)
    q = np.minimum((vertices(low, high) @ rows).min(axis=0), w @ rows)
    h = np.sqrt(np.maximum(high, w))
    used = q > 0
    b = h[:, None] * rows[:, used] / np.sqrt(q[used])
    return float(np.linalg.eigvalsh(b @ b.T - 100 * np.outer(h, h))[-1])


def boxes(seed, zeros=False):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        n, outputs = int(rng.integers(2, 5)), int(rng.integers(2, 6))
        data = (*problem(rng, n, outputs, zeros), float(10 ** rng.uniform(-1.5, 0.3)))
        low, high, center = a_box(rng, n, 10 ** rng.uniform(-2, 0))
        # Nearly a distribution: what it lacks counts.
        w = rng.uniform(0.9, 1.1) * (center if rng.random() < 0.5 else rng.dirichlet(np.ones(n)))
        yield rng, data, (low, high), w


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("share", [0.0, 1.0, 2.0**23])
def test_leaves_prove_their_formulas(monkeypatch, share, zeros):
    monkeypatch.setattr(law_boxes, "CHUNK", 1)
    # With a larger unit roundoff what is allowed for rounding can be told from rounding.
    monkeypatch.setattr(law_boxes, "UNIT_ROUNDOFF", share * ROUNDOFF)
    kinds = [0, 0]
    for _, data, box, w in boxes(1, zeros):
        more = enough(data[0], *box, w)
        for eta in (0.0, 1e-9, 1.01 * more + 0.01, 2.0 + more):
            leaf = np.concatenate([[eta], w])
            (bound,) = box_bounds(*data, *(end[None] for end in box), leaf[None])
            if eta == 1e-9 and more > data[3]:
                assert math.isnan(bound)
                continue
            if not math.isfinite(more) or math.isnan(bound):
                assert eta > 0
                continue
            value, allowed = formula(*data, box, leaf, share * ROUNDOFF)
            assert bound == pytest.approx(value + allowed, abs=1e-4 * allowed + 1e-11)
            kinds[eta > 0] += 1
    assert kinds[0] == 20
    assert kinds[1] >= (10 if zeros else 40)


@pytest.mark.parametrize("zeros", [False, True])
def test_no_law_of_a_box_is_above_its_bound(zeros):
    above = []
    for rng, (rows, logs, logs_t, lam), (low, high), w in boxes(2, zeros):
        corners = vertices(*narrowed(low, high))
        laws = rng.dirichlet(np.full(len(corners), 0.3), 100) @ corners
        means = laws @ rows
        f = (xlogy(means, means) - means * logs_t).sum(axis=1)
        f += lam * (laws @ logs - xlogy(laws, laws).sum(axis=1))
        touching = laws[f.argmax()]
        for law in (w, touching):
            for eta in (0.0, lam, enough(rows, low, high, law) + 1e-9):
                leaf = np.concatenate([[eta], law])
                (bound,) = box_bounds(rows, logs, logs_t, lam, low[None], high[None], leaf[None])
                assert math.isnan(bound) or f.max() <= bound
                above.append(bound - f.max())
    assert np.nanmin(above) < 1e-5


def test_points_are_bounded_from_above_in_the_last_digits():
    for _, (rows, logs, logs_t, lam), (low, high, *_), _ in boxes(3):
        v = on_grid(0.5 * (low + high))
        v[0] = 1 - v[1:].sum()
        if v[0] < 0:
            continue
        exact = arb(0)
        for y, log_t in enumerate(logs_t):
            r = balls.dot(map(arb, v), map(arb, rows[:, y]))
            exact += r * (r.log() - arb(log_t))
        for x, m in zip(v, logs, strict=True):
            exact += arb(lam) * (arb(x) * arb(m) - balls.x_log_x(arb(x)))
        for eta in (0.0, 1.0):
            leaf = np.concatenate([[eta], v])
            (bound,) = box_bounds(rows, logs, logs_t, lam, v[None], v[None], leaf[None])
            assert exact < bound < exact + 1e-11


def test_the_curvature_has_to_be_as_claimed():
    """A binary symmetric channel brings laws near the uniform one together by (1 - 2 p)^2."""
    point = np.array([[0.5, 0.5]])
    for share, proved in ((1 - 1e-9, False), (1 + 1e-9, True)):
        leaf = np.array([[share * 0.64, 0.5, 0.5]])
        (bound,) = box_bounds(SYMMETRIC, np.zeros(2), EVEN, 0.5, point, point, leaf)
        assert math.isfinite(bound) == proved
        # A law elsewhere counts: all between has to be as concave.
        leaf = np.array([[share * 0.64, 0.25, 0.75]])
        (bound,) = box_bounds(SYMMETRIC, np.zeros(2), EVEN, 0.5, point, point, leaf)
        assert math.isnan(bound)


def test_what_rounding_may_do_to_the_curvature_is_taken_off(monkeypatch):
    u, point, half = 2.0**-20, np.array([[0.5, 0.5]]), [0.5, 0.5]
    monkeypatch.setattr(law_boxes, "UNIT_ROUNDOFF", u)
    # The eigenvalues of B B^T are 1 and .64, and the h of both groups add up to 1.
    for share, proved in ((0.999, False), (1.001, True)):
        eta = 0.64 + share * 2 * u * (2 + 8 + 40) * (2 * 0.65 + 100 + 1.64)
        leaf = np.array([[eta, *half]])
        (bound,) = box_bounds(SYMMETRIC, np.zeros(2), EVEN, 0.5, point, point, leaf)
        assert math.isfinite(bound) == proved


def test_a_box_without_laws_bounds_nothing():
    for low, high in (([0.5, 0.75], [1.0, 1.0]), ([0.0, 0.0], [0.5, 0.25])):
        box = np.array([low]), np.array([high])
        for eta in (0.0, 2.0):
            leaf = np.array([[eta, 1.0, 1.0]])
            assert box_bounds(SYMMETRIC, np.zeros(2), EVEN, 0.5, *box, leaf)[0] == -math.inf


def test_a_probability_of_zero_in_the_box_has_no_curvature():
    rows = np.array([[1.0, 0.0], [0.5, 0.5]])
    low, high = np.array([[0.0, 0.0]]), np.array([[1.0, 1.0]])
    assert math.isnan(
        box_bounds(rows, np.zeros(2), EVEN, 0.5, low, high, np.array([[9.0, 1.0, 1.0]]))[0]
    )
    assert math.isfinite(
        box_bounds(rows, np.zeros(2), EVEN, 0.5, low, high, np.array([[0.0, 0.5, 0.5]]))[0]
    )


# Trees


def lumped(rows, multiplicities=(1, 3, 2, 2)):
    index = np.array([0, 0, 1, 1])
    contexts = [(g,) for g in range(4)]
    return Lumped(range(2), range(len(rows[0])), index, rows, multiplicities, contexts)


ROWS = [[0.75, 0.25], [0.25, 0.75], [0.25, 0.75], [0.75, 0.25]]
PARITY = lumped(ROWS)
LAW = {"law": pack(np.array([0.5, 0.5]))}


def tree(groups=(0, -1, 1, -1, -1), cuts=(0.5, 0.25), leaves=None, **others):
    if leaves is None:
        leaves = [[0.0, 0.5, 0.5], [1.0, 0.75, 0.25], [0.0, 0.5, 0.25]]
    parts = {
        "groups": pack(np.array(groups), "<i4"),
        "cuts": pack(np.array(cuts, dtype=float)),
        "leaves": pack(np.array(leaves, dtype=float)),
    }
    return parts | others


def proof(part, lam=1.0):
    return {
        "outputs": [[0], [1]],
        "multiplier": lam,
        "output": pack(np.array([0.25, 0.75])),
        "values": [part, LAW],
    }


PARTS = [([0.0, 0.0], [0.5, 1.0]), ([0.5, 0.0], [1.0, 0.25]), ([0.5, 0.25], [1.0, 1.0])]
"""Where the cuts of `tree` lead."""


@pytest.mark.parametrize("dtype", ["<f8", "<f4"])
@pytest.mark.parametrize(
    ("groups", "cuts", "parts"),
    [
        ([0, -1, 1, -1, -1], [0.5, 0.25], PARTS),
        # A cut outside of the interval leaves it as it is, and a point.
        ([0, -1, 0, -1, -1], [0.5, 0.25], [PARTS[0], ([0.5, 0], [0.5, 1]), ([0.5, 0], [1, 1])]),
        ([0, 0, -1, -1, -1], [0.5, 0.75], [PARTS[0], ([0.5, 0], [0.5, 1]), ([0.5, 0], [1, 1])]),
    ],
)
def test_a_tree_is_as_good_as_its_worst_leaf(groups, cuts, parts, dtype):
    rows, logs, logs_t = np.array(ROWS[:2]), np.log([1, 3]), np.log([0.25, 0.75])
    for lam in (0.5, 1.0):
        # No law but (1/2, 1/2) is best, so that each leaf can be the worst.
        for leaves in itertools.permutations(
            [[0.0, 0.5, 0.5], [4.0, 0.75, 0.25], [0.0, 0.125, 0.75]]
        ):
            given = tree(groups, cuts, leaves)
            given["leaves"] = pack(np.array(leaves), dtype)
            both = zip(parts, np.array(leaves), strict=True)
            boxes = [((np.array(box[0]), np.array(box[1])), leaf) for box, leaf in both]
            phi = [formula(rows, logs, logs_t, lam, box, leaf)[0] for box, leaf in boxes]
            one = tree([-1], [], [[0.0, 0.5, 0.5]])
            other, whole = proof(given, lam), proof(one, lam)
            root = (np.zeros(2), np.ones(2))
            alone = formula(rows, logs, logs_t, lam, root, np.array([0.0, 0.5, 0.5]))[0]
            # exp(U / lam) is exp(phi_0 / lam) and the same for the other value, at floor 0.
            rest = math.exp(sharing_bound(PARITY, 0.0, whole) / lam) - math.exp(alone / lam)
            bound = lam * math.log(rest + math.exp(max(phi) / lam))
            assert sharing_bound(PARITY, 0.0, other) == pytest.approx(bound, abs=1e-10)


@pytest.mark.parametrize(
    ("part", "reason"),
    [
        (tree(note=1), "the bound of a value: expected the parts"),
        (tree([2, -1, 1, -1, -1]), "nodes of a value's tree are malformed"),
        (tree([0, -2, 1, -1, -1]), "nodes of a value's tree are malformed"),
        (tree([-1, 0, 1, -1, -1]), "has nodes after"),
        (tree(cuts=[0.0, 0.25]), "cuts of a value's tree are malformed"),
        (tree(cuts=[0.5, 1.0]), "cuts of a value's tree are malformed"),
        (tree(cuts=[-0.5, 0.25]), "cuts of a value's tree are malformed"),
        (tree(cuts=[0.5, 0.25 + GRID / 2]), "cuts of a value's tree are malformed"),
        (tree(leaves=np.ones((3, 2))), "does not fit"),
        (tree(leaves=np.ones((2, 3))), "does not fit"),
        (tree(leaves=[[0, 1, 1], [-1, 1, 1], [0, 1, 1]]), "a leaf of a value's tree is negative"),
        (tree(leaves=[[0, 1, 1], [0, 1, -1], [0, 1, 1]]), "a leaf of a value's tree is negative"),
        (tree(leaves=[[0, 1, 1], [0, 1, 1], [0.06, 0.5, 0.5]]), "do not bound it"),
    ],
)
def test_forged_trees(part, reason):
    assert math.isfinite(sharing_bound(PARITY, 0.0, proof(tree())))
    with pytest.raises(CertificateError, match=reason):
        sharing_bound(PARITY, 0.0, proof(part, 0.05 if "bound it" in reason else 1.0))


def test_one_grid_step_is_a_cut():
    sharing_bound(PARITY, 0.0, proof(tree(cuts=[0.5, 0.25 + GRID])))


def test_probabilities_that_underflow_are_refused():
    small = law_boxes.LEAST_ENTRY
    for least, fits in ((small, True), (0.0, True), (small / 4, False)):
        rows = [[1.0, least], [0.5, 0.5], *ROWS[2:]]
        given = proof(tree(leaves=[[0.0, 0.5, 0.5]] * 3))
        if fits:
            assert math.isfinite(sharing_bound(lumped(rows), 0.0, given))
        else:
            with pytest.raises(CertificateError, match="too small for boxes"):
                sharing_bound(lumped(rows), 0.0, given)


def test_the_ends_of_many_groups_are_not_added_up(monkeypatch):
    for most, fits in ((2, True), (1, False)):
        monkeypatch.setattr(time_sharing, "GROUPS_LIMIT", most)
        if fits:
            assert math.isfinite(sharing_bound(PARITY, 0.0, proof(tree())))
        else:
            with pytest.raises(CertificateError, match="at most 1 groups; found 2"):
                sharing_bound(PARITY, 0.0, proof(tree()))


def test_a_relative_entropy_is_what_rel_entr_says():
    # The formulas above against another way to write f, at a vertex.
    rows, logs, logs_t = np.array(ROWS[:2]), np.log([1, 3]), np.log([0.25, 0.75])
    leaf = np.array([0.0, 1.0, 2.0**-90])
    point = (np.array([1.0, 0.0]), np.array([1.0, 0.0]))
    value, _ = formula(rows, logs, logs_t, 0.5, point, leaf)
    assert value == pytest.approx(rel_entr(rows[0], [0.25, 0.75]).sum(), abs=1e-12)
