"""`OwnGain`: a user-defined gain with checked results; and which gains are allowed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import CvxleakError, ValidationError
from cvxleak.core.validation import Array, plain_array, short, whole_number
from cvxleak.core.value import Value
from cvxleak.core.wording import counted
from cvxleak.model.gain import (
    KINDS,
    Gain,
    GainMatrix,
    as_measures,
    as_shares,
    gain_entries,
    gain_instance,
)

__all__ = ["OwnGain", "as_gain", "checked_gain", "provable_gain"]


@dataclass(frozen=True, eq=False, repr=False)
class OwnGain(Gain, Value):
    """A user-defined gain, wrapped: extended to measures, with its results checked.

    The user's gain is only evaluated at distributions, an array of shape (n, k). Its values are
    extended to measures by G(c r) = c G(r), and a subgradient g at a distribution p to the tangent
    g + (G(p) - g . p), which is the same function on distributions and touches G at all multiples
    of p.

    Parameters
    ----------
    gain : Gain

    Raises
    ------
    ValidationError
        From `value`, `tangent` and `rows`: the gain raises an error, answers with another shape, or
        with numbers that are not finite.

    Examples
    --------
    >>> from cvxleak.model import Gain
    >>> from cvxleak.model.own_gain import OwnGain
    >>> class Brier(Gain):
    ...     def value(self, laws):
    ...         return (laws**2).sum(axis=-1)
    ...
    ...     def tangent(self, laws):
    ...         return 2 * laws
    >>> OwnGain(Brier()).value([2, 2]).item(), OwnGain(Brier()).tangent([0.5, 0.5])
    (2.0, array([0.5, 0.5]))
    """

    gain: Gain

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.gain.name)
        object.__setattr__(self, "unit", self.gain.unit)

    def value(self, laws: ArrayLike) -> Array:
        """Return G of the distributions or measures along the last axis."""
        measures = as_measures(laws)
        values = self._values(_flat(measures))
        return values.reshape(measures.shape[:-1]) * measures.sum(axis=-1)

    def tangent(self, laws: ArrayLike) -> Array:
        """Return tangents (see `Gain.tangent`)."""
        measures = as_measures(laws)
        flat = _flat(measures)
        slopes = self._answer("tangent", flat, flat.shape)
        unbounded = ~np.isfinite(slopes) & ~((slopes == -np.inf) & (flat == 0))
        self._refuse(unbounded.any(axis=-1), "tangent", flat, slopes)
        touch = self._values(flat) - (np.where(flat > 0, slopes, 0) * flat).sum(axis=-1)
        return (slopes + touch[:, None]).reshape(measures.shape)

    def rows(self, k: int) -> Array | None:
        """Return the rows of the gain (see `Gain.rows`)."""
        rows = self._asked("rows", k, f"for {counted(k, 'value')}")
        if rows is None:
            return None
        table = GainMatrix(gain_entries(rows, f"gain.rows({k})"))
        table.fits(k, f"gain.rows({k})")
        return table.table

    def fits(self, k: int, name: str = "gain") -> None:
        """Check that this is a gain for secrets of k values (see `Gain.fits`)."""
        self.gain.fits(k, name)

    def __repr__(self) -> str:
        return repr(self.gain)

    def _values(self, laws: Array) -> Array:
        values = self._answer("value", laws, laws.shape[:1])
        self._refuse(~np.isfinite(values), "value", laws, values)
        return values

    def _answer(self, what: str, laws: Array, shape: tuple[int, ...]) -> Array:
        found = self._asked(what, laws.copy(), f"for distributions of shape {laws.shape}")
        array = plain_array(found, f"gain.{what}")
        if array.dtype.kind not in "biuf" or array.shape != shape:
            kind = type(found).__name__ if array.dtype.kind not in "biuf" else "an array"
            raise ValidationError(
                f"gain: found {short(self.gain)}, whose {what} for distributions of shape "
                f"{laws.shape} is {kind} of shape {array.shape}; numbers of shape {shape} are "
                "needed, "
                + (
                    "one for each distribution"
                    if what == "value"
                    else "a slope for each probability"
                )
            )
        return array.astype(float)

    def _asked(self, what: str, argument: Any, said: str) -> Any:
        try:
            return getattr(self.gain, what)(argument)
        except CvxleakError:
            raise
        except Exception as error:
            raise ValidationError(
                f"gain: found {short(self.gain)}, whose {what} fails {said}: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _refuse(self, wrong: Any, what: str, laws: Array, found: Array) -> None:
        if wrong.any():
            first = int(np.argmax(wrong))
            raise ValidationError(
                f"gain: found {short(self.gain)}, whose {what} at the distribution "
                f"{short(laws[first].round(6).tolist())} is {short(found[first].tolist())}; it has "
                "to be finite"
            )


def as_gain(gain: Gain | ArrayLike, k: int, name: str = "gain") -> Gain:
    """Return `gain` as a `Gain` for secrets of k values; an array is a `GainMatrix`.

    A gain of your own is returned so that its answers are checked, and extended to measures.

    Raises
    ------
    ValidationError
        Neither, or a gain for another number of values.

    Examples
    --------
    >>> from cvxleak.model import as_gain
    >>> as_gain([[1, 0], [0, 2]], 2)
    GainMatrix(2 actions [0, 1] on 2 values)
    """
    size = whole_number(k, "k", 1)
    if isinstance(gain, (Gain, str)):
        made = gain_instance(gain, name)
    else:
        made = GainMatrix(gain_entries(gain, name))
    made.fits(size, name)
    return made if type(made) in (*KINDS.values(), OwnGain) else OwnGain(made)


def checked_gain(gain: Gain | ArrayLike, k: int, name: str = "gain") -> Gain:
    """Return a gain for secrets of k values; one of the user's own looks convex, as an `OwnGain`.

    Raises
    ------
    ValidationError
        A gain of your own that is above a chord, or below one of its tangents, at random
        distributions, or whose values there are not those of its rows; or that gives no finite
        numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.model import Gain
    >>> from cvxleak.model.own_gain import checked_gain
    >>> class Doubt(Gain):
    ...     def value(self, laws):
    ...         return np.min(laws, axis=-1)
    ...
    ...     def tangent(self, laws):
    ...         return np.zeros_like(laws)
    >>> checked_gain(Doubt(), 2)
    Traceback (most recent call last):
    cvxleak.core.errors.ValidationError: gain: found Doubt(), which is not convex: ...
    """
    own = as_gain(gain, k, name)
    if not isinstance(own, OwnGain):
        return own
    rng = np.random.default_rng(0)
    laws = np.vstack([np.eye(k), rng.dirichlet(np.full(k, 0.5), size=CHORDS)])
    ends = laws[rng.integers(len(laws), size=(2, CHORDS))]
    middles = ends.mean(axis=0)
    heights, values = own.value(ends), own.value(middles)
    room = SAME * (1 + np.abs(heights).max())
    above = values - heights.mean(axis=0)
    worst = int(above.argmax())
    if above[worst] > room:
        p, q = (end.round(6).tolist() for end in ends[:, worst])
        raise ValidationError(
            f"{name}: found {short(gain)}, which is not convex: halfway between the distributions "
            f"{p} and {q} it is {float(values[worst]):.6g}, above the mean "
            f"{float(values[worst] - above[worst]):.6g} of its values there"
        )
    rows = own.rows(k)
    if rows is not None:
        highest = GainMatrix(rows).value(middles)
        worst = int(np.abs(highest - values).argmax())
        if not np.abs(highest - values)[worst] <= room:
            raise ValidationError(
                f"{name}: found {short(gain)}, whose value {float(values[worst]):.6g} at "
                f"{middles[worst].round(6).tolist()} is not the largest of its rows there, "
                f"{float(highest[worst]):.6g}"
            )
        return own
    tangents = own.tangent(middles)
    below = (np.where(ends[0] > 0, tangents, 0) * ends[0]).sum(axis=-1)
    worst = int((below - heights[0]).argmax())
    if not below[worst] - heights[0][worst] <= room:
        p, q = (law[worst].round(6).tolist() for law in (middles, ends[0]))
        raise ValidationError(
            f"{name}: found {short(gain)}, whose tangent at the distribution {p} is "
            f"{below[worst]:.6g} at {q}, above its value {heights[0][worst]:.6g} there; a "
            "subgradient is needed"
        )
    return own


def provable_gain(gain: Gain, *sizes: int, name: str = "gain") -> Gain:
    """Return a gain for secrets of so many values that a certificate can hold.

    One of your own that is the maximum of few linear functions is a `GainMatrix` of its `rows`.

    Raises
    ------
    ValidationError
        A gain of your own without rows, or with rows for several numbers of values, or one that
        `checked_gain` refuses.

    Examples
    --------
    >>> from cvxleak.model import Guess
    >>> from cvxleak.model.own_gain import provable_gain
    >>> provable_gain(Guess(), 2)
    Guess()
    """
    checked, *_ = [checked_gain(gain, k, name) for k in sizes]
    if not isinstance(checked, OwnGain):
        return checked
    if len(sizes) > 1:
        raise ValidationError(
            f"{name}: found the user-defined {short(gain)} for secrets of {list(sizes)} values; "
            "its rows depend on the number of values, so name one record"
        )
    rows = checked.rows(*sizes)
    if rows is None:
        raise ValidationError(
            f"{name}: found {short(gain)}, which no certificate can hold: it has no `rows`, the "
            "linear functions of which it is the maximum; those of a GainMatrix near to it are "
            "proved"
        )
    return GainMatrix(rows)


CHORDS = 400
"""Random chords that are looked at to see whether a gain is convex."""

SAME = 1e-9
"""Relative difference of two values that counts as rounding."""


def _flat(measures: Array) -> Array:
    """Return the distributions that measures are multiples of, one in each row."""
    return as_shares(measures).reshape(-1, measures.shape[-1])
