"""`SourceSet`: the distributions that are possible for a partly known source."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.files import labels_from_json
from cvxleak.core.numbers import stacked, to_json
from cvxleak.core.validation import Array, in_order, label_tuple, read_only, short, whole_number
from cvxleak.core.value import Stored, check_keys, preview
from cvxleak.core.wording import counted
from cvxleak.model.prior import Prior, named_law
from cvxleak.sources.confidence import Interval, confidence_box
from cvxleak.sources.parts import Part, laws_and_labels, no_points, part_from_dict
from cvxleak.sources.polytope import Polytope

__all__ = ["SourceSet", "as_sources"]


@dataclass(frozen=True, eq=False, repr=False)
class SourceSet(Stored):
    """A set of distributions on the same outcomes: the true distribution is one of them.

    A union of convex parts. ``SourceSet(laws)`` is the finite set of these distributions, and not
    its hull; `hull`, `polytope`, `box` and `from_counts` make convex sets; ``a | b`` is the union.

    Parameters
    ----------
    laws : iterable of Prior or array_like, each of shape (k,)
        The distributions, at least one; their numbers are taken as written.
    labels : iterable of hashable, optional
        k distinct labels of the outcomes; those of the first distribution that is a `Prior` if left
        out, and 0, 1, ..., k - 1 if there is none.

    Raises
    ------
    ValidationError
        No distributions, arguments that are not distributions, or different numbers of outcomes.

    Notes
    -----
    HAMMING section II. Expected distortion is linear in the distribution, so a set and its convex
    hull admit the same channels (Lemma 2); mutual information is not, so there a finite set is not
    replaced by its hull.

    Examples
    --------
    >>> from cvxleak.sources import SourceSet
    >>> two = SourceSet([[0.7, 0.2, 0.1], [0.6, 0.2, 0.2]])
    >>> two
    SourceSet(3 outcomes [0, 1, 2]: 2 distributions)
    >>> two | SourceSet.box([0.5, 0, 0], [0.9, 0.3, 0.3])
    SourceSet(3 outcomes [0, 1, 2]: 2 distributions, 1 convex part)
    """

    parts: tuple[Part, ...]
    labels: tuple[Hashable, ...]

    def __init__(
        self, laws: Iterable[Prior | ArrayLike], labels: Iterable[Hashable] | None = None
    ) -> None:
        points, names = laws_and_labels(laws, labels)
        self._fill([Part(read_only(points[i : i + 1])) for i in range(len(points))], names)

    @classmethod
    def _of(cls, parts: Iterable[Part], labels: tuple[Hashable, ...]) -> Self:
        made = object.__new__(cls)
        made._fill(parts, labels)
        return made

    def _fill(self, parts: Iterable[Part], labels: tuple[Hashable, ...]) -> None:
        object.__setattr__(self, "parts", tuple(parts))
        object.__setattr__(self, "labels", labels)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._of, (self.parts, self.labels)

    @classmethod
    def hull(
        cls, laws: Iterable[Prior | ArrayLike], labels: Iterable[Hashable] | None = None
    ) -> Self:
        """Return the convex hull of some distributions.

        Raises
        ------
        ValidationError
            As for the class.

        Examples
        --------
        >>> from cvxleak.sources import SourceSet
        >>> SourceSet.hull([[1.0, 0.0], [0.0, 1.0]])
        SourceSet(2 outcomes [0, 1]: 1 convex part)
        """
        points, names = laws_and_labels(laws, labels)
        return cls._of([Part(read_only(points))], names)

    @classmethod
    def polytope(
        cls, matrix: ArrayLike, bound: ArrayLike, labels: Iterable[Hashable] | None = None
    ) -> Self:
        """Return the distributions p with matrix p <= bound.

        Parameters
        ----------
        matrix : array_like, shape (r, k)
        bound : array_like, shape (r,)
        labels : iterable of hashable, optional
            k distinct labels; 0, 1, ..., k - 1 if left out.

        Raises
        ------
        ValidationError
            Shapes that do not match, numbers that are not finite, or no distribution that satisfies
            the inequalities.

        Examples
        --------
        >>> from cvxleak.sources import SourceSet
        >>> SourceSet.polytope([[-1.0, 1.0, 0.0], [0.0, -1.0, 1.0]], [0.0, 0.0])  # in falling order
        SourceSet(3 outcomes [0, 1, 2]: 1 convex part)
        """
        shape = np.shape(matrix)
        if len(shape) != 2 or shape[1] == 0:
            raise ValidationError(f"matrix: found shape {shape}; a row per inequality is needed")
        size = shape[1]
        body = Polytope(np.zeros(size), np.ones(size), matrix, bound)
        return cls._of([Part(no_points(size), (body,))], label_tuple(labels, size, "labels"))

    @classmethod
    def box(
        cls, lower: ArrayLike, upper: ArrayLike, labels: Iterable[Hashable] | None = None
    ) -> Self:
        """Return the distributions p with lower <= p <= upper.

        Raises
        ------
        ValidationError
            Bounds outside [0, 1], or no distribution that satisfies them.

        Examples
        --------
        >>> from cvxleak.sources import SourceSet
        >>> SourceSet.box([0.2, 0.2], [0.7, 0.7]).worst([1.0, 0.0])[0]
        0.7
        """
        body = Polytope(lower, upper)
        names = label_tuple(labels, len(body), "labels")
        return cls._of([Part(no_points(len(body)), (body,))], names)

    @classmethod
    def from_counts(
        cls,
        counts: Mapping[Any, int] | Any,
        level: float = 0.95,
        *,
        method: Interval = "clopper-pearson",
        pseudocount: float = 0.5,
    ) -> Self:
        """Return a box around the frequencies of a sample.

        Each of the k probabilities gets an interval of level 1 - (1 - level) / k, so the intervals
        hold simultaneously with at least the given level (Bonferroni).

        Parameters
        ----------
        counts : mapping or pandas.Series
            How often each outcome occurred in independent draws: whole numbers by label.
        level : float
            In (0, 1).
        method : {"clopper-pearson", "dirichlet"}
            Exact confidence intervals of a binomial proportion (Clopper and Pearson, Biometrika 26,
            1934), or quantiles of the posterior under a Dirichlet prior: its marginals are Beta.
        pseudocount : float
            Parameter of the symmetric Dirichlet prior; 1/2 is Jeffreys' choice. The other method
            does not use it.

        Raises
        ------
        ValidationError
            Counts that are not whole numbers, are negative, or all zero; a level out of range.

        Examples
        --------
        >>> from cvxleak.sources import SourceSet
        >>> sample = SourceSet.from_counts({"yes": 70, "no": 30}, level=0.9)
        >>> low, high = -sample.worst([-1.0, 0.0])[0], sample.worst([1.0, 0.0])[0]
        >>> round(low, 3), round(high, 3)
        (0.6, 0.788)
        """
        names, low, high = confidence_box(counts, level, method, pseudocount)
        return cls.box(low, high, labels=names)

    def __or__(self, other: SourceSet) -> SourceSet:
        if not isinstance(other, SourceSet):
            return NotImplemented
        if other.labels != self.labels:
            raise ValidationError(
                f"sources: the outcomes are {preview(self.labels)} and {preview(other.labels)}; "
                "a union needs the same ones in the same order"
            )
        return SourceSet._of((*self.parts, *other.parts), self.labels)

    def convex_hull(self) -> SourceSet:
        """Return the convex hull.

        Examples
        --------
        >>> from cvxleak.sources import SourceSet
        >>> SourceSet([[1.0, 0.0], [0.0, 1.0]]).convex_hull()
        SourceSet(2 outcomes [0, 1]: 1 convex part)
        """
        return SourceSet._of([Part(self.points, self.polytopes)], self.labels)

    def relabeled(self, order: Iterable[int]) -> SourceSet:
        """Return the set with its outcomes in another order: outcome order[0] comes first.

        Raises
        ------
        ValidationError
            Not a permutation of 0, ..., k - 1.

        Examples
        --------
        >>> from cvxleak.sources import SourceSet
        >>> SourceSet([[0.1, 0.9]], labels=["a", "b"]).relabeled([1, 0]).points
        array([[0.9, 0.1]])
        """
        places = [whole_number(i, "order", 0) for i in in_order(order, "order")]
        if sorted(places) != list(range(self.size)):
            raise ValidationError(
                f"order: found {short(places)}; a permutation of 0 to {self.size - 1} is needed"
            )
        parts = [
            Part(
                read_only(part.points[:, places]),
                tuple(
                    Polytope(p.lower[places], p.upper[places], p.matrix[:, places], p.bound)
                    for p in part.polytopes
                ),
            )
            for part in self.parts
        ]
        return SourceSet._of(parts, tuple(self.labels[i] for i in places))

    @property
    def size(self) -> int:
        """Number of outcomes."""
        return len(self.labels)

    @cached_property
    def points(self) -> Array:
        """The distributions of all parts together, shape (n, k)."""
        return read_only(stacked(part.points for part in self.parts))

    @cached_property
    def polytopes(self) -> tuple[Polytope, ...]:
        """The polytopes of all parts together."""
        return tuple(polytope for part in self.parts for polytope in part.polytopes)

    @property
    def is_finite(self) -> bool:
        """Whether it is a finite set of distributions."""
        return all(part.is_point for part in self.parts)

    def worst(self, cost: ArrayLike) -> tuple[float, Prior]:
        """Return max over the set of sum_i cost_i p_i, and a distribution that attains it.

        Parameters
        ----------
        cost : array_like, shape (k,)
            In the order of `labels`.

        Raises
        ------
        ValidationError
            Costs that are not finite, or whose number is not that of the outcomes.

        Examples
        --------
        >>> from cvxleak.sources import SourceSet
        >>> value, law = SourceSet([[0.7, 0.3], [0.4, 0.6]]).worst([0.0, 1.0])
        >>> value, law.probabilities
        (0.6, array([0.4, 0.6]))
        """
        found: list[tuple[float, Array]] = []
        c = np.asarray(cost, dtype=float)
        if c.shape != (self.size,) or not np.isfinite(c).all():
            raise ValidationError(f"cost: found shape {c.shape}; {self.size} numbers are needed")
        if len(self.points):
            values = self.points @ c
            k = int(np.argmax(values))
            found.append((float(values[k]), self.points[k]))
        for polytope in self.polytopes:
            answer = polytope.support(c)
            found.append((answer.value, answer.point))
        value, law = max(found, key=lambda pair: pair[0])
        law = np.maximum(law, 0.0)
        return value, Prior(law / law.sum(), self.labels)

    def to_dict(self) -> dict[str, Any]:
        """Return labels and parts as plain lists, ready for JSON."""
        return {"labels": list(self.labels), "parts": self.parts_to_list()}

    def parts_to_list(self) -> list[dict[str, Any]]:
        """Return the parts without the labels, as certificates store them."""
        return [
            {
                "points": to_json(part.points),
                "polytopes": [polytope.to_dict() for polytope in part.polytopes],
            }
            for part in self.parts
        ]

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the set that `to_dict` wrote; the labels may be left out.

        Raises
        ------
        ValidationError
            A key is missing or unknown, or a value is not valid.
        """
        check_keys(data, {"parts"}, {"labels"})
        parts = [part_from_dict(entry) for entry in in_order(data["parts"], "parts")]
        sizes = {part.points.shape[1] for part in parts if len(part.points)}
        sizes |= {len(polytope) for part in parts for polytope in part.polytopes}
        if len(sizes) != 1:
            raise ValidationError(
                f"parts: found distributions on {sorted(sizes)} outcomes; all need the same number"
            )
        size = sizes.pop()
        whole = [
            part if len(part.points) else Part(no_points(size), part.polytopes) for part in parts
        ]
        return cls._of(whole, label_tuple(labels_from_json(data.get("labels")), size, "labels"))

    def __repr__(self) -> str:
        laws = sum(part.is_point for part in self.parts)
        convex = len(self.parts) - laws
        kinds = [
            counted(n, name) for n, name in ((laws, "distribution"), (convex, "convex part")) if n
        ]
        return (
            f"SourceSet({counted(self.size, 'outcome')} {preview(self.labels)}: {', '.join(kinds)})"
        )


def as_sources(sources: SourceSet | Iterable[Prior | ArrayLike] | Prior) -> SourceSet:
    """Return `sources` as a `SourceSet`; a distribution or a list of them becomes a finite set.

    Examples
    --------
    >>> from cvxleak.sources import as_sources
    >>> as_sources([[0.5, 0.5], [0.25, 0.75]]).labels
    (0, 1)
    """
    if isinstance(sources, SourceSet):
        return sources
    law = named_law(sources)
    if isinstance(law, Prior):
        return SourceSet([law])
    single = isinstance(sources, np.ndarray) and not sources.ndim
    if isinstance(sources, list | tuple | np.ndarray) and not single and len(sources):
        if isinstance(sources[0], numbers.Real | str):
            return SourceSet([cast(ArrayLike, sources)])
    return SourceSet(sources)
