"""DALENIUS: its figures, and the numbers of Remark 3, Section 4, Example 3 and Section 7."""

from __future__ import annotations

import math
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import root_scalar
from scipy.special import betaln

from cvxleak.audit import record_leakage
from cvxleak.capacities import capacity
from cvxleak.measures import entropy, mechanism_distortion, suggested_floor
from cvxleak.mechanisms import (
    binary_symmetric,
    exponential,
    flip_for_leakage,
    gaussian_bound,
    gaussian_peak_capacity,
    gaussian_variance_for_leakage,
    generalized_symmetric,
    laplace_threshold,
    rank_exponential,
    rank_exponential_bound,
    rank_exponential_entropy,
    rank_scale_for_leakage,
    symmetric_capacity,
)
from cvxleak.model import Mechanism, Query, RecordSpace
from cvxleak.papers.gallery.drawing import COLORS, panels
from cvxleak.papers.gallery.item import Computed, Data, Item, Pair, pair
from cvxleak.papers.gallery.parity import (
    distortion_curves,
    draw_distortion,
    floors_item,
    noisy_parity,
    parity_leakage,
)
from cvxleak.queries import from_function, parity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["ITEMS"]

BIT = math.log(2)


def remaining_range(records: float, floor: float) -> float:
    """Return the share of the range of a mean of bits that an adversary can still force.

    Let a bit be fair, and the others a uniform arrangement of k ones where the bit is 0, of k
    zeros where it is 1. Then H(X) = log 2 + log binomial(records - 1, k), and the mean moves by
    1 - 2 k / records. This takes the smallest k (not rounded) whose entropy is the floor, in nats.
    """

    def over(k: float) -> float:
        others = records - 1
        return -betaln(k + 1, others - k + 1) - math.log(others + 1) + BIT - floor

    return 1 - 2 * float(root_scalar(over, bracket=(0.0, (records - 1) / 2)).root) / records


def netflix() -> Computed:
    """Remark 3, and what the floor does for a parity of the ratings and for their mean."""
    floor = suggested_floor(100_480_507)
    small = 1000
    part = floor.floor / floor.whole
    audit = record_leakage(noisy_parity(small, 0.1), part * small * BIT)
    pairs = [
        pair("all of them, bits", floor.whole, "100480507"),
        pair("without the public tenth, bits", floor.unknown, "90432456"),
        pair("b, bits", floor.floor, "67824342"),
        pair("left for the adversary to find, bits", floor.margin, "22608114"),
        pair(
            f"leakage of a parity of {small} ratings, flip 0.1, at the same share of the maximum: "
            "as without a floor",
            audit,
            symmetric_capacity(2, 0.1),
        ),
    ]
    return pairs, {
        "share of the largest entropy": part,
        "floor up to which a parity leaks all it can, bits": floor.whole - 1,
        "range of the mean that is left": remaining_range(floor.whole, floor.floor * BIT),
    }


def hospital() -> Computed:
    """Take Example 3's floor as a share, in units of the entropy of one record."""
    records, known, floor = 1e6, 1e2, 0.9e4
    left = remaining_range(records, floor * BIT)
    # A mean in [0, 1] with the Gaussian noise of (31) for the level 0.1, and what is left of it.
    variance = gaussian_variance_for_leakage(0.5, 0.1)
    whole, part = (gaussian_peak_capacity(peak, variance) for peak in (0.5, left / 2))
    pairs = [
        pair("b as a share of the largest entropy", floor / records, 0.009),
        pair(
            "unknown records if at most 100 are known: not b",
            records - known,
            floor,
            "DALENIUS Example 3",
            1.0,
        ),
    ]
    return pairs, {
        "range of the mean that the floor leaves (binary records)": left,
        "noise that may be saved, at most": 1 - left,
        "δ_c + τ for Gaussian noise and the level 0.1, at most": whole.upper - part.lower,
    }


def equality() -> Query:
    """Return Example 1's query: is x_1 = x_2, for x_1 in {0, 1, 2} and x_2 in {0, 1}."""
    return from_function(RecordSpace([range(3), range(2)]), lambda x: int(x[0] == x[1]))


def figure_3(flip: float = 0.1) -> Computed:
    """Compute C_1 of Example 1's channel, by Theorem 2 and by the audit."""
    mechanism = Mechanism(equality(), binary_symmetric(flip))
    cube = mechanism.to_channel().matrix.reshape(3, 2, 2)
    bound = record_leakage(mechanism, 0.0)
    basis = [
        rows[np.arange(len(rows)), choice]
        for rows in (cube, cube.swapaxes(0, 1))
        for choice in product(range(rows.shape[1]), repeat=len(rows))
    ]
    best = max((capacity(channel) for channel in basis), key=lambda found: found.upper)
    pairs = [
        pair("C_1 proved; (27), attained here", bound, symmetric_capacity(2, flip)),
        pair("C_1 by Theorem 2, from 17 basis channels", best, symmetric_capacity(2, flip)),
    ]
    return pairs, {"flip": flip, "p(y|x1,x2)": cube.tolist()}


def draw_figure_3(data: Data) -> Figure:
    """Draw a matrix for each output."""
    figure, axes = panels(2, width=3.0, height=2.9)
    cube = np.array(data["p(y|x1,x2)"])
    for y, ax in enumerate(axes):
        ax.imshow(cube[:, :, y], cmap="Blues", vmin=0, vmax=1)
        for (i, j), value in np.ndenumerate(cube[:, :, y]):
            shade = "white" if value > 0.5 else "black"
            ax.text(j, i, f"{value:g}", ha="center", va="center", color=shade)
        ax.set(title=f"p(y = {y} | x)", xlabel="$x_2$", ylabel="$x_1$")
        ax.set_xticks(range(2))
        ax.set_yticks(range(3))
    return figure


def section_4() -> Computed:
    """Corollaries 1 to 4, each where it is exact and where it is not."""
    pairs: list[Pair] = []
    for epsilon in (0.05, 0.2, 0.5):
        flip = flip_for_leakage(2, epsilon)
        pairs.append(
            pair(
                f"Corollary 1: C_1 at p*({epsilon:g})",
                record_leakage(noisy_parity(3, flip), 0.0),
                epsilon,
            )
        )
    three = from_function(RecordSpace([range(3), range(3)]), lambda x: (x[0] + x[1]) % 3)
    noise = generalized_symmetric(3, 0.3)
    law = noise.row(0)
    pairs.append(
        pair(
            "Corollary 2: C_1 of a sum mod 3 of ternary records, and log 3 - H(Z)",
            record_leakage(Mechanism(three, noise), 0.0),
            math.log(3) - entropy(law),
        )
    )
    cycle = 1.0 - np.eye(3) + np.roll(np.eye(3), 1, axis=1)  # no ties in any row
    for scale in (0.5, 2.0):
        row = rank_exponential(cycle, scale).row(0)
        pairs.append(
            pair(
                f"(30): H(Z) for k = 3, N = {scale:g}",
                entropy(row),
                rank_exponential_entropy(3, scale),
            )
        )
    for epsilon in (0.05, 0.2, 0.5):
        scale = rank_scale_for_leakage(3, epsilon)
        ranked = Mechanism(three, rank_exponential(cycle, scale))
        pairs.append(
            pair(
                f"Corollary 3: C_1 for epsilon {epsilon:g}, k = 3",
                record_leakage(ranked, 0.0),
                epsilon,
            )
        )
        variance = gaussian_variance_for_leakage(1.0, epsilon)
        pairs.append(
            pair(
                f"(31) in (32): the bound for epsilon {epsilon:g}, T = 1",
                gaussian_bound(1.0, variance),
                epsilon,
            )
        )
        peak = gaussian_peak_capacity(1.0, variance)
        pairs.append(
            pair(
                f"Corollary 4: C_1 for epsilon {epsilon:g}, T = 1",
                peak.upper,
                epsilon,
                "DALENIUS Cor 4",
            )
        )
    flips = np.linspace(0.01, 0.5, 50)
    scales = np.linspace(0.2, 6.0, 59)
    variances = np.geomspace(0.05, 20.0, 25)
    return pairs, {
        "flips": flips.tolist(),
        "symmetric": {str(k): [symmetric_capacity(k, p) for p in flips] for k in (2, 3, 5)},
        "scales": scales.tolist(),
        "exponential": {str(k): [rank_exponential_bound(k, s) for s in scales] for k in (2, 3, 5)},
        "variances": variances.tolist(),
        "Gaussian bound": [gaussian_bound(1.0, v) for v in variances],
        "Gaussian, |f| <= 1": [gaussian_peak_capacity(1.0, v).upper for v in variances],
    }


def draw_section_4(data: Data) -> Figure:
    """Draw the three bounds against the noise."""
    figure, axes = panels(3)
    for key, grid, ax in (("symmetric", "flips", axes[0]), ("exponential", "scales", axes[1])):
        for (k, values), color in zip(data[key].items(), COLORS, strict=False):
            ax.plot(data[grid], values, color=color, label=f"{k} outputs")
        ax.set_ylim(0, None)
        ax.legend(frameon=False)
    axes[0].set(title="symmetric channel (4.1)", xlabel="flip p", ylabel="bound on $C_1$, nats")
    axes[1].set(title="exponential channel (4.3)", xlabel="N")
    axes[2].semilogx(
        data["variances"], data["Gaussian bound"], color=COLORS[0], ls="--", label="(32), a bound"
    )
    axes[2].semilogx(
        data["variances"], data["Gaussian, |f| <= 1"], color=COLORS[0], label="$C_1$ for |f| ≤ 1"
    )
    axes[2].set(title="Gaussian channel (4.4)", xlabel="variance N of the noise", ylim=(0, None))
    axes[2].legend(frameon=False)
    return figure


def section_7() -> Computed:
    """Compute the capacities and distortions that Section 7.2 prints."""
    pairs = [
        pair("C_1 at flip 0.1, bits", symmetric_capacity(2, 0.1) / BIT, "0.531"),
        pair("C_1 at flip 0.1, nats", symmetric_capacity(2, 0.1), "0.368"),
        pair("C_1 at flip 0.3, bits", symmetric_capacity(2, 0.3) / BIT, "0.1187"),
        pair(
            "C_1 at flip 0.3, nats", symmetric_capacity(2, 0.3), "0.08227657", "DALENIUS 7.2, C_1"
        ),
        pair("largest entropy, n = 4, nats", 4 * BIT, "2.77"),
        pair("largest entropy, n = 5, nats", 5 * BIT, "3.47"),
        pair("largest entropy, n = 6, nats", 6 * BIT, "4.159"),
        pair(
            "C_1 at flip 0.3, n = 4: proved, (49)",
            record_leakage(noisy_parity(4, 0.3), 0.0),
            parity_leakage(4, 0.3, 0.0),
        ),
    ]
    wrong = 1 - np.eye(2)
    symmetric = mechanism_distortion(noisy_parity(4, 0.3), np.full(16, 1 / 16), wrong)
    pairs.append(pair("distortion, symmetric, flip 0.3: (50)", symmetric, 0.3))
    for epsilon in (0.1, 1.0):
        for name, channel, printed in (
            ("Laplace", laplace_threshold(epsilon), math.exp(-epsilon / 2) / 2),
            (
                "exponential",
                exponential(np.eye(2), epsilon, 1.0),
                1 / (math.exp(epsilon / 2) + 1),
            ),
        ):
            computed = mechanism_distortion(Mechanism(parity(1), channel), [0.5, 0.5], wrong)
            pairs.append(pair(f"distortion, {name}, epsilon {epsilon:g}", computed, printed))
    return pairs, {}


ITEMS = [
    Item(
        "dalenius-remark-3",
        "an entropy floor for the Netflix ratings",
        netflix,
        note="The arithmetic holds. The floor does not help everybody: of a noisy parity of the "
        "ratings it changes nothing, and of their mean it leaves the adversary 64% of the range.",
    ),
    Item(
        "dalenius-figure-3",
        "the channel of Example 1, with flip 0.1",
        figure_3,
        draw_figure_3,
        note="The first record has three values, and the bound (27) is attained all the same.",
    ),
    Item(
        "dalenius-section-4",
        "capacities of the symmetric, exponential and Gaussian channels",
        section_4,
        draw_section_4,
        note="The dashed curve is (32); what a query with |f| ≤ T can leak is the curve below it.",
    ),
    Item(
        "dalenius-example-3",
        "the hospital's entropy floor",
        hospital,
        note="A floor of 0.9% of the largest entropy, for binary records, leaves the adversary "
        "99.8% of the range of a mean: no more than 0.2% of the noise can be saved.",
    ),
    floors_item("dalenius-figure-4"),
    Item(
        "dalenius-section-7.2",
        "printed capacities and distortions",
        section_7,
    ),
    Item(
        "dalenius-figure-5",
        "distortion of three mechanisms for a parity",
        distortion_curves,
        draw_distortion,
        note="All three are binary symmetric channels. At equal audited leakage (the marks), and "
        "at their exact level of differential privacy (dotted), they are one and the same curve; "
        "the published comparison takes the nominal level of two of them, and the leakage of the "
        "third.",
    ),
]
