"""The two extreme channels: the input itself, and an output independent of the input."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.validation import check_cells, probability_rows, whole_number
from cvxleak.model import Channel, Prior
from cvxleak.model.prior import named_law

__all__ = ["constant", "identity"]


def identity(k: int) -> Channel:
    """Return the channel whose output is its input, q(y|x) = 1 if y = x.

    No guarantee: its local-DP level is infinite (for k of 2 and more) and its capacity is log k.

    Parameters
    ----------
    k : int
        Number of inputs and of outputs, at least 1.

    Returns
    -------
    Channel
        Its inputs and its outputs are 0, ..., k - 1.

    Raises
    ------
    ValidationError
        `k` is not a positive integer.

    Examples
    --------
    >>> from cvxleak.mechanisms import identity
    >>> identity(2).matrix
    array([[1., 0.],
           [0., 1.]])
    """
    size = whole_number(k, "k", 1)
    check_cells(size, size, "k")
    return Channel(np.eye(size))


def constant(k: int, law: Prior | ArrayLike) -> Channel:
    """Return the channel whose output is independent of the input, q(y|x) = law(y).

    Guarantee: the output reveals nothing; local differential privacy with epsilon = 0, capacity 0.

    Parameters
    ----------
    k : int
        Number of inputs, at least 1.
    law : Prior or array_like
        Distribution of the output; a prior's labels become the outputs.

    Returns
    -------
    Channel
        From 0, ..., k - 1 to the outcomes of the distribution.

    Raises
    ------
    ValidationError
        `k` is not a positive integer, or `law` is not a probability distribution.

    Examples
    --------
    >>> from cvxleak.mechanisms import constant
    >>> constant(2, [0.25, 0.75]).matrix
    array([[0.25, 0.75],
           [0.25, 0.75]])
    """
    size = whole_number(k, "k", 1)
    known = named_law(law)
    output = known if isinstance(known, Prior) else Prior(probability_rows(known, "law", 1))
    check_cells(size, len(output), "k")
    return Channel(np.tile(output.probabilities, (size, 1)), outputs=output.labels)
