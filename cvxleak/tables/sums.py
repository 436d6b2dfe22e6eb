"""Confidence bounds on the sum of true counts, from the sum of the published numbers.

Y_1, ..., Y_m are the published values of the counts c_1, ..., c_m, with independent noise
D_j = Y_j - c_j. The sum C of the counts is contradicted by the sum S of the published values if
P(sum D >= S - C) or P(sum D <= S - C) is at most `tail`, for all counts that sum to C.

- All noise Gaussian: the sum of the D_j is Gaussian too.
- All noise in whole numbers and independent of the count: the distribution of the sum is the
  convolution of the distributions, computed in balls. Each distribution is cut off where little
  probability is left, and the probabilities cut off are added to the tail.
- Any other noise, also a mixture of kinds and noise that depends on the count: for every s > 0

      P(sum D >= t) <= exp(sum_j psi_j(s) - s t),   psi_j(s) = max over c of log E exp(s D_j),

  (Chernoff), so that at t = (sum_j psi_j(s) + log(1 / tail)) / s it is at most `tail`. s is chosen
  in floats, and t evaluated in balls.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from flint import arb, arb_poly
from scipy.optimize import minimize_scalar

from cvxleak.core.numbers import fraction
from cvxleak.kernel.numbers import ball, largest, precision, total, upper
from cvxleak.model import (
    Channel,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Rounded,
    Uniform,
)
from cvxleak.model.noise.additive import Scaled
from cvxleak.tables.inversion import NONE, Below, Ends, Noise, channel_laws, cumulative, inverted
from cvxleak.tables.noise import CountNoise

__all__ = ["sum_within"]

LEFT = Fraction(1, 10**6)
"""Largest part of the tail that may be cut off from distributions in whole numbers."""

TERMS = 1 << 18
"""Most terms of a convolution, which takes some seconds; above it, Chernoff's bound is used."""

SPAN = 1e4
"""Range in which the slope of Chernoff's bound is sought, relative to a Gaussian one."""


def sum_within(noises: Sequence[Noise], total: Fraction, tail: Fraction) -> Ends:
    """Return the least and the largest sum of counts that published values do not contradict.

    Parameters
    ----------
    noises : sequence of CountNoise, AdditiveNoise or Channel
        The noise of the numbers that are summed, independent.
    total : Fraction
        The sum of their published values.
    tail : Fraction
        Of either side.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from cvxleak.model import DiscreteLaplace, Gaussian
    >>> from cvxleak.tables.sums import sum_within
    >>> sum_within([Gaussian(sigma=2)] * 4, Fraction(100), Fraction(1, 40))
    (93, 107)
    >>> sum_within([DiscreteLaplace(scale=2)] * 4, Fraction(100), Fraction(1, 40))
    (89, 111)
    >>> sum_within([DiscreteLaplace(scale=2), Gaussian(sigma=2)], Fraction(100), Fraction(1, 40))
    (88, 112)
    """
    kinds = Counter(noises)
    with precision():
        below = _gaussian(kinds) or _convolved(kinds, tail)
        if below is not None:
            return inverted(below, total, tail)
        up, down = (_reach(kinds, sign, tail) for sign in (1, -1))
        # sum D < up and sum D > -down, of the counts that are left.
        low, high = math.floor(total - up) + 1, math.ceil(total + down) - 1
        return (max(low, 0), high) if high >= 0 else NONE


def _gaussian(kinds: Counter[Noise]) -> Below | None:
    """Return the distribution of a sum of Gaussian noise, if it is one."""
    variance = Fraction(0)
    for noise, often in kinds.items():
        if not isinstance(noise, Gaussian):
            return None
        variance += often * fraction(noise.sigma) ** 2
    scale = (2 * ball(variance)).sqrt()
    return lambda z: (1 + (ball(z) / scale).erf()) / 2


def _convolved(kinds: Counter[Noise], tail: Fraction) -> Below | None:
    """Return the distribution of a sum of noise in whole numbers; None if other or too long."""
    reaches: dict[Noise, int] = {}
    laws: dict[Noise, Below] = {}
    most = ball(tail * LEFT / kinds.total())
    for noise in kinds:
        if not isinstance(noise, (DiscreteGaussian, DiscreteLaplace)) or noise.width > TERMS:
            return None
        law = laws[noise] = cumulative(noise)
        reach = 1
        while reach <= TERMS and not law(Fraction(-reach - 1)) <= most:
            reach *= 2
        reaches[noise] = reach
    far = sum(often * reaches[noise] for noise, often in kinds.items())
    if 2 * far + 1 > TERMS:
        return None
    product, cut = arb_poly([1]), arb(0)
    for noise, often in kinds.items():
        law, reach = laws[noise], reaches[noise]
        steps = [law(Fraction(k)) for k in range(-reach - 1, reach + 1)]
        masses = [high - low for low, high in pairwise(steps)]
        product *= arb_poly(masses) ** often
        cut += often * 2 * steps[0]
    cumulated = [cut]
    for mass in product.coeffs():
        cumulated.append(cumulated[-1] + mass)
    return lambda z: cumulated[min(max(math.floor(z) + far + 1, 0), len(cumulated) - 1)]


def _reach(kinds: Counter[Noise], sign: int, tail: Fraction) -> Fraction:
    """Return t with P(sign * sum D >= t) at most `tail`."""
    log = -ball(tail).log()
    found = {noise: _log_moment(noise, sign) for noise in kinds}
    limits = [limit for noise in kinds if (limit := _limit(noise))]
    width = math.sqrt(sum(often * _width(noise) ** 2 for noise, often in kinds.items()))
    middle = math.sqrt(2 * float(log)) / max(width, 1e-9)
    most = min([SPAN * middle, *(limit * (1 - 1e-9) for limit in limits)])

    def reach(log_slope: float) -> arb:
        slope = arb(math.exp(log_slope))
        moments = total(often * found[noise](slope) for noise, often in kinds.items())
        return (moments + log) / slope

    ends = (math.log(min(middle / SPAN, most / 2)), math.log(most))
    best: Any = minimize_scalar(lambda x: float(reach(x).mid()), bounds=ends, method="bounded")
    return fraction(upper(reach(float(best.x))))


def _limit(noise: Noise) -> float | None:
    """Return the s from which log E exp(s D) is infinite, if there is one."""
    kept = noise.noise if isinstance(noise, Rounded) else noise
    return 1 / kept.width if isinstance(kept, (Laplace, DiscreteLaplace)) else None


def _width(noise: Noise) -> float:
    """Return the approximate range of the noise."""
    if isinstance(noise, Rounded):
        return noise.noise.width + float(noise.base)
    if isinstance(noise, Scaled):
        return noise.width
    return float(max(abs(z - count) for count, law in _laws(noise) for z in law))


def _log_moment(noise: Noise, sign: int) -> Callable[[arb], arb]:
    """Return a bound on the largest log E exp(sign s D), as a function of s > 0."""
    if isinstance(noise, (Gaussian, DiscreteGaussian)):
        # Of discrete noise: with u = s sigma^2, sum exp(-k^2 / 2 sigma^2 + s k) is exp(s u / 2)
        # times the sum of exp(-(k - u)^2 / 2 sigma^2), which is largest at u = 0 (Poisson).
        variance = ball(fraction(noise.sigma) ** 2)
        return lambda s: s**2 * variance / 2
    if isinstance(noise, Laplace):
        scale = ball(noise.scale)
        return lambda s: -(1 - (s * scale) ** 2).log()
    if isinstance(noise, Uniform):
        half = ball(noise.half_width)
        return lambda s: ((s * half).sinh() / (s * half)).log()
    if isinstance(noise, DiscreteLaplace):
        q = (-1 / ball(noise.scale)).exp()
        return lambda s: 2 * (1 - q).log() - (1 - q * s.exp()).log() - (1 - q / s.exp()).log()
    if isinstance(noise, Rounded):
        # Rounding moves by half a base at most.
        inner, half = _log_moment(noise.noise, sign), ball(fraction(noise.base) / 2)
        return lambda s: inner(s) + s * half
    laws = [{z - count: p for z, p in law.items()} for count, law in _laws(noise)]

    def moment(s: arb) -> arb:
        powers = {d: (sign * s * ball(d)).exp() for d in set().union(*laws)}
        return largest(total(ball(p) * powers[d] for d, p in law.items()).log() for law in laws)

    return moment


def _laws(noise: Noise) -> list[tuple[int, dict[Any, Fraction]]]:
    """Return counts, and the distributions of what is published of them, that stand for all."""
    if isinstance(noise, Channel):
        return list(channel_laws(noise).items())
    assert isinstance(noise, CountNoise)
    return [(count, noise.law(count)) for count in range(noise.start + noise.period)]
