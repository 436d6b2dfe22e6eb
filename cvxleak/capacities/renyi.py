"""Rényi capacity of order alpha of a channel: lower and upper bound, both proved."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.capacities.channel_sets import point_of
from cvxleak.capacities.shannon import METHOD, Capacity
from cvxleak.core.clock import Clock
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, real_number
from cvxleak.core.work import spend
from cvxleak.iterative.interior_point import FLOOR
from cvxleak.kernel.numbers import precision
from cvxleak.measures._laws import aligned
from cvxleak.model import Channel, Prior, as_channel
from cvxleak.problem import Bound, Gap, Problem, Stopped
from cvxleak.problem.candidates import candidate_weights, law_violations, positive_part
from cvxleak.problem.problem import Found, Once, Search, Toward
from cvxleak.proofs.checker import PROVERS

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["RenyiCapacity", "maximal_alpha_leakage", "renyi_capacity"]

NEWTON_STEPS = 200
"""Most steps of the interior-point method; 20 to 60 suffice."""

SHRINK = 0.1
"""Factor by which the barrier's weight falls; each weight then takes one to three steps."""


@dataclass(frozen=True, eq=False)
class RenyiCapacity(Problem):
    """The Rényi capacity C_alpha: the maximum over input distributions p of Sibson's I_alpha(p, Q).

    I_alpha(p, Q) = alpha / (alpha - 1) log sum_y (sum_x p_x Q(y|x)^alpha)^(1/alpha), and
    C_alpha = min over output distributions t of max_x D_alpha(Q(.|x) || t). Order 1 is the Shannon
    capacity, order infinity the maximal leakage log sum_y max_x Q(y|x).

    Parameters
    ----------
    channel : Channel or array_like, shape (inputs, outputs)
        Its entries are taken as written.
    alpha : float
        The order, positive; inf is allowed.

    Raises
    ------
    ValidationError
        Not a channel, or an order that is not positive.

    Notes
    -----
    The bound's `lower` is I_alpha at the `witness` p, a `Prior` on the channel's inputs; `upper` is
    max_x D_alpha(Q(.|x) || t) at the output distribution t that the certificate stores,
    proportional to (sum_x p_x Q(y|x)^alpha)^(1/alpha), which is the best t at the best p (Csiszár
    1995). Both are computed in ball arithmetic. A candidate for `check` is a distribution of the
    input.

    Examples
    --------
    >>> from cvxleak.capacities import RenyiCapacity
    >>> channel = [[0.9, 0.1], [0.1, 0.9]]
    >>> for alpha in (0.5, 1, 2, float("inf")):
    ...     print(RenyiCapacity(channel, alpha).solve())
    Rényi capacity: 0.2231436 to 0.2231436 nats (CERTIFIED)
    Rényi capacity: 0.3680642 to 0.3680642 nats (CERTIFIED)
    Rényi capacity: 0.4946962 to 0.4946962 nats (CERTIFIED)
    Rényi capacity: 0.5877867 to 0.5877867 nats (CERTIFIED)
    """

    kind = "renyi-capacity"
    name = "Rényi capacity"
    maximize = True
    tolerance = 1e-9
    convex = True

    channel: Channel
    alpha: float

    def __init__(self, channel: Channel | ArrayLike, alpha: float) -> None:
        object.__setattr__(self, "channel", as_channel(channel))
        object.__setattr__(self, "alpha", real_number(alpha, "alpha", 0.0, open_low=True))

    def to_cvxpy(self) -> cp.Problem:
        """Return a convex program whose variable ``input`` has the same optimal distributions.

        I_alpha is largest where sum_y (sum_x p_x Q(y|x)^alpha)^(1/alpha) is largest (alpha > 1) or
        smallest (alpha < 1); the program optimizes this sum.

        Raises
        ------
        ValidationError
            Order infinity; every distribution with positive probabilities is then optimal.

        Examples
        --------
        >>> import math
        >>> from cvxleak.capacities import RenyiCapacity
        >>> value = RenyiCapacity([[0.9, 0.1], [0.1, 0.9]], 2).to_cvxpy().solve(solver="CLARABEL")
        >>> round(2 * math.log(value), 5)
        0.4947
        """
        import cvxpy as cp

        if math.isinf(self.alpha):
            raise ValidationError("alpha: found inf; to_cvxpy supports finite orders only")
        if self.alpha == 1:
            return Capacity(self.channel).to_cvxpy()
        p = cp.Variable(len(self.channel.inputs), nonneg=True, name="input")
        mass = p @ self.channel.matrix**self.alpha
        total = cp.sum(cp.power(mass, 1 / self.alpha))
        constraints: list[Any] = [cp.sum(p) == 1]
        goal = cp.Maximize(total) if self.alpha > 1 else cp.Minimize(total)
        return cp.Problem(goal, constraints)

    def _search(self) -> Search:
        return Once(self._run)

    def _run(self, gap: Gap, clock: Clock) -> tuple[Found, Stopped]:
        matrix, stopped = self.channel.matrix, Stopped.ROUNDING
        alpha = "inf" if math.isinf(self.alpha) else self.alpha
        if self.alpha == 1:
            shannon = Capacity(self.channel).solve(tol=gap.tol, **clock.limits)
            assert shannon.certificate is not None
            stopped = shannon.stats["stopped"]
            point = shannon.witness.probabilities
            below, above = shannon.certificate.witness, shannon.certificate.proof
        else:
            point, output = np.full(len(matrix), 1 / len(matrix)), matrix.max(axis=0)
            if math.isfinite(self.alpha):
                point, output, stopped = _interior_point(matrix, self.alpha, clock)
            used = (matrix > 0).any(axis=0)
            output = np.where(used, np.maximum(output, FLOOR), 0.0)
            below, above = point_of(point), {"rule": "order", "t": output.tolist()}
        parts = {"matrix": matrix.tolist(), "alpha": alpha}, below, above
        with precision():
            lower, upper, *_ = PROVERS[self.kind].prove(*parts)
        law = Prior(point / point.sum(), self.channel.inputs)
        return Found(lower, upper, law, parts, stats={"method": self._method}), stopped

    @property
    def _method(self) -> str:
        if self.alpha == 1:
            return f"that of the Shannon capacity, because the order is 1: {METHOD}"
        if math.isinf(self.alpha):
            return "a formula, because at order infinity every positive distribution is optimal"
        return "an interior-point method, because the capacity of any order is a convex program"

    def _measure(self, candidate: Prior | ArrayLike) -> tuple[float, dict[str, float]]:
        inputs = self.channel.inputs
        weights = candidate_weights(candidate, len(inputs), inputs, "input")
        law = positive_part(weights)
        used = self.channel.matrix[law > 0]
        if math.isinf(self.alpha):
            value = math.log(used.max(axis=0).sum())
        elif self.alpha == 1:
            value = Capacity(self.channel)._measure(law)[0]
        else:
            total = _outputs(law[law > 0], used, self.alpha).sum()
            value = self.alpha / (self.alpha - 1) * math.log(total)
        return value, law_violations(weights)

    def _toward(self, candidate: Prior | ArrayLike, bound: Bound) -> Toward:
        inputs = self.channel.inputs
        law = positive_part(candidate_weights(candidate, len(inputs), inputs, "input"))
        return lambda share: (Prior(law, inputs), point_of(law))


def renyi_capacity(channel: Channel | ArrayLike, alpha: float, **options: Any) -> Bound:
    """Bound the Rényi capacity of a channel: `RenyiCapacity(channel, alpha).solve(...)`.

    Parameters
    ----------
    channel, alpha
        As for `RenyiCapacity`.
    **options
        As for `Problem.solve`.

    Examples
    --------
    An erasure half of the time, at order 2 and in bits:

    >>> from cvxleak.capacities import renyi_capacity
    >>> print(renyi_capacity([[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]], 2).to("bits"))
    Rényi capacity: 0.5431066 to 0.5431066 bits (CERTIFIED)
    """
    return RenyiCapacity(channel, alpha).solve(**options)


def maximal_alpha_leakage(
    prior: Prior | ArrayLike, channel: Channel | ArrayLike, alpha: float, **options: Any
) -> Bound:
    """Bound the maximal alpha-leakage of an input X.

    The supremum, over all U with U - X - Y (U depends on the output only through X), of
    `cvxleak.measures.arimoto_information` of U and Y. It equals the Rényi capacity of order alpha
    of the channel restricted to the inputs of positive probability, and depends on the prior only
    through these.

    Parameters
    ----------
    prior : Prior or array_like, shape (k,)
        The distribution of the input. A `Prior` is matched to the channel's inputs by label, an
        array by position.
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    alpha : float
        The order, more than 1; inf is allowed, and gives the maximal leakage. As alpha decreases to
        1 it tends to the Shannon capacity; at 1 itself the definition gives
        `cvxleak.measures.mutual_information`.
    **options
        As for `Problem.solve`.

    Raises
    ------
    ValidationError
        If the prior and the channel do not match or are not stochastic, or the order is not above
        1.

    Notes
    -----
    Liao, Kosut, Sankar and du Pin Calmon, IEEE Trans. Inf. Theory 65 (2019), Definition 6 and
    Theorem 2. The bound's witness is the distribution of X at which Sibson's information is
    largest.

    Examples
    --------
    The third input has probability zero, so it does not count:

    >>> from cvxleak.capacities import maximal_alpha_leakage
    >>> print(maximal_alpha_leakage([0.7, 0.3, 0], [[0.9, 0.1], [0.1, 0.9], [0, 1]], 2))
    maximal alpha-leakage: 0.4946962 to 0.4946962 nats (CERTIFIED)
    """
    order = real_number(alpha, "alpha", 1.0, open_low=True)
    p, _ = aligned(prior, channel)
    given = as_channel(channel)
    possible = given.select([x for x, mass in zip(given.inputs, p, strict=True) if mass > 0])
    bound = renyi_capacity(possible, order, **options)
    return replace(bound, name="maximal alpha-leakage")


def _scaled(matrix: Array, alpha: float) -> tuple[Array, Array]:
    """Return the largest entry of each output, and the others' powers in units of it."""
    most = matrix.max(axis=0)
    return most, (matrix / np.where(most > 0, most, 1.0)) ** alpha


def _outputs(law: Array, matrix: Array, alpha: float) -> Array:
    """Return (sum_x p_x Q(y|x)^alpha)^(1/alpha) for each output."""
    most, powers = _scaled(matrix, alpha)
    return most * (law @ powers) ** (1 / alpha)


def _interior_point(matrix: Array, alpha: float, clock: Clock) -> tuple[Array, Array, Stopped]:
    """Return the input that maximizes sign(alpha - 1) sum_y (...)^(1/alpha), and its output.

    Newton's method on that plus mu sum_x log p_x over the simplex, with mu going to zero. The
    objective is concave in p for every order.
    """
    most, powers = _scaled(matrix, alpha)
    most, powers = most[most > 0], powers[:, most > 0]
    n = len(matrix)
    p = np.full(n, 1 / n)
    size = float(most.sum())
    mu, stopped = size / n, Stopped.WORK_LIMIT
    for _ in range(NEWTON_STEPS):
        if clock.late:
            stopped = Stopped.at_limit(clock)
            break
        spend(1e5 + n**2 * (n + len(most)))
        try:
            relative = _newton_step(p, most, powers, alpha, mu)
        except np.linalg.LinAlgError:  # rows that are equal up to rounding: p is as good as it gets
            stopped = Stopped.ROUNDING
            break
        length = min(1.0, 0.9 / max(float(-relative.min()), 1e-300))
        p = p * (1 + length * relative)
        p /= p.sum()
        if length == 1.0 and np.abs(relative).max() < 0.5:
            if mu < 1e-16 * size:
                stopped = Stopped.ROUNDING
                break
            mu *= SHRINK
    output = _outputs(p, matrix, alpha)
    return p, output / output.sum(), stopped


def _newton_step(p: Array, most: Array, powers: Array, alpha: float, mu: float) -> Array:
    """Return the relative changes of p."""
    sign, inverse = math.copysign(1.0, alpha - 1), 1 / alpha
    mass = p @ powers
    slope = sign * inverse * (powers @ (most * mass ** (inverse - 1)))
    curve = sign * inverse * (inverse - 1) * most * mass ** (inverse - 2)
    # In the variables d_x = step_x / p_x the barrier's curvature is the identity.
    scaled = p[:, None] * powers
    hessian = (scaled * curve) @ scaled.T
    hessian[np.diag_indices(len(p))] -= mu
    gradient = p * slope + mu
    one, other = np.linalg.solve(hessian, np.column_stack([-gradient, p])).T
    return one - (p @ one) / (p @ other) * other
