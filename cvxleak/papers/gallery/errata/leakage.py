"""Errata of LEAKAGE: formulas, algorithms and theorems."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.optimize import root_scalar
from scipy.special import entr, expit, logit

from cvxleak.audit import record_leakage
from cvxleak.iterative import (
    adaptive_penalty,
    alternating_design,
    alternating_leakage,
    blahut_arimoto,
    conditional_gradient_ascent,
    deterministic_search,
    exponentiated_gradient,
    marginal_blahut_arimoto,
    penalized_objective,
    project_to_entropy,
    project_to_simplex,
    row_entropy_floors,
)
from cvxleak.iterative._record import RecordView
from cvxleak.iterative._stationarity import best_conditional, block_gaps
from cvxleak.measures import mutual_information, record_information
from cvxleak.mechanisms import symmetric_capacity
from cvxleak.model import Mechanism, RecordSpace
from cvxleak.papers.gallery.errata.erratum import Erratum
from cvxleak.papers.gallery.item import Pair, pair
from cvxleak.papers.gallery.parity import noisy_parity, parity_leakage

__all__ = ["ERRATA"]

LOG2 = math.log(2)
STEP = 1e-6
FAIR, HAMMING = np.array([0.5, 0.5]), 1 - np.eye(2)
TWO_BITS_WRONG = np.array([[0, 1], [1, 0], [1, 0], [0, 1]])


def _laws(
    seed: int, values: int = 2, contexts: int = 4, outputs: int = 3
) -> tuple[np.ndarray, ...]:
    """Return random distributions of a record and of the others given it, and random rows."""
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
    output = p @ given
    first = float((given[0] * np.log(given[0] / output)).sum())
    second = -p[0] * float((given[0] ** 2 / output).sum())
    others = -1 + p[0] * float((given[0] ** 2 / output).sum())  # (40)
    return [
        pair(
            "slope by differences, with plus",
            slope / (2 * STEP),
            first + second + others,
            tolerance=1e-6,
        ),
        pair(
            "with minus, as printed",
            slope / (2 * STEP),
            first + second - others,
            "LEAKAGE (39)",
            1e-3,
        ),
    ]


def _row_floor() -> list[Pair]:
    view = RecordView(*_laws(2))
    p, conditional = view.marginal, view.conditional
    b = view.entropy + 0.05

    def excess(share: float) -> float:
        row = (1 - share) * conditional[0] + share / conditional.shape[1]
        return replace(view, conditional=np.array([row, conditional[1]])).entropy - b

    share = root_scalar(excess, bracket=(0, 1), xtol=1e-15).root
    needed = float(entr((1 - share) * conditional[0] + share / conditional.shape[1]).sum())

    def all_rows(b: float) -> float:
        return (b - float(entr(p).sum()) - float(p @ view.row_entropies)) / p[0]

    return [
        pair("entropy of row 0 where H(X) = b", needed, row_entropy_floors(p, conditional, b)[0]),
        pair("and the sum over all l", needed, all_rows(b), "LEAKAGE (18)", 1e-3),
        pair("the sum over all l where b is H(X)", all_rows(view.entropy), 0.0),
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


def _two_bits(zero: np.ndarray, one: np.ndarray) -> Mechanism:
    """Return the parity of two bits through `zero` if the second is 0, through `one` if it is 1."""
    return Mechanism.from_channel(
        RecordSpace.binary(2), np.array([zero[0], one[1], zero[1], one[0]])
    )


def _flip(p: float) -> np.ndarray:
    return np.array([[1 - p, p], [p, 1 - p]])


def _alternation() -> list[Pair]:
    first, second = _two_bits(_flip(0.25), _flip(0.25)), _two_bits(np.full((2, 2), 0.5), _flip(0))
    before, after = (record_leakage(mechanism, LOG2) for mechanism in (first, second))
    known = np.array([0.5, 0.0, 0.5, 0.0])
    pairs = [
        pair(
            "leakage to a fair first bit and a second bit of 0",
            record_information(first, known, 0),
            before.upper,
        ),
        pair("leakage to it after the mechanism update", record_information(second, known, 0), 0.0),
    ]
    for name, mechanism in (("before", first), ("after", second)):
        error = float((mechanism.channel.matrix * TWO_BITS_WRONG).sum(axis=1).mean())
        pairs.append(pair(f"error of a fair dataset {name}, D = 0.25", error, 0.25))
    return [
        *pairs,
        pair("worst-case leakage before, b = log 2", before, "0.1308"),
        pair("and after", after, "0.6931"),
        pair("so it is not monotone", after, before.upper, "LEAKAGE Thm 6(1), 3.2.4", 1e-3),
    ]


def _alternation_of_distortion() -> list[Pair]:
    budget = symmetric_capacity(2, 0.2)
    designs = [(0.2, 0.25), (0.2, 0.0), (0.0, 0.2)]
    mechanisms = [_two_bits(_flip(zero), _flip(one)) for zero, one in designs]
    costs = [0.3 * zero + 0.7 * one for zero, one in designs]
    known = [np.array([0.5, 0.0, 0.5, 0.0]), np.array([0.0, 0.5, 0.0, 0.5])]
    pairs = [
        pair(
            "worst-case leakage of the start, flips 0.2 and 0.25, and L",
            record_leakage(mechanisms[0], LOG2),
            budget,
        )
    ]
    for k, law in enumerate(known):
        worst = record_leakage(mechanisms[k], LOG2)
        given = record_information(mechanisms[k], law, 0)
        pairs += [
            pair(f"worst prior in round {k + 1}: the second bit is {k}", given, worst.upper),
            pair(
                f"its leakage after round {k + 1} is L",
                record_information(mechanisms[k + 1], law, 0),
                budget,
            ),
        ]
    return [
        *pairs,
        pair("distortion after round 1", costs[1], "0.06"),
        pair("distortion after round 2", costs[2], "0.14"),
        pair("so it is not monotone", costs[2], costs[1], "LEAKAGE Thm 7(1), 3.3.4", 1e-3),
    ]


def _inactive() -> list[Pair]:
    rows = np.array([[[0.2, 0.8], [1, 0]], [[0.9, 0.1], [0, 1]]])
    fair = [0.5, 0.5]
    run = conditional_gradient_ascent(fair, [[1, 0], [1, 0]], rows, 0.0)
    best = max(mutual_information(rows[[0, 1], [a, b]], fair) for a in (0, 1) for b in (0, 1))
    return [
        pair("where Algorithm 3 ends, b = 0", run.value, "0.2754"),
        pair("the best choice of two unit vectors", best, "0.6931"),
        pair("so it is not global", run.value, best, "LEAKAGE Thm 5(3)", 1e-3),
    ]


def _jointly_convex() -> list[Pair]:
    p, _, rows = _laws(5, values=3)
    rng = np.random.default_rng(5)
    worst = 0.0
    for _ in range(200):
        one, two = rng.dirichlet(np.full(4, 0.5), size=(2, 3))
        ends = (_information(p, one, rows) + _information(p, two, rows)) / 2
        worst = max(worst, _information(p, (one + two) / 2, rows) - ends)
    return [
        pair("most by which a midpoint exceeds the chord, all rows moved, 200 pairs", worst, 0.0)
    ]


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


def _one_record() -> list[Pair]:
    count = np.indices((2, 2)).sum(axis=0)
    error, fair = np.abs(count[..., None] - np.arange(3.0)), np.full((2, 2), 0.25)
    q = 0.7 * np.eye(3)[count] + 0.1
    run = exponentiated_gradient(fair, q, fair, error, 0.2, 1.0, decrease="variance")
    for _ in range(60):
        first, second = (
            penalized_objective(fair, q, fair, error, 0.2, 1.0, record=i)[1] for i in (0, 1)
        )
        q = q * np.exp(-first - second)
        q /= q.sum(axis=-1, keepdims=True)
    reached = penalized_objective(fair, q, fair, error, 0.2, 1.0)[0]
    return [
        pair("steps along the gradient of one record", run.iterations, 0.0),
        pair("J where they end", run.value, "0.6366"),
        pair("J after 60 steps along the mean of both", reached, "0.5768"),
        pair("so it is no minimum", run.value, reached, "LEAKAGE Alg 8, 11 (one record)", 1e-3),
    ]


def _zero_mass() -> list[Pair]:
    p, conditional, rows = _laws(4, values=3)
    p = np.array([p[0] / (p[0] + p[1]), p[1] / (p[0] + p[1]), 0.0])
    one, two = (
        mutual_information(np.einsum("am,amy->ay", np.vstack([conditional[:2], e]), rows), p)
        for e in np.eye(4)[:2]
    )
    return [pair("I with one unit vector in the row of mass zero, and with another", one, two)]


def _frozen() -> list[Pair]:
    p, conditional, rows = _laws(11)
    view = RecordView(p, conditional, rows)
    b = view.entropy
    run = conditional_gradient_ascent(p, conditional, rows, b)
    again = conditional_gradient_ascent(p, run.point, rows, b)
    end = replace(view, conditional=run.point)
    way = best_conditional(end, b) - run.point
    moved = replace(end, conditional=run.point + way / 10)
    return [
        pair("where Algorithm 3 ends", end.information, "0.0207"),
        pair("most that it moves from there", np.abs(again.point - run.point).max(), 0, None, 1e-7),
        pair("first-order gain of a feasible direction", block_gaps(end, b)[1], "0.1513"),
        pair("gain of a tenth of it", moved.information - end.information, "0.0182"),
        pair("violation of the floor there", max(b - moved.entropy, 0.0), 0.0),
        *(
            pair(f"entropy of row {k}, before and after", after, before, tolerance=1e-7)
            for k, (after, before) in enumerate(
                zip(end.row_entropies, view.row_entropies, strict=True)
            )
        ),
    ]


def _not_stationary() -> list[Pair]:
    q = np.random.default_rng(0).dirichlet(np.full(3, 0.5), size=4)
    b = 1.1
    run = alternating_leakage(q.reshape(2, 2, 3), b)
    end = RecordView.of(run.point, q.reshape(2, 2, 3), int(run.history["record"][-1]))
    moved = replace(end, conditional=best_conditional(end, b))
    return [
        pair("where Algorithm 1 ends, b = 1.1", run.value, "0.0491"),
        pair("first-order gain of the conditionals", block_gaps(end, b)[1], "0.0210"),
        pair("gain of the conditionals that offer it", moved.information - run.value, "0.0302"),
        pair("violation of the floor there", max(b - moved.entropy, 0.0), 0.0, None, 1e-9),
    ]


def _armijo_row() -> list[Pair]:
    p, conditional, rows = _laws(18)
    view = RecordView(p, conditional, rows)
    gradient = p[1] * view.scores[1]
    stepped = project_to_simplex(conditional[1] + 0.25 * gradient)
    row = project_to_entropy(stepped / stepped.sum(), view.row_entropies[1]).point
    slope = float(gradient @ (row - conditional[1]))
    change = replace(view, conditional=np.array([conditional[0], row])).information
    loss = view.information - change
    return [
        pair("loss of a step to first order", -slope, "0.00032"),
        pair("its loss, which line 20 refuses", loss, "0.00014"),
        pair("the Armijo test with c = 1/2 refuses it: no", float(loss > -slope / 2), 0.0),
    ]


def _unit_vectors() -> list[Pair]:
    p, _, rows = _laws(0)
    run = deterministic_search(p, rows)
    best = max(mutual_information(rows[[0, 1], [a, b]], p) for a in range(4) for b in range(4))
    return [
        pair("best of 4 by 4 unit vectors, and line 15's", best, run.value),
        pair("unit vectors that it chooses, 2 values, 4 contexts", len(run.point), 2.0),
        pair("as printed", len(run.point), 4.0, "LEAKAGE Alg 1, line 15"),
    ]


def _short_of_floor() -> list[Pair]:
    rows = np.array([[[0.6, 0.4], [0.6, 0.4]], [[0.4, 0.6], [0.4, 0.6]]])
    run = marginal_blahut_arimoto([0.5, 0.5], [[1, 0], [0.5, 0.5]], rows, 1.09, tol=1e-3)
    tied = project_to_entropy([0.4, 0.4, 0.2], 0.5)
    negative = project_to_entropy([0.4, 0.4, 0.2], 0.5, beta_min=-20.0).point
    given = np.array([0.6, 0.4, 0.0])
    mixed = 0.77 * given + 0.23 / 3
    reached = project_to_entropy(given, float(entr(mixed).sum())).point
    return [
        pair(
            "H(X) − b where Algorithm 2 stops, negative", float(run.history["slack"][-1] < 0), 1.0
        ),
        pair("Algorithm 5's least entropy with β ≥ 0 for (0.4, 0.4, 0.2)", tied.value, LOG2),
        pair("−β for 0.5", math.log(negative[2] / negative[0]) / 0.2, "12.58"),
        pair("its largest entry is that of 0.2", float(negative.argmax()), 2.0),
        pair(
            "distance from (0.6, 0.4, 0) to a mixture with the uniform distribution",
            float(np.linalg.norm(mixed - given)),
            "0.099",
        ),
        pair(
            "to Algorithm 5's point of the same entropy",
            float(np.linalg.norm(reached - given)),
            "0.124",
        ),
    ]


def _fair_bit(penalty: float, budget: float) -> float:
    """Return the flip that minimizes (23) for a fair bit: J is convex and symmetric.

    It is the root of the derivative.
    """

    def slope(p: float) -> float:
        z = p - budget
        return float(logit(p) + 2 * penalty * np.logaddexp(0, z) * expit(z))

    return root_scalar(slope, bracket=(1e-12, 0.5), xtol=1e-14).root


def _weight() -> list[Pair]:
    run = adaptive_penalty(FAIR, FAIR, HAMMING, 0.1, decrease="variance", max_penalties=9)
    least, weights = run.history["objective"], run.history["penalty"]
    rises = np.diff(least)[np.diff(weights) > 0]
    return [
        pair("last of nine λ", weights[-1], "3.375"),
        pair("and the one before", weights[-2], "3.375"),
        pair("distortion there, D = 0.1", run.history["distortion"][-1], "0.0902"),
        pair("distortion of q_best", FAIR @ (run.point * HAMMING).sum(axis=1), "0.2947"),
        pair("exact minimizer for λ = 1", _fair_bit(1.0, 0.1), "0.2947"),
        pair("changes of λ that raised λ and not the least J", float((rises <= 0).sum()), 0.0),
    ]


def _softplus() -> list[Pair]:
    return [
        pair("(softplus 0)^2", math.log1p(1.0) ** 2, "0.4805"),
        pair("minimizer for λ = 1, D = 0.1", _fair_bit(1.0, 0.1), "0.2947"),
        pair("minimizer for λ = 10", _fair_bit(10.0, 0.1), "0.0021"),
        pair("and D", _fair_bit(10.0, 0.1), 0.1, "LEAKAGE Alg 7, 10 (exact penalty)", 1e-3),
    ]


def _off_budget() -> list[Pair]:
    free = {"decrease": "variance", "max_penalties": 9}
    run = alternating_design(FAIR, HAMMING, 0.1, 0.0, **free)
    dual = alternating_design(FAIR, HAMMING, 0.1, 0.0, goal="distortion", **free)
    where = "LEAKAGE Thm 6(2), 7(2)"
    ends = {"distortion, D = 0.1": ("0.2947", run), "leakage, L = 0.1": ("0.1770", dual)}
    pairs = []
    for name, (numeral, found) in ends.items():
        over = found.history["residual"]
        pairs += [
            pair(f"last {name}", 0.1 + over[-1], numeral),
            pair(f"first {name}", 0.1 + over[0], numeral),
            pair(f"budget of the {name}", 0.1 + over[-1], 0.1, where, 1e-3),
        ]
    return pairs


def _cycle() -> list[Pair]:
    noise = np.full((2, 2), 0.5)
    designs = [_two_bits(noise, _flip(0)), _two_bits(_flip(0), noise)]
    known = [np.array([0.0, 0.5, 0.0, 0.5]), np.array([0.5, 0.0, 0.5, 0.0])]
    pairs = []
    for k, (mechanism, law) in enumerate(zip(designs, known, strict=True)):
        worst = record_leakage(mechanism, LOG2)
        leaks, other = (record_information(m, law, 0) for m in (mechanism, designs[1 - k]))
        error = float((mechanism.channel.matrix * TWO_BITS_WRONG).sum(axis=1).mean())
        pairs += [
            pair(f"worst prior of mechanism {k}", leaks, worst.upper),
            pair(f"its leakage under mechanism {1 - k}, least possible", other, 0.0),
            pair(f"error of mechanism {k}, D = 0.25", error, 0.25),
        ]
    worst = record_leakage(designs[0], LOG2)
    return [
        *pairs,
        pair("worst-case leakage of both", worst, "0.6931"),
        pair("flip 0.25", record_leakage(_two_bits(_flip(0.25), _flip(0.25)), LOG2), "0.1308"),
        pair("so neither is optimal", worst, 0.1308, "LEAKAGE Thm 6(3), (4)", 1e-3),
    ]


def _cycle_of_distortion() -> list[Pair]:
    budget = symmetric_capacity(2, 0.2)
    designs = [_two_bits(_flip(0.2), _flip(0)), _two_bits(_flip(0), _flip(0.2))]
    known = [np.array([0.0, 0.5, 0.0, 0.5]), np.array([0.5, 0.0, 0.5, 0.0])]
    pairs = []
    for k, (mechanism, law) in enumerate(zip(designs, known, strict=True)):
        worst = record_leakage(mechanism, LOG2)
        leaks, other = (record_information(m, law, 0) for m in (mechanism, designs[1 - k]))
        pairs += [
            pair(f"worst prior of mechanism {k}", leaks, worst.upper),
            pair(f"its leakage under mechanism {1 - k} is L", other, budget),
        ]
    worst = record_leakage(designs[0], LOG2)
    return [
        *pairs,
        pair("worst-case leakage of both", worst, "0.6931"),
        pair("L", budget, "0.1927"),
        pair("so neither meets L", worst, budget, "LEAKAGE Thm 7(3)", 1e-3),
    ]


def _rates() -> list[Pair]:
    prior = np.array([[0.8, 0.2], [0.8, 0.2]]) / 2
    b = LOG2 + float(entr([0.8, 0.2]).sum())
    start = alternating_leakage(noisy_parity(2, 0.1), b, start=prior, max_iterations=1)
    value, norm = (start.history[name][0] for name in ("objective", "gradient_norm"))
    rows = np.array([[0.6, 0.2, 0.2], [0.2, 0.6, 0.2], [0.0, 0.0, 0.0]])
    output = np.array([0.4, 0.4, 0.2])
    capacity = float((rows[0] * np.log(rows[0] / output)).sum())

    def far(a: float) -> float:
        row = np.array([a, a, 1 - 2 * a])
        return float((row * np.log(row / output)).sum()) - capacity

    a = root_scalar(far, bracket=(0.1, 0.39), xtol=1e-15).root
    rows[2] = a, a, 1 - 2 * a
    run = marginal_blahut_arimoto(
        np.full(3, 1 / 3), np.ones((3, 1)), rows[:, None], 0.0, tol=0, max_iterations=4000
    )
    gap = capacity - run.history["objective"]
    return [
        pair("leakage at the optimal prior, and the closed form", value, parity_leakage(2, 0.1, b)),
        pair("norm of the gradient there", norm, "0.8368"),
        pair("gap after 2000 updates over that after 4000", gap[2000] / gap[4000], 4.0, None, 0.1),
    ]


ERRATA = [
    Erratum(
        "LEAKAGE (18)",
        "the sum runs over all rows",
        "it runs over the rows other than k, as in line 9 of Algorithm 3: at H(X) = b this gives "
        "the row's own entropy, and the printed sum gives 0",
        "both formulas, and a row with which H(X) = b",
        _row_floor,
    ),
    Erratum(
        "LEAKAGE (37)",
        "two terms next to the sum over y",
        "the derivative is p(x_i) Σ_y q(y|x) log(p(y|x_i)/p(y)): the two other terms, from the row "
        "itself and from the other rows through p(y), cancel",
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
        "LEAKAGE 2.3",
        "I(X_i;Y) is convex in each row of the conditionals, but not in all of them together; in "
        "case 1 of 3.1 it is concave",
        "it is convex in all of them together, as the proof of Theorem 1(2) shows: for a fixed "
        "p(x_i) the joint distribution of record and output is linear in the conditionals, and I "
        "is convex in it",
        "that proof; and midpoints of random conditionals",
        _jointly_convex,
    ),
    Erratum(
        "LEAKAGE Alg 1, line 15",
        "unit vectors, one for each of the other records' values",
        "one for each value of record i: that is the number of conditional distributions",
        "the search, and all choices",
        _unit_vectors,
    ),
    Erratum(
        "LEAKAGE Alg 1, uniform start",
        "the uniform prior is a good start, being feasible for every b",
        "for a parity it is a stationary point with leakage 0, and the method stays there for "
        "every b > (n + 1)/2 log 2, where all c_k are positive. With n = 4 and flip 0.2 it ends at "
        "0.1364 just below that floor, and at 0 just above it; the leakage is 0.1927",
        "the method as printed, and the closed form",
        _uniform_start,
    ),
    Erratum(
        "LEAKAGE Alg 2, 5",
        "Algorithm 2 returns a distribution that meets the floor; Algorithm 5 is a projection",
        "Algorithm 2 can stop with H(X) < b, since it watches I only. Algorithm 5's softmax is not "
        "the nearest point: for (0.6, 0.4, 0) it is at a distance of 0.124, and a mixture with the "
        "uniform distribution, of the same entropy, at 0.099. Below the logarithm of the number of "
        "tied maxima there is no root β ≥ 0, and a negative one reverses the order: for "
        "(0.4, 0.4, 0.2) and an entropy of 0.5 it is −12.58, and 0.2 becomes the largest entry",
        "examples",
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
        "once H(X) = b, each row's floor is its present entropy, so the entropies of the rows stay "
        "those of the start. In one example the method ends at 0.0207 and does not move any more; "
        "a direction that keeps H(X) ≥ b gains 0.1513 to first order, and 0.0182 over a tenth of "
        "its length. The proof takes the limit for a fixed point of projections onto sets that it "
        "holds fixed, which move with the rows",
        "the method as printed, and that direction",
        _frozen,
    ),
    Erratum(
        "LEAKAGE Alg 3, Thm 5 (Armijo)",
        "the line search of Algorithm 3 is the Armijo test of the theorem, which makes I rise",
        "they differ. I is convex in a row, so a step that gains to first order passes the Armijo "
        "test at any length and for every c up to 1. Where Algorithm 5 leads against the gradient "
        "the test admits losses, which line 20 refuses: in one example a step loses 0.00032 to "
        "first order and 0.00014 in fact, which passes with c = 1/2",
        "convexity, and that step",
        _armijo_row,
    ),
    Erratum(
        "LEAKAGE Alg 7, 10 (stop)",
        "stop when two successive values are close and the budget is met to a tolerance",
        "the previous value is set to the present one before the test, so the first condition is "
        "always true. The second one is never true if the budget is slack, so that the loop runs "
        "to its limit",
        "a run with a slack budget",
        _slack,
    ),
    Erratum(
        "LEAKAGE Alg 7, 10 (weight)",
        "the penalty's weight adapts, and q_best is the best mechanism found",
        "the weight does not change while the value is within δ of the budget: for a fair bit and "
        "D = 0.1 it stays at 3.375, with a distortion of 0.0902. And q_best is that of the least "
        "objective, which grows with the weight: it is the mechanism of the first weight, with "
        "0.2947",
        "the method as printed, and the exact minimizer",
        _weight,
    ),
    Erratum(
        "LEAKAGE Alg 7, 10 (exact penalty)",
        "the squared softplus is an exact penalty",
        "at the budget it is (log 2)² = 0.4805, not 0: for a fixed weight the answer is off the "
        "budget, and a growing weight drives the constrained quantity to its minimum. For a fair "
        "bit and D = 0.1 the minimizers for λ = 1 and λ = 10 have distortions 0.2947 and 0.0021",
        "the formula, and its minimizers",
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
        "LEAKAGE Alg 8, 11 (one record)",
        "steps along the gradient of the record that leaks most minimize the objective",
        "where two records leak most the objective has a kink, and one record's gradient need not "
        "lead down. Example: the count of two fair bits, absolute error, D = 0.2, λ = 1, started "
        "at the right count mixed with a uniform one, seven to three. No step passes the line "
        "search, even if any decrease to first order is enough, and the objective stays at 0.6366. "
        "Steps along the mean of both gradients lead to 0.5768",
        "the method, and those steps",
        _one_record,
    ),
    Erratum(
        "LEAKAGE 3.3.1, Thm 7",
        "the leakage constraint is not convex in the channel",
        "it is: for each adversary I is convex in q, and a maximum of convex functions is convex. "
        "Both design problems are convex, although semi-infinite",
        "that argument; and midpoints of random channels, proved",
        _convex,
    ),
    Erratum(
        "LEAKAGE Thm 4",
        "limit points of Algorithm 1 are block-wise stationary",
        "that needs exact steps for the conditionals, and Algorithm 3's are not. For a random "
        "channel on two bits with three outputs and b = 1.1 the method ends at 0.0491 from the "
        "uniform prior, and the conditionals alone can still gain 0.0210 to first order, and "
        "0.0302 in fact",
        "the method as printed, and other conditionals",
        _not_stationary,
    ),
    Erratum(
        "LEAKAGE Thm 4(2)",
        "for b = 0 Algorithm 1 finds the global maximum",
        "not always: for a random channel on two bits with three outputs it finds 0.3016 from the "
        "uniform prior, and C_1 is 0.3076",
        "the method as printed, and DALENIUS Theorem 2 by enumeration",
        _global,
    ),
    Erratum(
        "LEAKAGE Thm 4(3)",
        "the squared gradient falls like 1/k, and I converges linearly where the floor is slack",
        "at a maximum on the floor the gradient along the simplex is not zero: for the parity of "
        "two bits with flip 0.1 and a floor of log 2 + h(0.2) its norm is 0.8368. And Algorithm 2 "
        "is not linear in general: for one record whose third value is as far from the best output "
        "distribution as the two that are used, the gap falls by a factor of 4 where the number of "
        "updates doubles. With exact steps and b = 0, Algorithm 1 ends after finitely many sweeps",
        "the optimal prior in closed form; a run of Algorithm 2",
        _rates,
    ),
    Erratum(
        "LEAKAGE Thm 5(3)",
        "if no row's floor is active, Algorithm 3 ends at the global maximum",
        "not always: each row is then a unit vector, and two of them may have to change at once. "
        "Example: a fair record, with rows (0.2, 0.8) and (1, 0) for one value, and (0.9, 0.1) and "
        "(0, 1) for the other. Started at the first row of each, it stays at 0.2754; the maximum "
        "is 0.6931",
        "the method as printed, and all four choices",
        _inactive,
    ),
    Erratum(
        "LEAKAGE Thm 6(1), 3.2.4",
        "the worst-case leakage does not rise from one round of Algorithm 6 to the next",
        "it can, because each mechanism is designed against one prior only. Example: the parity of "
        "two bits through a channel with flip 0.25 has error D = 0.25 and leaks 0.1308 at "
        "b = log 2. One of its worst priors has a fair first bit and a second bit of 0. Against "
        "this prior the best mechanism with D = 0.25 outputs the parity if the second bit is 1, "
        "and a random bit if it is 0. It leaks nothing to this prior, but 0.6931 to the prior with "
        "a fair first bit and a second bit of 1",
        "lower and upper bounds on the leakages, all proved; no mechanism leaks less than nothing",
        _alternation,
    ),
    Erratum(
        "LEAKAGE Thm 6(2), 7(2)",
        "distortion and leakage meet their budgets in the limit",
        "not as the mechanism step is printed, which returns the minimizer for the first weight: "
        "for a fair bit, b = 0, every round of Algorithm 6 has a distortion of 0.2947 for D = 0.1, "
        "and every round of Algorithm 9 a leakage of 0.1770 for L = 0.1",
        "the methods as printed, with a line search that makes steps",
        _off_budget,
    ),
    Erratum(
        "LEAKAGE Thm 6(3), (4)",
        "limit points are stationary, and the objective converges like 1/k",
        "not even with exact steps. In the example above, the second mechanism's worst prior has a "
        "second bit of 1, and the best mechanism against that outputs the parity if the second bit "
        "is 0, and a random bit if it is 1. The two follow each other for ever. Both leak 0.6931, "
        "the channel with flip 0.25 has the same error and leaks 0.1308, and in a convex problem "
        "every stationary point is optimal",
        "lower and upper bounds on the leakages, all proved; each step's best choice is the only "
        "one",
        _cycle,
    ),
    Erratum(
        "LEAKAGE Thm 7(1), 3.3.4",
        "the distortion does not rise from one round of Algorithm 9 to the next",
        "it can. Example: the parity of two bits, b = log 2, L = log 2 − h(0.2), and a source "
        "whose second bit is 0 with probability 0.3. The first mechanism has flip 0.2 if the "
        "second bit is 0, and flip 0.25 if it is 1. The worst prior knows that the second bit is "
        "0. The best mechanism against it keeps flip 0.2 for 0 and has no noise for 1: distortion "
        "0.06. For this one the worst prior knows that the second bit is 1. The best mechanism "
        "against that has flip 0.2 for 1 and no noise for 0: distortion 0.14",
        "lower and upper bounds on the leakages, all proved, and the rate-distortion function of "
        "a fair bit",
        _alternation_of_distortion,
    ),
    Erratum(
        "LEAKAGE Thm 7(3)",
        "limit points satisfy the conditions of Karush, Kuhn and Tucker",
        "not even with exact steps: the two mechanisms of that example follow each other for ever, "
        "and both leak 0.6931, more than L = 0.1927",
        "lower and upper bounds on the leakages, all proved",
        _cycle_of_distortion,
    ),
]
