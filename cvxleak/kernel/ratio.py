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
and xi = (R - 1 rho - X Psi) u. Then z = X a + xi + <rho, u>, and a and xi are the numbers <q, u>
of rows q with sum 0: a box is a range of <q, u> for each of these rows. Let c be its middle, h its
half widths, and for any numbers p_j

    z^c = X c_a + c_xi,  v^c = law(z^c),  k_g = (sum_j |X_gj - p_j| h_j + h_g) / L.

A fixed point in the box has v_g ~ v^c_g e^{x_g} with |x_g| <= k_g for L x = (X - 1 p) (a - c_a) +
xi - c_xi, because z - z^c = L x up to a constant. From this two steps find narrower ranges, in
which all fixed points of the box still are.

WIDE. A fixed point is a multiple of numbers v_g between low_g = v^c_g e^{-k_g} and high_g = v^c_g
e^{k_g}. So r_{y+1} / r_y is at most theta, the largest sum_g v_g R_g,y+1 / sum_g v_g R_gy of such
v. Let the groups be in the order of rho_g = R_g,y+1 / R_gy, and N_j, D_j the two sums where the
first j groups have v_g = low_g, and the others high_g. Then theta <= N_j / D_j for some j. If only
rho_g <= (1 + delta) rho_h for g before h, theta <= (1 + delta) N_j / D_j for some j.

*Proof.* N - theta D <= 0 for all such v, with equality at v_g = high_g where rho_g > theta, and
low_g elsewhere: the v of N_j and D_j, if the groups are in order. If they are not, let rho'_g be
the largest rho_h of h = g and the groups before. It is in order, and at most (1 + delta) rho_g.
With rho'_g R_gy instead of R_g,y+1 theta is no smaller, and all N_j grow by 1 + delta at most.

With R_gy and R_g,y+1 exchanged the same bounds r_y / r_{y+1}. Together this is a range of the
increment of u between one output and the next. For q of sum 0 (Abel), <q, u> = -sum_y (q_1 + .. +
q_y) (u_{y+1} - u_y).

NEAR. Let r^c = v^cR, u^c = log(r^c / t), P_y(g) = v^c_g R_gy / r^c_y. Then u_y = u^c_y + log
E_{P_y} e^x up to a constant (in y), and log E e^x is in [E x, E x + E(e^k - 1 - k)], by Jensen, by
log(1 + s) <= s, and because e^x - 1 - x <= e^k - 1 - k for |x| <= k. So with w_g = sum_y q_y
P_y(g), whose sum is 0, so that <w, L x> = <w, X (a - c_a) + xi - c_xi>,

    <q, u> - <q, u^c> <= (sum_j |(wX)_j| h_j + sum_g |w_g| h_g) / L + <q^+, E(e^k - 1 - k)>,

where q^+ is the positive part; <q, u^c> - <q, u> is at most the same with that of -q.

RESIDUAL. On the box, for every law v0, with B = sum_g v^c_g cosh k_g,

    A(z) - <v0, z> <= A(z^c) - <v0, z^c> + L log B + L sum_g |v^c_g sinh(k_g) / B - k_g v0_g|.

*Proof.* The left side is the same for z and z^c + L x. A(z^c + L x) = A(z^c) + L log sum_g v^c_g
e^{x_g}; e^x <= cosh k + x sinh(k) / k on [-k, k] (CHORD), whose sum B + s is positive, and log(B +
s) <= log B + s / B. What is left is linear in x.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import accumulate
from operator import add
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import NDArray

from cvxleak.kernel.budget import charge
from cvxleak.kernel.covers import largest_bound, replay
from cvxleak.kernel.lemmas import divergence
from cvxleak.kernel.many import Balls, Many
from cvxleak.kernel.numbers import dot, need, total, xlogx
from cvxleak.kernel.terms import Law, Leaf, Rule, Shape, law_of, packed
from cvxleak.kernel.values import OneValue

__all__ = ["Boxes", "Ratio", "Ratios"]

Array = NDArray[np.float64]

GUARD, SLACK = 2.0**-1000, 2.0**-47

AT_ONCE, LARGEST = 1 << 18, 1 << 22
"""About how many entries arrays have for some boxes, and most entries for one."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Ratio(Rule, rule="ratio", gives="V", when=["exact rows", "no cover around"]):
    """D(vR || t) + <v, c> + L H(v) <= the largest bound of a leaf, a box of log(vR / t).

    The root is narrowed by WIDE and then by NEAR; a node cuts a range in two, and both parts are
    narrowed. Every fixed point, and so a v at which f is largest, is in a leaf, and the leaf's
    bound by RATIO and RESIDUAL is a bound of f there. It says nothing of other v in the leaf.

    `order` lists the outputs of this value in the order of WIDE; the others have probability 0.
    `psi` is without its last column, which makes its rows sum to 0; rho = `law` R. The tree is by
    levels: -1 is a leaf, other nodes are the number of a row q that is cut.
    """

    law: Law = law_of("N_a")
    order: Any = packed("i")
    x: Any = packed("f", "0")
    psi: Any = packed("f", "0")
    nodes: Any = packed("i")
    cuts: Any = packed("f")

    def check(self, shape: Shape) -> None:
        """Need arrays that fit one another."""
        groups, outputs, d = shape.length("N_a"), len(self.order), self.x.shape[1]
        need(0 < d < outputs, "ratio: more functionals than there can be, or none")
        need((d + groups) * groups * outputs <= LARGEST, "ratio: too many groups and outputs")
        listed = set(self.order.tolist()) & set(range(shape.view.n))
        need(len(listed) == outputs, "ratio: an output twice, or one that does not exist")
        fits = len(self.x) == groups and self.psi.shape == (d, outputs - 1)
        need(fits, "ratio: coordinates of another value")
        need(bool(((self.nodes >= -1) & (self.nodes < d + groups)).all()), "ratio: no such range")

    @np.errstate(all="ignore")
    def evaluate(self, subject: OneValue, leaf: Leaf) -> arb:
        """Return the largest bound of a leaf."""
        exact = Boxes.of(self, subject)
        floats = exact.lifted(Many.table)
        ends = self.leaves(floats)

        def in_balls(i: int) -> arb:
            charge("ball operations", exact.size)
            return arb(float(exact.bound(ends[i : i + 1]).upper()[0]))

        # A box is empty where a range has its ends in the wrong order.
        chosen = np.flatnonzero(~np.any(ends[:, 0] < -ends[:, 1], 1))
        need(len(chosen), "ratio: no leaf bounds anything")
        worst = largest_bound(chosen, exact.at_once, lambda own: floats.bound(ends[own]), in_balls)
        # The rest is no part of the proof: an error in it would be seen here.
        need(worst >= self._attained(subject, leaf), "ratio: a bound below an attained value")
        return worst

    def leaves(self, boxes: Boxes) -> Array:
        """Return the boxes of leaves."""
        step = boxes.at_once

        def narrowed(ends: Array) -> Array:
            charge("float operations", 8 * len(ends) * (boxes.size + 1000))
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


TABLES = ("rows", "base", "scale", "log_t", "q", "sides", "sums", "gaps")


@dataclass(frozen=True)
class Boxes:
    """The rows q and what else boxes need, in `Many` or in `Balls`.

    A box is a table of floats: what <q, u>, and -<q, u>, are at most for each row q. `sides` has
    the columns q and -q, and `sums` what Abel's sum multiplies the ends of increments with.
    """

    rows: Any
    base: Any
    scale: Any
    log_t: Any
    x: Array
    q: Any
    sides: Any
    sums: Any
    gaps: Any
    increments: Array
    lift: Callable[[Any], Any] = Balls.of

    @classmethod
    def of(cls, term: Ratio, one: OneValue) -> Boxes:
        """Return them in balls; refuse what the lemmas do not hold for."""
        order = term.order.tolist()
        charge("ball operations", len(one.rows) * len(order) * (term.x.shape[1] + 10))
        others = set(range(len(one.log_t))) - set(order)
        for row in one.rows:
            need(all(row.lo[y].is_zero() for y in others), "ratio: an output that is not listed")
            need(all(row.lo[y] > 0 for y in order), "ratio: rows with zeros")
        need(one.scale > 0, "ratio: a multiplier of 0")
        rows: Any = Balls.of([[row.lo[y] for y in order] for row in one.rows])
        log_t: Any = Balls.of([one.log_t[y] for y in order])
        base, x = Balls.of(one.base), term.x.astype(float)
        need(log_t.certain().all() and base.certain().all(), "ratio: t with zeros")
        psi: Any = Balls.of(term.psi.astype(float))
        psi = np.concatenate([psi, -psi.sum(1, keepdims=True)], 1)
        rho = rows.inner(Balls.of(term.law.at(Leaf()))[:, None], 0)
        q: Any = np.concatenate([psi, rows - rho - (psi * x[:, :, None]).sum(1)]).view(Balls)
        gaps: Any = log_t[1:] - log_t[:-1]
        logs = (rows[:, 1:] / rows[:, :-1]).log() - gaps
        increments = np.stack([logs.upper().max(0), (-logs).upper().max(0)])
        sides: Any = np.concatenate([q, -q]).T.view(Balls)
        slopes: Any = np.cumsum(sides, 0)[:-1]
        sums = np.concatenate([(-slopes).max(0.0), slopes.max(0.0)]).view(Balls)
        scale = Balls.of([one.scale])
        return cls(rows, base, scale, log_t, x, q, sides, sums, gaps, increments)

    def lifted(self, lift: Callable[[Any], Any]) -> Boxes:
        """Return them in float balls."""
        made: dict[str, Any] = {name: lift(getattr(self, name)) for name in TABLES}
        return replace(self, **made, lift=Many.of)

    @property
    def size(self) -> int:
        """How many products a step takes."""
        return self.rows.m.size * len(self.q.m)

    @property
    def at_once(self) -> int:
        """How many boxes fit into memory together."""
        groups, outputs = self.rows.shape
        return max(1, AT_ONCE // (groups * (len(self.q.m) + outputs)))

    @property
    def root(self) -> Array:
        """The ranges of all laws."""
        return self._abel(self.increments[None])[0]

    def narrowed(self, ends: Array) -> Array:
        """Return boxes without what no fixed point is in."""
        _, v, _, k, _ = self._middle(ends)
        ends = np.fmin(ends, self._wide(v, k))
        _, v, _, k, h = self._middle(ends)
        return np.fmin(ends, self._near(v, k, h))

    def _middle(self, ends: Array) -> tuple[Any, Any, Any, Any, Array]:
        """Return z^c, v^c, A(z^c), k and h."""
        d, c = self.x.shape[1], (ends[:, 0] - ends[:, 1]) / 2
        h = np.nextafter(np.maximum(ends[:, 0] - c, ends[:, 1] + c).clip(0), np.inf)
        z = self.lift(c[:, None, :d]).inner(self.x) + c[:, d:]
        y = (z + self.base) / self.scale
        top = y.m.max(1)[:, None]
        v = (y - top).exp()
        mass = v.inner(1.0)[:, None]
        v = v / mass
        # Any numbers p do.
        apart = self.lift(self.x) - (v.m @ self.x)[:, None]
        k = (abs(apart).inner(h[:, None, :d]) + h[:, d:]) / self.scale
        return z, v, (self.scale * (mass.log() + top))[:, 0], k, h

    def _wide(self, v: Any, k: Any) -> Array:
        """Return boxes by WIDE."""
        top = k.m.max(1)[:, None]
        high, low = (v * (k - top).exp()).upper(), -(-(v * (-k - top).exp())).upper()
        most, least = (self.lift(ratios.largest(high, low)).log() for ratios in self._ratios)
        ends = np.stack([(most - self.gaps).upper(), (least + self.gaps).upper()], 1)
        return self._abel(np.fmin(ends, self.increments))

    @cached_property
    def _ratios(self) -> tuple[Ratios, Ratios]:
        """What bounds r_{y+1} / r_y, and r_y / r_{y+1}."""
        most, least = self.rows.upper(), np.maximum(-(-self.rows).upper(), 0.0)
        return Ratios(most[:, 1:], least[:, :-1]), Ratios(most[:, :-1], least[:, 1:])

    def _abel(self, increments: Array) -> Array:
        """Return boxes from what the increments of u, and their negatives, are at most."""
        flat = self.lift(increments.reshape(len(increments), -1))
        return flat.matmul(self.sums).upper().reshape(len(increments), 2, -1)

    @cached_property
    def _products(self) -> Any:
        """R_gy q_y, for all q and g."""
        made = self.rows.swapaxes(0, 1)[:, :, None] * self.q.swapaxes(0, 1)[:, None]
        return made.reshape(made.shape[0], -1)

    def _near(self, v: Any, k: Any, h: Array) -> Array:
        """Return boxes by NEAR."""
        d = self.x.shape[1]
        r = v.matmul(self.rows)
        excess = (v * (k.exp() - 1.0 - k)).matmul(self.rows) / r
        w = (1.0 / r).matmul(self._products).reshape(*v.shape, -1) * v[:, :, None]
        w = w.swapaxes(1, 2)
        along = w.matmul(self.lift(self.x))
        rest = (abs(along).inner(h[:, None, :d]) + abs(w).inner(h[:, None, d:])) / self.scale
        found = (r.log() - self.log_t).matmul(self.sides) + excess.matmul(self.sides.max(0.0))
        return (found.reshape(len(h), 2, -1) + rest[:, None]).upper()

    def bound(self, ends: Array) -> Any:
        """Return what f is at most at a fixed point in a box, by RATIO and RESIDUAL."""
        z, v, a, k, _ = self._middle(ends)
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


class Ratios:
    """The largest ratio of sums of two tables with the same weights (WIDE), in floats.

    The tables are what the R_g,y+1 are at most, and the R_gy at least, which may be 0. A factor
    that all weights have makes no difference.
    """

    def __init__(self, upper: Array, lower: Array) -> None:
        self._order = np.argsort(upper / lower, 0)
        self._tables = [np.take_along_axis(x, self._order, 0)[..., None] for x in (upper, lower)]

    def largest(self, high: Array, low: Array) -> Array:
        """Return what the ratio is at most for each row of weights, and each y.

        A sum of G products that are not negative is off by a relative (G + 1) u, and the order of
        rho by delta = 4 u, but for underflows (of a quotient, too), which GUARD exceeds as D_0 is
        not large; and quotients that overflow are in any order, after theta <= N_0 / D_G. So what
        N_j / D_j is as computed is below theta by a relative (2 G + 12) u at most, to first order;
        SLACK G is 64 G u.
        """
        high, low = high.T[self._order], np.maximum(low.T, 0.0)[self._order]
        sums = []
        for table in self._tables:
            below = list(accumulate(low * table))
            above = list(accumulate((high * table)[::-1]))[::-1]
            sums.append([above[0], *map(add, below[:-1], above[1:]), below[-1]])
        ratios = ((n + GUARD) / (d - GUARD) for n, d in zip(*sums, strict=True))
        sound = (sums[1][-1] > 2 * GUARD) & (sums[0][0] + sums[1][0] < 2.0**20)
        found = reduce(np.maximum, ratios) * (1 + SLACK * len(self._order))
        return np.where(sound, found, np.inf).T


def _tilted(v: Array, slopes: Array, k: Array) -> Array:
    """Return about v^c sinh(k) / k, which is a good v0 once it is normalized (untrusted)."""
    found = np.where(k > 1e-9, slopes / k, v)
    return np.where(np.isfinite(found) & (found > 1e-300), found, 1e-300)
