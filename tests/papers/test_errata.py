"""Every erratum is checked by computing, and its numbers are those computed."""

import re
from functools import cache

import pytest

from cvxleak.papers.gallery import ERRATA

LONG = {"LEAKAGE 3.3.1, Thm 7"}
"""Those whose checks take seconds."""

CHECKED = [
    pytest.param(where, marks=[pytest.mark.slow] if where in LONG else []) for where in ERRATA
]
NUMERAL = re.compile(r"(?<![\d.,])\d+\.\d+(?![\d.])")
GIVEN = re.compile(r"(= |flip |flip of |probability |[hp]\()\d+\.\d+|\(([\d.]+, )+[\d.]+\)")
"""What an example starts from: D = 0.02, flip 0.1, h(0.3), (0.5, 0.3, 0.2)."""


@cache
def checked(where):
    return ERRATA[where].check()


@pytest.mark.parametrize("where", CHECKED)
def test_the_check_shows_what_is_said(where):
    entry = ERRATA[where]
    pairs = checked(where)
    assert pairs
    said = f"{entry.printed} {entry.so}"
    for pair in pairs:
        if pair.erratum is None:
            assert pair.agrees, pair
        else:
            # What the paper has, which must not come out.
            assert pair.erratum == where
            assert not pair.agrees, pair
        if pair.numeral and "." in pair.numeral:
            assert pair.numeral in said, f"{pair.numeral} is checked and not said"


@pytest.mark.parametrize("where", CHECKED)
def test_no_decimal_is_said_that_is_not_checked(where):
    entry = ERRATA[where]
    pairs = checked(where)
    given = " ".join(pair.name for pair in pairs)
    for numeral in NUMERAL.findall(GIVEN.sub("", entry.so)):
        known = [pair.computed for pair in pairs] + [pair.printed for pair in pairs]
        # It is computed to its last digit, or one of the inputs that the pair's name states.
        near = 10.0 ** -len(numeral.partition(".")[2])
        assert numeral in given or any(abs(x - float(numeral)) <= near for x in known), numeral


def test_an_entry_says_where_what_and_how():
    for where, entry in ERRATA.items():
        assert entry.paper in ("LEAKAGE", "ENVELOPE", "HAMMING", "DALENIUS", "SEQUENTIAL")
        assert where.startswith(entry.paper + " ")
        assert all(len(text) > 3 for text in (entry.printed, entry.so, entry.how))
