"""Maximal record leakage by alternating between marginal and conditionals (LEAKAGE Algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import entr

from cvxleak.core.errors import ValidationError
from cvxleak.core.validation import (
    Array,
    frozen_array,
    generator,
    plain_array,
    probability_rows,
    real_number,
    whole_number,
)
from cvxleak.iterative._record import FEASIBILITY, RecordView, relative_gain, tangent_norm
from cvxleak.iterative._stationarity import block_gaps
from cvxleak.iterative.conditional import conditional_gradient_ascent
from cvxleak.iterative.deterministic import COORDINATE_WISE, deterministic_search
from cvxleak.iterative.entropy_floor import checked_floor, least_mixture
from cvxleak.iterative.history import IterativeResult
from cvxleak.iterative.marginal import marginal_blahut_arimoto
from cvxleak.model import Mechanism

__all__ = ["alternating_leakage"]


def alternating_leakage(
    mechanism: Mechanism | ArrayLike,
    entropy_floor: float,
    *,
    start: str | ArrayLike = "uniform",
    rng: int | np.random.Generator | None = 0,
    tol: float = 1e-8,
    max_iterations: int = 100,
    max_combinations: int = 100_000,
) -> IterativeResult:
    """Search for max_i max I(X_i;Y) subject to H(X) >= b by LEAKAGE Algorithm 1.

    A sweep visits every record i: the marginal p(x_i) by Algorithm 2, then the conditionals
    p(x_{-i}|x_i) by Algorithm 3 if b > H(X_i), and by search over the deterministic ones if not.
    The best candidate so far is the next iterate. This is the paper's method, kept for comparison:
    `joint_blahut_arimoto` is faster and finds larger leakages.

    Parameters
    ----------
    mechanism : Mechanism or array_like, shape (n_1, ..., n_n, Y)
        q(y|x) on the full record space.
    entropy_floor : float
        b, in nats.
    start : "uniform", "random" or array_like, shape (n_1, ..., n_n)
        The uniform prior (the paper's text), a random one (its line 1: Dirichlet(1), mixed with
        the uniform prior as far as the floor needs) or a given one with H(X) >= b.
    rng : int, numpy.random.Generator or None
        Seed of the random start.
    tol : float
        Stop when a sweep changes the leakage by less than this, in nats; also for Algorithms 2, 3.
    max_iterations : int
        Largest number of sweeps.
    max_combinations : int
        Largest number of combinations in the exhaustive search over deterministic conditionals
        (`deterministic_search`).

    Returns
    -------
    IterativeResult
        `point` is the best feasible prior found, shape (n_1, ..., n_n), and `value` its leakage.
        Feasible means H(X) >= b - 1e-9. `stopped` gives the reason, and how often a candidate
        violated the floor, Algorithm 5 had no root, or the deterministic search was not exhaustive.
        `history`:

        - ``objective`` I(X_i;Y) and ``record`` i of each iterate,
        - ``slack`` H(X) - b (its size is the |H(X) - b| of 3.4.6),
        - ``gradient_norm`` of I in the prior, along the simplex,
        - ``marginal_gap`` and ``conditional_gap``: the largest possible increase of the linearized
          I in each block alone; if both are 0, the prior is block-wise stationary to first order
          (Definition 3.1),
        - per sweep ``relative_gain``, ``rejected`` (candidates that violated the floor) and
          ``shortfall`` (the largest violation among these; inf if Algorithm 3 found that no row can
          have the entropy it needs).

    Raises
    ------
    ValidationError
        Arguments of the wrong kind or shape, or a given start with H(X) < b.
    InfeasibleError
        b above log|X|.

    Notes
    -----
    Decisions where the paper is silent: a candidate with H(X) < b is never recorded, whatever its
    information (Algorithm 2 can stop there, and Algorithm 3 need not repair it); if a first sweep
    has no feasible candidate, the method stops at its start. The start counts as an iterate for
    the value that is returned, but not for the comparison in line 19: the first feasible candidate
    is taken even if it is worse.

    The parity of n bits shows why the start matters. The uniform prior is stationary with I = 0.
    For b > (n + 1)/2 log 2 all c_k of Algorithm 3 are positive there, its gradient steps vanish,
    and the method ends where it started. For smaller b a row is replaced by a unit vector, which
    frees it.

    Examples
    --------
    >>> import numpy as np
    >>> from cvxleak.iterative import alternating_leakage
    >>> parity = np.indices((2, 2, 2)).sum(axis=0) % 2
    >>> channel = np.array([[0.8, 0.2], [0.2, 0.8]])[parity]
    >>> for start in "uniform", "random":
    ...     print(f"{alternating_leakage(channel, 1.5, start=start).value:.4f}")
    0.0000
    0.1279
    """
    q = _full_channel(mechanism)
    shape, size = q.shape[:-1], math.prod(q.shape[:-1])
    b = checked_floor(entropy_floor, math.log(size))
    enough = real_number(tol, "tol", 0)
    cap = whole_number(max_iterations, "max_iterations", 1)
    combinations = whole_number(max_combinations, "max_combinations", 1)
    prior = _starting_prior(start, shape, b, rng)
    views = [RecordView.of(prior, q, i) for i in range(len(shape))]
    record = int(np.argmax([view.information for view in views]))
    run = _Run(b, enough, combinations)
    run.note(views[record], record)
    best, best_record, incumbent = views[record], record, -math.inf
    reason = f"max_iterations={cap} reached"
    for _ in range(cap):
        previous = incumbent
        run.rejected.append(0)
        run.shortfall.append(0.0)
        current: tuple[RecordView, int] | None = None
        for i in range(len(shape)):
            candidate = run.candidate(RecordView.of(prior, q, i))
            if candidate is not None and candidate.information > incumbent:
                incumbent, current = candidate.information, (candidate, i)
        if current is not None:
            view, record = current
            prior = view.prior(shape, record)
            if view.information > best.information:
                best, best_record = view, record
        elif incumbent == -math.inf:
            reason = "no candidate of the first sweep met the entropy floor"
        run.note(RecordView.of(prior, q, record), record)
        if incumbent == -math.inf:
            break
        if abs(incumbent - previous) < enough:
            reason = f"a sweep changed the leakage by less than tol={enough:g}"
            break
    return IterativeResult(
        value=best.information,
        point=best.prior(shape, best_record),
        iterations=len(run.rejected),
        stopped="; ".join([reason, *run.remarks(len(shape))]),
        history=run.history(),
    )


class _Run:
    """The inner algorithms, and what is kept of their runs."""

    def __init__(self, b: float, tol: float, combinations: int) -> None:
        self.b, self.tol, self.combinations = b, tol, combinations
        self.rows: list[tuple[float, ...]] = []
        self.rejected: list[int] = []
        self.shortfall: list[float] = []
        self.missed_roots = 0
        self.not_exhaustive = 0

    def candidate(self, view: RecordView) -> RecordView | None:
        """Lines 8 to 17 for one record; None if the candidate violates the floor."""
        conditional, rows = view.conditional, view.rows
        marginal = marginal_blahut_arimoto(
            view.marginal, conditional, rows, self.b, tol=self.tol
        ).point
        if self.b > entr(marginal).sum():
            run = conditional_gradient_ascent(marginal, conditional, rows, self.b, tol=self.tol)
            self.missed_roots += int(run.history["missed_roots"].sum())
        else:
            run = deterministic_search(marginal, rows, max_combinations=self.combinations)
            self.not_exhaustive += run.stopped == COORDINATE_WISE
        if run.point is None:
            shortfall = math.inf
        else:
            view = replace(view, marginal=marginal, conditional=run.point)
            shortfall = self.b - view.entropy
        if shortfall <= FEASIBILITY:
            return view
        self.rejected[-1] += 1
        self.shortfall[-1] = max(self.shortfall[-1], shortfall)
        return None

    def note(self, view: RecordView, record: int) -> None:
        self.rows.append(
            (
                view.information,
                record,
                view.entropy - self.b,
                tangent_norm(view.scores.ravel()),
                *block_gaps(view, self.b),
            )
        )

    def remarks(self, records: int) -> list[str]:
        found = []
        if any(self.rejected):
            found.append(
                f"{sum(self.rejected)} of {records * len(self.rejected)} candidates violated the "
                "entropy floor and were not recorded"
            )
        if self.missed_roots:
            found.append(f"Algorithm 5 had no root {self.missed_roots} times")
        if self.not_exhaustive:
            found.append(
                f"{self.not_exhaustive} searches over deterministic conditionals were "
                "coordinate-wise"
            )
        return found

    def history(self) -> dict[str, Array]:
        names = (
            "objective",
            "record",
            "slack",
            "gradient_norm",
            "marginal_gap",
            "conditional_gap",
        )
        columns = dict(zip(names, np.array(self.rows, dtype=float).T, strict=True))
        return columns | {
            "relative_gain": relative_gain([row[0] for row in self.rows]),
            "rejected": np.array(self.rejected, dtype=float),
            "shortfall": np.array(self.shortfall),
        }


def _full_channel(mechanism: Mechanism | ArrayLike) -> Array:
    if isinstance(mechanism, Mechanism):
        return mechanism.to_channel().matrix.reshape(*mechanism.space.shape, -1)
    q = frozen_array(mechanism, "mechanism", max(plain_array(mechanism, "mechanism").ndim, 2))
    probability_rows(q.reshape(-1, max(q.shape[-1], 1)), "mechanism", 2)
    return q


def _starting_prior(
    start: str | ArrayLike,
    shape: tuple[int, ...],
    b: float,
    rng: int | np.random.Generator | None,
) -> Array:
    size = math.prod(shape)
    uniform = np.full(size, 1 / size)
    if isinstance(start, str):
        if start == "uniform":
            return uniform.reshape(shape)
        if start == "random":
            drawn = generator(rng).dirichlet(np.ones(size))
            return least_mixture(drawn, uniform, np.zeros(size), b).reshape(shape)
        raise ValidationError(
            f"start: found {start!r}; allowed: 'uniform', 'random' or a prior of shape {shape}"
        )
    given = plain_array(start, "start")
    if given.shape != shape:
        raise ValidationError(f"start: found shape {given.shape}; {shape} is needed")
    prior = probability_rows(given.ravel(), "start", 1)
    entropy = float(entr(prior).sum())
    if entropy < b - FEASIBILITY:
        raise ValidationError(
            f"start: its entropy is {entropy:.6g}; it must be at least entropy_floor = {b:.6g}"
        )
    return prior.reshape(shape)
