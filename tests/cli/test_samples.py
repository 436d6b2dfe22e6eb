"""Reports on draws, from Python and from the command line."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from cvxleak.core import ValidationError
from cvxleak.core.wording import rounded
from cvxleak.model import KnownMarginals
from cvxleak.proofs import verify
from cvxleak.queries import count
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
    assert "1000 draws of 2 secrets, sorted into 3 columns chosen by 100 of them" in found.stdout
    assert "With 90 % confidence" in found.stdout
    document = json.loads((tmp_path / "a.json").read_text())
    assert (document["spec"], document["audited"]["confidence"]) == ("answers.csv", 0.9)
    assert verify(tmp_path / "proof.json").passed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--secret", "who"], "--secret: needs --samples, which is missing"),
        (["--delta", "0.1"], "--delta: needs --samples, which is missing"),
        (["nowhere.toml", "--samples", "{}"], "nowhere.toml: No such file"),
        (["{}", "--samples", "{}"], "not a TOML file"),
        (["--samples", "{}", "--delta", "2", "--confidence", "0.9"], "--delta: found 2.0"),
        (["--samples", "{}", "--html", "a.html"], "--html: cannot be combined with --samples"),
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


def test_a_spec_says_whose_the_secrets_are(run: Run, write: Callable[..., Path], tmp_path: Path):
    """As from Python: the query's values, floors, and a class of adversaries."""
    counts = tmp_path / "counts.csv"
    draws = {(0, 0): 450, (0, 1): 50, (1, 0): 250, (1, 1): 250, (2, 0): 50, (2, 1): 450}
    rows = {"x": [x for (x, _), n in draws.items() for _ in range(n)]}
    rows["y"] = [y for (_, y), n in draws.items() for _ in range(n)]
    lines = [f"{x},{y}" for x, y in zip(rows["x"], rows["y"], strict=True)]
    counts.write_text("\n".join(["x,y", *lines]))
    spec = write(
        '[query]\nkind = "count"\nrecords = 2\n[adversary]\nentropy_floors = ["50%"]',
        'kind = "marginals"\nlaw = [0.8, 0.2]',
    )
    found = run(
        *("audit", spec, "--samples", counts, "--delta", "0", "0.1", "--tol", "1e-2"),
        *("--json", tmp_path / "a.json", "--certificate", tmp_path / "proof.json"),
    )
    assert found.exit_code == 0
    assert verify(tmp_path / "proof.json").passed
    document = json.loads((tmp_path / "a.json").read_text())
    assert document["spec"] == "spec.toml"
    assert list(document["files_sha256"]) == ["counts.csv"]
    free, half, *epsilons = document["quantities"]
    assert [q["entropy_floor"] for q in (free, half)] == [0, pytest.approx(math.log(2))]
    assert "one person's record" in half["meaning"]
    assert "records have their known distributions" in half["meaning"]
    known = KnownMarginals([0.8, 0.2])
    audit = audit_samples(
        rows, query=count(2), entropy_floor=math.log(2), adversaries=known, tol=1e-2
    )
    assert (half["lower"], half["upper"]) == pytest.approx((audit.lower, audit.upper), abs=1e-6)
    loose = audit_samples(rows, query=count(2), entropy_floor=math.log(2), tol=1e-2)
    assert audit.upper < loose.upper
    # Neighbors differ by one; 0 and 2, which differ most, are none.
    assert {q["name"] for q in epsilons} == {"record DP epsilon"}
    assert [q["delta"] for q in epsilons] == [0, 0.1]
    assert epsilons[0]["lower"] == pytest.approx(audit.violation().epsilon, abs=1e-6)
    assert epsilons[0]["lower"] < audit.violation(pairs=[(0, 2)]).epsilon
    assert "confidence: every epsilon below " in epsilons[0]["meaning"]
    approximate = audit.violation(0.1)
    assert epsilons[1]["meaning"].endswith(
        "(epsilon, delta)-DP with delta 0.1: every epsilon below "
        f"{rounded(approximate.epsilon)} nats is ruled out, because {approximate.why}."
    )
    assert "record DP epsilon, delta 0.1  " in found.stdout
    other = write('[query]\nkind = "count"\nrecords = 2\n[adversary]\nkind = "independent"')
    refused = run("audit", other, "--samples", counts)
    assert refused.exit_code == 2
    assert 'adversary.kind: found "independent"' in refused.stderr
    assert run("audit", other, "--samples", counts, "--json", other).exit_code == 2
    missing = run("audit", write('[mechanism]\nkind = "identity"'), "--samples", counts)
    assert "audit --samples needs [query] or [space]" in missing.stderr


def test_bad_floors():
    with pytest.raises(ValidationError, match="entropy_floor: found -1"):
        samples_report(ANSWERS, entropy_floors=[-1])
