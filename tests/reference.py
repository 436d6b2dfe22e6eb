"""What tests of several rooms compare with: closed forms and definitions, not the package."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import entr

from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace

LOG2 = math.log(2)


def binary_entropy(p: float) -> float:
    return float(entr(p) + entr(1 - p))


def information(joint: np.ndarray) -> np.ndarray:
    """I of a joint law, from its cells and its margins; of several, along the last two axes."""
    rows, columns = (entr(joint.sum(axis=axis)).sum(axis=-1) for axis in (-1, -2))
    return rows + columns - entr(joint).sum(axis=(-2, -1))


def symmetric(m: int, flip: float) -> np.ndarray:
    """The rows of the m-ary symmetric channel."""
    return np.where(np.eye(m, dtype=bool), 1 - flip, flip / (m - 1))


def modular(n: int, m: int, flip: float) -> Mechanism:
    """The sum of n bits modulo m through the symmetric channel."""
    query = AdditiveQuery(RecordSpace.binary(n), [(0, 1)] * n, modulus=m)
    return Mechanism(query, symmetric(m, flip))


def rounded_count(n: int, base: int) -> Mechanism:
    """A count of n people, rounded at random to a multiple of the base."""
    matrix = np.zeros((n + 1, n // base + 2))
    for count in range(n + 1):
        low, rest = divmod(count, base)
        matrix[count, low] = 1 - rest / base
        matrix[count, low + 1] += rest / base
    query = AdditiveQuery(RecordSpace.binary(n), [(0, 1)] * n)
    return Mechanism(query, matrix[:, matrix.any(axis=0)])


def rounded_table(people: int, total: bool) -> Mechanism:
    """Two of three cells, perhaps with their total, each rounded at random to base 3."""
    query = AdditiveQuery(RecordSpace([range(3)] * people), [[(1, 0), (0, 1), (0, 0)]] * people)
    noise = rounded_count(people, 3).channel.matrix
    rows = []
    for one, two in query.values:
        row = np.kron(noise[one], noise[two])
        rows.append(np.kron(row, noise[one + two]) if total else row)
    matrix = np.array(rows)
    return Mechanism(query, matrix[:, matrix.max(axis=0) > 0])


def parity_leakage(n: int, flip: float, floor: float) -> float:
    """Exact L(b) of the parity of n >= 2 bits: a plateau up to (n - 1) log 2, then falling."""
    doubt = floor - (n - 1) * LOG2
    if doubt <= 0:
        return LOG2 - binary_entropy(flip)
    # At full doubt rounding may leave no sign change; then alpha is 1/2.
    inside = doubt < LOG2 - 1e-12
    alpha = brentq(lambda a: binary_entropy(a) - doubt, 0, 0.5) if inside else 0.5
    return LOG2 - binary_entropy(alpha * (1 - flip) + (1 - alpha) * flip)
