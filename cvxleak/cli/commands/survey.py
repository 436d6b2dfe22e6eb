"""``cvxleak randomize`` and ``cvxleak estimate``: a column of answers, randomized and read back."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cvxleak.cli.cli_errors import complaining, named
from cvxleak.cli.documents import check_targets, report_document, write_document
from cvxleak.cli.options import Json, SpecPath, choice, number, whole
from cvxleak.core.errors import ValidationError
from cvxleak.core.wording import counted

if TYPE_CHECKING:
    from cvxleak.mechanisms import FrequencyEstimate

__all__ = ["estimate", "randomize"]


class Kept(enum.StrEnum):
    """What becomes of empty cells when a column is randomized."""

    refuse = "refuse"
    keep = "keep"


class Skipped(enum.StrEnum):
    """What becomes of empty cells when a column is counted."""

    refuse = "refuse"
    skip = "skip"


Answers = Annotated[
    Path, typer.Argument(metavar="CSV", help="CSV file with a header and a line for each person.")
]
Column = Annotated[str, typer.Option(metavar="NAME", help="Column of the answers.")]


def randomize(
    spec: SpecPath,
    answers: Answers,
    column: Column,
    output: Annotated[
        Path,
        typer.Option(
            metavar="PATH", help="File to write: the same table with that column randomized."
        ),
    ],
    missing: Annotated[
        Kept, typer.Option(**choice(Kept), help="What to do with cells without an answer.")
    ] = Kept.refuse,
    seed: Annotated[
        int | None,
        typer.Option(
            parser=whole,
            metavar="N",
            help="Makes the draw reproducible for anyone who knows the seed: for trials only.",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Overwrite the file if it exists.")
    ] = False,
) -> None:
    """Randomize a column of answers by the mechanism of a spec."""
    with complaining():
        from cvxleak.cli.from_spec import build_survey
        from cvxleak.cli.spec_file import SpecFile
        from cvxleak.core.tables import label_to_text, write_table
        from cvxleak.mechanisms import randomize as randomized

        for source in (answers, spec):
            check_targets(source, {"--output": str(output)})
        if output.exists() and not overwrite:
            raise ValidationError(f"--output: {output} exists; --overwrite writes over it")
        channel = build_survey(SpecFile(spec), "randomize")
        table = _Table(answers, column, channel.inputs, missing)
        texts = {label: label_to_text(label, "outputs") for label in channel.outputs}
        for row, label in zip(table.answered, randomized(table.labels, channel, seed), strict=True):
            row[table.place] = texts[label]
        write_table(output, [table.header, *table.rows])
        typer.echo(f"{output}: {counted(len(table.labels), 'answer')} randomized{table.left}")


def estimate(
    spec: SpecPath,
    answers: Answers,
    column: Column,
    confidence: Annotated[
        float,
        typer.Option(
            parser=number, metavar="C", help="Confidence level of all intervals together."
        ),
    ] = 0.95,
    missing: Annotated[
        Skipped, typer.Option(**choice(Skipped), help="What to do with cells without an output.")
    ] = Skipped.refuse,
    json_path: Json = None,
) -> None:
    """Estimate the frequency of each answer from a randomized column."""
    with complaining():
        from cvxleak.cli.from_spec import build_survey
        from cvxleak.cli.spec_file import SpecFile, read_file, sha256
        from cvxleak.mechanisms import estimate_frequencies

        for source in (answers, spec):
            check_targets(source, {"--json": json_path})
        spec_file = SpecFile(spec)
        channel = build_survey(spec_file, "estimate")
        table = _Table(answers, column, channel.outputs, missing)
        with named({"confidence": "--confidence", "counts": f"{answers}: column {column!r}"}):
            found = estimate_frequencies(channel, Counter(table.labels), confidence)
        identity = spec_file.identity()
        identity["files"] = {**identity["files"], answers.name: sha256(read_file(answers))}
        body = _body(found, table.missing)
        if write_document(report_document(body, command="estimate", **identity), json_path):
            typer.echo(f"{spec_file.title}: column {column!r} of {answers.name}{table.left}")
            typer.echo(found)


class _Table:
    """A CSV file, and the labels in one of its columns.

    Attributes
    ----------
    header : list of str
    place : int
        Of the column.
    rows, answered : list of list of str
        All lines, and those with a label.
    labels : list of hashable
    """

    def __init__(
        self, path: Path, column: str, allowed: tuple[Hashable, ...], missing: Kept | Skipped
    ) -> None:
        from cvxleak.core.tables import MISSING, label_from_text, read_table
        from cvxleak.core.value import preview

        (_, self.header), *lines = read_table(path)
        if self.header.count(column) != 1:
            raise ValidationError(
                f"--column: found {column!r}; one of the columns {preview(tuple(self.header))} of "
                f"{path} is needed"
            )
        self.place, self.rows = self.header.index(column), [cells for _, cells in lines]
        self.answered: list[list[str]] = []
        self.labels: list[Hashable] = []
        for line, cells in lines:
            text = cells[self.place]
            found = [label for label in (text, label_from_text(text)) if label in allowed]
            where = f"{path}: line {line}, column {column!r}"
            if found:
                self.answered.append(cells)
                self.labels.append(found[0])
            elif text.lower() not in MISSING:
                raise ValidationError(
                    f"{where}: found {text!r}; the mechanism has {preview(allowed)}"
                )
            elif missing == "refuse":
                allowing = next(choice for choice in type(missing) if choice != "refuse")
                raise ValidationError(f"{where}: it is empty; --missing {allowing} allows that")

    @property
    def missing(self) -> int:
        """How many cells of the column are empty."""
        return len(self.rows) - len(self.labels)

    @property
    def left(self) -> str:
        """What a message says of empty cells."""
        return f", {counted(self.missing, 'empty cell')} left out" if self.missing else ""


def _body(found: FrequencyEstimate, missing: int) -> dict[str, Any]:
    columns = zip(
        found.labels,
        found.frequencies.tolist(),
        found.standard_errors.tolist(),
        *([[None] * len(found.labels)] * 2 if not found.fits else [found.lower, found.upper]),
        strict=True,
    )
    keys = ("label", "estimate", "standard_error", "lower", "upper")
    return {
        "respondents": found.respondents,
        "missing": missing,
        "confidence": found.confidence,
        "fits": found.fits,
        "frequencies": [dict(zip(keys, row, strict=True)) for row in columns],
    }
