"""The best channel when the adversary's prior is known, or is one of finitely many."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.clock import Clock
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array
from cvxleak.design.fixed_prior_native import Solution, solve
from cvxleak.design.fixed_prior_statement import (
    INFORMATION,
    PRIVACY,
    Statement,
    amount,
    read_priors,
)
from cvxleak.design.private_utility import private_content, private_excess, solve_private
from cvxleak.measures import mutual_information
from cvxleak.model import Channel, Distortion, Prior
from cvxleak.model.distortion import named_distortion
from cvxleak.problem import Bound, Gap, Problem, Stopped
from cvxleak.problem.candidates import read_rows
from cvxleak.problem.problem import Found, Once, Toward, mixtures
from cvxleak.solvers.conic import as_options

if TYPE_CHECKING:
    import cvxpy as cp

    from cvxleak.design.user_constraints import Rule, UserRules

__all__ = ["DesignForPrior", "design_for_prior"]


@dataclass(frozen=True, eq=False)
class DesignForPrior(Problem):
    r"""The channel q(y|x) with the best trade-off of leakage and distortion, for known priors.

    With one prior p and measure "total" this is the rate-distortion function

        R(D) = min I(X;Y) subject to sum_{x,y} p(x) q(y|x) d(x,y) <= D,

    or, with minimize="distortion", its inverse. All forms are one convex (or linear) program:

    - minimize="leakage": least leakage for an expected distortion of at most `budget`;
    - minimize="distortion": least expected distortion for a leakage of at most `budget`;
    - `slope` s in place of a budget: least leakage + s times distortion.

    Parameters
    ----------
    prior : Prior, array_like of shape (n,), or a sequence of such
        The adversary's distribution of X. If several are given, the largest leakage counts.
    distortion : Distortion, str or array_like, shape (n, m)
        d(x, y) >= 0; ``"hamming"``, ``"absolute"`` or ``"squared"`` between the prior's labels.
    budget : float, optional
        The largest allowed distortion, or leakage in nats, of which log n is no restriction.
    slope : float, optional
        s >= 0 in nats per unit of d. Exactly one of `budget` and `slope` is given.
    measure : str
        The measure of leakage:

        - "total": I(X;Y),
        - "local_dp", "pml", "maximal_leakage": the least epsilon for which the channel is locally
          differentially private; max_y max_x log q(y|x)/p(y); log sum_y max_x q(y|x). The
          distortion is minimized subject to these; the last two take one prior.
    minimize : str, optional
        "leakage" or "distortion"; "leakage" if left out and the measure is an information.
    source : Prior, array_like, or a sequence of such, optional
        The true distribution of X, for the expected distortion. If several are given, the largest
        distortion counts. The adversary's distributions if left out.
    constraints : callable or sequence of callables
        User constraints: each function gets the CVXPY variable of the channel, shape (n, m), and
        returns CVXPY constraints.

    Raises
    ------
    ValidationError
        Arguments that do not match each other.

    Notes
    -----
    Shannon (1959) for "total" with one prior. If X is a dataset and the leakage about its records
    is of interest, use `MinLeakage` or `MinDistortion`, which accept known priors, too.

    The bound's `witness` is the `Channel`; it meets the budget in exact arithmetic, and `upper` is
    its value. `shadow_prices` has the derivative of the value with respect to the ``"budget"`` or
    the ``"slope"`` (-inf at the least possible distortion budget; absent for a leakage budget of 0
    with user constraints). `tol` is 1e-8 if left out, or 1e-5 with user constraints.

    One prior, total leakage: Newton's method on the m output probabilities and the slope
    (`cvxleak.design.rate_distortion`). Several priors: an interior-point method
    on the channel (`cvxleak.design.several_laws`). Privacy measures: a linear program,
    which a time limit does not interrupt. User constraints: CVXPY; they enter the lower bound as
    half-spaces with multipliers that the certificate checks exactly
    (`cvxleak.proofs.bounds.user_rows`). The solver's channel is moved until it meets them
    (`cvxleak.design.slater_repair`): inequalities with a margin for rounding, equations up to
    rounding. If that is not possible, the bound is not CERTIFIED, its certificate claims the lower
    bound only, and ``stats["user_violation"]`` gives the violation. CLARABEL and SCS get the
    remaining time; the programs for a first channel, and for half-spaces, come on top.

    If the budget is so large that an output independent of the input meets it, the result is
    exactly 0, with such a channel. A distortion budget below the least possible raises
    `InfeasibleError`, whose message gives that least distortion.

    Options of `solve` and `check`: `solver`, a CVXPY solver in place of these methods (CLARABEL if
    left out and there are user constraints), and `solver_options`, a mapping.

    A candidate for `check` is a `Channel` or an array of shape (n, m). Its value, and whether it
    meets the budget, are computed from the rows' positive parts divided by their sums; user
    constraints are evaluated at the candidate itself.

    Examples
    --------
    A fair bit under Hamming distortion, R(D) = log 2 - h(D):

    >>> from cvxleak.model import Distortion
    >>> from cvxleak.design.fixed_prior import DesignForPrior
    >>> bound = DesignForPrior([0.5, 0.5], Distortion.hamming([0, 1]), 0.1).solve()
    >>> print(bound)
    least leakage: 0.3680642 to 0.3680642 nats (CERTIFIED)
    >>> bound.witness.matrix.round(6)
    array([[0.9, 0.1],
           [0.1, 0.9]])
    >>> round(bound.shadow_prices["budget"], 6)  # dR/dD = -log(0.9 / 0.1)
    -2.197225
    >>> hamming = [[0.0, 1.0], [1.0, 0.0]]
    >>> design = DesignForPrior([0.5, 0.5], hamming, 0.25, minimize="distortion")
    >>> round(design.solve().lower, 6)
    0.162107
    >>> check = DesignForPrior([0.5, 0.5], hamming, 0.2).check([[0.9, 0.1], [0.2, 0.8]])
    >>> check.feasible, check.shortfall[0] > 0.05
    (True, True)
    """

    maximize = False
    convex = True
    information = ("budget", "slope")

    prior: tuple[Prior, ...]
    distortion: Distortion
    budget: float | None
    slope: float | None
    measure: str
    minimize: str
    source: tuple[Prior, ...] | None
    constraints: tuple[Rule, ...]

    def __init__(
        self,
        prior: Any,
        distortion: Distortion | ArrayLike,
        budget: float | None = None,
        *,
        slope: float | None = None,
        measure: str = "total",
        minimize: str | None = None,
        source: Any = None,
        constraints: UserRules = (),
    ) -> None:
        if measure not in (INFORMATION, *PRIVACY):
            allowed = (INFORMATION, *PRIVACY)
            raise ValidationError(f"measure: found {measure!r}; allowed: {allowed}")
        if minimize is None:
            minimize = "leakage" if measure == INFORMATION else "distortion"
        if minimize not in ("leakage", "distortion"):
            raise ValidationError(
                f"minimize: found {minimize!r}; allowed: 'leakage' and 'distortion'"
            )
        if (budget is None) == (slope is None):
            raise ValidationError("budget: exactly one of budget and slope is needed")
        if measure in PRIVACY and (minimize == "leakage" or slope is not None):
            raise ValidationError(
                f"measure: found {measure!r}, which is a constraint on the channel; it needs a "
                "budget and minimize='distortion'"
            )
        priors = read_priors(prior, "prior")
        if isinstance(distortion, str):
            distortion = named_distortion(distortion, priors[0].labels, None, "distortion")
        if not isinstance(distortion, Distortion):
            distortion = Distortion(distortion)
        if measure in PRIVACY and measure != "local_dp" and len(priors) > 1:
            raise ValidationError(
                f"prior: found {len(priors)} priors; measure {measure!r} takes one"
            )
        rules: tuple[Rule, ...] = ()
        if callable(constraints) or constraints != ():
            from cvxleak.design.user_constraints import as_rules

            rules = as_rules(constraints)
        fields = {
            "prior": priors,
            "distortion": distortion,
            "budget": None if budget is None else amount(budget, "budget"),
            "slope": None if slope is None else amount(slope, "slope"),
            "measure": measure,
            "minimize": minimize,
            "source": None if source is None else read_priors(source, "source"),
            "constraints": rules,
        }
        goal = "distortion" if minimize == "distortion" else "leakage"
        if slope is not None:
            goal = "leakage + slope d"
        fields |= {
            "kind": f"fixed-prior-{goal.split()[0]}",
            "name": f"least {goal}",
            "unit": "distortion" if goal == "distortion" else "nats",
            "tolerance": 1e-5 if rules else 1e-8,
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        # Now, so that arguments that do not fit are found here.
        _ = self._statement

    @classmethod
    def in_nats(cls, data: Mapping[str, Any], unit: str) -> dict[str, Any]:
        """Return the arguments, with amounts of information in nats and distortions unchanged."""
        found = super().in_nats(data, unit)
        informs = data.get("measure", INFORMATION) == INFORMATION
        if "budget" in data and (data.get("minimize") or "leakage") == "leakage" and informs:
            found["budget"] = data["budget"]
        return found

    @cached_property
    def _statement(self) -> Statement:
        return Statement.read(self.prior, self.distortion, self.source)

    @property
    def scale(self) -> float:
        """One nat, or the largest distortion."""
        return 1.0 if self.unit == "nats" else float(self._statement.distortion.max()) or 1.0

    @property
    def _goal(self) -> str:
        if self.slope is not None:
            return "sum"
        return "information" if self.minimize == "leakage" else "distortion"

    @property
    def _number(self) -> float:
        return self.budget if self.budget is not None else self.slope  # pyright: ignore[reportReturnType]

    def _search(
        self, *, solver: str | None = None, solver_options: Mapping[str, Any] | None = None
    ) -> Once:
        options = as_options(solver_options)
        return Once(lambda gap, clock: self._run(gap, clock, solver, options))

    def _run(
        self, gap: Gap, clock: Clock, solver: str | None, options: dict[str, Any]
    ) -> tuple[Found, Stopped]:
        content, solution = self._solution(gap, clock, solver, options)
        stopped = Stopped.at_limit(clock) if clock.late else Stopped.NO_PROGRESS
        priced = "slope" if self.slope is not None else "budget"
        shown = solution.shown
        found = Found(
            min(solution.lower, solution.upper),
            solution.upper,
            self._statement.channel(solution.channel),
            (content, {"channel": solution.channel.tolist(), **shown.witness}, solution.proof),
            {} if math.isnan(solution.price) else {priced: solution.price},
            solution.stats,
            feasible=shown.met,
            about=shown.about,
        )
        return found, stopped

    def _measure(self, candidate: Channel | ArrayLike) -> tuple[float, dict[str, float]]:
        matrix = self._statement.candidate(candidate)
        rows, violations = read_rows(matrix)
        leak, spent = self._measured(rows)
        if self._goal == "information":
            value = leak
            violations["distortion is within the budget"] = max(spent - self._number, 0.0)
        elif self._goal == "sum":
            value = leak + self._number * spent
        else:
            value = spent
            if self.measure == INFORMATION:
                missed = max(leak - self._number, 0.0)
            else:
                missed = private_excess(self._statement, self.measure, self._number, rows)
            violations["leakage is within the budget"] = missed
        if self.constraints:
            from cvxleak.design.user_constraints import user_violations

            violations |= user_violations(self.constraints, matrix)
        return value, violations

    def _toward(self, candidate: Channel | ArrayLike, bound: Bound) -> Toward:
        statement = self._statement
        rows, _ = read_rows(statement.candidate(candidate))
        costs = statement.distortion
        center = np.zeros_like(rows)
        if self._goal == "distortion":
            center[:, costs.sum(axis=0).argmin()] = 1.0
        else:
            center[np.arange(len(rows)), costs.argmin(axis=1)] = 1.0
        if self.constraints:
            return self._toward_inside(rows, bound)
        return mixtures(rows, center, statement.channel, lambda q: {"channel": q.tolist()})

    def _toward_inside(self, rows: Array, bound: Bound) -> Toward:
        """Return the way, along the user's equations, to a channel that meets all with room."""
        from cvxleak.design.fixed_prior_user import inside_of
        from cvxleak.design.outer_approximation import HalfSpaces
        from cvxleak.design.user_constraints import UserConstraints

        statement, shape = self._statement, rows.shape
        inside = inside_of(statement, self.measure, self._goal, self._number, self.constraints)
        center = inside.center
        if self._goal == "distortion" and self.measure == INFORMATION:
            # Within the budget for information, too: the one that leaks least.
            most = float(statement.distortion.max())
            own = DesignForPrior(self.prior, self.distortion, most, constraints=self.constraints)
            center = own.solve().witness.matrix
        if center is None:
            center = bound.witness.matrix
        half_spaces = HalfSpaces(UserConstraints(shape, self.constraints))
        assert bound.certificate is not None
        stated = bound.certificate.problem["own"]

        def stored(channel: Array) -> dict[str, Any]:
            further = half_spaces.shown(channel, stated).witness
            return {**further, "channel": channel.tolist()}

        return mixtures(inside.on_equations(rows), center, statement.channel, stored)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.constraints:
            from cvxleak.design.user_constraints import check_picklable

            check_picklable(self.constraints)
        return super().__reduce__()

    def to_cvxpy(self) -> cp.Problem:
        """Return the problem in plain CVXPY, with the channel as its variable ``channel``.

        It has all n m entries as variables, and H(A) - H(A|Y) for the information; solving it takes
        about a hundred times as long as `solve`. A solver's result is neither exactly feasible nor
        proved: pass the channel to `check`.

        Examples
        --------
        >>> from cvxleak.design.fixed_prior import DesignForPrior
        >>> design = DesignForPrior([0.5, 0.5], [[0.0, 1.0], [1.0, 0.0]], 0.1)
        >>> problem = design.to_cvxpy()
        >>> round(float(problem.solve(solver="CLARABEL")), 5)
        0.36806
        """
        from cvxleak.design.fixed_prior_user import program
        from cvxleak.design.user_constraints import UserConstraints

        user = UserConstraints(self._statement.distortion.shape, self.constraints)
        return program(self._statement, self.measure, self._goal, self._number, user).problem

    def _solution(
        self, gap: Gap, clock: Clock, solver: str | None, options: dict[str, Any]
    ) -> tuple[dict[str, Any], Solution]:
        """Return the certificate's problem and what was found."""
        statement, goal, number = self._statement, self._goal, self._number
        if self.constraints or solver is not None:
            # Here, so that everything else works where CVXPY is not installed.
            from cvxleak.design.fixed_prior_user import solve_with_user_constraints

            found, content = solve_with_user_constraints(
                statement, self.measure, goal, number, self.constraints, solver, options, clock
            )
            return content, found
        if self.measure in PRIVACY:
            content = private_content(statement, self.measure, number)
            return content, solve_private(statement, self.measure, number)
        name = "slope" if goal == "sum" else "budget"
        return statement.content(goal, name, number), solve(statement, goal, number, gap, clock)

    def _measured(self, rows: Array) -> tuple[float, float]:
        """Return leakage (of an information) and distortion of a channel."""
        statement = self._statement
        laws = statement.sources / statement.sources.sum(axis=1, keepdims=True)
        spent = float((laws @ (rows * statement.distortion).sum(axis=1)).max())
        if self.measure != INFORMATION:
            return math.nan, spent
        return max(mutual_information(rows, law) for law in statement.laws), spent


def design_for_prior(
    prior: Any,
    distortion: Distortion | ArrayLike,
    budget: float | None = None,
    *,
    slope: float | None = None,
    measure: str = "total",
    minimize: str | None = None,
    source: Any = None,
    constraints: UserRules = (),
    **options: Any,
) -> Bound:
    """Return the best channel for known priors: `DesignForPrior(...).solve(...)`.

    Parameters
    ----------
    prior, distortion, budget, slope, measure, minimize, source, constraints
        As for `DesignForPrior`.
    **options
        As for `Problem.solve`, and those of `DesignForPrior`.

    Examples
    --------
    The least distortion of a survey answer that is 1-locally differentially private:

    >>> from cvxleak.model import Distortion
    >>> from cvxleak.design.fixed_prior import design_for_prior
    >>> error = Distortion.hamming(["no", "yes"])
    >>> bound = design_for_prior([0.4, 0.6], error, 1.0, measure="local_dp")
    >>> print(bound)
    least distortion: 0.2689414 to 0.2689414 distortion (CERTIFIED)
    """
    design = DesignForPrior(
        prior,
        distortion,
        budget,
        slope=slope,
        measure=measure,
        minimize=minimize,
        source=source,
        constraints=constraints,
    )
    return design.solve(**options)
