"""The second checker agrees with the first, alone and on the command line, and knows what it is."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import cvxleak
from cvxleak import RelativeEntropyBall, check, record_leakage, verify
from cvxleak.cli.app import app
from cvxleak.mechanisms import random_rounding
from cvxleak.model import Mechanism
from cvxleak.queries import count
from tests.second_checker.making import MAKERS, made
from tests.second_checker.mutating import signed

FILE = Path(check.__file__)


def code(data):
    return check.worst(check.check_text(json.dumps(data)))


@pytest.mark.parametrize("name", MAKERS)
def test_both_checkers_prove_what_was_made(name):
    data = made(name)
    assert verify(data).passed
    (verdict,) = check.check_text(json.dumps(data))
    assert verdict.code == check.PROVED, verdict


@pytest.mark.parametrize("name", sorted(set(MAKERS) - {"capacity of nothing"}))
def test_neither_end_can_be_claimed_a_little_better(name):
    # The other end is attained or proved, so a claim beyond it is false, whatever the proof says.
    data = made(name)
    lower, upper = data["claim"]["lower"], data["claim"]["upper"]
    if "inf" in (lower, upper):
        data["claim"]["lower"], data["problem"]["budget"] = "inf", data["problem"]["budget"] + 0.1
    else:
        data["claim"].update(lower=upper + 1e-6, upper=upper + 1.0)
        assert code(signed(data)) == check.NOT_PROVED
        data["claim"].update(lower=lower - 1.0, upper=lower - 1e-6)
    assert code(signed(data)) == check.NOT_PROVED


def test_it_is_one_file_of_the_standard_library():
    text = FILE.read_text()
    assert len(text.splitlines()) <= 1500
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            assert node.module is not None
            names.add(node.module.split(".")[0])
    assert names <= set(sys.stdlib_module_names)


def test_a_copy_runs_alone(tmp_path):
    copy, proof = tmp_path / "check.py", tmp_path / "proof.json"
    copy.write_text(FILE.read_text())
    data = made("cells")
    proof.write_text(json.dumps(data))
    # -I -S: no site packages, no current folder, so nothing but the standard library is there.
    command = [sys.executable, "-I", "-S", str(copy), str(proof)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == check.PROVED, done
    assert done.stdout.startswith("PROVED")
    data["claim"]["upper"] -= 0.01
    proof.write_text(json.dumps(signed(data)))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == check.NOT_PROVED
    assert "upper end" in done.stdout
    proof.write_text(json.dumps({**data, "kind": "capacity"}))
    assert subprocess.run(command, capture_output=True, check=False).returncode == check.UNUSABLE
    proof.write_text(json.dumps(signed({**data, "kind": "release-distortion"})))
    assert subprocess.run(command, capture_output=True, check=False).returncode == check.UNKNOWN


def test_a_bundle_is_as_good_as_its_worst_member():
    good = made("capacity")
    bad = json.loads(json.dumps(good))
    bad["claim"]["upper"] = bad["claim"]["lower"] - 0.01
    bad = signed(bad)
    unknown = signed({**good, "kind": "min-information"})

    def bundle(*members):
        return {"format": "cvxleak-certificates", "version": 1, "certificates": list(members)}

    assert code(bundle(good, good)) == check.PROVED
    assert code(bundle(good, unknown)) == check.UNKNOWN
    assert code(bundle(unknown, bad, good)) == check.NOT_PROVED
    assert code(bundle(good, {})) == check.UNUSABLE
    assert code(bundle()) == check.UNUSABLE
    assert code(bundle(bundle(good))) != check.PROVED


def test_what_it_does_not_know_it_refuses_by_name():
    mechanism = Mechanism(count(3), random_rounding(3, 3))
    known = RelativeEntropyBall(0.2, [0.125] * 8)
    data = record_leakage(mechanism, 1.0, adversaries=known, tol=5e-2).certificate
    assert data is not None
    (verdict,) = check.check_text(json.dumps(data.to_dict()))
    assert verdict.code == check.UNKNOWN
    assert "adversaries" in verdict.text
    entry = made("cells")
    entry["proof"]["groups"][0]["slabs"] = {}
    (verdict,) = check.check_text(json.dumps(signed(entry)))
    assert verdict.code == check.UNKNOWN
    assert "slabs" in verdict.text


@pytest.mark.parametrize("option", [[], ["--second"]])
def test_verify_second_reports_both(tmp_path, option):
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(made("choices")))
    done = CliRunner().invoke(app, ["verify", *option, str(path)])
    assert done.exit_code == 0
    assert ("second checker: PROVED" in done.output) == bool(option)


def test_verify_second_calls_a_disagreement_an_error(tmp_path, monkeypatch):
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(made("choices")))
    wrong = check.Verdict(check.NOT_PROVED, "record-leakage", "something is missing")
    monkeypatch.setattr(check, "check_file", lambda _: [wrong])
    done = CliRunner().invoke(app, ["verify", "--second", str(path)])
    assert done.exit_code == 1
    assert "disagree" in done.output


def test_nothing_imports_it_unasked():
    assert "check" not in cvxleak.__all__
