"""What attacks come to, in natural frequencies: so many of a hundred people."""

from __future__ import annotations

import math
from collections.abc import Callable

from cvxleak.core.wording import rounded

__all__ = [
    "advantage",
    "bayes_factor",
    "gaussian",
    "guess_after",
    "guess_before",
    "hits",
    "of_people",
    "renyi",
    "zcdp",
]

CROWDS = (100, 1_000, 10_000, 100_000, 1_000_000)


def of_people(share: float, rounding: Callable[[float], int] = round) -> str:
    """Return a share as a number of people in a crowd, the smallest in which it is not 0 or all.

    Examples
    --------
    >>> from cvxleak.report.frequencies import of_people
    >>> of_people(0.731), of_people(0.0004), of_people(1.0), of_people(1e-9)
    ('73 of 100', '4 of 10,000', '100 of 100', 'fewer than 1 of 1,000,000')
    """
    for crowd in CROWDS:
        near = round(share * crowd)
        # A share such as 0.29 misses its whole number by a rounding error.
        count = near if abs(share * crowd - near) < 1e-9 * crowd else rounding(share * crowd)
        if share in (0, 1) or 0 < count < crowd:
            return f"{count:,} of {crowd:,}"
    most = CROWDS[-1]
    word = "fewer than 1" if share < 0.5 else f"more than {most - 1:,}"
    return f"{word} of {most:,}"


def bayes_factor(factor: float) -> str:
    """Sentence for the factor by which an output can change odds."""
    if math.isinf(factor):
        return (
            "For an adversary who knows all other records, some output can settle with certainty "
            "which of two values a record has."
        )
    most = factor / (1 + factor)
    return (
        "No output changes the odds between two values of a record by more than this factor, for "
        "an adversary who believes that the records are independent: a chance of 50 of 100 becomes "
        f"at most {of_people(most, math.ceil)}."
    )


def renyi(order: float) -> str:
    """Sentence for a Rényi divergence."""
    return (
        f"The Rényi divergence of order {order:g} between the outputs of two datasets that differ "
        "in one record. The values for several releases add up."
    )


def zcdp() -> str:
    """Sentence for zero-concentrated differential privacy."""
    return (
        "At every order alpha above 1, the Rényi divergence is at most rho times alpha. Over "
        "several releases rho adds up: ten of them have ten times as much."
    )


def gaussian(mu: float) -> str:
    """Sentence for Gaussian differential privacy."""
    if math.isinf(mu):
        return (
            "Some test finds people without any false alarm, or misses nobody without accusing "
            "everybody."
        )
    return (
        "Telling two values of a record apart from the output is at least as hard as telling from "
        "one draw whether a normal distribution of standard deviation 1 has mean 0 "
        f"or {rounded(mu, up=True)}."
    )


def advantage(distance: float, records: int) -> str:
    """Sentence for the total variation distance of neighbors."""
    right = (1 + distance) / 2
    who = " by an adversary who knows all other records" if records > 1 else ""
    return (
        f"Hits minus false alarms of the best test for one record{who}. Of people who have either "
        f"value with even odds, it classifies at most {of_people(right, math.ceil)} correctly; a "
        "coin toss classifies 50 of 100."
    )


def hits(false_alarm: float, hit: float) -> str:
    """Sentence for a point of the curve of hits against false alarms."""
    return (
        f"A test with false alarms for at most {of_people(false_alarm)} people finds at most "
        f"{of_people(hit, math.ceil)} of those it looks for; without the output, "
        f"{of_people(false_alarm)}."
    )


def guess_before(values: int, tries: int) -> str:
    """Sentence for guesses at a record of which nothing is known."""
    return (
        f"Of people about whom nothing is known, {of_people(tries / values)} are guessed correctly "
        f"{_within(tries)} before the output is seen (a record has {values} values)."
    )


def guess_after(chance: float, tries: int, records: int) -> str:
    """Sentence for these guesses after the output is seen."""
    who = ", by an adversary who knows all other records, in the worst case"
    return (
        f"Of people about whom nothing is known, at most {of_people(chance, math.ceil)} are "
        f"guessed correctly {_within(tries)} after the output is seen{who if records > 1 else ''}."
    )


def _within(tries: int) -> str:
    return "with one guess" if tries == 1 else f"within {tries} guesses"
