"""The realized history: what was released is known, and only what comes next is random."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flint import arb, fmpq

from cvxleak.certificates import balls
from cvxleak.certificates.rationals import normalized_rows
from cvxleak.desk.history import Entry, Observer, Vector, information
from cvxleak.errors import ValidationError

__all__ = ["RealizedHistory"]


class RealizedHistory:
    """The law of the data given the outputs that were really released, and what each one told.

    Each release is counted with I(Rhat; X | Z = z) at the realized z: what it tells, before it is
    drawn, somebody who knows all that was released before. An observer's amount is the sum over
    the releases to its parties. That is no I(V; X): kernels exist for the realized history only,
    and nothing is claimed about the others.

    Parameters
    ----------
    prior : sequence of float
        p(x) up to its exact sum.
    entries : iterable of Entry
        The releases, first to last; each kernel has one class.

    Examples
    --------
    >>> from cvxleak.desk.history import Entry
    >>> from cvxleak.desk.realized import RealizedHistory
    >>> flip = [[[0.75, 0.25], [0.25, 0.75]]]
    >>> history = RealizedHistory([0.5, 0.5], [Entry("Ann", flip, 0)])
    >>> [float(q.p) / float(q.q) for q in history.joint[0]]
    [0.75, 0.25]
    """

    classes = 1
    realized = 0

    def __init__(self, prior: Sequence[float], entries: Iterable[Entry] = ()) -> None:
        self._law: Vector = tuple(normalized_rows([prior])[0])
        self._amounts: list[tuple[str, float, float]] = []
        self._outputs: list[int] = []
        for entry in entries:
            self.add(entry)

    @property
    def joint(self) -> list[Vector]:
        """p(x | z) for the one class, the realized history."""
        return [self._law]

    def release_of_class(self, number: int) -> list[int | None]:
        """Return the output of release `number`."""
        return [self._outputs[number]]

    def add(self, entry: Entry) -> None:
        """Follow one more release."""
        if len(entry.kernel) != 1:
            raise ValidationError(f"kernel: found {len(entry.kernel)} classes; there is 1")
        rows = normalized_rows(entry.kernel[0])
        if len(rows) != len(self._law) or len({len(row) for row in rows}) != 1:
            raise ValidationError("kernel: it does not fit the data's values")
        mass = [
            [p * row[r] for p, row in zip(self._law, rows, strict=True)]
            for r in range(len(rows[0]))
        ]
        total = sum(mass[entry.output], fmpq(0))
        if total == 0:
            raise ValidationError(f"output: release {len(self._outputs) + 1} cannot give it")
        self._amounts = [*self._amounts, (entry.party, *information(mass))]
        self._outputs = [*self._outputs, entry.output]
        self._law = tuple(q / total for q in mass[entry.output])

    def leakage(self, observer: Observer | None = None) -> tuple[float, float]:
        """Return proved ends of the sum of I(Rhat; X | Z = z) over an observer's releases."""
        return _total(
            amount for amount in self._amounts if observer is None or amount[0] in observer
        )

    def knowable(self, observer: Observer) -> float:
        """Return the sum of I(Rhat; X | Z = z) over all releases up to an observer's last one.

        The output of a release may depend on all earlier ones, whoever got them, and tell of them.
        """
        last = max(
            (k for k, (party, *_) in enumerate(self._amounts, 1) if party in observer), default=0
        )
        return _total(self._amounts[:last])[1]


def _total(amounts: Iterable[tuple[str, float, float]]) -> tuple[float, float]:
    lower, upper = arb(0), arb(0)
    with balls.precision():
        for _, low, high in amounts:
            lower += low
            upper += high
        if upper == 0:
            return 0.0, 0.0
        return max(balls.round_down(lower), 0.0), balls.round_up(upper)
