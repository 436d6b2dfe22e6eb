"""Least leakage for a distortion budget (LEAKAGE Problem 2): both bounds proved."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from numpy.typing import ArrayLike

from cvxleak.design.goal import Goal
from cvxleak.design.problem import AnyLaw, AnyLaws, DesignProblem, Objective
from cvxleak.design.user_constraints import UserRules
from cvxleak.model import Distortion, Query
from cvxleak.problem import Bound

__all__ = ["MinLeakage", "min_leakage"]


class MinLeakage(DesignProblem):
    """Minimize the maximal leakage L(q) over channels q(y|x) with E d(f(X), Y) <= D.

    L(q) is the largest I(X_i;Y) over records i and adversaries with H(X) >= b (LEAKAGE Problem 2),
    or over finitely many given priors. I is convex in q for each of them, so L is convex, too, and
    the bounds are on the global optimum.

    Parameters
    ----------
    query : Query
        f, whose value the distortion compares with the output. The channel's input is the dataset:
        it has one row per dataset, or per class of datasets that may share a row by symmetry. A
        channel that depends on more than f(x) can leak less.
    distortion : Distortion, str or array_like, shape (values of f, outputs)
        d(f(x), y); ``"hamming"``, ``"absolute"`` or ``"squared"`` between the query's values and
        the outputs, which are the query's values if left out.
    budget : float
        D, in the unit of d; inf for none.
    entropy_floor : float, optional
        b, in nats, from 0 to log|X|.
    source : Prior or array_like, optional
        The true distribution p0 of the dataset, by dataset, or by value of the query (then all
        datasets with the same value are equally likely); uniform if left out.
    sources : sequence of distributions or SourceSet, optional
        Several true distributions instead: the distortion is at most D under each.
    outputs : iterable of hashable, optional
        Which outputs of a `Distortion` may be released, or labels for the columns of an array.
    constraints : callable or sequence of callables
        User constraints: each function gets the CVXPY variable of the channel, with one row per row
        of `rows`, and returns CVXPY constraints or lists of them.
    objective : {"record", "group", "total"}
        Leakage about the record, or the group of `size` records, that leaks most, or about the
        whole dataset.
    size : int
        For "group".
    priors : sequence of distributions, optional
        The adversaries' priors, in place of `entropy_floor`; the problem is then one convex
        program.
    rows : {"auto", "orbits", "datasets", "query"}
        "auto": one row per orbit of the symmetries that are found, or one per dataset if there are
        user constraints, since these may not be invariant. "query" restricts the problem to
        channels q(y|f(x)).

    Raises
    ------
    ValidationError
        Arguments of the wrong kind.
    InfeasibleError
        b above log|X|.

    Notes
    -----
    `cvxleak.proofs.bounds.design_rows` proves that datasets may share rows of the channel, and
    `cvxleak.proofs.design` derives both bounds.

    User constraints enter the lower bound as half-spaces, affine ones as stated and others by
    supporting half-spaces, with multipliers that the certificate checks exactly
    (`cvxleak.proofs.bounds.user_rows`). The witness meets them, equations up to rounding. If that
    is not possible, the result is not CERTIFIED, and ``witness.user_violation`` gives the
    violation.

    `upper` is proved for the `witness`, a `Design`, by an audit; `lower` holds for all channels.
    `shadow_prices` has dL/dD ("budget") and dL/db ("entropy_floor"). `solve` raises
    `InfeasibleError` for D below the least distortion that a channel can have, which the message
    gives.

    Options of `solve`, in addition to those of every problem:

    - strategy, "cutting_set" or "alternate": whether the master problem keeps all adversaries, or
      only the newest one (LEAKAGE Algorithm 6). The latter may cycle, as ``stats["cycled"]`` then
      says, and the gap need not close.
    - solver, solver_options: a CVXPY solver for the master problem. If left out, a method in NumPy
      that uses its structure; CLARABEL if there are user constraints, or given priors for which
      that method stalls.
    - rng: random starts of the local searches.
    - verbose: print a line per round.

    The search divides its effort by counted work (``stats["work"]``, in multiplications), not by
    time. Up to 30 % of a time limit may be reserved for the audit of the best channel. Steps that
    cannot be interrupted come on top: CVXPY programs for a first channel that meets the user
    constraints, and the exact proof.

    A candidate for `check` is a `Design`, a `Channel`, a `Mechanism` or an array, with one row per
    row of the problem, per value of the query, or per dataset. Its value is the upper bound of an
    audit of its positive part, with each row divided by its sum.

    Examples
    --------
    >>> from cvxleak.model import AdditiveQuery, Distortion, RecordSpace
    >>> from cvxleak.design import MinLeakage
    >>> parity = AdditiveQuery(RecordSpace.binary(3), [(0, 1)] * 3, modulus=2)
    >>> wrong = Distortion.hamming([0, 1])
    >>> design = MinLeakage(parity, distortion=wrong, budget=0.1, entropy_floor=1.5).solve(tol=1e-5)
    >>> print(design)
    least leakage: 0.3276... to 0.3276... nats (CERTIFIED)
    >>> design.witness.channel.shape
    (2, 2)
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> problem = MinLeakage(parity, distortion=[[0, 1], [1, 0]], budget=0.2, entropy_floor=0.0)
    >>> print(problem.check([[0.9, 0.1], [0.1, 0.9]]))
    feasible; value 0.36806... nats
    proved optimum: 0.192... to 0.192... nats; the candidate falls short by 0.175... to 0.175...
    """

    goal = Goal.LEAKAGE
    kind = "min-leakage"
    name = "least leakage"
    information = ("entropy_floor",)


def min_leakage(
    query: Query,
    *,
    distortion: Distortion | ArrayLike,
    budget: float,
    entropy_floor: float | None = None,
    source: AnyLaw | None = None,
    sources: AnyLaws | None = None,
    outputs: Iterable[Hashable] | None = None,
    constraints: UserRules = (),
    objective: Objective = "record",
    size: int = 1,
    priors: AnyLaws | None = None,
    rows: str = "auto",
    **options: Any,
) -> Bound:
    """Return the least leakage for a distortion budget: `MinLeakage(...).solve(...)`.

    Parameters
    ----------
    query, distortion, budget, entropy_floor, source, sources, outputs, constraints, objective, size
        As for `MinLeakage`, and so `priors` and `rows`.
    **options
        As for `MinLeakage`: tol, time_limit, strategy, solver, solver_options, rng, verbose.

    Examples
    --------
    Without an entropy floor, b = 0, the least leakage is log 2 - h(D):

    >>> from cvxleak.model import AdditiveQuery, RecordSpace
    >>> from cvxleak.design import min_leakage
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> wrong = [[0, 1], [1, 0]]
    >>> print(min_leakage(parity, distortion=wrong, budget=0.1, entropy_floor=0.0, tol=1e-5))
    least leakage: 0.36806... to 0.36806... nats (CERTIFIED)

    If a constant output meets the budget, the least leakage is 0:

    >>> print(min_leakage(parity, distortion=wrong, budget=0.5, entropy_floor=0.0))
    least leakage: 0 to 0 nats (CERTIFIED)
    """
    problem = MinLeakage(
        query,
        distortion=distortion,
        budget=budget,
        entropy_floor=entropy_floor,
        source=source,
        sources=sources,
        outputs=outputs,
        constraints=constraints,
        objective=objective,
        size=size,
        priors=priors,
        rows=rows,
    )
    return problem.solve(**options)
