"""Information leakage and privacy mechanisms on CVXPY; what is searched for comes with a proof.

Public names load when they are first used (PEP 562), so importing `cvxleak`, or checking a
certificate, costs nothing that it does not need.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from cvxleak._version import __version__

if TYPE_CHECKING:  # what type checkers and editors see of the names that load when used
    from cvxleak import audit as audit
    from cvxleak import capacities as capacities
    from cvxleak import constraints as constraints
    from cvxleak import design as design
    from cvxleak import desk as desk
    from cvxleak import envelope as envelope
    from cvxleak import expressions as expressions
    from cvxleak import iterative as iterative
    from cvxleak import local_dp as local_dp
    from cvxleak import measures as measures
    from cvxleak import mechanisms as mechanisms
    from cvxleak import model as model
    from cvxleak import plots as plots
    from cvxleak import problem as problem
    from cvxleak import proofs as proofs
    from cvxleak import queries as queries
    from cvxleak import relaxations as relaxations
    from cvxleak import release as release
    from cvxleak import sweeps as sweeps
    from cvxleak.audit import (
        Adversary,
        IndependentAdversary,
        LeakageCurve,
        ProductLeakage,
        RecordLeakage,
        balance,
        balance_of,
        group_leakage,
        leakage_curve,
        product_leakage,
        record_leakage,
    )
    from cvxleak.capacities import Capacity, capacity
    from cvxleak.core import (
        CertificateError,
        CvxleakError,
        InfeasibleError,
        SolverError,
        UnboundedError,
        ValidationError,
    )
    from cvxleak.design import (
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
    from cvxleak.desk import ReleaseDesk
    from cvxleak.envelope import (
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
    from cvxleak.local_dp import (
        Classification,
        MinDistortionLocalDP,
        MinInformation,
        MinLocalDP,
        classify,
        min_distortion_local_dp,
        min_information,
        min_local_dp,
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
    from cvxleak.problem import Bound, Check, Status, Stopped
    from cvxleak.proofs import Certificate, Verification, verify
    from cvxleak.release import (
        Coalition,
        ReleaseJoint,
        ReleaseProblem,
        any_of,
        release_lagrangian,
        release_problem,
        release_sequence,
        release_surface,
    )
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
    "audit",
    "balance",
    "balance_of",
    "calibrate",
    "capacities",
    "capacity",
    "classify",
    "constraints",
    "design",
    "design_curve",
    "design_for_prior",
    "desk",
    "envelope",
    "envelope_curve",
    "expressions",
    "failure_probability",
    "group_leakage",
    "iterative",
    "leakage_curve",
    "local_dp",
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
    "problem",
    "product_leakage",
    "proofs",
    "queries",
    "record_leakage",
    "relaxations",
    "release",
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

# Where the public names live, cheapest room first: `core` and `model` need no solver.
_ROOMS = (
    "core",
    "model",
    "proofs",
    "problem",
    "capacities",
    "audit",
    "local_dp",
    "envelope",
    "release",
    "design",
    "desk",
    "sweeps",
)
_PACKAGES = (
    "audit",
    "capacities",
    "constraints",
    "design",
    "desk",
    "envelope",
    "expressions",
    "iterative",
    "local_dp",
    "measures",
    "mechanisms",
    "model",
    "plots",
    "problem",
    "proofs",
    "queries",
    "relaxations",
    "release",
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
