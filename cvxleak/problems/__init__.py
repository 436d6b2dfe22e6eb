"""The named problems: each a frozen statement with `solve` and `check`."""

from cvxleak.problems.adversary import Adversary
from cvxleak.problems.channel_capacity import Capacity, capacity
from cvxleak.problems.check import Check
from cvxleak.problems.curve import LeakageCurve, leakage_curve
from cvxleak.problems.envelope import (
    EnvelopeCurve,
    FailureProbability,
    PMLEnvelope,
    PMLMechanism,
    envelope_curve,
    failure_probability,
    optimal_pml_mechanism,
    pml_envelope,
    release_types,
    repeated_releases,
)
from cvxleak.problems.leakage import (
    RecordLeakage,
    balance,
    balance_of,
    group_leakage,
    record_leakage,
)
from cvxleak.problems.local_dp import (
    Classification,
    MinDistortionLocalDP,
    MinInformation,
    MinLocalDP,
    classify,
    min_distortion_local_dp,
    min_information,
    min_local_dp,
)
from cvxleak.problems.release import (
    Coalition,
    ReleaseJoint,
    ReleaseProblem,
    any_of,
    release_lagrangian,
    release_problem,
    release_sequence,
    release_surface,
)

__all__ = [
    "Adversary",
    "Capacity",
    "Check",
    "Classification",
    "Coalition",
    "EnvelopeCurve",
    "FailureProbability",
    "LeakageCurve",
    "MinDistortionLocalDP",
    "MinInformation",
    "MinLocalDP",
    "PMLEnvelope",
    "PMLMechanism",
    "RecordLeakage",
    "ReleaseJoint",
    "ReleaseProblem",
    "any_of",
    "balance",
    "balance_of",
    "capacity",
    "classify",
    "envelope_curve",
    "failure_probability",
    "group_leakage",
    "leakage_curve",
    "min_distortion_local_dp",
    "min_information",
    "min_local_dp",
    "optimal_pml_mechanism",
    "pml_envelope",
    "record_leakage",
    "release_lagrangian",
    "release_problem",
    "release_sequence",
    "release_surface",
    "release_types",
    "repeated_releases",
]
