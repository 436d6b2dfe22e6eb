"""Composition: the envelope of several independent releases of one mechanism, exactly."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln, xlogy

from cvxleak.core.clock import WORK_LIMIT
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import whole_number
from cvxleak.envelope.envelope import PMLEnvelope
from cvxleak.measures.privacy import TIE
from cvxleak.model import Channel, Prior, as_channel
from cvxleak.problem.bound import Bound

__all__ = ["MOST_TYPES", "release_types", "repeated_releases"]

MOST_TYPES = 100_000
"""Channels with more types than this are refused."""


def release_types(channel: Channel | ArrayLike, releases: int) -> Channel:
    """Return the channel from the input to the type of several independent outputs: their counts.

    P(c|x) = (m! / prod c_y!) prod q(y|x)^c_y for counts c with sum m. Sequences of the same type
    have proportional likelihoods, so the type leaks as much as the sequence, after any
    post-processing. Proportional outputs of the mechanism are merged first.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, outputs)
        The rows q(y|x).
    releases : int
        Number m of releases, at least 1.

    Returns
    -------
    Channel
        From the inputs to C(m + r - 1, r - 1) types, r the number of outputs that are not
        proportional, labeled by their tuples of counts. The relative error of an entry is about
        1e-15 m log m, from the sum of logarithms.

    Raises
    ------
    ValidationError
        If there are more than 10^5 types (the message says how many).

    Examples
    --------
    >>> from cvxleak.envelope import release_types
    >>> types = release_types([[0.75, 0.25], [0.25, 0.75]], 2)
    >>> types.outputs, types.matrix[0].round(4)
    (((0, 2), (1, 1), (2, 0)), array([0.0625, 0.375 , 0.5625]))
    """
    reduced = as_channel(channel).reduced()
    m = whole_number(releases, "releases", 1)
    kinds = len(reduced.outputs)
    count = math.comb(m + kinds - 1, kinds - 1)
    if count > MOST_TYPES:
        raise ValidationError(
            f"releases: found {m}, which makes {count} types of {kinds} outputs; "
            f"at most {MOST_TYPES} are computed"
        )
    counts = np.array(list(_compositions(m, kinds)), dtype=float)
    logs = gammaln(m + 1) - gammaln(counts + 1).sum(axis=1)
    likelihood = [xlogy(counts, row).sum(axis=1) for row in reduced.matrix]
    rows = np.exp(logs + np.array(likelihood))
    # Rounding of the logarithms is undone as far as the sums show it.
    rows /= rows.sum(axis=1, keepdims=True)
    labels = [tuple(int(c) for c in type_) for type_ in counts]
    return Channel(rows, reduced.inputs, labels)


def repeated_releases(
    prior: Prior | ArrayLike,
    channel: Channel | ArrayLike,
    releases: int,
    delta: float,
    *,
    tie: float = TIE,
    tol: float = 1e-9,
    time_limit: float | None = None,
    work_limit: float | None = WORK_LIMIT,
) -> Bound:
    """Bound the PML envelope of independent releases of one mechanism.

    Parameters
    ----------
    prior : Prior or array_like, shape (k,)
        The distribution of the input.
    channel : Channel or array_like, shape (k, outputs)
        The rows q(y|x) of one release.
    releases : int
        Number of releases that are independent given the input, at least 1.
    delta, tie
        As for `PMLEnvelope`.
    tol, time_limit, work_limit
        As for `PMLEnvelope.solve`.

    Returns
    -------
    Bound
        The proof is for the stored channel of `release_types`; its rounding changes the envelope by
        about 1e-15 m log m. The witness maps types to symbols.

    Raises
    ------
    ValidationError
        If there are more than 10^5 types, or an argument is wrong.

    See Also
    --------
    cvxleak.envelope.composition_bound : The upper bound of ENVELOPE, from maximal leakage.

    Examples
    --------
    >>> from cvxleak.envelope import composition_bound
    >>> from cvxleak.envelope import repeated_releases
    >>> noisy = [[0.6, 0.4], [0.4, 0.6]]
    >>> round(repeated_releases([0.5, 0.5], noisy, 10, 0.1).upper, 4)
    0.6326
    >>> round(float(composition_bound([0.5, 0.5], [noisy] * 10, 0.1)), 4)
    4.1258
    """
    types = release_types(channel, releases)
    problem = PMLEnvelope(prior, types, delta, tie=tie)
    return problem.solve(tol=tol, time_limit=time_limit, work_limit=work_limit)


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield all tuples of non-negative integers with this sum, in lexicographic order."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _compositions(total - first, parts - 1):
            yield (first, *rest)
