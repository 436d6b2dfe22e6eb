"""`local_dp_report`: the most private channel for a set of sources, beside randomized response."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import minimize_scalar, root_scalar

from cvxleak.core.clock import WORK_LIMIT
from cvxleak.core.validation import Array, instance, real_number
from cvxleak.envelope import response_dp_epsilon
from cvxleak.measures import local_dp_epsilon
from cvxleak.problem.bound import unit_scale
from cvxleak.report import names
from cvxleak.report import sentences as say
from cvxleak.report.names import COMPUTED
from cvxleak.report.progress import Progress, as_progress, solved
from cvxleak.report.quantity import Quantity, Report
from cvxleak.sources import SourceSet

if TYPE_CHECKING:
    from cvxleak.local_dp import MinDistortionLocalDP, MinLocalDP

__all__ = ["local_dp_report"]

FOLDINGS = 50
"""Most folding permutations that are counted: each takes linear programs."""


def local_dp_report(
    problem: MinLocalDP | MinDistortionLocalDP,
    *,
    unit: str = "nats",
    tol: float | None = None,
    time_limit: float | None = None,
    work_limit: float | None = WORK_LIMIT,
    progress: Progress | None = None,
) -> Report:
    """Return the least epsilon for a worst-case distortion, or the reverse, and the channel.

    Parameters
    ----------
    problem : MinLocalDP or MinDistortionLocalDP
    unit : {"nats", "bits"}
        Of information in the report.
    tol, time_limit, work_limit : float
        As for `Problem.solve`.
    progress : Progress, optional
        Is told about progress.

    Returns
    -------
    Report
        Its `channel` attains what is claimed; its `facts` have the class of the set.

    Raises
    ------
    ValidationError
        Arguments of the wrong kind.
    InfeasibleError
        No channel meets the budget; the message gives the least one.

    Notes
    -----
    k-ary randomized response is optimal if nothing is known about the distribution (HAMMING Theorem
    1).

    Examples
    --------
    >>> from cvxleak.local_dp import MinLocalDP
    >>> from cvxleak.report import local_dp_report
    >>> report = local_dp_report(MinLocalDP([[0.7, 0.2, 0.1], [0.6, 0.3, 0.1]], 0.3))
    >>> [(q.name, round(q.upper, 4)) for q in report.quantities[:2]]
    [('least local DP epsilon', 1.2528), ('k-RR epsilon', 1.5404)]
    >>> report.facts["class"]
    'II'
    """
    from cvxleak.local_dp import MinDistortionLocalDP, MinLocalDP, classify

    progress = as_progress(progress)
    scale = unit_scale(unit)
    if time_limit is not None:
        real_number(time_limit, "time_limit", 0.0)
    if isinstance(problem, MinLocalDP):
        name, what = names.LEAST_EPSILON, "least epsilon"
        meaning = say.least_epsilon(problem.budget, problem.delta)
    else:
        instance(problem, MinDistortionLocalDP, "problem")
        name, what = names.LEAST_WORST_DISTORTION, "least distortion"
        meaning = say.least_distortion(problem.epsilon, problem.delta)
    # Before the search, so that Ctrl-C during either loses no bounds.
    progress.begin("class of the source set")
    found = classify(problem.sources, cap=FOLDINGS)
    progress.end()
    limits: dict[str, Any] = {"time_limit": time_limit, "work_limit": work_limit}
    bound = solved(progress, what, problem.solve, tol=tol, **limits)
    optimum = Quantity.of_bound(name, bound, unit, meaning)
    known, channel = problem.sources, bound.witness
    cost = 1 - np.eye(known.size) if problem.distortion is None else problem.distortion.matrix
    quantities = [optimum]
    if channel.outputs == known.labels and known.size > 1:
        response = _Response(cost, known)
        if isinstance(problem, MinLocalDP):
            value = response.epsilon(problem.budget, problem.delta) / scale
            meaning = say.response_epsilon()
            quantities.append(_computed(names.RESPONSE_EPSILON, value, unit, meaning))
        else:
            value = response.distortion(problem.epsilon, problem.delta)
            meaning = say.response_distortion()
            quantities.append(
                _computed(names.RESPONSE_DISTORTION, value, names.DISTORTION, meaning)
            )
    spent = known.worst((channel.matrix * cost).sum(axis=1))[0]
    private = local_dp_epsilon(channel)
    meaning = say.worst_source_distortion()
    quantities += [
        _computed(names.WORST_SOURCE_DISTORTION, spent, names.DISTORTION, meaning),
        _computed(names.LOCAL_DP, private / scale, unit, say.local_dp(private)),
    ]
    worst = bound.stats["worst_source"]
    facts: dict[str, Any] = {
        "outcomes": known.size,
        "outputs": len(channel.outputs),
        "class": found.kind,
        "class_exact": found.exact,
        "permutation": found.permutation and [known.labels[i] for i in found.permutation],
        "foldings": None if found.folding is None else len(found.folding),
        "distance_from_uniform": found.distance,
        "worst_source": None if worst is None else worst.probabilities.tolist(),
        "delta": problem.delta,
    }
    return Report(unit, tuple(quantities), facts, progress.interrupted, channel=channel)


class _Response:
    """k-ary randomized response under the worst distribution of a set.

    With s = 1 / (e^eps + k - 1), the probability of each wrong value, the expected distortion at x
    is d(x,x) + s sum_y (d(x,y) - d(x,x)), so that the worst one is a convex function of s.
    """

    def __init__(self, cost: Array, sources: SourceSet) -> None:
        self.right = cost.diagonal()
        self.slope = (cost - self.right[:, None]).sum(axis=1)
        self.sources, self.size = sources, len(cost)

    def at(self, s: float) -> float:
        return self.sources.worst(self.right + s * self.slope)[0]

    def epsilon(self, budget: float, delta: float) -> float:
        """Return the least epsilon at which the budget is met; inf if there is none."""
        flat = 1 / self.size
        if self.at(flat) <= budget:
            return 0.0
        best = self._best(0.0)
        if self.at(best) > budget:
            return math.inf
        if self.at(best) < budget:
            found = root_scalar(lambda s: self.at(s) - budget, bracket=(best, flat), xtol=1e-15)
            best = float(found.root)
        if best == 0:
            return math.inf if delta < 1 else 0.0
        pure = math.log(max(1 / best - (self.size - 1), 1.0))
        return float(response_dp_epsilon(self.size, pure, delta))

    def distortion(self, epsilon: float, delta: float) -> float:
        """Return the least distortion of those that are (epsilon, delta)-private."""
        # alpha - e^eps s <= delta, with alpha = 1 - (k-1) s the probability of the true value.
        least = (1 - delta) / (math.exp(epsilon) + self.size - 1)
        return self.at(self._best(least))

    def _best(self, least: float) -> float:
        """Return the s of least distortion, from `least` to the one of the uniform output."""
        flat = 1 / self.size
        found: Any = minimize_scalar(self.at, bounds=(least, flat), method="bounded")
        return min(least, flat, float(found.x), key=self.at)


def _computed(name: str, value: float, unit: str, meaning: str) -> Quantity:
    return Quantity(name, value, value, unit, COMPUTED, meaning)
