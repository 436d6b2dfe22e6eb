"""Total disclosure: every way to give outputs to values, searched through; forged terms."""

import itertools
import json
import math

import numpy as np
import pytest

from cvxleak import verify
from cvxleak.audit import total_disclosure
from cvxleak.kernel.budget import LIMITS, limited
from cvxleak.kernel.disclosure import TotalDisclosure
from cvxleak.kernel.numbers import RefusedError, lower, precision, upper
from cvxleak.mechanisms import random_rounding
from cvxleak.model import ChannelSet, Gaussian, Mechanism, RecordSpace
from cvxleak.queries import count, from_function, modular_sum


def problem_of(mechanism, size=1, records=None):
    parts = {"mechanism": mechanism.to_dict(), "size": size, "records": records}
    return json.loads(json.dumps(parts))


def truth(mechanism, size=1):
    """The largest entropy, by all datasets and all ways to give outputs to values."""
    shape, table = mechanism.space.shape, mechanism.query.table()
    rows = mechanism.channel.matrix > 0
    best = -math.inf
    for group in itertools.combinations(range(len(shape)), size):
        values = list(itertools.product(*(range(shape[i]) for i in group)))
        for owners in itertools.product(range(len(values)), repeat=rows.shape[1]):
            counts = [0] * len(values)
            for x in itertools.product(*map(range, shape)):
                a = values.index(tuple(x[i] for i in group))
                counts[a] += all(owners[y] == a for y in np.flatnonzero(rows[table[x]]))
            if all(counts):
                best = max(best, math.log(len(values)) + np.log(counts).mean())
    return best


CASES = [
    (Mechanism(count(4), random_rounding(4, base=2)), 1),
    (Mechanism(count(5), np.eye(6)), 1),
    (Mechanism(count(4), np.eye(5)), 2),
    (Mechanism(modular_sum(3, 3), np.eye(3)), 1),
    (
        Mechanism(
            from_function(RecordSpace([range(2), range(3)]), lambda x: x[0] + 2 * x[1]),
            [[1, 0, 0], [1, 0, 0], [0.5, 0.5, 0], [0, 1, 0], [0, 0.5, 0.5], [0, 0, 1]],
        ),
        1,
    ),
]


@pytest.mark.parametrize(("mechanism", "size"), CASES)
def test_bounds_hold_the_truth_and_are_what_the_search_claims(mechanism, size):
    records = None if size == 1 else [list(range(size))]
    bound = total_disclosure(mechanism, records=None if size == 1 else list(range(size)))
    certificate = bound.certificate
    assert verify(certificate).passed
    assert certificate.problem == problem_of(mechanism, size, records)
    below, above = certificate.witness, certificate.proof
    with precision():
        statement = TotalDisclosure.read(certificate.problem)
        low, high = lower(statement.lower(below)), upper(statement.upper(above))
    assert low <= truth(mechanism, size) <= high
    assert (low, high) == (certificate.lower, certificate.upper)


COUNT = problem_of(Mechanism(count(3), np.eye(4)))


def upper_of(tree, problem=COUNT):
    with precision():
        return upper(TotalDisclosure.read(problem).upper({"rule": "max", "groups": [tree]}))


def test_a_tree_of_one_leaf_bounds_all():
    # Values 0 and 1 of a bit in a count of three: outputs {0, 1} and {2, 3} leave 3 + 3 contexts.
    assert upper_of([[1, 1]]) >= math.log(2) + math.log(3)
    whole = [0, 1, [1, 1], [1, 1], [1, 1]]
    assert upper_of([[1, 1]]) >= upper_of(whole) >= math.log(2) + math.log(3)
    # With multipliers 3 and 1 the outputs count 3, 6, 3, 1.
    assert upper_of([[3, 1]]) == pytest.approx(math.log(13) - math.log(3) / 2, abs=1e-12)


def test_contexts_lie_on_all_of_their_outputs():
    # Either context shows a or b, the other value's c; with one more that shows all three.
    query = from_function(
        RecordSpace([range(2), range(2)]), lambda x: (0, 2, 1, 1)[2 * x[0] + x[1]]
    )
    rows = {0: [0.5, 0.5, 0], 1: [0, 0, 1], 2: [0.25, 0.25, 0.5]}
    problem = problem_of(Mechanism(query, [rows[v] for v in query.values]), records=[[0]])
    with precision():
        owners = {"rule": "owners", "group": 0, "values": [0, 0, 1]}
        low = lower(TotalDisclosure.read(problem).lower(owners))
    assert low == pytest.approx(1.5 * math.log(2), abs=1e-12)
    root = math.log(2 * 5 / 6 * 2 + 2) - math.log(2) / 2
    assert upper_of([[2, 1]], problem) == pytest.approx(root, abs=1e-12)
    assert upper_of([2, [1, 1], [2, 1]], problem) == pytest.approx(low, abs=1e-12)


def test_probabilities_too_small_for_a_float_count():
    problem = problem_of(Mechanism(count(1), np.eye(2)))
    tiny = ["1e-350", f"{10**350 - 1}/{10**350}"]
    problem["mechanism"]["channel"]["matrix"] = [["1", "0"], tiny]
    with precision(), pytest.raises(RefusedError, match="without contexts"):
        TotalDisclosure.read(problem).lower({"rule": "owners", "group": 0, "values": [0, 1]})
    with pytest.raises(RefusedError, match="never occurs"):
        upper_of([0, [1, 1], [1, 1]], problem)


@pytest.mark.parametrize(
    "output", [ChannelSet(np.eye(4) * 0.9, np.eye(4) * 0.9 + 0.1), Gaussian(1)]
)
def test_sets_and_real_outputs_are_refused(output):
    with pytest.raises(RefusedError, match=r"a set of channels|a mechanism"):
        TotalDisclosure.read(problem_of(Mechanism(count(3), output)))
    with pytest.raises(RefusedError, match="it has no"):
        TotalDisclosure.read({**COUNT, "gain": {"kind": "guess"}, "form": "rise"})


def test_nodes_of_trees_are_counted(monkeypatch):
    monkeypatch.setitem(LIMITS, "ball operations", 500)
    with limited(), pytest.raises(RefusedError, match="asks for more"):
        upper_of([0] * 100)


def test_what_is_never_disclosed_is_refused():
    blind = problem_of(Mechanism(count(2), [[0.5, 0.5]] * 3))
    tree = [0, 1, [1, 1], [1, 1], 1, [1, 1], [1, 1]]
    with pytest.raises(RefusedError, match="never occurs"):
        upper_of(tree, blind)


FORGED = [
    ([[1, 0]], "must be positive"),
    ([[-1, 1]], "must be positive"),
    ([[1]], "1 entries, where 2"),
    ([], "end before"),
    ([0, [1, 1]], "end before"),
    ([[1, 1], [1, 1]], "after its last leaf"),
    ([4, [1, 1], [1, 1]], "an output of a tree: found 4"),
    ([-1, [1, 1], [1, 1]], "an output of a tree: found -1"),
    ([True, [1, 1], [1, 1]], "an output of a tree: found True"),
    ([[1, float("inf")]], "expected a number"),
]


@pytest.mark.parametrize(("tree", "message"), FORGED)
def test_forged_trees_are_refused(tree, message):
    with pytest.raises(RefusedError, match=message):
        upper_of(tree)


@pytest.mark.parametrize(
    ("term", "message"),
    [
        ({"group": 1, "values": [0, 0, 1, 1]}, "group: found 1"),
        ({"group": 0, "values": [0, 0, 1]}, "3 entries, where 4"),
        ({"group": 0, "values": [0, 0, 1, 2]}, "values: found 2"),
        ({"group": 0, "values": [0, 0, 0, 0]}, "a value without contexts"),
    ],
)
def test_forged_owners_are_refused(term, message):
    with precision(), pytest.raises(RefusedError, match=message):
        TotalDisclosure.read(COUNT).lower({"rule": "owners", **term})


def test_a_file_has_no_more_than_its_owners():
    owners = {"rule": "owners", "group": 0, "values": [0, 0, 1, 1], "more": 1}
    with precision(), pytest.raises(RefusedError, match="it has no more"):
        TotalDisclosure.read(COUNT).lower(owners)


def test_trees_of_other_groups_are_refused():
    for trees in ([], [[[1, 1]]] * 2):
        with precision(), pytest.raises(RefusedError, match="a tree for each"):
            TotalDisclosure.read(COUNT).upper({"rule": "max", "groups": trees})
