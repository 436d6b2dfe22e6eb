"""Information leakage and privacy mechanisms on CVXPY: lower and upper bounds, both proved.

Here is what most programs need; everything else is in the package of its subject, which is an
attribute: `cvxleak.constraints.local_dp`. Names and packages load when they are first used
(PEP 562), so importing `cvxleak`, or checking a certificate, costs nothing that it does not need.
"""

from __future__ import annotations

import importlib
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cvxleak._version import __version__

if TYPE_CHECKING:  # what type checkers and editors see of what loads when it is used
    from cvxleak import audit as audit
    from cvxleak import capacities as capacities
    from cvxleak import constraints as constraints
    from cvxleak import core as core
    from cvxleak import design as design
    from cvxleak import desk as desk
    from cvxleak import differential_privacy as differential_privacy
    from cvxleak import envelope as envelope
    from cvxleak import expressions as expressions
    from cvxleak import iterative as iterative
    from cvxleak import local_dp as local_dp
    from cvxleak import measures as measures
    from cvxleak import mechanisms as mechanisms
    from cvxleak import model as model
    from cvxleak import papers as papers
    from cvxleak import plots as plots
    from cvxleak import problem as problem
    from cvxleak import proofs as proofs
    from cvxleak import queries as queries
    from cvxleak import refinement as refinement
    from cvxleak import relaxations as relaxations
    from cvxleak import release as release
    from cvxleak import report as report
    from cvxleak import samples as samples
    from cvxleak import sources as sources
    from cvxleak import sweeps as sweeps
    from cvxleak import tables as tables
    from cvxleak.audit import (
        balance,
        group_leakage,
        leakage_curve,
        product_leakage,
        record_leakage,
    )
    from cvxleak.capacities import capacity
    from cvxleak.constraints import channel
    from cvxleak.core import CvxleakError, InfeasibleError
    from cvxleak.design import (
        calibrate,
        design_curve,
        design_for_prior,
        min_distortion,
        min_leakage,
    )
    from cvxleak.desk import ReleaseDesk
    from cvxleak.differential_privacy import check_claim
    from cvxleak.envelope import (
        envelope_curve,
        failure_probability,
        optimal_pml_mechanism,
        pml_envelope,
    )
    from cvxleak.local_dp import min_distortion_local_dp, min_information, min_local_dp
    from cvxleak.model import (
        Arimoto,
        Channel,
        ChannelSet,
        Distortion,
        Gain,
        GainMatrix,
        Gini,
        Guess,
        GuessInTries,
        Mechanism,
        Prior,
        RecordSpace,
        Shannon,
    )
    from cvxleak.problem import Bound, Status, Stopped, verify_iterates
    from cvxleak.proofs import Certificate, verify
    from cvxleak.refinement import refines
    from cvxleak.release import release_problem
    from cvxleak.samples import audit_samples, sample_mechanism
    from cvxleak.sources import SourceSet
    from cvxleak.sweeps import sweep

__all__ = [
    "Arimoto",
    "Bound",
    "Certificate",
    "Channel",
    "ChannelSet",
    "CvxleakError",
    "Distortion",
    "Gain",
    "GainMatrix",
    "Gini",
    "Guess",
    "GuessInTries",
    "InfeasibleError",
    "Mechanism",
    "Prior",
    "RecordSpace",
    "ReleaseDesk",
    "Shannon",
    "SourceSet",
    "Status",
    "Stopped",
    "__version__",
    "audit_samples",
    "balance",
    "calibrate",
    "capacity",
    "channel",
    "check_claim",
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
    "refines",
    "release_problem",
    "sample_mechanism",
    "sweep",
    "verify",
    "verify_iterates",
]

# The packages of the documentation's reference, each an attribute that loads when it is used.
_ROOMS = (
    "audit",
    "capacities",
    "constraints",
    "core",
    "design",
    "desk",
    "differential_privacy",
    "envelope",
    "expressions",
    "iterative",
    "local_dp",
    "measures",
    "mechanisms",
    "model",
    "papers",
    "plots",
    "problem",
    "proofs",
    "queries",
    "refinement",
    "relaxations",
    "release",
    "report",
    "samples",
    "sources",
    "sweeps",
    "tables",
)

# Where the names live, cheapest package first: `core` and `model` need no solver.
_PACKAGES = (
    "core",
    "model",
    "sources",
    "proofs",
    "problem",
    "capacities",
    "audit",
    "differential_privacy",
    "constraints",
    "local_dp",
    "envelope",
    "release",
    "refinement",
    "design",
    "samples",
    "desk",
    "sweeps",
)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"cvxleak.{name}")
    if name in __all__:
        for package in _PACKAGES:
            module = importlib.import_module(f"cvxleak.{package}")
            if name in module.__all__:
                globals()[name] = getattr(module, name)
                return globals()[name]
    raise AttributeError(f"module 'cvxleak' has no attribute {name!r}{_elsewhere(name)}")


def _elsewhere(name: str) -> str:
    """Return where a name is that people look for here."""
    found = []
    for room in () if name.startswith("_") else _ROOMS:
        with suppress(ImportError):  # where CVXPY is not installed
            if name in getattr(importlib.import_module(f"cvxleak.{room}"), "__all__", ()):
                found.append(f"cvxleak.{room}.{name}")
    return f"; there is {' and '.join(found)}" if found else ""


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS])
