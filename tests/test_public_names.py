"""Every public name has a docstring with an example, which runs as a doctest."""

import importlib
import inspect
import pkgutil
from typing import Any

import numpy as np
import pytest

import cvxleak
from cvxleak.core.errors import ValidationError
from cvxleak.core.work import WORK_LIMIT
from cvxleak.model import Prior
from cvxleak.queries import count

# Programs and the inner parts of a search mean nothing by themselves.
PARTS = ("cvxleak.cli", "cvxleak.audit.worst_adversary", "cvxleak.solvers")


def public_names() -> list[Any]:
    """Return (name, object) for the functions and classes in every public `__all__`."""
    found: dict[int, Any] = {}
    modules = ["cvxleak"] + [
        module.name
        for module in pkgutil.walk_packages(cvxleak.__path__, "cvxleak.")
        if module.ispkg or module.name.count(".") == 1
    ]
    for name in modules:
        if "._" in name or name.startswith(PARTS):
            continue
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", ()):
            value = getattr(module, public)
            if inspect.isclass(value) or inspect.isroutine(value):
                found.setdefault(id(value), pytest.param(value, id=f"{name}.{public}"))
    return list(found.values())


@pytest.mark.parametrize("value", public_names())
def test_there_is_an_example(value: Any):
    where = f"{value.__module__}.{value.__qualname__}"
    # A class without a docstring of its own would show that of its parent.
    doc = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    assert doc, f"{where} is public (it is in an __all__) and has no docstring"
    assert "\nExamples\n--------\n" in inspect.cleandoc(doc), (
        f'{where} is public (it is in an __all__): its docstring needs a section "Examples"'
    )
    assert ">>> " in doc, f"the section Examples of {where} has no line that starts with >>>"


# Arguments that several functions have come in one order. A function has few of them.
ORDERS = (
    ("n", "k", "prior", "mechanism", "channel", "entropy_floor", "records", "size"),
    ("k", "size", "epsilon", "delta"),
    ("prior", "channel", "epsilon", "delta"),
    ("distortion", "budget", "entropy_floor"),
    (
        "tol",
        "max_iterations",
        "time_limit",
        "work_limit",
        "solver",
        "solver_options",
        "verbose",
        "progress",
    ),
)
# Measures, expressions and constraints take the channel first, then what it is measured against,
# then the measure's own arguments, and the budget last.
CHANNELS = ("mechanisms", "mechanism", "channel", "joint")
OF_MEASURES = (
    (
        *CHANNELS,
        *("prior", "priors", "query", "event", "events", "pairs", "records", "given", "size"),
        *("alpha", "divergence", "gain", "form", "distortion", "epsilon", "rho", "delta", "budget"),
    ),
    ("law", "reference", "divergence", "alpha"),
    ("k", "m"),
)
# The first of two releases is a channel here, elsewhere a group of records.
FIRST_RELEASE = ("conditional_maximal_leakage", "exp_conditional_maximal_leakage")


def orders_of(routine: Any) -> tuple[tuple[str, ...], ...]:
    if not routine.__module__.startswith(MEASURE_ROOMS):
        return ORDERS
    if routine.__name__ in FIRST_RELEASE:
        return (("first", "second", "prior", "budget"),)
    return OF_MEASURES


MEASURE_ROOMS = ("cvxleak.measures.", "cvxleak.expressions.", "cvxleak.constraints.")


def signatures() -> list[Any]:
    """Return the public functions and constructors, and the methods that solve."""
    found = []
    for param in public_names():
        (value,) = param.values
        where = f"{value.__module__}.{value.__qualname__}"
        members = vars(value).items() if inspect.isclass(value) else [("", value)]
        for name, member in members:
            routine = getattr(member, "__func__", member)
            if inspect.isfunction(routine) and name in ("", "__init__", "solve", "check", "sample"):
                found.append(pytest.param(routine, id=f"{where}.{name}".rstrip(".")))
    return found


@pytest.mark.parametrize("routine", signatures())
def test_arguments_come_in_one_order(routine: Any):
    parameters = inspect.signature(routine).parameters.values()
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    placed = [p for p in parameters if p.name not in keywords]
    needed = [p.name for p in placed if p.default is p.empty]
    # Python has those that may be left out come after the others.
    for given in (needed, [p.name for p in placed if p.name not in needed], keywords):
        for order in orders_of(routine):
            shared = [name for name in given if name in order]
            assert shared == [name for name in order if name in given]


# Their steps are counted otherwise, or they run no search of ours.
OTHERWISE = ("verify", "Relaxation.solve", "ReleaseDesk", "release_search")


@pytest.mark.parametrize("routine", signatures())
def test_a_limit_of_work_stands_beside_a_limit_of_time(routine: Any):
    parameters = inspect.signature(routine).parameters
    if "time_limit" not in parameters or "max_iterations" in parameters:
        return
    if not routine.__qualname__.startswith(OTHERWISE):
        assert parameters["work_limit"].default == WORK_LIMIT
        assert parameters["time_limit"].default is None


@pytest.mark.parametrize("routine", signatures())
def test_measures_begin_with_the_channel_and_end_with_the_budget(routine: Any):
    if not routine.__module__.startswith(MEASURE_ROOMS):
        return
    parameters = inspect.signature(routine).parameters.values()
    placed = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    if set(placed) & set(CHANNELS):
        assert placed[0] in CHANNELS
    assert "budget" not in placed[:-1]
    assert "query" not in [p.name for p in parameters if p.default is not p.empty] or (
        "query" not in placed
    )


MEASURED = [
    param
    for param in signatures()
    for routine in param.values
    if routine.__module__.startswith(MEASURE_ROOMS)
    and [
        p.name
        for p in inspect.signature(routine).parameters.values()
        if p.kind is not p.KEYWORD_ONLY
    ][:2]
    in (["channel", "prior"], ["channel", "query"], ["mechanism", "prior"])
]


@pytest.mark.parametrize("routine", MEASURED)
def test_who_gives_the_prior_first_is_told_that_the_channel_comes_first(routine: Any):
    parameters = inspect.signature(routine).parameters.values()
    first, second, *rest = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    channel = np.full((2, 2), 0.5)
    given = [count(1)] if second.name == "query" else [[0.5, 0.5], Prior([0.5, 0.5])]
    known = {"query": count(1), "alpha": 2.0, "size": 1}
    others = [known.get(p.name, 0.5) for p in rest if p.default is p.empty]
    for prior in given:
        with pytest.raises(ValidationError, match=rf"^{first.name}: .*the {first.name} comes fir"):
            routine(prior, channel, *others)


def test_some_measures_have_a_prior():
    assert len(MEASURED) > 40


def test_a_seed_is_the_default_wherever_there_is_one():
    seeds = {
        param.id: inspect.signature(routine).parameters["rng"].default
        for param in signatures()
        for routine in param.values
        if "rng" in inspect.signature(routine).parameters
    }
    drawing = {
        where for where in seeds if where.endswith((".sample", ".sample_mechanism", ".randomize"))
    }
    assert drawing
    assert {where for where, seed in seeds.items() if seed != 0} == drawing
