"""`Polytope`: the distributions that satisfy linear inequalities; members satisfy them exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import SolverError, ValidationError
from cvxleak.core.numbers import fraction, to_json
from cvxleak.core.validation import Array, frozen_array
from cvxleak.core.value import Stored, check_keys
from cvxleak.core.wording import counted

__all__ = ["Polytope", "Support"]

TOLERANCES = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
"""The tightest that HiGHS takes."""

IMPLICIT = 1e-9
"""An inequality that no distribution misses by more than this much is an equation."""

STEPS = (0.0, *(2.0**-k for k in range(50, 0, -4)), 1.0)
"""How far `member` moves towards the center, in turn."""


class Support(NamedTuple):
    """max over the polytope of cost . p, where it is, and what proves it.

    The value is at most bound . multipliers + level + sum_i max(lower_i r_i, upper_i r_i) with
    r = cost - multipliers matrix - level, for any multipliers >= 0 and any level (LP duality).
    """

    value: float
    point: Array
    multipliers: Array
    level: float


@dataclass(frozen=True, eq=False, repr=False)
class Polytope(Stored):
    """The distributions p with lower <= p <= upper and matrix p <= bound.

    Parameters
    ----------
    lower, upper : array_like, shape (k,)
        Bounds on each probability, in [0, 1].
    matrix : array_like, shape (r, k), optional
        Rows of further inequalities; none if left out.
    bound : array_like, shape (r,), optional
        Their right-hand sides.

    Raises
    ------
    ValidationError
        Shapes that do not match, numbers that are not finite, bounds outside [0, 1], or no
        distribution that satisfies all inequalities exactly, as written.

    Examples
    --------
    >>> from cvxleak.sources import Polytope
    >>> box = Polytope([0.25, 0.25, 0.25], [0.75, 0.75, 0.75])
    >>> box.support([1.0, 0.0, 0.0]).value
    0.5
    """

    lower: Array
    upper: Array
    matrix: Array
    bound: Array
    _center: Array = field(init=False)
    _equations: tuple[int, ...] = field(init=False)

    def __init__(
        self,
        lower: ArrayLike,
        upper: ArrayLike,
        matrix: ArrayLike | None = None,
        bound: ArrayLike | None = None,
    ) -> None:
        low, high = frozen_array(lower, "lower", 1), frozen_array(upper, "upper", 1)
        size = len(low)
        rows = frozen_array(np.zeros((0, size)) if matrix is None else matrix, "matrix", 2)
        sides = frozen_array(np.zeros(0) if bound is None else bound, "bound", 1)
        if size == 0 or len(high) != size:
            raise ValidationError(
                f"upper: found {len(high)} bounds and {size} lower ones; "
                "one of each is needed for every outcome"
            )
        if rows.shape != (len(sides), size):
            raise ValidationError(
                f"matrix: found shape {rows.shape}; {len(sides)} right-hand sides and {size} "
                f"outcomes ask for {(len(sides), size)}"
            )
        if not (np.isfinite(rows).all() and np.isfinite(sides).all()):
            raise ValidationError("matrix: found infinite numbers; all must be finite")
        for name, values in (("lower", low), ("upper", high)):
            if values.min() < 0 or values.max() > 1:
                raise ValidationError(
                    f"{name}: found numbers from {values.min():g} to {values.max():g}; "
                    "bounds on probabilities are in [0, 1]"
                )
        for name, value in (("lower", low), ("upper", high), ("matrix", rows), ("bound", sides)):
            object.__setattr__(self, name, value)
        center, equations = self._relative_center()
        object.__setattr__(self, "_center", center)
        object.__setattr__(self, "_equations", equations)
        if self._fitted(center) is None:
            raise ValidationError(
                f"{'bound' if len(sides) else 'lower'}: no distribution was found that meets the "
                "inequalities exactly, as written; loosen those that leave no room by the "
                "rounding of their numbers"
            )

    def __len__(self) -> int:
        return len(self.lower)

    @property
    def center(self) -> Array:
        """A distribution in the relative interior, up to rounding."""
        return self._center

    def support(self, cost: ArrayLike) -> Support:
        """Return max over the distributions p of the polytope of sum_i cost_i p_i, with its proof.

        Raises
        ------
        ValidationError
            Costs that are not finite, or whose number is not that of the outcomes.
        SolverError
            The linear program could not be solved.

        Examples
        --------
        >>> from cvxleak.sources import Polytope
        >>> Polytope([0, 0], [1, 1], [[1.0, 0.0]], [0.25]).support([4.0, 0.0]).value
        1.0
        """
        c = frozen_array(cost, "cost", 1)
        if len(c) != len(self) or not np.isfinite(c).all():
            raise ValidationError(f"cost: found shape {c.shape}; {len(self)} numbers are needed")
        if len(self.bound) == 0:
            return self._box_support(c)
        answer = _solve(-c, self.matrix, self.bound, np.ones((1, len(self))), [1.0], self._box())
        return Support(
            -float(answer.fun),
            np.array(answer.x),
            np.maximum(-answer.ineqlin.marginals, 0.0),
            -float(answer.eqlin.marginals[0]),
        )

    def member(self, near: ArrayLike) -> tuple[Fraction, ...]:
        """Return an exact member of the polytope close to `near`.

        Examples
        --------
        >>> from cvxleak.sources import Polytope
        >>> law = Polytope([0.0] * 3, [0.3] + [1.0] * 2).member([1 / 3, 1 / 3, 1 / 3])
        >>> sum(law), float(law[0])
        (Fraction(1, 1), 0.3)
        """
        start = np.clip(frozen_array(near, "near", 1), self.lower, self.upper)
        for step in STEPS:
            found = self._fitted((1 - step) * start + step * self._center)
            if found is not None:
                return found
        raise SolverError("polytope: no exact member was found")  # the center was one before

    def contains(self, law: tuple[Fraction, ...]) -> bool:
        """Whether a distribution with rational probabilities is in the polytope, exactly."""
        if sum(law) != 1:
            return False
        low, high = _exact(self.lower), _exact(self.upper)
        if any(not a <= p <= b for a, p, b in zip(low, law, high, strict=True)):
            return False
        return all(
            sum((fraction(a) * p for a, p in zip(row, law, strict=True) if a), Fraction(0))
            <= fraction(side)
            for row, side in zip(self.matrix.tolist(), self.bound.tolist(), strict=True)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain lists, ready for JSON."""
        return {
            "lower": to_json(self.lower),
            "upper": to_json(self.upper),
            "matrix": to_json(self.matrix),
            "bound": to_json(self.bound),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the polytope that `to_dict` wrote.

        Raises
        ------
        ValidationError
            A key is missing or unknown, or a value is not valid.
        """
        check_keys(data, {"lower", "upper"}, {"matrix", "bound"})
        # JSON cannot tell an empty matrix's number of columns.
        return cls(data["lower"], data["upper"], data.get("matrix") or None, data.get("bound"))

    def __repr__(self) -> str:
        return (
            f"Polytope({counted(len(self), 'outcome')}, "
            f"{len(self.bound)} inequalities and the bounds)"
        )

    def _box(self) -> Array:
        return np.column_stack([self.lower, self.upper])

    def _box_support(self, c: Array) -> Support:
        # Start from the lower bounds and give what is left to the dearest outcomes first.
        point, level = self.lower.copy(), 0.0
        rest = 1.0 - point.sum()
        for i in np.argsort(-c, kind="stable"):
            level = float(c[i])
            share = min(rest, self.upper[i] - self.lower[i])
            point[i] += share
            rest -= share
            if rest <= 0:
                break
        return Support(float(c @ point), point, np.zeros(0), level)

    def _relative_center(self) -> tuple[Array, tuple[int, ...]]:
        low, high, size = self.lower, self.upper, len(self)
        if len(self.bound) == 0:
            room, rest = float((high - low).sum()), 1.0 - float(low.sum())
            if (low > high).any() or not -1e-12 <= rest <= room + 1e-12:
                raise ValidationError(
                    f"lower: the polytope is empty: the lower bounds sum to {low.sum():g} and "
                    f"the upper ones to {high.sum():g}; no distribution is between them"
                )
            share = 0.0 if room == 0 else min(max(rest / room, 0.0), 1.0)
            return low + share * (high - low), ()
        # Homogenized, so that every slack that can be positive can be 1: maximize the sum of
        # slacks s <= 1 subject to G q + s <= h a, sum q = a, a >= 1; then p = q / a.
        G = np.vstack([self.matrix, -np.eye(size), np.eye(size)])
        h = np.concatenate([self.bound, -low, high])
        rows = np.hstack([G, -h[:, None], np.eye(len(h))])
        total = np.concatenate([np.ones(size), [-1.0], np.zeros(len(h))])[None]
        bounds = [(0, np.inf)] * size + [(1, 1 / IMPLICIT)] + [(0, 1)] * len(h)
        gain = np.concatenate([np.zeros(size + 1), -np.ones(len(h))])
        answer = _linear_program(gain, rows, np.zeros(len(h)), total, [0.0], np.array(bounds))
        if answer.status == 2:
            raise ValidationError(
                "bound: the polytope is empty: every distribution violates an inequality by at "
                f"least {self._least_violation(G, h):.3g}"
            )
        if answer.status != 0:
            raise SolverError(f"polytope: {answer.message}")
        center = answer.x[:size] / answer.x[size]
        slack = answer.x[size + 1 :][: len(self.bound)]
        return center, tuple(int(i) for i in np.flatnonzero(slack < 0.5))

    def _least_violation(self, G: Array, h: Array) -> float:
        size = len(self)
        rows = np.hstack([G, -np.ones((len(h), 1))])
        total = np.concatenate([np.ones(size), [0.0]])[None]
        cost = np.concatenate([np.zeros(size), [1.0]])
        bounds = np.array([(0, np.inf)] * size + [(-np.inf, np.inf)])
        return max(float(_solve(cost, rows, h, total, [1.0], bounds).fun), 0.0)

    def _fitted(self, near: Array) -> tuple[Fraction, ...] | None:
        """Return `near` with its equations solved exactly, if the inequalities hold as well."""
        law = [
            fraction(low if p <= low else high if p >= high else p)
            for p, low, high in zip(
                near.tolist(), self.lower.tolist(), self.upper.tolist(), strict=True
            )
        ]
        rows = [(_exact(self.matrix[i]), fraction(self.bound[i])) for i in self._equations]
        equations = [*rows, ([Fraction(1)] * len(self), Fraction(1))]
        # Eliminate one outcome per equation: the one with the most room of those it involves.
        room = np.minimum(near - self.lower, self.upper - near)
        order = [int(i) for i in np.argsort(-room, kind="stable")]
        pivots: list[tuple[int, list[Fraction], Fraction]] = []
        for row, side in equations:
            coefficients, right = list(row), side
            for pivot, other, value in pivots:
                factor = coefficients[pivot]
                if factor:
                    coefficients = [
                        a - factor * b for a, b in zip(coefficients, other, strict=True)
                    ]
                    right -= factor * value
            pivot = next((i for i in order if abs(coefficients[i]) > IMPLICIT), None)
            if pivot is None:
                continue  # it follows from the others, or contradicts them: `contains` will tell
            scale = coefficients[pivot]
            pivots.append((pivot, [a / scale for a in coefficients], right / scale))
        for pivot, row, value in reversed(pivots):
            others = (a * p for i, (a, p) in enumerate(zip(row, law, strict=True)) if i != pivot)
            law[pivot] = value - sum(others, Fraction(0))
        return tuple(law) if self.contains(tuple(law)) else None


def _exact(values: Array) -> list[Fraction]:
    return [fraction(value) for value in values.tolist()]


def _solve(
    cost: Array, rows: Array, sides: Array, equations: Array, totals: list[float], bounds: Array
) -> Any:
    answer = _linear_program(cost, rows, sides, equations, totals, bounds)
    if answer.status != 0:
        raise SolverError(f"polytope: {answer.message}")
    return answer


def _linear_program(
    cost: Array, rows: Array, sides: Array, equations: Array, totals: list[float], bounds: Array
) -> Any:
    # Here, so that a model without polytopes does not wait for SciPy's solvers.
    from scipy.optimize import linprog

    program = (cost, rows, sides, equations, totals, bounds)
    # Where there is hardly any room, presolving or the tolerances can come to no end.
    for options in (TOLERANCES, {**TOLERANCES, "presolve": False}, {}):
        answer = linprog(*program, method="highs", options=options)
        if answer.status in (0, 2):
            break
    return answer
