"""Refinement and Le Cam's deficiency: whether, or how closely, processing turns C into D.

The deficiency of a channel C for a channel D with the same inputs is

    min over stochastic R of max_x TV( (C R)_x, D_x )
        = max over priors p and gains g in [0, 1] of V_g(p, D) - V_g(p, C),

the first because D is then R after C up to that distance, the second by the duality of linear
programs (Le Cam's randomization criterion). Any R proves an upper end and any p and g prove a
lower one, so both are evaluated in rational numbers, whoever found them. It is 0 if and only if
C R = D for some R: then D refines C (Blackwell; the "Coriaceous" theorem of McIver et al.).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat
from numpy.typing import ArrayLike

from cvxleak.core.errors import SolverError, ValidationError
from cvxleak.core.numbers import exact_law, fraction, to_json
from cvxleak.core.validation import Array, instance
from cvxleak.core.value import Value
from cvxleak.core.wording import counted
from cvxleak.kernel.numbers import upper as float_above
from cvxleak.model import Channel, GainMatrix, Prior
from cvxleak.proofs import Certificate
from cvxleak.proofs.refinement import prove
from cvxleak.refinement.rational import (
    Table,
    check_terms,
    exact_rows,
    fractions,
    normalized,
    numbers,
    on_one_input,
    processed,
    rationals,
    vulnerability,
)
from cvxleak.solvers.exact_linear import exact_minimum

__all__ = ["Refinement", "deficiency", "le_cam_distance", "refines"]

LONGEST = 10**1999
"""Fractions up to 1 with smaller denominators have the 4000 characters that a file may hold."""


@dataclass(frozen=True, eq=False, repr=False)
class Refinement(Value):
    """Whether a channel D refines a channel C (C R = D for some R), with the proof.

    Returned by `refines`. `lower` and `upper` are computed from the other attributes, in rational
    numbers, so an object that was stored or constructed by hand is a proof, too.

    Parameters
    ----------
    prior : Prior
        A distribution p of the input.
    channel, other : Channel
        C, and D with the same inputs.
    processing : Channel
        R, from the outputs of C to those of D; C R = D if D refines C.
    gain : GainMatrix
        g, with entries from 0 to 1. If D does not refine C, its expected gain under p is larger
        with D than with C.

    Raises
    ------
    ValidationError
        Parts that do not match each other, or gains outside [0, 1].

    Attributes
    ----------
    lower : Fraction
        max(0, V_g(p, D) - V_g(p, C)), a lower bound on the deficiency.
    upper : Fraction
        The largest total variation distance between a row of C R and the same row of D, an upper
        bound on the deficiency.

    Examples
    --------
    >>> from cvxleak import verify
    >>> from cvxleak.refinement import refines
    >>> found = refines([[0.9, 0.1], [0.1, 0.9]], [[0.8, 0.2], [0.2, 0.8]])
    >>> found
    Refinement(holds: other = channel followed by processing)
    >>> bool(found), found.processing.matrix.tolist()
    (True, [[0.875, 0.125], [0.125, 0.875]])
    >>> verify(found.certificate).passed, found.certificate.upper
    (True, 0.0)
    """

    prior: Prior
    channel: Channel
    other: Channel
    processing: Channel
    gain: GainMatrix
    lower: Fraction = field(init=False)
    upper: Fraction = field(init=False)

    def __post_init__(self) -> None:
        kinds = {"prior": Prior, "gain": GainMatrix}
        for name in ("channel", "other", "processing", "prior", "gain"):
            instance(getattr(self, name), kinds.get(name, Channel), name)
        if self.channel.inputs != self.other.inputs or self.channel.inputs != self.prior.labels:
            raise ValidationError(
                "other: the channels and the prior must have the same inputs in the same order"
            )
        if self.processing.shape != (self.channel.shape[1], self.other.shape[1]):
            raise ValidationError(
                f"processing: found shape {self.processing.shape}; a row for each of "
                f"{counted(self.channel.shape[1], 'output')} and "
                f"{counted(self.other.shape[1], 'column')} are needed"
            )
        self.gain.fits(len(self.prior))
        entries = [[fraction(x) for x in row] for row in self.gain.table.tolist()]
        if not all(0 <= x <= 1 for row in entries for x in row):
            raise ValidationError("gain: found entries outside [0, 1]")
        first, second = exact_rows(self.channel), exact_rows(self.other)
        law = list(exact_law(self.prior.probabilities))
        more = vulnerability(law, second, entries) - vulnerability(law, first, entries)
        object.__setattr__(self, "lower", max(more, Fraction(0)))
        made = processed(first, exact_rows(self.processing))
        object.__setattr__(self, "upper", _largest_variation(made, second))

    @cached_property
    def certificate(self) -> Certificate:
        """Lower and upper bound on the deficiency as floats, and their proof, for `cvxleak.verify`.

        An upper bound of 0 proves that D refines C; a lower bound above 0 proves that it does not.
        Processing, prior and gain are stored exactly, or as floats if a fraction is too long for a
        file.

        Raises
        ------
        CertificateError
            A channel with fractions of more than 4000 characters.
        """
        problem = {"channel": to_json(self.channel.matrix), "other": to_json(self.other.matrix)}
        witness = {"processing": _storable(self.processing.matrix)}
        proof = {"prior": _storable(self.prior.probabilities), "gain": _storable(self.gain.table)}
        lower, upper = prove(problem, witness, proof)
        return Certificate("deficiency", problem, lower, upper, witness, proof, unit="probability")

    def __bool__(self) -> bool:
        if self.lower > 0:
            return False
        if self.upper == 0:
            return True
        raise SolverError(
            f"refines: not decided; the deficiency is at most {float(self.upper):.3g}, and the "
            "program is too large to be solved in rational numbers"
        )

    def __repr__(self) -> str:
        if self.upper == 0:
            return "Refinement(holds: other = channel followed by processing)"
        ends = f"deficiency from {float(self.lower):.6g} to {float(self.upper):.6g}"
        return f"Refinement({'fails' if self.lower > 0 else 'not decided'}: {ends})"


def refines(channel: Channel | ArrayLike, other: Channel | ArrayLike) -> Refinement:
    """Return whether D refines C: whether C R = D for some stochastic R, with the proof.

    If so, D does not leak more than C for any prior and gain. If not, there are a prior and a gain
    in [0, 1] for which D leaks more (Blackwell's theorem), and they are returned.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        C, the rows q(y|x).
    other : Channel or array_like, shape (k, n)
        D, on the same inputs; a `Channel` is matched to the inputs of C by label.

    Returns
    -------
    Refinement
        Its truth value is the answer. It holds the processing R, the prior and the gain, and a
        lower and an upper bound on the deficiency as rational numbers, which are equal except for
        large channels.

    Raises
    ------
    ValidationError
        Rows that are not distributions, different inputs, or more than four million products of an
        input and two outputs.

    Notes
    -----
    Blackwell, "Equivalent comparisons of experiments", 1953; Alvim, Chatzikokolakis, McIver,
    Morgan, Palamidessi and Smith, "The Science of Quantitative Information Flow", 2020, chapter 9.
    Numbers are taken as written: 0.1 is a tenth. A channel that was composed in floating point need
    not refine its first part exactly.

    Examples
    --------
    Neither of these refines the other:

    >>> from fractions import Fraction
    >>> from cvxleak.refinement import refines
    >>> first = [[0.5, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0.5]]
    >>> second = [[Fraction(2, 3), Fraction(1, 3)], [Fraction(2, 3), Fraction(1, 3)], [0.25, 0.75]]
    >>> bool(refines(first, second)), bool(refines(second, first))
    (False, False)
    >>> found = refines(first, second)
    >>> found.lower, found.upper
    (Fraction(1, 36), Fraction(1, 36))
    """
    first, second = on_one_input(channel, other)
    rows, wanted = exact_rows(first), exact_rows(second)
    kernel, law, gain = _answer(rows, wanted)
    return Refinement(
        Prior(numbers(law), first.inputs),
        first,
        second,
        Channel(numbers(kernel), first.outputs, second.outputs),
        GainMatrix(numbers(gain), second.outputs),
    )


def deficiency(channel: Channel | ArrayLike, other: Channel | ArrayLike) -> float:
    """Return Le Cam's deficiency of C with respect to D, min_R max_x TV( (C R)_x, D_x ).

    It is the largest difference of the expected gain with D and with C, over all priors and all
    gains in [0, 1]. It is 0 if D refines C, and at most 1.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        C, the rows q(y|x).
    other : Channel or array_like, shape (k, n)
        D, on the same inputs.

    Raises
    ------
    ValidationError
        As in `refines`.

    See Also
    --------
    refines : The same with its proof, and both bounds as rational numbers.

    Notes
    -----
    Le Cam, "Sufficiency and approximate sufficiency", 1964. The result is the upper bound, rounded
    up to a float.

    Examples
    --------
    The deficiency of a constant channel with respect to the identity, on two inputs:

    >>> from cvxleak.refinement import deficiency
    >>> deficiency([[1.0], [1.0]], [[1, 0], [0, 1]])
    0.5
    """
    return float_above(*rationals([refines(channel, other).upper]))


def le_cam_distance(channel: Channel | ArrayLike, other: Channel | ArrayLike) -> float:
    """Return the larger of the deficiencies of each channel for the other: a distance of channels.

    In any decision problem with gains in [0, 1], replacing one channel by the other costs at most
    the distance. At distance 0 each refines the other.

    Parameters
    ----------
    channel : Channel or array_like, shape (k, m)
        The rows q(y|x).
    other : Channel or array_like, shape (k, n)
        On the same inputs.

    Raises
    ------
    ValidationError
        As in `refines`.

    Notes
    -----
    Le Cam, "Sufficiency and approximate sufficiency", 1964.

    Examples
    --------
    >>> from cvxleak.refinement import le_cam_distance
    >>> le_cam_distance([[0.75, 0.25], [0.25, 0.75]], [[0.875, 0.125], [0.125, 0.875]])
    0.125
    """
    return max(deficiency(channel, other), deficiency(other, channel))


def _quotient(rows: Table, wanted: Table) -> Table | None:
    """Return R >= 0 with C R = D where the columns of C are independent and there is such an R.

    No other R will do then. Its rows sum to 1, because C maps their sums to ones, as it does ones.
    """
    before = len(rows[0])
    both = fmpq_mat([rationals([*c, *d]) for c, d in zip(rows, wanted, strict=True)])
    reduced, rank = both.rref()
    table = [fractions(row) for row in reduced.tolist()]
    if rank != before or any(table[i][i] != 1 for i in range(before)):
        return None
    kernel = [row[before:] for row in table[:before]]
    return kernel if min(map(min, kernel)) >= 0 else None


def _answer(rows: Table, wanted: Table) -> tuple[Table, list[Fraction], Table]:
    """Return the processing, and the prior and gain, of the linear program's two sides.

    Minimize t with (C R)_xz + s_xz - e_xz = D_xz, sum_z s_xz + h_x = t, sum_z R_yz = 1. With
    multipliers a_xz and -p_x of the first two, 0 <= a_xz <= p_x and p is a distribution: g(z, x) is
    a_xz / p_x.
    """
    inputs, before, after = len(rows), len(rows[0]), len(wanted[0])
    check_terms(inputs, before, after)
    direct = _quotient(rows, wanted)
    if direct is not None:
        return direct, [Fraction(1, inputs)] * inputs, [[Fraction(0)] * inputs] * after
    one, exact = fmpq(1), [rationals(row) for row in rows]
    cells = [(x, z) for x in range(inputs) for z in range(after)]
    place = {cell: i for i, cell in enumerate(cells)}
    limits, sums = len(cells), len(cells) + inputs
    processing = [
        {place[x, z]: exact[x][y] for x in range(inputs) if rows[x][y]} | {sums + y: one}
        for y in range(before)
        for z in range(after)
    ]
    short = [{place[x, z]: one, limits + x: one} for x, z in cells]
    over = [{place[cell]: -one} for cell in cells]
    slack = [{limits + x: one} for x in range(inputs)]
    largest = {limits + x: -one for x in range(inputs)}
    columns = [*processing, *short, *over, *slack, largest]
    sides = [*(q for row in wanted for q in rationals(row)), *[0 * one] * inputs, *[one] * before]
    point, prices = map(
        fractions, exact_minimum([0 * one] * (len(columns) - 1) + [one], columns, sides)
    )
    kernel = [normalized(point[y * after : (y + 1) * after]) for y in range(before)]
    law = normalized(-price for price in prices[limits:sums])
    gain = [
        [
            min(max(prices[place[x, z]] / p, Fraction(0)), Fraction(1)) if p else p
            for x, p in enumerate(law)
        ]
        for z in range(after)
    ]
    return kernel, law, gain


def _storable(values: Array) -> Any:
    """Return probabilities or gains as a certificate holds them: floats if one is too long."""
    fit = all(fraction(x).denominator < LONGEST for x in values.ravel().tolist())
    return to_json(values) if fit else np.array(values, dtype=float, subok=False).tolist()


def _largest_variation(made: Table, wanted: Table) -> Fraction:
    return max(
        sum((max(d - c, Fraction(0)) for c, d in zip(one, other, strict=True)), Fraction(0))
        for one, other in zip(made, wanted, strict=True)
    )
