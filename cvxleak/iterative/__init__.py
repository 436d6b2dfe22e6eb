"""Iterative methods in plain NumPy: they know nothing of CVXPY, so comparing with it means much."""

from cvxleak.iterative.alternating import alternating_leakage
from cvxleak.iterative.alternating_mechanism import AlternatingPoint, alternating_design
from cvxleak.iterative.arimoto import blahut_arimoto
from cvxleak.iterative.conditional import conditional_gradient_ascent
from cvxleak.iterative.deterministic import deterministic_search
from cvxleak.iterative.entropy_floor import meet_entropy_floor
from cvxleak.iterative.entropy_projection import project_to_entropy
from cvxleak.iterative.exponentiated import exponentiated_gradient
from cvxleak.iterative.extragradient import mirror_prox
from cvxleak.iterative.history import IterativeResult
from cvxleak.iterative.interior_point import capacity_interior_point
from cvxleak.iterative.joint import joint_blahut_arimoto
from cvxleak.iterative.marginal import marginal_blahut_arimoto
from cvxleak.iterative.penalty import adaptive_penalty
from cvxleak.iterative.prior_design import DesignPoint, design_interior_point
from cvxleak.iterative.rate_distortion import (
    RatePoint,
    blahut_rate_distortion,
    rate_distortion_interior_point,
)
from cvxleak.iterative.release_curve import MultiplierPoint, multiplier_grid, release_search
from cvxleak.iterative.release_fixed import distortion_blahut_arimoto, information_blahut_arimoto
from cvxleak.iterative.saddle import Saddle, information_saddle
from cvxleak.model.simplex import project_to_simplex

__all__ = [
    "AlternatingPoint",
    "DesignPoint",
    "IterativeResult",
    "MultiplierPoint",
    "RatePoint",
    "Saddle",
    "adaptive_penalty",
    "alternating_design",
    "alternating_leakage",
    "blahut_arimoto",
    "blahut_rate_distortion",
    "capacity_interior_point",
    "conditional_gradient_ascent",
    "design_interior_point",
    "deterministic_search",
    "distortion_blahut_arimoto",
    "exponentiated_gradient",
    "information_blahut_arimoto",
    "information_saddle",
    "joint_blahut_arimoto",
    "marginal_blahut_arimoto",
    "meet_entropy_floor",
    "mirror_prox",
    "multiplier_grid",
    "project_to_entropy",
    "project_to_simplex",
    "rate_distortion_interior_point",
    "release_search",
]
