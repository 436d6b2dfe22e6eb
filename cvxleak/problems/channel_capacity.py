"""Shannon capacity of a channel, with both ends proved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak._clock import Clock
from cvxleak._validation import real_number
from cvxleak.branch_and_bound.outputs import merged_columns, proportional_columns
from cvxleak.certificates import Certificate
from cvxleak.certificates.capacity import Enclosure
from cvxleak.iterative.interior_point import FLOOR, capacity_interior_point
from cvxleak.measures import mutual_information
from cvxleak.model import Channel, Prior, as_channel
from cvxleak.problems.candidates import candidate_weights, law_violations, positive_part
from cvxleak.problems.check import Check
from cvxleak.result import Bound, Stopped

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["Capacity", "capacity"]

NEWTON_STEPS = 100
"""Most steps of the interior-point method; mostly 8 to 15 suffice."""


@dataclass(frozen=True)
class Capacity:
    """The problem C = max over input laws p of I(p, Q), the Shannon capacity of a channel Q.

    The most that an observer of the output can learn on average about the input, whatever the
    input's law.

    Parameters
    ----------
    channel : Channel or array_like, shape (inputs, outputs)
        Its rows are meant as written.

    Raises
    ------
    ValidationError
        Not a channel.

    Examples
    --------
    >>> from cvxleak.problems import Capacity
    >>> bound = Capacity([[0.9, 0.1], [0.1, 0.9]]).solve()
    >>> print(bound)
    capacity: 0.3680642 to 0.3680642 nats (CERTIFIED)
    >>> bound.witness.probabilities
    array([0.5, 0.5])
    """

    channel: Channel

    def __init__(self, channel: Channel | ArrayLike) -> None:
        object.__setattr__(self, "channel", as_channel(channel))

    def solve(self, *, tol: float = 1e-9, time_limit: float | None = None) -> Bound:
        """Return the capacity's bracket, in nats.

        Parameters
        ----------
        tol : float
            The gap to reach, in nats. Rounding costs about 4e-15 nats for every output, so a
            smaller gap than that is out of reach.
        time_limit : float, optional
            Seconds after which the bracket reached is returned.

        Returns
        -------
        Bound
            `lower` is I(p, Q) at the `witness` p, a `Prior` on the channel's inputs, rounded down;
            `upper` is max_x D(q(.|x) || t), rounded up, at the output law t that the certificate
            stores. CERTIFIED if the gap is at most `tol`. `refine` solves again.

        Raises
        ------
        ValidationError
            An option out of range.

        Notes
        -----
        p is found by `cvxleak.iterative.capacity_interior_point`. What makes the two ends a proof
        is `cvxleak.certificates.capacity.Enclosure`: it evaluates them in floating point and moves
        them outward by a bound on all rounding errors. The certificate's checker computes the same
        two numbers again in ball arithmetic and so confirms them.

        Examples
        --------
        >>> from cvxleak.certificates import verify
        >>> from cvxleak.problems import Capacity
        >>> bound = Capacity([[1.0, 0.0], [0.5, 0.5]]).solve()
        >>> bound.gap < 1e-9, verify(bound.certificate).passed
        (True, True)
        """
        real_number(tol, "tol", 0.0)
        clock = Clock(time_limit)
        matrix = self.channel.matrix
        # Equal rows and proportional outputs are one each: they change nothing but the work.
        sums = matrix.sum(axis=1)
        inputs = proportional_columns((matrix / sums[:, None]).T)
        firsts = [equal[0] for equal in inputs]
        merged = merged_columns(matrix[firsts], proportional_columns(matrix[firsts]))
        # Half of the gap is left to rounding.
        run = capacity_interior_point(
            merged, tol=tol / 2, max_iterations=NEWTON_STEPS, time_limit=clock.limit
        )
        late = clock.late
        point = np.zeros(len(matrix))
        point[firsts] = run.point
        output = (point / sums) @ matrix
        output = np.where((matrix > 0).any(axis=0), np.maximum(output, FLOOR), 0.0)
        witness = Prior(point, self.channel.inputs)
        lower, upper = Enclosure(self.channel).ends(witness, Prior(output, self.channel.outputs))
        stopped = Stopped.TIME_LIMIT if late else Stopped.ROUNDING
        if upper - lower <= tol:
            stopped = Stopped.TOLERANCE
        elif run.iterations == NEWTON_STEPS:
            stopped = Stopped.WORK_LIMIT
        certificate = Certificate(
            "capacity",
            {"matrix": matrix.tolist()},
            lower,
            upper,
            {"input": point.tolist()},
            {"output": output.tolist()},
        )
        return Bound.proved(
            "capacity",
            lower,
            upper,
            tol=0.0,
            absolute=tol,
            witness=witness,
            certificate=certificate,
            stats={
                "seconds": clock.seconds,
                "iterations": run.iterations,
                "stopped": stopped,
            },
            resume=self._refine,
        )

    def check(
        self,
        candidate: Prior | ArrayLike,
        *,
        bound: Bound | None = None,
        tol: float = 1e-9,
        time_limit: float | None = None,
    ) -> Check:
        """Judge an input law that was found elsewhere against the certified bracket.

        Parameters
        ----------
        candidate : Prior, pandas.Series or array_like, shape (inputs,)
            Weights in the order of the channel's inputs, or labeled by them. They need not be a
            distribution: the result says how far they are from one. The value is that of their
            positive part divided by its sum.
        bound : Bound, optional
            An earlier result of `solve`; computed with `tol` and `time_limit` if left out.

        Raises
        ------
        ValidationError
            Another number of weights than inputs, weights that are not finite, or none positive.

        Examples
        --------
        >>> from cvxleak.problems import Capacity
        >>> print(Capacity([[1.0, 0.0], [0.5, 0.5]]).check([0.5, 0.5]))
        feasible; value 0.2157616 nats
        proved optimum: 0.2231436 to 0.2231436 nats; the candidate falls short by 0.00738... to ...
        >>> print(Capacity([[1.0, 0.0], [0.5, 0.5]]).check([0.7, 0.4]).feasible)
        False
        """
        inputs = self.channel.inputs
        weights = candidate_weights(candidate, len(inputs), inputs, "input")
        value = mutual_information(positive_part(weights), self.channel)
        if bound is None:
            bound = self.solve(tol=tol, time_limit=time_limit)
        return Check(value, law_violations(weights), bound.to("nats"), maximize=True)

    def to_cvxpy(self) -> cp.Problem:
        """Return the problem in plain CVXPY, with the input law as its variable ``input``.

        Maximize I(p, Q) = H(Q'p) + sum_x p_x sum_y q log q over the simplex. What a solver returns
        is a point and a number, neither of them proved: give the point to `check`.

        Examples
        --------
        >>> from cvxleak.problems import Capacity
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
        return cp.Problem(cp.Maximize(expressions.mutual_information(p, self.channel)), constraints)

    def _refine(self, tol: float, time_limit: float | None) -> Bound:
        return self.solve(tol=tol, time_limit=time_limit)


def capacity(
    channel: Channel | ArrayLike, *, tol: float = 1e-9, time_limit: float | None = None
) -> Bound:
    """Return the Shannon capacity of a channel as a proved bracket: `Capacity(channel).solve(...)`.

    Parameters
    ----------
    channel : Channel or array_like, shape (inputs, outputs)
        The rows q(y|x).
    tol, time_limit : float
        As for `Capacity.solve`.

    Examples
    --------
    >>> from cvxleak.problems import capacity
    >>> bound = capacity([[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]])  # an erasure half of the time
    >>> print(bound.to("bits"))
    capacity: 0.5 to 0.5 bits (CERTIFIED)
    """
    return Capacity(channel).solve(tol=tol, time_limit=time_limit)
