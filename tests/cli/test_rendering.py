"""The report on a page: widths, rounding, what is merged and what is left out."""

import io
import math
import re
from decimal import ROUND_CEILING, ROUND_FLOOR

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from cvxleak.cli.rendering import render
from cvxleak.mechanisms import identity, random_rounding, randomized_response
from cvxleak.model import Channel, Distortion, Mechanism, Prior, RecordSpace
from cvxleak.queries import count, from_function
from cvxleak.report import Report, audit_report
from cvxleak.report.numbers import amount, ends


def page(report: Report, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width)
    render(report, console, ["A heading"])
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@given(st.floats(0, 1e6))
def test_a_shown_bracket_contains_the_true_one(value: float):
    assert float(amount(value, ROUND_FLOOR)) <= value <= float(amount(value, ROUND_CEILING))
    assert float(amount(value)) == pytest.approx(value, abs=1e-6)


def test_amounts():
    assert amount(math.log(2)) == "0.693147"
    assert amount(math.log(2), ROUND_CEILING) == "0.693148"
    assert amount(0.0) == "0.000000"
    assert amount(math.inf) == "inf"


@pytest.fixture(scope="module")
def everything() -> Report:
    """A report of a local mechanism, with all that can be in one."""
    labels = ("a rather long label for a value of the record", "b", "c", "[red]d[/red]")
    channel = Channel(randomized_response(4, 1.0).matrix, labels, labels)
    return audit_report(
        Mechanism.from_channel(RecordSpace([labels]), channel),
        [0.5, 1.3],
        prior=Prior([0.4, 0.3, 0.2, 0.1], labels),
        distortion=Distortion.hamming(labels),
        epsilons=[0.5],
        outputs=labels[:2],
    )


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_no_line_is_too_long(everything: Report, width: int):
    lines = page(everything, width).splitlines()
    assert max(map(len, lines)) <= min(width, 100)
    assert lines[0] == "A heading"


def test_every_quantity_is_shown_with_its_meaning(everything: Report):
    text = " ".join(page(everything).split())
    for quantity in everything.quantities:
        if quantity.name.startswith(("guess", "pointwise", "posterior probability")):
            continue
        assert " ".join(quantity.meaning.split()) in text, quantity.name
        if quantity.name not in {"record leakage", "balance"}:
            assert f"{quantity.name} {ends(quantity)[0][:-1]}" in text


def test_an_output_says_what_the_record_is(everything: Report):
    text = page(everything)
    assert "Probability of each value of the record, given the output b\n" in text
    after = 0.1 / (0.3 * math.e + 0.7)
    assert re.search(rf"^\[red\]d\[/red\] +{after:.6f}$", text, re.MULTILINE)


def test_labels_are_not_markup(everything: Report):
    assert "[red]d[/red]" in page(everything)


def test_several_records_have_a_column():
    query = from_function(RecordSpace.binary(2), lambda x: x[0])
    mechanism = Mechanism(query, identity(2))
    text = page(audit_report(mechanism, [1.3], records=[0, 1]))
    assert "record" in text
    assert max(map(len, text.splitlines())) <= 80
    flat = " ".join(text.split())
    assert "Record 0; 0 to 1.3 nats of uncertainty: Discloses record 0 completely" in flat
    assert "Record 1; 1.3 nats of uncertainty: Tells part of record 1" in flat
    one = page(audit_report(mechanism, [1.3], records=[1]))
    assert "Record 1; " not in one
    assert "record 1" in one


def test_groups_have_a_table():
    text = page(audit_report(Mechanism(count(3), identity(4)), group_sizes=[2, 3]))
    assert "What one output tells about a group of records together, in nats" in text
    assert "0, 1, 2" in text
    assert "one person" not in text
    assert max(map(len, text.splitlines())) <= 80


def test_floors_with_the_same_meaning_share_a_sentence():
    report = audit_report(Mechanism(count(20), random_rounding(20, 3)), [0, 6, 12])
    text = " ".join(page(report).split())
    assert "0 to 12 nats of uncertainty: Discloses one person's record completely" in text
    assert text.count("Discloses") == 1


def test_no_note_on_brackets_where_all_are_closed(everything: Report):
    assert "bracketed" not in page(everything)
