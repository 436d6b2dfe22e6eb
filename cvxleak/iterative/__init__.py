"""Iterative methods in plain NumPy: they know nothing of CVXPY, so comparing with it means much."""

from cvxleak.iterative.entropy_floor import meet_entropy_floor
from cvxleak.iterative.history import IterativeResult
from cvxleak.iterative.joint import joint_blahut_arimoto

__all__ = ["IterativeResult", "joint_blahut_arimoto", "meet_entropy_floor"]
