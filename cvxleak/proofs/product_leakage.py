"""Certificate kind ``product-leakage``: the worst adversary whose prior has independent records.

The claim is about max over the audited records i and over all product priors p(x) = prod_j p_j(x_j)
with H(X) = sum_j H(X_j) >= b of I(X_i;Y).

problem: {"mechanism", "entropy_floor": b, "record": i, or null for all}.

witness: {"record": i, "laws": a law for each record}. Its I(X_i;Y) is the lower end once
sum_j H(p_j) >= b holds in ball arithmetic.

proof: {"contexts", "audit"}, null for what is not used; the upper end is the least that they give.

- "contexts": for each audited record a law on its values for every context z of the others
  (`cvxleak.model.query.Query.lines`). I(X_i;Y) is convex in the law of each other record, so that
  without a floor all of them may be taken to be known: it is at most max_z of the capacity of
  q(.|., z), and each capacity at most max_a D(row_a || sum_a pi_a row_a).
- "audit": witness and proof of a record leakage at the same floor. Product priors are priors.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from flint import arb

from cvxleak.core.errors import CertificateError
from cvxleak.exact import balls, reading
from cvxleak.exact.limits import charge, charge_records
from cvxleak.exact.packing import unpack
from cvxleak.model import Mechanism
from cvxleak.proofs import record_leakage
from cvxleak.proofs.bounds.adversary_class import check_floor
from cvxleak.proofs.bounds.outputs import Ball, capacity_above

__all__ = ["SIZE_LIMIT", "about", "contexts_bound", "prove", "prove_lower"]

SIZE_LIMIT = 1 << 16
"""Most datasets that a witness's output laws are added up over."""


def prove(
    problem: Mapping[str, Any], witness: Mapping[str, Any], proof: Mapping[str, Any]
) -> tuple[float, float]:
    """Return proved lower and upper ends of the leakage to product priors, in nats."""
    reading.parts(problem, {"mechanism", "entropy_floor", "record"}, "the problem")
    charge_records(problem["mechanism"])
    mechanism = Mechanism.from_dict(problem["mechanism"])
    floor = reading.number(problem["entropy_floor"], "the entropy floor")
    given = problem["record"]
    if given is None:
        audited = [group[0] for group in mechanism.groups(1)]
    else:
        audited = [mechanism.space.group(reading.count(given, "the record"))[0]]
    reading.parts(witness, {"record", "laws"}, "the witness")
    record = reading.count(witness["record"], "the witness's record")
    if record not in audited:
        raise CertificateError(f"the witness is about record {record}, which is not audited")
    lower = prove_lower(mechanism, floor, record, witness["laws"])
    reading.parts(proof, {"contexts", "audit"}, "the proof")
    uppers = [max(_log(len(mechanism.space.alphabets[i])) for i in audited)]
    if proof["contexts"] is not None:
        inputs = proof["contexts"]
        if not isinstance(inputs, list) or len(inputs) != len(audited):
            raise CertificateError(f"the proof does not bound each of {len(audited)} records")
        uppers.append(
            max(
                contexts_bound(mechanism, i, unpack(laws))
                for i, laws in zip(audited, inputs, strict=True)
            )
        )
    if proof["audit"] is not None:
        parts = reading.parts(proof["audit"], {"witness", "proof"}, "the audit")
        statement = {
            "mechanism": problem["mechanism"],
            "entropy_floor": floor,
            "size": 1,
            "records": None if given is None else [[given]],
        }
        uppers.append(record_leakage.prove(statement, parts["witness"], parts["proof"])[1])
    return lower, min(uppers)


def about(problem: Mapping[str, Any]) -> str:
    """Say what a problem that `prove` has read is about."""
    record, floor = problem["record"], reading.number(problem["entropy_floor"], "the entropy floor")
    who = "the worst record" if record is None else f"record {record}"
    return f"{who}, product priors of at least {floor:.12g} nats of doubt"


def prove_lower(mechanism: Mechanism, floor: float, record: int, given: Any) -> float:
    """Return a float below I(X_i;Y) of a product prior, once it is proved to meet the floor."""
    space = mechanism.space
    if not isinstance(given, list) or len(given) != space.records:
        raise CertificateError(f"the witness: expected a law for each of {space.records} records")
    if space.size > SIZE_LIMIT:
        raise CertificateError(f"the witness: at most {SIZE_LIMIT} datasets can be added up over")
    laws = [
        balls.normalized(reading.numbers(law, "a law", size))
        for law, size in zip(given, space.shape, strict=True)
    ]
    check_floor(balls.total(map(balls.entropy, laws)), floor)
    rows, row_of_value = mechanism.distinct_rows
    table = row_of_value[mechanism.query.table()].ravel().tolist()
    weights: list[list[Ball]] = [[arb(0)] * len(rows) for _ in laws[record]]
    # In product order, the last record fastest: so are the datasets of the table.
    partial = [(arb(1), 0)]
    for j, law in enumerate(laws):
        partial = [
            (mass * p, value if j == record else a)
            for (mass, a), (value, p) in product(partial, list(enumerate(law)))
        ]
    for (mass, a), row in zip(partial, table, strict=True):
        weights[a][row] += mass
    exact = [balls.normalized(row) for row in rows]
    joint = []
    for own in weights:
        law = [arb(0)] * len(exact[0])
        for share, row in zip(own, exact, strict=True):
            if not share == 0:
                law = [x + share * q for x, q in zip(law, row, strict=True)]
        joint.append(law)
    return max(balls.round_down(balls.mutual_information(joint)), 0.0)


def contexts_bound(mechanism: Mechanism, record: int, inputs: Any) -> float:
    """Return a float above the capacities of a record's channel given the others."""
    lines = mechanism.query.lines(record)
    if inputs.shape != (len(lines), len(mechanism.space.alphabets[record])):
        raise CertificateError("the laws do not fit the contexts")
    charge("steps", inputs.size * mechanism.channel.shape[1], f"{len(lines)} contexts")
    rows = [balls.normalized(row) for row in mechanism.channel.matrix]
    entropies = [balls.entropy(row) for row in rows]
    worst = arb(0)
    for line, weights in zip(lines, inputs, strict=True):
        own = [rows[place] for place in line]
        worst = worst.max(capacity_above(own, [entropies[place] for place in line], weights))
    return balls.round_up(worst)


def _log(number: int) -> float:
    return balls.round_up(arb(number).log())
