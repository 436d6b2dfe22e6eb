"""From a spec to any problem of the registry."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from cvxleak.cli.building import build_distortion, build_local, build_mechanism, build_query
from cvxleak.cli.laws import build_prior, build_sources
from cvxleak.cli.spec_file import Given
from cvxleak.core.errors import ValidationError
from cvxleak.model import Channel, Distortion, Prior
from cvxleak.problem import Problem, problem_class
from cvxleak.problem.registry import PYTHON_ONLY, parameters

__all__ = ["build_problem"]


def build_problem(given: Given, units: str) -> Problem:
    """Return the problem of [problem].

    A key of [problem] is the argument of that name of the problem's class. An argument without a
    key is what the spec's own section of that name describes: the query, the mechanism, the channel
    (of the local mechanism), the prior, the sources, the distortion.

    Raises
    ------
    ValidationError
        Another kind, an unknown key, or an argument that is missing or not valid.
    """
    given.needs("solve", "problem")
    wanted = given.spec.problem
    assert wanted is not None
    with given.at("problem.kind", naming=False):
        kind = problem_class(wanted.kind)
    known, data = parameters(kind), wanted.data()
    for name in data.keys() - known.keys():
        python = f" can be given in Python only: {PYTHON_ONLY[name]}" if name in PYTHON_ONLY else ""
        raise ValidationError(
            f"{given.path}: problem.{name}{python or ' is unknown'}; "
            f"the keys of {wanted.kind}: {sorted(known)}"
        )
    arguments: dict[str, Any] = {}
    for name, parameter in known.items():
        if name in data:
            arguments[name] = _value(given, name, data[name])
        elif name in SECTIONS and (made := SECTIONS[name](given)) is not None:
            arguments[name] = made
        elif parameter.default is parameter.empty:
            section = f", and so is [{name}]" if name in SECTIONS else ""
            raise ValidationError(f"{given.path}: problem.{name} is missing{section}")
    unit, make = wanted.unit or units, kind.constructor()
    if "unit" in inspect.signature(make).parameters:
        arguments["unit"] = unit
    with given.at("problem"):
        return make(**kind.in_nats(arguments, unit))


def _value(given: Given, name: str, value: Any) -> Any:
    """Return what a key of [problem] says; of a channel, a law or a distortion also in a file."""
    readers: dict[str, Any] = {"channel": Channel, "distortion": Distortion, "prior": Prior}
    if name in readers and isinstance(value, str):
        with given.at(f"problem.{name}"):
            return readers[name].from_csv(given.file(value))
    return value


def _local(given: Given) -> Channel | None:
    there = given.spec.mechanism is not None and given.spec.prior is not None
    return build_local(given, "solve")[1] if there else None


def _mechanism(given: Given) -> Any:
    query = _query(given)
    if query is None or given.spec.mechanism is None:
        return None
    return build_mechanism(given, query, build_prior(given, query))


def _query(given: Given) -> Any:
    there = given.spec.query is not None or given.spec.space is not None
    return build_query(given) if there else None


def _prior(given: Given) -> Prior | None:
    query = _query(given)
    return None if given.spec.prior is None or query is None else build_prior(given, query)


def _distortion(given: Given) -> Distortion | None:
    if given.spec.distortion is None:
        return None
    if given.spec.sources is not None:
        return build_distortion(given, build_sources(given).labels)
    query = _query(given)
    return None if query is None else build_distortion(given, query.values)


SECTIONS: dict[str, Callable[[Given], Any]] = {
    "channel": _local,
    "distortion": _distortion,
    "mechanism": _mechanism,
    "prior": _prior,
    "query": _query,
    "space": _query,
    "sources": lambda given: None if given.spec.sources is None else build_sources(given),
}
"""Arguments that a section of their own describes."""
