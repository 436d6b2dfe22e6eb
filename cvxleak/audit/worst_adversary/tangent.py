"""Time sharing at a multiplier for which a tangent bounds each value's part: no tree is needed.

For every distribution t of the output and lam >= 0,

    I(A;Y) <= lam log sum_a exp(phi_a / lam) - lam b,
    phi_a = max_v D(v R_a || t) + <v, e> + lam (H(v) + <v, log m_a>),

e what is added for a real output. Let eta_a be the contraction of the rows of a value (CONTRACT
in `cvxleak.kernel.lemmas`). For lam >= eta_a the maximum is of a concave function, and its tangent
at any distribution w of the groups proves

    phi_a <= (lam - eta_a) log sum_g exp((x_g + lam log m_g) / (lam - eta_a)),
    x = R_a log(w R_a / t) + e - eta_a log w.

The best w is the maximizer of I + lam F. If the floor's own multiplier is at least eta this is the
leakage; otherwise it is off by an amount of the order of the square of the difference.

With each group of contexts as a value of its own eta = 0, and the same bounds what the output says
of the whole dataset: I(A;Y) <= I(X;Y). It proves more where the floor's multiplier is small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from cvxleak.audit.worst_adversary.ascent import PROGRESS, ROUGH
from cvxleak.audit.worst_adversary.group import LEAST, Group, Term
from cvxleak.audit.worst_adversary.interior_point import STEPS
from cvxleak.audit.worst_adversary.objective import HAIR
from cvxleak.audit.worst_adversary.witness import joint
from cvxleak.core.clock import Stop
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.iterative.entropy_floor import rounding
from cvxleak.iterative.joint_update import Relaxed, Updater, ascend
from cvxleak.kernel.lemmas import MOST_PAIRS
from cvxleak.model import Lumped

__all__ = ["Tangent", "contraction"]


@dataclass(frozen=True, eq=False)
class Tangent:
    """The bound, and what proves it.

    Attributes
    ----------
    group : Group
    multiplier : float
    weights : array, shape (N,)
        w, with all values together.
    upper : float
    whole : bool
        Whether each group of contexts is a value of its own.
    """

    group: Group
    multiplier: float
    weights: Array
    upper: float
    whole: bool = False

    @classmethod
    def of(
        cls, group: Group, weights: Array, multiplier: float, target: float, stop: Stop
    ) -> Tangent:
        """Return the bound from an adversary, at the floor's multiplier or the least that there is.

        The gain that ends the ascent is a part of `target`.
        """
        lumped = group.lumped
        eta = np.array([contraction(own) for own in np.split(lumped.rows, lumped.starts[1:])])
        lam = max(multiplier, float(eta.max()), HAIR)
        if group.surplus <= rounding(lumped.max_entropy):
            # The uniform prior alone is left, with any multiplier: a large one proves most, as long
            # as rounding of the surplus, times it, is as small.
            lam = max(lam, np.finfo(float).eps ** -0.5)
        most = target + lam * group.floor
        weights, _ = _climbed(lumped, Relaxed(lumped, lam), weights, target, most, stop)
        return cls(group, lam, weights, _bound(group, lumped, weights, lam, eta))

    @classmethod
    def of_dataset(cls, group: Group, weights: Array, target: float, stop: Stop) -> Tangent:
        """Return the bound on I(X;Y), from an adversary."""
        places = np.arange(len(weights))
        lumped = replace(group.lumped, values=tuple(places.tolist()), value_index=places)
        updater = Updater(lumped, group.floor)
        found, lam = _climbed(lumped, updater, weights, target, target, stop)
        lam = max(lam, HAIR)
        bound = _bound(group, lumped, found, lam, np.zeros(len(weights)))
        return cls(group, lam, found, bound, whole=True)

    def upper_at(self, surplus: Array) -> Array:
        """Return what it proves for each other surplus log|X| - b."""
        return self.upper + self.multiplier * (surplus - self.group.surplus)

    def term(self) -> Term:
        """Return the proof."""
        group, lumped = self.group, self.group.lumped
        parts = np.split(self.weights, lumped.starts[1:])
        values = [
            {"rule": "vertices"} if self.whole else {"rule": "contraction", "w": part.tolist()}
            for part in parts
        ]
        t = np.maximum(self.weights @ lumped.rows, LEAST)
        share = {"rule": "share", "t": t.tolist(), "values": values}
        return group.priced(group.closed(self.multiplier, share))


def _climbed(
    lumped: Lumped, updater: Updater, weights: Array, target: float, most: float, stop: Stop
) -> tuple[Array, float]:
    """Return the adversary to whom an ascent leads from some weights, and the multiplier.

    Nothing is proved below what is attained: above `most` a rough one will do.
    """
    # Nowhere zero: what has no mass stays without.
    weights = 0.9 * weights + 0.1 * lumped.uniform()
    current = updater.first(updater.joint(weights[None]))
    for accuracy in (ROUGH, PROGRESS):
        gain = accuracy * target
        ascend(updater, current, None, max_updates=STEPS, least_gain=gain, stop=stop)
        if current.value[0] > most:
            break
    found = np.maximum(current.weights[0], LEAST)
    return found / found.sum(), float(current.multiplier[0])


def _bound(group: Group, lumped: Lumped, weights: Array, lam: float, eta: Array) -> float:
    """Return what is proved with lam and w, relative to the uniform prior."""
    of, rows, of_values = lumped.value_index, lumped.rows, joint(weights, lumped)
    prior = np.add.reduceat(weights, lumped.starts)
    slopes = np.log(np.maximum(of_values / prior[:, None], LEAST))
    slopes -= np.log(np.maximum(of_values.sum(axis=0), LEAST))
    x = (rows * slopes[of]).sum(axis=1) + group.extra + lam * group.log_share
    x -= eta[of] * np.log(weights / prior[of])
    top, left = np.maximum.reduceat(x, lumped.starts), np.maximum(lam - eta, LEAST)
    spread = np.add.reduceat(np.exp((x - top[of]) / left[of]), lumped.starts)
    total: Any = logsumexp((top + left * np.log(spread)) / lam)
    return lam * float(total) + lam * group.surplus


def contraction(rows: Array) -> float:
    """Return eta with D(v R || w R) <= eta D(v || w).

    Examples
    --------
    A binary symmetric channel brings distributions together by (1 - 2 p)^2:

    >>> import numpy as np
    >>> from cvxleak.audit.worst_adversary.tangent import contraction
    >>> round(contraction(np.array([[0.9, 0.1], [0.1, 0.9]])), 9)
    0.64
    """
    if len(rows) ** 2 > MOST_PAIRS:
        return 1.0
    spend(rows.size * len(rows))
    roots = np.sqrt(rows)
    return float(np.clip(1 - (roots @ roots.T).min() ** 2, 0.0, 1.0))
