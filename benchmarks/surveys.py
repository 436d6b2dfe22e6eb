"""Simulated surveys, randomized and read back: how often the intervals hold, and how wide they are.

``python -m benchmarks surveys`` prints a small table; ``python -m benchmarks.surveys`` writes that
of 10,000 surveys into docs/tutorials/survey.md (some ten minutes).
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from benchmarks._pages import replace_section, table
from cvxleak import Channel
from cvxleak.mechanisms import (
    FrequencyEstimate,
    binary_symmetric,
    estimate_frequencies,
    randomize,
    randomized_response,
    truncated_geometric,
)

LIMIT = 60.0
PAGE = "tutorials/survey.md"
CONFIDENCE = 0.95
RESPONDENTS = (20, 100, 500, 2000)
"""Of the surveys, in turn."""

Rng = np.random.Generator


def bits(k: int, epsilon: float) -> Channel:
    """Every respondent publishes a bit for each answer, flipped independently of the others."""
    kept = 1 / (1 + math.exp(-epsilon / 2))
    words = list(product((0, 1), repeat=k))
    rows = [
        [math.prod(kept if word[i] == (i == x) else 1 - kept for i in range(k)) for word in words]
        for x in range(k)
    ]
    return Channel(rows, outputs=words)


def channels() -> dict[str, Channel]:
    return {
        "Warner, 3 of 4": binary_symmetric(0.25),
        "randomized response, 5 answers": randomized_response(5, 1.0),
        "geometric noise, 0 to 4": truncated_geometric(4, 1.0),
        "a bit for each of 4 answers": bits(4, 2.0),
        "random, 3 x 6": Channel(np.random.default_rng(0).dirichlet(np.ones(6), 3)),
    }


def survey(
    channel: Channel, respondents: int, rng: Rng, fixed: bool
) -> tuple[NDArray[np.float64], FrequencyEstimate]:
    """Return the truth and what is read back.

    The truth is the distribution that answers are drawn from, or their shares if they are `fixed`.
    """
    k = len(channel.inputs)
    # Distributions on few answers too, where intervals meet the border.
    truth = rng.dirichlet(np.full(k, rng.choice([0.1, 1.0])))
    answers = rng.choice(k, respondents, p=truth)
    if fixed:
        truth = np.bincount(answers, minlength=k) / respondents
    published = randomize([channel.inputs[x] for x in answers], channel, rng)
    counts = {output: published.count(output) for output in set(published)}
    return truth, estimate_frequencies(channel, counts, CONFIDENCE)


def coverage(surveys: int) -> str:
    """Count how often all intervals hold; `surveys` of each channel, half of either kind."""
    rows, held, wide = [], [0, 0], 0
    for number, (name, channel) in enumerate(channels().items()):
        rng, found, widths, normal = np.random.default_rng(number), [0, 0], [], []
        quantile = norm.isf((1 - CONFIDENCE) / (2 * len(channel.inputs)))
        for turn in range(surveys):
            fixed, respondents = turn % 2 == 1, RESPONDENTS[turn // 2 % len(RESPONDENTS)]
            truth, estimate = survey(channel, respondents, rng, fixed)
            assert estimate.lower is not None
            assert estimate.upper is not None
            found[fixed] += bool(((estimate.lower <= truth) & (truth <= estimate.upper)).all())
            if respondents == RESPONDENTS[-1] and estimate.fits:
                widths.append((estimate.upper - estimate.lower).mean())
                ends = estimate.frequencies + np.outer(
                    [-quantile, quantile], estimate.standard_errors
                )
                normal.append(np.diff(np.clip(ends, 0, 1), axis=0).mean())
        held = [old + new for old, new in zip(held, found, strict=True)]
        wide += surveys
        shown = [f"{number} of {surveys // 2}" for number in found]
        rows.append([name, *shown, f"{np.mean(widths):.3f}", f"{np.mean(normal):.3f}"])
    rows.append(["all", *(f"{number} of {wide // 2}" for number in held), "", ""])
    heads = ["channel", "covered the distribution", "covered the respondents"]
    return table([*heads, f"width at {RESPONDENTS[-1]}", "normal width"], rows)


def main(limit: float = LIMIT) -> None:
    print(coverage(80))


def write() -> None:
    replace_section(PAGE, "coverage", coverage(2000))


if __name__ == "__main__":
    write()
