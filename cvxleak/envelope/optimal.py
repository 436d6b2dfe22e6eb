"""The mechanism of largest linear utility under a bound on pointwise maximal leakage."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linprog
from scipy.sparse import block_array, coo_array, eye_array, kron

from cvxleak.core.clock import Clock
from cvxleak.core.errors import SolverError, ValidationError
from cvxleak.core.validation import Array, frozen_array, label_tuple, real_number
from cvxleak.envelope.statement import read_candidate
from cvxleak.kernel.numbers import precision
from cvxleak.measures.leakage import pml
from cvxleak.measures.pointwise import pml_limit
from cvxleak.model import Channel, Prior, as_prior
from cvxleak.problem import Bound, Gap, Problem, Stopped
from cvxleak.problem.problem import Found, Once, Search, Toward, mixtures
from cvxleak.proofs.pml_mechanism import prove

if TYPE_CHECKING:
    import cvxpy as cp

__all__ = ["PMLMechanism", "optimal_pml_mechanism"]

MARGIN = 1e-13
"""Relative distance that the witness keeps from the bound on its leakage."""

NOISE = 1e-12
"""Outputs that no input has with a larger probability are left out."""

LARGE = 5000
"""Number of entries of the channel from which on the simplex method takes longer."""


@dataclass(frozen=True, eq=False)
class PMLMechanism(Problem):
    """The largest expected utility E u(X, Y) of a channel whose outputs all have PML <= epsilon.

    maximize sum_xy p(x) q(y|x) u(x, y) subject to q(y|x) <= e^epsilon p(y): a linear program.

    Parameters
    ----------
    prior : Prior or array_like, shape (k,)
        The distribution of the input. Inputs of probability zero are ignored and not constrained.
    utility : array_like, shape (k, m)
        u(x, y): the utility of output y if the input is x; any real number.
    epsilon : float
        Not negative, in nats.
    outputs : iterable of hashable, optional
        m labels. If left out, those of the prior if m = k, otherwise 0, 1, ...

    Raises
    ------
    ValidationError
        If the prior and the utility do not match, or a number is out of range.

    Notes
    -----
    ENVELOPE section II-C (epsilon-PML) and V-A. If every output leaks at most epsilon, so does
    every output of a post-processing (its Theorem 3), so the envelope of the optimal channel is at
    most epsilon.

    The bound's `lower` is the utility of the `witness`, a `Channel` that meets the bound exactly;
    `upper` is the dual function at the certificate's multipliers. HiGHS solves the program; a time
    limit does not interrupt it.

    A candidate for `check` is a channel, its rows in the order of the prior's outcomes or labeled
    by them.

    Examples
    --------
    The PML-extremal mechanism has the largest mutual information in the high-privacy regime
    (ENVELOPE V-A). That is convex, so the mechanism is also optimal for its tangent there, the
    linear utility log( q(y|x) / q(y) ):

    >>> import numpy as np
    >>> from cvxleak.measures import mutual_information
    >>> from cvxleak.mechanisms import pml_extremal
    >>> from cvxleak.envelope import PMLMechanism
    >>> prior = np.array([0.3, 0.3, 0.4])
    >>> mechanism = pml_extremal(prior, 0.1)
    >>> bound = PMLMechanism(prior, np.log(mechanism.matrix / prior), 0.1).solve()
    >>> bool(abs(bound.upper - mutual_information(mechanism, prior)) < 1e-9)
    True
    >>> statement = PMLMechanism([0.5, 0.5], np.eye(2), np.log(1.5))
    >>> print(statement.check([[0.7, 0.3], [0.3, 0.7]]))
    feasible; value 0.7 utility
    proved optimum: 0.75 to 0.75 utility; the candidate falls short by 0.05 to 0.05
    """

    kind = "pml-mechanism"
    name = "utility"
    unit = "utility"
    maximize = True
    tolerance = 1e-9
    convex = True
    information = ("epsilon",)

    prior: Prior
    utility: Array
    epsilon: float
    outputs: tuple[Hashable, ...]

    def __init__(
        self,
        prior: Prior | ArrayLike,
        utility: ArrayLike,
        epsilon: float,
        outputs: Iterable[Hashable] | None = None,
    ) -> None:
        worth = frozen_array(utility, "utility", 2)
        if worth.size == 0 or not np.isfinite(worth).all():
            raise ValidationError(f"utility: found shape {worth.shape}; finite numbers are needed")
        law = as_prior(prior, len(worth))
        same = outputs is None and worth.shape[0] == worth.shape[1]
        labels = law.labels if same else label_tuple(outputs, worth.shape[1], "outputs")
        for name, value in {
            "prior": law,
            "utility": worth,
            "epsilon": real_number(epsilon, "epsilon", 0.0, 1000.0),
            "outputs": labels,
        }.items():
            object.__setattr__(self, name, value)

    @property
    def scale(self) -> float:
        """The largest |u|, if it is more than 1."""
        return max(1.0, float(np.abs(self.utility).max()))

    def _search(self) -> Search:
        return Once(self._run)

    def _run(self, gap: Gap, clock: Clock) -> tuple[Found, Stopped]:
        p = self.prior.probabilities
        support = np.flatnonzero(p)
        size = self.scale
        problem = {
            "prior": p.tolist(),
            "utility": self.utility.tolist(),
            "epsilon": self._threshold,
        }
        scaled, level = self.utility[support] / size, math.exp(self._threshold)
        rows, z = np.zeros(self.utility.shape), np.zeros(self.utility.shape)
        lower, upper, witness, proof = -math.inf, math.inf, {}, {}
        # Both end at a vertex, the interior point method less precisely.
        methods = ["highs-ipm", "highs-ds"] if self.utility.size > LARGE else ["highs-ds"]
        method = ""
        for method in methods:
            matrix, multipliers = _linear_program(p[support], scaled, level, method)
            # What the inputs that never occur are mapped to does not matter.
            repaired = self._repaired(matrix, p[support])
            rows[:] = repaired[0]
            rows[support] = repaired
            z[support] = multipliers * size
            witness, proof = {"matrix": rows.tolist()}, {"multipliers": z.tolist()}
            with precision():
                lower, upper = prove(problem, witness, proof)
            if gap.closed(lower, upper):
                break
        channel = Channel(rows, self.prior.labels, self.outputs)
        size = "because it is small" if len(methods) == 1 else "because it is large"
        way = "interior-point" if method == "highs-ipm" else "dual simplex"
        stats = {"method": f"one linear program by the {way} method of HiGHS, {size}"}
        parts = (problem, witness, proof)
        return Found(lower, upper, channel, parts, stats=stats), Stopped.ROUNDING

    def _measure(self, candidate: Channel | ArrayLike) -> tuple[float, dict[str, float]]:
        channel, violations = read_candidate(candidate, self.prior.labels)
        if channel.shape != self.utility.shape:
            raise ValidationError(
                f"candidate: found shape {channel.shape}; {self.utility.shape} is needed"
            )
        value = float(self.prior.probabilities @ (channel.matrix * self.utility).sum(axis=1))
        excess = float(pml(channel, self.prior).max()) - self.epsilon
        return value, violations | {"leakage is at most epsilon": max(excess, 0.0)}

    def _toward(self, candidate: Channel | ArrayLike, bound: Bound) -> Toward:
        rows = read_candidate(candidate, self.prior.labels)[0].matrix
        # Of every output a part, so that specks of one input alone are soon drowned.
        constant = (self.prior.probabilities @ rows + 1 / rows.shape[1]) / 2
        return mixtures(
            rows,
            np.tile(constant, (len(rows), 1)),
            lambda matrix: Channel(matrix, self.prior.labels, self.outputs),
            lambda matrix: {"matrix": matrix.tolist()},
        )

    def to_cvxpy(self) -> cp.Problem:
        """Return the problem in plain CVXPY, with the channel as its variable ``channel``.

        Examples
        --------
        >>> import numpy as np
        >>> from cvxleak.envelope import PMLMechanism
        >>> problem = PMLMechanism([0.5, 0.5], np.eye(2), np.log(1.8)).to_cvxpy()
        >>> round(float(problem.solve(solver="HIGHS")), 6)
        0.9
        """
        import cvxpy as cp

        from cvxleak import constraints

        q = cp.Variable(self.utility.shape, name="channel")
        worth = self.prior.probabilities[:, None] * self.utility
        private = constraints.pml(q, self.prior, self._threshold)
        return cp.Problem(
            cp.Maximize(cp.sum(cp.multiply(worth, q))), constraints.row_stochastic(q) + private
        )

    @property
    def _threshold(self) -> float:
        """Epsilon, or a bit more than an outcome can leak: beyond that it means the same."""
        return min(self.epsilon, pml_limit(self.prior) + math.log(2))

    def _repaired(self, matrix: Array, p: Array) -> Array:
        """Return rows that are distributions and leak less than epsilon.

        Mixed with the channel that ignores its input, the distribution of the output stays what it
        is.
        """
        # Outputs that are nothing but rounding may leak anything.
        rows = np.where(matrix.max(axis=0) > NOISE, np.maximum(matrix, 0.0), 0.0)
        rows /= rows.sum(axis=1, keepdims=True)
        output = p @ rows / p.sum()
        seen = output > 0
        most = float((rows[:, seen] / output[seen]).max())
        level = math.exp(self._threshold) * (1 - MARGIN)
        if most <= level:
            return rows
        share = min((level - 1) / (most - 1), 1.0) if level > 1 else 0.0
        return output + share * (rows - output)


def optimal_pml_mechanism(
    prior: Prior | ArrayLike,
    utility: ArrayLike,
    epsilon: float,
    outputs: Iterable[Hashable] | None = None,
    **options: Any,
) -> Bound:
    """Find the mechanism of largest utility under epsilon-PML: `PMLMechanism(...).solve(...)`.

    Parameters
    ----------
    prior, utility, epsilon, outputs
        As for `PMLMechanism`.
    **options
        As for `Problem.solve`.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.envelope import optimal_pml_mechanism
    >>> bound = optimal_pml_mechanism([0.5, 0.5], np.eye(2), np.log(1.5))
    >>> bound.witness.matrix.round(6)
    array([[0.75, 0.25],
           [0.25, 0.75]])
    """
    return PMLMechanism(prior, utility, epsilon, outputs).solve(**options)


def _linear_program(p: Array, utility: Array, level: float, method: str) -> tuple[Array, Array]:
    """Return a solution and multipliers of q(y|x) <= level r(y), with r a variable."""
    n, m = utility.shape
    channel = eye_array(n * m)
    output = kron(coo_array(np.ones((n, 1))), eye_array(m))
    leakage = block_array([[channel, -level * output]], format="csr")
    sums = block_array(
        [[kron(eye_array(n), coo_array(np.ones((1, m)))), coo_array((n, m))]], format="csr"
    )
    law = block_array([[kron(coo_array(p[None, :]), eye_array(m)), -eye_array(m)]], format="csr")
    program = {
        "c": np.concatenate([-(p[:, None] * utility).ravel(), np.zeros(m)]),
        "A_ub": leakage,
        "b_ub": np.zeros(n * m),
        "A_eq": block_array([[sums], [law]], format="csr"),
        "b_eq": np.concatenate([np.ones(n), np.zeros(m)]),
    }
    result: Any = linprog(**program, method=method)
    if result.x is None:
        raise SolverError(f"HiGHS: {result.message}")
    matrix = np.reshape(result.x[: n * m], (n, m))
    return matrix, np.maximum(-np.reshape(result.ineqlin.marginals, (n, m)), 0.0)
