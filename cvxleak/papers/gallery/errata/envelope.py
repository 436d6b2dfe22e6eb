"""Errata of ENVELOPE: errors, and a conjecture that is proved."""

from __future__ import annotations

import math

import numpy as np

from cvxleak.envelope import (
    pml_envelope,
    response_attack,
    response_condition,
    response_envelope,
    response_lower_bound,
)
from cvxleak.measures import binary_envelope, event_envelope, pml_right_quantile
from cvxleak.mechanisms import identity, randomized_response
from cvxleak.model import Prior
from cvxleak.papers.gallery.errata.erratum import Erratum
from cvxleak.papers.gallery.item import Pair, pair

__all__ = ["ERRATA"]


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
    fair = Prior.uniform(2)
    event, binary = (float(f(identity(2), fair, 0.9)) for f in (event_envelope, binary_envelope))
    return [
        pair("what Algorithm 1 computes, (26)", event, "0.105"),
        pair("(13)", binary, math.log(2)),
        pair("so they differ", event, binary, "ENVELOPE Alg 1, (13)", 1e-3),
    ]


def _attack() -> list[Pair]:
    prior, delta = Prior([0.2, 0.3, 0.5]), 0.9
    attack = response_attack(prior, 1.0, delta)
    seen = randomized_response(3, 1.0).then(attack.channel)
    reached = float(pml_right_quantile(seen, prior, delta))
    envelope = pml_envelope(prior, randomized_response(3, 1.0), delta)
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
        "and δ = 0.9, that is 0.105, and (13) is log 2",
        "both by definition",
        _binary,
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
