"""`Certificate`: a file that proves both ends of a bound to anybody, without a solver."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cvxleak._files import write_atomic
from cvxleak._version import __version__
from cvxleak.errors import CertificateError

__all__ = ["SCHEMA_VERSION", "Certificate"]

FORMAT = "cvxleak-certificate"
SCHEMA_VERSION = 1


def _versions() -> dict[str, str]:
    return {"cvxleak": __version__, "python": platform.python_version(), "numpy": np.__version__}


@dataclass(frozen=True)
class Certificate:
    """What is claimed about a problem, and the numbers that prove it.

    Attributes
    ----------
    kind : str
        Which checker applies, for example ``"capacity"``.
    problem : dict
        The problem's data: exact floats, exact integers as text.
    lower, upper : float
        The claim, in nats, for the problem as stored (rows divided exactly by their sums).
    witness : dict
        The point that attains the attained end.
    proof : dict
        The multipliers or cells that prove the other end.
    versions : dict
        Software that made it; informative only.

    Notes
    -----
    `verify` recomputes both ends in ball arithmetic. The file also holds a SHA-256 of its content,
    so any change to it is seen even where the changed numbers would still be a proof.
    """

    kind: str
    problem: Mapping[str, Any]
    lower: float
    upper: float
    witness: Mapping[str, Any]
    proof: Mapping[str, Any]
    versions: Mapping[str, str] = field(default_factory=_versions)

    def __post_init__(self) -> None:
        # Keep what a file would hold (lists for tuples), so that a loaded certificate is equal.
        for name in ("problem", "witness", "proof", "versions"):
            object.__setattr__(self, name, _plain(getattr(self, name)))

    @property
    def hash(self) -> str:
        """SHA-256 of the certificate's content."""
        content = json.dumps(self._content(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(content.encode()).hexdigest()

    def to_dict(self) -> dict[str, Any]:
        """Return the certificate as plain JSON data."""
        return {**self._content(), "sha256": self.hash}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the certificate to a JSON file (all of it or nothing)."""
        write_atomic(path, json.dumps(self.to_dict()) + "\n")

    @classmethod
    def from_dict(cls, data: Any) -> Certificate:
        """Return the certificate that `to_dict` wrote, its hash checked.

        Raises
        ------
        CertificateError
            Not a certificate, another schema version, or a hash that does not match.
        """
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise CertificateError("not a cvxleak certificate")
        if data.get("schema_version") != SCHEMA_VERSION:
            raise CertificateError(
                f"schema version {data.get('schema_version')!r}; "
                f"this checker reads version {SCHEMA_VERSION}"
            )
        try:
            claim = data["claim"]
            certificate = cls(
                data["kind"],
                data["problem"],
                float(claim["lower"]),
                float(claim["upper"]),
                data["witness"],
                data["proof"],
                data["versions"],
            )
        except (KeyError, TypeError, ValueError) as error:
            raise CertificateError(f"a part is missing or malformed: {error!r}") from error
        if data != certificate.to_dict():
            raise CertificateError("the content does not match its SHA-256: it was changed")
        return certificate

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Certificate:
        """Read a certificate from a JSON file.

        Raises
        ------
        CertificateError
            The file cannot be read, is not JSON, or is not an intact certificate.
        """
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise CertificateError(f"cannot read {os.fspath(path)!r}: {error}") from error
        return cls.from_dict(data)

    def _content(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "schema_version": SCHEMA_VERSION,
            "kind": self.kind,
            "problem": dict(self.problem),
            "claim": {"lower": self.lower, "upper": self.upper, "unit": "nats"},
            "witness": dict(self.witness),
            "proof": dict(self.proof),
            "versions": dict(self.versions),
        }


def _plain(value: Any) -> Any:
    """Return what JSON would give back for `value`, without a detour through text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [part if type(part) is float else _plain(part) for part in value]
    return value
