"""The master of a design in NumPy: a predictor-corrector method with slacks.

With finitely many adversaries j and sources k the master is

    minimize t  subject to  I_j(Q) + u_j = t,  E_k(Q) + v_k = D,  Q row-stochastic    (leakage)
    minimize t  subject to  I_j(Q) + u_j = L,  E_k(Q) + v_k = t,  Q row-stochastic    (distortion)

with u, v, Q >= 0 (`cvxleak.design.interior` has the functions). The slacks are variables
of their own, so that curved constraints do not shorten the steps: they hold in the limit only
(Mehrotra 1992; Nocedal and Wright, Numerical Optimization, chapters 14 and 19). That does no harm,
since what counts is the dual bound, which any multipliers prove, and since the channel is made
feasible and audited anyway.

The Hessian of the Lagrangian has one block of the size of the rows per output; adversaries, sources
and row sums couple them. A Newton step costs |Y| R^3 + |Y| R^2 (J + K + R) operations.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs, lu_solve

from cvxleak.core.clock import Clock
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.design.goal import Goal
from cvxleak.design.interior import TINY, Master, MasterPoint
from cvxleak.design.work import STEP

__all__ = ["solve_master"]

STEPS = 60
"""Newton steps after which a master is left as it is."""

DAMPING = 0.9
"""Part of the way to the boundary that a step goes at most."""

AHEAD = 0.1
"""How far the products may be ahead of the residuals. Slacks that vanish while the constraints do
not hold yet end at the boundary, far from the optimum; the curvature of the constraints takes some
of each step's gain, so that this is what happens unless it is seen to."""

STUCK = 12
"""Newton steps without a better bound after which nothing more is expected."""


class _Point(NamedTuple):
    """Primal and dual variables; `held` and `price` are those of adversaries, then sources."""

    q: Array
    t: float
    held: Array
    price: Array
    nu: Array
    z: Array


def solve_master(
    master: Master, channel: Array, gap: float, clock: Clock | None = None
) -> MasterPoint:
    """Return a channel and multipliers whose dual bound is within about `gap` of the optimum.

    Starts from `channel`, whose entries are positive but for those that are to stay zero. Ends
    early where rounding lets it get no further or `clock` says so: the bound is valid all the same.
    """
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return _Method(master, channel > 0).run(channel, gap, clock or Clock())


class _Method:
    def __init__(self, master: Master, free: NDArray[np.bool_]) -> None:
        self._master, self._free = master, free
        self._many, self._values, self._rows = master.joint.shape
        self._sources = len(master.cost)
        limited = np.arange(self._many + self._sources) < self._many
        # Those whose right-hand side is t, and the right-hand side of the others.
        self._on_t = limited == (master.goal is Goal.LEAKAGE)
        self._limit = np.where(self._on_t, 0.0, master.budget)

    def run(self, channel: Array, gap: float, clock: Clock) -> MasterPoint:
        master, many = self._master, self._many
        point = self._start(channel)
        blank = point.price[:many], point.price[many:]
        best = MasterPoint(channel, np.inf, -np.inf, *blank, master.joint @ channel)
        stuck = steps = 0
        for _ in range(STEPS):
            steps += 1
            s, output, information = master.informations(point.q)
            values = np.concatenate([information, master.distortions(point.q)])
            scale = float(point.price[self._on_t].sum())
            price = point.price / scale
            lower = master.bound(s, price[:many], price[many:])
            over = np.maximum(values - self._limit, 0.0)[~self._on_t]
            value = float(values[self._on_t].max() + price[~self._on_t] @ over)
            if lower > best.lower:
                multipliers = price[:many], price[many:]
                best = MasterPoint(point.q, value, lower, *multipliers, s)
                stuck = 0
            else:
                stuck += 1
            if value - best.lower <= gap or stuck > STUCK or clock.late:
                break
            moved = self._step(point, s, output, values)
            if moved is None:
                break
            spend(self._step_work)
            point = moved
        return replace(best, work=steps * self._step_work)

    @property
    def _step_work(self) -> float:
        outputs, rows = self._free.shape[1], self._rows
        coupled = self._many * self._values + self._sources + rows
        return STEP + outputs * rows**2 * (rows + coupled)

    def _start(self, channel: Array) -> _Point:
        master = self._master
        values = np.concatenate([master.informations(channel)[2], master.distortions(channel)])
        wide = float(values[self._on_t].max())
        t = 1.1 * wide + 1e-6
        goal = np.where(self._on_t, t, self._limit)
        held = np.maximum(goal - values, 0.1 * np.maximum(goal, 1e-6))
        share = 1.0 / self._on_t.sum()
        mu = share * float(held[self._on_t].mean())
        price = np.where(self._on_t, share, mu / held)
        z = np.where(self._free, mu / np.where(self._free, channel, 1.0), 0.0)
        return _Point(channel, t, held, price, np.zeros(self._rows), z)

    def _step(self, at: _Point, s: Array, output: Array, values: Array) -> _Point | None:
        """Return the point after a predictor and a corrector step, or None if there is none."""
        q, free = at.q, self._free
        try:
            system = _System(self._master, at, s, output, self._on_t)
        except np.linalg.LinAlgError:
            return None
        residual = values + at.held - np.where(self._on_t, at.t, self._limit)
        unit = 1.0 - float(at.price[self._on_t].sum())
        count = int(free.sum()) + len(at.price)
        mu = (float(at.price @ at.held) + float((at.z * q).sum())) / count
        aim_z = np.where(free, -at.z * q, 0.0)
        aim_p = -at.price * at.held
        guess = system.solve(residual, unit, aim_p, aim_z)
        primal, dual = self._longest(at, guess, 1.0)
        after = float((at.price + dual * guess.price) @ (at.held + primal * guess.held))
        after += float(((at.z + dual * guess.z) * (q + primal * guess.q)).sum())
        target = mu * max((after / count / mu) ** 3, 1e-4)
        if max(np.abs(residual).max(), abs(unit)) > AHEAD * mu * count:
            target = mu
        aim_z = np.where(free, target - at.z * q - guess.z * guess.q, 0.0)
        aim_p = target - at.price * at.held - guess.price * guess.held
        move = system.solve(residual, unit, aim_p, aim_z)
        if not all(np.isfinite(part).all() for part in move):
            return None
        primal, dual = self._longest(at, move, DAMPING)
        if max(primal, dual) < 1e-8:
            return None
        channel = np.where(free, q + primal * move.q, 0.0)
        channel /= channel.sum(axis=1, keepdims=True)
        return _Point(
            channel,
            at.t + primal * move.t,
            at.held + primal * move.held,
            at.price + dual * move.price,
            at.nu + dual * move.nu,
            at.z + dual * move.z,
        )

    def _longest(self, at: _Point, move: _Point, part: float) -> tuple[float, float]:
        primal = min(_longest(at.q, move.q, part), _longest(at.held, move.held, part))
        return primal, min(_longest(at.price, move.price, part), _longest(at.z, move.z, part))


class _System:
    """The Newton equations at a point, factored."""

    def __init__(
        self, master: Master, at: _Point, s: Array, output: Array, on_t: NDArray[np.bool_]
    ) -> None:
        many, values, rows = master.joint.shape
        self._at, self._many = at, many
        theta = at.price[:many]
        flat, marginal = master.joint.reshape(-1, rows), master.joint.sum(axis=1)
        safe_s, safe_o = np.maximum(s, TINY), np.maximum(output, TINY)
        slope = np.log(safe_s / safe_o[:, None])
        # Everything is scaled by Q, so that entries near zero cost no digits.
        self._scaled = scaled = at.q.T
        by_output = slope.transpose(2, 0, 1)  # (Y, J, A)
        joint = master.joint.transpose(2, 0, 1)  # (R, J, A)
        gradient = np.stack([(joint * part).sum(axis=2) for part in by_output])  # (Y, R, J)
        outer = np.where(s > 0, theta[:, None, None] / safe_s, 0.0).reshape(many * values, -1)
        inner = np.where(output > 0, theta[:, None] / safe_o, 0.0)
        block = np.matmul(flat.T[None] * outer.T[:, None, :], flat)
        block -= np.matmul(marginal.T[None] * inner.T[:, None, :], marginal)
        block *= scaled[:, :, None] * scaled[:, None, :]
        place = np.arange(rows)
        block[:, place, place] += np.where(scaled > 0, at.z.T * scaled, 1.0)
        self._root = np.linalg.inv(np.linalg.cholesky(block))
        sides = [
            gradient,
            master.cost.transpose(2, 1, 0),
            np.broadcast_to(np.eye(rows), (len(scaled), rows, rows)),
        ]
        self._side = np.concatenate(sides, axis=2)
        self._weight = np.append(np.sqrt(at.price / at.held), np.ones(rows))
        self._through = np.matmul(self._root, self._side * scaled[:, :, None] * self._weight)
        wide = self._through.reshape(-1, len(self._weight))
        coupled, size = len(at.price), len(self._weight)
        table = np.zeros((size + 1, size + 1))
        table[:size, :size] = wide.T @ wide
        place = np.arange(coupled)
        table[place, place] += 1.0
        self._on_t = np.append(on_t * 1.0, np.zeros(rows)) * self._weight
        table[:size, size] = table[size, :size] = self._on_t
        if not np.isfinite(table).all():
            raise np.linalg.LinAlgError
        # Not by lu_factor, which has a warning for what is an end here.
        (factorize,) = get_lapack_funcs(("getrf",), (table,))
        lu, order, singular = factorize(table)
        if singular:
            raise np.linalg.LinAlgError
        self._factor = lu, order
        prices = np.concatenate([at.price, at.nu])
        self._stationary = (self._side @ prices).T - at.z

    def solve(self, residual: Array, unit: float, aim_p: Array, aim_z: Array) -> _Point:
        """Return the step for these residuals and products."""
        at, scaled, weight = self._at, self._scaled, self._weight
        right = aim_z - self._stationary * at.q
        pulled = np.matmul(self._root, right.T[:, :, None])
        wide = self._through.reshape(-1, len(weight))
        known = np.append(-residual - aim_p / at.price, np.zeros(len(at.nu)))
        load = np.append(wide.T @ pulled.ravel() - known * weight, unit)
        found = lu_solve(self._factor, load, check_finite=False)
        back = pulled - np.matmul(self._through, found[:-1, None])
        dq = (np.matmul(self._root.transpose(0, 2, 1), back)[:, :, 0] * scaled).T
        prices = found[:-1] * weight
        coupled = len(at.price)
        dprice = prices[:coupled]
        dheld = (aim_p - at.held * dprice) / at.price
        safe = np.where(at.q > 0, at.q, 1.0)
        dz = np.where(at.q > 0, (aim_z - at.z * dq) / safe, 0.0)
        return _Point(dq, float(found[-1]), dheld, dprice, prices[coupled:], dz)


def _longest(x: Array, dx: Array, part: float) -> float:
    """Return the longest step, up to 1, that goes `part` of the way to where x is zero at most."""
    falling = (dx < 0) & (x > 0)
    return min(1.0, part * float((-x[falling] / dx[falling]).min())) if falling.any() else 1.0
