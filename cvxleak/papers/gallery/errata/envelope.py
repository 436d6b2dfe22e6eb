"""Errata of ENVELOPE: errors, and a conjecture that is proved."""

from __future__ import annotations

import math

import numpy as np

from cvxleak.envelope import (
    failure_probability,
    pml_envelope,
    quantile_attack,
    response_attack,
    response_condition,
    response_envelope,
    response_event_envelope,
    response_lower_bound,
)
from cvxleak.measures import (
    binary_envelope,
    event_envelope,
    pml_left_quantile,
    pml_right_quantile,
)
from cvxleak.mechanisms import identity, randomized_response
from cvxleak.model import Prior
from cvxleak.papers.gallery.envelope import EXAMPLE_1, FAIR
from cvxleak.papers.gallery.errata.erratum import Erratum
from cvxleak.papers.gallery.item import Pair, pair

__all__ = ["ERRATA"]

PRIOR = Prior([0.2, 0.3, 0.5])


def _conjecture() -> list[Pair]:
    prior = Prior([0.1, 0.2, 0.2, 0.2, 0.3])
    grid = np.linspace(0.05, 0.95, 19)
    deltas = grid[np.asarray(response_condition(prior, 1.0, grid), dtype=bool)]
    lower, exact = (f(prior, 1.0, deltas) for f in (response_lower_bound, response_envelope))
    some = float(deltas[len(deltas) // 2])
    return [
        pair(
            "largest difference of bound and closed form, where the condition holds",
            float(np.abs(lower - exact).max()),
            0.0,
        ),
        pair(
            f"closed form at delta = {some:g}, and the certified program",
            pml_envelope(prior, randomized_response(5, 1.0), some),
            float(response_envelope(prior, 1.0, np.array([some]))[0]),
            tolerance=1e-8,
        ),
    ]


def _binary() -> list[Pair]:
    fair, response = Prior.uniform(2), randomized_response(3, 1.0)
    event, binary = (float(f(identity(2), fair, 0.9)) for f in (event_envelope, binary_envelope))
    return [
        pair("what Algorithm 1 computes, (26)", event, "0.105"),
        pair("(13)", binary, math.log(2)),
        pair("so they differ", event, binary, "ENVELOPE Alg 1, (13)", 1e-3),
        pair("Appendix C-B", float(response_event_envelope(PRIOR, 1.0, 0.9)), "0.0501"),
        pair("(13) there", float(binary_envelope(response, PRIOR, 0.9)), "0.3106"),
    ]


def _not_attained() -> list[Pair]:
    seen = EXAMPLE_1.then(quantile_attack(FAIR, EXAMPLE_1, 0.1, 0.001))
    left = float(pml_left_quantile(seen, FAIR, 0.1))
    right = float(pml_right_quantile(EXAMPLE_1, FAIR, 0.1))
    most = failure_probability(FAIR, EXAMPLE_1, math.log(4), strict=False)
    return [
        pair("e to the left quantile of Z for η = 0.001", math.exp(left), "3.972"),
        pair("e to the right quantile of Y", math.exp(right), 4.0),
        pair("so it is less", left, right, "ENVELOPE Thm 2, proof", 1e-3),
        pair("most that any Z leaks log 4 with, δ = 0.1", most, 0.1),
    ]


def _attack() -> list[Pair]:
    attack = response_attack(PRIOR, 1.0, 0.9)
    seen = randomized_response(3, 1.0).then(attack.channel)
    reached = float(pml_right_quantile(seen, PRIOR, 0.9))
    envelope = pml_envelope(PRIOR, randomized_response(3, 1.0), 0.9)
    return [
        pair("envelope for the prior (0.2, 0.3, 0.5), ε_r = 1 and δ = 0.9", envelope, "0.3799"),
        pair("quantile of Z", reached, "0.3757"),
        pair("so they are not equal", envelope, reached, "ENVELOPE Thm 5(iii), proof", 1e-3),
    ]


ERRATA = [
    Erratum(
        "ENVELOPE Alg 1, (13)",
        "Algorithm 1 computes the binary envelope (13)",
        "it computes the event envelope (26), (27). For a fair bit that is released without noise, "
        "and δ = 0.9, that is 0.105, and (13) is log 2. The formula of Appendix C-B for randomized "
        "response is that of the event envelope, too: for the prior (0.2, 0.3, 0.5), ε_r = 1 and "
        "δ = 0.9 it gives 0.0501, and (13) is 0.3106",
        "both by definition",
        _binary,
    ),
    Erratum(
        "ENVELOPE Thm 2, proof",
        "the constructed Z has a left quantile of at least the right quantile of Y",
        "it is less for every η, and comes near as η falls to 0, which is enough for the theorem. "
        "In Example 1 at δ = 0.1 it is log 3.972 for η = 0.001, and log 4 is the left quantile of "
        "no Z: none leaks as much with more probability than δ",
        "the construction, and the certified program",
        _not_attained,
    ),
    Erratum(
        "ENVELOPE Thm 5, conjecture",
        "the lower bound for randomized response is conjectured to be exact under a condition",
        "it is, and there is a closed form for every prior, with or without the condition",
        "proof on the page 'The envelope of randomized response'; certified programs",
        _conjecture,
    ),
    Erratum(
        "ENVELOPE Thm 5(iii), proof",
        "the envelope equals the quantile of the constructed Z",
        "it is at least that; above θ_2 the outputs themselves have a larger quantile. For the "
        "prior (0.2, 0.3, 0.5), ε_r = 1 and δ = 0.9 the quantile of Z is 0.3757, and the envelope "
        "0.3799",
        "the construction, and the certified program",
        _attack,
    ),
]
