"""Channels that meet the user's constraints, as arithmetic sees them and not as a solver does.

A solver's point misses constraints by its tolerance. Let v = (channel, further variables) be such a
point and c one that has room everywhere (a Slater point). Written as g_i >= 0 the constraints have
concave g_i, so that g_i((1-t) v + t c) >= (1-t) g_i(v) + t g_i(c): a share t of about the tolerance
over the room of c is enough. The room of c is found by maximizing the sum of min(g_i, 1), then that
of min(g_i, 1/100) and so on for those g_i that got none: much room for one may leave none for
others (outputs share the probability), but a little each they can have. Affine ones that never get
any (x >= 1 and x <= 1) are equations of the set. Equations, and the rows' sums, are met by moving v
and c by the least possible, to rounding. Constraints that are curved and without room (a norm of at
most 0) cannot be repaired in this way.
"""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints.psd import PSD
from numpy.typing import NDArray
from scipy.linalg import lstsq
from scipy.sparse import block_array, csr_array, eye_array, kron, vstack

from cvxleak.core.errors import SolverError
from cvxleak.core.validation import Array
from cvxleak.design.user_constraints import (
    UserConstraints,
    as_expressions,
    choose_further,
    relaxed,
)
from cvxleak.solvers.conic import attempt

__all__ = ["SlaterRepair"]

ROOM = 1e-12
"""What a repaired channel has left, relative to the terms: rounding its entries does no harm."""

ROOM_FURTHER = 1e-9
"""The least where further variables occur: whoever measures has to find them by a solver."""

NO_ROOM = 1e-7
"""Less than this is what a solver makes of none."""

MET = 1e-12
"""Equations hold to rounding if no residual is larger, relative to its terms."""

DUST = 1e-15
"""Entries that are rounding errors of zero."""

MOST_ROOM = (1.0, 1e-2, 1e-4)
"""How much room a g_i may count for, in turn, until all have some that can."""

ATTEMPTS = 12


class SlaterRepair:
    """The channels of one shape that meet the user's constraints.

    Parameters
    ----------
    user : UserConstraints
    """

    def __init__(self, user: UserConstraints) -> None:
        self._shape, self._cells = user.shape, user.shape[0] * user.shape[1]
        self._channel, self._constraints = user.channel, user.constraints
        self._variables = user.variables
        self._least_room = ROOM_FURTHER if len(self._variables) > 1 else ROOM

    def repaired(self, matrix: Array) -> Array:
        """Return a channel near a stochastic matrix that meets the constraints, if there is one.

        What comes back is the matrix itself where it has room already, or where nothing helps.
        """
        point = self._lifted(matrix)
        if point is None:
            return matrix
        if not self._flat.any() and self._settled(point):
            return matrix
        center = self._center
        if center is None:
            return matrix
        point = self._projected(point)
        short, full = self._margins(point), self._margins(center)
        aim = 2 * self._room
        helped = (full > aim) & ~self._flat
        if (short < -MET * self._scales)[~helped].any():
            return matrix  # what has no room cannot be repaired
        missing = helped & (short < aim)
        # What has no value where a probability is zero wants any share at all.
        short = np.where(np.isfinite(short), short, full)
        share = float(np.max((aim - short)[missing] / (full - short + aim)[missing], initial=0.0))
        while share < 1:
            mixed = (1 - share) * point + share * center
            if self._settled(mixed):
                return self._matrix(mixed)
            share = max(4 * share, 1e-12)  # curved constraints, and rounding
        return self._matrix(center) if self._settled(center) else matrix

    def on_equations(self, matrix: Array) -> Array:
        """Return the nearest channel that meets the equations among the constraints."""
        point = self._lifted(matrix)
        return matrix if point is None else self._matrix(self._projected(point))

    @property
    def center(self) -> Array | None:
        """A channel that has room wherever some channel has; None if none was found."""
        return None if self._center is None else self._matrix(self._center)

    def met(self, matrix: Array) -> bool:
        """Whether a channel meets the constraints up to rounding.

        Further variables are chosen by a solver; what they are worth is evaluated.
        """
        point = self._lifted(matrix)
        return point is not None and bool((self._margins(point) >= -MET * self._scales).all())

    # Points v: the channel by columns, then the further variables --------------------------------

    def _matrix(self, point: Array) -> Array:
        return np.reshape(point[: self._cells], self._shape, order="F")

    def _place(self, point: Array) -> None:
        start = 0
        for v in self._variables:
            # Without CVXPY's check of signs and bounds: those are looked at elsewhere.
            v.save_value(np.reshape(point[start : start + v.size], v.shape, order="F"))
            start += v.size

    def _read(self) -> Array | None:
        if any(v.value is None for v in self._variables):
            return None
        return np.concatenate([np.ravel(np.asarray(v.value), order="F") for v in self._variables])

    def _lifted(self, matrix: Array) -> Array | None:
        """Return the channel with further variables that leave the most room."""
        if len(self._variables) == 1:
            return matrix.ravel(order="F")
        try:
            choose_further(self._constraints, self._channel, matrix)
        except SolverError:
            return None
        point = self._read()
        if point is None:
            return None
        point[: self._cells] = matrix.ravel(order="F")
        # A solver misses equations by its tolerance.
        return self._projected(point, np.arange(len(point)) < self._cells)

    @cached_property
    def _signed(self) -> NDArray[np.bool_]:
        """Entries of v that must not be negative."""
        parts = [np.full(v.size, v is self._channel or v.is_nonneg()) for v in self._variables]
        return np.concatenate(parts)

    # What the constraints say at a point ---------------------------------------------------------

    @cached_property
    def _sides(self) -> list[tuple[Any, bool]]:
        """Expressions that are to be <= 0, or = 0 where True; matrices of PSD as constraints."""
        found: list[tuple[Any, bool]] = []
        for constraint in self._constraints:
            if isinstance(constraint, PSD):
                found.append((constraint, False))
            else:
                found += as_expressions(constraint) or [(constraint, False)]
        return found

    def _margins(self, point: Array) -> Array:
        """Return the g_i: not negative where the constraints hold; -|h| of equations."""
        self._place(point)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = [_margin(side, equal) for side, equal in self._sides]
        found = np.concatenate([np.zeros(0), *values])
        return np.where(np.isnan(found), -np.inf, found)

    def _settled(self, point: Array) -> bool:
        """Whether a point is stochastic and meets the constraints with room for rounding."""
        matrix = self._matrix(point)
        if (point[self._signed] < 0).any() or np.abs(matrix.sum(axis=1) - 1).max() > MET:
            return False
        needed = np.where(self._flat, -MET * self._scales, self._room)
        return bool((self._margins(point) >= needed).all())

    @cached_property
    def _room(self) -> Array:
        """What each g_i that is no equation has to have left."""
        return np.maximum(ROOM * self._scales, self._least_room)

    @cached_property
    def _scales(self) -> Array:
        """The size of the terms of each g_i, at least 1: what rounding is relative to."""
        self._place(np.zeros(sum(v.size for v in self._variables)))
        found = [np.zeros(0)]
        for side, _ in self._sides:
            if isinstance(side, cp.Constraint):
                found.append(np.ones(1))
            elif side.is_affine():
                at_zero = np.ravel(np.asarray(side.value, dtype=float), order="F")
                terms = abs(_slopes(side, self._variables)).sum(axis=1)
                found.append(np.maximum(np.abs(at_zero) + terms, 1.0))
            else:
                found.append(np.ones(side.size))
        return np.concatenate(found)

    @cached_property
    def _flat(self) -> NDArray[np.bool_]:
        """Which g_i are equations, stated or implied."""
        equal, room = self._explored[1:]
        return equal | (room <= NO_ROOM * self._scales)

    @cached_property
    def _center(self) -> Array | None:
        point = self._explored[0]
        return None if point is None else self._projected(point)

    @cached_property
    def _explored(self) -> tuple[Array | None, NDArray[np.bool_], Array]:
        """Return a point of most room, which g_i are equations as stated, and the room of each."""
        slacks: list[Any] = []
        most_room = cp.Parameter(nonneg=True)
        rules: list[Any] = [cp.sum(self._channel, axis=1) == 1, self._channel >= 0]
        equal: list[Any] = []
        for constraint, count, straight in self._counted():
            if straight:
                rules.append(constraint)
                slacks.append(np.zeros(count))
            else:
                slack = cp.Variable(count, nonneg=True)
                rules += [slack <= most_room, *_tightened(constraint, slack)]
                slacks.append(slack)
            equal += [straight] * count
        free = [s for s in slacks if isinstance(s, cp.Variable)]
        weights = [cp.Parameter(s.size, nonneg=True, value=np.ones(s.size)) for s in free]
        goal = cp.Constant(0.0)
        for weight, slack in zip(weights, free, strict=True):
            goal = goal + weight @ slack
        problem = cp.Problem(cp.Maximize(goal), rules)
        points: list[Array] = []
        best = [np.zeros(s.size) for s in free]
        for most_room.value in MOST_ROOM if free else (0.0,):
            attempt(problem)
            point = self._read()
            if point is None:
                break
            points.append(point)
            for most, weight, slack in zip(best, weights, free, strict=True):
                most[:] = np.maximum(most, np.asarray(slack.value))
                weight.value = np.where(most <= NO_ROOM, 1.0, 0.0)
            if all((most > NO_ROOM).all() for most in best):
                break
        rest = iter(best)
        room = [next(rest) if isinstance(s, cp.Variable) else s for s in slacks]
        mean = np.mean(points, axis=0) if points else None
        return mean, np.array(equal, dtype=bool), np.concatenate([np.zeros(0), *room])

    def _counted(self) -> list[tuple[cp.Constraint, int, bool]]:
        """Return each constraint, the number of its g_i, and whether they are equations."""
        found = []
        for constraint in self._constraints:
            sides = as_expressions(constraint)
            if isinstance(constraint, PSD) or not sides:
                found.append((constraint, 1, False))
            else:
                ((side, straight),) = sides
                found.append((constraint, side.size, straight))
        return found

    # Equations -----------------------------------------------------------------------------------

    @cached_property
    def _equations(self) -> tuple[csr_array, Array]:
        """Return A and b with A v = b: the rows' sums, and equations stated or implied."""
        rows, outputs = self._shape
        size = sum(v.size for v in self._variables)
        sums = kron(csr_array(np.ones((1, outputs))), eye_array(rows))
        blank = csr_array((rows, size - self._cells))
        lines, right = [csr_array(block_array([[sums, blank]]))], [np.ones(rows)]
        flat, start = self._flat, 0
        self._place(np.zeros(size))
        for side, _ in self._sides:
            count = 1 if isinstance(side, cp.Constraint) else side.size
            here = flat[start : start + count]
            start += count
            if here.any() and not isinstance(side, cp.Constraint) and side.is_affine():
                lines.append(_slopes(side, self._variables)[here])
                right.append(-np.ravel(np.asarray(side.value, dtype=float), order="F")[here])
        return csr_array(vstack(lines)), np.concatenate(right)

    def _projected(self, point: Array, held: NDArray[np.bool_] | None = None) -> Array:
        """Return the nearest point that meets the equations and has no negative entry.

        What is `held` stays as it is.
        """
        matrix, right = self._equations
        held = np.zeros(len(point), dtype=bool) if held is None else held
        signed, result = self._signed & ~held, point.copy()
        fixed = held.copy()
        for _ in range(ATTEMPTS):
            result[signed & (result <= DUST)] = 0.0
            missed = right - matrix @ result
            if np.abs(missed).max() <= 1e-3 * MET:
                break
            # What is zero stays so, unless nothing else can give.
            fixed |= signed & (result <= 0)
            move = _least_move(matrix[:, ~fixed], missed)
            if np.abs(matrix[:, ~fixed] @ move - missed).max() > 0.5 * np.abs(missed).max():
                fixed = held.copy()
                move = _least_move(matrix[:, ~fixed], missed)
            result[~fixed] += move
        result[signed & (result <= DUST)] = 0.0
        return result


def _least_move(matrix: csr_array, missed: Array) -> Array:
    """Return the shortest x with A x = missed, as nearly as one step of refinement gets."""
    found: Any = lstsq((matrix @ matrix.T).toarray(), missed, cond=1e-13)
    return matrix.T @ found[0]


def _margin(side: Any, equal: bool) -> Array:
    if isinstance(side, PSD):
        matrix: Any = side.args[0].value
        return np.asarray(np.linalg.eigvalsh((matrix + matrix.conj().T) / 2)[:1], dtype=float)
    if isinstance(side, cp.Constraint):
        return np.atleast_1d(-float(np.max(side.violation())))
    value = np.ravel(np.asarray(side.value, dtype=float), order="F")
    return -np.abs(value) if equal else -value


def _tightened(constraint: cp.Constraint, slack: cp.Variable) -> list[Any]:
    """Return g_i >= slack_i."""
    sides = as_expressions(constraint)
    if isinstance(constraint, PSD):
        return relaxed(constraint, -cp.sum(slack))
    if not sides:
        return [constraint, slack == 0]
    ((side, _),) = sides
    return [cp.vec(side, order="F") + slack <= 0]


def _slopes(side: Any, variables: list[cp.Variable]) -> csr_array:
    """Return the coefficients of an affine expression, (entries, all variables)."""
    found, blocks = side.grad, []
    for v in variables:
        slope = found.get(v)
        if slope is None:
            blocks.append(csr_array((side.size, v.size)))
        else:
            slope = np.reshape(slope, (v.size, side.size)) if np.isscalar(slope) else slope
            blocks.append(csr_array(csr_array(slope).T))
    return csr_array(block_array([blocks]))
