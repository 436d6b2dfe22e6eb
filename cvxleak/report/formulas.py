"""The quantities that are computed: of the whole mechanism, under a known law, and distortions."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from cvxleak import measures
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, instance
from cvxleak.model import Channel, Distortion, Mechanism, Prior
from cvxleak.problem.bound import unit_scale
from cvxleak.report import names
from cvxleak.report import sentences as say
from cvxleak.report.quantity import COMPUTED, Quantity
from cvxleak.report.watch import Watch, solved

__all__ = ["Formulas", "capacity_of"]


def capacity_of(
    channel: Channel, unit: str, meaning: str, watch: Watch, **options: Any
) -> Quantity:
    """Return the capacity of a channel, with its certificate."""
    from cvxleak.capacities import Capacity

    bound = solved(watch, names.CAPACITY, Capacity(channel).solve, **options)
    return Quantity.of_bound(names.CAPACITY, bound, unit, meaning)


class Formulas:
    """The measures of one mechanism that need no search.

    Parameters
    ----------
    mechanism : Mechanism
    unit : str
    watch : Watch
    """

    def __init__(self, mechanism: Mechanism, unit: str, watch: Watch) -> None:
        self.mechanism = mechanism
        self.unit = unit
        self.watch = watch

    def whole_dataset(self) -> Iterator[Quantity]:
        """Yield the measures that need no adversary and no prior."""
        mechanism, channel = self.mechanism, self.mechanism.channel
        yield capacity_of(channel, self.unit, say.capacity(), self.watch)
        uniform = Prior.uniform(channel.inputs)
        for name, function, meaning in (
            (
                names.MAXIMAL_LEAKAGE,
                lambda: measures.maximal_leakage(uniform, channel),
                say.maximal_leakage,
            ),
            (names.RECORD_DP, lambda: measures.record_dp_epsilon(mechanism), say.record_dp),
            (names.LOCAL_DP, lambda: measures.local_dp_epsilon(channel), say.local_dp),
        ):
            yield self._computed(name, function, meaning)

    def under(self, prior: Prior) -> Iterator[Quantity]:
        """Yield the measures of a local mechanism whose record has a known law."""
        instance(prior, Prior, "prior")
        if self.mechanism.space.records != 1:
            raise ValidationError(
                "prior: it is the law of the only record of a local mechanism; here there are "
                f"{self.mechanism.space.records} records"
            )
        law = self._law(prior)
        channel = self.mechanism.to_channel()
        for name, function, meaning, unit in (
            (
                names.MUTUAL_INFORMATION,
                lambda: measures.mutual_information(law, channel),
                lambda _: say.mutual_information(),
                None,
            ),
            (
                names.MAX_INFORMATION,
                lambda: measures.max_information(law, channel),
                say.max_information,
                None,
            ),
            (
                names.PRIOR_GUESS,
                lambda: measures.bayes_vulnerability(law),
                say.known_guess("before"),
                names.PROBABILITY,
            ),
            (
                names.POSTERIOR_GUESS,
                lambda: measures.posterior_bayes_vulnerability(law, channel),
                say.known_guess("after"),
                names.PROBABILITY,
            ),
        ):
            yield self._computed(name, function, meaning, unit)
        for outcome, leakage in zip(channel.outputs, measures.pml(law, channel), strict=True):
            if leakage > -math.inf:
                nats = float(leakage)
                value = nats / unit_scale(self.unit)
                yield Quantity(
                    names.PML,
                    value,
                    value,
                    self.unit,
                    COMPUTED,
                    say.pml(outcome, nats),
                    outcome=outcome,
                )

    def distortions(self, distortion: Distortion, prior: Prior | None) -> Iterator[Quantity]:
        """Yield what the noise costs: at the worst dataset and on average."""
        channel = self.mechanism.channel
        yield self._computed(
            names.WORST_CASE_DISTORTION,
            lambda: measures.worst_case_distortion(
                np.eye(len(channel.inputs)), channel, distortion
            ),
            lambda _: say.worst_case_distortion(),
            names.DISTORTION,
        )
        whose = "if all datasets are equally likely" if prior is None else "under the given prior"
        yield self._computed(
            names.EXPECTED_DISTORTION,
            lambda: measures.expected_distortion(self._value_law(prior), channel, distortion),
            lambda _: say.expected_distortion(whose),
            names.DISTORTION,
        )

    def _computed(
        self,
        name: str,
        function: Callable[[], float],
        meaning: Callable[[float], str],
        unit: str | None = None,
    ) -> Quantity:
        """Evaluate a formula; nats are converted unless the value has a `unit` of its own."""
        self.watch.begin(name)
        start = time.monotonic()
        try:
            value = function()
        finally:
            self.watch.end()
        seconds = time.monotonic() - start
        shown = value if unit else value / unit_scale(self.unit)
        return Quantity(name, shown, shown, unit or self.unit, COMPUTED, meaning(value), seconds)

    def _law(self, prior: Prior) -> Array:
        """Return the prior in the order of the record's alphabet."""
        alphabet = self.mechanism.space.alphabets[0]
        if set(prior.labels) != set(alphabet):
            raise ValidationError(
                f"prior: its outcomes are {list(prior.labels)}; they must be the values of the "
                f"record, {list(alphabet)}"
            )
        return np.array([prior[value] for value in alphabet])

    def _value_law(self, prior: Prior | None) -> Array:
        """Return the law of the query's value, under a prior of one record or the uniform one."""
        query = self.mechanism.query
        law = np.zeros(len(query.values))
        if prior is not None:
            np.add.at(law, query.table().ravel(), self._law(prior))
            return law
        counts = [0] * len(law)
        for fiber in query.fibers([0]):
            for place, count in fiber.items():
                counts[place] += count
        # The counts are integers of any size; their quotients are floats.
        return np.array([count / self.mechanism.space.size for count in counts])
