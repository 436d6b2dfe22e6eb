"""Certificate kind ``capacity``: the Shannon capacity of a channel.

problem: {"matrix": rows}; witness: {"input": p}; proof: {"output": t}.
Lower end: I(p, Q). Upper end: max_x D(Q(.|x) || t), which bounds the capacity for any law t
(Kemperman; Csiszar and Korner, Information Theory, Theorem 8.4). Rows, p and t are laws
as written (`cvxleak.core.numbers`).

The two ends are computed twice, by code that shares nothing: `prove` is the checker, in ball
arithmetic; `cvxleak.capacities.enclosure` is fast and in floating point with an error bound, and so
never claims more than `prove` confirms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flint import arb

from cvxleak.core.errors import CertificateError
from cvxleak.exact import balls, reading

__all__ = ["about", "prove"]


def prove(
    problem: Mapping[str, Any], witness: Mapping[str, Any], proof: Mapping[str, Any]
) -> tuple[float, float]:
    """Return proved lower and upper ends of the capacity, in nats."""
    matrix = reading.parts(problem, {"matrix"}, "the problem")["matrix"]
    reading.parts(witness, {"input"}, "the witness")
    reading.parts(proof, {"output"}, "the proof")
    output = balls.normalized(reading.numbers(proof["output"], "the output law"))
    if not isinstance(matrix, list):
        raise CertificateError("the matrix is no list of rows")
    inputs = balls.normalized(reading.numbers(witness["input"], "the input law", len(matrix)))
    logs = balls.logarithms(output)
    mixture = [arb(0)] * len(output)
    lower, upper = arb(0), 0.0
    for p, entries in zip(inputs, matrix, strict=True):
        row = balls.normalized(reading.numbers(entries, "a row of the matrix", len(output)))
        entropy = balls.entropy(row)
        upper = max(upper, balls.round_up(balls.cross_entropy(row, logs) - entropy))
        if not p == 0:
            lower -= p * entropy
            mixture = [t + p * q for t, q in zip(mixture, row, strict=True)]
    lower += balls.entropy(mixture)
    return max(balls.round_down(lower), 0.0), upper


def about(problem: Mapping[str, Any]) -> str:
    """Say what a problem that `prove` has read is about."""
    matrix = problem["matrix"]
    return f"a channel of {len(matrix)} inputs and {len(matrix[0])} outputs"
