r"""Judgement V: what D(vR || t) + <v, base> + L H(v) is at most, for distributions v of one value.

`base` is C + L log m, where C and L come from the multipliers of `close`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flint import arb

from cvxleak.kernel.lemmas import contraction
from cvxleak.kernel.numbers import dot, need, soft, total
from cvxleak.kernel.terms import Law, Leaf, Rule, Shape, law_of
from cvxleak.kernel.view import Row

__all__ = ["Contraction", "OneValue", "Vertices"]


@dataclass(frozen=True)
class OneValue:
    """The groups of one value: their rows, base, L and log t, in balls."""

    rows: Sequence[Row]
    base: Sequence[arb]
    scale: arb
    log_t: Sequence[arb]


@dataclass(frozen=True, eq=False, kw_only=True)
class Vertices(Rule, rule="vertices", gives="V"):
    """D(vR || t) <= sum_g v_g D(R_g || t), because D is convex; then CHAIN."""

    def evaluate(self, subject: OneValue, leaf: Leaf) -> arb:
        """Return L log sum_g exp((base_g + D(R_g || t)) / L)."""
        own = zip(subject.rows, subject.base, strict=True)
        return soft([row.divergence(subject.log_t) + b for row, b in own], subject.scale)


@dataclass(frozen=True, eq=False, kw_only=True)
class Contraction(Rule, rule="contraction", gives="V", when=["exact rows"]):
    """D(vR || t) <= <v, R log(wR / t)> + eta D(v || w), by CONTRACT.

    D(vR || t) = D(vR || wR) + <v, R log(wR / t)>. Then CHAIN, where what is left of H(v) has the
    scale max(L - eta, 0), because an entropy is >= 0.
    """

    w: Law = law_of("N_a")

    def check(self, shape: Shape) -> None:
        """Need a tangent at a distribution that is positive."""
        need(all(x > 0 for x in self.w.written), "contraction: a group without weight")

    def evaluate(self, subject: OneValue, leaf: Leaf) -> arb:
        """Return soft(R log(wR / t) + base - eta log w)."""
        w, rows = self.w.at(leaf), [row.lo for row in subject.rows]
        means, eta = [dot(w, column) for column in zip(*rows, strict=True)], contraction(rows)
        slopes = list(map(_slope, means, subject.log_t))
        lines = []
        for row, base, x in zip(rows, subject.base, w, strict=True):
            spread = total(p * s for p, s in zip(row, slopes, strict=True) if not p.is_zero())
            lines.append(spread + base - eta * x.log())
        return soft(lines, (subject.scale - eta).max(arb(0)))


def _slope(mean: arb, log_t: arb) -> arb:
    """Return what is not below log((wR)_y / t_y); anything for an output that no group has."""
    if mean.is_zero():
        return arb(0)
    return (mean if mean > 0 else arb(mean.upper())).log() - log_t
