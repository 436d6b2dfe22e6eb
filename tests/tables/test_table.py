"""Tables: what is counted and published, read from people and from counts, or refused."""

import math
import pickle
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cvxleak import Mechanism
from cvxleak.core import ValidationError
from cvxleak.mechanisms import random_rounding
from cvxleak.model import Gaussian
from cvxleak.queries import crosstab, histogram
from cvxleak.tables import (
    TOTAL,
    PerturbationTable,
    RandomRounding,
    Table,
    TableRelease,
    table_leakage,
    table_privacy,
)

EXAMPLES = Path(__file__).parents[2] / "examples"
TWO = Table({"sex": ["f", "m"], "age": [1, 2, 3]}, counts=[[5, 2, 0], [4, 0, 1]])


def test_margins_are_sums_of_the_cells_that_agree_with_them():
    for label, value in zip(TWO.numbers, TWO.true, strict=True):
        agree = [
            count
            for cell, count in zip(TWO.cells, TWO.in_cells, strict=True)
            if all(part in (TOTAL, c) for part, c in zip(label, cell, strict=True))
        ]
        assert sum(agree) == value
    assert len(TWO.numbers) == 3 * 4
    assert (TWO.incidence @ TWO.in_cells == TWO.true).all()


@pytest.mark.parametrize(
    ("margins", "more"), [(True, 6), (False, 0), ([("sex",)], 2), ([()], 1), ([["age"], []], 4)]
)
def test_margins_are_those_asked_for(margins, more):
    table = Table(dict(TWO.variables), 12, margins=margins)
    assert len(table.numbers) == 6 + more


def test_three_variables_have_margins_of_one_and_two():
    table = Table({"a": [0, 1], "b": [0, 1], "c": [0, 1]}, 5)
    assert len(table.numbers) == 27


def test_structural_zeros_are_not_published():
    table = Table(dict(TWO.variables), 12, zeros=[("f", 3), ("m", 3)])
    assert ("f", 3) not in table.numbers
    assert (TOTAL, 3) not in table.numbers
    assert table.alphabet == table.cells
    assert len(table.cells) == 4
    with pytest.raises(ValidationError, match=r"counts: found 1 in the cell \('m', 3\)"):
        Table(dict(TWO.variables), counts=TWO.counts, zeros=[("m", 3)])


def test_somebody_outside_is_in_no_cell():
    table = Table({"x": ["a", "b"]}, 3, counts=[1, 1], outside=True)
    assert table.alphabet == (("a",), ("b",), "outside")
    assert table.query((("a",), "outside", ("a",))) == (2, 0)
    assert table.query.space.size == 27


def test_tables_are_values():
    assert pickle.loads(pickle.dumps(TWO)) == TWO
    assert hash(pickle.loads(pickle.dumps(TWO))) == hash(TWO)
    assert Table(dict(TWO.variables), 12) != TWO


def test_people_and_counts_give_the_same_table(tmp_path):
    people = [
        (s, a) for (s, a), count in zip(TWO.cells, TWO.in_cells, strict=True) for _ in range(count)
    ]
    frame = pd.DataFrame(people, columns=["sex", "age"]).sample(frac=1, random_state=0)
    assert Table.from_microdata(frame, ["sex"], ["age"]).counts.tolist() == TWO.counts.tolist()
    path = tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    assert Table.from_microdata(path, ["sex", "age"]) == TWO
    cross = pd.crosstab(frame["sex"], frame["age"])
    assert Table.from_counts(cross).counts.tolist() == TWO.counts.tolist()
    assert Table.from_counts(cross).names == ("sex", "age")
    with_totals = pd.crosstab(frame["sex"], frame["age"], margins=True, margins_name=TOTAL)
    assert Table.from_counts(with_totals) == Table.from_counts(cross)
    TWO.to_frame().to_csv(path, index=False)
    assert Table.from_counts(path) == TWO


@pytest.mark.parametrize("name", ["Total", "TOTAL", "Sum"])
def test_margins_have_several_names(tmp_path, name):
    path = tmp_path / "counts.csv"
    path.write_text(f"sex/age,1,2,3,{name}\nf,5,2,0,7\nm,4,0,1,5\n{name},9,2,1,12\n")
    assert Table.from_counts(path) == Table(dict(TWO.variables), counts=TWO.counts, columns=["age"])
    layout = Table.from_published(path)
    assert layout.numbers == TWO.numbers
    assert TableRelease(layout, RandomRounding(1)).as_published(path) == TWO.true.tolist()


@pytest.mark.parametrize(
    "text",
    [
        # print(addmargins(table(sex, age))), and without names of the variables
        "     age\nsex    1  2  3 Sum\n  f    5  2  0   7\n  m    4  0  1   5\n  Sum  9  2  1 12\n",
        "   \n       1  2  3 Sum\n  f    5  2  0   7\n  m    4  0  1   5\n  Sum  9  2  1  12\n",
        # write.table and write.csv, with and without margins; of as.data.frame, and as printed
        '"1" "2" "3" "Sum"\n"f" 5 2 0 7\n"m" 4 0 1 5\n"Sum" 9 2 1 12\n',
        '"","1","2","3","Sum"\n"f",5,2,0,7\n"m",4,0,1,5\n"Sum",9,2,1,12\n',
        '"1"\t"2"\t"3"\n"f"\t5\t2\t0\n"m"\t4\t0\t1\n',
        '"","sex","age","Freq"\n"1","f","1",5\n"2","m","1",4\n"3","f","2",2\n"4","m","2",0\n'
        '"5","f","3",0\n"6","m","3",1\n',
        "  sex age Freq\n1   f   1    5\n2   m   1    4\n3   f   2    2\n4   m   2    0\n"
        "5   f   3    0\n6   m   3    1\n",
    ],
)
def test_tables_of_r_are_read(tmp_path, text):
    path = tmp_path / "counts.txt"
    path.write_text(text)
    table = Table.from_counts(path)
    assert table.counts.tolist() == TWO.counts.tolist()
    assert dict(table.variables)[table.names[0]] == ("f", "m")
    assert table.names == (("sex", "age") if "age" in text else ("row", "column"))
    release = TableRelease(Table.from_published(path), RandomRounding(1))
    assert release.as_published(path)[:6] == TWO.in_cells.tolist()


@pytest.mark.parametrize(
    "text", ['"Freq"\n"f" 30\n"m" 55\n', "  Freq\nf   30\nm   55\n", ",Freq\nf,30\nm,55\n"]
)
def test_a_single_column_of_r_is_a_table_of_one_variable(tmp_path, text):
    path = tmp_path / "counts.txt"
    path.write_text(text)
    layout = Table.from_published(path)
    assert layout.variables == (("row", ("f", "m")),)
    named = TableRelease(Table({"sex": ["f", "m"]}, margins=False), RandomRounding(1))
    assert named.as_published(path) == [30, 55]


def test_a_table_of_one_variable_as_r_prints_it_is_no_cross_table(tmp_path):
    path = tmp_path / "counts.txt"
    path.write_text("sex\n f  m \n30 55 \n")
    with pytest.raises(ValidationError, match=r"column called 'count' .* are needed"):
        Table.from_published(path)


def test_the_layout_of_what_was_published(tmp_path):
    path = tmp_path / "published.csv"
    path.write_text("age,sex,count\n1,f,3\n1,m,0\n2,f,6\n2,m,3\ntotal,f,6\ntotal,m,6\n")
    layout = Table.from_published(path)
    assert layout.margins == (("sex",),)
    assert layout.counts is None
    assert (
        pickle.loads(pickle.dumps(layout))
        == layout
        == Table(dict(layout.variables), margins=[["sex"]])
    )
    assert layout != Table(dict(layout.variables), 18, margins=[["sex"]])
    assert repr(layout) == "Table(age (2) and sex (2), 6 published numbers)"
    for asked in (
        lambda: layout.people,
        lambda: layout.query,
        lambda: table_privacy(TableRelease(layout, RandomRounding(3))),
        lambda: table_leakage(TableRelease(layout, RandomRounding(3))),
    ):
        with pytest.raises(ValidationError, match="people: is missing"):
            asked()
    path.write_text("x/y,a,b,All\nc,3,3,6\nAll,3,3,6\n")
    with pytest.raises(ValidationError, match="found 'All'; a margin is called 'total'"):
        Table.from_published(path)


def test_missing_values_are_refused_or_a_category():
    frame = pd.DataFrame({"x": ["a", None, "b"], "y": [1, 1, 2]})
    with pytest.raises(ValidationError, match="column 'x' has no value for person 1"):
        Table.from_microdata(frame, ["x"], ["y"])
    table = Table.from_microdata(frame, ["x"], ["y"], missing="category")
    assert dict(table.variables)["x"] == ("a", "b", "missing")
    assert table.counts.sum() == 3


def test_listed_categories_may_be_empty_and_are_all():
    people = {"x": ["a", "b", "a"]}
    table = Table.from_microdata(people, ["x"], categories={"x": ["c", "b", "a"]})
    assert table.counts.tolist() == [0, 1, 2]
    with pytest.raises(ValidationError, match=r"'x' has 'b' \(person 1"):
        Table.from_microdata(people, ["x"], categories={"x": ["a"]})


def test_cells_without_a_line_are_named_unless_their_counts_are_certain(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text("x,y,count\na,c,2\nb,c,1\nb,d,3\n")
    with pytest.raises(ValidationError, match=r"1 of 4 cells has no count, \[\('a', 'd'\)\]"):
        Table.from_counts(path)
    taken = Table.from_counts(path, missing="zero").counts
    assert taken.tolist() == [[2, 0], [1, 3]]
    assert Table.from_counts(path, zeros=iter([("a", "d")])).counts.tolist() == taken.tolist()
    for margin in ("a,total,2", "total,total,6"):
        with_margin = path.with_name("margin.csv")
        with_margin.write_text(path.read_text() + margin + "\n")
        assert Table.from_counts(with_margin).counts.tolist() == taken.tolist()
    path.write_text(path.read_text() + "b,total,4\n")
    with pytest.raises(ValidationError, match=r"\('a', 'd'\)"):
        Table.from_counts(path)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (
            "x/y,a,b,total\nc,1,2,4\ntotal,1,2,3\n",
            r"margin \('c', 'total'\) is 4; its cells sum to 3",
        ),
        ("x/y,a,b\nc,1,-2\n", "line 2: found -2"),
        ("x/y,a,b\nc,1,1.5\n", "line 2: found 1.5"),
        (f"x,count\na,{10**20}\n", "found about 10.20; a count is a whole number from 0 to"),
        ("x/y,a,a\nc,1,1\n", "there twice"),
        ("x,count\na,1\na,2\n", "there twice"),
        ("x,count\na,1\ntotal,2\n", "its cells sum to 1"),
        ("x,y,count\n", "no counts"),
        ("count\n4\n", "one for each variable"),
        ("sex,age\nf,young\nm,old\n", "Table.from_microdata .* counts a line for each person"),
        ("id,sex,age\n1,f,old\n", "found 'f'.* read as a cross table; Table.from_microdata"),
        ("sex;age;job\nf;1;1\nf;2;2\n", "there twice.* read as a cross table"),
        ("sex,number\nf,3\nm,4\n", "a column called 'count'"),
        ("sex|count\nf|3\n", "separated by commas, semicolons, tabs or spaces"),
        ("x/y,a,b,Total\nc,1,2,4\nTotal,1,2,3\n", r"is 4; .* Table.from_published reads them"),
        ("x/y,a,b\nc,1,2\ntotal,1,2\nSum,1,2\n", r"\('total', 'a'\) is there twice"),
        ("x/y,a,b,All\nc,1,2,3\nd,0,4,4\n", "found 'All'; margins are called 'total'"),
    ],
)
def test_files_of_counts_that_do_not_fit(tmp_path, text, match):
    path = tmp_path / "counts.csv"
    path.write_text(text)
    with pytest.raises(ValidationError, match=match):
        Table.from_counts(path)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: Table({}), "variables: expected a mapping"),
        (lambda: Table({"x": []}, 3), r"variables\['x'\]: found \[\]"),
        (lambda: Table({"x": ["a", "total"]}, 3), "what margins are called"),
        (lambda: Table({"x": ["a", "a"]}, 3), "distinct"),
        (lambda: Table({"x": ["a", "b"]}).people, "people: is missing"),
        (lambda: Table({"x": ["a", "b"]}, counts=[0, 0]), "counts: found nobody"),
        (lambda: Table({"x": ["a", "b"]}, counts=[1, -1]), "counts: found -1 at index"),
        (lambda: Table({"x": ["a", "b"]}, counts=[1, 2**60]), "number from 0 to 1099511627776"),
        (lambda: Table({"x": ["a", "b"]}, 2**60), "people: .* from 1 to 1099511627776"),
        (lambda: Table({"x": ["a", "b"]}, counts=[True, 2]), "counts: expected whole numbers"),
        (lambda: Table({"x": ["a", "b"]}, counts=[1, 0.5]), "counts: found 0.5"),
        (lambda: Table({"x": ["a", "b"]}, counts=[1, np.nan]), "counts: found nan"),
        (lambda: Table({"x": ["a", "b"]}, counts=[[1, 2]]), r"counts: found shape \(1, 2\)"),
        (
            lambda: Table({"x": ["a", "b"]}, 4, counts=[1, 2]),
            "people: found 4; the counts sum to 3",
        ),
        (lambda: Table({"x": ["a", "b"]}, 2, counts=[1, 2], outside=True), "people: found 2"),
        (lambda: Table({"x": ["a", "b"]}, 3, margins=[("y",)]), "margins: found 'y'"),
        (lambda: Table({"x": ["a", "b"]}, 3, margins=[("x",)]), "the cells themselves"),
        (lambda: Table({"x": ["a", "b"]}, 3, columns=["y"]), "columns: found 'y'"),
        (lambda: Table({"x": ["a", "b"]}, 3, zeros=["a", "b"]), "structural zero"),
        (lambda: Table.from_microdata({"x": [1]}, ["y"]), "the column 'y' is not there"),
        (lambda: Table.from_microdata({"x": []}, ["x"]), "no people"),
        (lambda: Table.from_microdata({"x": [1], "y": [1, 2]}, ["x", "y"]), "equally many"),
        (lambda: Table.from_microdata({"x": [1]}, ["x", "x"]), "twice"),
        (lambda: Table.from_microdata({"x": [1]}, "x"), "a list of names"),
        (lambda: Table.from_microdata([1], ["x"]), "expected a DataFrame"),
        (lambda: Table.from_microdata({"x": [1]}, ["x"], missing="drop"), "allowed"),
        (lambda: histogram(3, []), "categories: found none"),
        (lambda: histogram(0, 2), "n: found 0"),
    ],
)
def test_bad_input_is_named(call, match):
    with pytest.raises(ValidationError, match=match):
        call()


def test_a_table_too_large_to_write_out_is_refused_before_it_is_written():
    release = TableRelease(Table({"x": range(30)}, 2, margins=False), RandomRounding(3))
    with pytest.raises(ValidationError, match="table: a matrix of 465 x 1073741824 numbers"):
        _ = release.mechanism


def test_rounding_is_the_mechanism_of_that_name_at_any_count():
    for up in (None, (0.25, 0.5)):
        channel = random_rounding(11, 3, up)
        for count in range(12):
            row = dict(zip(channel.outputs, channel.row(count).tolist(), strict=True))
            law = RandomRounding(3, up).law(count)
            assert {y: float(p) for y, p in law.items()} == {y: p for y, p in row.items() if p}
            assert sum(law.values()) == 1
    assert RandomRounding(5).channel(7) == random_rounding(7, 5)


@pytest.mark.parametrize("name", ["ptable.csv", "ptable_keys.csv"])
def test_perturbation_tables_are_the_ptables_of_mechanisms(name):
    noise = PerturbationTable(EXAMPLES / name, cycle=1)
    channel = Mechanism.from_ptable(EXAMPLES / name, 20, cycle=1).channel
    for count in range(21):
        row = dict(zip(channel.outputs, channel.row(count).tolist(), strict=True))
        assert {y: float(p) for y, p in noise.law(count).items()} == {
            y: p for y, p in row.items() if p
        }
        reached = Fraction(0)
        widths: dict[int, Fraction] = {}
        for end, y in noise.steps(count):
            widths[y] = widths.get(y, Fraction(0)) + end - reached
            reached = end
        assert reached == 1
        assert {y: p for y, p in widths.items() if p} == noise.law(count)
    later = noise.law(noise.start + 7 * noise.period)
    assert {y - 7 * noise.period for y in later} == set(noise.law(noise.start))


def test_the_whole_release_is_the_product_of_its_numbers():
    table = Table({"x": ["a", "b"]}, 3, outside=True)
    release = TableRelease(table, RandomRounding(3))
    mechanism = release.mechanism
    one = random_rounding(3, 3)
    for counts, row in zip(mechanism.query.values, mechanism.channel.matrix, strict=True):
        rows = [one.row(int(c)) for c in (*counts, sum(counts))]
        for output, p in zip(mechanism.outputs, row, strict=True):
            each = [r[one.outputs.index(y)] for r, y in zip(rows, output, strict=True)]
            assert float(p) == pytest.approx(math.prod(each), abs=1e-15)
    assert release.law([1, 1])[3, 0, 0] == Fraction(1, 3) * Fraction(2, 3) * Fraction(1, 3)


def test_numbers_have_noise_of_their_own_or_are_left_out():
    table = Table({"x": ["a", "b"]}, counts=[1, 2])
    noise = {("a",): RandomRounding(3), ("b",): Gaussian(1), ("total",): None}
    release = TableRelease(table, noise)
    assert release.numbers == (("a",), ("b",))
    assert release.true == (1, 2)
    assert pickle.loads(pickle.dumps(release)) == release
    with pytest.raises(ValidationError, match=r"\('total',\) has none"):
        TableRelease(table, {("a",): RandomRounding(3), ("b",): Gaussian(1)})
    with pytest.raises(ValidationError, match="noise: found 'c'"):
        TableRelease(table, {"c": RandomRounding(3)})
    with pytest.raises(ValidationError, match="no finite set"):
        release.law([1, 2])
    with pytest.raises(ValidationError, match="noise: found 3"):
        TableRelease(table, 3)


def test_queries_count_pairs():
    query = crosstab(2, 2, ["x", "y"])
    for dataset in product(query.space.alphabets[0], repeat=2):
        assert query(dataset) == tuple(
            sum(pair == cell for pair in dataset) for cell in product((0, 1), ("x", "y"))
        )
