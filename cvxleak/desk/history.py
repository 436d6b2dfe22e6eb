"""Histories of releases, merged into classes, in exact rational arithmetic.

Let Z be all outputs so far and x the data. Two histories with proportional likelihoods p(z|x)
reveal the same about x. They are merged into one *class* C, so that C is a sufficient statistic of
Z for X. A kernel that depends on the history only through C loses nothing compared with one that
sees Z (SEQUENTIAL eq. (2)): averaging a kernel over Z given C leaves p(rhat, x) unchanged, and can
only lower I(Rhat, Z; X). Moreover Z - (C, Rhat) - X is a Markov chain, so that
I(Rhat, Z; X) = I(Rhat, C; X) exactly, whatever is released later.

If a party asks again, its budget limits what it learns from all its outputs V. Its kernel then
depends on V as well as on C: it *looks* at V. By the same averaging, nothing else is of use.

An *observer* is a set of parties that pool their outputs, and its *view* is what they have
together. The table p(v, w, c, x) is kept for the outputs v of the parties whose kernels look, and
the views w of the observers that have a budget. If two values of one observer's view have
proportional tables, with everything else equal, they are merged. This is exact, since they differ
by noise only, now and later.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import gcd, lcm
from typing import NamedTuple

from flint import arb, fmpq

from cvxleak.core.errors import ValidationError
from cvxleak.kernel.numbers import lower, precision, upper
from cvxleak.proofs.exact import mutual_information, normalized_rows

__all__ = [
    "SIZE_LIMIT",
    "Entry",
    "History",
    "Key",
    "Observer",
    "Seen",
    "Vector",
    "check_size",
    "information",
]

SIZE_LIMIT = 400_000
"""Most probabilities that a table may have."""

Observer = frozenset[str]
Outputs = tuple[int, ...]
Vector = tuple[fmpq, ...]
Rows = dict["Seen", list[list[fmpq]]]


class Seen(NamedTuple):
    """What a kernel depends on besides x: its party's own outputs (if it looks), and the class."""

    own: Outputs
    c: int


class Key(NamedTuple):
    """One cell of the table: the lookers' outputs, the observers' views, and the class."""

    owns: tuple[Outputs, ...]
    views: tuple[Hashable, ...]
    c: int


@dataclass(frozen=True)
class Entry:
    """An earlier release: who asked, the kernel that was used, and the output.

    Attributes
    ----------
    party : str
    kernel : list, shape (seen, |X|, outputs)
        Rows in proportion to p(rhat | seen, x), in the order of `History.seen`.
    output : int
        The column that was drawn.
    looks : bool
        Whether the kernel depends on the party's own earlier outputs.
    """

    party: str
    kernel: Sequence[Sequence[Sequence[float]]]
    output: int
    looks: bool = False


class History:
    """The classes of histories after some releases, and the views of some observers.

    Parameters
    ----------
    prior : sequence of float
        Proportional to p(x); divided by its exact sum.
    entries : iterable of Entry
        The releases, first to last.
    observers : iterable of frozenset of str
        The observers whose views are tracked, besides all parties together.
    asker : str, optional
        The party that asks next, if the kernel is to look at its outputs.

    Raises
    ------
    ValidationError
        A kernel of the wrong shape, an output that is impossible under it, or more numbers than
        `SIZE_LIMIT`.

    Examples
    --------
    >>> from cvxleak.desk.history import Entry, History
    >>> flip = [[[0.75, 0.25], [0.25, 0.75]]]
    >>> ann = frozenset(["Ann"])
    >>> history = History([0.5, 0.5], [Entry("Ann", flip, 0)], [ann])
    >>> history.classes, history.realized()
    (2, Seen(own=(), c=0))
    >>> round(history.leakage(ann)[1], 6) == round(history.leakage()[1], 6)
    True
    """

    def __init__(
        self,
        prior: Sequence[float],
        entries: Iterable[Entry] = (),
        observers: Iterable[Observer] = (),
        asker: str | None = None,
    ) -> None:
        past = list(entries)
        looking = {entry.party for entry in past if entry.looks} | ({asker} - {None})
        self.lookers = tuple(sorted(party for party in looking if party is not None))
        self.observers = tuple(observers)
        law = tuple(normalized_rows([prior])[0])
        start = Key(((),) * len(self.lookers), (0,) * len(self.observers), 0)
        self._table: dict[Key, Vector] = {start: law}
        self.classes = 1
        self._drawn: list[tuple[str, int]] = []
        self._realized = 0
        self._outputs: list[list[int | None]] = []
        for entry in past:
            self.add(entry)

    @property
    def table(self) -> dict[Key, Vector]:
        """p(v, w, c, x) for each x by (v, w, c), where it is not 0."""
        return self._table

    def seen(self, party: str | None = None) -> dict[Seen, Vector]:
        """Return p(seen, x) by what a kernel sees, in order; of a looking party, or of any."""
        found: dict[Seen, Vector] = {}
        for key, vector in self._table.items():
            seen = self.of(key, party)
            found[seen] = _plus(found.get(seen), vector)
        return dict(sorted(found.items()))

    def realized(self, party: str | None = None) -> Seen:
        """Return what a kernel sees of the realized history."""
        own = tuple(output for who, output in self._drawn if who == party)
        return Seen(own if party in self.lookers else (), self._realized)

    def output_of(self, number: int, seen: Seen, party: str | None = None) -> int | None:
        """Return the output of release `number`, from 0, if `seen` determines it."""
        who = self._drawn[number][0]
        if who == party and party in self.lookers:
            return seen.own[sum(name == who for name, _ in self._drawn[:number])]
        return self._outputs[number][seen.c]

    def add(self, entry: Entry) -> None:
        """Add a release to the table."""
        looker = entry.party if entry.looks else None
        masses = self.seen(looker)
        rows = self._rows(entry.kernel, masses)
        width = len(next(iter(rows.values()))[0])
        places: dict[Outputs, int] = {}
        moves: dict[tuple[Seen, int], int] = {}
        origins: list[list[tuple[int, int]]] = []
        for seen, mass in masses.items():
            for r in range(width):
                vector = _times(mass, rows[seen], r)
                if vector is None:
                    continue
                place = places.setdefault(_direction(vector), len(places))
                if place == len(origins):
                    origins.append([])
                origins[place].append((seen.c, r))
                moves[seen, r] = place
            check_size(len(places) * len(mass), SIZE_LIMIT)
        drawn = self.realized(looker), entry.output
        if drawn not in moves:
            raise ValidationError(
                f"output: not a possible output of release {len(self._drawn) + 1}"
            )
        self._table = self._followed(entry.party, looker, rows, moves)
        self._realized = moves[drawn]
        self._drawn = [*self._drawn, (entry.party, entry.output)]
        self._outputs = [
            *([_common(past[c] for c, _ in pairs) for pairs in origins] for past in self._outputs),
            [_common(r for _, r in pairs) for pairs in origins],
        ]
        self.classes = len(places)

    def leakage(self, observer: Observer | None = None) -> tuple[float, float]:
        """Return proved bounds on I(V; X) in nats, for a tracked observer or all parties."""
        if observer is None:
            return information(self.seen().values())
        place = self.observers.index(observer)
        views: dict[Hashable, Vector] = {}
        for key, vector in self._table.items():
            views[key.views[place]] = _plus(views.get(key.views[place]), vector)
        return information(views.values())

    def spent(self, observer: Observer | None = None) -> float:
        """Return what counts against a tracked observer's budget before the next release."""
        return self.leakage(observer)[1]

    def of(self, key: Key, party: str | None) -> Seen:
        """Return what a kernel sees of a cell of the table."""
        own = () if party is None else key.owns[self.lookers.index(party)]
        return Seen(own, key.c)

    def _rows(
        self, kernel: Sequence[Sequence[Sequence[float]]], masses: dict[Seen, Vector]
    ) -> Rows:
        if len(kernel) != len(masses):
            raise ValidationError(
                f"kernel: found rows for {len(kernel)} histories; there are {len(masses)}"
            )
        rows = [normalized_rows(part) for part in kernel]
        shapes = {(len(part), len(row)) for part in rows for row in part}
        datasets = len(next(iter(masses.values())))
        if len(shapes) != 1 or shapes.pop()[0] != datasets:
            raise ValidationError("kernel: its shape does not match the data's values")
        return dict(zip(masses, rows, strict=True))

    def _followed(
        self, party: str, looker: str | None, rows: Rows, moves: dict[tuple[Seen, int], int]
    ) -> dict[Key, Vector]:
        """Return the table after one more release."""
        gets = [party in who for who in self.observers]
        raw: dict[Key, Vector] = {}
        for key, mass in self._table.items():
            seen = self.of(key, looker)
            for r in range(len(rows[seen][0])):
                vector = _times(mass, rows[seen], r)
                if vector is None:
                    continue
                owns = tuple(
                    (*own, r) if name == party else own
                    for name, own in zip(self.lookers, key.owns, strict=True)
                )
                views = tuple(
                    (view, r) if got else view for view, got in zip(key.views, gets, strict=True)
                )
                into = Key(owns, views, moves[seen, r])
                raw[into] = _plus(raw.get(into), vector)
                check_size(len(raw) * len(vector), SIZE_LIMIT)
        for place in range(len(gets)):
            raw = _merged(raw, place)
        return raw


def _merged(raw: dict[Key, Vector], place: int) -> dict[Key, Vector]:
    """Replace one observer's views by numbers, equal ones if their tables are proportional."""
    tables: dict[Hashable, dict[Key, Vector]] = {}
    for key, vector in raw.items():
        rest = key._replace(views=(*key.views[:place], None, *key.views[place + 1 :]))
        tables.setdefault(key.views[place], {})[rest] = vector
    numbers: dict[Hashable, int] = {}
    result: dict[Key, Vector] = {}
    for table in tables.values():
        # In the same order for all, because which cells there are is part of the comparison.
        cells = sorted(table, key=repr)
        alike = tuple(cells), _direction(q for cell in cells for q in table[cell])
        number = numbers.setdefault(alike, len(numbers))
        for cell in cells:
            key = cell._replace(views=(*cell.views[:place], number, *cell.views[place + 1 :]))
            result[key] = _plus(result.get(key), table[cell])
    return result


def information(table: Iterable[Sequence[fmpq]]) -> tuple[float, float]:
    """Return proved bounds on I(V; X) for the rows p(v, x); exactly 0 if V reveals nothing."""
    merged: dict[Outputs, Vector] = {}
    for row in table:
        if any(q != 0 for q in row):
            key = _direction(row)
            merged[key] = _plus(merged.get(key), tuple(row))
    if len(merged) == 1:
        return 0.0, 0.0
    with precision():
        ball = mutual_information([[arb(q) for q in row] for row in merged.values()])
        return max(lower(ball), 0.0), max(upper(ball), 0.0)


def check_size(size: int, limit: int) -> None:
    """Raise if a table would take too much memory or time."""
    if size > limit:
        raise ValidationError(
            f"ledger: what may have been released so far takes more than {limit} numbers; ask for "
            "fewer outputs, or begin a ledger in realized mode"
        )


def _plus(one: Vector | None, other: Vector) -> Vector:
    return other if one is None else tuple(a + b for a, b in zip(one, other, strict=True))


def _times(mass: Vector, rows: list[list[fmpq]], r: int) -> Vector | None:
    vector = tuple(p * row[r] for p, row in zip(mass, rows, strict=True))
    return vector if any(q != 0 for q in vector) else None


def _direction(vector: Iterable[fmpq]) -> Outputs:
    """Return coprime integers proportional to a non-negative vector."""
    parts = [(int(q.p), int(q.q)) for q in vector]
    scale = lcm(*(q for _, q in parts))
    numbers = [p * (scale // q) for p, q in parts]
    common = gcd(*numbers)
    return tuple(n // common for n in numbers)


def _common(values: Iterable[int | None]) -> int | None:
    """Return the value that all of them have, or None."""
    found = set(values)
    return found.pop() if len(found) == 1 else None
