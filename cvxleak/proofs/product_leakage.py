"""Certificate kind ``product-leakage``: the worst adversary whose prior has independent records.

The claim is about max over the audited records i and over all product priors p(x) = prod_j p_j(x_j)
with H(X) = sum_j H(X_j) >= b of I(X_i;Y).

problem: {"mechanism", "entropy_floor": b, "record": i, or null for all}.

witness: {"record": i, "laws": a distribution for each record}. Its I(X_i;Y) is the lower bound,
provided that sum_j H(p_j) >= b is shown in ball arithmetic.

proof: {"contexts", "audit"}, null for what is not used. The upper bound is the smaller of the two.

- "contexts": for each audited record a distribution on its values for every context z of the others
  (`cvxleak.model.query.Query.lines`). I(X_i;Y) is convex in the distribution of each other record.
  Without a floor its maximum is therefore attained where all other records are known, and is at
  most max_z of the capacity of q(.|., z). Each capacity is at most max_a D(row_a || sum_a pi_a
  row_a).
- "audit": witness and proof of a record leakage at the same floor, which covers product priors.

Instead of a floor on the sum, the problem may say that each distribution is in a polytope:

problem: {"mechanism", "record", "laws"}; "laws" is one of

- {"least_probability": a}: each other record has each of its values with probability a at least;
- {"record_floor": h}: each other record is binary and has H(X_j) >= h;
- {"vertices": [[distributions, how many records in a row], ...]}: each distribution, that of record
  i too, is a mixture of these.

witness: {"record": i, "weights": [[weights on the vertices, how many records in a row], ...],
"least_probability"}.

proof: {"inputs", "least_probability"}. For each audited record, "inputs" is a packed array with
weights on the vertices of its own distribution for each case. `cvxleak.proofs.bounds.independent`
explains how the cases prove both bounds.

With "gain" and "form" in the problem, as in `cvxleak.proofs.record_leakage`, both claims are about
the gain in that form. "contexts" is then null or "corners", and "inputs" null: the largest gain
from a record's channel is found exactly (`cvxleak.proofs.bounds.independent_gains`), if the gain
has few actions. As for the information, it is convex in the distribution of each other record.

"least_probability" is null unless there is a record floor. H(X_j) >= h says that each probability
is in an interval [a, 1 - a]; the witness has an a with h(a) >= h, the proof one with h(a) <= h.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

import numpy as np
from flint import arb

from cvxleak.core.errors import CertificateError
from cvxleak.core.numbers import fraction
from cvxleak.core.validation import Array
from cvxleak.exact import balls, reading
from cvxleak.exact.limits import charge, charge_records
from cvxleak.exact.outward import UNIT_ROUNDOFF
from cvxleak.exact.packing import unpack
from cvxleak.model import Mechanism, RecordSpace
from cvxleak.model.gain_form import LEAKAGE, GainForm
from cvxleak.model.query import runs_to_list
from cvxleak.proofs import record_leakage
from cvxleak.proofs.bounds import independent, independent_gains
from cvxleak.proofs.bounds.adversary_class import check_floor
from cvxleak.proofs.bounds.outputs import Ball, capacity_above

__all__ = ["SIZE_LIMIT", "about", "contexts_bound", "hulls", "prove", "prove_lower", "unit_of"]

SIZE_LIMIT = 1 << 16
"""Most datasets that a witness's output distributions are added up over."""

CORNERS = "corners"
"""What a proof says if the largest gain over contexts is to be found exactly."""

KINDS = {"vertices", "least_probability", "record_floor"}
"""What may be known of the distributions."""


def prove(
    problem: Mapping[str, Any], witness: Mapping[str, Any], proof: Mapping[str, Any]
) -> tuple[float, float]:
    """Return proved lower and upper bounds on the leakage to product priors, in nats."""
    known = "laws" if "laws" in problem else "entropy_floor"
    keys = {"mechanism", "record", known}
    reading.parts(problem, keys, "the problem", optional={"gain", "form"})
    charge_records(problem["mechanism"])
    mechanism = Mechanism.from_dict(problem["mechanism"])
    given, told = _record(problem, mechanism), GainForm.read(problem)
    if "laws" in problem:
        return _prove_cases(mechanism, given, problem["laws"], witness, proof, told)
    floor = reading.number(problem["entropy_floor"], "the entropy floor")
    audited = [group[0] for group in mechanism.groups(1)] if given is None else [given]
    reading.parts(witness, {"record", "laws"}, "the witness")
    record = reading.count(witness["record"], "the witness's record")
    if record not in audited:
        raise CertificateError(f"the witness is about record {record}, which is not audited")
    lower = prove_lower(mechanism, floor, record, witness["laws"], told)
    reading.parts(proof, {"contexts", "audit"}, "the proof")
    uppers = [max(_most(told, len(mechanism.space.alphabets[i])) for i in audited)]
    if proof["contexts"] == CORNERS:
        uppers.append(max(corners_bound(mechanism, i, told) for i in audited))
    elif proof["contexts"] is not None:
        if not told.is_leakage:
            raise CertificateError(
                "distributions of the contexts can be given for the leakage in nats only"
            )
        each = _of_each(audited, proof["contexts"])
        uppers.append(max(contexts_bound(mechanism, i, unpack(laws)) for i, laws in each))
    if proof["audit"] is not None:
        parts = reading.parts(proof["audit"], {"witness", "proof"}, "the audit")
        statement = {
            "mechanism": problem["mechanism"],
            "entropy_floor": floor,
            "size": 1,
            "records": None if given is None else [[given]],
            **told.to_dict(),
        }
        uppers.append(record_leakage.prove(statement, parts["witness"], parts["proof"])[1])
    return lower, min(uppers)


def unit_of(problem: Mapping[str, Any]) -> str:
    """Return the unit of the bounds."""
    return GainForm.read(problem).unit


def about(problem: Mapping[str, Any]) -> str:
    """Say what a problem that `prove` has read is about."""
    record, told = problem["record"], GainForm.read(problem)
    who = "the worst record" if record is None else f"record {record}"
    if not told.is_leakage:
        who = f"{told.name}, {who}"
    if "laws" not in problem:
        floor = reading.number(problem["entropy_floor"], "the entropy floor")
        return f"{who}, product priors with an entropy of at least {floor:.12g} nats"
    kind, known = _known(problem["laws"])
    if kind == "vertices":
        return f"{who}, product priors whose distributions are mixtures of given ones"
    words = {
        "least_probability": "each value of each other record has a probability of",
        "record_floor": "each other record's entropy in nats is",
    }
    return f"{who}, product priors; {words[kind]} at least {reading.number(known, kind):.12g}"


def hulls(
    space: RecordSpace, laws: Mapping[str, Any], least: float | None
) -> tuple[list[independent.Vertices], list[independent.Vertices]]:
    """Return the vertices of each record's distribution: as another record, and as the target.

    `laws` is the problem's entry, `least` the least probability for a record floor.
    """
    kind, given = _known(laws)
    if kind == "vertices":
        found = runs_to_list(given, "the vertices", space.records)
        if len(found) < space.records:
            raise CertificateError(f"the vertices are missing; {space.records} records need them")
        known: dict[tuple[int, int], independent.Vertices] = {}
        for one, size in zip(found, space.shape, strict=True):
            if (id(one), size) not in known:
                known[id(one), size] = _vertices(one, size)
        each = [known[id(one), size] for one, size in zip(found, space.shape, strict=True)]
        return each, each
    if kind == "record_floor" and any(size != 2 for size in space.shape):
        raise CertificateError("a record floor needs records with two values")
    least = reading.number(least if kind == "record_floor" else given, "the least probability")
    boxes: dict[int, independent.Vertices] = {}
    for size in set(space.shape):
        if not 0 <= fraction(least) * size <= 1:
            raise CertificateError(f"the least probability: found {least!r} for {size} values")
        boxes[size] = independent.box(size, least)
    whole = {size: independent.simplex(size) for size in boxes}
    return [boxes[size] for size in space.shape], [whole[size] for size in space.shape]


def _known(laws: Any) -> tuple[str, Any]:
    """Return what is known of the distributions: its kind and its value."""
    if isinstance(laws, Mapping) and len(laws) == 1:
        ((kind, known),) = laws.items()
        if kind in KINDS:
            return kind, known
    raise CertificateError(f"the laws: expected one of {sorted(KINDS)}")


def _of_each(audited: list[int], inputs: Any) -> Iterator[tuple[int, Any]]:
    """Yield each audited record with its entry in the proof."""
    if not isinstance(inputs, list) or len(inputs) != len(audited):
        raise CertificateError(f"the proof does not bound each of {len(audited)} records")
    return zip(audited, inputs, strict=True)


def _vertices(laws: Any, size: int) -> independent.Vertices:
    if not isinstance(laws, list) or not laws:
        raise CertificateError("the vertices of a distribution: expected a list that is not empty")
    found = tuple(tuple(reading.numbers(law, "a vertex", size)) for law in laws)
    for law in found:
        balls.normalized(law)
    return found


def _prove_cases(
    mechanism: Mechanism,
    given: int | None,
    laws: Any,
    witness: Mapping[str, Any],
    proof: Mapping[str, Any],
    told: GainForm,
) -> tuple[float, float]:
    reading.parts(witness, {"record", "weights", "least_probability"}, "the witness")
    reading.parts(proof, {"inputs", "least_probability"}, "the proof")
    sides = (("the witness", witness, True), ("the proof", proof, False))
    inner, outer = (
        independent.IndependentRecords(mechanism, *hulls(mechanism.space, laws, least))
        for least in (_least(laws, *side) for side in sides)
    )
    record = reading.count(witness["record"], "the witness's record")
    if record not in ([given] if given is not None else range(mechanism.space.records)):
        raise CertificateError(f"the witness is about record {record}, which is not audited")
    lower = _attained(inner, record, witness["weights"], told)
    if not told.is_leakage:
        if proof["inputs"] is not None:
            raise CertificateError("inputs can be given for the leakage in nats only")
        return lower, max(gains_bound(outer, i, told) for i in outer.attacked(given))
    each = _of_each(outer.attacked(given), proof["inputs"])
    return lower, max(_cases_bound(outer, i, x) for i, x in each)


def _least(laws: Any, name: str, part: Mapping[str, Any], above: bool) -> float | None:
    """Return the least probability of a record floor, rounded up for a witness, else down."""
    (kind, given), least = _known(laws), part["least_probability"]
    if kind != "record_floor":
        if least is not None:
            raise CertificateError(f"{name}: a least probability needs a record floor")
        return None
    floor = balls.number(reading.number(given, "the record floor"))
    found = reading.number(least, f"{name}: the least probability")
    share = balls.number(found)
    doubt = balls.entropy([share, 1 - share])
    if not (doubt >= floor if above else doubt <= floor):
        raise CertificateError(f"{name}: {found!r} is on the wrong side of the record floor")
    return found


def _attained(
    setting: independent.IndependentRecords, record: int, weights: Any, told: GainForm
) -> float:
    """Return a float below what the record leaks under mixtures of the vertices."""
    records = setting.mechanism.space.records
    runs = runs_to_list(weights, "the weights", records)
    if len(runs) < records:
        raise CertificateError(f"the weights are missing; {records} records need them")
    known: dict[tuple[int, int], tuple[tuple[float, ...], int]] = {}
    laws, roundings = [], 0
    for j, given in enumerate(runs):
        vertices = setting.own[j] if j == record else setting.hulls[j]
        key = id(given), id(vertices)
        if key not in known:
            mixture = reading.numbers(given, "the weights", len(vertices))
            balls.normalized(mixture)
            law = independent.floats([mixture])[0] @ independent.floats(vertices)
            known[key] = tuple(law.tolist()), 2 * independent.LAW_ROUNDINGS + len(vertices)
        laws.append(known[key][0])
        roundings = max(roundings, known[key][1])
    found = setting.at(record, laws, roundings)
    law = np.array(laws[record])
    if told.is_leakage:
        return independent.attained(found, law, roundings)
    actions = independent_gains.actions_of(told.gain, len(law))
    low, _ = independent_gains.gain_ends(found, law[None], roundings, actions, told.form)
    return max(_finite(low), told.floor)


def gains_bound(setting: independent.IndependentRecords, record: int, told: GainForm) -> float:
    """Return a float above the gain about the record in every case."""
    cases, own = setting.cases(record), setting.own[record]
    actions = independent_gains.actions_of(told.gain, len(own[0]))
    laws = independent_gains.laws_of(independent_gains.corners(actions, own), own)
    entries = laws.size * len(actions) * setting.mechanism.channel.shape[1]
    charge("steps", cases * (64 + entries // 16), f"{cases} cases")
    blocks = setting.blocks(record)
    ends = (independent_gains.gain_ends(x, laws, 1, actions, told.form)[1] for x in blocks)
    return max(map(_finite, ends))


def corners_bound(mechanism: Mechanism, record: int, told: GainForm) -> float:
    """Return a float above the gain about the record if the others are known."""
    size = len(mechanism.space.alphabets[record])
    actions, whole = independent_gains.actions_of(told.gain, size), independent.simplex(size)
    laws = independent_gains.laws_of(independent_gains.corners(actions, whole), whole)
    rows, worst = independent.floats(mechanism.channel.matrix), -np.inf
    share = 1 - independent.LAW_ROUNDINGS * UNIT_ROUNDOFF
    entries = laws.size * len(actions) * mechanism.channel.shape[1]
    for line in mechanism.query.lines(record):
        charge("steps", 64 + entries // 16, "a context")
        found = independent.Rows(rows[list(line)][None], share)
        ends = independent_gains.gain_ends(found, laws, 1, actions, told.form)
        worst = max(worst, _finite(ends[1]))
    return worst


def _cases_bound(setting: independent.IndependentRecords, record: int, packed: Any) -> float:
    """Return a float above what the record leaks in every case."""
    cases, own = setting.cases(record), independent.floats(setting.own[record])
    entries = len(own[0]) * setting.mechanism.channel.shape[1]
    charge("steps", cases * (64 + entries // 16), f"{cases} cases")
    weights = np.asarray(unpack(packed, (cases, len(own))), dtype=float)
    if not ((weights >= 0) & (weights <= 1)).all():
        raise CertificateError("the weights on the vertices must be from 0 to 1")
    worst, start = 0.0, 0
    for block in setting.blocks(record):
        ends = independent.upper_ends(block, weights[start : start + len(block.rows)], own)
        if not np.isfinite(ends).all():
            raise CertificateError(
                "an input distribution gives probability 0 to an output of its rows"
            )
        worst, start = max(worst, float(ends.max())), start + len(ends)
    return min(worst, _log(len(own[0])))


def _record(problem: Mapping[str, Any], mechanism: Mechanism) -> int | None:
    given = problem["record"]
    if given is None:
        return None
    return mechanism.space.group(reading.count(given, "the record"))[0]


def prove_lower(
    mechanism: Mechanism, floor: float, record: int, given: Any, told: GainForm = LEAKAGE
) -> float:
    """Return a float below I(X_i;Y) of a product prior, once it is proved to meet the floor.

    With `told` it is below another gain.
    """
    space = mechanism.space
    if not isinstance(given, list) or len(given) != space.records:
        raise CertificateError(
            f"the witness: expected a distribution for each of {space.records} records"
        )
    if space.size > SIZE_LIMIT:
        raise CertificateError(f"the witness: at most {SIZE_LIMIT} datasets can be enumerated")
    laws = [
        balls.normalized(reading.numbers(law, "a distribution", size))
        for law, size in zip(given, space.shape, strict=True)
    ]
    check_floor(balls.total(map(balls.entropy, laws)), floor)
    rows, row_of_value = mechanism.distinct_rows
    table = row_of_value[mechanism.query.table()].ravel().tolist()
    weights: list[list[Ball]] = [[arb(0)] * len(rows) for _ in laws[record]]
    # In product order, the last record fastest, as in the table of the datasets.
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
    if told.is_leakage:
        return max(balls.round_down(balls.mutual_information(joint)), 0.0)
    return max(balls.round_down(told.checked(len(joint)).value(joint)), told.floor)


def contexts_bound(mechanism: Mechanism, record: int, inputs: Any) -> float:
    """Return a float above the capacities of a record's channel given the others."""
    lines = mechanism.query.lines(record)
    if inputs.shape != (len(lines), len(mechanism.space.alphabets[record])):
        raise CertificateError("the distributions do not fit the contexts")
    charge("steps", inputs.size * mechanism.channel.shape[1], f"{len(lines)} contexts")
    rows = [balls.normalized(row) for row in mechanism.channel.matrix]
    entropies = [balls.entropy(row) for row in rows]
    worst = arb(0)
    for line, weights in zip(lines, inputs, strict=True):
        own = [rows[place] for place in line]
        worst = worst.max(capacity_above(own, [entropies[place] for place in line], weights))
    return balls.round_up(worst)


def _finite(ends: Array) -> float:
    """Return the largest of some bounds."""
    if not np.isfinite(ends).all():
        raise CertificateError("the gain is too large, or not proved to be positive")
    return float(ends.max())


def _most(told: GainForm, size: int) -> float:
    return balls.round_up(told.checked(size).ceiling(size))


def _log(number: int) -> float:
    return balls.round_up(arb(number).log())
