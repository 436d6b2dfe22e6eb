r"""Gains G: convex, homogeneous functions of a measure on the k values of A.

What is claimed of a channel from A to Y is J = sum_y s_y G(rho_y) - T G(pi), where s_y is the
probability of y, rho_y the posterior of A and pi its prior. Shannon's gain -H with T = 1 is I(A;Y).

TANGENT. A linear function r that touches G anywhere has <r, s> <= G(s) for every measure s >= 0.
For a maximum of linear functions each of these is one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from flint import arb, fmpq

from cvxleak.kernel.budget import charge, choices
from cvxleak.kernel.many import Many
from cvxleak.kernel.numbers import dot, largest, least, need, rational, total, xlogx
from cvxleak.kernel.reading import chosen, count, items, parts

__all__ = ["Arimoto", "Gain", "Gini", "Shannon", "Table", "lowest", "mean", "power", "read_gain"]


class Gain:
    """A gain, and linear functions below it."""

    def value(self, measure: Sequence[Any]) -> Any:
        """Return G of a measure."""
        raise NotImplementedError

    def tangents(self, points: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """Return linear functions below G: those that touch it at some distributions."""
        raise NotImplementedError

    @property
    def linear(self) -> Sequence[Sequence[fmpq]]:
        """Return the linear functions that G is the maximum of, if they are few."""
        return ()


class Shannon(Gain):
    """G = -H."""

    def value(self, measure: Sequence[Any]) -> Any:
        """Return sum s log(s / sum s)."""
        return total(map(xlogx, measure)) - xlogx(total(measure))

    def tangents(self, points: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """Return log r at each distribution r (Gibbs)."""
        return [[x.log() for x in r] for r in points]


@dataclass(frozen=True)
class Table(Gain):
    """G(s) = max_w <g_w, s>: the best of some actions."""

    actions: tuple[tuple[fmpq, ...], ...]

    @property
    def linear(self) -> Sequence[Sequence[fmpq]]:
        """Return the actions."""
        return self.actions

    def value(self, measure: Sequence[Any]) -> Any:
        """Return the gain of the best action."""
        return largest(self._payoff(own, measure) for own in self.actions)

    def _payoff(self, own: Sequence[fmpq], measure: Sequence[Any]) -> Any:
        pairs = list(zip(own, measure, strict=True))
        some = [s if x == 1 else s * arb(x) for x, s in pairs if x != 0]
        return total(some) if some else measure[0] * arb(0)

    def tangents(self, points: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """Return the actions themselves."""
        need(not points, "points, where the gain is a maximum of few linear functions")
        return [[arb(x) for x in own] for own in self.actions]


class Gini(Gain):
    """G(s) = sum s_a^2 / sum s."""

    def value(self, measure: Sequence[Any]) -> Any:
        """Return the chance that a guess drawn from the belief is right."""
        mass = total(measure)
        return mass if mass.is_zero() else total(x * x for x in measure) / mass

    def tangents(self, points: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """Return 2 r - |r|^2 at each distribution r, the derivative of G."""
        return [[x * 2 - total(y * y for y in r) for x in r] for r in points]


@dataclass(frozen=True)
class Arimoto(Gain):
    """The norm (sum s_a^alpha)^(1/alpha), alpha > 1."""

    alpha: fmpq

    def value(self, measure: Sequence[Any]) -> Any:
        """Return the norm."""
        return power(total(power(x, self.alpha) for x in measure), 1 / self.alpha)

    def tangents(self, points: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """Return (r / |r|)^(alpha - 1) at each distribution r, the derivative of the norm."""
        found = []
        for r in points:
            norm = self.value(r)
            found.append([power(x / norm, self.alpha - 1) for x in r])
        return found


def power(x: Any, p: fmpq) -> Any:
    """Return x^p of a number >= 0, for p > 0."""
    if isinstance(x, np.ndarray):
        return np.frompyfunc(lambda one: power(one, p), 1, 1)(x)
    if isinstance(x, Many):
        return x.power(arb(p))
    if x > 0:
        return (x.log() * arb(p)).exp()
    if x == 0:
        return arb(0)
    top = x.upper()
    need(top > 0, "a power of a negative number")
    return arb(0).union((top.log() * arb(p)).exp())


KEYS = {"arimoto": ("alpha",), "matrix": ("table",), "tries": ("tries",)}
"""What a file says of a gain besides its kind."""


def read_gain(data: Any, k: int) -> Gain:
    """Return the gain of a file's problem, for k values."""
    kind = chosen(data, "a gain", ["shannon", "gini", "guess", *KEYS])
    parts(data, {"kind", *KEYS.get(kind, ())}, "a gain")
    if kind in ("shannon", "gini"):
        return Shannon() if kind == "shannon" else Gini()
    if kind == "matrix":
        rows = [items(row, "an action", k) for row in items(data["table"], "table")]
        need(rows, "a gain without actions")
        return Table(tuple(tuple(map(rational, row)) for row in rows))
    if kind == "arimoto" and data["alpha"] != "infinity":
        need(rational(data["alpha"]) > 1, "a norm of order 1 or less is not convex")
        return Arimoto(rational(data["alpha"]))
    return _in_tries(count(data["tries"], "tries", 1) if kind == "tries" else 1, k)


def _in_tries(tries: int, k: int) -> Table:
    """Return the chance of guessing the value in some tries: the largest sum of so many entries."""
    tries = min(tries, k)
    charge("bytes of numbers", 64 * choices(k, tries) * k)
    each = combinations(range(k), tries)
    return Table(tuple(tuple(fmpq(int(a in chosen)) for a in range(k)) for chosen in each))


def lowest(gain: Gain, k: int) -> Any:
    """Return what G is nowhere below on distributions: the least entry of a tangent (TANGENT)."""
    points = [] if gain.linear else [[arb(1) / k] * k]
    return largest(least(r) for r in gain.tangents(points))


def mean(gain: Gain, theta: Sequence[Any], points: Sequence[Sequence[Any]]) -> list[Any]:
    """Return a mean of tangents, which is a linear function below G."""
    tangents = gain.tangents(points)
    need(tangents, "a tangent is needed")
    return [dot(theta, column) for column in zip(*tangents, strict=True)]
