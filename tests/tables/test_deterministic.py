"""Rounding to the nearest and suppression: against their definitions, and all small tables."""

import itertools
import math
import pickle
from pathlib import Path

import numpy as np
import pytest

from cvxleak import Mechanism, audit
from cvxleak.core import ValidationError
from cvxleak.core.errors import InfeasibleError
from cvxleak.queries import count
from cvxleak.tables import (
    SUPPRESSED,
    CountNoise,
    PerturbationTable,
    RandomRounding,
    RoundToNearest,
    SuppressBelow,
    Table,
    TableRelease,
    estimate_counts,
    possible_counts,
    realized_leakage,
    table_leakage,
    table_privacy,
)

EXAMPLES = Path(__file__).parents[2] / "examples"
BELOW_8_IS_0_THEN_5 = SuppressBelow(8, 0).then(RoundToNearest(5))

DEFINED = [
    (RoundToNearest(5), lambda c: 5 * math.floor(c / 5 + 0.5)),
    (RoundToNearest(10), lambda c: 10 * math.floor(c / 10 + 0.5)),
    (RoundToNearest(10, halves="even"), lambda c: 10 * round(c / 10)),
    (RoundToNearest(1), lambda c: c),
    (SuppressBelow(4), lambda c: c if c >= 4 else SUPPRESSED),
    (SuppressBelow(4, zeros=False), lambda c: c if c >= 4 or c == 0 else SUPPRESSED),
    (SuppressBelow(4, 2), lambda c: c if c >= 4 else 2),
    (BELOW_8_IS_0_THEN_5, lambda c: 0 if c < 8 else 5 * math.floor(c / 5 + 0.5)),
    (
        SuppressBelow(8, 5, zeros=False).then(RoundToNearest(5)),
        lambda c: 0 if c == 0 else 5 if c < 8 else 5 * math.floor(c / 5 + 0.5),
    ),
    (
        SuppressBelow(6).then(RoundToNearest(4)),
        lambda c: SUPPRESSED if c < 6 else 4 * math.floor(c / 4 + 0.5),
    ),
    (
        RoundToNearest(5).then(SuppressBelow(10)),
        lambda c: SUPPRESSED if c < 8 else 5 * math.floor(c / 5 + 0.5),
    ),
    (
        RoundToNearest(3).then(RoundToNearest(4)).then(SuppressBelow(3, 0)),
        lambda c: 4 * math.floor(3 * math.floor(c / 3 + 0.5) / 4 + 0.5),
    ),
]


@pytest.mark.parametrize(("noise", "defined"), DEFINED, ids=[repr(noise) for noise, _ in DEFINED])
def test_what_is_published_is_as_defined(noise: CountNoise, defined):
    far = range(60)
    assert all(noise.law(c) == {defined(c): 1} for c in (*far, 10**9 + 7))
    for y in {defined(c) for c in far if c < 40}:
        listed = [c for low, high in noise.counts_of(y) for c in range(low, (high or 0) + 1)]
        assert listed == [c for c in far if defined(c) == y]
    for c in range(noise.start, 50):
        assert defined(c + noise.period) - defined(c) == noise.period
    assert eval(repr(noise)) == noise == pickle.loads(pickle.dumps(noise))
    channel = noise.channel(30)
    for c, row in enumerate(channel.matrix):
        shown = "suppressed" if defined(c) == SUPPRESSED else defined(c)
        assert channel.outputs[int(row.argmax())] == shown
        assert row.max() == 1


def test_random_noise_before_and_after():
    noise = RandomRounding(3).then(RoundToNearest(2))
    assert noise.law(4) == {4: RandomRounding(3).law(4)[3], 6: RandomRounding(3).law(4)[6]}
    assert noise.period == 6
    after = RoundToNearest(2).then(RandomRounding(3))
    for c in range(12):
        assert after.law(c) == RandomRounding(3).law(2 * math.floor(c / 2 + 0.5))


SMALL = [
    RoundToNearest(2),
    RoundToNearest(2, halves="even"),
    RoundToNearest(3),
    SuppressBelow(2),
    SuppressBelow(3, zeros=False),
    SuppressBelow(3, 0).then(RoundToNearest(2)),
]


def every_table(people: int, cells: int):
    return [
        np.array(counts)
        for counts in itertools.product(range(people + 1), repeat=cells)
        if sum(counts) == people
    ]


@pytest.mark.parametrize("noise", SMALL, ids=repr)
@pytest.mark.parametrize("margins", [True, [()], False], ids=["margins", "total", "cells"])
def test_the_whole_table_against_all_tables(noise, margins):
    people = 4
    table = Table({"a": ["x", "y"], "b": [0, 1]}, people, margins=margins)
    release = TableRelease(table, noise)
    (published,) = zip(*(release.law(counts) for counts in every_table(people, 4)), strict=True)
    of = dict(zip(map(tuple, every_table(people, 4)), published, strict=True))
    # Each number, margins too, goes through the noise on its own true value.
    sums = [list(places) for places in release.sums]
    for counts, values in of.items():
        by_hand = [next(iter(noise.law(sum(counts[c] for c in places)))) for places in sums]
        assert list(values) == by_hand
    # Differential privacy: a move tells all if it changes a number, and else nothing.
    steps = np.eye(4, dtype=int)
    told = any(
        of[counts] != of[tuple(counts - steps[a] + steps[b])]
        for counts in of
        for a in range(4)
        for b in range(4)
        if counts[a]
    )
    delta = table_privacy(release).profile(1.0)
    assert delta.lower == delta.upper == told
    # Leakage about a person, others known: the log of how many tables can be told apart.
    most = max(
        len({of[tuple(others + step)] for step in steps}) for others in every_table(people - 1, 4)
    )
    whole = table_leakage(release).whole()
    assert whole.lower - 1e-9 <= math.log(most) <= whole.upper + 1e-9
    # After the fact: a uniform belief over the cells that give the same numbers.
    for counts in every_table(people, 4)[::5]:
        known = Table({"a": ["x", "y"], "b": [0, 1]}, counts=counts.reshape(2, 2), margins=margins)
        values = of[tuple(counts)]
        found = realized_leakage(TableRelease(known, noise), values)
        for a in np.flatnonzero(counts):
            alike = [of[tuple(counts - steps[a] + step)] == values for step in steps]
            assert found.posterior[a] == pytest.approx(np.array(alike) / sum(alike))


def test_an_audit_of_one_count_is_the_same_as_of_its_channel():
    noise = SuppressBelow(3, 0).then(RoundToNearest(2))
    mechanism = Mechanism(count(6), noise.channel(6))
    found = audit.record_leakage(mechanism, 0.0)
    alone = table_leakage(TableRelease(Table({"x": [0, 1]}, 6, margins=False), noise))
    # If 2 of the others count, 0 or 4 is published: the record is known.
    assert found.lower == pytest.approx(math.log(2), abs=1e-3)
    assert alone.number((1,)).lower == pytest.approx(math.log(2))


def test_numbers_that_are_not_shown_are_read_and_refused(tmp_path):
    table = Table({"sex": ["f", "m"], "answer": ["no", "yes"]}, people=20)
    release = TableRelease(table, SuppressBelow(5, zeros=False))
    path = tmp_path / "published.csv"
    values = []
    for mark in ("x", "*", "", "<5", "NA", "null", "..", "< 5"):
        path.write_text(f"sex/answer,no,yes,total\nf,6,0,6\nm,10,{mark},14\ntotal,16,{mark},20\n")
        values.append(release.as_published(path))
    assert values == [[6, 0, 10, SUPPRESSED, 6, 14, 16, SUPPRESSED, 20]] * 8
    given = [6, 0, 10, None, 6, 14, 16, math.nan, 20]
    assert release.as_published(given) == values[0]
    found = possible_counts(release, given)
    assert dict(zip(found.numbers, found.lower, strict=True))["m", "yes"] == 4
    with pytest.raises(ValidationError, match=r"found '<6'; .* suppresses counts up to 4"):
        release.as_published([6, 0, 10, "<6", 6, 14, 16, "<5", 20])
    rounded = TableRelease(table, RoundToNearest(5))
    with pytest.raises(ValidationError, match=r"shows every number; .* SuppressBelow\(threshold\)"):
        rounded.as_published(path)
    with pytest.raises(ValidationError, match="expected an integer"):
        release.as_published([6, 0, 10, 1.5, 6, 14, 16, "x", 20])
    with pytest.raises(ValidationError, match="found '1O'; a whole number"):
        release.as_published([6, 0, 10, "1O", 6, 14, 16, "x", 20])


def test_a_first_try_is_told_what_to_do_next(tmp_path):
    path = tmp_path / "rounded.csv"
    path.write_text(',young,old,Total\nN,120,455,575\nS,5,10,20\nTotal,"1,125",465,595\n')
    release = TableRelease(Table.from_published(path), RoundToNearest(5))
    remedy = r"TableRelease\(Table.from_published\(path\), RoundToNearest\(5\)\)"
    for call, message in (
        (lambda: possible_counts(path, RoundToNearest(5)), remedy),  # pyright: ignore
        (lambda: estimate_counts(path, RoundToNearest(5)), remedy),
        (lambda: possible_counts(release, path), r"found '1,125'; .*1125, not 1,125"),
        (lambda: Table.from_published(np.ones((2, 2))), "in the order of Table.numbers"),
        (lambda: Table.from_published([[1, 2]]), "in the order of Table.numbers"),
        (lambda: realized_leakage(release, [5] * 9), "it has no true counts"),
    ):
        with pytest.raises(ValidationError, match=message):
            call()


def test_intervals_with_certainty_are_those_of_the_counts():
    found = estimate_counts({"a": 0, "b": 15}, BELOW_8_IS_0_THEN_5)
    assert (found["a"], found["b"]) == ((0, 7), (13, 17))


def test_margins_of_rounded_cells_are_not_rounded_margins():
    # 2 + 2 + 2 = 6, of which each is 0 and the sum 5; a margin that sums rounded cells is 0.
    table = Table({"x": ["a", "b", "c"]}, counts=[2, 2, 2])
    release = TableRelease(table, RoundToNearest(5))
    assert [next(iter(law)) for law in [release.law(table.in_cells)]] == [(0, 0, 0, 5)]
    with pytest.raises(InfeasibleError, match="margins=False"):
        possible_counts(release, [10, 10, 10, 50])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RoundToNearest(0), "base: found 0"),
        (lambda: RoundToNearest(2.5), "base: expected an integer"),  # pyright: ignore
        (lambda: RoundToNearest(10, "down"), "halves: found 'down'"),
        (lambda: SuppressBelow(0), "threshold: found 0"),
        (lambda: SuppressBelow(5, -1), "replacement: found -1"),
        (lambda: SuppressBelow(5, zeros=None), "zeros"),  # pyright: ignore
        (lambda: RoundToNearest(5).then(5), "other: "),  # pyright: ignore
        (
            lambda: PerturbationTable(EXAMPLES / "ptable_keys.csv", 2).then(RoundToNearest(5)),
            "other: .* whose keys are summed",
        ),
    ],
)
def test_what_is_refused_is_named(make, message):
    with pytest.raises(ValidationError, match=message):
        make()
