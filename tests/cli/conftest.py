"""A spec in a folder of its own, and the command line in this process."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cvxleak.cli.app import app

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Call cvxleak with these arguments, 80 columns wide."""
    monkeypatch.setenv("COLUMNS", "80")

    def call(*arguments: object) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return call


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a spec with this content (version 1 unless it says otherwise); return its path."""

    def to_file(*parts: str, name: str = "spec.toml") -> Path:
        content = "\n".join(parts)
        path = tmp_path / name
        path.write_text(content if "version" in content else "version = 1\n" + content)
        return path

    return to_file
