"""The problem behind one release, `cvxleak.release`, for the present classes of histories."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

from cvxleak.core.validation import Array
from cvxleak.desk.budgets import Limits
from cvxleak.desk.history import History, check_size
from cvxleak.desk.realized import RealizedHistory
from cvxleak.model import Channel, Distortion
from cvxleak.problem.bound import Bound
from cvxleak.proofs.bounds.release_law import SIZE_LIMIT as PROOF_LIMIT
from cvxleak.release import release_problem

__all__ = ["SLACK", "TOLERANCE", "solve_kernel"]

TOLERANCE = 1e-6
"""The gap to reach, as a share of the range of the distortion."""
SLACK = 1e-13
"""Nats that are added to the problem's budgets, and a share of the distortion.

It is more than the rounding of the distribution to floats can change, so that a request that is
infeasible in the problem is infeasible at the desk.
"""


def solve_kernel(
    history: History | RealizedHistory,
    looker: str | None,
    request: Channel,
    distortion: Distortion,
    limits: Limits,
    time_limit: float | None,
) -> tuple[Array, Bound]:
    """Return p(rhat | seen, x) of a nearly optimal kernel, and bounds on the least distortion.

    The kernel of the problem may depend on the views of all observers. Here it is averaged over
    what the desk's kernel does not see. This keeps the distortion, the joint distribution of
    output, class and data, and that of output, own outputs and data.
    """
    if isinstance(history, RealizedHistory):
        room = min(budget - history.spent(who) for who, budget in limits.items())
        # If something was spent, which is rounded up, only that rounding is left.
        eased = room + SLACK if min(limits.values()) > 0 else 0.0
        joint = _joint(history.seen().values(), request)
        problem = release_problem(joint, eased, distortion=distortion.matrix)
        bound = problem.solve(tol=TOLERANCE, time_limit=time_limit)
        return bound.witness.reshape(1, len(request.inputs), -1), bound
    keys = list(history.table)
    outputs = len(request.outputs)
    # The problem has two coalitions of its own besides those with limits.
    rows = sum(q != 0 for masses in history.table.values() for q in masses)
    check_size(rows * outputs * max(3 + len(limits), outputs), PROOF_LIMIT)
    law = _joint(history.table.values(), request)
    views: list[NDArray[np.intp]] = [np.arange(len(keys))]
    budgets = [limits[None]]
    for who, budget in limits.items():
        if who is not None:
            place = history.observers.index(who)
            numbers = [key.views[place] for key in keys]
            views.append(np.unique(np.array(numbers), return_inverse=True)[1])
            budgets.append(budget)
    # A coalition that sees more must not have a smaller budget; otherwise the smaller one is used
    # for both.
    least = [
        _eased(min(b for other, b in zip(views, budgets, strict=True) if _refines(other, mine)))
        for mine in views
    ]
    problem = release_problem(
        law, coalitions=list(zip(views, least, strict=True)), distortion=distortion.matrix
    )
    bound = problem.solve(tol=TOLERANCE, time_limit=time_limit)
    mass = law.sum(axis=(0, 2))
    places = {seen: place for place, seen in enumerate(history.seen(looker))}
    seen = np.array([places[history.of(key, looker)] for key in keys])
    share = mass / np.bincount(seen, mass)[seen]
    kernel = np.zeros((len(places), *bound.witness.shape[1:]))
    np.add.at(kernel, seen, share[:, None, None] * bound.witness)
    return kernel, bound


def _eased(budget: float) -> float:
    """Return a budget with `SLACK`; 0, which is exact, as it is."""
    return budget + SLACK if budget > 0 else 0.0


def _refines(fine: NDArray[np.intp], coarse: NDArray[np.intp]) -> bool:
    """Whether the classes of `fine` lie inside those of `coarse`."""
    return len(np.unique(np.stack([fine, coarse]), axis=1)[0]) == len(np.unique(fine))


def _joint(masses: Iterable[tuple[fmpq, ...]], request: Channel) -> Array:
    """Return p(r, z, x) in floats, shape (R, Z, X)."""
    law = np.array([[int(q.p) / int(q.q) for q in row] for row in masses])
    rows = request.matrix / request.matrix.sum(axis=1, keepdims=True)
    joint = law[None, :, :] * rows.T[:, None, :]
    return joint / joint.sum()
