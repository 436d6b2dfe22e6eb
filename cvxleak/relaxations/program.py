"""`Relaxation`: a convex program that bounds the leakage, and the bound its multipliers prove."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import cvxpy as cp
import numpy as np
from cvxpy.constraints.nonpos import Inequality
from cvxpy.constraints.zero import Equality, Zero
from cvxpy.settings import INF_OR_UNB
from scipy.special import logsumexp

from cvxleak.core.clock import Clock
from cvxleak.core.errors import InfeasibleError, SolverError, ValidationError
from cvxleak.core.validation import Array, in_order, instance, real_number
from cvxleak.model import AdditiveQuery, Expectation, Lumped, Mechanism
from cvxleak.model.joint import joint_query
from cvxleak.solvers.conic import as_options, attempt

__all__ = ["Relaxation"]

SMALLEST = 1e-12
"""Probabilities of a solver's point are raised to this, and multipliers below it are taken for 0,
before anything is divided by them."""

OUTWARD = 1e-12
"""Share of its numbers by which a bound that was computed in floating point is moved outwards."""


class Relaxation(ABC):
    """A convex program in an adversary's lumped weights that bounds the leakage from above.

    Parameters
    ----------
    lumped : Lumped
        The lumped problem of the record, or group of records, with N groups of contexts.
    entropy_floor : float
        b, in nats, from 0 to log|X|.

    Attributes
    ----------
    lumped : Lumped
    entropy_floor : cp.Parameter
        b; the programs are DPP, so its value can be changed without recompiling.
    weights : cp.Variable, shape (N,)
        w, the prior probability of each group, for use in constraints.
    problem : cp.Problem
        The program, with the constraints of `constrain`.

    Examples
    --------
    >>> from cvxleak import Mechanism
    >>> from cvxleak.mechanisms import binary_symmetric
    >>> from cvxleak.queries import parity
    >>> from cvxleak.relaxations import DatasetCapacityRelaxation, Relaxation
    >>> lumped = Mechanism(parity(3), binary_symmetric(0.1)).lumped(0)
    >>> isinstance(DatasetCapacityRelaxation(lumped, 1.0), Relaxation)
    True
    """

    _sigma: ClassVar[float] = 0.0
    """The coefficient of H(A) in the objective."""

    def __init__(self, lumped: Lumped, entropy_floor: float) -> None:
        self.lumped = instance(lumped, Lumped, "lumped")
        b = real_number(entropy_floor, "entropy_floor", 0.0)
        if b > lumped.max_entropy * (1 + 1e-12):
            raise InfeasibleError(
                f"entropy_floor: found {b!r} nats; no prior has more than "
                f"log|X| = {lumped.max_entropy!r} nats"
            )
        b = min(b, lumped.max_entropy)
        self.entropy_floor = cp.Parameter(nonneg=True, value=b, name="entropy_floor")
        self.weights = cp.Variable(len(lumped.rows), nonneg=True, name="weights")
        self._groups = [np.flatnonzero(lumped.value_index == a) for a in range(len(lumped.values))]
        member = lumped.value_index[None, :] == np.arange(len(lumped.values))[:, None]
        self._marginal = cp.Constant(member.astype(float)) @ self.weights
        self._extra: tuple[cp.Constraint, ...] = ()
        objective, constraints, self._floor = self._state()
        law: Any = cp.sum(self.weights) == 1
        self.problem = cp.Problem(cp.Maximize(objective), [law, self._floor, *constraints])

    def constrain(self, constraints: Iterable[cp.Constraint]) -> None:
        """Add constraints on `weights`: a smaller class of adversaries.

        Parameters
        ----------
        constraints : iterable of cp.Constraint
            Equalities and inequalities that are convex in `weights` and in further variables. These
            variables need finite bounds, ``cp.Variable(..., bounds=[low, high])``: residual
            multiplier error is bounded by its worst case over a variable's range, so the range must
            be finite.

        Raises
        ------
        ValidationError
            A constraint of the wrong kind, or a variable without finite bounds.

        Examples
        --------
        An adversary who knows that the record is 1 with probability 0.1:

        >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
        >>> from cvxleak.relaxations.audit import PosteriorCellRelaxation
        >>> parity = AdditiveQuery(RecordSpace.binary(4), [(0, 1)] * 4, modulus=2)
        >>> lumped = Mechanism(parity, [[0.7, 0.3], [0.3, 0.7]]).lumped(0)
        >>> relaxation = PosteriorCellRelaxation(lumped, entropy_floor=1.0)
        >>> relaxation.constrain([relaxation.weights[lumped.value_index == 1].sum() == 0.1])
        >>> round(relaxation.solve(), 4)  # h(0.1)
        0.3251

        An adversary whose prior is a mixture of two:

        >>> import cvxpy as cp
        >>> import numpy as np
        >>> mixed = PosteriorCellRelaxation(lumped, entropy_floor=1.0)
        >>> one, other = np.array([[0.05, 0.05, 0.45, 0.45], [0.1, 0.2, 0.3, 0.4]])
        >>> share = cp.Variable(bounds=[0, 1])
        >>> mixed.constrain([mixed.weights == share * one + (1 - share) * other])
        >>> round(mixed.solve(), 4)  # h(0.3)
        0.6109
        """
        added = tuple(in_order(constraints, "constraints"))
        for constraint in added:
            _check(constraint, self.weights)
        self._extra += added
        self.problem = cp.Problem(self.problem.objective, [*self.problem.constraints, *added])

    def solve(
        self,
        *,
        time_limit: float | None = None,
        solver: str | None = None,
        solver_options: Mapping[str, Any] | None = None,
    ) -> float:
        """Solve the program and return `upper()`.

        Parameters
        ----------
        time_limit : float, optional
            Seconds for the solver, if it supports a limit. If it stops early, the bound is looser.
        solver : str, optional
            Any CVXPY solver that supports exponential cones; CLARABEL if left out.
        solver_options : mapping, optional
            Options of the solver.

        Raises
        ------
        ValidationError
            A solver that is not installed or does not support exponential cones, or unknown
            options.
        InfeasibleError
            The solver reports that no adversary meets the constraints.
        SolverError
            The solver returned no solution, and so no multipliers.
        """
        if (
            attempt(self.problem, solver, as_options(solver_options), Clock(time_limit))
            in INF_OR_UNB
        ):
            raise InfeasibleError("no prior meets the entropy floor and the constraints")
        return self.upper()

    def upper(self) -> float:
        r"""Return the bound that the multipliers of the last solution prove, in nats.

        With multipliers lam >= 0 for F(w) >= b and eta for the added constraints, and coefficients
        c with which the objective is at most sigma H(A) + <w, c> (sigma is 1 or 0), the leakage of
        every w is at most

        .. math:: (\sigma + \lambda) \log \sum_a e^{\phi_a / (\sigma + \lambda)}
                  - \lambda b + \langle \eta, d \rangle + \beta, \qquad
                  \phi_a = \lambda \log \sum_g m_{a,g}
                  e^{(c - C^T \eta)_{a,g} / \lambda},

        maxima taking the place of the sums where their scale is zero. C w + T u <= d are the added
        constraints, or for convex ones their tangents at the solver's point, which every w that
        meets the constraint also meets. beta is the largest value of -<T^T eta, u> for other
        variables u within their bounds. The bound is computed in floating point and holds up to
        rounding (about 1e-13).

        Raises
        ------
        SolverError
            The program has no solution yet.
        """
        self._need_solution()
        point = np.maximum(np.asarray(self.weights.value), SMALLEST)
        self.weights.value = point / point.sum()
        shift, constant = _priced(self._extra, self.weights)
        lam = max(float(np.asarray(self._floor.dual_value).item()), 0.0)
        lams = (lam, 0.0) if lam > SMALLEST else (0.0,)
        return constant + min(self._value(c - shift, at) for c in self._linear() for at in lams)

    def adversaries(
        self, mechanism: Mechanism, records: int | Sequence[int]
    ) -> tuple[Expectation, ...]:
        r"""Return the class of adversaries as an argument for an audit, which gives a certificate.

        Each scalar constraint <C, w> <= d on the weights alone is an `Expectation` of c(X) = C_g,
        g being the group of the dataset X. A convex one that is not linear is replaced by its
        tangent at the solver's point, and those with other variables by their sum weighted by the
        solver's multipliers, in which these variables cancel. Both replacements only enlarge the
        class, so the upper bound of ``record_leakage(mechanism, b, records, adversaries=...)``
        holds for it. With such constraints the lower bound may be attained by an adversary outside
        the class. Coefficients are those that CVXPY computes in floating point; bounds of replaced
        constraints are moved outward by a relative 1e-12.

        Parameters
        ----------
        mechanism : Mechanism
        records : int or sequence of int
            The record, or group of records, whose `lumped` this relaxation uses.

        Raises
        ------
        ValidationError
            The lumped problem of these records is not the one of this relaxation.
        SolverError
            A constraint must be replaced, and the program has not been solved yet.

        Examples
        --------
        An adversary who knows that the record is 1 with a probability near 0.1:

        >>> from cvxleak import record_leakage
        >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
        >>> from cvxleak.relaxations import PosteriorCellRelaxation
        >>> parity = AdditiveQuery(RecordSpace.binary(4), [(0, 1)] * 4, modulus=2)
        >>> mechanism = Mechanism(parity, [[0.7, 0.3], [0.3, 0.7]])
        >>> lumped = mechanism.lumped(0)
        >>> relaxation = PosteriorCellRelaxation(lumped, entropy_floor=1.0)
        >>> chance = relaxation.weights[lumped.value_index == 1].sum()
        >>> relaxation.constrain([(chance - 0.1) ** 2 <= 0.01])
        >>> round(relaxation.solve(), 3)  # h(0.2)
        0.5
        >>> known = relaxation.adversaries(mechanism, 0)
        >>> print(record_leakage(mechanism, 1.0, 0, adversaries=known))
        record leakage: 0.0531... to 0.0532... nats (CERTIFIED)
        """
        group = instance(mechanism, Mechanism, "mechanism").space.group(records)
        found = mechanism.lumped(group)
        if (
            found.contexts != self.lumped.contexts
            or found.multiplicities != self.lumped.multiplicities
            or not np.array_equal(found.rows, self.lumped.rows)
        ):
            raise ValidationError(
                f"mechanism: its lumped problem of records {group} is not the one of the relaxation"
            )
        pair = joint_query(mechanism.query, _values_of(mechanism, group))
        place: dict[Any, int] = {
            (value, int(a)): g
            for g, (a, contexts) in enumerate(zip(found.value_index, found.contexts, strict=True))
            for value in contexts
        }
        order = [place[value] for value in pair.values]
        return tuple(
            Expectation(c[order], query=pair, at_least=d if equal else None, at_most=d, name=name)
            for c, d, equal, name in self._linear_constraints()
        )

    def _linear_constraints(self) -> Iterator[tuple[Array, float, bool, str]]:
        """Yield C, d, whether <C, w> = d and not only <=, and a name, for all that is added."""
        alone = [one for one in self._extra if {v.id for v in one.variables()} == {self.weights.id}]
        together = [one for one in self._extra if one not in alone]
        if any(not one.expr.is_affine() for one in self._extra) or together:
            self._need_solution()
        point = self.weights.value
        for j, constraint in enumerate(alone):
            equal, affine = not isinstance(constraint, Inequality), constraint.expr.is_affine()
            # A constant is read off at 0, as it is written.
            self.weights.value = np.zeros(len(self.lumped.rows)) if affine else point
            slope = _table(constraint.expr.grad[self.weights], constraint)
            offsets = slope.T @ np.asarray(self.weights.value)
            offsets = offsets - np.ravel(constraint.expr.value, order="F")
            self.weights.value = point
            for c, d in zip(slope.T, offsets.tolist(), strict=True):
                yield c, d if affine else d + _slack(c, d), equal, f"constraint {j}"
        if together:
            c, d = _priced(together, self.weights)
            yield c, d + _slack(c, d), False, "constraints together"

    def _need_solution(self) -> None:
        if self.weights.value is None or self._floor.dual_value is None:
            raise SolverError(f"the solver found no point (status {self.problem.status})")

    @abstractmethod
    def _state(self) -> tuple[cp.Expression, list[cp.Constraint], cp.Constraint]:
        """Return the objective, its constraints, and the entropy floor."""

    @abstractmethod
    def _linear(self) -> list[Array]:
        """Return coefficients c of which each proves a bound, shape (pieces, N)."""

    def _value(self, c: Array, lam: float) -> float:
        lumped, scale = self.lumped, self._sigma + lam
        # Means under the uniform prior instead of sums: near b = log|X| lam has no limit, and large
        # numbers would cancel.
        log_s = lumped.log_multiplicity - lumped.max_entropy
        phi = np.empty((len(c), len(self._groups)))
        for a, groups in enumerate(self._groups):
            share = log_s[groups] - _log_sum_exp(log_s[groups])
            values = c[:, groups]
            if lam > 0:
                phi[:, a] = lam * _log_sum_exp(values / lam + share)
            else:
                phi[:, a] = values.max(axis=1)
        best = phi.max(axis=0)
        if scale == 0:
            return float(best.max())
        log_pi = np.array([_log_sum_exp(log_s[groups]) for groups in self._groups])
        surplus = lumped.max_entropy - float(np.asarray(self.entropy_floor.value))
        top = float(_log_sum_exp((best + lam * log_pi) / scale))
        return scale * top + lam * surplus


def _log_sum_exp(x: Array) -> Array:
    """Return the logarithm of the sum of e^x along the last axis."""
    return np.asarray(logsumexp(x, axis=-1))


def _check(constraint: Any, weights: cp.Variable) -> None:
    if not isinstance(constraint, Equality | Inequality | Zero):
        raise ValidationError(
            f"constraints: found {constraint!r}; equalities and inequalities are allowed"
        )
    if not constraint.is_dcp():
        raise ValidationError(f"constraints: found {constraint}, which is not convex in weights")
    for variable in constraint.variables():
        if variable.attributes["boolean"] or variable.attributes["integer"]:
            raise ValidationError(
                f"constraints: found {constraint}, with {variable} in whole numbers: not convex"
            )
        if variable.id != weights.id and not np.isfinite(_ends(variable)).all():
            raise ValidationError(
                f"constraints: found {constraint}, with the variable {variable} besides weights; "
                "give it finite bounds: cvxpy.Variable(shape, bounds=[low, high])"
            )


def _ends(variable: Any) -> tuple[Array, Array]:
    """Return the least and the greatest values of a variable that is not `weights`."""
    bounds = variable.attributes["bounds"] or (-np.inf, np.inf)
    low, high = (np.broadcast_to(end, variable.shape).ravel(order="F") for end in bounds)
    return low, high


def _table(slope: Any, constraint: Any) -> Array:
    """Return a gradient as an array."""
    if slope is None:
        raise SolverError(f"{constraint} has no gradient at the solver's point")
    return np.asarray(getattr(slope, "toarray", lambda: slope)(), dtype=float)


def _slack(c: Array, d: float) -> float:
    return OUTWARD * (float(np.abs(c).max()) + abs(d))


def _values_of(mechanism: Mechanism, group: Sequence[int]) -> AdditiveQuery:
    """Return the query that tells the place of the joint value of some records."""
    space = mechanism.space
    steps = dict.fromkeys(range(space.records), 0)
    step = 1
    for record in reversed(group):
        steps[record] = step
        step *= space.shape[record]
    return AdditiveQuery(
        space, [[steps[i] * v for v in range(size)] for i, size in enumerate(space.shape)]
    )


def _priced(constraints: Iterable[Any], weights: cp.Variable) -> tuple[Array, float]:
    """Return C^T eta and <eta, d> + max -<T^T eta, u> for the tangents C w + T u <= d (or = d)."""
    shift, constant = np.zeros(weights.shape[0]), 0.0
    others: dict[Any, Array] = {}
    for constraint in constraints:
        price = np.ravel(constraint.dual_value, order="F")
        if isinstance(constraint, Inequality):
            price = np.maximum(price, 0.0)
        constant -= float(price @ np.ravel(constraint.expr.value, order="F"))
        for variable, slope in constraint.expr.grad.items():
            slopes = _table(slope, constraint).reshape(variable.size, -1) @ price
            constant += float(slopes @ np.ravel(variable.value, order="F"))
            if variable.id == weights.id:
                shift += slopes
            else:
                others[variable] = others.get(variable, 0.0) + slopes
    for variable, slopes in others.items():
        low, high = _ends(variable)
        constant += float(np.maximum(-slopes * low, -slopes * high).sum())
    return shift, constant
