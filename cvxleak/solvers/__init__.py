"""Numerics that know no problem."""

from cvxleak.solvers.best_first import BestFirst

__all__ = ["BestFirst"]
