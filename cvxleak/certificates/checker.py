"""`verify`: the independent checker. It imports no solver and no modelling language."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cvxleak.certificates import capacity, record_leakage
from cvxleak.certificates.balls import precision
from cvxleak.certificates.format import Certificate
from cvxleak.errors import CertificateError, CvxleakError

__all__ = ["Verification", "verify"]

Ends = tuple[float, float]
Prover = Callable[[Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]], Ends]

PROVERS: dict[str, Prover] = {
    "capacity": capacity.prove,
    "record-leakage": record_leakage.prove,
    "balance": record_leakage.prove_balance,
}
"""For each kind, the function (problem, witness, proof) -> proved (lower, upper), in nats."""


@dataclass(frozen=True)
class Verification:
    """The checker's answer: `passed`, the ends that it proved itself, and the reason."""

    passed: bool
    reason: str
    lower: float
    upper: float


def verify(certificate: Certificate | Mapping[str, Any] | str | os.PathLike[str]) -> Verification:
    """Check a certificate: recompute its witness's value and its proof in ball arithmetic.

    Parameters
    ----------
    certificate : Certificate, dict or path
        What `Certificate.save` wrote, or its content.

    Returns
    -------
    Verification
        `passed` is true only if the recomputed lower end is at least the claimed one and the
        recomputed upper end at most the claimed one, in exact arithmetic.
    """
    try:
        if isinstance(certificate, Mapping):
            checked = Certificate.from_dict(certificate)
        elif isinstance(certificate, Certificate):
            checked = certificate
        else:
            checked = Certificate.load(certificate)
        prover = PROVERS.get(checked.kind)
        if prover is None:
            raise CertificateError(f"unknown kind {checked.kind!r}; known: {sorted(PROVERS)}")
        with precision():
            lower, upper = prover(checked.problem, checked.witness, checked.proof)
    except CvxleakError as error:
        return Verification(False, str(error), -float("inf"), float("inf"))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        reason = f"a part is missing or malformed: {error!r}"
        return Verification(False, reason, -float("inf"), float("inf"))
    if not lower >= checked.lower:
        reason = f"the witness proves a lower end of {lower!r}, not the claimed {checked.lower!r}"
        return Verification(False, reason, lower, upper)
    if not upper <= checked.upper:
        reason = f"the proof gives an upper end of {upper!r}, not the claimed {checked.upper!r}"
        return Verification(False, reason, lower, upper)
    return Verification(True, "both ends are proved", lower, upper)
