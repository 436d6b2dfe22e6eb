r"""Ranges of log(vR / t), the logarithm of the output's law, instead of ranges of v.

f(v) = D(vR || t) + <v, base> + L H(v), with L > 0, t > 0 and base = C + L log m, is to be bounded
on the simplex of the groups of one value. Write r = vR, u_y = log(r_y / t_y), and for numbers z_g

    A(z) = L log sum_g exp((z_g + base_g) / L),    law(z)_g ~ exp((z_g + base_g) / L).

FIXED. If all R_gy > 0, f is largest at a v with v = law(Ru). *Proof.* f is continuous on a compact
set, so it is largest somewhere. Where v_g = 0, moving mass to g changes L H(v) with slope
infinity, and the rest with a finite one, because all r_y > 0. So v > 0 there, and f is stationary
on sum v = 1: (Ru)_g + base_g - L log v_g is the same for all g. (With zeros in R this is false:
the slope of D is infinite, too.)

RATIO. If v = law(Ru) for u = log(vR / t), then for z = Ru and every law v0

    f(v) <= A(z) - <v0, z> + D(v0R || t).

*Proof.* D(vR || t) = <vR, u> = <v, z>, so f(v) = <v, z + base> + L H(v) <= A(z) (Gibbs). And <v0,
z> = <v0R, u> = D(v0R || t) - D(v0R || vR) <= D(v0R || t). A constant added to z changes nothing.

So a box of z that every fixed point v = law(Ru) is in, and the largest right side on it, bound f.

COORDINATES. For any X (groups by d), Psi (d rows of sum 0) and law of outputs rho, let a = Psi u
and xi = (R - 1 rho - X Psi) u. Then z = X a + xi + <rho, u>. For q of sum 0 (Abel), <q, u> = -sum_y
(q_1 + .. + q_y) (u_{y+1} - u_y), so a and xi are linear in the increments of u, and z is in a and
the increments, up to a constant. A box is a range of each a_j, and of each increment. Let c be its
middle, h its half widths, S the matrix with xi = S (u_{y+1} - u_y)_y, and for any numbers p_j

    z^c = X c_a + S c,  v^c = law(z^c),  k_g = (sum_j |X_gj - p_j| h_j + sum_y |S_gy| h_y) / L.

A fixed point in the box has v_g ~ v^c_g e^{x_g} with |x_g| <= k_g for L x = (X - 1 p) (a - c_a) +
S (increments - c), because z - z^c = L x up to a constant. ORDER and WIDE find ranges of increments
in which all fixed points of the box still are; from these follow ranges of a.

ORDER. Put the groups in any order, and let log v_{g+1} - log v_g <= s_g for all fixed points of the
box: s_g is what z_{g+1} - z_g + base_{g+1} - base_g, divided by L, is at most. Let v^+ have log
v^+_{g+1} - log v^+_g >= s_g, and rho_g be the largest R_h,y+1 / R_hy of h = g and the groups
before. Then r_{y+1} / r_y <= sum_g v^+_g rho_g R_gy / sum_g v^+_g R_gy. *Proof.* r_{y+1} <= sum_g
v_g rho_g R_gy. Divided by r_y this is the mean of rho, which grows with g, for the weights v_g R_gy
= (v_g / v^+_g) v^+_g R_gy; and v_g / v^+_g falls with g, so that the mean is at most that for the
weights v^+_g R_gy (Chebyshev).

The same with the groups in the reverse order, and R_gy and R_g,y+1 exchanged, bounds r_y / r_{y+1}.
Together this is a range of log(r_{y+1} / r_y), and of the increment of u. Where the likelihood
ratios R_g,y+1 / R_gy grow with g, as those of a count with log-concave noise do, nothing is lost:
v^+ is what v is at most in the order of likelihood ratios, which R preserves.

WIDE. A fixed point is a multiple of numbers v_g between low_g = v^c_g e^{-k_g} and high_g = v^c_g
e^{k_g}. So r_{y+1} / r_y <= theta, if sum_g high_g (R_g,y+1 - theta R_gy)^+ - low_g (R_g,y+1 -
theta R_gy)^- <= 0, because that is at least r_{y+1} - theta r_y for the numbers v_g. Likewise for
r_y / r_{y+1}.

RESIDUAL. On the box, for every law v0, with B = sum_g v^c_g cosh k_g,

    A(z) - <v0, z> <= A(z^c) - <v0, z^c> + L log B + L sum_g |v^c_g sinh(k_g) / B - k_g v0_g|.

*Proof.* The left side is the same for z and z^c + L x. A(z^c + L x) = A(z^c) + L log sum_g v^c_g
e^{x_g}; e^x <= cosh k + x sinh(k) / k on [-k, k] (CHORD), whose sum B + s is positive, and log(B +
s) <= log B + s / B. What is left is linear in x.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from cvxleak.kernel.budget import charge
from cvxleak.kernel.covers import largest_bound, replay
from cvxleak.kernel.lemmas import divergence
from cvxleak.kernel.many import Balls, Many, joined
from cvxleak.kernel.numbers import dot, need, total, xlogx
from cvxleak.kernel.terms import Law, Leaf, Rule, Shape, law_of, packed
from cvxleak.kernel.values import OneValue

__all__ = ["Boxes", "Ratio"]

Array = NDArray[np.float64]
Lift = Callable[[Any], Any]

ORDERED, UNORDERED, STEPS = 8, 2, 3
"""How often a box is narrowed after its cut, by ORDER and by WIDE; and steps towards theta."""

SLACK, MARGIN = 2.0**-47, 2.0**-30

SIDES = np.array([[[1.0]], [[-1.0]]])

AT_ONCE, LARGEST = 1 << 18, 1 << 22
"""About how many entries arrays have for some boxes, and most entries for one."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Ratio(Rule, rule="ratio", gives="V", when=["exact rows", "no cover around"]):
    """D(vR || t) + <v, c> + L H(v) <= the largest bound of a leaf, a box of log(vR / t).

    The root is narrowed; a node cuts a range in two, and both parts are narrowed. Every fixed
    point, and so a v at which f is largest, is in a leaf, and the leaf's bound by RATIO and
    RESIDUAL is a bound of f there. It says nothing of other v in the leaf.

    `order` lists the outputs of this value, whose increments boxes are about; the others have
    probability 0. `groups` is the order of the groups for ORDER; without one boxes are narrowed by
    WIDE. `psi` is without its last column, which makes its rows sum to 0; rho =
    `law` R. The tree is by levels: -1 is a leaf, other nodes are the number of a range that is cut.
    """

    law: Law = law_of("N_a")
    order: Any = packed("i")
    groups: Any = packed("i")
    x: Any = packed("f", "0")
    psi: Any = packed("f", "0")
    nodes: Any = packed("i")
    cuts: Any = packed("f")

    def check(self, shape: Shape) -> None:
        """Need arrays that fit one another."""
        groups, outputs, d = shape.length("N_a"), len(self.order), self.x.shape[1]
        need(0 < d < outputs, "ratio: more functionals than there can be, or none")
        need(max(groups, d) * outputs <= LARGEST, "ratio: too many groups and outputs")
        listed = set(self.order.tolist()) & set(range(shape.view.n))
        need(len(listed) == outputs, "ratio: an output twice, or one that does not exist")
        ranks = self.groups.tolist()
        need(not ranks or sorted(ranks) == list(range(groups)), "ratio: no order of the groups")
        fits = len(self.x) == groups and self.psi.shape == (d, outputs - 1)
        need(fits, "ratio: coordinates of another value")
        fits = bool(((self.nodes >= -1) & (self.nodes < d + outputs - 1)).all())
        need(fits, "ratio: no such range")

    @np.errstate(all="ignore")
    def evaluate(self, subject: OneValue, leaf: Leaf) -> arb:
        """Return the largest bound of a leaf."""
        exact = Boxes.of(self, subject)
        floats, step, size = exact.lifted(Many.table), exact.at_once, exact.size
        ends = self.leaves(floats)

        def in_balls(i: int) -> arb:
            return arb(float(exact.bound(ends[i : i + 1]).upper()[0]))

        # A box is empty where a range has its ends in the wrong order.
        chosen = np.flatnonzero(~np.any(ends[:, 0] < -ends[:, 1], 1))
        need(len(chosen), "ratio: no leaf bounds anything")
        worst = largest_bound(chosen, step, size, lambda own: floats.bound(ends[own]), in_balls)
        # The rest is no part of the proof: an error in it would be seen here.
        need(worst >= self._attained(subject, leaf), "ratio: a bound below an attained value")
        return worst

    def leaves(self, boxes: Boxes) -> Array:
        """Return the boxes of leaves."""
        step = boxes.at_once

        def narrowed(ends: Array) -> Array:
            charge("float operations", 8 * ORDERED * len(ends) * (boxes.size + 1000))
            for i in range(0, len(ends), step):
                ends[i : i + step] = boxes.narrowed(ends[i : i + step])
            return ends

        def split(parts: Array, nodes: Any, cuts: Array) -> Array:
            both, each = np.stack([parts, parts], 1), np.arange(len(parts))
            for side, cut in ((0, cuts), (1, -cuts)):
                old = both[each, side, side, nodes[:, 0]]
                both[each, side, side, nodes[:, 0]] = np.minimum(old, cut)
            return narrowed(both.reshape(-1, *parts.shape[1:]))

        root = narrowed(boxes.root[None])[0]
        return replay(root, self.nodes[:, None], self.cuts, split)

    def _attained(self, one: OneValue, leaf: Leaf) -> arb:
        """Return f at the stored law."""
        v, order = self.law.at(leaf), self.order.tolist()
        r = [dot(v, [row.lo[y] for row in one.rows]) for y in order]
        spread = divergence(r, [one.log_t[y] for y in order])
        return spread + dot(v, one.base) - one.scale * total(map(xlogx, v))


TABLES = ("rows", "base", "scale", "log_t", "own", "z", "whole")


@dataclass(frozen=True)
class Boxes:
    """What boxes need, in `Many` or in `Balls`, with the groups and outputs in their order.

    A box is a table of floats: what a and the increments of u, and their negatives, are at most.

    `own` makes a of increments, `z` makes z of a box, and `whole` of increments alone; `most` are
    the rho_g of ORDER for r_{y+1} / r_y, and for the reverse.
    """

    rows: Any
    base: Any
    scale: Any
    log_t: Any
    own: Any
    z: Any
    whole: Any
    most: Array
    x: Array
    ordered: bool
    lift: Lift = Balls.of

    @classmethod
    def of(cls, term: Ratio, one: OneValue) -> Boxes:
        """Return them in balls; refuse what the lemmas do not hold for."""
        order, d = term.order.tolist(), term.x.shape[1]
        charge("ball operations", len(one.rows) * len(order) * (d + 20))
        others = set(range(len(one.log_t))) - set(order)
        for row in one.rows:
            need(all(row.lo[y].is_zero() for y in others), "ratio: an output that is not listed")
            need(all(row.lo[y] > 0 for y in order), "ratio: rows with zeros")
        need(one.scale > 0, "ratio: a multiplier of 0")
        groups = term.groups.tolist() or range(len(one.rows))
        rows: Any = Balls.of([[one.rows[g].lo[y] for y in order] for g in groups])
        base: Any = Balls.of([one.base[g] for g in groups])
        log_t: Any = Balls.of([one.log_t[y] for y in order])
        need(log_t.certain().all() and base.certain().all(), "ratio: t with zeros")
        law = term.law.at(Leaf())
        given = rows, base, Balls.of([one.scale]), log_t, Balls.of([law[g] for g in groups])
        return cls.made(given, term.x.astype(float)[groups], term.psi, len(term.groups) > 1)

    @classmethod
    def made(cls, given: Any, x: Array, psi: Array, ordered: bool, lift: Lift = Balls.of) -> Boxes:
        """Return them from rows, base, L, log t and the law, in the numbers of `lift`."""
        rows, base, scale, log_t, law = given
        own = _slopes(lift(psi))
        whole = _slopes((rows - rows.inner(law[:, None], 0))[:, :-1])
        z = joined([lift(x.T), whole - own.matmul(lift(x.T))])
        up, down = ((p / q).upper() for p, q in permutations([rows[:, 1:], rows[:, :-1]]))
        most = np.stack([np.maximum.accumulate(up), np.maximum.accumulate(down[::-1])[::-1]])
        return cls(rows, base, scale, log_t, own, z, whole, most, x, ordered, lift)

    def lifted(self, lift: Lift) -> Boxes:
        """Return them in float balls."""
        made: dict[str, Any] = {name: lift(getattr(self, name)) for name in TABLES}
        return replace(self, **made, lift=Many.of)

    @cached_property
    def below(self) -> Any:
        """R_gy, and R_g,y+1."""
        return joined([self.rows[None, :, :-1], self.rows[None, :, 1:]])

    @cached_property
    def weights(self) -> Any:
        """The rho_g R_gy of ORDER, and the rho_g R_g,y+1."""
        return self.lift(self.most) * self.below

    @cached_property
    def apart(self) -> Any:
        """What makes z_{g+1} - z_g of a box, and of increments alone."""
        whole = joined([0.0 * self.z[: self.x.shape[1]], self.whole])
        return joined([x[:, 1:] - x[:, :-1] for x in (self.z, whole)], 1)

    @property
    def size(self) -> int:
        """How many products a step takes, about."""
        return self.z.m.size + self.rows.m.size

    @property
    def at_once(self) -> int:
        """How many boxes fit into memory together."""
        return max(1, AT_ONCE // self.size)

    @property
    def root(self) -> Array:
        """The ranges of all laws."""
        return self._joined(self._increments(self.below[::-1] / self.below).max(0)[None])[0]

    def narrowed(self, ends: Array) -> Array:
        """Return boxes without what no fixed point is in."""
        d = self.x.shape[1]
        narrow, steps = (self._order, ORDERED) if self.ordered else (self._wide, UNORDERED)
        for _ in range(steps):
            ends = np.fmin(ends, self._joined(np.fmin(ends[:, :, d:], narrow(ends))))
        return ends

    def _joined(self, increments: Array) -> Array:
        """Return boxes from ranges of the increments."""
        own = [side.upper() for side in self._images(increments, self.own)]
        return np.concatenate([np.stack(own, 1), increments], 2)

    def _increments(self, ratios: Any) -> Array:
        """Return ranges of increments from what r_{y+1} / r_y, and r_y / r_{y+1}, are at most."""
        gaps = (self.log_t[1:] - self.log_t[:-1]) * -SIDES
        return (ratios.log() + gaps).upper().swapaxes(0, 1)

    def _halves(self, ends: Array) -> tuple[Any, Any]:
        """Return c and h."""
        c = (ends[:, 0] - ends[:, 1]) / 2
        h = np.nextafter(np.maximum(ends[:, 0] - c, ends[:, 1] + c).clip(0), np.inf)
        return self.lift(c), self.lift(h)

    def _images(self, ends: Array, table: Any) -> tuple[Any, Any]:
        """Return what products of a table, and their negatives, are at most on boxes."""
        c, h = self._halves(ends)
        at, rest = c.matmul(table), h.matmul(abs(table))
        return rest + at, rest - at

    def middle(self, ends: Array) -> tuple[Any, Any, Any, Any]:
        """Return z^c, v^c, A(z^c) and k."""
        d, (c, h) = self.x.shape[1], self._halves(ends)
        z, rest = c.matmul(self.z), h[:, d:].matmul(abs(self.z[d:]))
        y = (z + self.base) / self.scale
        top = y.m.max(1)[:, None]
        v = (y - top).exp()
        mass = v.inner(1.0)[:, None]
        v = v / mass
        # Any numbers p do.
        apart = abs(self.lift(self.x) - (v.m @ self.x)[:, None])
        k = (apart.inner(h[:, None, :d]) + rest) / self.scale
        return z, v, (self.scale * (mass.log() + top))[:, 0], k

    def _order(self, ends: Array) -> Array:
        """Return ranges of increments by ORDER."""
        tilt, sides = self.base[1:] - self.base[:-1], self._images(ends, self.apart)
        both = zip((tilt, -tilt), (x.reshape(len(ends), 2, -1) for x in sides), strict=True)
        found = [np.fmin.reduce(((x + t) / self.scale).upper(), axis=1) for t, x in both]
        # Rounding makes what log v grows by smaller by less than 10 u sum |s|.
        s = np.array(found) + SLACK * np.abs(found).sum(2, keepdims=True)
        log_v = SIDES * np.concatenate([0.0 * s[:, :, :1], s], 2).cumsum(2)
        v = self.lift(log_v - log_v.max(2, keepdims=True)).exp()
        return self._increments(v.matmul(self.weights) / v.matmul(self.below))

    def _wide(self, ends: Array) -> Array:
        """Return ranges of increments by WIDE."""
        _, v, _, k = self.middle(ends)
        top = k.m.max(1)[:, None]
        high, low = ((v * (x - top).exp())[:, :, None] for x in (k, -k))
        above, below = self.below[::-1, None], self.below[:, None]
        theta = (v.m @ above.m[:, 0] / (v.m @ below.m[:, 0]))[:, :, None]
        for _ in range(STEPS):
            w = np.where(above.m > theta * below.m, high.m, low.m)
            theta = (w * above.m).sum(2, keepdims=True) / (w * below.m).sum(2, keepdims=True)
        theta = self.lift(theta * (1 + MARGIN))
        spare = above - theta * below
        over = (spare.max(0.0) * high - (-spare).max(0.0) * low).inner(1.0, 2).upper()
        return self._increments(self.lift(np.where(over <= 0, theta.m[:, :, 0], np.inf)))

    def bound(self, ends: Array) -> Any:
        """Return what f is at most at a fixed point in a box, by RATIO and RESIDUAL."""
        z, v, a, k = self.middle(ends)
        top = k.m.max(1)[:, None]
        more, less = (k - top).exp(), (-k - top).exp()
        mean = v.inner(more + less)[:, None] / 2.0
        slopes = v * (more - less) / (mean * 2.0)
        v0 = self.lift(_tilted(v.m, slopes.m, k.m))
        v0 = v0 / v0.inner(1.0)[:, None]
        r = v0.matmul(self.rows)
        spread = r.inner(r.log() - self.log_t)
        off = slopes - k * v0
        rest = ((mean.log() + top)[:, 0] + abs(off).inner(1.0)) * self.scale
        return a - v0.inner(z) + spread + rest


def _slopes(q: Any) -> Any:
    """Return what makes <q, u> of the increments of u, for rows of sum 0 without their last one."""
    return -q.cumsum(1).T


def _tilted(v: Array, slopes: Array, k: Array) -> Array:
    """Return about v^c sinh(k) / k, which is a good v0 once it is normalized (untrusted)."""
    found = np.where(k > 1e-9, slopes / k, v)
    return np.where(np.isfinite(found) & (found > 1e-300), found, 1e-300)
