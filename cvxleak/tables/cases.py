"""The changes that one person causes by moving between cells of a table, by classes of counts.

The distribution of a perturbation repeats for large counts, so that there are finitely many classes
of true values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from cvxleak.core.numbers import fraction
from cvxleak.core.value import Value
from cvxleak.model import Rounded
from cvxleak.tables.losses import Change, Noise

__all__ = ["Case", "Codes", "TableMove", "both_orders", "representative", "start_and_period"]


@dataclass(frozen=True)
class TableMove(Value):
    """One person moves from one cell of a table to another.

    Attributes
    ----------
    source, target : hashable
        The cell of the person and the other cell, both from `Table.alphabet`.
    counts : tuple of int
        The true counts of the cells, in the order of `Table.cells`, with the person in `source`.

    Examples
    --------
    >>> from cvxleak.tables import RandomRounding, Table, TableRelease, table_privacy
    >>> table = Table({"answer": ["no", "yes"]}, people=10)
    >>> table_privacy(TableRelease(table, RandomRounding(3))).profile(1).witness
    TableMove(source=('no',), target=('yes',), counts=(10, 0))
    """

    source: Hashable
    target: Hashable
    counts: tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """The changes in a move, and a function that finds a table in which it occurs, or None."""

    changes: tuple[Change, ...]
    witness: Callable[[], TableMove | None]
    below: tuple[Change, ...] | None = None
    """Changes that give a lower bound, if `changes` only give an upper one."""


def start_and_period(noise: Noise) -> tuple[int, int]:
    """Return the true value from which the noise repeats, and the period."""
    start, period = getattr(noise, "start", 0), getattr(noise, "period", 1)
    if isinstance(noise, Rounded):
        period = fraction(noise.base).numerator
    return start, period


def representative(noise: Noise, count: int, by: int) -> int:
    """Return the least value at which a change by `by` has the same losses as at `count`."""
    start, period = start_and_period(noise)
    first = start - min(by, 0)
    return count if count < first + period else first + (count - first) % period


def both_orders(case: Case) -> list[Case]:
    """Return a case, and the same with P and R exchanged if they belong to true values."""
    if any(one.value < 0 for one in case.changes):
        return [case]
    return [case, Case(tuple(map(_exchanged, case.changes)), case.witness)]


def _exchanged(change: Change) -> Change:
    noise, count, by = change.back
    return Change(noise, representative(noise, count, by), by)


class Codes:
    """Numbers for changes, so that sets of them are compared quickly."""

    def __init__(self) -> None:
        self._known: dict[Change, int] = {}
        self._by_place: dict[int, tuple[Change, int]] = {}

    def of(self, changes: Sequence[Change]) -> tuple[int, ...]:
        """Return a code that is the same for the same changes in any order."""
        return tuple(sorted(self._one(change) for change in changes))

    def _one(self, change: Change) -> int:
        held = self._by_place.get(id(change))
        if held is None or held[0] is not change:
            held = change, self._known.setdefault(change, len(self._known))
            self._by_place[id(change)] = held
        return held[1]
