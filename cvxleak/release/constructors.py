"""`release_problem` and `release_lagrangian`: a release within budgets, or at prices."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import label_tuple, real_number, short, whole_number
from cvxleak.model import Distortion
from cvxleak.problem.bound import unit_scale
from cvxleak.release.coalitions import Coalition, Coalitions, enough_outputs, named_coalitions
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
        The law of the request R, of the earlier outputs and of the dataset X; (R, X) if there are
        no earlier outputs.
    epsilon : float
        Most that the new output alone may tell: I(R̂;X) <= epsilon. Unbounded if left out.
    delta : float
        Most that it may tell together with all earlier ones: I(R̂,Z;X) <= delta.
    utility : {"distortion", "information"}
        Minimize E d(R,R̂), or maximize I(R̂;R).
    distortion : Distortion or array_like, shape (R, R̂), optional
        d(r, r̂), rows matched to the joint's requests; Hamming if left out.
    coalitions : mapping or list of pairs, optional
        Members and budget of further coalitions: I(R̂,Z_S;X) <= budget, where S are the members,
        a tuple of positions (or names) of earlier outputs; `any_of` makes all of one size. In a
        list the members may also be an integer array over z, equal where the coalition sees the
        same.
    outputs : int or iterable of hashable, optional
        How many values R̂ has, or their labels. If left out, for a distortion those of its columns,
        or of R. For an information, as many as there are pairs (z, x) of positive probability and
        different coalitions with a budget: more tell no more of R. Where that makes a kernel of
        over 5000 entries, there are only as many as fit, or as R has values if that is more.
    unit : {"nats", "bits"}
        Of the budgets.

    Returns
    -------
    ReleaseDistortion or ReleaseInformation

    Raises
    ------
    ValidationError
        Arguments that do not fit; epsilon > delta, or any coalition with a larger budget than one
        that sees more.

    Notes
    -----
    That delta must not decrease from one release to the next concerns the sequence of problems, and
    is checked by `release_sequence`.

    Examples
    --------
    The paper's Table I, whose budgets are in bits:

    >>> from cvxleak.release import release_problem
    >>> joint = [[[0.024, 0.228], [0.063, 0.203]], [[0.203, 0.013], [0.228, 0.038]]]
    >>> bound = release_problem(joint, 0.1, 0.2, unit="bits").solve()
    >>> print(bound)
    release distortion: 0.3475999 to 0.3475999 distortion (CERTIFIED)
    """
    law = ReleaseJoint.of(joint)
    scale = unit_scale(unit)
    found = named_coalitions(law, epsilon, delta, coalitions, scale)
    return _stated(law, utility, distortion, outputs, found, unit)


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
        Arguments that do not fit.

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
    return _stated(law, utility, distortion, outputs, found, unit)


def _stated(
    joint: ReleaseJoint,
    utility: Utility,
    distortion: Distortion | ArrayLike | None,
    outputs: int | Iterable[Hashable] | None,
    coalitions: tuple[Coalition, ...],
    unit: str,
) -> ReleaseDistortion | ReleaseInformation:
    if utility not in ("distortion", "information"):
        raise ValidationError(
            f"utility: found {short(utility)}; allowed: 'distortion', 'information'"
        )
    if outputs is None and utility == "information":
        outputs = enough_outputs(joint, coalitions)
    if outputs is None:
        labels = None
    elif isinstance(outputs, Iterable):
        labels = tuple(outputs)
        labels = label_tuple(labels, len(labels), "outputs")
    else:
        count = whole_number(outputs, "outputs", 1)
        labels = (*joint.requests[:count], *_fresh(joint.requests, count))
    if labels == ():
        raise ValidationError("outputs: found none; at least one is needed")
    if utility == "information":
        if distortion is not None:
            raise ValidationError("distortion: found one; utility 'information' has none")
        assert labels is not None
        return ReleaseInformation(joint, labels, coalitions, unit)
    if distortion is None:
        matrix = Distortion.hamming(joint.requests, labels)
    elif isinstance(distortion, Distortion):
        matrix = distortion.select(joint.requests, labels, "distortion")
    else:
        matrix = Distortion(distortion, None, labels)
        if matrix.shape[0] != len(joint.requests):
            raise ValidationError(
                f"distortion: found shape {matrix.shape}; it must have "
                f"{len(joint.requests)} rows, one per request"
            )
        matrix = Distortion(matrix.matrix, joint.requests, labels)
    return ReleaseDistortion(joint, matrix.outputs, coalitions, unit, matrix)


def _fresh(used: tuple[Hashable, ...], count: int) -> tuple[Hashable, ...]:
    """Return labels for the outputs beyond as many as there are requests."""
    free = (n for n in range(len(used) + count + len(used)) if n not in used)
    return tuple(next(free) for _ in range(count - len(used)))
