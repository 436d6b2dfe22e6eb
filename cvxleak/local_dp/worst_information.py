"""The largest information of a channel over a source set."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from cvxleak.core.validation import Array
from cvxleak.measures import mutual_information
from cvxleak.model import Channel
from cvxleak.sources import SourceSet

__all__ = ["divergences", "worst_information", "worst_laws"]


def worst_information(sources: SourceSet, channel: Channel) -> float:
    """Return max I(P;Q) over the set; an upper bound on it unless all parts are single points."""
    return max(value for value, _ in worst_laws(sources, channel))


def worst_laws(sources: SourceSet, channel: Channel) -> list[tuple[float, Array]]:
    """Return for each part an upper bound on I(P;Q), and a distribution that nearly attains it."""
    found = []
    for part in sources.parts:
        if part.is_point:
            law = part.points[0] / part.points[0].sum()
            found.append((mutual_information(channel, law), law))
        else:
            alone = SourceSet._of([part], sources.labels)
            found.append(_largest_information(alone, channel.matrix))
    return found


def _largest_information(sources: SourceSet, matrix: Array) -> tuple[float, Array]:
    """Maximize the concave I(P;Q) by Frank and Wolfe's method; return upper bound and maximizer."""
    from scipy.optimize import minimize_scalar

    p, least = sources.worst(np.zeros(sources.size))[1].probabilities, math.inf
    for _ in range(500):
        divergence = divergences(matrix, p @ matrix)
        upper, vertex = sources.worst(divergence)
        least = min(least, upper)
        value = float(p @ np.where(p > 0, divergence, 0.0))
        if least - value <= 1e-9:
            break
        direction = vertex.probabilities - p

        def loss(step: float, p: Array = p, direction: Array = direction) -> float:
            law = p + step * direction
            return -float(law @ np.where(law > 0, divergences(matrix, law @ matrix), 0.0))

        step: Any = minimize_scalar(loss, bounds=(0.0, 1.0), method="bounded")
        p = p + float(step.x) * direction
    return least, p


def divergences(matrix: Array, t: Array) -> Array:
    """Return D(Q_x || t) for each row, a large number where it is infinite."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(matrix > 0, matrix * np.log(matrix / t), 0.0)
    total = terms.sum(axis=1)
    return np.where(np.isfinite(total), total, 1e6)
