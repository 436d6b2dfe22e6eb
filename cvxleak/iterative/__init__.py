"""Iterative methods in plain NumPy: they know nothing of CVXPY, so comparing with it means much."""

from cvxleak.iterative.alternating import alternating_leakage
from cvxleak.iterative.arimoto import blahut_arimoto
from cvxleak.iterative.conditional import conditional_gradient_ascent
from cvxleak.iterative.deterministic import deterministic_search
from cvxleak.iterative.entropy_floor import meet_entropy_floor
from cvxleak.iterative.entropy_projection import project_to_entropy
from cvxleak.iterative.extragradient import mirror_prox
from cvxleak.iterative.history import IterativeResult
from cvxleak.iterative.interior_point import capacity_interior_point
from cvxleak.iterative.joint import joint_blahut_arimoto
from cvxleak.iterative.marginal import marginal_blahut_arimoto
from cvxleak.iterative.prior_design import DesignPoint, design_interior_point
from cvxleak.iterative.rate_distortion import (
    RatePoint,
    blahut_rate_distortion,
    rate_distortion_interior_point,
)
from cvxleak.model.simplex import project_to_simplex

__all__ = [
    "DesignPoint",
    "IterativeResult",
    "RatePoint",
    "alternating_leakage",
    "blahut_arimoto",
    "blahut_rate_distortion",
    "capacity_interior_point",
    "conditional_gradient_ascent",
    "design_interior_point",
    "deterministic_search",
    "joint_blahut_arimoto",
    "marginal_blahut_arimoto",
    "meet_entropy_floor",
    "mirror_prox",
    "project_to_entropy",
    "project_to_simplex",
    "rate_distortion_interior_point",
]
