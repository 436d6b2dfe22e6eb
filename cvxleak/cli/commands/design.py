"""``cvxleak design``: the channel of least leakage, or of least distortion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cvxleak.cli.commands.solve import view
from cvxleak.core.wording import counted

if TYPE_CHECKING:
    from cvxleak.cli.spec_file import SpecFile
    from cvxleak.report import Report

__all__ = ["design"]


def _about(spec_file: SpecFile, report: Report) -> list[str]:
    """Say in a few lines what was designed."""
    facts, unit = report.facts, report.unit
    about = "dataset" if spec_file.spec.query is None else spec_file.spec.query.kind
    who = {"record": "the worst record", "total": "the whole dataset"}.get(
        facts["objective"], f"the worst group of {facts['group_size']} records"
    )
    whom = "the given priors"
    if facts["entropy_floor"] is not None:
        whom = f"adversaries with at least {facts['entropy_floor']:g} {unit} of uncertainty"
    within = f"distortion at most {facts['budget']:g}"
    if facts["minimize"] == "distortion":
        within = f"leakage at most {facts['budget']:g} {unit}"
    lines = [
        f"{counted(facts['records'], 'record')} -> {about} "
        f"({counted(facts['query_values'], 'value')}) -> channel of "
        f"{counted(facts['rows'], 'row')} and {counted(facts['outputs'], 'output')}",
        f"Least {facts['minimize']}, {within}; leakage about {who}, to {whom}",
    ]
    if facts["binding"]:
        lines.append(f"Binding constraints: {', '.join(facts['binding'])}")
    return [*lines, *spec_file.prior_source]


design = view(
    "design",
    "Design the channel of least leakage or of least distortion.",
    _about,
)
