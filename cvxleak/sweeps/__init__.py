"""Sweeps: one problem at many points, on one processor, on several, or on a cluster.

Each result is written to a file as soon as it is computed, as a line of JSON. After an
interruption, the same call continues where it stopped.
"""

from cvxleak.sweeps.rows import Sweep, SweepRow
from cvxleak.sweeps.running import sweep

__all__ = ["Sweep", "SweepRow", "sweep"]
