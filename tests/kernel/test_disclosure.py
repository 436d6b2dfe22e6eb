"""Total disclosure: every way to give outputs to values, searched through; forged terms."""

import itertools
import json
import math

import numpy as np
import pytest

from cvxleak import verify
from cvxleak.audit import total_disclosure
from cvxleak.audit.old_terms_claims import terms_of
from cvxleak.kernel.disclosure import TotalDisclosure
from cvxleak.kernel.numbers import RefusedError, lower, precision, upper
from cvxleak.mechanisms import random_rounding
from cvxleak.model import Mechanism, RecordSpace
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
    parts = certificate.problem, certificate.witness, certificate.proof
    below, above = terms_of("total-disclosure", *parts)
    with precision():
        statement = TotalDisclosure.read(certificate.problem)
        low, high = lower(statement.lower(below)), upper(statement.upper(above))
    assert low <= truth(mechanism, size) <= high
    assert (low, high) == pytest.approx((certificate.lower, certificate.upper), rel=1e-12)


COUNT = problem_of(Mechanism(count(3), np.eye(4)))


def upper_of(tree, problem=COUNT):
    with precision():
        return upper(TotalDisclosure.read(problem).upper({"rule": "max", "groups": [tree]}))


def test_a_tree_of_one_leaf_bounds_all():
    # Values 0 and 1 of a bit in a count of three: outputs {0, 1} and {2, 3} leave 3 + 3 contexts.
    assert upper_of([[1, 1]]) >= math.log(2) + math.log(3)
    whole = [0, 1, [1, 1], [1, 1], [1, 1]]
    assert upper_of([[1, 1]]) >= upper_of(whole) >= math.log(2) + math.log(3)


def test_what_is_never_disclosed_is_refused():
    blind = problem_of(Mechanism(count(2), [[0.5, 0.5]] * 3))
    tree = [0, 1, [1, 1], [1, 1], 1, [1, 1], [1, 1]]
    with pytest.raises(RefusedError, match="never occurs"):
        upper_of(tree, blind)


FORGED = [
    ([[1, 0]], "must be positive"),
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


def test_trees_of_too_few_groups_are_refused():
    with precision(), pytest.raises(RefusedError, match="a tree for each"):
        TotalDisclosure.read(COUNT).upper({"rule": "max", "groups": []})
