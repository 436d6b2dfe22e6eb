"""From a spec to what it describes: query, mechanism, distortion, [prior] and [sources]."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from cvxleak.cli.cli_errors import named
from cvxleak.cli.spec.distortions import DistortionMatrix
from cvxleak.cli.spec.mechanisms import Setting
from cvxleak.cli.spec.queries import Crosstab, Histogram
from cvxleak.cli.spec.section import is_bare
from cvxleak.cli.spec.sources import Box, Laws, Polytope, Sample
from cvxleak.cli.spec_file import SpecFile
from cvxleak.core.errors import ValidationError
from cvxleak.core.tables import is_header, label_from_text, numbers_from_text, read_table
from cvxleak.core.validation import short
from cvxleak.model import (
    Channel,
    Distortion,
    Gain,
    Mechanism,
    Prior,
    Query,
    RealOutput,
    RecordSpace,
)
from cvxleak.model.gain import gain_from_dict
from cvxleak.model.knowledge import (
    Expectation,
    Knowledge,
    KnownMarginals,
    RelativeEntropyBall,
)
from cvxleak.problem.bound import converted
from cvxleak.report import check_targets
from cvxleak.sources import SourceSet
from cvxleak.tables import Table, TableRelease

__all__ = [
    "Task",
    "build_distortion",
    "build_gain",
    "build_knowledge",
    "build_local",
    "build_mechanism",
    "build_prior",
    "build_published",
    "build_query",
    "build_release",
    "build_sources",
    "build_survey",
    "build_task",
    "independent_cells",
    "independent_people",
    "prior_counts",
]

N = TypeVar("N", int, float)

WHOLE = ("identity", "constant", "matrix", "intervals", "randomized_response")
"""Kinds of noise that take a tuple of counts as one value, and not count by count."""


class Task(NamedTuple):
    """What a spec asks an audit for, its numbers apart."""

    mechanism: Mechanism
    prior: Prior | None
    distortion: Distortion | None


def build_task(spec_file: SpecFile, command: str = "audit") -> Task:
    """Return what a spec asks an audit for, once its [audit] is seen to fit.

    `command` is who asks.

    Raises
    ------
    ValidationError
        A file that cannot be read, or something wrong in it; the message starts with the spec's
        path and the key.
    """
    spec_file.needs(command, "mechanism", ("query", "space"))
    query = build_query(spec_file)
    prior = build_prior(spec_file, query)
    mechanism = build_mechanism(spec_file, query, prior)
    outputs = None if isinstance(mechanism.noise, RealOutput) else mechanism.outputs
    distortion = build_distortion(spec_file, query.values, outputs)
    with spec_file.at("audit"):
        check_targets(mechanism, spec_file.spec.audit.records, spec_file.spec.audit.group_sizes)
    return Task(mechanism, prior, distortion)


def build_gain(given: Any) -> Gain:
    """Return the gain that a key says: its kind as text, or a table with the kind's parts."""
    if not isinstance(given, str | Mapping):
        raise ValidationError(f"expected text, or a table with the key kind; found {short(given)}")
    return gain_from_dict({"kind": given} if isinstance(given, str) else given)


def independent_people(
    spec_file: SpecFile, mechanism: Mechanism, unit: str
) -> dict[str, Any] | None:
    """Return what [adversary] says of independent records, in nats, once it is seen to fit."""
    from cvxleak.audit import ProductLeakage

    asked = spec_file.spec.adversary
    if asked.kind != "independent":
        return None
    known = ProductLeakage.in_nats(asked.known(), asked.unit or unit)
    with spec_file.at("adversary"):
        ProductLeakage(mechanism, **known)
    return known


def independent_cells(spec_file: SpecFile, release: TableRelease) -> dict[str, Any]:
    """Return what [adversary] says of the distributions of independent people's cells."""
    from cvxleak.tables import table_leakage

    asked = spec_file.spec.adversary
    with spec_file.at("adversary"):
        if asked.kind not in (None, "independent"):
            raise ValidationError(
                f'kind: found {asked.kind!r}; of tables, "independent" is audited'
            )
        known = {} if asked.kind is None else asked.known()
        if "record_floor" in known:
            raise ValidationError(
                "record_floor: is for records of two values; tables take least_probability or laws"
            )
        table_leakage(release, **known)
    return known


def build_knowledge(spec_file: SpecFile, query: Query, unit: str) -> Knowledge | None:
    """Return what [adversary] says of the adversaries' beliefs beside their entropy, bound."""
    asked = spec_file.spec.adversary
    known = asked.known()
    made: dict[str, Callable[..., Knowledge]] = {
        "marginals": KnownMarginals,
        "expectation": Expectation,
        "relative-entropy": RelativeEntropyBall,
    }
    if asked.kind not in made:
        return None
    needed = {"marginals": "law", "expectation": "values", "relative-entropy": "radius"}[asked.kind]
    with spec_file.at("adversary"):
        if needed not in known:
            raise ValidationError(f"{needed}: it is missing")
        if asked.kind == "relative-entropy":
            known["radius"] = converted(known["radius"], asked.unit or unit)
        if asked.kind == "expectation":
            known["feature"] = known.pop("values")
        return made[asked.kind](**known).bind(query)


def build_query(spec_file: SpecFile) -> Query:
    """Return the query of [query] or, for [space], the dataset itself."""
    asked, table = (
        spec_file.spec.space or spec_file.spec.query,
        "space" if spec_file.spec.space else "query",
    )
    assert asked is not None
    with spec_file.at(table):
        return asked.query()


def build_mechanism(spec_file: SpecFile, query: Query, prior: Prior | None) -> Mechanism:
    """Return the query with the noise of [mechanism]."""
    noise, asked = spec_file.spec.mechanism, spec_file.spec.query
    assert noise is not None
    if isinstance(asked, Histogram | Crosstab) and noise.kind not in WHOLE:
        return _histogram(spec_file, query)
    with spec_file.at("mechanism.file" if noise.kind == "matrix" else "mechanism"):
        return Mechanism(query, noise.channel(Setting(query, prior, spec_file.file)))


def build_release(spec_file: SpecFile) -> TableRelease:
    """Return the table of [table] with the noise of [mechanism] on each number."""
    asked, noise = spec_file.spec.table, spec_file.spec.mechanism
    assert asked is not None
    assert noise is not None
    source = next((key for key in ("microdata", "counts") if getattr(asked, key) is not None), "")
    with spec_file.at("table"), named({"data": source}):
        table = asked.table(spec_file.file)
    if asked.microdata is not None:
        # Its hash would confirm a guess of who is in the file.
        del spec_file.files[asked.microdata]
    with spec_file.at("mechanism"):
        return TableRelease(table, noise.of_counts(spec_file.file))


def build_published(spec_file: SpecFile, release: TableRelease) -> list[Any] | None:
    """Return the values that the file of [table] says were published, if it names one."""
    asked = spec_file.spec.table
    if asked is None or asked.published is None:
        return None
    with spec_file.at("table.published", naming=False):
        return release.as_published(spec_file.file(asked.published))


def _histogram(spec_file: SpecFile, query: Query) -> Mechanism:
    """Return the counts of a [query] that is a histogram, each with the noise of [mechanism]."""
    noise = spec_file.spec.mechanism
    assert noise is not None
    alphabet = query.space.alphabets[0]
    table = Table({"value": alphabet}, query.space.records, margins=False)
    with spec_file.at("mechanism"):
        release = TableRelease(table, noise.of_counts(spec_file.file))
        return Mechanism(query, release.mechanism.channel)


def build_local(spec_file: SpecFile, command: str) -> tuple[Prior, Channel]:
    """Return the distribution of the only record and the channel from its value to the output."""
    spec_file.needs(command, "mechanism", ("query", "space"), "prior")
    query = build_query(spec_file)
    prior = build_prior(spec_file, query)
    assert prior is not None
    mechanism = build_mechanism(spec_file, query, prior)
    return prior, Channel(mechanism.to_channel().matrix, prior.labels, mechanism.outputs)


def build_survey(spec_file: SpecFile, command: str) -> Channel:
    """Return the channel from the answer of one person to what is published of it."""
    spec_file.needs(command, "mechanism", ("query", "space"))
    query = build_query(spec_file)
    if query.space.records != 1:
        with spec_file.at("space" if spec_file.spec.space else "query"):
            raise ValidationError(
                f"{command} needs a mechanism of one record, each person's own; found "
                f"{query.space.records} records"
            )
    mechanism = build_mechanism(spec_file, query, build_prior(spec_file, query))
    with spec_file.at("mechanism"):
        matrix = mechanism.to_channel().matrix
    return Channel(matrix, query.space.alphabets[0], mechanism.outputs)


def build_distortion(
    spec_file: SpecFile, values: tuple[Hashable, ...], outputs: tuple[Hashable, ...] | None = None
) -> Distortion | None:
    """Return the cost of [distortion] for these values and outputs, if there is one.

    Without outputs, those of a file are taken, and the values themselves otherwise.
    """
    cost = spec_file.spec.distortion
    if isinstance(cost, DistortionMatrix):
        with spec_file.at("distortion.file"):
            path = spec_file.file(cost.file)
            distortion = Distortion.from_csv(path)
            if is_bare(path):
                if outputs is None and distortion.shape[1] == len(values):
                    outputs = values
                distortion = Distortion(distortion.matrix, values, outputs)
            return distortion
    with spec_file.at("distortion"):
        return None if cost is None else cost.of(values, values if outputs is None else outputs)


def build_prior(spec_file: SpecFile, query: Query) -> Prior | None:
    """Return the distribution of [prior], in the order of the record's values, if there is one."""
    spec = spec_file.spec
    if spec.prior is None:
        return None
    with spec_file.at("prior"):
        if query.space.records != 1:
            raise ValidationError(
                "it is the distribution of the only record of a local mechanism; here there are "
                f"{query.space.records} records"
            )
    counts = prior_counts(spec_file)
    with spec_file.at("prior"):
        return Prior.from_counts(_by_value(counts, query.space.alphabets[0]))


def prior_counts(spec_file: SpecFile) -> dict[str, float]:
    """Return the numbers of [prior], by the names that the spec or its file gives."""
    source = spec_file.spec.prior
    assert source is not None
    if source.file is not None:
        with spec_file.at("prior.file"):
            return _read_counts(spec_file.file(source.file))
    assert source.counts is not None
    return source.counts


def build_sources(spec_file: SpecFile) -> SourceSet:
    """Return the set of [sources], its outcomes named by [space] if the spec has one."""
    labels = _outcomes(spec_file)
    known = spec_file.spec.sources
    file, numbers = getattr(known, "file", None), {}
    if file is not None:
        with spec_file.at("sources.file"):
            path = spec_file.file(file)
            if isinstance(known, Laws):
                return _laws_of_file(path, labels)
            numbers = _whole(_read_counts(path))
    with spec_file.at("sources"):
        match known:
            case Laws(laws=laws):
                return SourceSet(laws or [], labels)
            case Sample(counts=counts, level=level, method=method, pseudocount=prior):
                sample = _by_value(counts or numbers, labels)
                return SourceSet.from_counts(sample, level, method=method, pseudocount=prior)
            case Polytope(matrix=matrix, bound=bound):
                return SourceSet.polytope(matrix, bound, labels)
            case Box(lower=lower, upper=upper):
                return SourceSet.box(lower, upper, labels)
    raise AssertionError(known)


def _outcomes(spec_file: SpecFile) -> tuple[Hashable, ...] | None:
    """Return the values of the only record of [space], if the spec has one."""
    if spec_file.spec.space is None:
        return None
    with spec_file.at("space"):
        space = RecordSpace(spec_file.spec.space.alphabets)
        if space.records != 1:
            raise ValidationError(
                "the distributions of [sources] are about one record; here there are "
                f"{space.records} records"
            )
        return space.alphabets[0]


def _laws_of_file(path: Path, labels: tuple[Hashable, ...] | None) -> SourceSet:
    """Return the distributions of a CSV file: a row for each, and its columns are the outcomes."""
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
