"""Errata of SEQUENTIAL."""

from __future__ import annotations

import numpy as np
from scipy.special import entr

from cvxleak.iterative import (
    ReleaseLaws,
    distortion_blahut_arimoto,
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


def _constant() -> list[Pair]:
    mu = 0.1 / BIT
    kernel = np.zeros((2, 2, 2))
    kernel[..., 0] = 1.0
    own = ReleaseLaws.of(TABLE_1, kernel)
    moved = np.abs(release_update(TABLE_1, own, mu, mu) - kernel).max()
    value = release_functional(TABLE_1, kernel, own, mu, mu)
    least = release_lagrangian(TABLE_1, 0.1, 0.1, unit="bits").solve()
    return [
        pair("most that the update changes a constant release", moved, 0.0),
        pair("its objective", value, "0.4823"),
        pair("least", least, "0.3125"),
        pair("so it is not optimal", value, least.upper, "SEQUENTIAL Prop 1", 1e-3),
    ]


def _exponent() -> list[Pair]:
    mu, law = 0.1, TABLE_1.sum(axis=0)
    kernel = distortion_blahut_arimoto(TABLE_1, mu / BIT, mu / BIT).point
    q_1, q_2, q_3, _ = ReleaseLaws.of(TABLE_1, kernel)
    mean = np.einsum("rzx,rq->zxq", TABLE_1, 1 - np.eye(2)) / law[..., None]
    logs = np.log2(q_1) + np.log2(q_2) + np.log2(q_3)[:, None, :]
    theta = mu * (2 * information(law) - float(entr(law.sum(axis=1)).sum())) / BIT

    def functional(term: np.ndarray) -> float:
        parts = term - mu * logs + 2 * mu * np.log2(kernel)
        return float((law[..., None] * kernel * parts).sum()) + theta

    exact = objective(kernel, mu / BIT)
    return [
        pair("f with the exponent, and g, at Table II(b)", functional(mean), exact),
        pair("f with the power", functional(2**mean), exact, "SEQUENTIAL (12)", 1e-3),
    ]


def _saddle() -> list[Pair]:
    mu, flat = 0.1, np.full((2, 2, 2), 0.5)
    run = information_blahut_arimoto(TABLE_1, mu, mu, start=flat)
    other = np.array([[[0.0, 1.0], [1.0, 0.0]]] * 2)  # the value that X has not
    values = []
    for share in np.linspace(0, 0.05, 6):
        kernel = (1 - share) * flat + share * other
        own = ReleaseLaws.of(TABLE_1, kernel, "information")
        values.append(release_functional(TABLE_1, kernel, own, mu, mu))
    moved = np.abs(np.asarray(run.point) - flat).max()
    return [
        pair("most that Algorithm 2 changes a uniform release, multipliers 0.1", moved, 0.0),
        pair("its objective", run.value, "0.00019"),
        pair("by how much it is lower 5% of the way", values[0] - values[-1], "0.0004"),
        pair("most by which it rises on the way: not", max(np.diff(values).max(), 0.0), 0.0),
        pair("so it is no minimum", run.value, values[-1], "SEQUENTIAL IV-E", 1e-4),
    ]


def _inside() -> list[Pair]:
    # The first sweep of Algorithm 1 from uniform p and q; each q_2 from the p that is there.
    mu, law = 0.1 / BIT, TABLE_1.sum(axis=0)
    kernel = np.full((2, 2, 2), 0.5)
    laws = ReleaseLaws(np.full(2, 0.5), kernel, np.full((2, 2), 0.5))
    after, q_2 = release_update(TABLE_1, laws, mu, mu), np.empty((2, 2, 2))
    for z, x, r in np.ndindex(2, 2, 2):
        kernel[z, x, r] = after[z, x, r]
        q_2[z, x, r] = kernel[z, x, r] * law[z, x] / (kernel[:, x, r] @ law[:, x])
    least = float(q_2.sum(axis=0).min())
    whole = np.asarray(ReleaseLaws.of(TABLE_1, after).q_2).sum(axis=0)
    return [
        pair("sum of q_2(z|r̂,x) after a sweep as printed, multipliers 0.1", least, "0.7424"),
        pair("which should be", least, 1.0, "SEQUENTIAL Alg 1, 2", 1e-3),
        pair("after all of p", float(whole.min()), 1.0),
    ]


def _counted() -> list[Pair]:
    rng = np.random.default_rng(0)
    requests, outputs, earlier, datasets = 3, 2, 2, 4
    joint = rng.dirichlet(np.ones(24)).reshape(requests, earlier, datasets)
    law, kernel = joint.sum(axis=0), np.empty((earlier, datasets, outputs))
    laws = ReleaseLaws.of(joint, rng.dirichlet(np.ones(2), size=law.shape), "information")
    q_1, q_2, q_3, q_4 = map(np.asarray, laws)
    terms = 0
    for z, x, out in np.ndindex(earlier, datasets, outputs):
        divergence = 0.0
        for r in range(requests):
            given = joint[r, z, x] / law[z, x]
            divergence += given * np.log(given / q_4[r, out])
            terms += 1
        power = (q_1[out] * q_2[z, x, out]) ** 0.3 * q_3[z, out] ** 0.2
        kernel[z, x, out] = (power * np.exp(-divergence)) ** (1 / 0.5)
    kernel /= kernel.sum(axis=2, keepdims=True)
    off = np.abs(kernel - release_update(joint, laws, 0.3, 0.2)).max()
    size = outputs * earlier * datasets
    return [
        pair("most that plain loops and the update differ: not", off, 0.0),
        pair("terms of the divergences for each of |R̂||Z||X|, if |R| = 3", terms / size, 3.0),
        pair("as printed", terms / size, 1.0, "SEQUENTIAL VI, complexity", 0.1),
    ]


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
    with_z, without = (release_problem(j, 0.1).solve() for j in (TABLE_1, TABLE_1.sum(axis=1)))
    return [
        pair("P(R = 0 | z = 0, X = 0)", given[0], "0.106"),
        pair("P(R = 0 | z = 1, X = 0)", given[1], "0.216"),
        pair("both, if Z - X - R", given[0], given[1], "SEQUENTIAL Table I", 0.1),
        pair("least distortion at ε = 0.1 nats, no δ, without Z", without, "0.3398"),
        pair("with Z", with_z, "0.3116"),
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
        "SEQUENTIAL Prop 1",
        "a release that is its own update, (5), is optimal",
        "only if no probability in it is zero: an output that is never used stays so, and every "
        "constant release is its own update. For Table I and the multipliers (0.1, 0.1) the "
        "objective of one is 0.4823, and the least is 0.3125",
        "the update, and the convex program, certified",
        _constant,
    ),
    Erratum(
        "SEQUENTIAL (12)",
        "a power of 2 in the last term",
        "the exponent itself: the logarithm has been taken",
        "both, and the objective by definition",
        _exponent,
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
        "μ_1 + μ_2 > 0, since the update divides by it; and all of p is updated first, then the q. "
        "As printed, a q_2 contains rows of the old p: after the first sweep for Table I and "
        "multipliers 0.1, started from uniform p and q, one of them sums to 0.7424",
        "a sweep as printed",
        _inside,
    ),
    Erratum(
        "SEQUENTIAL IV-E",
        "Algorithm 2 ends in a local minimum",
        "in a stationary release, which need not be one. From q that are the same for all outputs "
        "it ends in a uniform release at once. For Table I and multipliers 0.1 that has the "
        "objective 0.00019, which falls all the way towards the release of the value that X has "
        "not, by 0.0004 on the first 5%",
        "a run, and the objective by Lemma 1",
        _saddle,
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
        "counting in plain loops",
        _counted,
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
        "need not hold for the table: in section III-A Z is irrelevant without the budget δ, and "
        "for Table I and ε = 0.1 nats it lowers the distortion from 0.3398 to 0.3116; in section "
        "VII μ_1 ≥ 1 forces a constant release, and for (1.05, 0) one gains 0.0085 nats",
        "the table; the convex program, a release, and a proved bound for the chain",
        _no_chain,
    ),
]
