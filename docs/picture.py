"""Draws figures/audit.svg, the picture of the README and of the first page.

python docs/picture.py

On the left what a rounded count can tell about one person, over the adversary's uncertainty; on
the right a published case: the proved bounds, and the values that a local search had found.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cvxleak import Mechanism
from cvxleak.audit import leakage_curve
from cvxleak.core.validation import Array
from cvxleak.mechanisms import laplace_threshold, random_rounding
from cvxleak.queries import count, parity

INK, RED = "#1f4e79", "#b03a2e"
FIGURE = Path(__file__).parent / "figures" / "audit.svg"

PRINTED = {0.0: 0.079, 0.5: 0.062, 1.0: 0.041, 1.5: 0.022, 2.0: 0.009, 2.77: 0.0}
"""Wu et al. (2026), Table 3, n = 4, Laplace mechanism, epsilon = 1."""


def draw(axis: Axes, mechanism: Mechanism, floors: Array) -> None:
    curve = leakage_curve(mechanism, floors)
    axis.fill_between(floors, curve.lower, curve.upper, color=INK, linewidth=0)
    axis.plot(floors, curve.upper, color=INK, label="lower and upper bound, both proved")
    axis.set(xlabel="uncertainty of the adversary, at least (nats)")
    axis.spines[["top", "right"]].set_visible(False)


def figure(path: Path = FIGURE, people: int = 20, points: int = 121) -> Figure:
    """Draw both curves into a file."""
    with rc_context({"svg.hashsalt": "cvxleak", "font.size": 9.5}):
        drawing = Figure(figsize=(8.4, 3.3), layout="constrained")
        left, right = drawing.subplots(1, 2)

        most = people * math.log(2)
        rounding = Mechanism(count(people), random_rounding(people, 3))
        draw(left, rounding, np.linspace(most - 2, most, points))
        left.axhline(math.log(2), color="0.5", linewidth=0.8, linestyle=":")
        left.text(most, 0.7, "log 2: the record is disclosed", ha="right", va="bottom")
        left.annotate(
            "knows nothing", (most, 0), (most - 0.9, 0.06), arrowprops={"arrowstyle": "->"}
        )
        left.set(title=f"Count of {people} people, rounded to base 3", ylim=(0, 0.78))
        left.set_ylabel("leakage about one record (nats)")
        left.locator_params(axis="x", nbins=5)

        noisy = Mechanism(parity(4), laplace_threshold(1.0))
        draw(right, noisy, np.linspace(0, 4 * math.log(2), points))
        right.plot(list(PRINTED), list(PRINTED.values()), "x", color=RED, label="published values")
        right.set(title="Parity of 4 records, Laplace noise, ε = 1", ylim=(0, 0.112))
        right.legend(frameon=False, loc="upper right", fontsize="small", borderaxespad=0)

        path.parent.mkdir(exist_ok=True)
        drawing.savefig(path, metadata={"Date": None})
    return drawing


if __name__ == "__main__":
    figure()
