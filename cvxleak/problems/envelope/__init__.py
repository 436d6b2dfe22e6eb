"""The PML envelope: leakage that holds up under any post-processing (ENVELOPE)."""

from cvxleak.problems.envelope.curve import EnvelopeCurve, envelope_curve
from cvxleak.problems.envelope.envelope import PMLEnvelope, pml_envelope
from cvxleak.problems.envelope.failure import FailureProbability, failure_probability
from cvxleak.problems.envelope.optimal import PMLMechanism, optimal_pml_mechanism
from cvxleak.problems.envelope.releases import release_types, repeated_releases

__all__ = [
    "EnvelopeCurve",
    "FailureProbability",
    "PMLEnvelope",
    "PMLMechanism",
    "envelope_curve",
    "failure_probability",
    "optimal_pml_mechanism",
    "pml_envelope",
    "release_types",
    "repeated_releases",
]
