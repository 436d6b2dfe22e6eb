"""Algorithms 1 and 2 of SEQUENTIAL: a release for given multipliers, by Blahut–Arimoto."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.clock import Clock
from cvxleak.core.validation import Array, generator, real_number, whole_number
from cvxleak.iterative.history import IterativeResult
from cvxleak.iterative.release_data import ReleaseData, information_loss, multipliers
from cvxleak.model import Distortion

__all__ = ["distortion_blahut_arimoto", "information_blahut_arimoto"]

Cost = Callable[[Array], Array]
"""Cost of each row and output at a kernel, given as logarithms."""


def distortion_blahut_arimoto(
    joint: ArrayLike,
    mu_1: float,
    mu_2: float,
    *,
    distortion: Distortion | ArrayLike | None = None,
    outputs: int | None = None,
    start: ArrayLike | None = None,
    tol: float = 1e-9,
    max_iterations: int = 100_000,
    time_limit: float | None = None,
) -> IterativeResult:
    r"""Minimize E d(R̂,R) + mu_1 I(R̂;X) + mu_2 I(R̂,Z;X) over kernels p(r̂|z,x).

    One update is

        p(r̂|z,x) <- ( q_1(r̂)^mu_1 q_2(z|r̂,x)^mu_1 q_3(r̂|z)^mu_2 e^{-E[d(r̂,R)|z,x]}
                     )^{1 / (mu_1 + mu_2)} / eta(z,x),

    where q_1, q_2 and q_3 are the distributions p(r̂), p(z|r̂,x) and p(r̂|z) of the whole previous
    kernel.

    Parameters
    ----------
    joint : array_like, shape (R, Z, X)
        The distribution p(r,z,x) of request, earlier outputs (taken together) and dataset.
    mu_1, mu_2 : float
        Multipliers >= 0, in units of distortion per nat (SEQUENTIAL counts in bits: its multiplier
        divided by log 2 is this one).
    distortion : Distortion or array_like, shape (R, outputs), optional
        d(r, r̂); Hamming if left out.
    outputs : int, optional
        The number of values of R̂; that of R if left out.
    start : array_like, shape (Z, X, outputs), optional
        Initial kernel, which determines the q_1, q_2, q_3 from which Algorithm 1 starts. If left
        out, the mean of the uniform kernel and the kernel of least distortion. Zero entries stay
        zero.
    tol : float
        Stop when the gap is at most this, in units of distortion.
    max_iterations : int
    time_limit : float, optional
        In seconds.

    Returns
    -------
    IterativeResult
        `value` is the objective and `point` the kernel, shape (Z, X, outputs); `history` has
        ``objective`` and ``gap``, by iterate. The optimum lies in [value - gap, value].

    Raises
    ------
    ValidationError
        Not a joint distribution, arguments that do not match it, or an option out of range.

    Notes
    -----
    SEQUENTIAL Algorithm 1, Proposition 1 and Theorem 1, with these corrections: the exponent of
    q_2 in the normalizer is mu_1, as in the numerator (line 5 prints mu_2); all of p is updated
    before q_1, q_2, q_3 are (the paper has lines 7 to 9 inside the sweep); and for mu_1 = mu_2 = 0,
    where the exponent 1 / (mu_1 + mu_2) is undefined, the result is the kernel of least expected
    distortion.

    Since q_1(r̂) q_2(z|r̂,x) p(x) / p(z,x) is p(r̂|z,x) over p(x|r̂) / p(x), an update equals

        log p <- log p - G / (mu_1 + mu_2) - log eta,
        G = E[d(r̂,R)|z,x] + mu_1 log( p(x|r̂) / p(x) ) + mu_2 log( p(x|r̂,z) / p(x|z) ),

    and is computed in this form, in logarithms, so that probabilities of outputs may tend to zero
    without underflow. G is the gradient of the objective divided by p(z,x). Since the objective is
    convex, and I is at least the mean of the log ratio of any other kernel, sum p(z,x) ( sum_r̂ p
    G - min_r̂ G ) bounds the distance to the optimum; this is ``gap``.

    Examples
    --------
    Table II(b) of the paper, whose multipliers are per bit:

    >>> import numpy as np
    >>> from cvxleak.iterative import distortion_blahut_arimoto
    >>> joint = [[[0.024, 0.228], [0.063, 0.203]], [[0.203, 0.013], [0.228, 0.038]]]
    >>> mu = 0.1 / np.log(2)
    >>> distortion_blahut_arimoto(joint, mu, mu).point.round(3)[:, :, 0]
    array([[0.041, 0.975],
           [0.143, 0.887]])
    """
    data = ReleaseData.of(joint, distortion, outputs)
    prices = multipliers(mu_1, mu_2)
    log_kernel = _halfway(data.cost) if start is None else data.start(start)
    return _descend(
        data, prices, lambda _: data.cost, log_kernel, tol, max_iterations, time_limit, True
    )


def information_blahut_arimoto(
    joint: ArrayLike,
    mu_1: float,
    mu_2: float,
    *,
    outputs: int | None = None,
    start: ArrayLike | None = None,
    restarts: int = 10,
    tol: float = 1e-9,
    max_iterations: int = 10_000,
    time_limit: float | None = None,
    rng: int | np.random.Generator | None = 0,
) -> IterativeResult:
    r"""Search for a small -I(R̂;R) + mu_1 I(R̂;X) + mu_2 I(R̂,Z;X) over kernels p(r̂|z,x).

    The updates are those of `distortion_blahut_arimoto`, with D( p(r|z,x) || q_4(r|r̂) ) in place
    of the expected distortion, where q_4 is the distribution of R given r̂ under the previous
    kernel. With mu_2 = 0 and Z - X - R it is the information bottleneck's iteration.

    Parameters
    ----------
    joint : array_like, shape (R, Z, X)
        The distribution p(r,z,x).
    mu_1, mu_2 : float
        Multipliers >= 0, without a unit.
    outputs : int, optional
        The number of values of R̂; that of R if left out.
    start : array_like, shape (Z, X, outputs), optional
        A kernel to start from, instead of random ones.
    restarts : int
        Number of random kernels to start from.
    tol : float
        Stop when the gap, which is zero at stationary kernels, is at most this many nats.
    max_iterations : int
        For each start.
    time_limit : float, optional
        In seconds, for all starts together.
    rng : int, numpy.random.Generator or None
        Seed of the random starts.

    Returns
    -------
    IterativeResult
        The run with the least objective; `value` is the objective at its last kernel, `point`. The
        objective is not convex, so this is only an upper bound on its minimum. `history` also has
        ``starts``, where the run from each start ended.

    Raises
    ------
    ValidationError
        Not a joint distribution, arguments that do not match it, or an option out of range.

    Notes
    -----
    SEQUENTIAL Algorithm 2, objective (13), with the corrections of `distortion_blahut_arimoto`.
    Tishby, Pereira and Bialek (1999) for mu_2 = 0. The objective never increases. For mu_1 = mu_2 =
    0 every row chooses the output of least divergence, as in the limit.

    Examples
    --------
    >>> from cvxleak.iterative import information_blahut_arimoto
    >>> joint = [[[0.45, 0.05]], [[0.05, 0.45]]]
    >>> run = information_blahut_arimoto(joint, 0.1, 0.1, rng=0)
    >>> -0.24 < run.value < -0.22
    True
    """
    data = ReleaseData.of(joint, None, outputs)
    prices = multipliers(mu_1, mu_2)
    whole_number(restarts, "restarts", 1)
    random = generator(rng)
    clock = Clock(time_limit)
    runs: list[IterativeResult] = []
    while len(runs) < (restarts if start is None else 1):
        if runs and clock.late:
            break
        run = _descend(
            data,
            prices,
            lambda log_kernel: information_loss(data, log_kernel),
            data.start(start, random),
            tol,
            max_iterations,
            clock.limit,
            False,
        )
        runs.append(run)
    best = min(runs, key=lambda run: run.value)
    return replace(best, history={**best.history, "starts": np.array([run.value for run in runs])})


def _descend(
    data: ReleaseData,
    prices: tuple[float, float],
    cost: Cost,
    log_kernel: Array,
    tol: float,
    max_iterations: int,
    time_limit: float | None,
    convex: bool,
) -> IterativeResult:
    real_number(tol, "tol", 0.0)
    whole_number(max_iterations, "max_iterations", 0)
    clock = Clock(time_limit)
    weights, total = data.terms.weights, sum(prices)
    # I(R̂,Z;X) = I(Z;X) + I(R̂;X|Z); the iteration sees the second term alone.
    constant = prices[1] * _earlier_information(data)
    history: dict[str, list[float]] = {"objective": [], "gap": []}
    while True:
        kernel, possible = np.exp(log_kernel), log_kernel > -math.inf
        gradient = cost(log_kernel)
        for price, ratio in zip(prices, data.terms.log_ratios(log_kernel), strict=True):
            if price > 0:
                gradient = gradient + price * np.where(possible, ratio, 0.0)
        mean = np.einsum("ij,ij->i", kernel, np.where(possible, gradient, 0.0))
        history["objective"].append(float(weights @ mean) + constant)
        history["gap"].append(float(weights @ (mean - gradient.min(axis=1))))
        iterations = len(history["gap"]) - 1
        if history["gap"][-1] <= tol:
            stopped = "the gap is within tol" if convex else "stationary within tol"
        elif iterations == max_iterations:
            stopped = "max_iterations reached"
        elif clock.late:
            stopped = "time_limit reached"
        else:
            if total > 0:
                log_kernel = log_kernel - gradient / total
                log_kernel = log_kernel - log_kernel.max(axis=1, keepdims=True)
                log_kernel = log_kernel - np.log(np.exp(log_kernel).sum(axis=1, keepdims=True))
            else:
                log_kernel = _least(gradient)
            continue
        point = data.terms.kernel(kernel)
        arrays = {name: np.array(values) for name, values in history.items()}
        return IterativeResult(history["objective"][-1], point, iterations, stopped, arrays)


def _least(cost: Array) -> Array:
    """Return the logarithms of the kernel that gives each row its cheapest output."""
    with np.errstate(divide="ignore"):
        return np.log(np.eye(cost.shape[1])[cost.argmin(axis=1)])


def _halfway(cost: Array) -> Array:
    outputs = cost.shape[1]
    return np.log(0.5 / outputs + 0.5 * np.eye(outputs)[cost.argmin(axis=1)])


def _earlier_information(data: ReleaseData) -> float:
    """Return I(Z;X), in nats."""
    terms = data.terms
    x = np.bincount(terms.x, terms.weights, minlength=terms.shape[1])[terms.x]
    return float(terms.weights @ (terms.coalitions[1].log_chance[:, 0] - np.log(x)))
