"""`RealCells`: the cells into which an audit cuts a real output, and what a place in one tells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flint import fmpq

from cvxleak.audit.worst_adversary.group import Term
from cvxleak.audit.worst_adversary.objective import HAIR
from cvxleak.core.clock import Stop
from cvxleak.core.validation import Array
from cvxleak.kernel.leakage import RecordLeakage
from cvxleak.kernel.noise import Noise, Output
from cvxleak.kernel.numbers import largest, precision, proved, rational, upper
from cvxleak.kernel.reading import pack
from cvxleak.kernel.view import View
from cvxleak.model import Mechanism
from cvxleak.model.noise.real_output import Cells, most_cells

__all__ = ["BALL_SECONDS", "RealCells"]

COARSE = 1e-2
"""Nats that the place in a cell may tell in a first look. With ten times or a tenth of it gaps of
smooth noise are .7 to 1.6 times as wide, and the mean is 1.05 times."""

FIRST = 1 << 15
"""Most probabilities of cells in the first look, which no time limit interrupts. With eight times
of it nothing changes in the bank, with an eighth a gap of Laplace noise is 2.4 times as wide."""

BALL_SECONDS = 1e-5
"""About how long a probability takes, in balls."""

KINKS = ("laplace", "uniform")
"""Noise whose log-density has a kink, or an end."""


class RealCells:
    """The cells of a real output.

    Attributes
    ----------
    cut : dict
        What an upper end says of the cells.
    views : sequence of View
        The views of all groups, with what the place in a cell tells as `extra`.
    lost : float
        The most that it tells.
    """

    def __init__(self, mechanism: Mechanism, statement: RecordLeakage) -> None:
        values = mechanism.query.values
        self._noise, self._statement = mechanism.standard, statement
        self._most = most_cells(values)
        self._take(self._noise.cells(COARSE, min(max(2, FIRST // len(values)), self._most)))

    def finer(self, lost: float, stop: Stop) -> bool:
        """Make the cells so fine that they tell no more than that, if there is time for it.

        False if there is none, or if cells cannot be as fine.
        """
        before, found = vars(self).copy(), self._noise.cells(lost, self._most)
        if stop(BALL_SECONDS * found.masses.size) or found.masses.shape[1] <= self.views[0].n:
            return False
        self._take(found)
        if self.lost < before["lost"]:
            return True
        vars(self).update(before)
        return False

    def _take(self, found: Cells) -> None:
        output = self._statement.output
        assert output is not None
        self.cut: Term = {}
        if found.edges is not None and found.references is not None:
            made = {
                "edges": self._written(output, found.edges[1:-1]),
                "references": pack(found.references, "<f8"),
            }
            self.cut = {key: made[key] for key in output.upper}
        with precision():
            self.views: Sequence[View] = self._statement.priced(self.cut)
            self.lost = upper(largest(x for view in self.views for x in view.extra or ()))

    def _written(self, output: Output, edges: Array) -> Any:
        """Return edges in the kernel's unit, as a term holds them.

        At kinks of densities and ends of supports they matter to the last digit: there they are
        fractions.
        """
        if not isinstance(output, Noise) or output.rounded or output.kind not in KINKS:
            return pack(edges, "<f8")
        grain, sides, hair = fmpq(1), (fmpq(0),), proved(HAIR)
        if output.kind == "uniform":
            noise: Any = self._noise
            grain, sides = rational(noise.noise.grain), (fmpq(-1), fmpq(1))
        exact = [proved(x) / grain for x in edges.tolist()]
        for target in {v + side for v in output.places for side in sides}:
            near = [i for i, x in enumerate(exact) if abs(x - target) <= abs(target) * hair]
            if near:  # so that the edges stay in order
                exact[next((i for i in near if exact[i] >= target), near[-1])] = target
        return list(map(str, exact))
