"""`Group`: a group of records and the class of its adversaries, in floats, as searches need it.

A search works on floats and is not trusted. What it looks for are the numbers of a term about the
kernel's view of the group, in which the same contexts are together in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from flint import arb, fmpz
from scipy.special import entr, lambertw

from cvxleak.audit.worst_adversary.objective import Objective
from cvxleak.capacities.outputs import merge_outputs
from cvxleak.core.validation import Array
from cvxleak.kernel.numbers import precision
from cvxleak.kernel.view import View
from cvxleak.model import Limits, Lumped
from cvxleak.model.gain_form import LEAKAGE, GainForm

__all__ = ["FLOATS", "LEAST", "Group", "Term"]

Term = dict[str, Any]
"""A term of a proof, as a file holds it."""

LEAST = 2.0**-100
"""Probabilities are raised to this where their logarithms are taken: single floats hold it."""


FLOATS = 50
"""In how many leaves of a tree a proof uses a probability in the time that one in balls takes."""


@dataclass(frozen=True, eq=False)
class Group:
    """A view in floats.

    Attributes
    ----------
    view : View
        What a term is about.
    lumped : Lumped
        The groups of contexts; over a set of channels, with the rows in the middle of their boxes.
    parts : list of list of int
        Which outputs of the view are one output of `lumped`: those whose columns are proportional.
    floor, surplus : float
        b and log|X| - b.
    limits : Limits
        What else adversaries meet.
    extra : array, shape (N,)
        What is added to the leakage of a real output for the place in a cell; 0 otherwise.
    shares : array, shape (outputs of the view,)
        A distribution that is spread within each part as every row is.
    log_share : array, shape (N,)
        log(m_g / |X|), which is log m_g without what large numbers would cancel.
    boxes : pair of arrays of shape (N, outputs), or None
        The ends of the rows, over a set of channels.
    told : GainForm
        The gain, and the form in which it is measured.
    smoothing : float
        s, if the outputs of `lumped` are drawn anew, evenly, with this probability.
    """

    view: View
    lumped: Lumped
    parts: list[list[int]]
    floor: float
    surplus: float
    limits: Limits
    extra: Array
    shares: Array
    log_share: Array
    boxes: tuple[Array, Array] | None = None
    told: GainForm = LEAKAGE
    smoothing: float = 0.0

    @classmethod
    def of(cls, view: View, told: GainForm = LEAKAGE) -> Group:
        """Return a view in floats."""
        with precision():
            distinct = {id(row): row for row in view.rows}
            ends = {place: _floats(row.lo, row.hi) for place, row in distinct.items()}
            datasets = arb(fmpz(sum(view.counts))).log()
            surplus = max(float(datasets - view.floor), 0.0)
            floor = float(view.floor.lower())
            limits = Limits(
                np.array([[_float(x) for x in limit.c] for limit in view.limits]).reshape(
                    -1, len(view.rows)
                ),
                np.array([_float(limit.bound) for limit in view.limits]),
                np.array([_float(limit.share) for limit in view.limits]),
            )
            extra = np.array([_float(x) for x in view.extra or [0] * len(view.rows)])
        low, high = (np.stack([ends[id(row)][i] for row in view.rows]) for i in (0, 1))
        middle = (low + high) / 2
        lumped = Lumped(
            range(view.k),
            range(view.n),
            np.repeat(np.arange(view.k), list(map(len, view.of))),
            middle / middle.sum(axis=1, keepdims=True),
            view.counts,
            [()] * len(view.rows),
        )
        shares = np.maximum(lumped.rows.mean(axis=0), LEAST)
        parts = [[y] for y in range(view.n)]
        if view.exact and view.information:
            lumped, parts = merge_outputs(lumped)
        of_group, of_value = lumped.log_shares
        return cls(
            view,
            lumped,
            parts,
            floor,
            surplus,
            limits,
            extra,
            shares / shares.sum(),
            of_group + of_value[lumped.value_index],
            None if view.exact else (low, high),
            told,
        )

    def smoothed(self, loss: float) -> Group:
        """Return the group with rows that have no zeros, which hide so much of I(A;Y) at most.

        I(A;Y) is at most (I(A;Y') + h(s)) / (1 - s) for the smoothed Y'; `raised` says so.
        """
        s = -loss / lambertw(-loss / np.e, -1).real  # h(s) < s (1 - log s) = loss
        outputs = self.lumped.rows.shape[1]
        rows = (1 - s) * self.lumped.rows + s / outputs
        lumped = replace(self.lumped, rows=rows / rows.sum(axis=1, keepdims=True))
        return replace(self, lumped=lumped, extra=(1 - s) * self.extra, smoothing=float(s))

    def raised(self, bound: float) -> float:
        """Return the bound for the view that one for `lumped` gives."""
        s = self.smoothing
        return bound if s == 0 else (bound + float(entr(s) + entr(1 - s))) / (1 - s)

    def priced(self, of: Term) -> Term:
        """Return the bound of the view from one of `lumped`."""
        if self.parts == [[y] for y in range(self.view.n)]:
            return of
        return {"rule": "price", "parts": self.parts, "t": self.shares.tolist(), "of": of}

    def closed(self, multiplier: float, of: Term, limits: Array | None = None) -> Term:
        """Return the bound of `lumped` by a majorant, from multipliers that fit it."""
        kappa = np.zeros(len(self.limits.bounds)) if limits is None else limits
        lam, kappa = multiplier / (1 - self.smoothing), kappa / (1 - self.smoothing)
        if self.smoothing:
            t = [1] * self.lumped.rows.shape[1]
            of = {"rule": "smoothed", "share": self.smoothing, "t": t, "of": of}
        return {"rule": "close", "multiplier": lam, "limits": kappa.tolist(), "of": of}

    def objective(self, factor: float = 0.0) -> Objective:
        """Return what is maximized; `factor` is the T of a factor."""
        return Objective.of(self.told, len(self.lumped.values), factor)


def _floats(lo: Any, hi: Any) -> tuple[Array, Array]:
    low, high = (np.array([_float(x) for x in end]) for end in (lo, lo if hi is None else hi))
    return low, high


def _float(x: Any) -> float:
    return float(x.mid()) if isinstance(x, arb) else float(arb(x).mid())
