"""Outputs of which the density is known within bounds: what is given, and what is refused."""

import json
import pickle

import numpy as np
import pytest

from cvxleak.core import ValidationError
from cvxleak.model import (
    BoundedDensity,
    Channel,
    ChannelSet,
    Mechanism,
    RealOutput,
    RecordSpace,
    TableQuery,
)
from cvxleak.queries import count

MASSES = ChannelSet([[0.2, 0.3, 0.4], [0.1, 0.1, 0.7]], [[0.25, 0.35, 0.5], [0.2, 0.15, 0.8]])
MOVES = [[np.inf, 0.5, 0.25], [np.inf, 0, "1/3"]]
OUTPUT = BoundedDensity(MASSES, MOVES)


def test_an_output_is_a_value():
    mechanism = Mechanism(count(1), OUTPUT)
    for one in (
        pickle.loads(pickle.dumps(mechanism)),
        Mechanism.from_dict(json.loads(json.dumps(mechanism.to_dict()))),
    ):
        assert one == mechanism
        assert hash(one) == hash(mechanism)
    assert RealOutput.from_dict(OUTPUT.to_dict()) == OUTPUT
    assert OUTPUT.to_dict()["oscillation"] == [["inf", 0.5, 0.25], ["inf", 0.0, "1/3"]]
    assert repr(mechanism).endswith("-> BoundedDensity(2 values, 3 cells))")
    assert BoundedDensity(MASSES, np.zeros((2, 3))) != OUTPUT


def test_values_are_matched_by_label():
    query = TableQuery(RecordSpace.binary(1), [0, 1], ["b", "a"])
    masses = ChannelSet(MASSES.lower, MASSES.upper, ["a", "b"])
    found = Mechanism(query, BoundedDensity(masses, MOVES)).noise
    assert found.masses.inputs == ("b", "a")
    assert found.masses.lower.tolist() == MASSES.lower[::-1].tolist()
    assert found.oscillation.tolist() == [
        [np.inf, 0, OUTPUT.oscillation[1, 2]],
        [np.inf, 0.5, 0.25],
    ]
    with pytest.raises(ValidationError, match="masses"):
        Mechanism(count(2), OUTPUT)


def test_the_mechanism_has_the_channel_of_the_cells_only():
    mechanism = Mechanism(count(1), OUTPUT)
    assert mechanism.nominal.channel.matrix.tolist() == MASSES.center.matrix.tolist()
    with pytest.raises(ValidationError, match=r"within bounds, .*\(query, noise\.masses\)"):
        _ = mechanism.channel


@pytest.mark.parametrize(
    ("masses", "moves", "message"),
    [
        (Channel([[1.0]]), [[0.0]], "masses: expected a ChannelSet"),
        (MASSES, [[0.0] * 3], r"oscillation: found shape \(1, 3\); masses has \(2, 3\)"),
        (MASSES, [[0.0] * 4] * 2, r"oscillation: found shape \(2, 4\)"),
        (MASSES, [[0.0] * 3, [0, 0, -1]], r"oscillation: found -1.0 at index \(1, 2\)"),
        (MASSES, [[0.0] * 3, [0, 0, np.nan]], "oscillation: found NaN"),
        (MASSES, "wide", "oscillation: expected"),
    ],
)
def test_bad_bounds_are_refused(masses, moves, message):
    with pytest.raises(ValidationError, match=message):
        BoundedDensity(masses, moves)


def test_a_key_more_is_refused():
    with pytest.raises(ValidationError, match="unknown keys"):
        RealOutput.from_dict({**OUTPUT.to_dict(), "edges": [0, 1]})
