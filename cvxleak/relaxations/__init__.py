"""Convex programs above an audit, for constraints of your own on the adversary."""

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
