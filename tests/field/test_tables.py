"""Tables of counts that are protected: rounding, suppression, perturbation tables."""

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

from cvxleak import Mechanism, measures
from cvxleak.core import ValidationError
from cvxleak.core.errors import InfeasibleError
from cvxleak.model import Channel
from cvxleak.queries import count
from cvxleak.tables import (
    CountNoise,
    PerturbationTable,
    RandomRounding,
    RoundToNearest,
    SuppressBelow,
    Table,
    TableRelease,
    possible_counts,
    table_privacy,
)


def ranges(release, published, **known):
    """Return the possible counts by label, once they are seen to be attained."""
    found = possible_counts(release, published, **known)
    assert (found.smallest, found.largest) == (found.lower, found.upper)
    labels = [label[0] if len(label) == 1 else label for label in found.numbers]
    return dict(zip(labels, zip(found.lower, found.upper, strict=True), strict=True))


def test_a_perturbation_table_of_192000_lines(tmp_path):
    """ONSdigital/cell-key-perturbation, data_files/ptable_10_5_rule.csv: 750 counts by 256 keys.

    Its rule is "below 10 is 0, others to the nearest 5". Reading took 3.5 seconds of CPU in each
    command (now 1.8; here with 32 keys), and a frame, which the package takes, was a TypeError.
    `possible_counts` then took the number of people as known. The same rule is now two named noises
    one after the other. Independent: the rule, and all tables of four cells, enumerated.
    """
    keys = 32

    def rule(n):
        return 0 if n < 10 else (n + 2) // 5 * 5

    lines = [f"{n},{key},{rule(n) - n}\n" for n in range(1, 751) for key in range(keys)]
    path = tmp_path / "ptable.csv"
    path.write_text('"pcv","ckey","pvalue"\n' + "".join(lines))
    with pytest.raises(ValidationError, match=r"save it by \.to_csv\(path, index=False\)"):
        PerturbationTable(pd.DataFrame({"pcv": [1], "ckey": [0], "pvalue": [0]}))
    noise = PerturbationTable(path)
    named = SuppressBelow(10, replacement=0).then(RoundToNearest(5))
    for n in (*range(1, 31), 747, 750, 751, 1001, 1249):
        assert noise.law(n) == named.law(n) == {rule(n): Fraction(1)}

    published = {"c": [0, 15, 20], "d": [10, 0, 15], "total": [20, 20, 35]}
    frame = pd.DataFrame(published, index=["a", "b", "total"])
    table = Table.from_published(frame)
    found = ranges(TableRelease(table, noise), frame)
    fitting = [
        (a, b, c, d)
        for a, d in itertools.product(range(10), repeat=2)
        for b, c in itertools.product(range(10, 20), repeat=2)
        if [*map(rule, (a, b, c, d, a + b, c + d, a + c, b + d, a + b + c + d))]
        == [0, 10, 15, 0, 20, 20, 20, 15, 35]
    ]
    for cell, values in zip(itertools.product("ab", "cd"), zip(*fitting, strict=True), strict=True):
        assert found[cell] == (min(values), max(values))


def test_three_people_alone_in_their_cells():
    """sdcTools/UserSupport #135: secondary suppression that does not protect single people.

    Cells of 1 and 2 are suppressed. A file with "x" was refused, and no noise was for suppression.
    If nothing else is suppressed, all follow from the margins. With secondary suppression, "x" no
    longer means below 3, which was said to be impossible; the error now says that such numbers
    have the noise None. Somebody who is one of the people knows a cell, and then knows more.
    Independent: all tables, enumerated.
    """
    true = np.array([[1, 1, 7, 1, 0], [1, 0, 0, 2, 8]])
    names = ["A", "B", "H", "M", "W"]
    full = pd.DataFrame(true, index=["1", "2"], columns=names).astype(object)
    full["total"] = full.sum(axis=1)
    full.loc["total"] = full.sum(axis=0)
    primary = full.where(~full.isin([1, 2]), "x")
    rule = SuppressBelow(3, zeros=False)
    found = ranges(TableRelease(Table.from_published(primary), rule), primary)
    assert all(low == high for low, high in found.values())
    assert [found["1", name][0] for name in names] == [1, 1, 7, 1, 0]

    hidden = primary.copy()
    hidden.loc["total", "M"] = hidden.loc["1", "W"] = hidden.loc["total", "W"] = "x"
    table = Table.from_published(hidden)
    with pytest.raises(InfeasibleError, match=r"secondary suppression.* None"):
        possible_counts(TableRelease(table, rule), hidden)
    shown = {
        label: None if hidden.loc[label] == "x" else RoundToNearest(1) for label in table.numbers
    }
    release = TableRelease(table, shown)
    values = [hidden.loc[label] for label in release.numbers]
    found = ranges(release, values)
    fitting = []
    for a, b, m in itertools.product(range(11), repeat=3):
        for a2, m2 in itertools.product(range(12), repeat=2):
            w = 3 - a - b - m
            if w >= 0 and a2 + m2 == 3:
                fitting.append((a, b, 7, m, w, a2, 0, 0, m2, 8))
    cells = [*itertools.product("12", names)]
    for cell, entries in zip(cells, zip(*fitting, strict=True), strict=True):
        assert found[cell] == (min(entries), max(entries))


def test_zeros_and_ones_that_are_hidden():
    """sdcTools/UserSupport #194: 15 = 10 + 3 + x + x, and 15 = 10 + 5 + x + x.

    What is known of the two suppressed cells? Refused at first, as above. Whether zeros are
    suppressed as well decides it: both are 1, or 0 to 2; in the second line both are 0.
    """
    for shown, zeros, expected in (
        ([10, 3], False, (1, 1)),
        ([10, 3], True, (0, 2)),
        ([10, 5], True, (0, 0)),
    ):
        published = pd.Series([*shown, None, None, 15], index=["a", "b", "c", "d", "total"])
        frame = published.rename_axis("row").reset_index(name="count")
        release = TableRelease(Table.from_published(frame), SuppressBelow(3, zeros=zeros))
        found = ranges(release, frame)
        assert found["c"] == found["d"] == expected


def test_margins_that_give_cells_away():
    """AI-SDC/ACRO #198: a cross table of the nursery data with suppressed cells and margins.

    The frame with NaN was refused. Now: which of the five suppressed cells follow from the margins?
    All of them. Without margins each is 0 to 9. Independent: differences.
    """
    frame = pd.DataFrame(
        {
            "great": [1440, 858, None, 2022, None, 4320],
            "pret": [1440, 1484, None, 1264, 132, 4320],
            "usual": [1440, 1924, None, 758, 196, 4320],
            "total": [4320, 4266, None, 4044, 328, 12960],
        },
        index=["not", "priority", "recommend", "special", "very", "total"],
    )
    release = TableRelease(Table.from_published(frame), SuppressBelow(10))
    found = ranges(release, frame)
    hidden = [("recommend", name) for name in ("great", "pret", "usual")] + [("very", "great")]
    assert [found[cell] for cell in hidden] == [(0, 0), (0, 0), (2, 2), (0, 0)]
    assert 4320 - 1440 - 1924 - 758 - 196 == 2
    cells = frame.iloc[:-1, :-1]
    alone = ranges(TableRelease(Table.from_published(cells), SuppressBelow(10)), cells)
    assert all(alone[cell] == (0, 9) for cell in hidden)


def test_a_small_group_and_the_title_of_the_table():
    """ddsjoberg/gtsummary #1691: "<6" and 177, in a table whose title says N = 180.

    The mark was refused at first. Now 1 to 5, and exactly 3 once the title is known: not because
    of a margin, but of what somebody knows besides, which was taken for granted and is now said.
    """
    frame = pd.DataFrame({"age": ["<18", "18+"], "count": ["<6", 177]})
    release = TableRelease(Table.from_published(frame), SuppressBelow(6, zeros=False))
    assert ranges(release, frame) == {"<18": (1, 5), "18+": (177, 177)}
    assert ranges(release, frame, known_people=180) == {"<18": (3, 3), "18+": (177, 177)}


class Midpoint(CountNoise):
    """Rounded up to a multiple of 6, minus 3; 0 stays."""

    start, period = 1, 6

    def law(self, count):
        return {6 * ((count + 5) // 6) - 3 if count else 0: Fraction(1)}


def test_rounding_to_the_middle_of_six():
    """opensafely/documentation #1189: 1 to 6 is published as 3, 7 to 12 as 9, and 0 as 0.

    `estimate_counts` took a `Channel` of that rule; a table refused it without saying what it takes
    in its place. The error and the tutorial now show that a rule of one's own is a class with three
    members. Do margins undo it? Independent: all tables, enumerated.
    """
    rule = {n: next(iter(Midpoint().law(n))) for n in range(40)}
    rows = np.zeros((40, 8))
    outputs = sorted(set(rule.values()))
    rows[range(40), [outputs.index(rule[n]) for n in range(40)]] = 1
    true = Table({"age": ["young", "old"], "answer": ["yes", "no"]}, counts=[[1, 12], [6, 18]])
    with pytest.raises(ValidationError, match="of your own is a subclass of CountNoise"):
        TableRelease(true, Channel(rows, range(40), outputs))
    release = TableRelease(true, Midpoint())
    published = [rule[n] for n in release.true]
    assert published == [3, 9, 3, 15, 15, 21, 9, 27, 39]
    found = ranges(release, published)
    fitting = [
        cells
        for cells in itertools.product(range(1, 7), range(7, 13), range(1, 7), range(13, 19))
        if [rule.get(n, 0) for n in (cells[0] + cells[1], cells[2] + cells[3])] == [15, 21]
        and [rule.get(n, 0) for n in (cells[0] + cells[2], cells[1] + cells[3])] == [9, 27]
        and rule.get(sum(cells)) == 39
    ]
    for cell, values in zip(release.numbers[:4], zip(*fitting, strict=True), strict=True):
        assert found[cell] == (min(values), max(values))


def test_a_perturbation_table_that_keeps_people_in_view(tmp_path):
    """sdcTools/UserSupport #107: may positive counts stay positive, so that zeros are true zeros?

    The file as R's write.csv2 writes it, with decimal commas, was refused ("found '0,75'") and is
    read now. If 1 can become 0, a single person is detected with probability 0.6, and a published 0
    may be 2; if not, with certainty. Independent: read off the file.
    """
    head = '"i";"j";"p"\n0;0;1\n'
    above = "2;0;0,05\n2;1;0,3\n2;2;0,35\n2;3;0,2\n2;4;0,1\n"
    texts = {"hides": "1;0;0,4\n1;1;0,25\n1;2;0,3\n1;3;0,05\n" + above}
    texts["shows"] = "1;1;0,75\n1;3;0,25\n2;1;0,4\n2;2;0,35\n2;4;0,25\n"
    certain, zeros = {}, {}
    for name, text in texts.items():
        path = tmp_path / f"{name}.csv"
        path.write_text(head + text)
        noise = PerturbationTable(path, summed_keys=False)
        certain[name] = measures.record_privacy_profile(
            Mechanism(count(1), noise.channel(1)), epsilon=5.0
        )
        zeros[name] = noise.counts_of(0)
        one = Table({"area": ["here"]}, people=1, margins=False, outside=True)
        delta = table_privacy(TableRelease(one, noise)).profile(5.0)
        assert delta.lower - 1e-12 <= certain[name] <= delta.upper + 1e-12
    assert certain == {"hides": pytest.approx(0.6), "shows": pytest.approx(1.0)}
    assert zeros == {"hides": [(0, 2)], "shows": [(0, 0)]}


def test_claimants_by_area_to_the_nearest_five():
    """Autonomy-Data-Unit/annual-deprivation-index #11: is a published 0 a suppressed 1 to 4?

    No: all numbers are rounded to the nearest 5, so that 0 is 0 to 2, and 5 is 3 to 7, and the
    total of the areas is rounded from its own value. Only random rounding had a name. Independent:
    all tables, enumerated. Random rounding would say 0 to 4, and 1 to 9.
    """
    areas = {"a": 0, "b": 5, "c": 10, "d": 0, "total": 20}
    frame = pd.Series(areas).rename_axis("area").reset_index(name="count")
    table = Table.from_published(frame)
    found = ranges(TableRelease(table, RoundToNearest(5)), frame)
    spans = [range(max(areas[area] - 2, 0), areas[area] + 3) for area in "abcd"]
    fitting = [cells for cells in itertools.product(*spans) if 18 <= sum(cells) <= 22]
    for area, values in zip("abcd", zip(*fitting, strict=True), strict=True):
        assert found[area] == (min(values), max(values))
    assert [RoundToNearest(5).counts_of(y) for y in (0, 5)] == [[(0, 2)], [(3, 7)]]
    assert [RandomRounding(5).counts_of(y) for y in (0, 5)] == [[(0, 4)], [(1, 9)]]
