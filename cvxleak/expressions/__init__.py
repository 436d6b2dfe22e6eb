"""Measures once more, as CVXPY expressions for a channel, joint law or prior that may vary.

`entropy`, `lumped_entropy`, `mutual_information`, `expected_distortion` and `worst_case_distortion`
take the arguments of the functions of the same name in `cvxleak.measures`. So do
`record_information` and `mechanism_distortion`, except that a query and a channel stand in place of
the mechanism, because the channel may vary. `exp_maximal_leakage` is e to the power of
`cvxleak.measures.maximal_leakage`. `conditional_entropy` and `joint_information` have no
counterpart: the first is an entropy minus an information, the second takes the joint law.

The prior and the channel may each be data, a `cp.Parameter`, a `cp.Variable` or an affine
expression, as far as each function says. The result is a plain `cp.Expression` of CVXPY's own
atoms, for any objective or constraint.

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
