"""The registry: every problem by the name that specs and commands give it, loaded when needed."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from inspect import Parameter

from cvxleak.core.validation import one_of
from cvxleak.problem.problem import Problem

__all__ = ["PROBLEMS", "PYTHON_ONLY", "numbers", "parameters", "problem_class"]

PROBLEMS = {
    "capacity": "cvxleak.capacities.Capacity",
    "renyi-capacity": "cvxleak.capacities.RenyiCapacity",
    "failure-probability": "cvxleak.envelope.FailureProbability",
    "pml-envelope": "cvxleak.envelope.PMLEnvelope",
    "pml-mechanism": "cvxleak.envelope.PMLMechanism",
    "record-leakage": "cvxleak.audit.RecordLeakage",
    "product-leakage": "cvxleak.audit.ProductLeakage",
    "min-leakage": "cvxleak.design.MinLeakage",
    "min-distortion": "cvxleak.design.MinDistortion",
    "min-local-dp": "cvxleak.local_dp.MinLocalDP",
    "min-distortion-local-dp": "cvxleak.local_dp.MinDistortionLocalDP",
    "min-information": "cvxleak.local_dp.MinInformation",
    "design-for-prior": "cvxleak.design.DesignForPrior",
    "release-distortion": "cvxleak.release.ReleaseDistortion",
    "release-information": "cvxleak.release.ReleaseInformation",
}
"""Name of a problem -> where its class is."""

PYTHON_ONLY = {
    "adversaries": "knowledge of adversaries is stated by objects of `cvxleak.model.knowledge`",
    "constraints": "user-defined constraints are functions of a CVXPY variable",
}
"""Arguments that no spec can hold, and why."""


def problem_class(name: str) -> type[Problem]:
    """Return the class of a problem.

    Raises
    ------
    ValidationError
        A name that is not in the registry; the message lists those that are.

    Examples
    --------
    >>> from cvxleak.problem import problem_class
    >>> problem_class("capacity")([[1.0, 0.0], [0.0, 1.0]]).name
    'capacity'
    """
    module, _, symbol = PROBLEMS[one_of(name, PROBLEMS, "kind")].rpartition(".")
    return getattr(importlib.import_module(module), symbol)


def parameters(kind: type[Problem]) -> Mapping[str, Parameter]:
    """Return the arguments of a problem that a spec can hold: the keys of its [problem].

    Examples
    --------
    >>> from cvxleak.problem.registry import parameters, problem_class
    >>> list(parameters(problem_class("record-leakage")))
    ['mechanism', 'entropy_floor', 'records', 'size', 'gain', 'form']
    """
    found = inspect.signature(kind.constructor()).parameters
    # `unit` is that of the other data: a key of every [problem].
    return {name: found[name] for name in found if name not in (*PYTHON_ONLY, "unit")}


def numbers(kind: type[Problem]) -> list[str]:
    """Return the arguments that may be one number: what a sweep can go over.

    Examples
    --------
    >>> from cvxleak.problem.registry import numbers, problem_class
    >>> numbers(problem_class("record-leakage"))
    ['entropy_floor', 'records', 'size']
    """
    found = parameters(kind)
    types = {name: {*str(found[name].annotation).split(" | ")} for name in found}
    return [name for name in found if types[name] & {"float", "int"}]
