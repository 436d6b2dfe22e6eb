"""Certificate kind ``capacity``: the Shannon capacity of a channel.

problem: {"matrix": rows}, or {"lower": rows, "upper": rows} for all channels between them;
witness: {"input": p}; proof: {"output": t}.

- Lower bound: I(p, Q).
- Upper bound: max_x D(Q(.|x) || t), which is at least the capacity for any distribution t
  (Kemperman; Csiszar and Korner, Information Theory, Theorem 8.4).

Rows, p and t are distributions as written (`cvxleak.core.numbers`). For a set of channels both
bounds are valid for every member (`cvxleak.proofs.bounds.channel_sets`).

The bounds are computed twice, by code that shares nothing. `prove` is the checker and uses ball
arithmetic. `cvxleak.capacities.enclosure` is fast and uses floating point with an error bound, so
that it never claims more than `prove` confirms.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flint import arb

from cvxleak.core.errors import CertificateError, ValidationError
from cvxleak.exact import balls, reading
from cvxleak.model import ChannelSet
from cvxleak.proofs.bounds.channel_sets import (
    divergence_above,
    information_below,
    posteriors_of,
)

__all__ = ["about", "prove"]


def prove(
    problem: Mapping[str, Any], witness: Mapping[str, Any], proof: Mapping[str, Any]
) -> tuple[float, float]:
    """Return proved lower and upper bounds on the capacity, in nats."""
    if "lower" in problem:
        return _prove_set(problem, witness, proof)
    matrix = reading.parts(problem, {"matrix"}, "the problem")["matrix"]
    reading.parts(witness, {"input"}, "the witness")
    reading.parts(proof, {"output"}, "the proof")
    output = balls.normalized(reading.numbers(proof["output"], "the output"))
    if not isinstance(matrix, list):
        raise CertificateError("the matrix is not a list of rows")
    inputs = balls.normalized(reading.numbers(witness["input"], "the input", len(matrix)))
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


def _prove_set(
    problem: Mapping[str, Any], witness: Mapping[str, Any], proof: Mapping[str, Any]
) -> tuple[float, float]:
    """Return a bound below the capacity of every channel of a set, and one above all of them."""
    reading.parts(problem, {"lower", "upper"}, "the problem")
    reading.parts(witness, {"input"}, "the witness")
    reading.parts(proof, {"output"}, "the proof")
    try:
        channels = ChannelSet(problem["lower"], problem["upper"])
    except ValidationError as error:
        raise CertificateError(f"the set of channels: {error}") from error
    lower, upper = (
        [[balls.number(x) for x in row] for row in ends.tolist()]
        for ends in (channels.lower, channels.upper)
    )
    output = balls.normalized(reading.numbers(proof["output"], "the output", len(lower[0])))
    inputs = balls.normalized(reading.numbers(witness["input"], "the input", len(lower)))
    logs = balls.logarithms(output)
    most = balls.largest(
        divergence_above(low, high, logs) for low, high in zip(lower, upper, strict=True)
    )
    priors = [[p if i == x else arb(0) for i in range(len(inputs))] for x, p in enumerate(inputs)]
    center = [[arb(q) for q in row] for row in channels.center.matrix.tolist()]
    joint = [[p * q for q in row] for p, row in zip(inputs, center, strict=True)]
    least = information_below(priors, lower, upper, posteriors_of(joint, inputs))
    most = most.min(arb(len(inputs)).log())
    return max(balls.round_down(least), 0.0), balls.round_up(most)


def about(problem: Mapping[str, Any]) -> str:
    """Say what a problem that `prove` has read is about."""
    if "lower" in problem:
        rows, words = problem["lower"], "every channel in a set, with"
    else:
        rows, words = problem["matrix"], "a channel of"
    return f"{words} {len(rows)} inputs and {len(rows[0])} outputs"
