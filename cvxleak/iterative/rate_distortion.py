"""The rate-distortion function of one distribution by Blahut's iteration."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.validation import Array, real_number, whole_number
from cvxleak.iterative.history import IterativeResult
from cvxleak.model import Distortion, Prior, as_prior

__all__ = ["RatePoint", "blahut_rate_distortion"]


class RatePoint(NamedTuple):
    """The `point` of the result of `blahut_rate_distortion`.

    Attributes
    ----------
    channel : array, shape (n, m)
        q(y|x), proportional to r(y) e^{-s d(x,y)} in y.
    output : array, shape (m,)
        r, a distribution on the outputs.
    slope : float
        s = -dR/dD, the decrease of the information per unit of distortion.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.iterative import blahut_rate_distortion
    >>> blahut_rate_distortion([0.5, 0.5], [[0, 1], [1, 0]], np.log(3)).point.slope
    1.0986122886681098
    """

    channel: Array
    output: Array
    slope: float


def blahut_rate_distortion(
    prior: Prior | ArrayLike,
    distortion: Distortion | ArrayLike,
    slope: float,
    *,
    tol: float = 1e-9,
    max_iterations: int = 100_000,
) -> IterativeResult:
    """Minimize I(X;Y) + s E d(X,Y) by Blahut's iteration: r_y <- r_y g_y.

    g_y = sum_x p_x e^{-s d_xy} / c_x with c_x = sum_y r_y e^{-s d_xy}. This is the plain method,
    for comparison. It may need 10^5 updates where Newton's method
    (`cvxleak.design.design_for_prior`) needs ten steps.

    Parameters
    ----------
    prior : Prior or array_like, shape (n,)
        The distribution p of X.
    distortion : Distortion or array_like, shape (n, m)
        d(x, y) >= 0.
    slope : float
        s >= 0, nats per unit of d.
    tol : float
        Stop when log max_y g_y, an upper bound on the gap in nats, is at most this.
    max_iterations : int
        Largest number of updates.

    Returns
    -------
    IterativeResult
        `point` is a `RatePoint`; `history` has ``objective`` and ``gap`` per iterate and ``step``
        sum_y |change of r_y| per update.

    Raises
    ------
    ValidationError
        Arguments that do not match each other.

    Notes
    -----
    Blahut, IEEE Trans. Inf. Theory 18 (1972), 460.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.iterative import blahut_rate_distortion
    >>> run = blahut_rate_distortion([0.5, 0.5], [[0.0, 1.0], [1.0, 0.0]], np.log(9))
    >>> run.point.channel.round(6)
    array([[0.9, 0.1],
           [0.1, 0.9]])
    """
    s = real_number(slope, "slope", 0.0, open_high=True)
    enough = real_number(tol, "tol", 0.0)
    cap = whole_number(max_iterations, "max_iterations", 0)
    p, d = _law_and_costs(prior, distortion)
    least = d.min(axis=1)
    tilt = np.exp(-s * (d - least[:, None]))
    r = np.full(d.shape[1], 1 / d.shape[1])
    history: dict[str, list[float]] = {"objective": [], "gap": [], "step": []}
    while True:
        c = tilt @ r
        g = (p / c) @ tilt
        objective, gap = float(s * (p @ least) - p @ np.log(c)), math.log(g.max())
        history["objective"].append(objective)
        history["gap"].append(gap)
        if gap <= enough or len(history["step"]) == cap:
            break
        history["step"].append(float(np.abs(r * g - r).sum()))
        r = r * g
    stopped = "the gap is within tol" if gap <= enough else "max_iterations reached"
    point = RatePoint(tilt * r / c[:, None], r, s)
    arrays = {name: np.array(values) for name, values in history.items()}
    return IterativeResult(objective, point, len(history["step"]), stopped, arrays)


def _law_and_costs(
    prior: Prior | ArrayLike, distortion: Distortion | ArrayLike
) -> tuple[Array, Array]:
    labels = distortion.inputs if isinstance(distortion, Distortion) else None
    costs = distortion if isinstance(distortion, Distortion) else Distortion(distortion)
    law = as_prior(prior, len(costs.inputs), "prior", labels)
    d = costs.matrix
    return law.probabilities / law.probabilities.sum(), d
