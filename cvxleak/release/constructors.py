"""`release_problem` and `release_lagrangian`: a release within budgets, or at prices."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import real_number, short
from cvxleak.model import Distortion
from cvxleak.problem.bound import unit_scale
from cvxleak.release.coalitions import Coalition, Coalitions
from cvxleak.release.distortion import ReleaseDistortion
from cvxleak.release.information import ReleaseInformation
from cvxleak.release.joint import ReleaseJoint
from cvxleak.release.statement import Utility

__all__ = ["release_lagrangian", "release_problem"]


def release_problem(
    joint: ReleaseJoint | ArrayLike,
    epsilon: float = math.inf,
    delta: float = math.inf,
    utility: Utility = "distortion",
    distortion: Distortion | ArrayLike | None = None,
    coalitions: Coalitions | None = None,
    outputs: int | Iterable[Hashable] | None = None,
    unit: str = "nats",
) -> ReleaseDistortion | ReleaseInformation:
    """State the problem of answering a request within budgets (SEQUENTIAL, problem (2)).

    Parameters
    ----------
    joint : ReleaseJoint, pandas.Series or array_like, shape (R, Z, X) or (R, Z_1, ..., Z_j, X)
        The joint distribution of the request R, the earlier outputs and the dataset X; shape (R, X)
        if there are no earlier outputs.
    epsilon : float
        Leakage budget of the new output alone: I(R̂;X) <= epsilon. No budget if left out.
    delta : float
        Leakage budget of the new output together with all earlier ones: I(R̂,Z;X) <= delta.
    utility : {"distortion", "information"}
        Minimize E d(R,R̂), or maximize I(R̂;R).
    distortion : Distortion or array_like, shape (R, R̂), optional
        d(r, r̂), rows matched to the joint's requests; Hamming if left out.
    coalitions : mapping or list of pairs, optional
        Members and budget of further coalitions: I(R̂,Z_S;X) <= budget, where the members S are a
        tuple of positions (or names) of earlier outputs; `any_of` returns all coalitions of one
        size. In a list, the members may also be given as an integer array over z, with equal
        entries for values that the coalition cannot distinguish.
    outputs : int or iterable of hashable, optional
        The number of values of R̂, or their labels. If left out, for a distortion those of its
        columns, or of R. For an information, the number of pairs (z, x) of positive probability
        plus that of different coalitions with a budget: more values do not increase I(R̂;R). If the
        kernel would have over 5000 entries, only as many as fit, or as many as R has, whichever is
        more.
    unit : {"nats", "bits"}
        Of the budgets.

    Returns
    -------
    ReleaseDistortion or ReleaseInformation

    Raises
    ------
    ValidationError
        Arguments that do not match each other; epsilon > delta, or a coalition with a larger budget
        than one that sees more.

    Notes
    -----
    `release_sequence` also checks that delta does not decrease from one release to the next.

    Examples
    --------
    The paper's Table I, whose budgets are in bits:

    >>> from cvxleak.release import release_problem
    >>> joint = [[[0.024, 0.228], [0.063, 0.203]], [[0.203, 0.013], [0.228, 0.038]]]
    >>> bound = release_problem(joint, 0.1, 0.2, unit="bits").solve()
    >>> print(bound)
    release distortion: 0.3475999 to 0.3475999 distortion (CERTIFIED)
    """
    budgets = {"coalitions": coalitions, "outputs": outputs, "unit": unit}
    if _informs(utility, distortion):
        return ReleaseInformation.within(joint, epsilon, delta, **budgets)
    return ReleaseDistortion.within(joint, epsilon, delta, distortion, **budgets)


def release_lagrangian(
    joint: ReleaseJoint | ArrayLike,
    mu_1: float,
    mu_2: float,
    utility: Utility = "distortion",
    distortion: Distortion | ArrayLike | None = None,
    outputs: int | Iterable[Hashable] | None = None,
    unit: str = "nats",
) -> ReleaseDistortion | ReleaseInformation:
    """State the problem with multipliers in place of budgets (SEQUENTIAL, problems (4) and (13)).

    Minimize E d(R,R̂) + mu_1 I(R̂;X) + mu_2 I(R̂,Z;X), or maximize
    I(R̂;R) - mu_1 I(R̂;X) - mu_2 I(R̂,Z;X), over all kernels. The constant
    - mu_1 epsilon - mu_2 delta of problem (4) is left out.

    Parameters
    ----------
    joint, utility, distortion, outputs
        As in `release_problem`.
    mu_1, mu_2 : float
        Multipliers >= 0, per unit of information.
    unit : {"nats", "bits"}
        Of that information: the paper's multipliers are per bit.

    Raises
    ------
    ValidationError
        Arguments that do not match each other.

    See Also
    --------
    cvxleak.iterative.distortion_blahut_arimoto : The paper's method for it, Algorithm 1.
    cvxleak.iterative.information_blahut_arimoto : Algorithm 2.

    Examples
    --------
    Table II(b):

    >>> from cvxleak.release import release_lagrangian
    >>> joint = [[[0.024, 0.228], [0.063, 0.203]], [[0.203, 0.013], [0.228, 0.038]]]
    >>> release_lagrangian(joint, 0.1, 0.1, unit="bits").solve().witness[:, :, 0].round(3)
    array([[0.041, 0.975],
           [0.143, 0.887]])
    """
    law = ReleaseJoint.of(joint)
    scale = unit_scale(unit)
    prices = [
        real_number(mu_1, "mu_1", 0.0, open_high=True),
        real_number(mu_2, "mu_2", 0.0, open_high=True),
    ]
    if utility == "distortion":  # per nat; for an information the units cancel
        prices = [price / scale for price in prices]
    found = (
        Coalition.seeing(law, (), price=prices[0], name="mu_1"),
        Coalition.seeing(law, law.names, price=prices[1], name="mu_2"),
    )
    if _informs(utility, distortion):
        return ReleaseInformation.of(law, found, outputs, unit)
    return ReleaseDistortion.of(law, found, distortion, outputs, unit)


def _informs(utility: Utility, distortion: Distortion | ArrayLike | None) -> bool:
    """Whether information is maximized; no distortion is given then."""
    if utility not in ("distortion", "information"):
        raise ValidationError(
            f"utility: found {short(utility)}; allowed: 'distortion', 'information'"
        )
    if utility == "information" and distortion is not None:
        raise ValidationError("distortion: found one; utility 'information' has none")
    return utility == "information"
