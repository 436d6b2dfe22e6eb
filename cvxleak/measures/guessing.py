"""The expected number of guesses to find a secret, before and after the output is seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.validation import Array
from cvxleak.measures._laws import aligned, law
from cvxleak.model import Channel, Prior

__all__ = ["guessing_entropy", "posterior_guessing_entropy"]


def guessing_entropy(prior: Prior | ArrayLike) -> float:
    """Return sum_i i p_(i), p_(1) >= p_(2) >= ...: the expected number of guesses to find X.

    Guesses are made one by one, the most probable value first, and each is answered yes or no.

    Parameters
    ----------
    prior : Prior or array_like, shape (k,)
        The distribution of the secret.

    Raises
    ------
    ValidationError
        If the probabilities are not a distribution.

    Notes
    -----
    Massey, "Guessing and entropy", ISIT 1994.

    Examples
    --------
    >>> from cvxleak.measures import guessing_entropy
    >>> guessing_entropy([0.25, 0.5, 0.25])
    1.75
    """
    return float(_guesses(law(prior)))


def posterior_guessing_entropy(channel: Channel | ArrayLike, prior: Prior | ArrayLike) -> float:
    """Return the expected number of guesses to find X once the output is seen.

    sum_y p(y) times the `guessing_entropy` of p(.|y); never more than before.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    prior : Prior or array_like, shape (k,)
        The distribution of the secret.

    Raises
    ------
    ValidationError
        If the prior and the channel do not match, or are not stochastic.

    Notes
    -----
    Köpf and Basin, "An information-theoretic model for adaptive side-channel attacks", CCS 2007.

    Examples
    --------
    >>> from cvxleak.measures import posterior_guessing_entropy
    >>> posterior_guessing_entropy([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5])
    1.25
    """
    p, rows = aligned(prior, channel)
    return float(_guesses((p[:, None] * rows).T).sum())


def _guesses(measures: Array) -> Array:
    """Return sum_i i r_(i) of the measures along the last axis."""
    return np.sort(measures, axis=-1)[..., ::-1] @ np.arange(1.0, measures.shape[-1] + 1)
