"""Brute force that the mechanisms are held against: slow, obvious, and independent of them."""

import math
from itertools import permutations, product

import numpy as np
import pytest
from scipy.special import rel_entr


def blahut_arimoto(rows, gap=1e-8):
    """Bracket the Shannon capacity of a small channel."""
    rows = np.asarray(rows, dtype=float)
    p = np.full(len(rows), 1 / len(rows))
    for _ in range(200_000):
        divergence = rel_entr(rows, p @ rows).sum(axis=1)
        lower, upper = float(p @ divergence), float(divergence.max())
        if upper - lower <= gap:
            return lower, upper
        p = p * np.exp(divergence - upper)
        p /= p.sum()
    raise AssertionError(f"capacity between {lower} and {upper}")


@pytest.fixture(scope="session")
def capacity():
    return lambda rows: blahut_arimoto(rows)[1]


@pytest.fixture(scope="session")
def individual_capacity():
    """C_1 of a mechanism on a small space (DALENIUS Theorem 2): every choice of one row a value."""

    def c_1(mechanism):
        table = mechanism.to_channel().matrix.reshape(*mechanism.space.shape, -1)
        best = 0.0
        for record in range(mechanism.space.records):
            by_value = np.moveaxis(table, record, 0)
            choices = [
                np.unique(contexts.reshape(-1, contexts.shape[-1]), axis=0) for contexts in by_value
            ]
            for rows in product(*choices):
                best = max(best, blahut_arimoto(rows)[0])
        return best

    return c_1


def level(rows):
    """The smallest epsilon with q(y|x) <= e^epsilon q(y|x') for all pairs of these rows."""
    worst = 0.0
    for first, second in permutations(rows, 2):
        for p, q in zip(first, second, strict=True):
            if p > 0:
                worst = max(worst, math.log(p / q) if q > 0 else math.inf)
    return worst


@pytest.fixture(scope="session")
def local_level():
    return lambda channel: level(channel.matrix)


@pytest.fixture(scope="session")
def record_level():
    """The level of differential privacy: pairs of datasets that differ in one record."""

    def dp(mechanism):
        table = mechanism.to_channel().matrix.reshape(*mechanism.space.shape, -1)
        worst = 0.0
        for record in range(mechanism.space.records):
            for rows in np.moveaxis(table, record, -2).reshape(
                -1, mechanism.space.shape[record], table.shape[-1]
            ):
                worst = max(worst, level(rows))
        return worst

    return dp
