"""Who is audited, and against whom: checked before anything is searched for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.core.validation import in_order, instance, real_number, whole_number
from cvxleak.model import Mechanism
from cvxleak.problem.bound import unit_scale

__all__ = ["Target", "check_floors", "check_targets"]


@dataclass(frozen=True)
class Target:
    """Whose leakage to compute: that of one record, the worst one, or the worst group of a size.

    Attributes
    ----------
    record : int or None
        The record; the worst of all if None.
    size : int
        Size of the group; 1 for a single record.

    Examples
    --------
    >>> from cvxleak.report import Target
    >>> Target(record=None, size=3).subject
    'a group of 3 records'
    """

    record: int | None
    size: int

    @property
    def subject(self) -> str:
        """What the sentences call it."""
        if self.record is not None:
            return f"record {self.record}"
        return "one person's record" if self.size == 1 else f"a group of {self.size} records"


def check_targets(
    mechanism: Mechanism, records: Sequence[int] | None, group_sizes: Sequence[int]
) -> list[Target]:
    """Return whose leakage to search for, or say which record or size does not exist.

    Raises
    ------
    ValidationError
        A record or a size that the mechanism does not have, or both kinds at once.

    Examples
    --------
    >>> from cvxleak import Mechanism
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.queries import parity
    >>> from cvxleak.report import check_targets
    >>> check_targets(Mechanism(parity(4), binary_symmetric(0.1)), [2, 0], [1])
    [Target(record=0, size=1), Target(record=2, size=1)]
    """
    n = instance(mechanism, Mechanism, "mechanism").space.records
    sizes = sorted(
        {whole_number(size, "group_sizes", 1, n) for size in in_order(group_sizes, "group_sizes")}
    )
    if records is None:
        return [Target(None, size) for size in sizes]
    if sizes != [1]:
        raise ValidationError("group_sizes: give either records or group sizes, not both")
    given = in_order(records, "records")
    places = sorted({whole_number(record, "records", 0, n - 1) for record in given})
    return [Target(record, 1) for record in places]


def check_floors(
    mechanism: Mechanism, entropy_floors: Sequence[float], unit: str = "nats"
) -> list[float]:
    """Return the distinct floors in increasing order, in `unit`, or say which one is impossible.

    Raises
    ------
    ValidationError
        A floor is not a number of at least 0.
    InfeasibleError
        A floor above log|X|; the message states the maximum.

    Examples
    --------
    >>> from cvxleak import Mechanism
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.queries import parity
    >>> from cvxleak.report.targets import check_floors
    >>> check_floors(Mechanism(parity(4), binary_symmetric(0.1)), [3, 1.5, 3], "bits")
    [1.5, 3.0]
    """
    most = instance(mechanism, Mechanism, "mechanism").space.max_entropy / unit_scale(unit)
    given = in_order(entropy_floors, "entropy_floors")
    floors = {real_number(floor, "entropy_floor", 0.0) for floor in given}
    for floor in floors:
        if floor > most * (1 + 1e-12):
            raise InfeasibleError(
                f"entropy_floor: found {floor:g} {unit}; no adversary can have more uncertainty "
                f"about this dataset than {most:.6f} {unit}, the entropy of the uniform prior"
            )
    return sorted(floors)
