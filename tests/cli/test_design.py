"""`cvxleak design`: table, JSON, channel, certificate, and what is wrong with what is given."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from cvxleak.model import Channel

EXAMPLE = Path(__file__).parents[2] / "examples" / "household.toml"
PARITY = '[query]\nkind = "parity"\nrecords = 3\n'
COST = '[distortion]\nkind = "hamming"\n'
DESIGN = '[design]\nminimize = "leakage"\nbudget = 0.1\nentropy_floor = 1.5\nunit = "nats"\n'
BIT = '[query]\nkind = "parity"\nrecords = 1\n'
FREE = '[design]\nminimize = "leakage"\nbudget = 0.1\nentropy_floor = 0\n'

Run = Callable[..., Result]
Write = Callable[..., Path]


def document(result: Result) -> dict:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def named(found: dict, name: str) -> dict:
    (quantity,) = [q for q in found["quantities"] if q["name"] == name]
    return quantity


def test_the_shipped_example(run: Run, tmp_path: Path, write: Write):
    table = tmp_path / "noise.csv"
    result = run("design", EXAMPLE, "--tol", 0.02, "--json", "-", "--channel", table)
    found = document(result)
    least = named(found, "least distortion")
    assert least["status"] == "CERTIFIED"
    assert least["lower"] <= 0.5932
    assert least["upper"] >= 0.5898
    assert named(found, "leakage of the design")["upper"] <= 0.1
    # What it wrote is a mechanism, and leaks what it says.
    audited = run(
        "audit",
        write(
            '[query]\nkind = "count"\nrecords = 4\n'
            '[mechanism]\nkind = "matrix"\nfile = "noise.csv"\n'
            '[adversary]\nunit = "nats"\nentropy_floors = [1.5]\n[distortion]\nkind = "absolute"\n'
        ),
        "--json",
        "-",
    )
    again = [q for q in document(audited)["quantities"] if q.get("entropy_floor") == 1.5]
    assert again[0]["lower"] <= 0.1
    cost = named(document(audited), "expected distortion")["upper"]
    assert cost == pytest.approx(named(found, "distortion of the design")["upper"])


def test_the_table(run: Run, write: Write):
    result = run("design", write('title = "Parity"', PARITY, COST, DESIGN))
    assert result.exit_code == 0
    assert "cvxleak:" not in result.stderr  # how far a search is may be there
    text = " ".join(result.stdout.split())
    assert text.startswith(
        "Parity 3 records -> parity (2 values) -> channel of 2 rows and 2 outputs Least leakage, "
        "distortion at most 0.1; leakage about the worst record, to adversaries with at least 1.5 "
        "nats of uncertainty Binding constraints: distortion, leakage about record 0"
    )
    assert "least leakage 0.327" in text
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_json_channel_and_certificate(run: Run, write: Write, tmp_path: Path):
    table, data, proof = (tmp_path / name for name in ("c.csv", "c.json", "proof.json"))
    files = ["--channel", table, "--channel", data, "--certificate", proof]
    found = document(run("design", write(PARITY, COST, DESIGN), "--json", "-", *files))
    assert found["command"] == "design"
    assert list(found)[-5:] == ["units", "interrupted", "audited", "quantities", "channel"]
    assert list(found["audited"]) == [
        "records",
        "query_values",
        "rows",
        "outputs",
        "minimize",
        "budget",
        "entropy_floor",
        "objective",
        "group_size",
        "binding",
        "rounds",
        "stopped",
    ]
    assert [q["name"] for q in found["quantities"]] == [
        "least leakage",
        "leakage of the design",
        "distortion of the design",
        "price of the budget",
        "price of the floor",
    ]
    # An independent prototype found .327610 at D = .1, b = 1.5.
    least = named(found, "least leakage")
    assert least["lower"] <= 0.32761 <= least["upper"] + 1e-6
    assert Channel.from_csv(table) == Channel.from_dict(json.loads(data.read_text()))
    assert Channel.from_dict(found["channel"]) == Channel.from_csv(table)
    checked = run("verify", proof)
    assert checked.exit_code == 0
    assert checked.stdout.startswith("PASS  min-leakage, channels of the data, leakage about the")
    content = json.loads(proof.read_text())
    content["claim"]["lower"] *= 1.01
    proof.write_text(json.dumps(content))
    assert run("verify", proof).exit_code == 1


def test_units(run: Run, write: Write):
    floor = f"entropy_floor = {1.5 / math.log(2)}\n"
    nats = document(run("design", write(PARITY, COST, DESIGN), "--json", "-"))
    wanted = f'[design]\nminimize = "leakage"\nbudget = 0.1\n{floor}'
    bits = document(
        run("design", write(PARITY, COST, wanted, name="b.toml"), "--units", "bits", "--json", "-")
    )
    one, other = (named(found, "least leakage")["upper"] for found in (nats, bits))
    assert other * math.log(2) == pytest.approx(one, rel=2e-3)
    stated = document(run("design", write(PARITY, COST, DESIGN), "--units", "bits", "--json", "-"))
    assert stated["audited"]["entropy_floor"] == pytest.approx(1.5 / math.log(2))
    leak = f'[design]\nminimize = "distortion"\nbudget = {one / math.log(2)}\n{floor}'
    back = document(
        run("design", write(PARITY, COST, leak, name="l.toml"), "--units", "bits", "--json", "-")
    )
    assert named(back, "least distortion")["upper"] == pytest.approx(0.1, abs=2e-3)


def test_laws_and_outputs(run: Run, write: Write):
    law = FREE.replace("0.1", "0.05") + "sources = [[0.9, 0.1]]\n"
    skewed = document(run("design", write(BIT, COST, law), "--json", "-"))
    even = document(run("design", write(BIT, COST, FREE.replace("0.1", "0.05")), "--json", "-"))
    assert named(skewed, "least leakage")["upper"] < named(even, "least leakage")["lower"]
    space = '[space]\nalphabets = [["x", "y"]]\n[prior]\ncounts = { y = 1, x = 9 }\n'
    local = document(run("design", write(space, COST, FREE.replace("0.1", "0.05")), "--json", "-"))
    assert named(local, "least leakage")["upper"] == pytest.approx(
        named(skewed, "least leakage")["upper"], rel=1e-2
    )
    outputs = FREE + "outputs = [0, 1, 2]\n"
    wide = document(run("design", write(BIT, COST, outputs), "--json", "-"))
    assert wide["channel"]["outputs"] == [0, 1, 2]
    known = FREE.replace("entropy_floor = 0\n", "priors = [[0.5, 0.5]]\n")
    prior = document(run("design", write(BIT, COST, known), "--json", "-"))
    assert [q["name"] for q in prior["quantities"]][-1] == "price of the budget"


def test_a_cost_of_ones_own(run: Run, write: Write, tmp_path: Path):
    (tmp_path / "cost.csv").write_text(",lo,hi,skip\n0,0,1,0.3\n1,1,0,0.3\n")
    cost = '[distortion]\nkind = "matrix"\nfile = "cost.csv"\n'
    found = document(run("design", write(BIT, cost, FREE), "--json", "-"))
    assert found["channel"]["outputs"] == ["lo", "hi", "skip"]
    assert list(found["files_sha256"]) == ["cost.csv"]
    some = document(run("design", write(BIT, cost, FREE + 'outputs = ["hi", "lo"]'), "--json", "-"))
    assert some["channel"]["outputs"] == ["hi", "lo"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (PARITY + COST, "design needs [design]"),
        (PARITY + DESIGN, "design needs [distortion]"),
        (COST + DESIGN, "design needs [query] or [space]"),
        (PARITY + COST + DESIGN.replace('"leakage"', '"noise"'), "design.minimize: found 'noise'"),
        (PARITY + COST + DESIGN.replace("0.1", "-1"), "design.budget: found -1"),
        (PARITY + COST + DESIGN.replace("1.5", "9"), "design.entropy_floor: found 9"),
        (
            PARITY + COST + DESIGN.replace("entropy_floor = 1.5\n", ""),
            "design: entropy_floor: exactly one of entropy_floor",
        ),
        (PARITY + COST + DESIGN + "size = 9\nobjective = 'group'", "design.size: found 9"),
        (PARITY + COST + DESIGN + "sources = [[1, 1]]", "design.sources[0]: sums to 2"),
        (PARITY + COST + DESIGN + "outputs = []", "design.outputs: the list must not be empty"),
        (
            PARITY + '[distortion]\nkind = "matrix"\nfile = "dear.csv"\n' + DESIGN,
            "design.budget: found 0.1",
        ),
    ],
)
def test_errors_are_one_message(
    run: Run, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dear.csv").write_text("1,2\n2,1\n")
    write(content)
    result = run("design", "spec.toml", "--channel", "c.csv")
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith(f"cvxleak: spec.toml: {message}"), result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not (tmp_path / "c.csv").exists()
