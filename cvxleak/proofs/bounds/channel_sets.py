"""Bounds that are valid for every channel of a set: each row in its box and the simplex.

For numbers nu, the largest <q, nu> over a row q is a fractional knapsack problem. Its dual gives a
bound without an optimal solution: for any tau,

    <q, nu> = tau + sum_y q_y (nu_y - tau) <= tau + sum_y max(l_y (nu_y - tau), u_y (nu_y - tau)),

with equality at the tau where a greedy filling of the row stops. So a leaf of posterior cells
(`cvxleak.proofs.bounds.posterior_cells`), whose U increases with every c_{a,g} = <R_{a,g}, nu_a>,
bounds all channels of the set at once, with the support functions in place of the c.

A lower bound, for a prior w and any distribution rho(.|y) on the values a for each output (Barber
and Agakov),

    I(A;Y) = H(A) + sum_{a,y} s_{a,y} log p(a|y) >= H(A) + sum_{a,y} s_{a,y} log rho(a|y),

is linear in the rows, so the least value over each row's box is a knapsack problem again. rho is
the posterior under the center of the set, where the bound is sharp. The same works for any convex
gain: log rho is a tangent of -H.
"""

from __future__ import annotations

from collections.abc import Sequence

from flint import arb

from cvxleak.exact import balls
from cvxleak.proofs.bounds.outputs import Ball, Matrix

__all__ = [
    "divergence_above",
    "information_below",
    "least_over_row",
    "posterior_gain_below",
    "posteriors_of",
    "support_above",
]

CLOSE = 1e-12
"""A probability closer than this to an endpoint of its interval is not cut off from it."""

SPECK = 1e-12
"""Share of the prior that is mixed into the posteriors for a lower bound; any share is valid."""


def support_above(lower: Sequence[Ball], upper: Sequence[Ball], nu: Sequence[Ball]) -> Ball:
    """Return a ball above every <q, nu>, for distributions q between `lower` and `upper`."""
    tau = nu[_filled(lower, upper, nu)[0]]
    value = tau
    for low, high, number in zip(lower, upper, nu, strict=True):
        above = number - tau
        value += (low * above).max(high * above)
    return value


def least_over_row(lower: Sequence[Ball], upper: Sequence[Ball], nu: Sequence[Ball]) -> Ball:
    """Return a ball below every <q, nu>, for distributions q between `lower` and `upper`."""
    return -support_above(lower, upper, [-x for x in nu])


def _filled(lower: Sequence[Ball], upper: Sequence[Ball], nu: Sequence[Ball]) -> tuple[int, float]:
    """Return where filling up the row, largest nu first, stops, and the probability there."""
    low, high = ([float(x.mid()) for x in ends] for ends in (lower, upper))
    room, y = 1.0 - sum(low), 0
    for y in sorted(range(len(nu)), key=lambda y: -float(nu[y].mid())):
        if room <= high[y] - low[y]:
            break
        room -= high[y] - low[y]
    return y, low[y] + room


def information_below(
    priors: Sequence[Sequence[Ball]], lower: Matrix, upper: Matrix, posteriors: Matrix
) -> Ball:
    """Return a ball below I(A;Y), for all rows in their boxes.

    Parameters
    ----------
    priors : lists of shape (values, rows)
        The joint probability of each value of A and each row.
    lower, upper : lists of shape (rows, outputs)
    posteriors : lists of shape (values, outputs)
        rho(a|y) > 0 whenever the value has a row that may show the output.
    """
    entropy = balls.entropy([balls.total(own) for own in priors])
    logs = [balls.logarithms(row) for row in posteriors]
    return entropy + posterior_gain_below(priors, lower, upper, logs)


def posterior_gain_below(
    priors: Sequence[Sequence[Ball]],
    lower: Matrix,
    upper: Matrix,
    tangents: Sequence[Sequence[Ball | None]],
) -> Ball:
    """Return a ball below sum_y s_y G(rho_y), for all rows in their boxes.

    `tangents`, of shape (values, outputs), has a tangent of G for each output; None is -inf.
    """
    value = arb(0)
    for place, (low, high) in enumerate(zip(lower, upper, strict=True)):
        prices = [arb(0)] * len(low)
        for own, log in zip(priors, tangents, strict=True):
            if own[place] == 0:
                continue
            for y, x in enumerate(log):
                if not high[y] == 0:
                    prices[y] += arb.neg_inf() if x is None else own[place] * x
        value += least_over_row(low, high, prices)
    return value


def posteriors_of(joint: Matrix, priors: Sequence[Ball]) -> Matrix:
    """Return p(a|y) of a joint distribution, mixed with a little of the prior to avoid zeros."""
    sums = [balls.total(column) for column in zip(*joint, strict=True)]
    return [
        [(s + SPECK * prior) / (total + SPECK) for s, total in zip(own, sums, strict=True)]
        for own, prior in zip(joint, priors, strict=True)
    ]


def divergence_above(
    lower: Sequence[Ball], upper: Sequence[Ball], logs: Sequence[Ball | None], cuts: int = 6
) -> Ball:
    """Return a ball above every D(q || t), for distributions q in a box; `logs` are those of t.

    q log(q / t) is convex in q, so it lies below the chord between the endpoints of the interval.
    For the one probability that a knapsack leaves inside its interval this is not sharp; the box is
    cut in two there, at most `cuts` times.
    """
    offset, slopes = arb(0), []
    for low, high, log in zip(lower, upper, logs, strict=True):
        if high == 0:
            slopes.append(arb(0))
            continue
        if log is None:
            return arb.pos_inf()
        ends = [balls.x_log_x(q) - q * log for q in (low, high)]
        # For a point, or nearly one, any slope is valid: both endpoints are covered below.
        slope = (ends[1] - ends[0]) / (high - low) if high > low else ends[1] / high
        slopes.append(slope)
        offset += balls.largest([end - slope * q for end, q in zip(ends, (low, high), strict=True)])
    value = offset + support_above(lower, upper, slopes)
    place, at = _filled(lower, upper, slopes)
    middle = arb(at)
    if cuts and lower[place] + CLOSE < middle < upper[place] - CLOSE:
        below = [*upper[:place], middle, *upper[place + 1 :]]
        above = [*lower[:place], middle, *lower[place + 1 :]]
        parts = (
            divergence_above(low, high, logs, cuts - 1)
            for low, high in ((lower, below), (above, upper))
        )
        return value.min(balls.largest(parts))
    return value
