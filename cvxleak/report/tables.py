"""The report on a published table: what it tells about one person, and what was published."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cvxleak.core.clock import WORK_LIMIT, Clock
from cvxleak.core.errors import SolveInterrupted, ValidationError
from cvxleak.core.validation import in_order, instance, one_of, real_number
from cvxleak.core.value import preview
from cvxleak.model import Prior
from cvxleak.problem import Bound, Status, Stopped
from cvxleak.problem.bound import unit_scale
from cvxleak.report import names
from cvxleak.report import sentences as say
from cvxleak.report.progress import Progress, as_progress, solved
from cvxleak.report.quantity import Quantity, Report
from cvxleak.report.searches import Searches
from cvxleak.report.targets import check_floors, check_targets

if TYPE_CHECKING:
    from cvxleak.tables import (
        PossibleCounts,
        RealizedLeakage,
        TableLeakage,
        TableMove,
        TablePrivacy,
        TableRelease,
    )

__all__ = ["table_report"]

EPSILONS = (0.1, 0.5, 1.0, 2.0)
"""Where delta is given, if nothing is said."""

TOLERANCE = 1e-3
"""Relative difference of bounds on what was published that is small enough."""

EXACT = 1e-8
"""Largest difference of two bounds that is due to rounding alone."""


def table_report(
    release: TableRelease,
    entropy_floors: Sequence[float] = (),
    *,
    published: Any = None,
    known_people: int | None = None,
    prior: Prior | None = None,
    epsilons: Sequence[float] = EPSILONS,
    independent: Mapping[str, Any] | None = None,
    unit: str = "nats",
    tol: float | None = None,
    time_limit: float | None = None,
    work_limit: float | None = WORK_LIMIT,
    progress: Progress | None = None,
) -> Report:
    """Return the report on what a table of counts reveals about one person's cell.

    Parameters
    ----------
    release : TableRelease
        If the number of people is unknown, only the true counts that are still possible are
        reported. What is said of differential privacy holds for all tables of so many people; where
        keys link the noise of several numbers, for the true counts of this one, if it has any.
    entropy_floors : sequence of float
        Least entropies of adversaries' beliefs about all people, in `unit`, for which the leakage
        is searched for; only for tables that are small enough to be written out.
    published : sequence, mapping, Series, DataFrame, or path, optional
        What was published (`TableRelease.as_published`): adds which true counts are still possible,
        and, if the table has counts, what an adversary who knows the others learns about each
        person.
    known_people : int, optional
        The true number of people, if readers of `published` may know it from elsewhere; see
        `cvxleak.tables.possible_counts`.
    prior : Prior, optional
        What is believed of a person before, for `published`; uniform if left out.
    epsilons : sequence of float
        Levels of which the least delta is given, in nats whatever the unit.
    independent : mapping, optional
        What is known of the distributions of the cells of independent people: the arguments of
        `cvxleak.tables.table_leakage` by name. Nothing if left out.
    unit : {"nats", "bits"}
    tol : float, optional
        For the searches at `entropy_floors`, as for `audit_report`.
    time_limit : float or None
        Seconds for all of this together.
    work_limit : float or None
        As for `Problem.solve`, for each search.
    progress : Progress, optional
        Is told about progress, and may interrupt.

    Returns
    -------
    Report
        ``facts["cells"]`` has a line for each published number: its label, its true and its
        published value, the bounds of its true value, and what is known of a person of the cell
        (pointwise maximal leakage in nats, ``pml``, which is an upper bound, and ``pml_lower``).

    Raises
    ------
    ValidationError
        Arguments of the wrong kind, published values that do not fit the table, or neither these
        nor a number of people.
    InfeasibleError
        No table could have been published like this.

    Examples
    --------
    >>> from cvxleak.report import table_report
    >>> from cvxleak.tables import RandomRounding, Table, TableRelease
    >>> table = Table({"answer": ["no", "yes"]}, counts=[7, 2])
    >>> report = table_report(TableRelease(table, RandomRounding(3)), published=[6, 3, 9])
    >>> for quantity in report.quantities[-3:]:
    ...     print(quantity.name, quantity.value, round(quantity.upper, 4))
    pointwise maximal leakage yes 0.47
    posterior probability yes 0.8
    numbers known exactly None 0.0
    """
    from cvxleak.tables import (
        SUPPRESSED,
        CountNoise,
        TableRelease,
        possible_counts,
        realized_leakage,
        table_leakage,
        table_privacy,
    )

    asked = instance(release, TableRelease, "release")
    progress = as_progress(progress)
    given = in_order(epsilons, "epsilons")
    levels = sorted({real_number(level, "epsilons", 0.0, open_high=True) for level in given})
    values = None if published is None else asked.as_published(published)
    if values is not None:
        # What is impossible is refused before anything else is computed.
        possible_counts(asked, values, known_people=known_people, time_limit=0.0)
    people = asked.table.stated_people if values is not None else asked.table.people
    floors: list[float] = []
    if len(in_order(entropy_floors, "entropy_floors")):
        try:
            mechanism = asked.mechanism
        except ValidationError as error:
            raise ValidationError(
                f"entropy_floors: found {preview(tuple(entropy_floors))}; only a table that is "
                f"small enough to be written out can be audited at a floor ({error})"
            ) from error
        floors = check_floors(mechanism, entropy_floors, unit)
    clock = Clock(time_limit)
    known_laws = {} if independent is None else dict(instance(independent, Mapping, "independent"))
    for name in known_laws:
        one_of(name, ("laws", "least_probability"), "independent")
    facts: dict[str, Any] = {
        "people": people,
        "known_people": known_people,
        "variables": list(asked.table.names),
        "columns": list(asked.table.columns or asked.table.names[1:]),
        "largest": math.log(len(asked.table.alphabet)),
        "cells": [{"number": list(map(str, label))} for label in asked.numbers],
    }
    found: list[Quantity] = []
    if people is not None:
        facts["max_entropy"] = people * facts["largest"] / unit_scale(unit)
        # Of linked noise all tables are within reach only if they are few.
        known = asked.linked and asked.table.counts is not None
        privacy = solved(
            progress,
            names.TABLE_DELTA,
            functools.partial(table_privacy, asked, this_table=known, progress=progress.update),
            unit=names.PROBABILITY,
            time_limit=clock.share(2),
            work_limit=work_limit,
        )
        told = table_leakage(asked, **known_laws)
        parts = clock.shares(len(levels) + 4 + len(floors) + (values is not None))
        shares = ({"time_limit": share, "work_limit": work_limit} for share in parts)
        found += _private(privacy, levels, unit, progress, shares)
        found += _to_independent(told, known_laws, unit, progress, shares)
    if floors:
        limit = clock.share(2) if values is not None else clock.limit
        limits = {"tol": tol, "time_limit": limit, "work_limit": work_limit}
        search = Searches(asked.mechanism, unit, limits, progress)
        found += search.run(check_targets(asked.mechanism, None, [1]), floors)
    counted = asked.table.counts is not None
    if counted:
        _note(facts, "true", asked.true)
    if values is not None:

        def told_of_each(**options: Any) -> list[RealizedLeakage]:
            try:
                options = {"time_limit": clock.limit, "work_limit": work_limit} | options
                return [realized_leakage(asked, values, prior, progress=progress.update, **options)]
            except SolveInterrupted as error:
                raise SolveInterrupted([error.bound]) from error
            except KeyboardInterrupt as error:
                raise SolveInterrupted([]) from error

        shown = [
            None if isinstance(noise, CountNoise) and noise.suppresses and y == SUPPRESSED else y
            for (_, noise), y in zip(asked.noise, values, strict=True)
        ]
        _note(facts, "published", shown)
        possible = solved(
            progress,
            names.POSSIBLE,
            functools.partial(
                possible_counts,
                asked,
                values,
                known_people=known_people,
                progress=progress.count,
            ),
            time_limit=clock.share(2),
            work_limit=work_limit,
        )
        certain = _certain(possible, clock.late, progress)
        for key in ("lower", "upper"):
            ends = dict(zip(possible.numbers, getattr(possible, key), strict=True))
            _note(facts, key, [ends[label] for label in asked.numbers])
        for realized in solved(progress, names.PML, told_of_each) if counted else ():
            columns = {
                "posterior": np.diag(realized.posterior),
                "pml_lower": realized.pml_lower,
                "pml": realized.pml,
            }
            for key, column in columns.items():
                of_cells = dict(zip(realized.cells, column, strict=True))
                shown = [of_cells.get(label, math.nan) for label in asked.numbers]
                _note(facts, key, [None if math.isnan(x) else float(x) for x in shown])
            found += _realized(realized, unit, clock)
        found.append(certain)
    return Report(unit, tuple(found), facts, progress.interrupted)


def _private(
    privacy: TablePrivacy,
    levels: Sequence[float],
    unit: str,
    progress: Progress,
    shares: Iterator[Mapping[str, Any]],
) -> Iterator[Quantity]:
    """Yield how well the whole table tells in which of two cells one person is.

    `shares` are the limits of each search.
    """

    def profile(what: str, epsilon: float) -> Bound:
        return solved(
            progress,
            what,
            functools.partial(privacy.profile, progress=progress.update),
            unit=names.PROBABILITY,
            epsilon=epsilon,
            **next(shares),
        )

    test = profile(names.ADVANTAGE, 0.0)
    test, *bounds = _decreasing([test, *(profile(names.TABLE_DELTA, level) for level in levels)])
    meaning = (
        "The most by which moving one person to another cell changes the probability of any "
        "set of published results (total variation)"
    )
    meaning += _between(privacy, test.witness)
    yield Quantity.of_bound(names.ADVANTAGE, test, unit, f"{meaning}.")
    for level, bound in zip(levels, bounds, strict=True):
        meaning = say.moved(level, bound.upper) + _between(privacy, bound.witness)
        shown = level / unit_scale(unit)
        yield Quantity.of_bound(names.TABLE_DELTA, bound, unit, f"{meaning}.", epsilon=shown)
    if progress.interrupted:
        return
    solve = functools.partial(privacy.zcdp, progress=progress.update)
    rho = solved(progress, names.TABLE_ZCDP, solve, **next(shares))
    meaning = "The rho of zero-concentrated differential privacy of the whole table"
    if rho.lower == math.inf:
        meaning = (
            "Not zero-concentrated differentially private: some result can be published if a "
            "person is in one cell, but not if they are in another"
        )
    meaning += _between(privacy, rho.witness) + "."
    yield Quantity.of_bound(names.TABLE_ZCDP, rho, unit, meaning)


def _decreasing(bounds: Sequence[Bound]) -> list[Bound]:
    """Return the bounds on delta at increasing epsilon with what each proves of the others.

    delta decreases, so that a move's delta at one level is a lower bound at any smaller level.
    Under a time limit the search at the larger one may have found a better move.
    """
    found = []
    for place, own in enumerate(bounds):
        best = max(bounds[place:], key=lambda bound: bound.lower)
        upper = min(bound.upper for bound in bounds[: place + 1])
        found.append(replace(own, lower=best.lower, witness=best.witness, upper=upper))
    return found


def _between(privacy: TablePrivacy, move: TableMove | None) -> str:
    where = ", given the true counts of this table" if privacy.this_table else ""
    if move is None:
        return where
    cells = f"from {_text(move.source)} to {_text(move.target)}"
    return f"{where}; the worst case found is a move {cells}"


def _to_independent(
    told: TableLeakage,
    known: Mapping[str, Any],
    unit: str,
    progress: Progress,
    shares: Iterator[Mapping[str, Any]],
) -> Iterator[Quantity]:
    """Yield what the table and the number that tells most tell, all people being independent."""
    if progress.interrupted:
        return
    labels = told.release.numbers

    def numbers(time_limit: float | None, work_limit: float | None) -> dict[Any, Bound]:
        bounds, clock = {}, Clock(time_limit)
        try:
            for done, label in enumerate(labels):
                progress.count(done, len(labels))
                bounds[label] = told.number(label, time_limit=clock.limit, work_limit=work_limit)
        except KeyboardInterrupt as error:
            raise SolveInterrupted(bounds) from error
        return bounds

    bounds = solved(progress, names.INDEPENDENT_LEAKAGE, numbers, **next(shares))
    if progress.interrupted:
        return
    whole = solved(
        progress,
        names.INDEPENDENT_LEAKAGE,
        functools.partial(told.whole, progress=progress.update),
        **next(shares),
    )
    label = max(bounds, key=lambda one: bounds[one].upper)
    for subject, value, bound in (
        ("the whole table tells", None, whole),
        (f"the number {_text(label)} on its own tells", _text(label), bounds[label]),
    ):
        meaning = say.told_of_one_cell(subject, known)
        yield Quantity.of_bound(names.INDEPENDENT_LEAKAGE, bound, unit, meaning, value=value)


def _realized(realized: RealizedLeakage, unit: str, clock: Clock) -> Iterator[Quantity]:
    """Yield what is known of the person about whom most is."""
    place = int(np.nanargmax(realized.pml))
    cell, before = _text(realized.cells[place]), float(realized.prior[place])
    least, most = float(realized.pml_lower[place]), float(realized.pml[place])
    ends = float(realized.lower[place, place]), float(realized.upper[place, place])
    why = Stopped.at_limit(clock) if clock.late else Stopped.WORK_LIMIT
    stats = {"seconds": clock.seconds, "stopped": why}
    meaning = (
        f"What was published tells most about a person in {cell}: it multiplies the expected gain "
        f"of an adversary who knows the cells of all other people by at most {say.factor(most)}."
    )
    chance = say.percent(ends[1])
    if say.percent(ends[0]) != chance:
        low, high = say.percent(ends[0], math.floor), say.percent(ends[1], math.ceil)
        chance = f"from {low} to {high}"
    known = (
        f"To an adversary who knows the cells of all other people, this person is in {cell} with "
        f"probability {chance}; it was {say.percent(before)} before."
    )
    pml = Bound.proved(names.PML, least, most, tol=TOLERANCE, stats=stats)
    posterior = Bound.proved(
        names.POSTERIOR, *ends, tol=TOLERANCE, unit=names.PROBABILITY, stats=stats
    )
    for bound, text in ((pml, meaning), (posterior, known)):
        if bound.gap <= EXACT:
            upper, own = bound.to(unit).upper, bound.to(unit).unit
            yield Quantity.computed(bound.name, upper, own, text, value=cell)
        else:
            yield Quantity.of_bound(bound.name, bound, unit, text, value=cell)


def _certain(possible: PossibleCounts, late: bool, progress: Progress) -> Quantity:
    """Return how many true values are certain; a lower bound if not all numbers were computed."""
    known, total = float(len(possible.known)), len(possible.numbers)
    meaning = (
        f"How many of {total} cells and margins have a true value that is certain, given "
        f"{possible.basis}."
    )
    if possible.known_people is None:
        meaning += " More may be for readers who know the number of people (known_people)."
    if not (late or progress.interrupted):
        return Quantity.computed(names.POSSIBLE, known, names.COUNT, meaning)
    stopped = Stopped.INTERRUPTED if progress.interrupted else Stopped.TIME_LIMIT
    status = Status.BRACKETED.name
    return Quantity(
        names.POSSIBLE, known, float(total), names.COUNT, status, meaning, stopped=stopped
    )


def _note(facts: dict[str, Any], key: str, values: Sequence[Any]) -> None:
    for cell, value in zip(facts["cells"], values, strict=True):
        cell[key] = value


def _text(label: Any) -> str:
    return " / ".join(map(str, label)) if isinstance(label, tuple) else str(label)
