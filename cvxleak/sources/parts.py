"""`Part`: one convex part of a source set."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import stacked
from cvxleak.core.validation import (
    Array,
    in_order,
    instance,
    label_tuple,
    probability_rows,
    read_only,
)
from cvxleak.core.value import Value, check_keys
from cvxleak.model.prior import Prior, as_prior, named_law
from cvxleak.sources.polytope import Polytope

__all__ = ["Part", "laws_and_labels", "no_points", "part_from_dict"]


@dataclass(frozen=True, eq=False, repr=False)
class Part(Value):
    """One convex part of a source set: the hull of some distributions and some polytopes.

    Attributes
    ----------
    points : ndarray, shape (n, k)
        Distributions, in the rows.
    polytopes : tuple of Polytope
    """

    points: Array
    polytopes: tuple[Polytope, ...] = ()

    @property
    def is_point(self) -> bool:
        """Whether it is a single distribution."""
        return len(self.points) == 1 and not self.polytopes


def laws_and_labels(
    laws: Iterable[Prior | ArrayLike], labels: Iterable[Hashable] | None
) -> tuple[Array, tuple[Hashable, ...]]:
    """Return distributions as the rows of one array, and the labels of their outcomes."""
    if isinstance(named_law(laws), Prior):
        raise ValidationError("laws: found one Prior; a list of distributions is needed")
    given = tuple(map(named_law, in_order(laws, "laws")))
    if not given:
        raise ValidationError("laws: found none; at least one is needed")
    size = len(given[0]) if hasattr(given[0], "__len__") else -1
    names = None if labels is None else label_tuple(labels, size, "labels")
    if names is None:
        names = next((law.labels for law in given if isinstance(law, Prior)), None)
    rows = []
    for k, law in enumerate(given):
        name = f"laws[{k}]"
        if not isinstance(law, Prior):
            probability_rows(law, name, 1)
        prior = as_prior(law, size, name, names)
        names = prior.labels if names is None else names
        rows.append(prior.probabilities)
    return stacked(rows), instance(names, tuple, "labels")


def no_points(size: int) -> Array:
    """Return an array without any distribution."""
    return read_only(np.zeros((0, size)))


def part_from_dict(entry: Any) -> Part:
    """Return the part that `SourceSet.parts_to_list` wrote."""
    check_keys(entry, set(), {"points", "polytopes"})
    polytopes = tuple(
        Polytope.from_dict(p) for p in in_order(entry.get("polytopes", ()), "polytopes")
    )
    points = entry.get("points", ())
    if len(points) == 0:
        if not polytopes:
            raise ValidationError("parts: found one without distributions; at least one is needed")
        return Part(no_points(len(polytopes[0])), polytopes)
    return Part(probability_rows(points, "points", 2), polytopes)
