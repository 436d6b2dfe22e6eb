"""The results of a release desk: a release, a report, a verification."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

from cvxleak.problem.bound import unit_scale

__all__ = ["DeskReport", "DeskVerification", "Exposure", "Release"]

CLAIMS = {
    "ex_ante": "in expectation over all outputs, if no request depends on earlier outputs",
    "realized": "summed over the releases that were made; no claim about other histories",
}
"""What the leakages of each mode mean."""


@dataclass(frozen=True)
class Release:
    """One answer of the desk.

    Attributes
    ----------
    number : int
        Its place in the ledger, from 1.
    party : str
    output : hashable
        The released value.
    distortion : tuple of float
        Lower and upper bound on the least expected distortion within the budgets, both proved. The
        upper bound is the expected distortion of the kernel that was used.
    epsilon, delta : float
        The budgets of the request, in nats.
    copy_of : int or None
        The earlier release that this one repeats; those who have that one learn nothing new.

    Examples
    --------
    >>> from cvxleak.desk import Release
    >>> Release(1, "Ann", "yes", (0.2, 0.21), epsilon=0.1, delta=0.2).output
    'yes'
    """

    number: int
    party: str
    output: Hashable
    distortion: tuple[float, float]
    epsilon: float
    delta: float
    copy_of: int | None = None


@dataclass(frozen=True)
class Exposure:
    """Upper bound on what a party, or several parties that collude, may have learned.

    Attributes
    ----------
    parties : tuple of str
        Empty for all parties together.
    leakage : float
        Rounded up. In mode "ex_ante", I(V; X) for their outputs V. In mode "realized", the sum of
        I(Rhat; X | Z = z) over all releases, to any party, up to their last one: an output may
        depend on all earlier releases, and so may reveal them.
    budget : float
        The upper limit on the leakage; infinite if the ledger sets none.

    Examples
    --------
    >>> from cvxleak.desk import Exposure
    >>> Exposure(("Ann", "Bob"), leakage=0.12, budget=0.2).parties
    ('Ann', 'Bob')
    """

    parties: tuple[str, ...]
    leakage: float
    budget: float


@dataclass(frozen=True)
class DeskReport:
    """The state of a ledger.

    Attributes
    ----------
    mode : str
    releases : int
    histories : int
        Number of classes of histories that the next kernel distinguishes: |Z| after merging.
    exposures : tuple of Exposure
        Each party, each coalition, and all parties together (last).
    unit : str
        ``"nats"`` or ``"bits"``.

    Examples
    --------
    >>> from cvxleak.desk import DeskReport, Exposure
    >>> print(DeskReport("ex_ante", 1, 2, (Exposure((), 0.1, 0.2),)))
    1 release, 2 classes of histories (ex_ante)
    in expectation over all outputs, if no request depends on earlier outputs:
    all parties: at most 0.1 nats (budget 0.2)
    """

    mode: str
    releases: int
    histories: int
    exposures: tuple[Exposure, ...]
    unit: str = "nats"

    @property
    def claim(self) -> str:
        """What the leakages mean: see the modes of `ReleaseDesk`."""
        return CLAIMS[self.mode]

    def to(self, unit: str) -> DeskReport:
        """Return the same report in ``"nats"`` or ``"bits"``, leakages rounded up."""
        scale = unit_scale(self.unit) / unit_scale(unit)
        if scale == 1.0:
            return self
        exposures = [
            Exposure(who.parties, _up(scale * who.leakage), scale * who.budget)
            for who in self.exposures
        ]
        return replace(self, exposures=tuple(exposures), unit=unit)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data; an infinite budget is None."""
        return {
            "mode": self.mode,
            "claim": self.claim,
            "unit": self.unit,
            "releases": self.releases,
            "histories": self.histories,
            "exposures": [
                {
                    "parties": list(who.parties) or None,
                    "leakage": who.leakage,
                    "budget": None if math.isinf(who.budget) else who.budget,
                }
                for who in self.exposures
            ],
        }

    def __repr__(self) -> str:
        return f"DeskReport({self.mode}, {self.releases} releases, {len(self.exposures)} exposures)"

    def _repr_html_(self) -> str:
        from cvxleak.core.notebook import html_table

        head = ("who", f"at most ({self.unit})", "budget")
        rows = ((_name(who.parties), who.leakage, who.budget) for who in self.exposures)
        return html_table(f"{self!r}, {self.claim}", head, rows)

    def __str__(self) -> str:
        releases = f"{self.releases} release{'s' * (self.releases != 1)}"
        classes = f"{self.histories} class{'es' * (self.histories != 1)} of histories"
        lines = [
            f"{releases}, {classes} ({self.mode})",
            f"{self.claim}:",
        ]
        for who in self.exposures:
            limit = "no budget" if math.isinf(who.budget) else f"budget {who.budget:.6g}"
            text = f"{_name(who.parties)}: at most {who.leakage:.6g} {self.unit}"
            lines.append(f"{text} ({limit})")
        return "\n".join(lines)


@dataclass(frozen=True)
class DeskVerification:
    """The result of recomputing a ledger from its first row on.

    Attributes
    ----------
    errors : tuple of str
        What is wrong; empty if the ledger passes.

    Examples
    --------
    >>> from cvxleak.desk import DeskVerification
    >>> DeskVerification(("release 2 is missing",)).passed
    False
    """

    errors: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether there are no errors."""
        return not self.errors


def _name(parties: tuple[str, ...]) -> str:
    return " + ".join(parties) or "all parties"


def _up(value: float) -> float:
    return value if value == 0 else math.nextafter(value, math.inf)
