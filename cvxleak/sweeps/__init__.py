"""Sweeps: one problem at many points, on one processor, on several, or on a cluster.

Each result is written as it comes, a line of JSON, so that what was computed survives whatever
happens, and the same call goes on where it stopped.
"""

from cvxleak.sweeps.rows import Sweep, SweepRow
from cvxleak.sweeps.running import sweep

__all__ = ["Sweep", "SweepRow", "sweep"]
