"""The data, witnesses and candidates of the problems of the envelope."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, short
from cvxleak.envelope.program import Program, Vertex
from cvxleak.model import Channel, Prior, as_channel, as_prior
from cvxleak.problem.candidates import read_rows

__all__ = ["Data", "read_candidate"]

SHRINK = 1 - 2.0**-50
"""Weights are this much smaller, so that those of an output never sum to more than 1."""


class Data:
    """A prior and a channel, restricted to what can occur.

    Attributes
    ----------
    prior : Prior
        In the order of the channel's inputs.
    channel : Channel
    program : Program
    """

    def __init__(
        self, prior: Prior | ArrayLike, channel: Channel | ArrayLike, mass: float = 1.0
    ) -> None:
        self.channel = as_channel(channel)
        self.prior = as_prior(prior, len(self.channel.inputs), labels=self.channel.inputs)
        self._inputs = np.flatnonzero(self.prior.probabilities)
        rows = self.channel.matrix[self._inputs]
        law = self.prior.probabilities[self._inputs]
        self._outputs = np.flatnonzero(law @ rows)
        self.program = Program(law, rows[:, self._outputs], mass)

    def stored(self) -> dict[str, Any]:
        """Return the data of a certificate."""
        return {
            "prior": self.prior.probabilities.tolist(),
            "matrix": self.channel.matrix.tolist(),
        }

    def witness(self, vertex: Vertex) -> dict[str, Any]:
        """Return the shares of a certificate's witness."""
        weights = vertex.masses / self.program.output[vertex.outputs] * SHRINK
        return {
            "inputs": self._inputs[vertex.inputs].tolist(),
            "outputs": self._outputs[vertex.outputs].tolist(),
            "weights": weights.tolist(),
        }

    def symbols(self, rows: Array, level: float) -> dict[str, Any]:
        """Return a post-processing as a witness: the symbols that leak more than `level` nats.

        A symbol stands for the input about which it leaks most. Symbols of one input are merged;
        the merged one leaks between the least and the most that they leak.
        """
        law = self.prior.probabilities
        joint = self.channel.matrix @ rows
        mass = law @ joint
        used = np.flatnonzero(mass > 0)
        possible = np.flatnonzero(law)
        ratios = joint[np.ix_(possible, used)] / mass[used]
        best, most = possible[ratios.argmax(axis=0)], ratios.max(axis=0)
        weights = np.zeros((len(self.channel.inputs), len(self.channel.outputs)))
        for z, x in zip(used[most > np.exp(level)], best[most > np.exp(level)], strict=True):
            weights[x] += rows[:, z]
        weights[:, law @ self.channel.matrix == 0] = 0.0
        inputs, outputs = np.nonzero(weights)
        return {
            "inputs": inputs.tolist(),
            "outputs": outputs.tolist(),
            "weights": (weights[inputs, outputs] * SHRINK).tolist(),
        }

    def completed(self, witness: dict[str, Any]) -> dict[str, Any]:
        """Return a witness that uses every output wholly.

        What was left out goes to the symbol of the largest mass, which hardly notices. Of the
        weights of an output all but the largest are rounded down to multiples of 2^-53, so that
        what the largest is left with is a float too.
        """
        inputs, outputs = (np.array(witness[name], dtype=np.intp) for name in ("inputs", "outputs"))
        weights = np.array(witness["weights"])
        law = np.zeros(len(self.channel.outputs))
        law[self._outputs] = self.program.output
        heaviest = np.bincount(inputs, weights * law[outputs], minlength=1).argmax()
        possible = np.flatnonzero(self.channel.matrix[self._inputs].any(axis=0))
        unused = np.setdiff1d(possible, outputs) if inputs.size else inputs
        inputs = np.append(inputs, np.full(len(unused), heaviest))
        outputs, weights = np.append(outputs, unused), np.append(weights, np.ones(len(unused)))
        for y in np.unique(outputs):
            places = np.flatnonzero(outputs == y)
            largest = places[weights[places].argmax()]
            others = places[places != largest]
            weights[others] = np.floor(weights[others] * 2.0**53) * 2.0**-53
            weights[largest] = 1 - weights[others].sum()
        return {
            "inputs": inputs.tolist(),
            "outputs": outputs.tolist(),
            "weights": weights.tolist(),
        }

    def post_processing(self, witness: dict[str, Any]) -> Channel:
        """Return the witness as a channel from the outputs to its symbols and one for the rest.

        A symbol has the label of the input that it points to.
        """
        columns = {x: i for i, x in enumerate(dict.fromkeys(witness["inputs"]))}
        matrix = np.zeros((len(self.channel.outputs), len(columns) + 1))
        places = [columns[x] for x in witness["inputs"]]
        np.add.at(matrix, (witness["outputs"], places), witness["weights"])
        matrix[:, -1] = np.maximum(1 - matrix.sum(axis=1), 0.0)
        labels: list[Hashable] = [self.channel.inputs[x] for x in columns]
        rest = "rest"
        while rest in labels:
            rest += "'"
        return Channel(matrix, self.channel.outputs, [*labels, rest])

    def multipliers(self, vertex: Vertex) -> list[float]:
        """Return multipliers for all inputs; 0 for those that cannot have a symbol."""
        result = np.zeros(len(self.channel.inputs))
        result[self._inputs] = np.where(np.isfinite(vertex.multipliers), vertex.multipliers, 0.0)
        return result.tolist()


def read_candidate(
    candidate: Channel | ArrayLike, outputs: tuple[Hashable, ...]
) -> tuple[Channel, dict[str, float]]:
    """Return a candidate as a channel, and how far its rows are from being distributions.

    A Channel's inputs are matched by label. The channel is the positive part of the rows, each
    divided by its sum.

    Raises
    ------
    ValidationError
        Another number of rows than outputs, other labels, numbers that are not finite, or a row
        without a positive entry.
    """
    if isinstance(candidate, Channel):
        if set(candidate.inputs) != set(outputs):
            raise ValidationError(
                f"candidate: found a Channel with inputs {short(candidate.inputs)}; they have to "
                f"be the labels {short(outputs)} (or give its matrix)"
            )
        candidate = candidate.select(inputs=outputs)
        rows = candidate.matrix
    else:
        try:
            rows = np.asarray(candidate, dtype=float)
        except (TypeError, ValueError) as error:
            raise ValidationError(
                f"candidate: expected a matrix of numbers, found {short(candidate)}"
            ) from error
    if rows.ndim != 2 or len(rows) != len(outputs) or not rows.size or not np.isfinite(rows).all():
        raise ValidationError(
            f"candidate: found shape {rows.shape}; a matrix of finite numbers with {len(outputs)} "
            "rows is needed, one per output of the channel"
        )
    matrix, violations = read_rows(rows)
    return Channel(matrix, outputs), violations
