"""Errata of ENVELOPE: errors, and open questions that have been answered."""

from __future__ import annotations

import math

import numpy as np

from cvxleak.envelope import (
    pml_envelope,
    response_condition,
    response_envelope,
    response_lower_bound,
)
from cvxleak.measures import binary_envelope, event_envelope
from cvxleak.mechanisms import identity, randomized_response
from cvxleak.model import Prior
from cvxleak.papers.gallery.errata.erratum import Erratum
from cvxleak.papers.gallery.item import Pair, pair

__all__ = ["ERRATA"]


def _program() -> list[Pair]:
    channel = np.random.default_rng(0).dirichlet(np.ones(40), size=30)
    bound = pml_envelope(Prior.uniform(30), channel, 0.2)
    return [
        pair(
            "gap of the envelope of a random 30 by 40 channel",
            bound.upper - bound.lower,
            0.0,
            tolerance=1e-6,
        )
    ]


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


def _composition() -> list[Pair]:
    k, delta = 4, 0.5
    both = np.full((k, k), delta / (k * (k - 1)))
    np.fill_diagonal(both, (1 - delta) / k)
    prior = Prior(both.ravel())
    together = pml_envelope(prior, identity(k * k), delta)
    parts = [
        pml_envelope(prior, np.kron(*pair_of), delta / 2)
        for pair_of in ((np.eye(k), np.ones((k, 1))), (np.ones((k, 1)), np.eye(k)))
    ]
    total = parts[0].upper + parts[1].upper
    return [
        pair("envelope of both answers, k = 4 and δ = 0.5", together, "3.178"),
        pair("log(k (k − 1)/δ)", together, math.log(k * (k - 1) / delta)),
        pair("envelopes of the two at δ/2, together", total, "2.773"),
        pair("2 log k", total, 2 * math.log(k)),
        pair("so they do not compose", together, total, "ENVELOPE VII", 1e-3),
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
        "ENVELOPE IV",
        "computing the envelope is challenging in general",
        "it is the root of a linear program's value: merge the outcomes by the input that attains "
        "their leakage",
        "proof on the page 'The envelope of randomized response'; a certificate for each value",
        _program,
    ),
    Erratum(
        "ENVELOPE Thm 5, conjecture",
        "the lower bound for randomized response is conjectured to be exact under a condition",
        "it is, and there is a closed form for every prior, with or without the condition",
        "proof on the page 'The envelope of randomized response'; certified programs",
        _conjecture,
    ),
    Erratum(
        "ENVELOPE VII",
        "composition beyond the bounds by maximal leakage is left open",
        "one natural conjecture is false for every δ < 1: that the envelope of two releases at δ "
        "is at most the sum of their envelopes at δ/2. Example: the secret is a pair of numbers "
        "from 1 to k, which are equal with probability 1 − δ. All equal pairs have the same "
        "probability, and so have all unequal ones. One release is the first number, the other "
        "the second. The envelope of both together is at least log(k (k − 1)/δ), and the sum is "
        "2 log k, which is less if δ < 1 − 1/k: for k = 4 and δ = 0.5 they are 3.178 and 2.773",
        "proof on the page 'The envelope of randomized response'; certified programs",
        _composition,
    ),
]
