"""`Prior`: a probability distribution on a finite set of labeled outcomes."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.files import labels_from_json
from cvxleak.core.numbers import to_json
from cvxleak.core.validation import (
    Array,
    check_cells,
    in_order,
    label_tuple,
    probability_rows,
    real_number,
    short,
    whole_number,
)
from cvxleak.core.value import Stored, check_keys, preview
from cvxleak.core.wording import are, counted

__all__ = ["Prior", "as_prior", "has_labels", "named_law"]


@dataclass(frozen=True, eq=False, repr=False)
class Prior(Stored):
    """A probability distribution p on a finite set of labeled outcomes.

    Parameters
    ----------
    probabilities : array_like, shape (k,), or mapping
        Non-negative and finite, with sum 1 within 1e-9 (absolute); never renormalized. A mapping
        gives them by label, as does a pandas Series; both are accepted wherever a prior is.
    labels : iterable of hashable, optional
        k distinct labels; 0, 1, ..., k - 1 if left out.

    Raises
    ------
    ValidationError
        Wrong shape; negative, NaN or infinite entries; a sum other than 1; duplicate or too few
        labels; labels in addition to a mapping.

    Examples
    --------
    >>> from cvxleak.model import Prior
    >>> p = Prior([0.25, 0.75], labels=["no", "yes"])
    >>> p["yes"]
    0.75
    >>> p == Prior({"no": 0.25, "yes": 0.75})
    True
    >>> p
    Prior(2 outcomes ['no', 'yes']: [0.25 0.75])
    """

    probabilities: Array
    labels: tuple[Hashable, ...]

    def __init__(
        self,
        probabilities: ArrayLike | Mapping[Any, Any],
        labels: Iterable[Hashable] | None = None,
    ) -> None:
        given: Any = probabilities
        if isinstance(given, Mapping):
            if labels is not None:
                raise ValidationError("labels: found some beside a mapping, whose keys they are")
            given, labels = list(given.values()), list(given)
        elif hasattr(given, "columns"):
            raise ValidationError("probabilities: found a DataFrame; take one of its columns")
        elif hasattr(given, "iloc") and labels is None:
            given, labels = given.to_numpy(), list(given.index)
        array = probability_rows(given, "probabilities", 1)
        object.__setattr__(self, "probabilities", array)
        object.__setattr__(self, "labels", label_tuple(labels, len(array), "labels"))

    @classmethod
    def uniform(cls, labels: int | Iterable[Hashable]) -> Self:
        """Return the uniform distribution on `labels` (or on 0, ..., k - 1 for an int k).

        Raises
        ------
        ValidationError
            No outcomes, too many to be held in memory, or duplicate labels.

        Examples
        --------
        >>> from cvxleak.model import Prior
        >>> Prior.uniform(4).probabilities
        array([0.25, 0.25, 0.25, 0.25])
        """
        if isinstance(labels, Iterable):
            names = in_order(labels, "labels")
        else:
            size = whole_number(labels, "labels", 1)
            check_cells(size, 1, "labels")
            names = tuple(range(size))
        if not names:
            raise ValidationError("labels: found none; at least one outcome is needed")
        return cls(np.full(len(names), 1 / len(names)), names)

    @classmethod
    def from_counts(cls, counts: Mapping[Any, float] | Any) -> Self:
        """Return the relative frequencies of `counts`.

        Parameters
        ----------
        counts : mapping or pandas.Series
            Non-negative finite numbers by label, with a positive total.

        Raises
        ------
        ValidationError
            Not a mapping, a count that is negative, NaN or infinite, or a total of zero.

        Examples
        --------
        >>> from cvxleak.model import Prior
        >>> Prior.from_counts({"a": 3, "b": 1})["a"]
        0.75
        """
        if not hasattr(counts, "items"):
            raise ValidationError(
                f"counts: expected a mapping or a pandas Series, found {short(counts)}"
            )
        items = list(counts.items())
        values = [real_number(value, f"counts[{short(label)}]", 0) for label, value in items]
        total = sum(values)
        if not 0 < total < np.inf:
            raise ValidationError(f"counts: the total is {total!r}; it must be positive and finite")
        return cls(np.array(values) / total, [label for label, _ in items])

    @property
    def support(self) -> tuple[Hashable, ...]:
        """Labels of the outcomes with positive probability."""
        return tuple(
            label for label, p in zip(self.labels, self.probabilities, strict=True) if p > 0
        )

    def to_dict(self) -> dict[str, Any]:
        """Return labels and probabilities as plain lists, ready for JSON."""
        return {"labels": list(self.labels), "probabilities": to_json(self.probabilities)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the prior that `to_dict` wrote; the labels may be left out.

        Raises
        ------
        ValidationError
            A key is missing or unknown, or a value is not valid.
        """
        check_keys(data, {"probabilities"}, {"labels"})
        return cls(data["probabilities"], labels_from_json(data.get("labels")))

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV file with a header and one line (label, probability) for each outcome.

        Raises
        ------
        ValidationError
            A label that `from_csv` would read differently, or a path that cannot be written.
        """
        from cvxleak.core.tables import write_law

        write_law(path, self.probabilities, self.labels)

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str]) -> Self:
        """Read a CSV file with two columns, label and probability, with or without a header.

        Raises
        ------
        ValidationError
            The file cannot be read, has other columns, or the probabilities are not valid.
        """
        from cvxleak.core.tables import read_law

        return cls(*read_law(path))

    def to_pandas(self) -> Any:
        """Return a pandas Series indexed by label (needs pandas)."""
        import pandas as pd

        index = pd.Index(list(self.labels), tupleize_cols=False)
        return pd.Series(self.probabilities.copy(), index=index, name="probability")

    @classmethod
    def from_pandas(cls, series: Any) -> Self:
        """Return the prior of a Series of probabilities indexed by label (never renormalized).

        Raises
        ------
        ValidationError
            Not a Series, or its entries or labels are not valid.
        """
        if not hasattr(series, "iloc") or hasattr(series, "columns"):
            raise ValidationError(f"series: expected a pandas Series, found {short(series)}")
        return cls(series)

    def __getitem__(self, label: Hashable) -> float:
        try:
            return float(self.probabilities[self.labels.index(label)])
        except ValueError:
            raise KeyError(label) from None

    def __iter__(self) -> NoReturn:
        # `sum(prior)` wants the probabilities, `list(prior)` perhaps the labels: say which.
        raise TypeError("a Prior is not iterable: use its .labels or its .probabilities")

    def __len__(self) -> int:
        return len(self.labels)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.probabilities, dtype=dtype)

    def _repr_html_(self) -> str:
        from cvxleak.core.notebook import html_table

        caption = f"Prior({counted(len(self), 'outcome')})"
        rows = zip(self.labels, self.probabilities, strict=True)
        return html_table(caption, ("outcome", "probability"), rows)

    def __repr__(self) -> str:
        with np.printoptions(precision=4, threshold=6, edgeitems=2):
            return (
                f"Prior({counted(len(self), 'outcome')} {preview(self.labels)}: "
                f"{self.probabilities})"
            )


def as_prior(
    prior: Prior | ArrayLike | Mapping[Any, Any],
    size: int,
    name: str = "prior",
    labels: tuple[Hashable, ...] | None = None,
) -> Prior:
    """Return `prior` as a `Prior` with `size` outcomes; arrays get the labels 0, ..., size - 1.

    If `labels` are given, they are the result's outcomes, in this order. Arrays are matched by
    position; a `Prior`, a Series or a mapping with the same labels, in any order, is matched by
    label. If either side has the default labels 0, ..., size - 1 and the two have none in common,
    they are matched by position. Other labels are refused.

    Raises
    ------
    ValidationError
        No distribution, another size, or labels that do not fit.

    Examples
    --------
    >>> from cvxleak.model import Prior, as_prior
    >>> as_prior(Prior([0.25, 0.75], ["no", "yes"]), 2, labels=("yes", "no")).probabilities
    array([0.75, 0.25])
    """
    if labels is not None and not isinstance(labels, tuple):
        given = in_order(labels, "labels")
        labels = label_tuple(given, len(given), "labels")
    result = named_law(prior)
    if not isinstance(result, Prior):
        array = probability_rows(result, name, 1)
        result = Prior(array, labels if labels is not None and len(labels) == len(array) else None)
    if len(result) != whole_number(size, "size", 0):
        raise ValidationError(
            f"{name}: found {counted(len(result), 'outcome')}; {short(size)} {are(size)} needed"
        )
    if labels is None or result.labels == labels:
        return result
    own, needed = set(result.labels), set(labels)
    if own == needed:
        place = {label: i for i, label in enumerate(result.labels)}
        return Prior(result.probabilities[[place[label] for label in labels]], labels)
    unnamed = tuple(range(size))
    # Labels that overlap mean something: by position, 1 would become 2 where (0, 1) meets (1, 2).
    if unnamed not in (result.labels, labels) or own & needed:
        raise ValidationError(
            f"{name}: its labels are {preview(result.labels)}; they must be {preview(labels)} "
            "(an array is matched by position)"
        )
    return Prior(result.probabilities, labels)


def named_law(given: Any) -> Any:
    """Return a Series or mapping, which has labels of its own, as a `Prior`; others as they are.

    Examples
    --------
    >>> from cvxleak.model.prior import named_law
    >>> named_law({"no": 0.25, "yes": 0.75})
    Prior(2 outcomes ['no', 'yes']: [0.25 0.75])
    """
    if isinstance(given, Mapping):
        return Prior(given)
    return Prior.from_pandas(given) if hasattr(given, "iloc") else given


def has_labels(given: object) -> bool:
    """Whether a distribution, channel or distortion has labels: ours, pandas' or a mapping."""
    return isinstance(given, (Stored, Mapping)) or hasattr(given, "iloc")
