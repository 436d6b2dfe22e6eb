"""Mirror-prox for designs with fixed priors: a first-order method with its own duality gap."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import rel_entr, softmax

from cvxleak.core.clock import Clock
from cvxleak.core.validation import real_number, whole_number
from cvxleak.core.work import spend
from cvxleak.iterative.design_terms import DesignTerms, dual_bound
from cvxleak.iterative.formulas import Array
from cvxleak.iterative.history import IterativeResult

__all__ = ["DesignPoint", "mirror_prox"]

LEAST_STEP = 1e-12


class DesignPoint(NamedTuple):
    """The `point` of the result of `mirror_prox`.

    Attributes
    ----------
    channel : array, shape (n, m)
        q(y|x).
    reference : array, shape (n, m)
        The channel at which the tangents of the dual bound are taken; scaling a column changes
        nothing.
    weights : array, shape (K,)
        w_k >= 0 of the secrets.
    prices : array, shape (J,)
        mu_j >= 0 of the sources' distortions.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.iterative import DesignPoint
    >>> half = np.full((2, 2), 0.5)
    >>> DesignPoint(half, half, weights=np.ones(1), prices=np.ones(1)).channel.shape
    (2, 2)
    """

    channel: Array
    reference: Array
    weights: Array
    prices: Array


def mirror_prox(
    secrets: Iterable[ArrayLike],
    sources: Iterable[ArrayLike],
    distortion: ArrayLike,
    slope: float,
    *,
    tol: float = 1e-6,
    max_iterations: int = 20_000,
    time_limit: float | None = None,
) -> IterativeResult:
    r"""Minimize max_k I(A_k;Y) + s max_j E_j d(X,Y) over the channel, by mirror-prox.

    It is independent of the searches of `cvxleak.design` and of CVXPY's solvers, for a comparison
    of the three.

    Parameters
    ----------
    secrets : iterable of array_like, each of shape (n,), or each of shape (A_k, n)
        Distributions of the input X, for I_k = I(X;Y) under the k-th distribution; or joint
        distributions P_k(a, x) of a secret (a record's value) and the input.
    sources : iterable of array_like, each of shape (n,)
        The distributions p_j of the input for the expected distortions.
    distortion : array_like, shape (n, m)
        d(x, y) >= 0.
    slope : float
        s >= 0, nats per unit of d.
    tol : float
        Stop when the duality gap is at most this many nats.
    max_iterations : int
        Largest number of extragradient steps.
    time_limit : float, optional
        Seconds after which the best point so far is returned.

    Returns
    -------
    IterativeResult
        `value` is the objective at the `point`, a `DesignPoint`. `history` has ``objective`` (the
        least so far), ``lower`` (the largest dual bound so far) and ``gap``, their difference, at
        the iterates at which they were evaluated, and ``step`` per update.

    Raises
    ------
    ValidationError
        Arguments that do not match each other.

    Notes
    -----
    The saddle function sum_k w_k I_k(q) + s sum_j nu_j E_j(q) is convex in q and linear in the
    distributions w and nu (Nemirovski, SIAM J. Optim. 15, 2004). The prox function is entropy, that
    of row x weighted by the row's mass, and the step adapts to the operator's change along it. With
    one distribution of X and one source, a step of length 1 is Blahut's iteration. The objective
    and a lower bound, from the tangent, are evaluated at the current iterate and at the mean of all
    iterates. A further lower bound is sum_x min_y of the mean of all gradients in q; it is valid
    because each gradient gives a tangent, and with it the gap of the means is O(1/k). The `point`'s
    reference and multipliers are those of the best single tangent.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.iterative import mirror_prox
    >>> fair, hamming = [0.5, 0.5], [[0.0, 1.0], [1.0, 0.0]]
    >>> run = mirror_prox([fair], [fair], hamming, np.log(9))
    >>> round(run.value, 6)  # log 2 - h(0.1) + 0.1 log 9
    0.587787
    """
    terms = DesignTerms.checked(secrets, sources, distortion)
    s = real_number(slope, "slope", 0.0, open_high=True)
    enough = real_number(tol, "tol", 0.0)
    cap = whole_number(max_iterations, "max_iterations", 0)
    clock = Clock(time_limit)
    saddle = _Saddle(terms, s)
    now, eta = saddle.start(), 1.0
    history: dict[str, list[float]] = {name: [] for name in ("objective", "lower", "gap", "step")}
    total, mean, costs = 0.0, now, np.zeros_like(now.q)
    upper, lower, tangent = math.inf, -math.inf, -math.inf
    best = tangents = prices = now
    due = 0
    while True:
        steps = len(history["step"])
        ended = steps == cap or clock.late
        if steps >= due or ended:
            due = steps + 1 + steps // 8
            for point in (now, mean):
                value = saddle.value(point.q)
                if value < upper:
                    upper, best = value, point
                for multipliers in (now, mean):
                    bound = saddle.bound(point.q, multipliers)
                    if bound > tangent:
                        tangent, tangents, prices = bound, point, multipliers
            lower = max(lower, tangent, float(costs.min(axis=1).sum()))
            for name, number in zip(
                ("objective", "lower", "gap"), (upper, lower, upper - lower), strict=True
            ):
                history[name].append(number)
            if upper - lower <= enough:
                stopped = "the gap is within tol"
                break
            if ended:
                stopped = "max_iterations reached" if steps == cap else "time_limit reached"
                break
        spend(5e5 + 100 * now.q.size * (len(terms.secrets) + len(terms.costs)))
        here = saddle.operator(now)
        while True:
            half = saddle.prox(now, here, eta)
            there = saddle.operator(half)
            ahead = saddle.prox(now, there, eta)
            change = eta * saddle.pairing(here, there, half, ahead)
            if change <= saddle.distance(half, now) + saddle.distance(ahead, half) + 1e-15:
                break
            if eta < LEAST_STEP:
                break
            eta /= 2
        total += eta
        share = eta / total
        mean = _Point(*(a + share * (b - a) for a, b in zip(mean, half, strict=True)))
        costs += share * (there.q - costs)
        now = ahead
        history["step"].append(eta)
        eta *= 1.2
    point = DesignPoint(best.q, tangents.q, prices.w, s * prices.nu)
    arrays = {name: np.array(values) for name, values in history.items()}
    return IterativeResult(upper, point, len(history["step"]), stopped, arrays)


class _Point(NamedTuple):
    """A channel, a distribution on secrets and one on sources; or the operator at such a point."""

    q: Array
    w: Array
    nu: Array


class _Saddle:
    """The saddle function's operator, its prox steps and distances."""

    def __init__(self, terms: DesignTerms, slope: float) -> None:
        self.terms, self.slope = terms, slope
        masses = [table if terms.total else table.sum(axis=0) for table in terms.secrets]
        self.mass = np.maximum(np.mean(masses, axis=0), 1e-3 / terms.shape[0])[:, None]

    def start(self) -> _Point:
        k, j = len(self.terms.secrets), len(self.terms.costs)
        n, m = self.terms.shape
        return _Point(np.full((n, m), 1 / m), np.full(k, 1 / k), np.full(j, 1 / j))

    def value(self, q: Array) -> float:
        leak = float(self.terms.information(q).max())
        return leak + self.slope * float(self.terms.distortions(q).max())

    def bound(self, q: Array, multipliers: _Point) -> float:
        slopes = self.terms.slopes(q)
        return dual_bound(self.terms, slopes, multipliers.w, self.slope * multipliers.nu)

    def operator(self, point: _Point) -> _Point:
        slopes = self.terms.slopes(point.q)
        cost = self.slope * np.tensordot(point.nu, self.terms.costs, 1)
        spent = self.terms.distortions(point.q)
        leak = self.terms.information(point.q, slopes)
        return _Point(np.tensordot(point.w, slopes, 1) + cost, -leak, -self.slope * spent)

    def prox(self, point: _Point, direction: _Point, eta: float) -> _Point:
        with np.errstate(divide="ignore"):
            logs = _Point(*(np.log(np.maximum(part, 1e-300)) for part in point))
        return _Point(
            softmax(logs.q - eta * direction.q / self.mass, axis=1),
            softmax(logs.w - eta * direction.w),
            softmax(logs.nu - eta * direction.nu),
        )

    def distance(self, one: _Point, other: _Point) -> float:
        rows = rel_entr(one.q, np.maximum(other.q, 1e-300)).sum(axis=1, keepdims=True)
        return float(
            (self.mass * rows).sum()
            + rel_entr(one.w, np.maximum(other.w, 1e-300)).sum()
            + rel_entr(one.nu, np.maximum(other.nu, 1e-300)).sum()
        )

    def pairing(self, here: _Point, there: _Point, half: _Point, ahead: _Point) -> float:
        return sum(
            float(((a - b) * (c - e)).sum())
            for a, b, c, e in zip(there, here, half, ahead, strict=True)
        )
