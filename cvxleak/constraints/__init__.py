"""Sets of channels and of priors, as plain lists of CVXPY constraints for anybody's `cp.Problem`.

Lists add up: ``row_stochastic(Q) + local_dp(Q, 1.0) + [Q[0, 0] >= 0.5]``. Budgets are numbers or
`cp.Parameter` objects; change a Parameter's value and solve again, and CVXPY compiles only once
(every builder here is DPP). A builder states one thing: that a matrix is a channel at all is
`row_stochastic`, that a vector is a law is `prior_polytope`.

A budget of information or divergence that is the number 0 is stated as equal rows. A Parameter that
becomes 0 leaves cones without an interior, and solvers call what they find inaccurate.
"""

from cvxleak.constraints.channels import (
    in_channel_set,
    joint_law,
    monotone_noise,
    output_support,
    post_processed,
    row_stochastic,
    symmetric,
)
from cvxleak.constraints.distortion import distortion_budget
from cvxleak.constraints.divergences import divergence_budget, renyi_dp, zcdp
from cvxleak.constraints.leakage import (
    capacity_budget,
    conditional_maximal_leakage,
    conditional_record_mi_budget,
    maximal_leakage,
    mi_budget,
    pml,
    record_mi_budget,
    sibson_budget,
    vulnerability_budget,
)
from cvxleak.constraints.priors import entropy_floor, ordered_prior, prior_polytope
from cvxleak.constraints.privacy import local_dp, record_dp

__all__ = [
    "capacity_budget",
    "conditional_maximal_leakage",
    "conditional_record_mi_budget",
    "distortion_budget",
    "divergence_budget",
    "entropy_floor",
    "in_channel_set",
    "joint_law",
    "local_dp",
    "maximal_leakage",
    "mi_budget",
    "monotone_noise",
    "ordered_prior",
    "output_support",
    "pml",
    "post_processed",
    "prior_polytope",
    "record_dp",
    "record_mi_budget",
    "renyi_dp",
    "row_stochastic",
    "sibson_budget",
    "symmetric",
    "vulnerability_budget",
    "zcdp",
]
