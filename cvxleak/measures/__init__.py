"""Measures of a fixed channel or mechanism, in plain NumPy: the reference for everything else."""

from cvxleak.measures.chain import ChainRule, composition_chain_rule, group_chain_rule
from cvxleak.measures.channel_sets import measure_of_set
from cvxleak.measures.composition import (
    balance_value,
    composition_budget,
    composition_slack,
    group_budget,
    group_slack,
    unrestricted_budget,
)
from cvxleak.measures.distortion import (
    expected_distortion,
    mechanism_distortion,
    worst_case_distortion,
)
from cvxleak.measures.divergences import (
    f_divergence,
    renyi_divergence,
    renyi_dp_epsilon,
    row_divergence,
    zcdp_rho,
)
from cvxleak.measures.doubt import SuggestedFloor, suggested_floor
from cvxleak.measures.entropy import entropy, lumped_entropy
from cvxleak.measures.events import binary_envelope, event_envelope, event_leakage
from cvxleak.measures.gradients import (
    entropy_gradient,
    entropy_gradient_conditional,
    entropy_gradient_marginal,
    information_gradient_conditional,
    information_gradient_marginal,
    information_gradient_mechanism,
)
from cvxleak.measures.guessing import guessing_entropy, posterior_guessing_entropy
from cvxleak.measures.induced import lumped_channel, record_channel
from cvxleak.measures.information import (
    arimoto_information,
    conditional_mutual_information,
    conditional_record_information,
    group_information,
    information_density,
    lumped_information,
    mutual_information,
    record_information,
    sibson_information,
)
from cvxleak.measures.leakage import (
    conditional_maximal_leakage,
    max_information,
    maximal_leakage,
    pml,
    record_max_information,
)
from cvxleak.measures.pointwise import (
    dp_tail_bound,
    pml_failure_probability,
    pml_left_quantile,
    pml_limit,
    pml_right_quantile,
    psi_1,
    psi_2,
)
from cvxleak.measures.privacy import (
    dp_failure_probability,
    local_dp_epsilon,
    privacy_profile,
    product_max_information,
    record_dp_epsilon,
    record_dp_failure_probability,
    record_privacy_profile,
)
from cvxleak.measures.pufferfish import membership_epsilon, pufferfish_epsilon
from cvxleak.measures.trade_off import record_trade_off, trade_off
from cvxleak.measures.vulnerability import (
    additive_gain_capacity,
    bayes_vulnerability,
    gain_leakage,
    gain_vulnerability,
    min_entropy_leakage,
    multiplicative_bayes_capacity,
    posterior_bayes_vulnerability,
    posterior_gain_vulnerability,
)

__all__ = [
    "ChainRule",
    "SuggestedFloor",
    "additive_gain_capacity",
    "arimoto_information",
    "balance_value",
    "bayes_vulnerability",
    "binary_envelope",
    "composition_budget",
    "composition_chain_rule",
    "composition_slack",
    "conditional_maximal_leakage",
    "conditional_mutual_information",
    "conditional_record_information",
    "dp_failure_probability",
    "dp_tail_bound",
    "entropy",
    "entropy_gradient",
    "entropy_gradient_conditional",
    "entropy_gradient_marginal",
    "event_envelope",
    "event_leakage",
    "expected_distortion",
    "f_divergence",
    "gain_leakage",
    "gain_vulnerability",
    "group_budget",
    "group_chain_rule",
    "group_information",
    "group_slack",
    "guessing_entropy",
    "information_density",
    "information_gradient_conditional",
    "information_gradient_marginal",
    "information_gradient_mechanism",
    "local_dp_epsilon",
    "lumped_channel",
    "lumped_entropy",
    "lumped_information",
    "max_information",
    "maximal_leakage",
    "measure_of_set",
    "mechanism_distortion",
    "membership_epsilon",
    "min_entropy_leakage",
    "multiplicative_bayes_capacity",
    "mutual_information",
    "pml",
    "pml_failure_probability",
    "pml_left_quantile",
    "pml_limit",
    "pml_right_quantile",
    "posterior_bayes_vulnerability",
    "posterior_gain_vulnerability",
    "posterior_guessing_entropy",
    "privacy_profile",
    "product_max_information",
    "psi_1",
    "psi_2",
    "pufferfish_epsilon",
    "record_channel",
    "record_dp_epsilon",
    "record_dp_failure_probability",
    "record_information",
    "record_max_information",
    "record_privacy_profile",
    "record_trade_off",
    "renyi_divergence",
    "renyi_dp_epsilon",
    "row_divergence",
    "sibson_information",
    "suggested_floor",
    "trade_off",
    "unrestricted_budget",
    "worst_case_distortion",
    "zcdp_rho",
]
