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
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from cvxleak.audit.worst_adversary.group import Group, Term
from cvxleak.core.clock import Stop
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.iterative.joint_update import Relaxed, ascend
from cvxleak.measures import lumped_entropy
from cvxleak.model import Lumped

__all__ = ["Tangent", "contraction"]

PAIRS = 10**7
"""Most pairs of rows of a value that are compared; with more eta is 1."""

LEAST = 2.0**-100
"""Weights of tangents are raised to this: the kernel takes their logarithms."""

GAIN = 1e-8
"""Nats per cycle below which the ascent ends."""

STEPS = 100
"""Most steps of the ascent."""

LARGEST = 1e9
"""Largest multiplier: at b = log|X| there is no best one."""

PROGRESS = 0.1
"""Least share of what is missing that another multiplier may gain."""

Line = tuple[float, float, float]

HAIR = 1e-11
"""What is added to eta: the kernel's bounds on it are a hair larger."""


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
    """

    group: Group
    multiplier: float
    weights: Array
    upper: float

    @classmethod
    def of(
        cls, group: Group, weights: Array, multiplier: float, target: float, stop: Stop
    ) -> Tangent:
        """Return a good bound, or one up to `target`, from an adversary and the floor's multiplier.

        U(lam) is convex, and its slope is what F of its maximizer is above the floor: lam goes to
        where the tangents of U at the ends of what is left of its range meet.
        """
        parts = np.split(group.lumped.rows, group.lumped.starts[1:])
        eta = [contraction(part) for part in parts]
        best, low, high = None, None, None
        lam = max(multiplier if multiplier < LARGEST else 0.0, *eta)
        while best is None or best.upper > target:
            weights = _maximizer(group.lumped, weights, lam, stop)
            found = cls(group, lam, weights, _bound(group, weights, lam, eta))
            if best is None or found.upper < best.upper:
                best = found
            slope = lumped_entropy(weights, group.lumped) - group.floor
            if slope < 0:
                low = (lam, found.upper, slope)
            else:
                high = (lam, found.upper, slope)
            if lam > LARGEST or stop() or (low is None and lam == max(eta)):
                break
            if low is None or high is None:
                lam = 2 * lam if high is None else max(lam / 2, *eta)
                continue
            lam, least = _meeting(low, high)
            if not low[0] < lam < high[0] or best.upper - least <= PROGRESS * (best.upper - target):
                break
        return best

    def upper_at(self, surplus: float) -> float:
        """Return what it proves for another surplus log|X| - b."""
        return self.upper + self.multiplier * (surplus - self.group.surplus)

    def term(self) -> Term:
        """Return the proof."""
        group, lumped = self.group, self.group.lumped
        parts = np.split(self.weights, lumped.starts[1:])
        values = [{"rule": "contraction", "w": part.tolist()} for part in parts]
        t = np.maximum(self.weights @ lumped.rows, LEAST)
        share = {"rule": "share", "t": t.tolist(), "values": values}
        return group.closed(self.multiplier, group.priced(share))


def _meeting(one: Line, other: Line) -> tuple[float, float]:
    """Return where two lines meet, given by a point (x, y) and a slope each."""
    (x, y, slope), (x2, y2, slope2) = one, other
    at = (y2 - y + slope * x - slope2 * x2) / (slope - slope2)
    return at, y + slope * (at - x)


def _maximizer(lumped: Lumped, weights: Array, lam: float, stop: Stop) -> Array:
    """Return the adversary of U(lam), looking from some weights."""
    # Nowhere zero: what has no mass stays without.
    start = 0.9 * weights + 0.1 * lumped.uniform()
    updater = Relaxed(lumped, lam)
    current = updater.first(updater.joint(start[None]))
    ascend(updater, current, None, max_updates=STEPS, least_gain=GAIN, stop=stop)
    found = np.maximum(current.weights[0], LEAST)
    return found / found.sum()


def _bound(group: Group, weights: Array, lam: float, eta: list[float]) -> float:
    """Return what is proved with lam and w, relative to the uniform prior."""
    lumped = group.lumped
    log_t, phi = np.log(np.maximum(weights @ lumped.rows, LEAST)), []
    for a, first in enumerate(lumped.starts):
        own = slice(first, first + int((lumped.value_index == a).sum()))
        w, rows = weights[own] / weights[own].sum(), lumped.rows[own]
        slopes = np.where(rows.any(axis=0), np.log(np.maximum(w @ rows, LEAST)) - log_t, 0.0)
        x = rows @ slopes + group.extra[own] + lam * group.log_share[own] - eta[a] * np.log(w)
        left = lam - eta[a]
        phi.append(left * logsumexp(x / left) if left > 0 else x.max())
    return lam * float(logsumexp(np.array(phi) / lam)) + lam * group.surplus


def contraction(rows: Array) -> float:
    """Return eta with D(v R || w R) <= eta D(v || w), a hair above what the kernel finds.

    Examples
    --------
    A binary symmetric channel brings distributions together by (1 - 2 p)^2:

    >>> import numpy as np
    >>> from cvxleak.audit.worst_adversary.tangent import contraction
    >>> round(contraction(np.array([[0.9, 0.1], [0.1, 0.9]])), 9)
    0.64
    """
    if len(rows) ** 2 > PAIRS:
        return 1.0
    spend(rows.size * len(rows))
    roots = np.sqrt(rows)
    return min(1.0, 1 - float((roots @ roots.T).min()) ** 2 + HAIR)
