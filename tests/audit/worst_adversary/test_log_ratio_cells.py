"""Log-ratio cells: the kernel proves what they say, and they say nothing that is not true."""

from __future__ import annotations

import numpy as np
import pytest

from cvxleak.audit.worst_adversary.group import Group
from cvxleak.audit.worst_adversary.log_ratio_boxes import LogRatioBoxes
from cvxleak.audit.worst_adversary.log_ratio_cells import LogRatioCells, possible
from cvxleak.audit.worst_adversary.time_sharing import TimeSharing, values_of
from cvxleak.kernel.many import Many
from cvxleak.kernel.numbers import precision
from cvxleak.mechanisms import binary_symmetric, random_rounding, truncated_geometric
from cvxleak.model import Expectation, GuessInTries, Mechanism, RecordSpace
from cvxleak.model.gain_form import GainForm
from cvxleak.queries import count, parity
from tests.audit.worst_adversary.statements import Stated, stated
from tests.kernel.ratio_search import boxes_of, one_value

GEOMETRIC = Mechanism(count(6), truncated_geometric(6, 0.5))


def lopsided(k: int, contexts: int, outputs: int = 4) -> Mechanism:
    """Return a mechanism of a record of k values, no two rows of which are alike."""
    rng = np.random.default_rng(5)
    rows = np.concatenate([rng.dirichlet(np.ones(outputs), size=contexts) for _ in range(k)])
    return Mechanism.from_channel(RecordSpace([range(k), range(contexts)]), rows)


def with_a_row_of_one_value() -> Mechanism:
    """Return a mechanism that ignores the other records for one of two values."""
    rows = [[0.5, 0.3, 0.2], [0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [0.1, 0.2, 0.7]]
    return Mechanism.from_channel(RecordSpace([range(2), range(2)]), rows)


def with_an_output_of_one_value() -> Mechanism:
    """Return a mechanism with an output that tells the value, where it occurs."""
    rows = [[0.5, 0.3, 0.2, 0], [0.4, 0.2, 0.4, 0], [0.2, 0.3, 0.4, 0.1], [0.1, 0.2, 0.5, 0.2]]
    return Mechanism.from_channel(RecordSpace([range(2), range(2)]), rows)


def with_proportional_outputs() -> Mechanism:
    noise = truncated_geometric(5, 0.5).matrix
    split = np.array([0.25, 0.75])
    return Mechanism(count(5), np.concatenate([noise[:, :-1], noise[:, -1:] * split], axis=1))


def grown(
    group: Group, above: float, nodes: int | None = None, multiplier: float = 0.3
) -> LogRatioCells:
    multipliers = np.array([multiplier, *np.zeros(len(group.limits.bounds))])
    sharing = TimeSharing.of(group, group.lumped.uniform(), multipliers, np.inf)
    cells = LogRatioCells(group, sharing)
    cells.run(
        lambda: sharing.bound + above,
        resolution=1e-9,
        stop=lambda: False,
        on_weights=lambda weights: None,
        node_limit=nodes,
    )
    return cells


def cases() -> dict[str, Stated]:
    made = {
        "geometric": GEOMETRIC,
        "parity": Mechanism(parity(4), binary_symmetric(0.2)),
        "three values": lopsided(3, 4),
        "a row alone": with_a_row_of_one_value(),
        "an output alone": with_an_output_of_one_value(),
        "proportional outputs": with_proportional_outputs(),
    }
    found = {name: stated(one, 0.95 * one.space.max_entropy) for name, one in made.items()}
    known = Expectation(range(7), at_most=2.8, query=count(6))
    found["a limit"] = stated(GEOMETRIC, 0.95 * GEOMETRIC.space.max_entropy, known=[known])
    return found


CASES = cases()


@pytest.mark.parametrize("name", CASES)
def test_the_kernel_proves_the_bound(name: str):
    case = CASES[name]
    assert possible(case.group)
    cells = grown(case.group, 2e-4)
    assert cells.upper <= cells.sharing.bound + 2e-4
    assert case.proved(cells.term()) == pytest.approx(cells.upper, abs=1e-9)
    assert case.largest(np.random.default_rng(3), 100) <= cells.upper


def test_the_mirror_image_has_the_tree_of_the_first_value():
    case = CASES["geometric"]
    cells = grown(case.group, 1e-3, multiplier=0.08)
    assert cells.mirrored
    first, second = cells.term()["of"]["values"]
    assert second["nodes"] == first["nodes"]
    assert second["x"] != first["x"]
    assert case.proved(cells.term()) == pytest.approx(cells.upper, abs=1e-9)


def test_a_bound_that_is_not_true_is_not_found():
    group = CASES["three values"].group
    cells = grown(group, 1e-3)
    before = cells.upper
    cells.run(
        lambda: cells.sharing.bound - 1e-6,
        resolution=-1.0,
        stop=lambda: False,
        on_weights=lambda weights: None,
        node_limit=cells.nodes + 300,
    )
    assert cells.sharing.bound - 1e-9 <= cells.upper <= before


def test_another_floor():
    case, lower = CASES["geometric"], stated(GEOMETRIC, 0.9 * GEOMETRIC.space.max_entropy)
    cells = grown(case.group, 1e-3)
    assert lower.proved(cells.term()) == pytest.approx(cells.upper_at(lower.group.surplus))


@pytest.mark.parametrize(
    "case",
    [
        stated(Mechanism(count(6), random_rounding(6, base=3)), 3.0),
        stated(GEOMETRIC, 3.0, GainForm(GuessInTries(1), "posterior")),
    ],
    ids=["zeros", "a gain"],
)
def test_where_the_rule_does_not_apply(case: Stated):
    assert not possible(case.group)


def test_boxes_are_the_kernels():
    value = values_of(CASES["three values"].group)[1]
    t, scale = np.array([0.2, 0.3, 0.4, 0.1]), 0.2
    rng = np.random.default_rng(4)
    v = rng.dirichlet(np.ones(len(value.rows)))
    with precision(), np.errstate(all="ignore"):
        one = one_value(value.rows, [1] * len(value.rows), scale, t)
        made = LogRatioBoxes.of(value, np.zeros(len(v)), scale, np.log(t), v)
        boxes, back = made.boxes, np.argsort(made.groups)
        arrays = {"order": made.outputs, "x": boxes.x[back], "psi": made.psi}
        law = (made.law[back] / made.law.sum()).tolist()
        groups = made.groups if boxes.ordered else np.empty(0, int)
        kernel = boxes_of(one, {"law": law, "groups": groups, **arrays}).lifted(Many.table)
        assert boxes.root == pytest.approx(kernel.root, abs=1e-12)
        for width in (1.0, 0.3, 0.1, 0.01):
            ends = boxes.root * width * rng.random((20, 2, 1))
            narrowed = kernel.narrowed(ends)
            assert boxes.narrowed(ends) == pytest.approx(narrowed, abs=1e-9)
            assert boxes.bound(narrowed).m == pytest.approx(kernel.bound(narrowed).m, abs=1e-9)
