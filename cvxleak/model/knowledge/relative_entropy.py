"""`RelativeEntropyBall`: priors near a given one."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import to_json
from cvxleak.core.validation import frozen_array, in_order, real_number
from cvxleak.core.value import check_keys
from cvxleak.model.knowledge.base import Knowledge
from cvxleak.model.prior import Prior, as_prior, has_labels
from cvxleak.model.query import Query, runs_to_list
from cvxleak.model.space import RecordSpace, check_table_size

__all__ = ["RelativeEntropyBall"]

RECORD_LIMIT = 1 << 24


@dataclass(frozen=True, eq=False)
class RelativeEntropyBall(Knowledge):
    r"""Priors near a given one: D(p || p0) = sum_x p(x) log(p(x) / p0(x)) <= r.

    An adversary who starts from p0 and has at most r nats of additional information.

    Parameters
    ----------
    radius : float
        r >= 0, in nats.
    prior : Prior or array_like, optional
        p0 on the datasets, by label or in product order (small spaces only).
    laws : Prior, array_like, or sequence of these, optional
        Instead of `prior`: one distribution for all records, or one for each; p0 is their product
        (any number of records).

    Raises
    ------
    ValidationError
        A negative radius, both a prior and distributions or neither, and, once there is a
        mechanism, a prior that does not fit its datasets.

    Notes
    -----
    D(p || p0) = -H(p) - E_p[log p0(X)]. Among the datasets with equal rows and equal p0 it is least
    when probability is spread evenly, so lumping stays exact once the groups of contexts are told
    apart by p0.

    Examples
    --------
    >>> from cvxleak import Mechanism, record_leakage
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.model import RelativeEntropyBall
    >>> from cvxleak.queries import parity
    >>> mechanism = Mechanism(parity(3), binary_symmetric(0.1))
    >>> near = RelativeEntropyBall(0.1, laws=[0.7, 0.3])
    >>> print(record_leakage(mechanism, entropy_floor=0.0, adversaries=near))
    record leakage: 0.1... to 0.1... nats (CERTIFIED)
    """

    kind: ClassVar[str] = "relative-entropy"

    radius: float
    prior: Any
    laws: Any

    def __init__(
        self,
        radius: float,
        prior: Prior | ArrayLike | None = None,
        laws: Prior | ArrayLike | Sequence[Prior | ArrayLike] | None = None,
    ) -> None:
        if (prior is None) == (laws is None):
            raise ValidationError(
                "prior: expected either a prior or laws, the distributions of the records"
            )
        object.__setattr__(self, "radius", real_number(radius, "radius", 0.0, open_high=True))
        object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "laws", laws)

    def bind(self, query: Query) -> Self:
        """Return the same with a distribution per record, or a table (see `Knowledge.bind`)."""
        space = query.space
        if self.prior is not None:
            check_table_size(space)
            return type(self)(self.radius, prior=space.law(self.prior))
        laws: Any = self.laws
        if has_labels(laws):
            laws = [laws] * space.records
        laws = in_order(laws, "laws")
        if laws and np.isscalar(laws[0]):
            laws = [laws] * space.records
        if len(laws) != space.records:
            raise ValidationError(
                f"laws: found {len(laws)}; one for all records or {space.records} are needed"
            )
        known: dict[Any, tuple[float, ...]] = {}
        bound = []
        for i, (law, alphabet) in enumerate(zip(laws, space.alphabets, strict=True)):
            key = (id(law), alphabet)
            if key not in known:
                given = as_prior(law, len(alphabet), f"laws[{i}]", alphabet)
                known[key] = tuple(given.probabilities.tolist())
            bound.append(known[key])
        return type(self)(self.radius, laws=tuple(bound))

    def singled_out(self, space: RecordSpace) -> tuple[int, ...]:
        """Return all records for a table, none for a product."""
        return () if self.prior is None else tuple(range(space.records))

    def alike(self, space: RecordSpace) -> list[Hashable]:
        """Return each record's distribution."""
        return [0] * space.records if self.laws is None else list(self.laws)

    @property
    def statement(self) -> str:
        """What is known, in words."""
        return "relative entropy is at most the radius"

    def to_dict(self) -> dict[str, Any]:
        """Return the knowledge (bound) as plain lists, ready for JSON."""
        laws = self.laws and [[to_json(law), len(list(run))] for law, run in groupby(self.laws)]
        return {
            "kind": self.kind,
            "radius": to_json(self.radius),
            "prior": to_json(self.prior),
            "laws": laws,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the knowledge that `to_dict` wrote."""
        check_keys(data, {"kind", "radius", "prior", "laws"})
        if data["laws"] is None:
            return cls(data["radius"], prior=frozen_array(data["prior"], "prior", 1))
        laws = runs_to_list(data["laws"], "laws", RECORD_LIMIT)
        return cls(data["radius"], data["prior"], [frozen_array(law, "laws", 1) for law in laws])
