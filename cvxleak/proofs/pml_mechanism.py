"""Certificate kind ``pml-mechanism``: the largest linear utility under epsilon-PML.

problem: {"prior": p, "utility": u, "epsilon": e}; witness: {"matrix": Q}; proof: {"multipliers":
z}. Distributions are meant as written (`cvxleak.core.numbers`); inputs of probability zero do not
count.

The claim is about max sum_xy p(x) Q(y|x) u(x, y) over channels with Q(y|x) <= e^eps P(y) for all x
and y, P the distribution of the output. Lower bound: the value at the witness, which meets the
constraint. Upper bound: for any z >= 0, linear programming duality gives

    sum_x max_y [ p(x) u(x, y) - z_xy + e^eps p(x) sum_x' z_x'y ].

Everything is integer arithmetic; P(y) and e^eps are rounded so that the claim gets weaker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from flint import fmpq

from cvxleak.core.errors import CertificateError
from cvxleak.kernel.numbers import lower, upper
from cvxleak.proofs import reading
from cvxleak.proofs.envelope import ExactLaws
from cvxleak.proofs.exact import exp_above, exp_below, normalized_rows, rational

__all__ = ["about", "prove"]

Parts = Mapping[str, Any]


def prove(problem: Parts, witness: Parts, proof: Parts) -> tuple[float, float]:
    """Return proved bounds on the largest utility, in the utility's unit."""
    reading.parts(problem, {"prior", "utility", "epsilon"}, "the problem")
    reading.parts(witness, {"matrix"}, "the witness")
    reading.parts(proof, {"multipliers"}, "the proof")
    epsilon = reading.number(problem["epsilon"], "epsilon")
    if not 0 <= epsilon <= 2000:
        raise CertificateError("epsilon must be in [0, 2000]")
    laws = ExactLaws({"prior": problem["prior"], "matrix": witness["matrix"]})
    utility = _rows(problem["utility"], laws.shape, "the utility")
    multipliers = _rows(proof["multipliers"], laws.shape, "the multipliers")
    if any(z < 0 for row in multipliers for z in row):
        raise CertificateError("the multipliers must not be negative")
    (prior,) = normalized_rows([reading.numbers(problem["prior"], "the prior")])
    _check_leakage(laws, exp_below(epsilon))
    value = fmpq(0)
    for place, x in enumerate(laws.support):
        gain = sum(
            (int(a) * u for a, u in zip(laws.entries[place], utility[x], strict=True)), fmpq(0)
        )
        value += prior[x] * gain / int(laws.sums[place])
    above = exp_above(epsilon)
    columns = [
        above * sum((multipliers[x][y] for x in laws.support), fmpq(0))
        for y in range(laws.shape[1])
    ]
    bound = sum(
        (
            max(
                prior[x] * (u + c) - z
                for u, c, z in zip(utility[x], columns, multipliers[x], strict=True)
            )
            for x in laws.support
        ),
        fmpq(0),
    )
    return lower(value), upper(bound)


def about(problem: Parts) -> str:
    """Say what a problem that `prove` has read is about."""
    rows = problem["utility"]
    return (
        f"the largest utility of {len(rows)} inputs and {len(rows[0])} outputs "
        f"under {reading.number(problem['epsilon'], 'epsilon'):.7g}-PML"
    )


def _check_leakage(laws: ExactLaws, level: fmpq) -> None:
    """Check that Q(y|x) <= level P(y) everywhere."""
    if level >= 1 and (laws.entries == laws.entries[0]).all():
        return  # equal rows leak nothing, exactly
    t, denominator = int(level.p), int(level.q)
    left = (laws.entries << laws.scale) * denominator
    right = (t * laws.low)[None, :] * laws.sums[:, None]
    if not np.all(left <= right):
        raise CertificateError("the witness leaks more than epsilon")


def _rows(values: Any, shape: tuple[int, ...], name: str) -> list[list[fmpq]]:
    if not isinstance(values, list) or len(values) != shape[0]:
        raise CertificateError(f"{name}: expected {shape[0]} rows")
    return [[rational(v) for v in reading.numbers(row, name, shape[1])] for row in values]
