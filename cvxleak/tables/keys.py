"""The exact joint distribution of numbers whose keys are sums of cell keys.

The key of a cell with people is uniform, and independent of the keys of other cells; the key of a
cell without people is 0. The key of a number is the sum of the keys of its cells, and determines
the published value together with the true one. So a number matters only through its true value and
its cells with people; numbers with the same such cells have the same key.

- K keys: the cells are added one by one. A number is closed if all of its cells have been added.
  For all published values of the closed numbers, the number of choices of keys that give them is
  kept, by the partial sums of the keys of the open numbers: an array over Z_K for each of these.
- Keys from 0 to 1, and one number with several cells: the volume of a box cut by a half-space. For
  keys uniform on [0, w_i), i = 1, ..., N, the volume of those with a sum up to z is

      1/N! sum over v in {0, 1}^N of (-1)^|v| (z - sum_i v_i w_i)_+^N.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import short
from cvxleak.tables.noise import PerturbationTable

__all__ = ["Linked", "fits", "joint_law", "keys_of", "places_of_keys", "steps_together"]

WORK = 1 << 28
"""Most additions for the distribution of numbers whose keys are whole numbers: about a second."""

OUTCOME = 1 << 9
"""Number of additions as which each outcome counts."""

VOLUMES = 1 << 21
"""Most powers for the distribution of numbers whose keys are from 0 to 1: about a second."""

Outcome = tuple[int, ...]
"""What is published for several numbers."""


class Linked(NamedTuple):
    """A number whose key is a sum: its noise, and the positions of its cells."""

    noise: PerturbationTable
    places: tuple[int, ...]


class _Sum(NamedTuple):
    """Numbers that sum the same cells with people: their positions, and their values by the key."""

    cells: tuple[int, ...]
    numbers: tuple[int, ...]
    steps: tuple[tuple[Fraction, Outcome], ...]

    @property
    def outcomes(self) -> list[Outcome]:
        """Their published values."""
        return [*dict.fromkeys(outcome for _, outcome in self.steps)]


def keys_of(numbers: Sequence[Linked]) -> int | None:
    """Return the number of keys; None if they are real numbers from 0 to 1."""
    found = dict.fromkeys(number.noise.table.keys for number in numbers)
    if len(found) > 1:
        texts = ["from 0 to 1" if keys is None else str(keys) for keys in found]
        raise ValidationError(
            f"noise: perturbation tables with different keys ({', '.join(texts)}) cannot have "
            "summed keys"
        )
    return next(iter(found), None)


def steps_together(
    numbers: Sequence[tuple[PerturbationTable, int]],
) -> tuple[tuple[Fraction, Outcome], ...]:
    """Return the published values of several true values with one key, up to limits of the key."""
    steps = [noise.steps(count) for noise, count in numbers]
    found: list[tuple[Fraction, Outcome]] = []
    places = [0] * len(steps)
    for end in sorted({end for one in steps for end, _ in one if end > 0}):
        for j, one in enumerate(steps):
            while one[places[j]][0] < end:
                places[j] += 1
        values = tuple(one[place][1] for one, place in zip(steps, places, strict=True))
        if found and found[-1][1] == values:
            found.pop()
        found.append((end, values))
    return tuple(found)


def places_of_keys(steps: Sequence[tuple[Fraction, Any]], keys: int) -> np.ndarray:
    """Return for each key the step that it is in."""
    ends = [int(end * keys) for end, _ in steps]
    return np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))


def _sums(numbers: Sequence[Linked], counts: Sequence[int]) -> list[_Sum]:
    """Return the numbers by the cells with people that they sum."""
    together: dict[tuple[int, ...], list[int]] = {}
    for number, (_, places) in enumerate(numbers):
        cells = tuple(place for place in sorted(places) if counts[place])
        together.setdefault(cells, []).append(number)
    found = []
    for cells, members in together.items():
        total = sum(counts[place] for place in cells)
        steps = steps_together([(numbers[j].noise, total) for j in members])
        # Without people the key is 0.
        found.append(_Sum(cells, tuple(members), steps if cells else ((Fraction(1), steps[0][1]),)))
    return found


def joint_law(
    numbers: Sequence[Linked],
    counts: Sequence[int],
    published: Sequence[int] | None = None,
    laws: int = 1,
) -> dict[Outcome, Fraction]:
    """Return the exact distribution of the numbers, given the counts of the cells.

    With an outcome, only the probability of that outcome is computed, if it is not 0, which is much
    faster. `laws` is the number of such distributions that are needed.

    Raises
    ------
    ValidationError
        Tables with different numbers of keys, or too many steps.
    """
    keys, sums = keys_of(numbers), _sums(numbers, counts)
    _check_work(keys, sums, published is not None, laws)
    wanted = [
        None if published is None else tuple(int(published[j]) for j in one.numbers) for one in sums
    ]
    # Outcomes that are not needed are left out of the steps' labels.
    labels = [
        [outcome for outcome in one.outcomes if only in (None, outcome)]
        for one, only in zip(sums, wanted, strict=True)
    ]
    if not all(labels):
        return {}
    rows, masses, unit = _volumes(sums, labels) if keys is None else _counted(sums, labels, keys)
    back = np.argsort([j for one in sums for j in one.numbers])
    chances = {mass: Fraction(mass, unit) for mass in {*masses}}
    values = np.array(rows).reshape(len(masses), len(back))[:, back].tolist()
    return {tuple(y): chances[mass] for y, mass in zip(values, masses, strict=True)}


def fits(
    numbers: Sequence[Linked], counts: Sequence[int], laws: int, *, one_outcome: bool = False
) -> bool:
    """Whether so many distributions of the numbers can be computed within the limits."""
    try:
        _check_work(keys_of(numbers), _sums(numbers, counts), one_outcome, laws)
    except ValidationError:
        return False
    return True


def _check_work(keys: int | None, sums: Sequence[_Sum], one_outcome: bool, laws: int) -> None:
    """Raise if the distributions take too many steps."""
    sizes = [1 if one_outcome else len(one.outcomes) for one in sums]
    wide = [one for one in sums if len(one.cells) > 1]
    if keys is None:
        if len(wide) > 1:
            raise ValidationError(
                f"noise: keys from 0 to 1 are summed in {len(wide)} numbers; the distribution of "
                "only one such number and its cells can be computed"
            )
        pieces = math.prod(1 if one_outcome else len(one.steps) for one in sums)
        cells = max((len(one.cells) for one in wide), default=0)
        steps, most = pieces * 2 * cells << cells, VOLUMES
    else:
        steps, most, closed = 0, WORK, 1
        for done, cell in enumerate(sorted({cell for one in sums for cell in one.cells}), 1):
            over = [one for one in wide if one.cells[0] <= cell <= one.cells[-1]]
            steps += closed * keys ** (1 + len(over))
            for one, size in zip(sums, sizes, strict=True):
                if one.cells and one.cells[-1] == cell:
                    closed *= size
            closed = min(closed, keys**done)  # no more outcomes than choices of keys
        steps += closed * OUTCOME
    steps *= laws
    if steps > most:
        raise ValidationError(
            f"noise: the joint distribution of {sum(len(one.numbers) for one in sums)} numbers "
            f"that keys link takes {short(steps)} steps here; the most is {most}"
        )


def _counted(
    sums: Sequence[_Sum], labels: Sequence[list[Outcome]], keys: int
) -> tuple[np.ndarray, list[int], int]:
    """Return the outcomes, the number of choices of keys for each, and the total number.

    Each row has the values of the numbers of all sums, one sum after the other.
    """
    cells = sorted({cell for one in sums for cell in one.cells})
    unit = keys ** len(cells)
    groups = []
    for one, own in zip(sums, labels, strict=True):
        by_key = [one.steps[place][1] for place in places_of_keys(one.steps, keys)]
        groups.append([[k for k, outcome in enumerate(by_key) if outcome == y] for y in own])
    # Axis 0 has the outcomes of closed sums, the other axes the keys of open ones.
    law: Any = np.ones(1, dtype=np.int64 if unit < 1 << 62 else object)
    order, opened = [place for place, one in enumerate(sums) if not one.cells], list[int]()
    closed = np.zeros((1, len(order)), dtype=int)  # the position among the outcomes of each sum

    def close(place: int, parts: Sequence[Any]) -> None:
        """Add a sum, one part of the distribution per outcome; drop impossible outcomes."""
        nonlocal law, closed
        law = np.concatenate(parts)
        kept = np.flatnonzero(law.any(axis=tuple(range(1, law.ndim))))
        law = law[kept]
        added, before = np.divmod(kept, len(closed))
        closed = np.column_stack([closed[before], added])
        order.append(place)

    for cell in cells:
        for place, one in enumerate(sums):
            if len(one.cells) > 1 and one.cells[0] == cell:
                opened.append(place)
                wider = np.zeros((*law.shape, keys), dtype=law.dtype)
                wider[..., 0] = law
                law = wider
        axes = tuple(1 + i for i, place in enumerate(opened) if cell in sums[place].cells)
        alone = [place for place, one in enumerate(sums) if one.cells == (cell,)]
        parts = []
        for choices in groups[alone[0]] if alone else [range(keys)]:
            part = np.zeros_like(law)
            for key in choices:
                part += np.roll(law, (key,) * len(axes), axes) if axes else law
            parts.append(part)
        if alone:
            close(alone[0], parts)
        else:
            (law,) = parts
        for place in [place for place in opened if sums[place].cells[-1] == cell]:
            axis = 1 + opened.index(place)
            opened.remove(place)
            close(place, [law.take(some, axis).sum(axis) for some in groups[place]])
    back = np.argsort(order)
    rows = [np.array(own)[one] for own, one in zip(labels, closed[:, back].T, strict=True)]
    return np.concatenate(rows, axis=1), law.tolist(), unit


def _volumes(
    sums: Sequence[_Sum], labels: Sequence[list[Outcome]]
) -> tuple[list[Outcome], list[int], int]:
    """Return the outcomes, the volume of keys from 0 to 1 for each, and the total volume."""
    unit = math.lcm(*(end.denominator for one in sums for end, _ in one.steps))
    pieces = []
    for one, own in zip(sums, labels, strict=True):
        ends = [0, *(int(end * unit) for end, _ in one.steps)]
        intervals = zip(ends, ends[1:], one.steps, strict=False)
        pieces.append([(low, high, y) for low, high, (_, y) in intervals if y in own])
    wide = next((place for place, one in enumerate(sums) if len(one.cells) > 1), None)
    inside = () if wide is None else sums[wide].cells
    count = len(inside)
    places = {one.cells[0]: place for place, one in enumerate(sums) if len(one.cells) == 1}
    found: dict[tuple[Outcome, ...], int] = {}
    lone = [one if place != wide else [(0, 1, ())] for place, one in enumerate(pieces)]
    for chosen in product(*lone):
        outcomes = [y for *_, y in chosen]
        volume = math.prod(
            chosen[place][1] - chosen[place][0]
            for cell, place in places.items()
            if cell not in inside
        )
        if wide is None:
            found[tuple(outcomes)] = found.get(tuple(outcomes), 0) + volume
            continue
        box = [chosen[places[cell]][:2] if cell in places else (0, unit) for cell in inside]
        start, widths = sum(low for low, _ in box), [high - low for low, high in box]
        corners = [
            (sum(some), -1 if r % 2 else 1)
            for r in range(count + 1)
            for some in combinations(widths, r)
        ]

        def below(z: int, corners: list[tuple[int, int]] = corners) -> int:
            return sum(sign * (z - at) ** count for at, sign in corners if at < z)

        for low, high, y in pieces[wide]:
            turns = range(0, count * unit, unit)
            mass = sum(below(turn + high - start) - below(turn + low - start) for turn in turns)
            outcomes[wide] = y
            found[tuple(outcomes)] = found.get(tuple(outcomes), 0) + volume * mass
    power = len({cell for one in sums for cell in one.cells})
    possible = {sum(outcomes, ()): volume for outcomes, volume in found.items() if volume}
    return [*possible], [*possible.values()], math.factorial(count) * unit**power
