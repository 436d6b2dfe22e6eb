"""``cvxleak audit``: what one output of a mechanism tells, by every measure."""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cvxleak.cli.cli_errors import complaining, named, place
from cvxleak.cli.commands.solve import Asked, answer
from cvxleak.cli.documents import Output, check_targets, write_page
from cvxleak.cli.options import (
    Json,
    Picture,
    Proof,
    TimeLimit,
    Tolerance,
    Unit,
    Units,
    WorkLimit,
    check_limits,
    choice,
    number,
    whole,
)
from cvxleak.core.errors import ValidationError
from cvxleak.core.wording import between, counted
from cvxleak.core.work import WORK_LIMIT

if TYPE_CHECKING:
    from cvxleak.cli.spec.mechanisms import Noise
    from cvxleak.cli.spec_file import SpecFile
    from cvxleak.model import Mechanism
    from cvxleak.report import Report
    from cvxleak.tables import TableRelease

__all__ = ["about_mechanism", "about_table", "audit"]

GRIDS = {"discretized_gaussian": "gaussian", "discretized_laplace": "laplace"}
"""Kinds of noise on a grid, and the kinds that are the noise before that."""

SHARES = (0.0, 0.5, 0.9, 0.99)
"""Shares of the largest entropy at which a mechanism is audited if nobody says where."""


class Counted(enum.StrEnum):
    """What becomes of people without a value when a table is counted."""

    refuse = "refuse"
    category = "category"


Floors = Annotated[
    list[float] | None,
    typer.Option(
        parser=number,
        metavar="B",
        help="Smallest entropy of the adversary's belief about the dataset, in --units. May be "
        "repeated; replaces the floors in the spec.",
    ),
]

Html = Annotated[
    str | None,
    typer.Option(
        "--html",
        metavar="PATH",
        help="Write the report as a single web page with pictures; needs cvxleak[html].",
    ),
]

Samples = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="CSV file of draws, one per line: a secret and the output it gave. A SPEC given with "
        "it states the query whose values the secrets are, and the adversaries.",
    ),
]
Secret = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Column of the secrets in --samples. Default: x."),
]
Microdata = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="CSV file with a line for each person, in place of a SPEC: audits the table of --by, "
        "published with --noise.",
    ),
]
By = Annotated[
    str | None,
    typer.Option(metavar="NAMES", help="Variables of the --microdata table, as in sex,age."),
]
Missing = Annotated[
    Counted | None,
    typer.Option(
        **choice(Counted),
        help="What people without a value in --microdata are: an error (the default) or a category "
        "of their own.",
        show_default=False,
    ),
]
TableNoise = Annotated[
    str | None,
    typer.Option(
        "--noise",
        metavar="KIND:X",
        help="Noise on each number of the --microdata or --published table: round_to_nearest:5, "
        "random_rounding:3, suppress_below:8, ptable:FILE, gaussian:SIGMA, laplace:SCALE, "
        "discrete_gaussian:SIGMA or discrete_laplace:SCALE. Further keys of [mechanism] follow, as "
        'in ptable:FILE,cycle=3,summed_keys=false; "A then B" is one noise after another.',
    ),
]
Published = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH",
        help="CSV file of the published numbers of a table: adds what they reveal. With --noise "
        "alone: which true counts they still allow.",
    ),
]
KnownPeople = Annotated[
    int | None,
    typer.Option(
        parser=whole,
        metavar="N",
        help="True number of people in the --published table, if readers may know it from "
        "elsewhere. Default: they know what was published, and nothing else.",
        show_default=False,
    ),
]
Column = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Column of the outputs in --samples. Default: y."),
]
Confidence = Annotated[
    float | None,
    typer.Option(
        parser=number,
        metavar="C",
        help="Confidence level of the report on --samples. Default: 0.95.",
    ),
]
Deltas = Annotated[
    list[float] | None,
    typer.Option(
        parser=number,
        metavar="D",
        help="For --samples: the delta at which to report which epsilons of (epsilon, "
        "delta)-differential privacy are ruled out. May be repeated. Default: 0.",
    ),
]


def audit(
    spec: Annotated[
        Path | None,
        typer.Argument(
            metavar="SPEC", help="TOML file describing the mechanism.", show_default=False
        ),
    ] = None,
    entropy_floor: Floors = None,
    units: Unit = Units.nats,
    json_path: Json = None,
    html: Html = None,
    plot: Picture = None,
    certificate: Proof = None,
    time_limit: TimeLimit = None,
    work_limit: WorkLimit = WORK_LIMIT,
    tol: Tolerance = None,
    samples: Samples = None,
    secret: Secret = None,
    output: Column = None,
    confidence: Confidence = None,
    microdata: Microdata = None,
    by: By = None,
    missing: Missing = None,
    noise: TableNoise = None,
    published: Published = None,
    known_people: KnownPeople = None,
    delta: Deltas = None,
) -> None:
    """Audit a mechanism: what one output tells, by every measure."""
    of_samples = {"secret": secret, "output": output, "confidence": confidence, "delta": delta}
    drawn = {name: value for name, value in of_samples.items() if value not in (None, [])}
    paths = {"json_path": json_path, "certificate": certificate}
    limits: dict[str, Any] = {"tol": tol, "time_limit": time_limit, "work_limit": work_limit}
    with complaining():
        if samples is None and drawn:
            raise ValidationError(f"--{next(iter(drawn))}: needs --samples, which is missing")
        if samples is not None:
            for option, value in (("html", html), ("plot", plot), ("microdata", microdata)):
                if value is not None:
                    raise ValidationError(f"--{option}: cannot be combined with --samples")
            drawn |= {"entropy_floors": entropy_floor or (), "unit": units.value}
            _audit_samples(samples, spec, drawn, limits, **paths)
            return
        if known_people is not None and published is None and spec is None:
            raise ValidationError("--known-people: needs --published, which is missing")
        source = "microdata" if microdata is not None else "published"
        alone = microdata is not None or (spec is None and published is not None)
        needed = {"by": by, "noise": noise} if source == "microdata" else {"noise": noise}
        of_people = {"by": by, "missing": missing} | ({} if alone else {"noise": noise})
        if microdata is None:
            for option in (name for name, value in of_people.items() if value is not None):
                raise ValidationError(f"--{option}: needs --microdata, which is missing")
        if alone:
            for option, value in (("SPEC", spec), ("--plot", plot)):
                if value is not None:
                    raise ValidationError(f"{option}: cannot be combined with --{source}")
            for option in (name for name, value in needed.items() if value is None):
                example = "NAME of a column" if option == "by" else "round_to_nearest:5"
                raise ValidationError(
                    f"--{option}: is required with --{source}, as in --{option} {example}"
                )
            told = {"entropy_floors": entropy_floor or (), "unit": units.value}
            told |= {"published": published, "known_people": known_people}
            _audit_table(
                microdata,
                by or "",
                missing or Counted.refuse,
                noise or "",
                told,
                limits,
                html=html,
                **paths,
            )
            return
    if spec is None:
        raise typer.BadParameter("give a SPEC, --samples, --microdata or --published")

    def ask(spec_file: SpecFile) -> Asked:
        if spec_file.spec.table is not None:
            return _about_table(spec_file, entropy_floor, units.value, published, known_people)
        if known_people is not None:
            raise ValidationError("--known-people: needs a SPEC with [table], or --published")
        if published is not None:
            raise ValidationError("--published: needs a SPEC with [table], or --microdata")
        from cvxleak.cli.from_spec import (
            build_gain,
            build_knowledge,
            build_task,
            independent_people,
        )
        from cvxleak.cli.pictures import draw_leakage
        from cvxleak.cli.spec.section import Percent
        from cvxleak.report import audit_report
        from cvxleak.report.targets import check_floors

        task = build_task(spec_file)
        stated = spec_file.spec.adversary.model_fields_set
        # Of adversaries of whom more is known, the largest entropy is not that of all datasets.
        usual = not stated & {"entropy_floors", "kind"}
        floors, _ = spec_file.numbers(
            "--entropy-floor",
            entropy_floor or ([Percent(share) for share in SHARES] if usual else None),
            "adversary.entropy_floors",
            units.value,
            functools.partial(check_floors, task.mechanism),
            task.mechanism.space.max_entropy,
        )
        rest = dict(spec_file.spec.audit, prior=task.prior, distortion=task.distortion)
        asked = spec_file.spec.audit
        if asked.gain is not None:
            with spec_file.at("audit.gain"):
                rest["gain"] = build_gain(asked.gain)
        rest["form"] = asked.form or "rise"
        rest["curves"] = html is not None or plot is not None
        rest["adversaries"] = build_knowledge(spec_file, task.mechanism.query, units.value)
        rest["independent"] = independent_people(spec_file, task.mechanism, units.value)
        return Asked(
            functools.partial(audit_report, task.mechanism, floors, **rest),
            lambda _: about_mechanism(spec_file, task.mechanism),
            lambda path, _, report: draw_leakage(path, report),
            places={
                key: f"{spec_file.path}: audit.{key}"
                for key in ("epsilons", "outputs", "gain", "form")
            },
        )

    pictures = {"html": html, "plot": plot}
    answer("audit", spec, ask, units.value, **pictures, **paths, **limits)


def _about_table(
    spec_file: SpecFile,
    given: list[float] | None,
    unit: str,
    published: Path | None,
    known_people: int | None,
) -> Asked:
    """Return what a spec with [table] asks for."""
    from cvxleak.cli.from_spec import build_published, build_release, independent_cells
    from cvxleak.report import table_report
    from cvxleak.report.targets import check_floors

    noise = spec_file.spec.mechanism
    if noise is None:
        raise ValidationError(
            f"{spec_file.path}: audit needs [mechanism], the noise of each number of [table]"
        )
    release = build_release(spec_file)
    values = build_published(spec_file, release) if published is None else published
    floors: list[float] = []
    if given or "entropy_floors" in spec_file.spec.adversary.model_fields_set:
        most = release.mechanism.space.max_entropy
        check = functools.partial(check_floors, release.mechanism)
        key = "adversary.entropy_floors"
        floors, _ = spec_file.numbers("--entropy-floor", given, key, unit, check, most)
    told = spec_file.spec.table.known_people if spec_file.spec.table is not None else None
    rest: dict[str, Any] = {"published": values}
    rest["known_people"] = told if known_people is None else known_people
    if release.table.stated_people is not None:
        rest["independent"] = independent_cells(spec_file, release)
    if spec_file.spec.audit.epsilons:
        rest["epsilons"] = spec_file.spec.audit.epsilons
    return Asked(
        functools.partial(table_report, release, floors, **rest),
        lambda report: [about_table(release, noise), *_ranges(report)],
        tables=False,
        places={
            "known_people": f"{spec_file.path}: table.known_people"
            if known_people is None
            else "--known-people",
            "published": f"{spec_file.path}: table.published"
            if published is None
            else "--published",
            "cycle": f"{spec_file.path}: mechanism.cycle",
        },
    )


NOISES = {
    "round_to_nearest": ("round_to_nearest", "base"),
    "random_rounding": ("random_rounding", "base"),
    "suppress_below": ("suppress_below", "threshold"),
    "ptable": ("ptable", "file"),
    "gaussian": ("gaussian", "sigma"),
    "laplace": ("laplace", "scale"),
    "discrete_gaussian": ("discrete_gaussian", "sigma"),
    "discrete_laplace": ("discrete_laplace", "scale"),
}
"""What --noise may be: the kind of [mechanism], and its first key."""


def _mechanism(noise: str) -> dict[str, Any]:
    """Return --noise as [mechanism] says it."""
    steps = re.split(r"\s+then\s+", noise.strip())
    if len(steps) > 1:
        return {"kind": "steps", "steps": [_mechanism(step) for step in steps]}
    kind, _, parameters = noise.partition(":")
    first, *more = re.split(r",(?=[a-z_]+=)", parameters)
    if kind == "rounding":
        raise ValidationError(
            f"--noise: found {noise!r}; round_to_nearest:{first or 5} is conventional rounding, "
            f"random_rounding:{first or 3} random rounding"
        )
    if kind not in NOISES or not first:
        raise ValidationError(
            f"--noise: found {noise!r}; one of {', '.join(NOISES)} is needed, a colon, and its "
            "parameter, as in round_to_nearest:5; geometric noise is discrete_laplace with the "
            "scale 1/epsilon; further keys of [mechanism] follow, as in ptable:FILE,cycle=3"
        )
    named_kind, key = NOISES[kind]
    section = {"kind": named_kind, key: first if key == "file" else _read(first)}
    for key, _, value in (part.partition("=") for part in more):
        if key in section:
            raise ValidationError(f"--noise: found {key} twice in {noise!r}")
        section[key] = _read(value)
    return section


def _read(text: str) -> Any:
    """Return a value as TOML has it; numbers with decimals stay text, which is exact."""
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else text


def _audit_table(
    people: Path | None,
    by: str,
    missing: Counted,
    noise: str,
    options: Mapping[str, Any],
    limits: Mapping[str, Any],
    *,
    html: str | None,
    json_path: str | None,
    certificate: str | None,
) -> None:
    """Report on the table of a file of people, or on a published one."""
    from cvxleak.cli.progress import Display
    from cvxleak.cli.reading import check_spec
    from cvxleak.cli.spec_file import read_file, sha256
    from cvxleak.report import check_page, table_report
    from cvxleak.tables import Table, TableRelease

    check_limits(**limits)
    published: Path | None = options["published"]
    path = people or published
    assert path is not None
    written = Output("audit", path, json_path, certificate, html=html)
    files: dict[str, str] = {}
    if published is not None:
        files[published.name] = sha256(read_file(published))
        targets = {"--json": json_path, "--certificate": certificate, "--html": html}
        check_targets(published, targets)
    if html is not None:
        with place("--html"):
            check_page()
    mechanism = check_spec({"version": 1, "mechanism": _mechanism(noise)}, "--noise").mechanism
    assert mechanism is not None
    places = {
        "published": "--published",
        "known_people": "--known-people",
        "cycle": "--noise: cycle",
    }
    with place("--noise"), named(places):
        law = mechanism.of_counts(Path)
    names = [name.strip() for name in by.split(",")]
    if people is not None and not all(names):
        raise ValidationError(
            f"--by: found {by!r}; names of columns are needed, separated by commas, as in sex,age"
        )
    with named({"data": f"--{'published' if people is None else 'microdata'}", "rows": "--by"}):
        if people is None:
            table = Table.from_published(path)
        else:
            table = Table.from_microdata(people, names, missing=missing.value)
        release = TableRelease(table, law)
    with Display(options["unit"]) as progress, named(places):
        report = table_report(
            release,
            **options,
            **limits,
            progress=progress,
        )
    # Without the file's hash, which would confirm a guess of who is in it.
    identity = {"spec": path.name, "sha256": "", "files": files}
    heading = [path.name, about_table(release, mechanism), *_ranges(report)]
    if html is not None:
        write_page(html, report, heading, identity, certificate)
    written.publish(report, heading, identity, tables=False)


def _audit_samples(
    path: Path,
    spec: Path | None,
    options: dict[str, Any],
    limits: Mapping[str, Any],
    *,
    json_path: str | None,
    certificate: str | None,
) -> None:
    """Report on a file of draws; what a spec says of secrets and adversaries goes with it."""
    from cvxleak.cli.progress import Display
    from cvxleak.cli.spec_file import SpecFile, read_file, sha256
    from cvxleak.report import samples_report

    check_limits(**limits)
    written = Output("audit", path, json_path, certificate)
    data = read_file(path)
    arguments = ("secret", "output", "confidence", "entropy_floor", "delta")
    places = {name: f"--{name.replace('_', '-')}" for name in arguments}
    options["deltas"] = options.pop("delta", (0.0,))
    identity: dict[str, Any] = {"spec": path.name, "sha256": sha256(data), "files": {}}
    about: list[str] = []
    if spec is not None:
        check_targets(spec, {"--json": json_path, "--certificate": certificate})
        spec_file = SpecFile(spec)
        told, places["entropy_floor"] = _of_secrets(spec_file, options)
        options |= told
        identity = {**spec_file.identity(), "files": {path.name: sha256(data)}}
        about = [spec_file.title]
    with Display(options["unit"]) as progress, named(places):
        report = samples_report(path, **options, **limits, progress=progress)
    heading = "{draws} draws of {secrets} secrets, sorted into {columns} columns".format(
        **report.facts
    )
    if report.facts["choosing"]:
        heading += f" chosen by {report.facts['choosing']} of them"
    written.publish(report, [*about, path.name, heading], identity, tables=False)


def _of_secrets(spec_file: SpecFile, options: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return what a spec says of the secrets and of the adversaries, and where it says floors."""
    from cvxleak.cli.from_spec import build_knowledge, build_query

    spec_file.needs("audit --samples", ("query", "space"))
    if spec_file.spec.adversary.kind == "independent":
        raise ValidationError(
            f'{spec_file.path}: adversary.kind: found "independent"; of a mechanism of which only '
            "draws are known, leakage to independent beliefs is not bounded"
        )
    query, unit = build_query(spec_file), options["unit"]
    floors, where = spec_file.numbers(
        "--entropy-floor",
        options["entropy_floors"],
        "adversary.entropy_floors",
        unit,
        most=query.space.max_entropy,
    )
    known = build_knowledge(spec_file, query, unit)
    return {"query": query, "entropy_floors": floors, "adversaries": known}, where


def about_mechanism(spec_file: SpecFile, mechanism: Mechanism) -> list[str]:
    """Say in a few lines what was audited."""
    space, spec = mechanism.space, spec_file.spec
    values = " or ".join(str(size) for size in sorted(set(space.shape)))
    steps = [f"{counted(space.records, 'record')} of {values} values"]
    if spec.query is not None:
        steps.append(f"{spec.query.kind} ({counted(len(mechanism.query.values), 'value')})")
    remarks: list[str] = []
    if spec.mechanism is not None:
        from cvxleak.model import RealOutput

        outputs = "no finite set of outputs"
        if not isinstance(mechanism.noise, RealOutput):
            outputs = counted(len(mechanism.outputs), "output")
        steps.append(f"{spec.mechanism.kind} ({outputs})")
        if spec.mechanism.kind in GRIDS:
            remarks.append(
                "This is about the released number, which is rounded to these outputs. For the "
                f'noisy number itself, use kind = "{GRIDS[spec.mechanism.kind]}".'
            )
    return [" -> ".join(steps), *remarks, *spec_file.prior_source]


def about_table(release: TableRelease, noise: Noise) -> str:
    """Say in one line what is published of a table: variables, numbers, noise."""
    table = release.table
    by = [
        f"{name} ({len(found)} {'category' if len(found) == 1 else 'categories'})"
        for name, found in table.variables
    ]
    about = " and ".join(filter(None, (", ".join(by[:-1]), by[-1])))
    people = "people"
    if table.stated_people is not None:
        people = "1 person" if table.people == 1 else f"{table.people} people"
    numbers = counted(len(release.noise), "published number")
    return f"{people} by {about}; {numbers}; noise: {_about_noise(noise)}"


def _about_noise(noise: Noise) -> str:
    told = {key: value for key, value in noise if key in noise.model_fields_set}
    kind = told.pop("kind").replace("_", " ")
    if kind == "steps":
        return ", then ".join(map(_about_noise, told["steps"]))
    how = ", ".join(f"{key} {value}" for key, value in told.items())
    return f"{kind} ({how})"


def _ranges(report: Report) -> list[str]:
    """Say for each published number which true values are possible, if some were published."""
    cells = report.facts["cells"]
    if "lower" not in cells[0]:
        return []
    known = report.facts["known_people"]
    basis = "" if known is None else f" and the number of people, {known}"
    lines = [f"True counts that are possible, given what was published{basis or ' alone'}:"]
    labels = [" / ".join(cell["number"]) for cell in cells[:MOST_RANGES]]
    width = max(map(len, labels))
    for label, cell in zip(labels, cells, strict=False):
        shown = "not shown" if cell["published"] is None else f"{cell['published']:g}"
        ends = between(cell["lower"], cell["upper"])
        lines.append(f"{label.ljust(width)}  published {shown}: {ends}")
    if len(cells) > MOST_RANGES:
        lines.append(f"and {len(cells) - MOST_RANGES} more; --json and --html have all")
    return lines


MOST_RANGES = 40
"""Most numbers of a table that are printed."""
