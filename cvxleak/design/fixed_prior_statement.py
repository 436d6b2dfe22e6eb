"""What `DesignForPrior` is given, checked and turned into arrays."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import stacked
from cvxleak.core.validation import Array, real_number
from cvxleak.model import Channel, Distortion, Prior, as_prior
from cvxleak.model.prior import named_law
from cvxleak.problem.candidates import candidate_array, positive_part

__all__ = ["INFORMATION", "PRIVACY", "Statement", "amount", "read_priors", "stochastic"]

INFORMATION = "total"
"""The measure that is an information: it can be minimized, bounded and priced."""

PRIVACY = ("local_dp", "pml", "maximal_leakage")
"""Measures that bound every output; the distortion is minimized subject to them."""


@dataclass(frozen=True)
class Statement:
    """A design problem with fixed priors, in arrays.

    Attributes
    ----------
    laws, sources : arrays, shapes (K, n) and (J, n)
        The adversaries' priors, and the distributions under which the distortion counts.
    distortion : array, shape (n, m)
    inputs, outputs : tuple
        Labels of the channel.
    """

    laws: Array
    sources: Array
    distortion: Array
    inputs: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]

    @classmethod
    def read(
        cls,
        priors: Sequence[Prior],
        distortion: Distortion,
        sources: Sequence[Prior] | None,
    ) -> Statement:
        """Match the distributions and the distortion to each other."""
        named = next((p.labels for p in priors if p.labels != tuple(range(len(p)))), None)
        inputs = distortion.inputs
        if named is not None and inputs == tuple(range(len(named))):
            inputs = named

        def law(prior: Prior, name: str) -> Array:
            return as_prior(prior, len(inputs), name, inputs).probabilities

        laws = stacked(law(p, "prior") for p in priors)
        counted = laws if sources is None else stacked(law(p, "source") for p in sources)
        return cls(laws, counted, distortion.matrix, inputs, distortion.outputs)

    def channel(self, matrix: Array) -> Channel:
        """Return the labeled channel."""
        return Channel(matrix, self.inputs, self.outputs)

    def candidate(self, candidate: Any) -> Array:
        """Return a candidate's matrix; it need not be stochastic."""
        if isinstance(candidate, Channel):
            return candidate.select(self.inputs, self.outputs, "candidate").matrix
        return candidate_array(candidate, [self.distortion.shape])

    def content(self, minimize: str, name: str, amount: float) -> dict[str, Any]:
        """Return what a certificate says about a problem about information."""
        return {
            "distortion": self.distortion.tolist(),
            "sources": self.sources.tolist(),
            "secrets": self.laws.tolist(),
            "minimize": minimize,
            "own": [],
            name: amount,
        }


def read_priors(prior: Any, name: str) -> tuple[Prior, ...]:
    """Return one prior, or each of a list of them.

    A `Prior`, a Series, a mapping or a vector is one; a sequence of such, or a matrix, is a list.
    """
    prior = named_law(prior)
    if isinstance(prior, Prior):
        return (prior,)
    try:
        given = list(prior)
    except TypeError as error:
        raise ValidationError(f"{name}: expected a prior or a list of priors") from error
    if not given:
        raise ValidationError(f"{name}: found none; at least one is needed")
    if all(np.ndim(entry) == 0 and not isinstance(entry, Prior) for entry in given):
        return (_prior(prior, name),)
    return tuple(_prior(entry, f"{name}[{k}]") for k, entry in enumerate(given))


def stochastic(matrix: Array) -> Array:
    """Return the positive part of each row, divided by its sum."""
    return np.array([positive_part(row) for row in matrix])


def amount(value: Any, name: str) -> float:
    """Return a budget or a slope as a float."""
    return real_number(value, name, 0.0, open_high=True)


def _prior(given: Prior | ArrayLike, name: str) -> Prior:
    known = named_law(given)
    return known if isinstance(known, Prior) else as_prior(known, np.size(known), name)
