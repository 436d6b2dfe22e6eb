"""Certificate kinds ``local-dp`` and ``local-dp-distortion``: differential privacy and distortion.

problem: {"sources": parts, "distortion": "hamming" or rows, "delta": d} and either "budget" (the
least epsilon at a worst-case distortion) or "epsilon" (the least worst-case distortion); witness:
{"channel": rows, "supports": ...}; proof: {"mixture": ..., "potentials": ...}, or with
"comparisons" and "level" (a number or "inf") where delta > 0; an empty one proves the lower bound
0.

Everything is in exact rational arithmetic: the channel is its stored rows divided by their sums,
its largest ratio is a rational number, and only its logarithm is rounded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from flint import fmpq

from cvxleak.core.errors import CertificateError
from cvxleak.kernel.numbers import dot
from cvxleak.kernel.numbers import lower as float_below
from cvxleak.kernel.numbers import upper as float_above
from cvxleak.proofs import reading
from cvxleak.proofs.bounds.source_sets import (
    Part,
    described,
    distortion_table,
    exact_numbers,
    mixture,
    read_parts,
    worst_case,
)
from cvxleak.proofs.exact import (
    exp_above,
    exp_below,
    log_above,
    log_below,
    normalized_rows,
    rational,
)

__all__ = ["ENDLESS", "about", "prove", "prove_distortion", "released_ratio"]

Table = Sequence[Sequence[fmpq]]

ENDLESS = "inf"
"""The level in a proof that no finite epsilon is enough."""


class _Problem(NamedTuple):
    size: int
    parts: list[Part]
    distortion: list[list[fmpq]]
    delta: fmpq


def prove(
    problem: Mapping[str, Any], witness: Mapping[str, Any], proof: Mapping[str, Any]
) -> tuple[float, float]:
    """Return proved bounds on the least epsilon at a worst-case distortion, in nats."""
    known = _problem(problem, "budget", witness)
    budget = rational(reading.number(problem["budget"], "the budget"))
    channel, distortion = _channel(known, witness)
    if distortion > budget:
        raise CertificateError("the witness exceeds the budget")
    ratio = released_ratio(channel, known.delta)
    upper = math.inf if ratio is None else 0.0 if ratio == 1 else log_above(ratio)
    if proof == {}:
        return 0.0, upper
    if known.delta == 0:
        potentials, above, below = _potentials(known, proof)
        surplus = sum(potentials, fmpq(0)) - budget
        if surplus < 0:
            raise CertificateError("the potentials sum to less than the budget")
        return max(_least_ratio(above, below, strictly=surplus > 0), 0.0), upper
    reading.parts(proof, {"comparisons", "level", "mixture"}, "the proof")
    one = fmpq(1)
    if proof["level"] == ENDLESS:
        # With h / f in place of h, and a = 1 / f, the bound below is concave in a.
        at_zero, at_one = (_compared(known, proof, a, one) for a in (fmpq(0), one))
        if at_zero < budget or at_one <= budget:
            raise CertificateError("the comparisons do not exceed the budget at every level")
        return math.inf, upper
    level = rational(reading.number(proof["level"], "the level"))
    if level < 1 or _compared(known, proof, one, level) <= budget:
        raise CertificateError("the comparisons do not exceed the budget")
    return log_below(level), upper


def prove_distortion(
    problem: Mapping[str, Any], witness: Mapping[str, Any], proof: Mapping[str, Any]
) -> tuple[float, float]:
    """Return proved bounds on the least worst-case distortion at an epsilon."""
    known = _problem(problem, "epsilon", witness)
    epsilon = reading.number(problem["epsilon"], "epsilon")
    if epsilon < 0:
        raise CertificateError("epsilon is negative")
    channel, distortion = _channel(known, witness)
    ratio = released_ratio(channel, known.delta)
    if ratio is None or (ratio > exp_below(epsilon) and ratio != 1):
        raise CertificateError("the witness does not meet the privacy level")
    upper = float_above(distortion)
    if proof == {}:
        return 0.0, upper
    factor = exp_above(epsilon)
    if known.delta == 0:
        potentials, above, below = _potentials(known, proof)
        if any(a < factor * b for a, b in zip(above, below, strict=True)):
            raise CertificateError("the potentials do not fit epsilon")
        return max(float_below(sum(potentials, fmpq(0))), 0.0), upper
    reading.parts(proof, {"comparisons", "mixture"}, "the proof")
    return max(float_below(_compared(known, proof, fmpq(1), factor)), 0.0), upper


def about(problem: Mapping[str, Any]) -> str:
    """Return a short description of the subject of a checked claim."""
    size, parts = read_parts(problem["sources"])
    end = (
        f"distortion at most {reading.number(problem['budget'], 'the budget'):g}"
        if "budget" in problem
        else f"epsilon {reading.number(problem['epsilon'], 'epsilon'):g} nats"
    )
    return f"{described(parts)} on {size} outcomes, {end}"


def released_ratio(channel: Table, delta: fmpq) -> fmpq | None:
    """Return the least e^epsilon >= 1 for which a channel is (epsilon, delta)-private, or None.

    None stands for infinity. With delta = 0 the result is the largest ratio in a column. Otherwise,
    each pair of rows a and b, sum_{y in S} (a_y - e^epsilon b_y) <= delta has to hold for every set
    S of outputs, and it is enough to ask it of the sets of largest a_y / b_y.
    """
    if delta == 0:
        worst = fmpq(1)
        for column in zip(*channel, strict=True):
            low, high = min(column), max(column)
            if low > 0:
                worst = max(worst, high / low)
            elif high > 0:
                return None
        return worst
    worst = fmpq(1)
    for a in channel:
        for b in channel:
            if a is b:
                continue
            ratio = _pair_ratio(a, b, delta)
            if ratio is None:
                return None
            worst = max(worst, ratio)
    return worst


def _pair_ratio(a: Sequence[fmpq], b: Sequence[fmpq], delta: fmpq) -> fmpq | None:
    top = sum((p for p, q in zip(a, b, strict=True) if q == 0), fmpq(0))
    if top > delta:
        return None
    pairs = sorted(((p / q, p, q) for p, q in zip(a, b, strict=True) if q > 0), reverse=True)
    bottom, worst = fmpq(0), fmpq(0)
    for _, p, q in pairs:
        top, bottom = top + p, bottom + q
        worst = max(worst, (top - delta) / bottom)
    return worst


def _problem(problem: Mapping[str, Any], end: str, witness: Mapping[str, Any]) -> _Problem:
    reading.parts(problem, {"delta", "distortion", "sources", end}, "the problem")
    size, parts = read_parts(problem["sources"])
    delta = reading.number(problem["delta"], "delta")
    if not 0 <= delta <= 1:
        raise CertificateError("delta is not in [0, 1]")
    channel = reading.parts(witness, {"channel", "supports"}, "the witness")["channel"]
    distortion = distortion_table(problem["distortion"], size, channel)
    return _Problem(size, parts, distortion, rational(delta))


def _channel(known: _Problem, witness: Mapping[str, Any]) -> tuple[list[list[fmpq]], fmpq]:
    """Return the witness's rows and an upper bound on its worst-case distortion."""
    rows = witness["channel"]
    outputs = len(known.distortion[0])
    if not isinstance(rows, list) or len(rows) != known.size:
        raise CertificateError("the channel does not fit the sources")
    channel = normalized_rows([reading.numbers(row, "a row", outputs) for row in rows])
    cost = [dot(q, d) for q, d in zip(channel, known.distortion, strict=True)]
    return channel, worst_case(known.parts, cost, witness["supports"])


def _potentials(
    known: _Problem, proof: Mapping[str, Any]
) -> tuple[list[fmpq], list[fmpq], list[fmpq]]:
    """Return the potentials, and how far a column's costs are above and below them.

    A channel Q with least entries u_y in its columns and ratios of at most f has, for any
    distribution p in the hull and any potentials v,

        sum_x p_x d(x,y) Q(y|x) = sum_x v_x + sum_{x,y} (p_x d(x,y) - v_x) Q(y|x)
                               >= sum_x v_x + sum_y u_y (above_y - f below_y).

    So sum v is a lower bound on the worst-case distortion if f <= above_y / below_y for all y. If
    sum v is more than the budget, all such f are excluded. If it equals the budget, all f below the
    least above_y / below_y are excluded: then above_y > f below_y, so that u_y = 0, except in
    columns where both are 0, and only those could be used.
    """
    reading.parts(proof, {"mixture", "potentials"}, "the proof")
    law = mixture(known.parts, proof["mixture"], known.size)
    potentials = exact_numbers(proof["potentials"], "the potentials", known.size)
    outputs = len(known.distortion[0])
    above, below = [fmpq(0)] * outputs, [fmpq(0)] * outputs
    for p, v, row in zip(law, potentials, known.distortion, strict=True):
        for y, d in enumerate(row):
            gap = p * d - v if d else -v
            if gap > 0:
                above[y] += gap
            elif gap < 0:
                below[y] -= gap
    return potentials, above, below


def _least_ratio(above: Sequence[fmpq], below: Sequence[fmpq], *, strictly: bool) -> float:
    """Return the least log(above / below); `strictly` if sum v is above the budget."""
    least = math.inf
    for a, b in zip(above, below, strict=True):
        if b > 0:
            least = min(least, log_below(a / b))
        elif a == 0 and not strictly:
            return 0.0  # this output costs no more than the budget, whatever the input
    return least


def _compared(known: _Problem, proof: Mapping[str, Any], plus: fmpq, minus: fmpq) -> fmpq:
    """Return a lower bound on the worst-case distortion of (log f, delta)-private channels.

    For h >= 0 and w(x,x') = max_y h(x,x',y), privacy says that
    sum_y h(x,x',y) (Q(y|x) - f Q(y|x')) <= w(x,x') delta. The distortion under p is then at least
    sum_x min_y [ p_x d(x,y) + sum_x' h(x,x',y) - f sum_x' h(x',x,y) ] - delta sum w. Here h is
    `plus` times the multipliers, and f h is `minus` times them.
    """
    law = mixture(known.parts, proof["mixture"], known.size)
    outputs = len(known.distortion[0])
    cost = [[p * d for d in row] for p, row in zip(law, known.distortion, strict=True)]
    entries = proof["comparisons"]
    if not isinstance(entries, list):
        raise CertificateError("the comparisons are not a list")
    weight = fmpq(0)
    for entry in entries:
        reading.parts(entry, {"first", "multipliers", "second"}, "a comparison")
        x, other = reading.count(entry["first"], "first"), reading.count(entry["second"], "second")
        if x == other or max(x, other) >= known.size:
            raise CertificateError("a comparison must be of two different inputs")
        h = [rational(v) for v in reading.numbers(entry["multipliers"], "multipliers", outputs)]
        if any(v < 0 for v in h):
            raise CertificateError("a multiplier is negative")
        weight += max(h)
        for y, v in enumerate(h):
            if v:
                cost[x][y] += plus * v
                cost[other][y] -= minus * v
    return sum((min(row) for row in cost), fmpq(0)) - known.delta * plus * weight
