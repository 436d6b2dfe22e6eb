"""`calibrate_table`: the least noise with which a whole table meets a privacy target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cvxleak.core.clock import WORK_LIMIT, Clock
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import instance, real_number
from cvxleak.problem import Bound
from cvxleak.problem.calibration import Calibration, least_noise
from cvxleak.tables.privacy import table_privacy
from cvxleak.tables.release import TableRelease

__all__ = ["calibrate_table"]


def calibrate_table(
    family: Callable[[Any], TableRelease],
    between: tuple[float, float],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    zcdp: float | None = None,
    this_table: bool = False,
    resolution: float | None = None,
    time_limit: float | None = None,
    work_limit: float | None = WORK_LIMIT,
    progress: Callable[[float, float, int], None] | None = None,
) -> Calibration:
    """Find the least noise of a family with which a whole table meets a privacy target.

    The target is (epsilon, delta)-differential privacy, or rho-zCDP, where neighboring datasets
    differ in the cell of one person (`table_privacy`).

    Parameters
    ----------
    family : callable
        Takes the parameter and returns a TableRelease, for example with a scale, a rounding base,
        or the number of a perturbation table in a list.
    between : (quiet, noisy)
        The parameters of least and of most noise, in this order, whichever is larger. If both are
        integers, only integers are tried.
    epsilon, delta : float
        The target: (epsilon, delta)-differential privacy, epsilon in nats. Give both.
    zcdp : float
        The target rho, in nats, in place of epsilon and delta.
    this_table : bool
        Whether privacy is evaluated at the true counts of the table, or at the worst possible
        counts.
    resolution : float, optional
        Largest distance between the two returned parameters. If left out, 1e-4 of the range, or 1
        for integers.
    time_limit : float or None
        Seconds after which the parameters reached are returned.
    progress : callable, optional
        Called as progress(quiet, noisy, parameters tried) before each parameter of the bisection:
        the largest one that was rejected and the least one that meets the target.

    Returns
    -------
    Calibration
        Its `mechanism` is the TableRelease.

    Raises
    ------
    ValidationError
        Arguments of the wrong kind, not exactly one target, or a range in the wrong order: `quiet`
        meets the target and `noisy` does not.
    SolveInterrupted
        Ctrl-C; its ``bound`` is the Calibration reached, or None before both were audited.
    InfeasibleError
        The target is not proved even with the most noise; the message gives the value reached.

    Notes
    -----
    The search is by bisection. That the result meets the target is proved. That less noise does not
    meet it follows only if the privacy parameter does not increase with the noise; this holds for
    scales, but not in general for rounding bases.

    Examples
    --------
    >>> from cvxleak.model import DiscreteLaplace
    >>> from cvxleak.tables import Table, TableRelease, calibrate_table
    >>> table = Table({"sex": ["f", "m"], "answer": ["no", "yes"]}, people=1000)
    >>> def noisy(scale):
    ...     return TableRelease(table, DiscreteLaplace(scale))
    >>> found = calibrate_table(noisy, (1, 20), epsilon=1.0, delta=1e-6)
    >>> found.parameter, found.bound.upper
    (6, 8.4...e-08)
    """
    given = instance(this_table, bool, "this_table")
    if (epsilon is None) != (delta is None) or (epsilon is None) == (zcdp is None):
        raise ValidationError("epsilon: either epsilon and delta, or zcdp, are needed")
    level = 0.0 if epsilon is None else real_number(epsilon, "epsilon", 0.0)
    if zcdp is None:
        what, target = "delta", real_number(delta, "delta", 0.0, 1.0)
    else:
        what, target = "zcdp", real_number(zcdp, "zcdp", 0.0)

    clock = Clock(time_limit)

    def audited(release: TableRelease) -> Bound:
        privacy = table_privacy(
            release, this_table=given, time_limit=clock.share(2), work_limit=work_limit
        )
        limits: dict[str, Any] = {"time_limit": clock.limit, "work_limit": work_limit}
        if zcdp is not None:
            return privacy.zcdp(**limits)
        return privacy.profile(level, **limits)

    return least_noise(
        family, TableRelease, audited, between, target, resolution, clock, what, progress
    )
