"""Sweeps: one problem at many points, on one processor, on several, or on a cluster.

Each result is written as it comes, a line of JSON, so that what was computed survives whatever
happens, and the same call goes on where it stopped.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from cvxleak._validation import in_order, plain_label, short, whole_number
from cvxleak.certificates import Certificate
from cvxleak.errors import CvxleakError, InfeasibleError, UnboundedError, ValidationError
from cvxleak.result import Bound

__all__ = ["Sweep", "SweepRow", "sweep"]

FORMAT = "cvxleak-sweep"
VERSION = 1

Point = Mapping[str, Any]
Solve = Callable[..., Any]


@dataclass(frozen=True)
class SweepRow:
    """The result at one point.

    Attributes
    ----------
    point : mapping
        The arguments, by name.
    lower, upper : float
        The ends of the bound; NaN where there is none.
    unit : str
    status : str
        CERTIFIED or BRACKETED for a bound, COMPUTED for a plain number, INFEASIBLE, UNBOUNDED or
        FAILED.
    seconds : float
    error : str
        What went wrong; empty if nothing did.
    certificate : str
        The hash of the stored certificate; empty if none is stored.

    Examples
    --------
    >>> from cvxleak.sweeps import SweepRow
    >>> SweepRow({"flip": 0.1}, 0.368, 0.369, "nats", "CERTIFIED", 0.01).failed
    False
    """

    point: Mapping[str, Any]
    lower: float
    upper: float
    unit: str
    status: str
    seconds: float
    error: str = ""
    certificate: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", MappingProxyType(dict(self.point)))

    def __reduce__(self) -> tuple[Any, ...]:
        said = (self.status, self.seconds, self.error, self.certificate)
        return type(self), (dict(self.point), self.lower, self.upper, self.unit, *said)

    @property
    def failed(self) -> bool:
        """Whether there is no bound here, for another reason than that there can be none."""
        return self.status == "FAILED"

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain data; infinities are text and NaN is None, as JSON needs it."""
        ends = {"lower": _to_json(self.lower), "upper": _to_json(self.upper)}
        rest = {"unit": self.unit, "status": self.status, "seconds": self.seconds}
        said = {"error": self.error, "certificate": self.certificate}
        return {"point": dict(self.point), **ends, **rest, **said}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> SweepRow:
        """Return the row that `to_dict` wrote."""
        return cls(
            data["point"],
            _from_json(data["lower"]),
            _from_json(data["upper"]),
            str(data["unit"]),
            str(data["status"]),
            float(data["seconds"]),
            str(data["error"]),
            str(data.get("certificate", "")),
        )


Found = tuple[SweepRow, Certificate | None]


@dataclass(frozen=True)
class Sweep:
    """The results of a sweep, in the order of the grid.

    Examples
    --------
    >>> from cvxleak import capacity
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.sweeps import sweep
    >>> results = sweep(lambda flip: capacity(binary_symmetric(flip)), {"flip": [0.1, 0.5]})
    >>> [round(row.upper, 4) for row in results]
    [0.3681, 0.0]
    """

    rows: tuple[SweepRow, ...] = field(default=())

    def __iter__(self) -> Iterator[SweepRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def failed(self) -> tuple[SweepRow, ...]:
        """The rows without a result."""
        return tuple(row for row in self.rows if row.failed)

    def to_frame(self) -> Any:
        """Return one line for each point as a pandas DataFrame (needs pandas)."""
        import pandas as pd

        records = []
        for row in self.rows:
            data = {**row.to_dict(), "lower": row.lower, "upper": row.upper}
            records.append({**data.pop("point"), **data})
        return pd.DataFrame(records)


def sweep(
    solve: Solve,
    grid: Mapping[str, Iterable[Any]] | Iterable[Point],
    *,
    jobs: int = 1,
    backend: str | None = None,
    per_worker: bool = False,
    along: str | None = None,
    path: str | os.PathLike[str] | None = None,
    certificates: str | os.PathLike[str] | None = None,
    title: str = "",
    progress: Callable[[SweepRow, int, int], None] | None = None,
) -> Sweep:
    """Solve a problem at every point of a grid.

    Parameters
    ----------
    solve : callable
        Takes the coordinates of a point by name, and returns a `Bound`, or a problem with a
        ``solve`` method, or a number.
    grid : mapping of str to iterable, or iterable of mappings
        The values of each coordinate, all combinations of which are solved; or the points.
    jobs : int
        How many processes work at once; more than one needs the ``parallel`` extra. -1 takes all
        processors.
    backend : str, optional
        A joblib backend: ``"dask"`` sends the points to the cluster of the `distributed.Client`
        that is connected (needs the ``parallel`` extra).
    per_worker : bool
        `solve` is a function without arguments that returns the one for the points; each worker
        calls it once. A CVXPY problem with Parameters is then compiled once per worker.
    along : str, optional
        A coordinate whose values `solve` takes all at once, as a tuple, to return as many results:
        what was found for one value helps with the next, as in `leakage_curve` and `design_curve`.
        Rows then come curve by curve. Where a curve fails its points are solved one by one.
    path : path-like, optional
        A file of JSON lines. Each result is added as it comes; results that the file holds already
        are not computed again, apart from failed ones.
    certificates : path-like, optional
        A folder, made if need be, that gets the certificate of each bound, in a file named after
        its hash, which the row names as well. A row without its file is computed again.
    title : str
        What the file is about; a file with another title or other coordinates is not continued.
    progress : callable, optional
        Called with each new row, how many points are done, and of how many.

    Returns
    -------
    Sweep
        A row for each point, in the order of the grid. An error of the library is a row with
        status INFEASIBLE or UNBOUNDED, any other one with status FAILED; neither ends the sweep.

    Raises
    ------
    ValidationError
        A grid without points or with a point twice, values that JSON cannot hold when there is a
        `path`, a file of another sweep, no such coordinate as `along`, or joblib missing.

    Notes
    -----
    Ctrl-C ends the sweep; what `path` holds stays.

    Examples
    --------
    Two lines send a sweep to a cluster, whose workers need cvxleak too::

        client = distributed.Client("tcp://scheduler:8786")
        sweep(solve, grid, jobs=-1, backend="dask")

    A trade-off curve from one compiled CVXPY problem:

    >>> import cvxpy as cp
    >>> from cvxleak import constraints, expressions
    >>> from cvxleak.sweeps import sweep
    >>> def compiled():
    ...     Q, D = cp.Variable((2, 2)), cp.Parameter(nonneg=True)
    ...     rows = constraints.row_stochastic(Q)
    ...     wrong = 0.5 * (Q[0, 1] + Q[1, 0])
    ...     leakage = expressions.mutual_information([0.5, 0.5], Q)
    ...     problem = cp.Problem(cp.Minimize(leakage), [*rows, wrong <= D])
    ...
    ...     def solve(budget):
    ...         D.value = budget
    ...         return problem.solve(solver="CLARABEL")
    ...
    ...     return solve
    >>> curve = sweep(compiled, {"budget": [0.1, 0.2, 0.5]}, per_worker=True)
    >>> [round(abs(row.upper), 3) for row in curve]
    [0.368, 0.193, 0.0]

    A leakage curve for each of two mechanisms, each from one search tree:

    >>> from cvxleak import Mechanism, leakage_curve
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.queries import parity
    >>> def curves(flip, floor):
    ...     return leakage_curve(Mechanism(parity(3), binary_symmetric(flip)), floor).bounds
    >>> rows = sweep(curves, {"flip": [0.1, 0.2], "floor": [0.0, 1.8]}, along="floor")
    >>> [round(row.upper, 3) for row in rows]
    [0.368, 0.171, 0.193, 0.094]
    """
    points = _points(grid)
    workers = whole_number(jobs, "jobs", -1)
    if workers == 0:
        raise ValidationError("jobs: found 0; it must be at least 1, or -1 for all processors")
    if along is not None and along not in points[0]:
        raise ValidationError(f"along: found {short(along)}; allowed: {sorted(points[0])}")
    proofs = None if certificates is None else _Proofs(certificates)
    store = None if path is None else _Store(path, title, tuple(points[0]))
    known = {} if store is None else store.known(points)
    if proofs is not None:
        known = {key: row for key, row in known.items() if proofs.hold(row)}
    keys = [_key(point) for point in points]
    rows = {key: known[key] for key in keys if key in known}
    todo = [point for key, point in zip(keys, points, strict=True) if key not in rows]
    work = _Work(solve, per_worker, along, proofs is not None)
    for found in _solved(work, _batches(todo, along), workers, backend):
        for row, certificate in found:
            if proofs is not None and certificate is not None:
                proofs.add(certificate)
            rows[_key(row.point)] = row
            if store is not None:
                store.add(row)
            if progress is not None:
                progress(row, len(rows), len(points))
    return Sweep(tuple(rows[key] for key in keys))


def _points(grid: Any) -> list[dict[str, Any]]:
    if isinstance(grid, Mapping):
        names = [str(name) for name in grid]
        values = [in_order(part, f"grid[{short(name)}]") for name, part in grid.items()]
        points = [
            dict(zip(names, combination, strict=True)) for combination in itertools.product(*values)
        ]
    else:
        points = [dict(point) for point in in_order(grid, "grid") if isinstance(point, Mapping)]
        if len(points) != len(in_order(grid, "grid")):
            raise ValidationError("grid: found a point that is no mapping of names to values")
    if not points or not points[0]:
        raise ValidationError("grid: found no points; at least one is needed")
    points = [
        {name: plain_label(value, f"grid[{name!r}]") for name, value in point.items()}
        for point in points
    ]
    if any(point.keys() != points[0].keys() for point in points):
        raise ValidationError("grid: found points with different names")
    if len({_key(point) for point in points}) != len(points):
        raise ValidationError("grid: found a point twice")
    return points


def _key(point: Point) -> str:
    # Floats round-trip through JSON, so a point that was read back is the same one.
    return json.dumps(dict(point), sort_keys=True, default=repr)


def _batches(points: Sequence[Point], along: str | None) -> list[list[Point]]:
    """Return the points that are solved together: those that differ in `along` only."""
    if along is None:
        return [[point] for point in points]
    batches: dict[str, list[Point]] = {}
    for point in points:
        rest = {name: value for name, value in point.items() if name != along}
        batches.setdefault(_key(rest), []).append(point)
    return list(batches.values())


def _solved(
    work: _Work, batches: Sequence[Sequence[Point]], jobs: int, backend: str | None
) -> Iterator[list[Found]]:
    if jobs == 1 and backend is None:
        yield from map(work, batches)
        return
    try:
        import joblib
    except ImportError as error:
        raise ValidationError(
            "jobs: more than one needs joblib: pip install 'cvxleak[parallel]'"
        ) from error
    chosen = {} if backend is None else {"backend": backend}
    with joblib.parallel_config(n_jobs=jobs, **chosen):
        pool = joblib.Parallel(return_as="generator_unordered")
        results: Any = pool(joblib.delayed(work)(batch) for batch in batches)
        yield from results


class _Work:
    """What a worker does with points that are solved together. It travels there with each batch."""

    def __init__(self, solve: Solve, per_worker: bool, along: str | None, proving: bool) -> None:
        self._solve = solve
        self._per_worker = per_worker
        self._along = along
        self._proving = proving
        self._token = os.urandom(16)

    def __call__(self, points: Sequence[Point]) -> list[Found]:
        """Return a row for each point, with its certificate if it is to be kept."""
        if self._along is None:
            return [self._one(point) for point in points]
        begin = time.perf_counter()
        values = tuple(point[self._along] for point in points)
        try:
            results = list(self._function()(**{**points[0], self._along: values}))
            share = (time.perf_counter() - begin) / len(points)
            return [
                self._row(point, result, share)
                for point, result in zip(points, results, strict=True)
            ]
        # One point of the curve may be to blame: the others need not suffer.
        except Exception:
            return [self._one(point) for point in points]

    def _one(self, point: Point) -> Found:
        begin = time.perf_counter()
        try:
            if self._along is None:
                result = self._function()(**point)
            else:
                (result,) = self._function()(**{**point, self._along: (point[self._along],)})
            result = result.solve() if hasattr(result, "solve") else result
            return self._row(point, result, time.perf_counter() - begin)
        except (InfeasibleError, UnboundedError) as error:
            status = "INFEASIBLE" if isinstance(error, InfeasibleError) else "UNBOUNDED"
            text = str(error)
        # Whatever went wrong at one point is no reason to lose the others.
        except Exception as error:
            status = "FAILED"
            text = str(error) if isinstance(error, CvxleakError) else repr(error)
        seconds = time.perf_counter() - begin
        return SweepRow(point, math.nan, math.nan, "", status, seconds, text), None

    def _row(self, point: Point, found: Any, seconds: float) -> Found:
        if not isinstance(found, Bound):
            return SweepRow(point, float(found), float(found), "", "COMPUTED", seconds), None
        certificate = found.certificate if self._proving else None
        proof = "" if certificate is None else certificate.hash
        ends = (found.lower, found.upper, found.unit, found.status.name)
        return SweepRow(point, *ends, seconds, certificate=proof), certificate

    def _function(self) -> Solve:
        if not self._per_worker:
            return self._solve
        if self._token not in _made:
            _made.clear()  # one sweep at a time: a long-lived worker keeps no old problems
            _made[self._token] = self._solve()
        return _made[self._token]


_made: dict[bytes, Solve] = {}


class _Proofs:
    """A folder of certificates, each in a file named after its hash."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ValidationError(
                f"certificates: cannot make the folder {str(self._folder)!r}: {error}"
            ) from error

    def add(self, certificate: Certificate) -> None:
        """Write one more; before its row, so that what a row names is there."""
        certificate.save(self._file(certificate.hash))

    def hold(self, row: SweepRow) -> bool:
        """Whether a row that was read back has all that it can have."""
        if row.status not in ("CERTIFIED", "BRACKETED"):
            return True
        return bool(row.certificate) and self._file(row.certificate).is_file()

    def _file(self, name: str) -> Path:
        return self._folder / f"{name}.json"


class _Store:
    """A file of JSON lines: a heading, then a row for each result."""

    def __init__(self, path: str | os.PathLike[str], title: str, names: tuple[str, ...]) -> None:
        self._path = Path(path)
        self._heading = {
            "format": FORMAT,
            "version": VERSION,
            "title": title,
            "coordinates": sorted(names),
        }

    def known(self, points: Sequence[Point]) -> dict[str, SweepRow]:
        """Return the results that the file holds, the last one for each point."""
        try:
            json.dumps([dict(point) for point in points], allow_nan=False)
        except (TypeError, ValueError) as error:
            raise ValidationError(
                f"grid: found a value that JSON cannot hold: {error}; without a path it can be any"
            ) from error
        try:
            if not self._path.exists() or self._path.stat().st_size == 0:
                self._append(self._heading)
                return {}
            lines = self._path.read_text(encoding="utf-8").split("\n")
        except (OSError, ValueError) as error:
            raise ValidationError(f"path: cannot read {str(self._path)!r}: {error}") from error
        if _parsed(lines[0]) != self._heading:
            raise ValidationError(
                f"path: {str(self._path)!r} does not hold the sweep {self._heading['title']!r} "
                f"over {self._heading['coordinates']}"
            )
        if lines[-1]:
            # The last line was cut short by a crash: the next one must not be glued to it.
            self._write("\n")
        found = {}
        for line in lines[1:]:
            data = _parsed(line)
            try:
                row = SweepRow.from_dict(data)
            except (KeyError, TypeError, ValueError):
                continue
            if not row.failed:
                found[_key(row.point)] = row
        return found

    def add(self, row: SweepRow) -> None:
        """Write one more result."""
        self._append(row.to_dict())

    def _append(self, data: Mapping[str, Any]) -> None:
        self._write(json.dumps(data, allow_nan=False) + "\n")

    def _write(self, text: str) -> None:
        try:
            with self._path.open("a", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise ValidationError(f"path: cannot write {str(self._path)!r}: {error}") from error


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _to_json(value: float) -> float | str | None:
    if math.isnan(value):
        return None
    return ("inf" if value > 0 else "-inf") if math.isinf(value) else float(np.float64(value))


def _from_json(value: Any) -> float:
    return math.nan if value is None else float(value)
