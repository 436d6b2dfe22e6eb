"""Optimal mechanisms under a bound on pointwise maximal leakage."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import probability_rows, real_number
from cvxleak.model import Channel, Prior
from cvxleak.model.prior import named_law

__all__ = ["pml_extremal"]


def pml_extremal(prior: Prior | ArrayLike, epsilon: float) -> Channel:
    """Return the PML-extremal mechanism of the high-privacy regime.

    ``q(y|x) = 1 - e^epsilon (1 - p(x))`` if y = x, ``e^epsilon p(y)`` otherwise.

    Guarantee, under the prior p that is given: every output has pointwise maximal leakage exactly
    epsilon, and the output has the distribution p too, so the envelope is epsilon at every failure
    probability (ENVELOPE Theorem 4). Under another prior there is no such guarantee.

    Parameters
    ----------
    prior : Prior or array_like, shape (k,)
        The distribution of the input, with k >= 2 and every probability positive.
    epsilon : float
        In nats, strictly between 0 and ``-log(1 - min p)``: beyond that the diagonal would be
        negative.

    Returns
    -------
    Channel
        Its inputs and its outputs are the prior's outcomes.

    Raises
    ------
    ValidationError
        A prior with fewer than two outcomes or a probability of zero, or epsilon outside the
        admissible range (the message states the range).

    References
    ----------
    ENVELOPE V-A, after L. Grosse, S. Saeidian and T. J. Oechtering, Extremal mechanisms for
    pointwise maximal leakage, IEEE Trans. Inf. Forensics Secur. 19 (2024).

    Examples
    --------
    >>> import math
    >>> from cvxleak.mechanisms import pml_extremal
    >>> pml_extremal([0.5, 0.5], math.log(1.5)).matrix
    array([[0.25, 0.75],
           [0.75, 0.25]])
    """
    known = named_law(prior)
    given = known if isinstance(known, Prior) else Prior(probability_rows(known, "prior", 1))
    p = given.probabilities
    least = float(p.min())
    if len(p) < 2 or least == 0:
        raise ValidationError(
            f"prior: found {len(p)} outcome(s) and a least probability of {least:g}; at least two "
            "outcomes are needed, each with a positive probability"
        )
    limit = -math.log1p(-least)
    level = real_number(epsilon, "epsilon", 0, limit, open_low=True, open_high=True)
    matrix = np.tile(math.exp(level) * p, (len(p), 1))
    np.fill_diagonal(matrix, 0)
    # From the row's own sum, not from 1 - p(x): a prior need not sum to 1 to the last digit.
    np.fill_diagonal(matrix, np.maximum(1 - matrix.sum(axis=1), 0))
    return Channel(matrix, given.labels, given.labels)
