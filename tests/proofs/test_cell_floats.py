"""Leaves of cells in floats: what is allowed for rounding holds against ball arithmetic."""

import math

import numpy as np
import pytest
from cvxleak.proofs.bounds.cell_floats import exponential
from cvxleak.proofs.bounds.posterior_cells import Cell, CellProof, cells_bound
from flint import arb

from cvxleak.audit import record_leakage
from cvxleak.core.errors import CertificateError
from cvxleak.exact import balls
from cvxleak.exact.outward import UNIT_ROUNDOFF
from cvxleak.measures import lumped_entropy, lumped_information
from cvxleak.mechanisms import random_rounding, truncated_geometric
from cvxleak.model import Lumped, Mechanism, RecordSpace
from cvxleak.proofs.bounds import cell_floats, posterior_cells
from cvxleak.queries import count


def test_exponentials_are_off_by_no_more_than_they_claim() -> None:
    rng = np.random.default_rng(0)
    x = -np.concatenate([[0.0, 700.0], rng.uniform(0, 1, 500), rng.uniform(0, 700, 500)])
    found = exponential(x)
    with balls.precision():
        for point, value in zip(x.tolist(), found.tolist(), strict=True):
            exact = arb(point).exp()
            assert abs(arb(value) / exact - 1) <= (100 + 3 * abs(point)) * UNIT_ROUNDOFF
    assert exponential(np.array([0.0]))[0] == 1.0
    assert exponential(np.array([-1e300]))[0] == exponential(np.array([-700.0]))[0] > 0


def proof_of(lumped: Lumped) -> CellProof:
    outputs = [[y] for y in range(lumped.rows.shape[1])]
    return CellProof(lumped, {"outputs": outputs})


def random_cells(proof: CellProof, rng: np.random.Generator) -> list[Cell]:
    """Return cells that a few random splits lead to."""
    cells = proof.root()
    for _ in range(int(rng.integers(0, 30))):
        y = int(rng.integers(proof.outputs))
        i, j = rng.choice(proof.values, 2, replace=False)
        cells[y] = cells[y].split(int(i), int(j), float(rng.uniform(0.1, 0.9)))[rng.integers(2)]
    return cells


def three_values() -> Lumped:
    rng = np.random.default_rng(5)
    rows = rng.dirichlet(np.ones(4), size=12)
    rows[0] = [0.5, 0.5, 0.0, 0.0]
    return Mechanism.from_channel(RecordSpace([range(3), range(4)]), rows).lumped(0)


LUMPED = {
    "rounded": Mechanism(count(6), random_rounding(6, base=3)).lumped(0),
    "geometric": Mechanism(count(60), truncated_geometric(60, 0.5)).lumped(0),
    "three values": three_values(),
}


@pytest.mark.parametrize("name", list(LUMPED))
def test_floats_prove_what_balls_prove(name: str) -> None:
    rng = np.random.default_rng(1)
    proof = proof_of(LUMPED[name])
    cells, leaves = [], []
    for _ in range(60):
        cells.append(random_cells(proof, rng))
        mu = rng.exponential(10.0 ** rng.uniform(-6, 1), proof.width - 1)
        mu[rng.random(len(mu)) < 0.3] = 0.0
        lam = rng.choice([0.0, 10.0 ** rng.uniform(-4, 2)])
        leaves.append([float(lam), *mu.tolist()])
    with balls.precision():
        exact = [proof.value(own, leaf) for own, leaf in zip(cells, leaves, strict=True)]
        found = proof.values_of(cells, leaves)
        in_floats = [x for x, y in zip(found, exact, strict=True) if x.is_exact()]
        assert len(in_floats) > 20
        for value, end in zip(found, exact, strict=True):
            # The nu of the floats is another one, with its own bound, which may be less.
            assert abs(value - end) < 1e-11 * (1 + abs(end))


def test_cells_too_small_for_floats_are_proved_in_balls() -> None:
    proof = proof_of(LUMPED["rounded"])
    cells = proof.root()
    with balls.precision():
        cells[0] = cells[0].split(0, 1, 1e-300)[0]
        cells[1] = cells[1].split(0, 1, 0.5)[0]
        assert cells[0].depths == [0.0, math.inf]
        assert cells[1].depths == [0.0, 1.0]
        leaf = [0.5] + [0.01] * (proof.width - 1)
        huge = [1e9] + [0.01] * (proof.width - 1)
        odd = [1e-320] + [0.01] * (proof.width - 1)
        root = proof.root()
        found = proof.values_of([cells, root, root], [leaf, huge, odd])
        exact = [proof.value(cells, leaf), proof.value(root, huge), proof.value(root, odd)]
        assert [str(value) for value in found] == [str(end) for end in exact]


@pytest.mark.parametrize("name", list(LUMPED))
def test_no_adversary_in_the_cells_learns_more(name: str) -> None:
    lumped, rng = LUMPED[name], np.random.default_rng(2)
    proof = proof_of(lumped)
    for _ in range(20):
        weights = rng.dirichlet(np.full(len(lumped.rows), 0.3))
        joint = np.stack(
            [
                weights[own] @ lumped.rows[own]
                for own in np.eye(proof.values, dtype=bool)[:, lumped.value_index]
            ]
        )
        posteriors = (joint / joint.sum(axis=0)).T
        cells = proof.root()
        for y, posterior in enumerate(posteriors):
            for _ in range(8):  # towards the posterior
                i, j = (int(place) for place in rng.choice(proof.values, 2, replace=False))
                for part in cells[y].split(i, j, float(rng.uniform(0.2, 0.8))):
                    if (np.linalg.solve(np.array(part.floats).T, posterior) > 1e-9).all():
                        cells[y] = part
                        break
        leaf = [float(rng.exponential()), *rng.exponential(1e-3, proof.width - 1).tolist()]
        with balls.precision():
            (value,) = proof.values_of([cells], [leaf])
        floor = lumped_entropy(weights, lumped)
        assert lumped_information(weights, lumped) <= float(value) - leaf[0] * floor + 1e-12


def test_deep_cells_are_made_in_balls_without_recursion() -> None:
    cell = Cell.whole(2)
    for _ in range(3000):
        cell = cell.split(0, 1, 0.5)[0]
    with balls.precision():
        assert cell.vertices[1][1] > 0
    assert cell.depths == [0.0, math.inf]


def hard_lumped(rng: np.random.Generator) -> Lumped:
    """Return a small problem with zeros, tiny probabilities and large multiplicities."""
    k, outputs = int(rng.integers(2, 5)), int(rng.integers(1, 7))
    sizes = rng.integers(1, int(rng.choice([2, 4, 30])), k)
    rows = rng.dirichlet(np.full(outputs, rng.choice([0.05, 1.0])), size=sizes.sum())
    rows = np.where(rng.random(rows.shape) < 0.2, rng.choice([0.0, 1e-30, 5e-324]), rows)
    rows[:, 0] += rows.sum(axis=1) == 0
    power = int(rng.choice([0, 1, 300]))
    return Lumped(
        range(k),
        range(outputs),
        np.repeat(np.arange(k), sizes),
        rows / rows.sum(axis=1, keepdims=True),
        [int(m) ** power for m in rng.integers(1, 1000, len(rows))],
        [[i] for i in range(len(rows))],
    )


def hard_leaf(proof: CellProof, rng: np.random.Generator) -> tuple[list[Cell], list[float]]:
    """Return a leaf with thin, deep cells and multipliers of all sizes."""
    cells, count_of = proof.root(), proof.outputs * proof.values
    for _ in range(int(rng.choice([0, 3, 20, 60]))):
        y = int(rng.integers(proof.outputs))
        i, j = (int(place) for place in rng.choice(proof.values, 2, replace=False))
        t = float(rng.choice([0.5, rng.random(), 10.0 ** rng.uniform(-18, -1), 1 - 2.0**-53]))
        cells[y] = cells[y].split(i, j, t)[rng.integers(2)]
    lam = rng.choice([0.0, 1e-320, 1e-14, *10.0 ** rng.uniform(-6, 2, 5), 1e300])
    mu = rng.exponential(10.0 ** rng.uniform(-6, 3), count_of) * (rng.random(count_of) < 0.6)
    if rng.random() < 0.05:
        mu[0] = rng.choice([1e300, 1e-300])
    return cells, [float(lam), *mu.tolist()]


def test_vertices_are_off_by_no_more_than_their_depths_say() -> None:
    rng, seen, most = np.random.default_rng(6), 0, 0.0
    with balls.precision():
        for _ in range(150):
            proof = proof_of(hard_lumped(rng))
            for cell in hard_leaf(proof, rng)[0]:
                for floats, depth, exact in zip(
                    cell.floats, cell.depths, cell.vertices, strict=True
                ):
                    if depth == math.inf:
                        continue
                    for found, x in zip(floats, exact, strict=True):
                        assert abs(found - x) <= 4 * UNIT_ROUNDOFF * depth * x
                        seen += bool(depth)
                        if depth and x > 0:
                            most = max(most, float(abs(found - x) / x) / depth)
    assert seen > 1000
    assert most > UNIT_ROUNDOFF / 2  # the claim is of the right size


def missing(cells: list[Cell], nu: list[list[arb]]) -> arb:
    """Return the most by which a vertex inequality fails, or 0."""
    most = arb(0)
    for cell, own in zip(cells, nu, strict=True):
        for vertex in cell.vertices:
            short = -balls.entropy(vertex)
            for p, x in zip(vertex, own, strict=True):
                short -= p * x
            most = most.max(short)
    return most


INEQUALITIES, SOLVED = cell_floats._inequalities, cell_floats._solved


def falls_short(share: float, monkeypatch: pytest.MonkeyPatch) -> tuple[list[bool], list[bool]]:
    """Return whether delta, and what is proved, are too small, with a share of the allowance.

    What they have to be is computed in balls from the same nu.
    """
    last: list[tuple[np.ndarray, np.ndarray]] = []

    def inequalities(*arguments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        last[:] = [INEQUALITIES(*arguments)]
        return last[0]

    monkeypatch.setattr(cell_floats, "_inequalities", inequalities)
    monkeypatch.setattr(cell_floats, "UNIT_ROUNDOFF", share * UNIT_ROUNDOFF)
    monkeypatch.setattr(posterior_cells, "ALLOWANCE", math.inf)
    rng = np.random.default_rng(1)
    deltas, bounds = [], []
    for _ in range(80):
        proof = proof_of(hard_lumped(rng))
        for cells, leaf in (hard_leaf(proof, rng) for _ in range(12)):
            try:
                (found,) = proof.values_of([cells], [leaf])
            except CertificateError:  # neither in floats nor in balls
                continue
            if not found.is_exact():
                continue
            nu = [[arb(x) for x in own] for own in last[0][0][0].tolist()]
            delta = missing(cells, nu)
            deltas.append(not arb(float(last[0][1][0])) >= delta)
            raised = [[x + delta for x in own] for own in nu]
            needed = posterior_cells._dual_value(
                proof._columns,
                proof._logs,
                [*raised, [arb(1)] * proof.values],
                arb(leaf[0]),
                arb(1),
                [arb(0)] * proof.values,
            )
            if needed.is_finite():
                bounds.append(not found >= needed)
    return deltas, bounds


def test_what_is_allowed_for_rounding_is_enough_and_not_far_too_much(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with balls.precision():
        deltas, bounds = falls_short(0.2, monkeypatch)
        assert min(len(deltas), len(bounds)) > 300
        assert not any(deltas)
        assert not any(bounds)
        # A thousandth would be far too little: this test would notice.
        deltas, bounds = falls_short(0.001, monkeypatch)
        assert min(sum(deltas), sum(bounds)) > 30


def test_nothing_rests_on_how_nu_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)

    def badly(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
        return SOLVED(matrix, right) * rng.uniform(0.99, 1.01, right.shape)

    monkeypatch.setattr(cell_floats, "_solved", badly)
    with balls.precision():
        deltas, bounds = falls_short(1.0, monkeypatch)
    assert len(bounds) > 300
    assert not any(deltas)
    assert not any(bounds)


def test_what_many_splits_lose_is_allowed_for() -> None:
    # 1 - t is rounded down each time: the vertex of the floats loses mass.
    cell = Cell.whole(2).split(0, 1, 0.2)[1].split(0, 1, 0.75)[0]
    for _ in range(1000):
        cell = cell.split(0, 1, 0.75 * UNIT_ROUNDOFF)[1]
    assert sum(cell.floats[0]) < 1 - 500 * UNIT_ROUNDOFF
    vertices, depths = np.array([cell.floats]), np.array([cell.depths])
    places = np.zeros((1, 1), dtype=np.intp)
    nu, delta = INEQUALITIES(vertices, depths, places, np.zeros((1, 2)))
    with balls.precision():
        needed = missing([cell], [[arb(x) for x in nu[0, 0].tolist()]])
        assert arb(float(delta[0])) >= needed > 500 * UNIT_ROUNDOFF
    shallow = INEQUALITIES(vertices, 0 * depths, places, np.zeros((1, 2)))[1]
    assert shallow[0] < 100 * UNIT_ROUNDOFF


def test_batches_do_not_change_what_is_proved() -> None:
    proof, rng = proof_of(LUMPED["rounded"]), np.random.default_rng(4)
    cells = [random_cells(proof, rng) for _ in range(40)]
    leaves = [[0.3, *rng.exponential(0.1, proof.width - 1).tolist()] for _ in cells]
    with balls.precision():
        together = proof.values_of(cells, leaves)
        proof.chunk = 7
        assert [str(x) for x in proof.values_of(cells, leaves)] == [str(x) for x in together]
        proof.chunk = 1
        assert [str(x) for x in proof.values_of(cells, leaves)] == [str(x) for x in together]
        assert any(x.is_exact() for x in together)


def test_whole_trees_prove_in_floats_what_they_prove_in_balls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mechanism = Mechanism(count(6), random_rounding(6, base=3))
    bound = record_leakage(mechanism, 3.5, records=0)
    assert bound.certificate is not None
    (group,) = bound.certificate.proof["groups"]
    lumped = mechanism.lumped(0)
    with balls.precision():
        in_floats = cells_bound(lumped, 3.5, group["cells"])
        monkeypatch.setattr(posterior_cells, "ALLOWANCE", -1.0)
        in_balls = cells_bound(lumped, 3.5, group["cells"])
    assert in_floats == bound.upper
    assert in_balls != in_floats  # the floats were used
    assert abs(in_floats - in_balls) < 1e-12
