"""Several releases in sequence, and many budgets for one release."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.core.validation import frozen_array, in_order
from cvxleak.model import Channel, Distortion, Prior
from cvxleak.problem.bound import Bound
from cvxleak.release.coalitions import non_decreasing
from cvxleak.release.constructors import release_problem
from cvxleak.release.joint import ReleaseJoint
from cvxleak.release.statement import Utility

__all__ = ["release_sequence", "release_surface"]


def release_sequence(
    prior: Prior | ArrayLike,
    requests: Sequence[Channel | ArrayLike],
    epsilon: Sequence[float],
    delta: Sequence[float],
    *,
    utility: Utility = "distortion",
    distortion: Distortion | ArrayLike | None = None,
    unit: str = "nats",
    **options: Any,
) -> tuple[Bound, ...]:
    """Answer requests in sequence, each in view of all earlier answers.

    Request k is solved within I(R̂_k;X) <= epsilon_k and I(R̂_1, ..., R̂_k;X) <= delta_k, with the
    kernels of the requests before it as they were chosen (SEQUENTIAL, problem (1)).

    Parameters
    ----------
    prior : Prior or array_like, shape (X,)
        p(x).
    requests : sequence of Channel or array_like, shape (X, R_k)
        p(r_k|x).
    epsilon, delta : sequence of float
        Budgets; those in `delta` must not decrease.
    utility, distortion, unit
        As in `release_problem`, for every request.
    **options
        Passed to `Problem.solve`.

    Returns
    -------
    tuple of Bound
        One per request; the kernel of request k has shape (R̂_1, ..., R̂_{k-1}, X, R̂_k).

    Raises
    ------
    ValidationError
        Arguments that do not match each other, or a `delta` that decreases.
    InfeasibleError
        A delta_k below the leakage of the earlier answers.

    Examples
    --------
    The same request twice with equal budgets gets the same answer twice (section III):

    >>> from cvxleak.release import release_sequence
    >>> tell = [[0.9, 0.1], [0.2, 0.8]]
    >>> first, second = release_sequence([0.5, 0.5], [tell, tell], [0.1, 0.1], [0.1, 0.3])
    >>> abs(first.upper - second.upper) < 1e-7
    True
    """
    channels = in_order(requests, "requests")
    epsilon, delta = in_order(epsilon, "epsilon"), in_order(delta, "delta")
    if not len(channels) == len(epsilon) == len(delta):
        raise ValidationError(
            f"epsilon: found {len(epsilon)} and {len(delta)} budgets for {len(channels)} requests"
        )
    non_decreasing(delta, "delta")
    bounds: list[Bound] = []
    for request, own, everybody in zip(channels, epsilon, delta, strict=True):
        joint = ReleaseJoint.of_history(prior, request, [bound.witness for bound in bounds])
        problem = release_problem(joint, own, everybody, utility, distortion, unit=unit)
        bounds.append(problem.solve(**options))
    return tuple(bounds)


def release_surface(
    joint: ReleaseJoint | ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    *,
    distortion: Distortion | ArrayLike | None = None,
    outputs: int | None = None,
    unit: str = "nats",
    tol: float = 1e-7,
) -> tuple[tuple[Bound | None, ...], ...]:
    """Bound the least distortion D(epsilon, delta) for all pairs of budgets.

    Parameters
    ----------
    joint, distortion, outputs, unit
        As in `release_problem`.
    epsilon, delta : array_like, shapes (n,) and (m,)
        Budgets; the result has a row for each epsilon.
    tol : float
        The gap to reach, as in `Problem.solve`.

    Returns
    -------
    tuple of tuples of Bound or None
        None where epsilon > delta or delta < I(Z;X).

    Raises
    ------
    ValidationError
        Arguments that do not match each other.

    Examples
    --------
    >>> from cvxleak.release import release_surface
    >>> surface = release_surface([[[0.45, 0.05]], [[0.05, 0.45]]], [0.0, 0.1], [0.1])
    >>> [round(row[0].upper, 4) for row in surface]
    [0.5, 0.3242]
    """
    law = ReleaseJoint.of(joint)
    everybodys = frozen_array(delta, "delta", 1).tolist()
    rows = []
    for own in frozen_array(epsilon, "epsilon", 1).tolist():
        row: list[Bound | None] = []
        for everybody in everybodys:
            found = None
            if own <= everybody or math.isinf(own):
                problem = release_problem(
                    law, own, everybody, "distortion", distortion, None, outputs, unit
                )
                try:
                    found = problem.solve(tol=tol)
                except InfeasibleError:
                    pass
            row.append(found)
        rows.append(tuple(row))
    return tuple(rows)
