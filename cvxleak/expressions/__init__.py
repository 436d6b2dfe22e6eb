"""Measures once more, as CVXPY expressions for a channel, joint law or prior that may vary.

Most take the arguments of the function of the same name in `cvxleak.measures`. Where the measure
takes a mechanism (`record_information`, `mechanism_distortion` and others), a query and a channel
stand in its place, because the channel may vary. Three kinds differ:

- those whose name begins with `exp_` are exponentials of a measure that is quasiconvex only;
- `conditional_entropy` is an entropy minus an information;
- `joint_information` is `mutual_information` for a variable that is the joint law.

The prior and the channel may each be data, a `cp.Parameter`, a `cp.Variable` or an affine
expression, as far as each function says. The result is a plain `cp.Expression` of CVXPY's own
atoms, for any objective or constraint.

A solver's point misses the simplex by 1e-8 or so, and just below zero an entropy is minus infinity.
So take the numbers that you report from `cvxleak.measures`, at a channel that is repaired
(`cvxleak.model.Channel.from_solver`), not from the expression's own value. Clipping at zero and
dividing by row sums is not enough: in a column that the channel does not use, a solver leaves 1e-9
or so, whose ratios mean nothing (local differential privacy, pointwise maximal leakage, Rényi's
divergences). Give linear sets to HiGHS, which has exact zeros.
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
from cvxleak.expressions.privacy import privacy_profile, record_privacy_profile
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
