"""What the command line writes to files: the report as JSON, where it may be written."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cvxleak._version import __version__
from cvxleak.errors import ValidationError

__all__ = ["REPORT", "check_target", "report_document"]

REPORT = "cvxleak-report"
VERSION = 1


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


def check_target(path: str | os.PathLike[str], option: str) -> None:
    """See, before hours of work, whether a file can be written there."""
    target = Path(path)
    folder = target.parent
    if target.is_dir():
        raise ValidationError(f"{option}: {os.fspath(path)} is a folder")
    if not folder.is_dir():
        raise ValidationError(f"{option}: there is no folder {os.fspath(folder)}")
    if not os.access(target if target.exists() else folder, os.W_OK):
        raise ValidationError(f"{option}: no permission to write {os.fspath(path)}")
