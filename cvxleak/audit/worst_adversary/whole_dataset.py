"""`WholeDataset`: the bound by what the output says of the whole dataset, where no tree gets far.

I(A;Y) <= I(X;Y), so for every distribution t on the outputs, D_{a,g} = D(R_{a,g} || t) and lam >= 0

    I(A;Y) <= <w, D> + lam (F(w) - b) <= lam log sum_{a,g} m_{a,g} exp((D_{a,g} + e_{a,g}) / lam)
                                         - lam b,

with e added for a real output. I(X;Y) is concave in w, and the best t is that of its maximizer
above the floor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, rel_entr

from cvxleak.audit.worst_adversary.group import LEAST, Group, Term
from cvxleak.core.clock import Stop
from cvxleak.core.validation import Array
from cvxleak.iterative.joint_update import Updater, ascend

__all__ = ["WholeDataset"]

STEPS, GAIN = 1000, 1e-9
"""Most steps to the maximizer, and what they gain at least, in nats."""

LAM = (-16.0, 16.0)
"""Where log lam is looked for."""


@dataclass(frozen=True, eq=False)
class WholeDataset:
    """The bound, and what proves it: lam and t."""

    group: Group
    multiplier: float
    output: Array
    upper: float

    @classmethod
    def of(cls, group: Group, weights: Array, stop: Stop) -> WholeDataset:
        """Return a good bound of this kind, looking from the weights of an adversary."""
        lumped, places = group.lumped, np.arange(len(weights))
        # Each group of contexts is a value.
        whole = replace(lumped, values=tuple(places.tolist()), value_index=places)
        updater = Updater(whole, group.floor)
        # Nowhere zero: what has no mass stays without.
        start = 0.9 * weights + 0.1 * lumped.uniform()
        current = updater.first(updater.joint(start[None]))
        ascend(updater, current, None, max_updates=STEPS, least_gain=GAIN, stop=stop)
        return cls._at(group, current.weights[0] @ lumped.rows)

    @classmethod
    def _at(cls, group: Group, output: Array) -> WholeDataset:
        """Return the bound with the best multiplier for this t."""
        t = np.maximum(output / output.sum(), LEAST)
        c = rel_entr(group.lumped.rows, t).sum(axis=1) + group.extra

        def upper(log_lam: float) -> float:
            lam = float(np.exp(log_lam))
            total: Any = logsumexp(c / lam + group.log_share)
            return lam * float(total) + lam * group.surplus

        found: Any = minimize_scalar(upper, bounds=LAM, method="bounded", options={"xatol": 1e-3})
        return cls(group, float(np.exp(found.x)), t, float(found.fun))

    def upper_at(self, surplus: float) -> float:
        """Return what it proves for another surplus log|X| - b."""
        return self.upper + self.multiplier * (surplus - self.group.surplus)

    def term(self) -> Term:
        """Return the term."""
        values = [{"rule": "vertices"}] * len(self.group.lumped.values)
        share = {"rule": "share", "t": self.output.tolist(), "values": values}
        return self.group.closed(self.multiplier, self.group.priced(share))
