"""Forged certificates of sets of channels: each bound against its formula, each guard."""

import itertools
import math

import numpy as np
import pytest
from cvxleak.proofs.bounds.posterior_cells import cells_bound
from flint import arb
from scipy.optimize import linprog
from scipy.special import logsumexp, rel_entr, xlogy

from cvxleak.core.errors import CertificateError
from cvxleak.exact.balls import precision
from cvxleak.exact.packing import pack
from cvxleak.measures import mutual_information
from cvxleak.model import ChannelSet, Expectation, KnownMarginals, Limits, Mechanism
from cvxleak.model.knowledge.binding import as_knowledge
from cvxleak.model.restricted import restrict
from cvxleak.proofs import record_leakage
from cvxleak.proofs.bounds import channel_sets
from cvxleak.queries import count, parity
from tests.proofs.forging import Parts, ends, proves_nothing_false, refused, tampered

LOG_2 = math.log(2)
LOW, HIGH = [[0.7, 0.2], [0.2, 0.7]], [[0.8, 0.3], [0.3, 0.8]]
SET = ChannelSet(LOW, HIGH)
MOST = LOG_2 + 0.8 * math.log(0.8) + 0.2 * math.log(0.2)
LEAST = LOG_2 + 0.7 * math.log(0.75) + 0.3 * math.log(0.25)
RNG = np.random.default_rng(3)

CAPACITY = Parts(
    "capacity", {"lower": LOW, "upper": HIGH}, {"input": [0.5, 0.5]}, {"output": [0.5, 0.5]}
)


def cells(leaves, splits=((-1, -1, -1),), cuts=()):
    return {
        "outputs": [[0], [1]],
        "splits": pack(np.array(splits, dtype=np.int32), "<i4"),
        "cuts": pack(np.array(cuts, dtype=float)),
        "leaves": pack(np.array(leaves, dtype=float)),
    }


def audit(floor=0.0, **changes):
    mechanism = Mechanism(parity(1), SET).to_dict()
    leaf = [0.25, 0.5, 0.125, 0.25, 0.0]
    return Parts(
        "record-leakage",
        {"mechanism": mechanism, "entropy_floor": floor, "size": 1, "records": None},
        {"records": [0], "weights": [0.5, 0.5]},
        {"groups": [{"records": [0], "cells": cells([leaf]), **changes}]},
    )


pytestmark = pytest.mark.usefixtures("balls_of_the_checker")


def balls(values):
    return [arb(x) for x in values]


def boxes(many, outputs):
    rows = RNG.dirichlet(np.ones(outputs), many)
    rows[rows < 0.05] = 0.0
    rows /= rows.sum(axis=1, keepdims=True)
    used = rows > 0
    low = np.where(used, np.maximum(rows - RNG.uniform(0, 0.1, rows.shape), 0.0), 0.0)
    high = np.where(used, np.minimum(rows + RNG.uniform(0, 0.1, rows.shape), 1.0), 0.0)
    return low, high


def vertices(low, high):
    """Yield the vertices of a row's box and the simplex."""
    for y in range(len(low)):
        for chosen in itertools.product((0, 1), repeat=len(low) - 1):
            ends = [*chosen[:y], 0, *chosen[y:]]
            q = np.where(ends, high, low)
            q[y] = 1 - (q.sum() - q[y])
            if low[y] - 1e-12 <= q[y] <= high[y] + 1e-12:
                yield np.clip(q, 0, 1)


def test_support_is_the_linear_program():
    for low, high in zip(*boxes(30, 5), strict=True):
        nu = RNG.normal(size=5)
        found = channel_sets.support_above(balls(low), balls(high), balls(nu))
        bounds = list(zip(low, high, strict=True))
        best = -linprog(-nu, A_eq=np.ones((1, 5)), b_eq=[1.0], bounds=bounds).fun
        assert float(found) == pytest.approx(best, abs=1e-9)
        least = linprog(nu, A_eq=np.ones((1, 5)), b_eq=[1.0], bounds=bounds).fun
        found = channel_sets.least_over_row(balls(low), balls(high), balls(nu))
        assert float(found) == pytest.approx(least, abs=1e-9)


def test_divergence_is_that_of_the_worst_vertex():
    for low, high in zip(*boxes(40, 4), strict=True):
        t = RNG.dirichlet(np.ones(4))
        worst = max(rel_entr(q, t).sum() for q in vertices(low, high))
        found = channel_sets.divergence_above(balls(low), balls(high), [arb(x).log() for x in t])
        assert worst - 1e-12 <= float(found) <= worst + 1e-9
        coarse = channel_sets.divergence_above(
            balls(low), balls(high), [arb(x).log() for x in t], cuts=0
        )
        assert float(coarse) >= float(found) - 1e-12


def test_divergence_of_a_law_without_an_output():
    logs = [arb(0.5).log(), arb(0.5).log(), None]
    half = channel_sets.divergence_above(balls([0.5, 0.5, 0]), balls([0.5, 0.5, 0]), logs)
    assert abs(float(half)) < 1e-12
    open_ = channel_sets.divergence_above(balls([0.5, 0.4, 0]), balls([0.5, 0.5, 0.1]), logs)
    assert not open_.is_finite()


def test_information_is_bounded_at_the_worst_rows():
    low, high = boxes(3, 4)
    joint = RNG.dirichlet(np.ones(6)).reshape(2, 3)
    posteriors = RNG.dirichlet(np.ones(2), 4).T
    found = channel_sets.information_below(
        [balls(own) for own in joint],
        [balls(row) for row in low],
        [balls(row) for row in high],
        [balls(row) for row in posteriors],
    )
    mass = joint.sum(axis=1)
    expected = -xlogy(mass, mass).sum()
    for x in range(3):
        price = joint[:, x] @ np.log(posteriors)
        expected += min(q @ price for q in vertices(low[x], high[x]))
    assert float(found) == pytest.approx(expected, abs=1e-9)
    blind = channel_sets.information_below(
        [balls([1.0, 0.0]), balls([0.0, 0.0])],
        [balls([0.5, 0.5])] * 2,
        [balls([0.5, 0.5])] * 2,
        [balls([1.0, 1.0]), balls([0.0, 0.0])],
    )
    assert float(blind) == 0.0
    lost = channel_sets.information_below(
        [balls([0.5, 0.0]), balls([0.0, 0.5])],
        [balls([0.5, 0.5])] * 2,
        [balls([0.5, 0.5])] * 2,
        [balls([1.0, 1.0]), balls([0.0, 0.0])],
    )
    assert not lost.is_finite()


def test_posteriors_sum_to_one():
    joint = [balls([0.25, 0.0, 0.0]), balls([0.25, 0.5, 0.0])]
    found = channel_sets.posteriors_of(joint, balls([0.25, 0.75]))
    columns = [float(a + b) for a, b in zip(*found, strict=True)]
    assert columns == pytest.approx([1.0, 1.0, 1.0])
    assert float(found[0][0]) == pytest.approx(0.5, abs=1e-11)
    assert 0 < float(found[0][1]) < 1e-11
    assert float(found[0][2]) == pytest.approx(0.25)


def test_a_leaf_is_the_formula_at_the_worst_rows():
    mechanism = Mechanism(count(2), ChannelSet(*(m[[0, 1, 0]] for m in map(np.array, (LOW, HIGH)))))
    lumped = mechanism.lumped_set(0)
    floor, lam = 0.75, 0.25
    mu = np.array([[0.5, 0.125], [0.25, 1.0]])
    found = record_leakage.prove_upper_of_set(
        lumped, floor, {"records": [0], "cells": cells([[lam, *mu.ravel()]])}
    )
    phi = []
    for a in range(2):
        own = lumped.center.value_index == a
        c = [
            max(q @ mu[:, a] for q in vertices(low, high))
            for low, high in zip(lumped.lower[own], lumped.upper[own], strict=True)
        ]
        logs = np.log(np.array(lumped.center.multiplicities)[own])
        phi.append(lam * logsumexp(np.array(c) / lam + logs))
    expected = (1 + lam) * logsumexp(np.array(phi) / (1 + lam)) - lam * floor
    assert found == pytest.approx(min(expected, LOG_2), abs=1e-12)
    assert expected > LOG_2
    direct = cells_bound(
        lumped.center, floor, cells([[lam, *mu.ravel()]]), boxes=(lumped.lower, lumped.upper)
    )
    assert direct == pytest.approx(expected, abs=1e-12)


def test_a_cut_tree_is_sharp():
    # Cells (1, 1/2) and (1/2, 0) for both outputs; the worst rows' posteriors are in two of four.
    splits = [(0, 0, 1), (1, 0, 1), (-1,) * 3, (-1,) * 3, (1, 0, 1), (-1,) * 3, (-1,) * 3]
    leaf = [0.0, 0.0, 0.0, 0.0, 0.0]
    parts = audit(cells=cells([leaf] * 4, splits, [0.5] * 3))
    lower, upper = ends(parts)
    assert lower == pytest.approx(LEAST, abs=1e-9)
    assert MOST <= upper < LOG_2


def test_the_lower_end_shares_rows_between_values():
    # With three query values the middle one's row is that of both values of a record.
    low = np.array([[0.8, 0.1], [0.4, 0.4], [0.1, 0.8]])
    high = np.array([[0.9, 0.2], [0.6, 0.6], [0.2, 0.9]])
    mechanism = Mechanism(count(2), ChannelSet(low, high))
    lumped = mechanism.lumped_set(0).center
    w = np.array([0.4, 0.1, 0.2, 0.3])
    found = record_leakage.prove_lower_of_set(mechanism, (0,), 0.5, w.tolist())
    joint = np.array([w[:2] @ lumped.rows[:2], w[2:] @ lumped.rows[2:]])
    logs = np.log(joint / joint.sum(axis=0))
    priors = np.zeros((2, 3))
    for g, contexts in enumerate(lumped.contexts):
        priors[lumped.value_index[g], mechanism.query.values.index(contexts[0])] = w[g]
    expected = -xlogy(priors.sum(axis=1), priors.sum(axis=1)).sum()
    for x in range(3):
        expected += min(q @ (priors[:, x] @ logs) for q in vertices(low[x], high[x]))
    assert found == pytest.approx(expected, abs=1e-9)


def test_contexts_with_like_boxes_share_their_mass():
    # Values 0 and 2 of a count have like boxes: a group of contexts holds both.
    rows = [np.array(m)[[0, 1, 0, 1]] for m in (LOW, HIGH)]
    mechanism = Mechanism(count(3), ChannelSet(*rows))
    lumped = mechanism.lumped_set(0).center
    assert lumped.multiplicities == (2, 2, 2, 2)
    found = record_leakage.prove_lower_of_set(mechanism, (0,), 0.5, [0.25] * 4)
    assert found == 0.0
    told = record_leakage.prove_lower_of_set(mechanism, (0,), 0.5, [0.5, 0.0, 0.0, 0.5])
    turned = record_leakage.prove_lower_of_set(mechanism, (0,), 0.5, [0.0, 0.5, 0.5, 0.0])
    assert (told, turned) == pytest.approx((LEAST, LEAST), abs=1e-9)


def test_honest():
    lower, upper = ends(CAPACITY)
    assert lower == pytest.approx(LEAST, abs=1e-9)
    assert upper == pytest.approx(MOST, abs=1e-12)
    assert MOST < upper
    lower, upper = ends(audit())
    assert lower == pytest.approx(LEAST, abs=1e-9)
    assert upper == pytest.approx(LOG_2)
    assert "for every channel in a set" in record_leakage.about(audit().problem)
    box = {"lower": [[0.2, 0.2]], "upper": [[0.8, 0.8]]}
    alone = Parts("capacity", box, {"input": [1.0]}, {"output": [0.5, 0.5]})
    assert ends(alone) == (0.0, 0.0)


def test_ends_are_rounded_outwards():
    rows = [[0.75, 0.25], [0.25, 0.75]]
    point = tampered(CAPACITY, {("problem", "lower"): rows, ("problem", "upper"): rows})
    lower, upper = ends(point)
    with precision(300):
        truth = arb(2).log() + 0.75 * arb(0.75).log() + 0.25 * arb(0.25).log()
        assert arb(lower) < truth < arb(upper)
        assert arb(2).log() < arb(ends(audit())[1])
    assert upper - lower < 1e-9


def test_all_groups_count():
    # The first record is bounded by its two values only, the second one by a tree.
    rows = [np.array(m)[[0, 1, 0]] for m in (LOW, HIGH)]
    splits = [(0, 0, 1), (1, 0, 1), (-1,) * 3, (-1,) * 3, (1, 0, 1), (-1,) * 3, (-1,) * 3]
    tree = cells([[0.0] * 5] * 4, splits, [0.5] * 3)
    parts = Parts(
        "record-leakage",
        {
            "mechanism": Mechanism(count(2), ChannelSet(*rows)).to_dict(),
            "entropy_floor": 0.0,
            "size": 1,
            "records": [[0], [1]],
        },
        {"records": [1], "weights": [0.5, 0.0, 0.0, 0.5]},
        {"groups": [{"records": [0]}, {"records": [1], "cells": tree}]},
    )
    assert ends(parts)[1] == pytest.approx(LOG_2)
    both = tampered(parts, {("proof", "groups", 0, "cells"): tree})
    assert ends(both)[1] < 0.9 * LOG_2
    refused(parts, {("proof", "groups", 1, "records"): [0]}, "is not about group")
    refused(parts, {("proof", "groups"): lambda v: [*v, v[0]]}, "does not bound each of 2")


def test_no_number_proves_too_much():
    # Each member's capacity is between that of the rows nearest to each other and MOST.
    nearest = LOG_2 + 0.7 * math.log(0.7) + 0.3 * math.log(0.3)
    proves_nothing_false(CAPACITY, MOST, nearest)
    proves_nothing_false(audit(), MOST, nearest)


REFUSED = [
    (CAPACITY, {("problem", "note"): 1}, "the problem: expected the parts"),
    (CAPACITY, {("witness", "note"): 1}, "the witness: expected the parts"),
    (CAPACITY, {("proof", "note"): 1}, "the proof: expected the parts"),
    (CAPACITY, {("witness", "input"): [1.0]}, "the input: expected a list of 2"),
    (CAPACITY, {("proof", "output"): [1.0]}, "the output: expected a list of 2"),
    (CAPACITY, {("problem", "lower"): [[0.9, 0.9], [0.2, 0.7]]}, "the set of channels: lower"),
    (audit(), {("proof", "groups"): []}, "does not bound each of 1 groups"),
    (audit(), {("proof", "groups"): {}}, "does not bound each of 1 groups"),
    (audit(), {("proof", "note"): 1}, "the proof: expected the parts"),
    (audit(), {("witness", "note"): 1}, "the witness: expected the parts"),
    (audit(), {("witness", "records"): [1]}, "which is not audited"),
    (audit(), {("witness", "weights"): [1.0]}, "the witness's weights: expected a list of 2"),
    (audit(0.6), {("witness", "weights"): [0.9, 0.1]}, "doubt|entropy"),
    (audit(), {("proof", "groups", 0, "records"): [1]}, "is not about group"),
    (audit(), {("proof", "groups", 0, "choices"): 1}, "an entry of the proof: expected"),
    (
        audit(),
        {("proof", "groups", 0, "cells", "outputs"): [[0, 1]]},
        "cannot be combined with merged outputs",
    ),
]


@pytest.mark.parametrize(("parts", "changes", "reason"), REFUSED)
def test_refused(parts: Parts, changes, reason: str):
    refused(parts, changes, reason)


def test_sets_go_with_neither_merged_outputs_nor_symmetries():
    lumped = Mechanism(parity(1), SET).lumped_set(0)
    ends_of_rows = lumped.lower, lumped.upper
    leaf = [0.25, 0.5, 0.125, 0.25, 0.0]
    swap = {"symmetries": pack(np.array([[1, 0, 1, 0]], dtype=np.int32), "<i4")}
    with pytest.raises(CertificateError, match="cannot be combined with merged outputs"):
        cells_bound(lumped.center, 0.0, cells([leaf]) | swap, boxes=ends_of_rows)
    law = {"output": pack(np.array([0.5, 0.5]))}
    with pytest.raises(CertificateError, match="cannot be combined with merged outputs"):
        cells_bound(lumped.center, 0.0, cells([leaf]) | law, boxes=ends_of_rows)


def known_of(knowledge, mechanism):
    """Return knowledge as a certificate has it, and the problem that it restricts."""
    bound = as_knowledge(knowledge, mechanism.query)
    return [one.to_dict() for one in bound], restrict(mechanism, (0,), bound)


def test_a_leaf_with_limits_is_the_formula_at_the_worst_rows():
    low, high = (np.array(m)[[0, 1, 0]] for m in (LOW, HIGH))
    mechanism = Mechanism(count(2), ChannelSet(low, high))
    _, restricted = known_of(Expectation([0, 1, 3], at_most=0.5), mechanism)
    of_set = restricted.of_set
    # Values 0 and 2 of the count have like boxes, and the expectation tells them apart.
    assert [list(counted.values()) for counted in of_set.counts] == [[1]] * 4
    floor, lam, kappa = 0.75, 0.25, 0.375
    mu = np.array([[0.5, 0.125], [0.25, 1.0]])
    limits = Limits([[0.0, 1.0, 1.0, 3.0]], [0.5])
    found = cells_bound(
        of_set.center,
        floor,
        cells([[lam, *mu.ravel(), kappa]]),
        limits,
        (of_set.lower, of_set.upper),
    )
    phi = []
    for a in range(2):
        own = of_set.center.value_index == a
        c = [
            max(q @ mu[:, a] for q in vertices(*ends_of_row)) - kappa * price
            for *ends_of_row, price in zip(
                of_set.lower[own], of_set.upper[own], limits.coefficients[0, own], strict=True
            )
        ]
        phi.append(lam * logsumexp(np.array(c) / lam))
    expected = (1 + lam) * logsumexp(np.array(phi) / (1 + lam)) - lam * floor + kappa * 0.5
    assert found == pytest.approx(expected, abs=1e-12)


def known_audit():
    """An audit of one bit whose law has to be (1/4, 3/4): its limits are two for each value."""
    stated, _ = known_of(KnownMarginals([0.25, 0.75]), Mechanism(parity(1), SET))
    leaf = [0.0, 0.0, 0.0, 0.0, 0.0, 2.1875, 0.0]
    return tampered(
        audit(),
        {
            ("problem", "adversaries"): stated,
            ("witness", "weights"): ["1/4", "3/4"],
            ("proof", "groups", 0, "cells"): cells([leaf]),
        },
    )


def test_a_witness_of_a_class_holds_for_all_of_the_set():
    lower, upper = ends(known_audit())
    joint = np.array([[0.25 * 0.75, 0.25 * 0.25], [0.75 * 0.25, 0.75 * 0.75]])
    logs = np.log(joint / joint.sum(axis=0))
    expected = -xlogy([0.25, 0.75], [0.25, 0.75]).sum()
    for x, mass in enumerate((0.25, 0.75)):
        expected += min(mass * q @ logs[x] for q in vertices(np.array(LOW[x]), np.array(HIGH[x])))
    assert lower == pytest.approx(expected, abs=1e-9)
    # Of cells that are whole simplices only the law's entropy is proved.
    assert upper == pytest.approx(-xlogy([0.25, 0.75], [0.25, 0.75]).sum(), abs=1e-4)
    least, most = (mutual_information([[q, 1 - q], [1 - q, q]], [0.25, 0.75]) for q in (0.7, 0.8))
    proves_nothing_false(known_audit(), least, most)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({("witness", "weights"): ["1/2", "1/2"]}, "violates an equation"),
        ({("witness", "weights"): [0.25, 0.75]}, "fraction"),
        ({("problem", "entropy_floor"): 0.6}, "below the floor"),
        ({("proof", "groups", 0, "cells"): cells([[0.25, 0.5, 0.125, 0.25, 0.0]])}, "needed"),
        ({("proof", "groups", 0, "sharing"): {}}, "sharing"),
    ],
)
def test_knowledge_is_refused_as_with_a_channel(changes, reason: str):
    refused(known_audit(), changes, reason)
