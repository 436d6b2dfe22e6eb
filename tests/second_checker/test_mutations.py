"""Certificates changed in one place: the second checker proves nothing that the first refuses.

But for the differences of form that `comparing.FORM` lists, in which the claim is true.
"""

import json
from collections import Counter

import pytest

from tests.second_checker.comparing import compared
from tests.second_checker.making import MAKERS, made
from tests.second_checker.mutating import mutations

LARGEST = 25_000  # characters of a certificate that is mutated: many small ones say more


def differences(number, seed):
    """Return how the verdicts on mutated certificates go together, and what is unexplained."""
    originals = {name: made(name) for name in MAKERS}
    small = {name: data for name, data in originals.items() if len(json.dumps(data)) <= LARGEST}
    tally, unexplained = Counter(), []
    for name, where, data in mutations(small, number, seed):
        first, second, why = compared(data)
        tally[first.passed, second.code, why] += 1
        if why == "unexplained":
            unexplained.append((name, where, first.reason, second))
    return tally, unexplained


def test_mutated_certificates():
    tally, unexplained = differences(300, seed=13)
    assert not unexplained
    assert sum(n for (passed, *_), n in tally.items() if not passed) > 100


@pytest.mark.slow
def test_ten_thousand_mutated_certificates():
    tally, unexplained = differences(10_000, seed=2026)
    for (passed, code, why), number in sorted(tally.items(), key=str):
        print(f"{number:6}  first {'PASS' if passed else 'FAIL'}, second {code}  {why}")
    assert not unexplained
