"""Iterative methods in plain NumPy: they know nothing of CVXPY, so comparing with it means much."""

from cvxleak.iterative.history import IterativeResult

__all__ = ["IterativeResult"]
