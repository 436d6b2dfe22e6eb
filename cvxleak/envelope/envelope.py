"""The PML envelope: a level that leakage rarely exceeds, after any post-processing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.clock import Clock
from cvxleak.core.validation import real_number
from cvxleak.envelope.failure import FailureProbability
from cvxleak.envelope.program import Vertex
from cvxleak.envelope.search import largest_level, tail_average
from cvxleak.envelope.statement import Data, read_candidate
from cvxleak.kernel.numbers import precision
from cvxleak.measures.pointwise import pml_right_quantile
from cvxleak.measures.privacy import TIE
from cvxleak.model import Channel, Prior, as_channel, as_prior
from cvxleak.problem import Bound, Gap, Problem, Stopped
from cvxleak.problem.problem import Found, Once, Search, Toward
from cvxleak.proofs.envelope import prove_envelope

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["PMLEnvelope", "pml_envelope"]


METHOD = (
    "a search for the largest level whose linear program reaches delta, because the value of the "
    "program falls with the level"
)


@dataclass(frozen=True, eq=False)
class PMLEnvelope(Problem):
    """The PML envelope eps_c(delta): the largest delta-quantile of the PML after post-processing.

    After any post-processing of the output, the pointwise maximal leakage exceeds eps_c(delta) with
    probability at most delta, and no smaller level has this property.

    Parameters
    ----------
    prior : Prior or array_like, shape (k,)
        The distribution of the input. Inputs of probability zero are ignored.
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    delta : float
        In [0, 1]. The value at 0 is the limit from above, the largest leakage of an output; the
        value at 1 is the limit from below, which need not be 0.
    tie : float, optional
        A probability within this relative distance of delta counts as equal to it: the envelope is
        computed at delta (1 - `tie`), where it is no smaller, and larger by at most log 1 / (1 -
        `tie`) (see Notes). With 0 all numbers are taken as written.

    Raises
    ------
    ValidationError
        If the prior and the channel do not match, or a number is out of range.

    See Also
    --------
    FailureProbability : The inverse function.
    envelope_curve : All delta at once.
    cvxleak.envelope.response_envelope : In closed form, for randomized response.

    Notes
    -----
    ENVELOPE section IV and Theorem 2: eps_c(delta) is the largest epsilon at which the linear
    program of `FailureProbability`, not strict, has a value of delta or more.

    The envelope is continuous on (0, 1]: delta e^eps_c(delta) does not decrease as delta increases.
    For symbols of total mass delta and level t can be enlarged by what is left of the outputs to
    any total mass d > delta, all by the factor d / delta, and then have at least the level t delta
    / d.

    The bound's `lower` is the PML delta-quantile of the `witness`, a `Channel` from the outputs to
    symbols; `upper` is a level at which the dual function, at the certificate's multipliers, is
    below delta. Both are computed in exact integer arithmetic, by the code that checks the
    certificate.

    A candidate for `check` is a post-processing, as for `FailureProbability`; its value is its PML
    delta-quantile.

    Examples
    --------
    >>> import math
    >>> from cvxleak.envelope import PMLEnvelope
    >>> mechanism = [[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]]
    >>> bound = PMLEnvelope([0.25] * 4, mechanism, 0.1).solve()
    >>> round(math.exp(bound.lower), 9)  # ENVELOPE, after Theorem 2: log 4 for delta <= 0.1
    4.0
    >>> print(PMLEnvelope([0.25] * 4, mechanism, 0.5).solve())
    PML envelope: 0.4128452 to 0.4128452 nats (CERTIFIED)
    >>> print(PMLEnvelope([0.3, 0.7], [[0.8, 0.2], [0.3, 0.7]], 0.6).check([[1, 0], [0, 1]]))
    feasible; value 0.2411621 nats
    proved optimum: 0.35364 to 0.35364 nats; the candidate falls short by 0.112478 to 0.112478
    """

    kind = "pml-envelope"
    name = "PML envelope"
    maximize = True
    tolerance = 1e-9

    prior: Prior
    channel: Channel
    delta: float
    tie: float

    def __init__(
        self,
        prior: Prior | ArrayLike,
        channel: Channel | ArrayLike,
        delta: float,
        *,
        tie: float = TIE,
    ) -> None:
        rows = as_channel(channel)
        for name, value in {
            "prior": as_prior(prior, len(rows.inputs), labels=rows.inputs),
            "channel": rows,
            "delta": real_number(delta, "delta", 0.0, 1.0),
            "tie": real_number(tie, "tie", 0.0, 1.0, open_high=True),
        }.items():
            object.__setattr__(self, name, value)

    def _search(self) -> Search:
        return Once(self._run)

    def _run(self, gap: Gap, clock: Clock) -> tuple[Found, Stopped]:
        delta = self.delta * (1 - self.tie)
        data = Data(self.prior, self.channel, delta or 1e-15)
        levels = largest_level(data.program, min(delta, 1 - TIE), clock)
        stopped = Stopped.at_limit(clock) if clock.late else Stopped.NO_PROGRESS
        stored = data.stored() | {"delta": delta}
        witness = data.witness(levels.below)
        if delta > 1 - TIE:
            # Symbols of less mass will not do: no rest may be left, however small.
            witness = data.completed(witness)
        lower, upper, proof = 0.0, math.inf, {}
        for proof in _proofs(data, levels.above, delta):
            with precision():
                lower, upper = prove_envelope(stored, witness, proof)
            if math.isfinite(upper):
                break
        stats = {"method": METHOD, "levels": levels.tried, "pivots": data.program.pivots}
        parts = (stored, witness, proof)
        return Found(lower, upper, data.post_processing(witness), parts, stats=stats), stopped

    def _measure(self, candidate: Channel | ArrayLike) -> tuple[float, dict[str, float]]:
        channel, violations = read_candidate(candidate, self.channel.outputs)
        after = self.channel.then(channel)
        return float(pml_right_quantile(after, self.prior, self.delta)), violations

    def _toward(self, candidate: Channel | ArrayLike, bound: Bound) -> Toward:
        channel, _ = read_candidate(candidate, self.channel.outputs)
        delta = self.delta * (1 - self.tie)
        data = Data(self.prior, self.channel, delta or 1e-15)
        level = self._measure(channel)[0] - 1e-12
        stored = data.symbols(channel.matrix, level)
        if delta > 1 - TIE:
            stored = data.completed(stored)
        return lambda share: (channel, stored)

    def to_cvxpy(self, epsilon: float) -> cp.Problem:
        """Return the linear program at one level in plain CVXPY, for reference.

        eps_c(delta) is the largest epsilon at which its value is delta or more.

        Examples
        --------
        >>> from cvxleak.envelope import PMLEnvelope
        >>> statement = PMLEnvelope([0.3, 0.7], [[0.8, 0.2], [0.3, 0.7]], 0.6)
        >>> value = statement.to_cvxpy(statement.solve().lower).solve(solver="HIGHS")
        >>> round(float(value), 6)
        0.6
        """
        return FailureProbability(
            self.prior, self.channel, epsilon, strict=False, tie=0.0
        ).to_cvxpy()


def _proofs(data: Data, above: Vertex, delta: float) -> Iterator[dict[str, Any]]:
    """Yield levels with multipliers, from the lowest level up; the last one is always a proof.

    Rounding may spoil the multipliers of the lowest, where they are huge: then farther out.
    """
    yield {"multipliers": data.multipliers(above), "level": above.level}
    last = float(data.program.jumps.max()) * (1 + 1e-12)
    tail, multiplier = tail_average(data.program, delta)
    for step in 10.0 ** np.arange(-13, 0):
        level = above.level * (1 + float(step))
        if level < min(tail, last):
            yield {"multipliers": data.multipliers(data.program.solve(level)), "level": level}
    if tail < last:
        yield {"multipliers": [multiplier] * len(data.channel.inputs), "level": tail}
    # Above all leakages no multipliers are needed.
    yield {"multipliers": [0.0] * len(data.channel.inputs), "level": last}


def pml_envelope(
    prior: Prior | ArrayLike,
    channel: Channel | ArrayLike,
    delta: float,
    *,
    tie: float = TIE,
    **options: Any,
) -> Bound:
    """Bound the PML envelope eps_c(delta): `PMLEnvelope(...).solve(...)`.

    Parameters
    ----------
    prior, channel, delta, tie
        As for `PMLEnvelope`.
    **options
        As for `Problem.solve`.

    Examples
    --------
    >>> from cvxleak.mechanisms import randomized_response
    >>> from cvxleak.envelope import pml_envelope
    >>> print(pml_envelope([0.2, 0.3, 0.5], randomized_response(3, 1.0), 0.5))
    PML envelope: 0.5842648 to 0.5842648 nats (CERTIFIED)
    """
    return PMLEnvelope(prior, channel, delta, tie=tie).solve(**options)
