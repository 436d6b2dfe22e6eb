"""``cvxleak sweep``: one spec at many points."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cvxleak.cli.cli_errors import complaining, named
from cvxleak.cli.documents import check_targets, report_document, write_document
from cvxleak.cli.options import (
    Json,
    Picture,
    SpecPath,
    Tolerance,
    Unit,
    Units,
    WorkLimit,
    check_limits,
    number,
    whole,
)
from cvxleak.core.wording import counted
from cvxleak.core.work import WORK_LIMIT

if TYPE_CHECKING:
    from rich.progress import Progress

    from cvxleak.sweeps import SweepRow

__all__ = ["sweep"]

CONNECTING = 10
"""Seconds in which a scheduler has to answer."""

OPTIONS = {
    "grid": "--over",
    "jobs": "--jobs",
    "path": "--results",
    "certificates": "--certificates",
}
"""What the arguments of `cvxleak.sweeps.sweep` are called here."""

Over = Annotated[
    list[str],
    typer.Option(
        metavar="KEY=V,V,...",
        help="Key of the spec and its values, as in mechanism.epsilon=0.5,1,2. If repeated, all "
        "combinations are solved.",
    ),
]
Of = Annotated[
    str | None,
    typer.Option(
        metavar="COMMAND",
        help="Command whose number is computed: audit, envelope, local-dp, design or solve. "
        "Default: decided by the spec.",
    ),
]
Results = Annotated[
    str | None,
    typer.Option(
        metavar="PATH",
        help="File of results, a line of JSON for each point as it is solved. The same call again "
        "resumes where it stopped.",
    ),
]
Along = Annotated[
    str | None,
    typer.Option(
        metavar="KEY",
        help="Solve all values of this key of --over together, each using the others' results: "
        "adversary.entropy_floors of audit, design.budget of design, and the same of solve.",
    ),
]
Proofs = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder for the certificate of each point, in a file named after its hash.",
    ),
]
Cluster = Annotated[
    str | None,
    typer.Option(
        metavar="ADDRESS",
        help="Solve the points on the workers of this Dask scheduler, as in tcp://host:8786.",
    ),
]
Jobs = Annotated[
    int,
    typer.Option(parser=whole, metavar="N", help="Number of processes; -1 for all processors."),
]
PointTime = Annotated[
    float | None,
    typer.Option(
        "--time-limit", parser=number, metavar="S", help="Time limit in seconds per point."
    ),
]


def sweep(
    spec: SpecPath,
    over: Over,
    of: Of = None,
    units: Unit = Units.nats,
    results: Results = None,
    certificates: Proofs = None,
    along: Along = None,
    jobs: Jobs = 1,
    cluster: Cluster = None,
    json_path: Json = None,
    plot: Picture = None,
    time_limit: PointTime = None,
    work_limit: WorkLimit = WORK_LIMIT,
    tol: Tolerance = None,
) -> None:
    """Solve a spec at many points: a trade-off curve, or a surface."""
    with complaining():
        from rich.console import Console

        from cvxleak import sweeps
        from cvxleak.cli import sweeping
        from cvxleak.cli.pictures import check_axes, check_picture, draw_sweep
        from cvxleak.cli.problems import TABLES
        from cvxleak.cli.progress import STOPPED
        from cvxleak.cli.rendering import render_sweep
        from cvxleak.cli.spec_file import SpecFile
        from cvxleak.core.errors import ValidationError

        if of is not None and of not in TABLES:
            raise ValidationError(f"--of: found {of}; allowed: {', '.join(TABLES)}")
        if cluster is not None and jobs != 1:
            raise ValidationError(
                "--jobs: cannot be combined with --cluster, which decides how many"
            )
        check_limits(tol, time_limit, work_limit)
        check_targets(spec, {"--results": results, "--json": json_path, "--plot": plot})
        if certificates is not None and Path(certificates).exists():
            if not Path(certificates).is_dir():
                raise ValidationError(f"--certificates: {certificates} is not a folder")
        check_picture(plot)
        grid = sweeping.read_grid(over)
        if plot is not None:
            check_axes(grid)
        spec_file = SpecFile(spec)
        points = sweeping.points_of(spec_file, grid)
        number = of or sweeping.choose_number(points[0])
        title = sweeping.sweep_title(points, number, units.value, tol)
        curve = sweeping.curve_key(points[0], number)
        if along is not None and (along != curve or along not in grid):
            allowed = "nothing" if curve is None else f"{curve}, if it is a key of --over"
            raise ValidationError(f"--along: found {along}; of {number} allowed: {allowed}")
        limits = {"tol": tol, "time_limit": time_limit, "work_limit": work_limit}
        solve = sweeping.SpecPoint(spec_file, number, units.value, limits, along)
        with _connected(cluster) as backend, _bar() as bar, named(OPTIONS):
            task = bar.add_task("sweep", total=len(points))

            def show(row: SweepRow, done: int, _: int) -> None:
                bar.update(task, completed=done, description=row.status.lower())

            try:
                found = sweeps.sweep(
                    solve,
                    grid,
                    jobs=-1 if backend else jobs,
                    backend=backend,
                    along=along,
                    path=results,
                    certificates=certificates,
                    title=title,
                    progress=show,
                )
            except KeyboardInterrupt:
                bar.stop()
                done = int(bar.tasks[task].completed)
                kept = results is not None and done > 0
                where = f"; {results} has them, and takes the rest" if kept else ""
                after = f"after {done} of {counted(len(points), 'point')}"
                typer.echo(f"cvxleak: interrupted {after}{where}", err=True)
                raise typer.Exit(STOPPED) from None
        if len(found.failed) == len(found):
            raise ValidationError(found.failed[0].error)
        if plot is not None:
            problem = points[0].spec.problem
            what = problem.kind if number == "solve" and problem else number
            draw_sweep(found, list(grid), what, plot)
        body = {
            "units": units.value,
            "of": number,
            "tol": tol,
            "over": grid,
            "rows": [row.to_dict() for row in found],
        }
        spec_file.files |= sweeping.files_of(points)
        document = report_document(body, command="sweep", **spec_file.identity())
        if write_document(document, json_path):
            heading = [spec_file.title, f"{number} at {counted(len(found), 'point')}"]
            render_sweep(found, Console(), heading)


def _bar() -> Progress:
    """Return a progress bar on standard error, which shows if that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    return Progress(console=console, transient=True, disable=not console.is_terminal)


@contextmanager
def _connected(address: str | None) -> Iterator[str | None]:
    """Connect to a Dask scheduler, if there is to be one, and name joblib's backend for it."""
    from cvxleak.core.errors import ValidationError

    if address is None:
        yield None
        return
    try:
        import joblib  # noqa: F401
        from distributed import Client
    except ImportError as error:
        raise ValidationError(
            "--cluster: it needs Dask and joblib: pip install 'cvxleak[parallel]'"
        ) from error
    try:
        client = Client(address, timeout=CONNECTING)
    except (OSError, ValueError) as error:
        raise ValidationError(f"--cluster: no scheduler answers at {address}: {error}") from error
    with client:
        if not client.scheduler_info()["workers"]:
            raise ValidationError(f"--cluster: the scheduler at {address} has no workers")
        yield "dask"
