"""Bounds without a tree: the whole dataset, and tangents of time sharing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cvxleak.audit import leakage_curve, record_leakage
from cvxleak.audit.worst_adversary.tangent import Tangent
from cvxleak.capacities import capacity
from cvxleak.iterative import joint_blahut_arimoto
from cvxleak.model import Mechanism, RecordSpace
from cvxleak.problem import Status
from cvxleak.proofs import verify
from tests.audit.worst_adversary.statements import stated
from tests.reference import rounded_table


def random_mechanism(seed: int, values: int, contexts: int, outputs: int) -> Mechanism:
    rows = np.random.default_rng(seed).dirichlet(np.ones(outputs), size=values * contexts)
    return Mechanism.from_channel(RecordSpace([range(values), range(contexts)]), rows)


@pytest.mark.parametrize("k", [2, 3])
def test_they_hold_whenever_they_are_stopped(k):
    mechanism = random_mechanism(5, k, 6, 5)
    floor = 0.5 * mechanism.space.max_entropy
    problem = stated(mechanism, floor)
    attained = joint_blahut_arimoto(problem.group.lumped, floor, rng=0).value
    weights = problem.group.lumped.uniform()
    for steps in (0, 1, 5, 1000):
        for whole in (False, True):
            calls = iter(range(10**6))

            def stop(calls=calls, steps=steps):
                return next(calls) >= steps

            if whole:
                found = Tangent.of_dataset(problem.group, weights, 0.0, stop)
            else:
                found = Tangent.of(problem.group, weights, 0.0, 0.0, stop)
            assert attained <= problem.proved(found.term()) <= found.upper + 1e-9


def test_all_that_the_output_says_of_the_dataset():
    mechanism = random_mechanism(1, 4, 6, 5)
    problem = stated(mechanism, 0.0)
    uniform = problem.group.lumped.uniform()
    found = Tangent.of_dataset(problem.group, uniform, 0.0, lambda: False)
    least = capacity(mechanism.to_channel()).lower
    assert least <= found.upper <= least + 1e-5


@pytest.mark.parametrize(("total", "share"), [(True, 0.98), (False, 0.99)])
def test_tables_near_the_largest_entropy(total, share):
    bound = record_leakage(rounded_table(12, total), share * 12 * math.log(3), tol=0.01)
    assert bound.status is Status.CERTIFIED
    assert bound.certificate is not None
    answer = verify(bound.certificate)
    assert answer.passed
    # No tree for any value.
    assert "contraction" in answer.rules["upper"]
    assert not {"cells", "ratio"} & set(answer.rules["upper"])


def test_a_curve_of_a_table_uses_tangents():
    floors = [share * 6 * math.log(3) for share in (0.97, 0.99, 0.999)]
    curve = leakage_curve(rounded_table(6, True), floors, records=0, tol=0.02)
    for bound, floor in zip(curve.bounds, floors, strict=True):
        other = record_leakage(rounded_table(6, True), floor, 0, tol=0.02)
        assert bound.status is Status.CERTIFIED
        assert max(bound.lower, other.lower) <= min(bound.upper, other.upper)
