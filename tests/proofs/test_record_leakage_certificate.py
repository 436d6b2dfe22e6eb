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
from cvxleak.mechanisms import binary_symmetric, random_rounding
from cvxleak.model import AdditiveQuery, Channel, Gini, Guess, Mechanism, RecordSpace
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
def boxes() -> Certificate:
    query = AdditiveQuery(RecordSpace([(0, 1, 2)] * 2), [(0, 1, 2)] * 2)
    people = Mechanism(query, random_rounding(4, base=3))
    return made(record_leakage(people, 1.5, tol=1e-2), "smoothed", "share", "ratio")


@pytest.fixture(scope="module")
def tangents() -> Certificate:
    people = Mechanism(count(6), random_rounding(6, base=3))
    return made(group_leakage(people, 4.15, 2), "share", "contraction")


@pytest.fixture(scope="module")
def capacities() -> Certificate:
    query = AdditiveQuery(RecordSpace.binary(4), [(0, 1)] * 4, modulus=2)
    return made(record_leakage(Mechanism(query, [[0.7, 0.3], [0.3, 0.7]]), 1.0), "choices")


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


def tampered(certificate: Certificate, rule: str, change: Change) -> Any:
    """Return the verdict once the terms of a rule are changed."""
    proof = copy.deepcopy(dict(certificate.proof))
    found = list(terms_of(proof, rule))
    assert found
    for term in found:
        change(term)
    return verify(rehashed(certificate, proof=proof))


def packed(key: str, change: Callable[[Any], Any]) -> Change:
    """Change a packed array."""

    def packing(term: dict[str, Any]) -> None:
        data = term[key]
        with precision():
            found = array(data, key, "fi", None if len(data["shape"]) == 1 else 0)
        # What no array may hold is packed all the same.
        with np.errstate(all="ignore"):
            term[key] = pack(change(found.copy()), data["dtype"])

    return packing


def times(key: str, factor: Any) -> Change:
    """Multiply a number, or the numbers of a list."""

    def change(term: dict[str, Any]) -> None:
        found = np.multiply(factor, term[key])
        term[key] = found.tolist()

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


# Terms -------------------------------------------------------------------------------------------


TAMPERED: dict[str, tuple[str, str, Change]] = {
    # What is no term any more.
    "a leaf left out": ("certificate", "cells", packed("leaves", lambda x: x[:-1])),
    "leaves that are no numbers": ("certificate", "cells", packed("leaves", lambda x: x * np.nan)),
    "negative multipliers": ("certificate", "cells", packed("leaves", lambda x: -abs(x) - 1)),
    "a shape in floats": ("certificate", "cells", lambda t: t["cuts"].update(shape=[1e9])),
    "no cuts": ("certificate", "cells", lambda t: t.pop("cuts")),
    "a key too many": ("boxes", "smoothed", lambda t: t.update(note=1)),
    "a law of another length": ("tangents", "contraction", lambda t: t.update(w=t["w"][:-1])),
    # Terms that prove less, or nothing.
    "cuts that are moved": ("certificate", "cells", packed("cuts", lambda x: 0.5 * x)),
    "slopes elsewhere": ("certificate", "cells", packed("leaves", lambda x: x + np.arange(7.0))),
    "another multiplier": ("tangents", "close", times("multiplier", 1.5)),
    "another law of the outputs": ("tangents", "share", times("t", [1, 2, 3])),
    "other tangents": ("tangents", "contraction", times("w", [1, 2, 3, 4, 5])),
    "more noise": ("boxes", "smoothed", times("share", 1e3)),
    "functionals that do not fit": ("boxes", "ratio", packed("psi", lambda x: -x)),
    "other choices": ("capacities", "choices", packed("inputs", lambda x: x * [[0.5, 1.5]])),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_tampered_terms_fail(how, request):
    name, rule, change = TAMPERED[how]
    answer = tampered(request.getfixturevalue(name), rule, change)
    assert not answer.passed
    # Read strictly: nothing is left to the last resort.
    assert "malformed" not in answer.reason
    assert answer.ends["lower"].proved


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
    assert not tampered(found, "price", lambda t: t.update(other)).passed


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
    for factor in (0.0, 0.5, 1.0, 1.59, 1.7, 5.0):
        answer = tampered(found, "factor", lambda t, x=factor: t.update(times=x))
        assert answer.upper >= 1.6
    for wrong in ({"times": -1.0}, {"theta": [0.0, 1.0]}, {"theta": [1.0]}):
        assert not tampered(found, "factor", lambda t, w=wrong: t.update(w)).passed
