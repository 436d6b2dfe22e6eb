r"""Judgement V: what D(vR || t) + <v, base> + L H(v) is at most, for distributions v of one value.

`base` is C + L log m, where C and L come from the multipliers of `close`. Where a rule speaks of
ranges, they are those of the cover's leaf: of columns of R ("outputs"), of v itself ("shares"), of
the masses of blocks ("masses"), or of one functional ("slab").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from flint import fmpq

from cvxleak.kernel.lemmas import (
    above_chord,
    certainly,
    chords,
    contraction,
    contracts,
    divergence,
    relative,
    support,
)
from cvxleak.kernel.numbers import dot, is_zero, largest, log, soft, total, xlogx
from cvxleak.kernel.terms import Law, Leaf, Numbers, Rule, law_of, number, numbers

__all__ = [
    "BlockContraction",
    "BoxContraction",
    "LawChords",
    "OneValue",
    "OutputChords",
    "Slab",
    "Vertices",
]


@dataclass(frozen=True)
class OneValue:
    """The groups of one value: their rows, base, L and log t."""

    rows: Sequence[Sequence[Any]]
    base: Sequence[Any]
    scale: Any
    log_t: Sequence[Any]
    exact: Sequence[Sequence[Any]] | None = None
    """The rows in balls, if these are in another type of numbers."""
    known: dict[Any, Any] = field(default_factory=dict)

    def lifted(self, lift: Callable[[Any], Any]) -> OneValue:
        """Return it in another type of numbers."""
        return OneValue(
            [[lift(x) for x in row] for row in self.rows],
            [lift(x) for x in self.base],
            lift(self.scale),
            [lift(x) for x in self.log_t],
            self.exact or self.rows,
            {},
        )

    def keep(self, key: Any, make: Callable[[], Any]) -> Any:
        """Return what `make` returns, made once."""
        if key not in self.known:
            self.known[key] = make()
        return self.known[key]

    def reached(self) -> tuple[list[list[Any]], list[Any]]:
        """Return rows and log t of outputs that some group has; others add 0 to D(vR || t)."""
        columns = zip(*self.rows, self.log_t, strict=True)
        kept = [(*own, g) for *own, g in columns if not all(map(is_zero, own))]
        *rows, log_t = map(list, zip(*kept, strict=True))
        return rows, log_t


@dataclass(frozen=True, eq=False, kw_only=True)
class Vertices(Rule, rule="vertices", gives="V", when=["no cells or ranges"]):
    """D(vR || t) <= sum_g v_g D(R_g || t), because D is convex; then CHAIN."""

    def evaluate(self, subject: OneValue, leaf: Leaf) -> Any:
        """Return L log sum_g exp((base_g + D(R_g || t)) / L)."""
        own = zip(subject.rows, subject.base, strict=True)
        return soft([divergence(row, subject.log_t) + b for row, b in own], subject.scale)


@dataclass(frozen=True, eq=False, kw_only=True)
class Slab(Rule, rule="slab", gives="V", when=["a slab"]):
    """D(vR || t) <= <v, nu> + max over the vertices P of the slab of D(PR || t) - <P, nu> (CHORD).

    An extreme point of {v in the simplex: lo <= <v, x> <= hi} has at most one constraint active
    besides v >= 0 and sum v = 1. So it is a unit vector, or a mixture of two at an end. Places are
    fractions, so that each comparison is decided.
    """

    nu: Numbers = numbers("N_a")

    def evaluate(self, subject: OneValue, leaf: Leaf) -> Any:
        """Return soft(base + nu) and the largest excess."""
        nu = self.nu.at(leaf)
        excess = largest(
            divergence(row, subject.log_t) - total(nu[g] * m for g, m in mix)
            for mix, row in _slab_vertices(subject, *leaf.places)
        )
        return soft([x + b for x, b in zip(nu, subject.base, strict=True)], subject.scale) + excess


def _slab_vertices(
    one: OneValue, x: Sequence[fmpq], lo: fmpq, hi: fmpq
) -> Iterator[tuple[list[tuple[int, Any]], Sequence[Any]]]:
    size = range(len(x))
    for g in size:
        if lo <= x[g] and x[g] <= hi:
            yield [(g, 1)], one.rows[g]
    for end in (lo, hi):
        for i in size:
            for j in size:
                if x[i] < end and end < x[j]:
                    s = (x[j] - end) / (x[j] - x[i])
                    mixed = zip(one.rows[i], one.rows[j], strict=True)
                    yield [(i, s), (j, 1 - s)], [p * s + r * (1 - s) for p, r in mixed]


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockContraction(Rule, rule="blocks", gives="V", when=["ranges of masses, or none"]):
    r"""D(vR||t) <= <v, R log(wR/t)> + sum_B beta_B (log(beta_B/omega_B) + eta_B D(v_B||w_B)).

    beta_B = v(B) and omega_B = w(B) are masses of blocks of groups, v_B and w_B what is given B.
    D(vR || t) = D(vR || wR) + <v, R log(wR / t)>. D(vR || wR) is at most the divergence of the
    joint laws of (block, output), whose chain rule is the rest before CONTRACT (a) is applied in
    each block. Within the blocks CHAIN with the scale max(L - eta_B, 0) (an entropy is >= 0);
    (1 - L) sum beta log beta, convex because L <= 1, by CHORD on the masses' ranges; then DUAL.
    Without a cover there is one block, all groups, with mass 1.
    """

    w: Law = law_of("N_a")

    def evaluate(self, subject: OneValue, leaf: Leaf) -> Any:
        """Return the bound on the masses' ranges."""
        w, scale = self.w.at(leaf), subject.scale
        blocks = [range(len(w))] if leaf.places is None else leaf.places.meaning
        exact = subject.exact or subject.rows
        etas = subject.keep(
            (self, "etas"), lambda: [leaf.lift(contraction([exact[g] for g in B])) for B in blocks]
        )
        lines = _tangent_lines(subject, w)
        tops = []
        for block, eta in zip(blocks, etas, strict=True):
            omega = total(w[g] for g in block)
            rest = [lines[g] - eta * log(w[g] / omega) for g in block]
            tops.append(soft(rest, (scale - eta).max(leaf.lift(0))) - log(omega))
        if leaf.places is None:
            return tops[0]
        lo, hi = leaf.places.ranges
        left = 1 - scale
        slopes, rest = chords([xlogx] * len(lo), lo, hi)
        tops = [top + left * slope for top, slope in zip(tops, slopes, strict=True)]
        return support(lo, hi, tops) + left * rest + certainly(left)


def _tangent_lines(one: OneValue, w: Sequence[Any]) -> list[Any]:
    """Return (R log(wR / t))_g + base_g."""
    rows, log_t = one.reached()
    columns = zip(*rows, strict=True)
    logs = [log(dot(w, c)) - g for c, g in zip(columns, log_t, strict=True)]
    return [dot(row, logs) + b for row, b in zip(rows, one.base, strict=True)]


@dataclass(frozen=True, eq=False, kw_only=True)
class BoxContraction(Rule, rule="box", gives="V", when=["ranges of shares"]):
    """D(vR || t) <= <v, R log(wR / t)> + eta D(v || w) for v in a box, by CONTRACT (b).

    eta is raised to L. Then (eta - L) sum v log v is convex, by CHORD on the ranges; then DUAL.
    """

    w: Law = law_of("N_a")
    eta: Numbers = number(least=0)

    def evaluate(self, subject: OneValue, leaf: Leaf) -> Any:
        """Return the bound on the box."""
        w, (eta,) = self.w.at(leaf), self.eta.at(leaf)
        lo, hi = leaf.places.ranges
        eta = eta.max(subject.scale)
        left = eta - subject.scale
        doubt = contracts(subject.reached()[0], lo, hi, w, eta)
        slopes, rest = chords([xlogx] * len(lo), lo, hi)
        lines = zip(_tangent_lines(subject, w), w, slopes, strict=True)
        top = support(lo, hi, [x - eta * log(p) + left * slope for x, p, slope in lines])
        return top + left * rest + doubt


@dataclass(frozen=True, eq=False, kw_only=True)
class OutputChords(Rule, rule="output-chords", gives="V", when=["ranges of outputs"]):
    """r_y log(r_y / t_y) by CHORD on the range of r_y = (vR)_y, with stored slopes; then CHAIN."""

    slopes: Numbers = numbers("n")

    def evaluate(self, subject: OneValue, leaf: Leaf) -> Any:
        """Return soft(R slopes + base) and the excess of the chords."""
        slopes, (lo, hi) = self.slopes.at(leaf), leaf.places.ranges
        ends = zip(subject.log_t, lo, hi, slopes, strict=True)
        rest = total(above_chord(relative(g), a, b, slope) for g, a, b, slope in ends)
        own = zip(subject.rows, subject.base, strict=True)
        return soft([dot(row, slopes) + b for row, b in own], subject.scale) + rest


@dataclass(frozen=True, eq=False, kw_only=True)
class LawChords(Rule, rule="law-chords", gives="V", when=["ranges of shares"]):
    """r_y log(r_y / t_y) by CHORD on the range that DUAL gives r_y = (vR)_y for v in a box.

    H(v) <= -<v, log w> by TANGENT; then DUAL.
    """

    w: Law = law_of("N_a")

    def evaluate(self, subject: OneValue, leaf: Leaf) -> Any:
        """Return the bound on the box."""
        w, (lo, hi) = self.w.at(leaf), leaf.places.ranges
        columns = list(zip(*subject.rows, strict=True))
        lows = [(-support(lo, hi, [-x for x in c])).max(leaf.lift(0)) for c in columns]
        highs = [support(lo, hi, c) for c in columns]
        slopes, rest = chords([relative(g) for g in subject.log_t], lows, highs)
        lines = zip(subject.rows, subject.base, w, strict=True)
        top = [dot(row, slopes) + b - subject.scale * log(p) for row, b, p in lines]
        return support(lo, hi, top) + rest
