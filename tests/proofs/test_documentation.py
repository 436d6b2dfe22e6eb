"""The pages on certificates: their programs run and they name what the files hold."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from cvxleak.audit import balance, record_leakage
from cvxleak.capacities import capacity
from cvxleak.mechanisms import truncated_geometric
from cvxleak.model import Mechanism, RecordSpace
from cvxleak.proofs.checker import PROVERS
from cvxleak.queries import count
from tests.problem.test_contract import PROBLEMS

DOCS = Path(__file__).parents[2] / "docs"
NAMES = ("certificates.md", "design_certificates.md")
PAGE = "\n".join((DOCS / name).read_text(encoding="utf-8") for name in NAMES)


def test_programs_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 2
    for block in blocks:
        output = io.StringIO()
        with redirect_stdout(output):
            exec(compile(block, "certificates.md", "exec"), {})
        assert output.getvalue().split() == re.findall(r"  # (.*)$", block, re.M)[0].split()
        assert set(output.getvalue().split()) == {"True"}


def test_every_kind_is_described():
    for kind in PROVERS:
        assert f"`{kind}`" in PAGE, kind


def keys(content):
    if isinstance(content, dict):
        yield from content
        for part in content.values():
            yield from keys(part)
    if isinstance(content, list):
        for part in content:
            yield from keys(part)


def test_every_key_is_explained():
    rows = [[0.9, 0.1], [0.1, 0.9], [0.1, 0.9], [0.9, 0.1]]
    twins = Mechanism.from_channel(RecordSpace([(0, 1), ("no", "yes")]), rows)
    noisy = Mechanism(count(12), truncated_geometric(12, 0.15))
    bounds = [
        capacity(rows),
        record_leakage(twins, 1.0),
        record_leakage(noisy, 5.0, tol=5e-3),
        balance(noisy, 8.0, tol=0.5),
    ]
    bounds += [make().solve() for make in PROBLEMS.values()]
    found = {key for bound in bounds for key in keys(bound.certificate.to_dict())}
    assert {"cuts", "law", "capacity"} <= found
    explained = set(re.findall(r"[a-z_0-9]+", " ".join(re.findall(r"`[^`\n]+`", PAGE))))
    assert found - explained <= {"cvxleak", "numpy", "python"}  # the names under `versions`
