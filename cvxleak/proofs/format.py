"""`Certificate`: a file that proves both bounds to anyone, without a solver."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cvxleak._version import __version__
from cvxleak.core.errors import CertificateError, ValidationError
from cvxleak.core.files import read_text, write_atomic
from cvxleak.core.numbers import from_json, to_json
from cvxleak.core.validation import short
from cvxleak.kernel import claims
from cvxleak.proofs import reading

__all__ = ["HALF_SPACES", "PROBLEM", "SCHEMA_VERSION", "Certificate", "read_json"]

FORMAT = "cvxleak-certificate"
SCHEMA_VERSION = reading.NEWEST
READABLE = (1, SCHEMA_VERSION, claims.SCHEMA)

PARTS = ("problem", "witness", "proof", "versions")

KEYS = {"format", "schema_version", "kind", "claim", "sha256", *PARTS}
UNSAID = 0
"""The version of a certificate that is made now: the newest of its kind."""

KERNEL_KEYS = {"format", "schema_version", "kind", "problem", "unit", "ends", "versions", "sha256"}

ENDS = ("lower", "upper")

PROBLEM = "problem"
"""Says that a bound is proved for the problem that `Certificate.problem` states in full."""

HALF_SPACES = "half-spaces"
"""Says that a bound is proved only for the set that the stored half-spaces describe."""

INFINITE = "inf"
"""How a file writes an infinite bound."""


def _versions() -> dict[str, str]:
    return {"cvxleak": __version__, "python": platform.python_version(), "numpy": np.__version__}


@dataclass(frozen=True)
class Certificate:
    """What is claimed about a problem, and the numbers that prove it.

    Attributes
    ----------
    kind : str
        Which prover checks it, for example ``"capacity"``.
    problem : dict
        The problem's data: exact floats, exact integers as text.
    lower, upper : float or None
        The claim, in `unit`, for the problem as written. An infinite bound is written as the text
        ``"inf"`` in a file, because JSON has no such number. None if a bound is not claimed; at
        least one is.
    witness : dict
        The point that attains one of the bounds.
    proof : dict
        The multipliers or cells that prove the other bound.
    versions : dict
        Software that made it; informative only.
    unit : str
        The unit of the bounds: ``"nats"``, or that of its kind.
    about : dict
        For each claimed bound, what it is proved for. ``"problem"``: the problem that `problem`
        states in full. ``"half-spaces"``: only the set that the stored half-spaces describe. A
        witness of a problem with convex constraints of the user's own can be checked against these
        half-spaces only. ``"problem"`` for both bounds if left out; empty in schema version 1,
        which does not say.
    schema_version : int
        3 for the kinds that the proof kernel checks: `witness` and `proof` are then the terms of
        the two ends, the one that is attained first. 2 for the others, or 1 for files written
        before bounds had the entry `about`.

    Raises
    ------
    CertificateError
        No bound is claimed, `about` does not fit the claimed bounds, or another schema version.

    Notes
    -----
    `verify` recomputes both bounds in ball arithmetic. The file also holds a SHA-256 of its
    content, so any change to it is seen even where the changed numbers would still be a proof.

    Examples
    --------
    >>> from cvxleak import capacity, verify
    >>> certificate = capacity([[0.9, 0.1], [0.1, 0.9]]).certificate
    >>> certificate.kind, round(certificate.upper, 6), certificate.unit
    ('capacity', 0.368064, 'nats')
    >>> verify(certificate).passed
    True
    """

    kind: str
    problem: Mapping[str, Any] = field(repr=False)
    lower: float | None
    upper: float | None
    witness: Mapping[str, Any] = field(repr=False)
    proof: Mapping[str, Any] = field(repr=False)
    versions: Mapping[str, str] = field(default_factory=_versions, repr=False)
    unit: str = "nats"
    about: Mapping[str, str] = field(default_factory=dict)
    schema_version: int = UNSAID

    def __post_init__(self) -> None:
        # Keep what a file would hold (lists for tuples), so that a loaded certificate is equal.
        for name in PARTS:
            object.__setattr__(self, name, plain(getattr(self, name)))
        if self.schema_version is UNSAID:
            newest = claims.SCHEMA if self.kind in [*claims.KINDS] else SCHEMA_VERSION
            object.__setattr__(self, "schema_version", newest)
        version = _readable(self.schema_version)
        claimed = [end for end in ENDS if getattr(self, end) is not None]
        if not claimed or (version == 1 and len(claimed) < 2):
            raise CertificateError("the claim: a bound is missing")
        if version == claims.SCHEMA:  # a file has no term of an end that is not claimed
            for end, name in zip(ENDS, ("witness", "proof"), strict=True):
                if end not in claimed:
                    object.__setattr__(self, name, {})
        said = dict.fromkeys(claimed, PROBLEM) if version > 1 else {}
        about = said if isinstance(self.about, Mapping) and not self.about else self.about
        if (
            not isinstance(about, Mapping)
            or set(about) != set(said)
            or not all(isinstance(what, str) for what in about.values())
            or not set(about.values()) <= {PROBLEM, HALF_SPACES}
        ):
            raise CertificateError(
                f"about: found {short(about)}; for each claimed end ({', '.join(said) or 'none'}) "
                f"{PROBLEM!r} or {HALF_SPACES!r}"
            )
        object.__setattr__(self, "about", dict(about))

    @property
    def claim(self) -> dict[str, Any]:
        """The claim as a file states it: bounds, unit, and what each bound is proved for."""
        claim = {
            "lower": _stored_end(self.lower),
            "upper": _stored_end(self.upper),
            "unit": self.unit,
        }
        return claim if self.schema_version == 1 else claim | {"about": self.about}

    @property
    def hash(self) -> str:
        """SHA-256 of the certificate's content: as JSON, keys sorted, without spaces."""
        return _hash(self._content())

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
        version = _readable(data.get("schema_version"))
        if version == claims.SCHEMA:
            return cls._of_kernel(data)
        reading.parts(data, KEYS, "the certificate")
        about = set() if version == 1 else {"about"}
        claim = reading.parts(data["claim"], {"lower", "upper", "unit"} | about, "the claim")
        _objects(data, PARTS)
        try:
            certificate = cls(
                data["kind"],
                data["problem"],
                _read_end(claim["lower"], "the claimed lower end"),
                _read_end(claim["upper"], "the claimed upper end"),
                data["witness"],
                data["proof"],
                data["versions"],
                claim["unit"],
                {} if version == 1 else claim["about"],
                version,
            )
            certificate._need_intact(data)
        except RecursionError as error:
            raise CertificateError("its parts are nested too deeply") from error
        except (TypeError, ValueError, OverflowError) as error:
            raise CertificateError(f"a part is malformed: {error!r:.200}") from error
        return certificate

    @classmethod
    def _of_kernel(cls, data: Mapping[str, Any]) -> Certificate:
        """Return the certificate that a file of schema 3 holds; the kernel reads the rest."""
        reading.parts(data, KERNEL_KEYS, "the certificate")
        _objects(data, ("problem", "versions"))
        ends = {}
        for name, end in reading.parts(data["ends"], set(), "the ends", may=set(ENDS)).items():
            ends[name] = reading.parts(end, {"value", "about", "by"}, f"the {name} end")
            _objects(end, ("by",))
        nothing: dict[str, Any] = {"value": None, "by": {}}
        below, above = (ends.get(name, nothing) for name in ENDS)
        certificate = cls(
            data["kind"],
            data["problem"],
            _read_end(below["value"], "the claimed lower end"),
            _read_end(above["value"], "the claimed upper end"),
            below["by"],
            above["by"],
            data["versions"],
            data["unit"],
            {name: end["about"] for name, end in ends.items()},
            claims.SCHEMA,
        )
        certificate._need_intact(data)
        return certificate

    def _need_intact(self, data: Mapping[str, Any]) -> None:
        """Refuse a file that does not hold this certificate and its hash."""
        content = {key: part for key, part in data.items() if key != "sha256"}
        # The hash is of the file's own numbers: 3 and 3.0 are written differently.
        if content != self._content() or data["sha256"] != _hash(content):
            raise CertificateError("the content does not match its SHA-256: it was changed")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Certificate:
        """Read a certificate from a JSON file (`read_certificates` reads one that holds several).

        Raises
        ------
        ValidationError
            The file cannot be read.
        CertificateError
            It is not JSON, or not one intact certificate.
        """
        return cls.from_dict(read_json(path))

    def _content(self) -> dict[str, Any]:
        if self.schema_version == claims.SCHEMA:
            ends = zip(ENDS, (self.lower, self.upper), (self.witness, self.proof), strict=True)
            return {
                "format": FORMAT,
                "schema_version": self.schema_version,
                "kind": self.kind,
                "problem": dict(self.problem),
                "unit": self.unit,
                "ends": {
                    name: {"value": _stored_end(value), "about": self.about[name], "by": dict(term)}
                    for name, value, term in ends
                    if value is not None
                },
                "versions": dict(self.versions),
            }
        return {
            "format": FORMAT,
            "schema_version": self.schema_version,
            "kind": self.kind,
            "problem": dict(self.problem),
            "claim": self.claim,
            "witness": dict(self.witness),
            "proof": dict(self.proof),
            "versions": dict(self.versions),
        }


def _objects(data: Mapping[str, Any], names: Sequence[str]) -> None:
    """Refuse parts of a file that are no objects."""
    for name in names:
        if not isinstance(data[name], Mapping):
            raise CertificateError(f"{name}: expected an object")


def _hash(content: Mapping[str, Any]) -> str:
    try:
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise CertificateError(f"the content is not JSON: {error}") from error
    return hashlib.sha256(text.encode()).hexdigest()


def read_json(path: str | os.PathLike[str]) -> Any:
    """Return the content of a JSON file, read strictly.

    Content that JSON readers treat differently is refused: repeated keys, NaN and infinities.

    Raises
    ------
    ValidationError
        The file cannot be read.
    CertificateError
        It is not JSON.
    """
    try:
        text = read_text(path)
    except ValidationError as error:
        if isinstance(error.__cause__, UnicodeDecodeError):  # it was read, and is not text
            raise CertificateError(error.detail) from error
        raise
    try:
        return json.loads(
            text, object_pairs_hook=_unique, parse_float=_finite, parse_constant=_finite
        )
    except (ValueError, RecursionError) as error:
        raise CertificateError(f"cannot read {os.fspath(path)!r} as JSON: {error}") from error


def _readable(version: Any) -> int:
    if type(version) is not int or version not in READABLE:
        raise CertificateError(
            f"schema version {short(version)}; this checker reads versions 1 to {claims.SCHEMA}"
        )
    return version


def _stored_end(value: float | None) -> float | str | None:
    return INFINITE if value == math.inf else to_json(value)


def _read_end(value: Any, name: str) -> float | None:
    if value is None:
        return None
    return math.inf if value == INFINITE else reading.number(value, name)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key is there twice")
    return result


def _finite(text: str) -> float:
    value = from_json(text)
    if not math.isfinite(value):
        raise ValueError(f"{text:.40} is not a finite number")
    return value


def plain(value: Any) -> Any:
    """Return what writing `value` as JSON and reading it again would give."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        if set(map(type, value)) == {float}:
            return list(value)  # large matrices are long lists of floats
        return [part if type(part) is float else plain(part) for part in value]
    return to_json(value)
