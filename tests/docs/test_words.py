"""docs/words.md: every name exists, and the glossary is in order."""

import re
from pathlib import Path

import pytest

from tests.docs.test_symbols import find

PAGE = (Path(__file__).parents[2] / "docs" / "words.md").read_text(encoding="utf-8")
ROWS = [line.split("|") for line in PAGE.splitlines() if line.startswith("|")]
NAMES = sorted({name for row in ROWS for name in re.findall(r"`(\w+\.[\w.]+)`", row[3])})


@pytest.mark.parametrize("name", NAMES)
def test_name_exists(name: str):
    find(name)


def test_every_row_leads_somewhere():
    assert len(NAMES) > 40
    assert all(len(row) == 5 for row in ROWS)
    assert all("`" in row[3] or row[3].strip() == "the same" for row in ROWS[2:])


def test_the_glossary_is_in_order():
    (glossary,) = re.findall(r"```\{glossary\}\n(.*?)```", PAGE, re.DOTALL)
    terms = re.findall(r"^(\S.*)$", glossary, re.MULTILINE)
    assert len(terms) > 15
    assert terms == sorted(terms, key=str.lower)
