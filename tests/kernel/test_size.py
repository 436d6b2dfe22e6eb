"""The kernel is small and stands alone: what it loads, how many lines it has, how long they are."""

import ast
import io
import subprocess
import sys
import tokenize
from pathlib import Path

import cvxleak

KERNEL = Path(cvxleak.__file__).parent / "kernel"
FILES = sorted(KERNEL.glob("*.py"))
MOST_LINES = 3_193
LONGEST_FUNCTION = 40

LOADS = """
import sys
before = set(sys.modules)
import importlib, pathlib
import cvxleak.kernel
for path in pathlib.Path(cvxleak.kernel.__path__[0]).glob("*.py"):
    if path.stem != "__init__":
        importlib.import_module("cvxleak.kernel." + path.stem)
print(*sorted(set(sys.modules) - before))
"""


def test_the_kernel_loads_flint_numpy_and_the_standard_library_alone() -> None:
    run = subprocess.run([sys.executable, "-c", LOADS], capture_output=True, text=True, check=True)
    loaded = run.stdout.split()
    own = {name for name in loaded if name.split(".")[0] == "cvxleak"}
    kernel = {f"cvxleak.kernel.{path.stem}" for path in FILES if path.stem != "__init__"}
    assert own == kernel | {"cvxleak", "cvxleak._version", "cvxleak.kernel"}
    others = {name.split(".")[0] for name in loaded} - set(sys.stdlib_module_names) - {"cvxleak"}
    # Cython's are those of flint.
    assert {name for name in others if "cython" not in name} <= {"flint", "numpy"}


def code_lines(text: str) -> set[int]:
    """Return the lines that are neither blank, nor a comment, nor of a docstring."""
    tree, left_out = ast.parse(text), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            if isinstance(node.value.value, str):
                left_out |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and lines[token.start[0] - 1].strip().startswith("#"):
            left_out.add(token.start[0])
    return {i for i, line in enumerate(lines, 1) if line.strip() and i not in left_out}


def test_the_kernel_has_few_lines() -> None:
    count = sum(len(code_lines(path.read_text(encoding="utf-8"))) for path in FILES)
    assert count <= MOST_LINES


def test_no_function_of_the_kernel_is_long() -> None:
    for path in FILES:
        text = path.read_text(encoding="utf-8")
        lines = code_lines(text)
        assert "fmt: off" not in text
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                own = lines & set(range(node.lineno, (node.end_lineno or 0) + 1))
                assert len(own) <= LONGEST_FUNCTION, f"{path.name}: {node.name}"
