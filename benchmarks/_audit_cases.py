"""The audits that are compared: one record of a mechanism, under an entropy floor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cvxleak.mechanisms import generalized_symmetric, random_rounding, truncated_geometric
from cvxleak.model import Lumped, Mechanism, RecordSpace
from cvxleak.queries import count, modular_sum, pair_sum


@dataclass(frozen=True)
class Case:
    name: str
    mechanism: Mechanism
    floor: float

    @property
    def lumped(self) -> Lumped:
        return self.mechanism.lumped(0)


def three_valued() -> Mechanism:
    """Return a record of 3 values with 4 contexts and 3 outputs: no two rows are alike."""
    rng = np.random.default_rng(20261120)
    rows = np.concatenate([rng.dirichlet(np.ones(3), size=4) for _ in range(3)])
    return Mechanism.from_channel(RecordSpace([range(3), range(4)]), rows)


def _noisy_sum(n: int, m: int, flip: float) -> Mechanism:
    return Mechanism(modular_sum(n, m), generalized_symmetric(m, flip))


def _geometric(n: int, epsilon: float) -> Mechanism:
    return Mechanism(count(n), truncated_geometric(n, epsilon))


def _pair_sum(n: int, flip: float) -> Mechanism:
    query = pair_sum(n)
    return Mechanism(query, generalized_symmetric(len(query.values), flip).matrix)


CASES = [
    Case(f"{label}, b = {floor:g}", mechanism, floor)
    for label, mechanism, floors in [
        ("parity, n = 4, flip 0.3033", _noisy_sum(4, 2, 0.3033), (2.495, 1.0)),
        ("sum mod 4, n = 6, flip 0.2", _noisy_sum(6, 4, 0.2), (3.327,)),
        ("sum mod 3, n = 6, flip 0.1", _noisy_sum(6, 3, 0.1), (3.743,)),
        ("rounding to 3, n = 4", Mechanism(count(4), random_rounding(4, 3)), (1.5, 2.4)),
        ("rounding to 3, n = 6", Mechanism(count(6), random_rounding(6, 3)), (3.0, 3.9)),
        ("geometric, n = 3, epsilon 1", _geometric(3, 1.0), (1.2, 1.9)),
        ("geometric, n = 5, epsilon 0.5", _geometric(5, 0.5), (3.0,)),
        ("pair sum, n = 4, flip 0.3", _pair_sum(4, 0.3), (1.5, 2.5)),
        ("3 values, 4 contexts", three_valued(), (1.2, 2.1)),
    ]
    for floor in floors
]
