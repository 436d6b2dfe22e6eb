"""Source sets in certificates: reading them, mixtures of distributions, worst cases.

A source set is stored as its convex parts, each the hull of points and of polytopes {p in the
simplex: lower <= p <= upper, matrix p <= bound}. Numbers and points are meant as written
(`cvxleak.core.numbers`). No polytope may be empty. That a box is not empty is checked directly;
with further inequalities the distribution of a ``member`` shows it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from flint import fmpq

from cvxleak.core.errors import CertificateError
from cvxleak.kernel import numbers
from cvxleak.kernel.numbers import dot, need
from cvxleak.proofs import reading
from cvxleak.proofs.exact import normalized_rows, rational

__all__ = [
    "Body",
    "Part",
    "above_polytopes",
    "described",
    "distortion_table",
    "exact_numbers",
    "mixture",
    "read_parts",
    "worst_case",
]

FRACTION = re.compile(r"-?\d+(/\d+)?", re.ASCII)


class Body(NamedTuple):
    """A polytope."""

    lower: list[fmpq]
    upper: list[fmpq]
    matrix: list[list[fmpq]]
    bound: list[fmpq]


class Part(NamedTuple):
    """A convex part of a source set."""

    points: list[list[fmpq]]
    bodies: list[Body]


def read_parts(value: Any) -> tuple[int, list[Part]]:
    """Return the number of outcomes and the parts of a stored source set.

    Raises
    ------
    CertificateError
        Not a source set.
    """
    entries = _listed(value, "the sources' parts")
    sizes, result = set(), []
    for entry in entries:
        reading.parts(entry, {"points", "polytopes"}, "a part of the sources")
        rows = [reading.numbers(p, "a point") for p in _listed(entry["points"], "the points")]
        bodies = [_body(p) for p in _listed(entry["polytopes"], "the polytopes")]
        sizes |= {len(row) for row in rows} | {len(body.lower) for body in bodies}
        if not rows and not bodies:
            raise CertificateError("a part of the sources is empty")
        result.append(Part(normalized_rows(rows), bodies))
    if len(sizes) != 1 or 0 in sizes:
        raise CertificateError("the sources must all have the same number of outcomes")
    return sizes.pop(), result


def described(parts: Sequence[Part]) -> str:
    """Return a short description of a source set."""
    return "a convex set" if len(parts) == 1 else f"a set of {len(parts)} convex parts"


def distortion_table(value: Any, inputs: int, channel: Any) -> list[list[fmpq]]:
    """Return the distortion matrix: the rows that are stored, or the text "hamming".

    The latter is as large as the stored channel, so that a short file cannot ask for a large table.

    Raises
    ------
    CertificateError
        Neither of the two, or not non-negative.
    """
    if value == "hamming":
        rows = _listed(channel, "the channel", inputs)
        if not all(isinstance(row, list) and len(row) == inputs for row in rows):
            raise CertificateError("the channel does not fit the sources")
        return [[fmpq(int(i != j)) for j in range(inputs)] for i in range(inputs)]
    rows = [
        reading.numbers(row, "a row of distortions") for row in _listed(value, "the distortion")
    ]
    if len(rows) != inputs or len({len(row) for row in rows}) != 1 or not rows[0]:
        raise CertificateError("the distortion does not fit the sources")
    table = [[rational(entry) for entry in row] for row in rows]
    if any(entry < 0 for row in table for entry in row):
        raise CertificateError("a distortion is negative")
    return table


def mixture(parts: Sequence[Part], value: Any, size: int) -> list[fmpq]:
    """Return the distribution sum_k w_k P_k that a proof states, a member of the parts' hull.

    `value` has ``weights``, one for each point, and ``members``, one entry for each polytope with a
    ``weight`` and a ``law`` (null where the weight is 0). The weights are divided by their sum.

    Raises
    ------
    CertificateError
        Negative weights, none positive, or a distribution that is not in its polytope.
    """
    reading.parts(value, {"members", "weights"}, "a mixture of sources")
    points = [point for part in parts for point in part.points]
    bodies = [body for part in parts for body in part.bodies]
    weights = exact_numbers(value["weights"], "the weights", len(points))
    members = _listed(value["members"], "the members", len(bodies))
    laws = list(points)
    for body, member in zip(bodies, members, strict=True):
        reading.parts(member, {"law", "weight"}, "a member")
        weight = _exact_number(member["weight"], "a weight")
        weights.append(weight)
        laws.append([] if weight == 0 else _law(member["law"], body))
    total = sum(weights, fmpq(0))
    if total <= 0 or any(weight < 0 for weight in weights):
        raise CertificateError("the weights of sources must be non-negative and not all zero")
    result = [fmpq(0)] * size
    for weight, law in zip(weights, laws, strict=True):
        if weight:
            share = weight / total
            result = [p + share * q for p, q in zip(result, law, strict=True)]
    return result


def exact_numbers(values: Any, name: str, size: int) -> list[fmpq]:
    """Return a list of `size` numbers, each a float or a fraction in text.

    Raises
    ------
    CertificateError
        Not so.

    Examples
    --------
    >>> from cvxleak.proofs.bounds.source_sets import exact_numbers
    >>> exact_numbers([0.5, "-1/3"], "the potentials", 2)
    [1/2, -1/3]
    """
    return [_exact_number(value, name) for value in _listed(values, name, size)]


def worst_case(parts: Sequence[Part], cost: Sequence[fmpq], supports: Any) -> fmpq:
    """Return an upper bound on max over the sources P of sum_i P_i cost_i.

    It is exact for points. For each polytope `supports` has ``multipliers`` y >= 0 and a ``level``
    m. With r = cost - matrix' y - m, the bound is bound . y + m + sum_i max(lower_i r_i, upper_i
    r_i). There is also a ``member``, a distribution of the polytope (null for a box), because
    nothing is claimed about empty polytopes.

    Raises
    ------
    CertificateError
        Multipliers that do not fit or are negative, or a member that is not in its polytope.
    """
    values = [dot(point, cost) for part in parts for point in part.points]
    bodies = [body for part in parts for body in part.bodies]
    bare = []
    for body, entry in zip(bodies, _listed(supports, "the supports", len(bodies)), strict=True):
        reading.parts(entry, {"level", "member", "multipliers"}, "a support")
        if entry["member"] is not None:
            _law(entry["member"], body)
        elif body.bound:
            raise CertificateError(
                "a polytope with inequalities needs a member, as proof that it is not empty"
            )
        bare.append({key: entry[key] for key in ("level", "multipliers")})
    values += above_polytopes(bodies, cost, bare)
    return max(values)


def above_polytopes(bodies: Sequence[Body], cost: Sequence[Any], supports: Any) -> list[Any]:
    """Return the upper bound of `worst_case` for each polytope; the costs may be balls."""
    result = []
    entries = _listed(supports, "the supports", len(bodies))
    for body, entry in zip(bodies, entries, strict=True):
        reading.parts(entry, {"level", "multipliers"}, "a support")
        y = [
            rational(v)
            for v in reading.numbers(entry["multipliers"], "multipliers", len(body.bound))
        ]
        if any(v < 0 for v in y):
            raise CertificateError("a multiplier is negative")
        level = rational(reading.number(entry["level"], "the level"))
        total: Any = dot(body.bound, y) + level
        for i, c in enumerate(cost):
            rest = (
                c
                - level
                - sum((row[i] * v for row, v in zip(body.matrix, y, strict=True) if v), fmpq(0))
            )
            low, high = rest * body.lower[i], rest * body.upper[i]
            total += low.max(high) if hasattr(low, "max") else max(low, high)
        result.append(total)
    return result


def _body(value: Any) -> Body:
    reading.parts(value, {"bound", "lower", "matrix", "upper"}, "a polytope")
    lower = [rational(v) for v in reading.numbers(value["lower"], "the lower bounds")]
    upper = [rational(v) for v in reading.numbers(value["upper"], "the upper bounds", len(lower))]
    bound = [rational(v) for v in reading.numbers(value["bound"], "the right-hand sides")]
    rows = _listed(value["matrix"], "the inequalities", len(bound))
    matrix = [
        [rational(v) for v in reading.numbers(row, "an inequality", len(lower))] for row in rows
    ]
    if any(low < 0 for low in lower):
        raise CertificateError("a lower bound is negative")
    if any(low > high for low, high in zip(lower, upper, strict=True)):
        raise CertificateError("a lower bound is above the upper one")
    if not sum(lower, fmpq(0)) <= 1 <= sum(upper, fmpq(0)):
        raise CertificateError("no distribution meets the bounds of a polytope")
    return Body(lower, upper, matrix, bound)


def _law(value: Any, body: Body) -> list[fmpq]:
    law = [_fraction(text) for text in _listed(value, "a distribution", len(body.lower))]
    inside = (
        sum(law, fmpq(0)) == 1
        and all(low <= p for low, p in zip(body.lower, law, strict=True))
        and all(p <= high for p, high in zip(law, body.upper, strict=True))
        and all(dot(row, law) <= b for row, b in zip(body.matrix, body.bound, strict=True))
    )
    if not inside:
        raise CertificateError("a distribution is not in its polytope")
    return law


def _exact_number(value: Any, name: str) -> fmpq:
    return _fraction(value) if isinstance(value, str) else rational(reading.number(value, name))


@reading.reporting
def _fraction(text: Any) -> fmpq:
    """Return a fraction that is written as text."""
    need(isinstance(text, str) and FRACTION.fullmatch(text), f"{text!r:.40} is not a fraction")
    return numbers.rational(text)


def _listed(value: Any, name: str, size: int | None = None) -> list[Any]:
    if not isinstance(value, list) or (size is not None and len(value) != size):
        wanted = "a list" if size is None else f"a list of {size}"
        raise CertificateError(f"{name}: expected {wanted}")
    return value
