"""Least distortion under a bound on every output: local DP, PML, maximal leakage; all linear.

The linear program is solved by HiGHS (in SciPy). Its channel is repaired, its multipliers become
the penalty of the certificate, and the checker itself computes both bounds.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from scipy.sparse import block_array, coo_array, csr_array, eye_array, hstack, kron, vstack

from cvxleak.core.errors import CertificateError, SolverError
from cvxleak.core.validation import Array
from cvxleak.design.fixed_prior_native import Solution, mixed, most_useful_constant
from cvxleak.design.fixed_prior_statement import Statement
from cvxleak.kernel.numbers import precision
from cvxleak.proofs.fixed_prior import bracket

__all__ = [
    "LARGEST",
    "privacy_penalty",
    "privacy_price",
    "privacy_rows",
    "private_content",
    "private_excess",
    "solve_private",
]

NAMES = {"local_dp": "local-dp", "pml": "pml", "maximal_leakage": "maximal-leakage"}

MARGIN = 1e-12
"""Relative room that a repaired channel is given."""

LARGEST = 30.0
"""A larger budget is solved as this one, since linear programs with e^budget in them are of no use.

The channel is feasible then, and its distortion is compared with the least that any channel has.
"""

DUST = 1e-12
"""Columns that a solver leaves below this are empty."""


def private_content(statement: Statement, measure: str, budget: float) -> dict[str, Any]:
    """Return what a certificate says about the problem."""
    content = statement.content("distortion", "budget", budget)
    del content["secrets"]
    content["privacy"] = NAMES[measure]
    if measure != "local_dp":
        content["prior"] = statement.laws[0].tolist()
    return content


def private_excess(statement: Statement, measure: str, budget: float, channel: Array) -> float:
    """Return by how much a channel misses the bound, at the worst output."""
    factor = math.exp(min(budget, 700.0))
    prior = statement.laws[0] / statement.laws[0].sum()
    if measure == "local_dp":
        high, low = channel.max(axis=0), factor * channel.min(axis=0)
    elif measure == "pml":
        high, low = channel[prior > 0].max(axis=0), factor * (prior @ channel)
    else:
        high, low = np.array([channel[prior > 0].max(axis=0).sum()]), np.array([factor])
    return max(float((high - low).max()), 0.0)


def solve_private(statement: Statement, measure: str, budget: float) -> Solution:
    """Minimize the worst-case distortion subject to the measure's bound."""
    content = private_content(statement, measure, budget)
    solution, penalty, prices, price = _program(statement, measure, budget)
    channel = _repaired(statement, measure, budget, solution)
    if budget > LARGEST:
        penalty, price = np.zeros_like(penalty), 0.0
    proof = {"prices": prices.tolist(), "penalty": penalty.tolist(), "own": []}
    try:
        with precision():
            lower, upper = bracket(content, {"channel": channel.tolist()}, proof)
    except CertificateError as error:
        raise SolverError(f"the linear program's solution cannot be repaired ({error})") from error
    why = f"because {measure} within a budget is linear in the channel"
    stats = {"method": f"one linear program by HiGHS, {why}"}
    return Solution(channel, proof, lower, upper, price, stats)


def privacy_rows(statement: Statement, measure: str, budget: float) -> tuple[csr_array, Array]:
    """Return A and b with A (q, t) <= b for the channels that meet the bound, q by rows, t (m)."""
    n, m = statement.distortion.shape
    factor = _factor(budget)
    seen = _seen(statement, measure)
    cells = (seen[:, None] * m + np.arange(m)).ravel()
    count = len(cells)
    pick = csr_array((np.ones(count), (np.arange(count), cells)), shape=(count, n * m))
    spread = kron(
        csr_array(np.ones((len(seen), 1))), eye_array(m), format="csr"
    )  # t_y for each cell
    if measure == "local_dp":
        matrix = vstack([hstack([pick, -factor * spread]), hstack([-pick, spread])])
        return csr_array(matrix), np.zeros(2 * count)
    if measure == "pml":
        prior = statement.laws[0] / statement.laws[0].sum()
        output = kron(csr_array(prior[None]), eye_array(m), format="csr")
        matrix = hstack([pick - factor * (spread @ output), csr_array((count, m))])
        return csr_array(matrix), np.zeros(count)
    total = coo_array(np.r_[np.zeros(n * m), np.ones(m)][None])
    return csr_array(vstack([hstack([pick, -spread]), total])), np.r_[np.zeros(count), factor]


def privacy_penalty(statement: Statement, measure: str, duals: Array) -> Array:
    """Return the certificate's penalty from the multipliers of `privacy_rows`."""
    n, m = statement.distortion.shape
    seen = _seen(statement, measure)
    count = len(seen) * m
    penalty = np.zeros((n, m))
    penalty[seen] = duals[:count].reshape(len(seen), m)
    if measure == "local_dp":
        return penalty - duals[count : 2 * count].reshape(n, m)
    return np.maximum(penalty, 0.0)


def privacy_price(
    statement: Statement, measure: str, budget: float, penalty: Array, channel: Array
) -> float:
    """Return the derivative of the least distortion in the budget.

    The budget enters as e^budget, times t (q / e^budget where there is a penalty), the output
    distribution, or alone.
    """
    if measure == "local_dp":
        return 0.0 - float(np.maximum(penalty, 0.0).sum(axis=0) @ channel.max(axis=0))
    if measure == "pml":
        prior = statement.laws[0] / statement.laws[0].sum()
        return 0.0 - _factor(budget) * float(penalty.sum(axis=0) @ (prior @ channel))
    return 0.0 - _factor(budget) * float(penalty.sum(axis=0).max())


def _factor(budget: float) -> float:
    return math.exp(min(budget, LARGEST))


def _seen(statement: Statement, measure: str) -> NDArray[np.intp]:
    """Return the inputs that the bound is about."""
    n = len(statement.distortion)
    return np.arange(n) if measure == "local_dp" else np.flatnonzero(statement.laws[0] > 0)


def _program(
    statement: Statement, measure: str, budget: float
) -> tuple[Array, Array, Array, float]:
    """Return the solver's channel, the penalty, the sources' prices, and the budget's price."""
    d, sources = statement.distortion, statement.sources
    n, m = d.shape
    scale = float(d.max()) or 1.0
    # Unknowns: q (n m, row-major), t (m), and the worst distortion.
    rows, right = privacy_rows(statement, measure, budget)
    rows = block_array([[rows, csr_array((len(right), 1))]])
    costs = (sources[:, :, None] * d / scale).reshape(len(sources), n * m)
    spent = hstack([csr_array(costs), csr_array((len(sources), m)), -np.ones((len(sources), 1))])
    sums = hstack(
        [kron(eye_array(n), csr_array(np.ones((1, m)))), csr_array((n, m + 1))], format="csr"
    )
    answer = linprog(
        np.r_[np.zeros(n * m + m), 1.0],
        A_ub=csr_array(vstack([rows, spent])),
        b_ub=np.append(right, np.zeros(len(sources))),
        A_eq=sums,
        b_eq=np.ones(n),
        method="highs",
    )
    if answer.x is None:
        raise SolverError(f"the linear program was not solved: {answer.message}")
    duals = -np.asarray(answer.ineqlin.marginals)
    penalty = privacy_penalty(statement, measure, duals[: len(right)] * scale)
    prices = np.maximum(duals[-len(sources) :], 0.0)
    if not prices.sum() > 0:
        prices = np.ones(len(sources))
    x = np.maximum(answer.x, 0.0)
    channel = x[: n * m].reshape(n, m)
    return channel, penalty, prices, privacy_price(statement, measure, budget, penalty, channel)


def _repaired(statement: Statement, measure: str, budget: float, solution: Array) -> Array:
    """Mix with an output that does not look at the input until the bound certainly holds."""
    channel = np.where(solution.max(axis=0) > DUST, solution, 0.0)
    channel /= channel.sum(axis=1, keepdims=True)
    law = most_useful_constant(statement)
    used = channel.max(axis=0) > 0
    # Every output in use needs some of it: that is where the room comes from.
    blend = 0.5 * law + 0.5 * used / used.sum()
    target = np.tile(blend, (len(channel), 1))
    share = 0.0
    while share < 1:
        rows = mixed(channel, target, share)
        if _with_margin(statement, measure, budget, rows):
            return rows
        share = max(4 * share, 1e-15)
    return np.tile(law, (len(channel), 1))


def _with_margin(statement: Statement, measure: str, budget: float, channel: Array) -> bool:
    factor = _factor(budget) * (1 - MARGIN)
    prior = statement.laws[0] / statement.laws[0].sum()
    if measure == "local_dp":
        return bool((channel.max(axis=0) <= factor * channel.min(axis=0)).all())
    peaks = channel[prior > 0].max(axis=0)
    if measure == "pml":
        return bool((peaks <= factor * (prior @ channel)).all())
    return bool(peaks.sum() <= factor)
