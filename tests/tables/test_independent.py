"""What a table tells about one of many independent people, against enumeration and closed forms."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.special import rel_entr

from cvxleak.audit import product_leakage
from cvxleak.core import SolveInterrupted, ValidationError
from cvxleak.model import DiscreteLaplace, Gaussian, Laplace, Rounded, Uniform
from cvxleak.problem import Stopped
from cvxleak.proofs import verify
from cvxleak.tables import (
    PerturbationTable,
    RandomRounding,
    Table,
    TableAdversary,
    TableRelease,
    table_leakage,
)
from cvxleak.tables.products import Products
from tests import reference

ROUNDED = RandomRounding(3)
SQUARE = {"sex": ["f", "m"], "answer": ["no", "yes"]}


def keyed(folder: Path, summed: bool) -> PerturbationTable:
    path = folder / "ptable.csv"
    path.write_text("pcv,ckey,pvalue\n1,0,-1\n1,1,0\n1,2,1\n2,0,0\n2,1,0\n2,2,1\n")
    return PerturbationTable(path, cycle=1, summed_keys=summed)


def information(law: np.ndarray, rows: np.ndarray) -> float:
    used = law > 0
    return float((law[used, None] * rel_entr(rows[used], law @ rows)).sum())


def rows_given(release: TableRelease, others) -> np.ndarray:
    """The law of all that is published for each cell of one more person."""
    cells, laws = len(release.table.cells), []
    for cell in range(len(release.table.alphabet)):
        counts = list(others)
        if cell < cells:
            counts[cell] += 1
        laws.append(release.law(counts))
    outputs = sorted(set().union(*laws))
    return np.array([[float(law.get(y, 0)) for y in outputs] for law in laws])


def most_on_a_grid(release: TableRelease, points: int, least: float = 0.0) -> float:
    """The largest I(X_1; Y) over product laws of two cells on a grid, by adding up all datasets."""
    n = release.table.people
    grid = np.linspace(0, 1, points)
    others = least + (1 - 2 * least) * grid
    given = [release.law([ones, n - ones]) for ones in range(n + 1)]
    outputs = sorted(set().union(*given))
    laws = np.array([[float(law.get(y, 0)) for y in outputs] for law in given])
    best = 0.0
    for chances in itertools.combinations_with_replacement(others, n - 1):
        total = np.ones(1)
        for p in chances:
            total = np.convolve(total, [1 - p, p])
        rows = np.array([total @ laws[:n], total @ laws[1:]])
        best = max(
            best, reference.information(np.array([1 - grid, grid]).T[:, :, None] * rows).max()
        )
    return best


@pytest.mark.parametrize("least", [0.0, 0.15])
@pytest.mark.parametrize("noise", [ROUNDED, RandomRounding(2, up=[0.2])])
def test_no_product_law_on_a_grid_is_told_more(noise, least):
    table = Table({"x": ["a", "b"]}, people=3, margins=False)
    release = TableRelease(table, noise)
    bound = table_leakage(release, least_probability=least).whole()
    found = most_on_a_grid(release, 41, least)
    assert found <= bound.upper + 1e-12
    assert found >= bound.lower - 1e-3
    assert bound.upper - bound.lower < 1e-9


@pytest.mark.parametrize(
    "table",
    [
        Table({"x": ["a", "b", "c"]}, people=4),
        Table({"x": ["a", "b", "c"]}, people=4, outside=True, margins=False),
        Table(SQUARE, people=2, zeros=[("f", "no")]),
        Table({"x": ["a", "b"]}, people=1),
    ],
)
def test_whole_tables_are_those_of_the_mechanism_written_out(table):
    for noise in ROUNDED, RandomRounding(2):
        release = TableRelease(table, noise)
        bound, direct = table_leakage(release).whole(), product_leakage(release.mechanism)
        assert bound.lower == pytest.approx(direct.lower, abs=1e-6)
        assert bound.upper == pytest.approx(direct.upper, abs=1e-6)
        assert verify(bound.certificate).passed


@pytest.mark.parametrize(
    "known",
    [
        {},
        {"least_probability": 0.1},
        {"laws": [[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]},
        {"laws": [[[1, 0, 0]], [[0.3, 0.3, 0.4]], [[0.5, 0.5, 0], [0, 0.5, 0.5]]]},
    ],
)
def test_only_whether_a_person_is_counted_matters_to_a_number(known):
    table = Table({"x": ["a", "b", "c"]}, people=3)
    found = table_leakage(TableRelease(table, ROUNDED), **known)
    for label in table.numbers:
        alone = {other: None for other in table.numbers} | {label: ROUNDED}
        direct = product_leakage(TableRelease(table, alone).mechanism, **known)
        assert found.number(label).lower == pytest.approx(direct.lower, abs=1e-6)
        assert found.number(label).upper == pytest.approx(direct.upper, abs=1e-6)
    assert found.number(("total",)).upper == 0
    assert max(b.lower for b in found.numbers.values()) <= found.whole().upper


def test_a_known_law_gives_a_binomial_mixture():
    table = Table({"x": ["a", "b", "c", "d"]}, people=20, margins=False)
    law = np.array([0.1, 0.2, 0.3, 0.4])
    found = table_leakage(TableRelease(table, ROUNDED), laws=[law])
    total = np.ones(1)
    for _ in range(19):
        total = np.convolve(total, [0.7, 0.3])
    given = [ROUNDED.law(c) for c in range(21)]
    rows = np.array([[float(one.get(y, 0)) for y in range(0, 22, 3)] for one in given])
    mixed = np.array([total @ rows[:-1], total @ rows[1:]])
    truth = information(np.array([0.7, 0.3]), mixed)
    assert found.number("c").lower == pytest.approx(truth, rel=1e-6)
    assert found.number("c").upper == pytest.approx(truth, rel=1e-6)
    # Known others are the worst, and a number tells no more than the table.
    above = table_leakage(found.release).whole().upper
    assert found.number("d").lower <= found.whole().lower
    assert found.whole().upper == above


def test_closed_forms_of_single_numbers():
    table = Table(SQUARE, people=1_000_000)
    # The Z channel with 1 - e = 1/3: log(1 + (1 - e) e^(e / (1 - e))).
    z = math.log1p((2 / 3) ** 2 * (1 / 3))
    bound = table_leakage(TableRelease(table, ROUNDED)).number(("f", "total"))
    assert bound.lower == pytest.approx(z, rel=1e-8)
    assert bound.upper == pytest.approx(z, rel=1e-8)
    # Two intervals that share all but 1/4, and randomized response with e^-1.
    bound = table_leakage(TableRelease(table, Uniform(2.0))).number(("f", "no"))
    assert bound.lower == pytest.approx(math.log(2) / 4) == bound.upper
    q = 1 / (1 + math.e)
    symmetric = math.log(2) + q * math.log(q) + (1 - q) * math.log(1 - q)
    bound = table_leakage(TableRelease(table, DiscreteLaplace(1))).number(("f", "no"))
    assert bound.lower == pytest.approx(symmetric, rel=1e-6)
    assert bound.upper == pytest.approx(symmetric, rel=1e-6)


@pytest.mark.parametrize("margins", [True, [("sex",)]])
@pytest.mark.parametrize("noise", [ROUNDED, RandomRounding(2), RandomRounding(5)])
def test_witnesses_attain_and_local_laws_enclose(noise, margins):
    release = TableRelease(Table(SQUARE, people=40, margins=margins), noise)
    bound = table_leakage(release).whole()
    assert bound.upper - bound.lower < 1e-8
    witness = bound.witness
    assert isinstance(witness, TableAdversary)
    assert sum(witness.others) == 39
    rows = rows_given(release, witness.others)
    assert information(witness.law.probabilities, rows) == pytest.approx(bound.lower, rel=1e-6)
    products = Products(release.table, *table_leakage(release)._independent)
    lower, others = products.lower
    at_others = information(products.law.probabilities, rows_given(release, others))
    assert 0 < lower <= at_others <= bound.upper
    assert bound.upper <= products.upper


def test_the_worst_others_are_found_among_all():
    release = TableRelease(Table(SQUARE, people=7), RandomRounding(2, up=[0.25]))
    bound, worst = table_leakage(release).whole(), 0.0
    for others in itertools.product(range(7), repeat=4):
        if sum(others) == 6:
            rows = rows_given(release, others)
            worst = max(worst, information(np.full(4, 0.25), rows))
            assert worst <= bound.upper
    assert worst >= bound.lower * 0.8


def test_numbers_that_are_not_published_and_mixed_noise():
    table = Table(SQUARE, people=100)
    cells = {label: ROUNDED if label in table.cells else None for label in table.numbers}
    few = table_leakage(TableRelease(table, cells)).whole()
    rest = cells | {("total", "yes"): Gaussian(3)}
    more = table_leakage(TableRelease(table, rest)).whole()
    assert few.upper - few.lower < 1e-8
    # The yardstick is exact: a number more does not lower what the table tells.
    assert few.lower <= more.upper


def mixture(sigma: float) -> float:
    """The capacity of a bit of which a Gaussian of this standard deviation is added, by sums."""
    z = np.linspace(-12, 12, 40_001) * max(sigma, 0.2) + 0.5
    p, r = (np.exp(-(((z - at) / sigma) ** 2) / 2) for at in (0, 1))
    p, r = p / p.sum(), r / r.sum()
    return information(np.array([0.5, 0.5]), np.array([p, r]))


@pytest.mark.parametrize("sigma", [0.2, 0.5, 1.0, 4.0, 30.0])
def test_two_gaussian_cells_are_one_with_less_noise(sigma):
    table = Table({"x": ["a", "b"]}, people=1000)
    bound = table_leakage(TableRelease(table, Gaussian(sigma))).whole()
    truth = mixture(sigma / math.sqrt(2))
    assert bound.lower <= truth <= bound.upper
    assert truth - bound.lower < 0.35 * truth
    assert bound.upper - truth < 0.4 * truth


@pytest.mark.parametrize(
    "noise", [Gaussian(20), Laplace(20), DiscreteLaplace(20), Rounded(Gaussian(20), 2)]
)
def test_bounds_meet_where_a_large_table_tells_little_or_all(noise):
    table = Table({"age": range(12), "job": range(9)}, people=1_000_000)
    bound = table_leakage(TableRelease(table, noise)).whole()
    assert 0 < bound.lower <= bound.upper < bound.lower * 1.015
    clear = table_leakage(TableRelease(table, DiscreteLaplace(0.1))).whole()
    assert clear.upper == pytest.approx(math.log(108))
    assert clear.lower > 0.999 * math.log(108)


def test_whoever_knows_less_is_told_less():
    table = Table({"x": ["a", "b", "c"]}, people=6)
    release = TableRelease(table, ROUNDED)
    found = [table_leakage(release, least_probability=p) for p in (0.0, 0.1, 0.2, 0.3)]
    for one in "a", ("total",):
        ends = [each.number(one).upper for each in found]
        assert ends == sorted(ends, reverse=True)
    wholes = [each.whole().lower for each in found]
    assert wholes == sorted(wholes, reverse=True)


def test_summed_keys_tell_more_than_independent_ones(tmp_path):
    table = Table({"x": ["a", "b"]}, people=5, outside=True)
    wholes = []
    for summed in False, True:
        found = table_leakage(TableRelease(table, keyed(tmp_path, summed)))
        wholes.append(found.whole())
        assert found.number("a").upper <= found.whole().upper
    linked = TableRelease(table, keyed(tmp_path, True))
    worst = max(
        information(np.full(3, 1 / 3), rows_given(linked, (a, b)))
        for a in range(5)
        for b in range(5 - a)
    )
    assert worst <= wholes[1].upper
    assert wholes[1].lower > wholes[0].upper


@pytest.mark.slow
def test_of_summed_keys_the_cells_are_independent(tmp_path):
    linked = TableRelease(Table(SQUARE, people=6), keyed(tmp_path, True))
    found = table_leakage(linked)
    assert found.whole().upper == pytest.approx(math.log(4))
    assert found.whole().lower > found.number(("f", "no")).upper
    witness = found.whole().witness
    rows = rows_given(linked, witness.others)
    assert found.whole().lower <= information(witness.law.probabilities, rows)
    cells = [
        table_leakage(TableRelease(Table(SQUARE, people=60, margins=False), keyed(tmp_path, one)))
        for one in (True, False)
    ]
    assert cells[1].whole().lower <= cells[0].whole().upper < math.log(4)
    known = table_leakage(linked, least_probability=0.1)
    assert known.whole().lower == max(bound.lower for bound in known.numbers.values())


def test_one_cell_tells_nothing():
    for table in (Table({"x": ["a"]}, people=4), Table({"x": ["a", "b"]}, 4, zeros=[("b",)])):
        for noise in ROUNDED, Gaussian(2):
            found = table_leakage(TableRelease(table, noise))
            assert found.whole().lower == 0.0
            assert found.whole().upper < 1e-12


def test_what_is_refused_is_named():
    release = TableRelease(Table({"x": ["a", "b", "c"]}, people=10), Gaussian(2))
    with pytest.raises(ValidationError, match=r"release: the noise of \('a',\) is Gaussian"):
        table_leakage(release, least_probability=0.1).number("a")
    with pytest.raises(ValidationError, match="laws: found least_probability beside it"):
        table_leakage(release, laws=[[1, 1, 1]], least_probability=0.1)
    with pytest.raises(ValidationError, match="least_probability"):
        table_leakage(release, least_probability=0.5)
    with pytest.raises(ValidationError, match="label: found 'd'"):
        table_leakage(release).number("d")
    many = TableRelease(Table({"x": ["a", "b"]}, people=200_000), ROUNDED)
    with pytest.raises(ValidationError, match=r"release: the number \('a',\)"):
        table_leakage(many, least_probability=0.1).number("a")


def test_a_table_of_one_cell_tells_exactly_nothing():
    release = TableRelease(Table({"x": ["a"]}, people=5), RandomRounding(3))
    assert (table_leakage(release).whole().lower, table_leakage(release).whole().upper) == (
        0.0,
        0.0,
    )


@pytest.mark.parametrize(
    ("people", "noise", "known"),
    [
        (5, ROUNDED, {}),
        (5, Gaussian(2), {}),
        (60, ROUNDED, {"least_probability": 0.1}),
        (60, ROUNDED, {"laws": [[0.2, 0.3, 0.5]]}),
    ],
)
def test_bounds_that_are_reached_hold(people, noise, known):
    release = TableRelease(Table({"x": ["a", "b", "c"]}, people=people), noise)

    def number(told, **how):
        return told.number("a", **how)

    def whole(told, **how):
        return told.whole(**how)

    for ask in number, whole:
        parts = []
        told = table_leakage(release, **known)
        exact = ask(told, progress=lambda low, high, done: parts.append((low, high, done)))  # noqa: B023
        assert ask(told) == exact
        assert all(low <= exact.lower <= exact.upper <= high for low, high, _ in parts)
        for last in range(len(parts)):
            told, calls = table_leakage(release, **known), []

            def press(*part):
                calls.append(part)  # noqa: B023
                if len(calls) > last:  # noqa: B023
                    raise KeyboardInterrupt

            with pytest.raises(SolveInterrupted) as stopped:
                ask(told, progress=press)
            bound = stopped.value.bound
            assert bound.stats["stopped"] is Stopped.INTERRUPTED
            assert parts[last][0] <= bound.lower <= exact.lower
            assert exact.upper <= bound.upper <= math.log(3) + 1e-12
            assert ask(told) == exact
        late = ask(table_leakage(release, **known), time_limit=0.0)
        assert late.lower <= exact.lower <= exact.upper <= late.upper
        assert late.stats["stopped"] is Stopped.TIME_LIMIT or late == exact


def test_what_is_known_of_numbers_is_kept():
    def press(*_):
        raise KeyboardInterrupt

    told = table_leakage(TableRelease(Table({"x": ["a", "b", "c"]}, people=5), ROUNDED))
    number = told.number("a")
    with pytest.raises(SolveInterrupted) as whole:
        told.whole(progress=press)
    assert whole.value.bound.lower == number.lower > 0
    assert whole.value.bound.witness == number.witness
    assert whole.value.bound.upper == pytest.approx(math.log(3))
