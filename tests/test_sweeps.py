import json
import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from cvxleak.audit import leakage_curve, record_leakage
from cvxleak.capacities import Capacity, capacity
from cvxleak.core.errors import InfeasibleError, UnboundedError, ValidationError
from cvxleak.mechanisms import binary_symmetric, random_rounding
from cvxleak.model import Mechanism
from cvxleak.proofs import Certificate, verify
from cvxleak.queries import count
from cvxleak.sweeps import Sweep, SweepRow, sweep


def solve(flip):
    return capacity(binary_symmetric(flip))


def entropy(p):
    return -sum(q * math.log(q) for q in (p, 1 - p) if q)


FLIPS = [0.0, 0.1, 0.3, 0.5]
TRUTH = [math.log(2) - entropy(flip) for flip in FLIPS]


def close(results):
    return [row.upper for row in results] == pytest.approx(TRUTH, abs=1e-8)


def test_points_come_back_in_the_order_of_the_grid():
    results = sweep(solve, {"flip": FLIPS})
    assert [row.point for row in results] == [{"flip": flip} for flip in FLIPS]
    assert close(results)
    assert {row.status for row in results} == {"CERTIFIED"}
    assert all(row.lower <= row.upper and row.seconds >= 0 for row in results)
    assert len(results) == 4
    assert results.failed == ()
    frame = results.to_frame()
    assert list(frame["flip"]) == FLIPS
    assert list(frame["unit"]) == ["nats"] * 4


def test_grids_and_what_they_are_given_to():
    product = sweep(lambda a, b: a + b, {"a": [1, 2], "b": np.array([10, 20])})
    assert [row.upper for row in product] == [11, 21, 12, 22]
    assert product.rows[0].status == "COMPUTED"
    points = sweep(lambda a, b: a * b, [{"a": 2, "b": 3}, {"b": 5, "a": 1}])
    assert [row.lower for row in points] == [6, 5]
    # A statement of a problem is solved.
    statements = sweep(lambda flip: Capacity(binary_symmetric(flip)), {"flip": FLIPS})
    assert close(statements)


def test_a_failed_point_is_a_row():
    def solve(x):
        if x == 1:
            raise InfeasibleError("budget: at least 2")
        if x == 2:
            raise UnboundedError("no end")
        if x == 3:
            raise ZeroDivisionError("oops")
        return x

    results = sweep(solve, {"x": [0, 1, 2, 3, 4]})
    statuses = [row.status for row in results]
    assert statuses == ["COMPUTED", "INFEASIBLE", "UNBOUNDED", "FAILED", "COMPUTED"]
    assert results.rows[1].error == "budget: at least 2"
    assert "oops" in results.rows[3].error
    assert math.isnan(results.rows[3].upper)
    assert results.failed == (results.rows[3],)


def test_ctrl_c_ends_a_sweep_and_the_file_stays(tmp_path):
    def solve(x):
        if x == 2:
            raise KeyboardInterrupt
        return x

    path = tmp_path / "sweep.jsonl"
    with pytest.raises(KeyboardInterrupt):
        sweep(solve, {"x": [0, 1, 2, 3]}, path=path)
    again = []
    results = sweep(lambda x: again.append(x) or x + 0.5, {"x": [0, 1, 2, 3]}, path=path)
    assert again == [2, 3]
    assert [row.upper for row in results] == [0, 1, 2.5, 3.5]


def test_failed_points_are_tried_again_and_infinite_ones_kept(tmp_path):
    path = tmp_path / "sweep.jsonl"
    grid = {"x": [1.0, 0.0, 0.1 + 0.2]}
    broken = sweep(lambda x: 1 / x, grid, path=path)
    assert [row.status for row in broken] == ["COMPUTED", "FAILED", "COMPUTED"]
    called = []
    mended = sweep(lambda x: called.append(x) or math.inf, grid, path=path)
    assert called == [0.0]
    assert [row.upper for row in mended] == [1.0, math.inf, 1 / (0.1 + 0.2)]
    assert [row.upper for row in sweep(called.append, grid, path=path)] == [
        row.upper for row in mended
    ]
    assert called == [0.0]


def test_a_line_cut_short_is_computed_again(tmp_path):
    path = tmp_path / "sweep.jsonl"
    sweep(lambda x: x, {"x": [1, 2, 3]}, path=path)
    whole = path.read_text()
    path.write_text(whole[:-20])
    assert [row.upper for row in sweep(lambda x: 10 * x, {"x": [1, 2, 3]}, path=path)] == [1, 2, 30]
    assert [row.upper for row in sweep(lambda x: -x, {"x": [1, 2, 3]}, path=path)] == [1, 2, 30]


def test_a_heading_cut_short_is_finished(tmp_path):
    path = tmp_path / "sweep.jsonl"
    sweep(lambda x: x, {"x": [1]}, path=path)
    whole = path.read_text()
    heading = whole.index("\n") + 1
    for kept in (0, 1, heading - 1, heading):
        path.write_text(whole[:kept])
        assert [row.upper for row in sweep(lambda x: x, {"x": [1]}, path=path)] == [1]
        assert path.read_text()[:heading] == whole[:heading]
        assert path.read_text().count("\n") == 2


@pytest.mark.parametrize(
    ("content", "options"),
    [
        ("", {"title": "two"}),
        (None, {"title": "two"}),
        ("hello\n", {}),
        (b"\xff\xfe", {}),
    ],
)
def test_files_of_something_else_are_left_alone(tmp_path, content, options):
    path = tmp_path / "sweep.jsonl"
    if content is None or content == "":
        sweep(lambda x: x, {"x": [1]}, path=path, title="one")
    else:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    before = path.read_bytes()
    with pytest.raises(ValidationError, match="path"):
        sweep(lambda x: x, {"x": [1]}, path=path, **options)
    assert path.read_bytes() == before
    with pytest.raises(ValidationError, match="path"):
        sweep(lambda y: y, {"y": [1]}, path=path, title="one")


@pytest.mark.parametrize(
    ("grid", "options", "found"),
    [
        ({}, {}, "grid: found no points"),
        ({"x": []}, {}, "grid: found no points"),
        ([], {}, "grid: found no points"),
        ([{}], {}, "grid: found no points"),
        ([1, 2], {}, "grid: found a point that is not a mapping"),
        (3, {}, "grid: expected a sequence"),
        ({"x": {1, 2}}, {}, "grid.*has no order"),
        ({"x": [1, 1.0]}, {}, None),
        ({"x": [1, 1]}, {}, "grid: found a point twice"),
        ([{"x": 1}, {"y": 1}], {}, "grid: found points with different names"),
        ({"x": [1]}, {"jobs": 0}, "jobs: found 0"),
        ({"x": [1]}, {"jobs": "two"}, "jobs"),
    ],
)
def test_bad_arguments(grid, options, found):
    if found is None:
        assert len(sweep(lambda x: x, grid, **options)) == 2
        return
    with pytest.raises(ValidationError, match=found):
        sweep(lambda x: x, grid, **options)


def test_values_that_no_file_holds(tmp_path):
    path = tmp_path / "sweep.jsonl"
    assert len(sweep(lambda x: 1, {"x": [(1, 2), (3, 4)]})) == 2
    with pytest.raises(ValidationError, match="grid: found a value that JSON cannot hold"):
        sweep(lambda x: 1, {"x": [frozenset([1])]}, path=path)
    assert not path.exists()
    with pytest.raises(ValidationError, match="path: cannot"):
        sweep(lambda x: 1, {"x": [1]}, path=tmp_path / "no" / "folder")


def test_progress_is_told_of_every_new_row(tmp_path):
    path = tmp_path / "sweep.jsonl"
    seen = []
    sweep(lambda x: x, {"x": [1]}, path=path)
    sweep(
        lambda x: x,
        {"x": [1, 2, 3]},
        path=path,
        progress=lambda row, done, total: seen.append((row.point["x"], done, total)),
    )
    assert seen == [(2, 2, 3), (3, 3, 3)]


def test_rows_are_values():
    row = SweepRow({"x": 1}, 0.5, math.inf, "nats", "BRACKETED", 0.1)
    assert SweepRow.from_dict(json.loads(json.dumps(row.to_dict()))) == row
    with pytest.raises(TypeError):
        row.point["x"] = 2
    assert len(Sweep()) == 0


def test_certificates_are_kept_before_their_rows(tmp_path):
    path, folder = tmp_path / "sweep.jsonl", tmp_path / "new" / "proofs"
    results = sweep(solve, {"flip": FLIPS}, path=path, certificates=folder)
    assert sorted(f.stem for f in folder.iterdir()) == sorted(row.certificate for row in results)
    for row in results:
        certificate = Certificate.load(folder / f"{row.certificate}.json")
        assert certificate.hash == row.certificate
        assert (certificate.lower, certificate.upper) == (row.lower, row.upper)
        assert verify(certificate).passed
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    assert [line["certificate"] for line in lines] == [row.certificate for row in results]
    # A row whose certificate is gone is computed again, and no other.
    (folder / f"{results.rows[2].certificate}.json").unlink()
    again = []
    mended = sweep(
        lambda flip: again.append(flip) or solve(flip),
        {"flip": FLIPS},
        path=path,
        certificates=folder,
    )
    assert again == [FLIPS[2]]
    assert mended.rows[2].certificate == results.rows[2].certificate
    assert len(list(folder.iterdir())) == 4
    # Without the option rows name none.
    assert {row.certificate for row in sweep(solve, {"flip": FLIPS})} == {""}


def test_points_without_a_certificate_are_not_computed_again(tmp_path):
    path, folder = tmp_path / "sweep.jsonl", tmp_path / "proofs"

    def solve(x):
        if x == 0:
            raise InfeasibleError("no")
        return float(x)

    sweep(solve, {"x": [0, 1]}, path=path, certificates=folder)
    called = []
    sweep(called.append, {"x": [0, 1]}, path=path, certificates=folder)
    assert called == []
    with pytest.raises(ValidationError, match="certificates: cannot make the folder"):
        sweep(solve, {"x": [1]}, certificates=path)


def test_rows_of_earlier_files_name_no_certificate():
    old = SweepRow({"x": 1}, 0.5, 0.6, "nats", "BRACKETED", 0.1).to_dict()
    del old["certificate"]
    assert SweepRow.from_dict(old).certificate == ""


def test_curves_are_solved_at_once():
    seen = []

    def curve(a, b):
        seen.append((a, b))
        return [a * value for value in b]

    results = sweep(curve, {"b": [1, 2, 3], "a": [10, 100]}, along="b")
    assert seen == [(10, (1, 2, 3)), (100, (1, 2, 3))]
    assert [row.upper for row in results] == [10, 100, 20, 200, 30, 300]
    with pytest.raises(ValidationError, match=r"along: found 'c'; allowed: \['a', 'b'\]"):
        sweep(curve, {"b": [1], "a": [1]}, along="c")


def test_one_bad_point_does_not_spoil_its_curve(tmp_path):
    def curve(x):
        if 0 in x:
            raise InfeasibleError("no")
        if 9 in x:
            return []
        return [1 / value for value in x]

    path = tmp_path / "sweep.jsonl"
    results = sweep(curve, {"x": [1, 0, 2]}, along="x", path=path)
    assert [row.status for row in results] == ["COMPUTED", "INFEASIBLE", "COMPUTED"]
    assert results.rows[2].upper == 0.5
    # Only what the file does not hold is asked for.
    seen = []
    sweep(lambda x: seen.append(x) or x, {"x": [1, 0, 2, 4, 5]}, along="x", path=path)
    assert seen == [(4, 5)]
    short = sweep(curve, {"x": [1, 9]}, along="x")
    assert [row.status for row in short] == ["COMPUTED", "FAILED"]


def test_a_curve_shares_its_search():
    mechanism = Mechanism(count(6), random_rounding(6, 3))
    floors = [0.0, 3.0, 3.9, 4.1]
    curve = sweep(
        lambda floor: leakage_curve(mechanism, floor).bounds, {"floor": floors}, along="floor"
    )
    single = sweep(lambda floor: record_leakage(mechanism, floor), {"floor": floors})
    for one, other in zip(curve, single, strict=True):
        assert one.lower <= other.upper
        assert other.lower <= one.upper
        assert one.status == other.status == "CERTIFIED"


def test_a_program_with_parameters_is_compiled_once(monkeypatch):
    cp = pytest.importorskip("cvxpy")
    compiled = []
    build = cp.Problem.get_problem_data

    def counting(self, *arguments, **options):
        compiled.append(self._cache.param_prog is None)
        return build(self, *arguments, **options)

    monkeypatch.setattr(cp.Problem, "get_problem_data", counting)

    def program():
        x, bound = cp.Variable(), cp.Parameter()
        problem = cp.Problem(cp.Minimize(x), [x >= bound])
        assert problem.is_dpp()

        def solve(value):
            bound.value = value
            return problem.solve(solver="CLARABEL")

        return solve

    results = sweep(program, {"value": [1.0, 2.0, 3.0]}, per_worker=True)
    assert [row.upper for row in results] == pytest.approx([1, 2, 3], abs=1e-6)
    assert compiled == [True, False, False]


COUNTED = """
import os, pathlib
def make(folder):
    def compiled():
        (pathlib.Path(folder) / f"{os.getpid()}-{os.urandom(4).hex()}").touch()
        return lambda x: 2.0 * x
    return compiled
"""


@pytest.fixture
def counted(tmp_path, monkeypatch):
    """A function that leaves a file behind each time that it is called."""
    namespace = {}
    exec(COUNTED, namespace)
    folder = tmp_path / "calls"
    folder.mkdir()
    return namespace["make"](str(folder)), folder


def test_each_worker_compiles_once(counted):
    make, folder = counted
    results = sweep(make, {"x": list(range(12))}, per_worker=True)
    assert [row.upper for row in results] == [2 * x for x in range(12)]
    assert len(list(folder.iterdir())) == 1
    results = sweep(make, {"x": list(range(12))}, per_worker=True, jobs=2)
    assert [row.upper for row in results] == [2 * x for x in range(12)]
    assert 1 <= len(list(folder.iterdir())) - 1 <= 2


def test_two_processes_give_the_same(tmp_path):
    path = tmp_path / "sweep.jsonl"
    results = sweep(solve, {"flip": FLIPS}, jobs=2, path=path)
    assert close(results)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == 5
    assert sorted(line["point"]["flip"] for line in lines[1:]) == FLIPS


@pytest.mark.filterwarnings("default")  # the cluster's own
def test_a_cluster_gives_the_same(tmp_path):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address=None,
        ) as cluster,
        distributed.Client(cluster),
    ):
        results = sweep(
            lambda flip: capacity(binary_symmetric(flip)),
            {"flip": FLIPS},
            jobs=-1,
            backend="dask",
            certificates=tmp_path,
        )
    assert close(results)
    # The proofs come back from the workers.
    assert {f.stem for f in tmp_path.iterdir()} == {row.certificate for row in results}


def test_a_killed_sweep_goes_on_without_computing_again(tmp_path):
    path, log = tmp_path / "sweep.jsonl", tmp_path / "log"
    program = f"""
import time
from cvxleak.sweeps import sweep
def solve(x):
    with open({os.fspath(log)!r}, "a") as file:
        file.write(f"{{x}}\\n")
    time.sleep(0.05)
    return x
sweep(solve, {{"x": list(range(200))}}, path={os.fspath(path)!r})
"""
    process = subprocess.Popen([sys.executable, "-c", program])
    while process.poll() is None and not (log.exists() and len(log.read_text()) > 6):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    tried = [int(x) for x in log.read_text().split()]
    assert 2 <= len(tried) < 200
    again = []
    results = sweep(lambda x: again.append(x) or x, {"x": list(range(200))}, path=path)
    assert [row.upper for row in results] == list(range(200))
    # At most the point that was being solved is solved twice.
    assert again in (list(range(len(tried), 200)), list(range(len(tried) - 1, 200)))


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="no signal masks here")
def test_processes_do_not_hear_of_ctrl_c():
    def blocked(x):
        return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])

    assert [row.upper for row in sweep(blocked, {"x": [1, 2]}, jobs=2)] == [1, 1]
    assert not blocked(0)  # this one does


def test_joblib_is_only_needed_for_more_than_one(monkeypatch):
    monkeypatch.setitem(sys.modules, "joblib", None)
    assert len(sweep(lambda x: x, {"x": [1, 2]})) == 2
    with pytest.raises(ValidationError, match=r"pip install 'cvxleak\[parallel\]'"):
        sweep(lambda x: x, {"x": [1, 2]}, jobs=2)
