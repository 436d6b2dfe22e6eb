"""The rho of zero-concentrated differential privacy of a move: the largest D_alpha / alpha.

D_alpha is additive over independent numbers. With Gaussian noise D_alpha / alpha is 1 / 2 sigma^2
at every order. This is added to the largest value over the exact distributions of the other
numbers, which `cvxleak.differential_privacy.check_claim` bounds. For other additive noise each
number has an upper bound:

- discrete Gaussian: 1 / 2 sigma^2 (Canonne, Kamath and Steinke, 2020), also the limit at order 1;
- discrete Laplace, e = 1 / scale: the ratio is e^e or e^-e, as for randomized response, and
  D_alpha / alpha = log(cosh(e sqrt(u)) / cosh(e / 2)) / (u - 1/4), u = (alpha - 1/2)^2. In u,
  log cosh(e sqrt(u)) has the derivative e tanh(e sqrt(u)) / 2 sqrt(u), which is decreasing: it is
  concave, and the quotient decreases from its limit at order 1, which is e tanh(e / 2);
- Laplace, also rounded: log-ratios are within 1 / scale, so that the output is a function of that
  of randomized response (Kairouz, Oh and Viswanath, 2015), with the same bound;
- rounded Gaussian: that of the Gaussian.

A lower bound is the limit at order 1, the relative entropy D(P || R), summed over the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import arb, fmpq

from cvxleak.core.errors import ValidationError
from cvxleak.differential_privacy import check_claim
from cvxleak.kernel.numbers import ball, lower, precision, total, upper
from cvxleak.model import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace, Rounded, Uniform
from cvxleak.tables.cases import Case
from cvxleak.tables.losses import Book, Change, Losses, Noise, Ratios

__all__ = ["Rho"]


class Rho:
    """Bounds on rho of cases."""

    def __init__(self, book: Book) -> None:
        self.book = book
        self._known: dict[Change, float] = {}

    def above(self, case: Case) -> float:
        """Return an upper bound: the sum over the numbers."""
        return self._summed(case.changes)

    def of(self, case: Case, above: float) -> tuple[float, float]:
        """Return bounds, given that upper bound."""
        low, high = _of_case(case.changes, self.book, above)
        if case.below is not None:
            low = _of_case(case.below, self.book, self._summed(case.below))[0]
        return low, high

    def _summed(self, changes: Sequence[Change]) -> float:
        for change in changes:
            if change not in self._known:
                self._known[change] = _of_number(change, self.book)
        return math.fsum(self._known[change] for change in changes) * (1 + 1e-15)


def _of_number(change: Change, book: Book) -> float:
    """Return an upper bound on rho for one number."""
    exact = book.ratios(change)
    if exact is not None:
        return _of_ratios(exact)[1]
    with precision():
        return upper(_closed(change.noise))


def _closed(noise: Noise) -> arb:
    """Return the upper bound on rho of additive noise, for values one apart."""
    if isinstance(noise, Gaussian | DiscreteGaussian):
        return 1 / (2 * ball(noise.sigma) ** 2)
    if isinstance(noise, Laplace | DiscreteLaplace):
        level = 1 / ball(noise.scale)
        return level * (level / 2).tanh()
    if not isinstance(noise, Rounded):
        raise ValidationError(f"noise: found {noise!r}, whose zCDP is not known")
    return arb("inf") if isinstance(noise.noise, Uniform) else _closed(noise.noise)


def _of_case(changes: Sequence[Change], book: Book, above: float) -> tuple[float, float]:
    """Return bounds on rho of independent numbers together."""
    if math.isinf(above):
        certain = any(math.isinf(_of_number(change, book)) for change in changes)
        return (math.inf if certain else 0.0), math.inf
    losses = book.losses(changes)
    if isinstance(losses, Losses):
        low, high = _of_ratios(losses.ratios)
        with precision():
            rest = arb(losses.squared_mu) / 2
            return (
                lower(ball(low) + rest),
                upper(ball(high) + rest),
            )
    with precision():
        found = total(_relative_entropy(change, book) for change in changes)
        return max(lower(found), 0.0), above


def _relative_entropy(change: Change, book: Book) -> arb:
    """Return a ball whose lower endpoint is at most D(P || R)."""
    if isinstance(change.noise, Gaussian | DiscreteGaussian | DiscreteLaplace):
        return _closed(change.noise)
    cells = book.cells(change)
    masses = [np.where(cells.losses[0] > 0, *cells.masses)]
    pairs = zip(masses[0].tolist(), cells.losses[0].tolist(), strict=True)
    return total(arb(mass) * arb(loss) for mass, loss in pairs)


def _of_ratios(ratios: Ratios) -> tuple[float, float]:
    """Return bounds on the largest D_alpha / alpha of distributions with these ratios."""
    if ratios.alone:
        return math.inf, math.inf
    p = [Fraction(int(mass.p), int(mass.q)) for mass in ratios.masses.values()]
    pairs = zip(ratios.masses, ratios.masses.values(), strict=True)
    others = [mass / ratio for ratio, mass in pairs]
    r = [Fraction(int(mass.p), int(mass.q)) for mass in others]
    rest = 1 - sum(others, fmpq(0))
    if rest:
        p, r = [*p, Fraction(0)], [*r, Fraction(int(rest.p), int(rest.q))]
    if len(p) < 2:
        return 0.0, 0.0
    forward = np.array(p, dtype=object), np.array(r, dtype=object)
    bound = check_claim(*forward, zcdp=0).bound
    return bound.lower, bound.upper
