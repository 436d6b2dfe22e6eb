"""Joint Blahut–Arimoto: marginal and conditionals of an adversary's prior, updated together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import (
    Array,
    check_cells,
    generator,
    probability_rows,
    real_number,
    whole_number,
)
from cvxleak.iterative.entropy_floor import checked_floor, meet_entropy_floor, rounding
from cvxleak.iterative.formulas import entropy, information
from cvxleak.iterative.history import IterativeResult
from cvxleak.iterative.joint_update import Iterates, Updater, ascend
from cvxleak.model import Lumped

__all__ = ["joint_blahut_arimoto"]


def joint_blahut_arimoto(
    lumped: Lumped,
    entropy_floor: float,
    *,
    starts: int | ArrayLike = 30,
    rng: int | np.random.Generator | None = 0,
    tol: float = 1e-12,
    max_iterations: int = 1000,
) -> IterativeResult:
    r"""Search for max I(A;Y) subject to F(w) = H(w) + sum_g w_g log m_g >= b (LEAKAGE Problem 1).

    An ascent method from many starts at once. The problem is not concave, so the result is only a
    lower bound on the largest leakage.

    Parameters
    ----------
    lumped : Lumped
        The lumped problem of the record (or group of records) A: N groups of contexts.
    entropy_floor : float
        b, in nats, from 0 to log|X|. A value that exceeds log|X| by a relative 1e-12 or less counts
        as log|X|.
    starts : int or array_like, shape (k, N)
        Number of random starts, or k lumped priors to start from (they need not meet the floor). If
        value a cannot produce output y under a start, it cannot under the start's later iterates
        either.
    rng : int, numpy.random.Generator or None
        Seed of the random starts.
    tol : float
        A start ends when its value increases by at most this many nats in one cycle (see Notes).
    max_iterations : int
        Largest number of updates of each start.

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

    .. math:: I(w') = I(w) + \langle d, w' - w \rangle - D(\pi' \| \pi)
              + \sum_y s'_y D(\rho'_y \| \rho_y),

    rho_y being the posterior of A. Without the last term this is a concave minorant that equals I
    at w, so its maximizer under F >= b has at least the information of w. That maximizer is

    .. math:: v_{a,g} \propto m_{a,g} e^{d_{a,g}/\lambda}, \quad
              \phi_a = \lambda \log \sum_g m_{a,g} e^{d_{a,g}/\lambda}, \quad
              \pi'_a \propto e^{(\log \pi_a + \phi_a)/(1+\lambda)}, \quad w' = \pi'_a v_{a,g},

    with lam the root of F(w') = b, which is unique because F(w') increases with lam. If lam = 0
    meets the floor, it is used instead: v is then proportional to m on the groups with the largest
    d_{a,g}, and phi_a = max_g d_{a,g}. With one group per value and b = 0 this is the method of
    Arimoto and Blahut for capacity.

    For a noisy channel the dropped term is nearly as large as D(pi' || pi) and plain steps are
    short. Each start therefore runs in cycles: a plain step, then steps with kappa D(pi' || pi),
    kappa = 1/2, 1/4, ..., until one of them loses information (it is rejected) or kappa is 2^-10.
    Values never decrease. Lumping, the step and the starts are cvxleak's own; for the accelerated
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
    return climb_jointly(
        lumped, entropy_floor, starts=starts, rng=rng, max_iterations=max_iterations, tol=tol
    )


def climb_jointly(
    lumped: Lumped,
    entropy_floor: float,
    *,
    starts: int | ArrayLike,
    rng: int | np.random.Generator | None,
    max_iterations: int,
    tol: float,
    stop: Callable[[], bool] = lambda: False,
) -> IterativeResult:
    """Do what `joint_blahut_arimoto` does, until `stop()` at the latest."""
    if not isinstance(lumped, Lumped):
        raise ValidationError(f"lumped: expected a Lumped, found {type(lumped).__name__}")
    b = checked_floor(entropy_floor, lumped.max_entropy)
    cap = whole_number(max_iterations, "max_iterations", 1)
    least_gain = real_number(tol, "tol", 0)
    start = _starting_joints(lumped, starts, rng)
    updater = Updater(lumped, b)
    if b >= lumped.max_entropy - rounding(lumped.max_entropy):
        weights = lumped.uniform()[None]
        joint = updater.joint(weights)
        only = Iterates(weights, joint, np.full(1, np.inf), information(joint))
        return _result(lumped, b, [_record(lumped, only)], [], only, 0, "b = log|X|: uniform prior")
    current = updater.first(start)
    trace: list[tuple[Array, Array, Array]] = [_record(lumped, current)]
    steps: list[Array] = []

    def watch(current: Iterates, step: Array) -> None:
        steps.append(step)
        trace.append(_record(lumped, current))

    active = ascend(
        updater, current, None, max_updates=cap, least_gain=least_gain, watch=watch, stop=stop
    )
    best = int(np.argmax(current.value))
    reason = (
        f"max_iterations={cap} reached"
        if best in active
        else f"the best start gained at most tol={least_gain:g} nats in its last cycle"
    )
    return _result(lumped, b, trace, steps, current, best, reason)


def _starting_joints(
    lumped: Lumped, starts: int | ArrayLike, rng: int | np.random.Generator | None
) -> Array:
    """Joint distributions of (A, Y), shape (S, A, Y), to take the first step from."""
    joint = Updater(lumped, 0.0).joint
    size = len(lumped.multiplicities)
    if not isinstance(starts, (int, np.integer)):
        weights = probability_rows(starts, "starts", 2)
        if weights.shape[1] != size:
            raise ValidationError(f"starts: found shape {weights.shape}; {size} columns are needed")
        return joint(weights)
    count = whole_number(starts, "starts", 1)
    check_cells(count, len(lumped.rows), "starts")
    random = generator(rng)
    values, outputs = len(lumped.values), len(lumped.outputs)
    # Half of them: an unrelated posterior for each output. It need not come from any prior.
    posteriors = random.dirichlet(np.ones(values), size=(count, outputs))
    joints = posteriors.transpose(0, 2, 1) / outputs
    # The other half: mostly one context for each value, as the optimum at b = 0 has it.
    weights = np.tile(0.1 * lumped.uniform(), (count // 2, 1))
    for first, last in zip(lumped.starts, [*lumped.starts[1:], size], strict=True):
        chosen = random.integers(first, last, size=len(weights))
        weights[np.arange(len(weights)), chosen] += 0.9 / values
    joints[1::2] = joint(weights)
    return joints


def _record(lumped: Lumped, current: Iterates) -> tuple[Array, Array, Array]:
    reached = entropy(current.weights, lumped.log_multiplicity)
    return current.value.copy(), reached, current.multiplier.copy()


def _result(
    lumped: Lumped,
    b: float,
    trace: list[tuple[Array, Array, Array]],
    steps: list[Array],
    last: Iterates,
    best: int,
    reason: str,
) -> IterativeResult:
    point = meet_entropy_floor(last.weights[best], lumped, b)
    objective, reached, multiplier = (np.array(part)[:, best] for part in zip(*trace, strict=True))
    return IterativeResult(
        value=float(information(Updater(lumped, b).joint(point[None]))[0]),
        point=point,
        iterations=len(steps),
        stopped=reason,
        history={
            "objective": objective,
            "slack": reached - b,
            "multiplier": multiplier,
            "step": np.array(steps)[:, best] if steps else np.zeros(0),
            "start_values": last.value,
        },
    )
