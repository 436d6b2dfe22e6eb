"""`ReleaseProblem`: what to answer when others may share the answers they got."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from cvxleak._validation import Array, generator, real_number, whole_number
from cvxleak._value import Value
from cvxleak.errors import InfeasibleError, ValidationError
from cvxleak.iterative._release_terms import ReleaseTerms
from cvxleak.model import Distortion
from cvxleak.problems.check import Check
from cvxleak.problems.release.candidates import candidate_kernel, check_kernel, information
from cvxleak.problems.release.coalitions import Coalition
from cvxleak.problems.release.joint import ReleaseJoint
from cvxleak.result import Bound, unit_scale

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["ReleaseProblem", "Utility"]

Utility = Literal["distortion", "information"]

ROUNDING = 1e-14
"""A budget this near to I(S;X), in nats, is read as I(S;X): a float can tell no more."""


@dataclass(frozen=True, eq=False)
class ReleaseProblem(Value):
    """The best answer to a request within budgets for all who may see it.

    Over the kernels k(r̂|z,x),

        minimize  E d(R,R̂) + sum_c price_c I(R̂,S_c;X)    (utility "distortion")
        maximize  I(R̂;R) - sum_c price_c I(R̂,S_c;X)      (utility "information")
        subject to  I(R̂,S_c;X) <= budget_c for each coalition c,

    where S_c is what coalition c has seen of the earlier outputs Z: nothing, for the party that
    asks; all of it, if everybody shares (SEQUENTIAL, problems (1), (2) and (4), section VIII).

    Made by `release_problem` (budgets) and `release_lagrangian` (prices).

    Attributes
    ----------
    joint : ReleaseJoint
        The law of R, Z and X.
    utility : {"distortion", "information"}
    distortion : Distortion or None
        d(r, r̂), for the first utility.
    outputs : tuple of hashable
        The labels of R̂.
    coalitions : tuple of Coalition
        Budgets in nats, prices per nat.
    unit : str
        In which budgets were given; that of shadow prices and of an information.

    Examples
    --------
    >>> from cvxleak.problems.release import release_problem
    >>> joint = [[[0.024, 0.228], [0.063, 0.203]], [[0.203, 0.013], [0.228, 0.038]]]
    >>> problem = release_problem(joint, 0.05, 0.1)
    >>> bound = problem.solve()
    >>> bound.witness.shape, round(bound.shadow_prices["epsilon"], 3)
    ((2, 2, 2), -0.92)
    """

    joint: ReleaseJoint
    utility: Utility
    distortion: Distortion | None
    outputs: tuple[Hashable, ...]
    coalitions: tuple[Coalition, ...]
    unit: str = "nats"

    def solve(
        self,
        *,
        tol: float = 1e-7,
        time_limit: float | None = None,
        start: ArrayLike | None = None,
        restarts: int = 5,
        rng: int | np.random.Generator | None = 0,
    ) -> Bound:
        """Return the bracket of the optimal value and the kernel that attains its one end.

        Parameters
        ----------
        tol : float
            The gap to reach; for a distortion, as a share of the range of d.
        time_limit : float, optional
            Seconds after which the search ends with what it has. What it has is proved after that,
            which takes some ten seconds for the largest problems.
        start : array_like, shape (Z_1, ..., Z_j, X, R̂), optional
            For a distortion, a kernel to start near: the witness of a similar problem.
        restarts : int
            For an information, from how many random points the local search starts.
        rng : int, numpy.random.Generator or None
            For an information, where they come from.

        Returns
        -------
        Bound
            `witness` is the kernel, an array of shape (Z_1, ..., Z_j, X, R̂), exactly feasible as
            the certificate reads it: each row divided by its sum and, where one coalition has no
            room, p(r̂|s) - p(r̂|s,x), which is zero but for rounding, added to k(r̂|z,x); where
            several have none, it depends on nothing but what all of them know. Rows of
            probability zero have the law of R̂ given z.

            Distortion: `upper` is attained, in units of d; `lower` is proved by multipliers. Among
            kernels of nearly equal distortion it is one that leaks little: a coalition with room to
            spare has a price of a few `tol`, so a request that comes again gets the old answer.

            Information: `lower` is attained, the best of the local searches, with the number of
            outputs in ``stats["outputs"]``. `upper` is of any number of outputs, as
            ``stats["upper_of"]`` says: with fewer than `release_problem` takes by itself, the two
            need not meet. Only CERTIFIED, when they do, means an optimum.

            `shadow_prices` are the derivatives of the optimal value in the budgets, by their names
            (``"epsilon"``, ``"delta"``): -mu_1 and -mu_2 of the paper for a distortion; infinite
            where there is no room. `stats` has ``multipliers``, mu by name, and ``iterations``.

        Raises
        ------
        InfeasibleError
            A budget below what the coalition knows already; the message has that number.
        ValidationError
            An option out of range, or more numbers than a proof goes through.

        Notes
        -----
        A budget within 1e-14 nats of I(S;X) is read as equal to it: then R̂ and X are independent
        given S.

        Examples
        --------
        >>> from cvxleak import verify
        >>> from cvxleak.problems.release import release_problem
        >>> joint = [[[0.024, 0.228], [0.063, 0.203]], [[0.203, 0.013], [0.228, 0.038]]]
        >>> bound = release_problem(joint, 0.05, 0.1).solve()
        >>> bound.gap < 1e-7, verify(bound.certificate).passed
        (True, True)
        """
        from cvxleak.problems.release.distortion import solve_distortion
        from cvxleak.problems.release.information import solve_information

        real_number(tol, "tol", 0.0, open_low=True)
        if time_limit is not None:
            real_number(time_limit, "time_limit", 0.0)
        if self.utility == "distortion":
            if start is not None:
                start = candidate_kernel(self, start, "start")
            return solve_distortion(self, tol, time_limit, start)
        if start is not None:
            raise ValidationError("start: found one; utility 'information' has starts of its own")
        whole_number(restarts, "restarts", 0)
        return solve_information(self, tol, time_limit, restarts, generator(rng))

    def check(self, candidate: Any, *, bound: Bound | None = None, tol: float = 1e-7) -> Check:
        """Judge a kernel that was found elsewhere against the certified bracket.

        Parameters
        ----------
        candidate : array_like, shape (Z_1, ..., Z_j, X, R̂) or (Z, X, R̂)
            p(r̂|z,x). The rows need not be distributions: the result says how far they are from it.
            The value is that of their positive parts, divided by their sums.
        bound : Bound, optional
            An earlier result of `solve`; computed with `tol` if left out.

        Raises
        ------
        ValidationError
            Another shape, numbers that are not finite, or a row without a positive entry.

        Examples
        --------
        >>> from cvxleak.problems.release import release_problem
        >>> statement = release_problem([[[0.45, 0.05]], [[0.05, 0.45]]], epsilon=0.1)
        >>> print(statement.check([[[0.75, 0.25], [0.25, 0.75]]]))
        infeasible; value 0.3 distortion
        I(R̂;X) <= epsilon: violated by 0.0308
        proved optimum: 0.324... to 0.324... distortion; the candidate falls short by 0 to 0
        """
        if bound is None:
            bound = self.solve(tol=tol)
        return check_kernel(self, candidate, bound)

    def to_cvxpy(self) -> cp.Problem:
        """Return the distortion problem in plain CVXPY, with the kernel as variable ``kernel``.

        The variable has one row for each (z, x) of positive probability, in order, and one column
        for each output; `to_kernel` makes a candidate for `check` of it.

        Raises
        ------
        ValidationError
            Utility "information": that problem is not convex.
        InfeasibleError
            As `solve`.

        Examples
        --------
        >>> from cvxleak.problems.release import release_problem
        >>> statement = release_problem([[[0.45, 0.05]], [[0.05, 0.45]]], epsilon=0.1)
        >>> program = statement.to_cvxpy()
        >>> round(float(program.solve(solver="CLARABEL")), 4)
        0.3242
        """
        from cvxleak.problems.release.program import conic_program

        if self.utility == "information":
            raise ValidationError("utility: found 'information', which is not a convex problem")
        return conic_program(self)

    def to_kernel(self, rows: ArrayLike) -> Array:
        """Return the rows of positive probability as a kernel of shape (Z_1, ..., Z_j, X, R̂).

        Examples
        --------
        >>> from cvxleak.problems.release import release_problem
        >>> problem = release_problem([[0.5, 0.0], [0.0, 0.5]], 0.1)
        >>> problem.to_kernel([[0.9, 0.1], [0.2, 0.8]])
        array([[0.9, 0.1],
               [0.2, 0.8]])
        """
        terms = self.terms()
        values = np.asarray(rows, dtype=float)
        if values.shape != (len(terms.weights), len(self.outputs)):
            raise ValidationError(
                f"rows: found shape {values.shape}; "
                f"{(len(terms.weights), len(self.outputs))} is needed"
            )
        return self.shaped(terms.kernel(values))

    def shaped(self, kernel: Array) -> Array:
        """Return a kernel of shape (Z, X, R̂) with one axis for each earlier output."""
        _, sizes, datasets = self.joint.shape
        return kernel.reshape((*sizes, datasets, kernel.shape[-1]))

    def terms(self) -> ReleaseTerms:
        """Return the rows of positive probability, and the coalitions on them."""
        return ReleaseTerms(
            self.joint.flat.sum(axis=0), [coalition.array for coalition in self.coalitions]
        )

    def rooms(self) -> Array:
        """Return what a release may add to what each coalition knows: budget - I(S;X), in nats.

        Exactly 0 where that is so up to rounding.

        Raises
        ------
        InfeasibleError
            Less than 0.
        ValidationError
            A budget that is positive, but not so that a float can tell.
        """
        law = self.joint.flat.sum(axis=0)
        law = law / law.sum()
        rooms = []
        for coalition in self.coalitions:
            known = information(law, coalition.array)
            room = coalition.budget - known
            if known == 0 and 0 < room < ROUNDING:
                raise ValidationError(
                    f"{coalition.name}: found {coalition.budget!r} nats; it must be 0 or at least "
                    f"{ROUNDING}"
                )
            if room < -ROUNDING:
                scale = unit_scale(self.unit)
                raise InfeasibleError(
                    f"{coalition.name}: found {coalition.budget / scale!r}; the earlier outputs "
                    f"that this coalition has seen tell {known / scale!r} {self.unit} about the "
                    "dataset already, so it must be at least that"
                )
            rooms.append(0.0 if abs(room) <= ROUNDING else room)
        return np.array(rooms)
