"""From a spec to what it names: mechanism, prior, distortion, floors."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Hashable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cvxleak import mechanisms, queries
from cvxleak._files import is_number, label_from_text, read_table
from cvxleak.cli import spec as schema
from cvxleak.cli.reading import parse_spec
from cvxleak.errors import CvxleakError, ValidationError
from cvxleak.model import Channel, Distortion, Mechanism, Prior, Query, RecordSpace, TableQuery
from cvxleak.report import check_targets

__all__ = ["Task", "load_task", "read_file"]


ARGUMENTS = {
    "n": "number of records",
    "m": "modulus, or number of values",
    "k": "number of values",
    "N": "scale",
    "table": "values",
    "path": None,
}
"""What the library's argument names are in a spec; None where the key says it already."""


@dataclass(frozen=True)
class Task:
    """What a SPEC.toml asks for.

    Attributes
    ----------
    name, sha256 : str
        File name and SHA-256 of the spec.
    files : mapping of str to str
        SHA-256 of each file that the spec names.
    spec : Spec
    mechanism : Mechanism
    prior : Prior or None
    distortion : Distortion or None
    """

    name: str
    sha256: str
    files: Mapping[str, str]
    spec: schema.Spec
    mechanism: Mechanism
    prior: Prior | None
    distortion: Distortion | None


def load_task(path: str | os.PathLike[str]) -> Task:
    """Read a spec and the files that it names.

    Raises
    ------
    ValidationError
        A file that cannot be read, or something wrong in it; the message starts with the spec's
        path and the key.
    """
    name = os.fspath(path)
    data = read_file(path)
    spec = parse_spec(data, name)
    builder = _Builder(Path(path).parent, name)
    query = builder.query(spec)
    prior = builder.prior(spec, query)
    mechanism = builder.mechanism(spec, query, prior)
    distortion = builder.distortion(spec, mechanism)
    with builder.at("audit"):
        check_targets(mechanism, spec.audit.records, spec.audit.group_sizes)
    return Task(
        Path(path).name,
        hashlib.sha256(data).hexdigest(),
        builder.files,
        spec,
        mechanism,
        prior,
        distortion,
    )


def read_file(path: str | os.PathLike[str]) -> bytes:
    """Return a file's content, or say in a few words why not."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ValidationError(f"{os.fspath(path)}: {error.strerror or error}") from error


class _Builder:
    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self.files: dict[str, str] = {}

    @contextmanager
    def at(self, key: str) -> Iterator[None]:
        """Say what the library complains about in terms of the spec: its path, then the key."""
        try:
            yield
        except CvxleakError as error:
            name = error.argument and ARGUMENTS.get(error.argument, error.argument)
            message = error.detail if name is None else f"{name}: {error.detail}"
            raise ValidationError(f"{self.name}: {key}: {message}") from error

    def _file(self, relative: str) -> Path:
        path = self.folder / relative
        self.files[relative] = hashlib.sha256(read_file(path)).hexdigest()
        return path

    def query(self, spec: schema.Spec) -> Query:
        if spec.space is not None:
            with self.at("space"):
                space = RecordSpace(spec.space.alphabets)
                datasets = list(space.datasets()) if space.records > 1 else space.alphabets[0]
                return TableQuery(space, np.arange(space.size), datasets)
        with self.at("query"):
            match spec.query:
                case schema.Count(records=n):
                    return queries.count(n)
                case schema.Parity(records=n):
                    return queries.parity(n)
                case schema.ModularSum(records=n, modulus=m):
                    return queries.modular_sum(n, m)
                case schema.PairSum(records=n):
                    return queries.pair_sum(n)
                case schema.Table(alphabets=alphabets, values=values):
                    return queries.from_table(RecordSpace(alphabets), values)
        raise AssertionError(spec.query)

    def prior(self, spec: schema.Spec, query: Query) -> Prior | None:
        if spec.prior is None:
            return None
        with self.at("prior"):
            if query.space.records != 1:
                raise ValidationError(
                    "it is the law of the only record of a local mechanism; here there are "
                    f"{query.space.records} records"
                )
            counts = spec.prior.counts
        if spec.prior.file is not None:
            with self.at("prior.file"):
                counts = _read_counts(self._file(spec.prior.file))
        with self.at("prior"):
            assert counts is not None
            alphabet = query.space.alphabets[0]
            named = {_named(text, alphabet): count for text, count in counts.items()}
            missing = [value for value in alphabet if value not in named]
            if missing:
                raise ValidationError(f"the values {missing} of the record have no number")
            if len(named) != len(counts):
                raise ValidationError("two keys stand for the same value of the record")
            return Prior.from_counts({value: named[value] for value in alphabet})

    def mechanism(self, spec: schema.Spec, query: Query, prior: Prior | None) -> Mechanism:
        noise = spec.mechanism
        if isinstance(noise, schema.Matrix):
            with self.at("mechanism.file"):
                path = self._file(noise.file)
                channel = Channel.from_csv(path)
                return Mechanism(query, channel.matrix if _bare(path) else channel)
        with self.at("mechanism"):
            return Mechanism(query, self._channel(noise, query, prior))

    def _channel(self, noise: schema.Noise, query: Query, prior: Prior | None) -> Channel:
        values = query.values
        match noise:
            case schema.RandomizedResponse(epsilon=epsilon):
                return _same(mechanisms.randomized_response(len(values), epsilon), values)
            case schema.BinarySymmetric(flip=flip):
                return _same(mechanisms.binary_symmetric(flip), values)
            case schema.GeneralizedSymmetric(flip=flip):
                return _same(mechanisms.generalized_symmetric(len(values), flip), values)
            case schema.LaplaceThreshold(epsilon=epsilon):
                return _same(mechanisms.laplace_threshold(epsilon), values)
            case schema.DiscretizedLaplace(epsilon=epsilon, sensitivity=width, outputs=outputs):
                return mechanisms.discretized_laplace(
                    outputs or sorted(_numbers(values)),
                    epsilon,
                    query.sensitivity if width is None else width,
                    _numbers(values),
                )
            case schema.DiscretizedGaussian(variance=variance, outputs=outputs):
                return mechanisms.discretized_gaussian(
                    outputs or sorted(_numbers(values)), variance, _numbers(values)
                )
            case schema.Exponential(epsilon=epsilon, sensitivity=width, scores=None):
                scores = -Distortion.absolute(_numbers(values)).matrix
                width = query.sensitivity if width is None else width
                return mechanisms.exponential(scores, epsilon, width, values, values)
            case schema.Exponential(epsilon=epsilon, sensitivity=width, scores=file):
                return self._exponential(epsilon, width, str(file), values)
            case schema.RankExponential(scale=scale):
                return mechanisms.rank_exponential(Distortion.absolute(_numbers(values)), scale)
            case schema.TruncatedGeometric(epsilon=epsilon):
                return mechanisms.truncated_geometric(_largest(values), epsilon)
            case schema.RandomRounding(base=base):
                return mechanisms.random_rounding(_largest(values), base)
            case schema.PmlExtremal(epsilon=epsilon):
                if prior is None:
                    raise ValidationError("pml_extremal is made for a law: [prior] is missing")
                return mechanisms.pml_extremal(prior, epsilon)
            case schema.Identity():
                return _same(mechanisms.identity(len(values)), values)
            case schema.Constant():
                constant = mechanisms.constant(len(values), [1.0])
                return Channel(constant.matrix, values, constant.outputs)
        raise AssertionError(noise)

    def _exponential(
        self, epsilon: float, width: float | None, file: str, values: tuple[Hashable, ...]
    ) -> Channel:
        if width is None:
            raise ValidationError("sensitivity: is missing; scores from a file need it")
        rows = read_table(self._file(file))
        bad = [cell for _, cells in rows for cell in cells if not is_number(cell)]
        if bad:
            raise ValidationError(f"scores: found {bad[0]!r}; a bare table of numbers is needed")
        scores = [[float(cell) for cell in cells] for _, cells in rows]
        if len(scores) != len(values):
            raise ValidationError(
                f"scores: found {len(scores)} rows; the query has {len(values)} values"
            )
        return mechanisms.exponential(scores, epsilon, width, values)

    def distortion(self, spec: schema.Spec, mechanism: Mechanism) -> Distortion | None:
        values, outputs = mechanism.query.values, mechanism.outputs
        cost = spec.distortion
        if isinstance(cost, schema.DistortionMatrix):
            with self.at("distortion.file"):
                path = self._file(cost.file)
                distortion = Distortion.from_csv(path)
                if _bare(path):
                    distortion = Distortion(distortion.matrix, values, outputs)
                return distortion
        with self.at("distortion"):
            match cost:
                case schema.Hamming():
                    return Distortion.hamming(values, outputs)
                case schema.Absolute():
                    return Distortion.absolute(_numbers(values), _numbers(outputs))
                case schema.Squared():
                    return Distortion.squared(_numbers(values), _numbers(outputs))
        return None


def _same(channel: Channel, values: tuple[Hashable, ...]) -> Channel:
    """Return a channel from the values of the query to the same labels."""
    if channel.shape[0] != len(values):
        raise ValidationError(
            f"it has {channel.shape[0]} inputs; the query has {len(values)} values"
        )
    return Channel(channel.matrix, values, values)


def _numbers(values: tuple[Hashable, ...]) -> list[Any]:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValidationError(f"values that are numbers are needed; found {value!r}")
    return list(values)


def _largest(values: tuple[Hashable, ...]) -> int:
    for value in values:
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise ValidationError(f"values that are counts are needed; found {value!r}")
    return max(values)  # pyright: ignore[reportArgumentType, reportReturnType, reportCallIssue]


def _bare(path: Path) -> bool:
    """Whether a CSV file has no labels: its very first cell is a number."""
    return is_number(read_table(path)[0][1][0])


def _read_counts(path: Path) -> dict[str, float]:
    """Return the second column of a CSV file by the first; a header line may come first."""
    rows = read_table(path)
    if len(rows[0][1]) != 2:
        raise ValidationError(f"found {len(rows[0][1])} columns; a label and a count are needed")
    if not is_number(rows[0][1][1]):
        rows = rows[1:]
    counts: dict[str, float] = {}
    for line, (label, number) in rows:
        if not is_number(number):
            raise ValidationError(f"line {line}: found {number!r}; a number is needed")
        if label in counts:
            raise ValidationError(f"line {line}: {label!r} is there twice")
        counts[label] = float(number)
    return counts


def _named(text: str, alphabet: tuple[Hashable, ...]) -> Hashable:
    """Return the value of the record that a key stands for."""
    for label in (text, label_from_text(text)):
        if label in alphabet:
            return label
    raise ValidationError(f"{text!r} is not a value of the record; its values: {list(alphabet)}")
