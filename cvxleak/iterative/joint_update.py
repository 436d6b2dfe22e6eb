"""The update of joint Blahut–Arimoto and its cycles, for many starts at once as stacked arrays.

The formulas are those in the notes of `joint_blahut_arimoto`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.iterative.formulas import entropy, information
from cvxleak.model import Lumped

__all__ = ["Iterates", "Relaxed", "Updater", "ascend"]

LEAST_KAPPA = 2.0**-10  # smallest relaxation that a cycle tries

LOG_ZERO = -1e30  # stands for log 0: finite, so that 0 * log 0 is 0 in a matrix product
LOG_MULTIPLIER = (-80.0, 45.0)  # where log lam is looked for; past these nothing changes any more
NEWTON_STEPS = 60  # after these the bracket is halved, which takes 47 steps to close it

STEP = 5e5
"""Work of an update, however small its arrays are, in multiplications."""

NUMBER = 10.0
"""And for each probability of each start's channel."""


class Iterates(NamedTuple):
    """One iterate of each of S starts; the first axis of every array runs over the starts."""

    weights: Array  # (S, N)
    joint: Array  # (S, A, Y)
    multiplier: Array  # (S,)
    value: Array  # (S,)

    def take(self, places: NDArray[np.intp]) -> Iterates:
        """Return the starts at `places`."""
        return Iterates(*(array[places] for array in self))


class Updater:
    """The update of many starts at once, for one lumped problem and one entropy floor."""

    def __init__(self, lumped: Lumped, entropy_floor: float) -> None:
        self.b = entropy_floor
        self.rows = lumped.rows
        self.log_m = lumped.log_multiplicity
        self.starts = lumped.starts
        self.value_of = lumped.value_index
        ends = [*lumped.starts[1:], len(lumped.rows)]
        self.groups = [slice(i, j) for i, j in zip(lumped.starts, ends, strict=True)]

    def joint(self, weights: Array) -> Array:
        """s_{a,y}, shape (S, A, Y)."""
        return np.stack([weights[:, g] @ self.rows[g] for g in self.groups], axis=1)

    def first(self, joint: Array) -> Iterates:
        """Return the first iterates from some joint distributions."""
        ones = np.ones(len(joint))
        return self.update(joint, 0.1 * ones, ones)

    def update(
        self, joint: Array, guess: Array, kappa: Array, floor: Array | None = None
    ) -> Iterates:
        """Maximize <d, w'> - kappa D(pi' || pi) under F(w') >= b; `guess` is a first lam.

        Each start may have a floor b of its own.
        """
        spend(STEP + NUMBER * len(joint) * self.rows.size)
        floor = np.full(len(joint), self.b) if floor is None else floor
        d, log_pi = self._gradient(joint)
        weights = self._without_multiplier(d, log_pi, kappa)
        multiplier = np.zeros(len(d))
        short = np.flatnonzero(entropy(weights, self.log_m) < floor)
        if len(short):
            weights[short], multiplier[short] = self._root(
                d[short], log_pi[short], kappa[short], floor[short], guess[short]
            )
        joint = self.joint(weights)
        return Iterates(weights, joint, multiplier, information(joint))

    def _gradient(self, joint: Array) -> tuple[Array, Array]:
        """Return d, the gradient of I up to a constant, and log pi."""
        pi, output = joint.sum(axis=2), joint.sum(axis=1)
        product = pi[:, :, None] * output[:, None, :]
        with np.errstate(divide="ignore"):
            # Where nothing of a or y is left, any posterior makes a minorant: the prior is one.
            log_ratio = np.log(np.where(product > 0, joint / np.where(product > 0, product, 1), 1))
            log_pi = np.maximum(np.log(pi), LOG_ZERO)
        np.maximum(log_ratio, LOG_ZERO, out=log_ratio)
        d = np.concatenate(
            [log_ratio[:, a] @ self.rows[g].T for a, g in enumerate(self.groups)], axis=1
        )
        return d, log_pi

    def _without_multiplier(self, d: Array, log_pi: Array, kappa: Array) -> Array:
        """Return the maximizer of largest entropy that ignores the floor (lam = 0)."""
        top = np.maximum.reduceat(d, self.starts, axis=1)
        slack = 1e-13 * np.maximum(1, np.abs(top))  # rows that only rounding tells apart are tied
        tied = d >= (top - slack)[:, self.value_of]
        v, _ = self._normalized(np.where(tied, self.log_m, -np.inf))
        return _softmax(log_pi + top / kappa[:, None])[:, self.value_of] * v

    def _at(
        self, d: Array, log_pi: Array, kappa: Array, multiplier: Array
    ) -> tuple[Array, Array, Array]:
        """Weights for the given lam, F there, and the derivative of F in log lam."""
        lam = multiplier[:, None]
        # Measured from the largest d of each value: for small lam, d / lam would swamp the rest.
        top = np.maximum.reduceat(d, self.starts, axis=1)
        tilt = (d - top[:, self.value_of]) / lam
        v, log_sum = self._normalized(tilt + self.log_m)
        blend = kappa[:, None] + lam
        pi = _softmax((kappa[:, None] * log_pi + top + lam * log_sum) / blend)
        mean = np.add.reduceat(v * tilt, self.starts, axis=1)
        spread = np.add.reduceat(v * (tilt - mean[:, self.value_of]) ** 2, self.starts, axis=1)
        # F = sum_a pi_a share_a, where share_a = -log pi_a + H(v_a) + <v_a, log m_a>.
        inside = np.add.reduceat(entr(v) + v * self.log_m, self.starts, axis=1)
        share = inside - np.log(np.where(pi > 0, pi, 1))
        total = (pi * share).sum(axis=1)
        variance = (pi * (share - total[:, None]) ** 2).sum(axis=1)
        slope = (pi * spread).sum(axis=1) + multiplier / blend[:, 0] * variance
        return pi[:, self.value_of] * v, total, slope

    def _root(
        self, d: Array, log_pi: Array, kappa: Array, floor: Array, guess: Array
    ) -> tuple[Array, Array]:
        """Weights and lam with F = b: Newton's method in log lam, kept inside a bracket."""
        low = np.full(len(d), LOG_MULTIPLIER[0])
        high = np.full(len(d), LOG_MULTIPLIER[1])
        x = np.log(np.where(guess > 0, guess, 0.1))
        trials = 0
        while True:
            weights, total, slope = self._at(d, log_pi, kappa, np.exp(x))
            excess = total - floor
            low, high = np.where(excess < 0, x, low), np.where(excess < 0, high, x)
            done = (np.abs(excess) <= 1e-14 * np.maximum(1.0, floor)) | (high - low <= 1e-12)
            if done.all():
                return weights, np.exp(x)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                newton = x - excess / slope
            trusted = (newton > low) & (newton < high) & (trials < NEWTON_STEPS)
            x = np.where(done, x, np.where(trusted, newton, (low + high) / 2))
            trials += 1

    def _normalized(self, logs: Array) -> tuple[Array, Array]:
        """Softmax and logsumexp of `logs` within the groups of each value."""
        top = np.maximum.reduceat(logs, self.starts, axis=1)
        parts = np.exp(logs - top[:, self.value_of])
        sums = np.add.reduceat(parts, self.starts, axis=1)
        return parts / sums[:, self.value_of], top + np.log(sums)


class Relaxed(Updater):
    """The update that maximizes I + lam F for a given lam: `Iterates.value` is that sum."""

    def __init__(self, lumped: Lumped, multiplier: float) -> None:
        super().__init__(lumped, 0.0)
        self._multiplier = multiplier

    def update(
        self, joint: Array, guess: Array, kappa: Array, floor: Array | None = None
    ) -> Iterates:
        """Maximize <d, w'> - kappa D(pi' || pi) + lam F(w'); neither guess nor floor matters."""
        spend(STEP + NUMBER * len(joint) * self.rows.size)
        d, log_pi = self._gradient(joint)
        multiplier = np.full(len(joint), self._multiplier)
        weights, total, _ = self._at(d, log_pi, kappa, multiplier)
        joint = self.joint(weights)
        return Iterates(weights, joint, multiplier, information(joint) + multiplier * total)


def _softmax(logs: Array) -> Array:
    parts = np.exp(logs - logs.max(axis=1, keepdims=True))
    return parts / parts.sum(axis=1, keepdims=True)


def ascend(
    updater: Updater,
    current: Iterates,
    floor: Array | None,
    *,
    max_updates: int,
    least_gain: float,
    watch: Callable[[Iterates, Array], object] = lambda current, step: None,
    stop: Callable[[], bool] = lambda: False,
) -> NDArray[np.intp]:
    """Run every start in cycles of relaxation, in place; return those that have not ended.

    `watch` is handed the iterates and the largest change of a weight, after every update; `stop`
    ends all before the next one.
    """
    count = len(current.value)
    floors = np.full(count, updater.b) if floor is None else floor
    kappa, cycle_gain = np.ones(count), np.zeros(count)
    active = np.arange(count)
    for _ in range(max_updates):
        if not len(active) or stop():
            break
        here = current.take(active)
        there = updater.update(here.joint, here.multiplier, kappa[active], floors[active])
        gain = there.value - here.value
        kept = gain >= 0
        step = np.zeros(count)
        step[active] = np.where(kept, np.abs(there.weights - here.weights).max(axis=1), 0)
        for array, new in zip(current, there, strict=True):
            array[active[kept]] = new[kept]
        watch(current, step)
        cycle_gain[active] += np.where(kept, gain, 0)
        ended = ~kept | (kappa[active] <= LEAST_KAPPA)
        kappa[active] = np.where(ended, 1, kappa[active] / 2)
        finished = ended & (cycle_gain[active] <= least_gain)
        cycle_gain[active[ended]] = 0
        active = active[~finished]
    return active
