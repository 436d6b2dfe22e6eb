"""Capacities of a channel."""

from cvxleak.capacities.renyi import RenyiCapacity, maximal_alpha_leakage, renyi_capacity
from cvxleak.capacities.shannon import Capacity, capacity

__all__ = ["Capacity", "RenyiCapacity", "capacity", "maximal_alpha_leakage", "renyi_capacity"]
