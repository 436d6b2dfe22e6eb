"""Coalitions: the parties that may pool their outputs, and their leakage budgets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import (
    frozen_array,
    in_order,
    label_tuple,
    real_number,
    short,
    whole_number,
)
from cvxleak.core.value import Value
from cvxleak.release.joint import ReleaseJoint

__all__ = ["ENTRIES", "Coalition", "any_of", "enough_outputs", "named_coalitions"]

ENTRIES = 5_000
"""Most entries of a kernel, where the information problem chooses how many columns it has."""
MOST_PARTIES = 64
"""Most parties of which coalitions are made by number."""

Coalitions = Mapping[Any, float] | Iterable[tuple[Any, float]]


@dataclass(frozen=True, eq=False)
class Coalition(Value):
    """Parties that may pool their outputs with the new one.

    Attributes
    ----------
    name : str
        The name of its budget in results.
    classes : tuple of int
        Its view of the earlier outputs z: equal numbers for those it cannot distinguish, 0, 1, ...
        in order of first occurrence; 0 for outputs of probability zero.
    budget : float
        Upper limit on I(R̂,S;X), in nats; infinite if there is none.
    price : float
        The price of one nat of I(R̂,S;X) in the objective.

    Examples
    --------
    >>> from cvxleak.release import release_problem
    >>> joint = [[[0.024, 0.228], [0.063, 0.203]], [[0.203, 0.013], [0.228, 0.038]]]
    >>> everybody = release_problem(joint, 0.1, 0.2).coalitions[1]
    >>> everybody.name, everybody.classes, everybody.budget
    ('delta', (0, 1), 0.2)
    """

    name: str
    classes: tuple[int, ...]
    budget: float = math.inf
    price: float = 0.0

    @classmethod
    def seeing(
        cls,
        joint: ReleaseJoint,
        members: Any,
        budget: float = math.inf,
        price: float = 0.0,
        *,
        name: str,
    ) -> Coalition:
        """Return the coalition that sees some of the earlier outputs.

        `members` has the names of the outputs (`ReleaseJoint.names`), or is an integer array that
        gives the class of each z, of shape (Z,) or (Z_1, ..., Z_j).
        """
        sizes = joint.shape[1]
        if isinstance(members, np.ndarray):
            table = frozen_array(members, "coalitions", members.ndim)
            if table.shape not in (sizes, (math.prod(sizes),)):
                raise ValidationError(
                    f"coalitions: found classes of shape {table.shape}; the earlier outputs have "
                    f"shape {sizes}"
                )
            keys = table.ravel()
        else:
            axes = []
            for member in in_order(members, "coalitions"):
                if member not in joint.names or joint.names.index(member) in axes:
                    raise ValidationError(
                        f"coalitions: found {short(member)} among the members {short(members)}; "
                        f"members are different ones of {short(joint.names)}"
                    )
                axes.append(joint.names.index(member))
            grid = np.indices(sizes).reshape(len(sizes), math.prod(sizes))
            keys = np.zeros(grid.shape[1], dtype=int)
            for axis in sorted(axes):
                keys = keys * sizes[axis] + grid[axis]
        possible: list[bool] = (joint.flat.sum(axis=(0, 2)) > 0).tolist()
        first: dict[Any, int] = {}
        for key, occurs in zip(keys.tolist(), possible, strict=True):
            if occurs:
                first.setdefault(key, len(first))
        classes = tuple(first.get(key, 0) for key in keys.tolist())
        return cls(name, classes, budget, price)

    def refines(self, other: Coalition) -> bool:
        """Whether it sees everything that the other one sees."""
        pairs = set(zip(self.classes, other.classes, strict=True))
        return len(pairs) == max(self.classes) + 1

    @property
    def array(self) -> NDArray[np.intp]:
        """The classes as an array."""
        return np.array(self.classes, dtype=np.intp)


def any_of(size: int, names: int | Iterable[Hashable], budget: float) -> dict[Any, float]:
    """Return the coalitions of the new party with any `size` - 1 of the earlier ones.

    They limit the leakage to any `size` colluding parties, the new one included, to `budget`.
    Smaller coalitions learn less and need no constraint; coalitions without the new party are not
    affected by its release.

    Parameters
    ----------
    size : int
        How many parties collude, at least 1.
    names : int or iterable of hashable
        The earlier outputs, or how many there are.
    budget : float

    Raises
    ------
    ValidationError
        `size` exceeds the number of parties.

    Examples
    --------
    Any two of three parties:

    >>> from cvxleak.release import any_of
    >>> any_of(2, 2, 0.3)
    {(0,): 0.3, (1,): 0.3}
    """
    if isinstance(names, Iterable):
        parties = in_order(names, "names")
        parties = label_tuple(parties, len(parties), "names")
    else:
        parties = tuple(range(whole_number(names, "names", 0, MOST_PARTIES)))
    whole_number(size, "size", 1, len(parties) + 1)
    return dict.fromkeys(itertools.combinations(parties, size - 1), budget)


def named_coalitions(
    joint: ReleaseJoint,
    epsilon: float,
    delta: float,
    coalitions: Coalitions | None,
    scale: float,
) -> tuple[Coalition, ...]:
    """Return all coalitions with budgets, in nats, after checking that the budgets fit together.

    `scale` is the number of nats in a unit of the given budgets.

    Raises
    ------
    ValidationError
        A budget that is none, a coalition twice, or one with a larger budget than one that sees
        more.
    """
    found = [
        Coalition.seeing(joint, (), _budget(epsilon, "epsilon", scale), name="epsilon"),
        Coalition.seeing(joint, joint.names, _budget(delta, "delta", scale), name="delta"),
    ]
    seen: list[set[Hashable] | None] = [set(), set(joint.names)]
    pairs: Iterable[Any] = () if coalitions is None else coalitions
    items = pairs.items() if isinstance(pairs, Mapping) else in_order(pairs, "coalitions")
    for number, item in enumerate(items):
        if not isinstance(item, tuple | list) or len(item) != 2:
            raise ValidationError(
                f"coalitions: found {short(item)}; pairs of members and a budget are needed"
            )
        members, budget = item
        label = number if isinstance(members, np.ndarray) else short(members)
        name = f"coalitions[{label}]"
        found.append(Coalition.seeing(joint, members, _budget(budget, name, scale), name=name))
        seen.append(None if isinstance(members, np.ndarray) else set(members))
    names = [coalition.name for coalition in found]
    if len(set(names)) < len(names):
        raise ValidationError(f"coalitions: found one twice among {short(names[2:])}")
    for (small, few), (large, many) in itertools.permutations(zip(found, seen, strict=True), 2):
        if few is None or many is None:
            more = large.refines(small) and not small.refines(large)
        else:  # an output with one value counts, too
            more = few < many
        if more and math.isfinite(small.budget) and small.budget > large.budget:
            raise ValidationError(
                f"{small.name}: found {small.budget / scale!r}; it must be at most that of "
                f"{large.name}, which sees as much and more and has {large.budget / scale!r}"
            )
    if math.isfinite(found[0].budget) and found[0].budget > found[1].budget:
        raise ValidationError(f"epsilon: found {epsilon!r}; it must be at most delta, {delta!r}")
    return tuple(found)


def enough_outputs(joint: ReleaseJoint, coalitions: Iterable[Coalition]) -> int:
    """Return a number of outputs with which I(R̂;R) gets as large as with any number.

    That is the number of pairs (z, x) of positive probability, plus that of coalitions with a
    budget; but a kernel of no more than `ENTRIES` numbers, or as many outputs as requests.
    """
    pairs = int((joint.flat.sum(axis=0) > 0).sum())
    limited = {found.classes for found in coalitions if math.isfinite(found.budget)}
    return min(pairs + len(limited), max(ENTRIES // pairs, len(joint.requests)))


def _budget(value: Any, name: str, scale: float) -> float:
    if isinstance(value, float) and value == math.inf:
        return value
    number = real_number(value, name, 0.0, open_high=True)
    return number if scale == 1 else number * scale


def non_decreasing(budgets: ArrayLike, name: str) -> None:
    """Check that budgets of successive releases do not fall."""
    values = frozen_array(budgets, name, 1)
    falls = np.flatnonzero(np.diff(values) < 0)
    if len(falls):
        k = int(falls[0])
        raise ValidationError(
            f"{name}: found {float(values[k])!r} and then {float(values[k + 1])!r}; what all "
            "parties together may learn must not decrease"
        )
