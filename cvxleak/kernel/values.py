r"""Judgement V: what D(vR || t) + <v, base> + L H(v) is at most, for distributions v of one value.

`base` is C + L log m, where C and L come from the multipliers of `close`. Where a rule speaks of
ranges, they are those of the cover's leaf: of columns of R ("outputs"), of v itself ("shares"), of
the masses of blocks ("masses"), or of one functional ("slab").
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cvxleak.kernel.lemmas import (
    certainly,
    chords,
    contraction,
    contracts,
    divergence,
    relative,
    support,
)
from cvxleak.kernel.many import stacked, unstacked
from cvxleak.kernel.numbers import is_zero, largest, log, soft, total, xlogx
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
            self.known,
        )

    def contraction(self, block: Sequence[int]) -> Any:
        """Return eta of CONTRACT (a) for some of the groups, computed once."""
        key, exact = tuple(block), self.exact or self.rows
        if key not in self.known:
            self.known[key] = contraction([exact[g] for g in block])
        return self.known[key]

    @cached_property
    def arrays(self) -> tuple[Any, Any, Any]:
        """Rows, base and log t as arrays, without the outputs that no group has.

        These add 0 to D(vR || t).
        """
        columns = zip(*self.rows, self.log_t, strict=True)
        kept = [(*own, g) for *own, g in columns if not all(map(is_zero, own))]
        *rows, log_t = map(stacked, zip(*kept, strict=True))
        return stacked(rows), stacked(self.base), log_t


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
    floats, so that each comparison is decided.
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
    one: OneValue, x: Sequence[Any], lo: Any, hi: Any
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
        w, scale = self.w.array(leaf), subject.scale
        lo, hi, blocks = leaf.places or (None, None, [range(len(subject.rows))])
        lines, tops = _tangent_lines(subject, w), []
        for block in map(list, blocks):
            eta, omega = leaf.lift(subject.contraction(block)), w[block].inner(1.0, 0)
            rest = lines[block] - (w[block] / omega).log() * eta
            tops.append(soft(unstacked(rest), (scale - eta).max(leaf.lift(0))) - log(omega))
        if lo is None:
            return tops[0]
        left = 1 - scale
        slopes, rest = chords(xlogx, lo, hi)
        return support(lo, hi, stacked(tops) + left * slopes) + left * rest + certainly(left)


def _tangent_lines(one: OneValue, w: Any) -> Any:
    """Return what is not below (R log(wR / t))_g + base_g, which increases with wR."""
    rows, base, log_t = one.arrays
    return rows.inner(w[:, None].inner(rows, 0).raised().log() - log_t, 1) + base


@dataclass(frozen=True, eq=False, kw_only=True)
class BoxContraction(Rule, rule="box", gives="V", when=["ranges of shares"]):
    """D(vR || t) <= <v, R log(wR / t)> + eta D(v || w) for v in a box, by CONTRACT (b).

    eta is raised to L. Then (eta - L) sum v log v is convex, by CHORD on the ranges; then DUAL.
    """

    w: Law = law_of("N_a")
    eta: Numbers = number(least=0)

    def evaluate(self, subject: OneValue, leaf: Leaf) -> Any:
        """Return the bound on the box."""
        w, (eta,), (lo, hi) = self.w.array(leaf), self.eta.at(leaf), leaf.places
        eta = eta.max(subject.scale)
        left = eta - subject.scale
        slopes, rest = chords(xlogx, lo, hi)
        tops = _tangent_lines(subject, w) - w.log() * eta + left * slopes
        rows, *_ = subject.arrays
        return support(lo, hi, tops) + left * rest + contracts(rows, lo, hi, w, eta)


@dataclass(frozen=True, eq=False, kw_only=True)
class OutputChords(Rule, rule="output-chords", gives="V", when=["ranges of outputs"]):
    """r_y log(r_y / t_y) by CHORD on the range of r_y = (vR)_y, with stored slopes; then CHAIN."""

    slopes: Numbers = numbers("n")

    def evaluate(self, subject: OneValue, leaf: Leaf) -> Any:
        """Return soft(R slopes + base) and the excess of the chords."""
        slopes, (lo, hi) = self.slopes.array(leaf), leaf.places
        _, rest = chords(relative(stacked(subject.log_t)), lo, hi, slopes)
        rows = stacked(list(map(stacked, subject.rows)))
        return soft(unstacked(rows.inner(slopes, 1) + stacked(subject.base)), subject.scale) + rest


@dataclass(frozen=True, eq=False, kw_only=True)
class LawChords(Rule, rule="law-chords", gives="V", when=["ranges of shares"]):
    """r_y log(r_y / t_y) by CHORD on the range that DUAL gives r_y = (vR)_y for v in a box.

    H(v) <= -<v, log w> by TANGENT; then DUAL.
    """

    w: Law = law_of("N_a")

    def evaluate(self, subject: OneValue, leaf: Leaf) -> Any:
        """Return the bound on the box."""
        w, (lo, hi) = self.w.array(leaf), leaf.places
        rows, base, log_t = subject.arrays
        low, high = (support(lo[:, None], hi[:, None], x) for x in (-rows, rows))
        slopes, rest = chords(relative(log_t), (-low).positive(), high)
        top = rows.inner(slopes, 1) + base - w.log() * subject.scale
        return support(lo, hi, top) + rest
