"""The realized history: the outputs so far are known, and only the next one is random."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flint import arb, fmpq

from cvxleak.core.errors import ValidationError
from cvxleak.desk.history import Entry, Observer, Seen, Vector, information
from cvxleak.kernel.numbers import lower as float_below
from cvxleak.kernel.numbers import precision
from cvxleak.kernel.numbers import upper as float_above
from cvxleak.proofs.exact import normalized_rows

__all__ = ["RealizedHistory"]


class RealizedHistory:
    """The distribution of the data given the released outputs, and what each of them revealed.

    Each release counts as I(Rhat; X | Z = z) at the realized z: what it reveals, before it is
    drawn, to an adversary who knows all earlier outputs. The kernel exists for that history only,
    so its output may depend on all earlier outputs, whoever got them. An observer's amount is
    therefore the sum over *all* releases up to its last one. This is not an I(V; X), and nothing is
    claimed about other histories.

    Parameters
    ----------
    prior : sequence of float
        Proportional to p(x); divided by its exact sum.
    entries : iterable of Entry
        The releases, first to last; each kernel has rows for the realized history only.

    Examples
    --------
    >>> from cvxleak.desk.history import Entry
    >>> from cvxleak.desk.realized import RealizedHistory
    >>> flip = [[[0.75, 0.25], [0.25, 0.75]]]
    >>> history = RealizedHistory([0.5, 0.5], [Entry("Ann", flip, 0)])
    >>> [float(q.p) / float(q.q) for q in history.seen()[history.realized()]]
    [0.75, 0.25]
    """

    classes = 1
    lookers = ()

    def __init__(self, prior: Sequence[float], entries: Iterable[Entry] = ()) -> None:
        self._law: Vector = tuple(normalized_rows([prior])[0])
        self._past: list[tuple[str, int, float, float]] = []
        for entry in entries:
            self.add(entry)

    def seen(self, party: str | None = None) -> dict[Seen, Vector]:
        """Return p(x | z) for the realized history."""
        return {self.realized(): self._law}

    def realized(self, party: str | None = None) -> Seen:
        """Return the realized history."""
        return Seen((), 0)

    def output_of(self, number: int, seen: Seen, party: str | None = None) -> int | None:
        """Return the output of release `number`, from 0."""
        return self._past[number][1]

    def add(self, entry: Entry) -> None:
        """Add a release."""
        if len(entry.kernel) != 1:
            raise ValidationError(
                f"kernel: found rows for {len(entry.kernel)} histories; there is 1"
            )
        rows = normalized_rows(entry.kernel[0])
        if len(rows) != len(self._law) or len({len(row) for row in rows}) != 1:
            raise ValidationError("kernel: its shape does not match the data's values")
        mass = [
            [p * row[r] for p, row in zip(self._law, rows, strict=True)]
            for r in range(len(rows[0]))
        ]
        total = sum(mass[entry.output], fmpq(0))
        if total == 0:
            raise ValidationError(f"output: not a possible output of release {len(self._past) + 1}")
        self._past = [*self._past, (entry.party, entry.output, *information(mass))]
        self._law = tuple(q / total for q in mass[entry.output])

    def leakage(self, observer: Observer | None = None) -> tuple[float, float]:
        """Return proved bounds on the sum of I(Rhat; X | Z = z) up to an observer's last output."""
        last = len(self._past)
        if observer is not None:
            places = [k for k, (party, *_) in enumerate(self._past, 1) if party in observer]
            last = max(places, default=0)
        lower, upper = arb(0), arb(0)
        with precision():
            for *_, low, high in self._past[:last]:
                lower += low
                upper += high
            if upper == 0:
                return 0.0, 0.0
            return max(float_below(lower), 0.0), float_above(upper)

    def spent(self, observer: Observer | None = None) -> float:
        """Return what counts against every budget before the next release: all releases."""
        return self.leakage()[1]
