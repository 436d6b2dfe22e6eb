"""Reports on draws, from Python and from the command line."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from cvxleak.core import ValidationError
from cvxleak.proofs import verify
from cvxleak.report import Progress, samples_report
from cvxleak.samples import audit_samples

Run = Callable[..., Result]

ANSWERS = {"x": ["a"] * 500 + ["b"] * 500, "y": [0] * 450 + [1] * 500 + [0] * 50}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    lines = [f"{x},{y}" for x, y in zip(ANSWERS["x"], ANSWERS["y"], strict=True)]
    file = tmp_path / "answers.csv"
    file.write_text("\n".join(["who,what", *lines]) + "\n")
    return file


def test_a_report_says_what_the_audit_does():
    report = samples_report(ANSWERS, entropy_floors=[0.5], unit="bits", time_limit=0.3)
    leakage, capacity, epsilon = report.quantities
    audit = audit_samples(ANSWERS)
    assert (leakage.name, leakage.entropy_floor) == ("record leakage", 0.5)
    assert leakage.upper <= capacity.upper
    assert capacity.lower == pytest.approx(audit.lower / math.log(2))
    assert capacity.upper == pytest.approx(audit.upper / math.log(2))
    assert epsilon.lower == pytest.approx(audit.violation().epsilon / math.log(2))
    assert epsilon.upper == math.inf
    assert all("With 95 % confidence" in q.meaning for q in report.quantities)
    assert report.facts["draws"] == 1000
    assert all(verify(proof).passed for proof in report.certificates())


def test_ctrl_c_ends_the_search_and_not_the_report():
    class Pressed(Progress):
        reports_interrupts = True

        def update(self, lower: float, upper: float, nodes: int) -> None:
            raise KeyboardInterrupt

    report = samples_report(ANSWERS, entropy_floors=[0.5], progress=Pressed())
    assert report.interrupted
    assert [q.name for q in report.quantities][:2] == ["record leakage", "capacity"]


def test_the_command(run: Run, path: Path, tmp_path: Path):
    found = run(
        *("audit", "--samples", path, "--secret", "who", "--output", "what"),
        *("--confidence", "0.9", "--json", tmp_path / "a.json"),
        *("--certificate", tmp_path / "proof.json"),
    )
    assert found.exit_code == 0
    assert "1000 draws of 2 secrets, sorted into 3 columns, which 100 of them chose" in found.stdout
    assert "With 90 % confidence" in found.stdout
    document = json.loads((tmp_path / "a.json").read_text())
    assert (document["spec"], document["audited"]["confidence"]) == ("answers.csv", 0.9)
    assert verify(tmp_path / "proof.json").passed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--secret", "who"], "--secret: is for --samples, which is missing"),
        (["SPEC", "--samples", "{}"], "SPEC: does not go together with --samples"),
        (["--samples", "{}", "--html", "a.html"], "--html: does not go together with --samples"),
        (["--samples", "{}"], "--secret: found 'x'; one of the columns ['who', 'what']"),
        (["--samples", "{}", "--secret", "who"], "--output: found 'y'"),
        (["--samples", "{}", "--confidence", "1"], "--confidence: found 1.0; it must be in (0, 1)"),
        (["--samples", "nowhere.csv"], "nowhere.csv"),
        (["--samples", "{}", "--json", "{}"], "--json: {} is taken"),
    ],
)
def test_wrong_usage_is_one_message(run: Run, path: Path, arguments: list[str], words: str):
    if "--confidence" in arguments:
        arguments = [*arguments, "--secret", "who", "--output", "what"]
    found = run("audit", *(argument.format(path) for argument in arguments))
    assert found.exit_code == 2
    assert words.format(path) in found.stderr
    assert len(found.stderr.splitlines()) == 1
    assert found.stdout == ""


def test_bad_floors():
    with pytest.raises(ValidationError, match="entropy_floor: found -1"):
        samples_report(ANSWERS, entropy_floors=[-1])
