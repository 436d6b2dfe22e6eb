"""Certificate kind ``capacity``: the Shannon capacity of a channel.

problem: {"matrix": rows}; witness: {"input": p}; proof: {"output": t}.
Lower end: I(p, Q). Upper end: max_x D(Q(.|x) || t), which bounds the capacity for any law t.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


from cvxleak.certificates import balls
from cvxleak.errors import CertificateError

__all__ = ["prove"]


def prove(
    problem: Mapping[str, Any], witness: Mapping[str, Any], proof: Mapping[str, Any]
) -> tuple[float, float]:
    """Return proved lower and upper ends of the capacity, in nats."""
    rows = [balls.normalized(row) for row in problem["matrix"]]
    inputs = balls.normalized(witness["input"])
    output = balls.normalized(proof["output"])
    if len(inputs) != len(rows) or any(len(row) != len(output) for row in rows):
        raise CertificateError("the witness or the proof does not fit the channel's shape")
    joint = [[p * q for q in row] for p, row in zip(inputs, rows, strict=True)]
    lower = max(balls.round_down(balls.mutual_information(joint)), 0.0)
    upper = max(balls.round_up(balls.divergence(row, output)) for row in rows)
    return lower, upper
