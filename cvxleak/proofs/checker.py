"""`verify`: the independent checker. It imports no solver and no modelling language."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from cvxleak.core.errors import CertificateError, CvxleakError
from cvxleak.core.numbers import at_most
from cvxleak.core.validation import real_number
from cvxleak.kernel import budget, claims
from cvxleak.kernel.numbers import RefusedError, lower, precision, upper
from cvxleak.proofs import (
    design,
    envelope,
    fixed_prior,
    local_dp,
    local_dp_of_set,
    min_information,
    pml_mechanism,
    reading,
    record_leakage,
    refinement,
    release,
)
from cvxleak.proofs.bundle import is_bundle, members
from cvxleak.proofs.format import (
    HALF_SPACES,
    PROBLEM,
    SCHEMA_VERSION,
    Certificate,
    read_json,
)
from cvxleak.proofs.timed import run_within

__all__ = ["PROVERS", "End", "Prover", "Verification", "verify"]

Parts = Mapping[str, Any]
Proved = tuple[float, float] | tuple[float, float, str]


class Prover(NamedTuple):
    """How one kind of certificate is checked.

    Attributes
    ----------
    prove : callable
        (problem, witness, proof) -> (lower, upper), the bounds that these parts prove. If there is
        a third entry and it is not empty, it says why an infinite bound is not proved.
    unit : str or callable
        The unit of the bounds; for a kind with several units, problem -> unit.
    about : callable
        problem -> a short description of the subject, from the parts that were checked.
    """

    prove: Callable[[Parts, Parts, Parts], Proved]
    unit: str | Callable[[Parts], str] = "nats"
    about: Callable[[Parts], str] = lambda problem: ""

    def unit_of(self, problem: Parts) -> str:
        """Return the unit of a problem's bounds."""
        return self.unit if isinstance(self.unit, str) else self.unit(problem)


def _by_kernel(kind: str, about: Callable[[Parts], str]) -> Prover:
    """Return how the kernel checks a kind: its witness and proof are the terms of both ends."""

    @reading.reporting
    def prove(problem: Parts, witness: Parts, proof: Parts) -> Proved:
        statement = claims.KINDS[kind].read(problem)
        below = lower(statement.lower(witness)) if witness else -math.inf
        return below, upper(statement.upper(proof)) if proof else math.inf

    return Prover(prove, partial(claims.unit_of, kind), about)


def _of_channel(problem: Parts) -> str:
    """Say which channel, or set of channels, and which order a problem is about."""
    order = f"order {problem['alpha']}, " if "alpha" in problem else ""
    rows, words = problem.get("matrix"), "a channel of"
    if rows is None:
        rows, words = problem["lower"], "every channel in a set, with"
    return f"{order}{words} {len(rows)} inputs and {len(rows[0])} outputs"


def _of_pairs(problem: Parts) -> str:
    """Say which rows a problem compares."""
    rows, pairs = problem["matrix"], problem["pairs"]
    level = "".join(f"{key} {problem[key]}, " for key in ("alpha", "epsilon") if key in problem)
    return f"{level}{len(pairs)} pairs of distributions on {len(rows[0])} outputs"


PROVERS = {
    "capacity": _by_kernel("capacity", _of_channel),
    "renyi-capacity": _by_kernel("renyi-capacity", _of_channel),
    "min-leakage": Prover(design.prove_min_leakage, about=design.about),
    "min-distortion": Prover(design.prove_min_distortion, "distortion", design.about),
    "failure-probability": Prover(
        envelope.prove_failure_probability, "probability", envelope.about_failure_probability
    ),
    "pml-envelope": Prover(envelope.prove_envelope, about=envelope.about_envelope),
    "pml-mechanism": Prover(pml_mechanism.prove, "utility", pml_mechanism.about),
    "product-leakage": _by_kernel("product-leakage", record_leakage.about_independent),
    "record-leakage": _by_kernel("record-leakage", record_leakage.about),
    "balance": _by_kernel("balance", record_leakage.about),
    "total-disclosure": _by_kernel("total-disclosure", record_leakage.about_disclosure),
    "fixed-prior-leakage": Prover(fixed_prior.prove_leakage, about=fixed_prior.about),
    "fixed-prior-distortion": Prover(
        fixed_prior.prove_distortion, "distortion", about=fixed_prior.about
    ),
    "release-distortion": Prover(release.prove_distortion, "distortion", release.about),
    "release-information": Prover(release.prove_information, about=release.about),
    "local-dp": Prover(local_dp.prove, about=local_dp.about),
    "local-dp-distortion": Prover(local_dp.prove_distortion, "distortion", local_dp.about),
    "local-dp-of-set": Prover(local_dp_of_set.prove, about=local_dp_of_set.about),
    "renyi-dp": _by_kernel("renyi-dp", _of_pairs),
    "zcdp": _by_kernel("zcdp", _of_pairs),
    "dp-profile": _by_kernel("dp-profile", _of_pairs),
    "gaussian-dp": _by_kernel("gaussian-dp", _of_pairs),
    "min-information": Prover(min_information.prove, about=min_information.about),
    "deficiency": Prover(refinement.prove, "probability", refinement.about),
}
"""How each kind is checked."""


class End(NamedTuple):
    """The checker's answer about one claimed bound.

    Attributes
    ----------
    proved : bool
    about : str
        What the bound is proved for: ``"problem"``, the problem that the certificate states, or
        ``"half-spaces"``, only the set that the stored half-spaces describe.
    reason : str
        Why it is not proved; empty if it is.
    """

    proved: bool
    about: str
    reason: str = ""


@dataclass(frozen=True)
class Verification:
    """The checker's answer.

    Attributes
    ----------
    passed : bool
        Whether every claimed bound is proved.
    reason : str
        Which bounds are proved and for what, or why one is not.
    lower, upper : float
        The bounds that the checker proved itself, in the certificate's unit. They are -inf and inf
        where it proved none, and for several certificates together.
    certificate : Certificate or None
        What was checked; None if there is no intact certificate, or more than one.
    about : str
        A short description of the subject, from the parts that were checked; empty unless passed.
    ends : dict
        The answer about each claimed bound, ``"lower"`` or ``"upper"``; empty if the parts could
        not be read, and for several certificates together.
    parts : tuple of Verification
        For several certificates in one file, the answer for each.
    finished : bool
        False if a time limit ended the check; the certificate may then be valid or not.
    rules : dict
        For each claimed end, the kernel's rules that its term names; empty for the kinds that other
        provers check.

    Examples
    --------
    >>> from cvxleak import capacity, verify
    >>> answer = verify(capacity([[1.0, 0.0], [0.0, 1.0]]).certificate)
    >>> answer.passed, answer.about
    (True, 'a channel of 2 inputs and 2 outputs')
    >>> answer.ends["upper"]
    End(proved=True, about='problem', reason='')
    """

    passed: bool
    reason: str
    lower: float = -math.inf
    upper: float = math.inf
    certificate: Certificate | None = None
    about: str = ""
    ends: Mapping[str, End] = field(default_factory=dict)
    parts: tuple[Verification, ...] = ()
    finished: bool = True
    rules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Verification({self.verdict}: {self.reason})"

    @property
    def verdict(self) -> str:
        """``"PASS"``, ``"FAIL"``, or ``"NOT CONFIRMED"`` if a time limit ended the check."""
        if self.finished:
            return "PASS" if self.passed else "FAIL"
        return "NOT CONFIRMED"

    def _repr_html_(self) -> str:
        from cvxleak.core.notebook import html_table

        rows = [
            (part.verdict, part.lower, part.upper, part.reason, part.about)
            for part in self.parts or (self,)
        ]
        return html_table(repr(self), ("verdict", "lower", "upper", "why", "about"), rows)

    @classmethod
    def of_parts(cls, parts: Sequence[Verification]) -> Verification:
        """Return the answer for several certificates together: passed if each of them is."""
        failed = sum(not part.passed for part in parts)
        reason = (
            f"{failed} of {len(parts)} certificates do not pass"
            if failed
            else f"all {len(parts)} certificates pass"
        )
        return cls(not failed, reason, parts=tuple(parts))


def verify(
    certificate: Certificate | Mapping[str, Any] | str | os.PathLike[str],
    *,
    time_limit: float | None = None,
) -> Verification:
    """Check a certificate: recompute its witness's value and its proof in ball arithmetic.

    Where there are very many numbers (leaves of trees, large channels), floats are used and a
    proved bound on the rounding errors is added (`cvxleak.kernel.many`).

    Parameters
    ----------
    certificate : Certificate, dict or path
        What `Certificate.save` or ``cvxleak audit --certificate`` wrote, or its content. A file
        with several certificates passes if each of them does.
    time_limit : float, optional
        Seconds that the check may take, including about half a second to start a process that can
        be stopped. If the check has not finished by then, `finished` is false, and nothing is
        said about the certificate.

    Returns
    -------
        `passed` is true only if every claimed bound is proved: the recomputed lower bound is at
        least the claimed one, and the recomputed upper bound at most the claimed one, in exact
        arithmetic. `ends` has the answer for each bound, and what it is proved for. Whatever is
        wrong with a file, the answer is a `reason`, not an exception.

    Examples
    --------
    >>> from cvxleak import capacity, verify
    >>> answer = verify(capacity([[0.9, 0.1], [0.1, 0.9]]).certificate)
    >>> answer.passed, answer.reason
    (True, 'both bounds are proved')
    >>> verify({"format": "something else"}).reason
    'not a cvxleak certificate'
    """
    if time_limit is not None:
        answer = run_within(verify, certificate, real_number(time_limit, "time_limit", 0.0))
        if isinstance(answer, str):
            return Verification(False, f"not confirmed: {answer}", finished=False)
        return answer
    with budget.limited():
        return _answer(certificate)


def _answer(certificate: Any) -> Verification:
    try:
        if isinstance(certificate, Certificate):
            return _check(certificate)
        content = certificate if isinstance(certificate, Mapping) else read_json(certificate)
        if is_bundle(content):
            return Verification.of_parts([_answer(member) for member in members(content)])
        return _check(Certificate.from_dict(content))
    except CvxleakError as error:
        return Verification(False, error.detail if error.argument == "path" else str(error))
    except RefusedError as error:
        return Verification(False, str(error))
    except RecursionError:
        return Verification(False, "a part is malformed: too many lists within each other")
    # The file may come from anyone, and not every failure of a computation with its content can
    # be foreseen. Whatever goes wrong, nothing is proved.
    except Exception as error:
        return Verification(False, f"a part is missing or malformed: {error!r:.200}")


def _check(certificate: Certificate) -> Verification:
    # Strings only: anything else may not even be hashable.
    prover = PROVERS.get(certificate.kind) if isinstance(certificate.kind, str) else None
    if prover is None:
        raise CertificateError(f"unknown kind {certificate.kind!r:.60}; known: {sorted(PROVERS)}")
    newest = claims.SCHEMA if certificate.kind in claims.KINDS else SCHEMA_VERSION
    if certificate.schema_version > newest or (
        newest == claims.SCHEMA != certificate.schema_version
    ):
        raise CertificateError(
            f"schema version {certificate.schema_version} of {certificate.kind}; this checker "
            f"reads version {newest}: make the certificate again"
        )
    if newest == claims.SCHEMA:
        return _by_the_kernel(certificate, prover)
    about = _about(certificate)
    if certificate.unit != (unit := prover.unit_of(certificate.problem)):
        raise CertificateError(f"unit {certificate.unit!r:.40}; this kind is in {unit}")
    with precision(), reading.schema(certificate.schema_version):
        lower, upper, *why = prover.prove(
            certificate.problem, certificate.witness, certificate.proof
        )
    ends = {}
    if certificate.lower is not None:
        holds = at_most(certificate.lower, lower)
        ends["lower"] = _end(lower, certificate.lower, holds, about["lower"], why)
    if certificate.upper is not None:
        holds = at_most(upper, certificate.upper)
        ends["upper"] = _end(upper, certificate.upper, holds, about["upper"], why)
    passed = all(end.proved for end in ends.values())
    what = prover.about(certificate.problem) if passed else ""
    return Verification(passed, _summary(ends), lower, upper, certificate, what, ends)


def _by_the_kernel(certificate: Certificate, prover: Prover) -> Verification:
    """Return the kernel's answer, and the rules that prove each end."""
    found = claims.check(certificate.to_dict())
    ends = {name: End(end.proved, PROBLEM, end.reason) for name, end in found.items()}
    passed = all(end.proved for end in ends.values())
    below, above = (found[name].found if name in found else math.nan for name in ("lower", "upper"))
    return Verification(
        passed,
        _summary(ends),
        -math.inf if math.isnan(below) else below,
        math.inf if math.isnan(above) else above,
        certificate,
        prover.about(certificate.problem) if passed else "",
        ends,
        rules={name: end.rules for name, end in found.items()},
    )


def _end(found: float, claimed: float, holds: bool, about: str, why: Sequence[str]) -> End:
    reason = why[0] if why and math.isinf(found) else ""
    if not reason and not holds:
        reason = f"{found!r} is proved, not the claimed {claimed!r}"
    return End(not reason, about, reason)


def _about(certificate: Certificate) -> Mapping[str, str]:
    """Return what each claimed bound is about, as far as the certificate can show it."""
    conditional = bool(certificate.problem.get("own"))
    if certificate.schema_version == 1:
        # Version 1 does not say whether the stored half-spaces are all that the problem asks for.
        return {"lower": PROBLEM, "upper": HALF_SPACES if conditional else PROBLEM}
    if "own" not in certificate.problem and HALF_SPACES in certificate.about.values():
        raise CertificateError("about: this kind of file proves nothing about half-spaces")
    return certificate.about


def _summary(ends: Mapping[str, End]) -> str:
    """Say which bounds are proved, and for what; or which are not, and why."""
    proved = [name for name, end in ends.items() if end.proved]
    if len(proved) < len(ends):
        missed = [f"the {n} bound: {end.reason}" for n, end in ends.items() if not end.proved]
        return "; ".join([*missed, *(f"the {name} bound is proved" for name in proved)])
    text = "both bounds are proved" if len(ends) == 2 else f"the {proved[0]} bound is proved"
    narrow = [name for name, end in ends.items() if end.about == HALF_SPACES]
    if narrow:
        text += f", the {' and the '.join(narrow)} bound for the stored half-spaces only"
    return text if len(ends) == 2 else f"{text}; no other bound is claimed"
