"""The adversaries that a master knows, and which of them it needs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cvxleak.core.validation import Array
from cvxleak.design.adversary_oracle import Cut

__all__ = ["Cuts"]

MANY = 100
"""Cuts that are kept in any case: they cost little."""

TINY = 1e-3
"""A multiplier below this part of the largest is next to nothing."""


@dataclass
class _Known:
    """A cut, its multiplier, and for how many rounds that was next to nothing."""

    cut: Cut
    theta: float = math.inf
    idle: int = 0


class Cuts:
    """Cuts in the order in which they came, with what the masters made of them."""

    def __init__(self, cuts: Sequence[Cut] = ()) -> None:
        self._known = [_Known(cut) for cut in cuts]

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[Cut]:
        return (known.cut for known in self._known)

    @property
    def by_use(self) -> list[Cut]:
        """The cuts, those first that count most."""
        return [known.cut for known in sorted(self._known, key=lambda known: -known.theta)]

    def add(self, cut: Cut) -> None:
        """Know one more."""
        self._known.append(_Known(cut))

    def near(self, cut: Cut, distance: float) -> list[Cut]:
        """Return the cuts about the same group that are not far from one."""
        others = [known.cut for known in self._known if known.cut.group == cut.group]
        if not others:
            return []
        apart = np.abs(np.array([other.weights for other in others]) - cut.weights).sum(axis=1)
        return [others[k] for k in np.flatnonzero(apart < distance)]

    def used(self, theta: Array) -> None:
        """Take note of a master's multipliers."""
        for known, one in zip(self._known, theta.tolist(), strict=True):
            known.theta = one
            known.idle = 0 if one > TINY * theta.max() else known.idle + 1

    def drop(self, idle: int) -> None:
        """Forget those that have not counted for so many rounds, where there are many."""
        if len(self) > MANY:
            self._known = [known for known in self._known if known.idle < idle]
