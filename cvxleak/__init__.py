"""Information leakage and privacy mechanisms on CVXPY, with a proof for every number.

Public names load when they are first used (PEP 562), so importing `cvxleak`, or checking a
certificate, costs nothing that it does not need.
"""

from __future__ import annotations

import importlib
from typing import Any

from cvxleak._version import __version__

_ROOMS = {
    "certificates": ("Certificate", "Verification", "verify"),
    "errors": (
        "CertificateError",
        "CvxleakError",
        "InfeasibleError",
        "SolverError",
        "UnboundedError",
        "ValidationError",
    ),
    "model": (
        "AdditiveQuery",
        "Channel",
        "Distortion",
        "Lumped",
        "Mechanism",
        "Prior",
        "Query",
        "RecordSpace",
        "TableQuery",
    ),
    "problems": (
        "Adversary",
        "Capacity",
        "Check",
        "RecordLeakage",
        "balance",
        "capacity",
        "group_leakage",
        "record_leakage",
    ),
    "result": ("Bound", "Status"),
}
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
_HOME = {name: f"cvxleak.{room}" for room, names in _ROOMS.items() for name in names}

__all__ = ["__version__", *sorted(_HOME), *_PACKAGES]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(_HOME[name]), name)
    elif name in _PACKAGES:
        value = importlib.import_module(f"cvxleak.{name}")
    else:
        raise AttributeError(f"module 'cvxleak' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
