"""Convex programs that bound an audit from above, with user constraints on the adversary."""

from cvxleak.relaxations.audit import (
    DatasetCapacityRelaxation,
    PosteriorCellRelaxation,
    TimeSharingRelaxation,
)
from cvxleak.relaxations.program import Relaxation

__all__ = [
    "DatasetCapacityRelaxation",
    "PosteriorCellRelaxation",
    "Relaxation",
    "TimeSharingRelaxation",
]
