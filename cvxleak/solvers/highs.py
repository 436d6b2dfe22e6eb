"""HiGHS called directly, to get a basis: quiet, in one thread, with the tightest tolerances."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import highspy

__all__ = ["quiet_highs", "withhold_banner"]


def quiet_highs() -> highspy.Highs:
    """Return a solver without a program, which prints nothing and does no presolving.

    Examples
    --------
    >>> from cvxleak.solvers.highs import quiet_highs
    >>> quiet_highs().getNumCol()
    0
    """
    # Here, so that the families can be imported where HiGHS is not installed.
    import highspy

    class Quiet(highspy.Highs):
        def __init__(self) -> None:
            # Without callbacks: to install them, highspy 1.16 prints a banner on standard output.
            super(highspy.Highs, self).__init__()

    solver = Quiet()
    options = {
        "output_flag": False,
        "presolve": "off",
        # Not a number of threads: HiGHS solves nothing where another program of the process, one of
        # CVXPY's, say, has begun with another number.
        "parallel": "off",
        "primal_feasibility_tolerance": 1e-10,
        "dual_feasibility_tolerance": 1e-10,
        "small_matrix_value": 1e-12,
    }
    for name, value in options.items():
        solver.setOptionValue(name, value)
    return solver


@cache
def withhold_banner() -> None:
    """Use up the banner that HiGHS 1.16 prints once in a process, whatever it is told of output.

    CVXPY's interface would print it. An empty program, logged to nowhere, counts as the first one.

    Examples
    --------
    >>> from cvxleak.solvers.highs import withhold_banner
    >>> withhold_banner()
    """
    solver = quiet_highs()
    solver.setOptionValue("log_to_console", False)
    solver.setOptionValue("output_flag", True)
    solver.run()
