"""Time sharing: S is what its t and multipliers prove, sharp near log|X|, and columns lower it."""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from cvxleak.audit.worst_adversary.group import Group
from cvxleak.audit.worst_adversary.time_sharing import TimeSharing, mirrored, values_of
from cvxleak.mechanisms import random_rounding, truncated_geometric
from cvxleak.model import Expectation, Mechanism
from cvxleak.queries import count
from tests.audit.worst_adversary.statements import stated

GEOMETRIC = Mechanism(count(8), truncated_geometric(8, 0.5))


def at_uniform(group: Group, multiplier: float, target: float) -> TimeSharing:
    multipliers = np.array([multiplier, *np.zeros(len(group.limits.bounds))])
    return TimeSharing.of(group, group.lumped.uniform(), multipliers, target)


def test_maxima_are_maxima():
    group = stated(GEOMETRIC, 5.0).group
    sharing = at_uniform(group, 0.2, np.inf)
    rng = np.random.default_rng(0)
    for value, phi in zip(values_of(group), sharing.phi, strict=True):
        v = rng.dirichlet(np.full(len(value.rows), 0.5), size=2000)
        r = v @ value.rows
        base = value.base(sharing.scale, sharing.multipliers[1:])
        f = (xlogy(r, r) - r * sharing.log_output).sum(axis=1) + v @ base
        assert (f - sharing.scale * xlogy(v, v).sum(axis=1)).max() <= phi


def test_columns_find_what_no_sharing_exceeds():
    case = stated(GEOMETRIC, 0.97 * GEOMETRIC.space.max_entropy)
    sharp = 0.0950804  # what an adversary attains
    found = at_uniform(case.group, 1.0, sharp + 1e-5)
    assert sharp - 1e-7 <= found.bound <= sharp + 1e-5 < at_uniform(case.group, 1.0, np.inf).bound
    assert at_uniform(case.group, 1.0, sharp - 1e-4).bound > sharp - 1e-7


def test_columns_of_rows_with_zeros():
    mechanism = Mechanism(count(6), random_rounding(6, base=3))
    case = stated(mechanism, 0.9 * mechanism.space.max_entropy)
    far = at_uniform(case.group, 1.0, np.inf)
    near = at_uniform(case.group, 1.0, far.bound - 0.01)
    assert case.largest(np.random.default_rng(1)) <= near.bound <= far.bound - 0.01


def test_limits_lower_the_bound():
    floor = 0.95 * GEOMETRIC.space.max_entropy
    known = Expectation(range(9), at_most=3.5, query=count(8))
    case = stated(GEOMETRIC, floor, known=[known])
    free = at_uniform(stated(GEOMETRIC, floor).group, 0.25, 0.0)
    sharing = at_uniform(case.group, 0.25, free.bound - 0.005)
    assert case.largest(np.random.default_rng(2)) <= sharing.bound <= free.bound - 0.005
    assert sharing.multipliers[1:].max() > 0


def test_only_mirror_images_are_mirrored():
    lopsided = Mechanism(count(3), [[0.5, 0.5], [0.6, 0.4], [0.7, 0.3], [0.9, 0.1]])
    assert mirrored(stated(GEOMETRIC, 4.0).group)
    assert not mirrored(stated(lopsided, 1.0).group)
