"""What the kernel proves of a lumped problem by what a search stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from flint import arb, fmpz

from cvxleak.audit.old_terms import group_terms
from cvxleak.kernel.claims import LOADED
from cvxleak.kernel.numbers import ball, law, least, precision, proved, upper
from cvxleak.kernel.terms import Leaf, Shape, read_term
from cvxleak.kernel.view import Limit, Row, View
from cvxleak.model import Limits, Lumped

assert LOADED  # the rules that terms may name


def view_of(lumped: Lumped, floor: float, limits: Limits | None = None) -> View:
    """Return the kernel's view of a lumped problem, in the same order."""
    rows = [law([proved(float(x)) for x in row], "a row") for row in lumped.rows]
    counts = list(lumped.multiplicities)
    known = []
    if limits is not None:
        stored = zip(limits.coefficients, limits.bounds, limits.shares, strict=True)
        known = [
            Limit([proved(float(c)) for c in own], proved(float(bound)), proved(float(share)))
            for own, bound, share in stored
        ]
    return View(
        [Row([ball(x) for x in row], key=tuple(row)) for row in rows],
        counts,
        [arb(fmpz(m)).log() for m in counts],
        [np.flatnonzero(lumped.value_index == a).tolist() for a in range(len(lumped.values))],
        ball(proved(float(floor))).min(arb(fmpz(sum(counts))).log()),
        limits=known,
    )


def proved_bound(
    lumped: Lumped, floor: float, entry: Mapping[str, Any], limits: Limits | None = None
) -> float:
    """Return the least bound that an entry of a search proves."""
    with precision():
        view = view_of(lumped, floor, limits)
        terms = group_terms(entry, view, np.eye(len(view.limits)))
        shape = Shape(view)
        return upper(least([read_term(t, "B", shape).conclude(view, Leaf()) for t in terms]))
