"""What the data of an entry describe, by NumPy alone, and programs that are solved sharply."""

from __future__ import annotations

import itertools
import math
import runpy
import warnings
from pathlib import Path

import cvxpy as cp
import numpy as np
from scipy.special import entr

BIT = math.log(2)
LINEAR = 1e-8  # of a linear program's value, with feasibility to 1e-10
CONIC = 1e-7  # of a program with exponential cones, with a gap of 1e-9 or 1e-8
ROUNDING = 1e-12
RULES = runpy.run_path(str(Path(__file__).with_name("rules.py")))["RULES"]


class UnknownTruthError(Exception):
    """An entry that nothing here can solve."""


def around(value, tolerance):
    return float(value - tolerance), float(value + tolerance)


def binary_entropy(p):
    return float(entr(p) + entr(1 - p))


def linear(objective, constraints):
    """Return the least value of a linear program, inf if nothing is feasible."""
    problem = cp.Problem(cp.Minimize(objective), constraints)
    sharp = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    with warnings.catch_warnings(action="ignore"):  # CVXPY multiplies bounds 0 by infinite ones
        problem.solve(solver=cp.HIGHS, **sharp)
    if problem.status == cp.INFEASIBLE:
        return math.inf
    assert problem.status == cp.OPTIMAL, problem.status
    return float(problem.value)


def conic(objective, constraints):
    """Return the least value of a convex program, inf if nothing is feasible."""
    problem = cp.Problem(cp.Minimize(objective), constraints)
    for digits in (1e-9, 1e-8):  # not every program is solved to nine
        sharp = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), digits)
        with warnings.catch_warnings(action="ignore"):
            problem.solve(solver=cp.CLARABEL, **sharp)
        if problem.status in (cp.OPTIMAL, cp.INFEASIBLE):
            return float(problem.value)
    raise UnknownTruthError(problem.status)


def stochastic(rows, columns):
    """Return the variable of a channel, and what makes it one."""
    q = cp.Variable((rows, columns), nonneg=True)
    return q, [cp.sum(q, axis=1) == 1]


def total(terms):
    return cp.sum(cp.hstack([cp.sum(term) for term in terms]))


# What data describe


def matrix(data):
    """Return a channel's rows."""
    if not isinstance(data, dict):
        return np.array(data, dtype=float)
    kind = data["is"]
    if kind in ("randomized_response", "generalized_symmetric", "binary_symmetric", "identity"):
        k = data.get("k", 2)
        flip = data.get("flip", 0.0)
        if kind == "randomized_response":
            flip = (k - 1) / (math.exp(data["epsilon"]) + k - 1)
        return np.where(np.eye(k, dtype=bool), 1 - flip, flip / (k - 1))
    if kind == "random_rounding":
        n, base = data["n"], data["base"]
        rows = np.zeros((n + 1, n // base + 2))
        for count in range(n + 1):
            low, rest = divmod(count, base)
            rows[count, low : low + 2] = 1 - rest / base, rest / base
        return rows[:, rows.any(axis=0)]
    if kind == "truncated_geometric":
        z = np.arange(data["n"] + 1)
        ratio = math.exp(-data["epsilon"])
        rows = (1 - ratio) / (1 + ratio) * ratio ** np.abs(z[:, None] - z)
        rows[:, [0, -1]] /= 1 - ratio
        return rows
    raise UnknownTruthError(kind)


def cost(data, rows, outputs=None):
    """Return a distortion's matrix; of a name, between the numbers 0, 1, ... or what is given."""
    if data is not None and not isinstance(data, str):
        return np.array(data, dtype=float)
    of, to = np.arange(rows), np.arange(rows) if outputs is None else np.array(outputs)
    apart = np.abs(of[:, None] - to).astype(float)
    return {"absolute": apart, "squared": apart**2}.get(data, (apart > 0).astype(float))


def laws(data):
    """Return the convex parts of a set of distributions, each by its vertices."""
    if isinstance(data, list):
        return [np.array([law], dtype=float) for law in data]
    kind = data["is"]
    if kind == "laws":
        return laws(data["laws"])
    if kind == "hull":
        return [np.array(data["laws"], dtype=float)]
    if kind == "union":
        return [part for one in data["parts"] for part in laws(one)]
    if kind == "box":
        return [box(np.array(data["lower"]), np.array(data["upper"]))]
    return [vertices(np.array(data["matrix"], dtype=float), np.array(data["bound"], dtype=float))]


def box(lower, upper):
    """Return the vertices of the distributions between two bounds: all but one entry at a bound."""
    found = []
    for free in range(len(lower)):
        ends = [(0.0,) if i == free else (lower[i], upper[i]) for i in range(len(lower))]
        points = np.array(list(itertools.product(*ends)))
        points[:, free] = 1 - points.sum(axis=1)
        inside = (points[:, free] >= lower[free] - ROUNDING) & (
            points[:, free] <= upper[free] + ROUNDING
        )
        found.append(points[inside])
    return np.unique(np.round(np.maximum(np.vstack(found), 0.0), 14), axis=0)


def vertices(rows, sides):
    """Return the vertices of the distributions p with rows p <= sides."""
    k = rows.shape[1]
    rows, sides = np.vstack([rows, -np.eye(k)]), np.append(sides, np.zeros(k))
    found = []
    for tight in itertools.combinations(range(len(rows)), k - 1):
        system = np.vstack([rows[list(tight)], np.ones(k)])
        if abs(np.linalg.det(system)) > 1e-9:
            point = np.linalg.solve(system, np.append(sides[list(tight)], 1.0))
            if (rows @ point <= sides + 1e-12).all():
                found.append(np.maximum(point, 0.0))
    return np.unique(np.round(found, 14), axis=0)


def query(data):
    """Return the alphabets of a query, and the index of its value for each dataset."""
    kind = data["is"]
    if kind == "table":
        alphabets, values = data["alphabets"], np.ravel(data["values"]).tolist()
    elif kind == "additive":
        alphabets = data["alphabets"]
        sums = [sum(parts) for parts in itertools.product(*data["contributions"])]
        values = [one % data["modulus"] for one in sums] if "modulus" in data else sums
    else:
        alphabets = [[0, 1]] * data["n"]
        sums = [sum(bits) for bits in itertools.product(*alphabets)]
        modulus = {"parity": 2}.get(kind, data.get("modulus", data["n"] + 1))
        values = [s * (s - 1) // 2 if kind == "pair_sum" else s % modulus for s in sums]
    numbers = all(isinstance(value, int | float) for value in values)
    order = sorted(set(values)) if numbers else list(dict.fromkeys(values))
    return [len(one) for one in alphabets], np.array([order.index(value) for value in values])


def rules(data, q):
    """Return a user's own constraints."""
    found = []
    for rule in data:
        rest = {name: value for name, value in rule.items() if name not in ("is", "name")}
        found += RULES[rule["name"]](q, **rest)
    return found
