"""The algorithms of the papers as they are printed, for comparison.

LEAKAGE's Algorithms 1 to 3 and 5 search for the worst adversary of a mechanism; its Algorithms 6 to
11 design a mechanism; SEQUENTIAL's Algorithm 3 searches a grid of multipliers. They end in local
optima; the page on local methods compares these with the proved lower and upper bounds.
"""

from cvxleak.papers.algorithms.alternating import alternating_leakage
from cvxleak.papers.algorithms.alternating_mechanism import AlternatingPoint, alternating_design
from cvxleak.papers.algorithms.conditional import conditional_gradient_ascent
from cvxleak.papers.algorithms.deterministic import deterministic_search
from cvxleak.papers.algorithms.entropy_projection import project_to_entropy
from cvxleak.papers.algorithms.exponentiated import exponentiated_gradient
from cvxleak.papers.algorithms.marginal import marginal_blahut_arimoto
from cvxleak.papers.algorithms.penalty import adaptive_penalty
from cvxleak.papers.algorithms.release_curve import (
    MultiplierPoint,
    multiplier_grid,
    release_search,
)

__all__ = [
    "AlternatingPoint",
    "MultiplierPoint",
    "adaptive_penalty",
    "alternating_design",
    "alternating_leakage",
    "conditional_gradient_ascent",
    "deterministic_search",
    "exponentiated_gradient",
    "marginal_blahut_arimoto",
    "multiplier_grid",
    "project_to_entropy",
    "release_search",
]
