"""`AdversaryClass`: the adversaries that a view of a group allows, and how to get in among them.

Adversaries are distributions w on N groups of contexts with F(w) = H(w) + sum_g w_g log m_g >= b
and <w, c_j> <= d_j + t_j F(w), the view's limits; an equation comes as two opposite limits. The set
is convex. So whoever is outside meets it on the way to its center, an adversary with slack in
everything that leaves any.

Searches work on floats. In the end the kernel decides who is an adversary, and where equations have
to hold exactly, fractions are found that meet them: some of the weights follow from the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import mul
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat
from numpy.typing import NDArray
from scipy.linalg import qr

from cvxleak.audit.worst_adversary.group import LEAST, Group
from cvxleak.audit.worst_adversary.objective import HAIR
from cvxleak.core.errors import InfeasibleError, SolverError
from cvxleak.core.validation import Array
from cvxleak.iterative.entropy_floor import rounding
from cvxleak.iterative.formulas import entropy
from cvxleak.kernel.leakage import check_adversary
from cvxleak.kernel.numbers import RefusedError, added, law, precision, proved
from cvxleak.solvers.conic import attempt

__all__ = ["AdversaryClass"]


class AdversaryClass:
    """The adversaries of a group's view.

    Attributes
    ----------
    center : array, shape (N,)
        An adversary with slack in everything that leaves any; without limits, the uniform prior.

    Raises
    ------
    InfeasibleError
        There is no adversary; the message says by how much any prior misses what is known.
    """

    def __init__(self, group: Group) -> None:
        self.group, self.center = group, group.lumped.uniform()
        # By how much floor and balls have to be met in floats.
        self._margin = rounding(group.lumped.max_entropy)
        self._possible = np.ones(len(self.center), dtype=bool)
        limits, view = group.limits, group.view
        # The linear limits that leave slack, those that are equations, and the balls.
        self._most, self._equal = np.flatnonzero(limits.shares == 0).tolist(), []
        self._balls = np.flatnonzero(limits.shares).tolist()
        # Of a ball that small only the center is tried: floats cannot tell others apart.
        points = [view.limits[j] for j in self._balls if limits.bounds[j] <= self._margin]
        self._points = [ball.center(view.counts) for ball in points if ball.center is not None]
        # Scaled, so that units do not matter.
        size = np.abs(limits.coefficients).max(axis=1, initial=0.0)
        size = np.maximum(size, np.abs(limits.bounds))
        size[(size == 0) | (limits.shares > 0)] = 1.0
        self._c, self._d = limits.coefficients / size[:, None], limits.bounds / size
        if len(view.limits):
            self.center = self._doubtful(self._inside() if self._most else self.center)
            self.written(self.center)

    def meet(self, weights: Array) -> Array:
        """Return the first adversary, in floats, on the way from a distribution to the center."""
        w = self._onto_equations(weights)
        if self._slack(w) == -np.inf:
            w = self._onto_equations(0.9 * weights + 0.1 * self.center)
        low, high = 0.0, float(self._slack(w) < 0)
        while high - low > 1e-16 + 1e-9 * low:
            share = (low + high) / 2
            inside = self._slack((1 - share) * w + share * self.center) >= 0
            low, high = (low, share) if inside else (share, high)
        return (1 - high) * w + high * self.center

    def written(self, weights: Array) -> tuple[Array, list[Any]]:
        """Return an adversary near `weights`, in floats and as a file holds it.

        It is the first that the kernel accepts on the way to the center.

        Raises
        ------
        InfeasibleError
            The kernel does not even accept the center.
        """
        share = 0.0
        while True:
            mixed = (1 - share) * weights + share * self.center
            for held in self._ways(mixed):
                with precision():
                    exact = law([proved(x) for x in held])
                    try:
                        check_adversary(self.group.view, exact)
                    except RefusedError:
                        continue
                return np.array([_float(x) for x in exact]), held
            if share == 1.0:
                raise InfeasibleError(self._near())
            share = min(1.0, max(1e-13, 8 * share))

    # Where adversaries are -----------------------------------------------------------------------

    def _inside(self) -> Array:
        """Return a distribution with slack in all linear limits that leave any; find the equations.

        With w = q / a all slacks that can be positive can be 1; an inequality that no adversary
        misses by more than a hair is an equation.
        """
        import cvxpy as cp

        n, c, d = len(self.center), self._c[self._most], self._d[self._most]
        q, a, slack = cp.Variable(n), cp.Variable(), cp.Variable(n + len(d))
        rules: list[Any] = [slack >= 0, slack <= 1, a >= 1, a <= 1 / HAIR, cp.sum(q) == a]
        rules += [slack[:n] <= q, c @ q + slack[n:] <= d * a]
        status = attempt(cp.Problem(cp.Maximize(cp.sum(slack)), rules))
        if q.value is None or a.value is None or slack.value is None:
            if "infeasible" not in status:
                raise SolverError(f"adversaries: {status}")
            limits, linear = self.group.limits, self.group.limits.shares == 0
            missed = limits.coefficients[linear] @ q - limits.bounds[linear]
            rules = [cp.sum(q) == 1, q >= 0, missed <= a]
            attempt(cp.Problem(cp.Minimize(a), rules))
            raise InfeasibleError(
                "adversaries: no prior meets the constraints; every prior violates one of them by "
                f"at least {np.inf if a.value is None else float(a.value):.3g}"
            )
        free = slack.value > 0.5
        self._possible: NDArray[np.bool_] = free[:n]
        self._equal = np.array(self._most)[~free[n:]].tolist()
        self._most = np.array(self._most)[free[n:]].tolist()
        return self._onto_equations(q.value / a.value)

    def _doubtful(self, inside: Array) -> Array:
        """Return an adversary with much slack in floor and balls, and some in linear limits."""
        if self._points:
            return self._onto_equations(np.array(list(map(_float, self._points[0]))))
        center = self._onto_equations(self.group.lumped.uniform())
        if self._slack(center) > self._margin:
            return center
        most, found = self._most_doubtful()
        shares = (0.0, *10.0 ** np.arange(-10, 0))
        mixed = [(1 - share) * found + share * inside for share in shares]
        best = max([center, *mixed], key=self._slack)
        if not self._slack(best) >= -HAIR:
            raise InfeasibleError(self._why(min(most, 0.0)))
        return best

    def _most_doubtful(self) -> tuple[float, Array]:
        """Return the largest least slack of floor and balls, and a distribution that has it."""
        import cvxpy as cp

        where = np.flatnonzero(self._possible)
        w, slack = cp.Variable(len(where), nonneg=True), cp.Variable()
        doubt = cp.sum(cp.entr(w)) + self.group.lumped.log_multiplicity[where] @ w
        c, d, shares = self._c[:, where], self._d, self.group.limits.shares
        rules: list[Any] = [
            doubt - self.group.floor >= slack,
            self._equations[:, where] @ w == self._ends,
        ]
        rules += [c[j] @ w <= d[j] for j in self._most]
        rules += [shares[j] * doubt + d[j] - c[j] @ w >= slack for j in self._balls]
        status = attempt(cp.Problem(cp.Maximize(slack), rules))
        if w.value is None or slack.value is None:
            raise SolverError(f"adversaries: {status}")
        found = np.zeros(len(self.center))
        found[where] = np.maximum(w.value, 0.0)
        return float(slack.value), self._onto_equations(found)

    @property
    def _equations(self) -> Array:
        return np.vstack([np.ones(len(self.center)), self._c[self._equal]])

    @property
    def _ends(self) -> Array:
        return np.append(1.0, self._d[self._equal])

    def _slack(self, w: Array) -> float:
        """Return the least slack of a distribution in all but equations, less what rounding takes.

        It is negative where a limit is not met, and -inf where an equation is not.
        """
        if not np.abs(self._equations @ w - self._ends).max() <= HAIR:
            return -np.inf
        shares, floor = self.group.limits.shares, self.group.floor
        doubt = float(entropy(w, self.group.lumped.log_multiplicity))
        slack = self._d - self._c @ w + shares * doubt - np.where(shares > 0, self._margin, 1e-15)
        least = slack[[*self._most, *self._balls]].min(initial=np.inf)
        return float(min(least, doubt - floor - self._margin if floor > 0 else np.inf))

    def _onto_equations(self, weights: Array) -> Array:
        """Return weights, changed in proportion, for which the equations hold in floats."""
        if not len(self._d):
            return weights / weights.sum()
        w = np.where(self._possible, np.maximum(weights, LEAST), 0.0)
        w, table, ends = w / w.sum(), self._equations, self._ends
        missed = ends - table @ w
        while np.abs(missed).max() > 1e-16:
            # Newton's method for factors exp(<x, table>): no weight turns negative.
            change = np.linalg.lstsq((table * w) @ table.T, missed, rcond=1e-13)[0] @ table
            change -= change.max()
            for step in 0.5 ** np.arange(20):
                trial = w * np.exp(step * change)
                trial /= trial.sum()
                left = ends - table @ trial
                if np.abs(left).max() < np.abs(missed).max():
                    break
            else:
                break
            w, missed = trial, left
        return w

    # In fractions --------------------------------------------------------------------------------

    def _ways(self, weights: Array) -> Iterator[list[Any]]:
        """Yield lists that may stand for a distribution in a file."""
        for point in self._points:
            yield list(map(str, point))
            weights = np.array(list(map(_float, point)))
        if not self._equal:
            yield weights.tolist()
            return
        # An inequality may hold although, as an equation, it would be off by rounding.
        limits, held = self.group.view.limits, self._equal
        stated = [j for j in held if j + 1 in held and _opposite(limits[j], limits[j + 1])]
        for equations in (held, stated):
            found = self._exact(weights, equations)
            if found is not None:
                yield list(map(str, found))

    def _exact(self, weights: Array, equations: Sequence[int]) -> list[fmpq] | None:
        """Return weights that meet equations exactly; some columns of large ones are solved for."""
        limits = [self.group.view.limits[j] for j in equations]
        rows = [[fmpq(1)] * len(weights), *(limit.c for limit in limits)]
        sides = [fmpq(1), *(limit.bound for limit in limits)]
        # What is next to nothing is left out, so that the fractions are short.
        w = [proved(float(x)) for x in np.where(self._possible & (weights > 1e-30), weights, 0.0)]
        table = np.vstack([np.ones(len(w)), self._c[list(equations)]]) * weights
        table /= np.maximum(np.abs(table).max(axis=1, keepdims=True), 1e-300)
        decomposition: Any = qr(table, mode="r", pivoting=True)
        triangle, order = decomposition
        sizes = np.abs(np.diag(triangle))
        columns = [int(g) for g in order[: np.sum(sizes > 1e-11 * sizes[0])]]
        for g in columns:
            w[g] = fmpq(0)
        system = fmpq_mat(
            [
                [*(row[g] for g in columns), side - added(list(map(mul, w, row)))]
                for row, side in zip(rows, sides, strict=True)
            ]
        )
        solved, rank = system.rref()
        last = len(columns)
        if rank != last or solved[last - 1, last - 1] != 1:
            return None
        for place, g in enumerate(columns):
            w[g] = solved[place, last]
        return w if min(w) >= 0 else None

    # What is wrong -------------------------------------------------------------------------------

    def _why(self, slack: float) -> str:
        if not self._balls:
            return (
                f"entropy_floor: found {self.group.floor!r} nats; no prior that meets the other "
                f"constraints has more than {self.group.floor + slack!r} nats"
            )
        return (
            "adversaries: no prior meets the entropy floor, the relative-entropy balls and the "
            f"other constraints; each misses one of them by at least {-slack:.3g} nats"
        )

    def _near(self) -> str:
        doubt = float(entropy(self.center, self.group.lumped.log_multiplicity))
        away = [
            f" and is {float(self._c[j] @ self.center) - doubt!r} from its reference, which has "
            f"the radius {float(self._d[j])!r}"
            for j in self._balls
        ]
        return (
            "adversaries: no prior was found that provably meets the constraints, although some "
            f"meet them up to rounding; the nearest one has entropy {doubt!r} for the floor "
            f"{self.group.floor!r}{''.join(away)}; if equations are redundant, state each only "
            "once, or use at_least and at_most slightly apart"
        )


def _opposite(one: Any, other: Any) -> bool:
    """Whether two limits are an equation together."""
    return one.bound == -other.bound and all(x == -y for x, y in zip(one.c, other.c, strict=True))


def _float(x: fmpq) -> float:
    return int(x.p) / int(x.q)
