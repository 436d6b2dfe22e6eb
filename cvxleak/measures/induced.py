"""The channel from one record to the output, under a prior on the datasets.

Every measure of a channel and a prior becomes a measure of a record through these two functions,
for example ``maximal_leakage(*record_channel(mechanism, prior, 0))``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.validation import composed_rows
from cvxleak.measures._laws import Records, lumped_law, record_law
from cvxleak.model import Channel, Lumped, Mechanism, Prior

__all__ = ["lumped_channel", "record_channel"]


def record_channel(
    mechanism: Mechanism, prior: Prior | ArrayLike, records: Records
) -> tuple[Channel, Prior]:
    """Return p(y|x_i) = sum over x_{-i} of p(x_{-i}|x_i) q(y|x) and p(x_i), under a prior.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism q(y|x).
    prior : Prior or array_like, shape (|X|,)
        The adversary's knowledge p(x): a distribution on the datasets. A `Prior` labeled by the
        datasets is matched by label, an array is in product order, the last record varying fastest.
    records : int or sequence of int
        A record, or a group of records I that is taken as one: X_I in place of X_i.

    Returns
    -------
    (Channel, Prior)
        Values of probability zero have no conditional distribution and are left out of both.

    Raises
    ------
    ValidationError
        If the prior does not match the space, or the records are not distinct indices in it.

    Notes
    -----
    LEAKAGE section 7.1 (notation); DALENIUS eq. (14).

    Examples
    --------
    >>> from cvxleak.measures import record_channel
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> mechanism = Mechanism(parity, [[0.75, 0.25], [0.25, 0.75]])
    >>> channel, law = record_channel(mechanism, [0.5, 0.0, 0.25, 0.25], 0)
    >>> law.probabilities, channel.matrix
    (array([0.5, 0.5]), array([[0.75, 0.25],
           [0.5 , 0.5 ]]))
    """
    p, rows = record_law(prior, mechanism, records)
    values = mechanism.space.values(records)
    seen = np.flatnonzero(p > 0)
    labels = [values[a] for a in seen]
    rows = composed_rows(rows[seen])
    return Channel(rows, labels, mechanism.outputs), Prior(composed_rows(p[seen]), labels)


def lumped_channel(weights: Prior | ArrayLike, lumped: Lumped) -> tuple[Channel, Prior]:
    """Return p(y|a) and p(a) of a record A whose prior is given by lumped weights.

    p(a) = sum_{g of a} w_g and p(a) p(y|a) = s_{a,y} = sum_{g of a} w_g R_g(y).

    Parameters
    ----------
    weights : Prior or array_like, shape (N,)
        Probability of each group of `lumped`.
    lumped : Lumped
        Built by `Mechanism.lumped`.

    Returns
    -------
    (Channel, Prior)
        Values of probability zero have no conditional distribution and are left out of both.

    Raises
    ------
    ValidationError
        If the weights are not a distribution on the N groups.

    Examples
    --------
    >>> from cvxleak.measures import lumped_channel
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> mechanism = Mechanism(parity, [[0.75, 0.25], [0.25, 0.75]])
    >>> weights = mechanism.lump(0, [0.5, 0.0, 0.25, 0.25])
    >>> channel, law = lumped_channel(weights, mechanism.lumped(0))
    >>> law.probabilities, channel.matrix
    (array([0.5, 0.5]), array([[0.75, 0.25],
           [0.5 , 0.5 ]]))
    """
    w = lumped_law(weights, lumped)
    laws, rows, labels = [], [], []
    for a, label in enumerate(lumped.values):
        groups = lumped.value_index == a
        mass = w[groups].sum()
        if mass > 0:
            laws.append(mass)
            rows.append((w[groups] / mass) @ lumped.rows[groups])
            labels.append(label)
    matrix = composed_rows(np.array(rows))
    return Channel(matrix, labels, lumped.outputs), Prior(composed_rows(np.array(laws)), labels)
