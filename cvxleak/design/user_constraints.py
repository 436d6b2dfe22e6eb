"""The user's constraints on the channel that a design problem looks for."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import cvxpy as cp
import numpy as np
from cvxpy.constraints.exponential import ExpCone
from cvxpy.constraints.nonpos import Inequality, NonNeg, NonPos
from cvxpy.constraints.psd import PSD
from cvxpy.constraints.second_order import SOC
from cvxpy.constraints.zero import Equality, Zero
from numpy.typing import ArrayLike

from cvxleak.core.errors import CvxleakError, SolverError, ValidationError
from cvxleak.core.validation import Array, frozen_array, in_order, short
from cvxleak.solvers.conic import attempt

__all__ = [
    "Rule",
    "UserConstraints",
    "UserRules",
    "as_expressions",
    "as_rules",
    "check_picklable",
    "choose_further",
    "relaxed",
    "user_violations",
]

Rule = Callable[[cp.Variable], cp.Constraint | Iterable[Any]]
"""Gets the channel variable, returns a constraint or a list (of lists) of constraints."""

UserRules = Rule | Sequence[Rule]
"""What the argument `constraints` of a design problem may be."""

_HOW = "write it as a function of the channel variable, for example lambda Q: [Q[0, 0] >= 0.5]"


def as_rules(constraints: UserRules) -> tuple[Rule, ...]:
    """Return the argument `constraints` of a design problem as a tuple of callables.

    Raises
    ------
    ValidationError
        Neither a callable nor a sequence of callables. Constraints that are ready-made are refused:
        they can only be about a variable that is not the problem's own.

    Examples
    --------
    >>> from cvxleak.design.user_constraints import as_rules
    >>> len(as_rules(())), len(as_rules(lambda Q: Q[0, 0] >= 0.5))
    (0, 1)
    """
    if callable(constraints):
        return (constraints,)
    if isinstance(constraints, cp.Constraint):
        raise ValidationError(
            "constraints: found a ready-made constraint, which cannot refer to this problem's "
            f"channel variable; {_HOW}"
        )
    rules = in_order(constraints, "constraints")
    for place, rule in enumerate(rules):
        if not callable(rule):
            ready = isinstance(rule, cp.Constraint)
            found = "a ready-made constraint" if ready else short(rule)
            raise ValidationError(f"constraints[{place}]: found {found}; {_HOW}")
    return rules


def check_picklable(rules: Sequence[Rule]) -> None:
    """Check that a problem's own constraints can be pickled, where the problem is to be.

    Raises
    ------
    pickle.PicklingError
        One of them cannot, and is named.

    Examples
    --------
    >>> from cvxleak.design.user_constraints import check_picklable
    >>> check_picklable([lambda Q: Q[0, 0] >= 0.5])
    Traceback (most recent call last):
    ...
    _pickle.PicklingError: constraints[0]: it cannot be pickled; define it with def in a module
    """
    for place, rule in enumerate(rules):
        try:
            pickle.dumps(rule)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise pickle.PicklingError(
                f"constraints[{place}]: it cannot be pickled; define it with def in a module"
            ) from error


class UserConstraints:
    """The user's constraints on channels of one shape, stated once, all of them convex.

    Whoever solves a program with them puts `channel` and `constraints` into it, and reads values
    right after.

    Parameters
    ----------
    shape : (k, m)
    rules : callable or sequence of callables
        Each gets the channel variable and returns a CVXPY constraint or a list of them, lists
        inside lists too: its own, or those of a builder of `cvxleak.constraints`. They may bring
        further continuous variables, and Parameters that have a value.
    widest : float, optional
        The channel variable's bounds are 0 and 1, or, with this, -widest and widest.

    Attributes
    ----------
    channel : cp.Variable, shape (k, m)
    constraints : list of cp.Constraint
    variables : list of cp.Variable
        The channel, then the further ones.

    Raises
    ------
    ValidationError
        Not callables; what one returns is no constraint, is not convex by CVXPY's rules, says
        nothing about the channel, or has integer variables or Parameters without a value.

    Examples
    --------
    >>> from cvxleak.constraints import local_dp
    >>> from cvxleak.design.user_constraints import UserConstraints
    >>> user = UserConstraints((3, 3), [lambda Q: local_dp(Q, 1.0), lambda Q: Q[0, 0] >= 0.5])
    >>> len(user.constraints)
    3
    """

    def __init__(
        self, shape: tuple[int, int], rules: UserRules, widest: float | None = None
    ) -> None:
        self.shape = shape
        # Finite bounds: CVXPY multiplies bounds by constants, and infinity by 0 is not a number.
        bounds = [0, 1] if widest is None else [-widest, widest]
        self.channel = cp.Variable(shape, bounds=bounds, name="channel")
        self._parts = [self._stated(rule, place) for place, rule in enumerate(as_rules(rules))]

    def _stated(self, rule: Rule, place: int) -> list[cp.Constraint]:
        """Return what a callable states, aloud and by its atoms and variables."""
        part = _checked(list(_flat(_asked(rule, self.channel, place), place)), self.channel, place)
        return part + _implicit(part, self.channel, place)

    def __bool__(self) -> bool:
        return bool(self._parts)

    @property
    def constraints(self) -> list[cp.Constraint]:
        """All constraints."""
        return [constraint for part in self._parts for constraint in part]

    @cached_property
    def variables(self) -> list[cp.Variable]:
        """The channel, then the further variables."""
        found = {v.id: v for constraint in self.constraints for v in constraint.variables()}
        found.pop(self.channel.id, None)
        return [self.channel, *found.values()]

    def also(self, rule: Rule) -> UserConstraints:
        """Return these constraints and those of one more callable, on the same variables."""
        more = copy(self)
        more.__dict__.pop("variables", None)
        more._parts = [*self._parts, self._stated(rule, len(self._parts))]
        return more

    def violations(self, matrix: Array, solver: str | None = None) -> dict[str, float]:
        """Return by how much a channel misses what each callable states, as `user_violations`."""
        if len(self.variables) > 1:
            choose_further(self.constraints, self.channel, matrix, solver)
        self.channel.save_value(np.asarray(matrix))
        return {
            f"constraints[{place}]": max(map(_violation, part), default=0.0)
            for place, part in enumerate(self._parts)
        }


def _implicit(part: list[cp.Constraint], channel: cp.Variable, place: int) -> list[cp.Constraint]:
    """Return what constraints state without saying so.

    That is the domains of their atoms, outside of which a value means nothing (x^2/y for y < 0),
    and bounds, symmetry and definiteness of further variables.
    """
    found: dict[str, cp.Constraint] = {}
    for constraint in part:
        for argument in constraint.args:
            for domain in argument.domain:
                known = isinstance(domain, Inequality) and domain.expr.is_nonpos()
                if not known and not any(side is channel for side in domain.args):
                    found[str(domain)] = domain
    further = {v.id: v for one in part for v in one.variables() if v.id != channel.id}
    for v in further.values():
        if v.attributes.get("diag"):
            raise ValidationError(
                f"constraints[{place}]: found a further variable with diag=True; declare a vector "
                "z and write cp.diag(z)"
            )
        if any(v.attributes.get(name) for name in ("symmetric", "PSD", "NSD")):
            found[str(v.id)] = v == v.T
    return list(found.values())


def user_violations(constraints: UserRules, matrix: ArrayLike) -> dict[str, float]:
    """Return by how much a matrix misses each of the user's constraints on a channel.

    Parameters
    ----------
    constraints : callable or sequence of callables
        As in `UserConstraints`.
    matrix : array_like, shape (k, m)
        Its rows need not be distributions.

    Returns
    -------
    dict of str to float
        For each callable, ``"constraints[0]"``, ..., the largest violation of what it returns as
        CVXPY measures it: 0 if it is met. Where further variables occur, they are chosen so that
        the largest violation is least, by a solver; the violations are then evaluated there, so
        that none is understated: those of constraints that are only just met are near 0, not 0.

    Raises
    ------
    ValidationError
        As `UserConstraints`, or a matrix that is none.
    SolverError
        No solver found values for the further variables.

    Examples
    --------
    >>> from cvxleak.design.user_constraints import user_violations
    >>> user_violations(lambda Q: Q[0, 0] >= 0.5, [[0.25, 0.75], [0.5, 0.5]])
    {'constraints[0]': 0.25}
    """
    values = frozen_array(matrix, "matrix", 2)
    widest = 1 + float(np.abs(values).max(initial=0.0))
    rows, outputs = values.shape
    return UserConstraints((rows, outputs), constraints, widest).violations(values)


def relaxed(constraint: cp.Constraint, slack: cp.Expression | float) -> list[cp.Constraint]:
    """Return a constraint with its right-hand side moved outward by `slack`.

    A negative number tightens it, except an equality, which has no room. A cone that has no natural
    right-hand side is returned as it is.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxleak.design.user_constraints import relaxed
    >>> x = cp.Variable()
    >>> round(float(cp.Problem(cp.Minimize(x), relaxed(x >= 1, 0.25)).solve()), 6)
    0.75
    """
    if isinstance(constraint, Equality | Zero):
        expression = constraint.args[0]
        if isinstance(constraint, Equality):
            expression = expression - constraint.args[1]
        if not isinstance(slack, cp.Expression) and slack <= 0:
            return [constraint]
        return [expression <= slack, -expression <= slack]
    if isinstance(constraint, Inequality):
        return [constraint.args[0] - constraint.args[1] <= slack]
    if isinstance(constraint, NonNeg):
        return [constraint.args[0] >= -slack]
    if isinstance(constraint, NonPos):
        return [constraint.args[0] <= slack]
    if isinstance(constraint, PSD):
        matrix = constraint.args[0]
        return [matrix + slack * np.eye(matrix.shape[0]) >> 0]
    if isinstance(constraint, SOC):
        return [SOC(constraint.args[0] + slack, constraint.args[1], axis=constraint.axis)]
    if isinstance(constraint, ExpCone):
        return [ExpCone(constraint.x, constraint.y, constraint.z + slack)]
    return [constraint]


def as_expressions(constraint: cp.Constraint) -> list[tuple[Any, bool]]:
    """Return expressions that are <= 0, or = 0 where True, exactly if the constraint holds.

    Empty for cones of which this is not known (power cones, matrices, complex numbers).

    Examples
    --------
    >>> import cvxpy as cp
    >>> from cvxleak.design.user_constraints import as_expressions
    >>> x = cp.Variable()
    >>> ((side, equal),) = as_expressions(cp.exp(x) <= 2)
    >>> x.value = 0.0
    >>> float(side.value), equal
    (-1.0, False)
    """
    first: Any = constraint.args[0]
    if any(argument.is_complex() for argument in constraint.args):
        return []
    if isinstance(constraint, Equality):
        return [(first - constraint.args[1], True)]
    if isinstance(constraint, Zero):
        return [(first, True)]
    if isinstance(constraint, Inequality):
        return [(first - constraint.args[1], False)]
    if isinstance(constraint, NonNeg):
        return [(-first, False)]
    if isinstance(constraint, NonPos):
        return [(first, False)]
    if isinstance(constraint, SOC):
        inner: Any = constraint.args[1]
        axis = None if inner.ndim < 2 else constraint.axis
        return [(cp.norm(inner, 2, axis=axis) - first, False)]
    if isinstance(constraint, ExpCone):
        # y e^(x/y) <= z is y log(y/z) + x <= 0.
        return [(cp.rel_entr(constraint.y, constraint.z) + constraint.x, False)]
    return []


def _asked(rule: Rule, channel: cp.Variable, place: int) -> Any:
    """Return what a callable makes of the channel variable; say which one failed."""
    try:
        return rule(channel)
    except CvxleakError:
        raise
    except Exception as error:
        raise ValidationError(
            f"constraints[{place}]: it failed for a channel variable of shape {channel.shape}: "
            f"{type(error).__name__}: {error}"
        ) from error


def _flat(returned: Any, place: int) -> Iterable[cp.Constraint]:
    if isinstance(returned, cp.Constraint):
        yield returned
        return
    if isinstance(returned, bool | np.bool_ | str | cp.Expression) or not isinstance(
        returned, Iterable
    ):
        hint = (
            "; a comparison without CVXPY expressions is none"
            if isinstance(returned, bool | np.bool_)
            else ""
        )
        raise ValidationError(
            f"constraints[{place}]: it returned {short(returned)}; a CVXPY constraint or a list of "
            f"them is needed{hint}"
        )
    for part in returned:
        yield from _flat(part, place)


def _checked(found: list[cp.Constraint], channel: cp.Variable, place: int) -> list[cp.Constraint]:
    name = f"constraints[{place}]"
    variables = {v.id: v for constraint in found for v in constraint.variables()}
    if found and channel.id not in variables:
        raise ValidationError(
            f"{name}: its constraints do not contain the channel variable that it was given"
        )
    for constraint in found:
        if not constraint.is_dcp():
            raise ValidationError(
                f"{name}: {short(str(constraint))} is not convex by CVXPY's rules (DCP)"
            )
        for parameter in constraint.parameters():
            if parameter.value is None:
                raise ValidationError(f"{name}: the Parameter {parameter.name()} has no value")
    for variable in variables.values():
        if variable.attributes["boolean"] or variable.attributes["integer"]:
            raise ValidationError(
                f"{name}: the variable {variable.name()} is not continuous; the set must be convex"
            )
    return found


def choose_further(
    everything: list[cp.Constraint], channel: cp.Variable, values: Array, solver: str | None = None
) -> None:
    """Give the variables that are not the channel values of least largest violation.

    Raises
    ------
    SolverError
        None were found.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import numpy as np
    >>> from cvxleak.design.user_constraints import choose_further
    >>> Q, z = cp.Variable((1, 2)), cp.Variable()
    >>> choose_further([Q[0, 0] >= z, Q[0, 1] <= z], Q, np.array([[0.75, 0.25]]))
    >>> round(float(z.value), 6)
    0.5
    """
    # Room is welcome, so that nothing is missed by what a solver's values are off.
    slack = cp.Variable(bounds=[-1, None])
    rules = [part for constraint in everything for part in relaxed(constraint, slack)]
    problem = cp.Problem(cp.Minimize(slack), [*rules, channel == values])
    status = attempt(problem, solver)
    if any(v.value is None for v in problem.variables()):
        raise SolverError(
            "constraints: no values were found for their further variables (the solver says: "
            f"{status})"
        )


def _violation(constraint: cp.Constraint) -> float:
    return float(np.max(constraint.violation()))
