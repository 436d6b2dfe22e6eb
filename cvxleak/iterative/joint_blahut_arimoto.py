"""Joint Blahut–Arimoto: marginal and conditionals of an adversary's prior, updated together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr, rel_entr

from cvxleak.errors import InfeasibleError, ValidationError
from cvxleak.iterative.history import IterativeResult
from cvxleak.model import Lumped
from cvxleak.model._validation import probability_rows, real_number, whole_number

__all__ = ["joint_blahut_arimoto", "meet_entropy_floor"]

Array = NDArray[np.float64]

LOG_ZERO = -1e30  # stands for log 0: finite, so that 0 * log 0 is 0 in a matrix product
LOG_MULTIPLIER = (-80.0, 45.0)  # where log lam is looked for; past these nothing changes any more
LEAST_KAPPA = 2.0**-10


def joint_blahut_arimoto(
    lumped: Lumped,
    entropy_floor: float,
    *,
    starts: int | ArrayLike = 30,
    rng: int | np.random.Generator | None = 0,
    max_iterations: int = 1000,
    tol: float = 1e-12,
) -> IterativeResult:
    r"""Look for max I(A;Y) subject to F(w) = H(w) + sum_g w_g log m_g >= b (LEAKAGE Problem 1).

    An ascent method from many starts at once. The problem is not concave, so the result is a lower
    end of the maximal leakage and nothing more.

    Parameters
    ----------
    lumped : Lumped
        What the record (or group of records) A can be seen doing: N groups of contexts.
    entropy_floor : float
        b, in nats, from 0 to log|X|; past log|X| by rounding (1e-12 relative) counts as log|X|.
    starts : int or array_like, shape (k, N)
        Number of random starts, or k lumped priors to start from (they need not meet the floor). A
        value a that a start never lets produce an output y will not learn to produce it.
    rng : int, numpy.random.Generator or None
        Seed of the random starts.
    max_iterations : int
        Cap on the updates of each start.
    tol : float
        A start ends when it gains at most this many nats over one cycle of relaxation (see Notes).

    Returns
    -------
    IterativeResult
        `point`: the best start's final weights, shape (N,), with F(point) >= b as computed in
        floating point (`meet_entropy_floor`); `value`: I(A;Y) there. `history` of the best start:
        ``objective`` I(A;Y), ``slack`` F - b (zero up to rounding where the floor binds),
        ``multiplier`` lam; per update ``step``, the largest change of a weight (0 for a rejected
        update). ``start_values`` has the final value of every start.

    Raises
    ------
    ValidationError
        Arguments of the wrong kind.
    InfeasibleError
        b above log|X|, the largest entropy that a prior on the datasets can have.

    Notes
    -----
    With s_{a,y} = sum_g w_{a,g} R_{a,g}(y) and pi_a = sum_g w_{a,g}, let d_{a,g} = sum_y R_{a,g}(y)
    log(s_{a,y} / (pi_a s_y)), the gradient of I up to a constant. For any other prior w',

    .. math:: I(w') = I(w) + <d, w' - w> - D(pi' || pi) + \sum_y s'_y D(\rho'_y || \rho_y),

    rho_y being the posterior of A. Dropping the last term leaves a concave minorant that touches I
    at w, so its maximizer under F >= b cannot have less information than w. That maximizer is

    .. math:: v_{a,g} \propto m_{a,g} e^{d_{a,g}/\lambda}, \quad
              \phi_a = \lambda \log \sum_g m_{a,g} e^{d_{a,g}/\lambda}, \quad
              \pi'_a \propto e^{(\log \pi_a + \phi_a)/(1+\lambda)}, \quad w' = \pi'_a v_{a,g},

    with lam the root of F(w') = b, which is unique because F(w') grows with lam; or lam = 0, where
    v spreads over the largest d_{a,g} in proportion to m and phi_a = max_g d_{a,g}, if that meets
    the floor. One group per value and b = 0 is the method of Arimoto and Blahut for capacity.

    For a noisy channel the dropped term is nearly as large as D(pi' || pi) and plain steps are
    short. Each start therefore runs in cycles: a plain step, then steps with kappa D(pi' || pi),
    kappa = 1/2, 1/4, ..., until one of them loses information (it is rejected) or kappa is 2^-10.
    Values never fall. Lumping, the step and the starts are this project's own; for the accelerated
    capacity iteration see Matz and Duhamel (ITW 2004).

    Examples
    --------
    Parity of 4 bits, flipped with probability 0.3033: on the plateau b <= 3 log 2 the leakage is
    that of the channel itself, log 2 - h(0.3033).

    >>> from cvxleak.iterative import joint_blahut_arimoto
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(4), [(0, 1)] * 4, modulus=2)
    >>> mechanism = Mechanism(parity, [[0.6967, 0.3033], [0.3033, 0.6967]])
    >>> run = joint_blahut_arimoto(mechanism.lumped(0), 2.0)
    >>> print(f"{run.value:.4f}")
    0.0795
    """
    b = _checked_floor(lumped, entropy_floor)
    cap = whole_number(max_iterations, "max_iterations", 1)
    least_gain = real_number(tol, "tol", 0)
    updater = _Updater(lumped, b)
    if b >= lumped.max_entropy - _rounding(lumped):
        weights = lumped.uniform()[None]
        joint = updater.joint(weights)
        only = _Iterates(weights, joint, np.full(1, np.inf), _information(joint))
        return _result(lumped, b, [_record(lumped, only)], [], only, 0, "b = log|X|: uniform prior")
    start = _starting_joints(lumped, starts, rng)
    count = len(start)
    kappa, cycle_gain = np.ones(count), np.zeros(count)
    current = updater.update(start, np.full(count, 0.1), kappa)
    active = np.arange(count)
    trace, steps = [_record(lumped, current)], []
    while len(active) and len(steps) < cap:
        here = current.take(active)
        there = updater.update(here.joint, here.multiplier, kappa[active])
        gain = there.value - here.value
        kept = gain >= 0
        step = np.zeros(count)
        step[active] = np.where(kept, np.abs(there.weights - here.weights).max(axis=1), 0)
        for array, new in zip(current, there, strict=True):
            array[active[kept]] = new[kept]
        steps.append(step)
        trace.append(_record(lumped, current))
        cycle_gain[active] += np.where(kept, gain, 0)
        ended = ~kept | (kappa[active] <= LEAST_KAPPA)
        kappa[active] = np.where(ended, 1, kappa[active] / 2)
        finished = ended & (cycle_gain[active] <= least_gain)
        cycle_gain[active[ended]] = 0
        active = active[~finished]
    best = int(np.argmax(current.value))
    reason = (
        f"max_iterations={cap} reached"
        if best in active
        else f"the best start gained at most tol={least_gain:g} nats in its last cycle"
    )
    return _result(lumped, b, trace, steps, current, best, reason)


def meet_entropy_floor(lumped: Lumped, weights: ArrayLike, entropy_floor: float) -> Array:
    """Return the mixture of `weights` and the uniform prior that just meets the entropy floor.

    The least theta, up to rounding, with F((1 - theta) w + theta u) >= b; F is concave along the
    segment and largest at the uniform prior u, so the equation has one root. If F(w) >= b, that is
    `weights` as they are. Above b = log|X| - margin, where rounding decides, it is u.

    Parameters
    ----------
    lumped : Lumped
        The problem.
    weights : array_like, shape (N,)
        A lumped prior.
    entropy_floor : float
        b, in nats. A margin of 1e-13 (1 + log|X|) nats is added, the rounding error of F.

    Raises
    ------
    ValidationError
        Weights that are no distribution on the groups.
    InfeasibleError
        b above log|X|.

    Examples
    --------
    >>> from cvxleak.iterative import meet_entropy_floor
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> lumped = Mechanism(parity, [[0.9, 0.1], [0.1, 0.9]]).lumped(0)
    >>> meet_entropy_floor(lumped, [0.5, 0.0, 0.0, 0.5], 1.0).round(4)
    array([0.3965, 0.1035, 0.1035, 0.3965])
    """
    b = _checked_floor(lumped, entropy_floor)
    w = probability_rows(weights, "weights", 1)
    size = len(lumped.multiplicities)
    if len(w) != size:
        raise ValidationError(f"weights: found shape {w.shape}; {size} are needed")
    uniform = lumped.uniform()
    target = b + _rounding(lumped)
    if _entropy(w, lumped.log_multiplicity) >= target:
        return w
    low, high = 0.0, 1.0
    while high - low > 1e-16 + 1e-9 * low:
        theta = (low + high) / 2
        mixed = (1 - theta) * w + theta * uniform
        if _entropy(mixed, lumped.log_multiplicity) >= target:
            high = theta
        else:
            low = theta
    mixed = (1 - high) * w + high * uniform
    mixed.setflags(write=False)
    return mixed


class _Iterates(NamedTuple):
    """One iterate of each of S starts; the first axis of every array runs over the starts."""

    weights: Array  # (S, N)
    joint: Array  # (S, A, Y)
    multiplier: Array  # (S,)
    value: Array  # (S,)

    def take(self, places: NDArray[np.intp]) -> _Iterates:
        return _Iterates(*(array[places] for array in self))


class _Updater:
    """The update of many starts at once, for one lumped problem and one entropy floor."""

    def __init__(self, lumped: Lumped, entropy_floor: float) -> None:
        self.b = entropy_floor
        self.rows = lumped.rows
        self.log_m = lumped.log_multiplicity
        self.starts = lumped.starts
        self.value_of = lumped.value_index
        ends = [*lumped.starts[1:], len(lumped.rows)]
        self.groups = [slice(i, j) for i, j in zip(lumped.starts, ends, strict=True)]

    def joint(self, weights: Array) -> Array:
        """s_{a,y}, shape (S, A, Y)."""
        return np.stack([weights[:, g] @ self.rows[g] for g in self.groups], axis=1)

    def update(self, joint: Array, guess: Array, kappa: Array) -> _Iterates:
        """Maximize <d, w'> - kappa D(pi' || pi) under F(w') >= b; `guess` is a first lam."""
        pi, output = joint.sum(axis=2), joint.sum(axis=1)
        product = pi[:, :, None] * output[:, None, :]
        with np.errstate(divide="ignore"):
            # Where nothing of a or y is left, any posterior makes a minorant: the prior is one.
            log_ratio = np.log(np.where(product > 0, joint / np.where(product > 0, product, 1), 1))
            log_pi = np.maximum(np.log(pi), LOG_ZERO)
        np.maximum(log_ratio, LOG_ZERO, out=log_ratio)
        d = np.concatenate(
            [log_ratio[:, a] @ self.rows[g].T for a, g in enumerate(self.groups)], axis=1
        )
        weights = self._without_multiplier(d, log_pi, kappa)
        multiplier = np.zeros(len(d))
        short = np.flatnonzero(_entropy(weights, self.log_m) < self.b)
        if len(short):
            weights[short], multiplier[short] = self._root(
                d[short], log_pi[short], kappa[short], guess[short]
            )
        joint = self.joint(weights)
        return _Iterates(weights, joint, multiplier, _information(joint))

    def _without_multiplier(self, d: Array, log_pi: Array, kappa: Array) -> Array:
        """Return the maximizer of largest entropy that ignores the floor (lam = 0)."""
        top = np.maximum.reduceat(d, self.starts, axis=1)
        slack = 1e-13 * np.maximum(1, np.abs(top))  # rows that only rounding tells apart are tied
        tied = d >= (top - slack)[:, self.value_of]
        v, _ = self._normalized(np.where(tied, self.log_m, -np.inf))
        return _softmax(log_pi + top / kappa[:, None])[:, self.value_of] * v

    def _at(
        self, d: Array, log_pi: Array, kappa: Array, multiplier: Array
    ) -> tuple[Array, Array, Array]:
        """Weights for the given lam, F there, and the derivative of F in log lam."""
        lam = multiplier[:, None]
        tilt = d / lam
        v, log_sum = self._normalized(tilt + self.log_m)
        blend = kappa[:, None] + lam
        pi = _softmax((kappa[:, None] * log_pi + lam * log_sum) / blend)
        mean = np.add.reduceat(v * tilt, self.starts, axis=1)
        spread = np.add.reduceat(v * (tilt - mean[:, self.value_of]) ** 2, self.starts, axis=1)
        # F = sum_a pi_a entropy_a, where entropy_a = -log pi_a + H(v_a) + <v_a, log m_a>.
        entropy = log_sum - mean - np.log(np.where(pi > 0, pi, 1))
        total = (pi * entropy).sum(axis=1)
        variance = (pi * (entropy - total[:, None]) ** 2).sum(axis=1)
        slope = (pi * spread).sum(axis=1) + multiplier / blend[:, 0] * variance
        return pi[:, self.value_of] * v, total, slope

    def _root(self, d: Array, log_pi: Array, kappa: Array, guess: Array) -> tuple[Array, Array]:
        """Weights and lam with F = b: Newton's method in log lam, kept inside a bracket."""
        low = np.full(len(d), LOG_MULTIPLIER[0])
        high = np.full(len(d), LOG_MULTIPLIER[1])
        x = np.log(np.where(guess > 0, guess, 0.1))
        while True:
            weights, total, slope = self._at(d, log_pi, kappa, np.exp(x))
            excess = total - self.b
            low, high = np.where(excess < 0, x, low), np.where(excess < 0, high, x)
            done = (np.abs(excess) <= 1e-14 * max(1.0, self.b)) | (high - low <= 1e-12)
            if done.all():
                return weights, np.exp(x)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                newton = x - excess / slope
            inside = (newton > low) & (newton < high)
            x = np.where(done, x, np.where(inside, newton, (low + high) / 2))

    def _normalized(self, logs: Array) -> tuple[Array, Array]:
        """Softmax and logsumexp of `logs` within the groups of each value."""
        top = np.maximum.reduceat(logs, self.starts, axis=1)
        parts = np.exp(logs - top[:, self.value_of])
        sums = np.add.reduceat(parts, self.starts, axis=1)
        return parts / sums[:, self.value_of], top + np.log(sums)


def _softmax(logs: Array) -> Array:
    parts = np.exp(logs - logs.max(axis=1, keepdims=True))
    return parts / parts.sum(axis=1, keepdims=True)


def _information(joint: Array) -> Array:
    product = joint.sum(axis=-1, keepdims=True) * joint.sum(axis=-2, keepdims=True)
    return rel_entr(joint, product).sum(axis=(-2, -1))


def _entropy(weights: Array, log_m: Array) -> Array:
    return entr(weights).sum(axis=-1) + weights @ log_m


def _rounding(lumped: Lumped) -> float:
    """Bound the rounding error of F."""
    return 1e-13 * (1 + lumped.max_entropy)


def _checked_floor(lumped: Lumped, entropy_floor: float) -> float:
    if not isinstance(lumped, Lumped):
        raise ValidationError(f"lumped: expected a Lumped, found {type(lumped).__name__}")
    b = real_number(entropy_floor, "entropy_floor", 0)
    if b > lumped.max_entropy + 10 * _rounding(lumped):
        raise InfeasibleError(
            f"entropy_floor: found {b!r}; the largest entropy of a prior on the datasets is "
            f"log|X| = {lumped.max_entropy!r}"
        )
    return b


def _starting_joints(
    lumped: Lumped, starts: int | ArrayLike, rng: int | np.random.Generator | None
) -> Array:
    """Joint laws of (A, Y), shape (S, A, Y), to take the first step from."""
    joint = _Updater(lumped, 0.0).joint
    size = len(lumped.multiplicities)
    if not isinstance(starts, (int, np.integer)):
        weights = probability_rows(starts, "starts", 2)
        if weights.shape[1] != size:
            raise ValidationError(f"starts: found shape {weights.shape}; {size} columns are needed")
        return joint(weights)
    count = whole_number(starts, "starts", 1)
    generator = np.random.default_rng(rng)
    values, outputs = len(lumped.values), len(lumped.outputs)
    # Half of them: an unrelated posterior for each output. It need not come from any prior.
    posteriors = generator.dirichlet(np.ones(values), size=(count, outputs))
    joints = posteriors.transpose(0, 2, 1) / outputs
    # The other half: mostly one context for each value, as the optimum at b = 0 has it.
    weights = np.tile(0.1 * lumped.uniform(), (count // 2, 1))
    for first, last in zip(lumped.starts, [*lumped.starts[1:], size], strict=True):
        chosen = generator.integers(first, last, size=len(weights))
        weights[np.arange(len(weights)), chosen] += 0.9 / values
    joints[1::2] = joint(weights)
    return joints


def _record(lumped: Lumped, current: _Iterates) -> tuple[Array, Array, Array]:
    entropy = _entropy(current.weights, lumped.log_multiplicity)
    return current.value.copy(), entropy, current.multiplier.copy()


def _result(
    lumped: Lumped,
    b: float,
    trace: list[tuple[Array, Array, Array]],
    steps: list[Array],
    last: _Iterates,
    best: int,
    reason: str,
) -> IterativeResult:
    point = meet_entropy_floor(lumped, last.weights[best], b)
    objective, entropy, multiplier = (np.array(part)[:, best] for part in zip(*trace, strict=True))
    return IterativeResult(
        value=float(_information(_Updater(lumped, b).joint(point[None]))[0]),
        point=point,
        iterations=len(steps),
        stopped=reason,
        history={
            "objective": objective,
            "slack": entropy - b,
            "multiplier": multiplier,
            "step": np.array(steps)[:, best] if steps else np.zeros(0),
            "start_values": last.value,
        },
    )
