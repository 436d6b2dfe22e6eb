"""Forged covers, and what stands in their leaves: each is refused, or bounds every adversary."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from flint import arb

from cvxleak.kernel import covers
from cvxleak.kernel.budget import LIMITS, limited
from cvxleak.kernel.covers import Cells, largest_bound, replay
from cvxleak.kernel.leakage import RecordLeakage
from cvxleak.kernel.many import Many
from cvxleak.kernel.numbers import RefusedError, precision
from cvxleak.kernel.reading import pack
from cvxleak.kernel.terms import Shape, read_term
from tests.kernel.forging import (
    CELLS,
    GAIN,
    HONEST,
    PROBLEM,
    SET,
    SHARE,
    VERTICES,
    WITNESS,
    attained,
    cells,
    changed,
    chord,
    close,
    nothing,
    prove,
    split_cells,
)


@pytest.fixture(autouse=True)
def _precise() -> Iterator[None]:
    with precision(), limited(), np.errstate(all="ignore"):
        yield


def merged(of: dict[str, Any], t: Any = (1, 1, 1)) -> dict[str, Any]:
    t = t if isinstance(t, dict) else list(t)
    return {"rule": "price", "parts": [[0, 1], [2]], "t": t, "of": of}


def test_cells_of_merged_outputs_are_above_the_witness() -> None:
    assert attained() <= prove(merged(cells(close(chord([0] * 4))))) < 3


REFUSED: dict[str, Any] = {
    # Trees and leaves.
    "leaves as integers": CELLS | {"leaves": pack([[0]], "<i4")},
    "a tree without leaves": CELLS
    | {"nodes": pack(np.zeros((0, 3)), "<i4"), "leaves": pack(np.zeros((0, 0)), "<f8")},
    "a tree that ends early": CELLS
    | {
        "nodes": pack([[-1] * 3, [0, 0, 1], [-1] * 3], "<i4"),
        "cuts": pack([0.5], "<f8"),
        "leaves": pack(np.zeros((2, 0)), "<f8"),
    },
    "a tree without an end": CELLS
    | {
        "nodes": pack([[0, 0, 1]] * 2 + [[-1] * 3], "<i4"),
        "cuts": pack([0.5] * 2, "<f8"),
        "leaves": pack([()], "<f8"),
    },
    "nodes that are floats": CELLS | {"nodes": pack([[-1, -1, -1]], "<f8")},
    "nodes of a number": CELLS | {"nodes": pack([[-1]], "<i4")},
    "cuts that are integers": split_cells() | {"cuts": pack([0], "<i4")},
    "a cut that is no number": split_cells(cut=np.nan),
    "a leaf's multiplier that is no number": cells(close(chord(), {"leaf": 0}), [[np.nan]]),
    "slopes of an output that is no number": cells(
        close({"rule": "chord", "nu": {"leaf": [0, 6]}}), [[0.0] * 5 + [np.nan]]
    ),
    "chords of one output alone": cells(close(chord([-50]))),
    "chords of too few outputs": cells(close(chord([-50] * 4))),
    "chords of too many outputs": cells(close(chord([-50] * 8))),
    "a cut too many": split_cells() | {"cuts": pack([0.5] * 2, "<f8")},
    "a leaf too few": split_cells() | {"leaves": pack([()], "<f8")},
    "a leaf too many": split_cells() | {"leaves": pack([()] * 3, "<f8")},
    "a node too many": split_cells() | {"nodes": pack([[0, 0, 1], *[[-1] * 3] * 3], "<i4")},
    "leaves that are no table": CELLS | {"leaves": pack([0.0], "<f8")},
    "a cut at an end": split_cells(cut=0.0),
    "a cut at the other end": split_cells(cut=1.0),
    "a cut outside": split_cells(cut=1.5),
    "an edge from a vertex to itself": split_cells((0, 1, 1)),
    "an edge that is none": split_cells((0, 0, 2)),
    "a negative vertex": split_cells((0, 0, -1)),
    "an output that is none": split_cells((3, 0, 1)),
    "a column that is not there": cells(close(chord(), {"leaf": 0})),
    "a negative column": cells(close(chord(), {"leaf": -1}), [[0.0]]),
    "columns backwards": cells(close({"rule": "chord", "nu": {"leaf": [6, 0]}}), [[0.0] * 6]),
    "columns that are too few": cells(
        close({"rule": "chord", "nu": {"leaf": [0, 5]}}), [[0.0] * 6]
    ),
    "columns of a leaf's name": cells(close(chord(), {"leaf": "0"}), [[0.0]]),
    "a number of no column": cells(close(chord(), {"leaf": 0, "of": 1}), [[0.0]]),
    "limits in leaves that have none": cells(
        close(chord()) | {"limits": {"leaf": [0, 1]}}, [[1.0]]
    ),
    "a leaf's negative multiplier": cells(close(chord(), {"leaf": 0}), [[-1.0]]),
    "a price's law of a leaf's numbers": merged(CELLS, {"leaf": [0, 3]}),
    # Regions.
    "chord without cells": close(chord()),
    "information's rules in cells": cells(close(SHARE)),
    "the alphabet in cells": cells(close({"rule": "alphabet"})),
    "vertices in cells": cells(close(VERTICES)),
    "a cover in a cover": cells(CELLS),
    "choices in cells": cells(HONEST["choices"]),
    "equal rows in cells": cells({"rule": "equal"}),
    "smoothed outputs in cells": cells(HONEST["smoothed"]),
    "templates": cells([close(chord())]),
    "symmetries": CELLS | {"symmetries": pack([[0, 1, 0, 1, 2]], "<i4")},
    "cells of more outputs than are left": merged(CELLS),
    "symmetries of merged outputs": merged(
        cells(close(chord([0] * 4)), symmetries=pack([[0, 1, 0, 1]], "<i4"))
    ),
    "outputs merged inside of cells": cells(merged(close(chord([0] * 4)))),
    "equal rows of merged outputs": merged({"rule": "equal"}),
}


def two_cuts(node: Any = (0, 0, 1), cut: float = 0.5) -> dict[str, Any]:
    """Return cells of two nodes at one level, of which the last one is given."""
    nodes = [[0, 0, 1], [1, 1, 0], list(node), *[[-1] * 3] * 4]
    more = {"nodes": pack(nodes, "<i4"), "cuts": pack([0.5, 0.5, cut], "<f8")}
    return CELLS | more | {"leaves": pack([()] * 4, "<f8")}


def test_edges_have_two_ends_in_any_order() -> None:
    found = [prove(split_cells(node)) for node in ((0, 0, 1), (0, 1, 0))]
    assert found[0] == found[1] >= attained()
    assert attained() <= prove(two_cuts()) <= found[0]


@pytest.mark.parametrize(
    "more",
    [
        {"node": (0, 2, 1)},
        {"node": (0, 1, 2)},
        {"node": (3, 0, 1)},
        {"node": (0, 1, 1)},
        {"node": (0, -1, 1)},
        {"node": (0, 1, -1)},
    ],
)
def test_each_edge_of_a_level_has_to_exist(more: Any) -> None:
    for term in (two_cuts(**more), split_cells(**more)):
        with pytest.raises(RefusedError, match="no such edge"):
            prove(term)


@pytest.mark.parametrize("cut", [0.0, 1.0, -0.5, 1.5])
def test_each_cut_of_a_level_is_inside_of_its_edge(cut: float) -> None:
    with pytest.raises(RefusedError, match="outside of its edge"):
        prove(two_cuts(cut=cut))


@pytest.mark.parametrize("name", REFUSED)
def test_forged_covers_are_refused(name: str) -> None:
    assert nothing(REFUSED[name])


def test_leaves_have_numbers_of_their_own_over_a_set_of_channels(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = np.array(PROBLEM["mechanism"]["channel"]["matrix"])
    ends = {"lower": np.maximum(rows - 0.05, 0).tolist(), "upper": (rows + 0.05).tolist()}
    inputs = PROBLEM["mechanism"]["channel"]["inputs"]
    problem = changed(mechanism={**PROBLEM["mechanism"], "channel_set": {"inputs": inputs} | ends})
    del problem["mechanism"]["channel"]
    of = close({"rule": "chord", "nu": {"leaf": [1, 7]}}, {"leaf": 0})
    leaves = [[0.1, 0.2, -0.1, 0, 0, -0.1, 0.2], [0.2, -0.3, 0.3, 0, 0, 0.2, -0.1]]
    term = split_cells(leaves=leaves) | {"of": of}
    found = prove(term, problem=problem)
    monkeypatch.setattr(covers, "ALLOWANCE", 0.0)
    assert attained() <= prove(term, problem=problem) <= found
    assert found == pytest.approx(prove(term, problem=problem), abs=1e-12)


OF_LEAVES = close({"rule": "chord", "nu": {"leaf": [1, 7]}}, {"leaf": 0})
FLOATS_ENOUGH, BALLS_NEEDED = covers.ALLOWANCE, 0.0


@pytest.mark.parametrize("allowance", [FLOATS_ENOUGH, BALLS_NEEDED])
def test_the_worst_leaf_counts(monkeypatch: pytest.MonkeyPatch, allowance: float) -> None:
    monkeypatch.setattr(covers, "ALLOWANCE", allowance)
    even = np.array([[0.1] + [0.0] * 6] * 2)
    least = prove(split_cells(leaves=even) | {"of": OF_LEAVES})
    for place in range(2):
        leaves = even.copy()
        leaves[place, 1:] = np.linspace(-30, 30, 6)
        assert prove(split_cells(leaves=leaves) | {"of": OF_LEAVES}) > least + 1


def test_a_tree_that_only_goes_down_is_gone_through_without_recursion() -> None:
    size = 2 * sys.getrecursionlimit()
    nodes = [[0, 0, 1]] + [[0, 0, 1], [-1] * 3] * (size - 2) + [[-1] * 3] * 2
    deep = CELLS | {
        "nodes": pack(nodes, "<i4"),
        "cuts": pack(np.full(size - 1, 0.5), "<f8"),
        "leaves": pack(np.zeros((size, 0)), "<f8"),
    }
    assert attained() <= prove(deep) < 3
    (view,) = RecordLeakage.read(PROBLEM).views
    # In balls the points of the last leaf are found from those of all others.
    assert Cells(read_term(deep, "B", Shape(view)), view).in_balls(size - 1) < 3


LOSS = {"gain": {"kind": "matrix", "table": [[-1, -2], [-2, -1]]}, "form": "factor"}


def test_a_factor_of_losses_has_no_lower_end() -> None:
    with pytest.raises(RefusedError, match="factor"):
        attained(changed(**LOSS))
    statement = RecordLeakage.read(SET | LOSS)
    phi = [[2, 1, 1], [1, 1, 2]]
    with pytest.raises(RefusedError, match="factor"):
        statement.lower({"rule": "point", "group": 0, "weights": WITNESS, "posteriors": phi})


GUESS = changed(**GAIN, form="factor")
OF_LEAF = {"theta": {"leaf": [0, 2]}}
PRICED = {"rule": "prior", "theta": [1, 1], "of": chord([1] * 6)}


def factor(**changes: Any) -> dict[str, Any]:
    return {
        "rule": "factor",
        "times": 1,
        "theta": [1, 1],
        "of": cells(close(PRICED)),
    } | changes


def test_factors_are_above_the_witness() -> None:
    assert attained(GUESS) <= prove(factor(), problem=GUESS) < 10


def test_leaves_have_laws_of_their_own() -> None:
    for theta in ([1.0, 1.0], [3.0, 1.0]):
        term = factor(of=cells(close(PRICED | OF_LEAF), [theta]))
        own = factor(of=cells(close(PRICED | {"theta": theta})))
        assert prove(term, problem=GUESS) == pytest.approx(prove(own, problem=GUESS), abs=1e-12)


def test_a_law_whose_sum_is_no_float_is_a_law() -> None:
    """A sum that overflowed once made all of it 0, and the bound 0 of what may be 0.29."""
    losses = changed(gain={"kind": "matrix", "table": [[-9, -10], [-10, -9]]}, form="rise")
    least = attained(losses)
    assert least > 0.29
    for theta in ([1.0, 1.0], [1.5e308, 1.5e308]):
        term = cells(close({"rule": "prior", "of": chord()} | OF_LEAF), [theta])
        assert prove(term, problem=losses) >= least


def test_what_is_known_before_the_output_is_taken_off() -> None:
    # One action gains the same whatever the value is: the output is worth nothing.
    problem = changed(gain={"kind": "matrix", "table": [[2, 2]]}, form="rise")
    term = cells(close({"rule": "prior", "theta": [1], "of": chord([2] * 6)}, 0))
    assert prove(term, problem=problem) == pytest.approx(0, abs=1e-12)


FACTORS: dict[str, Any] = {
    "close without the factor's T": cells(close(PRICED)),
    "a negative T": factor(times=-1),
    "a T of leaves": factor(times={"leaf": 1}),
    "a tangent that may be 0": factor(theta=[1, 0]),
    "points of a maximum of few": factor(points=[[1, 1], [1, 2]]),
    "theta of another length": factor(theta=[1]),
    "no prior": factor(of=cells(close(chord([1] * 6)))),
    "a factor in a factor": factor(of=factor()),
    "information's rules": factor(of=close(SHARE)),
    "no tangents": factor(points=[], theta=[]),
    "a leaf's negative law": factor(of=cells(close(PRICED | OF_LEAF), [[2.0, -1.0]])),
    "a leaf's law of nothing": factor(of=cells(close(PRICED | OF_LEAF), [[0.0, 0.0]])),
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
        prove(cells(close(no_tangent)), problem=changed(gain=kind, form="rise"))


def bounds(middles, radii, step=2):
    """Return the largest bound of leaves with such float balls, and which it takes balls of."""
    seen: list[int] = []

    def in_balls(i: int) -> arb:
        seen.append(i)
        return arb(middles[i])

    def in_floats(own):
        return Many(np.array(middles)[own], np.array(radii)[own])

    leaves = np.arange(len(middles))
    return largest_bound(leaves, step, 10, in_floats, in_balls), seen


def test_leaves_are_bounded_in_balls_only_where_they_may_be_largest() -> None:
    wide = 1e-3
    assert bounds([0.3, 0.5, 0.499, 0.45, 0.4], [wide, 0, wide / 2, wide, 0])[1] == []
    most, seen = bounds([0.3, 0.5, 0.4999, 0.45, 0.4], [wide, 0, wide, 0.2, wide])
    assert seen == [3, 2]
    assert most >= 0.5
    assert most < 0.5 + 1e-15
    most, seen = bounds([0.3, 0.5, 0.6], [wide, 0, wide])
    assert seen == [2]
    assert most >= 0.6
    assert most < 0.6 + 1e-15


@pytest.mark.parametrize("nothing_said", [(np.nan, 0.0), (0.1, np.inf), (-np.inf, 0.0)])
def test_leaves_of_which_floats_say_nothing_are_bounded_in_balls(nothing_said) -> None:
    middles, seen = [0.3, 0.7], []

    def in_balls(i: int) -> arb:
        seen.append(i)
        return arb(middles[i])

    def in_floats(own):
        m, r = np.array([[0.3, 0.0], nothing_said]).T
        return Many(m[own], r[own])

    assert largest_bound(np.arange(2), 2, 10, in_floats, in_balls) >= 0.7
    assert seen == [1]
    middles[1] = np.nan
    with pytest.raises(RefusedError, match="bounds nothing"):
        largest_bound(np.arange(2), 2, 10, in_floats, in_balls)


@pytest.mark.parametrize(("what", "most"), [("float operations", 30), ("ball operations", 10)])
def test_operations_on_leaves_are_counted(monkeypatch, what: str, most: int) -> None:
    three = [0.3, 0.5, 0.6], [1e-3, 0, 1e-3]
    monkeypatch.setitem(LIMITS, what, most)
    with limited():
        bounds(*three)
    monkeypatch.setitem(LIMITS, what, most - 1)
    with limited(), pytest.raises(RefusedError, match="asks for more"):
        bounds(*three)


@pytest.mark.parametrize(
    ("nodes", "cuts"),
    [([0, -1, -1], []), ([0, -1, -1], [0.5] * 2), ([0, -1, -1, -1], [0.5]), ([0, -1], [0.5])],
)
def test_trees_have_a_cut_and_two_children_for_each_inner_node(nodes, cuts) -> None:
    def halves(parts, _nodes, _cuts):
        return np.repeat(parts, 2, axis=0)

    assert len(replay(np.zeros(1), np.array([[0], [-1], [-1]]), np.array([0.5]), halves)) == 2
    with pytest.raises(RefusedError, match="no tree with a cut"):
        replay(np.zeros(1), np.array(nodes)[:, None], np.array(cuts), halves)
