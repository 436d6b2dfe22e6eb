"""Datasets, queries, and how many contexts of a group of records lead to each value of a query.

A query is a function f of n records. It is read from a file as runs of equal records with the
contributions of their values to a total (vectors of integers, perhaps modulo m) and the place of
f's value for each total; or as a table with the place for each dataset.

A context of a group I of records is an assignment of values to all others. Contexts are counted,
not listed: the total of the others is distributed as a product of polynomials. Where an adversary
is known (`cvxleak.kernel.knowledge`), totals have further entries, and records that differ in these
are in different runs.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any, NamedTuple

from flint import fmpz_poly

from cvxleak.kernel.budget import charge, choices, few
from cvxleak.kernel.numbers import need
from cvxleak.kernel.reading import chosen, count, items, parts

__all__ = ["Run", "Space", "Total", "in_runs", "label", "read_query", "steps", "together"]

Total = tuple[int, ...]

MOST_RECORDS = 1 << 20
LONGEST = 1 << 22
"""Most totals that polynomials are for, from the least to the largest, and most of a table."""


class Run(NamedTuple):
    """Records that are alike: the contribution of each value, and how many records there are."""

    contributions: tuple[Total, ...]
    records: int


@dataclass(frozen=True)
class Space:
    """Datasets and a query.

    Attributes
    ----------
    stretches : tuple of (contributions, int)
        The records in order: how many of them in a row are alike.
    moduli : tuple of int
        Each entry of a total is taken modulo this, unless it is 0.
    place_of : mapping
        The place of the query's value at each total; of a table, at the dataset's number.
    values : tuple
        The query's values, as written.
    """

    stretches: tuple[tuple[tuple[Total, ...], int], ...]
    moduli: tuple[int, ...]
    place_of: Mapping[Total, int]
    values: tuple[Any, ...]

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """All records that are alike together, in the order of the first of them."""
        found: Counter[tuple[Total, ...]] = Counter()
        for own, n in self.stretches:
            found[own] += n
        return tuple(Run(own, n) for own, n in found.items())

    @cached_property
    def each(self) -> list[tuple[Total, ...]]:
        """What each record contributes."""
        return [own for own, n in self.stretches for _ in range(n)]

    @property
    def labels(self) -> tuple[str, ...]:
        """The query's values, as texts."""
        return tuple(map(label, self.values))

    @cached_property
    def width(self) -> int:
        """How many entries of a total the query's value depends on."""
        return len(next(iter(self.place_of)))

    @property
    def records(self) -> int:
        """How many records there are."""
        return sum(n for _, n in self.stretches)

    def run_of(self, record: int) -> int:
        """Return the number of a record's run."""
        return self._places[self.each[record]]

    @cached_property
    def _places(self) -> dict[tuple[Total, ...], int]:
        """The number of each run, by what its records contribute."""
        return {run.contributions: i for i, run in enumerate(self.runs)}

    def groups(self, size: int, *, ordered: bool = False) -> list[tuple[int, ...]]:
        """Return, as runs, one group of so many records of each kind.

        Records of one run are interchangeable: exchanging two changes neither f nor, averaged over
        the exchange, the largest leakage about a group. Where the order of a group's records
        matters, kinds are all orders in which its runs follow one another.
        """
        need(1 <= size <= self.records, "a group that is empty, or larger than the dataset")
        kinds = self.stretches if ordered else self.runs
        each = [self._places[own] for own, n in kinds for _ in range(min(n, size))]
        charge("bytes of numbers", 8 * (size + 16) * choices(len(each), size))
        return sorted(set(combinations(each, size)))

    def values_of(self, group: Sequence[int]) -> int:
        """Return how many joint values a group has."""
        # By runs: a million records' product would take minutes.
        return math.prod(len(self.runs[i].contributions) ** n for i, n in Counter(group).items())

    def contexts(
        self, group: Sequence[int], name: Callable[..., Hashable] | None = None
    ) -> list[dict[tuple[int, Any], int]]:
        """Return, for each joint value of a group of runs, place of f's value and name -> contexts.

        `name`, if there is one, is called with what each record of the group adds to the total,
        with what all others do, and with the total. Without a name contexts are left out.
        """
        others = self.totals(group)
        charge("ball operations", self.values_of(group) * len(others))
        found = []
        for joint in product(*(self.runs[i].contributions for i in group)):
            counts: Counter[tuple[int, Any]] = Counter()
            for rest, n in others.items():
                whole = self.add(rest, *joint)
                named = () if name is None else name(joint, rest, whole)
                if named is not None:
                    counts[self.place(whole), named] += n
            found.append(dict(counts))
            charge("bytes of numbers", 256 * (1 + len(counts)))
        return found

    def place(self, total: Total) -> int:
        """Return the place of the query's value at a total, which may have further entries."""
        own = total[: self.width]
        need(own in self.place_of, "a total without a value")
        return self.place_of[own]

    def add(self, *totals: Total) -> Total:
        """Return a sum of totals."""
        sums = map(sum, zip(*totals, strict=True))
        return tuple(x % m if m else x for x, m in zip(sums, self.moduli, strict=True))

    def totals(self, group: Sequence[int] = ()) -> dict[Total, int]:
        """Return how many assignments of values to the records outside a group give each total."""
        used = Counter(group)
        found: dict[Total, int] = {(0,) * len(self.moduli): 1}
        for i, run in enumerate(self.runs):
            need(run.records >= used[i], "a group with more records of a run than it has")
            found = self.convolve(found, self._power(run, run.records - used[i]))
        return found

    def convolve(self, one: Mapping[Total, int], other: Mapping[Total, int]) -> dict[Total, int]:
        """Return the numbers of sums of two independent totals."""
        a, b = (max(counts.values()).bit_length() for counts in (one, other))
        charge("ball operations", len(one) * len(other) * (1 + (a + b >> 12) + (a * b >> 20)))
        found: Counter[Total] = Counter()
        for s, m in one.items():
            for t, n in other.items():
                found[self.add(s, t)] += m * n
            few(len(found), LONGEST, "totals")
        return found

    def _power(self, run: Run, n: int) -> dict[Total, int]:
        """Return the counts of totals of n records of a run; on a line by a polynomial."""
        origin, step, places = _line(run.contributions)
        length = max(places) * n if places else LONGEST
        if n < 2:
            return Counter(run.contributions) if n else {(0,) * len(self.moduli): 1}
        if length >= LONGEST:
            half = self._power(run, n // 2)
            return self.convolve(self.convolve(half, half), self._power(run, n % 2))
        # Each of the numbers has up to n log2 of the values' number bits.
        charge("bytes of numbers", length * n * len(places).bit_length() // 8)
        one = Counter(places)
        coefficients = (fmpz_poly([one[x] for x in range(max(places) + 1)]) ** n).coeffs()
        found: Counter[Total] = Counter()
        for x, m in enumerate(coefficients):
            if m:
                total = (n * o + x * d for o, d in zip(origin, step, strict=True))
                found[self.add(tuple(total))] += int(m)
        return found


def _line(totals: Sequence[Total]) -> tuple[Total, Total, list[int]]:
    """Return a total, a step, and how many steps lead to each; none of these if some do not."""
    origin = min(totals)
    away = [tuple(y - x for x, y in zip(origin, total, strict=True)) for total in totals]
    divisor = max(math.gcd(*max(away)), 1)
    step = tuple(x // divisor for x in max(away))
    places = [next((x // d for x, d in zip(one, step, strict=True) if d), 0) for one in away]
    fits = all(
        tuple(place * d for d in step) == one for place, one in zip(places, away, strict=True)
    )
    return origin, step, places if fits else []


# Reading --------------------------------------------------------------------------------------


def read_query(data: Any) -> Space:
    """Return the space and query of a file's problem."""
    if chosen(data, "a query", ("additive", "table")) == "table":
        return _table(data)
    keys = {"kind", "space", "contributions", "totals", "values", "modulus"}
    parts(data, keys, "an additive query")
    modulus = 0 if data["modulus"] is None else count(data["modulus"], "modulus", 1)
    alphabets = _alphabets(data["space"])
    contributions = [
        (tuple(_total(part, modulus) for part in items(own, "contributions")), n)
        for own, n in in_runs(data["contributions"], "contributions")
    ]
    pairs = list(together(alphabets, contributions))
    fits = all(len(own) == size for (size, own), _ in pairs)
    need(fits, "a contribution for each value is needed")
    stretches = tuple((own, n) for (_, own), n in pairs)
    width = {len(total) for own, _ in stretches for total in own}
    need(len(width) == 1, "contributions of different lengths")
    totals = [_total(total, modulus) for total in items(data["totals"], "totals")]
    need(len(set(totals)) == len(totals), "a total twice")
    need({len(total) for total in totals} == width, "totals of another length than contributions")
    values = {label(value): value for value in items(data["values"], "values", len(totals))}
    place = {name: i for i, name in enumerate(values)}
    named = zip(totals, data["values"], strict=True)
    place_of = {total: place[label(value)] for total, value in named}
    return Space(stretches, (modulus,) * width.pop(), place_of, tuple(values.values()))


def _table(data: Mapping[str, Any]) -> Space:
    """Return a query that lists its value for each dataset, by the dataset's number."""
    parts(data, {"kind", "space", "table", "values"}, "a query by a table")
    alphabets = _alphabets(data["space"])
    need(math.prod(size**n for size, n in alphabets) <= LONGEST, "a table of too many datasets")
    sizes = [size for size, n in alphabets for _ in range(n)]
    values = items(data["values"], "values")
    need(len(set(map(label, values))) == len(values), "a value of the query twice")
    table = items(data["table"], "table", math.prod(sizes))
    places = [count(place, "table", below=len(values)) for place in table]
    need(set(places) == set(range(len(values))), "a value that the query never takes")
    found = [(tuple((a * step,) for a in range(size)), 1) for size, step in steps(sizes)]
    return Space(tuple(found), (0,), {(i,): x for i, x in enumerate(places)}, tuple(values))


def steps(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return each size, and by how much the number of a joint value grows with the next value."""
    left, found = math.prod(sizes), []
    for size in sizes:
        left //= size
        found.append((size, left))
    return found


def _alphabets(data: Any) -> list[tuple[int, int]]:
    """Return the number of values of the records, in runs."""
    found = []
    for alphabet, n in in_runs(parts(data, {"alphabets"}, "the space")["alphabets"], "alphabets"):
        labels = [label(value) for value in items(alphabet, "an alphabet")]
        need(labels and len(set(labels)) == len(labels), "an alphabet without values, or one twice")
        charge("records' values", n * len(labels))
        found.append((len(labels), n))
    need(0 < sum(n for _, n in found) <= MOST_RECORDS, "no records, or too many records")
    return found


def in_runs(data: Any, what: str) -> Iterable[tuple[Any, int]]:
    """Yield the items of a list of [item, count] pairs, and for how many records in a row."""
    for run in items(data, what):
        item, n = items(run, what, 2)
        yield item, count(n, what, 1, MOST_RECORDS + 1)


def together(*lists: Sequence[tuple[Any, int]]) -> Iterator[tuple[tuple[Any, ...], int]]:
    """Yield what lists of the same records say, and of how many records in a row."""
    waiting = [list(one)[::-1] for one in lists]
    while all(waiting):
        n = min(one[-1][1] for one in waiting)
        yield tuple(one[-1][0] for one in waiting), n
        for one in waiting:
            item, left = one.pop()
            if left > n:
                one.append((item, left - n))
    need(not any(waiting), "lists that are of different numbers of records")


def _total(data: Any, modulus: int) -> Total:
    total = tuple(items(data, "a total"))
    need(total and all(type(x) is int and abs(x) < 1 << 62 for x in total), "a total: integers")
    return tuple(x % modulus for x in total) if modulus else total


def label(value: Any) -> str:
    """Return a text that is the same for equal labels."""
    # JSON would write a float that carries a number without that.
    return str(value) if isinstance(value, float) else json.dumps(value)
