import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cvxleak.cli.app import app
from cvxleak.desk import ReleaseDesk

SPEC = """
[prior]
counts = { well = 70, ill = 30 }
[desk]
epsilon = 0.1
delta = 0.15
"""


@pytest.fixture
def ledger(tmp_path, run, write):
    path = tmp_path / "ledger.db"
    result = run("desk", "init", path, write(SPEC, "unit = 'nats'"))
    assert result.exit_code == 0, result.output
    assert "new ledger, 2 values, mode ex_ante" in result.output
    return path


def ask(ledger, *options, data="ill\n"):
    arguments = ["desk", "request", str(ledger), "--party", "hospital", *map(str, options)]
    return CliRunner().invoke(app, arguments, input=data)


def test_a_request_is_answered_and_recorded(ledger, run):
    result = ask(ledger)
    assert result.exit_code == 0, result.output
    (release,) = ReleaseDesk(ledger).releases()
    assert run("desk", "verify", ledger).output == "PASS  1 release; it met its budgets\n"
    assert f"release 1 to hospital: {release.output}" in result.output
    again = ask(ledger, "--json", "-")
    body = json.loads(again.stdout)
    assert body["command"] == "desk request"
    assert (body["number"], body["output"], body["copy_of"]) == (2, release.output, 1)
    assert body["expected_distortion"]["lower"] <= body["expected_distortion"]["upper"]
    assert run("desk", "verify", ledger).output == "PASS  2 releases; each met its budgets\n"


def test_the_report_is_in_the_units_asked_for(ledger, run, tmp_path):
    ask(ledger)
    result = run("desk", "report", ledger, "--units", "bits", "--json", tmp_path / "report.json")
    assert "hospital: at most 0.144" in result.output
    assert "bits (budget 0.14427)" in result.output
    body = json.loads((tmp_path / "report.json").read_text())
    assert body["unit"] == "bits"
    assert body["exposures"][0]["parties"] == ["hospital"]
    assert body["exposures"][-1]["parties"] is None


def test_questions_and_costs_from_files(ledger, tmp_path):
    question, cost = tmp_path / "question.csv", tmp_path / "cost.csv"
    question.write_text(",yes,no\nwell,0.1,0.9\nill,0.8,0.2\n")
    cost.write_text(",yes,no\nyes,0,1\nno,2,0\n")
    assert ask(ledger, "--request", question, "--distortion", cost).exit_code == 0
    assert ReleaseDesk(ledger).releases()[0].output in {"yes", "no"}


def test_what_was_released_can_be_listed(ledger, run):
    assert run("desk", "releases", ledger).output == "no releases so far\n"
    ask(ledger)
    (release,) = ReleaseDesk(ledger).releases()
    assert run("desk", "releases", ledger).output == f"1  hospital: {release.output}\n"
    body = json.loads(run("desk", "releases", ledger, "--json", "-").stdout)
    assert body["releases"][0]["output"] == release.output


def test_an_answer_that_cannot_be_written_is_recorded_and_says_so(ledger, monkeypatch):
    from cvxleak.cli.commands import desk
    from cvxleak.core.errors import ValidationError

    def full(*_):
        raise ValidationError("path: cannot write: no space left")

    monkeypatch.setattr(desk, "write_document", full)
    result = ask(ledger)
    assert result.exit_code == 2
    assert "release 1 is recorded; cvxleak desk releases" in result.stderr
    assert len(ReleaseDesk(ledger).releases()) == 1


def test_a_head_from_a_report(ledger, run):
    ask(ledger)
    head = run("desk", "report", ledger).output.splitlines()[-1].removeprefix("head: ")
    assert head == ReleaseDesk(ledger).head
    assert run("desk", "verify", ledger, "--head", head).exit_code == 0
    result = run("desk", "verify", ledger, "--head", "0" * 64)
    assert result.exit_code == 1
    assert "not there any more" in result.output


@pytest.mark.parametrize(
    ("options", "data", "found"),
    [
        ([], "somebody\n", "x: not one of the model's values"),
        ([], "", "x: standard input is empty"),
        (["--epsilon", 0.2], "ill\n", "epsilon: found 0.2 nats; the ledger allows at most 0.1"),
        (["--epsilon", -1], "ill\n", "epsilon: found -1"),
        (["--delta", 0.01], "ill\n", "epsilon"),
        (["--request", "missing.csv"], "ill\n", "--request: cannot read"),
        (["--json", "/nowhere/at/all.json"], "ill\n", "--json: there is no folder"),
    ],
)
def test_what_is_refused_leaves_the_ledger_as_it_was(ledger, options, data, found):
    ask(ledger, "--delta", 0.1)
    before = ledger.read_bytes()
    result = ask(ledger, *options, data=data)
    if options == ["--delta", 0.01]:
        found = "delta: found 0.01, below 0.1 of an earlier request"
    assert result.exit_code == 2
    assert result.stderr.startswith("cvxleak: ")
    assert found in result.stderr
    assert "somebody" not in result.output
    assert ledger.read_bytes() == before


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ("[prior]\ncounts = { a = 1, b = 2 }", "desk init needs [desk]"),
        ("[desk]\nepsilon = 0.1\ndelta = 0.1", "desk init needs [prior]"),
        (SPEC.replace("0.15", "0.05"), "desk.epsilon: found 0.1"),
        (SPEC + "mode = 'both'", "desk.mode"),
        (SPEC + "[[desk.coalitions]]\nparties = ['a']\nbudget = 0.1", "desk.coalitions[0].parties"),
        (SPEC.replace("70", "-1"), "prior"),
    ],
)
def test_bad_specs_make_no_ledger(tmp_path, run, write, spec, found):
    result = run("desk", "init", tmp_path / "ledger.db", write(spec))
    assert result.exit_code == 2
    assert found in result.stderr
    assert not (tmp_path / "ledger.db").exists()


def test_files_that_are_no_ledger(tmp_path, run, write):
    spec = write(SPEC)
    for command in ("report", "verify"):
        result = run("desk", command, spec)
        assert result.exit_code == 2
        assert "not a ledger" in result.stderr
    result = run("desk", "init", spec, spec)
    assert result.exit_code == 2
    assert "exists already; a new ledger needs" in result.stderr
    assert SPEC in spec.read_text()


def test_a_changed_ledger_fails(ledger, run):
    import sqlite3

    ask(ledger)
    connection = sqlite3.connect(ledger)
    connection.execute("UPDATE release SET content = replace(content, '0.1', '0.2')")
    connection.commit()
    connection.close()
    result = run("desk", "verify", ledger)
    assert result.exit_code == 1
    assert result.output.startswith("FAIL  release 1 was changed after it was recorded")


def test_the_shipped_example(tmp_path, run):
    example = Path(__file__).parents[2] / "examples" / "desk.toml"
    path = tmp_path / "ledger.db"
    assert run("desk", "init", path, example, "--units", "bits").exit_code == 0
    assert ask(path).exit_code == 0
    assert "hospital: at most 0.09999" in run("desk", "report", path).output


def test_budgets_in_bits_are_complained_about_in_nats(tmp_path, run):
    example = Path(__file__).parents[2] / "examples" / "desk.toml"
    path = tmp_path / "ledger.db"
    run("desk", "init", path, example)
    for unit, told in (("bits", True), ("nats", False)):
        result = ask(path, "--epsilon", "99", "--units", unit)
        assert result.exit_code == 2
        assert "the ledger allows at most" in result.output
        assert ("(1 bit = 0.693147 nats)" in result.output) is told
