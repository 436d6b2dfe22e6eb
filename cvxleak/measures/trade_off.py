"""The trade-off between the two errors of a test: f-differential privacy, the ROC of attacks."""

from __future__ import annotations

from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, frozen_array, plain_array
from cvxleak.measures._laws import law as law_of
from cvxleak.model import Channel, Mechanism, Prior, as_channel, as_prior

__all__ = ["record_trade_off", "trade_off"]


def trade_off(
    law: Prior | ArrayLike, reference: Prior | ArrayLike, false_alarms: ArrayLike
) -> Array:
    """Return T(P, R)(a), the least miss rate under R of tests with false-alarm rate a under P.

    T(a) = min of R(test says P) over all tests, including randomized ones, with P(test says R) <=
    a. It is convex, falls from at most 1 to 0, and is 1 - a if the distributions are equal. The
    curve of 1 - T(a) against a is the receiver operating characteristic (ROC).

    Parameters
    ----------
    law : Prior or array_like, shape (m,)
        The null distribution P of the output.
    reference : Prior or array_like, shape (m,)
        The alternative R, which the test is to detect; two `Prior` objects are matched by label.
    false_alarms : array_like
        Probabilities a in [0, 1], of any shape.

    Returns
    -------
    array, of the shape of `false_alarms`

    Raises
    ------
    ValidationError
        Arguments that are not distributions on the same outcomes; false alarms outside [0, 1].

    See Also
    --------
    record_trade_off : The least over datasets that differ in one record.
    cvxleak.differential_privacy.check_claim : Proves mu-GDP: that the curve is above that of
        N(0, 1) and N(mu, 1).

    Notes
    -----
    Dong, Roth and Su, "Gaussian differential privacy" (2022), Definition 2.1; the best tests are
    those of Neyman and Pearson.

    Examples
    --------
    >>> from cvxleak.measures import trade_off
    >>> trade_off([0.75, 0.25], [0.25, 0.75], [0.0, 0.1, 0.25, 1.0]).round(6)
    array([1.  , 0.7 , 0.25, 0.  ])
    """
    p = law_of(law)
    labels = law.labels if isinstance(law, Prior) else None
    r = as_prior(reference, len(p), "reference", labels).probabilities
    return _misses(p, r, _rates(false_alarms))


def record_trade_off(mechanism: Mechanism | Channel | ArrayLike, false_alarms: ArrayLike) -> Array:
    """Return the least T(P, R)(a) over the output distributions P and R of neighboring datasets.

    It is the f of f-differential privacy. An adversary who tests whether a person's record has one
    value or another, with a false-alarm probability of at most a, has a miss probability of at
    least f(a).

    Parameters
    ----------
    mechanism : Mechanism, Channel or array_like
        For a mechanism, pairs of datasets that differ in one record are compared; for a channel,
        all pairs of inputs.
    false_alarms : array_like
        Probabilities a in [0, 1], of any shape.

    Returns
    -------
    array, of the shape of `false_alarms`

    Raises
    ------
    ValidationError
        Rows that are not stochastic, or false alarms outside [0, 1].

    Notes
    -----
    Dong, Roth and Su (2022), Definition 2.3. With (epsilon, delta) of `record_privacy_profile`,
    it is at least max(0, 1 - delta - e^epsilon a, e^-epsilon (1 - delta - a)).

    Examples
    --------
    >>> from cvxleak.measures import record_trade_off
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(10_000), [(0, 1)] * 10_000, modulus=2)
    >>> float(record_trade_off(Mechanism(parity, [[0.75, 0.25], [0.25, 0.75]]), 0.1))
    0.7
    """
    rates = _rates(false_alarms)
    if isinstance(mechanism, Mechanism):
        rows, pairs = mechanism.channel.matrix, mechanism.query.neighbor_pairs()
        ordered = [*pairs, *((v, u) for u, v in pairs)]
    else:
        rows = as_channel(mechanism, "mechanism").matrix
        ordered = list(permutations(range(len(rows)), 2))
    least = 1.0 - rates
    for u, v in ordered:
        least = np.minimum(least, _misses(rows[u], rows[v], rates))
    return least


def _rates(false_alarms: ArrayLike) -> Array:
    rates = frozen_array(
        false_alarms, "false_alarms", plain_array(false_alarms, "false_alarms").ndim
    )
    if not ((rates >= 0) & (rates <= 1)).all():
        raise ValidationError(
            "false_alarms: found a number outside [0, 1]; probabilities are needed"
        )
    return np.asarray(rates, dtype=float)


def _misses(p: Array, r: Array, rates: Array) -> Array:
    """Return the errors of the tests that take the outputs with the largest R(y) / P(y)."""
    p, r = np.asarray(p, dtype=float), np.asarray(r, dtype=float)
    sure = float(r[p == 0].sum())  # what P excludes costs no false alarm
    seen = p > 0
    order = np.argsort(-(r[seen] / p[seen]), kind="stable")
    alarms = np.append(0.0, np.cumsum(p[seen][order]))
    hits = np.append(sure, sure + np.cumsum(r[seen][order]))
    return np.clip(1.0 - np.interp(rates, alarms, hits), 0.0, 1.0)
