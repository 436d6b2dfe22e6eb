"""A release kernel that somebody else's method found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cvxleak._validation import Array, short
from cvxleak.errors import ValidationError
from cvxleak.iterative._release_terms import ReleaseTerms
from cvxleak.problems.check import Check
from cvxleak.result import Bound, unit_scale

if TYPE_CHECKING:
    from cvxleak.problems.release.statement import ReleaseProblem

__all__ = ["candidate_kernel", "check_kernel", "information", "value_of"]


def check_kernel(problem: ReleaseProblem, candidate: Any, bound: Bound) -> Check:
    """Return what `ReleaseProblem.check` does."""
    flat = candidate_kernel(problem, candidate, "candidate")
    terms = problem.terms()
    rows = terms.rows(flat)
    positive = np.maximum(rows, 0.0)
    sums = positive.sum(axis=1, keepdims=True)
    if not sums.min() > 0:
        raise ValidationError("candidate: found a row without a positive entry")
    violations = {
        "entries are non-negative": max(0.0, -float(rows.min())),
        "rows sum to 1": float(np.abs(rows.sum(axis=1) - 1).max()),
    }
    kernel = positive / sums
    scale = unit_scale(problem.unit)
    leakages = terms.information(kernel)
    for coalition, room, leakage in zip(problem.coalitions, problem.rooms(), leakages, strict=True):
        if np.isfinite(room):
            seen = "R̂" if coalition.name == "epsilon" else "R̂,S"
            seen = "R̂,Z" if coalition.name == "delta" else seen
            excess = (float(leakage) - float(room)) / scale
            violations[f"I({seen};X) <= {coalition.name}"] = max(0.0, excess)
    value = value_of(problem, terms, kernel)
    if problem.utility == "information":
        return Check(value / scale, violations, bound.to(problem.unit), maximize=True)
    return Check(value, violations, bound, maximize=False)


def candidate_kernel(problem: ReleaseProblem, candidate: Any, name: str) -> Array:
    """Return finite numbers of a kernel's shape as an array of shape (Z, X, R̂)."""
    _, sizes, datasets = problem.joint.shape
    shape = (*sizes, datasets, len(problem.outputs))
    flat = (problem.joint.flat.shape[1], *shape[-2:])
    try:
        kernel = np.asarray(candidate, dtype=float)
    except (TypeError, ValueError) as error:
        raise ValidationError(
            f"{name}: expected an array of numbers, found {short(candidate)}"
        ) from error
    if kernel.shape not in (shape, flat):
        raise ValidationError(f"{name}: found shape {kernel.shape}; {shape} is needed")
    if not np.isfinite(kernel).all():
        raise ValidationError(f"{name}: found numbers that are not finite")
    return kernel.reshape(flat)


def value_of(problem: ReleaseProblem, terms: ReleaseTerms, kernel: Array) -> float:
    """Return the objective at a kernel's rows, in floating point: in units of d, or in nats."""
    law = problem.joint.flat / problem.joint.flat.sum()
    given = np.moveaxis(law, 0, 2)[terms.z, terms.x]  # p(r,z,x)
    joint = kernel.T @ given
    weights = law.sum(axis=0)
    paid = 0.0
    for coalition, leakage in zip(problem.coalitions, terms.information(kernel), strict=True):
        if coalition.price > 0:
            paid += coalition.price * (float(leakage) + information(weights, coalition.array))
    if problem.distortion is not None:
        return float((joint.T * problem.distortion.matrix).sum()) + paid
    independent = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    positive = joint > 0
    return float(joint[positive] @ np.log(joint[positive] / independent[positive])) - paid


def information(law: Array, classes: np.ndarray) -> float:
    """Return I(S;X) of a law p(z,x) and the class of each z; exactly 0 if there is one class."""
    if classes.max() == 0:
        return 0.0
    joint = np.zeros((classes.max() + 1, law.shape[1]))
    np.add.at(joint, classes, law)
    independent = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    positive = joint > 0
    return float(joint[positive] @ np.log(joint[positive] / independent[positive]))
