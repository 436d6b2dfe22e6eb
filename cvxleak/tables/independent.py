"""`table_leakage`: the leakage of a table about one of many independent people."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.audit import product_leakage, record_leakage
from cvxleak.audit.cases import known_laws
from cvxleak.core.clock import Clock
from cvxleak.core.errors import SolveInterrupted, ValidationError
from cvxleak.core.validation import Array, instance, short
from cvxleak.core.value import Value, preview
from cvxleak.exact import balls
from cvxleak.model import AdditiveQuery, Mechanism, Prior, RecordSpace
from cvxleak.problem import Bound, Stopped
from cvxleak.queries import count
from cvxleak.tables.arguments import Cell
from cvxleak.tables.cases import representative, start_and_period
from cvxleak.tables.given import Given, largest
from cvxleak.tables.losses import Noise
from cvxleak.tables.noise import CountNoise
from cvxleak.tables.products import Products, others_of
from cvxleak.tables.release import TableRelease

__all__ = ["TableAdversary", "TableLeakage", "table_leakage"]

NUMBER, WHOLE = "leakage of a number", "leakage of the table"
"""The names of the bounds."""

TOLERANCE = 1e-3
"""Relative gap up to which a bound is CERTIFIED."""

SMALL = 100
"""Most vectors of counts of a table that is written out."""

OTHERS = 1 << 16
"""Most classes of tables of the others that are gone through."""

ENTRIES, WORK = 1 << 14, 1 << 24
"""Most probabilities of the whole table given one table of the others, and given all of them."""

OFF = 2.0**-50
"""Largest error of the probability that a person is counted, as a float."""


@dataclass(frozen=True, eq=False)
class TableAdversary(Value):
    """An adversary who knows all others' cells and has a prior on the cell of one person.

    Attributes
    ----------
    others : tuple of int
        The counts of the other people, in the order of `Table.cells`.
    law : Prior
        The prior of the person's cell, on `Table.alphabet`.

    Examples
    --------
    >>> from cvxleak.tables import RandomRounding, Table, TableRelease, table_leakage
    >>> release = TableRelease(Table({"answer": ["no", "yes"]}, people=10), RandomRounding(3))
    >>> table_leakage(release).whole.witness.others
    (9, 0)
    """

    others: tuple[int, ...]
    law: Prior


@dataclass(frozen=True, eq=False, repr=False)
class TableLeakage(Value):
    """The leakage of a table about one of many independent people; made by `table_leakage`.

    Attributes
    ----------
    release : TableRelease
    laws : tuple, optional
    least_probability : float, optional

    Examples
    --------
    >>> from cvxleak.tables import RandomRounding, Table, TableRelease, table_leakage
    >>> table = Table({"sex": ["f", "m"], "answer": ["no", "yes"]}, people=1_000_000)
    >>> found = table_leakage(TableRelease(table, RandomRounding(3)))
    >>> print(found.number(("f", "no")))
    leakage of a number: 0.13815... to 0.13815... nats (CERTIFIED)
    >>> print(found.number(("total", "total")))
    leakage of a number: 0 to 0 nats (CERTIFIED)
    """

    release: TableRelease
    laws: Any = None
    least_probability: float | None = None

    @cached_property
    def _bounds(self) -> dict[Any, Bound]:
        return {}

    @property
    def _known(self) -> dict[str, Any]:
        """What is known of the distributions, as `product_leakage` takes it."""
        given = {"laws": self.laws, "least_probability": self.least_probability}
        return {name: value for name, value in given.items() if value is not None}

    def number(self, label: Cell | Hashable) -> Bound:
        """Bound the leakage of one published number about one person's cell.

        Parameters
        ----------
        label : tuple
            One of `TableRelease.numbers`.

        Returns
        -------
        Bound
            In nats. If nothing is known about the distributions, `witness` is a `TableAdversary`;
            otherwise it is the

        Raises
        ------
        ValidationError
            No number has this label, or `product_leakage` refuses its count.
        SolveInterrupted
            Ctrl-C; its ``bound`` is from 0 to log 2. The bounds of other numbers are kept.
        """
        numbers = self.release.numbers
        found = tuple(label) if isinstance(label, (tuple, list)) else (label,)
        if found not in numbers:
            raise ValidationError(
                f"label: found {short(label)}; the numbers are {preview(numbers)}"
            )
        try:
            return self._number(numbers.index(found))
        except KeyboardInterrupt as error:
            raise SolveInterrupted(_trivial(NUMBER, 2)) from error

    @property
    def numbers(self) -> dict[Cell, Bound]:
        """The leakage of each published number on its own, by label."""
        return {label: self.number(label) for label in self.release.numbers}

    def _number(self, j: int) -> Bound:
        _, noise = self.release.noise[j]
        places, k = self.release.sums[j], len(self.release.table.alphabet)
        if len(places) == k:
            return Bound.proved(NUMBER, 0.0, 0.0, tol=TOLERANCE, stats={"seconds": 0.0})
        if not self._known:
            key: Any = id(noise)
            if key not in self._bounds:
                self._bounds[key] = self._others_known(noise)
            bound = self._bounds[key]
            return _named(bound, NUMBER, self._witness(places, bound.witness))
        people, off = self._counted(places)
        key = id(noise), tuple(people)
        if key not in self._bounds:
            self._bounds[key] = self._mixed(j, noise, people, off)
        return self._bounds[key]

    def _others_known(self, noise: Noise) -> Bound:
        """Return the capacity from the bit that a person is counted, at the others' worst count.

        Its witness is that count, and the probability that the person is counted.
        """
        counts = others_of(noise, self.release.table.people)
        if isinstance(noise, CountNoise):
            given = [Given([noise], [value], np.array([[0, 1]])) for value in counts]
            bound, place = largest(given, range(2))
            return _named(bound, "", (counts[place], float(bound.witness.probabilities[1])))
        best, upper = None, 0.0
        for value in counts:
            person = AdditiveQuery(RecordSpace.binary(1), [(0, 1)], lambda one, v=value: v + one)
            bound = record_leakage(Mechanism(person, noise), 0.0)
            upper = max(upper, bound.upper)
            if best is None or bound.lower > best[0].lower:
                best = bound, (value, float(bound.witness.expand().probabilities[1]))
        assert best is not None
        return _named(best[0], "", best[1], upper)

    def _witness(self, places: Sequence[int], known: tuple[int, float]) -> TableAdversary:
        """Return an adversary who knows how many others are in the cells; the rest is elsewhere."""
        table, (value, share) = self.release.table, known
        cells = len(table.cells)
        other = next(c for c in reversed(range(len(table.alphabet))) if c not in places)
        others, law = [0] * (cells + 1), [0.0] * len(table.alphabet)
        others[places[0]] = value
        others[other] += table.people - 1 - value
        law[places[0]], law[other] = share, 1 - share
        return TableAdversary(tuple(others[:cells]), Prior(law, table.alphabet))

    def _counted(self, places: Sequence[int]) -> tuple[Any, float]:
        """Return the distributions of each person's bit, and the probability of a wrong one.

        The bit says whether the person is counted. The distributions are vertices, for all people
        or for each; if only the others' are known, the first person is the one attacked.
        """
        k = len(self.release.table.alphabet)
        if self.least_probability is not None:
            low = self.least_probability * len(places)
            high = 1 - self.least_probability * (k - len(places))
            others = _interval([low, high])
            return [((1.0, 0.0), (0.0, 1.0))] + [others] * (self.release.table.people - 1), OFF
        each = [self.laws] if not isinstance(self.laws[0][0], tuple) else self.laws
        known = {
            one: _interval([math.fsum(law[c] for c in places) / math.fsum(law) for law in one])
            for one in set(each)
        }
        found = [known[one] for one in each]
        return (found[0] if each[0] is self.laws else found), OFF

    def _mixed(self, j: int, noise: Noise, people: Any, off: float) -> Bound:
        """Return the leakage of a number if the distributions are known to be in polytopes."""
        label, n = self.release.numbers[j], self.release.table.people
        if not isinstance(noise, CountNoise):
            raise ValidationError(
                f"release: the noise of {label!r} is {noise!r}; with laws or least_probability, "
                "numbers with RandomRounding or a PerturbationTable are audited"
            )
        try:
            mechanism = Mechanism(count(n), noise.channel(n))
            attacked = 0 if self.least_probability is not None else None
            bound = product_leakage(mechanism, records=attacked, laws=people)
        except ValidationError as error:
            raise ValidationError(f"release: the number {label!r}: {error}") from error
        # Except with probability epsilon all people's bits are as computed (theory/tables).
        epsilon = n * off
        missed = 2 * epsilon * (1 - math.log(epsilon) + math.log(2))
        lower, upper = max(bound.lower - missed, 0.0), min(bound.upper + missed, math.log(2))
        return Bound.proved(
            NUMBER,
            lower,
            upper,
            tol=TOLERANCE,
            witness=bound.witness,
            certificate=bound.certificate,
            stats=bound.stats,
        )

    @cached_property
    def whole(self) -> Bound:
        """The leakage of the whole table about one person's cell, in nats.

        `witness` attains the lower bound. It is a `TableAdversary`, or an `IndependentAdversary` if
        something is known about the distributions. Ctrl-C raises `cvxleak.core.SolveInterrupted`,
        whose ``bound`` is from the number known to tell most, or 0, to log k.
        """
        try:
            return self._written_out() or self._over_others() or self._bracketed()
        except KeyboardInterrupt as error:
            raise SolveInterrupted(self._reached()) from error

    def _reached(self) -> Bound:
        """Return bounds of the whole table, from the numbers whose leakage is known already."""
        trivial = _trivial(WHOLE, len(self.release.table.alphabet))
        noises = [] if self._known else [noise for _, noise in self.release.noise]
        known = [self._number(j) for j, one in enumerate(noises) if id(one) in self._bounds]
        if not known:
            return trivial
        best = max(known, key=lambda bound: bound.lower)
        return Bound.proved(
            WHOLE,
            best.lower,
            trivial.upper,
            tol=TOLERANCE,
            witness=best.witness,
            stats=trivial.stats,
        )

    def _written_out(self) -> Bound | None:
        """Return the leakage of a small mechanism, if distributions are known or keys linked."""
        release, table = self.release, self.release.table
        k = len(table.alphabet)
        vectors = math.comb(table.people + k - 1, k - 1)
        if vectors > SMALL or not (self._known or release.linked):
            return None
        with suppress(ValidationError):  # infinitely many outputs, or keys that link too much
            bound = product_leakage(release.mechanism, **self._known)
            return _named(bound, WHOLE, bound.witness)
        return None

    def _over_others(self) -> Bound | None:
        """Return the largest capacity given the others' counts, if these are few."""
        laws = [noise for _, noise in self.release.noise if isinstance(noise, CountNoise)]
        finite = len(laws) == len(self.release.noise)
        tables = self._tables() if finite and not (self._known or self.release.linked) else None
        if tables is None:
            return None
        values = tables @ self._incidence[:, : tables.shape[1]].T
        for column, noise in zip(values.T, laws, strict=True):
            column[:] = [representative(noise, value, 1) for value in column.tolist()]
        unique, first = np.unique(values, axis=0, return_index=True)
        given = [Given(laws, row, self._incidence) for row in unique.tolist()]
        entries = [one.entries for one in given]
        if max(entries) > ENTRIES or sum(entries) > WORK:
            return None
        bound, place = largest(given, self.release.table.alphabet)
        others = tuple(tables[first[place]].tolist())
        return _named(bound, WHOLE, TableAdversary(others, bound.witness))

    @property
    def _independent(self) -> tuple[list[Noise], Array]:
        """The noise of the numbers that are independent given the others' counts; what they count.

        The keys of the cells are independent; those of the margins are their sums.
        """
        cells, keyed = self.release.table.cells, self.release.keyed
        kept = [
            j for j, (label, _) in enumerate(self.release.noise) if label in cells or j not in keyed
        ]
        return [self.release.noise[j][1] for j in kept], self._incidence[kept]

    @cached_property
    def _incidence(self) -> Array:
        """Which values of a record each published number counts."""
        found = np.zeros((len(self.release.sums), len(self.release.table.alphabet)), dtype=int)
        for row, places in zip(found, self.release.sums, strict=True):
            row[list(places)] = 1
        return found

    def _tables(self) -> Array | None:
        """Return the others' counts, one vector for each class of tables; None if too many.

        A count above start + period may be lowered by a period, which changes no class, with the
        people put outside, or into another cell with as large a count.
        """
        table = self.release.table
        others, cells = table.people - 1, len(table.cells)
        pairs = [start_and_period(noise) for _, noise in self.release.noise]
        most = max(start for start, _ in pairs) + math.lcm(*(period for _, period in pairs))
        some = range(min(most, others) + 1)
        if (1 if table.outside else cells) * len(some) ** (cells - (not table.outside)) > OTHERS:
            return None
        if table.outside:
            found = np.array([*product(some, repeat=cells)])
            return found[found.sum(axis=1) <= others]
        rest = np.array([*product(some, repeat=cells - 1)], dtype=int)
        rest = rest[rest.sum(axis=1) <= others]
        large = others - rest.sum(axis=1)
        return np.concatenate([np.insert(rest, cell, large, axis=1) for cell in range(cells)])

    def _bracketed(self) -> Bound:
        """Return a lower and an upper bound, neither of which has a certificate."""
        clock = Clock()
        bounds = self.numbers.values()
        best = max(bounds, key=lambda bound: bound.lower)
        lower, witness = best.lower, best.witness
        upper = _log_above(len(self.release.table.alphabet))
        laws, counted = self._independent
        separate = len(laws) == len(self.release.noise)
        if not self._known:
            products = Products(self.release.table, laws, counted)
            least, others = products.lower
            if least > lower:
                lower, witness = least, TableAdversary(others, products.law)
            if separate:
                told = math.fsum(bound.upper for bound in bounds) * (1 + 1e-12)
                upper = min(upper, told, products.upper)
        elif separate:
            # The worst others are known ones.
            upper = TableLeakage(self.release).whole.upper
        return Bound.proved(
            WHOLE,
            lower,
            max(lower, upper),
            tol=TOLERANCE,
            witness=witness,
            stats={"seconds": clock.seconds},
        )

    def __repr__(self) -> str:
        known = "".join(f", {name}={short(value)}" for name, value in self._known.items())
        return f"TableLeakage({self.release!r}{known})"


def _interval(chances: Sequence[float]) -> tuple[tuple[float, float], ...]:
    """Return the least and the largest chance of being counted, as distributions."""
    ends = sorted({min(max(p, 0.0), 1.0) for p in (min(chances), max(chances))})
    return tuple((1 - p, p) for p in ends)


def _log_above(values: int) -> float:
    with balls.precision():
        return balls.round_up(balls.number(values).log())


def _trivial(name: str, values: int) -> Bound:
    """Return the bounds of every leakage about one of so many values."""
    stats = {"stopped": Stopped.INTERRUPTED}
    return Bound.proved(name, 0.0, _log_above(values), tol=TOLERANCE, stats=stats)


def _named(bound: Bound, name: str, witness: Any, upper: float | None = None) -> Bound:
    """Return a bound with another name and witness, and perhaps a larger upper bound."""
    return Bound.proved(
        name,
        bound.lower,
        bound.upper if upper is None else upper,
        tol=TOLERANCE,
        witness=witness,
        certificate=bound.certificate,
        stats=bound.stats,
    )


def table_leakage(
    release: TableRelease,
    *,
    laws: Sequence[Any] | ArrayLike | None = None,
    least_probability: float | None = None,
) -> TableLeakage:
    r"""Return the leakage of a table about one person's cell, if people are independent.

    It is the largest I(X_i; Y) over people i and over product priors, where X_i is the cell of
    person i and Y what is published: for each number on its own, and for the whole table.

    A published number counts the people in a set of cells. It depends on a person's cell only
    through the bit that the cell is in the set, so its leakage is that of a count of n binary
    records (`cvxleak.audit.product_leakage`). If nothing is known about the distributions, the
    worst adversary knows all other people, and the leakage of every number is exact for any n.

    Parameters
    ----------
    release : TableRelease
    laws : array_like or sequence of array_like, optional
        Each person's distribution on `Table.alphabet`, including that of person i, is any mixture
        of these: shape (V, k) for all people, or such an array for each.
    least_probability : float, optional
        alpha, from 0 to 1/k: each person other than i is in each of the k cells with at least this
        probability; person i may have any distribution. If neither argument is given, nothing is
        known.

    Returns
    -------
    TableLeakage
        ``number(label)``, ``numbers`` and ``whole``, `Bound` objects in nats. Each is computed when
        it is first asked for.

    Raises
    ------
    ValidationError
        Arguments of the wrong kind, or both `laws` and `least_probability`. With either, a number
        is refused when it is asked for, if its noise is not a `CountNoise` or its count has too
        many cases for `product_leakage`.

    Notes
    -----
    The leakage of the whole table is exact in two cases:

    - All noise is a `CountNoise`, independent from number to number, nothing is known about the
      distributions, and the others' tables have few classes.
    - The table is small enough to be written out (100 vectors of counts), whatever is known and
      with summed keys, too.

    Otherwise there are a lower and an upper bound, both proved. The lower bound is that of the
    number with the largest leakage or, if nothing is known about the distributions, that of a
    person whose others are all in one cell (without the margins if keys are summed). The upper
    bound is for an adversary who knows all others, or log k. With margins whose keys are sums it is
    log k (:doc:`/theory/tables`).

    References
    ----------
    A. Kolchinsky, B. D. Tracey, Estimating mixture entropy with pairwise distances, Entropy 19,
    2017.

    Examples
    --------
    >>> from cvxleak.tables import RandomRounding, Table, TableRelease, table_leakage
    >>> table = Table({"sex": ["f", "m"], "answer": ["no", "yes"]}, people=1_000_000)
    >>> found = table_leakage(TableRelease(table, RandomRounding(3)))
    >>> print(found.whole)
    leakage of the table: 0.77016... to 0.77016... nats (CERTIFIED)

    An adversary who knows less learns less:

    >>> table = Table({"answer": ["no", "yes"]}, people=100)
    >>> found = table_leakage(TableRelease(table, RandomRounding(3)), least_probability=0.1)
    >>> print(found.number("yes"))
    leakage of a number: 0.0... to 0.0... nats (CERTIFIED)
    """
    given = instance(release, TableRelease, "release")
    table = given.table
    if laws is not None and least_probability is not None:
        raise ValidationError("laws: found least_probability beside it; give one")
    known: dict[str, Any] = {"laws": laws, "least_probability": least_probability}
    for name, value in known.items():
        if value is not None:
            known[name] = known_laws(RecordSpace([table.alphabet] * table.people), name, value)
    return TableLeakage(given, **known)
