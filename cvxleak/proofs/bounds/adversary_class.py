"""What is known about an adversary besides its entropy: read strictly, as limits, and of a witness.

The upper bound uses limits: floats, rounded so that no adversary of the class is excluded. A
witness meets the linear constraints in rational arithmetic, and the entropy floor and the
relative-entropy balls in ball arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import frexp, ldexp

import numpy as np
from flint import arb, fmpq, fmpz

from cvxleak.core.errors import CertificateError
from cvxleak.exact import balls
from cvxleak.exact.rationals import binary_above, dot, rational
from cvxleak.model import Limits, Lumped
from cvxleak.model.restricted import Reference, Restricted

__all__ = [
    "check_doubt",
    "check_floor",
    "check_member",
    "limits_of",
    "reference_weights",
]

POINT = 1e-6
"""Radius up to which a witness may be the reference itself."""


def limits_of(restricted: Restricted) -> Limits:
    """Return limits that every adversary of the class meets, in floats rounded outward.

    An equation is two limits. A ball D(p || p0) <= r is -<log p0, w> <= r + F(w), with -log p0
    rounded down.
    """
    rows: list[Sequence[float]] = []
    bounds: list[float] = []
    for signs, linear in (((1, -1), restricted.equations), ((1,), restricted.inequalities)):
        for one in linear:
            # Powers of two bring all of them to the same size without rounding.
            exponent = frexp(max(abs(c) for c in one.coefficients))[1]
            if any(ldexp(ldexp(c, -exponent), exponent) != c for c in one.coefficients):
                exponent = 0  # unless some would then be too small to differ from 0
            scale = fmpq(2) ** -exponent
            known = {c: fmpq(*float(c).as_integer_ratio()) - rational(c) for c in one.coefficients}
            for sign in signs:
                rows.append([sign * ldexp(c, -exponent) for c in one.coefficients])
                # Weights sum to 1: rounding the coefficients up adds at most the largest excess.
                excess = max(sign * rounded for rounded in known.values())
                bounds.append(binary_above((sign * _fmpq(one.side) + excess) * scale))
    shares = [0.0] * len(bounds)
    with balls.precision():
        for ball in restricted.references:
            rows.append([balls.round_down(-log_p) for log_p in _logs(ball)])
            bounds.append(binary_above(rational(ball.radius)))
            shares.append(1.0)
    size = len(restricted.lumped.multiplicities)
    table = np.array(rows, dtype=float).reshape(-1, size)
    return Limits(table, np.array(bounds), np.array(shares))


def check_member(restricted: Restricted, floor: float, weights: Sequence[fmpq]) -> list[arb]:
    """Return a witness's weights as balls; raise if they are not shown to be in the class."""
    lumped = restricted.lumped
    if any(weight < 0 for weight in weights) or sum(weights, fmpq(0)) != 1:
        raise CertificateError("the witness's weights are not a distribution")
    for one in restricted.equations:
        if _mean(one.coefficients, weights) != _fmpq(one.side):
            raise CertificateError("the witness violates an equation of the adversaries' class")
    for one in restricted.inequalities:
        if not _mean(one.coefficients, weights) <= _fmpq(one.side):
            raise CertificateError("the witness violates an inequality of the adversaries' class")
    w = [arb(weight) for weight in weights]
    entropy = check_doubt(w, lumped.multiplicities, floor)
    for ball in restricted.references:
        divergence = -entropy
        for share, log_p in zip(w, _logs(ball), strict=True):
            divergence -= share * log_p
        if ball.radius <= POINT and list(weights) == reference_weights(lumped, ball):
            continue  # ball arithmetic cannot show that a divergence is zero
        if not divergence <= balls.number(ball.radius):
            raise CertificateError(
                f"the witness is {float(divergence.mid())!r} from its reference, beyond the "
                f"radius {ball.radius!r}"
            )
    return w


def check_doubt(
    weights: Sequence[arb],
    multiplicities: Sequence[int],
    floor: float | None,
    who: str = "the witness",
) -> arb:
    """Return F(w) = H(w) + sum w log m of lumped weights; raise if it may be below the floor."""
    logs = [arb(fmpz(m)).log() for m in multiplicities]
    doubt = balls.entropy(weights) + balls.dot(weights, logs)
    check_floor(doubt, floor, who)
    return doubt


def check_floor(entropy: arb, floor: float | None, who: str = "the witness") -> None:
    """Raise unless the adversary's entropy is proved to be at least the floor."""
    if floor is None or not entropy >= balls.number(floor):
        raise CertificateError(
            f"{who} has entropy {float(entropy.mid())!r}, below the floor {floor!r}"
        )


def reference_weights(lumped: Lumped, ball: Reference) -> list[fmpq]:
    """Return the exact weights of p0."""
    bases = [_fmpq(base) for base in ball.bases]
    result = []
    for count, exponents in zip(lumped.multiplicities, ball.exponents, strict=True):
        p = fmpq(count)
        for base, exponent in zip(bases, exponents, strict=True):
            p *= base**exponent
        result.append(p)
    return result


def _logs(ball: Reference) -> list[arb]:
    """Return log p0 of one dataset in each group."""
    logs = [arb(_fmpq(base)).log() if base else arb(0) for base in ball.bases]
    result = []
    for exponents in ball.exponents:
        total = arb(0)
        for log_base, exponent in zip(logs, exponents, strict=True):
            if exponent:
                total += exponent * log_base
        result.append(total)
    return result


def _mean(coefficients: Sequence[float], weights: Sequence[fmpq]) -> fmpq:
    known = {c: rational(c) for c in set(coefficients)}
    return dot([known[c] for c in coefficients], weights)


def _fmpq(number: Fraction) -> fmpq:
    return fmpq(number.numerator, number.denominator)
