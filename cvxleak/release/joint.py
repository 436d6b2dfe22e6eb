"""`ReleaseJoint`: the joint distribution of a request, earlier outputs and the dataset."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import (
    Array,
    composed_rows,
    frozen_array,
    in_order,
    label_tuple,
    probability_rows,
    read_only,
)
from cvxleak.core.value import Value
from cvxleak.model import Channel, Prior, as_channel, as_prior

__all__ = ["ReleaseJoint"]


@dataclass(frozen=True, eq=False)
class ReleaseJoint(Value):
    """The joint distribution p(r, z_1, ..., z_j, x) of request R, earlier outputs Z and dataset X.

    Parameters
    ----------
    array : array_like, shape (R, Z_1, ..., Z_j, X)
        The first axis is the request, the last the dataset, with one axis in between for each
        earlier output, if any. It sums to 1 within 1e-9 and is taken as written.
    requests, datasets : iterable of hashable, optional
        Labels of the first and of the last axis; 0, 1, ... if left out.
    earlier : iterable of iterables, optional
        Labels of each axis in between.
    names : iterable of hashable, optional
        Names of the axes in between (of the parties, for example), which coalitions may refer to;
        0, 1, ... if left out.

    Raises
    ------
    ValidationError
        Not a distribution, or labels that do not match it.

    Examples
    --------
    >>> from cvxleak.release import ReleaseJoint
    >>> joint = ReleaseJoint([[[0.45, 0.05]], [[0.05, 0.45]]], datasets=["well", "ill"])
    >>> joint.shape, joint.names
    ((2, (1,), 2), (0,))
    """

    array: Array
    requests: tuple[Hashable, ...]
    earlier: tuple[tuple[Hashable, ...], ...]
    datasets: tuple[Hashable, ...]
    names: tuple[Hashable, ...]

    def __init__(
        self,
        array: ArrayLike,
        requests: Iterable[Hashable] | None = None,
        earlier: Iterable[Iterable[Hashable]] | None = None,
        datasets: Iterable[Hashable] | None = None,
        names: Iterable[Hashable] | None = None,
    ) -> None:
        try:
            axes = np.ndim(array)  # pyright: ignore[reportArgumentType]
        except ValueError:
            axes = 2  # rows of unequal length, which the next line complains about
        law = frozen_array(array, "joint", max(axes, 2))
        if law.size == 0:
            raise ValidationError(f"joint: found shape {law.shape}; it must not be empty")
        probability_rows(law.ravel(), "joint", 1)
        sizes = law.shape[1:-1]
        given = [None] * len(sizes) if earlier is None else list(in_order(earlier, "earlier"))
        if len(given) != len(sizes):
            raise ValidationError(
                f"earlier: found labels of {len(given)} outputs; there are {len(sizes)}"
            )
        labels = tuple(
            label_tuple(part, size, f"earlier[{i}]")
            for i, (part, size) in enumerate(zip(given, sizes, strict=True))
        )
        object.__setattr__(self, "array", law)
        object.__setattr__(self, "requests", label_tuple(requests, law.shape[0], "requests"))
        object.__setattr__(self, "earlier", labels)
        object.__setattr__(self, "datasets", label_tuple(datasets, law.shape[-1], "datasets"))
        object.__setattr__(self, "names", label_tuple(names, len(sizes), "names"))

    @classmethod
    def of(cls, joint: ReleaseJoint | ArrayLike) -> ReleaseJoint:
        """Return the distribution given as an array, a pandas Series, or a `ReleaseJoint`."""
        if isinstance(joint, ReleaseJoint):
            return joint
        return cls.from_pandas(joint) if hasattr(joint, "iloc") else cls(joint)

    @classmethod
    def from_pandas(cls, series: Any) -> Self:
        """Return the distribution in a Series, indexed by request, earlier outputs and dataset.

        Combinations that are not listed have probability zero. The names of the levels between
        the first and the last become the names of the earlier outputs.

        Raises
        ------
        ValidationError
            Not a Series, fewer than two levels, or a combination that is listed twice.

        Examples
        --------
        >>> import pandas as pd
        >>> from cvxleak.release import ReleaseJoint
        >>> law = pd.Series({("no", "well"): 0.5, ("yes", "ill"): 0.5})
        >>> ReleaseJoint.from_pandas(law).requests
        ('no', 'yes')
        """
        index = getattr(series, "index", None)
        levels = getattr(index, "nlevels", 0)
        if levels < 2 or getattr(series, "ndim", 0) != 1:
            raise ValidationError(
                "joint: expected a Series whose index has the levels request, earlier outputs "
                f"(if any) and dataset; found {levels} levels"
            )
        keys = [tuple(key) for key in index.tolist()]  # pyright: ignore[reportOptionalMemberAccess]
        if len(set(keys)) != len(keys):
            raise ValidationError("joint: a combination is listed twice")
        labels = [tuple(dict.fromkeys(key[i] for key in keys)) for i in range(levels)]
        places = [{label: n for n, label in enumerate(part)} for part in labels]
        array = np.zeros([len(part) for part in labels])
        for key, value in zip(keys, series.to_numpy(), strict=True):
            array[tuple(place[label] for place, label in zip(places, key, strict=True))] = value
        names = index.names[1:-1]  # pyright: ignore[reportOptionalMemberAccess]
        return cls(
            array,
            labels[0],
            labels[1:-1],
            labels[-1],
            None if None in names else names,
        )

    @classmethod
    def of_history(
        cls,
        prior: Prior | ArrayLike,
        request: Channel | ArrayLike,
        kernels: Sequence[ArrayLike] = (),
    ) -> Self:
        """Return the joint distribution after releases: p(x) p(r|x) k_1(z_1|x) k_2(z_2|z_1,x) ...

        Parameters
        ----------
        prior : Prior or array_like, shape (X,)
            p(x).
        request : Channel or array_like, shape (X, R)
            p(r|x). R depends on the dataset alone: given X, it is independent of the earlier
            outputs. For any other dependence pass the array itself.
        kernels : sequence of array_like, shapes (X, Z_1), (Z_1, X, Z_2), (Z_1, Z_2, X, Z_3), ...
            The kernels of the earlier releases, `ReleaseProblem.solve().witness` each.

        Raises
        ------
        ValidationError
            Parts that are not stochastic or do not match each other.

        Examples
        --------
        >>> from cvxleak.release import ReleaseJoint
        >>> tell = [[0.9, 0.1], [0.1, 0.9]]
        >>> ReleaseJoint.of_history([0.5, 0.5], tell, [tell]).array.round(3)[:, 0, :]
        array([[0.405, 0.005],
               [0.045, 0.045]])
        """
        rows = as_channel(request, "request")
        law = as_prior(prior, rows.shape[0], "prior", rows.inputs).probabilities
        joint: Array = law / law.sum()
        for number, kernel in enumerate(kernels):
            name = f"kernels[{number}]"
            steps = frozen_array(kernel, name, number + 2)
            probability_rows(steps.reshape(-1, steps.shape[-1]), name, 2)
            if steps.shape[:-1] != joint.shape:
                raise ValidationError(
                    f"{name}: found shape {steps.shape}; the first axes must be {joint.shape}"
                )
            joint = np.moveaxis(joint[..., None] * composed_rows(steps), -1, -2)
        matrix = rows.matrix / rows.matrix.sum(axis=1, keepdims=True)
        array = np.stack([joint * matrix[:, r] for r in range(rows.shape[1])])
        return cls(array / array.sum(), rows.outputs, None, rows.inputs)

    @property
    def shape(self) -> tuple[int, tuple[int, ...], int]:
        """The numbers of requests, of values of each earlier output, and of datasets."""
        return self.array.shape[0], self.array.shape[1:-1], self.array.shape[-1]

    @property
    def flat(self) -> Array:
        """The distribution with all earlier outputs as one, shape (R, Z, X)."""
        requests, _, datasets = self.shape
        return read_only(self.array.reshape(requests, -1, datasets))
