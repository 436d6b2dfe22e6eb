r"""`Ascent`: a local search for adversaries of a group who gain much.

With s_{a,y} the probability of a value and an output under an adversary w, pi the values' and rho_y
the posterior's distribution, J(w) = sum_y s_y G(rho_y) - T G(pi). Let r_y and r be tangents of G at
rho_y and pi. Then for every other adversary w'

    J(w') >= sum_{a,y} s'_{a,y} (r_y - T r)_a - T D(pi' || pi),

D >= 0 being what G(pi') is above its tangent r. The right side is concave and equal at w. So a step
to its maximum never loses: it is a node of the dual with one output, which tells nothing, and a
price. Where the channel is noisy, r_y is close to r and such steps are short; so they are taken
with kappa D for D, kappa = 1, 1/2, 1/4, ..., until one of them loses.

For I(A;Y) and adversaries with no limit but their entropy this is joint Blahut-Arimoto, which has a
closed form, for many starts at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import entr

from cvxleak.audit.worst_adversary.adversary_class import AdversaryClass
from cvxleak.audit.worst_adversary.dual import CellDual
from cvxleak.audit.worst_adversary.group import LEAST, Group, Term
from cvxleak.audit.worst_adversary.interior_point import STEPS, never
from cvxleak.audit.worst_adversary.objective import INFORMATION
from cvxleak.audit.worst_adversary.witness import joint, point
from cvxleak.core.validation import Array
from cvxleak.iterative.joint_update import Updater, ascend
from cvxleak.kernel.leakage import RecordLeakage
from cvxleak.kernel.numbers import lower, precision
from cvxleak.model import Lumped
from cvxleak.solvers.knapsack import largest_rows

__all__ = ["Ascent"]

STARTS = 8
"""Starts of either kind. With 4 random ones, gains with kinks and tables with zeros end below the
best in 20 of the bank's 480 problems, by up to 30 %, with one kind alone gains by up to 24 %; of
products of random tables with 6 two in 30 do, by up to 2 %."""

ROUGH, PROGRESS = 1e-2, 1e-8
"""Steps that gain less, in parts of the value, are the last: from all starts, and from the best.
The latter is also how near, in parts, capacities of choices are known at a first look.
With 1e-3 for the first gains take 8 % more work, and with .1 two of 52 end below the best; with
1e-9 for the last they take 8 % more, with 1e-7 4 % less."""

LEAST_VALUE = 1e-4
"""Values below this count as this much, where parts of them are meant: near log|X| there may be
nothing to gain. With 2^-100 gains take 8 % more work, and the rise of guessing in two tries stays
open by 43 % at the work that closes it otherwise."""


class Found(NamedTuple):
    """An adversary, what is gained, the multiplier of the floor, and all of a step's."""

    weights: Array
    value: float
    multiplier: float
    numbers: Array | None


class Ascent:
    """A local search, from random starts and from any that a tree has.

    Attributes
    ----------
    weights : array, shape (N,)
        The best adversary so far.
    value : float
        What it gains; over a set of channels, with the rows that it was found for.
    enough : float
        No adversary gains more, as far as is known: there an ascent ends. Without, gains take up to
        3.5 times the work.
    multiplier : float
        By how much the largest gain falls for each nat that the floor rises.
    """

    def __init__(self, group: Group, adversaries: AdversaryClass, rng: np.random.Generator) -> None:
        self.group, self.adversaries, self._rng = group, adversaries, rng
        self.enough = np.inf
        # The best, and over a set of channels the one that was found with the rows in the middle.
        self._best = self._of_middle = self.found(adversaries.center, group.lumped)
        self._joint_steps = group.told.is_leakage and not len(group.limits.bounds)
        told = group.told
        # Whether steps are to the maximum of the minorant itself.
        self._exact = told.is_leakage or told.form == "posterior"
        self._exact |= group.objective().actions is not None

    @property
    def weights(self) -> Array:
        """The best adversary so far."""
        return self._best.weights

    @property
    def value(self) -> float:
        """What it gains."""
        return self._best.value

    @property
    def multiplier(self) -> float:
        """The floor's multiplier."""
        return self._best.multiplier

    def climb(self, starts: Array | None, stop: Callable[[], bool]) -> float:
        """Look for better adversaries from some starts, or from its own; return the best value."""
        rows = self.group.lumped
        found = self._ascend(self._starts() if starts is None else starts, rows, stop)
        if found.value > self.value:
            self._best = self._of_middle = found
        while self.group.boxes is not None and not stop():
            rows = self._most_telling(found.weights, rows)
            found = self._ascend(found.weights[None], rows, stop)
            if found.value - self.value <= PROGRESS * _size(found):
                break
            self._best = found
        return self.value

    def found(self, weights: Array, rows: Lumped, numbers: Array | None = None) -> Found:
        """Return an adversary with J, or its quotient."""
        gain, form = self.group.told.gain, self.group.told.form
        of_values = joint(weights, rows)
        seen = float(gain.value(of_values.T).sum())
        prior = 0.0 if form == "posterior" else float(gain.value(of_values.sum(axis=1)))
        multiplier = 0.0 if numbers is None else float(numbers[0])
        if form == "factor":
            return Found(weights, seen / prior, multiplier / prior, numbers)
        return Found(weights, seen - prior, multiplier, numbers)

    def point(
        self, statement: RecordLeakage, place: int, cells: Term | None = None
    ) -> tuple[Array, Term]:
        """Return the best adversary in floats, and the term of a lower end; `cells` go into it.

        Over a set of channels the kernel says who gains more whatever the channel is: the worst
        adversary that was found, or that of the rows in the middle.
        """
        found = []
        for one in [self._best] if self.group.boxes is None else [self._best, self._of_middle]:
            allowed, held = self.adversaries.written(one.weights)
            found.append((allowed, point(self.group, place, allowed, held, cells or {})))
        if len(found) == 1:
            return found[0]
        with precision():
            return max(found, key=lambda one: lower(statement.lower(one[1])))

    def _starts(self) -> Array:
        """Return random weights, and what a step leads to from random posteriors."""
        lumped = self.group.lumped
        (n, outputs), k = lumped.rows.shape, len(lumped.values)
        weights = self._rng.dirichlet(np.full(n, 0.3), size=STARTS)
        posteriors = self._rng.dirichlet(np.ones(k), size=(STARTS, outputs)).swapaxes(1, 2)
        found = Updater(lumped, self.group.floor).first(posteriors / outputs)
        return np.vstack([weights, found.weights])

    # Steps ---------------------------------------------------------------------------------------

    def _ascend(self, starts: Array, rows: Lumped, stop: Callable[[], bool]) -> Found:
        if self._joint_steps:
            return self._jointly(starts, rows, stop)
        found = [self.found(self.adversaries.meet(w), rows) for w in starts]
        for accuracy in (ROUGH, PROGRESS):
            self._follow(found, rows, accuracy, stop)
            found = [max(found, key=_value)]
            if found[0].value <= self.value:
                break
        return found[0]

    def _jointly(self, starts: Array, rows: Lumped, stop: Callable[[], bool]) -> Found:
        """Joint Blahut-Arimoto, for all starts at once."""
        updater = Updater(rows, self.group.floor)
        current = updater.first(updater.joint(starts))
        # Two are followed roughly even where there is no time: it is as nothing to that of a proof.
        for accuracy, kept, until in ((ROUGH, 2, stop), (ROUGH, 1, never), (PROGRESS, 1, stop)):
            gain = accuracy * max(float(current.value.max()), self.value)
            ascend(updater, current, None, max_updates=STEPS, least_gain=gain, stop=until)
            current = current.take(np.argsort(-current.value, kind="stable")[:kept])
        weights = self.adversaries.meet(current.weights[0])
        # A step that gains nothing is not taken, but its multiplier is that of where it begins.
        return self.found(weights, rows, updater.first(current.joint).multiplier)

    def _follow(
        self, found: list[Found], rows: Lumped, accuracy: float, stop: Callable[[], bool]
    ) -> None:
        """Replace adversaries by where steps from them lead."""
        kappa, moving = np.ones(len(found)), np.ones(len(found), dtype=bool)
        # The first is taken even where there is no time: it is as nothing to that of a proof.
        first = self._best.numbers is None
        for taken in range(STEPS):
            places, best = np.flatnonzero(moving), max(map(_value, found))
            late = stop() and not (first and taken == 0)
            if not len(places) or best >= self.enough * (1 - PROGRESS) or late:
                break
            new = self._step([found[i] for i in places], rows, kappa[places], accuracy)
            for i, one in zip(places, new, strict=True):
                gain, least = one.value - found[i].value, accuracy * _size(found[i])
                if gain > least:
                    kappa[i] /= 2
                elif kappa[i] < 1:
                    kappa[i] = 1.0
                elif gain < -least and kappa[i] < STEPS:
                    kappa[i] *= 4
                else:
                    moving[i] = False
                found[i] = one if gain > 0 else found[i]

    def _step(self, found: list[Found], rows: Lumped, kappa: Array, accuracy: float) -> list[Found]:
        """Return the adversaries with the largest minorants, relaxed by kappa."""
        group, gain, of = self.group, self.group.told.gain, rows.value_index
        # A factor's T is that of the best: who is worth more in this, is worth more than it.
        objective = group.objective(max(map(_value, found)))
        times = 1.0 if group.told.is_leakage else objective.times
        if not self._exact:
            # D is replaced by that of Shannon's gain, with which the dual is smooth.
            objective = INFORMATION
        weights = np.stack([one.weights for one in found])
        of_values = np.stack([joint(w, rows) for w in weights])
        prior = of_values.sum(axis=2)
        seen = self._slopes(of_values.swapaxes(1, 2))
        earned = (rows.rows @ seen)[:, np.arange(len(of)), of]
        flat = times * self._slopes(prior)[:, of]
        slope = (earned - flat) / kappa[:, None]
        if objective is INFORMATION:
            price = slope + np.log(np.maximum(prior, LEAST))[:, of]
            here = -entr(prior).sum(axis=1)
        else:
            price, here = slope + flat, times * gain.value(prior)
        dual = CellDual(rows, group.surplus, group.limits, objective=objective, blind=True)
        # Steps end near each other, and so do their multipliers. Those of tangents have a sum.
        first, relaxed = dual.first(), slice(dual.limits.stop)
        start = np.stack([first if one.numbers is None else one.numbers for one in found])
        start[:, relaxed] /= kappa[:, None]
        solution = dual.solve(
            np.empty((len(found), 0, dual.values, dual.values)),
            start,
            (weights * price).sum(axis=1) - here,
            accuracy * np.array(list(map(_size, found))) / kappa,
            price=price,
            miss=accuracy,
        )
        numbers = solution.numbers
        numbers[:, relaxed] *= kappa[:, None]
        reached = [self.adversaries.meet(np.maximum(w, 0.0)) for w in solution.weights]
        return [self.found(w, rows, x) for w, x in zip(reached, numbers, strict=True)]

    def _slopes(self, laws: Array) -> Array:
        """Return tangents of G, of which those of -H have no slope where a value is excluded."""
        return self.group.told.gain.tangent(np.maximum(laws, LEAST))

    def _most_telling(self, weights: Array, rows: Lumped) -> Lumped:
        """Return the problem with the rows, in their boxes, that make posteriors most extreme.

        What is maximized is convex in the rows, so its tangent at the present ones is maximized.
        """
        assert self.group.boxes is not None
        slopes = self._slopes(joint(weights, rows).T).T
        low, high = self.group.boxes
        new = largest_rows(low[:, None], high[:, None], slopes[rows.value_index][:, None])[:, 0, 0]
        return replace(rows, rows=new / new.sum(axis=1, keepdims=True))


def _value(found: Found) -> float:
    return found.value


def _size(found: Found) -> float:
    """Return the unit of accuracies."""
    return max(abs(found.value), LEAST_VALUE)
