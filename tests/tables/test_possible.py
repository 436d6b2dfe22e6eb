"""The true counts that a published table still allows, against trying every table."""

import numpy as np
import pytest

from cvxleak.core import ValidationError
from cvxleak.core.errors import InfeasibleError, SolveInterrupted
from cvxleak.model import Gaussian
from cvxleak.tables import (
    PerturbationTable,
    RandomRounding,
    RoundToNearest,
    SuppressBelow,
    Table,
    TableRelease,
    possible_counts,
)


def drawn(release: TableRelease, counts: np.ndarray, rng: np.random.Generator) -> list[int]:
    """What is published of a table, each number drawn by itself."""
    values = []
    for (_, noise), places in zip(release.noise, release.sums, strict=True):
        law = noise.law(int(counts[list(places)].sum()))
        values.append(int(rng.choice(list(law), p=[float(p) for p in law.values()])))
    return values


def enumerated(release: TableRelease, published: list[int], most: int, known: bool) -> np.ndarray:
    """The numbers of all tables that could have been published like this, by trying every one."""
    table = release.table
    cells = len(table.cells)
    counts = np.indices((most + 1,) * cells).reshape(cells, -1)
    total = counts.sum(axis=0)
    fits = np.ones(len(total), dtype=bool)
    if known:
        fits &= (total <= table.people) if table.outside else (total == table.people)
    for (_, noise), places, y in zip(release.noise, release.sums, published, strict=True):
        possible = [count for count in range(most * cells + 1) if y in noise.law(count)]
        fits &= np.isin(counts[list(places)].sum(axis=0), possible)
    return (table.incidence.astype(int) @ counts[:, fits]).T


@pytest.fixture(scope="module")
def with_holes(tmp_path_factory):
    """A count of 1 is never published as 1, so 1 comes from 0, 2 and 3 only."""
    path = tmp_path_factory.mktemp("ptable") / "ptable.csv"
    path.write_text("i,j,p\n1,0,1/2\n1,3,1/2\n2,1,1/2\n2,3,1/2\n3,1,1/2\n3,4,1/2\n")
    return PerturbationTable(path, summed_keys=False)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    "case", ["rounding", "holes", "mixed", "outside", "nearest", "suppressed", "below"]
)
def test_the_ends_are_those_of_all_tables(case, known, with_holes):
    rng = np.random.default_rng(3)
    shape = {"a": ["x", "y"], "b": [0, 1]}
    noises = {
        "rounding": RandomRounding(3),
        "holes": with_holes,
        "outside": RandomRounding(2),
        "nearest": RoundToNearest(2, halves="even"),
        "suppressed": SuppressBelow(3, zeros=False),
        "below": SuppressBelow(3, 0).then(RoundToNearest(2)),
    }
    for _ in range(3):
        counts = rng.integers(0, 4, 4)
        counts[0] += 1
        table = Table(shape, int(counts.sum()), outside=case == "outside")
        noise = noises.get(case)
        if noise is None:
            kinds = [RandomRounding(3), with_holes, None]
            noise = {label: kinds[i % 3] for i, label in enumerate(table.numbers)}
        release = TableRelease(table, noise)
        published = drawn(release, counts, rng)
        found = possible_counts(release, published, known_people=table.people if known else None)
        fits = enumerated(release, published, 10, known)
        assert (found.smallest, found.largest) == (tuple(fits.min(0)), tuple(fits.max(0)))
        assert all(low <= end for low, end in zip(found.lower, fits.min(0), strict=True))
        assert all(high >= end for high, end in zip(found.upper, fits.max(0), strict=True))
        if case not in ("holes", "mixed"):
            # A table of two variables is totally unimodular: duality is exact.
            assert (found.lower, found.upper) == (found.smallest, found.largest)


@pytest.fixture
def rounded(tmp_path):
    """Counts (1698, 64; 103, 6) with all margins, each number rounded to the nearest 5."""
    path = tmp_path / "rounded.csv"
    path.write_text("sex/answer,no,yes,total\nf,1700,65,1760\nm,105,5,110\ntotal,1800,70,1870\n")
    return path


@pytest.mark.parametrize(
    ("known", "small"), [(None, (4, 7)), (1870, (4, 6)), (1871, (5, 7)), (1872, (6, 7))]
)
def test_a_rounded_total_is_not_the_number_of_people(rounded, known, small):
    release = TableRelease(Table.from_published(rounded), RoundToNearest(5))
    found = possible_counts(release, rounded, known_people=known)
    near = [range(y - 2, y + 3) for y in (1700, 65, 105, 5)]
    fits = np.array(np.meshgrid(*near)).reshape(4, -1)
    numbers = release.table.incidence.astype(int) @ fits
    fits = (
        5 * np.floor(numbers / 5 + 0.5) == np.array(release.as_published(rounded))[:, None]
    ).all(axis=0)
    fits &= True if known is None else numbers[-1] == known
    truth = numbers[:, fits]
    assert found.lower == found.smallest == tuple(truth.min(axis=1))
    assert found.upper == found.largest == tuple(truth.max(axis=1))
    place = found.numbers.index(("m", "yes"))
    assert (found.lower[place], found.upper[place]) == small
    what = "what was published alone" if known is None else f"the number of people, {known}"
    assert str(found).partition("\n")[0].endswith(what)
    assert repr(found).endswith(f"{what})")
    assert what in found._repr_html_()


def test_the_number_of_people_of_the_table_is_not_used(rounded):
    variables = {"sex": ["f", "m"], "answer": ["no", "yes"]}
    layout = Table.from_published(rounded)
    alone = possible_counts(TableRelease(layout, RoundToNearest(5)), rounded)
    for table in (
        Table(variables, people=1870),
        Table(variables, counts=[[1698, 64], [103, 6]]),
        Table(variables, counts=[[1, 0], [0, 0]]),
    ):
        assert possible_counts(TableRelease(table, RoundToNearest(5)), rounded) == alone


def test_numbers_left_out_to_protect_others_have_no_noise(tmp_path):
    path = tmp_path / "published.csv"
    path.write_text("row/column,a,b,Sum\n1,x,x,10\n2,x,x,10\nSum,12,8,20\n")
    table = Table.from_published(path)
    exact = {label: RoundToNearest(1) for label in table.numbers}
    release = TableRelease(table, exact | dict.fromkeys(table.cells))
    found = possible_counts(release, path)
    assert found.numbers == table.numbers
    assert found.lower[:4] == (2, 0, 2, 0)
    assert found.upper[:4] == (10, 8, 10, 8)
    shown = TableRelease(table, exact)
    with pytest.raises(ValidationError, match=r"found 'x', and .* shows every number"):
        possible_counts(shown, path)


def test_solvers_get_small_numbers_however_many_people_there_are(with_holes, capfd):
    # With sums near 10^11 HiGHS leaves its tolerances, tells so on stdout, and may find nothing.
    for seed in (1, 5, 8):
        rng = np.random.default_rng(seed)
        counts = np.where(
            rng.random((6, 6)) < 0.5,
            rng.integers(0, 2, (6, 6)),
            rng.integers(0, 5 * 10**10, (6, 6)),
        )
        release = TableRelease(Table({"a": range(6), "b": range(6)}, counts=counts), with_holes)
        published = [rng.choice(sorted(with_holes.law(int(true)))).item() for true in release.true]
        found = possible_counts(
            release, published, known_people=int(counts.sum()) if seed % 2 else None
        )
        ends = zip(found.lower, release.true, found.upper, strict=True)
        assert all(high is not None and low <= true <= high for low, true, high in ends)
    assert capfd.readouterr().out == ""


def test_a_published_cross_table_without_names_is_read_as_the_table_is_shown(tmp_path):
    path = tmp_path / "published.csv"
    path.write_text(",0,1\n0,3,6\n1,0,9\n")
    variables = {"before": [0, 1], "after": [0, 1]}
    for columns, across in ((["before"], "before"), (["after"], "after"), ([], "after")):
        table = Table(variables, 18, margins=False, columns=columns)
        release = TableRelease(table, RandomRounding(3))
        found = dict(zip(release.numbers, release.as_published(path), strict=True))
        assert found[(0, 1) if across == "after" else (1, 0)] == 6


def test_whole_numbers_may_be_written_as_floats():
    release = TableRelease(Table({"answer": ["no", "yes"]}, people=5), RandomRounding(3))
    assert possible_counts(release, [0.0, 3.0, 6]) == possible_counts(release, [0, 3, 6])
    with pytest.raises(ValidationError, match=r"expected an integer .* found 0\.5"):
        possible_counts(release, [0.5, 3, 6])


def test_unbounded_noise_excludes_nothing():
    table = Table({"x": ["a", "b"]}, people=7)
    known = possible_counts(TableRelease(table, Gaussian(1)), [1.5, 2.5, 3.0], known_people=7)
    assert (known.lower, known.upper) == ((0, 0, 7), (7, 7, 7))
    open_ends = possible_counts(TableRelease(table, Gaussian(1)), [1.5, 2.5, 3.0])
    assert open_ends.upper == (None, None, None)
    assert open_ends.largest == (None, None, None)
    assert open_ends.to_frame()["upper"].isna().all()


def test_three_variables_hold_beside_a_gap():
    rng = np.random.default_rng(1)
    table = Table({"a": [0, 1], "b": [0, 1], "c": [0, 1]}, counts=rng.integers(0, 5, (2, 2, 2)))
    release = TableRelease(table, RandomRounding(3))
    found = possible_counts(release, drawn(release, table.in_cells, rng))
    columns = zip(found.lower, found.smallest, table.true, found.largest, found.upper, strict=True)
    for lower, smallest, true, largest, upper in columns:
        assert lower <= smallest <= true <= largest <= upper


def test_progress_is_told():
    told = []
    release = TableRelease(Table({"x": ["a", "b"]}, people=4), RandomRounding(3))
    possible_counts(release, [3, 0, 3], progress=lambda done, of: told.append((done, of)))
    assert told == [(0, 3), (1, 3), (2, 3)]


@pytest.mark.parametrize("margins", [True, False])
def test_ctrl_c_and_the_clock_leave_bounds_that_hold(margins):
    table = Table({"x": ["a", "b", "c"], "y": [0, 1]}, people=12, margins=margins)
    release, published = TableRelease(table, RandomRounding(3)), [3, 0, 3, 3, 3, 0]
    published += [3, 6, 3, 9, 3, 12] if margins else []
    whole = possible_counts(release, published, known_people=12)

    def press(done, total):
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(SolveInterrupted) as found:
        possible_counts(release, published, known_people=12, progress=press)
    late = possible_counts(release, published, known_people=12, time_limit=0.0)
    for part, done in (found.value.bound, 2), (late, 1):
        assert part.numbers == whole.numbers
        assert (part.lower[:done], part.upper[:done]) == (whole.lower[:done], whole.upper[:done])
        ends = zip(part.lower, whole.smallest, part.smallest, strict=True)
        assert all(low <= least <= value for low, least, value in ends)
        ends = zip(part.largest, whole.largest, part.upper, strict=True)
        assert all(value <= most <= high for value, most, high in ends)
        assert max(part.upper) <= 12
    with pytest.raises(SolveInterrupted) as nothing:
        possible_counts(release, published, progress=lambda done, total: press(2, total))
    assert nothing.value.bound is None


def test_what_cannot_be_published_is_refused():
    release = TableRelease(Table({"x": ["a", "b"]}, people=4), RandomRounding(3))
    with pytest.raises(InfeasibleError, match="no table of whole numbers"):
        possible_counts(release, [9, 9, 3])
    with pytest.raises(ValidationError, match=r"found 4 for \('a',\), which RandomRounding\(3\)"):
        possible_counts(release, [4, 0, 3])
    with pytest.raises(ValidationError, match="found 2 values; 3 numbers are published"):
        possible_counts(release, [3, 0])
    with pytest.raises(ValidationError, match=r"1 of 3 numbers is missing, \[\('total',\)\]"):
        possible_counts(release, {"a": 3, "b": 0})
    with pytest.raises(ValidationError, match=r"found \('c',\)"):
        possible_counts(release, {"a": 3, "b": 0, "c": 3})
    with pytest.raises(ValidationError, match=r"published\[\('a',\)\]"):
        possible_counts(release, [0.5, 0, 3])
