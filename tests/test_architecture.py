"""docs/architecture.md draws the rooms that there are, and what is trusted calls no solver."""

import ast
import re
import sys
from pathlib import Path

import pytest

import cvxleak

ROOT = Path(__file__).parents[1]
PACKAGE = Path(cvxleak.__file__).parent  # the installed one, if that is what is tested


def test_the_rooms_drawn_are_those_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    picture = re.search(r"```text\n(.*?)```", text, re.DOTALL)
    assert picture is not None
    lines = picture[1].splitlines()
    drawn = {name for line in lines for name in re.findall(r"│ (\w+)(?= {2,})", line)}
    there = {p.parent.name for p in PACKAGE.glob("*/__init__.py")}
    there |= {p.stem for p in PACKAGE.glob("[!_]*.py")}
    missing, gone = there - drawn, drawn - there
    assert not missing, f"draw in docs/architecture.md: {sorted(missing)}"
    assert not gone, f"drawn in docs/architecture.md and not there: {sorted(gone)}"


# Outside of cvxleak and the standard library. import-linter cannot forbid a part of SciPy.
SOLVER_FREE = ("flint", "numpy", "pandas", "scipy.sparse", "scipy.special")


def imported(path: Path) -> set[str]:
    """Name all modules that a file imports, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            # What is imported may be a module: from scipy import optimize.
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize("package", ["core", "model", "exact", "proofs"])
def test_what_is_trusted_calls_no_solver(package: str):
    files = list((PACKAGE / package).rglob("*.py"))
    assert files
    for path in files:
        others = {
            name
            for name in imported(path)
            if name.partition(".")[0] not in {*sys.stdlib_module_names, "cvxleak"}
        }
        strange = {n for n in others if not any(f"{n}.".startswith(f"{m}.") for m in SOLVER_FREE)}
        assert not strange, f"{path} imports {sorted(strange)}"
