"""A file that claims bounds: schema 3, what it may say, and the check of each end.

    {"format": "cvxleak-certificate", "schema_version": 3, "kind", "problem", "unit",
     "ends": {"lower": {"value", "about", "by": TERM}, "upper": {...}}, "versions", "sha256"}

An end that is not claimed is absent. An end is proved if and only if its own term shows a bound at
least as good as its value. `sha256` is that of the rest of the object as compact JSON with sorted
keys, so that any change is seen even where the changed numbers would still be a proof.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from flint import arb, fmpq

from cvxleak.kernel import bounds, covers, majorants, ratio, values
from cvxleak.kernel.balance import Balance
from cvxleak.kernel.budget import limited
from cvxleak.kernel.capacity import Capacity, RenyiCapacity
from cvxleak.kernel.disclosure import TotalDisclosure
from cvxleak.kernel.independent import ProductLeakage
from cvxleak.kernel.leakage import RecordLeakage
from cvxleak.kernel.numbers import RefusedError, lower, need, precision, rational, upper
from cvxleak.kernel.pairs import ConcentratedPrivacy, GaussianPrivacy, PrivacyProfile, RenyiPrivacy
from cvxleak.kernel.reading import bound, chosen, parts
from cvxleak.kernel.terms import Leaf, Rule

__all__ = ["KINDS", "SCHEMA", "Checked", "Statement", "check", "digest", "outline", "unit_of"]

FORMAT = "cvxleak-certificate"
SCHEMA = 3

LOADED = (bounds, covers, majorants, ratio, values)
"""The modules whose rules a file may name."""


class Statement(Protocol):
    """What a kind of file is about, and the terms that prove its ends."""

    @classmethod
    def read(cls, problem: Any) -> Statement:
        """Return the statement of a file's problem."""
        ...

    def upper(self, data: Any, leaf: Leaf | None = None) -> arb | fmpq:
        """Return the bound that an upper end's term proves."""
        ...

    def lower(self, data: Any) -> arb | fmpq:
        """Return the bound that a lower end's term proves."""
        ...


KINDS: dict[str, type[Statement]] = {
    "balance": Balance,
    "capacity": Capacity,
    "dp-profile": PrivacyProfile,
    "gaussian-dp": GaussianPrivacy,
    "product-leakage": ProductLeakage,
    "record-leakage": RecordLeakage,
    "renyi-capacity": RenyiCapacity,
    "renyi-dp": RenyiPrivacy,
    "total-disclosure": TotalDisclosure,
    "zcdp": ConcentratedPrivacy,
}
"""The statements by the kinds of files."""

UNITS: dict[str, str] = dict.fromkeys(("dp-profile", "gini", "guess", "tries"), "probability")
UNITS |= {"gaussian-dp": "sigma", "shannon": "nats"}
"""The units of kinds that are not in nats, and of gains that have one."""


@dataclass(frozen=True)
class Checked:
    """What is known of an end of a claim.

    Attributes
    ----------
    claimed : float
    found : float
        What its term proves; nan if it is refused.
    reason : str
        Why it is not proved; empty if it is.
    rules : tuple of str
        The rules that its term names.
    """

    claimed: float
    found: float
    reason: str
    rules: tuple[str, ...]

    @property
    def proved(self) -> bool:
        """Whether the claimed bound is proved."""
        return not self.reason


def check(data: Any) -> dict[str, Checked]:
    """Return what is proved of each end that a file claims.

    Raises
    ------
    RefusedError
        No intact file of a known kind, or a problem that cannot be read.
    """
    keys = {"format", "schema_version", "kind", "problem", "unit", "ends", "versions", "sha256"}
    parts(data, keys, "a certificate")
    need(data["format"] == FORMAT and data["schema_version"] == SCHEMA, "no file of schema 3")
    need(data["sha256"] == digest(data), "sha256: the file was changed")
    kind = chosen(data, "a certificate", KINDS)
    need(isinstance(data["ends"], Mapping) and data["ends"], "no end is claimed")
    parts(data["ends"], (), "ends", {"lower", "upper"})
    with precision(), limited():
        statement = KINDS[kind].read(data["problem"])
        unit = unit_of(kind, data["problem"])
        need(data["unit"] == unit, f"unit {data['unit']!r:.40}; this kind is in {unit}")
        return {name: _end(statement, name, end) for name, end in data["ends"].items()}


def unit_of(kind: str, problem: Mapping[str, Any]) -> str:
    """Return the unit of the bounds of a problem that can be read."""
    if "gain" not in problem:
        return UNITS.get(kind, "nats")
    return "times" if problem["form"] == "factor" else UNITS.get(problem["gain"]["kind"], "gain")


def _end(statement: Statement, name: str, end: Any) -> Checked:
    parts(end, {"value", "about", "by"}, f"the {name} end")
    need(end["about"] == "problem", "about: this kind of file proves nothing about half-spaces")
    claimed = bound(end["value"], f"the {name} end")
    used = tuple(dict.fromkeys(rules(end["by"])))
    try:
        found = (upper if name == "upper" else lower)(getattr(statement, name)(end["by"]))
    except RefusedError as error:
        return Checked(claimed, math.nan, str(error), used)
    good = _at_most(found, end["value"]) if name == "upper" else _at_most(end["value"], found)
    reason = "" if good else f"{found!r} is proved, not the claimed {claimed!r}"
    return Checked(claimed, found, reason, used)


def _at_most(one: Any, other: Any) -> bool:
    """Compare as written, since a bound need not be the shortest decimal of its float."""
    ends = [math.inf if x == "inf" else x for x in (one, other)]
    if any(isinstance(x, float) and math.isinf(x) for x in ends):
        return bool(ends[1] == math.inf)
    return rational(ends[0]) <= rational(ends[1])


def digest(data: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a file's object without its own."""
    rest = {key: value for key, value in data.items() if key != "sha256"}
    try:
        text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise RefusedError(f"no JSON: {error}") from error
    return hashlib.sha256(text.encode()).hexdigest()


def rules(term: Any) -> Iterator[str]:
    """Yield the rules that a term names, from the outside in."""
    if isinstance(term, Mapping):
        if isinstance(term.get("rule"), str):
            yield term["rule"][:40]
        for part in term.values():
            yield from rules(part)
    elif isinstance(term, list):
        for part in term:
            yield from rules(part)


def outline(data: Any) -> str:
    """Return the proof of a file's upper end: a line for each term, with the bound it shows.

    Of several terms about the claim itself, the one that the end is of is marked.
    """
    trace: list[tuple[int, Rule, Any]] = []
    by = data["ends"]["upper"]["by"]
    with precision(), limited():
        statement = KINDS[data["kind"]].read(data["problem"])
        found = statement.upper(by, Leaf(trace=trace))
    if not trace:  # a kind whose terms are not made of rules
        says = (statement.upper.__doc__ or "").removeprefix("Return ").rstrip(".")
        return f"{by['rule']}: at most {upper(found):.10g} ({says})"
    lines, several = [], sum(depth == 0 for depth, *_ in trace) > 1
    for depth, term, shown in trace:
        bounds_ = f": at most {upper(shown):.10g}" if isinstance(shown, arb) else ""
        says = (term.__doc__ or "").strip().splitlines()[0].rstrip(".")
        counts = several and depth == 0 and isinstance(shown, arb) and upper(shown) == upper(found)
        mark = " <- the upper bound" if counts else ""
        lines.append("  " * depth + f"{term.rule}{bounds_} ({says}){mark}")
    return "\n".join(lines)
