"""Errors, checks of arguments, frozen values, numbers, files and the clock, for all subpackages."""

from cvxleak.core.errors import (
    CertificateError,
    CvxleakError,
    InfeasibleError,
    SolveInterrupted,
    SolverError,
    UnboundedError,
    ValidationError,
)

__all__ = [
    "CertificateError",
    "CvxleakError",
    "InfeasibleError",
    "SolveInterrupted",
    "SolverError",
    "UnboundedError",
    "ValidationError",
]
