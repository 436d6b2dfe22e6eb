"""Several pieces of knowledge together: bound to a query, and what they leave exchangeable."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import in_order, short
from cvxleak.model.knowledge.base import Knowledge, labels_of
from cvxleak.model.query import Query

__all__ = ["as_knowledge", "exchangeable"]


def as_knowledge(
    given: Knowledge | Iterable[Knowledge] | None, query: Query
) -> tuple[Knowledge, ...]:
    """Return what was given as `adversaries`, bound to a query."""
    if given is None:
        return ()
    items = (given,) if isinstance(given, Knowledge) else in_order(given, "adversaries")
    for item in items:
        if not isinstance(item, Knowledge):
            kinds = sorted(kind.__name__ for kind in Knowledge.__subclasses__())
            raise ValidationError(f"adversaries: found {short(item)}; expected any of {kinds}")
    return tuple(item.bind(query) for item in items)


def exchangeable(query: Query, knowledge: Sequence[Knowledge]) -> list[list[int]]:
    """Partition the records so that swapping two of one part changes neither query nor class."""
    space = query.space
    labels: list[list[Hashable]] = [labels_of(query), *(one.alike(space) for one in knowledge)]
    single = {i for one in knowledge for i in one.singled_out(space)}
    parts: dict[Any, list[int]] = {}
    for i, label in enumerate(zip(*labels, strict=True)):
        parts.setdefault((label, i if i in single else None), []).append(i)
    return list(parts.values())
