"""Convex relaxations of the audit: CVXPY programs that bound every adversary's leakage from above.

Each is a concave maximization over the lumped weights w of an adversary, whose value is at least
the leakage I(A;Y) of every feasible w. User constraints on w make the class of adversaries smaller,
and the value remains an upper bound. A solver's optimal value may be off by its tolerance, in
either direction. `Relaxation.upper` is not affected by this: it is the dual function at the
solver's multipliers, evaluated analytically, and a valid bound whatever the multipliers.
"""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar

import cvxpy as cp
import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr, xlogy

from cvxleak.constraints import entropy_floor as entropy_floor_of
from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import Array, frozen_array, instance, whole_number
from cvxleak.expressions import entropy
from cvxleak.model import Lumped
from cvxleak.relaxations.program import Relaxation
from cvxleak.relaxations.slabs import slab_vertices

__all__ = [
    "DatasetCapacityRelaxation",
    "PosteriorCellRelaxation",
    "Relaxation",
    "TimeSharingRelaxation",
]


class PosteriorCellRelaxation(Relaxation):
    """A node of the branch and bound: each posterior of the record is confined to a simplex.

    With s_{a,y} the joint distribution of record and output and V_y the vertices of the cell of
    output y,

        maximize H(A) - sum_{y,j} theta_{y,j} H(V_{y,j})
        subject to s_{.,y} = sum_j theta_{y,j} V_{y,j}, theta >= 0, F(w) >= b

    is at least I(A;Y) = H(A) - sum_y s_y H(rho_y) of every adversary whose posteriors rho_y are in
    the cells: -H is convex, so it lies below its interpolation. Without cells, each posterior
    ranges over the whole simplex: this is the root. Its bound is max H(A) under the floor, hence
    log|A| unless user constraints restrict the record's distribution. For small cells the bound is
    tight.

    Parameters
    ----------
    lumped : Lumped
    entropy_floor : float
    cells : array_like, shape (|Y|, k, k), optional
        Row j of ``cells[y]`` is a vertex, a distribution on the k values. Adversaries with a
        posterior outside its cell are excluded.

    Raises
    ------
    ValidationError
        Cells that are not simplices of distributions.
    InfeasibleError
        b above log|X|.

    Notes
    -----
    The audit computes the same bound, in about a millisecond, with a specialized method
    (`cvxleak.audit.worst_adversary.dual`). This class is for user constraints.

    Examples
    --------
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> from cvxleak.relaxations.audit import PosteriorCellRelaxation
    >>> parity = AdditiveQuery(RecordSpace.binary(4), [(0, 1)] * 4, modulus=2)
    >>> lumped = Mechanism(parity, [[0.7, 0.3], [0.3, 0.7]]).lumped(0)
    >>> root = PosteriorCellRelaxation(lumped, entropy_floor=2.5)
    >>> round(root.solve(), 4)  # log 2
    0.6931
    >>> half = [[0.7, 0.3], [0.5, 0.5]], [[0.5, 0.5], [0.3, 0.7]]
    >>> root.set_cells(half)
    >>> round(root.solve(), 4)
    0.0578
    """

    _sigma: ClassVar[float] = 1.0

    def __init__(
        self, lumped: Lumped, entropy_floor: float, cells: ArrayLike | None = None
    ) -> None:
        instance(lumped, Lumped, "lumped")
        k, outputs = len(lumped.values), lumped.rows.shape[1]
        self._vertices = [cp.Parameter((k, k), nonneg=True) for _ in range(outputs)]
        self._entropies = [cp.Parameter(k, nonneg=True) for _ in range(outputs)]
        super().__init__(lumped, entropy_floor)
        whole = np.broadcast_to(np.eye(k), (outputs, k, k))
        self.set_cells(whole if cells is None else cells)

    def set_cells(self, cells: ArrayLike) -> None:
        """Confine the posteriors to other cells, without recompiling the program.

        Raises
        ------
        ValidationError
            Cells that are not simplices of distributions.
        """
        k, outputs = len(self.lumped.values), self.lumped.rows.shape[1]
        vertices = frozen_array(cells, "cells", 3)
        if vertices.shape != (outputs, k, k):
            raise ValidationError(
                f"cells: found shape {vertices.shape}; {(outputs, k, k)} is needed"
            )
        if (vertices < 0).any() or np.abs(vertices.sum(axis=2) - 1).max() > 1e-12:
            raise ValidationError(
                "cells: found vertices that are not distributions on the record's values"
            )
        if (np.linalg.matrix_rank(vertices) < k).any():
            raise ValidationError("cells: found one whose vertices are not affinely independent")
        for parameter, entropies, cell in zip(
            self._vertices, self._entropies, vertices, strict=True
        ):
            parameter.value, entropies.value = cell, entr(cell).sum(axis=1)

    def _state(self) -> tuple[cp.Expression, list[cp.Constraint], cp.Constraint]:
        lumped, k = self.lumped, len(self.lumped.values)
        member = lumped.value_index[None, :] == np.arange(k)[:, None]
        theta = [cp.Variable(k, nonneg=True) for _ in self._vertices]
        self._rays = [
            cp.Constant(member * column) @ self.weights == vertices.T @ share
            for column, vertices, share in zip(lumped.rows.T, self._vertices, theta, strict=True)
        ]
        interpolated = cp.sum(
            cp.hstack([h @ share for h, share in zip(self._entropies, theta, strict=True)])
        )
        floor = entropy_floor_of(self.weights, self.entropy_floor, lumped)[0]
        return entropy(self._marginal) - interpolated, list(self._rays), floor

    def _linear(self) -> list[Array]:
        # CVXPY's sign of an equality's multiplier is nothing to rely on: either is a bound.
        duals = np.array([ray.dual_value for ray in self._rays])
        return [self._coefficients(duals), self._coefficients(-duals)]

    def _coefficients(self, nu: Array) -> Array:
        """Return c from nu, moved by constants so that <V_j, nu> >= -H(V_j) just holds."""
        vertices = np.array([parameter.value for parameter in self._vertices])
        missing = -entr(vertices).sum(axis=2) - np.einsum("yja,ya->yj", vertices, nu)
        nu = nu + missing.max(axis=1, keepdims=True)
        return (self.lumped.rows * nu.T[self.lumped.value_index]).sum(axis=1)[None]


class DatasetCapacityRelaxation(Relaxation):
    """The capacity of the whole dataset's channel under the floor, max I(X;Y) s.t. F(w) >= b.

    It is at least I(A;Y) for every record A, since A is a part of the dataset X:

        maximize H(Y) - sum_g w_g H(R_g)    subject to F(w) >= b.

    The bound is tight if the adversary knows the rest of the dataset or it contributes little. If
    the output reveals much about the other records, it is too large, by at most the capacity of the
    query's channel.

    Parameters
    ----------
    lumped : Lumped
        The lumped problem of any record: without user constraints the bound is the same for all.
    entropy_floor : float

    Raises
    ------
    InfeasibleError
        b above log|X|.

    Notes
    -----
    The dual function, min over output distributions t and lam >= 0 of
    lam log sum_g m_g exp(D(R_g || t) / lam) - lam b, is what `upper` evaluates.

    Examples
    --------
    >>> from cvxleak.model import AdditiveQuery, Mechanism, RecordSpace
    >>> from cvxleak.relaxations.audit import DatasetCapacityRelaxation
    >>> parity = AdditiveQuery(RecordSpace.binary(4), [(0, 1)] * 4, modulus=2)
    >>> lumped = Mechanism(parity, [[0.7, 0.3], [0.3, 0.7]]).lumped(0)
    >>> round(DatasetCapacityRelaxation(lumped, entropy_floor=2.5).solve(), 4)  # log 2 - h(0.3)
    0.0823
    """

    def _state(self) -> tuple[cp.Expression, list[cp.Constraint], cp.Constraint]:
        rows = self.lumped.rows
        floor = entropy_floor_of(self.weights, self.entropy_floor, self.lumped)[0]
        noise = entr(rows).sum(axis=1)
        return entropy(self.weights @ rows) - self.weights @ noise, [], floor

    def _linear(self) -> list[Array]:
        rows = self.lumped.rows
        law = np.asarray(self.weights.value) @ rows
        return [(xlogy(rows, rows) - xlogy(rows, law)).sum(axis=1)[None]]


class TimeSharingRelaxation(Relaxation):
    """An upper bound on the leakage with time sharing between conditional distributions.

    Add a random variable J to the secret A, and let the contexts have the distribution v_{A,J}. The
    leakage I(A,J;Y) under the averaged floor H(A) + E[H(v_{A,J}) + <v_{A,J}, log m>] >= b is at
    least L(b), since one distribution per value of A is a special case. Its dual,

        min over output distributions t and lam >= 0 of lam log sum_a exp(phi_a / lam) - lam b,
        phi_a = max over v of D(v R_a || t) + lam (H(v) + <v, log m_a>),

    is convex in (t, lam), but phi_a is the maximum of the sum of a convex and a concave function of
    v. So the simplex of v_a is divided into slabs {low <= <v_a, x> <= high} of a functional x, and
    in each slab -H(v R_a) is replaced by its least concave majorant, which is determined by the
    slab's vertices P. This gives one convex program,

        maximize H(Y) - sum_{a,j,P} theta_{a,j,P} H(P R_a)
        subject to w_{a,j} = sum_P theta_{a,j,P} P, theta >= 0, w_a = sum_j w_{a,j},
        and H(A) + sum_{a,j} |w_{a,j}| H(w_{a,j} / |w_{a,j}|) + <w, log m> >= b.

    Its value is an upper bound on L(b) for any functional and any number of slabs. With one slab it
    is the `DatasetCapacityRelaxation`. With narrower slabs it decreases to the value with time
    sharing if the functional distinguishes the rows, and to a larger value otherwise. If time
    sharing helps the adversary, a gap to L(b) remains.

    Parameters
    ----------
    lumped : Lumped
    entropy_floor : float
    pieces : int
        Number of slabs for each value of the record.
    functional : array_like, shape (N,), optional
        The vector x; if left out, the mean of the output's index 0, 1, ... under each row.

    Raises
    ------
    ValidationError
        A functional that does not consist of N finite numbers.
    InfeasibleError
        b above log|X|.

    Examples
    --------
    >>> from cvxleak.mechanisms import truncated_geometric
    >>> from cvxleak.model import Mechanism
    >>> from cvxleak.relaxations.audit import TimeSharingRelaxation
    >>> from cvxleak.queries import count
    >>> lumped = Mechanism(count(5), truncated_geometric(5, 0.5)).lumped(0)
    >>> for pieces in (1, 8):
    ...     bound = TimeSharingRelaxation(lumped, entropy_floor=3.0, pieces=pieces).solve()
    ...     print(round(bound, 3))  # the leakage is 0.14003
    0.231
    0.156
    """

    def __init__(
        self,
        lumped: Lumped,
        entropy_floor: float,
        pieces: int = 8,
        functional: ArrayLike | None = None,
    ) -> None:
        self._pieces = whole_number(pieces, "pieces", 1)
        places = np.arange(instance(lumped, Lumped, "lumped").rows.shape[1])
        given = lumped.rows @ places if functional is None else functional
        self._x = frozen_array(given, "functional", 1)
        if self._x.shape != (len(lumped.rows),):
            raise ValidationError(
                f"functional: found shape {self._x.shape}; ({len(lumped.rows)},) is needed"
            )
        super().__init__(lumped, entropy_floor)

    def _state(self) -> tuple[cp.Expression, list[cp.Constraint], cp.Constraint]:
        lumped = self.lumped
        constraints: list[cp.Constraint] = []
        negentropies: list[cp.Expression] = []
        entropies: list[cp.Expression] = [entropy(self._marginal)]
        self._slabs: list[list[tuple[Array, Array, cp.Constraint]]] = []
        for groups in self._groups:
            x, rows = self._x[groups], lumped.rows[groups]
            ends = np.linspace(x.min(), x.max(), self._pieces + 1) if np.ptp(x) else x[[0, 0]]
            parts, slabs = [], []
            for low, high in pairwise(ends):
                slab = slab_vertices(x, rows, low, high)
                vertices = np.zeros((len(slab.share), len(groups)))
                places = np.arange(len(vertices))
                np.add.at(vertices, (places, slab.first), slab.share)
                np.add.at(vertices, (places, slab.second), 1 - slab.share)
                theta = cp.Variable(len(vertices), nonneg=True)
                part = cp.Variable(len(groups), nonneg=True)
                mixed = part == vertices.T @ theta
                constraints.append(mixed)
                negentropies.append(slab.negentropy @ theta)
                mass = cp.Constant(np.ones((len(groups), len(vertices)))) @ theta
                entropies.append(cp.Constant(-np.ones(len(groups))) @ cp.rel_entr(part, mass))
                parts.append(part)
                slabs.append((vertices, slab.negentropy, mixed))
            self._slabs.append(slabs)
            constraints.append(self.weights[groups] == sum(parts))
        doubt = cp.sum(cp.hstack(entropies)) + self.weights @ lumped.log_multiplicity
        objective = entropy(self.weights @ lumped.rows) + cp.sum(cp.hstack(negentropies))
        return objective, constraints, doubt >= self.entropy_floor

    def _linear(self) -> list[Array]:
        rows = self.lumped.rows
        surprise = -xlogy(rows, np.asarray(self.weights.value) @ rows).sum(axis=1)
        results = []
        for sign in (1, -1):
            c = np.full((self._pieces, len(rows)), -np.inf)
            for groups, slabs in zip(self._groups, self._slabs, strict=True):
                for j, (vertices, negentropy, mixed) in enumerate(slabs):
                    nu = sign * np.asarray(mixed.dual_value)
                    # Moved by a constant so that <P, nu> >= -H(P R) just holds at every vertex.
                    nu = nu + (negentropy - vertices @ nu).max()
                    c[j, groups] = nu + surprise[groups]
            results.append(c)
        return results
