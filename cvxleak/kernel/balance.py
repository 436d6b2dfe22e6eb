"""Claims of kind ``balance``: what an entropy floor b keeps from every adversary.

The problem is that of ``record-leakage``, b >= 0; the claim is about L(0) - L(b), where L(b) is
the largest leakage at the floor b (DALENIUS Definition 10). The term of either end is {"rule":
"difference", "capacity", "leakage"}, with terms of the kind ``record-leakage`` about L(0) and about
L(b): an upper and a lower end's for the upper end, a lower and an upper end's for the lower end. A
floor only excludes adversaries, so that L(0) - L(b) >= 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flint import arb

from cvxleak.kernel.leakage import RecordLeakage
from cvxleak.kernel.numbers import need, rational
from cvxleak.kernel.reading import end_term
from cvxleak.kernel.terms import Leaf

__all__ = ["Balance"]


@dataclass(frozen=True)
class Balance:
    """Two statements about one mechanism: without a floor, and with it."""

    free: RecordLeakage
    bound: RecordLeakage

    @classmethod
    def read(cls, problem: Any) -> Balance:
        """Return the statement of a file."""
        bound = RecordLeakage.read(problem)
        need(rational(problem["entropy_floor"]) >= 0, "an entropy floor below 0")
        return cls(RecordLeakage.read({**problem, "entropy_floor": 0}), bound)

    def upper(self, data: Any, leaf: Leaf | None = None) -> arb:
        """Return L(0) from above less L(b) from below."""
        end_term(data, "difference", {"capacity", "leakage"}, "an end")
        return self.free.upper(data["capacity"], leaf) - self.bound.lower(data["leakage"])

    def lower(self, data: Any) -> arb:
        """Return L(0) from below less L(b) from above, or 0."""
        end_term(data, "difference", {"capacity", "leakage"}, "an end")
        rest = self.free.lower(data["capacity"]) - self.bound.upper(data["leakage"])
        return rest if rest >= 0 else arb(0)
