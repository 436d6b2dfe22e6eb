"""Distortion: how far the released output is from the truth, on average."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import composed_rows, in_order, instance
from cvxleak.measures._laws import aligned
from cvxleak.model import Channel, Distortion, Mechanism, Prior, as_channel
from cvxleak.model.labels import channel_labels, distortion_matrix

__all__ = ["expected_distortion", "mechanism_distortion", "worst_case_distortion"]


def expected_distortion(
    channel: Channel | ArrayLike, prior: Prior | ArrayLike, distortion: Distortion | ArrayLike
) -> float:
    """Return E d(X, Y) = sum_{x,y} p(x) q(y|x) d(x, y), in the unit of d.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    prior : Prior or array_like, shape (k,)
        The true distribution of the input.
    distortion : Distortion or array_like
        A `Distortion` is matched to a `Channel` by label and may have more labels than it. Where
        the channel is an array, a `Prior` is matched to the `Distortion` by label. Everything else
        is matched by position and has shape (k, m).

    Raises
    ------
    ValidationError
        If prior, channel and distortion do not match.

    See Also
    --------
    mechanism_distortion : For a prior on datasets.

    Examples
    --------
    >>> from cvxleak.measures import expected_distortion
    >>> from cvxleak.model import Distortion
    >>> rounding = [[1.0, 0.0], [0.5, 0.5]]
    >>> expected_distortion(rounding, [0.5, 0.5], Distortion.hamming([0, 1]))
    0.25
    """
    shape = as_channel(channel).shape
    d = distortion_matrix(distortion, shape, *channel_labels(channel))
    labels = distortion.inputs if isinstance(distortion, Distortion) else None
    p, rows = aligned(prior, channel, labels)
    return float((p[:, None] * rows * d).sum())


def worst_case_distortion(
    channel: Channel | ArrayLike,
    priors: Iterable[Prior | ArrayLike],
    distortion: Distortion | ArrayLike,
) -> float:
    """Return the largest expected distortion over a set of sources, in the unit of d.

    Expected distortion is linear in the prior, so a set of sources and its convex hull give the
    same number.

    Parameters
    ----------
    channel, distortion
        As in `expected_distortion`.
    priors : iterable of Prior or array_like, each of shape (k,)
        The possible true distributions of the input, at least one.

    Raises
    ------
    ValidationError
        If there are no priors, or priors, channel and distortion do not match.

    Notes
    -----
    HAMMING section II-B.

    Examples
    --------
    >>> from cvxleak.measures import worst_case_distortion
    >>> from cvxleak.model import Distortion
    >>> rounding = [[1.0, 0.0], [0.5, 0.5]]
    >>> worst_case_distortion(rounding, [[0.5, 0.5], [0.0, 1.0]], Distortion.hamming([0, 1]))
    0.5
    """
    if isinstance(priors, Prior):
        raise ValidationError("priors: found one Prior; a list of sources is needed")
    sources = in_order(priors, "priors")
    values = [expected_distortion(channel, prior, distortion) for prior in sources]
    if not values:
        raise ValidationError("priors: found none; at least one source is needed")
    return max(values)


def mechanism_distortion(
    mechanism: Mechanism, prior: Prior | ArrayLike, distortion: Distortion | ArrayLike
) -> float:
    """Return E d(f(X), Y) = sum_{x,y} p(x) q(y|x) d(f(x), y), in the unit of d.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism: a query f and a channel.
    prior : Prior or array_like, shape (|X|,)
        The true distribution of the dataset; arrays are in product order. Where the datasets are
        too many to write out, use `expected_distortion` with a distribution on the query's values.
    distortion : Distortion or array_like
        A `Distortion` is matched by label: its inputs are values of the query. An array of shape
        (values of f, outputs) is matched by position.

    Raises
    ------
    ValidationError
        If prior, mechanism and distortion do not match.

    Notes
    -----
    LEAKAGE Definition 2.2.

    Examples
    --------
    >>> from cvxleak.measures import mechanism_distortion
    >>> from cvxleak.model import AdditiveQuery, Distortion, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> mechanism = Mechanism(parity, [[0.75, 0.25], [0.25, 0.75]])
    >>> mechanism_distortion(mechanism, [0.25] * 4, Distortion.hamming([0, 1]))
    0.25
    """
    p = instance(mechanism, Mechanism, "mechanism").space.law(prior)
    law_of_value = np.bincount(mechanism.query.table().ravel(), weights=p).astype(float)
    return expected_distortion(mechanism.channel, composed_rows(law_of_value), distortion)
