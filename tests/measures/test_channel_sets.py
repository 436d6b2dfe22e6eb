"""Ends of measures over sets of channels, compared with members of the sets."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cvxleak import measures
from cvxleak.core.errors import ValidationError
from cvxleak.measures import measure_of_set
from cvxleak.measures.channel_sets import CONVEX, CONVEX_EXPONENTIALS
from cvxleak.model import Channel, ChannelSet, Shannon
from tests.measures.test_laws import channels, laws

ARGUMENTS = {
    measures.multiplicative_bayes_capacity: lambda p: {},
    measures.posterior_gain_vulnerability: lambda p: {"prior": p, "gain": np.eye(len(p))},
    measures.privacy_profile: lambda p: {"epsilon": 0.3},
}


def arguments_of(measure, prior):
    return ARGUMENTS.get(measure, lambda p: {"prior": p})(prior)


def members(known: ChannelSet, rng: np.random.Generator, size: int):
    """Yield vertices: rows that are filled up in a random order; and points between them."""
    for _ in range(size):
        rows = known.lower.copy()
        for row, high in zip(rows, known.upper, strict=True):
            for y in rng.permutation(len(row)):
                row[y] += max(0.0, min(1 - row.sum(), high[y] - row[y]))
        yield rows
        yield rows + rng.random() * (known.center.matrix - rows)


@st.composite
def questions(draw):
    channel = draw(channels())
    digits = draw(st.integers(1, 4))
    printed = [[f"{x:.{digits}f}" for x in row] for row in channel.matrix]
    return draw(laws(len(printed))), ChannelSet.from_printed(printed, digits), channel


@settings(max_examples=60)
@given(questions(), st.integers(0, 99))
def test_every_member_is_between_the_ends(question, seed):
    prior, known, channel = question
    rng = np.random.default_rng(seed)
    found = [channel.matrix, known.center.matrix, *members(known, rng, 5)]
    for measure in CONVEX + CONVEX_EXPONENTIALS:
        arguments = arguments_of(measure, prior)
        lower, upper = measure_of_set(known, measure, **arguments)
        for rows in found:
            value = measure(rows / rows.sum(axis=1, keepdims=True), **arguments)
            assert lower - 1e-9 <= value <= upper + 1e-9


@given(channels(), st.data())
@settings(max_examples=30)
def test_of_one_channel_both_ends_are_its_measure(channel, data):
    prior = data.draw(laws(channel.shape[0]))
    rows = channel.matrix.tolist()
    for measure in CONVEX + CONVEX_EXPONENTIALS:
        arguments = arguments_of(measure, prior)
        ends = measure_of_set(ChannelSet(rows, rows), measure, **arguments)
        assert ends == pytest.approx([measure(channel, **arguments)] * 2, abs=1e-9)


def test_digits_bring_the_ends_together():
    rng = np.random.default_rng(0)
    rows, prior = rng.dirichlet(np.ones(6), size=6), rng.dirichlet(np.ones(6))
    for digits in (3, 6, 9):
        known = ChannelSet.from_printed([[f"{x:.{digits}f}" for x in row] for row in rows])
        lower, upper = measure_of_set(known, measures.mutual_information, prior=prior)
        assert lower < upper < lower + 6 * 6 * 10.0**-digits * math.log(6)


def test_it_takes_what_the_measure_takes():
    known = ChannelSet.from_printed([["0.7", "0.3"], ["0.2", "0.8"]])
    channel, prior = Channel([[0.7, 0.3], [0.2, 0.8]]), [0.5, 0.5]
    ends = measure_of_set(known, measures.posterior_gain_vulnerability, prior=prior, gain=Shannon())
    value = measures.posterior_gain_vulnerability(channel, prior, Shannon())
    assert -math.log(2) <= ends[0] < value < ends[1] < 0


@pytest.mark.parametrize(
    "measure", [measures.entropy, measures.local_dp_epsilon, "mutual_information", None, abs]
)
def test_other_measures_are_refused(measure):
    known = ChannelSet.from_printed([["0.7", "0.3"]])
    with pytest.raises(ValidationError, match=r"^measure: found .*allowed: maximal_l.*cent"):
        measure_of_set(known, measure)
    with pytest.raises(ValidationError, match=r"^channel_set: expected a ChannelSet"):
        measure_of_set([[0.7, 0.3]], measures.mutual_information, prior=[1.0])  # pyright: ignore[reportArgumentType]
