"""`AuditedFloors`: one record, or the worst of all, audited at many entropy floors at once."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cvxleak.audit.adversary import Adversary
from cvxleak.audit.old_terms import in_proof
from cvxleak.audit.record_leakage import RecordLeakage
from cvxleak.audit.search import Choices, FloorsSearch, SharingSearch, bound_choices
from cvxleak.audit.search.audit import (
    GAIN,
    SINGLE_PRECISION,
    Audit,
    Progress,
    above_floor,
    content_of,
    identity_of,
)
from cvxleak.audit.search.audited_group import AuditedGroup
from cvxleak.audit.search.tangents import by_tangents, largest_contraction
from cvxleak.capacities.outputs import merge_outputs
from cvxleak.core.clock import Stop
from cvxleak.core.validation import Array
from cvxleak.exact import balls
from cvxleak.exact.packing import pack
from cvxleak.iterative.entropy_floor import least_mixture, rounding
from cvxleak.iterative.formulas import information
from cvxleak.iterative.joint_update import Updater, ascend
from cvxleak.measures import lumped_entropy, lumped_information
from cvxleak.model import Lumped
from cvxleak.problem.bound import ABSOLUTE_TOLERANCE, Bound
from cvxleak.proofs import Certificate

__all__ = ["AuditedFloors", "climb_at_floors"]

STARTS = 6
"""Random starts of the local search at each floor."""

STEPS, LONGER = 20, 60
"""Steps of the local search from those, and from the best and what its neighbors found."""

SWEEPS = 2
"""How often each floor tries what was found at its neighbors."""

TOGETHER = 64
"""Most relaxed maximizers that are tried together as starts."""

SHARING_NODES = 1000
"""Most nodes of the time-sharing bound at one floor."""

NODES = {2: 4000}
FEW_NODES = 400
"""Most nodes per floor, by the number of a record's values: the more there are, the less have the
trees of two floors in common, and past a few nodes each floor is better off with one of its own."""

PROOF_SECONDS = 1e-4
"""About how long the proof of one node's multipliers takes."""

Places = NDArray[np.intp]


class _Group:
    """One class of records: its lumped problem, and the bounds on it."""

    def __init__(self, records: tuple[int, ...], lumped: Lumped) -> None:
        self.records, self.lumped = records, lumped
        group = AuditedGroup(records, lumped, 0.0)
        self.small = group.small
        self.problem, self.symmetries, self.outputs = group.problem_of_cells()
        self.choices: Choices | None = None
        self.flat = float(np.log(len(lumped.values)))  # the least bound that holds at every floor
        self.places: Places = np.zeros(0, dtype=np.intp)  # the floors of `search`
        self.search: FloorsSearch | None = None
        # What was found at each floor for these records: the leakage, by whom, and the floor's
        # multiplier.
        self.found: dict[int, tuple[float, Array, float]] = {}
        self.sharing: dict[int, SharingSearch] = {}  # the floors that this is enough for

    @cached_property
    def merged(self) -> tuple[Lumped, list[list[int]]]:
        """What time sharing bounds: the problem with outputs merged, and which they are."""
        return merge_outputs(self.lumped)


class AuditedFloors:
    """Bounds at all floors, from one local search and one tree for each class of records.

    `bounds` is valid whatever was done before.
    """

    def __init__(self, problems: list[RecordLeakage], tol: float, rng: np.random.Generator) -> None:
        self._problems, self._tol, self._rng = problems, tol, rng
        self._mechanism = problems[0].mechanism
        self.floors = np.array([Audit(problem, rng).floor for problem in problems])
        self._groups: list[_Group] = []
        self._same: list[int] = []  # for each class of records, the place of its group
        known: dict[Any, int] = {}
        given = problems[0].records
        for records in self._mechanism.groups(1) if given is None else [given]:
            lumped = self._mechanism.lumped(records[0] if len(records) == 1 else records)
            key = identity_of(lumped)
            if key not in known:
                known[key] = len(self._groups)
                self._groups.append(_Group(records, lumped))
                if not self._groups[-1].small:
                    break
            self._same.append(known[key])
        uniform = [group.lumped.uniform() for group in self._groups]
        self._lower = np.full(len(problems), -np.inf)
        self._multipliers = np.zeros(len(problems))
        self._best = [(self._groups[0], uniform[0])] * len(problems)
        for group, weights in zip(self._groups, uniform, strict=True):
            self._offer(group, np.arange(len(problems)), weights)

    @property
    def small(self) -> bool:
        """Whether posterior cells are what to try first, for every class of records."""
        return all(group.small for group in self._groups)

    @property
    def searched(self) -> set[int]:
        """The floors that took a search."""
        return {int(place) for group in self._groups for place in [*group.places, *group.sharing]}

    def run(self, stop: Stop, report: Progress) -> None:
        """Work until all gaps are within the tolerance, or until the nodes or the time are up."""
        for step in (self._prepare, self._share):
            for group in self._groups:
                step(group, stop)
        for group in self._groups:
            self._search(group, stop, report)

    def proof_seconds(self) -> float:
        """Return about how long the proof of all that the trees found will take."""
        trees = (group.search for group in self._groups if group.search is not None)
        return PROOF_SECONDS * sum(search.tangents for search in trees)

    def _prepare(self, group: _Group, stop: Stop) -> None:
        """Bound the leakage at all floors at once, and look for adversaries."""
        group.choices = bound_choices(group.problem, stop=stop)
        if group.choices is not None:
            group.flat = min(group.flat, group.choices.upper)
            best = group.choices.witnesses[0]
            enough = self.floors <= lumped_entropy(best, group.lumped)
            self._offer(group, np.flatnonzero(enough), best)
        places = np.flatnonzero(group.flat > self._thresholds()[0])
        if not len(places):
            return
        concentrations = 0.1 * 3.0 ** np.arange(STARTS)
        starts = np.stack(
            [self._rng.dirichlet(np.full(len(group.lumped.rows), c)) for c in concentrations]
        )
        starts = np.maximum(starts, 1e-6 * group.lumped.uniform())
        found = self._climb(
            group, np.repeat(places, STARTS), np.tile(starts, (len(places), 1)), STEPS
        )
        rows = np.arange(len(places))
        for _ in range(SWEEPS):
            if stop():
                return
            weights, values = found
            best = values.reshape(len(places), -1).argmax(axis=1)
            best_here = weights.reshape(len(places), -1, weights.shape[1])[rows, best]
            near = np.stack(
                [best_here, np.roll(best_here, 1, axis=0), np.roll(best_here, -1, axis=0)], axis=1
            )
            flat = near.reshape(-1, weights.shape[1])
            found = self._climb(group, np.repeat(places, 3), flat, LONGER)

    def _share(self, group: _Group, stop: Stop) -> None:
        """Bound by time sharing, floor by floor: by tangents, or with trees that take few nodes."""
        goal, gap = self._thresholds()
        merged, _ = group.merged
        contraction = largest_contraction(merged)
        last: SharingSearch | None = None
        for place in np.flatnonzero(group.flat > goal).tolist():
            if stop():
                return
            _, weights, multiplier = group.found[place]
            if multiplier <= 0:
                continue
            floor, lam = float(self.floors[place]), max(multiplier, contraction)
            search = by_tangents(merged, floor, weights, lam, LONGER, stop)
            if search.upper <= goal[place]:
                group.sharing[place] = search
                continue
            if len(group.lumped.values) == 2:
                continue  # their trees of cells are small
            search = SharingSearch(merged, floor, weights, multiplier, last)
            if search.attained > goal[place]:
                continue  # time sharing leaks more than the tolerance allows for
            search.run(
                lambda place=place: float(goal[place]),
                resolution=float(gap[place]),
                stop=stop,
                on_weights=lambda weights: None,
                node_limit=SHARING_NODES,
            )
            if search.upper <= goal[place]:
                group.sharing[place] = last = search

    def _search(self, group: _Group, stop: Stop, report: Progress) -> None:
        goal, _ = self._thresholds()
        open_ = group.flat > goal
        open_[list(group.sharing)] = False
        places = np.flatnonzero(open_)
        if not len(places) or stop():
            return
        search = FloorsSearch(group.problem, self.floors[places].tolist(), group.symmetries)
        group.places, group.search = places, search
        batches = 0

        def thresholds() -> tuple[Array, Array]:
            goal, gap = self._thresholds()
            return goal[places], gap[places]

        def on_weights(weights: Array, at: Places) -> None:
            nonlocal batches
            batches += 1
            # Powers of four: the local search takes a vanishing share of the time, and so do the
            # bounds that are reported, each of which goes through the whole tree.
            if batches & (batches - 1) == 0 and batches.bit_length() % 2:
                lower, upper = self._lower[places], search.upper
                widest = int(np.argmax(upper - lower))
                report(float(lower[widest]), float(upper[widest]), search.nodes)
                chosen = np.unique(np.linspace(0, len(at) - 1, TOGETHER).astype(int))
                self._climb(group, places[at[chosen]], weights[chosen], STEPS)

        search.run(
            thresholds,
            stop=stop,
            on_weights=on_weights,
            node_limit=NODES.get(len(group.lumped.values), FEW_NODES) * len(places),
        )

    def _thresholds(self) -> tuple[Array, Array]:
        """Return the upper bound to reach at each floor, and what it leaves for a gap."""
        # A little inside the tolerance, so that rounding outwards does not undo it.
        lower = self._lower
        goal = np.maximum(lower / (1 - 0.95 * self._tol), lower + 0.9 * ABSOLUTE_TOLERANCE)
        return goal, goal - lower

    def _climb(
        self, group: _Group, places: Places, starts: Array, steps: int
    ) -> tuple[Array, Array]:
        weights, values, multipliers = climb_at_floors(
            group.lumped, self.floors[places], starts, max_iterations=steps, tol=GAIN
        )
        for place in np.unique(places):
            mine = np.flatnonzero(places == place)
            best = mine[values[mine].argmax()]
            found = float(values[best]), weights[best], float(multipliers[best])
            if found[0] > group.found.get(int(place), found)[0] or int(place) not in group.found:
                group.found[int(place)] = found
            if found[0] > self._lower[place]:
                self._take(int(place), group, found[1], found[0], found[2])
        self._spread()
        return weights, values

    def _offer(self, group: _Group, places: Places, weights: Array) -> None:
        """Take an adversary who meets some of the floors as the witness where he learns more."""
        value = lumped_information(weights, group.lumped)
        for place in places.tolist():
            if value > self._lower[place]:
                self._take(place, group, weights, value, 0.0)

    def _spread(self) -> None:
        """Whoever meets a floor meets all that are lower."""
        for place in range(len(self._lower) - 2, -1, -1):
            if self._lower[place + 1] > self._lower[place]:
                group, weights = self._best[place + 1]
                self._take(place, group, weights, self._lower[place + 1], 0.0)

    def _take(
        self, place: int, group: _Group, weights: Array, value: float, multiplier: float
    ) -> None:
        self._best[place] = group, weights
        self._lower[place], self._multipliers[place] = value, multiplier

    def bounds(self, closed_only: bool) -> list[Bound]:
        """Return proved bounds for each floor.

        With `closed_only` the trees count only where they got as far as the tolerance asks for,
        which saves a long proof of what will be improved on anyway.
        """
        with balls.precision():
            worst = [
                above_floor(group.lumped, floor, weights)
                for floor, (group, weights) in zip(self.floors.tolist(), self._best, strict=True)
            ]
        proofs: list[list[dict[str, Any]]] = [[] for _ in self.floors]
        for place, known in enumerate(self._same):
            if known in self._same[:place]:
                same = self._same.index(known)
                entries = [{"same_as": same} for _ in self.floors]
            else:
                entries = self._entries(self._groups[known], closed_only)
            for proof, entry in zip(proofs, entries, strict=True):
                proof.append(entry)
        mechanism = self._mechanism.to_dict()
        return [
            self._bound(place, mechanism, worst[place], proofs[place])
            for place in range(len(self.floors))
        ]

    def _entries(self, group: _Group, closed_only: bool) -> list[dict[str, Any]]:
        """Return for each floor what proves the upper bound for a group."""
        flat: dict[str, Any] = {"records": list(group.records)}
        if group.choices is not None and group.choices.upper <= group.flat:
            flat["choices"] = pack(group.choices.inputs)
        result = [flat] * len(self.floors)
        dtype = "<f4" if self._tol > SINGLE_PRECISION else "<f8"
        for place, sharing in group.sharing.items():
            encoded = sharing.encoded(group.merged[1], dtype)
            result[place] = {"records": list(group.records), "sharing": encoded}
        search = group.search
        if search is None:
            return result
        uppers = search.upper
        goal = self._thresholds()[0][group.places]
        useful = np.flatnonzero(
            (uppers < group.flat) & (uppers <= (goal if closed_only else np.inf))
        )
        # More than the tolerance asks for would only make the proofs longer.
        targets = {int(i): float(min(max(uppers[i], goal[i]), group.flat)) for i in useful}
        if targets:
            for i, cells in search.encoded(group.outputs, targets, dtype).items():
                result[int(group.places[i])] = {"records": list(group.records), "cells": cells}
        return result

    def _bound(
        self,
        place: int,
        mechanism: dict[str, Any],
        weights: Array,
        proof: list[dict[str, Any]],
    ) -> Bound:
        problem, (group, _) = self._problems[place], self._best[place]
        parts = (
            content_of(problem, float(self.floors[place]), mechanism),
            {"records": list(group.records), "weights": weights.tolist()},
            {"groups": proof},
        )
        adversary = Adversary(self._mechanism, group.records, weights)
        lower, upper, (content, below, above) = in_proof(parts)
        certificate = Certificate(problem.kind, content, lower, upper, below, above)
        method = (
            "local search from below, and from above branch and bound on cells of posteriors for "
            "all floors together, because they share most of the work"
        )
        return Bound.proved(
            problem.name,
            lower,
            upper,
            tol=self._tol,
            witness=adversary,
            certificate=certificate,
            shadow_prices={"entropy_floor": -float(self._multipliers[place])},
            stats={"method": method},
            resume=lambda tol, time_limit, work_limit: problem.solve(
                tol=tol, time_limit=time_limit, work_limit=work_limit, rng=self._rng
            ),
        )


def climb_at_floors(
    lumped: Lumped, floors: Array, starts: Array, *, max_iterations: int, tol: float
) -> tuple[Array, Array, Array]:
    """Follow lumped priors, shape (S, N), to better ones that meet the floors, shape (S,).

    The method is that of `joint_blahut_arimoto`. Returned are the priors, their information and the
    floors' multipliers.
    """
    updater = Updater(lumped, 0.0)
    margin = rounding(lumped.max_entropy)
    # A little more than the floor, so that rounding does not miss it.
    aims = np.minimum(floors + 2 * margin, lumped.max_entropy)
    loose = aims < lumped.max_entropy - margin
    uniform = lumped.uniform()
    weights = np.tile(uniform, (len(starts), 1))
    values = np.tile(information(updater.joint(weights[:1])), len(starts))
    multipliers = np.zeros(len(starts))
    if loose.any():
        count = int(loose.sum())
        current = updater.update(
            updater.joint(starts[loose]), np.full(count, 0.1), np.ones(count), aims[loose]
        )
        ascend(updater, current, aims[loose], max_updates=max_iterations, least_gain=tol)
        weights[loose] = [
            least_mixture(w, uniform, lumped.log_multiplicity, b)
            for w, b in zip(current.weights, floors[loose].tolist(), strict=True)
        ]
        values[loose], multipliers[loose] = current.value, current.multiplier
    return weights, values, multipliers
