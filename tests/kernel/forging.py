"""A small problem, honest terms about it, and what is done to both to forge them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from cvxleak.kernel.claims import LOADED
from cvxleak.kernel.leakage import RecordLeakage
from cvxleak.kernel.numbers import RefusedError, lower, upper
from cvxleak.kernel.reading import pack

assert LOADED

N, K, N_OUT = 6, 2, 3
"""Groups, values and outputs of the problem below."""

PROBLEM: dict[str, Any] = {
    "mechanism": {
        "query": {
            "kind": "additive",
            "space": {"alphabets": [[[0, 1], 3]]},
            "contributions": [[[[0], [1]], 3]],
            "totals": [[0], [1], [2], [3]],
            "values": [0, 1, 2, 3],
            "modulus": None,
        },
        "channel": {
            "inputs": [0, 1, 2, 3],
            "outputs": [0, 1, 2],
            "matrix": [[0.8, 0.15, 0.05], [0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.05, 0.15, 0.8]],
        },
    },
    "entropy_floor": 1.5,
    "size": 1,
    "records": None,
}
WITNESS = [0.1, 2.5, 5.0, 5.0, 2.5, 0.1]
GAIN = {"gain": {"kind": "guess"}}


def changed(**changes: Any) -> dict[str, Any]:
    """Return the problem with parts replaced; "channel" and "query" are inside of the mechanism."""
    found = json.loads(json.dumps(PROBLEM))
    for name, value in changes.items():
        if name in ("channel", "query"):
            found["mechanism"][name] |= value
        else:
            found[name] = value
    return found


def prove(*terms: Any, problem: Any = None) -> float:
    statement = RecordLeakage.read(problem or PROBLEM)
    return upper(statement.upper({"rule": "max", "groups": [list(terms)]}))


def attained(problem: Any = None, weights: Any = WITNESS) -> float:
    statement = RecordLeakage.read(problem or PROBLEM)
    return lower(statement.lower({"rule": "point", "group": 0, "weights": list(weights)}))


def close(of: Any, multiplier: Any = 0.1, limits: Any = ()) -> dict[str, Any]:
    return {"rule": "close", "multiplier": multiplier, "limits": list(limits), "of": of}


def share(*values_: Any, t: Any = (1, 1, 1)) -> dict[str, Any]:
    return {"rule": "share", "t": list(t), "values": list(values_)}


def cells(of: Any, leaves: Any = ((),), **more: Any) -> dict[str, Any]:
    tree = {"nodes": pack([[-1] * 3], "<i4"), "cuts": pack([], "<f8")}
    return {"rule": "cells", **tree, "leaves": pack(leaves, "<f8"), "of": of} | more


def chord(nu: Any = (0,) * (K * N_OUT)) -> dict[str, Any]:
    return {"rule": "chord", "nu": list(nu)}


VERTICES = {"rule": "vertices"}
CONTRACTION = {"rule": "contraction", "w": [1, 1, 1]}
SHARE = share(VERTICES, VERTICES)
RATIO = {
    "rule": "ratio",
    "law": [1, 1, 1],
    "order": pack([0, 1, 2], "<i4"),
    "groups": pack([], "<i4"),
    "x": pack([[1.0], [0.0], [-1.0]], "<f8"),
    "psi": pack([[1.0, 0.0]], "<f8"),
    "nodes": pack([-1], "<i4"),
    "cuts": pack([], "<f8"),
}
CELLS = cells(close(chord()))
HONEST = {
    "share": close(SHARE),
    "alphabet": close({"rule": "alphabet"}, 0),
    "contraction": close(share(CONTRACTION, CONTRACTION)),
    "ratio": close(share(RATIO, RATIO), 2),
    "smoothed": close({"rule": "smoothed", "share": 0.1, "t": [1, 1, 1], "of": SHARE}),
    "cells": CELLS,
    "price": {
        "rule": "price",
        "parts": [[0, 1], [2]],
        "t": [1, 1, 1],
        "of": close(SHARE | {"t": [1, 1]}),
    },
    "choices": {"rule": "choices", "inputs": pack(np.ones((9, 2)), "<f8")},
}


def split_cells(node: Any = (0, 0, 1), cut: float = 0.5, leaves: Any = ((), ())) -> Any:
    nodes = pack([list(node), [-1] * 3, [-1] * 3], "<i4")
    return CELLS | {"nodes": nodes, "cuts": pack([cut], "<f8"), "leaves": pack(leaves, "<f8")}


def with_(term: Any, path: str, value: Any) -> Any:
    """Return a term with one part replaced, or taken out with `...`."""
    found = json.loads(json.dumps(term))
    at, *rest = [int(x) if x.isdigit() else x for x in path.split(".")]
    place = found
    for step in rest:
        place, at = place[at], step
    if value is ...:
        del place[at]
    else:
        place[at] = value
    return found


def nothing(term: Any, problem: Any = None) -> bool:
    """Whether a term is refused, or bounds nothing."""
    try:
        return prove(term, problem=problem) == np.inf
    except RefusedError:
        return True


LOW = [[0.7, 0.1, 0], [0.4, 0.2, 0.1], [0.1, 0.2, 0.4], [0, 0.1, 0.7]]
BOXES = {"lower": LOW, "upper": [[x + 0.2 for x in row] for row in LOW]}
SET = changed() | {"mechanism": {"query": PROBLEM["mechanism"]["query"], "channel_set": BOXES}}
LIMIT = {"kind": "expectation", "values": [0, 1, 2, 3], "records": None, "query": None}
LIMIT |= {"at_least": None, "at_most": 2, "name": "the sum"}
LIMITED = changed(adversaries=[LIMIT])
