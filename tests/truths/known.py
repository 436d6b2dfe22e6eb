"""Truths of the bank by other means than cvxleak: closed forms, enumeration, SciPy and CVXPY.

Each function of `TRUTHS` takes an entry's data and returns an interval that holds the true value.
It is written from the definition of the problem, and either has the tolerance of the solver or ends
between a primal and a dual value of its own. `python -m tests.truths.known [FAMILY ...]` computes
the truths anew and says which of them do not meet those in the files.
"""

from __future__ import annotations

import itertools
import json
import math
import runpy
import sys
import warnings
from pathlib import Path

import cvxpy as cp
import numpy as np
from scipy.optimize import brentq
from scipy.special import entr, rel_entr

HERE = Path(__file__).parent
BIT = math.log(2)
LINEAR = 1e-8  # of a linear program's value, with feasibility to 1e-10
CONIC = 1e-7  # of a program with exponential cones, with a gap of 1e-9 or 1e-8
ROUNDING = 1e-12
RULES = runpy.run_path(str(HERE / "rules.py"))["RULES"]


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


# Capacities


def shannon(rows, corners=None):
    """Bound the largest information of distributions of the input, mixtures of the corners."""
    rows = np.array(rows, dtype=float)
    corners = np.eye(len(rows)) if corners is None else np.array(corners, dtype=float)
    doubt = entr(rows).sum(axis=1)
    shares = cp.Variable(len(corners), nonneg=True)
    law = corners.T @ shares
    try:
        conic(law @ doubt - cp.sum(cp.entr(rows.T @ law)), [cp.sum(shares) == 1])
        weights = np.maximum(shares.value, 1e-12)
    except UnknownTruthError:  # a start is all that is needed
        weights = np.ones(len(corners))
    best, least = 0.0, math.inf
    for _ in range(4000):
        weights = weights / weights.sum()
        output = weights @ corners @ rows
        gains = corners @ rel_entr(rows, output).sum(axis=1)
        best, least = max(best, float(weights @ gains)), min(least, float(gains.max()))
        if least - best < ROUNDING:
            break
        weights = weights * np.exp(gains - gains.max())
    return best - ROUNDING, least + ROUNDING


def capacity(data):
    given = data["channel"]
    if not (isinstance(given, dict) and given["is"] in ("printed", "channel_set")):
        return shannon(matrix(given))
    lower, upper = limits(given)
    k, m = lower.shape
    q, proper = stochastic(k, m)
    t, inside = cp.Variable(m, nonneg=True), [q >= lower, q <= upper]
    far = cp.max(cp.hstack([cp.sum(cp.rel_entr(q[x], t)) for x in range(k)]))
    conic(far, [*proper, cp.sum(t) == 1, *inside])
    # Of a member near the least one, the capacity; no member has more than the best of vertices.
    member = q.value / q.value.sum(axis=1, keepdims=True)
    return shannon(member)[1] + LINEAR, max(shannon(one)[0] for one in corners_of(lower, upper))


def limits(data):
    if data["is"] == "channel_set":
        return np.array(data["lower"], dtype=float), np.array(data["upper"], dtype=float)
    middle, half = np.array(data["matrix"], dtype=float), 0.5 * 10.0 ** -data["digits"]
    return np.maximum(middle - half, 0.0), np.minimum(middle + half, 1.0)


def corners_of(lower, upper):
    """Return the channels whose rows are vertices."""
    rows = map(box, lower, upper)
    return [np.array(one) for one in itertools.product(*rows)]


def renyi(data):
    rows, alpha = matrix(data["channel"]), float(data["alpha"])
    if "prior" in data:
        rows = rows[np.array(data["prior"]) > 0]
    if math.isinf(alpha):
        return around(math.log(rows.max(axis=0).sum()), ROUNDING)
    if alpha == 1:
        return shannon(rows)
    powers, weights = rows**alpha, np.ones(len(rows))
    best, least = -math.inf, math.inf
    for _ in range(20_000):
        weights = weights / weights.sum()
        sums = (weights @ powers) ** (1 / alpha)
        best = max(best, alpha / (alpha - 1) * math.log(sums.sum()))
        output = np.where(sums > 0, sums, 1.0) / sums.sum()
        gains = np.log(powers @ output ** (1 - alpha)) / (alpha - 1)
        least = min(least, float(gains.max()))
        weights = weights * np.exp(min(alpha, 1.0) * (gains - gains.max()))
    return best - ROUNDING, least + ROUNDING


def additive_bayes(data):
    rows = matrix(data["channel"])
    rises = [
        (rows[list(some)].max(axis=0).sum() - 1) / size
        for size in range(1, len(rows) + 1)
        for some in itertools.combinations(range(len(rows)), size)
    ]
    return around(max(rises), ROUNDING)


# Pointwise maximal leakage


def failure(data, epsilon=None, *, strict=True):
    """Largest probability of a leakage above epsilon, after any post-processing."""
    prior, rows = np.array(data["prior"], dtype=float), matrix(data["channel"])
    level = math.exp(data["epsilon"] if epsilon is None else epsilon)
    rows, prior = rows[prior > 0], prior[prior > 0]
    output = prior @ rows
    rows, output = rows[:, output > 0], output[output > 0]
    surplus = rows - level * output
    able = surplus.max(axis=1)
    able = able > 0 if strict and data.get("strict", True) else able >= 0
    if not able.any():
        return 0.0, 0.0
    w = cp.Variable((int(able.sum()), len(output)), nonneg=True)
    enough = cp.sum(cp.multiply(w, surplus[able]), axis=1) >= 0
    mass = -linear(-cp.sum(w @ output), [cp.sum(w, axis=0) <= 1, enough])
    return around(mass, LINEAR)


def envelope(data):
    """Largest level that is exceeded with probability delta: by bisection."""
    prior, rows, delta = np.array(data["prior"]), matrix(data["channel"]), data["delta"]
    rows, prior = rows[prior > 0], prior[prior > 0]
    output = prior @ rows
    top = math.log((rows[:, output > 0] / output[output > 0]).max())
    if delta == 0:
        return around(top, ROUNDING)
    reached, beyond, low, high = 0.0, top, 0.0, top
    while high - low > 1e-9:  # first the largest level that is reached for sure
        level = (low + high) / 2
        if failure(data, level, strict=False)[0] >= delta:
            low = reached = level
        else:
            high = level
    low, high = reached, top
    while high - low > 1e-9:  # then the least that is not
        level = (low + high) / 2
        if failure(data, level, strict=False)[1] < delta:
            high = beyond = level
        else:
            low = level
    return reached, beyond + ROUNDING


def pml_mechanism(data):
    prior, utility = np.array(data["prior"]), np.array(data["utility"], dtype=float)
    q, proper = stochastic(*utility.shape)
    level = math.exp(data["epsilon"]) * (prior @ q)
    private = [q[x] <= level for x in range(len(prior)) if prior[x] > 0]
    gained = cp.sum(cp.multiply(prior[:, None] * utility, q))
    return around(-linear(-gained, [*proper, *private]), LINEAR * max(1.0, np.abs(utility).max()))


# Local differential privacy


def private(q, epsilon, delta=0.0):
    """Return what makes a channel (epsilon, delta)-private."""
    k, m = q.shape
    if math.isinf(epsilon):
        return []
    factor = math.exp(epsilon)
    if delta == 0:
        least = cp.Variable(m, nonneg=True)
        return [part for x in range(k) for part in (q[x] >= least, q[x] <= factor * least)]
    pairs = itertools.permutations(range(k), 2)
    return [cp.sum(cp.pos(q[x] - factor * q[z])) <= delta for x, z in pairs]


def least_distortion(data, epsilon=None):
    points = np.vstack(laws(data["sources"]))
    d = cost(data.get("distortion"), points.shape[1])
    q, proper = stochastic(*d.shape)
    level = data["epsilon"] if epsilon is None else epsilon
    worst = cp.max(cp.hstack([cp.sum(cp.multiply(p[:, None] * d, q)) for p in points]))
    least = linear(worst, [*proper, *private(q, level, data.get("delta", 0.0))])
    return around(least, LINEAR * max(1.0, d.max()))


def least_epsilon(data):
    """By bisection; infinite if no channel meets the budget with less than 40 nats."""
    budget = data["budget"]
    if least_distortion(data, 0.0)[1] < budget:
        return 0.0, 0.0
    if least_distortion(data, math.inf)[0] > budget:
        return math.inf, math.inf
    ends = []
    for end in (0, 1):  # the least level not above the budget for sure, and that not below it
        low, high = 0.0, 20.0
        while high - low > 1e-9:
            level = (low + high) / 2
            if least_distortion(data, level)[end] <= budget:
                high = level
            else:
                low = level
        ends.append(low if end == 0 else math.inf if high == 20.0 else high)
    return ends[0], ends[1]


def epsilon_of_set(data):
    lower, upper = limits(data["channel_set"])
    k, m = lower.shape
    largest = np.minimum(upper, 1 - (lower.sum(axis=1, keepdims=True) - lower))
    smallest = np.maximum(lower, 1 - (upper.sum(axis=1, keepdims=True) - upper))
    pairs = itertools.permutations(range(k), 2)
    with np.errstate(divide="ignore"):
        most = max(float(np.log(largest[x] / smallest[z]).max()) for x, z in pairs)
    low, high, member = 0.0, 40.0, None
    while high - low > 1e-7:
        level = (low + high) / 2
        q, proper = stochastic(k, m)
        off = cp.Variable(nonneg=True)
        kept = [*private(q, level), q >= lower - off, q <= upper + off]
        if linear(off, [*proper, *kept]) <= LINEAR:
            high, member = level, q.value
        else:
            low = level
    rows = np.clip(member, lower, upper)
    for row, least, greatest in zip(rows, lower, upper, strict=True):  # sums of 1 within the limits
        for y in range(m):
            row[y] = np.clip(row[y] + 1 - row.sum(), least[y], greatest[y])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.nan_to_num(rows.max(axis=0) / rows.min(axis=0), nan=1.0, posinf=math.inf)
    return float(np.log(ratios.max())) + ROUNDING, most - ROUNDING


def least_information(data):
    parts = laws(data["sources"])
    d = cost(data.get("distortion"), parts[0].shape[1])
    k, m = d.shape
    q, kept = stochastic(k, m)
    worst = []
    for part in parts:
        t = cp.Variable(m, nonneg=True)
        kept.append(cp.sum(t) == 1)
        for p in part:
            kept.append(cp.sum(cp.multiply(p[:, None] * d, q)) <= data["budget"])
            worst.append(total(p[x] * cp.rel_entr(q[x], t) for x in range(k) if p[x] > 0))
    found = conic(cp.max(cp.hstack(worst)), kept)
    return (found, found) if math.isinf(found) else (max(found - CONIC, 0.0), found + CONIC)


# Designs


def told(joint, law):
    """I of a joint distribution with this law of its rows."""
    column = cp.sum(joint, axis=0)
    return total(cp.rel_entr(joint[a], law[a] * column) for a in range(len(law)) if law[a] > 0)


def many(data):
    """Return a few distributions, of one or of several."""
    found = np.array(data, dtype=float)
    return found[None] if found.ndim == 1 else found


def design_for_prior(data):
    priors = many(data["prior"])
    d = cost(data["distortion"], priors.shape[1])
    sources = priors if data.get("source") is None else many(data["source"])
    q, kept = stochastic(*d.shape)
    kept += rules(data.get("constraints", []), q)
    spent = cp.max(cp.hstack([cp.sum(cp.multiply(p[:, None] * d, q)) for p in sources]))
    measure, budget = data.get("measure", "total"), data.get("budget")
    if measure != "total":
        if measure == "local_dp":
            kept += private(q, budget)
        elif measure == "pml":
            level = math.exp(budget) * (priors[0] @ q)
            kept += [q[x] <= level for x in range(len(d)) if priors[0][x] > 0]
        else:
            some = [x for x in range(len(d)) if priors[0][x] > 0]
            kept.append(cp.sum(cp.max(q[some], axis=0)) <= math.exp(budget))
        found = linear(spent, kept) if not data.get("constraints") else conic(spent, kept)
        return around(found, LINEAR * max(1.0, d.max()) if not data.get("constraints") else CONIC)
    leaked = cp.max(cp.hstack([told(cp.multiply(p[:, None], q), p) for p in priors]))
    if data.get("slope") is not None:
        found = conic(leaked + data["slope"] * spent, kept)
    elif data.get("minimize", "leakage") == "leakage":
        found = conic(leaked, [*kept, spent <= budget])
    else:
        found = conic(spent, [*kept, leaked <= budget])
    return (found, found) if math.isinf(found) else (max(found - CONIC, 0.0), found + CONIC)


def design(data, *, leakage):
    """Least leakage, or least distortion, against all adversaries or against some.

    Without a floor the adversary's distribution of the record may sit, for each value of the
    record, on any context: the leakage is the largest capacity of such a choice of rows.
    """
    sizes, index = query(data["query"])
    datasets, values = len(index), int(index.max()) + 1
    outputs = data.get("outputs")
    d = cost(data["distortion"], values, outputs)
    own = data.get("rows") == "query"
    free, kept = stochastic(values if own else datasets, d.shape[1])
    kept += rules(data.get("constraints", []), free)
    q = free[index] if own else free

    def by_dataset(law):
        law = np.array(law, dtype=float)
        return law if len(law) == datasets else (law / np.bincount(index))[index]

    sources = data.get("sources") or [data.get("source") or np.full(datasets, 1 / datasets)]
    spent = cp.max(
        cp.hstack([cp.sum(cp.multiply(by_dataset(p)[:, None] * d[index], q)) for p in sources])
    )
    size = {"record": 1, "total": len(sizes)}.get(data.get("objective", "record"), data.get("size"))
    leaked = []
    grid = np.arange(datasets).reshape(sizes)
    for group in itertools.combinations(range(len(sizes)), size):
        rest = [i for i in range(len(sizes)) if i not in group]
        contexts = grid.transpose(*group, *rest).reshape(math.prod(sizes[i] for i in group), -1)
        if data.get("priors") is not None:
            for p in map(by_dataset, data["priors"]):
                joint = cp.vstack([p[row] @ q[row] for row in contexts])
                leaked.append(told(joint, p[contexts].sum(axis=1)))
            continue
        if data.get("entropy_floor") != 0:
            raise UnknownTruthError("an entropy floor")
        for chosen in itertools.product(*contexts):
            t = cp.Variable(d.shape[1], nonneg=True)
            kept.append(cp.sum(t) == 1)
            leaked += [cp.sum(cp.rel_entr(q[row], t)) for row in chosen]
    worst = cp.max(cp.hstack(leaked))
    budget = data["budget"]
    bounded = [] if math.isinf(float(budget)) else [(spent if leakage else worst) <= budget]
    found = conic(worst if leakage else spent, [*kept, *bounded])
    return (found, found) if math.isinf(found) else (max(found - CONIC, 0.0), found + CONIC)


def parity_leakage(n, flip, floor):
    """The leakage of a noisy parity: a plateau up to (n - 1) log 2, then falling."""
    doubt = min(floor - (n - 1) * BIT, BIT)
    if doubt <= 0:
        return BIT - binary_entropy(flip)
    alpha = brentq(lambda a: binary_entropy(a) - doubt, 0, 0.5) if doubt < BIT - 1e-12 else 0.5
    return BIT - binary_entropy(alpha * (1 - flip) + (1 - alpha) * flip)


def parity_design(data, *, leakage):
    """With a floor: averaging over permutations and pairs of flips makes a best channel symmetric.

    Of a parity under Hamming distortion and uniform data, of one record and all adversaries.
    """
    n, budget, floor = data["query"]["n"], data["budget"], data["entropy_floor"]
    if leakage:
        return around(parity_leakage(n, min(budget, 0.5), floor), ROUNDING)
    if budget >= parity_leakage(n, 0.0, floor):
        return 0.0, 0.0
    return around(brentq(lambda p: parity_leakage(n, p, floor) - budget, 0, 0.5), 1e-11)


def least_leakage(data):
    return _design(data, leakage=True)


def design_distortion(data):
    return _design(data, leakage=False)


def _design(data, *, leakage):
    plain = {"query", "distortion", "budget", "entropy_floor"} == data.keys()
    if plain and data["query"]["is"] == "parity" and data["distortion"] == "hamming":
        return parity_design(data, leakage=leakage)
    return design(data, leakage=leakage)


# Releases


def release_distortion(data):
    joint = np.array(data["joint"], dtype=float)
    law = joint.sum(axis=0)  # of the earlier outputs, one axis each, and the dataset
    scale = BIT if data.get("unit") == "bits" else 1.0
    shape = law.shape
    d = cost(data.get("distortion"), len(joint))
    kernel, kept = stochastic(law.size, d.shape[1])
    spent = cp.sum(cp.multiply(joint.reshape(len(joint), -1).T @ d, kernel))
    earlier = range(law.ndim - 1)
    seen = [((), data.get("epsilon", "inf")), (tuple(earlier), data.get("delta", "inf"))]
    seen += [(tuple(members), budget) for members, budget in data.get("coalitions", [])]
    places = np.array(list(np.ndindex(*shape)))
    for members, budget in seen:
        if math.isinf(float(budget)):
            continue
        groups = {}
        for place, where in enumerate(places):
            groups.setdefault(tuple(where[list(members)]), {}).setdefault(where[-1], []).append(
                place
            )
        of_x = law.reshape(-1, shape[-1]).sum(axis=0)
        terms = []
        for by_x in groups.values():
            rows = {x: law.reshape(-1)[some] @ kernel[some] for x, some in by_x.items()}
            column = sum(rows.values())
            terms += [cp.rel_entr(row, of_x[x] * column) for x, row in rows.items() if of_x[x] > 0]
        kept.append(total(terms) <= float(budget) * scale)
    found = conic(spent, kept)
    return (found, found) if math.isinf(found) else around(found, CONIC * max(1.0, d.max()))


def bottleneck(data):
    """The most information about the request, if there is no earlier output and X is a bit.

    The doubts about X and about R, given the output, are mixtures of those at posteriors of X: a
    linear program over a grid, and its multipliers bound what any posterior adds.
    """
    joint = np.array(data["joint"], dtype=float)
    if joint.ndim != 2 or joint.shape[1] != 2:
        raise UnknownTruthError("earlier outputs")
    scale = BIT if data.get("unit") == "bits" else 1.0
    budget = min(float(data.get("epsilon", "inf")), float(data.get("delta", "inf"))) * scale
    law = joint.sum(axis=0)
    given = joint / law
    grid = np.unique(np.append(np.linspace(0, 1, 4001), law[1]))

    def doubts(p):
        return entr(p) + entr(1 - p), entr(
            np.multiply.outer(given[:, 0], 1 - p) + np.multiply.outer(given[:, 1], p)
        ).sum(axis=0)

    of_x, of_r = doubts(grid)
    whole = doubts(law[1:])
    w = cp.Variable(len(grid), nonneg=True)
    kept = [cp.sum(w) == 1, grid @ w == law[1], of_x @ w >= whole[0][0] - budget]
    best = -linear(of_r @ w, kept)
    price, slope = abs(float(kept[2].dual_value)), float(kept[1].dual_value)
    fine = np.linspace(0, 1, 2_000_001)
    of_x, of_r = doubts(fine)
    lagrangian = of_r - price * (of_x - whole[0][0] + budget)
    tilts = [sign * slope * (fine - law[1]) for sign in (1, -1)]
    least = max(float((lagrangian + tilt).min()) for tilt in tilts)
    entropy = float(whole[1][0])
    return entropy + best - LINEAR, entropy - least + LINEAR


# Comparisons of channels, adversaries with independent records, relaxations


def deficiency(data):
    one, other = matrix(data["channel"]), matrix(data["other"])
    r, proper = stochastic(one.shape[1], other.shape[1])
    apart = cp.max(cp.sum(cp.abs(one @ r - other), axis=1)) / 2
    return around(linear(apart, proper), LINEAR)


def refinement_gap(data):
    one, other = matrix(data["channel"]), matrix(data["other"])
    r = cp.Variable((one.shape[1], other.shape[1]), nonneg=True)
    kept = [one @ r <= other, cp.sum(r, axis=1) <= 1]
    return around(linear(1 - np.array(data["prior"]) @ one @ cp.sum(r, axis=1), kept), LINEAR)


def product_leakage(data):
    """Enumerate the others' extreme distributions: the information is convex in each of them."""
    if data.get("entropy_floor"):
        raise UnknownTruthError("an entropy floor")
    sizes, index = query(data["mechanism"]["query"])
    rows = matrix(data["mechanism"]["channel"])[index].reshape(*sizes, -1)
    own = [None] * len(sizes)
    extreme = [np.eye(k) for k in sizes]
    if (least := data.get("least_probability")) is not None:
        extreme = [least + (1 - k * least) * np.eye(k) for k in sizes]
    elif (floor := data.get("record_floor")) is not None:
        p = brentq(lambda p: binary_entropy(p) - floor, 0, 0.5) if floor < BIT else 0.5
        extreme = [np.array([[p, 1 - p], [1 - p, p]])] * len(sizes)
    elif data.get("laws") is not None:
        given = np.array(data["laws"], dtype=float)
        given = given[None] if given.ndim == 1 else given
        own = extreme = list(given) if given.ndim == 3 else [given] * len(sizes)
    records = range(len(sizes)) if data.get("records") is None else [data["records"]]
    found = []
    for i in records:
        rest = [j for j in range(len(sizes)) if j != i]
        turned = np.moveaxis(rows, i, 0)
        for chosen in itertools.product(*(extreme[j] for j in rest)):
            mixed = turned
            for law in chosen:
                mixed = np.tensordot(law, mixed, axes=(0, 1))
            found.append(_record(data, mixed, own[i]))
    return max(low for low, _ in found), max(high for _, high in found)


def _record(data, rows, corners):
    gain, form = data.get("gain"), data.get("form", "rise")
    if gain is None and form == "rise":
        return shannon(rows, corners)
    if gain == {"is": "guess"} and corners is None:
        if form == "rise":
            return additive_bayes({"channel": rows.tolist()})
        return around(rows.max(axis=0).sum(), ROUNDING)
    raise UnknownTruthError("a gain")


def relaxation(data):
    """The capacity of the whole dataset's channel under the floor."""
    if data["kind"] != "DatasetCapacityRelaxation":
        raise UnknownTruthError(data["kind"])
    _, index = query(data["mechanism"]["query"])
    rows = matrix(data["mechanism"]["channel"])[index]
    p = cp.Variable(len(rows), nonneg=True)
    doubt = entr(rows).sum(axis=1)
    told = cp.sum(cp.entr(rows.T @ p)) - p @ doubt
    floor = cp.sum(cp.entr(p)) >= data["entropy_floor"]
    return around(-conic(-told, [cp.sum(p) == 1, floor]), CONIC)


TRUTHS = {
    "additive-bayes-capacity": additive_bayes,
    "capacity": capacity,
    "deficiency": deficiency,
    "design-for-prior": design_for_prior,
    "envelope-curve": envelope,
    "epsilon-of-set": epsilon_of_set,
    "failure-probability": failure,
    "maximal-alpha-leakage": renyi,
    "min-distortion": design_distortion,
    "min-distortion-local-dp": least_distortion,
    "min-information": least_information,
    "min-leakage": least_leakage,
    "min-local-dp": least_epsilon,
    "multiplicative-bayes-capacity": lambda data: around(
        matrix(data["channel"]).max(axis=0).sum(), ROUNDING
    ),
    "pml-envelope": envelope,
    "pml-mechanism": pml_mechanism,
    "product-leakage": product_leakage,
    "refinement-gap": refinement_gap,
    "relaxation": relaxation,
    "release-distortion": release_distortion,
    "release-information": bottleneck,
    "renyi-capacity": renyi,
}


def truth(entry):
    """Return an interval that holds an entry's truth, in its unit; None if nothing here has one."""
    if entry["problem"] not in TRUTHS:
        return None
    try:
        low, high = TRUTHS[entry["problem"]](entry["data"])
    except UnknownTruthError:
        return None
    scale = BIT if entry.get("unit") == "bits" else 1.0
    return low / scale, high / scale


def agree(entry):
    """Whether the truth of an entry, computed anew, meets the one in its file."""
    found = truth(entry)
    low, high = map(float, entry["truth"])
    return found is None or (found[0] <= high and low <= found[1])


def main(families):
    for family in families or sorted(path.stem for path in HERE.glob("*.json")):
        entries = json.loads((HERE / f"{family}.json").read_text(encoding="utf-8"))
        for entry in entries:
            if not agree(entry):
                print(f"{family}/{entry['name']}: {truth(entry)}, not {entry['truth']}")


if __name__ == "__main__":
    main(sys.argv[1:])
