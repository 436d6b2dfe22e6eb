r"""What a real output reveals beyond its cell: additive noise Y = f(X) + Z, or bounded densities.

Let C be the cell that Y is in, R(c|v) = P(C = c | f(X) = v), and A a part of X. Then

    I(A;C) <= I(A;Y) = I(A;C) + sum_c P(c) I(A;Y|C=c),

and in a cell I(A;Y|C=c) <= I(f(X);Y|C=c) <= sum_v P(v|c) D(f_v(.|c) || r_c) for any distribution
r_c. So

    I(A;Y) <= I(A;C) + max_v sum_c R(c|v) D(f_v(.|c) || r_c),

where log|A| may take the place of a cell's divergence. Let log f_v and log r_c be concave and their
difference have no slope steeper than s in the cell, an interval of length h. D is the integral over
t from 0 to 1 of t Var_t(log f_v/r_c), where Var_t is the variance under the distribution
proportional to f_v^t r_c^(1-t). This distribution is log-concave, so (L. Payne, H. Weinberger,
1960) Var_t <= (h/pi)^2 E_t[s^2], and

    D(f_v(.|c) || r_c) <= s^2 h^2 / (2 pi^2).

- Gaussian: log f_v(y) = -y^2 / 2 sigma^2 + v y / sigma^2 + const. With r_c of the same form and the
  number t_c in place of v, s = |v - t_c| / sigma^2.
- Laplace: log f_v has slope 1/b below v and -1/b above. With r_c of slope t_c / b, s = |1 - t_c| /
  b, |-1 - t_c| / b, or the larger of the two where v is in the cell. If s = 0, then f_v(.|c) = r_c,
  and the cell may be unbounded.
- If only one value is possible: 0, with its distribution as r_c.
- Uniform: 0 in cells without an endpoint of a support, where f_v(.|c) is uniform or zero.
- Whole numbers: 0 in cells with one whole number, and beyond all values if the noise is geometric.
- Rounded: 0 in cells with one multiple of the base, and beyond all values if the noise is
  Laplace's. Edges of cells are halfway between two multiples; otherwise C would reveal more than
  the output.

- Bounded densities: log f_v/r_c varies by at most d in the cell, for r_c in proportion to e^g. Then
  Var_t <= d^2 / 4 (T. Popoviciu, 1935), and D, the integral of t Var_t, is at most d^2 / 8. The
  distribution need not be log-concave, nor the output a number.

All of this is in the noise's own unit (`AdditiveNoise.standard`), in which floats distinguish
numbers that they would not in the unit of large values, or for a base of 1/3.

If R is replaced by another channel Q with sum_c |Q(c|v) - R(c|v)| <= 2 eta for every v, the leakage
changes by at most

    |I_Q(A;C) - I_R(A;C)| <= eta log|A| + h(eta),    h(x) = -x log x - (1-x) log(1-x):

H(A) is the same. Both joint distributions of A and C are (1-eta) M + eta M' with the same M. And
(1-eta) H_M(A|C) <= H(A|C) <= (1-eta) H_M(A|C) + eta log|A| + h(eta), by concavity, and because a
third variable that says which of M and M' was drawn has entropy h(eta).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

from flint import arb, fmpq, fmpz

from cvxleak.core.errors import CertificateError
from cvxleak.core.numbers import fraction
from cvxleak.exact import balls
from cvxleak.exact.limits import charge
from cvxleak.model import (
    AdditiveNoise,
    BoundedDensity,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Rounded,
    Uniform,
)
from cvxleak.proofs.bounds.outputs import Ball, Matrix

__all__ = [
    "Costs",
    "bounded_costs",
    "bounded_masses",
    "cell_masses",
    "costs_of_cells",
    "cumulative",
    "distance_to",
    "excess_of_cells",
    "read_edges",
    "slack_of_distance",
]

Edges = Sequence[Fraction | None]
"""Edges of cells, in order; None at either end of the list stands for -inf and inf."""

Costs = Sequence[Sequence[Ball] | None]
"""For each cell, for each v a ball above D(f_v(.|c) || r_c); None if nothing is known."""

FAR = 14
"""Standard deviations of discrete Gaussian noise that are summed term by term; P < 1e-42 beyond."""


def read_edges(noise: AdditiveNoise, edges: Sequence[float]) -> Edges:
    """Return the edges of cells, as written; raise if they are not valid for this noise.

    They are the edges between cells; the first and the last cell are unbounded.
    """
    if not all(math.isfinite(edge) for edge in edges):
        raise CertificateError("an edge of a cell is not a number")
    inner = [fraction(edge) for edge in edges]
    if any(high <= low for low, high in pairwise(inner)):
        raise CertificateError("the edges of the cells do not increase")
    if isinstance(noise, Rounded):
        base = fraction(noise.base)
        if any(2 * edge / base % 2 != 1 for edge in inner):
            raise CertificateError("an edge of a cell is not halfway between two outputs")
    if noise.whole and any(edge.denominator == 1 for edge in inner):
        raise CertificateError("an edge of a cell must not be an output")
    return [None, *inner, None]


def cell_masses(noise: AdditiveNoise, values: Sequence[Fraction], edges: Edges) -> Matrix:
    """Return balls around P(v + Z in cell), shape (values, cells)."""
    charge("steps", len(values) * len(edges), "probabilities of cells")
    below = cumulative(noise)
    rows: Matrix = []
    for v in values:
        cumulated = [arb(0), *(below(e - v) for e in edges[1:-1] if e is not None), arb(1)]
        rows.append([high - low for low, high in pairwise(cumulated)])
    return rows


def cumulative(noise: AdditiveNoise) -> Callable[[Fraction], Ball]:
    """Return the function that gives a ball around P(Z < z).

    For noise in whole numbers, P(Z <= z); for rounded noise, P(Z < z) of the noise before rounding.
    """
    if isinstance(noise, Rounded):
        return cumulative(noise.noise)
    if isinstance(noise, Gaussian):
        scale = balls.number(noise.sigma) * arb(2).sqrt()
        return lambda z: (1 + (_ball(z) / scale).erf()) / 2
    if isinstance(noise, Laplace):
        b = balls.number(noise.scale)

        def laplace(z: Fraction) -> Ball:
            tail = (-abs(_ball(z)) / b).exp() / 2
            return tail if z < 0 else 1 - tail

        return laplace
    if isinstance(noise, Uniform):
        a = fraction(noise.half_width)
        return lambda z: _ball(min(max((z + a) / (2 * a), Fraction(0)), Fraction(1)))
    if isinstance(noise, DiscreteLaplace):
        scale = balls.number(noise.scale)
        both = 1 + (-1 / scale).exp()

        def geometric(z: Fraction) -> Ball:
            k = math.floor(z)
            tail = (-_ball(Fraction(-k if k < 0 else k + 1)) / scale).exp() / both
            return tail if k < 0 else 1 - tail

        return geometric
    assert isinstance(noise, DiscreteGaussian)
    return _discrete_gaussian(noise)


def _discrete_gaussian(noise: DiscreteGaussian) -> Callable[[Fraction], Ball]:
    sigma = balls.number(noise.sigma)
    far = FAR * math.ceil(noise.sigma)
    charge("steps", far, "the distribution of discrete Gaussian noise")
    terms = [(-(arb(k) ** 2) / (2 * sigma**2)).exp() for k in range(far + 1)]
    # Beyond this, each term is less than `ratio` times the one before.
    ratio = (-far / sigma**2).exp()
    rest = arb(0).union(terms[far] * ratio / (1 - ratio))
    cumulated, above = [], rest
    for term in reversed(terms):
        above += term
        cumulated.append(above)
    cumulated.reverse()  # entry k: all from k on
    whole = cumulated[0] + cumulated[1]

    def below(z: Fraction) -> Ball:
        k = math.floor(z)
        if k < 0:  # all up to k, hence from -k on
            return cumulated[-k] / whole if -k <= far else arb(0).union(rest / whole)
        return 1 - (cumulated[k + 1] / whole if k < far else arb(0).union(rest / whole))

    return below


def _ball(z: Fraction) -> Ball:
    return arb(fmpq(z.numerator, z.denominator))


def distance_to(masses: Matrix, rows: Matrix) -> Ball:
    """Return a ball above eta, the largest distance in total variation of two rows."""
    return balls.largest(
        [
            balls.total([abs(p - q) for p, q in zip(one, other, strict=True)]) / 2
            for one, other in zip(masses, rows, strict=True)
        ]
    )


def slack_of_distance(eta: Ball, size: int) -> Ball:
    """Return a ball above eta log|A| + h(eta), for |A| = `size`."""
    most = arb(eta.upper())
    if not most < arb(1) / 2:  # h increases up to 1/2
        return arb(fmpz(size)).log()
    return most * arb(fmpz(size)).log() + balls.entropy([most, 1 - most])


def costs_of_cells(
    noise: AdditiveNoise, values: Sequence[Fraction], edges: Edges, references: Sequence[float]
) -> Costs:
    """Return for each cell balls above D(f_v(.|c) || r_c) for each v; None if nothing is known."""
    if len(set(values)) == 1:
        return [[arb(0)] * len(values)] * len(references)  # r_c is the only distribution
    return [
        _divergences(noise, values, low, high, fraction(reference))
        for low, high, reference in zip(edges[:-1], edges[1:], references, strict=True)
    ]


def bounded_masses(output: BoundedDensity) -> Matrix:
    """Return balls around the probabilities of cells, shape (values, cells)."""
    return [
        [balls.number(low).union(balls.number(high)) for low, high in zip(*ends, strict=True)]
        for ends in zip(output.masses.lower.tolist(), output.masses.upper.tolist(), strict=True)
    ]


def bounded_costs(output: BoundedDensity) -> Costs:
    """Return for each cell balls above D(f_v(.|c) || r_c) for each v; None if nothing is known."""
    columns = zip(*output.oscillation.tolist(), strict=True)
    return [
        [balls.number(d) ** 2 / 8 for d in moves] if all(map(math.isfinite, moves)) else None
        for moves in columns
    ]


def excess_of_cells(masses: Matrix, costs: Costs, size: int) -> Ball:
    """Return a ball above I(A;Y) - I(A;C), for |A| = `size`."""
    most = arb(fmpz(size)).log()
    sums = [arb(0)] * len(masses)
    for j, known in enumerate(costs):
        own = [row[j] * most for row in masses]
        if known is not None:
            found = [row[j] * cost for row, cost in zip(masses, known, strict=True)]
            own = found if balls.largest(found) < balls.largest(own) else own
        sums = [s + cost for s, cost in zip(sums, own, strict=True)]
    return balls.largest(sums)


def _divergences(
    noise: AdditiveNoise,
    values: Sequence[Fraction],
    low: Fraction | None,
    high: Fraction | None,
    reference: Fraction,
) -> list[Ball] | None:
    if noise.whole:  # points between the outputs do not matter
        low = None if low is None else Fraction(math.ceil(low))
        high = None if high is None else Fraction(math.floor(high))
    beyond = (low is not None and low >= max(values)) or (high is not None and high <= min(values))
    nothing = [arb(0)] * len(values)
    if isinstance(noise, Gaussian | Laplace):
        if isinstance(noise, Gaussian):
            unit, tilts = balls.number(noise.sigma) ** 2, [abs(v - reference) for v in values]
        else:
            unit = balls.number(noise.scale)
            tilts = [_largest_slope(v, low, high, reference) for v in values]
        if not any(tilts):
            return nothing
        if low is None or high is None:
            return None
        step = _ball(high - low) / (arb.pi() * unit)
        return [(_ball(tilt) * step) ** 2 / 2 for tilt in tilts]
    if isinstance(noise, Rounded) and isinstance(noise.noise, Laplace) and beyond:
        return nothing
    if isinstance(noise, DiscreteLaplace) and beyond:
        return nothing
    if low is None or high is None:
        return None
    if isinstance(noise, Uniform):
        half = fraction(noise.half_width)
        ends = (end for v in values for end in (v - half, v + half))
        return None if any(low < end < high for end in ends) else nothing
    outputs = (high - low) / fraction(noise.base) if isinstance(noise, Rounded) else high - low + 1
    return nothing if outputs <= 1 else None


def _largest_slope(
    v: Fraction, low: Fraction | None, high: Fraction | None, reference: Fraction
) -> Fraction:
    """Return the largest |slope of log f_v - log r_c| in a cell, times the scale (Laplace)."""
    if high is not None and high <= v:
        return abs(1 - reference)
    if low is not None and low >= v:
        return abs(-1 - reference)
    return max(abs(1 - reference), abs(-1 - reference))
