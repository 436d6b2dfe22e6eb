"""Linear programs in which the costs a_x of the inputs are held against every source.

All have the form: minimize f . (a, theta, ...) subject to sum_x P(x) a_x <= theta for every source
P and linear rows. For points that is one row each; for a polytope it is its dual, with the columns
(multipliers, level, r+, r-) and the rows

    bound . multipliers + level + upper . r+ - lower . r- <= theta,
    a_x - (matrix' multipliers)_x - level - r+_x + r-_x <= 0.

The multipliers of these rows are the worst mixture of sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from cvxleak.core.numbers import exact_law, fraction
from cvxleak.core.validation import Array
from cvxleak.solvers.linear import LinearSolver
from cvxleak.sources import SourceSet

__all__ = ["Mixture", "Solution", "SourceProgram", "supports"]


@dataclass(frozen=True)
class Mixture:
    """A distribution in the hull of a source set, and how it is mixed.

    Attributes
    ----------
    law : ndarray, shape (k,)
    weights : ndarray
        One for each point of the set.
    members : tuple
        For each polytope a weight and an exact distribution of it (None where the weight is 0).
    """

    law: Array
    weights: Array
    members: tuple[tuple[float, tuple[Fraction, ...] | None], ...] = ()

    def exact(self, sources: SourceSet) -> list[Fraction]:
        """Return the distribution as certificates mean it: weights and points over their sums."""
        weights = [fraction(w) for w in self.weights.tolist()]
        laws = [list(exact_law(point)) for point in sources.points]
        for weight, law in self.members:
            if law is not None:
                weights.append(fraction(weight))
                laws.append(list(law))
        total = sum(weights, Fraction(0))
        used = [(w / total, law) for w, law in zip(weights, laws, strict=True) if w]
        return [sum((w * law[x] for w, law in used), Fraction(0)) for x in range(sources.size)]

    def towards(self, other: Mixture, step: float) -> Mixture:
        """Return (1 - step) times this mixture plus step times another one."""
        members = []
        for (one, law), (two, more) in zip(self.members, other.members, strict=True):
            heads = (1 - step) * one, step * two
            if law is None or more is None:
                exact = more if law is None else law
            else:
                share = fraction(heads[1]) / fraction(sum(heads))
                exact = tuple((1 - share) * p + share * q for p, q in zip(law, more, strict=True))
            members.append((sum(heads), exact))
        return Mixture(
            (1 - step) * self.law + step * other.law,
            (1 - step) * self.weights + step * other.weights,
            tuple(members),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the mixture as certificates store it."""
        return {
            "weights": self.weights.tolist(),
            "members": [
                {"weight": weight, "law": None if law is None else [str(p) for p in law]}
                for weight, law in self.members
            ],
        }


@dataclass(frozen=True)
class Solution:
    """An optimal point and its multipliers.

    Attributes
    ----------
    value : float
    columns : ndarray
        The program's own columns, in their order.
    price : float
        Sum of the multipliers of the sources.
    mixture : Mixture or None
        The sources' multipliers, divided by their sum; None if that is 0.
    rows : ndarray
        Multipliers of the program's own inequalities, non-negative.
    """

    value: float
    columns: Array
    price: float
    mixture: Mixture | None
    rows: Array


class SourceProgram:
    """The rows of a source set, for programs with `columns` columns of their own.

    Parameters
    ----------
    sources : SourceSet
    cost : ndarray or sparse matrix, shape (k, columns)
        a as a linear function of the program's columns. With an array, and without polytopes, all
        rows are arrays.
    ceiling : ndarray, shape (columns,)
        theta as a linear function of them.
    solver : LinearSolver, optional
    """

    def __init__(
        self, sources: SourceSet, cost: Any, ceiling: Array, *, solver: LinearSolver | None = None
    ) -> None:
        self._sources, self._solver = sources, solver or LinearSolver()
        size, columns = sources.size, len(ceiling)
        points, bodies = sources.points, sources.polytopes
        self._columns, self._extra = columns, 0
        self._heights, self._bounds = [], []
        if not bodies and isinstance(cost, np.ndarray):
            # Sparse matrices cost more to make than such a program to solve.
            self._rows: Any = points @ cost - ceiling
            return
        cost = sparse.csr_array(cost)
        own = [sparse.csr_array(points @ cost - ceiling)]
        extra: list[Any] = [sparse.csr_array((len(points), 0))]
        for body in bodies:
            own += [sparse.csr_array(-ceiling[None]), cost]
            one, eye = np.ones((size, 1)), sparse.eye_array(size)
            head = np.concatenate([body.bound, [1.0], body.upper, -body.lower])[None]
            rest = sparse.hstack([-body.matrix.T, -one, -eye, eye])
            extra.append(sparse.vstack([sparse.csr_array(head), rest]))
        heights = [1 + size] * len(bodies)
        shapes = [block.shape[1] for block in extra[1:]]
        self._extra = sum(shapes)
        right = sparse.block_diag(extra) if bodies else sparse.csr_array((len(points), 0))
        self._rows = sparse.hstack([sparse.vstack(own), right], format="csr")
        self._heights = heights
        self._bounds = [
            bound
            for body in bodies
            for bound in [(0, None)] * len(body.bound) + [(None, None)] + [(0, None)] * (2 * size)
        ]

    def minimize(
        self,
        objective: Array,
        bounds: Sequence[tuple[float | None, float | None]],
        rows: Any = None,
        sides: Array | None = None,
        equations: Any = None,
        totals: Array | None = None,
    ) -> Solution | None:
        """Return the optimum over the program's columns, or None if there is none.

        Raises
        ------
        SolverError
            The solver came to no end, or time is up.
        """
        pad = self._extra
        count = 0 if sides is None else len(sides)
        if isinstance(self._rows, np.ndarray):
            top = self._rows if rows is None else np.vstack([rows, self._rows])
        else:
            padded = [] if rows is None else [_padded(rows, pad)]
            top = sparse.csr_array(sparse.vstack([*padded, self._rows]))
        right = np.concatenate([np.zeros(0) if sides is None else sides, np.zeros(self.height)])
        answer = self._solver.minimize(
            np.concatenate([objective, np.zeros(pad)]),
            top,
            right,
            equations if equations is None or not pad else _padded(equations, pad),
            totals,
            [*bounds, *self._bounds],
        )
        if answer is None:
            return None
        price, mixture = self._mixture(answer.multipliers[count:])
        columns, own = answer.point[: self._columns], answer.multipliers[:count]
        return Solution(answer.value, columns, price, mixture, own)

    @property
    def height(self) -> int:
        """Number of the sources' rows."""
        return len(self._sources.points) + sum(self._heights)

    def _mixture(self, multipliers: Array) -> tuple[float, Mixture | None]:
        sources, size = self._sources, self._sources.size
        weights = multipliers[: len(sources.points)]
        heads, laws, start = [], [], len(weights)
        for body in sources.polytopes:
            heads.append(float(multipliers[start]))
            mass = multipliers[start + 1 : start + 1 + size]
            laws.append(mass / mass.sum() if mass.sum() > 0 else body.center)
            start += 1 + size
        total = float(weights.sum()) + sum(heads)
        if total <= 0:
            return 0.0, None
        members = []
        law = (weights / total) @ sources.points
        for body, head, near in zip(sources.polytopes, heads, laws, strict=True):
            if head <= 1e-14 * total:
                members.append((0.0, None))
                continue
            exact = body.member(near)
            members.append((head / total, exact))
            law = law + head / total * np.array([float(p) for p in exact])
        return total, Mixture(law, weights / total, tuple(members))


def supports(sources: SourceSet, cost: Array) -> list[dict[str, Any]]:
    """Return, for each polytope, multipliers that bound cost . p on it, and a member of it."""
    result = []
    for body in sources.polytopes:
        answer = body.support(cost)
        # That a box is not empty is evident; with further inequalities, a member proves it.
        member = [str(p) for p in body.member(body.center)] if len(body.bound) else None
        result.append(
            {"multipliers": answer.multipliers.tolist(), "level": answer.level, "member": member}
        )
    return result


def _padded(rows: Any, columns: int) -> Any:
    rows = sparse.csr_array(rows)
    return sparse.hstack([rows, sparse.csr_array((rows.shape[0], columns))], format="csr")
