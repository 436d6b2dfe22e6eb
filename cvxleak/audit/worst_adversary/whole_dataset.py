"""`WholeDataset`: the bound by what the output says of the whole dataset, where no tree gets far.

I(A;Y) is at most H(A), and at most I(X;Y); so for q in [0, 1], a distribution t on the outputs,
D_{a,g} = D(R_{a,g} || t) and lam >= 0

    I(A;Y) <= (1 - q) H(A) + q <w, D> + lam (F(w) - b),

whose maximum over w, with e added for a real output, is

    (1 - q + lam) log sum_a exp(phi_a / (1 - q + lam)) - lam b,
    phi_a = lam log sum_g m_{a,g} exp((q D_{a,g} + e_{a,g}) / lam).

(1 - q) H(A) + q I(X;Y) is concave in w. The t that fits q best is that of its maximizer above the
floor, and the derivative in q of the maximum is I(X;Y) - H(A) there.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import entr, logsumexp, rel_entr, softmax

from cvxleak.audit.worst_adversary.group import LEAST, Group, Term
from cvxleak.core.clock import Stop
from cvxleak.core.validation import Array
from cvxleak.core.work import spend

__all__ = ["WholeDataset"]

HALVINGS = 40
"""How often the range of the multiplier is halved in a step."""

SHARES = 5
"""How often the range of q is halved."""

LEFT = 1e-3
"""Nats that steps may leave: about as much as the last one gained, times their number. With 1e-6
they take up to ten times the time, and the bounds of noisy counts fall by 1e-6."""

LAM = (-16.0, 16.0)
"""Where log lam is looked for."""


@dataclass(frozen=True, eq=False)
class WholeDataset:
    """The bound, and what proves it: q, lam and t."""

    group: Group
    share: float
    multiplier: float
    output: Array
    upper: float

    @classmethod
    def of(cls, group: Group, weights: Array, stop: Stop) -> WholeDataset:
        """Return a good bound of this kind, looking from the weights of an adversary."""
        low, high, share, best = 0.0, 1.0, 1.0, None
        while True:
            weights, excess = _maximizer(group, weights, share, stop)
            found = cls._at(group, share, weights @ group.lumped.rows)
            best = found if best is None else min(best, found, key=lambda one: one.upper)
            if excess > 0:
                high = share
            else:
                low = share
            if high - low <= 2.0**-SHARES or stop():
                return best
            share = (low + high) / 2

    @classmethod
    def _at(cls, group: Group, share: float, output: Array) -> WholeDataset:
        """Return the bound with the best multiplier for these q and t."""
        lumped = group.lumped
        t = np.maximum(output / output.sum(), LEAST)
        c = share * _divergences(lumped.rows, t) + group.extra

        def upper(log_lam: float) -> float:
            lam = float(np.exp(log_lam))
            x = c / lam + group.log_share
            phi = lam * np.array([logsumexp(part) for part in np.split(x, lumped.starts[1:])])
            scale = 1 - share + lam
            return scale * float(np.asarray(logsumexp(phi / scale))) + lam * group.surplus

        found: Any = minimize_scalar(upper, bounds=LAM, method="bounded", options={"xatol": 1e-3})
        return cls(group, share, float(np.exp(found.x)), t, float(found.fun))

    def upper_at(self, surplus: float) -> float:
        """Return what it proves for another surplus log|X| - b."""
        return self.upper + self.multiplier * (surplus - self.group.surplus)

    def term(self) -> Term:
        """Return the term."""
        values = [{"rule": "vertices"}] * len(self.group.lumped.values)
        share = {"rule": "share", "q": self.share, "t": self.output.tolist(), "values": values}
        return self.group.closed(self.multiplier, self.group.priced(share))


def _maximizer(group: Group, weights: Array, share: float, stop: Stop) -> tuple[Array, float]:
    """Return the maximizer of (1 - q) H(A) + q I(X;Y) above the floor, and I(X;Y) - H(A) there.

    Each step maximizes its linearization less D(w' || w): w' is proportional to (w e^c m^lam) to
    the power 1 / (1 + lam), with lam such that F(w') is the floor, or 0.
    """
    lumped, log_m = group.lumped, group.lumped.log_multiplicity
    w, before = 0.9 * weights + 0.1 * lumped.uniform(), -np.inf
    for step in count(1):
        spend(20 * lumped.rows.size + 1e3 * len(w))
        d = _divergences(lumped.rows, np.maximum(w @ lumped.rows, LEAST))
        pi = np.add.reduceat(w, lumped.starts)
        known, value = float(w @ d), float(entr(pi).sum())
        reached = share * known + (1 - share) * value
        if step * (reached - before) <= LEFT or stop():
            return w, known - value
        before = reached
        c = share * d - (1 - share) * np.log(np.maximum(pi, LEAST))[lumped.value_index]
        low, high = 0.0, 1.0  # of lam / (1 + lam)
        for _ in range(HALVINGS):
            part = (low + high) / 2
            new = softmax((1 - part) * (np.log(w) + c) + part * log_m)
            enough = float(entr(new).sum() + new @ log_m) >= group.floor
            low, high = (low, part) if enough else (part, high)
        w = np.maximum(softmax((1 - high) * (np.log(w) + c) + high * log_m), LEAST)
    raise AssertionError("steps end")


def _divergences(rows: Array, t: Array) -> Array:
    """Return D(R_g || t)."""
    return rel_entr(rows, t).sum(axis=1)
