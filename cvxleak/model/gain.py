"""Gains: the value of a belief about a secret to an adversary, and so the leakage of an output.

A gain is a convex function G of the distribution rho of a secret: the probability of the best
guess, the expected payoff of the best action, or minus the entropy. An output y has probability s_y
and posterior rho_y. Three forms (`Form`) measure how much the outputs help:

- "posterior": sum_y s_y G(rho_y), the expected gain after the output is seen;
- "rise": sum_y s_y G(rho_y) - G(prior), the increase due to the output, which is never negative
  because G is convex (for Shannon's gain it is the mutual information);
- "factor": sum_y s_y G(rho_y) / G(prior), the relative increase; only if G(prior) > 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from inspect import signature
from itertools import combinations
from math import comb, inf
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import to_json
from cvxleak.core.validation import (
    Array,
    frozen_array,
    instance,
    label_tuple,
    one_of,
    plain_array,
    real_number,
    short,
    whole_number,
)
from cvxleak.core.value import Value, preview
from cvxleak.core.wording import counted

__all__ = [
    "FORMS",
    "Arimoto",
    "Form",
    "Gain",
    "GainMatrix",
    "Gini",
    "Guess",
    "GuessInTries",
    "Shannon",
    "as_measures",
    "as_shares",
    "gain_entries",
    "gain_from_dict",
    "gain_instance",
]

Form = Literal["posterior", "rise", "factor"]
"""How a leakage is told: see the head of `cvxleak.model.gain`."""

FORMS: tuple[Form, ...] = get_args(Form)

MOST_ROWS = 1000
"""Most sets of guesses that are listed one by one."""


class Gain(ABC):
    """A convex function G of a distribution on k values, extended to measures by G(c r) = c G(r).

    With this extension the posterior gain is the sum of G(p(.) q(y|.)) over the outputs y, without
    dividing by the probability of an output.

    To define a gain, derive from this class and write `value` and `tangent`. They take arrays of
    distributions, shape (n, k), and return shapes (n,) and (n, k); the extension to measures is
    done for you. Whether G is convex, and no tangent is above it, is tested for random
    distributions and otherwise assumed. No checker can verify a Python function, so an audit needs
    a G that is the maximum of a few linear functions: write `rows`, too. The audit is then that of
    the `GainMatrix` of these rows.

    Attributes
    ----------
    name : str
        Its name in tables and messages.
    unit : str
        "probability", "nats" or "gain".

    Examples
    --------
    How well a probabilistic forecast of the secret scores by Brier's rule, up to a constant:

    >>> from cvxleak.model import Gain
    >>> class Brier(Gain):
    ...     name = "Brier score"
    ...
    ...     def value(self, laws):
    ...         return (laws**2).sum(axis=-1)
    ...
    ...     def tangent(self, laws):
    ...         return 2 * laws
    >>> from cvxleak.measures import gain_leakage
    >>> gain_leakage([[0.75, 0.25], [0.25, 0.75]], [0.5, 0.5], Brier())
    0.125
    """

    name: str = "gain"
    unit: str = "gain"

    @abstractmethod
    def value(self, laws: ArrayLike) -> Array:
        """Return G of the distributions (or measures >= 0) along the last axis."""

    @abstractmethod
    def tangent(self, laws: ArrayLike) -> Array:
        """Return nu, shaped like `laws`: G(r) >= nu . r for all r >= 0, with equality at `laws`.

        Equality and inequality hold up to rounding; proofs do not rely on them. For a user-defined
        gain any subgradient of G at the distributions will do.
        """

    def rows(self, k: int) -> Array | None:
        """Return the g_w, shape (w, k), with G(r) = max_w g_w . r, or None if G has no such form.

        Also None if there are more than a thousand.
        """
        return None

    def fits(self, k: int, name: str = "gain") -> None:
        """Check that this is a gain for secrets of k values.

        Raises
        ------
        ValidationError
            It is a gain for another number of values.
        """
        whole_number(k, "k", 1)

    def to_dict(self) -> dict[str, Any]:
        """Return the gain as a certificate holds it.

        Raises
        ------
        ValidationError
            A user-defined gain: a certificate cannot contain it.
        """
        raise ValidationError(
            f"gain: found {short(self)}, which no certificate can hold; the gains of "
            "cvxleak.model are proved, a GainMatrix of the actions of one's own among them"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


@dataclass(frozen=True, eq=False, repr=False)
class Shannon(Gain, Value):
    """Minus the entropy: G(rho) = sum_a rho_a log rho_a. Its rise is the mutual information.

    A tangent is log rho, which is -inf at values that rho excludes.

    Examples
    --------
    >>> from cvxleak.model import Shannon
    >>> Shannon().value([0.5, 0.5]).round(6).item()
    -0.693147
    """

    unit = "nats"
    name = "negative entropy"

    def value(self, laws: ArrayLike) -> Array:
        """Return sum_a r_a log(r_a / sum r), in nats."""
        measures = as_measures(laws)
        with np.errstate(divide="ignore"):
            logs = np.log(as_shares(measures))
        return np.where(measures > 0, measures * np.where(measures > 0, logs, 0), 0).sum(axis=-1)

    def tangent(self, laws: ArrayLike) -> Array:
        """Return log rho (see `Gain.tangent`)."""
        with np.errstate(divide="ignore"):
            return np.log(as_shares(as_measures(laws)))

    def to_dict(self) -> dict[str, Any]:
        """Return the gain as a certificate holds it."""
        return {"kind": "shannon"}


@dataclass(frozen=True, eq=False, repr=False)
class Guess(Gain, Value):
    """The probability that the best single guess is right: G(rho) = max_a rho_a.

    Examples
    --------
    >>> from cvxleak.model import Guess
    >>> Guess().value([0.2, 0.5, 0.3]).item()
    0.5
    """

    unit = "probability"
    name = "chance of guessing correctly"

    def value(self, laws: ArrayLike) -> Array:
        """Return max_a r_a."""
        return as_measures(laws).max(axis=-1)

    def tangent(self, laws: ArrayLike) -> Array:
        """Return the indicator of the best guess (see `Gain.tangent`)."""
        return _likeliest(as_measures(laws), 1)

    def rows(self, k: int) -> Array | None:
        """Return the identity matrix: a guess per value."""
        return np.eye(k)

    def to_dict(self) -> dict[str, Any]:
        """Return the gain as a certificate holds it."""
        return {"kind": "guess"}


@dataclass(frozen=True, eq=False, repr=False)
class GuessInTries(Gain, Value):
    """The probability of a correct guess within a number of tries: the sum of the largest rho_a.

    Parameters
    ----------
    tries : int
        Number of guesses, at least 1; from k on, all values are covered.

    Raises
    ------
    ValidationError
        `tries` is not a positive integer.

    Examples
    --------
    >>> from cvxleak.model import GuessInTries
    >>> GuessInTries(2).value([0.2, 0.5, 0.3]).item()
    0.8
    """

    tries: int

    unit = "probability"

    def __post_init__(self) -> None:
        object.__setattr__(self, "tries", whole_number(self.tries, "tries", 1))
        tries = "1 try" if self.tries == 1 else f"{self.tries} tries"
        object.__setattr__(self, "name", f"chance of guessing correctly within {tries}")

    def value(self, laws: ArrayLike) -> Array:
        """Return the sum of the largest r_a, as many as there are tries."""
        measures = as_measures(laws)
        largest = np.sort(measures, axis=-1)[..., -min(self.tries, measures.shape[-1]) :]
        return largest.sum(axis=-1)

    def tangent(self, laws: ArrayLike) -> Array:
        """Return the indicator of the values that are tried (see `Gain.tangent`)."""
        return _likeliest(as_measures(laws), self.tries)

    def rows(self, k: int) -> Array | None:
        """Return the indicators of all sets of tries, or None if they are more than a thousand."""
        tries = min(self.tries, k)
        if comb(k, tries) > MOST_ROWS:
            return None
        return np.array(
            [np.isin(range(k), tried) for tried in combinations(range(k), tries)], float
        )

    def __repr__(self) -> str:
        return f"GuessInTries({self.tries})"

    def to_dict(self) -> dict[str, Any]:
        """Return the gain as a certificate holds it."""
        return {"kind": "tries", "tries": self.tries}


@dataclass(frozen=True, eq=False, repr=False)
class GainMatrix(Gain, Value):
    """The expected payoff of the best action, the g-vulnerability max_w sum_a rho_a g(w, a).

    Parameters
    ----------
    table : array_like, shape (actions, k)
        g(w, a), the payoff of action w if the secret is a: finite, negative for a loss. Fractions
        and numbers given as text are kept exactly, as in a `Channel`.
    actions : iterable of hashable, optional
        Distinct names of the actions; 0, 1, ... if left out.

    Raises
    ------
    ValidationError
        No action, entries that are not finite numbers, or names that do not match the rows.

    Notes
    -----
    Alvim, Chatzikokolakis, Palamidessi and Smith, "Measuring information leakage using generalized
    gain functions", CSF 2012.

    Examples
    --------
    A guess that may be wrong at a cost, or be left out:

    >>> from cvxleak.model import GainMatrix
    >>> careful = GainMatrix([[1, -2], [-2, 1], [0, 0]], actions=["no", "yes", "none"])
    >>> careful
    GainMatrix(3 actions ['no', 'yes', 'none'] on 2 values)
    >>> careful.value([[0.5, 0.5], [0.25, 0.75]])
    array([0.  , 0.25])
    """

    table: Array
    actions: tuple[Hashable, ...]

    def __init__(self, table: ArrayLike, actions: Iterable[Hashable] | None = None) -> None:
        entries = gain_entries(table, "table")
        object.__setattr__(self, "table", entries)
        object.__setattr__(self, "actions", label_tuple(actions, len(entries), "actions"))

    def value(self, laws: ArrayLike) -> Array:
        """Return max_w g_w . r."""
        return self._earned(laws).max(axis=-1)

    def tangent(self, laws: ArrayLike) -> Array:
        """Return the row of the best action (see `Gain.tangent`)."""
        return np.asarray(self.table)[self._earned(laws).argmax(axis=-1)]

    def rows(self, k: int) -> Array | None:
        """Return the table."""
        self.fits(k)
        return self.table

    def fits(self, k: int, name: str = "gain") -> None:
        """Check that the table has k columns (see `Gain.fits`)."""
        if self.table.shape[1] != k:
            raise ValidationError(
                f"{name}: found shape {self.table.shape}; a row per action and {k} "
                "columns, one for each value of the secret, are needed"
            )

    def _earned(self, laws: ArrayLike) -> Array:
        measures = as_measures(laws)
        self.fits(measures.shape[-1])
        return measures @ np.asarray(self.table).T

    def __repr__(self) -> str:
        return (
            f"GainMatrix({len(self.actions)} actions {preview(self.actions)} "
            f"on {counted(self.table.shape[1], 'value')})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the gain as a certificate holds it."""
        return {"kind": "matrix", "table": to_json(self.table)}


@dataclass(frozen=True, eq=False, repr=False)
class Gini(Gain, Value):
    """The probability that a guess drawn from rho itself is right: G(rho) = sum_a rho_a^2.

    It equals 1 minus Gini's impurity (the quadratic entropy) 1 - sum_a rho_a^2, so that its rise is
    the decrease of the impurity.

    Examples
    --------
    >>> from cvxleak.model import Gini
    >>> Gini().value([0.5, 0.25, 0.25]).item()
    0.375
    """

    unit = "probability"
    name = "chance that a guess drawn from the belief is correct"

    def value(self, laws: ArrayLike) -> Array:
        """Return sum_a r_a^2 / sum r."""
        measures = as_measures(laws)
        return (measures * as_shares(measures)).sum(axis=-1)

    def tangent(self, laws: ArrayLike) -> Array:
        """Return 2 rho - sum_a rho_a^2 (see `Gain.tangent`)."""
        shares = as_shares(as_measures(laws))
        return 2 * shares - (shares**2).sum(axis=-1, keepdims=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the gain as a certificate holds it."""
        return {"kind": "gini"}


@dataclass(frozen=True, eq=False, repr=False)
class Arimoto(Gain, Value):
    """The norm of order alpha: G(rho) = (sum_a rho_a^alpha)^(1/alpha), max_a rho_a at infinity.

    Arimoto's information of order alpha is alpha / (alpha - 1) times the logarithm of the factor.

    Parameters
    ----------
    alpha : float
        The order, above 1; inf is allowed.

    Raises
    ------
    ValidationError
        An order of 1 or less, for which the norm is not convex on the distributions.

    Notes
    -----
    S. Arimoto, "Information measures and capacity of order alpha for discrete memoryless channels",
    Topics in Information Theory, 1977.

    Examples
    --------
    >>> from cvxleak.model import Arimoto
    >>> Arimoto(2).value([0.6, 0.8]).item()
    1.0
    """

    alpha: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "alpha", real_number(self.alpha, "alpha", 1, open_low=True))
        object.__setattr__(self, "name", f"norm of order {self.alpha:g}")

    def value(self, laws: ArrayLike) -> Array:
        """Return the norm of order alpha."""
        measures = as_measures(laws)
        if self.alpha == inf:
            return Guess().value(measures)
        largest = measures.max(axis=-1, keepdims=True)
        scaled = measures / np.where(largest > 0, largest, 1)
        return largest[..., 0] * (scaled**self.alpha).sum(axis=-1) ** (1 / self.alpha)

    def tangent(self, laws: ArrayLike) -> Array:
        """Return (rho_a / G(rho))^(alpha - 1) (see `Gain.tangent`)."""
        shares = as_shares(as_measures(laws))
        if self.alpha == inf:
            return Guess().tangent(shares)
        return (shares / self.value(shares)[..., None]) ** (self.alpha - 1)

    def rows(self, k: int) -> Array | None:
        """Return those of `Guess` at infinity, else None."""
        return Guess().rows(k) if self.alpha == inf else None

    def __repr__(self) -> str:
        return f"Arimoto({self.alpha!r})"

    def to_dict(self) -> dict[str, Any]:
        """Return the gain as a certificate holds it."""
        alpha = "infinity" if self.alpha == inf else to_json(self.alpha)
        return {"kind": "arimoto", "alpha": alpha}


def gain_from_dict(data: Mapping[str, Any]) -> Gain:
    """Return the gain that `Gain.to_dict` wrote.

    Raises
    ------
    ValidationError
        Another kind, or parts that do not belong to it.

    Examples
    --------
    >>> from cvxleak.model import GuessInTries, gain_from_dict
    >>> gain_from_dict(GuessInTries(2).to_dict())
    GuessInTries(2)
    """
    parts = dict(instance(data, Mapping, "gain"))
    kind = one_of(parts.pop("kind", None), KINDS, "gain.kind")
    if kind == "arimoto" and parts.get("alpha") == "infinity":
        parts["alpha"] = inf
    try:
        signature(KINDS[kind]).bind(**parts)
        return KINDS[kind](**parts)
    except TypeError as error:
        raise ValidationError(f"gain: found {short(data)}; {error}") from error


KINDS: dict[str, type[Gain]] = {
    "shannon": Shannon,
    "guess": Guess,
    "tries": GuessInTries,
    "matrix": GainMatrix,
    "gini": Gini,
    "arimoto": Arimoto,
}


def gain_instance(value: Any, name: str = "gain") -> Gain:
    """Return a gain, or say which there are."""
    if not isinstance(value, Gain):
        listed = ", ".join(kind.__name__ for kind in KINDS.values())
        raise ValidationError(
            f"{name}: expected a Gain, found {short(value)}; cvxleak.model has {listed}"
        )
    return value


def gain_entries(table: Any, name: str) -> Array:
    """Return a table of gains as a read-only array, or say what is wrong with it."""
    array = frozen_array(table, name, 2)
    if array.size == 0:
        raise ValidationError(f"{name}: found shape {array.shape}; it must not be empty")
    if not np.isfinite(array).all():
        raise ValidationError(
            f"{name}: found entries from {float(array.min())!r} to {float(array.max())!r}; "
            "gains are finite"
        )
    return array


def as_measures(laws: ArrayLike) -> Array:
    """Return distributions or measures as an array of floats with a nonempty last axis."""
    array = plain_array(laws, "laws")
    if array.dtype.kind not in "biuf" or array.ndim == 0 or array.shape[-1] == 0:
        raise ValidationError(
            f"laws: found an array of {array.dtype} with shape {array.shape}; numbers >= 0 with a "
            "last axis of the values of the secret are needed"
        )
    return array.astype(float, copy=False)


def as_shares(measures: Array) -> Array:
    """Return measures divided by their masses; the uniform distribution for the zero measure."""
    mass = measures.sum(axis=-1, keepdims=True)
    uniform = np.full(measures.shape, 1 / measures.shape[-1])
    return np.divide(measures, mass, out=uniform, where=mass > 0)


def _likeliest(measures: Array, tries: int) -> Array:
    """Return the indicator of the largest entries along the last axis, the first of equal ones."""
    best = np.argsort(-measures, axis=-1, kind="stable")[..., :tries]
    chosen = np.zeros(measures.shape)
    np.put_along_axis(chosen, best, 1.0, axis=-1)
    return chosen
