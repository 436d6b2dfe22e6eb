"""Computed quantities: of the whole mechanism, under a known distribution, and distortions."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import NamedTuple

import numpy as np

from cvxleak import measures
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, instance, short
from cvxleak.core.value import preview
from cvxleak.model import Channel, Distortion, Mechanism, Prior
from cvxleak.problem.bound import unit_scale
from cvxleak.report import names
from cvxleak.report import sentences as say
from cvxleak.report.progress import Progress
from cvxleak.report.quantity import Quantity

__all__ = [
    "Formula",
    "computed",
    "distortions",
    "posteriors",
    "profile",
    "under_prior",
    "whole_dataset",
]


class Formula(NamedTuple):
    """A measure of a mechanism that needs no search.

    Attributes
    ----------
    name : str
    value : callable
        Evaluates it; in nats, if it has no unit of its own.
    meaning : callable
        Says in a sentence what the value means.
    unit : str or None
        A unit that is not of information.
    """

    name: str
    value: Callable[[], float]
    meaning: Callable[[float], str]
    unit: str | None = None


def computed(formulas: Iterable[Formula], unit: str, progress: Progress) -> Iterator[Quantity]:
    """Yield the values of formulas, information in `unit`."""
    for name, function, meaning, own in formulas:
        progress.begin(name)
        start = time.monotonic()
        try:
            value = function()
        finally:
            progress.end()
        seconds = time.monotonic() - start
        shown = value if own else value / unit_scale(unit)
        yield Quantity.computed(name, shown, own or unit, meaning(value), seconds=seconds)


def whole_dataset(mechanism: Mechanism) -> list[Formula]:
    """Return the measures that need no adversary and no prior."""
    channel = mechanism.channel
    uniform = Prior.uniform(channel.inputs)
    return [
        Formula(
            names.MAXIMAL_LEAKAGE,
            lambda: measures.maximal_leakage(channel, uniform),
            say.maximal_leakage,
        ),
        Formula(names.RECORD_DP, lambda: measures.record_dp_epsilon(mechanism), say.record_dp),
        Formula(names.LOCAL_DP, lambda: measures.local_dp_epsilon(channel), say.local_dp),
    ]


def under_prior(
    mechanism: Mechanism, prior: Prior, unit: str, progress: Progress
) -> Iterator[Quantity]:
    """Yield the measures of a local mechanism whose record has a known distribution."""
    instance(prior, Prior, "prior")
    if mechanism.space.records != 1:
        raise ValidationError(
            "prior: it is the distribution of the only record of a local mechanism; here there are "
            f"{mechanism.space.records} records"
        )
    law = _law(mechanism, prior)
    channel = mechanism.to_channel()
    formulas = [
        Formula(
            names.MUTUAL_INFORMATION,
            lambda: measures.mutual_information(channel, law),
            lambda _: say.MUTUAL_INFORMATION,
        ),
        Formula(
            names.MAX_INFORMATION,
            lambda: measures.max_information(channel, law),
            say.max_information,
        ),
        Formula(
            names.PRIOR_GUESS,
            lambda: measures.bayes_vulnerability(law),
            say.known_guess("before"),
            names.PROBABILITY,
        ),
        Formula(
            names.POSTERIOR_GUESS,
            lambda: measures.posterior_bayes_vulnerability(channel, law),
            say.known_guess("after"),
            names.PROBABILITY,
        ),
    ]
    yield from computed(formulas, unit, progress)
    for outcome, leakage in zip(channel.outputs, measures.pml(channel, law), strict=True):
        if leakage > -math.inf:
            value = float(leakage) / unit_scale(unit)
            meaning = say.pml(outcome, float(leakage))
            yield Quantity.computed(names.PML, value, unit, meaning, outcome=outcome)


def profile(mechanism: Mechanism, epsilons: Iterable[float], unit: str) -> Iterator[Quantity]:
    """Yield the least delta of (epsilon, delta)-differential privacy, each epsilon in nats."""
    for epsilon in epsilons:
        delta = measures.record_privacy_profile(mechanism, epsilon)
        yield Quantity.computed(
            names.RECORD_DELTA,
            delta,
            names.PROBABILITY,
            say.record_delta(epsilon, delta),
            epsilon=epsilon / unit_scale(unit),
        )


def posteriors(
    mechanism: Mechanism, prior: Prior, outputs: Iterable[Hashable]
) -> Iterator[Quantity]:
    """Yield the probability of each value of the only record that can occur, given each output."""
    law = _law(mechanism, prior)
    values = mechanism.space.alphabets[0]
    posterior = Channel(mechanism.to_channel().matrix, values, mechanism.outputs).posterior(law)
    for outcome in outputs:
        if outcome not in posterior.inputs:
            raise ValidationError(
                f"outputs: found {short(outcome)}; the outputs that can occur under the prior are "
                f"{preview(posterior.inputs)}"
            )
        for value, before, after in zip(values, law, posterior.row(outcome), strict=True):
            if before > 0:
                meaning = say.posterior(outcome, value, before, after)
                yield Quantity.computed(
                    names.POSTERIOR,
                    float(after),
                    names.PROBABILITY,
                    meaning,
                    outcome=outcome,
                    value=value,
                )


def distortions(
    mechanism: Mechanism, distortion: Distortion | str, prior: Prior | None
) -> list[Formula]:
    """Return what the noise costs: at the worst dataset and on average."""
    channel = mechanism.channel
    certain = np.eye(len(channel.inputs))
    whose = "if all datasets are equally likely" if prior is None else "under the given prior"
    return [
        Formula(
            names.WORST_CASE_DISTORTION,
            lambda: measures.worst_case_distortion(channel, certain, distortion),
            lambda _: say.WORST_CASE_DISTORTION,
            names.DISTORTION,
        ),
        Formula(
            names.EXPECTED_DISTORTION,
            lambda: measures.expected_distortion(channel, _value_law(mechanism, prior), distortion),
            lambda _: say.expected_distortion(whose),
            names.DISTORTION,
        ),
    ]


def _law(mechanism: Mechanism, prior: Prior) -> Array:
    """Return the prior in the order of the record's alphabet."""
    alphabet = mechanism.space.alphabets[0]
    if set(prior.labels) != set(alphabet):
        raise ValidationError(
            f"prior: its outcomes are {list(prior.labels)}; they must be the values of the "
            f"record, {list(alphabet)}"
        )
    return np.array([prior[value] for value in alphabet])


def _value_law(mechanism: Mechanism, prior: Prior | None) -> Array:
    """Return the distribution of the query's value, under a record's prior or the uniform one."""
    query = mechanism.query
    law = np.zeros(len(query.values))
    if prior is not None:
        np.add.at(law, query.table().ravel(), _law(mechanism, prior))
        return law
    counts = [0] * len(law)
    for fiber in query.fibers([0]):
        for place, count in fiber.items():
            counts[place] += count
    # The counts are integers of any size; their quotients are floats.
    return np.array([count / mechanism.space.size for count in counts])
