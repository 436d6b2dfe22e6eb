"""Channels that are useful for every source of a set and leak as little as possible (HAMMING)."""

from cvxleak.problems.local_dp.least_epsilon import MinLocalDP, min_local_dp

__all__ = ["MinLocalDP", "min_local_dp"]
