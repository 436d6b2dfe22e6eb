"""HAMMING: Tables I to IV, Figures 4 to 8, and pictures of the simplex like Figures 1 to 3 and 9.

The paper prints curves and no numbers; what is compared are its formulas, where it has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from cvxleak.core.validation import Array
from cvxleak.local_dp import (
    class_one_information,
    class_one_leakage,
    class_three_leakage,
    class_two_distortions,
    class_two_leakage,
    class_two_mechanism,
    classify,
    colors,
    distortion_thresholds,
    fold,
    min_information,
    min_local_dp,
)
from cvxleak.papers.gallery.drawing import COLORS, foot, panels
from cvxleak.papers.gallery.item import Computed, Data, Item, Pair, pair
from cvxleak.problem import Bound
from cvxleak.sources import SourceSet

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ITEMS"]

Laws = Sequence[Sequence[float]]
T = TypeVar("T")

TABLE_I = [0.7, 0.15, 0.06, 0.04, 0.03, 0.02]
TABLE_II = [
    [0.3, 0.2, 0.15, 0.08, 0.07, 0.06, 0.05, 0.04, 0.03, 0.02],
    [0.35, 0.16, 0.12, 0.10, 0.09, 0.09, 0.05, 0.02, 0.01, 0.01],
]
SETS = {"a": 1, "b": 2, "c": 3}


def _swapped(law: Sequence[T], j: int) -> list[T]:
    moved = list(law)
    moved[0], moved[j] = moved[j], moved[0]
    return moved


def class_three(laws: Laws, name: str) -> SourceSet:
    """Return the distributions, also with first entry and later ones swapped (Tables III, IV)."""
    return SourceSet([_swapped(law, j) for j in range(SETS[name] + 1) for law in laws])


def tables() -> Computed:
    """Which class the sets of Tables I to IV are of."""
    pairs: list[Pair] = []
    kinds = {}
    for title, laws in (("I, III", [TABLE_I]), ("II, IV", TABLE_II)):
        found = [classify(laws).kind, *(classify(class_three(laws, name)).kind for name in SETS)]
        kinds[title] = found
        for name, kind, printed in zip(("itself", *SETS), found, (2, 3, 3, 3), strict=True):
            pairs.append(
                pair(f"Table {title}, {name}: class", len(kind), float(printed), tolerance=0.0)
            )
        for k, law in enumerate(laws):
            pairs.append(pair(f"Table {title}: sum of distribution {k + 1}", sum(law), 1.0))
    return pairs, {"classes": kinds, "Table I": TABLE_I, "Table II": TABLE_II}


def _leakage_curves(laws: Laws, points: int) -> Computed:
    size = len(laws[0])
    last = float(distortion_thresholds(laws)[size - 1])
    top = 1 - 1 / size
    budgets = np.unique(np.append(np.linspace(0.02, top, points), [last - 1e-6, last + 1e-6, top]))
    bounds = {"II": [min_local_dp(laws, d) for d in budgets]}
    theorem: list[Pair] = []
    for name in SETS:
        sources = class_three(laws, name)
        bounds[f"III {name}"] = [min_local_dp(sources, d) for d in budgets]
        theorem += _theorem_3(laws, name, budgets, bounds[f"III {name}"])
    curves = {"I": [class_one_leakage(size, d) for d in budgets]}
    curves |= {name: [bound.upper for bound in row] for name, row in bounds.items()}
    pairs = theorem
    for k in range(0, len(budgets), 6):
        printed = class_two_leakage(laws, float(budgets[k]))
        name = f"Class II, D = {budgets[k]:.3f}: certified, Theorem 2 with the order"
        pairs.append(pair(name, bounds["II"][k], printed, tolerance=1e-7))
    small = float(np.min(budgets))
    for name, row in bounds.items():
        pairs.append(
            pair(
                f"{name}, D = {small:g}: as if nothing were known (Theorem 2)",
                row[0],
                class_one_leakage(size, small),
                tolerance=1e-7,
            )
        )
    widest = max(bound.upper - bound.lower for row in bounds.values() for bound in row)
    return pairs, {"budgets": budgets.tolist(), "curves": curves, "widest bracket": widest}


def _theorem_3(laws: Laws, name: str, budgets: Array, exact: list[Bound]) -> list[Pair]:
    """Compare Theorem 3's bounds with the exact values."""
    sets = fold(class_three(laws, name))
    values = np.array([bound.upper for bound in exact])
    upper = np.array([class_three_leakage(sets.union, d, sets.folding) for d in budgets])
    # One order for each distribution: the exchanges, which fold the set onto the table.
    exchanges = [_swapped(range(len(laws[0])), j) for j in range(SETS[name] + 1)]
    once = np.array([class_three_leakage(laws, d, exchanges) for d in budgets])
    return [
        pair(
            f"III {name}: by how much Theorem 3's upper bound falls short: not",
            max(float((values - upper).max()), 0.0),
            0.0,
        ),
        pair(
            f"III {name}: Theorem 3's bounds, with one order for each distribution, off the exact "
            "value",
            float(np.abs(once - values).max()),
            0.0,
        ),
    ]


def figure_4() -> Computed:
    """Least epsilon for the sets of Tables I and III."""
    return _leakage_curves([TABLE_I], 40)


def figure_5() -> Computed:
    """Least epsilon for the sets of Tables II and IV."""
    return _leakage_curves(TABLE_II, 40)


def _both(sources: SourceSet, points: int) -> tuple[Array, list, list]:
    budgets = np.linspace(0.05, 0.89, points)
    return (
        budgets,
        [min_local_dp(sources, d) for d in budgets],
        [min_information(sources, d) for d in budgets],
    )


def figure_6() -> Computed:
    """Least epsilon and least information for Class I, ten outcomes."""
    budgets, private, informed = _both(SourceSet.box(np.zeros(10), np.ones(10)), 22)
    pairs = []
    for d, dp, mi in zip(budgets, private, informed, strict=True):
        pairs.append(pair(f"DP, D = {d:.2f}", dp, class_one_leakage(10, d), tolerance=1e-7))
        pairs.append(
            pair(f"information, D = {d:.2f}", mi, class_one_information(10, d), None, 1e-6)
        )
    return [*pairs, *_curvature(private, informed)], _two_curves(budgets, private, informed)


def figure_7() -> Computed:
    """Least epsilon and least information for the hull of Table II."""
    hull = SourceSet.hull(TABLE_II)
    budgets, private, informed = _both(hull, 22)
    pairs = []
    for d, dp, mi in zip(budgets, private, informed, strict=True):
        known = class_two_leakage(hull, float(d))
        pairs.append(pair(f"DP, D = {d:.2f}: certified, Theorem 2", dp, known, None, 1e-7))
        over = max(mi.upper - dp.lower, 0.0)
        pairs.append(pair(f"by how much information exceeds it, D = {d:.2f}: not", over, 0.0))
    return [*pairs, *_curvature(private, informed)], _two_curves(budgets, private, informed)


def _curvature(private: list[Bound], informed: list[Bound]) -> list[Pair]:
    """Compare values at equal steps with the means of their neighbors."""

    def above(curve: list[Bound]) -> float:
        trios = zip(curve, curve[1:], curve[2:], strict=False)
        return max(b.lower - (a.upper + c.upper) / 2 for a, b, c in trios)

    return [
        pair("by how much the information is not convex in D: not", max(above(informed), 0.0), 0.0),
        pair("differential privacy is not: yes", float(above(private) > 0), 1.0),
    ]


def _two_curves(budgets: Array, private: list, informed: list) -> Data:
    return {
        "budgets": budgets.tolist(),
        "curves": {
            "differential privacy": [bound.upper for bound in private],
            "mutual information": [bound.upper for bound in informed],
        },
    }


def draw_curves(data: Data) -> Figure:
    """Draw leakage against distortion."""
    figure, (ax,) = panels(1, width=5)
    for (name, values), color in zip(data["curves"].items(), COLORS, strict=False):
        ax.plot(data["budgets"], values, color=color, label=name)
    ax.set(xlabel="worst-case Hamming distortion D", ylabel="least leakage, nats", ylim=(0, None))
    ax.legend(frameon=False)
    return figure


def figure_8() -> Computed:
    """Color the entries of optimal mechanisms for Table I, by the critical pairs they are in."""
    pairs: list[Pair] = []
    drawn = {}
    for budget in (0.05, 0.15, 0.25):
        found, distortions = class_two_distortions([TABLE_I], budget)
        mechanism = class_two_mechanism(distortions)
        colored = colors(mechanism)
        kept = [k for k in range(len(mechanism)) if colored[0, k] != "-"]
        diagonal = [colored[k, k] for k in kept]
        others = [colored[i, j] for i in range(len(mechanism)) for j in kept if i != j]
        at = f"D = {budget:g}"
        pairs += [
            pair(
                f"least ε, {at}: certified, the mechanism",
                min_local_dp([TABLE_I], budget),
                found,
                None,
                1e-7,
            ),
            pair(
                f"diagonal entries beyond one that are not black, {at}",
                max(diagonal.count("R") + diagonal.count("W") - 1, 0),
                0.0,
            ),
            pair(f"black entries off the diagonal, {at}", others.count("B"), 0.0),
        ]
        drawn[f"{at}: {len(mechanism) - len(kept)} columns of zeros"] = colored.tolist()
    return pairs, {"colors": drawn}


def draw_figure_8(data: Data) -> Figure:
    """Draw each mechanism as a square of colored entries."""
    figure, axes = panels(len(data["colors"]), width=2.3, height=2.9)
    shades = {"B": "black", "R": COLORS[1], "W": "white", "-": "0.85"}
    meaning = {
        "B": "black: the larger of a critical pair",
        "R": "red: the smaller",
        "W": "white: neither",
        "-": "zero",
    }
    for ax, (title, rows) in zip(axes, data["colors"].items(), strict=True):
        for i, row in enumerate(rows):
            for j, name in enumerate(row):
                ax.fill(
                    [j, j + 1, j + 1, j],
                    [i, i, i + 1, i + 1],
                    facecolor=shades[name],
                    edgecolor="0.4",
                    lw=0.6,
                    label=meaning[name],
                )
        ticks = np.arange(len(rows)) + 0.5
        ax.set(xticks=ticks, yticks=ticks, aspect="equal", xlim=(0, len(rows)), ylim=(len(rows), 0))
        ax.set_xticklabels(range(1, len(rows) + 1))
        ax.set_yticklabels(range(1, len(rows) + 1))
        ax.tick_params(length=0)
        ax.set_title(title, fontsize=8)
        ax.set_xlabel("output")
    axes[0].set_ylabel("input")
    foot(figure, axes, 4)
    return figure


def simplex() -> Computed:
    """Outline sets of three outcomes: one of each class; a set, folded and unfolded again."""
    drawn = {
        "Class I": SourceSet.box([0.2] * 3, [0.5] * 3),
        "Class II": SourceSet.polytope([[-1, 1, 0], [0, -1, 1], [-1, 0, 0]], [-0.2, -0.05, -0.55]),
        "Class III": SourceSet.hull([[0.1, 0.55, 0.35], [0.05, 0.4, 0.55], [0.1, 0.3, 0.6]]),
    }
    pairs = [
        pair(f"{name}: class", len(classify(sources).kind), float(len(name) - 6), tolerance=0.0)
        for name, sources in drawn.items()
    ]
    corners = [[0.22, 0.63, 0.15], [0.3, 0.48, 0.22], [0.5, 0.15, 0.35], [0.75, 0.15, 0.1]]
    whole = SourceSet.hull(corners)
    sets = fold(whole)
    if sets.intersection is None or sets.lower_set is None:
        raise RuntimeError("the orders of this set have distributions in common")
    pairs.append(pair("orders of the set of Figure 2", len(sets.folding), 3.0))
    for name, inner, outer in (
        ("(51a) exceeds the set", sets.lower_set, whole),
        ("the set exceeds (51b)", whole, sets.upper_set),
    ):
        costs = [np.eye(3)[i] - np.eye(3)[j] for i in range(3) for j in range(3) if i != j]
        over = max(inner.worst(c)[0] - outer.worst(c)[0] for c in costs)
        pairs.append(pair(f"by how much {name}: not", max(over, 0.0), 0.0))
    folded = {"union": sets.union, "intersection": sets.intersection}
    unfolded = {"unfolded union": sets.upper_set, "unfolded intersection": sets.lower_set}
    return pairs, {
        "Figure 1: three classes": {name: _outlines(s) for name, s in drawn.items()},
        "Figures 2, 3: a set, folded": {
            name: _outlines(s) for name, s in {"the set": whole, **folded}.items()
        },
        "Figure 9: unfolded": {name: _outlines(s) for name, s in unfolded.items()},
    }


def _corner(laws: ArrayLike) -> Array:
    """Return the place of distributions on three outcomes in the triangle."""
    return np.atleast_2d(np.asarray(laws, dtype=float)) @ np.array(
        [[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]]
    )


def _outlines(sources: SourceSet) -> list[list[list[float]]]:
    """Return the outline, or the points, of each part of a set."""
    outlines = []
    turns = np.linspace(0, 2 * np.pi, 181)
    costs = np.column_stack([np.cos(turns), np.sin(turns)]) @ _corner(np.eye(3)).T
    for part in sources.parts:
        corners = [part.points] if len(part.points) else []
        # A polytope's shadow: its extreme points in many directions.
        corners += [np.array([p.support(c).point for c in costs]) for p in part.polytopes]
        places = _corner(np.unique(np.vstack(corners).round(12), axis=0))
        around = np.arctan2(*(places - places.mean(axis=0)).T)
        outlines.append(places[np.argsort(around)].tolist())
    return outlines


def draw_simplex(data: Data) -> Figure:
    """Draw the sets, with the lines that part the six orders."""
    figure, axes = panels(3, width=3.0)
    outline = _corner(np.eye(3)[[0, 1, 2, 0]])
    for ax, (title, sets) in zip(axes, data.items(), strict=True):
        ax.plot(*outline.T, color="0.2", lw=1)
        for i in range(3):
            middle = np.full(3, 0.5)
            middle[i] = 0.0
            ax.plot(*_corner([np.eye(3)[i], middle]).T, color="0.7", lw=0.6)
        for place, (name, outlines) in enumerate(sets.items()):
            for k, points in enumerate(outlines):
                x, y = np.array(points).T
                label = name if k == 0 else None
                ax.fill(x, y, color=COLORS[place], alpha=0.45, label=label)
        for name, (x, y), shift in zip(
            "123", _corner(np.eye(3)), ((0, -9), (0, -9), (24, 0)), strict=True
        ):
            ax.annotate(
                f"$P_{name}$ = 1",
                (x, y),
                xytext=shift,
                textcoords="offset points",
                ha="center",
                va="center",
                fontsize=8,
            )
        ax.set_aspect("equal")
        ax.axis("off")
        ax.set_title(title)
        ax.legend(frameon=False, loc="upper left", bbox_to_anchor=(-0.05, 1), fontsize=8)
    return figure


ITEMS = [
    Item("hamming-tables", "the classes of the sets of Tables I to IV", tables),
    Item(
        "hamming-figure-1",
        "source sets in the simplex, and folding (Figures 1, 2, 3 and 9)",
        simplex,
        draw_simplex,
        note="The paper's sketches have no coordinates; these sets are ours.",
    ),
    Item(
        "hamming-figure-4",
        "least ε against distortion, six outcomes",
        figure_4,
        draw_curves,
        note="Classes II and III are proved values; the paper has bounds for Class III, one of "
        "them false in general.",
    ),
    Item(
        "hamming-figure-5",
        "least ε against distortion, ten outcomes",
        figure_5,
        draw_curves,
    ),
    Item(
        "hamming-figure-6",
        "differential privacy and information, Class I, ten outcomes",
        figure_6,
        draw_curves,
    ),
    Item(
        "hamming-figure-7",
        "differential privacy and information, Table II",
        figure_7,
        draw_curves,
    ),
    Item(
        "hamming-figure-8",
        "which entries of an optimal mechanism are critical, Table I",
        figure_8,
        draw_figure_8,
        note="The paper sketches the structure; these are the optimal mechanisms at three budgets.",
    ),
]
