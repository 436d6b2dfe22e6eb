"""What an entry about leakage describes, by NumPy alone: rows, contexts, and their numbers."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
from scipy.special import entr, logsumexp, ndtr, xlogy

ALIKE = ("count", "crosstab", "histogram", "modular_sum", "pair_sum", "parity")
"""Queries under which all records leak alike."""


def noise_rows(noise, places):
    """Return the probabilities of the outputs, a row for each value of the query."""
    if isinstance(noise, list):
        return np.array(noise, float)
    kind, v = noise["is"], None
    if all(isinstance(place, int) for place in places):
        v = np.array(places, float)
    if kind == "binary_symmetric":
        return np.array([[1 - noise["flip"], noise["flip"]], [noise["flip"], 1 - noise["flip"]]])
    if kind == "laplace_threshold":
        return noise_rows(
            {"is": "binary_symmetric", "flip": math.exp(-noise["epsilon"] / 2) / 2}, v
        )
    if kind == "generalized_symmetric":
        k, flip = noise["k"], noise["flip"]
        return np.full((k, k), flip / (k - 1)) + np.eye(k) * (1 - flip - flip / (k - 1))
    if kind == "randomized_response":
        rows = np.ones((noise["k"],) * 2) + np.eye(noise["k"]) * math.expm1(noise["epsilon"])
        return rows / rows.sum(axis=1, keepdims=True)
    if kind == "exponential":
        rows = np.exp(
            np.array(noise["scores"], float) * noise["epsilon"] / 2 / noise["sensitivity"]
        )
        return rows / rows.sum(axis=1, keepdims=True)
    if kind == "rank_exponential":
        ranks = np.argsort(np.argsort(noise["distortion"], axis=1, kind="stable"), axis=1)
        law = np.exp(-np.arange(len(places)) / noise["scale"])
        return (law / law.sum())[ranks]
    if kind == "pml_extremal":
        law, factor = np.array(noise["prior"]), math.exp(noise["epsilon"])
        return factor * law + np.diag(1 - factor * (1 - law) - factor * law)
    if kind == "truncated_geometric":
        a, y = math.exp(-noise["epsilon"]), np.arange(noise["n"] + 1)
        rows = a ** np.abs(y - v[:, None]) / (1 + a)
        rows[:, 1:-1] *= 1 - a
        return rows
    if kind == "random_rounding":
        base, n = noise["base"], noise["n"]
        up = [0, *noise.get("up", [r / base for r in range(1, base)])]
        rows = np.zeros((n + 1, -(-n // base) + 1))
        for u in range(n + 1):
            rows[u, u // base] += 1 - up[u % base]
            if u % base:
                rows[u, u // base + 1] += up[u % base]
        return rows
    edges, below = _edges(noise, v)
    masses = below(np.concatenate([[-np.inf], edges, [np.inf]]) - v[:, None])
    rows = np.maximum(np.diff(masses, axis=1), 0.0)
    return rows / rows.sum(axis=1, keepdims=True)


def _edges(noise, v):
    """Return the edges of cells and the distribution function of noise that is added to v."""
    kind, low, high = noise["is"], v.min(), v.max()

    def laplace(scale):
        return lambda z: np.where(
            z < 0, np.exp(np.minimum(z, 0) / scale) / 2, 1 - np.exp(-np.maximum(z, 0) / scale) / 2
        )

    if kind in ("discretized_gaussian", "discretized_laplace"):
        at = np.array(noise["outputs"], float)
        if kind == "discretized_gaussian":
            return (at[1:] + at[:-1]) / 2, lambda z: ndtr(z / math.sqrt(noise["variance"]))
        return (at[1:] + at[:-1]) / 2, laplace(noise["sensitivity"] / noise["epsilon"])
    if kind == "gaussian":
        s = noise["sigma"]
        return np.arange(low - 8 * s, high + 8 * s, s / 30), lambda z: ndtr(z / s)
    if kind == "laplace":
        return np.linspace(low, high, int((high - low) / noise["scale"] * 30) + 1), laplace(
            noise["scale"]
        )
    if kind == "uniform":
        half = noise["half_width"]
        return np.unique([v - half, v + half]), lambda z: np.clip(z / half + 1, 0, 2) / 2
    if kind == "rounded":
        reach = 60.0 if noise["noise"]["is"] == "laplace" else 12.0
        base = noise["base"]
        ends = [math.floor((low - reach) / base), math.ceil((high + reach) / base)]
        return (np.arange(*ends) + 0.5) * base, _edges(noise["noise"], v)[1]
    reach = int(14 * noise.get("sigma", 3 * noise.get("scale", 0)))
    z = np.arange(-reach, reach + 1)
    if kind == "discrete_laplace":  # e^(-|z| / scale); the tails are geometric on both sides
        law = np.exp(-np.abs(z) / noise["scale"])
    elif kind == "discrete_gaussian":
        law = np.exp(-(z**2) / 2 / noise["sigma"] ** 2)
    else:
        raise ValueError(kind)
    total = np.concatenate([[0.0], np.cumsum(law / law.sum())])

    def below(z):
        place = np.ceil(np.clip(z, -reach - 1, reach + 2)) + reach
        return total[np.clip(place, 0, len(law)).astype(int)]

    return np.arange(low - reach, high + reach) + 0.5, below


def query_of(query):
    """Return sizes of the alphabets, contributions (or None), and value of a total (or dataset)."""
    kind, n = query["is"], query.get("n")
    if kind == "table":
        sizes = [len(one) for one in query["alphabets"]]
        table = dict(zip(itertools.product(*map(range, sizes)), query["values"], strict=True))
        return sizes, None, table.__getitem__
    if kind == "additive":
        parts = [
            [tuple(c) if isinstance(c, list) else (c,) for c in one]
            for one in query["contributions"]
        ]
        modulus = query.get("modulus")

        def total(t):
            reduced = t if modulus is None else tuple(x % modulus for x in t)
            return reduced if len(t) > 1 else reduced[0]

        return [len(one) for one in parts], parts, total
    if kind in ("histogram", "crosstab"):
        k = query["categories"] if kind == "histogram" else query["rows"] * query["columns"]
        units = [tuple(int(i == j) for j in range(k)) for i in range(k)]
        return [k] * n, [units] * n, lambda t: t
    value = {
        "count": lambda t: t[0],
        "parity": lambda t: t[0] % 2,
        "pair_sum": lambda t: t[0] * (t[0] - 1) // 2,
        "modular_sum": lambda t: t[0] % query["modulus"],
    }[kind]
    return [2] * n, [[(0,), (1,)]] * n, value


class Lumped:
    """Rows of the groups of contexts, logarithms of their numbers, and the value they belong to."""

    def __init__(self, data, group, full=False):
        mechanism, known = data["mechanism"], data.get("adversaries", [])
        if "alphabets" in mechanism:  # a row for each dataset
            sizes = [len(one) for one in mechanism["alphabets"]]
            parts, value = (
                None,
                {x: i for i, x in enumerate(itertools.product(*map(range, sizes)))}.get,
            )
            places, rows = list(range(math.prod(sizes))), np.array(mechanism["channel"], float)
        else:
            sizes, parts, value = query_of(mechanism["query"])
            if parts is None:
                found = {value(x) for x in itertools.product(*map(range, sizes))}
            else:
                found = {value(t) for t in _totals(parts)}
            places = sorted(found)
            rows = noise_rows(mechanism["channel"], places)
        self.sizes, self.group = sizes, group
        self.size = math.prod(sizes)
        counts, names = Counter(), list(itertools.product(*(range(sizes[i]) for i in group)))
        self.bounds, self.balls = [], []
        if known or full or parts is None:  # what is known may tell all datasets apart
            datasets = list(itertools.product(*map(range, sizes)))
            at = [places.index(value(x if parts is None else _total(parts, x))) for x in datasets]
            own = [names.index(tuple(x[i] for i in group)) for x in datasets]
            self.context = [tuple(u for i, u in enumerate(x) if i not in group) for x in datasets]
        if known or full:
            for one in known:
                self._know(one, datasets, [places[place] for place in at])
            self._set(rows[at], np.zeros(len(at)), np.array(own), len(names))
            return
        if parts is None:
            counts.update(zip(own, at, strict=True))
        else:
            others = _totals([one for i, one in enumerate(parts) if i not in group])
            for a, joint in enumerate(names):
                shift = [parts[i][u] for i, u in zip(group, joint, strict=True)]
                for total, count in others.items():
                    both = tuple(map(sum, zip(*shift, total, strict=True)))
                    counts[a, places.index(value(both))] += count
        keys = sorted(counts)
        logs = np.array([math.log(counts[key]) for key in keys])
        self._set(
            rows[[place for _, place in keys]], logs, np.array([a for a, _ in keys]), len(names)
        )

    def _set(self, rows, logs, value, k):
        used = rows.max(axis=0) > 0
        self.rows, self.logs, self.value, self.k = rows[:, used], logs, value, k
        self.of_value = np.eye(k)[value]

    def _know(self, one, datasets, values):
        """Note what an adversary knows as bounds on linear functions, or as a ball."""
        records = one.get("records")
        if one["is"] == "relative_entropy_ball":
            laws = one["laws"] if "laws" in one else None
            if laws and not isinstance(laws[0], list):
                laws = [laws] * len(datasets[0])
            law = one.get("prior") or [
                math.prod(p[u] for p, u in zip(laws, x, strict=True)) for x in datasets
            ]
            self.balls.append((np.array(law, float), one["radius"]))
        elif one["is"] == "known_marginals":
            for i in range(len(datasets[0])) if records is None else records:
                for u, p in enumerate(one["law"]):
                    self.bounds.append((np.array([float(x[i] == u) for x in datasets]), p, p))
        else:
            joint = (
                datasets if records is None else [tuple(x[i] for i in records) for x in datasets]
            )
            keys = sorted(set(values)) if records is None else sorted(set(joint))
            place = [keys.index(x) for x in (values if records is None else joint)]
            table = np.array(one["feature"], float).ravel()[place]
            low, high = one.get("at_least", -1e10), one.get("at_most", 1e10)
            self.bounds.append((table, one.get("equals", low), one.get("equals", high)))

    def joint(self, w):
        return (self.of_value * w[:, None]).T @ self.rows

    def entropy(self, w):
        return float(entr(w).sum() + w @ self.logs)

    def information(self, w):
        joint = self.joint(w)
        own = (self.of_value * w[:, None]).sum(axis=0)
        return float(
            xlogy(joint, joint).sum()
            - xlogy(own, own).sum()
            - xlogy(joint.sum(0), joint.sum(0)).sum()
        )

    def lifted(self, w, floor):
        """Return w, or as little of the even law in it as the floor needs."""
        even = np.exp(self.logs - logsumexp(self.logs))
        share = next(
            s
            for s in [0, *np.geomspace(1e-13, 1, 80)]
            if self.entropy((1 - s) * w + s * even) >= floor - 1e-12
        )
        return (1 - share) * w + share * even


def _total(parts, dataset):
    chosen = [one[u] for one, u in zip(parts, dataset, strict=True)]
    return tuple(map(sum, zip(*chosen, strict=True)))


def _totals(parts):
    width = len(parts[0][0]) if parts else 1
    found = Counter({(0,) * width: 1})
    for one in parts:
        step = Counter()
        for total, count in found.items():
            for add in one:
                step[tuple(map(sum, zip(total, add, strict=True)))] += count
        found = step
    return found


def groups_of(data):
    """Return the groups of records that an entry is about."""
    mechanism, records = data["mechanism"], data.get("records")
    n = (
        len(mechanism["alphabets"])
        if "alphabets" in mechanism
        else len(query_of(mechanism["query"])[0])
    )
    if records is not None:
        return [tuple(records) if isinstance(records, list) else (records,)]
    if "query" in mechanism and mechanism["query"]["is"] in ALIKE and not data.get("adversaries"):
        return [tuple(range(data.get("size", 1)))]
    return list(itertools.combinations(range(n), data.get("size", 1)))


def best(method):
    """Return the method that takes the largest of an interval over all groups of records."""

    def over(data):
        ends = [method(Lumped(data["mechanism"], group), data) for group in groups_of(data)]
        return max(low for low, _ in ends), max(high for _, high in ends)

    return over
