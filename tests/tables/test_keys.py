"""Numbers whose cell keys are sums, against all choices of the keys."""

import itertools
import math
import pickle
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import root

from cvxleak import measures
from cvxleak.core import ValidationError
from cvxleak.model import Gaussian
from cvxleak.tables import (
    PerturbationTable,
    RandomRounding,
    Table,
    TableRelease,
    cosets,
    keyed,
    keys,
    realized_leakage,
    table_privacy,
)
from cvxleak.tables import moves as many

ROW = Table({"x": ["a", "b", "c"]}, counts=[2, 1, 1])
WITH_EMPTY = Table({"x": ["a", "b", "c", "d"]}, counts=[2, 0, 3, 1])
OUTSIDE = Table({"x": ["a", "b"]}, 5, counts=[2, 1], outside=True)
SQUARE = Table({"x": ["a", "b"], "y": [0, 1]}, counts=[[1, 2], [1, 0]])
ONE_MARGIN = Table({"x": ["a", "b"], "y": [0, 1]}, counts=[[1, 2], [1, 1]], margins=[("x",)])
TABLES = [ROW, WITH_EMPTY, OUTSIDE, SQUARE, ONE_MARGIN]
CUBE = Table(dict.fromkeys("xyz", (0, 1)), counts=[[[2, 1], [1, 2]], [[1, 1], [2, 1]]])


def with_keys(folder: Path, size: int, rows: int = 3) -> PerturbationTable:
    """A perturbation table drawn at random, with so many keys."""
    rng = np.random.default_rng(size)
    lines = [
        f"{i},{key},{rng.choice([-1, 0, 0, 1])}" for i in range(1, rows + 1) for key in range(size)
    ]
    path = folder / f"keys{size}.csv"
    path.write_text("\n".join(["pcv,ckey,pvalue", *lines]))
    return PerturbationTable(path, cycle=2)


def by_all_keys(release: TableRelease, counts, size: int) -> dict[tuple[int, ...], Fraction]:
    """The law of everything published, by going through the keys of the cells with people."""
    cells = [cell for cell, count in enumerate(counts) if count]
    choices = [*itertools.product(range(size), repeat=len(cells))]
    key_of = dict(zip(cells, np.array(choices).T, strict=True))
    published = []
    for (_, noise), places in zip(release.noise, release.sums, strict=True):
        chosen = sum((key_of[place] for place in places if place in key_of), np.zeros(len(choices)))
        steps = noise.steps(sum(counts[place] for place in places))
        values = [next(y for end, y in steps if end * size > key) for key in range(size)]
        published.append([values[key] for key in (chosen % size).astype(int)])
    times = Counter(zip(*published, strict=True))
    return {outcome: Fraction(n, len(choices)) for outcome, n in times.items()}


def moved(table: Table, source: int, target: int) -> list[int]:
    """The counts after one person has moved."""
    counts = [*table.in_cells.tolist(), 0]
    counts[source] -= 1
    counts[target] += 1
    return counts[: len(table.cells)]


def moves(table: Table):
    counts = table.in_cells.tolist()
    inside = [*counts, table.people - sum(counts)]
    for a, b in itertools.permutations(range(len(table.alphabet)), 2):
        if inside[a]:
            yield a, b


def hockey_stick(p, r, epsilon):
    c = math.exp(epsilon)
    both = set(p) | set(r)
    return max(
        sum(max(float(x.get(y, 0)) - c * float(z.get(y, 0)), 0) for y in both)
        for x, z in ((p, r), (r, p))
    )


@pytest.mark.parametrize(
    ("table", "size"),
    # Of the last one's 27 numbers, 2^8 of 2^27 outcomes are possible.
    [*itertools.product(TABLES, (4, 5, 8)), (CUBE, 2)],
)
def test_the_joint_law_is_that_of_all_keys(tmp_path, table, size):
    release = TableRelease(table, with_keys(tmp_path, size))
    counts = table.in_cells.tolist()
    law = by_all_keys(release, counts, size)
    assert release.law(counts) == law
    linked = [*release.keyed.values()]
    for published in [*law][:20]:
        assert keys.joint_law(linked, counts, published) == {published: law[published]}
    assert not keys.joint_law(linked, counts, [99] * len(linked))


def test_independent_numbers_keep_their_places_among_linked_ones(tmp_path):
    noise = {("a",): with_keys(tmp_path, 4), ("b",): RandomRounding(3), ("c",): None}
    noise["total",] = noise["a",]
    release = TableRelease(ROW, noise)
    alone = TableRelease(ROW, {**noise, ("b",): None})
    law = by_all_keys(alone, [2, 1, 1], 4)
    rounded = RandomRounding(3).law(1)
    product = {(a, b, total): p * q for (a, total), p in law.items() for b, q in rounded.items()}
    assert release.law([2, 1, 1]) == product
    privacy = table_privacy(release, (("b",), ("a",)), this_table=True)
    after = {
        (a, b, total): p * q
        for (a, total), p in by_all_keys(alone, [3, 0, 1], 4).items()
        for b, q in RandomRounding(3).law(0).items()
    }
    truth = hockey_stick(product, after, 0.2)
    assert privacy.profile(0.2).lower == pytest.approx(truth, abs=1e-12)
    assert privacy.profile(0.2).upper == pytest.approx(truth, abs=1e-12)


def test_keys_from_0_to_1_are_the_limit_of_many_keys(tmp_path):
    # Steps at halves and quarters: a key is a quarter and a rest, which K keys have nearly.
    path, many = tmp_path / "p.csv", tmp_path / "k.csv"
    path.write_text("i,j,p\n1,0,1/2\n1,2,1/2\n2,1,1/4\n2,2,1/2\n2,3,1/4\n")
    size = 400
    rows = [(1, k, -1 if k < size // 2 else 1) for k in range(size)]
    rows += [(2, k, -1 if k < size // 4 else 1 if k >= 3 * size // 4 else 0) for k in range(size)]
    many.write_text("pcv,ckey,pvalue\n" + "\n".join(f"{i},{k},{v}" for i, k, v in rows))
    law = TableRelease(ROW, PerturbationTable(path)).law([2, 1, 1])
    near = TableRelease(ROW, PerturbationTable(many, cycle=1)).law([2, 1, 1])
    assert sum(law.values()) == 1
    assert set(law) == set(near)
    assert all(abs(law[y] - near[y]) < Fraction(3, size) for y in law)
    # Two uniform keys below 1/2 have a sum in [1/4, 3/4) with probability 3/4 of 1/4.
    pair = TableRelease(Table({"x": ["a", "b"]}, 2), PerturbationTable(path)).law([1, 1])
    assert pair[0, 0, 2] == Fraction(3, 16)
    with pytest.raises(ValidationError, match="keys from 0 to 1 are summed in 5 numbers"):
        TableRelease(SQUARE, PerturbationTable(path)).law([1, 2, 1, 1])


def maximum_entropy_row(count: int) -> dict[int, Fraction]:
    """The law on -2, ..., 2 with count + v >= 0, mean 0, variance 1 and the largest entropy."""
    v = np.arange(-min(count, 2), 3)

    def law(x):
        weights = np.exp(x[0] * v + x[1] * v**2)
        return weights / weights.sum()

    found = law(root(lambda x: [law(x) @ v, law(x) @ v**2 - 1], [0.0, -0.5], tol=1e-13).x)
    exact = [Fraction(round(p * 10**9), 10**9) for p in found]
    exact[-1] = 1 - sum(exact[:-1])
    return dict(zip(v.tolist(), exact, strict=True))


def test_a_total_tells_more_if_its_key_is_the_sum(tmp_path):
    path = tmp_path / "p.csv"
    rows = [f"{i},{i + v},{p}" for i in range(1, 4) for v, p in maximum_entropy_row(i).items()]
    path.write_text("\n".join(["i,j,p", *rows]))
    table = Table({"x": ["a", "b"]}, counts=[2, 2])
    found = []
    for summed in (True, False):
        release = TableRelease(table, PerturbationTable(path, summed_keys=summed))
        p, r = release.law([2, 2]), release.law([1, 3])
        found.append(sum(max(float(p.get(y, 0) - r.get(y, 0)), 0) for y in {*p, *r}))
        privacy = table_privacy(release, (("a",), ("b",)), this_table=True)
        assert privacy.profile(0).lower == pytest.approx(found[-1], abs=1e-12)
        assert privacy.profile(0).upper == pytest.approx(found[-1], abs=1e-12)
    assert found == pytest.approx([0.546, 0.526], abs=5e-4)


@pytest.mark.parametrize("table", TABLES)
def test_privacy_of_a_small_table_is_exact(tmp_path, table):
    release = TableRelease(table, with_keys(tmp_path, 4))
    law = by_all_keys(release, table.in_cells.tolist(), 4)
    for a, b in moves(table):
        after = by_all_keys(release, moved(table, a, b), 4)
        move = table.alphabet[a], table.alphabet[b]
        privacy = table_privacy(release, move, this_table=True)
        for epsilon in (0.0, 0.5, 1.5):
            truth = hockey_stick(law, after, epsilon)
            bound = privacy.profile(epsilon)
            assert bound.lower == pytest.approx(truth, abs=1e-12)
            assert bound.upper == pytest.approx(truth, abs=1e-12)


@pytest.mark.parametrize("table", TABLES)
def test_privacy_of_other_tables_is_between_its_bounds(tmp_path, table, monkeypatch):
    monkeypatch.setattr(keys, "WORK", 1)  # no joint law is quick enough
    release = TableRelease(table, with_keys(tmp_path, 4))
    law = by_all_keys(release, table.in_cells.tolist(), 4)
    worst = dict.fromkeys((0.0, 0.5, 1.5), 0.0)
    for a, b in moves(table):
        after = by_all_keys(release, moved(table, a, b), 4)
        move = table.alphabet[a], table.alphabet[b]
        privacy = table_privacy(release, move, this_table=True)
        for epsilon in worst:
            truth = hockey_stick(law, after, epsilon)
            worst[epsilon] = max(worst[epsilon], truth)
            bound = privacy.profile(epsilon)
            assert 0 < bound.lower - 1e-12 <= truth <= bound.upper + 1e-12
        assert privacy.zcdp().lower <= privacy.zcdp().upper
        outcomes = [*{*law, *after}]
        p, r = ([float(one.get(y, 0)) for y in outcomes] for one in (law, after))
        rates = np.linspace(0, 1, 11)
        curve = np.minimum(measures.trade_off(p, r, rates), measures.trade_off(r, p, rates))
        ends = privacy.trade_off(rates)
        assert (ends.lower <= curve + 1e-9).all()
    whole = table_privacy(release, this_table=True)
    for epsilon, truth in worst.items():
        bound = whole.profile(epsilon)
        assert bound.lower - 1e-12 <= truth <= bound.upper + 1e-12


@pytest.mark.parametrize("table", [ROW, OUTSIDE, ONE_MARGIN])
def test_the_worst_of_all_tables_is_that_of_each(tmp_path, table, monkeypatch):
    release = TableRelease(table, with_keys(tmp_path, 4))
    size, n = len(table.cells), table.people
    worst = dict.fromkeys((0.0, 0.5, 1.5), 0.0)
    for counts in itertools.product(range(n + 1), repeat=size):
        if sum(counts) == n or (table.outside and sum(counts) < n):
            one = Table(
                dict(table.variables),
                n,
                counts=np.reshape(counts, table.shape),
                margins=table.margins,
                outside=table.outside,
            )
            law = by_all_keys(release, list(counts), 4)
            for a, b in moves(one):
                after = by_all_keys(release, moved(one, a, b), 4)
                for epsilon in worst:
                    worst[epsilon] = max(worst[epsilon], hockey_stick(law, after, epsilon))
    for work, most in (keys.WORK, many.LINKED), (1, many.LINKED), (keys.WORK, 1):
        monkeypatch.setattr(keys, "WORK", work)
        monkeypatch.setattr(many, "LINKED", most)
        privacy = table_privacy(release)
        for epsilon, truth in worst.items():
            bound = privacy.profile(epsilon)
            assert bound.lower - 1e-12 <= truth <= bound.upper + 1e-12
            assert bound.lower > 0.9 * truth or work == 1
            assert sum(bound.witness.counts) == n or table.outside
            if work > 1 < most:
                assert bound.lower == pytest.approx(bound.upper, abs=1e-12)


@pytest.mark.parametrize(
    ("shape", "people", "hidden", "options", "named"),
    [
        ((2, 3), 5, (), {}, True),
        ((2, 3), 9, (7, 9), {"outside": True}, False),
        ((3, 3), 7, (0, 14), {"zeros": [(0, 1)]}, False),
        ((3, 3), 4, range(9), {"outside": True}, True),
        ((2, 2, 2), 6, (), {"margins": [("a", "b"), ("c",)]}, True),
        ((6,), 5, (), {}, False),
        ((2, 3), 1, (), {}, False),
    ],
)
def test_a_cell_that_is_emptied_gives_a_lower_bound(
    tmp_path, monkeypatch, shape, people, hidden, options, named
):
    monkeypatch.setattr(many, "LINKED", 1)
    variables = {name: range(k) for name, k in zip("abc", shape, strict=False)}
    table = Table(variables, people, **options)
    noise = dict.fromkeys(table.numbers, with_keys(tmp_path, 5))
    noise |= dict.fromkeys([table.numbers[place] for place in hidden])
    keyed_alone = TableRelease(table, noise)
    noise[table.numbers[1]] = Gaussian(3)  # left out of the lower bound
    release = TableRelease(table, noise)
    move = (table.alphabet[-1], table.alphabet[2]) if named else None
    privacy = table_privacy(release, move)
    bound = privacy.profile(0.5)
    found = bound.witness
    assert bound.upper == 1
    assert privacy.zcdp().lower == math.inf == privacy.zcdp().upper
    assert privacy.trade_off([0.0]).upper == pytest.approx([1 - bound.lower], abs=1e-9)
    assert move in (None, (found.source, found.target))
    inside = [*found.counts, people - sum(found.counts)]
    a, b = (table.place_of(cell, "move") for cell in (found.source, found.target))
    assert min(inside) >= 0 < inside[a]
    assert inside[-1] == 0 or table.outside
    after = list(inside)
    after[a] -= 1
    after[b] += 1
    law, other = (by_all_keys(keyed_alone, some, 5) for some in (inside, after))
    assert 0 < bound.lower <= hockey_stick(law, other, 0.5) + 1e-12
    alone = max(sum(p for y, p in x.items() if y not in z) for x, z in ((law, other), (other, law)))
    assert alone - 0.01 <= bound.lower  # nearly all that one of the two tables excludes is counted


def test_a_cell_that_is_emptied_gives_a_lower_bound_if_keys_are_from_0_to_1(tmp_path, monkeypatch):
    path = tmp_path / "p.csv"
    path.write_text("i,j,p\n1,0,1/4\n1,2,3/4\n2,2,1/2\n2,3,1/2\n3,2,1/3\n3,4,2/3\n")
    noise = PerturbationTable(path, cycle=2)
    monkeypatch.setattr(many, "LINKED", 1)
    release = TableRelease(Table({"x": range(3)}, 5), noise)
    bound = table_privacy(release).profile(0.5)
    counts = list(bound.witness.counts)
    law = release.law(counts)
    counts[bound.witness.source[0]] -= 1  # a cell's label has its place
    counts[bound.witness.target[0]] += 1
    other = release.law(counts)
    alone = max(sum(p for y, p in x.items() if y not in z) for x, z in ((law, other), (other, law)))
    assert bound.lower <= hockey_stick(law, other, 0.5) + 1e-12
    assert alone - 0.01 <= bound.lower < bound.upper == 1
    square = TableRelease(Table({"x": range(3), "y": range(4)}, 30), noise)
    assert 0.9 < table_privacy(square).profile(0.5).lower <= 1


def test_cells_whose_keys_stay_hidden_narrow_the_upper_bound(tmp_path, monkeypatch):
    table = Table({"x": range(5)}, counts=[3, 2, 1, 2, 4])
    release = TableRelease(table, with_keys(tmp_path, 5))
    law, after = (by_all_keys(release, some, 5) for some in ([3, 2, 1, 2, 4], [2, 3, 1, 2, 4]))

    def upper(hidden: int) -> list[float]:
        monkeypatch.setattr(keyed, "MIXED", hidden)
        privacy = table_privacy(release, ((0,), (1,)), this_table=True)
        return [privacy.profile(epsilon).upper for epsilon in (0.0, 0.5, 1.5)]

    truth = [hockey_stick(law, after, epsilon) for epsilon in (0.0, 0.5, 1.5)]
    monkeypatch.setattr(keys, "WORK", 1)
    assert upper(1 << 29) == pytest.approx(truth, abs=1e-12)  # no key is revealed
    size = 5**2 * 4 * 4 * 3 * 4
    some, none = upper(size), upper(0)
    monkeypatch.setattr(keyed, "ATOMS", 4)
    monkeypatch.setattr(keyed, "BLOCKS", 2)
    rough = upper(1 << 29)
    for exact, one, two, three in zip(truth, some, none, rough, strict=True):
        assert exact - 1e-12 <= one <= two + 1e-12
        assert exact - 1e-12 <= three
    assert max(np.subtract(none, some)) > 1e-4
    assert max(np.subtract(rough, truth)) > 1e-6


@pytest.mark.parametrize(
    ("counts", "margins", "bits"),
    [
        ([2, 1, 1, 1, 3, 2], True, 32),
        ([2, 1, 1, 1, 0, 2], True, 2),
        ([2, 1, 1, 1, 3, 2], [("x",), ("y",)], 2),
        ([2, 1, 1, 3], True, 32),
    ],
)
def test_bounds_of_several_margins_hold(tmp_path, counts, margins, bits, monkeypatch):
    shape = 2, len(counts) // 2
    variables = {"x": range(shape[0]), "y": range(shape[1])}
    table = Table(variables, counts=np.reshape(counts, shape), margins=margins)
    release = TableRelease(table, with_keys(tmp_path, 4))
    monkeypatch.setattr(keys, "WORK", 1)
    monkeypatch.setattr(keyed, "WORK", 1)
    monkeypatch.setattr(cosets, "BITS", bits)
    law, uppers = by_all_keys(release, counts, 4), []
    for a, b in [*moves(table)][::7]:
        after = by_all_keys(release, moved(table, a, b), 4)
        move = table.alphabet[a], table.alphabet[b]
        privacy = table_privacy(release, move, this_table=True)
        for epsilon in (0.0, 0.5, 1.5):
            bound, truth = privacy.profile(epsilon), hockey_stick(law, after, epsilon)
            assert bound.lower - 1e-12 <= truth <= bound.upper + 1e-12
            uppers.append(bound.upper)
    assert shape == (2, 2) or min(uppers) < 0.99


def test_two_way_tables_with_256_keys_have_bounds(tmp_path):
    path = tmp_path / "p.csv"
    rows = [f"1,{key},{(key > 60) + (key > 180) - 1}" for key in range(256)]
    path.write_text("\n".join(["pcv,ckey,pvalue", *rows]))
    noise = PerturbationTable(path, cycle=1)
    counts = np.arange(20).reshape(4, 5) + 3
    release = TableRelease(Table({"x": range(4), "y": range(5)}, counts=counts), noise)
    for move in (((0, 0), (1, 1)), ((0, 0), (0, 1)), ((0, 0), (1, 0))):
        bound = table_privacy(release, move, this_table=True).profile(0.5)
        assert 0.1 < bound.lower < bound.upper < 0.95
    for shape in (4, 5), (10, 15):
        table = Table({"x": range(shape[0]), "y": range(shape[1])}, 10_000)
        privacy = table_privacy(TableRelease(table, noise))
        # At every level the same, since one of the two tables excludes what the other may give.
        assert privacy.profile(8).lower == privacy.profile(0).lower > 0.9


def test_beliefs_are_those_of_bayes_on_the_joint_law(tmp_path):
    for table in (ROW, OUTSIDE, SQUARE):
        release = TableRelease(table, with_keys(tmp_path, 5))
        published = [*release.law(table.in_cells.tolist())][3]
        found = realized_leakage(release, published)
        for a, b in moves(table):
            chances = [
                by_all_keys(release, moved(table, a, c), 5).get(published, 0)
                for c in range(len(table.alphabet))
            ]
            assert found.posterior[a, b] == pytest.approx(float(chances[b] / sum(chances)))


def test_what_is_too_large_is_named(tmp_path):
    noise = with_keys(tmp_path, 64)
    table = Table({"x": range(4), "y": range(4)}, counts=np.full((4, 4), 2))
    release = TableRelease(table, noise)
    with pytest.raises(
        ValidationError, match=r"joint distribution of 25 numbers .* the most is 268435456"
    ):
        release.law([2] * 16)
    mixed = dict.fromkeys(ROW.numbers, noise) | {("total",): with_keys(tmp_path, 8)}
    with pytest.raises(ValidationError, match=r"different keys \(64, 8\)"):
        TableRelease(ROW, mixed).law([2, 1, 1])


@pytest.mark.parametrize("counts", [[3, 2, 2], [2, 1, 0, 2], [1, 1, 2]])
def test_parts_of_keys_from_0_to_1_tell_no_less_than_the_table(tmp_path, counts):
    path = tmp_path / "p.csv"
    path.write_text("i,j,p\n1,0,1/4\n1,2,3/4\n2,2,1/2\n2,3,1/2\n")
    release = TableRelease(
        Table({"x": range(len(counts))}, counts=counts), PerturbationTable(path, 2)
    )
    after = [counts[0] - 1, counts[1] + 1, *counts[2:]]
    move = keyed.KeyedMove([*release.keyed.values()], (0, 1), (counts, after))
    exact = move.exact({}, 1)
    assert exact is not None
    for one, above in zip(exact, move.revealed(), strict=True):
        assert one.below(above)
    large = np.arange(3, 15).reshape(3, 4)
    whole = TableRelease(
        Table({"x": range(3), "y": range(4)}, counts=large), PerturbationTable(path, 2)
    )
    delta = table_privacy(whole, ((0, 0), (1, 1)), this_table=True).profile(0.5)
    assert 0.5 < delta.lower < delta.upper < 1


def test_numbers_that_share_no_cell_are_independent(tmp_path):
    noise = with_keys(tmp_path, 64)
    alone = PerturbationTable(noise.path, cycle=2, summed_keys=False)
    cells = Table({"x": range(20)}, people=1000, margins=False)
    profiles = [table_privacy(TableRelease(cells, one)).profile(0.5) for one in (noise, alone)]
    assert profiles[0].upper == profiles[1].upper == profiles[0].lower
    total = {("a",): RandomRounding(3), ("b",): RandomRounding(2), ("c",): None, ("total",): noise}
    release = TableRelease(ROW, total)
    assert not release.linked
    after = {**total, ("total",): None}
    law = TableRelease(ROW, after).law([2, 1, 1])
    key = noise.law(4)
    assert release.law([2, 1, 1]) == {
        (*y, t): p * q for y, p in law.items() for t, q in key.items()
    }


def test_a_move_may_change_no_number_that_keys_link(tmp_path):
    table = Table({"x": ["a", "b"], "y": [0, 1]}, counts=[[2, 1], [1, 1]], margins=[("x",)])
    noise = with_keys(tmp_path, 4)
    given = {label: noise if label[0] == "b" else RandomRounding(3) for label in table.numbers}
    release = TableRelease(table, given)
    assert release.linked
    found = table_privacy(release, (("a", 0), ("a", 1)), this_table=True).profile(0.5)
    truth = hockey_stick(release.law([2, 1, 1, 1]), release.law([1, 2, 1, 1]), 0.5)
    assert found.lower == pytest.approx(truth) == found.upper


def test_nobody_has_the_key_0(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("i,j,p\n0,0,1/2\n0,1,1/2\n1,0,1/2\n1,2,1/2\n")
    assert PerturbationTable(path).law(0) == {0: 1}
    assert PerturbationTable(path, summed_keys=False).law(0) == dict.fromkeys(
        (0, 1), Fraction(1, 2)
    )


def test_a_file_that_has_changed_is_another_table(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("i,j,p\n1,0,1/2\n1,2,1/2\n")
    first, same = PerturbationTable(path), PerturbationTable(path)
    assert first == same == pickle.loads(pickle.dumps(first))
    assert hash(first) == hash(same)
    path.write_text("i,j,p\n1,0,2/3\n1,3,1/3\n")
    later = PerturbationTable(path)
    assert first != later
    assert len({first, same, later}) == 2
