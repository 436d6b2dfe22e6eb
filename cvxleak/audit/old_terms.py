"""Terms of the proof kernel for the bounds that today's searches find. Untrusted.

A search stores an entry for each audited group: the posterior cells, slabs, time-sharing bounds and
multipliers that it found. Each becomes a term of the kernel. It goes when the searches speak of the
kernel's rules themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, fmpq

from cvxleak.core.numbers import as_written, exact_law, written_law
from cvxleak.exact.packing import unpack
from cvxleak.kernel.gains import Gain, Shannon
from cvxleak.kernel.leakage import RecordLeakage, same
from cvxleak.kernel.noise import Noise, Output
from cvxleak.kernel.numbers import largest, law, lower, precision, proved, rational, upper
from cvxleak.kernel.reading import pack
from cvxleak.kernel.view import View
from cvxleak.model import Mechanism
from cvxleak.model.knowledge import Knowledge
from cvxleak.model.knowledge.binding import as_knowledge
from cvxleak.model.restricted import restrict
from cvxleak.problem import Bound
from cvxleak.problem.problem import Found
from cvxleak.proofs.bounds.adversary_class import limits_of
from cvxleak.proofs.format import plain

__all__ = [
    "attained_by",
    "group_terms",
    "in_proof",
    "in_terms",
    "lost_in_cells",
    "point_term",
    "points_of",
    "posteriors_of",
    "upper_term",
]

Term = dict[str, Any]
Parts = tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]

ULP = fmpq(1, 1 << 51)
"""How far apart, relative to them, two floats next to each other are at most, twice over."""

STEEP = 100.0
"""Slopes in nats from which short floats would lose too much: those in very narrow cells."""

TINY = 1e-30
"""Multipliers that short floats do not hold: those of limits in a very small unit."""

LEAST_WEIGHT = 2.0**-100
"""Weights of tangents are raised to this: the kernel needs them to be positive."""


def in_terms(found: Found) -> Found:
    """Return what a search found with the kernel's terms as its parts, and what they prove."""
    lower_end, upper_end, parts = in_proof(found.parts)
    return replace(found, lower=lower_end, upper=upper_end, parts=parts)


def in_proof(parts: Parts) -> tuple[float, float, Parts]:
    """Return both ends that what a search stores proves, and the same with the kernel's terms."""
    problem, witness, proof = plain(parts)
    problem = _exact(problem)
    with precision():
        statement = RecordLeakage.read(problem)
        above = upper_term(statement, problem, proof)
        below = point_term(statement, witness["records"], witness["weights"], above)
        ends = lower(statement.lower(below)), upper(statement.upper(above))
    return *ends, (problem, below, above)


def _exact(problem: dict[str, Any]) -> dict[str, Any]:
    """Return a problem with what is known as fractions where floats do not sum to 1 as written."""
    if "adversaries" not in problem:
        return problem
    known = []
    for one in problem["adversaries"]:
        laws = one.get("laws") and [[_law(own), n] for own, n in one["laws"]]
        more = {"laws": laws} | {key: one.get(key) and _law(one[key]) for key in ("law", "prior")}
        known.append(one | {key: value for key, value in more.items() if key in one})
    return problem | {"adversaries": known}


def _law(numbers: Sequence[Any]) -> list[Any]:
    written = [as_written(x) for x in numbers]
    return list(numbers) if written_law(written) else list(map(str, exact_law(written)))


def upper_term(
    statement: RecordLeakage, problem: Mapping[str, Any], proof: Mapping[str, Any]
) -> Term:
    """Return the term of the upper end, from today's proof."""
    cut = {} if statement.output is None else _cut(statement.output, problem, proof)
    entries, views = proof["groups"], statement.priced(cut)
    runs = [_runs(statement, entry["records"]) if "records" in entry else None for entry in entries]
    groups: list[Any] = []
    for place, (group, view) in enumerate(zip(statement.groups, views, strict=True)):
        earlier = next((i for i in range(place) if same(view, views[i])), None)
        if earlier is not None:
            groups.append(groups[earlier] if isinstance(groups[earlier], int) else earlier)
            continue
        found = next((entry for entry, own in zip(entries, runs, strict=True) if own == group), {})
        scales = _scales(view, problem, found["records"]) if view.limits and found else None
        groups.append(group_terms(found, view, scales))
    return {"rule": "max", **cut, "groups": groups}


def _cut(output: Output, problem: Mapping[str, Any], proof: Mapping[str, Any]) -> Term:
    """Return the edges of cells, and references, in the kernel's unit.

    Today's edges are decimals, which the kernel's are not. Where they matter to the last digit, at
    kinks of densities and at ends of supports, they are put there exactly.
    """
    found = {key: proof[key] for key in output.upper}
    if not isinstance(output, Noise) or output.rounded or output.kind not in ("laplace", "uniform"):
        return found
    grain, sides = fmpq(1), (fmpq(0),)
    if output.kind == "uniform":
        standard: Any = Mechanism.from_dict(problem["mechanism"]).standard
        grain, sides = rational(standard.noise.grain), (fmpq(-1), fmpq(1))
    edges = [proved(x) / grain for x in unpack(proof["edges"]).tolist()]
    for target in {v + side for v in output.places for side in sides}:
        near = [i for i, x in enumerate(edges) if abs(x - target) <= abs(target) * ULP]
        if near:  # so that the edges stay in order
            edges[next((i for i in near if edges[i] >= target), near[-1])] = target
    found["edges"] = [str(x) for x in edges]
    return found


def attained_by(
    problem: Mapping[str, Any], records: Sequence[int], weights: Sequence[Any]
) -> float:
    """Return the leakage to a witness under every channel of a set."""
    with precision():
        statement = RecordLeakage.read(_exact(plain(problem)))
        return lower(statement.lower(point_term(statement, records, weights, {})))


def lost_in_cells(problem: Mapping[str, Any], stored: Mapping[str, Any]) -> float:
    """Return a bound above what the place of a real output in its cell tells."""
    written = plain(problem)
    with precision():
        statement = RecordLeakage.read(written)
        assert statement.output is not None
        views = statement.priced(_cut(statement.output, written, plain(stored)))
        return upper(largest(x for view in views for x in view.extra or ()))


def _scales(view: View, problem: Mapping[str, Any], records: Sequence[int]) -> Any:
    """Return the kernel's multipliers of limits for a unit of each of today's."""
    mechanism = Mechanism.from_dict(problem["mechanism"])
    known = as_knowledge(map(Knowledge.from_dict, problem["adversaries"]), mechanism.query)
    old = limits_of(restrict(mechanism, tuple(records), known))
    new = [
        [*(_float(x) for x in limit.c), _float(limit.bound), _float(limit.share)]
        for limit in view.limits
    ]
    given = np.column_stack([old.coefficients, old.bounds, old.shares])
    scales = np.zeros((len(given), len(new)))
    for row, limit in zip(scales, given, strict=True):
        sizes = [np.abs(limit).max() / (np.abs(own).max() or 1.0) for own in new]
        away = [np.abs(np.array(own) * x - limit).max() for own, x in zip(new, sizes, strict=True)]
        j = int(np.argmin(away))
        row[j] = sizes[j]
    return scales


def _float(x: Any) -> float:
    return float(x.mid()) if isinstance(x, arb) else float(Fraction(int(x.p), int(x.q)))


def point_term(
    statement: RecordLeakage, records: Sequence[int], weights: Sequence[Any], end: Mapping[str, Any]
) -> Term:
    """Return the term of a lower end, from a witness's weights, with the cells of another end."""
    place = statement.groups.index(_runs(statement, records))
    view = statement.views[place]
    cut = {} if statement.output is None else {key: end[key] for key in statement.output.lower}
    term = {"rule": "point", **cut, "group": place, "weights": list(weights)}
    if not view.exact:
        term["posteriors"] = posteriors_of(view, law([proved(x) for x in weights]))
    return term


def points_of(bound: Bound, records: Sequence[int]) -> Callable[[Any], Term]:
    """Return how a certificate of this problem holds an adversary's weights about a group."""
    made = bound.certificate
    assert made is not None
    with precision():
        statement = RecordLeakage.read(plain(made.problem))
    return lambda weights: point_term(statement, records, weights.tolist(), made.witness)


def _runs(statement: RecordLeakage, records: Sequence[int]) -> tuple[int, ...]:
    return tuple(sorted(statement.space.run_of(i) for i in records))


def posteriors_of(view: View, w: Sequence[fmpq]) -> list[list[float]]:
    """Return the posteriors under the channel in the middle of a set."""
    joint = np.zeros((view.k, view.n))
    for a, own in enumerate(view.of):
        for g in own:
            row = view.rows[g]
            ends = [row.lo, row.lo if row.hi is None else row.hi]
            middle = np.array([[float(x.mid()) for x in end] for end in ends]).mean(axis=0)
            joint[a] += float(w[g].p) / float(w[g].q) * middle / middle.sum()
    joint = np.maximum(joint, 1e-300)
    return (joint / joint.sum(axis=0)).tolist()


def group_terms(entry: Mapping[str, Any], view: View, scales: Any = None) -> list[Term]:
    """Return the terms of one group's entry, and the ceiling of its leakage.

    `scales` makes of today's multipliers of limits the kernel's.
    """
    scales = np.zeros((0, 0)) if scales is None else scales
    found: list[Term] = []
    if view.times is not None and _ignored(view):
        found.append({"rule": "equal"})
    if view.information:
        found.append(_close(0.0, view, {"rule": "alphabet"}))
    else:
        found.append(_ceiling(view))
    makers = {
        "choices": lambda packed: {"rule": "choices", "inputs": pack(unpack(packed), "<f8")},
        "dataset": lambda part: _dataset(part, view, scales),
        "cells": lambda part: _cells(part, view, scales),
        "slabs": lambda part: _slabs(part, view, scales),
        "sharing": lambda part: _sharing(part, view),
    }
    found += [make(entry[key]) for key, make in makers.items() if key in entry]
    return found


def _ignored(view: View) -> bool:
    return (
        view.extra is None
        and view.exact
        and len({row.key for row in view.rows}) == 1
        and view.times != 0
    )


def _close(multiplier: Any, view: View, of: Term, limits: Any = None) -> Term:
    given = [0] * len(view.limits) if limits is None else limits
    return {"rule": "close", "multiplier": multiplier, "limits": given, "of": of}


def _leaf(start: int, stop: int) -> Any:
    return {"leaf": [start, stop]} if stop > start else []


def _dataset(part: Mapping[str, Any], view: View, scales: Any) -> Term:
    row = unpack(part["multipliers"])
    of: Term = {"rule": "alphabet"}
    if row[1] > 0:
        t = unpack(part["output"]).tolist()
        of = {
            "rule": "share",
            "q": float(row[1]),
            "t": t,
            "values": [{"rule": "vertices"}] * view.k,
        }
    return _close(float(row[0]), view, of, (row[2:] @ scales).tolist())


def _ceiling(view: View) -> Term:
    """Return a cover of one leaf, whose cells are whole simplices."""
    k, n, gain = view.k, view.n, view.gain
    corners = [[arb(int(i == j)) for j in range(k)] for i in range(k)]
    nu = np.tile([float(gain.value(corner).mid()) for corner in corners], n)
    actions, points = _usual(gain, k)
    theta = np.full(actions, 1 / actions)
    more = {"prior": (theta, points)} if view.times != 0 and not isinstance(gain, Shannon) else {}
    leaf = [[0.0, 0.0, *nu, *np.zeros(len(view.limits))]]
    chord: Term = {"rule": "chord", "nu": _leaf(2, 2 + n * k)}
    if more:
        chord = {"rule": "prior", "theta": theta.tolist(), **_points(points), "of": chord}
    of = _close({"leaf": 1}, view, chord, _leaf(2 + n * k, len(leaf[0])))
    cover = {
        "rule": "cells",
        **_tree(np.full((1, 3), -1), np.zeros(0), np.array(leaf), "<f4"),
        "of": [of],
    }
    if view.times is not None:
        return cover
    return {
        "rule": "factor",
        "times": 1,
        "theta": theta.tolist(),
        **_points(points),
        "of": cover,
    }


def _usual(gain: Gain, k: int) -> tuple[int, list[list[str]]]:
    """Return how many linear functions are below a gain, and where those that need it touch it."""
    if gain.linear:
        return len(gain.linear), []
    return 1, [[f"1/{k}"] * k]


def _points(points: Sequence[Any]) -> dict[str, Any]:
    return {"points": list(points)} if points else {}


def _cells(part: Mapping[str, Any], view: View, scales: Any) -> Term:
    k, n, gain = view.k, len(part["outputs"]), view.gain
    splits, cuts = unpack(part["splits"]), unpack(part["cuts"])
    old = unpack(part["leaves"])
    exact, old = old.dtype.str == "<f8", old.astype(float)
    limits = len(view.limits)
    nu = _nu(splits, cuts, old, n, k, gain)
    left_out = old[:, 0] < 0
    code = np.where(left_out, old[:, 0], 0.0)
    start = 1 + n * k
    more = [old[:, start : start + len(scales)] @ scales, old[:, start + len(scales) :]]
    leaves = np.column_stack([code, np.where(left_out, 0.0, old[:, 0]), nu, *more])
    end = 2 + n * k
    of: Term = {"rule": "chord", "nu": _leaf(2, end)}
    if not isinstance(gain, Shannon) and view.times != 0:
        of, leaves = _priced_prior(of, part, view, leaves, end + limits)
    merged = part["outputs"] != [[y] for y in range(n)]
    if merged or "output" in part:
        t = shares(view, part["outputs"])
        if "output" in part:
            t = _positive(unpack(part["output"]).tolist(), part["outputs"])
        of = {"rule": "price", "parts": part["outputs"], "t": t, "of": of}
    of = _close({"leaf": 1}, view, of, _leaf(end, end + limits))
    cover: Term = {
        "rule": "cells",
        **_tree(splits, cuts, leaves, "<f8" if exact else _dtype(nu, more[0])),
        "of": [of],
    }
    if merged or "output" in part:
        cover["parts"] = part["outputs"]
    if "symmetries" in part:
        cover["symmetries"] = part["symmetries"]
    if view.times is not None:
        return cover
    actions, points = _usual(gain, k)
    least = list(part["least"])
    return {
        "rule": "factor",
        "times": part["times"],
        # The mean over all orders stands for that of all actions.
        "theta": least if len(least) == actions else [1 / actions] * actions,
        **_points(points),
        "of": cover,
    }


def _dtype(nu: Any, limits: Any) -> str:
    """Return the type of float that holds slopes and multipliers of limits well enough."""
    small = np.abs(limits[limits != 0]).min(initial=1.0)
    return "<f4" if np.abs(nu).max(initial=0.0) < STEEP and small > TINY else "<f8"


def _priced_prior(
    of: Term, part: Mapping[str, Any], view: View, leaves: Any, start: int
) -> tuple[Term, Any]:
    """Return the term that prices the prior, and the leaves with what it needs."""
    k = view.k
    if "tangents" not in part:
        theta = _leaf(start, start + len(view.gain.linear))
        return {"rule": "prior", "theta": theta, "of": of}, leaves
    many = part["tangents"]
    points = leaves[:, start + many : start + many * (1 + k)].reshape(len(leaves), many, k)
    if not view.gain.linear:
        places = [start + many + i * k for i in range(many)]
        term = {
            "rule": "prior",
            "theta": _leaf(start, start + many),
            "points": [_leaf(place, place + k) for place in places],
            "of": of,
        }
        return term, leaves
    # Of a maximum of linear functions, those that are largest at the points.
    table = np.array([[float(arb(x).mid()) for x in row] for row in view.gain.linear])
    best = np.argmax(points @ table.T, axis=2)
    theta = np.zeros((len(leaves), len(table)))
    for i in range(many):
        np.add.at(theta, (np.arange(len(leaves)), best[:, i]), leaves[:, start + i])
    leaves = np.column_stack([leaves[:, :start], theta])
    return {"rule": "prior", "theta": _leaf(start, leaves.shape[1]), "of": of}, leaves


def _nu(splits: Any, cuts: Any, old: Any, n: int, k: int, gain: Gain) -> Any:
    """Return nu = V^-1 (mu + G(V)) of each leaf."""
    waiting, left = [[np.eye(k)] * n], iter(cuts.tolist())
    nu, at = np.zeros((len(old), n * k)), 0
    for y, i, j in splits.tolist():
        cells = waiting.pop()
        if y < 0:
            if old[at, 0] >= 0:
                mu = old[at, 1 : 1 + n * k].reshape(n, k)
                v = np.array(cells)
                heights = mu + _heights(gain, v)
                nu[at] = np.linalg.solve(v, heights[..., None])[..., 0].ravel()
            at += 1
            continue
        t = next(left)
        one, other = cells[y].copy(), cells[y].copy()
        one[j] = other[i] = (1 - t) * cells[y][i] + t * cells[y][j]
        waiting += [[*cells[:y], c, *cells[y + 1 :]] for c in (other, one)]
    return nu


def _heights(gain: Gain, v: Any) -> Any:
    """Return G of distributions, in floats."""
    if isinstance(gain, Shannon):
        return (v * np.log(np.where(v > 0, v, 1.0))).sum(-1)
    flat = v.reshape(-1, v.shape[-1])
    values = [float(gain.value([arb(x) for x in row]).mid()) for row in flat.tolist()]
    return np.array(values).reshape(v.shape[:-1])


def shares(view: View, parts: Sequence[Sequence[int]]) -> list[float]:
    """Return the shares of merged outputs in the first row that has all of them, or some."""
    t = [0.0] * view.n
    for part in parts:
        for row in view.rows:
            own = [float(row.lo[y].mid()) for y in part]
            if sum(own) > 0:
                for y, x in zip(part, own, strict=True):
                    t[y] = x / sum(own)
                if min(own) > 0:
                    break
    return _positive(t, parts)


def _positive(t: list[float], parts: Sequence[Sequence[int]]) -> list[float]:
    """Return the same with shares where there were none, of outputs that never occur."""
    for part in parts:
        if not any(t[y] for y in part):
            for y in part:
                t[y] = 1 / len(t)
    return t


def _merged(of: Term, outputs: Sequence[Sequence[int]], view: View) -> Term:
    if all(len(part) == 1 for part in outputs) and len(outputs) == view.n:
        if list(outputs) == [[y] for y in range(view.n)]:
            return of
    return {"rule": "price", "parts": list(outputs), "t": shares(view, outputs), "of": of}


def _slabs(part: Mapping[str, Any], view: View, scales: Any) -> Term:
    n, size = len(part["outputs"]), len(view.rows)
    old = unpack(part["leaves"]).astype(float)
    small = np.array(
        [[sum(float(row.lo[y].mid()) for y in own) for own in part["outputs"]] for row in view.rows]
    )
    q = old[:, 1:2]
    tau = old[:, 2 : 2 + n] / q
    t = np.exp(tau - tau.max(axis=1, keepdims=True))
    log_t = np.log(t / t.sum(axis=1, keepdims=True))
    nu = old[:, 2 + n : 2 + n + size] / q - log_t @ small.T
    code = np.zeros((len(old), 1))
    leaves = np.column_stack([code, old[:, :2], t, nu, old[:, 2 + n + size :] @ scales])
    end = 3 + n + size
    values, at = [], 3 + n
    for own in view.of:
        values.append({"rule": "slab", "nu": _leaf(at, at + len(own))})
        at += len(own)
    of = {"rule": "share", "q": {"leaf": 2}, "t": _leaf(3, 3 + n), "values": values}
    of = _merged(of, part["outputs"], view)
    return {
        "rule": "slabs",
        "functional": pack(unpack(part["functional"]), "<f8"),
        **_tree(unpack(part["nodes"])[:, None], unpack(part["cuts"]), leaves, "<f8"),
        "of": [_close({"leaf": 1}, view, of, _leaf(end, leaves.shape[1]))],
    }


def _sharing(part: Mapping[str, Any], view: View) -> Term:
    values = [_value(one) for one in part["values"]]
    t = unpack(part["output"]).tolist()
    of: Term = {"rule": "share", "q": 1, "t": t, "values": values}
    return _close(part["multiplier"], view, _merged(of, part["outputs"], view))


def _value(part: Mapping[str, Any]) -> Term:
    if "law" in part:
        return {"rule": "blocks", "w": _raised(unpack(part["law"])).tolist()}
    old = unpack(part["leaves"])
    code, size = np.zeros((len(old), 1)), old.shape[1]
    nodes = unpack(part["nodes"] if "nodes" in part else part["groups"])[:, None]
    cuts, dtype = unpack(part["cuts"]), old.dtype.str
    if "blocks" in part:
        tree = _tree(nodes, cuts, np.column_stack([code, _raised(old)]), dtype)
        of: list[Term] = [{"rule": "blocks", "w": _leaf(1, 1 + size)}]
        return {"rule": "mass-ranges", "blocks": part["blocks"], **tree, "of": of}
    if "nodes" in part:
        of = [{"rule": "output-chords", "slopes": _leaf(1, 1 + size)}]
        tree = _tree(nodes, cuts, np.column_stack([code, old]), dtype)
        return {"rule": "output-ranges", **tree, "of": of}
    w = _leaf(2, 1 + size)
    of = [
        {"rule": "law-chords", "w": w},
        {"rule": "box", "w": w, "eta": {"leaf": 1}},
    ]
    code = (old[:, :1] > 0).astype(float)
    leaves = np.column_stack([code, old[:, :1], _raised(old[:, 1:])])
    return {"rule": "share-ranges", **_tree(nodes, cuts, leaves, dtype), "of": of}


def _tree(nodes: Any, cuts: Any, leaves: Any, dtype: str) -> Term:
    """Return a tree that is in preorder by levels, with the numbers of its leaves."""
    inner, open_, depths = nodes[:, 0] >= 0, [0], []
    for is_inner in inner.tolist():
        depths.append(open_.pop())
        open_ += [depths[-1] + 1] * (2 * is_inner)
    order = np.argsort(depths, kind="stable")
    ranks = [np.cumsum(own) - 1 for own in (inner, ~inner)]
    at = [rank[order[own[order]]] for rank, own in zip(ranks, (inner, ~inner), strict=True)]
    return {
        "nodes": pack(nodes[order], "<i4"),
        "cuts": pack(np.asarray(cuts)[at[0]], "<f8"),
        "leaves": pack(np.asarray(leaves)[at[1]], dtype),
    }


def _raised(weights: Any) -> Any:
    return np.maximum(weights, LEAST_WEIGHT)
