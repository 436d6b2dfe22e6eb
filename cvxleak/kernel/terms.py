"""Terms of proofs: how a rule says what it takes, and how a term is read and typed.

A rule is a class. Its fields, made by the functions below, say what a term of the rule has in a
file, of which length and type; `gives` names the judgement that it concludes. This table of rules
drives the reading of files, the type check before any number is computed, and the documentation.

Judgements, for all adversaries w of a view, or of the part of them that a leaf speaks of:

- **J**: J(w) <= kappa H(pi) + <w, c> + sum_a pi_a q psi_a(v_a), psi_a(v) = D(vR_a || t) or 0;
- **V**, for the groups of one value and numbers C, L: psi(v) + <v, C> + L H(v) <= phi for all v;
- **B**: J(w) <= u for all w with F(w) >= b that meet the limits.

The term of a cover is a template. Where it has {"leaf": i} in place of a number, or {"leaf": [i,
j]} in place of numbers, each leaf of the tree has its own, in columns of the cover's `leaves`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from cvxleak.kernel.many import stacked, unstacked
from cvxleak.kernel.numbers import ball, law, need
from cvxleak.kernel.reading import array, chosen, count, fractions, items, parts
from cvxleak.kernel.view import View

__all__ = [
    "CONDITIONS",
    "RULES",
    "Law",
    "Leaf",
    "Numbers",
    "Rule",
    "Shape",
    "law_of",
    "laws_of",
    "number",
    "numbers",
    "packed",
    "partition",
    "read_term",
    "term",
    "terms",
]

DEEPEST = 16
"""Most terms inside of one another."""


@dataclass(frozen=True)
class Shape:
    """What a term is read for: a view, perhaps inside of a cover of it; for a V-term, a value.

    `columns` says how many numbers a leaf of the cover has.
    """

    view: View
    columns: int = 0
    covered: bool = False
    value: int | None = None
    tangents: int = 0
    depth: int = 0

    def length(self, name: str) -> int:
        """Return a length: a number, a name, or a product of these such as "k n"."""
        view = self.view
        known = {"k": view.k, "n": view.n, "limits": len(view.limits), "tangents": self.tangents}
        known["N_a"] = 0 if self.value is None else len(view.of[self.value])
        return math.prod(known[x] if x in known else int(x) for x in name.split())


@dataclass(frozen=True)
class Leaf:
    """The numbers of one leaf of a cover, or of many of them at once, and the places it is about.

    The numbers are an array, whose first axis has the columns; the places are the vertices of the
    cells, by value, vertex, part and leaf. `trace`, if there is one, gets the depth, the rule and
    the conclusion of each term that is not a template.
    """

    lift: Callable[[Any], Any] = ball
    columns: Any = None
    places: Any = None
    trace: list[tuple[int, Rule, Any]] | None = None
    depth: int = 0


@dataclass(frozen=True)
class Numbers:
    """Numbers of a term, perhaps >= `least`: written, or columns of the leaves."""

    written: tuple[Any, ...] = ()
    columns: slice | None = None
    least: int | None = None

    def array(self, leaf: Leaf) -> Any:
        """Return them for a leaf, as an array."""
        if self.columns is None:
            return stacked([leaf.lift(x) for x in self.written])
        found = leaf.columns[self.columns]
        if self.least is not None:
            need(bool(np.all(found.m >= self.least)), f"a leaf's number below {self.least}")
        return found

    def at(self, leaf: Leaf) -> list[Any]:
        """Return them for a leaf."""
        return unstacked(self.array(leaf))


@dataclass(frozen=True)
class Law(Numbers):
    """A distribution of a term: numbers >= 0 over their sum."""

    def array(self, leaf: Leaf) -> Any:
        """Return it for a leaf, as an array."""
        found = super().array(leaf)
        return found if self.columns is None else found / found.inner(1.0, 0)


# What fields hold --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Part:
    """How a field of a rule is read, and what documentation says of it."""

    read: Callable[[Any, str, Shape], Any]
    says: str
    optional: bool


def _field(read: Callable[[Any, str, Shape], Any], says: str, *, optional: bool = False) -> Any:
    more: dict[str, Any] = {"default": None} if optional else {}
    return field(metadata={"part": Part(read, says, optional)}, **more)


def numbers(length: str, *, least: int | None = None) -> Any:
    """Make a field of numbers, perhaps all of them at least `least`."""
    return _field(
        lambda data, name, shape: _numbers(data, name, shape, shape.length(length), least),
        f"{length} numbers" + ("" if least is None else f" >= {least}"),
    )


def number(*, least: int) -> Any:
    """Make a field of one number, at least `least`."""

    def read(data: Any, name: str, shape: Shape) -> Numbers:
        return _numbers(data if isinstance(data, dict) else [data], name, shape, 1, least)

    return _field(read, f"a number >= {least}")


def law_of(length: str) -> Any:
    """Make a field of a distribution."""
    return _field(
        lambda data, name, shape: _law(data, name, shape, shape.length(length)),
        f"a law on {length}",
    )


def laws_of(length: str, *, optional: bool = False) -> Any:
    """Make a field of distributions, as many as one likes."""

    def read(data: Any, name: str, shape: Shape) -> tuple[Law, ...]:
        return tuple(_law(one, name, shape, shape.length(length)) for one in items(data, name))

    return _field(read, f"laws on {length}", optional=optional)


def _law(data: Any, name: str, shape: Shape, length: int) -> Law:
    found = _numbers(data, name, shape, length, 0)
    if found.columns is not None:
        return Law(columns=found.columns, least=0)
    return Law(tuple(law(found.written, name)))


def _numbers(data: Any, name: str, shape: Shape, length: int, least: int | None) -> Numbers:
    if isinstance(data, Mapping) and "leaf" in data:
        place = parts(data, {"leaf"}, name)["leaf"]
        start, stop = (place, place + 1) if type(place) is int else items(place, name, 2)
        need(count(stop, name) - count(start, name) == length, f"{name}: {length} columns")
        need(shape.covered and stop <= shape.columns, f"{name}: columns that no leaves have")
        return Numbers(columns=slice(start, stop), least=least)
    values = tuple(fractions(data, name, length))
    need(least is None or all(x >= least for x in values), f"{name}: a number below {least}")
    return Numbers(values)


def partition(of: str, *, optional: bool = False) -> Any:
    """Make a field of a partition of 0, 1, ... into lists that are not empty."""

    def read(data: Any, name: str, shape: Shape) -> tuple[tuple[int, ...], ...]:
        size = shape.length(of)
        found = tuple(tuple(items(part, name)) for part in items(data, name))
        listed = [count(i, name, below=size) for part in found for i in part]
        need(sorted(listed) == list(range(size)), f"{name}: a partition of {size} is needed")
        need(all(found), f"{name}: an empty part")
        return found

    return _field(read, f"a partition of {of}", optional=optional)


def packed(dtype: str, columns: str | None = None) -> Any:
    """Make a field of a packed array: a vector, or a table of so many columns."""

    def read(data: Any, name: str, shape: Shape) -> Any:
        return array(data, name, dtype, None if columns is None else shape.length(columns))

    says = {"f": "floats", "i": "integers"}[dtype]
    if columns is not None:
        says += " in columns" if columns == "0" else f" in {columns} columns"
    return _field(read, says)


def term(judgement: str) -> Any:
    """Make a field of a term that concludes a judgement."""
    return _field(lambda data, _, shape: read_term(data, judgement, shape), judgement)


def terms(judgement: str) -> Any:
    """Make a field of terms that conclude a judgement, one for each value of A."""

    def read(data: Any, name: str, shape: Shape) -> tuple[Any, ...]:
        found = enumerate(items(data, name, shape.view.k))
        return tuple(read_term(one, judgement, replace(shape, value=a)) for a, one in found)

    return _field(read, f"k of {judgement}")


# Rules -------------------------------------------------------------------------------------------

CONDITIONS: dict[str, Callable[[Shape], bool]] = {
    "information": lambda shape: shape.view.information,
    "a gain": lambda shape: not shape.view.information,
    "exact rows": lambda shape: shape.view.exact,
    "no cover around": lambda shape: not shape.covered,
    "no limits": lambda shape: not shape.view.limits,
    "no real output": lambda shape: shape.view.extra is None,
    "about a factor": lambda shape: shape.view.times is None,
    "not about a factor": lambda shape: shape.view.times is not None,
    "cells around": lambda shape: shape.covered,
}
"""Side conditions that are checked before any number is computed."""

RULES: dict[str, type[Rule]] = {}
"""The rules by their names in files."""


class Rule:
    """A rule; its subclasses are the table of signatures."""

    rule: ClassVar[str]
    gives: ClassVar[str]
    when: ClassVar[tuple[str, ...]]

    def __init_subclass__(
        cls, rule: str | None = None, gives: str = "", when: Sequence[str] = ()
    ) -> None:
        if rule is not None:
            cls.rule, cls.gives, cls.when = rule, gives, tuple(when)
            RULES[rule] = cls

    @classmethod
    def signature(cls) -> dict[str, Part]:
        """Return the fields of a term of this rule in a file."""
        fields = dataclasses.fields(cls)  # type: ignore[arg-type]
        return {f.name: f.metadata["part"] for f in fields if "part" in f.metadata}

    @classmethod
    def inside(cls, shape: Shape, found: Mapping[str, Any]) -> Shape:
        """Return the shape that the next field is read for, given those before it."""
        return shape

    def check(self, shape: Shape) -> None:
        """Refuse what the fields' types do not exclude."""

    def evaluate(self, subject: Any, leaf: Leaf) -> Any:
        """Return the conclusion about a view, or about one value of A."""
        raise NotImplementedError

    def conclude(self, subject: Any, leaf: Leaf) -> Any:
        """Return the conclusion, and keep it for who wants to see it."""
        if leaf.trace is None:
            return self.evaluate(subject, leaf)
        place = len(leaf.trace)
        leaf.trace.append((leaf.depth, self, None))
        found = self.evaluate(subject, replace(leaf, depth=leaf.depth + 1))
        leaf.trace[place] = (leaf.depth, self, found)
        return found


def read_term(data: Any, judgement: str, shape: Shape) -> Any:
    """Return a term, typed: of a rule that concludes the judgement, under its conditions."""
    cls = RULES[chosen(data, "a term", RULES, "rule")]
    need(cls.gives == judgement, f"{cls.rule} gives {cls.gives}, where {judgement} is needed")
    need(shape.depth < DEEPEST, "terms inside of one another, too deep")
    for condition in cls.when:
        need(CONDITIONS[condition](shape), f"{cls.rule} needs: {condition}")
    known = cls.signature()
    must = {"rule", *(name for name, part in known.items() if not part.optional)}
    parts(data, must, cls.rule, set(known))
    found: dict[str, Any] = {}
    for name, part in known.items():
        if name in data:
            inside = cls.inside(shape, found)
            here = replace(inside, depth=shape.depth + 1)
            found[name] = part.read(data[name], f"{cls.rule}.{name}", here)
    made = cls(**found)
    made.check(shape)
    return made
