"""The reference has every public name, and every page can be reached."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import pytest

import cvxleak

DOCS = Path(__file__).parents[2] / "docs"
PROGRAMS = ("cvxleak.cli",)


def documented() -> set[int]:
    found = set()
    for page in (DOCS / "api").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        for name in re.findall(r"automodule:: (\S+)", text):
            module = importlib.import_module(name)
            found |= {id(getattr(module, public)) for public in module.__all__}
        for name in re.findall(r"auto(?:function|class):: (\S+)", text):
            module, _, public = name.rpartition(".")
            found.add(id(getattr(importlib.import_module(module), public)))
    return found


def public_modules() -> list[str]:
    """Return the packages, and modules right below `cvxleak`."""
    return [
        module.name
        for module in pkgutil.walk_packages(cvxleak.__path__, "cvxleak.")
        if (module.ispkg or module.name.count(".") == 1)
        and "._" not in module.name
        and not module.name.startswith(PROGRAMS)
    ]


@pytest.mark.parametrize("name", ["cvxleak", *public_modules()])
def test_every_public_name_is_in_the_reference(name: str):
    module, known = importlib.import_module(name), documented()
    missing = [
        public
        for public in getattr(module, "__all__", ())
        if (inspect.isclass(value := getattr(module, public)) or inspect.isroutine(value))
        and id(value) not in known
    ]
    assert missing == []


def test_every_page_is_in_a_table_of_contents():
    listed = {"index"}
    for page in DOCS.rglob("*.md"):
        folder = page.parent.relative_to(DOCS)
        text = page.read_text(encoding="utf-8")
        for block in re.findall(r"^```\{toctree\}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
            entries = [line for line in block.split() if not line.startswith(":")]
            listed |= {(folder / entry).as_posix() for entry in entries}
    pages = {
        page.relative_to(DOCS).with_suffix("").as_posix()
        for page in DOCS.rglob("*.md")
        if "_build" not in page.parts
    }
    assert pages <= listed


def test_links_between_pages_lead_somewhere():
    for page in DOCS.rglob("*.md"):
        if "_build" in page.parts:
            continue
        prose = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        for target in re.findall(r"\]\((?!https?:|#)([^)#\s]+)", prose):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
