"""`Ledger`: the one SQLite file of a release desk.

It holds the model p(x), the budgets, each party's requests p(r|x), the kernels that were used and
the outputs that were released; never the data. Every row has a SHA-256 of itself and of the row
before it, so that any changed row is detected.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from cvxleak.core.errors import ValidationError
from cvxleak.core.files import checked_path
from cvxleak.core.numbers import to_json

__all__ = ["Ledger"]

FORMAT = "cvxleak-release-ledger"
VERSION = 1
WAIT = 120.0
"""Seconds to wait for another process that is making a release."""

NOT_A_LEDGER = "the file is not a ledger of a release desk"
LOCKED = "another process holds the ledger; try again"

LOST = "the release was written but cannot be read back, so it is not returned"

ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""The errors of SQLite: the second if damaged text gets into its own messages."""

TABLES = (
    "CREATE TABLE ledger (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
    """CREATE TABLE release (
    number INTEGER PRIMARY KEY CHECK (number > 0),
    content TEXT NOT NULL,
    sha256 TEXT NOT NULL
) STRICT""",
)
"""The complete schema of a ledger; a trigger, say, could keep a release from being recorded."""


class Ledger:
    """A file of releases, to which releases are only added.

    Parameters
    ----------
    path : path-like
        An existing ledger; `create` makes one.

    Raises
    ------
    ValidationError
        No such file, or not a ledger.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # Absolute, because the program may change its folder while the ledger is in use.
        self.path = Path(os.path.abspath(checked_path(path)))
        if not self.path.is_file():
            raise ValidationError(f"path: there is no ledger at {os.fspath(path)!r}")
        with self._open() as connection:
            self._text = _heading(connection)
        self.heading: dict[str, Any] = _parsed(self._text)
        self._seed = _digest("", self._text)

    @classmethod
    def create(cls, path: str | os.PathLike[str], heading: dict[str, Any]) -> Ledger:
        """Make a new ledger, which only its owner may read; the file must not exist.

        Raises
        ------
        ValidationError
            The file exists, it cannot be written, or the heading has a label that JSON cannot
            represent.
        """
        target = Path(os.path.abspath(checked_path(path)))
        draft = target.parent / f".cvxleak-{secrets.token_hex(8)}"
        rows = {"format": FORMAT, "version": str(VERSION), "heading": _json(heading)}
        try:
            os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            with closing(_connect(draft)) as connection:
                for table in TABLES:
                    connection.execute(table)
                connection.executemany("INSERT INTO ledger VALUES (?, ?)", rows.items())
            # A link is created completely or not at all, and never replaces another file.
            os.link(draft, target)
        except FileExistsError:
            raise ValidationError(f"path: {os.fspath(path)!r} already exists") from None
        except (OSError, *ERRORS) as error:
            why = getattr(error, "strerror", None) or error  # not the draft's name
            raise ValidationError(f"path: cannot write {os.fspath(path)!r}: {why}") from error
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)
        return cls(target)

    @property
    def head(self) -> str:
        """The hash of the last row, and so of the whole chain."""
        with self._open() as connection:
            return _chain(_rows(connection), self._seed)

    def heads(self) -> list[str]:
        """Return what `head` was before the first release and after each one."""
        with self._open() as connection:
            return [self._seed, *(sha256 for _, _, sha256 in _rows(connection))]

    def releases(self) -> list[dict[str, Any]]:
        """Return the content of every release, first to last.

        Raises
        ------
        ValidationError
            The file cannot be read, or a row was changed after it was recorded.
        """
        with self._open() as connection:
            return self._contents(connection)

    @contextmanager
    def release(self) -> Iterator[Writer]:
        """Lock the ledger for one release: no other process can write until it is recorded.

        Leaving the block without `Writer.record`, by an exception or otherwise, changes nothing.

        Raises
        ------
        ValidationError
            As `releases`, or the file has become a different ledger.
        """
        with self._open() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield Writer(self, connection)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _contents(self, connection: sqlite3.Connection) -> list[dict[str, Any]]:
        return [_parsed(content) for _, content, _ in self._read(connection)]

    def _read(self, connection: sqlite3.Connection) -> list[tuple[int, str, str]]:
        """Return the rows; raise unless the file is this ledger and its chain is complete."""
        if _heading(connection) != self._text:
            raise ValidationError(
                f"path: {os.fspath(self.path)!r} is no longer the ledger that was opened"
            )
        rows = _rows(connection)
        _chain(rows, self._seed)
        # The last rows of a damaged file may be missing without a trace in the chain.
        if _read(connection, "PRAGMA quick_check") != [("ok",)]:
            raise ValidationError("path: the file is damaged")
        return rows

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """Connect; report an error of SQLite as one of the file, the lock or the disk."""
        try:
            with closing(_connect(self.path)) as connection:
                yield connection
        except ERRORS as error:
            if isinstance(error, sqlite3.OperationalError) and "locked" not in str(error):
                raise ValidationError(
                    f"path: cannot use {os.fspath(self.path)!r}: {error}; nothing is released"
                ) from error
            raise _not_read(error) from error


class Writer:
    """A ledger that is locked for one release.

    Attributes
    ----------
    releases : list of dict
        The releases so far.
    """

    def __init__(self, ledger: Ledger, connection: sqlite3.Connection) -> None:
        self._ledger = ledger
        self._connection = connection
        self._rows = ledger._read(connection)
        self.releases = [_parsed(content) for _, content, _ in self._rows]

    def record(self, content: dict[str, Any]) -> None:
        """Write a release to the disk; when this returns, it is permanent.

        It is read back through a second connection: another program may have damaged or replaced
        the file in the meantime, which the first connection would not notice.

        Raises
        ------
        ValidationError
            The disk is full or fails, JSON cannot represent a label, or the file does not have the
            release afterwards.
        """
        text = _json(content)
        before = self._rows[-1][2] if self._rows else self._ledger._seed
        row = (len(self._rows) + 1, text, _digest(before, text))
        self._connection.execute("INSERT INTO release VALUES (?, ?, ?)", row)
        self._connection.execute("COMMIT")
        try:
            with self._ledger._open() as connection:
                found = self._ledger._read(connection)
        except ValidationError as error:
            raise ValidationError(f"path: {LOST}: {error.detail}") from error
        # Another process may have added releases in the meantime.
        if found[: len(self._rows) + 1] != [*self._rows, row]:
            raise ValidationError(f"path: {LOST}")


def _connect(path: Path) -> sqlite3.Connection:
    # If the file is gone, it is not created again.
    place = f"file:{quote(os.fspath(path))}?mode=rw"
    connection = sqlite3.connect(place, timeout=WAIT, isolation_level=None, uri=True)
    try:
        # A commit is on the disk when it returns, even if the power fails afterwards.
        connection.execute("PRAGMA synchronous = EXTRA")
    except ERRORS:
        connection.close()
        raise
    return connection


def _heading(connection: sqlite3.Connection) -> str:
    found = dict(_read(connection, "SELECT key, value FROM ledger"))
    if found.get("format") != FORMAT or "heading" not in found:
        raise ValidationError(f"path: {NOT_A_LEDGER}")
    if found.get("version") != str(VERSION):
        raise ValidationError(
            f"path: a ledger of version {found.get('version')!r:.20}; this program reads version "
            f"{VERSION}"
        )
    made = _read(connection, "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")
    # Types are checked, because a damaged file may have other types in place of text.
    if sorted(repr(sql) for (sql,) in made) != sorted(map(repr, TABLES)):
        raise ValidationError(f"path: {NOT_A_LEDGER}: it has other tables")
    if not isinstance(found["heading"], str):
        raise ValidationError(f"path: {NOT_A_LEDGER}: its heading is not text")
    return found["heading"]


def _rows(connection: sqlite3.Connection) -> list[tuple[int, str, str]]:
    return _read(connection, "SELECT number, content, sha256 FROM release ORDER BY number")


def _chain(rows: list[tuple[int, str, str]], seed: str) -> str:
    """Return the last hash; raise unless each row's number and hash are right."""
    before = seed
    for place, (number, content, sha256) in enumerate(rows, start=1):
        if number != place:
            raise ValidationError(f"path: release {place} is missing")
        before = _digest(before, content)
        if sha256 != before:
            raise ValidationError(f"path: release {number} was changed after it was recorded")
    return before


def _read(connection: sqlite3.Connection, query: str) -> list[Any]:
    try:
        return connection.execute(query).fetchall()
    except ERRORS as error:
        raise _not_read(error) from error


def _not_read(error: Exception) -> ValidationError:
    what = LOCKED if "locked" in str(error) else f"{NOT_A_LEDGER}: {error}"
    return ValidationError(f"path: {what}")


def _parsed(text: str) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValidationError(f"path: the ledger holds a damaged row: {error!r:.100}") from error
    if not isinstance(content, dict):
        raise ValidationError("path: the ledger holds a damaged row")
    return content


def _json(content: dict[str, Any]) -> str:
    try:
        return json.dumps(to_json(content), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ValidationError(
            f"request: a label cannot be recorded: {error}; text, numbers, booleans, None and "
            "tuples of them can"
        ) from error


def _digest(before: str, content: str) -> str:
    return hashlib.sha256(f"{before}\n{content}".encode()).hexdigest()
