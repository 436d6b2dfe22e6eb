"""Shannon capacity of a channel: lower and upper bound, both proved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.capacities.channel_sets import capacity_of_set, largest_divergence, point_of
from cvxleak.capacities.outputs import merged_columns, proportional_columns
from cvxleak.core.clock import Clock
from cvxleak.iterative.interior_point import FLOOR, capacity_interior_point
from cvxleak.kernel.numbers import precision
from cvxleak.measures import mutual_information
from cvxleak.model import Channel, ChannelSet, Prior, as_channel
from cvxleak.problem import Gap
from cvxleak.problem.bound import Bound, Stopped
from cvxleak.problem.candidates import candidate_weights, law_violations, positive_part
from cvxleak.problem.problem import Found, Once, Problem, Search, Toward
from cvxleak.proofs.checker import PROVERS

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["Capacity", "capacity"]

METHOD = "an interior-point method, because information is concave in the input distribution"

NEWTON_STEPS = 100
"""Most steps of the interior-point method; mostly 8 to 15 suffice."""


@dataclass(frozen=True, eq=False)
class Capacity(Problem):
    """The Shannon capacity C = max over input distributions p of I(p, Q).

    It is the largest average leakage about the input, over all distributions of the input.

    Parameters
    ----------
    channel : Channel, ChannelSet or array_like, shape (inputs, outputs)
        Its entries are taken as written. For a `ChannelSet`, every member has a capacity of at
        least `lower` and at most `upper`; ``bound.set_width`` is the uncertainty of the set.

    Raises
    ------
    ValidationError
        Not a channel.

    Notes
    -----
    The bound's `lower` is I(p, Q) at the `witness` p, a `Prior` on the channel's inputs, rounded
    down; `upper` is max_x D(q(.|x) || t), rounded up, at the output distribution t that the
    certificate stores. p is found by `cvxleak.iterative.capacity_interior_point`. Both bounds are
    computed in ball arithmetic.

    A candidate for `check` is a distribution of the input: weights in the order of the channel's
    inputs, or labeled by them. Its value is that of its positive part divided by its sum; for a
    set, at the center of the set.

    Examples
    --------
    >>> from cvxleak.capacities import Capacity
    >>> bound = Capacity([[0.9, 0.1], [0.1, 0.9]]).solve()
    >>> print(bound)
    capacity: 0.3680642 to 0.3680642 nats (CERTIFIED)
    >>> bound.witness.probabilities
    array([0.5, 0.5])
    >>> print(Capacity([[1.0, 0.0], [0.5, 0.5]]).check([0.5, 0.5]))
    feasible; value 0.2157616 nats
    proved optimum: 0.2231436 to 0.2231436 nats; the candidate falls short by 0.00738... to ...
    """

    kind = "capacity"
    name = "capacity"
    maximize = True
    tolerance = 1e-9
    convex = True

    channel: Channel | ChannelSet

    def __init__(self, channel: Channel | ChannelSet | ArrayLike) -> None:
        known = channel if isinstance(channel, ChannelSet) else as_channel(channel)
        object.__setattr__(self, "channel", known)

    def _search(self) -> Search:
        return Once(self._run)

    def _run(self, gap: Gap, clock: Clock) -> tuple[Found, Stopped]:
        if isinstance(self.channel, ChannelSet):
            return capacity_of_set(self.channel, gap, clock)
        matrix = self.channel.matrix
        # Equal rows and proportional outputs are one each: they change nothing but the work.
        sums = matrix.sum(axis=1)
        inputs = proportional_columns((matrix / sums[:, None]).T)
        firsts = [equal[0] for equal in inputs]
        merged = merged_columns(matrix[firsts], proportional_columns(matrix[firsts]))
        # Half of the gap is left to rounding.
        run = capacity_interior_point(
            merged, tol=gap.absolute / 2, max_iterations=NEWTON_STEPS, **clock.limits
        )
        late = clock.late
        point = np.zeros(len(matrix))
        point[firsts] = run.point
        output = (point / sums) @ matrix
        output = np.where((matrix > 0).any(axis=0), np.maximum(output, FLOOR), 0.0)
        parts = (
            {"matrix": matrix.tolist()},
            point_of(point),
            largest_divergence(output, len(matrix)),
        )
        with precision():
            lower, upper, *_ = PROVERS[self.kind].prove(*parts)
        stopped = Stopped.at_limit(clock) if late else Stopped.ROUNDING
        if run.iterations == NEWTON_STEPS:
            stopped = Stopped.WORK_LIMIT
        stats = {"method": METHOD, "iterations": run.iterations}
        witness = Prior(point, self.channel.inputs)
        return Found(lower, upper, witness, parts, stats=stats), stopped

    def _measure(self, candidate: Prior | ArrayLike) -> tuple[float, dict[str, float]]:
        inputs = self.channel.inputs
        weights = candidate_weights(candidate, len(inputs), inputs, "input")
        return mutual_information(self._center, positive_part(weights)), law_violations(weights)

    @property
    def _center(self) -> Channel:
        """The channel, or the center of the set."""
        return self.channel.center if isinstance(self.channel, ChannelSet) else self.channel

    def _toward(self, candidate: Prior | ArrayLike, bound: Bound) -> Toward:
        inputs = self.channel.inputs
        law = positive_part(candidate_weights(candidate, len(inputs), inputs, "input"))
        return lambda share: (Prior(law, inputs), point_of(law, self.channel))

    def to_cvxpy(self) -> cp.Problem:
        """Return the problem in plain CVXPY, with the input distribution as its variable ``input``.

        Maximize I(p, Q) = H(Q'p) + sum_x p_x sum_y q log q over the simplex; for a set, with Q its
        center. A solver's result is not proved: pass the point to `check`.

        Examples
        --------
        >>> from cvxleak.capacities import Capacity
        >>> statement = Capacity([[1.0, 0.0], [0.5, 0.5]])
        >>> problem = statement.to_cvxpy()
        >>> round(float(problem.solve()), 4)
        0.2231
        >>> statement.check(problem.var_dict["input"].value).shortfall[1] < 1e-4
        True
        """
        # Here, so that everything else works where CVXPY is not installed.
        import cvxpy as cp

        from cvxleak import expressions

        p = cp.Variable(len(self.channel.inputs), nonneg=True, name="input")
        constraints: list[Any] = [cp.sum(p) == 1]
        told = expressions.mutual_information(self._center, p)
        return cp.Problem(cp.Maximize(told), constraints)


def capacity(channel: Channel | ChannelSet | ArrayLike, **options: Any) -> Bound:
    """Bound the Shannon capacity of a channel: `Capacity(channel).solve(...)`.

    Parameters
    ----------
    channel : Channel, ChannelSet or array_like, shape (inputs, outputs)
        The rows q(y|x), or intervals for them; both bounds then hold for every channel of the set.
    **options
        As for `Problem.solve`.

    Examples
    --------
    >>> from cvxleak.capacities import capacity
    >>> bound = capacity([[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]])  # an erasure half of the time
    >>> print(bound.to("bits"))
    capacity: 0.5 to 0.5 bits (CERTIFIED)
    """
    return Capacity(channel).solve(**options)
