r"""Claims of kind ``product-leakage``: the largest leakage about a record if all are independent.

The problem is {"mechanism", "record": i, or null for all records}, perhaps "gain" with "form", as
for ``record-leakage``, and what is known of the records' distributions:

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

A gain has no "inputs". With a record floor both ends have "least", too: H(X_j) >= h says that both
probabilities are x or more, for the x < 1/2 with h(x) = h. A witness gives an x with h(x) >= h, an
upper end one with h(x) <= h.

CORNER. For a fixed distribution of record i, I(X_i;Y) is convex in the channel W from X_i to Y,
which is affine in the distribution of each other record. So is its largest value over the
distributions of record i. Hence it is largest with all other records at vertices; a *case* says how
many of the records that are alike are at each vertex. In a case,

    I(p, W) = sum_a p_a D(W_a || s) - D(pW || s) <= max_v sum_a v_a D(W_a || s)

over the vertices v of record i, for every distribution s (Kemperman), here that of a mixture of the
vertices; and I <= H(X_i) <= log k. If only a floor on H(X) is known, which excludes priors but adds
none, the vertices are unit vectors: the others are known, and contexts that give the same row for
each value of X_i are one.

The same holds for a gain G = max_w <g_w, .>: sum_y G(p W_y) is convex in W, and G(p) does not
depend on it. Where action w is best without the output, G(p) = <g_w, p>, and both sum_y G(p W_y) -
T <g_w, p> and, where <g_w, p> > 0, the level sets of the quotient are convex in p. So either is
largest at a vertex of one of these regions. Written as a mixture of the vertices of record i, with
weights x, those that are positive at such a vertex are determined by sum x = 1 and by as many
actions that are equally good there, and best. An action that another one is at least as good as at
each of these vertices of record i, and better at some, is not best there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from operator import le
from typing import Any

import numpy as np
from flint import arb, fmpq, fmpq_mat

from cvxleak.kernel.budget import charge, choices, few
from cvxleak.kernel.cases import Array, Channels, Law, Others, gained, leaked, simplex
from cvxleak.kernel.gains import Gain, Shannon, read_gain
from cvxleak.kernel.leakage import RecordLeakage, formed, read_form, read_mechanism
from cvxleak.kernel.numbers import dot, largest, law, need, proved, rational, total, xlogx
from cvxleak.kernel.reading import array, chosen, count, end_term, fractions, items, parts
from cvxleak.kernel.space import Space, Total, in_runs, together
from cvxleak.kernel.terms import Leaf
from cvxleak.kernel.view import Row

__all__ = ["MOST_CASES", "Person", "ProductLeakage", "corners"]

KNOWN = [{"vertices"}, {"least_probability"}, {"record_floor"}]

MOST_CASES = 1 << 17

LEAST_PROBABILITY = fmpq(1, 1 << 900)
"""Positive probabilities of a vertex that are smaller are refused: floats have to hold them."""

MOST_SYSTEMS = 1 << 12
"""Most systems of equations that are solved for a gain's corners."""


@dataclass(frozen=True, eq=False)
class Person:
    """A record: what each value adds to the total, and the vertices of its distribution.

    `own` are the vertices if the record is the one that is attacked. Records that are alike are one
    object, so that a million of them are told apart without a look at their vertices.
    """

    contributions: tuple[Total, ...]
    vertices: tuple[Law, ...]
    own: tuple[Law, ...]


@dataclass(frozen=True)
class ProductLeakage:
    """A mechanism and what is known of each record's distribution."""

    space: Space
    rows: Mapping[Any, Row]
    record: int | None
    laws: Mapping[str, Any] | None
    times: Any
    problem: Mapping[str, Any]

    @classmethod
    def read(cls, problem: Any) -> ProductLeakage:
        """Return the statement of a file."""
        known = "laws" if isinstance(problem, Mapping) and "laws" in problem else "entropy_floor"
        parts(problem, {"mechanism", "record", known}, "the problem", {"gain", "form"})
        space, rows = read_mechanism(problem["mechanism"])
        need(all(row.hi is None for row in rows.values()), "a set of channels")
        record = problem["record"]
        if record is not None:
            count(record, "record", below=space.records)
        found = cls(space, rows, record, problem.get("laws"), read_form(problem), problem)
        if known == "laws":
            laws = problem["laws"]
            need(isinstance(laws, Mapping) and set(laws) in KNOWN, "laws: what is known of them")
            if "record_floor" not in laws:
                found.people()
        else:
            rational(problem["entropy_floor"])
        return found

    @cached_property
    def channels(self) -> Channels:
        """The channels from a record to the output."""
        return Channels(self.space, self.rows)

    @property
    def audit(self) -> dict[str, Any]:
        """The problem of ``record-leakage`` at the same floor."""
        groups = None if self.record is None else [[self.record]]
        whole = {key: value for key, value in self.problem.items() if key != "record"}
        return {**whole, "size": 1, "records": groups}

    def gain(self, k: int) -> Gain:
        """Return the gain about a record of k values."""
        return read_gain(self.problem["gain"], k) if "gain" in self.problem else Shannon()

    def upper(self, data: Any, leaf: Leaf | None = None) -> arb:
        """Return the bound of a term: CORNER, or an audit without independence."""
        if chosen(data, "an upper end", ("audit", "contexts", "corners"), "rule") == "audit":
            parts(data, {"rule", "groups"}, "an upper end")
            need(self.laws is None, "audit: a floor on the sum is needed")
            term = {"rule": "max", "groups": data["groups"]}
            return RecordLeakage.read(self.audit).upper(term, leaf)
        inputs = set() if "gain" in self.problem else {"inputs"}
        rule = "contexts" if self.laws is None else "corners"
        end_term(data, rule, inputs, "an upper end", {"least"})
        people = self.people(self._least(data, below=True))
        audited = self.audited(people)
        if not inputs:
            return largest(self._most_gained(people, i) for i in audited)
        tables = items(data["inputs"], "inputs", len(audited))
        pairs = zip(audited, tables, strict=True)
        return largest(self._most_leaked(people, i, table) for i, table in pairs)

    def lower(self, data: Any) -> arb:
        """Return the leakage or gain at the product prior that the file names."""
        end_term(data, "point", {"record", "weights"}, "a lower end", {"least"})
        record = count(data["record"], "record", below=self.space.records)
        need(self.record in (None, record), "a record that is not audited")
        people = self.people(self._least(data, below=False))
        weights = _in_runs(data["weights"], "weights", self.space)
        given = {id(one): one for one in weights}
        sorts = Counter(
            (person, id(one), i == record)
            for i, (person, one) in enumerate(zip(people, weights, strict=True))
        )
        entropy, others, attacked = arb(0), [], None
        for (person, which, here), n in sorts.items():
            own = person.own if here else person.vertices
            p = _mixture(law(fractions(given[which], "weights", len(own)), "weights"), own)
            entropy -= n * total(xlogx(arb(x)) for x in p)
            if here:
                attacked = person.contributions, p
            else:
                others.append((person.contributions, p, n))
        assert attacked is not None
        if self.laws is None:
            floor = arb(rational(self.problem["entropy_floor"]))
            need(entropy >= floor, "the entropy is not proved to reach the floor")
        contributions, p = attacked
        rows = self.channels.exactly(contributions, others)
        gain = self.gain(len(p))
        columns = zip(*([x * q for q in row] for x, row in zip(p, rows, strict=True)), strict=True)
        return formed(gain, self.times, total(map(gain.value, columns)), p)

    # What is known --------------------------------------------------------------------------------

    def people(self, least: fmpq | None = None) -> list[Person]:
        """Return what is known of each record; those that are alike are one object."""
        each = self.space.each
        given: Sequence[Any] = [None] * len(each)
        if self.laws is not None and "vertices" in self.laws:
            given = _in_runs(self.laws["vertices"], "vertices", self.space)
        made: dict[Any, Person] = {}
        for own, laws in zip(each, given, strict=True):
            if (own, id(laws)) not in made:
                fields = own, *self._hulls(len(own), laws, least)
                made[own, id(laws)] = made.setdefault(fields, Person(*fields))
        return [made[own, id(laws)] for own, laws in zip(each, given, strict=True)]

    def _hulls(
        self, size: int, given: Any, least: fmpq | None
    ) -> tuple[tuple[Law, ...], tuple[Law, ...]]:
        """Return the vertices of a record's distribution: of another one, of the attacked one."""
        if self.laws is not None and "vertices" in self.laws:
            rows = [items(one, "a distribution", size) for one in items(given, "vertices")]
            need(rows, "no vertex")
            vertices = tuple(tuple(law(row, "a distribution")) for row in rows)
            small = any(0 < x < LEAST_PROBABILITY for vertex in vertices for x in vertex)
            need(not small, "a distribution: a probability that no float holds well")
            return vertices, vertices
        whole = simplex(size)
        if self.laws is None:
            return whole, whole
        if "least_probability" in self.laws:
            least = rational(self.laws["least_probability"])
        else:
            need(size == 2, "a record floor needs records with two values")
        assert least is not None
        need(0 <= least and size * least <= 1, "least: a probability")
        room = 1 - size * least
        box = dict.fromkeys(tuple(least + room * x for x in vertex) for vertex in whole)
        return tuple(box), whole

    def _least(self, data: Mapping[str, Any], *, below: bool) -> fmpq | None:
        """Return the least probability of a record floor, once it is on the right side."""
        floored = self.laws is not None and "record_floor" in self.laws
        need(floored == ("least" in data), "least: needed for a record floor, and only there")
        if self.laws is None or not floored:
            return None
        least, floor = proved(data["least"]), arb(rational(self.laws["record_floor"]))
        need(0 <= least and 2 * least <= 1, "least: from 0 to 1/2")
        entropy = -xlogx(arb(least)) - xlogx(arb(1 - least))
        fits = entropy <= floor if below else entropy >= floor
        need(fits, "least: on the wrong side of the record floor")
        return least

    # Cases ----------------------------------------------------------------------------------------

    def audited(self, people: Sequence[Person]) -> list[int]:
        """Return the records that are audited, one of each sort."""
        if self.record is not None:
            return [self.record]
        first: dict[Person, int] = {}
        for i, person in enumerate(people):
            first.setdefault(person, i)
        return list(first.values())

    def others(self, people: Sequence[Person], audited: int) -> list[Others]:
        """Return the records that are not attacked, those that are alike together."""
        found = Counter(people)
        found[people[audited]] -= 1
        return [Others(one.contributions, one.vertices, n) for one, n in found.items() if n]

    def cases(self, people: Sequence[Person], audited: int) -> int:
        """Return how many cases there are."""
        if self.laws is None:
            return len(self.contexts(people[audited].contributions))
        numbers = ((one.records, len(one.vertices)) for one in self.others(people, audited))
        found = math.prod(choices(n + vertices - 1, n) for n, vertices in numbers)
        few(found, MOST_CASES, "cases of the other records")
        return found

    def blocks(self, people: Sequence[Person], audited: int) -> Iterator[Array]:
        """Yield the rows of a record in all cases or contexts, from below (`Channels.blocks`)."""
        own = people[audited].contributions
        if self.laws is None:
            each, n = np.array(self.contexts(own)), self.channels.at_once(own)
            yield from (self.channels.matrix[each[i : i + n]] for i in range(0, len(each), n))
        else:
            yield from self.channels.blocks(own, self.others(people, audited))

    def contexts(self, contributions: Sequence[Total]) -> list[tuple[int, ...]]:
        """Return what the query's value is for each value of a record, if all others are known."""
        run = next(i for i, r in enumerate(self.space.runs) if r.contributions == contributions)
        others = self.space.totals((run,))
        charge("ball operations", len(others) * len(contributions))
        add, place = self.space.add, self.space.place
        return sorted({tuple(place(add(t, own)) for own in contributions) for t in others})

    def _most_leaked(self, people: Sequence[Person], audited: int, data: Any) -> arb:
        """Return the largest bound of a case, or of a context (CORNER)."""
        own, number = people[audited].own, self.cases(people, audited)
        table = array(data, "inputs", "f", len(own)).astype(float)
        need(len(table) == number, f"inputs: {number} cases need a row each")
        need(bool(((table >= 0) & (table <= 1)).all()), "inputs: weights are from 0 to 1")
        worst, start = 0.0, 0
        for rows in self.blocks(people, audited):
            ends = leaked(rows, table[start : start + len(rows)], own)
            worst, start = max(worst, float(ends.max())), start + len(rows)
        need(math.isfinite(worst), "inputs: they give probability 0 to an output of their rows")
        return arb(worst).min(arb(len(own[0])).log())

    def _most_gained(self, people: Sequence[Person], audited: int) -> arb:
        """Return the largest gain of a case, or of a context."""
        own, _ = people[audited].own, self.cases(people, audited)
        gain = self.gain(len(own[0]))
        worst = max(
            float(gained(rows, p, gain, self.times).max())
            for rows in self.blocks(people, audited)
            for _, p in corners(gain, own)
        )
        need(math.isfinite(worst), "a gain that is too large")
        return arb(worst)


def corners(gain: Gain, vertices: Sequence[Law]) -> list[tuple[list[fmpq], list[fmpq]]]:
    """Return where a gain may be largest, as weights on vertices and as distributions (CORNER)."""
    need(gain.linear, "a gain that is not known to be the largest of a few linear functions")
    charge("ball operations", len(gain.linear) * len(vertices) * len(vertices[0]))
    table = [[dot(law, own) for law in vertices] for own in gain.linear]
    places, systems = range(len(vertices)), 0
    found: dict[tuple[fmpq, ...], None] = {}
    for support in (some for n in places for some in combinations(places, n + 1)):
        charge("ball operations", len(table) * len(support))
        rows = list(dict.fromkeys(tuple(row[v] for v in support) for row in table))
        charge("ball operations", len(rows) ** 2 * len(support))
        # Actions that are nowhere better than another one are not needed.
        kept = [one for one in rows if not any(one != x and all(map(le, one, x)) for x in rows)]
        systems += max(math.comb(len(kept), len(support)), 1)
        need(systems <= MOST_SYSTEMS, f"more than {MOST_SYSTEMS} systems of equations for a gain")
        for x in map(_solved, combinations(kept, len(support))):
            if x is not None and min(x) > 0:
                at = dict(zip(support, x, strict=True))
                found.setdefault(tuple(at.get(v, fmpq(0)) for v in places))
    return [(list(x), _mixture(x, vertices)) for x in found]


def _solved(rows: Sequence[Sequence[fmpq]]) -> list[fmpq] | None:
    """Return the x with sum 1 at which all rows are equal; None unless it is unique."""
    size = len(rows)
    matrix = fmpq_mat([*([*row, fmpq(-1)] for row in rows), [fmpq(1)] * size + [fmpq(0)]])
    try:
        found = matrix.solve(fmpq_mat(size + 1, 1, [fmpq(0)] * size + [fmpq(1)]))
    except ZeroDivisionError:
        return None
    return [found[v, 0] for v in range(size)]


def _in_runs(data: Any, what: str, space: Space) -> list[Any]:
    """Return an item for each record, from runs of records."""
    pairs = together(space.stretches, list(in_runs(data, what)))
    return [item for (_, item), n in pairs for _ in range(n)]


def _mixture(x: Law, vertices: Sequence[Law]) -> list[fmpq]:
    """Return the mixture of vertices with some weights."""
    return [dot(x, column) for column in zip(*vertices, strict=True)]
