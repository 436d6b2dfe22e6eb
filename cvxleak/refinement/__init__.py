"""Which of two channels tells more, whatever the secret's law and whatever is at stake.

`refines` finds whether one channel is the other with its outputs processed, with the processing or
with a prior and a gain that tell them apart; `deficiency` and `le_cam_distance` say by how much,
and `refinement_gap` says it under one prior. Linear programs are solved in rational numbers.
"""

from cvxleak.refinement.comparison import Refinement, deficiency, le_cam_distance, refines
from cvxleak.refinement.gap import RefinementGap, refinement_gap

__all__ = [
    "Refinement",
    "RefinementGap",
    "deficiency",
    "le_cam_distance",
    "refinement_gap",
    "refines",
]
