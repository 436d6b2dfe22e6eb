"""The best channel for known priors without constraints of one's own: no modeling language."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from flint import fmpq

from cvxleak.core.clock import Clock
from cvxleak.core.errors import CertificateError, InfeasibleError, SolverError
from cvxleak.core.numbers import smallest
from cvxleak.core.validation import Array
from cvxleak.design.feasible import least_worst
from cvxleak.design.fixed_prior_bounds import (
    distortions_above,
    dual_below,
    information_above,
)
from cvxleak.design.fixed_prior_statement import Statement
from cvxleak.design.rate_distortion import best_for_law
from cvxleak.design.several_laws import best_for_laws
from cvxleak.design.shown import Shown
from cvxleak.kernel.numbers import dot, precision
from cvxleak.kernel.numbers import upper as float_above
from cvxleak.problem import Gap
from cvxleak.proofs.exact import normalized_rows, rational
from cvxleak.proofs.fixed_prior import bracket

__all__ = ["Solution", "ends", "least_distortion", "mixed", "most_useful_constant", "solve"]

TINY = 1e-300

LEAST_REFERENCE = 1e-250
"""Smallest entry of a reference: the fast logarithms have an error bound down to 2^-900."""

EXACT_CELLS = 256
"""Up to so many cells the bounds are computed in ball arithmetic at once."""

STEEP = 600.0
"""A slope of this much per smallest difference of distortions stands for an infinite one."""


CORNER = "a channel at the end of the range of budgets, because it is optimal there"

INTERIOR = (
    "an interior-point method, because for known priors the least leakage is a convex program"
)


class Solution(NamedTuple):
    """A channel, what proves that none is better, and the bounds."""

    channel: Array
    proof: dict[str, Any]
    lower: float
    upper: float
    price: float
    """Derivative of the value in the budget (or slope); NaN where it is not worked out."""
    stats: dict[str, Any]
    shown: Shown = Shown()
    """What can be shown of the channel and the user's constraints."""


def solve(statement: Statement, minimize: str, number: float, gap: Gap, clock: Clock) -> Solution:
    """Solve a problem about information; `minimize` is "information", "distortion" or "sum"."""
    least, sharp = least_distortion(statement)
    if minimize == "information" and rational(number) < least:
        raise InfeasibleError(
            f"budget: found {number!r}; the least feasible distortion is {float_above(least)!r}"
        )
    for guess in _corners(statement, minimize, number, sharp, clock):
        found = ends(statement, minimize, number, guess.channel, guess.proof)
        if found is not None and gap.closed(*found):
            return guess._replace(
                lower=found[0], upper=found[1], stats={"method": CORNER, "iterations": 0}
            )
    accuracy = 0.1 * gap.absolute / gap.scale
    point = _interior(statement, minimize, number, accuracy, clock)
    best = None
    for channel in _feasible(statement, minimize, number, point.channel, sharp, clock):
        found = ends(statement, minimize, number, channel, point.proof)
        if found is not None and (best is None or found[1] < best.upper):
            best = point._replace(channel=channel, lower=found[0], upper=found[1])
        if best is not None and gap.closed(best.lower, best.upper):
            break
    if best is None:
        raise SolverError("no feasible channel was found")
    return best


def ends(
    statement: Statement, minimize: str, number: float, channel: Array, proof: dict[str, Any]
) -> tuple[float, float] | None:
    """Return the proved bounds, or None if the channel does not certainly meet the budget."""
    if not _plausible(statement, minimize, number, channel):
        return None
    if channel.size > EXACT_CELLS:
        fast = _fast_ends(statement, minimize, number, channel, proof)
        if fast is not None:
            return fast
    name = "slope" if minimize == "sum" else "budget"
    try:
        with precision():
            return bracket(
                statement.content(minimize, name, number), {"channel": channel.tolist()}, proof
            )
    except CertificateError:
        return None


def _plausible(statement: Statement, minimize: str, number: float, channel: Array) -> bool:
    """Whether a channel may meet the budget, so that it is worth proving that it does."""
    if minimize == "sum":
        return True
    if minimize == "information":
        values = distortions_above(statement.sources, channel, statement.distortion)
        unit = _unit(statement, "distortion")
    else:
        values, unit = information_above(statement.laws, channel), 1.0
    return float(values.max()) <= number * (1 + 1e-9) + 1e-9 * unit


def least_distortion(statement: Statement) -> tuple[fmpq, Array]:
    """Return the least worst-case distortion, exactly, and a channel that attains it.

    The outputs that are nearest to each input are best for every source at once.
    """
    d = statement.distortion
    nearest = [rational(smallest(row)) for row in d.tolist()]
    laws = normalized_rows(statement.sources.tolist())
    exact = max(dot(law, nearest) for law in laws)
    return exact, np.eye(d.shape[1])[d.argmin(axis=1)]


def most_useful_constant(statement: Statement) -> Array:
    """Return the constant output distribution of least worst-case distortion."""
    costs = statement.sources @ statement.distortion
    return least_worst(costs[:, None, :])[0][0]


def mixed(one: Array, other: Array, share: float) -> Array:
    """Return (1 - share) one + share other, with rows that sum to 1."""
    rows = (1 - share) * one + share * other
    return rows / rows.sum(axis=1, keepdims=True)


def _constant(statement: Statement) -> Array:
    return np.tile(most_useful_constant(statement), (len(statement.distortion), 1))


def _corners(
    statement: Statement, minimize: str, number: float, sharp: Array, clock: Clock
) -> Iterator[Solution]:
    """Return the channels that are optimal where a budget is so large that it does not matter."""
    k, j = len(statement.laws), len(statement.sources)
    flat = np.ones_like(statement.distortion)
    if minimize == "information":
        idle = {"weights": [1.0] * k, "prices": [0.0] * j, "reference": flat.tolist(), "own": []}
        yield Solution(_constant(statement), idle, 0.0, 0.0, 0.0, {})
        if number <= _just_above(statement):
            yield _steepest(statement, clock)
    if minimize == "distortion":
        # Any single source gives a lower bound; the largest one counts.
        worst = int(distortions_above(statement.sources, sharp, statement.distortion).argmax())
        prices = np.eye(j)[worst].tolist()
        idle = {"weights": [0.0] * k, "prices": prices, "reference": flat.tolist(), "own": []}
        yield Solution(sharp, idle, 0.0, 0.0, 0.0, {})
        yield Solution(_steepest(statement, clock).channel, idle, 0.0, 0.0, 0.0, {})
        if number == 0:
            yield _blind(statement, clock)


def _just_above(statement: Statement) -> float:
    """Return the largest budget that counts as the least distortion."""
    least = float_above(least_distortion(statement)[0])
    most = float((statement.sources @ statement.distortion).max())
    return least + 1e-13 * max(most - least, 0.0)


def _steepest(statement: Statement, clock: Clock) -> Solution:
    """Return the channel of least information among those of least distortion."""
    d = statement.distortion
    excess = d - d.min(axis=1, keepdims=True)
    nearest = statement.sources @ d.min(axis=1)
    # Where a source that is at its least distortion sees an input, there is no choice.
    mass = statement.sources[nearest >= nearest.max() * (1 - 1e-12)].mean(axis=0)
    positive = (mass[:, None] * excess)[(mass[:, None] * excess) > 0]
    slope = STEEP / float(positive.min()) if positive.size else 1.0
    found = _interior(statement, "sum", slope, 1e-10, clock)
    channel = np.where((excess > 0) & (mass[:, None] > 0), 0.0, found.channel)
    channel /= channel.sum(axis=1, keepdims=True)
    return found._replace(channel=channel, price=-math.inf)


def _blind(statement: Statement, clock: Clock) -> Solution:
    """Return the best channel that leaks nothing, with the price that makes it optimal."""
    found = _interior(statement, "distortion", 1e-9, 1e-10, clock)
    return found._replace(channel=_constant(statement))


def _interior(
    statement: Statement, minimize: str, number: float, tol: float, clock: Clock
) -> Solution:
    """Run the interior-point method that fits; its point meets the budget up to rounding."""
    d, tol = statement.distortion, tol * _unit(statement, minimize)
    if len(statement.laws) == 1 and np.array_equal(statement.laws, statement.sources):
        best = best_for_law(statement.laws[0], d, minimize, number, tol, clock)
    else:
        best = best_for_laws(statement.laws, statement.sources, d, minimize, number, tol, clock)
    reference = np.maximum(best.reference / best.reference.max(axis=0), LEAST_REFERENCE)
    price = {
        "information": -float(best.prices.sum()),
        "distortion": -float(best.weights.sum()),
        "sum": best.distortion,
    }[minimize]
    proof = {
        "weights": best.weights.tolist(),
        "prices": best.prices.tolist(),
        "reference": reference.tolist(),
        "own": [],
    }
    stats = {"method": INTERIOR, "iterations": best.iterations}
    return Solution(best.channel, proof, -math.inf, math.inf, price, stats)


def _feasible(
    statement: Statement, minimize: str, number: float, channel: Array, sharp: Array, clock: Clock
) -> Iterator[Array]:
    """Return the repaired channel, and the corners for when the budget leaves little room."""
    yield _repaired(statement, minimize, number, channel, sharp)
    if minimize == "information":
        yield sharp
        yield _steepest(statement, clock).channel
    elif minimize == "distortion":
        yield _constant(statement)


def _repaired(
    statement: Statement, minimize: str, number: float, channel: Array, sharp: Array
) -> Array:
    """Return a channel that certainly meets the budget, as near as possible."""
    if minimize == "sum":
        return channel
    target = sharp if minimize == "information" else _constant(statement)
    share = 0.0
    for attempt in range(60):
        rows = mixed(channel, target, share)
        if minimize == "information":
            values = distortions_above(statement.sources, rows, statement.distortion)
            least = distortions_above(statement.sources, target, statement.distortion)
        else:
            values, least = information_above(statement.laws, rows), np.zeros(1)
        over = values - number
        if (over <= 0).all():
            return rows
        room = np.maximum(values - least, TINY)
        # What is missing, and ever more on top of it: rounding may eat the first attempts.
        step = float(np.max(over / room))
        share = min(share + (1 - share) * max(step * (1 + 1e-9), 1e-16) * 2.0**attempt, 1.0)
    return target


def _fast_ends(
    statement: Statement, minimize: str, number: float, channel: Array, proof: dict[str, Any]
) -> tuple[float, float] | None:
    """Return the bounds in floats with their rounding errors, normalized as `prove` does it."""
    weights, prices = np.array(proof["weights"]), np.array(proof["prices"])
    # The checker scales these exactly; a sum that is off by rounding is allowed for below.
    if minimize == "information":
        weights = weights / weights.sum()
    elif minimize == "distortion":
        prices = prices / prices.sum()
    else:
        weights = weights / weights.sum()
        prices = prices * (number / prices.sum()) if prices.sum() > 0 else prices
    leaks = information_above(statement.laws, channel)
    spent = distortions_above(statement.sources, channel, statement.distortion)
    offset = {
        "information": float(prices.sum()) * number,
        "distortion": float(weights.sum()) * number,
        "sum": 0.0,
    }[minimize]
    upper = {
        "information": float(leaks.max()),
        "distortion": float(spent.max()),
        "sum": (float(leaks.max()) + number * float(spent.max())) * (1 + 1e-15),
    }[minimize]
    if minimize == "information" and (spent > number).any():
        return None
    if minimize == "distortion" and (leaks > number).any():
        return None
    reference = np.array(proof["reference"])
    below = dual_below(
        statement.laws, statement.sources, statement.distortion, reference, weights, prices
    )
    if below == -math.inf:
        return None
    slack = 4e-15 * (abs(below) + abs(offset)) * (1 + len(weights) + len(prices))
    upper = max(math.nextafter(upper, math.inf), 0.0)
    if minimize == "information" and (channel == channel[0]).all():
        upper = 0.0
    return max(below - offset - slack, 0.0), upper


def _unit(statement: Statement, minimize: str) -> float:
    """Return what a tolerance is counted in: nats, or the largest distortion."""
    return float(statement.distortion.max()) or 1.0 if minimize == "distortion" else 1.0
