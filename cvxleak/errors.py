"""The exception tree: everything that cvxleak raises on purpose derives from `CvxleakError`."""

from __future__ import annotations

__all__ = [
    "CertificateError",
    "CvxleakError",
    "InfeasibleError",
    "SolverError",
    "UnboundedError",
    "ValidationError",
]


class CvxleakError(Exception):
    """Base class of every error that cvxleak raises on purpose."""


class ValidationError(CvxleakError, ValueError):
    """An argument is wrong; the message names it, what was found and what is allowed."""


class InfeasibleError(CvxleakError):
    """No point meets the constraints; the message gives the nearest budget that can be met."""


class UnboundedError(CvxleakError):
    """The problem has no finite optimum."""


class SolverError(CvxleakError):
    """A numerical solver failed and no valid bound could be recovered from it."""


class CertificateError(CvxleakError):
    """A certificate is malformed or does not prove what it claims."""
