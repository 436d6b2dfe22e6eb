"""Certificate kind ``renyi-capacity``: the Rényi capacity of order alpha of a channel.

problem: {"matrix": rows, "alpha": order, "inf" for infinity}; witness: {"input": p};
proof: {"output": t}. Lower bound: Sibson's information of order alpha at p,

    I_alpha(p, Q) = alpha / (alpha - 1) log sum_y (sum_x p_x Q(y|x)^alpha)^(1/alpha).

Upper bound: max_x D_alpha(Q(.|x) || t), for any distribution t. It is at least the capacity,
because I_alpha(p, Q) = min_t D_alpha(p Q || p x t), and a mean of rows is no farther from t than
the farthest row (Csiszar, Generalized cutoff rates and Rényi's information measures, 1995). At
order 1 both bounds are those of the kind ``capacity``. Rows, p and t are distributions as written
(`cvxleak.core.numbers`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from flint import arb

from cvxleak.core.errors import CertificateError
from cvxleak.core.numbers import fraction
from cvxleak.exact import balls, reading
from cvxleak.proofs import capacity

__all__ = ["about", "prove"]


def prove(
    problem: Mapping[str, Any], witness: Mapping[str, Any], proof: Mapping[str, Any]
) -> tuple[float, float]:
    """Return proved lower and upper bounds on the capacity, in nats."""
    data = reading.parts(problem, {"matrix", "alpha"}, "the problem")
    alpha = math.inf if data["alpha"] == "inf" else reading.number(data["alpha"], "alpha")
    if alpha == 1:
        return capacity.prove({"matrix": data["matrix"]}, witness, proof)
    if not alpha > 0:
        raise CertificateError("alpha must be positive")
    reading.parts(witness, {"input"}, "the witness")
    reading.parts(proof, {"output"}, "the proof")
    output = balls.normalized(reading.numbers(proof["output"], "the output"))
    if not isinstance(data["matrix"], list):
        raise CertificateError("the matrix is not a list of rows")
    inputs = reading.numbers(witness["input"], "the input", len(data["matrix"]))
    rows = [
        balls.normalized(reading.numbers(row, "a row of the matrix", len(output)))
        for row in data["matrix"]
    ]
    used = [(p, row) for p, row in zip(balls.normalized(inputs), rows, strict=True) if p > 0]
    upper = max(balls.round_up(_divergence(row, output, alpha)) for row in rows)
    return max(balls.round_down(_information(used, alpha)), 0.0), max(upper, 0.0)


def about(problem: Mapping[str, Any]) -> str:
    """Say what a problem that `prove` has read is about."""
    return f"order {problem['alpha']}, {capacity.about(problem)}"


def _information(used: Sequence[tuple[arb, Sequence[arb]]], alpha: float) -> arb:
    """Return I_alpha of the inputs of positive probability."""
    if math.isinf(alpha):
        return balls.total(map(balls.largest, zip(*(row for _, row in used), strict=True))).log()
    order, total = balls.number(alpha), arb(0)
    for y in range(len(used[0][1])):
        mass = arb(0)
        for p, row in used:
            if not row[y] == 0:
                mass += p * row[y] ** order
        if not mass == 0:
            total += mass ** (1 / order)
    return order / (order - 1) * total.log()


def _divergence(row: Sequence[arb], output: Sequence[arb], alpha: float) -> arb:
    """Return D_alpha(row || output)."""
    pairs = [(q, t) for q, t in zip(row, output, strict=True) if not q == 0]
    if any(t == 0 for _, t in pairs):
        if math.isinf(alpha) or fraction(alpha) > 1:  # its float may be 1
            return arb.pos_inf()
        pairs = [(q, t) for q, t in pairs if not t == 0]
    if not pairs:
        return arb.pos_inf()
    if math.isinf(alpha):
        return balls.largest(q / t for q, t in pairs).log()
    order = balls.number(alpha)
    total = arb(0)
    for q, t in pairs:
        total += q**order * t ** (1 - order)
    return total.log() / (order - 1)
