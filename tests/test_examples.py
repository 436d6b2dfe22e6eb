"""Every example runs, and returns pairs (computed, expected) that agree."""

import runpy
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


def test_a_design_of_one_s_own_keeps_all_rules():
    example = runpy.run_path(str(EXAMPLES[0].parent / "custom_design.py"))
    for solver in ("CLARABEL", "SCS"):
        channel, missed = example["design"](solver)
        assert example["violation"](channel) == 0
        assert 0 <= missed < 1e-5


def test_there_are_examples():
    assert EXAMPLES


# Longer than a few seconds.
SLOW = {"least_distortion_count"}


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in SLOW else [])
        for path in EXAMPLES
    ],
)
def test_example_computes_what_it_expects(path, capsys):
    pairs = list(runpy.run_path(str(path))["main"]())
    assert pairs
    for computed, expected in pairs:
        assert computed == pytest.approx(expected, rel=1e-3, abs=1e-6)
    assert capsys.readouterr().out
