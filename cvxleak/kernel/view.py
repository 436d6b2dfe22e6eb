"""What a proof of leakage is about: one group of records, its contexts lumped, one adversary class.

LUMPING. Let contexts with the same value of the group A, the same row of the channel and the same
values of what limits the adversary form a group g, m_g in number. An adversary is then a
distribution w on the groups. I(A;Y), expectations and reference probabilities depend on w alone,
and H(X) is at most F(w) = H(w) + sum_g w_g log m_g, with equality where w is spread evenly within
each group. So the largest leakage for H(X) >= b is that of all w with F(w) >= b, and finer groups
change nothing. Over a set of channels a group's contexts have the same box, and its row is their
rows' mean, which is in the box.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from flint import arb, fmpq, fmpz

from cvxleak.kernel.budget import charge
from cvxleak.kernel.gains import Gain, Shannon
from cvxleak.kernel.lemmas import chords, divergence, filling, support
from cvxleak.kernel.many import Balls, stacked
from cvxleak.kernel.numbers import added, ball, largest, law, need, rational, total
from cvxleak.kernel.reading import items, parts
from cvxleak.kernel.space import label

__all__ = ["Limit", "Row", "View", "read_channel", "view_of"]

CUTS = 6
"""How often a row's box is cut in two, at most."""

ROUNDING = 2.0**-40
"""A floor that is above the largest entropy by less is meant to be that: n log 2 as a float."""


@dataclass(frozen=True)
class Row:
    """A row of the channel: numbers, or the box lo <= R <= hi that it lies in."""

    lo: Sequence[Any]
    hi: Sequence[Any] | None = None
    key: tuple[Any, ...] | None = None
    """Its numbers as written, which tell rows apart; None if it is not written."""

    def over(self, x: Any) -> Any:
        """Return the largest <R, x>, of an array x."""
        return self._ends[0].inner(x, 0) if self.hi is None else support(*self._ends, x)

    def divergence(self, log_t: Sequence[arb], cuts: int = CUTS) -> arb:
        """Return a bound above D(R || t): of a box by CHORD in each coordinate, then DUAL.

        A box is cut in two where DUAL leaves a coordinate inside its range, since CHORD is not
        sharp there; and each part anew, `cuts` times at most.
        """
        if self.hi is None:
            return divergence(self.lo, log_t)
        charge("ball operations", 8 * len(log_t))
        lo, hi = self._ends
        slopes, rest = chords(lo, hi, Balls.of(log_t))
        found = support(lo, hi, slopes) + rest
        y, left = (x.item() for x in filling(lo.m, hi.m, slopes.m))
        at = arb(hi.m[y] + min(left, 0.0))
        if not cuts or not lo[y] < at < hi[y]:
            return found
        below = replace(self, hi=[*self.hi[:y], at, *self.hi[y + 1 :]])
        above = replace(self, lo=[*self.lo[:y], at, *self.lo[y + 1 :]])
        return found.min(largest(half.divergence(log_t, cuts - 1) for half in (below, above)))

    @cached_property
    def _ends(self) -> tuple[Any, Any]:
        return stacked(self.lo), stacked(self.hi or self.lo)

    def lifted(self, lift: Callable[[Any], Any]) -> Row:
        """Return it in another type of numbers."""
        hi = None if self.hi is None else [lift(x) for x in self.hi]
        return replace(self, lo=[lift(x) for x in self.lo], hi=hi)


@dataclass(frozen=True)
class Limit:
    """What every adversary meets: <w, c> <= bound + share F(w), share >= 0.

    Where the share is 0, c and the bound are fractions. `center`, if there is one, makes of the
    multiplicities the distribution that has <w, c> = F(w).
    """

    c: Sequence[Any]
    bound: Any
    share: Any
    center: Callable[[Sequence[int]], Sequence[fmpq]] | None = None

    def lifted(self, lift: Callable[[Any], Any]) -> Limit:
        """Return it in another type of numbers."""
        return Limit([lift(x) for x in self.c], lift(self.bound), lift(self.share))


@dataclass(frozen=True, eq=False)
class View:
    """A group of records A under an adversary class.

    Attributes
    ----------
    rows : sequence of Row, length N
        A row for each group.
    counts : sequence of int, length N
        The multiplicities m_g.
    logs : sequence of numbers, length N
        log m_g.
    of : sequence of sequences of int, length k
        The groups of each value.
    floor : number
        b of F(w) >= b.
    limits : sequence of Limit
        More that adversaries meet.
    gain : Gain
        G of J = sum_y s_y G(rho_y) - T G(pi).
    times : number or None
        T. None stands for the factor sum_y s_y G(rho_y) / G(pi).
    extra : sequence of numbers, or None
        If there is one, the claim is about J + <w, extra>.
    within : sequence of mappings, length N
        How many contexts of a group lead to each place of the query's value.
    labels : sequence, length N
        What of a group's contexts limits depend on.
    """

    rows: Sequence[Row]
    counts: Sequence[int]
    logs: Sequence[Any]
    of: Sequence[Sequence[int]]
    floor: Any
    limits: Sequence[Limit] = ()
    gain: Gain = field(default_factory=Shannon)
    times: Any = 1
    extra: Sequence[Any] | None = None
    within: Sequence[Mapping[Any, int]] = ()
    labels: Sequence[Any] = ()

    @property
    def k(self) -> int:
        """How many values A has."""
        return len(self.of)

    @property
    def n(self) -> int:
        """How many outputs there are."""
        return len(self.rows[0].lo)

    @property
    def exact(self) -> bool:
        """Whether every row is known: no set of channels."""
        return all(row.hi is None for row in self.rows)

    @property
    def information(self) -> bool:
        """Whether J is I(A;Y)."""
        return isinstance(self.gain, Shannon) and self.times == 1

    def lifted(self, lift: Callable[[Any], Any]) -> View:
        """Return it in another type of numbers."""
        return replace(
            self,
            rows=[row.lifted(lift) for row in self.rows],
            logs=[lift(x) for x in self.logs],
            floor=lift(self.floor),
            limits=[limit.lifted(lift) for limit in self.limits],
            extra=None if self.extra is None else [lift(x) for x in self.extra],
        )

    def merge(self, partition: Sequence[Sequence[int]]) -> View:
        """Return it with the outputs of each part merged into one."""
        rows = [Row([total(row.lo[y] for y in part) for part in partition]) for row in self.rows]
        return replace(self, rows=rows)


def view_of(
    contexts: Sequence[Mapping[tuple[Any, Any], int]],
    rows: Mapping[Any, Row],
    floor: Any,
    **more: Any,
) -> View:
    """Return the view of a group, from the number of contexts of each value by place and label.

    Contexts with the same label and rows that are equal as written form one group of contexts;
    these are in the order of the rows, and of the labels.
    """
    # Fractions are compared, since hashing one takes as long as reading it.
    written = sorted((i for i in rows if rows[i].key is not None), key=lambda i: rows[i].key or ())
    rank: dict[Any, tuple[int, Any]] = {i: (1, i) for i in rows}
    for place, i in enumerate(written):
        before = written[place - 1]
        rank[i] = rank[before] if place and rows[before].key == rows[i].key else (0, place)
    found: list[tuple[Row, Any, dict[Any, int]]] = []
    of: list[list[int]] = []
    for own in contexts:
        merged: dict[Any, dict[Any, int]] = {}
        for (place, named), n in sorted(own.items()):
            merged.setdefault((rank[place], named), {})[place] = n
        of.append(list(range(len(found), len(found) + len(merged))))
        for (_, named), places in sorted(merged.items()):
            found.append((rows[min(places)], named, places))
    need(all(of), "a value without contexts")
    counts = [sum(places.values()) for *_, places in found]
    most = arb(fmpz(sum(counts))).log()
    need(not ball(floor) > most + ROUNDING, "a floor that no adversary reaches")
    return View(
        [row for row, *_ in found],
        counts,
        [arb(fmpz(n)).log() for n in counts],
        of,
        ball(floor).min(most),
        within=[places for *_, places in found],
        labels=[named for _, named, _ in found],
        **more,
    )


# Reading ------------------------------------------------------------------------------------------


def read_channel(data: Any, inputs: int | None = None, labels: Collection[str] = ()) -> list[Row]:
    """Return the rows of a channel, or the boxes of a set of channels; `labels` may be there."""
    ends = ("lower", "upper") if isinstance(data, Mapping) and "lower" in data else ("matrix",)
    parts(data, set(ends), "a channel", labels)
    tables = [items(data[end], end, inputs) for end in ends]
    need(0 < len(tables[0]) == len(tables[-1]), "a channel without rows, or ends of other lengths")
    width = len(items(tables[0][0], "a row"))
    names = set(map(label, items(data.get("outputs", [*range(width)]), "outputs", width)))
    need(len(names) == width, "an output twice")
    found = []
    for written in zip(*tables, strict=True):
        numbers = [tuple(map(rational, items(row, "a row", width))) for row in written]
        charge("ball operations", width)
        found.append(_box(*numbers) if len(numbers) == 2 else _row(numbers[0]))
    return found


NEAR = fmpq(1, 10**6)
"""How far rows as written may be from a sum of 1."""


def _row(written: Sequence[fmpq]) -> Row:
    need(abs(added(written) - 1) < NEAR, "a row that does not sum to 1")
    return Row([ball(x) for x in law(written, "a row")], key=tuple(written))


def _box(lo: Sequence[fmpq], hi: Sequence[fmpq]) -> Row:
    """Return a box; one that rounding leaves without a distribution gets the nearest one.

    Upper ends that sum to less than 1 are divided by their sum, and so are lower ends that sum to
    more. Other boxes stay as they are, and of lo = hi the row is left that a channel would have.
    """
    least_, most = added(lo), added(hi)
    fits = all(0 <= a <= b <= 1 for a, b in zip(lo, hi, strict=True))
    need(fits and least_ - 1 < NEAR and 1 - most < NEAR, "a set of rows that is empty")
    low, high = [ball(x / max(least_, 1)) for x in lo], [ball(x / min(most, 1)) for x in hi]
    return Row(low, high, key=(tuple(lo), tuple(hi)))
