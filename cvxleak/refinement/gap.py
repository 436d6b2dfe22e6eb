"""The largest difference of a bounded gain with two channels, under one prior."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from flint import fmpq
from numpy.typing import ArrayLike

from cvxleak.core.numbers import exact_law
from cvxleak.model import Channel, GainMatrix, Prior, as_prior
from cvxleak.refinement.rational import (
    Row,
    Table,
    check_terms,
    dot,
    exact_rows,
    fractions,
    numbers,
    on_one_input,
    processed,
    rationals,
    vulnerability,
)
from cvxleak.solvers.exact_linear import exact_minimum

__all__ = ["RefinementGap", "refinement_gap"]


class RefinementGap(NamedTuple):
    """Bounds on a refinement gap, equal except for large channels, and a gain that attains `lower`.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from cvxleak.model import GainMatrix
    >>> from cvxleak.refinement import RefinementGap
    >>> RefinementGap(Fraction(0), Fraction(0), GainMatrix([[0, 0]])).upper
    Fraction(0, 1)
    """

    lower: Fraction
    upper: Fraction
    gain: GainMatrix


def refinement_gap(
    prior: Prior | ArrayLike, channel: Channel | ArrayLike, other: Channel | ArrayLike
) -> RefinementGap:
    """Return max_g V_g(p, D) - V_g(p, C) over gains g <= 1 with an action of gain 0.

    The largest advantage of D over C for an adversary who can gain at most 1, lose any amount, or
    do nothing. With R from the outputs of C to those of D, whose rows sum to at most 1, it is

        min over R >= 0 with C R <= D of 1 - sum_xyz p(x) C(y|x) R(z|y),

    the share of D that cannot be obtained from C. Under a prior of full support it is 0 if and only
    if D refines C; it is never less than the gap for gains in [0, 1].

    Parameters
    ----------
    prior : Prior or array_like, shape (k,)
        The distribution p of the input.
    channel : Channel or array_like, shape (k, m)
        C, the rows q(y|x).
    other : Channel or array_like, shape (k, n)
        D, on the same inputs.

    Returns
    -------
    RefinementGap
        Both bounds as rational numbers, and a gain with an action (z,) for each output z of D and
        an action () of gain 0.

    Raises
    ------
    ValidationError
        Arguments that do not match each other, or more than four million products of an input and
        two outputs.

    Notes
    -----
    Chatzikokolakis, Fernandes and Palamidessi, "Refinement metrics for quantitative information
    flow", 2019: the additive refinement metric for gains bounded by 1.

    Examples
    --------
    >>> from cvxleak.refinement import refinement_gap
    >>> p, noisy, clear = [0.5, 0.5], [[0.75, 0.25], [0.25, 0.75]], [[1, 0], [0, 1]]
    >>> refinement_gap(p, noisy, clear).upper, refinement_gap(p, clear, noisy).upper
    (Fraction(1, 1), Fraction(0, 1))
    """
    first, second = on_one_input(channel, other)
    p = as_prior(prior, len(first.inputs), labels=first.inputs)
    law = list(exact_law(p.probabilities))
    seen = [x for x, mass in enumerate(law) if mass]
    part = [law[x] for x in seen]
    rows, wanted = ([table[x] for x in seen] for table in map(exact_rows, (first, second)))
    kernel, paid = _answer(part, rows, wanted)
    nothing = [[Fraction(0)] * len(part)]
    lower = vulnerability(part, wanted, paid + nothing) - vulnerability(part, rows, paid + nothing)
    made = processed(rows, kernel)
    pairs = [(c, d) for two in zip(made, wanted, strict=True) for c, d in zip(*two, strict=True)]
    share = min([Fraction(1), *(d / c for c, d in pairs if c)])
    upper = 1 - share * dot(part, [sum(row, Fraction(0)) for row in made])
    full = [dict(zip(seen, action, strict=True)) for action in paid + nothing]
    table = [[action.get(x, Fraction(0)) for x in range(len(law))] for action in full]
    gain = GainMatrix(numbers(table), [*((z,) for z in second.outputs), ()])
    return RefinementGap(max(lower, Fraction(0)), upper, gain)


def _answer(law: Row, rows: Table, wanted: Table) -> tuple[Table, Table]:
    """Return R and the gain of the linear program's two sides.

    Minimize sum p(x) s_xz with (C R)_xz + s_xz = D_xz and sum_z R_yz + h_y = 1: with multipliers
    u_xz <= p(x) of the first, g(z, x) is u_xz / p(x).
    """
    inputs, before, after = len(rows), len(rows[0]), len(wanted[0])
    check_terms(inputs, before, after)
    one, cells = fmpq(1), inputs * after
    exact = [rationals(row) for row in rows]
    processing = [
        {x * after + z: exact[x][y] for x in range(inputs) if rows[x][y]} | {cells + y: one}
        for y in range(before)
        for z in range(after)
    ]
    short = [{cell: one} for cell in range(cells)]
    unused = [{cells + y: one} for y in range(before)]
    cost = [0 * one] * len(processing)
    cost += [p for p in rationals(law) for _ in range(after)] + [0 * one] * before
    sides = [q for row in wanted for q in rationals(row)] + [one] * before
    point, prices = map(fractions, exact_minimum(cost, [*processing, *short, *unused], sides))
    kernel = [
        [max(x, Fraction(0)) for x in point[y * after : (y + 1) * after]] for y in range(before)
    ]
    sums = [max(sum(row, Fraction(0)), Fraction(1)) for row in kernel]
    paid = [
        [min(prices[x * after + z] / p, Fraction(1)) for x, p in enumerate(law)]
        for z in range(after)
    ]
    return [[x / total for x in row] for row, total in zip(kernel, sums, strict=True)], paid
