r"""`TimeSharing`: the least bound that one output distribution and one set of multipliers prove.

Let v_a be an adversary's distribution of the contexts given the value a, and e the group's `extra`.
For every distribution t of the output I <= sum_a pi_a D(v_a R_a || t). So with a multiplier lam >=
0 of the entropy floor, kappa >= 0 of the limits <w, C_j> <= d_j + s_j F(w), and L = lam + <kappa,
s>,

    I + <w, e> <= S = L log sum_a exp(phi_a / L) - lam b + <kappa, d>,
    phi_a = max_v D(v R_a || t) + <v, base_a> + L H(v),
    base_a = e_a - kappa C_a + L log m_a.

S is convex in (t, lam, kappa). Its minimum is the largest gain of an adversary whose distribution
given A depends on a V besides, which the output may tell of, too, and who meets the floor and the
limits on average over V: the maximum, over the joint distributions of A and V, of

    I(A,V;Y) + <w, e>   with   H(A) + H(X|A,V) >= b,   <w, C_j> <= d_j + s_j (H(A) + H(X|A,V)).

It is sharp where no V helps: for floors near log|X|, mostly. The phi_a are estimated by an ascent
from many starts, so S is an estimate from below. It is known before anything is proved, and shows
whether a tree (`LogRatioCells`) is worth growing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from cvxleak.audit.worst_adversary.group import LEAST, Group
from cvxleak.audit.worst_adversary.interior_point import SLOW_STEPS, STEPS, never
from cvxleak.audit.worst_adversary.objective import HAIR
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.solvers.conic import attempt

__all__ = [
    "TimeSharing",
    "Value",
    "mirrored",
    "short",
    "values_of",
]

KEPT = 4
"""How many maximizers of a value are columns, at most. Without a limit a count of 100 people with
Gaussian noise takes six times the work for S, and the bank's gaps are about the same."""


def short(x: Array | float) -> Array:
    """Return numbers in so few digits that two processors agree on them."""
    return np.asarray(x, dtype=np.float32).astype(float)


@dataclass(frozen=True, eq=False)
class Value:
    """The groups of contexts of one value of A."""

    rows: Array
    log_counts: Array
    extra: Array
    limits: Array
    """C, shape (limits, groups)."""

    @property
    def used(self) -> NDArray[np.intp]:
        """The outputs that some group reaches."""
        return np.flatnonzero((self.rows > 0).any(axis=0))

    def base(self, scale: float, kappa: Array) -> Array:
        """Return the linear part of what is maximized."""
        return self.extra - kappa @ self.limits + scale * self.log_counts

    def entropies(self, v: Array) -> Array:
        """Return H(X | A, V) of distributions of the groups, shape (B, groups)."""
        return v @ self.log_counts - xlogy(v, v).sum(axis=-1)

    def ascend(
        self, v: Array, log_t: Array, scale: float, base: Array, steps: int
    ) -> tuple[Array, Array]:
        """Return what `steps` of the ascent make of some v, and the values, best first.

        Each step replaces D(vR || t), which is convex, by its tangent; the maximizer of the rest is
        known. So no step is worse than the one before.
        """
        for step in range(steps):
            log_r = np.log(np.maximum(v @ self.rows, np.finfo(float).tiny))
            z = (log_r - log_t) @ self.rows.T + base
            new = np.exp((z - z.max(axis=1, keepdims=True)) / scale)
            new /= new.sum(axis=1, keepdims=True)
            moved, v = np.abs(new - v).max(), new
            if moved < HAIR:
                steps = step + 1
                break
        spend(1.0 * steps * len(v) * self.rows.size)
        r = v @ self.rows
        found = (xlogy(r, r) - r * log_t).sum(axis=1) + v @ base
        found += scale * -xlogy(v, v).sum(axis=1)
        order = np.argsort(-found, kind="stable")
        return v[order], found[order]

    def maximizers(
        self, starts: Array, log_t: Array, scale: float, base: Array
    ) -> tuple[Array, Array]:
        """Return local maximizers and their values, best first."""
        size = len(self.rows)
        v = np.concatenate([starts, 0.9 * np.eye(size) + 0.1 / size])
        v, _ = self.ascend(v, log_t, scale, base, STEPS // 4)
        return self.ascend(_distinct(v)[:KEPT], log_t, scale, base, SLOW_STEPS)


def _distinct(v: Array) -> Array:
    """Return the rows that are not near an earlier one."""
    found: list[Array] = []
    for row in v:
        if all(np.abs(row - other).max() > 1e-3 for other in found):
            found.append(row)
    return np.array(found)


def values_of(group: Group) -> list[Value]:
    """Return the groups of contexts of each value of A."""
    lumped, found = group.lumped, []
    logs = np.array([float(x) for x in group.view.logs])
    for a in range(len(lumped.values)):
        own = np.flatnonzero(np.asarray(lumped.value_index) == a)
        limits = group.limits.coefficients[:, own]
        found.append(Value(lumped.rows[own], logs[own], group.extra[own], limits))
    return found


def mirrored(group: Group) -> bool:
    """Return whether the group is its own image with everything in reverse order.

    That of a record of a count is, if the noise is symmetric.
    """
    rows, limits = group.lumped.rows, group.limits.coefficients
    same = [
        np.allclose(x, image, rtol=1e-10, atol=0)
        for x, image in [
            (rows, rows[::-1, ::-1]),
            (group.log_share, group.log_share[::-1]),
            (group.extra, group.extra[::-1]),
            (limits, limits[:, ::-1]),
        ]
    ]
    return len(group.lumped.values) == 2 and all(same)


@dataclass(frozen=True, eq=False)
class TimeSharing:
    """The bound S at some t, lam and kappa.

    Attributes
    ----------
    group : Group
    multipliers : array, shape (1 + limits,)
        lam and kappa.
    output : array
        t, of the outputs of `group.lumped`.
    phi : array, shape (k,)
    found : list of arrays
        Local maximizers of each value, best first: the first attains phi_a.
    least : float
        What S is at least: the most that time sharing gains with the columns that were found.
    """

    group: Group
    multipliers: Array
    output: Array
    phi: Array
    found: list[Array]
    least: float = -np.inf

    @property
    def scale(self) -> float:
        """L."""
        return float(self.multipliers[0] + self.multipliers[1:] @ self.group.limits.shares)

    @property
    def log_output(self) -> Array:
        """The logarithm of t, as the kernel reads it: the numbers over their sum."""
        return np.log(self.output / self.output.sum())

    @cached_property
    def bound(self) -> float:
        """S."""
        return self.total(self.phi)

    def total(self, phi: Array) -> float:
        """Return the bound that numbers phi_a prove."""
        scale, lam, kappa = self.scale, self.multipliers[0], self.multipliers[1:]
        const = kappa @ self.group.limits.bounds - lam * self.group.floor
        top = np.max(phi)
        if top == np.inf:  # a tree that has not begun
            return np.inf
        whole = top + scale * np.log(np.exp((phi - top) / scale).sum()) + const
        return self.group.raised(float(whole))

    @classmethod
    def at(
        cls,
        group: Group,
        output: Array,
        multipliers: Array,
        starts: Sequence[Array],
    ) -> TimeSharing:
        """Return it at given numbers; the ascent starts near units, and from `starts`."""
        if mirrored(group):  # S is convex, so the mean with the mirror image is no worse
            output = (output + output[::-1]) / 2
        output, multipliers = np.maximum(output / output.sum(), LEAST), short(multipliers)
        multipliers[0] = max(multipliers[0], 2.0**-20)
        made = cls(group, multipliers, short(output), np.empty(0), [])
        log_t, scale, phi = made.log_output, made.scale, []
        for value, own in zip(values_of(group), starts, strict=True):
            v, heights = value.maximizers(own, log_t, scale, value.base(scale, multipliers[1:]))
            made.found.append(v)
            phi.append(heights[0])
        return replace(made, phi=np.array(phi))

    @classmethod
    def of(
        cls,
        group: Group,
        weights: Array,
        multipliers: Array,
        target: float,
        stop: Callable[[], bool] = never,
    ) -> TimeSharing:
        """Return it at an adversary's t and multipliers, or where these do not reach the target.

        Then a program over the columns (a, v) that were found gives others, whose maximizers are
        new columns.
        """
        uniform = group.lumped.uniform()
        index = np.asarray(group.lumped.value_index)
        own = []
        for a in range(len(group.lumped.values)):
            laws = np.array([weights[index == a], uniform[index == a]]) + LEAST
            own.append(laws / laws.sum(axis=1, keepdims=True))
        best = made = cls.at(group, weights @ group.lumped.rows, multipliers, own)
        columns, size = own, 0
        while best.bound > target and not stop():
            columns = [
                _distinct(np.concatenate(both)) for both in zip(columns, made.found, strict=True)
            ]
            if sum(map(len, columns)) == size:
                break  # it is the program of the last round
            size = sum(map(len, columns))
            solved = _over_columns(group, columns)
            if solved is None:
                break
            gain, output, multipliers = solved
            best = replace(best, least=max(best.least, group.raised(gain)))
            if best.bound - best.least <= best.least - target:
                break  # it is nearer to what S is at least than that is to the target
            made = cls.at(group, output, multipliers, own)
            best = replace(min(best, made, key=lambda one: one.bound), least=best.least)
        return best


def _over_columns(group: Group, columns: Sequence[Array]) -> tuple[float, Array, Array] | None:
    """Return the most that time sharing gains with these columns, and its t and multipliers."""
    import cvxpy as cp

    pairs, limits = list(zip(values_of(group), columns, strict=True)), group.limits
    of = np.repeat(np.arange(len(pairs)), list(map(len, columns)))
    r = np.concatenate([v @ value.rows for value, v in pairs])
    entropies = np.concatenate([value.entropies(v) for value, v in pairs])
    extra = np.concatenate([v @ value.extra for value, v in pairs])
    spent = np.concatenate([value.limits @ v.T for value, v in pairs], axis=1)
    x, y = cp.Variable(len(r), nonneg=True), cp.Variable(r.shape[1])
    entropy = cp.sum(cp.entr((of == np.arange(len(pairs))[:, None]) @ x)) + entropies @ x
    gain = cp.sum(cp.entr(y)) + (xlogy(r, r).sum(axis=1) + extra) @ x
    rules: list[Any] = [entropy >= group.floor]
    if len(limits.bounds):
        rules.append(spent @ x <= limits.bounds + limits.shares * entropy)
    rules += [y == r.T @ x, cp.sum(x) == 1]
    problem = cp.Problem(cp.Maximize(gain), rules)
    attempt(problem)
    if y.value is None:
        return None
    multipliers = np.concatenate([np.ravel(rule.dual_value) for rule in rules[:-2]])
    return gain.value.item(), np.maximum(y.value, 0.0), np.maximum(multipliers, 0.0)
