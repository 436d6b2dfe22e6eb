"""The named problems: each a frozen statement with `solve` and `check`."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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
from cvxleak.problems.independence import (
    IndependentAdversary,
    ProductLeakage,
    product_leakage,
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

if TYPE_CHECKING:  # CVXPY comes with it, which an audit or a capacity does not need
    from cvxleak.problems.design import (
        Calibration,
        Design,
        DesignCurve,
        DesignForPrior,
        MinDistortion,
        MinLeakage,
        calibrate,
        design_curve,
        design_for_prior,
        min_distortion,
        min_leakage,
    )

__all__ = [
    "Adversary",
    "Calibration",
    "Capacity",
    "Check",
    "Classification",
    "Coalition",
    "Design",
    "DesignCurve",
    "DesignForPrior",
    "EnvelopeCurve",
    "FailureProbability",
    "IndependentAdversary",
    "LeakageCurve",
    "MinDistortion",
    "MinDistortionLocalDP",
    "MinInformation",
    "MinLeakage",
    "MinLocalDP",
    "PMLEnvelope",
    "PMLMechanism",
    "ProductLeakage",
    "RecordLeakage",
    "ReleaseJoint",
    "ReleaseProblem",
    "any_of",
    "balance",
    "balance_of",
    "calibrate",
    "capacity",
    "classify",
    "design_curve",
    "design_for_prior",
    "envelope_curve",
    "failure_probability",
    "group_leakage",
    "leakage_curve",
    "min_distortion",
    "min_distortion_local_dp",
    "min_information",
    "min_leakage",
    "min_local_dp",
    "optimal_pml_mechanism",
    "pml_envelope",
    "product_leakage",
    "record_leakage",
    "release_lagrangian",
    "release_problem",
    "release_sequence",
    "release_surface",
    "release_types",
    "repeated_releases",
]


def __getattr__(name: str) -> Any:
    if name in __all__:  # all others are here already
        return getattr(importlib.import_module("cvxleak.problems.design"), name)
    raise AttributeError(f"module 'cvxleak.problems' has no attribute {name!r}")
