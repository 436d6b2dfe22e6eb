"""`cvxleak sweep`: points, files that go on, pictures, and what is wrong with what is given."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import Result

from cvxleak.cli.spec_file import SpecFile
from cvxleak.cli.sweeping import choose_number, read_grid
from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import as_written
from cvxleak.problem import Problem
from cvxleak.problem.bound import Bound
from cvxleak.proofs import Certificate

EXAMPLES = Path(__file__).parents[2] / "examples"
LOCAL = '[space]\nalphabets = [["x", "y"]]\n[mechanism]\nkind = "binary_symmetric"\nflip = 0.25\n'
PRIOR = "[prior]\ncounts = { x = 1, y = 3 }\n"

Run = Callable[..., Result]
Write = Callable[..., Path]


def rows(result: Result) -> list[dict]:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)["rows"]


def capacity(flip: float) -> float:
    return math.log(2) + flip * math.log(flip) + (1 - flip) * math.log(1 - flip)


def test_an_audit(run: Run, write: Write):
    result = run("sweep", write(LOCAL), "--over", "mechanism.flip=0.1,0.25", "--json", "-")
    for row, flip in zip(rows(result), (0.1, 0.25), strict=True):
        assert row["point"] == {"mechanism.flip": flip}
        assert row["lower"] - 1e-9 <= capacity(flip) <= row["upper"] + 1e-9
        assert (row["status"], row["unit"], row["error"]) == ("CERTIFIED", "nats", "")
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
        "of",
        "tol",
        "over",
        "rows",
    ]
    assert (document["of"], document["over"]) == ("audit", {"mechanism.flip": [0.1, 0.25]})


def test_all_combinations_in_bits(run: Run, write: Write):
    result = run(
        "sweep",
        write(LOCAL),
        "--over",
        "adversary.entropy_floors=0,1",
        "--over",
        "mechanism.flip=0.1,0.25",
        "--units",
        "bits",
        "--json",
        "-",
    )
    found = rows(result)
    assert [list(row["point"].values()) for row in found] == [
        [floor, flip] for floor in (0, 1) for flip in (0.1, 0.25)
    ]
    for row in found:
        # One bit of doubt is the uniform prior, which is the worst for a symmetric channel.
        exact = capacity(row["point"]["mechanism.flip"]) / math.log(2)
        assert row["unit"] == "bits"
        assert row["lower"] - 1e-7 <= exact <= row["upper"] + 1e-7


@pytest.mark.parametrize(
    ("name", "over", "number"),
    [
        ("parity4_laplace.toml", "adversary.entropy_floors=2", "audit"),
        ("krr_envelope.toml", "envelope.delta=0.9", "envelope"),
        ("krr_envelope.toml", "envelope.epsilon=0.8", "envelope"),
        ("caithness_local_dp.toml", "local_dp.distortion_budget=0.3", "local-dp"),
    ],
)
def test_every_number_is_that_of_its_command(run: Run, name: str, over: str, number: str):
    rough = ["--tol", 0.01, "--json", "-"]
    (row,) = rows(run("sweep", EXAMPLES / name, "--over", over, *rough))
    one = json.loads(run(number, EXAMPLES / name, *rough).stdout)
    key, value = next(iter(row["point"].items()))
    matching = [
        q
        for q in one["quantities"]
        if q["status"] == "CERTIFIED"
        and ("local" in number or q.get(key.split(".")[1].rstrip("s")) == value)
    ]
    assert (row["lower"], row["upper"]) == pytest.approx(
        (matching[0]["lower"], matching[0]["upper"]), rel=1e-5
    )


def test_local_dp_and_design_in_bits(run: Run, write: Write):
    sources = '[sources]\nkind = "laws"\nlaws = [[0.5, 0.5]]\n[local_dp]\nepsilon = 1\n'
    result = run(
        "sweep", write(sources), "--over", "local_dp.epsilon=1", "--units", "bits", "--json", "-"
    )
    assert rows(result)[0]["upper"] == pytest.approx(1 / 3)  # e^epsilon = 2
    design = (
        '[query]\nkind = "parity"\nrecords = 1\n[distortion]\nkind = "hamming"\n[design]\n'
        'minimize = "leakage"\nbudget = 0\nentropy_floor = 0\n'
    )
    path = write(design, name="design.toml")
    found = rows(run("sweep", path, "--over", "design.budget=0.1,0.5", "--json", "-"))
    assert found[0]["upper"] == pytest.approx(capacity(0.1), rel=2e-3)
    assert found[1]["upper"] == 0


def test_a_file_goes_on_where_it_stopped(run: Run, write: Write, tmp_path: Path):
    path, results = write(LOCAL), tmp_path / "results.jsonl"

    def sweep(*flips: float) -> list[dict]:
        over = f"mechanism.flip={','.join(map(str, flips))}"
        return rows(run("sweep", path, "--over", over, "--results", results, "--json", "-"))

    first = sweep(0.1, 0.2)
    text = results.read_text()
    assert len(text.splitlines()) == 3
    # The lines are taken as they are: nothing is computed again.
    assert sweep(0.1, 0.2) == first
    assert results.read_text() == text
    # A line cut short by a crash is computed again, and a new point is added.
    results.write_text(text[:-20])
    third = sweep(0.1, 0.2, 0.3)
    assert third[0] == first[0]
    assert [row["upper"] for row in third[:2]] == [row["upper"] for row in first]
    assert len(results.read_text().splitlines()) == 5


def test_a_file_of_something_else_is_refused(run: Run, write: Write, tmp_path: Path):
    results = tmp_path / "results.jsonl"
    arguments = ["--over", "mechanism.flip=0.1", "--results", results]
    assert run("sweep", write(LOCAL), *arguments).exit_code == 0
    before = results.read_text()
    constant = LOCAL.replace('"binary_symmetric"\nflip = 0.25', '"constant"')
    for content, other in (
        (LOCAL + "# another", arguments),
        (LOCAL, [*arguments, "--units", "bits"]),
        (LOCAL, [*arguments, "--tol", 0.01]),
        (constant, ["--over", "mechanism.kind='identity'", "--results", results]),
    ):
        result = run("sweep", write(content), *other)
        assert result.exit_code == 2
        assert result.stderr.startswith("cvxleak: --results: ")
        assert "does not hold the sweep" in result.stderr
        assert len(result.stderr.splitlines()) == 1
        assert results.read_text() == before
    assert run("sweep", write(LOCAL), *arguments).exit_code == 0


def test_another_file_that_the_spec_names_is_another_sweep(run: Run, write: Write, tmp_path: Path):
    table, results = tmp_path / "prior.csv", tmp_path / "results.jsonl"
    table.write_text("x,1\ny,3\n")
    path = write(LOCAL, '[prior]\nfile = "prior.csv"\n[envelope]\ndelta = [0.5]\n')
    arguments = ["sweep", path, "--over", "mechanism.flip=0.1", "--results", results]
    assert run(*arguments).exit_code == 0
    assert run(*arguments).exit_code == 0
    table.write_text("x,1\ny,4\n")
    assert run(*arguments).exit_code == 2


def test_a_failed_point_is_not_fatal(run: Run, write: Write, tmp_path: Path):
    path, results = write(LOCAL), tmp_path / "results.jsonl"
    over = "mechanism.flip=0.1,2"
    result = run("sweep", path, "--over", over, "--results", results)
    assert result.exit_code == 0
    assert "failed" in result.stdout
    text = " ".join(result.stdout.split())
    assert "At mechanism.flip = 2: " in text
    assert "flip: found 2.0; it must be in [0, 1]" in text
    good, bad = rows(run("sweep", path, "--over", over, "--results", results, "--json", "-"))
    assert good["status"] == "CERTIFIED"
    assert (bad["status"], bad["lower"]) == ("FAILED", None)
    floors = rows(run("sweep", path, "--over", "adversary.entropy_floors=0,3", "--json", "-"))
    assert [row["status"] for row in floors] == ["CERTIFIED", "INFEASIBLE"]
    # If nothing works it is the user who has to do something.
    result = run("sweep", path, "--over", "mechanism.flip=2,3")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "flip: found 2.0" in result.stderr


def test_several_processes(run: Run, write: Write):
    pytest.importorskip("joblib")
    over = ["--over", "mechanism.flip=0.1,0.2,0.3", "--json", "-"]
    alone, together = (rows(run("sweep", write(LOCAL), *over, "--jobs", jobs)) for jobs in (1, 2))
    for one, other in zip(alone, together, strict=True):
        one.pop("seconds"), other.pop("seconds")
        assert one == other


def test_certificates_of_every_point(run: Run, write: Write, tmp_path: Path):
    folder = tmp_path / "proofs"
    over = ["--over", "mechanism.flip=0.1,0.25", "--certificates", folder, "--json", "-"]
    found = rows(run("sweep", write(LOCAL), *over, "--units", "bits"))
    assert sorted(f"{row['certificate']}.json" for row in found) == sorted(
        path.name for path in folder.iterdir()
    )
    for row in found:
        path = folder / f"{row['certificate']}.json"
        assert run("verify", path).exit_code == 0
        # The row is in bits, the proof in nats.
        claim = Certificate.load(path)
        assert row["upper"] * math.log(2) == pytest.approx(claim.upper, rel=1e-12)


@pytest.mark.parametrize(
    ("spec", "key", "values"),
    [
        (
            '[query]\nkind = "count"\nrecords = 6\n[mechanism]\nkind = "random_rounding"\n'
            "base = 3\n[adversary]\nunit = 'bits'\n",
            "adversary.entropy_floors",
            "5.9,0,5.5,7",
        ),
        (
            '[query]\nkind = "parity"\nrecords = 2\n[distortion]\nkind = "hamming"\n[design]\n'
            'minimize = "leakage"\nbudget = 0\nentropy_floor = 0\n',
            "design.budget",
            "0.2,0.05,0.5",
        ),
        (
            '[query]\nkind = "parity"\nrecords = 2\n[distortion]\nkind = "hamming"\n[design]\n'
            'minimize = "distortion"\nbudget = 0\nentropy_floor = 0\nunit = "bits"\n',
            "design.budget",
            "0.2,0.5",
        ),
        (
            "[problem]\nkind = 'min-leakage'\nbudget = 0\nentropy_floor = 0\n"
            '[query]\nkind = "parity"\nrecords = 2\n[distortion]\nkind = "hamming"\n',
            "problem.budget",
            "0.2,0.05,0.5",
        ),
        (
            "[problem]\nkind = 'record-leakage'\nentropy_floor = 0\nunit = 'bits'\n"
            '[query]\nkind = "count"\nrecords = 6\n[mechanism]\nkind = "random_rounding"\n'
            "base = 3\n",
            "problem.entropy_floor",
            "0,5.5",
        ),
    ],
)
def test_a_curve_is_what_its_points_are(run: Run, write: Write, spec: str, key: str, values: str):
    arguments = ["sweep", write(spec), "--over", f"{key}={values}", "--json", "-"]
    one_by_one = rows(run(*arguments))
    at_once = rows(run(*arguments, "--along", key))
    for one, other in zip(one_by_one, at_once, strict=True):
        assert one["point"] == other["point"]
        assert one["status"] == other["status"]
        if one["lower"] is not None:
            assert one["lower"] <= other["upper"] + 1e-12
            assert other["lower"] <= one["upper"] + 1e-12
    # A floor above the largest entropy is the only one that suffers.
    assert [row["status"] for row in at_once].count("INFEASIBLE") == values.count("7")


@pytest.mark.parametrize("tol", [[], ["--tol", 1e-2]])
def test_a_curve_is_not_solved_point_by_point(
    run: Run, write: Write, monkeypatch: pytest.MonkeyPatch, tol: list
):
    monkeypatch.setattr(Problem, "solve", None)
    spec = write('[query]\nkind = "count"\nrecords = 3\n[mechanism]\nkind = "identity"\n')
    key = "adversary.entropy_floors"
    arguments = ["sweep", spec, "--over", f"{key}=0,1", "--along", key, "--json", "-", *tol]
    assert [row["status"] for row in rows(run(*arguments))] == ["CERTIFIED"] * 2


def test_a_curve_of_groups_is_solved_point_by_point(run: Run, write: Write):
    spec = write('[query]\nkind = "count"\nrecords = 3\n[mechanism]\nkind = "identity"\n')
    over = ["--over", "adversary.entropy_floors=0,1", "--over", "audit.group_sizes=2"]
    found = rows(run("sweep", spec, *over, "--along", "adversary.entropy_floors", "--json", "-"))
    assert [row["status"] for row in found] == ["CERTIFIED"] * 2
    assert found[0]["upper"] == pytest.approx(math.log(4))


@pytest.mark.slow  # tests/test_sweeps.py has one from Python
@pytest.mark.filterwarnings("default")  # the cluster's own
def test_a_cluster(run: Run, write: Write, tmp_path: Path):
    distributed = pytest.importorskip("distributed")
    alone = rows(run("sweep", write(LOCAL), "--over", "mechanism.flip=0.1,0.2,0.3", "--json", "-"))
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address
        over = ["--over", "mechanism.flip=0.1,0.2,0.3", "--cluster", address]
        kept = ["--results", tmp_path / "r.jsonl", "--certificates", tmp_path / "proofs"]
        together = rows(run("sweep", write(LOCAL), *over, *kept, "--json", "-"))
        assert [path.stem for path in (tmp_path / "proofs").iterdir()]
    for one, other in zip(alone, together, strict=True):
        assert (one["lower"], one["upper"]) == (other["lower"], other["upper"])
        assert (tmp_path / "proofs" / f"{other['certificate']}.json").is_file()
    assert len((tmp_path / "r.jsonl").read_text().splitlines()) == 4


@pytest.mark.filterwarnings("default")
def test_a_cluster_that_is_not_there(run: Run, write: Write, monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("cvxleak.cli.commands.sweep.CONNECTING", 0.5)
    over = ["--over", "mechanism.flip=0.1", "--cluster"]
    for address in ("tcp://127.0.0.1:9", "nonsense://x"):
        result = run("sweep", write(LOCAL), *over, address)
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"--cluster: no scheduler answers at {address}" in result.stderr
    monkeypatch.setitem(sys.modules, "distributed", None)
    result = run("sweep", write(LOCAL), *over, "tcp://127.0.0.1:9")
    assert "--cluster: it needs Dask and joblib: pip install 'cvxleak[parallel]'" in result.stderr


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_sweep_goes_on(run: Run, write: Write, tmp_path: Path, jobs: int):
    results = tmp_path / "results.jsonl"
    flips = [round(0.001 * i, 3) for i in range(1, 120)]
    over = ["--over", f"mechanism.flip={','.join(map(str, flips))}"]
    arguments = ["sweep", str(write(LOCAL)), *over, "--results", str(results)]
    # In a session of its own, so that the kill is for the workers as well.
    process = subprocess.Popen(
        [sys.executable, "-m", "cvxleak", *arguments, "--jobs", str(jobs)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    # As long as it takes on this machine.
    while process.poll() is None and not (results.exists() and results.read_text().count("\n") > 4):
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    before = results.read_text()
    kept = [line for line in before.split("\n")[:-1]]
    assert 4 < len(kept) < 120
    found = rows(run(*arguments, "--json", "-"))
    assert [row["point"]["mechanism.flip"] for row in found] == flips
    assert {row["status"] for row in found} == {"CERTIFIED"}
    # What was there is still there, as it was, and nothing was computed twice.
    after = results.read_text()
    assert after.startswith("\n".join(kept))
    lines = [json.loads(line) for line in after.split("\n")[1:] if line.endswith("}")]
    points = [line["point"]["mechanism.flip"] for line in lines]
    assert sorted(points) == flips


def test_the_time_limit_is_per_point(run: Run, write: Write):
    long = (
        '[query]\nkind = "count"\nrecords = 30\n[mechanism]\nkind = "truncated_geometric"\n'
        "epsilon = 0.1\n"
    )
    over = ["--over", "adversary.entropy_floors=15,16", "--time-limit", 0.2, "--json", "-"]
    found = rows(run("sweep", write(long), *over))
    assert [row["status"] for row in found] == ["BRACKETED"] * 2


def test_the_time_limit_holds_for_local_dp(run: Run, write: Write, monkeypatch: pytest.MonkeyPatch):
    given: list[float | None] = []

    def solved(
        self: Problem, *, tol: float | None, time_limit: float | None, work_limit: float | None
    ) -> Bound:
        given.append(time_limit)
        assert tol is None
        return Bound.proved(self.name, 0.0, 0.0, tol=self.tolerance)

    monkeypatch.setattr(Problem, "solve", solved)
    laws = '[sources]\nkind = "laws"\nlaws = [[0.6, 0.4], [0.4, 0.6]]\n[local_dp]\n'
    for key in ("epsilon", "distortion_budget"):
        over = ["--over", f"local_dp.{key}=0.1,0.2", "--time-limit", 7, "--json", "-"]
        assert len(rows(run("sweep", write(f"{laws}{key} = 0.3\n"), *over))) == 2
    assert given == [7.0] * 4


def test_pictures(run: Run, write: Write, tmp_path: Path):
    pytest.importorskip("matplotlib")
    path = write(LOCAL)
    for name, over in (
        ("curve.png", ["--over", "mechanism.flip=0.3,0.1,2"]),
        ("curves.svg", ["--over", "mechanism.flip=0.3,0.1", "--over", "audit.records=0"]),
    ):
        picture = tmp_path / name
        assert run("sweep", path, *over, "--plot", picture).exit_code == 0
        assert picture.stat().st_size > 1000
    assert b"audit.records = 0" in picture.read_bytes()
    nothing = run("sweep", path, "--over", "adversary.entropy_floors=3", "--plot", picture)
    assert nothing.exit_code == 2
    assert "--plot: no point has a bound" in nothing.stderr


def test_grids():
    assert read_grid(["a.b=1,2.5", "c.d=true", "e.f=x.csv, y.csv", 'g.h="p","q"']) == {
        "a.b": [1, 2.5],
        "c.d": [True],
        "e.f": ["x.csv", "y.csv"],
        "g.h": ["p", "q"],
    }
    for text in ("a.b", "=1", "a.b=", "a.b= ", "a.b=[1],[2]", "a.b={ c = 1 }"):
        with pytest.raises(ValidationError, match=r"^--over: "):
            read_grid([text])
    with pytest.raises(ValidationError, match=r"--over: a\.b is there twice"):
        read_grid(["a.b=1", "a.b=2"])


def test_the_spec_decides_which_number(write: Write):
    assert choose_number(SpecFile(write(LOCAL))) == "audit"
    assert choose_number(SpecFile(write(LOCAL, "[envelope]\ndelta = [0.1]"))) == "envelope"
    both = SpecFile(write("[envelope]\ndelta = [0.1]\n[local_dp]\nepsilon = 1.0\n"))
    with pytest.raises(ValidationError, match="--of envelope or local-dp is needed"):
        choose_number(both)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--over", "mechanism.flop=1"], "spec.toml: mechanism.flop: unknown key; did you mean"),
        (["--over", "mechanism.flip=x"], "spec.toml: mechanism.flip: expected a number, found 'x'"),
        (["--over", "title=x"], "spec.toml: title: a key of a section is needed"),
        (["--over", "mechanism=1"], "spec.toml: mechanism: a key of a section is needed"),
        (["--over", "mechanism.flip=0.1,0.1"], "--over: found a point twice"),
        (["--over", "mechanism.flip"], "--over: found 'mechanism.flip'; section.key=value"),
        (["--over", "mechanism.flip=0.1", "--of", "x"], "--of: found x; allowed: audit, envelope"),
        (["--over", "mechanism.flip=0.1", "--of", "envelope"], "spec.toml: envelope needs [prior]"),
        (["--over", "mechanism.flip=0.1", "--jobs", "0"], "--jobs: found 0; it must be"),
        (["--over", "mechanism.flip=0.1", "--tol", "2"], "--tol: found 2.0"),
        (["--over", "mechanism.flip=0.1", "--plot", "x.txt"], "--plot: found x.txt; its end"),
        (["--over", "mechanism.flip=0.1", "--results", "no/x"], "--results: there is no folder no"),
        (["--over", "mechanism.flip=0.1", "--results", "-"], "--results: needs the path of a file"),
        (["--over", "mechanism.kind=x,y", "--plot", "x.png"], "--plot: the values of the first"),
        (["--over", "mechanism.flip=0.1", "--along", "mechanism.flip"], "--along: found mechanism"),
        (
            ["--over", "mechanism.flip=0.1", "--cluster", "x", "--jobs", "2"],
            "--jobs: cannot be combined with --cluster",
        ),
        (["--over", "mechanism.flip=0.1", "--certificates", "spec.toml"], "--certificates: spec"),
        (["--over", "a.b=1", "--over", "c.d=1", "--over", "e.f=1", "--plot", "x.png"], "--plot: "),
        (["--over", "audit.group_sizes=1", "--over", "prior.file=no.csv"], "spec.toml: prior.file"),
    ],
)
def test_errors_are_one_message(
    run: Run, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    write(LOCAL)
    result = run("sweep", "spec.toml", *arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith(f"cvxleak: {message}"), result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["spec.toml"]


def test_a_point_is_about_one_number(run: Run, write: Write):
    path = write(LOCAL, "[adversary]\nentropy_floors = [0, 0.5]\n")
    result = run("sweep", path, "--over", "mechanism.flip=0.1")
    assert result.exit_code == 2
    assert "adversary.entropy_floors: found 2 values; a point of a sweep has one" in result.stderr


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_one_ctrl_c_ends_a_sweep_and_the_cut_point_is_not_stored(run, write, tmp_path, jobs):
    spec = write(
        '[query]\nkind = "count"\nrecords = 30\n[mechanism]\nkind = "truncated_geometric"\n'
        "epsilon = 0.1\n[adversary]\nunit = 'nats'\n"
    )
    results = tmp_path / "rows.jsonl"
    over = ["--over", "adversary.entropy_floors=0,15", "--results", str(results)]
    over += ["--time-limit", "100000"]
    code = "from cvxleak.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, "sweep", str(spec), *over, "--jobs", str(jobs)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )

    def stored() -> list[str]:
        return results.read_text().splitlines()[1:] if results.exists() else []

    while not stored():  # the first point is solved at once, the second one is not
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    out, err = process.communicate()
    assert process.returncode == 130
    assert not out
    assert b"interrupted after" in err
    assert b"of 2 points" in err
    assert len(stored()) == 1
    again = run("sweep", spec, *over[:-1], "0.1", "--json", "-")
    assert [row["point"]["adversary.entropy_floors"] for row in rows(again)] == [0, 15]
    assert len(stored()) == 2


def test_ctrl_c_before_the_first_point_promises_nothing(run, write, tmp_path, monkeypatch):
    def pressed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("cvxleak.sweeps.sweep", pressed)
    over = ["--over", "mechanism.flip=0.1,0.2", "--results", tmp_path / "rows.jsonl"]
    result = run("sweep", write(LOCAL), *over)
    assert result.exit_code == 130
    assert result.stderr == "cvxleak: interrupted after 0 of 2 points\n"


def test_values_are_read_as_written():
    long, text = "0.33333333333333333333", "1/3"
    for found, value in ((long, long), (f'"{text}"', text), ("0.3", "0.3")):
        (read,) = read_grid([f"local_dp.epsilon={found}"])["local_dp.epsilon"]
        assert as_written(read) == as_written(value)
