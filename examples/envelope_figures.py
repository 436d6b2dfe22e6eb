"""The numbers and figures of the paper on information leakage envelopes, with the exact envelope.

Run as a program, it prints every number of Examples 1 to 4 beside what is printed there, and a
table of each panel of Figure 2. With a folder as argument it also draws Figures 1 and 2 (needs
matplotlib).

Figure 2 bounds the envelope of randomized response from both sides. Here the exact envelope is
added: on panels (a) to (d) it is the lower bound itself, as the paper conjectures.
"""

import math
import sys
from pathlib import Path

import numpy as np

from cvxleak.measures import (
    binary_envelope,
    event_leakage,
    four_level_prior,
    pml,
    pml_failure_probability,
    pml_left_quantile,
    pml_right_quantile,
    psi_1,
    psi_2,
    response_binary_envelope,
    response_condition,
    response_dp_epsilon,
    response_envelope,
    response_lower_bound,
    response_upper_bound,
)
from cvxleak.mechanisms import randomized_response
from cvxleak.model import Channel, Prior
from cvxleak.problems.envelope import pml_envelope

FAIR = Prior.uniform(4)
EXAMPLE_1 = Channel([[0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5], [0, 0.2, 0.4, 0.4], [0.2, 0, 0.4, 0.4]])
MERGING = Channel([[1, 0], [0, 1], [1, 0], [0, 1]])
BIT = Prior.uniform(2)
EXAMPLE_3 = Channel([[0.9, 0, 0.1], [0, 0.9, 0.1]])

PANELS = {
    "a": Prior([0.2, 0.3, 0.5]),
    "b": Prior([0.1, 0.2, 0.2, 0.2, 0.3]),
    "c": four_level_prior(12, 0.1),
    "d": four_level_prior(20, 0.1),
}
EPSILON = 1.0

Pairs = list[tuple[float, float]]


def example_1() -> Pairs:
    """Two rare outputs give all away; merging spoils what holds with probability .9."""
    leakage = pml(FAIR, EXAMPLE_1)
    after = EXAMPLE_1.then(MERGING)
    low = math.log(10 / 9)
    return [
        (leakage[0], math.log(4)),
        (leakage[1], math.log(4)),
        (leakage[2], low),
        (leakage[3], low),
        (EXAMPLE_1.output(FAIR).probabilities[0], 1 / 20),
        (EXAMPLE_1.output(FAIR).probabilities[1], 1 / 20),
        (pml_failure_probability(FAIR, EXAMPLE_1, low), 0.1),
        (after.output(FAIR).probabilities[0], 0.5),
        (pml(FAIR, after)[0], math.log(6 / 5)),
        (pml(FAIR, after)[1], math.log(6 / 5)),
    ]


def theorem_1() -> Pairs:
    """psi_1 rises by merging; psi_2 lies on both sides of the failure probability."""
    low = math.log(10 / 9)
    return [
        (psi_1(FAIR, EXAMPLE_1, low), 13 / 180),
        (psi_1(FAIR, EXAMPLE_1.then(MERGING), low), 2 / 27),
        (psi_2(FAIR, EXAMPLE_1, math.log(3)), 0.05),
        (psi_2(FAIR, EXAMPLE_1, low), 13 / 90),
        (pml_failure_probability(FAIR, EXAMPLE_1, math.log(3)), 0.1),
    ]


def example_2() -> Pairs:
    """The two quantiles at .1 (Figure 1), and the envelope, which is the larger one."""
    return [
        (float(pml_left_quantile(FAIR, EXAMPLE_1, 0.1)), math.log(10 / 9)),
        (float(pml_right_quantile(FAIR, EXAMPLE_1, 0.1)), math.log(4)),
        (pml_envelope(FAIR, EXAMPLE_1, 0.1).upper, math.log(4)),
        (pml_envelope(FAIR, EXAMPLE_1, 0.01).upper, math.log(4)),
    ]


def example_3() -> Pairs:
    """Two events leak a bit each, and their union nothing."""
    output = EXAMPLE_3.output(BIT).probabilities
    return [
        *zip(output, (0.45, 0.45, 0.1), strict=True),
        (event_leakage(BIT, EXAMPLE_3, [1, 0, 0]), math.log(2)),
        (event_leakage(BIT, EXAMPLE_3, [0, 1, 0]), math.log(2)),
        (event_leakage(BIT, EXAMPLE_3, [1, 1, 0]), 0.0),
    ]


def example_4() -> Pairs:
    """A larger event can leak more, or less."""
    return [
        (event_leakage(BIT, EXAMPLE_3, [0, 0, 1]), 0.0),
        (event_leakage(BIT, EXAMPLE_3, [1, 0, 1]), math.log(1 / 0.55)),
        (event_leakage(BIT, EXAMPLE_3, [1, 0, 0]), math.log(2)),
    ]


def figure_1() -> tuple[np.ndarray, np.ndarray]:
    """Return t and the distribution function of the leakage at t."""
    t = np.linspace(0, 1.6, 321)
    return t, np.array([1 - pml_failure_probability(FAIR, EXAMPLE_1, x) for x in t])


def figure_2(panel: str, delta: np.ndarray) -> dict[str, np.ndarray]:
    """Return the curves of a panel, and what the paper leaves open: the exact envelope."""
    prior = PANELS[panel]
    channel = randomized_response(len(prior.labels), EPSILON)
    return {
        "upper bound": response_upper_bound(prior, EPSILON, delta),
        "exact envelope": response_envelope(prior, EPSILON, delta),
        "lower bound": response_lower_bound(prior, EPSILON, delta),
        "event envelope": response_binary_envelope(prior, EPSILON, delta),
        "binary envelope (13)": binary_envelope(prior, channel, delta),
        "approximate DP": response_dp_epsilon(len(prior.labels), EPSILON, delta),
    }


def draw(folder: Path) -> None:
    """Write Figures 1 and 2 as PDF files."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots()
    axes.step(*figure_1(), where="post")
    for quantile in (pml_left_quantile, pml_right_quantile):
        axes.axvline(float(quantile(FAIR, EXAMPLE_1, 0.1)), linestyle="--")
    axes.set(xlabel="t, nats", ylabel="P(leakage <= t)")
    figure.savefig(folder / "figure_1.pdf")
    plt.close(figure)
    delta = np.linspace(0.002, 0.998, 499)
    for panel in PANELS:
        figure, axes = plt.subplots()
        for name, values in figure_2(panel, delta).items():
            axes.plot(delta, values, label=name)
        axes.set(xlabel="delta", ylabel="epsilon, nats", title=f"Figure 2 ({panel})")
        axes.legend()
        figure.savefig(folder / f"figure_2{panel}.pdf")
        plt.close(figure)


def main() -> Pairs:
    """Print the comparison; return all pairs (computed, printed)."""
    pairs: Pairs = []
    for part in (example_1, theorem_1, example_2, example_3, example_4):
        found = [(float(computed), printed) for computed, printed in part()]
        print(f"{part.__name__}: " + ", ".join(f"{c:.6f} ({p:.6f})" for c, p in found))
        pairs += found
    delta = np.array([0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95])
    for panel, prior in PANELS.items():
        print(f"\nFigure 2 ({panel})" + "".join(f"{d:9.2f}" for d in delta))
        curves = figure_2(panel, delta)
        for name, values in curves.items():
            print(f"{name:21}" + "".join(f"{value:9.5f}" for value in values))
        channel = randomized_response(len(prior.labels), EPSILON)
        for d, exact in zip(delta, curves["exact envelope"], strict=True):
            pairs.append((exact, pml_envelope(prior, channel, float(d)).upper))
        # Where the condition holds the lower bound is the envelope.
        met = response_condition(prior, EPSILON, delta)
        pairs += list(zip(curves["lower bound"][met], curves["exact envelope"][met], strict=True))
    return pairs


if __name__ == "__main__":
    main()
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]))
