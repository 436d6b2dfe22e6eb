"""The distortion problem as a conic program in plain CVXPY."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
from scipy.sparse import csr_array

from cvxleak.core.validation import Array
from cvxleak.iterative.release_terms import Groups
from cvxleak.release.statement import ReleaseProblem

__all__ = ["conic_program"]


def conic_program(problem: ReleaseProblem, distortion: Array) -> cp.Problem:
    """Return what `ReleaseDistortion.to_cvxpy` does.

    I(R̂;X|S) = sum p(s,x) k(r̂|s,x) log( k(r̂|s,x) / k(r̂|s) ): a cone for each (r̂,s,x). A coalition
    without room has linear equations instead.
    """
    terms = problem.terms()
    rooms = problem.rooms()
    law = problem.joint.flat / problem.joint.flat.sum()
    given = np.moveaxis(law, 0, 2)[terms.z, terms.x]
    outputs = len(problem.outputs)
    kernel = cp.Variable((len(terms.weights), outputs), name="kernel", nonneg=True)
    objective = cp.sum(cp.multiply(given @ distortion, kernel))
    # What the earlier outputs have told.
    paid = problem.paid(np.full((len(terms.weights), 1), 1.0))
    constraints: list[Any] = [cp.sum(kernel, axis=1) == 1]
    for stated, coalition, room in zip(problem.coalitions, terms.coalitions, rooms, strict=True):
        if not (stated.price > 0 or np.isfinite(room)):
            continue
        # k(r̂|s,x) and k(r̂|s): of order one, however small the probabilities are.
        first = coalition.pairs.first
        pairs = _means(coalition.pairs, terms.weights) @ kernel
        classes = cp.Variable((coalition.classes.size, outputs))
        constraints.append(classes == _means(coalition.classes, terms.weights) @ kernel)
        spread = classes[coalition.classes.index[first]]
        if room == 0:
            constraints.append(pairs == spread)
            continue
        weights = coalition.pairs.sums(terms.weights)[:, None] @ np.ones((1, outputs))
        information = cp.sum(cp.multiply(weights, cp.rel_entr(pairs, spread)))
        if stated.price > 0:
            objective = objective + stated.price * information
        if np.isfinite(room):
            constraints.append(information <= room)
    return cp.Problem(cp.Minimize(objective + paid), constraints)


def _means(groups: Groups, weights: Array) -> csr_array:
    """Return the matrix that takes weighted means over each group of rows."""
    shares = weights / groups.sums(weights)[groups.index]
    return csr_array((shares, (groups.index, np.arange(len(weights)))))
