"""What the command line writes to files: reports and certificates, as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cvxleak._version import __version__
from cvxleak.certificates import Certificate
from cvxleak.errors import CertificateError, ValidationError

__all__ = ["BUNDLE", "REPORT", "bundle", "check_target", "read_certificates", "report_document"]

REPORT = "cvxleak-report"
BUNDLE = "cvxleak-certificates"
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


def bundle(certificates: Sequence[Certificate]) -> dict[str, Any]:
    """Return a file's content: one certificate as it is, several as a list with a header."""
    content = [certificate.to_dict() for certificate in certificates]
    if len(content) == 1:
        return content[0]
    return {"format": BUNDLE, "version": VERSION, "certificates": content}


def read_certificates(path: str | os.PathLike[str]) -> list[Any]:
    """Return the certificates in a file, unchecked: its content, or the members of its list.

    Raises
    ------
    ValidationError
        The file cannot be read.
    CertificateError
        It is not JSON, or a list with nothing in it.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ValidationError(f"{os.fspath(path)}: {error.strerror or error}") from error
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise CertificateError(f"not JSON: {error}") from error
    if not isinstance(content, dict) or content.get("format") != BUNDLE:
        return [content]
    if content.get("version") != VERSION:
        raise CertificateError(
            f"version {content.get('version')!r} of the list; this checker reads {VERSION}"
        )
    members = content.get("certificates")
    if not isinstance(members, list) or not members:
        raise CertificateError("it holds no certificate")
    return members


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
