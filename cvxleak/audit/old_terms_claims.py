"""Terms of the proof kernel for what today's searches find of other kinds than leakage. Untrusted.

It goes with `cvxleak.audit.old_terms`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cvxleak.audit.old_terms import Term
from cvxleak.kernel.claims import KINDS
from cvxleak.kernel.leakage import RecordLeakage
from cvxleak.kernel.numbers import lower, precision, upper
from cvxleak.proofs.format import plain

__all__ = ["claimed", "difference", "terms_of"]

Parts = Mapping[str, Any]


def terms_of(kind: str, problem: Parts, witness: Parts, proof: Parts) -> tuple[Term, Term]:
    """Return the terms of the lower and the upper end, from a certificate's parts."""
    makers = {
        "total-disclosure": _disclosure,
    }
    with precision():
        return makers[kind](problem, witness, proof)


def _disclosure(problem: Parts, witness: Parts, proof: Parts) -> tuple[Term, Term]:
    statement = RecordLeakage.read({**problem, "entropy_floor": 0})
    trees = {_group(statement, one["records"]): one["tree"] for one in proof["groups"]}
    above = {"rule": "max", "groups": [trees[group] for group in statement.groups]}
    place = statement.groups.index(_group(statement, witness["records"]))
    return {"rule": "owners", "group": place, "values": witness["values"]}, above


def _group(statement: RecordLeakage, records: Any) -> tuple[int, ...]:
    return tuple(sorted(statement.space.run_of(i) for i in records))


def difference(capacity: Term, leakage: Term) -> Term:
    """Return the term of an end of the balance function."""
    return {"rule": "difference", "capacity": capacity, "leakage": leakage}


def claimed(
    kind: str, problem: Parts, witness: Parts, proof: Parts
) -> tuple[float, float, Term, Term]:
    """Return the bounds that the kernel proves, and the terms of both ends."""
    written = plain(problem)
    below, above = terms_of(kind, written, plain(witness), plain(proof))
    with precision():
        statement = KINDS[kind].read(written)
        return lower(statement.lower(below)), upper(statement.upper(above)), below, above
