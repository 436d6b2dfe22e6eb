"""Truths of designs, releases, comparisons of channels and independent records (see known.py)."""

from __future__ import annotations

import itertools
import math

import cvxpy as cp
import numpy as np
from scipy.optimize import brentq
from scipy.special import entr

from tests.truths.known_channels import additive_bayes, private, shannon
from tests.truths.known_data import (
    BIT,
    CONIC,
    LINEAR,
    ROUNDING,
    UnknownTruthError,
    around,
    binary_entropy,
    conic,
    cost,
    linear,
    matrix,
    query,
    rules,
    stochastic,
    total,
)


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
    """Within budgets, or at prices per unit of information (SEQUENTIAL, problems (2) and (4))."""
    joint = np.array(data["joint"], dtype=float)
    law = joint.sum(axis=0)  # of the earlier outputs, one axis each, and the dataset
    scale = BIT if data.get("unit") == "bits" else 1.0
    d = cost(data.get("distortion"), len(joint))
    kernel, kept = stochastic(law.size, d.shape[1])
    value = cp.sum(cp.multiply(joint.reshape(len(joint), -1).T @ d, kernel))
    of_x = law.reshape(-1, law.shape[-1]).sum(axis=0)
    places = np.array(list(np.ndindex(*law.shape)))

    def leaked(members):
        """I(R^, Z_S; X), for the earlier outputs Z_S of some parties."""
        groups = {}
        for place, where in enumerate(places):
            by_x = groups.setdefault(tuple(where[list(members)]), {})
            by_x.setdefault(where[-1], []).append(place)
        terms = []
        for by_x in groups.values():
            rows = {x: law.reshape(-1)[some] @ kernel[some] for x, some in by_x.items()}
            column = sum(rows.values())
            terms += [cp.rel_entr(row, of_x[x] * column) for x, row in rows.items() if of_x[x] > 0]
        return total(terms) / scale

    everyone = tuple(range(law.ndim - 1))
    seen = [((), data.get("epsilon", "inf")), (everyone, data.get("delta", "inf"))]
    seen += [(tuple(members), budget) for members, budget in data.get("coalitions", [])]
    kept += [leaked(s) <= float(budget) for s, budget in seen if not math.isinf(float(budget))]
    for members, price in (((), data.get("mu_1", 0)), (everyone, data.get("mu_2", 0))):
        value += price * leaked(members) if price else 0
    found = conic(value, kept)
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
    "deficiency": deficiency,
    "design-for-prior": design_for_prior,
    "min-distortion": design_distortion,
    "min-leakage": least_leakage,
    "product-leakage": product_leakage,
    "refinement-gap": refinement_gap,
    "relaxation": relaxation,
    "release-distortion": release_distortion,
    "release-information": bottleneck,
    "release-lagrangian": release_distortion,
}
