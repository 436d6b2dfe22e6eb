"""Short files that ask the second checker for much: it counts what they ask for and refuses.

It counts over all certificates of a file together, and before anything is expanded.
"""

import base64
import copy
import json
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cvxleak import check
from cvxleak.cli.app import app
from tests.second_checker.making import made
from tests.second_checker.mutating import signed

NOISY = [[0.9, 0.1], [0.1, 0.9]]


def packed(code, numbers, shape):
    raw = zlib.compress(struct.pack(f"<{len(numbers)}{code}", *numbers), 9)
    dtype = {"d": "<f8", "f": "<f4", "i": "<i4"}[code]
    return {"dtype": dtype, "shape": shape, "data": base64.b64encode(raw).decode()}


def parity_of(records, runs=1):
    return {
        "kind": "additive",
        "space": {"alphabets": [[[0, 1], records]] * runs},
        "contributions": [[[[0], [1]], records]] * runs,
        "totals": [[0], [1]],
        "values": [0, 1],
        "modulus": 2,
    }


def audit_of(query, group=(0,), **proof):
    channel = {"matrix": NOISY, "inputs": [0, 1], "outputs": [0, 1]}
    mechanism = {"query": query, "channel": channel}
    records = list(group)
    return {
        **made("cells"),
        "problem": {
            "mechanism": mechanism,
            "entropy_floor": 0.0,
            "size": len(records),
            "records": [records],
        },
        "claim": {
            "lower": 0.0,
            "upper": 1.0,
            "unit": "nats",
            "about": {"lower": "problem", "upper": "problem"},
        },
        "witness": {"records": records, "weights": [1, 1, 1, 1]},
        "proof": {"groups": [{"records": records, **proof}]},
    }


def tree_of(depth, code="i"):
    """Return a tree of 2^depth equal leaves of zeros, which are compressed to almost nothing."""
    splits, waiting = [], [depth]
    while waiting:
        level = waiting.pop()
        splits += [level % 2, 0, 1] if level else [-1, -1, -1]
        waiting += [level - 1] * 2 if level else []
    leaves = 2**depth
    return {
        "outputs": [[0], [1]],
        "splits": packed(code, splits, [len(splits) // 3, 3]),
        "cuts": packed("d", [0.5] * (leaves - 1), [leaves - 1]),
        "leaves": packed("d", [0.0] * (5 * leaves), [leaves, 5]),
    }


def verdict(data):
    (found,) = check.check_text(json.dumps(signed(data)))
    return found


def refusal(data):
    found = verdict(data)
    assert found.code == check.UNUSABLE, found
    return found.text


def test_what_is_small_is_done():
    assert verdict(audit_of(parity_of(10_000))).code == check.PROVED
    assert verdict(audit_of(parity_of(4), cells=tree_of(4))).code == check.PROVED


@pytest.mark.parametrize(
    ("records", "runs"), [(1 << 24, 24), (1 << 24, 1), (1 << 22, 1), (9000, 8)]
)
def test_runs_of_records_are_limited(records, runs):
    data = audit_of(parity_of(records, runs))
    assert len(json.dumps(signed(data))) < 2500
    assert "too many records" in refusal(data) or "too large" in refusal(data)


def test_runs_count_the_values_of_each_record():
    query = parity_of(1 << 15)
    query["space"]["alphabets"][0][0] = list(range(1000))
    query["contributions"][0][0] = [[0]] * 1000
    assert "the arrays and runs are too large" in refusal(audit_of(query))


def test_leaves_that_the_file_does_not_hold_are_limited():
    data = audit_of(parity_of(4), cells=tree_of(20))
    assert len(json.dumps(data)) < 300_000
    assert "leaves: the file asks for too much work" in refusal(data)


def test_vertices_of_long_fractions_are_limited():
    depth = 2000
    splits = [0, 0, 1] * depth + [-1, -1, -1] * (depth + 1)
    tree = {
        "outputs": [[0], [1]],
        "splits": packed("i", splits, [2 * depth + 1, 3]),
        "cuts": packed("d", [0.3] * depth, [depth]),
        "leaves": packed("d", [0.1, 0, 0, 0, 0] * (depth + 1), [depth + 1, 5]),
    }
    assert "cuts: the file asks for too much" in refusal(audit_of(parity_of(4), cells=tree))


def test_fractions_without_a_common_denominator_are_limited(monkeypatch):
    row = [f"1/{10**400 + 2 * i + 1}" for i in range(32)]
    monkeypatch.setattr(check, "READ", check.Reader(2))
    assert check.law(row, "a law").total > 0
    monkeypatch.setattr(check, "LARGEST_WORK", 10_000)
    with pytest.raises(check.UnusableError, match="fractions of a law: the file asks for too much"):
        check.law(row, "a law")


def test_groups_of_very_many_values_are_limited():
    assert "contexts: the file asks for too much" in refusal(audit_of(parity_of(40), range(23)))


def test_work_is_counted_over_all_certificates_of_a_file(monkeypatch):
    one = signed(audit_of(parity_of(1000)))
    monkeypatch.setattr(check, "LARGEST_WORK", 10_000)
    whole = {"format": "cvxleak-certificates", "version": 1, "certificates": [one] * 4}
    codes = [found.code for found in check.check_text(json.dumps(whole))]
    assert codes[0] == check.PROVED
    assert codes[-1] == check.UNUSABLE
    assert verdict(one).code == check.PROVED  # the next file starts afresh


def test_a_place_is_a_whole_number():
    data = audit_of(parity_of(4), cells=tree_of(4, "d"))
    assert "splits has another dtype" in refusal(data)


def test_further_variables_are_as_many_as_are_named():
    data = copy.deepcopy(made("own further variables"))
    data["witness"].pop("further")
    data["proof"].update(own=[0] * len(data["problem"]["own"]), balance=[])
    data["problem"]["own"][0]["further"] = [[10**12, 1.0]]
    data["claim"].update(lower=0.0, upper=None, about={"lower": "problem"})
    assert verdict(data).code == check.PROVED


def test_a_hamming_distortion_is_limited():
    points = [{"points": [packed("f", [1.0] * 5000, [5000])], "polytopes": []}]
    data = copy.deepcopy(made("least epsilon"))
    data["problem"].update(sources=points, distortion="hamming")
    assert "too large" in refusal(data)


def test_symmetries_of_datasets_are_limited():
    data = copy.deepcopy(made("least leakage"))
    swap = [[1, 0, *range(2, 20)], [[0, 1]] * 20]
    rows = {"form": "orbits", "query": parity_of(20), "generators": [swap] * 100}
    data["problem"].update(query=parity_of(20), rows=rows)
    assert "the file asks for too much work" in refusal(data)


def test_bundles_are_flat_and_of_limited_length():
    member = made("capacity")
    whole = {"format": "cvxleak-certificates", "version": 1, "certificates": [member]}
    for members, why in (
        ([whole], "a bundle inside of a bundle"),
        ([{}] * 10_001, "of no certificates, or of too many"),
    ):
        (found,) = check.check_text(json.dumps({**whole, "certificates": members}))
        assert found.code == check.UNUSABLE
        assert why in found.text


@pytest.mark.parametrize("kind", [["capacity"], {}, None, 3, "capacities"])
def test_a_kind_that_is_none_is_named(kind):
    found = verdict({**made("capacity"), "kind": kind})
    assert found.code == check.UNKNOWN
    assert "does not know the kind" in found.text


def test_a_time_limit_holds_for_both_checkers(tmp_path):
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(made("capacity")))
    command = ["verify", "--second", str(path), "--time-limit"]
    done = CliRunner().invoke(app, [*command, "1e6"])
    assert done.exit_code == 0, done.output
    assert "second checker: PROVED  capacity" in done.output
    done = CliRunner().invoke(app, [*command, "0"])
    assert done.exit_code == 3
    assert "second checker: NOT CONFIRMED  the check did not finish within 0 s" in done.output


def test_a_hostile_file_alone(tmp_path):
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(signed(audit_of(parity_of(1 << 24)))))
    command = [sys.executable, "-I", "-S", str(Path(check.__file__)), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == check.UNUSABLE, done
    assert done.stdout.startswith("UNUSABLE")
