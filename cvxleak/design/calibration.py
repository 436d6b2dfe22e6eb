"""`calibrate`: the least noise of a parametric family whose proved leakage meets a target."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cvxleak.audit.record_leakage import RecordLeakage
from cvxleak.core.clock import Clock
from cvxleak.core.errors import CvxleakError, InfeasibleError, SolveInterrupted, ValidationError
from cvxleak.core.validation import instance, real_number
from cvxleak.model import Mechanism
from cvxleak.problem.bound import Bound

__all__ = ["Calibration", "calibrate"]

STEPS = 200


@dataclass(frozen=True)
class Calibration:
    """A parameter whose mechanism is proved to meet a target, and the nearest that is not.

    Attributes
    ----------
    parameter : float or int
    mechanism : Mechanism
        ``family(parameter)``.
    bound : Bound
        Its audit: ``bound.upper`` is at most the target.
    rejected : float or int or None
        The nearest parameter towards less noise that was tried and not accepted; None if the least
        noise of the range meets the target.
    rejected_bound : Bound or None
        Its audit. If ``rejected_bound.lower`` is above the target, it is proved to leak more.

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
    mechanism: Mechanism
    bound: Bound
    rejected: float | None
    rejected_bound: Bound | None

    @property
    def gap(self) -> float:
        """Distance between the two parameters; 0 if there is only one."""
        return 0.0 if self.rejected is None else abs(self.parameter - self.rejected)


def calibrate(
    family: Callable[[Any], Mechanism],
    between: tuple[float, float],
    *,
    leakage: float,
    entropy_floor: float,
    size: int = 1,
    resolution: float | None = None,
    tol: float = 1e-4,
    time_limit: float | None = 120.0,
) -> Calibration:
    """Return the least noise of a family whose certified leakage is at most a target.

    Parameters
    ----------
    family : callable
        Takes the parameter and returns a Mechanism, for example with a flip probability, an
        epsilon, a rounding base or a number N.
    between : (quiet, noisy)
        The parameters of least and of most noise, in this order, whichever is larger: (0.0, 0.5)
        for a flip probability, (5.0, 0.01) for an epsilon. Two integers: integers are tried only.
    leakage : float
        The target, in nats.
    entropy_floor : float
        b, in nats.
    size : int
        Number of records of a group.
    resolution : float, optional
        How near the two parameters of the answer have to be; a 1e-4 part of the range if left out,
        1 for integers.
    tol : float
        Relative gap of the audits.
    time_limit : float or None
        Seconds for all of them; when they are over, the parameters reached are returned.

    Raises
    ------
    ValidationError
        Arguments of the wrong kind.
    InfeasibleError
        Even the most noise is not proved to meet the target; the message gives what it leaks.

    Notes
    -----
    By bisection. That the answer meets the target is proved by its audit. That no less noise does
    is so if the leakage does not increase with the noise, which holds for families whose noisier
    members are post-processings of the others (flips, for example; not rounding bases).

    Examples
    --------
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> from cvxleak.design import calibrate
    >>> parity = AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3, modulus=2)
    >>> def flipped(p):
    ...     return Mechanism(parity, [[1 - p, p], [p, 1 - p]])
    >>> found = calibrate(flipped, (0.0, 0.5), leakage=0.3681, entropy_floor=0.0)
    >>> round(found.parameter, 3), found.bound.upper <= 0.3681
    (0.1, True)
    """
    if not callable(family):
        raise ValidationError(f"family: expected a function of the parameter, found {family!r:.40}")
    target = real_number(leakage, "leakage", 0.0)
    quiet, noisy, whole = _range(between)
    fine = 1.0 if whole else abs(noisy - quiet) * 1e-4
    if resolution is not None:
        fine = max(real_number(resolution, "resolution", 0.0, open_low=True), fine if whole else 0)
    clock = Clock(time_limit)

    def audit(parameter: float) -> tuple[Mechanism, Bound]:
        try:
            made = family(named(parameter))
        except CvxleakError:
            raise
        except Exception as error:
            raise ValidationError(
                f"family: it failed at {named(parameter)!r}: {type(error).__name__}: {error}"
            ) from error
        mechanism = instance(made, Mechanism, "family")
        problem = RecordLeakage(mechanism, entropy_floor, size=size)
        return mechanism, problem.solve(tol=tol, time_limit=clock.limit)

    def named(parameter: float) -> float:
        return int(parameter) if whole else parameter

    best = audit(noisy)
    if best[1].upper > target:
        raise InfeasibleError(
            f"leakage: found {leakage!r} nats; the most noise, {named(noisy)!r}, leaks between "
            f"{best[1].lower!r} and {best[1].upper!r}"
        )
    least = audit(quiet)
    if least[1].upper <= target:
        return Calibration(named(quiet), *least, None, None)
    rejected = least[1]
    for _ in range(STEPS):
        if abs(noisy - quiet) <= fine or clock.late:
            break
        middle = (quiet + noisy) / 2
        if whole:
            middle = float(math.floor(middle) if noisy > quiet else math.ceil(middle))
        try:
            found = audit(middle)
        except SolveInterrupted as error:
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
