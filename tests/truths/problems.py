"""The bank of truths (README.md): its entries, and what solves them.

This file alone knows the interface of cvxleak, in every version that is compared. It imports no
other part of the tests, so that it runs wherever the files beside it are.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import math
import re
import runpy
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

Entry = dict[str, Any]
Found = tuple[Any, Any, tuple[Any, ...], Mapping[str, Any]]  # ends, certificates, stats


@dataclass(frozen=True)
class Answer:
    """Both ends, in the entry's unit; what proves them; seconds of the processor; the stats."""

    lower: float
    upper: float
    certificates: tuple[Any, ...] = ()
    seconds: float = 0.0
    stats: Mapping[str, Any] = field(default_factory=dict)

    @property
    def gap(self) -> tuple[float, float]:
        """The gap, relative to the upper end and absolute."""
        if self.lower == self.upper:
            return 0.0, 0.0
        width = self.upper - self.lower
        finite = self.upper and math.isfinite(width)
        return width / abs(self.upper) if finite else math.inf, width

    def meets(self, entry: Entry) -> bool:
        """Whether the bracket holds the truth, as far as the truth is known."""
        low, high = entry["truth"]
        if entry.get("set"):
            return self.lower <= low and high <= self.upper
        return self.lower <= high and low <= self.upper


def load(families: Iterable[str] | None = None) -> list[Entry]:
    """Return the entries of some families, or of all; each knows its ``family``."""
    found = []
    for family in sorted(p.stem for p in HERE.glob("*.json")) if families is None else families:
        for entry in json.loads((HERE / f"{family}.json").read_text(encoding="utf-8")):
            truth = [float(end) for end in entry["truth"]]
            found.append(entry | {"family": family, "truth": truth})
    return found


def solve(entry: Entry, **limits: Any) -> Answer:
    """Return what cvxleak finds of an entry; a limit that it does not have is left out."""
    from cvxleak.core import InfeasibleError

    limits = {name: entry[name] for name in ("tol",) if name in entry} | limits
    limits |= {"work_limit": entry["work"]} if "work" in entry else {}
    stated, start = STATEMENTS.get(entry["problem"], _registered), time.process_time()
    name = stated if isinstance(stated, str) else entry["problem"]
    state = _named if isinstance(stated, str) else stated
    try:
        found = state(name, make(entry["data"]), limits, entry.get("unit"))
    except InfeasibleError as error:
        found = math.inf, math.inf, (), {"infeasible": str(error)}
    lower, upper, certificates, stats = found
    proofs = tuple(one for one in certificates if one is not None)
    return Answer(float(lower), float(upper), proofs, time.process_time() - start, stats)


def failures(answer: Answer) -> list[str]:
    """Return what `cvxleak.verify` finds wrong with an answer's certificates."""
    from cvxleak import verify

    checks = [verify(certificate) for certificate in answer.certificates]
    return [check.reason for check in checks if not check.passed]


def make(data: Any) -> Any:
    """Return what an entry's data describe."""
    if isinstance(data, list):
        return [make(part) for part in data]
    if isinstance(data, dict):
        parts = {name: make(part) for name, part in data.items() if name != "is"}
        return makers()[data["is"]](**parts) if "is" in data else parts
    return float(data) if data in ("inf", "-inf") else data


@functools.cache
def makers() -> dict[str, Callable[..., Any]]:
    """Return what makes what the names in ``{"is": name}`` say."""
    from cvxleak import mechanisms, model, queries, sources

    found = {name: getattr(room, name) for room in (queries, mechanisms) for name in room.__all__}
    for name in model.__all__:  # DiscreteLaplace is "discrete_laplace"
        found[re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()] = getattr(model, name)
    space, rules = model.RecordSpace, runpy.run_path(str(HERE / "rules.py"))["RULES"]

    def tuples(data: Any) -> Any:
        return tuple(map(tuples, data)) if isinstance(data, list) else data

    return found | {
        "table": lambda alphabets, values: queries.from_table(space(alphabets), values),
        "additive": lambda alphabets, contributions, **rest: model.AdditiveQuery(
            space(alphabets), tuples(contributions), **rest
        ),
        "dataset_mechanism": lambda alphabets, channel: model.Mechanism.from_channel(
            space(alphabets), channel
        ),
        "printed": model.ChannelSet.from_printed,
        "laws": sources.SourceSet,
        "hull": sources.SourceSet.hull,
        "polytope": sources.SourceSet.polytope,
        "box": sources.SourceSet.box,
        "union": lambda parts: functools.reduce(lambda one, other: one | other, parts),
        "rule": lambda name, **rest: functools.partial(rules[name], **rest),
    }


def _within(function: Callable[..., Any], limits: Mapping[str, Any]) -> dict[str, Any]:
    known = inspect.signature(function).parameters
    return {name: value for name, value in limits.items() if name in known}


def _of_bound(bound: Any, unit: str | None) -> Found:
    bound = bound.to("bits") if unit == "bits" else bound
    stats = dict(bound.stats) | {"status": bound.status.name}
    return bound.lower, bound.upper, (bound.certificate,), stats


def _registered(name: str, data: dict[str, Any], limits: Any, unit: str | None) -> Found:
    from cvxleak.problem import problem_class

    problem = problem_class(name).constructor()(**data)
    return _of_bound(problem.solve(**_within(problem.solve, limits)), unit)


def _named(path: str, data: dict[str, Any], limits: Any, unit: str | None) -> Found:
    """Call a function that returns a bound, a pair of ends, or a number."""
    room, _, name = f"cvxleak.{path}".rpartition(".")
    function = getattr(importlib.import_module(room), name)
    chosen = _within(function, limits)
    if any(one.kind is one.VAR_KEYWORD for one in inspect.signature(function).parameters.values()):
        # It passes its options on to `Problem.solve`.
        chosen = _within(importlib.import_module("cvxleak.problem").Problem.solve, limits)
    at = data.pop("at", None)  # which point of a curve
    found = function(**data, **chosen)
    if hasattr(found, "solve"):
        found = found.solve(**_within(found.solve, limits))
    found = getattr(found, "bound", found) if at is None else found.bounds[at]
    if isinstance(found, float):
        return found, found, (), {}
    if hasattr(found, "status"):
        return _of_bound(found, unit)
    return found.lower, found.upper, (getattr(found, "certificate", None),), {}


def _curve(_name: str, data: dict[str, Any], limits: Any, unit: str | None) -> Found:
    from cvxleak.envelope import envelope_curve

    delta = data.pop("delta")
    lower, upper = envelope_curve(**data, **_within(envelope_curve, limits)).at([delta])
    return lower[0], upper[0], (), {}


def _relaxation(_name: str, data: dict[str, Any], limits: Any, unit: str | None) -> Found:
    lumped = data.pop("mechanism").lumped(data.pop("record", 0))
    kind = getattr(importlib.import_module("cvxleak.relaxations"), data.pop("kind"))
    return -math.inf, kind(lumped, **data).solve(), (), {}


STATEMENTS: dict[str, str | Callable[..., Found]] = {
    "additive-bayes-capacity": "capacities.additive_bayes_capacity",
    "balance": "audit.balance",
    "deficiency": "refinement.refines",
    "envelope-curve": _curve,
    "epsilon-of-set": "local_dp.local_dp_epsilon_of_set",
    "leakage-curve": "audit.leakage_curve",
    "maximal-alpha-leakage": "capacities.maximal_alpha_leakage",
    "multiplicative-bayes-capacity": "measures.multiplicative_bayes_capacity",
    "privacy-claim": "check_claim",
    "refinement-gap": "refinement.refinement_gap",
    "relaxation": _relaxation,
    "release-lagrangian": "release.release_lagrangian",
    "total-disclosure": "audit.total_disclosure",
}
"""Statements that are no problem of the registry: functions of cvxleak, or of the adapter."""
