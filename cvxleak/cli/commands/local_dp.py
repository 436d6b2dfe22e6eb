"""``cvxleak local-dp``: the most private channel that is useful whatever the true distribution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cvxleak.cli.commands.solve import view
from cvxleak.core.wording import counted

if TYPE_CHECKING:
    from cvxleak.cli.spec_file import SpecFile
    from cvxleak.report import Report

__all__ = ["local_dp"]


def _about(spec_file: SpecFile, report: Report) -> list[str]:
    """Say in a few lines what is known about the distribution, and which class of sets that is."""
    known, facts = spec_file.spec.sources, report.facts
    assert known is not None
    size = counted(facts["outcomes"], "outcome")
    lines = [f"{known.kind} -> set of distributions of {size} -> {facts['outputs']} outputs"]
    if known.source is not None:
        lines.append(f"Sources: {known.source}")
    kinds = {
        "I": "Class I: the uniform distribution is in the set or its convex hull",
        "II": "Class II: all distributions put the outcomes in the same order, "
        + ", ".join(map(str, facts["permutation"] or [])),
        "III": "Class III: the distributions put the outcomes in different orders, and the uniform "
        "one is not in the convex hull",
    }
    border = (
        "" if facts["class_exact"] else " (up to rounding: the set is at the border of the class)"
    )
    return [*lines, kinds[facts["class"]] + border]


local_dp = view(
    "local-dp",
    "Find the channel of least epsilon for a set of distributions.",
    _about,
)
