"""`KnownMarginals`: known distributions of single records, arbitrarily dependent."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import to_json
from cvxleak.core.validation import frozen_array, in_order
from cvxleak.core.value import check_keys
from cvxleak.model.knowledge.base import Knowledge
from cvxleak.model.prior import Prior, as_prior
from cvxleak.model.query import Query
from cvxleak.model.space import RecordSpace

__all__ = ["KnownMarginals"]


@dataclass(frozen=True, eq=False)
class KnownMarginals(Knowledge):
    """Priors under which each of some records has a known distribution, P(X_i = u) = p_u.

    How the records depend on each other stays unknown.

    Parameters
    ----------
    law : Prior or array_like
        p, on the alphabet that these records share.
    records : int or sequence of int, optional
        All records if left out.

    Raises
    ------
    ValidationError
        Once there is a mechanism: no distribution on the records' alphabet, or records with
        different ones.

    Notes
    -----
    Exchangeable records are treated as one, so that thousands are possible: for records that are
    not audited, the constraint is put on the mean of their distributions. This is equivalent, since
    mixing a prior with its images under swaps of exchangeable records changes neither I(X_i;Y) nor
    that mean, and does not lower the entropy.

    Examples
    --------
    >>> from cvxleak import Mechanism, record_leakage
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.model import KnownMarginals
    >>> from cvxleak.queries import parity
    >>> mechanism = Mechanism(parity(3), binary_symmetric(0.1))
    >>> rare = KnownMarginals([0.9, 0.1])
    >>> print(record_leakage(mechanism, entropy_floor=0.0, adversaries=rare))
    record leakage: 0.1... to 0.1... nats (CERTIFIED)
    """

    kind: ClassVar[str] = "marginals"

    law: Any
    records: tuple[int, ...] | None

    def __init__(self, law: Prior | ArrayLike, records: int | Sequence[int] | None = None) -> None:
        group = None
        if records is not None:
            group = tuple(
                in_order(records, "records") if isinstance(records, Iterable) else [records]
            )
        object.__setattr__(self, "law", law)
        object.__setattr__(self, "records", group)

    def bind(self, query: Query) -> Self:
        """Return the same with the records named (see `Knowledge.bind`)."""
        space = query.space
        everyone = range(space.records)
        records = space.group(everyone if self.records is None else self.records)
        alphabets = {space.alphabets[i] for i in records}
        if len(alphabets) > 1:
            raise ValidationError(
                "records: found different alphabets; give a distribution for each"
            )
        alphabet = alphabets.pop()
        law = as_prior(self.law, len(alphabet), "law", alphabet).probabilities
        return type(self)(law, records)

    def singled_out(self, space: RecordSpace) -> tuple[int, ...]:
        """Return no records."""
        return ()

    def alike(self, space: RecordSpace) -> list[Hashable]:
        """Return for each record whether its distribution is known."""
        named = set(self.records or ())
        return [i in named for i in range(space.records)]

    @property
    def statement(self) -> str:
        """What is known, in words."""
        return "records have their known distributions"

    def to_dict(self) -> dict[str, Any]:
        """Return the knowledge (bound) as plain lists, ready for JSON."""
        records = [] if self.records is None else list(self.records)
        return {"kind": self.kind, "law": to_json(self.law), "records": records}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the knowledge that `to_dict` wrote."""
        check_keys(data, {"kind", "law", "records"})
        return cls(frozen_array(data["law"], "law", 1), data["records"])
