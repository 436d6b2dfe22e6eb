"""Truths of the bank by other means than cvxleak: closed forms, enumeration, SciPy and CVXPY.

Each function of `TRUTHS` takes an entry's data and returns an interval that holds the true value.
It is written from the definition of the problem, and either has the tolerance of the solver or ends
between a primal and a dual value of its own. `python -m tests.truths.known [FAMILY ...]` computes
the truths anew and says which of them do not meet those in the files.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.truths import known_channels, known_designs
from tests.truths.known_data import BIT, UnknownTruthError

HERE = Path(__file__).parent

TRUTHS = known_channels.TRUTHS | known_designs.TRUTHS


def truth(entry):
    """Return an interval that holds an entry's truth, in its unit; None if nothing here has one."""
    if entry["problem"] not in TRUTHS:
        return None
    try:
        low, high = TRUTHS[entry["problem"]](entry["data"])
    except UnknownTruthError:
        return None
    scale = BIT if entry.get("unit") == "bits" else 1.0
    return low / scale, high / scale


def agree(entry):
    """Whether the truth of an entry, computed anew, meets the one in its file."""
    found = truth(entry)
    low, high = map(float, entry["truth"])
    return found is None or (found[0] <= high and low <= found[1])


def main(families):
    for family in families or sorted(path.stem for path in HERE.glob("*.json")):
        entries = json.loads((HERE / f"{family}.json").read_text(encoding="utf-8"))
        for entry in entries:
            if not agree(entry):
                print(f"{family}/{entry['name']}: {truth(entry)}, not {entry['truth']}")


if __name__ == "__main__":
    main(sys.argv[1:])
