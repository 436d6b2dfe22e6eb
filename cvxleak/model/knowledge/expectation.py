"""`Expectation`: a function of the dataset whose mean is known, or bounded."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import CvxleakError, ValidationError
from cvxleak.core.numbers import to_json
from cvxleak.core.validation import Array, dimensions, frozen_array, in_order, real_number, short
from cvxleak.core.value import check_keys
from cvxleak.core.wording import are, counted
from cvxleak.model.knowledge.base import Knowledge, labels_of
from cvxleak.model.query import Query
from cvxleak.model.space import RecordSpace

__all__ = ["Expectation"]

TABLE_LIMIT = 1 << 20
"""Most joint values of records that a function may be asked about one by one."""


@dataclass(frozen=True, eq=False)
class Expectation(Knowledge):
    r"""Priors under which a function of the dataset has a known, or bounded, expectation.

    The set {p : l <= E_p[c(X)] <= u}. With several of them it is any polytope of priors: a known
    correlation E[X_i X_j] = c, moments of the query, a probability of an event (its indicator).

    Parameters
    ----------
    feature : callable, mapping or array_like
        c, a function of the values of `records`, or of the value of `query`; or its values as an
        array.
    records : int or sequence of int, optional
        c depends on the values of these records: ``feature(x_i, x_j, ...)``, or an array over their
        joint values in product order (the last of them fastest).
    query : Query, optional
        c depends on the value of this query. Left out together with `records`, it depends on the
        value of the mechanism's own query.
    at_least, at_most : float, optional
        l and u.
    name : str, optional
        Its name in messages.
    equals : float, optional
        l and u at once: E_p[c(X)] is exactly this number.

    Raises
    ------
    ValidationError
        No bound at all, l > u, both records and a query, numbers that are not finite, and, once
        there is a mechanism, a function that does not fit its datasets.

    Notes
    -----
    The joint values of the named records are enumerated. So there must be few records, or a small
    space; give a function of the sum of many records by its query.

    Examples
    --------
    >>> from cvxleak import Mechanism, record_leakage
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.model import Expectation
    >>> from cvxleak.queries import parity
    >>> mechanism = Mechanism(parity(3), binary_symmetric(0.1))
    >>> rarely_both = Expectation(lambda x, y: x * y, records=(0, 1), at_most=0.1)
    >>> print(record_leakage(mechanism, entropy_floor=1.8, adversaries=rarely_both))
    record leakage: 0.1... to 0.1... nats (CERTIFIED)
    """

    kind: ClassVar[str] = "expectation"

    feature: Any
    records: tuple[int, ...] | None
    query: Query | None
    at_least: float | None
    at_most: float | None
    name: str

    def __init__(
        self,
        feature: Callable[..., float] | Mapping[Any, float] | ArrayLike,
        records: int | Sequence[int] | None = None,
        query: Query | None = None,
        at_least: float | None = None,
        at_most: float | None = None,
        name: str | None = None,
        *,
        equals: float | None = None,
    ) -> None:
        if equals is not None:
            if at_least is not None or at_most is not None:
                raise ValidationError("equals: found at_least or at_most beside it; give one kind")
            at_least = at_most = equals
        if at_least is None and at_most is None:
            raise ValidationError("at_most: found no bound; give at_least, at_most or equals")
        low, high = (
            None if bound is None else real_number(bound, side, open_low=True, open_high=True)
            for bound, side in ((at_least, "at_least"), (at_most, "at_most"))
        )
        if low is not None and high is not None and low > high:
            raise ValidationError(f"at_least: found {low!r}, above at_most = {high!r}")
        if records is not None and query is not None:
            raise ValidationError("query: found one beside records; give one of the two")
        if query is not None and not isinstance(query, Query):
            raise ValidationError(f"query: expected a Query, found {short(query)}")
        group = None
        if records is not None:
            group = tuple(
                in_order(records, "records") if isinstance(records, Iterable) else [records]
            )
        self._hold(feature=feature, records=group, query=query, at_least=low, at_most=high)
        self._hold(name=self._default_name(group) if name is None else str(name))

    @staticmethod
    def _default_name(records: tuple[int, ...] | None) -> str:
        return "expectation" if records is None else f"expectation over records {records}"

    def bind(self, query: Query) -> Self:
        """Return the same with a table in place of the function (see `Knowledge.bind`)."""
        space, records = query.space, self.records
        if records is not None:
            records = space.group(records)
            size = math.prod(space.shape[i] for i in records)
            if size > TABLE_LIMIT:
                raise ValidationError(
                    f"records: these {len(records)} have {short(size)} joint values; at most "
                    f"{TABLE_LIMIT} can be looked at one by one"
                )
            arguments: list[Any] = list(product(*(space.alphabets[i] for i in records)))
        else:
            used = query if self.query is None else self.query
            if used.space != space:
                raise ValidationError(f"query: found one on {used.space!r}, not on {space!r}")
            arguments = [(value,) for value in used.values]
        table = _written_out(self.feature, arguments)
        return type(self)(table, records, self.query, self.at_least, self.at_most, self.name)

    def singled_out(self, space: RecordSpace) -> tuple[int, ...]:
        """Return the records that the function is about."""
        return self.records or ()

    def alike(self, space: RecordSpace) -> list[Hashable]:
        """Return a label for each record: its class under the query that the function is about."""
        return [0] * space.records if self.query is None else labels_of(self.query)

    @property
    def statement(self) -> str:
        """What is known, in words."""
        return f"{self.name} is within its bounds"

    def to_dict(self) -> dict[str, Any]:
        """Return the knowledge (bound) as plain lists, ready for JSON."""
        return {
            "kind": self.kind,
            "values": to_json(self.feature),
            "records": None if self.records is None else list(self.records),
            "query": None if self.query is None else self.query.to_dict(),
            "at_least": to_json(self.at_least),
            "at_most": to_json(self.at_most),
            "name": self.name,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the knowledge that `to_dict` wrote."""
        check_keys(data, {"kind", "values", "records", "query", "at_least", "at_most", "name"})
        query = None if data["query"] is None else Query.from_dict(data["query"])
        if not isinstance(data["name"], str):
            raise ValidationError(f"name: expected text, found {short(data['name'])}")
        return cls(
            frozen_array(data["values"], "values", 1),
            data["records"],
            query,
            data["at_least"],
            data["at_most"],
            data["name"],
        )


def _asked(feature: Callable[..., Any], argument: tuple[Any, ...]) -> Any:
    try:
        return feature(*argument)
    except CvxleakError:
        raise
    except Exception as error:
        raise ValidationError(
            f"feature: it failed for {short(argument)}: {type(error).__name__}: {error}"
        ) from error


def _written_out(feature: Any, arguments: list[tuple[Any, ...]]) -> Array:
    values: Any
    if callable(feature):
        values = [_asked(feature, argument) for argument in arguments]
    elif isinstance(feature, Mapping):
        keys = [argument[0] if len(argument) == 1 else argument for argument in arguments]
        missing = [key for key in keys if key not in feature]
        if missing:
            raise ValidationError(f"feature: found no number for {short(missing[0])}")
        values = [feature[key] for key in keys]
    else:
        values = frozen_array(feature, "feature", dimensions(feature, "feature")).ravel()
    table = frozen_array(values, "feature", 1)
    if len(table) != len(arguments):
        raise ValidationError(
            f"feature: found {counted(len(table), 'number')}; "
            f"{len(arguments)} {are(len(arguments))} needed"
        )
    if not np.isfinite(table).all():
        raise ValidationError("feature: found an infinite number; all have to be finite")
    return table
