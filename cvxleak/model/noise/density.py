"""`BoundedDensity`: an output whose density is known within bounds on each cell."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import to_json
from cvxleak.core.validation import Array, frozen_array, instance
from cvxleak.core.value import check_keys
from cvxleak.core.wording import counted
from cvxleak.model.channel_set import ChannelSet
from cvxleak.model.noise.real_output import Cells, RealOutput

__all__ = ["BoundedDensity"]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class BoundedDensity(RealOutput):
    r"""An output with densities f_v that are known within bounds on each cell of a partition.

    The output need not be a number, nor the noise additive: the cells may partition any set, and
    f_v is the density of the output, given the query's value v, with respect to any measure. Two
    things are known: intervals for the probabilities of the cells, and a bound on the oscillation
    of the log-density in each,

    .. math:: d(v, c) \ge \sup_{y \in c} (\log f_v(y) - g(y)) - \inf_{y \in c} (\log f_v(y) - g(y)),

    with one function g for all v: 0, or a common part of the log-densities. The position of an
    output within its cell leaks at most the mean of min(d^2 / 8, log|A|)
    (:doc:`/theory/upper_bounds`, "Real outputs").

    Parameters
    ----------
    masses : ChannelSet, shape (values, cells)
        Lower and upper bounds on the cells' probabilities, for each value of the query. Its inputs
        are the query's values. The bounds are not verified: the certificate contains them as given.
    oscillation : array_like, shape (values, cells)
        d(v, c), at least 0; inf in cells without a bound (unbounded ones, for example).

    Raises
    ------
    ValidationError
        A shape other than that of `masses`, or a negative number.

    Notes
    -----
    The audit cannot refine the given cells. If d is large or the intervals are wide, the gap stays
    wide and the status is BRACKETED. Halving the cells divides the leakage of the position within a
    cell by four.

    Examples
    --------
    Cauchy noise on a bit. Its log-density rises up to the value and falls from there on, and the
    values are edges: d is the difference between the ends of a cell. In the two unbounded cells g
    is the log-density of the value 0, and d that of the likelihood ratio:

    >>> import numpy as np
    >>> from scipy.stats import cauchy
    >>> from cvxleak import Mechanism, record_leakage
    >>> from cvxleak.model import BoundedDensity, ChannelSet
    >>> from cvxleak.queries import count
    >>> inner = np.arange(-800, 821) / 20
    >>> edges = np.concatenate([[-np.inf], inner, [np.inf]])
    >>> p = np.diff([cauchy.cdf(edges - v) for v in range(2)])
    >>> far = [abs(cauchy.logpdf(40) - cauchy.logpdf(41))]
    >>> d = [
    ...     np.concatenate([far, abs(np.diff(cauchy.logpdf(inner - v))), far]) for v in range(2)
    ... ]
    >>> masses = ChannelSet(np.maximum(p - 1e-14, 0), p + 1e-14)
    >>> output = BoundedDensity(masses, np.array(d) + 1e-14)
    >>> print(record_leakage(Mechanism(count(1), output), 0.0, tol=1e-2))
    record leakage: 0.0542... to 0.0543... nats (CERTIFIED)
    """

    kind = "bounded-density"
    coarser = "noise.masses"
    masses: ChannelSet
    oscillation: Array

    def __init__(self, masses: ChannelSet, oscillation: ArrayLike) -> None:
        known = instance(masses, ChannelSet, "masses")
        moves = frozen_array(oscillation, "oscillation", 2)
        if moves.shape != known.shape:
            raise ValidationError(
                f"oscillation: found shape {moves.shape}; masses has {known.shape}"
            )
        if (moves < 0).any():
            v, c = (int(i) for i in np.argwhere(moves < 0)[0])
            raise ValidationError(
                f"oscillation: found {float(moves[v, c])!r} at index {(v, c)}; none is below 0"
            )
        object.__setattr__(self, "masses", known)
        object.__setattr__(self, "oscillation", moves)

    @property
    def described(self) -> str:
        """What the output is, in words."""
        return "a number of which the density is known within bounds"

    def standard(self, values: Sequence[Hashable]) -> BoundedDensity:
        """Return the output for these values, in this order.

        Raises
        ------
        ValidationError
            A value that `masses` lacks.
        """
        rows = self.masses.select(values, name="masses")
        places = [self.masses.inputs.index(value) for value in rows.inputs]
        return BoundedDensity(rows, self.oscillation[places])

    def of_query(self, values: Sequence[Hashable]) -> BoundedDensity:
        """Return the output for these values, in this order."""
        return self.standard(values)

    def cells(self, excess: float, most: int) -> Cells:
        """Return the cells, which are given."""
        return Cells(self.masses.center.matrix)

    def to_dict(self) -> dict[str, Any]:
        """Return kind, masses and oscillation, ready for JSON; inf as text."""
        moves = [[d if np.isfinite(d) else "inf" for d in row] for row in self.oscillation.tolist()]
        return {"kind": self.kind, "masses": self.masses.to_dict(), "oscillation": to_json(moves)}

    @classmethod
    def _read(cls, data: Mapping[str, Any]) -> BoundedDensity:
        check_keys(data, {"kind", "masses", "oscillation"})
        return cls(ChannelSet.from_dict(data["masses"]), data["oscillation"])

    def __repr__(self) -> str:
        values, cells = self.masses.shape
        return f"BoundedDensity({counted(values, 'value')}, {counted(cells, 'cell')})"
