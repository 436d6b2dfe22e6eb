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
    from cvxleak import expressions as expressions
    from cvxleak import iterative as iterative
    from cvxleak import measures as measures
    from cvxleak import mechanisms as mechanisms
    from cvxleak import model as model
    from cvxleak import problems as problems
    from cvxleak import queries as queries
    from cvxleak.certificates import Certificate, Verification, verify
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
        Lumped,
        Mechanism,
        Prior,
        Query,
        RecordSpace,
        TableQuery,
    )
    from cvxleak.problems import (
        Adversary,
        Capacity,
        Check,
        RecordLeakage,
        balance,
        balance_of,
        capacity,
        group_leakage,
        record_leakage,
    )
    from cvxleak.result import Bound, Status

__all__ = [
    "AdditiveQuery",
    "Adversary",
    "Bound",
    "Capacity",
    "Certificate",
    "CertificateError",
    "Channel",
    "Check",
    "CvxleakError",
    "Distortion",
    "InfeasibleError",
    "Lumped",
    "Mechanism",
    "Prior",
    "Query",
    "RecordLeakage",
    "RecordSpace",
    "SolverError",
    "Status",
    "TableQuery",
    "UnboundedError",
    "ValidationError",
    "Verification",
    "__version__",
    "balance",
    "balance_of",
    "capacity",
    "certificates",
    "constraints",
    "expressions",
    "group_leakage",
    "iterative",
    "measures",
    "mechanisms",
    "model",
    "problems",
    "queries",
    "record_leakage",
    "verify",
]

# Where the public names live, cheapest room first: `errors` and `model` need no solver.
_ROOMS = ("errors", "model", "certificates", "result", "problems")
_PACKAGES = (
    "certificates",
    "constraints",
    "expressions",
    "iterative",
    "measures",
    "mechanisms",
    "model",
    "problems",
    "queries",
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
