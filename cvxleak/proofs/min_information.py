"""Certificate kind ``min-information``: the least worst-case information at a distortion.

problem: {"sources": parts, "distortion": "hamming" or rows, "budget": D};
witness: {"channel": rows, "supports": ..., "outputs": a distribution or null for each part,
"output_supports": for each part what bounds its polytopes};
proof: {"parts": a mixture and a weight for each part, "channel": rows, "price": s, "mixture": ...}.

Upper bound: the witness's channel Q meets the budget exactly. On a convex part, max_P I(P;Q) <=
max_P sum_x P(x) D(Q_x || t) for any distribution t; for a part with a single distribution P the
bound is I(P;Q) itself.

Lower bound: with weights w_k and distributions P_k of the parts, sum_k w_k I(P_k;Q) is at most the
worst case. It is convex and homogeneous in Q, so it is at least its tangent at the proof's channel
R > 0, sum_{x,y} G(x,y) Q(y|x) with G(x,y) = sum_k w_k P_k(x) log( R(y|x) / (P_k R)(y) ). Since Q
meets the budget under the mixture p, the value is, for any price s >= 0, at least
sum_x min_y ( G(x,y) + s p_x d(x,y) ) - s D.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from flint import arb, fmpq

from cvxleak.core.errors import CertificateError
from cvxleak.kernel.lemmas import divergence
from cvxleak.kernel.numbers import dot, least
from cvxleak.kernel.numbers import lower as float_below
from cvxleak.kernel.numbers import upper as float_above
from cvxleak.proofs import reading
from cvxleak.proofs.bounds.source_sets import (
    Part,
    above_polytopes,
    described,
    distortion_table,
    mixture,
    read_parts,
    worst_case,
)
from cvxleak.proofs.exact import mutual_information, normalized, normalized_rows, rational

__all__ = ["about", "prove"]


def prove(
    problem: Mapping[str, Any], witness: Mapping[str, Any], proof: Mapping[str, Any]
) -> tuple[float, float]:
    """Return proved bounds on the least worst-case information, in nats."""
    reading.parts(problem, {"budget", "distortion", "sources"}, "the problem")
    size, parts = read_parts(problem["sources"])
    reading.parts(witness, {"channel", "output_supports", "outputs", "supports"}, "the witness")
    distortion = distortion_table(problem["distortion"], size, witness["channel"])
    budget = rational(reading.number(problem["budget"], "the budget"))
    channel = _rows(witness["channel"], size, len(distortion[0]))
    cost = [dot(q, d) for q, d in zip(channel, distortion, strict=True)]
    if worst_case(parts, cost, witness["supports"]) > budget:
        raise CertificateError("the witness exceeds the budget")
    upper = _worst_information(parts, channel, witness["outputs"], witness["output_supports"])
    if proof == {}:
        return 0.0, upper
    return max(_proved(parts, distortion, budget, proof), 0.0), upper


def about(problem: Mapping[str, Any]) -> str:
    """Return a short description of the subject of a checked claim."""
    size, parts = read_parts(problem["sources"])
    budget = reading.number(problem["budget"], "the budget")
    return f"{described(parts)} on {size} outcomes, distortion at most {budget:g}"


def _worst_information(
    parts: Sequence[Part], channel: list[list[fmpq]], outputs: Any, supports: Any
) -> float:
    for name, value in (("the output distributions", outputs), ("the output supports", supports)):
        if not isinstance(value, list) or len(value) != len(parts):
            raise CertificateError(f"{name}: expected one for each part")
    rows = [[arb(q) for q in row] for row in channel]
    upper = 0.0
    for part, output, support in zip(parts, outputs, supports, strict=True):
        points = [[arb(p) for p in point] for point in part.points]
        if output is None:
            if part.bodies or len(points) != 1:
                raise CertificateError(
                    "the output distribution can be left out only for a single distribution"
                )
            joint = [[p * q for q in row] for p, row in zip(points[0], rows, strict=True)]
            upper = max(upper, float_above(mutual_information(joint)))
            continue
        t = normalized(reading.numbers(output, "an output", len(rows[0])))
        logs = [share.log() for share in t]
        costs = [divergence(row, logs) for row in rows]
        if any(not cost.is_finite() for cost in costs):
            return math.inf
        values = [dot(point, costs) for point in points]
        values += above_polytopes(part.bodies, costs, support)
        upper = max(upper, *(float_above(value) for value in values))
    return upper


def _proved(
    parts: Sequence[Part], distortion: list[list[fmpq]], budget: fmpq, proof: Mapping[str, Any]
) -> float:
    reading.parts(proof, {"channel", "mixture", "parts", "price"}, "the proof")
    size, outputs = len(distortion), len(distortion[0])
    rows = _rows(proof["channel"], size, outputs)
    if any(q == 0 for row in rows for q in row):
        raise CertificateError("the proof's channel has a zero")
    price = rational(reading.number(proof["price"], "the price"))
    if price < 0:
        raise CertificateError("the price is negative")
    entries = proof["parts"]
    if not isinstance(entries, list) or len(entries) != len(parts):
        raise CertificateError("the proof needs an entry for each part")
    logs = [[arb(q).log() for q in row] for row in rows]
    tangent = [[arb(0)] * outputs for _ in range(size)]
    weights = []
    for part, entry in zip(parts, entries, strict=True):
        reading.parts(entry, {"mixture", "weight"}, "an entry of the proof")
        weight = rational(reading.number(entry["weight"], "a weight"))
        weights.append(weight)
        if weight < 0:
            raise CertificateError("a weight is negative")
        if weight == 0:
            continue
        law = mixture([part], entry["mixture"], size)
        mean = [arb(dot(law, column)).log() for column in zip(*rows, strict=True)]
        for x, p in enumerate(law):
            if p:
                share = arb(weight * p)
                tangent[x] = [
                    g + share * (a - b) for g, a, b in zip(tangent[x], logs[x], mean, strict=True)
                ]
    total = sum(weights, fmpq(0))
    if total == 0:
        raise CertificateError("the weights of the parts are all zero")
    law = mixture(parts, proof["mixture"], size) if price else [fmpq(0)] * size
    value = arb(-price * budget)
    for x, p in enumerate(law):
        value += least(
            [
                g / arb(total) + arb(price * p * d)
                for g, d in zip(tangent[x], distortion[x], strict=True)
            ]
        )
    return float_below(value)


def _rows(value: Any, size: int, outputs: int) -> list[list[fmpq]]:
    if not isinstance(value, list) or len(value) != size:
        raise CertificateError("a channel does not fit the sources")
    return normalized_rows([reading.numbers(row, "a row", outputs) for row in value])
