"""The distortion problem of a release: an interior-point method, and a proof of both ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cvxleak._clock import Clock
from cvxleak._validation import Array
from cvxleak.certificates import Certificate
from cvxleak.certificates.packing import pack, pack_written
from cvxleak.certificates.release import prove_distortion
from cvxleak.problems.release.inner import Inner, proved
from cvxleak.result import Bound, Stopped

if TYPE_CHECKING:
    from cvxleak.problems.release.statement import ReleaseProblem

__all__ = ["solve_distortion"]


def solve_distortion(
    problem: ReleaseProblem, tol: float, time_limit: float | None, start: Array | None = None
) -> Bound:
    """Return what `ReleaseProblem.solve` does, for utility "distortion"."""
    clock = Clock(time_limit)
    assert problem.distortion is not None
    distortion: Array = problem.distortion.matrix
    inner = Inner(problem, clock)
    # The gap is far below what a nudge may cost, or nudging would not be noticed.
    solved = inner.solve(distortion, 1e-4 * tol, nudge=0.1 * tol, start=start)
    stopped = Stopped.TIME_LIMIT if clock.late else Stopped.NO_PROGRESS
    scale = float(np.ptp(distortion)) or 1.0
    kernel = inner.cleaned(solved.point.kernel, distortion, 0.1 * tol * scale)
    statement = inner.statement() | {"distortion": pack_written(distortion)}
    proof: dict[str, Any] = {"coalitions": solved.proof}
    witness, ends = proved(inner, kernel, statement, proof, prove_distortion)
    certificate = Certificate(
        "release-distortion",
        statement,
        *ends,
        {"kernel": pack(witness)},
        proof,
        unit="distortion",
    )
    multipliers = inner.multipliers(solved)
    return Bound.proved(
        "release distortion",
        *ends,
        tol=0.0,
        absolute=tol * scale,
        unit="distortion",
        witness=problem.shaped(witness),
        certificate=certificate,
        shadow_prices={name: -mu for name, mu in multipliers.items()},
        stats={
            "seconds": clock.seconds,
            "iterations": solved.point.iterations,
            "stopped": Stopped.TOLERANCE if ends[1] - ends[0] <= tol * scale else stopped,
            "multipliers": multipliers,
        },
        resume=lambda tol, time_limit: problem.solve(tol=tol, time_limit=time_limit),
    )
