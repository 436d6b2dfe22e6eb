"""Constraints on an adversary's prior, in addition to an entropy floor.

Each of these is a convex set of priors. Together with an entropy floor, several of them are
intersected: the adversary class of DALENIUS Definition 5.
"""

from cvxleak.model.knowledge.base import Knowledge
from cvxleak.model.knowledge.expectation import Expectation
from cvxleak.model.knowledge.marginals import KnownMarginals
from cvxleak.model.knowledge.relative_entropy import RelativeEntropyBall

__all__ = [
    "Expectation",
    "Knowledge",
    "KnownMarginals",
    "RelativeEntropyBall",
]
