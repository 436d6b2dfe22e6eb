"""The page on convexity knows every expression and every builder, and nothing else."""

import re
from pathlib import Path

from cvxleak import constraints, expressions, measures

PAGE = (Path(__file__).parents[2] / "docs" / "convexity.md").read_text(encoding="utf-8")
OTHER_ROOMS = {"cvxleak.expressions", "cvxleak.constraints", "cvxleak.measures"}


def test_every_name_is_on_the_page():
    named = set(re.findall(r"`([a-z_]+)`", PAGE))
    public = set(expressions.__all__) | set(constraints.__all__)
    assert public <= named
    assert named <= public | set(measures.__all__)


def test_the_page_says_expression_or_builder_where_it_is_one():
    rows = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| ")]
    for row in rows:
        if len(row) == 5:  # number, in the channel, in the prior, expression, ceiling
            assert set(re.findall(r"`([a-z_]+)`", row[3])) <= set(expressions.__all__)
            assert set(re.findall(r"`([a-z_]+)`", row[4])) <= set(constraints.__all__)
        elif len(row) == 3:
            assert set(re.findall(r"`([a-z_]+)`", row[1])) <= set(constraints.__all__)
