"""HAMMING's Tables I to IV, Figures 4 to 7, and pictures of the simplex like Figures 1 to 3 and 9.

``python examples/source_set_figures.py`` prints the curves' values; with a folder as argument it
also draws them there (needs matplotlib). Every value is proved to 1e-9 nats (differential privacy)
or 1e-7 nats (mutual information); the paper prints curves, no numbers.
"""

import sys
from pathlib import Path

import numpy as np

from cvxleak.model import SourceSet
from cvxleak.problems import classify, min_information, min_local_dp
from cvxleak.problems.local_dp import class_one_information, class_one_leakage, fold

TABLE_I = [0.7, 0.15, 0.06, 0.04, 0.03, 0.02]
TABLE_II = [
    [0.3, 0.2, 0.15, 0.08, 0.07, 0.06, 0.05, 0.04, 0.03, 0.02],
    [0.35, 0.16, 0.12, 0.10, 0.09, 0.09, 0.05, 0.02, 0.01, 0.01],
]
SETS = {"a": 1, "b": 2, "c": 3}


def swapped(law, j):
    law = list(law)
    law[0], law[j] = law[j], law[0]
    return law


def class_three(laws, name):
    """Tables III and IV: the laws, and each with its first entry swapped with the next ones."""
    return SourceSet([swapped(law, j) for j in range(SETS[name] + 1) for law in laws])


def leakage_curves(laws, budgets):
    """Figures 4 (Table I) and 5 (Table II): least epsilon for Class I, II, III a, b, c."""
    size = len(laws[0])
    curves = {"I": [class_one_leakage(size, D) for D in budgets]}
    curves["II"] = [min_local_dp(laws, D).upper for D in budgets]
    for name in SETS:
        sources = class_three(laws, name)
        curves[f"III {name}"] = [min_local_dp(sources, D).upper for D in budgets]
    return curves


def both_leakages(sources, budgets):
    """Figures 6 (Class I, M = 10) and 7 (Table II): least epsilon and least information."""
    return {
        "DP": [min_local_dp(sources, D).upper for D in budgets],
        "MI": [min_information(sources, D).upper for D in budgets],
    }


def draw_curves(path, budgets, curves, title):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots()
    for name, values in curves.items():
        axes.plot(budgets, values, label=name)
    axes.set(xlabel="worst-case Hamming distortion D", ylabel="leakage (nats)", title=title)
    axes.legend()
    figure.savefig(path)
    plt.close(figure)


def corner(laws):
    """Return the place of laws on three outcomes in the triangle."""
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
    return np.atleast_2d(laws) @ corners


def draw_simplex(path, sets, title):
    """Draw source sets on three outcomes, with the lines that part the six orders."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots()
    outline = corner(np.eye(3)[[0, 1, 2, 0]])
    axes.plot(*outline.T, color="black")
    for i in range(3):
        middle = np.full(3, 0.5)
        middle[i] = 0.0
        axes.plot(*corner([np.eye(3)[i], middle]).T, color="gray", linewidth=0.5)
    for name, sources in sets.items():
        for k, part in enumerate(sources.parts):
            vertices = [part.points] if len(part.points) else []
            for body in part.polytopes:
                # A polytope's shadow: its extreme points in many directions.
                turns = np.linspace(0, 2 * np.pi, 181)
                costs = np.column_stack([np.cos(turns), np.sin(turns)]) @ corner(np.eye(3)).T
                vertices.append(np.array([body.support(cost).point for cost in costs]))
            places = corner(np.vstack(vertices))
            around = np.arctan2(*(places - places.mean(axis=0)).T)
            label = name if k == 0 else None
            axes.fill(*places[np.argsort(around)].T, alpha=0.5, label=label)
            axes.plot(*places.T, ".", markersize=3)
    axes.set_aspect("equal")
    axes.axis("off")
    axes.set_title(title)
    axes.legend()
    figure.savefig(path)
    plt.close(figure)


def pictures(folder):
    """Draw all figures into a folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    six, ten = np.linspace(0.02, 0.83, 60).tolist(), np.linspace(0.02, 0.89, 60).tolist()
    draw_curves(folder / "figure_4.svg", six, leakage_curves([TABLE_I], six), "M = 6")
    draw_curves(folder / "figure_5.svg", ten, leakage_curves(TABLE_II, ten), "M = 10")
    anything = SourceSet.box(np.zeros(10), np.ones(10))
    few = np.linspace(0.05, 0.89, 12).tolist()
    draw_curves(folder / "figure_6.svg", few, both_leakages(anything, few), "Class I, M = 10")
    hull = SourceSet.hull(TABLE_II)
    draw_curves(folder / "figure_7.svg", few, both_leakages(hull, few), "Table II")
    classes = {
        "Class I": SourceSet.box([0.2] * 3, [0.5] * 3),
        "Class II": SourceSet.polytope([[-1, 1, 0], [0, -1, 1], [-1, 0, 0]], [-0.2, -0.05, -0.55]),
        "Class III": SourceSet.hull([[0.1, 0.55, 0.35], [0.05, 0.4, 0.55], [0.1, 0.3, 0.6]]),
    }
    draw_simplex(folder / "figure_1.svg", classes, "HAMMING Figure 1")
    points = SourceSet([[0.5, 0.3, 0.2], [0.3, 0.5, 0.2], [0.6, 0.3, 0.1]])
    sets = fold(points)
    folded = {"union": SourceSet(sets.union), "intersection": SourceSet(sets.intersection)}
    draw_simplex(folder / "figure_3.svg", folded, "folded, HAMMING Figure 3")
    unfolded = {"upper": sets.upper_set, "P": points}
    draw_simplex(folder / "figure_9.svg", unfolded, "unfolded, HAMMING Figure 9")


def main() -> list[tuple[float, float]]:
    """Print the figures' values; return them beside those of the exact linear program."""
    pairs = []
    six = [0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.29]
    expected = [5.501258, 4.553877, 3.806662, 3.238678, 2.677279, 2.014903, 1.623623]
    curves = leakage_curves([TABLE_I], [*six, 0.3])
    pairs += zip(curves["II"], expected, strict=False)
    pairs += [
        (curves[f"III {name}"][-1], value)
        for name, value in zip(SETS, (1.54045, 1.89712, 2.12823), strict=True)
    ]
    ten = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.65]
    expected = [4.394449, 3.571096, 2.975530, 2.445686, 1.875141, 1.246532, 0.847298]
    more = leakage_curves(TABLE_II, ten)
    pairs += zip(more["II"], expected, strict=True)
    for title, budgets, table in (("M = 6", [*six, 0.3], curves), ("M = 10", ten, more)):
        print(f"{title:10}" + "".join(f"{D:8.2f}" for D in budgets))
        for name, values in table.items():
            print(f"  {name:8}" + "".join(f"{value:8.4f}" for value in values))
    anything = SourceSet.box(np.zeros(10), np.ones(10))
    for title, sources in (("Class I", anything), ("Table II", SourceSet.hull(TABLE_II))):
        values = both_leakages(sources, [0.2, 0.5])
        print(f"{title}, M = 10, at D = .2 and .5: {values}")
        if title == "Class I":
            pairs += [
                (v, class_one_information(10, D))
                for v, D in zip(values["MI"], (0.2, 0.5), strict=True)
            ]
            pairs += [
                (v, class_one_leakage(10, D)) for v, D in zip(values["DP"], (0.2, 0.5), strict=True)
            ]
    kinds = [classify(class_three([TABLE_I], name)).kind for name in SETS]
    print("Table III a, b, c are of Class", ", ".join(kinds))
    return pairs


if __name__ == "__main__":
    main()
    if len(sys.argv) > 1:
        pictures(sys.argv[1])
