"""Forged certificates of releases under collusion."""

import math

import numpy as np
import pytest
from flint import arb

from cvxleak.core.errors import CertificateError
from cvxleak.kernel import reading
from cvxleak.proofs.bounds import release_law
from cvxleak.proofs.bounds.release_law import common_classes
from cvxleak.proofs.bounds.simplex_cells import slopes_of_cells
from cvxleak.proofs.release import about
from tests.proofs.forging import Parts, ends, proves_nothing_false, refused, tampered

LOG_2, LOG_3 = math.log(2), math.log(3)
LEVEL = 0.13081203594113694
ROWS = np.array([[0.75, 0.25], [0.25, 0.75]])


def pack(array, dtype="<f8"):
    return reading.pack(array, dtype)


HAMMING = pack(np.array([[0.0, 1.0], [1.0, 0.0]]))
WRONG = np.array([[0.0, 1.0], [1.0, 0.0]])
JOINT = np.array([[[0.5, 0.0]], [[0.0, 0.5]]])  # R = X, and nothing released before


def coalition(price=0.0, budget=None, classes=(0,)):
    return {"classes": list(classes), "price": price, "budget": budget}


def priced(multiplier, reference):
    return {"multiplier": multiplier, "reference": reference}


G = pack(np.log(2 * ROWS)[None])
KERNEL = {"kernel": pack(ROWS[None])}
EVEN = {"kernel": pack(np.full((1, 2, 2), 0.5))}
WHOLE = {"edges": [[]], "cuts": [], "slopes": [[0.0, 0.0]]}

PRICE = Parts(
    "release-distortion",
    {"joint": pack(JOINT), "distortion": HAMMING, "coalitions": [coalition(1 / LOG_3)]},
    KERNEL,
    {"coalitions": [priced(0.0, G)]},
)
BUDGET = tampered(
    PRICE,
    {
        ("problem", "coalitions"): [coalition(0.0, LEVEL + 2.0**-50)],
        ("proof", "coalitions"): [priced(1 / LOG_3, G)],
    },
)
NO_ROOM = tampered(
    PRICE,
    {
        ("problem", "coalitions"): [coalition(0.0, "least")],
        ("witness", "kernel"): EVEN["kernel"],
        ("proof", "coalitions"): [priced(0.0, pack(np.array([[[0.5, -0.5], [-0.5, 0.5]]])))],
    },
)
INFORMATION = Parts(
    "release-information",
    {
        "joint": pack(JOINT),
        "outputs": 2,
        "coalitions": [coalition(0.0, LEVEL + 2.0**-50)],
    },
    KERNEL,
    {"cells": WHOLE, "coalitions": [priced(0.0, None)]},
)
TRUTH = {
    "price": (PRICE, math.log(1.5) / LOG_3),
    "budget": (BUDGET, 0.25),
    "no room": (NO_ROOM, 0.5),
    "information": (INFORMATION, LEVEL),
}


@pytest.mark.parametrize("name", TRUTH)
def test_honest(name):
    parts, truth = TRUTH[name]
    lower, upper = ends(parts)
    assert truth - 1e-12 < lower <= truth + 1e-15
    assert truth - 1e-15 <= upper < truth + 1e-12


@pytest.mark.parametrize("name", TRUTH)
def test_no_number_proves_too_much(name):
    parts, truth = TRUTH[name]
    proves_nothing_false(parts, truth, truth)
    rng = np.random.default_rng(1)
    for _ in range(20):
        reference = pack(rng.normal(size=(1, 2, 2)) * 3)
        multiplier = float(rng.integers(0, 5)) / 4
        change = {("proof", "coalitions"): [priced(multiplier, reference)]}
        try:
            lower, upper = ends(tampered(parts, change))
        except CertificateError:
            continue
        assert lower <= truth + 1e-12
        assert upper >= truth - 1e-12


def test_ends_are_rounded_outwards():
    free = tampered(PRICE, {("problem", "coalitions"): [], ("proof", "coalitions"): []})
    third = {("witness", "kernel"): pack(np.array([[[2.0, 1.0], [1.0, 2.0]]]))}
    assert arb(ends(tampered(free, third))[1]) > arb(1) / 3
    lower, _ = ends(INFORMATION)
    exact = arb(2).log() + arb("0.25") * arb("0.25").log() + arb("0.75") * arb("0.75").log()
    assert arb(lower) < exact
    no_price = tampered(INFORMATION, {("problem", "coalitions"): [], ("proof", "coalitions"): []})
    assert arb(ends(no_price)[1]) > arb(2).log()
    dear = tampered(
        INFORMATION,
        {
            ("problem", "coalitions", 0, "price"): 2.0,
            ("proof", "coalitions", 0, "reference"): pack(np.zeros((1, 2, 1))),
        },
    )
    assert ends(dear)[0] == pytest.approx(-LEVEL, abs=1e-12)


FORGED = [
    ("price", {("problem", "note"): 1}, "the problem: it has no note"),
    ("information", {("problem", "note"): 1}, "the problem: it has no note"),
    ("price", {("witness", "note"): 1}, "the witness: it has no note"),
    ("price", {("proof", "note"): 1}, "the proof: it has no note"),
    ("information", {("proof", "note"): 1}, "the proof: it has no note"),
    (
        "price",
        {("problem", "distortion"): pack(-WRONG)},
        "does not fit the joint distribution, or is neg",
    ),
    (
        "price",
        {("problem", "distortion"): pack(np.zeros((3, 2)))},
        "does not fit the joint distribution",
    ),
    (
        "price",
        {("problem", "distortion"): pack(np.zeros((1, 2)))},
        "does not fit the joint distribution",
    ),
    ("price", {("problem", "distortion"): pack(np.zeros(2))}, "the distortion: found shape"),
    ("price", {("problem", "distortion"): pack(np.full((2, 2), math.inf))}, "is not finite"),
    ("price", {("problem", "distortion"): pack(WRONG, "<i4")}, "the distortion: dtype"),
    (
        "price",
        {("problem", "distortion"): {**HAMMING, "shape": 4}},
        "the distortion: expected a list",
    ),
    ("price", {("problem", "distortion"): {**HAMMING, "shape": [2, 0]}}, "another size"),
    (
        "price",
        {("problem", "joint"): pack(-JOINT)},
        "the joint distribution has a negative entry",
    ),
    ("price", {("problem", "joint"): pack(JOINT[0])}, "joint distribution: found shape"),
    (
        "price",
        {("problem", "joint"): pack(JOINT[..., None])},
        "joint distribution: found shape",
    ),
    (
        "price",
        {("problem", "distortion"): pack(np.array([[0.0, 1.0], [1.0, math.inf]]))},
        "is not finite",
    ),
    (
        "price",
        {("witness", "kernel"): pack(np.full((1, 2, 3), 1 / 3))},
        "the kernel does not fit",
    ),
    (
        "price",
        {("proof", "coalitions", 0, "reference"): pack(np.zeros((1, 2, 1)))},
        "a reference does not fit its coalition",
    ),
    ("price", {("problem", "coalitions"): {"0": 1}}, "the coalitions are not a list"),
    ("price", {("problem", "coalitions", 0, "classes"): []}, "the classes of a coalition are"),
    ("price", {("problem", "coalitions", 0, "classes"): [0, 0]}, "the classes of a coalition are"),
    ("price", {("problem", "coalitions", 0, "classes"): [1]}, "the classes of a coalition are"),
    ("price", {("problem", "coalitions", 0, "price"): -1.0}, "a price is negative"),
    ("price", {("problem", "coalitions", 0, "note"): 1}, "a coalition: it has no note"),
    ("price", {("problem", "coalitions", 0, "budget"): "most"}, "a budget: expected a number"),
    ("budget", {("problem", "coalitions", 0, "budget"): 0.13}, "does not meet a budget"),
    ("information", {("problem", "coalitions", 0, "budget"): 0.13}, "does not meet a budget"),
    ("price", {("witness", "kernel"): pack(ROWS)}, "the kernel: found shape"),
    ("price", {("witness", "kernel"): pack(ROWS[None, :1])}, "the kernel does not fit"),
    ("price", {("witness", "kernel"): pack(ROWS[None, :, :1])}, "the kernel does not fit"),
    ("price", {("witness", "kernel"): pack(-ROWS[None])}, "finite and non-negative"),
    ("information", {("problem", "outputs"): 0}, r": found -?\d"),
    ("information", {("problem", "outputs"): 3}, "the kernel does not fit"),
    ("price", {("proof", "coalitions"): []}, "must have the same coalitions"),
    ("price", {("proof", "coalitions"): lambda v: v * 2}, "must have the same coalitions"),
    ("price", {("proof", "coalitions"): {"0": 1}}, "must have the same coalitions"),
    ("price", {("proof", "coalitions", 0, "note"): 1}, "a coalition of the proof: it has no note"),
    (
        "price",
        {("proof", "coalitions", 0, "multiplier"): -0.5},
        "negative, or has no budget",
    ),
    ("price", {("proof", "coalitions", 0, "multiplier"): 0.5}, "negative, or has no budget"),
    ("budget", {("proof", "coalitions", 0, "multiplier"): -0.5}, "negative, or has no"),
    ("budget", {("proof", "coalitions", 0, "multiplier"): 0.0}, "a reference must be null"),
    (
        "price",
        {("proof", "coalitions", 0, "reference"): pack(ROWS)},
        "a reference: found shape",
    ),
    (
        "price",
        {("proof", "coalitions", 0, "reference"): pack(np.zeros((2, 2, 2)))},
        "a reference does not fit its coalition",
    ),
]


@pytest.mark.parametrize(("name", "changes", "reason"), FORGED)
def test_forged(name, changes, reason):
    refused(TRUTH[name][0], changes, reason)


def test_a_release_that_depends_on_the_dataset_is_no_release_without_room():
    """It is made independent: what is left of the kernel is what it says on average."""
    told = tampered(NO_ROOM, {("witness", "kernel"): KERNEL["kernel"]})
    assert ends(told)[1] == pytest.approx(0.5, abs=1e-12)
    two = tampered(
        told,
        {
            ("problem", "joint"): pack(np.repeat(JOINT, 2, axis=1)),
            ("problem", "coalitions"): [
                coalition(0.0, "least", (0, 1)),
                coalition(0.0, "least", (0, 0)),
            ],
            ("witness", "kernel"): pack(np.stack([ROWS, ROWS])),
            ("proof", "coalitions"): [
                priced(0.0, pack(np.zeros((2, 2, 2)))),
                priced(0.0, pack(np.zeros((1, 2, 2)))),
            ],
        },
    )
    refused(two, {}, "several coalitions have their least budgets")
    even = {("witness", "kernel"): pack(np.full((2, 2, 2), 0.5))}
    assert ends(tampered(two, even))[1] == pytest.approx(0.5, abs=1e-12)


def test_what_a_coalition_knows_already():
    """z tells x with probability 3/4: a budget holds for both together, and no room means that."""
    joint = np.zeros((2, 2, 2))
    for x in range(2):
        for z in range(2):
            joint[x, z, x] = 0.5 * ROWS[x, z]
    seen = coalition(0.0, LEVEL + 2.0**-50, (0, 1))
    base = Parts(
        "release-distortion",
        {"joint": pack(joint), "distortion": HAMMING, "coalitions": [seen]},
        {"kernel": pack(np.array([[[1.0, 0.0]] * 2, [[0.0, 1.0]] * 2]))},
        {"coalitions": [priced(0.0, None)]},
    )
    # To repeat z costs nothing and is wrong in a quarter of all cases.
    assert ends(base) == (0.0, pytest.approx(0.25, abs=1e-12))
    refused(
        base,
        {("witness", "kernel"): pack(np.array([[[1.0, 0.0], [0.0, 1.0]]] * 2))},
        "does not meet a budget",
    )
    none = tampered(base, {("problem", "coalitions", 0, "budget"): "least"})
    nu = np.array([[[0.25, -0.25], [-0.75, 0.75]], [[0.75, -0.75], [-0.25, 0.25]]])
    for sign in (1.0, -1.0):
        for size in (0.5, 1.0, 2.0):
            reference = pack(sign * size * nu)
            changes = {("proof", "coalitions"): [priced(0.0, reference)]}
            lower, upper = ends(tampered(none, changes))
            assert lower <= 0.25 + 1e-12
            assert upper == pytest.approx(0.25, abs=1e-12)
    # A price counts what is known as well, in both ends.
    price = tampered(
        base,
        {
            ("problem", "coalitions"): [coalition(2.0, None, (0, 1))],
            ("proof", "coalitions"): [priced(0.0, pack(np.zeros((2, 2, 2))))],
        },
    )
    lower, upper = ends(price)
    assert lower == pytest.approx(2 * LEVEL, abs=1e-12)
    assert upper == pytest.approx(0.25 + 2 * LEVEL, abs=1e-12)
    # Information about x beyond z: H(R|Z) and the noise of R given both.
    told = Parts(
        "release-information",
        {"joint": pack(joint), "outputs": 2, "coalitions": [seen]},
        base.witness,
        {"cells": WHOLE, "coalitions": [priced(0.0, None)]},
    )
    lower, upper = ends(told)
    assert lower == pytest.approx(LEVEL, abs=1e-12)
    assert upper == pytest.approx(LEVEL, abs=1e-12)


def test_noise_of_a_request_cannot_be_told():
    """R is x with probability 3/4: nobody learns more of it than x tells."""
    joint = 0.5 * ROWS.T[:, None, :]
    parts = Parts(
        "release-information",
        {"joint": pack(joint), "outputs": 2, "coalitions": []},
        {"kernel": pack(np.eye(2)[None])},
        {"cells": WHOLE, "coalitions": []},
    )
    lower, upper = ends(parts)
    assert lower == pytest.approx(LEVEL, abs=1e-12)
    assert upper == pytest.approx(LEVEL, abs=1e-12)


def test_rows_of_the_law_that_cannot_occur_do_not_count():
    joint = np.zeros((2, 2, 2))
    joint[:, :1] = JOINT
    kernel = np.full((2, 2, 2), 0.5)
    kernel[0] = ROWS
    parts = tampered(
        BUDGET,
        {
            ("problem", "joint"): pack(joint),
            ("problem", "coalitions", 0, "classes"): [0, 1],
            ("witness", "kernel"): pack(kernel),
            ("proof", "coalitions", 0, "reference"): pack(
                np.concatenate([np.log(2 * ROWS)[None]] * 2)
            ),
        },
    )
    lower, upper = ends(parts)
    assert 0.25 - 1e-12 < lower <= 0.25 <= upper < 0.25 + 1e-12


def test_limits_of_size(monkeypatch):
    # The largest part: two rows, two outputs, one coalition and the kernel itself.
    monkeypatch.setattr(release_law, "SIZE_LIMIT", 8)
    assert ends(PRICE)[1] < 0.4
    monkeypatch.setattr(release_law, "SIZE_LIMIT", 7)
    refused(PRICE, {}, "at most 7 are")
    monkeypatch.setattr(release_law, "SIZE_LIMIT", 3)
    refused(PRICE, {}, "found <f8 of shape")


def test_noise_is_no_room():
    """What a coalition may learn of x bounds what R̂ tells of R, whose noise x does not explain."""
    joint = 0.5 * ROWS.T[:, None, :]
    for budget, most in ((LEVEL, LEVEL), (0.05, 0.05), ("least", 0.0)):
        parts = Parts(
            "release-information",
            {"joint": pack(joint), "outputs": 2, "coalitions": [coalition(0.0, budget)]},
            EVEN,
            {
                "cells": WHOLE,
                "coalitions": [
                    priced(0.0, pack(np.zeros((1, 2, 1))) if budget == "least" else None)
                ],
            },
        )
        lower, upper = ends(parts)
        assert lower == 0.0
        assert upper == pytest.approx(most, abs=1e-12)
    # A release that is free after noisy earlier ones: z is R itself, and tells more than x does.
    told = np.zeros((2, 2, 2))
    for r in range(2):
        told[r, r] = 0.5 * ROWS[:, r]
    parts = Parts(
        "release-information",
        {"joint": pack(told), "outputs": 2, "coalitions": [coalition(0.0, 2.0, (0, 0))]},
        {"kernel": pack(np.array([[[1.0, 0.0]] * 2, [[0.0, 1.0]] * 2]))},
        {"cells": WHOLE, "coalitions": [priced(0.0, None)]},
    )
    lower, upper = ends(parts)
    assert lower == pytest.approx(LOG_2, abs=1e-12)
    assert upper == pytest.approx(LOG_2, abs=1e-12)
    tight = tampered(parts, {("problem", "coalitions", 0, "budget"): LEVEL + 2.0**-40})
    lower, upper = ends(tight)
    assert lower <= upper + 1e-12


def test_prices_may_outweigh_what_is_told():
    two = tampered(
        INFORMATION,
        {
            ("problem", "coalitions"): [coalition(2.0), coalition(0.0)],
            ("proof", "coalitions"): [
                priced(0.0, pack(np.zeros((1, 2, 1)))),
                priced(0.0, None),
            ],
        },
    )
    assert ends(two)[0] == pytest.approx(-LEVEL, abs=1e-12)


def independent(*kernels):
    """Return a problem of two histories that no coalition sees, with these rows for each."""
    return tampered(
        NO_ROOM,
        {
            ("problem", "joint"): pack(np.repeat(JOINT / 2, 2, axis=1)),
            ("problem", "coalitions"): [coalition(0.0, "least", (0, 0))],
            ("witness", "kernel"): pack(np.array(kernels)),
        },
    )


def test_what_depends_on_the_dataset_is_taken_off():
    """k + p(r|s) - p(r|s,x), over histories that the coalition does not tell apart."""
    assert ends(independent(np.eye(2), np.eye(2)[::-1]))[1] == pytest.approx(0.5, abs=1e-12)
    half = np.full((2, 2), 0.5)
    assert ends(independent(np.eye(2), half))[1] == pytest.approx(0.5, abs=1e-12)
    uneven = [[0.75, 0.25], [0.5, 0.5]]
    assert ends(independent(uneven, half))[1] == pytest.approx(0.5, abs=1e-12)
    refused(
        independent([[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]), {}, "cannot be made indep"
    )


def test_what_depends_on_history_alone_is_kept():
    """R = z, which the coalition does not see and the dataset does not tell: R̂ = z is right."""
    joint, kernel = np.zeros((2, 2, 2)), np.zeros((2, 2, 2))
    for z in range(2):
        joint[z, z, :], kernel[z, :, z] = 0.25, 1.0
    known = {("problem", "joint"): pack(joint), ("witness", "kernel"): pack(kernel)}
    lower, upper = ends(tampered(independent(np.eye(2), np.eye(2)), known))
    assert lower <= upper < 1e-12


def test_joint_laws_are_read_as_lists_too(monkeypatch):
    written = {("problem", "joint"): JOINT.tolist(), ("problem", "distortion"): WRONG.tolist()}
    assert ends(tampered(PRICE, written)) == ends(PRICE)
    for joint, reason in (
        ([0.5, 0.5], "expected lists of 3 axes"),
        ([[0.5, 0.5]], "expected a list of numbers"),
        ([[[0.5], [0.5]], [[0.0]]], "the joint distribution"),
        ([], "the joint distribution"),
        ([[[]]], "the joint distribution"),
    ):
        refused(PRICE, {("problem", "joint"): joint}, reason)
    monkeypatch.setattr(release_law, "SIZE_LIMIT", 3)
    refused(PRICE, {("problem", "joint"): JOINT.tolist()}, "joint distribution: found shape")


def test_what_a_certificate_says_that_it_is_about():
    seen = "a request of 2 values about 2 datasets, after 1 histories, watched by 1 coalitions"
    assert about(PRICE.problem) == seen
    wide = about(INFORMATION.problem)
    assert wide == f"{seen}, answered with 2 outputs; the upper bound holds for any number"


def test_common_classes():
    def found(*partitions):
        return common_classes(np.array(partitions, dtype=np.intp).reshape(-1, 4)).tolist()

    assert found() == [0, 0, 0, 0] or len(found()) == 0
    assert found([0, 1, 2, 2]) == [0, 1, 2, 2]
    assert found([0, 0, 1, 1], [0, 1, 1, 2]) == [0, 0, 0, 0]
    assert found([0, 0, 1, 2], [0, 1, 2, 2]) == [0, 0, 1, 1]


def tree(edges, cuts, slopes):
    return {"edges": edges, "cuts": cuts, "slopes": slopes}


H = 0.5623351446188083
HALVES = tree([[0, 1], [], []], [0.5], [[0.0, -2 * LOG_2], [-2 * LOG_2, 0.0]])


def test_slopes_bound_entropies_on_their_cells():
    near = 1e-12
    slopes = [[0.0, -2 * LOG_2 + near], [-2 * LOG_2 + near, 0.0]]
    # The first part of a cut keeps vertex i.
    assert slopes_of_cells(tree([[0, 1], [], []], [0.5], slopes), 2) == slopes
    assert slopes_of_cells(tree([[]], [], [[0.0, 0.0]]), 2) == [[0.0, 0.0]]
    turned = [[-2 * LOG_2 + near, 0.0], [0.0, -2 * LOG_2 + near]]
    assert slopes_of_cells(tree([[1, 0], [], []], [0.5], turned), 2) == turned
    quarter = -H / 0.25 + near  # of the vertex (3/4, 1/4)
    slopes = [[0.0, quarter], [-H / 0.75 + near, 0.0]]
    assert slopes_of_cells(tree([[0, 1], [], []], [0.25], slopes), 2) == slopes


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (tree([[]], [], [[0.0, -0.1]]), "do not bound -H"),
        (tree([[]], [], [[-0.1, 0.0]]), "do not bound -H"),
        (tree([[0, 1], [], []], [0.5], [[0.0, -1.5], [0.0, 0.0]]), "do not bound -H"),
        (tree([[0, 1], [], []], [0.5], [[0.0, 0.0], [-1.5, 0.0]]), "do not bound -H"),
        (tree([[0, 1], [], []], [0.5], [[-1.3, 0.0], [0.0, -1.3]]), "do not bound -H"),
        (tree([[], []], [], [[0.0, 0.0]]), "more nodes than their tree"),
        (tree([[0, 1], [], []], [0.5], [[0.0, 0.0]]), "a cell has no slopes"),
        (tree([[0, 1], []], [0.5], [[0.0, 0.0]]), "do not cover all distributions"),
        (tree([[0, 1], []], [0.5], [[0.0, 0.0]] * 2), "do not cover all distributions"),
        (tree([[]], [], [[0.0, 0.0]] * 2), "parts are left over"),
        (tree([[]], [0.5], [[0.0, 0.0]]), "parts are left over"),
        (tree([], [], []), "do not cover all distributions"),
        (tree([[0, 1], [], []], [], [[0.0, 0.0]] * 2), "covers nothing"),
        (tree([[0, 1], [], []], [0.0], [[0.0, 0.0]] * 2), "covers nothing"),
        (tree([[0, 1], [], []], [1.0], [[0.0, 0.0]] * 2), "covers nothing"),
        (tree([[0, 1], [], []], [1.5], [[0.0, 0.0]] * 2), "covers nothing"),
        (tree([[0, 0], [], []], [0.5], [[0.0, 0.0]] * 2), "covers nothing"),
        (tree([[0, 2], [], []], [0.5], [[0.0, 0.0]] * 2), "covers nothing"),
        (tree([[0], [], []], [0.5], [[0.0, 0.0]] * 2), "covers nothing"),
        (tree([[0, 1, 1], [], []], [0.5], [[0.0, 0.0]] * 2), "covers nothing"),
        (tree([[]], [], {"0": [0.0, 0.0]}), "slopes of the cells are not a list"),
        (tree([[]], [], [[0.0]]), "the slopes of a cell: expected a list of 2"),
        ({**WHOLE, "note": 1}, "the cells: it has no note"),
    ],
)
def test_forged_cells(cells, reason):
    with pytest.raises(CertificateError, match=reason):
        slopes_of_cells(cells, 2)


def test_cells_prove_the_most_that_can_be_told():
    """Without coalitions and with cells at the corners, no more than H(R) is told."""
    parts = tampered(
        INFORMATION,
        {
            ("problem", "coalitions"): [coalition(1.0)],
            ("witness", "kernel"): EVEN["kernel"],
            ("proof", "cells"): tree([[0, 1], [], []], [0.5], [[0.0, -1.3], [-1.3, 0.0]]),
            ("proof", "coalitions"): [priced(0.0, pack(np.zeros((1, 2, 2))))],
        },
    )
    lower, upper = ends(parts)
    # At the price 1 nothing is gained by telling anything.
    assert lower <= 0.0 <= upper <= LOG_2 + 1e-12
    best = 0.0
    for size in np.linspace(0.0, 2.0, 41):
        g = size * np.array([[[0.5, -0.5], [-0.5, 0.5]]])
        found = ends(tampered(parts, {("proof", "coalitions"): [priced(0.0, pack(g))]}))[1]
        assert found >= -1e-12
        best = max(best, LOG_2 - found)
    assert best > 0.3
