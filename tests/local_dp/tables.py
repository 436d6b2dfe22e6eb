"""HAMMING's tables, and the plain linear programs that everything is compared with."""

import math

import numpy as np
from scipy.optimize import linprog

SIX = [0.7, 0.15, 0.06, 0.04, 0.03, 0.02]
TEN = [
    [0.3, 0.2, 0.15, 0.08, 0.07, 0.06, 0.05, 0.04, 0.03, 0.02],
    [0.35, 0.16, 0.12, 0.10, 0.09, 0.09, 0.05, 0.02, 0.01, 0.01],
]


def swapped(law, j):
    law = list(law)
    law[0], law[j] = law[j], law[0]
    return law


def class_three(n):
    """HAMMING Table III: set a for n = 1, b for n = 2, c for n = 3."""
    return [swapped(SIX, j) for j in range(n + 1)]


def plain_distortion(P, d, ratio):
    """Return the least worst-case distortion by the full linear program t <= Q <= ratio t."""
    P, d = np.atleast_2d(P), np.asarray(d, dtype=float)
    k, m = d.shape
    n = k * m + m + 1
    rows = []
    for p in P:
        row = np.zeros(n)
        row[: k * m], row[-1] = (p[:, None] * d).ravel(), -1
        rows.append(row)
    for i in range(k):
        for j in range(m):
            low, high = np.zeros(n), np.zeros(n)
            low[i * m + j], low[k * m + j] = -1, 1
            high[i * m + j], high[k * m + j] = 1, -ratio
            rows += [low, high]
    sides = np.zeros(len(rows))
    whole = np.hstack([np.repeat(np.eye(k), m, axis=1), np.zeros((k, m + 1))])
    cost = np.zeros(n)
    cost[-1] = 1
    bounds = [(0, None)] * (n - 1) + [(None, None)]
    answer = linprog(cost, np.array(rows), sides, whole, np.ones(k), bounds)
    assert answer.status == 0
    return float(answer.fun)


def plain_epsilon(P, d, budget, digits=1e-9):
    """Return the least epsilon by bisection over that."""
    if plain_distortion(P, d, 1.0) <= budget + 1e-12:
        return 0.0
    low, high = 0.0, 20.0
    while high - low > digits:
        middle = (low + high) / 2
        if plain_distortion(P, d, math.exp(middle)) <= budget:
            high = middle
        else:
            low = middle
    return high
