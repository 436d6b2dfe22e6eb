"""The PML envelope: a bound on pointwise leakage after any post-processing (ENVELOPE)."""

from cvxleak.envelope.attacks import (
    ResponseAttack,
    deterministic_form,
    quantile_attack,
    response_attack,
)
from cvxleak.envelope.bounds import (
    adaptive_composition,
    adaptive_composition_bound,
    composition_bound,
    envelope_lower_bound,
    envelope_upper_bound,
    output_count_bound,
    tail_average_bound,
)
from cvxleak.envelope.curve import EnvelopeCurve, envelope_curve
from cvxleak.envelope.envelope import PMLEnvelope, pml_envelope
from cvxleak.envelope.failure import FailureProbability, failure_probability
from cvxleak.envelope.optimal import PMLMechanism, optimal_pml_mechanism
from cvxleak.envelope.releases import release_types, repeated_releases
from cvxleak.envelope.response import (
    EnvelopePiece,
    four_level_prior,
    response_condition,
    response_dp_epsilon,
    response_envelope,
    response_envelope_pieces,
    response_event_envelope,
    response_lower_bound,
    response_upper_bound,
)

__all__ = [
    "EnvelopeCurve",
    "EnvelopePiece",
    "FailureProbability",
    "PMLEnvelope",
    "PMLMechanism",
    "ResponseAttack",
    "adaptive_composition",
    "adaptive_composition_bound",
    "composition_bound",
    "deterministic_form",
    "envelope_curve",
    "envelope_lower_bound",
    "envelope_upper_bound",
    "failure_probability",
    "four_level_prior",
    "optimal_pml_mechanism",
    "output_count_bound",
    "pml_envelope",
    "quantile_attack",
    "release_types",
    "repeated_releases",
    "response_attack",
    "response_condition",
    "response_dp_epsilon",
    "response_envelope",
    "response_envelope_pieces",
    "response_event_envelope",
    "response_lower_bound",
    "response_upper_bound",
    "tail_average_bound",
]
