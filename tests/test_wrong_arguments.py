"""Whatever is given to a public function, what comes out is a result or a `CvxleakError`."""

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import cvxleak
from cvxleak import iterative
from cvxleak.errors import CvxleakError
from cvxleak.mechanisms import truncated_geometric
from cvxleak.model import Mechanism, Prior, RecordSpace
from cvxleak.queries import count

PACKAGES = (
    "mechanisms",
    "measures",
    "queries",
    "expressions",
    "constraints",
    "iterative",
    "problems",
    "report",
    "model",
    "certificates",
    "result",
)
GEOMETRIC = truncated_geometric(3, 1.0)
MECHANISM = Mechanism(count(3), GEOMETRIC)
LUMPED = MECHANISM.lumped(0)

FITTING: dict[str, Any] = {
    "allowed": np.ones((4, 4), dtype=bool),
    "balance": 0.1,
    "balances": [0.1, 0.1],
    "base": 3,
    "budget": 0.5,
    "candidate": np.ones(4) / 4,
    "capacities": [0.1, 0.2],
    "capacity": 0.5,
    "channel": GEOMETRIC,
    "conditional": np.ones((2, 4)) / 4,
    "counts": [5, 6, 7, 8],
    "delta": 0.1,
    "entropy_floors": [0.5],
    "group_sizes": [1],
    "distances": np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]]),
    "distortion": np.ones((4, 4)),
    "distribution": [0.5, 0.5],
    "entropy_floor": 1.0,
    "epsilon": 0.5,
    "epsilons": [0.1, 0.1],
    "first": GEOMETRIC,
    "flip": 0.2,
    "floored_capacity": 0.1,
    "function": sum,
    "given": 1,
    "joint": np.ones((4, 4)) / 16,
    "k": 3,
    "law": [0.5, 0.5],
    "leakage": 0.3,
    "lumped": LUMPED,
    "marginal": [0.5, 0.5],
    "mechanism": MECHANISM,
    "mechanisms": (MECHANISM, MECHANISM),
    "modulus": 3,
    "n": 3,
    "outputs": [0, 1, 2],
    "peak": 1.0,
    "prior": np.ones(4) / 4,
    "priors": [np.ones(4) / 4],
    "query": MECHANISM.query,
    "records": 0,
    "rows": np.ones((2, 4, 3)) / 3,
    "scale": 1.0,
    "scores": np.zeros((3, 3)),
    "second": [GEOMETRIC] * 4,
    "sensitivity": 1.0,
    "size": 2,
    "space": MECHANISM.space,
    "subject": GEOMETRIC,
    "table": list(range(8)),
    "target": 0.3,
    "tol": 1e-6,
    "variance": 1.0,
    "vector": [1.0, 2.0],
    "weights": LUMPED.uniform(),
}
WRONG = (
    "x",
    None,
    float("nan"),
    float("inf"),
    -1,
    1.5,
    10**400,
    [],
    {},
    {"a": 1},
    {1, 2},
    [[1, 2], [3]],
    [None, "x"],
    [0.5, 0.6],
    object(),
    np.ones((2, 3)),
    np.array([[np.nan, 1], [1, 0]]),
    np.array(["a"]),
    True,
    1j,
    GEOMETRIC,
    MECHANISM,
    LUMPED,
    Prior.uniform(5),
    RecordSpace.binary(2),
    lambda x: 1 / 0,
    Exception,
)


# These still take an argument as it comes. A function that checks its arguments is not added here.
UNCHECKED = {
    "iterative.adaptive_penalty",
    "iterative.alternating_design",
    "iterative.exponentiated_gradient",
    "iterative.release_interior_point",
    "problems.balance_of",
}


def functions() -> list[Any]:
    found = []
    for package in PACKAGES:
        module = importlib.import_module(f"cvxleak.{package}")
        for name in module.__all__:
            function = getattr(module, name)
            if f"{package}.{name}" in UNCHECKED or inspect.isclass(function):
                continue
            if callable(function):
                found.append(pytest.param(function, id=f"{package}.{name}"))
    return found


def fitting(names: list[str]) -> list[Any]:
    arguments = [FITTING.get(name) for name in names]
    if {"mechanism", "query", "space", "mechanisms"} & set(names) and "prior" in names:
        arguments[names.index("prior")] = np.ones(8) / 8
    return arguments


def survives(call: Callable[[], Any]) -> str | None:
    """Return what came out that should not have."""
    try:
        call()
    except CvxleakError:
        return None
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    return None


@pytest.mark.parametrize("function", functions())
def test_only_errors_of_ours(function: Callable[..., Any]):
    parameters = inspect.signature(function).parameters.values()
    needed = [p for p in parameters if p.default is p.empty]
    names = [p.name for p in needed if p.kind <= 1]
    named = [p.name for p in needed if p.kind is p.KEYWORD_ONLY]
    options = dict(zip(named, fitting(named), strict=True))
    complaints = []
    for place, name in enumerate(names):
        for wrong in WRONG:
            arguments = fitting(names)
            arguments[place] = wrong
            what = survives(lambda arguments=arguments: function(*arguments, **options))
            if what is not None:
                complaints.append(f"{name} = {wrong!r:.60}: {what}")
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("rng", ["x", -1, 1.5, True, [], object()])
def test_a_seed_that_is_none(rng: object):
    for call in (
        lambda: GEOMETRIC.sample(0, rng=rng),  # pyright: ignore[reportArgumentType]
        lambda: iterative.joint_blahut_arimoto(LUMPED, 1.0, rng=rng),  # pyright: ignore[reportArgumentType]
        lambda: iterative.alternating_leakage(MECHANISM, 1.0, start="random", rng=rng),  # pyright: ignore[reportArgumentType]
    ):
        with pytest.raises(cvxleak.ValidationError, match=r"^rng: "):
            call()
