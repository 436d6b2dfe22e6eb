"""Masses that a solver returned, changed until every symbol is at its level in exact arithmetic.

HiGHS takes a ratio just below the level for the level. Where many outputs lie at it, as at jumps,
a symbol may then hold outputs that it cannot pay for. It is given a speck of its best output; what
is still not paid for is trimmed; and what was trimmed is offered to symbols with a surplus.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cvxleak.core.validation import Array

__all__ = ["ROUNDING", "repaired"]

Indices = NDArray[np.intp]
Masses = tuple[Indices, Indices, Array]
"""Symbols, outputs and the positive masses of these that the symbols hold."""

ROUNDING = 2e-14
"""Relative surplus that a symbol keeps, so that it reaches its level in exact arithmetic too."""

LOSS = 1e-12
"""Trimming that costs no more mass than this is not improved."""

ROUNDS = 4
"""Paying takes specks from others, which have to pay in turn."""


def repaired(
    held: Masses,
    mass: Array,
    ratios: Array,
    level: float,
    able: NDArray[np.bool_],
    bound: float,
) -> Masses:
    """Return masses of symbols that reach the level, `bound` at most in all.

    Parameters
    ----------
    held : (symbols, outputs, masses)
        Positive masses that nearly meet the constraints.
    mass : array, shape (outputs,)
        What there is of each output.
    ratios : array, shape (symbols, outputs)
        P(y|x) / P(y).
    level : float
        e^epsilon.
    able : array of bool, shape (symbols,)
        The symbols that may hold anything.
    bound : float
        An upper bound on their total.
    """
    x, y, u = held
    load = np.bincount(y, u, minlength=len(mass)) / mass
    u = u / np.maximum(1.0, load * (1 + 4e-16))[y]
    best, surplus = _trimmed((x, y, u), ratios, level)
    if bound - float(best[2].sum()) > LOSS:
        other, left = _trimmed(_paid((x, y, u), mass, ratios, level), ratios, level)
        if other[2].sum() > best[2].sum():
            best, surplus = other, left
    if bound - float(best[2].sum()) > LOSS:
        best = _topped_up(best, surplus, mass, ratios, level, able)
    return best


def _needs(level: float, ratios: Array) -> Array:
    """Return what a unit of mass costs a symbol; negative where it pays."""
    return level - ratios + ROUNDING * (level + ratios)


def _trimmed(held: Masses, ratios: Array, level: float) -> tuple[Masses, Array]:
    """Return the masses that every symbol can pay for, and what it has left then."""
    x, y, u = held
    # By symbol, from the largest ratio down, as far as the mean stays at the level.
    order = np.lexsort((-ratios[x, y], x))
    x, y, kept = x[order], y[order], u[order]
    left = np.zeros(len(ratios))
    symbol, surplus = -1, 0.0
    for i, (now, own, need) in enumerate(
        zip(x.tolist(), kept.tolist(), _needs(level, ratios[x, y]).tolist(), strict=True)
    ):
        if now != symbol:
            symbol, surplus = now, 0.0
        if need > 0:
            kept[i] = own = min(own, surplus / need)
        left[now] = surplus = max(surplus - need * own, 0.0)
    positive = kept > 0
    return (x[positive], y[positive], kept[positive]), left


def _paid(held: Masses, mass: Array, ratios: Array, level: float) -> Masses:
    """Return masses with a little more, for each symbol that lacks a little, of its best output."""
    x, y, u = held
    for _ in range(ROUNDS):
        lack = np.bincount(x, _needs(level, ratios[x, y]) * u, minlength=len(ratios))
        short = np.flatnonzero(lack > 0)
        best = ratios[short].argmax(axis=1)
        gain = -_needs(level, ratios[short, best])
        with np.errstate(divide="ignore"):
            speck = np.where(gain > 0, lack[short] * (1 + 1e-6) / gain, np.inf)
        small = speck < 1e-6 * mass[best]
        short, best, speck = short[small], best[small], speck[small]
        # Everybody else gives up the same share of the output.
        taken = np.bincount(best, speck, minlength=len(mass)) / mass
        u = np.concatenate([u * (1 - taken[y] * (1 + 1e-15)), speck])
        x, y = np.concatenate([x, short]), np.concatenate([y, best])
    return x, y, u


def _topped_up(
    held: Masses,
    surplus: Array,
    mass: Array,
    ratios: Array,
    level: float,
    able: NDArray[np.bool_],
) -> Masses:
    """Return masses with what is left of the outputs given to symbols that can pay for it.

    First to those at whose level the output is, without cost, then to the cheapest.
    """
    x, y, u = held
    spare = mass * (1 - 4e-16) - np.bincount(y, u, minlength=len(mass))
    outputs, symbols = np.flatnonzero(spare > 1e-15 * mass), np.flatnonzero(able)
    need = _needs(level, ratios[np.ix_(symbols, outputs)])
    more, purse = np.zeros(need.shape), surplus[symbols]
    for column in np.argsort(need.min(axis=0), kind="stable"):
        rest = float(spare[outputs[column]])
        for i in np.argsort(need[:, column], kind="stable"):
            cost = float(need[i, column])
            if rest <= 0 or (cost > 0 and not purse.any()):
                break
            more[i, column] = share = min(rest, float(purse[i]) / cost) if cost > 0 else rest
            purse[i] = max(purse[i] - cost * share, 0.0)
            rest -= share
    rows, columns = np.nonzero(more)
    return (
        np.concatenate([x, symbols[rows]]),
        np.concatenate([y, outputs[columns]]),
        np.concatenate([u, more[rows, columns]]),
    )
