"""The user's constraints as half-spaces, so that a linear program's multipliers prove a bound.

An affine constraint is the half-space (or the equality) that it states: its coefficients are its
gradient, its right-hand side its value at zero, as CVXPY evaluates them. A convex one, g <= 0, is
replaced by supporting half-spaces g(v) + <grad g(v), q - v> <= 0, which hold wherever g <= 0 does,
moved outward by more than floating point can be off. They are taken at the minimizer that a conic
solver finds for the linear function to be bounded, where by the KKT conditions those of a smooth
set are enough, and then at the linear program's own minimizers (Kelley 1960), where the others
are. No solver is trusted: a poor point gives a weaker bound.

Constraints of other kinds (matrices, power cones, complex numbers) have no half-spaces here, and
what they would add to the lower bound is left out: the bounds are valid, but further apart. So have
atoms whose gradient CVXPY does not know, and those whose gradient is none: each half-space is
compared with the constraint itself at points around, where a convex function is never below its
tangent.

A certificate states every affine constraint, whether or not the lower bound needs it, and those
supporting half-spaces that the lower bound needs. If all constraints are affine, the witness's
bound is on the problem itself. Otherwise it is on these half-spaces, as nothing else is stored.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr
from scipy.optimize import linprog
from scipy.sparse import block_array, csr_array, eye_array, kron, vstack

from cvxleak.core.errors import CertificateError, InfeasibleError, SolverError
from cvxleak.core.validation import Array
from cvxleak.design.exact_values import exactly_met
from cvxleak.design.shown import Shown
from cvxleak.design.slater_repair import SlaterRepair
from cvxleak.design.user_constraints import (
    UserConstraints,
    as_expressions,
    choose_further,
)
from cvxleak.kernel.numbers import precision
from cvxleak.proofs.bounds.user_rows import BALANCED, missed, priced, read_own
from cvxleak.proofs.exact import normalized_rows
from cvxleak.proofs.format import HALF_SPACES, PROBLEM
from cvxleak.solvers.conic import SOLVERS, attempt

__all__ = ["HalfSpaces", "Implied"]

ROUNDS = 40
"""Most rounds of supporting half-spaces for one linear function."""

CLOSE = 1e-9
"""Rounds end when the linear program's value is this near to the conic one's, relatively."""

NEARER = (1.0, 0.03, 1e-3)
"""Where half-spaces are taken on the way from the conic solver's point to a linear program's."""

SAME = 1e-9
"""How far below a tangent, relative to its terms, rounding may put a convex function."""

OUTWARD = 1e-13
"""How far a supporting half-space is moved outward, relative to the terms of its offset."""

NEGLIGIBLE = (1e-11, 1e-9, 1e-7)
"""Multipliers below the first are left out; below the next where what is left does not cancel: a
further variable that only a rounding error touches."""

AROUND = (1e-3, 1e-3, 1e-3, 1e-3, 1e-1, 1e-1, 1e-1, 1e-1)
"""How far, on the way to a random channel, the points are at which a half-space is tried. A wrong
gradient is seen at about every second one of them, at every point where half-spaces are taken."""

FAR = 1e6
"""Bounds of further variables while supporting half-spaces are looked for."""


@dataclass(frozen=True)
class Implied:
    """What a linear program's multipliers prove about a linear function on the user's set.

    Attributes
    ----------
    least : float
        Its least value, as the multipliers prove it up to rounding.
    half_spaces, multipliers, balance
        What a certificate stores; see `cvxleak.proofs.bounds.user_rows`.
    extra : array
        Multipliers of the further rows that were given.
    """

    least: float
    half_spaces: list[dict[str, Any]]
    multipliers: list[float]
    balance: list[int]
    extra: Array

    def proof(self) -> dict[str, Any]:
        """Return the parts of a certificate's proof."""
        return {"own": self.multipliers} | ({"balance": self.balance} if self.balance else {})


class _NoGradientError(Exception):
    """What CVXPY says is a gradient of a constraint is none."""


class _Rows(NamedTuple):
    """matrix v >= at_least for v = (channel by columns, further variables); = where `equal`."""

    matrix: csr_array
    at_least: Array
    equal: NDArray[np.bool_]


class HalfSpaces:
    """The user's constraints on channels of one shape.

    Attributes
    ----------
    user : UserConstraints
    inside : SlaterRepair
        The channels that meet them.
    """

    def __init__(self, user: UserConstraints) -> None:
        self.user, self.inside = user, SlaterRepair(user)
        self._shape, self._channel = user.shape, user.channel
        self._constraints, self._variables = user.constraints, user.variables
        sizes = [v.size for v in self._variables]
        self._starts = dict(
            zip([v.id for v in self._variables], np.cumsum([0, *sizes[:-1]]), strict=True)
        )
        self._size = int(sum(sizes))
        self._curved: list[Any] = []
        self._rng = np.random.default_rng(0)
        self._complete = all(_only_signed(v) for v in self._variables[1:])
        found = [self._signs()]
        for constraint in self._constraints:
            sides = as_expressions(constraint)
            for expression, equal in sides:
                if expression.is_affine():
                    self._place(np.zeros(self._size))
                    rows = self._tangents(expression, equal, exact=True)
                    self._complete &= rows is not None
                    found += [] if rows is None else [rows]
                else:
                    self._curved.append(expression)
            self._complete &= bool(sides)
        self._complete &= not self._curved
        self._rows = _joined(found)

    @property
    def about(self) -> str:
        """What the witness's bound is about: the problem, if its stored rows state all of it."""
        return PROBLEM if self._complete else HALF_SPACES

    def stated(self) -> Implied:
        """Return the affine constraints without multipliers: they prove nothing."""
        return self._idle(np.zeros(self._shape))

    def shown(self, channel: Array, stored: list[dict[str, Any]]) -> Shown:
        """Return what can be shown of a channel, the lower bound being about the problem anyway."""
        further = self._further(channel, stored) if self.inside.met(channel) else None
        if further is None:
            return Shown(False, {}, {"lower": PROBLEM})
        return Shown(True, further, {"lower": PROBLEM, "upper": self.about})

    def _further(self, channel: Array, stored: list[dict[str, Any]]) -> dict[str, Any] | None:
        """Return what a witness stores with its channel, or None if it is not in `stored`.

        That is values of the further variables with which the channel meets each entry exactly:
        floats, or fractions where no floats would do.
        """
        rows = read_own(stored, *self._shape)
        count = 1 + max((j for row in rows for j, _ in row.further), default=-1)
        exact = normalized_rows(channel.tolist())
        if not count:
            return None if missed(rows, exact, {}) else {}
        try:
            choose_further(self._constraints, self._channel, channel)
        except SolverError:
            return None
        values = self._point()[channel.size :][:count].tolist()
        for found in (values, exactly_met(rows, exact, values)):
            if found is not None and not missed(rows, exact, {"further": found}):
                return {"further": found}
        return None

    def least(self, slope: Array, extra: tuple[csr_array, Array] | None = None) -> Implied:
        """Return what multipliers prove about the least value of sum slope q on the set.

        `extra` has further rows A (q, t) <= b, with q by rows and variables t of their own.
        """
        while True:
            try:
                return self._least(slope, extra)
            except _NoGradientError:  # without that constraint
                continue

    def _least(self, slope: Array, extra: tuple[csr_array, Array] | None) -> Implied:
        size = float(np.abs(slope).max()) or 1.0
        wanted, target, center = np.inf, slope / size, None
        rows = self._rows
        if self._curved:
            q, problem = self._channel, cp.Minimize(cp.sum(cp.multiply(target, self._channel)))
            rules = [q >= 0, cp.sum(q, axis=1) == 1, *self._constraints]
            if extra is not None:
                others = cp.Variable(cast(tuple[int, int], extra[0].shape)[1] - q.size)
                rules.append(extra[0] @ cp.hstack([cp.vec(q, order="C"), others]) <= extra[1])
            attempt(cp.Problem(problem, rules))
            if all(v.value is not None for v in self._variables):
                wanted = float((target * np.asarray(q.value)).sum())
                center = self._point()
                rows = _joined([rows, *self._supports()])
        for _ in range(ROUNDS if self._curved else 0):
            answer = self._program(target, rows, extra, FAR)
            if answer.x is None or answer.fun >= wanted - CLOSE * (1 + abs(wanted)):
                break
            news = []
            for share in NEARER if center is not None else (1.0,):
                # Near the optimum, towards the point to be cut off: there the kinks show.
                end = answer.x[: self._size]
                self._place(end if center is None else center + share * (end - center))
                news += self._supports()
            if not news:
                break
            rows = _joined([rows, *news])
        answer = self._program(target, rows, extra, np.inf)
        if answer.status == 2:
            raise InfeasibleError("constraints: no channel meets them; loosen one")
        if answer.x is None:
            # Half-spaces that do not bound further variables, or a solver in trouble.
            return self._idle(slope, extra)
        return self._implied(answer, rows, slope, size, extra)

    def _program(
        self, target: Array, rows: _Rows, extra: tuple[csr_array, Array] | None, far: float
    ) -> Any:
        runs, outputs = target.shape
        cells = target.size
        many, width = (0, cells) if extra is None else cast(tuple[int, int], extra[0].shape)
        added = width - cells
        bounds = [(0.0, None)] * cells + [(-far, far)] * (self._size - cells)
        bounds += [(None, None)] * added
        loose, tight = ~rows.equal, rows.equal
        blank = csr_array((len(rows.at_least), added))
        stated = csr_array(block_array([[rows.matrix, blank]])) if added else rows.matrix
        above, limits = -stated[loose], -rows.at_least[loose]
        if extra is not None:
            by_rows, others = extra[0][:, :cells], extra[0][:, cells:]
            order = np.arange(cells).reshape(runs, outputs).ravel(order="F")
            blank = csr_array((many, self._size - cells))
            above = vstack([above, block_array([[by_rows[:, order], blank, others]])])
            limits = np.append(limits, extra[1])
        sums = kron(csr_array(np.ones((1, outputs))), eye_array(runs))
        sums = block_array([[sums, csr_array((runs, self._size - cells + added))]])
        return linprog(
            np.append(target.ravel(order="F"), np.zeros(self._size - cells + added)),
            A_ub=csr_array(above) if len(limits) else None,
            b_ub=limits if len(limits) else None,
            A_eq=csr_array(vstack([sums, stated[tight]])),
            b_eq=np.append(np.ones(runs), rows.at_least[tight]),
            bounds=bounds,
            method="highs",
            options=dict(SOLVERS["HIGHS"].sharp),
        )

    def _implied(
        self,
        answer: Any,
        rows: _Rows,
        slope: Array,
        size: float,
        extra: tuple[csr_array, Array] | None,
    ) -> Implied:
        shape = self._shape
        many = 0 if extra is None else len(extra[1])
        above = -np.asarray(answer.ineqlin.marginals)
        gamma = np.zeros(len(rows.at_least))
        gamma[~rows.equal] = np.maximum(above[: len(above) - many], 0.0)
        gamma[rows.equal] = np.asarray(answer.eqlin.marginals)[shape[0] :]
        cells = shape[0] * shape[1]
        gamma[np.abs(gamma) <= NEGLIGIBLE[0] * max(1.0, np.abs(gamma).max(initial=0))] = 0.0
        stored = gamma != 0
        stored[: len(self._rows.at_least)] = True
        kept = _Rows(rows.matrix[stored], rows.at_least[stored], rows.equal[stored])
        written = _written(kept, shape)
        gamma = gamma[stored]
        prices = above[len(above) - many :] * size
        rest, offset = slope.copy(), 0.0
        for negligible in NEGLIGIBLE:
            gamma[np.abs(gamma) <= negligible * max(1.0, np.abs(gamma).max(initial=0))] = 0.0
            multipliers = (gamma * size).tolist()
            balance = _balance(kept.matrix[:, cells:], gamma)
            try:
                with precision():
                    proof = {"own": multipliers, "balance": balance}
                    taken, least = priced(read_own(written, *shape), proof)
            except CertificateError:
                continue
            offset = float(least)
            for x, y, amount in taken:
                rest[x, y] -= float(amount)
            break
        else:
            # Multipliers of further variables that do not cancel prove nothing.
            multipliers, balance = [0.0] * len(written), []
        if extra is not None:
            rest += (extra[0][:, :cells].T @ prices).reshape(shape)
            offset -= float(prices @ extra[1])
        # The multipliers' own value: the program's is that of a point that may miss some rows.
        value = float(rest.min(axis=1).sum()) + offset
        return Implied(value, written, multipliers, balance, prices)

    def _idle(self, slope: Array, extra: tuple[csr_array, Array] | None = None) -> Implied:
        """Return what holds without any multiplier."""
        written = _written(self._rows, self._shape)
        none = np.zeros(0 if extra is None else len(extra[1]))
        return Implied(float(slope.min(axis=1).sum()), written, [0.0] * len(written), [], none)

    # Half-spaces -----------------------------------------------------------------------------

    def _place(self, point: Array) -> None:
        """Give all variables their part of a point."""
        for v in self._variables:
            start = self._starts[v.id]
            # Without CVXPY's check of signs: half-spaces hold wherever they are taken.
            v.save_value(point[start : start + v.size].reshape(v.shape, order="F"))

    def _point(self) -> Array:
        return np.concatenate([np.ravel(np.asarray(v.value), order="F") for v in self._variables])

    def _supports(self) -> list[_Rows]:
        """Return the supporting half-spaces at the variables' values."""
        found = []
        values = [np.array(v.value) for v in self._variables]
        inside = np.full(self._shape, 1 / self._shape[1])
        for curved in tuple(self._curved):
            for share in (0.0, 1e-12, 1e-9, 1e-6):
                # Logarithms have no gradient where a probability is zero.
                self._channel.save_value((1 - share) * np.maximum(values[0], 0) + share * inside)
                rows = self._tangents(curved)
                if rows is not None:
                    if not self._below(curved, rows):
                        self._curved.remove(curved)
                        raise _NoGradientError
                    found.append(rows)
                    break
        for v, value in zip(self._variables, values, strict=True):
            v.save_value(value)
        return found

    def _tangents(
        self, expression: Any, equal: bool = False, *, exact: bool = False
    ) -> _Rows | None:
        """Return g(v) + <grad g(v), u - v> <= 0 for each entry g of an expression."""
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                value, slopes = expression.value, expression.grad
            if value is None or any(slope is None for slope in slopes.values()):
                return None
            value = np.ravel(np.asarray(value, dtype=float), order="F")
            matrix = self._gathered(slopes, len(value))
        except Exception:
            # Whatever an atom of CVXPY raises that has no gradient, or fails to compute one.
            return None
        if not (np.isfinite(value).all() and np.isfinite(matrix.data).all()):
            return None
        point = self._point()
        offset = value - matrix @ point
        if not exact:
            offset -= OUTWARD * (1 + np.abs(value) + abs(matrix) @ np.abs(point))
        return _Rows(-matrix, offset, np.full(len(value), equal))

    def _below(self, expression: Any, rows: _Rows) -> bool:
        """Whether an expression is no less than its tangent at points around the one in place."""
        here, below = self._point(), True
        cells = self._shape[0] * self._shape[1]
        for share in AROUND:
            other = here + self._rng.normal(size=len(here)) * (1 + np.abs(here))
            other[:cells] = self._rng.dirichlet(np.ones(self._shape[1]), self._shape[0]).ravel("F")
            point = (1 - share) * here + share * other
            self._place(point)
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                inside = all(float(np.max(c.violation())) <= 0 for c in expression.domain)
                value = expression.value if inside else None
            if value is None:
                continue
            value = np.ravel(np.asarray(value, dtype=float), order="F")
            tangent = rows.at_least - rows.matrix @ point
            allowed = SAME * (1 + np.abs(value) + abs(rows.matrix) @ np.abs(point))
            below &= not bool((value < tangent - allowed).any())
        self._place(here)
        return below

    def _gathered(self, slopes: Any, entries: int) -> csr_array:
        blocks = []
        for v in self._variables:
            found = slopes.get(v)
            if found is None:
                blocks.append(csr_array((entries, v.size)))
            else:
                dense = csr_array(
                    np.reshape(found, (v.size, entries)) if np.isscalar(found) else found
                )
                blocks.append(csr_array(dense.T))
        return csr_array(block_array([blocks]))

    def _signs(self) -> _Rows:
        """Return the signs that further variables were declared with."""
        data, places = [], []
        for v in self._variables[1:]:
            sign = 1.0 if v.is_nonneg() else -1.0 if v.is_nonpos() else 0.0
            if sign:
                start = self._starts[v.id]
                data += [sign] * v.size
                places += range(start, start + v.size)
        count = len(data)
        matrix = csr_array((data, (range(count), places)), shape=(count, self._size))
        return _Rows(matrix, np.zeros(count), np.zeros(count, dtype=bool))


def _only_signed(variable: cp.Variable) -> bool:
    """Whether what was declared of a further variable is affine rows: signs, bounds, symmetry."""
    attributes = variable.attributes.items()
    declared = {name for name, value in attributes if value is not None and value is not False}
    return declared <= {"nonneg", "nonpos", "pos", "neg", "bounds", "symmetric"}


def _written(rows: _Rows, shape: tuple[int, int]) -> list[dict[str, Any]]:
    """Return rows as a certificate stores them."""
    cells = shape[0] * shape[1]
    matrix = csr_array(rows.matrix)
    written = []
    for i, (limit, equal) in enumerate(
        zip(rows.at_least.tolist(), rows.equal.tolist(), strict=True)
    ):
        here = slice(matrix.indptr[i], matrix.indptr[i + 1])
        pairs = list(zip(matrix.indices[here].tolist(), matrix.data[here].tolist(), strict=True))
        written.append(
            {
                "entries": [[f % shape[0], f // shape[0], a] for f, a in pairs if f < cells],
                "further": [[f - cells, b] for f, b in pairs if f >= cells],
                "at_least": limit,
                "equal": equal,
            }
        )
    return written


def _joined(parts: list[_Rows]) -> _Rows:
    return _Rows(
        csr_array(vstack([part.matrix for part in parts])),
        np.concatenate([part.at_least for part in parts]),
        np.concatenate([part.equal for part in parts]),
    )


def _balance(further: csr_array, multipliers: Array) -> list[int]:
    """Return entries, those of large multipliers first, that can absorb what does not cancel."""
    touched = np.unique(further.nonzero()[1])
    if not len(touched):
        return []
    weighted = (further[:, touched].toarray() * np.abs(multipliers)[:, None]).T
    triangle, order = cast(tuple[Array, Array], qr(weighted, mode="r", pivoting=True))
    size = np.abs(np.diag(triangle))
    rank = int((size > 1e-10 * size[0]).sum())
    return sorted(order[: min(rank, BALANCED)].tolist())
