"""From a spec to the problem of the registry that a command asks about."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cvxleak.cli.from_spec import (
    build_distortion,
    build_gain,
    build_knowledge,
    build_local,
    build_mechanism,
    build_prior,
    build_query,
    build_sources,
    build_task,
)
from cvxleak.cli.spec.section import Percent
from cvxleak.cli.spec_file import SpecFile
from cvxleak.core.errors import ValidationError
from cvxleak.model import Channel, Distortion, Prior
from cvxleak.problem import Problem, problem_class
from cvxleak.problem.bound import converted
from cvxleak.problem.registry import PYTHON_ONLY, parameters

__all__ = ["TABLES", "problem_of"]

TABLES = {
    "audit": "adversary.entropy_floors",
    "envelope": "envelope",
    "local-dp": "local_dp",
    "design": "design",
    "solve": "problem",
}
"""Where a spec says what a command asks for."""


def problem_of(command: str, spec_file: SpecFile, units: str) -> Any:
    """Return the `Problem` that a command of `TABLES` states in a spec.

    A key of [problem] is the argument of that name of the problem's class; the other tables name
    the problem by what they ask for. An argument without a key is what the spec's own section of
    that name describes: the query, the mechanism, the channel (of the local mechanism), the prior,
    the sources, the distortion.

    Raises
    ------
    ValidationError
        Another kind, an unknown key, or an argument that is missing or not valid; more values than
        one where a problem has one.
    """
    kind, data, unit = STATEMENTS[command](spec_file)
    unit = unit or units
    table = TABLES[command]
    known = parameters(kind)
    arguments: dict[str, Any] = {}
    for name, parameter in known.items():
        if data.get(name) is not None:
            arguments[name] = _value(spec_file, table, name, data[name])
        elif (made := _described(spec_file, name, known, data)) is not None:
            arguments[name] = made
        elif parameter.default is parameter.empty:
            section = f", and so is [{name}]" if name in SECTIONS else ""
            raise ValidationError(f"{spec_file.path}: {table}.{name} is missing{section}")
    floor = "entropy_floor"
    if isinstance(share := arguments.get(floor), str):
        with spec_file.at(table):
            share = arguments[floor] = _share(share)
    if isinstance(share, Percent):
        space = getattr(arguments.get("mechanism", arguments.get("query")), "space", None)
        if space is None:
            raise ValidationError(
                f"{spec_file.path}: {table}.{floor}: found a share of no dataset's"
            )
        arguments[floor] = share * converted(space.max_entropy, "nats", unit)
    if command == "audit":
        mechanism = arguments["mechanism"]
        arguments["adversaries"] = build_knowledge(spec_file, mechanism.query, unit)
    make = kind.constructor()
    if "unit" in inspect.signature(make).parameters:
        arguments["unit"] = unit
    with spec_file.at(table, naming=command != "audit"):
        return make(**kind.in_nats(arguments, unit))


def _share(value: str) -> Any:
    try:
        return Percent.read(value)
    except ValidationError as error:
        raise ValidationError(f"entropy_floor: {error}") from error


Statement = tuple[type[Problem], Mapping[str, Any], str | None]
"""The class of a problem, arguments that stand in a spec's table, and their unit."""


def _solve(spec_file: SpecFile) -> Statement:
    spec_file.needs("solve", "problem")
    wanted = spec_file.spec.problem
    assert wanted is not None
    with spec_file.at("problem.kind", naming=False):
        kind = problem_class(wanted.kind)
    known, data = parameters(kind), wanted.data()
    for name in data.keys() - known.keys():
        python = f" can be given in Python only: {PYTHON_ONLY[name]}" if name in PYTHON_ONLY else ""
        raise ValidationError(
            f"{spec_file.path}: problem.{name}{python or ' is unknown'}; "
            f"the keys of {wanted.kind}: {sorted(known)}"
        )
    return kind, data, wanted.unit


def _design(spec_file: SpecFile) -> Statement:
    spec_file.needs("design", "design", "distortion", ("query", "space"))
    wanted = spec_file.spec.design
    assert wanted is not None
    return problem_class(f"min-{wanted.minimize}"), dict(wanted), wanted.unit


def _local_dp(spec_file: SpecFile) -> Statement:
    spec_file.needs("local-dp", "sources", "local_dp")
    wanted = spec_file.spec.local_dp
    assert wanted is not None
    kind = "min-local-dp" if wanted.epsilon is None else "min-distortion-local-dp"
    data = dict(wanted) | {"budget": wanted.distortion_budget}
    return problem_class(kind), data, wanted.unit


def _envelope(spec_file: SpecFile) -> Statement:
    spec_file.needs("envelope", "mechanism", ("query", "space"), "prior")
    asked = spec_file.spec.envelope
    if asked.epsilon and not asked.delta:
        level = _only(asked.epsilon, "envelope.epsilon")
        return problem_class("failure-probability"), {"epsilon": level}, asked.unit
    delta = _only(asked.delta, "envelope.delta")
    return problem_class("pml-envelope"), {"delta": delta}, asked.unit


def _audit(spec_file: SpecFile) -> Statement:
    known, asked = spec_file.spec.adversary, spec_file.spec.audit
    data = {
        "mechanism": build_task(spec_file).mechanism,
        "entropy_floor": _only(known.entropy_floors, "adversary.entropy_floors"),
        "records": None if asked.records is None else _only(asked.records, "audit.records"),
        "size": _only(asked.group_sizes, "audit.group_sizes"),
        "gain": asked.gain,
        "form": asked.form,
    }
    return problem_class("record-leakage"), data, known.unit


STATEMENTS: dict[str, Callable[[SpecFile], Statement]] = {
    "audit": _audit,
    "envelope": _envelope,
    "local-dp": _local_dp,
    "design": _design,
    "solve": _solve,
}


def _only(values: Sequence[Any], key: str) -> Any:
    if len(values) != 1:
        raise ValidationError(f"{key}: found {len(values)} values; a point of a sweep has one")
    return values[0]


def _value(spec_file: SpecFile, table: str, name: str, value: Any) -> Any:
    """Return what a key says; of a channel, a distribution or a distortion also in a file."""
    readers: dict[str, Any] = {"channel": Channel, "distortion": Distortion, "prior": Prior}
    if name == "gain":
        with spec_file.at(f"{table}.{name}"):
            return build_gain(value)
    if name in readers and isinstance(value, str):
        with spec_file.at(f"{table}.{name}"):
            return readers[name].from_csv(spec_file.file(value))
    return value


SECTIONS = ("channel", "distortion", "mechanism", "prior", "query", "sources")
"""Arguments that a section of their name describes."""


def _described(
    spec_file: SpecFile, name: str, known: Mapping[str, inspect.Parameter], data: Mapping[str, Any]
) -> Any:
    """Return the argument that a section of its own describes, if there is one.

    The distribution of [prior] is the source of a problem that has no prior.
    """
    spec = spec_file.spec
    on_sources = "sources" in known and known["sources"].default is inspect.Parameter.empty
    if name == "sources":
        return build_sources(spec_file) if on_sources and spec.sources is not None else None
    if name == "distortion" and on_sources and spec.sources is not None:
        return build_distortion(spec_file, build_sources(spec_file).labels)
    if spec.query is None and spec.space is None:
        return None
    query = build_query(spec_file)
    if name in ("query", "space"):
        return query
    if name == "distortion":
        outputs = data.get("outputs")
        return build_distortion(
            spec_file, query.values, None if outputs is None else tuple(outputs)
        )
    if name == "mechanism":
        prior = build_prior(spec_file, query)
        return None if spec.mechanism is None else build_mechanism(spec_file, query, prior)
    if name == "channel" and spec.mechanism is not None and spec.prior is not None:
        return build_local(spec_file, "solve")[1]
    local = query.space.records == 1 and "prior" not in known and data.get("sources") is None
    return (
        build_prior(spec_file, query) if name == "prior" or (name == "source" and local) else None
    )
