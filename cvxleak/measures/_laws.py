"""Arguments and probability laws that several measures share."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from cvxleak.errors import ValidationError
from cvxleak.model import Channel, Mechanism, Prior, RecordSpace, as_channel, as_prior
from cvxleak.model._validation import Array, whole_number
from cvxleak.model._value import preview

Records = int | Sequence[int]
"""A record's index, or distinct indices of a group that is taken as one record."""


def aligned(prior: Prior | ArrayLike, channel: Channel | ArrayLike) -> tuple[Array, Array]:
    """Return p(x), shape (k,), and q(y|x), shape (k, m), of a prior that fits the channel."""
    q = as_channel(channel)
    p = as_prior(prior, len(q.inputs))
    _check_labels(p, q.inputs, "the channel's inputs")
    return p.probabilities, q.matrix


def dataset_law(prior: Prior | ArrayLike, space: RecordSpace) -> Array:
    """Return p(x) for all datasets in product order, shape (|X|,)."""
    p = as_prior(prior, space.size)
    if not _is_plain(p.labels):
        _check_labels(p, tuple(space.datasets()), "the datasets in product order")
    return p.probabilities


def _check_labels(prior: Prior, labels: tuple[Hashable, ...], what: str) -> None:
    """Refuse labels in another order: matching them by position would give a wrong number."""
    if prior.labels != labels and not _is_plain(prior.labels) and not _is_plain(labels):
        raise ValidationError(
            f"prior: its labels are {preview(prior.labels)}; they must be {what}, {preview(labels)}"
        )


def _is_plain(labels: tuple[Hashable, ...]) -> bool:
    return labels == tuple(range(len(labels)))


def record_group(space: RecordSpace, records: Records, name: str = "records") -> tuple[int, ...]:
    """Return the checked indices of a record or of a group of records."""
    group = tuple(records) if isinstance(records, Sequence) else (records,)
    checked = tuple(whole_number(i, name, 0, space.records - 1) for i in group)
    if not checked or len(set(checked)) != len(checked):
        raise ValidationError(f"{name}: found {records!r}; distinct indices are needed")
    return checked


def record_value(space: RecordSpace, group: tuple[int, ...]) -> tuple[NDArray[np.intp], int]:
    """Return the index of x_I for every dataset x in product order, and the number of values."""
    axes = np.indices(space.shape, sparse=True)
    shape = [space.shape[i] for i in group]
    place = np.ravel_multi_index([axes[i] for i in group], shape)
    return np.broadcast_to(place, space.shape).ravel(), int(np.prod(shape))


def value_rows(mechanism: Mechanism) -> Array:
    """Return the output law for each value of the query, shape (values, outputs)."""
    place = {label: row for row, label in enumerate(mechanism.channel.inputs)}
    return mechanism.channel.matrix[[place[value] for value in mechanism.query.values]]


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
    return p, given @ value_rows(mechanism)


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
