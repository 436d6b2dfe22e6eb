"""Running a sweep on one processor, on several, or on a cluster."""

from __future__ import annotations

import itertools
import math
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

from cvxleak.core.clock import check_progress
from cvxleak.core.errors import CvxleakError, InfeasibleError, UnboundedError, ValidationError
from cvxleak.core.validation import in_order, plain_label, short, whole_number
from cvxleak.problem.bound import Bound
from cvxleak.proofs import Certificate
from cvxleak.sweeps.files import Point, Proofs, Store, key_of
from cvxleak.sweeps.rows import Sweep, SweepRow

__all__ = ["sweep"]

Solve = Callable[..., Any]
Found = tuple[SweepRow, Certificate | None]


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
        The values of each coordinate, to solve all combinations; or the points themselves.
    jobs : int
        Number of parallel processes; more than one needs the ``parallel`` extra. -1 uses all
        processors.
    backend : str, optional
        A joblib backend: ``"dask"`` sends the points to the cluster of the `distributed.Client`
        that is connected (needs the ``parallel`` extra).
    per_worker : bool
        If True, `solve` is a function without arguments that returns the function for the points;
        each worker calls it once. A CVXPY problem with Parameters is then compiled once per worker.
    along : str, optional
        A coordinate whose values are passed to `solve` together, as a tuple; `solve` then returns
        one result for each. This is faster if results for one value help with the next, as in
        `leakage_curve` and `design_curve`. Rows are then written curve by curve. If a curve fails,
        its points are solved one by one.
    path : path-like, optional
        A file of JSON lines, to which each result is added. Results that the file already holds are
        not computed again, except for failed ones.
    certificates : path-like, optional
        A folder for the certificates of the bounds, created if necessary. Each file is named after
        the hash of its certificate, and the row contains the hash. A row whose file is missing is
        computed again.
    title : str
        A title for the file. A file with another title or other coordinates is not continued.
    progress : callable, optional
        Called with each new row, the number of points done, and their total number.

    Returns
    -------
    Sweep
        A row for each point, in the order of the grid. An `InfeasibleError` or `UnboundedError`
        gives a row with status INFEASIBLE or UNBOUNDED, any other exception a row with status
        FAILED; the sweep continues.

    Raises
    ------
    ValidationError
        A grid without points or with a repeated point, with `path` a value that JSON cannot hold, a
        file of another sweep, an `along` that is not a coordinate, or joblib is not installed.

    Notes
    -----
    Ctrl-C ends the sweep; the file keeps the results so far.

    Examples
    --------
    Two lines run a sweep on a cluster, whose workers need cvxleak, too::

        client = distributed.Client("tcp://scheduler:8786")
        sweep(solve, grid, jobs=-1, backend="dask")

    A trade-off curve from one compiled CVXPY problem:

    >>> import cvxpy as cp
    >>> from cvxleak import constraints, expressions
    >>> from cvxleak.sweeps import sweep
    >>> def compiled():
    ...     (Q, rows), D = constraints.channel(2, 2), cp.Parameter(nonneg=True)
    ...     wrong = 0.5 * (Q[0, 1] + Q[1, 0])
    ...     leakage = expressions.mutual_information(Q, [0.5, 0.5])
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
    if not callable(solve):
        raise ValidationError(f"solve: expected a callable, found {short(solve)}")
    points = _points(grid)
    workers = whole_number(jobs, "jobs", -1)
    if workers == 0:
        raise ValidationError("jobs: found 0; it must be at least 1, or -1 for all processors")
    check_progress(progress)
    if along is not None and along not in points[0]:
        raise ValidationError(f"along: found {short(along)}; allowed: {sorted(points[0])}")
    proofs = None if certificates is None else Proofs(certificates)
    store = None if path is None else Store(path, title, tuple(points[0]))
    known = {} if store is None else store.known(points)
    if proofs is not None:
        known = {key: row for key, row in known.items() if proofs.hold(row)}
    keys = [key_of(point) for point in points]
    rows = {key: known[key] for key in keys if key in known}
    todo = [point for key, point in zip(keys, points, strict=True) if key not in rows]
    work = _Work(solve, per_worker, along, proofs is not None)
    for found in _solved(work, _batches(todo, along), workers, backend):
        for row, certificate in found:
            if proofs is not None and certificate is not None:
                proofs.add(certificate)
            rows[key_of(row.point)] = row
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
            raise ValidationError("grid: found a point that is not a mapping of names to values")
    if not points or not points[0]:
        raise ValidationError("grid: found no points; at least one is needed")
    points = [
        {name: plain_label(value, f"grid[{name!r}]") for name, value in point.items()}
        for point in points
    ]
    if any(point.keys() != points[0].keys() for point in points):
        raise ValidationError("grid: found points with different names")
    if len({key_of(point) for point in points}) != len(points):
        raise ValidationError("grid: found a point twice")
    return points


def _batches(points: Sequence[Point], along: str | None) -> list[list[Point]]:
    """Return the points that are solved together: those that differ in `along` only."""
    if along is None:
        return [[point] for point in points]
    batches: dict[str, list[Point]] = {}
    for point in points:
        rest = {name: value for name, value in point.items() if name != along}
        batches.setdefault(key_of(rest), []).append(point)
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
        with _without_ctrl_c():
            results: Any = pool(joblib.delayed(work)(batch) for batch in batches)
        yield from results


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Start processes that do not hear of Ctrl-C; here it comes at the end of the block.

    A terminal sends it to all of them, and each would print where it was. joblib ends them.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    # It unblocks the signal when it is started, as joblib would do in the middle of the block.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


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
