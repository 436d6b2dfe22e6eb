"""The floor up to which a record can be disclosed completely, against all ways to do it."""

import math
from itertools import product

import numpy as np
import pytest

from cvxleak import verify
from cvxleak.audit import record_leakage, total_disclosure
from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.mechanisms import binary_symmetric, random_rounding
from cvxleak.model import ChannelSet, Gaussian, Mechanism, RecordSpace
from cvxleak.queries import count, parity
from tests.reference import rounded_table


def by_enumeration(mechanism, group):
    """Return the largest floor over all ways to give the outputs to values."""
    lumped = mechanism.lumped(group)
    k, best = len(lumped.values), -math.inf
    for owners in product(range(k), repeat=lumped.rows.shape[1]):
        held = [0] * k
        for a, row, m in zip(lumped.value_index, lumped.rows, lumped.multiplicities, strict=True):
            if all(owners[y] == a for y in np.flatnonzero(row)):
                held[a] += m
        if all(held):
            best = max(best, math.log(k) + sum(map(math.log, held)) / k)
    return best


@pytest.mark.parametrize("seed", range(12))
def test_random_mechanisms(seed):
    rng = np.random.default_rng(seed)
    shape = [(2, 3), (3, 2), (2, 2, 2)][seed % 3]
    rows = rng.dirichlet(np.ones(6), math.prod(shape)) * (rng.random((math.prod(shape), 6)) < 0.35)
    rows[np.arange(len(rows)), rng.integers(6, size=len(rows))] += 0.1
    mechanism = Mechanism.from_channel(
        RecordSpace(list(map(range, shape))), rows / rows.sum(axis=1, keepdims=True)
    )
    exact = max(by_enumeration(mechanism, (i,)) for i in range(len(shape)))
    if exact == -math.inf:
        with pytest.raises(InfeasibleError, match="no adversary learns"):
            total_disclosure(mechanism)
        return
    bound = total_disclosure(mechanism, tol=1e-9)
    assert bound.lower <= exact + 1e-12
    assert exact <= bound.upper + 1e-12
    assert bound.gap <= 1e-7
    assert verify(bound.certificate).passed
    assert bound.witness.entropy == pytest.approx(exact, abs=1e-9)
    assert bound.witness.leakage == pytest.approx(
        math.log(len(bound.witness.lumped.values)), abs=1e-9
    )


@pytest.mark.parametrize("n", [3, 6, 9])
def test_the_leakage_is_the_largest_up_to_there_and_less_beyond(n):
    mechanism = Mechanism(count(n), random_rounding(n, base=3))
    edge = total_disclosure(mechanism)
    assert edge.lower == pytest.approx(by_enumeration(mechanism, (0,)), abs=1e-9)
    assert record_leakage(mechanism, edge.lower).lower == pytest.approx(math.log(2), abs=1e-6)
    assert record_leakage(mechanism, edge.upper + 0.1).upper < math.log(2) - 1e-3


def test_tables():
    mechanism = rounded_table(4, True)
    found = total_disclosure(mechanism)
    assert found.gap <= 1e-6 * found.upper
    assert verify(found.certificate).passed
    assert record_leakage(mechanism, found.lower).lower == pytest.approx(math.log(3), abs=1e-6)
    # Without the total there is less to tell by.
    assert total_disclosure(rounded_table(4, False)).upper <= found.upper + 1e-9


def test_closed_forms():
    shown = Mechanism(parity(5), np.eye(2))
    assert total_disclosure(shown).lower == pytest.approx(4 * math.log(2), abs=1e-9)
    assert total_disclosure(shown, (0, 1, 2, 3, 4)[:1]).upper == pytest.approx(
        4 * math.log(2), abs=1e-9
    )
    with pytest.raises(InfeasibleError):
        total_disclosure(Mechanism(parity(3), binary_symmetric(0.1)))
    with pytest.raises(InfeasibleError):  # the parity of two does not say which of four they are
        total_disclosure(shown, (0, 1))


def test_bad_input():
    with pytest.raises(ValidationError, match="mechanism"):
        total_disclosure(np.eye(2))
    with pytest.raises(ValidationError, match="tol"):
        total_disclosure(Mechanism(parity(3), np.eye(2)), tol=-1)
    with pytest.raises(ValidationError, match="records"):
        total_disclosure(Mechanism(parity(3), np.eye(2)), 7)
    wide = ChannelSet(np.eye(4) * 0.9, np.eye(4) * 0.9 + 0.1)
    for noise in (wide, Gaussian(1.0)):
        with pytest.raises(ValidationError, match="one channel with finitely many"):
            total_disclosure(Mechanism(count(3), noise))
