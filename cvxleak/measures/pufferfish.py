"""Pufferfish and membership privacy, for finitely many beliefs and secrets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, frozen_array, in_order, plain_array
from cvxleak.measures._laws import aligned
from cvxleak.model import Channel, Prior, as_channel

__all__ = ["membership_epsilon", "pufferfish_epsilon", "secret_pairs"]

Pairs = Iterable[Sequence[ArrayLike]]


def pufferfish_epsilon(
    channel: Channel | ArrayLike, priors: Iterable[Prior | ArrayLike], pairs: Pairs
) -> float:
    """Return the least epsilon of Pufferfish privacy, in nats.

    max over beliefs theta, pairs (s, s') of secrets in either order, and outputs y of
    log( P(y|s, theta) / P(y|s', theta) ). Pairs of which a belief rules out a secret do not count
    for this belief.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x), of a mechanism those of `Mechanism.to_channel`.
    priors : iterable of Prior or array_like, each of shape (k,)
        The beliefs theta on the inputs.
    pairs : iterable of pairs of array_like, each of shape (k,)
        The secrets s and s' that must not be told apart: for each input whether, or with which
        probability, it has the secret.

    Returns
    -------
    float
        inf if an output is possible for one secret of a pair only.

    Raises
    ------
    ValidationError
        If a prior or a secret does not match the channel, there is no prior or pair, or the
        probability of a secret is out of range.

    See Also
    --------
    cvxleak.constraints.pufferfish : As a constraint, linear in the channel.
    record_dp_epsilon : The largest value over all product priors, for the values of one record.

    Notes
    -----
    DALENIUS (51); Kifer and Machanavajjhala (ACM TODS 39, 2014). A mixture of beliefs can have a
    larger epsilon than each of them, so the priors are what they are, not their hull.

    Examples
    --------
    Two bits are released, each with flip 0.1. If they are surely equal, twice as much is told about
    the first.

    >>> import numpy as np
    >>> from cvxleak.measures import pufferfish_epsilon
    >>> bit = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> both = np.kron(bit, bit)  # datasets 00, 01, 10, 11
    >>> secrets = [([1, 1, 0, 0], [0, 0, 1, 1])]
    >>> independent, equal = [0.25] * 4, [0.5, 0, 0, 0.5]
    >>> [round(pufferfish_epsilon(both, [p], secrets), 4) for p in (independent, equal)]
    [2.1972, 4.3944]
    """
    worst = 0.0
    for one, other in _outputs(channel, priors, pairs):
        with np.errstate(divide="ignore"):
            seen = (one > 0) | (other > 0)
            losses = np.log(one[seen]) - np.log(other[seen])
        worst = max(worst, float(np.abs(losses).max()))
    return worst


def membership_epsilon(
    channel: Channel | ArrayLike,
    priors: Iterable[Prior | ArrayLike],
    events: Iterable[ArrayLike],
) -> float:
    """Return the least epsilon of membership privacy, in nats.

    max over beliefs, events E and outputs y of log( P(E|y) / P(E) ): by what factor an output
    raises the probability that the person's entry is in the data.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x), of a mechanism those of `Mechanism.to_channel`.
    priors : iterable of Prior or array_like, each of shape (k,)
        The beliefs on the inputs.
    events : iterable of array_like, each of shape (k,)
        For each input whether, or with which probability, the entry is in it.

    Raises
    ------
    ValidationError
        As for `pufferfish_epsilon`, for events in place of pairs.

    See Also
    --------
    event_leakage : With the roles exchanged: an event of outputs, and all inputs.

    Notes
    -----
    DALENIUS (52); Li, Qardaji, Su, Wu and Yang (CCS 2013).

    Examples
    --------
    >>> from cvxleak.measures import membership_epsilon
    >>> noisy = [[0.75, 0.25], [0.25, 0.75]]
    >>> round(membership_epsilon(noisy, [[0.5, 0.5], [0.75, 0.25]], [[1, 0]]), 6)  # log 1.5
    0.405465
    """
    sure = np.ones(as_channel(channel).shape[0])
    pairs = [(event, sure) for event in in_order(events, "events")]
    worst = 0.0
    for one, output in _outputs(channel, priors, pairs, "events"):
        seen = one > 0
        worst = max(worst, float(np.log(one[seen] / output[seen]).max()))
    return worst


def secret_pairs(
    size: int, priors: Iterable[Prior | ArrayLike], pairs: Pairs, name: str = "pairs"
) -> Iterator[tuple[Array, Array]]:
    """Yield P(x|s) and P(x|s') for each belief and pair whose secrets it allows."""
    beliefs = in_order(priors, "priors")
    read = [in_order(pair, f"{name}[{k}]") for k, pair in enumerate(in_order(pairs, name))]
    if not beliefs or not read:
        raise ValidationError(
            f"{name if beliefs else 'priors'}: found none; at least one is needed"
        )
    secrets = []
    for k, pair in enumerate(read):
        if len(pair) != 2:
            raise ValidationError(f"{name}[{k}]: found {len(pair)} secrets; two are needed")
        shares = [frozen_array(plain_array(s, f"{name}[{k}]"), f"{name}[{k}]", 1) for s in pair]
        for share in shares:
            if len(share) != size or not ((share >= 0) & (share <= 1)).all():
                raise ValidationError(
                    f"{name}[{k}]: found shape {share.shape} with entries from "
                    f"{share.min(initial=0):g} to {share.max(initial=0):g}; {size} numbers in "
                    "[0, 1] are needed"
                )
        secrets.append(shares)
    for belief in beliefs:
        p, _ = aligned(belief, np.eye(size))
        for one, other in secrets:
            masses = float(p @ one), float(p @ other)
            if min(masses) > 0:
                yield p * one / masses[0], p * other / masses[1]


def _outputs(
    channel: Channel | ArrayLike,
    priors: Iterable[Prior | ArrayLike],
    pairs: Pairs,
    name: str = "pairs",
) -> Iterator[tuple[Array, Array]]:
    rows = as_channel(channel).matrix
    for one, other in secret_pairs(len(rows), priors, pairs, name):
        yield one @ rows, other @ rows
