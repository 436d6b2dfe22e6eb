"""The true counts that a published number does not contradict: inverted equal-tailed tests.

A count c is contradicted by the published value y if P(Y >= y | c) or P(Y <= y | c) is at most
`tail`. For the true count, whatever it is, this happens with probability at most 2 `tail`: the
values y whose upper tail is at most `tail` form an upper tail themselves, which has at most that
probability. A count that cannot produce y at all is contradicted, too, which adds nothing to the
probability.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import Any

from flint import arb, fmpq

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import exact_law, fraction
from cvxleak.core.validation import real_number, short, whole_number
from cvxleak.kernel import noise as kernel
from cvxleak.kernel.numbers import ball, precision, rational
from cvxleak.model import AdditiveNoise, Channel, Rounded
from cvxleak.tables.noise import CountNoise

__all__ = [
    "NONE",
    "Below",
    "Ends",
    "Noise",
    "channel_laws",
    "counts_within",
    "cumulative",
    "edge_of",
    "inverted",
    "law_of_noise",
]

Noise = CountNoise | AdditiveNoise | Channel

Ends = tuple[int, int]
"""The least and the largest count."""

NONE: Ends = (0, -1)
"""There is no such count."""

Below = Callable[[Fraction], arb]
"""A ball around P(Z <= z), or a number that is no smaller."""


def counts_within(noise: Noise, y: Fraction, tail: Fraction) -> Ends:
    """Return the least and the largest count that a published value does not contradict.

    Parameters
    ----------
    noise : CountNoise, AdditiveNoise or Channel
        A channel's inputs are counts, and its outputs numbers.
    y : Fraction
        The published value.
    tail : Fraction
        Of either side.

    Raises
    ------
    ValidationError
        A value that the noise cannot produce.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from cvxleak.model import Gaussian
    >>> from cvxleak.tables import RandomRounding
    >>> from cvxleak.tables.inversion import counts_within
    >>> counts_within(Gaussian(sigma=2), Fraction(10), Fraction(1, 40))
    (7, 13)
    >>> counts_within(RandomRounding(base=3), Fraction(6), Fraction(2, 5))
    (5, 7)
    """
    if isinstance(noise, AdditiveNoise):
        if isinstance(noise, Rounded) and (y / fraction(noise.base)).denominator > 1:
            raise ValidationError(f"found {float(y):.10g}, no multiple of {noise.base:g}")
        if noise.whole and y.denominator > 1:
            raise ValidationError(f"found {float(y):.10g}, no whole number")
        # A value that is rounded to y is up to half a base away from it.
        half = noise.grain / 2 if isinstance(noise, Rounded) else Fraction(0)
        with precision():
            below = cumulative(noise)
            return inverted(lambda z: below(z + half), y, tail)
    kept = [
        count
        for count, law in _laws_of(noise, y)
        if sum(p for z, p in law.items() if z >= y) > tail
        and sum(p for z, p in law.items() if z <= y) > tail
    ]
    return (min(kept), max(kept)) if kept else NONE


def inverted(below: Below, y: Fraction, tail: Fraction) -> Ends:
    """Return the counts that y does not contradict, of noise that is symmetric around 0.

    Parameters
    ----------
    below : callable
        An upper bound on P(Z <= z), which is P(Z >= -z). It does not fall in z.
    y, tail : Fraction

    Examples
    --------
    >>> from fractions import Fraction
    >>> from flint import arb
    >>> from cvxleak.tables.inversion import inverted
    >>> inverted(lambda z: arb(1) if z >= -2 else arb(0), Fraction(5), Fraction(1, 40))
    (3, 7)
    """
    most = arb(fmpq(tail.numerator, tail.denominator))
    # P(Y >= y | c) = P(Z <= c - y) increases with c. Counts that the balls leave undecided are
    # kept.
    low = _first(lambda count: not below(count - y) <= most)
    return low, _first(lambda count: below(y - count) <= most) - 1


def _first(holds: Callable[[int], bool]) -> int:
    """Return the least count from which `holds` is true; it is true from some count on."""
    if holds(0):
        return 0
    low, high = 0, 1
    while not holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


@lru_cache(maxsize=64)
def cumulative(noise: AdditiveNoise) -> Below:
    """Return the function that gives a ball around P(Z < z).

    For noise in whole numbers, P(Z <= z); for rounded noise, P(Z < z) of the noise before rounding.
    """
    law = law_of_noise(noise)
    return lambda z: ball(law.below(edge_of(noise, z)))


def edge_of(noise: AdditiveNoise, z: Fraction) -> fmpq:
    """Return z, of noise in whole numbers halfway between those up to z and the next one."""
    return rational(math.floor(z) + Fraction(1, 2) if noise.whole else z)


def law_of_noise(noise: AdditiveNoise) -> kernel.Noise:
    """Return the distribution of noise, before it is rounded."""
    if isinstance(noise, Rounded):
        return law_of_noise(noise.noise)
    width = getattr(noise, kernel.PARAMETERS[noise.kind])
    return kernel.Noise(noise.kind, rational(width), False, ())


@lru_cache(maxsize=64)
def channel_laws(channel: Channel) -> dict[int, dict[Fraction, Fraction]]:
    """Return for each input of a channel, a count, the distribution of the published number.

    Raises
    ------
    ValidationError
        Inputs that are no counts, or outputs that are no numbers.

    Examples
    --------
    >>> from cvxleak.mechanisms import random_rounding
    >>> from cvxleak.tables.inversion import channel_laws
    >>> {float(y): float(p) for y, p in channel_laws(random_rounding(3, base=2))[3].items()}
    {2.0: 0.5, 4.0: 0.5}
    """
    counts = [whole_number(x, "noise: an input of the channel", 0) for x in channel.inputs]
    values = [
        fraction(real_number(y, "noise: an output of the channel", open_low=True, open_high=True))
        for y in channel.outputs
    ]
    return {
        count: {y: p for y, p in zip(values, exact_law(row), strict=True) if p}
        for count, row in zip(counts, channel.matrix, strict=True)
    }


def _laws_of(noise: CountNoise | Channel, y: Fraction) -> list[tuple[int, dict[Any, Fraction]]]:
    """Return the counts that can produce y, with the distributions of their published values."""
    if isinstance(noise, Channel):
        found = [(count, law) for count, law in channel_laws(noise).items() if y in law]
    else:
        runs = noise.counts_of(int(y)) if y.denominator == 1 else []
        found = [(c, noise.law(c)) for low, high in runs for c in range(low, (high or 0) + 1)]
    if not found:
        raise ValidationError(f"found {float(y):.10g}, which {short(noise)} gives for no count")
    return found
