"""Iterative methods in plain NumPy, without CVXPY, to compare with its solvers independently."""

from cvxleak.iterative.arimoto import blahut_arimoto
from cvxleak.iterative.entropy_floor import meet_entropy_floor
from cvxleak.iterative.extragradient import DesignPoint, mirror_prox
from cvxleak.iterative.history import IterativeResult
from cvxleak.iterative.interior_point import capacity_interior_point
from cvxleak.iterative.joint import joint_blahut_arimoto
from cvxleak.iterative.rate_distortion import RatePoint, blahut_rate_distortion
from cvxleak.iterative.release_fixed import distortion_blahut_arimoto, information_blahut_arimoto
from cvxleak.iterative.saddle import Saddle, information_saddle
from cvxleak.mechanisms.simplex import project_to_simplex

__all__ = [
    "DesignPoint",
    "IterativeResult",
    "RatePoint",
    "Saddle",
    "blahut_arimoto",
    "blahut_rate_distortion",
    "capacity_interior_point",
    "distortion_blahut_arimoto",
    "information_blahut_arimoto",
    "information_saddle",
    "joint_blahut_arimoto",
    "meet_entropy_floor",
    "mirror_prox",
    "project_to_simplex",
]
