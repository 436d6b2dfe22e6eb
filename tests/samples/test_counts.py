"""Sets of channels from counts: the intervals' level, what is refused, and who is told of them."""

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pandas as pd
import pytest

import cvxleak
from cvxleak import Mechanism
from cvxleak.core import ValidationError
from cvxleak.mechanisms.binomial import clopper_pearson
from cvxleak.model import Channel
from cvxleak.queries import count
from cvxleak.samples import channels_from_counts


@pytest.mark.parametrize(
    ("seen", "total", "tail"),
    [
        (0, 7, Fraction(1, 40)),
        (7, 7, Fraction(1, 40)),
        (3, 10, Fraction(1, 1000)),
        (1, 200, Fraction(1, 10**9)),
        (430, 1000, Fraction(1, 7)),
        (99, 100, Fraction(49, 100)),
    ],
)
def test_intervals_are_those_of_clopper_and_pearson(seen: int, total: int, tail: Fraction):
    """Against sums of the binomial law: wide enough, and no wider than a part in 10^10."""

    def term(k: int, p: Any) -> Any:
        return mpmath.binomial(total, k) * p**k * (1 - p) ** (total - k)

    def above(p: Any) -> Any:
        return mpmath.fsum(term(k, p) for k in range(seen, total + 1))

    def below(p: Any) -> Any:
        return mpmath.fsum(term(k, p) for k in range(seen + 1))

    low, high = clopper_pearson(seen, total, tail)
    with mpmath.workdps(60):
        most = mpmath.mpf(tail.numerator) / tail.denominator
        if seen == 0:
            assert low == 0.0
        else:
            assert above(mpmath.mpf(repr(low))) <= most < above(low * (1 + mpmath.mpf(10) ** -10))
        if seen == total:
            assert high == 1.0
        else:
            assert below(mpmath.mpf(repr(high))) <= most < below(high * (1 - mpmath.mpf(10) ** -10))


def test_large_samples_have_intervals_as_narrow_as_they_are():
    low, high = clopper_pearson(250_000, 10**6, Fraction(1, 40))
    assert (high - low) / 2 == pytest.approx(1.96 * (0.25 * 0.75 / 10**6) ** 0.5, rel=1e-2)


def test_no_more_statements_are_made_than_needed():
    three = channels_from_counts([[5, 3, 2], [0, 0, 0], [1, 4, 5]], 0.9)
    tail = Fraction(1, 10) / 12  # two rows with draws, three outputs, two sides
    assert (three.lower[0, 1], three.upper[0, 1]) == clopper_pearson(3, 10, tail)
    assert three.upper[2, 2] == clopper_pearson(5, 10, tail)[1]
    # What no draw is of may be anything.
    assert three.lower[1].tolist() == [0, 0, 0]
    assert three.upper[1].tolist() == [1, 1, 1]
    two = channels_from_counts([[5, 3], [0, 0]], 0.9)
    assert (two.lower[0, 0], two.upper[0, 0]) == clopper_pearson(5, 8, Fraction(1, 20))
    assert two.lower[0, 1] == pytest.approx(1 - two.upper[0, 0], rel=1e-9)
    one = channels_from_counts([[5], [3]])
    assert one.lower.tolist() == one.upper.tolist() == [[1.0], [1.0]]


def test_all_intervals_hold_together():
    """The share of tables whose set holds the true channel is at least the confidence."""
    rng = np.random.default_rng(0)
    rows = np.array([[0.5, 0.3, 0.2], [0.02, 0.08, 0.9]])
    tables = [np.array([rng.multinomial(40, row) for row in rows]) for _ in range(400)]
    held = np.mean([Channel(rows) in channels_from_counts(table, 0.8) for table in tables])
    assert held >= 0.8
    # And they are intervals, not everything: at a confidence of next to nothing some do not hold.
    low = [Channel(rows) in channels_from_counts(table, 0.01) for table in tables]
    assert np.mean(low) < 0.7


def test_a_crosstab_keeps_its_labels():
    frame = pd.DataFrame({"x": ["a", "a", "b", "b", "b"], "y": ["no", "yes", "yes", "yes", "no"]})
    table = channels_from_counts(pd.crosstab(frame.x, frame.y))
    assert table.inputs == ("a", "b")
    assert table.outputs == ("no", "yes")
    numbers = channels_from_counts([[1, 1], [1, 2]], inputs="ab", outputs=["no", "yes"])
    assert (table.upper == numbers.upper).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([[1, -1]],), "counts: found -1.0; whole numbers"),
        (([[0.5, 0.5]],), "counts: found 0.5; whole numbers"),
        (([[2.0**54, 1]],), "counts: found 1.80.*e.16; whole numbers"),
        (([[1, np.nan]],), "counts: found NaN at index"),
        (([[0, 0], [0, 0]],), "counts: found no draws"),
        (([[]],), r"counts: found shape \(1, 0\)"),
        (([1, 2],), "counts: expected 2 dimension"),
        (([[1, 2]], 0), r"confidence: found 0; it must be in \(0, 1\)"),
        (([[1, 2]], 1.0), r"confidence: found 1.0; it must be in \(0, 1\)"),
        (([[1, 2]], 95), r"confidence: found 95; it must be in \(0, 1\)"),
    ],
)
def test_what_is_no_table_of_counts_is_refused(arguments: Any, words: str):
    with pytest.raises(ValidationError, match=words):
        channels_from_counts(*arguments)


def test_counts_where_probabilities_belong_are_told_where_to_go():
    hint = "for counts there is cvxleak.samples.channels_from_counts"
    frame = pd.DataFrame({"x": [0, 0, 1, 1, 1], "y": [0, 1, 1, 1, 0]})
    crosstab = pd.crosstab(frame.x, frame.y)
    for call in (
        lambda: cvxleak.capacity(crosstab),
        lambda: cvxleak.capacity([[30, 20], [10, 40]]),
        lambda: Mechanism(count(1), [[30, 20], [10, 40]]),
    ):
        with pytest.raises(ValidationError, match=hint):
            call()
    for call in (
        lambda: cvxleak.capacity([[0.5, 0.4], [0.1, 0.9]]),
        lambda: cvxleak.Prior([1, 2]),
    ):
        with pytest.raises(ValidationError) as refused:
            call()
        assert hint not in str(refused.value)
