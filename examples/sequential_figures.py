"""The tables and figures of a paper on sequential release under collusion, computed again.

Taylor, Vippathalla and Coon, "Adaptive Privacy of Sequential Data Releases Under Collusion": a bit
X, a request R that is likely not X, and an earlier answer Z (Table I); the answer's distortion (or
information) against what it tells alone, epsilon, and with the earlier one, delta. The paper counts
in bits.

Each function returns pairs (computed, printed), or, where the paper has a picture without numbers,
(computed one way, computed another way).
"""

import math

import numpy as np

from cvxleak.iterative import (
    distortion_blahut_arimoto,
    information_blahut_arimoto,
    multiplier_grid,
    release_search,
)
from cvxleak.problems import (
    release_lagrangian,
    release_problem,
    release_sequence,
    release_surface,
)

TABLE_1 = np.array([[[0.024, 0.228], [0.063, 0.203]], [[0.203, 0.013], [0.228, 0.038]]])
"""p(r,z,x)."""

BIT = math.log(2)

Pairs = list[tuple[float, float]]


def information(table: np.ndarray) -> float:
    independent = np.outer(table.sum(axis=1), table.sum(axis=0))
    return float((table * np.log(table / independent)).sum())


def objective(kernel: np.ndarray, mu: float) -> float:
    """E d + mu I(R̂;X) + mu I(R̂,Z;X), by definition."""
    distortion = np.einsum("rzx,zxq,rq->", TABLE_1, kernel, 1 - np.eye(2))
    law = TABLE_1.sum(axis=0)[:, :, None] * kernel
    together = np.moveaxis(law, 2, 0).reshape(4, 2)
    return float(distortion + mu * (information(law.sum(axis=0)) + information(together)))


def table_2() -> Pairs:
    """(a) and (b) as printed; (c) as it should be."""
    pairs: Pairs = []
    printed = {0.01: [[0, 1], [0, 1]], 0.1: [[0.041, 0.975], [0.143, 0.887]]}
    for mu, kernel in printed.items():
        run = distortion_blahut_arimoto(TABLE_1, mu / BIT, mu / BIT)
        computed = run.point[:, :, 0].round(3)
        print(f"Table II, multipliers {mu}: p(0|z,x) =", computed.tolist())
        pairs += zip(computed.ravel().tolist(), np.ravel(kernel).tolist(), strict=True)

    mu = 5 / BIT
    table = np.array([[[0.567, 0.433], [0.593, 0.407]], [[0.367, 0.630], [0.381, 0.619]]])
    noisy = objective(table / table.sum(axis=2, keepdims=True), mu)
    run = distortion_blahut_arimoto(TABLE_1, mu, mu, tol=1e-8)
    bound = release_lagrangian(TABLE_1, 5, 5, unit="bits").solve()
    print(
        f"Table II (c): the printed kernel is worth {noisy:.5f}; the optimum, a constant, "
        f"{bound.lower:.9f} to {bound.upper:.9f}"
    )
    return [*pairs, (noisy, 0.50883), (run.value, bound.upper), (bound.witness[..., 0].min(), 1.0)]


def figure_3(points: int = 6) -> Pairs:
    """D(epsilon, delta): Algorithm 3's grid against the certified surface."""
    told = information(TABLE_1.sum(axis=0))
    epsilon = np.linspace(0, 0.9, points) * BIT
    print("Fig. 3: distortion for epsilon down, delta across, in bits")
    delta = np.linspace(0.1, 1, points) * BIT
    print("       " + "".join(f"{d / BIT:8.2f}" for d in delta))
    for e, row in zip(epsilon, release_surface(TABLE_1, epsilon, delta), strict=True):
        cells = ["       -" if bound is None else f"{bound.upper:8.4f}" for bound in row]
        print(f"{e / BIT:7.2f}" + "".join(cells))
    mus = [0.0, 0.05 / BIT, 0.2 / BIT]
    pairs: Pairs = []
    for point in multiplier_grid(TABLE_1, mus, mus):
        # The point's own budgets, which it uses up; a float more, so that it is feasible.
        e, d = point.epsilon * (1 + 1e-12), max(point.delta, told) * (1 + 1e-12)
        bound = release_problem(TABLE_1, min(e, d), d).solve()
        pairs.append((point.value, bound.upper))
    return pairs


def figure_4() -> Pairs:
    """Convergence of Algorithm 1: small multipliers at once, large ones slowly."""
    pairs: Pairs = []
    for mu in (0.01, 0.1, 5.0):
        run = distortion_blahut_arimoto(TABLE_1, mu / BIT, mu / BIT, tol=1e-8)
        optimum = release_lagrangian(TABLE_1, mu, mu, unit="bits").solve()
        excess = run.history["objective"] - optimum.lower
        print(
            f"Fig. 4, multipliers {mu}: within 1e-4 after {int(np.argmax(excess < 1e-4))} "
            f"updates, gap 1e-8 after {run.iterations}"
        )
        pairs.append((run.value, optimum.upper))
    return pairs


def figure_5() -> Pairs:
    """I(epsilon, delta) from below, as in the figure, beside a proved bound from above."""
    pairs: Pairs = []
    told = information(TABLE_1.sum(axis=0))
    for epsilon, room in [(0.2, 0.2), (0.5, 0.6)]:
        delta = told + room
        curve = release_search(TABLE_1, epsilon, delta, utility="information", rng=0)
        two, four = (
            release_problem(TABLE_1, epsilon, delta, "information", outputs=n).solve(
                tol=1e-4, restarts=2, rng=0
            )
            for n in (2, 4)
        )
        print(
            f"Fig. 5, epsilon {epsilon / BIT:.3f}, delta {delta / BIT:.3f} bits: Algorithms 2 and "
            f"3 {curve.value / BIT:.4f}, two outputs {two.lower / BIT:.4f}, four outputs "
            f"{four.lower / BIT:.4f}, no release more than {four.upper / BIT:.4f} bits"
        )
        pairs += [(four.lower, four.upper), (max(curve.value, two.lower), two.lower)]
    return pairs


def progressive_networks() -> Pairs:
    """Objective (13): from mu_1 = 1 on nothing is kept, but only if Z - X - R."""
    law = TABLE_1.sum(axis=0)
    given_x = TABLE_1.sum(axis=1) / law.sum(axis=0)  # p(r|x)
    markov = law * given_x[:, None, :]
    pairs: Pairs = []
    for name, joint in (("Z - X - R", markov), ("Table I", TABLE_1)):
        run = information_blahut_arimoto(joint, 1.05, 0.0, rng=0)
        bound = release_lagrangian(joint, 1.05, 0.0, "information", outputs=4).solve(
            tol=1e-5, restarts=2, rng=0
        )
        print(
            f"mu = (1.05, 0), {name}: Algorithm 2 gains {-run.value:.6f} nats; "
            f"the most there is, {bound.lower:.6f} to {bound.upper:.6f}"
        )
        pairs += [(bound.lower, bound.upper)]
    # With mu_2 = 0 and no earlier outputs: the information bottleneck, beta = 1 / mu_1.
    alone = TABLE_1.sum(axis=1)[:, None, :]
    run = information_blahut_arimoto(alone, 0.2, 0.0, rng=0)
    bound = release_lagrangian(alone, 0.2, 0.0, "information").solve(tol=1e-6, rng=0)
    print(f"information bottleneck, beta = 5: {-run.value:.6f}, at most {bound.upper:.6f} nats")
    return [*pairs, (-run.value, bound.upper)]


def the_same_again() -> Pairs:
    """The same request with equal budgets: the same value is released (section III)."""
    tell = [[0.9, 0.1], [0.2, 0.8]]
    first, second = release_sequence([0.5, 0.5], [tell, tell], [0.1, 0.1], [0.1, 0.3])
    same = float(min(second.witness[z, :, z].min() for z in (0, 1)))
    print(f"the same request again gets the old answer with probability {same:.6f}")
    return [(second.upper, first.upper), (same, 1.0)]


def main() -> Pairs:
    """Print all of it; return all pairs."""
    parts = (table_2, figure_3, figure_4, figure_5, progressive_networks, the_same_again)
    return [pair for part in parts for pair in part()]


if __name__ == "__main__":
    main()
