"""`RealOutput`: a real-valued output, partitioned into cells for an audit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, short
from cvxleak.core.value import Stored

__all__ = ["MOST_CELLS", "Cells", "CutOutput", "RealOutput", "most_cells"]

MOST_CELLS = 1 << 14
"""Most cells of the output."""

ENTRIES = 1 << 23
"""Most probabilities of cells: in balls they take a gigabyte."""


class Cells(NamedTuple):
    """A partition of the output.

    Attributes
    ----------
    masses : array, shape (values, cells)
        The probabilities of the cells for each value of the query, in floats.
    edges : array, shape (cells + 1,)
        Of additive noise: from -inf to inf; cell j is the interval between edges j and j + 1.
    references : array, shape (cells,)
        Of additive noise: for each cell the tilt (`AdditiveNoise.tilts`) of the distribution in it
        to which the conditional distributions are compared.
    """

    masses: Array
    edges: Array | None = None
    references: Array | None = None


class CutOutput(Protocol):
    """An output for the values of a query, that can be cut into cells."""

    def cells(self, excess: float, most: int) -> Cells:
        """Return at most so many cells, whose insides tell about `excess` nats if they can."""
        ...


class RealOutput(Stored, ABC):
    """An output that is a real number or an unbounded integer: not from a finite set.

    It is used in place of a channel, ``Mechanism(query, output)``. An audit partitions the output
    into cells. The cell leaks no more than the output, which gives the lower bound; the upper bound
    adds the leakage of the position within the cell. `AdditiveNoise` and `BoundedDensity` are real
    outputs.

    Examples
    --------
    >>> from cvxleak.model import Gaussian, RealOutput
    >>> isinstance(Gaussian(sigma=2), RealOutput)
    True
    """

    kind: ClassVar[str]
    coarser: ClassVar[str]
    """What to give to `Mechanism` instead, for the cell that the output is in."""

    _kinds: ClassVar[dict[str, type[RealOutput]]] = {}

    def __init_subclass__(cls) -> None:
        if "kind" in vars(cls):
            RealOutput._kinds[cls.kind] = cls

    @property
    @abstractmethod
    def described(self) -> str:
        """What the output is, in words."""

    @abstractmethod
    def standard(self, values: Sequence[Hashable]) -> CutOutput:
        """Return the output as an audit of a query with these values reads it."""

    def of_query(self, values: Sequence[Hashable]) -> RealOutput:
        """Return what a mechanism holds of the output, if its query has these values.

        Raises
        ------
        ValidationError
            The output is not known for one of the values.
        """
        self.standard(values)
        return self

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> RealOutput:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the output that `to_dict` wrote, of whichever kind it is.

        Raises
        ------
        ValidationError
            An unknown kind, a key that is missing or unknown, or a value that is not valid.
        """
        kinds = RealOutput._kinds
        kind = data.get("kind") if isinstance(data, Mapping) else None
        if not isinstance(kind, str) or kind not in kinds:
            raise ValidationError(f"noise: found the kind {short(kind)}; allowed: {sorted(kinds)}")
        return kinds[kind]._read(data)

    @classmethod
    @abstractmethod
    def _read(cls, data: Mapping[str, Any]) -> RealOutput: ...


def most_cells(values: Sequence[Any]) -> int:
    """Return how many cells can be looked at beside so many values."""
    return max(2, min(MOST_CELLS, ENTRIES // len(values)))
