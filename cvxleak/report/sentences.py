"""What each number of a report means: one sentence each, for readers who are no specialists."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from decimal import ROUND_CEILING
from typing import Any

from cvxleak.core.wording import rounded
from cvxleak.problem.bound import unit_scale
from cvxleak.report import names
from cvxleak.report.numbers import amount

COMPLETE = 1e-6
"""Relative shortfall of a leakage from log k that counts as complete disclosure."""

NOTHING = 1e-6
"""Leakage in nats that counts as none."""
CAPACITY = "The most that one output tells any adversary about the whole dataset, on average."
"""The capacity of a mechanism as a whole."""

CHANNEL_CAPACITY = (
    "The most that one output tells about the input, on average, for any distribution of the input."
)
"""The capacity of a channel by itself."""

MUTUAL_INFORMATION = "What the output tells about the record, on average, under the given prior."
"""Mutual information under a given prior."""

DESIGN_LEAKAGE = (
    "Upper: proved for every adversary in scope. Lower: leakage to the worst adversary found."
)
"""The leakage of the channel that was designed."""

WORST_CASE_DISTORTION = "Expected error of the output, at the dataset for which it is largest."
"""The distortion at the worst dataset."""

ENVELOPE_BOUNDS = {
    names.PML_QUANTILE: (
        "The leakage that the output, released as it is, exceeds with at most that probability; "
        "post-processing can only raise it."
    ),
    names.EVENT_ENVELOPE: (
        "The largest leakage from learning that an event of at least that probability has "
        "happened: a lower bound on the envelope."
    ),
    names.THEOREM_3: (
        "The smaller of maximal leakage + log 1/delta and the largest leakage of any output: an "
        "upper bound on the envelope."
    ),
    names.TAIL_AVERAGE: (
        "The log of the mean of e^leakage over the worst outputs of that total probability: an "
        "upper bound on the envelope, never above that of Theorem 3."
    ),
}
"""What is said beside the envelope, by its name."""


def percent(share: float, rounding: Callable[[float], int] = round) -> str:
    """Return a share in percent, to a tenth: the nearest one, or `math.floor`, or `math.ceil`."""
    # Shares such as 0.3 miss the tenth that they mean by a rounding error.
    nearest = round(1000 * share)
    tenths = nearest if abs(1000 * share - nearest) < 1e-9 else rounding(1000 * share)
    return f"{tenths / 10:.1f} %"


def leakage(subject: str, lower: float, upper: float, values: int, unit: str) -> str:
    """Sentence for a leakage, in nats, about a record of k values under an entropy floor.

    All of it is log k: all values are equally likely before, and one is certain after.
    """
    whole = math.log(values)
    if values > 1 and lower >= (1 - COMPLETE) * whole:
        guess = "a 50/50 guess" if values == 2 else f"a guess among {values} equally likely values"
        return (
            f"Discloses {subject} completely: an adversary with at least this much uncertainty "
            f"about the dataset can go from {guess} to certainty by seeing the output."
        )
    if upper <= NOTHING:
        return f"Tells nothing about {subject} to an adversary with at least this much uncertainty."
    return (
        f"Tells part of {subject}: no adversary with at least this much uncertainty learns more "
        f"than the upper bound on average; complete disclosure would be "
        f"{whole / unit_scale(unit):.6f} {unit}."
    )


REAL_OUTPUT = "This is about the noisy number itself, neither rounded nor clamped."


def of_set(width: float, unit: str) -> str:
    """Sentence, after a space, for what a set of channels leaves open, in nats; or nothing."""
    if width == 0:
        return ""
    open_by = width / unit_scale(unit)
    return (
        f" The bounds hold for every channel in the set; {open_by:.2g} {unit} of the gap between "
        "them are due to the set, and no search can close that part."
    )


def of_those_who(statement: str) -> str:
    """Sentence for what else is known of the adversaries' beliefs."""
    return f"Only adversaries in whose beliefs {statement} are considered."


def independent(subject: str, known: Mapping[str, Any]) -> str:
    """Sentence for a leakage to adversaries who believe that the records are independent."""
    return (
        f"The most that one output tells about {subject}, on average, to {who_independent(known)}. "
        "An entropy floor also allows beliefs in which the other records depend on this one, and "
        "with such a belief far more can be learned."
    )


def who_independent(known: Mapping[str, Any]) -> str:
    """Say which adversary believes that the records are independent, and what they know."""
    if "laws" in known:
        what = "and knows that the distribution of each record is a mixture of the given ones"
    elif known.get("record_floor"):
        what = "and whose uncertainty about each other record is at least the given entropy"
    elif known.get("least_probability"):
        least = known["least_probability"]
        what = f"and gives each value of each other record a probability of at least {least:g}"
    else:
        what = "and may know all other records, as differential privacy assumes"
    return f"an adversary who believes that the records are independent {what}"


def told_of_one_cell(subject: str, known: Mapping[str, Any]) -> str:
    """Sentence for what a table, or one of its numbers, tells of one of independent people."""
    if "laws" in known:
        what = (
            "and knows that the distribution of each person's cell is a mixture of the given ones"
        )
    elif known.get("least_probability"):
        least = known["least_probability"]
        what = f"and gives each cell of each other person a probability of at least {least:g}"
    else:
        what = "and may know the cells of all other people"
    return (
        f"The most that {subject} about one person's cell, on average, to an adversary who "
        f"believes that people are independent {what}."
    )


def guess(subject: str, when: str) -> str:
    """Sentence for the chance of a right guess under the worst prior found."""
    return (
        f"Chance that the worst adversary found guesses {subject} correctly {when} seeing the "
        "output."
    )


def chance(subject: str) -> str:
    """Sentence for the largest chance of a right guess."""
    return (
        f"The largest chance that any adversary with this much uncertainty guesses {subject} "
        "correctly after seeing the output."
    )


def rise(subject: str) -> str:
    """Sentence for the largest rise of that chance."""
    return (
        f"The most by which seeing the output raises the chance of guessing {subject} correctly, "
        "for any adversary with this much uncertainty."
    )


def rise_by_fano(subject: str) -> str:
    """Sentence for a bound on that rise by the leakage."""
    return (
        "Upper: a bound, by Fano's inequality, on how much the chance of guessing "
        f"{subject} correctly can rise for any adversary with this much uncertainty. Lower: the "
        "rise for the worst adversary found."
    )


def balance(subject: str) -> str:
    """Sentence for the balance function."""
    return f"Extra leakage about {subject} if the entropy floor is dropped."


def maximal_leakage(nats: float) -> str:
    """Sentence for maximal leakage."""
    return (
        "Seeing the output multiplies the chance of guessing any secret that depends on the data "
        f"by at most {factor(nats)}."
    )


def record_dp(nats: float) -> str:
    """Sentence for the differential privacy of records.

    It is also the largest max-information about a record over product priors
    (`cvxleak.measures.product_max_information`).
    """
    if nats == math.inf:
        return (
            "Not differentially private: some output is possible for one dataset and impossible "
            "for another that differs from it in one record. For an adversary who believes that "
            "the records are independent, an output can make a value of a record more likely by "
            "any factor."
        )
    return (
        f"Changing one record multiplies the probability of any output by at most {factor(nats)}; "
        "for an adversary who believes that the records are independent, no output makes a value "
        "of a record more likely by a larger factor."
    )


def record_delta(epsilon: float, delta: float) -> str:
    """Sentence for the differential privacy of records with a delta, at one epsilon in nats."""
    return (
        f"With epsilon {epsilon:g}, changing one record multiplies the probability of any set of "
        f"outputs by at most {factor(epsilon)} and adds at most {_added(delta)} to it."
    )


def moved(epsilon: float, delta: float) -> str:
    """Sentence, without its period, for the differential privacy of a table at one epsilon."""
    return (
        f"With epsilon {epsilon:g}, moving one person to another cell multiplies the probability "
        f"of any set of published results by at most {factor(epsilon)} and adds at most "
        f"{_added(delta)} to it"
    )


def local_dp(nats: float) -> str:
    """Sentence for the differential privacy of whole datasets."""
    if nats == math.inf:
        return "Some output is possible for one dataset and impossible for another."
    return (
        "The probability of any output differs between any two datasets by a factor of at most "
        f"{factor(nats)}."
    )


def max_information(nats: float) -> str:
    """Sentence for max-information under a given prior."""
    return (
        "Under the given prior, no output makes any value of the record more likely by a factor "
        f"above {factor(nats)}."
    )


def known_guess(when: str) -> Callable[[float], str]:
    """Sentence for the best guess of an adversary who knows the given prior."""
    return lambda chance: (
        "An adversary who knows the given prior guesses the record correctly with probability "
        f"{percent(chance)} {when} seeing the output."
    )


def pml(outcome: Hashable, nats: float) -> str:
    """Sentence for the pointwise maximal leakage of one output."""
    return (
        f"Under the given prior, the output {outcome!r} multiplies any adversary's expected gain "
        f"by at most {factor(nats)}."
    )


def posterior(outcome: Hashable, value: Hashable, before: float, after: float) -> str:
    """Sentence for the probability of a value of the record, given one output."""
    if after == 0:
        return f"The output {outcome!r} rules out that the record is {value!r}."
    return (
        f"To an adversary who knows the given prior and sees the output {outcome!r}, the record is "
        f"{value!r} with probability {percent(after)}; it was {percent(before)} before."
    )


def envelope(delta: float, nats: float) -> str:
    """Sentence for the PML envelope at one delta."""
    return (
        "Whatever is done with the output, the result multiplies any adversary's expected gain by "
        f"at most {factor(nats)}, except with probability {delta:g}."
    )


def failure(nats: float, strict: bool) -> str:
    """Sentence for the failure probability at one level."""
    return (
        "The largest probability, over everything that can be done with the output, that the "
        f"result multiplies an adversary's expected gain by {_level(nats, strict)}."
    )


def released_failure(nats: float, strict: bool) -> str:
    """Sentence for the failure probability of the output as it is."""
    return (
        "The probability that the output, released as it is, multiplies an adversary's expected "
        f"gain by {_level(nats, strict)}."
    )


def least_epsilon(budget: float, delta: float) -> str:
    """Sentence for the least epsilon of local differential privacy."""
    return (
        f"No channel whose expected error is at most {budget:g} under every distribution in the "
        f"set has an epsilon of local differential privacy{_approximate(delta)} below the lower "
        "bound; the channel found attains the upper bound."
    )


def least_distortion(nats: float, delta: float) -> str:
    """Sentence for the least worst-case distortion of a private channel."""
    return (
        "No channel in which the probability of any output differs between two inputs by a factor "
        f"of at most {factor(nats, up=False)}{_approximate(delta)} has an expected error below the "
        "lower bound under the worst distribution in the set; the channel found attains the upper "
        "bound."
    )


def response_epsilon() -> str:
    """Sentence for randomized response at equal distortion."""
    return "The epsilon that k-ary randomized response needs for the same worst-case error."


def response_distortion() -> str:
    """Sentence for randomized response at equal privacy."""
    return "Worst-case error of k-ary randomized response at the same level of privacy."


def worst_source_distortion() -> str:
    """Sentence for the distortion of the channel that was found."""
    return "Expected error of the channel found, under the worst distribution in the set."


def design(leakage: bool, constrained: bool) -> str:
    """Sentence for the optimum of a design."""
    what = "leakage" if leakage else "distortion"
    own = " and the user's own constraints" if constrained else ""
    return (
        f"No channel that meets the budget{own} has less {what} than the lower bound; the design "
        "attains the upper bound."
    )


def design_distortion(sources: int) -> str:
    """Sentence for the distortion of the channel that was designed."""
    which = "distribution" if sources == 1 else "worst distribution"
    return f"Expected error of the design under the {which} of the data, rounded up."


def price(what: str, key: str) -> str:
    """Sentence for a shadow price."""
    of = "the budget" if key == "budget" else "the entropy floor"
    return f"Change in the least {what} per unit, for a small increase in {of}."


def expected_distortion(whose: str) -> str:
    """Sentence for the average distortion."""
    return f"Expected error of the output {whose}."


def factor(nats: float, up: bool = True) -> str:
    """Return e^nats with four digits, rounded up, or down: what is at most this is not above it.

    Examples
    --------
    >>> import math
    >>> from cvxleak.report.sentences import factor
    >>> factor(0.1), factor(0.1, up=False), factor(math.log(3))
    ('1.106', '1.105', '3')
    """
    if nats >= 700:
        return f"e^{rounded(nats, up)}"
    value = math.exp(nats)
    nearest = f"{value:.4g}"
    # The exponential of log 3 misses 3 by a rounding error.
    return nearest if math.isclose(float(nearest), value, rel_tol=1e-12) else rounded(value, up)


def _added(delta: float) -> str:
    """Return a delta as its bound is shown, rounded up."""
    return amount(delta, ROUND_CEILING) if delta else "0"


def _level(nats: float, strict: bool) -> str:
    return f"{'more than' if strict else 'at least'} {factor(nats)}"


def _approximate(delta: float) -> str:
    return f" (with delta {delta:g})" if delta else ""
