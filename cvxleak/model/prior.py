"""`Prior`: a probability distribution on a finite set of labelled outcomes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.errors import ValidationError
from cvxleak.model._validation import Array, label_tuple, probability_rows, real_number
from cvxleak.model._value import Value, preview

__all__ = ["Prior", "as_prior"]


@dataclass(frozen=True, eq=False, repr=False)
class Prior(Value):
    """A probability distribution p on a finite set of labelled outcomes.

    Parameters
    ----------
    probabilities : array_like, shape (k,)
        Non-negative, finite, sum 1 within 1e-9 (absolute). Never renormalized.
    labels : iterable of hashable, optional
        k distinct labels; 0, 1, ..., k - 1 if left out.

    Raises
    ------
    ValidationError
        Wrong shape, negative, NaN or infinite entries, a sum off 1, duplicate or too few labels.

    Examples
    --------
    >>> from cvxleak.model import Prior
    >>> p = Prior([0.25, 0.75], labels=["no", "yes"])
    >>> p["yes"]
    0.75
    >>> p
    Prior(2 outcomes ['no', 'yes']: [0.25 0.75])
    """

    probabilities: Array
    labels: tuple[Hashable, ...]

    def __init__(
        self, probabilities: ArrayLike, labels: Iterable[Hashable] | None = None
    ) -> None:
        array = probability_rows(probabilities, "probabilities", 1)
        object.__setattr__(self, "probabilities", array)
        object.__setattr__(self, "labels", label_tuple(labels, len(array), "labels"))

    @classmethod
    def uniform(cls, labels: int | Iterable[Hashable]) -> Prior:
        """Return the uniform distribution on `labels` (or on 0, ..., k - 1 for an int k).

        Examples
        --------
        >>> from cvxleak.model import Prior
        >>> Prior.uniform(4).probabilities
        array([0.25, 0.25, 0.25, 0.25])
        """
        names = tuple(range(labels)) if isinstance(labels, int) else tuple(labels)
        if not names:
            raise ValidationError(f"labels: found {labels!r}; at least one outcome is needed")
        return cls(np.full(len(names), 1 / len(names)), names)

    @classmethod
    def from_counts(cls, counts: Mapping[Any, float] | Any) -> Prior:
        """Return the relative frequencies of `counts`.

        Parameters
        ----------
        counts : mapping or pandas.Series
            Non-negative finite numbers by label, with a positive total.

        Examples
        --------
        >>> from cvxleak.model import Prior
        >>> Prior.from_counts({"a": 3, "b": 1})["a"]
        0.75
        """
        if not hasattr(counts, "items"):
            raise ValidationError(
                f"counts: expected a mapping or a pandas Series, found {type(counts).__name__}"
            )
        items = list(counts.items())
        numbers = [real_number(value, f"counts[{label!r}]", 0) for label, value in items]
        total = sum(numbers)
        if not 0 < total < np.inf:
            raise ValidationError(f"counts: the total is {total!r}; it must be positive and finite")
        return cls(np.array(numbers) / total, [label for label, _ in items])

    @property
    def support(self) -> tuple[Hashable, ...]:
        """Labels of the outcomes with positive probability."""
        return tuple(
            label for label, p in zip(self.labels, self.probabilities, strict=True) if p > 0
        )

    def to_pandas(self) -> Any:
        """Return a pandas Series indexed by label (needs pandas)."""
        import pandas as pd

        return pd.Series(self.probabilities.copy(), index=list(self.labels), name="probability")

    def __getitem__(self, label: Hashable) -> float:
        try:
            return float(self.probabilities[self.labels.index(label)])
        except ValueError:
            raise KeyError(label) from None

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        with np.printoptions(precision=4, threshold=6, edgeitems=2):
            return f"Prior({len(self)} outcomes {preview(self.labels)}: {self.probabilities})"


def as_prior(prior: Prior | ArrayLike, size: int, name: str = "prior") -> Prior:
    """Return `prior` as a `Prior` with `size` outcomes; arrays get the labels 0, ..., size - 1."""
    result = prior if isinstance(prior, Prior) else Prior(probability_rows(prior, name, 1))
    if len(result) != size:
        raise ValidationError(f"{name}: found {len(result)} outcomes; {size} are needed")
    return result
