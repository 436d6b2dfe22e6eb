"""The capacity of the Gaussian channel under a bound on the absolute value of the input."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import entr

from cvxleak.core.errors import SolverError, ValidationError
from cvxleak.core.validation import Array, real_number
from cvxleak.model import Prior

__all__ = ["PeakCapacity", "gaussian_peak_capacity"]

TOLERANCE = 1e-9
LARGEST_RATIO = 10.0
STEP = 0.05
"""Step of the trapezoidal rule in the output; its error is far below 1e-15 for smooth densities."""
TAIL = 9.0
"""The standard Gaussian has less than 1e-18 of its mass beyond."""
NOISE_ENTROPY = math.log(2 * math.pi * math.e) / 2


@dataclass(frozen=True)
class PeakCapacity:
    """Lower and upper bound on the capacity of y = f + N(0, N) under |f| <= T.

    Attributes
    ----------
    lower : float
        Mutual information of `law` and its output, in nats.
    upper : float
        The largest divergence, over all inputs, of the noisy input from the output distribution of
        `law`. It bounds the capacity for any choice of `law`.
    law : Prior
        The input distribution found; its labels are finitely many numbers.

    Notes
    -----
    Built by `gaussian_peak_capacity`.

    Examples
    --------
    >>> from cvxleak.mechanisms import gaussian_peak_capacity
    >>> capacity = gaussian_peak_capacity(peak=1.0, variance=1.0)
    >>> round(capacity.lower, 6), round(capacity.upper, 6), capacity.law.labels
    (0.336831, 0.336831, (-1.0, 1.0))
    """

    lower: float
    upper: float
    law: Prior


def gaussian_peak_capacity(peak: float, variance: float) -> PeakCapacity:
    """Return the capacity of y = f + N(0, N) under the peak constraint |f| <= T.

    This, not ``gaussian_bound(peak, variance)``, is the largest C_1 of the Gaussian privacy
    channel. The optimal input has finitely many values (Smith), and their number grows with T /
    sqrt(N): up to about 1.67 only -T and T, then also 0, and so on.

    With D(x) the divergence of N(x, N) from an output distribution r, the capacity is at most max D
    for every r. For the optimal r it equals max D, and D is largest at the input's values. The
    values and weights are found by ascent (SLSQP) and refined by Newton's method on these
    conditions; a value is added where D is largest, until the two bounds agree.

    Accuracy: `upper` - `lower` is at most 1e-9 nats. Both are computed in floating point with the
    trapezoidal rule, whose error here is about 1e-14. Between the points where D is evaluated, it
    is bounded through its curvature, ``D'' = 1 - E[Var(X | Y)]`` for N = 1.

    Parameters
    ----------
    peak : float
        T, the largest |f|, positive and finite.
    variance : float
        N, the variance of the noise, positive and finite; T / sqrt(N) must not exceed 10 (that is a
        capacity of 1.75 nats; with less noise the output is close to exact).

    Returns
    -------
    PeakCapacity

    Raises
    ------
    ValidationError
        An argument is outside its range.
    SolverError
        The two bounds could not be brought within 1e-9 of each other.

    References
    ----------
    J. G. Smith, The information capacity of amplitude- and variance-constrained scalar Gaussian
    channels, Information and Control 18 (1971). DALENIUS Corollary 4 states the capacity under a
    power constraint instead.

    Examples
    --------
    >>> from cvxleak.mechanisms import gaussian_peak_capacity, gaussian_variance_for_leakage
    >>> capacity = gaussian_peak_capacity(1.0, gaussian_variance_for_leakage(1.0, 1.0))
    >>> round(capacity.lower, 6), round(capacity.upper, 6)
    (0.781432, 0.781432)
    >>> capacity.law.labels
    (-1.0, 0.0, 1.0)
    """
    largest = real_number(peak, "peak", 0, open_low=True, open_high=True)
    deviation = math.sqrt(real_number(variance, "variance", 0, open_low=True, open_high=True))
    ratio = largest / deviation
    if not 0 < ratio <= LARGEST_RATIO:
        raise ValidationError(
            f"peak: found {ratio:g} standard deviations of the noise; it must be positive and at "
            f"most {LARGEST_RATIO:g} of them"
        )
    # The distribution is symmetric: x holds the values that are not negative, w the weights of the
    # pairs.
    pairs = int(ratio / 2) + 1
    x, w = np.linspace(ratio, 0, pairs, endpoint=False)[::-1], np.full(pairs, 1 / pairs)
    grid = np.linspace(0, ratio, int(ratio / 0.01) + 21)
    lower, upper = 0.0, math.inf
    for _ in range(20):
        x, w = _merged(*_ascent(x, w, ratio), ratio)
        polished = _polished(x, w, ratio)
        lower, upper = _ends(*polished, ratio)
        if upper - lower <= TOLERANCE:
            return PeakCapacity(lower, upper, _law(*polished, deviation, largest))
        divergence = _divergence(grid, np.log(_output(x, w, ratio)), ratio)
        x, w = np.append(x, grid[divergence.argmax()]), np.append(0.99 * w, 0.01)
    raise SolverError(f"peak capacity: the bounds {lower:.12g} and {upper:.12g} did not meet")


def _outputs(ratio: float) -> Array:
    half = math.ceil((ratio + TAIL) / STEP)
    return STEP * np.arange(-half, half + 1.0)


def _density(x: Array, ratio: float) -> Array:
    return np.exp(-((_outputs(ratio) - x[:, None]) ** 2) / 2) / math.sqrt(2 * math.pi)


def _pair_density(x: Array, ratio: float) -> Array:
    return (_density(x, ratio) + _density(-x, ratio)) / 2


def _output(x: Array, w: Array, ratio: float) -> Array:
    return w @ _pair_density(x, ratio)


def _divergence(x: Array, log_output: Array, ratio: float) -> Array:
    return -NOISE_ENTROPY - STEP * _density(x, ratio) @ log_output


def _ascent(x: Array, w: Array, ratio: float) -> tuple[Array, Array]:
    """Return a local maximum of the information over the values and the weights."""
    size = len(x)

    def negative_entropy(point: Array) -> tuple[float, Array]:
        values, weights = np.split(point, 2)
        one = STEP * _density(values, ratio)
        # SLSQP tries weights that are negative by a rounding error.
        output = np.maximum(_output(values, weights, ratio), 1e-300)
        logs = np.log(output)
        moved = weights * (((_outputs(ratio) - values[:, None]) * one) @ logs)
        return STEP * float(output @ logs), np.concatenate([moved, one @ logs + 1])

    total = np.repeat([0.0, 1.0], size)
    found = minimize(
        negative_entropy,
        np.concatenate([x, w]),
        jac=True,
        method="SLSQP",
        bounds=[(0, ratio)] * size + [(0, 1)] * size,
        constraints={"type": "eq", "fun": lambda point: total @ point - 1, "jac": lambda _: total},
        options={"ftol": 1e-14, "maxiter": 200},
    )
    return found.x[:size], found.x[size:]


def _merged(x: Array, w: Array, ratio: float) -> tuple[Array, Array]:
    """Drop values of no weight and merge those nearer than 1/2: optimal ones are wider apart."""
    order = np.argsort(x)
    order = order[w[order] > 1e-8]
    x, w = x[order], w[order]
    cluster = np.concatenate([[0], np.cumsum(np.diff(x) > 0.5)])
    weights = np.bincount(cluster, w)
    values = np.bincount(cluster, w * x) / weights
    values[values > ratio - 1e-9] = ratio
    return values, weights / weights.sum()


def _polished(x: Array, w: Array, ratio: float) -> tuple[Array, Array]:
    """Newton's method on D(x_j) = C, D'(x_j) = 0 for 0 < x_j < ratio, and sum of w = 1."""
    for _ in range(40):
        by_x, by_w, largest = _newton_step(x, w, ratio)
        damped = min(1.0, 0.1 / max(np.abs(by_x).max(), 0.1), 0.9 / max((-by_w / w).max(), 0.9))
        x, w = np.clip(x + damped * by_x, 0, ratio), w + damped * by_w
        if largest < 1e-12:
            break
    kept = w > 1e-12
    # A pair that Newton's method has brought together at 0 is one value.
    return np.where(x > 1e-6, x, 0.0)[kept], w[kept] / w[kept].sum()


def _newton_step(x: Array, w: Array, ratio: float) -> tuple[Array, Array, float]:
    """Return the changes of x and w, and the largest change, that of the constant C included."""
    y, size = _outputs(ratio), len(x)
    diagonal = np.diag_indices(size)
    inner = np.flatnonzero((x > 0) & (x < ratio))
    one, mirrored = STEP * _density(x, ratio), STEP * _density(-x, ratio)
    slope = (y - x[:, None]) * one
    output = w @ (one + mirrored) / 2
    logs = np.log(output / STEP)
    pair_slope = (slope - (y + x[:, None]) * mirrored) / 2
    first, second = -slope @ logs, -(((y - x[:, None]) ** 2 - 1) * one) @ logs
    by_weight = (one + mirrored).T / (2 * output[:, None])
    by_value = (w[:, None] * pair_slope).T / output[:, None]
    level_by_value, slope_by_value = -one @ by_value, -slope @ by_value
    level_by_value[diagonal] += first
    slope_by_value[diagonal] += second
    level = -NOISE_ENTROPY - one @ logs
    residual = np.concatenate([level - w @ level, first[inner], [w.sum() - 1]])
    jacobian = np.zeros((len(residual), len(residual)))
    jacobian[:size, :size] = -one @ by_weight
    jacobian[:size, size:-1] = level_by_value[:, inner]
    jacobian[:size, -1] = -1
    jacobian[size:-1, :size] = -(slope @ by_weight)[inner]
    jacobian[size:-1, size:-1] = slope_by_value[np.ix_(inner, inner)]
    jacobian[-1, :size] = 1
    move: Array = np.linalg.solve(jacobian, -residual).astype(float)
    by_w, by_x = move[:size], np.zeros(size)
    by_x[inner] = move[size:-1]
    return by_x, by_w, float(np.abs(move).max())


def _ends(x: Array, w: Array, ratio: float) -> tuple[float, float]:
    """Return the information of a distribution and the bound that its output proves."""
    y = _outputs(ratio)
    plus, minus = w[:, None] * _density(x, ratio) / 2, w[:, None] * _density(-x, ratio) / 2
    output = (plus + minus).sum(axis=0)
    variance = x**2 @ (plus + minus) / output - (x @ (plus - minus) / output) ** 2
    # D'' >= -curvature, so between two points D exceeds its ends by curvature distance^2 / 8.
    curvature = max(float(variance.max()) - 1, 0.0)
    logs = np.log(output)
    lower = STEP * float(entr(output).sum()) - NOISE_ENTROPY
    grid = np.linspace(0, ratio, int(ratio / 0.1) + 11)
    left, right = grid[:-1], grid[1:]
    at_left, at_right = (_divergence(side, logs, ratio) for side in (left, right))
    best = float(max(at_left.max(), at_right.max()))
    while len(left) <= 20 * len(y):
        bound = np.maximum(at_left, at_right) + curvature * (right - left) ** 2 / 8
        unsettled = bound > best + TOLERANCE / 100
        if not unsettled.any():
            return lower, best + TOLERANCE / 100
        left, right, at_left, at_right = (
            side[unsettled] for side in (left, right, at_left, at_right)
        )
        middle = (left + right) / 2
        at_middle = _divergence(middle, logs, ratio)
        best = max(best, float(at_middle.max()))
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        at_left, at_right = (
            np.concatenate([at_left, at_middle]),
            np.concatenate([at_middle, at_right]),
        )
    return lower, math.inf


def _law(x: Array, w: Array, deviation: float, peak: float) -> Prior:
    points = np.minimum(deviation * x, peak)
    zero = points == 0
    values = np.concatenate([-points[~zero][::-1], points])
    halves = np.where(zero, w, w / 2)
    return Prior(np.concatenate([halves[~zero][::-1], halves]), values)
