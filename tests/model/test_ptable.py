"""Offices' perturbation tables: exactly what is printed, and what is wrong with one by line."""

from fractions import Fraction
from pathlib import Path

import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import exact_law
from cvxleak.model import Channel, Mechanism, RecordSpace, TableQuery
from cvxleak.queries import count

# What the R package ptable writes: semicolons, padded cells, intervals with eight digits.
R_TABLE = """i;j;p;v;p_int_lb;p_int_ub;type
0;0;1.00000000; 0;0.00000000;1.00000000;all
1;0;0.36837670;-1;0.00000000;0.36837670;all
1;1;0.39486990; 0;0.36837670;0.76324660;all
1;2;0.10513010; 1;0.76324660;0.86837670;all
1;3;0.13162330; 2;0.86837670;1.00000000;all
2;1;0.25000000;-1;0.00000000;0.25000000;all
2;2;0.50000000; 0;0.25000000;0.75000000;all
2;3;0.25000000; 1;0.75000000;1.00000000;all
"""


def keyed(pvalue, last: int, keys: int = 4, first: int = 1) -> str:
    lines = [f"{c},{k},{pvalue(c, k)}" for c in range(first, last + 1) for k in range(keys)]
    return "\n".join(["pcv,ckey,pvalue", *lines, ""])


def row(channel: Channel, count: int) -> dict[int, Fraction]:
    law = exact_law(channel.row(count).tolist())
    return {j: p for j, p in zip(channel.outputs, law, strict=True) if p}  # pyright: ignore


@pytest.fixture
def table(tmp_path: Path):
    def write(text: str, encoding: str = "utf-8") -> Path:
        (tmp_path / "ptable.csv").write_text(text, encoding=encoding)
        return tmp_path / "ptable.csv"

    return write


class TestKeys:
    def test_a_perturbation_has_its_share_of_the_keys(self, table):
        noise = {(1, 0): -1, (1, 1): 1, (1, 2): 1, (1, 3): 2}
        path = table(keyed(lambda c, k: noise.get((c, k), 0), 2))
        mechanism = Mechanism.from_ptable(path)
        assert mechanism.query == count(2)
        assert row(mechanism.channel, 0) == {0: 1}
        assert row(mechanism.channel, 1) == {
            0: Fraction(1, 4),
            2: Fraction(1, 2),
            3: Fraction(1, 4),
        }
        assert row(mechanism.channel, 2) == {2: 1}
        assert mechanism.outputs == (0, 2, 3)

    def test_thirds_are_thirds(self, table):
        path = table(keyed(lambda c, k: k - 1, 1, keys=3))
        found = row(Mechanism.from_ptable(path).channel, 1)
        assert found == dict.fromkeys((0, 1, 2), Fraction(1, 3))

    def test_lines_come_in_any_order(self, table):
        text = keyed(lambda c, k: k % 2, 3)
        header, *lines = text.split()
        path = table("\n".join([header, *reversed(lines)]))
        assert Mechanism.from_ptable(path) == Mechanism.from_ptable(table(text))

    def test_counts_above_750_take_the_last_250_rows_in_turn(self, table):
        # Row c publishes c or c + c, so that each row is known by its noise.
        path = table(keyed(lambda c, k: c * k, 750, keys=2))
        values = [0, 1, 750, 751, 752, 1000, 1001, 5000]
        query = TableQuery(RecordSpace([range(len(values))]), range(len(values)), values)
        channel = Mechanism.from_ptable(path, query).channel
        places = {0: 0, 1: 1, 750: 750, 751: 501, 752: 502, 1000: 750, 1001: 501, 5000: 750}
        for value, place in places.items():
            half = Fraction(1, 2)
            expected = {value: half, value + place: half} if place else {0: Fraction(1)}
            assert row(channel, value) == expected

    def test_another_cycle_has_to_be_said(self, table):
        path = table(keyed(lambda c, k: c * k, 5, keys=2))
        with pytest.raises(ValidationError, match=r"cycle: is missing; the count 6 .* last row, 5"):
            Mechanism.from_ptable(path, 8)
        channel = Mechanism.from_ptable(path, 8, cycle=2).channel
        found = {c: max(row(channel, c)) - c for c in range(9)}
        assert found == {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 4, 7: 5, 8: 4}
        for wrong in (0, 6, 1.5):
            with pytest.raises(ValidationError, match=r"^cycle: "):
                Mechanism.from_ptable(path, 8, cycle=wrong)  # pyright: ignore[reportArgumentType]

    def test_the_count_zero_has_no_keys_to_draw(self, table):
        same = Mechanism.from_ptable(table(keyed(lambda c, k: 1 if c == 0 else 0, 2, first=0)))
        assert row(same.channel, 0) == {1: 1}
        with pytest.raises(ValidationError, match=r"line 2 .* the pcv 0 has several pvalues"):
            Mechanism.from_ptable(table(keyed(lambda c, k: k, 2, first=0)))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("pcv,ckey,pvalue\n", "no row for the count 1"),
            ("pcv,ckey,pvalue\n0,0,0\n", "no row for the count 1"),
            ("pcv,ckey,pvalue\n1,0,0\n3,0,0\n", "no row for the count 2"),
            (
                "pcv,ckey,pvalue\n1,0,0\n1,0,1\n",
                "line 3 .* pcv 1 with the ckey 0 stands in an earl",
            ),
            ("pcv,ckey,pvalue\n1,0,0\n1,2,0\n", "line 2 .* no row for the ckey 1; .* largest, 2"),
            ("pcv,ckey,pvalue\n1,0,0\n1,1,0\n2,1,0\n", "line 4 .* pcv 2 has no row for the ckey 0"),
            ("pcv,ckey,pvalue\n1,-1,0\n", "line 2 .* ckey is -1; a whole number from 0 on"),
            ("pcv,ckey,pvalue\n-1,0,0\n", "line 2 .* pcv is -1; a whole number from 0 on"),
            ("pcv,ckey,pvalue\n1,0,-2\n", "line 2 .* count 1 would be published as -1, below 0"),
            ("pcv,ckey,pvalue\n1,0,0.5\n", "line 2 .* pvalue is '0.5'; a whole number"),
            ("pcv,ckey,pvalue\n1,key,0\n", "line 2 .* ckey is 'key'; a whole number"),
            ("pcv,ckey,pvalue\n1,inf,0\n", "line 2 .* ckey is 'inf'; a whole number"),
            ("pcv,ckey,pvalue\n1,1/2,0\n", "line 2 .* ckey is '1/2'; a whole number"),
            ("pcv,ckey,pvalue\n1,,0\n", "line 2 .* ckey is ''; a whole number"),
            ("pcv,ckey\n1,0\n", "the columns are 'pcv', 'ckey'; needed are pcv, ckey, pvalue"),
            ("pcv,ckey,pvalue,p\n1,0,0,1\n", "the columns are .* and no others"),
            ("1,0,0\n1,1,0\n", "the columns are '1', '0', '0'; needed are"),
            ("pcv,ckey,pvalue\n1,0\n", "line 2 .* has 2 cells, but line 1 has 3 cells"),
        ],
    )
    def test_what_is_wrong(self, table, text: str, message: str):
        with pytest.raises(ValidationError, match=f"^path: .*{message}"):
            Mechanism.from_ptable(table(text))


class TestProbabilities:
    def test_the_table_as_r_writes_it(self, table):
        channel = Mechanism.from_ptable(table(R_TABLE), 4).channel
        assert row(channel, 0) == {0: 1}
        assert row(channel, 1) == {
            0: Fraction("0.3683767"),
            1: Fraction("0.3948699"),
            2: Fraction("0.1051301"),
            3: Fraction("0.1316233"),
        }
        quarter = Fraction(1, 4)
        for last in (2, 3, 4):
            expected = {last - 1: quarter, last: 2 * quarter, last + 1: quarter}
            assert row(channel, last) == expected

    def test_all_its_forms_are_one_table(self, table):
        expected = Mechanism.from_ptable(table(R_TABLE))
        renamed = R_TABLE.replace("v;p_int_lb;p_int_ub", "diff;p_kum_u;p_kum_o")
        commas = R_TABLE.replace(";", ",").replace(" ", "")
        # As write.csv does: quotes, and numbers of the rows.
        head, *lines = commas.split()
        quoted = ",".join(f'"{name}"' for name in ["", *head.split(",")])
        numbered = "\n".join([quoted, *(f'"{n}",{line}' for n, line in enumerate(lines, 1))])
        bare = "\n".join(",".join(line.split(",")[:3]) for line in commas.split())
        # Differences of intervals in floating point.
        noisy = R_TABLE.replace("0.39486990", "0.394869900000001")
        # As write.csv2 does: a comma in decimals.
        decimal_commas = R_TABLE.replace(".", ",")
        for text in (renamed, commas, numbered, bare, noisy, decimal_commas):
            assert Mechanism.from_ptable(table(text)) == expected

    def test_the_intervals_are_the_table_where_p_is_rounded(self, table):
        text = "i,j,p,p_int_ub\n1,0,0.33,0.3333333\n1,1,0.33,0.6666666\n1,2,0.33,1\n"
        found = row(Mechanism.from_ptable(table(text)).channel, 1)
        third = Fraction("0.3333333")
        assert found == {0: third, 1: third, 2: 1 - 2 * third}

    def test_fractions_are_read_exactly(self, table):
        text = "i,j,p\n1,0,1/3\n1,1,1/7\n1,4,11/21\n"
        expected = {0: Fraction(1, 3), 1: Fraction(1, 7), 4: Fraction(11, 21)}
        assert row(Mechanism.from_ptable(table(text)).channel, 1) == expected

    def test_perturbations_without_probability_are_no_outputs(self, table):
        text = "i,j,p\n1,0,0.5\n1,1,0\n1,2,.5\n"
        assert Mechanism.from_ptable(table(text)).outputs == (0, 2)

    def test_a_row_for_zero_is_read(self, table):
        text = "i,j,p\n0,0,0.9\n0,3,0.1\n1,3,1\n"
        assert row(Mechanism.from_ptable(table(text)).channel, 0)[3] == Fraction(1, 10)

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            (
                "i,j,p\n1,0,0.333\n1,1,0.333\n1,2,0.333\n",
                "line 4 .* of i = 1 sum to 0.999 as printed, .* rounding to the digits",
            ),
            ("i,j,p\n1,0,1/3\n1,1,1/3\n", "i = 1 sum to 2/3 as printed, not to 1; rows are not"),
            ("i,j,p\n1,0,0.30\n1,1,0.60\n", "i = 1 sum to 0.9 as printed, not to 1; rows are not"),
            ("i,j,p\n1,0,0.6\n1,1,0.5\n2,2,1\n", "line 3 .* i = 1 sum to 1.1 as printed"),
            ("i,j,p\n1,0,-0.1\n1,1,1.1\n", "line 2 .* p is -0.1; a probability from 0 to 1"),
            ("i,j,p\n1,0,1.5\n", "line 2 .* p is 1.5; a probability"),
            ("i,j,p\n1,0,nan\n", "line 2 .* p is nan; a probability"),
            ("i,j,p\n1,0,50%\n", "line 2, column 3 .* found '50%'; a number"),
            ("i;j;p\n1;0;0,5,0\n1;1;0,5\n", "line 2, column 3 .* found '0.5.0'; a number"),
            ("i,j,p\n1,0,.5\n1,0,.5\n", "line 3 .* i = 1 with j = 0 stands in an earlier line"),
            ("i,j,p\n1,-1,1\n", "line 2 .* the count 1 would be published as -1"),
            ("i,j,p\n-1,0,1\n", "line 2 .* i is -1; a whole number from 0 on"),
            ("i,j,p\n1,0.5,1\n", "line 2 .* j is '0.5'; a whole number .* magnitudes"),
            ("i,j,p\n2,2,1\n", "no row for the count 1"),
            ("i,j,p\n", "no row for the count 1"),
            ("i,j\n1,0\n", "line 1 .* columns are 'i', 'j'; needed are .*, or i, j, p and"),
            ("i,j,p,q\n1,0,1,1\n", "line 1 .* the columns are 'i', 'j', 'p', 'q'"),
            ("i,j,p,v,diff\n1,0,1,-1,-1\n", "line 1 .*, one twice"),
            ("i\tj\tp\n1\t0\t1\n", "line 1 .* the columns are"),
            ("i,j,p,v\n1,0,1,1\n", "line 2 .* v is 1; j - i is -1"),
            ("i,j,p,type\n1,0,1,even\n", "line 2 .* type is 'even'; tables for counts"),
            ("i,j,p,p_int_ub\n1,0,.5,.5\n1,1,.5,.9\n", "line 3 .* is 0.4 wide"),
            ("i,j,p,p_int_ub\n1,0,.26,.25\n1,1,.74,1\n", "line 2 .* p is .26, .* 0.25 wide"),
            ("i,j,p,p_int_ub\n1,0,.5,.5\n1,1,.4,.9\n", "line 3 .* i = 1 end at 0.9, not at 1"),
            ("i,j,p,p_int_ub\n1,0,.5,.5\n1,1,.5,.4\n", "line 3 .* p_int_ub falls to .4"),
            (
                "i,j,p,p_int_lb,p_int_ub\n1,0,.5,0,.5\n1,1,.5,.4,1\n",
                "line 3 .* p_int_lb is .4; the interval before ends at 0.5",
            ),
            ("", "is empty"),
        ],
    )
    def test_what_is_wrong(self, table, text: str, message: str):
        with pytest.raises(ValidationError, match=f"^path: .*{message}"):
            Mechanism.from_ptable(table(text))


def test_other_encodings_are_named(table):
    for encoding in ("utf-16", "latin-1"):
        with pytest.raises(ValidationError, match=r"path: cannot read"):
            Mechanism.from_ptable(table(R_TABLE.replace("all", "\xe4ll"), encoding))
    assert Mechanism.from_ptable(table(R_TABLE, "utf-8-sig")).channel.shape == (3, 4)


def test_the_query_is_a_count(table):
    path = table(R_TABLE)
    words = TableQuery(RecordSpace.binary(1), [0, 1], ["no", "yes"])
    negative = TableQuery(RecordSpace.binary(1), [0, 1], [0, -1])
    truth = TableQuery(RecordSpace.binary(1), [0, 1], [False, True])
    for query, found in ((words, "'no'"), (negative, "-1"), (truth, "False")):
        with pytest.raises(ValidationError, match=f"query: values that are counts .* {found}"):
            Mechanism.from_ptable(path, query)
    for wrong in (0, 1.5, "count"):
        with pytest.raises(ValidationError, match=r"^query: "):
            Mechanism.from_ptable(path, wrong)  # pyright: ignore[reportArgumentType]
    for missing in ("no such file", 3):
        with pytest.raises(ValidationError, match=r"^path: "):
            Mechanism.from_ptable(missing)  # pyright: ignore[reportArgumentType]
