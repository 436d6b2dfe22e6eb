"""Certificate kind ``deficiency``: how far one channel is from revealing what another does.

problem: {"channel": C, "other": D}; witness: {"processing": R}; proof: {"prior": p, "gain": g},
with a row of g, entries from 0 to 1, for each action. The claim is about

    min over stochastic R of max_x TV( (C R)_x, D_x ),

a probability (Le Cam's deficiency). It is 0 if and only if C R = D for some R; then D refines C.

- Upper bound: the largest total variation with the witness's R.
- Lower bound: V_g(p, D) - V_g(p, C), the difference of what the best action earns with each
  channel. C R earns no more than C does, and from C R to D no gain in [0, 1] rises by more than the
  largest total variation (Le Cam's randomization criterion).

Rows of C, D and R, and p, are distributions as written (`cvxleak.core.numbers`). Everything is
rational arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from flint import fmpq, fmpq_mat

from cvxleak.core.errors import CertificateError
from cvxleak.kernel.budget import charge
from cvxleak.kernel.numbers import lower as float_below
from cvxleak.kernel.numbers import upper as float_above
from cvxleak.proofs import reading
from cvxleak.proofs.exact import normalized_rows, rational

__all__ = ["about", "prove"]

Parts = Mapping[str, Any]
Table = list[list[fmpq]]

STEP = 512
"""Bits of a common denominator with which a product counts as one more operation."""


def prove(problem: Parts, witness: Parts, proof: Parts) -> tuple[float, float]:
    """Return proved bounds on the deficiency."""
    reading.parts(problem, {"channel", "other"}, "the problem")
    reading.parts(witness, {"processing"}, "the witness")
    reading.parts(proof, {"prior", "gain"}, "the proof")
    channel = normalized_rows(_rows(problem["channel"], "the channel"))
    other = normalized_rows(_rows(problem["other"], "the other channel"))
    inputs, outputs = len(channel), len(other[0])
    if len(other) != inputs:
        raise CertificateError("the channels must have the same inputs")
    kernel = normalized_rows(_rows(witness["processing"], "the processing", outputs))
    if len(kernel) != len(channel[0]):
        raise CertificateError("the processing: expected a row for each output of the channel")
    prior = normalized_rows([reading.numbers(proof["prior"], "the prior", inputs)])
    gain = [[rational(x) for x in row] for row in _rows(proof["gain"], "the gain", inputs)]
    if not all(0 <= x <= 1 for row in gain for x in row):
        raise CertificateError("the gain: its entries must be in [0, 1]")
    wide = len(channel[0]) * outputs + len(gain) * (len(channel[0]) + outputs)
    _charge(inputs * wide, channel, other, kernel, prior, gain)
    upper = max(
        sum((max(d - c, fmpq(0)) for c, d in zip(made, wanted, strict=True)), fmpq(0))
        for made, wanted in zip(_product(channel, kernel), other, strict=True)
    )
    weighted = [[p * g for p, g in zip(prior[0], row, strict=True)] for row in gain]
    more = _value(weighted, other) - _value(weighted, channel)
    return float_below(max(more, fmpq(0))), float_above(upper)


def about(problem: Parts) -> str:
    """Say what a problem that `prove` has read is about."""
    before, after = (len(problem[name][0]) for name in ("channel", "other"))
    return f"channels of {len(problem['channel'])} inputs, with {before} and {after} outputs"


def _value(weighted: Table, rows: Table) -> fmpq:
    """Return the sum over outputs of what the best action earns."""
    earned = _product(weighted, rows)
    return sum((max(column) for column in zip(*earned, strict=True)), fmpq(0))


def _product(one: Table, other: Table) -> Any:
    return (fmpq_mat(one) * fmpq_mat(other)).tolist()


def _charge(products: int, *tables: Table) -> None:
    """Count the products, weighted by the lengths of their common denominators."""
    below = 1
    for table in tables:
        for row in table:
            below = math.lcm(below, *(int(x.q) for x in row))
            charge("ball operations", below.bit_length() ** 2 >> 19)
    charge("ball operations", products * (2 + below.bit_length() // STEP))


def _rows(values: Any, name: str, width: int | None = None) -> Sequence[list[float]]:
    """Return rows of the same positive length."""
    if not isinstance(values, list) or not values:
        raise CertificateError(f"{name}: expected a list of rows")
    first = reading.numbers(values[0], name, width)
    return [first, *(reading.numbers(row, name, len(first)) for row in values[1:])]
