"""`Knowledge`: a convex set that contains the adversary's prior."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar, Self

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import short
from cvxleak.core.value import Stored
from cvxleak.model.query import Query
from cvxleak.model.space import RecordSpace

__all__ = ["Knowledge", "labels_of"]


class Knowledge(Stored):
    """A convex set that contains the adversary's prior.

    `bind` evaluates it for given datasets and a query; only then can it be stored and used. There
    are three kinds: `Expectation`, `KnownMarginals` and `RelativeEntropyBall`. If several are
    given, they are intersected.

    Examples
    --------
    >>> from cvxleak.model import Knowledge, KnownMarginals
    >>> from cvxleak.queries import parity
    >>> known = KnownMarginals([0.9, 0.1]).bind(parity(3))
    >>> known.statement, known.records
    ('records have their known distributions', (0, 1, 2))
    >>> Knowledge.from_dict(known.to_dict()) == known
    True
    """

    kind: ClassVar[str]

    @abstractmethod
    def bind(self, query: Query) -> Self:
        """Return the same knowledge with functions written out as tables, all of it checked.

        Raises
        ------
        ValidationError
            What does not fit the datasets or the query.
        """

    @abstractmethod
    def singled_out(self, space: RecordSpace) -> tuple[int, ...]:
        """Return the records whose own values count, so that no other can take their place."""

    @abstractmethod
    def alike(self, space: RecordSpace) -> list[Hashable]:
        """Return a label for each record; equal ones may be swapped without changing the set."""

    @property
    @abstractmethod
    def statement(self) -> str:
        """What is known, in words."""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the (bound) knowledge that `to_dict` wrote, of whichever kind it is."""
        kinds = {kind.kind: kind for kind in cls.__subclasses__()}
        kind = data.get("kind") if isinstance(data, Mapping) else None
        if not isinstance(kind, str) or kind not in kinds:
            raise ValidationError(f"data: found the kind {short(kind)}; allowed: {sorted(kinds)}")
        return kinds[kind].from_dict(data)


def labels_of(query: Query) -> list[Hashable]:
    """Return a label for each record: equal ones may be swapped without changing the query."""
    labels: list[Hashable] = [0] * query.space.records
    for place, part in enumerate(query.exchangeable()):
        for i in part:
            labels[i] = place
    return labels
