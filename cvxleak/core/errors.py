"""The exception tree: everything that cvxleak raises on purpose derives from `CvxleakError`."""

from __future__ import annotations

import re
from typing import Any

__all__ = [
    "CertificateError",
    "CvxleakError",
    "InfeasibleError",
    "SolveInterrupted",
    "SolverError",
    "UnboundedError",
    "ValidationError",
]


_ARGUMENT = re.compile(r"([A-Za-z_]\w*(?:\[\d+\])*(?:, [A-Za-z_]\w*)*): ")


class CvxleakError(Exception):
    """Base class of every error that cvxleak raises on purpose.

    If an argument is wrong, the message starts with its name and a colon.

    Examples
    --------
    >>> from cvxleak.core.errors import ValidationError
    >>> error = ValidationError("channel: found 2 rows; 3 are needed")
    >>> error.argument, error.detail
    ('channel', 'found 2 rows; 3 are needed')
    """

    @property
    def argument(self) -> str | None:
        """Name of the wrong argument, or None if the message names none."""
        found = _ARGUMENT.match(str(self))
        return None if found is None else found[1]

    @property
    def detail(self) -> str:
        """The message without the name of the argument."""
        return _ARGUMENT.sub("", str(self), count=1) if self.argument else str(self)


class ValidationError(CvxleakError, ValueError):
    """An argument is wrong; the message gives its name, what was found and what is allowed.

    Examples
    --------
    >>> from cvxleak import Prior
    >>> from cvxleak.core import ValidationError
    >>> try:
    ...     Prior([0.5, 0.4])
    ... except ValidationError as error:
    ...     print(error)
    probabilities: sums to 0.9; probabilities must sum to 1 within 1e-09
    """


class InfeasibleError(CvxleakError):
    """No point meets the constraints; the message gives the nearest budget that can be met.

    Examples
    --------
    >>> from cvxleak.core.errors import InfeasibleError
    >>> from cvxleak.design import design_for_prior
    >>> try:
    ...     design_for_prior([0.5, 0.5], [[0.1, 1.0], [1.0, 0.1]], 0.0)
    ... except InfeasibleError as error:
    ...     print(error)
    budget: found 0.0; the least feasible distortion is 0.1
    """


class UnboundedError(CvxleakError):
    """The problem has no finite optimum.

    Examples
    --------
    >>> from cvxleak.core.errors import CvxleakError, UnboundedError
    >>> issubclass(UnboundedError, CvxleakError)
    True
    """


class SolverError(CvxleakError):
    """A numerical solver failed and no valid bound could be recovered from it.

    Examples
    --------
    >>> from cvxleak.core.errors import CvxleakError, SolverError
    >>> issubclass(SolverError, CvxleakError)
    True
    """


class CertificateError(CvxleakError):
    """A certificate is malformed or does not prove what it claims.

    Examples
    --------
    >>> from cvxleak.proofs import Certificate
    >>> from cvxleak.core.errors import CertificateError
    >>> try:
    ...     Certificate.from_dict({})
    ... except CertificateError as error:
    ...     print(error)
    not a cvxleak certificate
    """


class SolveInterrupted(KeyboardInterrupt):
    """Ctrl-C during a solve: a `KeyboardInterrupt` that carries the result so far.

    Attributes
    ----------
    bound : Bound, LeakageCurve, DesignCurve, Calibration, TablePrivacy, TradeOffEnds, ... or None
        The result that the solve would have returned if its time limit had been reached at this
        moment; its bounds are proved as always. None if there is no result yet. For methods that
        prove nothing before they finish (capacity, designs for a known prior, local DP, PML,
        releases), the result with a time limit of 0.

    Examples
    --------
    >>> from cvxleak import Mechanism, record_leakage
    >>> from cvxleak.core.errors import SolveInterrupted
    >>> from cvxleak.queries import modular_sum
    >>> def press_ctrl_c(lower, upper, nodes):
    ...     raise KeyboardInterrupt
    >>> noise = [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    >>> try:
    ...     record_leakage(Mechanism(modular_sum(4, 3), noise), 2.3, progress=press_ctrl_c)
    ... except SolveInterrupted as interrupted:
    ...     print(interrupted.bound)
    record leakage: ... to ... nats (BRACKETED: the search was interrupted)
    """

    def __init__(self, bound: Any = None) -> None:
        super().__init__("the search was interrupted; .bound is the result so far")
        self.bound = bound
