"""Forged certificates of the floor up to which a record can be disclosed completely."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from cvxleak.core.errors import CertificateError
from cvxleak.core.numbers import ExactArray, ExactFloat
from cvxleak.exact.limits import LIMITS, limited
from cvxleak.model import (
    AdditiveQuery,
    Channel,
    ChannelSet,
    Gaussian,
    Lumped,
    Mechanism,
    RecordSpace,
    TableQuery,
)
from cvxleak.proofs import total_disclosure
from cvxleak.queries import count
from tests.proofs.forging import Parts, encloses, ends, proves_nothing_false, refused, tampered

# A count of 3 shown as it is: of value 0 are 1, 2, 1 contexts at 0, 1, 2, of value 1 at 1, 2, 3.
PLAIN = Mechanism(count(3), np.eye(4))
HONEST = Parts(
    "total-disclosure",
    {"mechanism": PLAIN.to_dict(), "size": 1, "records": None},
    {"records": [0], "values": [0, 0, 1, 1]},
    {"groups": [{"records": [0], "tree": [1, [1.0, 1.0], 2, [0.5, 1.0], [1.0, 1.0]]}]},
)
"""Three contexts for each value: log 2 + log 3. The cut of output 1 covers both values."""

TRUTH = math.log(6)


def parts(mechanism, values, tree, records=None, witness=(0,), size=1):
    return Parts(
        "total-disclosure",
        {"mechanism": mechanism.to_dict(), "size": size, "records": records},
        {"records": list(witness), "values": values},
        {"groups": [{"records": list(witness), "tree": tree}]},
    )


def test_honest():
    encloses(HONEST, lambda: arb(6).log(), 1e-12)
    assert total_disclosure.about(HONEST.problem) == "total disclosure of a record"
    pair = {**HONEST.problem, "size": 2, "records": [[0, 1], [1, 2]]}
    assert total_disclosure.about(pair) == "total disclosure of 2 records of 2 groups"


def test_no_number_proves_too_much():
    proves_nothing_false(HONEST, TRUTH, TRUTH)


def test_a_root_alone_is_weaker():
    root = tampered(HONEST, {("proof", "groups", 0, "tree"): [[1, 1]]})
    lower, upper = ends(root)
    # 1 + 2 + 2 + 1 contexts at the most.
    assert upper == pytest.approx(math.log(6), abs=1e-12)
    skewed = tampered(HONEST, {("proof", "groups", 0, "tree"): [[3, 1]]})
    assert ends(skewed)[1] == pytest.approx(math.log(3 + 6 + 3 + 1) - math.log(3) / 2, abs=1e-12)
    assert ends(skewed)[0] == lower


def test_contexts_lie_on_all_of_their_outputs():
    # Either context shows a or b, the other value's c; with one more that shows all three.
    rows = np.array([[0.5, 0.5, 0], [0, 0, 1], [0.25, 0.25, 0.5]])
    query = TableQuery(RecordSpace([range(2), range(2)]), [0, 2, 1, 1], (0, 1, 2))
    told = parts(Mechanism(query, Channel(rows, query.values)), [0, 0, 1], [[2, 1]], [[0]])
    # M = (1, 2): log 2 + log(2) / 2. At the root the shares of value 0 are 5/6, 5/6 and 1/3.
    assert ends(told)[0] == pytest.approx(1.5 * math.log(2), abs=1e-12)
    expected = math.log(2 * 5 / 6 * 2 + 2) - math.log(2) / 2
    assert ends(told)[1] == pytest.approx(expected, abs=1e-12)
    cut = tampered(told, {("proof", "groups", 0, "tree"): [2, [1, 1], [2, 1]]})
    encloses(cut, lambda: arb(2).log() * 3 / 2, 1e-12)


def test_groups_of_two_records_and_named_ones():
    # All of a count of 2 but for two equal records shows both of them only where they agree.
    pair = parts(Mechanism(count(2), np.eye(3)), [0, 1, 3], [[1, 1, 1, 1]], None, (0, 1), 2)
    refused(pair, {}, "no context's outputs all belong")
    query = AdditiveQuery(RecordSpace.binary(2), [(0, 1), (0, 2)])
    told = parts(Mechanism(query, np.eye(4)), [0, 2, 1, 3], [[1, 1, 1, 1]], [[0, 1]], (0, 1), 2)
    encloses(told, lambda: arb(4).log(), 1e-12)
    refused(told, {("problem", "size"): 1}, "records: expected groups of 1")


def test_the_worst_of_several_records():
    query = AdditiveQuery(RecordSpace([range(2), range(3)]), [(0, 1), (0, 1, 2)])
    channel = Channel(np.eye(4), query.values)
    trees = [{"records": [0], "tree": [[1, 1]]}, {"records": [1], "tree": [[1, 1, 1]]}]
    told = Parts(
        "total-disclosure",
        {"mechanism": Mechanism(query, channel).to_dict(), "size": 1, "records": None},
        {"records": [0], "values": [0, 0, 1, 1]},
        {"groups": trees},
    )
    lower, upper = ends(told)
    assert lower == pytest.approx(math.log(4), abs=1e-12)
    assert upper == pytest.approx(math.log(4), abs=1e-12)
    other = tampered(told, {("witness", "records"): [1], ("witness", "values"): [0, 0, 1, 2]})
    # Two contexts of value 0, one of the others.
    assert ends(other)[0] == pytest.approx(math.log(3) + math.log(2) / 3, abs=1e-12)
    refused(told, {("proof", "groups"): trees[:1]}, "each of 2 groups")
    refused(told, {("proof", "groups", 1, "records"): [0]}, "not about group")


FORGED = [
    ({("problem", "note"): 1}, "the problem: expected the parts"),
    ({("problem", "gain"): {}}, "the problem: expected the parts"),
    ({("witness", "note"): 1}, "the witness: expected the parts"),
    ({("proof", "note"): 1}, "the proof: expected the parts"),
    ({("proof", "groups", 0, "note"): 1}, "an entry of the proof: expected the parts"),
    ({("proof", "groups"): []}, "each of 1 groups"),
    ({("proof", "groups"): {"0": 1}}, "each of 1 groups"),
    ({("proof", "groups"): lambda entries: entries * 2}, "each of 1 groups"),
    ({("proof", "groups", 0, "records"): [1]}, "not about group"),
    ({("proof", "groups", 0): {"records": [0]}}, "expected a list of nodes"),
    ({("witness", "records"): [1]}, "not audited"),
    ({("witness", "values"): [0, 0, 1]}, "expected 4 values"),
    ({("witness", "values"): [0, 0, 1, 1, 1]}, "expected 4 values"),
    ({("witness", "values"): dict.fromkeys("0123", 0)}, "expected 4 values"),
    ({("witness", "values"): [0, 0, 0, 0]}, "outputs all belong to one"),
    ({("witness", "values", 0): -1}, "a value of the witness"),
    ({("proof", "groups", 0, "tree"): {"0": 1}}, "expected a list of nodes"),
    ({("proof", "groups", 0, "tree"): []}, "end before its last leaf"),
    ({("proof", "groups", 0, "tree"): [1, [1, 1]]}, "end before its last leaf"),
    ({("proof", "groups", 0, "tree"): [[1, 1], [1, 1]]}, "has nodes after its last leaf"),
    ({("proof", "groups", 0, "tree"): [4, [1, 1], [1, 1]]}, "found 4 of 4"),
    ({("proof", "groups", 0, "tree"): [-1, [1, 1], [1, 1]]}, "an output of a tree"),
    ({("proof", "groups", 0, "tree"): [[1]]}, "a leaf: expected a list of 2"),
    ({("proof", "groups", 0, "tree"): [[0, 1]]}, "must be positive"),
    ({("proof", "groups", 0, "tree"): [[-1, 1]]}, "must be positive"),
]


@pytest.mark.parametrize(("changes", "reason"), FORGED)
def test_forged(changes, reason):
    refused(HONEST, changes, reason)


def test_sets_and_real_outputs_are_refused():
    of_set = Mechanism(count(3), ChannelSet(np.eye(4) * 0.9, np.eye(4) * 0.9 + 0.1))
    for mechanism in (of_set, Mechanism(count(3), Gaussian(1.0))):
        refused(
            HONEST, {("problem", "mechanism"): mechanism.to_dict()}, "single channel with finitely"
        )


def test_nothing_is_disclosed_where_a_value_has_no_output_to_itself():
    blurred = Mechanism(count(3), np.full((4, 4), 0.25))
    told = tampered(HONEST, {("problem", "mechanism"): blurred.to_dict()})
    refused(told, {}, "outputs all belong to one")
    # At leaves: the first output can be of one value only, and both show it.
    lumped = blurred.lumped(0)
    assert total_disclosure._above(lumped, [0, [1, 1], [1, 1]]) == -math.inf


def test_probabilities_too_small_for_a_float_count():
    small = Fraction(1, 10**400)
    rows = np.array([[1.0, 0.0], [ExactFloat(1 - small), ExactFloat(small)]], dtype=object)
    lumped = Lumped([0, 1], ["a", "b"], [0, 1], ExactArray(rows), [1, 1], [[0], [1]])
    assert float(lumped.rows[1, 1]) == 0.0
    assert total_disclosure.outputs_of(lumped) == [[0], [0, 1]]


def test_work_is_counted():
    for tree, most in (([[1, 1]], 5), ([0] * 100, 500)):
        told = tampered(HONEST, {("proof", "groups", 0, "tree"): tree})
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(LIMITS, "steps", most)
            with limited(), pytest.raises(CertificateError, match="steps"):
                ends(told)
