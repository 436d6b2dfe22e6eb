r"""Claims of differential privacy: the least parameters for which all pairs of rows keep it.

The problem is {"matrix": rows, "pairs": [[u, v], ...]} and the level that the kind needs. P and R
are the two rows of a pair, in either order. All probabilities are exact fractions.

| kind | level | parameter: the largest ... over all pairs | "pair" and |
|---|---|---|---|
| renyi-dp | alpha > 1, or "inf" | D_alpha(P \|\| R) | |
| dp-profile | epsilon >= 0 | sum_y max(P(y) - e^epsilon R(y), 0) | |
| gaussian-dp | | Phi^-1(P(S)) - Phi^-1(R(S)) over sets S of outputs | "outputs": S |
| zcdp | | D_alpha(P \|\| R) / alpha over alpha > 1 | "order" |

The term of a lower end is {"rule": "pair", "pair": [u, v], ...}, the parameter at one pair, and at
the set or order in the last column. That of an upper end is {"rule": "pairs"}, the parameter of all
pairs, and for zcdp {"rule": "orders", "orders"}, with two lists of orders for each pair, for (P, R)
and for (R, P). An epsilon that is the text "log(p/q)" is the logarithm of that fraction, and then
all of dp-profile is exact.

SHIFT (gaussian-dp). A release is mu-Gaussian private if and only if Phi^-1(P(S)) - Phi^-1(R(S)) <=
mu for all events S, randomized ones included (Dong, Roth and Su). By Neyman and Pearson the sets of
the largest likelihood ratios P / R, taken in turn, have the largest P(S) at their R(S). Between
them the trade-off curve is linear, while that of a Gaussian shift is convex, so that the sets
suffice. Outputs with R = 0 come first; fractions are compared exactly. The complement of S has the
same difference in the other order of P and R, because Phi^-1(1 - x) = -Phi^-1(x): one is enough.

ORDERS (zcdp). (alpha - 1) D_alpha is convex in alpha (it is the logarithm of a moment), and D_alpha
increases. Let a < b be orders and alpha = (1 - s) a + s b. With g(alpha) = alpha (alpha - 1) and
m = max(D_a / a, D_b / b), CHORD says (alpha - 1) D_alpha <= (1 - s) m g(a) + s m g(b) = m (g(alpha)
+ s (1 - s) (b - a)^2), and s (1 - s) <= 1/4, so that

    D_alpha / alpha <= m (1 + (b - a)^2 / (4 g(a))),

as g(alpha) >= g(a). Below the first order a_0, D_alpha / alpha <= D_{a_0}, because alpha > 1. From
the last one b on it is at most D_inf / b; without orders at most D_inf.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Self

from flint import arb, fmpq

from cvxleak.kernel.budget import charge
from cvxleak.kernel.numbers import ball, largest, law, need, rational, soft, total
from cvxleak.kernel.reading import count, end_term, fractions, items, parts
from cvxleak.kernel.terms import Leaf
from cvxleak.kernel.view import read_channel

__all__ = [
    "ConcentratedPrivacy",
    "GaussianPrivacy",
    "PrivacyProfile",
    "RenyiPrivacy",
    "renyi_divergence",
]

Law = Sequence[fmpq]

_LOGARITHM = re.compile(r"log\((\d+(?:/\d+)?)\)", re.ASCII)


@dataclass(frozen=True)
class Pairs:
    """Rows, the pairs of them that are compared, and the level, if there is one."""

    rows: Sequence[Law]
    pairs: Sequence[tuple[int, int]]
    level: Any = None

    names: ClassVar[tuple[str, ...]] = ()
    wanted: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def read(cls, problem: Any) -> Self:
        """Return the statement of a file."""
        parts(problem, {"matrix", "pairs", *cls.names}, "the problem")
        rows = [law(row.key or ()) for row in read_channel({"matrix": problem["matrix"]})]
        pairs = [_pair(pair, len(rows)) for pair in items(problem["pairs"], "pairs")]
        need(pairs, "no pair is compared")
        charge("ball operations", 8 * len(pairs) * len(rows[0]))
        return cls(rows, pairs, *(cls.leveled(problem[name]) for name in cls.names))

    @classmethod
    def leveled(cls, data: Any) -> Any:
        """Return the level of a file's problem."""
        raise NotImplementedError

    def value(self, p: Law, r: Law) -> arb | fmpq:
        """Return the parameter of one pair in this order."""
        raise NotImplementedError

    def directions(self) -> Iterator[tuple[Law, Law]]:
        """Yield each pair in both orders."""
        for u, v in self.pairs:
            yield self.rows[u], self.rows[v]
            yield self.rows[v], self.rows[u]

    def upper(self, data: Any, leaf: Leaf | None = None) -> arb | fmpq:
        """Return the largest parameter of a pair."""
        end_term(data, "pairs", (), "an upper end")
        return largest(self.value(p, r) for p, r in self.directions())

    def lower(self, data: Any) -> arb | fmpq:
        """Return the parameter of the pair that a file names, which is at least 0."""
        end_term(data, "pair", {"pair", *self.wanted}, "a lower end")
        u, v = _pair(data["pair"], len(self.rows))
        need({(u, v), (v, u)} & set(self.pairs), "a pair that is not compared")
        found = self.at(self.rows[u], self.rows[v], *(data[name] for name in self.wanted))
        return found if found > 0 else arb(0)

    def at(self, p: Law, r: Law) -> arb | fmpq:
        """Return what one pair has at least."""
        return self.value(p, r)


class RenyiPrivacy(Pairs):
    """Kind ``renyi-dp``: the level is alpha, None for infinity."""

    names = ("alpha",)

    @classmethod
    def leveled(cls, data: Any) -> fmpq | None:
        """Return alpha."""
        order = None if data == "inf" else rational(data)
        need(order is None or order > 1, "an order that is not above 1")
        return order

    def value(self, p: Law, r: Law) -> arb:
        """Return D_alpha(P || R)."""
        return renyi_divergence(p, r, self.level)


class PrivacyProfile(Pairs):
    """Kind ``dp-profile``: the level is e^epsilon, exact if it is a fraction."""

    names = ("epsilon",)

    @classmethod
    def leveled(cls, data: Any) -> arb | fmpq:
        """Return e^epsilon."""
        written = _LOGARITHM.fullmatch(data) if isinstance(data, str) else None
        if written is not None:
            odds = rational(written[1])
            need(odds >= 1, "an epsilon below 0")
            return odds
        epsilon = rational(data)
        need(epsilon >= 0, "an epsilon below 0")
        return fmpq(1) if epsilon == 0 else ball(epsilon).exp()

    def value(self, p: Law, r: Law) -> arb | fmpq:
        """Return sum_y max(P(y) - e^epsilon R(y), 0): exactly, if no e^epsilon is left in it."""
        gains = [(x, y) for x, y in zip(p, r, strict=True) if not x - self.level * y <= 0]
        if isinstance(self.level, fmpq) or not any(y for _, y in gains):
            return sum((x - self.level * y if y else x for x, y in gains), fmpq(0))
        return total((x - self.level * y).max(arb(0)) for x, y in gains)


class GaussianPrivacy(Pairs):
    """Kind ``gaussian-dp``."""

    wanted = ("outputs",)

    def directions(self) -> Iterator[tuple[Law, Law]]:
        """Yield each pair in one order (SHIFT)."""
        yield from ((self.rows[u], self.rows[v]) for u, v in self.pairs)

    def value(self, p: Law, r: Law) -> arb:
        """Return the largest shift of a set of the largest likelihood ratios (SHIFT)."""
        seen = [(x, y) for x, y in zip(p, r, strict=True) if x]
        charge("ball operations", 40 * len(seen))
        found, under, beside = [arb(0)], fmpq(0), fmpq(0)
        for x, y in sorted(seen, key=lambda one: one[1] / one[0]):
            under, beside = under + x, beside + y
            found.append(_shift(under, beside))
        return largest(found)

    def at(self, p: Law, r: Law, outputs: Any = ()) -> arb:
        """Return the shift of the set of outputs that a file names."""
        event = {count(y, "outputs", below=len(p)) for y in items(outputs, "outputs")}
        return _shift(*(sum((row[y] for y in event), fmpq(0)) for row in (p, r)))


class ConcentratedPrivacy(Pairs):
    """Kind ``zcdp``."""

    wanted = ("order",)

    def at(self, p: Law, r: Law, order: Any = None) -> arb:
        """Return D_alpha / alpha at the order that a file names."""
        (alpha,) = _orders([order])
        return renyi_divergence(p, r, alpha) / arb(alpha)

    def upper(self, data: Any, leaf: Leaf | None = None) -> arb:
        """Return the largest D_alpha / alpha of all pairs and orders (ORDERS)."""
        end_term(data, "orders", {"orders"}, "an upper end")
        stored = items(data["orders"], "orders", len(self.pairs))
        lists = [one for both in stored for one in items(both, "orders", 2)]
        ways = zip(self.directions(), lists, strict=True)
        return largest(_rate(p, r, _orders(orders)) for (p, r), orders in ways)


def _rate(p: Law, r: Law, orders: Sequence[fmpq]) -> arb:
    """Return a bound above D_alpha / alpha for all orders above 1 (ORDERS)."""
    most = renyi_divergence(p, r, None)
    if not orders or not most > 0 or not most.is_finite():
        return most
    logs = _logarithms([(x, y) for x, y in zip(p, r, strict=True) if x])
    ratios = [_of_order(logs, a) / arb(a) for a in orders]
    found = [ratios[0] * arb(orders[0]), most / arb(orders[-1])]
    for (a, one), (b, other) in pairwise(zip(orders, ratios, strict=True)):
        found.append(one.max(other) * arb(1 + (b - a) ** 2 / (4 * a * (a - 1))))
    return largest(found)


def renyi_divergence(p: Sequence[Any], r: Sequence[Any], order: fmpq | None) -> arb:
    """Return D_alpha(P || R) for an order that is not 1, None for infinity."""
    if list(p) == list(r):
        return arb(0)
    seen = [(x, y) for x, y in zip(p, r, strict=True) if not x == 0]
    both = [(x, y) for x, y in seen if not y == 0]
    if not both or (len(both) < len(seen) and (order is None or order > 1)):
        return arb.pos_inf()
    if order is None:
        return arb(largest(x / y for x, y in both)).log()
    return _of_order(_logarithms(both), order)


def _logarithms(pairs: Sequence[tuple[Any, Any]]) -> list[tuple[arb, arb]]:
    return [(arb(x).log(), arb(y).log()) for x, y in pairs]


def _of_order(logs: Sequence[tuple[arb, arb]], order: fmpq) -> arb:
    """Return D_alpha(P || R) from the logarithms of both where they are positive."""
    charge("ball operations", 40 * len(logs))
    alpha = arb(order)
    terms = [alpha * x + (1 - alpha) * y for x, y in logs]
    return soft(terms, arb(1)) / (alpha - 1)


def _orders(data: Any) -> list[fmpq]:
    found = fractions(data, "orders")
    need(all(a < b for a, b in pairwise([fmpq(1), *found])), "orders: increasing, and above 1")
    return found


def _shift(under: fmpq, beside: fmpq) -> arb:
    """Return Phi^-1 of one probability less that of another, at least 0."""
    if under <= beside:
        return arb(0)
    if under == 1 or beside == 0:
        return arb.pos_inf()
    return _quantile(under) - _quantile(beside)


def _quantile(mass: fmpq) -> arb:
    """Return Phi^-1 of a probability, of one near 1 from its complement."""
    if 2 * mass > 1:
        return -_quantile(1 - mass)
    return -arb(2).sqrt() * arb(2 * mass).erfcinv()


def _pair(data: Any, rows: int) -> tuple[int, int]:
    u, v = (count(x, "a pair", below=rows) for x in items(data, "a pair", 2))
    return u, v
