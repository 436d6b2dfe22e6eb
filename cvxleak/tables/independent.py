"""`table_leakage`: the leakage of a table about one of many independent people."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.audit import record_leakage
from cvxleak.core.clock import WORK_LIMIT, Clock, Progress, check_progress
from cvxleak.core.errors import SolveInterrupted, ValidationError
from cvxleak.core.validation import Array, instance, short
from cvxleak.core.value import Value, preview
from cvxleak.model import AdditiveQuery, Mechanism, Prior, RecordSpace
from cvxleak.model.known_laws import known_laws
from cvxleak.problem import Bound, Stopped
from cvxleak.tables.arguments import Cell
from cvxleak.tables.cases import representative
from cvxleak.tables.counted import leakage_of_count, people_counted, product_reached
from cvxleak.tables.given import Given, largest, log_above, others_of_table
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

ENTRIES, WORK = 1 << 14, 1 << 24
"""Most probabilities of the whole table given one table of the others, and given all of them."""


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
    >>> table_leakage(release).whole().witness.others
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

    def number(
        self,
        label: Cell | Hashable,
        *,
        time_limit: float | None = None,
        work_limit: float | None = WORK_LIMIT,
        progress: Progress | None = None,
    ) -> Bound:
        """Bound the leakage of one published number about one person's cell.

        Parameters
        ----------
        label : tuple
            One of `TableRelease.numbers`.
        time_limit, work_limit : float or None
            Seconds, and multiplications (`Problem.solve`), after which the bounds reached are
            returned. What is finished is kept, and is not computed again.
        progress : callable, optional
            Called as progress(lower, upper, parts so far), where the parts are counts of the other
            people.

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
            Ctrl-C; its ``bound`` has the bounds reached. The bounds of other numbers are kept.
        """
        check_progress(progress)
        numbers = self.release.numbers
        found = tuple(label) if isinstance(label, (tuple, list)) else (label,)
        if found not in numbers:
            raise ValidationError(
                f"label: found {short(label)}; the numbers are {preview(numbers)}"
            )
        try:
            bound = self._number(numbers.index(found), Clock(time_limit, work_limit), progress)
        except KeyboardInterrupt:
            bound = _trivial(NUMBER, 2)
        return _unless_interrupted(bound)

    @property
    def numbers(self) -> dict[Cell, Bound]:
        """The leakage of each published number on its own, by label."""
        return {label: self.number(label) for label in self.release.numbers}

    def _number(self, j: int, clock: Clock, progress: Progress | None = None) -> Bound:
        """Return the leakage of a number; Ctrl-C is in the bound's `stats`, or raised."""
        _, noise = self.release.noise[j]
        places, k = self.release.sums[j], len(self.release.table.alphabet)
        if len(places) == k:
            stats = {
                "method": "none, because a number that counts all people says nothing of one",
                "seconds": 0.0,
            }
            return Bound.proved(NUMBER, 0.0, 0.0, tol=TOLERANCE, stats=stats)
        if not self._known:
            key: Any = id(noise)
            bound = self._bounds.get(key) or self._others_known(noise, clock, progress)
            self._keep(key, bound)
            witness = None if bound.witness is None else self._witness(places, bound.witness)
            return _named(bound, NUMBER, witness)
        least = self.least_probability
        people = people_counted(self.release.table, places, self.laws, least)
        key = id(noise), tuple(people)
        bound = self._bounds.get(key)
        if bound is None:
            attacked = 0 if least is not None else None
            bound = leakage_of_count(self.release, j, people, attacked, clock)
            bound = _named(bound, NUMBER, bound.witness)
        self._keep(key, bound)
        return bound

    def _keep(self, key: Any, bound: Bound) -> None:
        """Keep a bound that is finished."""
        if bound.stats.get("stopped") not in (
            Stopped.TIME_LIMIT,
            Stopped.WORK_LIMIT,
            Stopped.INTERRUPTED,
        ):
            self._bounds[key] = bound

    def _others_known(self, noise: Noise, clock: Clock, progress: Progress | None) -> Bound:
        """Return the capacity from the bit that a person is counted, at the others' worst count.

        Its witness is that count, and the probability that the person is counted.
        """
        counts = others_of(noise, self.release.table.people)
        if isinstance(noise, CountNoise):
            given = [Given([noise], [value], np.array([[0, 1]])) for value in counts]
            bound, place = largest(given, range(2), clock, progress)
            known = None if place is None else (counts[place], bound.witness.probabilities[1])
            return _named(bound, "", known)
        found, most = list[Bound](), log_above(2)
        try:
            for value in counts:
                if progress is not None:
                    progress(max((one.lower for one in found), default=0.0), most, len(found))
                bit = AdditiveQuery(RecordSpace.binary(1), [(0, 1)], lambda one, v=value: v + one)
                found.append(record_leakage(Mechanism(bit, noise), 0.0, **clock.limits))
            stopped = Stopped.at_limit(clock) if clock.late else None
        except KeyboardInterrupt:
            stopped = Stopped.INTERRUPTED
            if not found:
                raise
        place = max(range(len(found)), key=lambda i: found[i].lower)
        best = found[place]
        known = counts[place], best.witness.expand().probabilities[1]
        upper = most if len(found) < len(counts) else max(one.upper for one in found)
        stats = best.stats if stopped is None else {**best.stats, "stopped": stopped}
        return _named(best, "", known, upper, stats)

    def _witness(self, places: Sequence[int], known: tuple[int, Any]) -> TableAdversary:
        """Return an adversary who knows how many others are in the cells; the rest is elsewhere."""
        table, (value, share) = self.release.table, (known[0], float(known[1]))
        cells = len(table.cells)
        other = next(c for c in reversed(range(len(table.alphabet))) if c not in places)
        others, law = [0] * (cells + 1), [0.0] * len(table.alphabet)
        others[places[0]] = value
        others[other] += table.people - 1 - value
        law[places[0]], law[other] = share, 1 - share
        return TableAdversary(tuple(others[:cells]), Prior(law, table.alphabet))

    def whole(
        self,
        *,
        time_limit: float | None = None,
        work_limit: float | None = WORK_LIMIT,
        progress: Progress | None = None,
    ) -> Bound:
        """Bound the leakage of the whole table about one person's cell.

        Parameters
        ----------
        time_limit, work_limit : float or None
            Seconds, and multiplications (`Problem.solve`), after which the bounds reached are
            returned. A finished result is kept, and is not computed again.
        progress : callable, optional
            Called as progress(lower, upper, parts so far), where the parts are tables of the other
            people, or published numbers.

        Returns
        -------
        Bound
            In nats. `witness` attains the lower bound: a `TableAdversary`, or an
            `IndependentAdversary` if something is known about the distributions.

        Raises
        ------
        ValidationError
            As for `number`.
        SolveInterrupted
            Ctrl-C; its ``bound`` has the bounds reached, at least those of the numbers that are
            known already.
        """
        check_progress(progress)
        if WHOLE in self._bounds:
            return self._bounds[WHOLE]
        clock = Clock(time_limit, work_limit)
        try:
            bound = (
                self._written_out(clock)
                or self._over_others(clock, progress)
                or self._bracketed(clock, progress)
            )
        except KeyboardInterrupt:
            bound = _trivial(WHOLE, len(self.release.table.alphabet))
        self._keep(WHOLE, bound)
        if WHOLE not in self._bounds:
            noises = [] if self._known else [noise for _, noise in self.release.noise]
            known = [j for j, noise in enumerate(noises) if id(noise) in self._bounds]
            best = max([bound, *(self._number(j, clock) for j in known)], key=lambda one: one.lower)
            if best is not bound:
                bound = Bound.proved(
                    WHOLE,
                    best.lower,
                    bound.upper,
                    tol=TOLERANCE,
                    witness=best.witness,
                    stats=bound.stats,
                )
        return _unless_interrupted(bound)

    def _written_out(self, clock: Clock) -> Bound | None:
        """Return the leakage of a small mechanism, if distributions are known or keys linked."""
        release, table = self.release, self.release.table
        k = len(table.alphabet)
        vectors = math.comb(table.people + k - 1, k - 1)
        if vectors > SMALL or not (self._known or release.linked):
            return None
        with suppress(ValidationError):  # infinitely many outputs, or keys that link too much
            bound = product_reached(release.mechanism, clock, **self._known)
            return _named(bound, WHOLE, bound.witness)
        return None

    def _over_others(self, clock: Clock, progress: Progress | None) -> Bound | None:
        """Return the largest capacity given the others' counts, if these are few."""
        laws = [noise for _, noise in self.release.noise if isinstance(noise, CountNoise)]
        finite = len(laws) == len(self.release.noise)
        if not finite or self._known or self.release.linked:
            return None
        tables = others_of_table(self.release)
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
        bound, place = largest(given, self.release.table.alphabet, clock, progress)
        if place is None:
            return _named(bound, WHOLE, None)
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

    def _bracketed(self, clock: Clock, progress: Progress | None) -> Bound:
        """Return a lower and an upper bound, neither of which has a certificate."""
        ends = [0.0, log_above(len(self.release.table.alphabet)), None]
        try:
            for done, _ in enumerate(self._narrow(ends, clock)):
                if progress is not None:
                    progress(ends[0], ends[1], done)
                if done and clock.late:
                    break
            stopped = Stopped.at_limit(clock) if clock.late else None
        except KeyboardInterrupt:
            stopped = Stopped.INTERRUPTED
        lower, upper, witness = ends
        stats = {
            "method": "bounds on single numbers and on all of them together, because the mechanism "
            "of the whole table is too large to be written out",
            "seconds": clock.seconds,
        }
        return Bound.proved(
            WHOLE,
            lower,
            max(lower, upper),
            tol=TOLERANCE,
            witness=witness,
            stats=stats if stopped is None else {**stats, "stopped": stopped},
        )

    def _narrow(self, ends: list[Any], clock: Clock) -> Iterator[None]:
        """Narrow the bounds, the first of which is attained by the witness after them.

        Yields before each step. All are replaced at once, in case of Ctrl-C.
        """
        bounds: list[Bound] = []
        for j in range(len(self.release.numbers)):
            yield
            bounds.append(self._number(j, clock))
            if bounds[-1].lower > ends[0] or j == 0:
                ends[:] = bounds[-1].lower, ends[1], bounds[-1].witness
            _unless_interrupted(bounds[-1])
        laws, counted = self._independent
        separate = len(laws) == len(self.release.noise)
        if not self._known:
            products = Products(self.release.table, laws, counted)
            yield
            least, others = products.lower
            if least > ends[0]:
                ends[:] = least, ends[1], TableAdversary(others, products.law)
            if separate:
                yield
                told = math.fsum(bound.upper for bound in bounds) * (1 + 1e-12)
                ends[1] = min(ends[1], told, products.upper)
        elif separate:
            # The worst others are known ones.
            yield
            ends[1] = TableLeakage(self.release).whole(**clock.limits).upper

    def __repr__(self) -> str:
        known = "".join(f", {name}={short(value)}" for name, value in self._known.items())
        return f"TableLeakage({self.release!r}{known})"


def _trivial(name: str, values: int) -> Bound:
    """Return the bounds of every leakage about one of so many values, after Ctrl-C."""
    stats = {
        "method": "none, because the search was interrupted",
        "seconds": 0.0,
        "stopped": Stopped.INTERRUPTED,
    }
    return Bound.proved(name, 0.0, log_above(values), tol=TOLERANCE, stats=stats)


def _named(
    bound: Bound, name: str, witness: Any, upper: float | None = None, stats: Any = None
) -> Bound:
    """Return a bound with another name and witness, and perhaps a larger upper bound."""
    return Bound.proved(
        name,
        bound.lower,
        bound.upper if upper is None else upper,
        tol=TOLERANCE,
        witness=witness,
        certificate=bound.certificate,
        stats=bound.stats if stats is None else stats,
    )


def _unless_interrupted(bound: Bound) -> Bound:
    """Return a bound; after Ctrl-C raise it."""
    if bound.stats.get("stopped") is Stopped.INTERRUPTED:
        raise SolveInterrupted(bound)
    return bound


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
        ``number(label)``, ``numbers`` and ``whole()``, `Bound` objects in nats. Each is computed
        when it is first asked for.

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
    >>> print(found.whole())
    leakage of the table: 0.77016... to 0.77016... nats (CERTIFIED)

    An adversary who knows less learns less:

    >>> table = Table({"answer": ["no", "yes"]}, people=100)
    >>> found = table_leakage(TableRelease(table, RandomRounding(3)), least_probability=0.1)
    >>> print(found.number("yes"))
    leakage of a number: 0.0... to 0.0... nats (CERTIFIED)
    """
    given = instance(release, TableRelease, "release")
    table = given.table
    people = table.people  # raises if it is not known
    if laws is not None and least_probability is not None:
        raise ValidationError("laws: found least_probability beside it; give one")
    known: dict[str, Any] = {"laws": laws, "least_probability": least_probability}
    for name, value in known.items():
        if value is not None:
            known[name] = known_laws(RecordSpace([table.alphabet] * people), name, value)
    return TableLeakage(given, **known)
