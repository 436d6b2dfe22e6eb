"""Files that somebody wrote to break the checker: short ones that ask for much, and odd values."""

import copy
import dataclasses
import hashlib
import json
import math
import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

from cvxleak.audit import (
    balance,
    product_leakage,
    record_leakage,
    total_disclosure,
)
from cvxleak.capacities import capacity, renyi_capacity
from cvxleak.core.errors import CvxleakError, ValidationError
from cvxleak.design import design_for_prior, min_distortion, min_leakage
from cvxleak.differential_privacy import check_claim
from cvxleak.envelope import failure_probability, optimal_pml_mechanism, pml_envelope
from cvxleak.kernel import budget, reading
from cvxleak.kernel.cases import simplex
from cvxleak.kernel.numbers import RefusedError
from cvxleak.kernel.reading import pack
from cvxleak.kernel.space import Space
from cvxleak.local_dp import (
    local_dp_epsilon_of_set,
    min_distortion_local_dp,
    min_information,
    min_local_dp,
)
from cvxleak.mechanisms import binary_symmetric
from cvxleak.model import (
    ChannelSet,
    Expectation,
    KnownMarginals,
    Mechanism,
    RecordSpace,
    RelativeEntropyBall,
)
from cvxleak.proofs import Certificate, save_certificates, timed, verify
from cvxleak.proofs.checker import PROVERS
from cvxleak.queries import count, modular_sum, parity
from cvxleak.refinement import refines
from cvxleak.release import release_problem

WRONG = [[0.0, 1.0], [1.0, 0.0]]
JOINT = [[[0.1, 0.2], [0.05, 0.15]], [[0.2, 0.1], [0.15, 0.05]]]


NAMES = (
    "capacity",
    "renyi-capacity",
    "record-leakage, choices",
    "record-leakage, cells",
    "record-leakage, known",
    "balance",
    "product-leakage",
    "min-leakage",
    "min-leakage, own",
    "min-distortion",
    "failure-probability",
    "pml-envelope",
    "pml-mechanism",
    "fixed-prior-leakage",
    "fixed-prior-distortion",
    "release-distortion",
    "release-information",
    "local-dp",
    "local-dp, approximate",
    "local-dp-distortion",
    "min-information",
    "renyi-dp",
    "zcdp",
    "dp-profile",
    "gaussian-dp",
    "deficiency",
    "local-dp-of-set",
    "total-disclosure",
)


@cache
def one_of_each() -> dict[str, Any]:
    """Return certificates of all kinds, and with all kinds of proofs."""
    noisy = Mechanism(parity(3), binary_symmetric(0.1))
    rows = np.random.default_rng(5).dirichlet(np.ones(3), size=4)
    plain = Mechanism.from_channel(RecordSpace.binary(2), rows)
    cyclic = Mechanism(modular_sum(4, 3), 0.7 * np.eye(3) + 0.1)
    known = [
        KnownMarginals([0.6, 0.4]),
        Expectation([0.0, 1.0], records=[0], at_most=0.5),
        RelativeEntropyBall(0.3, laws=[[0.5, 0.5]] * 2),
    ]
    least = {"distortion": WRONG, "budget": 0.2, "tol": 1e-2}
    bounds = {
        "capacity": capacity(rows),
        "renyi-capacity": renyi_capacity(rows, 2),
        "record-leakage, choices": record_leakage(plain, 0.0),
        "record-leakage, cells": record_leakage(cyclic, 2.3, tol=1e-2),
        "record-leakage, known": record_leakage(plain, 0.2, adversaries=known, tol=5e-2),
        "balance": balance(plain, 1.0, tol=1e-1),
        "product-leakage": product_leakage(noisy, 0.6),
        "min-leakage": min_leakage(parity(3), entropy_floor=1.0, **least),
        "min-leakage, own": min_leakage(
            parity(2), entropy_floor=0.5, constraints=lambda q: [q[0, 0] <= 0.7], **least
        ),
        "min-distortion": min_distortion(
            parity(2), distortion=WRONG, budget=0.1, entropy_floor=0.5, tol=1e-2
        ),
        "failure-probability": failure_probability([0.4, 0.6], rows[:2], 0.3),
        "pml-envelope": pml_envelope([0.4, 0.6], rows[:2], 0.2),
        "pml-mechanism": optimal_pml_mechanism([0.4, 0.6], np.eye(2), 0.3),
        "fixed-prior-leakage": design_for_prior([0.4, 0.6], WRONG, 0.1),
        "fixed-prior-distortion": design_for_prior([0.4, 0.6], WRONG, 0.1, minimize="distortion"),
        "release-distortion": release_problem(JOINT, 0.02, 0.05).solve(),
        "release-information": release_problem(JOINT, 0.02, 0.05, "information").solve(tol=1e-2),
        "local-dp": min_local_dp([[0.5, 0.3, 0.2]], 0.2),
        "local-dp, approximate": min_local_dp([[0.5, 0.3, 0.2]], 0.2, delta=0.05),
        "local-dp-distortion": min_distortion_local_dp([[0.5, 0.3, 0.2]], 0.5),
        "min-information": min_information([[0.5, 0.3, 0.2]], 0.2),
        "renyi-dp": check_claim(rows[:2], renyi=(2, 1)).bound,
        "zcdp": check_claim(rows[:2], zcdp=1).bound,
        "dp-profile": check_claim(rows[:2], epsilon=0.2, delta=0.1).bound,
        "gaussian-dp": check_claim(rows[:2], gdp=1).bound,
        "local-dp-of-set": local_dp_epsilon_of_set(ChannelSet.from_printed(rows[:2], 1)),
        "total-disclosure": total_disclosure(Mechanism(count(2), np.eye(3))),
        "deficiency": refines([[0.5, 0.5], [0.2, 0.8]], [[0.75, 0.25], [0.25, 0.75]]),
    }
    return {name: bound.certificate for name, bound in bounds.items()}


def test_there_is_one_of_each_kind():
    found = one_of_each()
    assert set(found) == set(NAMES)
    assert {certificate.kind for certificate in found.values()} == set(PROVERS)
    for name, certificate in found.items():
        assert name.split(",")[0] == certificate.kind
        assert verify(certificate).passed


def deep(levels: int) -> list:
    result: list = []
    for _ in range(levels):
        result = [result]
    return result


ODD = [
    None,
    True,
    -1,
    2**70,
    10**5000,
    1e308,
    -1e308,
    5e-324,
    "",
    "9" * 10**6,
    "1/0",
    [],
    {},
    [[]],
    [None],
    {"kind": ["x"]},
    deep(800),
    math.nan,
    math.inf,
]


def places(node, path=()):
    """Return the path of everything inside of a JSON document."""
    yield path
    if isinstance(node, dict):
        for key, value in node.items():
            yield from places(value, (*path, key))
    elif isinstance(node, list):
        for place, value in enumerate(node):
            yield from places(value, (*path, place))


def with_change(data, path, value):
    if not path:
        return value
    changed = copy.copy(data)
    changed[path[0]] = with_change(data[path[0]], path[1:], value)
    return changed


def rehashed(data):
    """Return a document with a hash that fits, or None if JSON cannot hold it."""
    parts = {key: value for key, value in data.items() if key != "sha256"}
    try:
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError):
        return data
    return {**parts, "sha256": hashlib.sha256(text.encode()).hexdigest()}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("most", [50, pytest.param(150, marks=pytest.mark.slow)])
def test_odd_values_anywhere_get_a_verdict(name, most):
    data = json.loads(json.dumps(one_of_each()[name].to_dict()))
    made = one_of_each()[name]
    found = [path for path in places(data) if path and path[0] not in ("versions", "sha256")]
    step = max(1, len(found) // most)
    for turn, path in enumerate(found[::step]):
        for value in [ODD[(3 * turn + i) % len(ODD)] for i in range(3)]:
            changed = rehashed(with_change(data, path, value))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                answer = verify(changed)
            assert "Error(" not in answer.reason, (path, value, answer.reason)
            assert "Warning(" not in answer.reason, (path, value, answer.reason)
            assert answer.reason
            if answer.passed:  # a weaker claim, or a number that does not matter
                assert answer.certificate is not None
                lower, upper = answer.certificate.lower, answer.certificate.upper
                claims = path[0] == "claim" or path[-1] == "value"
                assert not claims or (lower, upper) != (made.lower, made.upper)


def parity_of(records: int, runs: int = 1) -> dict:
    """Return a stored parity of very many records, in runs of equal ones."""
    return {
        "kind": "additive",
        "space": {"alphabets": [[[0, 1], records]] * runs},
        "contributions": [[[[0], [1]], records]] * runs,
        "totals": [[0], [1]],
        "values": [0, 1],
        "modulus": 2,
    }


CEILING = {"rule": "close", "multiplier": 0, "limits": [], "of": {"rule": "alphabet"}}


def audit_of(query: dict, matrix: list, group: list[int], *terms) -> Certificate:
    channel = {"matrix": matrix, "inputs": [0, 1], "outputs": list(range(len(matrix[0])))}
    mechanism = {"query": query, "channel": channel}
    problem = {"mechanism": mechanism, "entropy_floor": 0.0, "size": len(group)}
    return Certificate(
        "record-leakage",
        problem | {"records": [group]},
        0.0,
        1.0,
        {"rule": "point", "group": 0, "weights": [1, 1, 1, 1]},
        {"rule": "max", "groups": [[CEILING, *terms]]},
    )


NOISY = [[0.9, 0.1], [0.1, 0.9]]


def whole_tree(depth: int) -> dict:
    """Return a tree of 2^depth equal leaves: zeros, which are compressed to almost nothing."""
    nodes = [(level % 2, 0, 1) for level in range(depth) for _ in range(2**level)]
    nodes += [(-1, 0, 0)] * 2**depth
    chord = {"rule": "chord", "nu": {"leaf": [1, 5]}}
    return {
        "rule": "cells",
        "nodes": pack(np.array(nodes), "<i4"),
        "cuts": pack(np.full(2**depth - 1, 0.5), "<f8"),
        "leaves": pack(np.zeros((2**depth, 5)), "<f8"),
        "of": CEILING | {"of": chord},
    }


def refusal(certificate: Certificate | dict) -> str:
    """Return why a certificate is not even gone through."""
    answer = verify(certificate)
    assert not answer.passed
    return answer.reason


def test_runs_are_limited_in_all():
    for records, runs, reason in (
        (1 << 24, 1, "alphabets: found 16777216"),
        (1 << 20, 24, "the file asks for more than"),
        (1 << 18, 24, "too many records"),
    ):
        certificate = audit_of(parity_of(records, runs), NOISY, [0])
        assert len(json.dumps(certificate.to_dict())) < 2500
        assert reason in refusal(certificate)
    assert verify(audit_of(parity_of(10_000), NOISY, [0])).passed


def test_totals_that_are_on_no_line_are_counted_with_their_digits():
    four = ((0, 0), (0, 1), (1, 0), (1, 1))
    with budget.limited():
        counts = Space(((four, 1 << 17),), (2, 2), {}, ()).totals()
    assert counts == dict.fromkeys(four, 1 << (2 * (1 << 17) - 2))
    large = {(a, b): 1 << (1 << 20) for a in range(8) for b in range(8)}
    with budget.limited(), pytest.raises(RefusedError, match="ball operations"):
        Space((), (8, 8), {}, ()).convolve(large, large)


def test_packed_numbers_are_limited_before_they_are_fractions():
    large = pack(np.zeros(1 << 23), "<f8")
    with budget.limited(), pytest.raises(RefusedError, match="bytes of numbers"):
        reading.fractions(large, "orders")


def test_tables_of_a_value_for_each_value_are_limited():
    with budget.limited(), pytest.raises(RefusedError, match="bytes of numbers"):
        simplex(20_000)


def test_runs_of_nothing_are_limited_too():
    query = parity_of(1) | {"contributions": [[[], 10**9]]}
    assert "contributions: found 1000000000" in refusal(audit_of(query, NOISY, [0]))
    query = parity_of(10) | {"space": {"alphabets": [[[0, 1], 10**400]]}}
    assert "alphabets: found 1000" in refusal(audit_of(query, NOISY, [0]))


def test_the_records_of_a_list_of_certificates_are_counted_together(monkeypatch):
    monkeypatch.setitem(budget.LIMITS, "records' values", 3 * 1000 * 2)
    one = audit_of(parity_of(1000), NOISY, [0]).to_dict()
    whole = {"format": "cvxleak-certificates", "version": 1, "certificates": [one] * 4}
    answer = verify(whole)
    assert [part.passed for part in answer.parts] == [True, True, True, False]
    assert "the file asks for more than 6000 records' values" in answer.parts[-1].reason


def test_fractions_without_a_common_denominator_are_limited(monkeypatch):
    # 26 kB whose common denominator has 13,000 digits; it is gone through for each of the numbers.
    row = [f"{bottom // 32}/{bottom}" for bottom in range(10**400 + 1, 10**400 + 64, 2)]
    mechanism = audit_of(parity_of(4), [row, row], [0])
    assert "asks for" not in refusal(mechanism)
    monkeypatch.setitem(budget.LIMITS, "bytes of numbers", 100_000)
    assert "the file asks for more than 100000 bytes of numbers" in refusal(mechanism)


def test_leaves_that_the_file_does_not_hold_are_limited(monkeypatch):
    assert verify(audit_of(parity_of(4), NOISY, [0], whole_tree(10))).passed
    monkeypatch.setitem(budget.LIMITS, "float operations", 1 << 20)
    certificate = audit_of(parity_of(4), NOISY, [0], whole_tree(16))
    assert "the file asks for more than 1048576 float operations" in refusal(certificate)


def test_groups_of_records_and_their_contexts_are_limited():
    certificate = audit_of(parity_of(40), NOISY, list(range(30)))
    assert "ball operations" in refusal(certificate)


def test_symmetries_of_datasets_are_limited():
    swap = [[1, 0, *range(2, 20)], [[0, 1]] * 20]
    certificate = one_of_each()["min-leakage"]
    problem = json.loads(json.dumps(dict(certificate.problem)))
    problem["query"] = parity_of(20)
    rows = {"form": "orbits", "query": parity_of(20), "generators": [swap] * 100}
    changed = dataclasses.replace(certificate, problem=problem | {"rows": rows})
    assert "the file asks for more than 268435456 ball operations" in refusal(changed)


def test_a_hamming_table_is_as_large_as_the_channel():
    certificate = one_of_each()["local-dp"]
    points = [{"points": [[1.0] * 50_000], "polytopes": []}]
    problem = dict(certificate.problem) | {"sources": points, "distortion": "hamming"}
    assert "the channel" in refusal(dataclasses.replace(certificate, problem=problem))


def test_packed_arrays_are_limited_in_all():
    large = pack(np.zeros(1 << 20), "<f8")
    with budget.limited():
        for _ in range(budget.LIMITS["bytes of packed arrays"] >> 23):
            reading.array(large, "it", "f")
        with pytest.raises(RefusedError, match=r"asks for more than .* bytes of packed arrays"):
            reading.array(large, "it", "f")
    reading.array(large, "it", "f")  # a search may do what it likes


@pytest.mark.parametrize(
    "bound",
    [
        lambda: record_leakage(Mechanism(modular_sum(10_000, 4), 0.6 * np.eye(4) + 0.1), 6900.0,
                               time_limit=0.0),
        lambda: record_leakage(Mechanism(count(10_000), coin(10_001, 2)), 100.0, time_limit=0.0),
        lambda: record_leakage(Mechanism.from_channel(RecordSpace.binary(12), coin(4096, 16)), 6.0,
                               time_limit=0.0),
        lambda: capacity(coin(300, 300)),
    ],
    ids=["sum mod 4 of 10,000", "count of 10,000", "4096 x 16", "300 x 300"],
)  # fmt: skip
def test_what_the_library_makes_is_within_the_limits(bound):
    assert verify(bound().certificate).passed


def coin(rows: int, outputs: int):
    return np.random.default_rng(1).dirichlet(np.ones(outputs), size=rows)


def test_a_list_inside_of_a_list_is_refused(tmp_path):
    member = one_of_each()["capacity"].to_dict()
    whole = {"format": "cvxleak-certificates", "version": 1, "certificates": [member]}
    nested = whole | {"certificates": [whole, member]}
    assert verify(whole).passed
    assert "a list of certificates inside another list" in refusal(nested)
    (tmp_path / "nested.json").write_text(json.dumps(nested))
    assert "a list of certificates inside another list" in refusal(tmp_path / "nested.json")


def test_lists_have_a_limited_length(tmp_path):
    whole = {"format": "cvxleak-certificates", "version": 1, "certificates": [{}] * 1_000_000}
    assert refusal(whole) == "1000000 certificates; at most 10000 are read"
    with pytest.raises(ValidationError, match="certificates: found 10001; a file holds at most"):
        save_certificates([one_of_each()["capacity"]] * 10_001, tmp_path / "long.json")


@pytest.mark.parametrize("kind", [["capacity"], {}, None, 3, "capacities"])
def test_a_kind_that_is_none_is_named(kind):
    data = one_of_each()["capacity"].to_dict()
    assert refusal(rehashed(data | {"kind": kind})).startswith("unknown kind ")


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 5_000 + "1" + "}" * 5_000,
        "9" * 10**6,
        '{"a": 1e999}',
        '{"a": NaN}',
        '{"a": 1, "a": 1}',
        "\x00",
        "",
    ],
)
def test_files_that_are_hardly_json(text, tmp_path):
    path = tmp_path / "file.json"
    path.write_text(text)
    assert refusal(path)
    assert "Error(" not in refusal(path)
    with pytest.raises(CvxleakError):
        Certificate.load(path)


def test_a_check_without_time_claims_nothing(tmp_path):
    certificate = one_of_each()["capacity"]
    answer = verify(certificate, time_limit=0)
    assert not answer.passed
    assert not answer.finished
    assert (answer.lower, answer.upper, answer.certificate) == (-math.inf, math.inf, None)
    assert answer.reason == "not confirmed: the check did not finish within 0 s"
    with pytest.raises(ValidationError, match="time_limit"):
        verify(certificate, time_limit=-1)
    assert verify(certificate, time_limit=1e300).passed  # longer than the system can wait
    path = tmp_path / "proof.json"
    certificate.save(path)
    # As much time as it takes: the same answer as without a limit.
    for what in (certificate, path, certificate.to_dict()):
        assert verify(what, time_limit=1e6) == verify(what)


def test_a_check_that_dies_claims_nothing(monkeypatch):
    monkeypatch.setattr(timed, "CHILD", "import os; os._exit(9)")
    answer = verify(one_of_each()["capacity"], time_limit=1e6)
    assert (answer.passed, answer.finished) == (False, False)
    assert answer.reason.endswith("the check ended without an answer, with exit code 9")
