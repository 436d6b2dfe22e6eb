"""Reading and writing model objects: atomic writes, labels that survive CSV and JSON."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from cvxleak.errors import ValidationError


def write_atomic(path: str | os.PathLike[str], text: str | bytes) -> None:
    """Write `text` to `path` so that a reader sees the old file or the new one, never a part."""
    target = Path(path)
    data = text.encode() if isinstance(text, str) else text
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        # mkstemp makes private files; give the result the mode an ordinary open would have.
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file, with one clear error for whatever is wrong with it."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValidationError(f"path: cannot read {os.fspath(path)!r}: {error}") from error


def read_json(path: str | os.PathLike[str]) -> Any:
    """Return the content of a JSON file."""
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise ValidationError(f"path: {os.fspath(path)!r} is not JSON: {error}") from error


def labels_from_json(labels: Any) -> Any:
    """Turn the lists that JSON makes of tuples back into tuples."""
    if isinstance(labels, list):
        return tuple(labels_from_json(label) for label in labels)
    return labels


def label_from_text(text: str) -> str | int | float:
    """Return the label that a CSV cell stands for: an int or a float if it reads as one."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
