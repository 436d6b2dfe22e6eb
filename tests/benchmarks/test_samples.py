"""A small sample of the simulated audits; and what the page says of the large one."""

import importlib
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from cvxleak.samples import audit_samples

ROOT = Path(__file__).parents[2]


@pytest.fixture
def samples(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    return importlib.import_module("benchmarks.samples")


NAMES = [
    "no noise",
    "erasure",
    "rare outputs give it away",
    "200 outputs",
    "Laplace noise, 2 secrets",
    "answer times, some late",
]


@pytest.mark.parametrize("name", NAMES)
def test_audits_hold(samples: ModuleType, name: str):
    case, rng = samples.cases()[name], np.random.default_rng(5)
    truth = case.truth
    audits = [audit_samples(case.draw(draws, rng), rng=rng) for draws in (20, 50, 100, 200)]
    assert all(case.holds(audit, truth) for audit in audits)
    # And that they would not for another truth is seen.
    assert not case.holds(audits[-1], audits[-1].lower - 0.01)
    if not audits[-1].binned:
        assert not case.holds(audits[-1], audits[-1].upper + 0.01)


def test_the_page_says_what_was_counted():
    text = (ROOT / "docs" / "theory" / "samples.md").read_text(encoding="utf-8")
    held = [tuple(map(int, pair)) for pair in re.findall(r"(\d+) of (\d+) \|", text)]
    held, (total, audits) = held[:-1], held[-1]
    channels = [pair for pair in held if pair[1] == 500]
    assert len(channels) == 20
    assert (total, audits) == (sum(pair[0] for pair in channels), 10_000)
    assert all(found >= 0.95 * 500 for found, _ in channels)
    caught = re.findall(r"\| (Laplace noise|noisy max) \| 2 \| .* \| (\d+) of 20 \|", text)
    assert caught == [("Laplace noise", "20"), ("noisy max", "20")]
