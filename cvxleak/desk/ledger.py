"""`Ledger`: the one SQLite file of a release desk.

It holds the model p(x), the budgets, each party's requests p(r|x), the kernels that were used and
the outputs that were released; never the data. Every row carries a SHA-256 of itself and of the
row before it, so a changed row is seen.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from cvxleak.errors import ValidationError

__all__ = ["Ledger"]

FORMAT = "cvxleak-release-ledger"
VERSION = 1
WAIT = 600.0
"""Seconds to wait for another process that is in the middle of a release."""

NOT_A_LEDGER = "the file is not a ledger of a release desk"

SCHEMA = """
CREATE TABLE ledger (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE release (
    number INTEGER PRIMARY KEY CHECK (number > 0),
    content TEXT NOT NULL,
    sha256 TEXT NOT NULL
) STRICT;
"""


class Ledger:
    """A file of releases that only grows.

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
        self.path = Path(path)
        if not self.path.is_file():
            raise ValidationError(f"path: there is no ledger at {os.fspath(path)!r}")
        with self._open() as connection:
            found = dict(_read(connection, "SELECT key, value FROM ledger"))
        if found.get("format") != FORMAT:
            raise ValidationError(f"path: {os.fspath(path)!r} is not a ledger of a release desk")
        if found.get("version") != str(VERSION):
            raise ValidationError(
                f"path: {os.fspath(path)!r} is a ledger of version {found.get('version')!r:.20}; "
                f"this program reads version {VERSION}"
            )
        self.heading: dict[str, Any] = json.loads(found["heading"])
        self._seed = _digest("", found["heading"])

    @classmethod
    def create(cls, path: str | os.PathLike[str], heading: dict[str, Any]) -> Ledger:
        """Make a new ledger; the file must not exist.

        Raises
        ------
        ValidationError
            Something is there already, or it cannot be written.
        """
        target = Path(path)
        draft = target.parent / f".cvxleak-{secrets.token_hex(8)}"
        try:
            with closing(_connect(draft)) as connection:
                connection.executescript(SCHEMA)
                rows = {"format": FORMAT, "version": str(VERSION), "heading": json.dumps(heading)}
                connection.executemany("INSERT INTO ledger VALUES (?, ?)", rows.items())
            # A link is there as a whole or not at all, and never in the place of another file.
            os.link(draft, target)
        except FileExistsError:
            raise ValidationError(f"path: {os.fspath(path)!r} is there already") from None
        except (OSError, sqlite3.Error) as error:
            raise ValidationError(f"path: cannot write {os.fspath(path)!r}: {error}") from error
        finally:
            draft.unlink(missing_ok=True)
        return cls(path)

    def releases(self) -> list[dict[str, Any]]:
        """Return the content of every release, first to last."""
        with self._open() as connection:
            return self._contents(connection)

    def broken(self) -> list[str]:
        """Return what is wrong with the chain of hashes, in words; nothing if it is intact."""
        with self._open() as connection:
            rows = _read(connection, "SELECT number, content, sha256 FROM release ORDER BY number")
        complaints, before = [], self._seed
        for place, (number, content, sha256) in enumerate(rows, start=1):
            if number != place:
                complaints.append(f"release {place} is missing")
                break
            before = _digest(before, content)
            if sha256 != before:
                complaints.append(f"release {number} was changed after it was recorded")
                break
        return complaints

    @contextmanager
    def release(self) -> Iterator[Writer]:
        """Hold the ledger for one release: nobody else can write until it is recorded.

        Leaving the block without `Writer.record`, by an exception or otherwise, changes nothing.
        """
        with self._open() as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.Error as error:
                raise ValidationError(f"path: cannot write {self.path}: {error}") from error
            try:
                yield Writer(connection, self._contents(connection), self._seed)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    def _contents(self, connection: sqlite3.Connection) -> list[dict[str, Any]]:
        rows = _read(connection, "SELECT content FROM release ORDER BY number")
        try:
            return [json.loads(content) for (content,) in rows]
        except ValueError as error:
            raise ValidationError(f"path: {self.path} holds a damaged release") from error

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(_connect(self.path)) as connection:
            yield connection


class Writer:
    """A ledger held for one release.

    Attributes
    ----------
    releases : list of dict
        The releases so far.
    """

    def __init__(
        self, connection: sqlite3.Connection, releases: list[dict[str, Any]], seed: str
    ) -> None:
        self._connection = connection
        self._seed = seed
        self.releases = releases

    def record(self, content: dict[str, Any]) -> None:
        """Write one more release to the disk; when this returns, it is there for good."""
        text = json.dumps(content, allow_nan=False)
        last = self._connection.execute(
            "SELECT sha256 FROM release ORDER BY number DESC LIMIT 1"
        ).fetchone()
        sha256 = _digest(last[0] if last else self._seed, text)
        row = (len(self.releases) + 1, text, sha256)
        self._connection.execute("INSERT INTO release VALUES (?, ?, ?)", row)
        self._connection.execute("COMMIT")


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=WAIT, isolation_level=None)
    try:
        # A commit has reached the disk when it returns, power cut or not.
        connection.execute("PRAGMA synchronous = EXTRA")
    except sqlite3.Error as error:
        connection.close()
        raise ValidationError(f"path: {NOT_A_LEDGER}: {error}") from error
    return connection


def _read(connection: sqlite3.Connection, query: str) -> list[tuple[Any, ...]]:
    try:
        return connection.execute(query).fetchall()
    except sqlite3.Error as error:
        raise ValidationError(f"path: {NOT_A_LEDGER}: {error}") from error


def _digest(before: str, content: str) -> str:
    return hashlib.sha256(f"{before}\n{content}".encode()).hexdigest()
