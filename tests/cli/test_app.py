"""The commands as a user meets them: tables, JSON, certificates, exit codes, Ctrl-C."""

import hashlib
import json
import math
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.main import get_command
from typer.testing import Result

from cvxleak import __version__
from cvxleak.audit import product_leakage, record_leakage
from cvxleak.capacities import capacity
from cvxleak.cli.app import app
from cvxleak.local_dp import min_local_dp
from cvxleak.mechanisms import random_rounding
from cvxleak.model import (
    Expectation,
    Guess,
    Knowledge,
    KnownMarginals,
    Mechanism,
    RelativeEntropyBall,
)
from cvxleak.proofs import Certificate, read_certificates, verify
from cvxleak.queries import count
from cvxleak.report import names as quantity_names

ROOT = Path(__file__).parents[2]

Run = Callable[..., Result]
Write = Callable[..., Path]

COUNT = '[query]\nkind = "count"\nrecords = 6\n'
ROUNDING = '[mechanism]\nkind = "random_rounding"\nbase = 3\n'
FLOORS = '[adversary]\nunit = "nats"\nentropy_floors = [0, 3.9]\n'
LOCAL = (
    '[space]\nalphabets = [["x", "y"]]\n[mechanism]\nkind = "binary_symmetric"\nflip = 0.25\n'
    "[prior]\ncounts = { x = 1, y = 3 }\nsource = 'Made up'\n"
    '[distortion]\nkind = "hamming"\n'
)
# A search that takes far longer than any test.
LONG = (
    '[query]\nkind = "count"\nrecords = 30\n[mechanism]\nkind = "truncated_geometric"\n'
    "epsilon = 0.1\n[adversary]\nentropy_floors = [15]\nunit = 'nats'\n"
)


COMMANDS = ("audit", "envelope", "design", "local-dp", "sweep", "capacity", "verify", "desk")


def quantities(result: Result) -> dict[tuple[str, float | None], dict]:
    document = json.loads(result.stdout)
    return {(q["name"], q.get("entropy_floor")): q for q in document["quantities"]}


def cvxleak(*arguments: object, blocked: tuple[str, ...] = (), **options) -> subprocess.Popen:
    """Start the command line in a process of its own, where `blocked` cannot be imported."""
    code = "import sys\n" + "".join(f"sys.modules[{name!r}] = None\n" for name in blocked)
    code += "from cvxleak.cli import main\nmain()\n"
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    command = [sys.executable, "-P", "-W", "error", "-c", code, *map(str, arguments)]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, **options
    )


def test_python_m_is_the_same_program():
    command = [sys.executable, "-m", "cvxleak", "--version"]
    answer = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert answer.stdout == f"cvxleak {__version__}\n"
    wrong = subprocess.run([*command[:3], "nothing"], capture_output=True, text=True, cwd=ROOT)
    assert wrong.returncode == 2
    assert "cvxleak nothing" not in wrong.stdout
    assert "__main__" not in wrong.stderr


def test_version(run: Run):
    result = run("--version")
    assert (result.exit_code, result.stdout) == (0, f"cvxleak {__version__}\n")


def test_help_names_every_command(run: Run):
    result = run("--help")
    assert result.exit_code == 0
    assert all(f"\n  {command} " in result.stdout for command in COMMANDS)


def commands_of(command: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield every command that has a --help of its own, after the words that call it."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands_of(inner, *path, name)


COMMAND_TREE = list(commands_of(get_command(app)))
OPTIONS = [
    pytest.param((*words, option.opts[0]), id=" ".join((*words, option.opts[0])))
    for words, command in COMMAND_TREE
    for option in command.params
    if words and option.param_type_name == "option" and not option.is_flag
]
WORDS = {
    "--units": "nats or bits",
    "--missing": "refuse or ",
    "--jobs": "a whole number",
    "--known-people": "a whole number",
    "--seed": "a whole number",
}
NUMBERS = {
    "--tol",
    "--time-limit",
    "--work-limit",
    "--confidence",
    "--entropy-floor",
    "--epsilon",
    "--delta",
}


@pytest.mark.parametrize("words", OPTIONS)
def test_an_option_with_a_wrong_value_says_what_was_found_and_what_is_needed(
    run: Run, monkeypatch, tmp_path: Path, words: tuple[str, ...]
):
    monkeypatch.chdir(tmp_path)
    answer = run(*words, "nonsense")
    assert answer.exit_code == 2
    assert "Value error" not in answer.output
    assert "Input should be" not in answer.output
    option = words[-1]
    if option in WORDS.keys() | NUMBERS:
        needed = WORDS.get(option, "a number")
        said = f"Error: Invalid value for '{option}': found 'nonsense'; {needed}"
        assert said in answer.output
        assert answer.output.endswith(" is needed.\n")
    else:
        assert f"for '{option}'" not in answer.output


@pytest.mark.parametrize("words", [words for words, _ in COMMAND_TREE])
def test_help_has_neither_types_nor_cut_summaries(run: Run, words: tuple[str, ...]):
    told = run(*words, "--help").stdout
    assert told.startswith("Usage: ")
    assert "<" not in told
    assert not re.search(r"\.\.\.$", told.partition("\n")[2], re.MULTILINE)


def test_help_loads_nothing_heavy():
    """One process asks every command: none of them could load what is blocked in it."""
    code = "\n".join(
        [
            "import json, sys",
            "for name in 'cvxpy flint matplotlib numpy pandas pydantic scipy'.split():",
            "    sys.modules[name] = None",
            "from cvxleak.cli import main",
            "for words in json.loads(sys.argv[1]):",
            "    sys.argv = [*words, '--help']",
            "    try:",
            "        main()",
            "    except SystemExit as end:",
            "        print('ended', end.code, *words)",
        ]
    )
    commands = [("cvxleak", *words) for words, _ in COMMAND_TREE]
    command = [sys.executable, "-P", "-W", "error", "-c", code, json.dumps(commands)]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (run.returncode, run.stderr) == (0, "")
    assert len(commands) > len(COMMANDS)
    for words in commands:
        name = " ".join(words)
        assert f"Usage: {name} [OPTIONS]" in run.stdout
        assert f"\nended 0 {name}\n" in run.stdout


def test_audit_prints_a_table(run: Run, write: Write):
    result = run("audit", write('title = "Rounded"', COUNT, ROUNDING, FLOORS))
    assert result.exit_code == 0
    assert "cvxleak:" not in result.stderr  # how far a search is may be there
    text = " ".join(result.stdout.split())
    assert text.startswith(
        "Rounded 6 records of 2 values -> count (7 values) -> random_rounding (3 outputs)"
    )
    assert "0 nats of uncertainty: Discloses one person's record completely" in text
    assert "3.9 nats of uncertainty: Tells part of one person's record" in text
    assert "the most by which the output raises that chance" in text
    assert "Not differentially private" in text
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_json_keys_are_pinned(run: Run, write: Write):
    path = write(COUNT, ROUNDING, FLOORS)
    result = run("audit", path, "--json", "-")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert list(document) == [
        "format",
        "version",
        "cvxleak",
        "command",
        "spec",
        "spec_sha256",
        "files_sha256",
        "units",
        "interrupted",
        "audited",
        "quantities",
    ]
    assert document["format"] == "cvxleak-report"
    assert document["version"] == 1
    assert document["command"] == "audit"
    assert document["spec"] == "spec.toml"
    assert len(document["spec_sha256"]) == 64
    assert list(document["audited"]) == ["records", "query_values", "outputs", "max_entropy"]
    for quantity in document["quantities"]:
        keys = set(quantity)
        needed = {"name", "lower", "upper", "unit", "status", "record", "seconds", "meaning"}
        assert needed <= keys <= needed | {"entropy_floor", "outcome"}
        assert quantity["status"] in {"CERTIFIED", "BRACKETED", "COMPUTED", "BOUND"}
        assert quantity["meaning"].endswith(".")
    assert [q["name"] for q in document["quantities"]] == [
        "record leakage",
        "guess before",
        "guess after",
        "guess chance",
        "guess rise",
        "record leakage",
        "guess before",
        "guess after",
        "guess chance",
        "guess rise",
        "balance",
        "capacity",
        "maximal leakage",
        "record DP epsilon",
        "local DP epsilon",
    ]


def test_documented_names_are_the_real_ones(run: Run, write: Write):
    text = (ROOT / "docs" / "cli.md").read_text()
    group = "[audit]\ngroup_sizes = [1, 2]\nepsilons = [1]\ngain = 'gini'\n"
    local = write(LOCAL, "[audit]\noutputs = ['x']\n")
    names = {name for name, _ in quantities(run("audit", local, "--json", "-"))}
    spec = write(COUNT, ROUNDING, FLOORS, group, name="group.toml")
    short = run("audit", spec, "--time-limit", "0", "--json", "-")
    names |= {name for name, _ in quantities(short)}
    names |= {name for name, _ in quantities(run("explain", write(LOCAL), "--json", "-"))}
    alone = write(COUNT, ROUNDING, f"{FLOORS}{INDEPENDENT}", name="independent.toml")
    short = run("audit", alone, "--time-limit", "0", "--json", "-")
    names |= {name for name, _ in quantities(short)}
    short = run("explain", alone, "--time-limit", "0", "--json", "-")
    names |= {name for name, _ in quantities(short)}
    levels = ["--delta", 0.1, "--epsilon", 0.2]
    names |= {name for name, _ in quantities(run("envelope", write(LOCAL), *levels, "--json", "-"))}
    cost = '[distortion]\nkind = "hamming"\n[design]\nentropy_floor = 0\nbudget = 0.1\nminimize = '
    for wanted in ("leakage", "distortion"):
        path = write('[query]\nkind = "count"\nrecords = 1\n', f'{cost}"{wanted}"', name="d.toml")
        names |= {name for name, _ in quantities(run("design", path, "--json", "-"))}
    sources = '[sources]\nkind = "laws"\nlaws = [[0.5, 0.5]]\n[local_dp]\n'
    for wanted in ("epsilon = 1.0\n", "distortion_budget = 0.1\n"):
        result = run("local-dp", write(sources, wanted, name="sources.toml"), "--json", "-")
        names |= {name for name, _ in quantities(result)}
    spec = "[table]\ncounts = 'counts.csv'\npublished = 'counts.csv'\n"
    path = write(spec, ROUNDING, name="t.toml")
    (path.parent / "counts.csv").write_text("x,count\na,3\nb,6\ntotal,9\n")
    names |= {name for name, _ in quantities(run("audit", path, "--json", "-"))}
    # Every name is in use, and every one is documented.
    others = {
        quantity_names.COMPUTED,
        quantity_names.BOUND,
        quantity_names.PROBABILITY,
        quantity_names.DISTORTION,
        quantity_names.FACTOR,
        quantity_names.COUNT,
    }
    known = {text for key, text in vars(quantity_names).items() if key.isupper()} - others
    assert names == known
    for name in known:
        assert f"`{name}`" in text, name


def test_local_mechanism(run: Run, write: Write):
    result = run("audit", write(LOCAL), "--json", "-")
    found = quantities(result)
    capacity = math.log(2) + 0.25 * math.log(0.25) + 0.75 * math.log(0.75)
    assert found["record leakage", 0.0]["lower"] == pytest.approx(capacity)
    assert found["capacity", None]["upper"] == pytest.approx(capacity)
    assert found["local DP epsilon", None]["upper"] == pytest.approx(math.log(3))
    assert found["maximal leakage", None]["upper"] == pytest.approx(math.log(1.5))
    assert found["expected distortion", None]["upper"] == pytest.approx(0.25)
    outcomes = {
        q["outcome"]: q["upper"]
        for q in json.loads(result.stdout)["quantities"]
        if q["name"] == "pointwise maximal leakage"
    }
    # p(Y = x) = 3/8 and p(Y = y) = 5/8.
    assert outcomes == pytest.approx({"x": math.log(0.75 * 8 / 3), "y": math.log(0.75 * 8 / 5)})
    table = run("audit", write(LOCAL)).stdout
    assert "Prior: Made up" in table
    assert "Pointwise maximal leakage of each output" in table


@pytest.mark.parametrize(("key", "value"), [("epsilons", "[-1]"), ("outputs", "['w']")])
def test_what_else_is_asked_is_named_by_its_key(run: Run, write: Write, key: str, value: str):
    path = write(LOCAL, f"[audit]\n{key} = {value}\n")
    result = run("audit", path)
    assert result.exit_code == 2
    assert f"{path}: audit.{key}: found " in result.stderr.replace("\n", "")


def test_many_outcomes_are_cut_short(run: Run, write: Write):
    values = [f"v{i}" for i in range(15)]
    counts = ", ".join(f"{value} = {i + 1}" for i, value in enumerate(values))
    result = run(
        "audit",
        write(
            f"[space]\nalphabets = [{values}]\n[mechanism]\nkind = 'randomized_response'\n"
            f"epsilon = 1.0\n[prior]\ncounts = {{ {counts} }}\n"
        ),
    )
    assert "3 more outputs, with lower leakage, are not shown" in result.stdout
    assert "\nv0 " in result.stdout
    assert "\nv14 " not in result.stdout


def test_floors_on_the_command_line_replace_those_of_the_spec(run: Run, write: Write):
    path = write(COUNT, ROUNDING, FLOORS)
    found = quantities(
        run("audit", path, "--entropy-floor", 3, "--entropy-floor", 2, "--json", "-")
    )
    assert [floor for name, floor in found if name == "record leakage"] == [0.0, 2.0, 3.0]


def test_numbers_may_follow_one_option(run: Run, write: Write):
    path = write(COUNT, ROUNDING, FLOORS)
    for arguments in (
        [path, "--entropy-floor", 3, 2, "--json", "-", "--tol", 0.01],
        ["--entropy-floor", 3, 2, path, "--json", "-", "--tol", 0.01],
        ["--entropy-floor", 3, "--entropy-floor", 2, "--json", "-", "--tol", 0.01, "--", path],
    ):
        found = quantities(run("audit", *arguments))
        assert [floor for name, floor in found if name == "record leakage"] == [0.0, 2.0, 3.0]
    result = run("audit", path, "--tol", 0.01, 0.02)
    assert result.exit_code == 2
    assert "unexpected extra argument" in result.stderr


def test_units_govern_inputs_and_outputs(run: Run, write: Write):
    stated = write(COUNT, ROUNDING, FLOORS)
    silent = write(COUNT, ROUNDING, FLOORS.replace('unit = "nats"\n', ""), name="silent.toml")
    nats = quantities(run("audit", stated, "--json", "-"))
    bits = quantities(run("audit", stated, "--units", "bits", "--json", "-"))
    # A floor whose unit is stated keeps its meaning.
    floor = 3.9 / math.log(2)
    assert bits["record leakage", floor]["upper"] == pytest.approx(
        nats["record leakage", 3.9]["upper"] / math.log(2), abs=1e-4
    )
    assert bits["capacity", None]["unit"] == "bits"
    # One whose unit is not stated is read in the units asked for, like --entropy-floor.
    assert ("record leakage", 3.9) in quantities(
        run("audit", silent, "--units", "bits", "--json", "-")
    )
    given = quantities(
        run("audit", silent, "--units", "bits", "--entropy-floor", floor, "--json", "-")
    )
    assert given["record leakage", floor]["upper"] == bits["record leakage", floor]["upper"]
    table = run("audit", stated, "--units", "bits").stdout
    assert "in bits" in table
    assert "nats" not in table


def test_files_are_written(run: Run, write: Write, tmp_path: Path):
    path = write(COUNT, ROUNDING, FLOORS)
    report, proof = tmp_path / "report.json", tmp_path / "proof.json"
    result = run("audit", path, "--json", report, "--certificate", proof)
    assert result.exit_code == 0
    assert "What one output tells" in result.stdout
    assert json.loads(report.read_text())["spec"] == "spec.toml"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["proof.json", "report.json", "spec.toml"]
    checked = run("verify", proof)
    assert checked.exit_code == 0
    lines = checked.stdout.splitlines()
    assert len(lines) == 9
    assert all(line.startswith("PASS") for line in lines)
    assert lines[3].startswith(
        "PASS  4 of 8: record-leakage, the worst of 6 records, "
        "adversaries with at least 3.9 nats of uncertainty: "
    )
    assert lines[-1] == "PASS  all 8 certificates pass"
    answer = verify(proof)
    assert answer.passed
    assert [f"{part.certificate.kind}" for part in answer.parts] == [
        *["record-leakage"] * 6,
        "balance",
        "capacity",
    ]


def test_time_limit_is_documented_as_it_is(run: Run):
    # The proof is inside the limit: neither text may say that it comes on top.
    text = (ROOT / "docs" / "cli.md").read_text() + run("audit", "--help").stdout
    assert "on top" not in text


def test_claims_of_the_report_are_those_of_the_proof(run: Run, write: Write, tmp_path: Path):
    proof = tmp_path / "proof.json"
    result = run("audit", write(COUNT, ROUNDING, FLOORS), "--json", "-", "--certificate", proof)
    claims = [c["ends"] for c in json.loads(proof.read_text())["certificates"]]
    found = quantities(result)
    names = ("record leakage", "guess chance", "guess rise")
    keys = [(name, floor) for floor in (0.0, 3.9) for name in names]
    keys += [("balance", 3.9), ("capacity", None)]
    for claim, key in zip(claims, keys, strict=True):
        ends = claim["lower"]["value"], claim["upper"]["value"]
        assert ends == (found[key]["lower"], found[key]["upper"])


def test_tampered_certificates_fail(run: Run, write: Write, tmp_path: Path):
    proof = tmp_path / "proof.json"
    run("audit", write(COUNT, ROUNDING, FLOORS), "--certificate", proof)
    whole = json.loads(proof.read_text())

    def answer(content: object) -> Result:
        changed = tmp_path / "changed.json"
        changed.write_text(json.dumps(content))
        return run("verify", changed)

    for change in (
        lambda c: c["ends"]["upper"].update(value=c["ends"]["upper"]["value"] * 0.99),
        lambda c: c["ends"]["lower"].update(value=c["ends"]["lower"]["value"] * 1.01),
        lambda c: c["problem"].update(entropy_floor=3.8),
        lambda c: c.update(kind="capacity"),
        lambda c: c["ends"]["upper"].pop("by"),
    ):
        content = json.loads(json.dumps(whole))
        change(content["certificates"][3])
        result = answer(content)
        assert result.exit_code == 1
        *others, last = result.stdout.splitlines()
        assert others.pop(3).startswith("FAIL  4 of 8: ")
        assert all(line.startswith("PASS") for line in others)
        assert last == "FAIL  1 of 8 certificates do not pass"
    for content in ([], {}, "x", None, {**whole, "certificates": []}, {**whole, "version": 2}):
        result = answer(content)
        assert result.exit_code == 1
        assert result.stdout.startswith("FAIL")
        assert len(result.stdout.splitlines()) == 1
    (tmp_path / "bytes.json").write_bytes(proof.read_bytes()[:50] + b"\xff")
    result = run("verify", tmp_path / "bytes.json")
    assert (result.exit_code, result.stdout[:4]) == (1, "FAIL")
    result = answer({**whole, "certificates": [3]})
    assert (result.exit_code, result.stdout[:4]) == (1, "FAIL")


def test_a_passing_certificate_with_odd_parts_is_no_traceback(run: Run, write, tmp_path: Path):
    audited, channel = tmp_path / "audited.json", tmp_path / "channel.json"
    bsc = tmp_path / "bsc.csv"
    bsc.write_text("0.9,0.1\n0.1,0.9\n")
    run("audit", write(LOCAL), "--certificate", audited)
    run("capacity", bsc, "--certificate", channel)
    leakage = Certificate.from_dict(read_certificates(audited)[0])
    capacity = Certificate.load(channel)
    for certificate in (leakage, capacity):
        for floor in ("0", 0, 10**400, [], None, {}):
            problem = {**certificate.problem, "entropy_floor": floor}
            replace(certificate, problem=problem).save(channel)
            result = run("verify", channel)
            assert isinstance(result.exception, SystemExit | None)
            assert result.stdout.startswith(("PASS", "FAIL"))
    # What a capacity does not depend on cannot slip into what it is said to be about.
    replace(capacity, problem={**capacity.problem, "entropy_floor": 3.0}).save(channel)
    assert run("verify", channel).stdout.startswith("FAIL")


def test_a_check_that_has_no_time_says_so_once(run: Run, write: Write, tmp_path: Path):
    proof = tmp_path / "proof.json"
    assert run("audit", write(COUNT + ROUNDING + FLOORS), "--certificate", proof).exit_code == 0
    answer = run("verify", proof, "--time-limit", "0")
    assert answer.exit_code == 3
    assert answer.stdout == "NOT CONFIRMED  the check did not finish within 0 s\n"


def test_verify_needs_no_cvxpy_and_no_solver(run: Run, write: Write, tmp_path: Path):
    proof = tmp_path / "proof.json"
    run("audit", write(COUNT, ROUNDING, FLOORS), "--certificate", proof)
    blocked = ("cvxpy", "clarabel", "ecos", "highspy", "scs", "pandas", "matplotlib")
    process = cvxleak("verify", proof, blocked=blocked)
    out, err = process.communicate(timeout=600)
    assert (process.returncode, err) == (0, b"")
    assert out.splitlines()[-1] == b"PASS  all 8 certificates pass"


def test_capacity(run: Run, tmp_path: Path):
    channel, proof = tmp_path / "bsc.csv", tmp_path / "proof.json"
    channel.write_text(",a,b\n0,0.9,0.1\n1,0.1,0.9\n")
    result = run("capacity", channel, "--units", "bits", "--certificate", proof)
    assert result.exit_code == 0
    assert "bsc.csv: 2 inputs, 2 outputs" in result.stdout
    assert "0.531004     0.531005  bits         certified" in result.stdout
    # A single proof is a certificate like any other.
    assert verify(proof).passed
    assert run("verify", proof).stdout.startswith(
        "PASS  capacity, a channel of 2 inputs and 2 outputs: 0.36806"
    )
    document = json.loads(run("capacity", channel, "--json", "-").stdout)
    channel.write_text("0.9,0.1,0\n0.1,0.7,0.2\n0,0.3,0.7\n")
    stopped = run("capacity", channel, "--work-limit", "0", "--time-limit", "600").stdout
    assert "limit of work was reached: --work-limit allows more work." in " ".join(stopped.split())
    assert document["command"] == "capacity"
    assert document["spec"] == "bsc.csv"
    assert [q["name"] for q in document["quantities"]] == ["capacity"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audit", "none.toml"], "none.toml: No such file or directory"),
        (["audit", "."], ".: Is a directory"),
        (["verify", "none.json"], "cannot read 'none.json': [Errno 2] No such file"),
        (["capacity", "none.csv"], "none.csv: No such file or directory"),
        (["capacity", "bad.csv"], "bad.csv: row 1 sums to 2.0; probabilities must"),
        (["capacity", "spec.toml"], "spec.toml: "),
        (
            ["audit", "spec.toml", "--entropy-floor", "5"],
            "--entropy-floor: found 5 nats; no adversary",
        ),
        (["audit", "spec.toml", "--entropy-floor", "-1"], "--entropy-floor: found -1.0; it must"),
        (["audit", "spec.toml", "--entropy-floor", "nan"], "--entropy-floor: found nan; it must"),
        (["audit", "spec.toml", "--entropy-floor", "inf"], "--entropy-floor: found inf nats; no"),
        (["audit", "spec.toml", "--tol", "1"], "--tol: found 1.0; it must be in [0, 1)"),
        (["audit", "spec.toml", "--tol", "nan"], "--tol: found nan"),
        (["audit", "spec.toml", "--time-limit", "-1"], "--time-limit: found -1.0"),
        (["audit", "spec.toml", "--time-limit", "nan"], "--time-limit: found nan"),
        (["audit", "spec.toml", "--json", "no/r.json"], "--json: there is no folder no"),
        (["audit", "spec.toml", "--certificate", "."], "--certificate: . is a folder"),
        (["audit", "spec.toml", "--certificate", "-"], "--certificate: needs the path of a file"),
        (["capacity", "good.csv", "--certificate", "-"], "--certificate: needs the path of a"),
        (["audit", "spec.toml", "--json", "spec.toml"], "--json: spec.toml is taken"),
        (["capacity", "good.csv", "--certificate", "./good.csv"], "--certificate: good.csv is"),
        (["audit", "spec.toml", "--json", "a", "--certificate", "a"], "--certificate: --json is"),
        (["capacity", "good.csv", "--tol", "-1"], "--tol: found -1.0"),
        (
            ["audit", "many.toml"],
            "many.toml: query: number of records: found 100000000; it must be",
        ),
        (
            ["audit", "large.toml"],
            "large.toml: mechanism: number of values: a matrix of 20001 x 20",
        ),
        (["capacity", "semicolons.csv"], "semicolons.csv: 'semicolons.csv' separates its cells by"),
        (
            ["audit", "floor.toml"],
            "floor.toml: adversary.entropy_floors: found 7 bits; no adversary ",
        ),
    ],
)
def test_errors_are_one_message(
    run: Run, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    write(COUNT, ROUNDING, FLOORS)
    write(COUNT, ROUNDING, '[adversary]\nunit = "bits"\nentropy_floors = [7]\n', name="floor.toml")
    (tmp_path / "bad.csv").write_text("1,0\n1,1\n")
    (tmp_path / "good.csv").write_text("1,0\n0,1\n")
    (tmp_path / "semicolons.csv").write_text("1;0\n0;1\n")
    identity = '[mechanism]\nkind = "identity"\n'
    write(f'[query]\nkind = "count"\nrecords = {10**8}\n', identity, name="many.toml")
    write('[query]\nkind = "count"\nrecords = 20000\n', identity, name="large.toml")
    before = sorted(tmp_path.iterdir())
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"cvxleak: {message}")
    assert len(result.stderr.splitlines()) == 1
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["audt"],
        ["audit"],
        ["audit", "spec.toml", "--unit", "bits"],
        ["audit", "spec.toml", "--units", "bytes"],
        ["audit", "spec.toml", "--entropy-floor", "much"],
        ["verify"],
    ],
)
def test_wrong_usage(run: Run, arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "Usage: " in result.stderr


def test_nothing_is_left_of_a_report_that_cannot_be_written(
    run: Run, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    report = tmp_path / "report.json"
    report.write_text("the old report")
    path = write(COUNT, ROUNDING)

    def full(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr("os.replace", full)
    result = run("audit", path, "--tol", 0.1, "--json", report)
    assert result.exit_code == 2
    assert "no space left on device" in result.stderr
    assert report.read_text() == "the old report"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.json", "spec.toml"]


def test_time_limit(run: Run, write: Write):
    result = run("audit", write(LONG), "--time-limit", "0.5", "--json", "-")
    assert result.exit_code == 0
    found = quantities(result)["record leakage", 15.0]
    assert found["status"] == "BRACKETED"
    assert 0 < found["lower"] < found["upper"] <= math.log(2) + 1e-15
    assert found["stopped"] == "TIME_LIMIT"
    table = run("audit", write(LONG), "--time-limit", "0.5").stdout
    assert "--time-limit gives more time." in " ".join(table.split())


def test_ctrl_c_returns_the_bracket_reached(write: Write, tmp_path: Path):
    proof = tmp_path / "proof.json"
    process = cvxleak(
        "audit", write(LONG), "--time-limit", 1000, "--json", "-", "--certificate", proof
    )
    assert process.stderr is not None
    # The first line of progress comes after a second of search.
    assert process.stderr.readline().startswith(b"leakage at entropy floor 15 nats: 0.2")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0
    assert b"Interrupted: the report follows" in err
    document = json.loads(out)
    assert document["interrupted"]
    (found,) = [
        q
        for q in document["quantities"]
        if (q["name"], q.get("entropy_floor")) == ("record leakage", 15.0)
    ]
    assert found["status"] == "BRACKETED"
    # The truth is about .2215; see the tests of the audit.
    assert found["lower"] <= 0.2216 <= found["upper"]
    assert all(verify(c).passed for c in json.loads(proof.read_text())["certificates"])


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_full_disk_is_one_message(write: Write, tmp_path: Path):
    path = write(LOCAL)
    code = "from cvxleak.cli import main; main()"
    with open("/dev/full", "w") as full:
        for arguments in ([], ["--json", "-"]):
            run = subprocess.run(
                [sys.executable, "-P", "-c", code, "audit", str(path), *arguments],
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
                env=os.environ | {"PYTHONPATH": str(ROOT)},
            )
            assert run.returncode == 2
            # On a busy machine lines on progress come before it.
            said = [line for line in run.stderr.splitlines() if line.startswith("cvxleak: ")]
            assert said == ["cvxleak: the output cannot be written: No space left on device"]


@pytest.mark.parametrize("module", ["typer", "pydantic", "numpy"])
def test_ctrl_c_while_modules_load_is_one_line(write: Write, module: str):
    """While the commands load, while the arguments are read, and in a command."""
    code = (
        "import sys\n"
        "class CtrlC:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, CtrlC())\n"
        "from cvxleak.cli import main\n"
        "main()\n"
    )
    command = [sys.executable, "-P", "-c", code, "audit", str(write(LOCAL))]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    run = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "cvxleak: stopped\n")


def test_reader_who_has_enough(write: Write):
    process = cvxleak("audit", write(LOCAL))
    assert process.stdout is not None
    process.stdout.close()
    _, err = process.communicate()
    assert b"Traceback" not in err


def test_a_page(run: Run, write: Write, tmp_path: Path):
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    title = 'title = "<b>& more</b>"'
    path = write("version = 1", title, COUNT, ROUNDING, FLOORS)
    target, proof = tmp_path / "report.html", tmp_path / "proof.json"
    result = run("audit", path, "--html", target, "--certificate", proof)
    assert result.exit_code == 0, result.output
    assert "What one output tells" in result.stdout
    page = target.read_text(encoding="utf-8")
    assert "<h1>&lt;b&gt;&amp; more&lt;/b&gt;</h1>" in page
    assert "title = &#34;&lt;b&gt;" in page  # the spec as it is
    assert "cvxleak verify proof.json" in page
    for certificate in json.loads(proof.read_text())["certificates"]:
        assert certificate["sha256"] in page
    assert hashlib.sha256(path.read_bytes()).hexdigest() in page
    assert sorted(p.name for p in tmp_path.iterdir()) == ["proof.json", "report.html", "spec.toml"]
    # JSON alone on standard output, and the page beside it.
    target.unlink()
    local = write(LOCAL)
    assert json.loads(run("audit", local, "--html", target, "--json", "-").stdout)["quantities"]
    assert target.stat().st_size > 10_000


def test_a_spec_without_floors_is_audited_at_a_few(run: Run, write: Write):
    most = 6 * math.log(2)
    path = write('[query]\nkind = "count"\nrecords = 6\n', ROUNDING)
    found = json.loads(run("audit", path, "--tol", 0.1, "--json", "-").stdout)["quantities"]
    floors = [q["entropy_floor"] for q in found if q["name"] == "record leakage"]
    np.testing.assert_allclose(floors, [0.0, 0.5 * most, 0.9 * most, 0.99 * most])
    known = '[adversary]\nkind = "marginals"\nlaw = [0.9, 0.1]\n'
    found = json.loads(
        run("audit", write(COUNT, ROUNDING, known), "--time-limit", 0, "--json", "-").stdout
    )
    assert {q.get("entropy_floor", 0.0) for q in found["quantities"]} == {0.0}


def test_completion_can_be_installed(tmp_path: Path):
    def answer(*arguments: str, **more: str) -> str:
        command = [sys.executable, "-m", "cvxleak", *arguments]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path)} | more
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
        return done.stdout

    # The shell is the one that is named, whatever program started the tests.
    answer("--install-completion", "bash", _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert (tmp_path / ".bashrc").is_file()
    asked = {"_CVXLEAK_COMPLETE": "complete_bash", "COMP_WORDS": "cvxleak aud", "COMP_CWORD": "1"}
    assert answer(**asked).split() == ["audit"]


def test_a_channel_is_no_spec(run: Run, write: Write):
    path = write(COUNT, ROUNDING)
    result = run("capacity", path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "a CSV file is needed" in result.stderr
    assert f"cvxleak audit {path}" in result.stderr


def test_several_certificates_are_verified_one_by_one(run: Run, tmp_path: Path):
    names = [str(tmp_path / name) for name in ("good.json", "bad.json", "again.json")]
    good, bad, again = names
    bound = capacity([[0.9, 0.1], [0.2, 0.8]])
    for name in (good, again):
        bound.certificate.save(name)
    text = Path(good).read_text()
    Path(bad).write_text(text.replace(f'"value": {bound.lower!r}', f'"value": {bound.upper!r}'))
    assert Path(bad).read_text() != text
    passed = run("verify", good, again)
    assert passed.exit_code == 0
    assert [line.split()[0] for line in passed.stdout.splitlines()] == [
        f"{good}:",
        "PASS",
        f"{again}:",
        "PASS",
    ]
    failed = run("verify", good, bad, again)
    assert failed.exit_code == 1
    assert [line.split()[0] for line in failed.stdout.splitlines()][1::2] == [
        "PASS",
        "FAIL",
        "PASS",
    ]


def test_verify_explains_the_proofs_of_the_kernel(run: Run, write: Write, tmp_path: Path):
    path, proof, other = write(COUNT, ROUNDING, FLOORS), tmp_path / "p.json", tmp_path / "o.json"
    run("audit", path, "--tol", 0.1, "--certificate", proof)
    done = run("verify", "--explain", proof)
    assert done.exit_code == 0
    assert "\nclose: at most " in done.stdout
    assert "\n  alphabet (I(A;Y) <= H(A))" in done.stdout
    assert "alphabet" not in run("verify", proof).stdout
    min_local_dp([[0.7, 0.3]], 0.2).certificate.save(other)
    assert (
        "local-dp: its rules are not those of the kernel"
        in run("verify", "--explain", other).stdout
    )


def test_a_picture_of_the_leakage(run: Run, write: Write, tmp_path: Path):
    pytest.importorskip("matplotlib")
    path, picture = write(COUNT, ROUNDING, FLOORS), tmp_path / "curve.svg"
    result = run("audit", path, "--plot", picture, "--json", "-")
    assert result.exit_code == 0, result.output
    (curve,) = json.loads(result.stdout)["audited"]["curves"]
    assert len(curve["points"]) > 20
    assert "uncertainty at least (nats)" in picture.read_text(encoding="utf-8")
    without = json.loads(run("audit", path, "--tol", 0.1, "--json", "-").stdout)
    assert "curves" not in without["audited"]
    table = write('[table]\ncounts = "c.csv"\n' + ROUNDING, name="table.toml")
    (tmp_path / "c.csv").write_text("a,count\nx,3\ny,4\n")
    refused = run("audit", table, "--plot", tmp_path / "table.png")
    assert refused.exit_code == 2
    assert "--plot: there is no picture" in refused.stderr
    assert not (tmp_path / "table.png").exists()


def test_a_page_that_cannot_be_written_is_told_before_the_work(
    run: Run, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = write(COUNT, ROUNDING, FLOORS)
    for target, message in (
        ("-", "--html: needs the path of a file"),
        (tmp_path / "no" / "x.html", "--html: there is no folder"),
        (path, "--html: "),
    ):
        result = run("audit", path, "--html", target)
        assert (result.exit_code, result.stdout) == (2, "")
        assert result.stderr.startswith(f"cvxleak: {message}")
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = run("audit", path, "--html", tmp_path / "report.html")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--html: a page needs Jinja2 and matplotlib, and there is no jinja2: " in result.stderr
    assert "pip install 'cvxleak[html]'" in result.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["spec.toml"]


INDEPENDENT = 'kind = "independent"\n'


def test_independent_people_stand_beside_the_floors(run: Run, write: Write):
    floors = FLOORS + INDEPENDENT
    laws = "laws = [[0.9, 0.1], [0.1, 0.9]]\n"
    for known, arguments in (
        ("", {}),
        ("least_probability = 0.1\n", {"least_probability": 0.1}),
        ("record_floor = 0.5\n", {"record_floor": 0.5}),
        (laws, {"laws": [[0.9, 0.1], [0.1, 0.9]]}),
    ):
        path = write(COUNT, ROUNDING, floors, known)
        found = quantities(run("audit", path, "--tol", 0.01, "--json", "-"))
        quantity = found[quantity_names.INDEPENDENT_LEAKAGE, None]
        bound = product_leakage(Mechanism(count(6), random_rounding(6, 3)), tol=0.01, **arguments)
        assert quantity["status"] == "CERTIFIED"
        assert quantity["upper"] == pytest.approx(bound.upper, abs=1e-6)
        assert quantity["upper"] < found["record leakage", 0.0]["lower"]
        assert "independent" in quantity["meaning"]
    page = run("audit", path, "--tol", 0.1)
    assert quantity_names.INDEPENDENT_LEAKAGE in page.stdout


@pytest.mark.parametrize(
    ("audit", "known", "asked"),
    [
        ('gain = "guess"', "least_probability = 0.1\n", {"least_probability": 0.1}),
        (
            'gain = "guess"\nform = "posterior"',
            "laws = [[0.9, 0.1], [0.1, 0.9]]\n",
            {"form": "posterior", "laws": [[0.9, 0.1], [0.1, 0.9]]},
        ),
        ('gain = "guess"\nform = "posterior"', "", None),
        ('gain = "gini"', "", None),
    ],
)
def test_a_gain_to_independent_people(run: Run, write: Write, audit: str, known: str, asked: Any):
    adversary = "[adversary]\nentropy_floors = [0]\n" + INDEPENDENT + known
    path = write(COUNT, ROUNDING, adversary, f"[audit]\n{audit}\n")
    found = quantities(run("audit", path, "--json", "-"))
    assert (quantity_names.INDEPENDENT_LEAKAGE, None) in found
    if asked is None:
        assert (quantity_names.INDEPENDENT_GAIN, None) not in found
        return
    quantity = found[quantity_names.INDEPENDENT_GAIN, None]
    mechanism = Mechanism(count(6), random_rounding(6, 3))
    bound = product_leakage(mechanism, gain=Guess(), **asked)
    assert quantity["upper"] == pytest.approx(bound.upper, abs=1e-9)
    assert quantity["unit"] == "probability"
    assert "believes that the records are independent" in quantity["meaning"]


def test_the_entropy_of_records_has_the_unit_of_its_table(run: Run, write: Write):
    written = []
    for unit, floor in (("nats", 0.5), ("bits", 0.5 / math.log(2))):
        table = f'[adversary]\nunit = "{unit}"\nrecord_floor = {floor!r}\n' + INDEPENDENT
        found = quantities(run("audit", write(COUNT, ROUNDING, table), "--json", "-"))
        written.append(found[quantity_names.INDEPENDENT_LEAKAGE, None]["upper"])
    assert written[0] == pytest.approx(written[1], abs=1e-9)


def test_floors_in_percent(run: Run, write: Write):
    most = 6 * math.log(2)
    path = write(COUNT, ROUNDING, '[adversary]\nentropy_floors = ["50%", 2, "100%"]\n')
    rough = ["--tol", 0.1, "--json", "-"]
    found = quantities(run("audit", path, *rough))
    floors = [floor for name, floor in found if name == "record leakage"]
    assert floors == pytest.approx([0, 2, most / 2, most])
    bits = quantities(run("audit", path, "--units", "bits", *rough))
    floors = [floor for name, floor in bits if name == "record leakage"]
    assert floors == pytest.approx([0, 2, 3, 6])
    for table, reason in (
        ('entropy_floors = ["101%"]', "adversary.entropy_floors[0]: found '101%'; a share is"),
        ('entropy_floors = ["much%"]', "adversary.entropy_floors[0]: found 'much%'; a share is"),
        ('kind = "depends"', "adversary.kind: found 'depends'; allowed: independent"),
        ("least_probability = 0.1", 'adversary: least_probability is for kind = "independent"'),
        (INDEPENDENT + "least_probability = 0.6", "adversary.least_probability: found 0.6; it"),
        (INDEPENDENT + "laws = [[0.5, 0.4]]", "adversary.laws"),
        (INDEPENDENT + "laws = []", "adversary.laws: found none"),
        (INDEPENDENT + "record_floor = 1", "adversary.record_floor: found 1.0 nats"),
    ):
        result = run("audit", write(COUNT, ROUNDING, f"[adversary]\n{table}\n"))
        assert result.exit_code == 2
        assert reason in result.stderr


def test_floors_in_percent_of_problems(run: Run, write: Write):
    solve = '[problem]\nkind = "record-leakage"\nentropy_floor = '
    half, number = (
        quantities(run("solve", write(COUNT, ROUNDING, solve + floor), "--json", "-"))
        for floor in ('"50%"', repr(3 * math.log(2)))
    )
    assert [q["upper"] for q in half.values()] == pytest.approx(
        [q["upper"] for q in number.values()], abs=1e-6
    )
    wrong = run("solve", write(COUNT, ROUNDING, solve + '"-5%"'))
    assert "problem.entropy_floor: found '-5%'" in wrong.stderr


KINDS: list[tuple[str, Knowledge]] = [
    ("kind = 'marginals'\nlaw = [0.9, 0.1]", KnownMarginals([0.9, 0.1])),
    ("kind = 'marginals'\nlaw = [0.9, 0.1]\nrecords = [0, 2]", KnownMarginals([0.9, 0.1], [0, 2])),
    (
        "kind = 'expectation'\nvalues = [0, 1, 2, 3]\nat_most = 0.75",
        Expectation(range(4), at_most=0.75),
    ),
    (
        "kind = 'expectation'\nvalues = [0, 0, 0, 1]\nrecords = [0, 1]\nequals = 0.25",
        Expectation([0, 0, 0, 1], records=[0, 1], equals=0.25),
    ),
    (
        f"kind = 'relative-entropy'\nradius = 0.5\nlaws = {[[0.8, 0.2]] * 3}\nunit = 'nats'",
        RelativeEntropyBall(0.5, laws=[[0.8, 0.2]] * 3),
    ),
]


@pytest.mark.parametrize(("table", "known"), KINDS)
def test_what_else_is_known_of_beliefs(table: str, known: Knowledge, run: Run, write: Write):
    few = COUNT.replace("6", "3")
    path = write(few, ROUNDING, f"[audit]\nrecords = [0]\n[adversary]\n{table}\n")
    rough = ["--tol", 0.01, "--json", "-"]
    found = quantities(run("audit", path, *rough))["record leakage", 0.0]
    mechanism = Mechanism(count(3), random_rounding(3, 3))
    bound = record_leakage(mechanism, 0.0, 0, adversaries=known, tol=0.01)
    assert (found["lower"], found["upper"]) == pytest.approx((bound.lower, bound.upper), abs=1e-6)
    assert known.bind(mechanism.query).statement in found["meaning"]
    swept = run("sweep", path, "--over", "adversary.entropy_floors=0", *rough)
    (row,) = json.loads(swept.stdout)["rows"]
    assert (row["lower"], row["upper"]) == pytest.approx((bound.lower, bound.upper), abs=1e-6)


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ("law = [0.5, 0.5]", 'adversary: law is for kind = "marginals"'),
        ("kind = 'marginals'\nradius = 1", 'adversary: radius is for kind = "relative-entropy"'),
        ("kind = 'marginals'", "adversary: law: it is missing"),
        ("kind = 'marginals'\nlaw = [0.5, 0.4]", "adversary.law: "),
        ("kind = 'marginals'\nlaw = [0.5, 0.5]\nrecords = [9]", "adversary.records: "),
        ("kind = 'expectation'\nvalues = [1, 2]\nat_most = 1", "adversary.values: found 2 numbers"),
        ("kind = 'expectation'\nvalues = [0, 1, 2, 3, 4, 5, 6]", "at_most: found no bound"),
        ("kind = 'relative-entropy'\nradius = -1\nlaws = [[0.5, 0.5]]", "adversary.radius: found"),
        ("kind = 'relative-entropy'\nradius = 1", "adversary: prior: expected either"),
    ],
)
def test_what_is_wrong_with_what_is_known(table: str, reason: str, run: Run, write: Write):
    result = run("audit", write(COUNT, ROUNDING, f"[adversary]\n{table}\n"))
    assert result.exit_code == 2
    assert reason in result.stderr
