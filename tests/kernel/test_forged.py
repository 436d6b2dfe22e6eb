"""Forged statements and terms: each is refused, or proves nothing that an adversary exceeds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from flint import fmpq

from cvxleak.kernel import bounds, covers, majorants, values  # noqa: F401 (their rules)
from cvxleak.kernel.balance import Balance
from cvxleak.kernel.budget import limited
from cvxleak.kernel.claims import _at_most
from cvxleak.kernel.covers import _symmetric
from cvxleak.kernel.leakage import RecordLeakage
from cvxleak.kernel.many import Many
from cvxleak.kernel.numbers import RefusedError, lower, precision, rational, upper
from cvxleak.kernel.reading import bound, pack, parse

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


@pytest.fixture(autouse=True)
def _precise() -> Iterator[None]:
    with precision(), limited(), np.errstate(all="ignore"):
        yield


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


def share(*values_: Any, q: Any = 1, t: Any = (1, 1, 1)) -> dict[str, Any]:
    return {"rule": "share", "q": q, "t": list(t), "values": list(values_)}


def cover(rule: str, of: Any, leaves: Any = ((0.0,),), **more: Any) -> dict[str, Any]:
    nodes = [[-1, -1, -1]] if rule == "cells" else [[-1]]
    tree = {"nodes": pack(nodes, "<i4"), "cuts": pack([], "<f8"), "leaves": pack(leaves, "<f8")}
    return {"rule": rule, **tree, "of": [of], **more}


def chord(nu: Any = (0,) * (K * N_OUT)) -> dict[str, Any]:
    return {"rule": "chord", "nu": list(nu)}


GOLDEN = {"rule": "golden", "t": [1, 1, 1]}
VERTICES = {"rule": "vertices"}
CELLS = cover("cells", close(chord()))
SLAB = {"rule": "slab", "nu": [0, 0, 0]}
SLABS = cover("slabs", close(share(SLAB, SLAB)), functional=[0, 1, 2, 0, 1, 2])
SHARES = cover("share-ranges", {"rule": "law-chords", "w": [1, 1, 1]})
BLOCKS = {"rule": "blocks", "w": [1, 1, 1]}
HONEST = {
    "golden": close(GOLDEN),
    "alphabet": close({"rule": "alphabet"}, 0),
    "share": close(share(VERTICES, VERTICES)),
    "blocks": close(share(BLOCKS, BLOCKS)),
    "cells": CELLS,
    "slabs": SLABS,
    "shares": close(share(SHARES, SHARES)),
    "price": close(
        {"rule": "price", "parts": [[0, 1], [2]], "t": [1, 1, 1], "of": GOLDEN | {"t": [1, 1]}}
    ),
    "choices": {"rule": "choices", "inputs": pack(np.ones((9, 2)), "<f8")},
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_terms_are_above_the_witness(name: str) -> None:
    assert attained() > 0.1
    assert attained() <= prove(HONEST[name]) < 3


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


def packed_as(dtype: str, shape: Any, values_: Any) -> dict[str, Any]:
    return pack(values_, dtype) | {"shape": shape}


def split_cells(node: Any = (0, 0, 1), cut: float = 0.5, leaves: Any = ((0.0,), (0.0,))) -> Any:
    nodes = pack([list(node), [-1] * 3, [-1] * 3], "<i4")
    return CELLS | {"nodes": nodes, "cuts": pack([cut], "<f8"), "leaves": pack(leaves, "<f8")}


def split_shares(node: int = 0, cut: float = 0.5) -> Any:
    one = SHARES | {"nodes": pack([[node], [-1], [-1]], "<i4"), "cuts": pack([cut], "<f8")}
    one["leaves"] = pack([[0.0], [0.0]], "<f8")
    return close(share(one, one))


def limited_close() -> dict[str, Any]:
    return close(chord()) | {"limits": {"leaf": [1, 2]}}


def box(eta: Any) -> dict[str, Any]:
    return cover("share-ranges", {"rule": "box", "w": [1, 1, 1], "eta": eta})


IDENTITY = pack([[0, 1, 0, 1, 2]], "<i4")
MIRROR = pack([[1, 0, 2, 1, 0]], "<i4")
MASSES = cover("mass-ranges", BLOCKS, blocks=[[0], [1, 2]])
NOT_FINITE = {"dtype": "<f8", "shape": [6], "data": pack([0, 1, 2, 0, 1, np.nan], "<f8")["data"]}
NAN_CUT = {"dtype": "<f8", "shape": [1], "data": pack([np.nan], "<f8")["data"]}
REFUSED: dict[str, Any] = {
    # Forgeries of the referee: shapes and types.
    "golden with t = [1]": close({"rule": "golden", "t": [1]}),
    "share without values": close(share()),
    "share with values of one": close(share(VERTICES)),
    "mix": close({"rule": "mix", "weights": [1], "parts": [share(VERTICES, VERTICES)]}),
    "output-chords with too few slopes": close(
        share(*[cover("output-ranges", {"rule": "output-chords", "slopes": [-50]})] * 2)
    ),
    "slab with too short nu": with_(SLABS, "of.0.of.values.0.nu", [0]),
    "share with too short t": close(share(VERTICES, VERTICES, t=[1])),
    "slabs in a V-cover": close(share(SLABS, SLABS)),
    "symmetries of a V-cover": close(share(SHARES | {"symmetries": IDENTITY}, SHARES)),
    "NaN as a cut": SLABS
    | {
        "nodes": pack([[0], [-1], [-1]], "<i4"),
        "cuts": NAN_CUT,
        "leaves": pack([[0.0]] * 2, "<f8"),
    },
    "NaN in a functional": SLABS | {"functional": NOT_FINITE},
    "NaN in text": close(GOLDEN, "nan"),
    "symmetries with merged parts": CELLS | {"symmetries": IDENTITY, "parts": [[0, 1], [2]]},
    # Keys, rules and judgements.
    "a cache as a key": with_(HONEST["blocks"], "of.values.0.eta", 0),
    "an unknown rule": close({"rule": "magic"}),
    "a rule that is no text": close({"rule": ["golden"]}),
    "a missing key": with_(HONEST["golden"], "of.t", ...),
    "J in place of B": GOLDEN,
    "B in place of J": close(close(GOLDEN)),
    "V in place of J": close(VERTICES),
    "J in place of V": close(share(GOLDEN, GOLDEN)),
    # Numbers.
    "a negative multiplier": close(GOLDEN, -1),
    "true as a number": close(GOLDEN, True),
    "infinity": close(GOLDEN, 1e999),
    "limits of none": close(GOLDEN, 0.1, [1]),
    "a negative law": close({"rule": "golden", "t": [2, -1, 0]}),
    "a law of nothing": close({"rule": "golden", "t": [0, 0, 0]}),
    "q = 0": close(share(VERTICES, VERTICES, q=0)),
    "a leaf's q of 0": with_(SLABS, "of.0.of.q", {"leaf": 1}) | {"leaves": pack([[0.0, 0]], "<f8")},
    "a leaf's q above 1": with_(SLABS, "of.0.of.q", {"leaf": 1})
    | {"leaves": pack([[0.0, 1.5]], "<f8")},
    "a law without an output": close(GOLDEN | {"t": [1, 1, 0]}),
    "a share's law without an output": close(share(VERTICES, VERTICES, t=[1, 1, 0])),
    "a tangent's law without an output": close(share(BLOCKS, BLOCKS, t=[1, 1, 0])),
    "a tangent where a group has no weight": close(share(*[BLOCKS | {"w": [1, 1, 0]}] * 2)),
    "masses with a multiplier above 1": close(share(MASSES, MASSES), 1 + 2.0**-52),
    "a box that does not contract so much": close(share(*[box(0.3)] * 2)),
    "a box with a negative eta": close(share(*[box(-1)] * 2)),
    "q above 1": close(share(VERTICES, VERTICES, q=1.0000001)),
    "a negative q": close(share(VERTICES, VERTICES, q=-1)),
    # Regions.
    "chord without cells": close(chord()),
    "slab without slabs": close(share(SLAB, SLAB)),
    "law-chords without ranges": close(share(*[{"rule": "law-chords", "w": [1, 1, 1]}] * 2)),
    "law-chords on ranges of outputs": close(
        share(*[cover("output-ranges", {"rule": "law-chords", "w": [1, 1, 1]})] * 2)
    ),
    "output-chords on ranges of shares": close(
        share(*[cover("share-ranges", {"rule": "output-chords", "slopes": [0, 0, 0]})] * 2)
    ),
    "a box on ranges of outputs": close(share(*[cover("output-ranges", box(1)["of"][0])] * 2)),
    "blocks on ranges of shares": close(share(*[cover("share-ranges", BLOCKS)] * 2)),
    "cells of parts that are not merged": CELLS | {"parts": [[0, 1], [2]]},
    "cells of parts merged otherwise": CELLS
    | {
        "parts": [[0, 1], [2]],
        "of": [
            close({"rule": "price", "parts": [[0], [1, 2]], "t": [1, 1, 1], "of": chord([0] * 4)})
        ],
    },
    "cells of parts in another order": CELLS
    | {
        "parts": [[2], [0, 1]],
        "of": [
            close({"rule": "price", "parts": [[0, 1], [2]], "t": [1, 1, 1], "of": chord([0] * 4)})
        ],
    },
    "a price twice": close(
        {
            "rule": "price",
            "parts": [[0, 1], [2]],
            "t": [1, 1, 1],
            "of": {"rule": "price", "parts": [[0, 1]], "t": [1, 1], "of": GOLDEN | {"t": [1]}},
        }
    ),
    "a cover in a cover": cover("cells", CELLS),
    "a V-cover in cells": cover("cells", HONEST["shares"]),
    "vertices in slabs": with_(SLABS, "of.0.of.values", [VERTICES, VERTICES]),
    # Partitions.
    "a partition with a part twice": with_(HONEST["price"], "of.parts", [[0, 1], [1, 2]]),
    "a partition without an output": with_(HONEST["price"], "of.parts", [[0], [1]]),
    "an empty part": with_(HONEST["price"], "of.parts", [[0, 1], [2], []]),
    "a negative output": with_(HONEST["price"], "of.parts", [[0, 1], [-1]]),
    "an output that is no number": with_(HONEST["price"], "of.parts", [["0"], [1, 2]]),
    "an output that is true": with_(HONEST["price"], "of.parts", [[0], [True, 2]]),
    "blocks that miss a group": close(share(*[MASSES | {"blocks": [[0], [1]]}] * 2)),
    "blocks that have a group twice": close(share(*[MASSES | {"blocks": [[0, 1], [1, 2]]}] * 2)),
    "a price's negative law": with_(HONEST["price"], "of.t", [-1, 1, 1]),
    "a price's law of parts": with_(HONEST["price"], "of.t", [1, 1]),
    "a mass that no price is left for": with_(HONEST["price"], "of.t", [0, 0, 1]),
    # Trees and leaves.
    "no column of templates": CELLS | {"leaves": packed_as("<f8", [1, 0], [])},
    "a leaf of a template that is none": CELLS | {"leaves": pack([[1.0]], "<f8")},
    "a template and a half": CELLS | {"leaves": pack([[0.5]], "<f8")},
    "a leaf that is left out": CELLS | {"leaves": pack([[-1.0]], "<f8")},
    "leaves as integers": CELLS | {"leaves": pack([[0]], "<i4")},
    "a tree without leaves": CELLS
    | {"nodes": pack(np.zeros((0, 3)), "<i4"), "leaves": pack(np.zeros((0, 1)), "<f8")},
    "a tree that ends early": CELLS
    | {
        "nodes": pack([[-1] * 3, [0, 0, 1], [-1] * 3], "<i4"),
        "cuts": pack([0.5], "<f8"),
        "leaves": pack([[0.0]] * 2, "<f8"),
    },
    "a tree without an end": CELLS
    | {
        "nodes": pack([[0, 0, 1]] * 2 + [[-1] * 3], "<i4"),
        "cuts": pack([0.5] * 2, "<f8"),
        "leaves": pack([[0.0]], "<f8"),
    },
    "nodes that are floats": CELLS | {"nodes": pack([[-1, -1, -1]], "<f8")},
    "nodes of a number": CELLS | {"nodes": pack([[-1]], "<i4")},
    "cuts that are integers": split_cells() | {"cuts": pack([0], "<i4")},
    "a cut too many": split_cells() | {"cuts": pack([0.5] * 2, "<f8")},
    "a leaf too few": split_cells() | {"leaves": pack([[0.0]], "<f8")},
    "leaves that are no table": CELLS | {"leaves": pack([0.0], "<f8")},
    "a cut at an end": split_cells(cut=0.0),
    "a cut outside": split_cells(cut=1.5),
    "an edge from a vertex to itself": split_cells((0, 1, 1)),
    "an edge that is none": split_cells((0, 0, 2)),
    "a negative vertex": split_cells((0, 0, -1)),
    "an output that is none": split_cells((3, 0, 1)),
    "a functional that is none": split_shares(node=3),
    "a cut between multiples": split_shares(cut=2.0**-41),
    "a column that is not there": cover("cells", close(chord(), {"leaf": 1})),
    "the template's number as a number": cover("cells", close(chord(), {"leaf": 0})),
    "columns backwards": cover(
        "cells", close({"rule": "chord", "nu": {"leaf": [8, 2]}}), [[0.0] * 9]
    ),
    "limits in leaves that have none": cover("cells", limited_close(), [[0.0, 1.0]]),
    "a leaf's number outside of covers": close(GOLDEN, {"leaf": 1}),
    "a leaf's negative multiplier": cover("cells", close(chord(), {"leaf": 1}), [[0.0, -1.0]]),
    "a leaf's negative law": cover(
        "cells", close(GOLDEN | {"t": {"leaf": [1, 4]}}), [[0.0, 2, -1, 0]]
    ),
    "a leaf's law of nothing": cover(
        "cells", close(GOLDEN | {"t": {"leaf": [1, 4]}}), [[0.0, 0, 0, 0]]
    ),
    "a slab that is none": SLABS
    | {
        "nodes": pack([[2], [-1], [-1]], "<i4"),
        "cuts": pack([0.5], "<f8"),
        "leaves": pack([[0.0]] * 2, "<f8"),
    },
    "a functional of leaves": SLABS
    | {"functional": {"leaf": [1, 7]}, "leaves": pack([[0.0, 0, 1, 2, 0, 1, 2]], "<f8")},
    # Symmetries.
    "a symmetry that is none": CELLS | {"symmetries": pack([[1, 0, 0, 1, 2]], "<i4")},
    "a symmetry that is no permutation": CELLS | {"symmetries": pack([[1, 1, 2, 1, 0]], "<i4")},
    "a leaf that the identity raises": CELLS
    | {"symmetries": IDENTITY, "leaves": pack([[-1.0]], "<f8")},
    "a leaf that a symmetry does not raise": split_cells(leaves=((0.0,), (-1.0,)), node=(1, 0, 1))
    | {"symmetries": MIRROR},
    "nothing but what is left out": CELLS | {"symmetries": MIRROR, "leaves": pack([[-1.0]], "<f8")},
    "a second symmetry of one": CELLS | {"symmetries": MIRROR, "leaves": pack([[-2.0]], "<f8")},
    "half a symmetry": CELLS | {"symmetries": MIRROR, "leaves": pack([[-0.5]], "<f8")},
    "a symmetry in floats": CELLS | {"symmetries": pack([[1, 0, 2, 1, 0]], "<f8")},
    "a symmetry of values alone": CELLS | {"symmetries": pack([[1, 0]], "<i4")},
    "a symmetry that is no table": CELLS | {"symmetries": pack([1, 0, 2, 1, 0], "<i4")},
    # Rules of their own.
    "equal": {"rule": "equal"},
    "too few choices": {"rule": "choices", "inputs": pack(np.ones((1, 2)), "<f8")},
    "choices of a negative law": {"rule": "choices", "inputs": pack([[2, -1]] * 9, "<f8")},
    "choices of one value": {"rule": "choices", "inputs": pack(np.ones((9, 1)), "<f8")},
    "choices of no law": {"rule": "choices", "inputs": pack(np.zeros((9, 2)), "<f8")},
    "a factor of information": {"rule": "factor", "times": 1, "theta": [1], "of": CELLS},
    "the prior of information": close({"rule": "prior", "theta": [1], "of": GOLDEN}),
    # Packed arrays.
    "another type": HONEST["choices"] | {"inputs": pack(np.ones((9, 2)), "<f8") | {"dtype": ">f8"}},
    "another size": HONEST["choices"]
    | {"inputs": pack(np.ones((9, 2)), "<f8") | {"shape": [10, 2]}},
    "a negative size": HONEST["choices"]
    | {"inputs": pack(np.ones((9, 2)), "<f8") | {"shape": [-9, -2]}},
    "no base64": HONEST["choices"] | {"inputs": pack(np.ones((9, 2)), "<f8") | {"data": "?"}},
    "a size in floats": HONEST["choices"]
    | {"inputs": pack(np.ones((9, 2)), "<f8") | {"shape": [9.0, 2]}},
    "too few bytes": HONEST["choices"]
    | {"inputs": pack(np.ones((9, 2)), "<f8") | {"data": pack(np.ones(17), "<f8")["data"]}},
    "very many bytes in few": HONEST["choices"]
    | {"inputs": pack(np.ones((9, 2)), "<f8") | {"data": pack(np.zeros(10**6), "<f8")["data"]}},
    "a key that no array has": HONEST["choices"]
    | {"inputs": pack(np.ones((9, 2)), "<f8") | {"note": 1}},
    "very many bytes": HONEST["choices"]
    | {"inputs": pack(np.ones((9, 2)), "<f8") | {"shape": [1 << 40, 2]}},
}


def nothing(term: Any, problem: Any = None) -> bool:
    """Whether a term is refused, or bounds nothing."""
    try:
        return prove(term, problem=problem) == np.inf
    except RefusedError:
        return True


@pytest.mark.parametrize("name", REFUSED)
def test_forged_terms_are_refused(name: str) -> None:
    assert nothing(REFUSED[name])


def test_the_exponential_far_below_proves_nothing() -> None:
    # REFEREE M1: a law (1, 0) in a hole makes a term's radius infinite where it is far below.
    problem = changed(entropy_floor=1.2)
    of = {"rule": "blocks", "w": {"leaf": [1, 4]}}
    term = cover("mass-ranges", of, [[0.0, 1.0, 0.0, 0.0]], blocks=[[0], [1], [2]])
    try:
        found = prove(close(share(term, term, t=[51, 49, 1]), 0.31), problem=problem)
    except RefusedError:
        return
    assert found >= attained(problem)
    assert not Many(-1000.0, np.inf).exp().certain()


def test_a_law_that_is_zero_where_no_row_is_not_leaves_nothing_out() -> None:
    # Choices of two rows that exclude each other, and an output that none of a value's rows has.
    told = changed(channel={"matrix": [[1, 0, 0], ["1/2", "1/2", 0], [0, 1, 0], [0, "1/2", "1/2"]]})
    even, told_all = pack(np.ones((9, 2)), "<f8"), pack([[1.0, 0.0]] * 9, "<f8")
    assert prove({"rule": "choices", "inputs": even}, problem=told) >= attained(told)
    assert nothing({"rule": "choices", "inputs": told_all}, told)
    silent = changed(channel={"matrix": [[f"1/{n}", f"{n - 1}/{n}", 0] for n in (2, 3, 4, 5)]})
    for t in ([1, 1, 0], [1, 1, 1]):
        for value in (VERTICES, BLOCKS):
            assert 0 < attained(silent) <= prove(close(share(value, value, t=t)), problem=silent)


@pytest.mark.parametrize("cut", [0.25, 0.4, 0.5])
@pytest.mark.parametrize("other", [0.25, 0.5, 0.75])
def test_what_is_left_out_has_an_image_of_larger_tau_everywhere(cut: float, other: float) -> None:
    leaf = [-1] * 3
    nodes = pack([[0, 0, 1], [1, 0, 1], leaf, [2, 0, 1], leaf, leaf, leaf], "<i4")
    # What the mirror takes from tau at (y, a); places between the vertices 0 and 1.
    gains = [(-1, 3), (-2, 2), (-3, 1)]
    ends = [(0, cut), (0, other), (0, cut)]
    cells = [[(cut, 1), (0, 1), (0, 1)], [ends[0], (other, 1), (0, 1)]]
    cells += [[*ends[:2], (0, cut)], [*ends[:2], (cut, 1)]]
    accepted = []
    for place, cell in enumerate(cells):
        leaves = [[-1.0] if i == place else [0.0] for i in range(4)]
        tree = {"nodes": nodes, "cuts": pack([cut, other, cut], "<f8")}
        term = CELLS | tree | {"symmetries": MIRROR, "leaves": pack(leaves, "<f8")}
        most = sum(
            max((1 - x) * low + x * high for x in at)
            for at, (low, high) in zip(cell, gains, strict=True)
        )
        if most < 0:
            assert prove(term) >= attained()
            accepted.append(place)
        else:
            with pytest.raises(RefusedError, match="a leaf is missing"):
                prove(term)
    assert accepted in ([], [2])
    assert (accepted == [2]) is (2 * cut * 4 + 4 * other < 6)


def test_images_of_a_group_have_its_multiplicity() -> None:
    query = {
        "kind": "table",
        "space": {"alphabets": [[[0, 1], 1], [[0, 1, 2, 3], 1]]},
        "table": [0, 2, 2, 2, 1, 1, 1, 2],
        "values": [0, 1, 2],
    }
    problem = changed(records=[[0]], entropy_floor=1)
    rows = [["3/4", "1/4"], ["1/4", "3/4"], ["1/2", "1/2"]]
    problem["mechanism"] = {"query": query, "channel": {"matrix": rows}}
    (view,) = RecordLeakage.read(problem).views
    assert sorted(view.counts) == [1, 1, 3, 3]
    assert _symmetric(view, [[1, 0, 1, 0]]).counts == [3] * 4
    for table in ([[0, 1, 1, 0]], [[1, 0, 0, 1]], [[1, 0, 0, 0]], [[1, 1, 1, 0]]):
        with pytest.raises(RefusedError):
            _symmetric(view, table)


LOW = [[0.7, 0.1, 0], [0.4, 0.2, 0.1], [0.1, 0.2, 0.4], [0, 0.1, 0.7]]
BOXES = {"lower": LOW, "upper": [[x + 0.2 for x in row] for row in LOW]}
SET = changed() | {"mechanism": {"query": PROBLEM["mechanism"]["query"], "channel_set": BOXES}}
LIMIT = {"kind": "expectation", "values": [0, 1, 2, 3], "records": None, "query": None}
LIMIT |= {"at_least": None, "at_most": 2, "name": "the sum"}
LIMITED = changed(adversaries=[LIMIT])


@pytest.mark.parametrize("name", ["golden", "alphabet", "cells"])
def test_honest_terms_of_sets_are_above_a_witness(name: str) -> None:
    phi = [[1 - x for x in (0.2, 0.5, 0.8)], [0.2, 0.5, 0.8]]
    statement = RecordLeakage.read(SET)
    term = {"rule": "point", "group": 0, "weights": WITNESS, "posteriors": phi}
    assert 0.05 < lower(statement.lower(term)) <= prove(HONEST[name], problem=SET) < 3


@pytest.mark.parametrize(
    "term",
    [
        HONEST["price"],
        HONEST["share"],
        HONEST["choices"],
        {"rule": "equal"},
        CELLS | {"symmetries": MIRROR},
        close(GOLDEN | {"t": [1, 0, 0]}),
    ],
)
def test_what_needs_one_channel_is_refused_of_sets(term: Any) -> None:
    assert nothing(term, SET)


def test_limits_have_multipliers_that_are_not_negative() -> None:
    for multiplier in (0, 0.2):
        assert prove(close(GOLDEN, 0.1, [multiplier]), problem=LIMITED) >= attained(LIMITED)
        term = cover("cells", limited_close(), [[0.0, multiplier]])
        assert prove(term, problem=LIMITED) >= attained(LIMITED)
    for term in (
        close(GOLDEN, 0.1, [-0.2]),
        close(GOLDEN, 0.1),
        close(GOLDEN, 0.1, [1, 1]),
        cover("cells", limited_close(), [[0.0, -0.2]]),
        cover("cells", close(chord(), 0.1, [0])) | {"symmetries": MIRROR},
    ):
        assert nothing(term, LIMITED)


@pytest.mark.parametrize("low", ["1/3", "0.1", 0.1, 0])
@pytest.mark.parametrize("high", ["2/3", "0.7", 0.7])
def test_unit_vectors_at_the_ends_of_a_slab_are_among_its_vertices(low: Any, high: Any) -> None:
    # As balls, ends such as 1/3 would neither be certainly inside nor outside.
    x = [low, "1/2", high]
    term = SLABS | {"functional": x + x}
    halves = {"nodes": pack([[0], [-1], [-1]], "<i4"), "cuts": pack([0.5], "<f8")}
    for own in (term, term | halves | {"leaves": pack([[0.0], [0.0]], "<f8")}):
        if isinstance(low, str) or isinstance(high, str):
            with pytest.raises(RefusedError, match="numbers that floats hold"):
                prove(own)
        else:
            assert prove(own) >= attained()


def test_leaves_have_numbers_of_their_own_over_a_set_of_channels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = np.array(PROBLEM["mechanism"]["channel"]["matrix"])
    ends = {"lower": np.maximum(rows - 0.05, 0).tolist(), "upper": (rows + 0.05).tolist()}
    inputs = PROBLEM["mechanism"]["channel"]["inputs"]
    problem = changed(mechanism={**PROBLEM["mechanism"], "channel_set": {"inputs": inputs} | ends})
    del problem["mechanism"]["channel"]
    nodes = {"nodes": pack([[0, 0, 1], [-1] * 3, [-1] * 3], "<i4"), "cuts": pack([0.5], "<f8")}
    leaves = pack([[0, 0.1, 1, 1, 1], [0, 0.2, 2, 1, 1]], "<f8")
    of = {"rule": "golden", "t": {"leaf": [2, 5]}}
    term = CELLS | nodes | {"leaves": leaves, "of": [close(of, {"leaf": 1})]}
    found = prove(term, problem=problem)
    monkeypatch.setattr(covers, "ALLOWANCE", 0.0)
    assert attained() <= prove(term, problem=problem) <= found
    assert found == pytest.approx(prove(term, problem=problem), abs=1e-12)


STATEMENTS: dict[str, Any] = {
    "knowledge that is not read": changed(adversaries={}),
    "a gain without its form": changed(gain={"kind": "guess"}),
    "a form without a gain": changed(form="rise"),
    "no such form": changed(**GAIN, form="best"),
    "a form that is no text": changed(**GAIN, form=["rise"]),
    "no such gain": changed(gain={"kind": "wish"}, form="rise"),
    "a norm that is concave": changed(gain={"kind": "arimoto", "alpha": 0.5}, form="rise"),
    "no tries": changed(gain={"kind": "tries", "tries": 0}, form="rise"),
    "actions for another number of values": changed(
        gain={"kind": "matrix", "table": [[1, 0, 0]]}, form="rise"
    ),
    "ragged rows": changed(channel={"matrix": [[0.5, 0.5, 0], [1, 0], [0, 1, 0], [0, 0, 1]]}),
    "rows that do not sum to 1": changed(
        channel={"matrix": [[3, 0, 0], [7, 7, 7], [0, 1, 0], [0, 0, 1]]}
    ),
    "negative probabilities": changed(
        channel={"matrix": [[1.5, -0.5, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]}
    ),
    "too few rows": changed(channel={"matrix": [[1, 0, 0]]}),
    "rows of other inputs": changed(channel={"inputs": [0, 1, 2, 4]}),
    "an input twice": changed(channel={"inputs": [0, 1, 2, 2]}),
    "an empty set of rows": changed(channel={"lower": [[0, 0]] * 4, "upper": [[0.2, 0.2]] * 4}),
    "no size": changed(size=0),
    "a negative size": changed(size=-1),
    "a size that is too large": changed(size=4),
    "a size that is no number": changed(size=True),
    "a record that is none": changed(records=[[3]]),
    "a negative record": changed(records=[[-1]]),
    "a record twice in a group": changed(size=2, records=[[1, 1]]),
    "no group": changed(records=[]),
    "labels twice": changed(query={"space": {"alphabets": [[[0, 0], 3]]}}),
    "very many records": changed(query={"space": {"alphabets": [[[0, 1], 1 << 40]]}}),
    "other numbers of records": changed(query={"space": {"alphabets": [[[0, 1], 2]]}}),
    "a contribution too few": changed(query={"contributions": [[[[0]], 3]]}),
    "contributions of different lengths": changed(query={"contributions": [[[[0], [1, 1]], 3]]}),
    "a total twice": changed(query={"totals": [[0], [1], [2], [2]]}),
    "a total without a value": changed(query={"totals": [[0], [1], [2], [4]]}),
    "a value too few": changed(query={"values": [0, 1, 2]}),
    "a modulus of 0": changed(query={"modulus": 0}),
    "totals that a modulus makes equal": changed(query={"modulus": 3}),
    "totals shorter than contributions": changed(query={"contributions": [[[[0, 0], [1, 1]], 3]]}),
    "totals of different lengths": changed(
        query={
            "contributions": [[[[0, 0], [1, 0]], 3]],
            "totals": [[0, 0], [1, 0], [2, 0], [3]],
        }
    ),
    "a fraction of a record": changed(query={"contributions": [[[[0], [0.5]], 3]]}),
    "a floor that no adversary reaches": changed(entropy_floor=3),
    "an endless exponent": changed(entropy_floor="1e3000000"),
    "a floor that is no number": changed(entropy_floor=True),
    "an unknown key": changed(comment="all is well"),
    "an unknown key of the channel": changed(channel={"noise": 1}),
}


BOXES = {"lower": [[0.1] * 3] * 4, "upper": [[0.9] * 3] * 4}


def test_a_set_of_channels_says_so() -> None:
    query = PROBLEM["mechanism"]["query"]
    one = {"matrix": PROBLEM["mechanism"]["channel"]["matrix"]}
    RecordLeakage.read(changed(mechanism={"query": query, "channel_set": BOXES}))
    for mechanism in ({"channel": BOXES}, {"channel_set": one}):
        with pytest.raises(RefusedError):
            RecordLeakage.read(changed(mechanism={"query": query, **mechanism}))


MEAN: dict[str, Any] = {
    "kind": "expectation",
    "values": [0, 1, 2, 3],
    "records": None,
    "query": None,
    "name": "total",
}
NOBODY = {
    "a mean in two places": (
        {"entropy_floor": 0, "adversaries": [MEAN | {"at_least": 2.5, "at_most": 0.5}]},
        [100, 100],
        0,
    ),
    "a floor above what a mean leaves": (
        {"entropy_floor": 1.9, "adversaries": [MEAN | {"at_least": None, "at_most": 0.3}]},
        [60],
        50,
    ),
}
"""Classes without an adversary, and multipliers that prove any bound of their leakage."""


@pytest.mark.parametrize("name", NOBODY)
def test_no_upper_end_is_below_what_every_adversary_attains(name: str) -> None:
    more, limits, multiplier = NOBODY[name]
    assert prove(close(GOLDEN, multiplier, limits), problem=changed(**more)) == 0
    for form, least in (("rise", 0), ("posterior", 0.5)):
        problem = changed(**more, gain={"kind": "gini"}, form=form)
        term = chord() if form == "posterior" else prior(chord())
        found = prove(cover("cells", close(term, multiplier, limits)), problem=problem)
        assert found == pytest.approx(least)


def prior(of: Any) -> dict[str, Any]:
    return {"rule": "prior", "points": [[1, 1]], "theta": [1], "of": of}


def test_a_floor_that_excludes_everyone_keeps_no_more_than_all() -> None:
    more, limits, multiplier = NOBODY["a floor above what a mean leaves"]
    statement = Balance.read(changed(**more))
    leakage = {"rule": "max", "groups": [[close(GOLDEN, multiplier, limits)]]}
    free = {"rule": "point", "group": 0, "weights": [0, 0, 40, 0, 0, 7]}
    term = {"rule": "difference", "capacity": free, "leakage": leakage}
    assert 0 < lower(statement.lower(term)) < 0.7


def test_a_fraction_is_compared_with_what_is_infinite() -> None:
    assert not _at_most(float("inf"), "1/3")
    assert not _at_most("1/3", -float("inf"))
    assert _at_most("1/3", float("inf"))
    assert _at_most(float("inf"), "inf")


@pytest.mark.parametrize("name", STATEMENTS)
def test_forged_statements_are_refused(name: str) -> None:
    with pytest.raises(RefusedError):
        RecordLeakage.read(STATEMENTS[name])


def test_very_many_bits_are_refused_before_they_are_computed() -> None:
    many = {"space": {"alphabets": [[[0, 1], 1 << 20]]}, "contributions": [[[[0], [1]], 1 << 20]]}
    with pytest.raises(RefusedError, match="asks for more"):
        RecordLeakage.read(changed(query=many))
    with pytest.raises(RefusedError, match="asks for more"):
        RecordLeakage.read(changed(size=18, query=many))


def test_rows_belong_to_the_inputs_that_they_are_listed_with() -> None:
    rows = PROBLEM["mechanism"]["channel"]["matrix"]
    moved = changed(
        channel={"inputs": [2, 0, 3, 1], "matrix": [rows[2], rows[0], rows[3], rows[1]]}
    )
    assert attained(moved) == attained()
    assert attained(changed(channel={"inputs": [1, 0, 2, 3]})) != attained()


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        '{"a": Infinity}',
        "[1]",
        "{",
        "[" * 100_000,
        '{"a": ' + "9" * 5000 + "}",
    ],
)
def test_what_is_no_plain_json_is_refused(text: str) -> None:
    with pytest.raises(RefusedError):
        parse(text)


@pytest.mark.parametrize("entry", [0, -1, True, 1, 0.0, [], None, {}])
def test_a_group_is_the_same_as_an_earlier_one_or_has_terms(entry: Any) -> None:
    statement = RecordLeakage.read(PROBLEM)
    with pytest.raises(RefusedError):
        statement.upper({"rule": "max", "groups": [entry]})


def test_groups_that_differ_are_not_the_same() -> None:
    query = {
        "space": {"alphabets": [[[0, 1], 3]]},
        "contributions": [[[[0], [1]], 2], [[[1], [0]], 1]],
    }
    statement = RecordLeakage.read(changed(query=query))
    assert len(statement.views) == 2
    with pytest.raises(RefusedError, match="not the same"):
        statement.upper({"rule": "max", "groups": [[HONEST["golden"]], 0]})
    with pytest.raises(RefusedError, match="each audited group"):
        statement.upper({"rule": "max", "groups": [[HONEST["golden"]]]})


def test_decimals_are_read_with_all_their_digits() -> None:
    text = '{"a": 0.30000000000000000001, "b": [0.30, 1e-7, 12, -0.0], "c": 2.50000000000000000000}'
    found = parse(text)
    assert rational(found["a"]) == rational(Fraction(3, 10) + Fraction(1, 10**20))
    assert found["b"] == [0.3, 1e-7, 12, 0.0]
    assert found["c"] == 2.5
    rows = json.dumps(PROBLEM["mechanism"]["channel"]["matrix"])
    long = rows.replace("0.8,", "0.80000000000000000001,").replace(
        "0.15,", "0.14999999999999999999,"
    )
    problem = changed(channel=parse(f'{{"matrix": {long}}}'))
    (view,) = RecordLeakage.read(problem).views
    assert fmpq(4, 5) + fmpq(1, 10**20) in [row.key[0] for row in view.rows if row.key]


@pytest.mark.parametrize("third", [1 / 3, 0.3333333, 0.3333334])
def test_boxes_that_are_points_are_rows_of_a_channel(third: Any) -> None:
    rows = [[0.8, 0.15, 0.05], [third] * 3, [0.2, 0.3, 0.5], [0.05, 0.15, 0.8]]
    inputs = PROBLEM["mechanism"]["channel"]["inputs"]
    query = PROBLEM["mechanism"]["query"]
    boxes = {"inputs": inputs, "lower": rows, "upper": rows}
    known = changed(mechanism={"query": query, "channel": {"inputs": inputs, "matrix": rows}})
    problem = changed(mechanism={"query": query, "channel_set": boxes})
    assert prove(HONEST["golden"], problem=problem) == pytest.approx(
        prove(HONEST["golden"], problem=known), abs=1e-12
    )
    (view,) = RecordLeakage.read(known).views
    table = np.array([[float(x.mid()) for x in row.lo] for row in view.rows])
    joint = [(np.array(WITNESS)[own] @ table[own]).tolist() for own in view.of]
    point = {"rule": "point", "group": 0, "weights": WITNESS, "posteriors": joint}
    found = lower(RecordLeakage.read(problem).lower(point))
    assert found == pytest.approx(attained(known), abs=1e-12)
    for ends in ({"upper": [[0.3, 0.3, 0.3]] * 4}, {"lower": [[0.4, 0.4, 0.4]] * 4}):
        wrong = changed(mechanism={"query": query, "channel_set": boxes | ends})
        with pytest.raises(RefusedError, match="empty"):
            RecordLeakage.read(wrong)


LOWER: dict[str, Any] = {
    "a witness below the floor": {"group": 0, "weights": [1, 0, 0, 0, 0, 0]},
    "negative weights": {"group": 0, "weights": [2, -1, 1, 1, 1, 1]},
    "too few weights": {"group": 0, "weights": [1, 1]},
    "no weight": {"group": 0, "weights": [0] * 6},
    "a group that is not audited": {"group": 1, "weights": WITNESS},
    "a negative group": {"group": -1, "weights": WITNESS},
    "posteriors of a known channel": {"group": 0, "weights": WITNESS, "posteriors": [[1] * 3] * 2},
    "infinite weights": {"group": 0, "weights": [1e999, 1, 1, 1, 1, 1]},
    "another key": {"group": 0, "weights": WITNESS, "value": 1},
}


@pytest.mark.parametrize("name", LOWER)
def test_forged_witnesses_are_refused(name: str) -> None:
    statement = RecordLeakage.read(PROBLEM)
    with pytest.raises(RefusedError):
        statement.lower({"rule": "point", **LOWER[name]})


LOSS = {"gain": {"kind": "matrix", "table": [[-1, -2], [-2, -1]]}, "form": "factor"}


def test_a_factor_of_losses_has_no_lower_end() -> None:
    with pytest.raises(RefusedError, match="factor"):
        attained(changed(**LOSS))
    statement = RecordLeakage.read(SET | LOSS)
    phi = [[2, 1, 1], [1, 1, 2]]
    with pytest.raises(RefusedError, match="factor"):
        statement.lower({"rule": "point", "group": 0, "weights": WITNESS, "posteriors": phi})


GUESS = changed(**GAIN, form="factor")
PRICED = {"rule": "prior", "theta": [1, 1], "of": chord([1] * 6)}


def factor(**changes: Any) -> dict[str, Any]:
    return {
        "rule": "factor",
        "times": 1,
        "theta": [1, 1],
        "of": cover("cells", close(PRICED)),
    } | changes


def test_factors_are_above_the_witness() -> None:
    assert attained(GUESS) <= prove(factor(), problem=GUESS) < 10


FACTORS: dict[str, Any] = {
    "close without the factor's T": cover("cells", close(PRICED)),
    "a negative T": factor(times=-1),
    "a T of leaves": factor(times={"leaf": 1}),
    "a tangent that may be 0": factor(theta=[1, 0]),
    "points of a maximum of few": factor(points=[[1, 1], [1, 2]]),
    "theta of another length": factor(theta=[1]),
    "no prior": factor(of=cover("cells", close(chord([1] * 6)))),
    "a factor in a factor": factor(of=factor()),
    "information's rules": factor(of=close(GOLDEN)),
    "no tangents": factor(points=[], theta=[]),
}


@pytest.mark.parametrize("name", FACTORS)
def test_forged_factors_are_refused(name: str) -> None:
    with pytest.raises(RefusedError):
        prove(FACTORS[name], problem=GUESS)


@pytest.mark.parametrize("kind", [{"kind": "shannon"}, {"kind": "gini"}])
def test_gains_without_few_tangents_need_points(kind: Any) -> None:
    with pytest.raises(RefusedError):
        prove(factor(theta=[]), problem=changed(gain=kind, form="factor"))
    with pytest.raises(RefusedError):
        prove(factor(theta={"leaf": [1, 1]}), problem=changed(gain=kind, form="factor"))
    no_tangent = {"rule": "prior", "theta": {"leaf": [1, 1]}, "of": chord([1] * 6)}
    with pytest.raises(RefusedError):
        prove(cover("cells", close(no_tangent)), problem=changed(gain=kind, form="rise"))


@pytest.mark.parametrize(
    "value", [None, True, "one", "1/0", 10**400, -(10**400), float("nan"), [1], "-inf"]
)
def test_a_claimed_bound_is_a_number_that_a_float_can_be(value: Any) -> None:
    with pytest.raises(RefusedError):
        bound(value, "the upper end")
    assert bound("1/4", "the upper end") == 0.25
