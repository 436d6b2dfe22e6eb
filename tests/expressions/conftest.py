"""What the tests of the expressions share: solvers, priors and channels with all kinds of zeros."""

import cvxpy as cp
import numpy as np
import pytest

SOLVERS = [name for name in ("CLARABEL", "ECOS", "SCS") if name in cp.installed_solvers()]


@pytest.fixture(params=SOLVERS)
def solver(request):
    return request.param


def _cases():
    rng = np.random.default_rng(7)
    full = rng.dirichlet(np.ones(4), size=3)
    zeros = np.array([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.25, 0.75, 0.0]])
    p = rng.dirichlet(np.ones(3))
    return {
        "positive": (p, full),
        "zero cells": (p, zeros),
        "zero inputs": (np.array([0.3, 0.0, 0.7]), full),
        "zero everything": (np.array([0.5, 0.5, 0.0]), zeros),
        "point mass": (np.array([0.0, 1.0, 0.0]), np.eye(3)),
        "identity": (p, np.eye(3)),
        "constant": (p, np.tile([0.2, 0.8], (3, 1))),
        "one output": (p, np.ones((3, 1))),
        "one input": (np.array([1.0]), np.array([[0.1, 0.9]])),
    }


@pytest.fixture(params=_cases().items(), ids=lambda case: case[0])
def case(request):
    """A prior and a channel."""
    return request.param[1]


def held(values, kind):
    """The numbers as CVXPY may hold them."""
    values = np.asarray(values, dtype=float)
    if kind == "array":
        return values
    if kind == "constant":
        return cp.Constant(values)
    leaf = {"variable": cp.Variable, "parameter": cp.Parameter}[kind](values.shape)
    leaf.value = values
    return leaf


FIXED = ("array", "constant", "parameter")
COMBINATIONS = (
    [(p, q) for p in FIXED for q in FIXED]
    + [(p, "variable") for p in FIXED]
    + [("variable", q) for q in FIXED]
)


@pytest.fixture(params=COMBINATIONS, ids="-".join)
def kinds(request):
    """How prior and channel are held: as data, parameter or variable."""
    return request.param


@pytest.fixture
def hold():
    return held
