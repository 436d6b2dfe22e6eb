"""Exact histories against a brute-force enumeration of all of them."""

from itertools import product

import numpy as np
import pytest
from flint import fmpq

from cvxleak.core.errors import ValidationError
from cvxleak.desk.history import Entry, History
from cvxleak.desk.kernels import GRID, copied, draw, expected_cost, mixed, on_grid
from cvxleak.desk.realized import RealizedHistory
from cvxleak.measures import mutual_information

PRIOR = [0.5, 0.25, 0.25]


def leakage(joint):
    """I(V; X) of a table p(x, v)."""
    joint = np.asarray(joint)
    law = joint.sum(axis=1)
    return mutual_information(joint / law[:, None], law / law.sum())


def random_release(history, party, outputs, rng):
    looker = party if party in history.lookers else None
    masses = history.seen(looker)
    shape = (len(masses), len(PRIOR), outputs)
    weights = rng.integers(0, 5, size=shape) + (rng.random(shape) < 0.5)
    weights[..., 0] += 1
    kernel = on_grid(weights / weights.sum(axis=-1, keepdims=True))
    seen = history.realized(looker)
    support = [q != 0 for q in masses[seen]]
    row = kernel[list(masses).index(seen)][support]
    return Entry(party, kernel.tolist(), int(np.flatnonzero(row.sum(axis=0))[-1]), bool(looker))


def floats(vectors):
    return np.array([[float(q.p) / float(q.q) for q in vector] for vector in vectors])


@pytest.mark.parametrize("looks", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_views_are_those_of_the_whole_tree_of_histories(seed, looks):
    rng = np.random.default_rng(seed)
    observers = [frozenset("A"), frozenset("B"), frozenset("AB"), frozenset("AC")]
    parties = ["A", "B", "A", "C", "A"][: 5 - looks]
    entries = []
    # Every history by its outputs: p(z, x).
    tree = {(): np.array(PRIOR)}
    for step, party in enumerate(parties):
        asker = party if looks and party in parties[:step] else None
        history = History(PRIOR, entries, (), asker)
        entry = random_release(history, party, 2, rng)
        seen = list(history.seen(asker))
        posteriors = floats(history.seen().values())
        posteriors /= posteriors.sum(axis=1, keepdims=True)
        grown = {}
        for z, mass in tree.items():
            distance = np.abs(posteriors - mass / mass.sum()).sum(axis=1)
            assert distance.min() < 1e-12
            own = tuple(r for r, who in zip(z, parties, strict=False) if asker and who == party)
            row = seen.index((own, int(distance.argmin())))
            for r in range(2):
                longer = mass * np.array(entry.kernel)[row, :, r] / GRID
                if longer.sum() > 0:
                    grown[(*z, r)] = longer
        tree = grown
        entries.append(entry)
    history = History(PRIOR, entries, observers)
    assert history.lookers == (("A",) if looks else ())
    for who in [*observers, None]:
        table = {}
        for z, mass in tree.items():
            view = tuple(r for r, party in zip(z, parties, strict=True) if not who or party in who)
            table[view] = table.get(view, 0) + mass
        expected = leakage(np.array(list(table.values())).T)
        lower, upper = history.leakage(who)
        assert lower <= upper <= lower + 1e-15
        np.testing.assert_allclose(upper, expected, atol=1e-12)
        assert history.spent(who) == upper


def test_histories_with_the_same_posterior_are_one():
    flip = on_grid(np.array([[[0.75, 0.25], [0.25, 0.75]]]))
    history = History([0.5, 0.5], (), [frozenset("A")])
    for step in range(6):
        kernel = np.repeat(flip, history.classes, axis=0)
        history.add(Entry("AB"[step % 2], kernel.tolist(), 0))
        assert history.classes == step + 2  # only the number of ones matters
    # A got three outputs and knows how many of them were ones.
    assert len({key.views for key in history.table}) == 4
    three = np.array([[0.75**k * 0.25 ** (3 - k) for k in (0, 1, 1, 1, 2, 2, 2, 3)]])
    table = 0.5 * np.vstack([three, three[:, ::-1]])
    np.testing.assert_allclose(history.leakage(frozenset("A"))[1], leakage(table), atol=1e-12)


def test_what_a_history_says_of_an_earlier_output():
    flip = on_grid(np.array([[[0.9, 0.1], [0.1, 0.9]]])).tolist()
    past = [Entry("A", flip, 1)]
    history = History([0.5, 0.5], past)
    assert history.output_of(0, history.realized()) == 1
    copy = copied([history.output_of(0, seen) for seen in history.seen()], (2, 2, 2)).tolist()
    past.append(Entry("B", copy, 1))
    history = History([0.5, 0.5], past)
    assert history.classes == 2  # the copy told nothing
    assert [history.output_of(0, seen) for seen in history.seen()] == [
        history.output_of(1, seen) for seen in history.seen()
    ]
    past.append(Entry("C", on_grid(np.array([[[0.1, 0.9], [0.9, 0.1]]] * 2)).tolist(), 1))
    history = History([0.5, 0.5], past)
    # What A got and what C got cancel or agree: the class of the even ones holds both of A's.
    assert history.classes == 3
    assert None in [history.output_of(0, seen) for seen in history.seen()]
    # A's own kernel sees what A got.
    returning = History([0.5, 0.5], past, (), "A")
    assert {returning.output_of(0, seen, "A") for seen in returning.seen("A")} == {0, 1}
    assert returning.realized("A").own == (1,)
    with pytest.raises(ValidationError, match="not a possible output"):
        history.add(Entry("D", copied([0] * 3, (3, 2, 2)).tolist(), 1))


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
        told.append((party, mutual_information(rows, law)))
        law = law * rows[:, entry.output] / (law @ rows[:, entry.output])
        history.add(entry)
    np.testing.assert_allclose(floats(history.seen().values())[0], law)
    # B's one output was made knowing A's first one.
    for who, last in (("A", 3), ("B", 2), ("AB", 3)):
        lower, upper = history.leakage(frozenset(who))
        np.testing.assert_allclose(upper, sum(i for _, i in told[:last]))
        assert lower <= upper
    assert history.leakage(frozenset("C")) == (0.0, 0.0)
    assert history.leakage()[1] == history.spent(frozenset("C")) == history.spent()


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
    silent = copied([2] * len(kernel), kernel.shape)
    assert mixed(kernel, silent, 1.0).tolist() == silent.tolist()
    assert mixed(kernel, silent, 0.0).tolist() == kernel.tolist()


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
            totals = [sum(column, fmpq(0)) for column in zip(*history.seen().values(), strict=True)]
            assert totals == [fmpq(1, 4), fmpq(3, 4)]
