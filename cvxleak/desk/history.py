"""What may have been released so far, in exact rational arithmetic.

Let Z be all outputs so far and x the data. Two histories with proportional likelihoods
p(z|x) tell the same about x; they are one *class* C, which is a sufficient statistic of Z for X.
A kernel that looks at the history only through C loses nothing against one that sees Z (SEQUENTIAL
eq. (2)): averaging it over Z given C keeps p(rhat, x) and can only lower I(Rhat, Z; X). And then
Z - (C, Rhat) - X, so that I(Rhat, Z; X) = I(Rhat, C; X) exactly, whatever is released later.

An *observer* is a set of parties who pool what they got. Their outputs V are no function of C, so
p(v_1, .., v_m, c, x) is kept for the m observers that matter; values of v_i whose tables p(v_i, c,
x) are proportional are merged, which is exact as well (what tells them apart is noise, now and
later, as long as kernels look at C alone).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from math import gcd, lcm

from flint import arb, fmpq

from cvxleak.certificates import balls
from cvxleak.certificates.rationals import normalized_rows
from cvxleak.errors import ValidationError

__all__ = ["SIZE_LIMIT", "Entry", "History", "Observer", "information"]

SIZE_LIMIT = 400_000
"""Most numbers p(v_1, .., v_m, c, x) that are kept."""

Observer = frozenset[str]
Vector = tuple[fmpq, ...]
Views = tuple[int, ...]
Table = dict[tuple[Views, int], Vector]
"""(views, class) -> p(views, class, x) for each x."""


@dataclass(frozen=True)
class Entry:
    """One release of the past: who asked, with which kernel, and what came out.

    Attributes
    ----------
    party : str
    kernel : list, shape (classes, |X|, outputs)
        p(rhat | c, x) up to each row's exact sum.
    output : int
        The column that was drawn.
    """

    party: str
    kernel: Sequence[Sequence[Sequence[float]]]
    output: int


class History:
    """The classes of histories after some releases, and the views of some observers.

    Parameters
    ----------
    prior : sequence of float
        p(x) up to its exact sum.
    entries : iterable of Entry
        The releases, first to last.
    observers : iterable of frozenset of str
        Whose views are followed, beside everybody's.

    Raises
    ------
    ValidationError
        A kernel that does not fit, an output that it cannot give, or more numbers than
        `SIZE_LIMIT`.

    Examples
    --------
    >>> from cvxleak.desk.history import Entry, History
    >>> flip = [[[0.75, 0.25], [0.25, 0.75]]]
    >>> ann = frozenset(["Ann"])
    >>> history = History([0.5, 0.5], [Entry("Ann", flip, 0)], [ann])
    >>> history.classes, history.realized
    (2, 0)
    >>> round(history.leakage(ann)[1], 6) == round(history.leakage()[1], 6)
    True
    """

    def __init__(
        self,
        prior: Sequence[float],
        entries: Iterable[Entry] = (),
        observers: Iterable[Observer] = (),
    ) -> None:
        law = tuple(normalized_rows([prior])[0])
        self._full: list[Vector] = [law]
        self.observers = tuple(observers)
        self._table: Table = {((0,) * len(self.observers), 0): law}
        self.realized = 0
        self._releases: list[list[int | None]] = []
        for entry in entries:
            self.add(entry)

    @property
    def classes(self) -> int:
        """Number of classes of histories."""
        return len(self._full)

    @property
    def joint(self) -> list[Vector]:
        """p(c, x) for each class and each x."""
        return self._full

    @property
    def table(self) -> Table:
        """p(v_1, .., v_m, c, x) by (v, c) for the views of `observers`, where it is not 0."""
        return self._table

    def release_of_class(self, number: int) -> list[int | None]:
        """Return the output of release `number` by class, None where a class holds several."""
        return self._releases[number]

    def add(self, entry: Entry) -> None:
        """Follow one more release."""
        rows = self._rows(entry.kernel)
        outputs = len(rows[0][0])
        places: dict[tuple[int, ...], int] = {}
        masses: list[Vector] = []
        moves: dict[tuple[int, int], int] = {}
        origins: list[list[tuple[int, int]]] = []
        for c, mass in enumerate(self._full):
            for r in range(outputs):
                vector = _times(mass, rows[c], r)
                if vector is None:
                    continue
                key = _direction(vector)
                if key not in places:
                    places[key] = len(masses)
                    masses.append((fmpq(0),) * len(vector))
                    origins.append([])
                into = moves[c, r] = places[key]
                masses[into] = _plus(masses[into], vector)
                origins[into].append((c, r))
            _check_size(len(masses) * len(mass))
        if (self.realized, entry.output) not in moves:
            raise ValidationError(f"output: release {len(self._releases) + 1} cannot give it")
        self.realized = moves[self.realized, entry.output]
        self._table = self._followed(entry.party, rows, moves)
        self._releases = [
            [_common(past[c] for c, _ in pairs) for pairs in origins] for past in self._releases
        ]
        self._releases.append([_common(r for _, r in pairs) for pairs in origins])
        self._full = masses

    def leakage(self, observer: Observer | None = None) -> tuple[float, float]:
        """Return proved ends of I(V; X) in nats for a followed observer, or for everybody."""
        if observer is None:
            return information(self._full)
        place = self.observers.index(observer)
        views: dict[int, Vector] = {}
        for (v, _), vector in self._table.items():
            views[v[place]] = _plus(views.get(v[place]), vector)
        return information(views.values())

    def knowable(self, observer: Observer) -> float:
        """Return the upper end of `leakage`: what an observer's outputs may tell."""
        return self.leakage(observer)[1]

    def _rows(self, kernel: Sequence[Sequence[Sequence[float]]]) -> list[list[list[fmpq]]]:
        if len(kernel) != len(self._full):
            raise ValidationError(
                f"kernel: found {len(kernel)} classes of histories; there are {len(self._full)}"
            )
        rows = [normalized_rows(part) for part in kernel]
        shapes = {(len(part), len(row)) for part in rows for row in part}
        if len(shapes) != 1 or shapes.pop()[0] != len(self._full[0]):
            raise ValidationError("kernel: it does not fit the data's values")
        return rows

    def _followed(
        self, party: str, rows: list[list[list[fmpq]]], moves: dict[tuple[int, int], int]
    ) -> Table:
        """Return the observers' table after one more release."""
        sees = [party in who for who in self.observers]
        raw: dict[tuple[tuple[Hashable, ...], int], Vector] = {}
        for (views, c), mass in self._table.items():
            for r in range(len(rows[c][0])):
                vector = _times(mass, rows[c], r)
                if vector is None:
                    continue
                pairs = zip(views, sees, strict=True)
                key = tuple((v, r) if seen else v for v, seen in pairs), moves[c, r]
                raw[key] = _plus(raw.get(key), vector)
                _check_size(len(raw) * len(vector))
        merged = [_merged_views(raw, place) for place in range(len(sees))]
        table: Table = {}
        for (views, c), vector in raw.items():
            key = tuple(new[v] for new, v in zip(merged, views, strict=True)), c
            table[key] = _plus(table.get(key), vector)
        return table


def _merged_views(
    raw: dict[tuple[tuple[Hashable, ...], int], Vector], place: int
) -> dict[Hashable, int]:
    """Return a number for each view of one observer, equal where p(view, c, x) is proportional."""
    tables: dict[Hashable, dict[int, Vector]] = {}
    for (views, c), vector in raw.items():
        table = tables.setdefault(views[place], {})
        table[c] = _plus(table.get(c), vector)
    numbers: dict[Hashable, int] = {}
    result = {}
    for view, table in tables.items():
        classes = tuple(sorted(table))
        key = classes, _direction(q for c in classes for q in table[c])
        result[view] = numbers.setdefault(key, len(numbers))
    return result


def _check_size(size: int) -> None:
    if size > SIZE_LIMIT:
        raise ValidationError(
            f"ledger: what may have been released so far takes more than {SIZE_LIMIT} "
            "probabilities; ask for fewer outputs, or begin a ledger in realized mode"
        )


def _plus(one: Vector | None, other: Vector) -> Vector:
    return other if one is None else tuple(a + b for a, b in zip(one, other, strict=True))


def _times(mass: Vector, rows: list[list[fmpq]], r: int) -> Vector | None:
    vector = tuple(p * row[r] for p, row in zip(mass, rows, strict=True))
    return vector if any(q != 0 for q in vector) else None


def _direction(vector: Iterable[fmpq]) -> tuple[int, ...]:
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


def information(table: Iterable[Sequence[fmpq]]) -> tuple[float, float]:
    """Return proved ends of I(V; X) for the rows p(v, x); exactly 0 if V tells nothing."""
    merged: dict[tuple[int, ...], Vector] = {}
    for row in table:
        if any(q != 0 for q in row):
            key = _direction(row)
            merged[key] = _plus(merged.get(key), tuple(row))
    if len(merged) == 1:
        return 0.0, 0.0
    with balls.precision():
        ball = balls.mutual_information([[arb(q) for q in row] for row in merged.values()])
        return max(balls.round_down(ball), 0.0), max(balls.round_up(ball), 0.0)
