"""The leakage at many entropy floors between those of a report: the curve of its picture."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cvxleak.core.clock import WORK_LIMIT, Clock
from cvxleak.core.validation import Array
from cvxleak.model import Knowledge, Mechanism
from cvxleak.problem.bound import unit_scale
from cvxleak.report import names
from cvxleak.report.progress import Progress, solved
from cvxleak.report.quantity import Quantity
from cvxleak.report.targets import Target

__all__ = ["leakage_points"]

FIRST = 9
"""Floors to begin with, evenly apart; more are added where the curve falls."""

STEP = 0.02
"""Most by which the curve may fall between neighbors, as a part of its height: with 0.04 the end of
a plateau is still seen to be cut off."""

NARROWEST = 1 / 500
"""Least distance of two floors, as a part of the width: about a pixel."""

MOST_PARTS = 4
"""Into how many parts a stretch is cut at once: where in it the curve falls is not known yet."""

TOLERANCE = 0.005
"""Relative gap: about the width of the line."""

ENOUGH = 0.01
"""Part of the work below which no round is begun. Each may take half of what is left; what is still
open after that is shaded."""


def leakage_points(
    mechanism: Mechanism,
    target: Target,
    quantities: Sequence[Quantity],
    unit: str,
    time_limit: float | None,
    progress: Progress,
    adversaries: Knowledge | None = None,
) -> dict[str, Any]:
    """Return the leakage at the floors that were audited, and at many between them.

    The leakage does not rise with the floor (DALENIUS Lemma 1), so a lower bound holds at all lower
    floors, and an upper bound at all higher ones.
    """
    from cvxleak.audit import leakage_curve

    scale = unit_scale(unit)
    clock = Clock(time_limit, WORK_LIMIT)
    audited = [q for q in quantities if _is_about(q, target)]
    found = [(q.entropy_floor or 0.0, q.lower, q.upper) for q in audited]
    most = mechanism.space.max_entropy / scale
    if adversaries is not None:  # how much uncertainty they can have is not known here
        most = max(floor for floor, _, _ in found)
    wanted = np.linspace(0.0, most, FIRST)
    classes = list(mechanism.groups(target.size))
    records = classes[0] if target.size > 1 else target.record
    if target.size > 1 and len(classes) > 1:  # which of them is the worst changes with the floor
        wanted = wanted[:0]
    while len(new := np.setdiff1d(wanted, [floor for floor, _, _ in found])):
        if progress.interrupted or clock.part_left < ENOUGH:
            break
        where = f"entropy floor {new[0]:.3g} {unit}"
        if len(new) > 1:
            where = f"one of {len(new)} entropy floors, {new[0]:.3g} to {new[-1]:.3g} {unit}"
        curve = solved(
            progress,
            f"leakage at {where}",
            leakage_curve,
            mechanism=mechanism,
            entropy_floors=np.minimum(new * scale, mechanism.space.max_entropy),
            records=records,
            adversaries=adversaries,
            tol=TOLERANCE,
            time_limit=clock.share(2),
            work_limit=clock.limits["work_limit"] / (2 * len(new)),
            progress=progress.update,
        ).to(unit)
        found += zip(new.tolist(), curve.lower.tolist(), curve.upper.tolist(), strict=True)
        wanted = _between(_monotone(found))
    points = _monotone(found)
    return {"about": target.subject, "size": target.size, "points": points.tolist()}


def _is_about(quantity: Quantity, target: Target) -> bool:
    """Whether a quantity is a leakage to the adversaries of one floor about a target."""
    if target.size > 1:
        is_group = isinstance(quantity.record, tuple) and len(quantity.record) == target.size
        return quantity.name == names.GROUP_LEAKAGE and is_group
    same = target.record in (None, quantity.record)
    return quantity.name == names.RECORD_LEAKAGE and same


def _monotone(found: Sequence[tuple[float, float, float]]) -> Array:
    """Return rows of floor, lower and upper bound in order, neither end of which ever rises."""
    floors, lower, upper = np.array(sorted(found)).T
    lower = np.maximum.accumulate(lower[::-1])[::-1]
    return np.stack([floors, lower, np.minimum.accumulate(upper)], axis=1)


def _between(points: Array) -> Array:
    """Return floors inside the stretches over which an end falls too far, evenly apart."""
    floors, *ends = points.T
    falls = -np.min([np.diff(end) for end in ends], axis=0) / (STEP * max(ends[1][0], 1e-12))
    room = np.diff(floors) / (NARROWEST * (floors[-1] - floors[0]))
    parts = np.minimum(np.ceil(falls - 1e-9), np.floor(room)).astype(int)
    inside = [
        np.linspace(low, high, count + 1)[1:-1]
        for low, high, count in zip(floors, floors[1:], np.minimum(parts, MOST_PARTS), strict=False)
        if count > 1
    ]
    return np.concatenate([np.zeros(0), *inside])
