"""Certificate kinds ``release-distortion`` and ``release-information``: a release under collusion.

A kernel k(r̂|z,x) answers a request R, knowing the dataset X and the earlier outputs Z. A coalition
sees the class s of z, and has a budget for I(R̂,S;X), a price on it, or both.

problem: {"joint": p(r,z,x), "coalitions": [{"classes", "price", "budget"}], and "distortion"
d(r,r̂) or the number "outputs"}; witness: {"kernel"}; proof: {"coalitions": [{"multiplier",
"reference"}], and "cells" for an information}. The distribution and the rows of the kernel are
meant as written (`cvxleak.core.numbers`).

For any g(r̂,s,x) with sum_x p(x|s) e^g = 1 the mean of g is at most I(R̂;X|S): given (r̂,s) it
is D( p(x|r̂,s) || p(x|s) ) less the divergence from p(x|s) e^g. So for any mu >= 0 a kernel that
meets the budgets has

    E d + sum_c price_c I(R̂,S_c;X)
        >= sum_{z,x} p(z,x) min_r̂ ( E[ d(R,r̂) | z, x ] + sum_c (price_c + mu_c) g_c(r̂,s,x) )
           + sum_c price_c I(S_c;X) - sum_c mu_c ( budget_c - I(S_c;X) ).

The budget "least" is I(S_c;X) itself; it forces R̂ and X to be independent given s. Then mu_c g_c
may be replaced by any nu(r̂,s,x) with sum_x p(x|s) nu = 0, because the mean of such a nu is 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from flint import arb

from cvxleak.core.errors import CertificateError
from cvxleak.kernel.numbers import dot, least, total
from cvxleak.kernel.numbers import lower as float_below
from cvxleak.kernel.numbers import upper as float_above
from cvxleak.proofs import reading
from cvxleak.proofs.bounds.release_law import (
    LEAST,
    Ball,
    ReleaseLaw,
    Watcher,
    floats,
    sums,
    written,
)
from cvxleak.proofs.bounds.simplex_cells import slopes_of_cells
from cvxleak.proofs.exact import ball

__all__ = ["LEAST", "about", "prove_distortion", "prove_information"]


def prove_distortion(
    problem: Mapping[str, Any], witness: Mapping[str, Any], proof: Mapping[str, Any]
) -> tuple[float, float]:
    """Return bounds on the least E d(R,R̂) + sum_c price_c I(R̂,S_c;X) within the budgets."""
    reading.parts(problem, {"joint", "distortion", "coalitions"}, "the problem")
    reading.parts(proof, {"coalitions"}, "the proof")
    law = ReleaseLaw(problem["joint"], problem["coalitions"])
    distortion = written(problem["distortion"], 2, "the distortion")
    if len(distortion) != law.requests or distortion.min() < 0:
        raise CertificateError("the distortion does not fit the joint distribution, or is negative")
    costs = law.mean_costs([[ball(d) for d in row] for row in distortion.tolist()])
    kernel = law.kernel(witness, distortion.shape[1])
    upper = law.paid(kernel) + total(map(dot, kernel, costs))
    lower = _dual(law, costs, proof["coalitions"])
    return float_below(lower), float_above(upper)


def prove_information(
    problem: Mapping[str, Any], witness: Mapping[str, Any], proof: Mapping[str, Any]
) -> tuple[float, float]:
    """Return proved bounds on the largest I(R̂;R) - sum_c price_c I(R̂,S_c;X) within the budgets.

    Lower bound: the witness. Upper bound, for any number of outputs: the least of two.

    - Let rho be the distribution of R given r̂; divide the set of such distributions into cells.
      On cell j, -H(rho) <= <nu_j, rho> if this is so at the cell's vertices. Outputs with rho in
      the same cell may be merged, because no coalition then learns more. So H(R) minus the value of
      a distortion problem, with the cells as outputs and -nu_j(r) as distortion, is a bound.
    - I(R̂;R) <= I(R̂,S;R) <= budget - I(S;X) + I(S;R) + I(Z;R|X,S) for each coalition with a
      budget, and I(R̂;R) <= I(X,Z;R).
    """
    reading.parts(problem, {"joint", "outputs", "coalitions"}, "the problem")
    reading.parts(proof, {"cells", "coalitions"}, "the proof")
    law = ReleaseLaw(problem["joint"], problem["coalitions"])
    kernel = law.kernel(witness, reading.count(problem["outputs"], "the outputs", 1))
    lower = law.request_information(kernel) - law.paid(kernel)
    slopes = slopes_of_cells(proof["cells"], law.requests)
    costs = law.mean_costs([[arb(-nu[r]) for nu in slopes] for r in range(law.requests)])
    upper = float_above(law.request_entropy() - _dual(law, costs, proof["coalitions"]))
    noise = law.request_noise()
    upper = min(upper, float_above(law.request_entropy() - noise))
    for watcher in law.watchers:
        if watcher.least or watcher.budget is not None:
            told = law.request_entropy() - law.request_entropy(watcher)
            bound = law.room(watcher) + told + law.request_noise(watcher) - noise
            upper = min(upper, float_above(bound))
    below = float_below(lower)
    if not any(watcher.price > 0 for watcher in law.watchers):
        below = max(below, 0.0)  # an information is not negative, whatever rounding gives
    return below, upper


def about(problem: Mapping[str, Any]) -> str:
    """Say what a problem that a prover has read is about."""
    joint = problem["joint"]
    shape: Any = np.shape(joint) if isinstance(joint, list) else joint["shape"]
    requests, earlier, datasets = shape
    answers = ""
    if "outputs" in problem:
        answers = (
            f", answered with {problem['outputs']} outputs; the upper bound holds for any number"
        )
    return (
        f"a request of {requests} values about {datasets} datasets, after {earlier} histories, "
        f"watched by {len(problem['coalitions'])} coalitions" + answers
    )


def _dual(law: ReleaseLaw, costs: list[list[Ball]], coalitions: Any) -> Ball:
    """Return the dual function at the multipliers and references of a proof."""
    outputs = len(costs[0])
    if not isinstance(coalitions, list) or len(coalitions) != len(law.watchers):
        raise CertificateError("the proof and the problem must have the same coalitions")
    law.allow(len(law.rows) * outputs * (1 + len(coalitions)))
    bound = arb(0)
    totals = [list(row) for row in costs]
    for watcher, parts in zip(law.watchers, coalitions, strict=True):
        reading.parts(parts, {"multiplier", "reference"}, "a coalition of the proof")
        multiplier = reading.number(parts["multiplier"], "a multiplier")
        if multiplier < 0 or (multiplier > 0 and watcher.budget is None):
            raise CertificateError("a multiplier is negative, or has no budget")
        slope = ball(watcher.price) + ball(multiplier)
        if watcher.price > 0:
            bound += ball(watcher.price) * law.known(watcher)
        if multiplier > 0:
            bound -= ball(multiplier) * law.room(watcher)
        if slope == 0 and not watcher.least:
            if parts["reference"] is not None:
                raise CertificateError("a reference must be null where its coefficient is 0")
            continue
        for row, terms in zip(totals, _terms(law, watcher, slope, parts, outputs), strict=True):
            for j, term in enumerate(terms):
                row[j] += term
    for row in totals:
        bound += least(row)
    return bound


def _terms(
    law: ReleaseLaw, watcher: Watcher, slope: Ball, parts: Mapping[str, Any], outputs: int
) -> list[list[Ball]]:
    """Return p(z,x) slope g(r̂,s,x), or p(z,x) nu(r̂,s,x), for each row and output."""
    stored = floats(parts["reference"], 3, "a reference")
    if stored.shape != (max(watcher.classes) + 1, law.datasets, outputs):
        raise CertificateError("a reference does not fit its coalition")
    pairs, classes = law.pairs(watcher), law.classes(watcher)
    chances = sums(pairs, law.weights)
    weight = sums(classes, law.weights)
    columns = []
    for j in range(outputs):
        values = {pair: arb(float(stored[(*pair, j)])) for pair in chances}
        shift: dict[int, Ball] = {}
        tops: dict[int, float] = {}
        for s, x in chances:
            tops[s] = max(tops.get(s, -1e300), float(stored[s, x, j]))
        for (s, x), chance in chances.items():
            value = values[s, x]
            part = chance * (value if watcher.least else (value - arb(tops[s])).exp())
            shift[s] = shift.get(s, arb(0)) + part
        for s, part in shift.items():
            mean = part / weight[s]
            shift[s] = mean if watcher.least else mean.log() + arb(tops[s])
        factor = arb(1) if watcher.least else slope
        shifted = {pair: factor * (value - shift[pair[0]]) for pair, value in values.items()}
        columns.append(
            [weight * shifted[pair] for weight, pair in zip(law.weights, pairs, strict=True)]
        )
    return [list(row) for row in zip(*columns, strict=True)]
