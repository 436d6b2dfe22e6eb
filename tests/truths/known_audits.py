"""Truths of audits that owe nothing to cvxleak: computed from an entry's data by NumPy and SciPy.

An entry with ``"how": name`` has its truth from `METHODS[name](data)`: an interval that holds it,
or [low, inf] where the method only finds adversaries.
`python -m tests.truths.known_audits FILE ...` computes these truths anew and says where they and a
file do not meet.
"""

from __future__ import annotations

import itertools
import json
import math
import runpy
import sys
from pathlib import Path

import numpy as np
from scipy.optimize import brentq, linprog, minimize
from scipy.special import entr, logsumexp, ndtri, xlogy

HERE = Path(__file__).parent
ROWS = runpy.run_path(str(HERE / "known_rows.py"))
Lumped = ROWS["Lumped"]
BIT = math.log(2)
ROUNDING = 1e-9


def binary_entropy(p):
    return float(entr(p) + entr(1 - p))


def around(value, tolerance=ROUNDING):
    return float(value) - tolerance, float(value) + tolerance


def over_groups(method, **layout):
    """Return a method for an entry: the largest of the intervals over the groups of records."""

    def over(data):
        ends = [method(Lumped(data, group, **layout), data) for group in ROWS["groups_of"](data)]
        return max(low for low, _ in ends), max(high for _, high in ends)

    return over


# Gains: functions of measures along the last axis, and the rows of those that are polyhedral.


def gain_of(gain, k):
    """Return G of a gain's data, and its rows (or None)."""
    kind = (gain or {"is": "shannon"})["is"]
    if kind == "shannon":
        return lambda r: xlogy(r, r).sum(-1) - xlogy(r.sum(-1), r.sum(-1)), None
    if kind == "gini":
        return lambda r: (r**2).sum(-1) / np.maximum(r.sum(-1), 1e-300), None
    if kind == "arimoto" and gain["alpha"] != "inf":
        alpha = gain["alpha"]
        return lambda r: (np.maximum(r, 0) ** alpha).sum(-1) ** (1 / alpha), None
    if kind == "gain_matrix":
        rows = np.array(gain["table"], float)
    else:  # one guess, or several
        tries = min(gain.get("tries", 1), k)
        chosen = itertools.combinations(range(k), tries)
        rows = np.array([np.isin(range(k), one) for one in chosen], float)
    return lambda r: (r @ rows.T).max(-1), rows


def value_of(problem, w, data):
    """Return what an adversary w learns: the gain in the form that the entry names."""
    gain, _ = gain_of(data.get("gain"), problem.k)
    joint, form = problem.joint(np.maximum(w, 0)), data.get("form", "rise")
    after = float(gain(joint.T).sum())
    if form == "posterior":
        return after
    before = float(gain(joint.sum(axis=1)))
    return after / before if form == "factor" else after - before


def uniform(problem, data):
    """At b = log|X| there is one adversary."""
    even = np.exp(problem.logs - logsumexp(problem.logs))
    return around(value_of(problem, even, data))


# Adversaries: what they reach is a lower end.


def gibbs(problem, c, floor):
    """Return the law that maximizes H(A) + <c,w> under the floor."""
    masks = problem.of_value.T > 0

    def law(lam):
        z = c / lam + problem.logs
        tops = np.array([logsumexp(z[mask]) for mask in masks])
        pi = lam / (1 + lam) * tops
        return np.exp(z - tops[problem.value] + (pi - logsumexp(pi))[problem.value])

    def over(x):
        return problem.entropy(law(math.exp(x))) - floor

    low, high = math.log(1e-7), math.log(1e6)
    if over(low) >= 0 or over(high) <= 0:
        return law(math.exp(low if over(low) >= 0 else high))
    return law(math.exp(brentq(over, low, high, xtol=1e-12) + 1e-12))


def climb(problem, data, seed=0):
    """Joint Blahut-Arimoto from many starts, for Shannon's gain and any number of contexts."""
    rng, floor = np.random.default_rng(seed), data["entropy_floor"]
    even = np.exp(problem.logs - logsumexp(problem.logs))
    place = problem.rows @ np.linspace(-1, 1, problem.rows.shape[1])
    place = place - even @ place
    place /= max(math.sqrt(even @ place**2), 1e-12)
    begun = [rng.dirichlet(np.full(len(even), 0.3)) * 0.98 + 0.02 * even for _ in range(6)]
    for tilt, *signs in itertools.product((1.0, 3.0), (-1, 1), (-1, 1)):
        w = even * np.exp(np.clip(tilt * place * np.array(signs)[problem.value % 2], -30, 30))
        begun.append(w / w.sum())

    def steps(w, number):
        for _ in range(number):
            joint = problem.joint(w) + 1e-300
            logs = np.log(joint) - np.log(joint.sum(axis=0))
            w = gibbs(problem, (problem.rows * logs[problem.value]).sum(axis=1), floor)
        return w, problem.information(w)

    found = 0.0
    for w, value in sorted((steps(w, 15) for w in begun), key=lambda one: -one[1])[:3]:
        for _ in range(20):
            before = value
            w, value = steps(w, 20)
            if value - before < 1e-10:
                break
        found = max(found, problem.information(problem.lifted(w, floor)))
    return found - ROUNDING, math.inf


def seek(problem, data, starts=12, seed=0):
    """Sequential quadratic programs from many starts: any gain and knowledge, few contexts."""
    rng, floor, size = np.random.default_rng(seed), data["entropy_floor"], len(problem.value)
    inside = [lambda w: problem.entropy(np.maximum(w, 0)) - floor] if floor > 0 else []
    for table, low, high in problem.bounds:
        inside += [lambda w, t=table, u=high: u - t @ w, lambda w, t=table, u=low: t @ w - u]
    for law, radius in problem.balls:
        own = np.log(law)
        inside.append(lambda w, p=own, r=radius: r - float((xlogy(w, w) - w * p).sum()))
    rules = [{"type": "eq", "fun": lambda w: w.sum() - 1}]
    rules += [{"type": "ineq", "fun": rule} for rule in inside]
    found = -math.inf
    for start in range(starts):
        w = rng.dirichlet(np.full(size, (0.3, 1.0)[start % 2]))
        made = minimize(
            lambda w: -value_of(problem, w, data),
            0.95 * w + 0.05 / size,
            bounds=[(1e-12, 1)] * size,
            constraints=rules,
            method="SLSQP",
            options={"maxiter": 300, "ftol": 1e-13},
        )
        w = np.maximum(made.x, 0) / np.maximum(made.x, 0).sum()
        if np.isfinite(made.fun) and all(rule(w) > -1e-8 for rule in inside):
            found = max(found, value_of(problem, w, data))
    return found - 1e-6, math.inf


# Both ends.


def concave_maximum(rows, logs, floor):
    """Bound max I over laws p of the inputs with H(p) + <p,logs> >= floor, a concave program.

    Blahut-Arimoto for I + lam (H + <p,logs>); for any p the largest slope bounds the maximum.
    """
    own = xlogy(rows, rows).sum(axis=1)

    def best(lam):
        p = np.full(len(rows), 1 / len(rows))
        for _ in range(100000):
            slopes = own - rows @ np.log(np.maximum(p @ rows, 1e-300))
            slopes = slopes + lam * (logs - np.log(np.maximum(p, 1e-300)))
            top = p @ slopes
            if slopes[p > 1e-200].max() - top < 1e-12:
                break
            p = p * np.exp((slopes - slopes.max()) / (1 + lam))
            p /= p.sum()
        return p, max(slopes.max(), top) - lam * floor

    def entropy(p):
        return float(entr(p).sum() + p @ logs)

    p, high = best(0.0)
    if entropy(p) < floor - 1e-13:
        lam = brentq(lambda x: entropy(best(math.exp(x))[0]) - floor, -18, 12, xtol=1e-13)
        p, high = best(math.exp(lam))
    mean = p @ rows
    return float(p @ own - xlogy(mean, mean).sum()) - ROUNDING, float(high) + ROUNDING


def choices(problem, data):
    """Without a floor, or up to the plateau's end: one context for each value, all ways to choose.

    Where each value has one group of contexts only, it holds at every floor.
    """
    options = [np.flatnonzero(problem.value == a) for a in range(problem.k)]
    ends, floor = [], data["entropy_floor"]
    single = all(len(one) == 1 for one in options)
    for chosen in itertools.product(*options):
        rows, logs = problem.rows[list(chosen)], problem.logs[list(chosen)]
        room, even = logsumexp(logs) - floor, np.exp(logs - logsumexp(logs))
        if abs(room) < 1e-12:  # the even law alone
            only = xlogy(rows, rows).sum(-1) @ even - xlogy(even @ rows, even @ rows).sum()
            low, high = around(only)
        else:
            low, high = concave_maximum(rows, logs, floor) if room > 0 else (0.0, math.inf)
        ends.append((low, high if single else concave_maximum(rows, logs, 0.0)[1]))
    return max(low for low, _ in ends), max(high for _, high in ends)


def renyi(problem, data):
    """The factor of Arimoto's gain without a floor: a concave program for each choice."""
    alpha, best = data["gain"]["alpha"], [0.0, 0.0]
    options = [np.flatnonzero(problem.value == a) for a in range(problem.k)]
    for chosen in itertools.product(*options):
        rows = problem.rows[list(chosen)]
        if alpha == "inf":
            ends = [rows.max(axis=0).sum()] * 2
        else:
            p, powers = np.full(len(rows), 1 / len(rows)), rows**alpha
            for _ in range(200000):
                slopes = powers @ np.maximum(p @ powers, 1e-300) ** (1 / alpha - 1)
                if slopes.max() - p @ slopes < 1e-12:
                    break
                p = p * slopes / (p @ slopes)
            ends = [p @ slopes, p @ slopes + (slopes.max() - p @ slopes) / alpha]
        best = [max(pair) for pair in zip(best, ends, strict=True)]
    return best[0] - ROUNDING, best[1] + ROUNDING


def strategies(problem, data):
    """Polyhedral gains: every map of outputs to actions, and for each the dual in one multiplier.

    Rise and factor need in addition the mixture of actions that the prior is judged by, and the
    factor the largest t at which max (after - t before) is not negative.
    """
    _, table = gain_of(data.get("gain"), problem.k)
    floor, form = data["entropy_floor"], data.get("form", "rise")
    logs = problem.logs
    if problem.balls:  # D(w || p0) <= r in the place of the floor
        logs, floor = np.log(problem.balls[0][0]), -problem.balls[0][1]
    ways = np.array(list(itertools.product(range(len(table)), repeat=problem.rows.shape[1])))
    earned = np.einsum("gy,syg->sg", problem.rows, table[ways][:, :, problem.value])
    own = table[:, problem.value]

    def dual(c):
        """Return a dual value for each row of c, and the laws that go with it."""
        low, high = np.full(len(c), -20.0), np.full(len(c), 12.0)
        for _ in range(70):
            lam = np.exp((low + high) / 2)[:, None]
            z = c / lam + logs
            w = np.exp(z - logsumexp(z, axis=1, keepdims=True))
            fine = entr(w).sum(axis=1) + w @ logs >= floor
            low, high = (
                np.where(fine, low, (low + high) / 2),
                np.where(fine, (low + high) / 2, high),
            )
        lam = np.exp(high)[:, None]
        z = c / lam + logs
        top = logsumexp(z, axis=1, keepdims=True)
        return (lam * (top - floor))[:, 0], np.exp(z - top)

    if form == "posterior":
        values, laws = dual(earned)
        return _ends(problem, data, laws, values.max())
    scale, low = 1.0, -math.inf
    for _ in range(12 if form == "factor" else 1):
        if form == "factor":
            scale = low if low > 0 else 1.0
        high = -math.inf
        bounds, laws = dual(earned - scale * own.mean(axis=0))
        low = max(low, _ends(problem, data, laws, 0.0)[0])
        for s in np.argsort(-bounds):
            if high > bounds[s]:
                break

            def mixed(theta, s=s, t=scale):
                value, law = dual((earned[s] - t * theta @ own)[None])
                return float(value[0]), -t * own @ law[0], law

            theta = np.full(len(table), 1 / len(table))
            made = minimize(
                lambda t: mixed(t)[0],
                theta,
                jac=lambda t: mixed(t)[1],
                bounds=[(0, 1)] * len(table),
                constraints=[{"type": "eq", "fun": lambda t: t.sum() - 1}],
                method="SLSQP",
                options={"ftol": 1e-14, "maxiter": 200},
            )
            theta = np.maximum(made.x, 0) / np.maximum(made.x, 0).sum()
            value, _, law = mixed(theta)
            high = max(high, value)
            low = max(low, _ends(problem, data, law, 0.0)[0])
        if form == "rise" or high <= 1e-8:
            break
    # after - t before <= high for all adversaries; before is at least a mean over the actions.
    least = float(table.mean(axis=0).min())
    return low, (scale + max(high, 0.0) / least if form == "factor" else high) + 1e-7


def _ends(problem, data, laws, high):
    low = max(value_of(problem, w, data) for w in laws)
    return low - 1e-7, float(high) + 1e-7


def programs(problem, data):
    """The posterior of polyhedral gains without a floor: a linear program for each strategy."""
    _, table = gain_of(data.get("gain"), problem.k)
    upper = [part for t, low, high in problem.bounds for part in ((t, high), (-t, -low))]
    upper = [(t, end) for t, end in upper if abs(end) < 1e9]
    found = -math.inf
    for way in itertools.product(range(len(table)), repeat=problem.rows.shape[1]):
        earned = (problem.rows * table[list(way)][:, problem.value].T).sum(axis=1)
        made = linprog(
            -earned,
            A_ub=np.array([t for t, _ in upper]),
            b_ub=np.array([end for _, end in upper]),
            A_eq=np.ones((1, len(earned))),
            b_eq=[1.0],
        )
        found = max(found, -made.fun)
    return around(found, 1e-7)


def known_own(problem, data):
    """Without a floor, with the law of the record known: all choices of one context a value."""
    law = np.array(data["adversaries"][0]["law"])
    options = [np.flatnonzero(problem.value == a) for a in range(problem.k)]
    found = 0.0
    for chosen in itertools.product(*options):
        w = np.zeros(len(problem.value))
        w[list(chosen)] = law
        found = max(found, value_of(problem, w, data))
    return around(found)


# Closed forms and enumeration.


def parity(data):
    """Parity of n bits through flips p: h(a) = b - (n - 1) log 2, then log 2 - h(a * p).

    Also for a group of less than n records.
    """
    mechanism = data["mechanism"]
    n = mechanism["query"]["n"]
    p = ROWS["noise_rows"](mechanism["channel"], (0, 1))[0, 1]
    over, a = data["entropy_floor"] - (n - 1) * BIT, 0.0
    if over > 0:
        a = brentq(lambda x: binary_entropy(x) - min(over, BIT), 0, 0.5, xtol=1e-16)
    return around(BIT - binary_entropy(a * (1 - p) + (1 - a) * p))


def least_leakage(data):
    """Parity, designed for a budget of errors: the symmetric channel spends it all."""
    channel = {"is": "binary_symmetric", "flip": data["budget"]}
    return parity(data | {"mechanism": {"query": data["query"], "channel": channel}})


def least_errors(data):
    """Parity, designed for a budget of leakage without a floor: the flip that leaks as much."""
    return around(brentq(lambda p: BIT - binary_entropy(p) - data["budget"], 0, 0.5, xtol=1e-16))


def balance(bound, free=None):
    """Return a method for C_1 - L(b), from one for L(b)."""

    def difference(data):
        most = (free or over_groups(choices))(data | {"entropy_floor": 0.0})
        ends = bound(data)
        return max(most[0] - ends[1], 0.0), most[1] - ends[0]

    return difference


def curve(method):
    """Return a method for a point of a curve."""
    return lambda data: method(data | {"entropy_floor": data["entropy_floors"][data["at"]]})


def modular(data):
    """An exact sum of n records mod m, each with the values 0 .. m - 1: min(log m, n log m - b)."""
    parts = data["mechanism"]["query"]["contributions"]
    m = len(parts[0])
    return around(min(math.log(m), len(parts) * math.log(m) - data["entropy_floor"]))


def disclosure(problem, _):
    """Every way to give each output to one value: log k + mean log of the contexts that fit."""
    can, found = problem.rows > 0, -math.inf
    for owner in itertools.product(range(problem.k), repeat=can.shape[1]):
        fits = ~(can & (np.array(owner) != problem.value[:, None])).any(axis=1)
        held = problem.of_value.T @ (fits * np.exp(problem.logs))
        if held.min() > 0:
            found = max(found, math.log(problem.k) + float(np.log(held).mean()))
    return around(found) if found > -math.inf else (math.inf, math.inf)


def claim(data):
    """The least parameter of a privacy claim, over all pairs of rows in both orders."""
    ends = [_distinguished(np.array(p), np.array(r), data) for p, r in _pairs(data)]
    return max(low for low, _ in ends) - ROUNDING, max(high for _, high in ends) + ROUNDING


def _pairs(data):
    first, second = data["first"], data.get("second")
    if second is not None:
        one, other = np.atleast_2d(first), np.atleast_2d(second)
        pairs = list(zip(one, other, strict=True))
    elif isinstance(first, list):
        pairs = list(itertools.combinations(np.array(first), 2))
    else:  # datasets that differ in one record
        pairs = []
        for group in ROWS["groups_of"]({"mechanism": first}):
            problem = Lumped({"mechanism": first}, group, full=True)
            for one, other in itertools.combinations(range(len(problem.value)), 2):
                if problem.context[one] == problem.context[other]:
                    pairs.append((problem.rows[one], problem.rows[other]))
    return pairs + [(r, p) for p, r in pairs]


def _distinguished(p, r, data):
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(p > 0, np.log(p) - np.log(r), -np.inf)
        if data.get("delta"):
            return (float(np.maximum(p - math.exp(data["epsilon"]) * r, 0).sum()),) * 2
        if "epsilon" in data:
            return (float(ratio.max()),) * 2
        if "gdp" in data:
            order = np.argsort(-ratio)
            one, other = np.cumsum(p[order])[:-1], np.cumsum(r[order])[:-1]
            return (float(np.nanmax(ndtri(np.minimum(one, 1)) - ndtri(np.minimum(other, 1)))),) * 2
        if (p[r == 0] > 0).any():
            return math.inf, math.inf
        used = p > 0

        def divergence(orders):
            logs = orders[:, None] * np.log(p[used]) + (1 - orders[:, None]) * np.log(r[used])
            return logsumexp(logs, axis=1) / (orders - 1)

        if "renyi" in data:
            order = data["renyi"][0]
            return (float(ratio.max() if order == "inf" else divergence(np.array([order]))[0]),) * 2
    # zCDP: D_a / a over all orders a > 1; D_a does not decrease with a.
    orders = 1 + np.geomspace(1e-7, 1e6, 60001)
    found = divergence(orders)
    kl = float((p[used] * ratio[used]).sum())
    high = max((found[1:] / orders[:-1]).max(), found[0], float(ratio.max()) / orders[-1])
    return max(float((found / orders).max()), kl), float(high)


METHODS = {
    "claim": claim,
    "least_errors": least_errors,
    "least_leakage": least_leakage,
    "modular": modular,
    "parity": parity,
    "parity_balance": balance(parity, parity),
} | {
    method.__name__: over_groups(method)
    for method in (
        choices,
        climb,
        disclosure,
        known_own,
        programs,
        renyi,
        seek,
        strategies,
        uniform,
    )
}
METHODS["balance"] = balance(METHODS["climb"])
METHODS |= {f"{name}_curve": curve(METHODS[name]) for name in ("climb", "parity", "strategies")}


def main(names):
    """Compute the truths of some files anew, and say which do not meet what is stored."""
    wrong = 0
    for name in names:
        for entry in json.loads((HERE / f"{name}.json").read_text(encoding="utf-8")):
            if "how" in entry:
                low, high = METHODS[entry["how"]](entry["data"])
                missed = not (low <= float(entry["truth"][1]) and float(entry["truth"][0]) <= high)
                wrong += missed
                print(entry["name"], low, high, "MISSED" if missed else "", flush=True)
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
