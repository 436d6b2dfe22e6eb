"""The package as others get it: what the wheel holds, and what an import drags in."""

import ast
import os
import pkgutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.metadata import Distribution
from pathlib import Path

import pytest

import cvxleak
from cvxleak._version import __version__

ROOT = Path(__file__).resolve().parents[1]

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(cvxleak.__path__, "cvxleak.")
    if not module.name.endswith("__main__")
)
SOLVING = ("cvxpy", "clarabel", "ecos", "highspy", "scs")
OPTIONAL = (
    "dask",
    "distributed",
    "dit",
    "jinja2",
    "joblib",
    "matplotlib",
    "pandas",
    "pyscipopt",
    "qif",
)
# The rooms that need CVXPY; all others have to work where CVXPY is not to be had.
SOLVING_ROOMS = {
    "expressions",
    "constraints",
    "design",
    "local_dp",
    "relaxations",
    "release",
    "desk",
    "cli",
    "sweeps",
    "plots",
    "report",
    "papers",
}


def python(code: str, *path: Path) -> str:
    """Run `code` in a fresh interpreter that looks into `path` first; return what it prints."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path))}
    run = subprocess.run(
        [sys.executable, "-P", "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def importing(modules: list[str], without: tuple[str, ...]) -> str:
    """Return a program that imports `modules` where `without` cannot be imported."""
    return "\n".join(
        ["import importlib, sys"]
        + [f"sys.modules[{name!r}] = None" for name in without]
        + [f"importlib.import_module({name!r})" for name in modules]
    )


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel and return the folder that it was unpacked into."""
    if not (ROOT / "cvxleak").is_dir():
        pytest.skip("an installed wheel is under test: there is nothing here to build one from")
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    (built,) = folder.glob("*.whl")
    with zipfile.ZipFile(built) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def files(folder: Path) -> set[str]:
    """Name the files of the package in `folder`, as paths within it."""
    return {
        path.relative_to(folder).as_posix()
        for path in (folder / "cvxleak").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def distribution(wheel: Path) -> Distribution:
    (info,) = wheel.glob("*.dist-info")
    return Distribution.at(info)


def test_import_is_light():
    heavy = {*SOLVING, *OPTIONAL, "scipy"}
    code = f"import sys, cvxleak; print(sorted({heavy!r} & set(sys.modules)))"
    assert python(code, ROOT).strip() == "[]"


def test_import_loads_no_room():
    code = "import sys, cvxleak; print([name for name in sys.modules if 'cvxleak.' in name])"
    assert python(code, ROOT).strip() == "['cvxleak._version']"


def test_a_name_of_a_room_is_told_the_room():
    both = "there is cvxleak.expressions.mutual_information and cvxleak.measures.mutual_information"
    with pytest.raises(AttributeError, match=both):
        _ = cvxleak.mutual_information  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AttributeError, match=r"there is cvxleak\.tables\.possible_counts$"):
        _ = cvxleak.possible_counts  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AttributeError, match=r"has no attribute 'no_such_name'$"):
        _ = cvxleak.no_such_name  # pyright: ignore[reportAttributeAccessIssue]


def test_rooms_are_attributes_that_load_when_they_are_used():
    code = """
import sys, types
import cvxleak as cl
rooms = [name for name in dir(cl) if name not in cl.__all__]
assert not [name for name in rooms if f"cvxleak.{name}" in sys.modules]
for name in rooms: assert getattr(cl, name) is sys.modules[f"cvxleak.{name}"]
assert not hasattr(cl, "room")
print(*rooms)
"""
    pages = {path.stem for path in (ROOT / "docs" / "api").glob("*.md")} - {"index"}
    assert set(python(code, ROOT).split()) == pages


def test_type_checkers_see_every_room_that_is_an_attribute():
    tree = ast.parse(Path(cvxleak.__file__).read_text(encoding="utf-8"))
    seen = {
        alias.asname
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "cvxleak"
        for alias in node.names
    }
    assert seen == set(dir(cvxleak)) - set(cvxleak.__all__)


def test_lower_rooms_need_no_solver():
    lower = [name for name in MODULES if name.split(".")[1] not in SOLVING_ROOMS]
    assert "cvxleak.core.errors" in lower
    python(importing(lower, without=SOLVING), ROOT)


def test_no_module_needs_an_extra():
    python(importing(MODULES, without=OPTIONAL), ROOT)


def test_wheel_holds_the_package_and_nothing_else(wheel: Path):
    assert files(wheel) == files(ROOT)
    assert {"cvxleak/py.typed", "cvxleak/report/page.html", "cvxleak/report/page.js"} <= files(
        wheel
    )
    assert {path.name for path in wheel.iterdir() if path.suffix != ".dist-info"} == {"cvxleak"}
    assert any(path.name == "LICENSE" for path in wheel.rglob("*.dist-info/licenses/*"))


def test_sdist_holds_what_its_tests_need(tmp_path: Path):
    if not (ROOT / "cvxleak").is_dir():
        pytest.skip("an installed wheel is under test: there is nothing here to build one from")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    (built,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(built) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers()}
    top = {name.partition("/")[0] for name in names}
    assert top >= {
        "CHANGELOG.md",
        "CITATION.cff",
        "LICENSE",
        "Makefile",
        "README.md",
        "benchmarks",
        "cvxleak",
        "docs",
        "examples",
        "pyproject.toml",
        "tests",
    }
    assert not {"dist", ".venv", ".git"} & top
    assert not any(name.startswith("docs/_build") or "__pycache__" in name for name in names)
    assert {f"examples/{path.name}" for path in (ROOT / "examples").glob("*.*")} <= names


def test_wheel_states_the_version_of_the_code(wheel: Path):
    assert distribution(wheel).version == cvxleak.__version__ == __version__


def test_console_script_exists(wheel: Path):
    (script,) = distribution(wheel).entry_points.select(group="console_scripts")
    assert script.name == "cvxleak"
    assert callable(script.load())


def test_every_public_name_works_from_the_wheel(wheel: Path):
    code = "\n".join(
        [
            "import cvxleak",
            "print(cvxleak.__file__)",
            "assert len(set(cvxleak.__all__)) == len(cvxleak.__all__)",
            "assert set(cvxleak.__all__) < set(dir(cvxleak))",
            "for name in dir(cvxleak): getattr(cvxleak, name)",
        ]
    )
    assert Path(python(code, wheel).strip()).is_relative_to(wheel)
