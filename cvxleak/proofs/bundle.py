"""Several certificates in one file: what an audit of several quantities writes."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from cvxleak.core.errors import CertificateError, ValidationError
from cvxleak.core.files import write_atomic
from cvxleak.core.validation import in_order, instance
from cvxleak.proofs.format import Certificate, read_json

__all__ = ["is_bundle", "members", "read_certificates", "save_certificates"]

BUNDLE = "cvxleak-certificates"
VERSION = 1

MEMBERS_LIMIT = 10_000
"""Most certificates in one file."""


def save_certificates(certificates: Sequence[Certificate], path: str | os.PathLike[str]) -> None:
    """Write certificates to one file: a single one as it is, several as a list with a header.

    `verify` reads either.

    Raises
    ------
    ValidationError
        There is no certificate, or more than 10,000, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from cvxleak import capacity, verify
    >>> from cvxleak.proofs import save_certificates
    >>> channels = [[0.9, 0.1], [0.1, 0.9]], [[0.8, 0.2], [0.2, 0.8]]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_certificates([capacity(c).certificate for c in channels], f"{folder}/both.json")
    ...     verify(f"{folder}/both.json").reason
    'all 2 certificates pass'
    """
    given = in_order(certificates, "certificates")
    if not given:
        raise ValidationError("certificates: found none; a file holds at least one")
    if len(given) > MEMBERS_LIMIT:
        raise ValidationError(
            f"certificates: found {len(given)}; a file holds at most {MEMBERS_LIMIT}"
        )
    content = [instance(one, Certificate, "certificates").to_dict() for one in given]
    document = {"format": BUNDLE, "version": VERSION, "certificates": content}
    write_atomic(path, json.dumps(content[0] if len(content) == 1 else document) + "\n")


def read_certificates(path: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """Return the certificates in a file, unchecked: its content, or the members of its list.

    Raises
    ------
    ValidationError
        The file cannot be read.
    CertificateError
        It is not JSON, or holds no certificate.

    Examples
    --------
    >>> import tempfile
    >>> from cvxleak import capacity
    >>> from cvxleak.proofs import read_certificates
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     capacity([[0.9, 0.1], [0.1, 0.9]]).certificate.save(f"{folder}/bsc.json")
    ...     [certificate["kind"] for certificate in read_certificates(f"{folder}/bsc.json")]
    ['capacity']
    """
    content = read_json(path)
    return members(content) if is_bundle(content) else [_one(content)]


def is_bundle(content: Any) -> bool:
    """Whether a file's content is a list of certificates."""
    return isinstance(content, Mapping) and content.get("format") == BUNDLE


def members(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the certificates in a bundle, unchecked; raise if the bundle itself is malformed."""
    version = content.get("version")
    if type(version) is not int or version != VERSION:  # true is 1 in Python
        raise CertificateError(f"version {version!r:.40} of the list; this checker reads {VERSION}")
    if set(content) != {"format", "version", "certificates"}:
        raise CertificateError(
            "the list of certificates has a part missing, or one that is unknown"
        )
    found = content["certificates"]
    if not isinstance(found, list) or not found:
        raise CertificateError("the list holds no certificate")
    if len(found) > MEMBERS_LIMIT:
        raise CertificateError(f"{len(found)} certificates; at most {MEMBERS_LIMIT} are read")
    return [_one(member) for member in found]


def _one(content: Any) -> dict[str, Any]:
    if is_bundle(content):
        raise CertificateError(
            "found a list of certificates inside another list; lists cannot be nested"
        )
    if not isinstance(content, dict):
        raise CertificateError("not a cvxleak certificate")
    return content
