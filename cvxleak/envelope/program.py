"""The linear program of the envelope at a fixed level, by column generation.

    maximize sum_xy u_xy
    subject to u >= 0, sum_x u_xy <= P(y), sum_y u_xy (r_xy - t) >= 0, r_xy = P(y|x) / P(y)

u_xy is the mass of output y that goes to the symbol of input x, and t = e^epsilon. The dual
function at multipliers mu >= 0 of the last constraints is

    D(mu, t) = sum_y P(y) max(0, max_x [1 + mu_x (r_xy - t)]).

Few inputs matter for an output, so a master problem over some columns, and pricing over all of
them, takes the place of the program with |X| |Y| columns. Where there are many more outputs than
inputs, outputs are merged as well: merging is a post-processing, so the value stays a lower bound;
D over all outputs is an upper bound; and groups whose outputs disagree on the maximum are split.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cvxleak.core.clock import Clock
from cvxleak.core.errors import SolverError
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.envelope.repair import repaired
from cvxleak.solvers.highs import quiet_highs

if TYPE_CHECKING:
    import highspy

__all__ = ["Program", "Vertex"]

Indices = NDArray[np.intp]

LIFT = 2e-13
"""The master problem asks of symbols so much more, relatively, so that few have to be trimmed."""

SEPARATE = 2000
"""Up to this many outputs, none are merged at first."""

FAR = 1e-11
"""If the bounds are farther apart, relative to the masses that matter, the program is run again."""

HUGE = 1e6
"""From this ratio on, the variables of the master problem are shares and not masses."""

LOOSE = 1e-11
"""If the bounds are farther apart, relative to their size, they are compared with `_simple`'s."""

STEPS = (0.0, 1e-13, 1e-11, 1e-9, 1e-7)
"""Relative steps by which multipliers are enlarged."""

_FIRST_COLUMNS = 6
_MORE_COLUMNS = 3
_CELLS = 64


@dataclass(frozen=True)
class Vertex:
    """A solution at one level.

    Attributes
    ----------
    level : float
        t.
    inputs, outputs, masses : arrays of one length
        The positive u_xy, every symbol of level t at least, in exact arithmetic too.
    value : float
        Their sum, a lower bound.
    multipliers : array, shape (inputs,)
        mu; infinite for inputs that cannot have a symbol at this level.
    prices : array, shape (outputs,)
        max(0, max_x [1 + mu_x (r_xy - t)]).
    bound : float
        D(mu, t), an upper bound up to rounding.
    """

    level: float
    inputs: Indices
    outputs: Indices
    masses: Array
    value: float
    multipliers: Array
    prices: Array
    bound: float


class Program:
    """The programs of one prior and channel at all levels; each solution starts from the last.

    Parameters
    ----------
    prior : array, shape (n,)
        Positive.
    rows : array, shape (n, m)
        P(y|x); every column has a positive entry.
    mass : float
        Order of magnitude of the masses that matter.
    """

    def __init__(self, prior: Array, rows: Array, mass: float = 1.0) -> None:
        self._scale = 1 / max(mass, 1e-15)
        self._solver = quiet_highs()
        self.output = prior @ rows
        self.ratios = np.minimum(rows / self.output, 1e200)
        self.jumps: Array = self.ratios.max(axis=1)
        self.pivots = 0
        self._huge = bool(self.jumps.max() > HUGE)
        n, m = rows.shape
        self._cells: Indices = np.arange(m) if m <= max(SEPARATE, 4 * n) else self._first_cells()
        self._group()

    def solve(
        self,
        level: float,
        *,
        strict: bool = False,
        tol: float = 1e-12,
        clock: Clock | None = None,
        bound_only: bool = False,
    ) -> Vertex:
        """Return a solution whose bounds differ by at most `tol`, as far as rounding allows.

        With `bound_only`, the lower bound may leave out symbols whose largest ratio is the level,
        because rounding keeps them from reaching it.

        With `strict`, symbols have to exceed the level: inputs whose ratios do not are left out.
        When `clock` is late, no further columns are added; both bounds still hold.
        """
        clock = clock or Clock()
        able = self.jumps > level if strict else self.jumps >= level
        if not able.any():
            none, nothing = np.zeros(0, dtype=np.intp), np.zeros(len(self.output))
            mu = np.full(len(able), np.inf)
            return Vertex(level, none, none, np.zeros(0), 0.0, mu, nothing, 0.0)
        found = self._attempt(level, able, tol, clock)
        if bound_only and (np.abs(self.jumps - level) < 1e-12 * level).any():
            return found
        if found.bound - found.value > LOOSE * found.bound:
            found = _better(self._simple(level, able), found)
        open_ = found.bound - found.value > max(tol, FAR / self._scale)
        if open_ and not clock.late:
            # From another basis HiGHS may do better.
            self._solver, self._basis = quiet_highs(), None
            found = _better(found, self._attempt(level, able, tol, clock))
        return found

    def _simple(self, level: float, able: NDArray[np.bool_]) -> Vertex:
        """Return a solution without the solver, which cannot see masses far below the largest.

        Outputs at or above the level go to the input that they point to most, and their surplus is
        spent on the cheapest of the others. The multipliers are 1 / (t - tau) for all inputs, tau
        the ratio down to which outputs are needed for a mean of t. Both are optimal where only one
        input can have a symbol.
        """
        best = np.where(able[:, None], self.ratios, -np.inf).argmax(axis=0)
        top = self.ratios[best, np.arange(len(best))]
        own = np.flatnonzero(top >= level)
        held = best[own], own, self.output[own] * (1 - 4e-16)
        inputs, outputs, masses = repaired(held, self.output, self.ratios, level, able, math.inf)
        order = np.argsort(-top, kind="stable")
        surplus = np.cumsum(self.output[order] * (top[order] - level))
        last = int(np.argmax(surplus < 0)) if (surplus < 0).any() else -1
        # A bit more, so that outputs at tau are worth nothing in exact arithmetic too.
        tau = float(top[order[last]]) * (1 + 2e-15)
        mu = np.zeros(len(able))
        if last >= 0 and tau < level:
            mu = np.where(able, (1 + 2e-15) / (level - tau), 0.0)
        mu, _, prices, bound = self._priced(mu, level, able, STEPS)
        multipliers = np.where(able, mu, np.inf)
        value = float(masses.sum())
        return Vertex(level, inputs, outputs, masses, value, multipliers, prices, bound)

    def _attempt(self, level: float, able: NDArray[np.bool_], tol: float, clock: Clock) -> Vertex:
        """Solve from the last basis, if there is one."""
        while True:
            masses, mu, value = self._price_out(level, able, tol, clock)
            steps = STEPS if self._huge else (0.0,)
            mu, reduced, prices, bound = self._priced(mu, level, able, steps)
            exact = len(self._mass) == len(self.output) or bound - value <= tol
            if exact or clock.late:
                break
            if not self._split(np.where(prices > 0, reduced.argmax(axis=0) + 1, 0)):
                break
        inputs, outputs, masses = self._repaired(masses, level, able, bound)
        multipliers = np.where(able, mu, np.inf)
        value = float(masses.sum())
        return Vertex(level, inputs, outputs, masses, value, multipliers, prices, bound)

    def _priced(
        self,
        mu: Array,
        level: float,
        able: NDArray[np.bool_],
        steps: tuple[float, ...] = (0.0,),
    ) -> tuple[Array, Array, Array, float]:
        """Return multipliers, 1 + mu (r - t), its largest positive parts, and the dual function.

        The multipliers are enlarged a little, by one of the steps, if that helps: what HiGHS or
        rounding leaves in an output of large mass may outweigh all the mass that is to be bounded.
        """

        def priced(step: float) -> tuple[Array, Array, Array, float]:
            trial = mu * (1 + step)
            reduced = 1 + trial[able, None] * excess
            prices = np.maximum(reduced.max(axis=0), 0.0)
            return trial, reduced, prices, float(self.output @ prices)

        excess = self.ratios[able] - level
        best = min((priced(step) for step in steps), key=lambda trial: trial[3])
        # Without multipliers the dual function is the mass of all outputs.
        return priced(-1.0) if best[3] > self.output.sum() else best

    def _first_cells(self) -> Indices:
        """Return cells of outputs with the same best input and neighboring largest ratios."""
        best, top = self.ratios.argmax(axis=0), self.ratios.max(axis=0)
        rank = np.argsort(np.argsort(top, kind="stable"), kind="stable")
        return np.unique(best * _CELLS + rank * _CELLS // len(top), return_inverse=True)[1]

    def _group(self) -> None:
        """Set up the master problem for the present cells."""
        m, count = len(self.output), int(self._cells.max()) + 1
        if count == m:
            self._mass, self._ratios = self.output, self.ratios
        else:
            self._mass = np.bincount(self._cells, self.output).astype(np.float64)
            weighted = self.ratios * self.output
            sums = [np.bincount(self._cells, row, minlength=count) for row in weighted]
            self._ratios = np.array(sums) / self._mass
        n = len(self._ratios)
        first = min(_FIRST_COLUMNS, n)
        best = np.argpartition(-self._ratios, first - 1, axis=0)[:first]
        self._rows, self._columns = best.ravel(), np.tile(np.arange(count), first)
        self._basis: highspy.HighsBasis | None = None
        self._basis_columns = 0

    def _split(self, pattern: Indices) -> bool:
        """Split the cells whose outputs differ in their pattern; say whether there were any.

        Then the dual functions with and without merging agree at the present multipliers.
        """
        code = self._cells * (int(pattern.max()) + 1) + pattern
        cells = np.unique(code, return_inverse=True)[1]
        if cells.max() == self._cells.max():
            return False
        self._cells = cells
        self._group()
        return True

    def _price_out(
        self, level: float, able: NDArray[np.bool_], tol: float, clock: Clock
    ) -> tuple[Array, Array, float]:
        """Solve the master problem, adding columns until no more than `tol` / 2 can be gained."""
        while True:
            masses, mu, nu = self._solve_master(level, able)
            reduced = np.where(able[:, None], 1 + mu[:, None] * (self._ratios - level), -np.inf)
            value = float(masses.sum())
            bound = float(self._mass @ np.maximum(reduced.max(axis=0), 0.0))
            if bound - value <= tol / 2 or clock.late:
                return masses, mu, value
            reduced[self._rows, self._columns] = -np.inf
            more = min(_MORE_COLUMNS, len(reduced))
            rows = np.argpartition(-reduced, more - 1, axis=0)[:more]
            columns = np.broadcast_to(np.arange(reduced.shape[1]), rows.shape)
            gains = np.take_along_axis(reduced, rows, axis=0) - nu
            worth = gains > 1e-13
            if not worth.any():
                return masses, mu, value
            self._rows = np.concatenate([self._rows, rows[worth]])
            self._columns = np.concatenate([self._columns, columns[worth]])

    def _solve_master(self, level: float, able: NDArray[np.bool_]) -> tuple[Array, Array, Array]:
        """Return the masses of the present columns, mu and the prices of the outputs.

        HiGHS sees numbers near 1: the symbols' rows are divided by their largest entry, and where
        ratios are huge the variables are shares of an output and not masses.
        """
        n, count = self._ratios.shape
        spend(100 * (n + count + len(self._rows)) + 10 * n * count)
        size, scale = len(self._rows), count * self._scale
        unit = self._mass[self._columns] * scale if self._huge else np.ones(size)
        capacity = np.ones(count) if self._huge else scale * self._mass
        # An input whose largest ratio is at the level keeps its symbol.
        levels = np.clip(self.jumps, level, level * (1 + LIFT))
        excess = (self._ratios[self._rows, self._columns] - levels[self._rows]) * unit
        largest = np.zeros(n)
        np.maximum.at(largest, self._rows, np.abs(excess))
        largest[largest == 0] = 1.0
        import highspy

        entries = np.stack([excess / largest[self._rows], np.ones(size)], axis=1)
        index = np.stack([self._rows, n + self._columns], axis=1)
        # Arrays are handed over as they are; the fields of a HighsLp would be copied one by one.
        model = (
            *(size, n + count, 2 * size),
            *(int(highspy.MatrixFormat.kColwise), int(highspy.ObjSense.kMaximize), 0.0),
            *(unit, np.zeros(size), np.where(able[self._rows], np.inf, 0.0)),
            np.concatenate([np.zeros(n), np.full(count, -np.inf)]),
            np.concatenate([np.full(n, np.inf), capacity]),
            np.arange(0, 2 * size + 1, 2, dtype=np.int32),
            *(index.ravel().astype(np.int32), entries.ravel(), np.zeros(size, dtype=np.int32)),
        )
        solver = self._run(model)
        solution = solver.getSolution()
        values, duals = np.nan_to_num(solution.col_value), np.nan_to_num(solution.row_dual)
        if len(values) != size or len(duals) != n + count:
            raise SolverError(f"HiGHS stopped with {solver.getModelStatus()}")
        masses = np.maximum(values, 0.0) * unit / scale
        mu = np.maximum(-duals[:n], 0.0) / largest
        nu = np.maximum(duals[n:], 0.0)
        return masses, mu, nu / (scale * self._mass) if self._huge else nu

    def _run(self, model: tuple[Any, ...]) -> highspy.Highs:
        """Solve from the last basis; if that fails, from none.

        An answer that HiGHS does not call optimal is accepted, too: whatever the point and the
        multipliers are, both bounds are computed from them anew.
        """
        import highspy

        solver = self._solver
        solver.passModel(*model)
        if self._basis is not None:
            more = len(self._rows) - self._basis_columns
            if more:
                new = [highspy.HighsBasisStatus.kLower] * more
                self._basis.col_status = [*self._basis.col_status, *new]
            solver.setBasis(self._basis)
        solver.run()
        self.pivots += max(solver.getInfo().simplex_iteration_count, 0)
        self._basis, self._basis_columns = solver.getBasis(), len(self._rows)
        if solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            self._basis = None
            solver = quiet_highs()
            solver.setOptionValue("primal_feasibility_tolerance", 1e-9)
            solver.setOptionValue("dual_feasibility_tolerance", 1e-9)
            solver.passModel(*model)
            solver.run()
        return solver

    def _repaired(
        self, masses: Array, level: float, able: NDArray[np.bool_], bound: float
    ) -> tuple[Indices, Indices, Array]:
        """Return positive masses for all outputs that meet every constraint."""
        used = masses > 1e-15 * self._mass[self._columns]
        held = self._rows[used], self._columns[used], masses[used]
        x, g, kept = repaired(held, self._mass, self._ratios, level, able, bound)
        if len(self._mass) == len(self.output):
            return x, g, kept
        share = kept / self._mass[g]
        # Every output of a cell is shared out as the cell is.
        order = np.argsort(self._cells, kind="stable")
        start = np.searchsorted(self._cells[order], np.arange(len(self._mass) + 1))
        sizes = (start[1:] - start[:-1])[g]
        entry = np.repeat(np.arange(len(g)), sizes)
        offset = np.arange(len(entry)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        outputs = order[start[g][entry] + offset]
        return x[entry], outputs, share[entry] * self.output[outputs]


def _better(one: Vertex, other: Vertex) -> Vertex:
    """Return the better of each bound; the first, if they are equal up to rounding."""
    best = one if one.value >= other.value * (1 - 1e-14) else other
    dual = one if one.bound <= other.bound * (1 + 1e-14) else other
    return replace(best, multipliers=dual.multipliers, prices=dual.prices, bound=dual.bound)
