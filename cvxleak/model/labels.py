"""Matching a channel and a distortion that callers give: by label where both have any.

No certificate leaves that open, so the checker does not load this module.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array
from cvxleak.model.channel import Labels, as_channel
from cvxleak.model.distortion import Distortion, distortion_entries, named_distortion
from cvxleak.model.prior import has_labels

__all__ = ["channel_labels", "distortion_matrix"]


def channel_labels(channel: object) -> tuple[Labels | None, Labels | None]:
    """Return the labels of a channel's inputs and outputs, if it has any: an array has none."""
    if not has_labels(channel):
        return None, None
    labeled = as_channel(channel)  # pyright: ignore[reportArgumentType]
    return labeled.inputs, labeled.outputs


def distortion_matrix(
    distortion: Distortion | ArrayLike,
    shape: tuple[int, int],
    inputs: Labels | None,
    outputs: Labels | None,
) -> Array:
    """Return d(x, y) for a channel of this shape, whose inputs and outputs may have labels.

    A `Distortion` is matched to the labels, if there are any; everything else by position. The name
    of one ("absolute") is that between the labels.
    """
    if isinstance(distortion, str):
        rows, columns = inputs or range(shape[0]), outputs or range(shape[1])
        matrix = named_distortion(distortion, rows, columns, "distortion").matrix
    elif isinstance(distortion, Distortion):
        matrix = distortion.select(inputs, outputs, "distortion").matrix
    else:
        matrix = distortion_entries(distortion, "distortion")
    if matrix.shape != shape:
        raise ValidationError(
            f"distortion: found shape {matrix.shape}; the channel has shape {shape}"
        )
    return matrix
