"""Arguments and probability distributions that several measures share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp

from cvxleak.core.validation import Array, instance, probability_rows
from cvxleak.model import Channel, Lumped, Mechanism, Prior, as_channel, as_prior
from cvxleak.model.channel import Labels
from cvxleak.model.labels import channel_labels
from cvxleak.model.prior import named_law

Records = int | Sequence[int]
"""A record's index, or distinct indices of a group that is taken as one record."""


def law(prior: Prior | ArrayLike) -> Array:
    """Return the probabilities of a prior on any outcomes, shape (k,)."""
    known = named_law(prior)
    if isinstance(known, Prior):
        return known.probabilities
    return probability_rows(known, "prior", 1)


def aligned(
    prior: Prior | ArrayLike, channel: Channel | ArrayLike, labels: Labels | None = None
) -> tuple[Array, Array]:
    """Return p(x), shape (k,), and q(y|x), shape (k, m), that fit each other.

    A prior's labels are matched to the channel's inputs, or to `labels` if these have none.
    """
    rows = as_channel(channel).matrix
    p = as_prior(prior, len(rows), labels=channel_labels(channel)[0] or labels)
    return p.probabilities, rows


def lumped_law(weights: Prior | ArrayLike, lumped: Lumped) -> Array:
    """Return the probabilities of the groups, shape (N,)."""
    size = len(instance(lumped, Lumped, "lumped").multiplicities)
    return as_prior(weights, size, "weights").probabilities


def record_mass(prior: Prior | ArrayLike, mechanism: Mechanism, records: Records) -> Array:
    """Return P(X_I = a, f(X) = v), shape (values of X_I, values of f)."""
    space = instance(mechanism, Mechanism, "mechanism").space
    place, p = space.value_index(records), space.law(prior)
    # Each value is that of some dataset.
    size, width = int(place.max()) + 1, len(mechanism.query.values)
    code = place * width + mechanism.query.table().ravel()
    mass = np.bincount(code, weights=p, minlength=size * width).astype(float)
    return mass.reshape(size, width)


def record_law(
    prior: Prior | ArrayLike, mechanism: Mechanism, records: Records
) -> tuple[Array, Array]:
    """Return p(x_I) and p(y|x_I); the row of a value of probability zero is zero."""
    mass = record_mass(prior, mechanism, records)
    p = mass.sum(axis=1)
    # Divide before mixing the rows: probabilities near the smallest float stay normalized.
    given = np.divide(mass, p[:, None], out=np.zeros_like(mass), where=p[:, None] > 0)
    return p, given @ mechanism.channel.matrix


def density(p: Array, rows: Array) -> Array:
    """Return log(q(y|x) / p(y)) where p(x) q(y|x) > 0, and -inf elsewhere.

    The distribution of the output is summed on the logarithmic scale, so that products of tiny
    probabilities do not vanish from it.
    """
    with np.errstate(divide="ignore"):
        log_rows = np.log(rows)
        log_output = np.asarray(logsumexp(np.log(p)[:, None] + log_rows, axis=0))
    seen = (p[:, None] > 0) & (rows > 0)
    return np.subtract(log_rows, log_output, out=np.full(rows.shape, -np.inf), where=seen)
