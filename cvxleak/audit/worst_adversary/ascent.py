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
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.special import entr

from cvxleak.audit.worst_adversary.adversary_class import AdversaryClass
from cvxleak.audit.worst_adversary.dual import CellDual
from cvxleak.audit.worst_adversary.group import Group, Term
from cvxleak.audit.worst_adversary.interior_point import never
from cvxleak.audit.worst_adversary.objective import INFORMATION
from cvxleak.audit.worst_adversary.witness import joint, point
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.iterative.joint_update import Updater, ascend
from cvxleak.kernel.leakage import RecordLeakage
from cvxleak.kernel.numbers import lower, precision
from cvxleak.model import Lumped
from cvxleak.solvers.knapsack import largest_rows

__all__ = ["Ascent"]

RANDOM, MORE = 2, 8
"""Random starts of either kind; more where steps are programs. For gains with kinks directed starts
end below the best: with 4 in 5 of the bank's problems by .1 to 10 %, with 8 in 2."""

FIRST, LAST = 16, 1000
"""Most steps in closed form from all starts, also from the best two, and then from these."""

PROGRESS = 1e-9
"""Steps that gain less, in parts of the value, are the last."""

PHASES = ((1e-3, 6, 4), (1e-9, 40, 1))
"""Steps that are programs: to what they are solved, in parts of the value, how many there are, and
how many adversaries are kept. With a third phase between them gains close no earlier."""

LEAST = 1e-4
"""Values below this count as this much, where parts of them are meant."""

TURNS = 20
"""Most times that adversaries and the rows that tell most, in a set of channels, take turns."""

LONGEST = 64.0
"""Largest kappa, where D is replaced: less may not be enough for a step that never loses."""

STEEPEST = -700.0
"""Slopes of -H at distributions that exclude a value are raised to this."""


class Found(NamedTuple):
    """An adversary, what is gained, and the multiplier of the floor."""

    weights: Array
    value: float
    multiplier: float = 0.0


class Ascent:
    """A local search, from directed and random starts and from any that a tree has.

    Attributes
    ----------
    weights : array, shape (N,)
        The best adversary so far.
    value : float
        What it gains; over a set of channels, with the rows that it was found for.
    enough : float
        No adversary gains more, as far as is known.
    multiplier : float
        By how much the largest gain falls for each nat that the floor rises.
    """

    def __init__(self, group: Group, adversaries: AdversaryClass, rng: np.random.Generator) -> None:
        self.group, self.adversaries, self._rng = group, adversaries, rng
        self.enough = np.inf
        center = adversaries.center
        self._best = self._found(center, group.lumped)
        # Over a set of channels: a worst adversary of the rows in the middle.
        self._of_middle = center
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
        rows, adversaries = self.group.lumped, self.adversaries
        given = self._starts() if starts is None else np.maximum(starts, 0.0)
        given = given / given.sum(axis=1, keepdims=True)
        found = max((self._found(adversaries.meet(w), rows) for w in given), key=_value)
        # Nowhere zero: what an adversary excludes would stay excluded.
        given = 0.98 * given + 0.02 * adversaries.center
        for turn in range(TURNS):
            found = max(self._ascend(given, rows, stop), found, key=_value)
            grown = found.value > self.value * (1 + PROGRESS)
            if found.value > self.value:
                self._best = found
                self._of_middle = self._of_middle if turn else found.weights
            if self.group.boxes is None or (turn and not grown) or stop():
                break
            rows, given = self._most_telling(found.weights, rows), found.weights[None]
            found = self._found(found.weights, rows)
        return self.value

    def _found(self, weights: Array, rows: Lumped, multiplier: float = 0.0) -> Found:
        """Return an adversary with J, or its quotient."""
        gain, form = self.group.told.gain, self.group.told.form
        of_values = joint(weights, rows)
        seen = float(gain.value(of_values.T).sum())
        prior = 0.0 if form == "posterior" else float(gain.value(of_values.sum(axis=1)))
        if form == "factor":
            return Found(weights, seen / prior, multiplier / prior)
        return Found(weights, seen - prior, multiplier)

    def point(
        self, statement: RecordLeakage, place: int, cells: Term | None = None
    ) -> tuple[Array, Term]:
        """Return the best adversary in floats, and the term of a lower end; `cells` go into it.

        Over a set of channels the kernel says who gains more whatever the channel is: the worst
        adversary that was found, or that of the rows in the middle.
        """
        candidates = [self._of_middle, self.weights]
        found = []
        for weights in candidates[1:] if self.group.boxes is None else candidates:
            allowed, held = self.adversaries.written(weights)
            found.append((allowed, point(self.group, place, allowed, held, cells or {})))
        if len(found) == 1:
            return found[0]
        with precision():
            return max(found, key=lambda one: lower(statement.lower(one[1])))

    # Starts --------------------------------------------------------------------------------------

    def _starts(self) -> Array:
        return np.vstack([self._one_group_each(), self._directed(), self._random()])

    def _random(self) -> Array:
        """Return random weights, and what a step leads to from random posteriors."""
        count = RANDOM if self._joint_steps else MORE
        lumped = self.group.lumped
        (n, outputs), k = lumped.rows.shape, len(lumped.values)
        weights = self._rng.dirichlet(np.full(n, 0.3), size=count)
        posteriors = self._rng.dirichlet(np.ones(k), size=(count, outputs)).swapaxes(1, 2)
        found = Updater(lumped, self.group.floor).first(posteriors / outputs)
        return np.vstack([weights, found.weights])

    def _directed(self) -> Array:
        """Return the center's distributions of each value, tilted along the leading functional.

        By two standard deviations, in all patterns of signs, of two values; alternately of more.
        The functional is that in which the rows vary most, in the chi-square metric.
        """
        lumped, center = self.group.lumped, self.adversaries.center
        mean = center @ lumped.rows
        table = (lumped.rows - mean) / np.sqrt(np.maximum(mean, 1e-300))
        spend(40 * table.size)
        x = lumped.rows @ np.arange(lumped.rows.shape[1])
        for _ in range(20):
            x = table @ ((center * x) @ table)
            x /= max(float(np.sqrt(center @ x**2)), 1e-300)
        found = []
        for signs in product((-2, 2), (-2, 2)):
            tilt = x * np.array(signs)[lumped.value_index % 2]
            w = center * np.exp(tilt - tilt.max())
            of_value = np.add.reduceat(w, lumped.starts)
            kept = np.add.reduceat(center, lumped.starts)
            found.append(w * (kept / np.maximum(of_value, 1e-300))[lumped.value_index])
        return np.array(found)

    def _one_group_each(self) -> Array:
        """Return an adversary with one group for each value: without a floor, some such is worst.

        Value by value the group is chosen with which I(A;Y) is largest, of those large enough for
        the floor or of the largest.
        """
        lumped, k = self.group.lumped, len(self.group.lumped.values)
        log_m = lumped.log_multiplicity
        most = np.maximum.reduceat(log_m, lumped.starts)
        least = np.minimum(self.group.floor - np.log(k), most) - 1e-12
        groups = np.flatnonzero(log_m >= least[lumped.value_index])
        rows, of = lumped.rows[groups] / k, lumped.value_index[groups]
        noise = entr(lumped.rows[groups]).sum(axis=1) / k
        firsts = np.flatnonzero(of == 0)
        # To begin with, that of the first value with most contexts for all.
        chosen = np.full(k, firsts[log_m[groups[firsts]].argmax()])
        # The first value's own comes last: it may be the only one there is.
        for a in [*range(1, k), 0] * 2:
            others = rows[[g for g in chosen if of[g] != a]].sum(axis=0)
            own = np.flatnonzero(of == a)
            spend(20 * rows[own].size)
            gains = entr(others + rows[own]).sum(axis=1) - noise[own]
            chosen[a] = own[gains.argmax()]
        weights = np.zeros(len(log_m))
        weights[groups[chosen]] = 1 / k
        return weights[None]

    # Steps ---------------------------------------------------------------------------------------

    def _ascend(self, starts: Array, rows: Lumped, stop: Callable[[], bool]) -> Found:
        if self._joint_steps:
            return self._jointly(starts, rows, stop)
        found = [self._found(self.adversaries.meet(w), rows) for w in starts]
        for accuracy, steps, kept in PHASES:
            self._follow(found, rows, accuracy, steps, stop)
            found = sorted(found, key=_value, reverse=True)[:kept]
            if found[0].value <= self.value:
                break
        return found[0]

    def _jointly(self, starts: Array, rows: Lumped, stop: Callable[[], bool]) -> Found:
        """Joint Blahut-Arimoto, for all starts at once."""
        updater = Updater(rows, self.group.floor)
        current = updater.first(updater.joint(starts))
        # Two take some steps even where there is no time: it is as nothing to that of the proof.
        for steps, kept, until in ((FIRST, 2, stop), (FIRST, 2, never), (LAST, 1, stop)):
            progress = PROGRESS * max(float(current.value.max()), self.value)
            ascend(updater, current, None, max_updates=steps, least_gain=progress, stop=until)
            current = current.take(np.argsort(-current.value, kind="stable")[:kept])
        weights = self.adversaries.meet(current.weights[0])
        # A step that gains nothing is not taken, but its multiplier is that of where it begins.
        multiplier = updater.first(current.joint).multiplier
        return self._found(weights, rows, float(multiplier[0]))

    def _follow(
        self,
        found: list[Found],
        rows: Lumped,
        accuracy: float,
        steps: int,
        stop: Callable[[], bool],
    ) -> None:
        """Replace adversaries by where steps from them lead."""
        kappa, moving = np.ones(len(found)), np.ones(len(found), dtype=bool)
        for _ in range(steps):
            places, best = np.flatnonzero(moving), max(map(_value, found))
            if not len(places) or best >= self.enough * (1 - PROGRESS) or stop():
                break
            for i, new in zip(
                places,
                self._step([found[i] for i in places], rows, kappa[places], accuracy),
                strict=True,
            ):
                gain = new.value - found[i].value
                if gain > accuracy * _size(found[i]):
                    kappa[i] /= 2
                elif kappa[i] >= (1.0 if self._exact else LONGEST):
                    moving[i] = False
                else:
                    kappa[i] = 1.0 if kappa[i] < 1 else 4 * kappa[i]
                found[i] = new if gain > 0 else found[i]

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
        seen = np.maximum(gain.tangent(of_values.swapaxes(1, 2)), STEEPEST)
        earned = (rows.rows @ seen)[:, np.arange(len(of)), of]
        flat = times * np.maximum(gain.tangent(prior), STEEPEST)[:, of]
        slope = (earned - flat) / kappa[:, None]
        if objective is INFORMATION:
            price = slope + np.log(np.maximum(prior, 1e-300))[:, of]
            here = -entr(prior).sum(axis=1)
        else:
            price, here = slope + flat, times * gain.value(prior)
        dual = CellDual(rows, group.surplus, group.limits, objective=objective, blind=True)
        solution = dual.solve(
            np.empty((len(found), 0, dual.values, dual.values)),
            np.tile(dual.first(), (len(found), 1)),
            (weights * price).sum(axis=1) - here,
            accuracy * np.array(list(map(_size, found))) / kappa,
            price=price,
            miss=accuracy,
        )
        lam = kappa * solution.numbers[:, 0]
        reached = [self.adversaries.meet(np.maximum(w, 0.0)) for w in solution.weights]
        return [self._found(w, rows, float(x)) for w, x in zip(reached, lam, strict=True)]

    def _most_telling(self, weights: Array, rows: Lumped) -> Lumped:
        """Return the problem with the rows, in their boxes, that make posteriors most extreme.

        What is maximized is convex in the rows, so its tangent at the present ones is maximized.
        """
        assert self.group.boxes is not None
        slopes = np.maximum(self.group.told.gain.tangent(joint(weights, rows).T), STEEPEST).T
        low, high = self.group.boxes
        new = largest_rows(low[:, None], high[:, None], slopes[rows.value_index][:, None])[:, 0, 0]
        return replace(rows, rows=new / new.sum(axis=1, keepdims=True))


def _value(found: Found) -> float:
    return found.value


def _size(found: Found) -> float:
    """Return the unit of accuracies."""
    return max(abs(found.value), LEAST)
