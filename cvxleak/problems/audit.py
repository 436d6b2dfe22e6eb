"""The engine of the audit: local search from below, choices and posterior cells from above."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from flint import arb, fmpz

from cvxleak._validation import Array, real_number
from cvxleak.branch_and_bound import (
    BestFirst,
    CellSearch,
    Choices,
    LawSearch,
    bound_choices,
    merge_outputs,
)
from cvxleak.certificates import Certificate
from cvxleak.certificates import record_leakage as prover
from cvxleak.certificates.balls import precision, round_down
from cvxleak.certificates.packing import pack
from cvxleak.errors import CertificateError
from cvxleak.iterative import joint_blahut_arimoto, meet_entropy_floor
from cvxleak.measures import lumped_information
from cvxleak.model import Lumped
from cvxleak.problems.adversary import Adversary
from cvxleak.result import ABSOLUTE_TOLERANCE, Bound

if TYPE_CHECKING:
    from cvxleak.problems.leakage import RecordLeakage

__all__ = ["Audit", "Progress"]

Progress = Callable[[float, float, int], None]

STARTS = 30
"""Random starts of the local search, per lumped problem."""

SLICE = 500
"""Cells that are bounded before slabs, or the next class of records, get their turn."""

SLAB_SLICE = 10
"""Slabs that are bounded in one turn; one takes as long as many cells."""

SLAB_LIMIT = 400
"""Most groups and outputs together for which slabs are tried: a Newton step solves for them all."""

CALIBRATION = {"cells": 100, "slabs": 5}
"""Leaves of the tree whose proof is timed, so that the whole proof ends within the time limit."""

SINGLE_PRECISION = 1e-6
"""Relative gaps above this are certified with multipliers stored in single precision."""


class _Group:
    """One class of groups of records: its lumped problem and what is known about it."""

    def __init__(self, records: tuple[int, ...], lumped: Lumped, floor: float) -> None:
        self.records = records
        self.lumped = lumped
        self.floor = floor
        self.merged, self.outputs = merge_outputs(lumped)
        self.searches: list[BestFirst[Any, Any, Any]] = [CellSearch(self.merged, floor)]
        self.slabs_may_help = sum(self.merged.rows.shape) <= SLAB_LIMIT
        self.choices: Choices | None = None
        self.batches = 0
        self.weights = lumped.uniform()  # where the local search ended last
        self._seconds_per_leaf: dict[str, float] = {}

    @property
    def best_search(self) -> BestFirst[Any, Any, Any]:
        """The search with the least upper end."""
        return min(self.searches, key=lambda search: search.upper)

    @property
    def upper(self) -> float:
        """The least of the bounds."""
        searched = self.best_search.upper
        return searched if self.choices is None else min(self.choices.upper, searched)

    @property
    def nodes(self) -> int:
        """Number of nodes bounded so far."""
        return sum(search.nodes for search in self.searches)

    @property
    def proof_seconds(self) -> float:
        """How long the proof will take, from a timed proof of a small tree."""
        search = self.best_search
        if search.kind not in self._seconds_per_leaf:
            if search.leaves < CALIBRATION[search.kind]:
                return 0.0
            start = time.monotonic()
            with precision():
                entry = {search.kind: search.encoded(self.outputs, "<f8")}
                prover.prove_upper(self.lumped, self.floor, entry)
            self._seconds_per_leaf[search.kind] = (time.monotonic() - start) / search.leaves
        return self._seconds_per_leaf[search.kind] * search.leaves

    def entry(self, dtype: str) -> dict[str, Any]:
        """Return what proves the upper end: only the part that is needed."""
        entry: dict[str, Any] = {"records": list(self.records)}
        search = self.best_search
        alphabet = float(np.log(len(self.lumped.values)))
        if self.choices is not None and self.choices.upper < alphabet:
            entry["choices"] = pack(self.choices.inputs)
        if search.upper < min(alphabet, self.upper + 1e-15):
            entry[search.kind] = search.encoded(self.outputs, dtype)
        return entry

    def proved(self, dtype: str) -> tuple[dict[str, Any], float]:
        """Return what proves the upper end, and the upper end that it proves.

        Where single precision costs more than rounding may, the multipliers are kept in double.
        """
        entry = self.entry(dtype)
        upper = prover.prove_upper(self.lumped, self.floor, entry)
        if dtype == "<f4" and upper > self.upper + 1e-6 * abs(self.upper) + 1e-9:
            entry = self.entry("<f8")
            upper = prover.prove_upper(self.lumped, self.floor, entry)
        return entry, upper


class Audit:
    """The state of one audit: it can be run, interrupted, certified and run on."""

    def __init__(self, problem: RecordLeakage, rng: int | np.random.Generator | None) -> None:
        self.problem = problem
        self._rng = np.random.default_rng(rng)
        mechanism = problem.mechanism
        # At b = log|X| rounding must not make the floor infeasible; a lower floor is on the safe
        # side, since the leakage does not increase with b.
        with precision():
            most = round_down(arb(fmpz(mechanism.space.size)).log())
        self.floor = min(problem.entropy_floor, max(most, 0.0))
        groups = mechanism.groups(problem.size) if problem.records is None else [problem.records]
        lumped = [mechanism.lumped(g[0] if len(g) == 1 else g) for g in groups]
        self._same: list[int] = []
        self._groups: list[_Group] = []
        for records, candidate in zip(groups, lumped, strict=True):
            for place, known in enumerate(self._groups):
                if prover.same_problem(known.lumped, candidate):
                    self._same.append(place)
                    break
            else:
                self._same.append(len(self._groups))
                self._groups.append(_Group(records, candidate, self.floor))
        self.lower = -np.inf
        self._best: tuple[_Group, Array] = (self._groups[0], self._groups[0].lumped.uniform())
        self._multiplier = 0.0
        self._seconds = 0.0
        self._prepared = False

    @property
    def upper(self) -> float:
        """The upper end as it stands: no group of records leaks more."""
        return max(group.upper for group in self._groups)

    @property
    def nodes(self) -> int:
        """Number of nodes bounded so far."""
        return sum(group.nodes for group in self._groups)

    def run(
        self,
        tol: float,
        time_limit: float | None = None,
        *,
        verbose: bool = False,
        progress: Progress | None = None,
    ) -> Bound:
        """Work until the gap is within `tol` or the time is up, and return the proved bracket."""
        real_number(tol, "tol", 0.0, 1.0, open_high=True)
        if time_limit is not None:
            real_number(time_limit, "time_limit", 0.0)
        start = time.monotonic()
        deadline = np.inf if time_limit is None else start + time_limit

        def stop() -> bool:
            proofs = sum(group.proof_seconds for group in self._groups)
            return time.monotonic() + proofs > deadline

        report = _Reporter(start, verbose, progress)
        stopped = "the gap is within the tolerance"
        try:
            self._prepare()
            while self.upper > self._target(tol):
                if stop():
                    stopped = f"the time limit of {time_limit:g} s was reached"
                    break
                self._advance(tol, stop, report)
        except KeyboardInterrupt:
            stopped = "interrupted"
        bound = self._certify(tol, stopped)
        self._seconds += time.monotonic() - start
        return replace(bound, stats={"seconds": self._seconds} | dict(bound.stats))

    def _target(self, tol: float) -> float:
        # A little inside the tolerance, so that rounding outwards does not undo it.
        return max(self.lower / (1 - 0.95 * tol), self.lower + 0.9 * ABSOLUTE_TOLERANCE)

    def _prepare(self) -> None:
        """Find a lower end by local search and an upper end by choices, for every class."""
        if self._prepared:
            return
        for group in self._groups:
            self._offer(group, group.lumped.uniform())
            group.choices = bound_choices(group.merged)
            if group.choices is not None:
                self._offer(group, group.choices.witnesses[0])
            self._climb(group, STARTS)
        self._prepared = True

    def _advance(self, tol: float, stop: Callable[[], bool], report: _Reporter) -> None:
        """Work for a while on the class with the largest upper end: cells, and slabs if they help.

        Progress is counted in nodes, not seconds, so that the same seed gives the same answer.
        """
        group = max(self._groups, key=lambda g: g.upper)

        def on_weights(weights: Array) -> None:
            group.batches += 1
            report(self.lower, self.upper, self.nodes)
            # Powers of two: the local search takes a vanishing share of the time.
            if group.batches & (group.batches - 1) == 0:
                self._climb(group, weights[:8])

        def search(part: BestFirst[Any, Any, Any], nodes: int) -> None:
            part.run(
                lambda: self._target(tol),
                resolution=self._target(tol) - self.lower,
                stop=stop,
                on_weights=on_weights,
                node_limit=part.nodes + nodes,
            )

        search(group.searches[0], SLICE)
        if not group.slabs_may_help or group.upper <= self._target(tol):
            return
        if len(group.searches) == 1:
            group.searches.append(LawSearch(group.merged, self.floor, group.weights))
        cells, slabs = group.searches
        before = slabs.upper
        search(slabs, SLAB_SLICE)
        gained = before - slabs.upper
        if slabs.upper > cells.upper and gained < 0.02 * (slabs.upper - self.lower):
            group.slabs_may_help = False

    def _climb(self, group: _Group, starts: int | Array) -> None:
        run = joint_blahut_arimoto(group.lumped, self.floor, starts=starts, rng=self._rng)
        group.weights = run.point
        if self._offer(group, run.point):
            self._multiplier = float(run.history["multiplier"][-1])

    def _offer(self, group: _Group, weights: Array) -> bool:
        """Take `weights`, made to meet the floor, as the witness if it leaks more."""
        feasible = meet_entropy_floor(group.lumped, weights, self.floor)
        value = lumped_information(feasible, group.lumped)
        if value > self.lower:
            self.lower, self._best, self._multiplier = value, (group, feasible), 0.0
            return True
        return False

    def _certify(self, tol: float, stopped: str) -> Bound:
        problem, mechanism = self.problem, self.problem.mechanism
        group, weights = self._best
        dtype = "<f4" if tol > SINGLE_PRECISION else "<f8"
        with precision():
            lower, weights = self._prove_lower(group, weights)
            entries, uppers = [], []
            for known in self._groups:
                entry, upper = known.proved(dtype)
                entries.append(entry)
                uppers.append(upper)
        upper = max(uppers)
        content = {
            "mechanism": mechanism.to_dict(),
            "entropy_floor": self.floor,
            "size": problem.size,
            "records": None if problem.records is None else [list(problem.records)],
        }
        first: dict[int, int] = {}
        proof = []
        for place, known in enumerate(self._same):
            proof.append({"same_as": first[known]} if known in first else entries[known])
            first.setdefault(known, place)
        certificate = Certificate(
            "record-leakage",
            content,
            lower,
            upper,
            {"records": list(group.records), "weights": weights.tolist()},
            {"groups": proof},
        )
        return Bound.proved(
            problem.name,
            lower,
            upper,
            tol=tol,
            witness=Adversary(mechanism, group.records, weights),
            certificate=certificate,
            shadow_prices={"entropy_floor": -self._multiplier},
            stats={"nodes": self.nodes, "stopped": stopped},
            resume=self.run,
        )

    def _prove_lower(self, group: _Group, weights: Array) -> tuple[float, Array]:
        uniform = group.lumped.uniform()
        share = 0.0
        while True:
            candidate = (1 - share) * weights + share * uniform
            try:
                return prover.prove_lower(group.lumped, self.floor, candidate.tolist()), candidate
            except CertificateError:
                if share == 1.0:
                    raise
                share = min(1.0, max(1e-13, 8 * share))


class _Reporter:
    """Hands the state of the search to whoever asked for it, at most once a second in print."""

    def __init__(self, start: float, verbose: bool, progress: Progress | None) -> None:
        self._start, self._verbose, self._progress = start, verbose, progress
        self._last = start

    def __call__(self, lower: float, upper: float, nodes: int) -> None:
        if self._progress is not None:
            self._progress(lower, upper, nodes)
        now = time.monotonic()
        if self._verbose and now - self._last >= 1.0:
            self._last = now
            print(f"{now - self._start:7.1f} s  {lower:.7g} to {upper:.7g} nats  {nodes} nodes")
