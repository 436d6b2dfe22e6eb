"""`ReleaseDistortion`: an interior-point method, and a proof of both bounds."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.clock import Clock
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array
from cvxleak.kernel.reading import pack
from cvxleak.model import Distortion
from cvxleak.problem import Bound, Gap, Stopped
from cvxleak.problem.bound import unit_scale
from cvxleak.problem.problem import Found, Once, Search, Toward
from cvxleak.proofs.release import prove_distortion
from cvxleak.release.coalitions import Coalition, Coalitions, named_coalitions
from cvxleak.release.joint import ReleaseJoint
from cvxleak.release.kernel_program import KernelProgram, pack_written, proved, toward_constant
from cvxleak.release.statement import ReleaseProblem, output_labels

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["ReleaseDistortion"]


METHOD = (
    "an interior-point method, because the least distortion within the budgets is a convex program"
)


@dataclass(frozen=True, eq=False)
class ReleaseDistortion(ReleaseProblem):
    """Minimize the expected distortion E d(R,R̂) of a release R̂ within its leakage budgets.

    Attributes
    ----------
    distortion : Distortion
        d(r, r̂).

    Notes
    -----
    `upper` is attained, in units of d; `lower` is proved by multipliers. Among kernels of nearly
    equal distortion the witness is one with little leakage: even a coalition whose budget is not
    binding has a small price, so a repeated request gets its earlier answer.

    Examples
    --------
    >>> from cvxleak import verify
    >>> from cvxleak.release import release_problem
    >>> joint = [[[0.024, 0.228], [0.063, 0.203]], [[0.203, 0.013], [0.228, 0.038]]]
    >>> problem = release_problem(joint, 0.05, 0.1)
    >>> bound = problem.solve()
    >>> bound.witness.shape, round(bound.shadow_prices["epsilon"], 3)
    ((2, 2, 2), -0.92)
    >>> bound.gap < 1e-7, verify(bound.certificate).passed
    (True, True)
    >>> statement = release_problem([[[0.45, 0.05]], [[0.05, 0.45]]], epsilon=0.1)
    >>> print(statement.check([[[0.75, 0.25], [0.25, 0.75]]]))
    infeasible; value 0.3 distortion
    I(R̂;X) <= epsilon: violated by 0.0308
    proved optimum: 0.324... to 0.324... distortion; the candidate falls short by 0 to 0
    """

    kind = "release-distortion"
    name = "release distortion"
    unit = "distortion"
    maximize = False
    tolerance = 1e-7
    convex = True

    distortion: Distortion

    @classmethod
    def within(
        cls,
        joint: ReleaseJoint | ArrayLike,
        epsilon: float = math.inf,
        delta: float = math.inf,
        distortion: Distortion | ArrayLike | None = None,
        coalitions: Coalitions | None = None,
        outputs: int | Iterable[Hashable] | None = None,
        unit: str = "nats",
    ) -> Self:
        """Return the problem within budgets; the arguments are those of `release_problem`.

        Examples
        --------
        >>> from cvxleak.release import ReleaseDistortion
        >>> problem = ReleaseDistortion.within([[0.5, 0.0], [0.0, 0.5]], 0.1)
        >>> print(problem.solve())
        release distortion: 0.2802054 to 0.2802054 distortion (CERTIFIED)
        """
        law = ReleaseJoint.of(joint)
        found = named_coalitions(law, epsilon, delta, coalitions, unit_scale(unit))
        return cls.of(law, found, distortion, outputs, unit)

    @classmethod
    def of(
        cls,
        joint: ReleaseJoint,
        coalitions: tuple[Coalition, ...],
        distortion: Distortion | ArrayLike | None,
        outputs: int | Iterable[Hashable] | None,
        unit: str,
    ) -> Self:
        """Return the problem of these coalitions; the distortion is Hamming if left out."""
        labels = None if outputs is None else output_labels(joint, outputs)
        if distortion is None:
            matrix = Distortion.hamming(joint.requests, labels)
        elif isinstance(distortion, Distortion):
            matrix = distortion.select(joint.requests, labels, "distortion")
        else:
            matrix = Distortion(distortion, None, labels)
            if matrix.shape[0] != len(joint.requests):
                raise ValidationError(
                    f"distortion: found shape {matrix.shape}; it must have "
                    f"{len(joint.requests)} rows, one per request"
                )
            matrix = Distortion(matrix.matrix, joint.requests, labels)
        return cls(joint, matrix.outputs, coalitions, unit, matrix)

    @property
    def scale(self) -> float:
        """The range of d."""
        return float(np.ptp(self.distortion.matrix)) or 1.0

    def _toward(self, candidate: ArrayLike, bound: Bound) -> Toward:
        return toward_constant(self, candidate)

    def value(self, rows: Array) -> float:
        """Return the expected distortion at a kernel's rows, and what the leakages cost."""
        return float((self.answers(rows).T * self.distortion.matrix).sum()) + self.paid(rows)

    def to_cvxpy(self) -> cp.Problem:
        """Return the problem in plain CVXPY, with the kernel as variable ``kernel``.

        The variable has one row for each (z, x) of positive probability, in order, and one column
        for each output; `to_kernel` makes a candidate for `check` of it.

        Raises
        ------
        InfeasibleError
            As `solve`.

        Examples
        --------
        >>> from cvxleak.release import release_problem
        >>> statement = release_problem([[[0.45, 0.05]], [[0.05, 0.45]]], epsilon=0.1)
        >>> program = statement.to_cvxpy()
        >>> round(float(program.solve(solver="CLARABEL")), 4)
        0.3242
        """
        from cvxleak.release.program import conic_program

        return conic_program(self, self.distortion.matrix)

    def _search(self) -> Search:
        return Once(self._run)

    def _run(self, gap: Gap, clock: Clock) -> tuple[Found, Stopped]:
        distortion, inner = self.distortion.matrix, KernelProgram(self, clock)
        tol = gap.absolute / self.scale
        # The gap is far below what a nudge may cost, or nudging would not be noticed.
        solved = inner.solve(distortion, 1e-4 * tol, nudge=0.1 * tol)
        stopped = Stopped.at_limit(clock) if clock.late else Stopped.NO_PROGRESS
        kernel = inner.cleaned(solved.point.kernel, distortion, 0.1 * gap.absolute)
        statement = inner.statement() | {"distortion": pack_written(distortion)}
        proof = {"coalitions": solved.proof}
        witness, ends = proved(inner, kernel, statement, proof, prove_distortion)
        multipliers = inner.multipliers(solved)
        found = Found(
            *ends,
            self.shaped(witness),
            (statement, {"kernel": pack(witness, "<f8")}, proof),
            {name: -mu for name, mu in multipliers.items()},
            {"method": METHOD, "iterations": solved.point.iterations, "multipliers": multipliers},
        )
        return found, stopped
