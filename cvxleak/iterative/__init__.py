"""Iterative methods in plain NumPy, without CVXPY, to compare with its solvers independently.

Blahut–Arimoto and gradient methods, and the papers' algorithms as they are printed: LEAKAGE's
Algorithms 1 to 5 search for the worst adversary of a mechanism, its Algorithms 6 to 11 design a
mechanism; SEQUENTIAL's Algorithms 1 to 3 find a release. Where these end in local optima, the page
on local methods compares them with the proved lower and upper bounds.
"""

from cvxleak.iterative.alternating import alternating_leakage
from cvxleak.iterative.alternating_mechanism import AlternatingPoint, alternating_design
from cvxleak.iterative.arimoto import blahut_arimoto
from cvxleak.iterative.conditional import conditional_gradient_ascent, row_entropy_floors
from cvxleak.iterative.deterministic import deterministic_search
from cvxleak.iterative.entropy_floor import entropy_boundary_mixture, meet_entropy_floor
from cvxleak.iterative.entropy_projection import project_to_entropy
from cvxleak.iterative.exponentiated import exponentiated_gradient, penalized_objective
from cvxleak.iterative.extragradient import DesignPoint, mirror_prox
from cvxleak.iterative.history import IterativeResult
from cvxleak.iterative.interior_point import capacity_interior_point
from cvxleak.iterative.joint import joint_blahut_arimoto
from cvxleak.iterative.marginal import marginal_blahut_arimoto
from cvxleak.iterative.penalty import adaptive_penalty
from cvxleak.iterative.rate_distortion import RatePoint, blahut_rate_distortion
from cvxleak.iterative.release_curve import MultiplierPoint, multiplier_grid, release_search
from cvxleak.iterative.release_fixed import distortion_blahut_arimoto, information_blahut_arimoto
from cvxleak.iterative.release_formulas import (
    ReleaseLaws,
    release_functional,
    release_gradients,
    release_update,
)
from cvxleak.iterative.saddle import Saddle, information_saddle
from cvxleak.mechanisms.simplex import project_to_simplex

__all__ = [
    "AlternatingPoint",
    "DesignPoint",
    "IterativeResult",
    "MultiplierPoint",
    "RatePoint",
    "ReleaseLaws",
    "Saddle",
    "adaptive_penalty",
    "alternating_design",
    "alternating_leakage",
    "blahut_arimoto",
    "blahut_rate_distortion",
    "capacity_interior_point",
    "conditional_gradient_ascent",
    "deterministic_search",
    "distortion_blahut_arimoto",
    "entropy_boundary_mixture",
    "exponentiated_gradient",
    "information_blahut_arimoto",
    "information_saddle",
    "joint_blahut_arimoto",
    "marginal_blahut_arimoto",
    "meet_entropy_floor",
    "mirror_prox",
    "multiplier_grid",
    "penalized_objective",
    "project_to_entropy",
    "project_to_simplex",
    "release_functional",
    "release_gradients",
    "release_search",
    "release_update",
    "row_entropy_floors",
]
