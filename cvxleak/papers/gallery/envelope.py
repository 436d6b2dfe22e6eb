"""ENVELOPE: its Examples 1 to 4 and its figures, with the exact envelope that it leaves open."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from cvxleak.envelope import (
    four_level_prior,
    pml_envelope,
    quantile_attack,
    response_condition,
    response_dp_epsilon,
    response_envelope,
    response_event_envelope,
    response_lower_bound,
    response_upper_bound,
)
from cvxleak.measures import (
    binary_envelope,
    event_leakage,
    pml,
    pml_failure_probability,
    pml_left_quantile,
    pml_right_quantile,
    psi_1,
    psi_2,
)
from cvxleak.mechanisms import randomized_response
from cvxleak.model import Channel, Prior
from cvxleak.papers.gallery.drawing import COLORS, foot, panels
from cvxleak.papers.gallery.item import Computed, Data, Item, Pair, pair

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ITEMS"]

FAIR = Prior.uniform(4)
EXAMPLE_1 = Channel([[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]])
MERGING = Channel([[1, 0], [0, 1], [1, 0], [0, 1]])
LOW = math.log(10 / 9)
BIT = Prior.uniform(2)
EXAMPLE_3 = Channel([[0.9, 0, 0.1], [0, 0.9, 0.1]])
EPSILON = 1.0
PANELS = {
    "a": Prior([0.2, 0.3, 0.5]),
    "b": Prior([0.1, 0.2, 0.2, 0.2, 0.3]),
    "c": four_level_prior(12, 0.1),
    "d": four_level_prior(20, 0.1),
}
CURVES = {
    "upper bound": response_upper_bound,
    "exact envelope": response_envelope,
    "lower bound": response_lower_bound,
    "event envelope": response_event_envelope,
}


def example_1() -> Computed:
    """Two rare outputs reveal everything; merging them worsens the level of probability 0.9."""
    leakage, after = pml(EXAMPLE_1, FAIR), EXAMPLE_1.then(MERGING)
    output = EXAMPLE_1.output(FAIR).probabilities
    return [
        *(
            pair(f"leakage of output {y}", leakage[y], exact)
            for y, exact in enumerate((math.log(4), math.log(4), LOW, LOW))
        ),
        pair("P(output 0)", output[0], 1 / 20),
        pair(
            "P(leakage > log(10/9))",
            pml_failure_probability(EXAMPLE_1, FAIR, LOW),
            "0.1",
            tolerance=1e-9,
        ),
        pair("P(output 0) after merging", after.output(FAIR).probabilities[0], 0.5),
        pair("leakage of output 0 after merging", pml(after, FAIR)[0], math.log(6 / 5)),
        pair("leakage of output 1 after merging", pml(after, FAIR)[1], math.log(6 / 5)),
    ], {}


def theorem_1() -> Computed:
    """psi_1 rises by merging; psi_2 lies on both sides of the failure probability."""
    after = EXAMPLE_1.then(MERGING)
    return [
        pair("psi_1 at log(10/9)", psi_1(EXAMPLE_1, FAIR, LOW), 13 / 180),
        pair("psi_1 after merging", psi_1(after, FAIR, LOW), 2 / 27),
        pair("psi_2 at log 3", psi_2(EXAMPLE_1, FAIR, math.log(3)), "0.05", tolerance=1e-9),
        pair("psi_2 at log(10/9)", psi_2(EXAMPLE_1, FAIR, LOW), 13 / 90),
        pair(
            "P(leakage > log 3)",
            pml_failure_probability(EXAMPLE_1, FAIR, math.log(3)),
            "0.1",
            tolerance=1e-9,
        ),
    ], {}


def example_3() -> Computed:
    """Examples 3 and 4: two events leak a bit each, and their union nothing."""
    events = {
        "first": ([1, 0, 0], math.log(2)),
        "second": ([0, 1, 0], math.log(2)),
        "first or second": ([1, 1, 0], 0.0),
        "third": ([0, 0, 1], 0.0),
        "first or third": ([1, 0, 1], math.log(1 / 0.55)),
    }
    output = EXAMPLE_3.output(BIT).probabilities
    return [
        *(
            pair(f"P(output {y})", p, printed, tolerance=1e-9)
            for y, (p, printed) in enumerate(zip(output, ("0.45", "0.45", "0.1"), strict=True))
        ),
        *(
            pair(f"leakage of the event: {name}", event_leakage(EXAMPLE_3, BIT, event), exact)
            for name, (event, exact) in events.items()
        ),
    ], {}


def figure_1() -> Computed:
    """Compute Example 2: the distribution of the leakage and its two quantiles at 0.1."""
    t = np.linspace(0, 1.6, 161)
    left = float(pml_left_quantile(EXAMPLE_1, FAIR, 0.1))
    right = float(pml_right_quantile(EXAMPLE_1, FAIR, 0.1))
    attack = quantile_attack(FAIR, EXAMPLE_1, 0.1, 1e-8)
    pairs = [
        pair("left quantile at 0.1", left, LOW),
        pair("right quantile at 0.1", right, math.log(4)),
        pair(
            "left quantile at 0.1 after the attack of Theorem 2",
            float(pml_left_quantile(EXAMPLE_1.then(attack), FAIR, 0.1)),
            math.log(4),
            tolerance=1e-6,
        ),
        pair("envelope at 0.1", pml_envelope(FAIR, EXAMPLE_1, 0.1), math.log(4), tolerance=1e-7),
        pair("envelope at 0.01", pml_envelope(FAIR, EXAMPLE_1, 0.01), math.log(4), tolerance=1e-7),
    ]
    steps = [1 - pml_failure_probability(EXAMPLE_1, FAIR, x) for x in t]
    return pairs, {"t": t.tolist(), "P(leakage <= t)": steps, "left": left, "right": right}


def draw_figure_1(data: Data) -> Figure:
    """Draw the steps and the two quantiles."""
    figure, (ax,) = panels(1, width=5)
    ax.step(data["t"], data["P(leakage <= t)"], where="post", color=COLORS[0])
    for side, style in (("left", "--"), ("right", ":")):
        ax.axvline(data[side], color=COLORS[1], ls=style, label=f"{side} quantile at 0.1")
    ax.set(xlabel="t, nats", ylabel="P(leakage ≤ t)", ylim=(0, 1.02))
    ax.legend(frameon=False, loc="center")
    return figure


def figure_2(points: int = 199) -> Computed:
    """Compute the bounds of Theorem 5 for four priors, beside the exact envelope."""
    delta = np.linspace(0.005, 0.995, points)
    some = np.array([0.05, 0.35, 0.65, 0.95])
    pairs: list[Pair] = []
    drawn = {}
    for panel, prior in PANELS.items():
        size = len(prior.labels)
        channel = randomized_response(size, EPSILON)
        for d, exact in zip(some, response_envelope(prior, EPSILON, some), strict=True):
            bound = pml_envelope(prior, channel, float(d))
            name = f"({panel}), envelope at delta {d:g}: certified, closed form"
            pairs.append(pair(name, bound, float(exact), tolerance=1e-7))
        met = delta[np.asarray(response_condition(prior, EPSILON, delta), dtype=bool)]
        if len(met):
            low = response_lower_bound(prior, EPSILON, met)
            gap = np.abs(low - response_envelope(prior, EPSILON, met)).max()
            name = f"({panel}), lower bound off the envelope, where the condition holds"
            pairs.append(pair(name, float(gap), 0.0))
        curves = {name: curve(prior, EPSILON, delta).tolist() for name, curve in CURVES.items()}
        curves["binary envelope (13)"] = np.asarray(binary_envelope(channel, prior, delta)).tolist()
        curves["approximate DP"] = response_dp_epsilon(size, EPSILON, delta).tolist()
        drawn[panel] = curves
    return pairs, {"delta": delta.tolist(), "panels": drawn}


def draw_figure_2(data: Data) -> Figure:
    """Draw the four panels."""
    figure, axes = panels(4, width=2.9, height=3.4)
    styles = ("-", "-", "--", "-.", ":", ":")
    for ax, (panel, curves) in zip(axes, data["panels"].items(), strict=True):
        for (name, values), color, style in zip(curves.items(), COLORS, styles, strict=True):
            ax.plot(data["delta"], values, color=color, ls=style, lw=1.3, label=name)
        ax.set(title=f"({panel})", xlabel="δ", xlim=(0, 1), ylim=(0, None))
    axes[0].set_ylabel("ε, nats")
    foot(figure, axes, 6)
    return figure


ITEMS = [
    Item("envelope-example-1", "leakage of four outputs, and of two after merging", example_1),
    Item("envelope-theorem-1", "two averages that no post-processing respects", theorem_1),
    Item(
        "envelope-figure-1",
        "Example 2: the distribution of the leakage and its quantiles",
        figure_1,
        draw_figure_1,
    ),
    Item("envelope-example-3", "Examples 3 and 4: leakage of events", example_3),
    Item(
        "envelope-figure-2",
        "the envelope of randomized response, ε = 1, for four priors",
        figure_2,
        draw_figure_2,
        note="The exact envelope is new. It is the lower bound itself wherever the paper's "
        "condition holds, as conjectured there.",
    ),
]
