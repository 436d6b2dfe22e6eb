"""Audits of channels that are only known to lie in a set: what holds for every member."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cvxleak import Mechanism, leakage_curve, record_leakage, verify
from cvxleak.audit import Adversary, RecordLeakage, group_leakage
from cvxleak.core import ValidationError
from cvxleak.measures import mutual_information
from cvxleak.mechanisms import binary_symmetric, random_rounding, truncated_geometric
from cvxleak.model import (
    Channel,
    ChannelSet,
    Expectation,
    KnownMarginals,
    Query,
    RelativeEntropyBall,
)
from cvxleak.problem import Status
from cvxleak.queries import count, parity

FLOOR = 1.2


def around(matrix: Any, width: float) -> ChannelSet:
    rows = np.asarray(matrix)
    return ChannelSet(np.maximum(rows - width, 0.0), np.minimum(rows + width, 1.0))


def members(channels: ChannelSet, many: int, seed: int = 0):
    """Yield members: at vertices of the rows' boxes, and inside of them."""
    rng = np.random.default_rng(seed)
    low, high = channels.lower, channels.upper
    for place in range(many):
        rows = np.empty_like(low)
        for x in range(len(low)):
            row, room = low[x].copy(), 1 - low[x].sum()
            for y in rng.permutation(len(row)):
                step = min(high[x, y] - low[x, y], room)
                row[y] += step
                room -= step
            rows[x] = row
        share = 0.5 if place % 3 == 0 else 0.0
        yield Channel((1 - share) * rows + share * channels.center.matrix)


@pytest.mark.parametrize(
    ("query", "matrix", "width", "floor"),
    [
        (count(3), truncated_geometric(3, 1.0).matrix, 2e-3, FLOOR),
        (count(3), truncated_geometric(3, 1.0).matrix, 1e-3, 0.0),
        (count(4), random_rounding(4, base=3).matrix, 2e-3, 2.0),
        (parity(3), binary_symmetric(0.2).matrix, 0.03, 1.8),
    ],
)
def test_the_bracket_holds_for_every_member(query: Query, matrix: Any, width: float, floor: float):
    channels = around(matrix, width)
    bound = record_leakage(Mechanism(query, channels), floor, tol=1e-2, time_limit=30)
    assert bound.attained is not None
    assert bound.lower <= bound.attained <= bound.upper
    assert bound.set_width == pytest.approx(bound.attained - bound.lower)
    assert verify(bound.certificate).passed
    for member in members(channels, 9):
        exact = record_leakage(Mechanism(query, member.matrix), floor, tol=1e-3)
        assert bound.lower <= exact.upper
        assert exact.lower <= bound.upper


@pytest.mark.parametrize(
    ("adversaries", "floor"),
    [
        (KnownMarginals([0.8, 0.2]), 0.9),
        (RelativeEntropyBall(0.3, laws=[0.7, 0.3]), 0.0),
        pytest.param(
            [KnownMarginals([0.6, 0.4], records=[0]), Expectation([0, 1, 2], at_most=0.8)],
            0.0,
            marks=pytest.mark.slow,
        ),
    ],
)
def test_classes_of_adversaries_and_sets_of_channels(adversaries: Any, floor: float):
    channels = around(truncated_geometric(2, 1.0).matrix, 2e-3)
    problem = RecordLeakage(Mechanism(count(2), channels), floor, adversaries=adversaries)
    bound = problem.solve(tol=1e-2)
    assert bound.status is Status.CERTIFIED
    assert verify(bound.certificate).passed
    assert bound.upper < record_leakage(Mechanism(count(2), channels), floor, tol=1e-2).upper
    for member in members(channels, 2):
        mechanism = Mechanism(count(2), member.matrix)
        exact = record_leakage(mechanism, floor, adversaries=adversaries, tol=1e-2)
        assert bound.lower <= exact.upper
        assert exact.lower <= bound.upper
    check = problem.check(bound.witness, bound=bound)
    assert check.feasible
    assert bound.lower <= check.value <= bound.upper
    assert problem.repair(bound.witness, bound=bound).lower == pytest.approx(bound.lower)


def test_boxes_make_contexts_alike_and_not_their_centers():
    rows = np.array([[0.5, 0.5]] * 3)
    wide = np.array([[0.1], [0.1], [0.2]])
    unlike = Mechanism(count(2), ChannelSet(rows - wide, rows + wide))
    fair = KnownMarginals([0.5, 0.5], records=[0])
    told = record_leakage(unlike, 0.0, adversaries=fair, tol=1e-2)
    assert told.lower == 0
    assert told.upper >= mutual_information([[0.6, 0.4], [0.3, 0.7]], [0.5, 0.5])


def test_the_brackets_of_smaller_sets_are_inside():
    matrix = truncated_geometric(3, 1.0).matrix
    wide, narrow = (
        record_leakage(Mechanism(count(3), around(matrix, width)), FLOOR, tol=1e-3)
        for width in (4e-3, 1e-3)
    )
    exact = record_leakage(Mechanism(count(3), matrix), FLOOR, tol=1e-3)
    assert wide.lower < narrow.lower < exact.lower
    assert exact.lower < narrow.upper < wide.upper * (1 + 1e-3)
    assert narrow.set_width < wide.set_width / 2


def test_a_set_of_one_channel_is_the_channel():
    matrix = random_rounding(4, base=3).matrix
    one = record_leakage(Mechanism(count(4), ChannelSet(matrix, matrix)), 2.0, tol=1e-3)
    exact = record_leakage(Mechanism(count(4), matrix), 2.0, tol=1e-3)
    assert one.status is exact.status
    assert one.set_width == pytest.approx(0.0, abs=1e-9)
    assert (one.lower, one.upper) == pytest.approx((exact.lower, exact.upper), rel=2e-3)


def test_rows_of_a_box_are_not_taken_for_equal():
    # All rows have the same box and the same center, and yet may tell the data.
    channels = ChannelSet(np.full((4, 2), 0.4), np.full((4, 2), 0.6))
    bound = record_leakage(Mechanism(count(3), channels), FLOOR, tol=1e-2)
    told = record_leakage(
        Mechanism(count(3), [[0.6, 0.4], [0.5, 0.5], [0.5, 0.5], [0.4, 0.6]]), FLOOR
    )
    assert bound.lower == 0.0
    assert told.lower > 0.004
    assert bound.upper >= told.lower


def test_groups_curves_and_refinement():
    mechanism = Mechanism(count(3), around(truncated_geometric(3, 1.0).matrix, 1e-3))
    pair = group_leakage(mechanism, FLOOR, 2, tol=1e-2)
    exact = group_leakage(Mechanism(count(3), mechanism.noise.center.matrix), FLOOR, 2, tol=1e-2)  # pyright: ignore[reportAttributeAccessIssue]
    assert pair.lower <= exact.upper
    assert exact.lower <= pair.upper
    curve = leakage_curve(mechanism, [0.0, FLOOR], tol=1e-2)
    assert all(verify(bound.certificate).passed for bound in curve.bounds)
    finer = curve.bounds[1].refine(1e-3)
    assert finer.upper <= curve.bounds[1].upper
    assert finer.to("bits").attained == pytest.approx(finer.attained / np.log(2))  # pyright: ignore[reportOptionalOperand]


def test_adversaries_are_judged_at_the_center():
    mechanism = Mechanism(count(3), around(truncated_geometric(3, 1.0).matrix, 1e-3))
    problem = RecordLeakage(mechanism, FLOOR)
    bound = problem.solve(tol=1e-3)
    assert isinstance(bound.witness, Adversary)
    check = problem.check(bound.witness, bound=bound)
    assert check.feasible
    assert bound.lower <= check.value <= bound.upper
    assert problem.repair(bound.witness, bound=bound).lower == pytest.approx(bound.lower)


def test_forged_sets_are_refused():
    mechanism = Mechanism(count(3), around(truncated_geometric(3, 1.0).matrix, 1e-3))
    certificate = record_leakage(mechanism, FLOOR, tol=1e-3).certificate
    assert certificate is not None
    known = certificate.problem["mechanism"]
    wider = {
        **known["channel_set"],
        "upper": np.minimum(np.array(known["channel_set"]["upper"]) + 0.01, 1.0).tolist(),
    }
    forged = {**certificate.problem, "mechanism": {**known, "channel_set": wider}}
    assert not verify(replace(certificate, problem=forged)).passed
    ((*others, cover),) = certificate.proof["groups"]
    assert cover["rule"] == "cells"
    for change in (
        {"rule": "slabs"},
        {"parts": [[0, 1], [2], [3]]},
        {"symmetries": cover["nodes"]},
    ):
        bad = replace(certificate, proof={"rule": "max", "groups": [[*others, cover | change]]})
        assert not verify(bad).passed


def test_what_needs_one_channel_says_so():
    mechanism = Mechanism(count(3), around(truncated_geometric(3, 1.0).matrix, 1e-3))
    with pytest.raises(ValidationError, match="only known to lie in a set"):
        mechanism.channel  # noqa: B018
    with pytest.raises(ValidationError, match="only known to lie in a set"):
        mechanism.lumped(0)
    with pytest.raises(ValidationError, match="only known to lie in a set"):
        mechanism.to_channel()
