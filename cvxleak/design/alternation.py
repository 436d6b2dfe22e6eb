"""`Alternation`: the alternating method for designs, whose steps can be replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import cvxpy as cp
import numpy as np

from cvxleak import constraints
from cvxleak.core.errors import SolverError, ValidationError
from cvxleak.core.validation import Array, generator, instance, whole_number
from cvxleak.design.distortion import MinDistortion
from cvxleak.design.leakage import MinLeakage
from cvxleak.design.user_constraints import UserConstraints
from cvxleak.iterative import IterativeResult, joint_blahut_arimoto
from cvxleak.model import Mechanism, Query
from cvxleak.solvers.conic import attempt

__all__ = ["Alternation", "Opponent"]


class Opponent(NamedTuple):
    """An adversary: a prior, and the record that it attacks.

    Attributes
    ----------
    prior : array, shape (|X|,)
        On the datasets, in product order.
    record : int
    leakage : float
        I(X_i;Y) through the channel for which it was found, in nats.

    Examples
    --------
    >>> from cvxleak.design import Opponent
    >>> Opponent([0.5, 0.0, 0.5, 0.0], record=0, leakage=0.3681).record
    0
    """

    prior: Array
    record: int
    leakage: float


@dataclass(eq=False)
class Alternation:
    """The alternating method: the worst adversary found for a channel, then a channel against it.

    Two steps alternate. `adversary_step` searches for the worst prior with H(X) >= b for the
    current channel, by joint Blahut–Arimoto iterations from random starts. `master_step` solves a
    convex program for the best channel against the adversaries found so far. `stop` decides when to
    end. Each can be replaced in a subclass. If the master uses only the last adversary, the method
    is LEAKAGE's Algorithm 6 or 9; if it uses all, it is a cutting-set method.

    The results are not proved, since the adversary step ends at local optima;
    `cvxleak.verify_iterates` proves bounds for the channels.

    Parameters
    ----------
    problem : MinLeakage or MinDistortion
        With an entropy floor, on the leakage about single records, and small enough that priors on
        the datasets can be written out. User constraints are part of the master.
    starts : int
        Number of random starts of the adversary step, for each record.
    rng : int, numpy.random.Generator or None
        Seed of the random starts.

    Attributes
    ----------
    query : Query
        The query; the channel has one row for each of its values.
    opponents : list of Opponent
        All adversaries found, in order.

    Raises
    ------
    ValidationError
        A problem of a different kind.

    Notes
    -----
    LEAKAGE Algorithms 6 and 9 (`cvxleak.iterative.alternating_design` has them as printed).

    Examples
    --------
    The parity of two bits, with an error probability of at most 0.2. The leakage is
    log 2 - h(0.2) = 0.1927:

    >>> from cvxleak.design import Alternation, MinLeakage
    >>> from cvxleak.model import Distortion
    >>> from cvxleak.problem import verify_iterates
    >>> from cvxleak.queries import parity
    >>> problem = MinLeakage(
    ...     parity(2), distortion=Distortion.hamming([0, 1]), budget=0.2, entropy_floor=0.5
    ... )
    >>> run = Alternation(problem).run()
    >>> round(run.value, 4)
    0.1927
    >>> verify_iterates(problem, run.history["channel"]).optimal
    True
    """

    problem: MinLeakage | MinDistortion
    starts: int = 10
    rng: int | np.random.Generator | None = 0

    def __post_init__(self) -> None:
        problem = self.problem
        if not isinstance(problem, MinLeakage | MinDistortion):
            found = type(problem).__name__
            raise ValidationError(f"problem: found {found}; MinLeakage or MinDistortion is needed")
        if problem.size != 1 or problem.entropy_floor is None or problem.priors is not None:
            raise ValidationError(
                "problem: found one without an entropy floor, with given priors, or about "
                "groups; one about single records with an entropy floor is needed"
            )
        whole_number(self.starts, "starts", 1)
        self.rng = generator(self.rng)
        self.query: Query = problem.data.rows.query
        self.opponents: list[Opponent] = []

    def start(self) -> Array:
        """Return the first channel: that of least distortion, one row per value of `query`."""
        price = self.problem.data.costs.price
        return np.eye(price.shape[1])[price.argmin(axis=1)]

    def adversary_step(self, channel: Array) -> Opponent:
        """Return the worst adversary found for a channel."""
        mechanism, floor = Mechanism(self.query, channel), self.problem.entropy_floor
        assert floor is not None  # checked
        found = []
        for record in range(self.query.space.records):
            lumped = mechanism.lumped(record)
            run = joint_blahut_arimoto(lumped, floor, starts=self.starts, rng=self.rng)
            prior = mechanism.expand((record,), run.point)
            found.append(Opponent(prior.probabilities, record, run.value))
        return max(found, key=lambda opponent: opponent.leakage)

    def master_step(self, opponents: Sequence[Opponent]) -> Array:
        """Return the best channel against the given adversaries.

        For `MinLeakage`, minimize max_k I_k(X_i;Y) within the distortion budget. For
        `MinDistortion`, minimize the distortion with every I_k(X_i;Y) within the leakage budget.

        Raises
        ------
        SolverError
            The solver found no channel.
        """
        problem, costs = self.problem, self.problem.data.costs
        user = UserConstraints(costs.price.shape, problem.constraints)
        channel, leak = user.channel, cp.Variable(name="leakage")
        spent = cp.max(cp.hstack([cp.sum(cp.multiply(part, channel)) for part in costs.table]))
        rules = [*constraints.row_stochastic(channel), *user.constraints]
        for prior, record, _ in opponents:
            rules += constraints.record_mi_budget(channel, prior, self.query, record, leak)
        if isinstance(problem, MinLeakage):
            goal, rules = leak, [*rules, spent <= problem.budget]
        else:
            goal, rules = spent, [*rules, leak <= problem.budget]
        attempt(cp.Problem(cp.Minimize(goal), rules), "CLARABEL")
        if channel.value is None:
            raise SolverError("master: the solver found no channel")
        rows = np.maximum(channel.value, 0.0)
        return rows / rows.sum(axis=1, keepdims=True)

    def stop(self, channels: Sequence[Array], values: Sequence[float]) -> bool:
        """Whether to stop: the last two channels differ by at most 1e-6."""
        return len(channels) > 1 and float(np.abs(channels[-1] - channels[-2]).max()) <= 1e-6

    def run(self, max_iterations: int = 50) -> IterativeResult:
        """Alternate until `stop` returns True.

        Returns
        -------
        IterativeResult
            `point` is the last channel, and `value` its leakage to the worst adversary found (its
            distortion for `MinDistortion`). `history` has ``channel``, ``objective``, and
            ``leakage``, the leakage that the adversary step found for each channel.

        Raises
        ------
        SolverError
            As `master_step`.
        ValidationError
            `max_iterations` is not a whole number, or a replaced step returns a value of a wrong
            type.
        """
        whole_number(max_iterations, "max_iterations", 0)
        channels, values, leaks = [self.start()], [], []
        while True:
            found = self.adversary_step(channels[-1])
            self.opponents.append(instance(found, Opponent, "adversary_step's answer"))
            leaks.append(self.opponents[-1].leakage)
            values.append(self._value(channels[-1], leaks[-1]))
            ended = self.stop(channels, values)
            if ended or len(channels) > max_iterations:
                break
            channels.append(np.asarray(self.master_step(self.opponents), dtype=float))
        history = {"channel": channels, "objective": values, "leakage": leaks}
        why = "the stopping rule is met" if ended else f"max_iterations={max_iterations} reached"
        return IterativeResult(values[-1], channels[-1], len(channels) - 1, why, history)

    def _value(self, channel: Array, leak: float) -> float:
        if isinstance(self.problem, MinLeakage):
            return leak
        return max(float((law * channel).sum()) for law in self.problem.data.costs.table)
