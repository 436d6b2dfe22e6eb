"""Reading and writing files: atomic writes, and labels that survive JSON."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path
from typing import Any

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import short


def write_atomic(path: str | os.PathLike[str], text: str | bytes) -> None:
    """Write `text` to `path` so that a reader sees the old file or the new one, never a part."""
    target = Path(os.path.realpath(checked_path(path)))
    data = text.encode() if isinstance(text, str) else text
    temporary = target.parent / f".cvxleak-{secrets.token_hex(8)}"
    try:
        if target.exists() and not target.is_file():
            # A device or a pipe is written to; replacing it by a file would destroy it.
            target.write_bytes(data)
            return
        try:
            with open(temporary, "xb") as file:
                file.write(data)
            if target.exists():
                shutil.copymode(target, temporary)
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise ValidationError(f"path: cannot write {os.fspath(path)!r}: {error}") from error


def checked_path(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """Return a path; anything else is an error."""
    if not isinstance(path, (str, os.PathLike)):
        remedy = "; save it by .to_csv(path, index=False)" if hasattr(path, "to_csv") else ""
        raise ValidationError(f"path: expected text or a path, found {short(path)}{remedy}")
    return path


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file, or raise one clear error."""
    try:
        return Path(checked_path(path)).read_text(encoding="utf-8-sig")
    except ValidationError:
        raise
    except (OSError, ValueError) as error:
        encoding = isinstance(error, UnicodeDecodeError)
        hint = "; save the file as UTF-8 (in Excel, as CSV UTF-8)" if encoding else ""
        raise ValidationError(f"path: cannot read {os.fspath(path)!r}: {error}{hint}") from error


DEEPEST = 64
"""Most lists within lists that are read as labels: Python's own limit differs between versions."""


def labels_from_json(labels: Any, deepest: int = DEEPEST) -> Any:
    """Turn the lists that JSON makes of tuples back into tuples."""
    if not isinstance(labels, list):
        return labels
    if not deepest:
        raise ValidationError(f"labels: found more than {DEEPEST} lists within each other")
    return tuple(labels_from_json(label, deepest - 1) for label in labels)
