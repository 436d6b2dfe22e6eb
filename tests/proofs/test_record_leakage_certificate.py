"""The checker against tampering: of the file, and of numbers with the hash made to match."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from cvxleak.audit import balance, group_leakage, record_leakage
from cvxleak.kernel.numbers import precision
from cvxleak.kernel.reading import array, pack
from cvxleak.mechanisms import binary_symmetric, random_rounding, truncated_geometric
from cvxleak.model import AdditiveQuery, Channel, Gini, Guess, Mechanism, RecordSpace
from cvxleak.problem.bound import Status
from cvxleak.proofs import Certificate, verify
from cvxleak.queries import count, parity


def mechanism() -> Mechanism:
    query = AdditiveQuery(RecordSpace.binary(4), [(0, 1)] * 4, modulus=3)
    return Mechanism(query, [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])


def made(bound: Any, *rules: str) -> Certificate:
    """Return a bound's certificate, once it passes, whose upper end rests on these rules."""
    assert bound.certificate is not None
    answer = verify(bound.certificate)
    assert answer.passed, answer.reason
    assert set(rules) <= set(answer.rules["upper"])
    return bound.certificate


@pytest.fixture(scope="module")
def certificate() -> Certificate:
    return made(record_leakage(mechanism(), 2.3, tol=1e-3), "cells", "chord")


@pytest.fixture(scope="module")
def slabs() -> Certificate:
    noisy = Mechanism(count(12), truncated_geometric(12, 0.15))
    return made(record_leakage(noisy, 5.0, tol=5e-3), "slabs", "slab")


@pytest.fixture(scope="module")
def trees() -> Certificate:
    people = Mechanism(count(6), random_rounding(6, base=3))
    return made(group_leakage(people, 3.9, 2), "share", "output-ranges")


@pytest.fixture(scope="module")
def tangents() -> Certificate:
    people = Mechanism(count(6), random_rounding(6, base=3))
    return made(group_leakage(people, 4.15, 2), "share", "blocks")


@pytest.fixture(scope="module")
def dataset() -> Certificate:
    """Eight records of nine: the bound by the whole dataset."""
    noise = np.full((4, 4), 0.2 / 3)
    np.fill_diagonal(noise, 0.8)
    query = AdditiveQuery(RecordSpace.binary(9), [(0, 1)] * 9, modulus=4)
    found = group_leakage(Mechanism(query, noise), 3.6, 8)
    assert found.status is Status.CERTIFIED
    return made(found, "share", "vertices")


ALL = ["certificate", "slabs", "trees", "tangents", "dataset"]


def leaves_of(data: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the path of every number and text inside of a JSON document."""
    stack: list[Any] = [((), data)]
    while stack:
        path, node = stack.pop()
        if isinstance(node, dict):
            stack += [((*path, key), value) for key, value in node.items()]
        elif isinstance(node, list):
            stack += [((*path, place), value) for place, value in enumerate(node)]
        else:
            yield path, node


def with_change(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(data)
    into = changed
    for key in path[:-1]:
        into = into[key]
    into[path[-1]] = value
    return changed


def rehashed(certificate: Certificate, **changes: Any) -> Certificate:
    """Return the certificate with parts replaced and a hash that fits again."""
    names = ("kind", "problem", "lower", "upper", "witness", "proof", "versions", "unit")
    parts = {name: copy.deepcopy(getattr(certificate, name)) for name in names}
    return Certificate(**(parts | changes))


def terms_of(term: Any, rule: str) -> Iterator[dict[str, Any]]:
    """Yield the terms of a rule inside of a term."""
    if isinstance(term, dict):
        if term.get("rule") == rule:
            yield term
        for part in term.values():
            yield from terms_of(part, rule)
    elif isinstance(term, list):
        for part in term:
            yield from terms_of(part, rule)


Change = Callable[[dict[str, Any]], object]
COUNTED = "the first row that counts"


def tampered(certificate: Certificate, rule: str, change: Change, *, all_: bool = False) -> Any:
    """Return the verdict once the first term of a rule is changed, or each of them."""
    proof = copy.deepcopy(dict(certificate.proof))
    found = list(terms_of(proof, rule))
    for term in found if all_ else found[:1]:
        change(term)
    return verify(rehashed(certificate, proof=proof))


def packed(term: dict[str, Any], key: str, change: Callable[[Any], Any]) -> None:
    """Change a packed array."""
    data = term[key]
    with precision():
        found = array(data, key, "fi", None if len(data["shape"]) == 1 else 0)
    # What no array may hold is packed all the same.
    with np.errstate(all="ignore"):
        term[key] = pack(change(found.copy()), data["dtype"])


def in_row(place: Any, column: Any, value: Any) -> Callable[[Any], Any]:
    """Change a table; `COUNTED` stands for the first row that is no leaf that is left out."""

    def change(found: Any) -> Any:
        row = np.flatnonzero(found[:, 0] >= 0)[0] if place == COUNTED else place
        found[row, column] = value
        return found

    return change


# The file ----------------------------------------------------------------------------------------


def test_saved_certificate_passes(certificate, tmp_path):
    path = tmp_path / "certificate.json"
    certificate.save(path)
    answer = verify(path)
    assert answer.passed, answer.reason
    assert certificate.lower <= answer.lower <= answer.upper <= certificate.upper
    assert Certificate.load(path) == certificate


def test_every_changed_leaf_of_the_file_fails(certificate):
    data = json.loads(json.dumps(certificate.to_dict()))
    assert verify(data).passed
    seen = 0
    for path, value in leaves_of(data):
        if isinstance(value, bool) or value is None:
            other: Any = 1
        elif isinstance(value, int):
            other = value + 1
        elif isinstance(value, float):
            other = math.nextafter(value, math.inf)
        else:
            other = value[:-1] + ("A" if value[-1:] != "A" else "B")
        assert not verify(with_change(data, path, other)).passed, path
        seen += 1
    assert seen > 40


def test_missing_and_extra_keys_fail(certificate):
    data = json.loads(json.dumps(certificate.to_dict()))
    for place in (data, data["ends"]["lower"], data["ends"]["upper"]):
        for key in list(place):
            kept = place.pop(key)
            assert not verify(data).passed, key
            place[key] = kept
        place["note"] = "trust me"
        assert not verify(data).passed
        del place["note"]
    data["ends"]["middle"] = data["ends"]["upper"]
    assert not verify(data).passed


def test_claims_beyond_the_proof_fail(certificate):
    tighter = rehashed(certificate, upper=certificate.upper - 1e-9)
    assert "the upper bound" in verify(tighter).reason
    higher = rehashed(certificate, lower=certificate.lower + 1e-9)
    assert "the lower bound" in verify(higher).reason
    looser = rehashed(certificate, upper=certificate.upper + 1e-3)
    assert verify(looser).passed


def test_unknown_kinds_versions_and_files(certificate, tmp_path):
    for kind in ("trust-me", ["record-leakage"], None):
        assert "unknown kind" in verify(rehashed(certificate, kind=kind)).reason
    data = certificate.to_dict()
    assert "schema version" in verify({**data, "schema_version": 99}).reason
    for version in (1, 2):
        assert not verify({**data, "schema_version": version}).passed
    assert "not a cvxleak certificate" in verify({"format": "other"}).reason
    assert "cannot read" in verify(tmp_path / "missing.json").reason
    broken = tmp_path / "broken.json"
    broken.write_text('{"format": "cvxleak-cert')
    assert "cannot read" in verify(broken).reason
    broken.write_text("[1, 2]")
    assert not verify(broken).passed


# The problem -------------------------------------------------------------------------------------


def test_another_problem_is_not_proved(certificate):
    lower_floor = {**certificate.problem, "entropy_floor": 2.0}
    assert "the upper bound" in verify(rehashed(certificate, problem=lower_floor)).reason
    higher_floor = {**certificate.problem, "entropy_floor": 2.5}
    assert "reach the floor" in verify(rehashed(certificate, problem=higher_floor)).reason
    less_noise = copy.deepcopy(dict(certificate.problem))
    matrix = (0.85 * np.eye(3) + 0.05).tolist()
    less_noise["mechanism"]["channel"]["matrix"] = matrix
    assert not verify(rehashed(certificate, problem=less_noise)).passed


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["channel"]["matrix"].__setitem__(0, [True, False, False]),
        lambda m: m["channel"]["matrix"].pop(),
        lambda m: m["channel"].update(note=1),
        lambda m: m.update(note=1),
        lambda m: m["query"].update(modulus=3.5),
        lambda m: m["query"].update(note=1),
    ],
)
def test_the_mechanism_is_read_strictly(certificate, change):
    problem = copy.deepcopy(dict(certificate.problem))
    change(problem["mechanism"])
    answer = verify(rehashed(certificate, problem=problem))
    assert not answer.passed
    assert "malformed" not in answer.reason


def test_true_is_not_one_in_a_mechanism():
    found = record_leakage(Mechanism(count(2), np.eye(3)), 0.5).certificate
    assert found is not None
    problem = copy.deepcopy(dict(found.problem))
    matrix = problem["mechanism"]["channel"]["matrix"]
    matrix[0] = [int(x) for x in matrix[0]]
    assert verify(rehashed(found, problem=problem)).passed
    matrix[0] = [bool(x) for x in matrix[0]]
    assert not verify(rehashed(found, problem=problem)).passed


# The witness -------------------------------------------------------------------------------------


def test_witness_has_to_fit(certificate):
    weights = list(certificate.witness["weights"])
    for changed in (weights[:-1], [*weights, 0.0], [-w for w in weights], [0.0] * len(weights)):
        witness = {**certificate.witness, "weights": changed}
        assert not verify(rehashed(certificate, witness=witness)).passed
    for wrong in ({"group": 1}, {"group": -1}, {"group": False}, {"note": 1}, {"rule": "max"}):
        answer = verify(rehashed(certificate, witness={**certificate.witness, **wrong}))
        assert not answer.passed
        assert answer.ends["upper"].proved


# Groups ------------------------------------------------------------------------------------------


def test_every_group_of_records_has_to_be_bounded():
    rows = np.random.default_rng(0).dirichlet(np.ones(3), size=8)
    bound = record_leakage(Mechanism.from_channel(RecordSpace.binary(3), rows), 1.5, tol=1e-2)
    found = made(bound)
    groups = found.proof["groups"]
    assert len(groups) == 3

    def answer(*entries: Any) -> str:
        proof = {**found.proof, "groups": list(entries)}
        verdict = verify(rehashed(found, proof=proof))
        assert not verdict.passed
        return verdict.reason

    assert "an entry for each audited group" in answer(*groups[:2])
    assert "not the same" in answer(groups[0], 0, groups[2])
    assert "a group" in answer(0, *groups[1:])
    assert "a group without a term" in answer([], *groups[1:])


def test_records_that_see_the_same_share_a_proof():
    # f = x1 xor x2 with different alphabets' labels: not swappable, yet the same numbers.
    space = RecordSpace([(0, 1), ("no", "yes")])
    rows = [[0.9, 0.1], [0.1, 0.9], [0.1, 0.9], [0.9, 0.1]]
    found = made(record_leakage(Mechanism.from_channel(space, rows), 1.0))
    assert len(found.proof["groups"]) == 1 or found.proof["groups"][1] == 0


def test_the_least_bound_of_a_group_counts(certificate):
    bare = copy.deepcopy(dict(certificate.proof))
    del bare["groups"][0][1:]
    answer = verify(rehashed(certificate, proof=bare))
    # Of the number of values alone.
    assert answer.upper == pytest.approx(math.log(2))
    assert not answer.passed
    assert tampered(certificate, "choices", lambda t: packed(t, "inputs", abs)).passed


# Terms -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_multipliers_matter(name, request):
    found = request.getfixturevalue(name)
    written = [t for t in terms_of(found.proof, "close") if t["multiplier"]]
    assert written or name == "dataset"
    if not written or isinstance(written[0]["multiplier"], dict):
        return  # those of leaves are changed below

    def change(factor: float) -> Change:
        return lambda t: t.update(multiplier=factor * t["multiplier"])

    assert not tampered(found, "close", change(1.5), all_=True).passed
    assert not tampered(found, "close", change(-1), all_=True).passed
    assert not tampered(found, "close", lambda t: t.update(multiplier=True), all_=True).passed


@pytest.mark.parametrize(
    ("name", "rule"), [("certificate", "cells"), ("slabs", "slabs"), ("trees", "output-ranges")]
)
def test_every_leaf_matters(name, rule, request):
    found = request.getfixturevalue(name)
    for number, term in enumerate(terms_of(found.proof, rule)):
        leaves = array(term["leaves"], "leaves", "f", 0)
        size, width = leaves.shape
        for place in range(0, size, max(1, size // 6)):
            if leaves[place, 0] < 0:
                continue
            first = width - len(range(*term_slice(term, width)))
            far = np.linspace(-30.0, 30.0, width - first)
            proof = copy.deepcopy(dict(found.proof))
            changed = list(terms_of(proof, rule))[number]
            packed(changed, "leaves", in_row(place, slice(first, None), far))
            assert not verify(rehashed(found, proof=proof)).passed, place


def term_slice(term: dict[str, Any], width: int) -> tuple[int, int]:
    """Return the columns of slopes, which may be any numbers."""
    (of,) = term["of"]
    slopes = next(
        t[key]
        for rule, key in (("chord", "nu"), ("slab", "nu"), ("output-chords", "slopes"))
        for t in terms_of(of, rule)
    )
    return slopes["leaf"][0], width


TREES = {
    "a leaf left out": lambda t: packed(t, "leaves", lambda x: x[:-1]),
    "a leaf too many": lambda t: packed(t, "leaves", lambda x: np.concatenate([x, x[:1]])),
    "leaves that are no numbers": lambda t: packed(t, "leaves", lambda x: x * np.nan),
    "an infinite leaf": lambda t: packed(t, "leaves", in_row(COUNTED, 1, np.inf)),
    "a negative multiplier": lambda t: packed(t, "leaves", in_row(COUNTED, 1, -1e-3)),
    "a template that is none": lambda t: packed(t, "leaves", in_row(COUNTED, 0, 1)),
    "a column left out": lambda t: packed(t, "leaves", lambda x: x[:, :-1]),
    "a node left out": lambda t: packed(t, "nodes", lambda x: x[:-1]),
    "a node too many": lambda t: packed(t, "nodes", lambda x: np.concatenate([x, x[-1:]])),
    "nodes that name nothing": lambda t: packed(t, "nodes", lambda x: np.where(x >= 0, 99, x)),
    "nodes that are all leaves": lambda t: packed(t, "nodes", lambda x: x * 0 - 1),
    "a cut too many": lambda t: packed(t, "cuts", lambda x: np.append(x, 0.5)),
    "cuts that are no numbers": lambda t: packed(t, "cuts", lambda x: x * np.nan),
    "cuts that are moved": lambda t: packed(t, "cuts", lambda x: 0.5 * x),
    "no cuts": lambda t: t.pop("cuts"),
    "a key too many": lambda t: t.update(note=1),
    "a key of an array too many": lambda t: t["leaves"].update(note=1),
    "a shape in floats": lambda t: t["leaves"].update(shape=[1e9, 1]),
    "a shape that is not the data's": lambda t: t["leaves"].update(shape=[1, 1]),
}


@pytest.mark.parametrize("change", TREES)
@pytest.mark.parametrize(
    ("name", "rule"), [("certificate", "cells"), ("slabs", "slabs"), ("trees", "output-ranges")]
)
def test_tampered_trees_fail(name, rule, change, request):
    if change == "a negative multiplier" and rule == "output-ranges":
        return  # its leaves have none
    answer = tampered(request.getfixturevalue(name), rule, TREES[change])
    assert not answer.passed
    # Read strictly: nothing is left to the last resort.
    assert "a part is missing or malformed" not in answer.reason
    assert answer.ends["lower"].proved


CELLS: dict[str, Change] = {
    "merged outputs": lambda t: t.update(parts=[[0, 1], [2]]),
    "no partition": lambda t: t.update(parts=[[0], [1]]),
    "outputs in text": lambda t: t.update(parts=[["0"], [1], [2]]),
    "no symmetry": lambda t: packed(t, "symmetries", lambda x: x[:, ::-1]),
    "a cut at an end": lambda t: packed(t, "cuts", lambda x: x * 0),
    "a cut at the other end": lambda t: packed(t, "cuts", lambda x: x * 0 + 1),
    "a negative cut": lambda t: packed(t, "cuts", lambda x: x - 1),
    "an output that is none": lambda t: packed(t, "nodes", in_row(0, 0, 7)),
    "a vertex that is none": lambda t: packed(t, "nodes", in_row(0, 1, 5)),
    "a negative vertex": lambda t: packed(t, "nodes", in_row(0, 2, -1)),
    "an edge from a vertex to itself": lambda t: packed(t, "nodes", in_row(0, slice(1, 3), 0)),
    "all left out": lambda t: packed(t, "leaves", in_row(slice(None), 0, -1)),
}


@pytest.mark.parametrize("change", CELLS)
def test_tampered_cells_fail(certificate, change):
    answer = tampered(certificate, "cells", CELLS[change])
    assert not answer.passed
    assert "malformed" not in answer.reason


def test_a_tree_that_only_goes_down_is_gone_through_without_recursion(certificate):
    size = 5_000

    def deep(term: dict[str, Any]) -> None:
        width = term["leaves"]["shape"][1]
        inner = [[0, 0, 1]] * (size - 1)
        term["nodes"] = pack(inner + [[-1, -1, -1]] * size, "<i4")
        term["cuts"] = pack(np.full(size - 1, 0.5), "<f8")
        term["leaves"] = pack(np.zeros((size, width)), "<f8")

    answer = tampered(certificate, "cells", deep)
    assert not answer.passed
    assert "is proved, not the claimed" in answer.reason


SLABS: dict[str, Change] = {
    "a q of 0": lambda t: packed(t, "leaves", in_row(COUNTED, 2, 0.0)),
    "a q above 1": lambda t: packed(t, "leaves", in_row(COUNTED, 2, 1.1)),
    "an infinite law": lambda t: packed(t, "leaves", in_row(COUNTED, 3, np.inf)),
    "a negative law": lambda t: packed(t, "leaves", in_row(COUNTED, 3, -1)),
    "larger slopes": lambda t: packed(t, "leaves", in_row(COUNTED, slice(16, 22), 1e3)),
    "cuts elsewhere": lambda t: packed(t, "cuts", lambda x: x + 0.2 * np.ptp(x) + 1),
    "a functional turned": lambda t: packed(t, "functional", lambda x: x[::-1]),
    "a functional too short": lambda t: packed(t, "functional", lambda x: x[:-1]),
}


@pytest.mark.parametrize("change", SLABS)
def test_tampered_slabs_fail(slabs, change):
    answer = tampered(slabs, "slabs", SLABS[change])
    assert not answer.passed
    assert "malformed" not in answer.reason


SHARES: dict[str, Change] = {
    "another law": lambda t: t.update(t=[x * (i + 1) for i, x in enumerate(t["t"])]),
    "a negative law": lambda t: t.update(t=[-x for x in t["t"]]),
    "a law that is not finite": lambda t: t.update(t=[math.inf for _ in t["t"]]),
    "a law without an output": lambda t: t.update(t=[*t["t"][:-1], 0]),
    "a law too short": lambda t: t.update(t=t["t"][:-1]),
    "a value too few": lambda t: t.update(values=t["values"][:-1]),
    "values that are none": lambda t: t.update(values=[1.0] * len(t["values"])),
    "values that are rules' names": lambda t: t.update(values=["blocks"] * len(t["values"])),
    "half of it": lambda t: t.update(q=0.5 * t["q"]),
    "more than all": lambda t: t.update(q=1.1),
    "a q that is not finite": lambda t: t.update(q=math.inf),
    "a key too few": lambda t: t.pop("t"),
    "a key too many": lambda t: t.update(note=1),
}


@pytest.mark.parametrize("change", SHARES)
@pytest.mark.parametrize("name", ["trees", "tangents", "dataset"])
def test_tampered_shares_fail(name, change, request):
    answer = tampered(request.getfixturevalue(name), "share", SHARES[change])
    assert not answer.passed
    assert "a part is missing or malformed" not in answer.reason


BLOCKS: dict[str, Change] = {
    "another law": lambda t: t.update(w=[x**2 for x in t["w"][::-1]]),
    "a group of weight 0": lambda t: t.update(w=[0.0, *t["w"][1:]]),
    "a group of negative weight": lambda t: t.update(w=[-1.0, *t["w"][1:]]),
    "a law too short": lambda t: t.update(w=t["w"][:-1]),
    "a key too many": lambda t: t.update(note=1),
}


@pytest.mark.parametrize("change", BLOCKS)
def test_tampered_tangents_fail(tangents, change):
    assert not tampered(tangents, "blocks", BLOCKS[change], all_=True).passed


def test_a_tangent_is_of_use_for_a_large_multiplier_only(trees):
    def change(share: dict[str, Any]) -> None:
        share["values"] = [{"rule": "blocks", "w": [1] * 5} for _ in share["values"]]

    answer = tampered(trees, "share", change)
    assert not answer.passed
    assert answer.ends["lower"].proved


def test_choices_are_checked():
    query = AdditiveQuery(RecordSpace.binary(4), [(0, 1)] * 4, modulus=2)
    found = made(record_leakage(Mechanism(query, [[0.7, 0.3], [0.3, 0.7]]), 1.0), "choices")
    (term,) = terms_of(found.proof, "choices")
    assert term["inputs"]["shape"] == [4, 2]
    for change in (
        lambda x: x[:-1],
        lambda x: x * [[0.5, 1.5]],
        lambda x: np.eye(2)[[0, 0, 0, 0]],
        lambda x: -x,
    ):
        proof = copy.deepcopy(dict(found.proof))
        (term,) = terms_of(proof, "choices")
        packed(term, "inputs", change)
        proof["groups"] = [[term]]
        assert not verify(rehashed(found, proof=proof)).passed


def test_near_proportional_outputs_are_merged_at_a_price():
    base = np.random.default_rng(1).dirichlet(np.ones(2), size=4)
    # Splitting each output 0.3 : 0.7 gives columns that are proportional only up to rounding.
    split = Channel(base).then(Channel([[0.3, 0.7, 0.0, 0.0], [0.0, 0.0, 0.3, 0.7]]))
    plain = record_leakage(Mechanism.from_channel(RecordSpace.binary(2), base), 0.9)
    bound = record_leakage(Mechanism.from_channel(RecordSpace.binary(2), split), 0.9)
    assert bound.upper == pytest.approx(plain.upper, rel=2e-4)
    found = made(bound, "price")
    assert all(len(term["parts"]) == 2 for term in terms_of(found.proof, "price"))
    other = {"parts": [[0, 2], [1, 3]]}
    assert not tampered(found, "price", lambda t: t.update(other), all_=True).passed


def test_balance_certificate_is_checked():
    found = made(balance(mechanism(), 2.3, tol=1e-3))
    assert not verify(rehashed(found, lower=found.lower + 1e-9)).passed
    assert not verify(rehashed(found, upper=found.upper - 1e-9)).passed
    for end in ("witness", "proof"):
        term = getattr(found, end)
        turned = {**term, "capacity": term["leakage"], "leakage": term["capacity"]}
        assert not verify(rehashed(found, **{end: turned})).passed
        assert not verify(rehashed(found, **{end: {**term, "note": 1}})).passed
    assert not verify(rehashed(found, witness=found.proof, proof=found.witness)).passed


# Gains -------------------------------------------------------------------------------------------

FORMS = ("posterior", "rise", "factor")


def gained(gain: Any, form: str) -> Any:
    noisy = Mechanism(parity(3), binary_symmetric(0.2))
    return record_leakage(noisy, 1.0, gain=gain, form=form)


@pytest.fixture(scope="module")
def guesses() -> dict[str, Any]:
    return {form: gained(Guess(), form) for form in FORMS}


def test_what_is_claimed_is_about_one_gain_in_one_form(guesses):
    # Somebody knows the record itself; to somebody who knows the others' parity .5 becomes .8.
    truth = {"posterior": 1.0, "rise": 0.3, "factor": 1.6}
    for form, bound in guesses.items():
        found = made(bound)
        assert found.lower <= truth[form] <= found.upper <= found.lower + 1e-3
        for other in FORMS:
            problem = {**found.problem, "form": other}
            answer = verify(rehashed(found, problem=problem, unit=guesses[other].unit))
            for name, end in answer.ends.items():
                if end.proved:
                    at = getattr(found, name)
                    assert at <= truth[other] if name == "lower" else at >= truth[other]
        gini = {**found.problem, "gain": Gini().to_dict()}
        assert not verify(rehashed(found, problem=gini)).ends["upper"].proved


def test_factors_need_a_factor_and_a_positive_gain(guesses):
    found = made(guesses["factor"], "factor", "prior")
    for times in (0.0, 0.5, 1.0, 1.59, 1.7, 5.0):
        answer = tampered(found, "factor", lambda t, x=times: t.update(times=x), all_=True)
        assert answer.upper >= 1.6
    for wrong in ({"times": -1.0}, {"theta": [0.0, 1.0]}, {"theta": [1.0]}):
        assert not tampered(found, "factor", lambda t, w=wrong: t.update(w), all_=True).passed
