"""Errata of SEQUENTIAL."""

from __future__ import annotations

import numpy as np

from cvxleak.iterative import (
    ReleaseLaws,
    information_blahut_arimoto,
    release_functional,
    release_update,
)
from cvxleak.papers.gallery.errata.erratum import Erratum
from cvxleak.papers.gallery.item import Pair, pair
from cvxleak.papers.gallery.sequential import (
    BIT,
    TABLE_1,
    TABLE_2C,
    information,
    markov_law,
    objective,
)
from cvxleak.release import release_lagrangian, release_problem

__all__ = ["ERRATA"]


def _normalizer() -> list[Pair]:
    rng = np.random.default_rng(0)
    q_1, q_2, q_3 = rng.dirichlet(np.ones(2)), rng.uniform(0.1, 0.9, 2), rng.dirichlet(np.ones(2))
    cost, (mu_1, mu_2) = np.array([0.2, 0.8]), (0.3, 0.7)

    def terms(power: float) -> np.ndarray:
        return (q_1**mu_1 * q_2**power * q_3**mu_2 * 2**-cost) ** (1 / (mu_1 + mu_2))

    return [
        pair(
            "sum of the kernel with the exponent μ_1 in both",
            (terms(mu_1) / terms(mu_1).sum()).sum(),
            1.0,
        ),
        pair(
            "with μ_2 in the normalizer",
            (terms(mu_1) / terms(mu_2).sum()).sum(),
            1.0,
            "SEQUENTIAL Alg 1, line 5",
            1e-3,
        ),
    ]


def _unused() -> list[Pair]:
    at = "ε = 0.1 and δ = 0.9 bits"
    best = release_problem(TABLE_1, 0.1, 0.9, unit="bits").solve()
    joint = TABLE_1.sum(axis=0)[..., None] * best.witness
    told = information(np.moveaxis(joint, 2, 0).reshape(-1, joint.shape[1])) / BIT
    enough = release_problem(TABLE_1, 0.1, 0.485, unit="bits").solve()
    return [
        pair(f"what all releases tell, {at}", told, "0.484"),
        pair("distortion there, and with δ = 0.485 bits", best, enough.upper, None, 1e-6),
        pair(
            "bits that the earlier release has told",
            information(TABLE_1.sum(axis=0)) / BIT,
            "0.0028",
        ),
    ]


def _not_converged() -> list[Pair]:
    mu = 5 / BIT
    printed = objective(TABLE_2C / TABLE_2C.sum(axis=2, keepdims=True), mu)
    least = release_lagrangian(TABLE_1, 5, 5, unit="bits").solve()
    return [
        pair("objective of the printed kernel", printed, "0.50883"),
        pair("least", least, "0.49581"),
        pair(
            "its constant output has probability",
            float(least.witness[..., 0].min()),
            1.0,
            None,
            1e-6,
        ),
        pair("smallest row sum of the printed kernel", float(TABLE_2C.sum(axis=2).min()), "0.997"),
        pair("so it is not converged", printed, least.upper, "SEQUENTIAL Table II(c)", 1e-3),
    ]


def _no_chain() -> list[Pair]:
    given = TABLE_1[0, :, 0] / TABLE_1[:, :, 0].sum(axis=0)
    markov = release_lagrangian(markov_law(), 1.05, 0.0, "information", outputs=4).solve(
        tol=1e-5, restarts=2, rng=0
    )
    gain = -information_blahut_arimoto(TABLE_1, 1.05, 0.0, rng=0).value
    return [
        pair("P(R = 0 | z = 0, X = 0)", given[0], "0.106"),
        pair("P(R = 0 | z = 1, X = 0)", given[1], "0.216"),
        pair("both, if Z - X - R", given[0], given[1], "SEQUENTIAL Table I", 0.1),
        pair("the most that can be gained at μ = (1.05, 0) if Z - X - R", markov, 0.0, None, 1e-5),
        pair("gained with Table I", gain, "0.0085"),
    ]


def _consistent() -> list[Pair]:
    # Two updates of Algorithm 1 from uniform q, then f with the q before and after the second.
    mu = 0.1 / BIT
    laws = ReleaseLaws(np.full(2, 0.5), np.full((2, 2, 2), 0.5), np.full((2, 2), 0.5))
    before = ReleaseLaws.of(TABLE_1, release_update(TABLE_1, laws, mu, mu))
    kernel = release_update(TABLE_1, before, mu, mu)
    after = ReleaseLaws.of(TABLE_1, kernel)
    exact = objective(kernel, mu)
    return [
        pair(
            "g(p^t), and f of p^t and the q after it",
            release_functional(TABLE_1, kernel, after, mu, mu),
            exact,
        ),
        pair(
            "and f of p^t and the q before it",
            release_functional(TABLE_1, kernel, before, mu, mu),
            exact,
            "SEQUENTIAL Remark 3",
            1e-6,
        ),
    ]


ERRATA = [
    Erratum(
        "SEQUENTIAL (12)",
        "a power of 2 in the last term",
        "the exponent itself: the logarithm has been taken",
        "the line before it",
    ),
    Erratum(
        "SEQUENTIAL Alg 1, line 5",
        "q_2 to the power μ_2 in the normalizer",
        "to the power μ_1, as in line 6; otherwise the kernel does not sum to one",
        "the sums",
        _normalizer,
    ),
    Erratum(
        "SEQUENTIAL Alg 1, 2",
        "μ_1, μ_2 ≥ 0, and the q are updated inside the loop over z, x and r̂",
        "μ_1 + μ_2 > 0, since the update divides by it; and all of p is updated first, then the q",
        "the formula",
    ),
    Erratum(
        "SEQUENTIAL Remark 3",
        "after each update p^t and the q^t are consistent, so that g(p^t) = f(p^t; q^t)",
        "p^t is consistent with q^(t+1), which is computed from it: g(p^t) = f(p^t; q^(t+1)), and "
        "f(p^t; q^t) is larger until the method has converged",
        "two updates, by definition",
        _consistent,
    ),
    Erratum(
        "SEQUENTIAL VI, complexity",
        "an update costs O(|R̂||Z||X|) for each start",
        "for Algorithm 2 it is |R| times that, since the divergence in its lines 6 and 7 is a sum "
        "over r and changes with every update; Algorithm 1 needs the sum over r only once",
        "counting",
    ),
    Erratum(
        "SEQUENTIAL Alg 3, line 10",
        "a search for the multipliers, or the mixture, whose release reveals exactly ε and δ",
        "ε and δ are upper limits, and the best release may not use one of them fully: for "
        "Table I, ε = 0.1 and δ = 0.9 bits, all releases together reveal 0.484 bits. Below "
        "δ = I(Z;X), here 0.0028 bits, no release meets the budget",
        "the convex program, certified",
        _unused,
    ),
    Erratum(
        "SEQUENTIAL Table II(c)",
        "a noisy release for the multipliers (5, 5)",
        "not converged: its objective is 0.50883 after its rows (one sums to 0.997) are scaled "
        "to 1, and the least is 0.49581, for a constant release",
        "the convex program, certified",
        _not_converged,
    ),
    Erratum(
        "SEQUENTIAL Table I",
        "an example of the scheme, with Z as the earlier release",
        "the scheme cannot produce it: earlier releases depend on the data alone, so Z - X - R "
        "is a chain, but P(R = 0 | z, X = 0) is 0.106 or 0.216 by z. What follows from the chain "
        "need not hold for the table: in section VII μ_1 ≥ 1 forces a constant release, and for "
        "Table I and (1.05, 0) a release gains 0.0085 nats",
        "the table; a release, and a proved bound for the chain",
        _no_chain,
    ),
]
