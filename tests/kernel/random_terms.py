"""Random views and random terms, made from the rules' signatures.

A field is drawn by what its signature says of it, in the shape that the rule itself declares, so a
new rule is drawn without a word here. What a rule refuses is drawn again.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpq

from cvxleak.kernel.claims import LOADED
from cvxleak.kernel.gains import read_gain
from cvxleak.kernel.numbers import RefusedError, ball
from cvxleak.kernel.reading import pack
from cvxleak.kernel.terms import CONDITIONS, RULES, Shape, read_term
from cvxleak.kernel.view import Limit, Row, View, view_of

assert LOADED

POSITIVE, ANY = 30, 30
"""Columns of random leaves: of numbers in (0, 1], and of both signs."""

ELSEWHERE = {"ratio"}
"""Rules whose arrays have to fit one another: tests/kernel/test_ratio.py draws them."""

GAINS: list[Any] = [{"kind": "guess"}, {"kind": "gini"}, {"kind": "arimoto", "alpha": 3}]
GAINS += [{"kind": "matrix", "table": [[1, 0, 0.5], [0.25, 1, 0], [0.5, 0.5, 0.25]]}]


def laws(rng: np.random.Generator, size: int, count: int) -> Any:
    """Return distributions of all kinds: even, concentrated, and at vertices."""
    found = rng.dirichlet(np.ones(size), count) ** rng.choice([0.3, 1, 3, 12], (count, 1))
    found = found * (rng.random((count, size)) < rng.choice([0.4, 1.0], (count, 1)))
    found[np.arange(count), rng.integers(size, size=count)] += rng.choice([1e-3, 1, 1e3], count)
    return found / found.sum(1, keepdims=True)


def _terms_of(rule: str) -> set[str]:
    """Return which judgements the terms inside of a rule's conclude."""
    return {part.says[-1] for part in RULES[rule].signature().values()}


def random_view(rng: np.random.Generator, *, gain: bool = False, boxes: bool = False) -> View:
    """Return a view of 2 or 3 values with few groups."""
    k, n, places = int(rng.integers(2, 4)), int(rng.integers(2, 4)), int(rng.integers(2, 5))
    rows = {}
    for place in range(places):
        weights = rng.integers(0, 9, n) + (rng.random() < 0.7)
        weights[int(rng.integers(n))] += 1
        law = [fmpq(int(x), int(weights.sum())) for x in weights]
        if boxes:
            lo = [max(x - fmpq(1, 20), fmpq(0)) for x in law]
            hi = [min(x + fmpq(1, 20), fmpq(1)) for x in law]
            rows[place] = Row(list(map(ball, lo)), list(map(ball, hi)), key=(tuple(lo), tuple(hi)))
        else:
            rows[place] = Row(list(map(ball, law)), key=tuple(law))
    contexts = [
        {
            (p, 0): int(rng.integers(1, 9))
            for p in range(places)
            if rng.random() < 0.7 or p == a % places
        }
        for a in range(k)
    ]
    most = np.log(sum(sum(own.values()) for own in contexts))
    floor = Fraction(float(round(most * rng.uniform(0, 0.9), 3)))
    more: dict[str, Any] = {}
    if gain:
        given = GAINS[int(rng.integers(3 + (k == 3)))]
        more = {"gain": read_gain(given, k), "times": [0, 1, None][int(rng.integers(3))]}
    return view_of(contexts, rows, floor, **more)


def with_limits(view: View, rng: np.random.Generator) -> View:
    """Return it with limits that some adversaries meet."""
    limits = []
    for share in (0, 1):
        c = [ball(float(round(x, 3))) for x in rng.uniform(-1, 1, len(view.rows))]
        limits.append(Limit(c, ball(0.25), ball(share)))
    return replace(view, limits=limits)


class Drawer:
    """Draws terms of a judgement for a shape."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.draws = 1500

    def term(self, judgement: str, shape: Shape, rule: str | None = None) -> dict[str, Any]:
        """Return a term that is read without complaint; of one rule if it is given."""
        names = [
            name
            for name, cls in RULES.items()
            if cls.gives == judgement
            and name not in ELSEWHERE
            and rule in (None, name)
            and all(CONDITIONS[condition](shape) for condition in cls.when)
        ]
        if shape.depth > 3:  # terms end, if they can
            names = [name for name in names if judgement not in _terms_of(name)] or names
        for _ in range(8 if names and shape.depth < 7 else 0):
            self.draws -= 1
            if self.draws < 0:
                break
            name = names[int(self.rng.integers(len(names)))]
            try:
                found = self._fields(name, shape)
                read_term(found, judgement, shape)
            except RefusedError:
                continue
            return found
        raise RefusedError(f"no term of {rule or judgement} here")

    def _fields(self, name: str, shape: Shape) -> dict[str, Any]:
        cls, found, data = RULES[name], {}, {"rule": name}
        inner = int(self.rng.integers(0, 4))
        for field, part in cls.signature().items():
            if part.optional and self.rng.random() < 0.75:
                continue
            inside = cls.inside(shape, found)
            here = replace(inside, depth=shape.depth + 1)
            if field == "nodes":
                data[field] = self._nodes(inner, here)
            elif field in ("cuts", "leaves"):
                data[field] = self._cuts(inner) if field == "cuts" else self._leaves(inner)
            else:
                data[field] = self._field(part.says, here)
            found[field] = part.read(data[field], field, here)
        return data

    def _field(self, says: str, shape: Shape) -> Any:
        makers: list[tuple[str, Callable[..., Any]]] = [
            (r"a number( >= 0)?", lambda least: self._numbers(1, least, shape, one=True)),
            (
                r"(.+) numbers( >= 0)?",
                lambda of, least: self._numbers(shape.length(of), least, shape),
            ),
            (r"a law on (.+)", lambda of: self._numbers(shape.length(of), True, shape)),
            (r"laws on (.+)", lambda of: [self._numbers(shape.length(of), True, shape)] * 2),
            (r"a partition of (.+)", lambda of: self._partition(shape.length(of))),
            (r"floats in k columns", lambda: self._inputs(shape)),
            (r"(\w)", lambda judgement: self.term(judgement, shape)),
            (r"k of (\w)", lambda judgement: self._terms(judgement, shape)),
        ]
        for pattern, make in makers:
            match = re.fullmatch(pattern, says)
            if match:
                return make(*match.groups())
        raise AssertionError(f"a kind of field that random terms do not know: {says}")

    def _numbers(self, length: int, least: Any, shape: Shape, *, one: bool = False) -> Any:
        if shape.columns > length and self.rng.random() < 0.7:
            start = int(self.rng.integers((POSITIVE if least else shape.columns) - length + 1))
            return {"leaf": [start, start + length]}
        if least:
            found = self.rng.choice([0.125, 0.25, 0.5, 1.0, 2.0, 1e-3], length)
        else:
            found = np.round(self.rng.normal(size=length), 2)
        written: list[Any] = [
            str(Fraction(x)) if self.rng.random() < 0.2 else x for x in found.tolist()
        ]
        return written[0] if one else written

    def _partition(self, size: int) -> list[list[int]]:
        parts = int(self.rng.integers(1, size + 1))
        order = self.rng.permutation(size).tolist()
        return [sorted(order[i::parts]) for i in range(parts)]

    def _inputs(self, shape: Shape) -> Any:
        choices = int(np.prod(list(map(len, shape.view.of))))
        return pack(self.rng.uniform(0.1, 1, (choices, shape.view.k)), "<f8")

    def _terms(self, judgement: str, shape: Shape) -> list[Any]:
        return [self.term(judgement, replace(shape, value=a)) for a in range(shape.view.k)]

    def _nodes(self, inner: int, shape: Shape) -> Any:
        """Return a random tree that cuts one or two outputs."""
        kinds: list[bool] = []
        open_, left = 1, inner
        while open_:
            node = left > 0 and (open_ == 1 or self.rng.random() < 0.6)
            kinds.append(node)
            left -= node
            open_ += 1 if node else -1
        first = [int(self.rng.integers(2)) if node else -1 for node in kinds]
        ends = [self.rng.permutation(shape.view.k)[:2].tolist() for _ in first]
        return pack([[y, *own] for y, own in zip(first, ends, strict=True)], "<i4")

    def _cuts(self, inner: int) -> Any:
        return pack(self.rng.integers(1, 16, inner) / 16, "<f8")

    def _leaves(self, inner: int) -> Any:
        size = (inner + 1, POSITIVE)
        positive = self.rng.choice([0.0625, 0.25, 0.5, 0.75, 1.0], size)
        both = np.round(self.rng.normal(size=(inner + 1, ANY)), 2)
        return pack(np.column_stack([positive, both]), "<f8")
