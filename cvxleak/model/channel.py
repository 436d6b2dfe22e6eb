"""`Channel`: a conditional distribution of an output given an input, both finite."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import carries
from cvxleak.core.validation import (
    Array,
    composed_rows,
    instance,
    probability_rows,
    real_number,
    short,
)
from cvxleak.core.value import preview
from cvxleak.core.wording import counted
from cvxleak.model._composed import cascade, composed
from cvxleak.model._matrix import LabeledMatrix, unframed
from cvxleak.model.prior import Prior, as_prior

__all__ = ["Channel", "Labels", "as_channel"]

Labels = tuple[Hashable, ...]

MOST_PAIRS = 1 << 18
"""Most outputs of a product: their labels take seconds to make."""

MOST_CELLS = 1 << 24
"""Most probabilities of a product, 128 MB of them."""

MOST_EXACT = 1 << 18
"""Most of them where they are no floats."""


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Channel(LabeledMatrix):
    """A channel q(y|x): one probability distribution on the outputs for each input.

    Parameters
    ----------
    matrix : array_like, shape (inputs, outputs)
        Row x is the distribution of Y given x. Rows sum to 1 within 1e-9 and are stored as given,
        never corrected: `from_solver` repairs rounding errors, and `ChannelSet.from_printed` stands
        for all channels that a printed matrix may be. Sparse matrices and tensors are arrays, too.
    inputs, outputs : iterable of hashable, optional
        Distinct labels; those of a pandas DataFrame, else 0, 1, ..., if left out.

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

    @staticmethod
    def _checked(matrix: ArrayLike, inputs: object) -> Array:
        return probability_rows(matrix, "matrix", 2, inputs)

    @classmethod
    def from_solver(
        cls,
        matrix: ArrayLike,
        inputs: Iterable[Hashable] | None = None,
        outputs: Iterable[Hashable] | None = None,
        *,
        tol: float = 1e-6,
    ) -> Channel:
        """Return a solver's matrix as a channel, after repairing its rounding errors.

        Negative entries become 0, and so do outputs whose probability is at most `tol` for every
        input; then each row is divided by its sum. For an output that the optimum does not use, a
        solver returns entries of 1e-9 or so with arbitrary ratios. Without this step, local
        differential privacy, pointwise leakage and Rényi divergences of the channel could come out
        as anything up to infinity. The channel need not meet its budgets exactly: measure it
        (`cvxleak.measures`).

        Parameters
        ----------
        matrix : array_like, shape (inputs, outputs)
            The solver's result, such as ``Q.value`` of a `cp.Variable`.
        inputs, outputs : iterable of hashable, optional
            Distinct labels; 0, 1, ... if left out. Outputs that become 0 stay in the channel.
        tol : float
            Largest error of the solver's numbers. 1e-6 suits CLARABEL, ECOS, HiGHS, and SCS at a
            tolerance of 1e-8; SCS at its default needs 1e-4. So do constraints on Rényi divergences
            of order above 1 and on the chi-square divergence: they divide squares of entries, which
            fall below a solver's accuracy before the entries do.

        Raises
        ------
        ValidationError
            None, a wrong shape, NaN, a tolerance of 1 / (2 outputs) or more, bad labels; entries
            below ``-tol``, or row sums that differ from 1 by more than `tol` per entry: more than
            rounding.

        Examples
        --------
        >>> from cvxleak.measures import local_dp_epsilon
        >>> from cvxleak.model import Channel
        >>> found = [[0.75, 0.25, 2e-9], [0.25, 0.75, -1e-11]]
        >>> round(local_dp_epsilon(Channel.from_solver(found)), 6)
        1.098612
        """
        from cvxleak.model._solved import repaired_rows

        matrix, inputs, outputs = unframed(matrix, inputs, outputs)
        return cls(repaired_rows(matrix, tol), inputs, outputs)

    def then(self, channel: Channel) -> Channel:
        """Return this channel followed by `channel` (post-processing, Markov chain X - Y - Z).

        r(z|x) = sum_y q(y|x) channel(z|y), the cascade of both. ``first @ second`` is the same. If
        either channel has entries that are not floats, such as 1/3, the result is exact, too; this
        holds for every operation on two channels.

        Raises
        ------
        ValidationError
            The inputs of `channel` are not the outputs of this channel, in the same order.

        Examples
        --------
        >>> from cvxleak.model import Channel
        >>> noisy = Channel([[0.75, 0.25], [0.25, 0.75]])
        >>> noisy.then(noisy).matrix
        array([[0.625, 0.375],
               [0.375, 0.625]])
        """
        _check_inputs(channel, self.outputs, "this channel's outputs")
        return Channel(cascade(self.matrix, channel.matrix), self.inputs, channel.outputs)

    def product(self, channel: Channel) -> Channel:
        """Return the channel that also releases a second, conditionally independent output.

        r(y1, y2|x) = q(y1|x) channel(y2|x), both in parallel; outputs are labeled by pairs.

        Raises
        ------
        ValidationError
            The two channels do not have the same inputs in the same order, or more than 2^18 pairs
            of outputs or 2^24 probabilities (2^18 where they are exact) would have to be made.

        Examples
        --------
        >>> from cvxleak.model import Channel
        >>> noisy = Channel([[0.75, 0.25], [0.25, 0.75]])
        >>> noisy.product(noisy).outputs
        ((0, 0), (0, 1), (1, 0), (1, 1))
        """
        _check_inputs(channel, self.inputs, "this channel's inputs")
        pairs = len(self.outputs) * len(channel.outputs)
        exact = carries(self.matrix) or carries(channel.matrix)
        most = min(MOST_PAIRS, (MOST_EXACT if exact else MOST_CELLS) // len(self.inputs))
        if pairs > most:
            raise ValidationError(
                f"channel: found {counted(len(channel.outputs), 'output')} beside "
                f"{len(self.outputs)}, which make {short(pairs)} pairs; with "
                f"{counted(len(self.inputs), 'input')}, at most {most} are allowed; "
                "Channel(channel.reduced().matrix) merges outputs that tell the same"
            )
        joint = composed(
            self.matrix,
            channel.matrix,
            lambda q, r, _: (q[:, :, None] * r[:, None, :]).reshape(len(self.inputs), -1),
        )
        labels = [(first, second) for first in self.outputs for second in channel.outputs]
        return Channel(joint, self.inputs, labels)

    def __matmul__(self, channel: Channel) -> Channel:
        return self.then(channel)

    def visible_choice(self, channel: Channel, chance: float) -> Channel:
        """Return the channel that picks one of two channels at random and reveals which.

        Outputs are labeled by pairs: (0, y) of this channel, (1, y) of the other. For any prior,
        the posterior gain is the mean of the two.

        Parameters
        ----------
        channel : Channel
            The other channel, on the same inputs.
        chance : float
            Probability of this channel, from 0 to 1; the other one has the rest.

        Raises
        ------
        ValidationError
            Inputs that differ or come in another order, or a chance outside [0, 1].

        Examples
        --------
        >>> from cvxleak.model import Channel
        >>> open, shut = Channel([[1, 0], [0, 1]]), Channel([[1], [1]])
        >>> open.visible_choice(shut, 0.25)
        Channel(2 inputs [0, 1] -> 3 outputs [(0, 0), (0, 1), (1, 0)])
        """
        _check_inputs(channel, self.inputs, "this channel's inputs")
        matrix = composed(
            self.matrix,
            channel.matrix,
            lambda q, r, share: np.hstack([share * q, (1 - share) * r]),
            real_number(chance, "chance", 0, 1),
        )
        labels = [(0, y) for y in self.outputs] + [(1, y) for y in channel.outputs]
        return Channel(matrix, self.inputs, labels)

    def hidden_choice(self, channel: Channel, chance: float) -> Channel:
        """Return the channel that picks one of two channels at random and hides which.

        r(y|x) = chance q(y|x) + (1 - chance) channel(y|x); outputs with equal labels are merged. It
        leaks at most as much as the `visible_choice`.

        Parameters
        ----------
        channel : Channel
            The other channel, on the same inputs. Outputs of the other channel only are listed
            last.
        chance : float
            Probability of this channel, from 0 to 1; the other one has the rest.

        Raises
        ------
        ValidationError
            Inputs that differ or come in another order, or a chance outside [0, 1].

        Examples
        --------
        >>> from cvxleak.model import Channel
        >>> truth, lie = Channel([[1, 0], [0, 1]]), Channel([[0, 1], [1, 0]])
        >>> truth.hidden_choice(lie, 0.75).matrix
        array([[0.75, 0.25],
               [0.25, 0.75]])
        """
        seen = self.visible_choice(channel, chance)
        both = self.outputs + channel.outputs
        labels = {y: place for place, y in enumerate(dict.fromkeys(both))}
        hidden = np.eye(len(labels))[[labels[y] for y in both]]
        return Channel(cascade(seen.matrix, hidden), self.inputs, labels)

    def reduced(self, tol: float = 1e-12) -> Channel:
        """Return the reduced channel: proportional columns merged, zero columns dropped.

        Two columns are merged when, each divided by its sum, they agree in every entry up to the
        relative difference `tol` (so a zero only agrees with a zero). The merged output is
        labeled by the tuple of the outputs that went into it. A reduced channel is as informative
        as the original one for every prior. If products are reduced again and again, the labels
        grow with the number of all sequences of outputs; ``Channel(reduced.matrix)`` drops them.

        Raises
        ------
        ValidationError
            A negative tolerance, or one of 1 and more.

        Examples
        --------
        >>> from cvxleak.model import Channel
        >>> Channel([[0.5, 0.25, 0.25], [0.0, 0.5, 0.5]]).reduced()
        Channel(2 inputs [0, 1] -> 2 outputs [0, (1, 2)])
        """
        from cvxleak.model._proportional import proportional

        groups = proportional(self.matrix, real_number(tol, "tol", 0, 1, open_high=True))
        columns = np.stack([self.matrix[:, group].sum(axis=1) for group in groups], axis=1)
        merged: list[Hashable] = [tuple(self.outputs[y] for y in group) for group in groups]
        labels = [
            self.outputs[group[0]] if len(group) == 1 else names
            for group, names in zip(groups, merged, strict=True)
        ]
        # Where an output is already labeled like a tuple of others, all labels become tuples.
        distinct = len(set(labels)) == len(labels)
        return Channel(composed_rows(columns), self.inputs, labels if distinct else merged)

    def output(self, prior: Prior | ArrayLike) -> Prior:
        """Return the distribution of the output: p(y) = sum_x p(x) q(y|x).

        Parameters
        ----------
        prior : Prior or array_like
            The distribution of the input. A `Prior` labeled by the channel's inputs, in any order,
            is matched by label; an array is matched by position (as is a `Prior`, if one side is
            labeled 0, 1, ... and the two have no label in common).

        Raises
        ------
        ValidationError
            Not a prior, of another size, or with other labels.

        Examples
        --------
        >>> from cvxleak.model import Channel
        >>> Channel([[1.0, 0.0], [0.5, 0.5]]).output([0.5, 0.5]).probabilities
        array([0.75, 0.25])
        """
        p = as_prior(prior, len(self.inputs), labels=self.inputs)
        return Prior(composed_rows(p.probabilities @ self.matrix), self.outputs)

    def posterior(self, prior: Prior | ArrayLike) -> Channel:
        """Return the posteriors p(x|y) (Bayes' rule) as a channel from outputs to inputs.

        Outputs of probability zero have no posterior and are left out.

        Parameters
        ----------
        prior : Prior or array_like
            The distribution of the input, matched as in `output`.

        Raises
        ------
        ValidationError
            Not a prior, of another size, or with other labels.

        Examples
        --------
        >>> from cvxleak.model import Channel
        >>> Channel([[1.0, 0.0], [0.5, 0.5]]).posterior([0.5, 0.5]).row(1)
        array([0., 1.])
        """
        p = as_prior(prior, len(self.inputs), labels=self.inputs)
        # Mantissas and exponents apart: a product of tiny probabilities must not vanish.
        p_mantissa, p_exponent = np.frexp(p.probabilities[:, None])
        q_mantissa, q_exponent = np.frexp(self.matrix)
        mantissa, exponent = p_mantissa * q_mantissa, p_exponent + q_exponent
        exponent = np.where(mantissa > 0, exponent, np.iinfo(np.int32).min // 2)
        joint = np.ldexp(mantissa, exponent - exponent.max(axis=0))
        seen = np.flatnonzero(joint.any(axis=0))
        rows = (joint[:, seen] / joint[:, seen].sum(axis=0)).T
        return Channel(rows, [self.outputs[y] for y in seen], self.inputs)

    def sample(
        self, label: Hashable, size: int | None = None, rng: int | np.random.Generator | None = None
    ) -> Any:
        """Draw outputs for the input `label`, exactly from the stored row.

        The floats of the row are integers over a common power of two, and a uniform integer below
        their sum selects the output. So the draw involves no rounding and no floating-point side
        channel.

        Parameters
        ----------
        label : hashable
            An input.
        size : int, optional
            Number of draws, at most 2^27, returned as a list of labels. A single label is returned
            if left out.
        rng : int or numpy.random.Generator, optional
            Seed or generator for a reproducible draw; the operating system's randomness if left
            out.

        Raises
        ------
        ValidationError
            An unknown input, a size outside its range, or an `rng` that is neither.

        Examples
        --------
        >>> from cvxleak.model import Channel
        >>> Channel([[0.0, 1.0]], outputs=["no", "yes"]).sample(0, size=2)
        ['yes', 'yes']
        """
        from cvxleak.model._sampling import drawn

        draws = [self.outputs[y] for y in drawn(self.row(label), size, rng)]
        return draws[0] if size is None else draws


def as_channel(channel: Channel | ArrayLike, name: str = "channel") -> Channel:
    """Return `channel` as a `Channel`; arrays get the labels 0, 1, ..., DataFrames keep theirs.

    Raises
    ------
    ValidationError
        Rows that are not probability distributions.

    Examples
    --------
    >>> from cvxleak.model import as_channel
    >>> as_channel([[0.9, 0.1], [0.2, 0.8]])
    Channel(2 inputs [0, 1] -> 2 outputs [0, 1])
    """
    if isinstance(channel, Channel):
        return channel
    if hasattr(channel, "columns"):
        return Channel(channel)
    if hasattr(channel, "center") and hasattr(channel, "outputs"):
        raise ValidationError(
            f"{name}: found a ChannelSet; a single channel is needed here, such as its .center; "
            "for all channels of a set there are cvxleak.measures.measure_of_set, as in "
            "measure_of_set(printed, mutual_information, prior=p), capacity, "
            "local_dp_epsilon_of_set, dp_violation, and the audit of a Mechanism"
        )
    if isinstance(channel, (str, os.PathLike)):
        raise ValidationError(
            f"{name}: expected a Channel or an array, found {short(channel)}; "
            "Channel.from_csv reads a file"
        )
    return Channel(probability_rows(channel, name, 2))


def _check_inputs(channel: Channel, labels: tuple[Hashable, ...], what: str) -> None:
    instance(channel, Channel, "channel")
    if channel.inputs != labels:
        raise ValidationError(
            f"channel: its inputs are {preview(channel.inputs)}; "
            f"they must be {what} {preview(labels)}, in this order"
        )
