"""Several releases in sequence, and many budgets for one release."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from numpy.typing import ArrayLike

from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.core.validation import Array, frozen_array, in_order
from cvxleak.iterative.history import IterativeResult
from cvxleak.iterative.release_curve import release_search
from cvxleak.iterative.release_fixed import distortion_blahut_arimoto, information_blahut_arimoto
from cvxleak.model import Channel, Distortion, Prior
from cvxleak.problem.bound import Bound, unit_scale
from cvxleak.release.coalitions import non_decreasing
from cvxleak.release.constructors import release_lagrangian, release_problem
from cvxleak.release.joint import ReleaseJoint
from cvxleak.release.statement import Utility

__all__ = ["release_sequence", "release_strategy", "release_surface"]

Result = TypeVar("Result")


def release_sequence(
    prior: Prior | ArrayLike,
    requests: Sequence[Channel | ArrayLike],
    epsilon: Sequence[float] | None = None,
    delta: Sequence[float] | None = None,
    *,
    mu_1: Sequence[float] | None = None,
    mu_2: Sequence[float] | None = None,
    utility: Utility = "distortion",
    distortion: Distortion | ArrayLike | None = None,
    unit: str = "nats",
    **options: Any,
) -> tuple[Bound, ...]:
    """Answer requests in sequence, each in view of all earlier answers.

    Request k is solved within I(R̂_k;X) <= epsilon_k and I(R̂_1, ..., R̂_k;X) <= delta_k, with the
    kernels of the requests before it as they were chosen (SEQUENTIAL, problem (1)); or, with
    multipliers in place of budgets, at the prices mu_1 and mu_2 of these two (section VII, (13)).

    Parameters
    ----------
    prior : Prior or array_like, shape (X,)
        p(x).
    requests : sequence of Channel or array_like, shape (X, R_k)
        p(r_k|x).
    epsilon, delta : sequence of float
        Budgets; those in `delta` must not decrease.
    mu_1, mu_2 : sequence of float
        Multipliers, as in `release_lagrangian`; not together with budgets.
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

    def answer(joint: ReleaseJoint, one: float, two: float) -> tuple[Bound, Array]:
        if epsilon is None:
            problem = release_lagrangian(joint, one, two, utility, distortion, unit=unit)
        else:
            problem = release_problem(joint, one, two, utility, distortion, unit=unit)
        bound = problem.solve(**options)
        return bound, bound.witness

    return _in_sequence(prior, requests, _pairs(requests, epsilon, delta, mu_1, mu_2), answer)


def release_strategy(
    prior: Prior | ArrayLike,
    requests: Sequence[Channel | ArrayLike],
    epsilon: Sequence[float] | None = None,
    delta: Sequence[float] | None = None,
    *,
    mu_1: Sequence[float] | None = None,
    mu_2: Sequence[float] | None = None,
    utility: Utility = "distortion",
    distortion: Distortion | ArrayLike | None = None,
    unit: str = "nats",
    **options: Any,
) -> tuple[IterativeResult, ...]:
    """Answer requests in sequence by Blahut–Arimoto: `release_sequence` as SEQUENTIAL prints it.

    Within budgets this is Algorithm 3 for all requests (`cvxleak.iterative.release_search` each).
    With multipliers it is Algorithm 1 or, for an information, Algorithm 2, as section VII has it
    for progressive networks.

    Parameters
    ----------
    prior, requests, epsilon, delta, mu_1, mu_2, utility, distortion, unit
        As in `release_sequence`.
    **options
        Passed to `release_search`, `distortion_blahut_arimoto` or `information_blahut_arimoto`.

    Returns
    -------
    tuple of IterativeResult
        One per request: `point` is the kernel, of shape (R̂_1, ..., R̂_{k-1}, X, R̂_k), and `value`
        as the method has it, an information in nats. `cvxleak.desk.ReleaseDesk` draws the answers,
        the last two lines of Algorithm 3.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, or a `delta` that decreases.
    InfeasibleError
        A delta_k below the leakage of the earlier answers.

    Examples
    --------
    >>> from cvxleak.release import release_strategy
    >>> tell = [[0.9, 0.1], [0.2, 0.8]]
    >>> runs = release_strategy([0.5, 0.5], [tell, tell], [0.1, 0.1], [0.1, 0.3], tol=1e-4)
    >>> [round(run.value, 3) for run in runs]
    [0.339, 0.339]
    """
    scale = unit_scale(unit)
    informs = utility == "information"
    price = 1.0 if informs else 1 / scale  # an information's units cancel

    def answer(joint: ReleaseJoint, one: float, two: float) -> tuple[IterativeResult, Array]:
        law, told = joint.flat, {} if informs else {"distortion": distortion}
        if epsilon is not None:
            run = release_search(law, one * scale, two * scale, utility=utility, **told, **options)
        else:
            method = information_blahut_arimoto if informs else distortion_blahut_arimoto
            run = method(law, one * price, two * price, **told, **options)
        _, sizes, datasets = joint.shape
        kernel = run.point.reshape((*sizes, datasets, -1))
        return replace(run, point=kernel), kernel

    return _in_sequence(prior, requests, _pairs(requests, epsilon, delta, mu_1, mu_2), answer)


def _pairs(
    requests: Sequence[Any],
    epsilon: Sequence[float] | None,
    delta: Sequence[float] | None,
    mu_1: Sequence[float] | None,
    mu_2: Sequence[float] | None,
) -> list[tuple[float, float]]:
    """Return the budgets or the multipliers of each request."""
    given = {"epsilon": epsilon, "delta": delta, "mu_1": mu_1, "mu_2": mu_2}
    names = [name for name, values in given.items() if values is not None]
    if names not in (["epsilon", "delta"], ["mu_1", "mu_2"]):
        raise ValidationError(
            f"epsilon: found {' and '.join(names) or 'neither budgets nor multipliers'}; allowed: "
            "epsilon and delta, or mu_1 and mu_2"
        )
    first, second = (in_order(given[name], name) for name in names)  # type: ignore[arg-type]
    count = len(in_order(requests, "requests"))
    if not count == len(first) == len(second):
        raise ValidationError(
            f"{names[0]}: found {len(first)} and {len(second)} values for {count} requests"
        )
    if delta is not None:
        non_decreasing(second, "delta")
    return list(zip(first, second, strict=True))


def _in_sequence(
    prior: Prior | ArrayLike,
    requests: Sequence[Channel | ArrayLike],
    pairs: Sequence[tuple[float, float]],
    answer: Callable[[ReleaseJoint, float, float], tuple[Result, Array]],
) -> tuple[Result, ...]:
    results: list[Result] = []
    kernels: list[Array] = []
    for request, pair in zip(requests, pairs, strict=True):
        result, kernel = answer(ReleaseJoint.of_history(prior, request, kernels), *pair)
        results.append(result)
        kernels.append(kernel)
    return tuple(results)


def release_surface(
    joint: ReleaseJoint | ArrayLike,
    epsilon: ArrayLike,
    delta: ArrayLike,
    *,
    utility: Utility = "distortion",
    distortion: Distortion | ArrayLike | None = None,
    outputs: int | None = None,
    unit: str = "nats",
    **options: Any,
) -> tuple[tuple[Bound | None, ...], ...]:
    """Bound D(epsilon, delta) or I(epsilon, delta) for all pairs of budgets.

    The least distortion, or the most information about the request; for party k, with the joint
    distribution of its request and the earlier answers, D_k and I_k of SEQUENTIAL.

    Parameters
    ----------
    joint, utility, distortion, outputs, unit
        As in `release_problem`.
    epsilon, delta : array_like, shapes (n,) and (m,)
        Budgets; the result has a row for each epsilon.
    **options
        Passed to `Problem.solve`.

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
                    law, own, everybody, utility, distortion, None, outputs, unit
                )
                try:
                    found = problem.solve(**options)
                except InfeasibleError:
                    pass
            row.append(found)
        rows.append(tuple(row))
    return tuple(rows)
