"""Numerical methods that do not depend on the problem."""

from cvxleak.solvers.best_first import BestFirst

__all__ = ["BestFirst"]
