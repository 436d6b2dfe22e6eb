r"""Bounds on the leakage of a whole table, from each number's noise with and without a person.

The others being known, the numbers are independent given the person's cell c. Let P_c be the
distribution of all of them, P_c^j that of number j, T = T_1 x T_2 x ... any product distribution,
and p the distribution of c.

- The capacity is at most max_c D(P_c || T) = max_c sum_j D(P_c^j || T_j).
- I(p) = sum_c p_c D(P_c || M), M = sum_c p_c P_c, and D(P || M) >= E_P[g] - log E_M[e^g] for every
  function g (Donsker and Varadhan). With g = theta log dP_c/dT both means are sums and products
  over the numbers.
- I(p) >= -sum_c p_c log sum_d p_d BC(P_c, P_d), where BC(P, R) = sum_y sqrt(P R) is a product over
  the numbers (Kolchinsky and Tracey, 2017).

The first two meet if the numbers reveal little; the last one tends to log k if they reveal
everything. All are means of functions of a number's loss L = log P/R. With T_j = w P + (1 - w) R
and q(L) = log(w + (1 - w) e^(-L)) = -log P/T_j,

    D(P || T_j) = E_P[-q],  E_P[(P/T_j)^theta] = E_P[e^(-theta q)],
    E_P[(R/T_j)^theta] = E_P[e^(-theta (q + L))],  BC = E_P[e^(-L/2)],

and each function is monotone in L.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from flint import acb, arb
from scipy.special import logsumexp

from cvxleak.core.numbers import fraction
from cvxleak.core.validation import Array
from cvxleak.kernel.numbers import ball, precision
from cvxleak.kernel.numbers import lower as float_below
from cvxleak.kernel.numbers import upper as float_above
from cvxleak.model import Gaussian, Prior
from cvxleak.tables.cases import start_and_period
from cvxleak.tables.losses import Book, Change, Noise
from cvxleak.tables.table import Table

__all__ = ["Products", "others_of"]

CELLS = 1 << 10
"""Most cells in which the person of the lower bound may be."""

CANDIDATES = 8
"""Number of cells for which it is tried that all others are in that cell."""

POWERS = (1.0, 0.8, 0.6)
"""Values of theta: 1 is best if little is revealed, the others up to where BC takes over."""

LARGEST = 700.0
"""Losses are cut off here, so that their exponentials are floats."""

ROUNDING = 1e-12
"""Largest relative error of sums of floats."""

INTEGRAL = 2.0**-60
"""Error to which a Gaussian mean is computed, if that is quick; it is enclosed in any case."""

REACH = 40
"""Standard deviations beyond which the Gaussian distribution counts as certain."""


def others_of(noise: Noise, people: int) -> range:
    """Return the counts of the other people that have to be considered for one number.

    The key of no people is 0, so a count of 0 may differ from those with which the noise repeats.
    """
    start, period = start_and_period(noise)
    return range(min(people, max(start, 1) + period))


class _Terms(NamedTuple):
    """Upper bounds on a number's terms in log E_M[e^g] - E_P[g].

    They depend on whether it counts the person's cell c, and on whether it counts the cell d.
    """

    means: tuple[float, float]
    logs: tuple[tuple[float, float], tuple[float, float]]


class Products:
    """Numbers of a table with independent noise.

    Parameters
    ----------
    table : Table
    laws : sequence of noise
        The noise of each number.
    incidence : ndarray, shape (numbers, values of a record)
        The values of a record that each number counts: 1, or else 0.
    """

    def __init__(self, table: Table, laws: Sequence[Noise], incidence: Array) -> None:
        self.table, self.laws, self.incidence = table, laws, incidence
        self._means = _Means()
        k = incidence.shape[1]
        self.chosen = np.unique(np.linspace(0, k - 1, min(k, CELLS)).astype(int))

    @property
    def law(self) -> Prior:
        """The distribution of the person of the lower bound."""
        weights = np.zeros(self.incidence.shape[1])
        weights[self.chosen] = 1 / len(self.chosen)
        return Prior(weights, self.table.alphabet)

    @cached_property
    def upper(self) -> float:
        """A float above the capacity, for all counts of the others."""
        k = self.incidence.shape[1]
        known: dict[tuple[int, int], tuple[float, float]] = {}
        ends = []
        for noise, row in zip(self.laws, self.incidence, strict=True):
            size = int(row.sum())
            key = id(noise), size
            if size == k:
                known[key] = 0.0, 0.0
            elif key not in known:
                counts, share = others_of(noise, self.table.people), size / k
                pairs = [_pair(noise, value) for value in counts]
                known[key] = (
                    max(self._means.divergence(one, share)[1] for one, _ in pairs),
                    max(self._means.divergence(other, 1 - share)[1] for _, other in pairs),
                )
            ends.append(known[key])
        inside, outside = np.array(ends).T
        return _above(float((inside @ self.incidence + outside @ (1 - self.incidence)).max()))

    @cached_property
    def lower(self) -> tuple[float, tuple[int, ...]]:
        """A float below the leakage about a person in a chosen cell, and the others' counts."""
        table, k = self.table, self.incidence.shape[1]
        found = []
        spread = np.linspace(0, k - 1, min(k, CANDIDATES)).astype(int).tolist()
        for place in [k - 1] if table.outside else spread:
            others = np.zeros(k, dtype=int)
            others[place] = table.people - 1
            told = self._told((self.incidence @ others).tolist())
            found.append((told, tuple(others[: len(table.cells)].tolist())))
        return max(found, key=lambda one: one[0])

    def _told(self, values: list[int]) -> float:
        """Return a float below the leakage if the others' counts sum to these numbers."""
        rows = self.incidence[:, self.chosen]
        shares = rows.mean(axis=1)
        apart = np.array(
            [self._means.apart(Change(law, v, 1)) for law, v in zip(self.laws, values, strict=True)]
        )
        far = (rows * apart[:, None]).T @ (1 - rows)
        ends = [-_log_means(-(far + far.T)).mean() - ROUNDING * (1 + apart.sum())]
        used = np.flatnonzero((shares > 0) & (shares < 1))
        of, without = rows[used], 1 - rows[used]
        for theta in POWERS:
            terms = [
                self._terms(self.laws[j], values[j], float(shares[j]), theta) for j in used.tolist()
            ]
            means = np.array([one.means for one in terms]).reshape(-1, 2)
            logs = np.array([one.logs for one in terms]).reshape(-1, 2, 2)
            found = means[:, 1] @ of + means[:, 0] @ without
            pairs = sum(
                (a * logs[:, i, j, None]).T @ b
                for i, a in enumerate((without, of))
                for j, b in enumerate((without, of))
            )
            off = ROUNDING * (1 + float(np.abs(means).sum() + np.abs(logs).sum()))
            ends.append(float((found - _log_means(np.asarray(pairs))).mean()) - off)
        return max(*ends, 0.0)

    def _terms(self, noise: Noise, value: int, share: float, theta: float) -> _Terms:
        return self._means.terms(noise, value, share, theta)


class _Means:
    """Means of functions of numbers' losses; repeated ones are computed once."""

    def __init__(self) -> None:
        self._book = Book()
        self._known: dict[object, tuple[float, float]] = {}
        self._terms: dict[object, _Terms] = {}

    def terms(self, noise: Noise, value: int, share: float, theta: float) -> _Terms:
        """Return the terms of a number that counts a person's cell with probability `share`."""
        key = id(noise), value, share, theta
        if key not in self._terms:
            counted, not_counted = _pair(noise, value)
            rest = 1 - share
            self._terms[key] = _Terms(
                (
                    theta * self.divergence(not_counted, rest)[0],
                    theta * self.divergence(counted, share)[0],
                ),
                (
                    (
                        math.log(self._power(not_counted, rest, theta, 0.0)),
                        math.log(self._power(counted, share, theta, theta)),
                    ),
                    (
                        math.log(self._power(not_counted, rest, theta, theta)),
                        math.log(self._power(counted, share, theta, 0.0)),
                    ),
                ),
            )
        return self._terms[key]

    def divergence(self, change: Change, weight: float) -> tuple[float, float]:
        """Return floats below and above D(P || w P + (1 - w) R)."""
        key = change, weight
        if key not in self._known:
            self._known[key] = self._divergence(change, weight)
        return self._known[key]

    def _divergence(self, change: Change, weight: float) -> tuple[float, float]:
        if isinstance(change.noise, Gaussian):
            return _of_gaussian(change.noise, weight, None, 0.0)
        cells, most = self._book.cells(change), -math.log(weight)
        low, high = (-_log_mixture(losses, weight) for losses in cells.losses)
        least = np.minimum(low * cells.masses[0], low * cells.masses[1]).sum()
        largest = np.maximum(high * cells.masses[0], high * cells.masses[1]).sum()
        # On any event D is at least P log P.
        missed = cells.alone[1] - cells.alone[0]
        doubt = missed * (1 - math.log(missed)) if missed > 0 else 0.0
        return (
            _below(float(least) + most * cells.alone[0] - doubt),
            _above(float(largest) + most * cells.alone[1]),
        )

    def _power(self, change: Change, weight: float, theta: float, cross: float) -> float:
        """Return a float above E_P[e^(-theta q - cross L)], where cross is 0 or theta."""
        key = change, weight, theta, cross
        if key not in self._known:
            found = self._of_power(change, weight, theta, cross)
            self._known[key] = 0.0, max(found, math.exp(-LARGEST))
        return self._known[key][1]

    def _of_power(self, change: Change, weight: float, theta: float, cross: float) -> float:
        if isinstance(change.noise, Gaussian):
            return _of_gaussian(change.noise, weight, theta, cross)[1]
        cells = self._book.cells(change)
        losses = np.clip(cells.losses[0 if cross else 1], -LARGEST, LARGEST)
        values = np.exp(-theta * _log_mixture(losses, weight) - cross * losses)
        # Where R is 0, so is R/T; what was left out counts with the largest value.
        alone = cells.alone[1] - (cells.alone[0] if cross else 0.0)
        most = (1 - weight if cross else weight) ** -theta
        return _above(float((cells.masses[1] * values).sum()) + alone * most)

    def apart(self, change: Change) -> float:
        """Return a float below -log BC of P and R."""
        if isinstance(change.noise, Gaussian):
            return float(1 / (8 * fraction(change.noise.sigma) ** 2)) * (1 - ROUNDING)
        cells = self._book.cells(change)
        losses = np.clip(cells.losses[0], -LARGEST, LARGEST)
        # What is left out adds at most the root of its mass.
        left = max(cells.alone[1] - cells.alone[0], 0.0)
        most = float((cells.masses[1] * np.exp(-losses / 2)).sum()) + math.sqrt(left)
        return min(max(-math.log(max(most, math.exp(-LARGEST))) - ROUNDING, 0.0), LARGEST)


def _pair(noise: Noise, value: int) -> tuple[Change, Change]:
    """Return the number with the person against the number without, and the reverse."""
    return Change(noise, value + 1, -1), Change(noise, value, 1)


def _log_mixture(losses: Array, weight: float) -> Array:
    return np.log1p((1 - weight) * np.expm1(-np.clip(losses, -LARGEST, LARGEST)))


def _log_means(logs: Array) -> Array:
    return np.asarray(logsumexp(logs, axis=1)) - math.log(logs.shape[1])


def _above(number: float) -> float:
    return number + ROUNDING * (1 + abs(number))


def _below(number: float) -> float:
    return number - ROUNDING * (1 + abs(number))


def _of_gaussian(
    noise: Gaussian, weight: float, theta: float | None, cross: float
) -> tuple[float, float]:
    """Return floats below and above a mean of q and L: of -q, or of e^(-theta q - cross L).

    L is Gaussian with mean mu^2 / 2 and variance mu^2, where mu = 1 / sigma.
    """
    with precision():
        mu, own = 1 / ball(noise.sigma), ball(weight)

        def integrand(z: acb, analytic: bool) -> acb:
            loss = mu * z + mu * mu / 2
            q = (own + (1 - own) * (-loss).exp()).log(analytic=analytic)
            value = -q if theta is None else (-theta * q - cross * loss).exp()
            return value * (-z * z / 2).exp()

        found = acb.integral(integrand, -REACH, REACH, rel_tol=INTEGRAL, abs_tol=INTEGRAL)
        inner = found.real / (2 * arb.pi()).sqrt()
        tails = (arb(REACH) / arb(2).sqrt()).erfc()
        if theta is None:  # from min(L, 0) to -log w
            least = inner - (mu * mu + (REACH + 1) * mu) * tails
            return float_below(least), float_above(inner - own.log() * tails)
        most = (1 - own if cross else own) ** -arb(theta)
        return float_below(inner), float_above(inner + most * tails)
