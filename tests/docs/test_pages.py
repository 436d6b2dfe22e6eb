"""Every program and command on a page of the documentation runs, and prints what is shown."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

# Pages with tests of their own, which compare more than what is printed.
ELSEWHERE = {"certificates.md", "relaxations.md"}

# Longer than a few seconds.
SLOW = {
    *("design.md", "theory/design.md", "theory/upper_bounds.md"),
    *(f"tutorials/{name}.md" for name in ("guess", "noise", "own_alternation", "own_solver")),
}


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("running", DOCS / "running.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RUNNING = load()


def pages() -> list:
    found = []
    for path in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]:
        name = path.relative_to(DOCS if path.is_relative_to(DOCS) else ROOT).as_posix()
        text = path.read_text(encoding="utf-8")
        if name.startswith("_build/") or name in ELSEWHERE or not RUNNING.runnable(text):
            continue
        marks = [pytest.mark.slow] if name in SLOW else []
        found.append(pytest.param(path, id=name, marks=marks))
    return found


@pytest.mark.parametrize("path", pages())
def test_page_shows_what_is_printed(path: Path, tmp_path, monkeypatch):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    text = path.read_text(encoding="utf-8")
    assert RUNNING.differences(text, path.name) == []
    for block in RUNNING.BLOCK.finditer(text):
        if block["picture"]:
            stored = path.parent / block["picture"]
            assert words_of(stored) == words_of(tmp_path / stored.name)


def words_of(picture: Path) -> list[str]:
    """Return the words and numbers that are written in a picture; letters have no fixed shape."""
    return re.findall("<!-- (.*?) -->", picture.read_text(encoding="utf-8"))


def test_every_program_is_found():
    """No block of Python is written such that it would not run."""
    for path in DOCS.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        blocks = re.findall(r"^`{3,}\s*\{?(?:code-block\}\s*)?python$", text, re.MULTILINE)
        run = [block for block in RUNNING.BLOCK.finditer(text) if block["code"] is not None]
        assert len(blocks) == len(run), path


def test_outputs_belong_to_programs():
    for path in DOCS.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        outs = [block for block in RUNNING.BLOCK.finditer(text) if block["out"] is not None]
        assert text.count("\n:class: output\n") == len(outs), path


@pytest.mark.parametrize(
    ("shown", "real", "same"),
    [
        ("0.6931 nats", "0.6932 nats", True),
        ("0.6931 nats", "0.7031 nats", False),
        ("7 rows", "8 rows", False),
        ("a ... c 1.50", "a b c 1.5", True),
        ("first\n...\nlast", "first\nsecond\nthird\nlast", True),
        ("first\nlast", "first\nsecond\nlast", False),
        ("a", "a\nb", False),
        ("a\nb", "a", False),
        ("2.0...", "2.0031", True),
        ("missed by 0e+00", "missed by 3e-10", True),
    ],
)
def test_outputs_are_compared(shown: str, real: str, same: bool):
    assert RUNNING.agrees(shown, real) == same


def test_what_is_not_so_is_seen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = "```python\nprint(1 + 1)\n```\n\n" + RUNNING.OUTPUT + "3\n```\n"
    assert RUNNING.differences(page, "page")
    assert "\n2\n" in RUNNING.rewritten(page, "page")
    assert RUNNING.rewritten(page.replace("3\n", ""), "page") == page.replace("3", "2")
    silent = "```python\nprint(1 + 1)\n```\n"
    assert RUNNING.rewritten(silent, "page") == silent
    with pytest.raises(ZeroDivisionError):
        RUNNING.differences("```python\n1 / 0\n```\n", "page")


def test_manual_has_a_section_for_each_command():
    from cvxleak.cli.app import app

    names = [command.name or command.callback.__name__ for command in app.registered_commands]
    names += [group.name for group in app.registered_groups]
    text = (DOCS / "howto.md").read_text(encoding="utf-8")
    for name in names:
        assert f"$ cvxleak {name.replace('_', '-')} " in text, name
