"""`envelope_report`: what leakage keeps to after any post-processing, with bounds beside it."""

from __future__ import annotations

import functools
import itertools
import math
import numbers
from typing import Any

from numpy.typing import ArrayLike

from cvxleak import envelope, measures
from cvxleak.core.clock import WORK_LIMIT, Clock
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import in_order, real_number
from cvxleak.model import Channel, Prior, as_channel, as_prior
from cvxleak.problem.bound import converted, unit_scale
from cvxleak.report import names
from cvxleak.report import sentences as say
from cvxleak.report.progress import Progress, as_progress, solved
from cvxleak.report.quantity import Quantity, Report

__all__ = ["envelope_report"]

BOUNDS = {
    names.PML_QUANTILE: lambda p, q, delta: measures.pml_right_quantile(q, p, delta),
    names.EVENT_ENVELOPE: lambda p, q, delta: measures.event_envelope(q, p, delta),
    names.THEOREM_3: envelope.envelope_upper_bound,
    names.TAIL_AVERAGE: envelope.tail_average_bound,
}
"""What is known beside the envelope, as a function of distribution, channel and probability."""

FAILURES = {
    True: (names.FAILURE, names.RELEASED_FAILURE),
    False: (names.FAILURE_OR_EQUAL, names.RELEASED_FAILURE_OR_EQUAL),
}
"""What the probability of a leakage above a level, or not below it, is called, and that of the
output as it is released."""


def envelope_report(
    prior: Prior | ArrayLike,
    channel: Channel | ArrayLike,
    *,
    epsilon: ArrayLike = (),
    delta: ArrayLike = (),
    unit: str = "nats",
    tol: float | None = None,
    time_limit: float | None = None,
    work_limit: float | None = WORK_LIMIT,
    progress: Progress | None = None,
) -> Report:
    """Return the PML envelope and the failure probabilities of a channel, exact and bounded.

    Parameters
    ----------
    prior : Prior or array_like, shape (k,)
        The distribution of the input.
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    epsilon : float or sequence of float
        Levels, in `unit`, at which the failure probability is wanted: both that of a leakage above
        the level and that of one that may equal it.
    delta : float or sequence of float
        Probabilities at which the envelope eps_c(delta) is wanted.
    unit : {"nats", "bits"}
        Unit of `epsilon` and of every information quantity in the report.
    tol : float, optional
        Gap to reach, in nats and in probability; the problems' own if left out.
    time_limit : float or None
        Seconds for all of it; what is not closed then is reported BRACKETED.
    work_limit : float or None
        As for `Problem.solve`, for each search.
    progress : Progress, optional
        Is told about progress.

    Returns
    -------
    Report

    Raises
    ------
    ValidationError
        Arguments of the wrong kind, or neither `delta` nor `epsilon`.

    Notes
    -----
    ENVELOPE section IV, (8) and (9), exact by the linear program of `cvxleak.envelope`. The bounds
    are (14), Theorem 3 and the tail average (`cvxleak.envelope.tail_average_bound`).

    Examples
    --------
    >>> from cvxleak.report import envelope_report
    >>> channel = [[0.8, 0.2], [0.3, 0.7]]
    >>> report = envelope_report([0.3, 0.7], channel, epsilon=0.4, delta=[0.1, 0.6])
    >>> [(q.delta, round(q.upper, 4)) for q in report.named("PML envelope")]
    [(0.1, 0.5754), (0.6, 0.3536)]
    >>> [round(q.upper, 4) for q in report.named("failure probability")]
    [0.5641]
    """
    rows = as_channel(channel)
    law = as_prior(prior, len(rows.inputs), labels=rows.inputs)
    probabilities = _several(delta, "delta", 1.0)
    levels = _several(epsilon, "epsilon", math.inf)
    if not probabilities and not levels:
        raise ValidationError("delta: found none, and no epsilon; at least one is needed")
    progress, clock = as_progress(progress), Clock(time_limit)
    solve = functools.partial(solved, progress, tol=tol, work_limit=work_limit)
    found: list[Quantity] = []
    for place, d in enumerate(probabilities):
        problem = envelope.PMLEnvelope(law, rows, d)
        share = clock.share(len(probabilities) - place)
        bound = solve(f"envelope at delta {d:g}", problem.solve, time_limit=share)
        meaning = say.envelope(d, bound.upper)
        found.append(Quantity.of_bound(names.ENVELOPE, bound, unit, meaning, delta=d))
        for name, function in BOUNDS.items():
            value, meaning = (
                float(function(law, rows, d)) / unit_scale(unit),
                say.ENVELOPE_BOUNDS[name],
            )
            found.append(Quantity.computed(name, value, unit, meaning, delta=d))
    for place, (level, strict) in enumerate(itertools.product(levels, (True, False))):
        nats = converted(level, unit)
        problem = envelope.FailureProbability(law, rows, nats, strict=strict)
        what = f"failure probability at epsilon {level:g} {unit}"
        share = clock.share(2 * len(levels) - place)
        bound = solve(what, problem.solve, time_limit=share)
        name, released = FAILURES[strict]
        meaning = say.failure(nats, strict)
        found.append(Quantity.of_bound(name, bound, unit, meaning, epsilon=level))
        value = measures.pml_failure_probability(rows, law, nats, strict=strict)
        meaning = say.released_failure(nats, strict)
        found.append(Quantity.computed(released, value, names.PROBABILITY, meaning, epsilon=level))
    facts = {"inputs": len(rows.inputs), "outputs": len(rows.outputs)}
    return Report(unit, tuple(found), facts, progress.interrupted)


def _several(given: Any, name: str, most: float) -> list[float]:
    """Return distinct numbers from 0 to `most` in increasing order, finite ones."""
    found = [given] if isinstance(given, numbers.Real) else in_order(given, name)
    return sorted({real_number(one, name, 0.0, most, open_high=most == math.inf) for one in found})
