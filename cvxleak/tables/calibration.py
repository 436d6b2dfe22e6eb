"""`calibrate_table`: the least noise with which a whole table tells no more than a target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cvxleak.core.clock import Clock
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
    time_limit: float | None = 120.0,
) -> Calibration:
    """Return the least noise of a family with which a whole table meets a privacy target.

    The target is (epsilon, delta)-differential privacy, or rho-zCDP, of one person who moves from
    any cell to any other (`table_privacy`).

    Parameters
    ----------
    family : callable
        Takes the parameter and returns a TableRelease, for example with a scale, a rounding base,
        or the number of a perturbation table in a list.
    between : (quiet, noisy)
        The parameters of least and of most noise, in this order, whichever is larger. Two integers:
        integers are tried only.
    epsilon, delta : float
        Together: at this epsilon, in nats, delta is to be met.
    zcdp : float
        In their place: rho, in nats.
    this_table : bool
        Whether the true counts are those of the table, or the worst of all.
    resolution : float, optional
        How near the two parameters of the answer have to be; a 1e-4 part of the range if left out,
        1 for integers.
    time_limit : float or None
        Seconds; when they are over, the parameters reached are returned.

    Returns
    -------
    Calibration
        Its `mechanism` is the TableRelease.

    Raises
    ------
    ValidationError
        Arguments of the wrong kind, or not one target.
    InfeasibleError
        Even the most noise is not proved to meet the target; the message says what it comes to.

    Notes
    -----
    By bisection: that the answer meets the target is proved. That no less noise does holds if the
    target falls with the noise, as for scales; for rounding bases it need not.

    Examples
    --------
    >>> from cvxleak.model import DiscreteLaplace
    >>> from cvxleak.tables import Table, TableRelease, calibrate_table
    >>> table = Table({"sex": ["f", "m"], "answer": ["no", "yes"]}, people=1000)
    >>> def noisy(scale):
    ...     return TableRelease(table, DiscreteLaplace(scale))
    >>> found = calibrate_table(noisy, (1, 20), epsilon=1.0, delta=1e-6)
    >>> found.parameter, found.bound.upper
    (6, 1.9...e-07)
    """
    given = instance(this_table, bool, "this_table")
    if (epsilon is None) != (delta is None) or (epsilon is None) == (zcdp is None):
        raise ValidationError("epsilon: either epsilon and delta, or zcdp, are needed")
    level = 0.0 if epsilon is None else real_number(epsilon, "epsilon", 0.0)
    if zcdp is None:
        what, target = "delta", real_number(delta, "delta", 0.0, 1.0)
    else:
        what, target = "zcdp", real_number(zcdp, "zcdp", 0.0)

    def audited(release: TableRelease) -> Bound:
        privacy = table_privacy(release, this_table=given)
        return privacy.profile(level) if zcdp is None else privacy.zcdp

    clock = Clock(time_limit)
    return least_noise(family, TableRelease, audited, between, target, resolution, clock, what)
