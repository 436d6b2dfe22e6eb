"""What is printed in LEAKAGE and is not so."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import entr

from cvxleak.audit import record_leakage
from cvxleak.iterative import blahut_arimoto
from cvxleak.measures import local_dp_epsilon, mutual_information
from cvxleak.mechanisms import exponential, laplace_threshold, symmetric_capacity
from cvxleak.model import Mechanism, RecordSpace
from cvxleak.papers.algorithms import (
    adaptive_penalty,
    alternating_leakage,
    conditional_gradient_ascent,
    exponentiated_gradient,
    marginal_blahut_arimoto,
    project_to_entropy,
)
from cvxleak.papers.gallery.errata.erratum import Erratum
from cvxleak.papers.gallery.item import Pair, pair
from cvxleak.papers.gallery.parity import noisy_parity, parity_leakage
from cvxleak.queries import modular_sum, parity

__all__ = ["ERRATA"]

LOG2 = math.log(2)
STEP = 1e-6


def _laws(
    seed: int, values: int = 2, contexts: int = 4, outputs: int = 3
) -> tuple[np.ndarray, ...]:
    """Return a record's law, the others' laws given it, and the rows, drawn at random."""
    rng = np.random.default_rng(seed)
    return (
        rng.dirichlet(np.ones(values) * 3),
        rng.dirichlet(np.ones(contexts), size=values),
        rng.dirichlet(np.full(outputs, 0.7), size=(values, contexts)),
    )


def _information(p: np.ndarray, conditional: np.ndarray, rows: np.ndarray) -> float:
    """I(X_i;Y) by its formula, also off the simplex, where derivatives are taken."""
    given = np.einsum("am,amy->ay", conditional, rows)
    return float((p[:, None] * given * np.log(given / (p @ given))).sum())


def _gradient_conditional() -> list[Pair]:
    p, conditional, rows = _laws(0)
    given = np.einsum("am,amy->ay", conditional, rows)
    output = p @ given
    moved = conditional.copy()
    moved[0, 1] += STEP
    back = conditional.copy()
    back[0, 1] -= STEP
    slope = (_information(p, moved, rows) - _information(p, back, rows)) / (2 * STEP)
    formula = float(p[0] * (rows[0, 1] * np.log(given[0] / output)).sum())
    printed = formula + p[0] - p[0] ** 2 * float((given[0] * rows[0, 1] / output).sum())
    return [
        pair("slope by differences, and the formula", slope, formula, tolerance=1e-7),
        pair("slope by differences, and (37)", slope, printed, "LEAKAGE (37)", 1e-3),
    ]


def _gradient_marginal() -> list[Pair]:
    p, conditional, rows = _laws(1)
    given = np.einsum("am,amy->ay", conditional, rows)
    step = STEP * np.array([1.0, 0.0])
    slope = _information(p + step, conditional, rows) - _information(p - step, conditional, rows)
    first = float((given[0] * np.log(given[0] / (p @ given))).sum())
    own = p[0] * float((given[0] * (1 / p[0] - given[0] / (p @ given))).sum())
    others = -float(given[0].sum()) + p[0] * float((given[0] ** 2 / (p @ given)).sum())
    # (38) at p_0: its own term, p_0 times the slope of the logarithm, and the other records' terms.
    slope_of_logs = own - 1
    return [
        pair(
            "slope by differences, with plus",
            slope / (2 * STEP),
            first + slope_of_logs + others,
            tolerance=1e-6,
        ),
        pair(
            "with minus, as printed",
            slope / (2 * STEP),
            first + slope_of_logs - others,
            "LEAKAGE (39)",
            1e-3,
        ),
    ]


def _row_floor() -> list[Pair]:
    p, conditional, _ = _laws(2)
    entropies = entr(conditional).sum(axis=1)
    b = float(entr(p).sum() + p @ entropies)
    over = (b - float(entr(p).sum())) / p[0]
    return [
        pair(
            "the row's own entropy, and the sum over l ≠ k",
            over - p[1] / p[0] * entropies[1],
            float(entropies[0]),
        ),
        pair(
            "and the sum over all l",
            over - float(p @ entropies) / p[0],
            float(entropies[0]),
            "LEAKAGE (18)",
            1e-3,
        ),
    ]


def _table() -> list[Pair]:
    mechanism = Mechanism(parity(4), laplace_threshold(1.0))
    plateau = [
        pair(f"Laplace, b = {b:g}", record_leakage(mechanism, b), "0.0795")
        for b in (0.5, 1, 1.5, 2)
    ]
    exact = record_leakage(noisy_parity(4, 0.3033), 2.495, tol=1e-6)
    return [
        *plateau,
        pair("flip 0.3033, b = 2.495", exact, "0.0393"),
        pair("where the plateau ends", 3 * LOG2, "2.079"),
        pair("Laplace, b = 2, printed", record_leakage(mechanism, 2.0), "0.009", "LEAKAGE Table 3"),
    ]


def _table_exponential() -> list[Pair]:
    flip = 1 / (math.exp(0.5) + 1)
    bound = record_leakage(Mechanism(parity(4), exponential(np.eye(2), 1.0, 1.0)), 0.0)
    return [
        pair("L(0)", bound, "0.0303"),
        pair("flip", flip, "0.37754"),
        pair("printed", bound, "0.032", "LEAKAGE Table 3, exponential"),
    ]


def _caption() -> list[Pair]:
    bound = record_leakage(noisy_parity(4, 0.3), 0.0)
    return [
        pair("L(0)", bound, "0.08228"),
        pair("printed", bound, "0.0931", "LEAKAGE Fig. 4 caption, capacity"),
    ]


def _rises() -> list[Pair]:
    return [
        pair(f"Laplace, epsilon {e:g}", symmetric_capacity(2, math.exp(-e / 2) / 2), printed)
        for e, printed in ((0.5, "0.0247"), (1.0, "0.0795"), (2.0, "0.2158"))
    ]


def _plateau() -> list[Pair]:
    return [
        pair(
            f"n = {n}, flip 0.1, b = (n - 1) log 2",
            record_leakage(noisy_parity(n, 0.1), (n - 1) * LOG2),
            "0.3681",
        )
        for n in (4, 5, 6)
    ]


def _global() -> list[Pair]:
    q = np.random.default_rng(242).dirichlet(np.full(3, 0.5), size=4)
    mechanism = Mechanism.from_channel(RecordSpace.binary(2), q)
    cube = q.reshape(2, 2, 3)
    best = max(
        blahut_arimoto(rows[[0, 1], [a, b]]).value
        for rows in (cube, cube.swapaxes(0, 1))
        for a in (0, 1)
        for b in (0, 1)
    )
    reached = alternating_leakage(mechanism, 0.0, start="uniform", tol=1e-12).value
    return [
        pair("Algorithm 1, b = 0", reached, "0.3016"),
        pair("C_1 by enumeration", best, "0.3076"),
        pair("so it is not global", reached, best, "LEAKAGE Thm 4(2)", 1e-3),
    ]


def _uniform_start() -> list[Pair]:
    edge = 2.5 * LOG2
    mechanism = noisy_parity(4, 0.2)
    below, above = (alternating_leakage(mechanism, edge + d).value for d in (-0.05, 0.05))
    return [
        pair("n = 4, flip 0.2, just above (n + 1)/2 log 2", above, 0.0),
        pair("just below", below, "0.1364"),
        pair("the leakage just above", parity_leakage(4, 0.2, edge + 0.05), "0.1927"),
    ]


def _convex() -> list[Pair]:
    rng = np.random.default_rng(3)
    space, worst = RecordSpace.binary(2), 0.0
    for _ in range(10):
        one, two = rng.dirichlet(np.ones(2), size=(2, 4))
        ends = [record_leakage(Mechanism.from_channel(space, q), 0.9).upper for q in (one, two)]
        middle = record_leakage(Mechanism.from_channel(space, (one + two) / 2), 0.9).lower
        worst = max(worst, middle - sum(ends) / 2)
    return [pair("most by which a midpoint exceeds the chord, 10 pairs of channels", worst, 0.0)]


def _parity_design() -> tuple[np.ndarray, np.ndarray]:
    odd = np.indices((2, 2, 2)).sum(axis=0) % 2
    return np.full((2, 2, 2), 1 / 8), 1.0 - np.eye(2)[odd]


def _slack() -> list[Pair]:
    uniform, error = _parity_design()
    run = adaptive_penalty(uniform, uniform, error, 0.9, max_penalties=5, max_steps=20)
    return [pair("rounds used of 5 allowed, with a slack budget", run.iterations, 5.0)]


def _armijo() -> list[Pair]:
    uniform, error = _parity_design()
    near = np.clip(1 - error, 1e-9, 1 - 1e-9)
    stuck = exponentiated_gradient(uniform, near, uniform, error, 0.2, 1.0, decrease="norm")
    free = exponentiated_gradient(
        uniform, near, uniform, error, 0.2, 1.0, decrease="variance", max_iterations=20
    )
    return [
        pair("steps with the printed test", stuck.iterations, 0.0),
        pair("steps with the step's own decrease: some", float(free.iterations > 0), 1.0),
    ]


def _zero_mass() -> list[Pair]:
    p, conditional, rows = _laws(4, values=3)
    p = np.array([p[0] / (p[0] + p[1]), p[1] / (p[0] + p[1]), 0.0])
    one, two = (
        mutual_information(p, np.einsum("am,amy->ay", np.vstack([conditional[:2], e]), rows))
        for e in np.eye(4)[:2]
    )
    return [pair("I with one unit vector in the row of mass zero, and with another", one, two)]


def _sensitivity() -> list[Pair]:
    value = modular_sum(4, 3).sensitivity
    return [
        pair("sum of 4 bits mod 3, as integers", value, 2.0),
        pair("printed", value, 1.0, "LEAKAGE 4.1"),
    ]


def _frozen() -> list[Pair]:
    p, conditional, rows = _laws(11)
    before = entr(conditional).sum(axis=1)
    b = float(entr(p).sum() + p @ before)
    run = conditional_gradient_ascent(p, conditional, rows, b)
    after = entr(run.point).sum(axis=1)
    rng = np.random.default_rng(0)
    same = best = run.value
    for _ in range(40):
        start = rng.dirichlet(np.full(4, 0.5), size=2)
        if float(entr(p).sum() + p @ entr(start).sum(axis=1)) >= b:
            best = max(best, conditional_gradient_ascent(p, start, rows, b).value)
        split = [project_to_entropy(v, h).point for v, h in zip(start, before, strict=True)]
        same = max(same, conditional_gradient_ascent(p, split, rows, b).value)
    return [
        pair("entropy of the first row, before and after", after[0], before[0], tolerance=1e-7),
        pair("entropy of the second row", after[1], before[1], tolerance=1e-7),
        pair("the most that was reached with these entropies of the rows", same, "0.3936"),
        pair("with others, of the same H(X)", best, "0.4011"),
    ]


def _short_of_floor() -> list[Pair]:
    rows = np.array([[[0.6, 0.4], [0.6, 0.4]], [[0.4, 0.6], [0.4, 0.6]]])
    run = marginal_blahut_arimoto([0.5, 0.5], [[1, 0], [0.5, 0.5]], rows, 1.09, tol=1e-3)
    tied = project_to_entropy([0.4, 0.4, 0.2], 0.5)
    return [
        pair(
            "H(X) − b where Algorithm 2 stops, negative", float(run.history["slack"][-1] < 0), 1.0
        ),
        pair("entropy that Algorithm 5 ends with for (.4, .4, .2) and target .5", tied.value, LOG2),
    ]


def _levels() -> list[Pair]:
    laplace, expo = laplace_threshold(1.0), exponential(np.eye(2), 1.0, 1.0)
    return [
        pair("exponential at nominal epsilon 1", local_dp_epsilon(expo), "0.5"),
        pair("thresholded Laplace at nominal epsilon 1", local_dp_epsilon(laplace), "0.8318"),
        pair(
            "flip of either at exact level 1/2: exponential at 1, Laplace at 2 log((1 + √e)/2)",
            laplace_threshold(2 * math.log((1 + math.exp(0.5)) / 2)).matrix[0, 1],
            float(expo.matrix[0, 1]),
        ),
    ]


def _softplus() -> list[Pair]:
    return [pair("(softplus 0)^2", math.log1p(1.0) ** 2, "0.4805")]


ERRATA = [
    Erratum(
        "LEAKAGE (18)",
        "the sum runs over all rows",
        "over the rows other than k, as in line 9 of Algorithm 3: at H(X) = b that gives the row's "
        "own entropy, and the printed sum gives 0",
        "both formulas at a random law",
        _row_floor,
    ),
    Erratum(
        "LEAKAGE (37)",
        "two terms next to the sum over y",
        "the derivative is p(x_i) Σ_y q(y|x) log(p(y|x_i)/p(y)): what the row itself contributes "
        "and what the other rows contribute through p(y) cancel",
        "differences of I",
        _gradient_conditional,
    ),
    Erratum(
        "LEAKAGE (39)",
        "the last term has a minus",
        "a plus, as (40) and the result (36) need",
        "differences of I",
        _gradient_marginal,
    ),
    Erratum(
        "LEAKAGE Alg 1, line 15",
        "unit vectors, one for each of the other records' values",
        "one for each value of record i: that is how many conditional laws there are",
        "counting",
    ),
    Erratum(
        "LEAKAGE Alg 1, uniform start",
        "the uniform prior is a good start, being feasible for every b",
        "for a parity it is a stationary point: from b = (n + 1)/2 log 2 on the method stays there "
        "at 0. With n = 4 and flip 0.2 it ends at 0.1364 just below that floor, at 0 just above; "
        "the leakage is 0.1927",
        "the method as printed, and the closed form",
        _uniform_start,
    ),
    Erratum(
        "LEAKAGE Alg 2, 5",
        "Algorithm 2 returns a law that meets the floor; Algorithm 5 is a projection",
        "Algorithm 2 can stop with H(X) < b, since it watches I only. Algorithm 5's softmax is not "
        "the nearest point, and has no root below the logarithm of the number of tied maxima",
        "two examples",
        _short_of_floor,
    ),
    Erratum(
        "LEAKAGE Alg 3, line 6",
        "a row of mass zero is chosen so as to maximize I",
        "I does not depend on such a row",
        "two choices",
        _zero_mass,
    ),
    Erratum(
        "LEAKAGE Alg 3, Thm 5(2)",
        "row by row the ascent reaches a stationary point",
        "once H(X) = b each row's bound is its present entropy, so the entropies of the rows are "
        "frozen at those of the start. In one example the best of 41 starts with these reaches "
        "0.3936; a start with other entropies of the rows, and the same floor, 0.4011",
        "the method as printed, from starts of either kind",
        _frozen,
    ),
    Erratum(
        "LEAKAGE Alg 3, Thm 5 (Armijo)",
        "the theorem's line search promises an increase in proportion to a constant c",
        "line 20 takes every step that does not decrease I: the constant does nothing, and the "
        "theorem is about another method",
        "reading both",
    ),
    Erratum(
        "LEAKAGE Alg 7, 10 (stop)",
        "stop when two successive values are close and the budget is met to a tolerance",
        "the previous value is set to the present one before the test, which so always passes; the "
        "second part is never met where the budget is slack, and the loop runs to its limit",
        "a run with a slack budget",
        _slack,
    ),
    Erratum(
        "LEAKAGE Alg 7, 10 (weight)",
        "the penalty's weight adapts",
        "it stays as it is while the value is within δ of the budget; and the best point is chosen "
        "by comparing objectives with different weights",
        "reading the lines",
    ),
    Erratum(
        "LEAKAGE Alg 7, 10 (exact penalty)",
        "the squared softplus is an exact penalty",
        "at the budget it is (log 2)² = 0.4805, not 0: for a fixed weight the answer is off the "
        "budget, and a growing weight drives the constrained quantity to its minimum",
        "the formula",
        _softplus,
    ),
    Erratum(
        "LEAKAGE Alg 8, 11, (30)",
        "the Euclidean Armijo test, with an exponentiated step",
        "such a step promises η Var_q(gradient), not η‖gradient‖²; with the printed test no step "
        "at all may pass",
        "a channel near the noiseless one",
        _armijo,
    ),
    Erratum(
        "LEAKAGE 3.3.1, Thm 7",
        "the leakage constraint is not convex in the channel",
        "it is: for each adversary I is convex in q, and a maximum of convex functions is convex. "
        "Both design problems are convex, if semi-infinite",
        "that argument; and midpoints of random channels, proved",
        _convex,
    ),
    Erratum(
        "LEAKAGE Thm 4(2)",
        "for b = 0 Algorithm 1 finds the global maximum",
        "not always: of a random channel on two bits with three outputs it finds 0.3016 from the "
        "uniform prior, and C_1 is 0.3076",
        "the method as printed, and DALENIUS Theorem 2 by enumeration",
        _global,
    ),
    Erratum(
        "LEAKAGE 4.1",
        "a sum mod m has sensitivity 1",
        "on the cycle; as integers, which the Laplace mechanism takes it for, m − 1",
        "the query's table",
        _sensitivity,
    ),
    Erratum(
        "LEAKAGE Fig. 3",
        "the leakage of a noisy parity falls with b from b = 0 on",
        "it is constant up to (n − 1) log 2: for flip 0.1 it is still 0.3681 there. The method "
        "ends in local optima, as the caption suspects of some bends",
        "proved brackets, and the closed form",
        _plateau,
    ),
    Erratum(
        "LEAKAGE Fig. 4 caption, capacity",
        "the symmetric channel with flip 0.3 has capacity 0.0931 for n = 4, less for larger n",
        "log 2 − h(0.3) = 0.08228, for every n",
        "proved bracket",
        _caption,
    ),
    Erratum(
        "LEAKAGE Fig. 4 caption, slope",
        "the capacities fall as ε grows, which is stronger privacy",
        "they rise, and privacy gets weaker: 0.0247, 0.0795 and 0.2158 for the Laplace mechanism "
        "at ε = 0.5, 1 and 2",
        "the closed form",
        _rises,
    ),
    Erratum(
        "LEAKAGE Table 3",
        "Laplace, n = 4, ε = 1: 0.062, 0.041, 0.022, 0.009 at b = 0.5, 1, 1.5, 2",
        "0.0795 at all four, as at b = 0: the plateau ends at 2.079. At b = 2.495 and flip "
        "0.3033 it is 0.0393. The exponential mechanism's row is too small in the same way",
        "proved brackets",
        _table,
    ),
    Erratum(
        "LEAKAGE Table 3, exponential",
        "0.032 at b = 0, from h(p_E) ≈ 0.661",
        "log 2 − h(0.37754) = 0.0303",
        "proved bracket",
        _table_exponential,
    ),
    Erratum(
        "LEAKAGE 7.2",
        "the Laplace and the exponential mechanism compared at the same ε",
        "their exact levels of differential privacy differ: ε/2 for the exponential mechanism, "
        "log(2 exp(ε/2) − 1) for the thresholded Laplace, that is 0.5 and 0.8318 at ε = 1. At the "
        "same exact level they are the same channel",
        "the level by definition",
        _levels,
    ),
]
