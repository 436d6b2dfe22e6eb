"""Hamming distortion in rational arithmetic, for the borders that floats cannot decide.

Where a constant output all but meets the budget the least epsilon jumps, and which side a budget is
on can depend on the last digit of a float. The linear program of `hamming` is then solved exactly.
With t = 1/D + tau (t >= 1/D follows from 1 <= z and P . z <= D t) and z = 1 + z' it is

    maximize sum z' - (k - 1) tau  subject to
    z'_x - tau <= 1/D - 1,  sum z' - (k - 1) tau <= (k - 1)/D - k,  P . z' - D tau <= 0,

z', tau >= 0: all right-hand sides are non-negative if k D <= k - 1, so that the simplex method
starts at the origin; and its value is bounded by the second row, so that there is an optimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from flint import fmpq

from cvxleak.core.clock import Clock
from cvxleak.exact.rationals import normalized_rows, rational
from cvxleak.sources import SourceSet

__all__ = ["LARGEST", "Exact", "best_potentials", "least_ratio", "maximize"]

LARGEST = 6_000
"""Most entries of a program that is solved exactly; past that it can take minutes."""

Row = list[fmpq]


class Exact(NamedTuple):
    """The optimum, exactly.

    Attributes
    ----------
    ratio : fmpq
        The least e^epsilon of channels with a positive distortion at every input.
    distortions : list of fmpq
        Those of an optimal channel.
    law : list of fmpq
        The worst mixture of sources; empty if there is budget to spare, and the ratio 1.
    mixture : dict
        The same as certificates store it.
    price : fmpq
        Derivative of epsilon in the budget.
    """

    ratio: fmpq
    distortions: Row
    law: Row
    mixture: dict[str, Any]
    price: fmpq


def least_ratio(sources: SourceSet, budget: fmpq, clock: Clock) -> Exact | None:
    """Return the exact optimum for a budget D with 0 < k D <= k - 1; None if it is too large.

    Parameters
    ----------
    sources : SourceSet
    budget : fmpq
        D.
    clock : Clock
        When it is late there is no answer.
    """
    k, bodies = sources.size, sources.polytopes
    points = normalized_rows(sources.points.tolist())
    widths = [len(body.bound) + 2 + 2 * k for body in bodies]
    columns = k + 1 + sum(widths)
    height = k + 1 + len(points) + len(bodies) * (1 + k)
    if columns * height > LARGEST or k * budget > k - 1:
        return None
    zero, one = fmpq(0), fmpq(1)
    rows: list[Row] = []
    sides: Row = []
    for x in range(k):
        rows.append([*(fmpq(int(i == x)) for i in range(k)), -one])
        sides.append(1 / budget - 1)
    rows.append([*([one] * k), fmpq(1 - k)])
    sides.append((k - 1) / budget - k)
    rows += [[*point, -budget] for point in points]
    rows = [row + [zero] * (columns - len(row)) for row in rows]
    start = k + 1
    for body, width in zip(bodies, widths, strict=True):
        # Its columns: multipliers, the level less 1 in two parts, r+ and r-.
        lower, upper, bound = (
            [rational(v) for v in values.tolist()]
            for values in (body.lower, body.upper, body.bound)
        )
        matrix = [[rational(v) for v in row] for row in body.matrix.tolist()]
        own = [*bound, one, -one, *upper, *(-v for v in lower)]
        rows.append([zero] * k + [-budget] + _placed(own, start, columns, k))
        for x in range(k):
            unit = [fmpq(int(i == x)) for i in range(k)]
            own = [*(-row[x] for row in matrix), -one, one, *(-u for u in unit), *unit]
            rows.append([*unit, zero, *_placed(own, start, columns, k)])
        start += width
    sides += [zero] * (height - len(sides))
    cost = [*([one] * k), fmpq(1 - k), *([zero] * sum(widths))]
    found = maximize(cost, rows, sides, clock)
    if found is None:
        return None
    value, best, prices = found
    t = 1 / budget + best[k]
    distortions = [(1 + z) / t for z in best[:k]]
    ratio = 1 + (k - 1) / budget - k - value
    found_mixture = _mixture(points, len(bodies), k, prices[k + 1 :])
    if found_mixture is None:
        return Exact(ratio, distortions, [], {}, zero)
    law, mixture, total = found_mixture
    return Exact(ratio, distortions, law, mixture, -total * t / ratio)


def maximize(
    cost: Row, rows: Sequence[Row], sides: Row, clock: Clock
) -> tuple[fmpq, Row, Row] | None:
    """Maximize cost . x subject to rows x <= sides, x >= 0, for sides >= 0, exactly.

    Returns the value, x and the rows' multipliers; None if it is unbounded or time is up. The
    largest coefficient enters, and Bland's choice while steps have length zero, so that it ends.

    Examples
    --------
    >>> from flint import fmpq
    >>> from cvxleak.core.clock import Clock
    >>> from cvxleak.local_dp.exact import maximize
    >>> maximize([fmpq(1), fmpq(1)], [[fmpq(1), fmpq(2)]], [fmpq(3)], Clock())
    (3, [3, 0], [1])
    """
    n, m = len(cost), len(rows)
    # Rows: basic variable = side - sum of coefficients times the others; the last one is the cost.
    table = [[*row, side] for row, side in zip(rows, sides, strict=True)]
    table.append([*(-c for c in cost), fmpq(0)])
    inside, outside = list(range(n, n + m)), list(range(n))
    stuck = False
    while not clock.late:
        last = table[m]
        gains = [(outside[j] if stuck else last[j], j) for j in range(n) if last[j] < 0]
        if not gains:
            x, prices = [fmpq(0)] * (n + m), [fmpq(0)] * (n + m)
            for i, name in enumerate(inside):
                x[name] = table[i][n]
            for j, name in enumerate(outside):
                prices[name] = last[j]
            return last[n], x[:n], prices[n:]
        entering = min(gains)[1]
        limits = [
            (table[i][n] / table[i][entering], inside[i], i)
            for i in range(m)
            if table[i][entering] > 0
        ]
        if not limits:
            return None
        length, _, leaving = min(limits)
        stuck = length == 0
        _pivot(table, leaving, entering)
        inside[leaving], outside[entering] = outside[entering], inside[leaving]
    return None


def best_potentials(law: Row, budget: fmpq) -> Row | None:
    """Return the potentials of sum D that prove most with a law: `hamming`'s, exactly.

    v_y = min(p_y, room_y / g) with room_y = 1 - D - p_y, g such that they sum to D. None if some
    room is negative: an output that is met too cheaply, and nothing is proved.
    """
    room = [1 - budget - p for p in law]
    if min(room) < 0:
        return None
    order = sorted((y for y, p in enumerate(law) if p > 0), key=lambda y: -room[y] / law[y])
    full, rest = fmpq(0), sum((room[y] for y in order), fmpq(0))
    for n, y in enumerate(order):
        # The first n are at p_y.
        left = budget - full
        if left <= 0:
            return None
        gain = rest / left
        if gain >= room[y] / law[y]:
            capped = set(order[n:])
            if gain == 0:
                return None
            return [room[y] / gain if y in capped else p for y, p in enumerate(law)]
        full, rest = full + law[y], rest - room[y]
    return None


def _pivot(table: list[Row], row: int, column: int) -> None:
    scale = table[row][column]
    own = [entry / scale for entry in table[row]]
    own[column] = 1 / scale
    used = [j for j, entry in enumerate(own) if entry]
    for i, other in enumerate(table):
        factor = other[column]
        if i == row or not factor:
            continue
        other[column] = fmpq(0)
        for j in used:
            other[j] -= factor * own[j]
    table[row] = own


def _placed(own: Row, start: int, columns: int, size: int) -> Row:
    """Return a polytope's own coefficients among all columns after z' and tau."""
    before = start - size - 1
    after = columns - start - len(own)
    return [fmpq(0)] * before + own + [fmpq(0)] * after


def _mixture(
    points: Sequence[Row], bodies: int, size: int, prices: Row
) -> tuple[Row, dict[str, Any], fmpq] | None:
    """Return the mixture that the multipliers of the sources' rows are, and their sum.

    None if the sum is 0: the second row alone decides, at the ratio 1.
    """
    weights, law = prices[: len(points)], [fmpq(0)] * size
    members, start = [], len(points)
    total = sum(weights, fmpq(0)) + sum(
        (prices[start + b * (1 + size)] for b in range(bodies)), fmpq(0)
    )
    if total == 0:
        return None
    for weight, point in zip(weights, points, strict=True):
        law = [p + weight / total * q for p, q in zip(law, point, strict=True)]
    for _ in range(bodies):
        weight, mass = prices[start], prices[start + 1 : start + 1 + size]
        start += 1 + size
        inner = [str(p / weight) for p in mass] if weight else None
        members.append({"weight": str(weight / total), "law": inner})
        law = [p + q / total for p, q in zip(law, mass, strict=True)]
    return law, {"weights": [str(w / total) for w in weights], "members": members}, total
