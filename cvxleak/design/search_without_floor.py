"""Channels for adversaries without a floor, who are worse than any: their audit hides nothing.

Let L_0(q) be what a channel leaks to adversaries who need no doubt at all. It is never less than
L(q), and it is a maximum over few choices (`cvxleak.design.choices`), so that it is known
exactly where a tree for L(q) would need to split for days: a design makes all its worst adversaries
equally bad, and there are hundreds of them. As long as the floor is on the plateau of the best
channel (THEORY, section 1), or only what happens to unlikely datasets depends on it, the channel
that is best against L_0 is as good as the best against L.

So the same search is run for L_0, with exact adversaries and without an audit. It starts with the
cuts of the search that has asked for it, all of which are adversaries for L_0 too, and ends when it
is sharp enough, or when its lower end shows that its channels would be of no use.
"""

from __future__ import annotations

import math
from dataclasses import replace

from cvxleak.core.clock import Clock
from cvxleak.design.conic import Conic
from cvxleak.design.fallback_channels import FallbackChannels
from cvxleak.design.learned import Learned
from cvxleak.design.run import Options, Run
from cvxleak.problem import Gap, Stopped

__all__ = ["WithoutFloor"]

SHARE = 0.5
"""Part of the tolerance to which the gap is closed."""

PART = 0.1
"""Part of what the floor is worth at least, to which it is closed in any case."""


class WithoutFloor(Run):
    """The search for the best channel against L_0.

    Parameters
    ----------
    learned : Learned
        Its adversaries need no doubt.
    fallbacks, conic, options, gap, clock
        As for `Run`.
    """

    idle = 2
    audited = False

    def __init__(
        self,
        learned: Learned,
        fallbacks: FallbackChannels,
        conic: Conic,
        options: Options,
        gap: Gap,
        clock: Clock,
    ) -> None:
        super().__init__(learned, fallbacks, conic, replace(options, verbose=False), gap, clock)
        self._least, self._most = 0.0, math.inf

    @property
    def ends(self) -> tuple[float, float]:
        """The bracket: local searches miss nothing."""
        return self.lower.value, self.promise

    def find(self, ends: tuple[float, float], work: float) -> bool:
        """Look until `candidate` is good enough, or is not going to be; false if not yet so far.

        `ends` is the bracket of the design for the floor that was asked for, `work` what the search
        may take.
        """
        self._least, self._most = ends
        self.enough = self.learned.work.done + work
        if self.fallbacks.fallback_audit is not None:
            return True
        return self._rounds() not in (Stopped.WORK_LIMIT, Stopped.TIME_LIMIT)

    def _done(self) -> bool:
        lower, upper = self.ends
        enough = max(SHARE * self.target, PART * (lower - self._least))
        return lower > self._most or (math.isfinite(upper) and upper - lower <= enough)
