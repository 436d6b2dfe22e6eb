"""REBUILD.md lists every public name, command, page and kind of certificate once, and no other."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest
import typer

import cvxleak
from cvxleak.cli.app import app
from cvxleak.proofs.checker import PROVERS

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "REBUILD.md").read_text(encoding="utf-8")
VERDICT = re.compile(r"stays|goes|moves to .+|becomes .+")


def rows(heading: str) -> list[str]:
    """Return the first column of the table in a section; the other columns are checked."""
    (section,) = re.findall(rf"^#+ {re.escape(heading)}\n(.*?)(?=^#|\Z)", TEXT, re.M | re.S)
    found = []
    for line in re.findall(r"^\| `.*$", section, re.M):
        name, verdict, why = (cell.strip() for cell in line.strip("|").split("|"))
        assert VERDICT.fullmatch(verdict), line
        assert why, f"without a reason: {line}"
        found.append(name.strip("`"))
    return found


def public_names() -> dict[str, list[str]]:
    """Return the names in the `__all__` of each package."""
    packages = ["cvxleak"]
    packages += [m.name for m in pkgutil.walk_packages(cvxleak.__path__, "cvxleak.") if m.ispkg]
    lists = {name: getattr(importlib.import_module(name), "__all__", []) for name in packages}
    return {name: list(names) for name, names in lists.items() if names}


NAMES = public_names()


@pytest.mark.parametrize("package", NAMES)
def test_every_public_name_has_a_row(package: str):
    assert sorted(rows(package)) == sorted(NAMES[package])


def test_every_section_of_names_is_a_package():
    assert sorted(re.findall(r"^### (.+)$", TEXT, re.M)) == sorted(NAMES)


def test_every_command_has_a_row():
    assert sorted(rows("Commands")) == sorted(typer.main.get_command(app).commands)


def test_every_page_has_a_row():
    docs = ROOT / "docs"
    pages = [
        path
        for folder in (docs, docs / "theory", docs / "tutorials")
        for path in folder.glob("*.md")
    ]
    assert sorted(rows("Pages")) == sorted(path.relative_to(ROOT).as_posix() for path in pages)


def test_every_kind_of_certificate_has_a_row():
    assert sorted(rows("Kinds of certificates")) == sorted(PROVERS)


@pytest.mark.parametrize(
    "line", ["| `a` | perhaps | why |", "| `a` | moves to | why |", "| `a` | goes | |"]
)
def test_a_row_without_a_verdict_or_a_reason_is_noticed(line: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(rows.__globals__, "TEXT", f"## Here\n\n{line}\n\n## There\n")
    with pytest.raises(AssertionError):
        rows("Here")
