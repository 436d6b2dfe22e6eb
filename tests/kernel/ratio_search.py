"""A small search for trees of the rule `ratio`, best first; nothing trusts what it finds."""

from __future__ import annotations

import heapq
from dataclasses import replace
from typing import Any

import numpy as np
from flint import arb, fmpz

from cvxleak.kernel.many import Many
from cvxleak.kernel.numbers import law, proved
from cvxleak.kernel.ratio import Boxes, Ratio
from cvxleak.kernel.reading import pack
from cvxleak.kernel.terms import Law, Shape
from cvxleak.kernel.values import OneValue
from cvxleak.kernel.view import Row, View


def one_value(rows: Any, counts: Any, scale: float, t: Any, c: Any = None) -> OneValue:
    """Return the groups of a value in balls, from numbers over their sums."""
    exact = [[arb(x) for x in law([proved(float(x)) for x in row])] for row in rows]
    log_t = [arb(x).log() for x in law([proved(float(x)) for x in t])]
    extra = [0.0] * len(counts) if c is None else c
    logs = [arb(fmpz(int(m))).log() for m in counts]
    base = [arb(float(x)) + arb(scale) * y for x, y in zip(extra, logs, strict=True)]
    return OneValue([Row(row) for row in exact], base, arb(scale), log_t)


def shape_of(one: OneValue) -> Shape:
    """Return the shape that a V-term about the only value of a view is read for."""
    groups = len(one.rows)
    view = View(one.rows, [1] * groups, [arb(0)] * groups, [range(groups)], arb(0))
    return replace(Shape(view), value=0)


def floats(one: OneValue) -> tuple[Any, Any, float, Any]:
    """Return rows, base, L and log t as floats."""
    rows = np.array([[float(x) for x in row.lo] for row in one.rows])
    base, log_t = (np.array([float(x) for x in own]) for own in (one.base, one.log_t))
    return rows, base, float(one.scale), log_t


def ascent(one: OneValue, starts: Any = None, steps: int = 3000) -> tuple[Any, Any]:
    """Return f, largest first, and v, after many steps v <- law(R log(vR / t))."""
    rows, base, scale, log_t = floats(one)
    size = len(rows)
    v = np.eye(size) * 0.9 + 0.1 / size if starts is None else np.array(starts, dtype=float)
    for _ in range(steps):
        z = ((np.log(v @ rows) - log_t) @ rows.T + base) / scale
        new = np.exp(z - z.max(1, keepdims=True))
        new /= new.sum(1, keepdims=True)
        moved, v = np.abs(new - v).max(), new
        if moved < 1e-14:
            break
    found = values_at(one, v)
    best = np.argsort(-found)
    return found[best], v[best]


def values_at(one: OneValue, v: Any) -> Any:
    """Return f at distributions."""
    rows, base, scale, log_t = floats(one)
    r = v @ rows
    entropy = -(v * np.log(np.where(v > 0, v, 1.0))).sum(1)
    return (r * (np.log(r) - log_t)).sum(1) + v @ base + scale * entropy


def coordinates(
    one: OneValue, v: Any, d: int, flat: float = 0.2, ordered: bool = True
) -> dict[str, Any]:
    """Return a term's arrays: the leading functionals of a mixture of v and the uniform law."""
    rows, *_ = floats(one)
    w = (1 - flat) * v + flat / len(v)
    r = w @ rows
    m = (rows - r) / np.sqrt(r)
    _, sizes, right = np.linalg.svd(np.sqrt(w)[:, None] * m, full_matrices=False)
    d = max(1, min(d, int((sizes > 1e-9).sum())))
    order = np.argsort(right[0] / np.sqrt(r))
    low = np.maximum(v, 1e-12)
    psi = (right[:d] * np.sqrt(r))[:, order[:-1]]
    x = m @ right[:d].T
    groups = np.argsort(x[:, 0]) if ordered else np.empty(0, int)
    return {
        "law": (low / low.sum()).tolist(),
        "order": order,
        "groups": groups,
        "x": x,
        "psi": psi,
    }


def boxes_of(one: OneValue, made: dict[str, Any]) -> Boxes:
    """Return the boxes of a term with these arrays, in balls."""
    given = Law(tuple(law([proved(x) for x in made["law"]])))
    return Boxes.of(Ratio(**{**made, "law": given}, nodes=np.array([-1]), cuts=np.empty(0)), one)


def search(
    one: OneValue,
    v: Any,
    target: float,
    *,
    d: int = 2,
    limit: int = 4000,
    batch: int = 64,
    ordered: bool = True,
) -> tuple[dict[str, Any] | None, int]:
    """Return a term that f <= target, or None where `limit` nodes are too few; and the nodes."""
    made = coordinates(one, v, d, ordered=ordered)
    boxes, children = boxes_of(one, made).lifted(Many.table), {}
    sizes = boxes.x.shape[1]
    heap: list[tuple[float, int, Any]] = []
    new, n = [0], 1
    with np.errstate(all="ignore"):
        ends = boxes.root[None]
        while True:
            ends = boxes.narrowed(ends)
            tops = boxes.bound(ends).upper()
            for place, box, top in zip(new, ends, tops, strict=True):
                if (box[0] >= -box[1]).all() and not top <= target:
                    heapq.heappush(heap, (-top if top < np.inf else -np.inf, place, box))
            if not heap or n >= limit:
                break
            own = [heapq.heappop(heap) for _ in range(min(batch, len(heap)))]
            old = np.array([box for *_, box in own])
            v_c = boxes.middle(old)[1].m
            spread = np.sqrt(np.maximum(v_c @ boxes.x**2 - (v_c @ boxes.x) ** 2, 1e-12))
            cut_at = ((old[:, 0] + old[:, 1])[:, :sizes] * spread).argmax(1).tolist()
            new, parts = [], []
            for (_, place, box), j in zip(own, cut_at, strict=True):
                cut = float(box[0, j] - box[1, j]) / 2
                low, high = box.copy(), box.copy()
                low[0, j], high[1, j] = cut, -cut
                children[place] = (n, n + 1, j, cut)
                new += [n, n + 1]
                parts += [low, high]
                n += 2
            ends = np.array(parts)
    return (None if heap else written(made, children)), n


def written(made: dict[str, Any], children: dict[int, tuple[int, int, int, float]]) -> Any:
    """Return the term, with its tree by levels."""
    nodes, cuts, level = [], [], [0]
    while level:
        inner = [children[place] for place in level if place in children]
        nodes += [children[place][2] if place in children else -1 for place in level]
        cuts += [cut for *_, cut in inner]
        level = [child for one, other, *_ in inner for child in (one, other)]
    return packed_term({**made, "nodes": nodes, "cuts": cuts})


def packed_term(made: dict[str, Any]) -> dict[str, Any]:
    """Return a term from its arrays."""
    arrays = {name: pack(made[name], "<i4") for name in ("order", "groups", "nodes")}
    arrays |= {name: pack(made[name], "<f8") for name in ("x", "psi", "cuts")}
    return {"rule": "ratio", "law": made["law"], **arrays}
