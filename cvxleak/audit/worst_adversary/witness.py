"""The term of a lower end: an adversary as a certificate holds it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any

import numpy as np

from cvxleak.audit.worst_adversary.group import LEAST, Group, Term
from cvxleak.core.validation import Array
from cvxleak.kernel.leakage import RecordLeakage
from cvxleak.kernel.numbers import precision
from cvxleak.model import Lumped
from cvxleak.problem import Bound
from cvxleak.problem.curve import certificate_of
from cvxleak.proofs.format import Certificate, plain

__all__ = ["joint", "listed", "point", "points_of"]


def point(group: Group, place: int, weights: Array, held: Sequence[Any], cells: Term) -> Term:
    """Return the term of an adversary about the group at a place of the statement.

    `held` are the weights as a file holds them, and `cells` those of a real output. Over a set of
    channels the posteriors are those of the channel in the middle.
    """
    term = {"rule": "point", **cells, "group": place, "weights": list(held)}
    if group.boxes is not None:
        found = np.maximum(joint(weights, group.lumped), LEAST)
        term["posteriors"] = (found / found.sum(axis=0)).tolist()
    return term


def joint(weights: Array, rows: Lumped) -> Array:
    """Return the probabilities of values and outputs, shape (k, outputs)."""
    return np.add.reduceat(weights[:, None] * rows.rows, rows.starts, axis=0)


def _statement_of(bound: Bound) -> tuple[RecordLeakage, Certificate]:
    made = certificate_of(bound)
    with precision():
        return RecordLeakage.read(plain(made.problem)), made


def listed(bound: Bound, records: Sequence[int]) -> tuple[int, ...]:
    """Return a group in an order of its records in which a certificate is about it."""
    statement, _ = _statement_of(bound)
    groups, run_of = set(statement.groups), statement.space.run_of
    return next(some for some in permutations(records) if tuple(map(run_of, some)) in groups)


def points_of(bound: Bound, records: Sequence[int]) -> Callable[[Array], Term]:
    """Return how a certificate of the same problem holds an adversary's weights about a group."""
    statement, made = _statement_of(bound)
    runs = tuple(map(statement.space.run_of, records))
    place = statement.groups.index(runs)
    output = statement.output
    cells = {} if output is None else {key: made.witness[key] for key in output.lower}
    group = Group.of(statement.views[place]) if output is None else None

    def term(weights: Array) -> Term:
        if group is None:
            return {"rule": "point", **cells, "group": place, "weights": weights.tolist()}
        return point(group, place, weights, weights.tolist(), cells)

    return term
