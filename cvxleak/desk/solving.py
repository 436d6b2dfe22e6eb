"""The problem behind one release, `cvxleak.problems.release`, for the histories as they stand."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from flint import fmpq

from cvxleak._validation import Array
from cvxleak.desk.budgets import Limits
from cvxleak.desk.history import History
from cvxleak.desk.realized import RealizedHistory
from cvxleak.model import Channel, Distortion
from cvxleak.problems.release import release_problem

__all__ = ["solve_kernel"]

TOLERANCE = 1e-6


def solve_kernel(
    history: History | RealizedHistory,
    request: Channel,
    distortion: Distortion,
    limits: Limits,
    time_limit: float | None,
) -> tuple[Array, float]:
    """Return p(rhat | c, x) of a nearly optimal kernel, and a lower end of the least distortion.

    The kernel of the problem may look at the views of the observers as well as at the class; here
    it is averaged over them, which keeps the distortion and the joint law of output and data.
    """
    if isinstance(history, RealizedHistory):
        room = min(budget - history.leakage(who)[1] for who, budget in limits.items())
        joint = _joint([history.joint[0]], request)
        problem = release_problem(joint, max(room, 0.0), distortion=distortion.matrix)
        bound = problem.solve(tol=TOLERANCE, time_limit=time_limit)
        return bound.witness.reshape(1, len(request.inputs), -1), bound.lower
    keys = list(history.table)
    law = _joint(history.table.values(), request)
    coalitions = []
    for who, budget in limits.items():
        if who is None:
            classes = np.arange(len(keys))
        else:
            place = history.observers.index(who)
            classes = np.array([views[place] for views, _ in keys])
            # Who sees more must not be allowed less.
            wider = [other for seers, other in limits.items() if seers is None or who <= seers]
            budget = min(wider)
        coalitions.append((classes, budget))
    problem = release_problem(law, coalitions=coalitions, distortion=distortion.matrix)
    bound = problem.solve(tol=TOLERANCE, time_limit=time_limit)
    mass = law.sum(axis=(0, 2))
    classes = np.array([c for _, c in keys])
    share = mass / np.bincount(classes, mass)[classes]
    kernel = np.zeros((history.classes, *bound.witness.shape[1:]))
    np.add.at(kernel, classes, share[:, None, None] * bound.witness)
    return kernel, bound.lower


def _joint(masses: Iterable[tuple[fmpq, ...]], request: Channel) -> Array:
    """Return p(r, z, x) in floats, shape (R, Z, X)."""
    law = np.array([[int(q.p) / int(q.q) for q in row] for row in masses])
    rows = request.matrix / request.matrix.sum(axis=1, keepdims=True)
    joint = law[None, :, :] * rows.T[:, None, :]
    return joint / joint.sum()
