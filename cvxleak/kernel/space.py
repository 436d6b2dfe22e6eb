"""Datasets, queries, and how many contexts of a group of records lead to each value of a query.

A query is a function f of n records. It is read from a file as runs of equal records with the
contributions of their values to a total (vectors of integers, perhaps modulo m) and the place of
f's value for each total; or as a table with the place for each dataset.

A context of a group I of records is an assignment of values to all others. Contexts are counted,
not listed: the total of the others is distributed as a product of polynomials.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise, product
from typing import Any

from flint import fmpz_poly

from cvxleak.kernel.budget import charge
from cvxleak.kernel.numbers import RefusedError, need
from cvxleak.kernel.reading import count, items, parts

__all__ = ["Run", "Space", "Total", "label", "read_query"]

Total = tuple[int, ...]

MOST_RECORDS = 1 << 20
LONGEST = 1 << 22
"""Longest polynomial in which totals are counted."""


@dataclass(frozen=True)
class Run:
    """Records that are alike: the contribution of each value, and how many records there are."""

    contributions: tuple[Total, ...]
    records: int


@dataclass(frozen=True)
class Space:
    """Datasets and a query.

    Attributes
    ----------
    runs : tuple of Run
        The records, in order.
    modulus : int or None
        Totals are taken modulo this.
    place_of : mapping
        The place of the query's value at each total; of a table, at the dataset's number.
    labels : tuple of str
        The values that the query takes, as texts.
    """

    runs: tuple[Run, ...]
    modulus: int | None
    place_of: Mapping[Total, int]
    labels: tuple[str, ...]

    @property
    def records(self) -> int:
        """How many records there are."""
        return sum(run.records for run in self.runs)

    def run_of(self, record: int) -> int:
        """Return the number of a record's run."""
        for i, run in enumerate(self.runs):
            if record < run.records:
                return i
            record -= run.records
        raise RefusedError("no such record")

    def groups(self, size: int) -> list[tuple[int, ...]]:
        """Return, as runs, one group of so many records of each kind.

        Records of one run are interchangeable: exchanging two changes neither f nor, averaged over
        the exchange, the largest leakage about a group.
        """
        need(1 <= size <= self.records, "a group that is empty, or larger than the dataset")
        each = [i for i, run in enumerate(self.runs) for _ in range(min(run.records, size))]
        charge("ball operations", math.comb(len(each), size))
        return sorted(set(combinations(each, size)))

    def values_of(self, group: Sequence[int]) -> int:
        """Return how many joint values a group has."""
        return math.prod(len(self.runs[i].contributions) for i in group)

    def contexts(self, group: Sequence[int]) -> list[dict[int, int]]:
        """Return, for each joint value of a group of runs, place of f's value -> contexts."""
        others = self.totals(group)
        own = self.values_of(group)
        charge("ball operations", own * len(others))
        found = []
        for joint in product(*(self.runs[i].contributions for i in group)):
            counts: Counter[int] = Counter()
            for total, n in others.items():
                counts[self.place(self.add(total, *joint))] += n
            found.append(dict(counts))
        return found

    def place(self, total: Total) -> int:
        """Return the place of the query's value at a total."""
        need(total in self.place_of, f"a total without a value: {total}")
        return self.place_of[total]

    def add(self, *totals: Total) -> Total:
        """Return a sum of totals."""
        sums = map(sum, zip(*totals, strict=True))
        return tuple(x if self.modulus is None else x % self.modulus for x in sums)

    def totals(self, group: Sequence[int] = ()) -> dict[Total, int]:
        """Return how many assignments of values to the records outside a group give each total."""
        used = Counter(group)
        found: dict[Total, int] = {self.zero: 1}
        for i, run in enumerate(self.runs):
            need(run.records >= used[i], "a group with more records of a run than it has")
            found = self.convolve(found, self._power(run, run.records - used[i]))
        return found

    @property
    def zero(self) -> Total:
        """The empty total."""
        return (0,) * len(self.runs[0].contributions[0])

    def convolve(self, one: Mapping[Total, Any], other: Mapping[Total, Any]) -> dict[Total, Any]:
        """Return the numbers (or weights) of sums of two independent totals."""
        charge("ball operations", len(one) * len(other))
        found: dict[Total, Any] = {}
        for s, m in one.items():
            for t, n in other.items():
                u = self.add(s, t)
                found[u] = found[u] + m * n if u in found else m * n
        return found

    def power(self, one: Mapping[Total, Any], n: int) -> dict[Total, Any]:
        """Return the numbers (or weights) of sums of n independent totals of one kind."""
        found: dict[Total, Any] = {self.zero: 1}
        square = dict(one)
        while n:
            if n & 1:
                found = self.convolve(found, square)
            n >>= 1
            if n:
                square = self.convolve(square, square)
        return found

    def _power(self, run: Run, n: int) -> dict[Total, int]:
        """Return the counts of totals of n records of a run; of one integer by a polynomial."""
        one = Counter(run.contributions)
        least = min(run.contributions)
        length = (max(one)[0] - least[0]) * n if len(least) == 1 else LONGEST
        if length >= LONGEST or n < 2:
            return self.power(one, n)
        # Each of the numbers has up to n log2 of the values' number bits.
        charge("bytes of numbers", length * n * len(run.contributions).bit_length() // 8)
        coefficients = [one[(x,)] for x in range(least[0], max(one)[0] + 1)]
        found: Counter[Total] = Counter()
        for x, m in enumerate((fmpz_poly(coefficients) ** n).coeffs()):
            if m:
                found[self.add((x + n * least[0],))] += int(m)
        return dict(found)


# Reading --------------------------------------------------------------------------------------


def read_query(data: Any) -> Space:
    """Return the space and query of a file's problem."""
    need(isinstance(data, Mapping) and "kind" in data, "a query: expected an object with its kind")
    if data["kind"] == "table":
        return _table(data)
    parts(
        data, {"kind", "space", "contributions", "totals", "values", "modulus"}, "an additive query"
    )
    need(data["kind"] == "additive", f"no such query: {data['kind']!r:.40}")
    modulus = None if data["modulus"] is None else count(data["modulus"], "modulus", 1)
    alphabets = _alphabets(data["space"])
    contributions = [
        (tuple(_total(part, modulus) for part in items(own, "contributions")), n)
        for own, n in _runs(data["contributions"], "contributions")
    ]
    runs = _joined(alphabets, contributions)
    width = {len(total) for run in runs for total in run.contributions}
    need(len(width) == 1, "contributions of different lengths")
    totals = [_total(total, modulus) for total in items(data["totals"], "totals")]
    need(len(set(totals)) == len(totals), "a total twice")
    names = [label(value) for value in items(data["values"], "values", len(totals))]
    place = {name: i for i, name in enumerate(dict.fromkeys(names))}
    place_of = dict(zip(totals, (place[n] for n in names), strict=True))
    return Space(runs, modulus, place_of, tuple(place))


def _table(data: Mapping[str, Any]) -> Space:
    """Return a query that lists its value for each dataset, as a function of the number of it."""
    parts(data, {"kind", "space", "table", "values"}, "a query by a table")
    sizes = [size for size, n in _alphabets(data["space"]) for _ in range(n)]
    need(math.prod(sizes) <= LONGEST, "a table of too many datasets")
    values = tuple(map(label, items(data["values"], "values")))
    need(len(set(values)) == len(values), "a value of the query twice")
    table = items(data["table"], "table", math.prod(sizes))
    places = [count(place, "table", below=len(values)) for place in table]
    need(set(places) == set(range(len(values))), "a value that the query never takes")
    runs, step = [], math.prod(sizes)
    for size in sizes:
        step //= size
        runs.append(Run(tuple((a * step,) for a in range(size)), 1))
    return Space(tuple(runs), None, {(i,): p for i, p in enumerate(places)}, values)


def _alphabets(data: Any) -> list[tuple[int, int]]:
    """Return the number of values of the records, in runs."""
    found = []
    for alphabet, n in _runs(parts(data, {"alphabets"}, "the space")["alphabets"], "alphabets"):
        labels = [label(value) for value in items(alphabet, "an alphabet")]
        need(labels and len(set(labels)) == len(labels), "an alphabet without values, or one twice")
        charge("records' values", n * len(labels))
        found.append((len(labels), n))
    need(sum(n for _, n in found) <= MOST_RECORDS, "too many records")
    return found


def _runs(data: Any, what: str) -> Iterable[tuple[Any, int]]:
    for run in items(data, what):
        item, n = items(run, what, 2)
        yield item, count(n, what, 1, MOST_RECORDS + 1)


def _joined(
    alphabets: Sequence[tuple[int, int]], contributions: Sequence[tuple[tuple[Total, ...], int]]
) -> tuple[Run, ...]:
    """Return runs of records that agree in both; each list counts the same records."""
    need(
        alphabets and sum(n for _, n in alphabets) == sum(n for _, n in contributions),
        "the alphabets and the contributions are of different numbers of records",
    )
    ends = sorted({*_ends(alphabets), *_ends(contributions)})
    found = []
    for start, end in pairwise([0, *ends]):
        size, own = _at(alphabets, start), _at(contributions, start)
        need(len(own) == size, "a contribution for each value is needed")
        found.append(Run(own, end - start))
    return tuple(found)


def _ends(runs: Sequence[tuple[Any, int]]) -> Iterable[int]:
    return accumulate(n for _, n in runs)


def _at(runs: Sequence[tuple[Any, int]], record: int) -> Any:
    return next(item for (item, _), end in zip(runs, _ends(runs), strict=True) if record < end)


def _total(data: Any, modulus: int | None) -> Total:
    total = tuple(items(data, "a total"))
    need(total and all(type(x) is int and abs(x) < 1 << 62 for x in total), "a total: integers")
    return total if modulus is None else tuple(x % modulus for x in total)


def label(value: Any) -> str:
    """Return a text that is the same for equal labels."""
    return json.dumps(value)
