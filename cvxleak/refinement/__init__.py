"""Refinement: whether one channel never leaks more than another, for all priors and gains.

`refines` decides whether one channel is a post-processing of another. It returns the
post-processing, or a prior and a gain for which the first channel leaks more. `deficiency` and
`le_cam_distance` measure by how much this fails, and `refinement_gap` does so under one prior.
Linear programs are solved in rational numbers.
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
