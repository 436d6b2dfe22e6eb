"""`Channel`: a conditional distribution of an output given an input, both finite."""

from __future__ import annotations

import csv
import io
import json
import os
import secrets
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.errors import ValidationError
from cvxleak.model._files import (
    label_from_text,
    labels_from_json,
    read_json,
    read_text,
    write_atomic,
)
from cvxleak.model._validation import Array, label_tuple, probability_rows, whole_number
from cvxleak.model._value import Value, preview
from cvxleak.model.prior import Prior, as_prior

__all__ = ["Channel", "as_channel", "integer_weights"]


@dataclass(frozen=True, eq=False, repr=False)
class Channel(Value):
    """A channel q(y|x): one probability distribution on the outputs for each input.

    Parameters
    ----------
    matrix : array_like, shape (inputs, outputs)
        Row x is the distribution of Y given x. Rows sum to 1 within 1e-9 and are stored as given.
    inputs, outputs : iterable of hashable, optional
        Distinct labels; 0, 1, ... if left out.

    Raises
    ------
    ValidationError
        Wrong shape, negative, NaN or infinite entries, a row sum off 1, bad labels.

    Examples
    --------
    >>> from cvxleak.model import Channel
    >>> Channel([[0.9, 0.1], [0.2, 0.8]], outputs=["no", "yes"])
    Channel(2 inputs [0, 1] -> 2 outputs ['no', 'yes'])
    """

    matrix: Array
    inputs: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]

    def __init__(
        self,
        matrix: ArrayLike,
        inputs: Iterable[Hashable] | None = None,
        outputs: Iterable[Hashable] | None = None,
    ) -> None:
        array = probability_rows(matrix, "matrix", 2)
        object.__setattr__(self, "matrix", array)
        object.__setattr__(self, "inputs", label_tuple(inputs, array.shape[0], "inputs"))
        object.__setattr__(self, "outputs", label_tuple(outputs, array.shape[1], "outputs"))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of inputs and of outputs."""
        return self.matrix.shape[0], self.matrix.shape[1]

    def row(self, label: Hashable) -> Array:
        """Return the distribution of the output given the input `label`."""
        return self.matrix[self._input_index(label)]

    def then(self, channel: Channel) -> Channel:
        """Return this channel followed by `channel` (post-processing, Markov chain X - Y - Z).

        r(z|x) = sum_y q(y|x) channel(z|y).

        Examples
        --------
        >>> from cvxleak.model import Channel
        >>> noisy = Channel([[0.75, 0.25], [0.25, 0.75]])
        >>> noisy.then(noisy).matrix
        array([[0.625, 0.375],
               [0.375, 0.625]])
        """
        if channel.inputs != self.outputs:
            raise ValidationError(
                f"channel: its inputs are {preview(channel.inputs)}; "
                f"they must be this channel's outputs {preview(self.outputs)}"
            )
        return Channel(self.matrix @ channel.matrix, self.inputs, channel.outputs)

    def product(self, channel: Channel) -> Channel:
        """Return the channel that also releases a second, conditionally independent output.

        r(y1, y2|x) = q(y1|x) channel(y2|x); outputs are labelled by pairs.

        Examples
        --------
        >>> from cvxleak.model import Channel
        >>> noisy = Channel([[0.75, 0.25], [0.25, 0.75]])
        >>> noisy.product(noisy).outputs
        ((0, 0), (0, 1), (1, 0), (1, 1))
        """
        if channel.inputs != self.inputs:
            raise ValidationError(
                f"channel: its inputs are {preview(channel.inputs)}; "
                f"they must be this channel's inputs {preview(self.inputs)}"
            )
        joint = self.matrix[:, :, None] * channel.matrix[:, None, :]
        labels = [(first, second) for first in self.outputs for second in channel.outputs]
        return Channel(joint.reshape(len(self.inputs), -1), self.inputs, labels)

    def reduced(self, tol: float = 1e-12) -> Channel:
        """Return the reduced channel: proportional columns merged, zero columns dropped.

        Two columns are merged when, each divided by its sum, they differ by at most `tol` in every
        entry. The merged output is labelled by the tuple of the outputs that went into it. A
        reduced channel is as informative as the original one for every prior.

        Examples
        --------
        >>> from cvxleak.model import Channel
        >>> Channel([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]]).reduced()
        Channel(2 inputs [0, 1] -> 2 outputs [0, (1, 2)])
        """
        sums = self.matrix.sum(axis=0)
        merged: list[list[int]] = []
        for y in np.flatnonzero(sums > 0):
            shape = self.matrix[:, y] / sums[y]
            for group in merged:
                first = group[0]
                if np.abs(self.matrix[:, first] / sums[first] - shape).max() <= tol:
                    group.append(int(y))
                    break
            else:
                merged.append([int(y)])
        columns = np.stack([self.matrix[:, group].sum(axis=1) for group in merged], axis=1)
        labels = [
            self.outputs[group[0]] if len(group) == 1 else tuple(self.outputs[y] for y in group)
            for group in merged
        ]
        return Channel(columns, self.inputs, labels)

    def output(self, prior: Prior | ArrayLike) -> Prior:
        """Return the law of the output: p(y) = sum_x p(x) q(y|x).

        Examples
        --------
        >>> from cvxleak.model import Channel
        >>> Channel([[1.0, 0.0], [0.5, 0.5]]).output([0.5, 0.5]).probabilities
        array([0.75, 0.25])
        """
        p = as_prior(prior, len(self.inputs))
        return Prior(p.probabilities @ self.matrix, self.outputs)

    def posterior(self, prior: Prior | ArrayLike) -> Channel:
        """Return Bayes' rule p(x|y) as a channel from the outputs to the inputs.

        Outputs of probability zero have no posterior and are left out.

        Examples
        --------
        >>> from cvxleak.model import Channel
        >>> Channel([[1.0, 0.0], [0.5, 0.5]]).posterior([0.5, 0.5]).row(1)
        array([0., 1.])
        """
        p = as_prior(prior, len(self.inputs))
        joint = p.probabilities[:, None] * self.matrix
        seen = np.flatnonzero(joint.sum(axis=0) > 0)
        rows = (joint[:, seen] / joint[:, seen].sum(axis=0)).T
        return Channel(rows, [self.outputs[y] for y in seen], self.inputs)

    def sample(
        self, label: Hashable, size: int | None = None, rng: int | np.random.Generator | None = None
    ) -> Any:
        """Draw outputs for the input `label`, exactly from the stored row.

        The row's floats are integers over a common power of two; a uniform integer below their sum
        picks the output, so there is no rounding and no floating-point side channel in the draw.

        Parameters
        ----------
        label : hashable
            An input.
        size : int, optional
            Number of draws; one label is returned if left out, a list of labels otherwise.
        rng : int or numpy.random.Generator, optional
            Seed or generator for a reproducible draw; the system's entropy if left out.

        Examples
        --------
        >>> from cvxleak.model import Channel
        >>> Channel([[0.0, 1.0]], outputs=["no", "yes"]).sample(0, size=2)
        ['yes', 'yes']
        """
        weights = integer_weights(self.row(label))
        total = sum(weights)
        generator = None if rng is None else np.random.default_rng(rng)
        draws = []
        for _ in range(1 if size is None else whole_number(size, "size", 0)):
            ticket = _below(total, generator)
            for y, weight in enumerate(weights):
                ticket -= weight
                if ticket < 0:
                    draws.append(self.outputs[y])
                    break
        return draws[0] if size is None else draws

    def to_dict(self) -> dict[str, Any]:
        """Return the channel as plain lists, ready for JSON (floats round-trip exactly)."""
        return {
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "matrix": self.matrix.tolist(),
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Channel:
        """Return the channel that `to_dict` wrote."""
        missing = {"inputs", "outputs", "matrix"} - set(data)
        if missing:
            raise ValidationError(f"data: the keys {sorted(missing)} are missing")
        return cls(
            data["matrix"], labels_from_json(data["inputs"]), labels_from_json(data["outputs"])
        )

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write the channel to a JSON file."""
        write_atomic(path, json.dumps(self.to_dict(), indent=1) + "\n")

    @classmethod
    def from_json(cls, path: str | os.PathLike[str]) -> Channel:
        """Read a channel from a JSON file that `to_json` wrote."""
        data = read_json(path)
        if not isinstance(data, dict):
            raise ValidationError(f"path: {os.fspath(path)!r} does not hold a channel")
        return cls.from_dict(data)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write the channel to a CSV file: a header of outputs, then an input and its row a line.

        Labels are written as text; numbers come back as numbers, everything else as strings.
        """
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerow(["", *self.outputs])
        for label, row in zip(self.inputs, self.matrix.tolist(), strict=True):
            writer.writerow([label, *row])
        write_atomic(path, buffer.getvalue())

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str]) -> Channel:
        """Read a channel from CSV: with labels as `to_csv` writes them, or a bare matrix.

        The file has labels if its very first cell is not a number.
        """
        rows = [row for row in csv.reader(io.StringIO(read_text(path))) if row]
        if not rows:
            raise ValidationError(f"path: {os.fspath(path)!r} is empty")
        labelled = isinstance(label_from_text(rows[0][0].strip()), str)
        body = rows[1:] if labelled else rows
        if labelled and not body:
            raise ValidationError(f"path: {os.fspath(path)!r} has a header and no rows")
        skip = 1 if labelled else 0
        matrix = []
        for number, row in enumerate(body, start=1 + skip):
            if len(row) != len(rows[0]):
                raise ValidationError(
                    f"path: line {number} of {os.fspath(path)!r} has {len(row)} cells; "
                    f"{len(rows[0])} are needed"
                )
            try:
                matrix.append([float(cell) for cell in row[skip:]])
            except ValueError as error:
                raise ValidationError(
                    f"path: line {number} of {os.fspath(path)!r}: {error}"
                ) from error
        if not labelled:
            return cls(matrix)
        inputs = [label_from_text(row[0].strip()) for row in body]
        return cls(matrix, inputs, [label_from_text(cell.strip()) for cell in rows[0][1:]])

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with inputs as index and outputs as columns (needs pandas)."""
        import pandas as pd

        columns = pd.Index(list(self.outputs), tupleize_cols=False)
        index = pd.Index(list(self.inputs), tupleize_cols=False)
        return pd.DataFrame(self.matrix.copy(), index=index, columns=columns)

    @classmethod
    def from_pandas(cls, frame: Any) -> Channel:
        """Return the channel of a DataFrame with inputs as index and outputs as columns."""
        return cls(frame.to_numpy(dtype=float), list(frame.index), list(frame.columns))

    def _input_index(self, label: Hashable) -> int:
        try:
            return self.inputs.index(label)
        except ValueError:
            raise ValidationError(
                f"label: found {label!r}; the inputs are {preview(self.inputs)}"
            ) from None

    def __repr__(self) -> str:
        return (
            f"Channel({len(self.inputs)} inputs {preview(self.inputs)} -> "
            f"{len(self.outputs)} outputs {preview(self.outputs)})"
        )


def as_channel(channel: Channel | ArrayLike, name: str = "channel") -> Channel:
    """Return `channel` as a `Channel`; arrays get the labels 0, 1, ..."""
    return channel if isinstance(channel, Channel) else Channel(probability_rows(channel, name, 2))


def integer_weights(row: ArrayLike) -> list[int]:
    """Return integers that are exactly proportional to the floats of `row`.

    A float is an integer over a power of two, so the row divided by its sum is exactly
    weights / sum(weights).

    Examples
    --------
    >>> from cvxleak.model.channel import integer_weights
    >>> integer_weights([0.5, 0.25, 0.25])
    [2, 1, 1]
    """
    fractions = [Fraction(float(value)) for value in np.asarray(row, dtype=float)]
    scale = max(fraction.denominator for fraction in fractions)
    return [fraction.numerator * (scale // fraction.denominator) for fraction in fractions]


def _below(total: int, generator: np.random.Generator | None) -> int:
    """Return a uniform integer in [0, total), by rejection on whole bytes."""
    if generator is None:
        return secrets.randbelow(total)
    bits = total.bit_length()
    while True:
        ticket = int.from_bytes(generator.bytes((bits + 7) // 8), "little") >> (-bits % 8)
        if ticket < total:
            return ticket
