"""The explicit prior that attains a leakage, lumped."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from cvxleak import measures
from cvxleak.core.validation import Array, frozen_array, instance
from cvxleak.core.value import Value
from cvxleak.model import Lumped, Mechanism, Prior
from cvxleak.model.knowledge import Knowledge
from cvxleak.model.knowledge.violations import expand
from cvxleak.model.restricted import Restricted, restrict

__all__ = ["Adversary"]


@dataclass(frozen=True, eq=False)
class Adversary(Value):
    """A prior distribution on datasets, stored as weights on the groups of a lumped problem.

    Attributes
    ----------
    mechanism : Mechanism
        Leakage and guesses are computed for its `nominal` channel.
    records : tuple of int
        The record, or group of records, that is attacked.
    weights : array, shape (N,)
        Probability of each group of contexts of `lumped`; within a group it is spread evenly.
    adversaries : tuple of Knowledge, optional
        Further constraints on the prior; the groups of contexts are then finer.

    Examples
    --------
    >>> from cvxleak import Mechanism
    >>> from cvxleak.audit import Adversary
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.queries import parity
    >>> mechanism = Mechanism(parity(3), binary_symmetric(0.25))

    An adversary who knows that exactly one of the other two records is a one:

    >>> knows = Adversary(mechanism, (0,), [0.5, 0.0, 0.0, 0.5])
    >>> round(knows.leakage, 4), round(knows.entropy, 4), knows.guess()
    (0.1308, 1.3863, (0.5, 0.75))
    """

    mechanism: Mechanism
    records: tuple[int, ...]
    weights: Array
    adversaries: tuple[Knowledge, ...] = ()

    def __post_init__(self) -> None:
        space = instance(self.mechanism, Mechanism, "mechanism").space
        self._hold(
            records=space.group(self.records), weights=frozen_array(self.weights, "weights", 1)
        )

    def __repr__(self) -> str:
        whom = ", ".join(map(str, self.records))
        return f"Adversary({self.mechanism!r}, records ({whom}), {len(self.weights)} weights)"

    def _repr_html_(self) -> str:
        from cvxleak.core.notebook import html_table

        before, after = self.guess()
        caption = (
            f"{self!r}: entropy {self.entropy:.6g} nats, leakage {self.leakage:.6g} nats, guessed "
            f"right with probability {before:.4g} before and {after:.4g} after"
        )
        rows = sorted(self.rows(), key=lambda row: -row[-1])
        return html_table(caption, ("value", "query values", "contexts", "weight"), rows)

    @property
    def lumped(self) -> Lumped:
        """The lumped problem whose groups `weights` refers to."""
        return self.restricted.lumped

    @property
    def restricted(self) -> Restricted:
        """The lumped problem with the constraints that `adversaries` put on its weights."""
        named = self.records[0] if len(self.records) == 1 else self.records
        return restrict(self.mechanism, named, self.adversaries)

    @property
    def leakage(self) -> float:
        """I(X_I;Y) under this prior, in nats (floating point)."""
        return measures.lumped_information(self.weights, self.lumped)

    @property
    def entropy(self) -> float:
        """H(X) under this prior, in nats (floating point)."""
        return measures.lumped_entropy(self.weights, self.lumped)

    def guess(self) -> tuple[float, float]:
        """Return the probability of guessing the record(s) right, before and after the output."""
        channel, law = measures.lumped_channel(self.weights, self.lumped)
        return measures.bayes_vulnerability(law), measures.posterior_bayes_vulnerability(
            channel, law
        )

    def expand(self) -> Prior:
        """Return the prior on full datasets (small spaces only)."""
        return expand(self.restricted, self.weights)

    def rows(self, least: float = 0.0) -> list[tuple[Hashable, tuple[Hashable, ...], int, float]]:
        """Return (value, query values, contexts, weight) of groups of weight above `least`."""
        lumped = self.lumped
        parts = lumped.value_index, lumped.contexts, lumped.multiplicities, self.weights.tolist()
        return [
            (lumped.values[a], context, count, weight)
            for a, context, count, weight in zip(*parts, strict=True)
            if weight > least
        ]

    def to_frame(self) -> Any:
        """Return `rows()` as a pandas DataFrame (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(self.rows(), columns=["value", "query values", "contexts", "weight"])
