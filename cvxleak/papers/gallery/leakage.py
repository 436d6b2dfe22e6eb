"""LEAKAGE: Figure 1, and its experiments (Figures 3 to 7, Table 3 and Section 7.2)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import entr

from cvxleak.audit import leakage_curve, record_leakage
from cvxleak.design import MinDistortion, MinLeakage, design_curve
from cvxleak.iterative import alternating_design
from cvxleak.mechanisms import exponential, flip_for_leakage, laplace_threshold, symmetric_capacity
from cvxleak.model import Distortion, Mechanism, RecordSpace
from cvxleak.papers.gallery.drawing import COLORS, foot, panels
from cvxleak.papers.gallery.item import Computed, Data, Item, Pair, pair
from cvxleak.papers.gallery.parity import (
    SIZES,
    distortion_curves,
    draw_distortion,
    floors_item,
    noisy_parity,
    parity_leakage,
)
from cvxleak.queries import parity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ITEMS"]

TABLE_3 = {
    "Laplace": ("0.079", "0.062", "0.041", "0.022", "0.009", "0.000"),
    "exponential": ("0.032", "0.024", "0.015", "0.008", "0.003", "0.000"),
}
TABLE_3_FLOORS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.77)
FIGURE_4_FLOORS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)


def figure_1(points: int = 61) -> Computed:
    """I(X_1;Y) of a parity of two bits, flip 0.1, by the distribution of X_1 and of X_2 given X_1.

    P(X_1 = 1) = p, and P(X_2 = 1) = t whatever X_1: concave in p, convex in t.
    """
    grid = np.linspace(0, 1, points)
    p, t = np.meshgrid(grid, grid, indexing="ij")
    one = 0.9 * (1 - t) + 0.1 * t  # P(Y = 1 | X_1 = 1)
    zero = 0.1 * (1 - t) + 0.9 * t  # P(Y = 1 | X_1 = 0)
    mean = p * one + (1 - p) * zero

    def h(x: np.ndarray) -> np.ndarray:
        return entr(x) + entr(1 - x)

    information = h(mean) - p * h(one) - (1 - p) * h(zero)
    bend_p = np.diff(information, 2, axis=0).max()
    bend_t = np.diff(information, 2, axis=1).min()
    pairs = [
        pair("most upward bend in p: none", max(float(bend_p), 0.0), 0.0),
        pair("most downward bend in t: none", max(-float(bend_t), 0.0), 0.0),
        pair("largest value, log 2 - h(0.1)", information.max(), symmetric_capacity(2, 0.1)),
    ]
    return pairs, {
        "grid": grid.tolist(),
        "information": information.tolist(),
        "entropy": (h(p) + h(t)).tolist(),
    }


def draw_figure_1(data: Data) -> Figure:
    """Draw the surface by its level lines; on the right with the edge of H(X) >= b."""
    figure, axes = panels(2, share=True)
    grid, values = np.array(data["grid"]), np.array(data["information"])
    levels = np.linspace(0, values.max(), 13)
    filled = [ax.contourf(grid, grid, values.T, levels=levels, cmap="Blues") for ax in axes]
    for ax in axes:
        ax.set_xlabel("p = P($X_1$ = 1)")
    axes[0].set(title="I($X_1$;Y)", ylabel="t = P($X_2$ = 1 | $X_1$)")
    lines = axes[1].contour(
        grid, grid, np.array(data["entropy"]).T, levels=[0.4, 0.8, 1.2], colors=COLORS[1]
    )
    axes[1].clabel(lines, fmt=lambda b: f"H = {b:g}", fontsize=8)
    axes[1].set_title("and lines H(X) = b")
    figure.colorbar(filled[0], ax=axes, label="nats", format="%.2f")
    return figure


def table_3() -> Computed:
    """Table 3: the parity of 4 bits at epsilon = 1, proved."""
    most = 4 * math.log(2)
    mechanisms = {
        "Laplace": Mechanism(parity(4), laplace_threshold(1.0)),
        "exponential": Mechanism(parity(4), exponential(np.eye(2), 1.0, 1.0)),
    }
    pairs: list[Pair] = []
    rows: dict[str, list[list[float]]] = {}
    for name, mechanism in mechanisms.items():
        curve = leakage_curve(mechanism, TABLE_3_FLOORS, tol=1e-5)
        rows[name] = [[bound.lower, bound.upper] for bound in curve.bounds]
        for floor, bound, printed in zip(TABLE_3_FLOORS, curve.bounds, TABLE_3[name], strict=True):
            key = "LEAKAGE Table 3"
            if name == "exponential" and floor == 0:
                key = "LEAKAGE Table 3, exponential"
            agrees = pair("", bound, printed).agrees
            pairs.append(pair(f"{name}, b = {floor:g}", bound, printed, None if agrees else key))
    return pairs, {"floors": TABLE_3_FLOORS, "brackets": rows, "largest entropy": most}


def section_7() -> Computed:
    """Section 7.2: flips, capacities and entropies at epsilon = 1, and at flips 0.1 and 0.3."""
    laplace, expo = math.exp(-0.5) / 2, 1 / (math.exp(0.5) + 1)
    bit = math.log(2)
    return [
        pair("C_1 at flip 0.1, bits", symmetric_capacity(2, 0.1) / bit, "0.531"),
        pair("C_1 at flip 0.1, nats", symmetric_capacity(2, 0.1), "0.368"),
        pair("C_1 at flip 0.3, bits", symmetric_capacity(2, 0.3) / bit, "0.1187"),
        pair("C_1 at flip 0.3, nats", symmetric_capacity(2, 0.3), "0.0823"),
        pair("flip, Laplace", laplace_threshold(1.0).matrix[0, 1], "0.3033"),
        pair("flip, exponential", exponential(np.eye(2), 1.0, 1.0).matrix[0, 1], "0.3775"),
        pair("h(flip), Laplace", bit - symmetric_capacity(2, laplace), "0.614"),
        pair(
            "h(flip), exponential",
            bit - symmetric_capacity(2, expo),
            "0.661",
            "LEAKAGE Table 3, exponential",
        ),
        pair("L(0), Laplace", symmetric_capacity(2, laplace), "0.079"),
        pair(
            "L(0), exponential",
            symmetric_capacity(2, expo),
            "0.032",
            "LEAKAGE Table 3, exponential",
        ),
    ], {}


def figure_4(points: int = 49) -> Computed:
    """Capacity of three mechanisms; the symmetric channel's at six floors, proved."""
    epsilons = np.geomspace(0.05, 10.0, points)
    pairs = [
        pair("log 2", math.log(2), "0.693"),
    ]
    levels = []
    for n in SIZES:
        curve = leakage_curve(noisy_parity(n, 0.3), FIGURE_4_FLOORS)
        levels.append([[bound.lower, bound.upper] for bound in curve.bounds])
        erratum = "LEAKAGE Fig. 4 caption, capacity" if n == 4 else None
        printed = "0.0931" if n == 4 else symmetric_capacity(2, 0.3)
        pairs.append(pair(f"BSC(0.3) at b = 0, n = {n}", curve.bounds[0], printed, erratum))
        pairs.append(
            pair(
                f"BSC(0.3) at b = 2.5, n = {n}: proved, closed form",
                curve.bounds[-1],
                parity_leakage(n, 0.3, 2.5),
            )
        )
    return pairs, {
        "epsilons": epsilons.tolist(),
        "Laplace": [symmetric_capacity(2, math.exp(-e / 2) / 2) for e in epsilons],
        "exponential": [symmetric_capacity(2, 1 / (math.exp(e / 2) + 1)) for e in epsilons],
        "floors": FIGURE_4_FLOORS,
        "BSC(0.3)": levels,
    }


def draw_figure_4(data: Data) -> Figure:
    """Draw the capacities against epsilon, and the levels that do not depend on it."""
    figure, axes = panels(len(SIZES), share=True)
    for ax, n, levels in zip(axes, SIZES, data["BSC(0.3)"], strict=True):
        for name, color in (("Laplace", COLORS[0]), ("exponential", COLORS[1])):
            ax.semilogx(data["epsilons"], data[name], color=color, label=name)
        told: dict[float, list[str]] = {}
        for floor, (_, high) in zip(data["floors"], levels, strict=True):
            told.setdefault(round(high, 3), []).append(f"{floor:g}")
        for (high, floors), style in zip(told.items(), ("-", "--", ":"), strict=False):
            ax.axhline(high, color=COLORS[2], ls=style, lw=1)
            ax.annotate(
                f"BSC(0.3), b = {floors[0]}" + (f" to {floors[-1]}" if len(floors) > 1 else ""),
                (0.052, high),
                xytext=(0, 2),
                textcoords="offset points",
                fontsize=7,
                color=COLORS[2],
            )
        ax.axhline(math.log(2), color="0.5", ls=":", lw=0.8)
        ax.set(title=f"n = {n}", xlabel="ε", ylim=(0, 0.72), xlim=(0.05, 10))
    axes[0].set_ylabel("capacity about a record, nats")
    foot(figure, axes, 2)
    return figure


def _method(goal: str, n: int, budgets: np.ndarray, floor: float) -> dict[str, list[float]]:
    """Run Algorithm 6 or 9 along a curve: what it ends at, and its mechanisms, repaired."""
    odd = np.indices((2,) * n).sum(axis=0) % 2
    source, error = np.full(odd.shape, 0.5**n), 1.0 - np.eye(2)[odd]
    space = RecordSpace.binary(n)
    found: dict[str, list[float]] = {"budgets": [], "value": [], "used": [], "repaired": []}
    for budget in budgets:
        run = alternating_design(
            source,
            error,
            budget,
            floor,
            goal=goal,
            decrease="variance",
            max_iterations=2,
            max_penalties=12,
            max_steps=50,
        )
        repaired = run.value
        if goal == "leakage":
            channel = run.point.channel.reshape(2**n, 2)
            repaired = record_leakage(Mechanism.from_channel(space, channel), floor).upper
        found["budgets"].append(float(budget))
        found["value"].append(float(run.history["objective"][-1]))
        found["used"].append(float(budget + run.history["residual"][-1]))
        found["repaired"].append(float(repaired))
    return found


def _gain(found: dict[str, list[float]], exact: list[float]) -> Pair:
    """Compare repaired mechanisms with the optima for the same budgets."""
    gain = max(best - value for best, value in zip(exact, found["repaired"], strict=True))
    return pair(
        "most by which a repaired mechanism of the method is better",
        max(gain, 0.0),
        0.0,
        None,
        1e-4,
    )


def figure_6(points: int = 13) -> Computed:
    """Least leakage for a distortion: parity of 3 bits, b = 1.5; proved, and by Algorithm 6."""
    wrong = Distortion.hamming([0, 1])
    budgets = np.linspace(0.02, 0.5, points)
    problem = MinLeakage(parity(3), distortion=wrong, budget=0.1, entropy_floor=1.5)
    curve = design_curve(problem, budgets, tol=1e-4, time_limit=None)
    exact = [parity_leakage(3, d, 1.5) for d in budgets]
    pairs = [
        pair(
            f"least leakage for D = {d:.2f}, and the symmetric channel's", bound, value, None, 1e-7
        )
        for d, bound, value in zip(budgets, curve.bounds, exact, strict=True)
    ]
    spent = [bound.witness.distortion for bound in curve.bounds]
    method = _method("leakage", 3, budgets[::4], 1.5)
    pairs.append(_gain(method, exact[::4]))
    return pairs, {
        "method": method,
        "budgets": budgets.tolist(),
        "lower": curve.lower.tolist(),
        "upper": curve.upper.tolist(),
        "spent": spent,
        "x": "distortion budget D",
        "y": "least leakage, nats",
        "spent name": "distortion of the design",
    }


def figure_7(points: int = 12) -> Computed:
    """Least distortion for a leakage: parity of 2 bits, b = 0; proved, and by Algorithm 9."""
    wrong = Distortion.hamming([0, 1])
    budgets = np.linspace(0.02, 0.68, points)
    problem = MinDistortion(parity(2), distortion=wrong, budget=0.1, entropy_floor=0.0)
    curve = design_curve(problem, budgets, tol=1e-4, time_limit=None)
    exact = [flip_for_leakage(2, level) for level in budgets]
    pairs = [
        pair(f"least distortion for L = {v:.2f}, and p*(L)", bound, value, None, 1e-7)
        for v, bound, value in zip(budgets, curve.bounds, exact, strict=True)
    ]
    spent = [bound.witness.leakage for bound in curve.bounds]
    method = _method("distortion", 2, budgets[::3], 0.0)
    pairs.append(_gain(method, exact[::3]))
    return pairs, {
        "method": method,
        "budgets": budgets.tolist(),
        "lower": curve.lower.tolist(),
        "upper": curve.upper.tolist(),
        "spent": spent,
        "x": "leakage budget L, nats",
        "y": "least expected distortion",
        "spent name": "leakage of the design",
    }


def draw_design(data: Data) -> Figure:
    """Draw a trade-off, and on the right how much of each budget its design uses."""
    figure, axes = panels(2, width=3.6)
    x = data["budgets"]
    axes[0].fill_between(x, data["lower"], data["upper"], color=COLORS[0], alpha=0.3)
    axes[0].plot(x, data["upper"], color=COLORS[0], marker=".")
    method = data["method"]
    axes[0].plot(method["budgets"], method["value"], "x", color=COLORS[2], label="method")
    axes[0].plot(method["budgets"], method["repaired"], "+", color=COLORS[3], label="repaired")
    axes[1].plot(method["budgets"], method["used"], "x", color=COLORS[2], label="method")
    axes[0].set(xlabel=data["x"], ylabel=data["y"], ylim=(0, None))
    axes[0].legend(frameon=False)
    axes[1].plot([0, max(x)], [0, max(x)], color="0.3", ls="--", lw=0.8, label="the budget")
    axes[1].plot(x, data["spent"], ".", color=COLORS[1], label="used")
    axes[1].set(xlabel=data["x"], ylabel=data["spent name"])
    axes[1].legend(frameon=False)
    return figure


ITEMS = [
    Item(
        "leakage-figure-1",
        "the saddle: information against the distributions of a record and of the others given it",
        figure_1,
        draw_figure_1,
    ),
    floors_item("leakage-figure-3"),
    Item(
        "leakage-table-3",
        "leakage of two mechanisms for a parity of 4 bits",
        table_3,
        note="What is printed for b > 0 are local optima, up to nine times too small.",
    ),
    Item("leakage-section-7.2", "printed flips, entropies and capacities", section_7),
    Item(
        "leakage-figure-4",
        "capacity of three mechanisms for a parity",
        figure_4,
        draw_figure_4,
        note="Most of the six floors of the published picture make no difference.",
    ),
    Item(
        "leakage-figure-5",
        "distortion of three mechanisms for a parity",
        distortion_curves,
        draw_distortion,
        note="All three are binary symmetric channels. At equal audited leakage (the marks), and "
        "at their exact level of differential privacy (dotted), they are one and the same curve; "
        "the published comparison takes the nominal level of two of them, and the leakage of the "
        "third.",
    ),
    Item(
        "leakage-figure-6",
        "least leakage for a distortion budget, parity of 3 bits, b = 1.5",
        figure_6,
        draw_design,
        note="The symmetric channel is optimal, and uses its budget up; the published designs "
        "stay below theirs. The crosses are Algorithm 6, with a line search that makes steps, and "
        "its mechanisms made to meet the budget. It misses the budget on either side, and its "
        "mechanisms leak far more than to the adversary against whom they were designed.",
    ),
    Item(
        "leakage-figure-7",
        "least distortion for a leakage budget, parity of 2 bits, b = 0",
        figure_7,
        draw_design,
        note="A smooth curve, p*(L): the zigzag of the published one is the method's. The crosses "
        "are Algorithm 9, rebuilt, with a line search that makes steps, and its mechanisms made to "
        "meet the budget, which the method exceeds.",
    ),
]
