"""Randomized response (k-RR) in closed form: its exact envelope, and the paper's bounds on it.

alpha = e^epsilon / (e^epsilon + k - 1) is the probability of the truth and beta = alpha / e^epsilon
that of any other answer. With p_1 <= ... <= p_k, q_i = beta + (alpha - beta) p_i is the
distribution of the output and log alpha/q_i the leakage of output i. For delta in (0, 1], N and
theta in (0, 1] are such that delta = q_1 + ... + q_(N-1) + theta q_N.

Exact envelope: with t_n = (n alpha + (N - 1 - n + theta) beta) / delta,

    eps_c(delta) = log max( alpha / q_N, max_{n < N} min(alpha / q_n, t_n) ).

Theorem 5 of ENVELOPE has the terms N and N - 1 of this maximum as a lower bound, and conjectures
that it is exact under a condition on the prior. The page "The envelope of randomized response" of
the documentation proves both the formula and the conjecture.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import CELL_LIMIT, Array, real_number, whole_number
from cvxleak.measures._laws import law
from cvxleak.measures.pointwise import probabilities_in
from cvxleak.model import Prior

__all__ = [
    "EnvelopePiece",
    "Response",
    "four_level_prior",
    "response_condition",
    "response_dp_epsilon",
    "response_envelope",
    "response_envelope_pieces",
    "response_event_envelope",
    "response_lower_bound",
    "response_upper_bound",
]

EDGE = 1e-12
"""A delta within this relative distance of q_1 + ... + q_n is taken to equal it."""

TINY = 1e-300
"""Replaces delta = 0; it is below every probability."""


@dataclass(frozen=True)
class EnvelopePiece:
    """An interval start < delta <= end on which e^eps_c(delta) = constant + mass / delta.

    Attributes
    ----------
    start, end : float
    constant, mass : float

    Examples
    --------
    >>> from cvxleak.envelope import EnvelopePiece
    >>> piece = EnvelopePiece(start=0.0, end=1.0, constant=1.0, mass=0.5)
    >>> float(piece(0.5).round(4))
    0.6931
    """

    start: float
    end: float
    constant: float
    mass: float

    def __call__(self, delta: ArrayLike) -> Array:
        """Return the envelope at `delta`, in nats, for delta in this interval."""
        return np.log(self.constant + self.mass / np.asarray(delta, dtype=float))


def four_level_prior(k: int, rho: float) -> Prior:
    """Return the prior with 1 - 3 rho, 1 - rho, 1 + rho, 1 + 3 rho over k on four equal blocks.

    Parameters
    ----------
    k : int
        A multiple of 4.
    rho : float
        In (0, 1/3).

    Raises
    ------
    ValidationError
        If a number is out of range.

    Notes
    -----
    ENVELOPE section V-B.

    Examples
    --------
    >>> from cvxleak.envelope import four_level_prior
    >>> four_level_prior(4, 0.1).probabilities
    array([0.175, 0.225, 0.275, 0.325])
    """
    if whole_number(k, "k", 4, CELL_LIMIT) % 4:
        raise ValidationError(f"k: found {k}; it must be a multiple of 4")
    step = real_number(rho, "rho", 0.0, 1 / 3, open_low=True, open_high=True)
    return Prior(np.repeat((1 + step * np.array([-3.0, -1.0, 1.0, 3.0])) / k, k // 4))


def response_envelope(prior: Prior | ArrayLike, epsilon: float, delta: ArrayLike) -> Array:
    """Return the PML envelope of k-RR, exactly, for every prior, in nats.

    Parameters
    ----------
    prior : Prior or array_like, shape (k,)
        The distribution of the input, in any order, k at least 2. Inputs of probability zero count
        as outputs only.
    epsilon : float
        Parameter of the mechanism: finite and not negative, in nats.
    delta : float or array_like
        In [0, 1]; at 0 and 1 the limit from inside the interval.

    Returns
    -------
    array of the shape of `delta` (a number for a number)

    Raises
    ------
    ValidationError
        If the prior is not a distribution on at least two outcomes, or a number is out of range.

    See Also
    --------
    cvxleak.envelope.pml_envelope : For any channel.
    response_envelope_pieces : The breakpoints.

    Notes
    -----
    Not in the paper; see the module's docstring.

    Examples
    --------
    >>> from cvxleak.envelope import response_envelope
    >>> response_envelope([0.2, 0.3, 0.5], 1.0, [0.1, 0.5, 0.9]).round(6)
    array([0.704605, 0.584265, 0.379885])
    """
    return _evaluated(delta, Response(prior, epsilon).exact)


def response_envelope_pieces(prior: Prior | ArrayLike, epsilon: float) -> tuple[EnvelopePiece, ...]:
    """Return the envelope of k-RR, piece by piece between its exact breakpoints.

    Parameters
    ----------
    prior, epsilon
        As in `response_envelope`.

    Returns
    -------
    tuple of EnvelopePiece
        From delta = 0 to delta = 1, in order; at most 3 k of them.

    Raises
    ------
    ValidationError
        As for `response_envelope`.

    Notes
    -----
    On each (q_1 + ... + q_(N-1), q_1 + ... + q_N], t_n delta is affine in delta, and the
    breakpoints are where a t_n meets an alpha / q_n.

    Examples
    --------
    >>> from cvxleak.envelope import response_envelope_pieces
    >>> [round(piece.end, 6) for piece in response_envelope_pieces([0.2, 0.3, 0.5], 1.0)]
    [0.284777, 0.342388, 0.657987, 0.894029, 1.0]
    """
    return Response(prior, epsilon).pieces()


def response_lower_bound(prior: Prior | ArrayLike, epsilon: float, delta: ArrayLike) -> Array:
    """Return h_delta(theta) of Theorem 5, with its degenerate cases, in nats.

    The larger of log alpha/q_N and log min( alpha / q_(N-1), t_(N-1) ); log alpha/q_1 for N = 1.
    These are the paper's three regimes: theta <= theta_1 is where t_(N-1) >= alpha / q_(N-1),
    theta > theta_2 where t_(N-1) < alpha / q_N. In this form it is a lower bound for every prior,
    and covers N = 2, equal q_1 = ... = q_(N-1) (no first regime), q_(N-1) = q_N (no second one) and
    theta_1 or theta_2 beyond 1.

    Parameters
    ----------
    prior, epsilon, delta
        As in `response_envelope`; every input has a positive probability.

    Returns
    -------
    array of the shape of `delta` (a number for a number)

    Raises
    ------
    ValidationError
        As for `response_envelope`.

    See Also
    --------
    response_condition : Where it equals the envelope.

    Notes
    -----
    ENVELOPE Theorem 5 (i) and (iii).

    Examples
    --------
    >>> from cvxleak.envelope import response_lower_bound
    >>> response_lower_bound([0.2, 0.3, 0.5], 1.0, [0.1, 0.5, 0.9]).round(6)
    array([0.704605, 0.584265, 0.379885])
    """
    return _evaluated(delta, Response(prior, epsilon).paper().lower)


def response_condition(prior: Prior | ArrayLike, epsilon: float, delta: ArrayLike) -> Array:
    """Return whether the prior meets the condition of Theorem 5 (iii) at each delta.

    p_N <= (alpha (p_1 + ... + p_(N-1)) + beta) / ((N - 2) alpha + beta), which says theta_2 <= 1.
    True where delta <= q_1, for which no condition is needed.

    Parameters
    ----------
    prior, epsilon, delta
        As in `response_envelope`; every input has a positive probability.

    Returns
    -------
    array of bool of the shape of `delta` (one for a number)

    Raises
    ------
    ValidationError
        As for `response_envelope`.

    Notes
    -----
    ENVELOPE Theorem 5 (iii) and (20).

    Examples
    --------
    >>> from cvxleak.envelope import response_condition
    >>> bool(response_condition([0.2, 0.3, 0.5], 1.0, 0.9))
    True
    >>> bool(response_condition([0.01, 0.01, 0.98], 1.0, 0.9))
    False
    """
    data, level = Response(prior, epsilon).paper(), probabilities_in(delta, "delta")
    met = [data.condition(d) for d in level.ravel().tolist()]
    return np.array(met, dtype=bool).reshape(level.shape)[()]


def response_upper_bound(prior: Prior | ArrayLike, epsilon: float, delta: ArrayLike) -> Array:
    """Return min( log k alpha/delta, log alpha/q_1 ), in nats.

    Parameters
    ----------
    prior, epsilon, delta
        As in `response_envelope`; every input has a positive probability.

    Returns
    -------
    array of the shape of `delta` (a number for a number)

    Raises
    ------
    ValidationError
        As for `response_envelope`.

    Notes
    -----
    ENVELOPE Theorem 5 (ii).

    Examples
    --------
    >>> from cvxleak.envelope import response_upper_bound
    >>> response_upper_bound([0.2, 0.3, 0.5], 1.0, [0.1, 0.5, 0.9]).round(6)
    array([0.704605, 0.704605, 0.652528])
    """
    data = Response(prior, epsilon).paper()
    most = len(data.masses) * data.alpha
    return _evaluated(delta, lambda d: min(most / d, float(data.caps[0])))


def response_event_envelope(prior: Prior | ArrayLike, epsilon: float, delta: ArrayLike) -> Array:
    """Return the event envelope of k-RR, which the paper calls its binary envelope, in nats.

    log (alpha + (N - 2 + theta) beta) / delta for delta > q_1, log alpha/q_1 below.

    Parameters
    ----------
    prior, epsilon, delta
        As in `response_envelope`; every input has a positive probability.

    Returns
    -------
    array of the shape of `delta` (a number for a number)

    Raises
    ------
    ValidationError
        As for `response_envelope`.

    See Also
    --------
    event_envelope, binary_envelope : For any channel; the second can be larger.

    Notes
    -----
    ENVELOPE Appendix C-B.

    Examples
    --------
    >>> from cvxleak.envelope import response_event_envelope
    >>> response_event_envelope([0.2, 0.3, 0.5], 1.0, [0.1, 0.5, 0.9]).round(6)
    array([0.704605, 0.362047, 0.050072])
    """
    data = Response(prior, epsilon).paper()
    return _evaluated(delta, lambda d: data.symbols(1, d)[0])


def response_dp_epsilon(k: int, epsilon: float, delta: ArrayLike) -> Array:
    """Return the least e for which k-RR is (e, delta)-differentially private, in nats.

    max(log (alpha - delta)/beta, 0). It does not depend on the prior.

    Parameters
    ----------
    k : int
        Number of inputs, at least 2.
    epsilon : float
        Parameter of the mechanism: finite and not negative, in nats.
    delta : float or array_like
        In [0, 1].

    Returns
    -------
    array of the shape of `delta` (a number for a number)

    Raises
    ------
    ValidationError
        If a number is out of range.

    See Also
    --------
    privacy_profile : The inverse function, for any channel.

    Notes
    -----
    ENVELOPE section V-B.

    Examples
    --------
    >>> from cvxleak.envelope import response_dp_epsilon
    >>> response_dp_epsilon(3, 1.0, [0.0, 0.1, 0.9]).round(6)
    array([1.      , 0.809353, 0.      ])
    """
    lies = whole_number(k, "k", 2, CELL_LIMIT) - 1
    level = real_number(epsilon, "epsilon", 0.0, open_high=True)
    share = probabilities_in(delta, "delta")
    # (alpha - delta) / beta = e^epsilon (1 - delta) - delta (k - 1), without overflow.
    kept = 1 - share - share * lies * float(np.exp(-level))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.maximum(np.where(kept > 0, level + np.log(kept), 0.0), 0.0)[()]


class Response:
    """k-RR under a prior, its outputs in the order of their probabilities."""

    def __init__(self, prior: Prior | ArrayLike, epsilon: float) -> None:
        given = law(prior)
        self.order = np.argsort(given, kind="stable")
        p = given[self.order]
        if len(p) < 2:
            raise ValidationError("prior: found 1 outcome; at least 2 are needed")
        # e^-epsilon does not overflow.
        lie = float(np.exp(-real_number(epsilon, "epsilon", 0.0, open_high=True)))
        self.alpha = 1 / (1 + (len(p) - 1) * lie)
        self.beta = lie * self.alpha
        self.prior = p
        self.masses = self.beta + (self.alpha - self.beta) * p
        self.reach = np.cumsum(self.masses)
        # Only an input that can occur has a symbol.
        self.never = int((p == 0).sum())
        self.caps = self.alpha / self.masses[self.never :]

    def paper(self) -> Response:
        """Return this object if Theorem 5 applies: if every input can occur."""
        if self.never:
            raise ValidationError(
                f"prior: found {self.never} input(s) of probability zero; Theorem 5 needs none "
                "(response_envelope allows them)"
            )
        return self

    def place(self, delta: float) -> tuple[int, float]:
        """Return N and theta."""
        before = int(np.searchsorted(self.reach[:-1], delta * (1 - EDGE)))
        mass = float(self.reach[before - 1]) if before else 0.0
        return before + 1, min((delta - mass) / float(self.masses[before]), 1.0)

    def symbols(self, n: int, delta: float) -> tuple[float, float, float]:
        """Return what n symbols of mass delta together reach, as (value, constant, mass).

        The n that leak most keep their outputs, and none can exceed its own leakage. Beyond the
        mass of these outputs they are topped up; then value = constant + mass / delta.
        """
        cap = float(self.caps[n - 1])
        if delta > float(self.topped(n)[0]) * (1 + EDGE):
            constant, mass = self.form(n, delta)
            if constant + mass / delta < cap:
                return constant + mass / delta, constant, mass
        return cap, cap, 0.0

    def topped(self, n: int) -> Array:
        """Return the mass of n symbols topped up by 0, 1, ... outputs.

        From the least probable on, which cost least.
        """
        own = slice(self.never, self.never + n)
        return self.masses[own].sum() + np.cumsum(
            np.concatenate([[0.0], np.delete(self.masses, own)])
        )

    def form(self, n: int, delta: float) -> tuple[float, float]:
        """Return (constant, mass) of n symbols that are topped up to mass delta."""
        reach = self.topped(n)
        full = min(int(np.searchsorted(reach[1:], delta * (1 - EDGE))), len(reach) - 2)
        # Not from the sums, in which the output may be lost; one without an input has ratio 1.
        constant = 1.0 if full < self.never else self.beta / float(self.masses[full + n])
        return constant, n * self.alpha + full * self.beta - constant * float(reach[full])

    def active(self, delta: float) -> tuple[float, float, float]:
        """Return the largest value of any number of symbols, and its form."""
        return max(self.symbols(n, delta) for n in range(1, len(self.caps) + 1))

    def exact(self, delta: float) -> float:
        """Return e to the envelope."""
        return self.active(delta)[0]

    def lower(self, delta: float) -> float:
        """Return e to h_delta."""
        n, _ = self.place(delta)
        return max(self.symbols(m, delta)[0] for m in range(max(n - 1, 1), n + 1))

    def condition(self, delta: float) -> bool:
        """Return whether theta_2 is at most 1."""
        n, _ = self.place(delta)
        if n == 1:
            return True
        most = self.alpha * self.prior[: n - 1].sum() + self.beta
        share = ((n - 2) * self.alpha + self.beta) * self.prior[n - 1]
        return bool(share <= most * (1 + EDGE))

    def pieces(self) -> tuple[EnvelopePiece, ...]:
        """Return the envelope between its breakpoints."""
        ends = self._candidates()
        result: list[EnvelopePiece] = []
        start = 0.0
        for end in ends:
            _, constant, mass = self.active((start + end) / 2)
            last = result[-1] if result else None
            # Masses are compared by what they are worth on the stretch.
            if last is not None and np.allclose(
                (last.constant * end, last.mass), (constant * end, mass), rtol=1e-9, atol=EDGE * end
            ):
                result[-1] = EnvelopePiece(last.start, end, last.constant, last.mass)
            else:
                result.append(EnvelopePiece(start, end, constant, mass))
            start = end
        return tuple(result)

    def _candidates(self) -> list[float]:
        """Return, in order, every delta at which the form can change, and 1."""
        points = {1.0}
        for n in range(1, len(self.caps) + 1):
            reach = self.topped(n).tolist()
            points.update(reach)
            for start, end in pairwise(reach):
                constant, mass = self.form(n, (start + end) / 2)
                for cap in self.caps[n - 1 : n + 1].tolist():
                    if cap > constant and start < mass / (cap - constant) < end:
                        points.add(mass / (cap - constant))
        ordered = sorted(point for point in points if point <= 1.0)
        apart = np.diff(ordered, prepend=0.0) > EDGE * np.array(ordered)
        apart[-1] = True
        return [point for point, keep in zip(ordered, apart, strict=True) if keep]


def _evaluated(delta: ArrayLike, function: Callable[[float], float]) -> Array:
    """Return log function(delta), elementwise."""
    level = probabilities_in(delta, "delta")
    values = [function(max(d, TINY)) for d in level.ravel().tolist()]
    return np.log(np.reshape(values, level.shape))[()]
