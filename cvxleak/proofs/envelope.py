"""Certificate kinds ``failure-probability`` and ``pml-envelope``, in exact integers.

problem: {"prior": p, "matrix": rows, "epsilon": e, "strict": bool} or {..., "delta": d}; witness:
{"inputs": x, "outputs": y, "weights": w}; proof: {"multipliers": mu} and for an envelope also
{"level": t}. Distributions are meant as written (`cvxleak.core.numbers`).

Inputs of probability zero do not count. Write P(y) for the distribution of the output. For each of
its triples (x, y, w) the witness sends the share w of output y to the symbol z_x; what is left goes
to one further symbol. A symbol z_x with sum_y w_xy P(y|x) >= e^eps sum_y w_xy P(y) leaks at least
eps, so the mass of such symbols is a lower bound on the failure probability. A level that symbols
of mass d reach is a lower bound on the envelope (ENVELOPE (8) and Theorem 2).

For any mu >= 0, linear programming duality bounds the failure probability by

    sum_y max(0, max_x [P(y) + mu_x (P(y|x) - e^eps P(y))]),

where the maximum is over the inputs with P(y|x) >= e^eps P(y) for some output y; no other input can
have a symbol. If the bound is below d at e^eps = t, the envelope is below log t.

Everything is integer arithmetic: a float is an integer over a power of two. Only two numbers are
not exact: P(y), which would have as many digits as all row sums together, and e^eps. Both are
replaced by rationals with 128 binary digits, rounded so that the claim gets weaker.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from flint import fmpq, fmpz
from numpy.typing import NDArray

from cvxleak.core.errors import CertificateError
from cvxleak.core.numbers import written_law
from cvxleak.kernel.numbers import lower as float_below
from cvxleak.kernel.numbers import upper as float_above
from cvxleak.proofs import reading
from cvxleak.proofs.exact import exp_above, exp_below, log_above, log_below, rational

__all__ = [
    "ExactLaws",
    "about_envelope",
    "about_failure_probability",
    "prove_envelope",
    "prove_failure_probability",
]

BITS = 128
"""Binary digits of the rationals that stand for P(y)."""

MOST = 2000.0
"""More nats than any outcome leaks: log 1/min p(x) is less for any vector of floats."""

Integers = NDArray[np.object_]
Parts = Mapping[str, Any]


def prove_failure_probability(problem: Parts, witness: Parts, proof: Parts) -> tuple[float, float]:
    """Return proved bounds on sup_Z P{l(Z) >= eps}, or of sup_Z P{l(Z) > eps} if strict."""
    reading.parts(problem, {"prior", "matrix", "epsilon", "strict"}, "the problem")
    reading.parts(proof, {"multipliers"}, "the proof")
    epsilon = reading.number(problem["epsilon"], "epsilon")
    strict = problem["strict"]
    if type(strict) is not bool:
        raise CertificateError("strict: expected true or false")
    data = ExactLaws(problem)
    symbols = _symbols(data, witness)
    if epsilon <= 0 and not (strict and epsilon == 0):
        return 1.0, 1.0  # every outcome of a constant leaks 0
    if epsilon > MOST:
        return 0.0, 0.0
    if epsilon == 0 and data.is_constant:
        return 0.0, 0.0
    above = exp_above(epsilon)
    # Unless epsilon is 0, e^epsilon is irrational: no ratio equals it, and this test serves both
    # inequalities.
    mass = sum((mass for ratio, mass in symbols if ratio > above), fmpq(0))
    bound = _dual(data, _multipliers(data, proof), exp_below(epsilon))
    return max(float_below(mass), 0.0), min(float_above(bound), 1.0)


def prove_envelope(problem: Parts, witness: Parts, proof: Parts) -> tuple[float, float]:
    """Return proved bounds on the PML envelope at delta, in nats; at 0 and 1 it is its limit."""
    reading.parts(problem, {"prior", "matrix", "delta"}, "the problem")
    reading.parts(proof, {"multipliers", "level"}, "the proof")
    delta = rational(reading.number(problem["delta"], "delta"))
    level = rational(reading.number(proof["level"], "level"))
    if not 0 <= delta <= 1 or level <= 0:
        raise CertificateError("delta must be in [0, 1] and the level positive")
    data = ExactLaws(problem)
    lower, mass = 0.0, fmpq(0)
    symbols = sorted(_symbols(data, witness), reverse=True)
    for ratio, share in symbols:
        mass += share
        if mass >= delta:
            lower = max(log_below(ratio), 0.0)
            break
    else:
        # The masses are rounded down, so all symbols together may still have mass 1.
        if symbols and _uses_everything(data, witness):
            lower = max(log_below(symbols[-1][0]), 0.0)
    # At delta = 0 the level has to be one that no symbol reaches. No input is left there, and the
    # bound is 0, which is not below delta.
    bound = _dual(data, _multipliers(data, proof), level)
    upper = log_above(level) if bound < delta or bound == 0 else math.inf
    return lower, max(upper, 0.0)


class ExactLaws:
    """Prior and channel in integers.

    P(y|x) = entries[x, y] / sums[x], and low[y] <= P(y) 2^scale <= high[y].
    """

    def __init__(self, problem: Parts) -> None:
        prior = _laws([reading.numbers(problem["prior"], "the prior")], "the prior")
        rows = problem["matrix"]
        if not isinstance(rows, list) or len(rows) != prior.shape[1] or not rows:
            raise CertificateError("the channel needs one row for each outcome of the prior")
        width = len(rows[0]) if isinstance(rows[0], list) else 0
        matrix = _laws([reading.numbers(row, "a row", width) for row in rows], "the channel")
        total = int(prior.sum())
        self.shape = matrix.shape
        self.support = np.flatnonzero(prior[0])
        self.entries = matrix[self.support]
        self.sums: Integers = self.entries.sum(axis=1)
        weights = prior[0, self.support]
        sizes = [
            (total * int(s)).bit_length() - int(w).bit_length()
            for w, s in zip(weights, self.sums, strict=True)
        ]
        self.scale = BITS + max(sizes)
        # p(x) / (sum of row x), rounded down.
        floors: Integers = np.array(
            [
                (int(w) << self.scale) // (total * int(s))
                for w, s in zip(weights, self.sums, strict=True)
            ],
            dtype=object,
        )
        self.low: Integers = floors @ self.entries
        self.high: Integers = self.low + self.entries.sum(axis=0)

    @property
    def is_constant(self) -> bool:
        """Whether all rows are the same distribution; otherwise some P(y|x) exceeds P(y)."""
        first, total = self.entries[0], self.sums[0]
        return bool((self.entries * total == self.sums[:, None] * first).all())


def about_failure_probability(problem: Parts) -> str:
    """Say what a problem that `prove_failure_probability` has read is about."""
    sign = ">" if problem["strict"] else ">="
    epsilon = reading.number(problem["epsilon"], "epsilon")
    return f"the largest P(l(Z) {sign} {epsilon:.7g} nats) after {_shape(problem)}"


def about_envelope(problem: Parts) -> str:
    """Say what a problem that `prove_envelope` has read is about."""
    return (
        f"the PML envelope at {reading.number(problem['delta'], 'delta'):.7g} of {_shape(problem)}"
    )


def _shape(problem: Parts) -> str:
    rows = problem["matrix"]
    return f"a channel with {len(rows)} inputs and {len(rows[0])} outputs"


def _laws(rows: list[list[float]], name: str) -> Integers:
    """Return distributions as whole numbers in the ratios of their probabilities."""
    found, _ = _integers(rows, name)
    if not found.any(axis=1).all():
        raise CertificateError("a distribution must not sum to zero")
    for place, row in enumerate(rows):
        written = written_law(row)
        if written is not None:
            found[place] = written
    return found


def _integers(rows: list[list[float]], name: str) -> tuple[Integers, int]:
    """Return non-negative floats as integers and the exponent of their common power of two."""
    values = np.array(rows, dtype=float)
    if values.size == 0 or not (np.isfinite(values) & (values >= 0)).all():
        raise CertificateError(f"{name}: expected non-negative numbers")
    mantissa, exponent = np.frexp(values)
    mantissa = np.ldexp(mantissa, 53).astype(np.int64)
    used = mantissa > 0
    least = int(exponent[used].min()) if used.any() else 0
    shift = np.where(used, exponent - least, 0)
    integers: Any = mantissa.astype(object)
    return integers << shift.astype(object), least - 53


def _symbols(data: ExactLaws, witness: Parts) -> list[tuple[fmpq, fmpq]]:
    """Return for each symbol z_x lower bounds on P(z|x) / P(z) and of P(z)."""
    reading.parts(witness, {"inputs", "outputs", "weights"}, "the witness")
    numbers = reading.numbers(witness["weights"], "the weights")
    size = len(numbers)
    places = {int(x): row for row, x in enumerate(data.support)}
    triples: dict[int, list[tuple[int, int]]] = {}
    if not size:
        return []
    weights, exponent = _integers([numbers], "the weights")
    used: dict[int, int] = {}
    inputs, outputs = witness["inputs"], witness["outputs"]
    if not (isinstance(inputs, list) and isinstance(outputs, list)):
        raise CertificateError("the witness: expected lists")
    if len(inputs) != size or len(outputs) != size:
        raise CertificateError("the witness: expected as many inputs and outputs as weights")
    for x, y, w in zip(inputs, outputs, weights[0], strict=True):
        if reading.count(x, "an input") not in places:
            raise CertificateError(f"the witness: input {x} cannot occur")
        if reading.count(y, "an output") >= data.shape[1]:
            raise CertificateError(f"the witness: there is no output {y}")
        triples.setdefault(x, []).append((y, int(w)))
        used[y] = used.get(y, 0) + int(w)
    one = _shifted(1, -exponent)
    if any(share > one for share in used.values()):
        raise CertificateError("the witness: an output is used more than once")
    result = []
    unit = power_of_two(exponent - data.scale)
    for x, shares in triples.items():
        row = data.entries[places[x]]
        gain = sum(w * int(row[y]) for y, w in shares)
        above = sum(w * int(data.high[y]) for y, w in shares)
        below = sum(w * int(data.low[y]) for y, w in shares)
        if above:
            total = int(data.sums[places[x]])
            result.append((fmpq(gain << data.scale, total * above), fmpq(below) * unit))
    return result


def _uses_everything(data: ExactLaws, witness: Parts) -> bool:
    """Return whether the symbols use up every output that can occur."""
    left = {int(y): fmpq(1) for y in np.flatnonzero(data.entries.any(axis=0))}
    for y, w in zip(witness["outputs"], witness["weights"], strict=True):
        if y in left:
            left[y] -= fmpq(*float(w).as_integer_ratio())  # a weight is the stored binary value
    return not any(left.values())


def _multipliers(data: ExactLaws, proof: Parts) -> tuple[Integers, int]:
    """Return the multipliers of the inputs that can occur as integers, and their exponent."""
    numbers = reading.numbers(proof["multipliers"], "the multipliers", data.shape[0])
    integers, exponent = _integers([numbers], "the multipliers")
    return integers[0, data.support], exponent


def _dual(data: ExactLaws, multipliers: tuple[Integers, int], level: fmpq) -> fmpq:
    """Return an upper bound on the dual function at e^eps = level."""
    t, denominator = int(level.p), int(level.q)
    # P(y|x) >= t P(y) at some y? Those that certainly stay below it everywhere are left out.
    threshold = (t * data.low)[None, :]
    reached = (data.entries << data.scale) * denominator >= threshold * data.sums[:, None]
    able = (reached & (data.entries > 0)).any(axis=1)
    if not able.any():
        return fmpq(0)
    integers, exponent = multipliers
    # In units of 2^-(scale + extra) / denominator, with mu = integers 2^-extra.
    extra = max(-exponent, 0)
    mu = integers[able] << max(exponent, 0)
    slope: Integers = (denominator << extra) - mu * t
    share: Integers = -((-mu * denominator << data.scale) // data.sums[able])  # rounded up
    output = np.where(slope[:, None] >= 0, data.high[None, :], data.low[None, :])
    terms = (output * slope[:, None] + share[:, None] * data.entries[able]).max(axis=0)
    total = int(np.maximum(terms, 0).sum())
    return fmpq(total, denominator) * power_of_two(-data.scale - extra)


def _shifted(number: int, places: int) -> int:
    return number << places if places >= 0 else number >> -places


def power_of_two(exponent: int) -> fmpq:
    return fmpq(fmpz(2)) ** exponent
