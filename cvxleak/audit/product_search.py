"""The search for the worst product prior under a floor on the sum of the entropies.

The lower bound comes from a local search. The upper bound is the capacity of the record's channel
with the other records known, or an audit of all priors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import entr

from cvxleak.audit.cases import Cases, Laws, most_of
from cvxleak.audit.record_leakage import RecordLeakage
from cvxleak.core.clock import Clock, Stop
from cvxleak.core.errors import SolveInterrupted
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.kernel.independent import ProductLeakage
from cvxleak.kernel.numbers import RefusedError, lower, precision, upper
from cvxleak.kernel.reading import pack
from cvxleak.problem import Bound, Gap, Stopped
from cvxleak.problem.problem import Found

__all__ = ["ProductSearch"]

CONTEXTS = "the capacity of the record's channel if the other records are known"
AUDIT = "an audit of all adversaries with this entropy"

STARTS, WORST = 12, 3
"""Starts of the local search, and how many of them know the others in the worst contexts."""

ITERATIONS = 300


class ProductSearch:
    """The local search from below, then the capacities of contexts and an audit from above.

    Parameters
    ----------
    problem : RecordLeakage
        The same question about all priors.
    statement : ProductLeakage
        What is to be proved.
    at : callable
        (record, distributions) -> the witness, and as a term holds it.
    rng : numpy.random.Generator
    """

    def __init__(
        self,
        problem: RecordLeakage,
        statement: ProductLeakage,
        at: Callable[[int, Laws], tuple[Any, dict[str, Any]]],
        rng: np.random.Generator,
    ) -> None:
        self._problem, self._statement, self._at, self._rng = problem, statement, at, rng
        self._best: tuple[float, int, list[Array]] | None = None
        self._searched = False  # to the end
        self._audit: Bound | None = None
        self._above: dict[str, tuple[float, dict[str, Any]]] = {}

    def advance(self, gap: Gap, stop: Stop) -> Stopped:
        """Look for distributions; audit the mechanism if the capacities are not enough."""
        if not self._searched:
            self._look(stop)
        if gap.closed(*self.found(gap).searched):
            return Stopped.TOLERANCE
        audit = self._problem.solve if self._audit is None else self._audit.refine
        try:
            self._take(audit(tol=gap.tol, **stop.clock.limits))
        except SolveInterrupted as error:
            self._take(error.bound)
            raise
        assert self._audit is not None
        ended = self._audit.stats["stopped"]
        if ended is not Stopped.TOLERANCE or gap.closed(*self.found(gap).searched):
            return ended
        # Others leak more than who takes records apart.
        return Stopped.NO_PROGRESS if self._searched else Stopped.at_limit(stop.clock)

    def found(self, gap: Gap) -> Found:
        """Return the best distributions so far, with what proves both bounds."""
        if self._best is None:  # interrupted
            self._look(Stop(Clock(0.0)))
        assert self._best is not None
        _, record, laws = self._best
        adversary, below = self._at(record, [law.tolist() for law in laws])
        with precision():
            least = lower(self._statement.lower(below))
        above, (most, term) = min(self._above.items(), key=lambda one: one[1][0])
        method = (
            "local search from below, because the leakage is not concave in the distributions; "
            f"from above {above}, because it is the lower of two bounds"
        )
        parts = (self._statement.problem, below, term)
        return Found(least, most, adversary, parts, stats={"method": method})

    def proof_seconds(self) -> float:
        """Return 0: an audit says itself what time its proof needs."""
        return 0.0

    def _take(self, audit: Bound) -> None:
        assert audit.certificate is not None
        term = {"rule": "audit", "groups": audit.certificate.proof["groups"]}
        self._audit, self._above[AUDIT] = audit, (audit.upper, term)

    def _look(self, stop: Stop) -> None:
        """Bound the contexts' capacities, and run the local searches."""
        statement, people = self._statement, self._statement.people()
        audited = statement.audited(people)
        cases: list[Cases | None] = [None] * len(audited)
        try:
            with precision():
                cases = [most_of(statement, people, i, stop.clock) for i in audited]
                term: dict[str, Any] = {"rule": "contexts"}
                if self._problem.told.is_leakage:
                    term["inputs"] = [pack(one.weights, "<f8") for one in cases if one is not None]
                self._above[CONTEXTS] = upper(statement.upper(term)), term
        except RefusedError:  # a gain of other than few actions
            self._take(self._problem.solve(time_limit=0.0))
        for i, one in zip(audited, cases, strict=True):
            products = _Products(self._problem, i)
            for start in self._starts(products, one):
                for laws in (start, products.climbed(start, stop)):
                    met = products.met(laws)
                    value = products.value(met)
                    if self._best is None or value > self._best[0]:
                        self._best = value, i, met
        self._searched = not stop()

    def _starts(self, products: _Products, cases: Cases | None) -> Iterator[list[Array]]:
        """Yield the uniform distributions, the worst contexts, and random distributions."""
        yield products.uniform
        worst = [] if cases is None else np.argsort(-cases.values)[:WORST].tolist()
        if cases is not None:
            with precision():
                own = self._statement.people()[products.record].contributions
                contexts = self._statement.contexts(own)
            for place in worst:
                yield products.in_context(contexts[place], cases.weights[place])
        for _ in range(STARTS - len(worst)):
            yield [self._rng.dirichlet(np.full(n, 0.5)) for n in products.shape]


class _Products:
    """Product priors with a floor on the sum of the entropies, and what one record leaks."""

    def __init__(self, problem: RecordLeakage, record: int) -> None:
        self.record, self._told, self._floor = record, problem.told, problem.entropy_floor
        self.shape = problem.mechanism.space.shape
        self.uniform: list[Array] = [np.full(n, 1 / n) for n in self.shape]
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
        table = np.moveaxis(self._table, self.record, -1)
        others = np.argwhere((table == places).all(axis=-1))[0].tolist()
        sizes = [n for i, n in enumerate(self.shape) if i != self.record]
        laws = [np.eye(n)[a] for n, a in zip(sizes, others, strict=True)]
        return [*laws[: self.record], own, *laws[self.record :]]

    def climbed(self, start: list[Array], stop: Stop) -> list[Array]:
        """Return distributions at a local maximum, or those of the start if the time is up."""

        def objective(z: Array) -> float:
            if stop():
                raise TimeoutError
            spend(10 * self._rows.size)
            return -self.value(self._laws(z))

        with suppress(TimeoutError):
            room = {"type": "ineq", "fun": lambda z: _entropy(self._laws(z)) - self._floor}
            run: Any = minimize(
                objective,
                np.concatenate(start),
                method="SLSQP",
                bounds=[(0.0, 1.0)] * sum(self.shape),
                constraints=room,
                options={"maxiter": ITERATIONS},
            )
            return self._laws(np.where(np.isfinite(run.x), run.x, 0.0))
        return start

    def met(self, laws: list[Array]) -> list[Array]:
        """Return the first distributions with enough entropy on the way to the uniform ones."""

        def mixed(share: float) -> list[Array]:
            return [(1 - share) * p + share * u for p, u in zip(laws, self.uniform, strict=True)]

        target = self._floor + 1e-13 * (1 + self._floor)
        low, high = 0.0, 0.0 if _entropy(laws) >= target else 1.0
        for _ in range(60):
            share = (low + high) / 2
            low, high = (low, share) if _entropy(mixed(share)) >= target else (share, high)
        return mixed(high)

    def _laws(self, z: Array) -> list[Array]:
        parts = np.split(np.maximum(z, 0.0) + 1e-12, np.cumsum(self.shape)[:-1])
        return [part / part.sum() for part in parts]


def _entropy(laws: list[Array]) -> float:
    return float(sum(entr(law).sum() for law in laws))
