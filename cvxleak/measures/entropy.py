"""Entropy of a prior, and of the lumped form of an adversary's prior."""

from __future__ import annotations

from numpy.typing import ArrayLike
from scipy.special import entr

from cvxleak.measures._laws import law, lumped_law
from cvxleak.model import Lumped, Prior

__all__ = ["entropy", "lumped_entropy"]


def entropy(prior: Prior | ArrayLike) -> float:
    """Return the Shannon entropy H(X) = -sum_x p(x) log p(x), in nats.

    Parameters
    ----------
    prior : Prior or array_like, shape (k,)
        The distribution of X; 0 log 0 = 0.

    Raises
    ------
    ValidationError
        If the probabilities are not a distribution.

    Examples
    --------
    >>> from cvxleak.measures import entropy
    >>> round(entropy([0.5, 0.25, 0.25, 0.0]), 6)
    1.039721
    """
    return float(entr(law(prior)).sum())


def lumped_entropy(weights: Prior | ArrayLike, lumped: Lumped) -> float:
    """Return the largest entropy H(X) of a prior on datasets with given lumped weights, in nats.

    F(w) = -sum_g w_g log w_g + sum_g w_g log m_g: the mass w_g of a group of m_g datasets is
    spread evenly over them. It is the entropy of `Mechanism.expand(record, weights)`, without
    writing out the datasets.

    Parameters
    ----------
    weights : Prior or array_like, shape (N,)
        Probability of each group of `lumped`.
    lumped : Lumped
        Built by `Mechanism.lumped`.

    Raises
    ------
    ValidationError
        If the weights are not a distribution on the N groups.

    Examples
    --------
    >>> from cvxleak.measures import lumped_entropy
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> count = AdditiveQuery(RecordSpace.binary(20), [(0, 1)] * 20)
    >>> lumped = Mechanism(count, [[1.0]] * 21).lumped(0)
    >>> round(lumped_entropy(lumped.uniform(), lumped), 6)  # 20 log 2
    13.862944
    """
    w = lumped_law(weights, lumped)
    return float((entr(w) + w * lumped.log_multiplicity).sum())
