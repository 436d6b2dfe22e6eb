"""`Calibration`: the least noise of a parametric family that is proved to meet a target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from cvxleak.core.clock import Clock, check_progress
from cvxleak.core.errors import CvxleakError, InfeasibleError, SolveInterrupted, ValidationError
from cvxleak.core.validation import instance, real_number
from cvxleak.problem.bound import Bound

__all__ = ["Calibration", "least_noise"]

STEPS = 200

Made = TypeVar("Made")


@dataclass(frozen=True)
class Calibration:
    """A parameter whose mechanism provably meets a target, and the nearest one that was rejected.

    Attributes
    ----------
    parameter : float or int
    mechanism : Mechanism or TableRelease
        ``family(parameter)``.
    bound : Bound
        Its audit: ``bound.upper`` is at most the target.
    rejected : float or int or None
        The nearest parameter with less noise that was tried and rejected; None if the least noise
        of the range meets the target.
    rejected_bound : Bound or None
        Its audit. If ``rejected_bound.lower`` is above the target, it provably leaks more.

    Examples
    --------
    >>> from cvxleak import Mechanism, calibrate
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.queries import parity
    >>> def flipped(flip):
    ...     return Mechanism(parity(2), binary_symmetric(flip))
    >>> found = calibrate(flipped, (0.1, 0.5), leakage=0.2, entropy_floor=0.5, resolution=0.01)
    >>> found.bound.upper <= 0.2, found.gap <= 0.01
    (True, True)
    """

    parameter: float
    mechanism: Any
    bound: Bound
    rejected: float | None
    rejected_bound: Bound | None

    @property
    def gap(self) -> float:
        """Distance between the two parameters; 0 if there is only one."""
        return 0.0 if self.rejected is None else abs(self.parameter - self.rejected)


def least_noise(
    family: Callable[[Any], Made],
    kind: type[Made],
    audited: Callable[[Made], Bound],
    between: tuple[float, float],
    target: float,
    resolution: float | None,
    clock: Clock,
    what: str,
    progress: Callable[[float, float, int], None] | None = None,
) -> Calibration:
    """Find, by bisection, the least noise for which an audit proves that a target is met.

    Parameters
    ----------
    family : callable
        Takes the parameter and returns what is audited.
    kind : type
        What that is.
    audited : callable
        Bounds it: `upper` is compared with the target.
    between : (quiet, noisy)
        The parameters of least and of most noise. If both are integers, only integers are tried.
    target : float
    resolution : float or None
        Largest distance between the two returned parameters. If None, 1e-4 of the range, or 1 for
        integers.
    clock : Clock
        When its time is up, the parameters reached are returned.
    what : str
        The name of the target, for messages.
    progress : callable, optional
        Called as progress(quiet, noisy, parameters tried) before each parameter of the bisection:
        the largest one that was rejected and the least one that meets the target.

    Raises
    ------
    ValidationError
        Arguments of the wrong kind; a range whose first end meets the target and whose second one
        does not.
    SolveInterrupted
        Ctrl-C; its ``bound`` is the Calibration reached, or None before both bounds were audited.
    InfeasibleError
        Even the most noise is not proved to meet the target.
    """
    if not callable(family):
        raise ValidationError(f"family: expected a function of the parameter, found {family!r:.40}")
    check_progress(progress)
    quiet, noisy, whole = _range(between)
    fine = 1.0 if whole else abs(noisy - quiet) * 1e-4
    if resolution is not None:
        fine = max(real_number(resolution, "resolution", 0.0, open_low=True), fine if whole else 0)

    def audit(parameter: float) -> tuple[Made, Bound]:
        try:
            made = family(named(parameter))
        except CvxleakError:
            raise
        except Exception as error:
            raise ValidationError(
                f"family: it failed at {named(parameter)!r}: {type(error).__name__}: {error}"
            ) from error
        return instance(made, kind, "family"), audited(made)

    def named(parameter: float) -> float:
        return int(parameter) if whole else parameter

    try:
        best, least = audit(noisy), audit(quiet)
    except KeyboardInterrupt as error:
        raise SolveInterrupted from error
    if best[1].upper > target:
        if least[1].upper <= target:
            raise ValidationError(
                f"between: found {between!r}, from the least noise to the most; the target is met "
                f"at {named(quiet)!r} and not at {named(noisy)!r}, so the two may be exchanged"
            )
        raise InfeasibleError(
            f"{what}: found {target!r}; the most noise, {named(noisy)!r}, is between "
            f"{best[1].lower!r} and {best[1].upper!r} {best[1].unit}"
        )
    if least[1].upper <= target:
        return Calibration(named(quiet), *least, None, None)
    rejected = least[1]
    for done in range(STEPS):
        if abs(noisy - quiet) <= fine or clock.late:
            break
        middle = (quiet + noisy) / 2
        if whole:
            middle = float(math.floor(middle) if noisy > quiet else math.ceil(middle))
        try:
            if progress is not None:
                progress(named(quiet), named(noisy), done + 2)
            found = audit(middle)
        except KeyboardInterrupt as error:
            reached = Calibration(named(noisy), *best, named(quiet), rejected)
            raise SolveInterrupted(reached) from error
        if found[1].upper <= target:
            noisy, best = middle, found
        else:
            quiet, rejected = middle, found[1]
    return Calibration(named(noisy), *best, named(quiet), rejected)


def _range(between: tuple[float, float]) -> tuple[float, float, bool]:
    """Return the parameters of least and of most noise, and whether both are integers."""
    try:
        quiet, noisy = between
    except (TypeError, ValueError) as error:
        raise ValidationError(f"between: found {between!r:.40}; a pair is needed") from error
    whole = all(isinstance(end, int) and not isinstance(end, bool) for end in (quiet, noisy))
    quiet, noisy = real_number(quiet, "between"), real_number(noisy, "between")
    if not (math.isfinite(quiet) and math.isfinite(noisy)):
        raise ValidationError(f"between: found {between!r}; finite numbers are needed")
    return quiet, noisy, whole
