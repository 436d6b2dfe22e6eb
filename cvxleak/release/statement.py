"""`ReleaseProblem`: the optimal answer to a request if recipients may pool their answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.errors import InfeasibleError, ValidationError
from cvxleak.core.validation import Array, label_tuple, whole_number
from cvxleak.iterative.release_terms import ReleaseTerms
from cvxleak.problem import Problem
from cvxleak.problem.bound import unit_scale
from cvxleak.problem.candidates import candidate_array, read_rows
from cvxleak.release.coalitions import Coalition
from cvxleak.release.joint import ReleaseJoint

__all__ = ["ReleaseProblem", "Utility", "information", "joint_information", "output_labels"]

Utility = Literal["distortion", "information"]

ROUNDING = 1e-14
"""A budget this near to I(S;X), in nats, is read as I(S;X): a float can tell no more."""


@dataclass(frozen=True, eq=False)
class ReleaseProblem(Problem):
    """The best answer to a request within the leakage budgets of all coalitions.

    Over the kernels k(r̂|z,x),

        | minimize  E d(R,R̂) + sum_c price_c I(R̂,S_c;X)    (`ReleaseDistortion`)
        | maximize  I(R̂;R) - sum_c price_c I(R̂,S_c;X)      (`ReleaseInformation`)
        | subject to  I(R̂,S_c;X) <= budget_c for each coalition c,

    where S_c is the part of the earlier outputs Z that coalition c has seen: nothing for the
    requesting party alone, everything for all parties together (SEQUENTIAL, problems (1), (2) and
    (4), section VIII).

    Made by `release_problem` (budgets) and `release_lagrangian` (prices).

    Attributes
    ----------
    joint : ReleaseJoint
        The distribution of R, Z and X.
    outputs : tuple of hashable
        The labels of R̂.
    coalitions : tuple of Coalition
        Budgets in nats, prices per nat.
    budget_unit : {"nats", "bits"}
        The unit in which the budgets were given; shadow prices and an information use it, too.

    Notes
    -----
    The `witness` is the kernel, an array of shape (Z_1, ..., Z_j, X, R̂), exactly feasible as the
    certificate reads it: each row is divided by its sum. If the budget of one coalition is I(S;X),
    p(r̂|s) - p(r̂|s,x), which is zero up to rounding, is added to k(r̂|z,x). If this holds for
    several coalitions, the kernel depends only on what all of them know. Rows of probability zero
    are set to the distribution of R̂ given z.

    `shadow_prices` are the derivatives of the optimal value with respect to the budgets, by name
    (``"epsilon"``, ``"delta"``): -mu_1 and -mu_2 of the paper for a distortion; infinite if a
    coalition already knows as much as its budget allows. `stats` has ``multipliers``, mu by name,
    and ``iterations``.

    A budget within 1e-14 nats of I(S;X) is read as equal to it: then R̂ and X are independent given
    S. `solve` raises `InfeasibleError` for a budget below what the coalition knows already (the
    message gives that number), and `ValidationError` for a problem that is too large to prove. The
    result at the time limit is proved after it, which takes some ten seconds for the largest
    problems.

    A candidate for `check` is p(r̂|z,x), of shape (Z_1, ..., Z_j, X, R̂) or (Z, X, R̂). Its rows
    need not be distributions: the result says how far they are from it. The value is that of their
    positive parts, divided by their sums.

    Examples
    --------
    >>> from cvxleak.release import ReleaseProblem, release_problem
    >>> problem = release_problem([[[0.45, 0.05]], [[0.05, 0.45]]], epsilon=0.1, delta=0.2)
    >>> isinstance(problem, ReleaseProblem), problem.coalitions[0].name, problem.outputs
    (True, 'epsilon', (0, 1))
    """

    joint: ReleaseJoint
    outputs: tuple[Hashable, ...]
    coalitions: tuple[Coalition, ...]
    budget_unit: str

    @classmethod
    @abstractmethod
    def within(cls, joint: ReleaseJoint | ArrayLike) -> Self:
        """Return the problem within budgets."""

    @classmethod
    def constructor(cls) -> Callable[..., Self]:
        """Return `within`, since users give budgets, not coalitions."""
        return cls.within

    @abstractmethod
    def value(self, rows: Array) -> float:
        """Return the objective at a kernel's rows, in floating point: in units of d, or in nats."""

    def paid(self, rows: Array) -> float:
        """Return sum_c price_c I(R̂,S_c;X) at a kernel's rows."""
        law = self.joint.flat.sum(axis=0)
        return sum(
            coalition.price * (float(leakage) + information(law / law.sum(), coalition.array))
            for coalition, leakage in zip(
                self.coalitions, self.terms().information(rows), strict=True
            )
            if coalition.price > 0
        )

    def answers(self, rows: Array) -> Array:
        """Return the joint distribution of R̂ and R at a kernel's rows, shape (R̂, R)."""
        terms, law = self.terms(), self.joint.flat / self.joint.flat.sum()
        return rows.T @ np.moveaxis(law, 0, 2)[terms.z, terms.x]

    def read_rows(self, candidate: ArrayLike) -> tuple[Array, dict[str, float]]:
        """Return a candidate's rows for all (z, x) of positive probability, as distributions."""
        _, sizes, datasets = self.joint.shape
        flat = (*self.joint.flat.shape[1:], len(self.outputs))
        given = candidate_array(candidate, {(*sizes, datasets, len(self.outputs)), flat})
        return read_rows(self.terms().rows(given.reshape(flat)))

    def _measure(self, candidate: ArrayLike) -> tuple[float, dict[str, float]]:
        kernel, violations = self.read_rows(candidate)
        terms = self.terms()
        scale = unit_scale(self.budget_unit)
        leakages = terms.information(kernel)
        for coalition, room, leakage in zip(self.coalitions, self.rooms(), leakages, strict=True):
            if np.isfinite(room):
                seen = {"epsilon": "R̂", "delta": "R̂,Z"}.get(coalition.name, "R̂,S")
                excess = (float(leakage) - float(room)) / scale
                violations[f"I({seen};X) <= {coalition.name}"] = max(0.0, excess)
        return self.value(kernel), violations

    def to_kernel(self, rows: ArrayLike) -> Array:
        """Return the rows of positive probability as a kernel of shape (Z_1, ..., Z_j, X, R̂).

        Examples
        --------
        >>> from cvxleak.release import release_problem
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
        """Return how much each coalition may still learn: budget - I(S;X), in nats.

        Exactly 0 if it is 0 up to rounding.

        Raises
        ------
        InfeasibleError
            Less than 0.
        ValidationError
            A positive budget that is too small for floating point.
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
                scale = unit_scale(self.budget_unit)
                raise InfeasibleError(
                    f"{coalition.name}: found {coalition.budget / scale!r}; the earlier outputs "
                    f"that this coalition has seen already leak {known / scale!r} "
                    f"{self.budget_unit}, so the budget must be at least that"
                )
            rooms.append(0.0 if abs(room) <= ROUNDING else room)
        return np.array(rooms)


def output_labels(joint: ReleaseJoint, outputs: int | Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Return the labels of R̂: those given, or of so many, first those of the requests."""
    if isinstance(outputs, Iterable):
        labels = tuple(outputs)
        labels = label_tuple(labels, len(labels), "outputs")
    else:
        used, count = joint.requests, whole_number(outputs, "outputs", 1)
        free = (n for n in range(len(used) + count + len(used)) if n not in used)
        labels = (*used[:count], *(next(free) for _ in range(count - len(used))))
    if labels == ():
        raise ValidationError("outputs: found none; at least one is needed")
    return labels


def information(law: Array, classes: np.ndarray) -> float:
    """Return I(S;X) of a distribution p(z,x) and classes of z; exactly 0 for a single class."""
    if classes.max() == 0:
        return 0.0
    joint = np.zeros((classes.max() + 1, law.shape[1]))
    np.add.at(joint, classes, law)
    return joint_information(joint)


def joint_information(joint: Array) -> float:
    """Return the mutual information of a joint distribution."""
    independent = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    positive = joint > 0
    return float(joint[positive] @ np.log(joint[positive] / independent[positive]))
