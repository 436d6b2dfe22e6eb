r"""What is known about an adversary besides the entropy of its prior p, as limits.

The list "adversaries" of a problem holds convex sets of priors, all of which p belongs to:

- "expectation": at_least <= E_p[c(X)] <= at_most, where c depends on the values of some records, or
  on the value of a query;
- "marginals": P(X_i = u) = p_u, for some records i;
- "relative-entropy": D(p || p0) <= r, where p0 is a product of distributions, or a table.

Each becomes limits <w, C> <= d + t F(w) of a distribution w on groups of contexts. The contexts of
a group have the same label, a tuple of what these limits depend on.

Proof that LUMPING stays exact (`cvxleak.kernel.view`). Spread p evenly within each group: C of a
dataset depends on its label alone, so <w, C> stays. H(p) does not fall, nor does D(p || p0) = -H(p)
- E_p[log p0(X)] rise. So the priors of the class have the same J as the w with <w, C> <= d and
<w, -log p0> <= r + F(w). Datasets with p0 = 0 are left out, for D would be infinite. So are
contexts whose c is above d, where d is the least c of all: only a mean of least values is as small.
Values of A of which no context is left are left out, too; k and a gain are about the others.

Known marginals are a limit on sums over alike records. Records are alike if they are for the query
and for each piece of knowledge: the same contributions, the same distribution in p0, both or
neither named. Average p over all exchanges of alike records outside of the audited group. J stays,
because A and f do. Each set stays, because it is convex and contains the images, and H does not
fall. Then P(X_i = u) is the same for all alike records, and it is p_u if and only if the expected
number of those that are u is p_u times their number.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from flint import arb, fmpq

from cvxleak.kernel.budget import charge
from cvxleak.kernel.numbers import ball, law, need, rational, total
from cvxleak.kernel.reading import chosen, count, items, parts
from cvxleak.kernel.space import LONGEST, Space, Total, in_runs, read_query, steps, together
from cvxleak.kernel.view import Limit, Row, View, view_of

__all__ = ["Knowledge", "read_knowledge"]

Columns = Sequence[Total]
"""What each value of a record adds to some columns of the totals."""


Runs = Sequence[tuple[Columns, int]]
"""The columns of records that are alike, and how many of these there are."""

# Pieces of knowledge ------------------------------------------------------------------------------
#
# A piece adds columns to the totals in which contexts are counted. Its `marks` tell records
# apart, in stretches of records that are alike. `columns` returns the columns' moduli, and the
# columns of each kind of record, a mark and how many values such a record has. `label` returns
# what the limits depend on, of contexts, and None if these have no probability: of what each
# record of the audited group adds to the columns, what the others do, and the sum. `limits`
# returns the limits of distributions on labels, where `group` has the runs of the audited
# records.


def _at_most(c: Sequence[Any], bound: fmpq) -> Limit:
    charge("bytes of numbers", 64 * len(c))
    return Limit([fmpq(x) for x in c], bound, fmpq(0))


def _equal(c: Sequence[Any], bound: fmpq) -> list[Limit]:
    return [_at_most(c, bound), _at_most([-x for x in c], -bound)]


@dataclass(frozen=True)
class Mean:
    """least <= E[c(X)] <= most; c is a table over the values of a query."""

    marks: Sequence[tuple[Columns, int]]
    of: Space
    table: Sequence[fmpq]
    least: fmpq | None
    most: fmpq | None

    def columns(self, kinds: Sequence[tuple[Any, int]]) -> tuple[Total, list[Columns]]:
        """Return the marks, which are the contributions to the query."""
        return self.of.moduli, [mark for mark, _ in kinds]

    def label(self, own: Sequence[Total], rest: Total, whole: Total) -> fmpq:
        """Return c."""
        return self.table[self.of.place(whole)]

    def limits(self, labels: Sequence[Any], group: Sequence[int], runs: Runs) -> list[Limit]:
        """Return one for each bound."""
        found = [] if self.most is None else [_at_most(labels, self.most)]
        if self.least is not None:
            found.append(_at_most([-c for c in labels], -self.least))
        return found


@dataclass(frozen=True)
class Marginals:
    """P(X_i = u) = p_u for the records that are marked.

    For each kind of these, the values are counted but for the likeliest: its probability follows.
    """

    marks: Sequence[tuple[bool, int]]
    law: Sequence[fmpq]

    @property
    def counted(self) -> list[int]:
        """The values that are counted."""
        likeliest = self.law.index(max(self.law))
        return [u for u in range(len(self.law)) if u != likeliest]

    def columns(self, kinds: Sequence[tuple[Any, int]]) -> tuple[Total, list[Columns]]:
        """Return indicators of each kind's values that are counted."""
        places = [(i, u) for i, (named, _) in enumerate(kinds) if named for u in self.counted]
        charge("bytes of numbers", 8 * len(places) * sum(size for _, size in kinds))
        for named, size in kinds:
            need(not named or size == len(self.law), "marginals: a law of another length")
        return (0,) * len(places), [
            [tuple(int((i, u) == place) for place in places) for u in range(size)]
            for i, (_, size) in enumerate(kinds)
        ]

    def label(self, own: Sequence[Total], rest: Total, whole: Total) -> Hashable:
        """Return the values of the audited records, and the numbers of the others."""
        return tuple(own), rest

    def limits(self, labels: Sequence[Any], group: Sequence[int], runs: Runs) -> list[Limit]:
        """Return two for each equation."""
        found = []
        for i, (columns, n) in enumerate(runs):
            used = [j for j, column in enumerate(zip(*columns, strict=True)) if any(column)]
            others = n - sum(own == i for own in group)
            for j, u in zip(used, self.counted if used else (), strict=True):
                if others:
                    found += _equal([rest[j] for _, rest in labels], others * self.law[u])
                for place, own in enumerate(group):
                    if own == i:
                        found += _equal([values[place][j] for values, _ in labels], self.law[u])
        return found


@dataclass(frozen=True)
class Near:
    """D(p || p0) <= radius. A label is p0, as a product of powers of some 1/p."""

    radius: fmpq
    marks: Sequence[tuple[Columns, int]]
    powers: Callable[[Total], Sequence[tuple[fmpq, int]]]

    def columns(self, kinds: Sequence[tuple[Any, int]]) -> tuple[Total, list[Columns]]:
        """Return the marks: what `powers` needs."""
        return (0,) * len(kinds[0][0][0]), [mark for mark, _ in kinds]

    def label(self, own: Sequence[Total], rest: Total, whole: Total) -> Hashable | None:
        """Return pairs (1/p, exponent); None if p0 = 0."""
        powers = self.powers(whole)
        if any(n and not p for p, n in powers):
            return None
        return tuple((1 / p, n) for p, n in powers if p)

    def limits(self, labels: Sequence[Any], group: Sequence[int], runs: Runs) -> list[Limit]:
        """Return <w, -log p0> <= radius + F(w)."""

        def center(counts: Sequence[int]) -> list[fmpq]:
            pairs = zip(counts, labels, strict=True)
            return [m / prod((p**n for p, n in label), start=fmpq(1)) for m, label in pairs]

        costs = [total(ball(p).log() * n for p, n in label) for label in labels]
        return [Limit([arb(0) + x for x in costs], self.radius, fmpq(1), center)]


Piece = Mean | Marginals | Near

# All pieces together -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Knowledge:
    """The pieces of knowledge of a problem.

    Attributes
    ----------
    space : Space
        The datasets; totals are those of the query, and the columns of each piece after them.
    pieces : sequence of (Piece, slice)
        The pieces, and the places of their columns.
    """

    space: Space
    pieces: Sequence[tuple[Piece, slice]] = ()

    def view(self, group: Sequence[int], rows: Mapping[Any, Row], floor: Any) -> View:
        """Return the view of a group of records; values of no probability are left out."""
        view = view_of(self._possible(group), rows, floor)
        return replace(view, limits=self._limits(group, view.labels))

    def _possible(self, group: Sequence[int]) -> list[Mapping[tuple[int, Any], int]]:
        """Return the contexts of each value that may have probability."""

        def label(joint: Sequence[Total], rest: Total, whole: Total) -> Any:
            found = tuple(
                piece.label([one[at] for one in joint], rest[at], whole[at])
                for piece, at in self.pieces
            )
            return None if None in found else found

        contexts: list[Mapping[tuple[int, Any], int]] = [*self.space.contexts(group, label)]
        while True:
            contexts = [own for own in contexts if own]
            need(contexts, "adversaries: what is known excludes every dataset")
            labels = sorted({label for own in contexts for _, label in own})
            gone: set[Any] = set()
            for limit in self._limits(group, labels):
                if limit.share == 0 and min(limit.c) == limit.bound:
                    pairs = zip(labels, limit.c, strict=True)
                    gone |= {label for label, c in pairs if c > limit.bound}
            if not gone:
                return contexts
            contexts = [
                {key: n for key, n in own.items() if key[1] not in gone} for own in contexts
            ]

    def _limits(self, group: Sequence[int], labels: Sequence[Any]) -> list[Limit]:
        found = []
        for j, (piece, at) in enumerate(self.pieces):
            runs = [([own[at] for own in r.contributions], r.records) for r in self.space.runs]
            found += piece.limits([label[j] for label in labels], group, runs)
        return found


# Reading -----------------------------------------------------------------------------------------


def read_knowledge(data: Any, space: Space) -> Knowledge:
    """Return the knowledge of a problem, on its datasets."""
    known = [_read(one, space) for one in items(data, "adversaries")]
    need(known, "adversaries: expected a list that is not empty")
    stretches = list(together(space.stretches, *(piece.marks for piece in known)))
    kinds = {kind: i for i, kind in enumerate(dict.fromkeys(kind for kind, _ in stretches))}
    moduli, pieces = space.moduli, []
    adds: list[list[list[int]]] = [[[*one] for one in own] for own, *_ in kinds]
    for j, piece in enumerate(known):
        marked = [(marks[j], len(own)) for own, *marks in kinds]
        more, columns = piece.columns(marked)
        pieces.append((piece, slice(len(moduli), len(moduli) + len(more))))
        moduli += more
        for own, column in zip(adds, columns, strict=True):
            need(len(own) == len(column), "adversaries: they are about other datasets")
            for one, part in zip(own, column, strict=True):
                one += part
    contributions = [tuple(map(tuple, own)) for own in adds]
    grouped = tuple((contributions[kinds[kind]], n) for kind, n in stretches)
    return Knowledge(replace(space, stretches=grouped, moduli=moduli), pieces)


def _read(data: Any, space: Space) -> Piece:
    charge("bytes of numbers", 128 * sum(len(own) * n for own, n in space.stretches))
    kind = chosen(data, "what is known", ("expectation", "marginals", "relative-entropy"))
    if kind == "expectation":
        return _read_mean(data, space)
    if kind == "marginals":
        parts(data, {"kind", "law", "records"}, "marginals")
        named = set(_records(data["records"], space))
        marks = [(i in named, 1) for i in range(space.records)]
        return Marginals(marks, law(items(data["law"], "law"), "marginals"))
    return _read_near(data, space)


def _read_mean(data: Mapping[str, Any], space: Space) -> Mean:
    keys = {"kind", "values", "records", "query", "at_least", "at_most", "name"}
    parts(data, keys, "an expectation")
    ends = [None if data[end] is None else rational(data[end]) for end in ("at_least", "at_most")]
    need(ends != [None, None], "an expectation without a bound")
    need(type(data["name"]) is str, "an expectation without a name")
    need(data["records"] is None or data["query"] is None, "a function of records, or of a query")
    of = space
    if data["records"] is not None:
        of = _numbered(space, _records(data["records"], space))
    elif data["query"] is not None:
        of = read_query(data["query"])
    table = items(data["values"], "values", len(of.values))
    return Mean(of.stretches, of, [rational(c) for c in table], *ends)


def _read_near(data: Mapping[str, Any], space: Space) -> Near:
    parts(data, {"kind", "radius", "prior", "laws"}, "a ball")
    radius = rational(data["radius"])
    need(radius >= 0, "a negative radius")
    if data["laws"] is None:
        of = _numbered(space, range(space.records))
        table = law(items(data["prior"], "prior", len(of.values)), "the prior")
        return Near(radius, of.stretches, lambda whole: [(table[whole[0]], 1)])
    need(data["prior"] is None, "a prior, or laws")
    laws = [(law(items(one, "laws"), "laws"), n) for one, n in in_runs(data["laws"], "laws")]
    bases = sorted({p for one, _ in laws for p in one})
    charge("bytes of numbers", 8 * len(bases) * sum(len(one) for one, _ in laws))
    marks = [(tuple(tuple(int(p == b) for b in bases) for p in one), n) for one, n in laws]
    return Near(radius, marks, lambda whole: list(zip(bases, whole, strict=True)))


def _records(data: Any, space: Space) -> list[int]:
    found = [count(i, "records", below=space.records) for i in items(data, "records")]
    need(found and len(set(found)) == len(found), "records: none, or one twice")
    return found


def _numbered(space: Space, records: Sequence[int]) -> Space:
    """Return the joint value of some records as a query: its number, the last of them fastest."""
    sizes = list(map(len, space.each))
    many = prod(sizes[i] for i in records)
    need(many <= LONGEST, "adversaries: too many joint values of records")
    step = dict.fromkeys(range(len(sizes)), 0)
    step |= {i: s for i, (_, s) in zip(records, steps([sizes[i] for i in records]), strict=True)}
    marks = tuple((tuple((a * step[i],) for a in range(n)), 1) for i, n in enumerate(sizes))
    return Space(marks, (0,), {(i,): i for i in range(many)}, tuple(range(many)))
