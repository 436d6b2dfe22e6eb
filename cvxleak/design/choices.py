"""The worst adversaries of a channel among those who know the context given each value.

Without an entropy floor no adversary is worse (DALENIUS Theorem 2): the leakage about a record is
the largest capacity of a choice of one context for each value. There are few enough of them to
examine all, so none is missed. Under a floor, those with enough entropy are still the worst: the
contexts of a frequent value consist of many datasets.
"""

from __future__ import annotations

import numpy as np

from cvxleak.audit.worst_adversary.ascent import PROGRESS
from cvxleak.audit.worst_adversary.choices import entropies, leakages, places_of
from cvxleak.audit.worst_adversary.interior_point import STEPS
from cvxleak.core.validation import Array
from cvxleak.model import Lumped

__all__ = ["worst_choices"]


def worst_choices(lumped: Lumped, floor: float, most: int) -> list[tuple[float, Array]]:
    """Return the leakage to the worst choices and their priors, the worst first.

    Each has an entropy of at least `floor`. Of choices with the same rows, the one with the largest
    entropy is returned: without a floor they are the same adversary.

    Examples
    --------
    The bit through a channel that flips it with probability 0.1, and perhaps lets it pass:

    >>> import numpy as np
    >>> from cvxleak.model import Lumped
    >>> from cvxleak.design.choices import worst_choices
    >>> rows = np.array([[0.9, 0.1], [1.0, 0.0], [0.1, 0.9]])
    >>> lumped = Lumped([0, 1], [0, 1], np.array([0, 0, 1]), rows, [3, 1, 4], [(0,), (1,), (2,)])
    >>> [round(value, 3) for value, _ in worst_choices(lumped, 0.0, 5)]
    [0.529, 0.368]
    >>> [round(value, 3) for value, _ in worst_choices(lumped, 1.6, 5)]
    [0.368]
    """
    places = places_of(lumped)
    if places is None:
        return []
    rows, units = lumped.rows[places], np.eye(places.shape[1])
    learned, _, inputs = leakages(rows, units, None, steps=STEPS, sharp=PROGRESS)
    doubt = entropies(lumped, places, inputs)
    able = np.flatnonzero(doubt >= floor)
    able = able[np.argsort(-doubt[able], kind="stable")]
    _, same = np.unique(lumped.rows, axis=0, return_inverse=True)
    kinds = np.sort(same.ravel()[places[able]], axis=1)
    able = able[np.unique(kinds, axis=0, return_index=True)[1]]
    able = able[np.argsort(-learned[able], kind="stable")][:most]
    weights = np.zeros((len(able), len(lumped.multiplicities)))
    np.put_along_axis(weights, places[able], inputs[able], axis=1)
    return list(zip(learned[able].tolist(), weights, strict=True))
