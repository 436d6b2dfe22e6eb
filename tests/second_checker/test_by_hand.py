"""Proofs that searches seldom write, made by hand: both checkers prove the same upper end."""

import base64
import zlib

import numpy as np
import pytest

from cvxleak import check, verify
from tests.second_checker.making import made
from tests.second_checker.mutating import signed


def packed(numbers):
    array = np.array(numbers, "<f8")
    data = base64.b64encode(zlib.compress(array.tobytes())).decode("ascii")
    return {"dtype": "<f8", "shape": list(array.shape), "data": data}


def both(data):
    """Return the upper ends that the two checkers prove, when nothing much is claimed."""
    data["claim"].update(lower=0.0, upper=9.0)
    answer = verify(signed(data))
    assert answer.passed, answer.reason
    check.READ, check.FX = check.Reader(2), check.Precision(check.DIGITS[0])
    second = check.record_leakage(data["problem"], data["witness"], data["proof"]).upper
    return answer.upper, second / check.FX.one


@pytest.mark.parametrize("multipliers", [[0.0, 1.0], [0.3, 0.5], [0.02, 1.0], [0.5, 0.0]])
def test_the_bound_of_the_whole_dataset(multipliers):
    data = made("cells")
    outputs = len(data["problem"]["mechanism"]["channel"]["outputs"])
    law = {"multipliers": packed(multipliers), "output": packed([1 / outputs] * outputs)}
    data["proof"]["groups"] = [{"records": [0], "dataset": law}]
    first, second = both(data)
    assert first == pytest.approx(second, rel=1e-12)
    assert second > 0


def test_outputs_that_are_merged_at_a_price():
    data = made("cells of merged outputs")
    outputs = len(data["problem"]["mechanism"]["channel"]["outputs"])
    entry = data["proof"]["groups"][0]
    entry.pop("choices", None)
    cells = entry["cells"]
    parts = len(cells["outputs"])
    # As many parts as before, so that the same tree fits, but others; any tree proves something.
    cells["outputs"] = [[y] for y in range(parts - 1)] + [list(range(parts - 1, outputs))]
    cells["output"] = packed([1 / outputs] * outputs)
    first, second = both(data)
    assert first == pytest.approx(second, abs=1e-10)


def test_an_entry_that_is_the_same_as_another():
    data = made("table")
    groups = data["proof"]["groups"]
    groups[0] = {"records": [0]}
    query = data["problem"]["mechanism"]["query"]
    # x0 + x1 x2 with binary records: the last two are alike, but a table lists what it likes.
    query["space"]["alphabets"] = [[[0, 1], 3]]
    query["table"] = [0, 0, 0, 1, 1, 1, 1, 2]
    query["values"] = [0, 1, 2]
    channel = data["problem"]["mechanism"]["channel"]
    channel["inputs"], channel["matrix"] = [0, 1, 2], channel["matrix"][:3]
    data["problem"]["records"] = [[0], [1], [2]]
    data["proof"]["groups"] = [{"records": [0]}, {"records": [1]}, {"same_as": 1}]
    data["witness"] = {"records": [0], "weights": [0.375, 0.125, 0.375, 0.125]}
    data["problem"]["entropy_floor"] = 1.0
    first, second = both(data)
    assert first == pytest.approx(second, rel=1e-12)
    data["proof"]["groups"][2] = {"same_as": 0}
    data["proof"]["groups"].pop(1)
    assert not verify(signed(data)).passed
    verdict = check.check(signed(data))
    assert verdict.code == check.NOT_PROVED
