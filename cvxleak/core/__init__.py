"""What every room needs: errors, checks of arguments, frozen values, numbers, files, the clock."""

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
