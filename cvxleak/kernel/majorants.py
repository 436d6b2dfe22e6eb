r"""Judgement J: what J(w) = sum_y s_y G(rho_y) - T G(pi) is at most, in terms that CHAIN can close.

A majorant is kappa H(pi) + <w, c> + sum_a pi_a q psi_a(v_a), where psi_a(v) = D(vR_a || t), kappa
>= 0 and q > 0. Where the view has `extra`, `close` adds it to c, and what it then is about is J +
<w, extra>: c either bounds J, or is less by `extra` than what bounds this sum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import mul
from typing import Any

from flint import arb

from cvxleak.kernel.budget import charge
from cvxleak.kernel.gains import Shannon, mean
from cvxleak.kernel.many import unstacked
from cvxleak.kernel.numbers import largest, need, total, xlogx
from cvxleak.kernel.terms import (
    Law,
    Leaf,
    Numbers,
    Rule,
    Shape,
    law_of,
    laws_of,
    number,
    numbers,
    term,
    terms,
)
from cvxleak.kernel.values import OneValue
from cvxleak.kernel.view import Row, View

__all__ = ["Alphabet", "Chord", "Majorant", "PriorTangent", "Share", "Smoothed"]


@dataclass(frozen=True)
class Sharing:
    """The part sum_a pi_a q D(v_a R_a || t) of a majorant, and a V-term for each value."""

    q: Any
    log_t: Sequence[Any]
    rows: Sequence[Row]
    values: Sequence[Any]

    def bound(self, view: View, a: int, base: Sequence[Any], scale: Any, leaf: Leaf) -> Any:
        """Return a bound above q D(vR_a || t) + <v, base> + scale H(v)."""
        rows, base = [self.rows[g] for g in view.of[a]], [x / self.q for x in base]
        one = OneValue(rows, base, scale / self.q, self.log_t)
        return self.q * self.values[a].conclude(one, leaf)


@dataclass(frozen=True)
class Majorant:
    """kappa H(pi) + <w, c>, and perhaps a part that is not affine within a value."""

    kappa: Any
    c: Sequence[Any]
    sharing: Sharing | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Alphabet(Rule, rule="alphabet", gives="J", when=["information", "no cover around"]):
    """I(A;Y) <= H(A).

    Of a real output, too: c takes off what `close` adds for the place in a cell.
    """

    def evaluate(self, subject: View, leaf: Leaf) -> Majorant:
        """Return kappa = 1."""
        extra = subject.extra or [arb(0)] * len(subject.rows)
        return Majorant(arb(1), [-x for x in extra])


@dataclass(frozen=True, eq=False, kw_only=True)
class Share(Rule, rule="share", gives="J", when=["information", "no cover around"]):
    """I(A;Y) <= sum_a pi_a D(v_a R_a || t).

    They differ by D(s || t). A V-term for each value bounds its divergence once the multipliers are
    known, over a set of channels for all rows.
    """

    t: Law = law_of("n")
    values: tuple[Any, ...] = terms("V")

    def evaluate(self, subject: View, leaf: Leaf) -> Majorant:
        """Return kappa = 0."""
        sharing = Sharing(arb(1), [x.log() for x in self.t.at(leaf)], subject.rows, self.values)
        return Majorant(arb(0), [arb(0)] * len(subject.rows), sharing)


@dataclass(frozen=True, eq=False, kw_only=True)
class Chord(Rule, rule="chord", gives="J", when=["not about a factor", "cells around"]):
    r"""sum_y s_y G(rho_y) <= sum_g w_g <R_g, (nu_ya + h_y)_y> for g of the value a.

    CHORD: where rho_y is in the simplex with the vertices V_yj, G(rho_y) <= <rho_y, nu_y> + h_y,
    with h_y = max_j (G(V_yj) - <V_yj, nu_y>). Shannon's G(pi) adds T H(pi); other gains need
    `prior`.
    """

    nu: Numbers = numbers("k n")

    def check(self, shape: Shape) -> None:
        """Need a prior that is priced."""
        priced = isinstance(shape.view.gain, Shannon) or shape.view.times == 0
        need(priced, "chord: the gain before an output is seen has to be priced by `prior`")

    def evaluate(self, subject: View, leaf: Leaf) -> Majorant:
        """Return kappa = T for Shannon's gain, otherwise 0."""
        vertices, nu = unstacked(leaf.places), self.nu.array(leaf)
        nu = nu.reshape(subject.n, subject.k, *nu.shape[1:])
        slopes = [nu[:, a] for a in range(subject.k)]
        heights = subject.gain.value(vertices) - total(map(mul, vertices, slopes))
        height = largest(unstacked(heights))
        shannon = isinstance(subject.gain, Shannon)
        c: list[Any] = [None] * len(subject.rows)
        for slope, own in zip(slopes, subject.of, strict=True):
            for g in own:
                c[g] = subject.rows[g].over(slope + height)
        return Majorant(leaf.lift(subject.times if shannon else 0), c)


@dataclass(frozen=True, eq=False, kw_only=True)
class Smoothed(
    Rule, rule="smoothed", gives="J", when=["information", "exact rows", "no cover around"]
):
    """I(A;Y) <= (I(A;Y') + h(s)) / (1 - s), Y' = Y or, with probability s, drawn from t.

    Let B say which of the two it is; h(s) is its entropy. I(A;Y',B) = (1 - s) I(A;Y), since B
    does not depend on A and Y, and a draw from t says nothing. And I(A;Y',B) = I(A;Y') +
    I(A;B|Y') <= I(A;Y') + h(s). `of` is about Y': where t_y > 0, every row has output y.
    """

    share: Numbers = number(least=0)
    t: Law = law_of("n")
    of: Any = term("J")

    @classmethod
    def inside(cls, shape: Shape, found: Mapping[str, Any]) -> Shape:
        """Return the shape of the view of Y'."""
        return replace(shape, view=replace(shape.view, extra=None)) if "t" in found else shape

    def check(self, shape: Shape) -> None:
        """Need a share."""
        (s,) = self.share.written
        need(0 < s < 1, "smoothed: a share that is not between 0 and 1")

    def evaluate(self, subject: View, leaf: Leaf) -> Majorant:
        """Return that of Y' over 1 - s, with h(s) / (1 - s) added."""
        charge("ball operations", len(subject.rows) * subject.n)
        (s,) = self.share.at(leaf)
        left, drawn = 1 - s, [s * x for x in self.t.at(leaf)]
        rows = [
            Row([left * x + y for x, y in zip(row.lo, drawn, strict=True)]) for row in subject.rows
        ]
        found = self.of.conclude(replace(subject, rows=rows, extra=None), leaf)
        rest = -(xlogx(s) + xlogx(left)) / left
        sharing = found.sharing and replace(found.sharing, q=found.sharing.q / left)
        return Majorant(found.kappa / left, [x / left + rest for x in found.c], sharing)


@dataclass(frozen=True, eq=False, kw_only=True)
class Tangents(Rule):
    """Rules with a mean of linear functions below G (TANGENT).

    `points` are where these touch G, if it is not the maximum of few; theta are their weights.
    """

    points: tuple[Law, ...] | None = laws_of("k", optional=True)
    theta: Law = law_of("tangents")

    @classmethod
    def inside(cls, shape: Shape, found: Mapping[str, Any]) -> Shape:
        """Return the shape with the number of linear functions."""
        return replace(shape, tangents=len(found.get("points") or shape.view.gain.linear))

    def below(self, subject: View, leaf: Leaf) -> list[Any]:
        """Return r, where <r, s> <= G(s) for every measure s."""
        points = [point.at(leaf) for point in self.points or ()]
        return mean(subject.gain, self.theta.at(leaf), points)


@dataclass(frozen=True, eq=False, kw_only=True)
class PriorTangent(Tangents, rule="prior", gives="J", when=["a gain", "not about a factor"]):
    """J <= sum_y s_y G(rho_y) - T sum_g w_g r_a, r a mean of linear functions below G (TANGENT).

    `of` is about T = 0.
    """

    of: Any = term("J")

    @classmethod
    def inside(cls, shape: Shape, found: Mapping[str, Any]) -> Shape:
        """Return the shape with T = 0."""
        shape = super().inside(shape, found)
        return replace(shape, view=replace(shape.view, times=0))

    def evaluate(self, subject: View, leaf: Leaf) -> Majorant:
        """Return that of the posteriors alone, less T r_a for the groups of a."""
        found = self.of.conclude(replace(subject, times=0), leaf)
        r = self.below(subject, leaf)
        c = list(found.c)
        for a, own in enumerate(subject.of):
            for g in own:
                c[g] = c[g] - leaf.lift(subject.times) * r[a]
        return replace(found, c=c)
