"""Measures as CVXPY expressions of a variable channel, joint distribution or prior.

Most take the arguments of the function of the same name in `cvxleak.measures`. Where the measure
takes a mechanism (`record_information`, `mechanism_distortion` and others), the expression takes a
query and a channel, because the channel may be a variable. Three kinds differ:

- those whose name begins with `exp_` are exponentials of a measure that is only quasiconvex (and
  `exp_local_dp_epsilon` is quasiconvex itself, for ``solve(qcp=True)``);
- `conditional_entropy` is an entropy minus an information;
- `joint_information` is `mutual_information` with the joint distribution as the variable.

The prior and the channel may each be data, a `cp.Parameter`, a `cp.Variable` or an affine
expression; each function states which combinations it allows. The result is a plain `cp.Expression`
of CVXPY's own atoms, for any objective or constraint.

Convex expressions of what is never negative have a sign that CVXPY knows, so that their squares and
other increasing functions are convex. Of the concave ones sums of powers have one, and entropies
none: CVXPY's `entr` has no sign. The sign of an affine one (a distortion) follows from those of the
channel, the prior and the distances.

A solver's point violates the constraints of the simplex by about 1e-8, and the entropy of a vector
with a negative entry is minus infinity. So report values of `cvxleak.measures` at a repaired
channel (`cvxleak.model.Channel.from_solver`), not the value of the expression. Clipping at zero and
dividing by row sums is not enough. In an unused column a solver leaves entries of about 1e-9, and
their ratios are meaningless; they affect local differential privacy, pointwise maximal leakage and
Rényi divergences. Solve linear programs with HiGHS, which returns exact zeros.
"""

from cvxleak.expressions.distortion import (
    expected_distortion,
    mechanism_distortion,
    worst_case_distortion,
)
from cvxleak.expressions.divergences import exp_renyi_divergence, f_divergence
from cvxleak.expressions.information import (
    conditional_entropy,
    conditional_record_information,
    entropy,
    exp_arimoto_information,
    exp_sibson_information,
    group_information,
    joint_information,
    lumped_entropy,
    mutual_information,
    record_information,
)
from cvxleak.expressions.leakage import exp_conditional_maximal_leakage, exp_maximal_leakage
from cvxleak.expressions.privacy import (
    exp_local_dp_epsilon,
    privacy_profile,
    record_privacy_profile,
)
from cvxleak.expressions.vulnerability import (
    bayes_vulnerability,
    gain_leakage,
    gain_vulnerability,
    guessing_entropy,
    multiplicative_bayes_capacity,
    posterior_bayes_vulnerability,
    posterior_gain_vulnerability,
    posterior_guessing_entropy,
)

__all__ = [
    "bayes_vulnerability",
    "conditional_entropy",
    "conditional_record_information",
    "entropy",
    "exp_arimoto_information",
    "exp_conditional_maximal_leakage",
    "exp_local_dp_epsilon",
    "exp_maximal_leakage",
    "exp_renyi_divergence",
    "exp_sibson_information",
    "expected_distortion",
    "f_divergence",
    "gain_leakage",
    "gain_vulnerability",
    "group_information",
    "guessing_entropy",
    "joint_information",
    "lumped_entropy",
    "mechanism_distortion",
    "multiplicative_bayes_capacity",
    "mutual_information",
    "posterior_bayes_vulnerability",
    "posterior_gain_vulnerability",
    "posterior_guessing_entropy",
    "privacy_profile",
    "record_information",
    "record_privacy_profile",
    "worst_case_distortion",
]
