"""Samples: audits, with a stated confidence, of mechanisms that can only be sampled."""

from cvxleak.samples.audit import SampleAudit, audit_samples
from cvxleak.samples.counts import channels_from_counts
from cvxleak.samples.reading import Samples, read_samples
from cvxleak.samples.sampling import sample_mechanism
from cvxleak.samples.violation import DPViolation, dp_violation

__all__ = [
    "DPViolation",
    "SampleAudit",
    "Samples",
    "audit_samples",
    "channels_from_counts",
    "dp_violation",
    "read_samples",
    "sample_mechanism",
]
