"""Priors of an adversary against what is known of them: by how much they miss it, in floats.

A certificate's witness is checked exactly, by its prover; the checker does not load this module.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

from cvxleak.core.validation import Array
from cvxleak.model.knowledge import Expectation, Knowledge, KnownMarginals, RelativeEntropyBall
from cvxleak.model.prior import Prior, as_prior
from cvxleak.model.query import Query
from cvxleak.model.restricted import Linear, Restricted
from cvxleak.model.space import check_table_size

__all__ = [
    "center",
    "expand",
    "function_values",
    "group_of_dataset",
    "lump",
    "violations_of_prior",
    "violations_of_weights",
]


def violations_of_prior(
    knowledge: Sequence[Knowledge], query: Query, prior: Array
) -> dict[str, float]:
    """Return, in words, by how much a prior (shaped like the space) misses (bound) knowledge."""
    return _worst((one.statement, _missed(one, query, prior)) for one in knowledge)


def _missed(known: Knowledge, query: Query, prior: Array) -> float:
    if isinstance(known, Expectation):
        mean = float((prior * function_values(known, query)).sum())
        below = 0.0 if known.at_least is None else known.at_least - mean
        above = 0.0 if known.at_most is None else mean - known.at_most
        return max(below, above, 0.0)
    if isinstance(known, KnownMarginals):
        laws = (
            prior.sum(axis=tuple(j for j in range(prior.ndim) if j != i))
            for i in known.records or ()
        )
        return max(float(np.abs(law - np.asarray(known.law)).max()) for law in laws)
    if isinstance(known, RelativeEntropyBall):
        used = prior > 0
        with np.errstate(divide="ignore"):
            logs = np.log(prior[used]) - np.log(center(known, query)[used])
        return max(float((prior[used] * logs).sum()) - known.radius, 0.0)
    raise TypeError(f"found {type(known).__name__}, of which nothing is known")


def function_values(known: Expectation, query: Query) -> Array:
    """Return c of an expectation for every dataset, shaped like the space (small spaces only)."""
    table = np.asarray(known.feature)
    if known.records is None:
        return table[(query if known.query is None else known.query).table()]
    return table[query.space.value_index(known.records).reshape(query.space.shape)]


def center(ball: RelativeEntropyBall, query: Query) -> Array:
    """Return p0 of a ball for every dataset, shaped like the space (small spaces only)."""
    shape = query.space.shape
    if ball.prior is not None:
        table = np.asarray(ball.prior)
        return table.reshape(shape) / table.sum()
    check_table_size(query.space)
    result = np.ones(())
    for law in ball.laws:
        result = np.multiply.outer(result, np.array(law) / sum(law))
    return result


def violations_of_weights(
    view: Restricted, weights: Array, knowledge: Sequence[Knowledge]
) -> dict[str, float]:
    """Return, in words, by how much lumped weights miss each piece of knowledge."""
    doubt = float(entr(weights).sum() + weights @ view.lumped.log_multiplicity)
    found = [(one.statement, 0.0) for one in knowledge]
    for ball in view.references:
        logs = [math.log(base) if base else 0.0 for base in ball.bases]
        mean = float(weights @ (np.array(ball.exponents) @ np.array(logs)))
        found.append((knowledge[ball.owner].statement, max(-doubt - mean - ball.radius, 0.0)))
    for one in view.equations:
        found.append((knowledge[one.owner].statement, abs(_off(one, weights))))
    for one in view.inequalities:
        found.append((knowledge[one.owner].statement, max(_off(one, weights), 0.0)))
    return _worst(found)


def _off(one: Linear, weights: Array) -> float:
    return float(weights @ np.array(one.coefficients)) - float(one.side)


def _worst(missed: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return the largest violation by each name: several pieces of knowledge may share one."""
    result: dict[str, float] = {}
    for name, amount in missed:
        result[name] = max(amount, result.get(name, 0.0))
    return result


def group_of_dataset(view: Restricted) -> NDArray[np.intp]:
    """Return the group of every dataset in product order, -1 for those left out."""
    width = len(view.joint.values)
    values = view.mechanism.space.value_index(view.looked_at)
    codes = values * width + view.joint.table().ravel()
    found, inverse = np.unique(codes, return_inverse=True)
    places = [view.places.get(divmod(int(code), width), -1) for code in found]
    return np.array(places, dtype=np.intp)[inverse.ravel()]


def expand(view: Restricted, weights: ArrayLike) -> Prior:
    """Return the prior on full datasets that spreads the weights evenly in each group."""
    groups = group_of_dataset(view)
    sizes = np.array(view.lumped.multiplicities, dtype=float)
    w = as_prior(weights, len(sizes), "weights").probabilities
    shares = np.append(w / sizes, 0.0)
    return Prior(shares[groups], view.mechanism.space.datasets())


def lump(view: Restricted, prior: Prior | ArrayLike) -> Array:
    """Return the lumped weights of a prior on full datasets; what is left out is lost."""
    groups = group_of_dataset(view)
    law = view.mechanism.space.law(prior)
    kept = groups >= 0
    size = len(view.lumped.multiplicities)
    return np.bincount(groups[kept], weights=law[kept], minlength=size).astype(float)
