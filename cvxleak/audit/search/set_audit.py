"""`SetAudit`: the audit of a mechanism whose channel is only known to lie in a set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from cvxleak.audit.adversary import Adversary
from cvxleak.audit.search.audit import (
    GAIN,
    Progress,
    Statement,
    ascend,
    content_of,
    floor_of,
    moved,
    target,
)
from cvxleak.audit.search.cell_search import CellSearch
from cvxleak.core.clock import Clock, Stop
from cvxleak.core.validation import Array, generator
from cvxleak.exact import balls
from cvxleak.iterative import meet_entropy_floor
from cvxleak.measures import lumped_information
from cvxleak.model import Lumped, LumpedSet
from cvxleak.problem import Gap, Stopped
from cvxleak.problem.problem import Found
from cvxleak.proofs import record_leakage as prover
from cvxleak.solvers.knapsack import largest_rows

__all__ = ["SetAudit"]

STARTS = 30
"""Random starts of the local search."""

STEPS = 1000
"""Most steps of the local search."""

FIRST_NODES = 500
"""Nodes of a tree before it is asked whether it gets on."""

STUCK = 0.7
"""Share of the gap that twice the nodes may leave."""

TURNS = 20
"""Most turns of the local search and the rows that tell most."""

LEAST = 1e-300
"""Probabilities are raised to this before their logarithm is taken."""

ENTRY_SECONDS = 1e-5
"""About how long the proof of a leaf takes, for each probability."""


class SetAudit:
    """The search of one audit of a set of channels.

    The tree of posterior cells is about the whole set: the bound of a node holds for all rows in
    their boxes. Which rows tell most is found by turns with the worst adversary; a query value may
    have different ones for different values of the record, which no channel has, so that what is
    found lies between the largest leakage of a member and the bound that a tree tends to.
    """

    def __init__(
        self, problem: Statement, rng: int | np.random.Generator | None, report: Progress
    ) -> None:
        self.problem = problem
        self._rng, self._report = generator(rng), report
        mechanism = problem.mechanism
        self.floor = floor_of(problem)
        self._groups = prover.audited_groups(
            mechanism, problem.size, None if problem.records is None else [problem.records]
        )
        self._lumped: list[LumpedSet] = []
        self._searches: list[CellSearch] = []
        # The worst adversaries of centers, and of the rows that tell most.
        self._worst: dict[int, list[Array]] = {}
        self.attained = -np.inf

    @property
    def upper(self) -> float:
        """The upper end as it stands."""
        return max((search.upper for search in self._searches), default=np.inf)

    @property
    def nodes(self) -> int:
        """Number of nodes bounded so far."""
        return sum(search.nodes for search in self._searches)

    def advance(self, gap: Gap, stop: Stop) -> Stopped:
        """Work until the gap is closed or something ends it."""
        for place in range(len(self._searches), len(self._groups)):
            if place and stop():
                return Stopped.TIME_LIMIT
            self._begin(place, stop)
        stuck = [not self._run(place, gap, stop) for place in range(len(self._searches))]
        if stop():
            return Stopped.TIME_LIMIT
        return Stopped.NO_PROGRESS if any(stuck) else Stopped.TOLERANCE

    def _run(self, place: int, gap: Gap, stop: Stop) -> bool:
        """Search one tree; false if twice the nodes gained next to nothing.

        Which rows tell most changes suddenly from one to another, and there the multipliers of a
        node may be off their best.
        """
        search = self._searches[place]
        while search.upper > self._target(gap) and not stop():
            before = search.upper - self._target(gap)
            limit = max(FIRST_NODES, 2 * search.nodes)
            search.run(
                lambda: self._target(gap),
                resolution=self._target(gap) - self.attained,
                stop=stop,
                on_weights=lambda weights: self._look(place, weights, stop),
                node_limit=limit,
            )
            if search.nodes >= limit and search.upper - self._target(gap) > STUCK * before:
                return False
        return True

    def proof_seconds(self) -> float:
        """Return about how long the proof will take."""
        return sum(
            ENTRY_SECONDS * search.leaves * lumped.lower.size
            for search, lumped in zip(self._searches, self._lumped, strict=True)
        )

    def _target(self, gap: Gap) -> float:
        return target(self.attained, gap)

    def _begin(self, place: int, stop: Stop) -> None:
        lumped = self.problem.mechanism.lumped_set(self._groups[place])
        self._lumped.append(lumped)
        boxes = (lumped.lower, lumped.upper)
        self._searches.append(CellSearch(lumped.center, self.floor, boxes=boxes))
        self._climb(place, 2 if stop() else STARTS, (lambda: False) if stop() else stop)

    def _look(self, place: int, weights: Array, stop: Stop) -> None:
        self._report(self.attained, self.upper, self.nodes)
        self._climb(place, weights[:8], stop)

    def _climb(self, place: int, starts: int | Array, stop: Callable[[], bool]) -> None:
        lumped = self._lumped[place]
        center = self._ascend(lumped.center, starts, stop)
        rows, best, value = lumped.center, center, lumped_information(center, lumped.center)
        for _ in range(TURNS):
            rows = _most_telling(lumped, rows, best)
            found = self._ascend(rows, best[None], stop)
            before, value = value, lumped_information(found, rows)
            best = found
            if value > self.attained:
                self.attained = value
                self._worst = {place: [center, best]}
            if value <= before + GAIN or stop():
                break

    def _ascend(self, lumped: Lumped, starts: int | Array, stop: Callable[[], bool]) -> Array:
        run = ascend(lumped, self.floor, starts, self._rng, STEPS, stop)
        return meet_entropy_floor(run.point, lumped, self.floor)

    def found(self, gap: Gap) -> Found:
        """Return the ends that hold for all of the set, and what rows in it attain."""
        problem, mechanism = self.problem, self.problem.mechanism
        if not self._worst:  # interrupted before anything was done
            self._begin(0, Stop(Clock(0.0)))
        ((place, candidates),) = self._worst.items()
        group, uniform = self._groups[place], self._lumped[place].center.uniform()
        entries: list[dict[str, Any]] = []
        uppers: list[float] = []

        def proved(weights: Array) -> tuple[float, Array]:
            stored = weights.tolist()
            return prover.prove_lower_of_set(mechanism, group, self.floor, stored), weights

        with balls.precision():
            for i, records in enumerate(self._groups):
                entry: dict[str, Any] = {"records": list(records)}
                if i < len(self._searches):
                    lumped = self._lumped[i]
                    outputs = [[y] for y in range(lumped.lower.shape[1])]
                    entry["cells"] = self._searches[i].encoded(outputs, "<f8")
                else:
                    lumped = mechanism.lumped_set(records)
                uppers.append(prover.prove_upper_of_set(lumped, self.floor, entry))
                entries.append(entry)
            ends = [moved(weights, uniform, proved) for weights in candidates]
        lower, weights = max(ends, key=lambda end: end[0])
        return Found(
            lower,
            max(uppers),
            Adversary(mechanism, group, weights),
            (
                content_of(problem, self.floor, mechanism.to_dict()),
                {"records": list(group), "weights": weights.tolist()},
                {"groups": entries},
            ),
            {},
            {"nodes": self.nodes},
            attained=min(max(self.attained, lower), max(uppers)),
        )


def _most_telling(lumped: LumpedSet, rows: Lumped, weights: Array) -> Lumped:
    """Return the problem with the rows, in their boxes, that make posteriors most extreme.

    I(A;Y) is convex in the rows, so the tangent at the present ones is to be maximized.
    """
    joint = np.zeros((len(rows.values), rows.rows.shape[1]))
    np.add.at(joint, rows.value_index, weights[:, None] * rows.rows)
    price = np.log(np.maximum(joint, LEAST)) - np.log(np.maximum(joint.sum(axis=0), LEAST))
    lower, upper = lumped.lower[:, None], lumped.upper[:, None]
    new = largest_rows(lower, upper, price[rows.value_index][:, None])[:, 0, 0]
    return replace(rows, rows=new / new.sum(axis=1, keepdims=True))
