"""`calibrate`: the least noise of a parametric family that provably meets a leakage target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cvxleak.audit.record_leakage import RecordLeakage
from cvxleak.core.clock import WORK_LIMIT, Clock
from cvxleak.core.validation import real_number
from cvxleak.model import Mechanism
from cvxleak.problem.bound import Bound
from cvxleak.problem.calibration import Calibration, least_noise

__all__ = ["Calibration", "calibrate"]


def calibrate(
    family: Callable[[Any], Mechanism],
    between: tuple[float, float],
    *,
    leakage: float,
    entropy_floor: float,
    size: int = 1,
    resolution: float | None = None,
    tol: float = 1e-4,
    time_limit: float | None = None,
    work_limit: float | None = WORK_LIMIT,
    progress: Callable[[float, float, int], None] | None = None,
) -> Calibration:
    """Find the least noise of a family for which the leakage is provably at most a target.

    Parameters
    ----------
    family : callable
        Takes the parameter and returns a Mechanism, for example with a flip probability, an
        epsilon, a rounding base or a number N.
    between : (quiet, noisy)
        The parameters of least and of most noise, in this order: (0.0, 0.5) for a flip probability,
        (5.0, 0.01) for an epsilon. If both are integers, only integers are tried.
    leakage : float
        The target, in nats.
    entropy_floor : float
        b, in nats.
    size : int
        Number of records of a group.
    resolution : float, optional
        Largest distance between the two returned parameters. If left out, 1e-4 of the range, or 1
        for integers.
    tol : float
        Relative gap of the audits.
    time_limit : float, optional
        Seconds for all audits together; after that, the parameters reached are returned.
    work_limit : float or None
        As for `RecordLeakage.solve`, for each audit.
    progress : callable, optional
        Called as progress(quiet, noisy, parameters tried) before each parameter of the bisection:
        the largest one that was rejected and the least one that meets the target.

    Raises
    ------
    ValidationError
        Arguments of the wrong kind, or a range whose first value meets the target and whose second
        value does not.
    SolveInterrupted
        Ctrl-C; its ``bound`` is the Calibration reached, or None before both bounds were audited.
    InfeasibleError
        The target is not proved even with the most noise; the message gives its leakage.

    Notes
    -----
    The search is by bisection. The audit proves that the result meets the target. That less noise
    does not meet it follows only if the leakage does not increase with the noise; this holds for
    families whose noisier members are post-processings of the others (flips, for example; not
    rounding bases).

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
    target = real_number(leakage, "leakage", 0.0)
    clock = Clock(time_limit)

    def audited(mechanism: Mechanism) -> Bound:
        problem = RecordLeakage(mechanism, entropy_floor, size=size)
        return problem.solve(tol=tol, time_limit=clock.limit, work_limit=work_limit)

    return least_noise(
        family, Mechanism, audited, between, target, resolution, clock, "leakage", progress
    )
