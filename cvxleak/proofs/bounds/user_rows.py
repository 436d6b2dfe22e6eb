"""Half-spaces for the user's own constraints on a channel, and what multipliers prove with them.

A problem lists them under "own". Each entry {"entries": [[x, y, a], ...], "further": [[j, b], ...],
"at_least": c, "equal": false} says of a channel q that there are numbers z (the same for all
entries) with

    sum a q(y|x) + sum b z_j >= c - r,    r = 2^-40 ( |c| + sum |a| q(y|x) ),

and, if "equal" is true, <= c + r as well. The tolerance r is part of the problem, so that floats
can meet an equation between floats, while both bounds are about exactly the same channels. It is a
share of 2^-40 of the terms in a and c only. The terms in z have no tolerance, since z may be large.

A proof lists a multiplier g_i for each entry of "own". It may have either sign if "equal" is true,
and is not negative otherwise. If sum_i g_i b_ij = 0 for all j,

    sum_i g_i ( sum a_i q - c_i ) + sum_i |g_i| 2^-40 ( |c_i| + sum |a_i| q ) >= 0

for all channels of the set, whatever z is, which is what a dual bound needs. Multipliers that are
floats seldom cancel exactly. The proof may therefore name entries under "balance": their
multipliers are changed, by the exact solution of the linear equations, so that all cancel.

The witness has z_0, z_1, ... under "further", floats or fractions written as text, and meets every
entry in rational arithmetic. Files of schema version 1 have no such values, so their witness proves
nothing if an entry needs them. Their multipliers are applied without the tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from flint import arb, fmpq, fmpq_mat

from cvxleak.core.errors import CertificateError
from cvxleak.proofs import reading
from cvxleak.proofs.bounds.source_sets import exact_numbers
from cvxleak.proofs.exact import rational

__all__ = ["BALANCED", "OwnRow", "missed", "priced", "read_own", "surplus", "witness_extras"]

ROOM = fmpq(1, 1 << 40)
"""The tolerance of a half-space, relative to its channel coefficients and its right-hand side."""

BALANCED = 100
"""Most multipliers that are changed: the equations are solved in rational numbers."""


class OwnRow(NamedTuple):
    """One half-space, exactly.

    Attributes
    ----------
    entries : list of (int, int, float)
        Row and column of the channel, and the coefficient.
    further : list of (int, float)
        Number of a further variable, and its coefficient.
    at_least : float
    equal : bool
    """

    entries: list[tuple[int, int, float]]
    further: list[tuple[int, float]]
    at_least: float
    equal: bool


def read_own(values: Any, rows: int, outputs: int) -> list[OwnRow]:
    """Return the half-spaces of a problem about channels of this shape.

    Raises
    ------
    CertificateError
        Anything that the module's docstring does not describe.

    Examples
    --------
    >>> from cvxleak.proofs.bounds.user_rows import read_own
    >>> entry = {"entries": [[0, 1, 1.0]], "further": [], "at_least": 0.5, "equal": False}
    >>> read_own([entry], 2, 2)[0].at_least
    0.5
    """
    if not isinstance(values, list):
        raise CertificateError("own: expected a list")
    return [_row(value, rows, outputs) for value in values]


def priced(
    own: Sequence[OwnRow], proof: Mapping[str, Any]
) -> tuple[list[tuple[int, int, arb]], arb]:
    """Return cells (x, y, amount) and a number c: sum amount q(y|x) >= c on the set.

    They are the weighted sum of the half-spaces, including the tolerance of each.

    Raises
    ------
    CertificateError
        Multipliers that are negative, or that do not cancel a further variable.
    """
    given = reading.numbers(proof["own"], "own", len(own))
    multipliers = [rational(value) for value in given]
    if any(g < 0 and not row.equal for g, row in zip(multipliers, own, strict=True)):
        raise CertificateError("a multiplier is negative")
    _balance(own, multipliers, proof.get("balance", []))
    room = fmpq(0) if reading.schema_version() == 1 else ROOM
    cells: dict[tuple[int, int], fmpq] = {}
    offset = fmpq(0)
    for g, row in zip(multipliers, own, strict=True):
        if g != 0:
            limit = rational(row.at_least)
            offset += g * limit - abs(g) * room * abs(limit)
            for x, y, entry in row.entries:
                a = rational(entry)
                cells[x, y] = cells.get((x, y), fmpq(0)) + g * a + abs(g) * room * abs(a)
    return [(x, y, arb(total)) for (x, y), total in cells.items()], arb(offset)


def witness_extras() -> set[str]:
    """Return the keys that a witness may have besides its channel."""
    return set() if reading.schema_version() == 1 else {"further"}


def missed(
    own: Sequence[OwnRow], channel: Sequence[Sequence[fmpq]], witness: Mapping[str, Any]
) -> str:
    """Return why a witness is not shown to be in the half-spaces, or an empty text if it is.

    Raises
    ------
    CertificateError
        Values of further variables that cannot be read.

    Examples
    --------
    >>> from flint import fmpq
    >>> from cvxleak.proofs.bounds.user_rows import missed, read_own
    >>> entry = {"entries": [[0, 1, 1.0]], "further": [[0, -1.0]], "at_least": 0.0, "equal": False}
    >>> own, channel = read_own([entry], 1, 2), [[fmpq(1, 2), fmpq(1, 2)]]
    >>> missed(own, channel, {"further": ["1/2"]})
    ''
    >>> missed(own, channel, {"further": [0.75]})
    'the witness misses entry 0 of own'
    """
    count = 1 + max((j for row in own for j, _ in row.further), default=-1)
    stored = "further" in witness or not count
    values = exact_numbers(witness.get("further", []), "further", count) if stored else []
    for place, row in enumerate(own):
        if row.further and not stored:
            return f"entry {place} of own has further variables whose values are not stored"
        left, room = surplus(row, channel, values)
        if (abs(left) if row.equal else -left) > room:
            return f"the witness misses entry {place} of own"
    return ""


def surplus(
    row: OwnRow, channel: Sequence[Sequence[fmpq]], values: Sequence[fmpq]
) -> tuple[fmpq, fmpq]:
    """Return sum a q + sum b z - c for an entry, and its tolerance r."""
    limit = rational(row.at_least)
    left, room = -limit, ROOM * abs(limit)
    for x, y, a in row.entries:
        term = rational(a) * channel[x][y]
        left += term
        room += ROOM * abs(term)
    for j, b in row.further:
        left += rational(b) * values[j]
    return left, room


def _balance(own: Sequence[OwnRow], multipliers: list[fmpq], named: Any) -> None:
    """Change the named multipliers so that those of each further variable cancel."""
    (movable,) = reading.groups([named], "the balance")
    if len(movable) > BALANCED or len(set(movable)) != len(movable):
        raise CertificateError(f"the balance must name at most {BALANCED} entries, each once")
    if any(i >= len(own) for i in movable):
        raise CertificateError("the balance names an entry that does not exist")
    rest: dict[int, fmpq] = {}
    for g, row in zip(multipliers, own, strict=True):
        for j, b in row.further:
            rest[j] = rest.get(j, fmpq(0)) + g * rational(b)
    touched = sorted({j for i in movable for j, _ in own[i].further})
    if any(total != 0 for j, total in rest.items() if j not in set(touched)):
        raise CertificateError("the multipliers do not cancel a further variable")
    if not touched:
        return
    places = {j: place for place, j in enumerate(touched)}
    width = len(movable) + 1
    table = [[fmpq(0)] * width for _ in touched]
    for column, i in enumerate(movable):
        for j, b in own[i].further:
            table[places[j]][column] += rational(b)
    for j, place in places.items():
        table[place][-1] = -rest[j]
    if len(touched) > BALANCED:
        raise CertificateError(f"the balance touches more than {BALANCED} further variables")
    reduced, rank = fmpq_mat(len(touched), width, [e for line in table for e in line]).rref()
    for r in range(rank):
        pivot = next(c for c in range(width) if reduced[r, c] != 0)
        if pivot == width - 1:
            raise CertificateError("the multipliers do not cancel a further variable")
        i = movable[pivot]
        multipliers[i] += reduced[r, width - 1]
        if multipliers[i] < 0 and not own[i].equal:
            raise CertificateError("a multiplier is negative after balancing")


def _row(value: Any, rows: int, outputs: int) -> OwnRow:
    reading.parts(value, {"entries", "further", "at_least", "equal"}, "an entry of own")
    entries = [
        (_place(x, rows), _place(y, outputs), reading.number(a, "a coefficient"))
        for x, y, a in _tuples(value["entries"], 3)
    ]
    further = [
        (reading.count(j, "a further variable"), reading.number(b, "a coefficient"))
        for j, b in _tuples(value["further"], 2)
    ]
    if type(value["equal"]) is not bool:
        raise CertificateError("equal: expected true or false")
    return OwnRow(entries, further, reading.number(value["at_least"], "at_least"), value["equal"])


def _place(value: Any, size: int) -> int:
    place = reading.count(value, "a place")
    if place >= size:
        raise CertificateError(f"the channel has no entry {place}")
    return place


def _tuples(values: Any, size: int) -> list[list[Any]]:
    if not isinstance(values, list) or not all(
        isinstance(entry, list) and len(entry) == size for entry in values
    ):
        raise CertificateError(f"an entry of own: expected lists of length {size}")
    return values
