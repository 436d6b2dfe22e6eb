"""Least leakage for a distortion budget (LEAKAGE Problem 2), with both ends proved."""

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
    """The problem min over channels q(y|x) with E d(f(X), Y) <= D of the maximal leakage L(q).

    L(q) is the largest I(X_i;Y) over records i and adversaries with H(X) >= b (LEAKAGE Problem 2),
    or over given priors, of which there are finitely many. I is convex in q for each of them, so L
    is convex too, and the bracket that is found is about the global optimum.

    Parameters
    ----------
    query : Query
        f, which the distortion is about. The channel sees the dataset: it has one row for each
        dataset, or for each class of datasets of which a symmetry shows that they may share one.
        Rows that see more than f(x) can leak less.
    distortion : Distortion, str or array_like, shape (values of f, outputs)
        d(f(x), y); ``"hamming"``, ``"absolute"`` or ``"squared"`` between the query's values and
        the outputs, which are these values too if left out.
    budget : float
        D, in the unit of d; inf for none.
    entropy_floor : float, optional
        b, in nats, from 0 to log|X|.
    source : Prior or array_like, optional
        The true law p0 of the dataset, by dataset, or by value of the query (then all datasets of
        one value are equally likely); uniform if left out.
    sources : sequence of laws or SourceSet, optional
        Several of them instead: D holds for each.
    outputs : iterable of hashable, optional
        Which outputs of a `Distortion` may be released, or labels for the columns of an array.
    constraints : callable or sequence of callables
        The user's constraints: each gets the CVXPY channel variable, one row per row of `rows`,
        and returns CVXPY constraints or lists of them.
    objective : {"record", "group", "total"}
        Leakage about the worst record, about the worst group of `size` records, or about the whole
        dataset.
    size : int
        For "group".
    priors : sequence of laws, optional
        The adversaries, instead of `entropy_floor`: then this is one convex program.
    rows : {"auto", "orbits", "datasets", "query"}
        "auto": one row per orbit of the symmetries that are found, or one per dataset where there
        are user constraints, which may not be invariant. "query" restricts the problem to channels
        q(y|f(x)).

    Raises
    ------
    ValidationError
        Arguments of the wrong kind.
    InfeasibleError
        b above log|X|.

    Notes
    -----
    What is minimized over: `cvxleak.proofs.bounds.design_rows` proves that rows may be shared.
    What proves the ends: `cvxleak.proofs.design`.

    Own constraints enter the lower end as half-spaces, affine ones as they are stated and others by
    supporting half-spaces, with multipliers that the certificate checks exactly
    (`cvxleak.proofs.bounds.user_rows`). The witness meets them, equations up to rounding; where
    that cannot be done, nothing is CERTIFIED, and ``witness.user_violation`` says how much is
    missed.

    `upper` is proved for the `witness`, a `Design`, by an audit; `lower` holds for all channels.
    `shadow_prices` has dL/dD ("budget") and dL/db ("entropy_floor"). `solve` raises
    `InfeasibleError` for D below the least distortion that a channel can have, which the message
    gives.

    Options of `solve`, beside those of every problem:

    - strategy, "cutting_set" or "alternate": whether the master keeps all adversaries, or the
      newest one (LEAKAGE Algorithm 6): then it may cycle, which ``stats["cycled"]`` says, and the
      bracket need not close.
    - solver, solver_options: a solver of CVXPY for the master. If left out, a method in NumPy that
      uses the master's structure; CLARABEL where there are user constraints, or given priors at
      whose program that method gets stuck.
    - rng: random starts of the local searches.
    - verbose: print a line per round.

    Which part of the search goes on is decided by counted work (``stats["work"]``, in
    multiplications). The last 30 % of a time limit may be kept for the audit of the best channel.
    What cannot be interrupted comes on top: programs in CVXPY for a first channel that meets own
    constraints, and the exact proof.

    A candidate for `check` is a `Design`, a `Channel`, a `Mechanism` or an array, with one row per
    row of the problem, per value of the query, or per dataset. Its value is that of its positive
    part, each row divided by its sum: the upper end of an audit.

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
    The least leakage without any doubt, b = 0, is log 2 - h(D):

    >>> from cvxleak.model import AdditiveQuery, RecordSpace
    >>> from cvxleak.design import min_leakage
    >>> parity = AdditiveQuery(RecordSpace.binary(2), [(0, 1)] * 2, modulus=2)
    >>> wrong = [[0, 1], [1, 0]]
    >>> print(min_leakage(parity, distortion=wrong, budget=0.1, entropy_floor=0.0, tol=1e-5))
    least leakage: 0.36806... to 0.36806... nats (CERTIFIED)

    A budget that a constant answer meets leaks nothing:

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
