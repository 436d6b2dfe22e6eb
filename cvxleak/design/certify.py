"""What a search has found, with what a certificate stores of it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cvxleak.core.validation import Array
from cvxleak.design.adversary_oracle import AdversaryOracle, Audited, Cut
from cvxleak.design.data import DesignData
from cvxleak.design.designed import Design, Round
from cvxleak.design.goal import Goal
from cvxleak.design.interior import MasterPoint
from cvxleak.design.outer_approximation import Implied
from cvxleak.design.shown import Shown
from cvxleak.kernel.numbers import precision, upper
from cvxleak.model import Mechanism
from cvxleak.problem.problem import Found
from cvxleak.proofs import design as prover
from cvxleak.proofs.exact import rational

__all__ = ["Ends", "Lower", "Upper"]


@dataclass(frozen=True)
class Lower:
    """What proves the lower bound: cuts with multipliers, and what user constraints imply."""

    value: float = 0.0
    cuts: tuple[Cut, ...] = ()
    point: MasterPoint | None = None
    implied: Implied | None = None


@dataclass(frozen=True)
class Upper:
    """What attains the upper bound: a channel, and the audit of its leakage."""

    value: float
    matrix: Array
    audited: Audited


@dataclass(frozen=True)
class Ends:
    """Both bounds of a design problem."""

    data: DesignData
    oracle: AdversaryOracle
    goal: Goal
    budget: float
    lower: Lower
    upper: Upper

    def found(self, rounds: tuple[Round, ...], stats: dict[str, Any]) -> Found:
        """Return them with the channel and with what proves them."""
        best = self.upper
        content, proof = self._stored()
        with precision():
            statement = prover.Statement(content)
            lower = statement.dual(proof, leakage=self.goal is Goal.LEAKAGE)
        channel = self.data.channel(best.matrix)
        violated, shown, half_spaces = 0.0, Shown(), self.data.half_spaces
        if half_spaces is not None:
            violated = max(half_spaces.user.violations(best.matrix).values())
            shown = half_spaces.shown(best.matrix, content["own"])
        design = Design(
            Mechanism(self.data.rows.query, channel),
            upper(max(self.data.costs.exact(best.matrix))),
            best.audited.upper,
            best.audited.cut,
            rounds,
            self._binding(),
            violated,
        )
        return Found(
            lower,
            best.value,
            design,
            (content, {"channel": channel.to_dict(), **shown.witness}, proof),
            self._prices(),
            stats | {"cuts": len(self.lower.cuts), "rows": len(best.matrix)},
            feasible=shown.met,
            about=shown.about,
        )

    def _stored(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what the certificate says about the problem, and its proof."""
        content, implied = self.data.content(self.budget), self.lower.implied
        if implied is None and self.data.half_spaces is not None:
            implied = self.data.half_spaces.stated()
        content["entropy_floor"] = None if self.data.priors is not None else self.oracle.floor
        content["own"] = [] if implied is None else implied.half_spaces
        sources = len(self.data.costs.table)
        point, cuts = self.lower.point, []
        beta = np.zeros(sources)
        if self.goal is Goal.DISTORTION:
            beta[:] = 1.0
        if point is not None:
            beta[: len(point.beta)] = point.beta
            for cut, theta, posterior in self._tangents(point):
                if theta > 0:
                    cuts.append(self._entry(cut, theta, posterior))
        proof = {
            "leakage": self.upper.audited.proof,
            "cuts": cuts,
            "sources": beta.tolist(),
            "own": [],
        }
        return content, proof | ({} if implied is None else implied.proof())

    def _tangents(self, point: MasterPoint) -> Iterator[tuple[Cut, float, Array]]:
        """Iterate over the cuts, their multipliers, and the posteriors that they are bounded at."""
        for cut, theta, posterior in zip(
            self.lower.cuts, point.theta.tolist(), point.posteriors, strict=True
        ):
            # Masters pad the values of a secret to those of the largest.
            yield cut, theta, posterior[: len(cut.joint)]

    def _entry(self, cut: Cut, theta: float, posterior: Array) -> dict[str, Any]:
        posterior = np.maximum(posterior, 1e-300)
        posterior = posterior / posterior.sum(axis=0)
        who: dict[str, Any] = (
            {"weights": cut.weights.tolist()} if cut.prior is None else {"prior": cut.prior}
        )
        return {
            "records": list(cut.group),
            **who,
            "posterior": posterior.tolist(),
            "multiplier": theta,
        }

    def _prices(self) -> dict[str, float]:
        point = self.lower.point
        free = {"budget": 0.0} if math.isfinite(self.budget) else {}
        if self.oracle.priors is None:
            free["entropy_floor"] = 0.0
        if point is None:
            return free
        prices = dict(free)
        if self.goal is Goal.DISTORTION and self.budget == 0 and self.oracle.silenced_by_constants:
            # At the end of the trade-off the price of leakage is not computed.
            prices.pop("budget", None)
        if "budget" in prices:
            price = float((point.beta if self.goal is Goal.LEAKAGE else point.theta).sum())
            prices["budget"] = -math.inf if self._steep(point) else -price
        if "entropy_floor" in prices:
            matrix = point.channel
            total = 0.0
            for cut, theta in zip(self.lower.cuts, point.theta.tolist(), strict=True):
                if theta > 1e-3 * point.theta.max():
                    total += theta * self.oracle.entropy_price(matrix, cut)
            prices["entropy_floor"] = -total
        return {name: price + 0.0 for name, price in prices.items()}  # no zero has a sign

    def _steep(self, point: MasterPoint) -> bool:
        """Whether the budget is the least distortion, and the value falls infinitely steeply there.

        If an output excludes a value of the secret, the slope of its information in the channel is
        infinite.
        """
        costs = self.data.costs
        if self.goal is Goal.DISTORTION or self.data.rules or len(costs.table) > 1:
            return False
        if costs.exact(costs.least())[0] != rational(self.budget):
            return False
        dear = costs.table[0] > costs.table[0].min(axis=1, keepdims=True)
        for cut, theta, seen in self._tangents(point):
            excluded = (seen == 0) & (seen.sum(axis=0) > 0)
            if theta > 0 and ((cut.joint > 0).T @ excluded)[dear].any():
                return True
        return False

    def _binding(self) -> tuple[str, ...]:
        point, names = self.lower.point, []
        if point is None:
            return ()
        many = len(self.data.costs.table)
        for k, beta in enumerate(point.beta.tolist()):
            if beta > 1e-6 * max(1.0, float(point.beta.max())):
                which = "" if many == 1 else f" under sources[{k}]"
                names.append(f"distortion{which}")
        groups = {
            cut.group for cut, t in zip(self.lower.cuts, point.theta, strict=True) if t > 1e-6
        }
        names += [f"leakage about {self._called(group)}" for group in sorted(groups)]
        return tuple(names)

    def _called(self, group: tuple[int, ...]) -> str:
        if not group:
            return "the whole dataset"
        plural = "s" if len(group) > 1 else ""
        return f"record{plural} " + ", ".join(str(i) for i in group)
