"""`CellAudit`: the audit by posterior cells alone, of a set of channels or of any gain."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cvxleak.audit.adversary import Adversary
from cvxleak.audit.old_terms import attained_by, in_terms
from cvxleak.audit.search.adversary_domain import Domain
from cvxleak.audit.search.audit import (
    GAIN,
    Progress,
    Statement,
    above_floor,
    ascend,
    classes_of,
    content_of,
    floor_of,
    moved,
    target,
)
from cvxleak.audit.search.cell_search import CELLS_LIMIT, CellSearch
from cvxleak.audit.search.objective import Objective
from cvxleak.audit.search.tangent_steps import TangentSteps
from cvxleak.audit.search.witnesses import joint_law, one_group_per_value
from cvxleak.core.clock import Clock, Stop
from cvxleak.core.validation import Array, generator
from cvxleak.exact import balls
from cvxleak.iterative import meet_entropy_floor
from cvxleak.measures import lumped_information
from cvxleak.model import ChannelSet, Limits, Lumped
from cvxleak.model.channel_set import LumpedSet
from cvxleak.model.restricted import restrict
from cvxleak.problem import Gap, Stopped
from cvxleak.problem.problem import Found
from cvxleak.solvers.knapsack import largest_rows

__all__ = ["CellAudit"]

STARTS = 30
"""Random starts of the local search for the leakage."""

GAIN_STARTS = 6
"""Random starts of the local search for another gain, whose steps are larger."""

STEPS = 1000
"""Most steps of the local search."""

FIRST_NODES = 500
"""Nodes of a tree before it is asked whether it gets on."""

STUCK = 0.7
"""Share of the gap that twice the nodes may leave."""

FINITE_STUCK = 0.99
"""The same for a gain with few actions, whose tree ends unless rounding keeps it from closing."""

OUTGROWN = 0.5
"""Share of the gap by which a factor may be above the one that a tree is about."""

TURNS = 20
"""Most times that the local search and the choice of the rows that leak most alternate."""

LEAST = 1e-300
"""Probabilities are raised to this before their logarithm is taken."""

ENTRY_SECONDS = 1e-5
"""About how long the proof of a leaf takes, for each probability."""


@dataclass
class _Part:
    """One class of groups of records, with what is known of its rows and its adversaries."""

    group: tuple[int, ...]
    lumped: Lumped
    of_set: LumpedSet | None
    domain: Domain | None
    least: float  # of the gain, for a factor
    search: CellSearch | None = None

    @property
    def boxes(self) -> tuple[Array, Array] | None:
        """Bounds on the rows' probabilities, if the channel is only known to be in a set."""
        return None if self.of_set is None else (self.of_set.lower, self.of_set.upper)

    @property
    def limits(self) -> Limits | None:
        """What all adversaries meet, if more is known of them than their entropy."""
        return None if self.domain is None else self.domain.limits


class CellAudit:
    """The search of one audit of a set of channels, or of another gain than Shannon's.

    For a set of channels, the tree is about the whole set: the bound of a node holds for all rows
    in their boxes. The rows that leak most and the worst adversary are found in turn. A query value
    may get different rows for different values of the record, which no channel has. What is found
    therefore lies between the largest leakage of a member and the bound that a tree tends to.

    For a factor, the tree is about sum_y s_y G(rho_y) - t G(pi) for the largest factor t that was
    found (Dinkelbach's method), and is made anew when that grows.
    """

    def __init__(
        self, problem: Statement, rng: int | np.random.Generator | None, report: Progress
    ) -> None:
        self.problem = problem
        self._told = problem.told
        self._rng, self._report = generator(rng), report
        self.floor = floor_of(problem)
        self._groups = classes_of(problem)
        self._parts: list[_Part] = []
        # The worst adversaries of centers, and of the rows that leak most.
        self._worst: dict[int, list[Array]] = {}
        self.attained = -np.inf

    @property
    def upper(self) -> float:
        """The upper bound as it stands."""
        return max((self._upper(part) for part in self._parts), default=np.inf)

    @property
    def nodes(self) -> int:
        """Number of nodes bounded so far."""
        return sum(part.search.nodes for part in self._parts if part.search is not None)

    def advance(self, gap: Gap, stop: Stop) -> Stopped:
        """Work until the gap is closed or something ends it."""
        for place in range(len(self._parts), len(self._groups)):
            if place and stop():
                return Stopped.at_limit(stop.clock)
            self._begin(place, gap, stop)
        stuck = [not self._run(place, gap, stop) for place in range(len(self._parts))]
        if stop():
            return Stopped.at_limit(stop.clock)
        if self.upper > target(self.attained, gap) and any(map(self._too_large, self._parts)):
            return Stopped.TOO_LARGE
        return Stopped.NO_PROGRESS if any(stuck) else Stopped.TOLERANCE

    def proof_seconds(self) -> float:
        """Return about how long the proof will take."""
        return sum(
            ENTRY_SECONDS * part.search.leaves * part.lumped.rows.size
            for part in self._parts
            if part.search is not None
        )

    def _upper(self, part: _Part) -> float:
        search = part.search
        if search is None:
            return self._ceiling(len(part.lumped.values))
        objective = search.dual.objective
        if self._told.form != "factor":
            return search.upper
        return objective.times + max(search.upper, 0.0) / part.least

    def _ceiling(self, k: int) -> float:
        """Return a bound for all adversaries and channels."""
        if self._told.form != "factor":
            return Objective.of(self._told, k, 0.0).ceiling(k)[0]
        objective = Objective.of(self._told, k, 1.0)
        return float(objective.heights(np.eye(k)).max()) / objective.least(k)[0]

    def _goal(self, part: _Part, gap: Gap) -> float:
        """Return the bound of the tree that closes the gap."""
        aim = target(self.attained, gap)
        if self._told.form != "factor" or part.search is None:
            return aim
        return (aim - part.search.dual.objective.times) * part.least

    def _too_large(self, part: _Part) -> bool:
        """Whether a Newton step of a node would take many seconds."""
        return len(part.lumped.values) * part.lumped.rows.shape[1] > CELLS_LIMIT

    def _run(self, place: int, gap: Gap, stop: Stop) -> bool:
        """Search one tree; false if twice the nodes gained next to nothing.

        The rows that leak most change abruptly from one node to another, and the multipliers of a
        node may then be far from optimal.
        """
        part = self._parts[place]
        while not stop() and not self._too_large(part):
            if part.search is None or self._outgrown(part, gap):
                part.search = CellSearch(
                    part.lumped,
                    self.floor,
                    part.limits,
                    boxes=part.boxes,
                    objective=Objective.of(self._told, len(part.lumped.values), self.attained),
                )
            search, goal = part.search, self._goal(part, gap)
            before = search.upper - goal
            if before <= 0:
                break
            limit = max(FIRST_NODES, 2 * search.nodes)
            search.run(
                lambda: self._goal(part, gap),
                resolution=max(target(self.attained, gap) - self.attained, 1e-12),
                stop=lambda: stop() or self._outgrown(part, gap),
                on_weights=lambda weights: self._look(place, weights, stop),
                node_limit=limit,
            )
            # The tree of a gain with few actions is finite, and gets on late.
            finite = part.boxes is None and search.dual.objective.actions is not None
            left = search.upper - self._goal(part, gap)
            if search.nodes >= limit and left > (FINITE_STUCK if finite else STUCK) * before:
                return False
        return True

    def _outgrown(self, part: _Part, gap: Gap) -> bool:
        """Whether a factor was found that is well above the one that a tree is about."""
        if self._told.form != "factor" or part.search is None:
            return False
        grown = self.attained - part.search.dual.objective.times
        return grown > OUTGROWN * (target(self.attained, gap) - self.attained)

    def _begin(self, place: int, gap: Gap, stop: Stop) -> None:
        problem, group = self.problem, self._groups[place]
        if problem.adversaries:
            restricted = restrict(problem.mechanism, group, problem.adversaries)
            domain, of_set = Domain(restricted, self.floor), restricted.of_set
            part = _Part(group, restricted.lumped, of_set, domain, self._least(group))
        elif isinstance(problem.mechanism.noise, ChannelSet):
            of_set = problem.mechanism.lumped_set(group)
            part = _Part(group, of_set.center, of_set, None, self._least(group))
        else:
            lumped = problem.mechanism.lumped(group)
            part = _Part(group, lumped, None, None, self._least(group))
        self._parts.append(part)
        for start in self._starts(part):
            self._climb(place, start, stop)
            if stop() or self._upper(part) <= target(self.attained, gap):
                break

    def _least(self, group: tuple[int, ...]) -> float:
        """Return the least gain before the output is seen, if it divides."""
        if self._told.form != "factor":
            return 1.0
        k = len(self.problem.mechanism.space.values(group))
        return Objective.of(self._told, k, 1.0).least(k)[0]

    def _starts(self, part: _Part) -> Iterator[int | Array]:
        if self._told.is_leakage:
            yield STARTS
            return
        size = len(part.lumped.rows)
        if part.domain is None:
            yield part.lumped.uniform()[None]
            yield one_group_per_value(part.lumped, self.floor)[None]
        else:
            yield part.domain.center[None]
        for law in self._rng.dirichlet(np.full(size, 0.3), size=GAIN_STARTS):
            yield law[None]

    def _look(self, place: int, weights: Array, stop: Stop) -> None:
        self._report(self.attained, self.upper, self.nodes)
        part = self._parts[place]
        if self._told.is_leakage and part.domain is not None:
            # Steps in a class are slow: only from where there is more than was found.
            found = part.domain.meet(weights[0])
            if lumped_information(found, _most_telling(part, part.lumped, found)) <= self.attained:
                return
        self._climb(place, weights[:8], stop)

    def _climb(self, place: int, starts: int | Array, stop: Stop) -> None:
        """Look for a worst adversary of the center of the set, and of the rows that leak most."""
        part = self._parts[place]
        if not self._told.is_leakage:
            assert not isinstance(starts, int)
            self._climb_tangents(place, starts, stop)
            return
        # The first climb is short even where there is no time for it: there has to be a witness.
        late = stop()
        starts, stop_at = (2, _never) if late and not self._worst else (starts, stop)
        center = self._ascend(part, part.lumped, starts, stop_at)
        rows, best, value = part.lumped, center, lumped_information(center, part.lumped)
        for _ in range(TURNS):
            rows = _most_telling(part, rows, best)
            found = self._ascend(part, rows, best[None], stop_at)
            before, value = value, lumped_information(found, rows)
            best = found
            if value > self.attained:
                self.attained = value
                self._worst = {place: [center, best]}
            if value <= before + GAIN or stop():
                break

    def _ascend(
        self, part: _Part, lumped: Lumped, starts: int | Array, stop: Callable[[], bool]
    ) -> Array:
        if part.domain is not None:
            found = part.domain.search(starts, self._rng, STEPS, lumped)
            weights = [part.domain.meet(one) for one, _ in found[:1]] or [part.domain.center]
            return weights[0]
        run = ascend(lumped, self.floor, starts, self._rng, STEPS, stop)
        return meet_entropy_floor(run.point, lumped, self.floor)

    def _climb_tangents(self, place: int, starts: Array, stop: Stop) -> None:
        """Climb from the best start by tangents, in turn with the rows of a set that leak most."""
        part = self._parts[place]
        rows, center = part.lumped, None
        weights = np.maximum(starts, 0.0)
        for _ in range(TURNS):
            steps = TangentSteps(rows, self.floor, self._told, part.domain)
            weights, value = steps.climb(weights, stop)
            center = weights if center is None else center
            grown = value > self.attained
            if grown:
                self.attained = value
                self._worst = {place: [center, weights]}
            if part.boxes is None or not grown or stop():
                break
            rows = _most_telling(part, rows, weights, self._told.gain.tangent)
            weights = weights[None]

    def found(self, gap: Gap) -> Found:
        """Return the proved bounds, of all of the set if there is one."""
        problem, mechanism = self.problem, self.problem.mechanism
        if not self._worst:  # interrupted before anything was done
            self._begin(len(self._parts), gap, Stop(Clock(0.0)))
        ((place, candidates),) = self._worst.items()
        part = self._parts[place]
        content = content_of(problem, self.floor, mechanism.to_dict())
        with balls.precision():
            allowed = [self._allowed(part, weights) for weights in candidates]
        weights, written = allowed[0]
        if len(allowed) > 1:
            weights, written = max(
                allowed, key=lambda one: attained_by(content, part.group, one[1])
            )
        of_set = part.of_set is not None
        found = Found(
            self.attained,
            self.upper,
            Adversary(mechanism, part.group, weights, problem.adversaries),
            (
                content,
                {"records": list(part.group), "weights": written},
                {"groups": [self._entry(records, i) for i, records in enumerate(self._groups)]},
            ),
            {},
            {"method": self._method, "nodes": self.nodes},
        )
        found = in_terms(found)
        if not of_set:
            return found
        return replace(found, attained=min(max(self.attained, found.lower), found.upper))

    @property
    def _method(self) -> str:
        is_set = isinstance(self.problem.mechanism.noise, ChannelSet)
        why = "the channel is only known to lie in a set" if is_set else "the gain is not Shannon's"
        return (
            "local search from below, and from above branch and bound on cells of posteriors "
            f"alone, because {why}"
        )

    def _entry(self, records: tuple[int, ...], place: int) -> dict[str, Any]:
        """Return what proves the upper bound for one class."""
        entry: dict[str, Any] = {"records": list(records)}
        part = self._parts[place] if place < len(self._parts) else None
        if part is not None and part.search is not None:
            outputs = [[y] for y in range(part.lumped.rows.shape[1])]
            entry["cells"] = part.search.encoded(outputs, "<f8")
        return entry

    def _allowed(self, part: _Part, weights: Array) -> tuple[Array, list[float] | list[str]]:
        """Return a witness who is proved to be allowed, and how a certificate holds it."""
        if part.domain is not None:
            return moved(weights, part.domain.center, part.domain.allowed)
        found = above_floor(part.lumped, self.floor, weights)
        return found, found.tolist()


def _never() -> bool:
    return False


def _log_posteriors(joint: Array) -> Array:
    """Return the tangents of -H at the columns of a joint distribution, shape (outputs, k)."""
    return np.log(np.maximum(joint, LEAST)) - np.log(np.maximum(joint.sum(axis=-1), LEAST))[:, None]


def _most_telling(
    part: _Part,
    rows: Lumped,
    weights: Array,
    tangent: Callable[[Array], Array] = _log_posteriors,
) -> Lumped:
    """Return the problem with the rows, in their boxes, that make posteriors most extreme.

    What is maximized is convex in the rows, so the tangent at the present ones is to be maximized.
    """
    if part.boxes is None:
        return rows
    price = tangent(joint_law(weights, rows).T).T
    lower, upper = part.boxes[0][:, None], part.boxes[1][:, None]
    new = largest_rows(lower, upper, price[rows.value_index][:, None])[:, 0, 0]
    return replace(rows, rows=new / new.sum(axis=1, keepdims=True))
