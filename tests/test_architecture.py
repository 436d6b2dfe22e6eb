"""docs/architecture.md draws the rooms that there are, and what is trusted calls no solver."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cvxleak
from cvxleak.audit import total_disclosure
from cvxleak.capacities import renyi_capacity
from cvxleak.differential_privacy import check_claim
from cvxleak.local_dp import local_dp_epsilon_of_set
from cvxleak.model import ChannelSet, Mechanism
from cvxleak.proofs import save_certificates
from cvxleak.proofs.checker import PROVERS
from cvxleak.queries import parity
from cvxleak.refinement import refines

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


@pytest.mark.parametrize("package", ["core", "kernel", "model", "proofs"])
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


LOADED = """
import json, sys
from cvxleak.proofs import verify
before = set(sys.modules)
kinds = []
for path in sys.argv[1:]:
    answer = verify(path)
    assert answer.ends or answer.parts  # a prover ran
    content = json.load(open(path))
    kinds += [one["kind"] for one in content.get("certificates", [content])]
ours = {name for name in set(sys.modules) - before if name.partition(".")[0] == "cvxleak"}
print(json.dumps([kinds, sorted(ours)]))
"""


def test_a_verdict_loads_nothing_beside_the_trusted_base(tmp_path: Path):
    """What is said to be trusted is all: no prover imports a module when it runs."""
    stored = sorted((ROOT / "tests" / "proofs" / "stored").glob("*.json"))
    # Kinds that are younger than these files.
    rows = [[0.9, 0.1], [0.3, 0.7]]
    claims = ({"renyi": (2, 1)}, {"zcdp": 1}, {"epsilon": 1, "delta": 0.1}, {"gdp": 1})
    bounds = [renyi_capacity(rows, 2), *(check_claim(rows, **claim).bound for claim in claims)]
    bounds += [refines(rows, rows), local_dp_epsilon_of_set(ChannelSet(rows, rows))]
    bounds.append(total_disclosure(Mechanism(parity(2), [[1, 0], [0, 1]])))
    save_certificates([b.certificate for b in bounds if b.certificate], tmp_path / "young.json")
    stored.append(tmp_path / "young.json")
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *map(str, stored)],
        capture_output=True,
        text=True,
        check=True,
    )
    kinds, loaded = json.loads(done.stdout)
    assert set(kinds) == set(PROVERS)
    assert loaded == []
