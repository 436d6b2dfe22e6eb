"""What is known of independent records' distributions, as arguments give it, checked."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.core.numbers import to_json
from cvxleak.core.validation import in_order, real_number
from cvxleak.core.wording import counted
from cvxleak.model.prior import Prior, as_prior
from cvxleak.model.space import RecordSpace

__all__ = ["KNOWN", "in_runs", "known_laws"]

Vertices = tuple[tuple[float, ...], ...]

KNOWN = ("laws", "least_probability", "record_floor")
"""The arguments, of which one may be given."""


def known_laws(space: RecordSpace, name: str, value: Any) -> Any:
    """Return the value of an argument, checked; of laws, the vertices for all records or each."""
    if name == "laws":
        return _vertices_of(space, value)
    if name == "least_probability":
        return real_number(value, name, 0.0, 1 / max(space.shape))
    wide = [i for i, size in enumerate(space.shape) if size != 2]
    if wide:
        raise ValidationError(
            f"record_floor: record {wide[0]} has {counted(space.shape[wide[0]], 'value')}, and "
            "only records of two values can have an entropy floor; give laws or least_probability"
        )
    floor = real_number(value, name, 0.0)
    if floor > math.log(2) * (1 + 1e-12):
        raise InfeasibleError(
            f"record_floor: found {floor!r} nats; no record of two values has more than log 2 = "
            f"{math.log(2)!r} nats"
        )
    return min(floor, math.log(2) - 1e-12)


def _vertices_of(space: RecordSpace, value: Any) -> Any:
    given = (value,) if _has_labels(value) else in_order(value, "laws")
    if given and _is_law(given[0]):
        known = {alphabet: _vertices(given, alphabet, "laws") for alphabet in set(space.alphabets)}
        each = tuple(known[alphabet] for alphabet in space.alphabets)
        return each if len(known) > 1 else each[0]
    if len(given) != space.records:
        found = f"{len(given)} sets of distributions" if given else "none"
        raise ValidationError(
            f"laws: found {found}; one for all records or {space.records} are needed"
        )
    return tuple(
        _vertices(in_order(one, f"laws[{i}]"), alphabet, f"laws[{i}]")
        for i, (one, alphabet) in enumerate(zip(given, space.alphabets, strict=True))
    )


def _has_labels(given: Any) -> bool:
    return isinstance(given, Prior | Mapping) or hasattr(given, "reindex")


def _is_law(given: Any) -> bool:
    if _has_labels(given):
        return True
    each = in_order(given, "laws")
    return not any(isinstance(x, Prior) or (np.iterable(x) and type(x) is not str) for x in each)


def _vertices(laws: Sequence[Any], alphabet: tuple[Hashable, ...], name: str) -> Vertices:
    if not laws:
        raise ValidationError(f"{name}: found none; at least one distribution is needed")
    priors = [as_prior(x, len(alphabet), f"{name}[{v}]", alphabet) for v, x in enumerate(laws)]
    return tuple(dict.fromkeys(tuple(prior.probabilities.tolist()) for prior in priors))


def in_runs(space: RecordSpace, laws: Any) -> list[list[Any]]:
    """Return the vertices of records in a row, and their number, as a certificate holds them."""
    each = laws if isinstance(laws[0][0], tuple) else [laws] * space.records
    return [[to_json(own), len(list(run))] for own, run in groupby(each)]
