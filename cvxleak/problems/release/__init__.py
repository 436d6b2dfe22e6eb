"""Sequential release to parties who may collude: what to answer, and what it is worth."""

from cvxleak.problems.release.coalitions import Coalition, any_of
from cvxleak.problems.release.joint import ReleaseJoint
from cvxleak.problems.release.sequence import release_sequence, release_surface
from cvxleak.problems.release.statement import ReleaseProblem
from cvxleak.problems.release.stating import release_lagrangian, release_problem

__all__ = [
    "Coalition",
    "ReleaseJoint",
    "ReleaseProblem",
    "any_of",
    "release_lagrangian",
    "release_problem",
    "release_sequence",
    "release_surface",
]
