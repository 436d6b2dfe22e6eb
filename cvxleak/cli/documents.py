"""What a command writes: the report as JSON, the proof, the tables; and where it may write."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cvxleak._version import __version__
from cvxleak.core.errors import ValidationError

if TYPE_CHECKING:
    from cvxleak.model import Channel
    from cvxleak.report import Report

__all__ = [
    "REPORT",
    "Output",
    "check_channels",
    "check_targets",
    "report_document",
    "write_document",
    "write_page",
]

REPORT = "cvxleak-report"
VERSION = 1

CHANNELS = (".csv", ".json")


def report_document(
    body: Mapping[str, Any], *, command: str, spec: str, sha256: str, files: Mapping[str, str]
) -> dict[str, Any]:
    """Return the top-level document around a report's own data."""
    return {
        "format": REPORT,
        "version": VERSION,
        "cvxleak": __version__,
        "command": command,
        "spec": spec,
        "spec_sha256": sha256,
        "files_sha256": dict(files),
        **body,
    }


def check_targets(source: Path, targets: Mapping[str, str | Sequence[str] | None]) -> None:
    """See, before hours of work, that the files can be written and that none overwrites another.

    Parameters
    ----------
    source : Path
        What the command reads; nothing is written over it.
    targets : mapping of str to str, sequence of str, or None
        The path, or paths, of each option that names a file to write. ``-`` stands for standard
        output in --json alone.

    Raises
    ------
    ValidationError
        A path that cannot be written, is taken, or is ``-`` where that means nothing.
    """
    taken = {source.resolve(): os.fspath(source)}
    pairs = [
        (option, path)
        for option, spec_file in targets.items()
        for path in ([spec_file] if isinstance(spec_file, str) else spec_file or [])
    ]
    for option, path in pairs:
        if path == "-" and option == "--json":
            continue
        _check_target(path, option)
        target = Path(path).resolve()
        if target in taken and (target.is_file() or not target.exists()):
            raise ValidationError(f"{option}: {taken[target]} is taken; another path is needed")
        taken[target] = option


def check_channels(paths: Sequence[str] | None) -> list[str]:
    """Return the paths of --channel, or say that one does not say which format it is."""
    for path in paths or []:
        if Path(path).suffix.lower() not in CHANNELS:
            raise ValidationError(
                f"--channel: found {path}; its end must be one of {', '.join(CHANNELS)}"
            )
    return list(paths or [])


class Output:
    """What a command was asked to write: its report, the proof, the channel.

    Parameters
    ----------
    command : str
        Its name.
    source : Path
        What it reads.
    json_path, certificate : str, optional
        The paths of --json and --certificate.
    channels : sequence of str, optional
        Those of --channel.
    **others
        Further options that name a file, which the command itself writes.

    Raises
    ------
    ValidationError
        As `check_channels` and `check_targets`: before the work, and not after it.
    """

    def __init__(
        self,
        command: str,
        source: Path,
        json_path: str | None,
        certificate: str | None,
        channels: Sequence[str] | None = None,
        **others: str | None,
    ) -> None:
        self.command, self.json_path, self.certificate = command, json_path, certificate
        self.channels = check_channels(channels)
        named = {"json": json_path, "certificate": certificate, "channel": channels, **others}
        check_targets(source, {f"--{option}": paths for option, paths in named.items()})

    def publish(
        self,
        report: Report,
        heading: Sequence[str],
        identity: Mapping[str, Any],
        *,
        tables: bool = True,
    ) -> None:
        """Print the report and write the files, each all of it or nothing.

        `identity` says what was read, as `report_document` takes it.
        """
        from rich.console import Console

        from cvxleak.cli.rendering import render
        from cvxleak.proofs import save_certificates

        if report.channel is not None:
            for path in self.channels:
                _write_channel(report.channel, path)
        if self.certificate is not None:
            save_certificates(report.certificates(), self.certificate)
        document = report_document(report.to_dict(), command=self.command, **identity)
        if write_document(document, self.json_path):
            render(report, Console(), heading, tables=tables)


def write_page(
    path: str,
    report: Report,
    heading: Sequence[str],
    identity: Mapping[str, Any],
    certificate: str | None,
    spec: str = "",
) -> None:
    """Write what --html asks for.

    `identity` says what was read, as `report_document` takes it, and `spec` is its text.
    """
    from cvxleak.core.files import write_atomic
    from cvxleak.report import html_page

    page = html_page(
        report,
        heading,
        spec=spec,
        sources={
            name: digest
            for name, digest in {identity["spec"]: identity["sha256"], **identity["files"]}.items()
            if digest
        },
        certificate=None if certificate is None else Path(certificate).name,
    )
    write_atomic(path, page)


def write_document(document: Mapping[str, Any], json_path: str | None) -> bool:
    """Write what --json asks for; return whether there is anything to print for people."""
    from cvxleak.core.files import write_atomic

    text = _text(document)
    if json_path == "-":
        typer.echo(text, nl=False)
        return False
    if json_path is not None:
        write_atomic(json_path, text)
    return True


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _write_channel(channel: Channel, path: str) -> None:
    from cvxleak.core.files import write_atomic

    if Path(path).suffix.lower() == ".csv":
        channel.to_csv(path)
    else:
        write_atomic(path, _text(channel.to_dict()))


def _check_target(path: str, option: str) -> None:
    if path == "-":
        raise ValidationError(f"{option}: needs the path of a file; it is not written to -")
    target = Path(path)
    folder = target.parent
    if target.is_dir():
        raise ValidationError(f"{option}: {path} is a folder")
    if not folder.is_dir():
        raise ValidationError(f"{option}: there is no folder {folder}")
    if not os.access(target if target.exists() else folder, os.W_OK):
        raise ValidationError(f"{option}: no permission to write {path}")
