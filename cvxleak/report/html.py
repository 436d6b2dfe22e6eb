"""A report as one web page, which loads nothing and can be mailed, printed and read anywhere."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import resources
from itertools import groupby
from typing import TYPE_CHECKING, Any

from cvxleak._version import __version__
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import in_order, instance
from cvxleak.core.wording import between
from cvxleak.model import RealOutput
from cvxleak.problem.bound import Status, unit_scale
from cvxleak.proofs import Certificate
from cvxleak.report import figures, names
from cvxleak.report.names import BOUND, COMPUTED
from cvxleak.report.numbers import amount, ends, findings, floors
from cvxleak.report.quantity import Quantity, Report, about, record_name
from cvxleak.report.sentences import percent

if TYPE_CHECKING:
    from cvxleak.audit import Adversary

__all__ = ["check_page", "html_page"]

WITNESSES = 8
"""Most adversaries that are shown."""

ROWS = 12
"""Most lines of an adversary's belief that are shown."""

SCRIPT = resources.files("cvxleak.report").joinpath("page.js").read_text("utf-8")
"""What shows one adversary at a time; the page allows no other script than this one."""

NO_BREAK = "\N{NO-BREAK SPACE}"

STATUSES = {
    Status.CERTIFIED.name: Status.CERTIFIED.value,
    Status.BRACKETED.name: Status.BRACKETED.value,
    COMPUTED: "a formula, evaluated in floating point: both bounds are its value",
    BOUND: "an inequality: the upper bound holds for every adversary, one attains the lower bound",
}


def check_page() -> None:
    """Check, before any computation, that an HTML page can be written.

    Raises
    ------
    ValidationError
        Jinja2 or matplotlib is missing.

    Examples
    --------
    >>> from cvxleak.report import check_page
    >>> check_page()
    """
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ValidationError(
            f"a page needs Jinja2 and matplotlib, and there is no {error.name}: "
            "pip install 'cvxleak[html]'"
        ) from error


def html_page(
    report: Report,
    heading: Sequence[str] = ("Audit",),
    *,
    spec: str = "",
    sources: Mapping[str, str] | None = None,
    certificate: str | None = None,
) -> str:
    """Return a report as one self-contained HTML page (needs the ``html`` extra).

    It has all quantities with what they mean, the adversaries that attain the leakages, pictures,
    and the hashes of the certificates. It loads nothing, prints, and fits a telephone; its one
    script shows the adversaries one at a time, and without it all of them are shown. Whatever
    comes from the outside is text there, whatever it contains.

    Parameters
    ----------
    report : Report
        What `audit_report`, or another of its kind, returned.
    heading : sequence of str
        The title, and lines below it.
    spec : str
        The text of the spec, to be shown as it is.
    sources : mapping of str to str, optional
        SHA-256 of each file that was read, by name.
    certificate : str, optional
        The name of the file that the certificates were written to.

    Returns
    -------
    str

    Raises
    ------
    ValidationError
        Arguments of the wrong kind, no title, or Jinja2 or matplotlib missing.

    Examples
    --------
    >>> from cvxleak import Mechanism
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.queries import parity
    >>> from cvxleak.report import audit_report, html_page
    >>> report = audit_report(Mechanism(parity(3), binary_symmetric(0.1)), [0.0, 2.0])
    >>> page = html_page(report, ["The parity of three & a coin"])
    >>> page.startswith("<!DOCTYPE html>"), "<h1>The parity of three &amp; a coin</h1>" in page
    (True, True)
    """
    instance(report, Report, "report")
    title, *lines = _texts(heading)
    instance(spec, str, "spec")
    files = {} if sources is None else dict(instance(sources, Mapping, "sources"))
    if certificate is not None:
        instance(certificate, str, "certificate")
    check_page()
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("cvxleak.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    leakages = [*report.named(names.RECORD_LEAKAGE), *report.named(names.GROUP_LEAKAGE)]
    several = len({quantity.record for quantity in leakages}) > 1
    attained = [q for q in leakages if q.witness is not None]
    adversaries = [list(same) for _, same in groupby(attained, lambda q: q.witness)]
    channel = report.channel
    if attained and not isinstance(attained[0].witness.mechanism.noise, RealOutput):
        channel = attained[0].witness.mechanism.nominal.channel
    return environment.get_template("page.html").render(
        title=title,
        heading=lines,
        report=report,
        leakages=[_leakage(quantity, report, several) for quantity in leakages],
        findings=list(findings(leakages, report.unit)),
        curves=list(figures.curves(report)),
        witnesses=[_witness(same, report) for same in adversaries[:WITNESSES]],
        left_out=max(len(adversaries) - WITNESSES, 0),
        channel=None if channel is None else figures.channel_picture(channel),
        quantities=_by_meaning(report),
        counts=_counts(report),
        statuses={
            status: meaning
            for status, meaning in STATUSES.items()
            if any(q.status == status for q in report.quantities)
        },
        certificates=list(_certificates(report)),
        certificate=certificate,
        script=SCRIPT,
        script_hash=base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode(),
        spec=spec,
        sources=files,
        version=__version__,
    )


def _texts(heading: Sequence[str]) -> list[str]:
    if isinstance(heading, str):
        raise ValidationError("heading: found a text; a list of lines is needed")
    lines = [instance(line, str, "heading") for line in in_order(heading, "heading")]
    if not lines:
        raise ValidationError("heading: found no lines; the first one is the title")
    return lines


def _leakage(quantity: Quantity, report: Report, several: bool) -> dict[str, Any]:
    """Return one line of the first table."""
    before, after, rise = (
        report.beside(name)(quantity)
        for name in (names.GUESS_BEFORE, names.GUESS_AFTER, names.RISE)
    )
    floor, most = quantity.entropy_floor or 0.0, report.facts["max_entropy"]
    share = _percent(floor / most if most else 1.0, math.floor)
    whose = f"{record_name(quantity)}; " if several else ""
    return {
        "about": f"{whose}{floor:g} {report.unit} ({share})",
        "ends": ends(quantity),
        "status": quantity.status,
        "before": _percent(before.lower),
        "after": _percent(after.lower),
        "rise": _percent(rise.upper, math.ceil),
    }


def _by_meaning(report: Report) -> dict[tuple[str, str], list[tuple[Quantity, str, Any]]]:
    """Return the quantities that share name and meaning, which are many floors' as a rule."""
    found: dict[tuple[str, str], list[tuple[Quantity, str, Any]]] = {}
    for name in dict.fromkeys(q.name for q in report.quantities):
        for q in report.named(name):
            found.setdefault((name, q.meaning), []).append((q, about(q, report.unit), ends(q)))
    return found


def _counts(report: Report) -> dict[str, Any] | None:
    """Return the table of a report on one, once it is published, as the page shows it."""
    cells = report.facts.get("cells", [])
    if not cells or "published" not in cells[0]:
        return None
    names_, across = report.facts["variables"], report.facts["columns"]
    rows: dict[tuple[str, ...], dict[tuple[str, ...], dict[str, Any]]] = {}
    head: dict[tuple[str, ...], None] = {}
    for cell in cells:
        parts = dict(zip(names_, cell["number"], strict=True))
        top = tuple(parts[name] for name in across)
        left = tuple(parts[name] for name in names_ if name not in across)
        head[top] = None
        low, high, pml = cell["lower"], cell["upper"], cell.get("pml")
        rows.setdefault(left, {})[top] = {
            "published": "–" if cell["published"] is None else f"{cell['published']:g}",
            "bounds": between(low, high),
            "known": low is not None and low == high,
            "pml": None if pml is None else _leaked(cell["pml_lower"], pml, report.unit),
            "share": 0 if pml is None else round(50 * min(pml / report.facts["largest"], 1.0)),
        }
    return {
        "down": " / ".join(name for name in names_ if name not in across),
        "head": [" / ".join(top) or "count" for top in head],
        "rows": [
            (" / ".join(left) or "", [found.get(top) for top in head])
            for left, found in rows.items()
        ],
    }


def _leaked(lower: float, upper: float, unit: str) -> str:
    ends = dict.fromkeys(f"{end / unit_scale(unit):.3f}" for end in (lower, upper))
    return f"{' to '.join(ends)} {unit}"


def _percent(share: float, rounding: Callable[[float], int] = round) -> str:
    return percent(share, rounding).replace(" ", NO_BREAK)


def _witness(same: Sequence[Quantity], report: Report) -> dict[str, Any]:
    """Return the adversary of consecutive floors, as the page shows it."""
    adversary: Adversary = same[0].witness
    before, after = adversary.guess()
    rows = sorted(adversary.rows(), key=lambda row: -row[-1])
    shown = [
        (_label(value), " or ".join(map(_label, context)), str(count), f"{weight:.6g}")
        for value, context, count, weight in rows[:ROWS]
    ]
    belief = figures.belief(adversary)
    pictures = [figures.posterior(adversary), *([] if belief is None else [belief])]
    return {
        "title": f"{record_name(same[0])}, uncertainty at least {floors(same)} {report.unit}",
        "leakage": ends(same[0])[0],
        "entropy": amount(adversary.entropy / unit_scale(report.unit)),
        "before": _percent(before),
        "after": _percent(after),
        "rows": shown,
        "left_out": len(rows) - len(shown),
        "pictures": pictures,
    }


def _label(label: object) -> str:
    return ", ".join(map(str, label)) if isinstance(label, tuple) else str(label)


def _certificates(report: Report) -> Iterator[tuple[int, str, str, Certificate]]:
    """Yield place, name, whom it is about, and certificate, in the order of the file."""
    proved = [q for q in report.quantities if q.certificate is not None]
    for place, quantity in enumerate(proved, 1):
        assert quantity.certificate is not None
        yield place, quantity.name, about(quantity, report.unit), quantity.certificate
