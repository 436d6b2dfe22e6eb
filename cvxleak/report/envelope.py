"""`envelope_report`: what leakage keeps to after any post-processing, with bounds beside it."""

from __future__ import annotations

import functools
import numbers
from collections.abc import Iterator
from typing import Any

from numpy.typing import ArrayLike

from cvxleak import envelope, measures
from cvxleak.core.clock import Clock
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import in_order, real_number
from cvxleak.model import Channel, Prior, as_channel, as_prior
from cvxleak.problem.bound import converted, unit_scale
from cvxleak.report import names
from cvxleak.report import sentences as say
from cvxleak.report.progress import Progress, as_progress, solved
from cvxleak.report.quantity import Quantity, Report

__all__ = ["check_levels", "check_probabilities", "envelope_report"]


def envelope_report(
    prior: Prior | ArrayLike,
    channel: Channel | ArrayLike,
    *,
    epsilon: ArrayLike = (),
    delta: ArrayLike = (),
    unit: str = "nats",
    tol: float | None = None,
    time_limit: float | None = 60.0,
    progress: Progress | None = None,
) -> Report:
    """Return the PML envelope and the failure probabilities of a channel, exact and bounded.

    Parameters
    ----------
    prior : Prior or array_like, shape (k,)
        The law of the input.
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
    ENVELOPE (7) to (9), exact by the linear program of `cvxleak.envelope`. The bounds are
    (14), Theorem 3 and the tail average (`cvxleak.envelope.tail_average_bound`).

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
    probabilities, levels = check_probabilities(delta), check_levels(epsilon)
    if not probabilities and not levels:
        raise ValidationError("delta: found none, and no epsilon; at least one is needed")
    work = _Work(law, rows, unit, tol, Clock(time_limit), as_progress(progress))
    found = [*work.envelopes(probabilities), *work.failures(levels)]
    facts = {"inputs": len(rows.inputs), "outputs": len(rows.outputs)}
    return Report(unit, tuple(found), facts, work.progress.interrupted)


def check_probabilities(delta: ArrayLike) -> list[float]:
    """Return distinct probabilities in increasing order, or say which one is none.

    Raises
    ------
    ValidationError
        A number outside [0, 1].

    Examples
    --------
    >>> from cvxleak.report import check_probabilities
    >>> check_probabilities([0.5, 0.1, 0.5])
    [0.1, 0.5]
    """
    return sorted({real_number(d, "delta", 0.0, 1.0) for d in _several(delta, "delta")})


def check_levels(epsilon: ArrayLike) -> list[float]:
    """Return distinct levels of leakage in increasing order, or say which one is none.

    Raises
    ------
    ValidationError
        A number that is negative or not finite.

    Examples
    --------
    >>> from cvxleak.report import check_levels
    >>> check_levels([0.5, 0])
    [0.0, 0.5]
    """
    found = _several(epsilon, "epsilon")
    return sorted({real_number(e, "epsilon", 0.0, open_high=True) for e in found})


def _several(given: Any, name: str) -> list[Any]:
    return [given] if isinstance(given, numbers.Real) else list(in_order(given, name))


class _Work:
    """The linear programs of one report, which share its time."""

    def __init__(
        self,
        prior: Prior,
        channel: Channel,
        unit: str,
        tol: float | None,
        clock: Clock,
        progress: Progress,
    ) -> None:
        self.prior, self.channel = prior, channel
        self.unit, self.scale = unit, unit_scale(unit)
        self.tol, self.clock, self.progress = tol, clock, progress

    def envelopes(self, probabilities: list[float]) -> Iterator[Quantity]:
        """Yield the envelope and its bounds, delta by delta."""
        from cvxleak.envelope import pml_envelope

        if not probabilities:
            return
        given = self.prior, self.channel, probabilities
        bounds = {
            names.PML_QUANTILE: measures.pml_right_quantile(*given),
            names.EVENT_ENVELOPE: measures.event_envelope(*given),
            names.THEOREM_3: envelope.envelope_upper_bound(*given),
            names.TAIL_AVERAGE: envelope.tail_average_bound(*given),
        }
        for place, delta in enumerate(probabilities):
            bound = solved(
                self.progress,
                f"envelope at delta {delta:g}",
                functools.partial(pml_envelope, self.prior, self.channel, delta),
                tol=self.tol,
                time_limit=self.clock.share(len(probabilities) - place),
            )
            meaning = say.envelope(delta, bound.upper)
            yield Quantity.of_bound(names.ENVELOPE, bound, self.unit, meaning, delta=delta)
            for name, values in bounds.items():
                value = float(values[place]) / self.scale
                meaning = say.ENVELOPE_BOUNDS[name]
                yield Quantity.computed(name, value, self.unit, meaning, delta=delta)

    def failures(self, levels: list[float]) -> Iterator[Quantity]:
        """Yield both failure probabilities, level by level, and those of the output as it is."""
        from cvxleak.envelope import failure_probability

        for place, level in enumerate(levels):
            nats = converted(level, self.unit)
            for strict, name, released in (
                (True, names.FAILURE, names.RELEASED_FAILURE),
                (False, names.FAILURE_OR_EQUAL, names.RELEASED_FAILURE_OR_EQUAL),
            ):
                bound = solved(
                    self.progress,
                    f"failure probability at epsilon {level:g} {self.unit}",
                    functools.partial(failure_probability, self.prior, self.channel, nats),
                    strict=strict,
                    tol=self.tol,
                    time_limit=self.clock.share(2 * (len(levels) - place) - (not strict)),
                )
                meaning = say.failure(nats, strict)
                yield Quantity.of_bound(name, bound, self.unit, meaning, epsilon=level)
                value = measures.pml_failure_probability(
                    self.prior, self.channel, nats, strict=strict
                )
                meaning = say.released_failure(nats, strict)
                unit = names.PROBABILITY
                yield Quantity.computed(released, value, unit, meaning, epsilon=level)
