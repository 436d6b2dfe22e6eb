r"""Claims of kind ``product-leakage``: the largest leakage about a record if all are independent.

The problem is {"mechanism", "record": i, or null for all records} and what is known of the records'
distributions:

- "entropy_floor": b, for all product priors with H(X) >= b; or "laws", one of
- {"vertices": [[distributions, how many records in a row], ...]}: each record's distribution is a
  mixture of these;
- {"least_probability": x}: each other record has each of its values with probability x at least;
- {"record_floor": h}: each other record is binary and has H(X_j) >= h.

With the last two the distribution of record i is arbitrary. The term of the lower end is {"rule":
"point", "record", "weights": [[weights on the vertices, how many records in a row], ...]}, where
the vertices are unit vectors if only a floor is known. The terms of the upper end are

- with "laws", {"rule": "corners", "inputs": for each sort of audited record a packed table, with
  weights on the vertices of its own distribution for each case};
- with a floor, {"rule": "contexts", "inputs": for each sort of audited record a packed table, with
  a distribution for each context of the others}, and {"rule": "audit", "groups"}: the groups' terms
  of ``record-leakage`` at the same floor, which covers product priors.

With a record floor both have "least", too: H(X_j) >= h says that both probabilities are x or more,
for the x < 1/2 with h(x) = h. A witness gives an x with h(x) >= h, an upper end one with h(x) <= h.

CORNER. For a fixed distribution of record i, I(X_i;Y) is convex in the channel W from X_i to Y,
which is affine in the distribution of each other record. So is its largest value over the
distributions of record i. Hence it is largest with all other records at vertices; a *case* says how
many of the records that are alike are at each vertex. In a case,

    I(p, W) = sum_a p_a D(W_a || s) - D(pW || s) <= max_v sum_a v_a D(W_a || s)

over the vertices v of record i, for every distribution s (Kemperman), here that of a mixture of the
vertices; and I <= H(X_i) <= log k. If only a floor on H(X) is known, which excludes priors but adds
none, the vertices are unit vectors: the others are known, and contexts that give the same row for
each value of X_i are one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

from flint import arb, fmpq

from cvxleak.kernel.budget import charge
from cvxleak.kernel.gains import Shannon
from cvxleak.kernel.leakage import RecordLeakage, read_mechanism
from cvxleak.kernel.lemmas import divergence
from cvxleak.kernel.numbers import dot, largest, law, log, need, proved, rational, total, xlogx
from cvxleak.kernel.reading import array, count, end_term, items, parts
from cvxleak.kernel.space import Space, Total
from cvxleak.kernel.terms import Leaf
from cvxleak.kernel.view import Row

__all__ = ["ProductLeakage"]

Law = Sequence[fmpq]

KNOWN = {"vertices", "least_probability", "record_floor"}

MOST_CASES = 1 << 17


@dataclass(frozen=True)
class Kind:
    """Records in a row that are alike: contributions, vertices of their distributions, number.

    `own` are the vertices of such a record's distribution if it is the one that is attacked.
    """

    contributions: tuple[Total, ...]
    vertices: tuple[Law, ...]
    own: tuple[Law, ...]
    records: int


@dataclass(frozen=True)
class ProductLeakage:
    """A mechanism and what is known of each record's distribution."""

    space: Space
    rows: Mapping[Any, Row]
    record: int | None
    floor: fmpq
    laws: Mapping[str, Any] | None
    problem: Mapping[str, Any]

    @classmethod
    def read(cls, problem: Any) -> ProductLeakage:
        """Return the statement of a file."""
        known = "laws" if isinstance(problem, Mapping) and "laws" in problem else "entropy_floor"
        parts(problem, {"mechanism", "record", known}, "the problem")
        space, rows = read_mechanism(problem["mechanism"])
        need(all(row.hi is None for row in rows.values()), "a set of channels")
        record = problem["record"]
        if record is not None:
            count(record, "record", below=space.records)
        floor = rational(problem.get("entropy_floor", 0))
        found = cls(space, rows, record, floor, problem.get("laws"), problem)
        if found.laws is not None:
            fits = isinstance(found.laws, Mapping) and len(found.laws) == 1
            need(fits and set(found.laws) <= KNOWN, "laws: what is known of them")
            if "record_floor" not in found.laws:
                found.kinds()
        return found

    def upper(self, data: Any, leaf: Leaf | None = None) -> arb:
        """Return the bound of a term: CORNER, or an audit without independence."""
        need(isinstance(data, dict) and "rule" in data, "an upper end: expected a rule")
        if data["rule"] == "audit":
            parts(data, {"rule", "groups"}, "an upper end")
            need(self.laws is None, "audit: a floor on the sum is needed")
            groups = None if self.record is None else [[self.record]]
            whole = {"mechanism": self.problem["mechanism"], "size": 1, "records": groups}
            whole["entropy_floor"] = self.problem["entropy_floor"]
            term = {"rule": "max", "groups": data["groups"]}
            return RecordLeakage.read(whole).upper(term, leaf)
        rule = "contexts" if self.laws is None else "corners"
        end_term(data, rule, {"inputs"}, "an upper end", {"least"})
        kinds = self.kinds(self._least(data, below=True))
        audited = self.audited(kinds)
        tables = items(data["inputs"], "inputs", len(audited))
        pairs = zip(audited, tables, strict=True)
        return largest(self._above(kinds, i, table) for i, table in pairs)

    def lower(self, data: Any) -> arb:
        """Return I(X_i;Y) of the product prior that the file names."""
        end_term(data, "point", {"record", "weights"}, "a lower end", {"least"})
        record = count(data["record"], "record", below=self.space.records)
        need(self.record in (None, record), "a record that is not audited")
        kinds = self.kinds(self._least(data, below=False))
        weights = _in_runs(items(data["weights"], "weights"), self.space.records)
        found, own = {self.space.zero: arb(1)}, None
        entropy = arb(0)
        for kind, given, records, attacked in self._pieces(kinds, weights, record):
            p = _mixture(given, kind.own if attacked else kind.vertices)
            entropy += records * _entropy(p)
            if attacked:
                own = (kind.contributions, p)
            else:
                one = _of_one(kind.contributions, p)
                found = self.space.convolve(found, self.space.power(one, records))
        assert own is not None
        if self.laws is None:
            need(entropy >= arb(self.floor), "the entropy is not proved to reach the floor")
        contributions, p = own
        joint = [
            [arb(x) * q for q in row]
            for x, row in zip(p, self._channel(contributions, found), strict=True)
        ]
        gain, seen = Shannon(), zip(*joint, strict=True)
        return total(gain.value(column) for column in seen) + _entropy(p)

    # What is known --------------------------------------------------------------------------------

    def kinds(self, least: fmpq | None = None) -> list[Kind]:
        """Return the records in a row that are alike, in order."""
        runs = [(run.contributions, run.records) for run in self.space.runs]
        if self.laws is None or "vertices" not in self.laws:
            sizes = [len(own) for own, _ in runs]
            hulls = [(self._box(size, least), _simplex(size)) for size in sizes]
            return [Kind(own, *hull, n) for (own, n), hull in zip(runs, hulls, strict=True)]
        given = _in_runs(items(self.laws["vertices"], "vertices"), self.space.records)
        found = []
        for (own, laws), records in _cut(runs, given):
            vertices = tuple(_law(one, len(own)) for one in items(laws, "vertices"))
            need(vertices, "no vertex")
            found.append(Kind(own, vertices, vertices, records))
        return found

    def _box(self, size: int, least: fmpq | None) -> tuple[Law, ...]:
        """Return the vertices of another record's distribution."""
        if self.laws is None:
            return _simplex(size)
        if "least_probability" in self.laws:
            least = rational(self.laws["least_probability"])
        else:
            need(size == 2, "a record floor needs records with two values")
        need(least is not None and 0 <= least and size * least <= 1, "least: a probability")
        assert least is not None
        top = 1 - (size - 1) * least
        if top == least:
            return ((least,) * size,)
        return tuple(tuple(top if a == b else least for b in range(size)) for a in range(size))

    def _least(self, data: Mapping[str, Any], *, below: bool) -> fmpq | None:
        """Return the least probability of a record floor, once it is on the right side."""
        floored = self.laws is not None and "record_floor" in self.laws
        need(floored == ("least" in data), "least: needed for a record floor, and only there")
        if self.laws is None or not floored:
            return None
        least, floor = proved(data["least"]), arb(rational(self.laws["record_floor"]))
        need(0 <= least and 2 * least <= 1, "least: from 0 to 1/2")
        entropy = _entropy([least, 1 - least])
        fits = entropy <= floor if below else entropy >= floor
        need(fits, "least: on the wrong side of the record floor")
        return least

    # Cases ----------------------------------------------------------------------------------------

    def audited(self, kinds: Sequence[Kind]) -> list[int]:
        """Return the places of the kinds of records that are audited, one of each sort."""
        if self.record is not None:
            ends = list(_ends(kind.records for kind in kinds))
            return [next(i for i, end in enumerate(ends) if self.record < end)]
        first: dict[Any, int] = {}
        for i, kind in enumerate(kinds):
            first.setdefault((kind.contributions, kind.vertices), i)
        return list(first.values())

    def _above(self, kinds: Sequence[Kind], audited: int, data: Any) -> arb:
        """Return the largest bound of a case, or of a context (CORNER)."""
        own = kinds[audited].own
        table = array(data, "inputs", "f", len(own))
        if self.laws is None:
            channels: Any = self.contexts(kinds[audited].contributions)
            number = len(channels)
        else:
            others = _others(kinds, audited)
            sizes = [(n, len(kind.vertices)) for kind, n in others]
            number = math.prod(math.comb(n + v - 1, n) for n, v in sizes)
            channels = self.cases(kinds, audited)
        need(len(table) == number <= MOST_CASES, f"inputs: {number} cases need a row each")
        worst = arb(0)
        for weights, rows in zip(table.tolist(), channels, strict=True):
            x = law([proved(w) for w in weights], "inputs")
            charge("ball operations", 8 * len(rows) * len(rows[0]))
            mixture = [arb(p) for p in _mixture_of(x, own)]
            log_s = [log(dot(mixture, column)) for column in zip(*rows, strict=True)]
            far = [divergence(row, log_s) for row in rows]
            worst = worst.max(largest(_mean(v, far) for v in own))
        return worst.min(log(arb(len(own[0]))))

    def contexts(self, contributions: Sequence[Total]) -> list[list[Sequence[arb]]]:
        """Return the channels from a record to the output if all others are known, each once.

        They are in the order of the places of the query's values.
        """
        run = next(i for i, r in enumerate(self.space.runs) if r.contributions == contributions)
        others = self.space.totals((run,))
        charge("ball operations", len(others) * len(contributions))
        add, place = self.space.add, self.space.place
        lines = {tuple(place(add(t, own)) for own in contributions) for t in others}
        return [[self.rows[x].lo for x in line] for line in sorted(lines)]

    def cases(self, kinds: Sequence[Kind], audited: int) -> Iterator[list[list[arb]]]:
        """Yield the channel from a record to the output in each case.

        The order is that of the numbers of records at the first vertex, the second, ..., of each
        kind in turn.
        """
        ways = [
            [self._together(kind, numbers) for numbers in _compositions(n, len(kind.vertices))]
            for kind, n in _others(kinds, audited)
        ]
        for chosen in product(*ways):
            found = {self.space.zero: arb(1)}
            for one in chosen:
                found = self.space.convolve(found, one)
            yield self._channel(kinds[audited].contributions, found)

    def _together(self, kind: Kind, numbers: Sequence[int]) -> dict[Total, arb]:
        found = {self.space.zero: arb(1)}
        for vertex, n in zip(kind.vertices, numbers, strict=True):
            one = _of_one(kind.contributions, vertex)
            found = self.space.convolve(found, self.space.power(one, n))
        return found

    def _channel(
        self, contributions: Sequence[Total], totals: Mapping[Total, arb]
    ) -> list[list[arb]]:
        """Return the channel from a record to the output."""
        found = []
        for own in contributions:
            at: dict[int, arb] = {}
            for t, x in totals.items():
                place = self.space.place(self.space.add(t, own))
                at[place] = at.get(place, arb(0)) + x
            rows = [self.rows[place].lo for place in at]
            charge("ball operations", len(totals) + len(rows) * len(rows[0]))
            found.append([dot(list(at.values()), column) for column in zip(*rows, strict=True)])
        return found

    def _pieces(
        self, kinds: Sequence[Kind], weights: Sequence[tuple[Any, int]], record: int
    ) -> Iterator[tuple[Kind, Any, int, bool]]:
        """Yield records in a row that have one distribution, the attacked one alone."""
        single = [(False, record), (True, 1), (False, self.space.records - record - 1)]
        attack = [(here, n) for here, n in single if n]
        same = [
            ((kind, here), n) for (kind, here), n in _cut([(k, k.records) for k in kinds], attack)
        ]
        for ((kind, here), given), n in _cut(same, weights):
            yield kind, given, n, here


def _others(kinds: Sequence[Kind], audited: int) -> list[tuple[Kind, int]]:
    """Return the other records by kind; those in several rows that are alike count together."""
    found: dict[Any, tuple[Kind, int]] = {}
    for i, kind in enumerate(kinds):
        key, n = (kind.contributions, kind.vertices), kind.records - (i == audited)
        if n:
            found[key] = kind, found.get(key, (kind, 0))[1] + n
    return list(found.values())


def _cut(one: Sequence[tuple[Any, int]], other: Sequence[tuple[Any, int]]) -> list[tuple[Any, int]]:
    """Return pairs of two lists of runs over the same records, as runs."""
    ends = [dict(zip(_ends(n for _, n in runs), runs, strict=True)) for runs in (one, other)]
    both = sorted({*ends[0], *ends[1]})
    found = []
    for start, end in pairwise([0, *both]):
        at = [next(run[0] for stop, run in own.items() if start < stop) for own in ends]
        found.append(((at[0], at[1]), end - start))
    return found


def _ends(sizes: Any) -> Iterator[int]:
    end = 0
    for n in sizes:
        end += n
        yield end


def _in_runs(data: Sequence[Any], records: int) -> list[tuple[Any, int]]:
    """Return [item, count] pairs that stand for so many records in a row."""
    found = [items(run, "a run", 2) for run in data]
    runs = [(item, count(n, "a run", 1, records + 1)) for item, n in found]
    need(sum(n for _, n in runs) == records, f"{records} records are needed")
    return runs


def _law(data: Any, size: int) -> Law:
    return tuple(law(items(data, "a distribution", size), "a distribution"))


def _of_one(contributions: Sequence[Total], p: Law) -> dict[Total, arb]:
    """Return the distribution of what one record adds to the total."""
    found: dict[Total, arb] = {}
    for t, x in zip(contributions, p, strict=True):
        if x:
            found[t] = found.get(t, arb(0)) + arb(x)
    return found


def _simplex(size: int) -> tuple[Law, ...]:
    return tuple(tuple(fmpq(int(a == b)) for b in range(size)) for a in range(size))


def _mixture(data: Any, vertices: Sequence[Law]) -> list[fmpq]:
    """Return the mixture of vertices with the weights of a file."""
    weights = [proved(x) for x in items(data, "weights", len(vertices))]
    return _mixture_of(law(weights, "weights"), vertices)


def _mixture_of(x: Law, vertices: Sequence[Law]) -> list[fmpq]:
    return [_mean(x, column) for column in zip(*vertices, strict=True)]


def _mean(weights: Law, values: Sequence[Any]) -> Any:
    """Return a mean; values of weight 0 may be anything."""
    return total(x * w for w, x in zip(weights, values, strict=True) if w)


def _entropy(p: Law) -> arb:
    return -total(xlogx(arb(x)) for x in p)


def _compositions(number: int, parts_: int) -> Iterator[tuple[int, ...]]:
    if parts_ == 1:
        yield (number,)
        return
    for first in range(number + 1):
        for rest in _compositions(number - first, parts_ - 1):
            yield (first, *rest)
