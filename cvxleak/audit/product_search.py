"""Searches for what a record leaks if all records are independent.

`cvxleak.kernel.independent` defines the cases of the others and explains why they are enough if
each distribution is in a polytope. In each case, the leakage is a concave function of the
distribution of record i, which is a mixture of the vertices of its polytope. A gain is largest at
one of finitely many distributions, the same in all cases. Under a floor on the sum of the entropies
there is a local search.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice, product
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from cvxleak.audit.product_priors import Laws, ProductPriors, entropy, floats
from cvxleak.audit.record_leakage import RecordLeakage
from cvxleak.audit.worst_adversary.ascent import STARTS
from cvxleak.audit.worst_adversary.audit import floor_of
from cvxleak.audit.worst_adversary.choices import leakages
from cvxleak.core.clock import Clock
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.kernel.cases import compositions, gained
from cvxleak.problem.problem import ROUNDING

__all__ = ["Cases", "in_case", "local_search", "most_of"]


class Cases(NamedTuple):
    """What was found for a record in each case.

    Attributes
    ----------
    record : int
    values : array, shape (cases,)
        Its leakage or gain.
    weights : array, shape (cases, vertices)
        Weights on the vertices of its distribution at which that is attained.
    """

    record: int
    values: Array
    weights: Array


def most_of(priors: ProductPriors, record: int, clock: Clock) -> Cases:
    """Return the most that a record leaks in each case that may be the worst, or a part of it."""
    statement, own = priors.statement, priors.people[record].own
    gain, found, best = statement.gain(len(own[0])), list[tuple[Array, Array]](), 0.0
    places = priors.corners.get(own, [])
    weights = floats([x for x, _ in places])
    for rows in statement.blocks(priors.people, record):
        if places:
            values = np.array([gained(rows, law, gain, statement.times) for _, law in places])
            found.append((values.max(axis=0), weights[values.argmax(axis=0)]))
        else:
            leaked = leakages(rows, floats(own), best, lambda: clock.late)
            found.append((leaked.values, leaked.weights))
        best = max(best, float(found[-1][0].max()))
    return Cases(record, *(np.concatenate(parts) for parts in zip(*found, strict=True)))


def in_case(priors: ProductPriors, found: Cases) -> tuple[float, int, Laws]:
    """Return the most that a record leaks, the record, and all weights on vertices in that case."""
    case, record = int(found.values.argmax()), found.record
    others = priors.statement.others(priors.people, record)
    ways = [compositions(one.records, len(one.vertices)) for one in others]
    numbers = next(islice(product(*ways), case, None))
    # The vertices of those who are alike, one after the other.
    waiting = {
        (one.contributions, one.vertices): iter(np.repeat(np.eye(len(own)), own, axis=0).tolist())
        for one, own in zip(others, numbers, strict=True)
    }
    each = [
        found.weights[case].tolist()
        if i == record
        else next(waiting[one.contributions, one.vertices])
        for i, one in enumerate(priors.people)
    ]
    return float(found.values[case]), record, each


def local_search(
    problem: RecordLeakage,
    priors: ProductPriors,
    cases: Cases,
    rng: np.random.Generator,
    stop: Callable[[], bool],
) -> tuple[float, int, Laws]:
    """Return the most that a record was found to leak, the record, and all distributions.

    Half of the starts are random, and half what is worst if all others are known. Without these the
    lower ends of random tables fall by up to 5 %.
    """
    products = _Products(problem, cases.record)
    contexts = priors.statement.contexts(priors.people[cases.record].contributions)
    starts = [[np.full(n, 1 / n) for n in products.shape]]
    for place in np.argsort(-cases.values, kind="stable")[:STARTS]:
        starts.append(products.in_context(contexts[place], cases.weights[place]))
    starts += [[rng.dirichlet(np.full(n, 0.5)) for n in products.shape] for _ in range(STARTS)]
    found = [laws for start in starts for laws in (start, products.climbed(start, stop))]
    best = max(map(products.met, found), key=products.value)
    return products.value(best), cases.record, [law.tolist() for law in best]


class _Products:
    """Product priors with a floor on the sum of the entropies, and what one record leaks."""

    def __init__(self, problem: RecordLeakage, record: int) -> None:
        self.record, self._told, self._floor = record, problem.told, floor_of(problem)
        self.shape = problem.mechanism.space.shape
        self._table = problem.mechanism.query.table()
        self._rows = np.moveaxis(problem.mechanism.channel.matrix[self._table], record, 0)

    def value(self, laws: list[Array]) -> float:
        """Return the leakage or gain."""
        channel = self._rows
        for law in (*laws[: self.record], *laws[self.record + 1 :]):
            # The second axis goes, and the next record's takes its place.
            channel = np.tensordot(channel, law, axes=(1, 0))
        own, gain, form = laws[self.record], self._told.gain, self._told.form
        after, before = float(gain.value((own[:, None] * channel).T).sum()), float(gain.value(own))
        return after / before if form == "factor" else after - before * (form == "rise")

    def in_context(self, places: tuple[int, ...], own: Array) -> list[Array]:
        """Return distributions that know the others: the query then has these values."""
        lines = np.moveaxis(self._table, self.record, -1)
        known = iter(np.argwhere((lines == places).all(axis=-1))[0].tolist())
        return [
            own if i == self.record else np.eye(n)[next(known)] for i, n in enumerate(self.shape)
        ]

    def climbed(self, start: list[Array], stop: Callable[[], bool]) -> list[Array]:
        """Return distributions at a local maximum, or where the time was up."""

        def objective(z: Array) -> float:
            if stop():  # all is flat then, and the steps end
                return 0.0
            spend(10 * self._rows.size)
            return -self.value(self._laws(z))

        run: Any = minimize(
            objective,
            np.concatenate(start),
            method="SLSQP",
            bounds=[(0.0, 1.0)] * sum(self.shape),
            constraints={"type": "ineq", "fun": lambda z: entropy(self._laws(z)) - self._floor},
        )
        return self._laws(np.where(np.isfinite(run.x), run.x, 0.0))

    def met(self, laws: list[Array]) -> list[Array]:
        """Return the first distributions with enough entropy on the way to the uniform ones."""

        def mixed(share: float) -> list[Array]:
            return [(1 - share) * p + share / len(p) for p in laws]

        target = self._floor + ROUNDING * (1 + self._floor)
        low, high = 0.0, 0.0 if entropy(laws) >= target else 1.0
        for _ in range(60):
            share = (low + high) / 2
            low, high = (low, share) if entropy(mixed(share)) >= target else (share, high)
        return mixed(high)

    def _laws(self, z: Array) -> list[Array]:
        parts = np.split(np.maximum(z, 0.0) + 1e-12, np.cumsum(self.shape)[:-1])
        return [part / part.sum() for part in parts]
