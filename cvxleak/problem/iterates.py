"""Verify an iterative solver: its iterates, its claimed values and its last iterate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import instance, real_number, whole_number
from cvxleak.core.value import Value
from cvxleak.core.wording import counted
from cvxleak.problem.bound import Bound, same
from cvxleak.problem.candidates import plain
from cvxleak.problem.check import Check, feasibility_tolerance
from cvxleak.problem.gap import Gap
from cvxleak.problem.problem import Problem

__all__ = ["IterateReport", "Iterates", "verify_iterates"]

CLAIM = 1e-6
"""Part of the scale by which a claimed value may differ from that of its point: solvers and float32
report no more digits."""

STANDING = 1e-3
"""A last step that gains less than this part of what is missing counts as standing still."""


class Iterates:
    """A callback for a user's own solver loop: collects its iterates and verifies them afterwards.

    Parameters
    ----------
    problem : Problem
    every : int
        Keep only every so many iterates, and the last one.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy.special import rel_entr
    >>> from cvxleak.capacities import Capacity
    >>> from cvxleak.problem import Iterates
    >>> Q = np.array([[0.8, 0.2], [0.3, 0.7]])
    >>> watch, p = Iterates(Capacity(Q)), np.array([0.9, 0.1])
    >>> for _ in range(60):
    ...     divergences = rel_entr(Q, p @ Q).sum(axis=1)
    ...     watch(p, p @ divergences)
    ...     p = p * np.exp(divergences)
    ...     p = p / p.sum()
    >>> report = watch.verify()
    >>> report.optimal, report.first_setback, report.first_wrong_claim
    (True, None, None)
    """

    def __init__(self, problem: Problem, *, every: int = 1) -> None:
        self.problem = instance(problem, Problem, "problem")
        self.every = whole_number(every, "every", 1)
        self.points: list[Any] = []
        self.claimed: list[float | None] = []
        self._seen = 0

    def __call__(self, candidate: Any, value: Any = None) -> None:
        """Keep a copy of a point, and the value that the loop has for it, if it has one.

        Raises
        ------
        ValidationError
            A value that is no number.
        """
        claim = None if value is None else _claim(plain(value), "value")
        if self.points and (self._seen - 1) % self.every:
            self.points.pop()  # the last one is kept only as long as it is the last
            self.claimed.pop()
        self._seen += 1
        self.points.append(plain(candidate))
        self.claimed.append(claim)

    def verify(self, *, bound: Bound | None = None, **options: Any) -> IterateReport:
        """Return the report of `verify_iterates` on the iterates."""
        return verify_iterates(self.problem, self.points, self.claimed, bound=bound, **options)


@dataclass(frozen=True, eq=False)
class IterateReport(Value):
    """A report on the iterates of an iterative solver.

    Attributes
    ----------
    checks : tuple of Check
        For each iterate: value, violations, and distance to the optimum (`Check.shortfall`).
    claimed : tuple of (float or None)
        The values that the solver claims.
    repaired : Bound
        A feasible point near the last one, with a certificate of its value (`Problem.repair`).
    convex : bool
        Whether the problem is convex in its candidates, so that it has no local optima.
    scale : float
        The unit of an absolute gap (see `Gap`).
    tolerance : float
        The relative gap at which a point counts as optimal: that of the problem.
    accuracy : float
        Accuracy of a value, relative to itself or to the scale: a smaller step back is ignored.

    Examples
    --------
    >>> from cvxleak.capacities import Capacity
    >>> from cvxleak.problem import verify_iterates
    >>> channel = [[0.9, 0.1], [0.1, 0.9]]
    >>> report = verify_iterates(Capacity(channel), [[0.4, 0.6], [0.3, 0.7]], [0.3528, 0.3052])
    >>> report.last.feasible, report.first_setback, report.first_wrong_claim, report.optimal
    (True, 1, 0, False)
    """

    checks: tuple[Check, ...]
    claimed: tuple[float | None, ...]
    repaired: Bound
    convex: bool
    scale: float
    tolerance: float
    accuracy: float

    @property
    def last(self) -> Check:
        """The last point's check."""
        return self.checks[-1]

    @property
    def values(self) -> tuple[float, ...]:
        """The value of each point, in the problem's unit."""
        return tuple(check.value for check in self.checks)

    @property
    def better(self) -> Any:
        """The witness of the bound: a proved point, at least as good as any other known one."""
        return self.last.bound.witness

    @property
    def first_setback(self) -> int | None:
        """The first iterate that is worse than the one before, by more than rounding, or None.

        A monotone method has none. Infeasible iterates count, too.
        """
        values = np.array(self.values) * (1 if self.last.maximize else -1)
        sizes = np.abs(values[np.isfinite(values)])
        rounding = self.accuracy * max(self.scale, sizes.max(initial=0.0))
        with np.errstate(invalid="ignore"):  # from infinity to infinity is no step
            back = np.flatnonzero(np.diff(values) < -rounding)
        return int(back[0]) + 1 if back.size else None

    @property
    def first_wrong_claim(self) -> int | None:
        """The first iterate whose value is not the claimed one, or None."""
        for place, (claim, value) in enumerate(zip(self.claimed, self.values, strict=True)):
            if claim is not None and not abs(claim - value) <= CLAIM * max(self.scale, abs(value)):
                return place
        return None

    @property
    def optimal(self) -> bool:
        """Whether the last iterate is feasible and provably optimal within the tolerance."""
        most, bound = self.last.shortfall[1], self.last.bound
        allowed = Gap(self.tolerance, self.scale).allowed(bound.upper) + self._rounding
        return self.last.feasible and not self._beyond and max(most, 0.0) <= allowed

    @property
    def _rounding(self) -> float:
        """What the last point's numbers may be off by: more in float32."""
        value = self.last.value
        size = abs(value) if np.isfinite(value) else 0.0
        return max(self.accuracy, self.last.tolerance) * max(self.scale, size)

    @property
    def _beyond(self) -> bool:
        """Whether the last point is better than the proved optimum by more than rounding."""
        return self.last.shortfall[1] < -max(CLAIM * self.scale, CLAIM * abs(self.last.value))

    @property
    def verdict(self) -> str:
        """A one-sentence verdict on the last iterate."""
        check, bound = self.last, self.last.bound
        least, most = check.shortfall
        if not check.feasible:
            missed, by = max(check.violations.items(), key=lambda pair: pair[1])
            gained = ", and so better than anything feasible" if most < -self._rounding else ""
            attained = self.repaired.lower if check.maximize else self.repaired.upper
            near = f"the feasible point in `repaired` has the value {attained:.7g} {bound.unit}"
            if same(self.repaired.witness, self.better):
                near = "no feasible point near it was proved, so `repaired` has that of `better`"
            return f"not feasible ({missed}: violated by {by:.3g}){gained}; {near}"
        if self._beyond:
            return (
                f"better than the proved optimum by {-most:.3g} {bound.unit}, though feasible: "
                "`bound` is that of another problem, or the point meets constraints by rounding"
            )
        if self.optimal:
            return f"optimal: at most {max(most, 0.0):.2g} {bound.unit} short of the proved optimum"
        if not np.isfinite(check.value):
            return "its value is infinite, and the optimum is not; a better point is in `better`"
        reference = abs(bound.lower if check.maximize else bound.upper) or self.scale
        if least <= self._rounding:
            return (
                f"as good as any point known, at most {_share(most, reference)} short: the bounds "
                "cannot decide it; a smaller `tol` may"
            )
        return (
            f"stopped {_share(least, reference)} short: {self._why}; a better point is in `better`"
        )

    @property
    def _why(self) -> str:
        least = self.last.shortfall[0]
        if len(self.values) == 1:
            return "a single point does not show why"
        if abs(self.values[-1] - self.values[-2]) > STANDING * least:
            return "it was still moving"
        if self.convex:
            return (
                "it no longer moves, and this problem is convex and has no local optima, so a step "
                "of the method is wrong or far too small, or its start excludes the optimum"
            )
        return "it no longer moves, at a local optimum or a point where its steps vanish"

    def __repr__(self) -> str:
        return (
            f"IterateReport({len(self.checks)} points, the last {str(self.last).splitlines()[0]})"
        )

    def _repr_html_(self) -> str:
        from cvxleak.core.notebook import html_table

        head = ("point", "value", "claimed", "feasible", "short by at least", "at most")
        claims = ("" if claim is None else claim for claim in self.claimed)
        rows = (
            (place, check.value, claim, check.feasible, *check.shortfall)
            for place, (check, claim) in enumerate(zip(self.checks, claims, strict=True))
        )
        return html_table(self.verdict, head, rows)

    def __str__(self) -> str:
        lines = [self.verdict, *str(self.last).splitlines()[1:]]
        setback, wrong = self.first_setback, self.first_wrong_claim
        if setback is not None:
            before, after = self.values[setback - 1 : setback + 1]
            lines.append(
                f"not monotone: point {setback} has the value {after:.9g}, the one before "
                f"{before:.9g}"
            )
        elif len(self.values) > 1:
            lines.append(f"monotone over all {len(self.values)} points")
        if wrong is not None:
            lines.append(
                f"wrong value: {self.claimed[wrong]:.9g} is claimed for point {wrong}, which has "
                f"{self.values[wrong]:.9g}"
            )
        return "\n".join(lines)

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a row for each point (needs pandas)."""
        import pandas as pd

        return pd.DataFrame(
            {
                "value": check.value,
                "claimed": claim,
                "feasible": check.feasible,
                "violation": max(check.violations.values(), default=0.0),
                "shortfall_least": check.shortfall[0],
                "shortfall_most": check.shortfall[1],
            }
            for check, claim in zip(self.checks, self.claimed, strict=True)
        )


def verify_iterates(
    problem: Problem,
    iterates: Any,
    claimed: Any = None,
    *,
    bound: Bound | None = None,
    **options: Any,
) -> IterateReport:
    """Judge the result of an iterative solver: one point, or all its iterates.

    Parameters
    ----------
    problem : Problem
        The problem that the solver is meant to solve.
    iterates : object or sequence
        A candidate, as `Problem.check` takes it, or several in their order; or an `Iterates`.
        NumPy, PyTorch and JAX arrays are accepted as they are. In single precision (float32) a
        constraint may be violated by 1e-6, in double precision by 1e-9.
    claimed : float or sequence of float, optional
        The values that the solver claims for these points.
    bound : Bound, optional
        An earlier result of `solve`; computed with `options` if left out.

    Returns
    -------
    IterateReport
        Value and violations of each point, its distance to the proved bounds, whether the values
        are monotone and as claimed, a feasible point near the last one with a certificate, and a
        verdict.

    Raises
    ------
    ValidationError
        No points, one of another shape, another number of claims than points, claims that are no
        numbers, or a bound of another problem.

    Examples
    --------
    >>> from cvxleak.local_dp import MinLocalDP
    >>> from cvxleak.mechanisms import randomized_response
    >>> from cvxleak.problem import verify_iterates
    >>> problem = MinLocalDP([[0.6, 0.3, 0.1], [0.5, 0.3, 0.2]], 0.3)
    >>> path = [randomized_response(3, epsilon) for epsilon in (2.0, 1.7, 1.6)]
    >>> print(verify_iterates(problem, path))
    stopped 3.87 % short: it was still moving; a better point is in `better`
    proved optimum: 1.540445 to 1.540445 nats; the candidate falls short by 0.05955496 to 0.05955496
    monotone over all 3 points
    """
    instance(problem, Problem, "problem")
    if isinstance(iterates, Iterates):
        iterates, claimed = iterates.points, iterates.claimed
    points, measured = _measured(problem, iterates)
    claims = _claims(claimed, len(points))
    found = problem.solve(**options) if bound is None else problem.own_bound(bound)
    repaired = problem.repair(points[-1], bound=found)
    found = found.to(problem._information_unit)
    return IterateReport(
        tuple(
            Check(value, missed, found, problem.maximize, feasibility_tolerance(point))
            for point, (value, missed) in zip(points, measured, strict=True)
        ),
        claims,
        repaired,
        problem.convex,
        problem.scale,
        problem.tolerance,
        problem.accuracy,
    )


def _measured(
    problem: Problem, iterates: Any
) -> tuple[list[Any], list[tuple[float, dict[str, float]]]]:
    """Return the points with value and violations: one if it can be read as one, or all."""
    given = plain(iterates)
    try:
        return [given], [problem._measure(given)]
    except (ValidationError, TypeError, ValueError) as error:
        if isinstance(given, Mapping | str | Value) or not isinstance(given, Iterable):
            raise
        if isinstance(given, np.ndarray) and not given.ndim:
            raise
        points = list(given)
        if not points:
            raise ValidationError("iterates: found none; at least one point is needed") from error
        if all(np.isscalar(number) for number in points):  # one point, and a wrong one
            raise
        alone = error
    found = []
    for place, point in enumerate(points):
        try:
            found.append(problem._measure(point))
        except ValidationError as error:
            detail = str(error).removeprefix("candidate: ")
            message = f"iterates[{place}]: {detail}"
            if place == 0:  # perhaps a single point was meant
                message += f"; as a single point: {str(alone).removeprefix('candidate: ')}"
            raise ValidationError(message) from error
    return points, found


def _claim(value: Any, name: str) -> float:
    """Return a claimed value, which may be infinite or NaN, as a float."""
    found = value.item() if getattr(value, "size", 0) == 1 else value
    if isinstance(found, float) and not np.isfinite(found):
        return found
    return real_number(found, name)


def _claims(claimed: Any, points: int) -> tuple[float | None, ...]:
    if claimed is None:
        return (None,) * points
    given: Any = plain(claimed)
    if isinstance(given, Value) or (not isinstance(given, list | tuple) and np.ndim(given) == 0):
        given = [given]
    claims = [
        None if claim is None else _claim(claim, f"claimed[{place}]")
        for place, claim in enumerate(given)
    ]
    if len(claims) != points:
        raise ValidationError(
            f"claimed: found {counted(len(claims), 'value')}; there are {counted(points, 'point')}"
        )
    return tuple(claims)


def _share(short: float, reference: float) -> str:
    share = short / reference * 100
    return f"{share:.3g} %" if share < 1000 else f"{share:.0f} %"
