"""Forged certificates of deficiencies."""

import pytest

from cvxleak.kernel import budget
from cvxleak.kernel.budget import RefusedError
from cvxleak.proofs import refinement
from tests.proofs.forging import Parts, ends, proves_nothing_false, refused, tampered

FLIP, CLEAR = [[0.75, 0.25], [0.25, 0.75]], [[1, 0], [0, 1]]
ONE = [[1, 0], [0, 1]]

APART = Parts(
    "deficiency",
    {"channel": FLIP, "other": CLEAR},
    {"processing": ONE},
    {"prior": [0.5, 0.5], "gain": ONE},
)
"""The most that is missing: a quarter."""

LESS = Parts(
    "deficiency",
    {"channel": [[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]], "other": [[0.625, 0.375], [0.375, 0.625]]},
    {"processing": [[1, 0], [0.5, 0.5], [0, 1]]},
    {"prior": [0.5, 0.5], "gain": [[1, 0], [0, 1]]},
)
"""The second is the first, with its middle output shared out."""


def test_honest():
    assert ends(APART) == (0.25, 0.25)
    assert ends(LESS) == (0, 0)
    assert refinement.about(LESS.problem) == "channels of 2 inputs, with 3 and 2 outputs"


@pytest.mark.parametrize(("parts", "truth"), [(APART, 0.25), (LESS, 0)])
def test_no_number_proves_too_much(parts, truth):
    proves_nothing_false(parts, truth, truth)


FORGED = [
    ({("problem", "note"): 1}, "the problem: it has no note"),
    ({("witness", "note"): 1}, "the witness: it has no note"),
    ({("proof", "note"): 1}, "the proof: it has no note"),
    ({("problem", "channel"): {"0": [1]}}, "the channel: expected a list of rows"),
    ({("problem", "channel"): []}, "the channel: expected a list of rows"),
    ({("problem", "channel", 1): [1.0]}, "the channel: expected a list of"),
    ({("problem", "channel", 0): [2.0, -1.0]}, "the channel|finite and non-negative"),
    ({("problem", "other"): [[1, 0]]}, "must have the same inputs"),
    ({("problem", "other"): [[1, 0]] * 3}, "must have the same inputs"),
    ({("problem", "other", 0): [2.0, -1.0]}, "finite and non-negative"),
    ({("problem", "other", 0): [0, 0]}, "must not sum to zero"),
    ({("witness", "processing"): [[1, 0]]}, "expected a row for each output"),
    ({("witness", "processing"): [[1, 0]] * 4}, "expected a row for each output"),
    ({("witness", "processing"): [[1, 0, 0]] * 2}, "the processing: expected a list of 2"),
    ({("witness", "processing", 0): [2.0, -1.0]}, "finite and non-negative"),
    ({("proof", "prior"): [0.5, 0.25, 0.25]}, "the prior: expected a list of 2"),
    ({("proof", "prior"): [1.5, -0.5]}, "finite and non-negative"),
    ({("proof", "gain"): []}, "the gain: expected a list of rows"),
    ({("proof", "gain"): [[1]]}, "the gain: expected a list of 2"),
    ({("proof", "gain"): [[1, 0], [0, 1], [1]]}, "the gain: expected a list of 2"),
    ({("proof", "gain", 0, 0): 1.0000000001}, r"must be in \[0, 1\]"),
    ({("proof", "gain", 1, 0): -1e-300}, r"must be in \[0, 1\]"),
]


@pytest.mark.parametrize("parts", [APART, LESS])
@pytest.mark.parametrize(("changes", "reason"), FORGED)
def test_forged(parts, changes, reason):
    refused(parts, changes, reason)


def test_what_is_nearly_refined_is_not():
    """An upper end of 0 is exact, and so is a lower end above it."""
    hair, rest = f"1/{10**300}", f"{10**300 - 1}/{10**300}"
    near = tampered(LESS, {("witness", "processing", 0): [rest, hair]})
    lower, upper = ends(near)
    assert lower == 0
    assert 4e-301 < upper < 6e-301
    told = {("problem", "channel"): [["1/2", "1/2"]] * 2}
    least = {("problem", "other"): [["1/3", "2/3"], [f"{10**30 + 3}/{3 * 10**30}", "0/1"]]}
    least[("problem", "other")][1][1] = f"{2 * 10**30 - 3}/{3 * 10**30}"
    parts = tampered(APART, told | least | {("witness", "processing"): [["1/3", "2/3"]] * 2})
    turned = tampered(parts, {("proof", "gain"): [[0, 1], [1, 0]]})
    assert ends(turned) == pytest.approx((5e-31, 1e-30), rel=1e-12, abs=0)


def test_an_end_is_rounded_outwards():
    thirds = {("problem", "channel"): [["2/3", "1/3"], ["1/3", "2/3"]]}
    lower, upper = ends(tampered(APART, thirds))
    assert lower < upper < lower + 1e-15
    assert lower == pytest.approx(1 / 3)


def test_the_worst_input_counts():
    parts = tampered(APART, {("witness", "processing"): [[1, 0], [1, 0]]})
    assert ends(parts)[1] == 1
    assert ends(tampered(APART, {("witness", "processing"): [[0, 1], [0, 1]]}))[1] == 1


def test_the_best_action_counts_for_each_channel():
    """An action that is best for neither changes nothing; one that is best for C alone does."""
    idle = {("proof", "gain"): [[1, 0], [0, 0], [0, 1]]}
    assert ends(tampered(APART, idle))[0] == 0.25
    sure = {("proof", "gain"): [[1, 0], [1, 1], [0, 1]]}
    assert ends(tampered(APART, sure))[0] == 0
    # What would be a loss is no lower end.
    turned = {("problem", "channel"): CLEAR, ("problem", "other"): FLIP}
    assert ends(tampered(APART, turned))[0] == 0
    # The prior weighs.
    assert ends(tampered(APART, {("proof", "prior"): [0.75, 0.25]}))[0] == 0.25
    assert ends(tampered(APART, {("proof", "prior"): [0.875, 0.125]}))[0] == 0.125


def test_work_is_counted(monkeypatch):
    """2 inputs: 4 products for C R, and for each of 2 actions those of 2 and 2 outputs."""
    monkeypatch.setitem(budget.LIMITS, "ball operations", 48)
    with budget.limited():
        ends(APART)
    monkeypatch.setitem(budget.LIMITS, "ball operations", 47)
    with budget.limited(), pytest.raises(RefusedError, match="more than 47 ball operations"):
        ends(APART)
    # 1024 bits: the products count twice, each number that is read and each of the 9 rows twice.
    bits = {("problem", "channel", 0): [f"1/{2**1023}", f"{2**1023 - 1}/{2**1023}"]}
    monkeypatch.setitem(budget.LIMITS, "ball operations", 118)
    with budget.limited():
        ends(tampered(APART, bits))
    monkeypatch.setitem(budget.LIMITS, "ball operations", 117)
    with budget.limited(), pytest.raises(RefusedError, match="more than 117 ball operations"):
        ends(tampered(APART, bits))
