"""The registry: every problem by the name that specs and commands give it, loaded when needed."""

from __future__ import annotations

import importlib

from cvxleak.core.validation import one_of
from cvxleak.problem.problem import Problem

__all__ = ["PROBLEMS", "problem_class"]

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
}
"""Name of a problem -> where its class is."""


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
