"""Sequential release to parties who may collude: optimal answers within leakage budgets."""

from cvxleak.release.coalitions import Coalition, any_of
from cvxleak.release.constructors import release_lagrangian, release_problem
from cvxleak.release.distortion import ReleaseDistortion
from cvxleak.release.information import ReleaseInformation
from cvxleak.release.joint import ReleaseJoint
from cvxleak.release.sequence import release_sequence, release_strategy, release_surface
from cvxleak.release.statement import ReleaseProblem

__all__ = [
    "Coalition",
    "ReleaseDistortion",
    "ReleaseInformation",
    "ReleaseJoint",
    "ReleaseProblem",
    "any_of",
    "release_lagrangian",
    "release_problem",
    "release_sequence",
    "release_strategy",
    "release_surface",
]
