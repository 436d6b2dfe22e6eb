"""Arguments and probability laws that several measures share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from cvxleak._validation import Array, probability_rows
from cvxleak.model import Channel, Mechanism, Prior, RecordSpace, as_channel, as_prior

Records = int | Sequence[int]
"""A record's index, or distinct indices of a group that is taken as one record."""


def law(prior: Prior | ArrayLike) -> Array:
    """Return the probabilities of a prior on any outcomes, shape (k,)."""
    if isinstance(prior, Prior):
        return prior.probabilities
    if hasattr(prior, "iloc"):
        return Prior.from_pandas(prior).probabilities
    return probability_rows(prior, "prior", 1)


def aligned(prior: Prior | ArrayLike, channel: Channel | ArrayLike) -> tuple[Array, Array]:
    """Return p(x), shape (k,), in the order of the channel's inputs, and q(y|x), shape (k, m)."""
    q = as_channel(channel)
    return as_prior(prior, len(q.inputs), labels=q.inputs).probabilities, q.matrix


def dataset_law(prior: Prior | ArrayLike, space: RecordSpace) -> Array:
    """Return p(x) for all datasets in product order, shape (|X|,)."""
    named = isinstance(prior, Prior) or hasattr(prior, "iloc")
    labels = tuple(space.datasets()) if named else None
    return as_prior(prior, space.size, labels=labels).probabilities


def record_value(space: RecordSpace, group: tuple[int, ...]) -> tuple[NDArray[np.intp], int]:
    """Return the index of x_I for every dataset x in product order, and the number of values."""
    axes = np.indices(space.shape, sparse=True)
    shape = [space.shape[i] for i in group]
    place = np.ravel_multi_index([axes[i] for i in group], shape)
    return np.broadcast_to(place, space.shape).ravel(), int(np.prod(shape))


def record_mass(prior: Prior | ArrayLike, mechanism: Mechanism, group: tuple[int, ...]) -> Array:
    """Return P(X_I = a, f(X) = v), shape (values of X_I, values of f)."""
    p = dataset_law(prior, mechanism.space)
    place, size = record_value(mechanism.space, group)
    width = len(mechanism.query.values)
    code = place * width + mechanism.query.table().ravel()
    mass = np.bincount(code, weights=p, minlength=size * width).astype(float)
    return mass.reshape(size, width)


def record_law(
    prior: Prior | ArrayLike, mechanism: Mechanism, group: tuple[int, ...]
) -> tuple[Array, Array]:
    """Return p(x_I) and p(y|x_I); the row of a value of probability zero is zero."""
    mass = record_mass(prior, mechanism, group)
    p = mass.sum(axis=1)
    # Divide before mixing the rows: probabilities near the smallest float stay normalized.
    given = np.divide(mass, p[:, None], out=np.zeros_like(mass), where=p[:, None] > 0)
    return p, given @ mechanism.channel.matrix


def density(p: Array, rows: Array) -> Array:
    """Return log(q(y|x) / p(y)) where p(x) q(y|x) > 0, and -inf elsewhere.

    The law of the output is summed on the logarithmic scale, so that products of tiny
    probabilities do not vanish from it.
    """
    with np.errstate(divide="ignore"):
        log_rows = np.log(rows)
        log_output = np.asarray(logsumexp(np.log(p)[:, None] + log_rows, axis=0))
    seen = (p[:, None] > 0) & (rows > 0)
    return np.subtract(log_rows, log_output, out=np.full(rows.shape, -np.inf), where=seen)
