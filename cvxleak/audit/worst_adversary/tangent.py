"""Time sharing at a multiplier for which a tangent bounds each value's part: no tree is needed.

For every distribution t of the output and lam >= 0,

    I(A;Y) <= lam log sum_a exp(phi_a / lam) - lam b,
    phi_a = max_v D(v R_a || t) + <v, e> + lam (H(v) + <v, log m_a>),

e what is added for a real output. Let eta_a be the contraction of the rows of a value (CONTRACT (a)
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

__all__ = ["Tangent", "contraction"]

PAIRS = 10**7
"""Most pairs of rows of a value that are compared; with more eta is 1."""

LEAST = 2.0**-100
"""Weights of tangents are raised to this: the kernel takes their logarithms."""

GAIN = 1e-12
"""Nats per cycle below which the ascent ends."""

UNIFORM = 1e-3
"""About lam times what the bound is off by at b = log|X|, for a large lam; measured, 4e-4 to 6e-3.
"""

NOTHING = 1e-12
"""Surplus log|X| - b up to which there is one adversary, as far as floats can tell."""

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
    def of(cls, group: Group, weights: Array, multiplier: float, steps: int, stop: Stop) -> Tangent:
        """Return the bound, looking for the maximizer of I + lam F from an adversary's weights."""
        lumped = group.lumped
        parts = np.split(lumped.rows, lumped.starts[1:])
        eta = [contraction(part) for part in parts]
        if group.surplus <= NOTHING:
            multiplier = float(np.sqrt(UNIFORM / max(group.surplus, 1e-16)))
        lam = max(multiplier, *eta)
        found = 0.9 * weights + 0.1 * lumped.uniform()
        updater, one = Relaxed(lumped, lam), np.ones(1)
        current = updater.update(updater.joint(found[None]), one, one)
        ascend(updater, current, None, max_updates=steps, least_gain=GAIN, stop=stop)
        found = np.maximum(current.weights[0], LEAST)
        found /= found.sum()
        log_t = np.log(found @ lumped.rows)
        phi = []
        for a, (rows, own) in enumerate(
            zip(parts, np.split(found, lumped.starts[1:]), strict=True)
        ):
            w = own / own.sum()
            slopes = np.where(
                rows.max(axis=0) > 0, np.log(np.maximum(w @ rows, LEAST)) - log_t, 0.0
            )
            at = lumped.value_index == a
            x = rows @ slopes + group.extra[at] + lam * group.log_share[at] - eta[a] * np.log(w)
            left = lam - eta[a]
            phi.append(left * logsumexp(x / left) if left > 0 else x.max())
        upper = lam * float(logsumexp(np.array(phi) / lam)) + lam * group.surplus
        return cls(group, lam, found, upper)

    def upper_at(self, surplus: float) -> float:
        """Return what it proves for another surplus log|X| - b."""
        return self.upper + self.multiplier * (surplus - self.group.surplus)

    def term(self) -> Term:
        """Return the proof."""
        group, lumped = self.group, self.group.lumped
        parts = np.split(self.weights, lumped.starts[1:])
        values = [{"rule": "blocks", "w": part.tolist()} for part in parts]
        t = self.weights @ lumped.rows
        share = {"rule": "share", "q": 1, "t": t.tolist(), "values": values}
        return group.closed(self.multiplier, group.priced(share))


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
