"""Exact histories against a brute-force enumeration of all of them."""

from itertools import product

import numpy as np
import pytest
from flint import fmpq

from cvxleak.desk.history import Entry, History
from cvxleak.desk.kernels import GRID, constant, copied, draw, expected_cost, mixed, on_grid
from cvxleak.desk.realized import RealizedHistory
from cvxleak.errors import ValidationError
from cvxleak.measures import mutual_information

PRIOR = [0.5, 0.25, 0.25]


def leakage(joint):
    """I(V; X) of a table p(x, v)."""
    joint = np.asarray(joint)
    law = joint.sum(axis=1)
    return mutual_information(law / law.sum(), joint / law[:, None])


def random_release(history, party, outputs, rng):
    shape = (history.classes, len(PRIOR), outputs)
    weights = rng.integers(0, 5, size=shape) + (rng.random(shape) < 0.5)
    weights[..., 0] += 1
    kernel = on_grid(weights / weights.sum(axis=-1, keepdims=True))
    support = [q != 0 for q in history.joint[history.realized]]
    output = int(np.flatnonzero(kernel[history.realized][support].sum(axis=0))[-1])
    return Entry(party, kernel.tolist(), output)


@pytest.mark.parametrize("seed", range(4))
def test_views_are_those_of_the_whole_tree_of_histories(seed):
    rng = np.random.default_rng(seed)
    observers = [frozenset("A"), frozenset("B"), frozenset("AB"), frozenset("AC")]
    history = History(PRIOR, (), observers)
    parties = ["A", "B", "A", "C"]
    # Every history by its outputs: its class now, and p(z, x).
    tree = {(): (0, np.array(PRIOR))}
    for party in parties:
        entry = random_release(history, party, 2, rng)
        before = history.classes
        grown = {}
        for z, (c, mass) in tree.items():
            for r in range(2):
                grown[(*z, r)] = (c, mass * np.array(entry.kernel)[c, :, r] / GRID)
        history.add(entry)
        assert history.classes <= 2 * before
        directions = np.array([[float(q.p) / float(q.q) for q in row] for row in history.joint])
        directions /= directions.sum(axis=1, keepdims=True)
        tree = {}
        for z, (_, mass) in grown.items():
            if mass.sum() > 0:
                distance = np.abs(directions - mass / mass.sum()).sum(axis=1)
                tree[z] = int(distance.argmin()), mass
                assert distance.min() < 1e-12
    for who in [*observers, None]:
        table = {}
        for z, (_, mass) in tree.items():
            view = tuple(r for r, party in zip(z, parties, strict=True) if not who or party in who)
            table[view] = table.get(view, 0) + mass
        expected = leakage(np.array(list(table.values())).T)
        lower, upper = history.leakage(who)
        assert lower <= upper <= lower + 1e-15
        np.testing.assert_allclose(upper, expected, atol=1e-12)


def test_histories_with_the_same_posterior_are_one():
    flip = on_grid(np.array([[[0.75, 0.25], [0.25, 0.75]]]))
    history = History([0.5, 0.5], (), [frozenset("A")])
    for step in range(6):
        kernel = np.repeat(flip, history.classes, axis=0)
        history.add(Entry("AB"[step % 2], kernel.tolist(), 0))
        assert history.classes == step + 2  # only the number of ones matters
    # A got three outputs and knows how many of them were ones.
    assert len({v for v, _ in history.table}) == 4
    three = np.array([[0.75**k * 0.25 ** (3 - k) for k in (0, 1, 1, 1, 2, 2, 2, 3)]])
    table = 0.5 * np.vstack([three, three[:, ::-1]])
    np.testing.assert_allclose(history.leakage(frozenset("A"))[1], leakage(table), atol=1e-12)


def test_the_realized_class_and_the_copies_of_a_release():
    history = History([0.5, 0.5])
    history.add(Entry("A", on_grid(np.array([[[0.9, 0.1], [0.1, 0.9]]])).tolist(), 1))
    assert history.release_of_class(0)[history.realized] == 1
    shape = (2, 2, 2)
    history.add(Entry("B", copied(history.release_of_class(0), shape).tolist(), 1))
    assert history.classes == 2  # the copy told nothing
    assert history.release_of_class(0) == history.release_of_class(1)
    history.add(Entry("C", on_grid(np.array([[[0.1, 0.9], [0.9, 0.1]]] * 2)).tolist(), 1))
    # What A got and what C got cancel or agree: the class of the even ones holds both of A's.
    assert history.classes == 3
    assert None in history.release_of_class(0)
    with pytest.raises(ValidationError, match="cannot give it"):
        history.add(Entry("D", constant((3, 2, 2), 0).tolist(), 1))


def test_kernels_that_do_not_fit():
    history = History([0.5, 0.5])
    for kernel in ([], [[[1.0]]], [[[1.0, 0.0], [1.0]]], [[[1.0]] * 2] * 2):
        with pytest.raises(ValidationError, match="kernel"):
            history.add(Entry("A", kernel, 0))
        if len(kernel) != 1 or len(kernel[0]) != 2:
            with pytest.raises(ValidationError, match="kernel"):
                RealizedHistory([0.5, 0.5]).add(Entry("A", kernel, 0))


def test_a_history_that_grows_too_large_says_so(monkeypatch):
    monkeypatch.setattr("cvxleak.desk.history.SIZE_LIMIT", 20)
    history = History(PRIOR, (), [frozenset("A")])
    rng = np.random.default_rng(0)
    history.add(random_release(history, "A", 3, rng))
    entry = random_release(history, "A", 3, rng)
    with pytest.raises(ValidationError, match="fewer outputs, or begin a ledger in realized mode"):
        history.add(entry)


def test_realized_history_follows_bayes():
    rng = np.random.default_rng(1)
    law, told = np.array(PRIOR), []
    history = RealizedHistory(PRIOR)
    for party in "ABA":
        entry = random_release(history, party, 3, rng)
        rows = np.array(entry.kernel)[0] / GRID
        told.append((party, mutual_information(law, rows)))
        law = law * rows[:, entry.output] / (law @ rows[:, entry.output])
        history.add(entry)
    np.testing.assert_allclose([float(q.p) / float(q.q) for q in history.joint[0]], law)
    for who in ("A", "B", "AB"):
        counted = history.leakage(frozenset(who))
        np.testing.assert_allclose(counted, sum(i for party, i in told if party in who))
        assert counted[0] <= counted[1]
    np.testing.assert_allclose(history.leakage()[1], sum(i for _, i in told))
    # B's one output was made knowing A's first one.
    np.testing.assert_allclose(history.knowable(frozenset("B")), told[0][1] + told[1][1])
    assert history.knowable(frozenset("C")) == 0


def test_the_grid():
    rng = np.random.default_rng(2)
    rows = rng.dirichlet(np.ones(5) * 0.3, size=(4, 6))
    kernel = on_grid(rows)
    assert (kernel.sum(axis=-1) == GRID).all()
    assert (kernel >= 0).all()
    assert np.abs(kernel / GRID - rows).max() < 2 / GRID
    tiny = on_grid(np.array([[[1 - 2e-7, 1e-7, 1e-7]]]))
    assert tiny.tolist() == [[[GRID, 0, 0]]]
    noise = on_grid(np.array([[[1 / 3 + 1e-12, 1 / 3, 1 / 3 - 1e-12]]]))
    assert noise.tolist() == on_grid(np.array([[[1 / 3] * 3]])).tolist()
    assert (
        mixed(kernel, constant(kernel.shape, 2), 1.0).tolist() == constant(kernel.shape, 2).tolist()
    )
    assert mixed(kernel, constant(kernel.shape, 2), 0.0).tolist() == kernel.tolist()


def test_draws_follow_the_row_and_never_give_what_has_no_probability():
    row = [0, GRID // 4, 0, GRID - GRID // 4, 0]
    drawn = [draw(row) for _ in range(4000)]
    assert set(drawn) == {1, 3}
    assert abs(drawn.count(1) / 4000 - 0.25) < 0.05  # seven standard deviations


def test_expected_cost_is_exact_and_rounded_up():
    joint = [(fmpq(1, 3), fmpq(2, 3))]
    cost = [[fmpq(0), fmpq(1)], [fmpq(1), fmpq(0)]]
    kernel = np.array([[[GRID, 0], [GRID, 0]]])
    assert expected_cost(joint, kernel, cost) == np.nextafter(2 / 3, 1)


def test_all_small_kernels_keep_the_law_of_the_data():
    for weights in product([0, 1], repeat=4):
        if weights[0] + weights[1] and weights[2] + weights[3]:
            rows = np.array([weights[:2], weights[2:]], dtype=float)
            kernel = on_grid(rows[None] / rows.sum(axis=-1)[None, :, None])
            history = History([0.25, 0.75])
            output = int(np.argmax(kernel[0].sum(axis=0)))
            history.add(Entry("A", kernel.tolist(), output))
            totals = [sum(column, fmpq(0)) for column in zip(*history.joint, strict=True)]
            assert totals == [fmpq(1, 4), fmpq(3, 4)]
