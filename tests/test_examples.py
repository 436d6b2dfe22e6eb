"""Every example runs, and returns pairs (computed, expected) that agree."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


def test_there_are_examples():
    assert EXAMPLES


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_computes_what_it_expects(path, capsys):
    pairs = list(runpy.run_path(str(path))["main"]())
    assert pairs
    for computed, expected in pairs:
        assert computed == pytest.approx(expected, rel=1e-3, abs=1e-6)
    assert capsys.readouterr().out
