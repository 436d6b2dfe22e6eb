"""Plots (with matplotlib, the ``plot`` extra): each function draws one result on one pair of axes.

The area between a lower and an upper bound is shaded, to show what is not known.
"""

from cvxleak.plots._axes import rise_from_zero
from cvxleak.plots.curves import (
    plot_bracket,
    plot_brackets,
    plot_convergence,
    plot_curve,
    plot_envelope,
    plot_guesses,
    plot_sweep,
    plot_trade_off,
)
from cvxleak.plots.laws import (
    plot_adversary,
    plot_channel,
    plot_posterior,
    plot_prior,
    plot_sources,
)

__all__ = [
    "plot_adversary",
    "plot_bracket",
    "plot_brackets",
    "plot_channel",
    "plot_convergence",
    "plot_curve",
    "plot_envelope",
    "plot_guesses",
    "plot_posterior",
    "plot_prior",
    "plot_sources",
    "plot_sweep",
    "plot_trade_off",
    "rise_from_zero",
]
