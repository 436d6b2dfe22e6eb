"""Symmetries: found where they are, they change no information, and cost the bound nothing."""

from __future__ import annotations

import copy
import math
import tracemalloc

import numpy as np
import pytest

from cvxleak.audit import record_leakage
from cvxleak.audit.search import CellSearch, find_symmetries
from cvxleak.audit.search.symmetries import Symmetry, gains, largest_multiplicities, moved_groups
from cvxleak.exact.packing import pack, unpack
from cvxleak.iterative import joint_blahut_arimoto
from cvxleak.measures import lumped_entropy, lumped_information
from cvxleak.model import AdditiveQuery, Lumped, Mechanism, RecordSpace
from cvxleak.problem.bound import Status
from cvxleak.proofs import Certificate, verify
from cvxleak.queries import count


def sum_with(values: int, m: int, flip: float = 0.2) -> Mechanism:
    """Sum modulo m of a record with some values and one that takes all m: equal multiplicities."""
    space = RecordSpace([range(values), range(m)])
    query = AdditiveQuery(space, [tuple(range(values)), tuple(range(m))], modulus=m)
    noise = np.full((m, m), flip / (m - 1))
    np.fill_diagonal(noise, 1 - flip)
    return Mechanism(query, noise)


def posteriors(lumped: Lumped, w: np.ndarray) -> np.ndarray:
    joint = np.add.reduceat(w[:, None] * lumped.rows, lumped.starts)
    return (joint / joint.sum(axis=0)).T


@pytest.mark.parametrize(("values", "m"), [(2, 2), (2, 4), (3, 3), (4, 4)])
def test_symmetries_keep_information_and_entropy_and_move_posteriors(values, m):
    lumped = sum_with(values, m).lumped(0)
    symmetries = find_symmetries(lumped)
    assert len(symmetries) >= math.comb(m, 2)
    rng = np.random.default_rng(values)
    gained = gains(symmetries, values, m)
    order = np.outer(np.arange(m, 0, -1), np.arange(values))
    for one, gain in zip(symmetries, gained, strict=True):
        move = moved_groups(lumped, one)
        w = rng.dirichlet(np.ones(len(lumped.rows)))
        moved = np.empty_like(w)
        moved[move] = w
        assert lumped_information(moved, lumped) == pytest.approx(lumped_information(w, lumped))
        assert lumped_entropy(moved, lumped) == pytest.approx(lumped_entropy(w, lumped))
        before, after = posteriors(lumped, w), posteriors(lumped, moved)
        assert np.allclose(after[np.ix_(one.outputs, one.values)], before)
        difference = (order * before).sum() - (order * after).sum()
        assert difference == pytest.approx((gain * before).sum())


def test_what_is_no_symmetry_is_not_found():
    rows = np.random.default_rng(0).dirichlet(np.ones(3), size=6)
    lumped = Mechanism.from_channel(RecordSpace([(0, 1), range(3)]), rows).lumped(0)
    assert find_symmetries(lumped) == []
    assert moved_groups(lumped, Symmetry((1, 0), (0, 1, 2))) is None
    assert moved_groups(lumped, Symmetry((0, 0), (0, 1, 2))) is None
    assert moved_groups(lumped, Symmetry((0, 1), (0, 1, 1))) is None
    # Rows that are permuted but counted differently: no symmetry of the problem.
    query = AdditiveQuery(RecordSpace.binary(5), [(0, 1)] * 5, modulus=4)
    counted = Mechanism(query, sum_with(2, 4).channel.matrix).lumped(0)
    assert all(one.outputs != (1, 0, 2, 3) for one in find_symmetries(counted))


def test_largest_multiplicities_of_orbits():
    lumped = sum_with(2, 3).lumped(0)
    counted = Lumped(
        lumped.values, lumped.outputs, lumped.value_index, lumped.rows,
        [5, 7, 6, 1, 2, 3], lumped.contexts,
    )  # fmt: skip
    turn = moved_groups(counted, Symmetry((0, 1), (1, 2, 0)))
    assert turn is not None
    assert largest_multiplicities(counted, [turn]) == (7, 7, 7, 3, 3, 3)
    assert largest_multiplicities(counted, []) == counted.multiplicities


@pytest.mark.parametrize(("values", "m"), [(2, 3), (2, 4), (3, 3)])
@pytest.mark.parametrize("share", [0.7, 0.8])
def test_symmetry_saves_nodes_and_changes_no_bound(values, m, share):
    lumped = sum_with(values, m, 0.1).lumped(0)
    floor = share * lumped.max_entropy
    attained = joint_blahut_arimoto(lumped, floor).value
    target = attained + (3e-3 if values == 2 else 0.2)

    def search(symmetries):
        tree = CellSearch(lumped, floor, symmetries=symmetries)
        tree.run(
            lambda: target,
            resolution=1e-4,
            stop=lambda: False,
            on_weights=lambda weights: None,
            node_limit=5000,
        )
        return tree

    without, within = search(()), search(find_symmetries(lumped))
    assert without.upper <= target
    assert attained - 1e-9 <= within.upper <= target
    assert within.nodes < without.nodes


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    bound = record_leakage(sum_with(2, 4), 1.9, records=0, tol=1e-3)
    assert bound.status is Status.CERTIFIED
    assert bound.certificate is not None
    return bound.certificate


def cover_of(proof):
    (cover,) = [term for term in proof["groups"][0] if "symmetries" in term]
    return cover


def changed(certificate: Certificate, **cells) -> Certificate:
    proof = copy.deepcopy(dict(certificate.proof))
    cover_of(proof).update(cells)
    names = ("kind", "problem", "lower", "upper", "witness", "versions")
    return Certificate(**{name: getattr(certificate, name) for name in names}, proof=proof)


def test_a_certificate_with_symmetries_passes_and_each_part_matters(certificate):
    assert verify(certificate).passed
    cells = cover_of(certificate.proof)
    leaves = unpack(cells["leaves"])
    table = unpack(cells["symmetries"])
    superfluous = np.flatnonzero(leaves[:, 0] < 0)
    assert len(superfluous) > 0
    # A leaf that is needed, called superfluous by any of the symmetries.
    needed = np.flatnonzero(leaves[:, 0] >= 0)
    for place in needed[:: max(1, len(needed) // 4)]:
        for one in range(0, len(table), 5):
            wrong = leaves.copy()
            wrong[place] = 0
            wrong[place, 0] = -1 - one
            answer = verify(changed(certificate, leaves=pack(wrong)))
            # Some leaves may really be left out, as may those that the search bounded first.
            assert answer.passed or "a leaf is missing" in answer.reason
    for value in (-0.5, -1 - len(table), -np.inf):
        wrong = leaves.copy()
        wrong[superfluous[0], 0] = value
        assert not verify(changed(certificate, leaves=pack(wrong))).passed
    for bad in (table[:-1] * 0, table[:, :-1], np.roll(table, 1, axis=1), table + 1):
        answer = verify(changed(certificate, symmetries=pack(bad, "<i4")))
        assert not answer.passed
    # Nothing is superfluous without symmetries.
    bare = copy.deepcopy(dict(certificate.proof))
    del cover_of(bare)["symmetries"]
    names = ("kind", "problem", "lower", "upper", "witness", "versions")
    parts = {name: getattr(certificate, name) for name in names}
    assert not verify(Certificate(**parts, proof=bare)).passed


def test_a_symmetry_of_other_rows_is_refused(certificate):
    problem = copy.deepcopy(dict(certificate.problem))
    problem["mechanism"]["channel"]["matrix"][0] = [0.7, 0.1, 0.1, 0.1]
    names = ("kind", "lower", "upper", "witness", "proof", "versions")
    parts = {name: getattr(certificate, name) for name in names}
    assert "no symmetry of the rows" in verify(Certificate(**parts, problem=problem)).reason


def test_a_mixture_of_symmetric_adversaries_bounds_the_rest():
    """The tree with symmetries bounds adversaries in every region, by their mirror images."""
    mechanism = sum_with(3, 3, 0.15)
    lumped = mechanism.lumped(0)
    bound = record_leakage(mechanism, 1.8, records=0, tol=0.15)
    rng = np.random.default_rng(5)
    seen = 0
    for w in rng.dirichlet(np.full(len(lumped.rows), 0.4), size=1000):
        if lumped_entropy(w, lumped) >= 1.8:
            seen += 1
            assert lumped_information(w, lumped) <= bound.upper + 1e-12
    assert seen > 50


def test_many_outputs_take_little_memory():
    # All exchanges of two of 600 outputs would be 180,000 lists of 600.
    lumped = Mechanism(count(2), np.random.default_rng(0).dirichlet(np.ones(600), 3)).lumped(0)
    tracemalloc.start()
    assert find_symmetries(lumped) == []
    assert tracemalloc.get_traced_memory()[1] < 50e6
    tracemalloc.stop()
