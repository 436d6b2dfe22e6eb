"""Proofs that searches seldom write, made by hand: both checkers prove the same upper end."""

import base64
import json
import zlib
from fractions import Fraction

import numpy as np
import pytest

from cvxleak import check, verify
from cvxleak.model import Arimoto, GainMatrix, Gini, Guess, GuessInTries, Shannon
from tests.second_checker.making import made
from tests.second_checker.mutating import signed


def packed(numbers):
    array = np.array(numbers, "<f8")
    data = base64.b64encode(zlib.compress(array.tobytes())).decode("ascii")
    return {"dtype": "<f8", "shape": list(array.shape), "data": data}


def both(data, least=0.0):
    """Return the upper ends that the two checkers prove, when nothing much is claimed."""
    data["claim"].update(lower=least, upper=99.0)
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


GAINS = {
    "guess": Guess(),
    "tries": GuessInTries(2),
    "matrix": GainMatrix([["1/3", 2, -1], [1, 1.5, 0.5]]),
    "many": GainMatrix([[a, 0.1, -a] for a in range(65)]),
    "gini": Gini(),
    "norm": Arimoto(1.5),
    "large norm": Arimoto(300),
    "infinite norm": Arimoto(np.inf),
    "shannon": Shannon(),
}


@pytest.mark.parametrize("name", GAINS)
def test_gains_and_their_tangents(name):
    gain, one = GAINS[name], check.FX.one
    mine = check.Gain(json.loads(json.dumps(gain.to_dict())), "posterior")
    rng = np.random.default_rng(5)
    weights = [*rng.integers(1, 1000, (20, 3)).tolist(), [1, 0, 0], [3, 3, 0], [1, 1, 1], [1, 2, 1]]
    laws = [[Fraction(x, sum(w)) for x in w] for w in weights]
    tangents = [mine.tangent(w) for w in weights]
    for law, tangent in zip(laws, tangents, strict=True):
        true = float(gain.value([float(x) for x in law]))
        assert mine.above([check.fixed(x) for x in law]) / one == pytest.approx(true, abs=1e-12)
        assert float(check.dot(law, tangent)) / one == pytest.approx(true, abs=1e-12)
        above = mine.above([check.fixed(x) for x in law])
        assert all(check.dot(law, other) <= above for other in tangents)


@pytest.mark.parametrize("form", ["posterior", "rise", "factor"])
@pytest.mark.parametrize("name", sorted(set(GAINS) - {"shannon"}))
def test_what_a_gain_comes_to_at_most(name, form):
    data = made("guess in two tries")
    data["proof"]["groups"] = [{"records": [1]}]
    data["problem"].update(gain=GAINS[name].to_dict(), form=form)
    data["claim"]["unit"] = "times" if form == "factor" else GAINS[name].unit
    data = json.loads(json.dumps(data))
    if name in ("matrix", "many") and form == "factor":
        # The mean of the actions, or the tangent in the middle, loses something somewhere.
        assert not verify(signed(data)).passed
        assert check.check(signed(data)).code == check.NOT_PROVED
        return
    first, second = both(data, -99.0)
    assert first == pytest.approx(second, rel=1e-12)


@pytest.mark.parametrize("change", [1.0, 0.5])
@pytest.mark.parametrize(
    "name", ["factor of a guess", "factor of a norm", "factor of many actions"]
)
def test_any_times_proves_a_factor(name, change):
    data = made(name)
    cells = data["proof"]["groups"][0]["cells"]
    cells["times"] *= change
    first, second = both(data)
    assert first == pytest.approx(second, rel=1e-10)
    cells["times"] = -cells["times"]
    assert not verify(signed(data)).passed
    assert check.check(signed(data)).code == check.NOT_PROVED
