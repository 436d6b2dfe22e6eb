"""Groups of records for tests, and what the kernel says of the terms about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxleak.audit.worst_adversary.group import Group, Term
from cvxleak.kernel.claims import LOADED
from cvxleak.kernel.leakage import RecordLeakage, check_adversary, gain_of
from cvxleak.kernel.numbers import RefusedError, ball, law, lower, precision, proved, upper
from cvxleak.model import Mechanism
from cvxleak.model.gain_form import LEAKAGE, GainForm
from cvxleak.model.knowledge.binding import as_knowledge

assert LOADED is not None  # the rules that terms may name


@dataclass(frozen=True)
class Stated:
    """A statement about one group."""

    statement: RecordLeakage
    group: Group

    def proved(self, term: Term) -> float:
        """Return the upper end that the kernel concludes from a term."""
        with precision():
            return upper(self.statement.upper({"rule": "max", "groups": [[term]]}))

    def attained(self, weights: Any) -> float | None:
        """Return J of a distribution on the groups of contexts, None if it is no adversary."""
        view = self.group.view
        with precision():
            w = law([proved(float(x)) for x in weights])
            try:
                check_adversary(view, w)
            except RefusedError:
                return None
            return lower(gain_of(view, [ball(x) for x in w]))

    def largest(self, rng: np.random.Generator, tries: int = 300) -> float:
        """Return the largest J of some adversaries: mixtures with the uniform prior."""
        lumped = self.group.lumped
        found = []
        for w in rng.dirichlet(np.full(len(lumped.rows), 0.3), size=tries):
            share = rng.choice([0.0, 0.1, 0.3, 0.6, 0.9])
            found.append(self.attained((1 - share) * w + share * lumped.uniform()))
        return max((x for x in found if x is not None), default=-np.inf)


def stated(
    mechanism: Mechanism, floor: float, told: GainForm = LEAKAGE, known: Any = (), record: int = 0
) -> Stated:
    """Return the statement about a record of a mechanism."""
    problem = {
        "mechanism": mechanism.to_dict(),
        "entropy_floor": floor,
        "size": 1,
        "records": [[record]],
        **told.to_dict(),
    }
    if known:
        bound = as_knowledge(known, mechanism.query)
        problem["adversaries"] = [one.to_dict() for one in bound]
    with precision():
        statement = RecordLeakage.read(problem)
        return Stated(statement, Group.of(statement.views[0], told))
