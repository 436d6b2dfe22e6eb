"""From a spec to what is known about the data: the law of [prior], the set of [sources]."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import TypeVar

from cvxleak.cli import spec as schema
from cvxleak.cli.spec_file import Given
from cvxleak.core.errors import ValidationError
from cvxleak.core.files import is_header, label_from_text, numbers_from_text, read_table
from cvxleak.model import Channel, Prior, Query, RecordSpace
from cvxleak.sources import SourceSet

__all__ = ["build_prior", "build_sources", "prior_counts"]

N = TypeVar("N", int, float)


def build_prior(given: Given, query: Query) -> Prior | None:
    """Return the law of [prior], in the order of the record's values, if there is one."""
    spec = given.spec
    if spec.prior is None:
        return None
    with given.at("prior"):
        if query.space.records != 1:
            raise ValidationError(
                "it is the law of the only record of a local mechanism; here there are "
                f"{query.space.records} records"
            )
    counts = prior_counts(given)
    with given.at("prior"):
        return Prior.from_counts(_by_value(counts, query.space.alphabets[0]))


def prior_counts(given: Given) -> dict[str, float]:
    """Return the numbers of [prior], by the names that the spec or its file gives."""
    source = given.spec.prior
    assert source is not None
    if source.file is not None:
        with given.at("prior.file"):
            return _read_counts(given.file(source.file))
    assert source.counts is not None
    return source.counts


def build_sources(given: Given) -> SourceSet:
    """Return the set of [sources], its outcomes named by [space] if the spec has one."""
    labels = _outcomes(given)
    known = given.spec.sources
    file, numbers = getattr(known, "file", None), {}
    if file is not None:
        with given.at("sources.file"):
            path = given.file(file)
            if isinstance(known, schema.Laws):
                return _laws_of_file(path, labels)
            numbers = _whole(_read_counts(path))
    with given.at("sources"):
        match known:
            case schema.Laws(laws=laws):
                return SourceSet(laws or [], labels)
            case schema.Sample(counts=counts, level=level, method=method, pseudocount=prior):
                sample = _by_value(counts or numbers, labels)
                return SourceSet.from_counts(sample, level, method=method, pseudocount=prior)
            case schema.Polytope(matrix=matrix, bound=bound):
                return SourceSet.polytope(matrix, bound, labels)
            case schema.Box(lower=lower, upper=upper):
                return SourceSet.box(lower, upper, labels)
    raise AssertionError(known)


def _outcomes(given: Given) -> tuple[Hashable, ...] | None:
    """Return the values of the only record of [space], if the spec has one."""
    if given.spec.space is None:
        return None
    with given.at("space"):
        space = RecordSpace(given.spec.space.alphabets)
        if space.records != 1:
            raise ValidationError(
                "the laws of [sources] are about one record; here there are "
                f"{space.records} records"
            )
        return space.alphabets[0]


def _laws_of_file(path: Path, labels: tuple[Hashable, ...] | None) -> SourceSet:
    """Return the laws of a CSV file: a row for each, and its columns are the outcomes."""
    rows = Channel.from_csv(path)
    if labels is not None and is_header(read_table(path)[0], 1, path):
        rows = rows.select(None, labels, "outcomes")
    return SourceSet(rows.matrix, rows.outputs if labels is None else labels)


def _whole(counts: dict[str, float]) -> dict[str, int]:
    for name, count in counts.items():
        if not float(count).is_integer():
            raise ValidationError(f"{name}: found {count}; a whole number is needed")
    return {name: int(count) for name, count in counts.items()}


def _read_counts(path: Path) -> dict[str, float]:
    """Return the second column of a CSV file by the first; a header line may come first."""
    rows = read_table(path)
    if len(rows[0][1]) != 2:
        raise ValidationError(f"found {len(rows[0][1])} columns; a label and a count are needed")
    if is_header(rows[0], 2, path):
        rows = rows[1:]
    counts: dict[str, float] = {}
    for line, (label, number) in rows:
        if label in counts:
            raise ValidationError(f"line {line}: {label!r} is there twice")
        (counts[label],) = numbers_from_text([number], line, path, 2)
    return counts


def _by_value(counts: dict[str, N], alphabet: tuple[Hashable, ...] | None) -> dict[Hashable, N]:
    """Return the numbers by the values that the keys stand for, in the order of the alphabet."""
    if alphabet is None:
        named = {label_from_text(text): count for text, count in counts.items()}
    else:
        named = {_named(text, alphabet): count for text, count in counts.items()}
    if len(named) != len(counts):
        raise ValidationError("two keys stand for the same value of the record")
    values = named if alphabet is None else alphabet
    missing = [value for value in values if value not in named]
    if missing:
        raise ValidationError(f"the values {missing} of the record have no number")
    return {value: named[value] for value in values}


def _named(text: str, alphabet: tuple[Hashable, ...]) -> Hashable:
    """Return the value of the record that a key stands for."""
    for label in (text, label_from_text(text)):
        if label in alphabet:
            return label
    raise ValidationError(f"{text!r} is not a value of the record; its values: {list(alphabet)}")
