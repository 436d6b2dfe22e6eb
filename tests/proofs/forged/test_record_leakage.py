"""Forged certificates of record leakage: each guard, and each bound against its formula."""

import base64
import itertools
import math
import zlib
from fractions import Fraction

import numpy as np
import pytest
from cvxleak.proofs.bounds.cell_floats import _inequalities, leaf_bounds
from cvxleak.proofs.bounds.law_slabs import slabs_bound
from cvxleak.proofs.bounds.posterior_cells import Cell, CellProof, cells_bound
from cvxleak.proofs.bounds.symmetry import Symmetry, gains, largest_multiplicities, moved_groups
from cvxleak.proofs.bounds.time_sharing import sharing_bound
from cvxleak.proofs.bounds.whole_dataset import dataset_bound
from flint import arb, arb_mat
from scipy.special import logsumexp

from cvxleak.core.errors import CertificateError, CvxleakError
from cvxleak.exact.balls import mutual_information, number, precision
from cvxleak.exact.packing import declared_shape, pack, unpack
from cvxleak.model import Limits, Lumped, Mechanism
from cvxleak.proofs import record_leakage
from cvxleak.proofs.bounds import posterior_cells, tangents, time_sharing, trees, whole_dataset
from cvxleak.proofs.bounds.outputs import coarse_rows, merged_rows
from cvxleak.proofs.record_leakage import prove_upper, same_problem
from cvxleak.queries import count, from_table, parity
from tests.proofs.forging import (
    Parts,
    encloses,
    ends,
    proves_nothing_false,
    refused,
    tampered,
)

LOG_2 = math.log(2)
LEVEL = 0.13081203594113694
ROWS = [[0.75, 0.25], [0.25, 0.75]]

pytestmark = pytest.mark.usefixtures("balls_of_the_checker")


def lumped(index, rows, multiplicities):
    values, outputs = range(max(index) + 1), range(len(rows[0]))
    contexts = [(g,) for g in range(len(rows))]
    return Lumped(values, outputs, np.array(index), rows, multiplicities, contexts)


BINARY = lumped([0, 1], ROWS, [1, 1])
PARITY = lumped([0, 0, 1, 1], [*ROWS, *ROWS[::-1]], [1, 3, 2, 2])
WIDE = lumped(
    [0, 0, 1, 2, 2],
    [[0.5, 0.25, 0.25], [0.125, 0.5, 0.375], [0.25, 0.25, 0.5], [0.5, 0.0, 0.5], [0.0, 0.5, 0.5]],
    [1, 2, 5, 3, 1],
)
PROBLEMS = {"binary": BINARY, "parity": PARITY, "wide": WIDE}
RNG = np.random.default_rng(5)


def entropy(p):
    p = np.asarray(p, dtype=float)
    return -float(sum(x * math.log(x) for x in p.ravel() if x > 0))


def leakage(problem, w):
    """Return I(A;Y), and F(w)."""
    joint = np.zeros((len(problem.values), problem.rows.shape[1]))
    np.add.at(joint, problem.value_index, np.asarray(w)[:, None] * problem.rows)
    doubt = entropy(w) + float(np.dot(w, np.log(problem.multiplicities)))
    return entropy(joint.sum(axis=1)) + entropy(joint.sum(axis=0)) - entropy(joint), doubt


def soft(terms, scale):
    return max(terms) if scale == 0 else scale * logsumexp(np.array(terms) / scale)


def by_value(problem, c, lam):
    """Return phi_a = lam log sum m exp(c / lam) for each value."""
    logs = np.log(problem.multiplicities)
    of = [np.flatnonzero(problem.value_index == a) for a in range(len(problem.values))]
    return [soft(c[g] + lam * logs[g], lam) for g in of]


def limits_of(problem, bounds=(0.4, -0.1), shares=(0.0, 1.0)):
    rng = np.random.default_rng(len(problem.rows))
    return Limits(rng.integers(-4, 5, (2, len(problem.rows))) / 4, bounds, shares)


def singletons(problem):
    return [[y] for y in range(problem.rows.shape[1])]


def close(bound, formula):
    assert formula - 1e-15 * abs(formula) < bound < formula + 1e-10 * (1 + abs(formula))


def holds(problem, bound, floor, limits=None):
    """Make sure that no adversary learns more than a bound says."""
    for _ in range(200):
        w = RNG.dirichlet(np.full(len(problem.rows), 0.7))
        information, doubt = leakage(problem, w)
        if doubt < floor:
            continue
        if (
            limits is not None
            and (limits.coefficients @ w > limits.bounds + limits.shares * doubt).any()
        ):
            continue
        assert information <= bound + 1e-12


# Posterior cells


def tree(problem, depth, rng):
    """Return splits and cuts of a random tree in preorder, and its leaves as lists of vertices."""
    k, outputs = len(problem.values), problem.rows.shape[1]
    splits, cuts, leaves = [], [], []

    def grow(cells, left):
        if left == 0:
            splits.append([-1, -1, -1])
            leaves.append(cells)
            return
        y = int(rng.integers(outputs))
        i, j = (int(x) for x in rng.choice(k, 2, replace=False))
        t = float(rng.integers(1, 8)) / 8
        splits.append([y, i, j])
        cuts.append(t)
        point = (1 - t) * cells[y][i] + t * cells[y][j]
        for replaced in (j, i):
            part = cells[y].copy()
            part[replaced] = point
            grow([*cells[:y], part, *cells[y + 1 :]], left - 1)

    grow([np.eye(k)] * outputs, depth)
    return splits, cuts, leaves


def cells_formula(problem, floor, vertices, leaf, limits):
    k, outputs = len(problem.values), problem.rows.shape[1]
    lam, kappa = leaf[0], leaf[1 + outputs * k :]
    mu = leaf[1 : 1 + outputs * k].reshape(outputs, k)
    nu = [
        np.linalg.solve(v, m - [entropy(p) for p in v]) for v, m in zip(vertices, mu, strict=True)
    ]
    c = np.array(
        [
            sum(row[y] * nu[y][a] for y in range(outputs))
            for a, row in zip(problem.value_index, problem.rows, strict=True)
        ]
    )
    c = c - kappa @ limits.coefficients
    smooth = lam + kappa @ limits.shares
    value = soft(by_value(problem, c, smooth), 1 + smooth)
    return value + kappa @ limits.bounds - lam * floor


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("name", PROBLEMS)
def test_cells(name, limited):
    problem = PROBLEMS[name]
    limits = limits_of(problem) if limited else Limits.none(problem)
    rng = np.random.default_rng(3)
    width = 1 + problem.rows.shape[1] * len(problem.values)
    for floor in (0.0, 0.75):
        for depth in (0, 1, 3):
            splits, cuts, vertices = tree(problem, depth, rng)
            leaves = rng.integers(0, 5, (len(vertices), width)) / 8
            leaves[0, 0] = 0.0
            leaves = np.hstack(
                [leaves, rng.integers(0, 3, (len(vertices), len(limits.bounds))) / 4]
            )
            proof = {
                "outputs": singletons(problem),
                "splits": pack(np.array(splits).reshape(-1, 3), "<i4"),
                "cuts": pack(np.array(cuts)),
                "leaves": pack(leaves),
            }
            bound = cells_bound(problem, floor, proof, limits if limited else None)
            formula = max(
                cells_formula(problem, floor, v, leaf, limits)
                for v, leaf in zip(vertices, leaves, strict=True)
            )
            close(bound, formula)
            holds(problem, bound, floor, limits)
            # In balls each leaf has the value that floats have.
            prover = CellProof(problem, proof)
            if depth == 0 and not limited:
                (value,) = [prover.value(prover.root(), leaf.tolist()) for leaf in leaves]
                close(float(value), formula + leaves[0, 0] * floor)


def cells_proof(problem=BINARY, **changes):
    k, outputs = len(problem.values), problem.rows.shape[1]
    return {
        "outputs": singletons(problem),
        "splits": pack(np.array([[-1, -1, -1]]), "<i4"),
        "cuts": pack(np.zeros(0)),
        "leaves": pack(np.zeros((1, 1 + outputs * k))),
    } | changes


SPLIT = {
    "splits": pack(np.array([[0, 0, 1], [-1, -1, -1], [-1, -1, -1]]), "<i4"),
    "cuts": pack(np.array([0.5])),
    "leaves": pack(np.zeros((2, 5))),
}


def test_cells_are_rounded_up():
    """Without multipliers the whole simplex proves H(A) <= log k, and nothing is below it."""
    assert LOG_2 < cells_bound(BINARY, 0.0, cells_proof()) < LOG_2 + 1e-11
    assert arb(cells_bound(BINARY, 0.0, cells_proof())) > arb(2).log()
    # In balls too, where an allowance would be too dear.
    limits = Limits([[0.0, 0.0]], [1.0])
    proof = cells_proof(leaves=pack(np.zeros((1, 6))))
    assert arb(cells_bound(BINARY, 0.0, proof, limits)) > arb(2).log()


def changed(name, value):
    return cells_proof(**SPLIT) | {name: value}


def leaf(*entries):
    return pack(np.array([entries, [0.0] * 5]))


@pytest.mark.parametrize(
    ("proof", "reason"),
    [
        (
            changed("splits", pack(np.array([[2, 0, 1], [-1] * 3, [-1] * 3]), "<i4")),
            "names output 2",
        ),
        (changed("splits", pack(np.array([[0, 2, 1], [-1] * 3, [-1] * 3]), "<i4")), "edge 2-1"),
        (changed("splits", pack(np.array([[0, 0, 2], [-1] * 3, [-1] * 3]), "<i4")), "edge 0-2"),
        (changed("splits", pack(np.array([[0, -1, 1], [-1] * 3, [-1] * 3]), "<i4")), "edge -1-1"),
        (changed("splits", pack(np.array([[0, 0, -1], [-1] * 3, [-1] * 3]), "<i4")), "edge 0--1"),
        (
            changed("splits", pack(np.array([[0, 1, 1], [-1] * 3, [-1] * 3]), "<i4")),
            "covers nothing",
        ),
        (
            changed("splits", pack(np.array([[-1] * 3, [0, 0, 1], [-1] * 3]), "<i4")),
            "after its last",
        ),
        (changed("splits", pack(np.array([[-1] * 3] * 3), "<i4")), "one cut for each inner node"),
        (changed("cuts", pack(np.array([0.0]))), "covers nothing"),
        (changed("cuts", pack(np.array([1.0]))), "covers nothing"),
        (changed("cuts", pack(np.array([-0.5]))), "covers nothing"),
        (changed("leaves", leaf(0.0, -0.5, 0.0, 0.0, 0.0)), "a multiplier is negative"),
        (changed("leaves", leaf(0.0, 0.0, 0.0, 0.0, -0.5)), "a multiplier is negative"),
        (changed("leaves", leaf(-0.5, 0.0, 0.0, 0.0, 0.0)), "names no symmetry"),
        (changed("leaves", leaf(-1.0, 0.0, 0.0, 0.0, 0.0)), "names no symmetry"),
        (changed("leaves", leaf(-1.0, 0.5, 0.0, 0.0, 0.0)), "that of a superfluous leaf is not 0"),
        (changed("note", 1), "the cells: expected the parts"),
        (changed("outputs", [[0]]), "not a partition"),
        (changed("outputs", [[0], [1], [1]]), "not a partition"),
        (changed("outputs", [[0], [1], []]), "shape .* does not fit"),
    ],
)
def test_forged_cells(proof, reason):
    assert cells_bound(BINARY, 0.0, cells_proof(**SPLIT)) < 0.7
    with pytest.raises(CertificateError, match=reason):
        cells_bound(BINARY, 0.0, proof)


def test_the_allowance_of_floats_is_what_is_derived():
    """Twice (n + 25) S + (1 + lam) (240 + 8 N + 8 k + 20 M) roundings, and delta."""
    rng = np.random.default_rng(8)
    k, outputs, leaves = 3, 2, 4
    sizes = (1, 3, 2)
    columns = [rng.dirichlet(np.ones(outputs), n) for n in sizes]
    logs = [np.log(rng.integers(1, 50, n)) for n in sizes]
    charges = [rng.random(n) * 5 for n in sizes]
    vertices = rng.dirichlet(np.ones(k), (5, k))
    vertices[0] = np.eye(k)
    depths = rng.integers(0, 6, (5, k)).astype(float)
    places = rng.integers(0, 5, (leaves, outputs))
    places[0] = 0
    multipliers = rng.random((leaves, 1 + outputs * k)) * 3
    multipliers[0, 0] = 0.0
    multipliers[2, 1:] = 0.0
    values, allowances = leaf_bounds(columns, logs, charges, vertices, depths, places, multipliers)
    u = 2.0**-53
    for row in range(leaves):
        lam, mu = multipliers[row, 0], multipliers[row, 1:].reshape(outputs, k)
        nus, delta = [], 0.0
        for y in range(outputs):
            v, depth = vertices[places[row, y]], depths[places[row, y]]
            logs_v = np.log(np.where(v > 0, v, 1.0))
            h = (v * logs_v).sum(axis=1)
            nu = np.linalg.solve(v, h + mu[y])
            extent = np.abs(v * logs_v).sum(axis=1) + 1.2 * v.sum(axis=1)
            extent += np.abs(v * nu).sum(axis=1)
            # -H(V) - <V, nu> = -mu, but for rounding.
            missing = -mu[y] + 2 * (4 * depth + k + 10) * u * extent
            delta = max(delta, missing.max())
            nus.append(nu)
        nu = np.array(nus)
        largest = 1 + np.abs(nu).max() + max(charge.max() for charge in charges)
        most = max(log.max() for log in logs)
        allowance = (outputs + 25) * largest
        allowance += (1 + lam) * (240 + 8 * (max(sizes) + k) + 20 * most)
        # -H(V) - <V, nu> is itself off by rounding, where delta is not 0.
        near = 2e-2 if delta else 1e-9
        assert allowances[row] == pytest.approx(2 * u * allowance + delta, rel=near, abs=0)
        phi = []
        for a in range(k):
            c = charges[a] + columns[a] @ nu[:, a]
            phi.append(max(c) if lam == 0 else lam * logsumexp(c / lam + logs[a]))
        value = (1 + lam) * logsumexp(np.array(phi) / (1 + lam))
        assert values[row] - allowances[row] == pytest.approx(value, abs=1e-11)
    # A vertex that is off by an unknown factor proves nothing.
    depths[0, 0] = math.inf
    assert not np.isfinite(
        leaf_bounds(columns, logs, charges, vertices, depths, places, multipliers)[1][0]
    )


def test_delta_is_what_inequalities_miss():
    """At least -H(V) - <V, nu> of each vertex, whatever rounding does to it."""
    k = 16
    vertices = np.random.default_rng(4).dirichlet(np.ones(k), (6, k))
    nu, delta = _inequalities(vertices, np.zeros((6, k)), np.arange(6)[:, None], np.zeros((6, k)))
    for cell, slopes, missed in zip(vertices.tolist(), nu[:, 0].tolist(), delta, strict=True):
        for vertex in cell:
            dot = sum((arb(p) * n for p, n in zip(vertex, slopes, strict=True)), arb(0))
            height = sum((arb(p) * arb(p).log() for p in vertex), arb(0))
            assert height - dot <= arb(missed)


def test_vertices_know_how_many_splits_made_them():
    root = Cell.whole(3)
    assert root.depths == [0.0, 0.0, 0.0]
    first, second = root.split(0, 1, 0.25)
    assert first.floats == [[1, 0, 0], [0.75, 0.25, 0], [0, 0, 1]]
    assert second.floats == [[0.75, 0.25, 0], [0, 1, 0], [0, 0, 1]]
    assert (first.depths, second.depths) == ([0, 1, 0], [1, 0, 0])
    assert first.split(0, 1, 0.5)[0].depths == [0, 2, 0]
    assert first.split(1, 2, 0.5)[1].depths == [0, 2, 0]
    for i, j, t in ((0, 1, 2.0**-950), (1, 0, 2.0**-950)):
        assert math.inf in root.split(i, j, t)[0].depths
    assert math.inf not in root.split(0, 1, 2.0**-800)[0].depths
    # Also an entry of the first end alone becomes too small: 2^-53 of itself each time.
    thin = [root]
    for _ in range(17):
        thin.append(thin[-1].split(0, 1, 1 - 2.0**-53)[1])
    assert [cell.floats[0][0] for cell in thin] == [2.0 ** (-53 * n) for n in range(18)]
    assert [cell.depths[0] for cell in thin] == [*range(17), math.inf]
    # In balls they are the same.
    for cell in (root, first, second, *first.split(2, 1, 0.125)):
        assert [[float(x) for x in row] for row in cell.vertices] == cell.floats


@pytest.mark.parametrize("chunk", [1, 1 << 19])
def test_leaves_that_floats_do_not_decide_are_proved_in_balls(monkeypatch, chunk):
    monkeypatch.setattr(posterior_cells, "CHUNK", chunk)
    splits, cuts, vertices = tree(PARITY, 3, np.random.default_rng(9))
    none = Limits.none(PARITY)
    for large in range(len(vertices)):
        leaves = np.zeros((len(vertices), 5))
        leaves[:, 1:] = np.arange(len(vertices))[:, None] / 64
        leaves[large, 1:] = [1e5, 0.0, 0.0, 0.0]
        proof = {
            "outputs": [[0], [1]],
            "splits": pack(np.array(splits), "<i4"),
            "cuts": pack(np.array(cuts)),
            "leaves": pack(leaves),
        }
        formula = [
            cells_formula(PARITY, 0.0, v, leaf, none)
            for v, leaf in zip(vertices, leaves, strict=True)
        ]
        assert cells_bound(PARITY, 0.0, proof) == pytest.approx(max(formula), rel=1e-12)


def test_slabs_and_values_have_trees_that_end(monkeypatch):
    monkeypatch.setattr(trees, "DEPTH_LIMIT", 2)
    row = [0.0, 0.5, *[0.0] * 6]
    deep = slabs_proof(
        nodes=pack(np.array([0, 1, -1, -1, -1]), "<i4"),
        cuts=pack(np.array([0.5, 0.5])),
        leaves=pack(np.array([row] * 3)),
    )
    with pytest.raises(CertificateError, match="too deep"):
        slabs_bound(PARITY, 0.0, deep)
    values = [value_tree([0, 1, -1, -1, -1], [0.5, 0.5], np.zeros((3, 2)))] * 2
    sharing = sharing_proof(PARITY, 1.0, [0.5, 0.5], LAWS["parity"]) | {"values": values}
    with pytest.raises(CertificateError, match="too deep"):
        sharing_bound(PARITY, 0.0, sharing)
    assert slabs_bound(PARITY, 0.0, slabs_proof()) < 1.3
    one = [value_tree([0, -1, -1], [0.5], np.zeros((2, 2)))] * 2
    assert sharing_bound(PARITY, 0.0, {**sharing, "values": one}) < 3
    monkeypatch.setattr(trees, "DEPTH_LIMIT", 3)
    assert slabs_bound(PARITY, 0.0, deep) < 1.3
    assert sharing_bound(PARITY, 0.0, sharing) < 3


def test_a_tree_that_only_goes_down_ends_at_the_limit(monkeypatch):
    assert trees.DEPTH_LIMIT == 10_000
    monkeypatch.setattr(trees, "DEPTH_LIMIT", 2)
    deep = cells_proof(
        splits=pack(np.array([[0, 0, 1], [0, 0, 1], [-1] * 3, [-1] * 3, [-1] * 3]), "<i4"),
        cuts=pack(np.array([0.5, 0.5])),
        leaves=pack(np.zeros((3, 5))),
    )
    with pytest.raises(CertificateError, match="too deep"):
        cells_bound(BINARY, 0.0, deep)
    assert cells_bound(BINARY, 0.0, cells_proof(**SPLIT)) < 0.7
    monkeypatch.setattr(trees, "DEPTH_LIMIT", 3)
    assert cells_bound(BINARY, 0.0, deep) < 0.7


# Symmetries of cells

MIRROR = Symmetry((1, 0), (1, 0))


def mirrored(**changes):
    """Split output 1 at 1/2; of the half with more of value 0, the mirror image is better."""
    return (
        cells_proof()
        | {
            "splits": pack(np.array([[1, 0, 1], [-1, -1, -1], [-1, -1, -1]]), "<i4"),
            "cuts": pack(np.array([0.5])),
            "leaves": pack(np.zeros((2, 5))),
            "symmetries": pack(np.array([[1, 0, 1, 0]]), "<i4"),
        }
        | changes
    )


def test_symmetries_of_rows():
    assert moved_groups(BINARY, MIRROR).tolist() == [1, 0]
    assert moved_groups(PARITY, MIRROR).tolist() == [2, 3, 0, 1]
    for values, outputs in [
        ((0, 1), (1, 0)),
        ((1, 0), (0, 1)),
        ((0, 0), (0, 1)),
        ((-1, 0), (0, 1)),
        ((1, 0), (1, 1)),
        ((0, 1), (0, 0)),
        ((0, 1), (-1, 0)),
        ((1, 0, 2), (1, 0)),
        ((1, 0), (1, 0, 2)),
    ]:
        assert moved_groups(BINARY, Symmetry(values, outputs)) is None
    move = moved_groups(PARITY, MIRROR)
    assert largest_multiplicities(PARITY, [move]) == (2, 3, 2, 3)
    turn = np.array([1, 2, 0])
    three = lumped([0, 1, 2], [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [0.25, 0.25, 0.5]], [1, 2, 3])
    assert largest_multiplicities(three, [turn]) == (3, 3, 3)
    # T(rho) = sum (|Y| - y) a rho_y(a): what a symmetry takes off it.
    (gain,) = gains([MIRROR], 2, 2)
    rho = np.array([[0.25, 0.75], [0.5, 0.5]])
    moved = np.empty_like(rho)
    for y in range(2):
        for a in range(2):
            moved[1 - y, 1 - a] = rho[y, a]
    order = np.array([[0.0, 2.0], [0.0, 1.0]])
    assert (gain * rho).sum() == pytest.approx((order * (rho - moved)).sum(), abs=1e-15)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"symmetries": pack(np.array([[0, 1, 1, 0]]), "<i4")}, "is not a symmetry of the rows"),
        # It would take from T whatever output 1 adds to it, everywhere.
        ({"symmetries": pack(np.array([[0, 1, 0, 0]]), "<i4")}, "is not a symmetry of the rows"),
        ({"symmetries": pack(np.array([[1.0, 0.0, 1.0, 0.0]]))}, "do not fit the lumped problem"),
        ({"symmetries": pack(np.array([[1, 0, 1, 0]]), "<f4")}, "do not fit the lumped problem"),
        ({"symmetries": pack(np.array([1, 0, 1, 0]), "<i4")}, "too many symmetries"),
        ({"symmetries": pack(np.array([[1, 0, 1]]), "<i4")}, "does not fit"),
        ({"outputs": [[1], [0]]}, "in their original order"),
        ({"outputs": [[0, 1]]}, "cannot be combined with limits or merged|not proportional"),
        ({"leaves": pack(np.array([[-2.0, 0, 0, 0, 0], [0.0] * 5]))}, "names no symmetry"),
        (
            {"leaves": pack(np.array([[-1.0, 0, 0, 0, 0], [-1.0, 0, 0, 0, 0]]))},
            "superfluous is",
        ),
        ({"leaves": pack(np.array([[-1.5, 0, 0, 0, 0], [0.0] * 5]))}, "names no symmetry"),
    ],
)
def test_forged_symmetries(changes, reason):
    with pytest.raises(CertificateError, match=reason):
        cells_bound(BINARY, 0.0, mirrored(**changes))


def test_symmetries_go_without_limits():
    with pytest.raises(CertificateError, match="cannot be combined with limits or merged"):
        cells_bound(
            BINARY, 0.0, mirrored(leaves=pack(np.zeros((2, 6)))), Limits([[0.0, 0.0]], [1.0])
        )


def test_what_is_superfluous_is_so_everywhere():
    """T falls short of its image's in a region, strictly, or the region has to be bounded."""
    prover = CellProof(BINARY, mirrored())
    (gain,) = gains([MIRROR], 2, 2)
    root = prover.root()
    for y, cut in ((0, 0.25), (0, 0.5), (0, 0.75), (1, 0.25), (1, 0.75)):
        for other in (0.25, 0.5, 0.75):
            for first in root[y].split(0, 1, cut):
                for second in root[1 - y].split(0, 1, other):
                    cells = [first, second] if y == 0 else [second, first]
                    most = sum(
                        max(float(np.dot(v, g)) for v in cell.floats)
                        for cell, g in zip(cells, gain, strict=True)
                    )
                    try:
                        prover.check_superfluous(cells, 0)
                    except CertificateError:
                        assert most >= 0
                    else:
                        assert most < 0
    # With other multiplicities the largest of those that are moved onto one another count.
    proof = mirrored(leaves=pack(np.array([[2.0, 0, 0, 0, 0]] * 2)))
    both = cells_bound(lumped([0, 1], ROWS, [64, 64]), 0.0, proof)
    assert cells_bound(lumped([0, 1], ROWS, [1, 64]), 0.0, proof) == both
    # The second of two symmetries is named by -2.
    two = mirrored(
        symmetries=pack(np.array([[1, 0, 1, 0], [0, 1, 0, 1]]), "<i4"),
        leaves=pack(np.array([[-2.0, 0, 0, 0, 0], [0.0] * 5])),
    )
    with pytest.raises(CertificateError, match="superfluous is needed"):
        cells_bound(BINARY, 0.0, two)


def test_as_many_symmetries_are_checked_as_is_said(monkeypatch):
    monkeypatch.setattr(posterior_cells, "SYMMETRY_LIMIT", 4)
    assert cells_bound(BINARY, 0.0, mirrored()) < 0.7
    monkeypatch.setattr(posterior_cells, "SYMMETRY_LIMIT", 3)
    with pytest.raises(CertificateError, match="too many symmetries"):
        cells_bound(BINARY, 0.0, mirrored())


# Slabs


def slabs_formula(problem, floor, leaf, limits):
    outputs, size = problem.rows.shape[1], len(problem.rows)
    lam, q = leaf[:2]
    tau, nu = leaf[2 : 2 + outputs], leaf[2 + outputs : 2 + outputs + size]
    kappa = leaf[2 + outputs + size :]
    c = nu - problem.rows @ tau - kappa @ limits.coefficients
    smooth = lam + kappa @ limits.shares
    value = soft(by_value(problem, c, smooth), 1 - q + smooth)
    return value + q * (np.exp(tau / q).sum() - 1) + kappa @ limits.bounds - lam * floor


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("name", PROBLEMS)
def test_slabs(name, limited):
    problem = PROBLEMS[name]
    limits = limits_of(problem) if limited else Limits.none(problem)
    rng = np.random.default_rng(4)
    size, outputs = len(problem.rows), problem.rows.shape[1]
    for floor in (0.0, 0.75):
        for lam in (0.0, 0.5):
            leaves = []
            for _ in range(2):
                q = 0.5
                tau = rng.normal(size=outputs) / 2 - 0.5
                nu = np.zeros(size)  # <P, nu> >= -q H(P R)
                kappa = rng.integers(0, 3, len(limits.bounds)) / 4
                leaves.append([lam, q, *tau, *nu, *kappa])
            proof = {
                "outputs": singletons(problem),
                "functional": pack(rng.integers(0, 4, size) / 4),
                "nodes": pack(np.array([0, -1, -1]), "<i4"),
                "cuts": pack(np.array([0.375])),
                "leaves": pack(np.array(leaves)),
            }
            bound = slabs_bound(problem, floor, proof, limits if limited else None)
            formula = max(slabs_formula(problem, floor, np.array(x), limits) for x in leaves)
            close(bound, formula)
            holds(problem, bound, floor, limits)


def slabs_proof(nu=(0.0, 0.0, 0.0, 0.0), *, cut=0.5, functional=(0.0, 1.0, 0.0, 1.0), **changes):
    row = [0.0, 0.5, 0.0, 0.0, *nu]
    return {
        "outputs": [[0], [1]],
        "functional": pack(np.array(functional)),
        "nodes": pack(np.array([0, -1, -1]), "<i4"),
        "cuts": pack(np.array([cut])),
        "leaves": pack(np.array([row, row])),
    } | changes


def slab_leaf(*entries):
    return pack(np.array([entries, [0.0, 0.5, *[0.0] * 6]]))


@pytest.mark.parametrize(
    ("proof", "reason"),
    [
        (slabs_proof((-0.6, 0.0, 0.0, 0.0)), "too small at a group"),
        (slabs_proof((0.0, -0.6, 0.0, 0.0)), "too small at a group"),
        (slabs_proof((0.0, 0.0, 0.0, -0.6)), "too small at a group"),
        # At the cut both groups of value 0 mix to the even law, where -q H = -q log 2.
        (slabs_proof((0.5, -1.2, 0.0, 0.0), cut=0.5), "too small at"),
        (slabs_proof(leaves=slab_leaf(-0.5, 0.5, *[0.0] * 6)), "lam < 0, or q outside"),
        (slabs_proof(leaves=slab_leaf(0.0, 0.0, *[0.0] * 6)), "lam < 0, or q outside"),
        (slabs_proof(leaves=slab_leaf(0.0, 1.0, *[0.0] * 6)), "lam < 0, or q outside"),
        (slabs_proof(leaves=slab_leaf(0.0, -0.5, *[0.0] * 6)), "lam < 0, or q outside"),
        (slabs_proof(functional=(math.nan, 0.0, 0.0, 0.0)), "functional does not fit"),
        (slabs_proof(functional=(0.0, 0.0, 0.0)), "does not fit"),
        (slabs_proof(nodes=pack(np.array([2, -1, -1]), "<i4")), "a cut names value 2"),
        (slabs_proof(nodes=pack(np.array([-1, 0, -1]), "<i4")), "after its last leaf"),
        (slabs_proof(note=1), "the slabs: expected the parts"),
    ],
)
def test_forged_slabs(proof, reason):
    assert slabs_bound(PARITY, 0.0, slabs_proof()) < 1.3
    with pytest.raises(CertificateError, match=reason):
        slabs_bound(PARITY, 0.0, proof)


def test_limits_of_slabs_have_prices_that_are_not_negative():
    row = [0.0, 0.5, *[0.0] * 6, -0.25]
    proof = slabs_proof(leaves=pack(np.array([row, row])))
    with pytest.raises(CertificateError, match="kappa < 0"):
        slabs_bound(PARITY, 0.0, proof, Limits([[1.0] * 4], [0.5]))


def test_vertices_of_slabs_are_mixtures_of_two_groups():
    """nu may be too small at a group outside of a slab, as long as it is not at the slab's ends."""
    even = 0.5 * LOG_2  # q H of the even law
    low = 0.5 * 0.5623351446188083  # q H of the rows
    for nu in (-low + 1e-9, -0.3 * low):
        # Below the cut group 0 is a vertex, and the even mixture of 0 and 1; group 1 is not.
        other = -2 * even - nu
        for more, fine in ((1e-9, True), (-1e-6, False)):
            values = (nu, other + more, 0.0, 0.0)
            row, whole = [0.0, 0.5, 0.0, 0.0, *values], [0.0, 0.5, *[0.0] * 6]
            # The first part is the one below the cut.
            proof = slabs_proof(leaves=pack(np.array([whole, row])))
            turned = slabs_proof(leaves=pack(np.array([row, whole])))
            results = []
            for one in (proof, turned):
                try:
                    results.append(slabs_bound(PARITY, 0.0, one))
                except CertificateError:
                    results.append(None)
            assert (sum(result is not None for result in results) == 1) is fine


def test_groups_on_a_cut_and_mixtures_of_any_two():
    """A group whose x is the cut is a vertex of both parts; mixtures lie where x's mean says."""
    three = lumped([0, 0, 0, 1], [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75], [0.25, 0.75]], [1] * 4)
    whole = [0.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    for place, functional in ((0, (1, 0, 2, 0)), (1, (0, 1, 2, 0)), (2, (2, 0, 1, 0))):
        nu = [0.0] * 4
        nu[place] = -0.4
        row = [0.0, 0.5, 0.0, 0.0, *nu]
        for rows in ([row, whole], [whole, row]):
            proof = slabs_proof(
                functional=np.array(functional, dtype=float), cut=1.0, leaves=pack(np.array(rows))
            )
            with pytest.raises(CertificateError, match="too small at a group"):
                slabs_bound(three, 0.0, proof)
    # The mixture of groups 0 and 2 at x = 2 of [1, 5] has three quarters of group 0.
    wide = lumped([0, 0, 1], [[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], [1] * 3)
    q_h = 0.5 * 0.5623351446188083
    for more, fine in ((1e-9, True), (-1e-9, False)):
        row = [0.0, 0.5, 0.0, 0.0, 0.0, (-q_h + more) / 0.25, 0.0]
        proof = slabs_proof(
            functional=(1.0, 5.0, 0.0),
            cut=2.0,
            leaves=pack(np.array([row, [0.0, 0.5, *[0.0] * 5]])),
        )
        if fine:
            assert math.isfinite(slabs_bound(wide, 0.0, proof))
        else:
            with pytest.raises(CertificateError, match="too small at a vertex"):
                slabs_bound(wide, 0.0, proof)


def test_cuts_of_slabs_are_used_in_their_order():
    """Value 1 is cut at 1/4, 1/2 and 3/4, and nu is too small from there on."""
    row, whole = [0.0, 0.5, *[0.0] * 6], [0.0, 0.5, *[0.0] * 6]
    row[2 + 2 + 3] = -0.5  # too small for group 3, and for the mixture at 3/4
    nodes = pack(np.array([1, -1, 1, -1, 1, -1, -1]), "<i4")
    for place in range(4):
        leaves = [list(whole) for _ in range(4)]
        leaves[place] = list(row)
        proof = slabs_proof(
            nodes=nodes, cuts=pack(np.array([0.25, 0.5, 0.75])), leaves=pack(np.array(leaves))
        )
        try:
            slabs_bound(PARITY, 0.0, proof)
        except CertificateError as error:
            found = str(error)
        else:
            found = "fine"
        # The mixture at c has the share c of group 3: c nu >= -q H(mixture) fails at 3/4.
        ends = [(None, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, None)][place]
        fails = ends[1] is None or any(
            end is not None
            and -0.5 * end < -0.5 * entropy((1 - end) * PARITY.rows[2] + end * PARITY.rows[3])
            for end in ends
        )
        assert (found != "fine") is fails


def test_slabs_and_sharing_are_rounded_up_and_pay_for_mergers():
    bound = slabs_bound(
        BINARY,
        0.0,
        slabs_proof(
            (0.0, 0.0),
            functional=(0.0, 0.0),
            leaves=pack(np.array([[0.0, 0.5, 0.0, 0.0, 0.0, 0.0]] * 2)),
        ),
    )
    with precision(300):
        assert arb(bound) > arb(2).log() / 2 + arb("0.5")
    merged = lumped([0, 1], [[0.375, 0.375, 0.25], [0.125, 0.125, 0.75]], [1, 1])
    costly = lumped([0, 1], [[0.25, 0.5, 0.25], [0.125, 0.125, 0.75]], [1, 1])
    for problem, slack in ((merged, 0.0), (costly, math.log(1.5))):
        sharing = sharing_proof(BINARY, 1.0, [0.5, 0.5], LAWS["binary"])
        sharing["outputs"] = [[0, 1], [2]]
        assert sharing_bound(problem, 0.0, sharing) == pytest.approx(
            sharing_bound(BINARY, 0.0, sharing_proof(BINARY, 1.0, [0.5, 0.5], LAWS["binary"]))
            + slack,
            abs=1e-12,
        )
        slabs = slabs_proof(
            (0.0, 0.0),
            functional=(0.0, 0.0),
            outputs=[[0, 1], [2]],
            leaves=pack(np.array([[0.0, 0.5, 0.0, 0.0, 0.0, 0.0]] * 2)),
        )
        assert slabs_bound(problem, 0.0, slabs) == pytest.approx(bound + slack, abs=1e-12)
    exact_bound = sharing_bound(BINARY, 0.0, sharing_proof(BINARY, 1.0, [0.5, 0.5], LAWS["binary"]))
    with precision(300):
        quarter, rest = arb("0.25"), arb("0.75")
        assert arb(exact_bound) > 2 * arb(2).log() + quarter * quarter.log() + rest * rest.log()


# Time sharing


def sharing_formula(problem, floor, lam, t, laws):
    logs = np.log(problem.multiplicities)
    phi = []
    for a, v in enumerate(laws):
        g = np.flatnonzero(problem.value_index == a)
        rows = problem.rows[g]
        roots = np.sqrt(rows)
        eta = 1 - (roots @ roots.T).min() ** 2
        mean = v @ rows
        used = mean > 0
        slopes = np.where(used, np.log(np.where(used, mean, 1.0)) - np.log(t), 0.0)
        terms = rows @ slopes + eta * (logs[g] - np.log(v))
        left = lam - eta
        phi.append(soft(terms + left * logs[g], left))
    return soft(phi, lam) - lam * floor


def sharing_proof(problem, lam, t, laws):
    return {
        "outputs": singletons(problem),
        "multiplier": lam,
        "output": pack(np.array(t)),
        "values": [{"law": pack(np.array(law))} for law in laws],
    }


LAWS = {
    "binary": [[1.0], [1.0]],
    "parity": [[0.25, 0.75], [0.5, 0.5]],
    "wide": [[0.25, 0.75], [1.0], [0.5, 0.5]],
}


@pytest.fixture(params=["balls", "floats"])
def arithmetic(request, monkeypatch):
    """Tangents of few probabilities are proved in balls, those of many in floats."""
    if request.param == "floats":
        monkeypatch.setattr(time_sharing, "BALLS_LIMIT", 0)


@pytest.mark.usefixtures("arithmetic")
@pytest.mark.parametrize("name", PROBLEMS)
def test_sharing_by_tangents(name):
    problem, laws = PROBLEMS[name], [np.array(law) for law in LAWS[name]]
    t = np.array([0.25, 0.75] if problem.rows.shape[1] == 2 else [0.25, 0.5, 0.25])
    for lam in (1.0, 1.5):
        for floor in (0.0, 1.0):
            bound = sharing_bound(problem, floor, sharing_proof(problem, lam, t, laws))
            close(bound, sharing_formula(problem, floor, lam, t, laws))
            holds(problem, bound, floor)


@pytest.mark.usefixtures("arithmetic")
def test_laws_of_sharing_need_not_sum_to_one():
    laws = LAWS["parity"]
    bound = sharing_bound(PARITY, 1.0, sharing_proof(PARITY, 1.5, [0.25, 0.75], laws))
    halves = [[0.5 * x for x in laws[0]], laws[1]]
    for t, others in (([0.25, 0.75], halves), ([0.0625, 0.1875], laws)):
        close(sharing_bound(PARITY, 1.0, sharing_proof(PARITY, 1.5, t, others)), bound)


@pytest.mark.usefixtures("arithmetic")
def test_the_contraction_of_many_rows_is_one(monkeypatch):
    proof = sharing_proof(PARITY, 1.0, [0.5, 0.5], LAWS["parity"])
    bound = sharing_bound(PARITY, 1.0, proof)
    for module in (tangents, time_sharing):
        monkeypatch.setattr(module, "PAIRS_LIMIT", 4)
    assert sharing_bound(PARITY, 1.0, proof) == bound
    for module in (tangents, time_sharing):
        monkeypatch.setattr(module, "PAIRS_LIMIT", 3)
    assert sharing_bound(PARITY, 1.0, proof) > bound + 0.01


def test_a_mean_that_may_be_zero_proves_nothing(monkeypatch):
    """Of a mean whose ball touches 0 no logarithm is known, and 0 is none of its bounds."""
    monkeypatch.setattr(time_sharing, "PAIRS_LIMIT", 0)

    def by_tangent(first):
        t = np.array([0.5, 0.5])
        value = time_sharing._Value([[first, arb(1)]], [arb(0)], arb(1), t)
        return value.by_tangent({"law": pack(np.ones(1))})

    assert by_tangent(arb(0)).overlaps(arb(2).log())
    around = arb(0, 1e-30)
    # A ball that ends in 0, as a product too.
    touching = around + (arb_mat([[1]]) * arb_mat([[around]]))[0, 0].rad()
    for mean in (around, touching):
        with pytest.raises(CertificateError, match="probability that is too small"):
            by_tangent(mean)


def test_what_is_proved_in_balls_and_in_floats(monkeypatch):
    """The probabilities that are counted are all of them, and the limit is among the few."""
    proof = sharing_proof(PARITY, 1.5, [0.25, 0.75], LAWS["parity"])
    exact = sharing_bound(PARITY, 1.0, proof)
    monkeypatch.setattr(time_sharing, "BALLS_LIMIT", PARITY.rows.size)
    assert sharing_bound(PARITY, 1.0, proof) == exact
    monkeypatch.setattr(time_sharing, "BALLS_LIMIT", PARITY.rows.size - 1)
    assert exact < sharing_bound(PARITY, 1.0, proof) < exact + 1e-12


def value_tree(nodes, cuts, leaves):
    return {
        "nodes": pack(np.array(nodes), "<i4"),
        "cuts": pack(np.array(cuts, dtype=float)),
        "leaves": pack(np.array(leaves, dtype=float)),
    }


def tree_formula(problem, lam, t, a, intervals, leaves):
    g = np.flatnonzero(problem.value_index == a)
    rows, logs = problem.rows[g], np.log(problem.multiplicities)[g]
    worst = -math.inf
    for interval, nu in zip(intervals, leaves, strict=True):
        total = soft(rows @ nu + lam * logs, lam)
        for y, (low, high) in enumerate(interval):
            total += max(
                (r * math.log(r) if r else 0.0) - r * math.log(t[y]) - nu[y] * r
                for r in (low, high)
            )
        worst = max(worst, total)
    return worst


def test_sharing_is_rounded_up():
    # One value of one row: phi = D(R || t), by a tree in balls, without any allowance.
    problem = lumped([0], [[0.75, 0.25]], [1])
    leaf = value_tree([-1], [], [[0.0, 0.0]])
    bound = sharing_bound(
        problem, 0.0, sharing_proof(problem, 1.0, [0.5, 0.5], []) | {"values": [leaf]}
    )
    with precision(300):
        exact = arb("0.75") * arb("1.5").log() + arb("0.25") * arb("0.5").log()
        assert arb(bound) > exact
        assert arb(bound) < exact + 1e-15


def test_sharing_by_trees():
    rng = np.random.default_rng(6)
    t = [0.25, 0.75]
    for lam in (0.25, 1.0):
        leaves = rng.normal(size=(3, 2))
        nodes, cuts = [0, -1, 1, -1, -1], [0.5, 0.375]
        ranges = [(0.25, 0.75), (0.25, 0.75)]
        # The part above a cut comes second on the stack, and so the part below it first.
        below = [(0.25, 0.5), ranges[1]]
        above = [[(0.5, 0.75), (0.25, 0.375)], [(0.5, 0.75), (0.375, 0.75)]]
        formula = tree_formula(PARITY, lam, t, 0, [below, *above], leaves)
        parts = [value_tree(nodes, cuts, leaves), value_tree([-1], [], [[0.0, 0.0]])]
        proof = sharing_proof(PARITY, lam, t, LAWS["parity"]) | {"values": parts}
        whole = tree_formula(PARITY, lam, t, 1, [ranges], [np.zeros(2)])
        for floor in (0.0, 1.0):
            bound = sharing_bound(PARITY, floor, proof)
            close(bound, soft([formula, whole], lam) - lam * floor)
            holds(PARITY, bound, floor)


@pytest.mark.parametrize("seed", range(4))
def test_cuts_of_a_value_are_used_in_their_order(seed):
    rng = np.random.default_rng(seed)
    t, lam, leaves = [0.25, 0.75], 0.5, 4 * rng.normal(size=(4, 2))
    parts = [
        value_tree([0, -1, 0, -1, 0, -1, -1], [0.375, 0.5, 0.625], leaves),
        value_tree([-1], [], [[0.0, 0.0]]),
    ]
    proof = sharing_proof(PARITY, lam, t, LAWS["parity"]) | {"values": parts}
    ends_of = [0.25, 0.375, 0.5, 0.625, 0.75]
    intervals = [[(low, high), (0.25, 0.75)] for low, high in itertools.pairwise(ends_of)]
    formula = tree_formula(PARITY, lam, t, 0, intervals, leaves)
    whole = tree_formula(PARITY, lam, t, 1, [[(0.25, 0.75)] * 2], [np.zeros(2)])
    close(sharing_bound(PARITY, 0.5, proof), soft([formula, whole], lam) - lam * 0.5)


TREE = value_tree([0, -1, -1], [0.5], np.zeros((2, 2)))


def sharing_changed(*path, to):
    parts = Parts("", {}, {}, sharing_proof(PARITY, 1.0, [0.5, 0.5], LAWS["parity"]))
    parts = tampered(parts, {("proof", "values", 0): TREE})
    return tampered(parts, {("proof", *path): to}).proof


@pytest.mark.parametrize(
    ("proof", "reason"),
    [
        (sharing_changed("multiplier", to=0.0), "is not positive"),
        (sharing_changed("multiplier", to=-1.0), "is not positive"),
        (sharing_changed("multiplier", to=0.1), "needs a larger multiplier"),
        (
            sharing_changed("output", to=pack(np.array([1.0, 0.0]))),
            "output distribution does not fit",
        ),
        (
            sharing_changed("output", to=pack(np.array([1.5, -0.5]))),
            "output distribution does not fit",
        ),
        (sharing_changed("output", to=pack(np.array([1.0]))), "does not fit"),
        (sharing_changed("values", to=[TREE]), "does not fit the lumped problem"),
        (sharing_changed("values", to=[TREE] * 3), "does not fit the lumped problem"),
        (sharing_changed("values", to=[TREE, 1.0]), "the bound of a value: expected"),
        (sharing_changed("values", to={"0": TREE, "1": TREE}), "does not fit the lumped problem"),
        (
            sharing_changed("values", 1, "law", to=pack(np.array([1.0, 0.0]))),
            "contexts does not fit",
        ),
        (
            sharing_changed("values", 1, "law", to=pack(np.array([1.5, -0.5]))),
            "contexts does not fit",
        ),
        (sharing_changed("values", 1, "law", to=pack(np.array([1.0]))), "does not fit"),
        (sharing_changed("values", 1, "note", to=1), "the bound of a value: expected the parts"),
        (sharing_changed("values", 0, "note", to=1), "the bound of a value: expected the parts"),
        (sharing_changed("note", to=1), "the time-sharing bound: expected the parts"),
        (sharing_changed("values", 0, "nodes", to=pack(np.array([2, -1, -1]), "<i4")), "malformed"),
        (sharing_changed("values", 0, "nodes", to=pack(np.array([0, -2, -1]), "<i4")), "malformed"),
        (
            sharing_changed("values", 0, "nodes", to=pack(np.array([-1, 0, -1]), "<i4")),
            "has nodes after",
        ),
        (sharing_changed("values", 0, "cuts", to=pack(np.array([0.0]))), "cuts of a value"),
        (sharing_changed("values", 0, "cuts", to=pack(np.array([1.0]))), "cuts of a value"),
        (sharing_changed("values", 0, "cuts", to=pack(np.array([-0.5]))), "cuts of a value"),
    ],
)
@pytest.mark.usefixtures("arithmetic")
def test_forged_sharing(proof, reason):
    assert math.isfinite(sharing_bound(PARITY, 0.0, sharing_changed("multiplier", to=1.0)))
    with pytest.raises(CertificateError, match=reason):
        sharing_bound(PARITY, 0.0, proof)


@pytest.mark.usefixtures("arithmetic")
def test_outputs_that_no_row_of_a_value_has_do_not_count():
    problem = lumped([0, 1], [[1.0, 0.0], [0.5, 0.5]], [1, 1])
    proof = sharing_proof(problem, 1.0, [0.75, 0.25], [[1.0], [1.0]])
    close(
        sharing_bound(problem, 0.5, proof),
        sharing_formula(problem, 0.5, 1.0, [0.75, 0.25], [np.ones(1), np.ones(1)]),
    )


# The bound by the dataset


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("name", PROBLEMS)
def test_dataset(name, limited):
    problem = PROBLEMS[name]
    limits = limits_of(problem) if limited else Limits.none(problem)
    t = np.array([0.25, 0.75] if problem.rows.shape[1] == 2 else [0.25, 0.5, 0.25])
    kappa = np.array([0.25, 0.5]) if limited else np.zeros(0)
    safe = np.where(problem.rows > 0, problem.rows, 1.0)
    d = (problem.rows * (np.log(safe) - np.log(t))).sum(axis=1)
    for lam in (0.0, 0.5):
        for q in (0.0, 0.25, 1.0):
            for floor in (0.0, 0.75):
                proof = {"multipliers": pack(np.array([lam, q, *kappa])), "output": pack(t)}
                bound = dataset_bound(problem, floor, proof, limits if limited else None)
                smooth = lam + kappa @ limits.shares
                c = q * d - kappa @ limits.coefficients
                value = soft(by_value(problem, c, smooth), 1 - q + smooth)
                close(bound, value + kappa @ limits.bounds - lam * floor)
                holds(problem, bound, floor, limits)


def test_the_bound_by_the_dataset_is_rounded_up():
    for q in (0.0, 0.25, 1.0):
        proof = {"multipliers": pack(np.array([0.0, q])), "output": pack(np.array([0.5, 0.5]))}
        exact = (1 - arb(q)) * arb(2).log() + arb(q) * (
            arb(2).log() + arb("0.25") * arb("0.25").log() + arb("0.75") * arb("0.75").log()
        )
        assert arb(dataset_bound(BINARY, 0.0, proof)) > exact


@pytest.mark.parametrize(
    ("multipliers", "output", "reason"),
    [
        ([-0.5, 0.5], [0.5, 0.5], "lam or kappa < 0"),
        ([0.5, -0.5], [0.5, 0.5], "q outside"),
        ([0.5, 1.5], [0.5, 0.5], "q outside"),
        ([0.5, math.nan], [0.5, 0.5], "multipliers do not fit"),
        ([math.inf, 0.5], [0.5, 0.5], "multipliers do not fit"),
        ([0.5], [0.5, 0.5], "does not fit"),
        ([0.5, 0.5], [1.0, 0.0], "gives probability 0 to an output that can occur"),
        ([0.5, 0.5], [1.5, -0.5], "output distribution does not fit"),
        ([0.5, 0.5], [0.5, math.nan], "output distribution does not fit"),
        ([0.5, 0.5], [0.5, 0.25], "the output distribution sums to"),
        ([0.5, 0.5], [0.5, 0.75], "the output distribution sums to"),
        ([0.5, 0.5], [0.5], "does not fit"),
    ],
)
def test_forged_dataset_bounds(multipliers, output, reason):
    proof = {"multipliers": pack(np.array(multipliers)), "output": pack(np.array(output))}
    with pytest.raises(CertificateError, match=reason):
        dataset_bound(BINARY, 0.0, proof)
    with pytest.raises(CertificateError, match="expected the parts"):
        dataset_bound(BINARY, 0.0, {**proof, "note": 1})


def test_prices_of_limits_are_not_negative():
    proof = {"multipliers": pack(np.array([0.5, 0.5, -0.25])), "output": pack(np.array([0.5, 0.5]))}
    with pytest.raises(CertificateError, match="kappa < 0"):
        dataset_bound(BINARY, 0.0, proof, Limits([[1.0, 0.0]], [0.5]))


# Merged outputs


def test_merged_outputs_cost_what_they_can_hide():
    rows = [[0.25, 0.25, 0.5], [0.125, 0.375, 0.5]]
    problem = lumped([0, 1], rows, [1, 1])
    merged, slack = merged_rows(problem, [[0, 1], [2]])
    assert [[float(x) for x in row] for row in merged] == [[0.5, 0.5], [0.5, 0.5]]
    # Shares of output 0: 1/2 and 1/4; of output 1: 1/2 and 3/4.
    assert float(slack) == pytest.approx(LOG_2, abs=1e-15)
    assert merged_rows(problem, [[0], [1], [2]])[1] == 0
    coarse, prices = coarse_rows(problem, [[0, 1], [2]], [0.25, 0.25, 0.5])
    assert [[float(x) for x in row] for row in coarse] == [[0.5, 0.5], [0.5, 0.5]]
    assert prices[0].contains(0)
    assert float(prices[1]) == pytest.approx(
        0.125 * math.log(0.5) + 0.375 * math.log(1.5), abs=1e-15
    )
    bound = cells_bound(
        problem, 0.0, cells_proof(outputs=[[0, 1], [2]]) | {"leaves": pack(np.zeros((1, 5)))}
    )
    assert bound == pytest.approx(2 * LOG_2, abs=1e-9)
    holds(problem, bound, 0.0)


def test_outputs_that_cannot_occur_are_merged_for_nothing():
    never = lumped([0, 1], [[0.25, 0.0, 0.75], [0.5, 0.0, 0.5]], [1, 1])
    assert merged_rows(never, [[0, 1], [2]])[1] == 0
    row = lumped([0, 0, 1], [[0.0, 0.0, 1.0], [0.25, 0.25, 0.5], [0.125, 0.125, 0.75]], [1, 1, 1])
    assert merged_rows(row, [[0, 1], [2]])[1].contains(0)


@pytest.mark.parametrize(
    ("outputs", "law", "reason"),
    [
        ([[0], [1, 1]], None, "not a partition"),
        ([[0], [1]], None, "not a partition"),
        ([[0], [1, 2], [3]], None, "not a partition"),
        ([[0, 1], [2]], None, "are not proportional"),
        ([[0, 1], [2]], [0.0, 0.5, 0.5], "gives probability 0 to an output"),
        ([[0, 1], [2]], [0.5, 0.5], "does not fit the lumped problem"),
        ([[0, 1], [2]], [-0.5, 0.5, 1.0], "finite and non-negative"),
        ([[0, 1], [2]], [0.25, 0.25, 0.25, 0.25], "does not fit the lumped problem"),
    ],
)
def test_forged_mergers(outputs, law, reason):
    problem = lumped([0, 1], [[0.25, 0.25, 0.5], [0.0, 0.5, 0.5]], [1, 1])
    given = (problem, outputs) if law is None else (problem, outputs, law)
    with pytest.raises(CertificateError, match=reason):
        (merged_rows if law is None else coarse_rows)(*given)


# Trees and packed arrays

PLAIN = {
    "nodes": pack(np.array([0, -1, -1]), "<i4"),
    "cuts": pack(np.array([0.5])),
    "leaves": pack(np.zeros((2, 3))),
}


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("leaves", pack(np.zeros((0, 3))), "a tree has no leaves"),
        ("leaves", pack(np.zeros(3)), "a tree has no leaves"),
        ("leaves", pack(np.zeros((2, 4))), "does not fit"),
        ("leaves", pack(np.full((2, 3), math.nan)), "not finite"),
        ("leaves", pack(np.array([[0.0, 0.0, math.inf], [0.0] * 3])), "not finite"),
        ("cuts", pack(np.array([0.5]), "<f4"), "must be whole numbers, and its cuts floats"),
        ("cuts", pack(np.array([math.inf])), "not finite"),
        ("cuts", pack(np.array([0.5, 0.5])), "does not fit"),
        ("cuts", pack(np.array([0]), "<i4"), "must be whole numbers, and its cuts floats"),
        ("nodes", pack(np.array([0.0, -1.0, -1.0])), "must be whole numbers"),
        ("nodes", pack(np.array([0.0, -0.5, -1.0]), "<f4"), "must be whole numbers"),
        ("nodes", pack(np.array([0, -1]), "<i4"), "does not fit"),
        ("nodes", pack(np.array([-1, -1, -1]), "<i4"), "one cut for each inner node"),
        ("nodes", pack(np.array([0, 0, -1]), "<i4"), "one cut for each inner node"),
    ],
)
def test_forged_trees(name, value, reason):
    assert len(trees.unpack_tree(PLAIN, "nodes", (), 3)) == 3
    with pytest.raises(CertificateError, match=reason):
        trees.unpack_tree({**PLAIN, name: value}, "nodes", (), 3)


PACKED = pack(np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"dtype": "<f2"}, "found dtype"),
        ({"dtype": "<f4"}, "another size than shape"),
        ({"shape": [2, 2]}, "another size than shape"),
        ({"shape": [3, 3]}, "another size than shape"),
        ({"shape": [1] * 5}, "found dtype .* and shape"),
        ({"shape": 6}, "found dtype .* and shape"),
        ({"shape": [-2, -3]}, "whole number of at least 0"),
        ({"shape": [2.0, 3.0]}, "whole number of at least 0"),
        ({"shape": [1 << 26, 1]}, "another size than shape"),
        ({"shape": [(1 << 26) + 1]}, "bytes; at most"),
        ({"data": PACKED["data"][:-4]}, "packed array"),
        ({"data": "!" + PACKED["data"]}, "packed array"),
        ({"data": 3}, "packed array"),
        ({"data": "AAAA"}, "packed array"),
        ({"note": 1}, "a packed array: expected the parts"),
    ],
)
def test_forged_arrays(change, reason):
    with pytest.raises(CertificateError, match=reason):
        unpack({**PACKED, **change})


def test_what_follows_the_data_is_refused():
    data = base64.b64decode(PACKED["data"])
    longer = [zlib.compress(bytes(n)) for n in (0, 47, 49, 10_000)]
    for more in (data + b"\0", data[:-1], *longer):
        with pytest.raises(CertificateError, match="packed array"):
            unpack({**PACKED, "data": base64.b64encode(more).decode()})


def test_shapes_that_are_wanted():
    assert unpack(PACKED, (None, 3)).shape == (2, 3)
    assert declared_shape({**PACKED, "shape": [1, 1, 1, 6]}) == (1, 1, 1, 6)
    for shape in ((2,), (2, 4), (3, None), (2, 3, 1)):
        with pytest.raises(CertificateError, match="does not fit"):
            unpack(PACKED, shape)


# The certificate


def certificate(mechanism=None, floor=0.0, *, records=None, size=1, entries=None, witness=None):
    mechanism = mechanism or Mechanism(parity(1), ROWS)
    even = {"records": [0], "choices": pack(np.array([[0.5, 0.5]]))}
    return Parts(
        "record-leakage",
        {
            "mechanism": mechanism.to_dict(),
            "entropy_floor": floor,
            "size": size,
            "records": records,
        },
        witness or {"records": [0], "weights": [0.5, 0.5]},
        {"groups": entries or [even]},
    )


def least():
    return arb(2).log() + arb("0.25") * arb("0.25").log() + arb("0.75") * arb("0.75").log()


SEVERAL = certificate(
    Mechanism(count(2), [[0.75, 0.25], [0.5, 0.5], [0.25, 0.75]]),
    records=[[0], [1]],
    entries=[{"records": [0], "choices": pack(np.full((4, 2), 0.5))}, {"same_as": 0}],
    witness={"records": [1], "weights": [0.5, 0.0, 0.0, 0.5]},
)


def test_honest():
    encloses(certificate(), least)
    encloses(SEVERAL, least, 1.0)
    lower, upper = ends(SEVERAL)
    assert lower < LEVEL < upper
    proves_nothing_false(certificate(floor=0.5), LEVEL, LEVEL)


def test_the_least_bound_of_an_entry_and_the_largest_entry():
    bare = certificate(entries=[{"records": [0]}])
    assert ends(bare)[1] == pytest.approx(LOG_2, abs=1e-15)
    assert arb(ends(bare)[1]) > arb(2).log()
    uneven = tampered(SEVERAL, {("proof", "groups", 1): {"records": [1]}})
    assert ends(uneven)[1] == pytest.approx(LOG_2, abs=1e-15)
    turned = tampered(
        SEVERAL,
        {
            ("proof", "groups"): [
                {"records": [0]},
                {"records": [1], "choices": pack(np.full((4, 2), 0.5))},
            ]
        },
    )
    assert ends(turned)[1] == pytest.approx(LOG_2, abs=1e-15)
    # What ignores the data leaks nothing, exactly; all rows have to be the same.
    even = certificate(Mechanism(parity(1), [[0.5, 0.5]] * 2), entries=[{"records": [0]}])
    assert ends(even) == (0.0, 0.0)
    third = lumped([0, 0, 1], [ROWS[0], ROWS[0], ROWS[1]], [1, 1, 1])
    assert prove_upper(third, 0.0, {}) > 0.69


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({("proof", "groups"): []}, "does not bound each of 1 groups"),
        ({("proof", "groups"): {"0": {"records": [0]}}}, "does not bound each of 1 groups"),
        ({("proof", "groups"): lambda v: v * 2}, "does not bound each of 1 groups"),
        ({("proof", "groups", 0): {"same_as": 0}}, "not equivalent to the group of entry 0"),
        ({("proof", "groups", 0, "records"): [1]}, "is not about group"),
        ({("proof", "groups", 0, "note"): 1}, "an entry of the proof: expected the parts"),
        ({("proof", "note"): 1}, "the proof: expected the parts"),
        ({("witness", "note"): 1}, "the witness: expected the parts"),
        ({("problem", "note"): 1}, "the problem: expected the parts"),
        ({("witness", "records"): [1]}, "records"),
        ({("problem", "records"): []}, "records: expected groups of 1"),
        ({("problem", "records"): [[0, 1]]}, "records: expected groups of 1"),
        ({("problem", "records"): [[0], [0, 1]]}, "records: expected groups of 1"),
        ({("problem", "records"): [[]]}, "records: expected groups of 1"),
        ({("problem", "size"): 0}, "whole number of at least 1"),
        ({("problem", "entropy_floor"): 0.7}, "has entropy .* below the floor"),
        ({("witness", "weights"): [0.5]}, "weights: expected a list of 2"),
        ({("witness", "weights"): [1.5, -0.5]}, "finite and non-negative"),
        ({("proof", "groups", 0, "choices"): pack(np.array([[1.0, -0.5]]))}, "non-negative"),
        ({("proof", "groups", 0, "choices"): pack(np.array([[1.0]]))}, "does not fit"),
        ({("problem", "mechanism", "channel", "matrix", 0): [True, 0]}, "mechanism|matrix|channel"),
    ],
)
def test_forged(changes, reason):
    with pytest.raises(CvxleakError, match=reason):
        ends(tampered(certificate(), changes))


@pytest.mark.parametrize(
    ("size", "records", "text"),
    [
        (1, None, "the worst of 9 records"),
        (2, None, "the worst group of 2 of 9 records"),
        (1, [[4]], "record 4 of 9"),
        (2, [[0, 8], [1, 2]], "record 0 + 8, 1 + 2 of 9"),
        (1, [[0], [1], [2], [3]], "record 0, 1, 2, 3 of 9"),
        (1, [[0], [1], [2], [3], [4]], "record 0, 1, 2, 3, ... of 9"),
    ],
)
def test_what_a_certificate_says_that_it_is_about(size, records, text):
    mechanism = {"query": {"space": {"alphabets": [[[0, 1], 5], [[0, 1, 2], 4]]}}}
    problem = {"mechanism": mechanism, "entropy_floor": 0.5, "size": size, "records": records}
    doubt = "adversaries with at least 0.5 nats of uncertainty"
    assert record_leakage.about(problem) == f"{text}, {doubt}"


def test_an_entry_is_the_same_as_an_earlier_one_that_has_the_same_problem():
    refused(
        SEVERAL, {("proof", "groups", 1): {"same_as": 1}}, "not equivalent to the group of entry 1"
    )
    refused(
        SEVERAL, {("proof", "groups", 1): {"same_as": 0, "note": 1}}, "entry of the proof: expected"
    )
    one = lumped([0, 0, 1], [[0.5, 0.5], *ROWS], [1, 2, 3])
    assert same_problem(one, lumped([0, 0, 1], [[0.5, 0.5], *ROWS], [1, 2, 3]))
    for other in (
        lumped([0, 0, 1], [[0.5, 0.5], *ROWS], [1, 2, 4]),
        lumped([0, 0, 1], [[0.5, 0.5], *ROWS], [1, 2, 2]),
        lumped([0, 1, 1], [[0.5, 0.5], *ROWS], [1, 2, 3]),
        lumped([0, 0, 1], [[0.5, 0.5], *ROWS[::-1]], [1, 2, 3]),
    ):
        assert not same_problem(one, other)


def test_an_input_law_misses_no_output_of_its_rows():
    told = certificate(Mechanism(parity(1), [[1.0, 0.0], [0.0, 1.0]]))
    encloses(told, lambda: arb(2).log())
    refused(
        told,
        {("proof", "groups", 0, "choices"): pack(np.array([[1.0, 0.0]]))},
        "gives probability 0 to an output",
    )


def test_a_witness_is_about_what_is_audited():
    first = certificate(
        Mechanism(parity(2), ROWS),
        records=[[0]],
        entries=[{"records": [0]}],
        witness={"records": [1], "weights": [0.5, 0.0, 0.0, 0.5]},
    )
    # Another record whose lumped problem is the same will do.
    assert ends(first)[0] == pytest.approx(LEVEL, abs=1e-12)
    both = {("witness", "records"): [0, 1], ("witness", "weights"): [0.25] * 4}
    refused(first, both, "which is not audited")


def test_the_doubt_of_a_witness_counts_the_datasets():
    """F(w) = H(w) + sum w log m: an even witness on 2^9 contexts is far from every dataset."""
    many = certificate(
        Mechanism(parity(10), ROWS),
        floor=9.0 * LOG_2 - 1e-9,
        entries=[{"records": [0]}],
        witness={"records": [0], "weights": [0.5, 0.0, 0.5, 0.0]},
    )
    assert ends(many)[0] == 0.0
    refused(many, {("problem", "entropy_floor"): 9.0 * LOG_2 + 1e-9}, "below the floor")


def test_each_kind_of_bound_counts():
    """Without a floor each of them proves less than log 2."""
    whole = {"multipliers": pack(np.array([0.0, 1.0])), "output": pack(np.array([0.5, 0.5]))}
    shared = sharing_proof(BINARY, 0.5, [0.5, 0.5], LAWS["binary"])
    cut = {
        **cells_proof(),
        "splits": pack(np.array([[0, 0, 1], [-1] * 3, [-1] * 3]), "<i4"),
        "cuts": pack(np.array([0.75])),
        "leaves": pack(np.zeros((2, 5))),
    }
    slabs = slabs_proof(
        (-0.28, -0.28),
        functional=(0.0, 0.0),
        leaves=pack(np.array([[0.0, 0.5, -0.35, -0.35, -0.28, -0.28]] * 2)),
    )
    for kind, floor, proof in (
        ("dataset", 0.0, whole),
        ("cells", 0.0, cut),
        ("slabs", 0.0, slabs),
        ("sharing", LOG_2, shared),
    ):
        assert LEVEL <= prove_upper(BINARY, floor, {kind: proof}) < LOG_2 - 0.001, kind
        assert prove_upper(BINARY, floor, {}) > LOG_2


def test_rows_that_differ_by_rounding_leak():
    near = lumped([0, 1], [[0.5, 0.5], [0.5, 0.5 + 2.0**-32]], [1, 1])
    assert prove_upper(near, 0.0, {}) > 0


def test_any_audited_group_may_have_the_witness():
    query = from_table(count(2).space, [[0, 1], [2, 2]])
    parts = certificate(
        Mechanism(query, [[0.75, 0.25], [0.25, 0.75], [0.5, 0.5]]),
        records=[[0], [1]],
        entries=[{"records": [0]}, {"records": [1]}],
        witness={"records": [1], "weights": [0.0, 0.5, 0.5, 0.0]},
    )
    lower, upper = ends(parts)
    assert 0 <= lower < upper == pytest.approx(LOG_2)


def test_the_difference_of_floats_is_rounded_outwards(monkeypatch):
    found = iter([(0.3, 0.7), (0.1, 0.2)])
    monkeypatch.setattr(record_leakage, "prove", lambda *_: next(found))
    both = {"capacity": {}, "leakage": {}}
    lower, upper = record_leakage.prove_balance({"entropy_floor": 1.0}, both, both)
    assert Fraction(lower) < Fraction(0.3) - Fraction(0.2)
    assert Fraction(upper) > Fraction(0.7) - Fraction(0.1)


def test_sums_that_are_off_by_rounding_are_divided_out():
    """Rows and laws are divided by their sums, which are 1 up to 1e-9."""
    problem = lumped([0, 1], [[0.75, 0.25 + 2.0**-31], [0.25, 0.75]], [1, 1])
    t = np.array([0.5 + 2.0**-31, 0.5])
    found = whole_dataset._divergences(problem.rows, t)
    with precision(300):
        law = [arb(x) / arb(float(t.sum())) for x in t.tolist()]
        for row, bound in zip(problem.rows.tolist(), found.tolist(), strict=True):
            exact = arb(0)
            for x, p in zip(row, law, strict=True):
                q = arb(x) / sum(map(arb, row), arb(0))
                exact += q * (q / p).log()
            assert exact < arb(bound) < exact + 1e-13


def test_the_error_of_divergences_is_what_is_derived():
    rows = np.array([[0.75, 0.25], [0.5, 0.5]])
    t = np.array([1.0, 2.0**-800])
    found = whole_dataset._divergences(rows, t)
    with precision(300):
        for row, bound in zip(rows.tolist(), found.tolist(), strict=True):
            exact = sum(
                (arb(q) * (arb(q) / arb(p)).log() for q, p in zip(row, t, strict=True)), arb(0)
            )
            logs = sum(
                q * abs(math.log(p)) + q * abs(math.log(q)) for q, p in zip(row, t, strict=True)
            )
            error = 2.25 * 2.0**-53 * 18 * (logs + 2)
            assert exact + error / 2 < arb(bound) < exact + 2 * error


def test_the_sum_of_divergence_and_error_is_rounded_up(monkeypatch):
    monkeypatch.setattr(whole_dataset, "UNIT_ROUNDOFF", 0.0)
    assert whole_dataset._divergences(np.array([[1.0]]), np.array([1.0])) == [2.0**-1074]


@pytest.mark.parametrize("tenths", range(1, 10))
def test_the_witness_leaks_what_the_written_rows_leak(tenths):
    """Rows that differ by 1e-7: the floats next to their numbers leak more, or less."""
    rows = [[float(f"{p:.8f}") for p in (q, 1 - q)] for q in (tenths / 10, tenths / 10 + 1e-7)]
    honest = certificate(Mechanism(parity(1), rows))
    with precision(300):
        truth = mutual_information([[number(p) / 2 for p in row] for row in rows])
    lower, upper = ends(honest)
    assert arb(lower) < truth < arb(upper)
    assert truth - lower < 1e-14 * truth


def test_a_balance_is_the_difference_of_two_leakages():
    one = certificate()
    parts = Parts(
        "balance",
        {**one.problem, "entropy_floor": LOG_2 - 1e-12},
        {"capacity": one.witness, "leakage": one.witness},
        {"capacity": one.proof, "leakage": one.proof},
    )
    lower, upper = ends(parts)
    assert lower == 0.0
    assert 0.0 < upper < 1e-15
    for part in ("witness", "proof"):
        refused(parts, {(part, "note"): 1}, f"the {part}: expected the parts")
    vague = tampered(parts, {("proof", "capacity", "groups", 0): {"records": [0]}})
    assert ends(vague)[1] == pytest.approx(LOG_2 - LEVEL, abs=1e-12)
    none = tampered(
        parts,
        {
            ("proof", "leakage", "groups", 0): {
                "records": [0],
                "dataset": {
                    "multipliers": pack(np.array([1e6, 0.0])),
                    "output": pack(np.array([0.5, 0.5])),
                },
            },
            ("problem", "entropy_floor"): LOG_2 - 1e-15,
        },
    )
    assert ends(none)[0] == 0.0
