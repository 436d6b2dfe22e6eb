"""The parity of n bits through a binary symmetric channel: what LEAKAGE and DALENIUS both plot."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import root_scalar
from scipy.special import entr

from cvxleak.audit import leakage_curve
from cvxleak.core.errors import InfeasibleError
from cvxleak.core.validation import real_number, whole_number
from cvxleak.design import calibrate
from cvxleak.iterative import alternating_leakage
from cvxleak.mechanisms import binary_symmetric, exponential, laplace_threshold, symmetric_capacity
from cvxleak.model import Mechanism
from cvxleak.papers.gallery.drawing import COLORS, foot, panels
from cvxleak.papers.gallery.item import Computed, Data, Item, Pair, pair
from cvxleak.queries import parity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "FLIPS",
    "SIZES",
    "distortion_curves",
    "draw_distortion",
    "draw_floors",
    "floor_curves",
    "floors_item",
    "noisy_parity",
    "parity_leakage",
]

SIZES = (4, 5, 6)
FLIPS = (0.1, 0.2, 0.3, 0.4)
FAMILIES = {
    "symmetric": (binary_symmetric, lambda flip: flip, (0.05, 0.45)),
    "Laplace": (laplace_threshold, lambda flip: -2 * math.log(2 * flip), (4.0, 0.5)),
    "exponential": (
        lambda epsilon: exponential(np.eye(2), epsilon, 1.0),
        lambda flip: 2 * math.log((1 - flip) / flip),
        (5.0, 0.5),
    ),
}
"""Mechanism of a parameter, the parameter of a flip, and from least noise to most."""

SHORT_OF = (0.3, 0.1, 0.03)
"""Floors this far below log|X|, in nats: under (n - 1) log 2 a floor changes nothing."""


def noisy_parity(n: int, flip: float) -> Mechanism:
    """Return the parity of n bits through a binary symmetric channel."""
    return Mechanism(parity(n), binary_symmetric(flip))


def parity_leakage(n: int, flip: float, entropy_floor: float) -> float:
    """Return the exact leakage about a record of a noisy parity.

    ``L(b) = log 2 - h(flip)`` for ``b <= (n - 1) log 2``; above that ``log 2 - h(q)`` with
    ``q = a (1 - flip) + (1 - a) flip`` and ``h(a) = b - (n - 1) log 2``, a at most 1/2. One bit,
    with noise, is the parity of the other n - 1 under the best prior of that entropy.

    Parameters
    ----------
    n : int
        Number of bits, at least 2.
    flip : float
        From 0 to 1.
    entropy_floor : float
        b in nats, from 0 to n log 2.

    Raises
    ------
    ValidationError
        An argument is outside its range.
    InfeasibleError
        b above n log 2.

    Examples
    --------
    >>> from cvxleak.papers.gallery.parity import parity_leakage
    >>> [round(parity_leakage(4, 0.3033, b), 6) for b in (0, 2, 2.495, 2.77)]
    [0.079513, 0.079513, 0.039325, 0.0004]
    """
    size = whole_number(n, "n", 2)
    wrong = real_number(flip, "flip", 0, 1)
    floor = real_number(entropy_floor, "entropy_floor", 0)
    over = floor - (size - 1) * math.log(2)
    if over <= 0:
        return symmetric_capacity(2, wrong)
    if over > math.log(2) * (1 + 1e-12):
        raise InfeasibleError(
            f"entropy_floor: found {floor:.6g}; n bits have at most {size * math.log(2):.6g} nats"
        )
    share = 0.5
    if over < math.log(2) - 1e-15:
        found = root_scalar(lambda a: float(entr(a) + entr(1 - a)) - over, bracket=(0, 0.5))
        share = float(found.root)
    return symmetric_capacity(2, share * (1 - wrong) + (1 - share) * wrong)


@cache  # both papers have this picture
def floor_curves(points: int = 41, marks: int = 7) -> Computed:
    """L(b) for n = 4, 5, 6 and four flips: proved, in closed form, and where Algorithm 1 ends."""
    pairs: list[Pair] = []
    curves = []
    for n in SIZES:
        most = n * math.log(2)
        floors, some = np.linspace(0, most, points), np.linspace(0, most, marks)
        for flip in FLIPS:
            mechanism = noisy_parity(n, flip)
            curve = leakage_curve(mechanism, floors)
            exact = [parity_leakage(n, flip, b) for b in floors]
            pairs += [
                pair(
                    f"L({floors[k]:.3f}), n = {n}, flip {flip:g}: proved, closed form",
                    curve.bounds[k],
                    exact[k],
                )
                for k in (points // 2, points * 9 // 10)  # on the plateau, and beyond
            ]
            outside = np.maximum(curve.lower - exact, exact - curve.upper).max()
            pairs.append(
                pair(
                    f"n = {n}, flip {flip:g}: most that L(b) is outside its bracket, at any b",
                    max(float(outside), 0.0),
                    0.0,
                )
            )
            local = [
                [
                    alternating_leakage(mechanism, b, start="uniform").value,
                    alternating_leakage(mechanism, b, start="random", rng=0).value,
                ]
                for b in some
            ]
            curves.append(
                {
                    "records": n,
                    "flip": flip,
                    "floors": floors.tolist(),
                    "lower": curve.lower.tolist(),
                    "upper": curve.upper.tolist(),
                    "marks": some.tolist(),
                    "uniform start": [each[0] for each in local],
                    "random start": [each[1] for each in local],
                }
            )
    return pairs, {"curves": curves}


def draw_floors(data: Data) -> Figure:
    """Draw the curves, one pair of axes for each number of bits."""
    figure, axes = panels(len(SIZES), share=True)
    for curve in data["curves"]:
        ax = axes[SIZES.index(curve["records"])]
        color = COLORS[FLIPS.index(curve["flip"])]
        ax.fill_between(curve["floors"], curve["lower"], curve["upper"], color=color, alpha=0.3)
        ax.plot(curve["floors"], curve["upper"], color=color, label=f"flip {curve['flip']:g}")
        ax.plot(curve["marks"], curve["uniform start"], "x", color=color, ms=4, clip_on=False)
        ax.plot(
            curve["marks"], curve["random start"], "o", color=color, ms=4, mfc="none", clip_on=False
        )
    for ax, n in zip(axes, SIZES, strict=True):
        ax.axvline((n - 1) * math.log(2), color="0.6", lw=0.8, ls=":", zorder=0)
        ax.set(title=f"n = {n}", xlabel="entropy floor b, nats", xlim=(0, n * math.log(2)))
        ax.set_ylim(0, None)
    axes[0].set_ylabel("leakage about a record, nats")
    axes[0].plot([], [], "x", color="0.3", ms=4, label="Algorithm 1, uniform start")
    axes[0].plot([], [], "o", color="0.3", ms=4, mfc="none", label="Algorithm 1, a random start")
    foot(figure, axes, 6)
    return figure


def distortion_curves(points: int = 61) -> Computed:
    """Compute distortion against leakage, and against the level of differential privacy.

    All of these mechanisms are binary symmetric channels, whose distortion is the flip.
    """
    flips = np.linspace(0.005, 0.495, points)
    curves = []
    pairs: list[Pair] = []
    for n in SIZES:
        most = n * math.log(2)
        for floor in (0.0, *(most - short for short in SHORT_OF)):
            leakage = [parity_leakage(n, p, floor) for p in flips]
            curves.append({"records": n, "floor": floor, "leakage": leakage})
            (bound,) = leakage_curve(noisy_parity(n, 0.2), [floor]).bounds
            pairs.append(
                pair(
                    f"L({floor:.3f}), n = {n}, flip 0.2: proved, closed form",
                    bound,
                    parity_leakage(n, 0.2, floor),
                )
            )
    more, marks = equal_leakage()
    pairs += more
    epsilons = np.linspace(0.02, 5.0, points)
    return pairs, {
        "flips": flips.tolist(),
        "curves": curves,
        "epsilons": epsilons.tolist(),
        "Laplace": (np.exp(-epsilons / 2) / 2).tolist(),
        "exponential": (1 / (np.exp(epsilons / 2) + 1)).tolist(),
        "audited": marks,
        "exact level": np.log((1 - flips) / flips).tolist(),
    }


@cache
def equal_leakage() -> tuple[list[Pair], list[dict[str, Any]]]:
    """Audit the three mechanisms: at equal leakage they distort equally.

    At the floor 1: the leakage of each where it flips as often as the others, and, for
    the least n, the distortion of each where its noise is the least that meets a leakage.
    """
    pairs: list[Pair] = []
    marks: list[dict[str, Any]] = []
    floor = 1.0
    for n in SIZES:
        for name, (family, parameter, _) in FAMILIES.items():
            for flip in FLIPS:
                mechanism = Mechanism(parity(n), family(parameter(flip)))
                (bound,) = leakage_curve(mechanism, [floor]).bounds
                distortion = float(mechanism.channel.matrix[0, 1])
                marks.append(
                    {
                        "records": n,
                        "name": name,
                        "leakage": bound.upper,
                        "distortion": distortion,
                    }
                )
                title = f"audited leakage of {name} at distortion {flip:g}, n = {n}, symmetric's"
                pairs.append(pair(title, bound, parity_leakage(n, flip, floor), None, 1e-7))
    n, flip = SIZES[0], 0.2
    level = parity_leakage(n, flip, floor)
    for name, (family, _, between) in FAMILIES.items():
        found = calibrate(
            lambda value, family=family: Mechanism(parity(n), family(value)),
            between,
            leakage=level,
            entropy_floor=floor,
            resolution=2e-3,
            tol=1e-4,
        )
        title = f"least distortion of {name} at audited leakage {level:.4f}, n = {n}"
        spent = float(found.mechanism.channel.matrix[0, 1])
        pairs.append(pair(title, spent, flip, None, 2e-3))
    return pairs, marks


def draw_distortion(data: Data) -> Figure:
    """Draw the distortions as published; dotted, at the level that both mechanisms really have."""
    figure, axes = panels(len(SIZES), share=True)
    for ax, n in zip(axes, SIZES, strict=True):
        mine = [curve for curve in data["curves"] if curve["records"] == n]
        for curve, style in zip(mine, ("-", "--", "-.", ":"), strict=True):
            short = n * math.log(2) - curve["floor"]
            label = "symmetric channel, leakage at b = 0"
            if curve["floor"]:
                label = f"at b = log|X| − {short:.2g}"
            ax.plot(curve["leakage"], data["flips"], color=COLORS[0], ls=style, label=label)
        for name, marker in (("symmetric", "s"), ("Laplace", "x"), ("exponential", "+")):
            found = [m for m in data["audited"] if (m["records"], m["name"]) == (n, name)]
            ax.plot(
                [m["leakage"] for m in found],
                [m["distortion"] for m in found],
                marker,
                color="0.2",
                ms={"s": 8, "x": 5, "+": 8}[marker],
                mfc="none",
                label=f"{name}, audited at b = 1",
            )
        for color, name in ((COLORS[1], "Laplace"), (COLORS[2], "exponential")):
            ax.plot(data["epsilons"], data[name], color=color, label=f"{name}, nominal ε")
        ax.plot(
            data["exact level"], data["flips"], color="0.4", ls=":", label="any of them, exact ε"
        )
        ax.set(title=f"n = {n}", xlim=(0, 3), ylim=(0, 0.5))
        ax.set_xlabel("leakage, or ε, nats")
    axes[0].set_ylabel("expected distortion")
    foot(figure, axes, 4)
    return figure


def floors_item(name: str) -> Item:
    """Return the figure of L(b), which two of the papers print."""
    return Item(
        name,
        "leakage of a noisy parity against the entropy floor",
        floor_curves,
        draw_floors,
        note="The published curves fall from b = 0 on. The leakage does not fall before the dotted "
        "line, (n - 1) log 2; the marks are where the published method ends.",
        slow=True,
    )
