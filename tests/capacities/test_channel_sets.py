"""Capacities of sets of channels."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from cvxleak import capacity, verify
from cvxleak.capacities import Capacity
from cvxleak.model import Channel, ChannelSet
from cvxleak.problem import Status, Stopped
from cvxleak.samples import channels_from_counts


def test_the_bracket_of_a_binary_set_is_attained_by_members():
    channels = ChannelSet([[0.85, 0.05], [0.1, 0.8]], [[0.95, 0.15], [0.2, 0.9]])
    bound = capacity(channels)
    most = capacity([[0.95, 0.05], [0.1, 0.9]])
    least = capacity([[0.85, 0.15], [0.2, 0.8]])
    assert bound.upper == pytest.approx(most.upper, abs=1e-8)
    assert 0 <= least.lower - bound.lower < 0.02
    assert bound.attained == pytest.approx(most.lower, abs=1e-8)
    assert verify(bound.certificate).passed


@pytest.mark.parametrize(("inputs", "outputs"), [(2, 3), (4, 4), (7, 5)])
def test_the_bracket_holds_for_every_member(inputs: int, outputs: int):
    rng = np.random.default_rng(inputs)
    rows = rng.dirichlet(np.ones(outputs), inputs)
    channels = ChannelSet(np.maximum(rows - 0.02, 0.0), np.minimum(rows + 0.03, 1.0))
    bound = capacity(channels)
    assert verify(bound.certificate).passed
    found = 0
    for _ in range(60):
        noise = rng.uniform(-0.02, 0.03, rows.shape)
        member = np.clip(rows + noise - noise.mean(axis=1, keepdims=True), 0.0, 1.0)
        member = Channel(member / member.sum(axis=1, keepdims=True))
        if member in channels:
            found += 1
            exact = capacity(member)
            assert bound.lower <= exact.upper
            assert exact.lower <= bound.upper
    assert found


def test_rows_that_were_listed_by_hand():
    # The worst input law of the nominal rows is not that of the worst member.
    channels = ChannelSet([[0.97, 0.0], [0.55, 0.35]], [[1.0, 0.03], [0.65, 0.45]])
    bound = capacity(channels)
    assert bound.upper >= capacity([[1.0, 0.0], [0.55, 0.45]]).lower
    assert bound.lower <= capacity([[0.97, 0.03], [0.65, 0.35]]).upper


@pytest.mark.parametrize("counts", [[[8, 9, 7], [10, 11, 8]], [[10, 10, 4], [9, 12, 3]]])
def test_the_upper_bound_is_the_capacity_with_all_vertices_as_inputs(counts):
    channels = channels_from_counts(counts, confidence=0.95)
    bound = capacity(channels)
    assert bound.status is Status.CERTIFIED
    rows = []
    for low, high in zip(channels.lower, channels.upper, strict=True):
        for order in permutations(range(3)):
            row = low.copy()
            for y in order:
                row[y] += min(high[y] - low[y], 1 - row.sum())
            rows.append(row)
    assert bound.upper == pytest.approx(capacity(rows).lower, abs=1e-6)
    assert bound.attained == pytest.approx(capacity(rows).lower, abs=1e-6)


def test_what_local_maxima_leave_open_is_not_put_down_to_rounding():
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.full(7, 0.7), size=4)
    open_ends = [
        bound
        for _ in range(10)
        if (
            bound := capacity(
                channels_from_counts([rng.multinomial(60, row) for row in rows], confidence=0.95)
            )
        ).status
        is not Status.CERTIFIED
    ]
    assert open_ends
    assert all(bound.stats["stopped"] is Stopped.NO_PROGRESS for bound in open_ends)
    assert all(bound.upper - (bound.attained or 0) < 0.1 * bound.upper for bound in open_ends)


def test_candidates_and_forgeries():
    channels = ChannelSet([[0.85, 0.05], [0.1, 0.8]], [[0.95, 0.15], [0.2, 0.9]])
    bound = capacity(channels)
    check = Capacity(channels).check([0.5, 0.5], bound=bound)
    assert check.feasible
    certificate = bound.certificate
    assert certificate is not None
    wider = {"lower": [[0.5, 0.0], [0.0, 0.5]], "upper": [[1.0, 0.5], [0.5, 1.0]]}
    assert not verify(replace(certificate, problem=wider)).passed
    assert not verify(
        replace(certificate, problem={"lower": [[0.9, 0.9]], "upper": [[1, 1]]})
    ).passed
