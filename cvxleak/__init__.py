"""Information leakage and privacy mechanisms on CVXPY; what is searched for comes with a proof.

Public names load when they are first used (PEP 562), so importing `cvxleak`, or checking a
certificate, costs nothing that it does not need.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cvxleak._version import __version__

if TYPE_CHECKING:  # what type checkers and editors see of the names that load when used
    from cvxleak import certificates as certificates
    from cvxleak import constraints as constraints
    from cvxleak import desk as desk
    from cvxleak import expressions as expressions
    from cvxleak import iterative as iterative
    from cvxleak import measures as measures
    from cvxleak import mechanisms as mechanisms
    from cvxleak import model as model
    from cvxleak import plots as plots
    from cvxleak import problems as problems
    from cvxleak import queries as queries
    from cvxleak import sweeps as sweeps
    from cvxleak.certificates import Certificate, Verification, verify
    from cvxleak.desk import ReleaseDesk
    from cvxleak.errors import (
        CertificateError,
        CvxleakError,
        InfeasibleError,
        SolverError,
        UnboundedError,
        ValidationError,
    )
    from cvxleak.model import (
        AdditiveQuery,
        Channel,
        Distortion,
        Expectation,
        KnownMarginals,
        Lumped,
        Mechanism,
        Prior,
        Query,
        RecordSpace,
        RelativeEntropyBall,
        SourceSet,
        TableQuery,
    )
    from cvxleak.problems import (
        Adversary,
        Calibration,
        Capacity,
        Check,
        Classification,
        Coalition,
        Design,
        DesignCurve,
        DesignForPrior,
        EnvelopeCurve,
        FailureProbability,
        IndependentAdversary,
        LeakageCurve,
        MinDistortion,
        MinDistortionLocalDP,
        MinInformation,
        MinLeakage,
        MinLocalDP,
        PMLEnvelope,
        PMLMechanism,
        ProductLeakage,
        RecordLeakage,
        ReleaseJoint,
        ReleaseProblem,
        any_of,
        balance,
        balance_of,
        calibrate,
        capacity,
        classify,
        design_curve,
        design_for_prior,
        envelope_curve,
        failure_probability,
        group_leakage,
        leakage_curve,
        min_distortion,
        min_distortion_local_dp,
        min_information,
        min_leakage,
        min_local_dp,
        optimal_pml_mechanism,
        pml_envelope,
        product_leakage,
        record_leakage,
        release_lagrangian,
        release_problem,
        release_sequence,
        release_surface,
        release_types,
        repeated_releases,
    )
    from cvxleak.result import Bound, Status, Stopped
    from cvxleak.sweeps import Sweep, sweep

__all__ = [
    "AdditiveQuery",
    "Adversary",
    "Bound",
    "Calibration",
    "Capacity",
    "Certificate",
    "CertificateError",
    "Channel",
    "Check",
    "Classification",
    "Coalition",
    "CvxleakError",
    "Design",
    "DesignCurve",
    "DesignForPrior",
    "Distortion",
    "EnvelopeCurve",
    "Expectation",
    "FailureProbability",
    "IndependentAdversary",
    "InfeasibleError",
    "KnownMarginals",
    "LeakageCurve",
    "Lumped",
    "Mechanism",
    "MinDistortion",
    "MinDistortionLocalDP",
    "MinInformation",
    "MinLeakage",
    "MinLocalDP",
    "PMLEnvelope",
    "PMLMechanism",
    "Prior",
    "ProductLeakage",
    "Query",
    "RecordLeakage",
    "RecordSpace",
    "RelativeEntropyBall",
    "ReleaseDesk",
    "ReleaseJoint",
    "ReleaseProblem",
    "SolverError",
    "SourceSet",
    "Status",
    "Stopped",
    "Sweep",
    "TableQuery",
    "UnboundedError",
    "ValidationError",
    "Verification",
    "__version__",
    "any_of",
    "balance",
    "balance_of",
    "calibrate",
    "capacity",
    "certificates",
    "classify",
    "constraints",
    "design_curve",
    "design_for_prior",
    "desk",
    "envelope_curve",
    "expressions",
    "failure_probability",
    "group_leakage",
    "iterative",
    "leakage_curve",
    "measures",
    "mechanisms",
    "min_distortion",
    "min_distortion_local_dp",
    "min_information",
    "min_leakage",
    "min_local_dp",
    "model",
    "optimal_pml_mechanism",
    "plots",
    "pml_envelope",
    "problems",
    "product_leakage",
    "queries",
    "record_leakage",
    "release_lagrangian",
    "release_problem",
    "release_sequence",
    "release_surface",
    "release_types",
    "repeated_releases",
    "sweep",
    "sweeps",
    "verify",
]

# Where the public names live, cheapest room first: `errors` and `model` need no solver.
_ROOMS = ("errors", "model", "certificates", "result", "problems", "desk", "sweeps")
_PACKAGES = (
    "certificates",
    "constraints",
    "desk",
    "expressions",
    "iterative",
    "measures",
    "mechanisms",
    "model",
    "plots",
    "problems",
    "queries",
    "sweeps",
)


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return importlib.import_module(f"cvxleak.{name}")
    if name in __all__:
        for room in _ROOMS:
            module = importlib.import_module(f"cvxleak.{room}")
            if name in module.__all__:
                globals()[name] = getattr(module, name)
                return globals()[name]
    raise AttributeError(f"module 'cvxleak' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
