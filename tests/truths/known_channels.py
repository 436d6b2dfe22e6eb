"""Truths of capacities, pointwise maximal leakage and local privacy (see known.py)."""

from __future__ import annotations

import itertools
import math

import cvxpy as cp
import numpy as np
from scipy.special import entr, rel_entr

from tests.truths.known_data import (
    CONIC,
    LINEAR,
    ROUNDING,
    UnknownTruthError,
    around,
    box,
    conic,
    cost,
    laws,
    linear,
    matrix,
    stochastic,
    total,
)


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


def multiplicative_bayes(data):
    return around(matrix(data["channel"]).max(axis=0).sum(), ROUNDING)


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


TRUTHS = {
    "additive-bayes-capacity": additive_bayes,
    "capacity": capacity,
    "envelope-curve": envelope,
    "epsilon-of-set": epsilon_of_set,
    "failure-probability": failure,
    "maximal-alpha-leakage": renyi,
    "min-distortion-local-dp": least_distortion,
    "min-information": least_information,
    "min-local-dp": least_epsilon,
    "multiplicative-bayes-capacity": multiplicative_bayes,
    "pml-envelope": envelope,
    "pml-mechanism": pml_mechanism,
    "renyi-capacity": renyi,
}
