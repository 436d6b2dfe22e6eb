r"""Claims of kinds ``capacity`` and ``renyi-capacity``: what a channel can tell about its input.

``capacity``: the problem is {"matrix": rows}, or {"lower", "upper"} for all channels between them.
An input is a record with one context for each value, so this is the leakage about it without a
floor. The term of the upper end is a B-term, such as `close` of `share` and `vertices`, with the
multiplier 0 and q = 1:

    I(p, Q) <= max_x D(Q_x || t), for every distribution t (Kemperman).

That of the lower end is {"rule": "point", "weights": p}, with "posteriors" over a set of channels,
as for the kind ``record-leakage``.

``renyi-capacity``: the problem is {"matrix", "alpha"}, alpha > 0 a number, or "inf"; at alpha = 1
all is as for ``capacity``. The term of the upper end is {"rule": "order", "t"}, that of the lower
end {"rule": "point", "weights": p}: Sibson's information

    I_alpha(p, Q) = alpha / (alpha - 1) log sum_y (sum_x p_x Q(y|x)^alpha)^(1/alpha).

ORDER. I_alpha(p, Q) <= max_x D_alpha(Q_x || t) for every distribution t. Proof. I_alpha(p, Q) is
the least D_alpha(p Q || p x t) over t (Sibson), and with f(x) = sum_y Q(y|x)^alpha t_y^(1 - alpha)

    D_alpha(p Q || p x t) = log(sum_x p_x f(x)) / (alpha - 1),

where a mean is at most the largest f and at least the least one, whichever alpha - 1 needs. At
alpha = inf, D_inf(Q_x || t) = log max_y Q(y|x) / t_y, and I_inf = log sum_y max Q(y|x) over the x
with p_x > 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flint import arb, fmpq

from cvxleak.kernel.budget import charge
from cvxleak.kernel.gains import power
from cvxleak.kernel.leakage import gain_at
from cvxleak.kernel.numbers import ball, dot, largest, law, need, rational, total
from cvxleak.kernel.pairs import renyi_divergence
from cvxleak.kernel.reading import end_term, fractions, parts
from cvxleak.kernel.terms import Leaf, Shape, read_term
from cvxleak.kernel.view import Row, View, read_channel, view_of

__all__ = ["Capacity", "RenyiCapacity"]


@dataclass(frozen=True)
class Capacity:
    """A channel, or a set of channels, as a record with one context for each value."""

    view: View
    rows: Mapping[Any, Row]

    @classmethod
    def read(cls, problem: Any) -> Capacity:
        """Return the statement of a file."""
        rows = dict(enumerate(read_channel(problem)))
        return cls(view_of([{(x, ()): 1} for x in rows], rows, 0), rows)

    def upper(self, data: Any, leaf: Leaf | None = None) -> arb:
        """Return the bound that a B-term of the file proves."""
        term = read_term(data, "B", Shape(self.view))
        return term.conclude(self.view, leaf or Leaf())

    def lower(self, data: Any) -> arb:
        """Return the information at an input distribution of the file."""
        end_term(data, "point", {"weights"}, "a lower end", {"posteriors"})
        return gain_at(self.view, self.rows, data)


@dataclass(frozen=True)
class RenyiCapacity:
    """A channel and an order, None for infinity."""

    rows: Sequence[Sequence[arb]]
    order: fmpq | None

    @classmethod
    def read(cls, problem: Any) -> RenyiCapacity | Capacity:
        """Return the statement of a file."""
        parts(problem, {"matrix", "alpha"}, "the problem")
        order = None if problem["alpha"] == "inf" else rational(problem["alpha"])
        if order == 1:
            return Capacity.read({"matrix": problem["matrix"]})
        need(order is None or order > 0, "an order that is not positive")
        rows = read_channel({"matrix": problem["matrix"]})
        return cls([row.lo for row in rows], order)

    def upper(self, data: Any, leaf: Leaf | None = None) -> arb:
        """Return the largest divergence of order alpha of a row from the file's t."""
        end_term(data, "order", {"t"}, "an upper end")
        t = [ball(x) for x in law(fractions(data["t"], "t", len(self.rows[0])))]
        charge("ball operations", 4 * len(self.rows) * len(t))
        return largest(renyi_divergence(row, t, self.order) for row in self.rows)

    def lower(self, data: Any) -> arb:
        """Return Sibson's information, which is at least 0, at an input distribution."""
        end_term(data, "point", {"weights"}, "a lower end")
        weights = law(fractions(data["weights"], "weights", len(self.rows)))
        used = [(ball(x), row) for x, row in zip(weights, self.rows, strict=True) if x]
        columns = list(zip(*(row for _, row in used), strict=True))
        charge("ball operations", 4 * len(used) * len(columns))
        if self.order is None:
            found = total(map(largest, columns)).log()
        else:
            p = [x for x, _ in used]
            sums = (dot(p, [power(q, self.order) for q in column]) for column in columns)
            mass = total(power(x, 1 / self.order) for x in sums)
            found = mass.log() * arb(self.order / (self.order - 1))
        return found if found > 0 else arb(0)
