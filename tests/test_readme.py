"""The README does what it says: both Python examples, every command, the table it shows."""

import io
import re
import shlex
import tomllib
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cvxleak.cli.app import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder where only the examples are at hand."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed(code: str) -> list[str]:
    output = io.StringIO()
    with redirect_stdout(output):
        exec(compile(code, "README.md", "exec"), {})
    return output.getvalue().splitlines()


def test_audit_in_python(folder: Path):
    code, _ = blocks("python")
    assert len([line for line in code.splitlines() if line]) <= 15
    lines = printed(code)
    assert len(lines) == 3
    promised = re.findall(r"^print.*  # (.*)$", code, re.MULTILINE)
    for line, comment in zip((lines[0], lines[2]), promised, strict=True):
        assert re.fullmatch(re.escape(comment).replace(r"\.\.\.", r"\d*"), line)
    assert re.fullmatch(r"the worst .* guesses right in 53%, then in 100% of cases", lines[1])
    assert (folder / "leakage.json").exists()


def test_custom_constraint():
    _, code = blocks("python")
    assert len([line for line in code.splitlines() if line]) == 6
    (line,) = printed(code)
    # Without the constraint of one's own it would be e / (e + 2) = 57.6 %.
    assert line == "right in 55.0% of cases"


def test_commands_run():
    (block,) = blocks("sh")
    lines = block.splitlines()
    assert {line.split()[1] for line in lines} == {"audit", "verify", "capacity"}
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "cvxleak"
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == 0, result.stderr
        assert result.stdout


def test_table_is_what_the_audit_prints(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(app, ["audit", "examples/rounded_count.toml"])
    (table,) = blocks("text")
    shown = table.splitlines()
    start = result.stdout.splitlines().index(shown[0])
    real = result.stdout.splitlines()[start : start + len(shown)]
    number = r"\d+(?:\.\d+)?"
    for ours, theirs in zip(shown, real, strict=True):
        assert re.sub(number, "0", ours) == re.sub(number, "0", theirs)
        values = [[float(x) for x in re.findall(number, line)] for line in (ours, theirs)]
        if "certified" in ours:
            # Two brackets of one leakage that are both as close as asked for, 1e-4, differ by no
            # more than that. (The last three columns are percentages.)
            assert values[0][:4] == pytest.approx(values[1][:4], rel=1e-4, abs=2e-6)
            assert values[0][4:] == pytest.approx(values[1][4:], abs=0.21)
        else:
            assert values[0] == values[1]


def test_two_commands_are_those_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^make (\w+)", README, re.MULTILINE)
    assert targets == ["audit", "test"]
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
    assert "cvxleak audit examples/rounded_count.toml\n" in makefile


def test_links_lead_somewhere():
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", README):
        assert (ROOT / target).exists(), target


def test_supported_pythons_are_those_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = set(re.findall(r"\b3\.\d+\b", README))
    classified = {c.split()[-1] for c in project["classifiers"] if re.search(r":: 3\.\d+$", c)}
    assert named == classified
