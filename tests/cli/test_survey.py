"""A column of a CSV file, randomized and read back on the command line."""

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from cvxleak.mechanisms import binary_symmetric, estimate_frequencies

Run = Callable[..., Result]
WARNER = Path(__file__).parents[2] / "examples" / "warner.toml"


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    path = tmp_path / "answers.csv"
    lines = [f'{n},"x, y",{"admitted" if n % 3 == 0 else "rejected"}' for n in range(900)]
    path.write_text("\n".join(["id,note,seen", *lines]) + "\n")
    return path


def column(path: Path, name: str) -> list[str]:
    with path.open(newline="") as file:
        return [row[name] for row in csv.DictReader(file)]


def test_there_and_back(run: Run, answers: Path, tmp_path: Path):
    out = tmp_path / "out.csv"
    asked = ("randomize", WARNER, answers, "--column", "seen", "--output", out)
    found = run(*asked)
    assert (found.exit_code, found.stdout.strip()) == (0, f"{out}: 900 answers randomized")
    assert column(out, "id") == column(answers, "id")
    assert column(out, "note") == ["x, y"] * 900
    drawn = column(out, "seen")
    assert drawn != column(answers, "seen")
    same = sum(one == other for one, other in zip(drawn, column(answers, "seen"), strict=True))
    assert 600 < same < 750
    # Nothing is written over, unless it is said.
    before = out.read_bytes()
    refused = run(*asked)
    assert refused.exit_code == 2
    assert "exists; --overwrite writes over it" in refused.stderr
    assert out.read_bytes() == before
    assert run(*asked, "--overwrite").exit_code == 0
    assert out.read_bytes() != before

    counts = [column(out, "seen").count(label) for label in ("admitted", "rejected")]
    expected = estimate_frequencies(binary_symmetric(0.25), counts, 0.9)
    path = tmp_path / "found.json"
    reading = ("estimate", WARNER, out, "--column", "seen", "--confidence", "0.9")
    found = run(*reading, "--json", path)
    assert found.exit_code == 0
    assert "900 respondents" in found.stdout
    assert "90 % confidence" in found.stdout
    document = json.loads(path.read_text())
    assert document["spec"] == "warner.toml"
    assert list(document["files_sha256"]) == ["out.csv"]
    assert (document["respondents"], document["missing"], document["fits"]) == (900, 0, True)
    rows = document["frequencies"]
    assert [row["label"] for row in rows] == ["admitted", "rejected"]
    assert [row["lower"] for row in rows] == expected.lower.tolist()
    assert [row["upper"] for row in rows] == expected.upper.tolist()
    assert [row["estimate"] for row in rows] == expected.frequencies.tolist()


def test_a_seed_reproduces(run: Run, answers: Path, tmp_path: Path):
    paths = [tmp_path / f"{turn}.csv" for turn in range(3)]
    for path, seed in zip(paths, (5, 5, 6), strict=True):
        options = ("--column", "seen", "--output", path, "--seed", seed)
        assert run("randomize", WARNER, answers, *options).exit_code == 0
    texts = [path.read_text() for path in paths]
    assert texts[0] == texts[1] != texts[2]


def test_empty_cells(run: Run, answers: Path, tmp_path: Path):
    with answers.open("a") as file:
        file.write("900,,\n901,,NaN\n")
    out = tmp_path / "out.csv"
    asked = ("randomize", WARNER, answers, "--column", "seen", "--output", out)
    refused = run(*asked)
    assert refused.exit_code == 2
    assert "line 902, column 'seen': it is empty; --missing keep allows that" in refused.stderr
    assert not out.exists()
    found = run(*asked, "--missing", "keep")
    assert "900 answers randomized, 2 empty cells left out" in found.stdout
    assert column(out, "seen")[-2:] == ["", "NaN"]
    reading = ("estimate", WARNER, out, "--column", "seen")
    assert "--missing skip allows that" in run(*reading).stderr
    found = run(*reading, "--missing", "skip", "--json", "-")
    assert json.loads(found.stdout)["missing"] == 2


def test_answers_that_do_not_fit(run: Run, answers: Path):
    answers.write_text("seen\n" + "admitted\n" * 10 + "rejected\n" * 990)
    found = run("estimate", WARNER, answers, "--column", "seen")
    assert found.exit_code == 0
    assert "none fit the counts with 95 % confidence" in found.stdout
    found = run("estimate", WARNER, answers, "--column", "seen", "--json", "-")
    document = json.loads(found.stdout)
    assert not document["fits"]
    assert document["frequencies"][0]["lower"] is None


def test_texts_that_look_like_numbers(run: Run, tmp_path: Path, write: Callable[..., Path]):
    spec = write(
        '[space]\nalphabets = [["0", "1"]]\n[mechanism]\nkind = "randomized_response"\nepsilon = 1'
    )
    table, out = tmp_path / "a.csv", tmp_path / "b.csv"
    table.write_text("x\n" + "0\n1\n" * 20)
    assert run("randomize", spec, table, "--column", "x", "--output", out).exit_code == 0
    assert run("estimate", spec, out, "--column", "x").exit_code == 0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"--column": "seem"}, "--column: found 'seem'; one of the columns ['id', 'note', 'seen']"),
        ({"--column": "id"}, "line 2, column 'id': found '0'; the mechanism has ['admitted',"),
        ({"--output": "{answers}"}, "--output: {answers} is taken"),
        ({"--output": "{folder}"}, "--output: {folder} is a folder"),
        ({"--output": "-"}, "--output: needs the path of a file"),
        ({"SPEC": "nowhere.toml"}, "nowhere.toml"),
        ({"CSV": "nowhere.csv"}, "nowhere.csv"),
        ({"SPEC": "many"}, "space: randomize needs a mechanism of one record"),
        ({"SPEC": "none"}, "randomize needs [mechanism]"),
    ],
)
def test_what_is_refused(
    run: Run,
    answers: Path,
    tmp_path: Path,
    write: Callable[..., Path],
    changes: dict[str, Any],
    words: str,
):
    space = '[space]\nalphabets = [["admitted", "rejected"], [0, 1]]\n'
    many = space + '[mechanism]\nkind = "randomized_response"\nepsilon = 1.0'
    specs = {"many": write(many, name="many.toml"), "none": write(space, name="none.toml")}
    given = {"SPEC": WARNER, "CSV": answers, "--column": "seen", "--output": tmp_path / "o.csv"}
    given |= changes
    places = {"answers": answers, "folder": tmp_path}
    output = str(given["--output"]).format(**places)
    spec = specs.get(str(given["SPEC"]), given["SPEC"])
    found = run("randomize", spec, given["CSV"], "--column", given["--column"], "--output", output)
    assert found.exit_code == 2
    assert words.format(**places) in found.stderr
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        ("seen\nadmitted\n", (), "column 'seen': found 1 respondents"),
        ("seen\n", (), "found 0 respondents"),
        ("seen\nadmitted\nlost\n", (), "found 'lost'"),
        ("seen\nadmitted\nadmitted\n", ("--confidence", "1"), "--confidence: found 1.0"),
        ("seen\nadmitted\nadmitted\n", ("--json", "{answers}"), "--json: {answers} is taken"),
    ],
)
def test_what_cannot_be_read_back(
    run: Run, answers: Path, content: str, options: tuple[str, ...], words: str
):
    answers.write_text(content)
    options = tuple(option.format(answers=answers) for option in options)
    found = run("estimate", WARNER, answers, "--column", "seen", *options)
    assert found.exit_code == 2
    assert words.format(answers=answers) in found.stderr
