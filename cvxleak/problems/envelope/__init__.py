"""The PML envelope: leakage that holds up under any post-processing (ENVELOPE)."""

from cvxleak.problems.envelope.envelope import PMLEnvelope, pml_envelope
from cvxleak.problems.envelope.failure import FailureProbability, failure_probability

__all__ = ["FailureProbability", "PMLEnvelope", "failure_probability", "pml_envelope"]
