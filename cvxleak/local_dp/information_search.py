"""Where `MinInformation` finds its witness and its proof: repaired channels, saddle points."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np

from cvxleak.core.errors import CertificateError, SolverError
from cvxleak.core.validation import Array
from cvxleak.iterative.saddle import least_lagrangian
from cvxleak.kernel.numbers import precision
from cvxleak.local_dp.general import least_distortion_rows
from cvxleak.local_dp.information_program import Saddle
from cvxleak.local_dp.linear import Mixture, SourceProgram, supports
from cvxleak.local_dp.proof_candidates import labeled_channel
from cvxleak.local_dp.statement import Costs
from cvxleak.local_dp.worst_information import divergences
from cvxleak.model import Prior
from cvxleak.problem.problem import Found
from cvxleak.proofs.min_information import prove
from cvxleak.sources import SourceSet
from cvxleak.sources.parts import Part

__all__ = ["InformationSearch"]

STEPS = (1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1.0)
"""Relative moves below the budget, in turn, until the exact check agrees."""

FAR = 1e-6
"""A channel that has to be moved further than this is also moved row by row."""


class InformationSearch:
    """The best bounds so far of one problem, and what proves them.

    Parameters
    ----------
    sources : SourceSet
    costs : Costs
    budget : float
    law : ndarray
        A distribution of the outputs: what to try if there is nothing better.
    """

    def __init__(self, sources: SourceSet, costs: Costs, budget: float, law: Array) -> None:
        self._sources, self._costs, self._budget, self._law = sources, costs, budget, law
        self._stored = {
            "sources": sources.parts_to_list(),
            "distortion": costs.stored,
            "budget": budget,
        }
        self._rough = least_distortion_rows(costs.matrix)
        self._least = self._spent(self._rough)
        self._outputs: Array | None = None
        self.lower, self.upper = 0.0, math.inf
        self.channel: Array | None = None
        self.proof: dict[str, Any] = {}
        self.saddle: Saddle | None = None

    def found(self, outputs: tuple[Hashable, ...], method: str) -> Found:
        """Return the channel with its labels, and what proves the bounds."""
        labels, rows = self._sources.labels, np.asarray(self.channel)
        laws = [] if self.saddle is None else self.saddle.laws
        return Found(
            self.lower,
            self.upper,
            labeled_channel(rows, labels, outputs),
            (self._stored, self._witness(rows, self._outputs), self.proof),
            {"budget": 0.0 if self.saddle is None else -self.saddle.price},
            {
                "method": method,
                "worst_sources": tuple(Prior(law.law / law.law.sum(), labels) for law in laws),
                "weights": () if self.saddle is None else tuple(self.saddle.weights.tolist()),
            },
        )

    def take_if_flat(self, channel: Array) -> bool:
        """Take a channel that ignores its input, if it meets the budget."""
        ends = self._ends(channel, None, {})
        if ends is not None:
            self._take_upper(ends[1], channel, None)
        return ends is not None

    def take_rough(self) -> None:
        """Take what is as near to a constant output as the budget allows."""
        self._take(np.tile(self._law, (self._sources.size, 1)), [None])
        if self.channel is None:
            self._take(self._rough, [None])

    def improve(self, saddle: Saddle, iterations: int) -> None:
        """Take what a saddle point in floats proves."""
        parts = list(zip(self._sources.parts, saddle.laws, strict=True))
        hulls = [_vertices(part, law) for part, law in parts]
        mixed = [w * _shares(law) for w, law in zip(saddle.weights, saddle.laws, strict=True)]
        costed = saddle.mixture.law[:, None] * saddle.price * self._costs.matrix
        # From the solver's output distributions: they are all but optimal, and the tangent may be
        # anywhere.
        _, tangent, _ = least_lagrangian(
            hulls, mixed, costed, start=saddle.outputs, max_iterations=iterations
        )
        proof = {
            "channel": tangent.tolist(),
            "price": saddle.price,
            "mixture": saddle.mixture.to_dict(),
            "parts": [
                {"weight": float(w), "mixture": law.to_dict()}
                for w, law in zip(saddle.weights, saddle.laws, strict=True)
            ],
        }
        for rows in (tangent, saddle.channel):
            self._take(rows, [saddle.laws, saddle.outputs])
        used = self._rough.max(axis=0)
        even = np.tile(used / used.sum(), (len(parts), 1))
        self._take(self._rough, [saddle.laws, saddle.outputs, even])
        if self.channel is not None:
            ends = self._ends(self.channel, self._outputs, proof)
            if ends is not None and (ends[0] > self.lower or not self.proof):
                self.lower, self.proof, self.saddle = ends[0], proof, saddle

    def _take(self, rows: Array, laws: list[Any]) -> None:
        """Take a channel, repaired so that it meets the budget, if it leaks less."""
        rows = rows / rows.sum(axis=1, keepdims=True)
        for repaired in (self._mixed(rows), self._mixed_by_row(rows)):
            for channel in repaired:
                tried = [None if law is None else _outputs(law, channel) for law in laws]
                ends = [self._ends(channel, t, {}) for t in tried]
                if any(pair is None for pair in ends):
                    continue
                for pair, t in zip(ends, tried, strict=True):
                    if pair is not None:
                        self._take_upper(pair[1], channel, t)
                break

    def _take_upper(self, upper: float, channel: Array, outputs: Array | None) -> None:
        if self.channel is None or upper < self.upper:
            self.upper, self.channel, self._outputs = upper, channel, outputs

    def _mixed(self, rows: Array) -> Iterator[Array]:
        """Yield the channel, mixed with that of least distortion until it meets the budget."""
        worst = self._spent(rows)
        if worst < self._budget * (1 - STEPS[0]):
            yield rows
        for step in STEPS:
            share = self._share(worst, step)
            yield (1 - share) * rows + share * self._rough

    def _mixed_by_row(self, rows: Array) -> Iterator[Array]:
        """Yield the same with a share for each row, least in sum, if one for all is large.

        Next to the least budget of one source only its rows have to come near their cheapest
        outputs.
        """
        worst = self._spent(rows)
        if worst <= self._least or self._share(worst, STEPS[0]) <= FAR:
            return
        size, cost = len(rows), (rows * self._costs.matrix).sum(axis=1)
        excess = np.maximum(cost - self._costs.least(), 0.0)
        for step in STEPS[:-1]:
            # The costs less the shares' part of their excess; the last column is 1.
            columns = np.column_stack([-np.diag(excess), cost])
            goal = max(self._budget * (1 - step), self._least)
            program = SourceProgram(self._sources, columns, np.append(np.zeros(size), goal))
            try:
                found = program.minimize(
                    np.append(np.ones(size), 0.0), [(0.0, 1.0)] * size + [(1.0, 1.0)]
                )
            except SolverError:
                continue
            if found is not None:
                share = np.clip(found.columns[:size] * (1 + step), 0.0, 1.0)[:, None]
                yield (1 - share) * rows + share * self._rough

    def _share(self, worst: float, step: float) -> float:
        goal = max(self._budget * (1 - step), self._least)
        if worst <= self._least:
            return 1.0
        return min(max((worst - goal) / (worst - self._least), step), 1.0)

    def _spent(self, rows: Array) -> float:
        return self._sources.worst((rows * self._costs.matrix).sum(axis=1))[0]

    def _ends(
        self, channel: Array, outputs: Array | None, proof: dict[str, Any]
    ) -> tuple[float, float] | None:
        """Return the bounds that the checker proves, or None if it proves nothing."""
        try:
            with precision():
                return prove(self._stored, self._witness(channel, outputs), proof)
        except CertificateError:
            return None

    def _witness(self, channel: Array, outputs: Array | None) -> dict[str, Any]:
        return stored_channel(self._sources, self._costs, channel, outputs)


def _vertices(part: Part, law: Mixture) -> Array:
    members = [
        body.center if exact is None else np.array([float(p) for p in exact])
        for body, (_, exact) in zip(part.polytopes, law.members, strict=True)
    ]
    return np.vstack([part.points, *members])


def _shares(law: Mixture) -> Array:
    return np.concatenate([law.weights, [weight for weight, _ in law.members]])


def _outputs(law: Any, channel: Array) -> Array:
    """Return output distributions: those given, or those of the parts' worst distributions."""
    return law if isinstance(law, np.ndarray) else np.array([one.law @ channel for one in law])


def stored_channel(
    sources: SourceSet, costs: Costs, channel: Array, outputs: Array | None
) -> dict[str, Any]:
    """Return a channel and an output distribution for each part, as a certificate stores them."""
    cost = (channel * costs.matrix).sum(axis=1)
    laws, bounds = [], []
    for k, part in enumerate(sources.parts):
        t = channel.mean(axis=0) if outputs is None else outputs[k]
        laws.append(None if part.is_point else t.tolist())
        alone = SourceSet._of([part], sources.labels)
        bounds.append(
            [
                {key: entry[key] for key in ("level", "multipliers")}
                for entry in supports(alone, divergences(channel, t))
            ]
            if part.polytopes
            else []
        )
    return {
        "channel": channel.tolist(),
        "supports": supports(sources, cost),
        "outputs": laws,
        "output_supports": bounds,
    }
