"""What messages say of sizes, and of arguments that newcomers get wrong."""

import re

import numpy as np
import pandas as pd
import pytest

from cvxleak import Channel, Prior, balance, calibrate, capacity, leakage_curve, record_leakage
from cvxleak.audit import total_disclosure
from cvxleak.capacities import renyi_capacity
from cvxleak.constraints import channel, distortion_budget
from cvxleak.core.errors import ValidationError
from cvxleak.core.wording import are, counted
from cvxleak.design import design_for_prior
from cvxleak.differential_privacy import check_claim
from cvxleak.envelope import pml_envelope
from cvxleak.expressions import mutual_information
from cvxleak.mechanisms import binary_symmetric, random_rounding
from cvxleak.model import ChannelSet, Guess, KnownMarginals, Mechanism, as_gain
from cvxleak.queries import count, parity
from cvxleak.refinement import refines
from cvxleak.samples import Samples, audit_samples, sample_mechanism
from cvxleak.sweeps import sweep
from cvxleak.tables import (
    RandomRounding,
    Table,
    TableRelease,
    estimate_counts,
    possible_counts,
    realized_leakage,
    table_leakage,
    table_privacy,
)

MECHANISM = Mechanism(parity(2), binary_symmetric(0.1))
RELEASE = TableRelease(Table({"sex": ["f", "m"]}, counts=[7, 2]), RandomRounding(3))
PUBLISHED = [6, 3, 9]


def test_a_noun_and_a_verb_agree_with_their_number():
    assert [counted(n, "row") for n in (0, 1, 2, 10**30)] == [
        "0 rows",
        "1 row",
        "2 rows",
        "about 10^30 rows",
    ]
    assert [are(n) for n in (0, 1, 2)] == ["are", "is", "are"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Prior([0.5, 0.5], ["a"]), "labels: found 1 label; 2 are needed"),
        (
            lambda: design_for_prior([0.5, 0.5], [[0, 1]], 0.1),
            "prior: found 2 outcomes; 1 is needed",
        ),
        (
            lambda: refines(Channel([[0.5, 0.5], [0.5, 0.5]]), Channel([[1.0]])),
            "other: found 1 input; the channel has 2",
        ),
        (
            lambda: audit_samples((["a", "b"], [0, 1])),
            "secret: 'a' appears once, as does 1 other; every secret",
        ),
        (
            lambda: audit_samples((["a", "b", "b"], [0, 1, 0])),
            "secret: 'a' appears once; every secret",
        ),
        (
            lambda: Mechanism(parity(2), [[1.0]]),
            "channel: found 1 row; the query has 2 values",
        ),
        (
            lambda: KnownMarginals([1.0]).bind(parity(2)),
            "law: found 1 outcome; 2 are needed",
        ),
    ],
)
def test_a_message_about_one_is_in_the_singular(call, message):
    with pytest.raises(ValidationError, match="^" + re.escape(message)):
        call()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Prior([1.0]), "Prior(1 outcome [0]: [1.])"),
        (Channel([[1.0]]), "Channel(1 input [0] -> 1 output [0])"),
        (Samples([0], [0]), "Samples(1 draw of 1 secret [0])"),
    ],
)
def test_a_repr_of_one_is_in_the_singular(value, text):
    assert repr(value) == text


@pytest.mark.parametrize(
    "call",
    [
        lambda bad: leakage_curve(MECHANISM, [0.0], progress=bad),
        lambda bad: record_leakage(MECHANISM, 0.0, progress=bad),
        lambda bad: audit_samples((["a", "b"] * 9, [0, 1] * 9), progress=bad),
        lambda bad: sample_mechanism(lambda x: x, [0, 1], 2, progress=bad),
        lambda bad: sweep(lambda n: n, {"n": [1]}, progress=bad),
        lambda bad: calibrate(
            lambda p: MECHANISM, (0.1, 0.4), leakage=0.1, entropy_floor=0.0, progress=bad
        ),
        lambda bad: estimate_counts(PUBLISHED, RELEASE, progress=bad),
        lambda bad: possible_counts(RELEASE, PUBLISHED, progress=bad),
        lambda bad: realized_leakage(RELEASE, PUBLISHED, progress=bad),
        lambda bad: table_leakage(RELEASE).number("f", progress=bad),
        lambda bad: table_leakage(RELEASE).whole(progress=bad),
        lambda bad: table_privacy(RELEASE, progress=bad),
        lambda bad: table_privacy(RELEASE).profile(0.5, progress=bad),
        lambda bad: table_privacy(RELEASE).trade_off([0.5], progress=bad),
        lambda bad: table_privacy(RELEASE).zcdp(progress=bad),
    ],
)
def test_progress_is_a_function(call):
    with pytest.raises(ValidationError, match=r"^progress: expected a function .*, found True$"):
        call(True)


@pytest.mark.parametrize(
    "solve",
    [
        lambda: balance(MECHANISM, 0.2),
        lambda: check_claim(MECHANISM, epsilon=3.0, delta=0.0).bound,
        lambda: leakage_curve(MECHANISM, [0.0, 0.2]).bounds[1],
        lambda: record_leakage(MECHANISM, 0.5, gain=Guess()),
        lambda: capacity(ChannelSet.from_printed([[".9", ".1"], [".2", ".8"]])),
        lambda: renyi_capacity(binary_symmetric(0.1), 1.0),
        lambda: total_disclosure(Mechanism(count(3), random_rounding(3, 2))),
        lambda: table_privacy(RELEASE).profile(0.5),
        lambda: table_leakage(RELEASE).number("f"),
        lambda: table_leakage(RELEASE).whole(),
    ],
)
def test_a_bound_says_which_method_ran_and_why(solve):
    assert ", because " in solve().stats["method"]


@pytest.mark.parametrize(
    "call", [lambda: record_leakage(MECHANISM, 0.0, gain="guess"), lambda: as_gain("guess", 2)]
)
def test_what_is_no_gain_is_told_which_there_are(call):
    with pytest.raises(ValidationError, match=r"^gain: expected a Gain, found 'guess'.* Guess, Gu"):
        call()


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (lambda: record_leakage(binary_symmetric(0.1), 0.5), r"Mechanism\(query, channel\) makes"),
        (lambda: Mechanism("count", binary_symmetric(0.1)), r"cvxleak\.queries has the usual"),
        (lambda: binary_symmetric(0.1).then([[1.0], [1.0]]), r"Channel\(matrix\) makes one"),
        (lambda: Mechanism(parity(2), [[1.0]]), r"\[0, 1\], and each needs a row, in this order"),
        (lambda: Channel.from_solver(None), "solve again with other options"),
        (lambda: ChannelSet.from_printed([["0.60", "0.60"]]), "fewer digits, are needed"),
        (lambda: mutual_information(channel(2, 2), [0.5, 0.5]), r"Q, rows = channel\(k, m\) sep"),
        (lambda: distortion_budget(channel(2)[0], [0.5, 0.5], 1 - np.eye(2), 0.1), r"\[prior\]$"),
        (lambda: mutual_information(binary_symmetric(0.1), 0.5), "^prior: .*is a list of numbers$"),
        (lambda: pml_envelope(np.eye(2), [0.5, 0.5], 0.1), r"\(in problems the prior is first\)"),
        (lambda: Channel(pd.DataFrame({"x": ["a"], "no": [1.0]})), "which set_index makes$"),
    ],
)
def test_what_is_no_such_object_is_told_what_makes_one(call, remedy):
    with pytest.raises(ValidationError, match=remedy):
        call()


def test_a_path_in_place_of_a_channel_is_told_what_reads_it():
    with pytest.raises(ValidationError, match=r"^channel: .*'file\.csv'; Channel\.from_csv reads"):
        capacity("file.csv")


def test_an_array_of_counts_is_told_how_to_name_rows_and_columns():
    with pytest.raises(ValidationError, match=r"^data: .*; Table\(.*\) takes an array") as found:
        Table.from_counts([[1, 2], [3, 4]])
    call = re.search(r"Table\(.*\]\)", str(found.value))
    assert call is not None
    assert eval(call[0], {"Table": Table}).people == 10


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("sex,age,value\nF,old,3\nM,old,2\n", "published: found ('F', 'age'); the numbers are"),
        ("sex,age,value\nF,old,3\nF,young,2\n", "published: line 3: ('F', 'age') is there twice"),
        ("a/b,old,young\nF,3,2\n", "published: found the variables ['a', 'b']; the table has"),
    ],
)
def test_published_numbers_without_counts_are_read_as_a_cross_table(tmp_path, content, message):
    path = tmp_path / "published.csv"
    path.write_text(content)
    table = Table({"sex": ["F", "M"], "age": ["old", "young"]}, counts=[[3, 2], [2, 4]])
    with pytest.raises(ValidationError) as found:
        TableRelease(table, RandomRounding(3)).as_published(path)
    hint = "; without a column called 'count' this is read as a cross table"
    assert str(found.value).startswith(message)
    assert str(found.value).endswith(hint)


def test_a_file_in_another_encoding_is_told_how_to_save_it(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes(",é,b\nx,0.3,0.7\n".encode("latin-1"))
    with pytest.raises(
        ValidationError, match=r"cannot read .*; save the file as UTF-8 \(in Excel, as CSV"
    ):
        Channel.from_csv(path)


@pytest.mark.parametrize("content", [',a,b\nx,"0,3","0,7"\n', '"0,3","0,7"\n', "30%,70%\n"])
def test_numbers_in_other_notations_are_told_the_one_that_is_read(tmp_path, content):
    path = tmp_path / "channel.csv"
    path.write_text(content)
    with pytest.raises(ValidationError, match=r"decimal point \(0\.5, not 0,5 or 50%\)"):
        Channel.from_csv(path)


def test_rows_that_sum_to_100_may_be_percentages():
    for call in (lambda: Channel([[30, 70]]), lambda: Prior([33.3, 66.7])):
        with pytest.raises(
            ValidationError, match=r"sums to 100\.0; .*; divide percentages by 100$"
        ):
            call()
    with pytest.raises(ValidationError, match=r"channels_from_counts; divide percentages by 100$"):
        Channel([[30, 70]])
    for rows in ([[33.3, 33.3, 33.3]], [["30%", "70%"]]):
        with pytest.raises(ValidationError, match=r"; divide percentages by 100\)?$"):
            Channel(rows)
    with pytest.raises(ValidationError) as found:
        Channel([[30, 20]])
    assert "percentages" not in str(found.value)
