"""Joint Blahut–Arimoto at many entropy floors at once, each start with a floor of its own."""

from __future__ import annotations

import numpy as np

from cvxleak.core.validation import Array
from cvxleak.iterative.entropy_floor import least_mixture, rounding
from cvxleak.iterative.formulas import information
from cvxleak.iterative.joint_update import Updater, ascend
from cvxleak.model import Lumped

__all__ = ["climb_at_floors"]


def climb_at_floors(
    lumped: Lumped, floors: Array, starts: Array, *, max_iterations: int, tol: float
) -> tuple[Array, Array, Array]:
    """Follow lumped priors, shape (S, N), to better ones that meet the floors, shape (S,).

    The method is that of `joint_blahut_arimoto`. Returned are the priors, their information and the
    floors' multipliers.
    """
    updater = Updater(lumped, 0.0)
    margin = rounding(lumped.max_entropy)
    # A little more than the floor, so that rounding does not miss it.
    aims = np.minimum(floors + 2 * margin, lumped.max_entropy)
    loose = aims < lumped.max_entropy - margin
    uniform = lumped.uniform()
    weights = np.tile(uniform, (len(starts), 1))
    values = np.tile(information(updater.joint(weights[:1])), len(starts))
    multipliers = np.zeros(len(starts))
    if loose.any():
        count = int(loose.sum())
        current = updater.update(
            updater.joint(starts[loose]), np.full(count, 0.1), np.ones(count), aims[loose]
        )
        ascend(updater, current, aims[loose], max_updates=max_iterations, least_gain=tol)
        weights[loose] = [
            least_mixture(w, uniform, lumped.log_multiplicity, b)
            for w, b in zip(current.weights, floors[loose].tolist(), strict=True)
        ]
        values[loose], multipliers[loose] = current.value, current.multiplier
    return weights, values, multipliers
