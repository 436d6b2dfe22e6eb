"""The gain from an output when all records are independent: both bounds, in floats.

For a gain G = max_w g_w and rows W of record i's channel, the posterior gain sum_y G(p W_y) is
convex in W, and W is linear in each other record's distribution. So, as for the information
(`cvxleak.proofs.bounds.independent`), the maximum over the others' distributions is at vertices,
jointly. The same is true of the rise and the factor, because G(p) does not depend on these
distributions.

Where action w is the best one without the output, G(p) = <g_w, p>. There the posterior gain and the
rise are convex in the distribution p of record i, and the factor, convex over linear and positive,
is quasi-convex. These distributions are a polytope for each w, and the maximum is attained at one
of its vertices. All these vertices together are the `corners` of the record's hull. They do not
depend on the channel, and are found exactly, so that a proof has nothing to store. The least G is
at one of them as well.

Distributions in the hull of V_1, ..., V_m are mixtures sum_v x_v V_v, and the same applies to the
weights x. Let S be the set of v with x_v > 0 at a vertex. The vertex is then one of the polyhedron
of all (x, z) on S with z >= sum_v x_v <g_w, V_v> for all w. So it solves sum_v x_v <g_w, V_v> = z
and sum_v x_v = 1 for as many w as S has members, which determine it. Actions that are nowhere on S
better than another one are not needed.

Floats: c R <= W, the missing mass is at most eps in each row, and |g_w| <= g for all entries. Then
sum_y G(p W_y) is within g eps of c sum_y G(p R_y), because G(r + s) <= G(r) + G(s) and |G(s)| <=
g s(Y); and the latter is within g (1 - c) R(Y) of sum_y G(p R_y).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from flint import fmpq, fmpq_mat

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, short
from cvxleak.exact.limits import charge
from cvxleak.exact.outward import UNIT_ROUNDOFF
from cvxleak.exact.rationals import dot, normalized_rows, rational
from cvxleak.model import Gain
from cvxleak.model.gain import Form
from cvxleak.proofs.bounds.independent import LEAST_OUTPUT, Rows, Vertices

__all__ = ["SYSTEMS_LIMIT", "actions_of", "corners", "gain_ends", "laws_of"]

SYSTEMS_LIMIT = 1 << 12
"""Most systems of equations that are solved for the corners of one hull."""


def actions_of(gain: Gain, k: int) -> Array:
    """Return the actions of a gain on k values, shape (actions, k).

    Raises
    ------
    ValidationError
        The gain is not known to be the largest of a few linear functions.
    """
    rows = gain.rows(k)
    if rows is None:
        raise ValidationError(
            f"gain: found {short(gain)} of {k} values; of independent records the gains of guesses "
            "and of at most a thousand actions are bounded (Guess, GuessInTries, GainMatrix), and "
            "the rise of Shannon's"
        )
    return rows


def corners(actions: Array, vertices: Vertices) -> list[list[fmpq]]:
    """Return weights on a hull's vertices for its corners: where best actions may change.

    Raises
    ------
    ValidationError
        There are too many systems of equations.
    """
    laws = normalized_rows(vertices)
    exact = [[rational(x) for x in row] for row in actions.tolist()]
    table = [[dot(row, law) for law in laws] for row in exact]
    found: dict[tuple[fmpq, ...], None] = {}
    systems = 0
    for size in range(1, len(laws) + 1):
        for support in combinations(range(len(laws)), size):
            rows = _undominated([[row[v] for v in support] for row in table])
            systems += max(math.comb(len(rows), size), 1)
            if systems > SYSTEMS_LIMIT:
                raise ValidationError(
                    f"gain: found {len(actions)} actions, and {len(laws)} vertices of the attacked "
                    "record's distribution; to find where the best action changes, up to "
                    f"{SYSTEMS_LIMIT} systems of equations are solved"
                )
            charge("steps", max(math.comb(len(rows), size), 1) * size**3, "the best actions")
            for tied in combinations(rows, size):
                weights = _solved(tied)
                if weights is not None and all(x > 0 for x in weights):
                    whole = [fmpq(0)] * len(laws)
                    for v, x in zip(support, weights, strict=True):
                        whole[v] = x
                    found.setdefault(tuple(whole))
    return [list(one) for one in found]


def laws_of(weights: Sequence[Sequence[fmpq]], vertices: Vertices) -> Array:
    """Return the distributions of exact weights on the vertices, each off by one rounding."""
    columns = list(zip(*normalized_rows(vertices), strict=True))
    exact = [[dot(one, column) for column in columns] for one in weights]
    return np.array([[int(p.p) / int(p.q) for p in law] for law in exact])


def gain_ends(
    found: Rows, laws: Array, roundings: int, actions: Array, form: Form
) -> tuple[Array, Array]:
    """Return floats below and above the gain in each case, for each distribution of record i.

    Both have shape (cases, distributions); the distributions are known to `roundings`.
    """
    rows, (_, values, outputs) = found.rows, found.rows.shape
    u = UNIT_ROUNDOFF
    best = np.full((len(rows), len(laws), outputs), -np.inf)
    for action in actions:
        best = np.maximum(best, (laws * action) @ rows)
    after, before = best.sum(axis=2), (laws @ actions.T).max(axis=1)
    sums = rows.sum(axis=2)
    least, most = float(sums.min()), float(sums.max())
    rest = max(1 - found.share * least * (1 - (outputs + 2) * u), 0.0)
    rest += (1 - found.share) * most + 4 * u
    steps = (roundings + values + outputs + 16) * u * (1 + most)
    doubt = 1.1 * float(np.abs(actions).max()) * (rest + steps) + LEAST_OUTPUT
    if form == "posterior":
        return after - doubt, after + doubt
    if form == "rise":
        return after - before - 2 * doubt, after - before + 2 * doubt
    with np.errstate(divide="ignore", invalid="ignore"):
        low = (after - doubt) / (before + doubt) * (1 - 4 * u)
        high = (after + doubt) / (before - doubt) * (1 + 4 * u)
    return low, np.where(before > doubt, high, np.inf)


def _undominated(rows: list[list[fmpq]]) -> list[list[fmpq]]:
    """Return the rows except those that are nowhere above some other row."""
    kept: list[list[fmpq]] = []
    for row in rows:
        if not any(_below(row, other) for other in kept):
            kept = [other for other in kept if not _below(other, row)]
            kept.append(row)
    return kept


def _below(one: list[fmpq], other: list[fmpq]) -> bool:
    return all(x <= y for x, y in zip(one, other, strict=True))


def _solved(rows: Sequence[list[fmpq]]) -> list[fmpq] | None:
    """Return the x with sum 1 at which all rows are equal; None unless it is unique."""
    size = len(rows)
    matrix = fmpq_mat([*([*row, fmpq(-1)] for row in rows), [fmpq(1)] * size + [fmpq(0)]])
    try:
        found = matrix.solve(fmpq_mat(size + 1, 1, [fmpq(0)] * size + [fmpq(1)]))
    except ZeroDivisionError:
        return None
    return [found[v, 0] for v in range(size)]
