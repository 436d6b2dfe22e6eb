import math

import numpy as np
import pytest

from cvxleak.core.errors import ValidationError
from cvxleak.design import DesignForPrior, MinLeakage
from cvxleak.local_dp import MinLocalDP
from cvxleak.measures import expected_distortion
from cvxleak.model import Channel, Distortion, Prior
from cvxleak.queries import count


def test_hamming():
    d = Distortion.hamming(["a", "b", "c"], ["b", "d"])
    assert d.matrix.tolist() == [[1, 1], [0, 1], [1, 1]]
    assert (d.inputs, d.outputs) == (("a", "b", "c"), ("b", "d"))
    assert Distortion.hamming(range(3)) == Distortion(1 - np.eye(3)) == Distortion.hamming(3)
    assert Distortion.hamming(2, 3) == Distortion.hamming([0, 1], [0, 1, 2])


def test_absolute_and_squared():
    assert Distortion.absolute([0, -1.5], [2]).matrix.tolist() == [[2.0], [3.5]]
    assert Distortion.squared([0, -1.5], [2]).matrix.tolist() == [[4.0], [12.25]]
    assert Distortion.absolute(iter([0, 1])).row(1).tolist() == [1.0, 0.0]


def test_from_matrix_keeps_labels():
    d = Distortion.from_matrix([[0, 2]], ["v"], ["x", "y"])
    assert d == Distortion([[0, 2]], ["v"], ["x", "y"])
    assert repr(d) == "Distortion(1 input ['v'] -> 2 outputs ['x', 'y'])"


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0.0, -1.0]], "found entries from -1.0 to 0.0"),
        ([[0.0, math.inf]], "found entries from 0.0 to inf"),
        ([[0.0, math.nan]], "NaN"),
        ([0.0, 1.0], "expected 2 dimension"),
        ([[]], "must not be empty"),
        ([["none"]], "real numbers"),
        ([[0], [0, 1]], "real numbers"),
    ],
)
def test_bad_matrices(matrix, message):
    with pytest.raises(ValidationError, match=rf"^matrix: .*{message}"):
        Distortion(matrix)


@pytest.mark.parametrize("make", [Distortion.absolute, Distortion.squared])
@pytest.mark.parametrize("labels", [["a", "b"], [0, None], [(0,), (1,)], [10**400, 0]])
def test_labels_that_are_no_numbers(make, labels):
    with pytest.raises(ValidationError, match=r"^inputs: .*labels that are numbers"):
        make(labels)


@pytest.mark.parametrize("labels", [[], (), 0, 3.0, {"a", "b"}])
def test_bad_labels(labels):
    with pytest.raises(ValidationError, match=r"^inputs: "):
        Distortion.hamming(labels)
    with pytest.raises(ValidationError, match=r"puts: "):
        Distortion.hamming(["a"], labels)


def test_duplicate_labels():
    with pytest.raises(ValidationError, match=r"^outputs: .*which are equal"):
        Distortion.absolute([0, 1], [1, 1.0])


def test_csv_and_pandas_round_trip(tmp_path):
    d = Distortion.squared([0, 0.1, 2], [0, 3])
    d.to_csv(tmp_path / "d.csv")
    assert Distortion.from_csv(tmp_path / "d.csv") == d
    assert Distortion.from_pandas(d.to_pandas()) == d


def test_the_name_of_a_distortion_is_that_between_the_labels():
    named, given = (
        MinLeakage(count(3), distortion=d, budget=0.5, entropy_floor=1.0, outputs=[0, 3])
        for d in ("absolute", Distortion.absolute(range(4), [0, 3]))
    )
    assert named.distortion == given.distortion
    channel = Channel([[1, 0], [0.5, 0.5], [0, 1]], [0, 10, 20], [0, 20])
    assert expected_distortion(channel, [0.25, 0.5, 0.25], "squared") == 50.0
    law = Prior([0.5, 0.5], [2, 7])
    assert DesignForPrior(law, "absolute", 1.0).distortion == Distortion.absolute([2, 7])
    assert MinLocalDP([law], 1.0, "absolute").distortion == Distortion.absolute([2, 7])
    with pytest.raises(ValidationError, match=r"^distortion: found 'l1'; allowed: 'hamming', 'abs"):
        expected_distortion(channel, [0.25, 0.5, 0.25], "l1")
    with pytest.raises(ValidationError, match="labels that are numbers"):
        expected_distortion(Channel([[1, 0], [0, 1]], ["a", "b"]), [0.5, 0.5], "absolute")


class TestSelection:
    wide = Distortion([[0, 1, 2], [3, 4, 5]], ["v", "w"], ["x", "y", "z"])

    def test_parts_by_label(self):
        part = self.wide.select(["w", "v"], ["z", "x"])
        assert part == Distortion([[5, 3], [2, 0]], ["w", "v"], ["z", "x"])
        assert self.wide.select(outputs=["y"]) == Distortion([[1], [4]], ["v", "w"], ["y"])
        assert self.wide.select() == self.wide

    def test_of_a_channel(self):
        channel = Channel([[0.5, 0.5, 0], [0, 0, 1]], ["v", "w"])
        assert channel.select(["v"], [1, 0]) == Channel([[0.5, 0.5]], ["v"], [1, 0])
        with pytest.raises(ValidationError, match=r"^matrix: row 0 \('v'\) sums to 0\.5"):
            channel.select(outputs=[0, 2])

    @pytest.mark.parametrize(
        ("labels", "message"),
        [
            ((["v", "u"],), r"^cost: its inputs are \['v', 'w'\]; they lack \['u'\]"),
            ((None, [0]), r"^cost: its outputs .* lack \[0\]"),
            ((["v", "v"],), "^inputs: .* which are equal"),
            (({"v"},), "^inputs: found a set"),
            (([["v"]],), "^inputs: .* not hashable"),
        ],
    )
    def test_bad_labels(self, labels, message):
        with pytest.raises(ValidationError, match=message):
            self.wide.select(*labels, name="cost")
