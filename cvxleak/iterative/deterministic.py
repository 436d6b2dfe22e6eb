"""The best deterministic conditionals of a record (LEAKAGE Algorithm 1, line 15)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cvxleak.core.validation import Array, frozen_array, plain_array, whole_number
from cvxleak.iterative._record import RecordView
from cvxleak.iterative.formulas import information
from cvxleak.iterative.history import IterativeResult

__all__ = ["COORDINATE_WISE", "deterministic_search"]

COORDINATE_WISE = "coordinate-wise search: no change of one value's context gains"
"""What `stopped` says when there were too many combinations to try them all."""

CHUNK = 1 << 14


def deterministic_search(
    marginal: ArrayLike, rows: ArrayLike, *, max_combinations: int = 100_000
) -> IterativeResult:
    """Maximize I(X_i;Y) over conditionals that are unit vectors, one for each value of x_i.

    I is convex in the conditionals, so without an entropy floor one of these is a maximum (LEAKAGE
    3.1, case 1). There are M^A of them; contexts with equal rows count once.

    Parameters
    ----------
    marginal : array_like, shape (A,)
        p(x_i), held fixed.
    rows : array_like, shape (A, M, Y)
        q(y|x_i, x_{-i}).
    max_combinations : int
        All combinations are tried up to this many. Past it the search changes one value's context
        at a time, from the first contexts on, until none gains: a local maximum.

    Returns
    -------
    IterativeResult
        `point`: the conditionals, shape (A, M); `value`: I(X_i;Y). `stopped` says which search it
        was; `history` has the ``objective`` at the start and after each sweep of the second one,
        and the final one only for the first.

    Raises
    ------
    ValidationError
        Arguments of the wrong kind or shape.

    Notes
    -----
    The paper's line 15 writes the power n_{-i} for the number of unit vectors; it is the number of
    values of x_i.

    Examples
    --------
    >>> from cvxleak.iterative import deterministic_search
    >>> rows = [[[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]]  # parity of two bits
    >>> print(deterministic_search([0.5, 0.5], rows))
    0.3680642 after 0 iterations: all 4 combinations tried
    """
    contexts = max(frozen_array(rows, "rows", 3).shape[1], 1)
    first = np.zeros((plain_array(marginal, "marginal").size, contexts))
    first[:, 0] = 1
    view = RecordView.checked(marginal, first, rows)
    cap = whole_number(max_combinations, "max_combinations", 1)
    distinct = [
        np.unique(block, axis=0, return_index=True)[1] if p > 0 else np.zeros(1, dtype=np.intp)
        for p, block in zip(view.marginal, view.rows, strict=True)
    ]
    number = math.prod(len(places) for places in distinct)
    if number <= cap:
        choice, value = _try_all(view, distinct, number)
        objective, reason = [value], f"all {number} combinations tried"
    else:
        choice, objective = _coordinate_wise(view, distinct)
        reason = COORDINATE_WISE
    return IterativeResult(
        value=objective[-1],
        point=np.eye(contexts)[choice],
        iterations=len(objective) - 1,
        stopped=reason,
        history={"objective": np.array(objective)},
    )


def _values(view: RecordView, choices: NDArray[np.intp]) -> Array:
    """I(X_i;Y) for each row of `choices`, a context for each value, shape (C, A)."""
    laws = view.rows[np.arange(choices.shape[1]), choices]
    return information(view.marginal[:, None] * laws)


def _try_all(
    view: RecordView, distinct: list[NDArray[np.intp]], number: int
) -> tuple[NDArray[np.intp], float]:
    shape = [len(places) for places in distinct]
    best, value = np.zeros(len(shape), dtype=np.intp), -math.inf
    for first in range(0, number, CHUNK):
        indices = np.unravel_index(np.arange(first, min(first + CHUNK, number)), shape)
        choices = np.stack(
            [places[index] for places, index in zip(distinct, indices, strict=True)], axis=1
        )
        values = _values(view, choices)
        if values.max() > value:
            best, value = choices[np.argmax(values)], float(values.max())
    return best, value


def _coordinate_wise(
    view: RecordView, distinct: list[NDArray[np.intp]]
) -> tuple[NDArray[np.intp], list[float]]:
    choice = np.array([places[0] for places in distinct])
    objective = [float(_values(view, choice[None])[0])]
    # Every sweep but the last one gains, and there are finitely many choices.
    while len(objective) == 1 or objective[-1] > objective[-2]:
        for a, places in enumerate(distinct):
            options = np.repeat(choice[None], len(places), axis=0)
            options[:, a] = places
            values = _values(view, options)
            if values.max() > _values(view, choice[None])[0]:
                choice = options[np.argmax(values)]
        objective.append(float(_values(view, choice[None])[0]))
    return choice, objective
