"""Time sharing by tangents alone: sharp near log|X|, valid at every floor, for any table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak.audit import leakage_curve, record_leakage
from cvxleak.audit.search.tangents import by_tangents, largest_contraction
from cvxleak.core.clock import Clock, Stop
from cvxleak.iterative import joint_blahut_arimoto
from cvxleak.iterative.joint_update import Relaxed, ascend
from cvxleak.measures import lumped_entropy, lumped_information
from cvxleak.mechanisms import random_rounding
from cvxleak.model import AdditiveQuery, Channel, Lumped, Mechanism, RecordSpace
from cvxleak.problem.bound import Status
from cvxleak.proofs import verify


def table(people: int, total: bool) -> Mechanism:
    """Return two of three cells, perhaps with their total, each rounded at random to base 3."""
    query = AdditiveQuery(RecordSpace([range(3)] * people), [[(1, 0), (0, 1), (0, 0)]] * people)
    noise = random_rounding(people, base=3).matrix
    rows = []
    values: tuple[Any, ...] = query.values
    for one, two in values:
        row = np.kron(noise[one], noise[two])
        rows.append(np.kron(row, noise[one + two]) if total else row)
    matrix = np.array(rows)
    return Mechanism(query, Channel(matrix[:, matrix.max(axis=0) > 0], query.values))


def problem(seed: int, values: int, contexts: int, outputs: int) -> Lumped:
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(outputs, 0.5), size=values * contexts)
    space = RecordSpace([range(values), range(contexts)])
    return Mechanism.from_channel(space, rows).lumped(0)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), k=st.integers(2, 4), more=st.sampled_from([0.0, 0.1, 1.0]))
def test_the_bound_is_attained_at_a_floor_of_its_own(seed, k, more):
    lumped = problem(seed, k, 4, 3)
    lam = largest_contraction(lumped) + more
    updater = Relaxed(lumped, lam)
    start = np.random.default_rng(seed).dirichlet(np.ones(len(lumped.rows)))
    current = updater.update(updater.joint(start[None]), np.ones(1), np.ones(1))
    values = [current.value[0]]
    ascend(
        updater,
        current,
        None,
        max_updates=2000,
        least_gain=1e-14,
        watch=lambda current, step: values.append(current.value[0]),
    )
    assert (np.diff(values) >= -1e-13).all()
    weights = current.weights[0]
    known, doubt = lumped_information(weights, lumped), lumped_entropy(weights, lumped)
    assert values[-1] == pytest.approx(known + lam * doubt, abs=1e-12)
    # This adversary is a worst one at the floor of their own entropy, and lam is the price there.
    found = joint_blahut_arimoto(lumped, doubt, starts=6, rng=0, max_iterations=500)
    assert found.value == pytest.approx(known, abs=1e-7)
    for floor in (doubt, 0.5 * doubt, 0.5 * (doubt + lumped.max_entropy)):
        search = by_tangents(lumped, floor, lumped.uniform(), lam, 2000, Stop(Clock()))
        assert search.upper == pytest.approx(known + lam * (doubt - floor), abs=1e-6)
        attained = joint_blahut_arimoto(lumped, floor, starts=6, rng=0, max_iterations=300)
        assert attained.value <= search.upper + 1e-12


@pytest.mark.parametrize(("total", "share"), [(True, 0.98), (True, 0.999), (False, 0.99)])
def test_tables_near_the_largest_entropy(total, share):
    mechanism = table(12, total)
    bound = record_leakage(mechanism, share * 12 * math.log(3), tol=0.01)
    assert bound.status is Status.CERTIFIED
    assert bound.certificate is not None
    answer = verify(bound.certificate)
    assert answer.passed
    # No tree for any value.
    assert set(answer.rules["upper"]) == {"max", "close", "alphabet", "share", "blocks"}


def test_a_curve_of_a_table_uses_them():
    floors = [share * 6 * math.log(3) for share in (0.97, 0.99, 0.999)]
    curve = leakage_curve(table(6, True), floors, records=0, tol=0.02)
    alone = [record_leakage(table(6, True), floor, 0, tol=0.02) for floor in floors]
    for bound, other in zip(curve.bounds, alone, strict=True):
        assert bound.status is Status.CERTIFIED
        assert max(bound.lower, other.lower) <= min(bound.upper, other.upper)
        assert bound.certificate is not None
        assert "share" in verify(bound.certificate).rules["upper"]
