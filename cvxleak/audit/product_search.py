"""The search for the worst product prior.

Where each distribution lies in a polytope, the worst of all cases is it. Under a floor on the sum
of the entropies, the lower bound comes from a local search; the upper bound is the capacity of the
record's channel with the other records known, or an audit of all priors.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import entr

from cvxleak.audit.adversary import IndependentAdversary
from cvxleak.audit.cases import Cases, Laws, in_case, most_of
from cvxleak.audit.product_priors import ProductPriors
from cvxleak.audit.record_leakage import RecordLeakage
from cvxleak.core.clock import Clock, Stop
from cvxleak.core.errors import SolveInterrupted
from cvxleak.core.validation import Array
from cvxleak.core.work import spend
from cvxleak.kernel.numbers import RefusedError, lower, precision, upper
from cvxleak.kernel.reading import pack
from cvxleak.problem import Bound, Gap, Stopped
from cvxleak.problem.problem import Found

__all__ = ["ProductSearch"]

CASES = (
    "all cases in which the other records are at a vertex of what is known of them, because the "
    "leakage is convex in each of their distributions"
)
LOCAL = (
    "local search from below, because the leakage is not concave in the distributions; from above "
    "{}, because it is the lower of two bounds"
)
CONTEXTS = LOCAL.format("the capacity of the record's channel if the other records are known")
AUDIT = LOCAL.format("an audit of all adversaries with this entropy")

STARTS, WORST = 12, 3
"""Starts of the local search, and how many of them know the others in the worst contexts."""

ITERATIONS = 300


class ProductSearch:
    """A search for the worst of a class of product priors.

    Parameters
    ----------
    priors : ProductPriors
    all_priors : RecordLeakage or None
        Under a floor on the sum of the entropies, the same question about all priors.
    rng : numpy.random.Generator
    """

    def __init__(
        self, priors: ProductPriors, all_priors: RecordLeakage | None, rng: np.random.Generator
    ) -> None:
        self._priors, self._all_priors, self._rng = priors, all_priors, rng
        self._searched = False  # to the end
        self._below: tuple[float, IndependentAdversary, dict[str, Any]] | None = None
        self._above: list[tuple[float, str, dict[str, Any]]] = []
        self._audit: Bound | None = None

    def advance(self, gap: Gap, stop: Stop) -> Stopped:
        """Look for distributions; audit the mechanism if the capacities are not enough."""
        if not self._searched:
            self._look(stop)
        ended = Stopped.ROUNDING
        if self._all_priors is not None and not gap.closed(*self._found().searched):
            ended = self._audited(self._all_priors, gap, stop.clock)
        if gap.closed(*self._found().searched):
            return Stopped.TOLERANCE
        return ended if self._searched else Stopped.at_limit(stop.clock)

    def found(self, gap: Gap) -> Found:
        """Return the best distributions so far, with what proves both bounds."""
        if self._below is None:  # interrupted
            self._look(Stop(Clock(0.0)))
        return self._found()

    def proof_seconds(self) -> float:
        """Return 0: an audit says itself what time its proof needs."""
        return 0.0

    def _found(self) -> Found:
        assert self._below is not None
        below, adversary, point = self._below
        above, method, term = min(self._above, key=lambda one: one[0])
        parts = (self._priors.statement.problem, point, term)
        return Found(below, above, adversary, parts, stats={"method": method})

    def _audited(self, problem: RecordLeakage, gap: Gap, clock: Clock) -> Stopped:
        """Go on with the audit of all priors, within what is left."""
        audit = problem.solve if self._audit is None else self._audit.refine
        try:
            self._take(audit(tol=gap.tol, **clock.limits))
        except SolveInterrupted as error:
            self._take(error.bound)
            raise
        assert self._audit is not None
        ended = self._audit.stats["stopped"]
        # Others leak more than who takes records apart.
        return Stopped.NO_PROGRESS if ended is Stopped.TOLERANCE else ended

    def _take(self, audit: Bound) -> None:
        assert audit.certificate is not None
        term = {"rule": "audit", "groups": audit.certificate.proof["groups"]}
        self._audit = audit
        self._above.append((audit.upper, AUDIT, term))

    def _look(self, stop: Stop) -> None:
        """Bound the capacities of all cases, and look for the worst prior."""
        statement, audited = self._priors.statement, self._priors.audited
        cases = self._cases(stop.clock)
        found = [self._worst(i, one, stop) for i, one in zip(audited, cases, strict=True)]
        _, record, weights = max(found, key=lambda one: one[0])
        adversary, point = self._priors.at(record, weights)
        with precision():
            below = lower(statement.lower(point))
        if self._below is None or below > self._below[0]:
            self._below = below, adversary, point
        self._searched = not stop()

    def _cases(self, clock: Clock) -> list[Cases | None]:
        """Return what each audited record leaks in each case, once that proves an upper end."""
        priors, floored = self._priors, self._all_priors is not None
        term: dict[str, Any] = {"rule": "contexts" if floored else "corners", **priors.least}
        try:
            with precision():
                cases = [most_of(priors.statement, priors.people, i, clock) for i in priors.audited]
                if "gain" not in priors.statement.problem:
                    term["inputs"] = [pack(one.weights, "<f8") for one in cases]
                above = upper(priors.statement.upper(term))
        except RefusedError:  # a gain of other than few actions
            if self._all_priors is None:
                raise
            self._take(self._all_priors.solve(time_limit=0.0))
            return [None] * len(priors.audited)
        self._above.append((above, CONTEXTS if floored else CASES, term))
        return [*cases]

    def _worst(self, record: int, cases: Cases | None, stop: Stop) -> tuple[float, int, Laws]:
        """Return the most that a record was found to leak, the record, and the prior's weights."""
        if cases is not None and self._all_priors is None:
            case = int(cases.values.argmax())
            own = cases.weights[case].tolist()
            return (
                float(cases.values[case]),
                record,
                in_case(self._priors.people, record, case, own),
            )
        assert self._all_priors is not None
        products = _Products(self._all_priors, record)
        met = [
            products.met(laws)
            for start in self._starts(products, cases)
            for laws in (start, products.climbed(start, stop))
        ]
        best = max(met, key=products.value)
        return products.value(best), record, [law.tolist() for law in best]

    def _starts(self, products: _Products, cases: Cases | None) -> Iterator[list[Array]]:
        """Yield the uniform distributions, the worst contexts, and random distributions."""
        yield products.uniform
        if cases is not None:
            with precision():
                own = self._priors.people[products.record].contributions
                contexts = self._priors.statement.contexts(own)
            for place in np.argsort(-cases.values)[:WORST]:
                yield products.in_context(contexts[place], cases.weights[place])
        for _ in range(STARTS - WORST):
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
