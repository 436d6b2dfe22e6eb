"""Leaves of cells in floats: what is allowed for rounding holds against ball arithmetic."""

import math

import numpy as np
import pytest
from flint import arb

from cvxleak.certificates import balls
from cvxleak.certificates.cell_floats import exponential
from cvxleak.certificates.outward import UNIT_ROUNDOFF
from cvxleak.certificates.posterior_cells import Cell, CellProof
from cvxleak.measures import lumped_entropy, lumped_information
from cvxleak.mechanisms import random_rounding, truncated_geometric
from cvxleak.model import Lumped, Mechanism, RecordSpace
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
