"""Gains in ball arithmetic: their values, their tangents, and the forms of a gain.

A gain G is convex and homogeneous (`cvxleak.model.Gain`). Proofs rest on three facts:

- in a cell with vertices V_j, if <nu, V_j> >= G(V_j) for all j, then <nu, .> is above G everywhere;
- a tangent r of G has <r, s> <= G(s) for every measure s >= 0, so for any theta >= 0 with sum 1,
  -t G(pi) <= -t sum_w theta_w <r_w, pi>;
- if sum_y s_y G(rho_y) <= t G(pi) + U with U > 0, the factor is at most t + U / min G, and min G is
  at least min_a sum_w theta_w r_{w,a}, for any such theta.

If a gain has few actions, they are its tangents. Other gains have tangents at stored points,
evaluated in balls; the formula is valid at every point, so nothing has to be proved about the
points.

The values and tangents of a user-defined gain (`OwnGain`) are trusted, up to `OWN_ACCURACY`. No
certificate names such a gain, so the check of a file never evaluates one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from flint import arb

from cvxleak.core.errors import CertificateError, ValidationError
from cvxleak.core.validation import Array
from cvxleak.exact import balls, reading
from cvxleak.model import (
    Arimoto,
    Gain,
    GainMatrix,
    Gini,
    Guess,
    GuessInTries,
    Shannon,
)
from cvxleak.model.gain import FORMS, Form, gain_from_dict
from cvxleak.model.own_gain import OwnGain
from cvxleak.proofs.bounds.outputs import Ball, Matrix

__all__ = ["FEW_ACTIONS", "LEAKAGE", "OWN_ACCURACY", "GainForm", "Tangents", "height", "tangent"]

FEW_ACTIONS = 64
"""Most actions for which all of them are used as tangents."""

OWN_ACCURACY = 1e-12
"""Relative accuracy of a user-defined gain, and accuracy relative to the mass of its measure."""


@dataclass(frozen=True)
class GainForm:
    """A gain, and the form in which a channel's effect on it is measured."""

    gain: Gain
    form: Form

    @property
    def is_leakage(self) -> bool:
        """Whether it is I(A;Y)."""
        return isinstance(self.gain, Shannon) and self.form == "rise"

    @property
    def name(self) -> str:
        """Its name in tables and messages."""
        return {
            "posterior": f"{self.gain.name} after seeing the output",
            "rise": f"increase in the {self.gain.name}",
            "factor": f"factor by which the {self.gain.name} grows",
        }[self.form]

    @property
    def unit(self) -> str:
        """Its unit."""
        return "times" if self.form == "factor" else self.gain.unit

    @property
    def floor(self) -> float:
        """Its least possible value, because information never harms: 0 of a rise, 1 of a factor."""
        return {"posterior": -np.inf, "rise": 0.0, "factor": 1.0}[self.form]

    def to_dict(self) -> dict[str, Any]:
        """Return the entries of a certificate: none, if it is I(A;Y)."""
        return {} if self.is_leakage else {"gain": self.gain.to_dict(), "form": self.form}

    @classmethod
    def read(cls, problem: Mapping[str, Any]) -> GainForm:
        """Return the one that a certificate's problem names."""
        if "gain" not in problem and "form" not in problem:
            return LEAKAGE
        try:
            found = cls(gain_from_dict(problem["gain"]), problem["form"])
        except (KeyError, TypeError, ValueError, ValidationError) as error:
            raise CertificateError(f"the gain cannot be read: {error}") from error
        if found.form not in FORMS:
            raise CertificateError(f"form: found {found.form!r:.40}; allowed: {FORMS}")
        if found.is_leakage or not reading.identical(problem["gain"], found.gain.to_dict()):
            raise CertificateError("the gain is not in its canonical form")
        return found

    def checked(self, k: int) -> GainForm:
        """Return it; raise if it is not defined for k values."""
        try:
            self.gain.fits(k)
        except ValidationError as error:
            raise CertificateError(str(error)) from error
        return self

    def value(self, joint: Matrix) -> Ball:
        """Return a ball around its value for a joint distribution, shape (values, outputs)."""
        posterior = balls.total(height(self.gain, column) for column in zip(*joint, strict=True))
        return self.of_posterior(posterior, [balls.total(row) for row in joint])

    def of_posterior(self, posterior: Ball, prior: Sequence[Ball]) -> Ball:
        """Return its value for a posterior gain and the distribution of A."""
        if self.form == "posterior":
            return posterior
        before = height(self.gain, prior)
        return posterior - before if self.form == "rise" else posterior / before

    def actions(self, k: int) -> Matrix | None:
        """Return the actions of a gain that is the largest of few linear functions."""
        rows = self.gain.rows(k)
        if rows is None or len(rows) > FEW_ACTIONS:
            return None
        return [[balls.number(x) for x in row] for row in rows.tolist()]

    def usual(self, k: int) -> Matrix:
        """Return the actions, or else a tangent at the uniform distribution.

        For guesses it is the mean over all orders of the values.
        """
        if few := self.actions(k):
            return few
        uniform = [arb(1) / k] * k
        if isinstance(self.gain, Guess | GuessInTries | Arimoto):
            # That mean is a tangent, too, since G ignores the order of the values.
            return [[height(self.gain, uniform)] * k]
        return [tangent(self.gain, uniform)]

    def least(self, k: int, weights: Any) -> Ball:
        """Return a number > 0 below G, from a mixture of its usual tangents.

        For a user-defined gain the points of the tangents follow the weights.
        """
        rows, named = self.checked(k).usual(k), "the weights of the least gain"
        if isinstance(self.gain, OwnGain) and self.actions(k) is None:
            stored = reading.numbers(weights, named)
            mixture = Tangents(self, {"tangents": len(stored) // (1 + k)}, k).mixed(stored)
        else:
            stored = reading.numbers(weights, named, len(rows))
            mixture = _mixture(balls.normalized(stored), rows)
        least = balls.least(mixture)
        if not least > 0:
            raise CertificateError("the gain is not proved to be positive")
        return least

    def ceiling(self, k: int) -> Ball:
        """Return a ball above it, for every adversary and channel."""
        if self.is_leakage:
            return arb(k).log()
        corners = [[arb(int(a == b)) for b in range(k)] for a in range(k)]
        heights = [height(self.gain, corner) for corner in corners]
        if self.form == "posterior":
            return balls.largest(heights)
        rows = self.usual(k)
        mean = _mixture([arb(1) / len(rows)] * len(rows), rows)
        if self.form == "rise":
            return balls.largest(h - r for h, r in zip(heights, mean, strict=True))
        least = balls.least(mean)
        return balls.largest(heights) / least if least > 0 else arb.pos_inf()


LEAKAGE = GainForm(Shannon(), "rise")
"""The mutual information I(A;Y)."""


class Tangents:
    """What a leaf subtracts for the gain of the prior: a mixture of tangents.

    A leaf stores the weights of the mixture, one for each action. If the header has a number
    `tangents`, it stores that many weights and the points where the tangents touch the gain.
    """

    def __init__(self, told: GainForm, header: Mapping[str, Any], k: int) -> None:
        self._gain, self._k = told.checked(k).gain, k
        none = told.is_leakage or told.form == "posterior"
        self._rows = None if none else told.actions(k)
        self._number = 0 if self._rows is None else len(self._rows)
        if not none and self._rows is None:
            self._number = reading.count(header.get("tangents"), "the number of tangents", 1)
        elif "tangents" in header:
            raise CertificateError("a gain with actions takes no tangents")
        self.width = self._number * (1 if self._rows is not None else 1 + k)

    def mixed(self, stored: Sequence[float]) -> list[Ball]:
        """Return the mixture that a leaf has stored; 0 if nothing is subtracted."""
        if not self._number:
            return [arb(0)] * self._k
        weights, points = balls.normalized(stored[: self._number]), stored[self._number :]
        rows = self._rows
        if rows is None:
            k = self._k
            laws = [points[w * k : (w + 1) * k] for w in range(self._number)]
            rows = [tangent(self._gain, balls.normalized(law)) for law in laws]
        return _mixture(weights, rows)


def _mixture(weights: Sequence[Ball], rows: Matrix) -> list[Ball]:
    return [balls.dot(weights, column) for column in zip(*rows, strict=True)]


def height(gain: Gain, measure: Sequence[Ball]) -> Ball:
    """Return a ball around G of a measure >= 0, extended by G(c r) = c G(r)."""
    match gain:
        case Shannon():
            return balls.total(map(balls.x_log_x, measure)) - balls.x_log_x(balls.total(measure))
        case Guess():
            return balls.largest(measure)
        case GuessInTries():
            # Monotone in each entry, so the endpoints of the balls enclose it.
            tries = min(gain.tries, len(measure))
            ends = [sorted(map(end, measure)) for end in (arb.lower, arb.upper)]
            low, high = (balls.total(own[len(own) - tries :]) for own in ends)
            return low.union(high)
        case GainMatrix():
            rows = gain.table.tolist()
            return balls.largest(balls.dot(map(balls.number, row), measure) for row in rows)
        case Gini():
            mass = balls.total(measure)
            return balls.total(x * x for x in measure) / mass if mass > 0 else mass
        case Arimoto():
            return _norm(gain.alpha, measure)
        case OwnGain():
            return _own_height(gain, measure)
        case _:
            raise CertificateError(f"no bound is known for a gain of class {type(gain).__name__}")


def tangent(gain: Gain, law: Sequence[Ball]) -> list[Ball]:
    """Return r with <r, s> <= G(s) for every measure s >= 0, nearly equal at s = `law`."""
    match gain:
        case Shannon():
            if not all(x > 0 for x in law):
                raise CertificateError(
                    "a tangent of the entropy is taken where a value has probability 0"
                )
            return [x.log() for x in law]
        case Guess() | GuessInTries():
            tries = 1 if isinstance(gain, Guess) else gain.tries
            first = sorted(range(len(law)), key=lambda a: -float(law[a].mid()))[:tries]
            return [arb(int(a in first)) for a in range(len(law))]
        case GainMatrix():
            rows = [list(map(balls.number, row)) for row in gain.table.tolist()]
            return max(rows, key=lambda row: float(balls.dot(row, law).mid()))
        case Gini():
            square = balls.total(x * x for x in law)
            return [2 * x - square for x in law]
        case Arimoto():
            if gain.alpha == np.inf:
                return tangent(Guess(), law)
            # By Hoelder's inequality, for any vector with dual norm 1.
            order = balls.number(gain.alpha)
            powers = [_power(x, order - 1) for x in law]
            size = _norm(gain.alpha, law)
            return [x / _power(size, order - 1) for x in powers]
        case OwnGain():
            return [balls.number(x) for x in gain.tangent(_middles(law)).tolist()]
        case _:
            raise CertificateError(f"no bound is known for a gain of class {type(gain).__name__}")


def _own_height(gain: OwnGain, measure: Sequence[Ball]) -> Ball:
    middles = _middles(measure)
    value, mass = float(gain.value(middles)), float(middles.sum())
    return arb(value, OWN_ACCURACY * (abs(value) + mass))


def _middles(measure: Sequence[Ball]) -> Array:
    return np.array([max(float(x.mid()), 0.0) for x in measure])


def _norm(alpha: float, measure: Sequence[Ball]) -> Ball:
    if alpha == np.inf:
        return balls.largest(measure)
    order = balls.number(alpha)
    return _power(balls.total(_power(x, order) for x in measure), 1 / order)


def _power(x: Ball, order: Ball) -> Ball:
    """Return x^order for a ball known to hold a number in [0, inf), and order > 0."""
    if x > 0:
        return x**order
    high = x.upper()
    return arb(0).union(high**order) if high > 0 else arb(0)
