"""The truths of audits that are computed without cvxleak are those that are stored."""

import pytest

from tests.truths import known_audits
from tests.truths.problems import load

ENTRIES = [entry for entry in load() if entry.get("how") in known_audits.METHODS]
QUICK = {"modular", "parity", "parity_balance", "parity_curve", "uniform"}
SLOW = [entry for entry in ENTRIES if entry["how"] not in QUICK]


def missed(entry):
    """Return both intervals if they do not meet."""
    low, high = known_audits.METHODS[entry["how"]](entry["data"])
    scale = known_audits.BIT if entry.get("unit") == "bits" else 1.0
    stored = [scale * end for end in entry["truth"]]
    meets = low <= stored[1] + known_audits.ROUNDING and stored[0] <= high + known_audits.ROUNDING
    return [] if meets else [(entry["name"], (low, high), stored)]


def test_closed_forms():
    entries = [entry for entry in ENTRIES if entry["how"] in QUICK]
    assert len(entries) > 50
    assert [gap for entry in entries for gap in missed(entry)] == []


@pytest.mark.slow
@pytest.mark.parametrize("entry", SLOW[::6], ids=lambda entry: entry["name"])
def test_enumeration_and_adversaries(entry):
    assert missed(entry) == []


def test_a_wrong_truth_is_noticed():
    entry = next(entry for entry in ENTRIES if entry["how"] == "parity")
    low, high = entry["truth"]
    assert missed(entry | {"truth": [low + 1e-4, high + 1e-4]})
