"""`verify`: the independent checker. It imports no solver and no modelling language."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cvxleak.certificates import (
    capacity,
    design,
    envelope,
    fixed_prior,
    local_dp,
    min_information,
    pml_mechanism,
    product_leakage,
    record_leakage,
    release,
)
from cvxleak.certificates.balls import precision
from cvxleak.certificates.bundle import is_bundle, members
from cvxleak.certificates.format import Certificate, read_json
from cvxleak.errors import CertificateError, CvxleakError

__all__ = ["PROVERS", "Prover", "Verification", "verify"]

Parts = Mapping[str, Any]


class Prover(NamedTuple):
    """How one kind of certificate is checked.

    Attributes
    ----------
    prove : callable
        (problem, witness, proof) -> (lower, upper), the ends that these parts prove.
    unit : str
        What the ends are counted in.
    about : callable
        problem -> what the claim is about, in a few words, from the parts that were checked.
    """

    prove: Callable[[Parts, Parts, Parts], tuple[float, float]]
    unit: str = "nats"
    about: Callable[[Parts], str] = lambda problem: ""


PROVERS = {
    "capacity": Prover(capacity.prove, about=capacity.about),
    "min-leakage": Prover(design.prove_min_leakage, about=design.about),
    "min-distortion": Prover(design.prove_min_distortion, "distortion", design.about),
    "failure-probability": Prover(
        envelope.prove_failure_probability, "probability", envelope.about_failure_probability
    ),
    "pml-envelope": Prover(envelope.prove_envelope, about=envelope.about_envelope),
    "pml-mechanism": Prover(pml_mechanism.prove, "utility", pml_mechanism.about),
    "product-leakage": Prover(product_leakage.prove, about=product_leakage.about),
    "record-leakage": Prover(record_leakage.prove, about=record_leakage.about),
    "balance": Prover(record_leakage.prove_balance, about=record_leakage.about),
    "fixed-prior-leakage": Prover(fixed_prior.prove_leakage, about=fixed_prior.about),
    "fixed-prior-distortion": Prover(
        fixed_prior.prove_distortion, "distortion", about=fixed_prior.about
    ),
    "release-distortion": Prover(release.prove_distortion, "distortion", release.about),
    "release-information": Prover(release.prove_information, about=release.about),
    "local-dp": Prover(local_dp.prove, about=local_dp.about),
    "local-dp-distortion": Prover(local_dp.prove_distortion, "distortion", local_dp.about),
    "min-information": Prover(min_information.prove, about=min_information.about),
}
"""How each kind is checked."""


@dataclass(frozen=True)
class Verification:
    """The checker's answer.

    Attributes
    ----------
    passed : bool
    reason : str
    lower, upper : float
        The ends that the checker proved itself, in the certificate's unit; -inf and inf where it
        proved none, and for several certificates together.
    certificate : Certificate or None
        What was checked; None if there is no intact certificate, or more than one.
    about : str
        What the claim is about, in a few words, from the parts that were checked; empty unless
        passed.
    parts : tuple of Verification
        For several certificates in one file, the answer for each.

    Examples
    --------
    >>> from cvxleak import capacity, verify
    >>> answer = verify(capacity([[1.0, 0.0], [0.0, 1.0]]).certificate)
    >>> answer.passed, answer.about
    (True, 'a channel of 2 inputs and 2 outputs')
    """

    passed: bool
    reason: str
    lower: float = -math.inf
    upper: float = math.inf
    certificate: Certificate | None = None
    about: str = ""
    parts: tuple[Verification, ...] = ()

    @classmethod
    def of_parts(cls, parts: Sequence[Verification]) -> Verification:
        """Return the answer for several certificates together: passed if each of them is."""
        failed = sum(not part.passed for part in parts)
        reason = (
            f"{failed} of {len(parts)} certificates do not hold"
            if failed
            else f"all {len(parts)} certificates hold"
        )
        return cls(not failed, reason, parts=tuple(parts))


def verify(certificate: Certificate | Mapping[str, Any] | str | os.PathLike[str]) -> Verification:
    """Check a certificate: recompute its witness's value and its proof in ball arithmetic.

    Where numbers are very many (leaves of trees, large channels) floats are used, and a proved
    bound on the rounding errors is added: see `cvxleak.certificates.outward` and `cell_floats`.

    Parameters
    ----------
    certificate : Certificate, dict or path
        What `Certificate.save` or ``cvxleak audit --certificate`` wrote, or its content. A file
        with several certificates passes if each of them does.

    Returns
    -------
    Verification
        `passed` is true only if the recomputed lower end is at least the claimed one and the
        recomputed upper end at most the claimed one, in exact arithmetic. Whatever is wrong with
        a file, the answer is a `reason`, not an exception.

    Examples
    --------
    >>> from cvxleak import capacity, verify
    >>> answer = verify(capacity([[0.9, 0.1], [0.1, 0.9]]).certificate)
    >>> answer.passed, answer.reason
    (True, 'both ends are proved')
    >>> verify({"format": "something else"}).reason
    'not a cvxleak certificate'
    """
    try:
        if isinstance(certificate, Certificate):
            return _check(certificate)
        content = certificate if isinstance(certificate, Mapping) else read_json(certificate)
        if is_bundle(content):
            return Verification.of_parts([verify(member) for member in members(content)])
        return _check(Certificate.from_dict(content))
    except CvxleakError as error:
        return Verification(False, error.detail if error.argument == "path" else str(error))
    # Anybody may have written the file, and what a computation with its content stumbles over
    # cannot be foreseen; whatever it is, nothing is proved.
    except Exception as error:
        return Verification(False, f"a part is missing or malformed: {error!r:.200}")


def _check(certificate: Certificate) -> Verification:
    prover = PROVERS.get(certificate.kind)
    if prover is None:
        raise CertificateError(f"unknown kind {certificate.kind!r:.60}; known: {sorted(PROVERS)}")
    if certificate.unit != prover.unit:
        raise CertificateError(f"unit {certificate.unit!r:.40}; this kind is in {prover.unit}")
    with precision():
        lower, upper = prover.prove(certificate.problem, certificate.witness, certificate.proof)
    passed, reason = True, "both ends are proved"
    if not lower >= certificate.lower:
        claimed = f"not the claimed {certificate.lower!r}"
        passed, reason = False, f"the witness proves a lower end of {lower!r}, {claimed}"
    elif not upper <= certificate.upper:
        claimed = f"not the claimed {certificate.upper!r}"
        passed, reason = False, f"the proof gives an upper end of {upper!r}, {claimed}"
    about = prover.about(certificate.problem) if passed else ""
    return Verification(passed, reason, lower, upper, certificate, about)
