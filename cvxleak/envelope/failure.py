"""The probability that pointwise maximal leakage exceeds a level after any post-processing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.clock import Clock
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import real_number
from cvxleak.envelope.statement import Data, read_candidate
from cvxleak.kernel.numbers import precision
from cvxleak.measures.pointwise import pml_failure_probability, pml_limit
from cvxleak.measures.privacy import TIE
from cvxleak.model import Channel, Prior, as_channel, as_prior
from cvxleak.problem import Bound, Gap, Problem, Stopped
from cvxleak.problem.problem import Found, Once, Search, Toward
from cvxleak.proofs.envelope import prove_failure_probability

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["FailureProbability", "failure_probability"]


METHOD = (
    "one linear program by column generation, because at a fixed level the probability is linear "
    "and few inputs matter for an output"
)


@dataclass(frozen=True, eq=False)
class FailureProbability(Problem):
    """The largest probability that the PML exceeds epsilon after some post-processing.

    This failure probability is delta_c(epsilon) = sup P{ l(Z) > epsilon }, where l is the pointwise
    maximal leakage (PML) about X, and the supremum is over all Z with X - Y - Z: any function of
    the output, randomized or not. The value is that of a linear program (Notes).

    Parameters
    ----------
    prior : Prior or array_like, shape (k,)
        The distribution of the input. Inputs of probability zero are ignored.
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    epsilon : float
        Not negative, in nats.
    strict : bool, optional
        If False, the value is sup P{ l(Z) >= epsilon }. The two differ only if epsilon is the
        largest information density of an input, where both jump; one is right-continuous there, the
        other left-continuous.
    tie : float, optional
        A leakage within this many nats of epsilon counts as equal to it: the level is epsilon +
        `tie` if strict, and epsilon - `tie` if not. With 0 all numbers are taken as written; within
        rounding of a jump the two bounds may then lie on different sides of it.

    Raises
    ------
    ValidationError
        If the prior and the channel do not match, or a number is out of range.

    See Also
    --------
    PMLEnvelope : The inverse function.

    Notes
    -----
    ENVELOPE (8). In a post-processing, merge all outcomes of leakage above epsilon whose leakage is
    attained by the same input x: P(z|x) / P(z) stays above e^epsilon. So with w_xy the probability
    that output y becomes the symbol of x,

        maximize sum_xy P(y) w_xy subject to w >= 0, sum_x w_xy <= 1 for each y,
        and sum_y w_xy (q(y|x) - e^epsilon P(y)) >= 0 for each x,

    over the inputs with q(y|x) >= e^epsilon P(y) for some y; if strict, with q(y|x) > e^epsilon
    P(y).

    The bound's `lower` is what the `witness` attains, a `Channel` from the outputs to symbols;
    `upper` is the dual function at the certificate's multipliers. Both are computed in exact
    integer arithmetic, by the code that checks the certificate.

    A candidate for `check` is a post-processing P(z|y), its rows in the order of the channel's
    outputs or labeled by them. Its value is that of the positive part, each row divided by its sum.

    Examples
    --------
    >>> from math import log
    >>> from cvxleak.envelope import FailureProbability
    >>> mechanism = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
    >>> print(FailureProbability([0.25] * 4, mechanism, log(10 / 9)).solve())  # not the 0.1 of Y
    failure probability: 1 to 1 probability (CERTIFIED)
    >>> print(FailureProbability([0.25] * 4, mechanism, log(2)).solve())
    failure probability: 0.28 to 0.28 probability (CERTIFIED)

    The witness attains the lower bound; without post-processing the failure probability is smaller:

    >>> import numpy as np
    >>> from cvxleak.measures import pml_failure_probability
    >>> problem = FailureProbability([0.3, 0.7], [[0.8, 0.2], [0.3, 0.7]], 0.4)
    >>> bound = problem.solve()
    >>> after = problem.channel.then(bound.witness)
    >>> round(pml_failure_probability(after, problem.prior, 0.4), 6)
    0.564058
    >>> check = problem.check(np.eye(2), bound=bound)
    >>> check.feasible, round(check.value, 6), round(check.shortfall[0], 6)
    (True, 0.45, 0.114058)
    """

    kind = "failure-probability"
    name = "failure probability"
    unit = "probability"
    maximize = True
    tolerance = 1e-9
    information = ("epsilon", "tie")

    prior: Prior
    channel: Channel
    epsilon: float
    strict: bool
    tie: float

    def __init__(
        self,
        prior: Prior | ArrayLike,
        channel: Channel | ArrayLike,
        epsilon: float,
        *,
        strict: bool = True,
        tie: float = TIE,
    ) -> None:
        rows = as_channel(channel)
        if not isinstance(strict, bool | np.bool_):
            raise ValidationError(f"strict: expected True or False, found {strict!r:.40}")
        for name, value in {
            "prior": as_prior(prior, len(rows.inputs), labels=rows.inputs),
            "channel": rows,
            "epsilon": real_number(epsilon, "epsilon", 0.0),
            "strict": bool(strict),
            "tie": real_number(tie, "tie", 0.0, open_high=True),
        }.items():
            object.__setattr__(self, name, value)

    @property
    def threshold(self) -> float:
        """The level used, epsilon changed by `tie`, in nats.

        It is capped slightly above the largest possible leakage, beyond which the value is the
        same.
        """
        level = self.epsilon + self.tie if self.strict else self.epsilon - self.tie
        return min(level, pml_limit(self.prior) + math.log(2))

    def _search(self) -> Search:
        return Once(self._run)

    def _run(self, gap: Gap, clock: Clock) -> tuple[Found, Stopped]:
        data = Data(self.prior, self.channel)
        # Beyond the largest leakage there is nothing to find, however far.
        level = math.exp(min(self.threshold, 700.0))
        vertex = data.program.solve(
            level, strict=self.strict, tol=max(gap.absolute / 4, 1e-13), clock=clock
        )
        stopped = Stopped.at_limit(clock) if clock.late else Stopped.NO_PROGRESS
        stored = data.stored() | {"epsilon": self.threshold, "strict": self.strict}
        witness, proof = data.witness(vertex), {"multipliers": data.multipliers(vertex)}
        with precision():
            lower, upper = prove_failure_probability(stored, witness, proof)
        stats = {"method": METHOD, "pivots": data.program.pivots}
        parts = (stored, witness, proof)
        return Found(lower, upper, data.post_processing(witness), parts, stats=stats), stopped

    def _measure(self, candidate: Channel | ArrayLike) -> tuple[float, dict[str, float]]:
        channel, violations = read_candidate(candidate, self.channel.outputs)
        value = pml_failure_probability(
            self.channel.then(channel),
            self.prior,
            self.epsilon,
            strict=self.strict,
            tie=self.tie,
        )
        return value, violations

    def _toward(self, candidate: Channel | ArrayLike, bound: Bound) -> Toward:
        channel, _ = read_candidate(candidate, self.channel.outputs)
        data = Data(self.prior, self.channel)
        return lambda share: (channel, data.symbols(channel.matrix, self.threshold))

    def to_cvxpy(self) -> cp.Problem:
        """Return the linear program in plain CVXPY, with the variable ``weights``, for reference.

        Its rows are the inputs and its columns the outputs. For `check`, transpose it and add a
        column with the rest of each output. `tie` is ignored.

        Examples
        --------
        >>> from cvxleak.envelope import FailureProbability
        >>> problem = FailureProbability([0.3, 0.7], [[0.8, 0.2], [0.3, 0.7]], 0.4).to_cvxpy()
        >>> round(float(problem.solve(solver="HIGHS")), 6)
        0.564058
        """
        # Here, so that everything else works where CVXPY is not installed.
        import cvxpy as cp

        rows, law = self.channel.matrix, self.prior.probabilities
        output = law @ rows
        excess = rows - math.exp(min(self.epsilon, pml_limit(self.prior) + math.log(2))) * output
        w = cp.Variable(rows.shape, nonneg=True, name="weights")
        reaches = (excess > 0) if self.strict else (excess >= 0)
        able = (law > 0) & (reaches & (rows > 0)).any(axis=1)
        constraints: list[Any] = [cp.sum(w, axis=0) <= 1]
        constraints.append(cp.sum(cp.multiply(w, excess), axis=1) >= 0)
        if not able.all():
            constraints.append(w[np.flatnonzero(~able)] == 0)
        return cp.Problem(cp.Maximize(cp.sum(w @ output)), constraints)


def failure_probability(
    prior: Prior | ArrayLike,
    channel: Channel | ArrayLike,
    epsilon: float,
    *,
    strict: bool = True,
    tie: float = TIE,
    **options: Any,
) -> Bound:
    """Bound the failure probability delta_c(epsilon): `FailureProbability(...).solve(...)`.

    Parameters
    ----------
    prior, channel, epsilon, strict, tie
        As for `FailureProbability`.
    **options
        As for `Problem.solve`.

    Examples
    --------
    With and without `strict`, for a mechanism whose outputs all leak the same:

    >>> from cvxleak.mechanisms import pml_extremal
    >>> from cvxleak.envelope import failure_probability
    >>> prior = [0.2, 0.3, 0.5]
    >>> mechanism = pml_extremal(prior, 0.1)
    >>> failure_probability(prior, mechanism, 0.1).upper
    0.0
    >>> round(failure_probability(prior, mechanism, 0.1, strict=False).lower, 9)
    1.0
    """
    problem = FailureProbability(prior, channel, epsilon, strict=strict, tie=tie)
    return problem.solve(**options)
