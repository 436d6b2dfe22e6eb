"""`LabeledMatrix`: a matrix with labeled rows and columns, as channels and distortions are."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cvxleak.core.errors import ValidationError
from cvxleak.core.files import labels_from_json
from cvxleak.core.numbers import ExactArray, fraction, to_json
from cvxleak.core.validation import Array, in_order, label_tuple, short
from cvxleak.core.value import Stored, check_keys, preview
from cvxleak.core.wording import counted

__all__ = ["LabeledMatrix", "distinct_rows", "unframed"]


@dataclass(frozen=True, eq=False, repr=False)
class LabeledMatrix(Stored):
    """A read-only matrix with distinct labels for its rows (inputs) and columns (outputs)."""

    matrix: Array
    inputs: tuple[Hashable, ...]
    outputs: tuple[Hashable, ...]

    def __init__(
        self,
        matrix: ArrayLike,
        inputs: Iterable[Hashable] | None = None,
        outputs: Iterable[Hashable] | None = None,
    ) -> None:
        matrix, inputs, outputs = unframed(matrix, inputs, outputs)
        array = self._checked(matrix, inputs)
        object.__setattr__(self, "matrix", array)
        object.__setattr__(self, "inputs", label_tuple(inputs, array.shape[0], "inputs"))
        object.__setattr__(self, "outputs", label_tuple(outputs, array.shape[1], "outputs"))

    @staticmethod
    def _checked(matrix: ArrayLike, inputs: object) -> Array:
        """Return the matrix as a read-only array, or say what is wrong with it, by its inputs."""
        raise NotImplementedError

    @property
    def shape(self) -> tuple[int, int]:
        """Number of inputs and of outputs."""
        return self.matrix.shape[0], self.matrix.shape[1]

    def row(self, label: Hashable) -> Array:
        """Return the row of the input `label`.

        Raises
        ------
        ValidationError
            No input has this label.
        """
        try:
            return self.matrix[self.inputs.index(label)]
        except ValueError:
            raise ValidationError(
                f"label: found {short(label)}; the inputs are {preview(self.inputs)}"
            ) from None

    def select(
        self,
        inputs: Iterable[Hashable] | None = None,
        outputs: Iterable[Hashable] | None = None,
        name: str = "matrix",
    ) -> Self:
        """Return the part with these inputs and outputs, in this order.

        Parameters
        ----------
        inputs, outputs : iterable of hashable, optional
            Distinct labels of this object; all of them if left out.
        name : str, optional
            What error messages call this object.

        Raises
        ------
        ValidationError
            A label that this object lacks, one that appears twice, or a part that is not valid
            (a channel without an output that can occur).

        Examples
        --------
        >>> from cvxleak.model import Distortion
        >>> Distortion.absolute(range(5)).select([3, 0], [0, 4]).matrix
        array([[3., 1.],
               [0., 4.]])
        """
        rows, row_labels = _places(self.inputs, inputs, name, "inputs")
        columns, column_labels = _places(self.outputs, outputs, name, "outputs")
        return type(self)(self.matrix[np.ix_(rows, columns)], row_labels, column_labels)

    def to_dict(self) -> dict[str, Any]:
        """Return the matrix and its labels as plain lists, ready for JSON."""
        return {
            "inputs": list(self.inputs),
            "outputs": list(self.outputs),
            "matrix": to_json(self.matrix),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the object that `to_dict` wrote; the labels may be left out.

        Raises
        ------
        ValidationError
            A key is missing or unknown, or a value is not valid.
        """
        check_keys(data, {"matrix"}, {"inputs", "outputs"})
        inputs, outputs = (labels_from_json(data.get(key)) for key in ("inputs", "outputs"))
        return cls(data["matrix"], inputs, outputs)

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV file: a header of outputs, then for each input a line with its label and row.

        Numbers are written so that they round-trip exactly. Labels that are text are written as
        they are, others as JSON (a tuple as ``[0, 1]``), and so is text that would read as JSON.

        Raises
        ------
        ValidationError
            A label that would not come back, or a path that cannot be written.
        """
        from cvxleak.core.tables import write_matrix

        write_matrix(path, self.matrix, self.inputs, self.outputs)

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str]) -> Self:
        """Read a CSV file: with a header and a first column of labels, or a bare matrix.

        A file without commas is separated by spaces or tabs: what R's ``write.table`` and ``print``
        make. Names in quotes may hold spaces, and ``[1,]`` and ``[,1]`` are no labels.

        The file has labels if its very first cell is not a number (``1/2`` and the like, numbers
        that Python does not read, are refused there; and so is a word above what may be labels or
        numbers of the matrix). A label that is JSON (``1``, ``0.5``, ``true``, ``[0, 1]``,
        ``"1"``) stands for that value, any other (``1/2``) for its text.

        Raises
        ------
        ValidationError
            The file cannot be read, its lines are not equally long, a cell is not a number, or
            the matrix is not valid.
        """
        from cvxleak.core.tables import read_matrix

        return cls(*read_matrix(path, cls))

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame with inputs as index and outputs as columns (needs pandas)."""
        import pandas as pd

        index = pd.Index(list(self.inputs), tupleize_cols=False)
        columns = pd.Index(list(self.outputs), tupleize_cols=False)
        return pd.DataFrame(self.matrix.copy(), index=index, columns=columns)

    @classmethod
    def from_pandas(cls, frame: Any) -> Self:
        """Return the object of a DataFrame with inputs as index and outputs as columns.

        Raises
        ------
        ValidationError
            Not a DataFrame, or its entries or labels are not valid.
        """
        if not (hasattr(frame, "iloc") and hasattr(frame, "columns")):
            raise ValidationError(f"frame: expected a pandas DataFrame, found {short(frame)}")
        return cls(frame)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.matrix, dtype=dtype)

    def _repr_html_(self) -> str:
        from cvxleak.core.notebook import html_table

        rows = ([label, *row] for label, row in zip(self.inputs, self.matrix, strict=True))
        return html_table(repr(self), ["", *self.outputs], rows)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({counted(len(self.inputs), 'input')} {preview(self.inputs)} -> "
            f"{counted(len(self.outputs), 'output')} {preview(self.outputs)})"
        )


def unframed(
    matrix: Any, inputs: Iterable[Hashable] | None, outputs: Iterable[Hashable] | None
) -> tuple[Any, Iterable[Hashable] | None, Iterable[Hashable] | None]:
    """Return the numbers and the labels of a DataFrame without other labels; others as given.

    Examples
    --------
    >>> import pandas as pd
    >>> from cvxleak.model._matrix import unframed
    >>> unframed(pd.DataFrame({"no": [1.0], "yes": [0.0]}), None, None)
    (array([[1., 0.]]), [0], ['no', 'yes'])
    """
    if hasattr(matrix, "columns") and inputs is None and outputs is None:
        # A frame of polars has no index.
        names = list(matrix.index) if hasattr(matrix, "index") else None
        return matrix.to_numpy(), names, list(matrix.columns)
    return matrix, inputs, outputs


def distinct_rows(matrix: Array) -> tuple[Array, NDArray[np.intp]]:
    """Return the distinct rows in lexicographic order, and which of them each row is.

    What ``numpy.unique(matrix, axis=0, return_inverse=True)`` returns for numbers >= 0 without -0.0
    (`frozen_array` makes 0.0 of it), many times faster: such floats are in order as their bytes
    are, the first byte being the highest.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.model._matrix import distinct_rows
    >>> distinct_rows(np.array([[0.5, 0.5], [0.0, 1.0], [0.5, 0.5]]))
    (array([[0. , 1. ],
           [0.5, 0.5]]), array([1, 0, 1]))
    """
    if isinstance(matrix, ExactArray):
        found = [tuple(map(fraction, row)) for row in matrix.tolist()]
        place = {row: i for i, row in enumerate(sorted(set(found)))}
        inverse = np.array([place[row] for row in found], dtype=np.intp)
        return matrix[[found.index(row) for row in place]], inverse
    keys = [row.tobytes() for row in matrix.astype(">f8", order="C")]
    first: dict[bytes, int] = {}
    for i, key in enumerate(keys):
        first.setdefault(key, i)
    order = sorted(first)
    place_of = {key: j for j, key in enumerate(order)}
    inverse = np.array([place_of[key] for key in keys], dtype=np.intp)
    return matrix[[first[key] for key in order]], inverse


def _places(
    known: tuple[Hashable, ...], needed: Iterable[Hashable] | None, name: str, kind: str
) -> tuple[list[int], tuple[Hashable, ...]]:
    """Return where the labels `needed` are among those `known`, and these labels."""
    if needed is None:
        return list(range(len(known))), known
    given = in_order(needed, kind)
    wanted = label_tuple(given, len(given), kind)
    place = {label: i for i, label in enumerate(known)}
    missing = tuple(label for label in wanted if label not in place)
    if missing:
        side = "rows" if kind == "inputs" else "columns"
        numbered = f"; if they are no more than numbers of {side}, pass the matrix, which is "
        numbered += f"taken in order, or name the {kind}"
        raise ValidationError(
            f"{name}: its {kind} are {preview(known)}; they lack {preview(missing)}, "
            f"which are needed{numbered if known == tuple(range(len(known))) else ''}"
        )
    return [place[label] for label in wanted], wanted
