"""`ValueTree`: what the trees for the inner maximum of the time-sharing bound have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from scipy.special import rel_entr

from cvxleak.audit.search.intervals import IntervalSearch
from cvxleak.audit.search.means import log_mean_exp
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.exact.outward import SMALLEST as LEAST
from cvxleak.solvers.best_first import Leaf

__all__ = ["SMALLEST", "ValueTree", "contracts_by"]

STARTS = 100
"""Most distributions from which the inner maximum is looked for."""

CLIMBS = 300
"""Most steps of the search for an inner maximum."""

NUMBER = 10.0
"""Multiplications that a step of that search takes for each number it touches."""

CLIMB_WORK = 5 * 10**7
"""About how many numbers it may touch."""

PAIRS_LIMIT = 10**5
"""Most pairs of rows of a value that are compared; above it eta = 1."""

SMALLEST = 1e-200
"""Probabilities of a reference distribution are not below this: their logarithms are taken."""

L = TypeVar("L", bound=Leaf)


class ValueTree(IntervalSearch[L]):
    """Upper bounds on max_v D(v R || t) - lam D(v || s), for one value of the record.

    `attained` is the largest value found, at `law`. The search starts from the tree of another one,
    `like`, if there is one for the same rows: its cuts serve other t and lam as well.
    """

    kind = "value"

    def __init__(
        self,
        rows: Array,
        log_shares: Array,
        t: Array,
        lam: float,
        law: Array,
        like: ValueTree[L] | None = None,
    ) -> None:
        self._rows, self._log_shares, self._t, self._lam = rows, log_shares, t, lam
        self.contraction = contracts_by(rows)
        self.attained, self.law = -np.inf, law
        starts = int(np.clip(CLIMB_WORK // 20 // rows.size, 3, STARTS))
        self.climb(np.concatenate([law[None], np.eye(min(len(rows), starts), len(rows))]))
        super().__init__(*self._root())
        if like is not None:
            self.adopt(like, self._renewed)

    @abstractmethod
    def _root(self) -> tuple[Array, L]:
        """Return the region that holds every distribution, and a leaf for it."""

    @abstractmethod
    def _renewed(self, regions: list[Array], leaves: list[L]) -> list[L]:
        """Return what the multipliers of some leaves of another tree prove here."""

    @abstractmethod
    def encoded(self, outputs: Sequence[Sequence[int]], dtype: str) -> dict[str, Any]:
        """Return the tree as `cvxleak.audit.old_terms` reads it."""

    def image(self, other: ValueTree[Any]) -> ValueTree[L] | None:
        """Return the tree of another value as one of this, where that is possible."""
        return None

    def tangent(self) -> float:
        """Return the bound by the tangent at `law`: for lam >= `contraction`."""
        law = np.maximum(self.law, SMALLEST)
        law /= law.sum()
        if (law @ self._rows)[self._rows.max(axis=0) > 0].min() < 2 * LEAST:
            return np.inf  # a checker would not take it
        eta = self.contraction
        x = self._rows @ self._slopes(law) + eta * (self._log_shares - np.log(law))
        left = self._lam - eta
        return float(x.max() if left == 0 else left * log_mean_exp(x / left, self._log_shares))

    def climb(self, laws: Array) -> None:
        """Look for larger values: D is convex, so its tangent's maximizer is a step up."""
        work = len(laws) * self._rows.size
        for _ in range(int(np.clip(CLIMB_WORK // work, 5, CLIMBS))):
            spend(1e5 + NUMBER * work)
            before = laws
            x = (self._slopes(laws) @ self._rows.T) / self._lam + self._log_shares
            # SciPy's softmax takes several times as long on arrays as small as these.
            laws = np.exp(x - x.max(axis=1, keepdims=True))
            laws /= laws.sum(axis=1, keepdims=True)
            if np.abs(laws - before).max() < 1e-14:
                break
        spread = rel_entr(laws, np.exp(self._log_shares)).sum(axis=1)
        values = rel_entr(laws @ self._rows, self._t).sum(axis=1) - self._lam * spread
        best = int(values.argmax())
        if values[best] > self.attained:
            self.attained, self.law = float(values[best]), laws[best]

    def _slopes(self, laws: Array) -> Array:
        return np.log(np.maximum(laws @ self._rows, SMALLEST) / self._t)


def contracts_by(rows: Array) -> float:
    """Return eta with D(v R || v0 R) <= eta D(v || v0), a hair above what a checker finds.

    See CONTRACT (a) in `cvxleak.kernel.lemmas`.

    Examples
    --------
    A binary symmetric channel brings distributions together by (1 - 2 p)^2:

    >>> import numpy as np
    >>> from cvxleak.audit.search.value_tree import contracts_by
    >>> round(contracts_by(np.array([[0.9, 0.1], [0.1, 0.9]])), 9)
    0.64
    """
    if len(rows) ** 2 > PAIRS_LIMIT:
        return 1.0
    roots = np.sqrt(rows)
    return min(1.0, 1 - float((roots @ roots.T).min()) ** 2 + 1e-11)
