"""The measures once more, as CVXPY expressions for a channel, joint law or prior that may vary.

Every function takes the arguments of its twin in `cvxleak.measures`, the prior first, then the
channel; each may be data, a `cp.Parameter`, a `cp.Variable` or an affine expression. The result is
a plain `cp.Expression` of CVXPY's own atoms, for any objective or constraint.

A solver's point misses the simplex by 1e-8 or so, and just below zero an entropy is minus infinity.
So take the numbers that you report from `cvxleak.measures`, at a channel that you have repaired
(clipped at zero and divided by its row sums), not from the expression's own value.
"""

from cvxleak.expressions.distortion import (
    expected_distortion,
    mechanism_distortion,
    worst_case_distortion,
)
from cvxleak.expressions.information import (
    conditional_entropy,
    entropy,
    joint_information,
    lumped_entropy,
    mutual_information,
    record_information,
)
from cvxleak.expressions.leakage import exp_maximal_leakage

__all__ = [
    "conditional_entropy",
    "entropy",
    "exp_maximal_leakage",
    "expected_distortion",
    "joint_information",
    "lumped_entropy",
    "mechanism_distortion",
    "mutual_information",
    "record_information",
    "worst_case_distortion",
]
