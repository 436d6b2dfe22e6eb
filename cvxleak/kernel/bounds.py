r"""Judgement B: what J(w) is at most, for all adversaries w with F(w) >= b that meet the limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Any

from flint import arb

from cvxleak.kernel.budget import charge
from cvxleak.kernel.lemmas import divergence
from cvxleak.kernel.majorants import Tangents
from cvxleak.kernel.numbers import ball, dot, largest, law, least, need, proved, soft, total, xlogx
from cvxleak.kernel.terms import (
    Law,
    Leaf,
    Numbers,
    Rule,
    Shape,
    law_of,
    number,
    numbers,
    packed,
    partition,
    term,
)
from cvxleak.kernel.view import View

__all__ = ["Choices", "Close", "Equal", "Factor", "Price"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Close(Rule, rule="close", gives="B", when=["not about a factor"]):
    r"""J <= soft_{kappa + L}(phi) + sum_j kappa_j d_j - lambda b, by CHAIN.

    To a majorant of J add lambda (F(w) - b) >= 0 and, for each limit <w, c_j> <= d_j + t_j F(w),
    kappa_j (d_j + t_j F(w) - <w, c_j>) >= 0. With L = lambda + sum kappa_j t_j and F(w) = H(pi) +
    sum_a pi_a (H(v_a) + <v_a, log m>), what is left is kappa H(pi) + L H(pi) + sum_a pi_a phi_a,
    where phi_a bounds its value's part: by CHAIN, or by the value's V-term.
    """

    multiplier: Numbers = number(least=0)
    limits: Numbers = numbers("limits", least=0)
    of: Any = term("J")

    def evaluate(self, subject: View, leaf: Leaf) -> Any:
        """Return the bound."""
        (scale,) = self.multiplier.at(leaf)
        found = self.of.conclude(subject, leaf)
        const, c = -scale * subject.floor, list(found.c)
        if subject.extra is not None:
            c = [x + y for x, y in zip(c, subject.extra, strict=True)]
        for x, limit in zip(self.limits.at(leaf), subject.limits, strict=True):
            c = [p - x * q for p, q in zip(c, limit.c, strict=True)]
            const = const + x * limit.bound
            scale = scale + x * limit.share
        phi = []
        for a, own in enumerate(subject.of):
            base = [c[g] + scale * subject.logs[g] for g in own]
            if found.sharing is None:
                phi.append(soft(base, scale))
            else:
                phi.append(found.sharing.bound(subject, a, base, scale, leaf))
        return soft(phi, found.kappa + scale) + const


@dataclass(frozen=True, eq=False, kw_only=True)
class Price(Rule, rule="price", gives="B", when=["information", "exact rows", "no cover around"]):
    """I(A;Y) <= I(A;Y') + sum_g w_g (D(R_g || t) - D(R'_g || t')), Y' = the part that Y is in.

    I(A;Y) = I(A;Y') + I(A;Y|Y'), and I(A;Y|Y') <= I(X;Y|Y') <= sum_g w_g sum_y' R'_g(y')
    D(R_g(.|y') || t(.|y')), by TANGENT for each y'. `of` is about Y', with the price as `extra`.
    """

    parts: tuple[tuple[int, ...], ...] = partition("n")
    t: Law = law_of("n")
    of: Any = term("B")

    @classmethod
    def inside(cls, shape: Shape, found: Mapping[str, Any]) -> Shape:
        """Return the shape of the merged view, once the partition is known."""
        if "t" not in found:
            return shape
        none = [arb(0)] * len(shape.view.rows)
        return replace(shape, view=replace(shape.view.merge(found["parts"]), extra=none))

    def evaluate(self, subject: View, leaf: Leaf) -> Any:
        """Return the bound for the merged outputs."""
        charge("ball operations", len(subject.rows) * subject.n)
        small, t = subject.merge(self.parts), self.t.at(leaf)
        # log t(y|y'); t need not be positive where an output is a part of its own.
        within = [arb(0)] * subject.n
        for part in self.parts:
            if len(part) > 1:
                mass = total(t[y] for y in part)
                for y in part:
                    within[y] = (t[y] / mass).log()
        extra = subject.extra or [arb(0)] * len(subject.rows)
        price = [
            divergence(row.lo, within) - total(map(xlogx, merged.lo)) + more
            for row, merged, more in zip(subject.rows, small.rows, extra, strict=True)
        ]
        return self.of.conclude(replace(small, extra=price), leaf)


@dataclass(frozen=True, eq=False, kw_only=True)
class Choices(
    Rule, rule="choices", gives="B", when=["information", "exact rows", "no cover around"]
):
    """I(A;Y) <= the largest capacity of a choice of one group for each value, whatever the floor.

    CORNER: for fixed pi, I(A;Y) is convex in each v_a, so it is largest where each is a unit
    vector. The capacity of the rows R_a is at most max_a D(R_a || sum_a p_a R_a), for the law p of
    each choice in `inputs`.
    """

    inputs: Any = packed("f", "k")

    def evaluate(self, subject: View, leaf: Leaf) -> arb:
        """Return the largest capacity, and the largest of what is added to J."""
        many = prod(map(len, subject.of))
        need(many == len(self.inputs), "choices: a law for each is needed")
        charge("ball operations", many * subject.k * subject.n)
        found = arb(0)
        for weights, chosen in zip(self.inputs, product(*subject.of), strict=True):
            p = [ball(x) for x in law([proved(x) for x in weights.tolist()])]
            rows = [subject.rows[g].lo for g in chosen]
            log_t = [dot(p, column).log() for column in zip(*rows, strict=True)]
            found = found.max(largest(divergence(row, log_t) for row in rows))
        return found if subject.extra is None else found + largest(subject.extra)


@dataclass(frozen=True, eq=False, kw_only=True)
class Factor(Tangents, rule="factor", gives="B", when=["about a factor", "no cover around"]):
    """sum_y s_y G(rho_y) / G(pi) <= T + max(u, 0) / g, where `of` shows J <= u with this T.

    g = min_a r_a > 0 for r a mean of linear functions below G, so that G(pi) >= g (Dinkelbach).
    """

    times: Numbers = number(least=0)
    of: Any = term("B")

    @classmethod
    def inside(cls, shape: Shape, found: Mapping[str, Any]) -> Shape:
        """Return the shape with this T."""
        shape = super().inside(shape, found)
        if "times" not in found:
            return shape
        return replace(shape, view=replace(shape.view, times=found["times"].written[0]))

    def evaluate(self, subject: View, leaf: Leaf) -> arb:
        """Return the bound on the factor."""
        (times,) = self.times.written
        lowest = least(self.below(subject, leaf))
        need(lowest > 0, "factor: a gain that may be 0")
        rise = self.of.conclude(replace(subject, times=times), leaf)
        return times + rise.max(arb(0)) / lowest


@dataclass(frozen=True, eq=False, kw_only=True)
class Equal(
    Rule, rule="equal", gives="B", when=["exact rows", "no real output", "no cover around"]
):
    """An output that ignores the data leaks nothing: J = (1 - T) G(pi), 0 for T = 1; factor 1."""

    def check(self, shape: Shape) -> None:
        """Need a form in which the prior does not matter."""
        need(shape.view.times in (None, 1), "equal: a rise, or a factor")

    def evaluate(self, subject: View, leaf: Leaf) -> arb:
        """Return 0 or 1, once all rows are equal as written."""
        keys = {row.key for row in subject.rows}
        need(len(keys) == 1 and None not in keys, "equal: rows that are not equal as written")
        return arb(0) if subject.times == 1 else arb(1)
