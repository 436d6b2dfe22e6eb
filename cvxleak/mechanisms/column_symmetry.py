"""Channels whose rows are permutations of one another, and a bound on their leakage."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, real_number, short
from cvxleak.model import Channel, Mechanism
from cvxleak.model.channel import as_channel

__all__ = ["column_symmetric_bound", "is_column_symmetric", "is_weakly_symmetric"]

ENTRIES = 20_000_000
"""Most numbers that the search for a weakly symmetric choice holds at a time."""


def is_column_symmetric(subject: Channel | Mechanism | ArrayLike, tol: float = 1e-12) -> bool:
    """Whether all rows of a channel are permutations of one another.

    Parameters
    ----------
    subject : Channel, Mechanism or array_like
        For a mechanism, only the rows of query values that occur are compared.
    tol : float
        Absolute tolerance of the comparison of the sorted rows.

    Returns
    -------
    bool

    Raises
    ------
    ValidationError
        Not a channel, or a negative tolerance.

    References
    ----------
    DALENIUS Definition 11.

    Examples
    --------
    >>> from cvxleak.mechanisms import is_column_symmetric, randomized_response, truncated_geometric
    >>> is_column_symmetric(randomized_response(4, 1.0))
    True
    >>> is_column_symmetric(truncated_geometric(4, 1.0))
    False
    """
    slack = real_number(tol, "tol", 0)
    ordered = np.sort(np.concatenate(_rows(subject, 0)), axis=1)
    return bool((np.abs(ordered - ordered[0]) <= slack).all())


def is_weakly_symmetric(
    subject: Channel | Mechanism | ArrayLike, record: int | None = None, tol: float = 1e-12
) -> bool:
    """Whether a channel is column-symmetric and some choice of its rows has constant column sums.

    A choice takes, for one record, one row for each of its values: the row of any context of the
    other records. A channel without record space counts as a mechanism with one record, so all its
    rows are taken.

    If it is, `column_symmetric_bound` equals C_1, attained by a uniform record (DALENIUS Corollary
    2). The condition is sufficient but not necessary: equality holds whenever some distribution on
    some of the record's values, with one row for each, makes the output uniform.

    Parameters
    ----------
    subject : Channel, Mechanism or array_like
        The channel.
    record : int, optional
        The record whose rows are chosen; all records are tried if left out. Only for a mechanism.
    tol : float
        Absolute tolerance of each comparison.

    Returns
    -------
    bool

    Raises
    ------
    ValidationError
        Not a channel, an index that is not a record, or a record with too many choices of rows to
        search (the search holds at most 20 million entries of partial sums).

    References
    ----------
    DALENIUS Definition 12.

    Examples
    --------
    >>> from cvxleak.mechanisms import binary_symmetric, generalized_symmetric, is_weakly_symmetric
    >>> from cvxleak.model import Mechanism
    >>> from cvxleak.queries import modular_sum, parity
    >>> is_weakly_symmetric(Mechanism(parity(4), binary_symmetric(0.3)))
    True

    With a binary record a choice has two of the three rows, and their sum is not constant:

    >>> noise = generalized_symmetric(3, 0.3)
    >>> is_weakly_symmetric(noise), is_weakly_symmetric(Mechanism(modular_sum(4, 3), noise))
    (True, False)
    """
    slack = real_number(tol, "tol", 0)
    if record is None and isinstance(subject, Mechanism):
        records: list[int] = [group[0] for group in subject.groups(1)]
    elif record is None or isinstance(subject, Mechanism):
        records = [0 if record is None else record]
    else:
        raise ValidationError(
            f"record: found {record!r}, but subject is a channel, which has no records; leave "
            "it out"
        )
    if not is_column_symmetric(subject, slack):
        return False
    return any(_constant_choice(_rows(subject, i), slack) for i in records)


def column_symmetric_bound(subject: Channel | Mechanism | ArrayLike) -> float:
    """Return ``log |Y| - H(Z)``, a bound on the individual channel capacity C_1.

    Z has the distribution of any row. The bound is attained if the channel is weakly symmetric
    (`is_weakly_symmetric`). If it is at most epsilon, epsilon-information privacy holds.

    Parameters
    ----------
    subject : Channel, Mechanism or array_like
        A column-symmetric channel.

    Returns
    -------
    float
        In nats, from 0 to log |Y|.

    Raises
    ------
    ValidationError
        The channel is not column-symmetric.

    References
    ----------
    DALENIUS eq. (28) and Corollary 2.

    Examples
    --------
    >>> from cvxleak.mechanisms import column_symmetric_bound, generalized_symmetric
    >>> round(column_symmetric_bound(generalized_symmetric(3, 0.3)), 6)
    0.279804
    """
    rows = np.concatenate(_rows(subject, 0))
    if not is_column_symmetric(subject):
        raise ValidationError(
            "subject: found rows that are not permutations of one another; "
            "the bound is for column-symmetric channels"
        )
    return max(0.0, math.log(rows.shape[1]) - float(entr(rows[0]).sum()))


def _rows(subject: Channel | Mechanism | ArrayLike, record: int) -> list[Array]:
    """Return, for each value of a record, the rows that it can have."""
    if isinstance(subject, Mechanism):
        lumped = subject.lumped(record)
        return np.split(lumped.rows, lumped.starts[1:])
    return list(as_channel(subject, "subject").matrix[:, None, :])


def _constant_choice(choices: list[Array], tol: float) -> bool:
    """Whether one row from each element of `choices` can be taken so that their sum is constant."""
    width = choices[0].shape[1]
    target, slack = len(choices) / width, len(choices) * tol
    sums = np.zeros((1, width))
    for rows in choices:
        if sums.size * len(rows) > ENTRIES:
            raise ValidationError(
                f"record: found {short(math.prod(map(len, choices)))} choices of rows for its "
                f"values; the search stops at {ENTRIES} entries of partial sums"
            )
        sums = (sums[:, None, :] + rows).reshape(-1, width)
        # No row is negative: a sum that is too large in one column stays so. At the end none is too
        # small either, since the columns add up to len(choices).
        sums = np.unique(sums[(sums <= target + slack).all(axis=1)], axis=0)
    return len(sums) > 0
