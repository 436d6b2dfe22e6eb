"""Sets of channels and of priors, as lists of CVXPY constraints for your own `cp.Problem`.

`channel` makes the variable. Add the lists: with ``Q, rows = channel(2, 2)``, the rules are
``rows + local_dp(Q, 1.0) + [Q[0, 0] >= 0.5]``. Budgets are numbers or
`cp.Parameter` objects. All constraints are DPP: if you change a Parameter's value and solve again,
CVXPY does not compile the problem again. Each builder adds only its own constraint: use the rows
of `channel`, or `row_stochastic`, to require that a matrix is a channel, and `prior_polytope` to
require that a vector is a distribution.

If a budget of information or divergence is the number 0, the constraint is that the rows are equal.
If it is a Parameter of value 0, the cones have no interior, and solvers report an inaccurate
solution.
"""

from cvxleak.constraints.channels import (
    channel,
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
from cvxleak.constraints.privacy import local_dp, pufferfish, record_dp

__all__ = [
    "capacity_budget",
    "channel",
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
    "pufferfish",
    "record_dp",
    "record_mi_budget",
    "renyi_dp",
    "row_stochastic",
    "sibson_budget",
    "symmetric",
    "vulnerability_budget",
    "zcdp",
]
