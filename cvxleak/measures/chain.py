"""Chain rules: the information of a group split by records, and of a composition by outputs.

DALENIUS Lemmas 3 and 4. Both say that what is learned second is learned by an ordinary adversary:
one whose prior is the first one's, conditioned on what is known by then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, in_order, instance
from cvxleak.measures._laws import Records
from cvxleak.measures.information import record_information
from cvxleak.model import Channel, Mechanism, Prior

__all__ = ["ChainRule", "composition_chain_rule", "group_chain_rule"]


@dataclass(frozen=True, eq=False)
class ChainRule:
    """An information split by the chain rule: I(first) + sum_v p(v) I(second given v).

    Attributes
    ----------
    first : float
        The information learned first, in nats.
    condition : Prior
        The distribution of what the first step reveals, on its values v of positive probability.
    priors : tuple of Prior
        For each v, the conditional prior on datasets.
    second : array
        For each v, the information learned by the adversary with that prior, in nats.

    Notes
    -----
    Built by `group_chain_rule` and `composition_chain_rule`.

    Examples
    --------
    The exact parity of two fair bits leaks nothing about the first bit alone and one bit about
    both:

    >>> from cvxleak.measures import group_chain_rule
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> rule = group_chain_rule(Mechanism(parity, [[1.0, 0.0], [0.0, 1.0]]), [0.25] * 4, 0, 1)
    >>> round(rule.first, 6), rule.second.round(6), round(rule.total, 6)
    (0.0, array([0.693147, 0.693147]), 0.693147)
    """

    first: float
    condition: Prior
    priors: tuple[Prior, ...]
    second: Array

    @property
    def total(self) -> float:
        """The information of both steps, in nats."""
        return self.first + float(self.condition.probabilities @ self.second)


def group_chain_rule(
    mechanism: Mechanism, prior: Prior | ArrayLike, first: Records, second: Records
) -> ChainRule:
    """Return I(X_I;Y) = I(X_F;Y) + sum_v p(x_F = v) I(X_S^v; Y^v), where I is the union of F and S.

    X^v has the distribution of X given x_F = v, and Y^v is the mechanism's output for X^v.

    Parameters
    ----------
    mechanism : Mechanism
        The mechanism q(y|x).
    prior : Prior or array_like, shape (|X|,)
        The adversary's knowledge p(x) on the datasets; arrays are in product order.
    first, second : int or sequence of int
        The two parts F and S of the group; they must not overlap.

    Returns
    -------
    ChainRule
        `condition` is labeled by the values of x_F (tuples if `first` is a sequence), `priors` by
        the datasets. Values of probability zero are left out.

    Raises
    ------
    ValidationError
        If the prior does not match the space, or the records are not distinct indices in it.

    Notes
    -----
    DALENIUS Lemma 3, (35).

    Examples
    --------
    >>> from cvxleak.measures import group_chain_rule
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> rule = group_chain_rule(Mechanism(parity, [[0.9, 0.1], [0.1, 0.9]]), [0.25] * 4, 0, 1)
    >>> round(rule.total, 6), rule.second.round(6)
    (0.368064, array([0.368064, 0.368064]))
    >>> rule.priors[1].probabilities
    array([0. , 0. , 0.5, 0.5])
    """
    space = instance(mechanism, Mechanism, "mechanism").space
    head, tail = space.group(first), space.group(second)
    if set(head) & set(tail):
        raise ValidationError(f"second: found {second!r}; it must not overlap first {first!r}")
    values = space.values(first)
    known = space.value_index(first)[:, None] == np.arange(len(values))
    seen = Channel(known.astype(float), space.datasets(), values)
    return _chain(prior, seen, (mechanism, head), (mechanism, tail))


def composition_chain_rule(
    mechanisms: tuple[Mechanism, Mechanism], prior: Prior | ArrayLike, records: Records
) -> ChainRule:
    """Return I(X_i;Y1,Y2) = I(X_i;Y2) + sum_v p(y2 = v) I(X_i^v; Y1^v) for two releases.

    The releases have independent noise. X^v has the distribution of X given that the second
    mechanism released v, and Y1^v is the first mechanism's output for X^v.

    Parameters
    ----------
    mechanisms : pair of Mechanisms
        The mechanisms of Y1 and Y2, on one space.
    prior : Prior or array_like, shape (|X|,)
        The adversary's knowledge p(x) on the datasets; arrays are in product order.
    records : int or sequence of int
        A record i, or a group that is taken as one.

    Returns
    -------
    ChainRule
        `first` is I(X_i;Y2), `condition` is labeled by the outputs v that can occur, `priors` by
        the datasets.

    Raises
    ------
    ValidationError
        If the prior does not match the space, the mechanisms are not on one space, or the records
        are not distinct indices in it.

    Notes
    -----
    DALENIUS Lemma 4, (40).

    Examples
    --------
    >>> from cvxleak.measures import composition_chain_rule, record_information
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> noisy = Mechanism(parity, [[0.9, 0.1], [0.1, 0.9]])
    >>> prior = [0.5, 0.0, 0.5, 0.0]
    >>> rule = composition_chain_rule((noisy, noisy), prior, 0)
    >>> round(rule.total, 6), round(record_information(noisy.product(noisy), prior, 0), 6)
    (0.514375, 0.514375)
    """
    pair = in_order(mechanisms, "mechanisms")
    if len(pair) != 2:
        raise ValidationError(f"mechanisms: found {len(pair)}; a pair is needed")
    y1, y2 = (instance(one, Mechanism, f"mechanisms[{i}]") for i, one in enumerate(pair))
    if y1.space != y2.space:
        raise ValidationError(
            f"mechanisms: found the spaces {y1.space!r} and {y2.space!r}; they must be equal"
        )
    return _chain(prior, y2.to_channel(), (y2, records), (y1, records))


def _chain(
    prior: Prior | ArrayLike,
    seen: Channel,
    first: tuple[Mechanism, Records],
    second: tuple[Mechanism, Records],
) -> ChainRule:
    """Return I(first) and, for every outcome of `seen`, what the adversary who saw it learns."""
    posterior, output = seen.posterior(prior), seen.output(prior)
    priors = tuple(Prior(row, posterior.outputs) for row in posterior.matrix)
    return ChainRule(
        record_information(first[0], prior, first[1]),
        Prior([output[value] for value in posterior.inputs], posterior.inputs),
        priors,
        np.array([record_information(second[0], given, second[1]) for given in priors]),
    )
