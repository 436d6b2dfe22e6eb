"""Printed digits: what the texts say, and the files that R makes."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.core.numbers import fraction
from cvxleak.model import Channel, ChannelSet


def ends(printed: ChannelSet) -> list[list[tuple[Fraction, Fraction]]]:
    return [
        [(fraction(low), fraction(high)) for low, high in zip(below, above, strict=True)]
        for below, above in zip(printed.lower.tolist(), printed.upper.tolist(), strict=True)
    ]


@pytest.mark.parametrize(
    ("text", "half"),
    [
        (".333", "0.0005"),
        (".3330", "0.00005"),
        ("0.3330", "0.00005"),
        ("3.33e-1", "0.0005"),
        (Decimal("0.3330"), "0.00005"),
        ("0.33", "0.005"),
    ],
)
def test_the_digits_are_those_of_the_text(text, half):
    printed = ChannelSet.from_printed([[text, "0.667000"]])
    at = Fraction(text)
    assert ends(printed)[0][0] == (at - Fraction(half), at + Fraction(half))


def test_whole_numbers_are_as_coarse_as_the_others_and_fractions_exact():
    printed = ChannelSet.from_printed([["1", "0", "0."], [".25", ".250", ".5000"]])
    tail = Fraction("0.005")
    assert ends(printed)[0] == [(1 - tail, Fraction(1)), (Fraction(0), tail), (Fraction(0), tail)]
    third = ChannelSet.from_printed([["1/3", "2/3"]])
    assert (third.lower < third.upper).all()
    assert (third.upper - third.lower).max() < 1e-15
    assert Channel([["1/3", "2/3"]]) in third


def test_all_that_rounds_to_the_texts_is_inside():
    rng = np.random.default_rng(3)
    for digits in (1, 3, 7):
        rows = rng.dirichlet(np.ones(4), 3)
        texts = [[f"{x:.{digits}f}" for x in row] for row in rows]
        printed = ChannelSet.from_printed(texts)
        assert Channel(rows) in printed
        assert printed == ChannelSet.from_printed(texts, digits)


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0.333, 0.667]], r"^digits: found 0\.333, .*as text \('0\.3330'\)"),
        ([["1", "0"], ["0", "1"]], r"^digits: no number has decimals; .*Channel if they are exact"),
        ([[".5", ".4"]], None),
        ([[".50", ".40"]], r"^upper: .*no distribution"),
        ([["50%", "50%"]], r"^matrix: .*'50%' is not a number"),
        ([], r"^matrix: "),
        ([[]], r"^matrix: "),
    ],
)
def test_what_is_not_printed_is_refused(matrix, message):
    if message is None:
        assert ChannelSet.from_printed(matrix).shape == (1, 2)
        return
    with pytest.raises(ValidationError, match=message):
        ChannelSet.from_printed(matrix)


# What R writes for one matrix, by write.table, write.table(sep = "\t"), write.csv and print.
TABLE = '"no" "not sure" "yes"\n"a" 0.9 0.05 0.05\n"b c" 0.2 0.5 0.3\n'
TABS = TABLE.replace(" 0", "\t0").replace('" "', '"\t"')
CSV = '"","no","not sure","yes"\n"a",0.9,0.05,0.05\n"b c",0.2,0.5,0.3\n'
SHORT = '"no","not sure","yes"\n"a",0.9,0.05,0.05\n"b c",0.2,0.5,0.3\n'
LABELED = Channel([[0.9, 0.05, 0.05], [0.2, 0.5, 0.3]], ["a", "b c"], ["no", "not sure", "yes"])
PRINTED = "      [,1]   [,2]   [,3]\n[1,] 0.9 0.05 0.05\n[2,] 0.2 0.50 0.30\n"
WRAPPED = "     [,1] [,2]\n[1,]  0.9 0.05\n[2,]  0.2 0.50\n     [,3]\n[1,] 0.05\n[2,] 0.30\n"
BARE = "0.9 0.05 0.05\n0.2 0.5 0.3\n"


@pytest.mark.parametrize(
    ("text", "channel"),
    [
        (TABLE, LABELED),
        (TABS, LABELED),
        (CSV, LABELED),
        (SHORT, LABELED),
        (PRINTED, Channel(LABELED.matrix)),
        (WRAPPED, Channel(LABELED.matrix)),
        (BARE, Channel(LABELED.matrix)),
        ("  no yes\na .9  .1\nb .2  .8\n", Channel([[0.9, 0.1], [0.2, 0.8]], "ab", ["no", "yes"])),
        ('"0" "1"\n"0" .9 .1\n"1" .2 .8\n', Channel([[0.9, 0.1], [0.2, 0.8]])),
        ("   0  5\n0 .9 .1\n1 .2 .8\n", Channel([[0.9, 0.1], [0.2, 0.8]], outputs=[0, 5])),
        ("x 0 1\na .9 .1\nb .2 .8\n", Channel([[0.9, 0.1], [0.2, 0.8]], "ab")),
        ('"all"\n"a" 1\n"b" 1\n', Channel([[1.0], [1.0]], "ab", ["all"])),
        ("  all\na   1\nb   1\n", Channel([[1.0], [1.0]], "ab", ["all"])),
        ('"V1" "V2"\n"1" 1 0\n"2" 1e-05 0.99999\n',
         Channel([[1, 0], [1e-5, 0.99999]], [1, 2], ["V1", "V2"])),
    ],
)  # fmt: skip
def test_files_of_r_are_read(text, channel, tmp_path):
    path = tmp_path / "matrix.txt"
    path.write_text(text)
    assert Channel.from_csv(path) == channel


def test_what_r_prints_is_rounded(tmp_path):
    path = tmp_path / "matrix.txt"
    path.write_text("          no       yes     maybe\na 0.3333333 0.3333333 0.3333333\n")
    with pytest.raises(ValidationError, match=r"rounded to 7 decimals: .*for files \.from_csv"):
        Channel.from_csv(path)
    printed = ChannelSet.from_csv(path)
    assert (printed.inputs, printed.outputs) == (("a",), ("no", "yes", "maybe"))
    assert Channel([["1/3"] * 3], "a", printed.outputs) in printed
    assert ChannelSet.from_csv(path, 3).upper.max() == 0.3338333
    path.write_text("0.33 0.66\n")
    assert ChannelSet.from_csv(path).shape == (1, 2)
    # Each column has as many decimals as its smallest number needs.
    path.write_text("      a         b          c\nx 0.8333333 0.1111111 0.05555556\n")
    with pytest.raises(ValidationError, match=r"Set\.from_printed takes the texts, \.from_csv a f"):
        Channel.from_csv(path)
    assert Channel([["5/6", "1/9", "1/18"]], "x", "abc") in ChannelSet.from_csv(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0 2\n0 0.9 0.1\n1 0.2 0.8\n", "line 2 of .* has 3 cells, .* put an empty cell before"),
        ("a b\n0.9 0.1 0.0 0.0\n", "line 2 of .* has 4 cells, but line 1 has 2 cells"),
        ("x  [,1]\n[1,] 0.9 0.1\n[2,] 0.5\n", "line 3 of .* has 2 cells"),
        ("   no\na high\n", "line 2, column 2 of .*found 'high'"),
        ("", "is empty"),
        ("   no yes\n", "has a header and no rows"),
        ("no yes\n0.8 0.2\n0.3 0.7\n", "its first column may hold row labels or prob"),
        ("a b c\n0.1 0.5 0.4\n0.2 0.4 0.4\n", "its first column may hold row labels or prob"),
        ('"a" 0.8 0.2\n"b" 0.3 0.7\n', "line 1 of .* may hold the names of the columns or a row"),
        ('"a" .33 .33 .33\n"b" 0.3 0.7 0\n', "line 1 of .* may hold the names of the columns"),
        ("a,1,0\nb,0.3,0.7\n", "line 1 of .* may hold the names of the columns or a row"),
    ],
)
def test_broken_files_are_refused(text, message, tmp_path):
    path = tmp_path / "matrix.txt"
    path.write_text(text)
    for read in (Channel.from_csv, ChannelSet.from_csv):
        with pytest.raises(ValidationError, match=message):
            read(path)
